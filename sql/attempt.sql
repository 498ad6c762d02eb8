-- How an attempt ends that does not simply succeed: the fate of its job, decided in one place for
-- whoever ends it (fail, release, a sweep, an operator).

CREATE OR REPLACE FUNCTION pulse._is_taken(key text) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pulse.job AS k WHERE k.job_key = key AND k.index_lane <> 'h');
END $$;
COMMENT ON FUNCTION pulse._is_taken(text) IS 'whether a waiting job has this key';

-- Its key may also be another's while the row still shows it: whoever took it found the row held.
CREATE OR REPLACE FUNCTION pulse._is_superseded(job pulse.job) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN job.superseded OR (job.job_key IS NOT NULL AND pulse._is_taken(job.job_key));
END $$;
COMMENT ON FUNCTION pulse._is_superseded(pulse.job) IS
  'whether a running job has lost its key to another: then it does not run again';

-- Ends attempts whose rows the caller has locked. One statement decides each job's fate, moves it,
-- and writes the audit; the marks and wake-ups follow at commit. It is planned once per session,
-- and the arrays of ids and the settings pin the plan: a vacuum of an empty queue leaves statistics
-- that say "one row" of any table. A locked row stays in its place, so it is found there again.
CREATE OR REPLACE FUNCTION pulse._end_attempts_in_full(endings pulse._ending[])
  RETURNS TABLE (id bigint, state text, outcome text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
  SET enable_nestloop = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
DECLARE
  moment timestamptz := pulse.now();
  most_crashes int := pulse._max_crashes();
BEGIN
  RETURN QUERY
  WITH verdict AS MATERIALIZED (
    SELECT j.id, j.ctid AS place, j.identifier, j.queue_name, j.token, j.attempts, j.worker_id,
           j.claimed_at, e.outcome, e.error, e.payload, e.cause,
           least(j.crashes + (e.outcome = 'lost')::int, 32767) AS crashes,
           CASE
             WHEN j.cancel_requested_at IS NOT NULL THEN 'cancelled'
             WHEN e.outcome = 'lost' AND coalesce(t.max_crashes, most_crashes)
                                         BETWEEN 0 AND j.crashes + 1 THEN 'quarantined'
             WHEN j.superseded OR j.job_key IS NOT NULL AND pulse._is_taken(j.job_key) THEN 'failed'
             WHEN e.outcome = 'released' THEN 'again'
             WHEN e.retry IS FALSE OR j.attempts >= j.max_attempts THEN 'failed'
             ELSE 'again' END AS fate,
           CASE e.outcome WHEN 'released' THEN j.run_at
             WHEN 'interrupted' THEN greatest(j.run_at, moment)
             ELSE greatest(j.run_at, moment) + coalesce(e.retry_in, pulse._backoff(t, j.attempts))
           END AS run_at
      FROM unnest(endings) AS e JOIN pulse.job AS j ON j.id = e.id
      LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
     WHERE j.id = ANY (ARRAY(SELECT a.id FROM unnest(endings) AS a))
  ), removed AS (
    DELETE FROM pulse.job AS j
     WHERE j.ctid = ANY (ARRAY(SELECT v.place FROM verdict AS v WHERE v.fate <> 'again'))
    RETURNING j.*
  ), kept AS (
    INSERT INTO pulse.finished_job
      (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts,
       crashes, job_key, flags, worker_id, token, claimed_at, checkpoint, last_error, revision,
       created_at, finished_at)
    SELECT r.id, r.identifier, coalesce(v.payload, r.payload), r.queue_name, r.priority, r.run_at,
           v.fate::pulse.finished_state, r.attempts, r.max_attempts, v.crashes,
           r.job_key, r.flags, r.worker_id, r.token, r.claimed_at, r.checkpoint,
           coalesce(v.error, r.last_error), r.revision, r.created_at, moment
      FROM removed AS r JOIN verdict AS v ON v.id = r.id
  ), requeued AS (
    UPDATE pulse.job AS j SET
      state      = CASE WHEN j.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state,
      attempts   = j.attempts - (v.outcome = 'released')::int,
      crashes    = v.crashes,
      run_at     = v.run_at,
      payload    = coalesce(v.payload, j.payload),
      last_error = coalesce(v.error, j.last_error),
      recovered  = v.cause, worker_id = NULL, token = NULL, claimed_at = NULL,
      claimed_live_us = NULL, activity_live_us = NULL, updated_at = moment
    FROM verdict AS v
    WHERE j.ctid = v.place AND v.fate = 'again'
      AND j.ctid = ANY (ARRAY(SELECT a.place FROM verdict AS a WHERE a.fate = 'again'))
  ), audited AS (
    INSERT INTO pulse.attempt
      (job_id, token, attempt, worker_id, claimed_at, ended_at, outcome, error)
    SELECT v.id, v.token, v.attempts, v.worker_id, v.claimed_at, moment,
           CASE v.fate WHEN 'cancelled' THEN 'cancelled' ELSE v.outcome END, v.error
      FROM verdict AS v
  )
  SELECT v.id, CASE WHEN v.fate <> 'again' THEN v.fate
                    WHEN v.queue_name IS NULL THEN 'ready' ELSE 'parked' END, v.outcome
    FROM verdict AS v
   WHERE CASE WHEN v.fate = 'again'
           THEN pulse._note_job(v.identifier, v.queue_name, v.run_at)
           ELSE coalesce(pulse._note_queue(v.queue_name), true) END;
END $$;
COMMENT ON FUNCTION pulse._end_attempts_in_full(pulse._ending[]) IS
  '_end_attempts() for jobs that may end';

-- C: extension/finish/end_attempts.cpp.
CREATE OR REPLACE FUNCTION pulse._end_attempts(endings pulse._ending[])
  RETURNS TABLE (id bigint, state text, outcome text)
  LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'pulse_end_attempts';
COMMENT ON FUNCTION pulse._end_attempts(pulse._ending[]) IS
  'ends attempts of locked jobs: cancelled, quarantined, failed, or again after the backoff';
