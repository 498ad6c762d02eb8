-- Refuses to be sourced by hand: psql obeys this line, CREATE EXTENSION ignores it.
\echo Use "CREATE EXTENSION pg_pulse_tap" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

-- The schema belongs to the extension, so one of this name is an error.
CREATE SCHEMA pulse_tap;
COMMENT ON SCHEMA pulse_tap IS
  'What pgTAP tests of code with jobs call: assertions, time, workers.';
