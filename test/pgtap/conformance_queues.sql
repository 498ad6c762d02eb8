-- What users of Graphile Worker know of queues, and what claims cost where theirs grow with what
-- nobody can run. Its timings with several processes are in test/e2e/queue_handover.pl.
\ir support/setup.psql
SELECT plan(19);

SELECT given_worker('w' || n) AS worker FROM generate_series(1, 5) AS n \g /dev/null
SELECT array_agg(id ORDER BY id) AS workers FROM pulse.worker \gset

-- What one claim costs, in what EXPLAIN calls it.
CREATE FUNCTION claim_cost(worker_id bigint, what text) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON) SELECT * FROM pulse.claim(%s)',
                 worker_id) INTO plan;
  RETURN CASE what WHEN 'rows' THEN (plan->0->'Plan'->>'Actual Rows')::numeric
           WHEN 'records' THEN (plan->0->'Plan'->>'WAL Records')::bigint
           ELSE (plan->0->'Plan'->>'Shared Hit Blocks')::bigint
              + (plan->0->'Plan'->>'Shared Read Blocks')::bigint END;
END $$;

-- --- one queue ----------------------------------------------------------------------------------

SELECT given_job('t', 'q') FROM generate_series(1, 12) \g /dev/null
SELECT promote_queues();
SELECT is((SELECT count(*)::int FROM unnest(:'workers'::bigint[]) AS w,
                  unnest(claimed_ids(w, 12)) AS claimed), 1,
  'five workers that ask for twelve jobs of one queue get one');
SELECT is((SELECT count(*)::int FROM pulse.job WHERE state = 'running'), 1, 'which runs alone');
DELETE FROM pulse.job;

CREATE FUNCTION free_beside(waiting int) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  free bigint[];
BEGIN
  PERFORM given_job('t', 'q', priority => -1) FROM generate_series(1, waiting);
  free := ARRAY(SELECT given_job('t') FROM generate_series(1, 4));
  PERFORM promote_queues();
  RETURN (SELECT format('%s, of which %s free', count(*), count(*) FILTER (WHERE id = ANY (free)))
            FROM pulse.claim((SELECT min(id) FROM pulse.worker), 6));
END $$;
SELECT is(free_beside(8), '5, of which 4 free',
  'eight jobs that wait in a queue keep no free job from a claim of six');
DELETE FROM pulse.job;
SELECT is(free_beside(1000), '5, of which 4 free', 'nor do a thousand');
DELETE FROM pulse.job;

-- --- several queues -----------------------------------------------------------------------------

SELECT given_job('t', 'q' || n % 2) FROM generate_series(1, 6) AS n \g /dev/null
SELECT promote_queues();
CREATE FUNCTION queue_of_next(worker_id bigint) RETURNS text
  LANGUAGE sql AS $$ SELECT queue_name FROM pulse.claim(worker_id) $$;
SELECT (:'workers'::bigint[])[1] AS ann, (:'workers'::bigint[])[2] AS bob \gset
SELECT isnt(queue_of_next(:ann), queue_of_next(:bob), 'two workers serve two queues');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SELECT promote_queues();
SELECT is(queue_of_next(:ann), (SELECT DISTINCT queue_name FROM pulse.finished_job
                                 UNION SELECT DISTINCT j.queue_name FROM pulse.job AS j
                                  WHERE j.state = 'parked'
                                    AND j.queue_name <> (SELECT queue_name FROM pulse.held(:bob))),
  'and both have progress while each has a backlog');
DELETE FROM pulse.job;
SELECT given_job('t', 'q' || n) FROM generate_series(1, 5) AS n \g /dev/null
SELECT promote_queues();
SELECT is((SELECT count(*)::int FROM unnest(:'workers'::bigint[]) AS w,
                  unnest(claimed_ids(w)) AS claimed), 5,
  'five queues with one job each keep five workers busy');
SELECT is((SELECT count(DISTINCT worker_id)::int FROM pulse.job WHERE state = 'running'), 5,
  'one each');
DELETE FROM pulse.job;

-- --- what a claim costs -------------------------------------------------------------------------

SELECT given_worker('late', '{later}') AS late \gset
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('later', NULL, NULL, pg_catalog.now() + interval '1 day', NULL, NULL, NULL, NULL)
         ::pulse.job_spec FROM generate_series(1, 50000) AS n)) \g /dev/null
SELECT is(claim_cost(:late, 'rows'), 0::bigint, 'given 50,000 jobs of the future');
SELECT cmp_ok(claim_cost(:late, 'blocks'), '<', 50::bigint,
  'a claim that finds nothing touches fewer than 50 buffers');
SELECT is(claim_cost(:late, 'records'), 0::bigint, 'and writes nothing');
DELETE FROM pulse.job;
-- Not more queues: what marks them outlives this test.
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('t', NULL, 'q' || n % 200, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 40000) AS n)) \g /dev/null
SELECT promote_queues();
SELECT is(claim_cost(:ann, 'rows'), 1::bigint, 'given 200 queues with 200 jobs each');
SELECT cmp_ok(claim_cost(:ann, 'records'), '<', 20::bigint,
  'a claim writes fewer than 20 WAL records');
SELECT cmp_ok((SELECT count(*) FROM pulse.job WHERE state = 'parked'), '>', 35000::bigint,
  'while almost all of them wait');
DELETE FROM pulse.job;

-- --- what is different: nothing is kept for a queue or a task that has no job -------------------

SELECT given_job('t', 'q') AS job \gset
SELECT pulse.remove_job('none') \g /dev/null
SELECT is(rows_of('queue'), 0::bigint, 'a queue is stored only when it has settings');
SELECT is(rows_of('task'), 0::bigint, 'nor is a task, so there is nothing to clean up');
SELECT is((SELECT count(*)::int FROM pg_proc WHERE pronamespace = 'pulse'::regnamespace
             AND proname ~ 'cleanup|gc'), 0, 'and no function that does');
DELETE FROM pulse.job;
SELECT given_job('t', 'q') AS job \gset
SELECT promote_queues();
SELECT is(claimed_ids(:ann), ARRAY[:job]::bigint[],
  'a task whose last job has gone is added and claimed like a new one');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
