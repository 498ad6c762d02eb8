-- Same host: a starting worker finds dead workers of the same machine before a sweep notices their
-- silence. The database decides which workers may be judged, and by which signs. Only the calling
-- worker can see whether a process exists.

-- A worker that did not describe its machine has no pair. Pids are comparable only within one boot
-- of the kernel and one pid namespace.
CREATE OR REPLACE VIEW pulse_internal.host_pairs AS
  SELECT me.id AS asking_id, other.id AS worker_id, other.pid, other.process_start, other.hostname,
         coalesce(other.boot_id <> '' AND other.boot_id = me.boot_id AND other.pid_namespace <> ''
                  AND other.pid_namespace = me.pid_namespace, false) AS shares_pids
    FROM pulse.worker AS me
    JOIN pulse.worker AS other ON other.id <> me.id
     AND (other.state IN ('alive', 'draining')
          -- A lost worker may still have jobs, which the end of its process sets free.
          OR other.id IN (SELECT h.worker_id FROM pulse.heartbeat AS h
                           WHERE h.verdict = 'lost' AND h.lost_cause IN ('session', 'host')))
   WHERE other.hostname = me.hostname OR other.boot_id = me.boot_id;
COMMENT ON VIEW pulse_internal.host_pairs IS
  'Pairs of workers on one machine; shares_pids: each can see whether the other''s process '
  'exists.';

-- An outage adds at most one longest tick to the silence of every worker; the least threshold
-- exceeds the longest tick and two heartbeats together. A client that lost only the connection
-- returns within one interval.
CREATE OR REPLACE FUNCTION pulse_internal.is_gone_from_host(beat pulse.heartbeat, live_us bigint)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN beat.verdict NOT IN ('lost', 'stopped') AND CASE
    WHEN beat.attachment IS NOT NULL
         AND pulse_internal.attachment_state(beat.attachment, beat.incarnation) = 'ended'
      THEN live_us - beat.beat_live_us > beat.interval_us
    WHEN beat.attachment IS NOT NULL AND beat.interval_us = 0 THEN false
    ELSE live_us - beat.beat_live_us > pulse_internal.least_threshold_us(beat.interval_us) END;
END $$;
COMMENT ON FUNCTION pulse_internal.is_gone_from_host(pulse.heartbeat, bigint) IS
  'Returns whether a worker of another boot or pid namespace has gone: its session ended and the '
  'worker missed one heartbeat, or the worker missed two.';

CREATE OR REPLACE FUNCTION pulse.check_host(worker_id bigint)
  RETURNS TABLE (id bigint, pid int, process_start text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  gone record;
BEGIN
  PERFORM pulse_internal.require_read_committed('check_host');
  PERFORM pulse_internal.require_alive(check_host.worker_id);
  IF NOT current_setting('pulse.host_check')::boolean THEN
    RETURN;
  END IF;
  FOR gone IN
    SELECT h.worker_id, p.hostname
      FROM pulse_internal.host_pairs AS p JOIN pulse.heartbeat AS h ON h.worker_id = p.worker_id
     WHERE p.asking_id = check_host.worker_id AND NOT p.shares_pids
       AND pulse_internal.is_gone_from_host(h, pulse_internal.live_now_us())
     ORDER BY h.worker_id
       FOR UPDATE OF h SKIP LOCKED
  LOOP
    -- A worker with a claim in progress is left to the next sweep.
    IF pulse_internal.try_lock_worker(gone.worker_id) THEN
      -- The worker may only be cut off, in a container of its own.
      PERFORM pulse_internal.declare_lost(
        gone.worker_id, 'host', format('gone from host %s', gone.hostname), false);
    END IF;
  END LOOP;
  RETURN QUERY
    SELECT p.worker_id, p.pid, p.process_start
      FROM pulse_internal.host_pairs AS p JOIN pulse.heartbeat AS h ON h.worker_id = p.worker_id
     WHERE p.asking_id = check_host.worker_id AND p.shares_pids AND p.pid IS NOT NULL
       AND h.verdict <> 'stopped'
       AND (h.verdict <> 'lost' OR cardinality(pulse_internal.running_ids(h.worker_id, 1)) > 0)
     ORDER BY p.worker_id;
END $$;
COMMENT ON FUNCTION pulse.check_host(bigint) IS
  'Checks, for a worker that has just registered, the other workers of the same machine. The call '
  'declares workers of another boot or pid namespace lost when their session ended or they missed '
  'two heartbeats. Returns the workers whose processes the caller can see: for each without such a '
  'process (no such pid, or another process_start), call declare_lost(). While pulse.host_check is '
  'off the call does nothing. Raises PU002 for a caller that is unknown, lost or stopped, PU007 '
  'outside READ COMMITTED.';
