-- Same host: what a starting worker finds out about others of its machine, before their silence
-- does. Which of them may be judged, and by what, is decided here; only whether a process exists
-- can be seen there alone.

-- No row where nothing is known of the machine. Pids mean something only within one run of the
-- kernel and one namespace of pids.
CREATE OR REPLACE VIEW pulse._host_pairs AS
  SELECT me.id AS asking_id, other.id AS worker_id, other.pid, other.process_start, other.hostname,
         coalesce(other.boot_id <> '' AND other.boot_id = me.boot_id AND other.pid_namespace <> ''
                  AND other.pid_namespace = me.pid_namespace, false) AS shares_pids
    FROM pulse.worker AS me
    JOIN pulse.worker AS other ON other.id <> me.id AND other.state IN ('alive', 'draining')
   WHERE other.hostname = me.hostname OR other.boot_id = me.boot_id;
COMMENT ON VIEW pulse._host_pairs IS
  'workers of one machine; shares_pids: each can see whether the other''s process exists';

-- An outage lets everybody's age grow by one longest tick; the formula of thresholds has room for
-- that and two beats. A client that lost only its connection is back within one interval.
CREATE OR REPLACE FUNCTION pulse._is_gone_from_host(beat pulse.heartbeat, live_us bigint)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN beat.status NOT IN ('lost', 'stopped') AND CASE
    WHEN beat.attachment IS NOT NULL
         AND pulse._attachment_state(beat.attachment, beat.incarnation) = 'ended'
      THEN live_us - beat.beat_live_us > beat.interval_us
    WHEN beat.attachment IS NOT NULL AND beat.interval_us = 0 THEN false
    ELSE live_us - beat.beat_live_us > pulse._least_threshold_us(beat.interval_us) END;
END $$;
COMMENT ON FUNCTION pulse._is_gone_from_host(pulse.heartbeat, bigint) IS
  'whether a worker of another boot or namespace has gone: its session ended and it missed a beat, '
  'or it missed two';

CREATE OR REPLACE FUNCTION pulse.check_host(worker_id bigint)
  RETURNS TABLE (id bigint, pid int, process_start text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  gone record;
BEGIN
  PERFORM pulse._require_read_committed('check_host');
  PERFORM pulse._require_alive(check_host.worker_id);
  FOR gone IN
    SELECT h.worker_id, p.hostname
      FROM pulse._host_pairs AS p JOIN pulse.heartbeat AS h ON h.worker_id = p.worker_id
     WHERE p.asking_id = check_host.worker_id AND NOT p.shares_pids
       AND pulse._is_gone_from_host(h, pulse._live_now_us())
     ORDER BY h.worker_id
       FOR UPDATE OF h SKIP LOCKED
  LOOP
    -- A claim of it that is under way has to end first; then a sweep finds it.
    IF pulse._try_lock_worker(gone.worker_id) THEN
      PERFORM pulse.declare_lost(gone.worker_id, format('gone from host %s', gone.hostname));
    END IF;
  END LOOP;
  RETURN QUERY
    SELECT p.worker_id, p.pid, p.process_start
      FROM pulse._host_pairs AS p JOIN pulse.heartbeat AS h ON h.worker_id = p.worker_id
     WHERE p.asking_id = check_host.worker_id AND p.shares_pids AND p.pid IS NOT NULL
       AND h.status NOT IN ('lost', 'stopped')
     ORDER BY p.worker_id;
END $$;
COMMENT ON FUNCTION pulse.check_host(bigint) IS
  'what a worker asks when it has registered. Declares lost those of its hostname, but of another '
  'boot or pid namespace, whose session ended or who missed two beats. Returns those whose '
  'processes the caller can see: where one is gone (no such pid, or another start), it calls '
  'declare_lost()';
