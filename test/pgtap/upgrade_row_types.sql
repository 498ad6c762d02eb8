-- A column of an application whose type is, or holds, a row of a table of 0.1.0 lets no update
-- fail half-way: the update names it, or succeeds beside it. Every type of 0.1.0 is tried.
\set QUIET on
\set ON_ERROR_STOP on
\pset format unaligned
\pset tuples_only on
\pset pager off

BEGIN;
SET LOCAL client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS pgtap;
DROP EXTENSION IF EXISTS pg_pulse CASCADE;
CREATE EXTENSION pg_pulse VERSION '0.1.0';
CREATE SCHEMA shop;
SELECT plan(47);

-- How the update ends after this change; both are undone. NULL: it succeeds.
CREATE FUNCTION pg_temp.update_after(change text, OUT code text, OUT message text, OUT detail text,
                                     OUT hint text)
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE change;
  ALTER EXTENSION pg_pulse UPDATE;
  RAISE EXCEPTION 'undone' USING ERRCODE = 'ZZ000';
EXCEPTION
  WHEN SQLSTATE 'ZZ000' THEN RETURN;
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
      detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;

SELECT is((pg_temp.update_after('CREATE TABLE shop.x (a int, j pulse.job)'))::text,
  ROW('2BP01', 'column j of table shop.x uses a row type that the update changes',
      'Nothing has been changed.',
      'ALTER TABLE ... ALTER COLUMN ... TYPE json USING to_json(...) keeps the values of a '
      'column. Drop a materialized view, an index or a typed table (ALTER TABLE ... NOT OF), and '
      'make it anew afterwards.')::text,
  'the update names the column, and what to do');
SELECT is((pg_temp.update_after(
    'CREATE TABLE shop.x (j pulse.job); CREATE TABLE shop.y (q pulse.queue[])')).detail,
  'There are 2: column j of table shop.x, column q of table shop.y.', 'or all of them');
SELECT is((pg_temp.update_after('CREATE TABLE shop.x (j pulse.job);
    ALTER TABLE shop.x ALTER COLUMN j TYPE json USING to_json(j)')).code, NULL,
  'what the hint says lets it succeed');

SELECT is(u.message, c.named || ' uses a row type that the update changes', c.what)
  FROM (VALUES
    ('an array', 'column j of table shop.x', 'CREATE TABLE shop.x (j pulse.job[])'),
    ('a domain', 'column j of table shop.x',
     'CREATE DOMAIN shop.d AS pulse.job; CREATE TABLE shop.x (j shop.d)'),
    ('an array of a domain', 'column j of table shop.x',
     'CREATE DOMAIN shop.d AS pulse.job; CREATE TABLE shop.x (j shop.d[])'),
    ('a composite type', 'column j of table shop.x',
     'CREATE TYPE shop.c AS (n int, j pulse.job); CREATE TABLE shop.x (j shop.c)'),
    ('a range', 'column j of table shop.x',
     'CREATE TYPE shop.r AS RANGE (subtype = pulse.queue); CREATE TABLE shop.x (j shop.r)'),
    ('a multirange', 'column j of table shop.x',
     'CREATE TYPE shop.r AS RANGE (subtype = pulse.queue, multirange_type_name = shop.m);
      CREATE TABLE shop.x (j shop.m)'),
    ('the row of a view', 'column v of table shop.x',
     'CREATE VIEW shop.v AS SELECT j FROM pulse.job AS j; CREATE TABLE shop.x (v shop.v)'),
    ('a materialized view', 'column j of materialized view shop.v',
     'CREATE MATERIALIZED VIEW shop.v AS SELECT j FROM pulse.job AS j'),
    ('a partitioned table', 'column j of table shop.x',
     'CREATE TABLE shop.x (a int, j pulse.job) PARTITION BY LIST (a)'),
    ('a temporary table', 'column j of table x', 'CREATE TEMP TABLE x (j pulse.job)'),
    ('an index', 'column as_queue of index shop.i',
     'CREATE TABLE shop.x (q text);
      CREATE FUNCTION shop.as_queue(text) RETURNS pulse.queue IMMUTABLE LANGUAGE sql
        RETURN NULL::pulse.queue;
      CREATE INDEX i ON shop.x (shop.as_queue(q))'),
    ('a typed table', 'table shop.x', 'CREATE TABLE shop.x OF pulse.claimed_job'),
    ('a function of what is dropped', 'function shop.f(pulse._queue_places)',
     'CREATE FUNCTION shop.f(pulse._queue_places) RETURNS int LANGUAGE sql AS $f$ SELECT 1 $f$'))
    AS c (what, named, change), pg_temp.update_after(c.change) AS u;

SELECT is(u.code, NULL, c.what || ' stays as it is')
  FROM (VALUES
    ('a view', 'CREATE VIEW shop.v AS SELECT j, q FROM pulse.job AS j, pulse.queue AS q'),
    ('a type that no column has', 'CREATE TYPE shop.c AS (j pulse.job)'),
    ('a function', 'CREATE FUNCTION shop.f(pulse.job) RETURNS SETOF pulse.queue LANGUAGE sql
                      AS $f$ SELECT q FROM pulse.queue AS q $f$')) AS c (what, change),
       pg_temp.update_after(c.change) AS u;

-- Whatever the server refuses has been refused before it, by name.
SELECT is(coalesce(u.message, c.told), c.told, format('%s of pulse.%s', c.what, t.relname))
  FROM pg_class AS t,
       LATERAL (VALUES
         ('a column', 'column v of table shop.x uses a row type that the update changes',
          format('CREATE TABLE shop.x (v %s)', t.reltype::regtype)),
         ('a typed table', 'table shop.x uses a row type that the update changes',
          CASE t.relkind WHEN 'c' THEN format('CREATE TABLE shop.x OF %s', t.reltype::regtype) END))
         AS c (what, told, change),
       LATERAL pg_temp.update_after(c.change) AS u
 WHERE t.relnamespace = 'pulse'::regnamespace AND t.relkind IN ('r', 'v', 'c')
   AND c.change IS NOT NULL
 ORDER BY t.relname, c.what;

SELECT * FROM finish();
ROLLBACK;
