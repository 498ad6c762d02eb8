-- How many jobs of each task and queue wait and run: the commits count in shared memory, and a
-- recount reads the whole table. extension/counters/depths.hpp says why no change is lost.

COMMENT ON FUNCTION pulse_internal.count_written_job() IS
  'Trigger: counts the rows that a statement wrote into pulse.job.';
COMMENT ON TYPE pulse_internal.live_figures IS
  'The figures of pulse.overview that are about live jobs.';
COMMENT ON TRIGGER count_written ON pulse.job IS 'Counts jobs that statements add or delete.';
COMMENT ON TRIGGER count_changed ON pulse.job IS 'Counts jobs that statements move.';
COMMENT ON TRIGGER count_truncated ON pulse.job IS 'Asks for a recount.';

CREATE OR REPLACE FUNCTION pulse_internal.depths()
  RETURNS TABLE (kind text, name text, ready bigint, parked bigint, after_others bigint,
                 running bigint, claimed_at timestamptz, latest_run_at timestamptz,
                 is_exact boolean, counted_at timestamptz)
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'pulse_depths';
COMMENT ON FUNCTION pulse_internal.depths() IS
  'Returns the jobs of all tasks together (kind all), of each task and of each queue, all at one '
  'moment, counted_at; a name of NULL stands for further names. after_others: how many of the '
  'parked jobs wait for other jobs. All calls of a transaction within a second return the same '
  'count, at REPEATABLE READ all calls, with the changes that the transaction makes itself. No '
  'waiting job has a run_at after latest_run_at. is_exact is false where changes that no commit '
  'counted wait for the next recount. No row: nothing was counted yet, or this server does not '
  'count.';

CREATE OR REPLACE FUNCTION pulse_internal.has_depths() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_has_depths';
COMMENT ON FUNCTION pulse_internal.has_depths() IS
  'Returns whether commits count jobs here, and all jobs were counted; if not, the call asks for '
  'a recount.';

CREATE OR REPLACE FUNCTION pulse_internal.recount_if_read() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_recount_if_read';
COMMENT ON FUNCTION pulse_internal.recount_if_read() IS
  'Starts the process that recounts this database, if a recount is due and a session has read the '
  'counts within half an hour; returns whether the call started the process.';

-- In a view, not in each query, and elsewhere states are compared as text: a session that parses a
-- comparison of states reads the casts of fifty types.
CREATE OR REPLACE VIEW pulse_internal.ready_job AS
  SELECT j.identifier, j.priority, j.run_at FROM pulse.job AS j
   WHERE j.index_lane = 'o' AND j.state = 'ready';
COMMENT ON VIEW pulse_internal.ready_job IS 'Jobs that wait for a worker or their time.';

-- Time moves without a commit, so no counter knows which ready jobs are due. The first jobs of each
-- priority tell, one way down the index for each priority: all jobs where the jobs are few, else
-- that there are more than the share. Jobs that are not due follow the due jobs.
CREATE OR REPLACE FUNCTION pulse_internal.due_of_tasks(
    names text[], latest timestamptz[], bound int)
  RETURNS TABLE (name text, due bigint, future bigint, soon bigint, oldest timestamptz,
                 more_due boolean, more_future boolean, more_soon boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
  minute CONSTANT timestamptz := moment + interval '1 minute';
  share CONSTANT int := greatest(bound / greatest(cardinality(names), 1), 1);
  priorities CONSTANT int := 20;
BEGIN
  RETURN QUERY
  SELECT n.name, sum(s.due)::bigint, sum(s.future)::bigint, sum(s.soon)::bigint, min(s.oldest),
         bool_or(s.more_due) OR count(*) > priorities,
         n.latest > moment AND (bool_or(s.more_future) OR count(*) > priorities),
         n.latest > moment
           AND (bool_or(s.more_future AND s.soon = s.future) OR count(*) > priorities)
    FROM unnest(names, latest) AS n (name, latest) CROSS JOIN LATERAL (
      WITH RECURSIVE step (priority, due, future, soon, oldest, more_due, more_future) AS (
        SELECT (-32769)::int, 0::bigint, 0::bigint, 0::bigint, NULL::timestamptz, false, false
        UNION ALL
        SELECT f.priority::int, f.due, f.future + l.jobs, f.soon + l.soon,
               f.oldest, f.due >= share,
               CASE WHEN f.due >= share THEN l.jobs >= share ELSE f.jobs >= share END
          FROM step AS s CROSS JOIN LATERAL (
            SELECT j.priority, count(*) AS jobs, count(*) FILTER (WHERE j.run_at <= moment) AS due,
                   count(*) FILTER (WHERE j.run_at > moment) AS future,
                   count(*) FILTER (WHERE j.run_at > moment AND j.run_at <= minute) AS soon,
                   min(j.run_at) FILTER (WHERE j.run_at <= moment) AS oldest
              FROM (SELECT r.priority, r.run_at FROM pulse_internal.ready_job AS r
                     WHERE r.identifier = n.name AND r.priority > s.priority
                     ORDER BY r.identifier, r.priority, r.run_at LIMIT share) AS j
             GROUP BY j.priority ORDER BY j.priority LIMIT 1) AS f
         CROSS JOIN LATERAL (
            SELECT count(*) AS jobs, count(*) FILTER (WHERE r.run_at <= minute) AS soon
              FROM (SELECT r.run_at FROM pulse_internal.ready_job AS r
                     WHERE f.due >= share AND n.latest > moment AND r.identifier = n.name
                       AND r.priority = f.priority AND r.run_at > moment
                     ORDER BY r.identifier, r.priority, r.run_at LIMIT share) AS r) AS l
      )
      SELECT * FROM step LIMIT priorities + 1) AS s
   GROUP BY n.name, n.latest;
END $$;
COMMENT ON FUNCTION pulse_internal.due_of_tasks(text[], timestamptz[], int) IS
  'Counts ready jobs of each task that are due, are not, and fall due within a minute, within a '
  'bound that the tasks share, and tells since when the oldest has been due; more_due, '
  'more_future, more_soon: there may be more.';

-- A count of all ready jobs makes either number exact if the other number is exact.
CREATE OR REPLACE FUNCTION pulse_internal.due_jobs(
    names text[], ready bigint[], latest timestamptz[])
  RETURNS TABLE (name text, due bigint, future bigint, soon bigint, oldest timestamptz,
                 is_cut boolean, more_soon boolean)
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  WITH seen AS MATERIALIZED (
    SELECT t.* FROM pulse_internal.due_of_tasks(names, latest, 300) AS t
  ), more AS (
    -- Some of the tasks with more jobs to read share the bound alone.
    SELECT s.name FROM seen AS s
     WHERE s.more_due AND s.more_future AND cardinality(names) > 10 LIMIT 10
  ), again AS MATERIALIZED (
    SELECT t.* FROM pulse_internal.due_of_tasks(ARRAY(SELECT m.name FROM more AS m),
             ARRAY(SELECT 'infinity'::timestamptz FROM more AS m), 300) AS t
  ), best AS (
    SELECT s.* FROM seen AS s WHERE NOT EXISTS (SELECT FROM again AS a WHERE a.name = s.name)
    UNION ALL
    SELECT a.* FROM again AS a
  )
  SELECT b.name,
         CASE WHEN b.more_future THEN b.due ELSE greatest(n.ready - b.future, b.due) END,
         CASE WHEN b.more_due OR NOT b.more_future THEN b.future
              ELSE greatest(n.ready - b.due, b.future) END,
         b.soon, b.oldest, b.more_due AND b.more_future, b.more_soon
    FROM best AS b JOIN unnest(names, ready) AS n (name, ready) ON n.name = b.name;
$$;
COMMENT ON FUNCTION pulse_internal.due_jobs(text[], bigint[], timestamptz[]) IS
  'Splits the counted ready jobs of each task into due and future jobs, and counts the jobs that '
  'fall due within a minute; is_cut: due and future are the jobs that the function read. latest: '
  'no job of the task has a later run_at.';

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
  SELECT n.name, least(open.oldest, parked.oldest)
    FROM (SELECT u.name, pulse_internal.queue_bucket(u.name) AS bucket
            FROM unnest(names) AS u (name))
         AS n
   CROSS JOIN LATERAL (
     SELECT min(t.run_at) FILTER (WHERE t.state = 'ready' AND t.run_at <= moment) AS oldest
       FROM (SELECT j.state::text AS state, j.run_at FROM pulse.job AS j
              WHERE j.queue_name = n.name AND j.queue_name IS NOT NULL
                AND j.index_lane IN ('o', 'r') LIMIT 4) AS t) AS open
   CROSS JOIN LATERAL (
     WITH RECURSIVE step (priority, run_at) AS (
       (SELECT j.priority, j.run_at FROM pulse.job AS j
         WHERE j.index_lane = 'p' AND pulse_internal.queue_bucket(j.queue_name) = n.bucket
           AND j.queue_name = n.name
         ORDER BY j.priority, j.run_at LIMIT 1)
       UNION ALL
       SELECT x.priority, x.run_at FROM step AS s CROSS JOIN LATERAL (
         SELECT j.priority, j.run_at FROM pulse.job AS j
          WHERE j.index_lane = 'p' AND pulse_internal.queue_bucket(j.queue_name) = n.bucket
            AND j.queue_name = n.name AND j.priority > s.priority
          ORDER BY j.priority, j.run_at LIMIT 1) AS x
     )
     SELECT min(o.run_at) FILTER (WHERE o.run_at <= moment) AS oldest
       FROM (SELECT * FROM step LIMIT 20) AS o) AS parked;
END $$;
COMMENT ON FUNCTION pulse_internal.oldest_of_queues(text[]) IS
  'Tells since when the oldest job of each queue has been due, among the queue''s first four open '
  'jobs and the parked jobs.';

CREATE OR REPLACE FUNCTION pulse_internal.count_queues(names text[], share bigint)
  RETURNS TABLE (name text, ready bigint, running bigint, due bigint, future bigint,
                 is_cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  SELECT n.name, open.ready, open.jobs - open.ready, parked.due, parked.jobs - parked.due,
         coalesce(parked.jobs >= share OR open.jobs >= share, false)
    FROM (SELECT u.name, pulse_internal.queue_bucket(u.name) AS bucket
            FROM unnest(names) AS u (name))
         AS n
   CROSS JOIN LATERAL (
     SELECT count(*) AS jobs, count(*) FILTER (WHERE t.state = 'ready') AS ready
       FROM (SELECT j.state::text AS state FROM pulse.job AS j
              WHERE j.queue_name = n.name AND j.queue_name IS NOT NULL
                AND j.index_lane IN ('o', 'r') LIMIT share) AS t) AS open
   CROSS JOIN LATERAL (
     SELECT count(*) AS jobs, count(*) FILTER (WHERE p.run_at <= moment) AS due FROM (
       SELECT j.run_at FROM pulse.job AS j
        WHERE j.index_lane = 'p' AND pulse_internal.queue_bucket(j.queue_name) = n.bucket
          AND j.queue_name = n.name LIMIT share) AS p) AS parked;
END $$;
COMMENT ON FUNCTION pulse_internal.count_queues(text[], bigint) IS
  'Counts open and running jobs of each queue, and parked jobs by whether the jobs are due, each '
  'up to a share (NULL: all); is_cut: there may be more.';

-- An operator pauses a queue or a level; the end of a job pauses a strict queue.
CREATE OR REPLACE FUNCTION pulse_internal.is_queue_paused(name text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT EXISTS (
    SELECT FROM pulse_internal.level_settings(name) AS s
     WHERE s.paused
        OR s.level = name AND s.is_strict AND pulse_internal.is_paused_by_end(name));
$$;
COMMENT ON FUNCTION pulse_internal.is_queue_paused(text) IS
  'Returns whether a queue is paused, by an operator or by the end of a job, or is within a paused '
  'level.';

-- Reads settings only of queues within a paused name, so those are chosen first: 'mail/*' is the
-- name of the members of 'mail'.
CREATE OR REPLACE FUNCTION pulse_internal.paused_queues(names text[]) RETURNS text[]
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  WITH pause AS (
    SELECT regexp_replace(s.queue_name, '/[*]$', '') AS level
      FROM (SELECT p.queue_name FROM pulse.queue_pause AS p WHERE p.is_paused
             UNION ALL SELECT q.queue_name FROM pulse.queue AS q WHERE q.paused) AS s
  ), within AS MATERIALIZED (
    SELECT DISTINCT n.name
      FROM unnest(names) AS n (name)
     CROSS JOIN LATERAL unnest(pulse_internal.levels_of(n.name)) AS l (level)
      JOIN pause AS p ON p.level = l.level
     WHERE EXISTS (SELECT FROM pause)
  )
  SELECT coalesce(array_agg(w.name), '{}') FROM within AS w
   WHERE pulse_internal.is_queue_paused(w.name);
$$;
COMMENT ON FUNCTION pulse_internal.paused_queues(text[]) IS
  'Returns which of these queues are paused, or within a paused level.';
