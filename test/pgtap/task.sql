-- sql/job/task.sql: settings of tasks, and the backoff that follows from them.
\ir support/setup.psql
SELECT plan(63);

SELECT expect_function('set_task',
  'identifier text, max_attempts integer DEFAULT NULL::integer, '
  'timeout interval DEFAULT NULL::interval, stall_timeout interval DEFAULT NULL::interval, '
  'backoff text DEFAULT NULL::text, backoff_base interval DEFAULT NULL::interval, '
  'backoff_cap interval DEFAULT NULL::interval, '
  'jitter double precision DEFAULT NULL::double precision, '
  'keep_completed interval DEFAULT NULL::interval, max_crashes integer DEFAULT NULL::integer, '
  'on_unreachable text DEFAULT NULL::text, handler regprocedure DEFAULT NULL::regprocedure, '
  'expires_after interval DEFAULT NULL::interval, queue text DEFAULT NULL::text, '
  'dead_letter text DEFAULT NULL::text',
  'pulse.task', 'volatile', 'invoker');

-- --- what is stored -----------------------------------------------------------------------------

SELECT is((pulse.set_task('mail')).identifier, 'mail', 'set_task returns the task');
SELECT is((SELECT count(*)::int FROM pulse.task), 1, 'and stores it once');
SELECT answers(
  $$SELECT max_attempts::int, timeout, stall_timeout, backoff, on_unreachable FROM
      pulse.set_task('mail', 5, '1 min', '10 s', 'fixed', on_unreachable => 'kill')$$,
  ROW(5, interval '1 min', interval '10 s', 'fixed'::text, 'kill'::text),
  'settings of a known task are changed');
SELECT answers(
  $$SELECT max_attempts::int, timeout, stall_timeout, backoff, on_unreachable FROM
      pulse.set_task('mail', timeout => '2 min')$$,
  ROW(5, interval '2 min', interval '10 s', 'fixed'::text, 'kill'::text),
  'NULL leaves a setting as it is');
-- Servers from 16 on write json without its schema.
SELECT alike((pulse.set_task('mail', handler => 'pg_catalog.json_typeof(json)')).handler,
  'pg_catalog.json_typeof(%json)', 'a task may have a function as its handler');

-- --- what a job gets of it ----------------------------------------------------------------------

SELECT is((pulse.add_job('mail')).max_attempts::int, 5, 'a job has the max_attempts of its task');
SELECT is((pulse.add_job('mail', max_attempts => 2)).max_attempts::int, 2,
  'unless its producer says otherwise');
SELECT given_worker() AS ann \gset
SELECT answers(
  format('SELECT timeout, stall_timeout, on_unreachable, handler FROM pulse.claim(%s)', :ann),
  ROW(interval '2 min', interval '10 s', 'kill'::text, 'json_typeof(json)'::regprocedure),
  'a claimed job carries the settings of its task');
SELECT answers(
  format('SELECT timeout, stall_timeout, on_unreachable, handler FROM pulse.held(%s)', :ann),
  ROW(interval '2 min', interval '10 s', 'kill'::text, 'json_typeof(json)'::regprocedure),
  'so does a held one');
SELECT answers(
  format($$SELECT timeout, stall_timeout, on_unreachable, handler
             FROM given_claimed_job(%s, 'plain')$$, :ann),
  ROW(NULL::interval, NULL::interval, 'continue'::text, NULL::regprocedure),
  'a task without settings has no limits and goes on while the database is away');
SET LOCAL pulse.default_timeout = '1h';
SELECT is((given_claimed_job(:ann, 'plain')).timeout, interval '1 h',
  'pulse.default_timeout is the limit of a task without one');
SELECT is((given_claimed_job(:ann, 'mail')).timeout, interval '2 min',
  'a task''s own timeout goes before it');

-- --- backoff ------------------------------------------------------------------------------------

-- What a job of this task waits after its n-th attempt failed.
CREATE FUNCTION backoff_after(task text, attempt int, retry_in interval = NULL) RETURNS int
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker();
  added bigint := given_job(task, max_attempts => 100);
  claimed pulse.claimed_job;
BEGIN
  UPDATE pulse.job SET attempts = attempt - 1 WHERE id = added;
  SELECT (c.job).* INTO STRICT claimed FROM pulse.claim_job(worker, added) AS c;
  PERFORM pulse.fail(claimed.id, claimed.token, 'boom', retry_in => retry_in);
  RETURN backoff_of(added);
END $$;

SELECT is(backoff_after('plain', 1), 3, 'the first failure waits e seconds');
SELECT is(backoff_after('plain', 2), 7, 'the second e squared');
SELECT is(backoff_after('plain', 10), 22026, 'the tenth e to the tenth');
SELECT is(backoff_after('plain', 11), 22026, 'and none waits longer');
SELECT is(backoff_after('plain', 3, '7 s'), 7, 'retry_in goes before the backoff');
SELECT is(backoff_after('plain', 3, '0'), 0, 'retry_in may be nothing');

SELECT pulse.set_task('doubling', backoff => 'exponential', backoff_base => '2 s',
                      backoff_cap => '10 s') \g /dev/null
SELECT is(backoff_after('doubling', 1), 2, 'with a base the first failure waits the base');
SELECT cmp_ok(backoff_after('doubling', 2), '>', 2, 'the next one longer');
SELECT is(backoff_after('doubling', 50), 10, 'the cap bounds it');
SELECT pulse.set_task('capped', backoff_cap => '5 s') \g /dev/null
SELECT is(backoff_after('capped', 1), 3, 'below a cap the default backoff holds');
SELECT is(backoff_after('capped', 2), 5, 'above it the cap holds');
SELECT pulse.set_task('steady', backoff => 'fixed', backoff_base => '3 s') \g /dev/null
SELECT is(backoff_after('steady', 1), 3, 'a fixed backoff of 3 s lets the first failure wait 3 s');
SELECT is(backoff_after('steady', 7), 3, 'and the seventh too');
SELECT pulse.set_task('eager', backoff => 'none') \g /dev/null
SELECT is(backoff_after('eager', 5), 0, 'without a backoff a failed job is due at once');
SELECT pulse.set_task('spread', backoff => 'fixed', backoff_base => '100 s',
                      jitter => 0.5) \g /dev/null
CREATE TEMP TABLE spread AS SELECT backoff_after('spread', 1) AS s FROM generate_series(1, 20);
SELECT ok((SELECT bool_and(s BETWEEN 50 AND 150) FROM spread),
  'with a jitter of one half the delay stays within half of itself');
SELECT cmp_ok((SELECT count(DISTINCT s) FROM spread), '>', 5::bigint, 'and is not always the same');

-- --- refusals -----------------------------------------------------------------------------------

SELECT refuses(format('SELECT pulse.set_task(%s)', c.arguments), 'PU004',
               'set_task refuses ' || c.arguments)
  FROM (VALUES ('NULL'), (''''''), ('''../x'''), ('''/bin/sh'''), ('repeat(''x'', 129)'),
               ('''mail'', max_attempts => 0'), ('''mail'', max_attempts => 40000'),
               ('''mail'', timeout => ''-1 s'''), ('''mail'', timeout => ''0'''),
               ('''mail'', timeout => ''1000 years'''), ('''mail'', stall_timeout => ''-1 s'''),
               ('''mail'', stall_timeout => ''0'''), ('''mail'', backoff => ''sometimes'''),
               ('''mail'', backoff_base => ''-1 s'''), ('''mail'', backoff_cap => ''-1 s'''),
               ('''mail'', jitter => -0.1'), ('''mail'', jitter => 1.5'),
               ('''mail'', jitter => ''NaN'''), ('''mail'', keep_completed => ''-1 d'''),
               ('''mail'', max_crashes => -2'), ('''mail'', on_unreachable => ''explode'''))
       AS c (arguments);
SELECT refuses($$SELECT pulse.set_task('mail', handler => 'no_such_function()')$$, '42883',
  'a handler must exist');

-- --- settings that are taken away ----------------------------------------------------------------

SELECT pulse.set_task('crashes', 3, '1 min', '10 s', 'fixed', '1 s', '5 s', 0.5, '1 d', 30000,
  'kill', 'pg_catalog.json_typeof(json)', '1 h', 'post') \g /dev/null
SELECT id AS job FROM pulse.add_job('crashes') \gset
UPDATE pulse.job AS j SET attempts = 20, max_attempts = 30, crashes = 20 WHERE j.id = :job;
SELECT ok(pulse.unset_task('crashes'), 'unset_task takes all settings away');
SELECT answers($$SELECT DISTINCT f.value FROM pulse.task AS t, json_each_text(row_to_json(t)) AS f
                  WHERE t.identifier = 'crashes'
                    AND f.key NOT IN ('identifier', 'created_at', 'updated_at')$$,
  ROW(NULL::text), 'so that each has its default');
SELECT ok(NOT pulse.unset_task('crashes'), 'and tells where there are none');
SELECT ok(NOT pulse.unset_task('unheard of'), 'or where the task was never set');
SELECT answers(format($$SELECT j.queue_name, j.start_by IS NULL FROM pulse.job AS j
                         WHERE j.id = %s$$, :job),
  ROW('post'::text, false), 'a job keeps what it got');
SELECT refuses('SELECT pulse.unset_task('''')', 'PU004', 'an empty name is refused');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
