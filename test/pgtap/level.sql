-- sql/queue/level.sql, sql/queue/set_queue.sql: queues within queues, and what a level allows to
-- all within it.
\ir support/setup.psql
SELECT plan(100);
SELECT given_worker() AS ann \gset

-- Which jobs of these queues are open or run, after promotions.
CREATE FUNCTION taken(pattern text = '%') RETURNS bigint
  LANGUAGE sql AS $$
  SELECT promote_queues();
  SELECT count(*) FROM pulse.job WHERE queue_name LIKE pattern AND state <> 'parked'
$$;
-- Each of n queues within a level has these jobs.
CREATE FUNCTION given_members(level text, n int, jobs int = 1) RETURNS void
  LANGUAGE sql AS $$
  SELECT given_job('mail', level || '/' || m)
    FROM generate_series(1, n) AS m, generate_series(1, jobs)
$$;
CREATE FUNCTION claimed(worker_id bigint) RETURNS bigint
  LANGUAGE sql AS $$ SELECT count(*) FROM pulse.claim(worker_id, 1000) $$;
-- Ends so many running jobs.
CREATE FUNCTION complete_some(worker_id bigint, jobs bigint = NULL) RETURNS void
  LANGUAGE sql AS $$
  SELECT pulse.complete(h.id, h.token)
    FROM (SELECT * FROM pulse.held(worker_id) ORDER BY id LIMIT jobs) AS h
$$;

-- --- names --------------------------------------------------------------------------------------

SELECT is(pulse_internal.levels_of(n.name), n.levels, format('the levels of %L', n.name))
  FROM (VALUES ('mail', ARRAY['mail']), ('mail/x', ARRAY['mail', 'mail/x']),
               ('a/b/c/d', ARRAY['a', 'a/b', 'a/b/c', 'a/b/c/d']),
               ('a/b/c/d/e', ARRAY['a', 'a/b', 'a/b/c', 'a/b/c/d/e']),
               ('/a', ARRAY['', '/a'])) AS n (name, levels);
SELECT refuses(format('SELECT pulse.add_job(''t'', queue_name => %L)', n.name), 'PU004',
               format('no new job has the queue %L', n.name))
  FROM (VALUES ('*'), ('mail/*'), ('ma*il'), ('a/b/c/d/e')) AS n (name);
SELECT refuses($$SELECT pulse.add_jobs(ARRAY[ROW('t', NULL, 'x/*', NULL, NULL, NULL, NULL,
  NULL)::pulse.job_spec])$$, 'PU004', 'nor one of add_jobs');
SELECT refuses($$SELECT pulse.schedule('s', 't', '@daily', queue_name => 'x/*')$$, 'PU004',
  'nor one of a schedule');
SELECT refuses(format('SELECT pulse.set_queue(%s)', a.arguments), 'PU004',
               'set_queue refuses ' || a.arguments)
  FROM (VALUES ('''/*'''), ('''a/b/c/d/e'''), ('''a/b/c/d/*'''), ('''x'', total => 0'),
               ('''x'', total => -2'), ('''x'', total => 1000001')) AS a (arguments);
SELECT lives_ok($$SELECT pulse.set_queue('a/b/c/*')$$, 'the members of a level have settings');
SELECT refuses(format('SELECT pulse.set_queue(%L)', n), 'PU004', 'no job can be in queue ' || n)
  FROM unnest('{*,a*,a/*/b,a/b*}'::text[]) AS n;
SELECT refuses($$SELECT pulse.unset_queue('')$$, 'PU004', 'unset_queue refuses an empty name');

-- --- what is stored -----------------------------------------------------------------------------

SELECT answers($$SELECT concurrency, total, paused FROM pulse.set_queue('mail', total => 3)$$,
  ROW(1, 3, false), 'a level has a total');
SELECT answers($$SELECT concurrency, total FROM pulse.set_queue('mail', 2)$$, ROW(2, 3),
  'NULL leaves it as it is');
SELECT is((pulse.set_queue('mail', total => -1)).total, NULL, '-1 takes it away');
SELECT ok(pulse.unset_queue('mail'), 'unset_queue takes all settings away');
SELECT ok(NOT pulse.unset_queue('mail'), 'and tells where there are none');
SELECT is((SELECT count(*) FROM pulse.queue WHERE queue_name = 'mail'), 0::bigint,
  'no row is left');

-- --- the total of a level (P13) -----------------------------------------------------------------

SELECT given_members('mail', 5, 2);
SELECT is(taken(), 5::bigint, 'without a total each member of a level opens a job');
SELECT pulse.set_queue('mail', total => 3) \g /dev/null
SELECT is((SELECT count(*) FROM pulse.job WHERE state = 'ready'), 0::bigint,
  'a new total parks the jobs that no worker claimed');
SELECT is(taken(), 3::bigint, 'then no more jobs than that are open');
SELECT is(claimed(:ann), 3::bigint, 'or run');
SELECT is(taken(), 3::bigint, 'running jobs keep their places');
SELECT is_empty('SELECT * FROM pulse.verify()', 'which breaks no promise');
SELECT complete_some(:ann, 1);
SELECT is(taken(), 3::bigint, 'an end frees a place for the next one');
SELECT is(claimed(:ann), 1::bigint, 'which is claimed');
SELECT is((SELECT count(DISTINCT queue_name) FROM pulse.job WHERE state = 'running'), 3::bigint,
  'each member runs no more than its concurrency');
SELECT given_job('mail', 'mail') AS direct \gset
SELECT promote_queues();
SELECT is(state_of(:direct), 'parked', 'jobs of the level''s own name count too');
SELECT given_job('mail', 'mailing/1') AS sibling \gset
SELECT given_job('mail', 'mail0') AS neighbour \gset
SELECT promote_queues();
SELECT is(ARRAY[state_of(:sibling), state_of(:neighbour)], '{ready,ready}',
  'a name that only begins alike is not within the level');
SELECT answers(format('SELECT kind, blocker, cardinality(job_ids) FROM pulse.explain_job(%s) '
                      'WHERE kind = ''queue''', :direct), ROW('queue', 'full', 3),
  'explain_job names the jobs that fill the level');
DELETE FROM pulse.job WHERE queue_name NOT LIKE 'mail/%';
CREATE FUNCTION most_at_once(worker_id bigint) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  most bigint := 0;
BEGIN
  FOR i IN 1 .. 100 LOOP
    PERFORM complete_some(worker_id);
    most := greatest(most, taken());
    PERFORM claimed(worker_id);
  END LOOP;
  RETURN most;
END $$;
SELECT is(most_at_once(:ann), 3::bigint, 'never more than three of them run at once');
SELECT is_empty('SELECT id FROM pulse.job', 'and all of them in the end');

SELECT given_members('mail', 4);
SELECT is(taken(), 3::bigint, 'given a full level');
SELECT pulse.set_queue('mail', total => 1) \g /dev/null
SELECT is(taken(), 1::bigint, 'a lower total holds at once for open jobs');
SELECT is(claimed(:ann), 1::bigint, 'given a running job');
SELECT pulse.set_queue('mail', total => 2) \g /dev/null
SELECT is(taken(), 2::bigint, 'a higher total opens more');
SELECT is(claimed(:ann), 1::bigint, 'which a claim gets');
SELECT pulse.set_queue('mail', total => 1) \g /dev/null
SELECT is(taken(), 2::bigint, 'a lower one leaves running jobs alone');
SELECT is_empty('SELECT * FROM pulse.verify()', 'which breaks no promise');
SELECT complete_some(:ann, 1);
SELECT is(taken(), 1::bigint, 'and opens none while the level is full');
SELECT pulse.unset_queue('mail') \g /dev/null
SELECT is(taken(), 3::bigint, 'without settings the level has no limit');
SELECT claimed(:ann) \g /dev/null
SELECT complete_some(:ann);

-- --- a member without a name ---------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT pulse.set_queue('odd', total => 2), pulse.set_queue('odd/', 3) \g /dev/null
SELECT given_job('mail', 'odd/') FROM generate_series(1, 3) \g /dev/null
SELECT given_job('mail', 'odd/x') \g /dev/null
SELECT is(taken('odd%'), 2::bigint, 'a queue whose last level has no name is within its level');
SELECT is(claimed(:ann), 2::bigint, 'where its jobs run');
SELECT is(taken('odd%'), 2::bigint, 'and count');
SELECT is_empty('SELECT * FROM pulse.verify()', 'which breaks no promise');
SELECT complete_some(:ann);
SELECT taken('odd%') \g /dev/null
SELECT pulse.pause_queue('odd') \g /dev/null
SELECT is(claimed(:ann), 0::bigint, 'a pause of the level holds for it');
SELECT pulse.unset_queue('odd'), pulse.unset_queue('odd/') \g /dev/null
DELETE FROM pulse.job;

-- --- deeper levels ------------------------------------------------------------------------------

SELECT pulse.set_queue('r', total => 4) \g /dev/null
SELECT pulse.set_queue('r/a', total => 1) \g /dev/null
SELECT given_members('r/a', 3);
SELECT is(taken('r/a/%'), 1::bigint, 'each limited level holds for all within it');
SELECT given_members('r/b/c', 6);
SELECT is(taken('r/%'), 4::bigint, 'and those above it for all of them together');
SELECT claimed(:ann) \g /dev/null
SELECT pulse.complete(h.id, h.token) FROM pulse.held(:ann) AS h JOIN pulse.job AS j USING (id)
 WHERE j.queue_name LIKE 'r/a/%' \g /dev/null
SELECT is(taken('r/%'), 4::bigint, 'a place that comes free below is used');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT is(most_at_once(:ann), 4::bigint, 'never more than four of them run at once');
SELECT is_empty('SELECT id FROM pulse.job', 'and all of them in the end');

-- --- every way to leave a place -----------------------------------------------------------------

SELECT pulse.set_queue('s', total => 1) \g /dev/null
CREATE FUNCTION open_after(worker_id bigint, ending text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  first pulse.claimed_job;
BEGIN
  DELETE FROM pulse.job;
  first := given_claimed_job(worker_id, 'mail', 's/1');
  PERFORM given_job('mail', 's/2');
  PERFORM promote_queues();
  EXECUTE format(ending, first.id, first.token);
  PERFORM promote_queues();
  RETURN (SELECT string_agg(queue_name, ' ') FROM pulse.job WHERE state = 'ready');
END $$;
SELECT is(open_after(:ann, e.ending), 's/2', e.name || ' gives the place to another member')
  FROM (VALUES ('complete', 'SELECT pulse.complete(%s, %s)'),
               ('complete_many', 'SELECT pulse.complete_many(ARRAY[%s], ARRAY[%s])'),
               ('fail', 'SELECT pulse.fail(%s, %s, ''boom'')'),
               ('a final fail', 'SELECT pulse.fail(%s, %s, ''boom'', retry => false)'),
               ('snooze', 'SELECT pulse.snooze(%s, %s, ''1 hour'')')) AS e (name, ending);
DELETE FROM pulse.job;
SELECT given_job('mail', 's/1', job_key => 'k') AS first \gset
SELECT promote_queues();
SELECT given_job('mail', 's/2') AS second \gset
SELECT promote_queues();
SELECT is(state_of(:second), 'parked', 'given an open job that fills its level');
SELECT pulse.remove_job('k') \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:second), 'ready', 'removing it opens another');
SELECT given_job('mail', 's/3') AS third \gset
SELECT promote_queues();
SELECT pulse.cancel_job(:second) \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:third), 'ready', 'so does cancelling it');
SELECT given_job('mail', 's/4') AS fourth \gset
SELECT promote_queues();
SELECT pulse.reschedule_jobs(ARRAY[:third]::bigint[], now() + interval '1 hour') \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:fourth), 'ready', 'and putting it off');
SELECT given_job('mail', 's/4', priority => -1) AS better \gset
SELECT promote_queues();
SELECT is(ARRAY[state_of(:better), state_of(:fourth)], '{ready,parked}',
  'in a full level a better job takes the place of a worse one of its queue');
DELETE FROM pulse.job;

-- --- pauses -------------------------------------------------------------------------------------

SELECT pulse.unset_queue('s') \g /dev/null
SELECT given_members('s/x', 2);
SELECT is(taken('s/%'), 2::bigint, 'given open jobs');
SELECT paused FROM pulse.pause_queue('s') \g /dev/null
SELECT is(taken('s/%'), 0::bigint, 'a pause of a level pauses all within it');
SELECT is(claimed(:ann), 0::bigint, 'for claims too');
SELECT answers('SELECT blocker, regexp_replace(detail, '' by role .*'', '''')
                  FROM pulse.explain_job((SELECT min(id) FROM pulse.job)) '
               'WHERE kind = ''queue''', ROW('paused', 'Queue ''s'' is paused'),
  'explain_job names the level that is paused');
SELECT is((SELECT bool_and(paused) FROM pulse.stats WHERE kind = 'queue'), true, 'as stats shows');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT pulse.resume_queue('s') \g /dev/null
SELECT is(taken('s/%'), 2::bigint, 'the end of the pause opens them again');
SELECT pulse.unset_queue('s') \g /dev/null
INSERT INTO pulse.queue (queue_name, paused) VALUES ('s', true);
SELECT pulse.set_queue('elsewhere') \g /dev/null
SELECT is(taken('s/%'), 2::bigint, 'a pause that 0.1.0 stored holds for its own name');
SELECT pulse.set_queue('s', 2) \g /dev/null
SELECT is(taken('s/%'), 2::bigint, 'also where another setting is stored');
SELECT pulse.set_queue('s', paused => true) \g /dev/null
SELECT is(taken('s/%'), 0::bigint, 'until it is set again');
DELETE FROM pulse.job;
DELETE FROM pulse.queue;
DELETE FROM pulse.queue_pause;

-- --- members without settings of their own ------------------------------------------------------

SELECT pulse.set_queue('t/*', 2) \g /dev/null
SELECT pulse.set_queue('t/own', 3) \g /dev/null
SELECT given_members('t', 2, 5);
SELECT given_job('mail', 't/own') FROM generate_series(1, 5) \g /dev/null
SELECT given_job('mail', 't/x/y') FROM generate_series(1, 5) \g /dev/null
SELECT is(ARRAY[taken('t/1'), taken('t/2'), taken('t/own'), taken('t/x/y')]::bigint[],
  '{2,2,3,1}', 'members without settings of their own have those of the members');
SELECT pulse.set_queue('t/*', total => 1) \g /dev/null
SELECT is(ARRAY[taken('t/1'), taken('t/2'), taken('t/own'), taken('t/x/y')]::bigint[],
  '{1,1,3,1}', 'each member has the total');
SELECT pulse.pause_queue('t/*') \g /dev/null
SELECT is(ARRAY[taken('t/1'), taken('t/2'), taken('t/own'), taken('t/x/y')]::bigint[],
  '{0,0,0,0}', 'and the pause, which holds for those with settings of their own too');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
SELECT pulse.unset_queue('t/*') \g /dev/null
SELECT is(ARRAY[taken('t/1'), taken('t/2'), taken('t/own'), taken('t/x/y')]::bigint[],
  '{1,1,3,1}', 'until they are taken away');
SELECT claimed(:ann) \g /dev/null
SELECT pulse.unset_queue('t/own') \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'jobs that ran before are no excess');

SELECT pulse.pause_queue('u/*') \g /dev/null
SELECT given_members('u', 20);
SELECT is(taken('u/%'), 0::bigint, 'given many members that are paused');
SELECT pulse.resume_queue('u/*') \g /dev/null
SELECT is(taken('u/%'), 20::bigint, 'the end of the pause reaches each of them');
DELETE FROM pulse.job WHERE queue_name LIKE 'u/%';
DELETE FROM pulse.queue WHERE queue_name = 'u/*';

-- --- queue_status -------------------------------------------------------------------------------

SELECT pulse.set_queue('t', total => 5) \g /dev/null
SELECT promote_queues();
SELECT results_eq('SELECT queue_name, concurrency, total, paused, waiting, open, running, '
                  'reasons::text FROM pulse.queue_status',
  $$VALUES ('t', 1, 5, false, 14::bigint, 0::bigint, 6::bigint, '{ "full" : 14 }'),
           ('t/1', 1, NULL, false, 4, 0, 1, '{ "full" : 4 }'),
           ('t/2', 1, NULL, false, 4, 0, 1, '{ "full" : 4 }'),
           ('t/own', 1, NULL, false, 2, 0, 3, '{ "full" : 2 }'),
           ('t/x', 1, NULL, false, 4, 0, 1, '{ "full" : 4 }'),
           ('t/x/y', 1, NULL, false, 4, 0, 1, '{ "full" : 4 }')$$,
  'queue_status has each queue and level, with all within it');
SELECT results_eq('SELECT s::text FROM pulse.queue_status(''t/x'') AS s',
  'SELECT s::text FROM pulse.queue_status AS s WHERE queue_name = ''t/x''',
  'or a level that is asked for');
-- Before a recount, and without preloading, no commit counts, and the number is not known.
SELECT answers('SELECT count(*), count(*) FILTER (WHERE names = 1), max(names) '
               'FROM pulse.queue_status(max_rows => 2)',
  ROW(4::bigint, 3::bigint, CASE WHEN pulse_internal.has_depths() THEN 2::bigint ELSE 1 END),
  'a last row tells how many more queues there are than were asked for');
SELECT is((SELECT estimated FROM pulse.queue_status(max_rows => 2) WHERE queue_name = 't'), true,
  'and a level of which not all queues are listed tells a part');
SELECT refuses('SELECT pulse.queue_status(max_rows => 0)', 'PU004', 'which must be one at least');

-- --- the settings, which promotion reads in C ---------------------------------------------------

SAVEPOINT settings;
DELETE FROM pulse.queue;
DELETE FROM pulse.queue_pause;
SELECT pulse.set_queue('l', total => 90), pulse.set_queue('l/*', 3, total => 7),
       pulse.set_queue('l/own', 2), pulse.set_queue('l/strict', 1, strict => true),
       pulse.set_queue('l/paused', 4, true), pulse.set_queue('p', 5, true),
       pulse.set_queue('r/*', 6, true) \g /dev/null
-- As 0.1.0 stored them.
INSERT INTO pulse.queue (queue_name, concurrency, paused, created_at, updated_at, is_level)
SELECT n, 8, true, now(), now(), false FROM unnest('{old,odd/*}'::text[]) AS n;
SELECT results_eq($$
  SELECT n, r.concurrency, r.is_strict, r.paused, r.level, r.total
    FROM unnest('{l,l/new,l/own,l/own/in,l/strict,l/paused,l/paused/in,p,p/in,r,r/in,old,old/in,
                  odd/in,none,none/in}'::text[]) AS n,
         pulse_internal.level_places_left(n) AS r$$, $$
  SELECT q.n, s.concurrency, s.is_strict, s.any_paused, least.level,
         CASE WHEN NOT least.paused THEN least.total END
    FROM unnest('{l,l/new,l/own,l/own/in,l/strict,l/paused,l/paused/in,p,p/in,r,r/in,old,old/in,
                  odd/in,none,none/in}'::text[]) WITH ORDINALITY AS q (n, i)
   CROSS JOIN LATERAL (SELECT bool_or(l.paused) OVER () AS any_paused, l.*
                         FROM pulse_internal.level_settings(q.n) AS l
                        ORDER BY length(l.level) DESC LIMIT 1) AS s
    LEFT JOIN LATERAL (SELECT l.level, l.total, l.paused
                         FROM pulse_internal.level_settings(q.n) AS l
                        WHERE l.total IS NOT NULL OR l.paused AND q.n LIKE '%/%'
                        ORDER BY NOT l.paused, l.total LIMIT 1) AS least ON true
   ORDER BY q.i$$,
  'level_settings() finds what promotion finds');
ROLLBACK TO settings;

-- --- verify() -----------------------------------------------------------------------------------

UPDATE pulse.queue SET total = 2, updated_at = '-infinity';
SELECT setval('pulse.queue_unset_seq', 1, false) \g /dev/null
SELECT isnt_empty($$SELECT FROM pulse.verify() WHERE promise = 'P13'$$,
  'verify() finds a level that runs more than its total');
UPDATE pulse.queue SET total = NULL;
DELETE FROM pulse.job WHERE state = 'running';
UPDATE pulse.job SET state = 'ready' WHERE id IN (
  SELECT DISTINCT ON (queue_name) id FROM pulse.job ORDER BY queue_name, id);
UPDATE pulse.queue SET total = 2;
SELECT results_eq('SELECT DISTINCT promise, detail FROM pulse.verify()',
  $$VALUES ('P13', 'level ''t'' has opened 4 jobs, its total is 2')$$, 'or has opened more');
UPDATE pulse.queue SET total = NULL;
INSERT INTO pulse.queue_pause (queue_name, created_at) VALUES ('t', now());
SELECT results_eq('SELECT DISTINCT promise, detail FROM pulse.verify()',
  $$VALUES ('P13', 'level ''t'' is paused and has an open job')$$, 'or any in a pause');

SELECT * FROM finish();
ROLLBACK;
