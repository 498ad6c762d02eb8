-- Operations: changes of many jobs at once by an operator. An operation is a row that names the
-- action and the jobs by a filter. Each step is a call, and so a transaction: it reads the next
-- jobs in order of the ids, and stores how far it came. So a program that dies loses nothing, and
-- any other program goes on. operation_step.sql has the actions.

COMMENT ON TABLE pulse.operation IS
  'Changes of many jobs at once by operators: which action, by whom, and how far the operation '
  'came.';
COMMENT ON COLUMN pulse.operation.id IS 'Id of the operation';
COMMENT ON COLUMN pulse.operation.action IS
  'retry, cancel, reschedule, fail or undo; or the action that note_operation() was told';
COMMENT ON COLUMN pulse.operation.filter IS 'Which jobs, as the caller of start_operation() told';
COMMENT ON COLUMN pulse.operation.arguments IS 'Arguments of the action';
COMMENT ON COLUMN pulse.operation.actor IS
  'Name that the caller gave for the person or token behind the call; NULL without a name';
COMMENT ON COLUMN pulse.operation.role IS 'Role that started the operation';
COMMENT ON COLUMN pulse.operation.state IS
  'running (steps are left), done, or stopped before the last step';
COMMENT ON COLUMN pulse.operation.last_id IS
  'Jobs with a higher id were added later, and are left alone';
COMMENT ON COLUMN pulse.operation.checked_to IS 'The last id that the last step checked';
COMMENT ON COLUMN pulse.operation.changed IS 'How many jobs the operation has changed';
COMMENT ON COLUMN pulse.operation.skipped IS
  'How many jobs of the filter the operation left alone: another transaction held the job, '
  'another job had the key, the job had no attempt left, or the job had moved since';
COMMENT ON COLUMN pulse.operation.undoes IS 'The operation that this operation takes back';
COMMENT ON COLUMN pulse.operation.created_at IS 'When the operation was started';
COMMENT ON COLUMN pulse.operation.updated_at IS 'When the last step of the operation ran';
COMMENT ON COLUMN pulse.operation.ended_at IS 'When the operation was done or stopped; NULL before';
COMMENT ON TABLE pulse.operation_job IS 'The jobs that an operation changed, for undo_operation().';
COMMENT ON COLUMN pulse.operation_job.operation_id IS 'The operation';
COMMENT ON COLUMN pulse.operation_job.job_id IS 'The job';
COMMENT ON COLUMN pulse.operation_job.stamp IS
  'How the operation left the job: another stamp means that the job has moved since';
COMMENT ON COLUMN pulse.operation_job.before IS
  'The row of the job before, without payload, checkpoint and result';

CREATE OR REPLACE VIEW pulse.operations AS
  SELECT o.id, o.action, o.actor, o.role, o.state, o.changed, o.skipped, o.undoes,
         u.id AS undone_by, o.created_at, o.updated_at, o.ended_at,
         CASE WHEN o.action <> ALL ('{retry,cancel,reschedule,fail,undo}') THEN o.filter
              WHEN o.undoes IS NOT NULL THEN NULL
              WHEN o.filter::text = '{}' THEN '{"jobs": "all"}'
              ELSE pg_catalog.json_strip_nulls(pg_catalog.json_build_object(
                'jobs', CASE pg_catalog.json_typeof(o.filter -> 'ids') WHEN 'array'
                  THEN pg_catalog.json_array_length(o.filter -> 'ids') || ' chosen' END,
                'states', pg_catalog.translate(o.filter ->> 'states', '[]"', ''),
                'task', o.filter ->> 'task', 'queue', o.filter ->> 'queue',
                'key', CASE WHEN o.filter ->> 'key' IS NOT NULL THEN 'a key' END,
                'error', CASE WHEN coalesce(o.filter ->> 'error', o.filter ->> 'error_line')
                  IS NOT NULL THEN 'an error' END,
                'added', CASE WHEN coalesce(o.filter ->> 'older_than', o.filter ->> 'newer_than')
                  IS NOT NULL THEN 'a time of the add' END)) END
           AS subject
    FROM pulse.operation AS o LEFT JOIN pulse.operation AS u ON u.undoes = o.id;
COMMENT ON VIEW pulse.operations IS
  'Changes of many jobs at once by operators. Operators read the whole filter and the arguments '
  'in pulse.operation.';
COMMENT ON COLUMN pulse.operations.id IS 'Id of the operation';
COMMENT ON COLUMN pulse.operations.action IS
  'retry, cancel, reschedule, fail or undo; or the action that note_operation() was told';
COMMENT ON COLUMN pulse.operations.actor IS
  'Name that the caller gave for the person or token behind the call; NULL without a name';
COMMENT ON COLUMN pulse.operations.role IS 'Role that started the operation';
COMMENT ON COLUMN pulse.operations.state IS 'running (steps are left), done, or stopped';
COMMENT ON COLUMN pulse.operations.changed IS 'How many jobs the operation has changed';
COMMENT ON COLUMN pulse.operations.skipped IS
  'How many jobs of the filter the operation left alone';
COMMENT ON COLUMN pulse.operations.undoes IS 'The operation that this operation takes back';
COMMENT ON COLUMN pulse.operations.undone_by IS 'The operation that takes this operation back';
COMMENT ON COLUMN pulse.operations.created_at IS 'When the operation was started';
COMMENT ON COLUMN pulse.operations.updated_at IS 'When the last step of the operation ran';
COMMENT ON COLUMN pulse.operations.ended_at IS
  'When the operation was done or stopped; NULL before';
COMMENT ON COLUMN pulse.operations.subject IS
  'The changed object, as note_operation() was told; of an operation on jobs the states, the task '
  'and the queue of its filter, or how many ids; of a key, an error or a time only that the filter '
  'has one; NULL of an undo';

CREATE OR REPLACE FUNCTION pulse_internal.check_keys(what text, document json, known text[])
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  unknown text;
BEGIN
  IF json_typeof(document) IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION '% is no json object', what USING
      ERRCODE = 'PU004', HINT = format('Give an object with keys of: %s.',
                                       array_to_string(known, ', '));
  END IF;
  SELECT k.name INTO unknown FROM json_object_keys(document) AS k (name)
   WHERE k.name <> ALL (known) LIMIT 1;
  IF unknown IS NOT NULL THEN
    RAISE EXCEPTION '% has an unknown key "%"', what, left(unknown, 100) USING
      ERRCODE = 'PU004', HINT = format('Keys are: %s.', array_to_string(known, ', '));
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_keys(text, json, text[]) IS
  'Raises PU004 unless a document is an object with known keys only.';

CREATE OR REPLACE FUNCTION pulse_internal.json_texts(document json) RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT CASE json_typeof(document)
           WHEN 'array' THEN ARRAY(SELECT json_array_elements_text(document))
           WHEN 'null' THEN NULL ELSE ARRAY[document #>> '{}'] END;
$$;
COMMENT ON FUNCTION pulse_internal.json_texts(json) IS
  'Returns the elements of an array as texts; of any other value that value.';

CREATE OR REPLACE FUNCTION pulse.operation_actions()
  RETURNS TABLE (action text, states text[], usual_states text[])
  LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 4
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT a.action, a.usual_states || a.other_states, a.usual_states
    FROM (VALUES ('retry', '{failed,quarantined}'::text[], '{cancelled,expired}'::text[]),
                 ('cancel', '{ready,parked}', '{running}'),
                 ('reschedule', '{ready,parked}', '{}'),
                 ('fail', '{ready,parked}', '{}')) AS a (action, usual_states, other_states);
$$;
COMMENT ON FUNCTION pulse.operation_actions() IS
  'Returns the actions of start_operation(), the states of the jobs that each action may change, '
  'and the states that the action changes where a filter names neither states nor ids.';

-- A filter names waiting jobs, or ended jobs, by the states that the action may change.
CREATE OR REPLACE FUNCTION pulse_internal.action_states(
    action text, OUT allowed text[], OUT usual text[])
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT a.states, a.usual_states INTO allowed, usual FROM pulse.operation_actions() AS a
   WHERE a.action = action_states.action;
  IF usual IS NULL THEN
    RAISE EXCEPTION 'there is no action %', quote_nullable(left(action, 100)) USING
      ERRCODE = 'PU004', HINT = 'Actions are retry, cancel, reschedule and fail.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.action_states(text) IS
  'Returns the states of jobs that an action may change, and the states that the action changes '
  'where a filter names neither states nor ids. Raises PU004 for an unknown action.';

CREATE OR REPLACE FUNCTION pulse_internal.read_filter(
    action text, filter json, moment timestamptz, OUT ids bigint[], OUT states text[],
    OUT task text, OUT queue text, OUT key text, OUT error text, OUT error_line text,
    OUT before timestamptz, OUT after timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  possible record;
  what text;
  kind text;
BEGIN
  SELECT * INTO possible FROM pulse_internal.action_states(action);
  PERFORM pulse_internal.check_keys('filter', filter,
    '{ids,states,task,queue,key,error,error_line,older_than,newer_than}');
  -- A condition of null is no condition, and the action would change every job.
  FOR what, kind IN SELECT c.key, json_typeof(c.value) FROM json_each(filter) AS c LOOP
    IF kind = 'null' OR kind <> 'string' AND what NOT IN ('ids', 'states') THEN
      RAISE data_exception USING MESSAGE = format('It is a json %s.', kind);
    END IF;
  END LOOP;
  states := coalesce(pulse_internal.json_texts(filter -> 'states'),
                     CASE WHEN filter -> 'ids' IS NULL THEN possible.usual
                       ELSE possible.allowed END);
  PERFORM pulse_internal.check_states(states);
  IF states = '{}' THEN
    RAISE EXCEPTION 'filter has no state among its states' USING
      ERRCODE = 'PU004', HINT = 'Leave out states for those that the action usually changes.';
  ELSIF NOT states <@ possible.allowed THEN
    RAISE EXCEPTION 'the action % changes no % jobs', action,
      (SELECT string_agg(s, ' or ') FROM unnest(states) AS s WHERE s <> ALL (possible.allowed))
      USING ERRCODE = 'PU004', HINT = format('It changes jobs that are %s.',
                                             array_to_string(possible.allowed, ', '));
  END IF;
  what := 'task';
  task := filter ->> what;
  what := 'queue';
  queue := filter ->> what;
  what := 'key';
  key := filter ->> what;
  what := 'error';
  error := filter ->> what;
  what := 'error_line';
  error_line := filter ->> what;
  what := 'ids';
  ids := pulse_internal.json_texts(filter -> 'ids')::bigint[];
  what := 'older_than';
  before := moment - pulse_internal.checked_age(what, (filter ->> 'older_than')::interval);
  what := 'newer_than';
  after := moment - pulse_internal.checked_age(what, (filter ->> 'newer_than')::interval);
EXCEPTION WHEN data_exception THEN
  RAISE EXCEPTION '%', coalesce('filter has a "' || what || '" that cannot be read',
                                'filter cannot be read') USING
    ERRCODE = 'PU004', DETAIL = SQLERRM,
    HINT = 'ids is an array of numbers, states an array of texts; older_than and newer_than are '
           'durations, others texts.';
END $$;
COMMENT ON FUNCTION pulse_internal.read_filter(text, json, timestamptz) IS
  'Returns the conditions of a filter, with durations counted back from a moment. Raises PU004 '
  'for a condition that the filter cannot have.';

CREATE OR REPLACE FUNCTION pulse_internal.of_live_jobs(action text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN action <> 'retry';
COMMENT ON FUNCTION pulse_internal.of_live_jobs(text) IS
  'Returns whether an action changes live jobs; otherwise the action changes ended jobs.';

-- The search compares an error whole and in several forms, so a bound in bytes limits a search by
-- the text of errors.
CREATE OR REPLACE FUNCTION pulse_internal.texts_to_read(sizes int[]) RETURNS int
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT CASE WHEN bool_or(t.bytes > 8000000)
              THEN greatest(count(*) FILTER (WHERE t.bytes <= 8000000), 1) END::int
    FROM (SELECT sum(s.size) OVER (ORDER BY s.place) AS bytes
            FROM unnest(sizes) WITH ORDINALITY AS s (size, place)) AS t;
$$;
COMMENT ON FUNCTION pulse_internal.texts_to_read(int[]) IS
  'Returns how many of the first texts of these sizes have 8 MB together, at least 1; NULL where '
  'all texts together have no more.';

-- In order of ids, so a job that the action has moved, and that comes back, is met once.
CREATE OR REPLACE FUNCTION pulse_internal.next_of_filter(
    action text, filter json, moment timestamptz, above bigint, last_id bigint, max_rows int,
    max_checked int, OUT job_ids bigint[], OUT checked_to bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  is_live boolean := pulse_internal.of_live_jobs(action);
  c record;
BEGIN
  SELECT * INTO c FROM pulse_internal.read_filter(action, filter, moment);
  IF num_nonnulls(c.error, c.error_line) > 0 AND c.ids IS NULL THEN
    max_checked := least(max_checked, 20000);
    max_checked := least(max_checked, pulse_internal.texts_to_read(CASE WHEN is_live
      THEN ARRAY(SELECT octet_length(j.last_error) FROM pulse.job AS j
                  WHERE j.id > above AND j.id <= last_id ORDER BY j.id LIMIT max_checked)
      ELSE ARRAY(SELECT octet_length(f.last_error) FROM pulse.finished_job AS f
                  WHERE f.id > above AND f.id <= last_id ORDER BY f.id LIMIT max_checked) END));
  END IF;
  -- Of the four lists one is read.
  WITH checked AS MATERIALIZED (
    (SELECT j.id, j.state::text AS state, j.identifier, j.queue_name, j.job_key, j.created_at,
            j.last_error
       FROM pulse.job AS j
      WHERE is_live AND c.ids IS NULL AND j.id > above AND j.id <= last_id
      ORDER BY j.id LIMIT max_checked)
    UNION ALL
    (SELECT j.id, j.state::text, j.identifier, j.queue_name, j.job_key, j.created_at, j.last_error
       FROM pulse.job AS j
      WHERE is_live AND j.id = ANY (c.ids) AND j.id > above AND j.id <= last_id
      ORDER BY j.id LIMIT max_checked)
    UNION ALL
    (SELECT f.id, f.state::text, f.identifier, f.queue_name, f.job_key, f.created_at, f.last_error
       FROM pulse.finished_job AS f
      WHERE NOT is_live AND c.ids IS NULL AND f.id > above AND f.id <= last_id
      ORDER BY f.id LIMIT max_checked)
    UNION ALL
    (SELECT f.id, f.state::text, f.identifier, f.queue_name, f.job_key, f.created_at, f.last_error
       FROM pulse.finished_job AS f
      WHERE NOT is_live AND f.id = ANY (c.ids) AND f.id > above AND f.id <= last_id
      ORDER BY f.id LIMIT max_checked))
  SELECT ARRAY(SELECT l.id FROM checked AS l
                WHERE pulse_internal.is_listed(l.state, l.identifier, l.queue_name, l.job_key,
                        l.created_at, l.last_error, c.states, c.task, c.queue, c.key, c.error,
                        c.error_line, c.before, c.after)
                ORDER BY l.id LIMIT max_rows),
         CASE WHEN count(*) = max_checked THEN max(l.id) END
    INTO job_ids, checked_to FROM checked AS l;
  IF cardinality(job_ids) = max_rows THEN
    checked_to := job_ids[max_rows];
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.next_of_filter(text, json, timestamptz, bigint, bigint, int,
    int) IS
  'Returns the next jobs of a filter above an id, at most max_rows among the next max_checked, and '
  'the last id that the function read; NULL: the function read all ids up to last_id.';
