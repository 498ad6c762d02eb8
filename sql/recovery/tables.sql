-- The tables that recovery needs. A sweep waits for no table: where a lock keeps a sweep from one
-- of these tables, the sweep returns at once. All other steps of a sweep come after recovery and
-- try their locks.

CREATE OR REPLACE FUNCTION pulse_internal.try_lock_tables(written text[], read text[] = '{}')
  RETURNS text
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_try_lock_tables';
COMMENT ON FUNCTION pulse_internal.try_lock_tables(text[], text[]) IS
  'Locks tables of schema pulse for changes, and others for reading, with their indexes, without '
  'waiting. Returns the first table that a lock of another transaction keeps from the call, which '
  'then holds no lock of these tables; NULL: the call holds all locks.';

CREATE OR REPLACE FUNCTION pulse_internal.note_blocked_sweep(is_blocked boolean) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_blocked_sweep';
COMMENT ON FUNCTION pulse_internal.note_blocked_sweep(boolean) IS
  'Counts a sweep that a lock of a table keeps from recovery; false: the sweep recovers.';

CREATE OR REPLACE FUNCTION pulse_internal.blocked_sweeps() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_blocked_sweeps';
COMMENT ON FUNCTION pulse_internal.blocked_sweeps() IS
  'Returns how many sweeps in a row, up to the last sweep, locks of tables have kept from '
  'recovery; NULL without shared memory.';

CREATE OR REPLACE VIEW pulse_internal.recovery_table AS
  SELECT v.name, v.is_written, v.only_for
    FROM (VALUES ('job', true, NULL), ('heartbeat', true, NULL), ('attempt', true, NULL),
                 ('finished_job', true, NULL), ('claim_batch', true, NULL),
                 ('clock', true, NULL), ('worker', true, NULL), ('task', false, NULL),
                 ('queue', false, 'pauses'), ('queue_pause', true, 'pauses'),
                 ('job_id_seq', true, 'letters'), ('installation', false, 'letters'),
                 ('installation_witness', false, 'letters'), ('id_gap', false, 'letters'),
                 ('id_place_seq', false, 'letters'))
         AS v (name, is_written, only_for);
COMMENT ON VIEW pulse_internal.recovery_table IS
  'The tables that recovery needs, and whether recovery writes them. only_for: NULL: all jobs; '
  'pauses: jobs whose end may pause their queue; letters: jobs whose end adds a dead letter.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_for_recovery() RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  locked text := (
    SELECT pulse_internal.try_lock_tables(array_agg(t.name) FILTER (WHERE t.is_written),
                                          array_agg(t.name) FILTER (WHERE NOT t.is_written))
      FROM pulse_internal.recovery_table AS t WHERE t.only_for IS NULL);
BEGIN
  PERFORM pulse_internal.note_blocked_sweep(locked IS NOT NULL);
  RETURN locked;
END $$;
COMMENT ON FUNCTION pulse_internal.lock_for_recovery() IS
  'Locks the tables that recovery needs without waiting. Returns the first table that another '
  'transaction keeps from the sweep, and counts the sweep as blocked; NULL: the sweep has all '
  'tables.';

CREATE OR REPLACE FUNCTION pulse_internal.try_lock_ids() RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (
    SELECT pulse_internal.try_lock_tables(array_agg(t.name) FILTER (WHERE t.is_written),
                                          array_agg(t.name) FILTER (WHERE NOT t.is_written))
           IS NULL
      FROM pulse_internal.recovery_table AS t WHERE t.only_for = 'letters');
END $$;
COMMENT ON FUNCTION pulse_internal.try_lock_ids() IS
  'Locks the tables that a sweep needs to give a new job an id, without waiting; returns whether.';

-- The locks that a sweep lacks may leave the tables to readers.
CREATE OR REPLACE FUNCTION pulse_internal.blocked_jobs() RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  live_us bigint;
BEGIN
  IF pulse_internal.try_lock_tables('{}', '{job,heartbeat,claim_batch,clock}') IS NOT NULL THEN
    RETURN 0;
  END IF;
  live_us := pulse_internal.live_now_us();
  RETURN coalesce((
    SELECT sum(cardinality(pulse_internal.running_ids(o.worker_id)))
      FROM (SELECT d FROM pulse_internal.dead_owners() AS d
            UNION
            SELECT h.worker_id FROM pulse.heartbeat AS h
             WHERE h.verdict NOT IN ('lost', 'stopped')
               AND pulse_internal.loss_cause(pulse_internal.see_session_end(h, live_us), live_us)
                     IS NOT NULL) AS o (worker_id)), 0);
END $$;
COMMENT ON FUNCTION pulse_internal.blocked_jobs() IS
  'Returns how many running jobs have lost their worker, for a sweep that recovers no job; 0 '
  'where the sweep cannot read the jobs.';

-- The virtual transaction of a prepared transaction is that of the session that prepared it, and
-- after a restart another.
CREATE OR REPLACE FUNCTION pulse_internal.prepared_gid(virtual_transaction text) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT p.gid FROM pg_locks AS l JOIN pg_prepared_xacts AS p
                   ON p.transaction = l.transactionid
           WHERE l.virtualtransaction = virtual_transaction LIMIT 1);
END $$;
COMMENT ON FUNCTION pulse_internal.prepared_gid(text) IS
  'Returns the name of the prepared transaction with this virtual transaction in pg_locks.';

-- The server names a prepared transaction as process 0.
CREATE OR REPLACE FUNCTION pulse_internal.named_blockers(pid int, relation oid) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  blockers int[] := pg_blocking_pids(pid);
BEGIN
  RETURN ' behind ' || nullif(concat_ws(', ',
    (SELECT string_agg('process ' || b, ', ') FROM unnest(array_remove(blockers, 0)) AS b),
    (SELECT string_agg(DISTINCT format('the prepared transaction %L',
                                       pulse_internal.prepared_gid(l.virtualtransaction)), ', ')
       FROM pg_locks AS l
      WHERE 0 = ANY (blockers) AND l.pid IS NULL AND l.relation = named_blockers.relation)), '');
END $$;
COMMENT ON FUNCTION pulse_internal.named_blockers(int, oid) IS
  'Returns for whom a process waits that awaits a lock on this table, as a part of a sentence; '
  'NULL for a process that awaits no lock.';

-- Awaited locks count: later sessions wait behind an awaited lock.
CREATE OR REPLACE VIEW pulse_internal.recovery_blocker AS
  SELECT t.name, t.only_for, l.mode, l.pid,
         CASE WHEN l.pid IS NULL
           THEN pg_catalog.format('The prepared transaction %L', p.gid)
           ELSE pg_catalog.format('Process %s%s%s', l.pid, ' of role ' || a.usename,
                                  ' in a transaction since ' || a.xact_start) END
           || CASE WHEN l.granted THEN ' has ' ELSE ' waits for ' END
           || pg_catalog.format('%s on %s', l.mode, l.relation::regclass)
           || CASE WHEN l.granted THEN ''
                ELSE coalesce(pulse_internal.named_blockers(l.pid, l.relation), '') END AS detail,
         CASE WHEN l.pid IS NULL THEN pg_catalog.format('ROLLBACK PREPARED %L', p.gid)
           ELSE pg_catalog.format('SELECT pg_terminate_backend(%s)', l.pid) END AS way_out
    FROM pulse_internal.recovery_table AS t
    JOIN pg_catalog.pg_class AS c
      ON c.relnamespace = 'pulse'::regnamespace AND c.relname = t.name
    JOIN pg_catalog.pg_locks AS l
      ON l.locktype = 'relation' AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
     AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d
                        WHERE d.datname = pg_catalog.current_database())
     AND (l.relation IN (c.oid, c.reltoastrelid)
          OR l.relation IN (SELECT i.indexrelid FROM pg_catalog.pg_index AS i
                             WHERE i.indrelid IN (c.oid, c.reltoastrelid)))
     AND l.mode = ANY (CASE WHEN t.is_written
           THEN '{ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'
           ELSE '{AccessExclusiveLock}' END::text[])
    LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
   CROSS JOIN LATERAL (
     SELECT CASE WHEN l.pid IS NULL
              THEN pulse_internal.prepared_gid(l.virtualtransaction) END AS gid) AS p;
COMMENT ON VIEW pulse_internal.recovery_blocker IS
  'Locks that keep sweeps from recovery, or from the jobs of only_for, and the processes that hold '
  'or await the locks.';
