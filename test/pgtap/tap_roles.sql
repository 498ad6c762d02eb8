-- sql/tap: a test as superuser runs the functions of the application's role as that role.
\ir support/tap.psql
SELECT plan(9);

\o /dev/null
SELECT freeze();
CREATE ROLE app;
CREATE SCHEMA app AUTHORIZATION app;
SELECT pulse.grant_worker('app'), pulse.grant_producer('app');
SET LOCAL ROLE app;
CREATE TABLE app.did (what text, by_role text);
CREATE FUNCTION app.work(payload jsonb) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.did VALUES (payload ->> 'what', current_user);
  IF payload ->> 'what' = 'fail' THEN
    RAISE EXCEPTION 'it failed';
  END IF;
END $$;
RESET ROLE;
SELECT pulse.set_task('work', handler => 'app.work(jsonb)', max_attempts => 1),
       pulse.add_job('work', '{"what": "first"}');
SET LOCAL client_min_messages = error;
\o

SELECT refuses('SELECT * FROM drain()', '42501',
  'where a superuser would run nothing, a drain says so');
SELECT alike((refusal_of('SELECT * FROM drain()')).hint, '%drain(as_role => ...)%',
  'and how it runs');
SELECT refuses($$SELECT * FROM drain('{work}')$$, 'PU005', 'so does one of this task');
SELECT results_eq($$SELECT identifier, state FROM drain(as_role => 'app')$$,
  $$VALUES ('work', 'completed')$$, 'as the role of the application the job runs');
SELECT results_eq('SELECT d.what, d.by_role FROM app.did AS d', $$VALUES ('first', 'app')$$,
  'with the rights of that role');
SELECT is(current_setting('role')::text, 'none'::text,
  'after which the test has its own role again');
SELECT pulse.add_job('work', '{"what": "fail"}') \g /dev/null
SELECT results_eq($$SELECT state FROM drain('{work}', as_role => 'app')$$, $$VALUES ('failed')$$,
  'a function that raises fails its job');
SELECT is(current_setting('role')::text, 'none'::text, 'and leaves the test its role');
SELECT refuses($$SELECT * FROM drain(as_role => 'nobody_here')$$, '22023',
  'a role that does not exist is refused');

SELECT * FROM finish();
ROLLBACK;
