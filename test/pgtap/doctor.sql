-- sql/guard/doctor.sql: each trouble that a transaction can plant is found, and is gone with its
-- cause. test/e2e/doctor.pl plants the rest.
\ir support/setup.psql
SELECT plan(91);

SELECT expect_function('doctor', '',
  'TABLE(finding text, severity text, detail text, what_to_do text)', 'volatile', 'definer');

-- What the server of the test has by itself: it may preload the library or not, and other tests
-- leave rows that they rolled back.
DELETE FROM pulse.schedule;
-- A busy machine may take longer than two usual intervals for this file.
SET LOCAL pulse.sweep_interval = '10 min';
SET LOCAL pulse.sweep_threshold = '20 min';
UPDATE pulse.clock SET last_tick = clock_timestamp() WHERE slot = 1;
SELECT given_worker() AS ann \gset
SELECT pulse.attach_worker(:ann) \g /dev/null
CREATE TEMP TABLE usual AS SELECT d.finding FROM pulse.doctor() AS d;
CREATE FUNCTION findings() RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce(string_agg(d.finding || ': ' || d.severity, ', '), 'none')
    FROM pulse.doctor() AS d
   WHERE d.finding NOT IN (SELECT u.finding FROM usual AS u)
$$;
-- Plants a trouble, and says what a question then answers; the trouble is undone.
CREATE FUNCTION answer_after(question text, statements text[]) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  answer text;
  statement text;
BEGIN
  BEGIN
    FOREACH statement IN ARRAY statements LOOP
      EXECUTE statement;
    END LOOP;
    EXECUTE question INTO answer;
    RAISE EXCEPTION 'undone' USING ERRCODE = 'ZZ001';
  EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
    RETURN answer;
  END;
END $$;
CREATE FUNCTION found_after(VARIADIC statements text[]) RETURNS text
  LANGUAGE sql RETURN answer_after('SELECT findings()', statements);
SELECT is_empty($$SELECT * FROM pulse.doctor()
                   WHERE finding NOT IN ('not preloaded', 'no background worker', 'dead rows')$$,
  'a sound installation has no finding');
SELECT is((SELECT count(*)::int FROM usual WHERE finding = 'not preloaded'),
  (current_setting('shared_preload_libraries') NOT LIKE '%pg_pulse%')::int,
  'missing preloading is told where it is so');
SELECT is((SELECT count(*)::int FROM usual WHERE finding = 'no background worker'),
  (current_setting('shared_preload_libraries') LIKE '%pg_pulse%'
   AND current_setting('pulse.background_sweeps') = 'off')::int,
  'and so is a background worker that is elsewhere');
SELECT ok(pulse_internal.list_names('a, "/usr/lib/pg_pulse.so",b', 'pg_pulse')
          AND pulse_internal.list_names('pg_pulse', 'pg_pulse')
          AND NOT pulse_internal.list_names('pg_pulse_test', 'pg_pulse')
          AND NOT pulse_internal.list_names('', 'pg_pulse'), 'a library is known by its name');
SELECT results_eq(
  $$SELECT pulse_internal.names_in('shop, "a, ""b""",, "C" ')$$, ARRAY['shop', 'a, "b"', 'C'],
  'quoted names of a list may hold commas and quotes');

-- --- sweeps -------------------------------------------------------------------------------------

SELECT is(found_after(
    $$UPDATE pulse.clock SET last_tick = clock_timestamp() - interval '21 min'$$),
  'no sweep: error', 'the last sweep is too long ago');
SELECT is(found_after('SET LOCAL pulse.sweep_interval = -1',
                      'UPDATE pulse.clock SET last_tick = clock_timestamp() WHERE slot = 1'),
  'sweeps off: warning',
  'sweeps are switched off');
SELECT is(found_after($$UPDATE pulse.clock SET last_tick = clock_timestamp() + interval '1 h'
                         WHERE slot = 1$$),
  'clock set back: warning', 'the server''s clock was set back');

-- --- settings and versions ----------------------------------------------------------------------

SELECT is(found_after($$SET LOCAL pulse.sweep_threshold = '15 s'$$), 'thresholds at odds: error',
  'thresholds do not fit the intervals');
SELECT is(found_after('SET LOCAL pulse.claims = off'), 'claims off: error', 'claims are off');
SELECT is(found_after('UPDATE pulse.installation SET database_oid = 1'), 'not adopted: error',
  'a copy was not adopted');
SELECT is(found_after($$UPDATE pg_catalog.pg_extension SET extversion = '0.1.9'
                         WHERE extname = 'pg_pulse'$$),
  'versions apart: error', 'library and SQL are of different versions');
SELECT is(found_after('CREATE EXTENSION pg_pulse_graphile',
                      $$UPDATE pg_catalog.pg_extension SET extversion = '0.1.9'
                         WHERE extname = 'pg_pulse_graphile'$$),
  'extensions apart: error', 'an extension over pg_pulse is of another version');
SELECT is(found_after($$INSERT INTO pg_catalog.pg_db_role_setting VALUES
  ((SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()), 0,
   '{pulse.sweep_treshold=5s}')$$), 'unknown setting: warning', 'a setting is misspelt');
SELECT is(found_after($$SET LOCAL pulse.clock_offset = '1 s'$$), 'none',
  'a clock that a test moves in its session is no trouble');

-- --- handlers -----------------------------------------------------------------------------------

CREATE ROLE pulse_author;
CREATE ROLE pulse_runner;
CREATE FUNCTION public.handler(payload json) RETURNS void LANGUAGE sql SECURITY DEFINER
  AS 'SELECT';
ALTER FUNCTION public.handler(json) OWNER TO pulse_author;
SELECT is(found_after($$SELECT pulse.set_task('mail', handler => 'public.handler(json)')$$),
  'restricted handlers: notice', 'a handler runs restricted where the owner of pg_pulse is worker');
SELECT is(found_after($$SELECT pulse.set_task('mail', handler => 'public.handler(json)')$$,
                      $$SELECT pulse.grant_worker('pulse_runner')$$),
  'restricted handlers: notice', 'or another role');
SELECT is(found_after($$SELECT pulse.set_task('mail', handler => 'public.handler(json)')$$,
                      $$SELECT pulse.grant_worker('pulse_runner')$$,
                      'GRANT pulse_runner TO pulse_author'), 'none',
  'not where its owner may act as the worker');
SELECT is(found_after($$SELECT pulse.set_task('mail', handler => 'public.handler(json)')$$,
                      'DROP FUNCTION public.handler(json)'), 'none', 'nor where it is gone');
-- Why no worker serves a task that has a handler, and the way out.
CREATE FUNCTION unserved_after(VARIADIC statements text[]) RETURNS text
  LANGUAGE sql RETURN answer_after(
    $$SELECT regexp_replace(detail, '^.*since [^;]*', '') || ' ' || what_to_do FROM pulse.doctor()
       WHERE finding = 'unserved task'$$,
    ARRAY[$$UPDATE pulse.worker SET tasks = '{other}'$$,
          $$SELECT pulse.grant_worker('pulse_runner')$$,
          $$SELECT pulse.set_task('mail', handler => 'public.handler(json)')$$,
          $$SELECT pulse.add_job('mail', run_at => now() - interval '2 min')$$] || statements);
SELECT matches(unserved_after('SELECT'), '^ Start a worker for it', 'a worker must be started');
SELECT is(unserved_after('REVOKE EXECUTE ON FUNCTION public.handler(json) FROM public'),
  '; role pulse_runner may not execute its handler public.handler(json). '
  'GRANT EXECUTE ON FUNCTION public.handler(json) TO pulse_runner.', 'or the worker lacks a right');
SELECT is(unserved_after('DROP FUNCTION public.handler(json)'),
  '; its handler public.handler(pg_catalog.json) does not exist. Create the function, or give '
  'the task another handler with pulse.set_task().', 'or there is no handler');
SELECT is(unserved_after('ALTER FUNCTION public.handler(json) SECURITY INVOKER'),
  '; the owner of its handler public.handler(json) could act with the rights of role pulse_runner. '
  'Make the function SECURITY DEFINER, or give it to the owner of pg_pulse.', 'or is not trusted');

-- --- workers, schedules and jobs ----------------------------------------------------------------

SELECT is(found_after($$UPDATE pulse.worker SET tasks = '{mail}'$$,
                      $$SELECT pulse.add_job('mial', run_at => now() - interval '2 min')$$),
  'unserved task: error', 'a task is not served');
SELECT is(found_after($$UPDATE pulse.worker SET tasks = '{mail}'$$,
                      $$SELECT pulse.add_job('mial')$$), 'none', 'for less than a minute');
SELECT is(found_after($$SELECT pulse.register_worker('bob')$$,
                      $$UPDATE pulse.worker SET started_at = now() - interval '11 s'$$),
  'unattached workers: notice', 'a worker has no session of its own, as behind a pooler');
SELECT is(found_after($$UPDATE pulse.worker SET version = '0.0.9'$$),
  'worker versions apart: notice', 'a worker is of another version');
SELECT is(found_after(format($$UPDATE pulse.worker SET version = '%s'$$,
                             pulse.version())), 'none', 'one of the same is not');
SELECT is(found_after($$SELECT pulse.schedule('s', 'mail', every => '1 h')$$,
  $$UPDATE pulse.schedule SET next_due = now() - interval '2 min'$$),
  'late schedules: error', 'due times are not settled');
SELECT is(found_after($$SELECT pulse.schedule('s', 'mail', every => '1 h', paused => true)$$,
  $$UPDATE pulse.schedule SET next_due = now() - interval '2 min'$$), 'paused schedule: notice',
  'a paused schedule is not late, and is told for itself');
SELECT is(found_after($$SELECT pulse.schedule('s', 'mail', every => '1 h')$$,
                      $$SELECT pulse.pause_schedule('s')$$, $$SELECT pulse.resume_schedule('s')$$),
  'none', 'until it is resumed');
SELECT is(found_after($$SELECT pulse.load_crontab('set', '[{"name": "s", "identifier": "mail",
                          "cron": "* * * * *"}]')$$, $$SELECT pulse.load_crontab('set', '[]')$$),
  'none', 'nor one that its crontab has let go');
-- A schedule of every minute whose job of ten minutes ago is there, with so many due times skipped.
CREATE FUNCTION given_skips(count int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pulse.schedule('s', 'mail', every => '1 min', overlap => 'skip');
  UPDATE pulse.schedule SET anchor = now() - interval '10 min', overlapped_count = count,
         last_job_id = given_job(), last_due = now() - interval '10 min' + count * interval '1 min';
  UPDATE pulse.job SET scheduled_for = now() - interval '10 min'
   WHERE id = (SELECT last_job_id FROM pulse.schedule);
END $$;
SELECT is(found_after('SELECT given_skips(3)'), 'schedule skips: warning',
  'a schedule adds nothing because its job waits');
SELECT is(found_after('SELECT given_skips(2)'), 'none', 'not before the third time');
SELECT is(found_after('SELECT given_skips(4)', format('SELECT pulse.claim(%s)', :ann)), 'none',
  'a job may run over some due times');
SELECT is(found_after('SELECT given_skips(5)', format('SELECT pulse.claim(%s)', :ann)),
  'schedule skips: notice', 'not over minutes and many');
SELECT is(found_after('SELECT given_skips(5)', $$UPDATE pulse.schedule SET last_job_id = 0$$),
  'none', 'a job that has ended keeps none');
SELECT is(found_after($$SELECT pulse.schedule('s', 'mail', every => '1 h')$$,
  $$UPDATE pulse.schedule SET last_error = 'no', last_error_at = now()$$),
  'refused schedule: error', 'the job of a schedule was refused');
SELECT is(found_after($$SELECT pulse.permanently_fail_jobs(ARRAY[given_job()])$$), 'none',
  'failed jobs are no trouble of the installation');
SELECT is(found_after($$SELECT pulse.permanently_fail_jobs(ARRAY[given_job()])$$,
                      $$UPDATE pulse.finished_job SET state = 'quarantined'$$),
  'quarantined jobs: warning', 'jobs ended their workers');
SELECT alike(answer_after(
    $$SELECT d.detail FROM pulse.doctor() AS d WHERE d.finding = 'quarantined jobs'$$, ARRAY[
    $$SELECT pulse.permanently_fail_jobs(ARRAY[given_job('poison')])$$,
    $$UPDATE pulse.finished_job SET state = 'quarantined'$$,
    $$SELECT pulse.cancel_job(given_job()) FROM generate_series(1, 1001)$$]),
  '1 jobs % the last of them job % of task ''poison''.', 'however many others have ended since');

-- --- queues -------------------------------------------------------------------------------------

SELECT is(found_after($$SELECT pulse.add_job('mail', queue_name => 'legal')$$,
                      $$SELECT pulse.pause_queue('legal')$$), 'paused queue: notice',
  'a queue with a due job is paused');
SELECT is(found_after($$SELECT pulse.pause_queue('legal'), pulse.pause_queue('other')$$,
                      $$SELECT pulse.add_job('mail', queue_name => 'legal',
                                             run_at => now() + interval '1 h')$$), 'none',
  'without one a pause is no trouble');
SELECT is(found_after($$CREATE OR REPLACE FUNCTION pulse_internal.has_depths() RETURNS boolean
    LANGUAGE sql RETURN false$$, $$SELECT pulse.pause_queue('legal')$$), 'none',
  'nor where commits do not count');
SELECT is(found_after($$SELECT pulse.pause_queue('legal')$$, $$SELECT pulse.resume_queue('legal')$$,
                      $$SELECT pulse.add_job('mail', queue_name => 'legal')$$), 'none',
  'nor is one that is over');
SELECT is(found_after($$SELECT pulse.pause_queue('legal')$$,
                      $$SELECT pulse.add_job('mail', queue_name => 'legal/' || n)
                          FROM generate_series(1, 3) AS n$$), 'paused queue: notice',
  'a level is told once, whatever is within');
SELECT is(found_after($$SELECT pulse.pause_queue('legal/*')$$,
                      $$SELECT pulse.add_job('mail', queue_name => 'legal/a')$$),
  'paused queue: notice', 'the members of a level are paused');
SELECT is(found_after($$SELECT pulse.pause_queue('legal/*'), pulse.pause_queue('legal/b')$$,
                      $$SELECT pulse.resume_queue('legal/a')$$,
                      $$SELECT pulse.add_job('mail', queue_name => 'legal/a')$$), 'none',
  'but for one that was resumed by name');
SELECT is(found_after($$SELECT pulse.set_queue('legal', strict => true, on_dead => 'pause')$$,
                      $$SELECT pulse.permanently_fail_jobs(ARRAY[(
                          SELECT id FROM pulse.add_job('mail', queue_name => 'legal'))])$$,
                      $$SELECT pulse.add_job('mail', queue_name => 'legal')$$),
  'paused queue: warning', 'the end of a job has paused a strict queue: that is nobody''s will');

-- Two open jobs of a task that nobody serves, in a queue of these limits, and served ones behind.
CREATE FUNCTION given_held(behind int, VARIADIC limits text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pulse.worker SET tasks = '{mail}';
  EXECUTE format('SELECT pulse.set_queue(%L, %s)', 'partner', array_to_string(limits, ', '));
  PERFORM pulse.add_job('old', queue_name => 'partner', run_at => now() - interval '2 min')
     FROM generate_series(1, 2);
  PERFORM promote_queues();
  PERFORM pulse.add_job('mail', queue_name => 'partner') FROM generate_series(1, behind);
END $$;
SELECT is(found_after($$SELECT given_held(1, 'concurrency => 9', 'rate => 2', 'per => ''1 h''')$$),
  'unserved task: error, held tokens: warning', 'their jobs have the tokens of a queue');
SELECT is(found_after($$SELECT given_held(1, 'concurrency => 2')$$),
  'unserved task: error, held places: warning', 'or its places');
SELECT is(found_after($$SELECT given_held(1, 'concurrency => 9', 'total => 2')$$),
  'unserved task: error, held places: warning', 'or those of a level');
-- The queues of the open jobs are full as well, and no job waits for those.
CREATE FUNCTION given_held_members(queues int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pulse.worker SET tasks = '{mail}';
  PERFORM pulse.add_job('old', queue_name => 'q' || n, run_at => now() - interval '2 min')
     FROM generate_series(1, queues) AS n;
  PERFORM promote_queues();
  PERFORM pulse.add_job('mail', queue_name => 'q' || n) FROM generate_series(1, queues) AS n;
END $$;
SELECT is(found_after($$SELECT pulse.set_queue('gpu', total => 2)$$,
  $$UPDATE pulse.worker SET tasks = '{mail}'$$,
  $$SELECT pulse.add_job('old', queue_name => 'gpu/' || n, run_at => now() - interval '2 min')
      FROM generate_series(1, 2) AS n$$, 'SELECT promote_queues()',
  $$SELECT pulse.add_job('mail', queue_name => 'gpu/x')$$),
  'unserved task: error, held places: warning', 'that other queues of the level wait for');
SELECT is(answer_after(
  $$SELECT count(*) || ', ' || count(*) FILTER (WHERE detail LIKE 'There may be more %')
      FROM pulse.doctor() WHERE finding = 'held places'$$, ARRAY['SELECT given_held_members(12)']),
  '11, 1', 'ten are named, and the answer says that there may be more');
SELECT is(found_after($$SELECT given_held(1, 'concurrency => 3')$$), 'unserved task: error',
  'where one is left that is no trouble of the queue');
SELECT is(found_after($$SELECT given_held(0, 'concurrency => 2')$$), 'unserved task: error',
  'nor where nothing waits for it');

-- Who has paused what, and since when.
SAVEPOINT before_pauses;
CREATE ROLE pulse_ada;
SELECT pulse.grant_operator('pulse_ada'), pulse.grant_scheduler('pulse_ada') \g /dev/null
SELECT pulse.schedule('nightly', 'mail', every => '1 h'),
       pulse.add_job('mail', queue_name => 'legal') \g /dev/null
SET LOCAL ROLE pulse_ada;
SELECT pulse.pause_queue('legal'), pulse.pause_schedule('nightly'),
       pulse.note_operation('pause queue', '{"queue": "legal"}', 'Ada') \g /dev/null
RESET ROLE;
SELECT pulse.pause_queue('legal'), pulse.pause_schedule('nightly') \g /dev/null
SELECT alike((SELECT detail FROM pulse.doctor() WHERE finding = 'paused queue'),
  'Queue ''legal'' is paused by role pulse_ada for ''Ada'' since 20%, and 1 jobs wait behind it, '
  'the first since 20%', 'the first pause counts, with the person that the console noted');
SELECT alike((SELECT detail FROM pulse.doctor() WHERE finding = 'paused schedule'),
  'Schedule ''nightly'' is paused by role pulse_ada since 20%, and adds no jobs.',
  'of a schedule too');
SELECT pulse.resume_queue('legal') \g /dev/null
SELECT pulse.pause_queue('legal') \g /dev/null
SELECT alike((SELECT detail FROM pulse.doctor() WHERE finding = 'paused queue'),
  'Queue ''legal'' is paused by role ' || quote_ident(current_user) || ' since 20%',
  'until it is resumed');
ROLLBACK TO before_pauses;

-- How many jobs wait behind a pause, beside jobs of others that have been due for longer.
CREATE FUNCTION told_behind(name text, VARIADIC statements text[]) RETURNS text
  LANGUAGE sql RETURN answer_after(
    $$SELECT substring(d.detail FROM 'and (.*) jobs wait behind it')
        FROM pulse.doctor() AS d WHERE d.finding = 'paused queue'$$,
    format('SELECT pulse.pause_queue(%L)', name) || statements);
-- As commits count them, or where no commit counts, as part of them shows.
SELECT CASE WHEN bool_and(d.is_exact) THEN '' ELSE 'at least ' END AS at_least
  FROM pulse_internal.depths() AS d \gset
PREPARE others AS INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'mail', 'other ' || n % 7, 'parked', now() - interval '2 h'
  FROM generate_series(1, 1500) AS n;
SELECT is(told_behind('legal', $$SELECT pulse.add_job('mail', queue_name => 'legal/' || n)
                                   FROM generate_series(1, 3) AS n$$), '3',
  'jobs of all queues within are counted');
SELECT is(told_behind('legal', 'EXECUTE others',
            $$SELECT pulse.add_job('mail', queue_name => 'legal/' || n)
                FROM generate_series(1, 3) AS n$$), :'at_least' || '3',
  'also behind jobs of others that have been due for longer');
SELECT is(told_behind('legal', $$SELECT pulse.add_job('mail', queue_name => 'legal/1',
                                          run_at => now() - interval '3 h')$$,
            'EXECUTE others',
            $$SELECT pulse.add_job('mail', queue_name => 'legal/' || n)
                FROM generate_series(2, 9) AS n$$),
  CASE :'at_least' WHEN '' THEN '9' ELSE 'at least 1' END,
  'a part of them is told as a part');
SELECT is(found_after('EXECUTE others', $$SELECT given_held(1, 'concurrency => 2')$$),
  'unserved task: error, held places: warning',
  'beside such jobs held places are found as well');
SELECT is(told_behind('legal', $$SELECT pulse.add_job('mail', queue_name => 'legal/' || n)
                                   FROM generate_series(1, 100) AS n$$), '100',
  'a hundred queues are counted');
SELECT is(told_behind('legal', $$SELECT pulse.add_job('mail', queue_name => 'legal/' || n)
                                   FROM generate_series(1, 150) AS n$$), 'more than 100',
  'more are told as such');

-- --- the server ---------------------------------------------------------------------------------

SELECT ok(pulse_internal.is_nearly_full(100 * (1024 ^ 3)::bigint, 9 * (1024 ^ 3)::bigint)
          AND NOT pulse_internal.is_nearly_full(100 * (1024 ^ 3)::bigint, 11 * (1024 ^ 3)::bigint)
          AND NOT pulse_internal.is_nearly_full(10000 * (1024 ^ 3)::bigint,
                                                11 * (1024 ^ 3)::bigint)
          AND pulse_internal.is_nearly_full(1024 * 1024, 1024)
          AND pulse_internal.is_nearly_full(NULL, NULL) IS NULL,
  'a disk is nearly full with less than a tenth and less than 10 GB');
SELECT is(found_after($$CREATE OR REPLACE FUNCTION pulse_internal.disk_space(
    tablespace oid, OUT total_bytes bigint, OUT free_bytes bigint, OUT device bigint)
  LANGUAGE sql VOLATILE STRICT PARALLEL SAFE AS 'SELECT 1000000000, 1000000, tablespace::bigint'$$),
  'disk nearly full: warning, disk nearly full: warning', 'data and WAL have a disk each');
SELECT is(found_after($$CREATE OR REPLACE FUNCTION pulse_internal.disk_space(
    tablespace oid, OUT total_bytes bigint, OUT free_bytes bigint, OUT device bigint)
  LANGUAGE sql VOLATILE STRICT PARALLEL SAFE AS 'SELECT 1000000000, 1000000, 1'$$),
  'disk nearly full: warning', 'or one');
SELECT is(found_after($$CREATE OR REPLACE FUNCTION pulse_internal.server_built_for() RETURNS int
  LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT current_setting(''server_version_num'')::int + 1'$$),
  'library newer than the server: warning', 'the library has the headers of a newer server');
SELECT is(pulse_internal.server_built_for() / 10000,
  current_setting('server_version_num')::int / 10000, 'whose version it knows');

-- --- tables -------------------------------------------------------------------------------------

SELECT is(found_after('ALTER TABLE pulse.heartbeat SET (autovacuum_enabled = off)'),
  'autovacuum off: warning', 'a table is not vacuumed');
SELECT is(found_after($$UPDATE pg_catalog.pg_index SET indisvalid = false
                         WHERE indexrelid = 'pulse.attempt_prune_idx'::regclass$$),
  'invalid index: error', 'an index is not valid');
SELECT is(found_after('ALTER TABLE pulse.job SET UNLOGGED'), 'unlogged table: warning',
  'a crash would lose jobs');

SELECT ok(pulse_internal.is_slot_behind(false, NULL, 201 * 1024 * 1024)
          AND NOT pulse_internal.is_slot_behind(false, NULL, 199 * 1024 * 1024),
  'a replication slot that nothing uses keeps WAL');
SELECT ok(NOT pulse_internal.is_slot_behind(true, 1000000, 1e12),
  'one in use may lag, as all do under load');
SELECT ok(pulse_internal.is_slot_behind(true, 1000001, 0)
          AND pulse_internal.is_slot_behind(false, 1000001, NULL)
          AND NOT pulse_internal.is_slot_behind(false, NULL, NULL),
  'but not keep the dead rows of a million transactions');

-- --- roles --------------------------------------------------------------------------------------

CREATE ROLE pulse_web;
SELECT pulse.grant_producer('pulse_web'), pulse.grant_observer('pulse_web') \g /dev/null
SELECT is(findings(), 'none', 'roles have the rights of their kinds');
SELECT is(found_after('REVOKE EXECUTE ON FUNCTION pulse.add_flow FROM pulse_web'),
  'missing rights: warning', 'a role lacks a function, as after an upgrade');
SELECT is(found_after('REVOKE SELECT ON pulse.stats FROM pulse_web'),
  'missing rights: warning', 'or a view');
SELECT is(found_after('GRANT EXECUTE ON FUNCTION pulse.verify TO PUBLIC'),
  'public rights: error', 'everybody may call a function');
SELECT is(found_after('GRANT SELECT ON pulse.job TO PUBLIC'),
  'public rights: error', 'or read a table');

-- --- the answer ---------------------------------------------------------------------------------

SELECT pulse.add_job('mial', run_at => now() - interval '2 min') AS mial \g /dev/null
UPDATE pulse.worker SET tasks = '{mail}', version = '0.0.9';
SET LOCAL pulse.sweep_interval = -1;
UPDATE pulse.clock SET last_tick = clock_timestamp() WHERE slot = 1;
SELECT is((SELECT string_agg(DISTINCT severity, ' ' ORDER BY severity) FROM pulse.doctor()),
  'error notice warning', 'there are three severities');
SELECT is((SELECT array_agg(severity) FROM pulse.doctor() AS d
            WHERE d.finding NOT IN (SELECT u.finding FROM usual AS u)),
  '{error,warning,notice}'::text[], 'gravest first');
SELECT is_empty($$SELECT * FROM pulse.doctor()
                   WHERE detail !~ '\.$' OR what_to_do !~ '\.$'
                      OR num_nulls(finding, severity, detail, what_to_do) > 0$$,
  'each finding is a sentence, with what to do');
SELECT ok((SELECT detail LIKE '%''mial''%' AND what_to_do LIKE '%last 1,000 workers that ended%'
             FROM pulse.doctor() WHERE finding = 'unserved task'), 'and names what it is about');

SELECT * FROM finish();
ROLLBACK;
