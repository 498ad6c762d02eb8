-- sql/worker/register.sql: registration, the attached session, the orderly end.
\ir support/setup.psql
SELECT plan(95);

SELECT expect_function('register_worker',
  'name text, tasks text[] DEFAULT NULL::text[], info json DEFAULT NULL::json, '
  'heartbeat_interval interval DEFAULT NULL::interval', 'pulse.worker', 'volatile', 'definer');
SELECT expect_function('attach_worker', 'worker_id bigint', 'void', 'volatile', 'definer');
SELECT expect_function('serve_tasks',
  'worker_id bigint, tasks text[], info json DEFAULT NULL::json', 'void', 'volatile', 'definer');
SELECT expect_function('deregister_worker', 'worker_id bigint', 'void', 'volatile', 'definer');

-- --- register_worker ----------------------------------------------------------------------------

SELECT id AS ann FROM pulse.register_worker('ann', '{mail,ink/red}', json_build_object(
  'hostname', 'h1', 'boot_id', 'b1', 'pid_namespace', 'n1', 'pid', 4711, 'process_start', '99',
  'version', 7), '3 s') \gset
SELECT answers(
  format('SELECT name, tasks, hostname, boot_id, pid_namespace, pid, process_start,
                 heartbeat_interval, sweep_threshold, state, ended_at, reason, started_at >= now()
            FROM pulse.worker WHERE id = %s', :ann),
  ROW('ann', '{mail,ink/red}'::text[], 'h1', 'b1', 'n1', 4711, '99', interval '3 s',
      interval '20 s', 'alive', NULL, NULL, true),
  'a worker is registered with what identifies its process');
SELECT answers(
  'SELECT hostname, boot_id, pid, tasks, heartbeat_interval FROM pulse.register_worker(''bob'')',
  ROW(NULL, NULL, NULL, NULL, interval '5 s'),
  'a worker need not tell more than its name and then serves every task');
SELECT cmp_ok(given_worker('ann'), '>', :ann::bigint, 'a name may be used twice, an id never');
SELECT is(:ann::bigint >> 40, pulse_internal.current_timeline()::bigint,
  'a worker id begins with the timeline of the server, as a token does');
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'alive', 'a registered worker is alive');
SELECT id AS cat FROM pulse.register_worker('cat', '{}') \gset
SELECT given_job() AS job \gset
SELECT is(claimed_ids(:cat), '{}', 'a worker that serves no task gets nothing');
SELECT travel('12 s');
SELECT is(workers_lost, 0, 'registration is the first beat') FROM pulse.sweep();
SELECT travel('0');

SELECT lives_ok(format('SELECT pulse.register_worker(''x'', NULL, %L)', i.info),
                'odd information is no obstacle: ' || i.info)
  FROM (VALUES ('[]'), ('7'), ('null'), ('{"pid": "many"}'), ('{"pid": 99999999999999}'),
               ('{"hostname": {"a": 1}}')) AS i (info);
SELECT refuses(format('SELECT pulse.register_worker(%s)', c.arguments), 'PU004',
               'register_worker refuses ' || c.arguments)
  FROM (VALUES ('NULL'), (''''''), ('repeat(''x'', 2000)'), ('''x'', ''{../x}'''),
               ('''x'', ''{/bin/sh}'''), ('''x'', ''{mail,NULL}'''), ('''x'', ''{""}'''),
               ('''x'', ''{{mail},{ink}}'''), ('''x'', heartbeat_interval => ''-1 s'''),
               ('''x'', heartbeat_interval => ''10 years''')) AS c (arguments);

-- --- the threshold holds two beats and a sweep and a half (P6) -----------------------------------

SELECT lives_ok($$SELECT pulse.register_worker('x', heartbeat_interval => '6.25 s')$$,
  'with 20 s of threshold and 5 s between sweeps, 6.25 s between beats are allowed');
SELECT refuses($$SELECT pulse.register_worker('x', heartbeat_interval => '6.26 s')$$, 'PU003',
  'more are refused');
SELECT matches(
  (refusal_of($$SELECT pulse.register_worker('x', heartbeat_interval => '6.26 s')$$)).hint,
  '2 x heartbeat_interval \+ 1\.5 x sweep_interval', 'and the hint tells the formula');
SET LOCAL pulse.sweep_interval = '10s';
SELECT refuses($$SELECT pulse.register_worker('x')$$, 'PU003',
  'rarer sweeps need a longer threshold');
SET LOCAL pulse.sweep_threshold = '25s';
SELECT lives_ok($$SELECT pulse.register_worker('x')$$, 'which is accepted');
SET LOCAL pulse.sweep_interval = '5s';
SET LOCAL pulse.sweep_threshold = '20s';
SELECT lives_ok($$SELECT pulse.register_worker('x', heartbeat_interval => '0')$$,
  'an interval of 0 stands for the attached session');

-- --- attach_worker ------------------------------------------------------------------------------

SELECT id AS dan FROM pulse.register_worker('dan', heartbeat_interval => '0') \gset
SELECT lives_ok(format('SELECT pulse.attach_worker(%s)', :dan), 'a worker attaches its session');
SELECT travel('1 hour');
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT status FROM pulse.heartbeat(:dan)), 'alive',
  'with an interval of 0 it lives as long as that, without a beat');
SELECT travel('0');
SELECT lives_ok(format('SELECT pulse.attach_worker(%s)', :dan), 'attaching anew is no error');
SELECT given_worker('eve') AS eve \gset
SELECT travel('14 s');
SELECT pulse.attach_worker(:eve) \g /dev/null
SELECT travel('28 s');
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT state FROM pulse.worker WHERE id = :eve), 'alive', 'attaching is a beat');
SELECT travel('0');
CREATE FUNCTION attachments() RETURNS int
  LANGUAGE sql AS $$
  SELECT count(*)::int FROM pg_locks
   WHERE locktype = 'advisory' AND objsubid = x'5005'::int AND pid = pg_backend_pid()
$$;
SELECT attachments() AS attachments \gset
CREATE FUNCTION attach_and_undo(worker bigint) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pulse.attach_worker(worker);
  RAISE EXCEPTION 'undo' USING ERRCODE = 'ZZ000';
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
  NULL;
END $$;
SELECT given_worker('undone') AS undone \gset
SELECT attach_and_undo(:undone) FROM generate_series(1, 3) \g /dev/null
SELECT is(attachments() - :attachments, 1, 'what an undone call took serves the next one');
SELECT pulse.attach_worker(:undone) \g /dev/null
SELECT is(attachments() - :attachments, 1, 'which is attached then');
SELECT refuses('SELECT pulse.attach_worker(0)', 'PU002', 'an unknown worker cannot attach');
SELECT refuses('SELECT pulse.attach_worker(NULL)', 'PU002', 'nor can NULL');
SELECT pulse.declare_lost(:eve, 'gone') \g /dev/null
SELECT refuses(format('SELECT pulse.attach_worker(%s)', :eve), 'PU002', 'nor a lost one');

-- --- serve_tasks --------------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT id AS gus FROM pulse.register_worker('gus', '{mail}', '{"hostname": "h2", "slots": 1}') \gset
SELECT given_job('ink') AS ink \gset
SELECT is(claimed_ids(:gus), '{}', 'the job of a task that no registration named stays');
SELECT lives_ok(format('SELECT pulse.serve_tasks(%s, ''{ink}'')', :gus),
                'a worker tells its tasks');
SELECT is(claimed_ids(:gus), ARRAY[:ink::bigint], 'the next claim without tasks hands out the job');
SELECT given_job() AS job \gset
SELECT is(claimed_ids(:gus), '{}', 'and no job of a task that the worker has lost');
SELECT answers(format('SELECT tasks, slots, hostname FROM pulse.worker_status WHERE id = %s', :gus),
  ROW('{ink}'::text[], 1, 'h2'), 'views show the tasks, and all else as registered');
SELECT pulse.serve_tasks(:gus, NULL, '{"hostname": "h3", "slots": 4}') \g /dev/null
SELECT answers(format('SELECT tasks, slots, hostname FROM pulse.worker_status WHERE id = %s', :gus),
  ROW(NULL, 4, 'h2'), 'info tells the slots anew, and never another machine');
SELECT is(claimed_ids(:gus), ARRAY[:job::bigint], 'NULL means every task');
SELECT answers($$SELECT r.pid, r.slots, r.kill_grace, r.version FROM pulse.register_worker('hal',
    info => '{"pid": 12, "slots": "2", "kill_grace_ms": 1500, "version": "9.9"}') AS r$$,
  ROW(12, 2, '1.5 s'::interval, '9.9'), 'a registration stores what info tells');
SELECT answers($$SELECT r.pid, r.slots, r.kill_grace, r.version FROM pulse.register_worker('ida',
    info => '{"pid": "12x", "slots": 1234567, "kill_grace_ms": -1}') AS r$$,
  ROW(NULL::int, NULL::int, NULL::interval, NULL::text),
  'and takes for not told what is no number, or too long');
SELECT pulse.serve_tasks(:gus, NULL, '{"pid": 13, "kill_grace_ms": 250, "version": "9.8"}')
  \g /dev/null
SELECT answers(format('SELECT pid, slots, kill_grace, version FROM pulse.worker WHERE id = %s',
                      :gus),
  ROW(NULL::int, NULL::int, '250 ms'::interval, '9.8'),
  'serve_tasks stores it anew but for the pid');
SELECT pulse.serve_tasks(:gus, NULL) \g /dev/null
SELECT answers(format('SELECT kill_grace, info ->> ''pid'' FROM pulse.worker WHERE id = %s',
                      :gus),
  ROW('250 ms'::interval, '13'), 'and without info keeps all that it told');
SELECT refuses(format('SELECT pulse.serve_tasks(%s, %s)', :gus, t.tasks), 'PU004',
               'serve_tasks refuses ' || t.tasks)
  FROM (VALUES ('''{../x}'''), ('''{mail,NULL}'''), ('''{{mail},{ink}}''')) AS t (tasks);
SELECT refuses('SELECT pulse.serve_tasks(0, ''{mail}'')', 'PU002', 'an unknown worker serves none');
SELECT refuses('SELECT pulse.serve_tasks(NULL, ''{mail}'')', 'PU002', 'nor does NULL');
SELECT refuses(format('SELECT pulse.serve_tasks(%s, ''{mail}'')', :eve), 'PU002', 'nor a lost one');

-- --- deregister_worker --------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT given_worker('fay') AS fay \gset
SELECT id AS job, token FROM given_claimed_job(:fay) \gset
SELECT id AS last_one FROM given_claimed_job(:fay, 'ink', max_attempts => 1) \gset
SELECT id AS queued FROM given_claimed_job(:fay, 'paper', 'post') \gset
SELECT lives_ok(format('SELECT pulse.deregister_worker(%s)', :fay), 'a worker ends in order');
SELECT answers(format('SELECT state, ended_at >= now() FROM pulse.worker WHERE id = %s', :fay),
  ROW('stopped', true), 'it is stopped');
SELECT answers(
  format('SELECT state, attempts, crashes, run_at <= pulse.now(), worker_id, token, recovered
            FROM pulse.job WHERE id = %s', :job),
  ROW('ready', 1, 0, true, NULL, NULL, NULL),
  'a job that it still held is ready at once, its attempt consumed and no crash counted');
SELECT answers(
  format('SELECT state, attempts, crashes FROM pulse.finished_job WHERE id = %s', :last_one),
  ROW('failed', 1, 0), 'one on its last attempt has failed');
SELECT is(state_of(:queued), 'parked', 'one of a queue waits behind it');
SELECT is(array_agg(DISTINCT outcome), '{interrupted}', 'their attempts were interrupted')
  FROM pulse.attempt WHERE worker_id = :fay;
SELECT isnt(last_error, NULL, 'and the job tells why') FROM pulse.job WHERE id = :job;
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'the worker''s token is stale');
SELECT is((SELECT status FROM pulse.heartbeat(:fay)), 'lost',
  'a stopped worker hears that it is lost');
SELECT refuses(format('SELECT pulse.attach_worker(%s)', :fay), 'PU002',
  'a stopped worker cannot attach');
SELECT changes_nothing(format('SELECT pulse.deregister_worker(%s)', :fay),
  'deregistering once more changes nothing');
SELECT changes_nothing(format('SELECT pulse.deregister_worker(%s)', :eve),
  'nor does deregistering a lost worker');
SELECT refuses('SELECT pulse.deregister_worker(0)', 'PU002',
  'an unknown worker cannot be deregistered');
SELECT refuses('SELECT pulse.deregister_worker(NULL)', 'PU002', 'nor can NULL');
SELECT travel('1 day');
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT state FROM pulse.worker WHERE id = :fay), 'stopped',
  'a sweep leaves a stopped worker alone');
SELECT travel('0');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
