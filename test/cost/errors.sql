-- What searches by the last error read, and the page of failed jobs: beside 120,000 failed jobs
-- with 300 errors of a usual size, and beside 60 with an error of a megabyte, stored apart.
INSERT INTO pulse.finished_job (id, identifier, payload, priority, run_at, state, attempts,
  max_attempts, crashes, revision, created_at, finished_at, last_error)
SELECT n, 'task', '{}', 0, now(), 'failed', 1, 25, 0, 0, now(), now() - interval '1 s' * n,
       'Traceback (most recent call last):' || E'\nValueError: ' || n % 300
  FROM generate_series(1, 120000) AS n;
VACUUM (ANALYZE) pulse.finished_job;

CREATE PROCEDURE cost.note_search(name text, statement text)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cost.explained(statement);  -- reads the catalogue
  PERFORM cost.note(name || '_buffers', (cost.explained(statement)).buffers);
END $$;
CALL cost.note_search('question_by_error',
  'SELECT * FROM pulse.preview_operation(''retry'', ''{"error": "none such"}'')');
CALL cost.note_search('list_by_error', 'SELECT * FROM pulse.list_jobs(error => ''none such'')');
CALL cost.note_search('failures', 'SELECT * FROM pulse.list_failures()');
CALL cost.note_search('failed_jobs', 'SELECT * FROM pulse.list_ended_jobs()');
CALL cost.note_search('failed_jobs_by_error_line',
  'SELECT * FROM pulse.list_ended_jobs(error_line => ''none such'')');
DELETE FROM pulse.finished_job WHERE id > 60;
-- A text that does not shrink when it is compressed.
UPDATE pulse.finished_job SET last_error = (
  SELECT string_agg(md5(n::text || id), '') FROM generate_series(1, 32768) AS n);
VACUUM (ANALYZE) pulse.finished_job;
CALL cost.note_search('question_by_long_error',
  'SELECT * FROM pulse.preview_operation(''retry'', ''{"error": "none such"}'')');
CALL cost.note_search('list_by_long_error',
  'SELECT * FROM pulse.list_jobs(error => ''none such'')');
