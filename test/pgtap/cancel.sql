-- sql/job/cancel.sql: looking at one job and cancelling it.
\ir support/setup.psql
SELECT plan(66);

SELECT expect_function('cancel_job', 'job_id bigint, reason text DEFAULT NULL::text', 'text',
  'volatile', 'definer');
SELECT expect_function('get_job', 'job_id bigint, OUT state text, OUT job json', 'record', 'stable',
  'invoker');

SELECT given_worker() AS ann \gset

-- --- get_job ------------------------------------------------------------------------------------

SELECT (pulse.add_job('mail', '{"to": "eve"}', 'post')).id AS job \gset
SELECT answers(
  format($$SELECT state, job ->> 'id', job -> 'payload', job ->> 'queue_name', job ->> 'attempts'
             FROM pulse.get_job(%s)$$, :job),
  ROW('parked', :job, '{"to": "eve"}', 'post', '0'), 'get_job shows a live job');
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT is((SELECT state FROM pulse.get_job(:job)), 'running', 'a running one too');
SELECT ok((SELECT (g.job ->> 'owner_heartbeat_at')::timestamptz = h.last_heartbeat_at
             FROM pulse.get_job(:job) AS g JOIN pulse.heartbeat AS h
               ON h.worker_id = (g.job ->> 'worker_id')::bigint),
  'with the last heartbeat of its worker');
SELECT pulse.fail(:job, :token, 'boom', retry => false) \g /dev/null
SELECT answers(format($$SELECT state, job ->> 'last_error' FROM pulse.get_job(%s)$$, :job),
  ROW('failed', 'boom'), 'and a finished one');
SELECT expect_function('read_job',
  'job_id bigint, OUT state text, OUT job json, OUT payload json, OUT checkpoint json, '
  'OUT result json, OUT parents json', 'record', 'stable', 'invoker');
SELECT (pulse.add_job('mail', '{"a": "\u0000 \ud800", "b": 1e200000}')).id AS odd \gset
SELECT answers(format($$SELECT state, job ->> 'id', job ->> 'payload', payload::text
                          FROM pulse.read_job(%s)$$, :odd),
  ROW('ready', :'odd'::text, NULL::text, '{"a": "\u0000 \ud800", "b": 1e200000}'::text),
  'read_job shows a job whose payload no function reads');
SELECT pulse.permanently_fail_jobs(ARRAY[:odd]) \g /dev/null
SELECT answers(format($$SELECT state, job ->> 'id', payload::text FROM pulse.read_job(%s)$$, :odd),
  ROW('failed', :'odd'::text, '{"a": "\u0000 \ud800", "b": 1e200000}'::text),
  'also a finished one');
SELECT refuses('SELECT pulse.read_job(0)', 'PU005', 'and none that is unknown');
SELECT refuses('SELECT pulse.get_job(0)', 'PU005', 'an unknown job cannot be shown');
SELECT refuses('SELECT pulse.get_job(NULL)', 'PU005', 'nor can NULL');
SELECT refuses(format('SELECT pulse.%s', call), 'PU005', call || ': the least id is unknown')
  FROM unnest('{cancel_job($1),retry_job($1),"requeue_job($1, NULL)"}'::text[]) AS c (form)
 CROSS JOIN LATERAL replace(c.form, '$1', '(-9223372036854775808)') AS call;

-- --- a waiting job ------------------------------------------------------------------------------

SELECT (pulse.add_job('mail', job_key => 'k', run_at => now() + interval '1 hour')).id AS job \gset
SELECT is(pulse.cancel_job(:job, 'not needed'), 'cancelled', 'a waiting job is cancelled at once');
SELECT answers(format('SELECT state, last_error, job_key, attempts FROM pulse.finished_job
                        WHERE id = %s', :job),
  ROW('cancelled', 'not needed', 'k', 0), 'it is kept with the reason');
SELECT is((SELECT count(*)::int FROM pulse.job WHERE id = :job), 0, 'and is not live');
SELECT isnt((pulse.add_job('mail', job_key => 'k')).id, :job::bigint, 'its key is free');
SELECT is(pulse.cancel_job(:job), 'cancelled', 'cancelling it again says how it ended');
SELECT given_job('mail', 'post2') AS job \gset
SELECT is(pulse.cancel_job(:job), 'cancelled', 'a parked job is cancelled at once');
DELETE FROM pulse.job;

-- --- a running job ------------------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT is(pulse.cancel_job(:job, 'too late'), 'running', 'a running job is flagged');
SELECT is((SELECT cancelled FROM pulse.heartbeat(:ann)), ARRAY[:job]::bigint[],
  'and its worker told');
SELECT lives_ok(format('SELECT pulse.cancel_job(%s)', :job), 'flagging it again is no error');
SELECT lives_ok(format('SELECT pulse.progress(%s, %s)', :job, :token), 'it may still report');
SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :job, :token),
  'a completion that comes first wins');
SELECT is(state_of(:job), 'gone', 'the job is completed');
SELECT is_empty('SELECT * FROM pulse.attempt WHERE outcome = ''cancelled''', 'not cancelled');

-- Any other end is cancelled.
CREATE FUNCTION end_of_flagged(ending text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker('sue');
  flagged pulse.claimed_job := given_claimed_job(worker);
BEGIN
  PERFORM pulse.cancel_job(flagged.id, 'unwanted');
  EXECUTE format(ending, flagged.id, flagged.token, worker);
  RETURN concat_ws(', ', state_of(flagged.id),
    (SELECT outcome FROM pulse.attempt WHERE job_id = flagged.id));
END $$;
SELECT is(end_of_flagged(e.ending), 'cancelled, cancelled',
          e.name || ' ends a job that is to be cancelled')
  FROM (VALUES ('fail', 'SELECT pulse.fail(%s, %s, ''boom'')'),
               ('a final fail', 'SELECT pulse.fail(%s, %s, ''boom'', false)'),
               ('fail_many', 'SELECT pulse.fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''boom''])'),
               ('release', 'SELECT pulse.release(ARRAY[%s], ARRAY[%s])'),
               ('snooze', 'SELECT pulse.snooze(%s, %s, ''1 min'')'),
               ('deregister_worker', 'SELECT pulse.deregister_worker(%3$s)'),
               ('the loss of its worker', 'SELECT pulse.declare_lost(%3$s, ''gone'')'))
       AS e (name, ending);
SELECT is(pulse.fail(id, token, 'boom'), 'cancelled', 'fail tells that the job is cancelled')
  FROM (SELECT c.*, pulse.cancel_job(c.id) FROM given_claimed_job(:ann) AS c OFFSET 0) AS flagged;

SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT pulse.cancel_job(:job, 'not needed'), pulse.fail(:job, :token, 'boom') \g /dev/null
SELECT is((SELECT last_error FROM pulse.finished_job WHERE id = :job), 'not needed',
  'a running job that is cancelled keeps the reason');
SELECT is((SELECT error FROM pulse.attempt WHERE job_id = :job), 'boom',
  'and its attempt the error');

-- --- ended before -------------------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT pulse.fail(:job, :token, 'boom', retry => false) \g /dev/null
SELECT is(pulse.cancel_job(:job), 'failed', 'a job that has failed stays so');
SET LOCAL pulse.keep_completed = -1;
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT changes_nothing(format('SELECT pulse.cancel_job(%s)', :job),
  'nor is a completed one changed');
SELECT is(pulse.cancel_job(:job), 'completed', 'which is told');

-- A completed job that is not kept, of which something else knows.
SET LOCAL pulse.keep_completed = 0;
CREATE FUNCTION completed_by(worker_id bigint, job_id bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT pulse.claim_job(worker_id, job_id);
  SELECT pulse.complete(h.id, h.token) FROM pulse.held(worker_id) AS h;
  SELECT job_id $$;
DELETE FROM pulse.job;
SELECT completed_by(:ann, min(f.id)) AS member FROM pulse.add_flow('[
  {"key": "a", "identifier": "mail"}, {"key": "b", "identifier": "mail"}]') AS f
  \gset
SELECT is(pulse.cancel_job(:member), 'completed', 'a flow knows that its job has completed');
SELECT refuses(format('SELECT pulse.retry_job(%s)', :member), 'PU010',
  'which is no reason to run it again');
SELECT is(pulse.requeue_job(:member, 'no'), false, 'nor is there a worker to take it from');
SELECT given_job() AS parent, given_job() AS other \gset
SELECT pulse.add_job_after(ARRAY[:parent, :other], 'mail') AS child,
       completed_by(:ann, :parent) \g /dev/null
SELECT is(pulse.cancel_job(:parent), 'completed', 'so does a job that waits for it');
SELECT pulse.schedule('s', 'mail', every => '1 h'), completed_by(:ann, given_job()) AS scheduled
  \gset
UPDATE pulse.schedule SET last_job_id = :scheduled;
SELECT is(pulse.cancel_job(:scheduled), 'completed', 'and a schedule whose last job it was');
SELECT completed_by(:ann, given_job()) AS alone \gset
SELECT refuses(format('SELECT pulse.cancel_job(%s)', :alone), 'PU005',
  'what nothing names is not known');
-- As of a job that failed, and whose record was pruned before its attempts.
INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
VALUES (:member, 1, 1, now(), 'failed');
SELECT refuses(format('SELECT pulse.cancel_job(%s)', :member), 'PU005',
  'a job that may have failed is not said to have completed');
DELETE FROM pulse.job;
DELETE FROM pulse.dependency;
DELETE FROM pulse.attempt WHERE job_id = :member;
SELECT refuses('SELECT pulse.cancel_job(0)', 'PU005', 'an unknown job cannot be cancelled');
SELECT refuses('SELECT pulse.cancel_job(NULL)', 'PU005', 'nor can NULL');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
