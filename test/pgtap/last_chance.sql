-- sql/recovery/sweep.sql and sql/worker/claim.sql: a crash costs little. A job that was present at
-- all but the last of the worker deaths it may be present at gets its last chance alone, then it is
-- quarantined.
\ir support/setup.psql
SELECT plan(44);

CREATE FUNCTION job_now(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('%s, attempts %s, crashes %s', state_of(job_id), attempts, crashes)
    FROM (SELECT id, attempts, crashes FROM pulse.job
          UNION ALL SELECT id, attempts, crashes FROM pulse.finished_job) AS j
   WHERE j.id = job_now.job_id
$$;
-- A job that was present at so many deaths of its worker, due again.
CREATE FUNCTION given_crashed_job(crashes int, identifier text = 'bomb') RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  added bigint := given_job(identifier);
  worker bigint;
BEGIN
  FOR n IN 1 .. crashes LOOP
    worker := given_worker('victim');
    UPDATE pulse.job SET run_at = transaction_timestamp() WHERE id = added;
    PERFORM pulse.claim_job(worker, added);
    PERFORM pulse.declare_lost(worker, 'killed');
  END LOOP;
  UPDATE pulse.job SET run_at = transaction_timestamp() WHERE id = added;
  RETURN added;
END $$;

-- --- crashes are counted (P7) --------------------------------------------------------------------

SELECT given_crashed_job(1) AS job \gset
SELECT is(job_now(:job), 'ready, attempts 1, crashes 1', 'each death of its worker is counted');
SELECT given_worker() AS ann \gset
SELECT token FROM pulse.claim(:ann) \gset
SELECT pulse.fail(:job, :token, 'boom') \g /dev/null
SELECT is(job_now(:job), 'ready, attempts 2, crashes 1', 'a failure is no crash');
DELETE FROM pulse.job;
SELECT given_crashed_job(1) AS job \gset
SELECT token FROM pulse.claim(:ann) \gset
SELECT answers(format('SELECT outcome FROM pulse.release(ARRAY[%s], ARRAY[%s])', :job, :token),
  ROW('accepted'), 'a job that crashed may be released');
SELECT is(job_now(:job), 'ready, attempts 1, crashes 1',
  'which gives the attempt back, not the crash');
SET LOCAL pulse.keep_completed = -1;
SELECT token FROM pulse.claim(:ann) \gset
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT is((SELECT crashes::int FROM pulse.finished_job WHERE id = :job), 0,
  'success clears the count');
SET LOCAL pulse.keep_completed = 0;

-- --- quarantine (P7) -----------------------------------------------------------------------------

SELECT given_crashed_job(3) AS job \gset
SELECT is(job_now(:job), 'quarantined, attempts 3, crashes 3', 'at max_crashes it is quarantined');
SELECT matches(last_error, '\(victim\) was lost: killed', 'with the reason')
  FROM pulse.finished_job WHERE id = :job;
SELECT is(claimed_ids(:ann), '{}', 'and never claimed again');
SELECT given_crashed_job(2) AS job \gset
SELECT claimed_ids(:ann) \g /dev/null
SELECT travel('30 s');
SELECT answers('SELECT workers_lost > 0, jobs_requeued, jobs_failed, jobs_quarantined
                  FROM pulse.sweep()',
  ROW(true, 0, 0, 1), 'a sweep counts what it quarantines');
SELECT travel('0');
SELECT pulse.set_task('fragile', max_crashes => 1) \g /dev/null
SELECT pulse.set_task('sturdy', max_crashes => 5) \g /dev/null
SELECT is(job_now(given_crashed_job(1, 'fragile')), 'quarantined, attempts 1, crashes 1',
  'a task may allow fewer crashes');
SELECT is(job_now(given_crashed_job(4, 'sturdy')), 'ready, attempts 4, crashes 4', 'or more');
SET LOCAL pulse.max_crashes = -1;
SELECT is(job_now(given_crashed_job(6)), 'ready, attempts 6, crashes 6',
  'where crashes do not count nothing is quarantined');
SELECT given_worker() AS ann \gset
SELECT given_job() AS plain \gset
SELECT is(cardinality(claimed_ids(:ann, 10, '{bomb,mail}')), 2, 'nor given alone');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, given_crashed_job(4))), 'claimed',
  'neither by its id');
SET LOCAL pulse.max_crashes = 3;
DELETE FROM pulse.job;

-- --- alone (P7) ----------------------------------------------------------------------------------

SELECT given_worker('ann') AS ann \gset
SELECT given_worker('bob') AS bob \gset
SELECT given_crashed_job(2) AS suspect \gset
SELECT given_job() AS plain \gset
SELECT given_job() AS plain2 \gset
SAVEPOINT suspected;
SELECT is(claimed_ids(:ann, 10), ARRAY[:suspect]::bigint[],
  'an idle worker gets a suspect and nothing with it');
SELECT is(claimed_ids(:ann, 10), '{}', 'and nothing else while it runs');
SAVEPOINT alone;
SELECT isnt((SELECT reason FROM pulse.claim_job(:ann, :plain)), 'claimed',
  'not even a job by its id');
ROLLBACK TO alone;
SELECT is(claimed_ids(:bob, 10), ARRAY[:plain, :plain2]::bigint[], 'others work on');
SELECT token FROM pulse.held(:ann) \gset
SELECT pulse.complete(:suspect, :token) \g /dev/null
SELECT given_job() AS later \gset
SELECT is(claimed_ids(:ann, 10), ARRAY[:later]::bigint[],
  'once the suspect has ended, its worker works on too');
ROLLBACK TO suspected;

SELECT is(claimed_ids(:ann, 1, '{mail}'), ARRAY[:plain]::bigint[], 'given a busy worker');
SELECT is(claimed_ids(:ann, 10), ARRAY[:plain2]::bigint[], 'it is not given the suspect');
SELECT is((SELECT attempts::int FROM pulse.job WHERE id = :suspect), 2,
  'which loses no attempt by that');
SAVEPOINT busy;
SELECT isnt((SELECT reason FROM pulse.claim_job(:ann, :suspect)), 'claimed',
  'nor does it get it by its id');
ROLLBACK TO busy;
SELECT is(claimed_ids(:bob, 10), ARRAY[:suspect]::bigint[], 'an idle one is');
ROLLBACK TO suspected;
SELECT is(claimed_ids(:ann, 10, start_jobs => 0), ARRAY[:plain, :plain2]::bigint[],
  'a suspect is not prefetched');
ROLLBACK TO suspected;

-- A job whose owner dies silently at its last crash but one becomes a suspect by that.
UPDATE pulse.job SET attempts = 1, crashes = 1 WHERE id = :suspect;
SELECT claimed_ids(:bob, 1, '{bomb}') \g /dev/null
SELECT travel('30 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT claimed_ids(:ann, 1, '{mail}') \g /dev/null
SELECT isnt((SELECT reason FROM pulse.claim_job(:ann, :suspect)), 'claimed',
  'nor does a busy worker get by its id what becomes a suspect by its recovery');
ROLLBACK TO suspected;
-- A suspect that sorts behind others: the claim that took those has become busy.
UPDATE pulse.job SET priority = 5 WHERE id = :suspect;
SELECT is(claimed_ids(:ann, 10), ARRAY[:plain, :plain2]::bigint[],
  'a claim that has begun to take other jobs leaves a suspect');
ROLLBACK TO suspected;
UPDATE pulse.job SET attempts = 1, crashes = 1 WHERE id = :suspect;
SELECT is(claimed_ids(:ann, 10), ARRAY[:suspect, :plain, :plain2]::bigint[],
  'a job with crashes to spare is one among many');
ROLLBACK TO suspected;
SELECT given_crashed_job(2) AS second \gset
UPDATE pulse.job SET priority = -1 WHERE crashes = 2;
SELECT is(claimed_ids(:ann, 10), ARRAY[:suspect]::bigint[],
  'given two suspects, one worker gets one');
SELECT is(claimed_ids(:bob, 10), ARRAY[:second]::bigint[], 'and another the other');
ROLLBACK TO suspected;

-- --- kept free (P7) ------------------------------------------------------------------------------

SELECT is(claimed_ids(:ann, 1, '{mail}'), ARRAY[:plain]::bigint[], 'given a busy worker');
SELECT travel('10 s');
SELECT pulse.heartbeat(w) FROM unnest(ARRAY[:ann, :bob]) AS w \g /dev/null
SELECT is(claimed_ids(:ann, 1), ARRAY[:plain2]::bigint[],
  'for the time of a threshold a suspect waits for an idle worker');
SELECT given_job() FROM generate_series(1, 5) \g /dev/null
SELECT travel('21 s');
SELECT is(claimed_ids(:ann, 10), '{}', 'then the next to ask gets nothing');
SELECT is(claimed_ids(:ann, 10, '{mail}'), '{}', 'whatever it asks for');
SAVEPOINT kept_free;
SELECT is(claimed_ids(:bob, 10), ARRAY[:suspect]::bigint[],
  'another that is idle takes the suspect');
SELECT cmp_ok(cardinality(claimed_ids(:ann, 10)), '>', 0, 'which lets the first work on');
ROLLBACK TO kept_free;
SELECT claimed_ids(:bob, 1, '{mail}') \g /dev/null
SELECT cmp_ok(cardinality(claimed_ids(:bob, 1)), '>', 0, 'one worker that is kept free is enough');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) ORDER BY id LIMIT 1 \g /dev/null
SELECT is(claimed_ids(:ann, 10), '{}', 'as long as it holds something it gets nothing');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SELECT is(claimed_ids(:ann, 10), ARRAY[:suspect]::bigint[],
  'once it is idle it gets the suspect alone');
SELECT is(claimed_ids(:ann, 10), '{}', 'and nothing with it');
ROLLBACK TO kept_free;
SELECT pulse.declare_lost(:ann, 'killed') \g /dev/null
SELECT claimed_ids(:bob, 1, '{mail}') \g /dev/null
SELECT is(claimed_ids(:bob, 10), '{}', 'when the one that was kept free dies, another is');
SELECT is(job_now(:suspect), 'ready, attempts 2, crashes 2', 'and the suspect was not present');
ROLLBACK TO kept_free;
SELECT pulse.cancel_job(:suspect) \g /dev/null
SELECT cmp_ok(cardinality(claimed_ids(:ann, 10)), '>', 0,
  'a suspect that is cancelled keeps nobody free');
ROLLBACK TO suspected;
SELECT travel('0');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
