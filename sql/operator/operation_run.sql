-- Calls of operators about operations: preview, start, one step after the other, stop, undo.

CREATE OR REPLACE FUNCTION pulse.preview_operation(
    action text, filter json, OUT jobs bigint, OUT is_exact boolean, OUT sample_ids bigint[])
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  -- Live jobs are wider.
  max_checked CONSTANT int := CASE WHEN pulse_internal.of_live_jobs(action) THEN 80000
                               ELSE 110000 END;
  found record;
BEGIN
  PERFORM pulse_internal.refuse_lost(r.ids)
     FROM pulse_internal.read_filter(action, filter, pulse.now()) AS r;
  SELECT * INTO found FROM pulse_internal.next_of_filter(
    action, filter, pulse.now(), 0, 9223372036854775807, max_checked, max_checked);
  jobs := cardinality(found.job_ids);
  is_exact := found.checked_to IS NULL;
  sample_ids := found.job_ids[1 : 20];
END $$;
COMMENT ON FUNCTION pulse.preview_operation(text, json) IS
  'Returns how many jobs an operation would be about, and the first 20 jobs; changes nothing. The '
  'function reads 110,000 ended jobs at most, or 80,000 live jobs; for error and error_line '
  '20,000, with 8 MB of errors: is_exact is false where there may be more, and jobs then counts '
  'only the jobs found. action and filter: as for start_operation(). Raises PU004 and PU005 as '
  'start_operation() does.';

-- Later steps run in other sessions, in which a time may read otherwise.
CREATE OR REPLACE FUNCTION pulse_internal.checked_arguments(action text, arguments json)
  RETURNS json
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_keys('arguments', arguments, CASE action
    WHEN 'cancel' THEN '{reason}'::text[] WHEN 'fail' THEN '{error}'
    WHEN 'reschedule' THEN '{run_at,priority,attempts,max_attempts}' ELSE '{}' END);
  IF action = 'reschedule' AND NOT EXISTS (
       SELECT FROM json_each_text(arguments) AS a WHERE a.value IS NOT NULL) THEN
    RAISE EXCEPTION 'reschedule would change nothing' USING
      ERRCODE = 'PU004', HINT = 'Give run_at, priority, attempts or max_attempts.';
  END IF;
  -- Without jobs the function only checks the values.
  PERFORM pulse.reschedule_jobs(
    '{}', (arguments ->> 'run_at')::timestamptz, (arguments ->> 'priority')::int,
    (arguments ->> 'attempts')::int, (arguments ->> 'max_attempts')::int)
    WHERE action = 'reschedule';
  IF arguments ->> 'run_at' IS NOT NULL THEN
    RETURN arguments::jsonb
           || jsonb_build_object('run_at', (arguments ->> 'run_at')::timestamptz);
  END IF;
  RETURN arguments;
EXCEPTION WHEN data_exception THEN
  RAISE EXCEPTION 'an argument of % cannot be read', action USING
    ERRCODE = 'PU004', DETAIL = SQLERRM,
    HINT = 'run_at is a time; priority, attempts and max_attempts are numbers.';
END $$;
COMMENT ON FUNCTION pulse_internal.checked_arguments(text, json) IS
  'Returns the arguments of an action with times in ISO 8601. Raises PU004 for arguments that the '
  'action cannot have.';

CREATE OR REPLACE FUNCTION pulse.start_operation(
    action text, filter json, arguments json = NULL, actor text = NULL)
  RETURNS pulse.operation
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
  started pulse.operation;
BEGIN
  PERFORM pulse_internal.refuse_lost(r.ids)
     FROM pulse_internal.read_filter(action, filter, moment) AS r;
  arguments := pulse_internal.checked_arguments(action, coalesce(arguments, '{}'));
  IF actor IS NOT NULL THEN
    PERFORM pulse_internal.check_name('actor', actor, 128);
  END IF;
  INSERT INTO pulse.operation
    (action, filter, arguments, actor, role, last_id, created_at, updated_at)
  VALUES
    (action, filter, arguments, actor, pulse_internal.caller(),
     (SELECT s.last_value FROM pulse.job_id_seq AS s), moment, moment)
  RETURNING * INTO started;
  RETURN started;
END $$;
COMMENT ON FUNCTION pulse.start_operation(text, json, json, text) IS
  'Notes that an operator is about to change many jobs, and returns the operation; run_operation() '
  'makes the changes. action: retry (failed and quarantined jobs), cancel, reschedule or fail '
  '(waiting jobs). filter: conditions, all of which a job must meet: states, task, queue, key, '
  'error (a part of the last error), error_line (of the last error, as list_failures() returns '
  'it), ids, older_than and newer_than (by the time of the add). {} means every job. arguments: '
  'reason of cancel, error of fail, run_at, priority, attempts and max_attempts of reschedule. '
  'Jobs added later are left alone. actor: for the record, the person or program behind the role, '
  'at most 128 characters. Raises PU004 for anything else, PU005 for an id lost in a failover.';

CREATE OR REPLACE FUNCTION pulse_internal.locked_operation(operation_id bigint)
  RETURNS pulse.operation
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  found_operation pulse.operation;
BEGIN
  LOCK TABLE pulse.operation IN ROW EXCLUSIVE MODE;
  SELECT * INTO found_operation FROM pulse.operation AS o
   WHERE o.id = locked_operation.operation_id FOR UPDATE;
  IF found_operation.id IS NULL THEN
    RAISE EXCEPTION 'operation % is unknown', coalesce(operation_id::text, 'NULL') USING
      ERRCODE = 'PU005',
      HINT = 'pulse.operations has those on record, as long as pulse.keep_attempts.';
  END IF;
  RETURN found_operation;
END $$;
COMMENT ON FUNCTION pulse_internal.locked_operation(bigint) IS
  'Locks an operation and returns it. Raises PU005 for an unknown operation.';

CREATE OR REPLACE FUNCTION pulse_internal.step(
    o pulse.operation, job_ids bigint[], OUT done int, OUT reasons text[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF o.action = 'undo' THEN
    SELECT s.done, s.reasons INTO step.done, step.reasons
      FROM pulse_internal.step_undo(o, job_ids) AS s;
  ELSE
    done := CASE o.action
      WHEN 'retry' THEN pulse_internal.step_retry(o, job_ids)
      WHEN 'cancel' THEN pulse_internal.step_cancel(o, job_ids)
      WHEN 'fail' THEN pulse_internal.step_end(o, job_ids, 'failed', coalesce(
        o.arguments ->> 'error', format('failed by operation %s', o.id)))
      WHEN 'reschedule' THEN pulse_internal.step_reschedule(o, job_ids) END;
    IF done < cardinality(job_ids) THEN
      reasons := pulse_internal.why_left_alone(o, job_ids);
    END IF;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.step(pulse.operation, bigint[]) IS
  'Applies the action of an operation to these jobs, and returns to how many, and why it leaves '
  'the others alone.';

-- A single job whose change raises an error would keep the operation in running for ever. An undo
-- has put the jobs in order; an action takes parents first.
CREATE OR REPLACE FUNCTION pulse_internal.step_apart(
    o pulse.operation, job_ids bigint[], OUT done int, OUT reasons text[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  refusal CONSTANT text := 'its change raises an error';
  next_id bigint;
  one record;
  errors text[];
BEGIN
  done := 0;
  FOR next_id IN SELECT i.id FROM unnest(job_ids) WITH ORDINALITY AS i (id, n)
                  ORDER BY CASE WHEN o.action <> 'undo' THEN i.id END, i.n LOOP
    BEGIN
      one := pulse_internal.step(o, ARRAY[next_id]);
      done := done + one.done;
      reasons := reasons || one.reasons;
    EXCEPTION WHEN OTHERS OR assert_failure THEN
      IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      reasons := reasons || refusal;
      errors := errors || format('job %s: %s', next_id, SQLERRM);
      UPDATE pulse.operation_job AS n SET undo = refusal
       WHERE n.operation_id = o.undoes AND n.job_id = next_id;
    END;
  END LOOP;
  PERFORM pulse_internal.warn_of_refused(
    errors, format('Operation %s counts them as skipped.', o.id));
END $$;
COMMENT ON FUNCTION pulse_internal.step_apart(pulse.operation, bigint[]) IS
  'Applies the action to each job in a savepoint of its own, and steps over the jobs for which '
  'the action raises an error.';

CREATE OR REPLACE FUNCTION pulse_internal.step_over_refused(
    o pulse.operation, job_ids bigint[], OUT done int, OUT reasons text[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT s.done, s.reasons INTO step_over_refused.done, step_over_refused.reasons
    FROM pulse_internal.step(o, job_ids) AS s;
EXCEPTION WHEN OTHERS OR assert_failure THEN
  IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
    RAISE;
  END IF;
  SELECT s.done, s.reasons INTO step_over_refused.done, step_over_refused.reasons
    FROM pulse_internal.step_apart(o, job_ids) AS s;
END $$;
COMMENT ON FUNCTION pulse_internal.step_over_refused(pulse.operation, bigint[]) IS
  'Does the same to all jobs at once or, where that raises an error, as step_apart().';

CREATE OR REPLACE FUNCTION pulse.run_operation(operation_id bigint, max_jobs int = 1000)
  RETURNS pulse.operation
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off SET client_min_messages = warning AS $$
DECLARE
  o pulse.operation;
  next record;
  step record;
BEGIN
  PERFORM pulse_internal.require_read_committed('run_operation');
  PERFORM pulse_internal.check_count('max_jobs', max_jobs, 1, 10000);
  o := pulse_internal.locked_operation(operation_id);
  IF o.state <> 'running' THEN
    RETURN o;
  END IF;
  LOCK TABLE pulse.job, pulse.finished_job, pulse.dependency, pulse.queue_pause,
    pulse.operation_job IN ROW EXCLUSIVE MODE;
  IF o.action = 'undo' THEN
    SELECT * INTO next FROM pulse_internal.next_of_undo(o, max_jobs);
  ELSE
    SELECT * INTO next FROM pulse_internal.next_of_filter(
      o.action, o.filter, o.created_at, o.checked_to, o.last_id, max_jobs, 20000);
  END IF;
  step := pulse_internal.step_over_refused(o, next.job_ids);
  UPDATE pulse.operation AS p
     SET changed = p.changed + step.done,
         skipped = p.skipped + CASE o.action
           WHEN 'undo' THEN coalesce(cardinality(step.reasons), 0)
           ELSE cardinality(next.job_ids) - step.done END,
         skipped_because = pulse_internal.counted_reasons(p.skipped_because, step.reasons),
         checked_to = coalesce(next.checked_to, p.last_id),
         state = CASE WHEN next.checked_to IS NULL THEN 'done' ELSE 'running' END,
         ended_at = CASE WHEN next.checked_to IS NULL THEN pulse.now() END, updated_at = pulse.now()
   WHERE p.id = o.id RETURNING * INTO o;
  RETURN o;
END $$;
COMMENT ON FUNCTION pulse.run_operation(bigint, int) IS
  'Makes the next step of an operation, with at most max_jobs jobs (1 to 10000) among the next '
  '20,000, and returns the operation: repeat the call, each time in a transaction of its own, '
  'while the state is running. A call that fails or whose client dies changes nothing, and the '
  'next call goes on from the step before. A step waits for no job and no key; jobs that the step '
  'leaves alone count as skipped, jobs whose change raises an error (of a trigger) included. '
  'Raises PU004 for max_jobs out of range, PU005 for an unknown operation, PU007 outside READ '
  'COMMITTED.';

CREATE OR REPLACE FUNCTION pulse.stop_operation(operation_id bigint) RETURNS pulse.operation
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  o pulse.operation := pulse_internal.locked_operation(operation_id);
BEGIN
  IF o.state = 'running' THEN
    UPDATE pulse.operation AS p
       SET state = 'stopped', ended_at = pulse.now(), updated_at = pulse.now()
     WHERE p.id = o.id RETURNING * INTO o;
  END IF;
  RETURN o;
END $$;
COMMENT ON FUNCTION pulse.stop_operation(bigint) IS
  'Ends an operation before the last step, and returns it; changes of earlier steps stay. An ended '
  'operation is returned unchanged. Raises PU005 for an unknown operation.';

CREATE OR REPLACE FUNCTION pulse.undo_operation(operation_id bigint, actor text = NULL)
  RETURNS pulse.operation
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  o pulse.operation := pulse.stop_operation(operation_id);
  undo pulse.operation;
BEGIN
  IF o.action = 'undo' THEN
    RAISE EXCEPTION 'operation % is an undo', o.id USING
      ERRCODE = 'PU004', HINT = format('Start operation %s anew with start_operation().', o.undoes);
  ELSIF o.action <> ALL ('{retry,cancel,reschedule,fail}') THEN
    RAISE EXCEPTION 'operation % is no change of jobs', o.id USING
      ERRCODE = 'PU004', HINT = 'Change back by hand what it has changed.';
  END IF;
  IF actor IS NOT NULL THEN
    PERFORM pulse_internal.check_name('actor', actor, 128);
  END IF;
  INSERT INTO pulse.operation
    (action, filter, arguments, actor, role, last_id, checked_to, undoes, created_at, updated_at)
  VALUES
    ('undo', '{}', '{}', actor, pulse_internal.caller(), o.last_id, 0, o.id, pulse.now(),
     pulse.now())
  ON CONFLICT (undoes) DO NOTHING;
  SELECT * INTO undo FROM pulse.operation AS u WHERE u.undoes = o.id;
  RETURN undo;
END $$;
COMMENT ON FUNCTION pulse.undo_operation(bigint, text) IS
  'Starts an operation that takes another operation back, and returns the new operation; '
  'run_operation() makes the changes. The call stops the other operation if it still runs. Jobs '
  'that have moved since, because they ran, ended or were changed, are left alone and count as '
  'skipped, as do jobs that cannot come back: skipped_because counts the reasons, and '
  'pulse.operation_job.undo has the reason of each job. A second call returns the same undo. '
  'Raises PU004 for an undo and for a change that note_operation() noted, PU005 for an unknown '
  'operation.';

CREATE OR REPLACE FUNCTION pulse.note_operation(
    action text, subject json, actor text = NULL) RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
  noted bigint;
BEGIN
  PERFORM pulse_internal.check_name('action', action, 64);
  IF action IN ('retry', 'cancel', 'reschedule', 'fail', 'undo') THEN
    RAISE EXCEPTION '"%" is an operation on jobs', action USING
      ERRCODE = 'PU004', HINT = 'start_operation() starts one, undo_operation() takes it back.';
  ELSIF json_typeof(subject) IS DISTINCT FROM 'object' OR octet_length(subject::text) > 4096 THEN
    RAISE EXCEPTION 'subject is no json object of at most 4096 bytes' USING
      ERRCODE = 'PU004', HINT = 'Name what was changed, as {"queue": "mail"}.';
  END IF;
  IF actor IS NOT NULL THEN
    PERFORM pulse_internal.check_name('actor', actor, 128);
  END IF;
  INSERT INTO pulse.operation
    (action, filter, arguments, actor, role, state, last_id, created_at, updated_at, ended_at)
  VALUES
    (action, subject, '{}', actor, pulse_internal.caller(), 'done', 0, moment, moment, moment)
  RETURNING id INTO noted;
  RETURN noted;
END $$;
COMMENT ON FUNCTION pulse.note_operation(text, json, text) IS
  'Puts on record, among the operations, that an operator has changed an object other than jobs, '
  'in the transaction of the change, and returns the id. action: a name of the change, as "pause '
  'queue", at most 64 characters. subject: an object that names the changed object, at most 4096 '
  'bytes. actor: as for start_operation(). Raises PU004 for anything else.';
