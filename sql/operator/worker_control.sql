-- Requests of operators to workers: to drain, to stop, or to be lost (force_unlock_workers). The
-- request is the status in the heartbeat row, so the next heartbeat and every later claim read it.

CREATE OR REPLACE FUNCTION pulse_internal.order_worker(worker_id bigint, wanted text) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  status text;
BEGIN
  UPDATE pulse.heartbeat AS h
     -- A worker that an operator has asked to stop gets no request to drain.
     SET verdict = CASE WHEN h.verdict = 'stopping' THEN h.verdict ELSE order_worker.wanted END
   WHERE h.worker_id = order_worker.worker_id AND h.verdict NOT IN ('lost', 'stopped')
  RETURNING h.verdict INTO status;
  IF status IS NULL THEN
    SELECT w.state INTO status FROM pulse.worker AS w WHERE w.id = order_worker.worker_id;
    IF status IS NULL THEN
      PERFORM pulse_internal.raise_unknown_worker(order_worker.worker_id);
    END IF;
    RETURN status;
  END IF;
  UPDATE pulse.worker AS w
     SET state = 'draining',
         reason = format('asked to %s by role %I at %s',
                         CASE wanted WHEN 'stopping' THEN 'stop' ELSE 'drain' END,
                         pulse_internal.caller(), pulse.now())
   WHERE w.id = order_worker.worker_id
     AND (w.state <> 'draining'
          OR wanted = 'stopping' AND coalesce(w.reason, '') NOT LIKE 'asked to stop %');
  PERFORM pulse_internal.note_worker(order_worker.worker_id);
  RETURN status;
END $$;
COMMENT ON FUNCTION pulse_internal.order_worker(bigint, text) IS
  'Stores a request (draining or stopping) in a worker''s status unless the worker has ended, and '
  'returns its status.';

CREATE OR REPLACE FUNCTION pulse.drain_worker(worker_id bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.warn_in_block('drain_worker');
  RETURN pulse_internal.order_worker(drain_worker.worker_id, 'draining');
END $$;
COMMENT ON FUNCTION pulse.drain_worker(bigint) IS
  'Asks a worker to drain: it gets no more jobs, finishes its jobs, without a limit, and leaves. '
  'Returns draining, stopping (asked before), or lost or stopped when the worker has ended. Make '
  'the call outside a transaction block, which would hold up the worker''s heartbeats. Raises '
  'PU002 for an unknown worker.';

CREATE OR REPLACE FUNCTION pulse.stop_worker(worker_id bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.warn_in_block('stop_worker');
  RETURN pulse_internal.order_worker(stop_worker.worker_id, 'stopping');
END $$;
COMMENT ON FUNCTION pulse.stop_worker(bigint) IS
  'Asks a worker to stop: it gets no more jobs, finishes its jobs within its own grace period, and '
  'leaves. Returns stopping, or lost or stopped when the worker has ended. Make the call outside a '
  'transaction block, which would hold up the worker''s heartbeats. Raises PU002 for an unknown '
  'worker.';

CREATE OR REPLACE FUNCTION pulse_internal.order_workers(worker_names text[], wanted text)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  unknown text;
  named bigint;
  asked int := 0;
BEGIN
  LOCK TABLE pulse.worker IN ROW EXCLUSIVE MODE;
  FOR named IN SELECT w.id FROM pulse.worker AS w
                WHERE w.name = ANY (worker_names) AND w.state IN ('alive', 'draining')
                ORDER BY w.id LOOP
    PERFORM pulse_internal.order_worker(named, wanted);
    asked := asked + 1;
  END LOOP;
  SELECT string_agg(quote_literal(n), ', ') INTO unknown FROM unnest(worker_names) AS n
   WHERE NOT EXISTS (SELECT FROM pulse.worker AS w
                      WHERE w.name = n AND w.state IN ('alive', 'draining'));
  IF unknown IS NOT NULL THEN
    RAISE NOTICE 'no living worker has the name %', unknown USING
      HINT = 'pulse.worker_status lists the workers.';
  END IF;
  RETURN asked;
END $$;
COMMENT ON FUNCTION pulse_internal.order_workers(text[], text) IS
  'Stores a request (draining or stopping) for all living workers of these names, and returns how '
  'many workers.';

CREATE OR REPLACE FUNCTION pulse.drain_workers(worker_names text[]) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.warn_in_block('drain_workers');
  RETURN pulse_internal.order_workers(drain_workers.worker_names, 'draining');
END $$;
COMMENT ON FUNCTION pulse.drain_workers(text[]) IS
  'Asks every living worker of these names to drain, as drain_worker does, and returns how many '
  'workers. A notice lists the names that no living worker has; NULL names no worker.';

CREATE OR REPLACE FUNCTION pulse.stop_workers(worker_names text[]) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.warn_in_block('stop_workers');
  RETURN pulse_internal.order_workers(stop_workers.worker_names, 'stopping');
END $$;
COMMENT ON FUNCTION pulse.stop_workers(text[]) IS
  'Asks every living worker of these names to stop, as stop_worker does, and returns how many '
  'workers. A notice lists the names that no living worker has; NULL names no worker.';

CREATE OR REPLACE FUNCTION pulse.force_unlock_workers(worker_names text[]) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  named bigint;
  recovered int;
  total int := 0;
  claiming bigint[] := '{}';
BEGIN
  PERFORM pulse_internal.require_read_committed('force_unlock_workers');
  LOCK TABLE pulse.worker IN ROW EXCLUSIVE MODE;
  FOR named IN
    SELECT w.id FROM pulse.worker AS w
     WHERE w.name = ANY (worker_names)
       AND (w.state IN ('alive', 'draining')
            OR cardinality(pulse_internal.running_ids(w.id, 1)) > 0)
     ORDER BY w.id
  LOOP
    recovered := pulse_internal.declare_lost(named, 'hand', 'unlocked by hand', true);
    total := total + coalesce(recovered, 0);
    IF recovered IS NULL THEN
      claiming := claiming || named;
    END IF;
  END LOOP;
  IF claiming <> '{}' THEN
    RAISE WARNING 'claims of workers are in progress' USING
      DETAIL = format('They were left alone: %s.', array_to_string(claiming, ', ')),
      HINT = 'Call again when the transactions of these claims have ended.';
  END IF;
  RETURN total;
END $$;
COMMENT ON FUNCTION pulse.force_unlock_workers(text[]) IS
  'Declares every worker of these names lost, living workers too, recovers their jobs and returns '
  'how many. The call consumes the attempts and counts no crash; the jobs are ready again at '
  'once, or failed after the last attempt. The call leaves a worker with a claim in progress '
  'alone, with a warning; NULL names no worker. Raises PU007 outside READ COMMITTED.';
