-- The living workers, and the due jobs that no living worker serves.

CREATE OR REPLACE FUNCTION pulse_internal.status_of(verdict text, info json) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN verdict = 'alive' AND info ->> 'draining' = 'true' THEN 'draining'
    ELSE verdict END;
COMMENT ON FUNCTION pulse_internal.status_of(text, json) IS
  'Returns the status of a worker: that of the heartbeat row, or draining where an alive worker '
  'tells that a signal drains it.';

-- A standby sees no session of the primary.
CREATE OR REPLACE FUNCTION pulse_internal.is_attached(
    verdict text, attachment bigint, incarnation bigint, detached_live_us bigint)
  RETURNS boolean
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  RETURN coalesce(
    verdict NOT IN ('lost', 'stopped') AND attachment IS NOT NULL AND detached_live_us IS NULL
      AND (pg_is_in_recovery()
           OR pulse_internal.attachment_state(attachment, incarnation) = 'open'),
    false);
COMMENT ON FUNCTION pulse_internal.is_attached(text, bigint, bigint, bigint) IS
  'Returns whether the worker of a heartbeat row lives and its attached session is there.';

-- A session that its client has ended counts at once, because without a sweep the clock does not
-- advance.
CREATE OR REPLACE FUNCTION pulse_internal.is_missing(
    cause text, attachment bigint, incarnation bigint, beat_live_us bigint)
  RETURNS boolean
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  RETURN cause IS NOT NULL
    OR coalesce(
      pulse_internal.setting_us('disconnect_grace') IS NOT NULL
        AND pulse_internal.attachment_state(attachment, incarnation) = 'ended'
        AND pulse_internal.ended_live_us(attachment) >= beat_live_us,
      false);
COMMENT ON FUNCTION pulse_internal.is_missing(text, bigint, bigint, bigint) IS
  'Returns whether the next sweep finds this worker lost, at the latest once disconnect_grace is '
  'over. cause: what loss_cause() says of its heartbeat row.';

CREATE OR REPLACE VIEW pulse_internal.living_worker AS
  SELECT w.id, w.name, w.tasks, pulse_internal.status_of(h.verdict, w.info) AS status,
         h.isolated_job_id, w.slots,
         CASE WHEN pg_catalog.json_typeof(w.info -> 'forbidden_flags') = 'array'
           THEN ARRAY(SELECT pg_catalog.json_array_elements_text(w.info -> 'forbidden_flags')) END
           AS forbidden_flags,
         pulse_internal.is_attached(h.verdict, h.attachment, h.incarnation, h.detached_live_us)
           AS attached, w.started_at, w.version,
         coalesce(pulse_internal.told_number(w.info, 'databases_of_slots', 6) > 1, false)
           AS shares_slots
    -- No JOIN: the rewriter reads each column of the tables that a JOIN names.
    FROM pulse.heartbeat AS h, pulse.worker AS w,
         (SELECT (SELECT pulse_internal.live_now_us()
                   WHERE NOT pg_catalog.pg_is_in_recovery()) AS live_us OFFSET 0) AS moment
   -- A living worker has one of these states; an index has the states.
   WHERE w.state IN ('alive', 'draining') AND w.id = h.worker_id
     AND h.verdict NOT IN ('lost', 'stopped')
     AND NOT pulse_internal.is_missing(pulse_internal.loss_cause(h, moment.live_us), h.attachment,
                                       h.incarnation, h.beat_live_us);
COMMENT ON VIEW pulse_internal.living_worker IS
  'Workers that the next sweep does not find lost. slots and forbidden_flags: as the worker told '
  'last; NULL if the worker did not tell. shares_slots: jobs of other databases have slots too.';

CREATE OR REPLACE FUNCTION pulse_internal.last_servers(identifiers text[])
  RETURNS TABLE (identifier text, worker_id bigint, name text, seen_at timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 20
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_sort = off
  SET jit = off AS $$
BEGIN
  RETURN QUERY
  WITH open AS MATERIALIZED (
    SELECT w.id, w.name, w.tasks FROM pulse.worker AS w WHERE w.state IN ('alive', 'draining')
  ), ended AS MATERIALIZED (
    SELECT w.id, w.name, w.tasks, w.ended_at FROM pulse.worker AS w
     WHERE w.ended_at IS NOT NULL ORDER BY w.ended_at DESC LIMIT 1000
  )
  SELECT i.identifier, s.id, s.name, s.seen_at
    FROM unnest(identifiers) AS i (identifier) LEFT JOIN LATERAL (
      SELECT * FROM (
        (SELECT l.id, l.name, coalesce(h.last_heartbeat_at, l.ended_at) AS seen_at
           FROM (SELECT w.* FROM ended AS w
                  WHERE w.tasks IS NULL OR i.identifier = ANY (w.tasks)
                  ORDER BY w.ended_at DESC LIMIT 1) AS l
           LEFT JOIN pulse.heartbeat AS h ON h.worker_id = l.id)
        UNION ALL
        SELECT o.id, o.name, h.last_heartbeat_at
          FROM open AS o JOIN pulse.heartbeat AS h ON h.worker_id = o.id
         WHERE o.tasks IS NULL OR i.identifier = ANY (o.tasks)) AS e
       ORDER BY e.seen_at DESC LIMIT 1) AS s ON true;
END $$;
COMMENT ON FUNCTION pulse_internal.last_servers(text[]) IS
  'Returns for each of these tasks the worker on record that served the task last, alive or among '
  'the last 1,000 that ended, and its last sign of life; NULL without a worker.';

-- A loose index scan. The plan needs enable_sort, enable_seqscan and enable_bitmapscan off.
CREATE OR REPLACE VIEW pulse_internal.first_ready AS
  WITH RECURSIVE head (identifier, priority, run_at) AS (
    SELECT '' COLLATE "C", (-32768)::smallint, NULL::timestamptz
    UNION ALL
    SELECT n.* FROM head AS h CROSS JOIN LATERAL (
      SELECT j.identifier, j.priority, j.run_at FROM pulse_internal.ready_job AS j
       WHERE (j.identifier, j.priority) > (h.identifier, h.priority)
       ORDER BY j.identifier, j.priority, j.run_at LIMIT 1) AS n
  )
  SELECT h.identifier, h.priority, h.run_at FROM head AS h OFFSET 1;
COMMENT ON VIEW pulse_internal.first_ready IS
  'The first ready job of each priority of each task.';

CREATE OR REPLACE FUNCTION pulse_internal.served_tasks(
    OUT served text[], OUT serves_all boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT coalesce(array_agg(t.task) FILTER (WHERE t.task IS NOT NULL), '{}'),
         coalesce(bool_or(w.tasks IS NULL), false)
    INTO served, serves_all
    FROM pulse_internal.living_worker AS w LEFT JOIN LATERAL unnest(w.tasks) AS t (task) ON true
   WHERE w.status = 'alive';
END $$;
COMMENT ON FUNCTION pulse_internal.served_tasks() IS
  'Returns which tasks living workers serve that neither drain nor stop, and whether a worker '
  'serves every task.';

-- Only of unserved tasks the function reads more than the first jobs. No index gives parked jobs by
-- task, so the function reads the parked jobs that have been due for longest.
CREATE OR REPLACE FUNCTION pulse_internal.unserved_tasks()
  RETURNS TABLE (identifier text, due_jobs bigint, oldest_due_at timestamptz, estimated boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  bound CONSTANT int := 200;
  most_parked CONSTANT int := 1000;
  moment timestamptz := pulse.now();
  fleet record;
BEGIN
  SELECT * INTO fleet FROM pulse_internal.served_tasks();
  IF fleet.serves_all THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH due AS MATERIALIZED (
    SELECT h.identifier, min(h.run_at) AS oldest, count(*) AS jobs,
           bound / count(*) OVER () + 1 AS share
      FROM (SELECT * FROM pulse_internal.first_ready LIMIT 10000) AS h
     WHERE h.run_at <= moment AND h.identifier <> ALL (fleet.served) GROUP BY h.identifier
  ), open AS (
    SELECT d.identifier, d.oldest, greatest(c.due, d.jobs) AS jobs,
           coalesce(c.more_due, true) AS is_cut
      FROM due AS d LEFT JOIN pulse_internal.count_due(
             'task', ARRAY(SELECT m.identifier FROM due AS m WHERE m.share >= 2), NULL, moment,
             (SELECT max(m.share) FROM due AS m), 0) AS c ON c.name = d.identifier
  ), parked AS MATERIALIZED (
    SELECT j.identifier, j.run_at FROM pulse.job AS j
     WHERE j.index_lane = 'p' AND j.run_at <= moment ORDER BY j.run_at LIMIT most_parked
  ), late AS (
    SELECT p.identifier, min(p.run_at) AS oldest, count(*) AS jobs, false AS is_cut
      FROM parked AS p
     WHERE p.identifier <> ALL (fleet.served) GROUP BY p.identifier
  )
  SELECT u.identifier, sum(u.jobs)::bigint, min(u.oldest),
         bool_or(u.is_cut) OR (SELECT count(*) FROM parked) >= most_parked
    FROM (TABLE open UNION ALL TABLE late) AS u
   GROUP BY u.identifier;
END $$;
COMMENT ON FUNCTION pulse_internal.unserved_tasks() IS
  'Returns the tasks with due jobs that no living worker serves. Each task has a share of 200, up '
  'to which the function counts open jobs; the function counts parked jobs among '
  'the 1,000 that have been due for longest; estimated: there may be more.';

CREATE OR REPLACE FUNCTION pulse.unserved()
  RETURNS TABLE (identifier text, due_jobs bigint, oldest_due_at timestamptz,
                 last_worker_id bigint, last_worker text, last_seen_at timestamptz,
                 estimated boolean)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  WITH unserved AS MATERIALIZED (SELECT * FROM pulse_internal.unserved_tasks())
  SELECT u.identifier, u.due_jobs, u.oldest_due_at, l.worker_id, l.name, l.seen_at, u.estimated
    FROM unserved AS u
    JOIN pulse_internal.last_servers(ARRAY(SELECT n.identifier FROM unserved AS n)) AS l
      ON l.identifier = u.identifier;
END $$;
COMMENT ON FUNCTION pulse.unserved() IS
  'Returns the tasks with due jobs that no living worker serves. The view pulse.unserved describes '
  'the columns.';

CREATE OR REPLACE VIEW pulse.unserved AS
  SELECT u.identifier, u.due_jobs, u.oldest_due_at, u.last_worker_id, u.last_worker,
         u.last_seen_at, u.estimated
    FROM pulse.unserved() AS u;
COMMENT ON VIEW pulse.unserved IS
  'Tasks with due jobs that no living worker serves, as behind a misspelt name; a worker that '
  'drains serves none. The cost follows the number of tasks, not of jobs.';
COMMENT ON COLUMN pulse.unserved.identifier IS 'Name of the task';
COMMENT ON COLUMN pulse.unserved.due_jobs IS
  'How many jobs of the task are due. All tasks together are counted up to 200; of jobs behind '
  'their queue only jobs among the 1,000 that have been due for longest';
COMMENT ON COLUMN pulse.unserved.estimated IS 'More jobs than due_jobs may be due';
COMMENT ON COLUMN pulse.unserved.oldest_due_at IS 'run_at of the job that has been due for longest';
COMMENT ON COLUMN pulse.unserved.last_worker_id IS
  'Worker that served the task last, alive or among the last 1,000 that ended; NULL without one';
COMMENT ON COLUMN pulse.unserved.last_worker IS 'Name of that worker';
COMMENT ON COLUMN pulse.unserved.last_seen_at IS 'Last sign of life of that worker';
