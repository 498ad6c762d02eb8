-- Refuses to be sourced by hand: psql obeys the next line, CREATE EXTENSION ignores the line.
\echo Use "CREATE EXTENSION @EXTENSION@" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

-- An extension over pg_pulse calls functions of the same version.
DO $$
DECLARE
  own text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = '@EXTENSION@');
  core text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'pg_pulse');
BEGIN
  IF core <> own THEN
    RAISE EXCEPTION '@EXTENSION@ % needs pg_pulse %, and % is installed', own, own, core USING
      ERRCODE = 'object_not_in_prerequisite_state',
      HINT = format('ALTER EXTENSION pg_pulse UPDATE TO %L comes first.', own);
  END IF;
END $$;
