-- Depth and age of waiting and running jobs, cheap enough to be polled. Commits count the jobs
-- (depths.sql). Where nothing is counted, as without preloading, jobs are counted from indexes up
-- to a bound, and estimated from a sample of the table's pages beyond it; the column `estimated`
-- says which. Ages are exact: the oldest job of each priority of a task or queue stands first on
-- its index.

CREATE OR REPLACE FUNCTION pulse_internal.sampled_part(pages int) RETURNS float8
  LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN least(1, pages::float8 * current_setting('block_size')::int
                  / greatest(pg_relation_size('pulse.job'), 1));
COMMENT ON FUNCTION pulse_internal.sampled_part(int) IS
  'Returns the part of the job table that this many pages are; 1 when it has no more pages.';

CREATE OR REPLACE FUNCTION pulse_internal.sample_of_minute() RETURNS float8
  LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN floor(extract(epoch FROM clock_timestamp()) / 60)::float8;
COMMENT ON FUNCTION pulse_internal.sample_of_minute() IS
  'Returns what chooses the pages of a sample: the same ones for a minute, so that they are in '
  'memory, and an estimate that is polled moves with the jobs alone.';

CREATE OR REPLACE FUNCTION pulse_internal.sample_jobs(part float8)
  RETURNS TABLE (identifier text, queue_name text, ready bigint, future bigint, parked bigint,
                 running bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET jit = off AS $$
DECLARE
  moment timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  SELECT j.identifier, j.queue_name,
         round(count(*) FILTER (WHERE j.state = 'ready' AND j.run_at <= moment) / part)::bigint,
         round(count(*) FILTER (WHERE j.state = 'ready' AND j.run_at > moment) / part)::bigint,
         round(count(*) FILTER (WHERE j.state = 'parked') / part)::bigint,
         round(count(*) FILTER (WHERE j.state = 'running') / part)::bigint
    FROM (SELECT s.identifier, s.queue_name, s.run_at, s.state::text AS state
            FROM pulse.job AS s TABLESAMPLE SYSTEM (part * 100)
                 REPEATABLE (pulse_internal.sample_of_minute())) AS j
   GROUP BY j.identifier, j.queue_name;
END $$;
COMMENT ON FUNCTION pulse_internal.sample_jobs(float8) IS
  'Counts jobs per task and queue on a part of the table''s pages, scaled up to the whole table.';

-- In a view, not in each query, and elsewhere states are compared as text: a session that parses a
-- comparison of states looks up the casts of fifty types.
CREATE OR REPLACE VIEW pulse_internal.ready_job AS
  SELECT j.identifier, j.priority, j.run_at FROM pulse.job AS j
   WHERE j.index_lane = 'o' AND j.state = 'ready';
COMMENT ON VIEW pulse_internal.ready_job IS 'Jobs that wait for a worker or their time.';

-- Ready jobs of each task and priority, in order of their index, so that one descent finds the next
-- pair and its first jobs: those of the first pairs up to half of what is left of the bound, those
-- of each further pair one. The first due one is the oldest.
CREATE OR REPLACE FUNCTION pulse_internal.count_tasks(max_count int, bound int)
  RETURNS TABLE (identifier text, ready bigint, future bigint, oldest timestamptz, cut boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  WITH RECURSIVE pair (identifier, priority, ready, future, oldest, cut, rest) AS (
    SELECT '' COLLATE "C", (-32768)::smallint, 0::bigint, 0::bigint, NULL::timestamptz, false, bound
    UNION ALL
    SELECT n.* FROM pair AS p CROSS JOIN LATERAL (
      SELECT f.identifier, f.priority, count(*) FILTER (WHERE f.run_at <= moment),
             count(*) FILTER (WHERE f.run_at > moment),
             min(f.run_at) FILTER (WHERE f.run_at <= moment),
             count(*) >= greatest(p.rest / 2, 1), p.rest - p.rest / 2
        FROM (SELECT j.identifier, j.priority, j.run_at FROM pulse_internal.ready_job AS j
               WHERE (j.identifier, j.priority) > (p.identifier, p.priority)
               ORDER BY j.identifier, j.priority, j.run_at LIMIT greatest(p.rest / 2, 1)) AS f
       GROUP BY f.identifier, f.priority ORDER BY f.identifier, f.priority LIMIT 1) AS n
  )
  SELECT p.identifier, sum(p.ready)::bigint, sum(p.future)::bigint, min(p.oldest), bool_or(p.cut)
    FROM (SELECT * FROM pair OFFSET 1 LIMIT max_count) AS p GROUP BY p.identifier;
END $$;
COMMENT ON FUNCTION pulse_internal.count_tasks(int, int) IS
  'Counts ready and future jobs per task, with the oldest due one, in the first max_count task '
  'priorities; cut: a count stopped at its bound.';

-- Queues in the order of their index, and the queues whose jobs have been due for longest.
CREATE OR REPLACE FUNCTION pulse_internal.waiting_queues(max_count int) RETURNS SETOF text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  WITH RECURSIVE walk (slot, queue_name) AS (
    (SELECT pulse_internal.queue_slot(j.queue_name), j.queue_name FROM pulse.job AS j
      WHERE j.index_lane = 'p' ORDER BY pulse_internal.queue_slot(j.queue_name),
      j.queue_name LIMIT 1)
    UNION ALL
    SELECT n.slot, n.queue_name FROM walk AS w CROSS JOIN LATERAL (
      SELECT pulse_internal.queue_slot(j.queue_name) AS slot, j.queue_name FROM pulse.job AS j
       WHERE j.index_lane = 'p'
         AND (pulse_internal.queue_slot(j.queue_name), j.queue_name) > (w.slot, w.queue_name)
       ORDER BY pulse_internal.queue_slot(j.queue_name), j.queue_name LIMIT 1) AS n
  ), late AS (
    SELECT o.queue_name, min(o.run_at) AS run_at FROM (
      SELECT j.queue_name, j.run_at FROM pulse.job AS j
       WHERE j.index_lane = 'p' ORDER BY j.run_at LIMIT max_count * 5) AS o
     GROUP BY o.queue_name ORDER BY 2 LIMIT max_count / 2
  ), known (queue_name, rank) AS (
    SELECT l.queue_name, 1 FROM late AS l
    UNION ALL (SELECT j.queue_name, 2 FROM pulse.job AS j
                WHERE j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r') LIMIT max_count)
    UNION ALL (SELECT w.queue_name, 3 FROM walk AS w LIMIT max_count)
  )
  SELECT k.queue_name FROM known AS k GROUP BY k.queue_name ORDER BY min(k.rank) LIMIT max_count;
END $$;
COMMENT ON FUNCTION pulse_internal.waiting_queues(int) IS
  'Returns at most max_count queues with live jobs; of more queues, some, among them those that '
  'have waited longest.';

CREATE OR REPLACE FUNCTION pulse_internal.count_queues(max_count int, bound int)
  RETURNS TABLE (queue_name text, ready bigint, parked bigint, running bigint, oldest timestamptz,
                 cut boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  WITH chosen AS MATERIALIZED (
    SELECT q.queue_name, pulse_internal.queue_slot(q.queue_name) AS slot,
           bound / count(*) OVER () + 1 AS share, pulse.now() AS now
      FROM pulse_internal.waiting_queues(max_count) AS q (queue_name)
  )
  SELECT c.queue_name, taken.ready, waiting.jobs, taken.running,
         least(taken.oldest, waiting.oldest), greatest(waiting.jobs, taken.jobs) >= c.share
    FROM chosen AS c
   CROSS JOIN LATERAL (
     SELECT count(*) AS jobs, count(*) FILTER (WHERE t.state = 'ready') AS ready,
            count(*) FILTER (WHERE t.state = 'running') AS running,
            min(t.run_at) FILTER (WHERE t.state = 'ready' AND t.run_at <= c.now) AS oldest
       FROM (SELECT j.state::text AS state, j.run_at FROM pulse.job AS j
              WHERE j.queue_name = c.queue_name AND j.queue_name IS NOT NULL
                AND j.index_lane IN ('o', 'r')
              LIMIT c.share) AS t) AS taken
   CROSS JOIN LATERAL (
     WITH RECURSIVE step (priority, run_at) AS (
       (SELECT j.priority, j.run_at FROM pulse.job AS j
         WHERE j.index_lane = 'p' AND pulse_internal.queue_slot(j.queue_name) = c.slot
           AND j.queue_name = c.queue_name
         ORDER BY j.priority, j.run_at LIMIT 1)
       UNION ALL
       SELECT n.priority, n.run_at FROM step AS s CROSS JOIN LATERAL (
         SELECT j.priority, j.run_at FROM pulse.job AS j
          WHERE j.index_lane = 'p' AND pulse_internal.queue_slot(j.queue_name) = c.slot
            AND j.queue_name = c.queue_name AND j.priority > s.priority
          ORDER BY j.priority, j.run_at LIMIT 1) AS n
     )
     SELECT (SELECT min(o.run_at) FROM (SELECT * FROM step LIMIT 20) AS o
              WHERE o.run_at <= c.now) AS oldest,
            (SELECT count(*) FROM (
               SELECT FROM pulse.job AS j
                WHERE j.index_lane = 'p' AND pulse_internal.queue_slot(j.queue_name) = c.slot
                  AND j.queue_name = c.queue_name LIMIT c.share) AS p) AS jobs) AS waiting;
END $$;
COMMENT ON FUNCTION pulse_internal.count_queues(int, int) IS
  'Counts parked, open and running jobs of at most max_count queues, with the oldest due one; '
  'cut: a count stopped at its bound.';

-- As running_ids() finds them, with one look at each job instead of two.
CREATE OR REPLACE FUNCTION pulse_internal.count_running(bound int)
  RETURNS TABLE (identifier text, running bigint, cut boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  SELECT r.identifier, count(*), sum(count(*)) OVER () >= bound::numeric
    FROM (SELECT j.identifier FROM pulse.job AS j WHERE j.running_worker_id IS NOT NULL
          UNION ALL
          SELECT i.identifier FROM pulse.claim_batch AS b CROSS JOIN LATERAL (
            SELECT j.identifier FROM pulse.job AS j
             WHERE j.id = ANY (b.job_ids) AND j.token = b.token AND j.in_place
               AND j.state::text = 'running' OFFSET 0) AS i
           LIMIT bound) AS r
   GROUP BY r.identifier;
END $$;
COMMENT ON FUNCTION pulse_internal.count_running(int) IS
  'Counts running jobs per task; cut: the count stopped at its bound.';

-- A count that stopped at its bound is a lower limit; the sample may show more.
CREATE OR REPLACE FUNCTION pulse_internal.best_count(
    counted bigint, sampled bigint, cut boolean, whole boolean)
  RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN whole THEN coalesce(sampled, 0)
              WHEN cut THEN greatest(counted, sampled)
              ELSE coalesce(counted, 0) END;
COMMENT ON FUNCTION pulse_internal.best_count(bigint, bigint, boolean, boolean) IS
  'Chooses between a count from an index and an estimate from a sample.';

-- A small table is sampled as a whole, so nothing is an estimate. No index gives parked jobs by
-- task, so a task's count of them is one otherwise.
CREATE OR REPLACE FUNCTION pulse_internal.task_stats(max_rows int, bound int, part float8)
  RETURNS TABLE (name text, ready bigint, future bigint, parked bigint, running bigint,
                 oldest timestamptz, estimated boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  is_whole CONSTANT boolean := part >= 1::float8;
BEGIN
  RETURN QUERY
  WITH sample AS MATERIALIZED (
    SELECT s.identifier, sum(s.ready)::bigint AS ready, sum(s.future)::bigint AS future,
           sum(s.parked)::bigint AS parked, sum(s.running)::bigint AS running
      FROM pulse_internal.sample_jobs(part) AS s GROUP BY s.identifier
  ), any_job AS MATERIALIZED (
    -- One condition each, because each lane has an index of its own.
    SELECT EXISTS (SELECT FROM pulse.job AS j WHERE j.index_lane = 'p')
           OR EXISTS (SELECT FROM pulse.job AS j WHERE j.index_lane = 'w') AS is_parked
  )
  SELECT coalesce(c.identifier, s.identifier, r.identifier),
         pulse_internal.best_count(c.ready, s.ready, c.cut, is_whole),
         pulse_internal.best_count(c.future, s.future, c.cut, is_whole), coalesce(s.parked, 0),
         pulse_internal.best_count(r.running, s.running, r.cut, is_whole), c.oldest,
         NOT is_whole AND (coalesce(c.cut, false) OR coalesce(r.cut, false) OR a.is_parked)
    FROM pulse_internal.count_tasks(max_rows, bound) AS c
    FULL JOIN sample AS s ON s.identifier = c.identifier
    FULL JOIN pulse_internal.count_running(500) AS r
              ON r.identifier = coalesce(c.identifier, s.identifier)
   CROSS JOIN any_job AS a;
END $$;
COMMENT ON FUNCTION pulse_internal.task_stats(int, int, float8) IS
  'Returns depth and age of at most max_rows tasks, and of further ones that a sample of this part '
  'of the table finds.';

CREATE OR REPLACE FUNCTION pulse_internal.queue_stats(max_rows int, bound int, part float8)
  RETURNS TABLE (name text, ready bigint, parked bigint, running bigint, oldest timestamptz,
                 estimated boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  is_whole CONSTANT boolean := part >= 1::float8;
BEGIN
  RETURN QUERY
  WITH sample AS MATERIALIZED (
    SELECT s.queue_name, sum(s.parked)::bigint AS parked, sum(s.running)::bigint AS running
      FROM pulse_internal.sample_jobs(part) AS s WHERE s.queue_name IS NOT NULL
     GROUP BY s.queue_name
  )
  SELECT c.queue_name, c.ready, pulse_internal.best_count(c.parked, s.parked, c.cut, is_whole),
         pulse_internal.best_count(c.running, s.running, c.cut, is_whole), c.oldest,
         NOT is_whole AND c.cut
    FROM pulse_internal.count_queues(max_rows, bound) AS c
    LEFT JOIN sample AS s ON s.queue_name = c.queue_name;
END $$;
COMMENT ON FUNCTION pulse_internal.queue_stats(int, int, float8) IS
  'Returns depth and age of at most max_rows queues.';

-- Where nothing is counted. Each row has a name here.
CREATE OR REPLACE FUNCTION pulse_internal.uncounted_stats(max_rows int, of_kind text)
  RETURNS TABLE (kind text, name text, ready bigint, future bigint, parked bigint, running bigint,
                 oldest timestamptz, estimated boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 300;
  most_queues CONSTANT int := 100;
  part CONSTANT float8 := pulse_internal.sampled_part(60);
BEGIN
  IF (of_kind = 'task') IS NOT FALSE THEN
    RETURN QUERY
    SELECT 'task', t.name, t.ready, t.future, t.parked, t.running, t.oldest, t.estimated
      FROM pulse_internal.task_stats(max_rows, bound, part) AS t;
  END IF;
  IF (of_kind = 'queue') IS NOT FALSE THEN
    RETURN QUERY
    SELECT 'queue', q.name, q.ready, NULL::bigint, q.parked, q.running, q.oldest, q.estimated
      FROM pulse_internal.queue_stats(least(max_rows, most_queues), bound, part) AS q;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.uncounted_stats(int, text) IS
  'Returns depth and age of tasks and queues where no commit counts them.';

-- First come the names of which nothing was claimed for longest, so that a stuck one is listed, and
-- those without waiting jobs last. What a row of no name adds up is not looked at.
CREATE OR REPLACE FUNCTION pulse_internal.counted_stats(max_rows int, of_kind text)
  RETURNS TABLE (kind text, name text, ready bigint, future bigint, parked bigint, running bigint,
                 oldest timestamptz, estimated boolean, paused boolean, waiting bigint,
                 names bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  -- So many are looked at for their oldest job, and for jobs that are not due.
  most_tasks CONSTANT int := 250;
  most_queues CONSTANT int := 100;
BEGIN
  RETURN QUERY
  WITH ranked AS MATERIALIZED (
    SELECT d.*, row_number() OVER (
             PARTITION BY d.kind
             ORDER BY d.name IS NULL, d.ready + d.parked = 0, d.claimed_at NULLS FIRST, d.name)
             AS place
      FROM pulse_internal.depths() AS d
     WHERE d.kind <> 'all' AND (of_kind IS NULL OR d.kind = of_kind)
  ), listed AS MATERIALIZED (
    SELECT r.* FROM ranked AS r WHERE r.name IS NOT NULL AND r.place <= max_rows
  ), asked AS (
    SELECT array_agg(l.name) AS names, array_agg(l.ready) AS ready,
           array_agg(l.latest_run_at) AS latest
      FROM listed AS l WHERE l.kind = 'task' AND l.ready > 0 AND l.place <= most_tasks
  ), due AS MATERIALIZED (
    SELECT j.* FROM asked AS a
     CROSS JOIN LATERAL pulse_internal.due_jobs(a.names, a.ready, a.latest) AS j
  ), old AS MATERIALIZED (
    SELECT q.* FROM pulse_internal.oldest_of_queues(ARRAY(
      SELECT l.name FROM listed AS l
       WHERE l.kind = 'queue' AND l.ready + l.parked > 0 AND l.place <= most_queues)) AS q
  ), pause AS MATERIALIZED (
    SELECT u.name FROM unnest(pulse_internal.paused_queues(
             ARRAY(SELECT l.name FROM listed AS l WHERE l.kind = 'queue'))) AS u (name)
  )
  SELECT l.kind, l.name,
         CASE WHEN d.name IS NULL THEN l.ready ELSE d.due END,
         CASE WHEN l.kind = 'task' THEN coalesce(d.future, 0) END,
         l.parked, l.running, coalesce(d.oldest, o.oldest),
         NOT l.is_exact OR coalesce(
           d.is_cut, l.kind = 'task' AND l.ready > 0 AND l.latest_run_at > pulse.now()),
         CASE WHEN l.kind = 'queue' THEN p.name IS NOT NULL END, l.ready + l.parked, 1::bigint
    FROM listed AS l
    LEFT JOIN due AS d ON l.kind = 'task' AND d.name = l.name
    LEFT JOIN old AS o ON l.kind = 'queue' AND o.name = l.name
    LEFT JOIN pause AS p ON l.kind = 'queue' AND p.name = l.name
  UNION ALL
  SELECT r.kind, NULL, sum(r.ready)::bigint, NULL, sum(r.parked)::bigint, sum(r.running)::bigint,
         NULL, NOT bool_and(r.is_exact), NULL, sum(r.ready + r.parked)::bigint,
         CASE WHEN bool_and(r.name IS NOT NULL) THEN count(*) END
    FROM ranked AS r WHERE r.name IS NULL OR r.place > max_rows GROUP BY r.kind;
END $$;
COMMENT ON FUNCTION pulse_internal.counted_stats(int, text) IS
  'Returns depth and age of tasks and queues as commits count them.';

CREATE OR REPLACE FUNCTION pulse.stats(max_rows int = 1000, of_kind text = NULL)
  RETURNS TABLE (kind text, name text, ready bigint, future bigint, parked bigint, running bigint,
                 oldest_due_at timestamptz, oldest_due_age interval, estimated boolean,
                 paused boolean, waiting bigint, names bigint)
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
           c.estimated, c.paused, c.waiting, c.names
      FROM pulse_internal.counted_stats(stats.max_rows, of_kind) AS c;
  ELSE
    RETURN QUERY
    SELECT u.kind, u.name, u.ready, u.future, u.parked, u.running, u.oldest, moment - u.oldest,
           u.estimated, CASE WHEN u.kind = 'queue' THEN
             EXISTS (SELECT FROM pulse_internal.level_settings(u.name) AS l WHERE l.paused) END,
           u.ready + coalesce(u.future, 0) + u.parked, 1::bigint
      FROM pulse_internal.uncounted_stats(stats.max_rows, of_kind) AS u;
  END IF;
END $$;
COMMENT ON FUNCTION pulse.stats(int, text) IS
  'Returns depth and age of each task and queue, at most max_rows (2 to 10000) of either kind: '
  'first those of which nothing was claimed for longest. Where there are more, a last row without '
  'a name adds them up. of_kind: task or queue, where one is enough. The view pulse.stats '
  'describes the columns. Raises PU004 for max_rows out of range and for another kind.';

CREATE OR REPLACE VIEW pulse.stats AS
  SELECT s.kind, s.name, s.ready, s.future, s.parked, s.running, s.oldest_due_at, s.oldest_due_age,
         s.estimated, s.paused, s.waiting, s.names
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
  'run_at of the job that has been due for longest; NULL without one, for a task beyond the first '
  '250, and for a queue beyond the first 100';
COMMENT ON COLUMN pulse.stats.oldest_due_age IS 'How long that job has been due';
COMMENT ON COLUMN pulse.stats.estimated IS
  'A count of this row is not exact: the server does not count, a change waits for the next '
  'recount, or the task has more due and more future jobs than were looked at: then ready and '
  'future are what was seen of them, and waiting is exact';
COMMENT ON COLUMN pulse.stats.paused IS 'The queue or a level above it is paused; NULL for a task';
COMMENT ON COLUMN pulse.stats.name IS
  'Name of the task or queue; NULL: what further ones have together, where ready counts future '
  'jobs, too';
COMMENT ON COLUMN pulse.stats.running IS 'Jobs that a worker has';
COMMENT ON COLUMN pulse.stats.waiting IS 'Ready, future and parked jobs together';
COMMENT ON COLUMN pulse.stats.names IS
  'How many tasks or queues the row is about; NULL: more than the server counts by name';
