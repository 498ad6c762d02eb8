-- sql/structure/installation.sql: which installation this is. A copy hands out no job before it is
-- adopted, and no token or worker id is made twice.
\ir support/setup.psql
SELECT plan(66);

SELECT expect_function('adopt_installation', '', 'pulse.installation', 'volatile', 'definer');

-- As after CREATE EXTENSION.
DELETE FROM pulse.installation;
DELETE FROM pulse.installation_witness;

CREATE FUNCTION standing() RETURNS text
  LANGUAGE sql AS $$ SELECT pulse_internal.installation_standing() $$;

-- The epoch of a token or worker id.
CREATE FUNCTION epoch(number bigint) RETURNS int
  LANGUAGE sql AS $$ SELECT (number >> 40)::int $$;

-- Three assertions: what was done to the row or the witness makes this a copy.
CREATE FUNCTION refuses_copy(how text) RETURNS SETOF text
  LANGUAGE plpgsql AS $$
DECLARE
  job bigint := given_job();
  bob bigint := (SELECT max(id) FROM pulse.worker);
BEGIN
  RETURN NEXT is(standing(), 'copy', how || ' is a copy');
  RETURN NEXT refuses(format('SELECT pulse.claim(%s)', bob), 'PU008', how || ': nobody claims');
  RETURN NEXT refuses(format('SELECT pulse.claim_job(%s, %s)', bob, job), 'PU008',
                      how || ': nor a job by its id');
END $$;

-- --- first use -----------------------------------------------------------------------------------

SELECT is(standing(), 'unused', 'a new installation has no row');
SELECT given_job() AS job \gset
SELECT pulse.sweep() \g /dev/null
SELECT pulse.verify() \g /dev/null
SELECT pulse.held(0) \g /dev/null
SELECT is(rows_of('installation')::int, 0, 'adding, sweeping and reading write none');
SELECT given_worker() AS ann \gset
SELECT answers(
  'SELECT database_oid, job_oid, system_identifier, epoch_base, timeline, moved_at
     FROM pulse.installation',
  ROW((SELECT oid FROM pg_database WHERE datname = current_database()),
      'pulse.job'::regclass::oid, (SELECT system_identifier FROM pg_control_system()), 0,
      pulse_internal.current_timeline(), NULL::text),
  'the first worker id writes where this is');
SELECT results_eq('SELECT installation_id FROM pulse.installation_witness',
  'SELECT id FROM pulse.installation',
  'and its witness');
SELECT is(standing(), 'ours', 'from then on the installation is known');
SELECT is(epoch(:ann), pulse_internal.current_timeline(), 'it begins with the timeline');
SELECT given_worker('bob') AS bob \gset
SELECT token AS first FROM pulse.claim(:ann) \gset
SELECT is(rows_of('installation')::int, 1, 'later numbers write no other row');
-- Another server may begin the same epoch at the same place.
CREATE OR REPLACE FUNCTION pulse_internal.leap_offset() RETURNS bigint LANGUAGE sql RETURN 1000;
-- How far both sequences moved while a worker registered, after something was done.
CREATE FUNCTION shifts(what text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  token bigint := (SELECT last_value FROM pulse.token_seq);
  worker bigint := (SELECT last_value FROM pulse.worker_id_seq);
BEGIN
  EXECUTE what;
  PERFORM given_worker();
  RETURN (SELECT t.last_value - token FROM pulse.token_seq AS t) || ' '
      || (SELECT w.last_value - worker FROM pulse.worker_id_seq AS w);
END $$;
SAVEPOINT used;

-- --- chance --------------------------------------------------------------------------------------

SELECT is(shifts('SELECT'), '0 1', 'within an epoch numbers follow each other');
SELECT is(shifts('DELETE FROM pulse.installation'), '1001 1002', 'a first row begins an epoch');
ROLLBACK TO used;
SELECT is(shifts('UPDATE pulse.installation SET timeline = 0'), '1001 1002',
  'as does another timeline');
ROLLBACK TO used;
SELECT is(shifts('UPDATE pulse.installation SET system_identifier = 1'), '1001 1002',
  'and another server');
ROLLBACK TO used;
SELECT is(shifts('SELECT pulse.adopt_installation()'), '1001 1002', 'and an adoption');
ROLLBACK TO used;

-- --- another server, the same tables -------------------------------------------------------------

UPDATE pulse.installation SET system_identifier = 1;
SELECT is(standing(), 'moved',
  'another system identifier alone is an upgrade, or a restore by file');
SELECT is(claimed_ids(:ann), '{}', 'claims go on');
SELECT is((SELECT system_identifier FROM pulse.installation), 1::bigint,
  'one that finds nothing writes nothing');
SELECT given_job() AS job \gset
SELECT token FROM pulse.claim(:ann) \gset
SELECT isnt(:token, NULL, 'a job is claimed at once');
SELECT answers(
  'SELECT system_identifier, epoch_base, moved_at IS NOT NULL FROM pulse.installation',
  ROW((SELECT system_identifier FROM pg_control_system()), epoch(:first) + 1, true),
  'its token adopts the tables, with a base above all earlier epochs');
SELECT is(standing(), 'ours', 'so that they are known again');
SELECT cmp_ok(epoch(:token), '>', epoch(:first), 'the token is of a later epoch');
SELECT cmp_ok(epoch(given_worker()), '>', epoch(:bob), 'as is a new worker id');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken by it');
ROLLBACK TO used;

UPDATE pulse.installation SET timeline = 9;
SELECT cmp_ok(epoch(given_worker()), '>', 9,
  'a timeline that was given up is not gone through again');
SELECT is((SELECT timeline FROM pulse.installation), pulse_internal.current_timeline(),
  'the present one is noted');
ROLLBACK TO used;

UPDATE pulse.installation SET timeline = 0;
SELECT given_worker() \g /dev/null
SELECT answers('SELECT epoch_base, timeline, moved_at FROM pulse.installation',
  ROW(0, pulse_internal.current_timeline(), NULL::text), 'a later timeline needs no other base');
ROLLBACK TO used;

-- --- copies --------------------------------------------------------------------------------------

UPDATE pulse.installation SET database_oid = 1;
SELECT refuses_copy('another database');
SELECT matches((refusal_of(format('SELECT pulse.claim(%s)', :ann))).detail,
  'came from database 1 of system', 'the refusal tells where the jobs came from');
SELECT matches((refusal_of(format('SELECT pulse.claim(%s)', :ann))).hint,
  'SELECT pulse\.adopt_installation\(\)', 'and the way out');
SELECT isnt(given_job(), NULL, 'a job can be added to a copy');
SELECT given_worker('cat') AS cat \gset
SELECT cmp_ok(epoch(:cat), '>', epoch(:bob), 'a worker can register, under no id of the original');
SELECT is((SELECT status FROM pulse.heartbeat(:cat)), 'alive', 'and beat');
SELECT is_empty(format('SELECT * FROM pulse.held(%s)', :cat), 'and ask what it holds');
DELETE FROM pulse.heartbeat WHERE worker_id = :ann;
SELECT is((SELECT jobs_requeued FROM pulse.sweep()), 1, 'a sweep recovers what the original runs');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT is(rows_of('installation')::int, 1, 'and nothing adopts the copy by itself');
ROLLBACK TO used;

UPDATE pulse.installation SET job_oid = 1, system_identifier = 1;
SELECT refuses_copy('another job table under another server');
ROLLBACK TO used;

DELETE FROM pulse.installation_witness;
SELECT refuses_copy('a dump, restored to the same oids');
ROLLBACK TO used;

UPDATE pulse.installation_witness SET installation_id = gen_random_uuid();
SELECT refuses_copy('a dump, restored over another installation of the same oids');
ROLLBACK TO used;

INSERT INTO pulse.installation SELECT * FROM pulse.installation;
SELECT refuses_copy('data that was restored over data');

-- --- adoption ------------------------------------------------------------------------------------

SELECT id AS old_id FROM pulse.installation LIMIT 1 \gset
UPDATE pulse.job SET token = 50::bigint << 40, worker_id = 60::bigint << 40
 WHERE state = 'running';
SELECT epoch_base FROM pulse.adopt_installation() \gset
SELECT is(standing(), 'ours', 'an adopted copy is an installation of its own');
SELECT is(rows_of('installation') || ' ' || rows_of('installation_witness'), '1 1',
  'with one row and one witness');
SELECT isnt((SELECT id FROM pulse.installation), :'old_id'::uuid, 'and a name of its own');
SELECT is(:epoch_base, 61, 'its base is above every stored token and worker id');
SELECT cmp_ok(epoch(given_worker()), '>', 61, 'a new worker id is above all of them');
SELECT token FROM pulse.claim(:bob) \gset
SELECT cmp_ok(epoch(:token), '>', 61, 'jobs are claimed, with tokens above all of them');
SELECT is((SELECT epoch_base FROM pulse.adopt_installation()), epoch(:token) + 1,
  'adopting once more raises the base once more');
ROLLBACK TO used;

-- --- what 0.1.0 left -----------------------------------------------------------------------------

DELETE FROM pulse.installation;
DELETE FROM pulse.installation_witness;
SELECT given_worker() AS cat \gset
SELECT is(epoch(:cat), epoch(:ann), 'numbers go on where 0.1.0 made them');
ROLLBACK TO used;

DELETE FROM pulse.installation;
UPDATE pulse.job SET token = 7::bigint << 40 | 5 WHERE state = 'running';
SELECT cmp_ok(epoch(given_worker()), '>', 7, 'jobs of a later timeline raise the first base');
ROLLBACK TO used;

DELETE FROM pulse.installation;
SELECT setval('pulse.token_seq', 1, false) \g /dev/null
SELECT given_job() \g /dev/null
SELECT cmp_ok((SELECT token FROM pulse.claim(:bob)), '>', :first::bigint,
  'as do jobs that came without their sequences');
ROLLBACK TO used;

-- The job that runs has a number above all that follow.
SELECT setval('pulse.token_seq', 1::bigint << 39) \g /dev/null
UPDATE pulse.installation SET system_identifier = 1;
SELECT given_worker() \g /dev/null
SELECT cmp_ok((SELECT last_value FROM pulse.token_seq), '<', 1::bigint << 32,
  'far above, a sequence begins anew with an epoch');
SELECT is_empty('SELECT * FROM pulse.verify()', 'and no promise is broken by it');

SELECT * FROM finish();
ROLLBACK;
