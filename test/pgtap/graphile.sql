-- sql/operator/graphile.sql: what import_graphile_worker refuses, takes and leaves. The jobs of a
-- real release are moved by test/e2e/graphile_import.pl.
\ir support/setup.psql
SELECT plan(24);

SELECT expect_function('import_graphile_worker',
  'schema text DEFAULT ''graphile_worker''::text, dry_run boolean DEFAULT false',
  'TABLE(what text, outcome text, jobs bigint, detail text)', 'volatile', 'invoker');
SELECT refuses('SELECT pulse.import_graphile_worker()', 'PU005', 'there is nothing to move');
SELECT refuses('SELECT pulse.import_graphile_worker(NULL)', 'PU005', 'nor without a schema');
SELECT refuses('SELECT pulse.import_graphile_worker(dry_run => NULL)', 'PU004',
  'whether to move anything must be said');
SELECT refuses($$SELECT pulse.import_graphile_worker('public.job; --')$$, 'PU005',
  'a schema is a name');

\o /dev/null
\ir support/graphile_jobs.psql
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
SELECT results_eq($$SELECT j.added_by FROM pulse.job AS j WHERE j.identifier = 'mail'
                    UNION ALL SELECT f.added_by FROM pulse.finished_job AS f$$,
  ARRAY[current_user, current_user]::text[], 'both belong to the role that moves them');
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
