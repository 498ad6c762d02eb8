-- The state of the whole queue in one row, cheap enough to be polled each second. Commits count
-- live jobs (depths.sql). Figures that time changes without a commit are counted on an index up to
-- a bound. Where commits count nothing, every figure is counted so (uncounted.sql). The column
-- `estimated` names the figures that are not exact.

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
  'Counts the kept jobs that ended since a moment without completing, the last jobs up to a bound '
  'in all.';

-- A standby has no liveness clock, so a standby counts no worker as silent.
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
  'Counts workers by their present status, and workers that were lost within the last hour.';

CREATE OR REPLACE FUNCTION pulse_internal.is_swept(patience interval) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL UNSAFE
  RETURN clock_timestamp() - pulse_internal.last_tick() <= patience;
COMMENT ON FUNCTION pulse_internal.is_swept(interval) IS
  'Returns whether a sweep has run so lately.';

CREATE OR REPLACE FUNCTION pulse_internal.count_parked(
    moment timestamptz, bound int, OUT future bigint, OUT next_minute bigint, OUT due bigint,
    OUT paused bigint, OUT oldest timestamptz)
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
  paused := (
    WITH queue AS MATERIALIZED (
      SELECT u.name, count(*) AS jobs FROM unnest(due_queues) AS u (name) GROUP BY u.name
    )
    SELECT coalesce(sum(q.jobs), 0)
      FROM unnest(pulse_internal.paused_queues(ARRAY(SELECT q.name FROM queue AS q))) AS p (name)
      JOIN queue AS q ON q.name = p.name);
  SELECT count(*), count(*) FILTER (WHERE l.run_at <= moment + interval '1 minute')
    INTO future, next_minute
    FROM (SELECT j.run_at FROM pulse.job AS j
           WHERE j.index_lane = 'p' AND j.run_at > moment
           ORDER BY j.run_at LIMIT bound) AS l;
END $$;
COMMENT ON FUNCTION pulse_internal.count_parked(timestamptz, int) IS
  'Counts jobs behind their queue that are due at a moment and of the due jobs the jobs behind a '
  'pause, jobs due later, and due within the next minute, each up to a bound, and tells since '
  'when the oldest job has been due.';

-- A job behind its queue is due or is not due. A small count tells the other count, so the parts
-- add up to the count of commits.
CREATE OR REPLACE FUNCTION pulse_internal.split_parked(
    jobs bigint, bound int, INOUT due bigint, INOUT future bigint, OUT is_cut boolean)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  is_cut := due >= bound AND future >= bound;
  IF is_cut THEN
    RETURN;
  ELSIF future < bound THEN
    future := least(future, jobs);
    due := jobs - future;
  ELSE
    due := least(due, jobs);
    future := jobs - due;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.split_parked(bigint, int, bigint, bigint) IS
  'Completes two counts that stopped at a bound from the count of all jobs behind queues; is_cut: '
  'both counts stopped, so the counts are the jobs that the query read.';

-- Reads tasks that may have future jobs first, then tasks of which nothing was claimed for longest:
-- of a task that the function does not read, all ready jobs are due.
CREATE OR REPLACE FUNCTION pulse_internal.counted_open(
    moment timestamptz, counts_pauses boolean, OUT ready bigint, OUT behind_queues bigint,
    OUT after_others bigint, OUT running bigint, OUT is_exact boolean, OUT due bigint,
    OUT future bigint, OUT soon bigint, OUT oldest timestamptz, OUT is_cut boolean,
    OUT more_soon boolean, OUT behind_pause bigint, OUT counted_at timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_tasks CONSTANT int := 120;
BEGIN
  WITH d AS MATERIALIZED (
    SELECT * FROM pulse_internal.depths()
  ), task AS MATERIALIZED (
    SELECT d.name, d.ready, d.latest_run_at, d.latest_run_at > moment AS may_be_future,
           d.name IS NOT NULL AND row_number() OVER (
             ORDER BY d.name IS NULL, d.latest_run_at <= moment, d.claimed_at NULLS FIRST)
             <= most_tasks AS is_checked
      FROM d WHERE d.kind = 'task' AND d.ready > 0
  ), asked AS (
    SELECT array_agg(t.name) AS names, array_agg(t.ready) AS ready,
           array_agg(t.latest_run_at) AS latest
      FROM task AS t WHERE t.is_checked
  ), open AS (
    SELECT sum(coalesce(j.due, t.ready)) AS due, sum(j.future) AS future, sum(j.soon) AS soon,
           min(j.oldest) AS oldest, bool_or(coalesce(j.is_cut, t.may_be_future)) AS is_cut,
           bool_or(coalesce(j.more_soon, t.may_be_future)) AS more_soon
      FROM task AS t
      LEFT JOIN (SELECT j.* FROM asked AS a CROSS JOIN LATERAL
                   pulse_internal.due_jobs(a.names, a.ready, a.latest) AS j) AS j
           ON t.is_checked AND j.name = t.name
  ), parked AS (
    SELECT array_agg(d.name) AS names FROM d
     WHERE counts_pauses AND d.kind = 'queue' AND d.parked > 0 AND d.name IS NOT NULL
  ), pause AS (
    SELECT coalesce(sum(d.parked - d.after_others), 0)::bigint AS jobs
      FROM parked AS p CROSS JOIN LATERAL unnest(pulse_internal.paused_queues(p.names)) AS q (name)
      JOIN d ON d.kind = 'queue' AND d.name = q.name
  )
  SELECT d.ready, d.parked - d.after_others, d.after_others, d.running, d.is_exact,
         coalesce(o.due, 0), coalesce(o.future, 0), coalesce(o.soon, 0), o.oldest,
         coalesce(o.is_cut, false), coalesce(o.more_soon, false), p.jobs, d.counted_at
    INTO ready, behind_queues, after_others, running, is_exact, due, future, soon, oldest, is_cut,
         more_soon, behind_pause, counted_at
    FROM d CROSS JOIN open AS o CROSS JOIN pause AS p WHERE d.kind = 'all';
END $$;
COMMENT ON FUNCTION pulse_internal.counted_open(timestamptz, boolean) IS
  'Adds up the counts of commits: ready jobs by whether the jobs are due, at this moment or '
  'within a minute, jobs behind queues, after others and running, and with counts_pauses the jobs '
  'behind paused queues.';

CREATE OR REPLACE FUNCTION pulse_internal.counted_jobs(moment timestamptz)
  RETURNS pulse_internal.live_figures
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 150;
  seen record;
  parked record;
  split record;
  may_be_future boolean;
  f pulse_internal.live_figures;
BEGIN
  SELECT * INTO parked FROM pulse_internal.count_parked(moment, bound);
  SELECT * INTO seen FROM pulse_internal.counted_open(moment, parked.due >= bound);
  SELECT * INTO split FROM pulse_internal.split_parked(
    seen.behind_queues, bound, parked.due, parked.future);
  f.ready := seen.due;
  f.future := seen.future;
  f.due_next_minute := seen.soon + parked.next_minute;
  f.parked_future := split.future;
  f.parked_waiting := seen.after_others;
  f.parked_paused := least(CASE WHEN parked.due < bound THEN parked.paused
                             ELSE seen.behind_pause END, split.due);
  f.parked_full := split.due - f.parked_paused;
  f.running := seen.running;
  f.oldest_due_at := least(seen.oldest, parked.oldest);
  f.counted_at := seen.counted_at;
  -- Among the parked jobs of paused queues may be some of the future jobs.
  may_be_future := parked.due >= bound AND split.future > 0 AND f.parked_paused > 0;
  f.estimated := ARRAY(
    SELECT n.name FROM (VALUES
      ('ready', seen.is_cut), ('future', seen.is_cut),
      ('due_next_minute', seen.more_soon OR parked.next_minute >= bound),
      ('parked_future', split.is_cut AND parked.future >= bound),
      ('parked_paused', may_be_future OR split.is_cut AND parked.due >= bound),
      ('parked_full', may_be_future OR split.is_cut AND parked.due >= bound),
      ('parked_waiting', false), ('running', false)) AS n (name, is_cut)
     WHERE n.is_cut OR NOT seen.is_exact);
  RETURN f;
END $$;
COMMENT ON FUNCTION pulse_internal.counted_jobs(timestamptz) IS
  'Returns the figures of pulse.overview that are about live jobs, from the counts of commits.';

CREATE OR REPLACE FUNCTION pulse_internal.live_figures(moment timestamptz)
  RETURNS pulse_internal.live_figures
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN CASE WHEN pulse_internal.has_depths() THEN pulse_internal.counted_jobs(moment)
           ELSE pulse_internal.uncounted_jobs(moment) END;
END $$;
COMMENT ON FUNCTION pulse_internal.live_figures(timestamptz) IS
  'Returns the figures of pulse.overview that are about live jobs.';

CREATE OR REPLACE FUNCTION pulse.overview()
  RETURNS TABLE (
    at timestamptz, ready bigint, future bigint, due_next_minute bigint, parked_future bigint,
    parked_paused bigint, parked_full bigint, parked_waiting bigint, running bigint,
    estimated text[], oldest_due_at timestamptz, oldest_due_age interval, completed bigint,
    failed bigint, quarantined bigint, cancelled bigint, expired bigint, workers_alive bigint,
    workers_draining bigint, workers_silent bigint, workers_lost bigint, next_schedule text,
    next_schedule_at timestamptz, installation text, claims boolean, swept_at timestamptz,
    sweeps boolean, counted_at timestamptz, shard int, dead_letters_refused bigint)
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
         pulse_internal.is_swept(pulse_internal.two_sweep_intervals()), j.counted_at, b.shard,
         pulse_internal.dead_letters_refused()
    FROM pulse_internal.live_figures(moment) AS j
   CROSS JOIN pulse_internal.count_not_completed(moment - interval '1 minute', 10000) AS e
   CROSS JOIN pulse_internal.count_workers() AS w
   CROSS JOIN pulse_internal.id_bounds AS b
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
         o.next_schedule_at, o.installation, o.claims, o.swept_at, o.sweeps, o.counted_at,
         o.shard, o.dead_letters_refused
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
  'Due jobs whose queue, or a level above, is paused, by an operator or by the end of a job';
COMMENT ON COLUMN pulse.overview.parked_full IS
  'Other due jobs behind their queue: the queue or a level is full, or the queue opens the jobs '
  'next; and jobs whose key is undecided';
COMMENT ON COLUMN pulse.overview.parked_waiting IS 'Jobs that wait for other jobs';
COMMENT ON COLUMN pulse.overview.running IS 'Jobs that a worker has';
COMMENT ON COLUMN pulse.overview.estimated IS
  'Which of the counts of live jobs are not exact; empty: all are exact. Where commits count, '
  'estimated names ready and future if some task has many of both, and jobs behind queues if 150 '
  'or more are due and as many are not. Elsewhere estimated names counts of more than 1,000, and '
  'of ready jobs counts that may miss some among many. The named counts are the jobs that the '
  'query read, so there are as many or more';
COMMENT ON COLUMN pulse.overview.oldest_due_at IS
  'run_at of the open or parked job that has been due for longest, of open jobs among 120 tasks, '
  'first the tasks of which nothing was claimed for longest; where no commit counts, of more than '
  '1,000 open jobs among the first 150 tasks and priorities; NULL without such a job';
COMMENT ON COLUMN pulse.overview.oldest_due_age IS 'How long that job has been due';
COMMENT ON COLUMN pulse.overview.completed IS
  'Jobs that completed within the last minute: 60 to 70 seconds; without preloading, kept jobs '
  'only, up to 10,000';
COMMENT ON COLUMN pulse.overview.failed IS
  'Jobs that failed for good within the last minute; failed and the next three columns are '
  'counted up to 10,000 together';
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
  'Name of the schedule that is due next; NULL without a schedule';
COMMENT ON COLUMN pulse.overview.next_schedule_at IS 'When that schedule is due';
COMMENT ON COLUMN pulse.overview.installation IS
  'ours, unused (no worker yet), moved (adopted by the next claim), copy or subscribed (claims are '
  'refused)';
COMMENT ON COLUMN pulse.overview.claims IS 'The setting pulse.claims of this session';
COMMENT ON COLUMN pulse.overview.swept_at IS 'When the last sweep began';
COMMENT ON COLUMN pulse.overview.sweeps IS
  'A sweep has run within the last two sweep intervals: dead workers are noticed';
COMMENT ON COLUMN pulse.overview.counted_at IS
  'When the live jobs were counted: calls of a transaction within a second have the same count, '
  'and at REPEATABLE READ all calls';
COMMENT ON COLUMN pulse.overview.shard IS
  'Shard whose ids this database gives out: set_shard(); 0 for a database alone';
COMMENT ON COLUMN pulse.overview.dead_letters_refused IS
  'Dead letters that were refused since the server started; the last_error of each job says why; '
  'NULL without shared memory';
