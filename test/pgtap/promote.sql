-- sql/queue/promote.sql: a queue's jobs wait parked; only promotion opens them, its lowest due one
-- first.
\ir support/setup.psql
SELECT plan(44);
SELECT given_worker() AS ann \gset

-- Which job of this queue is open, NULL when none is.
CREATE FUNCTION open_job(name text) RETURNS bigint
  LANGUAGE sql AS $$
  SELECT promote_queues();
  SELECT id FROM pulse.job WHERE queue_name = name AND state = 'ready'
$$;

-- --- parked until promoted (P8) ------------------------------------------------------------------

SELECT is((pulse.add_job('mail', queue_name => 'post')).state::text, 'parked',
  'a job with a queue is added parked');
SELECT is((pulse.add_job('mail')).state::text, 'ready', 'a job without one is added ready');
SELECT array_agg(id ORDER BY id) AS jobs FROM pulse.job \gset
SELECT isnt(open_job('post'), NULL, 'promotion opens a job of a free queue');
SELECT is(claimed_ids(:ann, 10), :'jobs'::bigint[], 'then it is claimed like any other');
SELECT given_job('mail', 'post') AS second \gset
SELECT is(open_job('post'), NULL, 'a queue with a running job opens none');
SELECT is((SELECT reason FROM pulse.claim_job(:ann, :second)), 'parked',
  'a parked job cannot be claimed by its id');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SELECT is(open_job('post'), :second::bigint, 'an end lets the next one open');
SELECT id AS undone
  FROM pulse.add_job('mail', queue_name => 'pile', run_at => now() - interval '1 h') \gset
SELECT pulse_internal.keep_queue_readings() \g /dev/null
-- Other tests may have left more marks than one call looks at.
CREATE FUNCTION promote_all_marked() RETURNS void
  LANGUAGE plpgsql AS $$ BEGIN WHILE pulse_internal.promote_marked(256) LOOP END LOOP; END $$;
SAVEPOINT before;
SELECT promote_all_marked() \g /dev/null
ROLLBACK TO before;
SELECT promote_all_marked() \g /dev/null
SELECT is((SELECT state FROM pulse.job WHERE id = :undone), 'ready',
  'what a savepoint took back is promoted again');
DELETE FROM pulse.job;

-- --- order (P8) ----------------------------------------------------------------------------------

SELECT (pulse.add_job('mail', queue_name => 'post', run_at => now() - interval '2 min')).id
  AS early \gset
SELECT (pulse.add_job('mail', queue_name => 'post', run_at => now() - interval '2 min')).id
  AS twin \gset
SELECT (pulse.add_job('mail', queue_name => 'post', run_at => now() - interval '3 min',
                      priority => 1)).id AS lesser \gset
SELECT (pulse.add_job('mail', queue_name => 'post', run_at => now() - interval '3 min')).id
  AS earlier \gset
SELECT (pulse.add_job('mail', queue_name => 'post', run_at => now() + interval '1 min',
                      priority => -9)).id AS future \gset
SELECT (pulse.add_job('ink', queue_name => 'post', run_at => now() - interval '1 min',
                      priority => -1)).id AS urgent \gset

CREATE FUNCTION run_through(worker_id bigint) RETURNS bigint[]
  LANGUAGE plpgsql AS $$
DECLARE
  order_seen bigint[] := '{}';
  claimed pulse.claimed_job;
BEGIN
  LOOP
    PERFORM promote_queues();
    SELECT * INTO claimed FROM pulse.claim(worker_id, 10);
    EXIT WHEN claimed.id IS NULL;
    order_seen := order_seen || claimed.id;
    PERFORM pulse.complete(claimed.id, claimed.token);
  END LOOP;
  RETURN order_seen;
END $$;
SELECT is(open_job('post'), :urgent::bigint, 'the lowest priority opens first, whatever the task');
SELECT is(run_through(:ann), ARRAY[:urgent, :earlier, :early, :twin, :lesser]::bigint[],
  'a queue runs by priority, then run_at, then id, one at a time');
SELECT is(state_of(:future), 'parked', 'a job of the future stays parked');
SELECT travel('2 min');
SELECT is(run_through(:ann), ARRAY[:future]::bigint[], 'until it is due');
SELECT travel('0');

-- --- a better job comes -------------------------------------------------------------------------

SELECT given_job('mail', 'post') AS first \gset
SELECT is(open_job('post'), :first::bigint, 'given an open job that nobody claimed');
SELECT given_job('mail', 'post', priority => -5) AS better \gset
SELECT is(open_job('post'), :better::bigint, 'a better one takes its place');
SELECT is(state_of(:first), 'parked', 'and it is parked again');
SELECT given_job('mail', 'post', priority => 5) AS worse \gset
SELECT is(open_job('post'), :better::bigint, 'a worse one does not');
SELECT is(claimed_ids(:ann), ARRAY[:better]::bigint[], 'once the open job is claimed');
SELECT given_job('mail', 'post', priority => -9) AS best \gset
SELECT is(open_job('post'), NULL, 'even a better one waits for its end');
SELECT is(state_of(:better), 'running', 'and does not stop it');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
DELETE FROM pulse.job;

-- --- every end frees the queue ------------------------------------------------------------------

-- Claims the queue's job, ends it in this way, and tells which job of the queue is open then.
CREATE FUNCTION open_after(worker_id bigint, ending text) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  first pulse.claimed_job;
BEGIN
  DELETE FROM pulse.job;
  first := given_claimed_job(worker_id, 'mail', 'post');
  PERFORM given_job('mail', 'post');
  EXECUTE format(ending, first.id, first.token);
  RETURN open_job('post') - first.id;
END $$;
SELECT is(open_after(:ann, e.ending), 1::bigint, e.name || ' lets the next job of the queue open')
  FROM (VALUES ('complete', 'SELECT pulse.complete(%s, %s)'),
               ('complete_many', 'SELECT pulse.complete_many(ARRAY[%s], ARRAY[%s])'),
               ('fail', 'SELECT pulse.fail(%s, %s, ''boom'')'),
               ('fail_many', 'SELECT pulse.fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''boom''])'),
               ('a final fail', 'SELECT pulse.fail(%s, %s, ''boom'', retry => false)'),
               ('snooze', 'SELECT pulse.snooze(%s, %s, ''1 hour'')')) AS e (name, ending);
SELECT is(open_after(:ann, 'SELECT pulse.release(ARRAY[%s], ARRAY[%s])'), 0::bigint,
  'a released job is the next of its queue again');
SELECT is(open_after(:ann, 'SELECT pulse.cancel_job(%s)'), NULL,
  'a running job that is to be cancelled keeps its queue');
DELETE FROM pulse.job;
SELECT given_job('mail', 'post') AS first \gset
SELECT given_job('mail', 'post', job_key => 'k') AS second \gset
SELECT given_job('mail', 'post') AS third \gset
SELECT open_job('post') \g /dev/null
SELECT pulse.cancel_job(:first) \g /dev/null
SELECT is(open_job('post'), :second::bigint, 'cancelling the open job opens the next');
SELECT pulse.remove_job('k') \g /dev/null
SELECT is(open_job('post'), :third::bigint, 'so does removing it');
SELECT given_job('mail', 'post', job_key => 'l', priority => -1) AS fourth \gset
SELECT open_job('post') \g /dev/null
SELECT pulse.add_job('mail', queue_name => 'elsewhere', job_key => 'l') \g /dev/null
SELECT is(open_job('post'), :third::bigint,
  'a job that is moved to another queue leaves its place');
SELECT is(open_job('elsewhere'), :fourth::bigint, 'and opens there');
DELETE FROM pulse.job;

-- --- queues do not stand in each other's way ----------------------------------------------------

SELECT array_agg(given_job('mail', 'q' || n % 3) ORDER BY n) AS jobs
  FROM generate_series(0, 8) AS n \gset
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 10), (:'jobs'::bigint[])[1:3], 'each queue runs one of its jobs');
DELETE FROM pulse.job;
SELECT given_job('unserved', 'post') AS unserved \gset
SELECT given_job('mail', 'post') AS waiting \gset
SELECT given_job('mail', 'other') AS other \gset
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 10, '{mail}'), ARRAY[:other]::bigint[],
  'a queue whose next job nobody serves waits, and the others go on');
DELETE FROM pulse.job;
SELECT array_agg(given_job('mail', 'post') ORDER BY n) AS jobs
  FROM generate_series(1, 20) AS n \gset
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 20), (:'jobs'::bigint[])[1:1],
  'a claim of many takes no more of a queue than may run');
SELECT pulse.complete(id, token) FROM pulse.held(:ann) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(state_of((:'jobs'::bigint[])[2]), 'ready', 'a sweep finds a queue that nobody marked');

UPDATE pulse.job SET priority = -1 WHERE id = (:'jobs'::bigint[])[9];
SELECT pulse.sweep() \g /dev/null
SELECT is(state_of((:'jobs'::bigint[])[9]), 'ready', 'and one whose open job is not its lowest');
SELECT is(state_of((:'jobs'::bigint[])[2]), 'parked', 'which it parks');

DELETE FROM pulse.job;
SELECT ARRAY[given_job('mail', 'q32'), given_job('mail', 'q176')] AS jobs \gset
SELECT set_eq(format('SELECT unnest(%L::bigint[])', claimed_ids(:ann, 10)), :'jobs'::bigint[],
  'a mark stands for all queues of its hash bucket');

-- --- the hash that places a queue among the marks -----------------------------------------------

SELECT is(pulse_internal.queue_bucket(q.name), q.slot::smallint,
          format('the slot of queue %L is the same for ever, because an index holds it', q.name))
  FROM (VALUES ('', 8129), ('mail', 908), ('été', 5977), (repeat('a', 128), 7416))
       AS q (name, slot);
SELECT is(pulse_internal.queue_bucket(NULL), NULL, 'a job without a queue has no slot');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
