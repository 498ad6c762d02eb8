-- sql/monitor/count_jobs.sql: how many jobs there are in each state, where no commit counts them;
-- test/e2e/depth_roads.pl compares with the counts of commits.
\ir support/setup.psql
SELECT plan(23);

SELECT expect_function('count_jobs',
  'task text DEFAULT NULL::text, queue text DEFAULT NULL::text, key text DEFAULT NULL::text, '
  'error text DEFAULT NULL::text, error_line text DEFAULT NULL::text, '
  'older_than interval DEFAULT NULL::interval, newer_than interval DEFAULT NULL::interval',
  'TABLE(state text, jobs bigint, is_exact boolean)', 'volatile', 'invoker');

-- The counts that are not zero: "due 3, parked 1+".
CREATE FUNCTION told(
    task text = NULL, queue text = NULL, key text = NULL, error text = NULL,
    error_line text = NULL, older_than interval = NULL, newer_than interval = NULL)
  RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(c.state || ' ' || c.jobs || CASE WHEN c.is_exact THEN '' ELSE '+' END, ', '
                    ORDER BY array_position('{due,scheduled,parked,running}', c.state), c.state)
           FILTER (WHERE c.jobs > 0 OR NOT c.is_exact)
    FROM pulse.count_jobs(task, queue, key, error, error_line, older_than, newer_than) AS c
$$;
CREATE FUNCTION ended(task text, state pulse.finished_state, jobs int, error text = NULL,
                      queue_name text = NULL) RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO pulse.finished_job (id, identifier, payload, priority, run_at, state, attempts,
      max_attempts, crashes, revision, created_at, finished_at, last_error, queue_name)
  SELECT nextval('pulse.job_id_seq'), task, '{}', 0, now(), state, 1, 25, 0, 0,
         now() - interval '1 day', now() - i * interval '1 ms', error, queue_name
    FROM generate_series(1, jobs) AS i $$;
-- What other tests left of pages is no part of this one.
TRUNCATE pulse.job;
SELECT told() \g /dev/null
SELECT is((SELECT count(*) FROM pulse.count_jobs()), 9::bigint, 'each state has a row');
SELECT is(told(), NULL, 'where no job is');

SELECT given_worker() AS ann \gset
SELECT given_claimed_job(:ann) FROM generate_series(1, 2) \g /dev/null
SELECT given_job('mail') FROM generate_series(1, 3) \g /dev/null
SELECT pulse.add_job('mail', run_at => now() + interval '1 h') \g /dev/null
SELECT pulse.add_job('ink', run_at => now() + interval '1 h', job_key => 'pen') \g /dev/null
SELECT given_job('ink', 'desk') FROM generate_series(1, 4) \g /dev/null
SELECT pulse.add_job('ink', queue_name => 'desk', run_at => now() + interval '1 h')
  FROM generate_series(1, 5) \g /dev/null
SELECT pulse.add_job('ink', queue_name => 'attic', run_at => now() + interval '1 h') \g /dev/null
SELECT ended('mail', 'failed', 2, 'no paper'), ended('ink', 'failed', 3, 'no ink', 'desk'),
       ended('ink', 'completed', 7, NULL, 'desk'), ended('mail', 'expired', 1) \g /dev/null
SELECT is(told(), 'due 3, scheduled 8, parked 10, running 2, completed 7, expired 1, failed 5',
  'a parked job that is not due counts as scheduled, too');
SELECT is(told(), (SELECT format('due %s, scheduled %s, parked %s, running %s, completed 7, '
    'expired 1, failed 5', o.ready, o.future + o.parked_future,
    o.parked_future + o.parked_full, o.running) FROM pulse.overview AS o),
  'the overview has the same counts');
SELECT is(told('mail'), 'due 3, scheduled 1, running 2, expired 1, failed 2', 'of a task');
SELECT is(told('ink'), 'scheduled 7, parked 10, completed 7, failed 3', 'of one with parked jobs');
SELECT is(told('sms'), NULL, 'a task without jobs has none');
SELECT is(told(queue => 'desk'),
  'scheduled 5, parked 9, completed 7, failed 3', 'a queue with due and later jobs');
SELECT is(told(queue => 'attic'), 'scheduled 1, parked 1', 'a queue with later jobs alone');
SELECT is(told(key => 'pen'), 'scheduled 1', 'of a key');
SELECT is(told(error => 'NO'), 'failed 5', 'of a part of the last error');
SELECT is(told(error_line => 'no ink'), 'failed 3', 'of a line of the last error');
SELECT is(told(older_than => '1 h'), 'completed 7, expired 1, failed 5', 'of old jobs');
SELECT travel('2 h');
SELECT is(told(), 'due 5, parked 10, running 2, completed 7, expired 1, failed 5',
  'the time is that of pg_pulse');
SELECT travel('0');

-- --- bounds -------------------------------------------------------------------------------------

SELECT ended('ink', 'completed', 993), ended('mail', 'failed', 1996, 'no paper') \g /dev/null
SELECT is(told(),
  'due 3, scheduled 8, parked 10, running 2, cancelled 0+, completed 1000+, expired 1+, '
  'failed 1999+, quarantined 0+', 'a call reads a part of many ended jobs, and says so');
INSERT INTO pulse.job (identifier, run_at)
SELECT 'both', now() + interval '1 h' * side + i * interval '1 ms'
  FROM generate_series(1, 1000) AS i, unnest('{-1,1}'::int[]) AS side;
SELECT is((SELECT c.jobs < 1003 AND NOT c.is_exact FROM pulse.count_jobs() AS c
            WHERE c.state = 'due'), true, 'of many live jobs, too');

CREATE ROLE looking;
SELECT pulse.grant_observer('looking') \g /dev/null
SELECT refuses('SELECT * FROM pulse.count_jobs(error => ''no'')', '42501',
  'a role that may not read errors searches none', 'looking');

SELECT * FROM finish();
ROLLBACK;
