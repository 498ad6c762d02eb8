-- What the pages of the console read beside 60,000 jobs of 50 tasks and 1,000 queues: the second
-- time, as a server of pages does. A command of `pulse` is a new session, which has yet to read the
-- catalogue.
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'task ' || n % 50, n % 50 % 3, now() - interval '1 h' + interval '1 ms' * n
  FROM generate_series(1, 30000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'queued', 'queue ' || n % 1000, 'parked', now() - interval '1 s' * n
  FROM generate_series(1, 20000) AS n;
INSERT INTO pulse.finished_job (id, identifier, payload, priority, run_at, state, attempts,
  max_attempts, crashes, revision, created_at, finished_at)
SELECT 1000000 + n, 'task ' || n % 50, '{}', 0, now(),
       CASE WHEN n % 50 = 0 THEN 'quarantined' ELSE 'failed' END::pulse.finished_state,
       1, 25, 0, 0, now(), now() - interval '1 s' * n
  FROM generate_series(1, 10000) AS n;
VACUUM (ANALYZE) pulse.job, pulse.finished_job;
SELECT cost.worker('{other}') AS worker \gset
\ir ../support/counted.sql

CREATE PROCEDURE cost.note_page(name text, statement text)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cost.explained(statement);  -- reads the catalogue
  PERFORM cost.note('page_' || name || '_buffers', (cost.explained(statement)).buffers);
END $$;
SELECT min(id) AS one FROM pulse.job \gset
CALL cost.note_page('tasks', 'SELECT * FROM pulse.stats(1000, ''task'')');
CALL cost.note_page('queues', 'SELECT * FROM pulse.stats(100, ''queue'')');
CALL cost.note_page('jobs', 'SELECT * FROM pulse.list_jobs()');
CALL cost.note_page('tabs', 'SELECT * FROM pulse.count_jobs()');
CALL cost.note_page('tabs_of_queue', 'SELECT * FROM pulse.count_jobs(queue => ''queue 7'')');
CALL cost.note_page('jobs_of_none', 'SELECT * FROM pulse.list_jobs(task => ''none'')');
CALL cost.note_page('question', 'SELECT * FROM pulse.preview_operation(''cancel'', ''{}'')');
CALL cost.note_page('question_of_one', format(
  'SELECT * FROM pulse.preview_operation(''cancel'', ''{"ids": [%s]}'')', :one));
CALL cost.note_page('overview', 'TABLE pulse.overview');
CALL cost.note_page('doctor', 'SELECT * FROM pulse.doctor()');
INSERT INTO pulse.worker (id, name, heartbeat_interval, sweep_threshold, started_at, state,
                          ended_at)
SELECT 1000000 + n, 'ended', '5 s', '20 s', now(), 'stopped', now() - interval '1 min' * n
  FROM generate_series(1, 1000) AS n;
VACUUM (ANALYZE) pulse.worker;
CALL cost.note_page('workers', 'SELECT * FROM pulse.worker_status WHERE id = ANY (ARRAY('
  'SELECT id FROM pulse.worker_status ORDER BY ended_at DESC NULLS FIRST, id LIMIT 300))');
-- Small flows, and one of ten thousand jobs.
SELECT count(f) FROM generate_series(1, 50) AS i, LATERAL pulse.add_flow((
  SELECT json_agg(json_build_object('identifier', 'step', 'run_at', now() + interval '1 h'))
    FROM generate_series(1, CASE i WHEN 50 THEN 10000 ELSE 10 END) AS n)) AS f \g /dev/null
CALL cost.note_page('flows', 'SELECT * FROM pulse.list_flows()');
CALL cost.note_page('flow', 'SELECT * FROM pulse.list_flows(NULL, 1)');
CALL cost.note_page('flow_graph',
  'SELECT * FROM pulse.flow_jobs((SELECT max(id) FROM pulse.flow), 150)');
\c
SELECT cost.note('command_doctor_buffers',
                 (cost.explained('SELECT * FROM pulse.doctor()')).buffers);
