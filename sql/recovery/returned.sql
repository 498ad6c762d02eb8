-- Workers that return: a worker that beats after its loss was cut off or stopped, and did not die.
-- So its jobs keep no crash of that loss. A heartbeat only notes the return; sweeps do the rest, in
-- several steps where transactions hold rows.

-- An interrupted attempt counts, so after the last attempt the job has failed.
CREATE OR REPLACE FUNCTION pulse_internal.end_quarantine(ended pulse.finished_job) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  IF ended.attempts < ended.max_attempts
     AND (pulse_internal.live_job_of_key(ended.job_key)).id IS NULL THEN
    ended.run_at := greatest(ended.run_at, pulse.now());
    PERFORM pulse_internal.revive(ended);
  ELSE
    UPDATE pulse.finished_job AS f SET state = 'failed' WHERE f.id = ended.id;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.end_quarantine(pulse.finished_job) IS
  'Lets a locked quarantined job, whose key is locked, run again, or fail after its last attempt.';

CREATE OR REPLACE FUNCTION pulse_internal.take_back_crash(lost pulse.attempt) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  live bigint;
  ended pulse.finished_job;
BEGIN
  SELECT j.id INTO live FROM pulse.job AS j WHERE j.id = lost.job_id FOR UPDATE SKIP LOCKED;
  SELECT * INTO ended FROM pulse.finished_job AS f WHERE f.id = lost.job_id FOR UPDATE SKIP LOCKED;
  IF live IS NOT NULL THEN
    UPDATE pulse.job AS j SET crashes = greatest(j.crashes - 1, 0) WHERE j.id = live;
  ELSIF ended.id IS NOT NULL THEN
    IF NOT pulse_internal.lock_cancelled(ended.id)
       OR NOT coalesce(pulse_internal.try_lock_key(ended.job_key), true) THEN
      RETURN;  -- to the next sweep
    END IF;
    UPDATE pulse.finished_job AS f SET crashes = greatest(f.crashes - 1, 0) WHERE f.id = ended.id
    RETURNING f.* INTO ended;
    IF ended.state = 'quarantined'
       AND NOT pulse_internal.is_poison(
                 ended.crashes, pulse_internal.max_crashes_of(ended.identifier)) THEN
      PERFORM pulse_internal.end_quarantine(ended);
    END IF;
  ELSIF EXISTS (SELECT FROM pulse.job AS j WHERE j.id = lost.job_id)
     OR EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = lost.job_id) THEN
    RETURN;  -- another transaction holds the job
  END IF;
  PERFORM pulse_internal.unlock_key(ended.job_key);
  UPDATE pulse.attempt AS a SET outcome = 'interrupted', error = a.error || '; it came back'
   WHERE a.job_id = lost.job_id AND a.token = lost.token;
END $$;
COMMENT ON FUNCTION pulse_internal.take_back_crash(pulse.attempt) IS
  'Makes a lost attempt an interrupted attempt and takes the crash from the job, unless another '
  'transaction holds the job, or a job cancelled because of it.';

-- The heartbeat row of a worker without jobs and lost attempts goes: the worker has read the
-- status, which the row was kept for.
CREATE OR REPLACE FUNCTION pulse_internal.settle_returned(
    max_count int, ends timestamptz, is_apart boolean)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  returned record;
  lost pulse.attempt;
  refused text[];
BEGIN
  <<workers>>
  FOR returned IN
    SELECT h.worker_id, w.ended_at
      FROM pulse.heartbeat AS h JOIN pulse.worker AS w ON w.id = h.worker_id
     WHERE h.verdict = 'lost' AND h.lost_cause = 'returned'
       FOR UPDATE OF h SKIP LOCKED
  LOOP
    FOR lost IN SELECT a.* FROM pulse.attempt AS a
                 WHERE a.ended_at >= returned.ended_at AND a.worker_id = returned.worker_id
                   AND a.outcome = 'lost'
                 ORDER BY CASE WHEN is_apart THEN random() END, a.job_id LIMIT max_count LOOP
      IF is_apart THEN
        refused := refused || (pulse_internal.do_apart('job', ARRAY[lost.job_id], format(
          'SELECT pulse_internal.take_back_crash(a) FROM pulse.attempt AS a
            WHERE a.job_id = $1 AND a.token = %s', lost.token), ends)).errors;
      ELSE
        PERFORM pulse_internal.take_back_crash(lost);
      END IF;
      EXIT workers WHEN clock_timestamp() >= ends;
    END LOOP;
    DELETE FROM pulse.heartbeat AS h
     WHERE h.worker_id = returned.worker_id
       AND cardinality(pulse_internal.running_ids(returned.worker_id, 1)) = 0
       AND NOT EXISTS (SELECT FROM pulse.attempt AS a
                        WHERE a.ended_at >= returned.ended_at
                          AND a.worker_id = returned.worker_id AND a.outcome = 'lost');
  END LOOP;
  PERFORM pulse_internal.warn_of_refused(refused);
END $$;
COMMENT ON FUNCTION pulse_internal.settle_returned(int, timestamptz, boolean) IS
  'Takes back the crashes that the losses of returned workers counted, at most max_count of each '
  'worker and until that time; leaves jobs that other transactions hold to the next sweep. '
  'is_apart: each job apart.';
