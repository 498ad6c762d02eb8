-- What ALTER DEFAULT PRIVILEGES grants opens nothing of the extensions: neither at CREATE EXTENSION
-- nor at an update. What an administrator granted by name stays, and doctor() names it.
\set QUIET on
\set ON_ERROR_STOP on
\pset format unaligned
\pset tuples_only on
\pset pager off

BEGIN;
SET LOCAL client_min_messages = error;
SET LOCAL check_function_bodies = off;
CREATE EXTENSION IF NOT EXISTS pgtap;
DROP EXTENSION IF EXISTS pg_pulse CASCADE;
DROP SCHEMA IF EXISTS pulse CASCADE;
SELECT plan(22);

CREATE ROLE anon;
CREATE ROLE clerk;
CREATE ROLE chief SUPERUSER;
CREATE ROLE deputy;

-- The rights on an extension and its schema of everybody but the owner, PUBLIC as 0.
CREATE FUNCTION pg_temp.rights_on(extension name)
  RETURNS TABLE (object text, role oid, privilege text, is_grantable boolean)
  LANGUAGE sql AS $$
  WITH held (classid, id, owner, acl) AS (
    SELECT 'pg_proc'::regclass, oid, proowner, coalesce(proacl, acldefault('f', proowner))
      FROM pg_proc
    UNION ALL SELECT 'pg_class'::regclass, oid, relowner, relacl FROM pg_class
    -- Types that follow a table or another type are members from 17 on, and have no rights.
    UNION ALL
    SELECT 'pg_type'::regclass, t.oid, typowner, coalesce(typacl, acldefault('T', typowner))
      FROM pg_type AS t LEFT JOIN pg_class AS c ON c.oid = t.typrelid
     WHERE coalesce(c.relkind, 'c') = 'c'
       AND NOT EXISTS (SELECT FROM pg_type AS element WHERE element.typarray = t.oid)
    UNION ALL SELECT 'pg_namespace'::regclass, oid, nspowner, nspacl FROM pg_namespace
  ), member (classid, id) AS (
    SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
     WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = extension
    UNION SELECT 'pg_namespace'::regclass, 'pulse'::regnamespace WHERE extension = 'pg_pulse'
  )
  SELECT pg_describe_object(h.classid, h.id, 0), a.grantee, a.privilege_type, a.is_grantable
    FROM member AS m JOIN held AS h USING (classid, id), aclexplode(h.acl) AS a
   WHERE a.grantee <> h.owner $$;
CREATE FUNCTION pg_temp.other_rights() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT d.detail FROM pulse.doctor() AS d WHERE d.finding = 'other rights' ORDER BY d.detail $$;

-- --- at CREATE EXTENSION -------------------------------------------------------------------------

ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO anon WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO anon, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO anon, clerk;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO anon;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO anon, PUBLIC;
CREATE EXTENSION pg_pulse;
CREATE EXTENSION pg_pulse_graphile;
CREATE EXTENSION pg_pulse_tap;
SELECT is_empty(format('SELECT * FROM pg_temp.rights_on(%L)', e.name),
                'a new ' || e.name || ' gives nobody but its owner a right')
  FROM unnest('{pg_pulse,pg_pulse_graphile,pg_pulse_tap}'::text[]) AS e (name);
SELECT is_empty($$SELECT i.objoid FROM pg_init_privs AS i, aclexplode(i.initprivs) AS a
                   WHERE a.grantee IN ('anon'::regrole, 'clerk'::regrole)
                      OR i.classoid = 'pg_namespace'::regclass
                         AND i.objoid = 'pulse'::regnamespace$$,
  'and none of the default ones is taken for a right of the script, which pg_dump would leave out');
SELECT is_empty('SELECT pg_temp.other_rights()', 'doctor() has nothing to tell');
SELECT pulse.grant_producer('clerk'), pulse.grant_operator('deputy') \g /dev/null
SELECT is_empty('SELECT pg_temp.other_rights()', 'neither of rights that a grant gave');
DROP EXTENSION pg_pulse CASCADE;
DROP SCHEMA pulse;

ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM anon, PUBLIC;
CREATE SCHEMA pulse;
ALTER DEFAULT PRIVILEGES IN SCHEMA pulse GRANT ALL ON TABLES TO clerk;
ALTER DEFAULT PRIVILEGES IN SCHEMA pulse GRANT EXECUTE ON FUNCTIONS TO clerk WITH GRANT OPTION;
GRANT USAGE ON SCHEMA pulse TO deputy;
CREATE EXTENSION pg_pulse;
SELECT results_eq(
  $$SELECT object, role::regrole::text, privilege FROM pg_temp.rights_on('pg_pulse')
     WHERE role = 'deputy'::regrole OR object <> 'schema pulse'$$,
  $$VALUES ('schema pulse', 'deputy', 'USAGE')$$,
  'nor by defaults of its schema; what was granted by name on that stays');
SET LOCAL pulse.allow_drop = on;
DROP EXTENSION pg_pulse;
DROP SCHEMA pulse;

-- --- at an update --------------------------------------------------------------------------------

ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM anon;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM anon, PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM anon, clerk;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM anon;
CREATE EXTENSION pg_pulse VERSION '0.1.0';
GRANT EXECUTE ON FUNCTION pulse.add_job, pulse.set_queue TO clerk;
GRANT EXECUTE ON FUNCTION pulse.set_task TO clerk WITH GRANT OPTION;
GRANT SELECT ON pulse.job TO clerk;
CREATE TEMP TABLE before AS SELECT * FROM pg_temp.rights_on('pg_pulse');
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO anon WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO anon;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO anon;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO anon;
ALTER DEFAULT PRIVILEGES IN SCHEMA pulse GRANT ALL ON FUNCTIONS TO anon WITH GRANT OPTION;
ALTER EXTENSION pg_pulse UPDATE;
SELECT is_empty($$SELECT * FROM pg_temp.rights_on('pg_pulse') WHERE role = 'anon'::regrole$$,
  'an update opens nothing either');
SELECT results_eq(
  $$SELECT regexp_replace(object, '[(].*', '') COLLATE "C", privilege, is_grantable
      FROM pg_temp.rights_on('pg_pulse') WHERE role = 'clerk'::regrole ORDER BY 1$$,
  $$SELECT regexp_replace(object, '[(].*', '') COLLATE "C", privilege, is_grantable
      FROM before WHERE role = 'clerk'::regrole ORDER BY 1$$, 'what was granted by name stays');
SELECT is_empty($$SELECT i.objoid FROM pg_init_privs AS i, aclexplode(i.initprivs) AS a
                   WHERE a.grantee IN ('anon'::regrole, 'clerk'::regrole)$$,
                'and is dumped as before');

-- --- what doctor() finds -------------------------------------------------------------------------

SELECT results_eq($$SELECT split_part(o, '(', 1) FROM pg_temp.other_rights() AS o$$,
  $$VALUES ('Role clerk has 3 rights that none of its grant_... gives, such as EXECUTE WITH GRANT '
            'OPTION on ROUTINE pulse.set_task')$$,
  'a right that was granted by name, and that no kind of the role has');
CREATE FUNCTION pg_temp.found_after(change text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  found text;
BEGIN
  EXECUTE change;
  found := (SELECT string_agg(o, ' ') FROM pg_temp.other_rights() AS o WHERE o !~ '^Role clerk');
  RAISE EXCEPTION 'undone' USING ERRCODE = 'ZZ002';
EXCEPTION WHEN SQLSTATE 'ZZ002' THEN
  RETURN found;
END $$;
SELECT is(pg_temp.found_after(c.change),
          'Role ' || c.role || ' has 1 rights that none of its grant_... gives, such as '
            || c.granted || '.', c.what)
  FROM (VALUES
    ('GRANT UPDATE ON pulse.job TO deputy', 'deputy', 'UPDATE on TABLE pulse.job', 'a table'),
    ('GRANT SELECT (payload) ON pulse.job TO deputy', 'deputy',
     'SELECT (payload) on TABLE pulse.job', 'a column'),
    ('GRANT USAGE ON SEQUENCE pulse.job_id_seq TO deputy', 'deputy',
     'USAGE on TABLE pulse.job_id_seq', 'a sequence'),
    ('GRANT USAGE ON SCHEMA pulse_internal TO PUBLIC', 'PUBLIC',
     'USAGE on SCHEMA pulse_internal', 'a schema, by PUBLIC'),
    ('GRANT USAGE ON TYPE pulse.job_spec TO deputy', 'deputy',
     'USAGE on TYPE pulse.job_spec', 'a type'),
    ('SELECT pulse.grant_producer(''deputy'');
      GRANT EXECUTE ON FUNCTION pulse.remove_job TO deputy WITH GRANT OPTION', 'deputy',
     'EXECUTE WITH GRANT OPTION on ROUTINE pulse.remove_job(text)',
     'a right of its kind that it may hand on')) AS c (change, role, granted, what);
SELECT is(pg_temp.found_after(c.change), NULL, c.what || ' is no finding') FROM (VALUES
  ('GRANT ALL ON pulse.job TO chief', 'a superuser'),
  (format('GRANT %I TO deputy; GRANT ALL ON pulse.job TO deputy', current_user),
   'a role that acts as the owner'),
  ('SELECT pulse.grant_operator(''anon''); GRANT anon TO deputy;
    GRANT SELECT ON pulse.job TO deputy',
   'a right of a kind whose role this one is a member of'),
  ('GRANT USAGE ON SCHEMA pulse TO deputy; GRANT EXECUTE ON FUNCTION pulse.tick TO deputy;
    GRANT EXECUTE ON PROCEDURE pulse.run_tick TO deputy', 'a role of a scheduler that ticks'))
  AS c (change, what);

-- --- what 0.1.0 left open ------------------------------------------------------------------------

DROP EXTENSION pg_pulse;
CREATE EXTENSION pg_pulse VERSION '0.1.0';
ALTER EXTENSION pg_pulse UPDATE;
SELECT matches((SELECT string_agg(o, ' ') FROM pg_temp.other_rights() AS o),
  '^Role anon has [0-9]{2,} rights that none', 'doctor() tells of what it opened by default');

SELECT * FROM finish();
ROLLBACK;
