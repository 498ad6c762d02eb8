-- sql/recovery/returned.sql and may_still_run in sql/recovery/lost.sql: what the end of a session
-- proves, and what becomes of the crashes of a worker that beats again.
\ir support/setup.psql
SELECT plan(37);

\ir support/ended_session.psql
CREATE FUNCTION swept() RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce(string_agg(t.key || ' ' || t.value, ', '), 'nothing')
    FROM (SELECT to_json(s) AS done FROM pulse.sweep() AS s) AS q, json_each_text(q.done) AS t
   WHERE t.value <> '0' AND t.key <> 'skipped_time'
$$;
CREATE FUNCTION job_now(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('%s, attempts %s, crashes %s', state_of(job_id), attempts, crashes)
    FROM (SELECT id, attempts, crashes FROM pulse.job
          UNION ALL SELECT id, attempts, crashes FROM pulse.finished_job) AS j
   WHERE j.id = job_now.job_id
$$;
CREATE FUNCTION outcomes_of(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(outcome, ' ' ORDER BY token) FROM pulse.attempt AS a
   WHERE a.job_id = outcomes_of.job_id
$$;
CREATE FUNCTION given_detached_worker(ended bigint) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker();
BEGIN
  PERFORM pulse.attach_worker(worker);
  UPDATE pulse.heartbeat SET attachment = ended WHERE worker_id = worker;
  PERFORM pulse.sweep();
  RETURN worker;
END $$;
-- Each of so many workers claims the job and falls silent.
CREATE FUNCTION lose(job_id bigint, count int) RETURNS SETOF bigint
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint;
BEGIN
  FOR i IN 1 .. count LOOP
    worker := given_worker();
    UPDATE pulse.job SET run_at = now() WHERE id = job_id;
    PERFORM pulse.claim_job(worker, job_id);
    PERFORM pulse_internal.mark_lost(worker, 'silence', 'no heartbeat');
    PERFORM pulse.sweep();
    RETURN NEXT worker;
  END LOOP;
END $$;
SELECT pulse.set_task('single', on_unreachable => 'kill', backoff => 'none') \g /dev/null

-- --- the end of a session is not the end of a process (P5a) --------------------------------------

SELECT given_detached_worker(:ended) AS ann \gset
SELECT given_worker('bob') AS bob \gset
SELECT id AS mail FROM given_claimed_job(:ann) \gset
SELECT id AS single FROM given_claimed_job(:ann, 'single') \gset
SAVEPOINT detached;
SELECT travel('4 s');
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1', 'after the grace the worker is lost');
SELECT is(job_now(:mail), 'ready, attempts 1, crashes 1',
  'a job that may go on beside is recovered');
SELECT is(job_now(:single), 'running, attempts 1, crashes 0',
  'a job of a task with on_unreachable kill is not');
SELECT is((SELECT reason FROM pulse.claim_job(:bob, :single)), 'running',
  'nor may another worker claim it by its id');
SELECT is(swept(), 'nothing', 'a second sweep finds nothing to do, and nothing locked');
SAVEPOINT lost;
SELECT travel('19 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT is(swept(), 'nothing', 'within the threshold its worker may be alive');
SELECT travel('21 s');
SELECT is(swept(), 'jobs_requeued 1', 'beyond it the worker has ended the task');
SELECT is(job_now(:single), 'ready, attempts 1, crashes 1', 'and the job is recovered');
ROLLBACK TO lost;
SELECT travel('21 s');
SELECT is((SELECT reason FROM pulse.claim_job(:bob, :single)), 'claimed',
  'beyond it another worker may claim it by its id');
ROLLBACK TO lost;
SELECT is(pulse.declare_lost(:ann, 'its process is gone'), 1,
  'one that knows that the process is gone has it recovered at once');
ROLLBACK TO lost;
SELECT is(pulse.force_unlock_workers('{ann}'), 1, 'as has an operator');
ROLLBACK TO lost;
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'nothing',
  'also of a worker that hears of its loss it is not recovered at once');
SELECT travel('21 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT is(swept(), 'jobs_requeued 1', 'but after the threshold');
SELECT is(job_now(:single), 'ready, attempts 1, crashes 0', 'without a crash');
SELECT is(outcomes_of(:single), 'interrupted', 'for the worker lived');
ROLLBACK TO detached;
SELECT pulse.attach_worker(:ann) \g /dev/null
SELECT travel('4 s');
SELECT is(swept(), 'nothing', 'a worker that attaches within the grace takes the end back');
ROLLBACK TO detached;
UPDATE pulse.heartbeat SET interval_us = 0 WHERE worker_id = :ann;
SELECT travel('4 s');
SELECT is(swept(), 'workers_lost 1, jobs_requeued 2',
  'of a worker that lives by its session alone all is recovered');
ROLLBACK TO detached;
DELETE FROM pulse.job;
DELETE FROM pulse.task;

-- --- a worker that beats after its loss ----------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT id AS waiting FROM given_claimed_job(:ann) \gset
SELECT id AS kept FROM given_claimed_job(:ann, 'kept') \gset
SELECT id AS last_one FROM given_claimed_job(:ann, 'last', max_attempts => 1) \gset
SELECT travel('21 s');
SELECT pulse.sweep() \g /dev/null
SELECT given_worker('bob') AS bob \gset
SAVEPOINT lost;
SELECT is(swept(), 'nothing', 'the crashes of a worker that stays away stay counted');
SELECT is(job_now(:waiting), 'ready, attempts 1, crashes 1', 'on each of its jobs');
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'lost',
  'one that beats hears that it is lost');
SELECT is(swept(), 'nothing', 'and the next sweep');
SELECT is(job_now(:waiting), 'ready, attempts 1, crashes 0', 'takes back the crash');
SELECT is(outcomes_of(:waiting), 'interrupted', 'and calls the attempt interrupted');
SELECT is(job_now(:last_one), 'failed, attempts 1, crashes 0',
  'the attempt counts all the same, and the last one was the last');
SELECT ok(NOT EXISTS (SELECT FROM pulse.heartbeat WHERE worker_id = :ann),
  'the row of the worker is settled');
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'lost', 'and the worker lost all the same');
SELECT is(swept(), 'nothing', 'later sweeps');
SELECT is(job_now(:waiting), 'ready, attempts 1, crashes 0', 'take back nothing more');
ROLLBACK TO lost;
SELECT travel('30 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT (job).token AS token FROM pulse.claim_job(:bob, :waiting) \gset
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(job_now(:waiting), 'running, attempts 2, crashes 0', 'a job that runs again is told too');
ROLLBACK TO lost;
SELECT travel('0');
DELETE FROM pulse.job;
DELETE FROM pulse.worker;
DELETE FROM pulse.heartbeat;

SELECT given_job('poison') AS job \gset
SELECT array_agg(l) AS dead FROM lose(:job, 3) AS l \gset
SELECT is(job_now(:job), 'quarantined, attempts 3, crashes 3', 'three deaths quarantine a job');
SAVEPOINT quarantined;
SELECT pulse.heartbeat((:'dead'::bigint[])[1]) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(job_now(:job), 'ready, attempts 3, crashes 2',
  'when one of the dead turns out to live, it may run again');
ROLLBACK TO quarantined;
UPDATE pulse.finished_job SET crashes = 4 WHERE id = :job;
SELECT pulse.heartbeat((:'dead'::bigint[])[3]) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(job_now(:job), 'quarantined, attempts 3, crashes 3', 'unless enough of them stay dead');
ROLLBACK TO quarantined;
UPDATE pulse.finished_job SET max_attempts = 3 WHERE id = :job;
SELECT pulse.heartbeat((:'dead'::bigint[])[3]) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(job_now(:job), 'failed, attempts 3, crashes 2', 'after its last attempt it has failed');
ROLLBACK TO quarantined;
SELECT pulse.set_task('poison', max_crashes => -1) \g /dev/null
SELECT pulse.heartbeat((:'dead'::bigint[])[1]) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(job_now(:job), 'ready, attempts 3, crashes 2',
  'as does a job whose task quarantines none by now');
ROLLBACK TO quarantined;
SELECT pulse.set_task('poison', max_crashes => 0) \g /dev/null
SELECT pulse.heartbeat(d) FROM unnest(:'dead'::bigint[]) AS d \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(job_now(:job), 'ready, attempts 3, crashes 0', 'and a job without a crash');
ROLLBACK TO quarantined;
UPDATE pulse.finished_job SET job_key = 'taken' WHERE id = :job;
SELECT given_job('poison', job_key => 'taken') \g /dev/null
SELECT pulse.heartbeat((:'dead'::bigint[])[3]) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(job_now(:job), 'failed, attempts 3, crashes 2',
  'as it has while another job has its key');
ROLLBACK TO quarantined;
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
