-- sql/worker/fence.sql: a transaction of a lost claim fails at its end (P10). PREPARE TRANSACTION
-- checks what COMMIT does and can be rolled back, so nothing of this stays; where it is switched
-- off it is refused with 55000, after the fences were looked at.
\set QUIET on
\set VERBOSITY sqlstate
\set ON_ERROR_STOP off
\set begin 'BEGIN; SET LOCAL client_min_messages = error; CREATE EXTENSION IF NOT EXISTS pg_pulse;'
\set given 'SELECT pulse.add_job(''f''), (pulse.register_worker(''ann'', ''{f}'')).id AS ann'

:begin
:given \gset
SELECT id AS job, token FROM pulse.claim(:ann) \gset
SELECT pulse.fence(:job, :token) \g /dev/null
PREPARE TRANSACTION 'pulse_fence';
\set held :SQLSTATE
ROLLBACK PREPARED 'pulse_fence';

:begin
:given \gset
SELECT id AS job, token FROM pulse.claim(:ann) \gset
SELECT pulse.fence(:job, :token) \g /dev/null
SELECT pulse.complete(:job, :token) \g /dev/null
PREPARE TRANSACTION 'pulse_fence';
\set completed :SQLSTATE
ROLLBACK PREPARED 'pulse_fence';

:begin
:given \gset
SELECT id AS job, token FROM pulse.claim(:ann) \gset
SELECT pulse.fence(:job, :token) \g /dev/null
SELECT pulse.fail(:job, :token, 'boom') \g /dev/null
PREPARE TRANSACTION 'pulse_fence';
\set failed :SQLSTATE
ROLLBACK PREPARED 'pulse_fence';

-- The job is gone with the savepoint: only a forgotten fence lets this pass.
:begin
SAVEPOINT undone;
:given \gset
SELECT id AS job, token FROM pulse.claim(:ann) \gset
SELECT pulse.fence(:job, :token) \g /dev/null
ROLLBACK TO undone;
PREPARE TRANSACTION 'pulse_fence';
\set undone :SQLSTATE
ROLLBACK PREPARED 'pulse_fence';

:begin
DO $$ BEGIN PERFORM pulse.fence(0, 1); EXCEPTION WHEN SQLSTATE 'PU001' THEN NULL; END $$;
COMMIT;
\set swallowed :SQLSTATE

:begin
SAVEPOINT undone;
SELECT pulse.fence(0, 1) \g /dev/null
\set at_once :SQLSTATE
ROLLBACK TO undone;
PREPARE TRANSACTION 'pulse_fence';
\set swallowed_by_savepoint :SQLSTATE

:begin
PREPARE TRANSACTION 'pulse_fence';
\set next :SQLSTATE
ROLLBACK PREPARED 'pulse_fence';

\set VERBOSITY default
\ir support/setup.psql
SELECT plan(25);

SELECT expect_function('fence', 'job_id bigint, token bigint', 'void', 'volatile', 'definer');

SELECT ok(:'held' IN ('00000', '55000'), 'a transaction of a current claim passes its fence');
SELECT ok(:'completed' IN ('00000', '55000'), 'so does one that completes the job itself');
SELECT ok(:'failed' IN ('00000', '55000'), 'or fails it');
SELECT ok(:'undone' IN ('00000', '55000'), 'a fence in a rolled-back savepoint is forgotten');
SELECT is(:'at_once'::text, 'PU001', 'a fence of a lost claim is refused at once');
SELECT is(:'swallowed'::text, 'PU001', 'who swallows that cannot commit');
SELECT is(:'swallowed_by_savepoint'::text, 'PU001', 'nor by rolling back a savepoint');
SELECT ok(:'next' IN ('00000', '55000'), 'the next transaction is not concerned');

SELECT given_worker() AS ann \gset
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT changes_nothing(format('SELECT pulse.fence(%s, %s)', :job, :token),
  'fencing a current claim changes nothing by itself');
SELECT lives_ok(format('SELECT pulse.fence(%s, %s)', :job, :token), 'it may be repeated');
SELECT pulse.progress(:job, :token, 'still here') \g /dev/null
SELECT lives_ok(format('SELECT pulse.fence(%s, %s)', :job, :token), 'also after a report');
SELECT refuses(format('SELECT pulse.fence(%s, %s)', :job, :token - 1), 'PU001',
  'another token is refused');
SELECT refuses(format('SELECT pulse.fence(0, %s)', :token), 'PU001', 'an unknown job is refused');
SELECT is((refusal_of(format('SELECT pulse.fence(0, %s)', :token))).detail, 'no live job',
  'and the refusal tells that there is no live job');
SELECT isnt((refusal_of(format('SELECT pulse.fence(%s, %s)', :job, :token - 1))).detail,
  'no live job', 'which it does not where there is one');
SELECT refuses(format('SELECT pulse.fence(%s, NULL)', :job), 'PU001',
  'a fence without a token is refused, not ignored');
SELECT refuses(format('SELECT pulse.fence(NULL, %s)', :token), 'PU001', 'nor one without a job');
SELECT refuses(format('SELECT pulse.fence(%s, 0)', :job), 'PU001', '0 is the token of no claim');
SELECT pulse.fail(:job, :token, 'boom') \g /dev/null
SELECT lives_ok(format('SELECT pulse.fence(%s, %s)', :job, :token),
  'a claim that this very transaction has ended needs no protection');

SELECT * FROM finish();
ROLLBACK;
