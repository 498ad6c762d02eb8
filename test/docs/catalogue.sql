-- What docs/functions.md and docs/settings.md are written from: one line of JSON. A role of each
-- kind is made, asked what it may use, and forgotten with the transaction.
\set QUIET on
LOAD 'pg_pulse';
SET client_min_messages = warning;
BEGIN;
DO $$
DECLARE
  grantor name;
BEGIN
  FOR grantor IN
    SELECT p.proname FROM pg_proc AS p
     WHERE p.pronamespace = 'pulse'::regnamespace AND p.proname LIKE 'grant\_%'
  LOOP
    EXECUTE format('CREATE ROLE %I', replace(grantor, 'grant_', 'documented_'));
    EXECUTE format('SELECT pulse.%I(%L)', grantor, replace(grantor, 'grant_', 'documented_'));
  END LOOP;
END $$;

CREATE TEMP VIEW kind AS
SELECT r.oid AS role, replace(r.rolname, 'documented_', '') AS name
  FROM pg_roles AS r WHERE r.rolname LIKE 'documented\_%';

CREATE TEMP VIEW function AS
SELECT p.proname AS name, p.oid::regprocedure::text AS signature, p.prokind = 'p' AS is_procedure,
       p.prosecdef AS runs_as_owner, obj_description(p.oid, 'pg_proc') AS comment,
       pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result,
       (SELECT json_agg(k.name ORDER BY k.name) FROM kind AS k
         WHERE has_function_privilege(k.role, p.oid, 'EXECUTE')) AS granted
  FROM pg_proc AS p
 WHERE p.pronamespace = 'pulse'::regnamespace;

CREATE TEMP VIEW relation AS
SELECT c.relname AS name, c.relkind AS kind, obj_description(c.oid, 'pg_class') AS comment,
       (SELECT json_agg(k.name ORDER BY k.name) FROM kind AS k
         WHERE has_table_privilege(k.role, c.oid, 'SELECT')) AS granted,
       (SELECT json_agg(json_build_object(
                 'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
                 'comment', col_description(c.oid, a.attnum)) ORDER BY a.attnum)
          FROM pg_attribute AS a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
  FROM pg_class AS c
 WHERE c.relnamespace = 'pulse'::regnamespace AND c.relkind IN ('r', 'v');

CREATE TEMP VIEW type AS
SELECT t.typname AS name, obj_description(t.oid, 'pg_type') AS comment,
       (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum AS e
         WHERE e.enumtypid = t.oid) AS labels,
       (SELECT json_agg(json_build_object(
                 'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
                 'comment', col_description(c.oid, a.attnum)) ORDER BY a.attnum)
          FROM pg_attribute AS a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
  FROM pg_type AS t LEFT JOIN pg_class AS c ON c.oid = t.typrelid
 WHERE t.typnamespace = 'pulse'::regnamespace
   AND (t.typtype = 'e' OR c.relkind = 'c');

CREATE TEMP VIEW setting AS
SELECT s.name, s.unit, s.context, s.vartype, s.min_val, s.max_val, s.enumvals,
       coalesce(s.boot_val, '') AS boot_val, s.short_desc, s.extra_desc
  FROM pg_settings AS s WHERE s.name LIKE 'pulse.%';

SELECT json_build_object(
  'functions', (SELECT json_agg(f ORDER BY f.name COLLATE "C", f.signature) FROM function AS f),
  -- What no kind of role may read is the extension's own.
  'relations', (SELECT json_agg(r ORDER BY r.name COLLATE "C") FROM relation AS r
                 WHERE r.granted IS NOT NULL),
  'types', (SELECT json_agg(t ORDER BY t.name COLLATE "C") FROM type AS t),
  'settings', (SELECT json_agg(s ORDER BY s.name COLLATE "C") FROM setting AS s));
ROLLBACK;
