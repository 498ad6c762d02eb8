-- sql/job/dead_letter.sql: a job that dies adds one job of the task that its own task names, in the
-- transaction of its end. No refusal of that job keeps the job from its end.
\ir support/setup.psql
SELECT plan(72);

CREATE ROLE shop;
CREATE ROLE hands;
SELECT pulse.grant_producer('shop'), pulse.grant_worker('hands') \g /dev/null

-- The states in which a job died, as its dead letters tell, the first death first; NULL: none.
CREATE FUNCTION deaths(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(j.payload ->> 'state', ' ' ORDER BY j.id)
    FROM pulse.job AS j WHERE j.dead_letter_of = job_id AND j.identifier = 'morgue'
$$;
CREATE FUNCTION letter_of(job_id bigint) RETURNS bigint
  LANGUAGE sql AS $$ SELECT max(j.id) FROM pulse.job AS j WHERE j.dead_letter_of = job_id $$;
CREATE FUNCTION claim_token(job_id bigint) RETURNS bigint
  LANGUAGE sql AS $$ SELECT (c.job).token FROM pulse.claim_job(given_worker(), job_id) AS c $$;
-- A job that fails for good, with this error.
CREATE FUNCTION given_death(task text = 'mail', error text = 'broken', payload json = NULL)
  RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  job bigint := (pulse.add_job(task, payload)).id;
BEGIN
  PERFORM pulse.fail(job, claim_token(job), error, retry => false);
  RETURN job;
END $$;
-- A job at the end of its last attempt, whose worker is `owner`.
CREATE FUNCTION given_last_attempt(owner bigint) RETURNS pulse.claimed_job
  LANGUAGE sql AS $$ SELECT given_claimed_job(owner, max_attempts => 1) $$;

-- --- the setting --------------------------------------------------------------------------------

SELECT is((pulse.set_task('mail', dead_letter => 'morgue', timeout => '1 min',
                          stall_timeout => '1 min', backoff => 'none')).dead_letter, 'morgue',
  'a task names the task of its dead letters');
SELECT is((pulse.set_task('mail', jitter => 0)).dead_letter, 'morgue', 'NULL leaves the name');
SELECT is((SELECT dead_letter FROM pulse.task_settings WHERE identifier = 'mail'), 'morgue',
  'the settings show it');
SELECT pulse.set_task('quiet', dead_letter => 'morgue') \g /dev/null
SELECT is((pulse.set_task('quiet', dead_letter => '')).dead_letter, NULL, 'an empty name ends it');
SELECT pulse.set_task('quiet', dead_letter => 'morgue') \g /dev/null
SELECT is(pulse.unset_task('quiet'), true, 'so does unset_task, also where it is the only setting');
SELECT is(deaths(given_death('quiet')), NULL, 'a task without it adds nothing');
SELECT refuses(format('SELECT pulse.set_task(%L, dead_letter => %L)', 'mail', name), 'PU004',
               format('a dead letter of task %L is refused', name))
  FROM unnest(ARRAY['/morgue', '../morgue', repeat('m', 129)]) AS name;

-- --- ends that are deaths -----------------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT id AS job, token FROM given_last_attempt(:ann) \gset
SELECT pulse.fail(:job, :token, 'broken') \g /dev/null
SELECT is(deaths(:job), 'failed', 'fail on the last attempt');
SELECT is(deaths(given_death()), 'failed', 'fail without a retry');
SELECT id AS job, token FROM given_last_attempt(:ann) \gset
SELECT id AS other, token AS other_token FROM given_last_attempt(:ann) \gset
SELECT pulse.fail_many(ARRAY[:job, :other], ARRAY[:token, :other_token], '{broken,broken}')
  \g /dev/null
SELECT is(deaths(:job) || deaths(:other), 'failedfailed', 'fail_many, for each job');
CREATE TEMP TABLE late AS
  SELECT c.cause, j.id, j.token
    FROM unnest('{timeout,stall,silence,crash,exit}'::text[]) AS c (cause),
         LATERAL (SELECT l.* FROM given_last_attempt(length(c.cause) * 0 + :ann) AS l) AS j;
SELECT pulse.fail_late(array_agg(id), array_agg(token), array_agg(cause), array_agg(cause))
  FROM late \g /dev/null
SELECT is((SELECT string_agg(l.cause || ' ' || deaths(l.id), ', ' ORDER BY l.id) FROM late AS l),
  'timeout failed, stall failed, silence failed, crash failed, exit failed',
  'fail_late on the last attempt, whatever the cause');
SELECT pulse.set_task('mail', max_crashes => 1) \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT pulse.fail_late(ARRAY[:job], ARRAY[:token], '{crash}', '{crash}') \g /dev/null
SELECT is(deaths(:job), 'quarantined', 'the crash that quarantines the job');
SELECT pulse.set_task('mail', max_crashes => 3) \g /dev/null

SELECT id AS job FROM given_last_attempt(given_worker()) \gset
SELECT id AS poison FROM given_claimed_job(given_worker()) \gset
UPDATE pulse.job SET crashes = 2, attempts = 3 WHERE id = :poison;
SELECT pulse_internal.mark_lost(worker_id, 'silence', 'gone') FROM pulse.job
 WHERE id IN (:job, :poison) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(deaths(:job), 'failed', 'a sweep that recovers a lost worker''s last attempt');
SELECT is(deaths(:poison), 'quarantined', 'a sweep that counts the third death of a worker');
SELECT id AS job FROM given_last_attempt(:ann) \gset
SELECT travel('2 min') \g /dev/null
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(jobs_timed_out, 1, 'given a sweep that ends a late job') FROM pulse.sweep();
SELECT is(deaths(:job), 'failed', 'the limit of the last attempt');
SELECT travel('0') \g /dev/null

SELECT given_worker() AS dead \gset
SELECT id AS job FROM given_last_attempt(:dead) \gset
SELECT pulse.declare_lost(:dead, 'its process is gone') \g /dev/null
SELECT is(deaths(:job), 'failed', 'a worker declared lost');
SELECT given_worker() AS dead \gset
SELECT id AS job FROM given_last_attempt(:dead) \gset
SELECT pulse_internal.mark_lost(:dead, 'silence', 'gone') \g /dev/null
SELECT is(reason, 'finished', 'given a claim of a lost worker''s job by its id')
  FROM pulse.claim_job(:ann, :job);
SELECT is(deaths(:job), 'failed', 'a claim that finds the last attempt lost');
SELECT given_worker() AS leaving \gset
SELECT id AS job FROM given_last_attempt(:leaving) \gset
SELECT pulse.deregister_worker(:leaving) \g /dev/null
SELECT is(deaths(:job), 'failed', 'a worker that leaves with a last attempt');
SELECT given_worker() AS ben \gset
SELECT id AS job FROM given_last_attempt(:ben) \gset
SELECT travel('6 s'), pulse.heartbeat(:ben, '{}') \g /dev/null
SELECT travel('12 s'), pulse.heartbeat(:ben, '{}') \g /dev/null
SELECT is(deaths(:job), 'failed', 'two heartbeats that do not name the last attempt');
SELECT travel('0') \g /dev/null

SELECT pulse.set_task('mail', expires_after => '5 s') \g /dev/null
SELECT given_job() AS job \gset
SELECT given_job(queue_name => 'post') AS queued \gset
SELECT pulse.set_task('mail', expires_after => '10 years') \g /dev/null
SELECT travel('6 s'), pulse.sweep() \g /dev/null
SELECT is(deaths(:job) || ' ' || deaths(:queued), 'expired expired', 'a start_by that has passed');
SELECT travel('0') \g /dev/null

-- --- ends that are none -------------------------------------------------------------------------

SELECT count(*) AS before FROM pulse.job WHERE dead_letter_of IS NOT NULL \gset
SELECT given_claimed_job(:ann) AS c \g /dev/null
SELECT pulse.complete(j.id, j.token) FROM pulse.job AS j WHERE j.worker_id = :ann \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT is(pulse.fail(:job, :token, 'again'), 'ready', 'given a job that is tried again');
SELECT pulse.cancel_job(:job) \g /dev/null
SELECT id AS job, token FROM given_last_attempt(:ann) \gset
SELECT pulse.cancel_job(:job) \g /dev/null
SELECT is(pulse.fail(:job, :token, 'x'), 'cancelled', 'given a job cancelled while it ran');
SELECT id AS job FROM given_last_attempt(:ann) \gset
SELECT pulse.requeue_job(:job, 'by hand') \g /dev/null
SELECT is(state_of(:job), 'failed', 'given a last attempt that an operator ends');
SELECT given_worker('eve') AS eve \gset
SELECT id AS job FROM given_last_attempt(:eve) \gset
SELECT pulse.force_unlock_workers('{eve}') \g /dev/null
SELECT is(state_of(:job), 'failed', 'given a last attempt that an operator unlocks');
SELECT pulse.permanently_fail_jobs(ARRAY[given_job()]) \g /dev/null
SELECT pulse.complete_jobs(ARRAY[given_job()]) \g /dev/null
SELECT given_job() AS job \gset
SELECT pulse.run_operation((pulse.start_operation('fail', json_build_object(
  'ids', ARRAY[:job::text]))).id) \g /dev/null
SELECT is(state_of(:job), 'failed', 'given a job that an operation fails');
SELECT id AS job, token FROM given_claimed_job(:ann, job_key => 'k') \gset
SELECT given_job(job_key => 'k') AS newer \gset
SELECT is(pulse.fail(:job, :token, 'again'), 'failed', 'given a job whose key a newer job has');
SELECT pulse.remove_job('k') \g /dev/null
SELECT id AS job FROM pulse.add_job('mail') \gset
SELECT id AS child FROM pulse.add_job_after(ARRAY[:job], 'mail') \gset
SELECT pulse.cancel_job(:job) \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT is(state_of(:child), 'cancelled', 'given a job that is cancelled because of a parent');
SELECT is((SELECT count(*) FROM pulse.job WHERE dead_letter_of IS NOT NULL), :before::bigint,
  'no other end adds a dead letter');

SELECT given_worker() AS worker \gset
SELECT id AS poison FROM given_claimed_job(:worker) \gset
UPDATE pulse.job SET crashes = 2, attempts = 3, max_attempts = 3 WHERE id = :poison;
SELECT pulse_internal.mark_lost(:worker, 'silence', 'gone'), pulse.sweep() \g /dev/null
SELECT is(deaths(:poison), 'quarantined', 'given a job that is quarantined on its last attempt');
SELECT pulse.heartbeat(:worker), pulse.sweep() \g /dev/null
SELECT is(state_of(:poison) || ' ' || deaths(:poison), 'failed quarantined',
  'a worker that comes back makes it failed, and adds no second letter');

-- --- the letter ---------------------------------------------------------------------------------

SELECT pulse.set_task('morgue', max_attempts => 2, queue => 'dead/{identifier}',
                      expires_after => '1 d') \g /dev/null
SELECT id AS job FROM pulse.add_job('mail', '{"n": 12345678901234567890.10}',
                                    queue_name => 'post', job_key => 'key', flags => '{f}') \gset
SELECT promote_queues() \g /dev/null
SELECT claim_token(:job) AS token \gset
UPDATE pulse.job SET added_by = 'shop' WHERE id = :job;
SELECT pulse.fail(:job, :token, 'line 1
"line" 2', retry => false) \g /dev/null
SELECT letter_of(:job) AS letter \gset
SELECT is((SELECT j.payload::text FROM pulse.job AS j WHERE j.id = :letter), format(
  '{ "id" : %s, "identifier" : "mail", "payload" : {"n": 12345678901234567890.10}, '
  '"state" : "failed", "error" : "line 1\n\"line\" 2", "attempts" : 1, "crashes" : 0, '
  '"queue_name" : "post", "added_by" : "shop", "created_at" : %s }', f.id, to_json(f.created_at)),
  'a dead letter tells of the job that died, with the payload as it was written')
  FROM pulse.finished_job AS f WHERE f.id = :job;
SELECT is((SELECT ROW(j.identifier, j.queue_name, j.max_attempts, j.start_by - j.run_at,
                      j.added_by, j.job_key, j.flags, j.waits_on, j.state)::text
             FROM pulse.job AS j WHERE j.id = :letter),
  ROW('morgue', 'dead/mail', 2, interval '1 d',
      (SELECT e.extowner::regrole::text FROM pg_extension AS e WHERE e.extname = 'pg_pulse'),
      NULL, NULL, NULL, 'parked')::text,
  'it has the settings of its own task, belongs to the owner of pg_pulse, and has no key');
SELECT is((SELECT ROW(f.dead_letter_id, f.last_error)::text FROM pulse.finished_job AS f
            WHERE f.id = :job), ROW(:letter, E'line 1\n"line" 2')::text,
  'the record of the job names it');
SELECT is((SELECT (job ->> 'dead_letter_id')::bigint FROM pulse.get_job(:job)), :letter::bigint,
  'and so does get_job');
SELECT is((SELECT ROW(detail ~ format('Its dead letter is job %s\.$', :letter), job_ids)::text
             FROM pulse.explain_job(:job)), ROW(true, ARRAY[:letter::bigint])::text,
  'and explain_job');
SELECT pulse.set_task('morgue', queue => '') \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT pulse.fail(:job, :token, 'x', retry => false, payload => '{"rest": 1}') \g /dev/null
SELECT is((SELECT j.payload -> 'payload' ->> 'rest' FROM pulse.job AS j
            WHERE j.id = letter_of(:job)), '1', 'it has the payload that the last attempt left');
SELECT given_death(payload => '{"z": "\u0000"}') AS job \gset
SELECT is((SELECT strpos(j.payload::text, '"payload" : {"z": "\u0000"}, ') > 0
             FROM pulse.job AS j WHERE j.id = letter_of(:job)), true,
  'also where no function of the server can read that payload');
SELECT given_death(payload => to_json(repeat('x', 1048574))) AS largest \gset
SELECT given_death(payload => to_json(repeat('x', 1048575))) AS large \gset
SELECT is((SELECT string_agg((j.payload::jsonb ? 'payload')::text, ' ' ORDER BY j.dead_letter_of)
             FROM pulse.job AS j WHERE j.dead_letter_of IN (:largest, :large)), 'true false',
  'a payload of more than 1 MiB is left out');
SELECT refuses(format('SELECT pulse.add_job_after(ARRAY[%s], %L)', letter_of(:large), 'mail'),
  'PU005', 'the producer of the job may not name its letter', 'shop');
SELECT given_job(max_attempts => 1) AS job \gset
SELECT claim_token(:job) AS token \gset
SET LOCAL ROLE hands;
SELECT pulse.fail(:job, :token, 'x') \g /dev/null
RESET ROLE;
SELECT is(deaths(:job), 'failed', 'a worker needs no right to add jobs');

SELECT given_death() AS job \gset
SELECT pulse.retry_job(:job) \g /dev/null
SELECT is((SELECT dead_letter_of FROM pulse.job WHERE id = letter_of(:job)), :job::bigint,
  'a retry of the job leaves its letter');
SELECT pulse.fail(:job, claim_token(:job), 'x', retry => false) \g /dev/null
SELECT is(deaths(:job), 'failed failed', 'the next death adds another');

-- --- flows --------------------------------------------------------------------------------------

SELECT id AS parent, flow_id AS flow FROM pulse.add_flow(
  '[{"key": "a", "identifier": "mail"}, {"key": "b", "identifier": "mail", "after": ["a"]}]')
  WHERE key = 'a' \gset
SELECT pulse.fail(:parent, claim_token(:parent), 'x', retry => false) \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT is((SELECT ROW(deaths(:parent), count(*) FILTER (WHERE f.state = 'cancelled'),
                      count(f.dead_letter_id))::text
             FROM pulse.flow_job AS m JOIN pulse.finished_job AS f ON f.id = m.job_id
            WHERE m.flow_id = :flow), '(failed,1,1)',
  'in a flow the job that fails adds a letter, and the job cancelled because of it adds none');
SELECT is((SELECT count(*) FROM pulse.flow_job AS m WHERE m.job_id = letter_of(:parent)), 0::bigint,
  'the letter is in no flow');

-- --- letters of letters -------------------------------------------------------------------------

SELECT pulse.set_task('morgue', dead_letter => 'mail') \g /dev/null
SELECT given_death() AS job \gset
SELECT letter_of(:job) AS letter \gset
SELECT pulse.fail(:letter, claim_token(:letter), 'x', retry => false) \g /dev/null
SELECT is(state_of(:letter) || coalesce(letter_of(:letter)::text, ', no letter'),
  'failed, no letter', 'of two tasks that name each other, the letter that dies adds none');
SELECT is((SELECT detail ~ format('It is the dead letter of job %s\.$', :job)
             FROM pulse.explain_job(:letter)), true, 'explain_job says of which job it is');
SELECT pulse.retry_job(:letter) \g /dev/null
SELECT pulse.fail(:letter, claim_token(:letter), 'x', retry => false) \g /dev/null
SELECT is(letter_of(:letter), NULL, 'nor does it after a retry');
SELECT pulse.retry_job(:letter), pulse.permanently_fail_jobs(ARRAY[:letter]),
       pulse.reschedule_jobs(ARRAY[:letter], attempts => 0) \g /dev/null
SELECT is((SELECT dead_letter_of FROM pulse.job WHERE id = :letter), :job::bigint,
  'whichever function brings it back, it stays a letter');
UPDATE pulse.job SET start_by = now() - interval '1 s' WHERE id = :letter;
SELECT pulse.sweep() \g /dev/null
SELECT is(state_of(:letter) || coalesce(letter_of(:letter)::text, ', no letter'),
  'expired, no letter', 'a letter that expires adds none');
SELECT pulse.set_task('loop', dead_letter => 'loop') \g /dev/null
SELECT given_death('loop') AS job \gset
SELECT letter_of(:job) AS letter \gset
SELECT pulse.fail(:letter, claim_token(:letter), 'x', retry => false) \g /dev/null
SELECT is((SELECT count(*) FROM pulse.job WHERE identifier = 'loop'), 0::bigint,
  'a task that names itself adds one letter');
SELECT pulse.set_task('morgue', dead_letter => '') \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
SELECT is((SELECT detail FROM pulse_internal.broken_p1 WHERE job_id = :letter), NULL,
  'given a letter without a letter');
UPDATE pulse.finished_job SET dead_letter_id = 1 WHERE id = :letter;
SELECT is((SELECT detail FROM pulse.verify() WHERE job_id = :letter),
  'a dead letter that has added a dead letter', 'verify() tells of a letter that has added one');
UPDATE pulse.finished_job SET dead_letter_id = NULL WHERE id = :letter;

-- --- refusals -----------------------------------------------------------------------------------

-- What a death leaves whose letter is refused. Without shared memory nothing counts.
CREATE FUNCTION refused_death(error text = 'broken') RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  before bigint := (SELECT dead_letters_refused FROM pulse.overview);
  job bigint := given_death(error => error);
BEGIN
  RETURN (SELECT concat_ws(', ', f.state, 'letter ' || f.dead_letter_id, 'counted ' ||
            coalesce((SELECT dead_letters_refused - before FROM pulse.overview),
                     (f.dead_letter_id IS NULL)::int),
            replace(left(f.last_error, 200), E'\n', '|'))
            FROM pulse.finished_job AS f WHERE f.id = job);
END $$;

SELECT pulse.set_task('morgue', queue => 'dead/{missing}') \g /dev/null
SELECT is(refused_death(),
  'failed, counted 1, broken|  the dead letter for task morgue was refused: the payload gives no '
  'queue: its member ''missing'' is missing',
  'a letter whose task has a queue that its payload does not name: the job has failed all the '
  'same, its last_error and a counter tell');
SELECT is(pulse_internal.error_line(last_error), 'broken', 'the line that tells most stays')
  FROM pulse.finished_job WHERE last_error ~ 'was refused';
SELECT id AS job FROM given_last_attempt(given_worker()) \gset
SELECT pulse_internal.mark_lost(worker_id, 'silence', 'gone') FROM pulse.job WHERE id = :job
  \g /dev/null
SELECT is(jobs_failed, 1, 'a sweep ends a job whose letter is refused') FROM pulse.sweep();
SELECT given_job() AS job \gset
UPDATE pulse.job SET start_by = now() - interval '1 s' WHERE id = :job;
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT ROW(f.state, f.last_error ~ E'^not started by .*\n  the dead letter')::text
             FROM pulse.finished_job AS f WHERE f.id = :job), '(expired,t)',
  'also one that expires');
SELECT pulse.set_task('morgue', queue => '') \g /dev/null

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_ARGV[0] = 'suppress' THEN
    RETURN NULL;
  ELSIF TG_ARGV[0] = 'assert' THEN
    ASSERT false, 'no letters';
  END IF;
  RAISE EXCEPTION 'no letters' USING ERRCODE = TG_ARGV[0];
END $$;
CREATE FUNCTION refuse_letters(how text) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON pulse.job FOR EACH ROW '
                 'WHEN (new.identifier = ''morgue'') EXECUTE FUNCTION refuse(%L)', how);
END $$;
SELECT refuse_letters('P0001') \g /dev/null
SELECT is(refused_death(), 'failed, counted 1, broken|  the dead letter for task morgue was '
  'refused: no letters', 'a letter that a trigger refuses');
SELECT refuse_letters('assert') \g /dev/null
SELECT matches(refused_death(), '^failed, counted 1, broken\|.*: no letters$',
  'a letter at which an assertion of a trigger fails');
SELECT refuse_letters('suppress') \g /dev/null
SELECT matches(refused_death(), '^failed, counted 1, broken\|.* was refused: ',
  'a letter that a trigger suppresses');
SELECT refuse_letters('40P01') \g /dev/null
SELECT id AS job, token FROM given_last_attempt(:ann) \gset
SELECT throws_ok(format('SELECT pulse.fail(%s, %s, %L)', :job, :token, 'x'), '40P01', 'no letters',
  'an error that concerns the whole transaction is no refusal: the end rolls back with it');
SELECT is(state_of(:job), 'running', 'and the job runs on');
DROP TRIGGER refuse ON pulse.job;
CREATE TRIGGER refuse BEFORE UPDATE ON pulse.finished_job
  FOR EACH ROW EXECUTE FUNCTION refuse('P0001');
SELECT is(refused_death(), 'failed, counted 1, broken',
  'where records may not change, the job ends without a letter');
SELECT is((SELECT count(*) FROM pulse.job AS j JOIN pulse.finished_job AS f
             ON f.id = j.dead_letter_of WHERE f.dead_letter_id IS NULL), 0::bigint,
  'and no letter is left without its record');
DROP TRIGGER refuse ON pulse.finished_job;
SELECT matches(refused_death(repeat('x', 67108864)), '^failed, counted 1, x+$',
  'a letter whose error makes it larger than a payload may be');

SELECT last_value AS last_id FROM pulse.job_id_seq \gset
SELECT setval('pulse.job_id_seq', 17592186044415) \g /dev/null
SELECT given_worker() AS worker \gset
SELECT is(pulse.fail(:job, :token, 'x'), 'failed', 'a job ends where no id is left for its letter');
SELECT matches((SELECT last_error FROM pulse.finished_job WHERE id = :job), 'no ids left',
  'as its last_error says');
SELECT setval('pulse.job_id_seq', :last_id) \g /dev/null
SELECT matches(refused_death('fine'), '^failed, letter \d+, counted 0, fine$',
  'once nothing refuses, letters come again');

SELECT * FROM finish();
ROLLBACK;
