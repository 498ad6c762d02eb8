-- What users of Graphile Worker know: adding, keys, claiming, completing and retrying behave as
-- there, or differently where that is a fix. What takes several sessions is in test/isolation.
\ir support/setup.psql
SELECT plan(88);

SELECT given_worker() AS ann \gset
SELECT given_worker('bob') AS bob \gset

-- --- adding jobs --------------------------------------------------------------------------------

SELECT answers(
  $$SELECT identifier, payload, priority, attempts, max_attempts, run_at = now(), revision,
           worker_id, claimed_at, job_key, queue_name, flags FROM pulse.add_job('t')$$,
  ROW('t', '{}', 0, 0, 25, true, 0, NULL, NULL, NULL, NULL, NULL),
  'a job that is added with its task alone has the defaults');
SELECT is((SELECT count(*)::int FROM pulse.job), 1, 'and is the only one');
SELECT is((pulse.add_job('t')).identifier, 't' COLLATE "C",
  'the task of a second job is known by the same name');
SELECT given_job('t', 'q') FROM generate_series(1, 3) \g /dev/null
SELECT is((SELECT count(DISTINCT queue_name)::int FROM pulse.job), 1,
  'jobs with the same queue_name share one queue');
SAVEPOINT adding;
SELECT given_job('undone') AS undone \gset
ROLLBACK TO adding;
SELECT is(state_of(:undone), 'gone', 'P1: a job whose transaction rolls back never was');
SELECT is(claimed_ids(:ann, 10, '{undone}'), '{}', 'and nobody claims it');
SELECT answers(
  $$SELECT payload FROM pulse.add_jobs(ARRAY(
      SELECT ('t', json_build_object('n', n), NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
        FROM generate_series(1, 6) AS n))$$,
  lines('SELECT json_build_object(''n'', n) FROM generate_series(1, 6) AS n'),
  'add_jobs with six specs adds six jobs with their payloads');
SELECT is_empty('SELECT * FROM pulse.add_jobs(''{}'')', 'add_jobs with none adds none');
DELETE FROM pulse.job;

SELECT lives_ok(
  $$SELECT pulse.add_jobs(ARRAY[
      ('t', '{"n": 1}', NULL, NULL, NULL, 'twice', NULL, NULL)::pulse.job_spec,
      ('t', '{"n": 2}', NULL, NULL, NULL, 'twice', NULL, NULL)::pulse.job_spec,
      ('t', '[1]', NULL, NULL, NULL, 'list', NULL, NULL)::pulse.job_spec,
      ('t', '[2]', NULL, NULL, NULL, 'list', NULL, NULL)::pulse.job_spec])$$,
  'the same key twice in one call is no error');
SELECT is((SELECT count(*)::int FROM pulse.job), 2, 'there is one job for each key');
SELECT is((SELECT payload::jsonb FROM pulse.job WHERE job_key = 'twice'), '{"n": 2}'::jsonb,
  'of which the last wins');
SELECT is((SELECT payload::jsonb FROM pulse.job WHERE job_key = 'list'), '[1, 2]'::jsonb,
  'but arrays are merged');
DELETE FROM pulse.job;

SELECT refuses(format('SELECT pulse.add_job(%s)', c.arguments), 'PU004', c.what || ' is refused')
  FROM (VALUES ('''t'', max_attempts => 0', 'max_attempts of 0'),
               ('''t'', job_key => ''''', 'an empty key'),
               ('''t'', job_key => repeat(''k'', 513)', 'a key of more than 512 characters'),
               ('repeat(''t'', 129)', 'a task name of more than 128 characters'),
               ('''t'', queue_name => repeat(''q'', 129)',
                'a queue name of more than 128 characters'),
               ('''t'', priority => 40000', 'a priority of 40000'),
               ('NULL', 'a task of NULL')) AS c (arguments, what);
SELECT is((pulse.add_job('t', flags => '{a,b,a}')).flags, '{a,b}', 'flags are a set');
SELECT is((pulse.add_job('t', flags => '{}')).flags, NULL, 'an empty set is none');
SELECT is((pulse.add_job('t', 'null')).payload::text, 'null', 'JSON null is a payload');
SELECT is((pulse.add_job('t', NULL)).payload::text, '{}', 'SQL NULL is an empty object');
DELETE FROM pulse.job;
SAVEPOINT many;
ALTER SEQUENCE pulse.job_id_seq RESTART 2147483648;
ALTER SEQUENCE pulse.token_seq RESTART 2147483648;
ALTER SEQUENCE pulse.worker_id_seq RESTART 2147483648;
SELECT is(given_job('t'), 2147483648, 'after 2^31 jobs another can be added');
SELECT is(claimed_ids(given_worker('late')), ARRAY[2147483648]::bigint[],
  'and a new worker started and given it');
ROLLBACK TO many;

-- --- job keys -----------------------------------------------------------------------------------

CREATE FUNCTION shown(job pulse.job) RETURNS text
  LANGUAGE sql AS $$
  SELECT ROW(job.identifier, job.payload, job.queue_name, job.run_at - now(), job.max_attempts,
             job.priority, job.flags, job.attempts, job.last_error, job.revision)::text
$$;
SELECT (pulse.add_job('t', '{"n": 1}', 'q', now() + interval '5 min', 7, 'k', 3, '{a}')).id
  AS job \gset
SAVEPOINT keyed;
SELECT is(shown(pulse.add_job('u', '{"n": 2}', 'r', now() + interval '9 min', 8, 'k', 4, '{b}')),
  ROW('u', '{"n": 2}', 'r', interval '9 min', 8, 4, '{b}'::text[], 0, NULL, 1)::text,
  'replace replaces every field and counts the revision up');
SELECT is((SELECT array_agg(id) FROM pulse.job), ARRAY[:job]::bigint[], 'of the same job');
ROLLBACK TO keyed;
SELECT is(shown(pulse.add_job('t', job_key => 'k')),
  ROW('t', '{}', NULL, interval '0', 25, 0, NULL, 0, NULL, 1)::text,
  'what a replacement omits goes back to its default, the time to now');
ROLLBACK TO keyed;
SELECT is(shown(pulse.add_job('u', '{"n": 2}', NULL, now() + interval '9 min', 8, 'k', 4, '{b}',
                              'preserve_run_at')),
  ROW('u', '{"n": 2}', NULL, interval '5 min', 8, 4, '{b}'::text[], 0, NULL, 1)::text,
  'preserve_run_at keeps the time of a job that was not tried and replaces the rest');
ROLLBACK TO keyed;
SELECT is((SELECT shown(j) FROM pulse.add_jobs(
    ARRAY[('t', NULL, NULL, NULL, NULL, 'k', NULL, NULL)::pulse.job_spec], true) AS j),
  ROW('t', '{}', NULL, interval '5 min', 25, 0, NULL, 0, NULL, 1)::text,
  'so does add_jobs with job_key_preserve_run_at');
ROLLBACK TO keyed;
SELECT travel('1 s');
SELECT is(shown(pulse.add_job('u', '{"n": 2}', 'r', now() + interval '9 min', 8, 'k', 4, '{b}',
                              'unsafe_dedupe')),
  ROW('t', '{"n": 1}', 'q', interval '5 min', 7, 3, '{a}'::text[], 0, NULL, 1)::text,
  'unsafe_dedupe changes nothing but the revision');
SELECT cmp_ok((SELECT updated_at FROM pulse.job), '>', now(), 'and when it was updated');
SELECT travel('0');
ROLLBACK TO keyed;
SELECT is((pulse.add_job('elsewhere', job_key => 'k')).id, :job::bigint,
  'a key is the same across tasks: the job becomes one of the new task');
DELETE FROM pulse.job;

-- A job that failed and waits for its retry.
SELECT id AS job, token FROM given_claimed_job(:ann, 't', job_key => 'k') \gset
SELECT pulse.fail(:job, :token, 'E') \g /dev/null
SAVEPOINT failed;
SELECT is(shown(pulse.add_job('t', run_at => now() - interval '1 min', job_key => 'k')),
  ROW('t', '{}', NULL, interval '-1 min', 25, 0, NULL, 0, NULL, 1)::text,
  'replacing a failed job clears its attempts and its error');
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[], 'and it runs at its new time');
ROLLBACK TO failed;
SELECT is(shown(pulse.add_job('t', run_at => now() + interval '9 min', job_key => 'k',
                              job_key_mode => 'preserve_run_at')),
  ROW('t', '{}', NULL, interval '9 min', 25, 0, NULL, 0, NULL, 1)::text,
  'preserve_run_at replaces the time of a job that was tried');
ROLLBACK TO failed;
SELECT is(ROW(a.payload::text, a.attempts, a.last_error, a.revision)::text,
  ROW('{}', 1, 'E', 1)::text, 'unsafe_dedupe leaves a job that failed as it is')
  FROM pulse.add_job('u', '{"n": 2}', job_key => 'k', job_key_mode => 'unsafe_dedupe') AS a;
DELETE FROM pulse.job;

-- A running job.
SELECT id AS first, token FROM given_claimed_job(:ann, 't', job_key => 'k') \gset
SELECT (pulse.add_job('t', '{"n": 2}', job_key => 'k')).id AS second \gset
SELECT isnt(:second::bigint, :first::bigint, 'while a job of the key runs, another is added');
SELECT answers($$SELECT l.id, s.job_id FROM pulse_internal.live_job_of_key('k') AS l,
                                     pulse.superseded_job AS s$$,
  ROW(:second::bigint, :first::bigint), 'which has the key now');
SELECT is(pulse.fail(:first, :token, 'E'), 'failed', 'the first is not retried when it fails');
SELECT is(claimed_ids(:ann, 10), ARRAY[:second]::bigint[], 'and the second runs');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SELECT isnt((pulse.add_job('t', job_key => 'k')).id, :second::bigint,
  'after a completion the key stands for a new job');
DELETE FROM pulse.job;

SELECT refuses($$SELECT pulse.add_job('t', job_key => 'k', job_key_mode => 'other')$$, 'PU004',
  'an unknown mode is refused');
SELECT pulse.add_job('t', '[{"n": 1}, 2]', job_key => 'k') \g /dev/null
SELECT is((pulse.add_job('t', '[3]', job_key => 'k')).payload::jsonb, '[{"n": 1}, 2, 3]'::jsonb,
  'two arrays are concatenated in order');
SELECT is((pulse.add_job('t', '{"n": 4}', job_key => 'k')).payload::jsonb, '{"n": 4}'::jsonb,
  'an array is replaced by what is none');
SELECT is((pulse.add_job('t', '[5]', job_key => 'k')).payload::jsonb, '[5]'::jsonb,
  'and what is none by an array');
DELETE FROM pulse.job;

SELECT id AS dead, token FROM given_claimed_job(:ann, 't', job_key => 'k') \gset
SELECT pulse.fail(:dead, :token, 'E', retry => false) \g /dev/null
SELECT is(shown(pulse.add_job('t', '{"n": 2}', job_key => 'k')),
  ROW('t', '{"n": 2}', NULL, interval '0', 25, 0, NULL, 0, NULL, 0)::text,
  'the key of a job that failed for good stands for a fresh job');
SELECT answers(format('SELECT state, last_error FROM pulse.finished_job WHERE id = %s', :dead),
  ROW('failed', 'E'), 'and the failed one is kept with its error');
DELETE FROM pulse.job;

SELECT given_job('t', job_key => 'k') AS job \gset
SELECT is((pulse.remove_job('k')).id, :job::bigint, 'remove_job returns a waiting job');
SELECT is(state_of(:job), 'gone', 'and deletes it');
SELECT id AS job, token FROM given_claimed_job(:ann, 't', job_key => 'k') \gset
SELECT is((pulse.remove_job('k')).id, :job::bigint, 'it returns a running one too');
SELECT answers($$SELECT j.state, (pulse_internal.live_job_of_key('k')).id FROM pulse.job AS j$$,
  ROW('running', NULL), 'which goes on without its key');
SELECT is(pulse.fail(:job, :token, 'E'), 'failed', 'and is not retried');
SELECT is(pulse.remove_job('unknown'), NULL, 'an unknown key removes nothing');
SELECT is(pulse.remove_job(NULL), NULL, 'nor does NULL');

-- --- claiming and order -------------------------------------------------------------------------

SELECT given_job('t', priority => p) FROM unnest(ARRAY[5, -1, 0]) AS p \g /dev/null
SELECT answers(
  format('SELECT c.priority FROM generate_series(1, 3) AS n, pulse.claim(%s + 0 * n) AS c', :ann),
  lines('VALUES (-1), (0), (5)'), 'the lowest priority is claimed first');
DELETE FROM pulse.job;
SELECT (pulse.add_job('t', run_at => now() - m * interval '1 min')).id
  FROM unnest(ARRAY[1, 3, 2, 3]) AS m \g /dev/null
SELECT answers(format('SELECT now() - run_at, id = max(id) OVER () FROM pulse.claim(%s, 4)', :ann),
  lines($$VALUES ('00:03:00', false), ('00:03:00', true), ('00:02:00', false),
                 ('00:01:00', false)$$),
  'equal priorities go by run_at, and those by id');
DELETE FROM pulse.job;
SELECT (pulse.add_job('t', run_at => now() + interval '1 min')).id AS job \gset
SELECT travel('30 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(claimed_ids(:ann), '{}', 'a future job is not claimed before its time');
SELECT travel('61 s');
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[], 'and is claimed after it');
SELECT travel('0');
DELETE FROM pulse.job;
SELECT given_worker('choosy', '{a}') AS choosy \gset
SELECT given_job('b') AS other, given_job('a') AS own \gset
SELECT is(claimed_ids(:choosy, 10), ARRAY[:own]::bigint[],
  'a worker never claims another''s tasks');
DELETE FROM pulse.job;
SELECT given_job('t', 'q') AS job \gset
SELECT given_job('t', 'q') AS behind \gset
SELECT promote_queues();
SELECT claimed_ids(:ann, 10) \g /dev/null
SELECT answers(
  format('SELECT attempts, worker_id, claimed_at >= now() FROM pulse.job WHERE id = %s', :job),
  ROW(1, :ann, true), 'a claim consumes an attempt and names its worker and its time');
SELECT promote_queues();
SELECT is(claimed_ids(:bob, 10), '{}', 'and the queue is the claimer''s');
DELETE FROM pulse.job;
SELECT (pulse.add_job('t', flags => '{d}')).id AS job \gset
SELECT is(claimed_ids(:ann, 1, forbidden_flags => '{d}'), '{}', 'a forbidden flag is skipped');
SELECT is((SELECT attempts::int FROM pulse.job), 0, 'without an attempt');
SAVEPOINT flagged;
SELECT is(claimed_ids(:ann, 1, forbidden_flags => '{z}'), ARRAY[:job]::bigint[],
  'another flag is no obstacle');
ROLLBACK TO flagged;
SELECT is(claimed_ids(:ann, 1, forbidden_flags => '{}'), ARRAY[:job]::bigint[], 'nor is no flag');
ROLLBACK TO flagged;
SELECT is(claimed_ids(:ann, 1, forbidden_flags => NULL), ARRAY[:job]::bigint[], 'nor NULL');
DELETE FROM pulse.job;
SELECT given_job('t', priority => p) FROM unnest(ARRAY[4, 2, 3, 1]) AS p \g /dev/null
SELECT answers(format('SELECT priority FROM pulse.claim(%s, 3)', :ann),
  lines('VALUES (1), (2), (3)'),
  'a claim of three takes at most three, in their order');
DELETE FROM pulse.job;

-- --- completing, failing, retrying --------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann, 't', 'q') \gset
SELECT given_job('t', 'q') AS second \gset
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT is(state_of(:job), 'gone', 'after a success the job is gone');
SELECT promote_queues();
SELECT is(claimed_ids(:ann), ARRAY[:second]::bigint[], 'and its queue is free');
DELETE FROM pulse.job;

CREATE FUNCTION failed_with(before int, max_attempts int = 25) RETURNS pulse.job
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker();
  added bigint := given_job('t', max_attempts => max_attempts);
  answer record;
  failed pulse.job;
BEGIN
  UPDATE pulse.job SET attempts = before WHERE id = added;
  SELECT * INTO answer FROM pulse.claim_job(worker, added);
  PERFORM pulse.fail(added, (answer.job).token, 'E');
  SELECT * INTO failed FROM pulse.job WHERE id = added;
  RETURN failed;
END $$;
SELECT answers(
  format('SELECT attempts, last_error, state, worker_id,
                 abs(extract(epoch FROM run_at - updated_at) - %s) < 0.25 FROM failed_with(%s)',
         f.delay, f.before),
  ROW(f.before + 1, 'E', 'ready', NULL, true),
  format('after attempt %s a failed job waits %s seconds', f.before + 1, f.delay))
  FROM (VALUES (0, 2.718), (1, 7.389), (9, 22026.466), (12, 22026.466)) AS f (before, delay);
SELECT is((failed_with(2, 3)).id, NULL, 'failing on the last attempt, a job is live no more');
SELECT travel('1 day');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(claimed_ids(:ann, 10, '{t}') && ARRAY(SELECT id FROM pulse.finished_job), false,
  'it is never claimed again');
SELECT travel('0');
SELECT answers('SELECT attempts, max_attempts, last_error FROM pulse.finished_job
                 ORDER BY id DESC LIMIT 1',
  ROW(3, 3, 'E'), 'and is seen as failed, with its error');
DELETE FROM pulse.job;

SELECT id AS job, token FROM given_claimed_job(:ann, 't', 'q') \gset
SELECT given_job('t', 'q') AS second \gset
SELECT pulse.fail(:job, :token, 'E') \g /dev/null
SELECT promote_queues();
SELECT is(claimed_ids(:ann), ARRAY[:second]::bigint[],
  'after a failure the next job of the queue runs while the failed one waits');
DELETE FROM pulse.job;

SELECT (pulse.add_job('t', '[1, 2, 3]')).id AS job \gset
SELECT token FROM pulse.claim(:ann) \gset
SAVEPOINT batch;
SELECT pulse.fail(:job, :token, '1 and 3 failed', payload => '[1, 3]') \g /dev/null
SELECT answers('SELECT payload, attempts FROM pulse.job', ROW('[1, 3]', 1),
  'of an array the part that failed can be retried');
ROLLBACK TO batch;
SELECT pulse.fail(:job, :token, 'E') \g /dev/null
SELECT is((SELECT payload::text FROM pulse.job), '[1, 2, 3]', 'or the whole of it');
DELETE FROM pulse.job;

SELECT id AS job, token FROM given_claimed_job(:ann, 't') \gset
SELECT pulse.declare_lost(:ann, 'swept') \g /dev/null
SELECT travel('5 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT claimed_ids(:bob) \g /dev/null
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'a worker that was swept is told so when it completes, and the new owner''s job is untouched');
SELECT refuses(format('SELECT pulse.fail(%s, %s, ''E'')', :job, :token), 'PU001',
  'and when it fails');
SELECT is((SELECT worker_id FROM pulse.job), :bob::bigint, 'the job is the new owner''s');
SELECT token FROM pulse.held(:bob) \gset
SAVEPOINT own_transaction;
SELECT pulse.complete(:job, :token) \g /dev/null
ROLLBACK TO own_transaction;
SELECT is(state_of(:job), 'running', 'a completion that is rolled back leaves the job claimed');
SELECT is(pulse.fail(:job, :token, 'E'), 'ready', 'to be retried');
SELECT travel('0');
DELETE FROM pulse.job;
SELECT id AS job, token FROM given_claimed_job(:bob, 't') \gset
SELECT is(pulse.fail(:job, :token, 'E', retry => false), 'failed',
  'without retry a job fails at once');
SELECT is((SELECT last_error FROM pulse.finished_job WHERE id = :job), 'E', 'with its error');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
