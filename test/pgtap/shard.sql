-- sql/structure/shard.sql: a database gets its shard before its first id. Each call refuses an id
-- of another shard.
\ir support/setup.psql
SELECT plan(51);

SELECT expect_function('set_shard', 'shard integer', 'pulse.installation', 'volatile', 'definer');

SET LOCAL pulse.allow_drop = on;
DROP EXTENSION pg_pulse CASCADE;
CREATE EXTENSION pg_pulse;
-- Chance does not move the ids of this file.
CREATE OR REPLACE FUNCTION pulse_internal.leap_offset() RETURNS bigint LANGUAGE sql RETURN 0;

-- The shard of an id, and the rest.
CREATE FUNCTION place_of(id bigint) RETURNS text
  LANGUAGE sql AS $$ SELECT format('%s: %s', id >> 44, id & ((1::bigint << 44) - 1)) $$;

-- The last server that took ids was on an earlier timeline; a change of the sequence lets sessions
-- read that again.
CREATE FUNCTION note_earlier_timeline() RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM setval('pulse.id_place_seq', pulse_internal.id_place() - (1::bigint << 32));
  ALTER SEQUENCE pulse.job_id_seq CACHE 1;
END $$;

-- --- the shard ----------------------------------------------------------------------------------

SELECT is((SELECT shard FROM pulse.overview), 0, 'a database alone has shard 0');
SELECT is((SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d JOIN pg_attribute AS a
            ON a.attrelid = d.adrelid AND a.attnum = d.adnum
            WHERE d.adrelid = 'pulse.installation'::regclass AND a.attname = 'id_ceiling'),
  format('''%s''::bigint', pulse_internal.first_id(1) - 2), 'as a row without a shard has');
SELECT is((SELECT concat_ws(' ', setting, source) FROM pulse.settings WHERE name = 'shard'),
  '0 default', 'which stands beside the settings');
SELECT refuses(format('SELECT pulse.set_shard(%s)', v), 'PU004', format('%s is no shard', v))
  FROM unnest('{-1,512}'::int[]) AS v;
SELECT refuses('SELECT pulse.set_shard(NULL)', 'PU004', 'nor is NULL');
SELECT is((pulse.set_shard(0)).id, NULL, 'the same shard changes nothing');
SAVEPOINT unset;
SELECT answers('SELECT (pulse.set_shard(3)).id_floor, (pulse.set_shard(3)).id_ceiling',
  ROW((3::bigint << 44) + 1, (4::bigint << 44) - 1), 'set_shard returns the bounds of the ids');
SELECT is((SELECT shard FROM pulse.overview), 3, 'overview has the shard');
SELECT is((SELECT concat_ws(' ', setting, source) FROM pulse.settings WHERE name = 'shard'),
  '3 set_shard', 'and settings');
SELECT refuses('SELECT pulse.set_shard(4)', 'PU003', 'another shard is refused');
SELECT refuses('SELECT pulse.set_shard(0)', 'PU003', 'as is none');
ROLLBACK TO unset;
SELECT note_earlier_timeline() \g /dev/null
SAVEPOINT before_leap;
SELECT pulse.set_shard(3) \g /dev/null
SELECT is(place_of((pulse.add_job('t')).id), format('3: %s', (1::bigint << 32) + 1),
  'the first id of a timeline can come in the transaction that sets the shard');
ROLLBACK TO before_leap;
SELECT ok(pulse_internal.is_leap_due(), 'whose rollback undoes the leap');
SELECT is_empty('SELECT to_id FROM pulse_internal.pending_gap', 'and the gap');
SELECT setval('pulse.id_place_seq', pulse_internal.id_place()) \g /dev/null
SELECT is(place_of((pulse.add_job('t')).id), '0: 1', 'a rollback takes the shard back');
SELECT refuses('SELECT pulse.set_shard(3)', 'PU003', 'ids were given out');
SELECT is((pulse.set_shard(0)).id, NULL, 'the same shard still changes nothing');
ROLLBACK TO unset;
SELECT setval('pulse.job_id_seq', 1, false) \g /dev/null
SELECT flow_id FROM pulse.add_flow('[{"identifier": "t"}]') \g /dev/null
SELECT setval('pulse.job_id_seq', 1, false) \g /dev/null
SELECT refuses('SELECT pulse.set_shard(3)', 'PU003', 'also ids of flows alone');
ROLLBACK TO unset;

-- No rollback undoes that a sequence was called.
SELECT setval(s::regclass, 1, false)
  FROM unnest('{pulse.job_id_seq,pulse.flow_id_seq,pulse.operation_id_seq}'::text[]) AS s
  \g /dev/null
SELECT given_worker() AS ann \gset
SELECT is((SELECT count(*) FROM pulse.installation), 1::bigint, 'a worker may come first');
SELECT pulse.set_shard(3) \g /dev/null
SELECT is(place_of(id), '3: 1', 'the first id is of the shard') FROM pulse.add_job('t');
SELECT is(place_of(flow_id), '3: 1', 'ids of flows are, too')
  FROM pulse.add_flow('[{"identifier": "t"}]');
SELECT is(place_of(pulse.note_operation('noted', '{}')), '3: 1', 'and those of operations');
SELECT is((SELECT count(*) FROM pulse.claim(:ann, 10)), 2::bigint, 'the jobs are claimed');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT id AS own FROM pulse.add_job('t') \gset

-- --- ids of other shards ------------------------------------------------------------------------

CREATE TABLE call (text text);
INSERT INTO call VALUES
  ('SELECT pulse.get_job(%s)'), ('SELECT pulse.read_job(%s)'), ('SELECT pulse.cancel_job(%s)'),
  ('SELECT pulse.retry_job(%s)'), ('SELECT pulse.requeue_job(%s, NULL)'),
  ('SELECT pulse.explain_job(%s)'), ('SELECT pulse.job_attempts(%s)'),
  ('SELECT pulse.ended(ARRAY[%s])'), ('SELECT pulse_internal.awaited_ids(ARRAY[%s])'),
  ('SELECT pulse.add_job_after(ARRAY[%s], ''child'')'),
  ('SELECT pulse.add_flow(''[{"identifier": "child", "after": [%s]}]'')'),
  ('SELECT pulse.add_dependency((pulse.add_job(''t'')).id, ARRAY[%s])'),
  ('SELECT pulse.complete_jobs(ARRAY[%s])'), ('SELECT pulse.permanently_fail_jobs(ARRAY[%s])'),
  ('SELECT pulse.reschedule_jobs(ARRAY[%s])'), ('SELECT pulse.delete_finished(ARRAY[%s])'),
  ('SELECT pulse.preview_operation(''cancel'', ''{"ids": [%s]}'')'),
  ('SELECT pulse.start_operation(''retry'', ''{"ids": [%s]}'')');

-- What the calls say of an id, each answer once.
CREATE FUNCTION answers_about(id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(DISTINCT r.code || ' ' || r.message, E'\n')
    FROM call AS c, LATERAL refusal_of(format(c.text, id)) AS r $$;

SELECT is(answers_about(7), 'PU005 job 7 is of shard 0',
  'every call refuses an id below the floor');
SELECT is(answers_about((4::bigint << 44) + 1), 'PU005 job 70368744177665 is of shard 4',
  'and one above the ceiling');
SELECT is((refusal_of('SELECT pulse.get_job(7)')).detail, 'This database has shard 3.',
  'the detail tells the shard of here');
SELECT refuses(format('SELECT pulse_internal.awaited_ids(ARRAY[%s])', 3::bigint << 44), 'PU005',
  'the shard alone is no id');
SELECT isnt((SELECT state FROM pulse.get_job(:own)), NULL, 'an own id is known');
SELECT matches((refusal_of(format('SELECT pulse.explain_job(%s + 100)', :own))).message,
  'was never added$', 'one that is to come is not');
SELECT matches((refusal_of('SELECT pulse.explain_job(9223372036854775807)')).message,
  'was never added$', 'nor is one of no shard');

-- --- leaps --------------------------------------------------------------------------------------

SELECT note_earlier_timeline() \g /dev/null
SELECT is(place_of((pulse.add_job('t')).id), format('3: %s', (1::bigint << 32) + 1),
  'a leap stays in the shard');
SELECT is((SELECT from_id FROM pulse_internal.id_gaps), (3::bigint << 44) + 1,
  'its gap begins at the floor');
SELECT pulse.adopt_installation() \g /dev/null
SELECT is((SELECT shard FROM pulse.overview), 3, 'an adoption keeps the shard');
DELETE FROM pulse.installation;
SELECT is((SELECT shard FROM pulse.overview), 0, 'jobs that came without their installation');
SELECT is((pulse.adopt_installation()).id_floor, (3::bigint << 44) + 1, 'tell their shard');
SELECT is_empty($$SELECT finding FROM pulse.doctor() WHERE finding = 'few ids left'$$,
  'there are ids enough');
SELECT setval('pulse.job_id_seq', (4::bigint << 44) - (1::bigint << 32)) \g /dev/null
SELECT is((SELECT severity FROM pulse.doctor() WHERE finding = 'few ids left'), 'warning',
  'doctor says when few are left');
SELECT note_earlier_timeline() \g /dev/null
SELECT refuses('SELECT pulse.add_job(''t'')', '2200H', 'a leap does not pass the ceiling');
SELECT is((SELECT last_value FROM pulse.job_id_seq), (4::bigint << 44) - (1::bigint << 32),
  'and leaves the sequence where it was');
SELECT setval('pulse.id_place_seq', pulse_internal.id_place()),
       setval('pulse.job_id_seq', (4::bigint << 44) - 2) \g /dev/null
SELECT is(place_of((pulse.add_job('t')).id), '3: 17592186044415', 'the last id is given out');
SELECT is((refusal_of('SELECT pulse.add_job(''t'')')).message, 'shard 3 has no ids left',
  'and none after it');
SELECT refuses('SELECT pulse.add_job(''t'')', '2200H', 'however often a job is added');
SELECT is(place_of((SELECT last_value FROM pulse.job_id_seq)), '3: 17592186044415',
  'the sequence stays below the next shard');

SELECT * FROM finish();
ROLLBACK;
