-- Refuses to be sourced by hand: psql obeys the next line, CREATE EXTENSION ignores the line.
\echo Use "CREATE EXTENSION pg_pulse" to load this file. \quit

-- The server puts the schema pulse first; this script must not call an object planted there.
SET LOCAL search_path = pg_catalog, pg_temp;

-- The schema that CREATE EXTENSION makes has the rights that default privileges grant on new
-- schemas. A schema that the same transaction had made before cannot be told apart, and may lose
-- the same rights. The remaining rights are no initial rights of the extension, because the schema
-- is no member of it.
DO $$
DECLARE
  given record;
BEGIN
  FOR given IN
    SELECT a.privilege_type,
           string_agg(CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
             AS grantees
      FROM pg_namespace AS n
      JOIN pg_extension AS e ON e.extname = 'pg_pulse' AND e.xmin = n.xmin
      JOIN pg_default_acl AS d ON d.defaclrole = n.nspowner AND d.defaclobjtype = 'n'
       AND d.defaclnamespace = 0::oid,
           aclexplode(d.defaclacl) AS a
     WHERE n.nspname = 'pulse' AND a.grantee <> n.nspowner
     GROUP BY a.privilege_type
  LOOP
    EXECUTE format('REVOKE %s ON SCHEMA pulse FROM %s CASCADE', given.privilege_type,
                   given.grantees);
    DELETE FROM pg_init_privs AS i
     WHERE i.classoid = 'pg_namespace'::regclass AND i.objoid = 'pulse'::regnamespace;
  END LOOP;
END $$;

-- A schema of this name may exist already. Its owner, and every role that may create in it, could
-- add functions that then run with the rights of the extension's owner.
DO $$
DECLARE
  home pg_namespace;
  planted text;
BEGIN
  SELECT * INTO home FROM pg_namespace AS n WHERE n.nspname = 'pulse';
  IF NOT EXISTS (SELECT FROM pg_roles AS r
                  WHERE r.oid = home.nspowner AND (r.rolsuper OR r.rolname = current_user)) THEN
    RAISE EXCEPTION 'schema pulse belongs to role %', home.nspowner::regrole USING
      ERRCODE = 'insufficient_privilege',
      HINT = 'ALTER SCHEMA pulse OWNER TO the role that creates the extension, or drop it.';
  ELSIF EXISTS (SELECT FROM aclexplode(home.nspacl) AS a
                 WHERE a.privilege_type = 'CREATE' AND a.grantee <> home.nspowner) THEN
    RAISE EXCEPTION 'schema pulse lets roles besides its owner create objects' USING
      ERRCODE = 'insufficient_privilege',
      HINT = E'REVOKE CREATE ON SCHEMA pulse FROM those roles; \\dn+ pulse lists them.';
  END IF;
  SELECT pg_describe_object(d.classid, d.objid, d.objsubid) INTO planted FROM pg_depend AS d
   WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = home.oid
     AND d.classid NOT IN ('pg_extension'::regclass, 'pg_default_acl'::regclass)
   LIMIT 1;
  IF planted IS NOT NULL THEN
    RAISE EXCEPTION 'schema pulse is not empty' USING
      ERRCODE = 'object_not_in_prerequisite_state', DETAIL = format('It holds %s.', planted),
      HINT = 'Drop or move what is there.';
  END IF;
END $$;

-- Functions and relations that no program calls. The schema belongs to the extension, so an older
-- schema of this name is an error.
CREATE SCHEMA pulse_internal;
COMMENT ON SCHEMA pulse_internal IS
  'Functions and relations of pg_pulse''s own: no program calls the functions, and any version '
  'may change the schema.';

-- The script asks which library the server has loaded before the script needs the library.
CREATE FUNCTION pulse.version() RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_version';
