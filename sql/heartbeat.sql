-- The heartbeat: one HOT update that reads the verdict in the statement that beats. Were the
-- verdict in another table, a worker could hear "alive" while it is being marked as lost.

-- Jobs that the worker does not know of in two arrays running go back: their claim's reply was
-- lost.
CREATE OR REPLACE FUNCTION pulse._settle_missing(beat pulse.heartbeat, job_ids bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ids bigint[];
  tokens bigint[];
BEGIN
  SELECT array_agg(j.id ORDER BY j.id), array_agg(j.token ORDER BY j.id) INTO ids, tokens
    FROM pulse.job AS j
   WHERE j.running_worker_id = beat.worker_id AND j.id <> ALL (job_ids);
  IF ids IS NOT NULL AND beat.missing_job_ids IS NOT NULL THEN
    PERFORM pulse._end_attempts((
      SELECT array_agg(ROW(m.id, 'interrupted', 'the worker does not know of this claim', true,
                           NULL, NULL, NULL, m.token)::pulse._ending)
        FROM unnest(beat.missing_job_ids, beat.missing_tokens) AS m (id, token)
       WHERE m.id = ANY (ids)));
  END IF;
  IF ids IS DISTINCT FROM beat.missing_job_ids OR tokens IS DISTINCT FROM beat.missing_tokens THEN
    UPDATE pulse.heartbeat AS h SET missing_job_ids = ids, missing_tokens = tokens
     WHERE h.worker_id = beat.worker_id;
  END IF;
END $$;
COMMENT ON FUNCTION pulse._settle_missing(pulse.heartbeat, bigint[]) IS
  'gives back jobs that were missing from the last array of this worker too';

-- What a beat does that extension/liveness/heartbeat.cpp leaves: of a worker that holds jobs, names
-- some, is asked something, or is not alive; in a transaction block; and where it cannot write.
CREATE OR REPLACE FUNCTION pulse._heartbeat_in_full(
    worker_id bigint, job_ids bigint[],
    OUT status text, OUT revoked bigint[], OUT cancelled bigint[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  beat pulse.heartbeat;
  done boolean;
BEGIN
  IF pulse._in_client_block() THEN
    PERFORM pulse._warn_in_block('heartbeat');
  END IF;
  UPDATE pulse.heartbeat AS h SET
    beat_live_us = pulse._live_now_us(),
    last_heartbeat_at = pulse.now(),
    attachment = CASE WHEN pulse._holds_attachment(h.attachment) THEN h.attachment END,
    detached_live_us = NULL
  WHERE h.worker_id = _heartbeat_in_full.worker_id AND h.status NOT IN ('lost', 'stopped')
  RETURNING h.* INTO beat;
  done := pulse._offer_sweep();
  status := coalesce(beat.status, 'lost');
  revoked := '{}';
  cancelled := '{}';
  IF beat.worker_id IS NULL THEN
    revoked := coalesce(job_ids, '{}');
    RETURN;
  END IF;
  -- So that a worker hears of a new handler within two of its intervals.
  IF EXISTS (SELECT FROM pulse.task AS t
              WHERE t.handler IS NOT NULL
                AND t.updated_at > pulse.now() - pulse._interval(2 * beat.interval_us)) THEN
    PERFORM pulse._notify_new_handlers();
  END IF;
  done := pulse._index_running(beat.worker_id);
  -- What follows costs more than all before it, and most beats are of workers that hold nothing.
  IF NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.running_worker_id = beat.worker_id)
     AND beat.missing_job_ids IS NULL AND coalesce(job_ids, '{}') = '{}' THEN
    RETURN;
  END IF;
  IF job_ids IS NOT NULL THEN
    PERFORM pulse._settle_missing(beat, job_ids);
    SELECT coalesce(array_agg(a.id), '{}') INTO revoked
      FROM unnest(job_ids) AS a (id)
     WHERE NOT EXISTS (SELECT FROM pulse.job AS j
                        WHERE j.id = a.id AND j.state = 'running' AND j.worker_id = beat.worker_id);
  END IF;
  SELECT coalesce(array_agg(j.id), '{}') INTO cancelled
    FROM pulse.job AS j
   WHERE j.running_worker_id = beat.worker_id AND j.cancel_requested_at IS NOT NULL;
END $$;
COMMENT ON FUNCTION pulse._heartbeat_in_full(bigint, bigint[]) IS
  'a beat with all that may come with it';

CREATE OR REPLACE FUNCTION pulse.heartbeat(
    worker_id bigint, job_ids bigint[] = NULL,
    OUT status text, OUT revoked bigint[], OUT cancelled bigint[])
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_heartbeat';
COMMENT ON FUNCTION pulse.heartbeat(bigint, bigint[]) IS
  'the worker lives. status: alive, draining, stopping or lost (also for an unknown or stopped '
  'one). '
  'job_ids means "exactly these": revoked are those among them that are not this worker''s any '
  'more; a '
  'job missing from two arrays running goes back. cancelled: jobs to end. Never raises for a '
  'worker';
