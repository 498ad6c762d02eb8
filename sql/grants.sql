-- PUBLIC has no right, neither by this script nor by the defaults of the server. Only objects that
-- this script has created are touched. A REVOKE records all grants of an object as initial ones,
-- which pg_dump leaves out; on older objects an upgrade would so lose users' grants from dumps.

DO $$
DECLARE
  object record;
BEGIN
  FOR object IN
    WITH members AS (
      SELECT d.classid, d.objid FROM pg_depend AS d
       WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
         AND d.refobjid = (SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'pg_pulse')
         AND NOT EXISTS (SELECT FROM pg_init_privs AS i
                          WHERE i.classoid = d.classid AND i.objoid = d.objid AND i.objsubid = 0))
    SELECT 'ROUTINE' AS kind, p.oid::regprocedure::text AS name
      FROM members AS m JOIN pg_proc AS p ON p.oid = m.objid AND m.classid = 'pg_proc'::regclass
    UNION ALL
    SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass::text
      FROM members AS m JOIN pg_class AS c ON c.oid = m.objid AND m.classid = 'pg_class'::regclass
     WHERE c.relkind IN ('r', 'v', 'S')
    UNION ALL
    SELECT 'TYPE', t.oid::regtype::text
      FROM members AS m JOIN pg_type AS t ON t.oid = m.objid AND m.classid = 'pg_type'::regclass
      LEFT JOIN pg_class AS c ON c.oid = t.typrelid
     WHERE coalesce(c.relkind, 'c') = 'c'
       AND NOT EXISTS (SELECT FROM pg_type AS element WHERE element.typarray = t.oid)
  LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM PUBLIC', object.kind, object.name);
  END LOOP;
END $$;
