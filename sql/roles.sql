-- Six kinds of role and their rights. The rights of a kind stand here once; granting, revoking and
-- the tests read them. The functions run with the caller's rights, so a grant needs the owner's.

CREATE OR REPLACE FUNCTION pulse_internal.functions_of(kind text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ARRAY['now', 'version'] || CASE kind
    WHEN 'producer' THEN ARRAY[
      'add_dependency', 'add_flow', 'add_job', 'add_job_after', 'add_jobs', 'remove_job']
    WHEN 'caller' THEN ARRAY['ended', 'wait_for_end']
    WHEN 'worker' THEN ARRAY[
      'attach_worker', 'check_host', 'claim', 'claim_job', 'complete', 'complete_many',
      'declare_lost', 'deregister_worker', 'fail', 'fail_late', 'fail_many', 'fence', 'get_job',
      'handler_call', 'handler_tasks', 'heartbeat', 'held', 'held_job', 'perform_job', 'progress',
      'register_worker', 'release', 'snooze', 'sweep', 'wait_for_job']
    WHEN 'operator' THEN ARRAY[
      'adopt_installation', 'cancel_flow', 'cancel_job', 'complete_jobs', 'cron_setup_sql',
      'declare_lost', 'delete_finished', 'drain_worker', 'drain_workers', 'force_unlock_workers',
      'note_operation', 'pause_queue', 'permanently_fail_jobs', 'preview_operation', 'requeue_job',
      'reschedule_jobs', 'resume_queue', 'retry_job', 'run_operation', 'set_queue', 'set_task',
      'start_operation', 'stop_operation', 'stop_worker', 'stop_workers', 'sweep', 'tick',
      'undo_operation', 'unset_queue', 'unset_task', 'verify']
    WHEN 'scheduler' THEN ARRAY[
      'cron_runs', 'load_crontab', 'next_runs', 'pause_schedule', 'resume_schedule',
      'run_schedule_now', 'schedule', 'unschedule']
    ELSE '{}' END
  -- A view calls functions with the rights of the role that reads it.
  || CASE WHEN kind IN ('operator', 'observer') THEN ARRAY[
      'doctor', 'explain_job', 'explain_task', 'flow_jobs', 'get_job', 'job_attempts', 'list_flows',
      'list_jobs', 'pulse_internal.attachment_state',
      'pulse_internal.ended_live_us', 'pulse_internal.interval',
      'pulse_internal.least_threshold_us', 'pulse_internal.live_now_us',
      'pulse_internal.loss_cause', 'pulse_internal.running_ids', 'pulse_internal.setting_us',
      'pulse_internal.slots_of', 'pulse_internal.us', 'overview', 'queue_status',
      'rate_histogram', 'rate_history', 'rates', 'read_job', 'recoveries', 'stats', 'unserved']
    END;
$$;
COMMENT ON FUNCTION pulse_internal.functions_of(text) IS
  'Returns the functions that a kind of role may execute; those outside of schema pulse with '
  'their schema. Functions of the same names in schema graphile_worker are meant too.';

-- No view shows a payload, an error of a job or a token; the tables do, and what shows them.
CREATE OR REPLACE FUNCTION pulse_internal.relations_of(kind text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN kind IN ('operator', 'observer')
           THEN ARRAY['ended_by_hour', 'ended_jobs', 'flows', 'operations', 'overview',
                      'queue_rates', 'queue_settings', 'queue_status', 'running_jobs', 'schedules',
                      'settings', 'stale', 'stats', 'task_rates', 'task_settings', 'unserved',
                      'waiting_for', 'worker_status']
           WHEN kind = 'scheduler' THEN ARRAY['schedules'] ELSE '{}' END
      || CASE WHEN kind = 'operator' THEN ARRAY[
           'attempt', 'counter', 'dependency', 'finished_job', 'flow', 'flow_job', 'heartbeat',
           'installation', 'job', 'operation', 'operation_job', 'queue', 'queue_pause',
           'queue_rate', 'schedule', 'task', 'worker', 'graphile_worker._private_jobs'] END
      || CASE WHEN kind IN ('producer', 'operator', 'observer')
           THEN ARRAY['graphile_worker.migrations'] END
      || CASE WHEN kind IN ('operator', 'observer')
           THEN ARRAY['graphile_worker.jobs', 'graphile_worker._private_job_queues',
                      'graphile_worker._private_known_crontabs',
                      'graphile_worker._private_tasks'] END;
$$;
COMMENT ON FUNCTION pulse_internal.relations_of(text) IS
  'Returns the tables and views that a kind of role may read; those outside of schema pulse with '
  'their schema.';

-- A role needs them to declare variables in its own functions, not to call those of pg_pulse.
CREATE OR REPLACE FUNCTION pulse_internal.types_of(kind text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE kind
    WHEN 'producer' THEN ARRAY['job_spec', 'job_state']
    WHEN 'caller' THEN ARRAY['finished_state']
    WHEN 'worker' THEN ARRAY['claimed_job', 'job_outcome']
    WHEN 'operator' THEN ARRAY['finished_state', 'job_state']
    WHEN 'scheduler' THEN ARRAY['job_state']
    ELSE '{}' END;
$$;
COMMENT ON FUNCTION pulse_internal.types_of(text) IS
  'Returns the types that a kind of role may use.';

CREATE OR REPLACE FUNCTION pulse_internal.rights_of(kinds text[])
  RETURNS TABLE (kind text, privilege text, object text, id oid)
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
  -- An index lookup for each member reads more than the catalogues have.
  SET enable_nestloop = off SET jit = off AS $$
  WITH known AS MATERIALIZED (
    SELECT k.kind, pulse_internal.functions_of(k.kind) AS functions,
           pulse_internal.relations_of(k.kind) AS relations,
           pulse_internal.types_of(k.kind) AS types
      FROM unnest(kinds) AS k (kind)
  ), member AS (
    -- Only members of the extension, and of the one that has Graphile Worker's names for it: an
    -- object that another role put into a schema is left out.
    SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
     WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
       AND e.extname IN ('pg_pulse', 'pg_pulse_graphile')
  ), routine AS MATERIALIZED (
    SELECT p.oid, n.nspname AS home, p.proname AS name
      FROM member AS m JOIN pg_proc AS p ON p.oid = m.objid AND m.classid = 'pg_proc'::regclass
      JOIN pg_namespace AS n ON n.oid = p.pronamespace
  ), relation AS MATERIALIZED (
    SELECT c.oid, CASE n.nspname WHEN 'pulse' THEN '' ELSE n.nspname || '.' END || c.relname AS name
      FROM member AS m JOIN pg_class AS c ON c.oid = m.objid AND m.classid = 'pg_class'::regclass
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'v')
  )
  SELECT k.kind, 'USAGE', 'SCHEMA pulse', 'pulse'::regnamespace::oid FROM known AS k
  UNION ALL
  SELECT k.kind, 'USAGE', 'SCHEMA pulse_internal', 'pulse_internal'::regnamespace FROM known AS k
   WHERE k.kind IN ('operator', 'observer')
  UNION ALL
  SELECT k.kind, 'USAGE', 'SCHEMA ' || m.objid::regnamespace, m.objid
    FROM known AS k CROSS JOIN member AS m
   WHERE m.classid = 'pg_namespace'::regclass AND m.objid::regnamespace::text = 'graphile_worker'
     AND k.kind IN ('producer', 'operator', 'observer')
  UNION ALL
  SELECT k.kind, 'EXECUTE', 'ROUTINE ' || r.oid::regprocedure, r.oid
    FROM known AS k CROSS JOIN routine AS r
   WHERE CASE r.home WHEN 'pulse_internal' THEN 'pulse_internal.' ELSE '' END || r.name
         = ANY (k.functions)
      OR r.home = 'graphile_worker' AND r.name IN ('_private_flags', '_private_id', '_private_row')
     AND k.kind IN ('producer', 'operator', 'observer')
  UNION ALL
  SELECT k.kind, 'SELECT', 'TABLE ' || r.oid::regclass, r.oid
    FROM known AS k JOIN relation AS r ON r.name = ANY (k.relations)
  UNION ALL
  -- The cleanup of Graphile Worker deletes there; triggers decide what goes.
  SELECT k.kind, 'DELETE', 'TABLE ' || r.oid::regclass, r.oid
    FROM known AS k CROSS JOIN relation AS r
   WHERE k.kind = 'operator'
     AND r.name IN ('graphile_worker._private_jobs', 'graphile_worker._private_job_queues',
                    'graphile_worker._private_tasks')
  UNION ALL
  SELECT k.kind, 'USAGE', 'TYPE ' || t.oid::regtype, t.oid
    FROM member AS m JOIN pg_type AS t ON t.oid = m.objid
    JOIN known AS k ON t.typname = ANY (k.types)
   WHERE m.classid = 'pg_type'::regclass;
$$;
COMMENT ON FUNCTION pulse_internal.rights_of(text[]) IS
  'Returns the rights of kinds of role: producer, caller, worker, scheduler, operator or '
  'observer.';

-- A kind is recognised by a function or view that only it has; an operator has all that an observer
-- has.
CREATE OR REPLACE FUNCTION pulse_internal.kinds_of(role regrole) RETURNS text[]
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(mark.kind), '{}')
    FROM (VALUES ('producer', 'add_job', NULL), ('caller', 'wait_for_end', NULL),
                 ('worker', 'claim', NULL),
                 ('scheduler', 'schedule', NULL), ('operator', 'retry_job', NULL),
                 ('observer', NULL, 'worker_status'))
         AS mark (kind, routine, relation)
   WHERE EXISTS (SELECT FROM pg_proc AS p, aclexplode(p.proacl) AS a
                  WHERE p.pronamespace = 'pulse'::regnamespace AND p.proname = mark.routine
                    AND a.grantee = role)
      OR EXISTS (SELECT FROM pg_class AS c, aclexplode(c.relacl) AS a
                  WHERE c.relnamespace = 'pulse'::regnamespace AND c.relname = mark.relation
                    AND a.grantee = role AND a.privilege_type = 'SELECT');
$$;
COMMENT ON FUNCTION pulse_internal.kinds_of(regrole) IS
  'Returns the kinds that were granted to this role itself.';

CREATE OR REPLACE FUNCTION pulse_internal.check_grant(role regrole) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension AS e
                  WHERE e.extname = 'pg_pulse' AND pg_has_role(e.extowner, 'USAGE')) THEN
    RAISE EXCEPTION 'only the owner of pg_pulse grants its rights' USING
      ERRCODE = 'insufficient_privilege', HINT = 'Ask a superuser.';
  ELSIF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = role) OR role IS NULL THEN
    RAISE EXCEPTION 'role % does not exist', coalesce(role::text, 'NULL') USING
      ERRCODE = 'undefined_object', HINT = 'CREATE ROLE makes one.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_grant(regrole) IS
  'Raises 42501 for a caller that does not own pg_pulse, 42704 for a role that does not exist.';

CREATE OR REPLACE FUNCTION pulse_internal.grant(kind text, role regrole) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  entry record;
BEGIN
  PERFORM pulse_internal.check_grant(role);
  -- The objects and the role are printed by the server, quoted where they need it.
  FOR entry IN SELECT * FROM pulse_internal.rights_of(ARRAY[kind]) LOOP
    EXECUTE format('GRANT %s ON %s TO %s', entry.privilege, entry.object, role);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.grant(text, regrole) IS 'Grants a role the rights of a kind.';

-- A right that another kind of the same role needs stays.
CREATE OR REPLACE FUNCTION pulse_internal.revoke(kind text, role regrole) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  entry record;
BEGIN
  PERFORM pulse_internal.check_grant(role);
  FOR entry IN
    SELECT r.privilege, r.object FROM pulse_internal.rights_of(ARRAY[revoke.kind]) AS r
    EXCEPT
    SELECT r.privilege, r.object
      FROM pulse_internal.rights_of(pulse_internal.kinds_of(role)) AS r
     WHERE r.kind <> revoke.kind AND (r.kind <> 'observer' OR revoke.kind <> 'operator')
  LOOP
    EXECUTE format('REVOKE %s ON %s FROM %s', entry.privilege, entry.object, role);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.revoke(text, regrole) IS
  'Revokes from a role the rights of a kind, except those that its other kinds have too.';

CREATE OR REPLACE FUNCTION pulse.grant_producer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.grant('producer', role);
$$;
COMMENT ON FUNCTION pulse.grant_producer(regrole) IS
  'Lets a role add jobs and remove them by key. Repeat it after an upgrade, because a new version '
  'may have more functions. Raises 42501 unless the caller owns pg_pulse, 42704 for an unknown '
  'role.';

CREATE OR REPLACE FUNCTION pulse.revoke_producer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.revoke('producer', role);
$$;
COMMENT ON FUNCTION pulse.revoke_producer(regrole) IS
  'Takes back what grant_producer gave, except what the role''s other kinds need. Raises 42501 '
  'and 42704 as grant_producer does.';

CREATE OR REPLACE FUNCTION pulse.grant_caller(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.grant('caller', role);
$$;
COMMENT ON FUNCTION pulse.grant_caller(regrole) IS
  'Lets a role wait for the end of jobs and read how they ended, with results and errors. Ids '
  'follow each other, so such a role can read the results of every producer. Repeat it after an '
  'upgrade, because a new version may have more functions. Raises 42501 unless the caller owns '
  'pg_pulse, 42704 for an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_caller(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.revoke('caller', role);
$$;
COMMENT ON FUNCTION pulse.revoke_caller(regrole) IS
  'Takes back what grant_caller gave, except what the role''s other kinds need. Raises 42501 and '
  '42704 as grant_caller does.';

CREATE OR REPLACE FUNCTION pulse.grant_worker(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.grant('worker', role);
$$;
COMMENT ON FUNCTION pulse.grant_worker(regrole) IS
  'Lets a role run jobs: it may call what pulse-worker calls, and what workers in other languages '
  'need. Repeat it after an upgrade, because a new version may have more functions. Raises 42501 '
  'unless the caller owns pg_pulse, 42704 for an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_worker(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.revoke('worker', role);
$$;
COMMENT ON FUNCTION pulse.revoke_worker(regrole) IS
  'Takes back what grant_worker gave, except what the role''s other kinds need. Raises 42501 and '
  '42704 as grant_worker does.';

CREATE OR REPLACE FUNCTION pulse.grant_operator(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.grant('operator', role);
$$;
COMMENT ON FUNCTION pulse.grant_operator(regrole) IS
  'Lets a role control queues, jobs and workers, and read every table, payloads included. Repeat '
  'it after an upgrade, because a new version may have more functions. Raises 42501 unless the '
  'caller owns pg_pulse, 42704 for an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_operator(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.revoke('operator', role);
$$;
COMMENT ON FUNCTION pulse.revoke_operator(regrole) IS
  'Takes back what grant_operator gave, except what the role''s other kinds need. Raises 42501 '
  'and 42704 as grant_operator does.';

CREATE OR REPLACE FUNCTION pulse.grant_observer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.grant('observer', role);
$$;
COMMENT ON FUNCTION pulse.grant_observer(regrole) IS
  'Lets a role read the views, which show neither payloads nor tokens. Repeat it after an '
  'upgrade, because a new version may have more functions. Raises 42501 unless the caller owns '
  'pg_pulse, 42704 for an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_observer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.revoke('observer', role);
$$;
COMMENT ON FUNCTION pulse.revoke_observer(regrole) IS
  'Takes back what grant_observer gave, except what the role''s other kinds need. Raises 42501 '
  'and 42704 as grant_observer does.';

CREATE OR REPLACE FUNCTION pulse.grant_scheduler(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.grant('scheduler', role);
$$;
COMMENT ON FUNCTION pulse.grant_scheduler(regrole) IS
  'Lets a role create, change and delete schedules, whose jobs may be of any task: sweeps add them '
  'with the rights of the extension''s owner. Repeat it after an upgrade, because a new version '
  'may have more functions. Raises 42501 unless the caller owns pg_pulse, 42704 for an unknown '
  'role.';

CREATE OR REPLACE FUNCTION pulse.revoke_scheduler(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse_internal.revoke('scheduler', role);
$$;
COMMENT ON FUNCTION pulse.revoke_scheduler(regrole) IS
  'Takes back what grant_scheduler gave, except what the role''s other kinds need. Raises 42501 '
  'and 42704 as grant_scheduler does.';
