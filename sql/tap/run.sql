-- Jobs run inside of the test's transaction, as pulse-worker runs functions: one after the other, a
-- failed job in a savepoint, the end reported by the same calls.

-- Completed jobs leave no row behind, unless settings keep them, and tests ask how the jobs ended.
CREATE TABLE pulse_tap.run (
  job_id     bigint NOT NULL,
  token      bigint NOT NULL,
  identifier text COLLATE "C" NOT NULL,
  attempt    smallint NOT NULL,
  state      text NOT NULL,
  error      text,
  ended_at   timestamptz NOT NULL,
  PRIMARY KEY (job_id, token)
);
COMMENT ON TABLE pulse_tap.run IS
  'The attempts that drain() and run_job() have run in this test; empty outside of a test.';
COMMENT ON COLUMN pulse_tap.run.job_id IS 'Id of the job';
COMMENT ON COLUMN pulse_tap.run.token IS 'Token of the claim';
COMMENT ON COLUMN pulse_tap.run.identifier IS 'Task of the job';
COMMENT ON COLUMN pulse_tap.run.attempt IS 'Number of the attempt, from 1';
COMMENT ON COLUMN pulse_tap.run.state IS 'State of the job after the attempt';
COMMENT ON COLUMN pulse_tap.run.error IS 'Error of the attempt; NULL when it completed the job';
COMMENT ON COLUMN pulse_tap.run.ended_at IS 'Time at which the attempt ended';

-- One worker serves a whole test. The worker is never silent, however far the test travels, so no
-- sweep counts it. A registration warns inside a transaction block, as it should outside of tests.
CREATE OR REPLACE FUNCTION pulse_tap.own_worker() RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off SET client_min_messages = error AS $$
DECLARE
  own bigint := nullif(current_setting('pulse_tap.worker_id', true), '')::bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.heartbeat AS h
                  WHERE h.worker_id = own AND h.verdict = 'alive') OR own IS NULL THEN
    own := (pulse.register_worker('pulse_tap')).id;
    UPDATE pulse.heartbeat AS h SET threshold_us = 1000000000000000000 WHERE h.worker_id = own;
    PERFORM set_config('pulse_tap.worker_id', own::text, true);
  END IF;
  RETURN own;
END $$;
COMMENT ON FUNCTION pulse_tap.own_worker() IS
  'For the kit itself: returns the worker that runs the jobs of drain() and run_job().';

-- The work of commits and of the background worker between two jobs.
CREATE OR REPLACE FUNCTION pulse_tap.promote() RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.reconcile_waits(1000000, 'infinity');
  WHILE pulse_internal.promote_marked(256) LOOP END LOOP;
END $$;
COMMENT ON FUNCTION pulse_tap.promote() IS
  'For the kit itself: opens the jobs of queues, and jobs whose parents have ended.';

CREATE OR REPLACE FUNCTION pulse_tap.sweep_due() RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM pulse.sweep();
  -- A sweep is short; a test goes on when every due time has its job.
  WHILE pulse_internal.settle_schedules('infinity') LOOP END LOOP;
END $$;
COMMENT ON FUNCTION pulse_tap.sweep_due() IS
  'For the kit itself: recovers, expires, and settles all schedules that are due.';

CREATE OR REPLACE FUNCTION pulse_tap.claim_next(tasks text[]) RETURNS pulse.claimed_job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  claimed pulse.claimed_job;
BEGIN
  PERFORM pulse_tap.promote();
  SELECT * INTO claimed FROM pulse.claim(pulse_tap.own_worker(), 1, tasks);
  RETURN claimed;
END $$;
COMMENT ON FUNCTION pulse_tap.claim_next(text[]) IS
  'For the kit itself: claims the next due job of these tasks; all NULL without a due job.';

-- In production each job has a transaction of its own, and the commit checks deferred constraints.
-- The second statement defers again the constraints that were declared deferred.
CREATE OR REPLACE FUNCTION pulse_tap.check_constraints() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  deferred text := (SELECT string_agg(DISTINCT format('%I.%I', n.nspname, c.conname), ', ')
                      FROM pg_constraint AS c JOIN pg_namespace AS n ON n.oid = c.connamespace
                     WHERE c.condeferred);
BEGIN
  IF EXISTS (SELECT FROM pg_constraint AS c WHERE c.condeferrable) THEN
    SET CONSTRAINTS ALL IMMEDIATE;
    IF deferred IS NOT NULL THEN
      EXECUTE format('SET CONSTRAINTS %s DEFERRED', deferred);
    END IF;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_tap.check_constraints() IS
  'For the kit itself: checks deferred constraints as a commit would.';

CREATE OR REPLACE FUNCTION pulse_tap.note_run(job pulse.claimed_job, state text, error text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  INSERT INTO pulse_tap.run (job_id, token, identifier, attempt, state, error, ended_at)
  VALUES (job.id, job.token, job.identifier, job.attempts, state, error, pulse.now());
END $$;
COMMENT ON FUNCTION pulse_tap.note_run(pulse.claimed_job, text, text) IS
  'For the kit itself: keeps how an attempt ended.';

-- The function runs with the rights and the settings of the caller, as under pulse-worker.
CREATE OR REPLACE FUNCTION pulse_tap.play(
    job pulse.claimed_job, played_by regprocedure, as_role name,
    OUT state text, OUT error text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
  played pulse.claimed_job := job;
  own_role CONSTANT text := pg_catalog.current_setting('role');
  code text;
  message text;
  detail text;
  hint text;
BEGIN
  BEGIN
    IF played_by IS NULL THEN
      -- An error takes the role back with the savepoint.
      PERFORM pg_catalog.set_config('role', COALESCE(as_role::text, own_role), true);
      PERFORM pulse.perform_job(job.id, job.token);
      PERFORM pg_catalog.set_config('role', own_role, true);
    ELSE
      played.handler := played_by;
      PERFORM pulse.fence(job.id, job.token);
      PERFORM pulse.complete(job.id, job.token, pulse.call_handler(played));
    END IF;
    PERFORM pulse_tap.check_constraints();
    state := 'completed';
  EXCEPTION WHEN OTHERS OR assert_failure THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
      detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    error := pg_catalog.concat_ws(E'\n', code || ': ' || message,
                                  'DETAIL: ' || NULLIF(detail, ''),
                                  'HINT: ' || NULLIF(hint, ''));
  END;
  IF error IS NOT NULL THEN
    state := pulse.fail(job.id, job.token, error);
  END IF;
  PERFORM pulse_tap.note_run(job, state, error);
END $$;
COMMENT ON FUNCTION pulse_tap.play(pulse.claimed_job, regprocedure, name) IS
  'For the kit itself: runs a claimed job by this function, NULL means the handler of the job''s '
  'task, called by as_role, and reports the end.';

CREATE OR REPLACE FUNCTION pulse_tap.any_handler() RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT EXISTS (SELECT FROM pulse.task AS t WHERE to_regprocedure(t.handler) IS NOT NULL);
$$;
COMMENT ON FUNCTION pulse_tap.any_handler() IS
  'For the kit itself: returns whether a task has a function.';

-- A superuser runs no function by which another role could gain the superuser's rights. So where
-- all functions are of that kind a test would pass without having run a job.
CREATE OR REPLACE FUNCTION pulse_tap.served_tasks(tasks text[], as_role name) RETURNS text[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET jit = off AS $$
DECLARE
  own_role CONSTANT text := pg_catalog.current_setting('role');
  role_name text := COALESCE(as_role::text, NULLIF(own_role, 'none'), session_user::text);
  served text[];
  unserved text;
BEGIN
  PERFORM pg_catalog.set_config('role', COALESCE(as_role::text, own_role), true);
  served := pulse.handler_tasks();
  PERFORM pg_catalog.set_config('role', own_role, true);
  unserved := (SELECT pg_catalog.min(t) FROM pg_catalog.unnest(tasks) AS t
                WHERE t <> ALL (served));
  IF unserved IS NOT NULL THEN
    RAISE EXCEPTION 'task % has no function that role % runs', pg_catalog.quote_literal(unserved),
        role_name USING
      ERRCODE = 'PU005',
      HINT = 'pulse.set_task(identifier, handler => ...) gives it one, drain(as_role => ...) runs '
             'those of the role of your workers, and run_job() plays any task.';
  ELSIF tasks IS NULL AND served = '{}' AND pulse_tap.any_handler() THEN
    RAISE EXCEPTION 'role % runs no function of any task', role_name USING
      ERRCODE = 'insufficient_privilege',
      HINT = 'drain(as_role => ...) runs them as the role of your workers does.';
  END IF;
  RETURN COALESCE(tasks, served);
END $$;
COMMENT ON FUNCTION pulse_tap.served_tasks(text[], name) IS
  'For the kit itself: returns the tasks that drain() serves. Raises PU005 for a task without a '
  'function that this role may run, 42501 where there are functions and the role may run none.';

CREATE OR REPLACE FUNCTION pulse_tap.drain(
    tasks text[] = NULL, max_jobs int = NULL, as_role name = NULL)
  RETURNS TABLE (job_id bigint, identifier text, attempt smallint, state text, error text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10 AS $$
DECLARE
  most CONSTANT int := 10000;
  served text[];
  job pulse.claimed_job;
  played int := 0;
BEGIN
  PERFORM pulse_tap.require_test('drain()');
  served := pulse_tap.served_tasks(tasks, as_role);
  PERFORM pulse_tap.check_constraints();
  PERFORM pulse_tap.sweep_due();
  WHILE played < COALESCE(max_jobs, most) LOOP
    job := pulse_tap.claim_next(served);
    EXIT WHEN job.id IS NULL;
    played := played + 1;
    SELECT p.state, p.error INTO drain.state, drain.error
      FROM pulse_tap.play(job, NULL, as_role) AS p;
    job_id := job.id;
    identifier := job.identifier;
    attempt := job.attempts;
    RETURN NEXT;
  END LOOP;
  IF max_jobs IS NULL AND played = most THEN
    RAISE EXCEPTION 'drain() has run % jobs, and more may be due', most USING
      ERRCODE = 'PU004', HINT = 'Does a job add itself again? max_jobs ends the run earlier.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_tap.drain(text[], int, name) IS
  'Runs the due jobs of these tasks, one after the other in the order of a claim, until no job is '
  'left or max_jobs have run, and returns the outcome of each job. NULL means all tasks whose '
  'handler is a function that this role may run; the jobs may add others, which run too. Before '
  'the first job the function does the work of a sweep: lost workers, schedules, expiry. A '
  'function that raises an error fails the attempt, as under pulse-worker; travel() beyond the '
  'backoff and drain() again give the job the next attempt. as_role: the role that runs the '
  'functions, as the role of the workers does in production; NULL means the role of the test. '
  'as_role needs the rights of a worker. Raises PU004 after 10,000 jobs without max_jobs, PU005 '
  'for a task without a function, PU006 outside a transaction block, 42501 where there are '
  'functions and the role runs none.';

CREATE OR REPLACE FUNCTION pulse_tap.claim_one(job_id bigint) RETURNS pulse.claimed_job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  answer record;
BEGIN
  PERFORM pulse_tap.promote();
  SELECT c.reason, c.job INTO answer
    FROM pulse.claim_job(pulse_tap.own_worker(), claim_one.job_id) AS c;
  IF answer.reason <> 'claimed' THEN
    RAISE EXCEPTION 'job % cannot run: it is %', coalesce(claim_one.job_id::text, 'NULL'),
        answer.reason USING
      ERRCODE = CASE answer.reason WHEN 'unknown' THEN 'PU005'
                  ELSE 'object_not_in_prerequisite_state' END,
      HINT = CASE answer.reason
        WHEN 'future' THEN 'pulse_tap.travel() goes to the time at which it is due.'
        WHEN 'parked' THEN 'pulse.explain_job() tells what it waits for.'
        WHEN 'running' THEN 'Another worker has it; pulse_tap.lose_worker() recovers it.'
        ELSE 'Use the id of a job that waits.' END;
  END IF;
  RETURN answer.job;
END $$;
COMMENT ON FUNCTION pulse_tap.claim_one(bigint) IS
  'For the kit itself: claims this job. Raises PU005 for an unknown one, 55000 for one that cannot '
  'run.';

CREATE OR REPLACE FUNCTION pulse_tap.check_player(played_by regprocedure) RETURNS void
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_handler(played_by);
END $$;
COMMENT ON FUNCTION pulse_tap.check_player(regprocedure) IS
  'For the kit itself: raises PU004 for a function that cannot play a job.';

CREATE OR REPLACE FUNCTION pulse_tap.run_job(job_id bigint, played_by regprocedure = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
  job pulse.claimed_job;
  state text;
BEGIN
  PERFORM pulse_tap.require_test('run_job()');
  PERFORM pulse_tap.check_player(played_by);
  PERFORM pulse_tap.check_constraints();
  job := pulse_tap.claim_one(run_job.job_id);
  IF played_by IS NULL THEN
    PERFORM pulse_tap.served_tasks(ARRAY[job.identifier], NULL);
  END IF;
  SELECT p.state INTO state FROM pulse_tap.play(job, played_by, NULL) AS p;
  RETURN state;
END $$;
COMMENT ON FUNCTION pulse_tap.run_job(bigint, regprocedure) IS
  'Runs one attempt of a job that waits and is due, of any task, and returns the state that the '
  'job has then. played_by: the function that takes the place of the task, called as a handler '
  'is; NULL means the handler of the task. Needs the rights of a worker. Raises PU004 for a '
  'function that cannot take a job, PU005 for an unknown job or a task without a handler, PU006 '
  'outside a transaction block, 55000 for a job that cannot run now.';
