-- sql/queue/strict.sql: in a strict queue a claimed job keeps its place until it has ended (P13).
\ir support/setup.psql
SELECT plan(69);
SELECT given_worker() AS ann \gset

-- --- settings -----------------------------------------------------------------------------------

SELECT answers($$SELECT is_strict, on_dead FROM pulse.set_queue('post')$$, ROW(false, 'continue'),
  'a queue is not strict unless it is asked for');
SELECT answers($$SELECT is_strict, on_dead FROM pulse.set_queue('post', strict => true,
  on_dead => 'pause')$$, ROW(true, 'pause'), 'a strict queue may pause when a job dies');
SELECT answers($$SELECT is_strict, on_dead FROM pulse.set_queue('post')$$, ROW(true, 'pause'),
  'NULL leaves both as they are');
SELECT refuses(format('SELECT pulse.set_queue(''post'', %s)', a.arguments), 'PU004',
               'set_queue refuses ' || a.arguments)
  FROM (VALUES ('2'), ('on_dead => ''stop'''), ('strict => false'), ('on_dead => ''''')) AS
       a (arguments);
SELECT refuses($$SELECT pulse.set_queue('other', 3, strict => true)$$, 'PU004',
  'a strict queue has the concurrency of 1');
SELECT refuses($$SELECT pulse.set_queue('other', on_dead => 'pause')$$, 'PU004',
  'a queue that is not strict cannot pause when a job dies');
SELECT answers($$SELECT concurrency, is_strict FROM pulse.set_queue('post', 2, strict => false,
  on_dead => 'continue')$$, ROW(2, false), 'a queue can leave off to be strict');
DELETE FROM pulse.queue;

-- --- every way to wait again keeps the place ----------------------------------------------------

-- What is open, and what is an hour later, if the claimed job of this queue ended so.
CREATE FUNCTION open_job(queue text, first bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT promote_queues();
  SELECT coalesce((SELECT CASE j.id WHEN first THEN 'the first' ELSE 'another' END
                     FROM pulse.job AS j WHERE j.state = 'ready' AND j.queue_name = queue), 'none')
$$;
CREATE FUNCTION open_after(worker_id bigint, queue_name text, ending text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  first pulse.claimed_job;
  answer text;
BEGIN
  DELETE FROM pulse.job;
  first := given_claimed_job(worker_id, 'mail', queue_name, max_attempts => 3);
  PERFORM given_job('mail', queue_name, priority => -1);
  EXECUTE format(ending, first.id, first.token);
  answer := open_job(queue_name, first.id);
  PERFORM travel('1 hour');
  answer := answer || ', ' || open_job(queue_name, first.id);
  PERFORM travel('0');
  RETURN answer;
END $$;
SELECT pulse.set_queue('post', strict => true) \g /dev/null
SELECT is(open_after(:ann, 'post', e.ending), e.expected,
          format('after %s of a strict queue''s job it opens %s', e.name, e.expected))
  FROM (VALUES
    ('a failure', 'SELECT pulse.fail(%s, %s, ''boom'')', 'none, the first'),
    ('fail_many', 'SELECT pulse.fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''boom''])',
     'none, the first'),
    ('snooze', 'SELECT pulse.snooze(%s, %s, ''1 min'')', 'none, the first'),
    ('release', 'SELECT pulse.release(ARRAY[%s], ARRAY[%s])', 'the first, the first'),
    ('requeue_job', 'SELECT pulse.requeue_job(%s, ''%s'')', 'the first, the first'),
    ('a completion', 'SELECT pulse.complete(%s, %s)', 'another, another'),
    ('a final failure', 'SELECT pulse.fail(%s, %s, ''boom'', retry => false)', 'another, another'),
    ('a cancelled failure',
     'SELECT pulse.cancel_job(%1$s); SELECT pulse.fail(%1$s, %2$s, ''boom'')', 'another, another'))
    AS e (name, ending, expected);
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT is(open_after(:ann, 'free', 'SELECT pulse.fail(%s, %s, ''boom'')'), 'another, another',
  'a queue that is not strict opens another meanwhile');
SELECT pulse.set_queue('level/*', strict => true) \g /dev/null
SELECT is(open_after(:ann, 'level/x', 'SELECT pulse.fail(%s, %s, ''boom'')'), 'none, the first',
  'a member of a level is strict as its members are');
DELETE FROM pulse.job;
SELECT id, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT given_job('mail', 'post') AS behind \gset
SELECT pulse.declare_lost(:ann, 'gone') \g /dev/null
SELECT promote_queues();
SELECT is(ARRAY[state_of(:id), state_of(:behind)], '{parked,parked}',
  'a job that was recovered from its worker keeps its place too');
SELECT given_worker('bea') AS ann \gset
SELECT travel('1 hour');
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 5), ARRAY[:id]::bigint[], 'and is claimed again');
SELECT travel('0');

-- --- what waits has the order of P8 -------------------------------------------------------------

DELETE FROM pulse.job;
SELECT given_job('mail', 'post') AS first \gset
SELECT promote_queues();
SELECT given_job('mail', 'post', priority => -1) AS better \gset
SELECT promote_queues();
SELECT is(ARRAY[state_of(:first), state_of(:better)], '{parked,ready}',
  'a better job takes the place of an open one that no worker has claimed');
SELECT id, token FROM pulse.claim(:ann) \gset
SELECT pulse.release(ARRAY[:id]::bigint[], ARRAY[:token]::bigint[]) \g /dev/null
SELECT promote_queues();
SELECT given_job('mail', 'post', priority => -2) AS best \gset
SELECT promote_queues();
SELECT is(ARRAY[state_of(:better), state_of(:best)], '{ready,parked}',
  'but not that of one which has been claimed');
SELECT pulse.set_queue('post') \g /dev/null
SELECT is(state_of(:better), 'parked', 'given that new settings have parked it');
SELECT promote_queues();
SELECT is(ARRAY[state_of(:better), state_of(:best)], '{ready,parked}', 'it opens first again');
SELECT pulse.reschedule_jobs(ARRAY[:better]::bigint[], now() + interval '30 min') \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:best), 'parked', 'nor does another open while it is put off');
SELECT answers(format('SELECT kind, blocker, job_ids FROM pulse.explain_job(%s) '
                      'WHERE kind = ''queue''', :best),
               ROW('queue', 'strict', ARRAY[:better]::bigint[]),
               'explain_job names the job that keeps the place');
SELECT answers(format('SELECT kind, blocker FROM pulse.explain_job(%s) '
                      'WHERE kind IN (''job'', ''queue'')', :better), ROW('job', 'future'),
               'and tells that this one is put off');
SELECT travel('10 min');
SELECT is_empty('SELECT * FROM pulse.verify()', 'jobs behind it are not stranded');
SELECT travel('0');
SELECT pulse.cancel_job(:better) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:best), 'ready', 'they go on when it is cancelled');
DELETE FROM pulse.job;

SELECT id, token FROM given_claimed_job(:ann, 'mail', 'post', job_key => 'k') \gset
SELECT given_job('mail', 'post') AS behind \gset
SELECT pulse.fail(:id, :token, 'boom') \g /dev/null
SELECT given_job('mail', 'post', job_key => 'k', priority => 1) AS keyed \gset
SELECT promote_queues();
SELECT is(ARRAY[:keyed::text, state_of(:id)], ARRAY[:'id', 'ready'],
  'a keyed add that replaces the job keeps its place');
SELECT pulse.release(ARRAY[c.id], ARRAY[c.token]) FROM pulse.claim(:ann) AS c \g /dev/null
SELECT refuses(format('SELECT pulse.add_dependency(%s, ARRAY[%s]::bigint[])', :id, :behind),
  'PU004', 'a job that has been claimed waits for no further job');
SELECT given_job('mail', 'elsewhere', job_key => 'k') AS keyed \gset
SELECT promote_queues();
SELECT is(state_of(:behind), 'ready', 'unless it moves it to another queue');
SELECT is((SELECT succession FROM pulse.job WHERE id = :keyed), NULL, 'where it has no place');
DELETE FROM pulse.job;

-- --- settings that change -----------------------------------------------------------------------

SELECT pulse.set_queue('wide', 3) \g /dev/null
SELECT id AS one, token AS one_token FROM given_claimed_job(:ann, 'mail', 'wide') \gset
SELECT id AS two, token AS two_token FROM given_claimed_job(:ann, 'mail', 'wide') \gset
SELECT pulse.fail(:two, :two_token, 'boom', retry_in => '1 min') \g /dev/null
SELECT given_job('mail', 'wide') AS three \gset
SELECT pulse.set_queue('wide', 1, strict => true) \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'what ran before a queue became strict goes on');
SELECT pulse.complete(:one, :one_token) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:three), 'parked', 'one that has been claimed before keeps the place');
SELECT travel('1 hour');
SELECT promote_queues();
SELECT is(state_of(:two), 'ready', 'and opens when it is due');
SELECT travel('0');
SELECT pulse.set_queue('wide', strict => false) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:three), 'ready', 'without strictness the others need not wait for it');
SELECT pulse.claim(:ann) \g /dev/null
UPDATE pulse.queue SET is_strict = true WHERE queue_name = 'wide';
SELECT answers('SELECT promise, job_id FROM pulse.verify()', ROW('P13', :three::bigint),
  'verify() sees a job that started before its turn');
DELETE FROM pulse.job;

-- --- on_dead ------------------------------------------------------------------------------------

SELECT pulse.set_queue('post', on_dead => 'pause') \g /dev/null
SELECT id, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT given_job('mail', 'post') AS behind \gset
SELECT pulse.fail(:id, :token, 'boom', retry => false) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:behind), 'parked', 'with on_dead pause a failed job pauses its queue');
SELECT answers(format('SELECT blocker, job_ids FROM pulse.explain_job(%s) WHERE kind = ''queue''',
                      :behind), ROW('paused', ARRAY[:id]::bigint[]),
  'explain_job names the job that failed');
SELECT answers($$SELECT paused, reasons::text FROM pulse.queue_status
                  WHERE queue_name = 'post'$$, ROW(true, '{ "paused" : 1 }'),
  'queue_status tells that it is paused');
SELECT pulse.set_queue('post', paused => true) \g /dev/null
SELECT is((SELECT array_agg(job_id ORDER BY job_id) FROM pulse.queue_pause),
  ARRAY[0, :id]::bigint[], 'pausing it by hand leaves that as it is');
SELECT pulse.retry_job(:id) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:id), 'parked', 'a retried job waits for the end of the pause');
SELECT travel('10 min');
SELECT is_empty('SELECT * FROM pulse.verify()', 'and is not stranded');
SELECT travel('0');
SELECT pulse.resume_queue('post') \g /dev/null
SELECT promote_queues();
SELECT is(ARRAY[state_of(:id), state_of(:behind)], '{ready,parked}',
  'after resume_queue the retried job comes first');
SELECT id, token FROM pulse.claim(:ann) \gset
SELECT pulse.complete(:id, :token) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:behind), 'ready', 'and then the others');
SELECT given_job('mail', 'post') AS last \gset
SELECT pulse.permanently_fail_jobs(ARRAY[:last]::bigint[]) \g /dev/null
SELECT is(state_of(:behind), 'parked', 'a waiting job that fails parks the open one');
SELECT pulse.resume_queue('post') \g /dev/null
SELECT given_job('mail', 'post', priority => -1) AS last \gset
SELECT promote_queues();
SELECT lives_ok(format('SELECT pulse.permanently_fail_jobs(ARRAY[%s, %s]::bigint[])', :behind,
                       :last), 'all jobs of a queue may be failed at once');
SELECT pulse.set_queue('post', strict => false, on_dead => 'continue') \g /dev/null
SELECT is_empty('SELECT FROM pulse.queue_pause WHERE is_paused',
  'a queue that is not strict has no such pause');
DELETE FROM pulse.queue_pause;
DELETE FROM pulse.job;

SELECT pulse.set_queue('level/*', on_dead => 'pause') \g /dev/null
SELECT given_job('mail', 'level/x') AS behind \gset
SELECT given_job('mail', 'level/x') AS late \gset
UPDATE pulse.job SET start_by = now() - interval '1 s' WHERE id = :late;
SELECT pulse.sweep() \g /dev/null
SELECT is(state_of(:late), 'expired', 'given a job that was not started in time');
SELECT promote_queues();
SELECT is(state_of(:behind), 'parked', 'it pauses its queue too');
SELECT pulse.resume_queue('level/x') \g /dev/null
SELECT is_empty('SELECT FROM pulse.queue WHERE queue_name = ''level/x''',
  'resume_queue gives no settings to a member that has none of its own');
SELECT promote_queues();
SELECT is(state_of(:behind), 'ready', 'and lets it go on');
SELECT refuses($$SELECT pulse.resume_queue('level/x')$$, 'PU005', 'once');
SELECT pulse.set_queue('level/own', strict => true, on_dead => 'pause') \g /dev/null
SELECT given_job('mail', 'level/x') AS late, given_job('mail', 'level/own') AS own \gset
UPDATE pulse.job SET start_by = now() - interval '1 s' WHERE id IN (:late, :own);
SELECT pulse.sweep() \g /dev/null
SELECT is(rows_of('queue_pause'), 2::bigint, 'given two members that are paused so');
SELECT pulse.resume_queue('level/*') \g /dev/null
SELECT is((SELECT string_agg(queue_name, ' ') FROM pulse.queue_pause WHERE is_paused), 'level/own',
  'resume_queue of the members lets those go on that have no settings of their own');

-- A retried job comes after one that has been claimed, and before the others.
DELETE FROM pulse.job;
SELECT pulse.set_queue('post', strict => true) \g /dev/null
SELECT id AS dead, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT pulse.fail(:dead, :token, 'boom', retry => false) \g /dev/null
SELECT id, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT given_job('mail', 'post') AS open \gset
SELECT pulse.release(ARRAY[:id]::bigint[], ARRAY[:token]::bigint[]) \g /dev/null
SELECT pulse.retry_job(:dead) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:id), 'ready', 'a retried job does not displace one that has been claimed');
SELECT pulse.cancel_job(:id) \g /dev/null
SELECT pulse.cancel_job(:dead) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:open), 'ready', 'given an open job that no worker has claimed');
SELECT pulse.retry_job(:id) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:open), 'ready', 'a retry of a cancelled job does not come first');
SELECT id AS dead, token FROM pulse.claim(:ann) \gset
SELECT pulse.fail(:dead, :token, 'boom', retry => false) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:id), 'ready', 'given another open job');
SELECT pulse.retry_job(:dead) \g /dev/null
SELECT promote_queues();
SELECT is(ARRAY[state_of(:dead), state_of(:id)], '{ready,parked}',
  'a retry of a dead one takes the place of an open job that no worker has claimed');

-- --- turns that end ------------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT id AS turn, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT given_job('mail', 'post') AS next \gset
SELECT pulse.fail(:turn, :token, 'boom', retry_in => '1 h') \g /dev/null
SELECT id AS op FROM pulse.start_operation('cancel', json_build_object('ids', ARRAY[:turn])) \gset
SELECT pulse.run_operation(:op) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:next), 'ready', 'a job that was cancelled loses its turn');
SELECT id AS undo FROM pulse.undo_operation(:op) \gset
SELECT pulse.run_operation(:undo) \g /dev/null
SELECT is((SELECT succession FROM pulse.job WHERE id = :turn), NULL, 'and has none then');
SELECT is_empty('SELECT * FROM pulse.verify()', 'so no promise is broken');

DELETE FROM pulse.job;
SELECT pulse.add_job('mail', queue_name => 'post', job_key => 'turn') \g /dev/null
SELECT id AS turn, token FROM pulse.claim(:ann) \gset
SELECT pulse.fail(:turn, :token, 'boom', retry_in => '0') \g /dev/null
SELECT pulse.add_job_after(ARRAY[given_job()], 'mail', queue_name => 'post', job_key => 'turn')
  \g /dev/null
SELECT given_job('mail', 'post') AS next \gset
SELECT promote_queues();
SELECT is(state_of(:next), 'ready', 'nor keeps it a job that is added anew, after others');
SELECT pulse.claim(:ann, 5) \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'so others go on meanwhile');

SELECT * FROM finish();
ROLLBACK;
