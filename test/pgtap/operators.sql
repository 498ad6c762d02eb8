-- sql/operator/change_jobs.sql: Graphile Worker's functions for operators, which touch no running
-- job.
\ir support/setup.psql
SELECT plan(68);

SELECT expect_function('complete_jobs', 'job_ids bigint[]', 'SETOF pulse.job', 'volatile',
  'definer');
SELECT expect_function('permanently_fail_jobs',
  'job_ids bigint[], error_message text DEFAULT NULL::text', 'SETOF pulse.job', 'volatile',
  'definer');
SELECT expect_function('reschedule_jobs',
  'job_ids bigint[], run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, '
  'priority integer DEFAULT NULL::integer, attempts integer DEFAULT NULL::integer, '
  'max_attempts integer DEFAULT NULL::integer', 'SETOF pulse.job', 'volatile', 'definer');

SELECT given_worker() AS ann \gset

-- One waiting job of each kind, and one that runs.
CREATE FUNCTION given_mix(OUT ids bigint[], OUT running bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker();
  tried pulse.claimed_job := given_claimed_job(worker, 'mix');
BEGIN
  PERFORM pulse.fail(tried.id, tried.token, 'E');
  running := (given_claimed_job(worker, 'mix')).id;
  ids := ARRAY[tried.id, given_job('mix'), given_job('mix', 'post'), running,
               (pulse.add_job('mix', run_at => now() + interval '1 day')).id];
END $$;

-- --- complete_jobs ------------------------------------------------------------------------------

SELECT ids, running FROM given_mix() \gset
SELECT results_eq(
  format('SELECT id FROM pulse.complete_jobs(%L) ORDER BY id', :'ids'),
  format('SELECT i FROM unnest(%L::bigint[]) AS i WHERE i <> %s ORDER BY i', :'ids', :running),
  'of a failed, a waiting, a parked, a running and a future job all but the running are completed');
SELECT answers('SELECT id, state FROM pulse.job', ROW(:running, 'running'),
  'the running one is left alone');
SELECT is_empty('SELECT * FROM pulse.finished_job', 'completed jobs are not kept by default');
DELETE FROM pulse.job;
SET LOCAL pulse.keep_completed = '1d';
SELECT (pulse.add_job('mail', '{"n": 1}', 'post', job_key => 'k')).id AS job \gset
SELECT answers(format('SELECT id, state, payload FROM pulse.complete_jobs(ARRAY[%s])', :job),
  ROW(:job, 'parked', '{"n": 1}'), 'a job is returned as it was');
SELECT answers('SELECT id, state, payload, attempts, job_key, token FROM pulse.finished_job',
  ROW(:job, 'completed', '{"n": 1}', 0, 'k', NULL), 'and kept where retention asks');
SELECT isnt((pulse.add_job('mail', job_key => 'k')).id, :job::bigint, 'its key is free');
SELECT pulse.set_task('mail', keep_completed => '0') \g /dev/null
SELECT pulse.complete_jobs(array_agg(id)) FROM pulse.job \g /dev/null
SELECT is((SELECT count(*)::int FROM pulse.finished_job), 1, 'its task''s own setting decides');
SET LOCAL pulse.keep_completed = 0;
DELETE FROM pulse.finished_job;
SELECT given_job('mail', job_key => 'f') AS job, given_job('mix') AS kept \gset
SELECT pulse.permanently_fail_jobs(ARRAY[:job, :kept], 'E') \g /dev/null
SELECT pulse.set_task('mix', keep_completed => '1d') \g /dev/null
SELECT answers(
  format('SELECT min(id), count(*), count(state), min(last_error) FROM pulse.complete_jobs(%L)',
         ARRAY[:job, :kept]),
  ROW(:job, 2, 0, 'E'), 'jobs that failed for good are completed, as Graphile Worker''s are');
SELECT answers('SELECT id, state, crashes FROM pulse.finished_job', ROW(:kept, 'completed', 0),
  'retention decides whether they are kept');
SELECT is_empty(format('SELECT pulse.complete_jobs(ARRAY[%s])', :kept),
  'a completed job is not completed again');
SELECT given_job('mail') AS job \gset
SELECT pulse.cancel_job(:job) \g /dev/null
SELECT is_empty(format('SELECT pulse.%s(ARRAY[%s])', name, :job),
  name || ' leaves a cancelled job alone')
  FROM unnest('{complete_jobs,permanently_fail_jobs,reschedule_jobs}'::text[]) AS name;
SELECT is_empty('SELECT pulse.complete_jobs(NULL)', 'NULL completes nothing');
SELECT is_empty('SELECT pulse.complete_jobs(''{}'')', 'nor does an empty array');
SELECT is_empty('SELECT pulse.complete_jobs(''{0,NULL}'')', 'nor do ids that nobody has');
DELETE FROM pulse.finished_job;

-- --- permanently_fail_jobs ----------------------------------------------------------------------

SELECT ids, running FROM given_mix() \gset
SELECT is((SELECT array_agg(DISTINCT f.last_error)
             FROM pulse.permanently_fail_jobs(:'ids', 'enough') AS f), '{enough}',
  'jobs are failed by hand with a message');
SELECT answers('SELECT state, count(*), array_agg(attempts ORDER BY id), max(crashes),
                       array_agg(DISTINCT last_error)
                  FROM pulse.finished_job GROUP BY state',
  ROW('failed', 4, '{1,0,0,0}'::text, 0, '{enough}'::text),
  'they are kept as failed, with the attempts they had');
SELECT answers('SELECT id, state FROM pulse.job', ROW(:running, 'running'),
  'the running one is left alone');
DELETE FROM pulse.job;
SELECT given_job('mail') AS job \gset
SELECT is((SELECT last_error FROM pulse.permanently_fail_jobs(ARRAY[:job])),
  'Manually marked as failed', 'without a message the reason is Graphile Worker''s');
SELECT is((SELECT last_error FROM pulse.finished_job WHERE id = :job),
  'Manually marked as failed', 'also in what is kept');
SELECT answers(
  format('SELECT id, state, last_error FROM pulse.permanently_fail_jobs(ARRAY[%s], ''again'')',
         :job),
  ROW(:job, NULL, 'again'), 'a job that failed for good is failed again, with another message');
SELECT answers(
  format('SELECT id, state, last_error FROM pulse.finished_job WHERE id = %s', :job),
  ROW(:job, 'failed', 'again'), 'which is kept');
SELECT given_job('mail') AS waiting \gset
SELECT is((SELECT array_agg(id ORDER BY id) FROM pulse.permanently_fail_jobs(
             ARRAY[:waiting, :job])), ARRAY[:job, :waiting]::bigint[],
  'one that waits and one that failed are returned once each');

-- --- reschedule_jobs ----------------------------------------------------------------------------

DELETE FROM pulse.finished_job;
SELECT ids, running FROM given_mix() \gset
SELECT answers(
  format($$SELECT count(*), bool_and(run_at = now() + interval '1 h'), min(priority),
                  min(attempts), min(max_attempts)
             FROM pulse.reschedule_jobs(%L, now() + interval '1 h', -3, 2, 7)$$, :'ids'),
  ROW(4, true, -3, 2, 7), 'run_at, priority, attempts and max_attempts of waiting jobs change');
SELECT answers(format('SELECT priority, attempts, max_attempts FROM pulse.job WHERE id = %s',
                      :running), ROW(0, 1, 25), 'those of the running one do not');
SELECT is((SELECT count(*)::int FROM pulse.job WHERE last_error = 'E'), 1,
  'the last error stays');
SELECT is(
  lines(format('SELECT * FROM pulse.reschedule_jobs(%L, priority => 4) ORDER BY id', :'ids')),
  lines('SELECT * FROM pulse.job WHERE state <> ''running'' ORDER BY id'),
  'rows are returned as they are now');
SELECT is((SELECT array_agg(DISTINCT run_at) FROM pulse.job WHERE state <> 'running'),
  ARRAY[now() + interval '1 h'], 'what is not given stays');
DELETE FROM pulse.job;

SELECT given_job('mail', 'post') AS first, given_job('mail', 'post') AS second \gset
SELECT promote_queues();
SELECT pulse.reschedule_jobs(ARRAY[:first], now() + interval '1 day') \g /dev/null
SELECT is(state_of(:first), 'parked', 'an open job of a queue goes back behind it');
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 10), ARRAY[:second]::bigint[], 'and makes room for the next');
DELETE FROM pulse.job;
SELECT (pulse.add_job('mail', run_at => now() + interval '1 day')).id AS job \gset
SELECT pulse.reschedule_jobs(ARRAY[:job], now()) \g /dev/null
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[], 'a job rescheduled to now is claimed');
DELETE FROM pulse.job;

SELECT given_job('mail') AS job \gset
UPDATE pulse.job SET attempts = 5, crashes = 2;
SELECT refuses(format('SELECT pulse.reschedule_jobs(ARRAY[%s], %s)', :job, c.arguments), 'PU004',
               c.what || ' is refused')
  FROM (VALUES ('priority => 32768', 'a priority beyond smallint'),
               ('attempts => -1', 'a negative number of attempts'),
               ('max_attempts => 0', 'max_attempts of 0'),
               ('max_attempts => 5', 'to leave a job without an attempt'),
               ('attempts => 25', 'to use up its attempts'),
               ('run_at => ''infinity''', 'an infinite time')) AS c (arguments, what);
SELECT answers(
  format('SELECT attempts, crashes FROM pulse.reschedule_jobs(ARRAY[%s], attempts => 0)', :job),
  ROW(0, 0), 'attempts that start again forget the crashes');

-- Graphile Worker keeps failed jobs in the same table.
SELECT pulse.permanently_fail_jobs(ARRAY[:job]) \g /dev/null
SELECT answers(
  format('SELECT id, state, run_at = now() + interval ''1 h'', priority
            FROM pulse.reschedule_jobs(ARRAY[%s], now() + interval ''1 h'', priority => 5)', :job),
  ROW(:job, NULL, true, 5), 'a new time and priority alone are given to a failed job');
SELECT answers('SELECT state, run_at = now() + interval ''1 h'', priority FROM pulse.finished_job',
  ROW('failed', true, 5), 'but do not bring it back');
SELECT is((SELECT attempts || ' ' || max_attempts FROM
             pulse.reschedule_jobs(ARRAY[:job], attempts => 7, max_attempts => 7)), '7 7',
  'nor do attempts that leave it none');
SELECT is(state_of(:job), 'failed', 'it stays failed');
SELECT refuses(format('SELECT pulse.reschedule_jobs(ARRAY[%s], %s)', :job, c.arguments), 'PU004',
               c.what || ' of a failed job is refused')
  FROM (VALUES ('attempts => 8', 'more attempts than it may have'),
               ('max_attempts => 6', 'a maximum below its attempts')) AS c (arguments, what);
SELECT answers(format('SELECT id, state, attempts FROM
                         pulse.reschedule_jobs(ARRAY[%s], now(), attempts => 0)', :job),
  ROW(:job, 'ready', 0), 'attempts do');
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[], 'and it runs again');
SELECT pulse.fail(id, token, 'E', false) FROM pulse.held(:ann) \g /dev/null
UPDATE pulse.finished_job SET job_key = 'k';
SELECT given_job('mail', job_key => 'k') AS newer \gset
SELECT is_empty(format('SELECT pulse.reschedule_jobs(ARRAY[%s], attempts => 0)', :job),
  'not while a newer job has its key');
SELECT is(state_of(:job), 'failed', 'it stays failed');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
