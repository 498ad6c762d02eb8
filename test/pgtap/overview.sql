-- sql/monitor/overview.sql: the state of the whole queue in one row.
\ir support/setup.psql
SELECT plan(38);

SELECT expect_function('overview', '',
  'TABLE(at timestamp with time zone, ready bigint, future bigint, due_next_minute bigint, '
  'parked_future bigint, parked_paused bigint, parked_full bigint, parked_waiting bigint, '
  'running bigint, estimated text[], oldest_due_at timestamp with time zone, '
  'oldest_due_age interval, completed bigint, failed bigint, quarantined bigint, '
  'cancelled bigint, expired bigint, workers_alive bigint, workers_draining bigint, '
  'workers_silent bigint, workers_lost bigint, next_schedule text, '
  'next_schedule_at timestamp with time zone, installation text, claims boolean, '
  'swept_at timestamp with time zone, sweeps boolean, counted_at timestamp with time zone, '
  'shard integer, dead_letters_refused bigint)',
  'volatile', 'definer');

-- Where commits count nothing, the completed jobs are a part.
CREATE FUNCTION live_parts(estimated text[]) RETURNS text[]
  LANGUAGE sql AS $$ SELECT array_remove(estimated, 'completed') $$;
CREATE FUNCTION live_jobs() RETURNS text
  LANGUAGE sql AS $$
  SELECT ROW(o.ready, o.future, o.due_next_minute, o.parked_future, o.parked_paused, o.parked_full,
             o.parked_waiting, o.running, live_parts(o.estimated))::text
    FROM pulse.overview AS o
$$;
CREATE FUNCTION ends() RETURNS text
  LANGUAGE sql AS $$
  SELECT ROW(o.completed, o.failed, o.quarantined, o.cancelled, o.expired)::text
    FROM pulse.overview AS o
$$;
CREATE FUNCTION workers() RETURNS text
  LANGUAGE sql AS $$
  SELECT ROW(o.workers_alive, o.workers_draining, o.workers_silent, o.workers_lost)::text
    FROM pulse.overview AS o
$$;
-- What other tests left of pages is no part of this one.
TRUNCATE pulse.job;
DELETE FROM pulse.schedule;
SELECT is(live_jobs(), '(0,0,0,0,0,0,0,0,{})', 'where no job is, every count is zero');
SELECT is((SELECT oldest_due_age FROM pulse.overview), NULL::interval, 'and nothing has an age');

-- --- jobs ---------------------------------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT given_claimed_job(:ann) FROM generate_series(1, 3) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() - interval '10 min', priority => 5) \g /dev/null
SELECT pulse.add_job('ink', run_at => now() - interval '20 min', priority => 7) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() + interval '30 s', priority => 1) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() + interval '1 h') \g /dev/null
SELECT is(live_jobs(), '(2,2,1,0,0,0,0,3,{})',
  'open jobs: due, later, and the next minute of these');
SELECT given_job('mail', 'post') FROM generate_series(1, 4) \g /dev/null
SELECT pulse.add_job('mail', queue_name => 'post', run_at => now() + interval '30 s') \g /dev/null
SELECT pulse.add_job('mail', queue_name => 'post', run_at => now() + interval '1 h') \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT is(live_jobs(), '(3,2,2,2,0,3,0,3,{})',
  'jobs of a queue: one is open, the others are full or later');
SELECT pulse.pause_queue('post') \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT is(live_jobs(), '(2,2,2,2,4,0,0,3,{})', 'all that are due are paused with their queue');
SELECT given_job('mail', 'other/within') FROM generate_series(1, 2) \g /dev/null
SELECT is(live_jobs(), '(2,2,2,2,4,2,0,3,{})', 'those of another queue are not');
SELECT pulse.set_queue('other', paused => true) \g /dev/null
SELECT is(live_jobs(), '(2,2,2,2,6,0,0,3,{})', 'unless its level is paused');
SELECT pulse.unset_queue('other'), pulse.set_queue('other/*', paused => true) \g /dev/null
SELECT is(live_jobs(), '(2,2,2,2,6,0,0,3,{})', 'or all members of that');
SELECT pulse.unset_queue('other/*') \g /dev/null
SELECT (pulse.add_job_after(ARRAY[(SELECT min(id) FROM pulse.job)], 'mail')).id AS child \gset
SELECT is(live_jobs(), '(2,2,2,2,4,2,1,3,{})', 'a job that waits for another is told apart');
SELECT is((SELECT date_trunc('minute', oldest_due_age) FROM pulse.overview), interval '20 min',
  'the oldest due job may be of any task and priority');
SELECT pulse.add_job('mail', queue_name => 'slow', run_at => now() - interval '1 day') \g /dev/null
SELECT is((SELECT date_trunc('minute', oldest_due_age) FROM pulse.overview), interval '1 day',
  'and a parked one');
SELECT travel('2 h');
SELECT is((SELECT ROW(ready, future, due_next_minute, parked_future)::text FROM pulse.overview),
  '(4,0,0,0)', 'the time is that of pg_pulse');
SELECT travel('0');

-- --- ends ---------------------------------------------------------------------------------------

SET LOCAL pulse.keep_completed = '1 h';
SELECT pulse.complete(c.id, c.token) FROM given_claimed_job(:ann, 'kept') AS c \g /dev/null
SELECT CASE WHEN pulse_internal.has_counters() THEN 0 ELSE 1 END AS completed \gset
SELECT pulse.cancel_job(given_job('mail')) FROM generate_series(1, 2) \g /dev/null
SELECT pulse.permanently_fail_jobs(ARRAY[given_job('mail')]) \g /dev/null
-- What this transaction completed is counted when it commits, or else read from the kept jobs.
SELECT is(ends(), format('(%s,1,0,2,0)', :completed), 'ends of the last minute by state');
UPDATE pulse.finished_job SET state = 'quarantined' WHERE state = 'failed';
SELECT is(ends(), format('(%s,0,1,2,0)', :completed), 'a quarantined job is no failed one');
UPDATE pulse.finished_job SET finished_at = finished_at - interval '61 s';
SELECT is(ends(), '(0,0,0,0,0)', 'earlier ones do not count');
SELECT is((SELECT 'completed' = ANY (estimated) FROM pulse.overview),
  NOT pulse_internal.has_counters(), 'where jobs that are not kept are not counted, it is said so');
SELECT is((SELECT 'failed' = ANY (estimated) FROM pulse.overview), false,
  'ends without success are exact');
INSERT INTO pulse.finished_job (id, identifier, payload, state, priority, run_at, attempts,
                                max_attempts, crashes, revision, created_at, finished_at)
SELECT -n, 'mail', '{}', 'cancelled', 0, now(), 1, 1, 0, 0, now(), now()
  FROM generate_series(1, 10000) AS n;
SELECT is((SELECT ROW(failed, cancelled,
                      estimated @> '{failed,quarantined,cancelled,expired}')::text
             FROM pulse.overview), '(0,10000,t)', 'of a great many they are a part');
DELETE FROM pulse.finished_job;

-- --- workers, schedules, installation -----------------------------------------------------------

SELECT given_worker('bob') AS bob, given_worker('cid') AS cid \gset
SELECT pulse.drain_worker(:bob) \g /dev/null
SELECT is(workers(), '(2,1,0,0)', 'workers that live and drain');
UPDATE pulse.heartbeat SET beat_live_us = beat_live_us - 3600000000 WHERE worker_id = :cid;
SELECT is(workers(), '(1,1,1,0)', 'one that is silent, until a sweep comes');
SELECT pulse.declare_lost(:cid, 'tested') \g /dev/null
SELECT is(workers(), '(1,1,0,1)', 'one that was lost');
SELECT is((SELECT next_schedule FROM pulse.overview), NULL, 'no schedule is next');
SELECT pulse.schedule('late', 'mail', every => '2 h'),
       pulse.schedule('soon', 'mail', every => '1 h'),
       pulse.schedule('never', 'mail', every => '1 min', paused => true) \g /dev/null
SELECT is((SELECT ROW(next_schedule, next_schedule_at > now() + interval '50 min')::text
             FROM pulse.overview), '(soon,t)', 'the next schedule, paused ones aside');
SET LOCAL pulse.claims = off;
SELECT is((SELECT ROW(installation, claims)::text FROM pulse.overview), '(ours,f)',
  'whose jobs these are, and whether they may be claimed');
UPDATE pulse.clock SET last_tick = clock_timestamp() - interval '11 s';
SELECT is((SELECT sweeps FROM pulse.overview), false, 'nothing sweeps after two intervals');
UPDATE pulse.clock SET last_tick = clock_timestamp() - interval '5 s' WHERE slot = 3;
SELECT is((SELECT sweeps FROM pulse.overview), true, 'a sweep of any session counts');

-- --- many ---------------------------------------------------------------------------------------

DELETE FROM pulse.job;
SET LOCAL pulse.claims = on;
SELECT pulse.add_job('ink', run_at => now() - interval '1 h' * n)
  FROM generate_series(2, 12) AS n \g /dev/null
SELECT pulse.add_job('mail', run_at => now() - interval '1 h') \g /dev/null
SELECT count(*) AS claimed FROM pulse.claim(:ann, 10) \gset
SELECT is((SELECT ROW(:claimed, running, date_trunc('hour', oldest_due_age))::text
             FROM pulse.overview), '(10,10,02:00:00)',
  'the oldest job may wait behind those of its task that run');
DELETE FROM pulse.job;
INSERT INTO pulse.job (identifier, priority, run_at, payload)
SELECT 'bulk', n % 3, now() - interval '1 s' * n, to_json(repeat('x', 300))
  FROM generate_series(1, 40000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'queued', 'queue_' || n % 200, 'parked', now() - interval '1 s' * n
  FROM generate_series(1, 140) AS n;
SELECT is((SELECT ROW(ready >= 1000, ready <= 3000, parked_full, live_parts(estimated))::text
             FROM pulse.overview),
  '(t,t,140,{ready})', 'of a great many what was seen and it is said so, fewer are exact');
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
ANALYZE pulse.job;
SELECT cmp_ok(pages_of('SELECT * FROM pulse.overview'), '<', 3000, 'not all of them are read');
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'a ' || n / 2, n % 2, now() + CASE WHEN n < 3 THEN -90 WHEN n < 8 THEN 5 ELSE 600 END
                                     * interval '1 s' * n
  FROM generate_series(1, 200) AS n;
ANALYZE pulse.job;
SELECT is((SELECT ROW(ready >= 2, future >= 140, due_next_minute >= 1, live_parts(estimated))::text
             FROM pulse.overview),
  '(t,t,t,"{ready,future,due_next_minute}")',
  'of many tasks and priorities the first jobs are a lower limit');
SELECT is((SELECT date_trunc('minute', oldest_due_age) FROM pulse.overview), interval '11:06',
  'and the oldest that was seen');
DELETE FROM pulse.job WHERE identifier = 'bulk' AND id % 50 <> 0;
SELECT is((SELECT ROW(ready, future, due_next_minute, parked_full, live_parts(estimated))::text
             FROM pulse.overview), '(802,198,5,140,{})',
  'up to a thousand are counted one by one, of whatever tasks and priorities');

SELECT * FROM finish();
ROLLBACK;
