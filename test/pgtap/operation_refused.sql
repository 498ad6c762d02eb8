-- sql/operator/operation_run.sql: an operation steps over a job whose change raises an error, and
-- counts it.
\ir support/setup.psql
SELECT plan(16);
SELECT given_worker() AS ann \gset

-- What a DBA's trigger refuses: each change of this job, with this code.
CREATE TEMP TABLE refused (id bigint, code text);
CREATE FUNCTION refuse() RETURNS trigger
  LANGUAGE plpgsql AS $$
DECLARE
  refusal text := (SELECT r.code FROM pg_temp.refused AS r WHERE r.id = coalesce(new.id, old.id));
BEGIN
  IF refusal IS NOT NULL THEN
    RAISE EXCEPTION 'not this one' USING ERRCODE = refusal;
  END IF;
  RETURN coalesce(new, old);
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION refuse();

CREATE FUNCTION run(id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat_ws(' ', o.state, o.changed, o.skipped, o.skipped_because)
    FROM pulse.run_operation(id) AS o
$$;
CREATE FUNCTION run(action text, arguments json) RETURNS text
  LANGUAGE sql AS $$
  SELECT run((pulse.start_operation(action, '{"task": "mail"}', arguments)).id)
$$;
CREATE FUNCTION undo_last() RETURNS text
  LANGUAGE sql AS $$
  SELECT run((pulse.undo_operation((SELECT max(o.id) FROM pulse.operation AS o))).id)
$$;
CREATE FUNCTION states() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(s.state, ' ' ORDER BY s.id) FROM (
    SELECT j.id, j.state::text FROM pulse.job AS j WHERE j.identifier = 'mail'
    UNION ALL
    SELECT f.id, f.state::text FROM pulse.finished_job AS f WHERE f.identifier = 'mail') AS s
$$;

SELECT given_job(), given_job() AS refused, given_job() \gset
INSERT INTO refused VALUES (:refused, 'P0001');
SELECT is(run('reschedule', '{"priority": 3}'), 'done 2 1 { "its change raises an error" : 1 }',
  'a reschedule changes all jobs but one');
SELECT is((SELECT array_agg(priority ORDER BY id) FROM pulse.job), '{3,0,3}', 'in truth');
DELETE FROM refused;
SELECT is(undo_last(), 'done 2 0', 'what was changed is taken back');
INSERT INTO refused VALUES (:refused, 'P0004');
SELECT is(run('cancel', '{}'), 'done 2 1 { "its change raises an error" : 1 }',
  'a cancel steps over a failed assertion');
SELECT is(states(), 'cancelled ready cancelled', 'in truth');
UPDATE refused SET id = (SELECT max(id) FROM pulse.finished_job);
SELECT is(undo_last(), 'done 1 1 { "its change raises an error" : 1 }', 'and so does its undo');
SELECT is(states(), 'ready ready cancelled', 'one job comes back');
SELECT is((SELECT array_agg(undo ORDER BY job_id) FROM pulse.operation_job
            WHERE operation_id = (SELECT max(undoes) FROM pulse.operation)),
  ARRAY['done', 'its change raises an error'], 'each job has its reason');
SELECT is(run('fail', '{}'), 'done 2 0', 'to fail jobs');
DELETE FROM refused;
INSERT INTO refused VALUES (:refused, 'P0001');
SELECT is(run('retry', '{}'), 'done 1 1 { "its change raises an error" : 1 }', 'to retry them');
SELECT is(states(), 'ready failed cancelled', 'in truth');
DELETE FROM refused;
SELECT is(undo_last(), 'done 1 0', 'and back');

-- What concerns the whole call.
SELECT pulse.retry_job(:refused) \g /dev/null
INSERT INTO refused VALUES (:refused, '40P01');
SELECT id AS operation FROM pulse.start_operation('cancel', '{"task": "mail"}') \gset
SELECT throws_ok(format('SELECT run(%s)', :operation), '40P01', 'not this one',
  'a deadlock ends the call');
SELECT is((SELECT state FROM pulse.operation WHERE id = :operation), 'running',
  'and the next one goes on');
DELETE FROM refused;
SELECT is(run(:operation), 'done 1 0', 'to its end');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
SELECT * FROM finish();
ROLLBACK;
