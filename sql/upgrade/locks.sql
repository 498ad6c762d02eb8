-- The update takes all locks first. The update waits for each lock less than deadlock_timeout; if a
-- lock is not free, the update releases all locks and pauses. So the update blocks users of the
-- queue for moments only, and never makes their transaction fail. lock_timeout limits the whole.
-- Autovacuum yields, as it does to every longer wait: to prevent a wraparound only where autovacuum
-- waits for this session.
DO $$
DECLARE
  statements text[];
  statement text;
  limit_before text := current_setting('lock_timeout');
  patience interval := nullif(current_setting('lock_timeout'), '0')::interval;
  moment int;
  begun timestamptz := clock_timestamp();
BEGIN
  -- LOCK TABLE on a view would also lock the server's relations below the view, so a view gets the
  -- present owner again. Heartbeats come before jobs, as in most transactions: a heartbeat or claim
  -- locks the heartbeat row first, and a transaction that begins with jobs needs no heartbeat. In
  -- another order busy workers and the update would block each other again and again.
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
    PERFORM pg_stat_clear_snapshot();
    PERFORM pg_cancel_backend(a.pid) FROM pg_stat_activity AS a
      WHERE a.backend_type = 'autovacuum worker' AND a.datname = current_database()
        AND EXISTS (SELECT FROM pg_locks AS l JOIN pg_depend AS d ON d.objid = l.relation
                      JOIN pg_extension AS e ON e.oid = d.refobjid
                     WHERE l.pid = a.pid AND l.granted AND e.extname = 'pg_pulse'
                       AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
        AND (a.query NOT LIKE '%to prevent wraparound%'
             OR pg_backend_pid() = ANY (pg_blocking_pids(a.pid)));
    PERFORM pg_sleep(0.2);
    -- The next iteration takes the two tables in the other order, for transactions that do so.
    statements := ARRAY[statements[2], statements[1]] || statements[3:];
  END LOOP;
  PERFORM set_config('lock_timeout', limit_before, true);
END $$;
