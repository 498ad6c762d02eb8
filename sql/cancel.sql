-- Looking at one job and cancelling it.

CREATE OR REPLACE FUNCTION pulse.get_job(job_id bigint, OUT state text, OUT job json)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT j.state::text, row_to_json(j) INTO state, job
    FROM pulse.job AS j WHERE j.id = get_job.job_id;
  IF state IS NULL THEN
    SELECT f.state::text, row_to_json(f) INTO state, job
      FROM pulse.finished_job AS f WHERE f.id = get_job.job_id;
  END IF;
  IF state IS NULL THEN
    RAISE EXCEPTION 'job % is unknown', coalesce(job_id::text, 'NULL') USING
      ERRCODE = 'PU005',
      HINT = 'Completed jobs are deleted unless pulse.keep_completed keeps them.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse.get_job(bigint) IS
  'a live or finished job: its state and everything stored of it. PU005 when there is none';

CREATE OR REPLACE FUNCTION pulse._cancel_waiting(waiting pulse.job, reason text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pulse.job AS j WHERE j.id = waiting.id;
  INSERT INTO pulse.finished_job
    (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts, crashes,
     job_key, flags, checkpoint, last_error, revision, created_at, finished_at)
  VALUES
    (waiting.id, waiting.identifier, waiting.payload, waiting.queue_name, waiting.priority,
     waiting.run_at, 'cancelled', waiting.attempts, waiting.max_attempts, waiting.crashes,
     waiting.job_key, waiting.flags, waiting.checkpoint, coalesce(reason, waiting.last_error),
     waiting.revision, waiting.created_at, pulse.now());
  PERFORM pulse._note_queue(waiting.queue_name);
END $$;
COMMENT ON FUNCTION pulse._cancel_waiting(pulse.job, text) IS
  'ends a locked job that is not running';

CREATE OR REPLACE FUNCTION pulse.cancel_job(job_id bigint, reason text = NULL) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_job pulse.job;
BEGIN
  SELECT * INTO found_job FROM pulse.job AS j WHERE j.id = cancel_job.job_id FOR UPDATE;
  IF found_job.id IS NULL THEN
    -- Finished already, or moved there while we waited for its row: its end stands.
    RETURN (SELECT g.state FROM pulse.get_job(job_id) AS g);
  END IF;
  IF found_job.state <> 'running' THEN
    PERFORM pulse._cancel_waiting(found_job, cancel_job.reason);
    RETURN 'cancelled';
  END IF;
  UPDATE pulse.job AS j
     SET cancel_requested_at = coalesce(j.cancel_requested_at, pulse.now()),
         cancel_reason = coalesce(cancel_job.reason, j.cancel_reason)
   WHERE j.id = found_job.id;
  PERFORM pulse._note_worker(found_job.worker_id);
  RETURN 'running';
END $$;
COMMENT ON FUNCTION pulse.cancel_job(bigint, text) IS
  'a waiting job is cancelled at once; a running one is flagged and its worker told by every '
  'heartbeat: '
  'a completion that comes first wins, any other end is cancelled. Returns the state: cancelled, '
  'running (flagged), or how the job had ended before. PU005 when there is none';
