-- sql/operator/retry.sql: an ended job that is to run again, a running one that is taken back.
\ir support/setup.psql
SELECT plan(51);

SELECT expect_function('retry_job', 'job_id bigint', 'pulse.job', 'volatile', 'definer');
SELECT expect_function('requeue_job', 'job_id bigint, reason text', 'boolean', 'volatile',
  'definer');

SELECT given_worker() AS ann \gset

-- --- retry_job ----------------------------------------------------------------------------------

SELECT (pulse.add_job('mail', '{"n": 1}', 'post', max_attempts => 2, job_key => 'k',
                      priority => 3, flags => '{f}')).id AS job \gset
SELECT created_at AS born FROM pulse.job WHERE id = :job \gset
SELECT promote_queues();
SELECT token FROM pulse.claim(:ann) \gset
SELECT pulse.progress(:job, :token, checkpoint => '[1]') \g /dev/null
SELECT pulse.fail(:job, :token, 'boom', retry => false) \g /dev/null
SELECT travel('1 min');
SELECT answers(
  format($$SELECT id, identifier, payload, queue_name, priority, max_attempts, job_key, flags,
                  checkpoint, last_error, created_at = %L FROM pulse.retry_job(%s)$$,
         :'born', :job),
  ROW(:job, 'mail', '{"n": 1}', 'post', 3, 2, 'k', '{f}'::text[], '[1]', 'boom', true),
  'a failed job goes live again as it was');
SELECT answers(
  format($$SELECT state, attempts, crashes, worker_id, token, claimed_at, revision,
                  run_at BETWEEN now() + interval '1 min' AND pulse.now()
             FROM pulse.job WHERE id = %s$$, :job),
  ROW('parked', 0, 0, NULL, NULL, NULL, 1, true),
  'it waits, due now, with all its attempts');
SELECT is_empty('SELECT * FROM pulse.finished_job', 'and is no longer finished');
SELECT is((SELECT count(*)::int FROM pulse.attempt WHERE job_id = :job), 1,
  'the record of its attempt stays');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'its old claim stays void');
SELECT promote_queues();
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[], 'it is claimed again');
SELECT changes_nothing(format('SELECT pulse.retry_job(%s)', :job), 'a running job is let be');
SELECT is((SELECT state FROM pulse.retry_job(:job)), 'running', 'and returned as it is');
SELECT token FROM pulse.held(:ann) \gset
SELECT is(pulse.fail(:job, :token, 'boom'), 'parked', 'its first attempt is not its last');
SELECT changes_nothing(format('SELECT pulse.retry_job(%s)', :job), 'a waiting job is let be');
SELECT travel('0');
DELETE FROM pulse.job;

SELECT given_job('mail') AS job \gset
SELECT pulse.cancel_job(:job, 'unwanted') \g /dev/null
SELECT is((SELECT state FROM pulse.retry_job(:job)), 'ready', 'a cancelled job runs after all');
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[], 'and is claimed');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SET LOCAL pulse.max_crashes = 1;
SELECT given_worker('eve') AS eve \gset
SELECT id AS job FROM given_claimed_job(:eve, 'mail') \gset
SELECT pulse.declare_lost(:eve, 'dead') \g /dev/null
SELECT is(state_of(:job), 'quarantined', 'given a quarantined job');
SELECT answers(format('SELECT state, attempts, crashes FROM pulse.retry_job(%s)', :job),
  ROW('ready', 0, 0), 'it starts again without its crashes');
SET LOCAL pulse.max_crashes = 3;
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
DELETE FROM pulse.job;

SET LOCAL pulse.keep_completed = '1d';
SELECT id AS job, token FROM given_claimed_job(:ann, 'mail') \gset
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT refuses(format('SELECT pulse.retry_job(%s)', :job), 'PU010',
  'P3: a completed job does not run again');
SET LOCAL pulse.keep_completed = 0;
SELECT given_job('mail', job_key => 'k') AS job \gset
SELECT pulse.permanently_fail_jobs(ARRAY[:job]) \g /dev/null
SELECT given_job('mail', job_key => 'k') AS newer \gset
SELECT refuses(format('SELECT pulse.retry_job(%s)', :job), 'PU010',
  'nor one whose key another job has');
SELECT is((refusal_of(format('SELECT pulse.retry_job(%s)', :job))).detail,
  format('Job %s has the key ''k'' now.', :newer), 'which is named');
SELECT pulse.claim(:ann) \g /dev/null
SELECT refuses(format('SELECT pulse.retry_job(%s)', :job), 'PU010', 'also while that runs');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SELECT is((SELECT id FROM pulse.retry_job(:job)), :job::bigint, 'but when that has ended');
SELECT refuses('SELECT pulse.retry_job(0)', 'PU005', 'an unknown job cannot be retried');
SELECT refuses('SELECT pulse.retry_job(NULL)', 'PU005', 'nor can NULL');
DELETE FROM pulse.job;

-- --- requeue_job --------------------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann, 'mail') \gset
SELECT is(pulse.requeue_job(:job, 'it hangs'), true, 'a running job is taken back');
SELECT answers(
  format('SELECT state, attempts, crashes, last_error, recovered, run_at <= pulse.now()
            FROM pulse.job WHERE id = %s', :job),
  ROW('ready', 1, 0, 'requeued by hand: it hangs', 'hand', true),
  'ready again at once, with the attempt consumed and no crash');
SELECT answers('SELECT outcome, error, worker_id FROM pulse.attempt ORDER BY token DESC LIMIT 1',
  ROW('interrupted', 'requeued by hand: it hangs', :ann), 'the attempt is recorded');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001', 'its token is void');
SELECT is((SELECT revoked FROM pulse.heartbeat(:ann, ARRAY[:job])), ARRAY[:job]::bigint[],
  'and its worker is told');
SELECT changes_nothing(format('SELECT pulse.requeue_job(%s, NULL)', :job),
  'a waiting job is let be');
SELECT is(pulse.requeue_job(:job, NULL), false, 'which is told');
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[], 'it is claimed again');
SELECT pulse.cancel_job(:job) \g /dev/null
SELECT is(pulse.requeue_job(:job, NULL), true, 'a job to be cancelled is taken back');
SELECT is(state_of(:job), 'cancelled', 'and ends as cancelled');
SELECT is(pulse.requeue_job(:job, NULL), false, 'a finished job is let be');
SELECT id AS job FROM given_claimed_job(:ann, 'mail', max_attempts => 1) \gset
SELECT is(pulse.requeue_job(:job, NULL), true, 'P4: on its last attempt');
SELECT answers(format('SELECT state, last_error FROM pulse.finished_job WHERE id = %s', :job),
  ROW('failed', 'requeued by hand'), 'a job fails');
SELECT id AS job FROM given_claimed_job(:ann, 'mail', 'post', job_key => 'k') \gset
SELECT given_job('mail', job_key => 'k') \g /dev/null
SELECT pulse.requeue_job(:job, NULL) \g /dev/null
SELECT is(state_of(:job), 'failed', 'so does one that has lost its key');
SELECT refuses('SELECT pulse.requeue_job(0, ''x'')', 'PU005', 'an unknown job is refused');
SELECT refuses('SELECT pulse.requeue_job(NULL, NULL)', 'PU005', 'so is NULL');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
