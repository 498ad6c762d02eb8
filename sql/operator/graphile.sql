-- Moving in from Graphile Worker. The functions run with the caller's rights, and the caller must
-- have the rights of both owners: the functions read and delete rows of tables that another
-- extension did not make.

CREATE OR REPLACE FUNCTION pulse_internal.hold_schema(name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_hold_schema';
COMMENT ON FUNCTION pulse_internal.hold_schema(text) IS
  'Keeps a schema from being renamed until the transaction ends; false where there is none.';

CREATE OR REPLACE FUNCTION pulse_internal.graphile_columns(name text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE name
    WHEN '_private_tasks' THEN ARRAY['id', 'identifier']
    WHEN '_private_job_queues' THEN ARRAY['id', 'queue_name', 'locked_at', 'locked_by']
    WHEN '_private_known_crontabs' THEN ARRAY['identifier', 'last_execution']
    ELSE ARRAY['id', 'job_queue_id', 'task_id', 'payload', 'priority', 'run_at', 'attempts',
               'max_attempts', 'last_error', 'created_at', 'updated_at', 'key', 'locked_at',
               'locked_by', 'revision', 'flags'] END;
COMMENT ON FUNCTION pulse_internal.graphile_columns(text) IS
  'Returns the columns that are read of a table of Graphile Worker.';

-- The owner of the old schema may be the application's role, and the caller a superuser. A planner
-- evaluates functions of constants in expressions of indexes, constraints and statistics; functions
-- of the owner of a type print and cast a value of the type; a foreign key fires triggers. The
-- objects that Graphile Worker makes itself (row security without policies, generated columns,
-- defaults, identities, triggers of INSERT) run no code of another role here.
CREATE OR REPLACE FUNCTION pulse_internal.foreign_code(relation regclass, columns text[])
  RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
BEGIN ATOMIC
  WITH part (classid, objid) AS (
    SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index AS i WHERE i.indrelid = relation
    UNION ALL
    SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c WHERE c.conrelid = relation
    UNION ALL
    SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext AS s
     WHERE s.stxrelid = relation
  )
  SELECT f.fault FROM (
    SELECT 1 AS ord, pg_describe_object('pg_class'::regclass, c.oid, 0)
             || ', which is no ordinary table' AS fault
      FROM pg_class AS c WHERE c.oid = relation AND c.relkind <> 'r'
    UNION ALL
    SELECT 2, pg_describe_object('pg_class'::regclass, i.inhrelid, 0) || ', which inherits from it'
      FROM pg_inherits AS i WHERE i.inhparent = relation
    UNION ALL
    SELECT 3, CASE WHEN t.tgisinternal AND t.tgconstraint <> 0
                THEN pg_describe_object('pg_constraint'::regclass, t.tgconstraint, 0)
                ELSE pg_describe_object('pg_trigger'::regclass, t.oid, 0) END
      FROM pg_trigger AS t
     WHERE t.tgrelid = relation AND t.tgtype & 8 <> 0 AND t.tgenabled <> 'D'
    UNION ALL
    SELECT 4, pg_describe_object('pg_rewrite'::regclass, r.oid, 0) FROM pg_rewrite AS r
     WHERE r.ev_class = relation AND r.ev_type IN ('1', '4') AND r.ev_enabled <> 'D'
    UNION ALL
    SELECT 5, pg_describe_object('pg_policy'::regclass, p.oid, 0) FROM pg_policy AS p
     WHERE p.polrelid = relation
    UNION ALL
    SELECT 6, format('%s of type %s', pg_describe_object('pg_class'::regclass, relation, a.attnum),
                     a.atttypid::regtype)
      FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
     WHERE a.attrelid = relation AND a.attname = ANY (columns)
       AND (t.typnamespace <> 'pg_catalog'::regnamespace OR t.typtype <> 'b')
    UNION ALL
    SELECT 7, format('%s, which uses %s', pg_describe_object(p.classid, p.objid, 0),
                     pg_describe_object(d.refclassid, d.refobjid, 0))
      FROM part AS p JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid
     -- The server's own objects leave no row here.
     WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass,
                            'pg_opclass'::regclass)
  ) AS f ORDER BY f.ord, f.fault LIMIT 1;
END;
COMMENT ON FUNCTION pulse_internal.foreign_code(regclass, text[]) IS
  'Returns the object that lets a query of these columns of a relation, or a DELETE of rows, run '
  'code of another role; NULL where no object does. Holds true while the caller locks the '
  'relation.';

CREATE OR REPLACE FUNCTION pulse_internal.check_graphile(home text, name text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  relation regclass := to_regclass(quote_ident(home) || '.' || quote_ident(name));
  fault text := pulse_internal.foreign_code(relation, pulse_internal.graphile_columns(name));
BEGIN
  IF relation IS NULL THEN
    RAISE EXCEPTION 'schema % has no jobs of Graphile Worker', coalesce(quote_ident(home), 'NULL')
      USING ERRCODE = 'PU005', DETAIL = format('It has no table %s.', name),
      HINT = 'Its tables must be those of 0.14 or later: graphile-worker --schema-only makes them.';
  ELSIF fault IS NOT NULL THEN
    RAISE EXCEPTION 'the move from % would run code of another role', relation USING
      ERRCODE = 'insufficient_privilege', DETAIL = format('There is %s.', fault),
      HINT = 'Graphile Worker has no such thing. Drop it, or disable the trigger or rule, for the '
             'time of the move.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_graphile(text, text) IS
  'Raises PU005 where the schema has no such table of Graphile Worker, 42501 where reading the '
  'table or deleting from it would run code that is not the server''s.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_graphile(home text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off AS $$
DECLARE
  -- In the order in which the producers of Graphile Worker lock the tables.
  names text[] := '{_private_tasks,_private_job_queues,_private_jobs,_private_known_crontabs}';
  name text;
  held record;
BEGIN
  PERFORM pulse_internal.hold_schema(home);
  FOREACH name IN ARRAY names LOOP
    PERFORM pulse_internal.check_graphile(home, name);
  END LOOP;
  -- Neither workers nor producers of Graphile Worker write before this transaction ends, and no
  -- role adds a trigger, a rule, a policy, an index or a child, or changes a column.
  FOREACH name IN ARRAY names LOOP
    EXECUTE format('LOCK TABLE %I.%I IN EXCLUSIVE MODE', home, name);
  END LOOP;
  FOREACH name IN ARRAY names LOOP
    PERFORM pulse_internal.check_graphile(home, name);
  END LOOP;
  EXECUTE format(
    'SELECT count(*) AS locks, string_agg(DISTINCT l.locked_by, '', '') AS workers FROM ('
    'SELECT j.locked_by FROM %1$I._private_jobs AS j WHERE j.locked_at IS NOT NULL UNION ALL '
    'SELECT q.locked_by FROM %1$I._private_job_queues AS q WHERE q.locked_at IS NOT NULL) AS l',
    home) INTO held;
  IF held.locks > 0 THEN
    RAISE EXCEPTION 'workers of Graphile Worker hold % jobs and queues', held.locks USING
      ERRCODE = 'object_in_use', DETAIL = format('They are: %s.', held.workers),
      HINT = format('Stop them, so that their jobs end; of dead ones SELECT '
                    '%I.force_unlock_workers(...) gives the jobs back.', home);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.lock_graphile(text) IS
  'Locks the tables of Graphile Worker against writes until the transaction ends. Raises PU005 '
  'where the schema has no such tables, 42501 where the tables would run another role''s code, '
  '55006 while workers of Graphile Worker hold jobs.';

-- In the shape of our jobs, with the ids of Graphile Worker.
CREATE OR REPLACE FUNCTION pulse_internal.graphile_jobs(home text) RETURNS SETOF pulse.job
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off AS $$
DECLARE
  theirs record;
  job pulse.job;
BEGIN
  FOR theirs IN EXECUTE format(
    'SELECT j.id, j.payload, j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, '
    '  j.created_at, j.updated_at, j.key, j.revision, t.identifier, q.queue_name, '
    '  (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(j.flags) AS k) AS flag_names '
    '  FROM %1$I._private_jobs AS j JOIN %1$I._private_tasks AS t ON t.id = j.task_id '
    '  LEFT JOIN %1$I._private_job_queues AS q ON q.id = j.job_queue_id ORDER BY j.id', home)
  LOOP
    SELECT theirs.id, theirs.identifier, theirs.payload, theirs.queue_name, theirs.priority,
           theirs.run_at, theirs.attempts, theirs.max_attempts, theirs.key, theirs.flag_names,
           theirs.last_error, theirs.revision, theirs.created_at, theirs.updated_at
      INTO job.id, job.identifier, job.payload, job.queue_name, job.priority,
           job.run_at, job.attempts, job.max_attempts, job.job_key, job.flags,
           job.last_error, job.revision, job.created_at, job.updated_at;
    RETURN NEXT job;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.graphile_jobs(text) IS
  'Returns all jobs of Graphile Worker, in the order in which they were added.';

-- A failed job keeps its key as a mere note, so that a failed job never stands in the way.
CREATE OR REPLACE FUNCTION pulse_internal.graphile_spec(
    job pulse.job, OUT spec pulse.job_spec, OUT fault text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  spec := pulse_internal.checked_spec(ROW(
    job.identifier, job.payload, job.queue_name, job.run_at, job.max_attempts, job.job_key,
    job.priority, job.flags)::pulse.job_spec);
  IF job.attempts < job.max_attempts AND job.job_key IS NOT NULL
     AND EXISTS (SELECT FROM pulse.job AS j
                  WHERE j.job_key = graphile_spec.job.job_key
                    AND j.index_lane IN ('o', 'p', 'w')) THEN
    fault := 'a job that waits here has its job_key';
  END IF;
EXCEPTION WHEN SQLSTATE 'PU004' THEN
  fault := SQLERRM;
END $$;
COMMENT ON FUNCTION pulse_internal.graphile_spec(pulse.job) IS
  'Returns a job of Graphile Worker as pg_pulse would store it, or why pg_pulse cannot.';

CREATE OR REPLACE FUNCTION pulse_internal.take_graphile_job(theirs pulse.job, spec pulse.job_spec)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  latest timestamptz := spec.run_at + (SELECT t.expires_after FROM pulse.task AS t
                                        WHERE t.identifier = spec.identifier);
BEGIN
  IF theirs.attempts >= theirs.max_attempts THEN
    -- Graphile Worker lets max_attempts fall below the attempts that a job has used.
    INSERT INTO pulse.finished_job
      (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts,
       crashes, job_key, flags, last_error, revision, created_at, finished_at, added_by)
    VALUES (pulse_internal.next_id('pulse.job_id_seq'), spec.identifier, spec.payload,
            spec.queue_name, spec.priority, spec.run_at, 'failed', spec.max_attempts,
            spec.max_attempts, 0, spec.job_key, spec.flags, theirs.last_error, theirs.revision,
            theirs.created_at, pulse.now(), current_user);
    RETURN;
  END IF;
  INSERT INTO pulse.job
    (identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts, job_key,
     flags, last_error, revision, created_at, updated_at, start_by, added_by)
  VALUES (spec.identifier, spec.payload, spec.queue_name, spec.priority, spec.run_at,
          CASE WHEN spec.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state,
          theirs.attempts, spec.max_attempts, spec.job_key, spec.flags, theirs.last_error,
          theirs.revision, theirs.created_at, theirs.updated_at, latest, current_user);
  PERFORM pulse_internal.note_job(spec.identifier, spec.queue_name, spec.run_at);
  PERFORM pulse_internal.note_sweep_due(latest);
END $$;
COMMENT ON FUNCTION pulse_internal.take_graphile_job(pulse.job, pulse.job_spec) IS
  'Stores a waiting job of Graphile Worker, or a job that has failed for good.';

-- The rule of an item stands in the file that the workers of Graphile Worker read, not in the
-- database.
CREATE OR REPLACE FUNCTION pulse_internal.graphile_crontabs(
    home text, OUT items bigint, OUT detail text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off AS $$
BEGIN
  EXECUTE format(
    'SELECT count(*), ''give their file to pulse-worker --crontab, which starts them from then; ''
       || ''last executed: ''
       || string_agg(format(''%%s %%s'', c.identifier, coalesce(c.last_execution::text, ''never'')),
                     '', '' ORDER BY c.identifier) FROM %I._private_known_crontabs AS c', home)
    INTO items, detail;
END $$;
COMMENT ON FUNCTION pulse_internal.graphile_crontabs(text) IS
  'Returns how many crontab items Graphile Worker knows, and when Graphile Worker last executed '
  'each.';

CREATE OR REPLACE FUNCTION pulse_internal.delete_graphile_jobs(home text, ids bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off AS $$
BEGIN
  EXECUTE format('DELETE FROM %I._private_jobs AS j WHERE j.id = ANY ($1)', home) USING ids;
END $$;
COMMENT ON FUNCTION pulse_internal.delete_graphile_jobs(text, bigint[]) IS
  'Deletes jobs of Graphile Worker whose tables are locked.';

CREATE OR REPLACE FUNCTION pulse.import_graphile_worker(
    schema text = 'graphile_worker', dry_run boolean = false)
  RETURNS TABLE (what text, outcome text, jobs bigint, detail text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  theirs pulse.job;
  checked record;
  waiting_ids bigint[] := '{}';
  failed_ids bigint[] := '{}';
  left_ids bigint[] := '{}';
  faults text[] := '{}';
BEGIN
  PERFORM pulse_internal.require_read_committed('import_graphile_worker');
  PERFORM pulse_internal.check_given('dry_run', dry_run IS NOT NULL, 'Use true or false.');
  PERFORM pulse_internal.lock_graphile(schema);
  FOR theirs IN SELECT * FROM pulse_internal.graphile_jobs(schema) LOOP
    PERFORM pulse_internal.lock_key(theirs.job_key, current_user::text);
    checked := pulse_internal.graphile_spec(theirs);
    IF checked.fault IS NOT NULL THEN
      left_ids := left_ids || theirs.id;
      faults := faults || checked.fault;
    ELSIF theirs.attempts >= theirs.max_attempts THEN
      failed_ids := failed_ids || theirs.id;
    ELSE
      waiting_ids := waiting_ids || theirs.id;
    END IF;
    IF checked.fault IS NULL AND NOT dry_run THEN
      PERFORM pulse_internal.take_graphile_job(theirs, checked.spec);
    END IF;
    PERFORM pulse_internal.unlock_key(theirs.job_key);
  END LOOP;
  IF NOT dry_run THEN
    PERFORM pulse_internal.delete_graphile_jobs(schema, waiting_ids || failed_ids);
  END IF;
  RETURN QUERY VALUES
    ('waiting jobs', 'taken', cardinality(waiting_ids)::bigint, NULL::text),
    ('failed jobs', 'taken', cardinality(failed_ids)::bigint, NULL);
  RETURN QUERY
    SELECT 'jobs', 'left there', count(*),
           format('%s: ids %s%s', l.fault,
                  array_to_string((array_agg(l.id ORDER BY l.id))[1:100], ', '),
                  CASE WHEN count(*) > 100 THEN ', ...' ELSE '' END)
      FROM unnest(left_ids, faults) AS l (id, fault) GROUP BY l.fault ORDER BY l.fault;
  RETURN QUERY
    SELECT 'crontab items', 'left there', c.items, c.detail
      FROM pulse_internal.graphile_crontabs(schema) AS c WHERE c.items > 0;
END $$;
COMMENT ON FUNCTION pulse.import_graphile_worker(text, boolean) IS
  'Moves the jobs of Graphile Worker (0.14 or later) in this schema here: payload, queue, '
  'priority, run_at, attempts, max_attempts, key, flags, last error. Jobs whose attempts are used '
  'up become failed jobs. Returns which jobs the call took and which jobs stay there, and why; '
  'dry_run => true returns the same and changes nothing. Producers and workers of Graphile Worker '
  'wait until the transaction ends. Needs the rights of both owners. Raises PU004 for a dry_run '
  'of NULL, PU005 where the schema has no such jobs, PU007 outside READ COMMITTED, 42501 where '
  'the tables would run another role''s code, 55006 while workers of Graphile Worker hold jobs or '
  'queues.';
