-- Every table, view and function of the reference, used by each kind of role that it is granted to,
-- beside jobs, workers, queues, flows, schedules and operations in each state. What is refused, or
-- stays empty, would be so for its users.
\ir support/setup.psql
SELECT plan(8);
CREATE EXTENSION IF NOT EXISTS pg_pulse_graphile;
\o /dev/null
\ir support/every_state.psql
\o
SELECT is_empty('SELECT * FROM pulse.verify()', 'what was made keeps all promises');

CREATE TEMP TABLE kind AS
  SELECT k.kind, 'pulse_' || k.kind AS role
    FROM unnest('{producer,caller,worker,operator,scheduler,observer}'::text[]) AS k (kind);
SELECT format('CREATE ROLE %I', k.role), format('SELECT pulse.grant_%s(%L)', k.kind, k.role)
  FROM kind AS k
\gexec
-- What only the owner may call is called by the owner.
INSERT INTO kind VALUES ('owner', current_user);
INSERT INTO made VALUES ('worker', (SELECT m.id FROM made AS m WHERE m.name = 'ann'));

-- How a query ends as this role, read to its end, and how many rows it has. What it did is undone.
-- An expression of PL/pgSQL that an earlier role has run asks for no right in this transaction,
-- unless it is planned anew.
CREATE FUNCTION use_of(query text, role name, OUT code text, OUT message text, OUT rows bigint)
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'DISCARD PLANS';
  PERFORM set_config('role', CASE WHEN role = session_user THEN 'none' ELSE role END, true);
  EXECUTE format('SELECT count(*), max(length(r::text)) FROM (%s) AS r', query) INTO rows;
  RAISE EXCEPTION 'undone' USING ERRCODE = 'PU999';
EXCEPTION WHEN OTHERS THEN
  code := CASE SQLSTATE WHEN 'PU999' THEN 'ok' ELSE SQLSTATE END;
  message := SQLERRM;
END $$;

-- --- tables and views ---------------------------------------------------------------------------

CREATE TEMP TABLE reading AS
  SELECT r.id::regclass::text AS relation, k.kind, u.*
    FROM pulse_internal.rights() AS r JOIN kind AS k ON k.kind = r.kind,
         LATERAL use_of(format('SELECT * FROM %s', r.id::regclass), k.role) AS u
   WHERE r.class = 'TABLE' AND r.privilege = 'SELECT';
SELECT is_empty(
  $$SELECT relation, kind, code, message FROM reading WHERE code <> 'ok'$$,
  'each kind of role reads to the end what it may read');
SELECT is_empty(
  $$SELECT relation FROM reading WHERE rows = 0$$,
  'no table and no view is empty meanwhile');
SELECT set_eq(
  $$SELECT c.oid::regclass::text FROM pg_class AS c
     WHERE c.relkind IN ('r', 'v') AND c.relnamespace IN ('pulse'::regnamespace,
                                                          'graphile_worker'::regnamespace)
    EXCEPT SELECT relation FROM reading$$,
  ARRAY['graphile_worker._private_known_jobs', 'pulse.claim_batch', 'pulse.clock',
        'pulse.installation_witness'],
  'what no kind of role may read is internal');

-- --- functions ----------------------------------------------------------------------------------

-- Each function once at least; {…} is the id of what was made. A role that may call it does.
CREATE TEMP TABLE call (name text, call text);
COPY call FROM stdin WITH (DELIMITER '|');
now|pulse.now()
version|pulse.version()
add_job|pulse.add_job('mail', '[1]', 'post/north', job_key => 'new key', flags => '{f}')
add_jobs|pulse.add_jobs('{"(mail,[1],,,,k,1,)"}')
add_job_for_request|pulse.add_job_for_request('ada', 'key', 'hash', 'mail', '[1]')
add_job_once|pulse.add_job_once('1 day', 'own key', 'mail', '[1]')
forget_once|pulse.forget_once('mail', 'own key')
add_job_after|pulse.add_job_after(ARRAY[(pulse.add_job('mail')).id], 'mail')
add_flow|pulse.add_flow('[{"key": "a", "identifier": "t"}, {"identifier": "t", "after": ["a"]}]')
add_dependency|pulse.add_dependency((pulse.add_job('mail')).id, ARRAY[(pulse.add_job('mail')).id])
remove_job|pulse.remove_job((pulse.add_job('mail', job_key => 'own key')).job_key)
ended|pulse.ended(ARRAY[{completed}, {failed}, {cancelled}, {quarantined}, {expired}, {running}])
attach_worker|pulse.attach_worker({bob})
check_host|pulse.check_host({ann})
claim|pulse.claim({ann}, 5)
claim_job|pulse.claim_job({ann}, {waiting})
complete|pulse.complete({running}, {token of running}, '"result"')
complete_many|pulse.complete_many(ARRAY[{running}], ARRAY[{token of running}])
deregister_worker|pulse.deregister_worker({ann})
declare_lost|pulse.declare_lost({bob}, 'reason')
fail|pulse.fail({running}, {token of running}, 'error')
fail_late|pulse.fail_late(ARRAY[{late}], ARRAY[{token of late}], '{error}', '{stall}')
fail_many|pulse.fail_many(ARRAY[{late}], ARRAY[{token of late}], '{error}')
fence|pulse.fence({running}, {token of running})
call_handler|pulse.call_handler(pulse.held_job({running}, {token of running}))
handler_tasks|pulse.handler_tasks()
heartbeat|pulse.heartbeat({ann}, ARRAY[{running}, {silent}])
held|pulse.held({ann})
held_job|pulse.held_job({running}, {token of running})
perform_job|pulse.perform_job({running}, {token of running})
progress|pulse.progress({running}, {token of running}, 'message', 0.5, '1', 'stage')
register_worker|pulse.register_worker('new', '{mail}', '{"hostname": "h"}')
release|pulse.release(ARRAY[{running}], ARRAY[{token of running}])
serve_tasks|pulse.serve_tasks({ann}, '{mail}')
snooze|pulse.snooze({running}, {token of running}, '1 s', '2')
sweep|pulse.sweep()
sweep|pulse.sweep(dry_run => true)
task_limits|pulse.task_limits({ann}, '{mail,poison}')
get_job|pulse.get_job({running})
get_job|pulse.get_job({waiting})
get_job|pulse.get_job({failed})
read_job|pulse.read_job({running})
read_job|pulse.read_job({after})
read_job|pulse.read_job({quarantined})
adopt_installation|pulse.adopt_installation()
cancel_flow|pulse.cancel_flow({flow}, 'reason')
cancel_job|pulse.cancel_job({running}, 'reason')
cancel_job|pulse.cancel_job({parked}, 'reason')
complete_jobs|pulse.complete_jobs(ARRAY[{waiting}, {parked}])
cron_setup_sql|pulse.cron_setup_sql()
delete_finished|pulse.delete_finished(ARRAY[{completed}])
drain_worker|pulse.drain_worker({ann})
drain_workers|pulse.drain_workers(ARRAY['ann'])
force_unlock_workers|pulse.force_unlock_workers(ARRAY['bob'])
note_operation|pulse.note_operation('pause queue', '{"queue": "held"}', 'actor')
pause_queue|pulse.pause_queue('post')
resume_queue|pulse.resume_queue('held')
permanently_fail_jobs|pulse.permanently_fail_jobs(ARRAY[{waiting}, {level}], 'error')
preview_operation|pulse.preview_operation('retry', json_build_object('ids', {failed}))
start_operation|pulse.start_operation('cancel', '{"task": "mail"}', '{"reason": "x"}', 'actor')
run_operation|pulse.run_operation({open operation})
stop_operation|pulse.stop_operation({open operation})
undo_operation|pulse.undo_operation({operation}, 'actor')
requeue_job|pulse.requeue_job({running}, 'reason')
reschedule_jobs|pulse.reschedule_jobs(ARRAY[{waiting}, {parked}], priority => 3)
retry_job|pulse.retry_job({failed})
set_queue|pulse.set_queue('post/south', 3)
unset_queue|pulse.unset_queue('line')
set_shard|pulse.set_shard(0)
set_task|pulse.set_task('mail', max_attempts => 3)
unset_task|pulse.unset_task('mail')
stop_worker|pulse.stop_worker({ann})
stop_workers|pulse.stop_workers(ARRAY['ann'])
tick|pulse.tick()
verify|(SELECT count(*) FROM pulse.verify()) AS v
doctor|pulse.doctor()
explain_job|pulse.explain_job({waiting})
explain_job|pulse.explain_job({level})
explain_job|pulse.explain_job({parked})
explain_job|pulse.explain_job({strict})
explain_job|pulse.explain_job({rated})
explain_job|pulse.explain_job({after})
explain_job|pulse.explain_job({undecided})
explain_job|pulse.explain_job({unserved})
explain_job|pulse.explain_job({running})
explain_job|pulse.explain_job({silent})
explain_job|pulse.explain_job({failed})
explain_task|pulse.explain_task('mail')
explain_task|pulse.explain_task('nobody')
flow_jobs|pulse.flow_jobs({flow})
job_attempts|pulse.job_attempts({failed})
list_ended_jobs|pulse.list_ended_jobs()
list_failures|pulse.list_failures()
list_flows|pulse.list_flows()
operation_actions|pulse.operation_actions()
list_jobs|pulse.list_jobs()
count_jobs|pulse.count_jobs()
list_jobs|pulse.list_jobs(states => '{running,parked,ready,failed}', queue => 'post/north')
list_unique_keys|pulse.list_unique_keys()
overview|pulse.overview()
queue_status|pulse.queue_status()
rate_histogram|pulse.rate_histogram('mail')
rate_history|pulse.rate_history('mail')
rates|pulse.rates('task')
recoveries|pulse.recoveries()
stats|pulse.stats()
unserved|pulse.unserved()
cron_runs|pulse.cron_runs('@daily')
load_crontab|pulse.load_crontab('app', '[]')
next_runs|pulse.next_runs('hourly')
pause_schedule|pulse.pause_schedule('hourly')
resume_schedule|pulse.resume_schedule('paused')
run_schedule_now|pulse.run_schedule_now('hourly')
schedule|pulse.schedule('new', 'mail', '@daily')
unschedule|pulse.unschedule('hourly')
\.
-- A procedure commits, so no transaction can call it; test/e2e calls them. What the import reads is
-- made in graphile.sql.
CREATE TEMP VIEW called_elsewhere (name) AS
  VALUES ('wait_for_job'), ('wait_for_end'), ('run_tick'), ('import_graphile_worker');
INSERT INTO call
  SELECT v.verb || k.kind, format('pulse.%s%s(%L)', v.verb, k.kind, k.role)
    FROM kind AS k, (VALUES ('grant_'), ('revoke_')) AS v (verb) WHERE k.kind <> 'owner';

CREATE FUNCTION filled_in(call text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  thing made;
BEGIN
  FOR thing IN SELECT m.* FROM made AS m LOOP
    call := replace(call, '{' || thing.name || '}', thing.id || '::bigint');
  END LOOP;
  RETURN call;
END $$;
CREATE TEMP TABLE calling AS
  SELECT c.call, k.kind, u.*
    FROM call AS c
    JOIN kind AS k ON CASE k.kind
           WHEN 'owner' THEN c.name ~ '^(grant|revoke)_'
           ELSE c.name = ANY (pulse_internal.functions_of(k.kind)) END,
         LATERAL use_of('SELECT * FROM ' || filled_in(c.call), k.role) AS u;
SELECT is_empty(
  $$SELECT call, kind, code, message FROM calling WHERE code <> 'ok'$$,
  'each kind of role calls with success what it may call');
-- The open minute is counted in shared memory.
SELECT is_empty(
  $$SELECT call, kind FROM calling
     WHERE rows = 0 AND (current_setting('shared_preload_libraries') ~ 'pg_pulse'
                         OR call NOT LIKE 'pulse.rate\_history(%')$$, 'and gets rows');
SELECT is_empty(
  $$SELECT c.call FROM call AS c
    EXCEPT SELECT call FROM calling$$, 'no call is left out');
SELECT is_empty(
  $$SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'pulse'::regnamespace
    EXCEPT (SELECT name FROM call UNION ALL SELECT name FROM called_elsewhere)$$,
  'no function of the schema pulse is without a call');

SELECT * FROM finish();
ROLLBACK;
