-- Six kinds of role and their rights. The rights of a kind stand here once; granting, revoking and
-- the tests read the lists. The functions run with the caller's rights, so a grant needs the
-- owner's rights.

CREATE OR REPLACE FUNCTION pulse_internal.functions_of(kind text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ARRAY['now', 'version'] || CASE kind
    WHEN 'producer' THEN ARRAY[
      'add_dependency', 'add_flow', 'add_job', 'add_job_after', 'add_job_for_request',
      'add_job_once', 'add_jobs', 'forget_once', 'remove_job']
    WHEN 'caller' THEN ARRAY['ended', 'wait_for_end']
    WHEN 'worker' THEN ARRAY[
      'attach_worker', 'call_handler', 'check_host', 'claim', 'claim_job', 'complete',
      'complete_many', 'declare_lost', 'deregister_worker', 'fail', 'fail_late', 'fail_many',
      'fence', 'get_job', 'handler_tasks', 'heartbeat', 'held', 'held_job', 'perform_job',
      'progress', 'register_worker', 'release', 'serve_tasks', 'snooze', 'sweep', 'task_limits',
      'wait_for_job']
    WHEN 'operator' THEN ARRAY[
      'adopt_installation', 'cancel_flow', 'cancel_job', 'complete_jobs', 'cron_setup_sql',
      'declare_lost', 'delete_finished', 'drain_worker', 'drain_workers', 'force_unlock_workers',
      'forget_once', 'note_operation', 'pause_queue', 'permanently_fail_jobs', 'preview_operation',
      'requeue_job', 'reschedule_jobs', 'resume_queue', 'retry_job', 'run_operation', 'run_tick',
      'set_queue', 'set_shard', 'set_task', 'start_operation', 'stop_operation', 'stop_worker',
      'stop_workers', 'sweep', 'tick', 'undo_operation', 'unset_queue', 'unset_task', 'verify']
    WHEN 'scheduler' THEN ARRAY[
      'cron_runs', 'load_crontab', 'next_runs', 'pause_schedule', 'resume_schedule',
      'run_schedule_now', 'schedule', 'unschedule']
    ELSE '{}' END
  -- A view calls functions with the rights of the role that reads the view.
  || CASE WHEN kind IN ('operator', 'observer') THEN ARRAY[
      'count_jobs', 'doctor', 'explain_job', 'explain_task', 'flow_jobs', 'get_job', 'job_attempts',
      'list_ended_jobs', 'list_failures', 'list_flows', 'list_jobs', 'list_unique_keys',
      'next_runs',
      'pulse_internal.attachment_state',
      'pulse_internal.ended_live_us', 'pulse_internal.first_id', 'pulse_internal.interval',
      'pulse_internal.is_attached', 'pulse_internal.is_missing', 'pulse_internal.is_silent',
      'pulse_internal.least_threshold_us', 'pulse_internal.live_now_us',
      'pulse_internal.loss_cause', 'pulse_internal.running_ids', 'pulse_internal.setting_us',
      'pulse_internal.shard_of', 'pulse_internal.status_of', 'pulse_internal.told_number',
      'pulse_internal.us', 'operation_actions', 'overview', 'queue_status',
      'rate_histogram', 'rate_history', 'rates', 'read_job', 'recoveries', 'stats', 'unserved']
    END
  || CASE WHEN kind IN ('producer', 'operator', 'observer')
      THEN ARRAY['_private_flags', '_private_id', '_private_row'] END
  -- Of pg_pulse_citus, what its functions of each kind call with the rights of the caller.
  || CASE WHEN kind IN ('producer', 'caller', 'scheduler', 'operator') THEN ARRAY[
      '_private_call', '_private_group', '_private_is_here', '_private_job', '_private_perform',
      '_private_refuse', '_private_send', '_private_table', '_private_text',
      '_private_version'] END
  || CASE WHEN kind IN ('producer', 'caller', 'worker', 'operator', 'observer') THEN ARRAY[
      '_private_ask', '_private_ask_one', '_private_group', '_private_nodes', 'node_of'] END
  || CASE kind WHEN 'scheduler' THEN ARRAY[
      '_private_require_coordinator', '_private_schedule_key', '_private_settle_schedule'] END
  || CASE WHEN kind IN ('operator', 'observer') THEN ARRAY[
      '_private_findings', '_private_table'] END;
COMMENT ON FUNCTION pulse_internal.functions_of(text) IS
  'Returns the functions that a kind of role may execute; functions outside of schema pulse with '
  'the schema. Functions of the same names in schemas graphile_worker and pulse_citus are meant '
  'too.';

-- No view shows a payload, an error of a job or a token; the tables do, and so do the functions
-- that show whole jobs.
CREATE OR REPLACE FUNCTION pulse_internal.relations_of(kind text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN kind IN ('operator', 'observer')
           THEN ARRAY['ended_by_hour', 'ended_jobs', 'flows', 'operations', 'overview',
                      'queue_rates', 'queue_settings', 'queue_status', 'running_jobs', 'schedules',
                      'settings', 'stale', 'stats', 'task_rates', 'task_settings', 'unserved',
                      'waiting_for', 'worker_status']
           WHEN kind = 'scheduler' THEN ARRAY['schedules'] ELSE '{}' END
      || CASE WHEN kind = 'operator' THEN ARRAY[
           'attempt', 'counter', 'dependency', 'finished_job', 'flow', 'flow_job', 'heartbeat',
           'id_gap', 'idempotency_key', 'installation', 'job', 'operation', 'operation_job',
           'queue', 'queue_pause', 'queue_rate', 'remembered_key', 'schedule', 'superseded_job',
           'task', 'worker',
           'graphile_worker._private_jobs'] END
      || CASE WHEN kind IN ('producer', 'operator', 'observer')
           THEN ARRAY['graphile_worker.migrations'] END
      || CASE WHEN kind IN ('producer', 'caller', 'scheduler', 'operator')
           THEN ARRAY['_private_placement'] END
      || CASE WHEN kind IN ('operator', 'observer')
           THEN ARRAY['graphile_worker.jobs', 'graphile_worker._private_job_queues',
                      'graphile_worker._private_known_crontabs',
                      'graphile_worker._private_tasks'] END;
COMMENT ON FUNCTION pulse_internal.relations_of(text) IS
  'Returns the tables and views that a kind of role may read; relations outside of schema pulse '
  'with the schema.';

-- A role needs the types to declare variables in its functions, not to call functions of pg_pulse.
CREATE OR REPLACE FUNCTION pulse_internal.types_of(kind text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE kind
    WHEN 'producer' THEN ARRAY['job_spec', 'job_state']
    WHEN 'caller' THEN ARRAY['finished_state']
    WHEN 'worker' THEN ARRAY['claimed_job', 'job_outcome']
    WHEN 'operator' THEN ARRAY['finished_state', 'job_state']
    WHEN 'scheduler' THEN ARRAY['job_state']
    ELSE '{}' END;
COMMENT ON FUNCTION pulse_internal.types_of(text) IS
  'Returns the types that a kind of role may use.';

CREATE OR REPLACE FUNCTION pulse_internal.schemas_of(kind text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ARRAY['pulse', 'pulse_citus']
      || CASE WHEN kind IN ('operator', 'observer') THEN ARRAY['pulse_internal'] END
      || CASE WHEN kind IN ('producer', 'operator', 'observer') THEN ARRAY['graphile_worker'] END;
COMMENT ON FUNCTION pulse_internal.schemas_of(text) IS
  'Returns the schemas whose objects a kind of role may name.';

-- Only members of the extension, and of those with Graphile Worker's names and for Citus: the query
-- leaves out an object that another role put into a schema. The query recognises a kind by a
-- function or view that only this kind has, where an operator has all that an observer has.
CREATE OR REPLACE FUNCTION pulse_internal.rights()
  RETURNS TABLE (class text, id oid, acl aclitem[], kind text, privilege text, is_telling boolean)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 600 SET search_path = pg_catalog, pg_temp
  -- An index lookup for each member reads more than the catalogues have.
  SET enable_nestloop = off SET jit = off BEGIN ATOMIC
  WITH member AS MATERIALIZED (
    SELECT d.classid, d.objid FROM pg_depend AS d, pg_extension AS e
     WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
       AND e.extname::text IN ('pg_pulse', 'pg_pulse_citus', 'pg_pulse_graphile')
  ), object AS (
    -- PUBLIC may use a function that has no list of rights of its own.
    SELECT 'ROUTINE' AS class, p.oid AS id, p.pronamespace::regnamespace::text AS home,
           p.proname::text AS name, coalesce(p.proacl, acldefault('f', p.proowner)) AS acl
      FROM member AS m, pg_proc AS p
     WHERE m.classid = 'pg_proc'::regclass AND p.oid = m.objid
    UNION ALL
    SELECT 'TABLE', c.oid, c.relnamespace::regnamespace::text, c.relname::text, c.relacl
      FROM member AS m, pg_class AS c
     WHERE m.classid = 'pg_class'::regclass AND c.oid = m.objid
    UNION ALL
    SELECT 'TYPE', t.oid, '', t.typname::text, t.typacl FROM member AS m, pg_type AS t
     WHERE m.classid = 'pg_type'::regclass AND t.oid = m.objid
    UNION ALL
    SELECT 'SCHEMA', n.oid, '', n.oid::regnamespace::text, n.nspacl
      FROM (SELECT 'pulse'::regnamespace UNION ALL
            SELECT m.objid FROM member AS m WHERE m.classid = 'pg_namespace'::regclass) AS h (id)
      JOIN pg_namespace AS n ON n.oid = h.id
  ), named (kind, privilege, class, name) AS (
    SELECT k.kind, n.privilege, n.class, unnest(n.names)
      FROM unnest(ARRAY['producer', 'caller', 'worker', 'scheduler', 'operator', 'observer'])
             AS k (kind),
           LATERAL (VALUES
             ('EXECUTE', 'ROUTINE', pulse_internal.functions_of(k.kind)),
             ('SELECT', 'TABLE', pulse_internal.relations_of(k.kind)),
             ('USAGE', 'TYPE', pulse_internal.types_of(k.kind)),
             ('USAGE', 'SCHEMA', pulse_internal.schemas_of(k.kind)),
             -- The cleanup of Graphile Worker deletes there; triggers decide which rows go.
             ('DELETE', 'TABLE', CASE k.kind WHEN 'operator' THEN ARRAY[
               'graphile_worker._private_jobs', 'graphile_worker._private_job_queues',
               'graphile_worker._private_tasks'] END)) AS n (privilege, class, names)
  )
  SELECT o.class, o.id, o.acl, n.kind, n.privilege,
         o.home = 'pulse' AND o.name = CASE n.kind
           WHEN 'producer' THEN 'add_job' WHEN 'caller' THEN 'wait_for_end'
           WHEN 'worker' THEN 'claim' WHEN 'scheduler' THEN 'schedule'
           WHEN 'operator' THEN 'retry_job' ELSE 'worker_status' END
    FROM object AS o LEFT JOIN named AS n ON n.class = o.class AND n.name = CASE
           WHEN o.home = 'pulse_internal' OR o.home = 'graphile_worker' AND o.class = 'TABLE'
             THEN o.home || '.' || o.name
           ELSE o.name END;
END;
COMMENT ON FUNCTION pulse_internal.rights() IS
  'Returns each object of the extension with its list of rights, and each kind of role (producer, '
  'caller, worker, scheduler, operator or observer) that has a right on it. A role with a telling '
  'privilege is of that kind.';

-- The name as the server prints it, quoted where needed.
CREATE OR REPLACE FUNCTION pulse_internal.object_name(class text, id oid) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN CASE class WHEN 'ROUTINE' THEN id::regprocedure::text WHEN 'TABLE' THEN id::regclass::text
           WHEN 'TYPE' THEN id::regtype::text ELSE id::regnamespace::text END;
COMMENT ON FUNCTION pulse_internal.object_name(text, oid) IS
  'Returns the name of an object of a class: ROUTINE, TABLE, TYPE or SCHEMA.';

CREATE OR REPLACE FUNCTION pulse_internal.kinds_of(role regrole) RETURNS text[]
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(array_agg(DISTINCT r.kind), '{}')
    FROM pulse_internal.rights() AS r, LATERAL aclexplode(r.acl) AS a
   WHERE r.is_telling AND a.grantee = role AND a.privilege_type = r.privilege;
$$;
COMMENT ON FUNCTION pulse_internal.kinds_of(regrole) IS
  'Returns the kinds that were granted to this role itself.';

CREATE OR REPLACE FUNCTION pulse_internal.check_grant(role regrole) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
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
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  entry record;
BEGIN
  PERFORM pulse_internal.check_grant(role);
  -- The server prints the objects and the role, quoted where needed.
  FOR entry IN
    SELECT r.privilege, r.class, r.id FROM pulse_internal.rights() AS r
     WHERE r.kind = "grant".kind
  LOOP
    EXECUTE format('GRANT %s ON %s %s TO %s', entry.privilege, entry.class,
                   pulse_internal.object_name(entry.class, entry.id), role);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.grant(text, regrole) IS 'Grants a role the rights of a kind.';

-- A right that another kind of the same role needs stays.
CREATE OR REPLACE FUNCTION pulse_internal.revoke(kind text, role regrole) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  entry record;
BEGIN
  PERFORM pulse_internal.check_grant(role);
  FOR entry IN
    SELECT r.privilege, r.class, r.id FROM pulse_internal.rights() AS r
     WHERE r.kind = revoke.kind
    EXCEPT
    SELECT r.privilege, r.class, r.id FROM pulse_internal.rights() AS r
     WHERE r.kind IN (SELECT unnest(pulse_internal.kinds_of(role)))
       AND r.kind <> revoke.kind AND (r.kind <> 'observer' OR revoke.kind <> 'operator')
  LOOP
    EXECUTE format('REVOKE %s ON %s %s FROM %s', entry.privilege, entry.class,
                   pulse_internal.object_name(entry.class, entry.id), role);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.revoke(text, regrole) IS
  'Revokes from a role the rights of a kind, except the rights that other kinds of the role have '
  'too.';

CREATE OR REPLACE FUNCTION pulse.grant_producer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.grant('producer', role);
$$;
COMMENT ON FUNCTION pulse.grant_producer(regrole) IS
  'Lets a role add jobs and remove jobs by key. Repeat the call after an upgrade, because a new '
  'version may have more functions. Raises 42501 unless the caller owns pg_pulse, 42704 for an '
  'unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_producer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.revoke('producer', role);
$$;
COMMENT ON FUNCTION pulse.revoke_producer(regrole) IS
  'Takes back the rights that grant_producer gave, except rights that the role''s other kinds '
  'need. Raises 42501 and 42704 as grant_producer does.';

CREATE OR REPLACE FUNCTION pulse.grant_caller(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.grant('caller', role);
$$;
COMMENT ON FUNCTION pulse.grant_caller(regrole) IS
  'Lets a role wait for the end of jobs and read how the jobs ended, with results and errors. Ids '
  'follow each other, so the role can read the results of every producer. Repeat the call after '
  'an upgrade, because a new version may have more functions. Raises 42501 unless the caller owns '
  'pg_pulse, 42704 for an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_caller(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.revoke('caller', role);
$$;
COMMENT ON FUNCTION pulse.revoke_caller(regrole) IS
  'Takes back the rights that grant_caller gave, except rights that the role''s other kinds need. '
  'Raises 42501 and 42704 as grant_caller does.';

CREATE OR REPLACE FUNCTION pulse.grant_worker(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.grant('worker', role);
$$;
COMMENT ON FUNCTION pulse.grant_worker(regrole) IS
  'Lets a role run jobs: the role may call the functions that pulse-worker calls, and the '
  'functions that workers in other languages need. Repeat the call after an upgrade, because a '
  'new version may have more functions. Raises 42501 unless the caller owns pg_pulse, 42704 for '
  'an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_worker(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.revoke('worker', role);
$$;
COMMENT ON FUNCTION pulse.revoke_worker(regrole) IS
  'Takes back the rights that grant_worker gave, except rights that the role''s other kinds need. '
  'Raises 42501 and 42704 as grant_worker does.';

CREATE OR REPLACE FUNCTION pulse.grant_operator(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.grant('operator', role);
$$;
COMMENT ON FUNCTION pulse.grant_operator(regrole) IS
  'Lets a role control queues, jobs and workers, and read every table, payloads included. Repeat '
  'the call after an upgrade, because a new version may have more functions. Raises 42501 unless '
  'the caller owns pg_pulse, 42704 for an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_operator(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.revoke('operator', role);
$$;
COMMENT ON FUNCTION pulse.revoke_operator(regrole) IS
  'Takes back the rights that grant_operator gave, except rights that the role''s other kinds '
  'need. Raises 42501 and 42704 as grant_operator does.';

CREATE OR REPLACE FUNCTION pulse.grant_observer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.grant('observer', role);
$$;
COMMENT ON FUNCTION pulse.grant_observer(regrole) IS
  'Lets a role read the views, which show neither payloads nor tokens. Repeat the call after an '
  'upgrade, because a new version may have more functions. Raises 42501 unless the caller owns '
  'pg_pulse, 42704 for an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_observer(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.revoke('observer', role);
$$;
COMMENT ON FUNCTION pulse.revoke_observer(regrole) IS
  'Takes back the rights that grant_observer gave, except rights that the role''s other kinds '
  'need. Raises 42501 and 42704 as grant_observer does.';

CREATE OR REPLACE FUNCTION pulse.grant_scheduler(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.grant('scheduler', role);
$$;
COMMENT ON FUNCTION pulse.grant_scheduler(regrole) IS
  'Lets a role create, change and delete schedules, whose jobs may be of any task: sweeps add the '
  'jobs with the rights of the extension''s owner. Repeat the call after an upgrade, because a '
  'new version may have more functions. Raises 42501 unless the caller owns pg_pulse, 42704 for '
  'an unknown role.';

CREATE OR REPLACE FUNCTION pulse.revoke_scheduler(role regrole) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT pulse_internal.revoke('scheduler', role);
$$;
COMMENT ON FUNCTION pulse.revoke_scheduler(regrole) IS
  'Takes back the rights that grant_scheduler gave, except rights that the role''s other kinds '
  'need. Raises 42501 and 42704 as grant_scheduler does.';
