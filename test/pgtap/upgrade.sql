-- An extension that was installed as 0.1.0 and updated is the one that is installed today; what
-- users granted stays, and is dumped.
\set QUIET on
\set ON_ERROR_STOP on
\pset format unaligned
\pset tuples_only on
\pset pager off

BEGIN;
SET LOCAL client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS pgtap;
DROP EXTENSION IF EXISTS pg_pulse;
\ir support/catalogue.sql
SELECT plan(22);

CREATE EXTENSION pg_pulse;
CREATE TEMPORARY TABLE fresh AS SELECT * FROM pg_temp.catalogue();
SELECT extversion AS newest FROM pg_extension WHERE extname = 'pg_pulse' \gset
DROP EXTENSION pg_pulse;

CREATE EXTENSION pg_pulse VERSION '0.1.0';
CREATE TEMPORARY TABLE released AS SELECT * FROM pg_temp.catalogue();
SELECT isnt((SELECT count(*) FROM (TABLE fresh EXCEPT TABLE released) AS f), 0::bigint,
            'there is something to update');

-- What an administrator did and what was going on before the update.
CREATE ROLE upgrade_producer;
CREATE ROLE upgrade_observer;
GRANT USAGE ON SCHEMA pulse TO upgrade_producer;
GRANT EXECUTE ON FUNCTION pulse.add_job TO upgrade_producer;
GRANT EXECUTE ON PROCEDURE pulse.wait_for_job TO PUBLIC;
GRANT EXECUTE ON FUNCTION pulse.set_task TO upgrade_producer WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION pulse.set_queue TO upgrade_producer WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION pulse.set_task TO PUBLIC;
GRANT SELECT ON pulse.worker_status, pulse.job TO upgrade_observer;
GRANT SELECT (id, state) ON pulse.finished_job TO upgrade_observer;
\o /dev/null
SELECT pulse.add_job('waits', '{"n": 1}', queue_name => 'q', job_key => 'k', flags => '{f}');
UPDATE pulse.job SET flags = ARRAY(SELECT 'f' || n FROM generate_series(1, 100) AS n);
SELECT pulse.add_job('runs', max_attempts => 3);
SELECT w.id AS worker FROM pulse.register_worker('before',
  info => '{"slots": 3, "kill_grace_ms": 5000, "version": "0.2.0"}') AS w \gset
SELECT c.id AS job, c.token FROM pulse.claim(:worker, 1, '{runs}') AS c \gset
SELECT pulse.set_task('runs', timeout => '1 hour', handler => 'pg_catalog.now()');
\o
CREATE TEMPORARY TABLE live AS SELECT to_jsonb(j) AS job FROM pulse.job AS j;

SAVEPOINT ready;
CREATE OR REPLACE FUNCTION pulse.version() RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $$ SELECT '0.1.0' $$;
SELECT throws_ok('ALTER EXTENSION pg_pulse UPDATE', '55000',
  'the library of pg_pulse that this session has loaded is too old',
  'a session that has loaded the old library cannot update');
ROLLBACK TO ready;
CREATE FUNCTION pulse.tick() RETURNS json LANGUAGE sql AS $$ SELECT NULL::json $$;
SELECT throws_ok('ALTER EXTENSION pg_pulse UPDATE', '42723', NULL,
  'what is new in this version is created, not adopted from whoever planted it');
ROLLBACK TO ready;
CREATE SCHEMA pulse_internal;
SELECT throws_ok('ALTER EXTENSION pg_pulse UPDATE', '42P06', NULL,
  'nor is a schema adopted in which another role could create');
ROLLBACK TO ready;

ALTER EXTENSION pg_pulse UPDATE;
SELECT is((SELECT extversion FROM pg_extension WHERE extname = 'pg_pulse'), :'newest',
          'the update leads to the newest version');

SELECT is((SELECT count(*) FROM live AS l
            WHERE NOT EXISTS (SELECT FROM pulse.job AS j WHERE to_jsonb(j) @> l.job)), 0::bigint,
          'every job is as it was');
SELECT is((SELECT row(timeout, handler)::text FROM pulse.task WHERE identifier = 'runs'),
          '(01:00:00,"pg_catalog.now()")', 'the settings of a task are kept');
SELECT ok((SELECT status = 'alive' FROM pulse.heartbeat(:worker, ARRAY[:job]::bigint[])),
          'a worker of before lives on');
SELECT is((SELECT row(w.slots, w.kill_grace, w.version)::text FROM pulse.worker AS w
            WHERE w.id = :worker), '(3,00:00:05,0.2.0)', 'and what its info told is known');
SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :job, :token),
                'what was claimed before is completed afterwards');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

SELECT ok(has_function_privilege('upgrade_producer', 'pulse.add_job(text, json, text, timestamptz, '
            'int, text, int, text[], text)', 'EXECUTE'), 'a grant on a function stays');
SELECT is((SELECT string_agg(format('%s %s', a.privilege_type, a.is_grantable), ',')
             FROM pg_proc AS p, aclexplode(p.proacl) AS a
            WHERE p.proname = 'set_task' AND a.grantee = 'upgrade_producer'::regrole), 'EXECUTE t',
          'also where the function has an argument more');
SELECT ok(has_function_privilege('upgrade_producer', 'pulse.wait_for_job(bigint, interval)',
                                 'EXECUTE'), 'even one to PUBLIC that somebody made');
SELECT ok(has_function_privilege('upgrade_producer', 'pulse.set_queue(text, int, boolean, int, '
                                 'int, interval, int, boolean, int, boolean, text)',
                                 'EXECUTE WITH GRANT OPTION'),
          'also where the function has got more arguments');
SELECT ok(has_function_privilege('upgrade_observer',
  (SELECT p.oid FROM pg_proc AS p WHERE p.oid::regproc = 'pulse.set_task'::regproc), 'EXECUTE'),
          'or was granted to PUBLIC');
SELECT ok(has_table_privilege('upgrade_observer', 'pulse.worker_status', 'SELECT'),
          'a grant on a view stays');
SELECT ok(has_column_privilege('upgrade_observer', 'pulse.finished_job', 'state', 'SELECT'),
          'a grant on a column stays');
SELECT is_empty($$SELECT i.objoid FROM pg_init_privs AS i, aclexplode(i.initprivs) AS a
                   WHERE a.grantee IN ('upgrade_producer'::regrole, 'upgrade_observer'::regrole)$$,
                'and none of them is taken for the script''s own, which pg_dump would leave out');

-- Without the grants and the rows of this test, it is what is installed today.
REVOKE ALL ON SCHEMA pulse FROM upgrade_producer;
REVOKE ALL ON FUNCTION pulse.add_job, pulse.set_task, pulse.set_queue FROM upgrade_producer;
REVOKE ALL ON FUNCTION pulse.set_task FROM PUBLIC;
REVOKE ALL ON PROCEDURE pulse.wait_for_job FROM PUBLIC;
REVOKE ALL ON pulse.worker_status, pulse.job FROM upgrade_observer;
REVOKE ALL (id, state) ON pulse.finished_job FROM upgrade_observer;
DELETE FROM pulse.job;
DELETE FROM pulse.worker;
DELETE FROM pulse.heartbeat;
DELETE FROM pulse.task;
CREATE TEMPORARY TABLE updated AS SELECT * FROM pg_temp.catalogue();
SELECT is_empty('TABLE fresh EXCEPT ALL TABLE updated', 'an update leaves nothing out');
SELECT is_empty('TABLE updated EXCEPT ALL TABLE fresh', 'an update leaves nothing behind');
SELECT cmp_ok((SELECT count(DISTINCT name) FROM fresh), '>', 150::bigint,
              'the comparison is of all objects');

SELECT * FROM finish();
ROLLBACK;
