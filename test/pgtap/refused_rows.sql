-- sql/worker/attempt.sql, sql/recovery/recover.sql: a row whose change raises an error keeps no
-- other from its recovery (P5), its start or its end, and is tried again.
\ir support/setup.psql
SELECT plan(50);

CREATE FUNCTION swept(dry_run bool = false) RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce(string_agg(t.key || ' ' || t.value, ', '), 'nothing')
    FROM (SELECT to_json(s) AS done FROM pulse.sweep(1000, dry_run) AS s) AS q,
         json_each_text(q.done) AS t
   WHERE t.value <> '0' AND t.key <> 'skipped_time'
$$;
-- What a DBA's trigger refuses: a change of a job or worker of this id, with this code.
CREATE TEMP TABLE refused (id bigint, code text);
CREATE FUNCTION refuse() RETURNS trigger
  LANGUAGE plpgsql AS $$
DECLARE
  changed jsonb := to_jsonb(CASE TG_OP WHEN 'DELETE' THEN old ELSE new END);
  refusal text := (SELECT r.code FROM pg_temp.refused AS r
                    WHERE r.id = coalesce(changed ->> 'job_id', changed ->> 'id')::bigint);
BEGIN
  IF refusal IS NOT NULL THEN
    RAISE EXCEPTION 'not this one' USING ERRCODE = refusal;
  END IF;
  RETURN CASE TG_OP WHEN 'DELETE' THEN old ELSE new END;
END $$;
CREATE FUNCTION refuse(id bigint, code text = 'P0001') RETURNS void
  LANGUAGE sql AS $$ INSERT INTO refused VALUES (id, code) $$;
CREATE FUNCTION allow_all() RETURNS void LANGUAGE sql AS $$ DELETE FROM refused $$;
CREATE FUNCTION forget_all() RETURNS void
  LANGUAGE sql AS $$
  SELECT travel('0');
  DELETE FROM refused;
  DELETE FROM pulse.job; DELETE FROM pulse.finished_job; DELETE FROM pulse.attempt;
  DELETE FROM pulse.dependency; DELETE FROM pulse.claim_batch;
  DELETE FROM pulse.worker; DELETE FROM pulse.heartbeat
$$;

-- --- jobs of lost workers -----------------------------------------------------------------------

CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON pulse.attempt
  FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT given_worker('ann') AS ann \gset
SELECT given_worker('bob') AS bob \gset
SELECT id AS poison FROM given_claimed_job(:ann) \gset
SELECT id AS beside FROM given_claimed_job(:ann) \gset
SELECT id AS last_one FROM given_claimed_job(:bob, max_attempts => 1) \gset
SELECT refuse(:poison) \g /dev/null
SELECT travel('21 s') \g /dev/null
SELECT is(swept(dry_run => true),
  'workers_lost 2, jobs_requeued 1, jobs_failed 1, jobs_skipped_locked 1',
  'a dry run tells that a trigger refuses the end of one job');
SELECT changes_nothing('SELECT pulse.sweep(dry_run => true)', 'and changes nothing');
SELECT is(swept(), 'workers_lost 2, jobs_requeued 1, jobs_failed 1, jobs_skipped_locked 1',
  'all others are recovered, and the one is counted as left');
SELECT is(state_of(:beside), 'ready', 'also a job of the same worker');
SELECT is(state_of(:last_one), 'failed', 'also one on its last attempt');
SELECT is(state_of(:poison), 'running', 'the refused one stays as it is');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT is((SELECT status FROM pulse.heartbeat(:ann)), 'lost', 'its worker is lost all the same');
SELECT is(swept(), 'jobs_skipped_locked 1', 'the next sweep tries again');
UPDATE refused SET code = 'P0004';
SELECT is(swept(), 'jobs_skipped_locked 1', 'an assertion that fails is refused likewise');
SELECT allow_all() \g /dev/null
SELECT is(swept(), 'jobs_requeued 1', 'and recovers it once nothing refuses it');
SELECT is(state_of(:poison), 'ready', 'as any other');
SELECT forget_all() \g /dev/null

CREATE TABLE note (job_id bigint REFERENCES pulse.job);
SELECT given_worker('ann') AS ann \gset
SELECT id AS poison FROM given_claimed_job(:ann, max_attempts => 1) \gset
SELECT id AS beside FROM given_claimed_job(:ann, max_attempts => 1) \gset
INSERT INTO note VALUES (:poison);
SELECT travel('21 s') \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_failed 1, jobs_skipped_locked 1',
  'a foreign key that keeps a job keeps no other');
SELECT is(state_of(:beside), 'failed', 'which ends');
DROP TABLE note;
SELECT is(swept(), 'jobs_failed 1', 'the kept one follows');
SELECT forget_all() \g /dev/null

SELECT given_worker('ann') AS ann \gset
SELECT count(given_claimed_job(:ann)) FROM generate_series(1, 700) \g /dev/null
INSERT INTO refused SELECT id, 'P0001' FROM pulse.job ORDER BY id LIMIT 600;
SELECT id AS last_of_all FROM pulse.job ORDER BY id DESC LIMIT 1 \gset
SELECT travel('21 s') \g /dev/null
DO $$ BEGIN
  FOR i IN 1 .. 100 LOOP
    PERFORM swept();
    EXIT WHEN NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.state = 'running'
                             AND j.id NOT IN (SELECT r.id FROM refused AS r));
  END LOOP;
END $$;
SELECT is(state_of(:last_of_all), 'ready', 'hundreds of refused jobs keep none behind them');
SELECT is((SELECT count(*) FROM pulse.job WHERE state = 'running'), 600::bigint,
  'all of them but the refused ones are recovered');
SELECT forget_all() \g /dev/null

-- --- errors of the whole call -------------------------------------------------------------------

SELECT given_worker('ann') AS ann \gset
SELECT id AS poison FROM given_claimed_job(:ann) \gset
SELECT travel('21 s') \g /dev/null
SELECT refuse(:poison, code) FROM (VALUES ('40P01')) AS c (code) \g /dev/null
SELECT refuses('SELECT pulse.sweep()', '40P01', 'a deadlock ends the sweep');
UPDATE refused SET code = '40001';
SELECT refuses('SELECT pulse.sweep()', '40001', 'so does a failure to serialize');
UPDATE refused SET code = '55P03';
SELECT refuses('SELECT pulse.sweep()', '55P03', 'and a lock that is not granted');
UPDATE refused SET code = '53100';
SELECT refuses('SELECT pulse.sweep()', '53100', 'and a full disk');
UPDATE refused SET code = '58030';
SELECT refuses('SELECT pulse.sweep()', '58030', 'and one that fails');
SELECT forget_all() \g /dev/null

-- --- workers ------------------------------------------------------------------------------------

CREATE TRIGGER refuse BEFORE UPDATE ON pulse.worker FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT given_worker('ann') AS ann \gset
SELECT given_worker('bob') AS bob \gset
SELECT id AS poison FROM given_claimed_job(:ann) \gset
SELECT id AS beside FROM given_claimed_job(:bob) \gset
SELECT refuse(:ann) \g /dev/null
SELECT travel('21 s') \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1, jobs_skipped_locked 1',
  'a trigger that keeps a worker from being lost keeps no other');
SELECT is(state_of(:beside), 'ready', 'whose job is recovered');
SELECT allow_all() \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1', 'the kept one follows');
DROP TRIGGER refuse ON pulse.worker;
SELECT forget_all() \g /dev/null

-- --- jobs past their limits, and returned workers -----------------------------------------------

SELECT pulse.set_task('timed', timeout => '5 s') \g /dev/null
SELECT given_worker('ann') AS ann \gset
SELECT id AS poison FROM given_claimed_job(:ann, 'timed') \gset
SELECT id AS beside FROM given_claimed_job(:ann, 'timed') \gset
SELECT refuse(:poison) \g /dev/null
SELECT travel('8 s') \g /dev/null
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1, jobs_skipped_locked 1',
  'a job past its timeout whose end is refused keeps no other');
SELECT allow_all() \g /dev/null
SELECT is(swept(), 'jobs_requeued 1, jobs_timed_out 1', 'the kept one follows');
SELECT forget_all() \g /dev/null

SELECT given_worker('ann') AS ann \gset
SELECT id AS poison FROM given_claimed_job(:ann) \gset
SELECT id AS beside FROM given_claimed_job(:ann) \gset
SELECT travel('21 s') \g /dev/null
SELECT swept() \g /dev/null
SELECT refuse(:poison) \g /dev/null
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT given_worker('bob') AS bob \gset
SELECT id AS lost_later FROM given_claimed_job(:bob) \gset
SELECT travel('42 s') \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1',
  'a crash that a trigger keeps from being taken back keeps no job from its recovery');
SELECT is((SELECT crashes FROM pulse.job WHERE id = :beside), 0::smallint,
  'nor the crash of another job from being taken back');
SELECT allow_all() \g /dev/null
SELECT swept() \g /dev/null
SELECT is((SELECT crashes FROM pulse.job WHERE id = :poison), 0::smallint,
  'the kept one follows');
SELECT forget_all() \g /dev/null

-- --- heartbeats ---------------------------------------------------------------------------------

SELECT given_worker('ann') AS ann \gset
SELECT id AS poison FROM given_claimed_job(:ann) \gset
SELECT id AS beside FROM given_claimed_job(:ann) \gset
SELECT refuse(:poison) \g /dev/null
SELECT pulse.heartbeat(:ann, '{}') \g /dev/null
SELECT is((SELECT status FROM pulse.heartbeat(:ann, '{}')), 'alive',
  'a heartbeat lives that gives back a job whose end is refused');
SELECT is(state_of(:beside), 'ready', 'and gives back the others');
SELECT is(state_of(:poison), 'running', 'but not this one');
SELECT allow_all() \g /dev/null
SELECT pulse.heartbeat(:ann, '{}') \g /dev/null
SELECT is(state_of(:poison), 'ready', 'which a later heartbeat gives back');
SELECT forget_all() \g /dev/null
DROP TRIGGER refuse ON pulse.attempt;

-- --- jobs that wait -----------------------------------------------------------------------------

CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT pulse.set_task('brief', expires_after => '5 s') \g /dev/null
SELECT given_job('brief') AS poison \gset
SELECT given_job('brief') AS beside \gset
SELECT refuse(:poison) \g /dev/null
SELECT travel('6 s') \g /dev/null
SELECT is(swept(), 'jobs_failed 1', 'a job whose expiry is refused keeps no other');
SELECT is(state_of(:beside), 'expired', 'which expires');
SELECT is(swept(), 'nothing', 'the next sweep tries again');
SELECT allow_all() \g /dev/null
SELECT is(swept(), 'jobs_failed 1', 'and ends it once nothing refuses it');
SELECT forget_all() \g /dev/null

SELECT given_worker('ann') AS ann \gset
SELECT id AS parent, token FROM given_claimed_job(:ann) \gset
SELECT id AS poison FROM pulse.add_job_after(ARRAY[:parent], 'child') \gset
SELECT id AS beside FROM pulse.add_job_after(ARRAY[:parent], 'child') \gset
SELECT refuse(:poison) \g /dev/null
SELECT pulse.complete(:parent, :token) \g /dev/null
SELECT is(claimed_ids(:ann, 10), ARRAY[:beside]::bigint[],
  'a child whose start is refused keeps no other from the claims');
SELECT is(claimed_ids(:ann, 10), '{}'::bigint[], 'and fails no claim');
SELECT is(swept(), 'nothing', 'and no sweep');
SELECT allow_all() \g /dev/null
SELECT swept() \g /dev/null
SELECT is(claimed_ids(:ann, 10), ARRAY[:poison]::bigint[],
  'a claim gets it once nothing refuses it');
SELECT forget_all() \g /dev/null

SELECT given_worker('ann') AS ann \gset
SELECT id AS beside FROM given_claimed_job(:ann) \gset
SELECT given_job(queue_name => 'post') AS poison \gset
SELECT refuse(:poison) \g /dev/null
SELECT travel('21 s') \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1',
  'a job of a queue that a trigger keeps parked keeps none from its recovery');
SELECT forget_all() \g /dev/null

DROP TRIGGER refuse ON pulse.job;

-- --- schedules, and rows past their retention ---------------------------------------------------

CREATE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  ASSERT false, 'not this one';
END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON pulse.schedule
  FOR EACH ROW WHEN (old.name = 'poison') EXECUTE FUNCTION refuse_poison();
SELECT pulse.schedule('poison', 'poison', every => '1 min') \g /dev/null
SELECT pulse.schedule('quiet', 'quiet', every => '1 min') \g /dev/null
SELECT given_worker('ann') AS ann \gset
SELECT id AS beside FROM given_claimed_job(:ann) \gset
SELECT travel('61 s') \g /dev/null
SELECT is(swept(), 'workers_lost 1, jobs_requeued 1',
  'a schedule that a trigger keeps from moving on keeps no job from its recovery');
SELECT is((SELECT string_agg(j.identifier, ' ' ORDER BY j.identifier) FROM pulse.job AS j),
  'mail quiet', 'nor another schedule from its job');
SELECT is((SELECT last_due FROM pulse.schedule WHERE name = 'poison'), NULL,
  'its due time is not settled');
DROP TRIGGER refuse ON pulse.schedule;
SELECT swept() \g /dev/null
SELECT is((SELECT count(*) FROM pulse.job WHERE identifier = 'poison'), 1::bigint,
  'which comes once nothing refuses it');
DELETE FROM pulse.schedule;
SELECT forget_all() \g /dev/null

CREATE TRIGGER refuse BEFORE DELETE ON pulse.attempt
  FOR EACH ROW EXECUTE FUNCTION refuse_poison();
SELECT given_worker('ann') AS ann \gset
SELECT id AS old, token FROM given_claimed_job(:ann) \gset
SELECT pulse.fail(:old, :token, 'boom') \g /dev/null
SET LOCAL pulse.keep_attempts = '1 min';
SELECT travel('1 day') \g /dev/null
UPDATE pulse.clock SET last_tick = clock_timestamp() - interval '1 hour';
SELECT is((pulse.tick() -> 'swept' ->> 'workers_lost'), '1',
  'a trigger that keeps attempts for ever keeps no tick from its sweep');
SELECT is(pulse_internal.prune(100), 0, 'nothing is pruned');
DROP TRIGGER refuse ON pulse.attempt;
SELECT is(pulse_internal.prune(100), 1, 'until nothing refuses it');

SELECT * FROM finish();
ROLLBACK;
