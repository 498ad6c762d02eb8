-- Job keys: no two waiting jobs have the same key. extension/job/key_lock.hpp has the invariants.

COMMENT ON TABLE pulse.superseded_job IS
  'Running jobs that do not run again: while they ran, a newer job got their key, or remove_job '
  'took the key from them. A row goes with the end of its job. Dumped.';
COMMENT ON COLUMN pulse.superseded_job.job_key IS 'The key that the job had';
COMMENT ON COLUMN pulse.superseded_job.job_id IS 'The running job';
COMMENT ON COLUMN pulse.job.key_is_undecided IS
  'The job waits to run again, and when the job came back a transaction in progress added or '
  'removed a job under the key. The job is parked until a sweep finds that the transaction has '
  'ended';

CREATE OR REPLACE FUNCTION pulse_internal.lock_key(
    job_key text, asking text, waiting_is_enough boolean = false, refuses boolean = true)
  RETURNS tid
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_job_key';
COMMENT ON FUNCTION pulse_internal.lock_key(text, text, boolean, boolean) IS
  'Waits until no other transaction in progress changes a job under a job key, takes the lock of '
  'the key, and returns the ctid of the job that waits under the key. waiting_is_enough: does not '
  'wait for a transaction that claims or changes a waiting job. The caller writes, and calls '
  'unlock_key; later callers wait for the uncommitted row. Where a job waits that the producer '
  'asking may not name, raises 42501, or returns NULL if refuses is false. Raises 40001 where '
  'another session took the key after a transaction with one snapshot had begun.';

CREATE OR REPLACE FUNCTION pulse_internal.try_lock_key(job_key text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_try_lock_job_key';
COMMENT ON FUNCTION pulse_internal.try_lock_key(text) IS
  'Takes the lock of a job key without waiting; returns false while another transaction has the '
  'lock, or changes a job under the key. Raises 40001 as lock_key does.';

CREATE OR REPLACE FUNCTION pulse_internal.unlock_key(job_key text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_unlock_job_key';
COMMENT ON FUNCTION pulse_internal.unlock_key(text) IS
  'Gives back the lock of a job key, if the session has the lock.';

CREATE OR REPLACE FUNCTION pulse_internal.changer_of_key(job_key text) RETURNS xid
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_changer_of_key';
COMMENT ON FUNCTION pulse_internal.changer_of_key(text) IS
  'Returns another transaction in progress that adds, changes or removes a job under a key; NULL '
  'without one.';

CREATE OR REPLACE FUNCTION pulse_internal.jobs_to_supersede(
    job_key text, asking text, refuses boolean)
  RETURNS bigint[]
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_jobs_to_supersede';
COMMENT ON FUNCTION pulse_internal.jobs_to_supersede(text, text, boolean) IS
  'Returns the jobs with this locked key that run, or whose key is undecided, and that have not '
  'lost the key yet; NULL without a job. For a job that the producer asking may not name the '
  'function raises 42501, or leaves out the job if refuses is false.';

-- A producer never waits for a worker here, and no worker for a producer: the end of the job finds
-- the record, and does not let the job run again.
CREATE OR REPLACE FUNCTION pulse_internal.supersede_running(
    job_key text, asking text, refuses boolean = true)
  RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ids bigint[] := pulse_internal.jobs_to_supersede(
    supersede_running.job_key, supersede_running.asking, supersede_running.refuses);
BEGIN
  IF ids IS NOT NULL THEN
    INSERT INTO pulse.superseded_job (job_key, job_id)
    SELECT supersede_running.job_key, i FROM unnest(ids) AS i;
  END IF;
  RETURN ids;
END $$;
COMMENT ON FUNCTION pulse_internal.supersede_running(text, text, boolean) IS
  'Takes a locked key, and with it all further attempts, from the running jobs that have it; '
  'returns the jobs. asking and refuses: as for jobs_to_supersede.';

CREATE OR REPLACE FUNCTION pulse_internal.forget_superseded(job_key text, job_id bigint)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  DELETE FROM pulse.superseded_job AS s
   WHERE (s.job_key, s.job_id) = (forget_superseded.job_key, forget_superseded.job_id);
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION pulse_internal.forget_superseded(text, bigint) IS
  'Removes the record of a job that ends or is added anew; returns whether there was one.';

CREATE OR REPLACE FUNCTION pulse_internal.is_superseded(job pulse.job) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN job.superseded
      OR EXISTS (SELECT FROM pulse.superseded_job AS s
                  WHERE (s.job_key, s.job_id) = (job.job_key, job.id));
END $$;
COMMENT ON FUNCTION pulse_internal.is_superseded(pulse.job) IS
  'Returns whether a running job has lost its key and so does not run again.';

-- Keys of waiting jobs are in one index, keys of running jobs in another index.
CREATE OR REPLACE FUNCTION pulse_internal.live_job_of_key(job_key text) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  found pulse.job;
BEGIN
  SELECT * INTO found FROM pulse.job AS j
   WHERE j.job_key = live_job_of_key.job_key AND j.index_lane IN ('o', 'p', 'w');
  IF found.id IS NULL THEN
    SELECT * INTO found FROM pulse.job AS j
     WHERE j.job_key = live_job_of_key.job_key AND j.index_lane IN ('r', 'k')
       AND NOT pulse_internal.is_superseded(j)
     ORDER BY j.id DESC LIMIT 1;
  END IF;
  RETURN found;
END $$;
COMMENT ON FUNCTION pulse_internal.live_job_of_key(text) IS
  'Returns the waiting job of a key, or else the newest job with the key that runs, or whose key '
  'is undecided; NULL without a job.';
