-- Refuses to be sourced by hand: psql obeys this line, CREATE EXTENSION ignores it.
\echo Use "CREATE EXTENSION pg_pulse_graphile" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
  own text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'pg_pulse_graphile');
  core text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'pg_pulse');
BEGIN
  IF core <> own THEN
    RAISE EXCEPTION 'pg_pulse_graphile % needs pg_pulse %, and % is installed', own, own, core USING
      ERRCODE = 'object_not_in_prerequisite_state',
      HINT = format('ALTER EXTENSION pg_pulse UPDATE TO %L comes first.', own);
  ELSIF to_regnamespace('graphile_worker') IS NOT NULL THEN
    RAISE EXCEPTION 'schema graphile_worker exists' USING
      ERRCODE = 'duplicate_schema',
      DETAIL = 'pg_pulse_graphile brings a schema of this name.',
      HINT = 'ALTER SCHEMA graphile_worker RENAME TO graphile_worker_old makes room; afterwards '
             'SELECT * FROM pulse.import_graphile_worker(''graphile_worker_old'') moves its jobs.';
  END IF;
END $$;

-- The schema belongs to the extension.
CREATE SCHEMA graphile_worker;
COMMENT ON SCHEMA graphile_worker IS
  'What programs call and read of Graphile Worker 0.18, over the jobs of pg_pulse.';
