-- Whatever stands before ours in the caller's search_path, temporary objects among it: every public
-- function does its work without touching any of it, at its first call in a session.
\ir support/setup.psql
SELECT plan(8);
\o /dev/null
\ir support/graphile_jobs.psql
\o

-- --- traps --------------------------------------------------------------------------------------

CREATE SCHEMA trap;
CREATE FUNCTION trap.spring() RETURNS void
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'ZZ001'; END $$;

-- A function of the server's in trap, with the same arguments and result.
CREATE FUNCTION set_trap(original pg_proc) RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION trap.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS %L',
    original.proname,
    (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n)
       FROM unnest(original.proargtypes) WITH ORDINALITY AS a (t, n)),
    CASE WHEN original.proretset THEN 'SETOF ' ELSE '' END,
    format_type(original.prorettype, NULL), 'BEGIN PERFORM trap.spring(); END');
  RETURN format('trap.%I', original.proname);
EXCEPTION WHEN invalid_function_definition OR feature_not_supported THEN
  RETURN NULL;  -- of types that no such function can have
END $$;
-- Every function whose name occurs in a body of ours; of an aggregate a plain function will do.
CREATE TEMP TABLE word AS
  SELECT DISTINCT m[1] AS word FROM pg_proc AS o,
    regexp_matches(concat(o.prosrc, pg_get_function_sqlbody(o.oid)), '\w+', 'g') AS m
   WHERE o.pronamespace = ANY ('{pulse,pulse_internal}'::regnamespace[]);
SELECT set_trap(p) FROM pg_proc AS p
 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a')
   AND p.proname IN (SELECT w.word FROM word AS w) \g /dev/null
-- Every operator on types that ours have to do with.
CREATE FUNCTION set_operator_trap(original pg_operator) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  arguments text := concat_ws(', ', nullif(original.oprleft, 0)::regtype,
                              original.oprright::regtype);
BEGIN
  EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L',
    'operator_' || original.oid, arguments, original.oprresult::regtype,
    'BEGIN PERFORM trap.spring(); END');
  EXECUTE format('CREATE OPERATOR trap.%s (%sRIGHTARG = %s, FUNCTION = trap.%I)', original.oprname,
    'LEFTARG = ' || nullif(original.oprleft, 0)::regtype || ', ', original.oprright::regtype,
    'operator_' || original.oid);
END $$;
SELECT set_operator_trap(o)
  FROM pg_operator AS o,
       (SELECT '{text,int2,int4,int8,bool,oid,name,float8,numeric,timestamptz,interval,json,
                 anyarray,anyenum,record}'::regtype[]) AS t (types)
 WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprresult <> 0
   AND (o.oprleft = 0 OR o.oprleft = ANY (t.types)) AND o.oprright = ANY (t.types) \g /dev/null
-- Tables, views and types of ours and of the server by their bare names.
SELECT format('CREATE TEMP TABLE %I ()', c.relname) FROM pg_class AS c
 WHERE c.relkind IN ('r', 'v') AND (c.relnamespace = ANY ('{pulse,pulse_internal}'::regnamespace[])
   OR c.relnamespace = 'pg_catalog'::regnamespace) \gexec
CREATE DOMAIN trap.text AS pg_catalog.int4 CHECK (VALUE > 0);
CREATE DOMAIN trap.interval AS pg_catalog.int4 CHECK (VALUE > 0);
CREATE DOMAIN trap.int8 AS pg_catalog.bool;

-- --- walking through them -----------------------------------------------------------------------

CREATE TEMP TABLE walked (call pg_catalog.text, code pg_catalog.text);
-- The first column of a statement, or the code with which it is refused.
CREATE FUNCTION walk(statement pg_catalog.text) RETURNS pg_catalog.text
  LANGUAGE plpgsql SET search_path = pg_temp, trap, pg_catalog AS $$
DECLARE
  answer pg_catalog.text;
BEGIN
  EXECUTE statement INTO answer;
  INSERT INTO pg_temp.walked VALUES (statement, '00000');
  RETURN answer;
EXCEPTION WHEN OTHERS THEN
  INSERT INTO pg_temp.walked VALUES (statement, SQLSTATE);
  RETURN SQLSTATE;
END $$;
SELECT is(walk('SELECT 1 = 1'), 'ZZ001', 'given a trap that catches operators');
SELECT is(walk('SELECT now()'), 'ZZ001', 'functions');
SELECT is(walk('SELECT count(payload) FROM job'), '42703', 'and tables');
TRUNCATE walked;

SELECT walk($$SELECT id FROM pulse.register_worker('ann', ARRAY['t'], '{"pid": 7}')$$) AS ann \gset
SELECT walk($$SELECT id FROM pulse.register_worker('bob')$$) AS bob \gset
SELECT walk(format(call, :ann)) FROM (VALUES
  ('SELECT pulse.attach_worker(%s)'),
  ('SELECT pulse.set_task(''t'', backoff => ''exponential'', backoff_base => ''1 s'', jitter => 0,
      timeout => ''1 min'', stall_timeout => ''1 min'', keep_completed => ''1 day'')'),
  ('SELECT pulse.set_task(''t'', handler => ''pg_catalog.json_typeof(pg_catalog.json)'')'),
  ('SELECT pulse.handler_tasks()'),
  ('SELECT pulse.set_queue(''q'', 2)'), ('SELECT pulse.pause_queue(''q'')'),
  ('SELECT pulse.resume_queue(''q'')'), ('SELECT pulse.queue_status()'),
  ('SELECT pulse.rate_history(''t'')'), ('SELECT pulse.rate_histogram(''t'')'),
  ('SELECT pulse.rates(''task'')'),
  ('SELECT pulse.unset_queue(''q'')'), ('SELECT pulse.unset_task(''u'')'),
  ('SELECT pulse.add_job(''t'', ''[1]'', ''q'', job_key => ''k'', flags => ''{f}'')'),
  ('SELECT pulse.add_job(''t'', ''[2]'', ''q'', job_key => ''k'', flags => ''{f}'')'),
  ('SELECT pulse.add_job(''t'', job_key => ''k'', job_key_mode => ''unsafe_dedupe'')'),
  ('SELECT pulse.add_jobs(ARRAY[(''t'', ''{}'', ''q'', NULL, NULL, ''l'', 1, NULL),
      (''t'', ''{}'', NULL, NULL, NULL, NULL, 1, NULL)]::pulse.job_spec[])'),
  ('SELECT pulse.add_jobs(ARRAY[(''t'', ''{}'', NULL, NULL, NULL, NULL, 1, NULL)]
      ::pulse.job_spec[])'),
  ('SELECT pulse.add_job(''t'')'), ('SELECT pulse.add_job(''t'')'),
  ('SELECT pulse.add_job_after(ARRAY[(pulse.add_job(''t'')).id], ''t'')'),
  ('SELECT pulse.add_job_after(''{}'', ''t'', job_key => ''k'')'),
  ('SELECT pulse.add_dependency((pulse.add_job(''t'', priority => 9)).id,
      ARRAY[(pulse.add_job(''t'', priority => 9)).id])'),
  ('SELECT pulse.add_flow(
      ''[{"key": "a", "identifier": "t"}, {"identifier": "t", "after": ["a"]}]'')'),
  ('SELECT pulse.cancel_flow((SELECT f.id FROM pulse.flow AS f))'),
  ('SELECT pulse.sweep()'), ('SELECT pulse.sweep(dry_run => true)')) AS c (call) \g /dev/null
CREATE FUNCTION claimed(worker int8, OUT job int8, OUT token int8)
  LANGUAGE plpgsql AS $$
BEGIN
  job := walk(format('SELECT id FROM pulse.claim(%s, forbidden_flags => ''{z}'')', worker));
  token := walk(format('SELECT token FROM pulse.held(%s) OFFSET 0', worker));
END $$;
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format(call, :ann, :job, :token)) FROM (VALUES
  ('SELECT pulse.heartbeat(%s, ARRAY[%s])'),
  ('SELECT pulse.progress(%2$s, %3$s, ''half'', 0.5, ''[1]'', ''s'')'),
  ('SELECT pulse.get_job(%2$s)'), ('SELECT pulse.read_job(%2$s)'),
  ('SELECT pulse.complete_jobs(ARRAY[%2$s])'),
  ('SELECT pulse.held_job(%2$s, %3$s)'), ('SELECT pulse.handler_call(%2$s, %3$s)'),
  ('SELECT pulse.fence(%2$s, %3$s)'),
  ('SELECT pulse.fail(%2$s, %3$s, ''boom'', retry_in => ''0'')')) AS c (call) \g /dev/null
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format('SELECT pulse.snooze(%s, %s, ''1 s'', ''[2]'')', :job, :token)) \g /dev/null
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format(call, :ann, :job)) FROM (VALUES
  ('SELECT pulse.cancel_job(%2$s, ''no'')'),
  ('SELECT pulse.requeue_job(%2$s, ''by hand'')'),
  ('SELECT pulse.retry_job(%2$s)'),
  ('SELECT pulse.claim_job(%1$s, %2$s)')) AS c (call) \g /dev/null
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format(call, :ann, :job, :token)) FROM (VALUES
  ('SELECT pulse.fail_many(ARRAY[%2$s], ARRAY[%3$s], ARRAY[''boom''])'),
  ('SELECT pulse.fail_late(ARRAY[%2$s], ARRAY[%3$s], ARRAY[''boom''], ''{stall}'')'),
  ('SELECT pulse.reschedule_jobs(ARRAY[%2$s], pulse.now(), 3, 0, 9)'),
  ('SELECT pulse.permanently_fail_jobs(ARRAY[%2$s], ''enough'')'),
  ('SELECT pulse.reschedule_jobs(ARRAY[%2$s], max_attempts => 20)'),
  ('SELECT pulse.cancel_job(%2$s, ''no'')'),
  ('SELECT pulse.retry_job(%2$s)')) AS c (call) \g /dev/null
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format('SELECT pulse.release(ARRAY[%s], ARRAY[%s])', :job, :token)) \g /dev/null
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format('SELECT pulse.complete(%s, %s, ''{}'')', :job, :token)) \g /dev/null
SELECT walk('SELECT pulse.add_job(''t'', priority => -9)') \g /dev/null
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format('SELECT pulse.perform_job(id, token) FROM pulse.held(%s)
                     WHERE id OPERATOR(pg_catalog.=) %s', :ann, :job)) \g /dev/null
SELECT walk('SELECT pulse.add_job(''t'', job_key => ''m'')') \g /dev/null
SELECT job, token FROM claimed(:ann) \gset
SELECT walk(format('SELECT pulse.complete_many(ARRAY[%s], ARRAY[%s], ARRAY[''{}'']::json[])',
                   :job, :token)) \g /dev/null
SELECT walk('SELECT pulse.add_job(''t'', job_key => ''m'')') \g /dev/null
SELECT claimed(:bob) \g /dev/null
SELECT walk(format(call, :ann, :bob)) FROM (VALUES
  ('SELECT pulse.check_host(%s)'), ('SELECT pulse.drain_worker(%s)'),
  ('SELECT pulse.stop_worker(%s)'), ('SELECT pulse.drain_workers(ARRAY[''ann''])'),
  ('SELECT pulse.stop_workers(ARRAY[''ann''])'),
  ('SELECT pulse.deregister_worker(%s)'), ('SELECT pulse.declare_lost(%2$s, ''gone'')'),
  ('SELECT pulse.force_unlock_workers(ARRAY[''bob''])'), ('SELECT pulse.remove_job(''m'')'),
  ('SELECT pulse.delete_finished(older_than => ''1 day'')'),
  ('SELECT pulse.tick()'), ('SELECT pulse.cron_setup_sql()'), ('SELECT pulse.stats()'),
  ('SELECT pulse.explain_job(j.id) FROM pulse.job AS j'), ('SELECT pulse.explain_task(''task'')'),
  ('SELECT pulse.explain_job(f.id) FROM pulse.finished_job AS f'), ('SELECT pulse.unserved()'),
  ('SELECT pulse.overview()'), ('SELECT pulse.list_jobs(error => ''x'')'),
  ('SELECT pulse.list_jobs(key => ''k'')'), ('SELECT pulse.job_attempts(1)'),
  ('SELECT pulse.flow_jobs(1)'), ('SELECT pulse.list_flows()'),
  ('SELECT pulse.recoveries()'), ('SELECT pulse.doctor()'),
  ($$SELECT pulse.preview_operation('retry', '{"error": "e", "older_than": "1 s"}')$$),
  ($$SELECT pulse.start_operation('retry', '{}', '{}', 'ann')$$),
  ($$SELECT pulse.start_operation('reschedule', '{}', '{"run_at": "2100-01-01 00:00Z"}')$$),
  ($$SELECT pulse.start_operation('cancel', '{"task": "none"}', '{"reason": "x"}')$$),
  ('SELECT pulse.run_operation(o.id) FROM pulse.operation AS o'),
  ('SELECT pulse.undo_operation(o.id) FROM pulse.operation AS o'),
  ($$SELECT pulse.note_operation('pause queue', '{"queue": "q"}', 'x')$$),
  ('SELECT pulse.run_operation(o.id) FROM pulse.operation AS o'),
  ('SELECT pulse.stop_operation(o.id) FROM pulse.operation AS o'),
  ('SELECT pulse.adopt_installation()'),
  ('SELECT pulse.verify()'), ('SELECT pulse.version()'),
  ('SELECT pulse.grant_producer(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.revoke_producer(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.grant_worker(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.revoke_worker(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.grant_operator(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.revoke_operator(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.grant_observer(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.revoke_observer(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.grant_scheduler(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.revoke_scheduler(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.cron_runs(''@daily'', ''Etc/GMT+5'')'),
  ('SELECT pulse.schedule(''s'', ''t'', every => ''1 s'', missed => ''all'', overlap => ''skip'')'),
  ('SELECT pulse.schedule(''s'', ''t'', ''@daily'', job_key => ''k'', overlap => ''replace'')'),
  ('SELECT pulse.pause_schedule(''s'')'), ('SELECT pulse.resume_schedule(''s'')'),
  ($$SELECT pulse.load_crontab('c',
      '[{"name": "i", "identifier": "mail", "cron": "@daily", "payload": {}}]')$$),
  ('SELECT pulse.run_schedule_now(''s'')'), ('SELECT pulse.next_runs(''s'')'),
  ('UPDATE pulse.schedule SET next_due = pulse.now() RETURNING true'),
  ('SELECT pulse.sweep()'), ('SELECT pulse.unschedule(''s'')'),
  ('SELECT pulse.grant_caller(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.revoke_caller(current_user::pg_catalog.regrole)'),
  ('SELECT pulse.ended(ARRAY[%2$s])'), ('CALL pulse.wait_for_end(ARRAY[%2$s], ''0'')'),
  ('SELECT pulse.import_graphile_worker(''their Jobs'')'),
  ('CALL pulse.wait_for_job(%s, ''0'')')) AS c (call) \g /dev/null
-- A suspect, which is given to an idle worker alone.
SELECT walk('SELECT pulse.add_job(''suspect'')') \g /dev/null
UPDATE pulse.job SET crashes = 2, attempts = 2 WHERE identifier = 'suspect';
SELECT walk('SELECT id FROM pulse.register_worker(''eve'', ARRAY[''suspect''])') AS eve \gset
SELECT job FROM claimed(:eve) \gset
SELECT walk(format('SELECT pulse.requeue_job(%s, NULL)', :job)) \g /dev/null
SELECT claimed(:eve) \g /dev/null
SELECT walk(format('SELECT v FROM %s.%I AS v', c.relnamespace::regnamespace, c.relname))
  FROM pg_catalog.pg_class AS c
 WHERE c.relnamespace = ANY ('{pulse,pulse_internal}'::regnamespace[]) AND c.relkind = 'v'
 \g /dev/null

SELECT is_empty($$SELECT call, code FROM walked WHERE code NOT IN ('00000', 'PU006')$$,
  'every function does its work among the traps');
SELECT is_empty(
  $$SELECT p.proname FROM pg_catalog.pg_proc AS p
     WHERE p.pronamespace = 'pulse'::regnamespace
       AND NOT EXISTS (SELECT FROM walked AS w WHERE w.call ~ ('pulse\.' || p.proname || '\('))$$,
  'and there is none that was not tried');
SELECT set_eq($$SELECT DISTINCT outcome FROM pulse.attempt$$,
  ARRAY['cancelled', 'completed', 'failed', 'interrupted', 'lost', 'released'],
  'attempts have ended in many ways');
SELECT is((SELECT isolated_job_id FROM pulse.heartbeat WHERE worker_id = :eve), :job::bigint,
  'and a suspect is alone');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
