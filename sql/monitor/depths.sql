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
                 running bigint, claimed_at timestamptz, soonest_run_at timestamptz,
                 latest_run_at timestamptz, is_exact boolean, counted_at timestamptz)
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'pulse_depths';
COMMENT ON FUNCTION pulse_internal.depths() IS
  'Returns the jobs of all tasks together (kind all), of each task and of each queue, all at one '
  'moment, counted_at; a name of NULL stands for further names. after_others: how many of the '
  'parked jobs wait for other jobs. All calls of a transaction within a second return the same '
  'count, at REPEATABLE READ all calls, with the changes that the transaction makes itself. No '
  'waiting job has a run_at before soonest_run_at or after latest_run_at. is_exact is false where '
  'changes that no commit counted wait for the next recount. No row: nothing was counted yet, or '
  'this server does not count.';

CREATE OR REPLACE FUNCTION pulse_internal.has_depths() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_has_depths';
COMMENT ON FUNCTION pulse_internal.has_depths() IS
  'Returns whether commits count jobs here, and all jobs were counted; if not, the call asks for '
  'a recount.';

CREATE OR REPLACE FUNCTION pulse_internal.recount_if_read() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_recount_if_read';
COMMENT ON FUNCTION pulse_internal.recount_if_read() IS
  'Starts the process that recounts this database, if a recount is due and a session has read the '
  'counts within half an hour; returns whether the call started it.';

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

CREATE OR REPLACE VIEW pulse_internal.paused_name AS
  SELECT p.queue_name FROM pulse.queue_pause AS p WHERE p.is_paused
   UNION ALL SELECT q.queue_name FROM pulse.queue AS q WHERE q.paused;
COMMENT ON VIEW pulse_internal.paused_name IS
  'Names that are paused: ''mail/*'' is the name of the members of ''mail''.';

-- Reads settings only of queues within a paused name, so those are chosen first.
CREATE OR REPLACE FUNCTION pulse_internal.paused_queues(names text[]) RETURNS text[]
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  WITH pause AS (
    SELECT pulse_internal.level_of_settings(s.queue_name) AS level
      FROM pulse_internal.paused_name AS s
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
