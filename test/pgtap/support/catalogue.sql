-- Everything that the server's catalogues say of the extension, one line for each fact, in words
-- that do not depend on object ids.

CREATE FUNCTION pg_temp.members() RETURNS TABLE (class oid, id oid, name text)
  LANGUAGE sql AS $$
  SELECT d.classid, d.objid, o.type || ' ' || o.identity
    FROM pg_depend AS d, pg_identify_object(d.classid, d.objid, 0) AS o
   WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
     AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_pulse')
$$;

CREATE FUNCTION pg_temp.rows_in(tablename regclass) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  counted bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM %s', tablename) INTO counted;
  RETURN counted;
END $$;

CREATE FUNCTION pg_temp.relation_facts() RETURNS TABLE (name text, fact text)
  LANGUAGE sql AS $$
  WITH relation AS (
    SELECT m.name, c.* FROM pg_temp.members() AS m JOIN pg_class AS c ON c.oid = m.id
     WHERE m.class = 'pg_class'::regclass)
  SELECT r.name, concat_ws('|', r.relkind, r.relpersistence, r.reloptions, r.relacl,
                           r.relrowsecurity, r.relforcerowsecurity, r.relreplident,
                           r.relowner::regrole)
    FROM relation AS r
  UNION ALL
  SELECT r.name, concat_ws('|', 'column', row_number() OVER (PARTITION BY r.oid ORDER BY a.attnum),
                           a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                           a.attcollation::regcollation, a.attstorage, a.attacl,
                           -- The server's own bookkeeping of when the column was made.
                           (SELECT array_agg(o) FROM unnest(a.attoptions) AS o
                             WHERE o NOT LIKE 'pg_attver=%'),
                           pg_get_expr(d.adbin, d.adrelid), col_description(r.oid, a.attnum))
    FROM relation AS r
    JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef AS d ON d.adrelid = r.oid AND d.adnum = a.attnum
  UNION ALL
  SELECT r.name, concat_ws('|', pg_get_indexdef(i.indexrelid), c.reloptions, i.indisunique,
                           obj_description(i.indexrelid, 'pg_class'))
    FROM relation AS r JOIN pg_index AS i ON i.indrelid = r.oid
    JOIN pg_class AS c ON c.oid = i.indexrelid
  UNION ALL
  SELECT r.name, concat_ws('|', c.conname, pg_get_constraintdef(c.oid), c.convalidated)
    FROM relation AS r JOIN pg_constraint AS c ON c.conrelid = r.oid
  UNION ALL
  SELECT r.name, concat_ws('|', pg_get_triggerdef(t.oid), t.tgenabled)
    FROM relation AS r JOIN pg_trigger AS t ON t.tgrelid = r.oid
  UNION ALL
  SELECT r.name, pg_get_viewdef(r.oid) FROM relation AS r WHERE r.relkind = 'v'
  UNION ALL
  SELECT r.name, concat_ws('|', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
                           s.seqcache, s.seqcycle)
    FROM relation AS r JOIN pg_sequence AS s ON s.seqrelid = r.oid
  UNION ALL
  SELECT r.name, concat_ws(' ', pg_temp.rows_in(r.oid), 'rows') FROM relation AS r
   WHERE r.relkind = 'r'
$$;

CREATE FUNCTION pg_temp.other_facts() RETURNS TABLE (name text, fact text)
  LANGUAGE sql AS $$
  SELECT m.name, concat_ws('|', CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid) END,
                           p.proacl, p.proowner::regrole)
    FROM pg_temp.members() AS m JOIN pg_proc AS p ON p.oid = m.id
   WHERE m.class = 'pg_proc'::regclass
  UNION ALL
  SELECT m.name, concat_ws('|', t.typtype, t.typacl,
                           (SELECT string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder)
                              FROM pg_enum AS e WHERE e.enumtypid = t.oid),
                           (SELECT string_agg(concat_ws(' ', a.attname,
                                              format_type(a.atttypid, a.atttypmod)), ','
                                              ORDER BY a.attnum)
                              FROM pg_attribute AS a
                             WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped))
    FROM pg_temp.members() AS m JOIN pg_type AS t ON t.oid = m.id
   WHERE m.class = 'pg_type'::regclass
  UNION ALL
  SELECT m.name, concat_ws('|', e.evtevent, e.evtfoid::regprocedure, e.evtenabled, e.evttags)
    FROM pg_temp.members() AS m JOIN pg_event_trigger AS e ON e.oid = m.id
   WHERE m.class = 'pg_event_trigger'::regclass
  UNION ALL
  SELECT m.name, concat_ws('|', 'initially', i.objsubid, i.privtype, i.initprivs)
    FROM pg_temp.members() AS m
    JOIN pg_init_privs AS i ON i.classoid = m.class AND i.objoid = m.id
  UNION ALL
  SELECT 'extension', concat_ws('|', e.extversion, e.extrelocatable, e.extnamespace::regnamespace)
    FROM pg_extension AS e WHERE e.extname = 'pg_pulse'
  UNION ALL
  SELECT 'extension', concat_ws('|', 'dumped', c.id::regclass, c.condition)
    FROM pg_extension AS e, unnest(e.extconfig, e.extcondition) AS c(id, condition)
   WHERE e.extname = 'pg_pulse'
$$;

CREATE FUNCTION pg_temp.catalogue() RETURNS TABLE (name text, fact text)
  LANGUAGE sql AS $$
  SELECT m.name, 'comment|' || coalesce(obj_description(m.id, m.class::regclass::name), 'none')
    FROM pg_temp.members() AS m
  UNION ALL
  SELECT f.name, f.fact FROM pg_temp.relation_facts() AS f
  UNION ALL
  SELECT f.name, f.fact FROM pg_temp.other_facts() AS f
$$;
