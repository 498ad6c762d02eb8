-- sql/graphile.sql: what import_graphile_worker refuses, takes and leaves. The jobs of a real
-- release are moved by test/e2e/graphile_import.pl.
\ir support/setup.psql
SELECT plan(22);

SELECT expect_function('import_graphile_worker',
  'schema text DEFAULT ''graphile_worker''::text, dry_run boolean DEFAULT false',
  'TABLE(what text, outcome text, jobs bigint, detail text)', 'volatile', 'invoker');
SELECT refuses('SELECT pulse.import_graphile_worker()', 'PU005', 'there is nothing to move');
SELECT refuses('SELECT pulse.import_graphile_worker(NULL)', 'PU005', 'nor without a schema');
SELECT refuses($$SELECT pulse.import_graphile_worker('public.job; --')$$, 'PU005',
  'a schema is a name');

\o /dev/null
CREATE SCHEMA "their Jobs";
SET LOCAL search_path = "their Jobs", public;
CREATE TABLE _private_tasks (id int, identifier text);
CREATE TABLE _private_job_queues (id int, queue_name text, locked_at timestamptz, locked_by text);
CREATE TABLE _private_known_crontabs (
  identifier text, known_since timestamptz, last_execution timestamptz);
CREATE TABLE _private_jobs (
  id bigint GENERATED ALWAYS AS IDENTITY, job_queue_id int, task_id int, payload json DEFAULT '{}',
  priority smallint DEFAULT 0, run_at timestamptz DEFAULT now(), attempts smallint DEFAULT 0,
  max_attempts smallint DEFAULT 25, last_error text, created_at timestamptz DEFAULT now() - '1 d'
  ::interval, updated_at timestamptz DEFAULT now(), key text, locked_at timestamptz,
  locked_by text, revision int DEFAULT 0, flags jsonb);
INSERT INTO _private_tasks VALUES (1, 'mail'), (2, '../etc'), (3, 'print');
INSERT INTO _private_job_queues VALUES (1, 'q');
INSERT INTO _private_jobs (task_id, job_queue_id, attempts, max_attempts, key, last_error, flags)
VALUES (1, 1, 3, 5, 'k', 'no ink', '{"a": true, "b": true}'), (2, NULL, 0, 25, NULL, NULL, NULL),
       (3, NULL, 2, 2, 'k3', 'on fire', NULL), (3, NULL, 0, 25, 'waits here', NULL, NULL);
SET LOCAL search_path = public;
SELECT pulse.add_job('mine', job_key => 'waits here'),
       pulse.set_task('mail', expires_after => '1 d');
\o
\set import 'SELECT what, outcome, jobs FROM pulse.import_graphile_worker(''their Jobs'''

UPDATE "their Jobs"._private_job_queues SET locked_at = now(), locked_by = 'pool';
SELECT refuses(:'import' || ')', '55006', 'a queue that a worker holds stops the move');
UPDATE "their Jobs"._private_job_queues SET locked_at = NULL;
UPDATE "their Jobs"._private_jobs SET locked_at = now() - interval '5 hours' WHERE id = 1;
SELECT refuses(:'import' || ')', '55006', 'as does a job, however long it is held');
UPDATE "their Jobs"._private_jobs SET locked_at = NULL;

SELECT changes_nothing(:'import' || ', true)', 'a dry run changes nothing');
SELECT is((SELECT count(*) FROM "their Jobs"._private_jobs), 4::bigint, 'neither here nor there');
SELECT results_eq(:'import' || ')', $$VALUES ('waiting jobs', 'taken', 1::bigint),
    ('failed jobs', 'taken', 1), ('jobs', 'left there', 1), ('jobs', 'left there', 1)$$,
  'the move tells what it took, and what not');
SELECT results_eq('SELECT id FROM "their Jobs"._private_jobs ORDER BY id', ARRAY[2::bigint, 4],
  'what it took is gone there');
SELECT answers($$SELECT j.queue_name, j.state::text, j.attempts, j.max_attempts, j.job_key,
                           j.last_error, j.flags::text, j.created_at < now(), j.start_by
                      FROM pulse.job AS j WHERE j.identifier = 'mail'$$,
  ROW('q', 'parked', 3, 5, 'k', 'no ink', '{a,b}', true, now() + interval '1 d'),
  'a waiting job has all that it had');
SELECT answers('SELECT f.identifier, f.attempts, f.last_error FROM pulse.finished_job AS f',
  ROW('print', 2, 'on fire'), 'one without attempts has failed here');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise holds');
SELECT given_worker() AS worker \gset
SELECT promote_queues() \g /dev/null
SELECT is(cardinality(claimed_ids(:worker, 1, '{mail}')), 1, 'and it is claimed');
SELECT results_eq(:'import' || ')', $$VALUES ('waiting jobs', 'taken', 0::bigint),
    ('failed jobs', 'taken', 0), ('jobs', 'left there', 1), ('jobs', 'left there', 1)$$,
  'another move takes nothing twice');
SET LOCAL pulse.keep_failed = '1 d';
SELECT pulse.tick() \g /dev/null
SELECT is(count(*), 1::bigint, 'the retention of a failed job begins with the move')
  FROM pulse.finished_job;
CREATE ROLE pulse_stranger;
SELECT refuses(:'import' || ')', '42501', 'a stranger moves nothing', 'pulse_stranger');

SELECT * FROM finish();
ROLLBACK;
