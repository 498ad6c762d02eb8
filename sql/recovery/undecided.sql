-- Jobs that came back while a transaction in progress added or removed a job under their key. Once
-- the transaction has ended, a sweep lets each job wait on, or ends it.

CREATE OR REPLACE FUNCTION pulse_internal.decide_key(job_id bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  job pulse.job;
BEGIN
  SELECT * INTO job FROM pulse.job AS j
   WHERE j.id = decide_key.job_id AND j.key_is_undecided FOR UPDATE SKIP LOCKED;
  IF job.id IS NULL OR NOT pulse_internal.try_lock_key(job.job_key) THEN
    RETURN false;
  END IF;
  IF pulse_internal.is_superseded(job)
     OR EXISTS (SELECT FROM pulse.job AS j
                 WHERE j.job_key = job.job_key AND j.index_lane IN ('o', 'p', 'w')) THEN
    PERFORM pulse_internal.finish_waiting(ARRAY[job.id], 'failed', job.last_error);
    UPDATE pulse.finished_job AS f SET job_key = NULL, max_attempts = greatest(f.attempts, 1)
     WHERE f.id = job.id AND pulse_internal.forget_superseded(job.job_key, job.id);
  ELSE
    UPDATE pulse.job AS j
       SET key_is_undecided = NULL,
           state = CASE WHEN j.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state
     WHERE j.id = job.id
    RETURNING j.* INTO job;
    PERFORM pulse_internal.note_waiting(job);
  END IF;
  PERFORM pulse_internal.unlock_key(job.job_key);
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.decide_key(bigint) IS
  'Lets a job whose key is undecided wait under the key, or ends it as failed where another job '
  'took the key. Returns false while a transaction in progress decides about the key or holds the '
  'row.';

-- A record whose job ended before the record was committed stays behind.
CREATE OR REPLACE FUNCTION pulse_internal.decide_keys(max_count int, ends timestamptz)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ids bigint[] := ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.index_lane = 'k'
                         ORDER BY j.id LIMIT max_count);
  apart record;
BEGIN
  IF cardinality(ids) > 0 THEN
    apart := pulse_internal.do_apart('job', ids, 'SELECT pulse_internal.decide_key($1)', ends);
    PERFORM pulse_internal.warn_of_refused(apart.errors);
  END IF;
  DELETE FROM pulse.superseded_job AS s
   WHERE (s.job_key, s.job_id) IN (
     SELECT o.job_key, o.job_id FROM pulse.superseded_job AS o
      WHERE NOT EXISTS (SELECT FROM pulse.job AS j
                         WHERE j.id = o.job_id AND j.index_lane IN ('r', 'k'))
      LIMIT max_count FOR UPDATE SKIP LOCKED);
  RETURN cardinality(ids) - (SELECT count(*) FROM pulse.job AS j WHERE j.id = ANY (ids));
END $$;
COMMENT ON FUNCTION pulse_internal.decide_keys(int, timestamptz) IS
  'Decides at most max_count jobs whose key was undecided, until that time, and returns how many '
  'ended as failed; removes records of superseded jobs that have ended. Waits for no lock of a row '
  'or key.';
