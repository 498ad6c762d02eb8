-- Producers: add_job, add_jobs, remove_job. A job without a key takes no lock that another session
-- waits for. Adds and removals under one key wait for each other until commit (key.sql). A key
-- is unique among waiting jobs: a running job gives up the key to the next add.

-- Two array payloads of one key are concatenated as text, so that no element changes.
CREATE OR REPLACE FUNCTION pulse_internal.merged_payload(older json, newer json) RETURNS json
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF coalesce(json_typeof(older) <> 'array' OR json_typeof(newer) <> 'array', true) THEN
    RETURN newer;
  END IF;
  RETURN (
    SELECT coalesce(json_agg(e.value ORDER BY e.half, e.ord), '[]'::json)
      FROM (SELECT 1 AS half, o.ord, o.value
              FROM json_array_elements(older) WITH ORDINALITY AS o (value, ord)
            UNION ALL
            SELECT 2, n.ord, n.value
              FROM json_array_elements(newer) WITH ORDINALITY AS n (value, ord)) AS e);
END $$;
COMMENT ON FUNCTION pulse_internal.merged_payload(json, json) IS
  'Returns the payload of a replaced job: the elements of both arrays, older first; the newer '
  'payload where one is no array.';

-- The functions below this check trust the values of a job.
CREATE OR REPLACE FUNCTION pulse_internal.checked_spec(spec pulse.job_spec) RETURNS pulse.job_spec
  LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_checked_spec';
COMMENT ON FUNCTION pulse_internal.checked_spec(pulse.job_spec) IS
  'Returns a job as the extension stores it, with defaults. Raises PU004 for a name or value out '
  'of range.';

CREATE OR REPLACE FUNCTION pulse_internal.insert_job(spec pulse.job_spec) RETURNS pulse.job
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_insert_job';
COMMENT ON FUNCTION pulse_internal.insert_job(pulse.job_spec) IS
  'Stores a checked job, and returns the row.';

CREATE OR REPLACE FUNCTION pulse_internal.insert_scheduled_job(
    spec pulse.job_spec, scheduled_for timestamptz, added_by text)
  RETURNS pulse.job
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_insert_scheduled_job';
COMMENT ON FUNCTION pulse_internal.insert_scheduled_job(pulse.job_spec, timestamptz, text) IS
  'Stores a checked job of a schedule, due at scheduled_for or without a due time, and returns '
  'the row.';

CREATE OR REPLACE FUNCTION pulse_internal.insert_job_as(
    spec pulse.job_spec, id bigint, added_by text)
  RETURNS pulse.job
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_insert_job_as';
COMMENT ON FUNCTION pulse_internal.insert_job_as(pulse.job_spec, bigint, text) IS
  'Stores a checked job of this producer under this id, and returns the row; NULL takes the next '
  'id.';

CREATE OR REPLACE FUNCTION pulse_internal.replace_job(
    waiting tid, older pulse.job, spec pulse.job_spec, mode text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  replaced pulse.job;
  merged json := pulse_internal.merged_payload(older.payload, spec.payload);
BEGIN
  PERFORM pulse_internal.check_document('payload', merged);
  UPDATE pulse.job AS j SET
    identifier   = spec.identifier,
    payload      = merged,
    queue_name   = spec.queue_name,
    run_at       = CASE WHEN mode = 'preserve_run_at' AND older.attempts = 0
                     THEN older.run_at ELSE spec.run_at END,
    state        = CASE WHEN spec.queue_name IS NULL THEN 'ready'
                     ELSE 'parked' END::pulse.job_state,
    max_attempts = spec.max_attempts,
    priority     = spec.priority,
    flags        = spec.flags,
    attempts     = 0,
    crashes      = 0,
    worker_id    = NULL,
    last_error   = NULL,
    recovered    = NULL,
    checkpoint   = NULL,
    scheduled_for = NULL,
    waits_on     = NULL,
    starts_when  = NULL,
    succession   = CASE WHEN spec.queue_name = older.queue_name THEN older.succession END,
    parents      = NULL,
    traceparent  = nullif(current_setting('pulse.traceparent', true), ''),
    start_by     = (SELECT CASE WHEN mode = 'preserve_run_at' AND older.attempts = 0
                             THEN older.run_at ELSE spec.run_at END + t.expires_after
                      FROM pulse.task AS t WHERE t.identifier = spec.identifier),
    revision     = pulse_internal.next_revision(j.revision),
    updated_at   = pulse_internal.transaction_now()
  WHERE j.ctid = replace_job.waiting
  RETURNING j.* INTO replaced;
  IF older.waits_on IS NOT NULL THEN
    DELETE FROM pulse.dependency AS d WHERE d.child_id = older.id;
  END IF;
  PERFORM pulse_internal.note_queue(older.queue_name);
  PERFORM pulse_internal.note_job(replaced.identifier, replaced.queue_name, replaced.run_at);
  PERFORM pulse_internal.note_sweep_due(replaced.start_by);
  RETURN replaced;
END $$;
COMMENT ON FUNCTION pulse_internal.replace_job(tid, pulse.job, pulse.job_spec, text) IS
  'Gives a locked waiting job at this ctid all values of a newer job with the same key, and all '
  'attempts again; returns the row. mode preserve_run_at keeps the run_at of a job that has not '
  'run.';

-- The row of a running job belongs to the worker, so no table counts the revision that dedupe_job
-- returns.
CREATE OR REPLACE FUNCTION pulse_internal.dedupe_job(job_key text, waiting tid, asking text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  existing pulse.job;
BEGIN
  UPDATE pulse.job AS j
     SET revision = pulse_internal.next_revision(j.revision),
         updated_at = pulse_internal.transaction_now()
   WHERE j.ctid IN (SELECT w.ctid FROM pulse.job AS w
                     WHERE w.ctid = dedupe_job.waiting AND w.job_key = dedupe_job.job_key
                       AND w.index_lane IN ('o', 'p', 'w')
                       FOR UPDATE SKIP LOCKED)
  RETURNING j.* INTO existing;
  IF existing.id IS NOT NULL THEN
    -- A session that resolves waits may have skipped this locked row, so the commit sets the
    -- parent mark again.
    PERFORM pulse_internal.note_parent(existing.waits_on);
    RETURN existing;
  END IF;
  -- Another transaction holds the row, or the job runs, or has ended. A job that exists is all that
  -- this mode asks for.
  existing := pulse_internal.live_job_of_key(dedupe_job.job_key);
  IF existing.id IS NOT NULL AND NOT pulse_internal.may_name(existing.added_by, asking) THEN
    PERFORM pulse_internal.refuse_key(dedupe_job.job_key);
  ELSIF existing.index_lane IN ('r', 'k') THEN
    existing.revision := pulse_internal.next_revision(existing.revision);
    existing.updated_at := pulse_internal.transaction_now();
  END IF;
  RETURN existing;
END $$;
COMMENT ON FUNCTION pulse_internal.dedupe_job(text, tid, text) IS
  'Counts up the revision of the live job with this locked key, and returns the row; NULL without '
  'a job. waiting: the result of lock_key. Raises 42501 for a job that the producer asking may '
  'not name.';

-- Whichever role of a producer has added a job, the producer sees the columns that a producer may
-- choose, and the outcome of the job, but neither payload nor token.
CREATE OR REPLACE FUNCTION pulse_internal.as_producers_see(job pulse.job, payload json)
  RETURNS pulse.job
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT has_table_privilege(pulse_internal.asking_role(), 'pulse.job', 'SELECT') THEN
    job.payload := payload;
    job.worker_id := NULL;
    job.running_worker_id := NULL;
    job.token := NULL;
    job.stage := NULL;
    job.message := NULL;
    job.checkpoint := NULL;
    job.parents := NULL;
    job.traceparent := CASE WHEN payload IS NOT NULL THEN job.traceparent END;
    job.last_error := NULL;
    job.recovered := NULL;
    job.cancel_reason := NULL;
  END IF;
  RETURN job;
END $$;
COMMENT ON FUNCTION pulse_internal.as_producers_see(pulse.job, json) IS
  'Returns a job of which the caller knows the key: whole to a role that may read pulse.job, else '
  'with this payload and without the values that the producer and the worker wrote.';

-- The holder of a key's lock waits for no other transaction. So a session gives back the lock
-- before it waits for a row that a claim holds.
CREATE OR REPLACE FUNCTION pulse_internal.wait_for_waiting(job_key text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.unlock_key(wait_for_waiting.job_key);
  PERFORM FROM pulse.job AS j
   WHERE j.job_key = wait_for_waiting.job_key AND j.index_lane IN ('o', 'p', 'w')
     FOR UPDATE;
END $$;
COMMENT ON FUNCTION pulse_internal.wait_for_waiting(text) IS
  'Gives back the lock of a key, and waits until no other transaction holds the row of the key''s '
  'waiting job.';

CREATE OR REPLACE FUNCTION pulse_internal.replace_waiting(
    waiting tid, spec pulse.job_spec, mode text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  existing pulse.job;
BEGIN
  SELECT * INTO existing FROM pulse.job AS j
   WHERE j.ctid = waiting AND j.job_key = spec.job_key AND j.index_lane IN ('o', 'p', 'w')
     FOR UPDATE SKIP LOCKED;
  IF existing.id IS NOT NULL THEN
    RETURN pulse_internal.replace_job(waiting, existing, spec, mode);
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.replace_waiting(tid, pulse.job_spec, text) IS
  'Replaces the waiting job of a locked key, and returns the row; NULL where another transaction '
  'has locked or changed the row since.';

CREATE OR REPLACE FUNCTION pulse_internal.add_keyed(
    spec pulse.job_spec, mode text, id bigint, added_by text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  is_deduped CONSTANT boolean := mode = 'unsafe_dedupe';
  waiting tid;
  added pulse.job;
BEGIN
  LOOP
    waiting := pulse_internal.lock_key(spec.job_key, add_keyed.added_by, is_deduped);
    IF is_deduped THEN
      added := pulse_internal.dedupe_job(spec.job_key, waiting, add_keyed.added_by);
    ELSIF waiting IS NOT NULL THEN
      added := pulse_internal.replace_waiting(waiting, spec, mode);
    END IF;
    EXIT WHEN is_deduped OR waiting IS NULL OR added.id IS NOT NULL;
    PERFORM pulse_internal.wait_for_waiting(spec.job_key);
  END LOOP;
  IF added.id IS NOT NULL THEN
    added := pulse_internal.as_producers_see(
      added, CASE WHEN NOT is_deduped THEN spec.payload END);
  ELSE
    PERFORM pulse_internal.supersede_running(spec.job_key, add_keyed.added_by);
    added := pulse_internal.insert_job_as(spec, add_keyed.id, add_keyed.added_by);
  END IF;
  PERFORM pulse_internal.unlock_key(spec.job_key);
  RETURN added;
END $$;
COMMENT ON FUNCTION pulse_internal.add_keyed(pulse.job_spec, text, bigint, text) IS
  'Adds a checked job of a producer under its key, and returns the row as the caller may see it. '
  'id: of a new job; NULL takes the next id. A replaced job keeps its producer. Raises 42501 where '
  'a job of another producer lives under the key.';

CREATE OR REPLACE FUNCTION pulse.add_job(
    identifier text,
    payload json = NULL,
    queue_name text = NULL,
    run_at timestamptz = NULL,
    max_attempts int = NULL,
    job_key text = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key_mode text = 'replace')
  RETURNS pulse.job
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_add_job';
COMMENT ON FUNCTION pulse.add_job(text, json, text, timestamptz, int, text, int, text[], text) IS
  'Adds a job in the caller''s transaction, and returns the row. NULL takes the default: for '
  'run_at the time of the transaction, for max_attempts the number of the task, for priority 0. '
  'With a job_key, a waiting job of the same key is replaced (replace), is replaced but keeps its '
  'run_at (preserve_run_at), or stays unchanged (dedupe, or unsafe_dedupe). A role that may not '
  'read pulse.job sees neither payload nor token nor worker of an older job. Raises PU004 for a '
  'name or value out of range, 42501 for a job_key under which a job of another producer lives, '
  'and 40001 for a job_key that another session took after a REPEATABLE READ or SERIALIZABLE '
  'transaction had begun: repeat the transaction.';

CREATE OR REPLACE FUNCTION pulse_internal.add_with_keys(
    specs pulse.job_spec[], job_key_preserve_run_at boolean)
  RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  mode text := CASE WHEN job_key_preserve_run_at THEN 'preserve_run_at' ELSE 'replace' END;
  added_by CONSTANT text := pulse_internal.asking_role();
  ids bigint[] := ARRAY(SELECT pulse_internal.next_id('pulse.job_id_seq')
                          FROM generate_series(1, cardinality(specs)));
  added pulse.job[] := array_fill(NULL::pulse.job, ARRAY[cardinality(specs)]);
  spec pulse.job_spec;
  job record;
BEGIN
  -- The loop runs in the order of the keys, so that two calls with the same keys never wait in a
  -- circle. Ids are in the order of the array, which is the order of jobs that are due together.
  -- The query reads the array once: the server would walk the array from the front for each
  -- element.
  FOR job IN
    SELECT s.n, ROW(s.identifier, s.payload, s.queue_name, s.run_at, s.max_attempts, s.job_key,
                    s.priority, s.flags)::pulse.job_spec AS spec
      FROM unnest(specs) WITH ORDINALITY
        AS s (identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, n)
     ORDER BY s.job_key COLLATE "C" NULLS FIRST, s.n
  LOOP
    spec := pulse_internal.checked_spec(job.spec);
    added[job.n] := CASE WHEN spec.job_key IS NULL
                      THEN pulse_internal.insert_job_as(spec, ids[job.n], added_by)
                      ELSE pulse_internal.add_keyed(spec, mode, ids[job.n], added_by) END;
  END LOOP;
  RETURN QUERY SELECT * FROM unnest(added);
END $$;
COMMENT ON FUNCTION pulse_internal.add_with_keys(pulse.job_spec[], boolean) IS
  'Adds the jobs of an add_jobs call of which some have keys, and returns the rows.';

CREATE OR REPLACE FUNCTION pulse.add_jobs(
    specs pulse.job_spec[], job_key_preserve_run_at boolean = false)
  RETURNS SETOF pulse.job
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE ROWS 1000
  AS 'MODULE_PATHNAME', 'pulse_add_jobs';
COMMENT ON FUNCTION pulse.add_jobs(pulse.job_spec[], boolean) IS
  'Adds many jobs in the caller''s transaction, and returns the rows in the same order. Of two '
  'jobs with one key the last wins; payloads that are arrays are concatenated. '
  'job_key_preserve_run_at => true keeps the run_at of a replaced job. Raises PU004 for a name or '
  'value out of range, 42501 and 40001 as add_job does.';

-- The end of a job for which others wait stays on record: without a record the job would count as
-- completed.
CREATE OR REPLACE FUNCTION pulse_internal.remove_waiting(waiting tid, job_key text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  removed pulse.job;
  waiting_id bigint;
BEGIN
  SELECT j.id INTO waiting_id FROM pulse.job AS j
   WHERE j.ctid = remove_waiting.waiting AND j.job_key = remove_waiting.job_key
     AND j.index_lane IN ('o', 'p', 'w');
  IF pulse_internal.is_waited_for(waiting_id) THEN
    PERFORM FROM pulse.job AS j WHERE j.id = waiting_id FOR UPDATE;
    SELECT * INTO removed
      FROM pulse_internal.finish_waiting(ARRAY[waiting_id], 'cancelled', 'removed');
    RETURN removed;
  END IF;
  DELETE FROM pulse.job AS j
   WHERE j.ctid = remove_waiting.waiting AND j.id = waiting_id
  RETURNING j.* INTO removed;
  IF removed.waits_on IS NOT NULL THEN
    DELETE FROM pulse.dependency AS d WHERE d.child_id = removed.id;
  END IF;
  PERFORM pulse_internal.note_queue(removed.queue_name);
  PERFORM pulse_internal.note_end(removed.id);
  RETURN removed;
END $$;
COMMENT ON FUNCTION pulse_internal.remove_waiting(tid, text) IS
  'Deletes the waiting job of this locked key, or cancels it if other jobs wait for it, and '
  'returns the row; NULL where another transaction has changed the row since.';

CREATE OR REPLACE FUNCTION pulse_internal.remove_running(job_key text, asking text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ids bigint[] := pulse_internal.supersede_running(remove_running.job_key, asking, false);
  removed pulse.job;
BEGIN
  SELECT * INTO removed FROM pulse.job AS j WHERE j.id = ids[1];
  IF removed.id IS NOT NULL THEN
    removed.job_key := NULL;
    removed.max_attempts := removed.attempts;
    removed.superseded := true;
  END IF;
  RETURN removed;
END $$;
COMMENT ON FUNCTION pulse_internal.remove_running(text, text) IS
  'Takes this locked key from running jobs of the producer asking, and returns the row of one as '
  'it ends: without the key and without further attempts. NULL without one.';

CREATE OR REPLACE FUNCTION pulse_internal.remove_job_as_owner(job_key text) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  asking CONSTANT text := pulse_internal.asking_role();
  waiting tid;
  removed pulse.job;
BEGIN
  LOOP
    waiting := pulse_internal.lock_key(remove_job_as_owner.job_key, asking, refuses => false);
    EXIT WHEN waiting IS NULL;
    removed := pulse_internal.remove_waiting(waiting, remove_job_as_owner.job_key);
    EXIT WHEN removed.id IS NOT NULL;
    PERFORM pulse_internal.wait_for_waiting(remove_job_as_owner.job_key);
  END LOOP;
  IF removed.id IS NULL THEN
    removed := pulse_internal.remove_running(remove_job_as_owner.job_key, asking);
  END IF;
  PERFORM pulse_internal.unlock_key(remove_job_as_owner.job_key);
  RETURN CASE WHEN removed.id IS NOT NULL THEN pulse_internal.as_producers_see(removed, NULL) END;
END $$;
COMMENT ON FUNCTION pulse_internal.remove_job_as_owner(text) IS 'The body of pulse.remove_job().';

CREATE OR REPLACE FUNCTION pulse.remove_job(job_key text) RETURNS pulse.job
  LANGUAGE c VOLATILE STRICT SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.remove_job(text) IS
  'Deletes the waiting job of this key, and returns the row; if other jobs wait for it, the job '
  'ends as cancelled instead. A running job loses the key and is not retried. Returns NULL for a '
  'key that no job of the caller''s producer has. A role that may not read pulse.job sees neither '
  'payload nor token nor worker of the job. Raises 40001 as add_job does.';
