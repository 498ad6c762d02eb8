-- The state of the whole queue in one row, cheap enough to be polled each second. Commits count
-- live jobs (depths.sql). Figures that time changes without a commit are counted on an index up to
-- a bound. Where commits count nothing, every figure is counted so (uncounted.sql). The column
-- `estimated` names the figures that are not exact.

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
  'Counts jobs behind their queue that are due at a moment, those of them behind a pause, jobs due '
  'later, and due within the next minute, each up to a bound, and tells since when the oldest job '
  'has been due.';

-- Commits count each queue. The jobs of a queue whose latest job is due are due, and those of a
-- queue whose soonest job is not due are future; of the largest other queues the index tells.
CREATE OR REPLACE FUNCTION pulse_internal.counted_behind_queues(
    moment timestamptz, OUT future bigint, OUT due_paused bigint, OUT due_full bigint,
    OUT behind_pauses bigint, OUT future_is_cut boolean, OUT paused_is_cut boolean,
    OUT full_is_cut boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_queues CONSTANT int := 20;
  most_jobs CONSTANT int := 100;
BEGIN
  WITH queue AS MATERIALIZED (
    SELECT d.name, d.parked - d.after_others AS jobs, d.latest_run_at,
           d.latest_run_at <= moment AS is_due, (d.soonest_run_at > moment) IS TRUE AS is_future
      FROM pulse_internal.depths() AS d
     WHERE d.kind = 'queue' AND d.parked > d.after_others
  ), asked AS (
    SELECT array_agg(q.name) AS names, array_agg(q.latest_run_at) AS latest,
           most_jobs / greatest(count(*), 1) AS share
      FROM (SELECT q.name, q.latest_run_at FROM queue AS q
             WHERE NOT q.is_due AND NOT q.is_future AND q.name IS NOT NULL
             ORDER BY q.jobs DESC, q.name LIMIT most_queues) AS q
  ), seen AS (
    SELECT c.name, c.due, c.future, c.more_due, c.more_future
      FROM asked AS a CROSS JOIN LATERAL pulse_internal.count_due(
             'queue', a.names, a.latest, moment, a.share, a.share, most_jobs) AS c
     WHERE a.names IS NOT NULL
  ), pause AS MATERIALIZED (
    SELECT u.name FROM unnest(pulse_internal.paused_queues(
             ARRAY(SELECT q.name FROM queue AS q WHERE q.name IS NOT NULL))) AS u (name)
  ), part AS (
    SELECT p.name IS NOT NULL AS is_paused, q.jobs,
           CASE WHEN q.is_due THEN 0 WHEN q.is_future THEN q.jobs
             WHEN s.more_future AND NOT s.more_due THEN greatest(q.jobs - s.due, s.future)
             ELSE coalesce(s.future, 0) END AS future,
           CASE WHEN q.is_due THEN q.jobs WHEN q.is_future THEN 0
             WHEN NOT s.more_future THEN greatest(q.jobs - s.future, s.due)
             ELSE coalesce(s.due, 0) END AS due,
           NOT q.is_due AND NOT q.is_future AND (s.more_due AND s.more_future) IS NOT FALSE
             AS is_cut,
           -- Which of the further queues are paused is not known.
           q.name IS NULL AND EXISTS (SELECT FROM pulse_internal.paused_name) AS may_be_paused
      FROM queue AS q LEFT JOIN seen AS s ON s.name = q.name LEFT JOIN pause AS p ON p.name = q.name
  )
  SELECT coalesce(sum(p.future), 0), coalesce(sum(p.due) FILTER (WHERE p.is_paused), 0),
         coalesce(sum(p.due) FILTER (WHERE NOT p.is_paused AND NOT p.may_be_paused), 0),
         coalesce(sum(p.jobs) FILTER (WHERE p.is_paused), 0), coalesce(bool_or(p.is_cut), false),
         coalesce(bool_or(p.may_be_paused OR p.is_cut AND p.is_paused), false),
         coalesce(bool_or(p.may_be_paused OR p.is_cut AND NOT p.is_paused), false)
    INTO future, due_paused, due_full, behind_pauses, future_is_cut, paused_is_cut, full_is_cut
    FROM part AS p;
END $$;
COMMENT ON FUNCTION pulse_internal.counted_behind_queues(timestamptz) IS
  'Splits the jobs that commits count behind queues into future jobs, due jobs of paused queues, '
  'and other due jobs; behind_pauses: all jobs of paused queues. is_cut: some queue has many due '
  'and many future jobs, or may be paused, and the function has not read all jobs of the queue.';

-- Reads tasks that may have due and future jobs first, then tasks of which nothing was claimed for
-- longest: of a task that the function does not read, all ready jobs are due, or all are future.
CREATE OR REPLACE FUNCTION pulse_internal.counted_open(
    moment timestamptz, OUT ready bigint, OUT behind_queues bigint, OUT after_others bigint,
    OUT running bigint, OUT is_exact boolean, OUT due bigint, OUT future bigint, OUT soon bigint,
    OUT oldest timestamptz, OUT is_cut boolean, OUT more_soon boolean, OUT counted_at timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_tasks CONSTANT int := 150;
BEGIN
  WITH d AS MATERIALIZED (
    SELECT * FROM pulse_internal.depths()
  ), task AS MATERIALIZED (
    SELECT t.*, row_number() OVER (ORDER BY t.is_far_future, t.is_due, t.is_future,
                                            t.claimed_at NULLS FIRST, t.name COLLATE "C") AS place
      FROM (SELECT d.name, d.ready, d.claimed_at, d.latest_run_at,
                   d.latest_run_at <= moment AS is_due,
                   (d.soonest_run_at > moment) IS TRUE AS is_future,
                   (d.soonest_run_at > moment + interval '1 minute') IS TRUE AS is_far_future
              FROM d WHERE d.kind = 'task' AND d.ready > 0) AS t
  ), asked AS (
    SELECT array_agg(t.name ORDER BY t.place) AS names,
           array_agg(t.ready ORDER BY t.place) AS ready,
           array_agg(t.latest_run_at ORDER BY t.place) AS latest
      FROM task AS t
     WHERE t.name IS NOT NULL AND NOT t.is_far_future AND t.place <= most_tasks
  ), open AS (
    SELECT sum(CASE WHEN t.is_due THEN t.ready WHEN t.is_future THEN 0 ELSE j.due END) AS due,
           sum(CASE WHEN t.is_due THEN 0 WHEN t.is_future THEN t.ready ELSE j.future END)
             AS future,
           sum(j.soon) AS soon, min(j.oldest) AS oldest,
           bool_or(NOT t.is_due AND NOT t.is_future AND j.is_cut IS NOT FALSE) AS is_cut,
           bool_or(NOT t.is_due AND NOT t.is_far_future AND j.more_soon IS NOT FALSE) AS more_soon
      FROM task AS t
      LEFT JOIN (SELECT j.* FROM asked AS a CROSS JOIN LATERAL
                   pulse_internal.due_jobs(a.names, a.ready, a.latest, moment, true, 700) AS j
                  WHERE a.names IS NOT NULL) AS j ON j.name = t.name
  )
  SELECT d.ready, d.parked - d.after_others, d.after_others, d.running, d.is_exact,
         coalesce(o.due, 0), coalesce(o.future, 0), coalesce(o.soon, 0), o.oldest,
         coalesce(o.is_cut, false), coalesce(o.more_soon, false), d.counted_at
    INTO ready, behind_queues, after_others, running, is_exact, due, future, soon, oldest, is_cut,
         more_soon, counted_at
    FROM d CROSS JOIN open AS o WHERE d.kind = 'all';
END $$;
COMMENT ON FUNCTION pulse_internal.counted_open(timestamptz) IS
  'Adds up the counts of commits: ready jobs by whether they are due, at this moment or within a '
  'minute, jobs behind queues, after others and running.';

CREATE OR REPLACE FUNCTION pulse_internal.counted_jobs(moment timestamptz)
  RETURNS pulse_internal.live_figures
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 150;
  seen record;
  parked record;
  queues record;
  f pulse_internal.live_figures;
  future_is_cut boolean := false;
  paused_is_cut boolean := false;
  full_is_cut boolean := false;
BEGIN
  SELECT * INTO parked FROM pulse_internal.count_parked(moment, bound);
  SELECT * INTO seen FROM pulse_internal.counted_open(moment);
  -- A small count is exact, and tells the other count: the parts add up to the count of commits.
  f.parked_future := least(parked.future, seen.behind_queues);
  f.parked_paused := parked.paused;
  IF parked.due >= bound THEN
    SELECT * INTO queues FROM pulse_internal.counted_behind_queues(moment);
    f.parked_paused := queues.due_paused;
    paused_is_cut := queues.paused_is_cut;
    full_is_cut := queues.paused_is_cut OR queues.full_is_cut AND parked.future >= bound;
    future_is_cut := queues.future_is_cut AND parked.future >= bound;
  END IF;
  IF parked.future >= bound AND parked.due < bound THEN
    f.parked_future := greatest(seen.behind_queues - parked.due, 0);
  ELSIF parked.future >= bound THEN
    f.parked_future := queues.future;
  END IF;
  f.parked_full := greatest(seen.behind_queues - f.parked_future - f.parked_paused, 0);
  IF full_is_cut THEN
    f.parked_full := queues.due_full;
  END IF;
  f.ready := seen.due;
  f.future := seen.future;
  f.due_next_minute := seen.soon + parked.next_minute;
  f.parked_waiting := seen.after_others;
  f.running := seen.running;
  f.oldest_due_at := least(seen.oldest, parked.oldest);
  f.counted_at := seen.counted_at;
  f.estimated := ARRAY(
    SELECT n.name FROM (VALUES
      ('ready', seen.is_cut), ('future', seen.is_cut),
      ('due_next_minute', seen.more_soon OR parked.next_minute >= bound),
      ('parked_future', future_is_cut), ('parked_paused', paused_is_cut),
      ('parked_full', full_is_cut), ('parked_waiting', false), ('running', false))
        AS n (name, is_cut)
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
         j.parked_full, j.parked_waiting, j.running,
         j.estimated || CASE WHEN c.jobs IS NULL THEN '{completed}'::text[] END
           || CASE WHEN e.is_cut THEN '{failed,quarantined,cancelled,expired}'::text[] END,
         j.oldest_due_at, moment - j.oldest_due_at,
         coalesce(c.jobs, pulse_internal.count_completed(moment - interval '1 minute', 10000)),
         e.failed, e.quarantined, e.cancelled, e.expired, w.alive, w.draining, w.silent, w.lost,
         s.name, s.next_due,
         pulse_internal.installation_standing(), current_setting('pulse.claims')::boolean,
         pulse_internal.last_tick(),
         pulse_internal.is_swept(pulse_internal.two_sweep_intervals()), j.counted_at, b.shard,
         pulse_internal.dead_letters_refused()
    FROM pulse_internal.live_figures(moment) AS j
   CROSS JOIN (SELECT pulse_internal.completed_since(moment - interval '1 minute') AS jobs) AS c
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
  'Which of the counts of live and ended jobs are not exact; empty: all are exact. Where commits '
  'count, estimated names ready and future if some task has many of both, and jobs behind queues '
  'if some queue has. Elsewhere estimated names completed, counts of live jobs of more than 1,000, '
  'and of ready jobs counts that may miss some among many. The named counts are the jobs that the '
  'query read, so there are as many or more';
COMMENT ON COLUMN pulse.overview.oldest_due_at IS
  'run_at of the open or parked job that has been due for longest, of open jobs among the tasks '
  'that 700 pages tell of (some 80 to 150), first the tasks of which nothing was claimed for '
  'longest; where no commit counts, of more than 1,000 open jobs among the first 150 tasks and '
  'priorities; NULL without such a job';
COMMENT ON COLUMN pulse.overview.oldest_due_age IS 'How long that job has been due';
COMMENT ON COLUMN pulse.overview.completed IS
  'Jobs that completed within the last minute: 60 to 70 seconds; without preloading, kept jobs '
  'only, up to 10,000';
COMMENT ON COLUMN pulse.overview.failed IS
  'Jobs that failed for good within the last minute; failed and the next three columns count the '
  'last 10,000 ends together, and if there are as many, estimated names the four';
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
