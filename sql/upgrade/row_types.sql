-- The server writes no table anew whose rows are values of a column somewhere, changes no type that
-- is the shape of a table, and drops no view whose rows are in use. Where an application has made
-- such use of a type, the update ends here, before it locks tables that workers use. The lists are
-- those of this update; an update that changes other types names them
-- (test/pgtap/upgrade_row_types.sql tries all).
DO $$
DECLARE
  rewritten text[] := '{job,queue,task}';
  reshaped text[] := '{claimed_job,_ending}';
  dropped text[] := '{_broken_p8,_queue_places}';
  users text[];
BEGIN
  WITH RECURSIVE holding (type) AS (
    SELECT c.reltype FROM pg_class AS c
     WHERE c.relnamespace = 'pulse'::regnamespace AND c.relname = ANY (rewritten)
    UNION
    SELECT wider.type FROM holding AS h, LATERAL (
      SELECT t.typarray FROM pg_type AS t WHERE t.oid = h.type AND t.typarray <> 0::oid
      UNION ALL
      SELECT d.oid FROM pg_type AS d WHERE d.typbasetype = h.type
      UNION ALL
      SELECT r.rngtypid FROM pg_range AS r WHERE r.rngsubtype = h.type
      UNION ALL
      SELECT r.rngmultitypid FROM pg_range AS r WHERE r.rngsubtype = h.type
      UNION ALL
      -- Composite types, views and foreign tables store nothing; columns may be of their rows.
      SELECT c.reltype FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
       WHERE a.atttypid = h.type AND c.relkind IN ('c', 'v', 'f')) AS wider (type)
  )
  SELECT array_agg(u.name ORDER BY u.name) INTO users FROM (
    SELECT pg_describe_object('pg_class'::regclass, a.attrelid, a.attnum) AS name
      FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
     WHERE a.atttypid IN (SELECT h.type FROM holding AS h) AND c.relkind NOT IN ('c', 'v', 'f')
    UNION ALL
    SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) FROM pg_class AS c
     WHERE c.reloftype IN (SELECT t.reltype FROM pg_class AS t
                            WHERE t.relnamespace = 'pulse'::regnamespace
                              AND t.relname = ANY (reshaped))
    UNION ALL
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
      FROM pg_class AS v JOIN pg_type AS t ON t.oid = v.reltype
      JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.deptype = 'n'
       AND d.refobjid IN (t.oid, t.typarray)
     WHERE v.relnamespace = 'pulse'::regnamespace AND v.relname = ANY (dropped)) AS u;
  IF users IS NOT NULL THEN
    RAISE EXCEPTION '% uses a row type that the update changes', users[1] USING
      ERRCODE = 'dependent_objects_still_exist',
      DETAIL = CASE WHEN cardinality(users) > 1
                 THEN format('There are %s: %s.', cardinality(users),
                             array_to_string(users[1:20], ', '))
                 ELSE 'Nothing has been changed.' END,
      HINT = 'ALTER TABLE ... ALTER COLUMN ... TYPE json USING to_json(...) keeps the values of a '
             'column. Drop a materialized view, an index or a typed table (ALTER TABLE ... NOT '
             'OF), and make it anew afterwards.';
  END IF;
END $$;
