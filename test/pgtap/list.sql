-- sql/monitor/list.sql: jobs and attempts page by page, for roles that look.
\ir support/setup.psql
SELECT plan(76);

SELECT expect_function('list_jobs',
  'states text[] DEFAULT NULL::text[], task text DEFAULT NULL::text, '
  'queue text DEFAULT NULL::text, key text DEFAULT NULL::text, error text DEFAULT NULL::text, '
  'error_line text DEFAULT NULL::text, older_than interval DEFAULT NULL::interval, '
  'newer_than interval DEFAULT NULL::interval, before_id bigint DEFAULT NULL::bigint, '
  'max_rows integer DEFAULT 50',
  'TABLE(id bigint, state text, identifier text, queue_name text, priority integer, '
  'run_at timestamp with time zone, attempts integer, max_attempts integer, crashes integer, '
  'job_key text, worker_id bigint, created_at timestamp with time zone, '
  'claimed_at timestamp with time zone, finished_at timestamp with time zone, '
  'progress double precision, last_error text, last_error_line text)',
  'stable', 'invoker');
SELECT expect_function('job_attempts', 'job_id bigint, max_rows integer DEFAULT 100',
  'TABLE(attempt integer, worker_id bigint, worker text, claimed_at timestamp with time zone, '
  'ended_at timestamp with time zone, outcome text, error text)',
  'stable', 'invoker');
SELECT expect_function('recoveries',
  'max_rows integer DEFAULT 20, newer_than interval DEFAULT ''1 day''::interval',
  'TABLE(job_id bigint, identifier text, attempt integer, outcome text, worker_id bigint, '
  'worker text, claimed_at timestamp with time zone, ended_at timestamp with time zone)',
  'stable', 'definer');

-- --- list_jobs ----------------------------------------------------------------------------------

TRUNCATE pulse.job, pulse.finished_job, pulse.attempt;
SELECT is((SELECT count(*) FROM pulse.list_jobs()), 0::bigint, 'where no job is, none is listed');
SELECT given_worker() AS ann \gset
SELECT id AS running, token FROM given_claimed_job(:ann, 'ink') \gset
SELECT pulse.progress(:running, :token, fraction => 0.25) \g /dev/null
SELECT id AS failed, token AS failed_token FROM given_claimed_job(:ann, 'mail') \gset
SELECT pulse.fail(:failed, :failed_token, 'Disk FULL of ' || repeat('x', 1000), retry => false)
 \g /dev/null
SELECT id AS ready FROM pulse.add_job('mail', job_key => 'k') \gset
SELECT pulse.pause_queue('post') \g /dev/null
SELECT id AS parked FROM pulse.add_job('mail', queue_name => 'post') \gset
SELECT (pulse.add_job_after(ARRAY[:ready], 'mail')).id AS waiting \gset
SELECT given_claimed_job(:ann, 'kept') \g /dev/null
SELECT pulse.set_task('kept', keep_completed => '1 h') \g /dev/null
SELECT id AS completed FROM pulse.job WHERE identifier = 'kept' \gset
SELECT pulse.complete(j.id, j.token) FROM pulse.job AS j WHERE j.id = :completed \g /dev/null

CREATE FUNCTION listed(call text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  states text;
BEGIN
  EXECUTE format('SELECT string_agg(coalesce(l.state, ''more''), '' '') FROM pulse.list_jobs(%s) '
                 'AS l', call) INTO states;
  RETURN states;
END $$;
SELECT is(listed(''), 'completed parked parked ready failed running',
  'live and ended jobs stand together, the newest first');
SELECT is(listed('ARRAY[''running'']'), 'running', 'by one state');
SELECT is(listed('ARRAY[''failed'', ''ready'']'), 'ready failed',
  'by states of live and of ended jobs');
SELECT is(listed('ARRAY[''completed'']'), 'completed', 'completed jobs that are kept');
SELECT is(listed('task => ''ink'''), 'running', 'by task');
SELECT is(listed('task => ''mail'', states => ''{parked}'''), 'parked parked',
  'parked are jobs behind a queue and jobs that wait for others');
SELECT is(listed('queue => ''post'''), 'parked', 'by queue');
SELECT is(listed('key => ''k'''), 'ready', 'by key');
SELECT is(listed('key => ''no such'''), NULL, 'a key that no job has finds none');
SELECT is(listed('error => ''disk full'''), 'failed', 'by a part of the error, in any case');
SELECT is(listed('error => ''%'''), NULL, 'which is no pattern');
SELECT is(listed('max_rows => 2'), 'completed parked', 'a page has so many rows');
SELECT is(listed(format('max_rows => 2, before_id => %s', :waiting)), 'parked ready',
  'and the next goes on below its last id');
SELECT is(listed(format('task => ''mail'', states => ''{parked}'', before_id => %s', :waiting)),
  'parked', 'of few jobs, too');
UPDATE pulse.job SET created_at = now() - interval '1 day' WHERE id = :ready;
SELECT is(listed('older_than => ''1 h'''), 'ready', 'by age: added long ago');
SELECT is(listed('newer_than => ''1 h'', states => ''{ready,running}'''), 'running',
  'or lately');
SELECT answers(format('SELECT l.progress, l.worker_id, length(l.last_error)
    FROM pulse.list_jobs() AS l WHERE l.id = %s', :running),
  ROW(0.25::float8, :ann::bigint, NULL::int),
  'a running job has its progress and its worker');
SELECT is((SELECT length(l.last_error) FROM pulse.list_jobs() AS l WHERE l.id = :failed), 500,
  '500 characters of an error are shown');
SELECT refuses('SELECT pulse.list_jobs(''{gone}'')', 'PU004', 'an unknown state is refused');
SELECT refuses('SELECT pulse.list_jobs(max_rows => 0)', 'PU004', 'a page has a row');
SELECT refuses('SELECT pulse.list_jobs(max_rows => 1001)', 'PU004', 'and at most 1000');

CREATE ROLE looking;
SELECT pulse.grant_observer('looking') \g /dev/null
SET ROLE looking;
SELECT is((SELECT count(l.last_error) FROM pulse.list_jobs() AS l), 0::bigint,
  'a role that may not read the tables sees no error');
SELECT is((SELECT count(*) FROM pulse.list_jobs() AS l), 6::bigint, 'but the jobs');
SELECT is((SELECT count(a.error) FROM pulse.job_attempts(:failed) AS a), 0::bigint,
  'nor that of an attempt');
RESET ROLE;
SELECT refuses('SELECT pulse.list_jobs(error => ''x'')', '42501',
  'nor may it search them', 'looking');

-- Many jobs: the one that is wanted is found by its index, or where the next call goes on is told.
INSERT INTO pulse.job (identifier) SELECT 'bulk' FROM generate_series(1, 25000);
ANALYZE pulse.job;
SELECT is(listed('task => ''ink'', states => ''{ready,running}'''), 'running',
  'an index finds the old job of a task with few');
SELECT is(listed('task => ''mail'', older_than => ''1 h'', states => ''{parked,ready}'''),
  'ready', 'of a task with few jobs all are looked at');
UPDATE pulse.finished_job SET created_at = now() - interval '1 day' WHERE id = :failed;
SELECT is(listed('older_than => ''1 h'''), 'more',
  'a search that stops says so, and shows nothing below');
SELECT is(listed(format('older_than => ''1 h'', before_id => %s',
    (SELECT l.id FROM pulse.list_jobs(older_than => '1 h') AS l))), 'ready failed',
  'and goes on at the id that it names');

-- --- job_attempts, recoveries -------------------------------------------------------------------

SELECT answers(format('SELECT a.attempt, a.worker, a.outcome, left(a.error, 4)
    FROM pulse.job_attempts(%s) AS a', :failed),
  ROW(1, 'ann', 'failed', 'Disk'), 'an attempt has its worker, its end and its error');
SELECT is((SELECT count(*) FROM pulse.recoveries()), 0::bigint,
  'a failure is no recovery');
SELECT pulse.declare_lost(:ann, 'pulled the plug') \g /dev/null
SELECT answers('SELECT r.job_id, r.identifier, r.outcome, r.worker FROM pulse.recoveries() AS r',
  ROW(:running::bigint, 'ink', 'lost', 'ann'), 'the loss of a worker is one');

-- --- flow_jobs ----------------------------------------------------------------------------------

SELECT expect_function('flow_jobs', 'flow_id bigint, max_rows integer DEFAULT 100',
  'TABLE(job_id bigint, key text, identifier text, state text, parents bigint[], '
  'run_at timestamp with time zone)', 'stable', 'definer');
SELECT max(f.flow_id) AS flow, min(f.id) AS page, max(f.id) AS book FROM pulse.add_flow('[
  {"key": "page", "identifier": "page"},
  {"key": "book", "identifier": "bind", "after": ["page"]}]') AS f \gset
SELECT answers(format('SELECT * FROM pulse.flow_jobs(%s, 1)', :flow),
  ROW(:page::bigint, 'page', 'page', 'ready', '{}'::bigint[], now()), 'a job of a flow');
SELECT answers(format('SELECT * FROM pulse.flow_jobs(%s) OFFSET 1', :flow),
  ROW(:book::bigint, 'book', 'bind', 'parked', ARRAY[:page]::bigint[], now()), 'one with a parent');
SELECT is((SELECT count(*) FROM pulse.flow_jobs(0)), 0::bigint, 'none of an unknown flow');
SELECT throws_ok('SELECT pulse.flow_jobs(1, 0)', 'PU004', NULL, 'a number of rows is in range');

-- --- list_flows ---------------------------------------------------------------------------------

SELECT expect_function('list_flows',
  'before bigint DEFAULT NULL::bigint, max_rows integer DEFAULT 50',
  'TABLE(id bigint, name text, created_at timestamp with time zone, jobs bigint, '
  'jobs_checked bigint, waiting bigint, running bigint, completed bigint, failed bigint, '
  'cancelled bigint, last_finished_at timestamp with time zone)', 'stable', 'definer');
SELECT pulse.cancel_job(:page) \g /dev/null
SELECT pulse.add_flow('[{"identifier": "a"}, {"identifier": "b"}, {"identifier": "c"}]', 'abc')
 \g /dev/null
SELECT results_eq(
  'SELECT id, name, created_at, jobs, waiting, running, completed, failed, cancelled,
          last_finished_at FROM pulse.list_flows()',
  'SELECT id, name, created_at, jobs, waiting, running, completed, failed, cancelled,
          last_finished_at FROM pulse.flows ORDER BY id DESC',
  'what the view tells, the newest first');
SELECT max(f.flow_id) AS large FROM pulse.add_flow((
  SELECT json_agg('{"identifier": "d"}'::json) FROM generate_series(1, 450))) AS f \gset
SELECT answers('SELECT jobs, jobs_checked, waiting FROM pulse.list_flows() LIMIT 1',
  ROW(450::bigint, 395::bigint, 395::bigint), 'of a large flow a part is looked at, and told');
SELECT is((SELECT sum(jobs - jobs_checked) FROM pulse.list_flows(:large)), 0::numeric,
  'of the small ones below it all');
SELECT is((SELECT count(*) FROM pulse.list_flows(NULL, 1)), 1::bigint, 'no more than asked for');
SELECT throws_ok('SELECT pulse.list_flows(NULL, 0)', 'PU004', NULL, 'a number of them is in range');

-- --- settings -----------------------------------------------------------------------------------

SELECT pulse.set_queue('post', concurrency => 3) \g /dev/null
SELECT answers('SELECT q.queue_name, q.concurrency, t.identifier, t.keep_completed
    FROM pulse.queue_settings AS q, pulse.task_settings AS t',
  ROW('post', 3, 'kept', interval '1 h'), 'the settings of queues and tasks');

-- --- edges of ended parents ---------------------------------------------------------------------

SELECT max(f.flow_id) AS flow, min(f.id) AS page, max(f.id) AS book FROM pulse.add_flow('[
  {"key": "page", "identifier": "page"},
  {"key": "book", "identifier": "bind", "after": ["page"]}]') AS f \gset
SELECT pulse.complete_jobs(ARRAY[:page]) \g /dev/null
SELECT pulse.complete_jobs(ARRAY[:book]) \g /dev/null
SELECT is((SELECT count(*) FROM pulse.dependency WHERE child_id = :book), 0::bigint,
  'a job that has started waits for none');
SELECT answers(format('SELECT f.key, f.state, f.parents FROM pulse.flow_jobs(%s) AS f OFFSET 1',
  :flow), ROW('book', 'completed', ARRAY[:page]::bigint[]), 'its flow still knows its parent');
SELECT max(f.flow_id) AS flow, min(f.id) AS first, max(f.id) AS last FROM pulse.add_flow('[
  {"identifier": "cover"}, {"identifier": "print"}, {"identifier": "sell"}]') AS f \gset
SELECT pulse.add_dependency(:last, ARRAY[:first, :first + 1]) \g /dev/null
SELECT pulse.add_dependency(:last, ARRAY[:first]) \g /dev/null
SELECT pulse.complete_jobs(ARRAY[:first, :first + 1]) \g /dev/null
SELECT pulse.complete_jobs(ARRAY[:last]) \g /dev/null
SELECT answers(format('SELECT f.state, f.parents FROM pulse.flow_jobs(%s) AS f OFFSET 2', :flow),
  ROW('completed', ARRAY[:first, :first + 1]::bigint[]), 'those that add_dependency added, too');

SELECT * FROM finish();
ROLLBACK;
