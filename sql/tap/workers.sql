-- Deaths of workers, at will.

CREATE OR REPLACE FUNCTION pulse_tap.silence_worker(worker_id bigint, silence interval = NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  silence_us bigint := pulse_internal.us(silence);
BEGIN
  PERFORM pulse_tap.require_test('silence_worker()');
  -- Without an attached session, silence alone decides.
  UPDATE pulse.heartbeat AS h
     SET beat_live_us = pulse_internal.live_now_us() - s.us,
         last_heartbeat_at = pulse.now() - pulse_internal.interval(s.us),
         attachment = NULL
    FROM (SELECT b.worker_id,
                 coalesce(silence_us, greatest(
                   b.threshold_us, pulse_internal.least_threshold_us(b.interval_us)) + 1) AS us
            FROM pulse.heartbeat AS b) AS s
   WHERE s.worker_id = h.worker_id AND h.worker_id = silence_worker.worker_id
     AND h.verdict NOT IN ('lost', 'stopped');
  IF NOT FOUND THEN
    PERFORM pulse_internal.raise_unknown_worker(silence_worker.worker_id);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_tap.silence_worker(bigint, interval) IS
  'Makes the last heartbeat of a worker so old: NULL means just too old, so that the next sweep '
  'takes the worker for lost. Raises PU002 for a worker that is unknown, lost or stopped, PU006 '
  'outside a transaction block.';

CREATE OR REPLACE FUNCTION pulse_tap.lose_worker(worker_id bigint) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_tap.require_test('lose_worker()');
  RETURN pulse.declare_lost(lose_worker.worker_id, 'its process was lost in a test');
END $$;
COMMENT ON FUNCTION pulse_tap.lose_worker(bigint) IS
  'Plays the death of a worker''s process: the jobs of the worker are recovered, with an attempt '
  'and a crash counted. Returns how many jobs. Raises PU002 for an unknown worker, PU006 outside '
  'a transaction block.';
