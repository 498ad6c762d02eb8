-- The job of a due time: its values, and its standing beside the job of the due time before.

-- Each sweep comes after the due time, one that ticks once a minute by up to a minute.
CREATE OR REPLACE FUNCTION pulse_internal.is_late(due timestamptz, moment timestamptz)
  RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN due < moment - greatest(interval '90 s', pulse_internal.two_sweep_intervals());
END $$;
COMMENT ON FUNCTION pulse_internal.is_late(timestamptz, timestamptz) IS
  'Returns whether no session swept in time for this due time.';

CREATE OR REPLACE FUNCTION pulse_internal.scheduled_spec(rule pulse.schedule, due timestamptz)
  RETURNS pulse.job_spec
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF rule.crontab_set IS NOT NULL THEN
    rule.payload := pulse_internal.crontab_payload(
      rule.payload, due, pulse_internal.is_late(due, pulse.now()));
  END IF;
  RETURN ROW(rule.identifier, rule.payload, rule.queue_name, due, rule.max_attempts, rule.job_key,
             rule.priority, rule.flags)::pulse.job_spec;
END $$;
COMMENT ON FUNCTION pulse_internal.scheduled_spec(pulse.schedule, timestamptz) IS
  'Returns the job that a schedule adds for a due time, before defaults.';

-- The job of the due time before, while that job waits or runs.
CREATE OR REPLACE FUNCTION pulse_internal.overlapping_job(rule pulse.schedule) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  found pulse.job;
BEGIN
  SELECT * INTO found FROM pulse.job AS j WHERE j.id = rule.last_job_id;
  RETURN found;
END $$;
COMMENT ON FUNCTION pulse_internal.overlapping_job(pulse.schedule) IS
  'Returns the last job of a schedule while it waits or runs; NULL when it has ended.';

-- Raises PU103 where another transaction holds a lock: the caller leaves the due time to a later
-- sweep.
CREATE OR REPLACE FUNCTION pulse_internal.raise_held(what text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '% is held by another transaction', what USING ERRCODE = 'PU103';
END $$;
COMMENT ON FUNCTION pulse_internal.raise_held(text) IS
  'Raises PU103, which leaves a due time to a later sweep.';

CREATE OR REPLACE FUNCTION pulse_internal.try_lock_waiting(job_id bigint, job_key text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked pulse.job;
BEGIN
  IF NOT coalesce(pulse_internal.try_lock_key(job_key), true) THEN
    PERFORM pulse_internal.raise_held('the job key');
  END IF;
  SELECT * INTO locked FROM pulse.job AS j
   WHERE j.id = try_lock_waiting.job_id AND j.state <> 'running' AND j.index_lane <> 'k'
     FOR UPDATE SKIP LOCKED;
  IF locked.id IS NULL AND EXISTS (SELECT FROM pulse.job AS j
        WHERE j.id = try_lock_waiting.job_id AND j.state <> 'running' AND j.index_lane <> 'k') THEN
    PERFORM pulse_internal.raise_held('the job');
  END IF;
  RETURN locked;
END $$;
COMMENT ON FUNCTION pulse_internal.try_lock_waiting(bigint, text) IS
  'Locks a job key and a waiting job, and returns the job; the caller calls unlock_key. Never '
  'waits: raises PU103 while another transaction holds the key or the job.';

CREATE OR REPLACE FUNCTION pulse_internal.add_scheduled(rule pulse.schedule, due timestamptz)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  spec pulse.job_spec :=
    pulse_internal.checked_spec(pulse_internal.scheduled_spec(rule, due));
  existing record;
  stays bigint;
  added pulse.job;
BEGIN
  IF spec.job_key IS NULL THEN
    RETURN (pulse_internal.insert_scheduled_job(spec, due, rule.added_by)).id;
  END IF;
  SELECT j.id, j.added_by INTO existing FROM pulse.job AS j
   WHERE j.job_key = spec.job_key AND j.index_lane IN ('o', 'p', 'w');
  IF NOT pulse_internal.may_name(existing.added_by, rule.added_by) THEN
    PERFORM pulse_internal.refuse_key(spec.job_key);
  END IF;
  PERFORM pulse_internal.try_lock_waiting(existing.id, spec.job_key);
  stays := CASE WHEN rule.job_key_mode = 'unsafe_dedupe'
             THEN (pulse_internal.live_job_of_key(spec.job_key)).id END;
  added := pulse_internal.add_keyed(spec, rule.job_key_mode, NULL, rule.added_by);
  -- An unchanged job keeps its due time.
  IF added.id IS DISTINCT FROM stays THEN
    UPDATE pulse.job AS j SET scheduled_for = due WHERE j.id = added.id;
  END IF;
  RETURN added.id;
END $$;
COMMENT ON FUNCTION pulse_internal.add_scheduled(pulse.schedule, timestamptz) IS
  'Adds the job of a due time and returns its id. Raises PU103 where another transaction holds the '
  'key, 42501 where a job of another producer than the schedule''s has the key.';

CREATE OR REPLACE FUNCTION pulse_internal.replace_scheduled(
    rule pulse.schedule, due timestamptz, older pulse.job) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  waiting pulse.job;
BEGIN
  IF older.job_key IS NOT DISTINCT FROM rule.job_key THEN
    waiting := pulse_internal.try_lock_waiting(older.id, older.job_key);
  END IF;
  IF waiting.id IS NULL THEN
    RETURN pulse_internal.add_scheduled(rule, due);
  END IF;
  -- Without a payload, so that two arrays are not concatenated.
  waiting.payload := NULL;
  PERFORM pulse_internal.replace_job(
    (SELECT j.ctid FROM pulse.job AS j WHERE j.id = waiting.id), waiting,
    pulse_internal.checked_spec(pulse_internal.scheduled_spec(rule, due)), 'replace');
  UPDATE pulse.job AS j SET scheduled_for = due WHERE j.id = waiting.id;
  PERFORM pulse_internal.unlock_key(waiting.job_key);
  RETURN waiting.id;
END $$;
COMMENT ON FUNCTION pulse_internal.replace_scheduled(pulse.schedule, timestamptz, pulse.job) IS
  'Gives the waiting job of the due time before this due time, or adds one beside a running job.';
