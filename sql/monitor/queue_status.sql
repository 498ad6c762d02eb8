-- The settings and jobs of queues and the reasons that keep the jobs, of one queue or of the queues
-- that wait for longest.

-- A loose index scan over the queues with open or running jobs.
CREATE OR REPLACE FUNCTION pulse_internal.open_queues(max_queues int) RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  WITH RECURSIVE walk (queue_name) AS (
    (SELECT j.queue_name FROM pulse.job AS j
      WHERE j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r') ORDER BY j.queue_name LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue_name FROM pulse.job AS j
             WHERE j.queue_name > w.queue_name AND j.index_lane IN ('o', 'r')
             ORDER BY j.queue_name LIMIT 1)
      FROM walk AS w WHERE w.queue_name IS NOT NULL
  )
  SELECT w.queue_name FROM walk AS w WHERE w.queue_name IS NOT NULL LIMIT max_queues;
END $$;
COMMENT ON FUNCTION pulse_internal.open_queues(int) IS
  'Returns the first queues with open or running jobs, at most max_queues.';

CREATE OR REPLACE FUNCTION pulse_internal.stored_queues(max_queues int) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT q.queue_name FROM pulse.queue AS q
  UNION
  SELECT p.queue_name FROM pulse.queue_pause AS p WHERE p.is_paused
  LIMIT max_queues;
$$;
COMMENT ON FUNCTION pulse_internal.stored_queues(int) IS
  'Returns at most max_queues names of queues that have settings or are paused.';

CREATE OR REPLACE FUNCTION pulse_internal.queues_after_others(max_queues int) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET jit = off AS $$
  SELECT DISTINCT w.queue_name
    FROM (SELECT j.queue_name FROM pulse.job AS j WHERE j.index_lane = 'w' LIMIT 1000) AS w
   WHERE w.queue_name IS NOT NULL LIMIT max_queues;
$$;
COMMENT ON FUNCTION pulse_internal.queues_after_others(int) IS
  'Returns queues of the first 1,000 jobs that wait for other jobs, at most max_queues.';

-- Where commits count, the function knows all queues with jobs, and the counts of each queue; else
-- the first queues of a walk.
CREATE OR REPLACE FUNCTION pulse_internal.status_candidates(max_rows int)
  RETURNS TABLE (queue_name text, place bigint, waiting bigint, after_others bigint, open bigint,
                 running bigint, is_whole boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_stored CONSTANT int := 10000;
  is_counted CONSTANT boolean := pulse_internal.has_depths();
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  WITH known AS MATERIALIZED (
    SELECT d.name COLLATE "C" AS name, d.parked,
           CASE WHEN d.is_exact THEN d.after_others END AS after_others, d.ready, d.running,
           d.claimed_at, (d.soonest_run_at > moment) IS TRUE AS has_but_future,
           true AS has_jobs, d.is_exact
      FROM pulse_internal.depths() AS d
     WHERE is_counted AND d.kind = 'queue' AND d.ready + d.parked + d.running > 0
    UNION ALL
    SELECT w.name, 1, NULL, NULL, NULL, NULL, false, true, true
      FROM pulse_internal.parked_queues(max_rows + 1) AS w (name) WHERE NOT is_counted
    UNION ALL
    SELECT a.name, 1, NULL, NULL, NULL, NULL, false, true, true
      FROM pulse_internal.queues_after_others(max_rows + 1) AS a (name) WHERE NOT is_counted
    UNION ALL
    SELECT o.name, NULL, NULL, NULL, NULL, NULL, false, true, true
      FROM pulse_internal.open_queues(max_rows + 1) AS o (name) WHERE NOT is_counted
    UNION ALL
    SELECT s.name, NULL, NULL, NULL, NULL, NULL, false, false, true
      FROM pulse_internal.stored_queues(most_stored + 1) AS s (name)
  ), named AS (
    SELECT k.name, sum(k.parked)::bigint AS parked, sum(k.after_others)::bigint AS after_others,
           sum(k.ready)::bigint AS ready, sum(k.running)::bigint AS running,
           max(k.claimed_at) AS claimed_at, bool_or(k.has_but_future) AS has_but_future,
           bool_or(k.has_jobs) AS has_jobs
      FROM known AS k GROUP BY k.name
  ), whole AS (
    SELECT bool_and(k.name IS NOT NULL AND k.is_exact)
             AND count(*) FILTER (WHERE NOT k.has_jobs) <= most_stored
             AND (is_counted OR count(*) FILTER (WHERE k.has_jobs) <= max_rows) AS is_whole
      FROM known AS k
  )
  SELECT n.name, row_number() OVER (
           ORDER BY n.name IS NULL, n.parked > 0 DESC NULLS LAST, NOT n.has_jobs,
                    n.has_but_future, n.claimed_at NULLS FIRST, n.name),
         CASE WHEN is_counted THEN n.parked END, n.after_others, n.ready, n.running, w.is_whole
    FROM named AS n CROSS JOIN whole AS w;
END $$;
COMMENT ON FUNCTION pulse_internal.status_candidates(int) IS
  'Returns queues with jobs, settings or pauses in the order of the list, first the queues with '
  'waiting jobs of which nothing was claimed for longest; NULL: queues without a count of their '
  'own. is_whole: there are no other queues.';

-- No index has the parked jobs of a level together.
CREATE OR REPLACE FUNCTION pulse_internal.parked_members(level text, max_queues int)
  RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  most_jobs CONSTANT int := 500000;
  jobs bigint;
  names text[];
BEGIN
  SELECT count(*), array_agg(DISTINCT p.name) FILTER (WHERE pulse_internal.is_within(p.name, level))
    INTO jobs, names
    FROM (SELECT j.queue_name AS name FROM pulse.job AS j
           WHERE j.index_lane = 'p' LIMIT most_jobs + 1) AS p;
  RETURN QUERY SELECT u.name FROM unnest(names[1 : max_queues]) AS u (name);
  IF jobs > most_jobs THEN
    RETURN NEXT NULL;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.parked_members(text, int) IS
  'Returns queues within a level that have parked jobs, at most max_queues, among 500,000 parked '
  'jobs; NULL: there are more parked jobs.';

-- The queue itself comes first. Where commits count each member by name, all members are known;
-- elsewhere the function searches the indexes for members, up to a bound.
CREATE OR REPLACE FUNCTION pulse_internal.level_candidates(level text, max_rows int)
  RETURNS TABLE (queue_name text, place bigint, waiting bigint, after_others bigint, open bigint,
                 running bigint, is_whole boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_open CONSTANT int := 10000;
  is_counted CONSTANT boolean := pulse_internal.has_depths();
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  WITH depth AS MATERIALIZED (
    SELECT * FROM pulse_internal.depths() AS d WHERE is_counted AND d.kind = 'queue'
  ), counted AS MATERIALIZED (
    SELECT is_counted AND coalesce(bool_and(d.name IS NOT NULL AND d.is_exact), true) AS is_whole
      FROM depth AS d
  ), known AS MATERIALIZED (
    SELECT d.name COLLATE "C" AS name, d.parked,
           CASE WHEN d.is_exact THEN d.after_others END AS after_others, d.ready, d.running,
           d.claimed_at, (d.soonest_run_at > moment) IS TRUE AS has_but_future
      FROM depth AS d WHERE d.name = level OR pulse_internal.is_within(d.name, level)
  ), open AS MATERIALIZED (
    SELECT w.queue_name AS name FROM counted AS c
     CROSS JOIN LATERAL pulse_internal.jobs_within(level, most_open) AS w WHERE NOT c.is_whole
  ), found AS MATERIALIZED (
    SELECT p.name FROM counted AS c
     CROSS JOIN LATERAL pulse_internal.parked_members(level, max_rows + 1) AS p (name)
     WHERE NOT c.is_whole AND (SELECT count(*) FROM known) <= max_rows
    UNION
    SELECT o.name FROM open AS o
    UNION
    SELECT a.name FROM counted AS c
     CROSS JOIN LATERAL pulse_internal.queues_after_others(max_rows + 1) AS a (name)
     WHERE NOT c.is_whole AND pulse_internal.is_within(a.name, level)
    UNION
    SELECT level
  ), named AS MATERIALIZED (
    SELECT k.* FROM known AS k
    UNION ALL
    SELECT f.name, z.jobs, z.jobs, z.jobs, z.jobs, NULL, false
      FROM found AS f CROSS JOIN counted AS c
     CROSS JOIN LATERAL (SELECT CASE WHEN c.is_whole THEN 0 END AS jobs) AS z
     WHERE f.name IS NOT NULL AND NOT EXISTS (SELECT FROM known AS k WHERE k.name = f.name)
  )
  SELECT n.name, row_number() OVER (
           ORDER BY n.name <> level, n.parked = 0, n.has_but_future, n.claimed_at NULLS FIRST,
                    n.name),
         n.parked, n.after_others, n.ready, n.running,
         c.is_whole OR count(*) OVER () <= max_rows AND (SELECT count(*) FROM open) < most_open
           AND NOT EXISTS (SELECT FROM found AS f WHERE f.name IS NULL)
    FROM named AS n CROSS JOIN counted AS c;
END $$;
COMMENT ON FUNCTION pulse_internal.level_candidates(text, int) IS
  'Returns a queue, and the queues within it that have jobs, first those with waiting jobs of '
  'which nothing was claimed for longest, with the counts of commits; is_whole: there are no '
  'others.';

-- The jobs of the queue or level in of_queue are counted exactly where there are few. Rows `beyond`
-- tell of jobs of which no reason is known: of queues that have more jobs than were checked, and of
-- further queues within a listed level. A level of a listed queue has a row, too.
CREATE OR REPLACE FUNCTION pulse_internal.status_jobs(of_queue text, max_rows int)
  RETURNS TABLE (queue_name text, reason text, jobs bigint, is_cut boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_jobs CONSTANT int := 100000;
BEGIN
  RETURN QUERY
  WITH candidate AS MATERIALIZED (
    SELECT c.* FROM pulse_internal.status_candidates(max_rows) AS c WHERE of_queue IS NULL
    UNION ALL
    SELECT c.* FROM pulse_internal.level_candidates(of_queue, max_rows) AS c
     WHERE of_queue IS NOT NULL
  ), listed AS MATERIALIZED (
    SELECT c.queue_name, c.waiting, c.after_others, c.open, c.running FROM candidate AS c
     WHERE c.place <= max_rows AND c.queue_name IS NOT NULL
  ), share AS MATERIALIZED (
    SELECT CASE WHEN of_queue IS NULL OR bool_or(l.waiting IS NULL)
                  OR sum(l.waiting + l.open + l.running) > most_jobs
             THEN most_jobs / greatest(count(*), 1) END AS jobs
      FROM listed AS l
  ), part AS MATERIALIZED (
    SELECT r.* FROM share AS s CROSS JOIN LATERAL pulse_internal.queue_reasons(
      ARRAY(SELECT l.queue_name FROM listed AS l), s.jobs) AS r
    UNION ALL
    SELECT r.* FROM (SELECT array_agg(l.queue_name) AS names, array_agg(l.after_others) AS jobs
                       FROM listed AS l) AS l
     CROSS JOIN LATERAL pulse_internal.reasons_besides_queue(l.names, l.jobs) AS r
  ), level AS MATERIALIZED (
    SELECT l.queue_name, v.name FROM listed AS l
     CROSS JOIN LATERAL unnest(CASE WHEN of_queue IS NULL
       THEN pulse_internal.levels_of(l.queue_name) ELSE ARRAY[of_queue] END) AS v (name)
  )
  SELECT v.name, p.reason, sum(p.jobs)::bigint, bool_or(p.is_cut)
    FROM level AS v JOIN part AS p ON p.queue_name = v.queue_name GROUP BY v.name, p.reason
  UNION ALL
  -- Of further queues within a level nothing may tell.
  SELECT DISTINCT v.name, 'stored', 0::bigint, of_queue IS NULL AND v.name <> v.queue_name
         AND EXISTS (SELECT FROM candidate AS c WHERE NOT c.is_whole) FROM level AS v
  UNION ALL
  SELECT v.name, 'beyond', sum(c.waiting - p.seen)::bigint, true
    FROM level AS v
    JOIN (SELECT r.queue_name, sum(r.jobs) FILTER (WHERE r.reason NOT IN ('ready', 'running'))
                   AS seen
            FROM part AS r GROUP BY r.queue_name HAVING bool_or(r.is_cut)) AS p
         ON p.queue_name = v.queue_name
    JOIN listed AS c ON c.queue_name = v.queue_name AND c.waiting > p.seen
   GROUP BY v.name
  UNION ALL
  SELECT b.name, j.reason, sum(j.jobs)::bigint, true
    FROM candidate AS c
   CROSS JOIN LATERAL unnest(CASE WHEN of_queue IS NULL
     THEN pulse_internal.levels_of(c.queue_name) ELSE ARRAY[of_queue] END) AS b (name)
   CROSS JOIN LATERAL (VALUES ('beyond', c.waiting), ('ready', c.open), ('running', c.running))
         AS j (reason, jobs)
   WHERE c.place > max_rows AND c.queue_name LIKE '%/%' AND j.jobs > 0
     AND b.name IN (SELECT v.name FROM level AS v)
   GROUP BY b.name, j.reason
  UNION ALL
  SELECT NULL, 'names', CASE WHEN bool_and(c.is_whole) THEN count(*) FILTER (
           WHERE c.queue_name IS NULL OR NOT c.is_shown) END, true
    FROM (SELECT k.queue_name, k.is_whole, k.place <= max_rows
                 OR k.queue_name IN (SELECT v.name FROM level AS v) AS is_shown
            FROM candidate AS k WHERE of_queue IS NULL) AS c
  HAVING bool_or(c.queue_name IS NULL OR NOT c.is_shown OR NOT c.is_whole)
  UNION ALL
  SELECT of_queue, 'unknown', 0, true FROM candidate AS c
   WHERE of_queue IS NOT NULL AND c.place = 1 AND NOT c.is_whole;
END $$;
COMMENT ON FUNCTION pulse_internal.status_jobs(text, int) IS
  'Returns the reasons for which jobs of a queue and of max_rows queues within it wait, or of the '
  'first max_rows queues and their levels; stored: none; beyond: jobs not read; names: how many '
  'queues there are besides; unknown: of a level, perhaps further queues.';

CREATE OR REPLACE FUNCTION pulse.queue_status(of_queue text = NULL, max_rows int = 1000)
  RETURNS TABLE (queue_name text, concurrency int, total int, paused boolean, fair boolean,
                 weight int, waiting bigint, open bigint, running bigint, reasons json,
                 tokens bigint, next_token timestamptz, estimated boolean, names bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_count('max_rows', queue_status.max_rows, 1, 10000);
  RETURN QUERY
  WITH part AS MATERIALIZED (
    SELECT j.*, j.reason NOT IN ('ready', 'running', 'stored', 'beyond', 'unknown') AS is_reason
      FROM pulse_internal.status_jobs(of_queue, queue_status.max_rows) AS j
  ), level AS MATERIALIZED (
    SELECT p.queue_name AS name,
           coalesce(sum(p.jobs) FILTER (WHERE p.is_reason OR p.reason = 'beyond'), 0)::bigint
             AS waiting,
           coalesce(sum(p.jobs) FILTER (WHERE p.reason = 'ready'), 0)::bigint AS open,
           coalesce(sum(p.jobs) FILTER (WHERE p.reason = 'running'), 0)::bigint AS running,
           bool_or(p.reason = 'unknown') AS is_open_ended,
           coalesce(json_object_agg(p.reason, p.jobs ORDER BY p.reason) FILTER (WHERE p.is_reason),
                    '{}') AS reasons, bool_or(p.is_cut) AS is_cut
      FROM part AS p WHERE p.queue_name IS NOT NULL GROUP BY p.queue_name
  )
  SELECT l.name, s.concurrency, s.total,
         s.paused OR s.is_strict AND pulse_internal.is_paused_by_end(l.name),
         s.fair, s.weight, l.waiting, l.open, l.running, l.reasons, t.tokens, t.next_token,
         l.is_cut, CASE WHEN NOT l.is_open_ended THEN 1 END::bigint
    FROM level AS l
   CROSS JOIN LATERAL (
     SELECT e.* FROM pulse_internal.level_settings(l.name) AS e WHERE e.level = l.name) AS s
    LEFT JOIN LATERAL pulse_internal.tokens_of(l.name) AS t ON s.rate IS NOT NULL
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, p.jobs
    FROM part AS p WHERE p.queue_name IS NULL
   ORDER BY 1;
END $$;
COMMENT ON FUNCTION pulse.queue_status(text, int) IS
  'Returns settings and jobs of a queue or level: exactly where at most max_rows (1 to 10000) '
  'queues within the level have at most 100,000 jobs together; else estimated is true, the numbers '
  'are as commits count the jobs, and the reasons are those of a part of the jobs. Without a name, '
  'of at most max_rows queues and their levels: first queues with waiting jobs of which nothing '
  'was claimed for longest, those that have but future jobs last, then further queues with jobs, '
  'then queues with settings or a pause. A last row without a name tells how many more queues '
  'there are. The view pulse.queue_status describes the columns. Raises PU004 for max_rows out of '
  'range.';

CREATE OR REPLACE VIEW pulse.queue_status AS
  SELECT s.queue_name, s.concurrency, s.total, s.paused, s.fair, s.weight, s.waiting, s.open,
         s.running, s.reasons, s.tokens, s.next_token, s.estimated, s.names
    FROM pulse.queue_status() AS s;
COMMENT ON VIEW pulse.queue_status IS
  'Settings and jobs of at most 1,000 queues that have either or are paused, and of their levels. '
  'For one queue of many call pulse.queue_status(name).';
COMMENT ON COLUMN pulse.queue_status.queue_name IS
  'Name of the queue or level; NULL in the last row, which is about further queues';
COMMENT ON COLUMN pulse.queue_status.concurrency IS
  'How many jobs of exactly this name run at a time';
COMMENT ON COLUMN pulse.queue_status.total IS
  'How many jobs of the level and of all queues within it run at a time; NULL: no limit';
COMMENT ON COLUMN pulse.queue_status.paused IS
  'The queue or level is paused by its own name, or by the end of a job';
COMMENT ON COLUMN pulse.queue_status.fair IS
  'The queues within the level take turns to start jobs';
COMMENT ON COLUMN pulse.queue_status.weight IS
  'How many jobs the queue starts at a turn where a level above the queue is fair';
COMMENT ON COLUMN pulse.queue_status.waiting IS
  'Parked jobs of the queue and of all queues within it, as pulse.stats.parked: behind the queue, '
  'not due, or after other jobs';
COMMENT ON COLUMN pulse.queue_status.open IS
  'Jobs of the queue and within it that a claim can get';
COMMENT ON COLUMN pulse.queue_status.running IS
  'Running jobs of the queue and of all queues within it';
COMMENT ON COLUMN pulse.queue_status.reasons IS
  'How many of the waiting jobs wait for which reason: future (not due), paused, full (the queue '
  'or a level), dry (the rate of the queue, or of a level), next (the next promotions open the '
  'first jobs), parents (after other jobs), key undecided (as explain_job() says)';
COMMENT ON COLUMN pulse.queue_status.tokens IS
  'How many jobs of the queue could be claimed now by its rate; NULL: no rate, or on a standby';
COMMENT ON COLUMN pulse.queue_status.next_token IS
  'When the rate lets another job open; NULL: now, or after a claim of an open job';
COMMENT ON COLUMN pulse.queue_status.estimated IS
  'Of a queue with many jobs, or a level with many queues, the view has not read all jobs: '
  'reasons counts the jobs read, and waiting is the count of commits, if commits count';
COMMENT ON COLUMN pulse.queue_status.names IS
  'How many queues or levels the row is about; NULL: also queues that the function has not counted';
