-- Dead letters: a job that dies adds a job of the task that its own task names, in the transaction
-- of the end. A job dies that ends failed, quarantined or expired by an attempt, by a sweep or at
-- its start_by. An end by an operator is no death, and neither is the end of a job whose key a
-- newer job has taken: extension/finish/attempt_end.cpp decides for jobs that run, finish_waiting
-- for jobs that wait.

COMMENT ON COLUMN pulse.job.dead_letter_of IS
  'The job that died, of a job that is a dead letter; NULL for any other job';
COMMENT ON COLUMN pulse.finished_job.dead_letter_of IS 'As in pulse.job';
COMMENT ON COLUMN pulse.finished_job.dead_letter_id IS
  'The dead letter that the end of the job has added; NULL without one';

CREATE OR REPLACE FUNCTION pulse_internal.count_refused_letter() RETURNS void
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_count_refused_letter';
COMMENT ON FUNCTION pulse_internal.count_refused_letter() IS
  'Counts a dead letter that was refused, at once.';

CREATE OR REPLACE FUNCTION pulse_internal.dead_letters_refused() RETURNS bigint
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_dead_letters_refused';
COMMENT ON FUNCTION pulse_internal.dead_letters_refused() IS
  'Returns how many dead letters were refused since the server started; NULL without shared '
  'memory.';

CREATE OR REPLACE FUNCTION pulse_internal.dead_letter_task(identifier text) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN (SELECT t.dead_letter FROM pulse.task AS t
           WHERE t.identifier = dead_letter_task.identifier);
END $$;
COMMENT ON FUNCTION pulse_internal.dead_letter_task(text) IS
  'Returns the task of the dead letters of a task; NULL: jobs of the task add none.';

CREATE OR REPLACE FUNCTION pulse_internal.letter_about(dead pulse.finished_job) RETURNS json
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  longest_payload CONSTANT int := 1048576;
BEGIN
  RETURN (
    SELECT json_object_agg(m.name, m.value ORDER BY m.place)
      FROM (VALUES (1, 'id', to_json(dead.id)), (2, 'identifier', to_json(dead.identifier)),
                   (3, 'payload', dead.payload), (4, 'state', to_json(dead.state::text)),
                   (5, 'error', to_json(dead.last_error)), (6, 'attempts', to_json(dead.attempts)),
                   (7, 'crashes', to_json(dead.crashes)),
                   (8, 'queue_name', to_json(dead.queue_name)),
                   (9, 'added_by', to_json(dead.added_by)),
                   (10, 'created_at', to_json(dead.created_at))) AS m (place, name, value)
     WHERE m.name <> 'payload' OR octet_length(dead.payload::text) <= longest_payload);
END $$;
COMMENT ON FUNCTION pulse_internal.letter_about(pulse.finished_job) IS
  'Returns the payload of the dead letter of a job, without the payload of the job where that has '
  'more than 1 MiB.';

CREATE OR REPLACE FUNCTION pulse_internal.insert_dead_letter(
    spec pulse.job_spec, dead_letter_of bigint, added_by text)
  RETURNS pulse.job
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_insert_dead_letter';
COMMENT ON FUNCTION pulse_internal.insert_dead_letter(pulse.job_spec, bigint, text) IS
  'Adds a checked job as the dead letter of a job, and returns the row.';

CREATE OR REPLACE FUNCTION pulse_internal.send_dead_letter(dead pulse.finished_job, task text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  spec pulse.job_spec;
  letter pulse.job;
BEGIN
  spec.identifier := task;
  spec.payload := pulse_internal.letter_about(dead);
  letter := pulse_internal.insert_dead_letter(
    pulse_internal.checked_spec(spec), dead.id,
    (SELECT pg_get_userbyid(e.extowner) FROM pg_extension AS e WHERE e.extname = 'pg_pulse'));
  UPDATE pulse.finished_job AS f SET dead_letter_id = letter.id WHERE f.id = dead.id;
END $$;
COMMENT ON FUNCTION pulse_internal.send_dead_letter(pulse.finished_job, text) IS
  'Adds the dead letter of a job that is on record, as a job of this task and of the owner of '
  'pg_pulse, and notes the letter in the record. Raises the refusals of add_job.';

-- The line is indented, so it is not the line of the error that tells most.
CREATE OR REPLACE FUNCTION pulse_internal.note_refused_letter(
    dead pulse.finished_job, task text, refusal text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  why text := format('the dead letter for task %s was refused: %s', task, refusal);
BEGIN
  RAISE WARNING 'job % has no dead letter', dead.id USING
    DETAIL = why,
    HINT = 'The job has ended all the same. set_task() names another task, or none.';
  PERFORM pulse_internal.count_refused_letter();
  UPDATE pulse.finished_job AS f SET last_error = concat_ws(E'\n', f.last_error, '  ' || why)
   WHERE f.id = dead.id;
EXCEPTION WHEN OTHERS OR assert_failure THEN
  IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
    RAISE;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.note_refused_letter(pulse.finished_job, text, text) IS
  'Warns of a dead letter that was refused, counts it, and says so in the last_error of the job, '
  'unless a trigger refuses the change of the record.';

-- No refusal of the letter keeps the job from its end. Endless pairs cannot arise, because a dead
-- letter adds none.
CREATE OR REPLACE FUNCTION pulse_internal.add_dead_letter(job_id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  dead pulse.finished_job;
  task text;
BEGIN
  SELECT * INTO dead FROM pulse.finished_job AS f WHERE f.id = add_dead_letter.job_id;
  task := pulse_internal.dead_letter_task(dead.identifier);
  IF task IS NULL OR dead.dead_letter_of IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pulse_internal.send_dead_letter(dead, task);
EXCEPTION WHEN OTHERS OR assert_failure THEN
  IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
    RAISE;
  END IF;
  PERFORM pulse_internal.note_refused_letter(dead, task, SQLERRM);
END $$;
COMMENT ON FUNCTION pulse_internal.add_dead_letter(bigint) IS
  'Adds the dead letter of a job that has just died and is on record, if its task names a task for '
  'dead letters and the job is no dead letter.';
