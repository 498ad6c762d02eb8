-- The functions that producers and operators call. Each function calls the function of the same
-- name in schema pulse, with the rights of the caller, and returns rows in the shape of Graphile
-- Worker's.

CREATE OR REPLACE FUNCTION graphile_worker._private_row(job pulse.job)
  RETURNS graphile_worker._private_jobs
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  seen graphile_worker._private_jobs;
BEGIN
  IF job.id IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT job.id, graphile_worker._private_id(job.queue_name),
         graphile_worker._private_id(job.identifier), job.payload, job.priority, job.run_at,
         job.attempts, job.max_attempts, job.last_error, job.created_at, job.updated_at,
         job.job_key, job.revision
    INTO seen.id, seen.job_queue_id,
         seen.task_id, seen.payload, seen.priority, seen.run_at,
         seen.attempts, seen.max_attempts, seen.last_error, seen.created_at, seen.updated_at,
         seen.key, seen.revision;
  IF job.flags IS NOT NULL THEN
    seen.flags := graphile_worker._private_flags(job.flags);
  END IF;
  IF job.state IS NULL THEN
    seen.attempts := seen.max_attempts;
    seen.key := NULL;
  ELSIF job.state = 'running' THEN
    seen.locked_at := job.claimed_at;
    -- The function does not tell a producer whose worker runs the job, and a producer cannot ask.
    IF job.worker_id IS NOT NULL THEN
      seen.locked_by := coalesce((SELECT w.name FROM pulse.worker AS w WHERE w.id = job.worker_id),
                                 job.worker_id::text);
    END IF;
  END IF;
  seen.is_available := seen.locked_at IS NULL AND seen.attempts < seen.max_attempts;
  RETURN seen;
END $$;
COMMENT ON FUNCTION graphile_worker._private_row(pulse.job) IS
  'Returns a job as the view _private_jobs shows it. A job without a state has failed for good.';

CREATE OR REPLACE FUNCTION graphile_worker.add_job(
    identifier text, payload json = NULL, queue_name text = NULL, run_at timestamptz = NULL,
    max_attempts int = NULL, job_key text = NULL, priority int = NULL, flags text[] = NULL,
    job_key_mode text = 'replace')
  RETURNS graphile_worker._private_jobs
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF job_key IS NULL THEN
    job_key_mode := 'replace';
  ELSIF job_key_mode NOT IN ('replace', 'preserve_run_at', 'unsafe_dedupe') THEN
    RAISE EXCEPTION '% is no job_key_mode', quote_literal(job_key_mode) USING
      ERRCODE = 'GWBKM', HINT = 'It is replace, preserve_run_at or unsafe_dedupe.';
  END IF;
  RETURN graphile_worker._private_row(pulse.add_job(
    identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags,
    coalesce(job_key_mode, 'replace')));
END $$;
COMMENT ON FUNCTION graphile_worker.add_job(
  text, json, text, timestamptz, int, text, int, text[], text) IS
  'Adds a job, as pulse.add_job does. Raises GWBKM for an unknown job_key_mode, PU004 for a name '
  'or value out of range.';

CREATE OR REPLACE FUNCTION graphile_worker.add_jobs(
    specs graphile_worker.job_spec[], job_key_preserve_run_at boolean = false)
  RETURNS SETOF graphile_worker._private_jobs
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT seen.*
    FROM pulse.add_jobs(
           ARRAY(SELECT ROW(s.identifier, s.payload, s.queue_name, s.run_at, s.max_attempts,
                            s.job_key, s.priority, s.flags)::pulse.job_spec
                   FROM unnest(specs) WITH ORDINALITY AS s ORDER BY s.ordinality),
           job_key_preserve_run_at) AS added,
         LATERAL graphile_worker._private_row(added) AS seen;
END $$;
COMMENT ON FUNCTION graphile_worker.add_jobs(graphile_worker.job_spec[], boolean) IS
  'Adds many jobs, as pulse.add_jobs does, and returns the jobs in the same order. Raises PU004 '
  'for a name or value out of range.';

CREATE OR REPLACE FUNCTION graphile_worker.remove_job(job_key text)
  RETURNS graphile_worker._private_jobs
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN graphile_worker._private_row(pulse.remove_job(job_key));
END $$;
COMMENT ON FUNCTION graphile_worker.remove_job(text) IS
  'Deletes the waiting job of a key, or keeps a running one from another attempt, as '
  'pulse.remove_job does; NULL for a key that no job has.';

CREATE OR REPLACE FUNCTION graphile_worker.complete_jobs(job_ids bigint[])
  RETURNS SETOF graphile_worker._private_jobs
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT seen.* FROM pulse.complete_jobs(job_ids) AS ended,
         LATERAL graphile_worker._private_row(ended) AS seen;
END $$;
COMMENT ON FUNCTION graphile_worker.complete_jobs(bigint[]) IS
  'Completes jobs that wait or that failed for good, as pulse.complete_jobs does.';

CREATE OR REPLACE FUNCTION graphile_worker.permanently_fail_jobs(
    job_ids bigint[], error_message text = NULL)
  RETURNS SETOF graphile_worker._private_jobs
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  failed bigint[] := ARRAY(
    SELECT j.id FROM pulse.permanently_fail_jobs(job_ids, error_message) AS j);
BEGIN
  RETURN QUERY
  SELECT * FROM graphile_worker._private_jobs AS j WHERE j.id = ANY (failed) ORDER BY j.id;
END $$;
COMMENT ON FUNCTION graphile_worker.permanently_fail_jobs(bigint[], text) IS
  'Ends waiting jobs as failed for good, as pulse.permanently_fail_jobs does, and returns the '
  'failed jobs.';

CREATE OR REPLACE FUNCTION graphile_worker.reschedule_jobs(
    job_ids bigint[], run_at timestamptz = NULL, priority int = NULL, attempts int = NULL,
    max_attempts int = NULL)
  RETURNS SETOF graphile_worker._private_jobs
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT seen.*
    FROM pulse.reschedule_jobs(job_ids, reschedule_jobs.run_at, reschedule_jobs.priority,
                               reschedule_jobs.attempts, reschedule_jobs.max_attempts) AS changed,
         LATERAL graphile_worker._private_row(changed) AS seen;
END $$;
COMMENT ON FUNCTION graphile_worker.reschedule_jobs(bigint[], timestamptz, int, int, int) IS
  'Changes jobs that wait or that failed for good, as pulse.reschedule_jobs does. Raises PU004 for '
  'a value out of range, for a waiting job that would be left without an attempt, and for a failed '
  'job that would have used more attempts than max_attempts.';

CREATE OR REPLACE FUNCTION graphile_worker.force_unlock_workers(worker_ids text[]) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse.force_unlock_workers(worker_ids);
END $$;
COMMENT ON FUNCTION graphile_worker.force_unlock_workers(text[]) IS
  'Takes the jobs of the workers with these names, living workers too, as '
  'pulse.force_unlock_workers does. The views call the name of a worker locked_by.';
