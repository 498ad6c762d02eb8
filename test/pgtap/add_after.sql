-- sql/flow/add_after.sql and sql/flow/wait_for_parents.sql: a job starts only after all that it
-- waits for have ended as it asks, its fate follows theirs, and no waiting job is forgotten (P14).
\ir support/setup.psql
SELECT plan(90);

SELECT given_worker('ann') AS ann \gset

-- --- what these tests say -----------------------------------------------------------------------

CREATE FUNCTION added(task text, VARIADIC after bigint[] = '{}') RETURNS bigint
  LANGUAGE sql AS $$ SELECT id FROM pulse.add_job_after(after, task) $$;
CREATE FUNCTION added_when(task text, starts_when text, VARIADIC after bigint[]) RETURNS bigint
  LANGUAGE sql AS $$
  SELECT id FROM pulse.add_job_after(after, task, starts_when => added_when.starts_when) $$;
-- The tasks of all jobs that a worker gets in one claim.
CREATE FUNCTION starts() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(c.identifier, ' ' ORDER BY c.identifier)
    FROM pulse.worker AS w, pulse.claim(w.id, 100) AS c $$;
CREATE FUNCTION completes(task text) RETURNS void LANGUAGE sql AS $$
  SELECT pulse.complete(j.id, j.token) FROM pulse.job AS j
   WHERE j.identifier = task AND j.state = 'running' $$;
CREATE FUNCTION fails(task text) RETURNS text LANGUAGE sql AS $$
  SELECT pulse.fail(j.id, j.token, 'no', retry => false) FROM pulse.job AS j
   WHERE j.identifier = task AND j.state = 'running' $$;
CREATE FUNCTION standing(job bigint) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce((SELECT j.state::text || coalesce(' on ' || p.identifier, '')
                     FROM pulse.job AS j LEFT JOIN pulse.job AS p ON p.id = j.waits_on
                    WHERE j.id = job),
                  (SELECT f.state::text || coalesce(': ' || f.last_error, '')
                     FROM pulse.finished_job AS f WHERE f.id = job), 'gone') $$;
CREATE FUNCTION forget_all() RETURNS void LANGUAGE sql AS $$
  DELETE FROM pulse.job; DELETE FROM pulse.finished_job; DELETE FROM pulse.dependency;
  DELETE FROM pulse.claim_batch $$;

-- --- one parent, several parents ----------------------------------------------------------------

SELECT added('a') AS a \gset
SELECT added('b') AS b \gset
SELECT added('child', :a, :b, :a) AS child \gset
SELECT is(standing(:child), 'parked on b', 'a job waits for the highest of its parents');
SELECT results_eq('SELECT parent_identifier, parent_state FROM pulse.waiting_for ORDER BY 1',
  $$VALUES ('a' COLLATE "C", 'ready'), ('b', 'ready')$$, 'a view tells each of them once');
SELECT is((SELECT detail FROM pulse.explain_job(:child) WHERE blocker = 'parents'),
  format('It starts when all jobs that it waits for have completed; 2 of 2 live: %s, %s.', :a, :b),
  'explain_job tells it');
SELECT is((SELECT job_ids FROM pulse.explain_job(:child) WHERE blocker = 'parents'),
  ARRAY[:a, :b]::bigint[], 'and names them');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :child)), 'parked',
  'no claim gets it by its id');
SELECT is(starts(), 'a b', 'nor with the jobs that it waits for');
SELECT completes('b') \g /dev/null
SELECT is(starts(), NULL, 'nor when one of them has ended');
SELECT is(standing(:child), 'parked on a', 'it waits for the other one');
SELECT completes('a') \g /dev/null
SELECT is(starts(), 'child', 'it starts when all have');
SELECT is_empty('SELECT * FROM pulse.dependency', 'and nothing of its waits is left');
SELECT forget_all() \g /dev/null

SELECT added('free') AS free \gset
SELECT is(standing(:free), 'ready', 'a job after none waits for nothing');
SELECT starts() \g /dev/null
SELECT completes('free') \g /dev/null
SELECT added('late', :free) AS late \gset
SELECT is(starts(), 'late', 'a job after one that completed and was not kept starts');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT added('queued', :a) AS queued \gset
UPDATE pulse.job SET queue_name = 'q' WHERE id = :queued;
SELECT pulse.pause_queue('q') \g /dev/null
SELECT starts() \g /dev/null
SELECT completes('a') \g /dev/null
SELECT is((SELECT detail FROM pulse.explain_job(:queued) WHERE blocker = 'parents'),
  'All jobs that it waited for have ended; the next claim or sweep sends it to its queue.',
  'until it is judged, explain_job says so');
SELECT is(starts(), NULL, 'a job of a queue goes to its queue');
SELECT is((SELECT index_lane FROM pulse.job WHERE id = :queued), 'p', 'which is paused');
SELECT pulse.resume_queue('q') \g /dev/null
SELECT is(starts(), 'queued', 'and starts by the rules of the queue');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT id AS soon FROM pulse.add_job_after(ARRAY[:a], 'soon', run_at => now() + interval '1 hour')
 \gset
SELECT starts() \g /dev/null
SELECT completes('a') \g /dev/null
SELECT is(starts(), NULL, 'a job that may go keeps its run_at');
SET LOCAL pulse.clock_offset = 3601;
SELECT is(starts(), 'soon', 'and starts then');
SET LOCAL pulse.clock_offset = 0;
SELECT forget_all() \g /dev/null

-- --- ends other than completed ------------------------------------------------------------------

SELECT added('a') AS a \gset
SELECT added('child', :a) AS child \gset
SELECT added('grandchild', :child) AS grandchild \gset
SELECT added_when('anyhow', 'ended', :a) AS anyhow \gset
SELECT added_when('repair', 'failed', :a) AS repair \gset
SELECT added_when('never', 'failed', :repair) AS never \gset
SELECT added('after never', :never) AS after_never \gset
SELECT starts() \g /dev/null
SELECT fails('a') \g /dev/null
SELECT is((SELECT blocker || ': ' || detail FROM pulse.explain_job(:child) WHERE kind = 'job'),
  format('cancelled: The next claim or sweep ends it: '
         'job %s, which it waited for, ended as failed.', :a),
  'explain_job tells which job will be cancelled, and why');
SELECT is(starts(), 'anyhow repair', 'a failure lets those start that ask for it, or for any end');
SELECT is(standing(:child), format('cancelled: job %s, which it waited for, ended as failed', :a),
  'one that asks for completion is cancelled, with the reason');
SELECT is((SELECT cancelled_by FROM pulse.finished_job WHERE id = :child), :a::bigint,
  'and with the job because of which');
SELECT pulse.sweep() \g /dev/null
SELECT is(standing(:grandchild),
  format('cancelled: job %s, which it waited for, ended as cancelled', :child), 'and so on down');
SELECT answers(format('SELECT blocker, regexp_replace(detail, ''^.* attempts'', ''''), job_ids '
                      'FROM pulse.explain_job(%s)', :grandchild),
  ROW('cancelled', format(', because of job %s.', :child), ARRAY[:child]::bigint[]),
  'explain_job tells of an ended job because of which it was cancelled');
SELECT completes('repair') \g /dev/null
SELECT is(starts(), 'after never', 'a job after one that was not needed starts');
SELECT is(standing(:never), 'cancelled: not needed: all that it waited for completed',
  'a job that asks for a failure is not needed when there is none');
SELECT matches((SELECT detail FROM pulse.explain_job(:never)),
  ', as all jobs that it waited for completed[.]$', 'and explain_job says so');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT added('b') AS b \gset
SELECT added('c') AS c \gset
SELECT added('child', :a, :b, :c) AS child \gset
SELECT starts() \g /dev/null
SELECT fails('b') \g /dev/null
SELECT completes('c') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(standing(:child), format('cancelled: job %s, which it waited for, ended as failed', :b),
  'a job is cancelled while a parent with a lower id still runs');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT added('b') AS b \gset
SELECT added_when('repair', 'failed', :a, :b) AS repair \gset
SELECT starts() \g /dev/null
SELECT fails('b') \g /dev/null
SELECT is(starts(), NULL, 'a job that asks for a failure waits until all have ended');
SELECT completes('a') \g /dev/null
SELECT is(starts(), 'repair', 'and starts if one did not complete');
SELECT forget_all() \g /dev/null

-- Ends of jobs that do not run.
SELECT added('cancelled') AS a \gset
SELECT added('expired') AS b \gset
SELECT id AS c FROM pulse.add_job('removed', job_key => 'r') \gset
SELECT added('completed by hand') AS d \gset
SELECT added('failed by hand') AS e \gset
SELECT added_when(i.identifier, 'failed', i.id) FROM pulse.job AS i \g /dev/null
SELECT pulse.cancel_job(:a) \g /dev/null
SELECT pulse_internal.set_start_by(:b, now() - interval '1 s') \g /dev/null
SELECT is((pulse.remove_job('r')).id, :c::bigint, 'a job that others wait for is removed');
SELECT is(standing(:c), 'cancelled: removed', 'and stays on record');
SELECT pulse.complete_jobs(ARRAY[:d]) \g /dev/null
SELECT pulse.permanently_fail_jobs(ARRAY[:e]) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(starts(), 'cancelled expired failed by hand removed',
  'a cancellation, an expiry, a removal and a failure by hand are ends other than completion');
SELECT forget_all() \g /dev/null
SELECT pulse.add_job('x', job_key => 'r') \g /dev/null
SELECT pulse.remove_job('r') \g /dev/null
SELECT is_empty('SELECT * FROM pulse.finished_job', 'any other removed job leaves no record');

-- --- waiting jobs that are changed --------------------------------------------------------------

SELECT added('a') AS a \gset
SELECT added('child', :a) AS child \gset
SELECT is((SELECT state::text FROM pulse.reschedule_jobs(ARRAY[:child], priority => 3)), 'parked',
  'reschedule_jobs changes a waiting job');
SELECT is(standing(:child), 'parked on a', 'which goes on waiting');
SELECT added('grandchild', :child) AS grandchild \gset
SELECT is((SELECT count(*)::int FROM pulse.complete_jobs(ARRAY[:child])), 1,
  'complete_jobs ends a job that waits');
SELECT is(starts(), 'a grandchild', 'and those after it start');
SELECT is_empty('SELECT * FROM pulse.dependency', 'with no trace of its waits');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT added('b') AS b \gset
SELECT id AS child FROM pulse.add_job_after(ARRAY[:a], 'child', job_key => 'k', queue_name => 'q')
 \gset
SELECT added('grandchild', :child) AS grandchild \gset
SELECT is((SELECT id FROM pulse.add_job_after(ARRAY[:b], 'other', job_key => 'k')), :child::bigint,
  'a keyed add replaces a waiting job');
SELECT is(standing(:child), 'parked on b', 'and its waits');
SELECT results_eq('SELECT job_id, parent_id FROM pulse.waiting_for ORDER BY 1',
  format('VALUES (%s::bigint, %s::bigint), (%s, %s)', :child, :b, :grandchild, :child),
  'those after it go on waiting');
SELECT is((SELECT id FROM pulse.add_job_after(ARRAY[:a], 'third', job_key => 'k',
                                              job_key_mode => 'unsafe_dedupe')), :child::bigint,
  'unsafe_dedupe returns the waiting job');
SELECT is(standing(:child), 'parked on b', 'and leaves its waits');
SELECT refuses(format('SELECT pulse.add_job_after(ARRAY[%s], $i$x$i$, job_key => $i$k$i$)',
  :grandchild), 'PU004', 'no job may wait for one that waits for it');
SELECT is((SELECT id FROM pulse.add_job('plain', job_key => 'k')), :child::bigint,
  'add_job replaces a waiting job too');
SELECT is(standing(:child), 'ready', 'which then waits for nothing');
SELECT is(starts(), 'a b plain', 'and starts');
SELECT is((SELECT index_lane::text || ' ' || state FROM
    pulse.add_job_after(ARRAY[:a], 'next', job_key => 'k')), 'w parked',
  'beside a running job a keyed one waits as a new job');
SELECT forget_all() \g /dev/null

-- --- retries ------------------------------------------------------------------------------------

SELECT added('a') AS a \gset
SELECT added('b') AS b \gset
SELECT added('child', :a, :b) AS child \gset
SELECT added('grandchild', :child) AS grandchild \gset
SELECT id AS keyed FROM pulse.add_job_after(ARRAY[:b], 'keyed', job_key => 'k') \gset
SELECT starts() \g /dev/null
SELECT fails('a'), fails('b') \g /dev/null
SELECT pulse.sweep() FROM generate_series(1, 2) \g /dev/null
SELECT pulse.add_job('taker', job_key => 'k') \g /dev/null
SELECT pulse.retry_job(:a) \g /dev/null
SELECT is(standing(:child), format('cancelled: job %s, which it waited for, ended as failed', :b),
  'a retried parent leaves a job alone of which another parent stands as failed');
SELECT pulse.retry_job(:b) \g /dev/null
SELECT is(standing(:child), 'parked on b', 'when none does, it waits again');
SELECT is(standing(:grandchild), 'parked on child', 'and so on down');
SELECT matches(standing(:keyed), '^cancelled', 'but for a job whose key another one has');
SELECT starts() \g /dev/null
SELECT completes('a'), completes('b') \g /dev/null
SELECT is(starts(), 'child', 'and starts after them');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT added('child', :a) AS child \gset
SELECT starts() \g /dev/null
SELECT fails('a') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is((pulse.retry_job(:child)).state::text, 'ready',
  'retry_job lets a cancelled job run without its parents');
SELECT pulse.retry_job(:a) \g /dev/null
SELECT is(standing(:child), 'ready', 'and a later retry of those leaves it alone');
SELECT forget_all() \g /dev/null

-- A parent above the watched one is live again.
SELECT added('a') AS a \gset
SELECT added('b') AS b \gset
SELECT added_when('child', 'ended', :a, :b) AS child \gset
SELECT starts() \g /dev/null
SELECT fails('b') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT pulse.retry_job(:b) \g /dev/null
SELECT completes('a') \g /dev/null
SELECT is(starts(), 'b', 'a job waits for a parent that was retried');
SELECT completes('b') \g /dev/null
SELECT is(starts(), 'child', 'as long as that lives');
SELECT forget_all() \g /dev/null

-- --- many ---------------------------------------------------------------------------------------

SELECT array_agg(id ORDER BY id) AS ids, (array_agg(id ORDER BY id))[50] AS middle
  FROM pulse.add_jobs(ARRAY(SELECT ROW('many', NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    ::pulse.job_spec FROM generate_series(1, 90))) \gset
SELECT id AS last FROM pulse.add_job_after(:'ids'::bigint[], 'last') \gset
SELECT ok(count(*) BETWEEN 2 AND 3, 'a row has the parents of 64 neighbouring ids')
  FROM pulse.dependency;
SELECT is(array_agg(parent_id ORDER BY parent_id), :'ids'::bigint[], 'the view tells each')
  FROM pulse.waiting_for;
SELECT alike((SELECT detail FROM pulse.explain_job(:last) WHERE blocker = 'parents'),
  'It starts when all jobs that it waits for have completed; 90 of 90 live: % and more.',
  'and explain_job tells how many');
SELECT starts() \g /dev/null
SELECT pulse.complete_many(array_agg(j.id), array_agg(j.token)) FROM pulse.job AS j
 WHERE j.state = 'running' AND j.id <> :middle \g /dev/null
SELECT is(starts(), NULL, 'it does not start while one of them lives');
SELECT is((SELECT waits_on FROM pulse.job WHERE id = :last), :middle::bigint,
  'which it has found');
SELECT fails('many') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT matches(standing(:last), '^cancelled: job .* ended as failed', 'it is cancelled by that');
SELECT pulse.retry_job(:middle) \g /dev/null
SELECT is(standing(:last), 'parked on many', 'and waits again with it');
SELECT starts() \g /dev/null
SELECT completes('many') \g /dev/null
SELECT is(starts(), 'last', 'to start after it');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT pulse_internal.parent_bucket(:a) AS slot \gset
SELECT count(added('child', :a)) FROM generate_series(1, 1500) \g /dev/null
SELECT id AS first FROM pulse.job WHERE identifier = 'child' ORDER BY id LIMIT 1 \gset
DELETE FROM pulse.job WHERE id = :a;
SELECT ok(pulse_internal.resolve_waits(:slot), 'a step leaves some of many jobs');
SELECT is(count(*), 500::bigint, 'it judges a thousand')
  FROM pulse.job WHERE waits_on IS NOT NULL;
SELECT is(min(id), :first + 1000::bigint, 'the first ones')
  FROM pulse.job WHERE waits_on IS NOT NULL;
UPDATE pulse.job SET state = 'parked', waits_on = :a, starts_when = 'ended'
 WHERE id = :first;
SELECT ok(pulse_internal.resolve_waits(:slot), 'the next begins behind them');
SELECT is(array_agg(id), ARRAY[:first]::bigint[], 'so that one that came back is left')
  FROM pulse.job WHERE waits_on IS NOT NULL;
SELECT ok(NOT pulse_internal.resolve_waits(:slot), 'to a last one from the front');
SELECT is_empty('SELECT FROM pulse.job WHERE waits_on IS NOT NULL', 'which leaves none');
SELECT forget_all() \g /dev/null

-- --- records ------------------------------------------------------------------------------------

SELECT added('a') AS a \gset
SELECT added('b') AS b \gset
SELECT added('child', :a, :b) AS child \gset
SELECT starts() \g /dev/null
SELECT fails('a') \g /dev/null
SELECT is(pulse_internal.prune_failed(now() + interval '1 day', 10), 0,
  'the end of a job stays on record while another waits for it');
SELECT is(pulse.delete_finished(older_than => '0'), 0, 'also against an operator');
SELECT added('z') AS z \gset
SELECT starts() \g /dev/null
SELECT fails('z') \g /dev/null
UPDATE pulse.finished_job SET finished_at = finished_at - interval '1 hour' WHERE id = :a;
SELECT is(pulse_internal.prune_failed(now() + interval '1 day', 1), 1,
  'and takes no share of what is deleted at a time');
SELECT completes('b') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(pulse_internal.prune_failed(now() + interval '1 day', 10), 2, 'and goes with that job');
SELECT is_empty('SELECT * FROM pulse.dependency', 'with what it waited for');

-- --- bad input ----------------------------------------------------------------------------------

SELECT refuses('SELECT pulse.add_job_after(NULL, $$x$$)', 'PU004', 'NULL is no list of ids');
SELECT refuses('SELECT pulse.add_job_after(ARRAY[1, NULL], $$x$$)', 'PU004',
  'nor is one with NULL');
SELECT refuses('SELECT pulse.add_job_after(ARRAY[ARRAY[1]], $$x$$)', 'PU004', 'nor one of lists');
-- Ids lower than this one may have been given out: a leap by an earlier test outlives its record.
SELECT refuses(format('SELECT pulse.add_job_after(ARRAY[%s], $$x$$)', given_job() + 1000000),
  'PU005', 'an id that was never given out is refused');
SELECT refuses('SELECT pulse.add_job_after(ARRAY[0], $$x$$)', 'PU005', 'so is 0');
SELECT refuses('SELECT pulse.add_job_after($${}$$, $$x$$, starts_when => $$soon$$)', 'PU004',
  'so is an unknown starts_when');
SELECT refuses('SELECT pulse.add_job_after($${}$$, $$x$$, job_key_mode => $$soon$$)', 'PU004',
  'so is an unknown mode');
SELECT is((SELECT start_by FROM pulse.add_job_after('{}', 'x', start_by => now())), now(),
  'a job may say by when it starts');

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

-- --- a job that stays as it is -------------------------------------------------------------------

SELECT id AS kept FROM pulse.add_job('mail', job_key => 'kept') \gset
SELECT is((SELECT ROW(id, start_by)::text
             FROM pulse.add_job_after('{}', 'mail', job_key => 'kept',
                                      job_key_mode => 'unsafe_dedupe',
                                      start_by => now() - interval '1 s')),
  format('(%s,)', :kept), 'unsafe_dedupe gives it no start_by');
SELECT is((SELECT start_by FROM pulse.job WHERE id = :kept), NULL, 'so that it does not expire');
SELECT isnt((SELECT start_by
               FROM pulse.add_job_after('{}', 'mail', job_key => 'new',
                                        job_key_mode => 'unsafe_dedupe',
                                        start_by => now() + interval '1 h')), NULL,
  'a new one has it');

SELECT * FROM finish();
ROLLBACK;
