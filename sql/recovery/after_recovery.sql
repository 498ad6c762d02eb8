-- The steps of a sweep after recovery. Each step is a call of its own that tries the locks of its
-- tables first. Where another transaction has a lock, the step leaves the work to the next sweep.

-- An error of a row concerns that row alone, and no other step.
CREATE OR REPLACE FUNCTION pulse_internal.try_returned(max_jobs int, ends timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF pulse_internal.try_lock_tables('{dependency}', '{flow_job}') IS NOT NULL THEN
    RETURN;
  END IF;
  BEGIN
    PERFORM pulse_internal.settle_returned(max_jobs, ends, false);
    RETURN;
  EXCEPTION WHEN OTHERS OR assert_failure THEN
    IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
      RAISE;
    END IF;
  END;
  PERFORM pulse_internal.settle_returned(
    max_jobs, greatest(ends, pulse_internal.sweep_end()), true);
END $$;
COMMENT ON FUNCTION pulse_internal.try_returned(int, timestamptz) IS
  'Calls settle_returned, and repeats each row apart where the call raises an error. Does nothing '
  'while a table is locked.';

CREATE OR REPLACE FUNCTION pulse_internal.try_expiry(max_jobs int, ends timestamptz) RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF max_jobs <= 0 OR NOT pulse_internal.try_lock_ids()
     OR pulse_internal.try_lock_tables('{dependency,queue_pause}', '{queue}') IS NOT NULL THEN
    RETURN 0;
  END IF;
  BEGIN
    RETURN pulse_internal.expire_jobs(max_jobs, ends, false);
  EXCEPTION WHEN OTHERS OR assert_failure THEN
    IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
      RAISE;
    END IF;
  END;
  RETURN pulse_internal.expire_jobs(max_jobs, greatest(ends, pulse_internal.sweep_end()), true);
END $$;
COMMENT ON FUNCTION pulse_internal.try_expiry(int, timestamptz) IS
  'Calls expire_jobs, and repeats each row apart where the call raises an error. Does nothing '
  'while a table is locked.';

CREATE OR REPLACE FUNCTION pulse_internal.try_keys(max_jobs int, ends timestamptz) RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF pulse_internal.try_lock_tables('{superseded_job,dependency,queue_pause}', '{queue}') IS NULL
  THEN
    RETURN pulse_internal.decide_keys(max_jobs, ends);
  END IF;
  RETURN 0;
END $$;
COMMENT ON FUNCTION pulse_internal.try_keys(int, timestamptz) IS
  'Calls decide_keys, unless a table is locked.';

CREATE OR REPLACE FUNCTION pulse_internal.try_queues(max_queues int, ends timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF pulse_internal.try_lock_tables('{queue_rate}', '{queue,queue_pause}') IS NULL THEN
    PERFORM pulse_internal.reconcile_queues(max_queues, ends);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.try_queues(int, timestamptz) IS
  'Calls reconcile_queues, unless a table is locked.';

CREATE OR REPLACE FUNCTION pulse_internal.try_waits(max_count int, ends timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF pulse_internal.try_lock_tables('{dependency}', '{flow_job}') IS NULL THEN
    PERFORM pulse_internal.reconcile_waits(max_count, ends);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.try_waits(int, timestamptz) IS
  'Calls reconcile_waits, unless a table is locked.';

CREATE OR REPLACE FUNCTION pulse_internal.try_schedules(ends timestamptz) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_internal.try_lock_tables('{schedule}') IS NULL AND pulse_internal.try_lock_ids()
     AND pulse_internal.settle_schedules(ends);
END $$;
COMMENT ON FUNCTION pulse_internal.try_schedules(timestamptz) IS
  'Calls settle_schedules, unless a table is locked.';

CREATE OR REPLACE FUNCTION pulse_internal.try_promotion(max_promotion_marks int) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_internal.try_lock_tables(
           '{job,finished_job,queue_rate,dependency}',
           '{task,queue,queue_pause,flow_job}') IS NULL
     AND pulse_internal.promote_marked(max_promotion_marks);
END $$;
COMMENT ON FUNCTION pulse_internal.try_promotion(int) IS
  'Calls promote_marked, unless a table is locked; returns whether queue marks remain that a call '
  'can take.';

-- An error here undoes nothing that the sweep has recovered; claims meet the same error, and raise
-- the error.
CREATE OR REPLACE FUNCTION pulse_internal.promote_for_sweep(ends timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF pulse_internal.try_lock_tables('{}', '{queue}') IS NULL THEN
    PERFORM pulse_internal.park_unserved();
  END IF;
  FOR attempt IN 1..8 LOOP
    EXIT WHEN NOT pulse_internal.try_promotion(32) OR clock_timestamp() >= ends;
  END LOOP;
EXCEPTION WHEN OTHERS OR assert_failure THEN
  IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
    RAISE;
  END IF;
  RAISE WARNING 'a sweep promoted nothing: %', SQLERRM USING
    HINT = 'Check the triggers and constraints that are not of pg_pulse. Claims fail likewise.';
END $$;
COMMENT ON FUNCTION pulse_internal.promote_for_sweep(timestamptz) IS
  'Parks unserved jobs of fair levels and promotes the queues of queue marks, until '
  'that time.';

CREATE OR REPLACE FUNCTION pulse_internal.follow_recovery(
    INOUT result pulse_internal.sweep_result, max_jobs int, ends timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  found_nothing boolean;
BEGIN
  PERFORM pulse_internal.try_returned(max_jobs, ends);
  result.jobs_failed := result.jobs_failed
    + pulse_internal.try_expiry(pulse_internal.jobs_left(result, max_jobs), ends);
  result.jobs_failed := result.jobs_failed + pulse_internal.try_keys(max_jobs, ends);
  found_nothing := result.workers_lost = 0
    AND pulse_internal.jobs_left(result, max_jobs) = max_jobs;
  PERFORM pulse_internal.await_prepared(x.transaction, x.prepared)
     FROM pg_prepared_xacts AS x WHERE x.database = current_database();
  PERFORM pulse_internal.publish_prepared();
  -- While the server runs, only COMMIT PREPARED can leave a queue without a queue mark: where the
  -- library is not preloaded, or a restart came between. A check of all queues takes long where the
  -- queues are many, so the next sweep goes on where this step ends.
  PERFORM pulse_internal.try_queues(
    CASE WHEN found_nothing AND EXISTS (
      SELECT FROM pg_prepared_xacts AS x WHERE x.database = current_database()) THEN 0
      ELSE 1000 END, ends);
  PERFORM pulse_internal.try_waits(10000, ends);
  PERFORM pulse_internal.try_schedules(ends);
  PERFORM pulse_internal.promote_for_sweep(ends);
  IF pulse_internal.try_lock_tables('{}', '{id_gap,gap_from_seq,gap_to_seq,gap_at_seq}') IS NULL
  THEN
    PERFORM pulse_internal.note_gap();
  END IF;
  IF pulse_internal.try_lock_tables('{}', '{installation,installation_witness}') IS NULL THEN
    PERFORM pulse_internal.follow_server();
  END IF;
  IF pulse_internal.try_lock_tables('{counter}') IS NULL THEN
    PERFORM pulse_internal.add_counters();
  END IF;
  PERFORM pulse_internal.note_backlog();
END $$;
COMMENT ON FUNCTION pulse_internal.follow_recovery(
  pulse_internal.sweep_result, int, timestamptz) IS
  'Takes the steps of a sweep after recovery, until that time, and adds the ended jobs to the '
  'sweep''s counts.';

-- The next sweep comes soon, because the end of a lock asks for none.
CREATE OR REPLACE FUNCTION pulse_internal.blocked_sweep() RETURNS pulse_internal.sweep_result
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.start_sweep();
  PERFORM pulse_internal.note_sweep_due(
    clock_timestamp() + pulse_internal.interval(pulse_internal.setting_us('poll_interval')));
  RETURN ROW(0, 0, 0, 0, 0, 0, pulse_internal.blocked_jobs(), interval '0');
END $$;
COMMENT ON FUNCTION pulse_internal.blocked_sweep() IS
  'Returns the counts of a sweep that a lock keeps from recovery, and asks for another sweep.';
