DO $$
BEGIN
  IF to_regnamespace('graphile_worker') IS NOT NULL THEN
    RAISE EXCEPTION 'schema graphile_worker exists' USING
      ERRCODE = 'duplicate_schema',
      DETAIL = 'pg_pulse_graphile brings a schema of this name.',
      HINT = 'ALTER SCHEMA graphile_worker RENAME TO graphile_worker_old frees the name; then '
             'SELECT * FROM pulse.import_graphile_worker(''graphile_worker_old'') moves its jobs.';
  END IF;
END $$;

-- The schema belongs to the extension.
CREATE SCHEMA graphile_worker;
COMMENT ON SCHEMA graphile_worker IS
  'The functions and views of Graphile Worker 0.18 for programs, over the jobs of pg_pulse.';
