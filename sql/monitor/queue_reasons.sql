-- How many jobs of queues wait for which reason: for queue_status().

CREATE OR REPLACE FUNCTION pulse_internal.queue_reasons(names text[], share bigint)
  RETURNS TABLE (queue_name text, reason text, jobs bigint, is_cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  WITH counted AS MATERIALIZED (
    SELECT c.* FROM pulse_internal.count_queues(names, share) AS c
  )
  SELECT c.name, p.reason, p.jobs, c.is_cut
    FROM counted AS c CROSS JOIN LATERAL (VALUES
           ('ready', c.ready), ('running', c.running), ('future', c.future)) AS p (reason, jobs)
   WHERE p.jobs > 0
  UNION ALL
  SELECT c.name, CASE
           WHEN places.paused THEN 'paused'
           WHEN places.taken >= places.concurrency THEN 'full'
           WHEN places.levels_places_left <= 0
           THEN CASE WHEN above.is_dry THEN 'dry' ELSE 'full' END
           ELSE 'next' END, c.due, c.is_cut
    FROM counted AS c CROSS JOIN LATERAL pulse_internal.queue_places(c.name) AS places
   CROSS JOIN LATERAL pulse_internal.level_places_left(c.name) AS above
   WHERE c.due > 0;
END $$;
COMMENT ON FUNCTION pulse_internal.queue_reasons(text[], bigint) IS
  'Returns how many jobs of each of these queues wait for which reason, are open (ready) or run, '
  'counted up to a share of each queue (NULL: all).';

-- No index has the jobs of a queue that wait for other jobs together. Commits count these jobs;
-- elsewhere the first such jobs of all queues tell.
CREATE OR REPLACE FUNCTION pulse_internal.reasons_besides_queue(
    names text[], after_others bigint[])
  RETURNS TABLE (queue_name text, reason text, jobs bigint, is_cut boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  bound CONSTANT int := 1000;
BEGIN
  RETURN QUERY
  SELECT k.queue_name, 'key undecided', count(*), false
    FROM (SELECT j.queue_name FROM pulse.job AS j WHERE j.index_lane = 'k' LIMIT bound) AS k
   WHERE k.queue_name = ANY (names) GROUP BY k.queue_name
  UNION ALL
  SELECT n.name, 'parents', n.jobs, false
    FROM unnest(names, after_others) AS n (name, jobs) WHERE n.jobs > 0;
  IF array_position(after_others, NULL) IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH first AS MATERIALIZED (
    SELECT j.queue_name FROM pulse.job AS j WHERE j.index_lane = 'w' LIMIT bound + 1
  ), cut AS (
    SELECT count(*) > bound AS is_cut FROM first
  )
  SELECT n.name, CASE WHEN count(f.queue_name) > 0 THEN 'parents' ELSE 'stored' END,
         count(f.queue_name), c.is_cut
    FROM unnest(names, after_others) AS n (name, jobs) CROSS JOIN cut AS c
    LEFT JOIN first AS f ON f.queue_name = n.name
   WHERE n.jobs IS NULL GROUP BY n.name, c.is_cut;
END $$;
COMMENT ON FUNCTION pulse_internal.reasons_besides_queue(text[], bigint[]) IS
  'Returns how many jobs of these queues wait because their key is undecided, and how many wait '
  'for other jobs (parents): after_others, or where that is NULL the jobs among the first 1,000 '
  'such jobs of all queues; is_cut: there are more.';
