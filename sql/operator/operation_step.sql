-- The steps of operations: the change that each action makes to a job; operation_undo.sql takes the
-- change back. A step waits for no row and no key. Lock order: the operation, then rows in order of
-- ids, then job keys.

CREATE OR REPLACE FUNCTION pulse_internal.epoch_us(moment timestamptz) RETURNS numeric
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pg_catalog.trunc(EXTRACT(epoch FROM moment) * 1000000);
COMMENT ON FUNCTION pulse_internal.epoch_us(timestamptz) IS
  'Returns a moment in microseconds since 1970; from 294247 on the number needs more than 64 '
  'bits.';

-- A claim, a retry, a reschedule and a snooze each change the stamp; a release of a job that never
-- started leaves the stamp unchanged. A body that the server parsed would keep owners from adding
-- columns.
CREATE OR REPLACE FUNCTION pulse_internal.live_stamp(job pulse.job) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.concat_ws('/', job.revision, job.attempts, job.crashes,
           pulse_internal.epoch_us(job.run_at), job.token,
           pulse_internal.epoch_us(job.cancel_requested_at));
$$;
COMMENT ON FUNCTION pulse_internal.live_stamp(pulse.job) IS
  'Returns a text that differs once a live job has run or was changed.';

CREATE OR REPLACE FUNCTION pulse_internal.ended_stamp(job pulse.finished_job) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.concat_ws('/', job.revision, job.state,
           pulse_internal.epoch_us(job.finished_at));
$$;
COMMENT ON FUNCTION pulse_internal.ended_stamp(pulse.finished_job) IS
  'Returns a text that differs once an ended job has ended again.';

-- The documents go before the row becomes JSON, because no function reads some contents of
-- documents, as \u0000.
CREATE OR REPLACE FUNCTION pulse_internal.without_documents(job pulse.job) RETURNS json
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  job.payload := NULL;
  job.checkpoint := NULL;
  job.parents := NULL;
  RETURN json_strip_nulls(row_to_json(job));
END $$;
COMMENT ON FUNCTION pulse_internal.without_documents(pulse.job) IS
  'Returns a row of a job without the documents, which stay with the job.';

CREATE OR REPLACE FUNCTION pulse_internal.without_documents(job pulse.finished_job) RETURNS json
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  job.payload := NULL;
  job.checkpoint := NULL;
  job.result := NULL;
  job.parents := NULL;
  RETURN json_strip_nulls(row_to_json(job));
END $$;
COMMENT ON FUNCTION pulse_internal.without_documents(pulse.finished_job) IS
  'Returns a row of a job without the documents, which stay with the job.';

-- The rows of pulse.dependency go with an end, and with a retry of a job cancelled because of a
-- parent.
CREATE OR REPLACE FUNCTION pulse_internal.noted_waits(job_id bigint) RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
BEGIN
  RETURN jsonb_build_object(
    'waited_for', ARRAY(SELECT p FROM pulse.dependency AS d CROSS JOIN unnest(d.parents) AS p
                         WHERE d.child_id = noted_waits.job_id ORDER BY p),
    'failed', ARRAY(SELECT (e.record).id FROM pulse_internal.ended_parent AS e
                     WHERE e.child_id = noted_waits.job_id
                       AND pulse_internal.ended_otherwise(e.record)));
END $$;
COMMENT ON FUNCTION pulse_internal.noted_waits(bigint) IS
  'Returns for which parents a job waits, and which parents have ended otherwise than by '
  'completing, as an operation notes them.';

CREATE OR REPLACE FUNCTION pulse_internal.note_change(
    operation_id bigint, job_id bigint, stamp text, before json)
  RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  INSERT INTO pulse.operation_job (operation_id, job_id, stamp, before)
  VALUES (operation_id, job_id, stamp, before);
$$;
COMMENT ON FUNCTION pulse_internal.note_change(bigint, bigint, text, json) IS
  'Notes how an operation left a job, and how it was before, without the documents.';

-- --- the actions --------------------------------------------------------------------------------

-- The jobs come one after the other, because a job that goes live takes its key and children along.
CREATE OR REPLACE FUNCTION pulse_internal.step_retry(o pulse.operation, job_ids bigint[])
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  next_id bigint;
  ended pulse.finished_job;
  before json;
  done int := 0;
BEGIN
  FOR next_id IN SELECT i FROM unnest(job_ids) AS i ORDER BY i LOOP
    SELECT * INTO ended FROM pulse.finished_job AS f
     WHERE f.id = next_id AND f.state <> 'completed' FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN ended.id IS NULL OR NOT pulse_internal.lock_cancelled(next_id)
               OR NOT pulse_internal.is_key_free(ended.job_key);
    before := pulse_internal.without_documents(ended);
    IF ended.cancelled_by IS NOT NULL THEN
      before := before::jsonb || pulse_internal.noted_waits(next_id);
      -- A parent that was live by then is no reason to leave the job alone (why_not_cancelled).
      before := before::jsonb || jsonb_build_object('live', pulse_internal.live_ids(
        pulse_internal.noted_ids(before, 'waited_for'), true));
    END IF;
    ended.run_at := pulse.now();
    ended.attempts := 0;
    ended.crashes := 0;
    PERFORM pulse_internal.note_change(
      o.id, next_id, pulse_internal.live_stamp(pulse_internal.revive(ended)), before);
    done := done + 1;
  END LOOP;
  RETURN done;
END $$;
COMMENT ON FUNCTION pulse_internal.step_retry(pulse.operation, bigint[]) IS
  'Retries these ended jobs, as retry_job() does, and returns how many.';

CREATE OR REPLACE FUNCTION pulse_internal.step_end(
    o pulse.operation, job_ids bigint[], how pulse.finished_state, error text)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ids bigint[];
BEGIN
  WITH locked AS MATERIALIZED (
    SELECT j.id, j AS job FROM pulse.job AS j
     WHERE j.id = ANY (job_ids) AND j.state <> 'running' ORDER BY j.id FOR UPDATE SKIP LOCKED
  ), noted AS (
    INSERT INTO pulse.operation_job (operation_id, job_id, stamp, before)
    SELECT o.id, l.id, '', pulse_internal.without_documents(l.job)::jsonb
           || CASE WHEN (l.job).waits_on IS NULL THEN '{}' ELSE pulse_internal.noted_waits(l.id) END
      FROM locked AS l
    RETURNING job_id
  )
  SELECT array_agg(n.job_id) INTO ids FROM noted AS n;
  PERFORM pulse_internal.finish_waiting(ids, how, error);
  UPDATE pulse.operation_job AS n SET stamp = pulse_internal.ended_stamp(f)
    FROM pulse.finished_job AS f
   WHERE n.operation_id = o.id AND n.job_id = ANY (ids) AND f.id = n.job_id;
  RETURN coalesce(cardinality(ids), 0);
END $$;
COMMENT ON FUNCTION pulse_internal.step_end(pulse.operation, bigint[], pulse.finished_state, text)
  IS 'Ends these waiting jobs and returns how many.';

CREATE OR REPLACE FUNCTION pulse_internal.step_cancel(o pulse.operation, job_ids bigint[])
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  reason text := coalesce(o.arguments ->> 'reason', format('operation %s', o.id));
  job pulse.job;
  before json;
  done int := pulse_internal.step_end(o, job_ids, 'cancelled', reason);
BEGIN
  FOR job IN
    SELECT * FROM pulse.job AS j
     WHERE j.id = ANY (job_ids) AND j.state = 'running' AND j.cancel_requested_at IS NULL
     ORDER BY j.id FOR UPDATE SKIP LOCKED
  LOOP
    before := pulse_internal.without_documents(job);
    PERFORM pulse.cancel_job(job.id, reason);
    SELECT * INTO job FROM pulse.job AS j WHERE j.id = job.id;
    PERFORM pulse_internal.note_change(o.id, job.id, pulse_internal.live_stamp(job), before);
    done := done + 1;
  END LOOP;
  RETURN done;
END $$;
COMMENT ON FUNCTION pulse_internal.step_cancel(pulse.operation, bigint[]) IS
  'Cancels these live jobs, as cancel_job() does, and returns how many.';

CREATE OR REPLACE FUNCTION pulse_internal.step_reschedule(o pulse.operation, job_ids bigint[])
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  new_run_at timestamptz := o.arguments ->> 'run_at';
  new_attempts int := o.arguments ->> 'attempts';
  new_max_attempts int := o.arguments ->> 'max_attempts';
  ids bigint[];
BEGIN
  WITH locked AS MATERIALIZED (
    SELECT j.id, j AS job FROM pulse.job AS j
     WHERE j.id = ANY (job_ids) AND j.state <> 'running'
       AND coalesce(new_attempts, j.attempts) < coalesce(new_max_attempts, j.max_attempts)
     ORDER BY j.id FOR UPDATE SKIP LOCKED
  ), noted AS (
    INSERT INTO pulse.operation_job (operation_id, job_id, stamp, before)
    SELECT o.id, l.id, '', pulse_internal.without_documents(l.job) FROM locked AS l
    RETURNING job_id
  )
  SELECT array_agg(n.job_id) INTO ids FROM noted AS n;
  UPDATE pulse.operation_job AS n SET stamp = pulse_internal.live_stamp(j)
    FROM pulse.reschedule_jobs(ids, new_run_at, (o.arguments ->> 'priority')::int, new_attempts,
                               new_max_attempts) AS j
   WHERE n.operation_id = o.id AND n.job_id = j.id;
  RETURN coalesce(cardinality(ids), 0);
END $$;
COMMENT ON FUNCTION pulse_internal.step_reschedule(pulse.operation, bigint[]) IS
  'Reschedules these waiting jobs, as reschedule_jobs() does, and returns how many.';

-- A step has noted each job that it changed.
CREATE OR REPLACE FUNCTION pulse_internal.why_left_alone(o pulse.operation, job_ids bigint[])
  RETURNS text[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  next_id bigint;
  job pulse.job;
  ended pulse.finished_job;
  reasons text[];
BEGIN
  FOR next_id IN SELECT i FROM unnest(job_ids) AS i
                 EXCEPT SELECT n.job_id FROM pulse.operation_job AS n
                         WHERE n.operation_id = o.id AND n.job_id = ANY (job_ids) LOOP
    SELECT * INTO job FROM pulse.job AS j WHERE j.id = next_id;
    SELECT * INTO ended FROM pulse.finished_job AS f WHERE f.id = next_id FOR UPDATE SKIP LOCKED;
    reasons := reasons || CASE
      WHEN job.id IS NOT NULL AND pulse_internal.locked_by(next_id) IS NOT NULL
        OR job.id IS NULL AND ended.id IS NULL AND pulse_internal.is_on_record(next_id)
        THEN 'another transaction holds it'
      WHEN job.id IS NULL AND ended.id IS NULL THEN 'it is not on record'
      WHEN ended.id IS NOT NULL THEN CASE
        WHEN o.action <> 'retry' THEN 'it has ended'
        WHEN NOT pulse_internal.is_key_free(ended.job_key) THEN 'another job has its key'
        ELSE 'another transaction holds a job after it' END
      WHEN job.cancel_requested_at IS NOT NULL THEN 'its cancellation was asked before'
      WHEN job.state = 'running' THEN 'it runs'
      WHEN o.action = 'reschedule' THEN 'its attempts would reach max_attempts'
      ELSE 'it has moved since' END;
  END LOOP;
  RETURN reasons;
END $$;
COMMENT ON FUNCTION pulse_internal.why_left_alone(pulse.operation, bigint[]) IS
  'Returns for each of these jobs that the operation has not changed the reason.';
