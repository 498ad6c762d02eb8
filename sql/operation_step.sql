-- The steps of operations: what each action does to a job, and how it is taken back. A step waits
-- for no row and no key. Lock order: the operation, then rows in order of ids, then job keys.

CREATE OR REPLACE FUNCTION pulse_internal.epoch_us(moment timestamptz) RETURNS numeric
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pg_catalog.trunc(EXTRACT(epoch FROM moment) * 1000000);
COMMENT ON FUNCTION pulse_internal.epoch_us(timestamptz) IS
  'Returns a moment in microseconds since 1970; from 294247 on they need more than 64 bits.';

-- A claim, a retry, a reschedule and a snooze each change the mark; a release of a job that was
-- never started does not. A body that the server parsed would keep owners from adding columns.
CREATE OR REPLACE FUNCTION pulse_internal.live_mark(job pulse.job) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.concat_ws('/', job.revision, job.attempts,
           pulse_internal.epoch_us(job.run_at), job.token,
           pulse_internal.epoch_us(job.cancel_requested_at));
$$;
COMMENT ON FUNCTION pulse_internal.live_mark(pulse.job) IS
  'Returns a text that is another once a live job has run or was changed.';

CREATE OR REPLACE FUNCTION pulse_internal.ended_mark(job pulse.finished_job) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.concat_ws('/', job.revision, job.state,
           pulse_internal.epoch_us(job.finished_at));
$$;
COMMENT ON FUNCTION pulse_internal.ended_mark(pulse.finished_job) IS
  'Returns a text that is another once an ended job has ended again.';

-- The documents go before the row becomes JSON, because no function reads what they may hold, such
-- as \u0000.
CREATE OR REPLACE FUNCTION pulse_internal.without_documents(job pulse.job) RETURNS json
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  job.payload := NULL;
  job.checkpoint := NULL;
  job.parents := NULL;
  RETURN json_strip_nulls(row_to_json(job));
END $$;
COMMENT ON FUNCTION pulse_internal.without_documents(pulse.job) IS
  'Returns a row of a job without its documents, which stay with the job.';

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
  'Returns a row of a job without its documents, which stay with the job.';

CREATE OR REPLACE FUNCTION pulse_internal.note_change(
    operation_id bigint, job_id bigint, mark text, before json)
  RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  INSERT INTO pulse.operation_job (operation_id, job_id, mark, before)
  VALUES (operation_id, job_id, mark, before);
$$;
COMMENT ON FUNCTION pulse_internal.note_change(bigint, bigint, text, json) IS
  'Notes how an operation left a job, and how the job was before, without its documents.';

-- --- the actions --------------------------------------------------------------------------------

-- One after the other, because a job that goes live takes its key, and children with it.
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
    CONTINUE WHEN ended.id IS NULL OR NOT pulse_internal.is_key_free(ended.job_key)
               OR NOT pulse_internal.lock_cancelled(next_id);
    before := pulse_internal.without_documents(ended);
    ended.run_at := pulse.now();
    ended.attempts := 0;
    ended.crashes := 0;
    PERFORM pulse_internal.note_change(
      o.id, next_id, pulse_internal.live_mark(pulse_internal.revive(ended)), before);
    done := done + 1;
  END LOOP;
  RETURN done;
END $$;
COMMENT ON FUNCTION pulse_internal.step_retry(pulse.operation, bigint[]) IS
  'Retries these ended jobs, as retry_job() does, and returns how many.';

-- Jobs that wait for others lose what they wait for as they end, so it is noted.
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
    INSERT INTO pulse.operation_job (operation_id, job_id, mark, before)
    SELECT o.id, l.id, '', pulse_internal.without_documents(l.job)::jsonb
                           || jsonb_build_object('parents', ARRAY(
             SELECT unnest(d.parents) FROM pulse.dependency AS d WHERE d.child_id = l.id))
      FROM locked AS l
    RETURNING job_id
  )
  SELECT array_agg(n.job_id) INTO ids FROM noted AS n;
  PERFORM pulse_internal.finish_waiting(ids, how, error);
  UPDATE pulse.operation_job AS n SET mark = pulse_internal.ended_mark(f)
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
    PERFORM pulse_internal.note_change(o.id, job.id, pulse_internal.live_mark(job), before);
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
    INSERT INTO pulse.operation_job (operation_id, job_id, mark, before)
    SELECT o.id, l.id, '', pulse_internal.without_documents(l.job) FROM locked AS l
    RETURNING job_id
  )
  SELECT array_agg(n.job_id) INTO ids FROM noted AS n;
  UPDATE pulse.operation_job AS n SET mark = pulse_internal.live_mark(j)
    FROM pulse.reschedule_jobs(ids, new_run_at, (o.arguments ->> 'priority')::int, new_attempts,
                               new_max_attempts) AS j
   WHERE n.operation_id = o.id AND n.job_id = j.id;
  RETURN coalesce(cardinality(ids), 0);
END $$;
COMMENT ON FUNCTION pulse_internal.step_reschedule(pulse.operation, bigint[]) IS
  'Reschedules these waiting jobs, as reschedule_jobs() does, and returns how many.';

-- --- undo ---------------------------------------------------------------------------------------

-- The job ends as it had ended before. Jobs that wait for it are judged again.
CREATE OR REPLACE FUNCTION pulse_internal.undo_retry(change pulse.operation_job) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  job pulse.job;
  ended pulse.finished_job;
BEGIN
  SELECT * INTO job FROM pulse.job AS j WHERE j.id = change.job_id FOR UPDATE SKIP LOCKED;
  IF job.id IS NULL OR job.state = 'running'
     OR pulse_internal.live_mark(job) <> change.mark THEN
    RETURN false;
  END IF;
  DELETE FROM pulse.job AS j WHERE j.id = job.id;
  ended := jsonb_populate_record(NULL::pulse.finished_job, change.before::jsonb);
  ended.payload := job.payload;
  ended.checkpoint := job.checkpoint;
  ended.parents := job.parents;
  ended.revision := job.revision;
  ended.cancelled_by := NULL;
  INSERT INTO pulse.finished_job VALUES (ended.*);
  PERFORM pulse_internal.note_queue(job.queue_name);
  PERFORM pulse_internal.note_end(job.id);
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.undo_retry(pulse.operation_job) IS
  'Ends a retried job as it had ended before, unless it has moved since.';

-- The place that it kept in a strict queue (turn 1) ended with it: another may have begun since.
CREATE OR REPLACE FUNCTION pulse_internal.undo_end(change pulse.operation_job) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ended pulse.finished_job;
  parents bigint[] := ARRAY(
    SELECT p::bigint FROM json_array_elements_text(change.before -> 'parents') AS p);
BEGIN
  SELECT * INTO ended FROM pulse.finished_job AS f WHERE f.id = change.job_id
     FOR UPDATE SKIP LOCKED;
  IF ended.id IS NULL OR pulse_internal.ended_mark(ended) <> change.mark
     OR NOT pulse_internal.is_key_free(ended.job_key)
     OR NOT pulse_internal.lock_cancelled(ended.id)
     -- What it waited for has come to wait for it since.
     OR pulse_internal.circle_of(ended.id, parents) IS NOT NULL THEN
    RETURN false;
  END IF;
  ended.last_error := change.before ->> 'last_error';
  PERFORM pulse_internal.store_parents(ended.id, parents);
  PERFORM pulse_internal.restore_job(ended, (SELECT max(p) FROM unnest(parents) AS p));
  UPDATE pulse.job AS j
     SET start_by = (change.before ->> 'start_by')::timestamptz,
         queue_turn = nullif((change.before ->> 'queue_turn')::smallint, 1)
   WHERE j.id = ended.id;
  PERFORM pulse_internal.requeue_children(ended.id);
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.undo_end(pulse.operation_job) IS
  'Lets a job that an operation ended wait as before, unless it has moved since.';

CREATE OR REPLACE FUNCTION pulse_internal.undo_change(change pulse.operation_job) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  job pulse.job;
  old pulse.job := jsonb_populate_record(NULL::pulse.job, change.before::jsonb);
BEGIN
  SELECT * INTO job FROM pulse.job AS j WHERE j.id = change.job_id FOR UPDATE SKIP LOCKED;
  IF job.id IS NULL OR pulse_internal.live_mark(job) <> change.mark THEN
    RETURN false;
  ELSIF job.state = 'running' THEN
    UPDATE pulse.job AS j SET cancel_requested_at = NULL, cancel_reason = NULL
     WHERE j.id = job.id;
    PERFORM pulse_internal.note_worker(job.worker_id);
  ELSE
    PERFORM pulse.reschedule_jobs(
      ARRAY[job.id], old.run_at, old.priority, old.attempts, old.max_attempts);
    UPDATE pulse.job AS j SET crashes = old.crashes WHERE j.id = job.id;
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.undo_change(pulse.operation_job) IS
  'Gives a job that is still live its values before an operation, unless it has moved since.';

CREATE OR REPLACE FUNCTION pulse_internal.step_undo(o pulse.operation, job_ids bigint[])
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  undone_action text := (SELECT u.action FROM pulse.operation AS u WHERE u.id = o.undoes);
  change pulse.operation_job;
  done int := 0;
BEGIN
  FOR change IN
    SELECT * FROM pulse.operation_job AS n
     WHERE n.operation_id = o.undoes AND n.job_id = ANY (job_ids) ORDER BY n.job_id
  LOOP
    done := done + CASE
      WHEN undone_action = 'retry' THEN pulse_internal.undo_retry(change)
      WHEN undone_action = 'reschedule' OR change.before ->> 'state' = 'running'
        THEN pulse_internal.undo_change(change)
      ELSE pulse_internal.undo_end(change) END::int;
  END LOOP;
  RETURN done;
END $$;
COMMENT ON FUNCTION pulse_internal.step_undo(pulse.operation, bigint[]) IS
  'Takes back what an operation did to these jobs where they have not moved since, and returns to '
  'how many.';
