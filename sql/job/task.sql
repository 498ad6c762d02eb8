-- Settings of tasks, and the backoff that follows from them.

-- extension/finish/attempt_end.cpp calls the function; a task without a row is NULL. The body is
-- one expression, so that the planner puts it into the query of the caller: a recovery computes
-- thousands of delays.
CREATE OR REPLACE FUNCTION pulse_internal.backoff_of(
    backoff text, base interval, cap interval, jitter float8, attempts int)
  RETURNS interval
  LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN make_interval(secs => least(315360000, greatest(0,
    least(extract(epoch FROM cap)::float8,
      CASE coalesce(backoff, 'exponential')
        WHEN 'none' THEN 0
        WHEN 'fixed' THEN extract(epoch FROM coalesce(base, interval '10 s'))::float8
        ELSE CASE WHEN base IS NULL THEN exp(least(10, attempts)::float8)
             ELSE extract(epoch FROM base)::float8 * power(2, least(attempts, 40) - 1) END
      END) * (1 + coalesce(jitter, 0) * (2 * random() - 1)))));
COMMENT ON FUNCTION pulse_internal.backoff_of(text, interval, interval, float8, int) IS
  'Returns how long a job waits after the n-th attempt: exp(least(10, n)) seconds unless the task '
  'sets another delay; at most ten years.';

-- A parsed body that names columns of a table keeps a DBA from adding one with a default.
CREATE OR REPLACE FUNCTION pulse_internal.backoff(task pulse.task, attempts int) RETURNS interval
  LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT pulse_internal.backoff_of((task).backoff, (task).backoff_base, (task).backoff_cap,
                                   (task).jitter,
                                   attempts);
$$;
COMMENT ON FUNCTION pulse_internal.backoff(pulse.task, int) IS
  'Returns how long a job of this task waits after the n-th attempt.';

CREATE OR REPLACE FUNCTION pulse_internal.keeps_completed(identifier text) RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_keeps_completed';
COMMENT ON FUNCTION pulse_internal.keeps_completed(text) IS
  'Returns whether completed jobs of this task are kept, by the task''s keep_completed or the '
  'setting.';

CREATE OR REPLACE FUNCTION pulse_internal.check_task_settings(
    backoff text, jitter float8, max_crashes int, on_unreachable text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF backoff NOT IN ('exponential', 'fixed', 'none') THEN
    RAISE EXCEPTION 'backoff % is not known', quote_literal(backoff) USING
      ERRCODE = 'PU004', HINT = 'Use exponential, fixed or none.';
  ELSIF jitter NOT BETWEEN 0 AND 1 OR jitter = 'NaN' THEN
    RAISE EXCEPTION 'jitter is %, out of range', jitter USING
      ERRCODE = 'PU004', HINT = 'It is a fraction of the delay, between 0 and 1.';
  ELSIF on_unreachable NOT IN ('continue', 'kill') THEN
    RAISE EXCEPTION 'on_unreachable % is not known', quote_literal(on_unreachable) USING
      ERRCODE = 'PU004', HINT = 'Use continue or kill.';
  END IF;
  PERFORM pulse_internal.check_number('max_crashes', max_crashes, -1, 32767);
END $$;
COMMENT ON FUNCTION pulse_internal.check_task_settings(text, float8, int, text) IS
  'Raises PU004 for settings that no task can have.';

-- The literal text of a queue of a task, with one character for each member of the payload.
CREATE OR REPLACE FUNCTION pulse_internal.check_task_queue(queue text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  rest text := regexp_replace(queue, '[{][^{}|]+([|][^{}]*)?[}]', 'x', 'g');
BEGIN
  IF rest ~ '[{}*]|/.*/.*/.*/' OR length(rest) > 128 THEN
    RAISE EXCEPTION 'queue % of a task cannot name a queue', quote_literal(queue) USING
      ERRCODE = 'PU004',
      HINT = 'Write text, {member} and {member|default}, with at most four levels between slashes '
             'and no asterisk.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_task_queue(text) IS
  'Raises PU004 for a text that cannot be the queue of a task; NULL passes.';

CREATE OR REPLACE FUNCTION pulse_internal.queue_part(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF value !~ E'[/*%\\u0001-\\u001f\\u007f-\\u009f]' THEN
    RETURN value;
  END IF;
  RETURN (
    SELECT string_agg(CASE WHEN c.character ~ E'[/*%\\u0001-\\u001f\\u007f-\\u009f]'
                        THEN upper(regexp_replace(encode(convert_to(c.character, 'UTF8'), 'hex'),
                                                  '(..)', E'%\\1', 'g'))
                        ELSE c.character END, '' ORDER BY c.place)
      FROM regexp_split_to_table(value, '') WITH ORDINALITY AS c (character, place));
END $$;
COMMENT ON FUNCTION pulse_internal.queue_part(text) IS
  'Returns a text as a part of the name of a queue: slashes, asterisks, percent signs and control '
  'characters are percent-encoded.';

-- extension/add/add.cpp calls the function.
CREATE OR REPLACE FUNCTION pulse_internal.queue_of_payload(queue text, payload json) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  named text := '';
  part text[];
  kind text;
BEGIN
  -- A text, then a member and the member's default or none.
  FOR part IN SELECT regexp_matches(queue, '([^{]*)(?:[{]([^{}|]+)([|][^{}]*)?[}])?', 'g') LOOP
    named := named || coalesce(part[1], '');
    CONTINUE WHEN part[2] IS NULL;
    kind := CASE json_typeof(payload) WHEN 'object' THEN json_typeof(payload -> part[2]) END;
    IF kind IN ('string', 'number') THEN
      named := named || pulse_internal.queue_part(payload ->> part[2]);
    ELSIF part[3] IS NOT NULL AND coalesce(kind, 'null') = 'null' THEN
      named := named || pulse_internal.queue_part(substr(part[3], 2));
    ELSE
      RAISE EXCEPTION 'the payload gives no queue: its member % is %', quote_literal(part[2]),
        coalesce(nullif(kind, 'null'), 'missing') USING
        ERRCODE = 'PU004',
        DETAIL = format('The queue of the task is %L.', queue),
        HINT = 'Give a string or a number, or name the queue of the job.';
    END IF;
  END LOOP;
  RETURN named;
END $$;
COMMENT ON FUNCTION pulse_internal.queue_of_payload(text, json) IS
  'Returns the queue of a job of this payload, by the queue of the task. Raises PU004 where a '
  'member without default is missing, or is neither string nor number.';

-- A worker calls the handler with the payloads of all producers: the right to set a handler must be
-- no way to call a function. pg_pulse checked the stored handler when a role set it.
CREATE OR REPLACE FUNCTION pulse_internal.check_new_handler(identifier text, handler regprocedure)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  role name := pulse_internal.asking_role();
  home oid := (SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = handler);
BEGIN
  IF has_function_privilege(role, handler, 'EXECUTE') AND has_schema_privilege(role, home, 'USAGE')
     OR handler IS NULL
     OR EXISTS (SELECT FROM pulse.task AS t
                 WHERE t.identifier = check_new_handler.identifier
                   AND t.handler = (pg_identify_object('pg_proc'::regclass,
                                                       check_new_handler.handler, 0)).identity)
  THEN
    RETURN;
  END IF;
  RAISE EXCEPTION 'role % may not execute handler %', role, handler USING
    ERRCODE = 'insufficient_privilege',
    HINT = format('GRANT EXECUTE ON FUNCTION %s TO %I, and USAGE ON SCHEMA %s.', handler, role,
                  home::regnamespace);
END $$;
COMMENT ON FUNCTION pulse_internal.check_new_handler(text, regprocedure) IS
  'Raises 42501 for a function that the calling role may not execute, unless it is the handler of '
  'this task already; NULL passes.';

CREATE OR REPLACE FUNCTION pulse_internal.set_task_as_owner(
    identifier text,
    max_attempts int,
    timeout interval,
    stall_timeout interval,
    backoff text,
    backoff_base interval,
    backoff_cap interval,
    jitter float8,
    keep_completed interval,
    max_crashes int,
    on_unreachable text,
    handler regprocedure,
    expires_after interval,
    queue text,
    dead_letter text)
  RETURNS pulse.task
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  stored pulse.task;
BEGIN
  PERFORM pulse_internal.check_identifier(identifier);
  PERFORM pulse_internal.check_number('max_attempts', max_attempts, 1, 32767);
  PERFORM pulse_internal.check_duration('timeout', timeout, interval '1 ms');
  PERFORM pulse_internal.check_duration('stall_timeout', stall_timeout, interval '1 ms');
  PERFORM pulse_internal.check_duration('backoff_base', backoff_base, interval '0');
  PERFORM pulse_internal.check_duration('backoff_cap', backoff_cap, interval '0');
  PERFORM pulse_internal.check_duration('keep_completed', keep_completed, interval '0');
  PERFORM pulse_internal.check_duration('expires_after', expires_after, interval '1 ms');
  PERFORM pulse_internal.check_task_settings(
    backoff, jitter, max_crashes, on_unreachable);
  PERFORM pulse_internal.check_handler(handler);
  PERFORM pulse_internal.check_new_handler(identifier, handler);
  PERFORM pulse_internal.check_task_queue(queue);
  IF dead_letter <> '' THEN
    PERFORM pulse_internal.check_identifier(dead_letter);
  END IF;
  INSERT INTO pulse.task AS t
    (identifier, max_attempts, timeout, stall_timeout, backoff, backoff_base, backoff_cap, jitter,
     keep_completed, max_crashes, on_unreachable, handler, expires_after, queue, dead_letter,
     created_at, updated_at)
  VALUES
    (set_task_as_owner.identifier, set_task_as_owner.max_attempts, set_task_as_owner.timeout,
     set_task_as_owner.stall_timeout, set_task_as_owner.backoff, set_task_as_owner.backoff_base,
     set_task_as_owner.backoff_cap, set_task_as_owner.jitter, set_task_as_owner.keep_completed,
     set_task_as_owner.max_crashes, set_task_as_owner.on_unreachable,
     (pg_identify_object('pg_proc'::regclass, set_task_as_owner.handler, 0)).identity,
     set_task_as_owner.expires_after, nullif(set_task_as_owner.queue, ''),
     nullif(set_task_as_owner.dead_letter, ''), pulse.now(), pulse.now())
  ON CONFLICT ON CONSTRAINT task_pkey DO UPDATE SET
    max_attempts   = coalesce(excluded.max_attempts, t.max_attempts),
    timeout        = coalesce(excluded.timeout, t.timeout),
    stall_timeout  = coalesce(excluded.stall_timeout, t.stall_timeout),
    backoff        = coalesce(excluded.backoff, t.backoff),
    backoff_base   = coalesce(excluded.backoff_base, t.backoff_base),
    backoff_cap    = coalesce(excluded.backoff_cap, t.backoff_cap),
    jitter         = coalesce(excluded.jitter, t.jitter),
    keep_completed = coalesce(excluded.keep_completed, t.keep_completed),
    max_crashes    = coalesce(excluded.max_crashes, t.max_crashes),
    on_unreachable = coalesce(excluded.on_unreachable, t.on_unreachable),
    handler        = coalesce(excluded.handler, t.handler),
    expires_after  = coalesce(excluded.expires_after, t.expires_after),
    queue          = nullif(coalesce(set_task_as_owner.queue, t.queue), ''),
    dead_letter    = nullif(coalesce(set_task_as_owner.dead_letter, t.dead_letter), ''),
    updated_at     = pulse.now()
  RETURNING t.* INTO stored;
  RETURN stored;
END $$;
COMMENT ON FUNCTION pulse_internal.set_task_as_owner(
    text, int, interval, interval, text, interval, interval, float8, interval, int, text,
    regprocedure, interval, text, text) IS
  'The body of pulse.set_task().';

CREATE OR REPLACE FUNCTION pulse.set_task(
    identifier text,
    max_attempts int = NULL,
    timeout interval = NULL,
    stall_timeout interval = NULL,
    backoff text = NULL,
    backoff_base interval = NULL,
    backoff_cap interval = NULL,
    jitter float8 = NULL,
    keep_completed interval = NULL,
    max_crashes int = NULL,
    on_unreachable text = NULL,
    handler regprocedure = NULL,
    expires_after interval = NULL,
    queue text = NULL,
    dead_letter text = NULL)
  RETURNS pulse.task
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.set_task(text, int, interval, interval, text, interval, interval, float8,
                                   interval, int, text, regprocedure, interval, text, text) IS
  'Stores settings of a task and returns all settings; NULL leaves a setting unchanged. The table '
  'pulse.task describes each setting. queue is for later jobs that are added without a queue: '
  '{member} stands for a string or number of the payload, {member|default} for a member that may '
  'be missing, and '''' takes the queue away. dead_letter is the task of the job that is added '
  'when a job of this task ends failed, quarantined or expired, and '''' takes the setting away. '
  'Raises PU004 for a value out of range and for a handler that cannot take a job, 42501 for a new '
  'handler that the caller may not execute.';

-- The row stays: verify() reads there since when a limit holds.
CREATE OR REPLACE FUNCTION pulse.unset_task(identifier text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_identifier(unset_task.identifier);
  UPDATE pulse.task AS t SET
    max_attempts = NULL, timeout = NULL, stall_timeout = NULL, backoff = NULL, backoff_base = NULL,
    backoff_cap = NULL, jitter = NULL, keep_completed = NULL, max_crashes = NULL,
    on_unreachable = NULL, handler = NULL, expires_after = NULL, queue = NULL, dead_letter = NULL,
    updated_at = pulse.now()
  WHERE t.identifier = unset_task.identifier
    AND NOT (t.max_attempts, t.timeout, t.stall_timeout, t.backoff, t.backoff_base, t.backoff_cap,
             t.jitter, t.keep_completed, t.max_crashes, t.on_unreachable, t.handler,
             t.expires_after, t.queue, t.dead_letter) IS NULL;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION pulse.unset_task(text) IS
  'Takes all settings of a task away, the handler too, and returns whether the task had any. From '
  'then on the task has the defaults. Jobs keep the values that they got when added: max_attempts, '
  'start_by and queue. Raises PU004 as set_task does.';

-- A worker that ends jobs at their limits asks after the notice that tasks have changed.
CREATE OR REPLACE FUNCTION pulse.task_limits(
    worker_id bigint, identifiers text[],
    OUT identifier text, OUT timeout interval, OUT stall_timeout interval, OUT on_unreachable text)
  RETURNS SETOF record
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT i.identifier, coalesce(t.timeout, pulse_internal.interval(h.default_timeout_us)),
         t.stall_timeout, coalesce(t.on_unreachable, 'continue')
    FROM unnest(identifiers) AS i (identifier)
    LEFT JOIN pulse.task AS t ON t.identifier = i.identifier
    LEFT JOIN pulse.heartbeat AS h ON h.worker_id = task_limits.worker_id;
END $$;
COMMENT ON FUNCTION pulse.task_limits(bigint, text[]) IS
  'Returns the present limits of jobs of these tasks, also of jobs that the worker claimed before '
  'a change: NULL means none. A worker asks when a heartbeat raises the notice PU102.';
