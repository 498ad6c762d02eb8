-- sql/recovery/sweep.sql: the sweep finds the lost and recovers their jobs.
\ir support/setup.psql
SELECT plan(83);

SELECT expect_function('sweep',
  'max_jobs integer DEFAULT 1000, dry_run boolean DEFAULT false, OUT workers_lost integer, '
  'OUT jobs_requeued integer, OUT jobs_failed integer, OUT jobs_quarantined integer, '
  'OUT jobs_timed_out integer, OUT jobs_stalled integer, OUT jobs_skipped_locked integer, '
  'OUT skipped_time interval', 'record', 'volatile', 'definer');
SELECT expect_function('declare_lost', 'worker_id bigint, reason text', 'integer', 'volatile',
  'definer');

-- What a sweep did, without what was nothing.
CREATE FUNCTION swept(max_jobs int = 1000, dry_run bool = false) RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce(string_agg(t.key || ' ' || t.value, ', '), 'nothing')
    FROM (SELECT to_json(s) AS done FROM pulse.sweep(max_jobs, dry_run) AS s) AS q,
         json_each_text(q.done) AS t
   WHERE t.value <> '0' AND t.key <> 'skipped_time'
$$;
CREATE FUNCTION job_now(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('%s, attempts %s, crashes %s', state_of(job_id), attempts, crashes)
    FROM (SELECT id, attempts, crashes FROM pulse.job
          UNION ALL SELECT id, attempts, crashes FROM pulse.finished_job) AS j
   WHERE j.id = job_now.job_id
$$;
CREATE FUNCTION outcome_of(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT outcome FROM pulse.attempt AS a WHERE a.job_id = outcome_of.job_id
   ORDER BY token DESC LIMIT 1
$$;

-- --- silence (P5c) -------------------------------------------------------------------------------

SELECT is(swept(), 'nothing', 'where nobody is, a sweep does nothing');
SELECT given_worker() AS ann \gset
SELECT given_worker('bob') AS bob \gset
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT id AS last_one FROM given_claimed_job(:ann, max_attempts => 1) \gset
SELECT id AS queued FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT given_job('mail', 'post') AS next_of_queue \gset
SELECT id AS other FROM given_claimed_job(:bob, 'ink') \gset
SELECT travel('12 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT is(swept(), 'nothing', 'no worker is lost before the threshold');
SELECT travel('21 s');
SELECT is(swept(dry_run => true), 'workers_lost 1, jobs_requeued 2, jobs_failed 1',
  'a dry run tells what a sweep would do');
SELECT changes_nothing('SELECT pulse.sweep(dry_run => true)', 'and does none of it');
SELECT is(swept(), 'workers_lost 1, jobs_requeued 2, jobs_failed 1',
  'a worker that was silent for longer is lost and its jobs recovered');
SELECT answers(format('SELECT state, reason ~ ''no heartbeat'',
                              ended_at >= now() + interval ''21 s''
                         FROM pulse.worker WHERE id = %s', :ann),
  ROW('lost', true, true), 'it is marked with the reason and the time');
SELECT is((SELECT status FROM pulse.heartbeat(:bob)), 'alive', 'the other lives');
SELECT is(job_now(:other), 'running, attempts 1, crashes 0', 'and keeps its job');
SELECT is(job_now(:job), 'ready, attempts 1, crashes 1',
  'a recovered job is ready, its attempt consumed, the crash counted');
SELECT answers(format('SELECT worker_id, token, claimed_at, recovered FROM pulse.job WHERE id = %s',
                      :job), ROW(NULL, NULL, NULL, 'silence'),
                      'it belongs to nobody and tells the way');
SELECT is(backoff_of(:job), 3, 'its backoff is that of a failure');
SELECT matches(last_error, format('^worker %s \(ann\) was lost: no heartbeat', :ann),
  'its last error names the worker and the reason') FROM pulse.job WHERE id = :job;
SELECT is(outcome_of(:job), 'lost', 'the attempt is recorded as lost');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'its old token is stale');
SELECT is(job_now(:last_one), 'failed, attempts 1, crashes 1',
  'a job that is lost on its last attempt has failed');
SELECT matches(last_error, '\(ann\) was lost', 'with the reason')
  FROM pulse.finished_job WHERE id = :last_one;
SELECT is(job_now(:queued), 'parked, attempts 1, crashes 1', 'a job of a queue is parked');
SELECT is(state_of(:next_of_queue), 'ready', 'and the next of its queue opens at once');
SELECT is(swept(), 'nothing', 'the next sweep finds nothing more');
SELECT travel('30 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT answers(format('SELECT attempts, crashes, recovered, last_error LIKE ''%%ann%%''
                         FROM pulse.claim(%s, 1, ''{mail}'')', :bob),
  ROW(1, 0, NULL, NULL), 'the queue goes on first');
SELECT answers(format('SELECT id, attempts, crashes, recovered FROM pulse.claim(%s, 1, ''{mail}'')',
                      :bob),
  ROW(:job, 2, 1, 'silence'), 'the next attempt is told how the last one was lost');
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'lost', 'the lost worker hears it');
SELECT travel('0');
DELETE FROM pulse.job;

-- --- the threshold of the settings --------------------------------------------------------------

SELECT given_worker() AS ann \gset
SET LOCAL pulse.sweep_interval = '20s';
SELECT travel('30 s');
SELECT swept() \g /dev/null
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'alive',
  'where sweeps have become rarer than a worker''s threshold allows, a sweep waits longer');
SELECT travel('81 s');
SELECT swept() \g /dev/null
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'lost', 'but not for ever');
SET LOCAL pulse.sweep_interval = '5s';
SELECT travel('0');
SELECT given_worker() AS ann \gset
SET LOCAL pulse.sweep_threshold = '60s';
SELECT given_worker('bob') AS bob \gset
SELECT travel('30 s');
SELECT is(swept(), 'workers_lost 1', 'each worker has the threshold that it was registered with');
SELECT is((SELECT status FROM pulse.heartbeat(:bob)), 'alive', 'which spares the patient one');
SET LOCAL pulse.sweep_threshold = '20s';
SELECT travel('0');

-- --- an outage is nobody's silence (P6) ----------------------------------------------------------

SELECT pulse.set_task('watched', timeout => '1 min', stall_timeout => '30 s') \g /dev/null
SELECT given_worker() AS ann \gset
SELECT id AS job FROM given_claimed_job(:ann, 'watched') \gset
UPDATE pulse.clock SET last_tick = clock_timestamp() - interval '1 hour';
SELECT is(swept(), 'nothing',
  'after an hour without database no worker is lost and nothing timed out');
SELECT is(state_of(:job), 'running', 'and the job runs on');
UPDATE pulse.clock SET last_tick = clock_timestamp() + interval '1 hour';
SELECT is(swept(), 'nothing', 'nor after the clock was set back');
DELETE FROM pulse.job;
DELETE FROM pulse.worker;
DELETE FROM pulse.heartbeat;

-- --- session end (P5a) ---------------------------------------------------------------------------

\ir support/ended_session.psql
-- A worker whose attached session has ended.
CREATE FUNCTION given_detached_worker(ended bigint, name text = 'ann') RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker(name);
BEGIN
  PERFORM pulse.attach_worker(worker);
  UPDATE pulse.heartbeat SET attachment = ended WHERE worker_id = worker;
  RETURN worker;
END $$;
SELECT given_worker('bob') AS bob \gset
SELECT pulse.attach_worker(:bob) \g /dev/null
SET LOCAL pulse.disconnect_grace = '10s';
SELECT given_detached_worker(:ended) AS ann \gset
SELECT id AS job FROM given_claimed_job(:ann) \gset
SAVEPOINT detached;
SELECT is(swept(), 'nothing', 'when its session has ended, a worker has time to come back');
SELECT travel('4 s');
SELECT is(swept(), 'nothing', 'as long as the grace lasts');
SELECT detached_live_us + 10000000 AS over FROM pulse.heartbeat WHERE worker_id = :ann \gset
SELECT is(pulse_internal.grace_ends_in(:over - 6000000, :over - 5000000), '5 s',
  'and the next sweep is due when it ends');
SELECT is(pulse_internal.grace_ends_in(:over - 1, :over + 7000), '-7 ms',
  'at once when it has ended since the sweep judged');
SELECT is(pulse_internal.grace_ends_in(:over, :over + 7000), '1 s',
  'a while later when the sweep had to leave the worker to a lock');
SAVEPOINT in_grace;
SELECT travel('12 s');
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1', 'then it is lost');
SELECT answers(format('SELECT state, reason FROM pulse.worker WHERE id = %s', :ann),
  ROW('lost', 'its session ended'), 'because of that');
SELECT is((SELECT recovered FROM pulse.job WHERE id = :job), 'session', 'the job tells the way');
SELECT is((SELECT status FROM pulse.heartbeat(:bob)), 'alive', 'whose session is open, lives');
ROLLBACK TO in_grace;
SELECT pulse.attach_worker(:ann) \g /dev/null
SELECT travel('16 s');
SELECT is(swept(), 'nothing', 'a worker that attaches anew is not lost');
ROLLBACK TO in_grace;
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT travel('16 s');
SELECT is(swept(), 'nothing', 'nor one that beats from another session');
ROLLBACK TO in_grace;
UPDATE pulse.heartbeat SET beat_live_us = pulse_internal.live_now_us() WHERE worker_id = :ann;
SELECT travel('16 s');
SELECT is(swept(), 'nothing', 'nor one that has claimed since, which is a beat too');
ROLLBACK TO detached;
UPDATE pulse.heartbeat SET incarnation = incarnation - 1 WHERE worker_id = :ann;
SELECT is(swept(), 'nothing', 'a session of an earlier run of the server says nothing');
SELECT travel('15 s');
SELECT is(swept(), 'nothing', 'however long ago it ended');
SELECT travel('30 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1', 'silence decides');
ROLLBACK TO detached;
SET LOCAL pulse.disconnect_grace = 0;
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1', 'without a grace it is lost at once');
ROLLBACK TO detached;
SET LOCAL pulse.disconnect_grace = -1;
SELECT swept() \g /dev/null
SELECT travel('15 s');
SELECT is(swept(), 'nothing', 'where the end of sessions is ignored, it is not');
SELECT travel('30 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1', 'before it is silent for too long');
ROLLBACK TO detached;
SELECT travel('1 day');
SELECT pulse.heartbeat(:bob) \g /dev/null
UPDATE pulse.heartbeat SET interval_us = 0, attachment = (
  SELECT attachment FROM pulse.heartbeat WHERE worker_id = :bob) WHERE worker_id = :ann;
SELECT is(swept(), 'nothing', 'a worker that lives by its session alone needs no beat');
ROLLBACK TO detached;
SELECT travel('0');
SET LOCAL pulse.disconnect_grace = '1h';
UPDATE pulse.clock SET last_tick = clock_timestamp() - interval '4 s';
UPDATE pulse.heartbeat SET beat_live_us = 0, threshold_us = 1000000000000, detached_live_us = NULL,
  attachment = :ended, incarnation = pulse_internal.incarnation() WHERE worker_id = :ann;
SELECT pulse_internal.ended_live_us(:ended) AS ended_live_us \gset
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT detached_live_us FROM pulse.heartbeat WHERE worker_id = :ann),
  :ended_live_us::bigint, 'the tick of the sweep does not hide when a session ended');
ROLLBACK TO detached;
DELETE FROM pulse.job;
DELETE FROM pulse.worker;
DELETE FROM pulse.heartbeat;

-- --- owners that are not there (P1) --------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT id AS job FROM given_claimed_job(:ann) \gset
SAVEPOINT owned;
DELETE FROM pulse.worker WHERE id = :ann;
DELETE FROM pulse.heartbeat WHERE worker_id = :ann;
SELECT is(swept(), 'jobs_requeued 1', 'a job whose worker is not known is recovered');
SELECT is(job_now(:job), 'ready, attempts 1, crashes 1', 'like any other');
SELECT matches(last_error, :'ann', 'and its error names the worker') FROM pulse.job;
ROLLBACK TO owned;
UPDATE pulse.heartbeat SET verdict = 'lost' WHERE worker_id = :ann;
SELECT is(swept(), 'jobs_requeued 1', 'what an earlier sweep left of a lost worker is recovered');
ROLLBACK TO owned;
UPDATE pulse.worker SET state = 'stopped' WHERE id = :ann;
DELETE FROM pulse.heartbeat WHERE worker_id = :ann;
SELECT is(swept(), 'jobs_requeued 1', 'what a stopped worker left is recovered');
SELECT is(job_now(:job), 'ready, attempts 1, crashes 0', 'without counting a crash');
SELECT is(outcome_of(:job), 'interrupted', 'for its attempt was interrupted');
ROLLBACK TO owned;

-- --- declare_lost (P5b) --------------------------------------------------------------------------

SELECT is(pulse.declare_lost(:ann, 'its process is gone'), 1,
  'declare_lost tells how many it recovered');
SELECT answers(format('SELECT state, reason FROM pulse.worker WHERE id = %s', :ann),
  ROW('lost', 'its process is gone'), 'the worker is lost for the reason given');
SELECT is(job_now(:job), 'ready, attempts 1, crashes 1', 'its job is recovered');
SELECT is((SELECT recovered FROM pulse.job), 'host', 'and tells the way');
SELECT matches(last_error, '\(ann\) was lost: its process is gone',
  'and the reason') FROM pulse.job;
SELECT is(pulse.declare_lost(:ann, 'again'), 0, 'once more there is nothing to recover');
SELECT is((SELECT reason FROM pulse.worker WHERE id = :ann), 'its process is gone',
  'and the first reason stands');
SELECT refuses('SELECT pulse.declare_lost(0, ''gone'')', 'PU002',
  'an unknown worker cannot be lost');
SELECT refuses('SELECT pulse.declare_lost(NULL, ''gone'')', 'PU002', 'nor can NULL');
ROLLBACK TO owned;
SELECT pulse.deregister_worker(:ann) \g /dev/null
SELECT is(pulse.declare_lost(:ann, 'gone'), 0, 'a stopped worker has nothing to lose');
SELECT is((SELECT state FROM pulse.worker WHERE id = :ann), 'stopped', 'and stays stopped');
ROLLBACK TO owned;
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

-- --- queues without a mark ----------------------------------------------------------------------

INSERT INTO pulse.job (identifier, queue_name, state) VALUES ('mail', 'by hand', 'parked')
RETURNING id AS unmarked \gset
-- A sweep may begin in the middle. Other tests may have left marks of queues that were rolled back.
SELECT pulse.sweep() FROM generate_series(1, 2) \g /dev/null
DO $$ BEGIN WHILE pulse_internal.promote_marked(256) LOOP END LOOP; END $$;
SELECT is(state_of(:unmarked), 'ready', 'a sweep finds the queue of a job that no commit told of');

-- --- many lost workers --------------------------------------------------------------------------

DELETE FROM pulse.job;
SET LOCAL track_functions = 'pl';
SELECT count(given_claimed_job(given_worker('one of 50'))) FROM generate_series(1, 50) \g /dev/null
UPDATE pulse.heartbeat SET verdict = 'lost', lost_cause = 'silence';
CREATE FUNCTION judged() RETURNS bigint LANGUAGE sql AS $$
  SELECT pg_stat_get_xact_function_calls('pulse_internal.owner_end(bigint)'::regprocedure)
$$;
SELECT coalesce(judged(), 0) AS before \gset
SELECT is(swept(5), 'jobs_requeued 5', 'given a sweep that may recover jobs of few workers');
SELECT cmp_ok(judged() - :before, '<=', 6::bigint, 'it judges no worker that it does not come to');

SELECT * FROM finish();
ROLLBACK;
