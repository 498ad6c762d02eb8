-- Live jobs where no commit counts them, as without preloading: on each index up to a bound, and
-- beyond it by a sample of the table's pages.

-- Open jobs of at most max_pairs pairs of task and priority. Future jobs are counted in order of
-- run_at, so those of the next minute come first. Of more pairs only the first job is counted,
-- because a sample tells then.
CREATE OR REPLACE FUNCTION pulse_internal.count_open(
    moment timestamptz, bound int, max_pairs int, OUT ready bigint, OUT future bigint,
    OUT next_minute bigint, OUT oldest timestamptz, OUT cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  WITH RECURSIVE walk (identifier, priority, run_at, state) AS (
    (SELECT j.identifier, j.priority, j.run_at, j.state FROM pulse.job AS j
      WHERE j.index_lane = 'o' ORDER BY j.identifier, j.priority, j.run_at LIMIT 1)
    UNION ALL
    SELECT n.* FROM walk AS w CROSS JOIN LATERAL (
      SELECT j.identifier, j.priority, j.run_at, j.state FROM pulse.job AS j
       WHERE j.index_lane = 'o' AND (j.identifier, j.priority) > (w.identifier, w.priority)
       ORDER BY j.identifier, j.priority, j.run_at LIMIT 1) AS n
  ), pair AS MATERIALIZED (
    SELECT w.*, count(*) OVER () >= max_pairs AS is_cut
      FROM (SELECT w.* FROM walk AS w LIMIT max_pairs) AS w
  ), first AS MATERIALIZED (
    SELECT min(p.run_at) AS run_at FROM pair AS p WHERE p.state = 'ready' AND p.run_at <= moment
  ), older AS (
    -- The first job of a pair is its oldest, unless it runs, claimed in place.
    SELECT min(j.run_at) AS run_at FROM first AS f CROSS JOIN pair AS p CROSS JOIN LATERAL (
      SELECT j.run_at FROM pulse.job AS j
       WHERE j.index_lane = 'o' AND j.state = 'ready' AND j.identifier = p.identifier
         AND j.priority = p.priority AND j.run_at <= coalesce(f.run_at, moment)
       ORDER BY j.run_at LIMIT 1) AS j
     WHERE p.state <> 'ready'
  ), due AS (
    SELECT d.run_at FROM pair AS p CROSS JOIN LATERAL (
      SELECT j.run_at FROM pulse.job AS j
       WHERE j.index_lane = 'o' AND j.state = 'ready' AND j.identifier = p.identifier
         AND j.priority = p.priority AND j.run_at <= moment
       LIMIT bound) AS d
     WHERE NOT p.is_cut AND p.run_at <= moment LIMIT bound
  ), later AS (
    SELECT d.run_at FROM pair AS p CROSS JOIN LATERAL (
      SELECT j.run_at FROM pulse.job AS j
       WHERE j.index_lane = 'o' AND j.state = 'ready' AND j.identifier = p.identifier
         AND j.priority = p.priority AND j.run_at > moment
       ORDER BY j.run_at LIMIT bound) AS d
     WHERE NOT p.is_cut LIMIT bound
  ), found AS (
    SELECT d.run_at FROM due AS d UNION ALL SELECT l.run_at FROM later AS l
    UNION ALL SELECT p.run_at FROM pair AS p WHERE p.is_cut AND p.state = 'ready'
  )
  SELECT count(*) FILTER (WHERE f.run_at <= moment), count(*) FILTER (WHERE f.run_at > moment),
         count(*) FILTER (WHERE f.run_at > moment AND f.run_at <= moment + interval '1 minute'),
         least((SELECT f.run_at FROM first AS f), (SELECT o.run_at FROM older AS o)),
         coalesce((SELECT bool_or(p.is_cut) FROM pair AS p), false)
    INTO ready, future, next_minute, oldest, cut FROM found AS f;
END $$;
COMMENT ON FUNCTION pulse_internal.count_open(timestamptz, int, int) IS
  'Counts open jobs that are due at a moment, due later, and due within the next minute, each up '
  'to a bound, and tells which has been due for longest; cut: there are more tasks and priorities, '
  'and only the first job of each was counted.';

-- Only jobs that are due can be held back by a pause. Of many queues it looks at some, and reads
-- the settings of those that are within a paused row: 'mail/*' is one of members of 'mail'.
CREATE OR REPLACE FUNCTION pulse_internal.paused_part(queue_names text[]) RETURNS float8
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  WITH pause AS MATERIALIZED (
    SELECT regexp_replace(s.queue_name, '/[*]$', '') || '/' AS prefix
      FROM (SELECT p.queue_name FROM pulse.queue_pause AS p WHERE p.is_paused AND p.job_id = 0
             UNION ALL SELECT q.queue_name FROM pulse.queue AS q WHERE q.paused) AS s
  )
  SELECT coalesce(sum(q.jobs) FILTER (
           WHERE EXISTS (SELECT FROM pause AS p WHERE starts_with(q.queue_name || '/', p.prefix))
             AND EXISTS (SELECT FROM pulse_internal.level_settings(q.queue_name) AS s
                          WHERE s.paused))
         / sum(q.jobs), 0)::float8
    FROM (SELECT n.name AS queue_name, count(*) AS jobs FROM unnest(queue_names) AS n (name)
           GROUP BY n.name ORDER BY md5(n.name) LIMIT 100) AS q
   WHERE EXISTS (SELECT FROM pause);
$$;
COMMENT ON FUNCTION pulse_internal.paused_part(text[]) IS
  'Returns which part of jobs with these queues is behind a pause, judged by 100 of the queues.';

CREATE OR REPLACE FUNCTION pulse_internal.count_parked(
    moment timestamptz, bound int, OUT future bigint, OUT next_minute bigint, OUT due bigint,
    OUT paused bigint, OUT waiting bigint, OUT oldest timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  due_queues text[];
BEGIN
  SELECT array_agg(d.queue_name), min(d.run_at) INTO due_queues, oldest
    FROM (SELECT j.queue_name, j.run_at FROM pulse.job AS j
           WHERE j.index_lane = 'p' AND j.run_at <= moment
           ORDER BY j.run_at LIMIT bound) AS d;
  due := coalesce(cardinality(due_queues), 0);
  -- Beyond the bound a sample tells.
  IF due < bound THEN
    paused := round(due * pulse_internal.paused_part(due_queues));
  END IF;
  SELECT count(*), count(*) FILTER (WHERE l.run_at <= moment + interval '1 minute')
    INTO future, next_minute
    FROM (SELECT j.run_at FROM pulse.job AS j
           WHERE j.index_lane = 'p' AND j.run_at > moment
           ORDER BY j.run_at LIMIT bound) AS l;
  SELECT count(*) INTO waiting
    FROM (SELECT FROM pulse.job AS j WHERE j.index_lane = 'w' LIMIT bound) AS w;
END $$;
COMMENT ON FUNCTION pulse_internal.count_parked(timestamptz, int) IS
  'Counts parked jobs that are due at a moment and of these the ones behind a pause, due later, '
  'due within the next minute, and waiting for other jobs, each up to a bound, and tells which has '
  'been due for longest.';

CREATE OR REPLACE FUNCTION pulse_internal.sample_states(
    moment timestamptz, part float8, OUT ready bigint, OUT future bigint,
    OUT due_next_minute bigint, OUT parked_future bigint, OUT parked_due bigint,
    OUT parked_paused bigint, OUT parked_waiting bigint, OUT running bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET jit = off AS $$
DECLARE
  due_queues text[];
BEGIN
  SELECT round(count(*) FILTER (WHERE j.state = 'ready' AND j.run_at <= moment) / part),
         round(count(*) FILTER (WHERE j.state = 'ready' AND j.run_at > moment) / part),
         round(count(*) FILTER (WHERE j.index_lane IN ('o', 'p') AND j.state <> 'running'
                                  AND j.run_at > moment
                                  AND j.run_at <= moment + interval '1 minute') / part),
         round(count(*) FILTER (WHERE j.index_lane = 'p' AND j.run_at > moment) / part),
         round(count(*) FILTER (WHERE j.index_lane = 'p' AND j.run_at <= moment) / part),
         round(count(*) FILTER (WHERE j.index_lane = 'w') / part),
         round(count(*) FILTER (WHERE j.state = 'running') / part),
         array_agg(j.queue_name) FILTER (WHERE j.index_lane = 'p' AND j.run_at <= moment)
    INTO ready, future, due_next_minute, parked_future, parked_due, parked_waiting, running,
         due_queues
    FROM (SELECT s.index_lane, s.queue_name, s.run_at, s.state::text AS state
            FROM pulse.job AS s TABLESAMPLE SYSTEM (part * 100)
                 REPEATABLE (pulse_internal.sample_of_minute())) AS j;
  parked_paused := round(parked_due * pulse_internal.paused_part(due_queues));
END $$;
COMMENT ON FUNCTION pulse_internal.sample_states(timestamptz, float8) IS
  'Counts jobs by state on a part of the table''s pages, scaled up to the whole table.';

CREATE OR REPLACE FUNCTION pulse_internal.uncounted_jobs(
    moment timestamptz, OUT ready bigint, OUT future bigint, OUT due_next_minute bigint,
    OUT parked_future bigint, OUT parked_paused bigint, OUT parked_full bigint,
    OUT parked_waiting bigint, OUT running bigint, OUT estimated text[],
    OUT oldest_due_at timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 150;
  part float8;
  open record;
  parked record;
  guess record;
BEGIN
  SELECT * INTO open FROM pulse_internal.count_open(moment, bound, bound);
  SELECT * INTO parked FROM pulse_internal.count_parked(moment, bound);
  running := coalesce(cardinality(pulse_internal.running_ids(NULL, bound)), 0);
  estimated := ARRAY(
    SELECT f.name FROM (VALUES
      ('ready', open.ready, open.cut), ('future', open.future, open.cut),
      ('due_next_minute', greatest(open.next_minute, parked.next_minute), open.cut),
      ('parked_future', parked.future, false), ('parked_paused', parked.due, false),
      ('parked_full', parked.due, false), ('parked_waiting', parked.waiting, false),
      ('running', running, false)) AS f (name, counted, cut)
     WHERE f.counted >= bound OR f.cut);
  -- Where nothing is estimated, no row is found and each guess is NULL.
  part := pulse_internal.sampled_part(300);
  SELECT * INTO guess FROM pulse_internal.sample_states(moment, part) WHERE estimated <> '{}';
  IF part >= 1 THEN
    estimated := '{}';
  END IF;
  ready := greatest(open.ready, guess.ready);
  future := greatest(open.future, guess.future);
  due_next_minute := greatest(open.next_minute + parked.next_minute, guess.due_next_minute);
  parked_future := greatest(parked.future, guess.parked_future);
  parked_paused := CASE WHEN parked.due < bound THEN parked.paused
                     ELSE guess.parked_paused END;
  parked_full := CASE WHEN parked.due < bound THEN parked.due
                   ELSE greatest(parked.due, guess.parked_due) END - parked_paused;
  parked_waiting := greatest(parked.waiting, guess.parked_waiting);
  running := greatest(running, guess.running);
  oldest_due_at := least(open.oldest, parked.oldest);
END $$;
COMMENT ON FUNCTION pulse_internal.uncounted_jobs(timestamptz) IS
  'Returns the figures of pulse.overview that are about live jobs, where no commit counts them.';
