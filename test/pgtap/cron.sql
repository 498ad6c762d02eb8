-- sql/operator/cron.sql: the text that makes pg_cron call run_tick().
\ir support/setup.psql
SELECT plan(19);

SELECT expect_function('cron_setup_sql',
  'schedule text DEFAULT ''* * * * *''::text, username name DEFAULT NULL::name, '
  'keep interval DEFAULT ''7 days''::interval', 'text', 'stable', 'definer');

-- What stands in for pg_cron, and remembers what it was told.
CREATE SCHEMA cron;
CREATE TABLE cron.told (job_name text, schedule text, command text, database text, username text);
CREATE TABLE cron.job (jobid bigint, jobname text);
CREATE TABLE cron.job_run_details (jobid bigint, start_time timestamptz, end_time timestamptz);
CREATE FUNCTION cron.schedule(job_name text, schedule text, command text) RETURNS bigint
  LANGUAGE sql AS $$
  INSERT INTO cron.told VALUES (job_name, schedule, command) RETURNING 1::bigint
$$;
CREATE FUNCTION cron.schedule_in_database(
    job_name text, schedule text, command text, database text, username text = NULL,
    active boolean = true)
  RETURNS bigint
  LANGUAGE sql AS $$
  INSERT INTO cron.told VALUES (job_name, schedule, command, database, username)
  RETURNING 1::bigint
$$;
CREATE FUNCTION set_up(setup text) RETURNS bigint
  LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM cron.told;
  EXECUTE setup;
  RETURN (SELECT count(*) FROM cron.told);
END $$;

SELECT is(set_up(pulse.cron_setup_sql()), 2::bigint, 'two jobs are scheduled');
SELECT answers('SELECT schedule, command, database, username
                  FROM cron.told WHERE job_name ~ ''tick''',
  ROW('* * * * *', 'CALL pulse.run_tick()', current_database(), NULL),
  'one calls run_tick in this database each minute');
SELECT command AS purge FROM cron.told WHERE job_name ~ 'purge' \gset
INSERT INTO cron.job SELECT n, t.job_name
  FROM (SELECT job_name, row_number() OVER (ORDER BY job_name) AS n FROM cron.told) AS t;
INSERT INTO cron.job VALUES (3, 'somebody''s own');
INSERT INTO cron.job_run_details
SELECT n, now() - ago, now() - ago
  FROM generate_series(1, 3) AS n, unnest(ARRAY[interval '6 d', '8 d']) AS ago;
INSERT INTO cron.job_run_details VALUES (1, now() - interval '8 d', NULL);
SELECT lives_ok(:'purge', 'the other one deletes records of both');
SELECT results_eq('SELECT jobid, count(*) FROM cron.job_run_details GROUP BY 1 ORDER BY 1',
  $$VALUES (1::bigint, 1::bigint), (2, 1), (3, 2)$$,
  'that are old, whether the run ended or not, and nobody else''s');
SELECT is(set_up(pulse.cron_setup_sql('*/5 * * * *', 'o''brien', '1 hour')), 2::bigint,
  'with a schedule, a user and an age of one''s own');
SELECT answers('SELECT schedule, username FROM cron.told WHERE job_name ~ ''tick''',
  ROW('*/5 * * * *', 'o''brien'), 'these are told to pg_cron');
SELECT ok((SELECT command ~ '01:00:00' FROM cron.told WHERE job_name ~ 'purge'), 'and the age');
SELECT is(set_up(pulse.cron_setup_sql(keep => NULL)), 1::bigint,
  'without an age nothing is deleted');
SELECT is(set_up(pulse.cron_setup_sql(E'* * * * *\n'');DELETE FROM cron.job;--')), 2::bigint,
  'what looks like a statement');
SELECT is((SELECT count(*)::int FROM cron.job), 3, 'is none');
SELECT refuses('SELECT pulse.cron_setup_sql('' '')', 'PU004', 'a schedule must be given');
SELECT refuses('SELECT pulse.cron_setup_sql(NULL)', 'PU004', 'and not be null');
SELECT refuses('SELECT pulse.cron_setup_sql(keep => ''-1 d'')', 'PU004',
  'nothing is kept for less than no time');

SELECT * FROM finish();
ROLLBACK;
