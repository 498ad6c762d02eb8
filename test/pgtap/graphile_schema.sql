-- sql/graphile: the schema of Graphile Worker over the jobs of pg_pulse. The signatures are those
-- of its release 0.18; test/e2e/graphile_move.pl compares them with the real ones.
\ir support/setup.psql
SELECT no_plan();
-- As results_eq, of values whose collations differ.
CREATE FUNCTION same_rows(query text, expected text, description text) RETURNS text
  LANGUAGE sql AS $$ SELECT is(lines(query), lines(expected), description) $$;

-- --- when it is created -------------------------------------------------------------------------

CREATE SCHEMA graphile_worker;
SELECT refuses('CREATE EXTENSION pg_pulse_graphile', '42P06', 'a schema of the name is not taken');
SELECT alike((refusal_of('CREATE EXTENSION pg_pulse_graphile')).hint,
  'ALTER SCHEMA graphile_worker RENAME TO graphile_worker_old%import_graphile_worker(''graphile_%',
  'and the hint tells how to make room, and to move the jobs');
DROP SCHEMA graphile_worker;
SAVEPOINT other_version;
UPDATE pg_extension SET extversion = '0.1.0' WHERE extname = 'pg_pulse';
SELECT is((refusal_of('CREATE EXTENSION pg_pulse_graphile')).message,
  'pg_pulse_graphile 0.2.0 needs pg_pulse 0.2.0, and 0.1.0 is installed',
  'pg_pulse must be of the same version');
ROLLBACK TO other_version;
CREATE EXTENSION pg_pulse_graphile;
\o /dev/null
CREATE ROLE app; CREATE ROLE watcher; CREATE ROLE boss; CREATE ROLE stranger;
SELECT pulse.grant_producer('app'), pulse.grant_observer('watcher'), pulse.grant_operator('boss');
\o

SELECT is(lines($$
  SELECT format('%s(%s) %s', p.proname, pg_get_function_arguments(p.oid),
                pg_get_function_result(p.oid)) AS signature
    FROM pg_proc AS p
   WHERE p.pronamespace = 'graphile_worker'::regnamespace AND p.proname !~ '^_' ORDER BY 1$$),
  lines($$VALUES
    ('add_job(identifier text, payload json DEFAULT NULL::json, queue_name text DEFAULT '
     'NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, '
     'max_attempts integer '
     'DEFAULT NULL::integer, job_key text DEFAULT NULL::text, priority integer DEFAULT '
     'NULL::integer, flags text[] DEFAULT NULL::text[], job_key_mode text DEFAULT '
     '''replace''::text) graphile_worker._private_jobs'),
    ('add_jobs(specs graphile_worker.job_spec[], job_key_preserve_run_at boolean DEFAULT false) '
     'SETOF graphile_worker._private_jobs'),
    ('complete_jobs(job_ids bigint[]) SETOF graphile_worker._private_jobs'),
    ('force_unlock_workers(worker_ids text[]) void'),
    ('permanently_fail_jobs(job_ids bigint[], error_message text DEFAULT NULL::text) SETOF '
     'graphile_worker._private_jobs'),
    ('remove_job(job_key text) graphile_worker._private_jobs'),
    ('reschedule_jobs(job_ids bigint[], run_at timestamp with time zone DEFAULT NULL::timestamp '
     'with time zone, priority integer DEFAULT NULL::integer, attempts integer DEFAULT '
     'NULL::integer, max_attempts integer DEFAULT NULL::integer) SETOF '
     'graphile_worker._private_jobs')$$), 'the functions are those of Graphile Worker');
SELECT is_empty($$
  SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'graphile_worker'::regnamespace
     AND (p.prosecdef OR obj_description(p.oid) IS NULL
          OR p.proconfig IS NULL AND p.proname <> '_private_id')$$,
  'each runs with its caller''s rights, says its search_path, and has a comment');

-- --- producers ----------------------------------------------------------------------------------

SELECT answers($$SELECT task_id = graphile_worker._private_id('mail'), job_queue_id, payload,
                        priority, run_at = now(), attempts, max_attempts, last_error, key,
                        locked_at, locked_by, revision, flags, is_available
                   FROM graphile_worker.add_job('mail')$$,
  ROW(true, NULL::int, '{}', 0, true, 0, 25, NULL::text, NULL::text, NULL::text, NULL::text, 0,
      NULL::text, true), 'a job that is added with its task alone has the defaults');
SELECT id AS job FROM graphile_worker.add_job(
  'mail', '{"to":"ann"}', 'letters', now() + '1 h', 7, 'key 1', 3, '{night,big,night}') \gset
SELECT answers(format($$SELECT identifier, payload, queue_name, run_at = now() + '1 h',
                               max_attempts, job_key, priority, flags
                          FROM pulse.job WHERE id = %s$$, :job),
  ROW('mail', '{"to":"ann"}', 'letters', true, 7, 'key 1', 3, '{big,night}'),
  'each argument arrives');
SELECT same_rows($$SELECT j::text FROM graphile_worker.add_job(
    'mail', '{"to":"bob"}', 'letters', job_key => 'key 1', flags => '{x}') AS j$$,
  $$SELECT j::text FROM graphile_worker._private_jobs AS j WHERE key = 'key 1'$$,
  'what add_job returns is what the view shows');
SELECT answers(format('SELECT id, revision FROM graphile_worker.add_job(''mail'', job_key => %L, '
                      'job_key_mode => NULL)', 'key 1'), ROW(:job, 2),
  'a mode of NULL replaces');
SELECT answers($$SELECT revision, payload FROM graphile_worker.add_job('mail', '[1]',
                   job_key => 'key 1', job_key_mode => 'unsafe_dedupe')$$,
  ROW(3, '{}'), 'the modes are those of pulse.add_job');
SELECT refuses($$SELECT graphile_worker.add_job('mail', job_key => 'k', job_key_mode => 'odd')$$,
  'GWBKM', 'an unknown mode has the code that programs know');
SELECT answers($$SELECT attempts FROM graphile_worker.add_job('mail', job_key_mode => 'odd')$$,
  ROW(0), 'without a key the mode says nothing');
SELECT refuses($$SELECT graphile_worker.add_job(NULL)$$, 'PU004', 'a job has a task');
SELECT refuses($$SELECT graphile_worker.add_job('mail', priority => 40000)$$, 'PU004',
  'a priority must fit');
SELECT refuses($$SELECT graphile_worker.add_job('mail', max_attempts => 0)$$, 'PU004',
  'a job has an attempt');
SELECT answers($$SELECT key, is_available FROM graphile_worker.add_job('mail',
                   queue_name => '''; DROP TABLE pulse.job; --', job_key => '"%s"')$$,
  ROW('"%s"', true), 'a name is nothing but a name');

SELECT same_rows($$SELECT payload::text, max_attempts::int, key
                      FROM graphile_worker.add_jobs(ARRAY[
    ('a', '[1]', NULL, NULL, NULL, 'arrays', NULL, NULL), ('b', NULL, 'q', NULL, 3, NULL, 1, '{f}'),
    ('a', '[2]', NULL, NULL, NULL, 'arrays', NULL, NULL)]::graphile_worker.job_spec[])$$,
  $$VALUES ('[1]', 25, 'arrays'), ('{}', 3, NULL), ('[1, 2]', 25, 'arrays')$$,
  'add_jobs adds them in their order, and merges arrays of one key');
SELECT is_empty('SELECT graphile_worker.add_jobs(''{}'')', 'of none it adds none');
SELECT is_empty('SELECT graphile_worker.add_jobs(NULL)', 'nor of NULL');
SELECT refuses('SELECT graphile_worker.add_jobs(ARRAY[NULL]::graphile_worker.job_spec[])',
  'PU004', 'a spec of NULL has no task');
SELECT answers($$SELECT run_at = now() + '1 d' FROM graphile_worker.add_jobs(ARRAY[
    ('a', '1', NULL, now() + '1 d', NULL, 'kept', NULL, NULL)]::graphile_worker.job_spec[])$$,
  ROW(true), 'a job of tomorrow');
SELECT answers($$SELECT run_at = now() + '1 d', payload FROM graphile_worker.add_jobs(ARRAY[
    ('a', '2', NULL, NULL, NULL, 'kept', NULL, NULL)]::graphile_worker.job_spec[], true)$$,
  ROW(true, '2'), 'keeps its time if asked to');

SELECT same_rows($$SELECT payload::text FROM graphile_worker.remove_job('kept')$$, 'VALUES (2)',
  'remove_job returns the job that it deletes');
SELECT is(graphile_worker.remove_job('kept'), NULL, 'and NULL without one');
SELECT is(graphile_worker.remove_job(NULL), NULL, 'as of no key');

-- --- what readers see ---------------------------------------------------------------------------

\o /dev/null
DELETE FROM pulse.job;
SELECT given_worker('pool-1') AS worker \gset
SELECT id AS held, token FROM given_claimed_job(:worker, 'print', 'paper', job_key => 'held') \gset
SELECT given_job('print', 'paper') AS next \gset
SELECT given_job('spent', max_attempts => 1, job_key => 'spent') AS spent \gset
SELECT pulse.complete(c.id, c.token) FROM pulse.claim_job(:worker, given_job('print')),
       LATERAL (SELECT (job).id, (job).token) AS c;
SELECT pulse.fail((job).id, (job).token, 'no ink') FROM pulse.claim_job(:worker, :spent);
SELECT pulse.cancel_job(given_job('cancelled')), pulse.set_task('idle', max_attempts => 2),
       pulse.set_queue('idle', 2), pulse.set_queue('level/*', total => 3);
SELECT pulse.load_crontab('set',
  '[{"name": "tidy", "identifier": "tidy", "cron": "* * * * *"}]');
\o
SELECT same_rows(
  'SELECT id, task_identifier, queue_name, attempts::int, max_attempts::int, key, locked_by,
          locked_at IS NULL, last_error FROM graphile_worker.jobs ORDER BY id',
  format($$VALUES (%s::bigint, 'print', 'paper', 1, 25,
                   'held', 'pool-1', false, NULL),
                  (%s, 'print', 'paper', 0, 25, NULL, NULL, true, NULL),
                  (%s, 'spent', NULL, 1, 1, NULL, NULL, true, 'no ink')$$, :held, :next, :spent),
  'jobs that wait, that run and that failed for good are seen, and no other');
SELECT same_rows('SELECT id, is_available FROM graphile_worker._private_jobs ORDER BY id',
  format('VALUES (%s::bigint, false), (%s, true), (%s, false)', :held, :next, :spent),
  'one that waits is available');
SELECT same_rows($$
  SELECT t.identifier, q.queue_name, q.locked_by, q.is_available
    FROM graphile_worker._private_jobs AS j
    JOIN graphile_worker._private_tasks AS t ON t.id = j.task_id
    LEFT JOIN graphile_worker._private_job_queues AS q ON q.id = j.job_queue_id ORDER BY j.id$$,
  $$VALUES ('print', 'paper', 'pool-1', false),
           ('print', 'paper', 'pool-1', false), ('spent', NULL, NULL, NULL)$$,
  'readers join tasks and queues by their numbers');
SELECT same_rows('SELECT identifier FROM graphile_worker._private_tasks ORDER BY 1',
  $$VALUES ('idle'), ('print'), ('spent')$$,
  'tasks with settings are known without jobs');
SELECT same_rows('SELECT queue_name, is_available FROM graphile_worker._private_job_queues
                  ORDER BY 1', $$VALUES ('idle', true), ('paper', false)$$,
  'as are queues, but no patterns of them');
SELECT same_rows('SELECT identifier, last_execution FROM graphile_worker._private_known_crontabs',
  $$VALUES ('tidy', NULL::timestamptz)$$, 'the items of crontabs are known');
SELECT answers('SELECT max(id), max(id) FILTER (WHERE breaking) FROM graphile_worker.migrations',
  ROW(20, 19), 'its clients find that nothing is left to migrate');
SELECT same_rows('SELECT j::text FROM graphile_worker.remove_job(''held'') AS j',
  format('SELECT j::text FROM graphile_worker._private_jobs AS j WHERE id = %s', :held),
  'a running job is returned as the view shows it');
SELECT is((SELECT is_available FROM graphile_worker._private_jobs WHERE id = :held), false,
  'remove_job leaves it running');

-- --- operators ----------------------------------------------------------------------------------

SELECT same_rows(format('SELECT id, attempts::int, key FROM graphile_worker.complete_jobs(%L)',
                         ARRAY[:held, :spent]),
  format('VALUES (%s::bigint, 1, NULL::text)', :spent),
  'a job that failed for good is completed, one that runs is not');
SELECT same_rows(format('SELECT id, attempts::int, max_attempts::int, last_error FROM '
                         'graphile_worker.permanently_fail_jobs(%L, ''enough'')',
                         ARRAY[:next, :held]),
  format('VALUES (%s::bigint, 25, 25, ''enough'')', :next),
  'a job that is failed by hand has no attempt left');
SELECT same_rows(format('SELECT last_error FROM graphile_worker.permanently_fail_jobs(%L)',
                         ARRAY[:next]), $$VALUES ('Manually marked as failed')$$,
  'without a message there is a known one');
SELECT same_rows(format('SELECT id, attempts::int, priority::int, run_at = now() + ''1 h'' FROM '
                         'graphile_worker.reschedule_jobs(%L, now() + ''1 h'', 4, 0, 9)',
                         ARRAY[:next, :held]),
  format('VALUES (%s::bigint, 0, 4, true)', :next), 'it is given attempts, and waits again');
SELECT refuses(format('SELECT graphile_worker.reschedule_jobs(%L, attempts => 9)', ARRAY[:next]),
  'PU004', 'a job is not left without an attempt');
SELECT lives_ok($$SELECT graphile_worker.force_unlock_workers('{pool-1,unknown}')$$,
  'workers are unlocked by the names that locked_by shows');
SELECT is((SELECT count(*) FROM graphile_worker.jobs WHERE locked_by IS NOT NULL), 0::bigint,
  'and hold no job');
SELECT is_empty('SELECT graphile_worker.complete_jobs(NULL)', 'no ids are no jobs');

-- --- what is written there ----------------------------------------------------------------------

\o /dev/null
SELECT id FROM graphile_worker.permanently_fail_jobs(ARRAY[given_job('dead')]) \gset dead_
\o
SELECT refuses(format('%s graphile_worker.%s', verb, view), '0A000', format('%s %s', verb, view))
  FROM (VALUES ('UPDATE', '_private_jobs SET locked_by = ''me'''),
               ('UPDATE', '_private_tasks SET identifier = ''t'''),
               ('UPDATE', '_private_job_queues SET locked_by = NULL'),
               ('UPDATE', '_private_known_crontabs SET last_execution = now()'),
               ('UPDATE', 'migrations SET breaking = true'),
               ('UPDATE', 'jobs SET attempts = 0'),
               ('INSERT INTO', '_private_jobs (task_id) VALUES (1)'),
               ('INSERT INTO', '_private_tasks (identifier) VALUES (''t'') ON CONFLICT DO NOTHING'),
               ('INSERT INTO', '_private_job_queues (queue_name) VALUES (''q'')'),
               ('INSERT INTO', '_private_known_crontabs VALUES (''c'', now())'),
               ('INSERT INTO', 'migrations VALUES (21)'), ('INSERT INTO', 'jobs (id) VALUES (1)'),
               ('DELETE FROM', '_private_jobs'), ('DELETE FROM', '_private_known_crontabs'),
               ('DELETE FROM', 'migrations'), ('DELETE FROM', 'jobs')) AS w (verb, view);
SELECT lives_ok('DELETE FROM graphile_worker._private_jobs AS j
                  WHERE j.attempts = j.max_attempts AND j.locked_at IS NULL',
  'the cleanup of Graphile Worker deletes the jobs that failed for good');
SELECT is(state_of(:dead_id), 'gone', 'which are gone then');
SELECT lives_ok('DELETE FROM graphile_worker._private_tasks', 'it finds no tasks to delete');
SELECT lives_ok('DELETE FROM graphile_worker._private_job_queues', 'and no queues');
SELECT is((SELECT count(*) FROM pulse.queue), 2::bigint, 'whose settings stay');

-- --- rights -------------------------------------------------------------------------------------

SELECT is_empty($$
  SELECT p.oid::regprocedure::text FROM pg_proc AS p
   WHERE p.pronamespace = 'graphile_worker'::regnamespace
     AND has_function_privilege('stranger', p.oid, 'EXECUTE')
  UNION ALL
  SELECT c.oid::regclass::text FROM pg_class AS c
   WHERE c.relnamespace = 'graphile_worker'::regnamespace
     AND c.relkind = 'v' AND has_table_privilege('stranger', c.oid, 'SELECT, INSERT, DELETE')$$,
  'PUBLIC has nothing');
SELECT lives_ok($$SET LOCAL ROLE app; SELECT graphile_worker.add_job('mail', '"mine"',
                  job_key => 'ours', flags => '{f}'), id FROM graphile_worker.migrations$$,
  'a producer adds jobs, and its client finds the schema complete');
RESET ROLE;
SELECT lives_ok($$SET LOCAL ROLE app; SELECT graphile_worker.add_jobs(
  ARRAY[('a', NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::graphile_worker.job_spec[])$$,
  'one or many');
SELECT is((SELECT payload::text FROM graphile_worker.add_job('mail', job_key => 'ours',
           job_key_mode => 'unsafe_dedupe')), NULL,
  'what another producer wrote is not told, as by pulse.add_job');
SELECT lives_ok($$SELECT graphile_worker.remove_job('ours')$$, 'it removes them by key');
RESET ROLE;
SELECT refuses($$SELECT graphile_worker.complete_jobs('{1}')$$, '42501',
  'it completes none', 'app');
SELECT refuses('SELECT * FROM graphile_worker.jobs', '42501', 'and reads none', 'app');
SELECT lives_ok('SET LOCAL ROLE boss; SELECT graphile_worker.permanently_fail_jobs(
    ARRAY(SELECT id FROM graphile_worker._private_jobs WHERE is_available), ''secret'')',
  'an operator fails jobs, and reads them whole');
SELECT isnt((SELECT max(last_error) FROM graphile_worker.jobs), NULL, 'with their errors');
RESET ROLE;
SELECT refuses($$SELECT graphile_worker.add_job('mail')$$, '42501', 'but adds none', 'boss');
SELECT lives_ok('SET LOCAL ROLE watcher; SELECT * FROM graphile_worker._private_tasks,
    graphile_worker._private_job_queues, graphile_worker._private_known_crontabs,
    graphile_worker.migrations', 'an observer reads tasks, queues and crontabs');
SELECT is((SELECT count(last_error) FROM graphile_worker.jobs HAVING count(*) > 0), 0::bigint,
  'and the jobs without what they failed of');
RESET ROLE;
SELECT refuses('SELECT * FROM graphile_worker._private_jobs', '42501', 'but no payload', 'watcher');
SELECT refuses('DELETE FROM graphile_worker._private_jobs', '42501', 'and deletes none', 'watcher');
SELECT lives_ok('SET LOCAL ROLE boss; DELETE FROM graphile_worker._private_jobs
                  WHERE attempts = max_attempts', 'an operator deletes those that failed');
RESET ROLE;
\o /dev/null
SELECT pulse.revoke_producer('app'), pulse.revoke_observer('watcher'),
       pulse.revoke_operator('boss');
\o
SELECT is_empty($$
  SELECT r.role, o.object FROM unnest('{app,watcher,boss}'::text[]) AS r (role),
    LATERAL (SELECT p.oid::regprocedure::text AS object FROM pg_proc AS p
              WHERE p.pronamespace = 'graphile_worker'::regnamespace
                AND has_function_privilege(r.role, p.oid, 'EXECUTE')
             UNION ALL
             SELECT c.oid::regclass::text FROM pg_class AS c
              WHERE c.relnamespace = 'graphile_worker'::regnamespace AND c.relkind = 'v'
                AND has_table_privilege(r.role, c.oid, 'SELECT, DELETE')
             UNION ALL
             SELECT 'schema' WHERE has_schema_privilege(r.role, 'graphile_worker', 'USAGE')) AS o$$,
  'what was granted is revoked');

-- --- when it goes -------------------------------------------------------------------------------

SELECT refuses('DROP EXTENSION pg_pulse', '2BP01', 'pg_pulse does not go without it');
SELECT given_job('stays') AS stays \gset
DROP EXTENSION pg_pulse_graphile;
SELECT is(state_of(:stays), 'ready', 'the jobs stay when it goes');
SELECT is_empty($$SELECT FROM pg_namespace WHERE nspname = 'graphile_worker'$$,
  'and its schema does not');
SELECT lives_ok($$SELECT pulse.grant_producer('app')$$, 'rights are granted without it');

SELECT * FROM finish();
ROLLBACK;
