-- sql/recovery/host_check.sql: which workers of the same machine may be judged, and by which signs.
-- Tests of the worker cover what it then sees (test/worker/host_check_test.cpp,
-- test/e2e/same_host.pl).
\ir support/setup.psql
SELECT plan(34);

SELECT expect_function('check_host', 'worker_id bigint',
  'TABLE(id bigint, pid integer, process_start text)', 'volatile', 'definer');

CREATE FUNCTION given_process(
    name text, boot_id text, pid_namespace text, pid text, hostname text = 'here',
    heartbeat_interval interval = NULL)
  RETURNS bigint
  LANGUAGE sql AS $$
  SELECT (pulse.register_worker(name, NULL, json_build_object(
    'hostname', hostname, 'boot_id', boot_id, 'pid_namespace', pid_namespace, 'pid', pid,
    'process_start', '100'), heartbeat_interval)).id
$$;

-- Those who are lost, by name.
CREATE FUNCTION lost() RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce(string_agg(w.name || ' by ' || h.lost_cause, ', ' ORDER BY w.id), 'nobody')
    FROM pulse.worker AS w JOIN pulse.heartbeat AS h ON h.worker_id = w.id
   WHERE h.verdict = 'lost' AND w.state = 'lost'
$$;

CREATE FUNCTION checked(worker_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce(string_agg(format('%s of %s', c.pid, c.process_start), ', '), 'nobody')
    FROM pulse.check_host(worker_id) AS c
$$;

\ir support/ended_session.psql
-- Pretends that this was the attached session of a worker.
CREATE FUNCTION end_session(worker bigint, ended bigint) RETURNS void
  LANGUAGE sql AS $$
  UPDATE pulse.heartbeat SET attachment = ended, incarnation = pulse_internal.incarnation()
   WHERE worker_id = worker
$$;

SELECT given_process('me', 'boot', 'pid:[1]', '10') AS me \gset
SELECT given_process('sibling', 'boot', 'pid:[1]', '11') AS sibling \gset
SELECT given_process('container', 'boot', 'pid:[2]', '11') AS container \gset
SELECT given_process('rebooted', 'boot before', 'pid:[1]', '11') AS rebooted \gset
SELECT given_process('elsewhere', 'boot elsewhere', 'pid:[1]', '11', 'there') AS elsewhere \gset
SELECT given_worker('without identity') AS unknown \gset
SELECT given_process('odd', 'boot', 'pid:[1]', 'eleven') AS odd \gset
SELECT id AS job FROM given_claimed_job(:container) \gset

-- --- who is named --------------------------------------------------------------------------------

SET LOCAL pulse.host_check = off;
SELECT is(checked(:me), 'nobody', 'no process is named while pulse.host_check is off');
SET LOCAL pulse.host_check = on;
SELECT is(checked(:me), '11 of 100', 'only processes of the same boot and namespace are named');
SELECT is(checked(:unknown), 'nobody', 'a worker without identity is told of nobody');
SELECT is(lost(), 'nobody', 'and nobody is touched');
SELECT given_process('nameless', '', '', '11', 'x') AS nameless \gset
SELECT given_process('nameless too', '', '', '12', 'y') AS nameless_too \gset
SELECT is(checked(:nameless), 'nobody', 'who cannot tell his boot shares it with nobody');

SAVEPOINT lost;
SELECT given_claimed_job(:sibling) \g /dev/null
SELECT pulse_internal.mark_lost(:sibling, 'session', 'its session ended') \g /dev/null
SELECT is(checked(:me), '11 of 100', 'one whose session ended is named while it has jobs');
UPDATE pulse.heartbeat SET lost_cause = 'silence' WHERE worker_id = :sibling;
SELECT is(checked(:me), 'nobody', 'but not one whose jobs any sweep recovers');
ROLLBACK TO lost;

-- --- silence -------------------------------------------------------------------------------------

SAVEPOINT all_live;
SELECT travel('15 s');
SELECT pulse.heartbeat(:me) \g /dev/null
SELECT is(checked(:me), '11 of 100', 'somebody silent is named still');
SELECT is(lost(), 'nobody', 'two beats and what an outage may add are awaited');
SELECT travel('18 s');
SELECT pulse.heartbeat(:elsewhere) \g /dev/null
SELECT is(checked(:me), '11 of 100', 'of the same namespace the process alone decides');
SELECT is(lost(), 'container by host, rebooted by host',
  'who missed two beats under the same hostname is lost');
SELECT is(state_of(:job), 'ready', 'the job is recovered at once');
SELECT is((SELECT last_error FROM pulse.job), format('worker %s (container) was lost: gone from '
  'host here', :container), 'and tells why');
SELECT is((SELECT crashes::int FROM pulse.job), 1, 'it was a crash');
SELECT is(checked(:me), '11 of 100', 'once more changes nothing');
ROLLBACK TO all_live;

SELECT travel('18 s');
SELECT pulse.heartbeat(:container) \g /dev/null
SELECT checked(:me) \g /dev/null
SELECT is(lost(), 'rebooted by host', 'who has beaten is left alone');
ROLLBACK TO all_live;

-- --- sessions ------------------------------------------------------------------------------------

SELECT end_session(w, :ended) FROM unnest(ARRAY[:container, :sibling, :elsewhere]) AS w \g /dev/null
SELECT travel('2 s');
SELECT checked(:me) \g /dev/null
SELECT is(lost(), 'nobody', 'a worker whose session ended may come back until it misses a beat');
SELECT travel('6 s');
SELECT is(checked(:me), '11 of 100', 'of the same namespace a session''s end says nothing');
SELECT is(lost(), 'container by host', 'of another one it does, once a beat is missed');
ROLLBACK TO all_live;

UPDATE pulse.heartbeat SET attachment = -1, incarnation = 0 WHERE worker_id = :container;
SELECT travel('6 s');
SELECT checked(:me) \g /dev/null
SELECT is(lost(), 'nobody', 'a session that the server ended says nothing');
ROLLBACK TO all_live;

SELECT given_process('bound', 'boot', 'pid:[2]', '12', 'here', '0') AS bound \gset
SELECT pulse.attach_worker(:bound) \g /dev/null
SELECT travel('1 h');
SELECT checked(:me) \g /dev/null
SELECT is((SELECT state FROM pulse.worker WHERE id = :bound), 'alive',
  'who lives as long as its session is not silent');
SELECT end_session(:bound, :ended) \g /dev/null
SELECT checked(:me) \g /dev/null
SELECT is((SELECT state FROM pulse.worker WHERE id = :bound), 'lost', 'and ends with it');
ROLLBACK TO all_live;

-- --- what the worker says next -------------------------------------------------------------------

SELECT pulse.declare_lost(:sibling, 'its process 11 is gone') \g /dev/null
SELECT is(lost(), 'sibling by host', 'what a worker of the machine declares is known as such');
SELECT is(checked(:me), 'nobody', 'and not named again');
SELECT refuses('SELECT pulse.check_host(0)', 'PU002', 'an unknown worker is refused');
SELECT refuses(format('SELECT pulse.check_host(%s)', :sibling), 'PU002', 'as is a lost one');
SELECT pulse.drain_worker(:container) \g /dev/null
SELECT travel('18 s');
SELECT checked(:me) \g /dev/null
SELECT matches(lost(), 'container by host', 'a draining worker can be gone too');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
