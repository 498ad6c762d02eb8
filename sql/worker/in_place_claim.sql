-- Running jobs. A job claimed in place (extension/claim/in_place_claim.hpp) stays in the open lane,
-- so every reader of running jobs asks running_ids(). The function returns ids, so that no plan of
-- a caller reads the whole table.

CREATE OR REPLACE FUNCTION pulse_internal.running_ids(worker_id bigint, max_count int = NULL)
  RETURNS bigint[]
  LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_running_ids';
COMMENT ON FUNCTION pulse_internal.running_ids(bigint, int) IS
  'Returns the ids of at most max_count running jobs of this worker, in no order. worker_id NULL '
  'means all workers, max_count NULL no limit.';

CREATE OR REPLACE FUNCTION pulse_internal.forget_ended(worker_id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  DELETE FROM pulse.claim_batch AS b WHERE b.ctid = ANY (ARRAY(
    SELECT e.ctid FROM pulse.claim_batch AS e
     WHERE e.worker_id = forget_ended.worker_id
       -- No NOT EXISTS, because an anti-join might read the whole table of jobs.
       AND (SELECT j.id FROM pulse.job AS j
             WHERE j.id = ANY (e.job_ids) AND j.token = e.token AND j.in_place LIMIT 1) IS NULL
       FOR UPDATE SKIP LOCKED));
END $$;
COMMENT ON FUNCTION pulse_internal.forget_ended(bigint) IS
  'Deletes the rows of claim_batch of this worker of which no job runs in place.';

CREATE OR REPLACE FUNCTION pulse_internal.index_running(worker_id bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  LOCK TABLE pulse.claim_batch IN ROW EXCLUSIVE MODE;
  -- complete_many waits for the holders of this lock where it finds a row of these jobs locked. A
  -- session that holds the lock exclusively may wait for this heartbeat's row, so the heartbeat
  -- does not wait for the lock: it leaves the jobs to the next heartbeat.
  IF NOT pulse_internal.try_lock_worker_shared(index_running.worker_id) THEN
    RETURN false;
  END IF;
  UPDATE pulse.job AS j SET in_place = false
   WHERE j.id = ANY (ARRAY(
     SELECT f.id FROM pulse.job AS f
      WHERE f.id = ANY (ARRAY(SELECT unnest(b.job_ids) FROM pulse.claim_batch AS b
                               WHERE b.worker_id = index_running.worker_id))
        AND f.in_place AND f.worker_id = index_running.worker_id
        FOR UPDATE SKIP LOCKED));
  PERFORM pulse_internal.forget_ended(index_running.worker_id);
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.index_running(bigint) IS
  'Moves running jobs that this worker claimed in place to the lane of running jobs; leaves jobs '
  'whose row another transaction holds, and all jobs while a session declares the worker lost.';
