-- What polls are measured beside: as many live and ended jobs as :jobs says, of 300 tasks and
-- 20,000 queues.
-- Of a hundred jobs 30 are ready, 10 due later, 30 in queues, 20 failed and 10 completed.
CREATE EXTENSION pg_stat_statements;
INSERT INTO pulse.job (identifier, priority, run_at, created_at)
SELECT 'task ' || i % 300, i % 3, now() + (i % 4 - 2.5) * interval '1 h' + i * interval '1 ms',
       now() - interval '3 h'
  FROM generate_series(1, :jobs * 4 / 10) AS i;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'task ' || i % 300, CASE WHEN i % 2 = 0 THEN 'queue ' ELSE 'tenants/' END || i % 20000,
       'parked', now() - i * interval '1 ms'
  FROM generate_series(1, :jobs * 3 / 10) AS i;
INSERT INTO pulse.finished_job
  (id, identifier, payload, priority, run_at, state, attempts, max_attempts, crashes, last_error,
   revision, created_at, finished_at)
SELECT nextval('pulse.job_id_seq'), 'task ' || i % 300, '{}', 0, now(),
       (ARRAY['failed', 'failed', 'completed', 'cancelled', 'quarantined', 'completed'])[i % 6 + 1]
         ::pulse.finished_state, 1, 25, 0,
       CASE WHEN i % 6 IN (0, 1, 4) THEN 'disk ' || i % 1000 || ' is full' END, 0, now(),
       now() - i * interval '10 ms'
  FROM generate_series(1, :jobs * 3 / 10) AS i;
SELECT pulse.set_queue('tenants', total => 50), pulse.pause_queue('queue 18');
SELECT pulse.schedule('schedule ' || i, 'task ' || i, cron => i % 60 || ' * * * *')
  FROM generate_series(1, 100) AS i;
CREATE TEMP TABLE living AS
  SELECT w.id FROM generate_series(1, 20) AS i,
         LATERAL pulse.register_worker('living ' || i, ARRAY['task ' || i]) AS w;
SELECT count(*) FROM living AS l, LATERAL pulse.claim(l.id, 5);
VACUUM (ANALYZE);
\ir counted.sql
