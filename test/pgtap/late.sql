-- sql/worker/finish.sql: an attempt that ends at its limit leaves the same records, whether its
-- worker or a sweep comes first.
\ir support/setup.psql
SELECT plan(39);

SELECT expect_function('fail_late',
  'job_ids bigint[], tokens bigint[], errors text[], causes text[], '
  'payloads json[] DEFAULT NULL::json[]',
  'SETOF pulse.job_outcome', 'volatile', 'definer');

SELECT given_worker() AS ann \gset
SELECT pulse.set_task('slow', timeout => '1 min') \g /dev/null
SELECT pulse.set_task('chatty', stall_timeout => '1 min') \g /dev/null
-- What an attempt that ended leaves, but for its error.
CREATE FUNCTION records_of(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat_ws(', ', state_of(records_of.job_id), 'outcome ' || a.outcome,
                   'recovered ' || j.recovered, 'attempts ' || j.attempts,
                   'crashes ' || j.crashes, 'backoff ' || backoff_of(j.id))
    FROM pulse.attempt AS a LEFT JOIN pulse.job AS j ON j.id = a.job_id
   WHERE a.job_id = records_of.job_id
$$;

-- --- the same records (P5d) ----------------------------------------------------------------------

SELECT id AS swept FROM given_claimed_job(:ann, 'slow') \gset
SELECT id AS told, token FROM given_claimed_job(:ann, 'slow') \gset
SELECT is(outcome, 'accepted', 'a worker ends an attempt at its timeout')
  FROM pulse.fail_late(ARRAY[:told], ARRAY[:token], '{"timed out after 1 min"}', '{timeout}');
SELECT travel('61 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(jobs_timed_out, 1, 'given a sweep that ends another') FROM pulse.sweep();
SELECT is(records_of(:told),
  'ready, outcome timed_out, recovered timeout, attempts 1, crashes 0, backoff 3',
  'it has timed out, which its next attempt is told');
SELECT is(records_of(:told), records_of(:swept), 'as one that a sweep ends');
SELECT is((SELECT outcome FROM pulse.fail_late(ARRAY[j.id], ARRAY[a.token], '{x}', '{timeout}')),
  'accepted', 'the end of a sweep that came first is the worker''s own')
  FROM pulse.job AS j JOIN pulse.attempt AS a ON a.job_id = j.id WHERE j.id = :swept;
SELECT is((SELECT outcome FROM pulse.fail_late(ARRAY[j.id], ARRAY[a.token], '{x}', '{stall}')),
  'stale', 'another end is not')
  FROM pulse.job AS j JOIN pulse.attempt AS a ON a.job_id = j.id WHERE j.id = :swept;
SELECT travel('0');

SELECT id AS swept FROM given_claimed_job(:ann, 'chatty') \gset
SELECT id AS told, token FROM given_claimed_job(:ann, 'chatty') \gset
SELECT pulse.fail_late(ARRAY[:told], ARRAY[:token], '{silent}', '{stall}') \g /dev/null
SELECT travel('61 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(jobs_stalled, 1, 'given a sweep that ends one that stalled') FROM pulse.sweep();
SELECT is(records_of(:told),
  'ready, outcome stalled, recovered stall, attempts 1, crashes 0, backoff 3',
  'an attempt that its worker ends for want of progress has stalled');
SELECT is(records_of(:told), records_of(:swept), 'as one that a sweep ends');
SELECT travel('0');

SELECT id AS job, token FROM given_claimed_job(:ann, 'slow', max_attempts => 1) \gset
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{late}', '{timeout}') \g /dev/null
SELECT is(records_of(:job), 'failed, outcome timed_out', 'on the last attempt the job has failed');
SELECT id AS job, token FROM given_claimed_job(:ann, 'slow') \gset
SELECT pulse.cancel_job(:job) \g /dev/null
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{late}', '{timeout}') \g /dev/null
SELECT is(records_of(:job), 'cancelled, outcome cancelled', 'a job to be cancelled is cancelled');
SELECT is(outcome, 'accepted', 'which a repeat is told is done')
  FROM pulse.fail_late(ARRAY[:job], ARRAY[:token], '{late}', '{timeout}');

-- --- the worker's own silence --------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann, 'slow') \gset
SELECT is(outcome, 'accepted', 'a worker says that its own silence has ended the task')
  FROM pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"stood still"}', '{silence}');
SELECT is(records_of(:job),
  'ready, outcome interrupted, recovered silence, attempts 1, crashes 0, backoff 0',
  'the attempt is interrupted: no crash, no backoff, and the next one is told why');
SELECT is(outcome, 'accepted', 'a repeat is told that it is done')
  FROM pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"stood still"}', '{silence}');
SELECT id AS job, token FROM given_claimed_job(:ann, 'slow', max_attempts => 1) \gset
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"stood still"}', '{silence}') \g /dev/null
SELECT is(records_of(:job), 'failed, outcome interrupted',
  'on the last attempt the job has failed');
SELECT is(last_error, 'stood still', 'with that cause')
  FROM pulse.finished_job WHERE id = :job;

-- --- the end of a program -----------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann, 'slow') \gset
SELECT is(outcome, 'accepted', 'a worker says that a program has ended beside other jobs')
  FROM pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"its program died"}', '{crash}');
SELECT is(records_of(:job),
  'ready, outcome lost, recovered crash, attempts 1, crashes 1, backoff 3',
  'the attempt is lost, as if its worker was');
SELECT id AS job, token FROM given_claimed_job(:ann, 'slow') \gset
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"its program died"}', '{exit}') \g /dev/null
SELECT is(records_of(:job), 'ready, outcome failed, attempts 1, crashes 0, backoff 3',
  'a job that had the program for itself has failed');
SELECT is(outcome, 'accepted', 'a repeat is told that it is done')
  FROM pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"its program died"}', '{exit}');
SELECT id AS job, token FROM given_claimed_job(:ann, 'slow') \gset
UPDATE pulse.job SET crashes = 1, attempts = 2 WHERE id = :job;
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"its program died"}', '{exit}') \g /dev/null
SELECT is(records_of(:job),
  'ready, outcome lost, recovered crash, attempts 2, crashes 2, backoff 7',
  'but is lost where it has crashed before');
SELECT pulse.set_task('fragile', max_crashes => 1) \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann, 'fragile') \gset
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"its program died"}', '{exit}') \g /dev/null
SELECT is(records_of(:job), 'quarantined, outcome lost',
  'and on its last chance it is quarantined');
SELECT is(last_error, 'its program died', 'with that cause')
  FROM pulse.finished_job WHERE id = :job;
SELECT id AS job, token FROM given_claimed_job(:ann, 'fragile') \gset
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{"its program died"}', '{crash}') \g /dev/null
SELECT is(records_of(:job), 'quarantined, outcome lost', 'as beside other jobs');

-- --- arguments -----------------------------------------------------------------------------------

SELECT id AS one, token AS token_one FROM given_claimed_job(:ann, 'slow') \gset
SELECT id AS two, token AS token_two FROM given_claimed_job(:ann, 'slow') \gset
SELECT is(
  (SELECT array_agg(outcome) FROM pulse.fail_late(
     ARRAY[:two, :one, :two, 0], ARRAY[:token_two, :token_one, :token_two, 0],
     '{a,b,c,d}', '{stall,timeout,stall,stall}', ARRAY['[2]', '[1]', '[3]', NULL]::json[])),
  '{accepted,accepted,accepted,stale}', 'answers come in the order of the arrays');
SELECT is(
  (SELECT string_agg(j.recovered || ' ' || j.payload, ', ' ORDER BY j.id) FROM pulse.job AS j
    WHERE j.id IN (:one, :two)),
  'timeout [1], stall [2]', 'each with its cause and with what is left');
SELECT refuses(
  format('SELECT pulse.fail_late(ARRAY[1::bigint], ARRAY[1::bigint], %s, %s)', error, cause),
  'PU004', format('error %s with cause %s is refused', error, cause))
  FROM (VALUES ('''{x}''', '''{late}'''), ('''{x}''', '''{NULL}'''), ('''{x}''', '''{}'''),
               ('''{x}''', 'NULL'), ('''{NULL}''', '''{stall}''')) AS v (error, cause);

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
SELECT * FROM finish();
ROLLBACK;
