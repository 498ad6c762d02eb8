-- Retention: what is past its age is deleted, oldest first, in bounded steps. Each kind of row has
-- an index in the order of its ages, so a step reads what it deletes and no more; rows that others
-- hold are stepped over. The plans are pinned, because statistics of a table that was just emptied
-- or filled would choose to read all of it.

CREATE OR REPLACE FUNCTION pulse._retention(keep_us bigint) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE WHEN keep_us >= 0 THEN pulse.now() - pulse._interval(keep_us) END;
END $$;
COMMENT ON FUNCTION pulse._retention(bigint) IS
  'what is older than this is past its age; NULL: it is kept for ever';

CREATE OR REPLACE FUNCTION pulse._prune_attempts(before timestamptz, max_count int) RETURNS int
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
  WITH gone AS (
    DELETE FROM pulse.attempt AS a
     WHERE a.ctid = ANY (ARRAY(
             SELECT o.ctid FROM pulse.attempt AS o
              WHERE o.ended_at < before
              ORDER BY o.ended_at LIMIT max_count
                FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::int FROM gone;
$$;
COMMENT ON FUNCTION pulse._prune_attempts(timestamptz, int) IS
  'deletes at most so many of the attempts that ended before; returns how many';

-- Jobs that did not complete have one age for all tasks.
CREATE OR REPLACE FUNCTION pulse._prune_failed(before timestamptz, max_count int) RETURNS int
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
  WITH gone AS (
    DELETE FROM pulse.finished_job AS f
     WHERE f.ctid = ANY (ARRAY(
             SELECT o.ctid FROM pulse.finished_job AS o
              WHERE o.state <> 'completed' AND o.finished_at < before
              ORDER BY o.finished_at LIMIT max_count
                FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::int FROM gone;
$$;
COMMENT ON FUNCTION pulse._prune_failed(timestamptz, int) IS
  'deletes at most so many failed, quarantined and cancelled jobs that ended before';

-- Completed jobs have an age per task, so each task's are looked at by themselves: in one order of
-- age for all, what one task keeps for long would stand before what others do not. A skip scan
-- finds the tasks, one step of the index for each.
CREATE OR REPLACE FUNCTION pulse._prune_completed(max_count int) RETURNS int
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
  WITH RECURSIVE kept (identifier) AS (
    (SELECT f.identifier FROM pulse.finished_job AS f
      WHERE f.state = 'completed' ORDER BY f.identifier LIMIT 1)
    UNION ALL
    SELECT (SELECT f.identifier FROM pulse.finished_job AS f
             WHERE f.state = 'completed' AND f.identifier > k.identifier
             ORDER BY f.identifier LIMIT 1)
      FROM kept AS k WHERE k.identifier IS NOT NULL
  ), gone AS (
    DELETE FROM pulse.finished_job AS f
     WHERE f.ctid = ANY (ARRAY(
             SELECT o.ctid
               FROM kept AS k
               LEFT JOIN pulse.task AS t ON t.identifier = k.identifier
              CROSS JOIN LATERAL (SELECT pulse._retention(coalesce(
                pulse._us(t.keep_completed), pulse._setting_us('keep_completed')))) AS r (before)
              CROSS JOIN LATERAL (
                SELECT c.ctid FROM pulse.finished_job AS c
                 WHERE c.state = 'completed' AND c.identifier = k.identifier
                   AND c.finished_at < r.before
                 ORDER BY c.finished_at LIMIT max_count
                   FOR UPDATE SKIP LOCKED) AS o
              WHERE k.identifier IS NOT NULL
              LIMIT max_count))
    RETURNING 1
  )
  SELECT count(*)::int FROM gone;
$$;
COMMENT ON FUNCTION pulse._prune_completed(int) IS
  'deletes at most so many completed jobs past keep_completed, that of their task if it has one';

-- A lost worker's heartbeat stays for a day (see sweep), so that it hears its verdict.
CREATE OR REPLACE FUNCTION pulse._prune_workers(before timestamptz, max_count int) RETURNS int
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
  WITH gone AS (
    DELETE FROM pulse.worker AS w
     WHERE w.ctid = ANY (ARRAY(
             SELECT o.ctid FROM pulse.worker AS o
              WHERE o.state IN ('lost', 'stopped') AND o.ended_at < before
                AND NOT EXISTS (SELECT FROM pulse.heartbeat AS h WHERE h.worker_id = o.id)
                AND NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.running_worker_id = o.id)
                AND NOT EXISTS (SELECT FROM pulse.claim_batch AS c WHERE c.worker_id = o.id)
              ORDER BY o.ended_at LIMIT max_count
                FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::int FROM gone;
$$;
COMMENT ON FUNCTION pulse._prune_workers(timestamptz, int) IS
  'deletes at most so many workers that ended before and of which nothing is left';

CREATE OR REPLACE FUNCTION pulse._prune(max_count int) RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  keep_attempts timestamptz := pulse._retention(pulse._setting_us('keep_attempts'));
  keep_failed timestamptz := pulse._retention(pulse._setting_us('keep_failed'));
  pruned int := pulse._prune_completed(max_count);
BEGIN
  IF pruned < max_count AND keep_failed IS NOT NULL THEN
    pruned := pruned + pulse._prune_failed(keep_failed, max_count - pruned);
  END IF;
  IF pruned < max_count AND keep_attempts IS NOT NULL THEN
    pruned := pruned + pulse._prune_attempts(keep_attempts, max_count - pruned);
  END IF;
  IF pruned < max_count AND keep_attempts IS NOT NULL THEN
    pruned := pruned + pulse._prune_workers(keep_attempts, max_count - pruned);
  END IF;
  RETURN pruned;
END $$;
COMMENT ON FUNCTION pulse._prune(int) IS
  'deletes at most so many rows past their retention; returns how many: as many, then call again';
