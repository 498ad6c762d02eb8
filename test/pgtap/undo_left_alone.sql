-- sql/operator/operation_undo.sql: what has moved since an operation, or cannot come back, is left
-- alone, each job with its reason. What comes back goes on as if there had been no operation (P14).
\ir support/setup.psql
SELECT plan(55);

SELECT given_worker() AS ann \gset

-- Runs an undo in steps of one job; sweeps and claims look at the jobs between them.
CREATE FUNCTION run(operation_id bigint) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  o pulse.operation;
BEGIN
  LOOP
    o := pulse.run_operation(operation_id, 1);
    PERFORM pulse.sweep(), promote_queues();
    EXIT WHEN o.state <> 'running';
  END LOOP;
  RETURN concat_ws(' ', o.changed, o.skipped, o.skipped_because);
END $$;
CREATE FUNCTION run(action text, VARIADIC ids bigint[]) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  o pulse.operation := pulse.start_operation(action, json_build_object('ids', ids));
BEGIN
  PERFORM pulse.run_operation(o.id), pulse.sweep(), promote_queues();
  RETURN o.id;
END $$;
CREATE FUNCTION undo(operation_id bigint) RETURNS text
  LANGUAGE sql AS $$ SELECT run((pulse.undo_operation(operation_id)).id) $$;
CREATE FUNCTION ends(task text, state text, result json = NULL) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  worker_id bigint := (SELECT w.id FROM pulse.worker AS w
                        WHERE w.name = 'ann' AND w.state = 'alive');
  job pulse.claimed_job;
BEGIN
  PERFORM promote_queues();
  SELECT * INTO STRICT job FROM pulse.claim(worker_id, 1, ARRAY[task]);
  IF state = 'completed' THEN
    PERFORM pulse.complete(job.id, job.token, result);
  ELSE
    PERFORM pulse.fail(job.id, job.token, 'boom', retry => false);
  END IF;
  PERFORM pulse.sweep(), promote_queues();
END $$;
CREATE FUNCTION added(task text, VARIADIC parents bigint[] = '{}') RETURNS bigint
  LANGUAGE sql AS $$ SELECT (pulse.add_job_after(parents, task)).id $$;
CREATE FUNCTION forget_all() RETURNS void LANGUAGE sql AS $$
  DELETE FROM pulse.job; DELETE FROM pulse.finished_job; DELETE FROM pulse.dependency;
  DELETE FROM pulse.flow_job $$;
-- One assertion: why the undo of an operation left this job alone.
CREATE FUNCTION left_alone(operation_id bigint, job_id bigint, reason text, description text)
  RETURNS text
  LANGUAGE sql AS $$
  SELECT is((SELECT n.undo FROM pulse.operation_job AS n
              WHERE n.operation_id = $1 AND n.job_id = $2), reason, description) $$;

-- --- what goes on as before ---------------------------------------------------------------------

SELECT added('a') AS a \gset
SELECT (pulse.add_job_after(ARRAY[:a], 'n', starts_when => 'failed')).id AS n \gset
SELECT added('x') AS x \gset
SELECT added('c', :n, :x) AS c \gset
SELECT ends('a', 'completed') \g /dev/null
SELECT is(undo(run('retry', :n)), '1 0', 'a job that was not needed is retried and taken back');
SELECT ends('x', 'completed') \g /dev/null
SELECT is(state_of(:c), 'ready', 'it counts as completed for the jobs after it');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT added('b', :a) AS b \gset
SELECT ends('a', 'failed') \g /dev/null
SELECT is(undo(run('retry', :b)), '1 0', 'a job that was cancelled because of another, too');
SELECT pulse.retry_job(:a) \g /dev/null
SELECT is((SELECT waits_on FROM pulse.job WHERE id = :b), :a::bigint,
  'it waits again once that one is retried');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT (pulse.add_job_after(ARRAY[:a], 'p', starts_when => 'failed')).id AS p \gset
SELECT (pulse.add_job_after(ARRAY[:p], 'n', starts_when => 'failed')).id AS n \gset
SELECT ends('a', 'completed') \g /dev/null
SELECT pulse.retry_job(:p) \g /dev/null
SELECT is(undo(run('retry', :n)), '1 0',
  'and one that was not needed, beside a parent that was retried before it');
SELECT is(state_of(:n), 'cancelled', 'which it is no more, as before');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT (pulse.add_job_after(ARRAY[:a], 'b', job_key => 'taken')).id AS b \gset
SELECT ends('a', 'failed') \g /dev/null
SELECT (pulse.add_job('d', job_key => 'taken')).id AS d \gset
SET client_min_messages = warning;
SELECT pulse.retry_job(:a) \g /dev/null
RESET client_min_messages;
SELECT ends('d', 'completed') \g /dev/null
SELECT is(undo(run('retry', :b)), '1 0',
  'and one whose key was taken when its parent was retried');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all() \g /dev/null

SELECT max(id) AS b, min(id) AS a FROM pulse.add_flow('[
  {"key": "a", "identifier": "a"}, {"identifier": "b", "after": ["a"]}]') \gset
SELECT is(undo(run('cancel', :a, :b)), '2 0', 'a flow is cancelled and comes back');
SELECT ends('a', 'completed', '{"from": "a"}') \g /dev/null
SELECT matches((SELECT c.parents::text FROM pulse.claim(:ann) AS c), '"result":{"from": "a"}',
  'results reach the jobs after');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT (pulse.add_job_after(ARRAY[:a], 'b', start_by => now() + interval '10 s')).id AS b \gset
SELECT is(undo(run('cancel', :a)), '1 0', 'a job comes back with its parent');
SELECT travel('11 s');
SELECT pulse.sweep() \g /dev/null
SELECT is(state_of(:b), 'expired', 'and has to start by the same time');
SELECT travel('0');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT (pulse.add_job_after(ARRAY[:a], 'b', starts_when => 'failed')).id AS b \gset
SELECT (pulse.add_job_after(ARRAY[:a, :b], 'n', starts_when => 'failed')).id AS n \gset
SELECT ends('a', 'completed') \g /dev/null
SELECT is(undo(run('retry', :b, :n)), '2 0', 'two jobs that were not needed, one after the other');
SELECT is((SELECT cancelled_by FROM pulse.finished_job WHERE id = :n), :b::bigint,
  'end as they had ended');
SELECT forget_all() \g /dev/null

-- A job that has a key may wait for a younger one.
SELECT given_job('old', job_key => 'k') AS child \gset
SELECT added('young') AS parent \gset
SELECT pulse.add_job_after(ARRAY[:parent], 'child', job_key => 'k', starts_when => 'ended')
 \g /dev/null
SELECT is(undo(run('cancel', :child, :parent)), '2 0', 'a job comes back with a younger parent');
SELECT is((SELECT waits_on FROM pulse.job WHERE id = :child), :parent::bigint,
  'and does not start before it has ended');
SELECT forget_all() \g /dev/null
SELECT given_job('old', job_key => 'k') AS child \gset
SELECT added('young') AS parent \gset
SELECT pulse.add_job_after(ARRAY[:parent], 'child', job_key => 'k') \g /dev/null
SELECT ends('young', 'failed') \g /dev/null
SELECT is(undo(run('retry', :child, :parent)), '2 0', 'both are retried, and end again');
SELECT is((SELECT cancelled_by FROM pulse.finished_job WHERE id = :child), :parent::bigint,
  'one because of the other');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all() \g /dev/null

SELECT added('done') AS done \gset
SELECT added('a') AS a \gset
SELECT added('b', :a, :done) AS b \gset
SELECT run('cancel', :b) AS op \gset
SELECT ends('done', 'completed') \g /dev/null
SELECT ends('a', 'completed') \g /dev/null
SELECT is(undo(:op), '1 0', 'a job comes back whose parents have completed since');
SELECT is(state_of(:b), 'ready', 'and starts');
SELECT forget_all() \g /dev/null

SELECT added('x') AS x \gset
SELECT added('p') AS p \gset
SELECT added('c', :x, :p) AS c \gset
SELECT ends('x', 'failed') \g /dev/null
SELECT is((SELECT waits_on FROM pulse.job WHERE id = :c), :p::bigint,
  'given a job that is to be cancelled once a live parent has ended');
SELECT is(undo(run('cancel', :p)), '1 0', 'that parent is cancelled and comes back');
SELECT is((SELECT waits_on FROM pulse.job WHERE id = :c), :p::bigint, 'the job waits as before');
SELECT forget_all() \g /dev/null

SELECT added('p') AS p \gset
SELECT (pulse.add_job_after(ARRAY[:p], 'c', job_key => 'k')).id AS c \gset
SELECT ends('p', 'failed') \g /dev/null
SELECT pulse.add_job('taker', job_key => 'k') \g /dev/null
SELECT pulse.retry_job(:p) \g /dev/null
SELECT ends('taker', 'completed') \g /dev/null
SELECT undo(run('cancel', :p)) \g /dev/null
SELECT is(state_of(:c), 'cancelled', 'what was cancelled before the operation stays so');
SELECT forget_all() \g /dev/null

SET LOCAL track_functions = 'all';
SELECT added('p') AS p \gset
SELECT pulse.add_job_after(ARRAY[:p], 'c') FROM generate_series(1, 99) \g /dev/null
SELECT id AS op FROM pulse.start_operation('cancel', '{}') \gset
SELECT pulse.run_operation(:op) \g /dev/null
SELECT is((pulse.run_operation((pulse.undo_operation(:op)).id)).changed, 100::bigint,
  'a step takes back what became of a hundred jobs');
SELECT cmp_ok((SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = 'noted_ids')::int,
  '<', 500, 'an undo reads what it notes of a job a few times, however many jobs there are');
SELECT forget_all() \g /dev/null

-- --- what has moved -----------------------------------------------------------------------------

SELECT given_job('a') AS a \gset
SELECT pulse.permanently_fail_jobs(ARRAY[:a]) \g /dev/null
SELECT run('retry', :a) AS op \gset
SELECT pulse.claim(:ann) \g /dev/null
SELECT is(undo(:op), '0 1 { "it has moved since" : 1 }', 'a retried job that runs stays');
SELECT left_alone(:op, :a, 'it has moved since', 'which is noted');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all() \g /dev/null

SELECT given_job('a') AS a \gset
SELECT pulse.permanently_fail_jobs(ARRAY[:a]) \g /dev/null
SELECT run('retry', :a) AS op \gset
DO $$ BEGIN
  PERFORM pulse.add_dependency((SELECT id FROM pulse.job), ARRAY[(pulse.add_job('new')).id]);
END $$;
SELECT is(undo(:op), '0 1 { "it has moved since" : 1 }', 'so does one that waits for a new job');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all() \g /dev/null

SELECT given_job('a') AS a \gset
SELECT run('cancel', :a) AS op \gset
SELECT pulse.retry_job(:a) \g /dev/null
SELECT is(undo(:op), '0 1 { "it has moved since" : 1 }', 'a cancelled job that was retried stays');
SELECT forget_all() \g /dev/null
SELECT (given_claimed_job(:ann)).id AS a \gset
SELECT run('cancel', :a) AS op \gset
SELECT pulse.fail(j.id, j.token, 'boom') FROM pulse.job AS j \g /dev/null
SELECT is(undo(:op), '0 1 { "it has moved since" : 1 }', 'so does one that has ended so');
SELECT forget_all() \g /dev/null

-- A crash that is taken back is a change.
SELECT given_worker('eve') AS eve \gset
SELECT given_claimed_job(:eve, 'a') \g /dev/null
SELECT pulse.declare_lost(:eve, 'silent') \g /dev/null
SELECT id AS a FROM pulse.job \gset
SELECT id AS op FROM pulse.start_operation('reschedule', '{}', '{"priority": 4}') \gset
SELECT run(:op) \g /dev/null
UPDATE pulse.job SET crashes = 0;
SELECT is(undo(:op), '0 1 { "it has moved since" : 1 }',
  'a job whose worker has come back keeps the crash that this took from it');
SELECT forget_all() \g /dev/null

SELECT added('a') AS a \gset
SELECT added('b', :a) AS b \gset
SELECT ends('a', 'failed') \g /dev/null
SELECT run('retry', :b) AS op \gset
SELECT pulse.retry_job(:a) \g /dev/null
SELECT is(undo(:op), '0 1 { "what it waited for has moved since" : 1 }',
  'a job is not cancelled because of one that was retried');
SELECT is(state_of(:b), 'ready', 'it stays');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all() \g /dev/null
SELECT added('a') AS a \gset
SELECT (pulse.add_job_after(ARRAY[:a], 'b', starts_when => 'failed')).id AS b \gset
SELECT (pulse.add_job_after(ARRAY[:b], 'n', starts_when => 'failed')).id AS n \gset
SELECT ends('a', 'completed') \g /dev/null
SELECT is(state_of(:n), 'cancelled', 'given a job that was not needed, after another such');
SELECT run('retry', :n) AS op \gset
SELECT pulse.retry_job(:b) \g /dev/null
SELECT is(undo(:op), '0 1 { "what it waited for has moved since" : 1 }',
  'a job is not unneeded once what it waited for is live again');
SELECT forget_all() \g /dev/null

-- --- what cannot come back ----------------------------------------------------------------------

SELECT given_job('a', job_key => 'k') AS a \gset
SELECT added('b', :a) AS b \gset
SELECT run('cancel', :a) AS op \gset
SELECT given_job('new', job_key => 'k') \g /dev/null
SELECT is(undo(:op), '0 1 { "another job has its key" : 1 }', 'a taken key keeps a job back');
SELECT is(state_of(:b), 'cancelled', 'and the job after it');
SELECT forget_all() \g /dev/null
SELECT added('a') AS a \gset
SELECT pulse.add_job_after(ARRAY[:a], 'b', job_key => k) FROM unnest('{k,l}'::text[]) AS k
 \g /dev/null
SELECT run('cancel', :a) AS op \gset
SELECT given_job('new', job_key => 'k') \g /dev/null
SELECT is(undo(:op), '1 1 { "another job has its key" : 1 }',
  'so does one that a job after it had, which counts');
SELECT is((SELECT string_agg(job_key, ' ') FROM pulse.job WHERE identifier = 'b'), 'l',
  'the others come back');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all() \g /dev/null

SELECT given_job('a', job_key => 'a') AS a \gset
SELECT added('b', :a) AS b \gset
SELECT run('cancel', :b) AS op \gset
SELECT pulse.add_job_after(ARRAY[:b], 'a', job_key => 'a') \g /dev/null
SELECT is(undo(:op), '0 1 { "it would wait for itself" : 1 }', 'a circle is not closed');
SELECT forget_all() \g /dev/null

SELECT added('x') AS x \gset
SELECT added('y') AS y \gset
SELECT (pulse.add_job_after(ARRAY[:x, :y], 'n', starts_when => 'failed')).id AS n \gset
SELECT ends('x', 'failed') \g /dev/null
SELECT run('cancel', :n) AS op \gset
SELECT is(pulse.delete_finished(ARRAY[:x]), 1, 'given a parent that failed and was deleted');
SELECT is(undo(:op), '0 1 { "what it waited for is not on record" : 1 }',
  'a job that waited for it is left alone');
SELECT forget_all() \g /dev/null

SET LOCAL pulse.keep_failed = '1 h';
SELECT added('a') AS a \gset
SELECT added('b', :a) AS b \gset
SELECT added('z') AS z \gset
SELECT pulse.add_job_after(ARRAY[:b, :z], 'c', starts_when => 'ended') \g /dev/null
SELECT run('cancel', :b) AS op \gset
SELECT ends('a', 'failed') \g /dev/null
SELECT travel('2 h');
SELECT pulse_internal.prune(100) \g /dev/null
SELECT is(state_of(:a), 'gone', 'given a parent that failed since, and was pruned');
SELECT is(undo(:op), '0 1 { "what it waited for is not on record" : 1 }',
  'it does not count as completed');
SELECT travel('0');
SELECT forget_all(), given_worker() \g /dev/null
SELECT added('a') AS a \gset
SELECT run('cancel', :a) AS op \gset
SELECT pulse.delete_finished(ARRAY[:a]) \g /dev/null
SELECT is(undo(:op), '0 1 { "it is not on record" : 1 }', 'nor does a job that was deleted');
SELECT added('a') AS a \gset
SELECT added('b', :a) AS b \gset
SELECT ends('a', 'failed') \g /dev/null
SELECT run('retry', :b) AS op \gset
SELECT pulse.delete_finished(ARRAY[:a]) \g /dev/null
SELECT is(undo(:op), '0 1 { "what it waited for is not on record" : 1 }',
  'nor is a job cancelled because of one without a record');
SELECT is(state_of(:b), 'ready', 'it stays');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');

SELECT * FROM finish();
ROLLBACK;
