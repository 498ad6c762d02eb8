-- extension/access/not_null.cpp: no row of ours has NULL in a column that is NOT NULL, whoever said
-- so, and however the row is written.
\ir support/setup.psql
SELECT plan(18);
SELECT given_worker() AS ann \gset

-- What a call raises while the column of the table is NOT NULL.
CREATE FUNCTION with_not_null(of_table text, of_column text, call text) RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE pulse.%I ALTER COLUMN %I SET NOT NULL', of_table, of_column);
  EXECUTE call;
  EXECUTE format('ALTER TABLE pulse.%I ALTER COLUMN %I DROP NOT NULL', of_table, of_column);
  RETURN 'done';
EXCEPTION WHEN not_null_violation THEN
  RETURN SQLERRM;
END $$;
CREATE FUNCTION told(of_table text, of_column text) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('null value in column "%s" of relation "%s" violates not-null constraint',
                of_column, of_table)
$$;

SELECT is(with_not_null('job', 'queue_name', call), told('job', 'queue_name'),
          call || ' is refused')
  FROM (VALUES ('SELECT pulse.add_job(''mail'')'),
               ('SELECT pulse.add_jobs(''{"(mail,,,,,,,)"}'')'),
               ('SELECT pulse.add_jobs(''{"(mail,,,,,,,)","(mail,,post,,,,,)"}'')'),
               ('SELECT pulse.add_job(''mail'', job_key => ''k'')'),
               ('SELECT pulse.add_job_after(''{}'', ''mail'')')) AS c (call);
SELECT is_empty('SELECT FROM pulse.job', 'and adds nothing');
SELECT is(
  with_not_null('job', 'queue_name', 'SELECT pulse.add_job(''mail'', queue_name => ''post'')'),
  'done', 'a job that has a value is added');
DELETE FROM pulse.job;

-- Each change of a row.
SELECT id AS job, token FROM given_claimed_job(:ann, max_attempts => 2) \gset
SELECT is(with_not_null('job', 'worker_id', call), told('job', 'worker_id'), call || ' is refused')
  FROM (VALUES (format('SELECT pulse.release(ARRAY[%s], ARRAY[%s])', :job, :token)),
               (format('SELECT pulse.snooze(%s, %s, ''1 s'')', :job, :token)),
               (format('SELECT pulse.fail(%s, %s, ''no ink'')', :job, :token))) AS c (call);
SELECT is(state_of(:job), 'running', 'and the job runs on');
SELECT is(with_not_null('finished_job', 'result', call), told('finished_job', 'result'),
  'a kept job is refused')
  FROM (VALUES (format('SELECT pulse.fail(%s, %s, ''no ink'', false)', :job, :token))) AS c (call);
SELECT is(with_not_null('attempt', 'error', call), told('attempt', 'error'),
  'an attempt on record, too')
  FROM (VALUES (format('SELECT pulse.release(ARRAY[%s], ARRAY[%s])', :job, :token))) AS c (call);
SELECT is(with_not_null('job', 'token', 'SELECT pulse.sweep()'), 'done',
  'where the column is free of NULL, all goes on');
SELECT pulse.fail(:job, :token, 'no ink') \g /dev/null

-- NULL where the tables themselves have none.
SELECT refuses(format('SELECT pulse_internal.insert_job(ROW(%s)::pulse.job_spec)', given), 'PU004',
  'the specification of a job is not checked')
  FROM unnest(ARRAY['''a'', ''{}'', NULL, NULL, 3, NULL, 0, NULL',
                    'NULL, ''{}'', NULL, now(), 3, NULL, 0, NULL',
                    '''a'', NULL, NULL, now(), 3, NULL, 0, NULL',
                    '''a'', ''{}'', NULL, now(), NULL, NULL, 0, NULL']) AS given;
SELECT * FROM finish();
ROLLBACK;
