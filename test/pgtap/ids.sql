-- sql/structure/ids.sql: an id names one job for ever. The first id of a timeline or server leaps,
-- the gap is written down, and each call refuses an id of the gap that no table has.
\ir support/setup.psql
SELECT plan(59);

-- --- one function takes every id ----------------------------------------------------------------

SELECT is(lines(
  $$SELECT c.relname, pg_get_expr(d.adbin, d.adrelid)
      FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = d.adrelid
     WHERE c.relnamespace = 'pulse'::regnamespace
       AND pg_get_expr(d.adbin, d.adrelid) ~ 'nextval|next_id' ORDER BY 1$$),
  lines($$SELECT t, format('pulse_internal.next_id(''pulse.%s_id_seq''::regclass)', t)
      FROM unnest('{flow,job,operation}'::text[]) AS t$$),
  'a row without an id gets one of the function');
SELECT is_empty(
  $$SELECT p.oid::regprocedure FROM pg_proc AS p
     WHERE p.pronamespace::regnamespace::text ~ '^pulse' AND p.prosrc ~ 'nextval'$$,
  'no function asks a sequence itself');

-- --- the leap -----------------------------------------------------------------------------------

-- Which timeline and server took the last id; a change of the sequence lets sessions read it again.
CREATE FUNCTION noted(timelines_ago int, other_server int = 0) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM setval('pulse.id_place_seq',
    pulse_internal.id_place() - (timelines_ago::bigint << 32) + other_server);
  ALTER SEQUENCE pulse.job_id_seq CACHE 1;
END $$;

-- How many times 2^32 an id is, and the rest.
CREATE FUNCTION place_of(id bigint) RETURNS text
  LANGUAGE sql AS $$ SELECT format('%s + %s', id >> 32, id & ((1::bigint << 32) - 1)) $$;

CREATE FUNCTION gaps() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(format('%s-%s', g.from_id, g.to_id), ' ' ORDER BY g.to_id)
    FROM pulse_internal.id_gaps AS g $$;

SET LOCAL pulse.allow_drop = on;
DROP EXTENSION pg_pulse CASCADE;
CREATE EXTENSION pg_pulse;
SELECT ok(bool_and(pulse_internal.leap_offset() BETWEEN 0 AND (1::bigint << 31) - 1),
  'a leap ends less than 2^31 beyond a multiple of 2^32') FROM generate_series(1, 1000);
SELECT cmp_ok(count(DISTINCT pulse_internal.leap_offset()), '>', 900::bigint, 'where chance says')
  FROM generate_series(1, 1000);
-- Of which the rest of this file wants to hear nothing.
CREATE OR REPLACE FUNCTION pulse_internal.leap_offset() RETURNS bigint LANGUAGE sql RETURN 0;
SELECT is(pulse_internal.is_leap_due(), false, 'a new installation has nothing to leap over');
SELECT id AS first FROM pulse.add_job('ids') \gset
SELECT is(:first::bigint, 1::bigint, 'it begins with 1');
SELECT is(gaps(), NULL, 'without a gap');
SELECT setval('pulse.job_id_seq', 100) \g /dev/null

SELECT noted(1) \g /dev/null
SELECT is(pulse_internal.is_leap_due(), true, 'on a later timeline a leap is due');
SELECT is(gaps(), '37-9223372036854775807', 'and the gap has no end yet');
SAVEPOINT first_add;
SELECT id AS undone FROM pulse.add_job('ids') \gset
SELECT is(place_of(:undone), '1 + 1', 'the first id leaps beyond the next multiple of 2^32');
SELECT is(gaps(), '37-4294967296', 'over all that can have been given out, from the last 64 on');
ROLLBACK TO first_add;
SELECT is(gaps(), '37-4294967296', 'a rollback does not take that back');
SELECT is((SELECT count(*) FROM pulse.id_gap), 0::bigint, 'before a sweep no row says so');
SELECT is(place_of((pulse.add_job('ids')).id), '1 + 2', 'the next id follows');
INSERT INTO pulse.job (identifier) VALUES ('ids') RETURNING id AS inserted \gset
SELECT is(place_of(:inserted), '1 + 3', 'as does that of a row that somebody inserts');
SELECT is(place_of((SELECT min(flow_id) FROM pulse.add_flow('[{"identifier": "ids"}]'))),
  '1 + 1', 'ids of flows have leapt too');
SELECT is(place_of(pulse.note_operation('noted', '{}')), '1 + 1', 'and those of operations');

SELECT noted(1) \g /dev/null
SELECT is(gaps(), '37-4294967296 4294967237-9223372036854775807',
  'a second leap may come before the sweep');
SELECT is(place_of((pulse.add_job('ids')).id), '2 + 1', 'it leaps on');
SELECT is(gaps(), '37-8589934592', 'and the gap keeps its beginning');
SELECT pulse.sweep() \g /dev/null
SELECT results_eq('SELECT from_id, to_id, leapt_at <= pulse.now() FROM pulse.id_gap',
  'SELECT 37::bigint, 8589934592, true', 'a sweep makes the row');
SELECT is(gaps(), '37-8589934592', 'which says the same');
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT count(*) FROM pulse.id_gap), 1::bigint, 'once');
SELECT noted(1) \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '3 + 1', 'a leap after that');
SELECT is(gaps(), '37-8589934592 8589934530-12884901888', 'makes a gap of its own');
SELECT pulse.tick() \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT count(*) FROM pulse.id_gap), 2::bigint, 'with a row of its own');

-- Two attempts at one restore: the later one has the later timeline.
SELECT pulse_internal.leap(pulse_internal.id_place() + (3::bigint << 32)) \g /dev/null
SELECT is(place_of((SELECT s.last_value FROM pulse.job_id_seq AS s)), '6 + 0',
  'each timeline since the note counts: another server may have taken its ids');
SELECT noted(-3) \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '7 + 1', 'no timeline leaps back');
SELECT noted(-2, 1) \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '8 + 1',
  'another server is the next one, whatever its timeline');
SELECT setval('pulse.job_id_seq', (9::bigint << 32) - 10) \g /dev/null
SELECT noted(1) \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '10 + 1', 'no leap is short');
SELECT pulse.sweep() \g /dev/null
SELECT noted(1) \g /dev/null
SELECT setval('pulse.flow_id_seq', 20::bigint << 32) \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '21 + 1', 'all sequences leap to one place');

CREATE OR REPLACE FUNCTION pulse_internal.leap_offset() RETURNS bigint LANGUAGE sql RETURN 7;
SELECT noted(1) \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '22 + 8', 'a leap ends where chance says');
CREATE OR REPLACE FUNCTION pulse_internal.leap_offset() RETURNS bigint LANGUAGE sql RETURN 0;

SELECT count(*) AS gaps FROM pulse.id_gap \gset
SELECT pulse.adopt_installation() \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '23 + 1', 'an adoption leaps');
SELECT is((SELECT count(*) FROM pulse.id_gap), :gaps + 1::bigint, 'and writes the gap down');
INSERT INTO pulse.flow (id) VALUES (50::bigint << 32);
INSERT INTO pulse.operation (id, action, filter, arguments, role, last_id, created_at, updated_at)
  VALUES (60::bigint << 32, 'noted', '{}', '{}', 'me', 0, now(), now());
SELECT pulse.adopt_installation() \g /dev/null
SELECT is(place_of((pulse.add_job('ids')).id), '61 + 1',
  'past every stored flow and operation too');

-- --- what each call says of an id of a gap ------------------------------------------------------

DROP EXTENSION pg_pulse CASCADE;
CREATE EXTENSION pg_pulse;
CREATE OR REPLACE FUNCTION pulse_internal.leap_offset() RETURNS bigint LANGUAGE sql RETURN 0;
SELECT given_worker() AS ann \gset
SELECT pulse.set_task('kept', keep_completed => '1 day') \g /dev/null
SELECT setval('pulse.job_id_seq', 60) \g /dev/null
SELECT given_job('live') AS live \gset
SELECT given_job('kept') AS kept \gset
SELECT given_job('tried') AS tried \gset
SELECT id AS member FROM pulse.add_flow('[{"identifier": "member"}]') \gset
SELECT pulse.complete(id, token, '{}') FROM pulse.claim(:ann, 1, '{kept}') \g /dev/null
SELECT pulse.fail(id, token, 'once', true, '0') FROM pulse.claim(:ann, 1, '{tried}') \g /dev/null
SELECT pulse.complete(id, token) FROM pulse.claim(:ann, 2, '{tried,member}') \g /dev/null
SELECT pulse.complete_jobs(ARRAY[:tried, :member]) \g /dev/null
SELECT setval('pulse.job_id_seq', 100) \g /dev/null

CREATE TABLE call (n serial, text text, answer text);
INSERT INTO call (text, answer) VALUES
  ('SELECT pulse.get_job(%s)', 'lost'),
  ('SELECT pulse.read_job(%s)', 'lost'),
  ('SELECT pulse.cancel_job(%s)', 'lost'),
  ('SELECT pulse.retry_job(%s)', 'lost'),
  ('SELECT pulse.requeue_job(%s, NULL)', 'lost'),
  ('SELECT pulse.explain_job(%s)', 'lost'),
  ('SELECT pulse.job_attempts(%s)', 'lost'),
  ('SELECT pulse.ended(ARRAY[%s])', 'lost'),
  ('SELECT pulse_internal.awaited_ids(ARRAY[%s])', 'lost'),
  ('SELECT pulse.add_job_after(ARRAY[1, %s], ''child'')', 'lost'),
  ('SELECT pulse.add_job_after(ARRAY[%s], ''child'', starts_when => ''ended'', job_key => ''k'')',
   'lost'),
  ('SELECT pulse.add_flow(''[{"identifier": "child", "after": [%s]}]'')', 'lost'),
  ('SELECT pulse.add_dependency((SELECT min(id) FROM pulse.job), ARRAY[%s])', 'lost'),
  ('SELECT pulse.add_dependency(%s, ARRAY[(pulse.add_job(''parent'')).id])', 'lost'),
  ('SELECT pulse.complete_jobs(ARRAY[%s])', 'lost'),
  ('SELECT pulse.permanently_fail_jobs(ARRAY[%s])', 'lost'),
  ('SELECT pulse.reschedule_jobs(ARRAY[%s])', 'lost'),
  ('SELECT pulse.delete_finished(ARRAY[%s])', 'lost'),
  ('SELECT pulse.preview_operation(''cancel'', ''{"ids": [%s]}'')', 'lost'),
  ('SELECT pulse.start_operation(''retry'', ''{"ids": [%s]}'')', 'lost'),
  ('SELECT pulse.cancel_flow(%s)', 'PU005: flow 80 is unknown'),
  ('SELECT pulse.run_operation(%s)', 'PU005: operation 80 is unknown'),
  ('SELECT pulse.stop_operation(%s)', 'PU005: operation 80 is unknown'),
  ('SELECT pulse.undo_operation(%s)', 'PU005: operation 80 is unknown'),
  ('SELECT pulse.complete(%s, 1)', 'PU001'),
  ('SELECT pulse.fail(%s, 1, ''error'')', 'PU001'),
  ('SELECT pulse.snooze(%s, 1, ''1 s'')', 'PU001'),
  ('SELECT pulse.progress(%s, 1)', 'PU001'),
  ('SELECT pulse.held_job(%s, 1)', 'PU001'),
  ('SELECT pulse.perform_job(%s, 1)', 'PU001'),
  ('SELECT pulse.fence(%s, 1)', 'PU001');

-- Those that are asked below, or that read what the tables have; wait_for_end asks awaited_ids.
SELECT is_empty(
  $$SELECT p.proname FROM pg_proc AS p
     WHERE p.pronamespace = 'pulse'::regnamespace
       AND p.proargnames[:p.pronargs] && '{job_id,job_ids,flow_id,operation_id,after,filter,jobs}'
       AND NOT EXISTS (SELECT FROM call AS c WHERE c.text ~ format('pulse\.%s\(', p.proname))
       AND p.proname <> ALL ('{claim_job,complete_many,cron_runs,fail_late,fail_many,flow_jobs,
         heartbeat,next_runs,release,wait_for_end}')$$,
  'no call that takes ids is left out');

-- What every call says of an id: nothing but what the table expects.
CREATE FUNCTION wrong_answers(id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(format('%s: %s %s', c.text, r.code, r.message), E'\n' ORDER BY c.n)
    FROM call AS c, LATERAL refusal_of(format(c.text, id)) AS r
   WHERE NOT CASE c.answer
           WHEN 'lost' THEN r.code = 'PU005' AND r.message ~ format(
             '^job %s was lost in the failover of \d{4}-', id)
           WHEN 'PU001' THEN r.code = 'PU001'
           ELSE r.code || ': ' || r.message = replace(c.answer, '80', id::text) END $$;

SELECT noted(1) \g /dev/null
SELECT is(wrong_answers(80), NULL, 'before the leap every call refuses an id of the gap');
SELECT is(wrong_answers(500), NULL, 'and one of which this server has never heard');
SELECT pulse.add_job('ids') \g /dev/null
SELECT is(wrong_answers(80), NULL, 'after the leap too');
SELECT is(wrong_answers(500), NULL, 'whatever the id');
SELECT is(wrong_answers(37), NULL, 'from the first of the last 64 on');
SELECT is(wrong_answers(1::bigint << 32), NULL, 'to the end of the gap');
SELECT pulse.sweep() \g /dev/null
SELECT is(wrong_answers(80), NULL, 'and once the gap has its row');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, 80)), 'unknown', 'claim_job says so itself');
SELECT is((SELECT count(*) FROM pulse.held(:ann)), 0::bigint, 'no worker holds it');
SELECT is((SELECT status FROM pulse.heartbeat(:ann, ARRAY[80])), 'alive',
  'a worker that still runs it is not refused');
SELECT is((SELECT string_agg(outcome::text, ' ') FROM pulse.complete_many(ARRAY[80], ARRAY[1])),
  'stale', 'and is told that its claim is over');
SELECT is((SELECT string_agg(outcome::text, ' ')
             FROM pulse.fail_many(ARRAY[80], ARRAY[1], ARRAY['error'])), 'stale',
  'whatever it reports');
SELECT is((SELECT count(*) FROM pulse.flow_jobs(80)), 0::bigint, 'a lost flow has no jobs');

-- What a table has is no lost job, nor is what lies below the gap.
SELECT is(ended, 1, 'below the gap a job without a row has ended')
  FROM (SELECT cardinality(pulse_internal.awaited_ids(ARRAY[36])) AS ended) AS a;
SELECT setval('pulse.gap_from_seq', 1) \g /dev/null
DELETE FROM pulse.id_gap;
SELECT lives_ok(format('SELECT pulse_internal.awaited_ids(ARRAY[%s])', id), what)
  FROM (VALUES (:live, 'a job that waits is in a table'), (:kept, 'so is one that is kept'),
    (:tried, 'one of which an attempt is on record'), (:member, 'and a member of a flow'))
    AS v (id, what);
SELECT is((SELECT id FROM pulse.ended(ARRAY[:live, :kept])), :kept::bigint,
  'ended tells how a kept one did');
SELECT is((refusal_of('SELECT pulse_internal.awaited_ids(ARRAY[7, 61, 9])')).message
  ~ '^job 7 was lost', true, 'the least lost id is named');
SELECT matches((refusal_of('SELECT pulse.get_job(7)')).hint, 'add it again',
  'the hint tells what to do');
SELECT refuses('SELECT pulse_internal.awaited_ids(ARRAY[(5::bigint << 32)])', 'PU005',
  'an id above all is refused as before');
SELECT matches((refusal_of('SELECT pulse.explain_job(5::bigint << 32)')).message,
  'was never added$', 'in the words of before');

SELECT * FROM finish();
ROLLBACK;
