-- Retention: rows past their age are deleted, oldest first, in bounded steps. Each kind of row has
-- an index in order of age, so a step reads only the rows that it deletes; it skips locked rows.
-- The plans are pinned, because fresh statistics of a table that was just emptied or filled would
-- make the planner read the whole table.

CREATE OR REPLACE FUNCTION pulse_internal.retention(keep_us bigint) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE WHEN keep_us >= 0 THEN pulse.now() - pulse_internal.interval(keep_us) END;
END $$;
COMMENT ON FUNCTION pulse_internal.retention(bigint) IS
  'Returns the time before which rows are past their retention; NULL: keep the rows for ever.';

-- Until a vacuum, the index keeps the entries of deleted rows, over which each step would walk
-- again. So a session remembers as a setting how far its full steps have come, and forgets it with
-- the first step that finds fewer rows: a row that a step has skipped goes with a later pruning.
CREATE OR REPLACE FUNCTION pulse_internal.prune_by_age(
    of regclass, age name, before timestamptz, max_count int)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET datestyle = 'ISO' SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET jit = off AS $$
DECLARE
  place CONSTANT text := 'pulse_internal.pruned_by_' || age;
  reached timestamptz := coalesce(nullif(current_setting(place, true), ''), '-infinity');
  pruned int;
BEGIN
  EXECUTE format('WITH gone AS (
                    DELETE FROM %1$s AS d
                     WHERE d.ctid = ANY (ARRAY(
                             SELECT o.ctid FROM %1$s AS o WHERE o.%2$I >= $3 AND o.%2$I < $1
                              ORDER BY o.%2$I LIMIT $2 FOR UPDATE SKIP LOCKED))
                    RETURNING d.%2$I)
                  SELECT count(*), max(%2$I) FROM gone', of, age)
    INTO pruned, reached USING before, max_count, reached;
  PERFORM set_config(place, CASE WHEN pruned = max_count THEN reached::text ELSE '' END, false);
  RETURN pruned;
END $$;
COMMENT ON FUNCTION pulse_internal.prune_by_age(regclass, name, timestamptz, int) IS
  'Deletes at most max_count rows of a table whose age, a column, is before this time; returns how '
  'many.';

-- The second reading, after the lock, sees a child that a session added between the first reading
-- and the lock: the add locks the record too. The dependencies of a cancelled job go with its
-- record.
CREATE OR REPLACE FUNCTION pulse_internal.delete_records(places tid[]) RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  deleted int;
BEGIN
  WITH gone AS (
    DELETE FROM pulse.finished_job AS f
     WHERE f.ctid = ANY (places) AND NOT pulse_internal.is_waited_for(f.id)
    RETURNING f.id, f.cancelled_by
  ), forgotten AS (
    DELETE FROM pulse.dependency AS d USING gone AS g
     WHERE g.cancelled_by IS NOT NULL AND d.child_id = g.id
  )
  SELECT count(*) INTO deleted FROM gone;
  RETURN deleted;
END $$;
COMMENT ON FUNCTION pulse_internal.delete_records(tid[]) IS
  'Deletes the locked records for which no job waits, and returns how many.';

-- Jobs that did not complete have one age for all tasks.
CREATE OR REPLACE FUNCTION pulse_internal.prune_failed(before timestamptz, max_count int)
  RETURNS int
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
  SELECT pulse_internal.delete_records(ARRAY(
    SELECT o.ctid FROM pulse.finished_job AS o
     WHERE o.state <> 'completed' AND o.finished_at < before
       AND NOT pulse_internal.is_waited_for(o.id)
     ORDER BY o.finished_at LIMIT max_count
       FOR UPDATE SKIP LOCKED));
$$;
COMMENT ON FUNCTION pulse_internal.prune_failed(timestamptz, int) IS
  'Deletes at most max_count jobs that ended before this time and did not complete; '
  'returns how many.';

-- Completed jobs have a retention per task, so the function prunes each task apart. In one order of
-- age, the jobs that one task keeps long would stand before older jobs of another task. A skip scan
-- finds the tasks, one step of the index for each task.
CREATE OR REPLACE FUNCTION pulse_internal.prune_completed(max_count int) RETURNS int
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
  )
  SELECT pulse_internal.delete_records(ARRAY(
    SELECT o.ctid
      FROM kept AS k
      LEFT JOIN pulse.task AS t ON t.identifier = k.identifier
     CROSS JOIN LATERAL (SELECT pulse_internal.retention(coalesce(
       pulse_internal.us(t.keep_completed),
       pulse_internal.setting_us('keep_completed')))) AS r (before)
     CROSS JOIN LATERAL (
       SELECT c.ctid FROM pulse.finished_job AS c
        WHERE c.state = 'completed' AND c.identifier = k.identifier
          AND c.finished_at < r.before AND NOT pulse_internal.is_waited_for(c.id)
        ORDER BY c.finished_at LIMIT max_count
          FOR UPDATE SKIP LOCKED) AS o
     WHERE k.identifier IS NOT NULL
     LIMIT max_count));
$$;
COMMENT ON FUNCTION pulse_internal.prune_completed(int) IS
  'Deletes at most max_count completed jobs past keep_completed, of the task if the task has a '
  'value; returns how many.';

-- A lost worker's heartbeat row stays for a day (see sweep), so that the worker reads its status.
CREATE OR REPLACE FUNCTION pulse_internal.prune_workers(before timestamptz, max_count int)
  RETURNS int
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
COMMENT ON FUNCTION pulse_internal.prune_workers(timestamptz, int) IS
  'Deletes at most max_count workers that ended before this time and own no job; returns how '
  'many.';

CREATE OR REPLACE FUNCTION pulse_internal.prune_flows(before timestamptz, max_count int)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  ids bigint[];
BEGIN
  ids := ARRAY(
    SELECT w.id FROM pulse.flow AS w
     WHERE w.created_at < before
       AND NOT EXISTS (SELECT FROM pulse.flow_job AS m JOIN pulse.job AS j ON j.id = m.job_id
                        WHERE m.flow_id = w.id)
     ORDER BY w.created_at LIMIT max_count
       FOR UPDATE SKIP LOCKED);
  DELETE FROM pulse.flow_job AS m WHERE m.flow_id = ANY (ids);
  DELETE FROM pulse.flow AS w WHERE w.id = ANY (ids);
  RETURN cardinality(ids);
END $$;
COMMENT ON FUNCTION pulse_internal.prune_flows(timestamptz, int) IS
  'Deletes at most max_count flows that were added before this time and have no live job; returns '
  'how many.';

-- An operation goes after its jobs, so that a step never deletes more than max_count rows.
CREATE OR REPLACE FUNCTION pulse_internal.prune_operations(before timestamptz, max_count int)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  jobs int;
  operations int;
BEGIN
  DELETE FROM pulse.operation_job AS n
   WHERE n.ctid = ANY (ARRAY(
           SELECT c.ctid FROM pulse.operation AS o
             JOIN pulse.operation_job AS c ON c.operation_id = o.id
            WHERE o.updated_at < prune_operations.before
            LIMIT max_count FOR UPDATE OF c SKIP LOCKED));
  GET DIAGNOSTICS jobs = ROW_COUNT;
  DELETE FROM pulse.operation AS p
   WHERE p.id = ANY (ARRAY(
           SELECT o.id FROM pulse.operation AS o
            WHERE o.updated_at < prune_operations.before
              AND NOT EXISTS (SELECT FROM pulse.operation_job AS n WHERE n.operation_id = o.id)
            ORDER BY o.updated_at LIMIT max_count - jobs FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS operations = ROW_COUNT;
  RETURN jobs + operations;
END $$;
COMMENT ON FUNCTION pulse_internal.prune_operations(timestamptz, int) IS
  'Deletes at most max_count rows of operations that made their last step before this time; '
  'returns how many.';

-- A level with all tokens and no open job equals a level without a row. The lock of the level keeps
-- promotions from changing the level meanwhile.
CREATE OR REPLACE FUNCTION pulse_internal.prune_rates(max_count int) RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_locks CONSTANT int := 100;
  now_us bigint := pulse_internal.live_now_us();
  pruned int;
BEGIN
  DELETE FROM pulse.queue_rate AS r
   WHERE r.ctid = ANY (ARRAY(
           SELECT o.ctid FROM pulse.queue_rate AS o
            WHERE CASE WHEN o.opened = 0 AND o.full_live_us <= now_us
                       THEN pulse_internal.try_lock_level(o.queue_name) END
            LIMIT least(max_count, max_locks) FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS pruned = ROW_COUNT;
  RETURN pruned;
END $$;
COMMENT ON FUNCTION pulse_internal.prune_rates(int) IS
  'Deletes the stored tokens of levels that have all tokens, of at most max_count and at most a '
  'hundred levels; returns of how many.';

CREATE OR REPLACE FUNCTION pulse_internal.prune_all(max_count int) RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  keep_attempts timestamptz := pulse_internal.retention(pulse_internal.setting_us('keep_attempts'));
  keep_failed timestamptz := pulse_internal.retention(pulse_internal.setting_us('keep_failed'));
  keep_keys timestamptz :=
    pulse_internal.retention(pulse_internal.setting_us('keep_idempotency_keys'));
  pruned int := pulse_internal.prune_completed(max_count);
BEGIN
  IF pruned < max_count AND keep_failed IS NOT NULL THEN
    pruned := pruned + pulse_internal.prune_failed(keep_failed, max_count - pruned);
  END IF;
  IF pruned < max_count AND keep_attempts IS NOT NULL THEN
    pruned := pruned + pulse_internal.prune_by_age(
      'pulse.attempt', 'ended_at', keep_attempts, max_count - pruned);
  END IF;
  IF pruned < max_count AND keep_attempts IS NOT NULL THEN
    pruned := pruned + pulse_internal.prune_workers(keep_attempts, max_count - pruned);
  END IF;
  IF pruned < max_count AND keep_attempts IS NOT NULL THEN
    pruned := pruned + pulse_internal.prune_flows(keep_attempts, max_count - pruned);
  END IF;
  IF pruned < max_count AND keep_attempts IS NOT NULL THEN
    pruned := pruned + pulse_internal.prune_operations(keep_attempts, max_count - pruned);
  END IF;
  IF pruned < max_count AND keep_keys IS NOT NULL THEN
    pruned := pruned + pulse_internal.prune_by_age(
      'pulse.idempotency_key', 'created_at', keep_keys, max_count - pruned);
  END IF;
  IF pruned < max_count THEN
    pruned := pruned + pulse_internal.prune_gone_schedules(max_count - pruned);
  END IF;
  IF pruned < max_count THEN
    pruned := pruned + pulse_internal.prune_rates(max_count - pruned);
  END IF;
  RETURN pruned;
END $$;
COMMENT ON FUNCTION pulse_internal.prune_all(int) IS
  'Deletes at most max_count rows past their retention and returns how many.';

-- An error would keep tick() from its sweep, and the background worker from the next prunings.
CREATE OR REPLACE FUNCTION pulse_internal.prune(max_count int, of_adds boolean = NULL)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  pruned int := 0;
BEGIN
  IF pulse_internal.try_lock_tables(
       '{finished_job,attempt,worker,flow,flow_job,operation,operation_job,schedule,queue_rate,
         dependency,idempotency_key,remembered_key}',
       '{heartbeat,job,claim_batch,task,clock}') IS NOT NULL THEN
    RETURN 0;
  END IF;
  IF of_adds IS NOT TRUE THEN
    pruned := pulse_internal.prune_all(max_count);
  END IF;
  -- An add under a key waits for a transaction that deletes the key.
  IF of_adds IS NOT FALSE AND pruned < max_count THEN
    pruned := pruned + pulse_internal.prune_by_age(
      'pulse.remembered_key', 'unique_until', pulse.now(), max_count - pruned);
  END IF;
  RETURN pruned;
EXCEPTION WHEN OTHERS OR assert_failure THEN
  IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
    RAISE;
  END IF;
  RAISE WARNING 'nothing was pruned: %', SQLERRM USING
    HINT = 'Check the triggers and constraints that are not of pg_pulse.';
  RETURN 0;
END $$;
COMMENT ON FUNCTION pulse_internal.prune(int, boolean) IS
  'Deletes at most max_count rows past their retention and returns how many; max_count means that '
  'more may remain. of_adds: whether keys of add_job_once alone, for which adds wait, or all other '
  'rows; NULL: both. An error becomes a warning. The function deletes nothing where a table is '
  'locked.';
