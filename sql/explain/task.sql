-- explain_task(): the reasons that keep the waiting jobs of a task in general. No index has the
-- parked jobs of one task. So a call first reads the queues that are likely to have parked jobs of
-- the task, and walks over all queues only where the likely queues have none.

-- Queues that have had jobs of the task, or are to have some.
CREATE OR REPLACE FUNCTION pulse_internal.likely_queues(identifier text) RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  SELECT DISTINCT q.queue_name FROM (
    SELECT t.queue AS queue_name FROM pulse.task AS t
     WHERE t.identifier = likely_queues.identifier
    UNION ALL
    (SELECT s.queue_name FROM pulse.schedule AS s
      WHERE s.identifier = likely_queues.identifier LIMIT 100)
    UNION ALL
    (SELECT j.queue_name FROM pulse.job AS j
      WHERE j.index_lane = 'o' AND j.identifier = likely_queues.identifier LIMIT 100)
    UNION ALL
    (SELECT f.queue_name FROM pulse.finished_job AS f
      WHERE f.state = 'completed' AND f.identifier = likely_queues.identifier
      ORDER BY f.finished_at DESC LIMIT 100)) AS q
   WHERE q.queue_name IS NOT NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.likely_queues(text) IS
  'Returns the queues of a task, of its schedules, of 100 of its open jobs, and of the last 100 of '
  'its jobs that completed and are kept.';

CREATE OR REPLACE FUNCTION pulse_internal.first_parked_of(
    identifier text, queues text[], lower timestamptz, upper timestamptz, max_jobs int)
  RETURNS TABLE (queue_name text, job_id bigint, run_at timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  SELECT q.name, f.id, f.run_at
    FROM unnest(queues) AS q (name) CROSS JOIN LATERAL (
      SELECT l.id, l.run_at
        FROM (SELECT j.id, j.run_at, j.identifier FROM pulse.job AS j
               WHERE j.index_lane = 'p'
                 AND pulse_internal.queue_bucket(j.queue_name) = pulse_internal.queue_bucket(q.name)
                 AND j.queue_name = q.name
               ORDER BY j.priority, j.run_at, j.id LIMIT max_jobs) AS l
       WHERE l.identifier = first_parked_of.identifier
         AND l.run_at BETWEEN lower AND upper LIMIT 1) AS f
   ORDER BY f.run_at LIMIT 10;
END $$;
COMMENT ON FUNCTION
  pulse_internal.first_parked_of(text, text[], timestamptz, timestamptz, int) IS
  'Returns the first job of a task that is due between two times in each of these queues, among '
  'the first max_jobs parked jobs of each queue: at most ten queues, the queues whose jobs are '
  'due first.';

CREATE OR REPLACE FUNCTION pulse_internal.parked_of_task(
    identifier text, lower timestamptz, upper timestamptz, walks boolean)
  RETURNS TABLE (queue_name text, job_id bigint, run_at timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  bound CONSTANT int := 1000;
  max_queues CONSTANT int := 20000;
  max_jobs CONSTANT int := 40000;
  queues text[];
BEGIN
  RETURN QUERY
  SELECT l.queue_name, min(l.id), min(l.run_at) FROM (
    SELECT j.id, j.identifier, j.queue_name, j.run_at FROM pulse.job AS j
     WHERE j.index_lane = 'p' AND j.run_at BETWEEN lower AND upper
     ORDER BY j.run_at LIMIT bound) AS l
   WHERE l.identifier = parked_of_task.identifier
   GROUP BY l.queue_name ORDER BY min(l.run_at) LIMIT 10;
  -- Found, or there are no others.
  IF FOUND OR (SELECT count(*) < bound FROM (
                 SELECT FROM pulse.job AS j
                  WHERE j.index_lane = 'p' AND j.run_at BETWEEN lower AND upper LIMIT bound) AS l)
  THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT * FROM pulse_internal.first_parked_of(
    identifier, ARRAY(SELECT pulse_internal.likely_queues(identifier)), lower, upper, bound);
  IF FOUND OR NOT walks THEN
    RETURN;
  END IF;
  queues := ARRAY(SELECT pulse_internal.parked_queues(max_queues + 1));
  RETURN QUERY SELECT * FROM pulse_internal.first_parked_of(
    identifier, queues, lower, upper, least(greatest(max_jobs / cardinality(queues), 2), bound));
  IF NOT FOUND AND cardinality(queues) > max_queues THEN
    RETURN NEXT;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.parked_of_task(text, timestamptz, timestamptz, boolean) IS
  'Returns at most ten queues with parked jobs of a task that are due between two times, and the '
  'first job of each queue. The function reads the 1,000 parked jobs that have been due for '
  'longest; where none of the jobs is of the task, the likely queues of the task, 1,000 jobs '
  'each; where the likely queues have none, if walks is true, the first 20,000 queues, up to '
  '40,000 jobs. A row of NULLs: there are more queues, and the function found no job.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_queues_of(identifier text)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 3
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  found_in record;
  job pulse.job;
  promotion record;
  reason pulse_internal.explanation;
  told text[] := '{}';
BEGIN
  FOR found_in IN
    SELECT p.queue_name, p.job_id
      FROM pulse_internal.parked_of_task(identifier, '-infinity', pulse.now(), true) AS p
  LOOP
    IF found_in.queue_name IS NULL THEN
      RETURN NEXT pulse_internal.explained('queue', 'unknown',
        'More than 20,000 queues have parked jobs, and of the first 20,000 none has one of the '
        'task at its front. explain_job() tells of a job.');
      RETURN;
    END IF;
    SELECT * INTO job FROM pulse.job AS j WHERE j.id = found_in.job_id;
    SELECT * INTO promotion FROM pulse_internal.promotion_of(job.queue_name, job.id);
    CONTINUE WHEN job.id = ANY (promotion.opened);
    -- All queues within a level have the reason of the level.
    FOR reason IN SELECT * FROM pulse_internal.explain_queue(job, promotion.opened) LOOP
      CONTINUE WHEN reason.detail = ANY (told);
      told := told || reason.detail;
      RETURN NEXT reason;
    END LOOP;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_queues_of(text) IS
  'Explains the reasons that keep at most ten queues from their first jobs of this task; '
  'parked_of_task() tells which queues the function reads.';

-- The children of a parent stand beside each other in the index.
CREATE OR REPLACE FUNCTION pulse_internal.waiting_of_task(
    identifier text, max_parents int, OUT jobs bigint, OUT parents bigint[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  WITH RECURSIVE walk (bucket, parent_id) AS (
    (SELECT pulse_internal.parent_bucket(j.waits_on), j.waits_on FROM pulse.job AS j
      WHERE j.index_lane = 'w'
      ORDER BY pulse_internal.parent_bucket(j.waits_on), j.waits_on LIMIT 1)
    UNION ALL
    SELECT n.bucket, n.parent_id FROM walk AS w CROSS JOIN LATERAL (
      SELECT pulse_internal.parent_bucket(j.waits_on) AS bucket, j.waits_on AS parent_id
        FROM pulse.job AS j
       WHERE j.index_lane = 'w'
         AND (pulse_internal.parent_bucket(j.waits_on), j.waits_on) > (w.bucket, w.parent_id)
       ORDER BY pulse_internal.parent_bucket(j.waits_on), j.waits_on LIMIT 1) AS n
  )
  SELECT count(*), array_agg(DISTINCT w.parent_id) INTO jobs, parents
    FROM (SELECT * FROM walk LIMIT max_parents) AS w CROSS JOIN LATERAL (
      SELECT c.identifier FROM (
        SELECT j.identifier FROM pulse.job AS j
         WHERE j.index_lane = 'w' AND pulse_internal.parent_bucket(j.waits_on) = w.bucket
           AND j.waits_on = w.parent_id
         ORDER BY pulse_internal.parent_bucket(j.waits_on), j.waits_on, j.id LIMIT 2) AS c
       WHERE c.identifier = waiting_of_task.identifier) AS f;
END $$;
COMMENT ON FUNCTION pulse_internal.waiting_of_task(text, int) IS
  'Returns how many jobs of a task wait for other jobs, and for which parents, among the first '
  'two jobs that wait for each of max_parents parents.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_parents_of(identifier text)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off AS $$
DECLARE
  bound CONSTANT int := 1000;
  found record;
  is_part boolean;
BEGIN
  SELECT count(*) AS checked,
         count(*) FILTER (WHERE w.identifier = explain_parents_of.identifier) AS jobs,
         array_agg(DISTINCT w.waits_on) FILTER (WHERE w.identifier = explain_parents_of.identifier)
           AS parents
    INTO found
    FROM (SELECT j.identifier, j.waits_on FROM pulse.job AS j WHERE j.index_lane = 'w' LIMIT bound)
      AS w;
  is_part := found.checked = bound;
  IF is_part AND found.jobs = 0 THEN
    SELECT w.jobs, w.parents INTO found.jobs, found.parents
      FROM pulse_internal.waiting_of_task(identifier, 5 * bound) AS w;
  END IF;
  IF found.jobs > 0 THEN
    RETURN NEXT pulse_internal.explained('job', 'parents', format(
      'Jobs of it that wait for other jobs: %s; explain_job() tells of each.',
      CASE WHEN is_part THEN 'at least ' ELSE '' END || found.jobs), NULL,
      found.parents[1 : 100]);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_parents_of(text) IS
  'Explains that jobs of this task wait for other jobs: if some of them are among 1,000 waiting '
  'jobs, or among the children of 5,000 parents.';

CREATE OR REPLACE FUNCTION pulse.explain_task(identifier text)
  RETURNS TABLE (kind text, blocker text, detail text, until timestamptz, job_ids bigint[],
                 worker_ids bigint[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 3
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 1000;
  due record;
  next_parked timestamptz;
BEGIN
  PERFORM pulse_internal.refuse_standby('explain_task()');
  PERFORM pulse_internal.check_identifier(explain_task.identifier);
  SELECT * INTO due
    FROM pulse_internal.due_of_task(explain_task.identifier, pulse.now(), bound + 1) AS d;
  IF due.jobs = 0 THEN
    next_parked := (
      SELECT min(p.run_at) FROM pulse_internal.parked_of_task(
        explain_task.identifier, pulse.now() + interval '1 us', 'infinity', false) AS p);
  END IF;
  RETURN QUERY SELECT * FROM pulse_internal.explain_closed();
  -- A parked job that the call has not found may be due earlier than the first open one.
  IF due.jobs = 0 AND num_nonnulls(due.next_due, next_parked) > 0 THEN
    RETURN QUERY SELECT * FROM pulse_internal.explained('job', 'future', format(
      'No open job of it is due; the next %sone is due at %s.',
      CASE WHEN (next_parked < due.next_due) IS NOT TRUE AND due.next_due IS NOT NULL
        THEN 'open ' END, least(due.next_due, next_parked)), least(due.next_due, next_parked));
  END IF;
  RETURN QUERY SELECT * FROM pulse_internal.explain_parents_of(explain_task.identifier);
  RETURN QUERY SELECT * FROM pulse_internal.explain_queues_of(explain_task.identifier);
  RETURN QUERY SELECT * FROM pulse_internal.explain_fleet(explain_task.identifier);
  RETURN QUERY SELECT * FROM pulse_internal.explained('line', 'place', CASE due.jobs
    WHEN 0 THEN 'No open job of it is due.'
    ELSE format('%s open jobs of it are due, the oldest since %s.',
                CASE WHEN due.jobs > bound THEN 'More than ' || bound
                  WHEN due.more_due THEN 'At least ' || due.jobs ELSE due.jobs::text END,
                due.oldest)
    END);
END $$;
COMMENT ON FUNCTION pulse.explain_task(text) IS
  'Explains the reasons for which jobs of a task wait in general, in rows like those of '
  'explain_job(). Of queues the function names at most ten: the queues of the task''s jobs among '
  'the 1,000 parked jobs that have been due for longest, else the queues where jobs of the task '
  'are added, open or were completed, else queues found among 20,000. Of jobs that wait for other '
  'jobs the function reads 1,000, else the children of 5,000 parents. Raises PU004 for a name that '
  'is empty or too long, 25006 on a standby.';
