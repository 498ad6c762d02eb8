-- A script gives rights to no role but the owner: neither to PUBLIC, by the defaults of the server,
-- nor to roles that ALTER DEFAULT PRIVILEGES names. The function changes only objects that the
-- script has created, so grants of an administrator on older objects stay. A REVOKE records all
-- grants of an object as initial grants, which pg_dump leaves out; on older objects an update would
-- so lose users' grants from dumps. Row types of tables keep the right of PUBLIC: functions of
-- applications return row types, and a role without the right to the schema cannot name the types.

CREATE OR REPLACE FUNCTION pulse_internal.close_new_objects(extension text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  object record;
BEGIN
  FOR object IN
    WITH member AS (
      SELECT d.classid, d.objid FROM pg_depend AS d
       WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
         AND d.refobjid = (SELECT e.oid FROM pg_extension AS e
                            WHERE e.extname = close_new_objects.extension)
         AND NOT EXISTS (SELECT FROM pg_init_privs AS i
                          WHERE i.classoid = d.classid AND i.objoid = d.objid AND i.objsubid = 0)
    ), closable (kind, name, owner, acl) AS (
      SELECT 'ROUTINE', p.oid::regprocedure::text, p.proowner, p.proacl
        FROM member AS m JOIN pg_proc AS p ON p.oid = m.objid AND m.classid = 'pg_proc'::regclass
      UNION ALL
      SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass::text,
             c.relowner, c.relacl
        FROM member AS m JOIN pg_class AS c ON c.oid = m.objid AND m.classid = 'pg_class'::regclass
       WHERE c.relkind IN ('r', 'v', 'S')
      UNION ALL
      SELECT 'TYPE', t.oid::regtype::text, t.typowner, t.typacl
        FROM member AS m JOIN pg_type AS t ON t.oid = m.objid AND m.classid = 'pg_type'::regclass
        LEFT JOIN pg_class AS c ON c.oid = t.typrelid
       WHERE coalesce(c.relkind, 'c') = 'c'
         AND NOT EXISTS (SELECT FROM pg_type AS element WHERE element.typarray = t.oid)
      UNION ALL
      SELECT 'SCHEMA', n.oid::regnamespace::text, n.nspowner, n.nspacl
        FROM member AS m
        JOIN pg_namespace AS n ON n.oid = m.objid AND m.classid = 'pg_namespace'::regclass
    )
    SELECT c.kind, c.name,
           (SELECT string_agg(DISTINCT a.grantee::regrole::text, ', ') FROM aclexplode(c.acl) AS a
             WHERE a.grantee NOT IN (0::oid, c.owner)) AS grantees
      FROM closable AS c
  LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', object.kind, object.name,
                   concat_ws(', ', 'PUBLIC', object.grantees));
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.close_new_objects(text) IS
  'Takes all rights on the objects that the script of an extension has created from all roles but '
  'the owner.';

SELECT pulse_internal.close_new_objects('pg_pulse');
