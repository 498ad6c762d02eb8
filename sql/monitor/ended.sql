-- Single jobs for operators and observers: running jobs, and jobs that ended without success. No
-- view shows a payload, an error or a token.

CREATE OR REPLACE VIEW pulse.running_jobs AS
  SELECT j.id, j.identifier, j.queue_name, j.priority, j.attempts, j.max_attempts, j.crashes,
         j.worker_id, w.name AS worker, j.claimed_at, j.cancel_requested_at, j.progress,
         j.last_activity_at
    FROM pulse.job AS j LEFT JOIN pulse.worker AS w ON w.id = j.worker_id
   WHERE j.id = ANY (pulse_internal.running_ids(NULL)) AND j.state = 'running';
COMMENT ON VIEW pulse.running_jobs IS
  'Running jobs with their workers, read from an index: the cost follows the running jobs, not '
  'the waiting jobs.';
COMMENT ON COLUMN pulse.running_jobs.id IS 'Id of the job';
COMMENT ON COLUMN pulse.running_jobs.identifier IS 'Task of the job';
COMMENT ON COLUMN pulse.running_jobs.attempts IS
  'Attempts of the job, the running attempt included';
COMMENT ON COLUMN pulse.running_jobs.crashes IS 'Attempts that ended with the loss of the worker';
COMMENT ON COLUMN pulse.running_jobs.worker IS 'Name of the worker that has the job';
COMMENT ON COLUMN pulse.running_jobs.cancel_requested_at IS
  'When cancel_job asked for the end of the attempt; NULL without a request';
COMMENT ON COLUMN pulse.running_jobs.progress IS
  'The part that is done, from 0 to 1; NULL if the worker does not say';
COMMENT ON COLUMN pulse.running_jobs.last_activity_at IS 'When the worker last reported progress';
COMMENT ON COLUMN pulse.running_jobs.queue_name IS 'Named queue; NULL without one';
COMMENT ON COLUMN pulse.running_jobs.priority IS 'A lower number is claimed first';
COMMENT ON COLUMN pulse.running_jobs.max_attempts IS 'Attempts that the job has in all';
COMMENT ON COLUMN pulse.running_jobs.worker_id IS 'Worker that has the job';
COMMENT ON COLUMN pulse.running_jobs.claimed_at IS 'When the worker claimed the job';

CREATE OR REPLACE VIEW pulse.ended_jobs AS
  SELECT f.id, f.identifier, f.queue_name, f.priority, f.state, f.attempts, f.max_attempts,
         f.crashes, f.worker_id, f.created_at, f.run_at, f.claimed_at, f.finished_at
    FROM pulse.finished_job AS f WHERE f.state <> 'completed';
COMMENT ON VIEW pulse.ended_jobs IS
  'Jobs that ended without completing and are kept. Operators read payloads and errors in '
  'pulse.finished_job.';
COMMENT ON COLUMN pulse.ended_jobs.id IS 'Id of the job';
COMMENT ON COLUMN pulse.ended_jobs.identifier IS 'Task of the job';
COMMENT ON COLUMN pulse.ended_jobs.state IS 'failed, quarantined, cancelled or expired';
COMMENT ON COLUMN pulse.ended_jobs.crashes IS 'Attempts that ended with the loss of the worker';
COMMENT ON COLUMN pulse.ended_jobs.worker_id IS
  'Worker of the last attempt; NULL if the job never ran';
COMMENT ON COLUMN pulse.ended_jobs.queue_name IS 'Named queue; NULL without one';
COMMENT ON COLUMN pulse.ended_jobs.priority IS 'A lower number was claimed first';
COMMENT ON COLUMN pulse.ended_jobs.attempts IS 'Attempts consumed';
COMMENT ON COLUMN pulse.ended_jobs.max_attempts IS 'Attempts that the job had in all';
COMMENT ON COLUMN pulse.ended_jobs.created_at IS 'When the job was added';
COMMENT ON COLUMN pulse.ended_jobs.run_at IS 'Time at which the last attempt was due';
COMMENT ON COLUMN pulse.ended_jobs.claimed_at IS
  'When the last attempt was claimed; NULL if the job never ran';
COMMENT ON COLUMN pulse.ended_jobs.finished_at IS 'When the job ended';

CREATE OR REPLACE VIEW pulse.ended_by_hour AS
  SELECT pg_catalog.date_trunc('hour', f.finished_at) AS hour, f.identifier, f.state,
         pg_catalog.count(*) AS jobs, pg_catalog.max(f.finished_at) AS last_finished_at
    FROM pulse.finished_job AS f WHERE f.state <> 'completed'
   GROUP BY 1, 2, 3;
COMMENT ON VIEW pulse.ended_by_hour IS
  'Jobs that ended without completing and are kept, counted by the hour of the end and by task. A '
  'condition on hour reads only the jobs of the selected hours.';
COMMENT ON COLUMN pulse.ended_by_hour.hour IS
  'Begin of the hour, in the time zone of the session';
COMMENT ON COLUMN pulse.ended_by_hour.identifier IS 'Task of the jobs';
COMMENT ON COLUMN pulse.ended_by_hour.state IS 'failed, quarantined, cancelled or expired';
COMMENT ON COLUMN pulse.ended_by_hour.jobs IS 'How many jobs ended so in this hour';
COMMENT ON COLUMN pulse.ended_by_hour.last_finished_at IS 'When the last of the jobs ended';

CREATE OR REPLACE FUNCTION pulse_internal.count_completed(since timestamptz, bound int)
  RETURNS bigint
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (
  WITH RECURSIVE task (identifier) AS (
    (SELECT f.identifier FROM pulse.finished_job AS f
      WHERE f.state = 'completed' ORDER BY f.identifier LIMIT 1)
    UNION ALL
    SELECT (SELECT f.identifier FROM pulse.finished_job AS f
             WHERE f.state = 'completed' AND f.identifier > t.identifier
             ORDER BY f.identifier LIMIT 1)
      FROM task AS t WHERE t.identifier IS NOT NULL
  )
  SELECT count(*) FROM (
    SELECT FROM (SELECT t.identifier FROM task AS t LIMIT 100) AS t CROSS JOIN LATERAL (
      SELECT FROM pulse.finished_job AS f
       WHERE f.state = 'completed' AND f.identifier = t.identifier AND f.finished_at > since
       LIMIT bound) AS c
     LIMIT bound) AS c);
END $$;
COMMENT ON FUNCTION pulse_internal.count_completed(timestamptz, int) IS
  'Counts the kept completed jobs of 100 tasks that ended since a moment, up to a bound.';

-- As text: the update that adds the state expired makes the function too, and a session that parses
-- a comparison of states reads the casts of fifty types.
CREATE OR REPLACE VIEW pulse_internal.not_completed AS
  SELECT f.state::text AS state, f.finished_at FROM pulse.finished_job AS f
   WHERE f.state <> 'completed';
COMMENT ON VIEW pulse_internal.not_completed IS 'Kept jobs that ended without completing.';

CREATE OR REPLACE FUNCTION pulse_internal.count_not_completed(
    since timestamptz, bound int, OUT failed bigint, OUT quarantined bigint, OUT cancelled bigint,
    OUT expired bigint, OUT is_cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  SELECT count(*) FILTER (WHERE e.state = 'failed'),
         count(*) FILTER (WHERE e.state = 'quarantined'),
         count(*) FILTER (WHERE e.state = 'cancelled'),
         count(*) FILTER (WHERE e.state = 'expired'), count(*) >= bound
    INTO failed, quarantined, cancelled, expired, is_cut
    FROM (SELECT n.state FROM pulse_internal.not_completed AS n
           WHERE n.finished_at > since
           ORDER BY n.finished_at DESC LIMIT bound) AS e;
END $$;
COMMENT ON FUNCTION pulse_internal.count_not_completed(timestamptz, int) IS
  'Counts the kept jobs that ended since a moment without completing, the last jobs up to a bound '
  'in all; is_cut: there may be more.';

CREATE OR REPLACE FUNCTION pulse_internal.quarantined_since(
    since timestamptz, bound int, OUT jobs bigint, OUT last_id bigint, OUT last_identifier text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  SELECT count(*), (array_agg(q.id))[1], (array_agg(q.identifier))[1]
    INTO jobs, last_id, last_identifier
    FROM (SELECT f.id, f.identifier FROM pulse.finished_job AS f
           WHERE f.state = 'quarantined' AND f.finished_at > since
           ORDER BY f.finished_at DESC LIMIT bound) AS q;
END $$;
COMMENT ON FUNCTION pulse_internal.quarantined_since(timestamptz, int) IS
  'Counts the kept jobs that were quarantined since a moment, up to a bound, and names the last.';

-- Operators delete ended jobs that they have read, before the retention ends.
CREATE OR REPLACE FUNCTION pulse.delete_finished(
    job_ids bigint[] = NULL, older_than interval = NULL, state pulse.finished_state = NULL,
    max_jobs int = 10000)
  RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  before timestamptz := pulse.now() - pulse_internal.checked_age('older_than', older_than);
  deleted int;
BEGIN
  PERFORM pulse_internal.check_count('max_jobs', max_jobs, 1, 1000000);
  IF job_ids IS NULL AND older_than IS NULL AND delete_finished.state IS NULL THEN
    RAISE EXCEPTION 'delete_finished needs job_ids, older_than or state' USING
      ERRCODE = 'PU004', HINT = 'older_than => ''0'' deletes finished jobs of any age.';
  END IF;
  LOCK TABLE pulse.finished_job, pulse.dependency IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.refuse_lost(job_ids);
  deleted := pulse_internal.delete_records(ARRAY(
    SELECT o.ctid FROM pulse.finished_job AS o
     WHERE (job_ids IS NULL OR o.id = ANY (job_ids))
       AND (before IS NULL OR o.finished_at <= before)
       AND (delete_finished.state IS NULL OR o.state = delete_finished.state)
       AND NOT pulse_internal.is_waited_for(o.id)
     LIMIT max_jobs
       FOR UPDATE SKIP LOCKED));
  RAISE LOG '% deleted % finished jobs', session_user, deleted USING
    DETAIL = format('job_ids: %s, older_than: %s, state: %s.',
                    coalesce(cardinality(job_ids)::text, 'any'), coalesce(older_than::text, 'any'),
                    coalesce(delete_finished.state::text, 'any'));
  RETURN deleted;
END $$;
COMMENT ON FUNCTION pulse.delete_finished(bigint[], interval, pulse.finished_state, int) IS
  'Deletes finished jobs and returns how many: the jobs that match each condition given, at most '
  'max_jobs (1 to 1000000); repeat the call while it returns max_jobs. NULL sets no condition. '
  'The attempts of the jobs stay until keep_attempts. A line of the server''s log says which role '
  'deleted how many. Jobs locked by another transaction stay, and jobs for which others wait. '
  'Raises PU004 without any condition and for max_jobs out of range, PU005 for an id lost in a '
  'failover.';

-- A traceback names the error at the end, a stack of frames at the beginning.
CREATE OR REPLACE FUNCTION pulse_internal.excerpt(error text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN length(error) <= 500 THEN error
              ELSE left(error, 249) || chr(10) || right(error, 250) END;
COMMENT ON FUNCTION pulse_internal.excerpt(text) IS
  'Returns an error of at most 500 characters; of a longer one the first 249 and the last 250.';
