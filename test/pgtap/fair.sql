-- sql/queue/fair.sql, sql/queue/set_queue.sql: the members of a fair level start jobs in turn.
-- Turns need shared memory of a server that preloads the library; what is said here of their order
-- holds there.
\ir support/setup.psql
SELECT plan(30);
SELECT current_setting('shared_preload_libraries') ~ 'pg_pulse' AS preloaded \gset
SELECT given_worker() AS ann \gset

-- Starts so many jobs, one claim each, and names their queues' last levels.
CREATE FUNCTION started(worker_id bigint, jobs int) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  names text := '';
BEGIN
  FOR i IN 1 .. jobs LOOP
    names := names || coalesce((SELECT right(c.queue_name, 1) FROM pulse.claim(worker_id) AS c),
                               '-');
  END LOOP;
  RETURN names;
END $$;
-- How often each letter occurs.
CREATE FUNCTION counts(names text) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(n.name || n.count, ' ' ORDER BY n.name)
    FROM (SELECT name, count(*) FROM regexp_split_to_table(names, '') AS name GROUP BY name) AS n
$$;
CREATE FUNCTION given_jobs(queue_name text, jobs int) RETURNS void
  LANGUAGE sql AS $$ SELECT given_job('mail', queue_name) FROM generate_series(1, jobs) $$;
CREATE FUNCTION where_preloaded(preloaded boolean, have text, expected text, title text)
  RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN preloaded THEN is(have, expected, title)
              ELSE pass(title || ', where the library is preloaded') END
$$;

-- --- what is stored -----------------------------------------------------------------------------

SELECT answers($$SELECT fair, weight FROM pulse.set_queue('m', 1)$$, ROW(false, 1),
  'a level is not fair unless it is asked for, and has the weight of 1');
SELECT answers($$SELECT fair, weight FROM pulse.set_queue('m', fair => true, weight => 3)$$,
  ROW(true, 3), 'both can be set');
SELECT answers($$SELECT fair, weight FROM pulse.set_queue('m', 2)$$, ROW(true, 3),
  'NULL leaves them as they are');
SELECT refuses(format($$SELECT pulse.set_queue('m', weight => %s)$$, n), 'PU004',
               'set_queue refuses the weight of ' || n)
  FROM unnest(ARRAY[0, -1, 1001]) AS n;
SELECT answers($$SELECT fair, weight FROM pulse.queue_status WHERE queue_name = 'm'$$,
  ROW(true, 3), 'queue_status shows both');
SELECT answers($$SELECT fair, weight FROM pulse_internal.level_settings('m/x')
                  WHERE level = 'm/x'$$, ROW(false, 1), 'a member has its own');

-- --- turns --------------------------------------------------------------------------------------

SELECT pulse.set_queue('t', fair => true), pulse.set_queue('t/*', concurrency => 100) \g /dev/null
SELECT given_jobs('t/a', 50), given_jobs('t/b', 9), given_jobs('t/c', 9) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 12)), 'a4 b4 c4',
  'members start as many jobs as each other, whatever their backlogs');
SELECT given_jobs('t/n', 1) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 4)), 'a1 b1 c1 n1',
  'a newcomer starts before the others come around the ring again');
SELECT where_preloaded(:'preloaded', counts(started(:ann, 12)), 'a4 b4 c4',
  'and costs the others nothing when it is done');
SELECT given_jobs('t/' || q, 9) FROM unnest(ARRAY['b', 'c']) AS q \g /dev/null
SELECT where_preloaded(:'preloaded', counts(string_agg(right(c.queue_name, 1), '')), 'a3 b3 c3',
  'a claim of many jobs gives many turns') FROM pulse.claim(:ann, 9) AS c;
SELECT promote_queues() \g /dev/null
SELECT is(count(*), 0::bigint, 'nothing is left behind') FROM pulse.job WHERE state = 'parked';

DELETE FROM pulse.job;
SELECT pulse.set_queue('w', fair => true), pulse.set_queue('w/*', concurrency => 100),
       pulse.set_queue('w/h', concurrency => 100, weight => 3) \g /dev/null
SELECT given_jobs('w/' || q, 20) FROM unnest(ARRAY['h', 'l', 'k']) AS q \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 20)), 'h12 k4 l4',
  'a member starts its weight once around the ring');
SELECT pulse.set_queue('w/h', paused => true) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 10)), 'k5 l5',
  'a paused one costs the others nothing');
SELECT pulse.set_queue('w/h', paused => false, weight => 1) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 9)), 'h3 k3 l3',
  'a new weight counts from the next turn');

-- --- queues of any depth ------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT pulse.set_queue('d', fair => true), pulse.set_queue('d/a/*', concurrency => 100),
       pulse.set_queue('d/*', concurrency => 100) \g /dev/null
SELECT given_jobs('d/' || q, 30) FROM unnest(ARRAY['a/1', 'a/2', 'a/3', 'b']) AS q \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 24)), '16 26 36 b6',
  'each queue beneath a fair level has a turn, however deep');
SELECT pulse.set_queue('d/a', fair => true) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 12)), '13 23 33 b3',
  'and the outermost fair level gives the turns');
SELECT pulse.set_queue('d/a', weight => 5) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(started(:ann, 12)), '13 23 33 b3',
  'whatever the weight of a level between');

-- Starts and ends so many jobs, one claim each.
CREATE FUNCTION ran(worker_id bigint, jobs int) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  names text := '';
  job record;
BEGIN
  FOR i IN 1 .. jobs LOOP
    SELECT c.id, c.token, c.queue_name INTO job FROM pulse.claim(worker_id) AS c;
    PERFORM pulse.complete(job.id, job.token);
    names := names || coalesce(right(job.queue_name, 1), '-');
  END LOOP;
  RETURN names;
END $$;

DELETE FROM pulse.job;
SELECT pulse.set_queue('e', fair => true), pulse.set_queue('e/*', weight => 3),
       pulse.set_queue('e/z', weight => 1) \g /dev/null
SELECT given_jobs('e/' || q, 40) FROM unnest(ARRAY['x', 'a/y', 'z']) AS q \g /dev/null
SELECT results_eq($$SELECT level, weight FROM pulse_internal.level_settings('e/a/y')$$,
  $$VALUES ('e', 1), ('e/a', 3), ('e/a/y', 3)$$,
  'the nearest settings of members give a queue without settings its weight');
SELECT where_preloaded(:'preloaded', counts(ran(:ann, 21)), 'x9 y9 z3', 'also in turns');
SELECT pulse.set_queue('e/a', weight => 1) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(ran(:ann, 21)), 'x9 y9 z3',
  'and past a level between with settings of its own');
SELECT pulse.set_queue('e/a/*', weight => 1) \g /dev/null
SELECT where_preloaded(:'preloaded', counts(ran(:ann, 15)), 'x9 y3 z3',
  'nearer settings of members come first');
DELETE FROM pulse.job WHERE queue_name LIKE 'e/%';

-- --- with a rate --------------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT pulse.set_queue('r', fair => true, rate => 6, per => '1 min', burst => 6),
       pulse.set_queue('r/*', concurrency => 100) \g /dev/null
SELECT given_jobs('r/a', 50), given_jobs('r/b', 9), given_jobs('r/c', 9) \g /dev/null
SELECT started(:ann, 9) AS rated \gset
SELECT where_preloaded(:'preloaded', counts(:'rated'), '-3 a2 b2 c2',
  'members share the tokens of their level');
SELECT is(right(:'rated', 3), '---', 'of which no more are given than there are');
DELETE FROM pulse.job WHERE queue_name LIKE 'r/%';

-- --- a full level -------------------------------------------------------------------------------

SELECT pulse.set_queue('s', fair => true, total => 1) \g /dev/null
SELECT pulse.add_job('mail', queue_name => 's/a', priority => 5) \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT pulse.add_job('mail', queue_name => 's/b') \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT pulse.add_job('mail', queue_name => 's/a', priority => -1) \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT answers($$SELECT queue_name, priority::int FROM pulse.job WHERE state = 'ready'$$,
  ROW('s/a', -1), 'a better job of the queue takes the place of its open one');
SELECT promote_queues() \g /dev/null
SELECT is(count(*), 1::bigint, 'and no other place')
  FROM pulse.job WHERE queue_name LIKE 's/%' AND state = 'ready';
DELETE FROM pulse.job WHERE queue_name LIKE 's/%';

-- --- without fairness ---------------------------------------------------------------------------

SELECT pulse.set_queue('d', fair => false) \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT is(count(*), 0::bigint, 'a level that is fair no longer opens all its jobs')
  FROM pulse.job WHERE state = 'parked';
SELECT is_empty('SELECT * FROM pulse.verify()', 'and verify() is silent');

SELECT pulse.set_queue('deep/*', fair => true) \g /dev/null
SELECT given_job('mail', 'deep/x/1'), given_job('mail', 'deep/y') \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT set_eq($$SELECT level FROM pulse_internal.fair_levels() WHERE level LIKE 'deep%'$$,
  '{deep/x,deep/y}'::text[], 'sweeps check each level that the settings of members make fair');

SELECT * FROM finish();
ROLLBACK;
