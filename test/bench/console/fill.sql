-- What the console is asked about: so many jobs of 200 tasks and 4,000 queues. Of 100 jobs 35 are
-- ready, 5 are due later, 25 wait behind a queue, 30 failed and 5 completed. Rows are written
-- directly: functions of producers and workers would take an hour for as many.
CREATE EXTENSION pg_pulse;
CREATE EXTENSION pg_stat_statements;
CREATE ROLE bench_operator LOGIN;
SELECT pulse.grant_operator('bench_operator'), pulse.grant_producer('bench_operator'),
       pulse.grant_scheduler('bench_operator');

INSERT INTO pulse.job (identifier, priority, run_at, payload, job_key, created_at)
SELECT 'task ' || i % 200, i % 200 % 3, now() - interval '5 ms' * (:jobs - i), '{"n": 1}',
       CASE WHEN i % 100 = 0 THEN 'key ' || i END, now() - interval '5 ms' * (:jobs - i)
  FROM generate_series(1, :jobs * 35 / 100) AS i;
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'task ' || i % 200, i % 200 % 3, now() + interval '1 s' * i
  FROM generate_series(1, :jobs * 5 / 100) AS i;
-- Half of the queues are within a level; one has a tenth of the jobs.
INSERT INTO pulse.job (identifier, queue_name, state, priority, run_at)
SELECT 'queued ' || i % 50,
       CASE WHEN i % 10 = 0 THEN 'long' WHEN i % 2 = 0 THEN 'tenants/' || i % 2500
         ELSE 'queue ' || i % 2500 END,
       'parked', i % 3, now() + CASE WHEN i % 3 = 0 THEN 1 ELSE -1 END * interval '100 ms' * i
  FROM generate_series(1, :jobs * 25 / 100) AS i;

INSERT INTO pulse.finished_job
  (id, identifier, payload, priority, run_at, state, attempts, max_attempts, crashes, last_error,
   revision, created_at, finished_at)
SELECT nextval('pulse.job_id_seq'), 'task ' || i % 200, '{"n": 1}', 0, n.at,
       CASE WHEN i % 7 = 0 THEN 'completed' WHEN i % 50 = 1 THEN 'quarantined'
         WHEN i % 20 = 2 THEN 'cancelled' ELSE 'failed' END::pulse.finished_state,
       1, 25, 0, CASE WHEN i % 7 > 0 THEN 'the disk ' || i % 1000 || ' is full' END, 0, n.at, n.at
  FROM generate_series(1, :jobs * 35 / 100) AS i,
       LATERAL (SELECT now() - interval '100 ms' * (:jobs - i) AS at) AS n;
INSERT INTO pulse.attempt (job_id, token, attempt, claimed_at, ended_at, outcome, error)
SELECT f.id, f.id, 1, f.finished_at - interval '1 s', f.finished_at,
       CASE WHEN f.id % 10 = 0 THEN 'lost' ELSE 'failed' END, f.last_error
  FROM pulse.finished_job AS f WHERE f.state <> 'completed';

SELECT pulse.set_task('task ' || i, timeout => '1 h') FROM generate_series(0, 149) AS i;
SELECT pulse.set_queue('queue ' || i, i % 5 + 1) FROM generate_series(0, 499) AS i;
SELECT pulse.set_queue('tenants', total => 50), pulse.pause_queue('queue 17');
SELECT pulse.schedule('schedule ' || i, 'task ' || i % 200, cron => i % 60 || ' * * * *')
  FROM generate_series(1, 500) AS i;
-- Flows of ten jobs, and one of ten thousand.
SELECT count(f) FROM generate_series(1, 200) AS i, LATERAL pulse.add_flow((
  SELECT json_agg(json_build_object('key', 'k' || n, 'identifier', 'step', 'run_at',
           now() + interval '1 h', 'after', CASE WHEN n > 1 THEN '["k1"]' ELSE '[]' END::json))
    FROM generate_series(1, CASE i WHEN 200 THEN 10000 ELSE 10 END) AS n), 'flow ' || i) AS f;
INSERT INTO pulse.operation (action, filter, arguments, role, state, last_id, created_at,
                             updated_at, ended_at, changed)
SELECT 'retry', '{}', '{}', 'postgres', 'done', 1, now(), now(), now(), i
  FROM generate_series(1, 500) AS i;
-- Forty workers that live, which have ten jobs each, and those that ended.
INSERT INTO pulse.worker (id, name, heartbeat_interval, sweep_threshold, started_at, state,
                          ended_at)
SELECT i, 'ended ' || i, '5 s', '20 s', now() - interval '2 days', 'stopped',
       now() - interval '1 min' * i
  FROM generate_series(1, 5000) AS i;
VACUUM (ANALYZE);
CREATE TEMP TABLE given AS
  SELECT w.id FROM generate_series(1, 40) AS i,
         LATERAL pulse.register_worker('living ' || i, ARRAY['task ' || i, 'step']) AS w;
SELECT count(*) FROM given AS g, LATERAL pulse.claim(g.id, 10);
SELECT pg_stat_statements_reset();
