-- What polls read beside 70,000 jobs of 300 tasks and 20,000 queues: the second time, as programs
-- that poll do.
INSERT INTO pulse.job (identifier, run_at)
SELECT 'task ' || n % 300, now() - interval '1 h' + interval '1 ms' * n
  FROM generate_series(1, 30000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'queued ' || n % 50, 'queue ' || n % 20000, 'parked', now() - interval '1 s' * n
  FROM generate_series(1, 40000) AS n;
VACUUM (ANALYZE) pulse.job;
\ir ../support/counted.sql

CREATE PROCEDURE cost.note_poll(name text, statement text)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cost.explained(statement);  -- reads the catalogue
  PERFORM cost.note('poll_' || name || '_buffers', (cost.explained(statement)).buffers);
END $$;
CALL cost.note_poll('depths', 'SELECT * FROM pulse_internal.depths()');
CALL cost.note_poll('overview', 'TABLE pulse.overview');
CALL cost.note_poll('stats', 'TABLE pulse.stats');
CALL cost.note_poll('tasks', 'SELECT * FROM pulse.stats(of_kind => ''task'')');
CALL cost.note_poll('queues', 'SELECT * FROM pulse.stats(of_kind => ''queue'')');
CALL cost.note_poll('queue_status', 'TABLE pulse.queue_status');
CALL cost.note_poll('one_queue', 'SELECT * FROM pulse.queue_status(''queue 7'')');

-- A level is looked at as the list is: as far as 1,000 of its queues.
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'within', 'level/' || n, 'parked', now() FROM generate_series(1, 3000) AS n;
CALL cost.note_poll('level', 'SELECT * FROM pulse.queue_status(''level'')');

-- A pause of a queue adds the settings of that queue alone.
SELECT pulse.pause_queue('queue 7');
CALL cost.note_poll('paused', 'TABLE pulse.overview');

-- Of tasks with many due and many later jobs an index tells both.
INSERT INTO pulse.job (identifier, run_at)
SELECT 'task ' || n % 300, now() + interval '1 h' + interval '1 ms' * n
  FROM generate_series(1, 15000) AS n;
CALL cost.note_poll('overview_later', 'TABLE pulse.overview');
CALL cost.note_poll('stats_later', 'TABLE pulse.stats');

-- Names without bound: 300,000 queues, more than commits count by name, and 4,000 tasks, most of
-- which have but later jobs. No poll reads more for them.
DELETE FROM pulse.job WHERE identifier = 'within';
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'task ' || n % 300, 'one of many ' || n, 'parked', now() - interval '1 ms' * n
  FROM generate_series(1, 280000) AS n;
INSERT INTO pulse.job (identifier, run_at, priority)
SELECT 'later ' || n % 3700, now() + interval '1 h' + interval '1 ms' * n, n / 3700
  FROM generate_series(1, 37000) AS n;
VACUUM (ANALYZE) pulse.job;
\ir ../support/counted.sql
CALL cost.note_poll('overview_of_many', 'TABLE pulse.overview');
CALL cost.note_poll('stats_of_many', 'TABLE pulse.stats');
CALL cost.note_poll('queue_status_of_many', 'TABLE pulse.queue_status');
CALL cost.note_poll('doctor_of_many', 'SELECT * FROM pulse.doctor()');
