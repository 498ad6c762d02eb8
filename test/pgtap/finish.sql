-- sql/worker/finish.sql: how a claim ends. Every call carries the token; a stale one changes
-- nothing.
\ir support/setup.psql
SELECT plan(116);

SELECT expect_function('complete',
  'job_id bigint, token bigint, result json DEFAULT NULL::json', 'void', 'volatile', 'definer');
SELECT expect_function('fail',
  'job_id bigint, token bigint, error text, retry boolean DEFAULT true, '
  'retry_in interval DEFAULT NULL::interval, payload json DEFAULT NULL::json',
  'text', 'volatile', 'definer');
SELECT expect_function('snooze',
  'job_id bigint, token bigint, delay interval, checkpoint json DEFAULT NULL::json',
  'void', 'volatile', 'definer');
SELECT expect_function('complete_many',
  'job_ids bigint[], tokens bigint[], results json[] DEFAULT NULL::json[]',
  'SETOF pulse.job_outcome', 'volatile', 'definer');
SELECT expect_function('fail_many',
  'job_ids bigint[], tokens bigint[], errors text[], retry boolean[] DEFAULT NULL::boolean[], '
  'retry_in interval[] DEFAULT NULL::interval[], payloads json[] DEFAULT NULL::json[]',
  'SETOF pulse.job_outcome', 'volatile', 'definer');
SELECT expect_function('release', 'job_ids bigint[], tokens bigint[]',
  'SETOF pulse.job_outcome', 'volatile', 'definer');

SELECT given_worker() AS ann \gset
CREATE FUNCTION job_now(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat_ws(', ', state_of(job_id), 'attempts ' || attempts, last_error)
    FROM (SELECT id, attempts, last_error FROM pulse.job
          UNION ALL SELECT id, attempts, last_error FROM pulse.finished_job) AS j
   WHERE j.id = job_now.job_id
$$;
CREATE FUNCTION attempts_of(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', attempt, outcome, error), ', ' ORDER BY token)
    FROM pulse.attempt AS a WHERE a.job_id = attempts_of.job_id
$$;

-- --- complete (P2, P3) ---------------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT lives_ok(format('SELECT pulse.complete(%s, %s, ''{"sum": 3}'')', :job, :token),
  'the owner completes its job');
SELECT is(state_of(:job), 'gone', 'which is deleted unless retention asks for it');
SELECT is(attempts_of(:job), NULL, 'nor is its attempt recorded');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'a second completion of a deleted job is refused');
SELECT is((refusal_of(format('SELECT pulse.complete(%s, %s)', :job, :token))).detail, 'no live job',
  'the refusal tells that there is no live job');
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
UPDATE pulse.heartbeat SET verdict = 'lost' WHERE worker_id = :ann;
SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :job, :token),
  'a job that nobody recovered yet is completed whatever its worker''s state');
UPDATE pulse.heartbeat SET verdict = 'alive' WHERE worker_id = :ann;

SET LOCAL pulse.keep_completed = -1;
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT pulse.complete(:job, :token, '{"sum": 3}') \g /dev/null
SELECT answers(
  format('SELECT state, result, token, worker_id, attempts, last_error, finished_at >= now()
            FROM pulse.finished_job WHERE id = %s', :job),
  ROW('completed', '{"sum": 3}', :token, :ann, 1, NULL, true),
  'where retention asks, a completed job is kept with its result');
SELECT is(attempts_of(:job), '1 completed', 'and so is its attempt');
SELECT changes_nothing(format('SELECT pulse.complete(%s, %s, ''{"sum": 4}'')', :job, :token),
  'a repeat by the same token is answered as done and changes nothing');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token - 1), 'PU001',
  'a repeat by another token is refused');
SELECT refuses(format('SELECT pulse.fail(%s, %s, ''boom'')', :job, :token), 'PU001',
  'a completed job cannot fail');
SET LOCAL pulse.keep_completed = 0;
SELECT pulse.set_task('kept', keep_completed => '1 day') \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann, 'kept') \gset
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT is(state_of(:job), 'completed', 'a task may ask to keep its completed jobs');
SELECT id AS job, token FROM given_claimed_job(:ann, 'kept') \gset
SELECT pulse.complete_many(ARRAY[:job], ARRAY[:token]) \g /dev/null
SELECT is(state_of(:job), 'completed', 'which complete_many does too');
SET LOCAL pulse.keep_completed = '1d';
SELECT pulse.set_task('unkept', keep_completed => '0') \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann, 'unkept') \gset
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT is(state_of(:job), 'gone', 'or not to keep them');
SET LOCAL pulse.keep_completed = 0;

-- --- fail (P2, P4) -------------------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann, max_attempts => 2) \gset
SELECT is(pulse.fail(:job, :token, 'boom'), 'ready', 'a failed job is ready for its next attempt');
SELECT is(job_now(:job), 'ready, attempts 1, boom', 'its error is kept');
SELECT is(attempts_of(:job), '1 failed boom', 'its attempt is recorded');
SELECT answers(format('SELECT worker_id, token, claimed_at, recovered FROM pulse.job WHERE id = %s',
                      :job),
  ROW(NULL, NULL, NULL, NULL), 'and it belongs to nobody');
SELECT is(claimed_ids(:ann), '{}', 'it is not claimed before its backoff is over');
SELECT is(pulse.fail(:job, :token, 'boom'), 'ready', 'a repeat by the same token hears its state');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'a failed attempt cannot complete');
SELECT travel('3 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT token AS second FROM pulse.claim(:ann) \gset
SELECT refuses(format('SELECT pulse.fail(%s, %s, ''bang'')', :job, :token - 1), 'PU001',
  'a token that was never the job''s cannot fail it');
SELECT isnt((refusal_of(format('SELECT pulse.complete(%s, %s)', :job, :token))).detail,
  'no live job', 'the refusal of a stale token tells when there is a live job');
SELECT is((refusal_of(format('SELECT pulse.%s(%s, %s)', f.call, :job, :second - 1))).detail,
          'the job is running under another claim', f.call || ' tells so, too')
  FROM (VALUES ('held_job'), ('complete')) AS f (call);
SELECT is((refusal_of(format('SELECT pulse.complete(%s, NULL)', :job))).detail,
          'job_id or token is NULL', 'no token is told as that');
SELECT is(pulse.fail(:job, :second, 'bang'), 'failed', 'the last attempt fails for good');
SELECT is(job_now(:job), 'failed, attempts 2, bang', 'and is kept with its error');
SELECT is(attempts_of(:job), '1 failed boom, 2 failed bang', 'and all its attempts');
SELECT is(pulse.fail(:job, :second, 'bang'), 'failed', 'a repeat hears that it failed');
SELECT id AS nested, token FROM given_claimed_job(:ann) \gset
SAVEPOINT nested;
SELECT pulse.fail(:nested, :token, 'boom') \g /dev/null
RELEASE nested;
SELECT is(pulse.fail(:nested, :token, 'boom'), 'ready',
  'also where a savepoint of the same transaction has ended the attempt');
SELECT travel('0');
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT is(pulse.fail(:job, :token, 'bad input', retry => false), 'failed',
  'retry => false ends the job');
SELECT id AS job, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT is(pulse.fail(:job, :token, 'boom', payload => '[2]'), 'parked',
  'a failed job of a queue is parked behind it');
SELECT is((SELECT payload::text FROM pulse.job WHERE id = :job), '[2]',
  'fail may change the payload of the next attempt');
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT is(pulse.fail(:job, :token, 'boom', retry => NULL, retry_in => '1 min'), 'ready',
  'retry of NULL means true');
SELECT is(backoff_of(:job), 60, 'retry_in says when');
DELETE FROM pulse.job;

-- --- snooze (P4) ---------------------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann, max_attempts => 1) \gset
SELECT lives_ok(format('SELECT pulse.snooze(%s, %s, ''1 min'', ''{"page": 2}'')', :job, :token),
  'a job may be snoozed, on its last attempt too');
SELECT answers(
  format('SELECT state, attempts, checkpoint, worker_id, token, last_error FROM pulse.job
           WHERE id = %s', :job),
  ROW('ready', 0, '{"page": 2}', NULL, NULL, NULL), 'its attempt is returned, its checkpoint kept');
SELECT cmp_ok(run_at, '>', now() + interval '59 s', 'it waits for the delay')
  FROM pulse.job WHERE id = :job;
SELECT is(claimed_ids(:ann), '{}', 'and is not claimed before');
SELECT refuses(format('SELECT pulse.snooze(%s, %s, ''1 min'')', :job, :token), 'PU001',
  'a snoozed job has no claim any more');
SELECT travel('61 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT answers(format('SELECT id, attempts, checkpoint FROM pulse.claim(%s)', :ann),
  ROW(:job, 1, '{"page": 2}'), 'then it is claimed with its checkpoint');
SELECT travel('0');
SELECT id AS job, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT pulse.snooze(:job, :token, '0') \g /dev/null
SELECT is(state_of(:job), 'parked', 'a snoozed job of a queue is parked behind it');
SELECT refuses(format('SELECT pulse.snooze(%s, %s, ''0'')', :job, :token), 'PU001',
  'a repeat is refused, because a snooze leaves no record');
DELETE FROM pulse.job;

-- --- plural calls (P2, P3) -----------------------------------------------------------------------

-- Busy is what others hold; a single session sees the other two answers.
DELETE FROM pulse.task;
SELECT given_job() FROM generate_series(1, 2) \g /dev/null
SELECT array_agg(id) AS jobs, max(token) AS token FROM pulse.claim(:ann, 2) \gset
SELECT answers(
  format('SELECT id, outcome FROM pulse.complete_many(%L, ARRAY[%s, %s])', :'jobs', :token,
         :token - 1),
  lines(format('VALUES (%s, ''accepted''), (%s, ''stale'')', (:'jobs'::bigint[])[1],
               (:'jobs'::bigint[])[2])),
  'complete_many accepts the current token and answers stale to another');
SELECT is(state_of((:'jobs'::bigint[])[1]), 'gone', 'the accepted one is done');
SELECT is(state_of((:'jobs'::bigint[])[2]), 'running', 'the stale one changed nothing');
SELECT answers(
  format('SELECT outcome FROM pulse.complete_many(ARRAY[%s, 0], ARRAY[%s, %s])',
         (:'jobs'::bigint[])[1], :token, :token),
  lines($$VALUES ('stale'), ('stale')$$), 'an unknown or deleted job is stale');
SELECT answers(
  format('SELECT outcome FROM pulse.complete_many(ARRAY[%1$s, %1$s], ARRAY[%2$s, %2$s])',
         (:'jobs'::bigint[])[2], :token),
  lines($$VALUES ('accepted'), ('accepted')$$), 'a job that is named twice is completed once');
SELECT is_empty($$SELECT * FROM pulse.complete_many('{}', '{}')$$, 'no jobs have no outcomes');

SET LOCAL pulse.keep_completed = -1;
SELECT given_job() FROM generate_series(1, 2) \g /dev/null
SELECT array_agg(id) AS jobs, array_agg(token) AS tokens FROM pulse.claim(:ann, 2) \gset
SELECT answers(
  format($$SELECT outcome FROM pulse.complete_many(%L, %L, ARRAY['{"n": 1}', NULL]::json[])$$,
         :'jobs', :'tokens'),
  lines($$VALUES ('accepted'), ('accepted')$$), 'complete_many takes results');
SELECT answers(format('SELECT result FROM pulse.finished_job WHERE id = ANY (%L) ORDER BY id',
                      :'jobs'),
  lines($$VALUES ('{"n": 1}'), (NULL)$$), 'and keeps each with its job');
SELECT answers(format('SELECT outcome FROM pulse.complete_many(%L, %L)', :'jobs', :'tokens'),
  lines($$VALUES ('accepted'), ('accepted')$$), 'a repeat is accepted where that is recorded');
SET LOCAL pulse.keep_completed = 0;

SELECT given_job(max_attempts => n) FROM generate_series(1, 3) AS n \g /dev/null
SELECT array_agg(id) AS jobs, max(token) AS token FROM pulse.claim(:ann, 3) \gset
SELECT answers(
  format($$SELECT outcome FROM pulse.fail_many(%L, ARRAY[%2$s, %2$s, %3$s], ARRAY['a', 'b', 'c'],
           ARRAY[true, false, NULL], ARRAY[NULL, NULL, '1 min']::interval[],
           ARRAY[NULL, NULL, '[3]']::json[])$$, :'jobs', :token, :token - 1),
  lines($$VALUES ('accepted'), ('accepted'), ('stale')$$), 'fail_many answers for each job');
SELECT is(job_now((:'jobs'::bigint[])[1]), 'failed, attempts 1, a',
  'the last attempt fails for good');
SELECT is(job_now((:'jobs'::bigint[])[2]), 'failed, attempts 1, b',
  'so does one not to be retried');
SELECT is(job_now((:'jobs'::bigint[])[3]), 'running, attempts 1', 'the stale one changed nothing');
SELECT answers(
  format($$SELECT outcome FROM pulse.fail_many(ARRAY[%s], ARRAY[%s], ARRAY['c'],
           retry_in => ARRAY['1 min']::interval[], payloads => ARRAY['[3]']::json[])$$,
         (:'jobs'::bigint[])[3], :token),
  ROW('accepted'), 'its own token is accepted');
SELECT answers(format('SELECT attempts, last_error, payload, backoff_of(id) FROM pulse.job
                        WHERE id = %s', (:'jobs'::bigint[])[3]),
  ROW(1, 'c', '[3]', 60), 'with its error, its payload and its delay');
SELECT answers(
  format($$SELECT outcome FROM pulse.fail_many(ARRAY[%s], ARRAY[%s], ARRAY['c'])$$,
         (:'jobs'::bigint[])[3], :token),
  ROW('accepted'), 'a repeat is accepted');

-- --- release (P4) --------------------------------------------------------------------------------

SELECT given_job('mail', 'post', max_attempts => 1) AS queued \gset
SELECT given_job('ink') AS plain \gset
SELECT promote_queues();
SELECT max(token) AS token FROM pulse.claim(:ann, 2) \gset
SELECT answers(
  format('SELECT outcome FROM pulse.release(ARRAY[%s, %s, 0], ARRAY[%3$s, %3$s, %3$s])', :queued,
         :plain, :token),
  lines($$VALUES ('accepted'), ('accepted'), ('stale')$$), 'release answers for each job');
SELECT is(job_now(:plain), 'ready, attempts 0', 'a released job has its attempt back');
SELECT is(job_now(:queued), 'parked, attempts 0', 'one of a queue waits behind it');
SELECT is(attempts_of(:plain), '1 released', 'the release is recorded');
SELECT answers(format('SELECT run_at <= now(), last_error FROM pulse.job WHERE id = %s', :plain),
  ROW(true, NULL), 'it is due as before, without an error');
SELECT answers(format('SELECT outcome FROM pulse.release(ARRAY[%s], ARRAY[%s])', :plain, :token),
  ROW('accepted'), 'a repeat is accepted');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :plain, :token), 'PU001',
  'a released job cannot be completed by its old token');
SELECT token AS next FROM pulse.claim(:ann) \gset
SELECT cmp_ok(:next::bigint, '>', :token::bigint, 'the next claim has another token');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

-- --- arguments: see also bad_input.sql ----------------------------------------------------------

SELECT refuses(format('SELECT pulse.fail(%s, %s, NULL)', :plain, :next), 'PU004',
  'a failure needs an error');
SELECT refuses(format('SELECT pulse.fail(%s, %s, ''boom'', retry_in => ''-1 s'')', :plain, :next),
  'PU004', 'a retry cannot be in the past');
SELECT refuses(format('SELECT pulse.snooze(%s, %s, NULL)', :plain, :next), 'PU004',
  'a snooze needs a delay');
SELECT refuses(format('SELECT pulse.snooze(%s, %s, ''-1 s'')', :plain, :next), 'PU004',
  'which is not in the past');
SELECT unalike((refusal_of(format('SELECT pulse.complete(%s, %s)', :plain, :next - 1)))::text,
  '%' || (:next - 1) || '%', 'a refusal does not tell the token');

-- --- what others hung on the table ---------------------------------------------------------------

CREATE TABLE parcel (job_id bigint REFERENCES pulse.job ON DELETE CASCADE);
SELECT pulse.add_job('parcel') FROM generate_series(1, 2) \g /dev/null
INSERT INTO parcel SELECT id FROM pulse.job WHERE identifier = 'parcel';
SELECT min(id) AS job, max(id) AS other, min(token) AS token
  FROM pulse.claim(:ann, 2, tasks => '{parcel}') \gset
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT results_eq('SELECT job_id FROM parcel', ARRAY[:other::bigint],
  'a row that refers to a job goes with it when that completes');
SELECT count(*) FROM pulse.complete_many(ARRAY[:other::bigint], ARRAY[:token::bigint]) \g /dev/null
SELECT is_empty('SELECT * FROM parcel', 'or when many do');

-- --- the order of answers ---------------------------------------------------------------------

-- The second job twice, one that there is not, the first.
CREATE FUNCTION answers_of(call text, more text = '') RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  one pulse.claimed_job := given_claimed_job(given_worker());
  two pulse.claimed_job := given_claimed_job(given_worker());
  answer text;
BEGIN
  EXECUTE format('SELECT string_agg(CASE id WHEN $1[4] THEN ''one '' WHEN $1[1] THEN ''two ''
                                     ELSE ''none '' END || outcome, '', '')
                    FROM pulse.%s($1, $2 %s)', call, more)
    INTO answer USING ARRAY[two.id, two.id, 0, one.id], ARRAY[two.token, two.token, 0, one.token];
  RETURN answer;
END $$;
SELECT is(answers_of(call, more), 'two accepted, two accepted, none stale, one accepted',
  call || ' answers in the order of the arrays, for each element')
  FROM (VALUES ('complete_many', ''), ('release', ''), ('fail_many', ', ''{a,b,c,d}'''),
               ('fail_late', ', ''{a,b,c,d}'', ''{stall,stall,stall,stall}''')) AS v (call, more);

SELECT * FROM finish();
ROLLBACK;
