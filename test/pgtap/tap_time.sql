-- sql/tap: time that stands still or moves, of jobs, schedules, backoff, retention and the liveness
-- clock together, and a year of schedules in one test.
\ir support/tap.psql
SELECT plan(25);

-- --- freeze -------------------------------------------------------------------------------------

SELECT is(freeze(), now(), 'time stops at the start of the transaction');
SELECT pulse_internal.live_now_us() AS live, clock_timestamp() AS before \gset
SELECT count(*) FROM generate_series(1, 1000) AS n WHERE clock_timestamp() = :'before' \g /dev/null
SELECT is(pulse.now(), now(), 'and stands');
SELECT is(pulse_internal.live_now_us(), :live::bigint, 'as does the liveness clock');
SELECT lives_ok('SELECT pulse.sweep()', 'a sweep ticks');
UPDATE pulse.clock SET vt_us = vt_us + 5000000, last_tick = clock_timestamp();
SELECT is(pulse_internal.live_now_us(), :live::bigint, 'which does not move it either');
SELECT is((pulse.add_job('mail')).run_at, now(), 'a job is due at that time');
SELECT is(freeze(), now(), 'to stop it again changes nothing');

-- --- travel -------------------------------------------------------------------------------------

SELECT is(travel('1 hour 0.1 s'), now() + interval '1 hour 0.1 s', 'time moves by so much');
SELECT is(pulse_internal.live_now_us() - :live, 3600100000::bigint, 'on both clocks');
SELECT is(travel('529.588842 s'), now() + interval '4129.688842 s',
  'and again, to the microsecond');
SELECT is(travel('-4129.688842 s'), now(), 'and back');
SAVEPOINT before;
SELECT travel('10 years') \g /dev/null
ROLLBACK TO before;
SELECT is(pulse.now(), now(), 'the rollback of a savepoint takes a journey back');
SELECT throws_ok($$SELECT travel('100 years')$$, 'PU004', 'how_far is 100 years, out of range',
                 'a century is too far');
SELECT throws_ok($$SELECT travel('-100 years')$$, 'PU004', 'how_far is -100 years, out of range',
                 'to either side');
SELECT is(pulse.now(), now(), 'and nothing has moved');

-- --- what follows it ----------------------------------------------------------------------------

SELECT given_worker() AS worker \gset
SELECT id, token FROM given_claimed_job(:worker, 'mail') \gset
SELECT pulse.fail(:id, :token, 'no paper') \g /dev/null
SELECT isnt(run_at, now(), 'backoff counts from the stopped time') FROM pulse.job WHERE id = :id;
SELECT is(claimed_ids(:worker, 10, '{mail}') @> ARRAY[:id::bigint], false,
  'before it, no claim gets the job');
SELECT travel('1 min') \g /dev/null
SELECT is(claimed_ids(:worker, 10, '{mail}') @> ARRAY[:id::bigint], true, 'after it, one does');
SELECT is((SELECT workers_lost FROM pulse.sweep()), 1, 'a minute without a heartbeat is a death');
SELECT travel('31 days') \g /dev/null
SELECT pulse.tick() \g /dev/null
SELECT is(count(*), 0::bigint, 'a month later, tick() has pruned the attempts') FROM pulse.attempt
 WHERE job_id = :id;

-- --- a year -------------------------------------------------------------------------------------

\o /dev/null
DELETE FROM pulse.job;
CREATE TABLE ran (task text, due timestamptz, at timestamptz);
CREATE FUNCTION note(job pulse.claimed_job) RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO public.ran VALUES (job.identifier, job.scheduled_for, pulse.now()) $$;
CREATE TABLE rule (task text, cron text, zone text);
INSERT INTO rule VALUES ('nightly', '30 2 * * *', 'Europe/Berlin'), ('monthly', '0 0 1 * *', 'UTC'),
  ('office', '0 9,17 * * 1-5', 'America/New_York'), ('weekly', '0 8 * * 1', 'UTC');
SELECT pulse.set_task(task, handler => 'note(pulse.claimed_job)'),
       pulse.schedule(task, task, cron, time_zone => zone, missed => 'all') FROM rule;
-- Pages that this session has asked for, of tables and indexes: also those with rows of earlier
-- tests, which autovacuum may not have removed yet.
CREATE FUNCTION pages_read() RETURNS bigint
  LANGUAGE sql AS $$
  SELECT sum(pg_stat_get_xact_blocks_fetched(c.oid))::bigint FROM pg_class AS c
   WHERE c.relnamespace = 'pulse'::regnamespace
$$;
CREATE TEMP TABLE took AS SELECT pages_read() AS before, pulse.now() AS since;
DO $$ BEGIN
  FOR day IN 1..365 LOOP
    PERFORM travel('1 day');
    PERFORM drain();
  END LOOP;
END $$;
\o
SELECT results_eq('SELECT task, due FROM ran ORDER BY task, due', $$
  SELECT r.task, d FROM rule AS r, took AS t,
         pulse.cron_runs(r.cron, r.zone, 1000, t.since) AS d
   WHERE d <= pulse.now() ORDER BY r.task, d$$, 'in a year every due time runs once');
SELECT cmp_ok(count(*), '>=', 940::bigint, 'which are many') FROM ran;
SELECT is(count(*), 0::bigint, 'none later than a day') FROM ran WHERE at - due >= '1 day';
SELECT cmp_ok((pages_read() - before) / 365, '<', 4000::bigint, 'and reads few pages a day')
  FROM took;
SELECT cmp_ok(pages_read() - before, '>', 0::bigint, 'which are counted') FROM took;

SELECT * FROM finish();
ROLLBACK;
