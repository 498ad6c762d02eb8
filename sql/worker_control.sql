-- What operators tell workers: take no more (drain), stop, or be gone (force_unlock). The verdict
-- of the heartbeat row carries it, so the next beat hears it, and every claim from now on.

CREATE OR REPLACE FUNCTION pulse._order_worker(worker_id bigint, wanted text) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  status text;
BEGIN
  UPDATE pulse.heartbeat AS h
     -- To stop is more than to drain.
     SET status = CASE WHEN h.status = 'stopping' THEN h.status ELSE _order_worker.wanted END
   WHERE h.worker_id = _order_worker.worker_id AND h.status NOT IN ('lost', 'stopped')
  RETURNING h.status INTO status;
  IF status IS NULL THEN
    SELECT w.state INTO status FROM pulse.worker AS w WHERE w.id = _order_worker.worker_id;
    IF status IS NULL THEN
      PERFORM pulse._raise_unknown_worker(_order_worker.worker_id);
    END IF;
    RETURN status;
  END IF;
  UPDATE pulse.worker AS w SET state = 'draining'
   WHERE w.id = _order_worker.worker_id AND w.state <> 'draining';
  PERFORM pulse._note_worker(_order_worker.worker_id);
  RETURN status;
END $$;
COMMENT ON FUNCTION pulse._order_worker(bigint, text) IS
  'stores what a worker is told, unless it has ended; returns what it is now';

CREATE OR REPLACE FUNCTION pulse.drain_worker(worker_id bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pulse._warn_in_block('drain_worker');
  RETURN pulse._order_worker(drain_worker.worker_id, 'draining');
END $$;
COMMENT ON FUNCTION pulse.drain_worker(bigint) IS
  'the worker gets no more jobs, finishes what it has, without a limit, and leaves. Returns its '
  'state: draining, stopping (told before), or lost or stopped when it has ended. Not inside a '
  'transaction: the worker cannot beat until it ends. PU002 for an unknown worker';

CREATE OR REPLACE FUNCTION pulse.stop_worker(worker_id bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pulse._warn_in_block('stop_worker');
  RETURN pulse._order_worker(stop_worker.worker_id, 'stopping');
END $$;
COMMENT ON FUNCTION pulse.stop_worker(bigint) IS
  'the worker gets no more jobs, gives what it has its grace to finish, and leaves. Returns its '
  'state: stopping, or lost or stopped when it has ended. Not inside a transaction: the worker '
  'cannot beat until it ends. PU002 for an unknown worker';

CREATE OR REPLACE FUNCTION pulse.force_unlock_workers(worker_names text[]) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named bigint;
  recovered bigint[];
  total bigint[] := '{}';
  claiming bigint[] := '{}';
BEGIN
  PERFORM pulse._require_read_committed('force_unlock_workers');
  FOR named IN
    SELECT w.id FROM pulse.worker AS w
     WHERE w.name = ANY (worker_names)
       AND (w.state IN ('alive', 'draining')
            OR cardinality(pulse._running_ids(w.id, 1)) > 0)
     ORDER BY w.id
  LOOP
    recovered := pulse._declare_lost(named, 'unlocked by hand');
    total := total || recovered;
    IF recovered IS NULL THEN
      claiming := claiming || named;
    END IF;
  END LOOP;
  PERFORM pulse._notify_recovered('host', NULL, total);
  IF claiming <> '{}' THEN
    RAISE WARNING 'claims of workers are under way' USING
      DETAIL = format('They were left alone: %s.', array_to_string(claiming, ', ')),
      HINT = 'Call again when the transactions of these claims have ended.';
  END IF;
  RETURN cardinality(total);
END $$;
COMMENT ON FUNCTION pulse.force_unlock_workers(text[]) IS
  'declares every worker of these names lost, living ones too, and recovers their jobs; returns '
  'how many. A worker of which a claim is under way is left alone, with a warning';
