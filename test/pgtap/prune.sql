-- sql/operator/prune.sql: what is past its age is deleted, oldest first, in bounded steps.
\ir support/setup.psql
SELECT plan(37);

-- A finished job of this task that ended so long ago, and the attempt that ended it.
CREATE FUNCTION given_finished(
    identifier text, age interval, state pulse.finished_state = 'completed')
  RETURNS bigint
  LANGUAGE sql AS $$
  WITH ended AS (
    INSERT INTO pulse.finished_job
      (id, identifier, payload, priority, run_at, state, attempts, max_attempts, crashes, revision,
       created_at, finished_at)
    VALUES (nextval('pulse.job_id_seq'), identifier, '{}', 0, now(), state, 1, 25, 0, 0, now(),
            now() - age)
    RETURNING id, finished_at
  ), audited AS (
    INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
    SELECT id, 1, 1, finished_at, 'failed' FROM ended
  )
  SELECT id FROM ended
$$;
CREATE FUNCTION left_of(task text) RETURNS bigint
  LANGUAGE sql AS $$
  SELECT count(*) FROM pulse.finished_job AS f WHERE f.identifier = task
$$;
CREATE FUNCTION steps_of(size int, calls int) RETURNS int[]
  LANGUAGE plpgsql AS $$
DECLARE
  steps int[];
BEGIN
  FOR i IN 1 .. calls LOOP
    steps := steps || pulse_internal.prune(size);
  END LOOP;
  RETURN steps;
END $$;

SELECT is(pulse_internal.prune(100), 0, 'where nothing is, nothing is pruned');

-- --- jobs ---------------------------------------------------------------------------------------

SET LOCAL pulse.keep_attempts = -1;
SET LOCAL pulse.keep_completed = '1d';
SET LOCAL pulse.keep_failed = '2d';
SELECT given_finished('mail', '23 h') AS young \gset
SELECT given_finished('mail', '25 h') AS old \gset
SELECT given_finished('mail', '47 h', 'failed') AS young_failed \gset
SELECT given_finished('mail', '49 h', s)
  FROM unnest('{failed,quarantined,cancelled}'::pulse.finished_state[]) AS s \g /dev/null
SAVEPOINT aged;
SELECT is(pulse_internal.prune(100), 4, 'jobs past their age are deleted');
SELECT set_eq('SELECT id FROM pulse.finished_job', ARRAY[:young, :young_failed],
  'the younger ones are kept: completed ones by one age, others by another');
SELECT is(pulse_internal.prune(100), 0, 'once');
ROLLBACK TO aged;
SET LOCAL pulse.keep_failed = -1;
SELECT is(pulse_internal.prune(100), 1, 'an age of -1 keeps failed jobs');
SELECT is(left_of('mail'), 5::bigint, 'for ever');
ROLLBACK TO aged;
SET LOCAL pulse.keep_completed = -1;
SELECT is(pulse_internal.prune(100), 3, 'and completed ones');
ROLLBACK TO aged;
SET LOCAL pulse.keep_completed = 0;
SELECT is(pulse_internal.prune(100), 5, 'where none is to be kept, what was kept before goes');
ROLLBACK TO aged;
SELECT travel('2 h');
SELECT is(pulse_internal.prune(100), 6, 'the time is that of pg_pulse');
ROLLBACK TO aged;
SELECT is(steps_of(3, 3), '{3,1,0}', 'a step deletes as many as it is told, the next goes on');
ROLLBACK TO aged;
SELECT given_finished('mail', '30 h') \g /dev/null
SELECT pulse_internal.prune(1) \g /dev/null
SELECT is((SELECT min(finished_at) FROM pulse.finished_job WHERE state = 'completed'),
  now() - interval '25 h', 'the oldest first');
ROLLBACK TO aged;
DELETE FROM pulse.finished_job;
DELETE FROM pulse.attempt;

-- --- an age of its own for each task ------------------------------------------------------------

SELECT pulse.set_task('kept', keep_completed => '1 year') \g /dev/null
SELECT pulse.set_task('brief', keep_completed => '1 h') \g /dev/null
SELECT pulse.set_task('unkept', keep_completed => '0') \g /dev/null
SELECT pulse.set_task('plain', max_attempts => 3) \g /dev/null
SELECT given_finished(t, '3 h') FROM unnest('{kept,brief,unkept,plain,other}'::text[]) AS t
  \g /dev/null
SELECT given_finished(t, '30 h') FROM unnest('{kept,brief,unkept,plain,other}'::text[]) AS t
  \g /dev/null
SELECT given_finished('kept', '400 d') \g /dev/null
SELECT given_finished('brief', '10 min') \g /dev/null
SELECT given_finished('brief', '10 d', 'failed') \g /dev/null
SELECT is(pulse_internal.prune(100), 8, 'each task''s completed jobs have their own age');
SELECT is(left_of('kept'), 2::bigint, 'a longer one keeps them longer');
SELECT is(left_of('brief'), 1::bigint, 'a shorter one less long');
SELECT is(left_of('unkept'), 0::bigint, 'an age of 0 none');
SELECT is(left_of('plain') + left_of('other'), 2::bigint,
  'a task without one has the setting''s, whether it has other settings or not');
SELECT is_empty($$SELECT FROM pulse.finished_job WHERE state = 'failed'$$,
  'which says nothing of failed jobs');
SET LOCAL pulse.keep_completed = -1;
SELECT travel('2 years');
SELECT is(pulse_internal.prune(100), 3, 'where others are kept for ever, its own age still holds');
SELECT travel('0');
SET LOCAL pulse.keep_completed = '1d';
DELETE FROM pulse.finished_job;

-- --- the cost ------------------------------------------------------------------------------------

-- Pages that a statement reads, the second time.
CREATE FUNCTION pages_of(statement text) RETURNS int
  LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  FOR i IN 1 .. 2 LOOP
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || statement INTO plan;
  END LOOP;
  RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int
       + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
END $$;
SELECT given_finished('kept', '30 d') FROM generate_series(1, 5000) \g /dev/null
SELECT given_finished('other', '1 h') FROM generate_series(1, 5000) \g /dev/null
SELECT given_finished('other', '1 h', 'failed') FROM generate_series(1, 5000) \g /dev/null
SELECT cmp_ok(pages_of('SELECT pulse_internal.prune(100)'), '<', 60,
  'thousands of jobs that are kept, longer than others or not, cost nothing');
SELECT given_finished('other', '2 d') FROM generate_series(1, 10) \g /dev/null
SELECT is(pulse_internal.prune(100), 10, 'and stand before none that is not');
SELECT is(left_of('kept'), 5000::bigint, 'they stay');
DELETE FROM pulse.finished_job;
DELETE FROM pulse.attempt;

-- --- attempts -----------------------------------------------------------------------------------

SET LOCAL pulse.keep_failed = -1;
SET LOCAL pulse.keep_attempts = '30 d';
SELECT given_finished('mail', '31 d', 'failed') \g /dev/null
SELECT given_finished('mail', '29 d', 'failed') AS job \gset
SELECT is(pulse_internal.prune(100), 1, 'attempts have an age of their own');
SELECT set_eq('SELECT job_id FROM pulse.attempt', ARRAY[:job], 'the younger are kept');
SELECT is(left_of('mail'), 2::bigint, 'and the jobs as long as these are');
SET LOCAL pulse.keep_attempts = -1;
SELECT travel('10 years');
SELECT is(pulse_internal.prune(100), 0, 'attempts are kept for ever where that is asked for');
SELECT travel('0');
DELETE FROM pulse.finished_job;
DELETE FROM pulse.attempt;

-- --- workers ------------------------------------------------------------------------------------

SET LOCAL pulse.keep_attempts = '30 d';
SELECT given_worker('living') AS living \gset
SELECT given_worker('stopped') AS stopped \gset
SELECT given_worker('lost') AS lost \gset
SELECT pulse.deregister_worker(:stopped) \g /dev/null
SELECT given_claimed_job(:lost) \g /dev/null
UPDATE pulse.heartbeat SET verdict = 'lost' WHERE worker_id = :lost;
UPDATE pulse.worker SET state = 'lost', ended_at = now() WHERE id = :lost;
SELECT travel('29 d');
SELECT is(pulse_internal.prune(100), 0, 'workers that ended are remembered as long as attempts');
SELECT travel('31 d');
SELECT is(pulse_internal.prune(100), 1, 'and then forgotten');
SELECT set_eq('SELECT name FROM pulse.worker', '{living,lost}'::text[],
  'but not one that holds a job still');
DELETE FROM pulse.job;
SELECT is(pulse_internal.prune(100), 0, 'nor one whose verdict it has yet to hear');
DELETE FROM pulse.heartbeat WHERE worker_id = :lost;
SELECT is(pulse_internal.prune(100), 1, 'when nothing is left of it, it goes');
SELECT is((SELECT status FROM pulse.heartbeat(:lost)), 'lost', 'it is lost all the same');
SELECT is((SELECT status FROM pulse.heartbeat(:living)), 'alive', 'and who lives is not touched');
-- --- tokens -------------------------------------------------------------------------------------

SELECT travel('0');
SELECT pulse.set_queue('mail/*', rate => 2, per => '1 min') \g /dev/null
SELECT given_claimed_job(given_worker('bob'), 'run', 'mail/1') \g /dev/null
UPDATE pulse.queue_rate SET opened = 0, full_live_us = pulse_internal.live_now_us() + 30000000;
SELECT is(pulse_internal.prune(100), 0, 'a level that lacks a token is remembered');
SELECT travel('31 s');
UPDATE pulse.queue_rate SET opened = 1;
SELECT is(pulse_internal.prune(100), 0, 'and one whose open jobs are not charged');
UPDATE pulse.queue_rate SET opened = 0;
SELECT is(pulse_internal.prune(100), 1, 'one that has them all is not');
SELECT is((SELECT sum(pulse_internal.prune(100)) FROM generate_series(1, 2)), 0::bigint,
  'and nothing else goes with it');

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
