-- sql/schedule/schedule.sql, sql/schedule/settle.sql: schedules, and the jobs that sweeps add by
-- them.
\ir support/setup.psql
SELECT plan(131);

SELECT expect_function('schedule',
  'name text, identifier text, cron text DEFAULT NULL::text, '
  'every interval DEFAULT NULL::interval, payload json DEFAULT NULL::json, '
  'time_zone text DEFAULT NULL::text, queue_name text DEFAULT NULL::text, '
  'max_attempts integer DEFAULT NULL::integer, priority integer DEFAULT NULL::integer, '
  'flags text[] DEFAULT NULL::text[], job_key text DEFAULT NULL::text, '
  'job_key_mode text DEFAULT ''replace''::text, missed text DEFAULT ''once''::text, '
  'missed_for interval DEFAULT ''1 day''::interval, overlap text DEFAULT ''allow''::text, '
  'paused boolean DEFAULT NULL::boolean', 'pulse.schedule', 'volatile', 'invoker');
SELECT expect_function('unschedule', 'name text', 'boolean', 'volatile', 'definer');
SELECT expect_function('pause_schedule', 'name text', 'pulse.schedule', 'volatile', 'definer');
SELECT expect_function('resume_schedule', 'name text', 'pulse.schedule', 'volatile', 'definer');
SELECT expect_function('run_schedule_now', 'name text', 'pulse.job', 'volatile', 'definer');
SELECT expect_function('next_runs',
  'name text, max_runs integer DEFAULT 5, '
  'after timestamp with time zone DEFAULT NULL::timestamp with time zone',
  'SETOF timestamp with time zone', 'stable', 'definer');

-- Moves a schedule so that its next due time was so long ago, and sweeps.
CREATE FUNCTION late(which text, ago interval) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pulse.schedule SET next_due = pulse.now() - ago WHERE name = which;
  PERFORM pulse.sweep();
END $$;
-- The same for one of every => '1 min', whose due times stay on its rule.
CREATE FUNCTION left_alone(which text, minutes int) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pulse.schedule SET anchor = anchor - make_interval(mins => minutes),
         next_due = next_due - make_interval(mins => minutes) WHERE name = which;
  PERFORM pulse.sweep();
END $$;
CREATE FUNCTION facts(which text) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('%s jobs, %s missed, %s overlapped',
                (SELECT count(*) FROM pulse.job WHERE identifier = which), missed, overlapped)
    FROM pulse.schedules WHERE name = which
$$;

-- --- what a call stores --------------------------------------------------------------------------

SELECT is((pulse.schedule('mail', 'mail', '0 6 * * *')).time_zone, 'UTC', 'the zone is UTC');
SELECT is((SELECT next_due FROM pulse.schedule WHERE name = 'mail'),
  (SELECT r FROM pulse.cron_runs('0 6 * * *', max_runs => 1) AS r), 'due by its rule from now');
SELECT is((pulse.schedule('mail', 'mail', '0 6 * * *', time_zone => 'europe/BERLIN')).time_zone,
  'Europe/Berlin', 'a zone is stored as the server spells it');
SELECT next_due - anchor AS step FROM pulse.schedule('tick', 'tick', every => '90 s') \gset
SELECT is(:'step'::interval, interval '90 s', 'an elapsed time counts from the creation');
SELECT is(ARRAY(SELECT r - s.anchor FROM pulse.schedule AS s, pulse.next_runs('tick', 3) AS r
                 WHERE s.name = 'tick'), '{00:01:30,00:03:00,00:04:30}'::interval[],
  'and goes on in equal steps');
SELECT is(pulse_internal.due_times(s, '2026-01-04', '2027-01-01', 1),
          ARRAY[timestamptz '2026-01-05 00:00+00'], 'a day is 24 hours')
  FROM (SELECT (jsonb_populate_record(NULL::pulse.schedule,
          '{"every": "2 days", "anchor": "2026-01-01 00:00+00"}')).*) AS s;
SELECT is((pulse.schedule('tick', 'tock', every => '90 s', priority => 7)).next_due,
  (SELECT anchor + interval '90 s' FROM pulse.schedule WHERE name = 'tick'),
  'the same rule keeps its phase');
SELECT is((SELECT (identifier, priority)::text FROM pulse.schedule WHERE name = 'tick'),
  '(tock,7)', 'and takes the rest');
UPDATE pulse.schedule SET anchor = anchor - interval '1 h', last_due = next_due - interval '2 h'
 WHERE name = 'tick';
SELECT ok((pulse.schedule('tick', 'tock', every => '60 s')).anchor > now() - interval '1 min',
  'another rule starts from now');
SELECT ok((SELECT last_due IS NOT NULL FROM pulse.schedule WHERE name = 'tick'),
  'its last due time stays');
SELECT is((pulse.schedule('tick', 'tick', every => '60 s', paused => true)).paused, true, 'paused');
SELECT is((pulse.schedule('tick', 'tick', every => '60 s')).paused, true, 'stays paused');
SELECT is((pulse.schedule('tick', 'tick', every => '60 s', paused => false)).paused, false,
  'until it is resumed');

CREATE FUNCTION refused_schedule(arguments text, pattern text) RETURNS SETOF text
  LANGUAGE plpgsql AS $$
DECLARE
  hint text := '';
BEGIN
  EXECUTE 'SELECT pulse.schedule(' || arguments || ')';
  RETURN NEXT fail('is not refused: ' || arguments);
EXCEPTION WHEN SQLSTATE 'PU004' THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN NEXT ok(SQLERRM LIKE pattern AND hint <> '', SQLERRM);
END $$;
SELECT refused_schedule(arguments, pattern) FROM (VALUES
  ($$'', 't', '@daily'$$, 'name has 0%'), ($$NULL, 't', '@daily'$$, '%name%'),
  ($$'s', '', '@daily'$$, 'identifier has 0%'), ($$'s', '../t', '@daily'$$, '%../t%'),
  ($$'s', 't'$$, '%either cron or every'), ($$'s', 't', '@daily', '1 h'$$, '%either cron or every'),
  ($$'s', 't', every => '1 month'$$, '%has months'), ($$'s', 't', every => '999 ms'$$, 'every%'),
  ($$'s', 't', '0 0 31 2 *'$$, '%never due'), ($$'s', 't', '@reboot'$$, '%@reboot%'),
  ($$'s', 't', '@daily', time_zone => 'Mars/Base'$$, '%Mars/Base%'),
  ($$'s', 't', '@daily', missed => 'twice'$$, 'missed ''twice''%'),
  ($$'s', 't', '@daily', overlap => 'queue'$$, 'overlap ''queue''%'),
  ($$'s', 't', '@daily', job_key_mode => 'x'$$, 'job_key_mode ''x''%'),
  ($$'s', 't', '@daily', missed_for => '-1 s'$$, 'missed_for%'),
  ($$'s', 't', '@daily', max_attempts => 0$$, 'max_attempts%'),
  ($$'s', 't', '@daily', priority => 40000$$, 'priority%'),
  ($$'s', 't', '@daily', queue_name => ''$$, 'queue_name%'),
  ($$'s', 't', '@daily', job_key => ''$$, 'job_key%')) AS r (arguments, pattern);
SELECT throws_ok(format('SELECT pulse.%s(''none'')', f), 'PU005', 'schedule ''none'' is not known',
                 f || ' of an unknown schedule')
  FROM unnest('{pause_schedule,resume_schedule,run_schedule_now,next_runs}'::text[]) AS f;
SELECT is(pulse.unschedule('none'), false, 'unschedule says that there was none');
SELECT is(pulse.unschedule('mail'), true, 'and that there was one');
SELECT is_empty($$SELECT name FROM pulse.schedule WHERE name = 'mail'$$, 'which is gone');

-- --- falling due ---------------------------------------------------------------------------------

SELECT pulse.schedule('a', 'a', every => '1 min', payload => '{"n": 1}', queue_name => 'q',
                      max_attempts => 3, priority => 5, flags => '{f}') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(facts('a'), '0 jobs, 0 missed, 0 overlapped', 'nothing is added before the due time');
SELECT next_due AS due FROM pulse.schedule WHERE name = 'a' \gset
SELECT travel('70 s');
SELECT pulse.sweep() \g /dev/null
SELECT answers($$SELECT payload::text, queue_name, max_attempts::int, priority::int, flags,
                        run_at, scheduled_for FROM pulse.job WHERE identifier = 'a'$$,
  ROW('{"n": 1}'::text, 'q'::text, 3, 5, '{f}'::text[], :'due'::timestamptz, :'due'::timestamptz),
  'a sweep adds the job with its due time');
SELECT pulse.sweep() \g /dev/null
SELECT is(facts('a'), '1 jobs, 0 missed, 0 overlapped', 'once');
SELECT is((SELECT next_due FROM pulse.schedule WHERE name = 'a'),
  :'due'::timestamptz + interval '1 min', 'the next due time follows the last, not the clock');
SELECT travel('130 s');
SELECT pulse.tick() \g /dev/null
SELECT is(facts('a'), '2 jobs, 0 missed, 0 overlapped', 'tick() adds jobs too');
SELECT pulse.pause_schedule('a') \g /dev/null
SELECT travel('20 min');
SELECT pulse.sweep() \g /dev/null
SELECT is(facts('a'), '2 jobs, 0 missed, 0 overlapped', 'a pause adds and counts nothing');
SELECT ok((pulse.resume_schedule('a')).next_due > pulse.now(), 'a resumed one starts from now');
SELECT travel('0');
SELECT pulse.schedule('p', 'p', every => '1 min', missed => 'all') \g /dev/null
CREATE FUNCTION unswept() RETURNS void
  LANGUAGE sql AS $$
  UPDATE pulse.schedule
     SET anchor = anchor - interval '10 min', next_due = next_due - interval '10 min'
   WHERE name = 'p'
$$;
SELECT unswept();
SELECT pulse.pause_schedule('p'), pulse.pause_schedule('p') \g /dev/null
SELECT is(facts('p'), '0 jobs, 10 missed, 0 overlapped', 'a pause counts what has passed, once');
SELECT pulse.resume_schedule('p') \g /dev/null
SELECT unswept();
SELECT pulse.schedule('p', 'p', every => '2 min', missed => 'all') \g /dev/null
SELECT is(facts('p'), '0 jobs, 20 missed, 0 overlapped', 'so does another rule');
SELECT unswept();
SELECT pulse.schedule('p', 'p', every => '2 min', missed => 'all', paused => true) \g /dev/null
SELECT is(facts('p'), '0 jobs, 25 missed, 0 overlapped', 'and a call that pauses');
SELECT is((SELECT last_due FROM pulse.schedule WHERE name = 'p'),
  (SELECT next_due - interval '2 min' FROM pulse.schedule WHERE name = 'p'), 'each is settled');
SELECT pulse.resume_schedule('p') \g /dev/null
SELECT unswept();
SET LOCAL pulse.claims = off;
SELECT pulse.pause_schedule('p') \g /dev/null
RESET pulse.claims;
SELECT is(facts('p'), '0 jobs, 25 missed, 0 overlapped', 'without claims nothing counts');
SELECT pulse.unschedule('p') \g /dev/null
UPDATE pulse.schedule SET last_due = now() + interval '1 year',
       next_due = now() + interval '1 year 1 min' WHERE name = 'a';
SELECT ok((SELECT ahead > interval '300 days' FROM pulse.schedules WHERE name = 'a'),
  'the view tells of a clock that was set back');
SELECT ok((pulse.resume_schedule('a')).next_due < pulse.now() + interval '2 min',
  'and resume_schedule mends it');

SELECT is((SELECT last_job_state FROM pulse.schedules WHERE name = 'a'), 'waiting', 'it waits');
SELECT id AS job FROM pulse.run_schedule_now('a') \gset
SELECT ok((SELECT scheduled_for IS NULL AND payload::text = '{"n": 1}' FROM pulse.job
            WHERE id = :job), 'run_schedule_now adds a job without a due time');
SELECT ok((SELECT last_job_id <> :job FROM pulse.schedules WHERE name = 'a'), 'of no due time');
SELECT pulse.unschedule('a') \g /dev/null
DELETE FROM pulse.job;

-- --- missed --------------------------------------------------------------------------------------

SELECT pulse.schedule(m, m, every => '1 min', missed => m, missed_for => '10 min')
  FROM unnest('{skip,once,all}'::text[]) AS m \g /dev/null
SELECT left_alone(m, 30) FROM unnest('{skip,once,all}'::text[]) AS m \g /dev/null
SELECT is(facts('once'), '1 jobs, 29 missed, 0 overlapped', 'once: one job for all');
SELECT is(facts('skip'), '1 jobs, 29 missed, 0 overlapped',
  'skip: the last one, for which this sweep is not late');
SELECT is(facts('all'), '10 jobs, 20 missed, 0 overlapped', 'all: each that is not too old');
SELECT is((SELECT count(DISTINCT scheduled_for)::int FROM pulse.job WHERE identifier = 'all'), 10,
  'with its own due time');
SELECT pulse.schedule('none', 'none', every => '1 min', missed => 'all', missed_for => '0')
  \g /dev/null
SELECT left_alone('none', 1);
SELECT is(facts('none'), '1 jobs, 0 missed, 0 overlapped', 'all for no time: one that is in time');
SELECT left_alone('none', 30);
SELECT is(facts('none'), '3 jobs, 28 missed, 0 overlapped', 'and none that a sweep is late for');
DELETE FROM pulse.job;
SELECT pulse.schedule('skip', 'skip', every => '1 h', missed => 'skip'),
       pulse.schedule('once', 'once', every => '1 h', missed => 'once') \g /dev/null
UPDATE pulse.schedule
   SET anchor = anchor - interval '62 min', next_due = next_due - interval '62 min',
       missed_count = 0 WHERE name IN ('skip', 'once');
SELECT pulse.sweep() \g /dev/null
SELECT is(facts('skip'), '0 jobs, 1 missed, 0 overlapped', 'skip: none that is two minutes late');
SELECT is(facts('once'), '1 jobs, 0 missed, 0 overlapped', 'once: that one');
SELECT pulse.schedule('once', 'once', every => '1 s') \g /dev/null
UPDATE pulse.schedule SET anchor = anchor - interval '1 h', next_due = next_due - interval '1 h'
 WHERE name = 'once';
DELETE FROM pulse.job;
SELECT pulse.sweep() \g /dev/null
SELECT is(facts('once'), '0 jobs, 1000 missed, 0 overlapped', 'a long time is settled in steps');
SELECT pulse.sweep() FROM generate_series(1, 4) \g /dev/null
SELECT ok(facts('once') ~ '^1 jobs, 3[56]\d\d missed', 'which end with one job');
SELECT count(pulse.unschedule(name)) FROM pulse.schedules \g /dev/null
DELETE FROM pulse.job;

-- --- overlap -------------------------------------------------------------------------------------

SELECT pulse.schedule(o, o, every => '1 h', payload => '["first"]', overlap => o)
  FROM unnest('{allow,skip,replace}'::text[]) AS o \g /dev/null
SELECT late(o, '1 s') FROM unnest('{allow,skip,replace}'::text[]) AS o \g /dev/null
SELECT pulse.schedule('replace', 'replace', every => '1 h', payload => '["second"]',
                      overlap => 'replace') \g /dev/null
SELECT late(o, '0.5 s') FROM unnest('{allow,skip,replace}'::text[]) AS o \g /dev/null
SELECT is(facts('allow'), '2 jobs, 0 missed, 0 overlapped', 'allow: a job beside the waiting one');
SELECT is(facts('skip'), '1 jobs, 0 missed, 1 overlapped', 'skip: none');
SELECT is(facts('replace'), '1 jobs, 0 missed, 0 overlapped', 'replace: the waiting job');
SELECT ok((SELECT payload::text = '["second"]'
                  AND scheduled_for = (SELECT last_due FROM pulse.schedules WHERE name = 'replace')
             FROM pulse.job WHERE identifier = 'replace'), 'takes the payload and the due time');
SELECT given_worker() AS ann \gset
SELECT c.id, c.token, c.scheduled_for FROM pulse.claim(:ann, 1, '{replace}') AS c \gset
SELECT pulse.claim(:ann, 1, '{skip}') \g /dev/null
SELECT is(:'scheduled_for'::timestamptz, (SELECT scheduled_for FROM pulse.job WHERE id = :id),
  'a claim returns the due time');
SELECT is((SELECT scheduled_for FROM pulse.held(:ann) WHERE id = :id),
  :'scheduled_for'::timestamptz, 'so does held');
SELECT late(o, '0.2 s') FROM unnest('{skip,replace}'::text[]) AS o \g /dev/null
SELECT is(facts('skip'), '1 jobs, 0 missed, 2 overlapped', 'skip: a running job counts');
SELECT is(facts('replace'), '2 jobs, 0 missed, 0 overlapped', 'replace: it gets one beside it');
SELECT pulse.fail(:id, :token, 'boom') \g /dev/null
SELECT is((SELECT scheduled_for FROM pulse.job WHERE id = :id), :'scheduled_for'::timestamptz,
  'a retry keeps the due time');
SELECT pulse.cancel_job(:id) \g /dev/null
SELECT is((SELECT scheduled_for FROM pulse.finished_job WHERE id = :id),
  :'scheduled_for'::timestamptz, 'so does an end');
SELECT is((pulse.retry_job(:id)).scheduled_for, :'scheduled_for'::timestamptz, 'and retry_job');
SELECT (c.job).id, (c.job).token FROM pulse.claim_job(:ann, :id) AS c \gset
SELECT is(pulse.fail(:id, :token, 'boom', retry => false), 'failed', 'a job that failed for good');
SELECT is((SELECT scheduled_for FROM pulse.finished_job WHERE id = :id),
  :'scheduled_for'::timestamptz, 'keeps the due time');
SELECT count(pulse.unschedule(name)) FROM pulse.schedules \g /dev/null
DELETE FROM pulse.job;

-- --- keys, and jobs that are refused -------------------------------------------------------------

SELECT pulse.schedule('key', 'key', every => '1 h', job_key => 'k') \g /dev/null
SELECT late('key', '2 s'), late('key', '1 s') \g /dev/null
SELECT is(facts('key'), '1 jobs, 0 missed, 0 overlapped', 'a key replaces the waiting job');
SELECT is((SELECT scheduled_for FROM pulse.job), (SELECT last_due FROM pulse.schedule),
  'and the due time');
SELECT pulse.add_job('key', job_key => 'k') \g /dev/null
SELECT is((SELECT scheduled_for FROM pulse.job), NULL, 'a producer''s job has none');
SELECT pulse.schedule('key', 'key', every => '1 h', job_key => 'k',
                      job_key_mode => 'unsafe_dedupe') \g /dev/null
SELECT late('key', '1 s') \g /dev/null
SELECT is((SELECT scheduled_for FROM pulse.job), NULL, 'a job that stays keeps what it has');

SELECT pulse.schedule('bad', 'bad', every => '1 h'), pulse.schedule('good', 'good', every => '1 h')
 \g /dev/null
ALTER TABLE pulse.job ADD CONSTRAINT no_bad CHECK (identifier <> 'bad') NOT VALID;
UPDATE pulse.schedule SET next_due = now() - interval '1 s' WHERE name IN ('bad', 'good');
SELECT lives_ok('SELECT pulse.sweep()', 'a refused job is no error of a sweep');
SELECT is(facts('good'), '1 jobs, 0 missed, 0 overlapped', 'and holds up no other schedule');
SELECT is(facts('bad'), '0 jobs, 1 missed, 0 overlapped', 'it counts as missed');
SELECT ok((SELECT last_error LIKE '%no_bad%' AND last_error_at = last_due AND next_due > now()
             FROM pulse.schedules WHERE name = 'bad'), 'with its error');
UPDATE pulse.schedule SET time_zone = 'Gone/Zone', cron = '@daily', every = NULL,
       next_due = now() - interval '0.5 s' WHERE name = 'bad';
SELECT pulse.sweep() \g /dev/null
SELECT ok((SELECT paused AND last_error LIKE '%Gone/Zone%' FROM pulse.schedules
            WHERE name = 'bad'), 'a zone that is gone pauses the schedule');

-- --- copies, and claims = off --------------------------------------------------------------------

SELECT set_config('pulse.claims', 'off', true) \g /dev/null
SELECT late('good', '1 s') \g /dev/null
SELECT is(facts('good'), '1 jobs, 0 missed, 0 overlapped', 'claims = off fires and counts nothing');
SELECT ok((SELECT next_due > now() FROM pulse.schedules WHERE name = 'good'), 'and moves past it');
SELECT set_config('pulse.claims', 'on', true) \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'P12 holds');
UPDATE pulse.installation SET database_oid = 1;
SELECT late('good', '1 s') \g /dev/null
SELECT ok((SELECT next_due < pulse.now() FROM pulse.schedules WHERE name = 'good'),
  'a copy leaves its schedules alone');
SELECT pulse.adopt_installation() \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(facts('good'), '1 jobs, 0 missed, 0 overlapped', 'and starts them when it is adopted');
UPDATE pulse.schedule SET next_due = next_due + interval '1 ms' WHERE name = 'good';
SELECT is((SELECT promise || ' ' || detail FROM pulse.verify()),
  'P12 schedule ''good'' waits for a time at which it is not due', 'verify finds a wrong due time');
UPDATE pulse.schedule SET last_due = next_due WHERE name = 'good';
SELECT ok(EXISTS (SELECT FROM pulse.verify() AS v WHERE v.detail ~ 'has settled its next'),
  'and one that is settled twice');
SELECT * FROM finish();
ROLLBACK;
