-- sql/monitor/counters.sql: what became of attempts per task and per queue, as the tables keep it.
-- What the server counts when a transaction commits is in test/e2e/counters.pl.
\ir support/setup.psql
SELECT plan(64);

SELECT expect_function('rate_history',
  'identifier text DEFAULT NULL::text, queue_name text DEFAULT NULL::text',
  'TABLE(minute timestamp with time zone, started bigint, completed bigint, failed bigint, '
  'retried bigint, quarantined bigint, cancelled bigint, returned bigint, wait_p50 interval, '
  'wait_p95 interval, run_p50 interval, run_p95 interval)',
  'volatile', 'definer');
SELECT expect_function('rates', 'kind text',
  'TABLE(name text, period text, since timestamp with time zone, started bigint, '
  'completed bigint, failed bigint, retried bigint, quarantined bigint, cancelled bigint, '
  'returned bigint, per_second double precision, wait_p50 interval, wait_p95 interval, '
  'wait_p99 interval, run_p50 interval, run_p95 interval, run_p99 interval)',
  'volatile', 'definer');
SELECT expect_function('rate_histogram',
  'identifier text DEFAULT NULL::text, queue_name text DEFAULT NULL::text, '
  'period text DEFAULT ''hour''::text',
  'TABLE(at_least interval, below interval, waits bigint, runs bigint)', 'volatile', 'definer');
SELECT columns_are('pulse', 'task_rates', ARRAY[
  'identifier', 'period', 'since', 'started', 'completed', 'failed', 'retried', 'quarantined',
  'cancelled', 'returned', 'per_second', 'wait_p50', 'wait_p95', 'wait_p99', 'run_p50', 'run_p95',
  'run_p99']);
SELECT columns_are('pulse', 'queue_rates', ARRAY[
  'queue_name', 'period', 'since', 'started', 'completed', 'failed', 'retried', 'quarantined',
  'cancelled', 'returned', 'per_second', 'wait_p50', 'wait_p95', 'wait_p99', 'run_p50', 'run_p95',
  'run_p99']);

-- --- histograms ---------------------------------------------------------------------------------

CREATE FUNCTION sums(VARIADIC parts text[]) RETURNS bigint[]
  LANGUAGE sql AS $$ SELECT pulse_internal.sum_counts(p::int[]) FROM unnest(parts) AS p $$;
-- A histogram with one duration in each of these buckets.
CREATE FUNCTION at_buckets(VARIADIC buckets int[]) RETURNS bigint[]
  LANGUAGE sql AS $$
  SELECT array_agg((SELECT count(*) FROM unnest(buckets) AS b WHERE b = n) ORDER BY n)
    FROM generate_series(0, (SELECT max(b) FROM unnest(buckets) AS b)) AS n $$;
CREATE FUNCTION percentile(sums bigint[], part float8) RETURNS interval
  LANGUAGE sql AS $$ SELECT pulse_internal.percentile(sums, part) $$;

SELECT is(sums('{}', '{}'), '{}'::bigint[], 'the sum of empty histograms is empty');
SELECT is(sums('{1,2}', '{}', '{10,20,30}', '{100}'), '{111,22,30}'::bigint[],
  'histograms of any length are added');
SELECT is(sums('{2147483647}', '{2147483647}'), '{4294967294}'::bigint[],
  'a sum may be above that of its parts');
SELECT is(pulse_internal.add_counts('{1}', '{2,3}'), '{3,3}'::bigint[], 'one is added to another');
SELECT throws_ok($$SELECT pulse_internal.add_counts('{1}', '{NULL}')$$, 'XX000', NULL,
  'a NULL is no count');
SELECT throws_ok($$SELECT pulse_internal.add_counts('{1}', array_fill(1, '{113}'))$$, 'XX000', NULL,
  'and what is too long no histogram');
SELECT is(percentile('{}', 0.5), NULL, 'an empty histogram has no percentile');
SELECT is(percentile('{0,0}', 0.5), NULL, 'nor has one of zeros');
SELECT is(percentile(at_buckets(0), 0.5), interval '125 us', 'the first buckets are even');
SELECT is(percentile(at_buckets(3), 0.5), interval '875 us', 'up to a millisecond');
SELECT is(percentile(at_buckets(4), 0.5), interval '1.125 ms', 'then there are four per octave');
SELECT is(percentile(at_buckets(7), 0.5), interval '1.875 ms', 'the last of which');
SELECT is(percentile(at_buckets(8), 0.5), interval '2.25 ms', 'precedes the next octave');
SELECT is(percentile(at_buckets(83), 0.5), interval '983.04 s', 'and so on for seconds');
SELECT is(date_trunc('hour', percentile(at_buckets(111), 0.5)), interval '34 hours', 'and days');
SELECT is(percentile(at_buckets(4, 4, 8, 8), 0.5), interval '1.125 ms',
  'half of four are the first two');
SELECT is(percentile(at_buckets(4, 4, 8, 8), 0.51), interval '2.25 ms', 'more are not');
SELECT is(percentile(at_buckets(4, 8), 0), interval '1.125 ms', 'the least is the first');
SELECT is(percentile(at_buckets(4, 8), 1), interval '2.25 ms', 'the greatest the last');

-- --- windows ------------------------------------------------------------------------------------

DELETE FROM pulse.counter;
-- A task or queue that so long ago, in that minute or hour, completed so many attempts.
CREATE FUNCTION given_counter(
    span text, kind text, name text, ago interval, completed bigint = 1, bucket int = 4)
  RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO pulse.counter
  SELECT span, kind, date_bin(('1 ' || span)::interval, pulse.now() - ago, '2000-01-01 00:00Z'),
         name, 2 * completed, completed, 0, 0, 0, 0, 0,
         (at_buckets(bucket))::int[], (at_buckets(bucket + 4))::int[] $$;
CREATE FUNCTION seen(identifier text) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(r.period || ' ' || r.started || ' ' || r.completed, ', ' ORDER BY r.period)
    FROM pulse.task_rates AS r WHERE r.identifier = seen.identifier $$;
SELECT given_counter('minute', 'task', 'mail', '59 min', 3),
       given_counter('minute', 'task', 'mail', '62 min', 100),
       given_counter('hour', 'task', 'mail', '23 h', 5),
       given_counter('hour', 'task', 'mail', '26 h', 1000) \g /dev/null
SELECT is(seen('mail'), 'day 10 5, hour 6 3', 'a period counts what is within it, and no more');
SELECT is((SELECT count(*) FROM pulse.queue_rates), 0::bigint, 'a task is no queue');
SELECT given_counter('minute', 'queue', 'mail', '5 min', 7), given_counter('minute', 'task', '',
  '5 min', 9) \g /dev/null
SELECT is((SELECT ROW(queue_name, started, completed)::text FROM pulse.queue_rates),
  '(mail,14,7)', 'and a queue of the same name no task');
SELECT is((SELECT completed FROM pulse.task_rates WHERE identifier IS NULL), 9::bigint,
  'those without a counter have no name');
SELECT is((SELECT ROW(wait_p50, wait_p99, run_p50, run_p99)::text
             FROM pulse.task_rates WHERE identifier = 'mail' AND period = 'hour'),
  '(00:00:00.001125,00:00:00.001125,00:00:00.00225,00:00:00.00225)', 'waits and runs are apart');
SELECT ok((SELECT bool_and(since <= pulse.now() - ('1 ' || period)::interval
                           AND abs(per_second * extract(epoch FROM pulse.now() - since)
                                   - completed) < 0.1)
             FROM pulse.task_rates), 'a rate is about the time since its period began');

-- --- a chart ------------------------------------------------------------------------------------

-- Without preloading it has no row.
CREATE FUNCTION chart(arguments text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  answer text;
BEGIN
  EXECUTE format('SELECT ROW(count(*), sum(started), sum(completed), min(run_p50))::text '
                 'FROM pulse.rate_history(%s)', arguments) INTO answer;
  RETURN CASE WHEN pulse_internal.has_counters() THEN answer
              ELSE CASE answer WHEN '(0,,,)' THEN NULL ELSE 'not empty' END END;
END $$;
CREATE FUNCTION charts(arguments text, expected text, why text) RETURNS text
  LANGUAGE sql AS $$
  SELECT is(chart(arguments), CASE WHEN pulse_internal.has_counters() THEN expected END, why) $$;
SELECT given_counter('minute', 'task', 'ink', '3 min', 20, 8) \g /dev/null
SELECT charts($$'mail'$$, '(61,6,3,00:00:00.00225)', 'a task');
SELECT charts($$queue_name => 'mail'$$, '(61,14,7,00:00:00.00225)', 'a queue');
SELECT charts('', '(61,64,32,00:00:00.00225)', 'all tasks together');
SELECT charts($$'unknown'$$, '(61,0,0,)', 'a task that nothing is known of');
SELECT ok((SELECT bool_and(minute = date_trunc('minute', minute))
                  AND max(minute) = date_trunc('minute', pulse.now())
             FROM pulse.rate_history()) IS NOT FALSE, 'minutes, and the present one is the last');
SELECT refuses('SELECT pulse.rates(' || k || ')', 'PU004', 'a kind is not ' || k)
  FROM (VALUES ('''tasks'''), ('NULL')) AS v (k);
SELECT refuses($$SELECT pulse.rate_history('a', 'b')$$, 'PU004', 'both are refused');

-- --- how long they took -------------------------------------------------------------------------

CREATE FUNCTION ms(duration interval) RETURNS numeric
  LANGUAGE sql AS $$ SELECT trim_scale(extract(epoch FROM duration) * 1000) $$;
CREATE FUNCTION histogram(arguments text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  answer text;
BEGIN
  EXECUTE format(
    'SELECT string_agg(format(''%%s-%%s ms: %%s %%s'', ms(at_least), ms(below), waits, runs),'
    ' '', '') FROM pulse.rate_histogram(%s)', arguments) INTO answer;
  RETURN answer;
END $$;
SELECT is(histogram($$'mail'$$),
  '1-1.25 ms: 1 0, 1.25-1.5 ms: 0 0, 1.5-1.75 ms: 0 0, 1.75-2 ms: 0 0, 2-2.5 ms: 0 1',
  'a task, of which the buckets between the shortest and the longest are counted');
SELECT is(histogram($$queue_name => 'mail', period => 'hour'$$), histogram($$'mail'$$),
  'a queue alike');
SELECT is((SELECT ROW(count(*), sum(waits), sum(runs), max(runs))::text
             FROM pulse.rate_histogram()), '(9,3,3,2)', 'all tasks together');
SELECT is(histogram($$'mail', period => 'day'$$), histogram($$'mail'$$), 'a day is that of hours');
SELECT is(histogram($$'mail', period => 'minute'$$), NULL, 'nothing ran in the last minute');
SELECT is(histogram($$'unknown'$$), NULL, 'nothing is known of others');
SELECT given_counter('minute', 'queue', 'slow', '3 min', 1, 107) \g /dev/null
SELECT is((SELECT ROW(date_trunc('hour', at_least), below, runs)::text
             FROM pulse.rate_histogram(queue_name => 'slow')
            ORDER BY at_least DESC LIMIT 1), '(32:00:00,,1)', 'the last bucket has no end');
SELECT refuses($$SELECT pulse.rate_histogram('a', 'b')$$, 'PU004', 'both are refused');
SELECT refuses($$SELECT pulse.rate_histogram(period => 'week')$$, 'PU004', 'a week is no period');

-- --- sweeps -------------------------------------------------------------------------------------

SELECT pulse_internal.add_minutes('task', pulse.now()) \g /dev/null
SELECT is((SELECT count(*) FROM pulse.counter WHERE kind = 'task'), 4::bigint,
  'what no view reads any more is deleted');
-- Made-up names: so many in an hour that further ones are added together.
INSERT INTO pulse.counter
SELECT 'hour', 'task', date_bin('1 hour', pulse.now(), '2000-01-01 00:00Z'), 'name ' || n,
       0, 0, 0, 0, 0, 0, 0, '{}', '{}' FROM generate_series(1, 5) AS n;
SELECT is(ARRAY(SELECT pulse_internal.counter_name('task', n,
              date_bin('1 hour', pulse.now(), '2000-01-01 00:00Z'), 4)
              FROM unnest('{name 2,name 6}'::text[]) AS n), '{name 2,""}'::text[],
  'a new name beyond the limit of an hour is counted without its name');

SELECT * FROM finish();
ROLLBACK;
