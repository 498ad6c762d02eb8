-- The jobs that the next promotions would open and park, found without locks, for explain_job().
-- test/e2e/explain.pl compares the answer with claims in random states.

CREATE OR REPLACE FUNCTION pulse_internal.locked_by(job_id bigint) RETURNS xid
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_locked_by';
COMMENT ON FUNCTION pulse_internal.locked_by(bigint) IS
  'Returns the transaction whose row lock makes claims step over this job; NULL without one.';

-- The open jobs of a queue keep their places until better jobs come.
CREATE OR REPLACE FUNCTION pulse_internal.queue_places(
    queue_name text, OUT concurrency int, OUT paused boolean, OUT locked boolean, OUT taken bigint,
    OUT open_ids bigint[], OUT running_ids bigint[], OUT worker_ids bigint[], OUT since timestamptz,
    OUT levels_places_left bigint, OUT is_strict boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  SELECT r.concurrency, r.places_left, r.is_strict,
         coalesce(r.paused, false) OR r.is_strict AND pulse_internal.is_paused_by_end(queue_name)
    INTO concurrency, levels_places_left, is_strict, paused
    FROM pulse_internal.level_places_left(queue_places.queue_name) AS r;
  locked := pulse_internal.is_queue_locked(queue_name);
  SELECT count(*), array_agg(j.id ORDER BY j.priority, j.run_at, j.id)
                     FILTER (WHERE j.state = 'ready'),
         array_agg(j.id ORDER BY j.claimed_at, j.id) FILTER (WHERE j.state = 'running'),
         array_agg(DISTINCT j.worker_id) FILTER (WHERE j.state = 'running'),
         min(j.claimed_at) FILTER (WHERE j.state = 'running')
    INTO taken, open_ids, running_ids, worker_ids, since
    FROM pulse.job AS j
   WHERE j.queue_name = queue_places.queue_name AND j.queue_name IS NOT NULL
     AND j.index_lane IN ('o', 'r');
END $$;
COMMENT ON FUNCTION pulse_internal.queue_places(text) IS
  'Returns the settings of a queue, whether another transaction has its lock, how many of its '
  'places are taken, by which open jobs (best first) and running jobs of which workers, how many '
  'more jobs the levels let the queue open, and whether the queue is strict.';

CREATE OR REPLACE FUNCTION pulse_internal.promotion_of(
    queue_name text, wanted bigint = 0, OUT opened bigint[], OUT parked bigint[])
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_promotion_of';
COMMENT ON FUNCTION pulse_internal.promotion_of(text, bigint) IS
  'Returns which jobs of a queue the next promotion would open, and which open jobs the promotion '
  'would park in exchange; the answer goes no further than the job `wanted` (0: as far as the '
  'promotion can).';

-- A walk over the index by queue: each step is a descent, however many jobs a queue has.
CREATE OR REPLACE FUNCTION pulse_internal.parked_queues(max_queues int) RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  WITH RECURSIVE walk (bucket, queue_name) AS (
    (SELECT pulse_internal.queue_bucket(j.queue_name), j.queue_name FROM pulse.job AS j
      WHERE j.index_lane = 'p'
      ORDER BY pulse_internal.queue_bucket(j.queue_name), j.queue_name LIMIT 1)
    UNION ALL
    SELECT n.bucket, n.queue_name FROM walk AS w CROSS JOIN LATERAL (
      SELECT pulse_internal.queue_bucket(j.queue_name) AS bucket, j.queue_name FROM pulse.job AS j
       WHERE j.index_lane = 'p'
         AND (pulse_internal.queue_bucket(j.queue_name), j.queue_name) > (w.bucket, w.queue_name)
       ORDER BY pulse_internal.queue_bucket(j.queue_name), j.queue_name LIMIT 1) AS n
  )
  SELECT w.queue_name FROM walk AS w LIMIT max_queues;
END $$;
COMMENT ON FUNCTION pulse_internal.parked_queues(int) IS
  'Returns the first queues with parked jobs, at most max_queues, in no order that a caller knows.';

-- Commits set queue marks and claims promote the queues of set queue marks, so few queues wait for
-- a promotion.
CREATE OR REPLACE FUNCTION pulse_internal.next_promotions()
  RETURNS TABLE (opened bigint[], parked bigint[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  SELECT p.opened, p.parked
    FROM pulse_internal.parked_queues(32) AS w (queue_name)  -- as many as a small claim checks
   CROSS JOIN LATERAL pulse_internal.promotion_of(w.queue_name) AS p
   WHERE p.opened <> '{}';
END $$;
COMMENT ON FUNCTION pulse_internal.next_promotions() IS
  'Returns the jobs that the next promotions would open and park, of the first 32 queues with '
  'parked jobs.';
