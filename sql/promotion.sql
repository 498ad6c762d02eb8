-- What the next promotion would do, told without locks: the rules of extension/queue/promote.cpp
-- once more, for explain_job(). test/e2e/explain.pl compares both in random states.

CREATE OR REPLACE FUNCTION pulse_internal.locked_by(job_id bigint) RETURNS xid
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_locked_by';
COMMENT ON FUNCTION pulse_internal.locked_by(bigint) IS
  'Returns the transaction whose row lock makes claims step over this job; NULL without one.';

-- The open jobs of a queue keep their places until better ones come.
CREATE OR REPLACE FUNCTION pulse_internal.queue_places(
    queue_name text, OUT concurrency int, OUT paused boolean, OUT locked boolean, OUT taken bigint,
    OUT open_ids bigint[], OUT running_ids bigint[], OUT worker_ids bigint[], OUT since timestamptz,
    OUT levels_room bigint, OUT is_strict boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  SELECT r.concurrency, r.room, r.is_strict,
         coalesce(r.paused, false) OR r.is_strict AND pulse_internal.is_paused_by_end(queue_name)
    INTO concurrency, levels_room, is_strict, paused
    FROM pulse_internal.level_room(queue_places.queue_name) AS r;
  locked := pulse_internal.is_queue_locked(queue_name);
  SELECT count(*), array_agg(j.id ORDER BY j.priority, j.run_at, j.id)
                     FILTER (WHERE j.state = 'ready'),
         array_agg(j.id ORDER BY j.claimed_at, j.id) FILTER (WHERE j.state = 'running'),
         array_agg(DISTINCT j.worker_id) FILTER (WHERE j.state = 'running'),
         min(j.claimed_at) FILTER (WHERE j.state = 'running')
    INTO taken, open_ids, running_ids, worker_ids, since
    FROM pulse.job AS j
   WHERE j.queue_name = queue_places.queue_name AND j.queue_name IS NOT NULL
     AND j.index_lane IN ('o', 'h');
END $$;
COMMENT ON FUNCTION pulse_internal.queue_places(text) IS
  'Returns the settings of a queue, whether another transaction has its lock, how many of its '
  'places are taken, by which open jobs (best first) and running jobs of which workers, how many '
  'more its levels let it open, and whether it is strict.';

-- One priority after the other, so that the jobs of a priority that are not due cost one step.
CREATE OR REPLACE FUNCTION pulse_internal.promotion_in_order(
    queue_name text, wanted bigint, OUT opened bigint[], OUT parked bigint[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment timestamptz := pulse.now();
  slot smallint := pulse_internal.queue_slot(queue_name);
  places record;
  taken bigint;
  left_open int;
  worst pulse.job;
  next_priority smallint := -32768;
  waiting record;
BEGIN
  opened := '{}';
  parked := '{}';
  SELECT * INTO places FROM pulse_internal.queue_places(queue_name);
  taken := places.taken;
  left_open := coalesce(cardinality(places.open_ids), 0);
  IF places.paused OR places.locked THEN
    RETURN;
  END IF;
  places.concurrency := least(
    places.concurrency, taken + CASE WHEN places.levels_room > 0 THEN places.levels_room
                                     WHEN places.levels_room <= 0 THEN 0 END);
  SELECT * INTO worst FROM pulse.job AS j WHERE j.id = places.open_ids[left_open];
  IF places.is_strict AND worst.queue_turn IS NOT NULL THEN
    left_open := 0;
  END IF;
  LOOP
    SELECT j.priority INTO next_priority FROM pulse.job AS j
     WHERE j.index_lane = 'p' AND pulse_internal.queue_slot(j.queue_name) = slot
       AND j.queue_name = promotion_in_order.queue_name AND j.priority >= next_priority
     ORDER BY j.priority LIMIT 1;
    EXIT WHEN NOT FOUND;
    FOR waiting IN
      SELECT j.id, j.run_at, j.xmax FROM pulse.job AS j
       WHERE j.index_lane = 'p' AND pulse_internal.queue_slot(j.queue_name) = slot
         AND j.queue_name = promotion_in_order.queue_name AND j.priority = next_priority
         AND j.run_at <= moment
       ORDER BY j.run_at, j.id
    LOOP
      IF taken >= places.concurrency THEN
        -- In place of a worse open job only.
        IF taken > places.concurrency OR left_open = 0
           OR (next_priority, waiting.run_at, waiting.id)
              >= (worst.priority, worst.run_at, worst.id)
           OR pulse_internal.locked_by(worst.id) IS NOT NULL THEN
          RETURN;
        END IF;
      END IF;
      IF waiting.xmax = '0' OR pulse_internal.locked_by(waiting.id) IS NULL THEN
        opened := opened || waiting.id;
        IF taken >= places.concurrency THEN
          parked := parked || worst.id;
          left_open := left_open - 1;
          SELECT * INTO worst FROM pulse.job AS j WHERE j.id = places.open_ids[left_open];
        ELSE
          taken := taken + 1;
        END IF;
      END IF;
      IF waiting.id = wanted THEN
        RETURN;
      END IF;
    END LOOP;
    EXIT WHEN next_priority = 32767;
    next_priority := next_priority + 1;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.promotion_in_order(text, bigint) IS
  'As promotion_of(), for a queue in which no job keeps a place.';

CREATE OR REPLACE FUNCTION pulse_internal.promotion_of(
    queue_name text, wanted bigint = NULL, OUT opened bigint[], OUT parked bigint[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  turn pulse.job := pulse_internal.turn_of_queue(queue_name);
  places record;
  open_job pulse.job;
BEGIN
  SELECT * INTO places FROM pulse_internal.queue_places(queue_name) AS p WHERE turn.id IS NOT NULL;
  IF coalesce(places.is_strict, false) IS FALSE THEN
    SELECT p.opened, p.parked INTO opened, parked
      FROM pulse_internal.promotion_in_order(queue_name, wanted) AS p;
    RETURN;
  END IF;
  opened := '{}';
  parked := '{}';
  IF places.paused OR places.locked OR turn.run_at > pulse.now()
     OR pulse_internal.locked_by(turn.id) IS NOT NULL THEN
    RETURN;
  END IF;
  SELECT * INTO open_job FROM pulse.job AS j WHERE j.id = places.open_ids[1];
  IF places.taken = 0 AND coalesce(places.levels_room > 0, true) THEN
    opened := ARRAY[turn.id];
  ELSIF places.taken = 1 AND coalesce(open_job.queue_turn > turn.queue_turn, true)
        AND open_job.id IS NOT NULL AND pulse_internal.locked_by(open_job.id) IS NULL THEN
    opened := ARRAY[turn.id];
    parked := ARRAY[open_job.id];
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.promotion_of(text, bigint) IS
  'Returns which jobs of a queue the next promotion would open, and which open ones it would park '
  'for them; it goes no further than the job `wanted`.';

-- Commits mark queues and claims promote them, so few queues have a promotion before them.
CREATE OR REPLACE FUNCTION pulse_internal.next_promotions()
  RETURNS TABLE (opened bigint[], parked bigint[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment timestamptz := pulse.now();
BEGIN
  RETURN QUERY
  WITH RECURSIVE walk (slot, queue_name) AS (
    (SELECT pulse_internal.queue_slot(j.queue_name), j.queue_name FROM pulse.job AS j
      WHERE j.index_lane = 'p'
      ORDER BY pulse_internal.queue_slot(j.queue_name), j.queue_name LIMIT 1)
    UNION ALL
    SELECT n.slot, n.queue_name FROM walk AS w CROSS JOIN LATERAL (
      SELECT pulse_internal.queue_slot(j.queue_name) AS slot, j.queue_name FROM pulse.job AS j
       WHERE j.index_lane = 'p'
         AND (pulse_internal.queue_slot(j.queue_name), j.queue_name) > (w.slot, w.queue_name)
       ORDER BY pulse_internal.queue_slot(j.queue_name), j.queue_name LIMIT 1) AS n
  )
  SELECT p.opened, p.parked
    FROM (SELECT * FROM walk LIMIT 32) AS w  -- as many as a small claim looks at
    LEFT JOIN pulse.queue AS q ON q.queue_name = w.queue_name
   CROSS JOIN LATERAL (
     SELECT count(*) FILTER (WHERE t.state = 'running') AS running
       FROM (SELECT j.state FROM pulse.job AS j
              WHERE j.queue_name = w.queue_name AND j.queue_name IS NOT NULL
                AND j.index_lane IN ('o', 'h')
              LIMIT coalesce(q.concurrency, 1)) AS t) AS taken
   CROSS JOIN LATERAL pulse_internal.promotion_of(w.queue_name) AS p
   WHERE NOT coalesce(q.paused, false)
     AND (taken.running < coalesce(q.concurrency, 1) OR position('/' IN w.queue_name) > 0)
     AND p.opened <> '{}';
END $$;
COMMENT ON FUNCTION pulse_internal.next_promotions() IS
  'Returns what the next promotions would open and park, of the first 32 queues with parked jobs.';
