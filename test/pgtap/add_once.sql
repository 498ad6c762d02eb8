-- add_job_once and forget_once: one job of a task and key in each period, whatever becomes of it.
\ir support/setup.psql
SELECT plan(92);
DELETE FROM pulse.remembered_key;

CREATE ROLE shop;
CREATE ROLE rival;
CREATE ROLE boss;
SELECT pulse.grant_producer('shop'), pulse.grant_producer('rival'), pulse.grant_operator('boss')
  \g /dev/null
GRANT shop, rival, boss TO CURRENT_USER;

-- What an add of an hour answers: whether the job is new, and its state.
CREATE FUNCTION added(key text, states text[] = NULL, task text = 'mail') RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  answer record;
BEGIN
  answer := pulse.add_job_once('1 h', key, task, states => states);
  RETURN CASE WHEN answer.is_new THEN 'new ' ELSE 'known ' END || answer.state;
END $$;
CREATE FUNCTION job_under(key text, task text = 'mail') RETURNS bigint
  LANGUAGE sql AS $$ SELECT job_id FROM pulse.remembered_key
                      WHERE identifier = task AND unique_key = key $$;
CREATE FUNCTION claim_token(job_id bigint) RETURNS bigint
  LANGUAGE sql AS $$ SELECT (c.job).token FROM pulse.claim_job(given_worker(), job_id) AS c $$;

CREATE FUNCTION later_by(how_far interval) RETURNS void
  LANGUAGE sql AS $$ SELECT travel(current_setting('pulse.clock_offset')::interval + how_far) $$;

-- --- the job ------------------------------------------------------------------------------------

SELECT id AS job, is_new, state
  FROM pulse.add_job_once('1 h', 'all', 'mail', '{"a": 1}', 'post', '2100-01-01', 3, -1, '{f}')
  \gset
SELECT is(ROW(:'is_new'::boolean, :'state'::text)::text, '(t,waiting)', 'the first add is new');
SELECT is((SELECT ROW(j.identifier, j.payload::text, j.queue_name, j.run_at, j.max_attempts,
                      j.priority, j.flags, j.job_key, j.added_by)::text
             FROM pulse.job AS j WHERE j.id = :job),
  ROW('mail', '{"a": 1}', 'post', '2100-01-01'::timestamptz, 3, -1, '{f}'::text[], NULL,
      current_user)::text, 'and has what the call gives');
SELECT is((SELECT ROW(k.job_id, k.added_by, k.unique_until - j.created_at)::text
             FROM pulse.remembered_key AS k JOIN pulse.job AS j ON j.id = k.job_id
            WHERE k.unique_key = 'all'), ROW(:job, current_user, interval '1 h')::text,
  'the key is remembered from created_at on, for unique_for');
SELECT is((SELECT ROW(o.id, o.is_new, o.state)::text
             FROM pulse.add_job_once('1 h', 'all', 'mail', '{"b": 2}') AS o),
  format('(%s,f,waiting)', :job), 'the second add gets the same job');
SELECT is((SELECT j.payload::text FROM pulse.job AS j WHERE j.id = :job), '{"a": 1}',
  'and changes nothing');
SELECT last_value AS ids FROM pulse.job_id_seq \gset
SELECT added('all') FROM generate_series(1, 5) \g /dev/null
SELECT is((SELECT last_value FROM pulse.job_id_seq), :ids::bigint, 'nor does it take an id');
SELECT is(added('all', task => 'bill'), 'new waiting', 'the key of another task is another');
SELECT is(added('other'), 'new waiting', 'so is another key');
SELECT is((SELECT count(*) FROM pulse.job), 3::bigint, 'so there are three jobs');
SELECT pulse.set_task('queued', queue => 'line', max_attempts => 7, expires_after => '1 h')
  \g /dev/null
SELECT id AS queued FROM pulse.add_job_once('1 h', 'k', 'queued') \gset
SELECT is((SELECT ROW(j.queue_name, j.max_attempts, j.start_by - j.run_at, j.state)::text
             FROM pulse.job AS j WHERE j.id = :queued), '(line,7,01:00:00,parked)',
  'the defaults of the task hold');

-- --- the period ---------------------------------------------------------------------------------

SELECT added('period') \g /dev/null
SELECT job_under('period') AS job \gset
SELECT later_by('59 min') \g /dev/null
SELECT is(added('period'), 'known waiting', 'near the end of the period the key counts');
SELECT later_by('1 min') \g /dev/null
SELECT is(added('period'), 'new waiting', 'at its end an add is new, where nobody has pruned');
SELECT isnt(job_under('period'), :job::bigint, 'the key stands for the new job');
SELECT later_by('59 min') \g /dev/null
SELECT is(added('period'), 'known waiting', 'whose period has begun anew');
SELECT is((SELECT is_new FROM pulse.add_job_once('1 ms', 'period', 'mail')), false,
  'the first add says how long');
SELECT id AS job FROM pulse.add_job_once('1 mon 2 days', 'long', 'mail') \gset
SELECT is((SELECT k.unique_until - j.created_at
             FROM pulse.remembered_key AS k JOIN pulse.job AS j ON j.id = k.job_id
            WHERE j.id = :job), interval '768 h',
  'a month is 30 days, and a day 24 hours');

-- --- whatever becomes of the job ----------------------------------------------------------------

SELECT added('done') \g /dev/null
SELECT job_under('done') AS job \gset
SELECT claim_token(:job) AS token \gset
SELECT is(added('done'), 'known running', 'a running job counts');
SELECT pulse.complete(:job, :token) \g /dev/null
SELECT is(added('done'), 'known completed', 'so does one that completed and is not kept');
SELECT added('failed') \g /dev/null
SELECT job_under('failed') AS job \gset
SELECT pulse.fail(:job, claim_token(:job), 'no', false) \g /dev/null
SELECT is(added('failed'), 'known failed', 'one that failed');
SELECT pulse.retry_job(:job) \g /dev/null
SELECT is(added('failed'), 'known waiting', 'one that is retried, which asks nothing');
SELECT is(pulse.cancel_job(:job), 'cancelled', 'one that is cancelled');
SELECT is(added('failed'), 'known cancelled', 'counts too');
SELECT pulse.delete_finished(ARRAY[:job]) \g /dev/null
SELECT is(added('failed'), 'known completed', 'one whose record was deleted');
SELECT pulse.forget_once('mail', 'failed') \g /dev/null
SELECT is(added('failed'), 'new waiting', 'forget_once ends the period');
-- Tables as a quarantine and an expiry leave them.
CREATE FUNCTION ended_as(key text, end_state pulse.finished_state) RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM added(key);
  PERFORM pulse.cancel_job(job_under(key));
  UPDATE pulse.finished_job SET state = end_state WHERE id = job_under(key);
  RETURN added(key);
END $$;
SELECT is(ended_as('q', 'quarantined'), 'known quarantined', 'a quarantined job counts');
SELECT is(ended_as('e', 'expired'), 'known expired', 'and an expired one');
SELECT added('pruned') \g /dev/null
SELECT job_under('pruned') AS job \gset
SELECT pulse.cancel_job(:job) \g /dev/null
SET LOCAL pulse.keep_failed = 0;
SELECT later_by('1 s') \g /dev/null
SELECT pulse_internal.prune(1000) \g /dev/null
SELECT is((SELECT count(*) FROM pulse.finished_job WHERE id = :job), 0::bigint,
  'a pruned record is gone');
SELECT is(added('pruned'), 'known completed', 'and shortens no period');
RESET pulse.keep_failed;
-- A job with a key of its own can be removed.
SELECT added('removed') \g /dev/null
SELECT job_under('removed') AS job \gset
UPDATE pulse.job SET job_key = 'mine' WHERE id = :job;
SELECT pulse.remove_job('mine') \g /dev/null
SELECT is(added('removed'), 'known completed', 'nor does remove_job');

-- --- states -------------------------------------------------------------------------------------

SELECT added('s') \g /dev/null
SELECT job_under('s') AS job \gset
SELECT is(added('s', '{waiting,running}'), 'known waiting', 'a job in one of the states counts');
SELECT is(added('s', '{running}'), 'new waiting', 'a job in none of them is forgotten');
SELECT isnt(job_under('s'), :job::bigint, 'and the new job remembered');
SELECT is((SELECT count(*) FROM pulse.job WHERE id = :job), 1::bigint, 'the first one stays');
SELECT pulse.cancel_job(job_under('s')) \g /dev/null
SELECT is(added('s', '{waiting,running,completed}'), 'new waiting',
  'a cancelled job does not count where cancelled is not named');
SELECT pulse.complete(job_under('s'), claim_token(job_under('s'))) \g /dev/null
SELECT is(added('s', '{cancelled,failed}'), 'new waiting', 'nor does a job without a record');
SELECT is(added('s', '{waiting}'), 'known waiting', 'until it ends the new one does');

-- --- bad input ----------------------------------------------------------------------------------

SELECT count(*) AS keys FROM pulse.remembered_key \gset
SELECT refuses(format('SELECT pulse.add_job_once(%s)', c.arguments), 'PU004', c.what)
  FROM (VALUES ($$NULL, 'k', 'mail'$$, 'a period must be given'),
               ($$'-1 s', 'k', 'mail'$$, 'a negative period is none'),
               ($$'0', 'k', 'mail'$$, 'nor is an empty one'),
               ($$'999 us', 'k', 'mail'$$, 'nor one below a millisecond'),
               ($$'11 years', 'k', 'mail'$$, 'an endless one is refused'),
               ($$'170000000 years', 'k', 'mail'$$, 'the longest too'),
               ($$'1 h', NULL, 'mail'$$, 'a key must be given'),
               ($$'1 h', '', 'mail'$$, 'an empty key is none'),
               ($$'1 h', repeat('k', 513), 'mail'$$, 'nor is one of 513 characters'),
               ($$'1 h', 'k', NULL$$, 'a task must be named'),
               ($$'1 h', 'k', ''$$, 'an empty name is none'),
               ($$'1 h', 'k', 'mail', max_attempts => 0$$, 'what add_job refuses is refused'),
               ($$'1 h', 'k', 'mail', states => '{}'$$, 'no states are refused'),
               ($$'1 h', 'k', 'mail', states => '{ended}'$$, 'an unknown state is'),
               ($$'1 h', 'k', 'mail', states => '{waiting,NULL}'$$, 'a NULL among them is'),
               ($$'1 h', 'k', 'mail', states => '{{waiting}}'$$, 'two dimensions are'))
       AS c (arguments, what);
SELECT refuses($$SELECT pulse.add_job_once('1 h', 's', 'mail', states => '{ended}')$$, 'PU004',
  'also where the key is known');
SELECT is((SELECT count(*) FROM pulse.remembered_key), :keys::bigint, 'no refused add takes a key');
SELECT is(added(repeat(U&'\20AC', 512)), 'new waiting',
  'a key of 512 characters is taken, of any alphabet');
SELECT is(pulse.forget_once('mail', 'never'), false, 'no key: nothing to forget');
SELECT is(pulse.forget_once('mail', NULL), NULL, 'nor for NULL');

-- --- transactions -------------------------------------------------------------------------------

SAVEPOINT before;
SELECT added('back') \g /dev/null
ROLLBACK TO before;
SELECT is(added('back'), 'new waiting', 'an add that a savepoint undid never was');
SAVEPOINT before;
SELECT pulse.forget_once('mail', 'back') \g /dev/null
ROLLBACK TO before;
SELECT is(added('back'), 'known waiting', 'nor was a forgotten one');

-- --- whose key ----------------------------------------------------------------------------------

SET LOCAL ROLE shop;
SELECT added('theirs') \g /dev/null
RESET ROLE;
SELECT job_under('theirs') AS job \gset
SELECT is((SELECT k.added_by FROM pulse.remembered_key AS k WHERE k.job_id = :job), 'shop',
  'a key belongs to the producer');
SELECT refuses($$SELECT pulse.add_job_once('1 h', 'theirs', 'mail')$$, '42501',
  'under a stranger''s key no add is taken', 'rival');
SELECT refuses($$SELECT pulse.add_job_once('1 h', 'theirs', 'mail', states => '{failed}')$$,
  '42501', 'whatever states it names', 'rival');
SELECT refuses($$SELECT pulse.forget_once('mail', 'theirs')$$, '42501',
  'nor is the key forgotten', 'rival');
SELECT refuses($$SELECT * FROM pulse.remembered_key$$, '42501', 'or read', 'rival');
SET LOCAL ROLE shop;
SELECT is(added('theirs'), 'known waiting', 'its own producer gets the job');
RESET ROLE;
SELECT later_by('1 h') \g /dev/null
SET LOCAL ROLE rival;
SELECT is(pulse.forget_once('mail', 'theirs'), false, 'after its end the period is nobody''s');
SELECT is(added('theirs'), 'new waiting', 'and the key may be taken');
RESET ROLE;
SELECT is((SELECT k.added_by FROM pulse.remembered_key AS k WHERE k.unique_key = 'theirs'),
  'rival', 'it has another producer then');
SET LOCAL ROLE boss;
SELECT is(pulse.forget_once('mail', 'theirs'), true, 'an operator forgets any key');
RESET ROLE;

-- --- list ---------------------------------------------------------------------------------------

DELETE FROM pulse.remembered_key;
SELECT id AS first FROM pulse.add_job_once('2 h', 'first', 'mail') \gset
SELECT id AS second FROM pulse.add_job_once('1 h', 'second', 'mail') \gset
SELECT id AS third FROM pulse.add_job_once('3 h', 'second', 'bill') \gset
SELECT pulse.cancel_job(:first) \g /dev/null
CREATE FUNCTION listed(task text = NULL, key text = NULL, max_rows int = 100) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(l.identifier || ' ' || l.unique_key, ', ' ORDER BY l.ordinality)
    FROM pulse.list_unique_keys(task, key, max_rows) WITH ORDINALITY AS l $$;
SELECT is(listed(), 'bill second, mail first, mail second', 'keys are listed, the longest first');
SELECT is(listed('mail'), 'mail first, mail second', 'of a task');
SELECT is(listed(key => 'second'), 'bill second, mail second', 'of a key');
SELECT is(listed('mail', 'second'), 'mail second', 'of both');
SELECT is(listed(max_rows => 1), 'bill second', 'and so many');
SELECT is((SELECT ROW(l.job_id, l.state, l.added_by, l.unique_until)::text
             FROM pulse.list_unique_keys('mail', 'first') AS l),
  (SELECT ROW(k.job_id, 'cancelled', current_user, k.unique_until)::text
     FROM pulse.remembered_key AS k WHERE k.job_id = :first), 'with the job and its producer');
SELECT throws_ok('SELECT pulse.list_unique_keys(max_rows => 0)', 'PU004', NULL,
  'a number of rows is in range');
SELECT later_by('1 h') \g /dev/null
SELECT is(listed(), 'bill second, mail first', 'a key whose period is over is not listed');
SELECT is(listed(key => 'second'), 'bill second', 'nor is it when it is asked for');

-- A transaction may last longer than the period.
DELETE FROM pulse.remembered_key;
SELECT is(array_agg(o.is_new), '{t,f}', 'two adds of one transaction are one add')
  FROM generate_series(1, 2) AS n
 CROSS JOIN LATERAL pulse.add_job_once('1 ms', 'twice' || (n - n)::text, 'mail') AS o;

-- --- age ----------------------------------------------------------------------------------------

DELETE FROM pulse.remembered_key;
SELECT pulse.add_job_once('1 h', n::text, 'mail') FROM generate_series(1, 5) AS n \g /dev/null
SELECT pulse.add_job_once('2 h', 'later', 'mail') \g /dev/null
SELECT is(pulse_internal.prune(3), 0, 'no period is over, so no key is pruned');
SELECT later_by('1 h') \g /dev/null
SELECT is(ARRAY(SELECT pulse_internal.prune(3) FROM generate_series(1, 3)), ARRAY[3, 2, 0],
  'keys whose period is over go in steps');
SELECT is((SELECT string_agg(k.unique_key, ' ') FROM pulse.remembered_key AS k), 'later',
  'and no other key');
INSERT INTO pulse.remembered_key
SELECT 'mail', 'over ' || n, n, pulse.now() - interval '1 s' * n, 'shop'
  FROM generate_series(1, 4) AS n;
SELECT is(pulse_internal.prune(2), 2, 'a full step');
INSERT INTO pulse.remembered_key
VALUES ('mail', 'skipped', 5, pulse.now() - interval '1 day', 'shop');
SELECT is(pulse_internal.prune(3), 2, 'the next step begins where the full step has come to');
SELECT is(pulse_internal.prune(3), 1, 'and the next pruning begins at the oldest key');
SELECT later_by('1 h') \g /dev/null
SELECT is((pulse.tick() ->> 'pruned')::int, 1, 'a tick prunes them');
SELECT is_empty('SELECT FROM pulse.remembered_key', 'to the last');

-- The index still has the keys that earlier steps have deleted, and perhaps keys of earlier tests.
INSERT INTO pulse.remembered_key
SELECT 'mail', 'many ' || n, n, pulse.now() - interval '1 ms' * n, 'shop'
  FROM generate_series(1, 400) AS n;
CREATE FUNCTION read_by_a_step() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  age_idx CONSTANT regclass := 'pulse.remembered_key_age_idx';
  before bigint := pg_stat_get_xact_tuples_returned(age_idx);
BEGIN
  PERFORM pulse_internal.prune(100, true);
  RETURN pg_stat_get_xact_tuples_returned(age_idx) - before;
END $$;
SELECT read_by_a_step() \g /dev/null
SELECT cmp_ok((SELECT max(read_by_a_step()) FROM generate_series(1, 3)), '<', 200::bigint,
  'a step reads the keys that it deletes, and none that are gone');

SELECT is((SELECT 'pulse.remembered_key'::regclass::oid = ANY (e.extconfig) FROM pg_extension AS e
            WHERE e.extname = 'pg_pulse'), true, 'a dump contains the keys');

-- --- dedupe -------------------------------------------------------------------------------------

SELECT id AS job FROM pulse.add_job('mode', job_key => 'mode') \gset
SELECT is((SELECT ROW(a.id, a.payload)::text
             FROM pulse.add_job('mode', '[2]', job_key => 'mode', job_key_mode => 'dedupe') AS a),
  (SELECT ROW(j.id, j.payload)::text FROM pulse.job AS j WHERE j.id = :job),
  'the mode dedupe leaves the waiting job as it is');
SELECT is((SELECT a.id FROM pulse.add_job_after('{}', 'mode', job_key => 'mode',
                                                job_key_mode => 'dedupe') AS a), :job::bigint,
  'of add_job_after too');
SELECT is((SELECT s.job_key_mode FROM pulse.schedule('s', 'mode', every => '1 h', job_key => 'mode',
                                                     job_key_mode => 'dedupe') AS s),
  'unsafe_dedupe', 'a schedule stores the one name of the mode');

SELECT * FROM finish();
ROLLBACK;
