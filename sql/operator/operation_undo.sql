-- The steps of an undo: each job of an operation comes back as it was, with the other rows that the
-- action changed, or the step leaves it alone and notes why. docs/operations.md has the table of
-- the values that come back.

COMMENT ON COLUMN pulse.operation_job.undo IS
  'done, or why the undo left the job alone; NULL before the undo';
COMMENT ON COLUMN pulse.operation.skipped_because IS
  'How many jobs were left alone, by reason; NULL without any';

CREATE OR REPLACE FUNCTION pulse_internal.next_of_undo(
    o pulse.operation, max_rows int, OUT job_ids bigint[], OUT checked_to bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  job_ids := ARRAY(SELECT n.job_id FROM pulse.operation_job AS n
                    WHERE n.operation_id = o.undoes AND n.job_id > o.checked_to AND n.undo IS NULL
                    ORDER BY n.job_id LIMIT max_rows);
  checked_to := job_ids[max_rows];
END $$;
COMMENT ON FUNCTION pulse_internal.next_of_undo(pulse.operation, int) IS
  'Returns the next jobs whose change is to be taken back; checked_to: NULL with the last jobs.';

CREATE OR REPLACE FUNCTION pulse_internal.noted_ids(before json, member text) RETURNS bigint[]
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN ARRAY(SELECT e::bigint FROM json_array_elements_text(before -> member) AS e);
END $$;
COMMENT ON FUNCTION pulse_internal.noted_ids(json, text) IS
  'Returns the ids that noted_waits() noted under this name; {} for none.';

-- A keyed add or add_dependency may let a job wait for a younger one. A claim that came between two
-- steps would start or cancel a job whose parent has yet to come back.
CREATE OR REPLACE FUNCTION pulse_internal.with_parents(operation_id bigint, job_ids bigint[])
  RETURNS bigint[]
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  found bigint[] := job_ids;
  parents bigint[];
BEGIN
  -- Apart, because a join of both could read the note of a job once for each other job.
  WHILE cardinality(job_ids) > 0 LOOP
    parents := ARRAY(
      SELECT unnest(pulse_internal.noted_ids(n.before, 'waited_for'))
        FROM pulse.operation_job AS n
       WHERE n.operation_id = with_parents.operation_id AND n.job_id = ANY (with_parents.job_ids)
      EXCEPT SELECT unnest(found));
    job_ids := ARRAY(
      SELECT n.job_id FROM pulse.operation_job AS n
       WHERE n.operation_id = with_parents.operation_id AND n.job_id = ANY (parents)
         AND n.undo IS NULL);
    found := found || job_ids;
  END LOOP;
  RETURN found;
END $$;
COMMENT ON FUNCTION pulse_internal.with_parents(bigint, bigint[]) IS
  'Returns these jobs of an operation, and the jobs of the operation for which they waited and '
  'which no step of the undo has met.';

-- The undo judges a job by the states of the parents, so each parent comes back before the job. The
-- ids do not tell the order: a keyed add may let a job wait for a younger job.
CREATE OR REPLACE FUNCTION pulse_internal.parents_first(operation_id bigint, job_ids bigint[])
  RETURNS bigint[]
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  found bigint[] := ARRAY(
    SELECT f.id FROM unnest(pulse_internal.with_parents(operation_id, job_ids)) AS f (id)
     ORDER BY f.id);
  pairs record;
  place_of int[];
BEGIN
  WITH place AS MATERIALIZED (
    SELECT f.id, f.n::int AS n FROM unnest(found) WITH ORDINALITY AS f (id, n)
  )
  SELECT array_agg(c.n) AS child, array_agg(p.n) AS parent INTO pairs
    FROM place AS c
    JOIN pulse.operation_job AS o
      ON o.operation_id = parents_first.operation_id AND o.job_id = c.id
   CROSS JOIN unnest(pulse_internal.noted_ids(o.before, 'waited_for')) AS w (id)
    JOIN place AS p ON p.id = w.id;
  IF pairs.child IS NULL THEN
    RETURN found;
  END IF;
  place_of := pulse_internal.flow_order(found::text[], pairs.child, pairs.parent);
  RETURN ARRAY(SELECT found[p.n] FROM unnest(place_of) WITH ORDINALITY AS p (place, n)
                ORDER BY p.place);
EXCEPTION WHEN SQLSTATE 'PU004' THEN
  -- Each change of the operation was noted at a time of its own, so the notes may close a circle.
  RETURN found;
END $$;
COMMENT ON FUNCTION pulse_internal.parents_first(bigint, bigint[]) IS
  'Returns the jobs of with_parents() in an order in which each job comes after the parents for '
  'which it waited.';

CREATE OR REPLACE FUNCTION pulse_internal.is_on_record(job_id bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = is_on_record.job_id);
END $$;
COMMENT ON FUNCTION pulse_internal.is_on_record(bigint) IS
  'Returns whether the end of a job is on record.';

-- --- retry --------------------------------------------------------------------------------------

-- The function locks the record of the parent against a retry of the parent, as a resolution that
-- cancels the job does. A parent that was live before the operation has not moved: a retry of that
-- parent had left the job alone.
CREATE OR REPLACE FUNCTION pulse_internal.why_not_cancelled(
    ended pulse.finished_job, parents bigint[], were_live bigint[])
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  otherwise bigint[] := ARRAY(SELECT f.id FROM pulse.finished_job AS f
                               WHERE f.id = ANY (why_not_cancelled.parents)
                                 AND pulse_internal.ended_otherwise(f));
BEGIN
  RETURN CASE
    WHEN ended.starts_when = 'failed' AND otherwise = '{}'
         AND pulse_internal.live_ids(parents, true) <@ were_live THEN NULL
    WHEN ended.starts_when = 'failed' THEN 'what it waited for has moved since'
    WHEN ended.cancelled_by = ANY (otherwise) THEN
      CASE WHEN NOT pulse_internal.keep_record(ended.cancelled_by)
        THEN 'another transaction holds what it waited for' END
    WHEN ended.cancelled_by = ANY (were_live) AND pulse_internal.is_live(ended.cancelled_by)
      THEN NULL
    WHEN pulse_internal.is_live(ended.cancelled_by)
         OR pulse_internal.is_on_record(ended.cancelled_by)
      THEN 'what it waited for has moved since'
    ELSE 'what it waited for is not on record' END;
END $$;
COMMENT ON FUNCTION pulse_internal.why_not_cancelled(pulse.finished_job, bigint[], bigint[]) IS
  'Returns why a job that was cancelled because of a parent among these would not be cancelled '
  'now; NULL where it would be. were_live: the parents that were live before the operation.';

-- The jobs that wait for the retried job are judged again: jobs that the retry brought back end
-- because of it.
CREATE OR REPLACE FUNCTION pulse_internal.undo_retry(change pulse.operation_job) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  job pulse.job;
  ended pulse.finished_job := json_populate_record(NULL::pulse.finished_job, change.before);
  parents bigint[] := pulse_internal.noted_ids(change.before, 'waited_for');
  reason text;
BEGIN
  SELECT * INTO job FROM pulse.job AS j WHERE j.id = change.job_id FOR UPDATE SKIP LOCKED;
  reason := CASE
    WHEN job.id IS NULL AND pulse_internal.is_live(change.job_id)
      THEN 'another transaction holds it'
    WHEN job.id IS NULL OR job.state = 'running' OR job.waits_on IS NOT NULL
         OR pulse_internal.live_stamp(job) <> change.stamp THEN 'it has moved since'
    WHEN ended.cancelled_by IS NULL THEN NULL
    WHEN pulse_internal.circle_of(change.job_id, parents) IS NOT NULL
      THEN 'it would wait for itself'
    ELSE pulse_internal.why_not_cancelled(
      ended, parents, pulse_internal.noted_ids(change.before, 'live')) END;
  IF reason IS NOT NULL THEN
    RETURN reason;
  END IF;
  DELETE FROM pulse.job AS j WHERE j.id = job.id;
  ended.payload := job.payload;
  ended.checkpoint := job.checkpoint;
  ended.parents := job.parents;
  ended.revision := job.revision;
  INSERT INTO pulse.finished_job VALUES (ended.*);
  PERFORM pulse_internal.store_parents(job.id, parents);
  PERFORM pulse_internal.note_queue(job.queue_name);
  PERFORM pulse_internal.note_end(job.id);
  RETURN NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.undo_retry(pulse.operation_job) IS
  'Ends a retried job as it had ended before, and returns NULL; or why the undo leaves the job '
  'alone.';

-- --- cancel and fail ----------------------------------------------------------------------------

-- A job without a record counts as completed. A record of another end may have been deleted by age
-- since the operation, where the operation is longer ago than failed jobs are kept.
CREATE OR REPLACE FUNCTION pulse_internal.has_lost_record(
    change pulse.operation_job, parents bigint[])
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  failed bigint[] := pulse_internal.noted_ids(change.before, 'failed');
  kept_since timestamptz := pulse_internal.retention(pulse_internal.setting_us('keep_failed'));
  is_old boolean := (SELECT o.created_at < kept_since FROM pulse.operation AS o
                      WHERE o.id = change.operation_id);
BEGIN
  RETURN EXISTS (
    SELECT FROM unnest(pulse_internal.live_ids(parents, false)) AS p (id)
     WHERE (is_old OR p.id = ANY (failed)) AND NOT pulse_internal.is_on_record(p.id));
END $$;
COMMENT ON FUNCTION pulse_internal.has_lost_record(pulse.operation_job, bigint[]) IS
  'Returns whether a parent of a job would count as completed that may have ended otherwise.';

CREATE OR REPLACE FUNCTION pulse_internal.why_not_back(
    change pulse.operation_job, ended pulse.finished_job, parents bigint[])
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE
    WHEN ended.id IS NULL AND pulse_internal.is_on_record(change.job_id)
      THEN 'another transaction holds it'
    WHEN ended.id IS NULL AND NOT pulse_internal.is_live(change.job_id) THEN 'it is not on record'
    WHEN ended.id IS NULL OR pulse_internal.ended_stamp(ended) <> change.stamp
      THEN 'it has moved since'
    WHEN NOT pulse_internal.lock_cancelled(ended.id)
      THEN 'another transaction holds a job after it'
    WHEN pulse_internal.circle_of(ended.id, parents) IS NOT NULL THEN 'it would wait for itself'
    WHEN pulse_internal.has_lost_record(change, parents)
      THEN 'what it waited for is not on record'
    WHEN NOT pulse_internal.is_key_free(ended.job_key) THEN 'another job has its key' END;
END $$;
COMMENT ON FUNCTION
  pulse_internal.why_not_back(pulse.operation_job, pulse.finished_job, bigint[]) IS
  'Returns why a job that an operation ended cannot come back; NULL where it can, and is locked.';

-- The jobs cancelled because of the ended job come back, too. left_after: how many jobs do not come
-- back, because another job has the key.
CREATE OR REPLACE FUNCTION pulse_internal.undo_end(
    change pulse.operation_job, OUT reason text, OUT left_after int)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ended pulse.finished_job;
  parents bigint[] := pulse_internal.noted_ids(change.before, 'waited_for');
BEGIN
  SELECT * INTO ended FROM pulse.finished_job AS f WHERE f.id = change.job_id
     FOR UPDATE SKIP LOCKED;
  reason := pulse_internal.why_not_back(change, ended, parents);
  left_after := 0;
  IF reason IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pulse_internal.store_parents(ended.id, parents);
  PERFORM pulse_internal.restore_job(
    ended, coalesce(pulse_internal.live_parent(ended.id), parents[cardinality(parents)]),
    change.before);
  -- The end of the job has paused its strict queue.
  DELETE FROM pulse.queue_pause AS p
   WHERE p.queue_name = ended.queue_name AND p.job_id = ended.id
     AND p.created_at >= ended.finished_at;
  PERFORM pulse_internal.note_queue(ended.queue_name);
  left_after := pulse_internal.requeue_children(ended.id, ended.finished_at);
END $$;
COMMENT ON FUNCTION pulse_internal.undo_end(pulse.operation_job) IS
  'Lets a job that an operation ended wait as before; or returns why the undo leaves the job '
  'alone.';

-- --- all actions --------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION pulse_internal.undo_change(change pulse.operation_job) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  job pulse.job;
  old pulse.job := json_populate_record(NULL::pulse.job, change.before);
BEGIN
  SELECT * INTO job FROM pulse.job AS j WHERE j.id = change.job_id FOR UPDATE SKIP LOCKED;
  IF job.id IS NULL AND pulse_internal.is_live(change.job_id) THEN
    RETURN 'another transaction holds it';
  ELSIF job.id IS NULL OR pulse_internal.live_stamp(job) <> change.stamp THEN
    RETURN 'it has moved since';
  ELSIF job.state = 'running' THEN
    UPDATE pulse.job AS j SET cancel_requested_at = NULL, cancel_reason = NULL
     WHERE j.id = job.id;
    PERFORM pulse_internal.note_worker(job.worker_id);
  ELSE
    PERFORM pulse.reschedule_jobs(
      ARRAY[job.id], old.run_at, old.priority, old.attempts, old.max_attempts);
    UPDATE pulse.job AS j SET crashes = old.crashes WHERE j.id = job.id;
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.undo_change(pulse.operation_job) IS
  'Gives a job that is still live the values from before an operation, and returns NULL; or why '
  'the undo leaves the job alone.';

CREATE OR REPLACE FUNCTION pulse_internal.undo_action(
    action text, change pulse.operation_job, OUT reason text, OUT left_after int)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  left_after := 0;
  IF action = 'retry' THEN
    reason := pulse_internal.undo_retry(change);
  ELSIF action = 'reschedule' OR change.before ->> 'state' = 'running' THEN
    reason := pulse_internal.undo_change(change);
  ELSE
    SELECT u.reason, u.left_after INTO undo_action.reason, undo_action.left_after
      FROM pulse_internal.undo_end(change) AS u;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.undo_action(text, pulse.operation_job) IS
  'Takes back the change of a job by an action, or returns why not; left_after: as undo_end.';

CREATE OR REPLACE FUNCTION pulse_internal.step_undo(
    o pulse.operation, job_ids bigint[], OUT done int, OUT reasons text[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  undone_action text := (SELECT u.action FROM pulse.operation AS u WHERE u.id = o.undoes);
  change pulse.operation_job;
  undone record;
BEGIN
  done := 0;
  reasons := '{}';
  FOR change IN
    SELECT n.* FROM unnest(pulse_internal.parents_first(o.undoes, job_ids))
                      WITH ORDINALITY AS f (id, place)
      JOIN pulse.operation_job AS n ON n.operation_id = o.undoes AND n.job_id = f.id
     WHERE n.undo IS NULL ORDER BY f.place
  LOOP
    undone := pulse_internal.undo_action(undone_action, change);
    done := done + (undone.reason IS NULL)::int;
    reasons := reasons || undone.reason
               || array_fill('another job has its key'::text, ARRAY[undone.left_after]);
    UPDATE pulse.operation_job AS n SET undo = coalesce(undone.reason, 'done')
     WHERE n.operation_id = change.operation_id AND n.job_id = change.job_id;
  END LOOP;
  reasons := array_remove(reasons, NULL);
END $$;
COMMENT ON FUNCTION pulse_internal.step_undo(pulse.operation, bigint[]) IS
  'Takes back the changes of these jobs by an operation, and returns of how many, and why each '
  'other job is left alone.';

CREATE OR REPLACE FUNCTION pulse_internal.counted_reasons(counts json, reasons text[])
  RETURNS json
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT json_object_agg(c.reason, c.jobs)
    FROM (SELECT r.reason, sum(r.jobs) AS jobs
            FROM (SELECT k.key AS reason, k.value::bigint AS jobs
                    FROM json_each_text(coalesce(counts, '{}')) AS k
                  UNION ALL SELECT n, 1 FROM unnest(reasons) AS n) AS r
           GROUP BY r.reason ORDER BY r.reason) AS c;
$$;
COMMENT ON FUNCTION pulse_internal.counted_reasons(json, text[]) IS
  'Adds reasons to the counted reasons; NULL without any reason.';
