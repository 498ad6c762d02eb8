-- The sweep finds lost workers and recovers their jobs. Any number of sweeps may run at once: every
-- step locks rows for a change without waiting, and judges again on the locked row. Lock order:
-- heartbeat row, worker lock, job rows by id, job keys. Sweeps come from the background worker,
-- every pulse-worker, a waiter that wait_for_job asks, and operators.

-- A sweep is short, because its transaction locks rows, and because it ticks the clock. It ends its
-- work at this time, but never before it has done some work.
CREATE OR REPLACE FUNCTION pulse_internal.sweep_end() RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  longest_us CONSTANT bigint := 250000;
BEGIN
  RETURN clock_timestamp() + pulse_internal.interval(least(longest_us, (
    SELECT min(h.interval_us) / 4 FROM pulse.heartbeat AS h
     WHERE h.interval_us > 0 AND h.verdict NOT IN ('lost', 'stopped'))));
END $$;
COMMENT ON FUNCTION pulse_internal.sweep_end() IS
  'Returns when a sweep that begins now ends: after 250 ms, or a quarter of the shortest '
  'heartbeat_interval of a living worker.';

-- The default belongs to the claim: the role that sweeps may have another default.
--
-- A worker that says how long it takes to kill a task ends the task at its limit. For jobs of such
-- a worker the sweep judges the limit at the last heartbeat, minus the time to kill: the worker has
-- lived beyond the limit, so the task is dead, and no successor in the job's queue runs beside it.
-- If the worker does not beat, its silence decides. A worker does not count time in which
-- heartbeats are late, so sweeps leave jobs that must run alone to the worker for a threshold more.
-- The worker knows a limit that was changed after the claim within two heartbeats; before, the
-- changed limit does not hold.
CREATE OR REPLACE VIEW pulse_internal.limits AS
  SELECT j.id, j.token, j.identifier, j.worker_id, j.claimed_at, j.claimed_live_us,
         j.activity_live_us, t.stall_timeout,
         coalesce(t.timeout, pulse_internal.interval(h.default_timeout_us)) AS timeout,
         CASE WHEN t.updated_at > j.claimed_at AND h.last_heartbeat_at < t.updated_at
                   + pulse_internal.interval(2 * h.interval_us) + w.kill_grace
           THEN j.claimed_live_us
           ELSE h.beat_live_us - pulse_internal.us(w.kill_grace)
                - CASE t.on_unreachable WHEN 'kill' THEN h.threshold_us ELSE 0 END
           END AS killed_live_us
    FROM pulse.job AS j
    LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
    LEFT JOIN pulse.heartbeat AS h ON h.worker_id = j.worker_id
    LEFT JOIN pulse.worker AS w ON w.id = j.worker_id
   WHERE j.id = ANY (pulse_internal.running_ids(NULL));
COMMENT ON VIEW pulse_internal.limits IS
  'Running jobs with their timeout and stall_timeout, NULL: none. killed_live_us: the worker has '
  'killed tasks whose limit came before this moment; NULL where no worker promises to kill tasks.';

-- The timeout counts from the claim, the stall_timeout from the last progress report.
CREATE OR REPLACE FUNCTION pulse_internal.late(live_us bigint)
  RETURNS TABLE (id bigint, token bigint, outcome text, error text, cause text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT l.id, l.token, c.outcome,
         CASE c.outcome WHEN 'timed_out'
           THEN format('timed out after %s', l.timeout)
           ELSE format('no progress for %s', l.stall_timeout) END,
         CASE c.outcome WHEN 'timed_out' THEN 'timeout' ELSE 'stall' END
    FROM pulse_internal.limits AS l
    CROSS JOIN LATERAL (SELECT coalesce(l.killed_live_us, live_us)) AS s (seen_us)
    CROSS JOIN LATERAL (SELECT CASE
      WHEN s.seen_us - l.claimed_live_us > pulse_internal.us(l.timeout) THEN 'timed_out'
      WHEN s.seen_us - l.activity_live_us > pulse_internal.us(l.stall_timeout) THEN 'stalled' END
    ) AS c (outcome)
   WHERE c.outcome IS NOT NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.late(bigint) IS
  'Returns the running jobs past their timeout or stall_timeout, once the workers that promise to '
  'kill tasks have done so.';

-- Judges again under the lock.
CREATE OR REPLACE FUNCTION pulse_internal.lock_late(live_us bigint, max_count int)
  RETURNS pulse_internal.ending[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked bigint[];
BEGIN
  SELECT array_agg(f.id) INTO locked FROM (
    SELECT j.id FROM pulse.job AS j
     WHERE j.id = ANY (ARRAY(SELECT l.id FROM pulse_internal.late(live_us) AS l))
     ORDER BY j.id LIMIT max_count
       FOR UPDATE SKIP LOCKED) AS f;
  RETURN (SELECT array_agg(ROW(l.id, l.outcome, l.error, true, NULL, NULL, l.cause)
                           ::pulse_internal.ending ORDER BY l.id)
            FROM pulse_internal.late(live_us) AS l WHERE l.id = ANY (locked));
END $$;
COMMENT ON FUNCTION pulse_internal.lock_late(bigint, int) IS
  'Locks at most max_count jobs past their timeout or stall_timeout without waiting; returns the '
  'jobs as endings.';

CREATE OR REPLACE FUNCTION pulse_internal.warn_of_short_thresholds() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  short int := (SELECT count(*) FROM pulse.heartbeat AS h
                 WHERE h.verdict NOT IN ('lost', 'stopped') AND h.interval_us > 0
                   AND h.threshold_us < pulse_internal.least_threshold_us(h.interval_us));
BEGIN
  IF short > 0 THEN
    RAISE WARNING 'the sweep_threshold of % workers is too short for the present settings', short
      USING HINT = 'The sweep uses 2 x heartbeat_interval + 1.5 x sweep_interval for them instead.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.warn_of_short_thresholds() IS
  'Warns when a change of settings has made the thresholds of registered workers too short.';

CREATE OR REPLACE FUNCTION pulse_internal.await_prepared(prepared_xid xid, prepared timestamptz)
  RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_await_prepared';
COMMENT ON FUNCTION pulse_internal.await_prepared(xid, timestamptz) IS
  'Enters notes that stand for any work of this transaction, if the transaction was prepared '
  'before the server started and is not awaited yet; returns whether.';

CREATE OR REPLACE FUNCTION pulse_internal.publish_prepared() RETURNS void
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_publish_prepared';
COMMENT ON FUNCTION pulse_internal.publish_prepared() IS
  'Tells claims and promotions, at once, of the jobs of prepared transactions that have ended.';

-- No heartbeat waits for this part: the locked rows belong to workers whose loss the sweep records.
-- The caller has the tables of recovery.
CREATE OR REPLACE FUNCTION pulse_internal.sweep(max_jobs int, ends timestamptz = NULL)
  RETURNS pulse_internal.sweep_result
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  ends := coalesce(ends, pulse_internal.sweep_end());
  PERFORM pulse_internal.warn_of_short_thresholds();
  RETURN pulse_internal.follow_recovery(pulse_internal.recover(max_jobs, ends), max_jobs, ends);
END $$;
COMMENT ON FUNCTION pulse_internal.sweep(int, timestamptz) IS
  'Recovers, then takes the other steps of a sweep in order, until that time; NULL means '
  'sweep_end().';

-- These rows belong to workers that may live, so the sweep writes them last.
CREATE OR REPLACE FUNCTION pulse_internal.end_sweep(judged_us bigint) RETURNS interval
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  live_us bigint := pulse_internal.live_now_us();
  -- A lost worker that still runs has read its status within a day.
  outdated timestamptz := pulse.now() - interval '1 day';
BEGIN
  DELETE FROM pulse.heartbeat AS h
   WHERE h.worker_id IN (SELECT o.worker_id FROM pulse.heartbeat AS o
                          WHERE o.verdict = 'lost' AND o.last_heartbeat_at < outdated
                            AND cardinality(pulse_internal.running_ids(o.worker_id, 1)) = 0
                            FOR UPDATE SKIP LOCKED);
  PERFORM pulse_internal.stamp_ended_sessions(live_us);
  -- Every sweep asks for the next sweep anew while a stamped worker is not lost. A waiter that has
  -- gone may have taken along an earlier request.
  PERFORM pulse_internal.note_sweep_due(
    clock_timestamp() + pulse_internal.grace_ends_in(judged_us, live_us));
  RETURN pulse_internal.tick();
END $$;
COMMENT ON FUNCTION pulse_internal.end_sweep(bigint) IS
  'Stamps the ends of sessions and ticks the liveness clock, as the last step of a transaction '
  'that has judged workers at judged_us or later; returns the time that the clock leaves out.';

CREATE OR REPLACE FUNCTION pulse.sweep(
    max_jobs int = 1000, dry_run boolean = false,
    OUT workers_lost int, OUT jobs_requeued int, OUT jobs_failed int, OUT jobs_quarantined int,
    OUT jobs_timed_out int, OUT jobs_stalled int, OUT jobs_skipped_locked int,
    OUT skipped_time interval)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  result pulse_internal.sweep_result;
  judged_us bigint;
BEGIN
  PERFORM pulse_internal.require_read_committed('sweep');
  PERFORM pulse_internal.check_count('max_jobs', max_jobs, 1, 1000000);
  PERFORM pulse_internal.check_given('dry_run', dry_run IS NOT NULL, 'Use true or false.');
  IF pulse_internal.lock_for_recovery() IS NOT NULL THEN
    result := pulse_internal.blocked_sweep();
  ELSIF dry_run THEN
    BEGIN
      judged_us := pulse_internal.live_now_us();
      result := pulse_internal.sweep(max_jobs);
      result.skipped_time := pulse_internal.end_sweep(judged_us);
      -- The readings of queues by the dry run stay; the queue marks that the dry run took come
      -- back.
      PERFORM pulse_internal.keep_queue_readings();
      RAISE EXCEPTION 'dry run' USING ERRCODE = 'PU101';
    EXCEPTION WHEN SQLSTATE 'PU101' THEN
      NULL;  -- the server undoes the changes, and the call returns the counts
    END;
  ELSE
    -- If a crash loses this sweep, the next sweep repeats the work, because the owners are still
    -- dead.
    judged_us := pulse_internal.live_now_us();
    PERFORM pulse_internal.begin_async_write();
    PERFORM pulse_internal.start_sweep();
    result := pulse_internal.sweep(max_jobs);
    result.skipped_time := pulse_internal.end_sweep(judged_us);
    PERFORM pulse_internal.end_async_write();
  END IF;
  workers_lost := result.workers_lost;
  jobs_requeued := result.jobs_requeued;
  jobs_failed := result.jobs_failed;
  jobs_quarantined := result.jobs_quarantined;
  jobs_timed_out := result.jobs_timed_out;
  jobs_stalled := result.jobs_stalled;
  jobs_skipped_locked := result.jobs_skipped_locked;
  skipped_time := result.skipped_time;
END $$;
COMMENT ON FUNCTION pulse.sweep(int, boolean) IS
  'Finds lost workers and jobs past their timeout or stall_timeout, and recovers at most max_jobs '
  'jobs within about a quarter of a second. Repeat the call, in a new transaction, until a call '
  'finds nothing. dry_run => true returns the counts and changes nothing. A sweep never waits for '
  'a lock, and no heartbeat of a living worker waits for a sweep. Where a lock keeps the sweep '
  'from a table that recovery needs, the sweep returns at once; doctor() names the lock. '
  'jobs_skipped_locked counts the jobs that the sweep left to the next sweep, jobs whose end a '
  'trigger of yours refuses included; a warning names the refused jobs. skipped_time is the part '
  'of an outage or clock step that no worker''s silence includes. Raises PU004 for max_jobs out of '
  'range, PU007 outside READ COMMITTED.';

CREATE OR REPLACE FUNCTION pulse_internal.declare_lost(
    worker_id bigint, cause text, reason text, is_gone boolean)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  status text;
  recovered record;
BEGIN
  LOCK TABLE pulse.heartbeat, pulse.job, pulse.claim_batch IN ROW EXCLUSIVE MODE;
  -- Before the row, for which a claim that has the lock may wait.
  IF NOT pulse_internal.lock_worker(declare_lost.worker_id) THEN
    RETURN NULL;
  END IF;
  SELECT h.verdict INTO status FROM pulse.heartbeat AS h
   WHERE h.worker_id = declare_lost.worker_id FOR UPDATE;
  IF status IS NULL AND NOT EXISTS (SELECT FROM pulse.worker AS w
                                     WHERE w.id = declare_lost.worker_id) THEN
    PERFORM pulse_internal.raise_unknown_worker(declare_lost.worker_id);
  ELSIF status <> 'lost' THEN
    -- owner_end decides by the cause, also when a sweep recovers a job that is locked now.
    PERFORM pulse_internal.mark_lost(
      declare_lost.worker_id, declare_lost.cause,
      coalesce(declare_lost.reason, 'declared lost'));
  END IF;
  -- Jobs of an ended worker too: a row may have been locked while the worker deregistered.
  SELECT o.cause, o.reason, array_agg(r.id ORDER BY r.id) AS ids INTO recovered
    FROM pulse_internal.owner_end(declare_lost.worker_id) AS o,
    LATERAL pulse_internal.recover_owner(
      declare_lost.worker_id, o.outcome, o.cause, o.reason, o.keeps_killed AND NOT is_gone, NULL)
        AS r
   GROUP BY o.cause, o.reason;
  PERFORM pulse_internal.forget_ended(declare_lost.worker_id);
  PERFORM pulse_internal.announce(
    recovered.cause, declare_lost.worker_id, recovered.reason, recovered.ids);
  RETURN coalesce(cardinality(recovered.ids), 0);
END $$;
COMMENT ON FUNCTION pulse_internal.declare_lost(bigint, text, text, boolean) IS
  'Declares a worker lost, recovers its jobs and returns how many; NULL while a claim of the '
  'worker is in progress. is_gone: the worker''s tasks have certainly ended.';

CREATE OR REPLACE FUNCTION pulse.declare_lost(worker_id bigint, reason text) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  recovered int;
BEGIN
  PERFORM pulse_internal.require_read_committed('declare_lost');
  recovered :=
    pulse_internal.declare_lost(declare_lost.worker_id, 'host', declare_lost.reason, true);
  IF recovered IS NULL THEN
    RAISE EXCEPTION 'a claim of worker % is under way', declare_lost.worker_id USING
      ERRCODE = 'lock_not_available', HINT = 'Try again when its transaction has ended.';
  END IF;
  RETURN recovered;
END $$;
COMMENT ON FUNCTION pulse.declare_lost(bigint, text) IS
  'Declares a worker lost, whatever its heartbeat says, recovers its jobs and returns how many. '
  'reason: NULL means "declared lost". Raises PU002 for an unknown worker, PU007 outside READ '
  'COMMITTED, 55P03 while a claim of the worker is in progress.';
