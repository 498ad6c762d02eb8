-- Jobs that an operator runs once more: a finished job goes live again, and an operator takes a
-- running job from its worker. The functions try the lock of a job key, and give it back once the
-- job is live.

CREATE OR REPLACE FUNCTION pulse_internal.is_key_free(job_key text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF job_key IS NULL THEN
    RETURN true;
  ELSIF NOT pulse_internal.try_lock_key(job_key) THEN
    RETURN false;
  ELSIF (pulse_internal.live_job_of_key(job_key)).id IS NOT NULL THEN
    PERFORM pulse_internal.unlock_key(job_key);
    RETURN false;
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.is_key_free(text) IS
  'Returns whether no live job has a key, and no transaction in progress adds or removes one. Then '
  'the session has the lock of the key, which restore_job gives back. Never waits.';

COMMENT ON COLUMN pulse.finished_job.start_by IS
  'The time by which the first claim had to come; NULL for a job that was claimed';
COMMENT ON COLUMN pulse.finished_job.keeps_result IS
  'True when another job of the same flow waited for the job; else NULL';
COMMENT ON COLUMN pulse.finished_job.before_end IS
  'Of a job cancelled because of a parent, values of the live row that no other column here has, '
  'as last_error; NULL without any';

-- The jobs that a parent takes along come back with it, as they were.
CREATE OR REPLACE FUNCTION pulse_internal.left_behind(job pulse.job) RETURNS json
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN nullif(json_strip_nulls(json_build_object(
    'last_error', job.last_error, 'recovered', job.recovered, 'succession', job.succession,
    'stage', job.stage, 'progress', job.progress, 'message', job.message,
    'last_activity_at', job.last_activity_at))::text, '{}')::json;
END $$;
COMMENT ON FUNCTION pulse_internal.left_behind(pulse.job) IS
  'Returns the values for which the record of a job cancelled because of a parent has no column; '
  'NULL for no value.';

-- A higher revision says that the attempts may have started again. The place that a job kept in a
-- strict queue (succession 1) ended with the job: another may have begun since.
CREATE OR REPLACE FUNCTION pulse_internal.restore_job(
    ended pulse.finished_job, waits_on bigint = NULL, before json = NULL)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  was pulse.job := json_populate_record(NULL::pulse.job, coalesce(before, '{}'));
  revived pulse.job;
BEGIN
  IF before IS NULL THEN
    was.last_error := ended.last_error;
    was.succession := CASE WHEN ended.state <> 'cancelled' THEN 2 END;
  END IF;
  DELETE FROM pulse.finished_job AS f WHERE f.id = ended.id;
  INSERT INTO pulse.job
    (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts, crashes,
     job_key, flags, last_activity_at, stage, progress, message, checkpoint, last_error, recovered,
     revision, created_at, updated_at, scheduled_for, waits_on, starts_when, start_by, succession,
     keeps_result, parents, traceparent, added_by, dead_letter_of)
  VALUES
    (ended.id, ended.identifier, ended.payload, ended.queue_name, ended.priority, ended.run_at,
     CASE WHEN ended.queue_name IS NULL AND waits_on IS NULL THEN 'ready'
       ELSE 'parked' END::pulse.job_state,
     ended.attempts, ended.max_attempts, ended.crashes, ended.job_key, ended.flags,
     was.last_activity_at, was.stage, was.progress, was.message, ended.checkpoint, was.last_error,
     was.recovered, pulse_internal.next_revision(ended.revision), ended.created_at, pulse.now(),
     ended.scheduled_for, restore_job.waits_on, ended.starts_when, ended.start_by,
     CASE WHEN ended.queue_name IS NOT NULL THEN nullif(was.succession, 1) END,
     ended.keeps_result, ended.parents, ended.traceparent, ended.added_by, ended.dead_letter_of)
  RETURNING * INTO revived;
  PERFORM pulse_internal.forget_superseded(ended.job_key, ended.id);
  PERFORM pulse_internal.unlock_key(ended.job_key);
  PERFORM pulse_internal.note_waiting(revived);
  PERFORM pulse_internal.note_sweep_due(revived.start_by);
  RETURN revived;
END $$;
COMMENT ON FUNCTION pulse_internal.restore_job(pulse.finished_job, bigint, json) IS
  'Moves a finished job, whose key is_key_free has locked, back to the live jobs, with these '
  'values; the job waits on this parent. before: the live row as it was, where the end is taken '
  'back; NULL where the job is to run again.';

-- Of two calls that revive one parent each, each sees the parent of the other as failed. So each
-- first locks the jobs cancelled because of its own parent: the later call waits, or leaves its
-- parent alone.
CREATE OR REPLACE FUNCTION pulse_internal.lock_cancelled(parent_id bigint, waits boolean = false)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  ids bigint[] := ARRAY(
    WITH RECURSIVE below (id) AS (
      SELECT parent_id
      UNION
      SELECT f.id FROM below AS b
        JOIN pulse.dependency AS d
          ON d.parents_key IN (b.id, -pulse_internal.neighbours_of(b.id)) AND b.id = ANY (d.parents)
        JOIN pulse.finished_job AS f ON f.id = d.child_id AND f.cancelled_by IS NOT NULL
    )
    SELECT w.id FROM below AS w WHERE w.id <> parent_id);
  locked int;
BEGIN
  IF waits THEN
    PERFORM FROM pulse.finished_job AS f WHERE f.id = ANY (ids) ORDER BY f.id FOR UPDATE;
    RETURN true;
  END IF;
  PERFORM FROM pulse.finished_job AS f WHERE f.id = ANY (ids) ORDER BY f.id FOR UPDATE SKIP LOCKED;
  GET DIAGNOSTICS locked = ROW_COUNT;
  RETURN locked = (SELECT count(*) FROM pulse.finished_job AS f WHERE f.id = ANY (ids));
END $$;
COMMENT ON FUNCTION pulse_internal.lock_cancelled(bigint, boolean) IS
  'Locks the kept jobs that were cancelled because of this parent, and the jobs after them. '
  'Without waits returns false where another transaction holds one of the jobs.';

-- A session that adds a job after an ended job holds the record of the latter.
CREATE OR REPLACE FUNCTION pulse_internal.lock_ended_job(job_id bigint) RETURNS pulse.finished_job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ended pulse.finished_job;
  limit_before text;
BEGIN
  SELECT * INTO ended FROM pulse.finished_job AS f WHERE f.id = lock_ended_job.job_id
     FOR UPDATE SKIP LOCKED;
  IF ended.id IS NOT NULL AND pulse_internal.lock_cancelled(ended.id)
     OR NOT EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = lock_ended_job.job_id) THEN
    RETURN ended;
  END IF;
  BEGIN
    limit_before := pulse_internal.limit_lock_wait();
    SELECT * INTO ended FROM pulse.finished_job AS f WHERE f.id = lock_ended_job.job_id FOR UPDATE;
    PERFORM pulse_internal.lock_cancelled(ended.id, true);
    PERFORM set_config('lock_timeout', limit_before, true);
  EXCEPTION WHEN lock_not_available THEN
    PERFORM pulse_internal.raise_busy(job_id,
      'Another transaction retries or deletes it, or adds a job after it or one ended with it.');
  END;
  RETURN ended;
END $$;
COMMENT ON FUNCTION pulse_internal.lock_ended_job(bigint) IS
  'Locks for an operator the record of an ended job, and the records of jobs cancelled because of '
  'it; returns the record, or NULL without one. Raises 55P03 where another transaction holds a '
  'record for more than a second.';

-- Jobs cancelled because of a parent wait again once none of their parents has failed. Where an
-- undo takes back the end of a parent, the jobs that ended since that end wait again as they had
-- waited, with the parent. A row that stays says because of which parent: a transaction whose
-- snapshot is older fails at the change.
CREATE OR REPLACE FUNCTION pulse_internal.requeue_children(
    parent_id bigint, since timestamptz = '-infinity')
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  live bigint[] := ARRAY[parent_id];
  ids bigint[];
  child pulse.finished_job;
  failed bigint;
  taken bigint[] := '{}';
BEGIN
  WHILE cardinality(live) > 0 LOOP
    ids := ARRAY(SELECT d.child_id FROM unnest(live) AS p (id) JOIN pulse.dependency AS d
                     ON d.parents_key IN (p.id, -pulse_internal.neighbours_of(p.id))
                    AND p.id = ANY (d.parents));
    live := '{}';
    FOR child IN
      SELECT f.* FROM pulse.finished_job AS f
       WHERE f.id = ANY (ids) AND f.cancelled_by IS NOT NULL AND f.finished_at >= since
       ORDER BY f.id FOR UPDATE SKIP LOCKED
    LOOP
      CONTINUE WHEN child.starts_when <> 'completed';
      failed := CASE WHEN since = '-infinity' THEN pulse_internal.failed_parent(child.id) END;
      IF failed IS NOT NULL THEN
        UPDATE pulse.finished_job AS f
           SET cancelled_by = failed,
               last_error = pulse_internal.cancelled_because('cancelled', failed)
         WHERE f.id = child.id;
      ELSIF pulse_internal.is_key_free(child.job_key) THEN
        PERFORM pulse_internal.restore_job(
          child, pulse_internal.live_parent(child.id), coalesce(child.before_end, '{}'));
        live := live || child.id;
      ELSE
        taken := taken || child.id;
      END IF;
    END LOOP;
  END LOOP;
  PERFORM pulse_internal.report_skipped(taken, 'cancelled, and another job has the key',
    'A later job replaced them; add a job without the key if both are to run.');
  RETURN cardinality(taken);
END $$;
COMMENT ON FUNCTION pulse_internal.requeue_children(bigint, timestamptz) IS
  'Lets the locked jobs wait again that were cancelled because this parent, which is live again, '
  'had failed, and the jobs after them, as they were. since: only jobs that have ended since '
  'then, whatever the state of their other parents. A notice lists the jobs whose key another job '
  'has; returns how many.';

CREATE OR REPLACE FUNCTION pulse_internal.revive(ended pulse.finished_job) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  revived pulse.job;
BEGIN
  -- A deadline that has passed, and the end of a parent, are no reason to end once more.
  IF ended.start_by < pulse.now() THEN
    ended.start_by := NULL;
  END IF;
  IF ended.cancelled_by IS NOT NULL THEN
    ended.last_error := ended.before_end ->> 'last_error';
  END IF;
  revived := pulse_internal.restore_job(ended);
  IF ended.cancelled_by IS NOT NULL THEN
    DELETE FROM pulse.dependency AS d WHERE d.child_id = ended.id;
  END IF;
  PERFORM pulse_internal.requeue_children(ended.id);
  RETURN revived;
END $$;
COMMENT ON FUNCTION pulse_internal.revive(pulse.finished_job) IS
  'Makes a locked finished job, whose key is locked and free, live again with these values, '
  'without a start_by in the past. The caller has locked the jobs cancelled because of the job, '
  'too.';

CREATE OR REPLACE FUNCTION pulse_internal.raise_completed(job_id bigint) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'job % is completed', job_id USING
    ERRCODE = 'PU010', DETAIL = 'A job completes once.',
    HINT = 'Add a new job to do the work again.';
END $$;
COMMENT ON FUNCTION pulse_internal.raise_completed(bigint) IS
  'Raises PU010 for a job that an operator wants to run again.';

CREATE OR REPLACE FUNCTION pulse_internal.check_retry(ended pulse.finished_job) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  holder bigint;
BEGIN
  IF ended.state = 'completed' THEN
    PERFORM pulse_internal.raise_completed(ended.id);
  ELSIF NOT pulse_internal.is_key_free(ended.job_key) THEN
    holder := (pulse_internal.live_job_of_key(ended.job_key)).id;
    RAISE EXCEPTION 'the key of job % is taken', ended.id USING
      ERRCODE = 'PU010',
      DETAIL = format(CASE WHEN holder IS NULL
                        THEN '%2$s a job under the key %1$s, and has not committed.'
                        ELSE 'Job %3$s has the key %1$s now.' END,
                      quote_literal(ended.job_key),
                      pulse_internal.holder_named(pulse_internal.changer_of_key(ended.job_key),
                                                  'adds or removes'), holder),
      HINT = CASE WHEN holder IS NULL THEN 'Try again when that transaction has ended.'
               ELSE 'Wait for that job or remove it, or add a job without the key.' END;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_retry(pulse.finished_job) IS
  'Raises PU010 for a job that must not run again; else the session has the lock of the job''s '
  'key.';

CREATE OR REPLACE FUNCTION pulse.retry_job(job_id bigint) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ended pulse.finished_job;
  live pulse.job;
BEGIN
  LOCK TABLE pulse.job, pulse.finished_job, pulse.dependency IN ROW EXCLUSIVE MODE;
  -- The call may wait, and no session waits that has the lock of a key.
  ended := pulse_internal.lock_ended_job(retry_job.job_id);
  IF ended.id IS NULL THEN
    SELECT * INTO live FROM pulse.job AS j WHERE j.id = retry_job.job_id;
    IF live.id IS NULL AND pulse_internal.has_completed(retry_job.job_id) THEN
      PERFORM pulse_internal.raise_completed(retry_job.job_id);
    ELSIF live.id IS NULL THEN
      PERFORM pulse_internal.raise_unknown_job(retry_job.job_id);
    END IF;
    RAISE NOTICE 'job % has not ended, it is %', live.id, live.state USING
      HINT = 'reschedule_jobs changes when it runs; requeue_job takes it back while it runs.';
    RETURN live;
  END IF;
  PERFORM pulse_internal.check_retry(ended);
  ended.run_at := pulse.now();
  ended.attempts := 0;
  ended.crashes := 0;
  RETURN pulse_internal.revive(ended);
END $$;
COMMENT ON FUNCTION pulse.retry_job(bigint) IS
  'Makes a job that ended without completing live again, due at once, with its id, its checkpoint '
  'and all attempts, and returns the job; a start_by in the past is taken away. A job that is '
  'still live is returned unchanged, with a notice. Raises PU005 for an unknown job, PU010 for a '
  'completed job, while another live job has the key, and while a transaction in progress adds or '
  'removes a job under the key, 55P03 where another transaction, as one that adds a job after this '
  'job, holds the record for more than a second.';

CREATE OR REPLACE FUNCTION pulse.requeue_job(job_id bigint, reason text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  found_job pulse.job;
BEGIN
  LOCK TABLE pulse.job, pulse.queue, pulse.queue_pause IN ROW EXCLUSIVE MODE;
  found_job := pulse_internal.lock_live_job(requeue_job.job_id);
  IF found_job.id IS NULL THEN
    IF NOT pulse_internal.has_completed(requeue_job.job_id) THEN
      PERFORM pulse.get_job(requeue_job.job_id);  -- raises when there is none
    END IF;
    RETURN false;
  ELSIF found_job.state <> 'running' THEN
    RETURN false;
  END IF;
  -- No worker died, so no crash is counted and the job needs no backoff.
  PERFORM pulse_internal.end_attempts(ARRAY[
    ROW(found_job.id, 'interrupted', concat_ws(': ', 'requeued by hand', reason), true, NULL, NULL,
        'hand')::pulse_internal.ending]);
  PERFORM pulse_internal.note_worker(found_job.worker_id);
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse.requeue_job(bigint, text) IS
  'Takes a running job from its worker, whose token is void from then on. The call consumes the '
  'attempt and counts no crash; the job is ready again at once, or failed after the last attempt. '
  'Returns false for a job that does not run. Raises PU005 for an unknown job, 55P03 where '
  'another transaction holds the job for more than a second.';
