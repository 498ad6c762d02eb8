-- sql/monitor/verify.sql: the promises as queries. Empty is good; each kind of corruption is named.
\ir support/setup.psql
SELECT plan(59);

SELECT expect_function('verify', '', 'TABLE(promise text, job_id bigint, detail text)', 'volatile',
  'definer');
SELECT is_empty('SELECT * FROM pulse.verify()', 'an empty queue keeps all promises');

-- --- healthy states -----------------------------------------------------------------------------

-- One job in each state that the functions can bring it to, and each way there.
SET LOCAL pulse.keep_completed = -1;
SELECT given_worker() AS ann \gset
SELECT given_job() AS ready \gset
SELECT (pulse.add_job('mail', run_at => now() + interval '1 day')).id AS future \gset
SELECT given_job('mail', 'post') AS opened \gset
SELECT given_job('mail', 'post') AS parked \gset
SELECT pulse.pause_queue('paused') \g /dev/null
SELECT given_job('mail', 'paused') AS paused \gset
SELECT id AS running FROM given_claimed_job(:ann) \gset
SELECT id AS queued FROM given_claimed_job(:ann, 'mail', 'busy') \gset
SELECT given_job('mail', 'busy') AS behind \gset
SELECT pulse.complete(id, token) FROM given_claimed_job(:ann) \g /dev/null
SELECT pulse.fail(id, token, 'boom') FROM given_claimed_job(:ann) \g /dev/null
SELECT pulse.fail(id, token, 'boom', retry => false) FROM given_claimed_job(:ann) \g /dev/null
SELECT pulse.snooze(id, token, '1 min') FROM given_claimed_job(:ann, max_attempts => 1) \g /dev/null
SELECT pulse.release(ARRAY[id], ARRAY[token]) FROM given_claimed_job(:ann) \g /dev/null
SELECT pulse.cancel_job(given_job()) \g /dev/null
SELECT pulse.cancel_job(id) FROM given_claimed_job(:ann) \g /dev/null
SELECT id AS keyed FROM given_claimed_job(:ann, job_key => 'k') \gset
SELECT pulse.add_job('mail', job_key => 'k') \g /dev/null
SELECT id AS removed FROM given_claimed_job(:ann, job_key => 'r') \gset
SELECT pulse.remove_job('r') \g /dev/null
SELECT given_worker('victim') AS victim \gset
SELECT given_claimed_job(:victim) \g /dev/null
SELECT given_claimed_job(:victim, 'mail', 'wrecked') \g /dev/null
SELECT pulse.declare_lost(:victim, 'killed') \g /dev/null
SELECT pulse.set_task('fragile', max_crashes => 1) \g /dev/null
SELECT given_worker('victim') AS victim \gset
SELECT given_claimed_job(:victim, 'fragile') \g /dev/null
SELECT pulse.declare_lost(:victim, 'killed') \g /dev/null
SELECT given_worker('quitter') AS quitter \gset
SELECT given_claimed_job(:quitter) \g /dev/null
SELECT pulse.deregister_worker(:quitter) \g /dev/null
SELECT promote_queues();
SELECT is_empty('SELECT * FROM pulse.verify()',
  'no state that the functions lead to is a violation');
SELECT is((SELECT count(DISTINCT state)::int FROM pulse.job), 3, 'given jobs in every live state');
SELECT is((SELECT count(DISTINCT state)::int FROM pulse.finished_job), 4, 'and every finished one');
SELECT pulse.set_task('mail', max_crashes => 1) \g /dev/null
SELECT pulse.set_queue('busy', paused => true) \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'nor is a setting that has become stricter since');
SELECT pulse.reschedule_jobs(ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.state <> 'running'),
                             priority => 1) \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'however the job changes after that');
SELECT travel('2 min');
SELECT pulse.sweep() \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'nor is what a sweep makes of them later');
SELECT travel('0');
DELETE FROM pulse.job;
DELETE FROM pulse.attempt;
DELETE FROM pulse.finished_job;
DELETE FROM pulse.queue;
DELETE FROM pulse.queue_pause;
DELETE FROM pulse.task;
SET LOCAL pulse.keep_completed = 0;

-- --- corruptions --------------------------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT given_worker('bob') AS bob \gset
CREATE TEMP TABLE given (name text, id bigint);
INSERT INTO given VALUES
  ('ready', given_job()), ('opened', given_job('mail', 'post')),
  ('running', (given_claimed_job(:ann)).id), ('other', (given_claimed_job(:bob)).id),
  ('queued', (given_claimed_job(:ann, 'mail', 'busy')).id), ('behind', given_job('mail', 'busy')),
  ('paused', given_job('mail', 'paused'));
SELECT pulse.set_queue('paused', 1, true) \g /dev/null
SELECT promote_queues();
SELECT is_empty('SELECT * FROM pulse.verify()', 'given a queue without a violation');

-- One assertion: after this statement, in which $1 is the id of the job so named, verify() names
-- the promise and the job, or any where none is named. What the statement did is undone.
CREATE FUNCTION is_named(corruption text, promise text, job text, description text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  id bigint := (SELECT g.id FROM given AS g WHERE g.name = job);
  told text;
  named boolean;
BEGIN
  BEGIN
    EXECUTE corruption USING id;
    SELECT string_agg(v::text, ' '),
           bool_or(v.promise = is_named.promise AND v.job_id = coalesce(id, v.job_id))
      INTO told, named FROM pulse.verify() AS v;
    RAISE EXCEPTION 'undo' USING ERRCODE = 'ZZ000';
  EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
    NULL;
  END;
  RETURN ok(coalesce(named, false), format('%s: %s', promise, description))
    || CASE WHEN named THEN ''
         ELSE E'\n' || diag('verify() says: ' || coalesce(told, 'nothing')) END;
END $$;
-- A finished job and an attempt like the live job's.
CREATE FUNCTION finish_too(job_id bigint, state text) RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO pulse.finished_job (id, identifier, payload, priority, run_at, state, attempts,
      max_attempts, crashes, revision, created_at, finished_at)
    SELECT id, identifier, payload, priority, run_at, finish_too.state::pulse.finished_state,
           attempts, max_attempts, crashes, revision, created_at, now()
      FROM pulse.job WHERE id = job_id
$$;
CREATE FUNCTION attempt_too(job_id bigint, outcome text, attempt int, token_offset int)
  RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
    SELECT id, coalesce(j.token, 1) + token_offset, attempt_too.attempt, now(), attempt_too.outcome
      FROM pulse.job AS j WHERE id = attempt_too.job_id
$$;

-- So long it looks at a job that seems stranded.
SET LOCAL pulse.sweep_interval = '1 s';
SELECT is_named(c.corruption, c.promise, c.job, c.description) FROM (VALUES
  ('SELECT finish_too($1, ''failed'')', 'P1', 'ready', 'a job is live and finished at once'),
  ('UPDATE pulse.job SET queue_name = NULL WHERE id = $1', 'P1', 'behind',
   'a job is parked without a queue, so nobody opens it'),
  ('UPDATE pulse.job SET id = id + 1000000 WHERE $1 IS NULL', 'P1', NULL,
   'an id was never given out'),
  ('UPDATE pulse.job SET token = NULL WHERE id = $1', 'P2', 'running',
   'a job runs without a token'),
  ('UPDATE pulse.job SET worker_id = NULL WHERE id = $1', 'P2', 'running',
   'a job runs without a worker'),
  ('UPDATE pulse.job SET token = 7 WHERE id = $1', 'P2', 'ready', 'a waiting job has a token'),
  ('UPDATE pulse.job SET token = 99::bigint << 40 WHERE id = $1', 'P2', 'running',
   'a token is of an epoch that has not come'),
  ('UPDATE pulse.job SET token = (SELECT j.token FROM pulse.job AS j, given AS g
     WHERE g.name = ''other'' AND j.id = g.id) WHERE id = $1', 'P2', 'running',
   'two workers claim with one token'),
  ('UPDATE pulse.job SET token = token + 1000000 WHERE id = $1', 'P2', 'running',
   'a token was never given out'),
  ('SELECT attempt_too($1, ''completed'', 1, 0)', 'P3', 'running',
   'a job runs under a token that has completed'),
  ('SELECT attempt_too($1, ''completed'', 1, 0)', 'P3', 'ready', 'a completed job waits again'),
  ('SELECT attempt_too($1, ''lost'', 1, 0)', 'P3', 'running',
   'a job runs under a token that was recovered'),
  ('SELECT attempt_too($1, ''completed'', 1, -1)', 'P3', 'other',
   'a job runs although an earlier attempt completed'),
  ('UPDATE pulse.job SET attempts = max_attempts + 1 WHERE id = $1', 'P4', 'running',
   'a job has had more attempts than it may'),
  ('UPDATE pulse.job SET attempts = max_attempts WHERE id = $1', 'P4', 'ready',
   'a job waits although its attempts are used up'),
  ('UPDATE pulse.job SET attempts = 0 WHERE id = $1', 'P4', 'running',
   'a job runs without having consumed an attempt'),
  ('UPDATE pulse.job SET attempts = -1 WHERE id = $1', 'P4', 'ready', 'attempts are negative'),
  ('SELECT attempt_too($1, ''lost'', 3, 0)', 'P4', 'ready', 'a recovery gave an attempt back'),
  ('UPDATE pulse.job SET crashes = 3, attempts = 3 WHERE id = $1', 'P7', 'ready',
   'a job that must be quarantined waits'),
  ('UPDATE pulse.job SET crashes = 2 WHERE id = $1', 'P7', 'running',
   'a job crashed more often than it was tried'),
  ('UPDATE pulse.job SET queue_name = ''busy'' WHERE id = $1', 'P8', 'running',
   'two jobs of a queue run at once'),
  ('UPDATE pulse.job SET state = ''ready'' WHERE id = $1', 'P8', 'paused',
   'a paused queue has an open job'),
  ('UPDATE pulse.job SET queue_name = ''post'', state = ''ready'' WHERE id = $1', 'P8', 'ready',
   'a queue has opened more jobs than may run'),
  ('UPDATE pulse.job SET queue_name = ''idle'', run_at = now() - interval ''1 hour'',
     updated_at = now() - interval ''1 hour'' WHERE id = $1', 'P8', 'behind',
   'a due job is stranded behind an idle queue'),
  ('UPDATE pulse.job SET queue_name = ''post'', priority = -9, run_at = now() - interval ''1 hour'',
     updated_at = now() - interval ''1 hour'' WHERE id = $1', 'P8', 'behind',
   'a queue has opened another job than its lowest due one'))
  AS c (corruption, promise, job, description);
SELECT is_empty('SELECT * FROM pulse.verify()', 'all of that was undone');

-- Finished jobs.
INSERT INTO given VALUES ('failed', (given_claimed_job(:ann, 'ink')).id);
SELECT pulse.fail(id, token, 'boom', retry => false) FROM pulse.held(:ann)
 WHERE identifier = 'ink' \g /dev/null
SELECT is_named(c.corruption, c.promise, 'failed', c.description) FROM (VALUES
  ('UPDATE pulse.finished_job SET attempts = max_attempts + 1 WHERE id = $1', 'P4',
   'a finished job has had more attempts than it may'),
  ('UPDATE pulse.finished_job SET state = ''quarantined'', crashes = 0 WHERE id = $1', 'P7',
   'a job is quarantined without a crash'),
  ('WITH t AS (SELECT generate_series(1, 2) AS token)
    INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
    SELECT $1, token, token, now(), ''completed'' FROM t', 'P3', 'a job has completed twice'))
  AS c (corruption, promise, description);
SELECT is_empty('SELECT * FROM pulse.verify()', 'all of that was undone too');

-- Jobs that wait for others, and ends because of others.
SET LOCAL pulse.keep_completed = -1;
INSERT INTO given SELECT f.key, f.id FROM pulse.add_flow('[
  {"key": "a", "identifier": "ends"}, {"key": "c", "identifier": "x", "after": ["a"]},
  {"key": "n", "identifier": "x", "after": ["a"], "starts_when": "failed"},
  {"key": "live", "identifier": "x"}, {"key": "waits", "identifier": "x", "after": ["live"]},
  {"key": "b", "identifier": "ends"}, {"key": "d", "identifier": "x", "after": ["b"]},
  {"key": "u", "identifier": "x", "after": ["b"], "starts_when": "failed"}]') AS f;
SELECT pulse.claim(:ann, 2, '{ends}') \g /dev/null
SELECT pulse.complete(j.id, j.token) FROM pulse.job AS j JOIN given AS g USING (id)
 WHERE g.name = 'b' \g /dev/null
SELECT pulse.fail(j.id, j.token, 'boom', retry => false)
  FROM pulse.job AS j JOIN given AS g USING (id) WHERE g.name = 'a' \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT string_agg(state_of(g.id), ' ' ORDER BY g.name) FROM given AS g
            WHERE g.name IN ('a', 'c', 'n', 'b', 'd', 'u')),
  'failed completed cancelled ready ready cancelled', 'given ends because of others');
SELECT is_empty('SELECT * FROM pulse.verify()', 'these are no violation');
SELECT is_named(c.corruption, 'P14', c.job, c.description) FROM (VALUES
  ('UPDATE pulse.finished_job SET state = ''completed'' WHERE id =
      (SELECT f.cancelled_by FROM pulse.finished_job AS f WHERE f.id = $1)', 'c',
   'a job is cancelled because of one that completed'),
  ('UPDATE pulse.finished_job SET starts_when = ''ended'' WHERE id = $1', 'c',
   'a job is cancelled that asks for any end'),
  ('UPDATE pulse.finished_job SET starts_when = NULL WHERE id = $1', 'c',
   'a job is cancelled because of another, and never waited'),
  ('UPDATE pulse.finished_job SET cancelled_by = NULL WHERE id = $1', 'c',
   'what a job waited for is on record, and no retry of it comes back to the job'),
  ('DELETE FROM pulse.finished_job WHERE id = $1', 'c', 'it is on record without the job'),
  ('DELETE FROM pulse.dependency WHERE child_id = $1', 'c',
   'what a job waited for is not on record, so it does not come back'),
  ('UPDATE pulse.finished_job SET state = ''failed'' WHERE id =
      (SELECT f.cancelled_by FROM pulse.finished_job AS f WHERE f.id = $1)', 'u',
   'a job was not needed after one that failed'),
  ('WITH d AS (DELETE FROM pulse.dependency AS d WHERE d.child_id = $1)
    UPDATE pulse.finished_job SET cancelled_by = NULL WHERE id = $1', 'u',
   'a job that was not needed counts as cancelled'),
  ('UPDATE pulse.job SET keeps_result = NULL WHERE id = $1', 'live',
   'a job of the same flow gets no result'),
  ('UPDATE pulse.job SET waits_on = NULL, state = ''ready'' WHERE id = $1', 'waits',
   'a job goes before what it waits for has ended'),
  ('UPDATE pulse.job SET state = ''ready'' WHERE id = $1', 'waits', 'a job runs although it waits'))
  AS c (corruption, job, description);
SELECT is_empty('SELECT * FROM pulse.verify()', 'all of that was undone as well');

-- A parent may end anew after a job that was cancelled because of it.
SELECT pulse.complete_jobs(ARRAY(SELECT g.id FROM given AS g WHERE g.name = 'a')) \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'a completion by hand comes later');

SELECT * FROM finish();
ROLLBACK;
