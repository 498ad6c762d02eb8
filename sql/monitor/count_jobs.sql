-- How many jobs there are in each state, for the tabs above a list of jobs: cheaper than the list.
-- Commits count live jobs, of all tasks or of one (depths.sql). Under other conditions, and for
-- ended jobs, the newest jobs are read up to a bound.

-- Of a name whose latest job is due all jobs are due, and of a name whose soonest job is not due no
-- job is due. Of other tasks the index tells, the tasks with the fewest jobs first, unless many
-- jobs are known of either side.
CREATE OR REPLACE FUNCTION pulse_internal.counted_states(
    moment timestamptz, task text, OUT due bigint, OUT future bigint, OUT parked bigint,
    OUT running bigint, OUT is_exact boolean, OUT is_cut boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  enough CONSTANT int := 1000;
  most_tasks CONSTANT int := 50;
  pages CONSTANT int := 50;
BEGIN
  WITH name AS MATERIALIZED (
    SELECT d.name, d.ready, d.parked, d.running, d.latest_run_at, d.is_exact,
           d.latest_run_at <= moment AS is_due, (d.soonest_run_at > moment) IS TRUE AS is_future
      FROM pulse_internal.depths() AS d
     WHERE d.kind = 'task' AND (task IS NULL OR d.name = task)
  ), sure AS MATERIALIZED (
    SELECT coalesce(sum(n.ready) FILTER (WHERE n.is_due), 0) AS due,
           coalesce(sum(n.ready) FILTER (WHERE n.is_future), 0) AS future
      FROM name AS n
  ), asked AS (
    SELECT array_agg(m.name ORDER BY m.ready, m.name) AS names,
           array_agg(m.ready ORDER BY m.ready, m.name) AS ready,
           array_agg(m.latest_run_at ORDER BY m.ready, m.name) AS latest
      FROM (SELECT n.* FROM name AS n CROSS JOIN sure AS s
             WHERE n.ready > 0 AND n.name IS NOT NULL AND NOT n.is_due AND NOT n.is_future
               AND least(s.due, s.future) < enough
             ORDER BY n.ready, n.name LIMIT most_tasks) AS m
  ), seen AS (
    SELECT j.name, j.due, j.future, j.is_cut FROM asked AS a CROSS JOIN LATERAL
             pulse_internal.due_jobs(a.names, a.ready, a.latest, moment, false, pages) AS j
     WHERE a.names IS NOT NULL
  )
  SELECT coalesce(sum(CASE WHEN n.is_due THEN n.ready WHEN n.is_future THEN 0 ELSE s.due END), 0),
         coalesce(sum(CASE WHEN n.is_due THEN 0 WHEN n.is_future THEN n.ready ELSE s.future END),
                  0),
         coalesce(sum(n.parked), 0), coalesce(sum(n.running), 0),
         coalesce(bool_and(n.is_exact), true),
         coalesce(bool_or(n.ready > 0 AND NOT n.is_due AND NOT n.is_future
                          AND s.is_cut IS NOT FALSE), false)
    INTO due, future, parked, running, is_exact, is_cut
    FROM name AS n LEFT JOIN seen AS s ON s.name = n.name;
END $$;
COMMENT ON FUNCTION pulse_internal.counted_states(timestamptz, text) IS
  'Adds up the counts of commits of all tasks, or of one task; due and future: ready jobs, where '
  'is_cut at least so many. is_exact is false where a change waits for the next recount.';

-- Of a queue as of a task, but jobs that wait for other jobs have a time, too, and no index by it.
CREATE OR REPLACE FUNCTION pulse_internal.parked_later(
    moment timestamptz, OUT jobs bigint, OUT is_cut boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  bound CONSTANT int := 150;
  others_may_be_later boolean;
  most bigint;
  seen bigint;
BEGIN
  SELECT coalesce(sum(d.parked - d.after_others) FILTER (
           WHERE d.kind = 'queue' AND d.soonest_run_at > moment), 0),
         sum(d.parked - d.after_others) FILTER (
           WHERE d.kind = 'queue' AND (d.latest_run_at <= moment) IS NOT TRUE),
         coalesce(bool_or(d.kind = 'task' AND d.after_others > 0
                          AND (d.latest_run_at <= moment) IS NOT TRUE), false)
    INTO jobs, most, others_may_be_later
    FROM pulse_internal.depths() AS d;
  is_cut := others_may_be_later;
  IF jobs < most THEN
    SELECT count(*) INTO seen
      FROM (SELECT FROM pulse.job AS j WHERE j.index_lane = 'p' AND j.run_at > moment
             ORDER BY j.run_at LIMIT bound) AS l;
    jobs := CASE WHEN seen < bound THEN seen ELSE greatest(jobs, seen) END;
    is_cut := is_cut OR seen >= bound;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.parked_later(timestamptz) IS
  'Counts parked jobs that are not due, where is_cut at least so many.';

-- Few jobs have the same key, so an index leads to all of the jobs.
CREATE OR REPLACE FUNCTION pulse_internal.seen_states(
    moment timestamptz, task text, queue text, key text, error text, error_line text,
    before timestamptz, after timestamptz, bound int,
    OUT due bigint, OUT scheduled bigint, OUT parked bigint, OUT running bigint,
    OUT is_cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  most_jobs CONSTANT int := 1000;
  ids bigint[];
BEGIN
  IF key IS NOT NULL THEN
    ids := pulse_internal.few_live_ids(NULL, NULL, NULL, key, most_jobs);
  ELSIF num_nonnulls(error, error_line) > 0 THEN
    bound := least(bound, pulse_internal.texts_to_read(ARRAY(
      SELECT octet_length(j.last_error) FROM pulse.job AS j ORDER BY j.id DESC LIMIT bound)));
  END IF;
  WITH checked AS MATERIALIZED (
    (SELECT j.state::text AS state, j.identifier, j.queue_name, j.job_key, j.run_at, j.created_at,
            j.last_error
       FROM pulse.job AS j WHERE key IS NULL ORDER BY j.id DESC LIMIT bound)
    UNION ALL
    (SELECT j.state::text, j.identifier, j.queue_name, j.job_key, j.run_at, j.created_at,
            j.last_error
       FROM pulse.job AS j WHERE key IS NOT NULL AND j.id = ANY (ids))
  )
  SELECT count(*) FILTER (WHERE c.state = 'ready' AND c.run_at <= moment),
         count(*) FILTER (WHERE c.state IN ('ready', 'parked') AND c.run_at > moment),
         count(*) FILTER (WHERE c.state = 'parked'), count(*) FILTER (WHERE c.state = 'running'),
         key IS NULL AND (SELECT count(*) FROM checked) >= bound
    INTO due, scheduled, parked, running, is_cut
    FROM checked AS c
   WHERE pulse_internal.is_listed(c.state, c.identifier, c.queue_name, c.job_key, c.created_at,
           c.last_error, NULL, task, queue, key, error, error_line, before, after);
END $$;
COMMENT ON FUNCTION pulse_internal.seen_states(timestamptz, text, text, text, text, text,
    timestamptz, timestamptz, int) IS
  'Counts live jobs that meet the conditions among the newest up to the bound; is_cut: there may '
  'be more.';

CREATE OR REPLACE FUNCTION pulse_internal.seen_ends(
    task text, queue text, key text, error text, error_line text, before timestamptz,
    after timestamptz, bound int)
  RETURNS TABLE (state text, jobs bigint, is_cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 5
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  most_completed CONSTANT int := 1000;
  most_ends CONSTANT int := CASE num_nonnulls(error, error_line) WHEN 0 THEN bound
    ELSE pulse_internal.ends_to_read('infinity', 0, bound) END;
  page record;
BEGIN
  RETURN QUERY
  WITH checked AS MATERIALIZED (
    SELECT f.state::text AS state, f.identifier, f.queue_name, f.job_key, f.created_at,
           f.last_error
      FROM pulse.finished_job AS f WHERE f.state <> 'completed'
     ORDER BY f.finished_at DESC, f.id DESC LIMIT most_ends
  )
  SELECT n.state, count(c.state), (SELECT count(*) FROM checked) >= most_ends
    FROM unnest('{failed,quarantined,cancelled,expired}'::text[]) AS n (state)
    LEFT JOIN checked AS c ON c.state = n.state
     AND pulse_internal.is_listed(c.state, c.identifier, c.queue_name, c.job_key, c.created_at,
           c.last_error, NULL, task, queue, key, error, error_line, before, after)
   GROUP BY n.state;
  state := 'completed';
  is_cut := false;
  IF num_nonnulls(queue, key, error, error_line, before, after) > 0 THEN
    page := pulse_internal.ended_page('{completed}', task, queue, key, error, error_line, before,
              after, 9223372036854775807, most_completed, bound);
    jobs := cardinality(page.ids);
    is_cut := page.checked_to IS NOT NULL AND EXISTS (
      SELECT FROM pulse.finished_job AS f WHERE f.state = 'completed');
  ELSIF task IS NOT NULL THEN
    jobs := (SELECT count(*) FROM (
      SELECT FROM pulse.finished_job AS f WHERE f.state = 'completed' AND f.identifier = task
       LIMIT most_completed) AS c);
  ELSE
    jobs := (SELECT count(*) FROM (
      SELECT FROM pulse.finished_job AS f WHERE f.state = 'completed' LIMIT most_completed) AS c);
  END IF;
  is_cut := is_cut OR jobs >= most_completed;
  RETURN NEXT;
END $$;
COMMENT ON FUNCTION pulse_internal.seen_ends(text, text, text, text, text, timestamptz,
    timestamptz, int) IS
  'Counts kept ended jobs that meet the conditions: of jobs that ended without success the last '
  'ends up to the bound, of completed jobs up to 1,000; is_cut: there may be more.';

-- Without a row the name has no jobs, unless further names are counted together.
CREATE OR REPLACE FUNCTION pulse_internal.depth_of_name(
    of_kind text, of_name text, moment timestamptz, OUT ready bigint, OUT parked bigint,
    OUT running bigint, OUT is_exact boolean, OUT are_due boolean, OUT are_later boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT coalesce(d.ready, 0), coalesce(d.parked, 0), coalesce(d.running, 0),
         coalesce(d.is_exact, a.is_exact),
         coalesce(d.ready + d.parked = 0 OR d.latest_run_at <= moment, d.name IS NULL),
         coalesce(d.ready + d.parked = 0 OR d.soonest_run_at > moment, d.name IS NULL)
    INTO ready, parked, running, is_exact, are_due, are_later
    FROM (SELECT bool_or(r.kind = of_kind AND r.name IS NULL) AS has_more,
                 bool_and(r.is_exact) FILTER (WHERE r.kind = 'all') AS is_exact
            FROM pulse_internal.depths() AS r) AS a
    LEFT JOIN pulse_internal.depths() AS d ON d.kind = of_kind AND d.name = of_name
   WHERE d.name IS NOT NULL OR of_name IS NOT NULL AND NOT a.has_more;
END $$;
COMMENT ON FUNCTION pulse_internal.depth_of_name(text, text, timestamptz) IS
  'Returns the counts of commits of a task or queue, and whether all waiting jobs of the name are '
  'due, or none is; all NULL without a name, and where the name is not counted by itself.';

CREATE OR REPLACE FUNCTION pulse_internal.count_live(
    moment timestamptz, task text, queue text, key text, error text, error_line text,
    before timestamptz, after timestamptz, bound int)
  RETURNS TABLE (state text, jobs bigint, is_exact boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 4
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  is_counted CONSTANT boolean := pulse_internal.has_depths()
    AND num_nonnulls(key, error, error_line, before, after) = 0 AND num_nulls(task, queue) > 0;
  counted record;
  later record;
  name record;
  seen record;
BEGIN
  name := pulse_internal.depth_of_name(
    CASE WHEN task IS NULL THEN 'queue' ELSE 'task' END,
    CASE WHEN is_counted THEN coalesce(task, queue) END, moment);
  IF is_counted AND queue IS NULL AND (task IS NULL OR name.ready IS NOT NULL) THEN
    counted := pulse_internal.counted_states(moment, task);
    SELECT CASE WHEN name.are_later THEN name.parked ELSE 0 END AS jobs,
           name.parked > 0 AND NOT name.are_due AND NOT name.are_later AS is_cut INTO later;
    IF task IS NULL THEN
      later := pulse_internal.parked_later(moment);
    END IF;
    -- What the counts do not tell, a few jobs tell themselves.
    IF NOT (counted.is_cut OR later.is_cut) OR EXISTS (
         SELECT FROM pulse_internal.depths() AS d
          WHERE d.kind = 'all' AND d.ready + d.parked + d.running >= bound) THEN
      RETURN QUERY VALUES
        ('due', counted.due, counted.is_exact AND NOT counted.is_cut),
        ('scheduled', counted.future + later.jobs,
         counted.is_exact AND NOT counted.is_cut AND NOT later.is_cut),
        ('parked', counted.parked, counted.is_exact),
        ('running', counted.running, counted.is_exact);
      RETURN;
    END IF;
  END IF;
  IF is_counted AND (name.are_due OR name.are_later) THEN
    SELECT CASE WHEN name.are_due THEN name.ready ELSE 0 END AS due,
           CASE WHEN name.are_due THEN 0 ELSE name.ready + name.parked END AS scheduled,
           name.parked, name.running, NOT name.is_exact AS is_cut INTO seen;
  ELSE
    seen := pulse_internal.seen_states(moment, task, queue, key, error, error_line, before, after,
              bound);
  END IF;
  RETURN QUERY VALUES
    ('due', seen.due, NOT seen.is_cut), ('scheduled', seen.scheduled, NOT seen.is_cut),
    ('parked', coalesce(name.parked, seen.parked), coalesce(name.is_exact, NOT seen.is_cut)),
    ('running', coalesce(name.running, seen.running), coalesce(name.is_exact, NOT seen.is_cut));
END $$;
COMMENT ON FUNCTION pulse_internal.count_live(timestamptz, text, text, text, text, text,
    timestamptz, timestamptz, int) IS
  'Counts live jobs that meet the conditions: as commits count all jobs, a task or a queue, else '
  'the newest up to the bound.';

CREATE OR REPLACE FUNCTION pulse_internal.count_jobs_as_owner(
    task text, queue text, key text, error text, error_line text, older_than interval,
    newer_than interval)
  RETURNS TABLE (state text, jobs bigint, is_exact boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 9
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_live CONSTANT int := 1000;
  most_ends CONSTANT int := CASE num_nonnulls(task, queue, key, error, error_line, older_than,
    newer_than) WHEN 0 THEN 2000 ELSE 1000 END;
  moment CONSTANT timestamptz := pulse.now();
  before CONSTANT timestamptz := moment - pulse_internal.checked_age('older_than', older_than);
  after CONSTANT timestamptz := moment - pulse_internal.checked_age('newer_than', newer_than);
BEGIN
  PERFORM pulse_internal.check_error_search(error, error_line);
  RETURN QUERY
  SELECT l.* FROM pulse_internal.count_live(
           moment, task, queue, key, error, error_line, before, after, most_live) AS l;
  RETURN QUERY
  SELECT e.state, e.jobs, NOT e.is_cut
    FROM pulse_internal.seen_ends(
           task, queue, key, error, error_line, before, after, most_ends) AS e;
END $$;
COMMENT ON FUNCTION pulse_internal.count_jobs_as_owner(text, text, text, text, text, interval,
    interval) IS 'The body of pulse.count_jobs().';

CREATE OR REPLACE FUNCTION pulse.count_jobs(
    task text = NULL, queue text = NULL, key text = NULL, error text = NULL,
    error_line text = NULL, older_than interval = NULL, newer_than interval = NULL)
  RETURNS TABLE (state text, jobs bigint, is_exact boolean)
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE ROWS 9
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.count_jobs(text, text, text, text, text, interval, interval) IS
  'Returns how many jobs that meet each condition that is not NULL, as in list_jobs(), are in each '
  'state: a row each for due, scheduled, parked, running, completed, failed, quarantined, '
  'cancelled and expired. due: ready jobs whose time has come; scheduled: ready and parked jobs '
  'whose time has not, so a parked job may count twice. Where is_exact is false there are at least '
  'so many: the call reads at most 1,000 completed jobs and the last 2,000 jobs that ended without '
  'success, under a condition the last 1,000 ends; and under other conditions than one task or '
  'one queue, or where no commit counts, the newest 1,000 live jobs. Raises PU004 for a duration '
  'out of range, 42501 for error and error_line without the right to read the tables.';
