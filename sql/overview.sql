-- The state of the whole queue in one row, cheap enough to be polled each second. Each figure is
-- counted on an index up to a bound, so it is exact below. Beyond it is estimated from a sample of
-- the table's pages, and the column `estimated` names it.

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
-- a comparison of states looks up the casts of fifty types.
CREATE OR REPLACE VIEW pulse_internal.not_completed AS
  SELECT f.state::text AS state, f.finished_at FROM pulse.finished_job AS f
   WHERE f.state <> 'completed';
COMMENT ON VIEW pulse_internal.not_completed IS 'Kept jobs that ended without completing.';

CREATE OR REPLACE FUNCTION pulse_internal.count_not_completed(
    since timestamptz, bound int, OUT failed bigint, OUT quarantined bigint, OUT cancelled bigint,
    OUT expired bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  SELECT count(*) FILTER (WHERE e.state = 'failed'),
         count(*) FILTER (WHERE e.state = 'quarantined'),
         count(*) FILTER (WHERE e.state = 'cancelled'),
         count(*) FILTER (WHERE e.state = 'expired')
    INTO failed, quarantined, cancelled, expired
    FROM (SELECT n.state FROM pulse_internal.not_completed AS n
           WHERE n.finished_at > since
           ORDER BY n.finished_at DESC LIMIT bound) AS e;
END $$;
COMMENT ON FUNCTION pulse_internal.count_not_completed(timestamptz, int) IS
  'Counts the kept jobs that ended since a moment without completing, the last ones up to a bound '
  'in all.';

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

-- A standby has no liveness clock, so it counts no worker as silent.
CREATE OR REPLACE FUNCTION pulse_internal.count_workers(
    OUT alive bigint, OUT draining bigint, OUT silent bigint, OUT lost bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET jit = off AS $$
BEGIN
  SELECT count(*) FILTER (WHERE l.status = 'alive'), count(*) FILTER (WHERE l.status <> 'alive')
    INTO alive, draining FROM pulse_internal.living_worker AS l;
  silent := greatest((SELECT count(*) FROM pulse.worker AS w
                       WHERE w.state IN ('alive', 'draining')) - alive - draining, 0);
  SELECT count(*) INTO lost
    FROM (SELECT FROM pulse.worker AS w
           WHERE w.ended_at > pulse.now() - interval '1 hour' AND w.state = 'lost'
           LIMIT 10000) AS w;
END $$;
COMMENT ON FUNCTION pulse_internal.count_workers() IS
  'Counts workers by what they are now, and those that were lost within the last hour.';

CREATE OR REPLACE FUNCTION pulse_internal.is_swept(patience interval) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL UNSAFE
  RETURN clock_timestamp() - pulse_internal.last_tick() <= patience;
COMMENT ON FUNCTION pulse_internal.is_swept(interval) IS
  'Returns whether a sweep has run so lately.';

CREATE OR REPLACE FUNCTION pulse_internal.overview_jobs(
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
COMMENT ON FUNCTION pulse_internal.overview_jobs(timestamptz) IS
  'Returns the figures of pulse.overview that are about live jobs.';

CREATE OR REPLACE FUNCTION pulse.overview()
  RETURNS TABLE (
    at timestamptz, ready bigint, future bigint, due_next_minute bigint, parked_future bigint,
    parked_paused bigint, parked_full bigint, parked_waiting bigint, running bigint,
    estimated text[], oldest_due_at timestamptz, oldest_due_age interval, completed bigint,
    failed bigint, quarantined bigint, cancelled bigint, expired bigint, workers_alive bigint,
    workers_draining bigint, workers_silent bigint, workers_lost bigint, next_schedule text,
    next_schedule_at timestamptz, installation text, claims boolean, swept_at timestamptz,
    sweeps boolean)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  SELECT moment, j.ready, j.future, j.due_next_minute, j.parked_future, j.parked_paused,
         j.parked_full, j.parked_waiting, j.running, j.estimated, j.oldest_due_at,
         moment - j.oldest_due_at,
         coalesce(pulse_internal.completed_since(moment - interval '1 minute'),
                  pulse_internal.count_completed(moment - interval '1 minute', 10000)),
         e.failed, e.quarantined, e.cancelled, e.expired, w.alive, w.draining, w.silent, w.lost,
         s.name, s.next_due,
         pulse_internal.installation_standing(), current_setting('pulse.claims')::boolean,
         pulse_internal.last_tick(),
         pulse_internal.is_swept(pulse_internal.two_sweep_intervals())
    FROM pulse_internal.overview_jobs(moment) AS j
   CROSS JOIN pulse_internal.count_not_completed(moment - interval '1 minute', 10000) AS e
   CROSS JOIN pulse_internal.count_workers() AS w
    LEFT JOIN LATERAL (
      SELECT d.name, d.next_due FROM pulse.schedule AS d
       WHERE NOT d.paused ORDER BY d.next_due, d.name LIMIT 1) AS s ON true;
END $$;
COMMENT ON FUNCTION pulse.overview() IS
  'Returns the state of the whole queue in one row. The view pulse.overview describes the columns.';

CREATE OR REPLACE VIEW pulse.overview AS
  SELECT o.at, o.ready, o.future, o.due_next_minute, o.parked_future, o.parked_paused,
         o.parked_full, o.parked_waiting, o.running, o.estimated, o.oldest_due_at,
         o.oldest_due_age, o.completed, o.failed, o.quarantined, o.cancelled, o.expired,
         o.workers_alive, o.workers_draining, o.workers_silent, o.workers_lost, o.next_schedule,
         o.next_schedule_at, o.installation, o.claims, o.swept_at, o.sweeps
    FROM pulse.overview() AS o;
COMMENT ON VIEW pulse.overview IS
  'The state of the whole queue in one row, cheap enough to be polled each second beside millions '
  'of jobs.';
COMMENT ON COLUMN pulse.overview.at IS 'The moment that the row is about, by pulse.now()';
COMMENT ON COLUMN pulse.overview.ready IS 'Open jobs that are due: a claim can get them';
COMMENT ON COLUMN pulse.overview.future IS 'Open jobs that are not due yet';
COMMENT ON COLUMN pulse.overview.due_next_minute IS
  'Open and parked jobs that fall due within the next minute';
COMMENT ON COLUMN pulse.overview.parked_future IS 'Jobs of queues that are not due yet';
COMMENT ON COLUMN pulse.overview.parked_paused IS
  'Due jobs whose queue, or a level above, is paused';
COMMENT ON COLUMN pulse.overview.parked_full IS
  'Other due jobs behind their queue: it or a level is full, or opens them next';
COMMENT ON COLUMN pulse.overview.parked_waiting IS 'Jobs that wait for other jobs';
COMMENT ON COLUMN pulse.overview.running IS 'Jobs that a worker has';
COMMENT ON COLUMN pulse.overview.estimated IS
  'Which of the counts of live jobs are estimated from a sample, because they reach 150 or '
  'there are 150 tasks and priorities or more; empty: all are exact';
COMMENT ON COLUMN pulse.overview.oldest_due_at IS
  'run_at of the open or parked job that has been due for longest, of open ones among the first '
  '150 tasks and priorities; NULL without one';
COMMENT ON COLUMN pulse.overview.oldest_due_age IS 'How long that job has been due';
COMMENT ON COLUMN pulse.overview.completed IS
  'Jobs that completed within the last minute: 60 to 70 seconds; without preloading, kept ones '
  'only, up to 10,000';
COMMENT ON COLUMN pulse.overview.failed IS
  'Jobs that failed for good within the last minute; these and the next three are counted up to '
  '10,000 together';
COMMENT ON COLUMN pulse.overview.quarantined IS 'Jobs that were quarantined within the last minute';
COMMENT ON COLUMN pulse.overview.cancelled IS 'Jobs that were cancelled within the last minute';
COMMENT ON COLUMN pulse.overview.expired IS 'Jobs that expired within the last minute';
COMMENT ON COLUMN pulse.overview.workers_alive IS 'Living workers that take jobs';
COMMENT ON COLUMN pulse.overview.workers_draining IS
  'Living workers that were told to drain or to stop';
COMMENT ON COLUMN pulse.overview.workers_silent IS
  'Registered workers that the next sweep finds lost';
COMMENT ON COLUMN pulse.overview.workers_lost IS 'Workers that were lost within the last hour';
COMMENT ON COLUMN pulse.overview.next_schedule IS
  'Name of the schedule that is due next; NULL without one';
COMMENT ON COLUMN pulse.overview.next_schedule_at IS 'When that schedule is due';
COMMENT ON COLUMN pulse.overview.installation IS
  'ours, unused (no worker yet), moved (adopted by the next claim), copy or subscribed (claims are '
  'refused)';
COMMENT ON COLUMN pulse.overview.claims IS 'The setting pulse.claims of this session';
COMMENT ON COLUMN pulse.overview.swept_at IS 'When the last sweep began';
COMMENT ON COLUMN pulse.overview.sweeps IS
  'A sweep has run within the last two sweep intervals: dead workers are noticed';
