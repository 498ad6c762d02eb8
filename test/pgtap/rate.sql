-- sql/queue/rate.sql: how many jobs of a level are claimed in a time (P13).
\ir support/setup.psql
SELECT plan(68);
SELECT given_worker() AS ann \gset

-- How many jobs of these queues are open after promotions, so long after now.
CREATE FUNCTION open_at(after interval, pattern text = '%') RETURNS bigint
  LANGUAGE sql AS $$
  SELECT travel(after);
  SELECT promote_queues();
  SELECT count(*) FROM pulse.job WHERE queue_name LIKE pattern AND state = 'ready'
$$;
CREATE FUNCTION claimed(worker_id bigint, most int = 1000) RETURNS bigint
  LANGUAGE sql AS $$ SELECT count(*) FROM pulse.claim(worker_id, most) $$;
CREATE FUNCTION given_jobs(queue text, n int) RETURNS void
  LANGUAGE sql AS $$ SELECT given_job('mail', queue) FROM generate_series(1, n) $$;
-- Forgets all jobs and tokens.
CREATE FUNCTION start_anew() RETURNS void
  LANGUAGE sql AS $$
  SELECT travel('0');
  DELETE FROM pulse.job;
  DELETE FROM pulse.claim_batch;
  DELETE FROM pulse.queue_rate;
$$;

-- --- settings -----------------------------------------------------------------------------------

SELECT answers($$SELECT rate, per, burst FROM pulse.set_queue('r', rate => 5)$$,
  ROW(5, NULL::interval, NULL::int), 'a level has a rate');
SELECT answers($$SELECT rate, per, burst FROM pulse.set_queue('r', per => '1 min', burst => 7)$$,
  ROW(5, interval '1 min', 7), 'NULL leaves it as it is');
SELECT answers($$SELECT rate, burst FROM pulse.set_queue('r', burst => -1)$$, ROW(5, NULL::int),
  '-1 takes a burst away');
SELECT answers($$SELECT rate, per, burst FROM pulse.set_queue('r', rate => -1)$$,
  ROW(NULL::int, NULL::interval, NULL::int), 'and a rate, with all that belongs to it');
SELECT refuses(format('SELECT pulse.set_queue(''x'', %s)', a.arguments), 'PU004',
               'set_queue refuses ' || a.arguments)
  FROM (VALUES ('rate => 0'), ('rate => -2'), ('rate => 1000001'), ('burst => 3'),
               ('per => ''1 min'''), ('rate => 1, burst => 0'), ('rate => 1, burst => 1000001'),
               ('rate => -1, burst => 5'), ('rate => 1, burst => 1000000, per => ''366 days'''),
               ('rate => 1, per => ''0.5 s'''),
               ('rate => 1, per => ''367 days'''),
               ('rate => 1, per => ''1 mon'''), ('rate => 1, per => ''-1 min''')) AS a (arguments);
SELECT lives_ok($$SELECT pulse.set_queue('x', rate => -1, burst => -1)$$, 'both may be taken away');
DELETE FROM pulse.queue;

-- --- tokens -------------------------------------------------------------------------------------

SELECT pulse.set_queue('r', 100, rate => 2, per => '1 min', burst => 3) \g /dev/null
SELECT given_jobs('r', 20);
SELECT is(open_at('0'), 3::bigint, 'no more jobs are open than there are tokens');
SELECT is(claimed(:ann, 2), 2::bigint, 'given that two of them are claimed');
SELECT is(open_at('0'), 1::bigint, 'each claim has cost a token');
SELECT is(claimed(:ann), 1::bigint, 'given that the last one is claimed');
SELECT is(open_at('0'), 0::bigint, 'a dry level opens none');
SELECT answers($$SELECT tokens, next_token > pulse.now() + interval '29 s', reasons::text
                   FROM pulse.queue_status WHERE queue_name = 'r'$$,
  ROW(0::bigint, true, '{ "dry" : 17 }'), 'queue_status tells when the next token comes');
SELECT answers($$SELECT e.kind, e.blocker, e.until <= pulse.now() + interval '30 s'
                   FROM pulse.explain_job((SELECT max(id) FROM pulse.job)) AS e
                  WHERE e.kind = 'queue'$$, ROW('queue', 'dry', true), 'and so does explain_job');
SELECT is_empty('SELECT * FROM pulse.verify()', 'which breaks no promise');
SELECT pulse.complete(h.id, h.token) FROM pulse.held(:ann) AS h \g /dev/null
SELECT is(open_at('29 s'), 0::bigint, 'an end gives no token');
SELECT is(open_at('31 s'), 1::bigint, 'each comes in its time');
SELECT is(open_at('61 s'), 2::bigint, 'also while one is open');
SELECT is(open_at('2 hours'), 3::bigint, 'but no more than the burst');
SELECT is(claimed(:ann), 3::bigint, 'given that they are claimed');
SELECT is(open_at('2 hours'), 0::bigint, 'they are charged when they are seen');
SELECT is(open_at('2 hours 31 s'), 1::bigint, 'and the next one comes after that');
SELECT start_anew();

-- --- what costs a token -------------------------------------------------------------------------

SELECT given_jobs('r', 20);
SELECT is(open_at('0'), 3::bigint, 'given three open jobs');
SELECT pulse.release(array_agg(c.id), array_agg(c.token)) FROM pulse.claim(:ann, 2) AS c
  \g /dev/null
SELECT is(open_at('0'), 1::bigint, 'a released claim has cost its token');
SELECT pulse.cancel_job(id) FROM pulse.job WHERE state = 'ready' \g /dev/null
SELECT is(open_at('0'), 0::bigint, 'an open job that is cancelled gives none');
SELECT start_anew();
SELECT given_jobs('r', 20);
SELECT is(open_at('0'), 3::bigint, 'given three open jobs');
SELECT pulse.set_queue('r', burst => 5) \g /dev/null
SELECT is(open_at('0'), 2::bigint, 'nor do jobs that new settings park');
SELECT pulse.set_queue('r', burst => 1) \g /dev/null
SELECT is(open_at('0'), 0::bigint, 'a smaller burst holds at once');
SELECT is(open_at('31 s'), 1::bigint, 'and does not leave the level dry for longer');
SELECT start_anew();
SELECT given_jobs('r', 20);
SELECT is(open_at('1 year'), 1::bigint, 'given a clock that was far ahead');
SELECT is(claimed(:ann), 1::bigint, 'when a job was claimed');
SELECT is(open_at('1 year'), 0::bigint, 'and seen');
SELECT pulse_internal.note_queue('r') \g /dev/null
SELECT is(open_at('0'), 0::bigint, 'where the clock is back the level is dry');
SELECT is(open_at('31 s'), 1::bigint, 'for no longer than one token takes');
SELECT start_anew();

-- --- levels -------------------------------------------------------------------------------------

DELETE FROM pulse.queue;
SELECT pulse.set_queue('m', rate => 3, per => '1 min') \g /dev/null
SELECT given_jobs('m/' || n, 2) FROM generate_series(1, 5) AS n;
SELECT given_jobs('n/1', 1);
SELECT is(open_at('0', 'm/%'), 3::bigint,
  'a rate holds for all within a level, and its burst is the rate');
SELECT is(open_at('0', 'n/%'), 1::bigint, 'and hides no other level''s jobs');
SELECT is(claimed(:ann), 4::bigint, 'given that all of them run');
SELECT is(open_at('0'), 0::bigint, 'the level is dry');
SELECT is(open_at('21 s'), 1::bigint, 'until its next token');
SELECT start_anew();
SELECT pulse.set_queue('m/*', 10, rate => 1, per => '1 min') \g /dev/null
SELECT given_jobs('m/' || n, 2) FROM generate_series(1, 2) AS n;
SELECT is(open_at('0'), 2::bigint, 'each member has the rate of the members');
SELECT is(claimed(:ann), 2::bigint, 'given that both are claimed');
SELECT is(open_at('0'), 0::bigint, 'and seen');
SELECT is(open_at('1 min 1 s'), 2::bigint, 'a token of each comes in its own time');
UPDATE pulse.queue_rate SET full_live_us = full_live_us + 600000000 WHERE queue_name = 'm/1';
SELECT answers('SELECT promise, detail FROM pulse.verify()',
  ROW('P13', 'level ''m/1'' has 1 open jobs and 0 tokens'),
  'verify() sees an open job without a token');
SAVEPOINT copied;
SELECT pulse.adopt_installation() \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()',
  'adopt_installation() parks it, as the clock of a dump has other tokens');
ROLLBACK TO copied;
SELECT pulse.complete(h.id, h.token) FROM pulse.held(:ann) AS h \g /dev/null
SELECT travel('0');
SELECT ok(pulse.unset_queue('m/*') AND pulse.unset_queue('m'), 'given no settings');
SELECT is(open_at('1 min 1 s'), 2::bigint, 'without a rate the jobs are open');

-- A claim charges what it takes in levels where it has promoted, so nothing has to look again.
SELECT start_anew();
SELECT pulse.set_queue('c', rate => 3, per => '1 min') \g /dev/null
SELECT given_jobs('c/' || n, 1) FROM generate_series(1, 3) AS n;
SELECT is(claimed(:ann), 3::bigint, 'given claims that no promotion follows');
SELECT is((SELECT opened FROM pulse.queue_rate WHERE queue_name = 'c'), 0::bigint,
  'the row of the level counts none of the jobs as open');
SELECT pulse.complete(h.id, h.token) FROM pulse.held(:ann) AS h \g /dev/null
SELECT given_jobs('c/' || n, 1) FROM generate_series(1, 3) AS n;
SELECT is(open_at('1 hour'), 3::bigint, 'and their tokens are back when they should be');

-- A promotion may look at any number of levels.
SELECT start_anew();
SELECT pulse.set_queue('w', rate => 24, per => '1 day') \g /dev/null
SELECT pulse.set_queue('w/*', rate => 5, per => '1 day') \g /dev/null
SELECT given_jobs('w/' || n, 1) FROM generate_series(1, 50) AS n;
SELECT is(open_at('0'), 24::bigint, 'a level has its rate beside those of many members');
SELECT is((SELECT opened FROM pulse.queue_rate WHERE queue_name = 'w'), 24::bigint,
  'and each open job is counted there');
SELECT is(claimed(:ann), 24::bigint, 'given that all are claimed');
SELECT is(open_at('0'), 0::bigint, 'it is dry');

-- --- a token of a third of a second -------------------------------------------------------------

SELECT start_anew();
DELETE FROM pulse.queue;
SELECT pulse.set_queue('r', 100, rate => 3) \g /dev/null
SELECT given_jobs('r', 3);
SELECT is(open_at('0'), 3::bigint, 'given a level that has opened a job for each token');
SELECT pulse.cancel_job(min(j.id)) FROM pulse.job AS j \g /dev/null
SELECT answers($$SELECT tokens, open FROM pulse_internal.tokens_of('r')$$,
  ROW(2::bigint, 2::bigint),
  'a job that is gone costs no more than a token');
SELECT is_empty('SELECT * FROM pulse.verify()', 'and breaks no promise');

SELECT * FROM finish();
ROLLBACK;
