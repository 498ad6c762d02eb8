-- Reading and cancelling a job.

CREATE OR REPLACE FUNCTION pulse_internal.raise_unknown_job(job_id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.refuse_lost(ARRAY[job_id]);
  RAISE EXCEPTION 'job % is unknown', coalesce(job_id::text, 'NULL') USING
    ERRCODE = 'PU005',
    HINT = 'It was not added, or not by your producer, or it completed and pulse.keep_completed '
           'keeps none.';
END $$;
COMMENT ON FUNCTION pulse_internal.raise_unknown_job(bigint) IS
  'Raises PU005 for a job that is neither live nor kept.';

CREATE OR REPLACE FUNCTION pulse_internal.shown_job(
    job_id bigint, with_documents boolean, OUT state text, OUT job json, OUT payload json,
    OUT checkpoint json, OUT result json, OUT parents json)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  live pulse.job;
  ended pulse.finished_job;
  beat_at timestamptz;
BEGIN
  SELECT seen.* INTO live FROM pulse.job AS j
   CROSS JOIN LATERAL pulse_internal.as_producers_see(j, NULL) AS seen
   WHERE j.id = shown_job.job_id;
  IF live.id IS NOT NULL THEN
    SELECT h.last_heartbeat_at INTO beat_at
      FROM pulse.job AS j JOIN pulse.heartbeat AS h ON h.worker_id = j.worker_id
     WHERE j.id = live.id AND j.state = 'running';
    payload := live.payload;
    checkpoint := live.checkpoint;
    parents := live.parents;
    IF NOT with_documents THEN
      live.payload := NULL;
      live.checkpoint := NULL;
      live.parents := NULL;
    END IF;
    state := live.state;
    job := (SELECT row_to_json(o) FROM (SELECT (live).*, beat_at AS owner_heartbeat_at) AS o);
    RETURN;
  END IF;
  SELECT * INTO ended FROM pulse.finished_job AS f WHERE f.id = shown_job.job_id;
  IF ended.id IS NULL THEN
    PERFORM pulse_internal.raise_unknown_job(shown_job.job_id);
  END IF;
  IF NOT has_table_privilege(pulse_internal.asking_role(), 'pulse.finished_job', 'SELECT') THEN
    ended.payload := NULL;
    ended.worker_id := NULL;
    ended.token := NULL;
    ended.checkpoint := NULL;
    ended.result := NULL;
    ended.last_error := NULL;
    ended.parents := NULL;
    ended.traceparent := NULL;
  END IF;
  payload := ended.payload;
  checkpoint := ended.checkpoint;
  result := ended.result;
  parents := ended.parents;
  IF NOT with_documents THEN
    ended.payload := NULL;
    ended.checkpoint := NULL;
    ended.result := NULL;
    ended.parents := NULL;
  END IF;
  state := ended.state;
  job := row_to_json(ended);
END $$;
COMMENT ON FUNCTION pulse_internal.shown_job(bigint, boolean) IS
  'Returns a live or finished job as the caller may see it, with the documents within the row or '
  'beside it. Raises PU005 for an unknown job.';

CREATE OR REPLACE FUNCTION pulse_internal.get_job_as_owner(
    job_id bigint, OUT state text, OUT job json)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT s.state, s.job INTO state, job FROM pulse_internal.shown_job(job_id, true) AS s;
END $$;
COMMENT ON FUNCTION pulse_internal.get_job_as_owner(bigint) IS
  'The body of pulse.get_job().';

CREATE OR REPLACE FUNCTION pulse.get_job(job_id bigint, OUT state text, OUT job json)
  LANGUAGE c STABLE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.get_job(bigint) IS
  'Returns the state of a live or finished job, and the row as json. owner_heartbeat_at is the '
  'last heartbeat of the worker that runs the job. A role that may not read the table, as a '
  'worker''s role, sees no payload, result, error, token or worker there. Raises PU005 for an '
  'unknown job.';

-- Producers and tasks may write JSON that no function of the server reads, as with \u0000.
CREATE OR REPLACE FUNCTION pulse_internal.read_job_as_owner(
    job_id bigint, OUT state text, OUT job json, OUT payload json, OUT checkpoint json,
    OUT result json, OUT parents json)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT s.* INTO state, job, payload, checkpoint, result, parents
    FROM pulse_internal.shown_job(job_id, false) AS s;
END $$;
COMMENT ON FUNCTION pulse_internal.read_job_as_owner(bigint) IS
  'The body of pulse.read_job().';

CREATE OR REPLACE FUNCTION pulse.read_job(
    job_id bigint, OUT state text, OUT job json, OUT payload json, OUT checkpoint json,
    OUT result json, OUT parents json)
  LANGUAGE c STABLE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.read_job(bigint) IS
  'Returns the state and the row as get_job does, with the documents of the job beside the row and '
  'as NULL in the row: so the row can be read whatever the documents hold, and however large they '
  'are. Raises PU005 for an unknown job.';

-- A completed job that is not kept has no row. Rows that name the job tell of the completion; where
-- an attempt of the job is left, the job may have failed and been pruned.
CREATE OR REPLACE FUNCTION pulse_internal.has_completed(job_id bigint) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.id = has_completed.job_id)
     AND NOT EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = has_completed.job_id)
     AND NOT EXISTS (SELECT FROM pulse.attempt AS a WHERE a.job_id = has_completed.job_id)
     AND (EXISTS (SELECT FROM pulse.flow_job AS m WHERE m.job_id = has_completed.job_id)
          OR EXISTS (SELECT FROM pulse.dependency AS d
                      WHERE d.parents_key IN (has_completed.job_id,
                                              -pulse_internal.neighbours_of(has_completed.job_id))
                        AND has_completed.job_id = ANY (d.parents))
          OR EXISTS (SELECT FROM pulse.schedule AS s
                      WHERE s.last_job_id = has_completed.job_id));
END $$;
COMMENT ON FUNCTION pulse_internal.has_completed(bigint) IS
  'Returns whether a job without a row is known to have completed: by its flow, by a job that '
  'waits for it, or by its schedule.';

-- An operator's call waits for claims, heartbeats and ends of attempts, which last moments. A
-- producer may leave a transaction open, so no call waits longer for a producer.
CREATE OR REPLACE FUNCTION pulse_internal.limit_lock_wait() RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  before text := current_setting('lock_timeout');
BEGIN
  IF before = '0' OR before::interval > interval '1 s' THEN
    PERFORM set_config('lock_timeout', '1s', true);
  END IF;
  RETURN before;
END $$;
COMMENT ON FUNCTION pulse_internal.limit_lock_wait() IS
  'Limits each wait of this transaction for a lock to a second, and returns the lock_timeout that '
  'the caller gives back.';

CREATE OR REPLACE FUNCTION pulse_internal.raise_busy(job_id bigint, holder text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'job % is busy', job_id USING
    ERRCODE = 'lock_not_available', DETAIL = holder,
    HINT = 'Nothing has changed. Call again when that transaction has ended.';
END $$;
COMMENT ON FUNCTION pulse_internal.raise_busy(bigint, text) IS
  'Raises 55P03 for a job whose row another transaction holds; holder says which one.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_live_job(job_id bigint) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  found_job pulse.job;
  limit_before text;
BEGIN
  SELECT * INTO found_job FROM pulse.job AS j WHERE j.id = lock_live_job.job_id
     FOR UPDATE SKIP LOCKED;
  IF found_job.id IS NULL
     AND EXISTS (SELECT FROM pulse.job AS j WHERE j.id = lock_live_job.job_id) THEN
    BEGIN
      limit_before := pulse_internal.limit_lock_wait();
      SELECT * INTO found_job FROM pulse.job AS j WHERE j.id = lock_live_job.job_id FOR UPDATE;
      PERFORM set_config('lock_timeout', limit_before, true);
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pulse_internal.raise_busy(job_id, coalesce(
        pulse_internal.holder_named(pulse_internal.locked_by(job_id), 'holds its row') || '.',
        'Another transaction held its row until now.'));
    END;
  END IF;
  RETURN found_job;
END $$;
COMMENT ON FUNCTION pulse_internal.lock_live_job(bigint) IS
  'Locks a live job for an operator and returns it; NULL where the job is not live. Raises 55P03 '
  'where another transaction holds the row for more than a second.';

CREATE OR REPLACE FUNCTION pulse.cancel_job(job_id bigint, reason text = NULL) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  why CONSTANT text := pulse_internal.readable(reason);
  found_job pulse.job;
BEGIN
  LOCK TABLE pulse.job IN ROW EXCLUSIVE MODE;
  found_job := pulse_internal.lock_live_job(cancel_job.job_id);
  IF found_job.id IS NULL THEN
    -- The job has finished, perhaps while this call waited for the row: that end stands.
    IF pulse_internal.has_completed(cancel_job.job_id) THEN
      RETURN 'completed';
    END IF;
    RETURN (SELECT g.state FROM pulse.get_job(job_id) AS g);
  END IF;
  IF found_job.state <> 'running' THEN
    PERFORM pulse_internal.finish_waiting(ARRAY[found_job.id], 'cancelled', why);
    RETURN 'cancelled';
  END IF;
  UPDATE pulse.job AS j
     SET cancel_requested_at = coalesce(j.cancel_requested_at, pulse.now()),
         cancel_reason = coalesce(why, j.cancel_reason)
   WHERE j.id = found_job.id;
  PERFORM pulse_internal.note_worker(found_job.worker_id);
  RETURN 'running';
END $$;
COMMENT ON FUNCTION pulse.cancel_job(bigint, text) IS
  'Cancels a job. A waiting job ends at once. A running job is flagged, and each heartbeat tells '
  'the worker; if the job completes first, the completion wins, and any other end is recorded as '
  'cancelled. Returns cancelled, running (flagged), or the state in which the job had already '
  'ended: completed also where the job has no row, and its flow, a job that waits for it or its '
  'schedule knows of the completion. Raises PU005 for an unknown job, 55P03 where another '
  'transaction, as a producer''s keyed add, holds the job for more than a second: then nothing has '
  'changed.';
