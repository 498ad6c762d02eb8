-- sql/job/results.sql: wait_for_end counts the jobs that have ended, and ended tells how those did
-- that are kept. What wakes a wait needs several sessions: see test/isolation.
\set QUIET on
\set VERBOSITY sqlstate
\set ON_ERROR_STOP off
SELECT count(*) > 0 AS installed FROM pg_catalog.pg_extension WHERE extname = 'pg_pulse' \gset
\if :installed
SET client_min_messages = error;
SELECT id AS live FROM pulse.add_job('results_live') \gset
SELECT id AS gone FROM pulse.add_job('results_gone', job_key => 'results_gone') \gset
SELECT id AS failed FROM pulse.add_job('results_failed') \gset
SELECT id FROM pulse.remove_job('results_gone') \g /dev/null
SELECT id FROM pulse.permanently_fail_jobs(ARRAY[:failed]) \g /dev/null
CALL pulse.wait_for_end(ARRAY[:live], '20 ms') \gset live_
CALL pulse.wait_for_end(ARRAY[:live, :gone, :failed], '0') \gset all_
CALL pulse.wait_for_end(ARRAY[:live, :gone, :failed, :gone], '10 min', true) \gset any_
CALL pulse.wait_for_end(ARRAY[:gone, :failed, :gone], '10 min') \gset both_
CALL pulse.wait_for_end('{}', '10 min') \gset none_
CALL pulse.wait_for_end('{}', '10 min', true) \gset any_of_none_
BEGIN;
CALL pulse.wait_for_end(ARRAY[:gone]);
\set in_block :SQLSTATE
ROLLBACK;
CALL pulse.wait_for_end(NULL);
\set no_array :SQLSTATE
CALL pulse.wait_for_end(ARRAY[:gone], NULL);
\set no_limit :SQLSTATE
CALL pulse.wait_for_end(ARRAY[:gone], '0', NULL);
\set no_mode :SQLSTATE
CALL pulse.wait_for_end(ARRAY[:gone, NULL]);
\set null_id :SQLSTATE
CALL pulse.wait_for_end(ARRAY[ARRAY[:gone]]);
\set two_dimensions :SQLSTATE
CALL pulse.wait_for_end(array_fill(:gone::bigint, '{10001}'));
\set too_many :SQLSTATE
CALL pulse.wait_for_end(ARRAY[:failed + 1000000]);
\set never_added :SQLSTATE
CALL pulse.wait_for_end(ARRAY[:gone], '2 days');
\set too_long :SQLSTATE
\set too_long_says :LAST_ERROR_MESSAGE
SET default_transaction_read_only = on;
SET default_transaction_isolation = 'repeatable read';
CALL pulse.wait_for_end(ARRAY[:gone], '0');
\set read_only :SQLSTATE
RESET default_transaction_isolation;
RESET default_transaction_read_only;
CREATE ROLE pulse_waiting_caller;
SELECT pulse.grant_caller('pulse_waiting_caller') \g /dev/null
SET ROLE pulse_waiting_caller;
CALL pulse.wait_for_end(ARRAY[:gone], '0') \gset caller_
RESET ROLE;
SELECT pulse.revoke_caller('pulse_waiting_caller') \g /dev/null
DROP ROLE pulse_waiting_caller;
SELECT id FROM pulse.permanently_fail_jobs(ARRAY[:live]) \g /dev/null
SELECT pulse.delete_finished(ARRAY[:live, :failed]) \g /dev/null
\endif
\set VERBOSITY default
\ir support/setup.psql
SELECT plan(39);

SELECT expect_function('wait_for_end',
  'IN job_ids bigint[], IN max_wait interval DEFAULT ''00:00:30''::interval, '
  'IN any_of boolean DEFAULT false, INOUT ended integer DEFAULT NULL::integer', 'procedure',
  'volatile', 'invoker');
SELECT expect_function('ended', 'job_ids bigint[]',
  'TABLE(id bigint, state pulse.finished_state, result json, last_error text, finished_at '
  'timestamp with time zone)', 'stable', 'definer');
SELECT is((SELECT proconfig FROM pg_proc WHERE oid = 'pulse.wait_for_end'::regproc), NULL,
  'it has no settings of its own, which would keep it from ending its transaction');
SELECT refuses('CALL pulse.wait_for_end(''{}''::bigint[])', 'PU006',
  'it cannot run inside a function');
SELECT refuses($$DO 'DECLARE n int; BEGIN CALL pulse.wait_for_end(''{}'', ''0'', false, n); END'$$,
  'PU006',
  'nor in a block of code inside a transaction block');

\if :installed
SELECT is(:'live_ended'::int, 0, 'a wait for a live job counts nothing when its time is up');
SELECT is(:'all_ended'::int, 2, 'of three jobs it counts the two that have ended');
SELECT is(:'any_ended'::int, 2, 'a wait for any counts all that have, each once');
SELECT is(:'both_ended'::int, 2, 'a wait for jobs that have all ended returns at once');
SELECT is(:'none_ended'::int, 0, 'a wait for no job returns at once');
SELECT is(:'any_of_none_ended'::int, 0, 'so does a wait for any of none');
SELECT is(:'in_block'::text, 'PU006', 'it cannot run inside a transaction block');
SELECT is(:'no_array'::text, 'PU004', 'an array of NULL is refused');
SELECT is(:'no_limit'::text, 'PU004', 'so is a limit of NULL');
SELECT is(:'no_mode'::text, 'PU004', 'so is any_of of NULL');
SELECT is(:'null_id'::text, 'PU004', 'an id of NULL');
SELECT is(:'two_dimensions'::text, 'PU004', 'an array of arrays');
SELECT is(:'too_many'::text, 'PU004', 'more than 10,000 ids');
SELECT is(:'too_long'::text, 'PU004', 'and a limit above a day');
SELECT is(:'too_long_says'::text, 'max_wait is 2 days, out of range', 'which it names');
SELECT is(:'never_added'::text, 'PU005', 'an id that was never given out is refused');
SELECT is(:'read_only'::text, '00000', 'it writes no table, under whatever isolation');
SELECT is(:'caller_ended'::int, 1, 'a caller may wait');
\else
SELECT skip('the extension was not installed before', 17);
\endif

SELECT pulse.set_task('kept', keep_completed => '1 hour') \g /dev/null
SELECT given_worker('results', '{kept,lost}') AS worker \gset
SELECT id AS kept, token FROM given_claimed_job(:worker, 'kept') \gset
SELECT pulse.complete(:kept, :token, '{"sum": 3}') \g /dev/null
SELECT id AS unkept, token FROM given_claimed_job(:worker, 'lost') \gset
SELECT pulse.complete(:unkept, :token, '{"sum": 4}') \g /dev/null
SELECT id AS failed, token FROM given_claimed_job(:worker, 'lost') \gset
SELECT pulse.fail(:failed, :token, 'no luck', retry => false) \g /dev/null
SELECT id AS live FROM pulse.add_job('kept') \gset
SELECT results_eq(
  format('SELECT id, state::text, result ->> ''sum'', last_error, finished_at IS NOT NULL
            FROM pulse.ended(%L)', ARRAY[:live, :failed, :unkept, :kept]),
  format($$VALUES (%s::bigint, 'completed', '3', NULL, true),
                  (%s, 'failed', NULL, 'no luck', true)$$, :kept, :failed),
  'ended tells how those ended that are kept, in the order of their ids');
SELECT is_empty('SELECT * FROM pulse.ended(NULL)', 'of no array it tells nothing');
SELECT pulse.retry_job(:failed) \g /dev/null
SELECT is_empty(format('SELECT * FROM pulse.ended(ARRAY[%s]::bigint[])', :failed),
  'a job that is retried has not ended');

CREATE ROLE pulse_caller;
SELECT pulse.grant_caller('pulse_caller') \g /dev/null
SELECT refuses('TABLE pulse.finished_job', '42501', 'a caller cannot read the table',
  'pulse_caller');
SELECT refuses(format('CALL pulse.wait_for_end(ARRAY[%s]::bigint[])', :kept), 'PU006',
  'and may wait', 'pulse_caller');
SET LOCAL ROLE pulse_caller;
SELECT result ->> 'sum' AS sum FROM pulse.ended(ARRAY[:kept]) \gset
RESET ROLE;
SELECT is(:sum, 3, 'and reads results');

SELECT * FROM finish();
ROLLBACK;
