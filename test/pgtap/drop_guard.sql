-- sql/guard/drop_guard.sql: DROP EXTENSION fails while there are live jobs, unless a setting allows
-- it.
\ir support/setup.psql
SELECT plan(13);

CREATE FUNCTION is_installed() RETURNS boolean
  LANGUAGE sql AS $$ SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_pulse') $$;

SELECT answers(
  $$SELECT t.evtevent, t.evttags, t.evtenabled, d.deptype
      FROM pg_event_trigger AS t
      JOIN pg_depend AS d ON d.classid = 'pg_event_trigger'::regclass AND d.objid = t.oid
      JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
     WHERE t.evtname = 'pg_pulse_guard_drop' AND e.extname = 'pg_pulse'$$,
  ROW('ddl_command_start', '{"DROP EXTENSION","DROP SCHEMA","DROP OWNED"}'::text[], 'O', 'e'),
  'who is about to drop something loads the library, by a member of the extension');

SELECT given_worker() AS ann \gset
SELECT given_claimed_job(:ann) \g /dev/null
SELECT given_job('mail', 'post') \g /dev/null
SELECT given_job() \g /dev/null
SELECT pulse.cancel_job(given_job('ink')) \g /dev/null
SAVEPOINT filled;
-- With CASCADE, because what these tests are written with depends on it.
SELECT refuses('DROP EXTENSION pg_pulse CASCADE', 'PU009', 'with live jobs it is not dropped');
SELECT answers(
  $$SELECT r.message, r.hint ~ 'SET pulse.allow_drop = on'
      FROM refusal_of('DROP EXTENSION pg_pulse CASCADE') AS r$$,
  ROW('3 live jobs would be deleted', true), 'the refusal counts them and tells the way out');
SELECT refuses('DROP SCHEMA pulse CASCADE', 'PU009', 'nor with its schema');
DELETE FROM pulse.job WHERE state <> 'running';
SELECT is((refusal_of('DROP EXTENSION pg_pulse CASCADE')).message, '1 live job would be deleted',
  'one is enough');
SET LOCAL pulse.allow_drop = on;
SELECT is((refusal_of('DROP EXTENSION pg_pulse CASCADE')).code, '00000', 'unless it is allowed');
SELECT ok(NOT is_installed(), 'then it is gone');
ROLLBACK TO filled;
SET LOCAL pulse.allow_drop = off;
INSERT INTO pulse.job (identifier) SELECT 'many' FROM generate_series(1, 10001);
SELECT is((refusal_of('DROP EXTENSION pg_pulse CASCADE')).message,
  'more than 10000 live jobs would be deleted', 'a great many are not counted to the last');
ROLLBACK TO filled;
CREATE SCHEMA other;
CREATE TABLE other.job (id int);
INSERT INTO other.job VALUES (1);
SELECT is((refusal_of('DROP SCHEMA other CASCADE')).code, '00000',
  'tables of the same name elsewhere are dropped as ever');
SELECT is((refusal_of('SET pulse.allow_drop = on')).code, '00000', 'a superuser may allow it');
CREATE ROLE pulse_stranger;
SET LOCAL pulse.allow_drop = off;
SELECT refuses('SET pulse.allow_drop = on', '42501', 'others may not', 'pulse_stranger');
DELETE FROM pulse.job;
SELECT is((refusal_of('DROP EXTENSION pg_pulse CASCADE')).code, '00000',
  'without live jobs it is dropped, finished ones and all');
SELECT is_empty($$SELECT FROM pg_event_trigger WHERE evtname = 'pg_pulse_guard_drop'$$,
  'and nothing of it is left');

SELECT * FROM finish();
ROLLBACK;
