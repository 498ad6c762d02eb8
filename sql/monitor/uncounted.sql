-- Live jobs where no commit counts jobs: without preloading, on a standby, before the first
-- recount. The functions read up to 1,000 jobs of each lane from its index. Where no lane has more,
-- all figures are exact. Else a figure counts the jobs read, and `estimated` says that there may be
-- more.

CREATE OR REPLACE FUNCTION pulse_internal.first_jobs(bound int)
  RETURNS TABLE (lane text, identifier text, queue_name text, run_at timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  (SELECT 'ready', j.identifier, j.queue_name, j.run_at FROM pulse.job AS j
    WHERE j.index_lane = 'o' AND j.state::text = 'ready'
    ORDER BY j.identifier, j.priority, j.run_at LIMIT bound)
  UNION ALL
  (SELECT 'parked', j.identifier, j.queue_name, j.run_at FROM pulse.job AS j
    WHERE j.index_lane = 'p' ORDER BY j.run_at LIMIT bound)
  UNION ALL
  (SELECT 'waiting', j.identifier, j.queue_name, j.run_at FROM pulse.job AS j
    WHERE j.index_lane = 'w' LIMIT bound)
  UNION ALL
  (SELECT 'undecided', j.identifier, j.queue_name, j.run_at FROM pulse.job AS j
    WHERE j.index_lane = 'k' AND j.job_key IS NOT NULL LIMIT bound)
  UNION ALL
  -- Finds the jobs of running_ids(), with one lookup of each job instead of two.
  (SELECT 'running', j.identifier, j.queue_name, j.run_at FROM pulse.job AS j
    WHERE j.running_worker_id IS NOT NULL LIMIT bound)
  UNION ALL
  (SELECT 'running', i.identifier, i.queue_name, i.run_at
     FROM pulse.claim_batch AS b CROSS JOIN LATERAL (
       SELECT j.identifier, j.queue_name, j.run_at FROM pulse.job AS j
        WHERE j.id = ANY (b.job_ids) AND j.token = b.token AND j.in_place
          AND j.state::text = 'running' OFFSET 0) AS i
    LIMIT bound);
END $$;
COMMENT ON FUNCTION pulse_internal.first_jobs(int) IS
  'Returns the first live jobs of each lane, up to a bound: ready jobs by task, parked jobs by '
  'run_at.';

CREATE OR REPLACE FUNCTION pulse_internal.first_groups(
    moment timestamptz, bound int, of_kind text)
  RETURNS TABLE (kind text, name text, due bigint, future bigint, parked bigint, waiting bigint,
                 running bigint, oldest timestamptz, ready_is_cut boolean, others_are_cut boolean,
                 waiting_is_cut boolean)
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  WITH seen AS MATERIALIZED (
    SELECT f.* FROM pulse_internal.first_jobs(bound + 1) AS f
  ), cut AS MATERIALIZED (
    SELECT coalesce(bool_or(l.lane = 'ready'), false) AS ready,
           coalesce(bool_or(l.lane <> 'ready'), false) AS others,
           coalesce(bool_or(l.lane IN ('waiting', 'undecided')), false) AS waiting
      FROM (SELECT s.lane FROM seen AS s GROUP BY s.lane HAVING count(*) > bound) AS l
  )
  SELECT n.kind, n.name,
         count(*) FILTER (WHERE s.lane = 'ready' AND s.run_at <= moment),
         count(*) FILTER (WHERE s.lane = 'ready' AND s.run_at > moment),
         count(*) FILTER (WHERE s.lane = 'parked'),
         count(*) FILTER (WHERE s.lane IN ('waiting', 'undecided')),
         count(*) FILTER (WHERE s.lane = 'running'),
         min(s.run_at) FILTER (WHERE s.run_at <= moment AND (
           s.lane = 'ready' OR n.kind = 'queue' AND s.lane = 'parked')),
         c.ready, c.others, c.waiting
    FROM seen AS s CROSS JOIN cut AS c
   CROSS JOIN LATERAL (VALUES ('task', s.identifier), ('queue', s.queue_name)) AS n (kind, name)
   WHERE n.name IS NOT NULL AND (of_kind IS NULL OR n.kind = of_kind)
   GROUP BY n.kind, n.name, c.ready, c.others, c.waiting;
$$;
COMMENT ON FUNCTION pulse_internal.first_groups(timestamptz, int, text) IS
  'Counts the first live jobs of each lane by task and by queue; is_cut: a lane has more than the '
  'bound.';

-- Beyond the bound few jobs of each task are counted, so that all tasks are listed.
CREATE OR REPLACE FUNCTION pulse_internal.seen_of_tasks(max_rows int)
  RETURNS TABLE (name text, due bigint, future bigint, soon bigint, oldest timestamptz,
                 more_due boolean, more_future boolean, more_soon boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  names CONSTANT text[] := ARRAY(
    SELECT DISTINCT f.identifier
      FROM (SELECT * FROM pulse_internal.first_ready LIMIT max_rows) AS f);
BEGIN
  RETURN QUERY SELECT t.* FROM pulse_internal.due_of_tasks(
    names, array_fill('infinity'::timestamptz, ARRAY[cardinality(names)]), 300) AS t;
END $$;
COMMENT ON FUNCTION pulse_internal.seen_of_tasks(int) IS
  'Counts ready jobs of the tasks in the first max_rows pairs of task and priority, as '
  'due_of_tasks() does.';

-- The last row of a kind may have no name: there are further names, and the row tells nothing of
-- their jobs.
CREATE OR REPLACE FUNCTION pulse_internal.uncounted_stats(max_rows int, of_kind text)
  RETURNS TABLE (kind text, name text, ready bigint, future bigint, parked bigint, running bigint,
                 oldest timestamptz, estimated boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 1000;
  most_queues CONSTANT int := least(max_rows, 100);
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  WITH group_of AS MATERIALIZED (
    SELECT f.* FROM pulse_internal.first_groups(moment, bound, of_kind) AS f
  ), cut AS MATERIALIZED (
    SELECT coalesce(bool_or(g.ready_is_cut), false) AS ready,
           coalesce(bool_or(g.others_are_cut), false) AS others,
           coalesce(bool_or(g.waiting_is_cut), false) AS waiting
      FROM group_of AS g
  ), open AS MATERIALIZED (
    SELECT o.* FROM cut AS c
     CROSS JOIN LATERAL pulse_internal.seen_of_tasks(max_rows + 1) AS o
     WHERE c.ready AND (of_kind = 'task') IS NOT FALSE
  ), walked AS (
    SELECT w.name FROM cut AS c
     CROSS JOIN LATERAL pulse_internal.parked_queues(most_queues + 1) AS w (name)
     WHERE c.others AND (of_kind = 'queue') IS NOT FALSE
  ), listed AS MATERIALIZED (
    SELECT r.kind, r.name, r.place > CASE r.kind WHEN 'task' THEN max_rows ELSE most_queues END
             AS is_beyond
      FROM (SELECT k.kind, k.name, row_number() OVER (
                     PARTITION BY k.kind ORDER BY min(k.oldest) NULLS LAST, k.name) AS place
              FROM (SELECT g.kind, g.name, g.oldest FROM group_of AS g
                    UNION ALL SELECT 'task', o.name, o.oldest FROM open AS o
                    UNION ALL SELECT 'queue', w.name, NULL FROM walked AS w) AS k
             GROUP BY k.kind, k.name) AS r
  ), queue AS MATERIALIZED (
    SELECT ARRAY(SELECT l.name FROM listed AS l WHERE l.kind = 'queue' AND NOT l.is_beyond)
             AS names
      FROM cut AS c WHERE c.ready OR c.others
  ), counted AS MATERIALIZED (
    SELECT n.* FROM queue AS q
     CROSS JOIN LATERAL pulse_internal.count_queues(
       q.names, bound / greatest(cardinality(q.names), 1)) AS n
  ), old AS MATERIALIZED (
    SELECT o.* FROM queue AS q CROSS JOIN LATERAL pulse_internal.oldest_of_queues(q.names) AS o
  )
  SELECT l.kind, l.name,
         CASE l.kind WHEN 'task' THEN greatest(o.due, g.due, 0)
           ELSE coalesce(n.ready, g.due + g.future) END,
         CASE l.kind WHEN 'task' THEN greatest(o.future, g.future, 0) END,
         coalesce(n.due + n.future, g.parked, 0) + coalesce(g.waiting, 0),
         greatest(n.running, g.running, 0), coalesce(o.oldest, d.oldest, g.oldest),
         CASE l.kind WHEN 'task' THEN c.others OR coalesce(o.more_due OR o.more_future, c.ready)
           ELSE coalesce(n.is_cut, false) OR c.waiting END
    FROM listed AS l CROSS JOIN cut AS c
    LEFT JOIN group_of AS g ON g.kind = l.kind AND g.name = l.name
    LEFT JOIN open AS o ON l.kind = 'task' AND o.name = l.name
    LEFT JOIN counted AS n ON l.kind = 'queue' AND n.name = l.name
    LEFT JOIN old AS d ON l.kind = 'queue' AND d.name = l.name
   WHERE NOT l.is_beyond
  UNION ALL
  SELECT DISTINCT l.kind, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
         NULL::timestamptz, true
    FROM listed AS l WHERE l.is_beyond
   ORDER BY 1 DESC, 7 NULLS LAST, 2;
END $$;
COMMENT ON FUNCTION pulse_internal.uncounted_stats(int, text) IS
  'Returns depth and age of tasks and queues where no commit counts jobs.';

CREATE OR REPLACE FUNCTION pulse_internal.uncounted_open(
    moment timestamptz, bound int, OUT due bigint, OUT future bigint, OUT soon bigint,
    OUT oldest timestamptz, OUT more_due boolean, OUT more_future boolean, OUT more_soon boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  most_pairs CONSTANT int := 150;
  jobs bigint;
  pairs bigint;
BEGIN
  SELECT count(*), count(*) FILTER (WHERE r.run_at <= moment),
         count(*) FILTER (WHERE r.run_at > moment),
         count(*) FILTER (WHERE r.run_at > moment AND r.run_at <= moment + interval '1 minute'),
         min(r.run_at) FILTER (WHERE r.run_at <= moment), false, false, false
    INTO jobs, due, future, soon, oldest, more_due, more_future, more_soon
    FROM (SELECT j.run_at FROM pulse_internal.ready_job AS j
           ORDER BY j.identifier, j.priority, j.run_at LIMIT bound + 1) AS r;
  IF jobs > bound THEN
    pairs := (SELECT count(*) FROM (
                SELECT FROM pulse_internal.first_ready LIMIT most_pairs + 1) AS p);
    SELECT greatest(sum(t.due), uncounted_open.due),
           greatest(sum(t.future), uncounted_open.future),
           greatest(sum(t.soon), uncounted_open.soon),
           least(min(t.oldest), uncounted_open.oldest),
           bool_or(t.more_due) OR pairs > most_pairs,
           bool_or(t.more_future) OR pairs > most_pairs,
           bool_or(t.more_soon) OR pairs > most_pairs
      INTO due, future, soon, oldest, more_due, more_future, more_soon
      FROM pulse_internal.seen_of_tasks(most_pairs) AS t;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.uncounted_open(timestamptz, int) IS
  'Counts ready jobs that are due at a moment, are not due, and fall due within a minute: all up '
  'to a bound, else the jobs read of the first 150 pairs of task and priority.';

CREATE OR REPLACE FUNCTION pulse_internal.uncounted_waits(
    bound int, OUT after_others bigint, OUT undecided bigint)
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET jit = off AS $$
  SELECT (SELECT count(*) FROM (
            SELECT FROM pulse.job AS j WHERE j.index_lane = 'w' LIMIT bound) AS w),
         (SELECT count(*) FROM (
            SELECT FROM pulse.job AS j WHERE j.index_lane = 'k' LIMIT bound) AS k);
$$;
COMMENT ON FUNCTION pulse_internal.uncounted_waits(int) IS
  'Counts parked jobs that wait for other jobs, and jobs whose key is undecided, each up to a '
  'bound.';

CREATE OR REPLACE FUNCTION pulse_internal.uncounted_jobs(moment timestamptz)
  RETURNS pulse_internal.live_figures
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 1000;
  open record;
  parked record;
  waits record;
  f pulse_internal.live_figures;
BEGIN
  SELECT * INTO open FROM pulse_internal.uncounted_open(moment, bound);
  SELECT * INTO parked FROM pulse_internal.count_parked(moment, bound + 1);
  SELECT * INTO waits FROM pulse_internal.uncounted_waits(bound + 1);
  f.ready := open.due;
  f.future := open.future;
  f.due_next_minute := open.soon + least(parked.next_minute, bound);
  f.parked_future := least(parked.future, bound);
  f.parked_paused := least(parked.paused, bound);
  f.parked_full := least(parked.due, bound) - f.parked_paused + least(waits.undecided, bound);
  f.parked_waiting := least(waits.after_others, bound);
  f.running := coalesce(cardinality(pulse_internal.running_ids(NULL, bound + 1)), 0);
  f.estimated := ARRAY(
    SELECT n.name FROM (VALUES
      ('ready', open.more_due), ('future', open.more_future),
      ('due_next_minute', open.more_soon OR parked.next_minute > bound),
      ('parked_future', parked.future > bound), ('parked_paused', parked.due > bound),
      ('parked_full', parked.due > bound OR waits.undecided > bound),
      ('parked_waiting', waits.after_others > bound),
      ('running', f.running > bound)) AS n (name, is_cut) WHERE n.is_cut);
  f.running := least(f.running, bound);
  f.oldest_due_at := least(open.oldest, parked.oldest);
  f.counted_at := moment;
  RETURN f;
END $$;
COMMENT ON FUNCTION pulse_internal.uncounted_jobs(timestamptz) IS
  'Returns the figures of pulse.overview that are about live jobs, where no commit counts jobs.';
