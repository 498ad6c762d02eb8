-- Refuses to be sourced by hand: psql obeys this line, CREATE EXTENSION ignores it.
\echo Use "CREATE EXTENSION pg_pulse_tap" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
  own text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'pg_pulse_tap');
  core text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'pg_pulse');
BEGIN
  IF core <> own THEN
    RAISE EXCEPTION 'pg_pulse_tap % needs pg_pulse %, and % is installed', own, own, core USING
      ERRCODE = 'object_not_in_prerequisite_state',
      HINT = format('ALTER EXTENSION pg_pulse UPDATE TO %L comes first.', own);
  END IF;
END $$;

-- The schema belongs to the extension, so one of this name is an error.
CREATE SCHEMA pulse_tap;
COMMENT ON SCHEMA pulse_tap IS
  'What pgTAP tests of code with jobs call: assertions, time, workers.';
