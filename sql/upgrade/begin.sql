-- Refuses to be sourced by hand: psql obeys this line, ALTER EXTENSION ignores it.
\echo Use "ALTER EXTENSION pg_pulse UPDATE TO '@VERSION@'" to load this file. \quit

-- The server puts the schema pulse first; this script must not call an object planted there.
SET LOCAL search_path = pg_catalog, pg_temp;
