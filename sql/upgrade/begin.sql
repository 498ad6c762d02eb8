-- Refuses to be sourced by hand: psql obeys this line, ALTER EXTENSION ignores it.
\echo Use "ALTER EXTENSION pg_pulse UPDATE TO '@VERSION@'" to load this file. \quit

-- The server puts the schema pulse first; nobody's objects there shall serve this script.
SET LOCAL search_path = pg_catalog, pg_temp;

-- Functions of the new version need its library; an open session, or a server that preloaded the
-- library and was not restarted, still has the old one.
DO $$
BEGIN
  IF string_to_array(pulse.version(), '.')::int[] < string_to_array('@VERSION@', '.')::int[] THEN
    RAISE EXCEPTION 'the library of pg_pulse that this session has loaded is too old' USING
      ERRCODE = '55000',
      DETAIL = format('It is version %s; the update is to @VERSION@.', pulse.version()),
      HINT = 'Install the new files. Then restart the server if it preloads pg_pulse, else connect '
             'anew.';
  END IF;
END $$;

-- All locks first. Each is waited for shorter than anybody looks for deadlocks, and when one is not
-- to be had all are given up for a while: whoever uses the queue is held up for moments only, and
-- no transaction is a victim of the update. lock_timeout limits the whole of it.
DO $$
DECLARE
  statements text[];
  statement text;
  limit_before text := current_setting('lock_timeout');
  patience interval := nullif(current_setting('lock_timeout'), '0')::interval;
  moment int;
  begun timestamptz := clock_timestamp();
BEGIN
  -- LOCK TABLE of a view would go on to the server's own relations below it; the owner stays. The
  -- order is that of the most frequent transactions: a beat or a claim has its heartbeat when it
  -- comes to the jobs, and whoever begins with the jobs needs no heartbeat. In another order busy
  -- workers and the update would stand in each other's way again and again.
  SELECT array_agg(CASE c.relkind
                     WHEN 'v' THEN format('ALTER VIEW %s OWNER TO %I', c.oid::regclass,
                                          pg_get_userbyid(c.relowner))
                     ELSE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', c.oid::regclass) END
                   ORDER BY array_position('{job,heartbeat}', c.relname::text) DESC NULLS LAST,
                            c.oid) INTO statements
    FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid
   WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'e' AND c.relkind IN ('r', 'v')
     AND d.refclassid = 'pg_extension'::regclass
     AND d.refobjid = (SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'pg_pulse');
  SELECT greatest(1, least(100, s.setting::int / 2)) INTO moment
    FROM pg_settings AS s WHERE s.name = 'deadlock_timeout';
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', moment::text, true);
      FOREACH statement IN ARRAY statements LOOP
        EXECUTE statement;
      END LOOP;
      EXIT;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() > begun + patience THEN
        RAISE;
      END IF;
    END;
    PERFORM pg_sleep(0.2);
    -- Whoever uses both tables in the other order in one transaction is let through the next time.
    statements := ARRAY[statements[2], statements[1]] || statements[3:];
  END LOOP;
  PERFORM set_config('lock_timeout', limit_before, true);
END $$;
