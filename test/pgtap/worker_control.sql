-- sql/operator/worker_control.sql: what operators ask of workers.
\ir support/setup.psql
SELECT plan(69);

SELECT expect_function('drain_worker', 'worker_id bigint', 'text', 'volatile', 'definer');
SELECT expect_function('stop_worker', 'worker_id bigint', 'text', 'volatile', 'definer');
SELECT expect_function(name, 'worker_names text[]', 'integer', 'volatile', 'definer')
  FROM unnest('{drain_workers,stop_workers}'::text[]) AS name;
SELECT expect_function('force_unlock_workers', 'worker_names text[]', 'integer', 'volatile',
  'definer');

CREATE FUNCTION seen(who bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat_ws(' ', (SELECT state FROM pulse.worker WHERE id = who),
                   (SELECT status FROM pulse.heartbeat(who)))
$$;

-- --- by name ------------------------------------------------------------------------------------

SELECT given_worker('east') AS one, given_worker('east') AS two, given_worker('west') AS three \gset
SELECT is(pulse.drain_workers('{east,nowhere}'), 2, 'all workers of a name are told to drain');
SELECT is(ARRAY[seen(:one), seen(:two), seen(:three)],
  '{draining draining,draining draining,alive alive}', 'and no other');
SELECT is(pulse.stop_workers('{east}'), 2, 'and to stop');
SELECT is(seen(:one), 'draining stopping', 'as by id');
SELECT pulse.deregister_worker(w) FROM unnest(ARRAY[:one, :two, :three]) AS w \g /dev/null

-- --- drain_worker, stop_worker ------------------------------------------------------------------

SELECT given_worker() AS ann, given_worker('bob') AS bob \gset
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT given_job() AS waiting \gset
SELECT is(pulse.drain_worker(:ann), 'draining', 'a worker is told to drain');
SELECT is(seen(:ann), 'draining draining', 'its state and its next heartbeat say so');
SELECT alike((SELECT s.reason FROM pulse.worker_status AS s WHERE s.id = :ann),
  'asked to drain by role ' || quote_ident(current_user) || ' at 20%', 'with who asked, and when');
SELECT is(claimed_ids(:ann), '{}', 'it is given no more jobs');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :waiting)), 'draining', 'not by id either');
SELECT answers(format('SELECT id FROM pulse.held(%s)', :ann), ROW(:job), 'it keeps what it has');
SELECT changes_nothing(format('SELECT pulse.drain_worker(%s)', :ann), 'once more is no error');
SELECT is(pulse.stop_worker(:ann), 'stopping', 'a draining worker can be told to stop');
SELECT is(seen(:ann), 'draining stopping', 'which its next heartbeat says');
SELECT alike((SELECT s.reason FROM pulse.worker_status AS s WHERE s.id = :ann),
  'asked to stop by role %', 'and its reason');
SELECT is(claimed_ids(:ann), '{}', 'it is given no more jobs');
SELECT is(pulse.drain_worker(:ann), 'stopping', 'to drain does not weaken that');
SELECT is(seen(:ann), 'draining stopping', 'it is still to stop');
SELECT is(claimed_ids(:bob), ARRAY[:waiting]::bigint[], 'another worker goes on');
SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :job, :token),
  'what it has it may complete');
SELECT pulse.deregister_worker(:ann) \g /dev/null
SELECT is(seen(:ann), 'stopped lost', 'it ends in order');
SELECT changes_nothing(format('SELECT pulse.drain_worker(%s), pulse.stop_worker(%s)', :ann, :ann),
  'a worker that has ended is let be');
SELECT is(pulse.drain_worker(:ann), 'stopped', 'and that is told');

SELECT id AS job FROM given_claimed_job(:bob, 'slow') \gset
SELECT pulse.stop_worker(:bob) \g /dev/null
SELECT travel('30 s');
SELECT is((SELECT workers_lost FROM pulse.sweep()), 1, 'a stopping worker that is silent is lost');
SELECT is(state_of(:job), 'ready', 'and its jobs are recovered');
SELECT is(pulse.stop_worker(:bob), 'lost', 'who is lost stays so');
SELECT travel('0');
SELECT refuses('SELECT pulse.drain_worker(0)', 'PU002', 'an unknown worker cannot drain');
SELECT refuses('SELECT pulse.stop_worker(0)', 'PU002', 'nor stop');
SELECT refuses('SELECT pulse.drain_worker(NULL)', 'PU002', 'nor can NULL');
DELETE FROM pulse.job;

-- --- force_unlock_workers -----------------------------------------------------------------------

CREATE FUNCTION given_busy_worker(name text) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker(name);
BEGIN
  PERFORM given_claimed_job(worker, name), given_claimed_job(worker, name, worker::text);
  RETURN worker;
END $$;
SELECT given_busy_worker(n) FROM unnest('{one,two,three}'::text[]) AS n \g /dev/null
SELECT given_busy_worker('two') AS second_two \gset
SELECT is(pulse.force_unlock_workers('{one,two,nobody}'), 6,
  'the jobs of all workers of these names are recovered');
SELECT results_eq('SELECT identifier, state FROM pulse.job GROUP BY 1, 2 ORDER BY 1, 2',
  $$VALUES ('one' COLLATE "C", 'ready'::pulse.job_state), ('one', 'parked'), ('three', 'running'),
           ('two', 'ready'), ('two', 'parked')$$,
  'the others'' are not');
SELECT is((SELECT status FROM pulse.heartbeat(:second_two)), 'lost',
  'who was unlocked hears that it is lost');
SELECT is((SELECT string_agg(DISTINCT reason, ',') FROM pulse.worker WHERE name = 'two'),
  'unlocked by hand', 'the reason is stored');
SELECT answers('SELECT count(*), max(crashes), min(attempts), max(run_at) <= pulse.now(),
                       min(recovered)
                  FROM pulse.job WHERE identifier <> ''three''', ROW(6, 0, 1, true, 'hand'),
  'no worker died: the attempt is consumed, no crash counted, and the jobs are due at once');
SELECT is((SELECT string_agg(DISTINCT outcome, ',') FROM pulse.attempt AS a
             JOIN pulse.job AS j ON j.id = a.job_id), 'interrupted',
  'the attempts were interrupted');
SELECT is(pulse.force_unlock_workers('{one,two}'), 0, 'once more finds nothing');
SELECT is(pulse.force_unlock_workers(NULL), 0, 'nor does NULL');
DELETE FROM pulse.job;
SELECT given_job('healthy') AS job \gset
DO $$ BEGIN
  FOR n IN 1..4 LOOP
    PERFORM pulse.claim((SELECT id FROM pulse.register_worker('four')));
    PERFORM pulse.force_unlock_workers('{four}');
  END LOOP;
END $$;
SELECT is(state_of(:job), 'ready', 'an operator who repeats it quarantines no healthy job');
SELECT id AS job FROM given_claimed_job(given_worker('five'), 'mail', max_attempts => 1) \gset
SELECT pulse.force_unlock_workers('{five}') \g /dev/null
SELECT is(state_of(:job), 'failed', 'on its last attempt a job has failed');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
