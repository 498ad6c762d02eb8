-- sql/tap: jobs run inside of a test as production runs them, and deaths of workers at will.
\ir support/tap.psql
SELECT plan(53);

\o /dev/null
SELECT freeze();
CREATE TABLE did (n serial PRIMARY KEY, what text, path text);
CREATE FUNCTION do_it(payload jsonb) RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO did (what, path) VALUES (payload ->> 'what', current_setting('search_path'));
  IF payload ? 'next' THEN
    PERFORM pulse.add_job('do', (payload -> 'next')::json);
  END IF;
  RETURN 'done';
END $$;
CREATE FUNCTION fail_it(payload jsonb) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO did (what) VALUES ('not kept');
  RAISE EXCEPTION 'it failed' USING DETAIL = 'a detail', HINT = 'a hint', ERRCODE = 'AA001';
END $$;
SELECT pulse.set_task('do', handler => 'do_it(jsonb)'),
       pulse.set_task('fail', handler => 'fail_it(jsonb)', max_attempts => 2);
CREATE FUNCTION add(what text, queue text = NULL, priority int = NULL) RETURNS bigint
  LANGUAGE sql AS $$
  SELECT (pulse.add_job('do', json_build_object('what', what), queue, priority => priority)).id $$;
\o

-- --- drain --------------------------------------------------------------------------------------

SELECT is_empty('SELECT * FROM drain()', 'without a job, drain() does nothing');
SELECT isnt(add('second', priority => 2), add('first', priority => 1), 'two jobs wait');
SELECT results_eq('SELECT attempt, state, error FROM drain()',
  $$VALUES (1::smallint, 'completed', NULL), (1::smallint, 'completed', NULL)$$,
  'it runs both, and tells how they ended');
SELECT results_eq('SELECT what FROM did ORDER BY n', $$VALUES ('first'), ('second')$$,
  'in the order of a claim');
SELECT is(path, current_setting('search_path'), 'with the settings of the test') FROM did LIMIT 1;
SELECT is_empty('SELECT * FROM pulse.job', 'completed jobs are gone');
SELECT is((SELECT count(*) FROM drain()), 0::bigint, 'nothing is left to run');

SELECT lives_ok($$SELECT add(w, 'q') FROM unnest('{a,b,c}'::text[]) AS w$$,
  'a queue has three jobs');
SELECT is((SELECT count(*) FROM drain(max_jobs => 2)), 2::bigint, 'max_jobs ends a run early');
SELECT queue_depth_is('q', 1, 'the third waits');
SAVEPOINT before;
SELECT is((SELECT count(*) FROM drain()), 1::bigint, 'until the next run');
ROLLBACK TO before;
SELECT id AS third FROM pulse.job \gset
SELECT is(run_job(:third), 'completed', 'or, where a savepoint took that back, until it is told');
CREATE FUNCTION spread(payload jsonb) RETURNS void
  LANGUAGE sql AS $$
  SELECT pulse.add_job('outside', queue_name => q), pulse.add_job('do', queue_name => q || '2')
    FROM unnest('{a,b,c,d}'::text[]) AS q $$;
SELECT pulse.set_task('spread', handler => 'spread(jsonb)'), pulse.add_job('spread') \g /dev/null
SELECT is((SELECT count(*) FROM drain()), 5::bigint,
  'a job adds jobs to many queues, and those of functions run');
DELETE FROM pulse.job;
SELECT lives_ok(
  $$SELECT pulse.add_job('do', '{"what": "x", "next": {"what": "y", "next": {"what": "z"}}}')$$,
  'a job adds a job that adds a job');
SELECT is((SELECT count(*) FROM drain()), 3::bigint, 'all three run');
SELECT lives_ok($$SELECT pulse.add_flow('[{"key": "a", "identifier": "do"},
    {"key": "b", "identifier": "do", "after": ["a"], "queue_name": "q"}]')$$,
  'a flow has two jobs');
SELECT is((SELECT count(*) FROM drain()), 2::bigint, 'the second follows the first');
SELECT lives_ok($$SELECT pulse.add_job('do', '{"what": "late"}', run_at => now() + '1 h')$$,
  'a job is due in an hour');
SELECT is((SELECT count(*) FROM drain()), 0::bigint, 'it does not run now');
SELECT travel('1 h') \g /dev/null
SELECT is((SELECT count(*) FROM drain()), 1::bigint, 'it runs then');
SELECT lives_ok($$SELECT pulse.schedule('hourly', 'do', '@hourly', missed => 'all')$$,
  'a schedule is made');
SELECT travel('3 h') \g /dev/null
SELECT is((SELECT count(*) FROM drain()), 3::bigint, 'the jobs of its due times run');
SELECT pulse.unschedule('hourly') \g /dev/null

SELECT lives_ok($$SELECT pulse.add_job('do'), pulse.add_job('fail')$$, 'jobs of two tasks');
SELECT results_eq($$SELECT identifier FROM drain('{fail}')$$, $$VALUES ('fail')$$,
  'drain() runs the tasks that it is told');
SELECT is((SELECT count(*) FROM did WHERE what = 'not kept'), 0::bigint,
  'what a failed function wrote is undone');
SELECT is(last_error, E'AA001: it failed\nDETAIL: a detail\nHINT: a hint',
  'its error is told as pulse-worker tells it') FROM pulse.job WHERE identifier = 'fail';
SELECT travel('1 min') \g /dev/null
SELECT results_eq($$SELECT attempt, state FROM drain('{fail}')$$,
  $$VALUES (2::smallint, 'failed')$$, 'after the backoff comes the last attempt');
SELECT refuses($$SELECT * FROM drain('{do,mail}')$$, 'PU005',
  'a task without a function is refused');
SELECT is((SELECT count(*) FROM drain()), 1::bigint, 'the other task''s job was left');

-- What a commit would check, each job's own end checks.
\o /dev/null
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION orphan(payload jsonb) RETURNS void
  LANGUAGE sql AS $$ INSERT INTO public.child VALUES (7) $$;
SELECT pulse.set_task('orphan', handler => 'orphan(jsonb)', max_attempts => 1),
       pulse.add_job('orphan');
\o
SELECT is((SELECT state FROM drain('{orphan}')), 'failed',
  'a job that breaks a deferred constraint fails');
SELECT job_failed_with('orphan', '23503', 'with the error of the constraint');
SELECT lives_ok('INSERT INTO child VALUES (8); DELETE FROM child', 'the constraint stays deferred');
SELECT add('no orphan'), (SELECT count(*) FROM drain('{do}')) \g /dev/null
SELECT lives_ok('INSERT INTO child VALUES (8); DELETE FROM child', 'also behind a completed job');

CREATE FUNCTION forever(payload jsonb) RETURNS void
  LANGUAGE sql AS $$ SELECT pulse.add_job('forever') $$;
SELECT pulse.set_task('forever', handler => 'forever(jsonb)'), pulse.add_job('forever') \g /dev/null
SELECT is((SELECT count(*) FROM drain(max_jobs => 20)), 20::bigint,
  'a job that adds itself runs as often as allowed');
DELETE FROM pulse.job;

-- --- run_job ------------------------------------------------------------------------------------

SELECT pulse.set_task('outside', keep_completed => '1 d') \g /dev/null
SELECT id FROM pulse.add_job('outside', '{"what": "played"}', 'q', now() + '2 years') \gset
SELECT travel('2 years') \g /dev/null
SELECT is(run_job(:id, 'do_it(jsonb)'), 'completed', 'a function plays a task of another language');
SELECT is(result #>> '{}', 'done', 'its result is that of the job') FROM pulse.ended(ARRAY[:id]);
SELECT job_ended_as(:id, 'completed', 'which has completed');
SELECT is(add('own') > 0, true, 'a job of a function');
SELECT max(id) AS id FROM pulse.job \gset
SELECT is(run_job(:id), 'completed', 'is played by it');
SELECT refuses(format('SELECT run_job(%s)', :id), 'PU005', 'a job that is gone cannot run');
SELECT id FROM pulse.add_job('outside', run_at => now() + interval '3 years') \gset
SELECT refuses(format($$SELECT run_job(%s, 'do_it(jsonb)')$$, :id), '55000',
  'nor one of the future');
SELECT travel('1 year') \g /dev/null
SELECT refuses(format('SELECT run_job(%s)', :id), 'PU005', 'nor one that no function plays');
SELECT refuses(format($$SELECT run_job(%s, 'now()')$$, :id), 'PU004',
  'nor by a function that takes no job');
SELECT is(run_job(:id, 'fail_it(jsonb)'), 'ready', 'it may fail');
DELETE FROM pulse.job;

-- --- workers ------------------------------------------------------------------------------------

SELECT is((SELECT workers_lost FROM pulse.sweep()), 0,
  'the kit''s own worker lives through all journeys');
SELECT given_worker() AS worker \gset
SELECT (given_claimed_job(:worker, 'mail')).id \gset
SELECT silence_worker(:worker, '10 s') \g /dev/null
SELECT is((SELECT workers_lost FROM pulse.sweep()), 0, 'ten seconds of silence are no death');
SELECT silence_worker(:worker) \g /dev/null
SELECT is((SELECT workers_lost FROM pulse.sweep()), 1, 'more than the threshold is one');
SELECT is((attempts, crashes)::text, '(1,1)', 'its job has lost an attempt and counts a crash')
  FROM pulse.job WHERE id = :id;
SELECT refuses(format('SELECT silence_worker(%s)', :worker), 'PU002',
  'a lost worker cannot fall silent');
SELECT given_worker() AS worker \gset
SELECT travel('1 min') \g /dev/null
SELECT pulse.heartbeat(:worker) \g /dev/null
SELECT count(*) FROM pulse.claim(:worker) \g /dev/null
SELECT is(lose_worker(:worker), 1, 'a worker dies, and its job is recovered');
SELECT is((attempts, crashes)::text, '(2,2)', 'with an attempt and a crash')
  FROM pulse.job WHERE id = :id;

-- --- numbers ------------------------------------------------------------------------------------

SELECT refuses($$SELECT keep_sequences('did')$$, 'PU004', 'a table is no sequence');
SAVEPOINT before;
SELECT keep_sequences('did_n_seq'), nextval('did_n_seq') AS n \gset
ROLLBACK TO before;
SELECT is(nextval('did_n_seq'), :n::bigint, 'a rolled-back number comes again');

SELECT * FROM finish();
ROLLBACK;
