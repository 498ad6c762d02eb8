-- Graphile Worker's three functions for operators complete, fail or reschedule jobs by id. They
-- have no token, so they never change a running job. They lock rows in id order without waiting,
-- and a notice lists the jobs left alone. Only reschedule_jobs locks keys: it tries the key of each
-- failed job that goes live again. Jobs that failed for good are rows of pulse.finished_job, and
-- the same functions change them there.

CREATE OR REPLACE FUNCTION pulse_internal.report_skipped(job_ids bigint[], what text, hint text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  left_alone int := cardinality(job_ids);
BEGIN
  IF left_alone > 0 THEN
    RAISE NOTICE '% left alone: %',
        CASE left_alone WHEN 1 THEN '1 job is' ELSE left_alone || ' jobs are' END, what USING
      DETAIL = format('Ids: %s%s.', array_to_string(job_ids[1:100], ', '),
                      CASE WHEN left_alone > 100 THEN ', ...' ELSE '' END),
      HINT = hint;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.report_skipped(bigint[], text, text) IS
  'Raises a notice that lists the jobs of a call that were left alone.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_failed(job_ids bigint[])
  RETURNS SETOF pulse.finished_job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  LOCK TABLE pulse.finished_job IN ROW EXCLUSIVE MODE;
  RETURN QUERY
  SELECT * FROM pulse.finished_job AS f
   WHERE f.id = ANY (job_ids) AND f.state = 'failed'
   ORDER BY f.id
     FOR UPDATE SKIP LOCKED;
  PERFORM pulse_internal.report_skipped(
    (SELECT array_agg(f.id ORDER BY f.id) FROM pulse.finished_job AS f
      WHERE f.id = ANY (job_ids) AND f.state NOT IN ('completed', 'failed')),
    'quarantined, cancelled or expired', 'retry_job lets one run again.');
END $$;
COMMENT ON FUNCTION pulse_internal.lock_failed(bigint[]) IS
  'Locks the failed jobs among these in id order, without waiting, and returns them; a notice '
  'lists the jobs that ended in another way without completing.';

-- State is NULL, because the job is not live.
CREATE OR REPLACE FUNCTION pulse_internal.as_job(ended pulse.finished_job) RETURNS pulse.job
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  job pulse.job;
BEGIN
  SELECT ended.id, ended.identifier, ended.payload, ended.queue_name, ended.priority, ended.run_at,
         ended.attempts, ended.max_attempts, ended.crashes, ended.job_key, ended.flags,
         ended.checkpoint, ended.last_error, ended.revision, ended.created_at, ended.finished_at,
         ended.scheduled_for, ended.traceparent, ended.start_by, ended.keeps_result,
         ended.added_by, ended.dead_letter_of
    INTO job.id, job.identifier, job.payload, job.queue_name, job.priority, job.run_at,
         job.attempts, job.max_attempts, job.crashes, job.job_key, job.flags,
         job.checkpoint, job.last_error, job.revision, job.created_at, job.updated_at,
         job.scheduled_for, job.traceparent, job.start_by, job.keeps_result,
         job.added_by, job.dead_letter_of;
  RETURN job;
END $$;
COMMENT ON FUNCTION pulse_internal.as_job(pulse.finished_job) IS
  'Returns a finished job in the shape of a live one, with a state of NULL.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_waiting(job_ids bigint[], fenced text)
  RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked bigint[];
  running bigint[];
  busy bigint[];
BEGIN
  LOCK TABLE pulse.job IN ROW EXCLUSIVE MODE;
  SELECT coalesce(array_agg(f.id), '{}') INTO locked
    FROM (SELECT j.id FROM pulse.job AS j
           WHERE j.id = ANY (job_ids) AND j.state <> 'running'
           ORDER BY j.id
             FOR UPDATE SKIP LOCKED) AS f;
  SELECT array_agg(j.id ORDER BY j.id) FILTER (WHERE j.state = 'running'),
         array_agg(j.id ORDER BY j.id) FILTER (WHERE j.state <> 'running')
    INTO running, busy
    FROM pulse.job AS j
   WHERE j.id = ANY (ARRAY(SELECT unnest(job_ids) EXCEPT SELECT unnest(locked)));
  PERFORM pulse_internal.report_skipped(running, 'running',
    format('Only the claim''s own %s, or cancel_job or requeue_job, ends an attempt.', fenced));
  PERFORM pulse_internal.report_skipped(busy, 'held by other transactions', 'Ask again for them.');
  RETURN locked;
END $$;
COMMENT ON FUNCTION pulse_internal.lock_waiting(bigint[], text) IS
  'Locks the waiting jobs among these in id order, without waiting, and raises a notice about the '
  'rest.';

CREATE OR REPLACE FUNCTION pulse_internal.finish_waiting(
    job_ids bigint[], how pulse.finished_state, error text, cancelled_by bigint = NULL)
  RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  WITH ended AS MATERIALIZED (
    DELETE FROM pulse.job AS j WHERE j.id = ANY (job_ids) AND j.state <> 'running' RETURNING j.*
  ), freed AS (
    DELETE FROM pulse.dependency AS d USING ended AS e
     WHERE e.waits_on IS NOT NULL AND finish_waiting.cancelled_by IS NULL AND d.child_id = e.id
  ), kept AS (
    INSERT INTO pulse.finished_job
      (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts,
       crashes, job_key, flags, checkpoint, last_error, revision, created_at, finished_at,
       scheduled_for, starts_when, cancelled_by, parents, traceparent, start_by, keeps_result,
       added_by, before_end, dead_letter_of)
    SELECT e.id, e.identifier, e.payload, e.queue_name, e.priority, e.run_at, how, e.attempts,
           e.max_attempts, CASE WHEN how <> 'completed' THEN e.crashes ELSE 0 END, e.job_key,
           e.flags, e.checkpoint, coalesce(error, CASE how::text WHEN 'expired'
             THEN 'not started by ' || e.start_by END, e.last_error), e.revision, e.created_at,
           pulse.now(), e.scheduled_for, e.starts_when, finish_waiting.cancelled_by,
           CASE WHEN how <> 'completed' THEN e.parents END, e.traceparent, e.start_by,
           e.keeps_result, e.added_by,
           CASE WHEN finish_waiting.cancelled_by IS NOT NULL
             THEN pulse_internal.left_behind(e) END, e.dead_letter_of
      FROM ended AS e WHERE how <> 'completed' OR pulse_internal.keeps_completed(e.identifier)
  )
  SELECT e.* FROM ended AS e
   WHERE coalesce(pulse_internal.note_queue(e.queue_name), true) AND pulse_internal.note_end(e.id)
   ORDER BY e.id;
  IF how IN ('failed', 'expired') THEN
    PERFORM CASE WHEN f.queue_name IS NOT NULL
              THEN pulse_internal.note_death(f.queue_name, f.id) END,
            CASE WHEN how = 'expired' AND t.dead_letter IS NOT NULL
              THEN pulse_internal.add_dead_letter(f.id) END
       FROM pulse.finished_job AS f LEFT JOIN pulse.task AS t ON t.identifier = f.identifier
      WHERE f.id = ANY (job_ids) AND (f.queue_name IS NOT NULL OR t.dead_letter IS NOT NULL)
      ORDER BY f.id;
  END IF;
END $$;
COMMENT ON FUNCTION
  pulse_internal.finish_waiting(bigint[], pulse.finished_state, text, bigint) IS
  'Ends locked jobs that do not run and returns them as they were. cancelled_by: the parent '
  'because of which the jobs end.';

CREATE OR REPLACE FUNCTION pulse_internal.complete_failed(job_ids bigint[]) RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ended pulse.finished_job;
BEGIN
  FOR ended IN SELECT * FROM pulse_internal.lock_failed(job_ids) LOOP
    IF pulse_internal.keeps_completed(ended.identifier) THEN
      UPDATE pulse.finished_job AS f
         SET state = 'completed', crashes = 0, finished_at = pulse.now(), parents = NULL
       WHERE f.id = ended.id;
    ELSE
      DELETE FROM pulse.finished_job AS f WHERE f.id = ended.id;
    END IF;
    RETURN NEXT pulse_internal.as_job(ended);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.complete_failed(bigint[]) IS
  'Completes jobs that failed for good and returns them as they were.';

CREATE OR REPLACE FUNCTION pulse.complete_jobs(job_ids bigint[]) RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  LOCK TABLE pulse.job, pulse.finished_job IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.refuse_lost(complete_jobs.job_ids);
  RETURN QUERY SELECT * FROM pulse_internal.finish_waiting(
    pulse_internal.lock_waiting(complete_jobs.job_ids, 'complete(job_id, token)'), 'completed',
    NULL)
  UNION ALL SELECT * FROM pulse_internal.complete_failed(complete_jobs.job_ids);
END $$;
COMMENT ON FUNCTION pulse.complete_jobs(bigint[]) IS
  'Completes waiting and failed jobs by hand and returns them as they were, failed jobs with a '
  'state of NULL. keep_completed decides whether they are kept. Running, quarantined, cancelled '
  'and expired jobs, and jobs locked by another transaction, are left alone, with a notice. Ids of '
  'no job, and NULL, name no job. Raises PU005 for an id lost in a failover.';

CREATE OR REPLACE FUNCTION pulse.permanently_fail_jobs(job_ids bigint[], error_message text = NULL)
  RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  message text := coalesce(error_message, 'Manually marked as failed');
  ended pulse.job;
  failed pulse.finished_job;
BEGIN
  LOCK TABLE pulse.job, pulse.finished_job IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.refuse_lost(permanently_fail_jobs.job_ids);
  FOR failed IN SELECT * FROM pulse_internal.lock_failed(permanently_fail_jobs.job_ids) LOOP
    failed.last_error := message;
    UPDATE pulse.finished_job AS f SET last_error = message WHERE f.id = failed.id;
    RETURN NEXT pulse_internal.as_job(failed);
  END LOOP;
  FOR ended IN SELECT * FROM pulse_internal.finish_waiting(
    pulse_internal.lock_waiting(permanently_fail_jobs.job_ids,
                                'fail(job_id, token, error, retry => false)'), 'failed', message)
  LOOP
    ended.last_error := message;
    RETURN NEXT ended;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse.permanently_fail_jobs(bigint[], text) IS
  'Ends waiting jobs as failed and returns the jobs; failed jobs get the new message, and have a '
  'state of NULL. error_message becomes the last_error; NULL stands for "Manually marked as '
  'failed". Running, quarantined, cancelled and expired jobs, and jobs locked by another '
  'transaction, are left alone, with a notice. Ids of no job, and NULL, name no job. Raises PU005 '
  'for an id lost in a failover.';

CREATE OR REPLACE FUNCTION pulse_internal.check_attempts_left(
    job_ids bigint[], attempts int, max_attempts int)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  spent pulse.job;
BEGIN
  SELECT * INTO spent FROM pulse.job AS j
   WHERE j.id = ANY (job_ids)
     AND coalesce(check_attempts_left.attempts, j.attempts)
         >= coalesce(check_attempts_left.max_attempts, j.max_attempts)
   ORDER BY j.id LIMIT 1;
  IF spent.id IS NOT NULL THEN
    RAISE EXCEPTION 'job % would have no attempt left', spent.id USING
      ERRCODE = 'PU004',
      DETAIL = format('It has used %s of %s.', coalesce(attempts, spent.attempts),
                      coalesce(max_attempts, spent.max_attempts)),
      HINT = 'Give it fewer attempts or more max_attempts, or end it with permanently_fail_jobs.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_attempts_left(bigint[], int, int) IS
  'Raises PU004 when a waiting job would be left without an attempt.';

CREATE OR REPLACE FUNCTION pulse_internal.reschedule_failed(
    job_ids bigint[], run_at timestamptz, priority int, attempts int, max_attempts int)
  RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ended pulse.finished_job;
  gives_attempts boolean := coalesce(
    reschedule_failed.attempts, reschedule_failed.max_attempts) IS NOT NULL;
  taken bigint[] := '{}';
  held bigint[] := '{}';
BEGIN
  FOR ended IN SELECT * FROM pulse_internal.lock_failed(reschedule_failed.job_ids) LOOP
    ended.run_at := coalesce(reschedule_failed.run_at, ended.run_at);
    ended.priority := coalesce(reschedule_failed.priority, ended.priority);
    ended.attempts := coalesce(reschedule_failed.attempts, ended.attempts);
    ended.max_attempts := coalesce(reschedule_failed.max_attempts, ended.max_attempts);
    ended.crashes := least(ended.crashes, reschedule_failed.attempts);
    IF gives_attempts AND ended.attempts > ended.max_attempts THEN
      RAISE EXCEPTION 'failed job % would have used more attempts than it may have', ended.id USING
        ERRCODE = 'PU004',
        DETAIL = format('It would have used %s of %s.', ended.attempts, ended.max_attempts),
        HINT = 'Give it fewer attempts or more max_attempts.';
    END IF;
    IF NOT gives_attempts OR ended.attempts >= ended.max_attempts THEN
      UPDATE pulse.finished_job AS f
         SET run_at = ended.run_at, priority = ended.priority, attempts = ended.attempts,
             max_attempts = ended.max_attempts, crashes = ended.crashes,
             revision = pulse_internal.next_revision(f.revision)
       WHERE f.id = ended.id;
      RETURN NEXT pulse_internal.as_job(ended);
    ELSIF NOT pulse_internal.lock_cancelled(ended.id) THEN
      held := held || ended.id;
    ELSIF pulse_internal.is_key_free(ended.job_key) THEN
      RETURN NEXT pulse_internal.revive(ended);
    ELSE
      taken := taken || ended.id;
    END IF;
  END LOOP;
  PERFORM pulse_internal.report_skipped(
    held, 'failed, and other transactions hold jobs after them', 'Ask again for them.');
  PERFORM pulse_internal.report_skipped(taken, 'failed, and another job has the key',
    'A later job replaced them; add a job without the key if both are to run.');
END $$;
COMMENT ON FUNCTION pulse_internal.reschedule_failed(bigint[], timestamptz, int, int, int) IS
  'Gives failed jobs these values, makes those live again that have attempts left by the new '
  'values, and returns all; never waits. Raises PU004 where a job would have used more attempts '
  'than max_attempts.';

CREATE OR REPLACE FUNCTION pulse.reschedule_jobs(
    job_ids bigint[], run_at timestamptz = NULL, priority int = NULL, attempts int = NULL,
    max_attempts int = NULL)
  RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked bigint[];
BEGIN
  PERFORM pulse_internal.check_number('priority', reschedule_jobs.priority, -32768, 32767);
  PERFORM pulse_internal.check_number('attempts', reschedule_jobs.attempts, 0, 32766);
  PERFORM pulse_internal.check_number('max_attempts', reschedule_jobs.max_attempts, 1, 32767);
  PERFORM pulse_internal.check_run_at(reschedule_jobs.run_at);
  LOCK TABLE pulse.job, pulse.finished_job IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.refuse_lost(reschedule_jobs.job_ids);
  locked := pulse_internal.lock_waiting(reschedule_jobs.job_ids, 'snooze(job_id, token, delay)');
  PERFORM pulse_internal.check_attempts_left(
    locked, reschedule_jobs.attempts, reschedule_jobs.max_attempts);
  RETURN QUERY
  WITH changed AS (
    UPDATE pulse.job AS j SET
      run_at       = coalesce(reschedule_jobs.run_at, j.run_at),
      priority     = coalesce(reschedule_jobs.priority, j.priority),
      attempts     = coalesce(reschedule_jobs.attempts, j.attempts),
      max_attempts = coalesce(reschedule_jobs.max_attempts, j.max_attempts),
      -- Each crash consumed an attempt, so there are never more crashes than attempts.
      crashes      = least(j.crashes, reschedule_jobs.attempts),
      state        = CASE WHEN j.queue_name IS NULL AND j.waits_on IS NULL THEN 'ready'
                       ELSE 'parked' END::pulse.job_state,
      worker_id    = NULL,
      revision     = pulse_internal.next_revision(j.revision),
      updated_at   = pulse.now()
    WHERE j.id = ANY (locked)
    RETURNING j.*
  )
  SELECT c.* FROM changed AS c
   WHERE pulse_internal.note_waiting(c)
   ORDER BY c.id;
  RETURN QUERY SELECT * FROM pulse_internal.reschedule_failed(
    reschedule_jobs.job_ids, reschedule_jobs.run_at, reschedule_jobs.priority,
    reschedule_jobs.attempts, reschedule_jobs.max_attempts);
END $$;
COMMENT ON FUNCTION pulse.reschedule_jobs(bigint[], timestamptz, int, int, int) IS
  'Changes waiting and failed jobs and returns them; NULL leaves a value unchanged. A failed job '
  'that gets an attempt again, by attempts or max_attempts, goes live again; any other failed job '
  'stays failed and has a state of NULL. Running, quarantined, cancelled and expired jobs, failed '
  'jobs whose key a live job has, and jobs locked by another transaction, are left alone, with a '
  'notice. Ids of no job, and NULL, name no job. A job keeps its start_by. Raises PU004 for a '
  'value out of range, for a waiting job that would be left without an attempt and for a failed '
  'job that would have used more attempts than max_attempts, PU005 for an id lost in a failover.';
