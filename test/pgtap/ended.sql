-- sql/monitor/ended.sql: single jobs as observers see them, and the deletion of finished ones.
\ir support/setup.psql
SELECT plan(25);

SELECT has_view('pulse', name, format('pulse.%s is a view', name))
  FROM unnest(ARRAY['running_jobs', 'ended_jobs', 'ended_by_hour']) AS name;
SELECT expect_function('delete_finished',
  'job_ids bigint[] DEFAULT NULL::bigint[], older_than interval DEFAULT NULL::interval, '
  'state pulse.finished_state DEFAULT NULL::pulse.finished_state, max_jobs integer DEFAULT 10000',
  'integer', 'volatile', 'definer');

-- --- running_jobs -------------------------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT id AS running FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT given_job() \g /dev/null
SELECT pulse.cancel_job(:running, 'not needed') \g /dev/null
SELECT answers('SELECT id, identifier, queue_name, attempts::int, worker,
                       cancel_requested_at IS NOT NULL FROM pulse.running_jobs',
  ROW(:running::bigint, 'mail', 'post', 1, 'ann', true),
  'a running job stands there with its worker, and whether it is to end');
INSERT INTO pulse.job (identifier, run_at, payload)
SELECT 'bulk', now(), '{}' FROM generate_series(1, 5000);
ANALYZE pulse.job;
CREATE FUNCTION plan_of(query text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  line text;
  lines text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
    lines := lines || line || E'\n';
  END LOOP;
  RETURN lines;
END $$;
SELECT unalike(plan_of('SELECT * FROM pulse.running_jobs'), '%Seq Scan on job%',
  'it is found without reading the waiting ones');
DELETE FROM pulse.job WHERE identifier = 'bulk';

-- --- ended_jobs, ended_by_hour ------------------------------------------------------------------

SET LOCAL pulse.keep_completed = -1;
SELECT pulse.complete(id, token) FROM given_claimed_job(:ann, 'ink') \g /dev/null
SELECT pulse.fail(id, token, 'secret', retry => false), id AS failed
  FROM given_claimed_job(:ann, 'ink') \gset
SELECT pulse.fail(id, token, 'secret', retry => false)
  FROM given_claimed_job(:ann, 'pen') \g /dev/null
SELECT given_job('ink') AS cancelled \gset
SELECT pulse.cancel_job(:cancelled) \g /dev/null
SELECT is((SELECT count(*)::int FROM pulse.ended_jobs), 3, 'jobs without success are listed');
SELECT answers(format('SELECT identifier, state, attempts::int FROM pulse.ended_jobs
                        WHERE id = %s', :failed), ROW('ink', 'failed', 1), 'each with its end');
SELECT answers($$SELECT jobs, hour = date_trunc('hour', last_finished_at)
                   FROM pulse.ended_by_hour WHERE identifier = 'ink' AND state = 'failed'$$,
  ROW(1::bigint, true), 'and counted by task, state and hour');
SELECT is((SELECT sum(jobs)::int FROM pulse.ended_by_hour), 3, 'so that none is missing');

-- --- delete_finished ----------------------------------------------------------------------------

SELECT refuses('SELECT pulse.delete_finished()', 'PU004', 'a deletion needs a condition');
SELECT refuses('SELECT pulse.delete_finished(older_than => ''0'', max_jobs => 0)', 'PU004',
  'and a bound');
SELECT is(pulse.delete_finished(older_than => '1 hour'), 0, 'younger jobs stay');
SELECT is(pulse.delete_finished(ARRAY[:failed, -1]), 1, 'jobs go by id');
SELECT is_empty(format('SELECT FROM pulse.finished_job WHERE id = %s', :failed), 'those ids only');
SELECT is(pulse.delete_finished(state => 'cancelled', older_than => '0'), 1,
  'or by state and age');
SELECT is(pulse.delete_finished(older_than => '0', max_jobs => 1), 1, 'no more than max_jobs');
SELECT is((SELECT count(*)::int FROM pulse.finished_job), 1, 'the rest is for the next call');
SELECT is(pulse.delete_finished(older_than => '0'), 1, 'which deletes it');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
