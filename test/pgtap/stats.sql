-- sql/monitor/stats.sql: depth and age of each task and queue.
\ir support/setup.psql
SELECT plan(37);

SELECT expect_function('stats', 'max_rows integer DEFAULT 1000, of_kind text DEFAULT NULL::text',
  'TABLE(kind text, name text, ready bigint, future bigint, parked bigint, running bigint, '
  'oldest_due_at timestamp with time zone, oldest_due_age interval, estimated boolean, '
  'paused boolean, waiting bigint, names bigint, counted_at timestamp with time zone, '
  || 'oldest_is_known boolean)',
  'volatile', 'definer');

-- What is told of a task or queue, its age in seconds: whole minutes, whatever this took until now.
CREATE FUNCTION told(name text, kind text = 'task') RETURNS text
  LANGUAGE sql AS $$
  SELECT ROW(s.ready, s.future, s.parked, s.running,
             extract(epoch FROM date_trunc('minute', s.oldest_due_age))::int, s.estimated)::text
    FROM pulse.stats AS s WHERE s.name = told.name AND s.kind = told.kind
$$;
-- What other tests left of pages is no part of this one.
TRUNCATE pulse.job;
SELECT is_empty('SELECT * FROM pulse.stats', 'where no job is, nothing is told');

-- --- a task -------------------------------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT given_claimed_job(:ann) FROM generate_series(1, 2) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() - interval '10 min', priority => 5) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() - interval '20 min', priority => 7) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() - interval '5 min', priority => -1) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() + interval '1 h', priority => p)
  FROM unnest('{0,1,2,3}'::int[]) AS p \g /dev/null
SELECT given_job('mail', 'post') FROM generate_series(1, 6) \g /dev/null
SELECT pulse.add_job('ink', run_at => now() + interval '1 h') \g /dev/null
SELECT is(told('mail'), ROW(3, 4, 6, 2, 1200, false)::text,
  'a task: what is due, in the future, parked and running, and how long the oldest has been due');
SELECT is(told('ink'), ROW(0, 1, 0, 0, NULL, false)::text, 'nothing due has no age');
SELECT travel('2 h');
SELECT is(told('mail'), ROW(7, 0, 6, 2, 8400, false)::text, 'the time is that of pg_pulse');
SELECT travel('0');

-- --- a queue ------------------------------------------------------------------------------------

SELECT promote_queues() \g /dev/null
SELECT pulse.add_job('mail', queue_name => 'post', run_at => now() - interval '30 min',
                     priority => 9) \g /dev/null
SELECT pulse.add_job('ink', queue_name => 'post', run_at => now() - interval '3 min') \g /dev/null
SELECT is(told('post', 'queue'), ROW(1, NULL, 7, 0, 1800, false)::text,
  'a queue: what it has opened and what waits behind it, whatever its priority');
SELECT pulse.add_job('ink', queue_name => 'later', run_at => now() + interval '1 h') \g /dev/null
SELECT is(told('later', 'queue'), ROW(0, NULL, 1, 0, NULL, false)::text,
  'a queue whose jobs are all in the future has no age');
DELETE FROM pulse.job;
SELECT given_claimed_job(:ann, 'mail', 'post') \g /dev/null
SELECT is(told('post', 'queue'), ROW(0, NULL, 0, 1, NULL, false)::text,
  'a queue of which nothing waits is told while it runs');
SELECT pulse.pause_queue('post') \g /dev/null
SELECT answers($$SELECT paused, (SELECT s.paused FROM pulse.stats AS s WHERE s.name = 'mail')
                    FROM pulse.stats WHERE name = 'post'$$, ROW(true, NULL::boolean),
  'a queue that is paused is told so, a task has no pause');
DELETE FROM pulse.job;
DELETE FROM pulse.queue;
DELETE FROM pulse.queue_pause;

-- --- many ---------------------------------------------------------------------------------------

INSERT INTO pulse.job (identifier, priority, run_at, payload)
SELECT 'bulk', n % 3, now() - interval '1 s' * n, to_json(repeat('x', 300))
  FROM generate_series(1, 20000) AS n;
INSERT INTO pulse.job (identifier, run_at) VALUES
  ('rare', now() - interval '7 min'), ('rare', now() - interval '3 min'),
  ('rare', now() + interval '3 min');
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'queued', 'queue_' || n % 500, 'parked', now() - interval '1 s' * n
  FROM generate_series(1, 1000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'queued', 'long', 'parked', now() - interval '1 h' FROM generate_series(1, 5000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'queued', 'slow', 'parked', now() - interval '1 day';
SELECT answers('SELECT ready BETWEEN 1000 AND 2000, oldest_due_age > ''20000 s'', estimated
                  FROM pulse.stats WHERE name = ''bulk''', ROW(true, true, true),
  'of a great many what was seen, and it is said so; the age is exact');
SELECT is(told('rare'), ROW(2, 1, 0, 0, 420, true)::text, 'a few are counted, beside them too');
SELECT is(told('slow', 'queue'), ROW(0, NULL, 1, 0, 86400, false)::text,
  'of many queues those are told that have waited for longest');
SELECT answers('SELECT ready, parked, running, estimated
                  FROM pulse.stats WHERE name = ''long''', ROW(0, 10, 0, true),
  'of a long one what was seen');
SELECT is((SELECT count(*)::int FROM pulse.stats WHERE kind = 'queue' AND names = 1), 100,
  'no more than a hundred of them');
SELECT is((SELECT count(*)::int FROM pulse.stats(10) WHERE kind = 'queue' AND names = 1), 10,
  'or as many as are asked for');
SELECT is((SELECT ROW(names, waiting, estimated)::text FROM pulse.stats(10)
            WHERE kind = 'queue' AND name IS NULL), '(,,t)',
  'and a last row says that there are more');
SELECT is((SELECT string_agg(DISTINCT kind, ' ') FROM pulse.stats(of_kind => 'task')), 'task',
  'tasks alone');
SELECT is((SELECT string_agg(DISTINCT kind, ' ') FROM pulse.stats(of_kind => 'queue')), 'queue',
  'or queues alone');
SELECT is((SELECT bool_and(oldest_is_known = (name IS NOT NULL)) FROM pulse.stats), true,
  'of each name the age is known, and not of a row that adds names up');
SELECT set_has('SELECT name FROM pulse.stats', $$VALUES ('bulk'), ('rare'), ('queued')$$,
  'every task is told');

-- Pages that a statement reads, the second time.
CREATE FUNCTION pages_of(statement text) RETURNS int
  LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  FOR i IN 1 .. 2 LOOP
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || statement INTO plan;
  END LOOP;
  RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int
       + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
END $$;
ANALYZE pulse.job;
SELECT cmp_ok(pages_of('SELECT * FROM pulse.stats'), '<', 4500,
  'tens of thousands of jobs are not all read');
DELETE FROM pulse.job WHERE state = 'parked';
SELECT is(told('rare'), ROW(2, 1, 0, 0, 420, false)::text,
  'where nothing is parked, nothing of theirs is an estimate');
INSERT INTO pulse.job (identifier, priority) SELECT 'first', n FROM generate_series(1, 20) AS n;
INSERT INTO pulse.job (identifier, run_at)
SELECT 'zebra', now() - interval '1 min' * n FROM generate_series(2, 12) AS n;
SELECT count(*) AS claimed FROM pulse.claim(:ann, 10, '{zebra}') \gset
SELECT is(told('zebra'), ROW(1, 0, 0, :claimed, 120, false)::text,
  'jobs that run hide none behind them');
DELETE FROM pulse.job;
INSERT INTO pulse.job (identifier, run_at, priority)
SELECT 'task ' || n % 7, now() - interval '1 min', n % 90 FROM generate_series(1, 1000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'task ' || n % 7, 'queue ' || n % 50, 'parked', now() - interval '1 min' * n
  FROM generate_series(1, 1000) AS n;
SELECT is((SELECT ROW(sum(ready), sum(parked), bool_or(estimated))::text
             FROM pulse.stats(of_kind => 'task')), '(1000,1000,f)',
  'a thousand of each kind are counted one by one, of whatever tasks and priorities');
SELECT is((SELECT ROW(count(*), sum(parked), bool_or(estimated))::text
             FROM pulse.stats(of_kind => 'queue')), '(50,1000,f)', 'and queues');

-- --- refusals -----------------------------------------------------------------------------------

SELECT refuses(format('SELECT pulse.stats(%s)', n), 'PU004', n || ' rows cannot be asked for')
  FROM unnest(ARRAY['0', '-1', 'NULL', '100000']) AS n;
SELECT refuses('SELECT pulse.stats(of_kind => ''job'')', 'PU004', 'nor those of another kind');
CREATE ROLE pulse_stranger;
SELECT pulse.grant_observer('pulse_stranger') \g /dev/null
SELECT is((refusal_of('SELECT * FROM pulse.stats', 'pulse_stranger')).code, '00000',
  'an observer reads the view');
SELECT is((refusal_of('SELECT * FROM pulse.job', 'pulse_stranger')).code, '42501',
  'and no job');

SELECT * FROM finish();
ROLLBACK;
