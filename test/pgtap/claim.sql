-- sql/worker/claim.sql: claim hands out the best due jobs, claim_job one by its id, held repeats
-- what is held.
\ir support/setup.psql
SELECT plan(88);

SELECT expect_function('claim',
  'worker_id bigint, max_jobs integer DEFAULT 1, tasks text[] DEFAULT NULL::text[], '
  'forbidden_flags text[] DEFAULT NULL::text[], start_jobs integer DEFAULT NULL::integer',
  'SETOF pulse.claimed_job', 'volatile', 'definer');
SELECT expect_function('claim_job',
  'worker_id bigint, job_id bigint, OUT reason text, OUT job pulse.claimed_job',
  'record', 'volatile', 'definer');
SELECT expect_function('held', 'worker_id bigint', 'SETOF pulse.claimed_job', 'volatile',
  'definer');

SELECT given_worker() AS ann \gset
SELECT given_worker('bob', '{mail,ink}') AS bob \gset

-- --- what a claim does (P2, P4) ------------------------------------------------------------------

SELECT is(claimed_ids(:ann), '{}', 'a claim of an empty queue returns nothing');
SELECT (pulse.add_job('mail', '{"to": "eve"}', job_key => 'k', flags => '{f}')).id AS job \gset
SELECT token FROM pulse.claim(:ann) \gset
SELECT answers(
  'SELECT state, attempts, worker_id, token, claimed_at > now(), last_activity_at >= claimed_at
     FROM pulse.job',
  ROW('running', 1, :ann, :token, true, true),
  'a claim consumes an attempt and names its worker, its token and its time');
SELECT answers(
  format('SELECT id, identifier, payload, attempts, max_attempts, crashes, job_key, flags,
                 recovered, created_at = now() FROM pulse.held(%s)', :ann),
  ROW(:job, 'mail', '{"to": "eve"}', 1, 25, 0, 'k', '{f}'::text[], NULL, true),
  'held tells the worker what it holds');
SELECT is_empty(format('SELECT * FROM pulse.held(%s)', :bob), 'and nobody else');
SELECT is_empty('SELECT * FROM pulse.held(0)', 'an unknown worker holds nothing');
SELECT is(claimed_ids(:bob), '{}', 'a running job is not claimed again');
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT is_empty(format('SELECT * FROM pulse.held(%s)', :ann), 'a completed job is held no more');

-- --- tokens (P2) ---------------------------------------------------------------------------------

SELECT given_job() FROM generate_series(1, 3) \g /dev/null
SELECT count(*) AS jobs, count(DISTINCT token) AS tokens, max(token) AS second
  FROM pulse.claim(:ann, 2) \gset
SELECT is(:jobs || ' jobs, ' || :tokens || ' token', '2 jobs, 1 token',
  'one claim has one token, however many jobs');
SELECT cmp_ok(:second::bigint, '>', :token::bigint, 'a later claim has a greater token');
SELECT token AS third FROM pulse.claim(:ann) \gset
SELECT cmp_ok(:third::bigint, '>', :second::bigint, 'each claim has its own');
SELECT is(:third::bigint >> 40, pulse_internal.current_timeline()::bigint,
  'a token begins with the timeline of the server');
SELECT cmp_ok(:third::bigint, '<', (2 ^ 53)::bigint, 'and is exact in JSON');
SELECT is((SELECT min(token) FROM pulse.held(:ann)), :second::bigint,
  'held repeats the tokens of the claims');
DELETE FROM pulse.job;

-- --- order and selection (P8) --------------------------------------------------------------------

SELECT given_job('mail', priority => 1) AS lesser \gset
SELECT (pulse.add_job('ink', run_at => now() - interval '1 min')).id AS early \gset
SELECT (pulse.add_job('mail', run_at => now() - interval '1 min')).id AS twin \gset
SELECT given_job('paper', priority => -1) AS urgent \gset
SELECT (pulse.add_job('mail', run_at => now() + interval '1 min', priority => -9)).id
  AS future \gset
SELECT (pulse.add_job('paper', run_at => now() - interval '2 min')).id AS earliest \gset
SAVEPOINT all_waiting;
SELECT is(claimed_ids(:ann, 10), ARRAY[:urgent, :earliest, :early, :twin, :lesser]::bigint[],
  'jobs of all tasks come by priority, then run_at, then id');
SELECT is(state_of(:future), 'ready', 'a job of the future is left');
ROLLBACK TO all_waiting;
SELECT is(claimed_ids(:bob, 10), ARRAY[:early, :twin, :lesser]::bigint[],
  'a worker gets jobs of its tasks only');
ROLLBACK TO all_waiting;
SELECT is(claimed_ids(:ann, 10, '{ink,paper}'), ARRAY[:urgent, :earliest, :early]::bigint[],
  'a claim may name tasks');
ROLLBACK TO all_waiting;
SELECT is(claimed_ids(:ann, 10, '{}'), '{}', 'a claim that names no task gets nothing');
SELECT is(claimed_ids(:ann, 10, '{nobody}'), '{}', 'nor one that names a task without jobs');
SELECT is(claimed_ids(:ann, 10, '{ink,ink}'), ARRAY[:early]::bigint[],
  'a task that is named twice is served once');
ROLLBACK TO all_waiting;
SELECT is(claimed_ids(:ann, 2), ARRAY[:urgent, :earliest]::bigint[], 'max_jobs bounds a claim');
SELECT is(claimed_ids(:ann, NULL), ARRAY[:early]::bigint[], 'max_jobs of NULL is one');
ROLLBACK TO all_waiting;
SELECT travel('2 min');
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(claimed_ids(:ann, 1), ARRAY[:future]::bigint[], 'once it is due it comes in its order');
ROLLBACK TO all_waiting;
DELETE FROM pulse.job;

SELECT (pulse.add_job('mail', flags => '{de,fr}')).id AS flagged \gset
SELECT is(claimed_ids(:ann, 1, forbidden_flags => '{en,fr}'), '{}', 'a forbidden flag is skipped');
SELECT is((SELECT attempts::int FROM pulse.job), 0, 'without consuming an attempt');
SELECT is(claimed_ids(:ann, 1, forbidden_flags => '{en}'), ARRAY[:flagged]::bigint[],
  'another flag is not');
DELETE FROM pulse.job;

-- --- prefetch (P7) -------------------------------------------------------------------------------

SELECT given_job('mail', max_attempts => 1) AS last_attempt \gset
SELECT given_job('mail', 'post') AS queued \gset
SELECT given_job('mail') AS plain \gset
SELECT given_job('mail') AS plain2 \gset
SELECT promote_queues();
SAVEPOINT prefetch;
SELECT is(claimed_ids(:ann, 10), ARRAY[:last_attempt, :queued, :plain, :plain2]::bigint[],
  'what is started at once may be on its last attempt or in a queue');
ROLLBACK TO prefetch;
SELECT is(claimed_ids(:ann, 10, start_jobs => 1), ARRAY[:last_attempt]::bigint[],
  'a queued job is not prefetched, and no job is prefetched past it');
ROLLBACK TO prefetch;
SELECT is(claimed_ids(:ann, 10, start_jobs => 0), '{}', 'nor past one on its last attempt');
ROLLBACK TO prefetch;
SELECT is(claimed_ids(:ann, 3, start_jobs => 2), ARRAY[:last_attempt, :queued, :plain]::bigint[],
  'the first start_jobs rows are those that start');
ROLLBACK TO prefetch;
SELECT is(claimed_ids(:ann, 10, '{mail}', forbidden_flags => '{de}', start_jobs => 2),
  ARRAY[:last_attempt, :queued, :plain, :plain2]::bigint[], 'behind them the rest is prefetched');
ROLLBACK TO prefetch;
UPDATE pulse.job SET flags = '{de}' WHERE id IN (:last_attempt, :queued);
SELECT is(claimed_ids(:ann, 10, forbidden_flags => '{de}', start_jobs => 0),
  ARRAY[:plain, :plain2]::bigint[], 'a job with a forbidden flag stops no prefetch');
ROLLBACK TO prefetch;
DELETE FROM pulse.job;

-- --- who may claim ------------------------------------------------------------------------------

SELECT given_job() AS job \gset
SELECT given_worker('cat') AS cat \gset
SELECT pulse.deregister_worker(:cat) \g /dev/null
SELECT refuses(format('SELECT pulse.claim(%s)', :cat), 'PU002', 'a stopped worker cannot claim');
SELECT refuses(format('SELECT pulse.claim_job(%s, %s)', :cat, :job), 'PU002',
  'nor claim a job by its id');
SELECT given_worker('dan') AS dan \gset
SELECT pulse.declare_lost(:dan, 'gone') \g /dev/null
SELECT refuses(format('SELECT pulse.claim(%s)', :dan), 'PU002', 'a lost worker cannot claim');
SELECT refuses(format('SELECT pulse.claim_job(%s, %s)', :dan, :job), 'PU002',
  'nor claim a job by its id');
SELECT refuses('SELECT pulse.claim(0)', 'PU002', 'an unknown worker cannot claim');
SELECT refuses(format('SELECT pulse.claim_job(0, %s)', :job), 'PU002', 'nor claim a job by its id');
SELECT given_worker('eve') AS eve \gset
UPDATE pulse.heartbeat SET verdict = 'draining' WHERE worker_id = :eve;
SELECT is(claimed_ids(:eve), '{}', 'a draining worker gets nothing');
SELECT isnt((SELECT reason FROM pulse.claim_job(:eve, :job)), 'claimed', 'nor a job by its id');
SET LOCAL pulse.claims = off;
SELECT refuses(format('SELECT pulse.claim(%s)', :ann), 'PU008',
  'while pulse.claims is off nobody claims');
SELECT refuses(format('SELECT pulse.claim_job(%s, %s)', :ann, :job), 'PU008',
  'nor claims a job by its id');
SELECT isnt(given_job(), NULL, 'but a job can be added');
SET LOCAL pulse.claims = on;
SELECT is(cardinality(claimed_ids(:ann, 2)), 2, 'and claimed once they are on');
DELETE FROM pulse.job;

-- --- beats --------------------------------------------------------------------------------------

CREATE FUNCTION silence_of(worker bigint) RETURNS bigint
  LANGUAGE sql AS $$
  SELECT (pulse_internal.live_now_us() - beat_live_us) / 1000000 FROM pulse.heartbeat
   WHERE worker_id = worker
$$;
SELECT travel('10 s');
SELECT claimed_ids(:ann) \g /dev/null
SELECT cmp_ok(silence_of(:ann), '>=', 10::bigint,
  'inside a transaction block a claim is no beat, for nobody would see it before the end');
SELECT travel('0');

-- --- claim_job ----------------------------------------------------------------------------------

SELECT reason, (job).id AS job, (job).token FROM pulse.claim_job(:ann, given_job()) \gset
SELECT is(:'reason'::text, 'claimed', 'claim_job claims a ready job');
SELECT answers(format('SELECT state, attempts, worker_id FROM pulse.job WHERE id = %s', :job),
  ROW('running', 1, :ann), 'like a claim does');
SELECT answers(format('SELECT reason, (job).id, (job).token, (job).attempts
                         FROM pulse.claim_job(%s, %s)', :ann, :job),
  ROW('yours', :job, :token, 1), 'its own claim is told again, with the same token');
SELECT answers(format('SELECT reason, job IS NULL FROM pulse.claim_job(%s, %s)', :bob, :job),
  ROW('running', true), 'another worker hears that it is running');
SELECT (pulse.add_job('mail', run_at => now() + interval '1 min')).id AS future \gset
SELECT answers(format('SELECT reason, job IS NULL FROM pulse.claim_job(%s, %s)', :ann, :future),
  ROW('future', true), 'a job that is not due is in the future');
SELECT given_job('mail', 'post') AS parked \gset
SELECT pulse.pause_queue('post') \g /dev/null
SELECT answers(format('SELECT reason, job IS NULL FROM pulse.claim_job(%s, %s)', :ann, :parked),
  ROW('parked', true), 'a job behind its queue is parked');
SAVEPOINT free;
SELECT pulse.resume_queue('post'), pulse_internal.reconcile_queues() \g /dev/null
SELECT reason FROM pulse.claim_job(:ann, :parked) \gset
SELECT is(:'reason'::text, 'claimed',
  'unless the queue has a place for it, which claim_job gives away first');
ROLLBACK TO free;
SELECT pulse.drain_worker(:ann) \g /dev/null
SELECT is((SELECT reason FROM pulse.claim_job(:ann, given_job())), 'draining',
  'a worker that drains hears so about a job that it could have had');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :future)), 'future',
  'and the reason of any other job');
ROLLBACK TO free;
SELECT pulse.fail(:job, :token, 'boom', retry => false) \g /dev/null
SELECT answers(format('SELECT reason, job IS NULL FROM pulse.claim_job(%s, %s)', :ann, :job),
  ROW('finished', true), 'a failed job is finished');
SELECT answers(format('SELECT reason, job IS NULL FROM pulse.claim_job(%s, 0)', :ann),
  ROW('unknown', true), 'a job that does not exist is unknown');
SELECT answers(format('SELECT reason, job IS NULL FROM pulse.claim_job(%s, NULL)', :ann),
  ROW('unknown', true), 'so is NULL');
DELETE FROM pulse.job;

-- From an owner that is gone.
SELECT id AS job, token FROM given_claimed_job(:bob) \gset
SELECT travel('12 s');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :job)), 'running',
  'an owner that was silent for less than its threshold keeps its job');
SELECT travel('25 s');
SELECT pulse.heartbeat(:ann) \g /dev/null
CREATE FUNCTION taken(worker bigint, job bigint) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  claim record;
BEGIN
  SELECT c.reason, (c.job).crashes, (c.job).recovered INTO claim
    FROM pulse.claim_job(worker, taken.job) AS c;
  RETURN (SELECT ROW(claim.reason, claim.crashes, claim.recovered, a.outcome, a.error)::text
            FROM pulse.attempt AS a WHERE a.job_id = taken.job);
END $$;
SAVEPOINT silent;
SELECT answers(
  format('SELECT reason, (job).attempts, (job).crashes, (job).token > %s
            FROM pulse.claim_job(%s, %s)', :token, :ann, :job),
  ROW('claimed', 2, 1, true), 'from one that was silent for longer it is taken');
SELECT answers(format('SELECT attempt, worker_id, token, outcome FROM pulse.attempt
                        WHERE job_id = %s', :job),
  ROW(1, :bob, :token, 'lost'), 'whose attempt is recorded as lost');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :job, :token), 'PU001',
  'and whose token is stale');
SELECT is((SELECT revoked FROM pulse.heartbeat(:bob, ARRAY[:job])), ARRAY[:job]::bigint[],
  'which its next heartbeat tells');
ROLLBACK TO silent;
SET LOCAL pulse.sweep_interval = '20s';
SELECT is((SELECT workers_lost FROM pulse.sweep(dry_run => true)), 0,
  'where the settings ask for more patience, a sweep has it');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :job)), 'running', 'and so has claim_job');
ROLLBACK TO silent;
-- The row was locked when its owner left or was declared lost, so no sweep has ended the attempt.
SELECT pulse_internal.mark_lost(:bob, 'session', 'its session ended') \g /dev/null
SELECT is(taken(:ann, :job),
  format('(claimed,1,session,lost,"worker %s (bob) was lost: its session ended")', :bob),
  'an attempt ends as in a sweep: by what its owner died of');
ROLLBACK TO silent;
SELECT pulse_internal.mark_lost(:bob, 'hand', 'unlocked by hand') \g /dev/null
SELECT is(taken(:ann, :job),
  format('(claimed,0,hand,interrupted,"worker %s (bob) was lost: unlocked by hand")', :bob),
  'one that was unlocked by hand counts no crash');
ROLLBACK TO silent;
DELETE FROM pulse.heartbeat WHERE worker_id = :bob;
UPDATE pulse.worker SET state = 'stopped', reason = 'deregistered' WHERE id = :bob;
SELECT is(taken(:ann, :job),
  format('(claimed,0,,interrupted,"worker %s (bob) was lost: deregistered")', :bob),
  'nor does one whose worker stopped in order');
ROLLBACK TO silent;
SELECT travel('0');
SELECT pulse.set_task('mail', max_crashes => 1) \g /dev/null
SELECT pulse.declare_lost(:bob, 'gone') \g /dev/null
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :job)), 'finished',
  'a job that was quarantined is finished');

-- --- every task (P8) -----------------------------------------------------------------------------

-- Of each name a future job of a better priority, and a due one; the last names are due first.
DELETE FROM pulse.job;
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('n' || i, NULL, NULL, now() + n.delay * interval '1 s', NULL, NULL, n.priority, NULL)
           ::pulse.job_spec
    FROM generate_series(101, 500) AS i,
         LATERAL (VALUES (-1, 600), (i % 3, -i)) AS n (priority, delay)
)) \g /dev/null
SELECT is(
  ARRAY(SELECT c.identifier FROM pulse.claim(given_worker('eve'), 400) AS c),
  ARRAY(SELECT j.identifier FROM pulse.job AS j WHERE j.priority >= 0
         ORDER BY j.priority, j.run_at, j.id),
  'a worker that serves every task has the jobs of all names in order');

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
