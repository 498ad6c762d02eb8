-- Which waiting jobs are due: time moves without a commit, so no counter knows. One walk over the
-- index of a task or queue counts due and later jobs of each priority up to a share
-- (extension/counters/due_walk.cpp): all jobs where the jobs are few, else that there are more.

-- In a view, not in each query, and elsewhere states are compared as text: a session that parses a
-- comparison of states reads the casts of fifty types.
CREATE OR REPLACE VIEW pulse_internal.ready_job AS
  SELECT j.identifier, j.priority, j.run_at FROM pulse.job AS j
   WHERE j.index_lane = 'o' AND j.state = 'ready';
COMMENT ON VIEW pulse_internal.ready_job IS 'Jobs that wait for a worker or their time.';

CREATE OR REPLACE FUNCTION pulse_internal.count_due(
    of_kind text, names text[], latest timestamptz[], moment timestamptz, due_share bigint,
    future_share bigint, pages bigint = NULL)
  RETURNS TABLE (name text, due bigint, future bigint, soon bigint, oldest timestamptz,
                 next_due timestamptz, more_due boolean, more_future boolean, more_soon boolean)
  LANGUAGE c STABLE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'pulse_count_due';
COMMENT ON FUNCTION
  pulse_internal.count_due(text, text[], timestamptz[], timestamptz, bigint, bigint, bigint) IS
  'Counts the ready jobs of each task (of_kind task), or the jobs parked behind each queue '
  '(queue), that are due at a moment, are not, and fall due within a minute, and tells since when '
  'the oldest has been due and when the next falls due. Of a name the function reads a share of '
  'due jobs and a share of future jobs (NULL: all), and beyond one job of each of 20 priorities; '
  'more_due, more_future, more_soon: there may be more. No job of a name is due later than latest '
  '(NULL: not known). Each name stands once in names; the function reads the names in their order '
  'as far as the pages reach (NULL: all), and returns no row of further names.';

CREATE OR REPLACE FUNCTION pulse_internal.due_of_tasks(
    names text[], latest timestamptz[], bound int)
  RETURNS TABLE (name text, due bigint, future bigint, soon bigint, oldest timestamptz,
                 more_due boolean, more_future boolean, more_soon boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  share CONSTANT int := greatest(bound / greatest(cardinality(names), 1), 1);
BEGIN
  RETURN QUERY
  SELECT c.name, c.due, c.future, c.soon, c.oldest, c.more_due, c.more_future, c.more_soon
    FROM pulse_internal.count_due('task', names, latest, pulse.now(), share, share) AS c;
END $$;
COMMENT ON FUNCTION pulse_internal.due_of_tasks(text[], timestamptz[], int) IS
  'Counts ready jobs of tasks as count_due() does, within a bound that the tasks share.';

-- A count of all ready jobs makes either number exact if the other number is exact. So of many
-- tasks the function first counts due jobs, and future jobs only to tell how many fall due soon.
CREATE OR REPLACE FUNCTION pulse_internal.due_jobs(
    names text[], ready bigint[], latest timestamptz[], moment timestamptz, counts_soon boolean,
    pages bigint)
  RETURNS TABLE (name text, due bigint, future bigint, soon bigint, oldest timestamptz,
                 is_cut boolean, more_soon boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  few CONSTANT int := 10;
  are_few CONSTANT boolean := cardinality(names) <= few;
  share CONSTANT int := greatest(300 / greatest(cardinality(names), 1), 1);
BEGIN
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT n.* FROM unnest(names, ready, latest) WITH ORDINALITY AS n (name, ready, latest, place)
  ), seen AS MATERIALIZED (
    SELECT a.name, a.ready, a.place, a.latest > moment AS may_have_future, c.due, c.future, c.soon,
           c.oldest, c.more_due, c.more_soon,
           CASE WHEN are_few OR counts_soon THEN c.more_future ELSE a.latest > moment END
             AS more_future
      FROM pulse_internal.count_due('task', names, latest, moment, share,
             CASE WHEN are_few OR counts_soon THEN share ELSE 0 END, pages) AS c
      JOIN asked AS a ON a.name = c.name
  ), more AS MATERIALIZED (
    -- The first tasks with more jobs to read share a bound alone.
    SELECT s.name FROM seen AS s
     WHERE s.more_due AND s.more_future AND NOT are_few ORDER BY s.place LIMIT few
  ), best AS (
    SELECT s.name, s.ready, s.due, s.future, s.soon, s.oldest, s.more_due, s.more_future,
           s.more_soon
      FROM seen AS s WHERE s.name NOT IN (SELECT m.name FROM more AS m)
    UNION ALL
    SELECT s.name, s.ready, c.due, c.future, c.soon, c.oldest, c.more_due, c.more_future,
           c.more_soon
      FROM pulse_internal.count_due('task', ARRAY(SELECT m.name FROM more AS m), NULL, moment,
             10, 10) AS c
      JOIN seen AS s ON s.name = c.name
  )
  SELECT b.name,
         CASE WHEN b.more_future THEN b.due ELSE greatest(b.ready - b.future, b.due) END,
         CASE WHEN b.more_due OR NOT b.more_future THEN b.future
              ELSE greatest(b.ready - b.due, b.future) END,
         b.soon, b.oldest, b.more_due AND b.more_future, b.more_soon
    FROM best AS b;
END $$;
COMMENT ON FUNCTION
  pulse_internal.due_jobs(text[], bigint[], timestamptz[], timestamptz, boolean, bigint) IS
  'Splits the counted ready jobs of each task into due and future jobs, with counts_soon also the '
  'jobs that fall due within a minute; is_cut: due and future are the jobs that the function read. '
  'latest: no job of the task has a later run_at. The function reads the tasks in their order as '
  'far as the pages reach, and returns no row of further tasks.';

-- The oldest due job of a queue is the first job of some priority.
CREATE OR REPLACE FUNCTION pulse_internal.oldest_of_queues(names text[])
  RETURNS TABLE (name text, oldest timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  SELECT parked.name, least(open.oldest, parked.oldest)
    FROM pulse_internal.count_due('queue', names, NULL, moment, 1, 0) AS parked
   CROSS JOIN LATERAL (
     SELECT min(t.run_at) FILTER (WHERE t.state = 'ready' AND t.run_at <= moment) AS oldest
       FROM (SELECT j.state::text AS state, j.run_at FROM pulse.job AS j
              WHERE j.queue_name = parked.name AND j.queue_name IS NOT NULL
                AND j.index_lane IN ('o', 'r') LIMIT 4) AS t) AS open;
END $$;
COMMENT ON FUNCTION pulse_internal.oldest_of_queues(text[]) IS
  'Tells since when the oldest job of each queue has been due, among its first four open jobs and '
  'the parked jobs.';

CREATE OR REPLACE FUNCTION pulse_internal.count_queues(names text[], share bigint)
  RETURNS TABLE (name text, ready bigint, running bigint, due bigint, future bigint,
                 is_cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  SELECT parked.name, open.ready, open.jobs - open.ready, parked.due, parked.future,
         parked.more_due OR parked.more_future OR coalesce(open.jobs >= share, false)
    FROM pulse_internal.count_due('queue', names, NULL, pulse.now(), share, share) AS parked
   CROSS JOIN LATERAL (
     SELECT count(*) AS jobs, count(*) FILTER (WHERE t.state = 'ready') AS ready
       FROM (SELECT j.state::text AS state FROM pulse.job AS j
              WHERE j.queue_name = parked.name AND j.queue_name IS NOT NULL
                AND j.index_lane IN ('o', 'r') LIMIT share) AS t) AS open;
END $$;
COMMENT ON FUNCTION pulse_internal.count_queues(text[], bigint) IS
  'Counts open and running jobs of each queue up to a share (NULL: all), and parked jobs by '
  'whether they are due, as count_due() does; is_cut: there may be more.';

-- The walk ends after so many priorities with a job that is counted, so the due jobs are counted
-- without the later ones.
CREATE OR REPLACE FUNCTION pulse_internal.due_of_task(
    identifier text, moment timestamptz, bound int, OUT jobs bigint, OUT oldest timestamptz,
    OUT next_due timestamptz, OUT more_due boolean)
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT least(d.due, bound), d.oldest, n.next_due, d.more_due
    FROM pulse_internal.count_due('task', ARRAY[identifier], NULL, moment, bound, 0) AS d
    LEFT JOIN LATERAL (
      SELECT f.next_due FROM pulse_internal.count_due(
               'task', ARRAY[identifier], NULL, moment, 1, 100) AS f
       WHERE d.due = 0) AS n ON true;
$$;
COMMENT ON FUNCTION pulse_internal.due_of_task(text, timestamptz, int) IS
  'Counts the open jobs of a task that are due at a moment, up to a bound, and tells which has '
  'been due for longest; where none is due, when the next job falls due. more_due: there may be '
  'more.';

CREATE OR REPLACE FUNCTION pulse_internal.due_parked(
    queue_name text, moment timestamptz, bound int, OUT jobs bigint, OUT oldest timestamptz)
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT least(c.due, bound), c.oldest
    FROM pulse_internal.count_due('queue', ARRAY[queue_name], NULL, moment, bound, 0) AS c;
$$;
COMMENT ON FUNCTION pulse_internal.due_parked(text, timestamptz, int) IS
  'Returns how many parked jobs of a queue are due, up to a bound, and since when the first is.';
