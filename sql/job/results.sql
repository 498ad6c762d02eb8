-- Callers: sessions that wait for the end of jobs, and read how the jobs ended. A transaction notes
-- the jobs that it ends, so that the commit wakes the waiting sessions: see
-- extension/wake/end_waiters.hpp.

CREATE OR REPLACE FUNCTION pulse_internal.note_end(job_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_end';
COMMENT ON FUNCTION pulse_internal.note_end(bigint) IS
  'Makes the commit of this transaction wake the sessions that wait for the end of this job.';

CREATE OR REPLACE FUNCTION pulse_internal.check_given_out(job_ids bigint[]) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  unknown bigint;
BEGIN
  PERFORM pulse_internal.refuse_lost(job_ids);
  SELECT min(i) INTO unknown
    FROM unnest(job_ids) AS i, pulse.job_id_seq AS s, pulse_internal.id_bounds AS b
   WHERE i < b.id_floor OR i > s.last_value OR NOT s.is_called;
  IF unknown IS NOT NULL THEN
    RAISE EXCEPTION 'job % was never added', unknown USING
      ERRCODE = 'PU005', HINT = 'Use an id that add_job() or add_jobs() returned.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_given_out(bigint[]) IS
  'Raises PU005 for an id that no job ever had, that a failover lost, or that is of another '
  'shard.';

CREATE OR REPLACE FUNCTION pulse_internal.awaited_ids(job_ids bigint[]) RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_ids CONSTANT int := 10000;
BEGIN
  IF array_ndims(job_ids) > 1 OR cardinality(job_ids) > max_ids
     OR array_position(job_ids, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'job_ids must be a flat array of at most % ids, without nulls', max_ids USING
      ERRCODE = 'PU004', HINT = 'Use the ids that add_job() or add_jobs() returned.';
  END IF;
  PERFORM pulse_internal.check_given_out(job_ids);
  RETURN ARRAY(SELECT DISTINCT i FROM unnest(job_ids) AS i ORDER BY i);
END $$;
COMMENT ON FUNCTION pulse_internal.awaited_ids(bigint[]) IS
  'Returns the ids of a wait_for_end call, each once. Raises PU004 for an invalid array, PU005 '
  'for an id never given out or lost in a failover.';

-- Neither SECURITY DEFINER nor SET: either would make the call atomic and pin a snapshot.
CREATE OR REPLACE PROCEDURE pulse.wait_for_end(
    job_ids bigint[], max_wait interval = '30 s', any_of boolean = false, INOUT ended int = NULL)
  LANGUAGE c AS 'MODULE_PATHNAME', 'pulse_wait_for_end';
COMMENT ON PROCEDURE pulse.wait_for_end(bigint[], interval, boolean, int) IS
  'Returns when all of these jobs have ended, with any_of => true when one job has ended, or '
  'after max_wait (at most 1 day). ended: how many jobs have ended, in whatever way; a job '
  'without a row has ended, unless a transaction in progress adds the job. Holds no snapshot and '
  'no transaction id during the wait. Raises PU004 for a value out of range and for more than '
  '10,000 ids, PU005 for an id never given out or lost in a failover, PU006 inside a transaction '
  'block, 25006 on a standby.';

CREATE OR REPLACE FUNCTION pulse.ended(job_ids bigint[])
  RETURNS TABLE (id bigint, state pulse.finished_state, result json, last_error text,
                 finished_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.refuse_standby('ended()');
  PERFORM pulse_internal.refuse_lost(job_ids);
  RETURN QUERY
  SELECT f.id, f.state, f.result, f.last_error, f.finished_at
    FROM pulse.finished_job AS f WHERE f.id = ANY (job_ids) ORDER BY f.id;
END $$;
COMMENT ON FUNCTION pulse.ended(bigint[]) IS
  'Returns how each of these jobs ended, in the order of the ids; leaves out jobs that have not '
  'ended or are not kept. Completed jobs are kept where keep_completed of the task or the server '
  'says so; all other jobs as long as pulse.keep_failed says. Raises PU005 for an id lost in a '
  'failover, 25006 on a standby.';
