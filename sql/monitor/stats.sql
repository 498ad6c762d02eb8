-- Depth and age of waiting and running jobs, cheap enough to be polled. Commits count the jobs
-- (depths.sql). Where nothing is counted, as without preloading, jobs are counted from indexes up
-- to a bound (uncounted.sql). The oldest job of each priority of a task or queue stands first on
-- its index, so an age is exact for 20 priorities.

-- First come the names of which nothing was claimed for longest, so that a stuck one is listed,
-- then names that have but future jobs, and names without waiting jobs last. A name whose first due
-- job was claimed since the last recount seems to have due jobs until the next recount: of such a
-- name something was claimed lately.
CREATE OR REPLACE FUNCTION pulse_internal.ranked_depths(of_kind text, moment timestamptz)
  RETURNS TABLE (kind text, name text, ready bigint, parked bigint, running bigint,
                 latest_run_at timestamptz, has_but_future boolean, is_exact boolean,
                 counted_at timestamptz, place bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT d.kind, d.name, d.ready, d.parked, d.running, d.latest_run_at,
         (d.soonest_run_at > moment) IS TRUE, d.is_exact, d.counted_at,
         row_number() OVER (
           PARTITION BY d.kind
           ORDER BY d.name IS NULL, d.ready + d.parked = 0, (d.soonest_run_at > moment) IS TRUE,
                    d.claimed_at NULLS FIRST, d.name COLLATE "C")
    FROM pulse_internal.depths() AS d
   WHERE d.kind <> 'all' AND (of_kind IS NULL OR d.kind = of_kind);
END $$;
COMMENT ON FUNCTION pulse_internal.ranked_depths(text, timestamptz) IS
  'Returns the depths of tasks and queues, and in which place each is listed; has_but_future: no '
  'waiting job is due.';

-- Nothing reads the jobs that a row without a name adds up.
CREATE OR REPLACE FUNCTION pulse_internal.counted_stats(max_rows int, of_kind text)
  RETURNS TABLE (kind text, name text, ready bigint, future bigint, parked bigint, running bigint,
                 oldest timestamptz, estimated boolean, paused boolean, waiting bigint,
                 names bigint, counted_at timestamptz, oldest_is_known boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  -- So many are checked for their oldest job.
  most_queues CONSTANT int := 100;
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  WITH ranked AS MATERIALIZED (
    SELECT r.* FROM pulse_internal.ranked_depths(of_kind, moment) AS r
  ), listed AS MATERIALIZED (
    SELECT r.* FROM ranked AS r WHERE r.name IS NOT NULL AND r.place <= max_rows
  ), asked AS (
    SELECT array_agg(l.name ORDER BY l.place) AS names,
           array_agg(l.ready ORDER BY l.place) AS ready,
           array_agg(l.latest_run_at ORDER BY l.place) AS latest
      FROM listed AS l WHERE l.kind = 'task' AND l.ready > 0 AND NOT l.has_but_future
  ), due AS MATERIALIZED (
    SELECT j.* FROM asked AS a
     CROSS JOIN LATERAL pulse_internal.due_jobs(a.names, a.ready, a.latest, moment, false, 700) AS j
     WHERE a.names IS NOT NULL
  ), old AS MATERIALIZED (
    SELECT q.* FROM pulse_internal.oldest_of_queues(ARRAY(
      SELECT l.name FROM listed AS l
       WHERE l.kind = 'queue' AND l.ready + l.parked > 0 AND l.place <= most_queues)) AS q
  ), pause AS MATERIALIZED (
    SELECT u.name FROM unnest(pulse_internal.paused_queues(
             ARRAY(SELECT l.name FROM listed AS l WHERE l.kind = 'queue'))) AS u (name)
  ), told AS (
    SELECT l.kind, l.name,
           CASE WHEN d.name IS NOT NULL THEN d.due
             WHEN l.kind = 'task' AND l.has_but_future THEN 0
             -- The call has not read the jobs, so which of the jobs are due is not known.
             WHEN l.kind = 'task' AND l.latest_run_at > moment THEN 0
             ELSE l.ready END AS ready,
           CASE WHEN l.kind <> 'task' THEN NULL WHEN l.has_but_future THEN l.ready
             ELSE coalesce(d.future, 0) END AS future, l.parked, l.running,
           coalesce(d.oldest, o.oldest) AS oldest,
           NOT l.is_exact OR coalesce(
             d.is_cut, l.kind = 'task' AND l.ready > 0 AND l.latest_run_at > moment
               AND NOT l.has_but_future) AS estimated,
           CASE WHEN l.kind = 'queue' THEN p.name IS NOT NULL END AS paused,
           l.ready + l.parked AS waiting, 1::bigint AS names, l.counted_at,
           coalesce(d.name, o.name) IS NOT NULL OR l.ready = 0 AND (l.kind = 'task' OR l.parked = 0)
             OR l.kind = 'task' AND l.has_but_future AS oldest_is_known, l.has_but_future, l.place
      FROM listed AS l
      LEFT JOIN due AS d ON l.kind = 'task' AND d.name = l.name
      LEFT JOIN old AS o ON l.kind = 'queue' AND o.name = l.name
      LEFT JOIN pause AS p ON l.kind = 'queue' AND p.name = l.name
    UNION ALL
    SELECT r.kind, NULL, sum(r.ready)::bigint, NULL, sum(r.parked)::bigint,
           sum(r.running)::bigint, NULL, NOT bool_and(r.is_exact), NULL,
           sum(r.ready + r.parked)::bigint,
           CASE WHEN bool_and(r.name IS NOT NULL) THEN count(*) END, min(r.counted_at), false, NULL,
           NULL
      FROM ranked AS r WHERE r.name IS NULL OR r.place > max_rows GROUP BY r.kind
  )
  SELECT t.kind, t.name, t.ready, t.future, t.parked, t.running, t.oldest, t.estimated, t.paused,
         t.waiting, t.names, t.counted_at, t.oldest_is_known
    FROM told AS t
   ORDER BY t.kind DESC, t.name IS NULL, t.waiting = 0,
            t.has_but_future OR t.ready = 0 AND t.parked = 0 AND t.future > 0, t.place;
END $$;
COMMENT ON FUNCTION pulse_internal.counted_stats(int, text) IS
  'Returns depth and age of tasks and queues as commits count them.';

CREATE OR REPLACE FUNCTION pulse.stats(max_rows int = 1000, of_kind text = NULL)
  RETURNS TABLE (kind text, name text, ready bigint, future bigint, parked bigint, running bigint,
                 oldest_due_at timestamptz, oldest_due_age interval, estimated boolean,
                 paused boolean, waiting bigint, names bigint, counted_at timestamptz,
                 oldest_is_known boolean)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  PERFORM pulse_internal.check_count('max_rows', stats.max_rows, 2, 10000);
  IF of_kind NOT IN ('task', 'queue') THEN
    RAISE EXCEPTION 'of_kind is %', quote_literal(of_kind) USING
      ERRCODE = 'PU004', HINT = 'Use task or queue; NULL means both.';
  END IF;
  IF pulse_internal.has_depths() THEN
    RETURN QUERY
    SELECT c.kind, c.name, c.ready, c.future, c.parked, c.running, c.oldest, moment - c.oldest,
           c.estimated, c.paused, c.waiting, c.names, c.counted_at, c.oldest_is_known
      FROM pulse_internal.counted_stats(stats.max_rows, of_kind) AS c;
  ELSE
    RETURN QUERY
    SELECT u.kind, u.name, u.ready, u.future, u.parked, u.running, u.oldest, moment - u.oldest,
           u.estimated, CASE WHEN u.kind = 'queue' AND u.name IS NOT NULL THEN
             pulse_internal.is_queue_paused(u.name) END,
           CASE WHEN NOT u.estimated THEN u.ready + coalesce(u.future, 0) + u.parked END,
           CASE WHEN u.name IS NOT NULL THEN 1::bigint END, moment, u.name IS NOT NULL
      FROM pulse_internal.uncounted_stats(stats.max_rows, of_kind) AS u;
  END IF;
END $$;
COMMENT ON FUNCTION pulse.stats(int, text) IS
  'Returns depth and age of each task and queue, at most max_rows (2 to 10000) of either kind: '
  'first those of which nothing was claimed for longest, those that have but future jobs last. '
  'Where there are more, a last row without a name adds them up. of_kind: task or queue, where '
  'one is enough. The view pulse.stats describes the columns. Raises PU004 for max_rows out of '
  'range and for another kind.';

CREATE OR REPLACE VIEW pulse.stats AS
  SELECT s.kind, s.name, s.ready, s.future, s.parked, s.running, s.oldest_due_at, s.oldest_due_age,
         s.estimated, s.paused, s.waiting, s.names, s.counted_at, s.oldest_is_known
    FROM pulse.stats() AS s;
COMMENT ON VIEW pulse.stats IS
  'Depth and age of waiting and running jobs, one row per task and per queue, cheap enough to be '
  'polled.';
COMMENT ON COLUMN pulse.stats.kind IS 'task or queue';
COMMENT ON COLUMN pulse.stats.ready IS 'Due jobs of a task; open jobs of a queue, due or not';
COMMENT ON COLUMN pulse.stats.future IS 'Jobs of a task that are not due yet; NULL for a queue';
COMMENT ON COLUMN pulse.stats.parked IS
  'Jobs behind their queue or waiting for other jobs, future ones included';
COMMENT ON COLUMN pulse.stats.oldest_due_at IS
  'run_at of the job that has been due for longest, of a task among its open jobs, of the first 20 '
  'priorities with due jobs; NULL without one, and where oldest_is_known is false';
COMMENT ON COLUMN pulse.stats.oldest_due_age IS 'How long that job has been due';
COMMENT ON COLUMN pulse.stats.estimated IS
  'A count of this row is not exact: a change waits for the next recount, or the task has more due '
  'and more future jobs than were checked: then ready and future are what was seen of them, and '
  'waiting is exact. Where the server does not count, jobs are counted up to 1,000, and what is '
  'shown is what was seen';
COMMENT ON COLUMN pulse.stats.paused IS
  'The queue or a level above it is paused, by an operator or by the end of a job; NULL for a task';
COMMENT ON COLUMN pulse.stats.name IS
  'Name of the task or queue; NULL: what further ones have together, where ready counts future '
  'jobs, too';
COMMENT ON COLUMN pulse.stats.running IS 'Jobs that a worker has';
COMMENT ON COLUMN pulse.stats.waiting IS
  'Ready, future and parked jobs together; NULL: more than were checked, and no commit counts';
COMMENT ON COLUMN pulse.stats.names IS
  'How many tasks or queues the row is about; NULL: more than the server counts by name';
COMMENT ON COLUMN pulse.stats.counted_at IS
  'When the jobs were counted: calls of a transaction within a second have the same count, and at '
  'REPEATABLE READ all calls';
COMMENT ON COLUMN pulse.stats.oldest_is_known IS
  'Whether the call has read the oldest due job: not that of a task beyond the first tasks that '
  '700 pages tell of (some 90 to 180), of a queue beyond the first 100, or of names that a row '
  'adds up';
