-- sql/worker/handler.sql: tasks that are functions of the database, run and completed in one
-- transaction.
\ir support/setup.psql
SELECT plan(43);

SELECT expect_function('perform_job', 'job_id bigint, token bigint', 'void', 'volatile', 'invoker');
SELECT expect_function('handler_tasks', '', 'text[]', 'stable', 'definer');

CREATE SCHEMA app;
CREATE TABLE app.effect (what text);
CREATE FUNCTION app.takes_json(payload json) RETURNS json LANGUAGE sql AS $$
  INSERT INTO app.effect VALUES (payload ->> 'what') RETURNING json_build_object('done', what) $$;
CREATE SEQUENCE app.seen;
CREATE FUNCTION app.takes_jsonb(payload jsonb) RETURNS void LANGUAGE sql STABLE AS $$
  SELECT setval('app.seen', (payload ->> 'what')::int) $$;
CREATE FUNCTION app."takes Job"(job pulse.claimed_job) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.effect VALUES (format('%s by attempt %s', job.identifier, job.attempts));
  RETURN 'a text';
END $$;
CREATE FUNCTION app.fails(payload json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.effect VALUES ('never');
  RAISE EXCEPTION 'no such customer' USING ERRCODE = 'P0002';
END $$;
CREATE FUNCTION app.ends_its_claim(job pulse.claimed_job) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.effect VALUES ('of a lost claim');
  PERFORM pulse.requeue_job(job.id, 'by hand');
END $$;
CREATE FUNCTION app.rows(payload json) RETURNS SETOF int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION app.two(payload json, more int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION app.number(payload int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE app.procedure(payload json) LANGUAGE sql AS 'SELECT 1';

-- --- what can be a handler ----------------------------------------------------------------------

SELECT refuses(format($$SELECT pulse.set_task('mail', handler => %L)$$, f), 'PU004',
               f || ' cannot take a job')
  FROM unnest(ARRAY['app.rows(json)', 'app.two(json,int)', 'app.number(int)',
                    'app.procedure(json)']) AS f;
SELECT is((SELECT count(*) FROM pulse.task), 0::bigint, 'and nothing is stored');
SELECT is(pulse.handler_tasks(), '{}', 'no task has a handler');
SELECT lives_ok($$SELECT pulse.set_task('json', handler => 'app.takes_json(json)'),
  pulse.set_task('jsonb', handler => 'app.takes_jsonb(jsonb)'),
  pulse.set_task('job', handler => 'app."takes Job"(pulse.claimed_job)'),
  pulse.set_task('fails', handler => 'app.fails(json)'),
  pulse.set_task('lost', handler => 'app.ends_its_claim(pulse.claimed_job)'),
  pulse.set_task('plain', max_attempts => 2)$$, 'three kinds of argument are taken');
SELECT is(pulse.handler_tasks(), '{fails,job,json,jsonb,lost}', 'they are listed');

-- --- performing ---------------------------------------------------------------------------------

SET LOCAL pulse.keep_completed = '1h';
SELECT given_worker() AS ann \gset
CREATE FUNCTION given_claimed(identifier text, payload json) RETURNS pulse.claimed_job
  LANGUAGE plpgsql AS $$
DECLARE
  taken pulse.claimed_job;
BEGIN
  PERFORM pulse.add_job(identifier, payload);
  SELECT c.* INTO taken FROM pulse.worker AS w, pulse.claim(w.id, 1, ARRAY[identifier]) AS c;
  RETURN taken;
END $$;
CREATE FUNCTION result_of(job_id bigint) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', state, result) FROM pulse.finished_job WHERE id = job_id $$;

SELECT id AS job, token FROM given_claimed('json', '{"what": "first"}') \gset
SELECT lives_ok(format('SELECT pulse.perform_job(%s, %s)', :job, :token),
                'a function is performed');
SELECT is((SELECT array_agg(what) FROM app.effect), '{first}', 'with the payload');
SELECT is(result_of(:job), 'completed {"done" : "first"}', 'and completed with what it returned');
SELECT refuses(format('SELECT pulse.perform_job(%s, %s)', :job, :token), 'PU001',
               'a claim is performed once');
SELECT is((SELECT count(*) FROM app.effect), 1::bigint, 'whatever asks again');

SELECT id AS job, token FROM given_claimed('jsonb', '{"what": 2}') \gset
SELECT lives_ok(format('SELECT pulse.perform_job(%s, %s)', :job, :token),
                'a function may return nothing, and is called although nobody reads it');
SELECT is((SELECT last_value FROM app.seen), 2::bigint, 'with the payload as jsonb');
SELECT is(result_of(:job), 'completed', 'it has no result');

SELECT id AS job, token FROM given_claimed('job', 'null') \gset
SELECT lives_ok(format('SELECT pulse.perform_job(%s, %s)', :job, :token),
                'a function may take the whole job, and be called anything');
SELECT is((SELECT what FROM app.effect OFFSET 1), 'job by attempt 1', 'which it sees');
SELECT is(result_of(:job), 'completed "a text"', 'any value is a result');

-- --- failing ------------------------------------------------------------------------------------

SELECT id AS job, token FROM given_claimed('fails', '{}') \gset
SELECT refuses(format('SELECT pulse.perform_job(%s, %s)', :job, :token), 'P0002',
               'an error is the caller''s');
SELECT is((SELECT count(*) FROM app.effect), 2::bigint, 'with which its effects are undone');
SELECT is(state_of(:job), 'running', 'and the job runs until that is reported');
SELECT lives_ok(format('SELECT pulse.fail(%s, %s, ''P0002'')', :job, :token), 'as a failure');

SELECT id AS job, token FROM given_claimed('lost', '{}') \gset
SELECT refuses(format('SELECT pulse.perform_job(%s, %s)', :job, :token), 'PU001',
               'a claim that is lost meanwhile is not completed');
SELECT is((SELECT count(*) FROM app.effect), 2::bigint, 'and what it did is undone');

SELECT id AS job, token FROM given_claimed('plain', '{}') \gset
SELECT refuses(format('SELECT pulse.perform_job(%s, %s)', :job, :token), 'PU005',
               'a task without a handler is refused');
SELECT id AS job, token FROM given_claimed('json', '{}') \gset
SELECT refuses(format('SELECT pulse.perform_job(%s, %s)', :job, :token + 1), 'PU001',
               'so is another''s token');
DROP FUNCTION app.takes_json;
SELECT refuses(format('SELECT pulse.perform_job(%s, %s)', :job, :token), 'PU005',
               'and a function that is gone');
SELECT is(pulse.handler_tasks(), '{fails,job,jsonb,lost}', 'which is not listed either');

-- --- whose rights -------------------------------------------------------------------------------

CREATE ROLE pulse_test_runner;
SELECT pulse.grant_worker('pulse_test_runner') \g /dev/null
GRANT USAGE ON SCHEMA app TO pulse_test_runner;
SELECT id AS job, token FROM given_claimed('job', '{}') \gset
SELECT refuses(format('SELECT pulse.perform_job(%s, %s)', :job, :token), '42501',
               'a handler has the rights of the worker', 'pulse_test_runner');
REVOKE EXECUTE ON FUNCTION app."takes Job" FROM PUBLIC;
SET LOCAL SESSION AUTHORIZATION pulse_test_runner;
SELECT is(pulse.handler_tasks(), '{fails,jsonb,lost}', 'what it may not execute is not its task');
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
