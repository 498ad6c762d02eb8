-- sql/recovery/tick.sql: everything periodic in one call.
\ir support/setup.psql
SELECT plan(39);

SELECT expect_function('tick', '', 'json', 'volatile', 'definer');

-- When somebody swept last, as the clock tells it.
CREATE FUNCTION last_swept(ago interval) RETURNS void
  LANGUAGE sql AS $$
  UPDATE pulse.clock SET last_tick = clock_timestamp() - ago,
    timeline = pulse_internal.current_timeline()
$$;
CREATE FUNCTION ticked(field text = NULL) RETURNS text
  LANGUAGE sql AS $$
  SELECT CASE WHEN field IS NULL THEN t::text ELSE t -> 'swept' ->> field END
    FROM pulse.tick() AS t
$$;

-- --- the sweep ----------------------------------------------------------------------------------

SELECT last_swept('1 min');
SELECT is(ticked('workers_lost'), '0', 'a tick sweeps');
SELECT is((pulse.tick()) ->> 'swept', NULL, 'but not when somebody has just done so');
SELECT last_swept('2 s');
SELECT is((pulse.tick()) ->> 'swept', NULL, 'within half an interval');
SELECT last_swept('3 s');
SELECT isnt((pulse.tick()) ->> 'swept', NULL, 'who ticks once per interval always sweeps');
SELECT last_swept('-1 min');
SELECT isnt((pulse.tick()) ->> 'swept', NULL, 'also when the clock was set back');
UPDATE pulse.clock SET last_tick = clock_timestamp(), timeline = timeline - 1;
SELECT isnt((pulse.tick()) ->> 'swept', NULL, 'and after a promotion');
SET LOCAL pulse.sweep_interval = -1;
SELECT last_swept('1 min');
SELECT isnt((pulse.tick()) ->> 'swept', NULL, 'a tick is a sweep by hand, where others are off');
SET LOCAL pulse.sweep_interval = '5 s';

SELECT given_worker() AS ann \gset
SELECT given_claimed_job(:ann) FROM generate_series(1, 2100) \g /dev/null
SELECT travel('1 min');
SELECT last_swept('1 min');
SELECT is((SELECT concat_ws(' ', t -> 'swept' ->> 'workers_lost', t -> 'swept' ->> 'jobs_requeued',
                            t ->> 'pruned', t ->> 'more') FROM pulse.tick() AS t),
  '1 2100 0 false', 'one tick recovers more than one sweep does');
SELECT is((SELECT count(*)::int FROM pulse.job WHERE state = 'ready'), 2100, 'each job once');
SELECT travel('0');
DELETE FROM pulse.job;
DELETE FROM pulse.attempt;

-- --- promotion and deletion ---------------------------------------------------------------------

SELECT given_job('mail', 'post') AS job \gset
SELECT last_swept('0');
SELECT is((SELECT t ->> 'swept' FROM pulse.tick() AS t), NULL, 'without a sweep');
SELECT is(state_of(:job), 'ready', 'marked queues are promoted');
DELETE FROM pulse.job;
INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
SELECT n, 1, 1, now() - interval '31 d', 'failed' FROM generate_series(1, 2500) AS n;
SELECT is((SELECT concat_ws(' ', t ->> 'pruned', t ->> 'more') FROM pulse.tick() AS t),
  '2500 false', 'what is past its age is deleted, in more than one step');

-- --- bounds -------------------------------------------------------------------------------------

INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
SELECT n, 1, 1, now() - interval '31 d', 'failed' FROM generate_series(1, 2500) AS n;
SELECT answers('SELECT * FROM pulse_internal.prune_for(interval ''0'')', ROW(1000, true),
  'deletion ends when its time is up, and tells that more remains');
SELECT given_worker() AS ann \gset
SELECT given_claimed_job(:ann) FROM generate_series(1, 1100) \g /dev/null
SELECT travel('1 min');
SELECT is((SELECT concat_ws(' ', f.result ->> 'jobs_requeued', f.more)
             FROM pulse_internal.sweep_for(interval '0') AS f), '500 t', 'so do its sweeps');
SELECT is((SELECT concat_ws(' ', f.result ->> 'jobs_requeued', f.more)
             FROM pulse_internal.sweep_for(interval '1 min') AS f), '600 f',
             'the next does the rest');

SELECT count(pulse.schedule(n, n, every => '1 min')) FROM unnest('{a,b}'::text[]) AS n
 \g /dev/null
CREATE FUNCTION left_alone() RETURNS void
  LANGUAGE sql AS $$
  UPDATE pulse.schedule SET anchor = anchor - interval '3 d', next_due = next_due - interval '3 d'
$$;
CREATE FUNCTION due_schedules() RETURNS int
  LANGUAGE sql AS $$
  SELECT count(*)::int FROM pulse.schedule WHERE next_due <= pulse.now()
$$;
SELECT left_alone();
SELECT is((SELECT f.more FROM pulse_internal.sweep_for(interval '0') AS f), true,
  'due times that a sweep leaves are more');
SELECT last_swept('0');
SELECT is((pulse.tick()) ->> 'more', 'true', 'so are those that a tick without a sweep leaves');
SELECT last_swept('1 min');
SELECT is(concat_ws(' ', (pulse.tick()) ->> 'more', due_schedules()), 'false 0',
  'a tick with time settles all of them');
SELECT left_alone();
CREATE TEMPORARY TABLE before_settling AS SELECT name, next_due FROM pulse.schedule;
SELECT pulse_internal.settle_schedules('-infinity') \g /dev/null
SELECT is((SELECT count(*) FROM pulse.schedule AS s JOIN before_settling AS b USING (name)
            WHERE s.next_due <> b.next_due), 1::bigint,
  'settling ends in time, after one schedule at least');
SET LOCAL pulse.claims = off;
SELECT is(concat_ws(' ', (pulse.tick()) ->> 'more', due_schedules()), 'false 0',
  'without claims none is left');
RESET pulse.claims;

-- --- refusals ------------------------------------------------------------------------------------

CREATE ROLE pulse_stranger;
GRANT USAGE ON SCHEMA pulse TO pulse_stranger;
SELECT refuses('SELECT pulse.tick()', '42501', 'who may not call it cannot', 'pulse_stranger');
GRANT EXECUTE ON FUNCTION pulse.tick TO pulse_stranger;
SELECT is((refusal_of('SELECT pulse.tick()', 'pulse_stranger')).code, '00000',
  'who may call it needs no other right');
SELECT refuses('CALL pulse.run_tick()', '42501', 'run_tick() is for roles that may call it',
  'pulse_stranger');
SELECT expect_function('run_tick', 'INOUT result json DEFAULT NULL::json', 'procedure', 'volatile',
  'invoker');
SELECT is((SELECT proconfig FROM pg_proc WHERE oid = 'pulse.run_tick'::regproc), NULL,
  'it has no setting, which would forbid its COMMIT');
SELECT refuses('CALL pulse.run_tick()', '2D000', 'and ticks in no transaction of others');
SAVEPOINT writable;
SET LOCAL transaction_read_only = on;
SELECT r.code || ' ' || (r.hint LIKE 'CALL pulse.run_tick()%') AS refused
  FROM refusal_of('SELECT pulse.tick()') AS r \gset
ROLLBACK TO writable;
SELECT is(:'refused'::text, '25006 true', 'a read-only tick is told of run_tick()');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
