-- sql/worker/heartbeat.sql: a beat keeps the worker alive, tells the verdict, and settles lost
-- replies.
\ir support/setup.psql
SELECT plan(47);

SELECT expect_function('heartbeat',
  'worker_id bigint, job_ids bigint[] DEFAULT NULL::bigint[], OUT status text, '
  'OUT revoked bigint[], OUT cancelled bigint[]', 'record', 'volatile', 'definer');

SELECT given_worker() AS ann \gset
SELECT given_worker('bob') AS bob \gset
CREATE FUNCTION beat(worker_id bigint, job_ids bigint[] = NULL) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat_ws(' ', status, 'revoked', revoked, 'cancelled', cancelled)
    FROM pulse.heartbeat(worker_id, job_ids)
$$;

-- --- the beat -----------------------------------------------------------------------------------

SELECT is(beat(:ann), 'alive revoked {} cancelled {}', 'a living worker hears that it is alive');
SELECT travel('14 s');
SELECT beat(:ann) \g /dev/null
SELECT travel('28 s');
SELECT is(workers_lost, 1, 'a worker that beats is not lost') FROM pulse.sweep();
SELECT is((SELECT state FROM pulse.worker WHERE id = :ann), 'alive', 'which is the one that beat');
SELECT is((SELECT state FROM pulse.worker WHERE id = :bob), 'lost', 'and the silent one was');
SELECT cmp_ok((SELECT last_heartbeat_at FROM pulse.heartbeat WHERE worker_id = :ann), '>=',
  now() + interval '14 s', 'its last beat can be read');
SELECT travel('0');

-- --- the verdict (P2, P5) ------------------------------------------------------------------------

SELECT is(beat(:bob), 'lost revoked {} cancelled {}', 'a lost worker hears that it is lost');
SELECT is(beat(:bob, '{7,8}'), 'lost revoked {7,8} cancelled {}',
  'and that all its jobs are revoked');
SELECT is((SELECT verdict FROM pulse.heartbeat WHERE worker_id = :bob), 'lost',
  'a late beat does not bring it back');
SELECT given_worker('late') AS late \gset
SELECT id AS job FROM given_claimed_job(:late) \gset
UPDATE pulse.heartbeat SET verdict = 'lost' WHERE worker_id = :late;
SELECT is(beat(:late, ARRAY[:job]), format('lost revoked {%s} cancelled {}', :job),
  'also those that nobody recovered yet');
DELETE FROM pulse.job;
SELECT is(beat(0), 'lost revoked {} cancelled {}', 'an unknown worker hears that it is lost');
SELECT is(beat(NULL), 'lost revoked {} cancelled {}', 'and NULL');
SELECT given_worker('cat') AS cat \gset
SELECT pulse.deregister_worker(:cat) \g /dev/null
SELECT is(beat(:cat), 'lost revoked {} cancelled {}', 'and a stopped one');
SELECT given_worker('dan') AS dan \gset
UPDATE pulse.heartbeat SET verdict = 'draining' WHERE worker_id = :dan;
SELECT is(beat(:dan), 'draining revoked {} cancelled {}', 'a draining worker hears that');
UPDATE pulse.heartbeat SET verdict = 'stopping' WHERE worker_id = :dan;
SELECT is(beat(:dan), 'stopping revoked {} cancelled {}', 'and one that is to stop hears that');
SELECT travel('14 s');
SELECT beat(:dan) \g /dev/null
SELECT travel('28 s');
SELECT pulse.sweep() \g /dev/null
SELECT is(beat(:dan), 'stopping revoked {} cancelled {}', 'either is kept alive by its beats');
SELECT travel('0');

-- --- revoked and cancelled ----------------------------------------------------------------------

SELECT given_worker('ann') AS ann \gset
SELECT given_worker('bob') AS bob \gset
SELECT id AS mine, token FROM given_claimed_job(:ann) \gset
SELECT id AS yours FROM given_claimed_job(:bob) \gset
SELECT given_job('ink') AS ready \gset
SELECT is(beat(:ann, ARRAY[:mine]), 'alive revoked {} cancelled {}',
  'what a worker holds is its own');
SELECT is((SELECT revoked FROM pulse.heartbeat(:ann, ARRAY[:mine, :yours, :ready, 0])),
  ARRAY[:yours, :ready, 0]::bigint[],
  'a job of another worker, of none, or that does not exist is revoked');
SELECT pulse.cancel_job(:mine, 'no longer wanted') \g /dev/null
SELECT is(beat(:ann, ARRAY[:mine]), format('alive revoked {} cancelled {%s}', :mine),
  'a job that is to be cancelled is told');
SELECT is(beat(:ann), format('alive revoked {} cancelled {%s}', :mine),
  'by every heartbeat, with an array or without');
SELECT is(beat(:bob), 'alive revoked {} cancelled {}', 'and to its own worker only');
SELECT pulse.complete(:mine, :token) \g /dev/null
SELECT is(beat(:ann, ARRAY[:mine]), format('alive revoked {%s} cancelled {}', :mine),
  'a job that has ended is revoked');
SELECT is(beat(:ann, '{NULL}') LIKE 'alive %', true, 'a NULL in the array does not raise');
DELETE FROM pulse.job;

-- --- exactly these (P1) --------------------------------------------------------------------------

SELECT given_worker('ann') AS ann \gset
SELECT id AS known FROM given_claimed_job(:ann) \gset
SELECT id AS missing, token FROM given_claimed_job(:ann) \gset
SELECT is((SELECT revoked FROM pulse.heartbeat(:ann, ARRAY[:known])), '{}',
  'a job missing from one array is not revoked');
SELECT is(state_of(:missing), 'running',
  'nor does it go back: the array may be older than its claim');
SELECT beat(:ann) \g /dev/null
SELECT is(state_of(:missing), 'running', 'a heartbeat without an array says nothing about it');
SELECT beat(:ann, ARRAY[:known]) \g /dev/null
SELECT answers(
  format('SELECT state, attempts, crashes, worker_id, token, run_at <= pulse.now() FROM pulse.job
           WHERE id = %s', :missing),
  ROW('ready', 1, 0, NULL, NULL, true),
  'missing from two arrays it goes back, its attempt consumed, no crash counted, due at once');
SELECT is((SELECT outcome FROM pulse.attempt WHERE job_id = :missing), 'interrupted',
  'its attempt was interrupted');
SELECT refuses(format('SELECT pulse.complete(%s, %s)', :missing, :token), 'PU001',
  'and its token is stale');
SELECT is(state_of(:known), 'running', 'the known job is untouched');
DELETE FROM pulse.job;

SELECT given_worker('ann') AS ann \gset
SELECT beat(:ann, '{}') \g /dev/null
SELECT id AS late FROM given_claimed_job(:ann) \gset
SELECT beat(:ann, '{}') \g /dev/null
SELECT is(state_of(:late), 'running', 'a job claimed after the first of the two arrays stays');
SELECT beat(:ann, ARRAY[:late]) \g /dev/null
SELECT beat(:ann, '{}') \g /dev/null
SELECT is(state_of(:late), 'running', 'as does one that is known in between');
SELECT beat(:ann, '{}') \g /dev/null
SELECT is(state_of(:late), 'ready', 'an empty array twice gives everything back');
DELETE FROM pulse.job;

-- The same job claimed anew by the same worker between the arrays: this claim is missing once only.
SELECT id AS again, token FROM given_claimed_job(:ann) \gset
SELECT beat(:ann, '{}') \g /dev/null
SELECT pulse.fail(:again, :token, 'boom', retry_in => '0') \g /dev/null
SELECT claimed_ids(:ann) \g /dev/null
SELECT beat(:ann, '{}') \g /dev/null
SELECT is(state_of(:again), 'running', 'a new claim of the same job counts anew');
DELETE FROM pulse.job;
SELECT id AS last_one FROM given_claimed_job(:ann, max_attempts => 1) \gset
SELECT id AS unwanted FROM given_claimed_job(:ann) \gset
SELECT pulse.cancel_job(:unwanted) \g /dev/null
SELECT beat(:ann, '{}') \g /dev/null
SELECT beat(:ann, '{}') \g /dev/null
SELECT is(state_of(:last_one), 'failed', 'a missing job on its last attempt has failed');
SELECT is(state_of(:unwanted), 'cancelled', 'one that was to be cancelled is');

-- --- the attached session -----------------------------------------------------------------------

SELECT given_worker('ann') AS ann \gset
SELECT pulse.attach_worker(:ann) \g /dev/null
SELECT beat(:ann) \g /dev/null
SELECT isnt((SELECT attachment FROM pulse.heartbeat WHERE worker_id = :ann), NULL,
  'a beat of the attached session leaves it attached');
UPDATE pulse.heartbeat SET attachment = attachment + 1000000 WHERE worker_id = :ann;
SELECT beat(:ann) \g /dev/null
SELECT is((SELECT attachment FROM pulse.heartbeat WHERE worker_id = :ann), NULL,
  'a beat from another session detaches, so that silence decides');

-- --- what others hang on the table ---------------------------------------------------------------

ALTER TABLE pulse.heartbeat ADD COLUMN note text DEFAULT 'theirs';
SELECT is((pulse.heartbeat(:ann)).status, 'alive', 'a column of somebody''s is no obstacle');
SELECT is((pulse.sweep()).workers_lost, 0, 'nor to a sweep');
SELECT is((SELECT note FROM pulse.heartbeat WHERE worker_id = :ann), 'theirs', 'and is kept');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
