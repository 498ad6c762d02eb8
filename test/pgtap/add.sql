-- sql/job/add.sql: producers add, replace and remove jobs in their own transaction.
\ir support/setup.psql
SELECT plan(87);

SELECT expect_function('add_job',
  'identifier text, payload json DEFAULT NULL::json, queue_name text DEFAULT NULL::text, '
  'run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, '
  'max_attempts integer DEFAULT NULL::integer, job_key text DEFAULT NULL::text, '
  'priority integer DEFAULT NULL::integer, flags text[] DEFAULT NULL::text[], '
  'job_key_mode text DEFAULT ''replace''::text',
  'pulse.job', 'volatile', 'invoker');
SELECT expect_function('add_jobs',
  'specs pulse.job_spec[], job_key_preserve_run_at boolean DEFAULT false',
  'SETOF pulse.job', 'volatile', 'invoker');
SELECT expect_function('remove_job', 'job_key text', 'pulse.job', 'volatile', 'invoker');

SELECT given_worker() AS ann \gset

-- --- what is stored -----------------------------------------------------------------------------

CREATE TEMP TABLE added AS
  SELECT * FROM pulse.add_job('mail', '{"to": "bob"}', 'post', now() + interval '1 hour', 7, 'k',
                              -3, '{b,a,b}');
SELECT answers(
  'SELECT identifier::text, payload::text, queue_name::text, run_at, max_attempts::int,
          job_key::text, priority::int, flags FROM added',
  ROW('mail'::text, '{"to": "bob"}'::text, 'post'::text, now() + interval '1 hour', 7, 'k'::text,
      -3, '{a,b}'::text[]),
  'a job is stored as it was given, its flags as a set');
SELECT results_eq('SELECT added::text FROM added', 'SELECT job::text FROM pulse.job AS job',
  'add_job returns the row that it stored');
SELECT answers(
  'SELECT attempts::int, crashes::int, worker_id, token, claimed_at, last_error, revision,
          created_at = now(), updated_at = now() FROM added',
  ROW(0, 0, NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::text, 0, true, true),
  'nobody has tried it yet');
SELECT is((pulse.add_job('mail', '{"a": 1, "a":  [ 2 ]}')).payload::text, '{"a": 1, "a":  [ 2 ]}',
  'a payload is kept letter by letter');
SELECT is((pulse.add_job('mail', job_key_mode => NULL, job_key => 'x')).job_key, 'x' COLLATE "C",
  'a mode of NULL means replace');
SELECT is(count(DISTINCT (pulse.add_job('mail')).id), 3::bigint,
  'a query adds a job for each of its rows') FROM generate_series(1, 3);

-- --- limits that are still allowed --------------------------------------------------------------

SELECT lives_ok(format('SELECT pulse.add_job(%s)', c.arguments), 'a job may have ' || c.what)
  FROM (VALUES ('repeat(''x'', 128)', 'an identifier of 128 characters'),
               ('repeat(''é'', 128)', 'an identifier of 128 characters of two bytes'),
               ('''mails/daily.report-2''', 'an identifier in a sub-folder'),
               ('''mail'', queue_name => repeat(''q'', 128)', 'a queue name of 128 characters'),
               ('''mail'', job_key => repeat(''k'', 512)', 'a key of 512 characters'),
               ('''mail'', priority => 32767', 'the highest priority'),
               ('''mail'', priority => -32768', 'the lowest priority'),
               ('''mail'', max_attempts => 32767', 'very many attempts'),
               ('''mail'', max_attempts => 1', 'a single attempt'),
               ('''mail'', run_at => ''1999-12-31''', 'a time in the past'),
               ('''mail'', (''"'' || repeat(''x'', 1000000) || ''"'')::json', 'a payload of 1 MB'))
       AS c (arguments, what);
DELETE FROM pulse.job;

-- --- keys ---------------------------------------------------------------------------------------

SELECT (pulse.add_job('mail', job_key => 'k')).id AS first \gset
SELECT is((pulse.add_job('mail', '{"n": 2}', job_key => 'k', job_key_mode => m)).id, :first::bigint,
          m || ' finds the waiting job of the key')
  FROM unnest(ARRAY['replace', 'preserve_run_at', 'unsafe_dedupe']) AS m;
SELECT is((SELECT revision FROM pulse.job), 3, 'each of them counts the revision up');
SELECT travel('1 min');
SELECT cmp_ok((pulse.add_job('mail', job_key => 'k')).updated_at, '>=', now() + interval '59 s',
  'and stamps when it was updated');
SELECT travel('0');
SELECT isnt((pulse.add_job('mail', job_key => 'K')).id, :first::bigint,
  'a key in another case is another key');
DELETE FROM pulse.job;

SELECT given_job('mail', 'post', job_key => 'k') AS parked \gset
SELECT answers($$SELECT id, state, queue_name FROM pulse.add_job('mail', job_key => 'k')$$,
  ROW(:parked::bigint, 'ready'::text, NULL::text), 'a parked job that loses its queue is ready');
SELECT answers(
  $$SELECT id, state::text FROM pulse.add_job('mail', job_key => 'k', queue_name => 'post')$$,
  ROW(:parked::bigint, 'parked'::text), 'a ready job that gets a queue is parked');
DELETE FROM pulse.job;

-- A job that crashed and reported, then waits for its retry under its key.
SELECT id AS job, token FROM given_claimed_job(:ann, job_key => 'k') \gset
SELECT pulse.progress(:job, :token, checkpoint => '{"page": 3}') \g /dev/null
SELECT pulse.declare_lost(:ann, 'gone') \g /dev/null
SELECT answers(
  $$SELECT id, attempts::int, crashes::int, last_error, checkpoint::text, recovered
      FROM pulse.add_job('mail', job_key => 'k')$$,
  ROW(:job::bigint, 0, 0, NULL::text, NULL::text, NULL::text),
  'a replaced job starts afresh: no attempts, no crashes, no error, no checkpoint');
DELETE FROM pulse.job;
SELECT given_worker() AS ann \gset

-- A running job under unsafe_dedupe.
SELECT id AS job, token FROM given_claimed_job(:ann, job_key => 'k') \gset
SELECT answers(
  $$SELECT id, state::text, revision, payload::text, max_attempts::int
      FROM pulse.add_job('ink', '{"n": 2}', job_key => 'k', max_attempts => 3,
                         job_key_mode => 'unsafe_dedupe')$$,
  ROW(:job::bigint, 'running'::text, 1, '{}'::text, 25),
  'unsafe_dedupe leaves a running job alone but for its revision');
SELECT is((SELECT count(*)::int FROM pulse.job), 1, 'and adds none');
-- The row of a running job keeps the key that another job has got.
SELECT id AS waiting FROM pulse.add_job('ink', '{"n": 3}') \gset
UPDATE pulse.job SET job_key = 'k' WHERE id = :waiting;
SELECT is((SELECT id FROM pulse.add_job('ink', job_key => 'k', job_key_mode => 'unsafe_dedupe')),
  :waiting::bigint, 'of a waiting and a running job with one key, it is the waiting one');
SELECT is((SELECT revision FROM pulse.job WHERE id = :waiting), 1, 'whose revision is counted up');
SELECT is((SELECT revision FROM pulse.job WHERE id = :job), 0,
          'and no other: the row of a running job is left alone');
DELETE FROM pulse.job WHERE id = :waiting;
SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :job, :token), 'which then completes');

-- A waiting job may have got the key in another way.
SELECT id AS job, token FROM given_claimed_job(:ann, job_key => 'written') \gset
SELECT id AS waiting FROM pulse.add_job('ink') \gset
UPDATE pulse.job SET job_key = 'written' WHERE id = :waiting;
SELECT is(pulse.fail(:job, :token, 'error'), 'failed',
          'a running job does not come back under the key of a waiting one');
DELETE FROM pulse.job;
DELETE FROM pulse.finished_job;

-- A running job whose key was taken, or removed, does not run again however its attempt ends.
CREATE FUNCTION fate_without_key(taken text, ending text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := given_worker('sue');
  first pulse.claimed_job := given_claimed_job(worker, job_key => 'k');
BEGIN
  EXECUTE 'SELECT pulse.' || taken;
  EXECUTE 'SELECT pulse.' || format(ending, first.id, first.token, worker);
  PERFORM pulse.remove_job('k');
  RETURN state_of(first.id);
END $$;
SELECT is(fate_without_key(t.taken, e.ending), 'failed',
          format('%s does not bring back a job whose key %s took', split_part(e.ending, '(', 1),
                 split_part(t.taken, '(', 1)))
  FROM (VALUES ('add_job(''mail'', job_key => ''k'')'), ('remove_job(''k'')')) AS t (taken),
       (VALUES ('fail(%s, %s, ''boom'')'), ('release(ARRAY[%s], ARRAY[%s])'),
               ('snooze(%s, %s, ''1 min'')'), ('deregister_worker(%3$s)'),
               ('declare_lost(%3$s, ''gone'')')) AS e (ending);

-- --- add_jobs -----------------------------------------------------------------------------------

SELECT answers(
  $$SELECT identifier::text, priority::int, payload::text FROM pulse.add_jobs(ARRAY[
      ('b', '[1]', NULL, NULL, NULL, NULL, 2, NULL)::pulse.job_spec,
      ('a', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec])$$,
  lines($$VALUES ('b', 2, '[1]'), ('a', 0, '{}')$$),
  'add_jobs returns the jobs in the order of their specs');
SELECT answers(
  $$SELECT state::text, queue_name::text, job_key::text FROM pulse.add_jobs(ARRAY[
      ('b', NULL, 'post', NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
      ('b', NULL, NULL, NULL, NULL, 'k', NULL, NULL)::pulse.job_spec])$$,
  lines($$VALUES ('parked', 'post', NULL), ('ready', NULL, 'k')$$),
  'specs with and without queues and keys go together');
SELECT results_eq(
  $$SELECT job_key FROM pulse.add_jobs(ARRAY[
      ('order', NULL, NULL, NULL, NULL, 'z', NULL, NULL),
      ('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
      ('order', NULL, NULL, NULL, NULL, 'a', NULL, NULL)]::pulse.job_spec[])
     ORDER BY id$$,
  ARRAY['z', NULL, 'a' COLLATE "C"],
  'jobs with keys that are due together come in the order of their specs');
SELECT is(count(*)::int, 0, 'given NULL, add_jobs adds nothing') FROM pulse.add_jobs(NULL);
SELECT lives_ok(
  $$SELECT pulse.add_jobs(ARRAY[('b', NULL, NULL, NULL, NULL, 'k', NULL, NULL)::pulse.job_spec],
                          NULL)$$, 'job_key_preserve_run_at of NULL means false');
SELECT is(count(*)::int, 1000, 'add_jobs adds a thousand jobs in one call')
  FROM pulse.add_jobs(ARRAY(
    SELECT ('bulk', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
      FROM generate_series(1, 1000)));
DELETE FROM pulse.job;

-- --- remove_job ---------------------------------------------------------------------------------

SELECT given_job('mail', 'post', job_key => 'k') AS job \gset
SELECT is((pulse.remove_job('k')).id, :job::bigint, 'remove_job returns the job that it removed');
SELECT is(state_of(:job), 'gone', 'which is gone');
SELECT is(pulse.remove_job('k'), NULL, 'once more it returns NULL');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

-- --- what others hang on the table, and where a call sees its jobs -------------------------------

DELETE FROM pulse.job;
CREATE FUNCTION seen_by_block() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  added pulse.job;
BEGIN
  added := pulse.add_job('mail');
  RETURN (SELECT count(*) FROM pulse.job AS j WHERE j.id = added.id AND j::text = added::text);
END $$;
SELECT is(seen_by_block(), 1::bigint, 'the next expression sees the job, as it was returned');
SELECT pulse.set_task('mail', max_attempts => 7) \g /dev/null
SELECT is((SELECT array_agg(a.max_attempts ORDER BY a.id) FROM pulse.add_jobs(ARRAY[
    ('mail', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
    ('mailbox', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
    ('mail', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
    ('mail', NULL, NULL, NULL, 3, NULL, NULL, NULL)::pulse.job_spec]) AS a),
  '{7,25,7,3}'::smallint[], 'each job has the max_attempts of its own task');
CREATE TABLE public.heard (id bigint, lane "char", moment text);
CREATE FUNCTION hear() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.heard VALUES (NEW.id, NEW.index_lane, TG_WHEN);
  NEW.priority := 7;
  RETURN NEW;
END $$;
CREATE TRIGGER hear_before BEFORE INSERT ON pulse.job FOR EACH ROW EXECUTE FUNCTION hear();
CREATE TRIGGER hear_after AFTER INSERT ON pulse.job FOR EACH ROW EXECUTE FUNCTION hear();
SELECT given_job('mail') AS one \gset
SELECT given_job('mail', 'post') AS parked \gset
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('mail', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 3))) \g /dev/null
SELECT is((pulse.add_job('mail')).priority, 7::smallint, 'what a trigger changes is returned');
SELECT is((SELECT count(*)::int FROM public.heard WHERE moment = 'BEFORE'), 6,
  'a trigger on the table fires before each job');
SELECT is((SELECT count(*)::int FROM public.heard WHERE moment = 'AFTER'), 6, 'and after it');
SELECT is((SELECT array_agg(lane ORDER BY id) FROM public.heard WHERE moment = 'AFTER'
             AND id IN (:one, :parked)), '{o,p}'::"char"[], 'and sees its lane');
DROP TRIGGER hear_before ON pulse.job;
DROP TRIGGER hear_after ON pulse.job;
ALTER TABLE pulse.job ADD CONSTRAINT no_letters CHECK (identifier <> 'letter');
SELECT throws_ok($$SELECT pulse.add_job('letter')$$, '23514', NULL,
  'a constraint on the table refuses a job');
ALTER TABLE pulse.job DROP CONSTRAINT no_letters;
ALTER TABLE pulse.job ADD COLUMN note text;
SELECT is((pulse.add_job('mail')).note, NULL, 'a column that somebody has added stays empty');
SELECT is((SELECT count(j.note)::int FROM pulse.add_jobs(ARRAY(
    SELECT ('mail', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
      FROM generate_series(1, 3))) AS j), 0, 'in many jobs, too');
UPDATE pulse.job SET note = 'old';
ALTER TABLE pulse.job ALTER COLUMN note SET NOT NULL;
SELECT throws_ok($$SELECT pulse.add_job('mail')$$, '23502', NULL, 'if it may be');
ALTER TABLE pulse.job DROP COLUMN note;
SELECT is((pulse.add_job('mail')).state, 'ready', 'one that is gone again is in nobody''s way');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

-- add_jobs locks all keys of a call, and the add of each job locks its key again.
SELECT count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('mail', NULL, NULL, NULL, NULL, 'key ' || n, NULL, NULL)::pulse.job_spec
      FROM generate_series(1, 150) AS n)) \g /dev/null
SELECT is((SELECT count(*)::int FROM pg_locks
            WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = x'5004'::int
              AND mode = 'ExclusiveLock'), 0, 'a call with 150 keys locks no bucket of keys');

-- --- refusals: see also bad_input.sql -----------------------------------------------------------

SELECT refuses($$SELECT pulse.add_job('mail', job_key => 'k', job_key_mode => 'ignore')$$, 'PU004',
  'an unknown job_key_mode is refused');
SELECT refuses(
  $$SELECT pulse.add_jobs(ARRAY[
      ('a', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
      ('../a', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec])$$,
  'PU004', 'one bad spec refuses all');
SELECT refuses($$SELECT pulse.add_jobs(ARRAY[NULL::pulse.job_spec])$$, 'PU004',
  'a spec of NULL is refused');

SELECT * FROM finish();
ROLLBACK;
