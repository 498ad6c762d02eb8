-- Refuses to be sourced by hand: psql obeys this line, ALTER EXTENSION ignores it.
\echo Use "ALTER EXTENSION pg_pulse UPDATE TO '@VERSION@'" to load this file. \quit

-- The server puts the schema pulse first; this script must not call an object planted there.
SET LOCAL search_path = pg_catalog, pg_temp;

-- Functions of the new version need its library. An open session, or a server that preloads the
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

-- The update takes all locks first. It waits for each less than deadlock_timeout; if one is not
-- free, it releases all of them and pauses. So the update blocks users of the queue for moments
-- only, and never makes their transaction fail. lock_timeout limits the whole.
DO $$
DECLARE
  statements text[];
  statement text;
  limit_before text := current_setting('lock_timeout');
  patience interval := nullif(current_setting('lock_timeout'), '0')::interval;
  moment int;
  begun timestamptz := clock_timestamp();
BEGIN
  -- LOCK TABLE on a view would also lock the server's relations below it, so a view gets the owner
  -- that it has. Heartbeats come before jobs, as in most transactions: a heartbeat or claim locks
  -- its heartbeat row first, and a transaction that begins with jobs needs no heartbeat. In another
  -- order busy workers and the update would block each other again and again.
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
    -- The next round takes the two tables in the other order, for transactions that do so.
    statements := ARRAY[statements[2], statements[1]] || statements[3:];
  END LOOP;
  PERFORM set_config('lock_timeout', limit_before, true);
END $$;
