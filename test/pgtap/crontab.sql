-- sql/schedule/crontab.sql: schedules that a file of pulse-worker names.
\ir support/setup.psql
SELECT plan(49);

SELECT expect_function('load_crontab', 'set_name text, items json',
  'TABLE(name text, change text)', 'volatile', 'invoker');

CREATE FUNCTION load(items text, set_name text = 'app') RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(name || ' ' || change, ', ' ORDER BY name)
    FROM pulse.load_crontab(set_name, items::json)
$$;
CREATE FUNCTION stored(which text) RETURNS pulse.schedule
  LANGUAGE sql AS $$ SELECT s FROM pulse.schedule AS s WHERE s.name = which $$;

-- --- what a load stores --------------------------------------------------------------------------

SELECT is(load('[{"name": "b", "identifier": "backup", "cron": "0 3 * * *"},
                 {"name": "a", "identifier": "ask", "cron": "0 0 1 1 *", "fill": "2 hours",
                  "payload": {"x": 1}, "queue_name": "q", "max_attempts": 3, "priority": -1,
                  "job_key": "k", "job_key_mode": "preserve_run_at"}]'), 'a added, b added',
  'items become schedules');
SELECT pulse.sweep();
SELECT is((SELECT count(*) FROM pulse.job), 0::bigint, 'of which none is late');
SELECT is((s.identifier, s.cron, s.time_zone, s.missed, s.overlap, s.paused, s.crontab_set)::text,
  '(backup,"0 3 * * *",UTC,skip,allow,f,app)', 'in UTC; what is missed is skipped')
  FROM stored('b') AS s;
SELECT is((s.missed, s.missed_for, s.payload::text, s.queue_name, s.max_attempts, s.priority,
           s.job_key, s.job_key_mode)::text,
  '(all,02:00:00,"{""x"": 1}",q,3,-1,k,preserve_run_at)', 'fill makes up for what was missed')
  FROM stored('a') AS s;
SELECT is(load('[{"name": "b", "identifier": "backup", "cron": "0 3 * * *"},
                 {"name": "a", "identifier": "ask", "cron": "0 0 1 1 *", "fill": "2 hours",
                  "payload": {"x": 1}, "queue_name": "q", "max_attempts": 3, "priority": -1,
                  "job_key": "k", "job_key_mode": "preserve_run_at"}]'),
  'a unchanged, b unchanged', 'a second load finds them');
SELECT xmin AS version FROM pulse.schedule WHERE name = 'b' \gset
SELECT is(load('[{"name": "b", "identifier": "backup", "cron": "0 3 * * *"},
                 {"name": "a", "identifier": "ask", "cron": "0 * * * *"}]'),
  'a changed, b unchanged', 'a changed item is stored');
SELECT is((SELECT xmin::text FROM pulse.schedule WHERE name = 'b'), :'version',
  'an unchanged item is not written');
SELECT is((SELECT string_agg(name, ' ' ORDER BY name) FROM pulse.schedules), 'a b',
  'the view shows them');

-- --- what a load does not name -------------------------------------------------------------------

SELECT is(load('[{"name": "a", "identifier": "ask", "cron": "0 * * * *"}]'),
  'a unchanged, b paused', 'an item that is gone is paused');
SELECT ok((s.paused AND s.gone_at IS NOT NULL), 'and is marked as gone') FROM stored('b') AS s;
SELECT is(load('[{"name": "a", "identifier": "ask", "cron": "0 * * * *"}]'), 'a unchanged',
  'once');
SELECT is(load('[{"name": "a", "identifier": "ask", "cron": "0 * * * *"},
                 {"name": "b", "identifier": "backup", "cron": "0 3 * * *"}]'),
  'a unchanged, b resumed', 'an item that is named again goes on');
SELECT ok((NOT s.paused AND s.gone_at IS NULL), 'as it was') FROM stored('b') AS s;
SELECT pulse.pause_schedule('b');
SELECT is(load('[{"name": "a", "identifier": "ask", "cron": "0 * * * *"},
                 {"name": "b", "identifier": "backup", "cron": "0 4 * * *"}]'),
  'a unchanged, b changed', 'a change');
SELECT ok((stored('b')).paused, 'keeps the pause of an operator');
SELECT is(load('[{"name": "a", "identifier": "ask", "cron": "0 * * * *"}]'),
  'a unchanged, b paused', 'so does an item that goes');
SELECT is(load('[{"name": "a", "identifier": "ask", "cron": "0 * * * *"},
                 {"name": "b", "identifier": "backup", "cron": "0 4 * * *"}]'),
  'a unchanged, b resumed', 'and comes back');
SELECT ok((stored('b')).paused, 'paused as the operator left it');

UPDATE pulse.schedule SET next_due = date_trunc('hour', pulse.now()) - interval '2 hours'
 WHERE name = 'a';
SELECT is(load('[]'), 'a paused, b paused', 'an empty file pauses all of its set');
-- A fourth hour may begin meanwhile.
SELECT ok((stored('a')).missed_count IN (3, 4), 'and counts what no sweep has settled');
SELECT is(load('[{"name": "other", "identifier": "ask", "cron": "0 * * * *"}]', 'elsewhere'),
  'other added', 'another set');
SELECT is(load('[]'), NULL, 'is left alone');
SELECT ok(NOT (stored('other')).paused, 'by loads of the first');
UPDATE pulse.schedule SET gone_at = gone_at - interval '23 hours' WHERE name = 'a';
UPDATE pulse.schedule SET gone_at = gone_at - interval '25 hours' WHERE name = 'b';
SELECT pulse.tick();
SELECT is((SELECT string_agg(name, ' ' ORDER BY name) FROM pulse.schedule), 'a other',
  'a day later an unnamed item is deleted');

-- --- what its jobs get ---------------------------------------------------------------------------

SELECT is(load('[{"name": "a", "identifier": "ask", "cron": "* * * * *", "fill": "1 hour",
                  "payload": {"x": 1}}]'), 'a resumed', 'a rule of each minute');
UPDATE pulse.schedule SET next_due = date_trunc('minute', pulse.now()) - interval '5 min'
 WHERE name = 'a';
SELECT pulse.sweep();
SELECT cmp_ok(count(*), '>=', 5::bigint, 'fill makes up for each minute')
  FROM pulse.job WHERE identifier = 'ask';
SELECT is(payload -> '_cron' ->> 'ts',
  to_char(scheduled_for AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'the payload names the due time')
  FROM pulse.job WHERE identifier = 'ask' ORDER BY id LIMIT 1;
SELECT is((payload ->> 'x', payload -> '_cron' ->> 'backfilled')::text, '(1,true)',
  'beside what the item has, and that it is late')
  FROM pulse.job WHERE identifier = 'ask' ORDER BY id LIMIT 1;
SELECT is(payload -> '_cron' ->> 'backfilled', 'false', 'what is in time says so')
  FROM pulse.job WHERE identifier = 'ask' ORDER BY id DESC LIMIT 1;
SELECT is((pulse.run_schedule_now('a')).payload -> '_cron' ->> 'backfilled', 'false',
  'a job by hand has it, too');

-- --- refusals ------------------------------------------------------------------------------------

PREPARE load AS SELECT pulse.load_crontab('app', $1);
SELECT throws_like($$EXECUTE load('{}')$$, 'items is object', 'items are an array');
SELECT throws_like($$EXECUTE load(NULL)$$, 'items is null', 'of items');
SELECT throws_like($$EXECUTE load('[{"name": "a", "identifier": "x", "cron": "61 * * * *"}]')$$,
  'cron rule ''61 * * * *'' has an unknown minute', 'a rule is checked');
SELECT throws_like($$EXECUTE load('[{"name": "a", "identifier": "x", "cron": "* * * * *",
                                     "payload": []}]')$$,
  'payload of ''a'' is of type array', 'a payload is an object');
SELECT throws_like($$EXECUTE load('[{"name": "a", "identifier": "x", "cron": "* * * * *",
  "fill": "11 years"}]')$$, 'fill is 11 years, out of range', 'a fill has an end');
SELECT throws_like($$EXECUTE load('[{"name": "a", "identifier": "x", "cron": "* * * * *"},
                                    {"name": "a", "identifier": "y", "cron": "* * * * *"}]')$$,
  'crontab ''app'' names ''a'' twice', 'a name is given once');
SELECT pulse.schedule('mine', 'ask', '@daily');
SELECT throws_like($$EXECUTE load('[{"name": "mine", "identifier": "x", "cron": "* * * * *"}]')$$,
  'schedule ''mine'' is not of a crontab', 'what schedule() made is left alone');
SELECT throws_like($$SELECT pulse.schedule('a', 'ask', '@daily')$$,
  'schedule ''a'' is of the crontab ''app''', 'and schedule() leaves a crontab''s alone');
SELECT throws_like($$EXECUTE load('[{"name": "other", "identifier": "x", "cron": "* * * * *"}]')$$,
  'schedule ''other'' is of the crontab ''elsewhere''', 'as does another set');
SELECT is((SELECT count(*) FROM pulse.verify()), 0::bigint, 'verify() is empty');

-- --- pauses of an operator while the crontab leaves a schedule out -------------------------------

CREATE FUNCTION loaded(items json) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(change, ' ') FROM pulse.load_crontab('release', items)
$$;
SELECT loaded('[{"name": "left", "identifier": "mail", "cron": "* * * * *"}]'), loaded('[]')
  \g /dev/null
SELECT pulse.pause_schedule('left') \g /dev/null
SELECT is(loaded('[{"name": "left", "identifier": "mail", "cron": "* * * * *"}]'), 'resumed',
  'a schedule that is named again');
SELECT ok((SELECT paused FROM pulse.schedule WHERE name = 'left'), 'stays paused');
SELECT pulse.resume_schedule('left'), loaded('[]'), pulse.resume_schedule('left') \g /dev/null
SELECT is((SELECT ROW(paused, gone_at)::text FROM pulse.schedule WHERE name = 'left'), '(f,)',
  'one that is resumed is not to be deleted');

SELECT * FROM finish();
ROLLBACK;
