-- Tasks that are functions of the database. The worker calls perform_job, which runs the function
-- and completes the job in one transaction, so the function's effects happen exactly once.

CREATE OR REPLACE FUNCTION pulse_internal.check_handler(handler regprocedure) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF handler IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_proc AS p
     WHERE p.oid = handler AND p.prokind = 'f' AND NOT p.proretset AND p.pronargs = 1
       AND p.provariadic = 0
       AND p.proargtypes[0] IN ('json'::regtype, 'jsonb'::regtype, 'pulse.claimed_job'::regtype))
  THEN
    RAISE EXCEPTION 'handler % cannot take a job', handler USING
      ERRCODE = 'PU004',
      HINT = 'It must be a function with one argument, the payload as json or jsonb or the whole '
             'job as pulse.claimed_job, that returns one value or void.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_handler(regprocedure) IS
  'Raises PU004 for a function that cannot be called with a job; NULL passes.';

-- A handler runs with the worker's rights. So an operator must not choose a function by which its
-- owner gains the rights of the worker's role.
CREATE OR REPLACE FUNCTION pulse_internal.is_trusted_handler(handler regprocedure) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (
    SELECT p.prosecdef OR r.rolsuper OR pg_has_role(p.proowner, pulse_internal.caller(), 'MEMBER')
           OR EXISTS (SELECT FROM pg_extension AS e
                       WHERE e.extname = 'pg_pulse' AND e.extowner = p.proowner)
      FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = p.proowner
     WHERE p.oid = handler);
END $$;
COMMENT ON FUNCTION pulse_internal.is_trusted_handler(regprocedure) IS
  'Returns whether the session''s role may run this handler: it runs with the rights of its owner '
  '(SECURITY DEFINER), or its owner is a superuser, owns pg_pulse or may act as that role anyway.';

-- A task whose function was dropped is left out: its jobs wait until it has a handler again.
CREATE OR REPLACE FUNCTION pulse.handler_tasks() RETURNS text[]
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  tasks text[];
  distrusted text;
BEGIN
  SELECT coalesce(array_agg(t.identifier ORDER BY t.identifier)
                    FILTER (WHERE pulse_internal.is_trusted_handler(h.oid)), '{}'),
         string_agg(t.identifier, ', ' ORDER BY t.identifier)
           FILTER (WHERE NOT pulse_internal.is_trusted_handler(h.oid))
    INTO tasks, distrusted
    FROM pulse.task AS t CROSS JOIN LATERAL (SELECT to_regprocedure(t.handler)) AS h (oid)
   WHERE h.oid IS NOT NULL AND has_function_privilege(pulse_internal.caller(), h.oid, 'EXECUTE');
  IF distrusted IS NOT NULL THEN
    RAISE WARNING 'role % does not run the handlers of these tasks: %', pulse_internal.caller(),
      distrusted
      USING DETAIL = 'Their owners could act with its rights.',
      HINT = format('Make them SECURITY DEFINER, give them to the owner of pg_pulse, or GRANT %I '
                    'TO their owners.', pulse_internal.caller());
  END IF;
  RETURN tasks;
END $$;
COMMENT ON FUNCTION pulse.handler_tasks() IS
  'Returns the names of the tasks whose handler the session''s role may execute and trusts: one '
  'that runs with the rights of its owner (SECURITY DEFINER), or whose owner is a superuser, owns '
  'pg_pulse or may act as that role anyway. A warning lists the tasks of other handlers.';

CREATE OR REPLACE FUNCTION pulse_internal.require_claim(job_id bigint, token bigint)
  RETURNS pulse.job
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  claimed pulse.job;
BEGIN
  SELECT * INTO claimed FROM pulse.job AS j
   WHERE j.id = require_claim.job_id AND j.token = require_claim.token AND j.state = 'running';
  IF claimed.id IS NULL THEN
    PERFORM pulse_internal.raise_stale(
      job_id, pulse_internal.refused_token(job_id, token, NULL, false));
  END IF;
  RETURN claimed;
END $$;
COMMENT ON FUNCTION pulse_internal.require_claim(bigint, bigint) IS
  'Returns the job of this claim; raises PU001 when the claim is over.';

CREATE OR REPLACE FUNCTION pulse.held_job(job_id bigint, token bigint) RETURNS pulse.claimed_job
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_internal.as_claimed(pulse_internal.require_claim(job_id, token));
END $$;
COMMENT ON FUNCTION pulse.held_job(bigint, bigint) IS
  'Returns the job of this claim as claim() hands it out. Raises PU001 when the claim is over.';

-- The call is text, because the handler is known by name only. A function in FROM is called even
-- if it is declared IMMUTABLE and no clause reads its result. Jobs that the handler adds belong to
-- the trace of its job: the setting is made before the call, which takes the job from there.
CREATE OR REPLACE FUNCTION pulse_internal.call_of(handler regprocedure) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (
    SELECT format('SELECT %s FROM (SELECT job, pg_catalog.set_config(''pulse.traceparent'', '
                  'COALESCE(job.traceparent, ''''), true) FROM pulse.held_job($1, $2) AS job '
                  'OFFSET 0) AS traced, LATERAL %I.%I(%s) AS result',
      CASE p.prorettype WHEN 'void'::regtype THEN 'NULL::pg_catalog.json'
                        ELSE 'pg_catalog.to_json(result)' END,
      n.nspname, p.proname,
      CASE p.proargtypes[0] WHEN 'json'::regtype THEN '(job).payload'
                            WHEN 'jsonb'::regtype THEN '(job).payload::pg_catalog.jsonb'
                            ELSE 'job' END)
      FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
     WHERE p.oid = call_of.handler);
END $$;
COMMENT ON FUNCTION pulse_internal.call_of(regprocedure) IS
  'Returns the statement that calls this function with a claimed job and its pulse.traceparent, '
  'with job_id as $1 and token as $2; NULL for a function that does not exist.';

CREATE OR REPLACE FUNCTION pulse.handler_call(job_id bigint, token bigint) RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  task_name text := (pulse_internal.require_claim(job_id, token)).identifier;
  handler regprocedure := (SELECT to_regprocedure(t.handler) FROM pulse.task AS t
                            WHERE t.identifier = task_name);
BEGIN
  IF handler IS NULL THEN
    RAISE EXCEPTION 'task % has no handler', quote_literal(task_name) USING
      ERRCODE = 'PU005',
      HINT = 'pulse.set_task(identifier, handler => ...) gives it a function of this database.';
  ELSIF NOT pulse_internal.is_trusted_handler(handler) THEN
    RAISE EXCEPTION 'role % does not run handler % of task %', pulse_internal.caller(), handler,
        quote_literal(task_name) USING
      ERRCODE = 'insufficient_privilege',
      DETAIL = 'The owner of the function could act with the rights of this role.',
      HINT = 'Make it SECURITY DEFINER, or give it to the owner of pg_pulse.';
  END IF;
  RETURN pulse_internal.call_of(handler);
END $$;
COMMENT ON FUNCTION pulse.handler_call(bigint, bigint) IS
  'Returns the statement that calls the handler of this job, with job_id as $1 and token as $2. '
  'Raises PU001 when the claim is over, PU005 when the task has no handler, 42501 for a handler '
  'that handler_tasks leaves out.';

-- The handler runs with the rights and the settings of the caller. So this function has neither
-- SECURITY DEFINER nor SET, which the handler would inherit.
CREATE OR REPLACE FUNCTION pulse.perform_job(job_id bigint, token bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
  result pg_catalog.json;
BEGIN
  PERFORM pulse.fence(job_id, token);
  EXECUTE pulse.handler_call(job_id, token) INTO result USING job_id, token;
  PERFORM pulse.complete(job_id, token, result);
END $$;
COMMENT ON FUNCTION pulse.perform_job(bigint, bigint) IS
  'Calls the handler of the job''s task and completes the job with its result, in the caller''s '
  'transaction and with the caller''s rights. Until the transaction ends, pulse.traceparent is '
  'that of the job. If the call fails, report the error with fail() in another transaction. Raises '
  'PU001 when the claim is lost, at the latest at COMMIT; PU005 when the task has no handler, '
  '42501 for a handler that handler_tasks leaves out.';
