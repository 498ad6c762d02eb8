-- sql/schedule/schedule.sql, sql/schedule/crontab.sql: a rule that is stored is not judged anew, so
-- a call that was taken once is taken again, however far off the next due time is by then.
\ir support/setup.psql
SELECT plan(10);

-- 29 February on a Sunday. After that day there is none for more than eight years.
SELECT '0 0 29 2 */7' AS rule \gset
SELECT (pulse_internal.cron_times(:'rule', 'UTC', now(), now() + interval '40 years', 1))[1] AS due
 \gset
PREPARE store AS
  SELECT next_due FROM pulse.schedule('leap', 'task', :'rule', payload => $1);
PREPARE load AS
  SELECT l.change FROM pulse.load_crontab('set', json_build_array(json_build_object(
    'name', 'item', 'identifier', 'task', 'cron', :'rule', 'payload', $1::json))) AS l;

SELECT travel(:'due'::timestamptz - interval '1 day' - now());
SELECT results_eq($$EXECUTE store('{"n": 1}')$$, ARRAY[:'due'::timestamptz],
  'a rule that is due within eight years is stored');
SELECT results_eq($$EXECUTE load('{"n": 1}')$$, ARRAY['added'], 'as an item of a crontab is');
SELECT travel(:'due'::timestamptz + interval '1 day' - now());
SELECT pulse.sweep() \g /dev/null
SELECT next_due AS next FROM pulse.schedule WHERE name = 'leap' \gset
SELECT cmp_ok(:'next'::timestamptz, '>', pulse.now() + interval '8 years',
  'after it has been due, the next time is more than eight years off');
SELECT throws_like(format('SELECT pulse.schedule(''other'', ''task'', %L)', :'rule'),
  '%is never due', 'where such a rule is refused for a new schedule');
SELECT throws_like(format(
    'SELECT pulse.schedule(''leap'', ''task'', %L, time_zone => ''Asia/Tokyo'')', :'rule'),
  '%is never due', 'and in another zone');
SELECT results_eq($$EXECUTE store('{"n": 1}')$$, ARRAY[:'next'::timestamptz],
  'the same call keeps the stored one');
SELECT results_eq($$EXECUTE store('{"n": 2}')$$, ARRAY[:'next'::timestamptz],
  'also with another payload');
SELECT results_eq($$EXECUTE load('{"n": 2}')$$, ARRAY['changed'], 'a crontab may change its item');
SELECT pulse.load_crontab('set', '[]') \g /dev/null
SELECT results_eq($$EXECUTE load('{"n": 2}')$$, ARRAY['resumed'], 'and name it again');
SELECT is_empty('SELECT * FROM pulse.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
