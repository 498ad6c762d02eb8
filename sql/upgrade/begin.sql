-- Refuses to be sourced by hand: psql obeys the next line, ALTER EXTENSION ignores the line.
\echo Use "ALTER EXTENSION pg_pulse UPDATE TO '@VERSION@'" to load this file. \quit

-- The server puts the schema pulse first; this script must not call an object planted there.
SET LOCAL search_path = pg_catalog, pg_temp;
