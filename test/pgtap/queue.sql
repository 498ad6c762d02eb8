-- sql/queue/set_queue.sql: settings of named queues, pausing and resuming them.
\ir support/setup.psql
SELECT plan(57);

SELECT expect_function('set_queue',
  'queue_name text, concurrency integer DEFAULT NULL::integer, '
  'paused boolean DEFAULT NULL::boolean, total integer DEFAULT NULL::integer, '
  'rate integer DEFAULT NULL::integer, per interval DEFAULT NULL::interval, '
  'burst integer DEFAULT NULL::integer, '
  'fair boolean DEFAULT NULL::boolean, weight integer DEFAULT NULL::integer, '
  'strict boolean DEFAULT NULL::boolean, on_dead text DEFAULT NULL::text',
  'pulse.queue', 'volatile', 'definer');
SELECT expect_function('pause_queue', 'queue_name text', 'pulse.queue', 'volatile', 'definer');
SELECT expect_function('resume_queue', 'queue_name text', 'pulse.queue', 'volatile', 'definer');

-- --- what is stored -----------------------------------------------------------------------------

SELECT answers($$SELECT concurrency, paused FROM pulse.set_queue('post')$$,
  ROW(1, false), 'a queue runs one job at a time and is not paused');
SELECT answers($$SELECT concurrency, paused FROM pulse.set_queue('post', 3)$$, ROW(3, false),
  'its concurrency can be changed');
SELECT answers($$SELECT concurrency, paused FROM pulse.set_queue('post', paused => true)$$,
  ROW(3, true), 'NULL leaves the concurrency as it is');
SELECT answers($$SELECT concurrency, paused FROM pulse.set_queue('post', 2)$$, ROW(2, true),
  'NULL leaves a pause as it is');
SELECT answers($$SELECT concurrency, paused FROM pulse.resume_queue('post')$$, ROW(2, false),
  'resume_queue ends a pause and nothing else');
SELECT answers($$SELECT concurrency, paused FROM pulse.pause_queue('post')$$, ROW(2, true),
  'pause_queue pauses and nothing else');
SELECT answers($$SELECT concurrency, paused FROM pulse.pause_queue('new')$$, ROW(1, true),
  'a queue without settings can be paused');
SELECT is((SELECT count(*)::int FROM pulse.queue), 1, 'a queue with settings has one row');
SELECT given_job('mail', 'unset') AS job \gset
SELECT is((SELECT count(*)::int FROM pulse.queue), 1, 'adding a job stores no settings');
DELETE FROM pulse.job;
DELETE FROM pulse.queue;
DELETE FROM pulse.queue_pause;

-- --- pause and resume ---------------------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT id AS running, token FROM given_claimed_job(:ann, 'mail', 'post') \gset
SELECT given_job('mail', 'post') AS second \gset
SELECT given_job('mail') AS free \gset
SELECT pulse.pause_queue('post') \g /dev/null
SELECT is(state_of(:running), 'running', 'a pause leaves a running job alone');
SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :running, :token), 'which can complete');
SELECT promote_queues();
SELECT is(state_of(:second), 'parked', 'no job of a paused queue is opened');
SELECT is(claimed_ids(:ann, 10), ARRAY[:free]::bigint[], 'a claim skips a paused queue');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :second)), 'parked',
  'a job of a paused queue cannot be claimed by its id either');
SELECT pulse.resume_queue('post') \g /dev/null
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 10), ARRAY[:second]::bigint[], 'a resumed queue goes on');
SELECT token FROM pulse.held(:ann) WHERE id = :second \gset
SELECT pulse.complete(:second, :token) \g /dev/null

SELECT given_job('mail', 'post') AS third \gset
SELECT promote_queues();
SELECT is(state_of(:third), 'ready', 'given an open job that nobody claimed');
SELECT pulse.pause_queue('post') \g /dev/null
SELECT is(state_of(:third), 'parked', 'a pause parks it');
SELECT is(claimed_ids(:ann, 10), '{}', 'and nobody gets it');
SELECT pulse.resume_queue('post') \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:third), 'ready', 'until the queue is resumed');
DELETE FROM pulse.job;

-- --- concurrency (P8) ----------------------------------------------------------------------------

SELECT array_agg(given_job('mail', 'post') ORDER BY n) AS jobs
  FROM generate_series(1, 5) AS n \gset
SELECT promote_queues();
SELECT is((SELECT count(*)::int FROM pulse.job WHERE state = 'ready'), 1,
  'a queue opens one job at a time');
SELECT pulse.set_queue('post', 3) \g /dev/null
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 10), (:'jobs'::bigint[])[1:3],
  'a queue with concurrency 3 runs its first three jobs at once');
SELECT pulse.set_queue('post', 1) \g /dev/null
SELECT promote_queues();
SELECT is((SELECT count(*)::int FROM pulse.held(:ann)), 3,
  'less concurrency leaves running jobs alone');
SELECT is_empty('SELECT * FROM pulse.verify()', 'and breaks no promise');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) ORDER BY id LIMIT 2 \g /dev/null
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 10), '{}', 'but opens no job before they have ended');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 10), (:'jobs'::bigint[])[4:4], 'then one at a time');
SELECT pulse.set_queue('post', 2) \g /dev/null
SELECT promote_queues();
SELECT is(state_of((:'jobs'::bigint[])[5]), 'ready', 'more concurrency opens the next');
SELECT pulse.set_queue('post', 1) \g /dev/null
SELECT is(state_of((:'jobs'::bigint[])[5]), 'parked', 'less parks what nobody claimed');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

-- --- refusals -----------------------------------------------------------------------------------

SELECT refuses(format('SELECT pulse.set_queue(%s)', c.arguments), 'PU004',
               'set_queue refuses ' || c.arguments)
  FROM (VALUES ('NULL'), (''''''), ('repeat(''x'', 129)'), ('''post'', 0'), ('''post'', -1'))
       AS c (arguments);
SELECT refuses('SELECT pulse.pause_queue(NULL)', 'PU004', 'pause_queue refuses NULL');
SELECT refuses($$SELECT pulse.pause_queue('')$$, 'PU004', 'pause_queue refuses an empty name');
SELECT refuses($$SELECT pulse.resume_queue('nowhere')$$, 'PU005',
  'a queue that is not known cannot be resumed');
SELECT lives_ok($$SELECT pulse.set_queue(repeat('q', 128))$$, 'a name may have 128 characters');

-- --- jobs of lost workers -----------------------------------------------------------------------

SELECT id AS lost FROM given_claimed_job(:ann, 'mail', 'dark') \gset
SELECT pulse.pause_queue('dark') \g /dev/null
SELECT travel('1 min');
SELECT given_worker('bob') AS bob \gset
SELECT is((SELECT reason FROM pulse.claim_job(:bob, :lost)), 'parked',
  'the job of a lost worker cannot be claimed by its id while its queue is paused');
SELECT is(state_of(:lost), 'parked', 'it waits for the end of the pause');

SELECT * FROM finish();
ROLLBACK;
