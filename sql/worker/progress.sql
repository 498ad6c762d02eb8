-- Progress of a running job, which stall_timeout watches.

CREATE OR REPLACE FUNCTION pulse.progress(
    job_id bigint, token bigint, message text = NULL, fraction float8 = NULL,
    checkpoint json = NULL, stage text = NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  owner bigint;
BEGIN
  IF fraction NOT BETWEEN 0 AND 1 OR fraction = 'NaN' THEN
    RAISE EXCEPTION 'fraction is %, out of range', fraction USING
      ERRCODE = 'PU004', HINT = 'It must be between 0 and 1.';
  END IF;
  PERFORM pulse_internal.check_document('checkpoint', checkpoint);
  UPDATE pulse.job AS j SET
    message = coalesce(pulse_internal.readable(progress.message), j.message),
    progress = coalesce(progress.fraction, j.progress),
    checkpoint = coalesce(progress.checkpoint, j.checkpoint),
    stage = coalesce(pulse_internal.readable(progress.stage), j.stage),
    last_activity_at = pulse.now(),
    activity_live_us = pulse_internal.live_now_us()
  WHERE j.id = progress.job_id AND j.token = progress.token AND j.state = 'running'
  RETURNING j.worker_id INTO owner;
  IF NOT FOUND THEN
    PERFORM pulse_internal.raise_stale(
      job_id,
      coalesce(pulse_internal.refused_token(job_id, progress.token, 'progress'), 'no live job'));
  END IF;
  PERFORM pulse_internal.beat_beside(owner);
END $$;
COMMENT ON FUNCTION pulse.progress(bigint, bigint, text, float8, json, text) IS
  'Reports progress of a running job and stores its checkpoint; NULL leaves a value unchanged. '
  'fraction is 0 to 1. The report restarts stall_timeout, and outside a transaction block it '
  'counts as a heartbeat. Raises PU001 when the claim is lost, PU004 for a value out of range.';
