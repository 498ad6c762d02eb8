-- Tasks that are functions of the database. The worker calls perform_job, which runs the function
-- and completes the job in one transaction, so the function's effects happen exactly once.

-- extension/handler/handler.cpp decides both: each job that a function performs is judged.
CREATE OR REPLACE FUNCTION pulse_internal.check_handler(handler regprocedure) RETURNS void
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_handler';
COMMENT ON FUNCTION pulse_internal.check_handler(regprocedure) IS
  'Raises PU004 for a function that cannot be called with a job; NULL passes.';

CREATE OR REPLACE FUNCTION pulse_internal.handler_trust(handler regprocedure, role name)
  RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_handler_trust';
COMMENT ON FUNCTION pulse_internal.handler_trust(regprocedure, name) IS
  'Returns whether this role runs a handler: trusted (the owner of the handler is a superuser, '
  'owns pg_pulse, or may act as the role anyway), restricted (SECURITY DEFINER: as the owner, as '
  'a security-restricted operation) or refused (the owner would gain the rights of the role). '
  'NULL for a function that does not exist.';

-- The list leaves out a task whose function was dropped: its jobs wait until it has a handler
-- again.
CREATE OR REPLACE FUNCTION pulse.handler_tasks() RETURNS text[]
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  own_role name := pulse_internal.caller();
  tasks text[];
  distrusted text;
BEGIN
  SELECT coalesce(array_agg(h.identifier ORDER BY h.identifier) FILTER (WHERE h.is_run), '{}'),
         string_agg(h.identifier, ', ' ORDER BY h.identifier) FILTER (WHERE NOT h.is_run)
    INTO tasks, distrusted
    FROM (SELECT t.identifier,
                 pulse_internal.handler_trust(f.oid, own_role) <> 'refused' AS is_run
            FROM pulse.task AS t, LATERAL (SELECT to_regprocedure(t.handler)) AS f (oid)
           WHERE f.oid IS NOT NULL
             AND has_function_privilege(own_role, f.oid, 'EXECUTE')) AS h;
  IF distrusted IS NOT NULL THEN
    RAISE WARNING 'role % does not run the handlers of these tasks: %', own_role, distrusted
      USING DETAIL = 'Their owners could act with its rights.',
      HINT = format('Make them SECURITY DEFINER, give them to the owner of pg_pulse, or GRANT %I '
                    'TO their owners.', own_role);
  END IF;
  RETURN tasks;
END $$;
COMMENT ON FUNCTION pulse.handler_tasks() IS
  'Returns the names of the tasks whose handler the session''s role may execute and runs: a '
  'handler whose owner is a superuser, owns pg_pulse or may act as the session''s role anyway, or '
  'a SECURITY DEFINER handler, which call_handler() runs restricted. A warning lists the tasks of '
  'other handlers.';

-- Where no role was made a worker, the owner of pg_pulse is taken for one.
CREATE OR REPLACE VIEW pulse_internal.worker_role AS
  WITH granted AS MATERIALIZED (
    SELECT DISTINCT a.grantee AS role
      FROM pg_catalog.pg_proc AS p, LATERAL pg_catalog.aclexplode(p.proacl) AS a
     WHERE p.pronamespace = 'pulse'::regnamespace AND p.proname = 'claim'
       AND a.grantee NOT IN (p.proowner, 0::oid)
  )
  SELECT g.role FROM granted AS g
  UNION ALL
  SELECT e.extowner FROM pg_catalog.pg_extension AS e
   WHERE e.extname = 'pg_pulse' AND NOT EXISTS (SELECT FROM granted);
COMMENT ON VIEW pulse_internal.worker_role IS 'Roles that were made workers.';

CREATE OR REPLACE FUNCTION pulse_internal.handler_obstacle(
    identifier text, OUT reason text, OUT way_out text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  named CONSTANT text := (SELECT t.handler FROM pulse.task AS t
                           WHERE t.identifier = handler_obstacle.identifier);
  handler CONSTANT regprocedure := to_regprocedure(named);
  runner record;
BEGIN
  IF named IS NULL THEN
    RETURN;
  ELSIF handler IS NULL THEN
    reason := format('its handler %s does not exist', named);
    way_out := 'Create the function, or give the task another handler with pulse.set_task().';
    RETURN;
  END IF;
  SELECT w.role::regrole, w.may_execute, w.is_run INTO runner
    FROM (SELECT r.role, has_function_privilege(r.role, handler, 'EXECUTE') AS may_execute,
                 pulse_internal.handler_trust(handler, pg_get_userbyid(r.role)) <> 'refused'
                   AS is_run
            FROM pulse_internal.worker_role AS r) AS w
   ORDER BY w.may_execute AND w.is_run DESC, w.may_execute DESC, w.role LIMIT 1;
  IF NOT runner.may_execute THEN
    reason := format('role %s may not execute its handler %s', runner.role, handler);
    way_out := format('GRANT EXECUTE ON FUNCTION %s TO %s.', handler, runner.role);
  ELSIF NOT runner.is_run THEN
    reason := format('the owner of its handler %s could act with the rights of role %s', handler,
                     runner.role);
    way_out := 'Make the function SECURITY DEFINER, or give it to the owner of pg_pulse.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.handler_obstacle(text) IS
  'Explains why no worker may run the handler of a task: the handler does not exist, or none of '
  'the roles that were made workers may execute it and runs it; NULL without such an obstacle.';

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

-- The handler has the rights and the settings of the caller. So this function has neither SECURITY
-- DEFINER nor SET, which the handler would inherit: extension/handler/call_handler.cpp.
CREATE OR REPLACE FUNCTION pulse.call_handler(job pulse.claimed_job) RETURNS json
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_call_handler';
COMMENT ON FUNCTION pulse.call_handler(pulse.claimed_job) IS
  'Calls the handler of a claimed job, as claim() or held_job() returned the job, with the '
  'caller''s rights, and returns the handler''s result, without completing the job. Settings that '
  'the handler changes last until the handler has returned and the deferred constraints of the '
  'transaction have been checked, as by SET CONSTRAINTS ALL IMMEDIATE; so does pulse.traceparent, '
  'the traceparent of the job. The call takes back session-level advisory locks, LISTENs, '
  'prepared statements, cursors WITH HOLD and temporary objects of the handler, the last only in '
  'a session that had no temporary objects; outside of a transaction block currval() is '
  'forgotten. A SECURITY DEFINER handler whose owner is no superuser, does not own pg_pulse and '
  'may not act as the caller''s role runs as a security-restricted operation, and defers no '
  'constraint. Raises PU005 when the task has no handler, PU004 for a function that cannot take a '
  'job, 42501 for a handler that handler_tasks leaves out or the caller may not execute.';

CREATE OR REPLACE FUNCTION pulse.perform_job(job_id bigint, token bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
  PERFORM pulse.fence(job_id, token);
  PERFORM pulse.complete(job_id, token, pulse.call_handler(pulse.held_job(job_id, token)));
END $$;
COMMENT ON FUNCTION pulse.perform_job(bigint, bigint) IS
  'Calls the handler of the job''s task and completes the job with the handler''s result, in the '
  'caller''s transaction and with the caller''s rights, as call_handler does. If the call fails, '
  'report the error with fail() in another transaction. Raises PU001 when the claim is lost, at '
  'the latest at COMMIT; PU004, PU005 and 42501 as call_handler does.';
