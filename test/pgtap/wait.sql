-- sql/worker/wait.sql: wait_for_job holds nothing while it waits, so it runs by itself only. What
-- wakes it needs several sessions: see test/isolation.
\set QUIET on
\set VERBOSITY sqlstate
\set ON_ERROR_STOP off
SELECT count(*) > 0 AS installed FROM pg_catalog.pg_extension WHERE extname = 'pg_pulse' \gset
\if :installed
SET client_min_messages = error;
CALL pulse.wait_for_job(0, '20 ms');
\set time_up :SQLSTATE
CALL pulse.wait_for_job(0, '0');
\set at_once :SQLSTATE
CALL pulse.wait_for_job(NULL, '0');
\set no_worker :SQLSTATE
CALL pulse.wait_for_job(0, NULL);
\set no_limit :SQLSTATE
CALL pulse.wait_for_job(0, '-1 s');
\set negative :SQLSTATE
CALL pulse.wait_for_job(0, '-1 day 23 hours');
\set negative_day :SQLSTATE
CALL pulse.wait_for_job(0, '1000 years');
\set absurd :SQLSTATE
SET default_transaction_read_only = on;
CALL pulse.wait_for_job(0, '0');
\set read_only :SQLSTATE
RESET default_transaction_read_only;
\endif
\set VERBOSITY default
\ir support/setup.psql
SELECT plan(18);

SELECT expect_function('wait_for_job',
  'IN worker_id bigint, IN max_wait interval DEFAULT ''00:00:30''::interval', 'procedure',
  'volatile', 'invoker');
SELECT is((SELECT proconfig FROM pg_proc WHERE oid = 'pulse.wait_for_job'::regproc), NULL,
  'it has no settings of its own, which would keep it from ending its transaction');

SELECT refuses('CALL pulse.wait_for_job(0, ''0'')', 'PU006', 'it cannot run inside a function');
SELECT refuses($$DO 'BEGIN CALL pulse.wait_for_job(0, ''0''); END'$$, 'PU006',
  'nor in a block of code inside a transaction block');
SAVEPOINT before_call;
\set ON_ERROR_STOP off
\set VERBOSITY sqlstate
CALL pulse.wait_for_job(0, '0');
\set in_block :SQLSTATE
\set VERBOSITY default
\set ON_ERROR_STOP on
ROLLBACK TO before_call;
SELECT is(:'in_block'::text, 'PU006', 'nor inside a transaction block at all');

\if :installed
SELECT is(:'time_up'::text, '00000', 'by itself it returns when the time is up');
SELECT is(:'at_once'::text, '00000', 'a wait of 0 returns at once');
SELECT is(:'read_only'::text, '00000', 'it reads and writes no table');
SELECT is(:'no_worker'::text, 'PU004', 'a worker of NULL is refused');
SELECT is(:'no_limit'::text, 'PU004', 'so is a limit of NULL');
SELECT is(:'negative'::text, 'PU004', 'a negative one');
SELECT is(:'negative_day'::text, 'PU004', 'a partly negative one');
SELECT is(:'absurd'::text, 'PU004', 'and one of a thousand years');
\else
SELECT skip('wait_for_job needs the extension to be committed', 8);
\endif

SELECT * FROM finish();
ROLLBACK;
