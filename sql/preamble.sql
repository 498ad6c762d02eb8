-- Refuses to be sourced by hand: psql obeys this line, CREATE EXTENSION ignores it.
\echo Use "CREATE EXTENSION pg_pulse" to load this file. \quit

-- The server puts the schema pulse first; nobody's objects there shall serve this script.
SET LOCAL search_path = pg_catalog, pg_temp;

-- A schema of this name may have been there before. Its owner, and whoever may create in it, could
-- put functions beside ours that then run with the rights of the owner of ours.
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
    RAISE EXCEPTION 'others than its owner may create objects in schema pulse' USING
      ERRCODE = 'insufficient_privilege',
      HINT = 'REVOKE CREATE ON SCHEMA pulse from them; \dn+ pulse shows who they are.';
  END IF;
  SELECT pg_describe_object(d.classid, d.objid, d.objsubid) INTO planted FROM pg_depend AS d
   WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = home.oid
     AND d.classid <> 'pg_extension'::regclass
   LIMIT 1;
  IF planted IS NOT NULL THEN
    RAISE EXCEPTION 'schema pulse is not empty' USING
      ERRCODE = 'object_not_in_prerequisite_state', DETAIL = format('It holds %s.', planted),
      HINT = 'Drop or move what is there.';
  END IF;
END $$;
