-- sql/recovery/sweep.sql: jobs past their own clocks, and how much one sweep does.
\ir support/setup.psql
SELECT plan(57);

-- What a sweep did, without what was nothing.
CREATE FUNCTION swept(max_jobs int = 1000) RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce(string_agg(t.key || ' ' || t.value, ', '), 'nothing')
    FROM (SELECT to_json(s) AS done FROM pulse.sweep(max_jobs) AS s) AS q,
         json_each_text(q.done) AS t
   WHERE t.value <> '0' AND t.key <> 'skipped_time'
$$;
-- Goes there while this worker keeps beating.
CREATE FUNCTION travel_beating(how_far interval, worker_id bigint) RETURNS void
  LANGUAGE sql AS $$
  SELECT travel(how_far);
  SELECT pulse.heartbeat(worker_id);
$$;
SELECT given_worker() AS ann \gset

-- --- timeout (P5d) -------------------------------------------------------------------------------

SELECT pulse.set_task('slow', timeout => '1 min') \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann, 'slow') \gset
SELECT id AS other FROM given_claimed_job(:ann, 'mail') \gset
SELECT travel_beating('45 s', :ann);
SELECT pulse.progress(:job, :token) \g /dev/null
SELECT is(swept(), 'nothing', 'a job within its timeout runs on');
SELECT travel_beating('61 s', :ann);
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1',
  'a job past its timeout is recovered, whatever progress it made');
SELECT answers(
  format('SELECT state, attempts, crashes, recovered, last_error FROM pulse.job
           WHERE id = %s', :job),
  ROW('ready', 1, 0, 'timeout', 'timed out after 00:01:00'),
  'its attempt is consumed, no crash counted, and the error tells');
SELECT is((SELECT outcome FROM pulse.attempt WHERE job_id = :job), 'timed_out',
  'the attempt timed out');
SELECT is(backoff_of(:job), 3, 'the backoff follows');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'its token is stale');
SELECT is((SELECT revoked FROM pulse.heartbeat(:ann, ARRAY[:job, :other])), ARRAY[:job]::bigint[],
  'and its living worker hears that it is revoked');
SELECT is(state_of(:other), 'running', 'a job of a task without timeout runs on');
SELECT travel('0');
DELETE FROM pulse.job;
SELECT id AS job FROM given_claimed_job(:ann, 'slow', max_attempts => 1) \gset
SELECT travel_beating('61 s', :ann);
SELECT is(swept(), 'jobs_failed 1, jobs_timed_out 1', 'on its last attempt it has failed');
SELECT travel('0');

-- A worker that kills in time is left to do it, as long as it beats.
SELECT id AS killer FROM pulse.register_worker('killer', NULL, '{"kill_grace_ms": 6000}') \gset
SELECT pulse.set_task('single', timeout => '1 min', on_unreachable => 'kill') \g /dev/null
SELECT id AS job FROM given_claimed_job(:killer, 'slow') \gset
SELECT id AS single FROM given_claimed_job(:killer, 'single') \gset
SELECT travel_beating('55 s', :killer);
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT swept() \g /dev/null
SELECT travel('70 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'nothing', 'a job past its timeout is left to a worker that kills in time');
SELECT travel_beating('65 s', :killer);
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT travel('70 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'nothing', 'whose last heartbeat came before it had to have killed');
SELECT travel_beating('67 s', :killer);
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1', 'a heartbeat after that proves the kill');
SELECT is(state_of(:single), 'running', 'unless it must run alone and beats may have been late');
SELECT travel_beating('87 s', :killer);
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1', 'then it is left for a threshold more');
SELECT pulse.deregister_worker(:killer) \g /dev/null
DELETE FROM pulse.job;
SELECT travel('0');

-- A limit that is changed while its job runs.
SELECT id AS killer FROM pulse.register_worker('hears', NULL, '{"kill_grace_ms": 6000}') \gset
SELECT given_claimed_job(:killer, 'slow') \g /dev/null
SELECT travel_beating('30 s', :killer);
SELECT pulse.set_task('slow', timeout => '1 hour') \g /dev/null
SELECT travel_beating('2 min', :killer);
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'nothing', 'a timeout that is raised counts for a job that runs');
SELECT pulse.set_task('slow', timeout => '1 min') \g /dev/null
SELECT travel_beating('2 min 15 s', :killer);
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'nothing', 'a worker has two heartbeats to hear of a lower one');
SELECT travel_beating('2 min 17 s', :killer);
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1', 'then the sweep goes by it');
SELECT pulse.deregister_worker(:killer) \g /dev/null
DELETE FROM pulse.job;
SELECT travel('0');

SET LOCAL pulse.default_timeout = '10s';
SELECT id AS job FROM given_claimed_job(:ann, 'mail') \gset
SELECT id AS slow FROM given_claimed_job(:ann, 'slow') \gset
SELECT travel_beating('11 s', :ann);
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1', 'pulse.default_timeout is for all tasks');
SELECT is(state_of(:slow), 'running', 'but those with a timeout of their own');
SELECT given_claimed_job(:ann, 'mail') \g /dev/null
SET LOCAL pulse.default_timeout = -1;
SELECT travel_beating('22 s', :ann);
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1', 'that of the claim counts');
SELECT given_claimed_job(:ann, 'mail') \g /dev/null
SET LOCAL pulse.default_timeout = '5s';
SELECT travel_beating('33 s', :ann);
SELECT is(swept(), 'nothing', 'whatever the role that sweeps has set');
SELECT given_worker('quick') AS quick \gset
SELECT is((SELECT default_timeout_us FROM pulse.heartbeat WHERE worker_id = :quick),
  5000000::bigint, 'a worker begins with that of its registration');
SET LOCAL pulse.default_timeout = -1;
DELETE FROM pulse.heartbeat WHERE worker_id = :quick;
DELETE FROM pulse.worker WHERE id = :quick;
SELECT travel('0');
DELETE FROM pulse.job;

-- --- stall_timeout (P5d) -------------------------------------------------------------------------

SELECT pulse.set_task('chatty', stall_timeout => '30 s') \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann, 'chatty') \gset
SELECT travel_beating('20 s', :ann);
SELECT is(swept(), 'nothing', 'a job that was claimed lately has not stalled');
SELECT pulse.progress(:job, :token) \g /dev/null
SELECT travel_beating('40 s', :ann);
SELECT is(swept(), 'nothing', 'nor has one that reported lately');
SELECT travel_beating('60 s', :ann);
SELECT is(swept(), 'jobs_requeued 1, jobs_stalled 1', 'one that was silent for longer has');
SELECT answers(
  format('SELECT state, attempts, crashes, recovered, last_error FROM pulse.job
           WHERE id = %s', :job),
  ROW('ready', 1, 0, 'stall', 'no progress for 00:00:30'),
  'its attempt is consumed, no crash counted, and the error tells');
SELECT is((SELECT outcome FROM pulse.attempt WHERE job_id = :job), 'stalled',
  'the attempt stalled');
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'alive',
  'a hung job does not cost the worker');
SELECT pulse.cancel_job(id) FROM given_claimed_job(:ann, 'chatty') \g /dev/null
SELECT travel_beating('95 s', :ann);
SELECT is(swept(), 'jobs_failed 1, jobs_stalled 1', 'one that was to be cancelled has ended');
SELECT is((SELECT count(*)::int FROM pulse.finished_job WHERE state = 'cancelled'), 1,
  'as cancelled');
SELECT travel('0');
DELETE FROM pulse.job;

-- --- both, and queues ---------------------------------------------------------------------------

SELECT pulse.set_task('both', timeout => '1 min', stall_timeout => '1 min') \g /dev/null
SELECT id AS job FROM given_claimed_job(:ann, 'both', 'post') \gset
SELECT given_job('mail', 'post') AS second \gset
SELECT travel('2 min');
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1',
  'a job of a lost worker is lost, not timed out as well');
SELECT is(state_of(:second), 'ready', 'its queue goes on');
SELECT travel('0');
DELETE FROM pulse.job;
SELECT given_worker() AS ann \gset
SELECT id AS job FROM given_claimed_job(:ann, 'both', 'post') \gset
SELECT given_job('mail', 'post') AS second \gset
SELECT travel_beating('2 min', :ann);
SELECT matches(swept(), '^jobs_requeued 1, jobs_(timed_out|stalled) 1$',
  'a job past both of its clocks is counted once');
SELECT is(state_of(:second), 'ready', 'its queue goes on');
SELECT travel('0');
DELETE FROM pulse.job;
DELETE FROM pulse.worker;
DELETE FROM pulse.heartbeat;

-- --- bounds -------------------------------------------------------------------------------------

SELECT given_worker('ann') AS ann \gset
SELECT travel('2 s');
SELECT given_worker('bob') AS bob \gset
SELECT given_job('mail') FROM generate_series(1, 5) \g /dev/null
SELECT claimed_ids(:bob, 2) AS of_bob, claimed_ids(:ann, 3) AS of_ann \gset
SELECT travel('30 s');
SELECT is(swept(2), 'workers_lost 2, jobs_requeued 2', 'a sweep recovers at most max_jobs jobs');
SELECT is((SELECT count(*)::int FROM pulse.held(:ann)), 1, 'those of the oldest beat first');
SELECT is((SELECT status FROM pulse.heartbeat(:bob)), 'lost', 'a worker with jobs left stays lost');
SELECT is(swept(2), 'jobs_requeued 2', 'the next sweep goes on');
SELECT is(swept(2), 'jobs_requeued 1', 'until none is left');
SELECT is(swept(2), 'nothing', 'and returns less than its limit');
SELECT travel('0');
DELETE FROM pulse.job;
SELECT given_worker() AS ann \gset
SELECT given_job('slow') FROM generate_series(1, 3) \g /dev/null
SELECT claimed_ids(:ann, 3) \g /dev/null
SELECT travel_beating('2 min', :ann);
SELECT is(swept(2), 'jobs_requeued 2, jobs_timed_out 2', 'jobs past their clocks count too');
SELECT is(swept(2), 'jobs_requeued 1, jobs_timed_out 1', 'and are left to the next sweep');
SELECT travel('0');
SELECT refuses(format('SELECT pulse.sweep(%s)', n), 'PU004',
  'a sweep of ' || n || ' jobs is refused')
  FROM unnest(ARRAY['0', '-1', 'NULL', '2000000000']) AS n;
DELETE FROM pulse.job;

-- --- time ---------------------------------------------------------------------------------------

SELECT given_worker('ann') AS ann, given_worker('bob') AS bob \gset
SELECT given_job('mail') FROM generate_series(1, 1200) \g /dev/null
SELECT claimed_ids(:ann, 1200) \g /dev/null
SELECT travel('1 min');
CREATE FUNCTION stepped(ends timestamptz) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat_ws(' ', s.workers_lost, s.jobs_requeued) FROM pulse_internal.sweep(1000, ends) AS s
$$;
SELECT is(stepped(clock_timestamp()), '1 500', 'a sweep whose time is up does one batch');
SELECT is(stepped(clock_timestamp()), '1 500', 'of each kind');
SELECT is(stepped('infinity'), '0 200', 'and leaves the rest to the next one');
SELECT travel('0');
SELECT ok(pulse_internal.sweep_end() <= clock_timestamp() + interval '250 ms',
          'its time is 250 ms');
SELECT pulse.register_worker('quick', heartbeat_interval => '100 ms') \g /dev/null
SELECT ok(pulse_internal.sweep_end() <= clock_timestamp() + interval '25 ms',
  'or a quarter of the shortest heartbeat_interval');
DELETE FROM pulse.job;
DELETE FROM pulse.attempt;
DELETE FROM pulse.worker;
DELETE FROM pulse.heartbeat;

-- As after a vacuum of an empty queue: the planner thinks that there is nothing.
CREATE FUNCTION rows_read() RETURNS bigint
  LANGUAGE sql AS $$
  SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_all_tables
   WHERE relid = 'pulse.job'::regclass
$$;
UPDATE pg_class SET relpages = 250, reltuples = 0 WHERE oid = 'pulse.job'::regclass;
SELECT given_worker() AS ann \gset
SELECT given_job('bulk') FROM generate_series(1, 2500) \g /dev/null
SELECT cardinality(claimed_ids(:ann, 2500)) \g /dev/null
SELECT array_agg(h.id) AS jobs, array_agg(h.token) AS tokens, rows_read() AS before
  FROM (SELECT id, token FROM pulse.held(:ann) LIMIT 10) AS h \gset
SELECT pulse.fail_many(:'jobs', :'tokens', array_fill('boom'::text, '{10}')) \g /dev/null
SELECT cmp_ok(rows_read() - :before, '<', 500::bigint,
  'failing ten of 2,500 running jobs reads a few rows, whatever the statistics say');
SELECT travel('30 s');
SELECT rows_read() AS before \gset
SELECT is(jobs_requeued, 10, 'given a sweep of ten jobs') FROM pulse.sweep(10);
SELECT cmp_ok(rows_read() - :before, '<', 500::bigint, 'it reads a few rows too');
SELECT is(jobs_requeued, 1000, 'a sweep takes a thousand unless it is told otherwise')
  FROM pulse.sweep();
SELECT is(jobs_requeued, 1480, 'or as many as it is told') FROM pulse.sweep(10000);
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
