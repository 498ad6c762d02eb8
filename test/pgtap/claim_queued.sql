-- extension/claim, extension/queue: a claim takes jobs of the queues that it promotes, merged with
-- open jobs by their order (P8), and within every limit (P13).
\ir support/setup.psql
SELECT plan(29);
SELECT given_worker() AS ann, given_worker('bob') AS bob \gset

CREATE FUNCTION clear() RETURNS void
  LANGUAGE sql AS $$
  DELETE FROM pulse.job;
  DELETE FROM pulse.claim_batch;
  SELECT travel('0');
$$;
CREATE FUNCTION claimed(worker_id bigint, max_jobs int) RETURNS bigint
  LANGUAGE sql AS $$ SELECT cardinality(claimed_ids(worker_id, max_jobs)) $$;

-- --- undone claims ------------------------------------------------------------------------------
-- After the undo a claim checks the queues of all queue marks that the undone claim had taken, 32 a
-- claim. Other tests may have left more, so a worker claims until a claim gets a job.

CREATE FUNCTION claimed_at_last(worker_id bigint) RETURNS bigint[]
  LANGUAGE plpgsql AS $$
DECLARE
  claimed bigint[] := '{}';
BEGIN
  FOR i IN 1 .. 400 LOOP
    claimed := claimed_ids(worker_id, 10);
    EXIT WHEN claimed <> '{}';
  END LOOP;
  RETURN claimed;
END $$;

SELECT given_job(queue_name => 'a') AS undone \gset
SAVEPOINT before;
SELECT is(claimed_ids(:bob, 10), ARRAY[:undone]::bigint[], 'given a claim');
ROLLBACK TO before;
SELECT is(claimed_at_last(:bob), ARRAY[:undone]::bigint[], 'undone, it finds the job again');

-- --- order --------------------------------------------------------------------------------------

SELECT clear();
SELECT given_job(priority => 0) AS second, given_job(priority => 3) AS fourth,
       given_job(queue_name => 'a', priority => 1) AS third,
       given_job(queue_name => 'b', priority => -1) AS first,
       given_job(queue_name => 'b', priority => 4) AS behind \gset
SELECT is(claimed_ids(:ann, 10), ARRAY[:first, :second, :third, :fourth]::bigint[],
          'jobs of queues and others come in one order');
SELECT is(state_of(:behind), 'parked', 'what has no place waits');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

SELECT clear();
SELECT given_job(queue_name => 'a') AS queued, given_job(priority => -1) AS better,
       given_job(priority => -1) AS next \gset
SELECT is(claimed_ids(:ann, 2), ARRAY[:better, :next]::bigint[],
          'a claim that has no room for it leaves the job of a queue');
SELECT is(state_of(:queued), 'ready', 'which is open');
SELECT is(claimed_ids(:bob, 2), ARRAY[:queued]::bigint[], 'to any worker');

SELECT clear();
SELECT array_agg(given_job(queue_name => 'q' || i, priority => 3 - i % 4) ORDER BY 3 - i % 4, i)
         AS in_order FROM generate_series(1, 40) AS i \gset
SELECT is(claimed_ids(:ann, 100), :'in_order'::bigint[], 'queues come in order, not in turn');

SELECT clear();
SELECT given_job() AS first, given_job(queue_name => 'a') AS second, given_job() AS third \gset
SELECT is(claimed_ids(:ann, 10, start_jobs => 1), ARRAY[:first]::bigint[],
          'no job is prefetched past one of a queue');
SELECT is(state_of(:second), 'ready', 'which is open');
SELECT is(claimed_ids(:ann, 10), ARRAY[:second, :third]::bigint[], 'and comes next');

-- --- jobs that the worker may not have ----------------------------------------------------------

SELECT clear();
-- The tasks mail and print share a place in the claims' memory.
SELECT given_job('print', 'a') AS other, given_job('mail', 'a') AS behind \gset
SELECT is(claimed_ids(:ann, 10, ARRAY['mail', 'ink']), '{}', 'a job of another task is opened');
SELECT is(state_of(:other) || ' ' || state_of(:behind), 'ready parked', 'and keeps its place');
SELECT is(claimed_ids(:bob, 10), ARRAY[:other]::bigint[], 'for a worker that serves it');

SELECT clear();
SELECT id AS flagged FROM pulse.add_job('mail', queue_name => 'a', flags => ARRAY['eu']) \gset
SELECT is(claimed_ids(:ann, 10, forbidden_flags => ARRAY['eu']), '{}',
          'a job with a forbidden flag is opened');
SELECT is(claimed_ids(:bob, 10, forbidden_flags => ARRAY['us']), ARRAY[:flagged]::bigint[],
          'for a claim that allows the flag');

SELECT clear();
SELECT given_job(queue_name => 'a') AS suspect, given_job() AS next \gset
UPDATE pulse.job SET crashes = 2, priority = -1 WHERE id = :suspect;
SELECT is(claimed_ids(:ann, 10), ARRAY[:suspect]::bigint[],
          'a poison suspect of a queue runs isolated');
SELECT is(claimed_ids(:ann, 10), '{}', 'without a job beside it');
SELECT is(claimed_ids(:bob, 10), ARRAY[:next]::bigint[], 'on its worker');

SELECT clear();
SELECT pulse.set_task('late', expires_after => '1 min') \g /dev/null
SELECT given_job('late', 'a') AS late \gset
SELECT travel('2 min');
SELECT is(claimed_ids(:bob, 10), '{}', 'an expired job of a queue does not start');

-- --- limits -------------------------------------------------------------------------------------
-- A claim promotes in many levels, and a ring gives a queue several turns in one claim.

SELECT clear();
SELECT pulse.set_queue('t' || i, total => 1),
       given_job(queue_name => 't' || i || '/x'), given_job(queue_name => 't' || i || '/y'),
       given_job(queue_name => 't' || i || '/z') FROM generate_series(1, 12) AS i \g /dev/null
SELECT is(claimed(:bob, 60), 12::bigint, 'a job starts in each of twelve levels with a total of 1');
SELECT is(claimed(:bob, 60), 0::bigint, 'and no other beside it');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

SELECT clear();
SELECT pulse.set_queue('r' || i, rate => 1, per => '1 h', burst => 4),
       given_job(queue_name => 'r' || i || '/x'), given_job(queue_name => 'r' || i || '/y'),
       given_job(queue_name => 'r' || i || '/z') FROM generate_series(1, 12) AS i \g /dev/null
SELECT is(claimed(:bob, 60), 36::bigint, 'a claim takes a token for each job');
SELECT given_job(queue_name => 'r' || i || '/v'), given_job(queue_name => 'r' || i || '/w')
  FROM generate_series(1, 12) AS i \g /dev/null
SELECT is(claimed(:bob, 60), 12::bigint, 'and no second one');

SELECT clear();
SELECT pulse.set_queue('f', fair => true), pulse.set_queue('f/*', 3),
       (SELECT count(given_job(queue_name => 'f/a')) FROM generate_series(1, 5)) \g /dev/null
SELECT is(claimed(:bob, 10), 3::bigint, 'a queue that has several turns fills its places');
SELECT is(claimed(:bob, 10), 0::bigint, 'and no more');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
