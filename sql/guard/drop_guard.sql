-- DROP EXTENSION deletes every job, so the guard refuses the statement while there are live jobs. A
-- hook of the library refuses the statement (extension/install/drop_guard.cpp); the event trigger
-- loads the library into a session that is about to drop an object, and locks the tables.

-- Each wait for a lock is shorter than deadlock_timeout; after a wait that fails, the session
-- releases all locks for a while. So sessions that use the queue wait for moments only, and no
-- transaction becomes a deadlock victim. lock_timeout limits the total time. Autovacuum yields, as
-- it does to every longer wait: to prevent a wraparound only where autovacuum waits for this very
-- transaction.
CREATE OR REPLACE FUNCTION pulse_internal.lock_tables() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  tables text[];
  patience_ms int;
  total text := current_setting('lock_timeout');
  begun timestamptz := clock_timestamp();
BEGIN
  -- A heartbeat or a claim locks pulse.heartbeat before pulse.job. In the opposite order, busy
  -- workers and DROP EXTENSION would block each other repeatedly.
  SELECT array_agg(c.oid::regclass ORDER BY array_position('{job,heartbeat}', c.relname::text) DESC
                   NULLS LAST, c.oid) INTO tables
    FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid
   WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'e' AND c.relkind = 'r'
     AND d.refclassid = 'pg_extension'::regclass
     AND d.refobjid = (SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'pg_pulse');
  SELECT greatest(1, least(100, s.setting::int / 2)) INTO patience_ms
    FROM pg_settings AS s WHERE s.name = 'deadlock_timeout';
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', patience_ms::text, true);
      EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', array_to_string(tables, ', '));
      EXIT;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() > begun + nullif(total, '0')::interval THEN
        RAISE EXCEPTION 'the tables of pg_pulse are in use' USING
          ERRCODE = '55P03', HINT = 'Try again, or raise lock_timeout.';
      END IF;
    END;
    PERFORM pg_stat_clear_snapshot();
    PERFORM pg_cancel_backend(a.pid) FROM pg_stat_activity AS a
      WHERE a.backend_type = 'autovacuum worker' AND a.datname = current_database()
        AND EXISTS (SELECT FROM pg_locks AS l
                     WHERE l.pid = a.pid AND l.granted AND l.relation = ANY (tables::regclass[]))
        AND (a.query NOT LIKE '%to prevent wraparound%'
             OR pg_backend_pid() = ANY (pg_blocking_pids(a.pid)));
    PERFORM pg_sleep(0.1);
    -- The next attempt suits a transaction that locks the first two in the other order.
    tables := ARRAY[tables[2], tables[1]] || tables[3:];
  END LOOP;
  PERFORM set_config('lock_timeout', total, true);
END $$;
COMMENT ON FUNCTION pulse_internal.lock_tables() IS
  'Locks all tables of the extension for DROP EXTENSION, or no table.';

CREATE OR REPLACE FUNCTION pulse_internal.refuse_unguarded(statement text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  is_allowed text := coalesce(current_setting('pulse.allow_drop', true), '');
BEGIN
  IF statement ~* E'\\m(pulse|pg_pulse)\\M' AND is_allowed NOT IN ('on', 'true', 'yes', '1')
     AND EXISTS (SELECT FROM pulse.job) THEN
    RAISE EXCEPTION 'live jobs would be deleted' USING
      ERRCODE = 'PU009', DETAIL = 'The library of pg_pulse is missing, so no job can end.',
      HINT = 'Install it again. To delete all jobs: SET pulse.allow_drop = on, then drop again.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.refuse_unguarded(text) IS
  'Raises PU009 without the library: for a statement that names pg_pulse or its schema while there '
  'are live jobs, unless pulse.allow_drop is on.';

-- The event trigger fires for every role and for every schema, also where the library is missing.
-- So the trigger has the rights of the owner, and a missing library keeps no role from dropping its
-- objects.
CREATE OR REPLACE FUNCTION pulse_internal.guard_drop() RETURNS event_trigger
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  context text;
  statement text;
BEGIN
  -- The client's statement, and the statement of a function that it calls. The first line of the
  -- context names this function.
  GET DIAGNOSTICS context = PG_CONTEXT;
  statement := concat(current_query(), substr(context, strpos(context || E'\n', E'\n')));
  BEGIN
    PERFORM pulse.version();  -- loads the library
  EXCEPTION WHEN undefined_file THEN
    PERFORM pulse_internal.refuse_unguarded(statement);
    RETURN;
  END;
  -- DROP EXTENSION locks table by table and could deadlock with workers, so all tables are locked
  -- first. A role that may not drop the extension locks nothing.
  IF tg_tag = 'DROP EXTENSION' AND statement ~* E'\\mpg_pulse\\M'
     AND pg_has_role(pulse_internal.caller(), (SELECT e.extowner FROM pg_extension AS e
                                        WHERE e.extname = 'pg_pulse'), 'USAGE') THEN
    PERFORM pulse_internal.lock_tables();
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.guard_drop() IS
  'Loads the library, which refuses to drop live jobs (PU009) while pulse.allow_drop is off, and '
  'locks all tables for DROP EXTENSION pg_pulse.';

-- There is no CREATE OR REPLACE for an event trigger. One of this name that does not belong to the
-- extension is an error.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger AS t
                   JOIN pg_catalog.pg_depend AS d ON d.objid = t.oid AND d.deptype = 'e'
                  WHERE t.evtname = 'pg_pulse_guard_drop'
                    AND d.classid = 'pg_catalog.pg_event_trigger'::regclass) THEN
    CREATE EVENT TRIGGER pg_pulse_guard_drop ON ddl_command_start
      WHEN TAG IN ('DROP EXTENSION', 'DROP SCHEMA', 'DROP OWNED')
      EXECUTE FUNCTION pulse_internal.guard_drop();
  END IF;
END $$;
COMMENT ON EVENT TRIGGER pg_pulse_guard_drop IS
  'Refuses DROP EXTENSION pg_pulse while there are live jobs.';
