-- Everything periodic in one call, for a server whose only clock is a scheduler: pg_cron, a timer
-- of the system, an operator.

-- Half an interval, because a caller that ticks once per interval must not find its own last sweep.
CREATE OR REPLACE FUNCTION pulse_internal.swept_just_now() RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM pulse.clock AS c
     WHERE c.timeline = pulse_internal.current_timeline()
       AND clock_timestamp() - c.last_tick
           BETWEEN interval '0' AND
             pulse_internal.interval(pulse_internal.longest_tick_us() * 2 / 5));
END $$;
COMMENT ON FUNCTION pulse_internal.swept_just_now() IS
  'Returns whether a sweep has run within the last half sweep_interval.';

-- All sweeps of a call share one transaction. Recovered jobs are visible when the transaction
-- commits, so it is short. A step that found jobs may have left the rest to the next step.
CREATE OR REPLACE FUNCTION pulse_internal.sweep_for(
    budget interval, OUT result json, OUT more boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_count CONSTANT int := 1000;
  ends timestamptz := clock_timestamp() + budget;
  judged_us bigint := pulse_internal.live_now_us();
  done pulse_internal.sweep_result;
  total pulse_internal.sweep_result := ROW(0, 0, 0, 0, 0, 0, 0, interval '0');
BEGIN
  PERFORM pulse_internal.begin_async_write();
  PERFORM pulse_internal.start_sweep();
  LOOP
    done := pulse_internal.sweep(max_count, ends);
    total := ROW(total.workers_lost + done.workers_lost,
                 total.jobs_requeued + done.jobs_requeued, total.jobs_failed + done.jobs_failed,
                 total.jobs_quarantined + done.jobs_quarantined,
                 total.jobs_timed_out + done.jobs_timed_out,
                 total.jobs_stalled + done.jobs_stalled, done.jobs_skipped_locked,
                 total.skipped_time);
    more := done.workers_lost > 0 OR pulse_internal.jobs_left(done, max_count) < max_count
      OR pulse_internal.try_schedules(ends);
    EXIT WHEN NOT more OR clock_timestamp() >= ends;
  END LOOP;
  total.skipped_time := pulse_internal.end_sweep(judged_us);
  PERFORM pulse_internal.end_async_write();
  result := row_to_json(total);
END $$;
COMMENT ON FUNCTION pulse_internal.sweep_for(interval) IS
  'Sweeps until nothing is left or the budget is spent; more: something may be left.';

CREATE OR REPLACE FUNCTION pulse_internal.prune_for(
    budget interval, OUT pruned int, OUT more boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  max_count CONSTANT int := 1000;
  ends timestamptz := clock_timestamp() + budget;
  step int;
BEGIN
  pruned := 0;
  LOOP
    step := pulse_internal.prune(max_count, false);
    pruned := pruned + step;
    more := step >= max_count;
    EXIT WHEN NOT more OR clock_timestamp() >= ends;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.prune_for(interval) IS
  'Prunes until nothing is left or the budget is spent; more: something is left.';

-- run_tick() overrides the settings that a database sets as defaults for sessions.
CREATE OR REPLACE FUNCTION pulse_internal.check_tick() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  way_out CONSTANT text := 'CALL pulse.run_tick() works at any isolation level, and where '
    'transactions are read-only by default.';
BEGIN
  PERFORM pulse_internal.require_read_committed('tick', way_out);
  IF current_setting('transaction_read_only')::boolean AND NOT pg_is_in_recovery() THEN
    RAISE EXCEPTION 'cannot execute tick in a read-only transaction' USING
      ERRCODE = 'read_only_sql_transaction', HINT = way_out;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_tick() IS
  'Raises PU007 outside READ COMMITTED, and 25006 in a read-only transaction, with the hint to '
  'call run_tick().';

CREATE OR REPLACE FUNCTION pulse.tick() RETURNS json
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_keys CONSTANT int := 1000;
  is_blocked boolean;
  swept record;
  pruned record;
  keys int;
BEGIN
  PERFORM pulse_internal.check_tick();
  SELECT NULL::json AS result, false AS more INTO swept;
  is_blocked := pulse_internal.lock_for_recovery() IS NOT NULL;
  -- First, because the heartbeats of some workers wait for the end of the sweep.
  pruned := pulse_internal.prune_for(interval '1 s');
  IF is_blocked THEN
    swept.result := row_to_json(pulse_internal.blocked_sweep());
  ELSIF pulse_internal.swept_just_now() THEN
    swept.more := pulse_internal.try_schedules(clock_timestamp() + interval '250 ms');
    swept.more := pulse_internal.try_promotion(256) OR swept.more;
  ELSE
    swept := pulse_internal.sweep_for(interval '2 s');
  END IF;
  -- Last, because adds under these keys wait for the commit.
  keys := pulse_internal.prune(max_keys, true);
  RETURN json_build_object('swept', swept.result, 'pruned', pruned.pruned + keys,
                           'more', swept.more OR pruned.more OR keys = max_keys);
END $$;
COMMENT ON FUNCTION pulse.tick() IS
  'Does all periodic work, for about three seconds at most: a sweep unless a sweep has just run, '
  'promotion, and deletion of rows past their retention. The call waits for no lock: work behind '
  'a lock stays for the next tick. Returns json with swept (null without a sweep), pruned (rows) '
  'and more. If more is true, repeat the call in a new transaction, or leave the rest to the next '
  'tick. A scheduler calls run_tick(). Raises PU007 outside READ COMMITTED.';

-- SECURITY DEFINER or SET would forbid the COMMIT, so the caller needs tick() too. Between the
-- COMMIT and the new level the body evaluates no expression, which would take a snapshot.
CREATE OR REPLACE PROCEDURE pulse.run_tick(INOUT result json = NULL)
  LANGUAGE plpgsql AS $$
BEGIN
  IF NOT pg_catalog.pg_is_in_recovery() THEN
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
    SET LOCAL jit = off;
  END IF;
  result := pulse.tick();
END $$;
COMMENT ON PROCEDURE pulse.run_tick(json) IS
  'Calls tick() in a transaction of its own, whatever isolation level and read-only the database '
  'or the role sets. For schedulers. Returns the result of tick(). Needs EXECUTE on both '
  'functions. Raises 2D000 inside a transaction block.';
