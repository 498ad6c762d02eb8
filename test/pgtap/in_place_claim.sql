-- extension/claim/in_place_claim.cpp, sql/worker/in_place_claim.sql: claims in place. Without
-- preloading the library, the index has every claim at once; all else that this file says holds as
-- well.
\ir support/setup.psql
SELECT plan(72);

SELECT current_setting('shared_preload_libraries') ~ 'pg_pulse' AS in_place \gset
-- The lanes of running jobs, with how many are in each.
CREATE FUNCTION lanes() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', t.index_lane, t.jobs), ', ' ORDER BY t.index_lane)
    FROM (SELECT j.index_lane, count(*) AS jobs FROM pulse.job AS j WHERE j.state = 'running'
           GROUP BY j.index_lane) AS t
$$;
-- How many jobs are listed as not ended, row by row.
CREATE FUNCTION listed() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(c.remaining_jobs || '/' || cardinality(c.job_ids), ' ' ORDER BY c.job_ids)
    FROM pulse.claim_batch AS c
$$;
-- What is true of claims in place, where there are any.
CREATE FUNCTION in_place(expected text) RETURNS text
  LANGUAGE sql AS $$
  SELECT CASE WHEN current_setting('shared_preload_libraries') ~ 'pg_pulse' THEN expected END
$$;
CREATE FUNCTION given_jobs(jobs int) RETURNS bigint[]
  LANGUAGE sql AS $$ SELECT array_agg(given_job()) FROM generate_series(1, jobs) $$;
CREATE FUNCTION tokens_of(ids bigint[]) RETURNS bigint[]
  LANGUAGE sql AS $$
  SELECT array_agg(j.token ORDER BY j.id) FROM pulse.job AS j WHERE j.id = ANY (ids)
$$;
CREATE FUNCTION completed(ids bigint[]) RETURNS bigint
  LANGUAGE sql AS $$
  SELECT count(*) FROM pulse.complete_many(ids, tokens_of(ids)) AS c WHERE c.outcome = 'accepted'
$$;
-- Forgets everything but this worker.
CREATE FUNCTION clear() RETURNS void
  LANGUAGE sql AS $$
  DELETE FROM pulse.job;
  DELETE FROM pulse.claim_batch;
  SELECT travel('0');
$$;
SELECT given_worker() AS ann, given_worker('bob') AS bob \gset

-- --- which claims --------------------------------------------------------------------------------

SELECT expect_function('pulse_internal.running_ids',
  'worker_id bigint, max_count integer DEFAULT NULL::integer', 'bigint[]', 'stable', 'invoker');
SELECT expect_function('pulse_internal.index_running', 'worker_id bigint', 'boolean', 'volatile',
                       'invoker');
SELECT expect_function('pulse_internal.forget_ended', 'worker_id bigint', 'void', 'volatile',
                       'invoker');
SELECT given_jobs(450) AS jobs \gset
SELECT n_tup_upd - n_tup_hot_upd AS followed FROM pg_stat_xact_all_tables
 WHERE relid = 'pulse.job'::regclass \gset
SELECT is(cardinality(claimed_ids(:ann, 450)), 450, 'given a claim of 450 jobs');
SELECT is(lanes(), CASE WHEN :'in_place' THEN 'o 450' ELSE 'r 450' END, 'they stay in place');
SELECT is(listed(), in_place('200/200 200/200 50/50'), 'and are listed, 200 in a row');
SELECT is(n_tup_upd - n_tup_hot_upd - :followed, CASE WHEN :'in_place' THEN 0 ELSE 450 END::bigint,
  'no index had to follow')
  FROM pg_stat_xact_all_tables WHERE relid = 'pulse.job'::regclass;
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT is((SELECT array_agg(h.id ORDER BY h.id) FROM pulse.held(:ann) AS h), :'jobs'::bigint[],
  'held() tells all of them');
SELECT is((SELECT running_jobs FROM pulse.worker_status WHERE id = :ann), 450::bigint,
  'worker_status counts them');
SELECT is((SELECT sum(running)::int FROM pulse.stats WHERE kind = 'task'), 450, 'so does stats');
SELECT
  is(cardinality(pulse_internal.running_ids(NULL)), 450,
     'who looks for all running jobs finds them');
SELECT is(cardinality(pulse_internal.running_ids(NULL, 10)), 10, 'or as many as he wants');
SELECT is(pulse_internal.running_ids(:bob), '{}'::bigint[], 'another worker has none');
SELECT is(claimed_ids(:bob, 10), '{}', 'and gets none of them');

SELECT clear();
SELECT given_jobs(2) \g /dev/null
SELECT claimed_ids(:ann, 1) \g /dev/null
SELECT is(lanes(), 'r 1', 'the job of a small claim is not worth a row: it is held at once');
SELECT clear();
SELECT given_jobs(10) \g /dev/null
SELECT given_job(job_key => 'k') \g /dev/null
SELECT claimed_ids(:ann, 20) \g /dev/null
SELECT is(lanes(), CASE WHEN :'in_place' THEN 'o 10, r 1' ELSE 'r 11' END, 'so is what has a key');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

-- --- queues --------------------------------------------------------------------------------------

SELECT clear();
SELECT given_job(queue_name => 'q') AS first, given_job(queue_name => 'q') AS second,
       given_job(queue_name => 'q') AS third \gset
SELECT is(claimed_ids(:ann, 20), ARRAY[:first]::bigint[], 'a queue gives out its first job');
SELECT is(lanes(), 'r 1', 'which leaves its lane of parked jobs, so it is held at once');
SELECT outcome FROM pulse.release(ARRAY[:first]::bigint[], tokens_of(ARRAY[:first])) \g /dev/null
SELECT pulse_internal.promote_marked(256) \g /dev/null
SELECT is(claimed_ids(:ann, 20), ARRAY[:first]::bigint[], 'once it is open');
SELECT is(lanes(), CASE WHEN :'in_place' THEN 'o 1' ELSE 'r 1' END,
          'it is claimed in place, as any other');
SELECT is(claimed_ids(:bob, 20), '{}', 'and no other beside it');
SELECT pulse.heartbeat(:ann, ARRAY[:first]) \g /dev/null
SELECT is(lanes(), 'r 1', 'a beat settles it');
SELECT is(claimed_ids(:bob, 20), '{}', 'which frees no place');
SELECT completed(ARRAY[:first]) \g /dev/null
SELECT is(claimed_ids(:bob, 20), ARRAY[:second]::bigint[], 'its end opens the next one');
SELECT pulse.fail(j.id, j.token, 'no') FROM pulse.job AS j WHERE id = :second \g /dev/null
SELECT is(claimed_ids(:ann, 20), ARRAY[:third]::bigint[], 'so does a failure');
SELECT is((SELECT index_lane FROM pulse.job WHERE id = :second), 'p',
          'which waits in its queue again');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

-- --- how they end --------------------------------------------------------------------------------

SELECT clear();
SELECT given_jobs(210) AS jobs \gset
SELECT claimed_ids(:ann, 210) \g /dev/null
SELECT is(completed((:'jobs'::bigint[])[1:150]), 150::bigint, 'given that 150 of 210 completed');
SELECT is(listed(), in_place('50/200 10/10'), 'as many are left on the list');
SELECT is(completed((:'jobs'::bigint[])[151:205]), 55::bigint, 'given 55 more');
SELECT is(listed(), in_place('5/10'), 'a row goes with its last job');
SELECT pulse.complete(j.id, j.token) FROM pulse.job AS j WHERE id = (:'jobs'::bigint[])[206]
  \g /dev/null
SELECT pulse.fail(j.id, j.token, 'no') FROM pulse.job AS j WHERE id = (:'jobs'::bigint[])[207]
  \g /dev/null
SELECT is((SELECT array_agg(h.id) FROM pulse.held(:ann) AS h), (:'jobs'::bigint[])[208:210],
  'what others end is not held any more, whatever the list says');
SELECT is((SELECT status FROM pulse.heartbeat(:ann, (:'jobs'::bigint[])[208:210])), 'alive',
  'given a beat');
SELECT is(lanes(), 'r 3', 'what still runs is held now');
SELECT is(listed(), NULL, 'and the list is empty');
SELECT is((SELECT array_agg(h.id) FROM pulse.held(:ann) AS h), (:'jobs'::bigint[])[208:210],
  'nothing else has changed');

SELECT pulse.heartbeat(:ann, '{}') \g /dev/null
SELECT is(lanes(), 'r 3', 'missing from one array they are left alone');
SELECT pulse.heartbeat(:ann, '{}') \g /dev/null
SELECT is(lanes(), NULL, 'missing from two they go back');

SELECT clear();
SELECT given_worker() AS cat \gset
SELECT given_jobs(20) AS jobs \gset
SELECT is(cardinality(claimed_ids(:cat, 10)), 10, 'given a worker that only claims');
SELECT travel('11 s');
SELECT claimed_ids(:cat, 10) \g /dev/null
SELECT is(lanes(), CASE WHEN :'in_place' THEN 'o 10, r 10' ELSE 'r 20' END,
  'what it has held for ten seconds leaves its place');
SELECT pulse.complete(h.id, h.token) FROM pulse.held(:cat) AS h \g /dev/null
SELECT given_jobs(10) AS jobs \gset
SELECT travel('22 s');
SELECT claimed_ids(:cat, 10) \g /dev/null
SELECT is(listed(), in_place('10/10'), 'and what it has ended one by one leaves its list');

SELECT clear();
SELECT given_jobs(20) AS jobs \gset
SELECT claimed_ids(:ann, 20) \g /dev/null
SELECT pulse.release(:'jobs', tokens_of(:'jobs')) \g /dev/null
SELECT is(claimed_ids(:bob, 20), :'jobs'::bigint[], 'released jobs are another worker''s at once');
SELECT is((SELECT revoked FROM pulse.heartbeat(:ann, :'jobs')), :'jobs'::bigint[],
  'and not their first one''s, who still has them on its list');
SELECT is((SELECT array_agg(h.id ORDER BY h.id) FROM pulse.held(:bob) AS h), :'jobs'::bigint[],
  'who takes nothing from the other');

-- --- recovery ------------------------------------------------------------------------------------

SELECT is((SELECT jobs FROM pulse.stale), NULL, 'nothing is stale');
SELECT travel('30 s');
SELECT is((SELECT jobs FROM pulse.stale), 20::bigint, 'the jobs of a silent worker are');
SELECT is((SELECT row(s.workers_lost, s.jobs_requeued)::text FROM pulse.sweep(15) AS s), '(3,15)',
  'a sweep recovers as many as it may');
SELECT is((SELECT jobs_requeued FROM pulse.sweep()), 5, 'the next one the rest');
SELECT is(listed(), NULL, 'the list is empty then');

SELECT clear();
SELECT given_worker() AS ann \gset
SELECT given_jobs(12) AS jobs \gset
SELECT claimed_ids(:ann, 12) \g /dev/null
SELECT pulse.deregister_worker(:ann) \g /dev/null
SELECT is(lanes(), NULL, 'an orderly end gives them back');
SELECT is(listed(), NULL, 'and leaves no list');

SELECT clear();
SELECT given_worker() AS ann \gset
SELECT pulse.set_task('mail', timeout => '5 s') \g /dev/null
SELECT given_jobs(12) AS jobs \gset
SELECT claimed_ids(:ann, 12) \g /dev/null
SELECT travel('10 s');
SELECT is((SELECT jobs_timed_out FROM pulse.sweep()), 12, 'a timeout reaches them');

SELECT clear();
SELECT given_jobs(12) AS jobs \gset
SELECT claimed_ids(:ann, 12) \g /dev/null
DELETE FROM pulse.claim_batch;
SELECT is((SELECT count(*) FROM pulse.verify() WHERE detail = 'claimed in place and not listed'),
  CASE WHEN :'in_place' THEN 12 ELSE 0 END::bigint,
  'verify() finds what is in place and on no list');

SELECT pulse.adopt_installation() \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'an adoption holds them, list or no list');
SELECT is(lanes(), 'r 12', 'so that the next sweep finds whose worker is gone');

SELECT * FROM finish();
ROLLBACK;
