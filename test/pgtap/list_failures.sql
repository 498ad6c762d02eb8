-- sql/monitor/list_failures.sql: jobs that failed, by the times of their ends and by their errors.
\ir support/setup.psql
SELECT plan(44);

SELECT expect_function('list_ended_jobs',
  'states text[] DEFAULT ''{failed,quarantined}''::text[], task text DEFAULT NULL::text, '
  'queue text DEFAULT NULL::text, key text DEFAULT NULL::text, error text DEFAULT NULL::text, '
  'error_line text DEFAULT NULL::text, older_than interval DEFAULT NULL::interval, '
  'newer_than interval DEFAULT NULL::interval, '
  'ended_before timestamp with time zone DEFAULT NULL::timestamp with time zone, '
  'before_id bigint DEFAULT NULL::bigint, max_rows integer DEFAULT 50',
  'TABLE(id bigint, state text, identifier text, queue_name text, priority integer, '
  'run_at timestamp with time zone, attempts integer, max_attempts integer, crashes integer, '
  'job_key text, worker_id bigint, created_at timestamp with time zone, '
  'claimed_at timestamp with time zone, finished_at timestamp with time zone, '
  'progress double precision, last_error text, last_error_line text)',
  'stable', 'invoker');
SELECT expect_function('list_failures',
  'states text[] DEFAULT ''{failed,quarantined}''::text[], task text DEFAULT NULL::text, '
  'queue text DEFAULT NULL::text, key text DEFAULT NULL::text, error text DEFAULT NULL::text, '
  'older_than interval DEFAULT NULL::interval, newer_than interval DEFAULT NULL::interval, '
  'max_rows integer DEFAULT 20, max_checked integer DEFAULT 20000',
  'TABLE(error_line text, jobs bigint, is_exact boolean, first_end timestamp with time zone, '
  'last_end timestamp with time zone, tasks text[])',
  'stable', 'invoker');

-- --- the line of an error that tells most -------------------------------------------------------

SELECT is(pulse_internal.error_line(error), line, what) FROM (VALUES
  (E'Traceback (most recent call last):\n  File "a.py", line 3\n    raise ValueError(7)\n'
   'ValueError: 7' || E'\n', 'ValueError: 7', 'Python: the last line'),
  (E'Error: no room\n    at run (a.js:3:1)\n    at main (a.js:9:1)', 'Error: no room',
   'Node: the message above the frames'),
  (E'java.io.IOException: cut\n\tat A.run(A.java:1)\nCaused by: java.net.SocketException: reset'
   || E'\n\tat B.read(B.java:2)\n\t... 4 more', 'Caused by: java.net.SocketException: reset',
   'Java: the last cause'),
  ('one line', 'one line', 'of one line this line'),
  (E'  first\n  last \r\n\n', '  last', 'where all lines are indented, the last one'),
  (E'disk full\r\n \t\n', 'disk full', 'no white space stands behind its words'),
  ('', '', 'no line of nothing'),
  (E'\n \n\t', '', 'nor of blank lines'),
  (repeat('é', 300), repeat('é', 200), 'at most 200 characters, none of them cut')
) AS e (error, line, what);

-- --- jobs by the times of their ends ------------------------------------------------------------

-- Five jobs; the later the end, the lower the id. Two ended at once.
CREATE FUNCTION failed(id bigint, task text, error text, ended interval,
                       state pulse.finished_state = 'failed') RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO pulse.finished_job (id, identifier, payload, priority, run_at, state, attempts,
      max_attempts, crashes, revision, created_at, finished_at, last_error, queue_name)
  VALUES (id, task, '{}', 0, now(), state, 1, 25, 0, 0, now() - interval '1 day', now() - ended,
          error, 'post') $$;
SELECT failed(1, 'mail', E'Traceback\n  a.py\nTimeout', '1 s'),
       failed(2, 'mail', 'Timeout of the disk', '2 s', 'quarantined'),
       failed(3, 'sms', 'Timeout', '3 s'), failed(4, 'sms', 'Timeout', '3 s'),
       failed(5, 'sms', NULL, '4 s'), failed(6, 'sms', 'done', '5 s', 'completed'),
       failed(7, 'sms', 'too late', '6 s', 'cancelled') \g /dev/null

CREATE FUNCTION listed(call text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  ids text;
BEGIN
  EXECUTE format('SELECT string_agg(coalesce(l.id::text, ''?'')
                           || CASE WHEN l.state IS NULL THEN '' more'' ELSE '''' END, '' '')
                    FROM pulse.list_ended_jobs(%s) AS l', call) INTO ids;
  RETURN ids;
END $$;
SELECT is(listed(''), '1 2 4 3 5', 'failed and quarantined jobs, the last end first');
SELECT is(listed('NULL'), '1 2 4 3 5 7', 'or all that ended without success');
SELECT is(listed('task => ''mail'''), '1 2', 'by task');
SELECT is(listed('error => ''timeout'''), '1 2 4 3', 'by a part of the error');
SELECT is(listed('error_line => ''Timeout'''), '1 4 3', 'by the line that tells most, whole');
SELECT is(listed('error_line => ''timeout'''), NULL, 'in the same case');
SELECT is(listed('max_rows => 3'), '1 2 4', 'a page has so many rows');
SELECT is(listed('max_rows => 3, ended_before => now() - interval ''3 s'', before_id => 4'), '3 5',
  'and the next goes on behind its last job, among those that ended at once, too');
SELECT is((SELECT string_agg(l.last_error_line, ',')
             FROM pulse.list_ended_jobs(task => 'mail') AS l),
  'Timeout,Timeout of the disk', 'each with the line of its error');
SELECT is((SELECT string_agg(l.id::text, ' ') FROM pulse.list_jobs(error_line => 'Timeout') AS l),
  '4 3 1', 'list_jobs finds the same jobs by the line');
SELECT answers($$SELECT * FROM pulse.preview_operation('retry', '{"error_line": "Timeout"}')$$,
  ROW(3::bigint, true, '{1,3,4}'::bigint[]), 'and so does a change of many jobs');

-- --- the errors ---------------------------------------------------------------------------------

SELECT results_eq(
  'SELECT error_line, jobs, is_exact, first_end, last_end, tasks FROM pulse.list_failures()',
  $$VALUES ('Timeout', 3::bigint, true, now() - interval '3 s', now() - interval '1 s',
            '{mail,sms}'::text[]),
           ('Timeout of the disk', 1, true, now() - interval '2 s', now() - interval '2 s',
            '{mail}'),
           ('', 1, true, now() - interval '4 s', now() - interval '4 s', '{sms}')$$,
  'the errors of failed jobs, with how many jobs, when and of which tasks');
SELECT is((SELECT string_agg(error_line || jobs, ',') FROM pulse.list_failures(task => 'sms')),
  'Timeout2,1', 'of the jobs that meet a condition');
SELECT is((SELECT count(*) FROM pulse.list_failures(max_rows => 1)), 1::bigint, 'so many of them');
SELECT is((SELECT count(*) FROM pulse.list_failures(newer_than => '1 h')), 0::bigint,
  'none where no job meets the conditions');
SELECT refuses('SELECT pulse.list_failures(max_rows => 0)', 'PU004',
  'a number of rows is in range');
SELECT refuses('SELECT pulse.list_ended_jobs(''{gone}'')', 'PU004', 'an unknown state is refused');

CREATE ROLE looking;
SELECT pulse.grant_observer('looking') \g /dev/null
SET ROLE looking;
SELECT answers('SELECT error_line, jobs FROM pulse.list_failures()', ROW(NULL::text, 5::bigint),
  'a role that may not read errors sees one group');
SELECT is((SELECT count(l.last_error_line) + count(l.last_error)
             FROM pulse.list_ended_jobs() AS l), 0::bigint, 'and no error of a job');
RESET ROLE;
SELECT refuses(format('SELECT pulse.%s(%s)', call, condition), '42501',
               'nor may it search them by ' || call, 'looking')
  FROM (VALUES ('list_failures', 'error => ''x'''), ('list_ended_jobs', 'error_line => ''x''')
       ) AS c (call, condition);

-- --- many jobs ----------------------------------------------------------------------------------

SELECT failed(100 + n, 'bulk', 'Timeout', interval '1 h' + interval '1 ms' * n)
  FROM generate_series(1, 20000) AS n \g /dev/null
SELECT answers('SELECT error_line, jobs, is_exact FROM pulse.list_failures(max_rows => 1)',
  ROW('Timeout', 19997::bigint, false), 'of more jobs the last 20,000 ends are counted');
SELECT is(listed('task => ''none'''), '20094 more',
  'a search that stops says where to go on');

SELECT * FROM finish();
ROLLBACK;
