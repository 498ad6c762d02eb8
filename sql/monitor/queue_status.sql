-- What queues have and what keeps their jobs.

CREATE OR REPLACE FUNCTION pulse_internal.queue_reasons()
  RETURNS TABLE (queue_name text, reason text, jobs bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  WITH parked AS MATERIALIZED (
    SELECT j.queue_name, count(*) FILTER (WHERE j.run_at > moment) AS future,
           count(*) FILTER (WHERE j.run_at <= moment) AS due
      FROM pulse.job AS j WHERE j.index_lane = 'p' GROUP BY j.queue_name)
  SELECT p.queue_name, 'future', p.future FROM parked AS p WHERE p.future > 0
  UNION ALL
  SELECT p.queue_name, CASE
           WHEN places.paused THEN 'paused'
           WHEN places.taken >= places.concurrency THEN 'full'
           WHEN places.levels_room <= 0 THEN CASE WHEN room.is_dry THEN 'dry' ELSE 'full' END
           ELSE 'next' END, p.due
    FROM parked AS p CROSS JOIN LATERAL pulse_internal.queue_places(p.queue_name) AS places
   CROSS JOIN LATERAL pulse_internal.level_room(p.queue_name) AS room
   WHERE p.due > 0;
END $$;
COMMENT ON FUNCTION pulse_internal.queue_reasons() IS
  'Returns how many jobs of each queue wait for which reason.';

CREATE OR REPLACE FUNCTION pulse.queue_status()
  RETURNS TABLE (queue_name text, concurrency int, total int, paused boolean, fair boolean,
                 weight int, waiting bigint, open bigint, running bigint, reasons json,
                 tokens bigint, next_token timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  WITH part AS MATERIALIZED (
    SELECT r.queue_name, r.reason, r.jobs FROM pulse_internal.queue_reasons() AS r
    UNION ALL
    SELECT j.queue_name, j.state::text, count(*) FROM pulse.job AS j
     WHERE j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r') GROUP BY j.queue_name, j.state
    UNION ALL
    SELECT q.queue_name, 'stored', 0 FROM pulse.queue AS q
    UNION ALL
    SELECT p.queue_name, 'stored', 0 FROM pulse.queue_pause AS p WHERE p.is_paused
  ), named AS (
    SELECT DISTINCT p.queue_name FROM part AS p
  ), level AS MATERIALIZED (
    SELECT DISTINCT ON (l.name) l.name, n.queue_name, l.depth
      FROM named AS n, unnest(pulse_internal.levels_of(n.queue_name)) WITH ORDINALITY
           AS l (name, depth)
     ORDER BY l.name, n.queue_name = l.name DESC
  ), within AS (
    SELECT l.name, p.reason, sum(p.jobs)::bigint AS jobs
      FROM named AS n
     CROSS JOIN LATERAL unnest(pulse_internal.levels_of(n.queue_name)) AS l (name)
      JOIN part AS p ON p.queue_name = n.queue_name
     GROUP BY l.name, p.reason
  )
  SELECT l.name, s.concurrency, s.total,
         s.paused OR s.is_strict AND pulse_internal.is_paused_by_end(l.name),
         s.fair, s.weight,
         coalesce(sum(w.jobs) FILTER (
                    WHERE w.reason IN ('future', 'paused', 'full', 'dry', 'next')),
                  0)::bigint,
         coalesce(sum(w.jobs) FILTER (WHERE w.reason = 'ready'), 0)::bigint,
         coalesce(sum(w.jobs) FILTER (WHERE w.reason = 'running'), 0)::bigint,
         coalesce(json_object_agg(w.reason, w.jobs ORDER BY w.reason) FILTER (
                    WHERE w.reason IN ('future', 'paused', 'full', 'dry', 'next')), '{}'),
         t.tokens, t.next_token
    FROM level AS l
   CROSS JOIN LATERAL (
     SELECT e.* FROM pulse_internal.level_settings(l.name) AS e WHERE e.level = l.name) AS s
    LEFT JOIN LATERAL pulse_internal.tokens_of(l.name) AS t ON s.rate IS NOT NULL
    JOIN within AS w ON w.name = l.name
   GROUP BY l.name, s.concurrency, s.total, s.paused, s.is_strict, s.fair, s.weight, t.tokens,
            t.next_token
   ORDER BY l.name;
END $$;
COMMENT ON FUNCTION pulse.queue_status() IS
  'Returns settings and jobs of queues; the view pulse.queue_status describes the columns.';

CREATE OR REPLACE VIEW pulse.queue_status AS
  SELECT s.queue_name, s.concurrency, s.total, s.paused, s.fair, s.weight, s.waiting, s.open,
         s.running, s.reasons, s.tokens, s.next_token
    FROM pulse.queue_status() AS s;
COMMENT ON VIEW pulse.queue_status IS
  'Settings and jobs of queues that have either or are paused, and of the levels that they are '
  'within. It reads every job of a queue: do not poll it.';
COMMENT ON COLUMN pulse.queue_status.queue_name IS 'Name of the queue or level';
COMMENT ON COLUMN pulse.queue_status.concurrency IS
  'How many jobs of exactly this name run at a time';
COMMENT ON COLUMN pulse.queue_status.total IS
  'How many jobs of it and of all queues within it run at a time; NULL: no limit';
COMMENT ON COLUMN pulse.queue_status.paused IS 'It is paused itself, also by the end of a job';
COMMENT ON COLUMN pulse.queue_status.fair IS 'Its direct members start jobs in turn';
COMMENT ON COLUMN pulse.queue_status.weight IS
  'How many jobs it starts at a turn where the level above it is fair';
COMMENT ON COLUMN pulse.queue_status.waiting IS 'Jobs of it and within it that wait parked';
COMMENT ON COLUMN pulse.queue_status.open IS 'Jobs of it and within it that a claim can get';
COMMENT ON COLUMN pulse.queue_status.running IS 'Jobs of it and within it that run';
COMMENT ON COLUMN pulse.queue_status.reasons IS
  'How many of the waiting jobs wait for what: future (not due), paused, full (it or a level), dry '
  '(its rate, or that of a level), next (the next promotions open the first of them)';
COMMENT ON COLUMN pulse.queue_status.tokens IS
  'How many of its jobs could be claimed now by its rate; NULL: it has none, or on a standby';
COMMENT ON COLUMN pulse.queue_status.next_token IS
  'When another job may be opened by its rate; NULL: now, or after a claim of an open one';
