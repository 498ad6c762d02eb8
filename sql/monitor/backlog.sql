-- The backlog: due jobs that wait for a worker, a place or a token. Sweeps keep a reading a minute
-- in shared memory (extension/counters/backlog.hpp), and doctor() tells of a backlog that grows.

CREATE OR REPLACE FUNCTION pulse_internal.begin_backlog_reading() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_begin_backlog_reading';
COMMENT ON FUNCTION pulse_internal.begin_backlog_reading() IS
  'Returns whether a reading of the backlog is due: commits have counted all jobs, and the last '
  'reading is a minute old. Until the transaction ends no other session takes a reading.';

CREATE OR REPLACE FUNCTION pulse_internal.add_backlog_reading(jobs bigint) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_add_backlog_reading';
COMMENT ON FUNCTION pulse_internal.add_backlog_reading(bigint) IS
  'Adds a reading of the backlog, after begin_backlog_reading().';

CREATE OR REPLACE FUNCTION pulse_internal.backlog() RETURNS TABLE (at timestamptz, jobs bigint)
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 20 AS 'MODULE_PATHNAME', 'pulse_backlog';
COMMENT ON FUNCTION pulse_internal.backlog() IS
  'Returns the last 20 readings of the backlog, the oldest first. No row: no sweep has taken a '
  'reading, or this server does not count.';

-- Of a task whose latest job is due all ready jobs are due, and of a task whose soonest job is not
-- due no job is due. Of other tasks the function reads the index: of a task with more due jobs than
-- it reads, all jobs count as due that it has not seen to be later.
CREATE OR REPLACE FUNCTION pulse_internal.due_ready(moment timestamptz) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_tasks CONSTANT int := 100;
  most_jobs CONSTANT int := 6000;
BEGIN
  RETURN (
    WITH task AS MATERIALIZED (
      SELECT d.name, d.ready, d.latest_run_at FROM pulse_internal.depths() AS d
       WHERE d.kind = 'task' AND d.ready > 0 AND (d.soonest_run_at > moment) IS NOT TRUE
    ), mixed AS MATERIALIZED (
      SELECT t.name, t.ready, t.latest_run_at FROM task AS t
       WHERE t.latest_run_at > moment AND t.name IS NOT NULL
       ORDER BY t.ready DESC, t.name LIMIT most_tasks
    ), seen AS (
      SELECT s.name, s.due, s.future, s.more_due
        FROM pulse_internal.due_of_tasks(ARRAY(SELECT m.name FROM mixed AS m),
               ARRAY(SELECT m.latest_run_at FROM mixed AS m), most_jobs) AS s
    )
    SELECT coalesce(sum(CASE WHEN t.latest_run_at <= moment THEN t.ready
                             WHEN s.more_due THEN greatest(t.ready - s.future, s.due)
                             ELSE s.due END), 0)
      FROM task AS t LEFT JOIN seen AS s ON s.name = t.name);
END $$;
COMMENT ON FUNCTION pulse_internal.due_ready(timestamptz) IS
  'Counts ready jobs that are due, from the counts of commits and up to a bound from the index; '
  'tasks with future jobs beyond 100 are left out.';

CREATE OR REPLACE FUNCTION pulse_internal.due_behind_queues(moment timestamptz) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  most_jobs CONSTANT int := 2000;
  seen record;
BEGIN
  SELECT * INTO seen FROM pulse_internal.count_parked(moment, most_jobs);
  IF seen.due < most_jobs THEN
    RETURN seen.due - seen.paused;
  END IF;
  RETURN (
    SELECT greatest(d.parked - d.after_others - seen.future
                    - (pulse_internal.counted_behind_queues(moment)).behind_pauses, 0)
      FROM pulse_internal.depths() AS d WHERE d.kind = 'all');
END $$;
COMMENT ON FUNCTION pulse_internal.due_behind_queues(timestamptz) IS
  'Counts due jobs that are parked behind a queue that is not paused: up to 2,000 from the index, '
  'else from the counts of commits.';

-- A sweep waits for no lock, and so reads no table that another session has locked.
CREATE OR REPLACE FUNCTION pulse_internal.note_backlog() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  IF pulse_internal.begin_backlog_reading()
     AND pulse_internal.try_lock_tables('{}', '{job,queue,queue_pause}') IS NULL THEN
    PERFORM pulse_internal.add_backlog_reading(
      pulse_internal.due_ready(moment) + pulse_internal.due_behind_queues(moment));
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.note_backlog() IS
  'Adds a reading of the backlog, once a minute, without a wait.';

-- The lowest reading of five minutes is the backlog that stood all the time, without the bursts. A
-- backlog grows where each five minutes add a part: a burst of added jobs raises a single part.
CREATE OR REPLACE FUNCTION pulse_internal.backlog_growth(
    moment timestamptz, OUT since timestamptz, OUT jobs_then bigint, OUT jobs_now bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  least_growth CONSTANT int := 100;
  low bigint[];
  growth bigint;
BEGIN
  SELECT array_agg(p.low ORDER BY p.part DESC), min(p.since),
         min(p.latest) FILTER (WHERE p.part = 0)
    INTO low, since, jobs_now
    FROM (SELECT r.part, min(r.jobs) AS low, min(r.at) AS since,
                 (array_agg(r.jobs ORDER BY r.at DESC))[1] AS latest
            FROM (SELECT b.at, b.jobs, least(
                           floor(extract(epoch FROM moment - b.at) / 300), 2) AS part
                    FROM pulse_internal.backlog() AS b
                   WHERE b.at > moment - interval '17 min' AND b.at <= moment) AS r
           GROUP BY r.part HAVING count(*) >= 3) AS p;
  growth := low[3] - low[1];
  IF cardinality(low) = 3 AND since <= moment - interval '15 min'
     AND growth >= greatest(least_growth, low[1] / 10)
     AND least(low[2] - low[1], low[3] - low[2]) >= growth / 5 THEN
    jobs_then := low[1];
  ELSE
    since := NULL;
    jobs_now := NULL;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.backlog_growth(timestamptz) IS
  'Returns since when the backlog has grown, for at least 15 minutes, by at least 100 jobs and a '
  'tenth, and how many jobs waited then and at the last reading; NULL where the backlog does not '
  'grow.';
