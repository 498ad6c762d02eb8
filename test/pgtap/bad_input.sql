-- Whatever is given to a function: a clear error with its code, and nothing changed. First what
-- cannot be asked inside the transaction of the test; each of these transactions is rolled back.
\set QUIET on
\set VERBOSITY sqlstate
\set ON_ERROR_STOP off
\set create 'SET LOCAL client_min_messages = error; CREATE EXTENSION IF NOT EXISTS pg_pulse;'
CREATE FUNCTION pg_temp.code_of(statement text) RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  RETURN '00000';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;

BEGIN ISOLATION LEVEL SERIALIZABLE;
:create
SELECT (pulse.register_worker('ann')).id AS ann \gset
SELECT jsonb_object_agg(c.call, pg_temp.code_of('SELECT pulse.' || format(c.call, :ann)))
    AS serializable
  FROM (VALUES ('register_worker(''bob'')'), ('add_job(''mail'')'), ('heartbeat(%s)'),
               ('claim(%s)'), ('claim_job(%s, 1)'), ('sweep()'), ('sweep(dry_run => true)'),
               ('declare_lost(%s, ''gone'')'), ('adopt_installation()'), ('set_shard(0)'),
               ('check_host(%s)'))
       AS c (call) \gset
ROLLBACK;

BEGIN ISOLATION LEVEL REPEATABLE READ;
:create
SELECT (pulse.register_worker('ann')).id AS ann \gset
SELECT jsonb_object_agg(c.call, pg_temp.code_of('SELECT pulse.' || format(c.call, :ann)))
    AS repeatable
  FROM (VALUES ('add_job(''mail'')'), ('claim(%s)'), ('sweep()')) AS c (call) \gset
ROLLBACK;

BEGIN ISOLATION LEVEL READ UNCOMMITTED;
:create
SELECT (pulse.register_worker('ann')).id AS ann \gset
SELECT jsonb_object_agg(c.call, pg_temp.code_of('SELECT pulse.' || format(c.call, :ann)))
    AS uncommitted
  FROM (VALUES ('claim(%s)'), ('claim_job(%s, 1)'), ('sweep()'), ('tick()'), ('verify()'),
               ('deregister_worker(%s)')) AS c (call) \gset
ROLLBACK;

BEGIN;
:create
SELECT (pulse.register_worker('ann')).id AS ann,
       (pulse.add_job('mail', job_key => 'k')).id AS job \gset
SELECT token FROM pulse.claim_job(:ann, :job), LATERAL (SELECT (job).token) AS claimed \gset
SET TRANSACTION READ ONLY;
SELECT jsonb_object_agg(c.call, pg_temp.code_of(
         'SELECT pulse.' || format(c.call, :ann, :job, :token))) AS read_only
  FROM (VALUES
    ('add_job(''mail'')'), ('add_job(''mail'', job_key => ''k'')'), ('remove_job(''k'')'),
    ('add_jobs(ARRAY[(''mail'', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec])'),
    ('register_worker(''bob'')'), ('attach_worker(%s)'), ('claim(%s)'), ('claim_job(%s, %s)'),
    ('heartbeat(%s)'), ('progress(%2$s, %3$s)'), ('complete(%2$s, %3$s)'),
    ('fail(%2$s, %3$s, ''boom'')'), ('snooze(%2$s, %3$s, ''1 s'')'),
    ('complete_many(ARRAY[%2$s], ARRAY[%3$s])'),
    ('fail_many(ARRAY[%2$s], ARRAY[%3$s], ARRAY[''boom''])'),
    ('release(ARRAY[%2$s], ARRAY[%3$s])'), ('fence(%2$s, %3$s)'), ('deregister_worker(%s)'),
    ('declare_lost(%s, ''gone'')'), ('sweep()'), ('sweep(dry_run => true)'), ('cancel_job(%2$s)'),
    ('set_task(''mail'')'), ('set_queue(''post'')'), ('pause_queue(''post'')'),
    ('unset_queue(''post'')'), ('unset_task(''mail'')'),
    ('adopt_installation()'), ('check_host(%s)'), ('held(%s)'),
    ('get_job(%2$s)'), ('verify()')) AS c (call) \gset
ROLLBACK;

-- Four errors on the terminal: only a statement of its own can meet an aborted transaction.
BEGIN;
:create
SELECT 1 / 0;
SELECT pulse.add_job('mail');
\set aborted_add :SQLSTATE
SELECT pulse.claim(1);
\set aborted_claim :SQLSTATE
CALL pulse.wait_for_job(1);
\set aborted_wait :SQLSTATE
ROLLBACK;

\set VERBOSITY default
\ir support/setup.psql
SELECT plan(254);

SELECT is(r.value, CASE WHEN r.key ~ '^(add_job|register|heartbeat)' THEN '00000' ELSE 'PU007' END,
          r.key || CASE WHEN r.value = '00000' THEN ' works' ELSE ' is refused' END
            || ' in a serializable transaction')
  FROM jsonb_each_text(:'serializable') AS r ORDER BY r.key;
SELECT is(r.value, CASE WHEN r.key ~ '^add_job' THEN '00000' ELSE 'PU007' END,
          r.key || CASE WHEN r.value = '00000' THEN ' works' ELSE ' is refused' END
            || ' under repeatable read')
  FROM jsonb_each_text(:'repeatable') AS r ORDER BY r.key;
SELECT is(r.value, '00000', r.key || ' works under read uncommitted')
  FROM jsonb_each_text(:'uncommitted') AS r ORDER BY r.key;
SELECT is(r.value, CASE WHEN r.key ~ '^(held|get_job|verify)' THEN '00000' ELSE '25006' END,
          r.key || CASE WHEN r.value = '00000' THEN ' works' ELSE ' is refused' END
            || ' in a read-only transaction')
  FROM jsonb_each_text(:'read_only') AS r ORDER BY r.key;
SELECT is(:'aborted_add'::text, '25P02', 'an aborted transaction adds no job');
SELECT is(:'aborted_claim'::text, '25P02', 'claims none');
SELECT is(:'aborted_wait'::text, '25P02', 'and does not wait for one');

-- Stored as it is, because compressing it would take longer than all the rest.
CREATE TEMP TABLE huge (doc json);
ALTER TABLE huge ALTER COLUMN doc SET STORAGE EXTERNAL;
INSERT INTO huge SELECT ('"' || repeat('x', 100 * 1024 * 1024) || '"')::json;

-- --- producers ----------------------------------------------------------------------------------

SELECT refuses(format('SELECT pulse.add_job(%s)', c.arguments), c.code,
               'add_job refuses ' || c.what)
  FROM (VALUES ('NULL', 'PU004', 'a task of NULL'), ('''''', 'PU004', 'an empty task'),
               ('repeat(''x'', 129)', 'PU004', 'an over-long task'),
               ('''../x''', 'PU004', '../x'), ('''..''', 'PU004', '..'), ('''.''', 'PU004', '.'),
               ('''a/../b''', 'PU004', 'a/../b'), ('''a/..''', 'PU004', 'a/..'),
               ('''a/./b''', 'PU004', 'a/./b'), ('''/bin/sh''', 'PU004', 'an absolute name'),
               ('''a//b''', 'PU004', 'a//b'), ('''a/''', 'PU004', 'a folder'),
               ('E''a\nb''', 'PU004', 'a line break'), ('E''a\tb''', 'PU004', 'a tab'),
               ('E''a\\\\b''', 'PU004', 'a backslash'),
               ('E''\x7f''', 'PU004', 'a control character'),
               ('''mail'', queue_name => ''''', 'PU004', 'an empty queue name'),
               ('''mail'', queue_name => repeat(''x'', 129)', 'PU004', 'an over-long queue name'),
               ('''mail'', job_key => ''''', 'PU004', 'an empty key'),
               ('''mail'', job_key => repeat(''x'', 513)', 'PU004', 'an over-long key'),
               ('''mail'', priority => 40000', 'PU004', 'priority 40000'),
               ('''mail'', priority => -40000', 'PU004', 'priority -40000'),
               ('''mail'', max_attempts => 0', 'PU004', 'max_attempts 0'),
               ('''mail'', max_attempts => -1', 'PU004', 'max_attempts -1'),
               ('''mail'', max_attempts => 40000', 'PU004', 'max_attempts 40000'),
               ('''mail'', run_at => ''infinity''', 'PU004', 'a time that never comes'),
               ('''mail'', run_at => ''-infinity''', 'PU004', 'a time that never was'),
               ('''mail'', run_at => ''tomorrowish''', '22007', 'a time that is none'),
               ('''mail'', flags => ''{a,NULL}''', 'PU004', 'a flag of NULL'),
               ('''mail'', ''{"a": ''', '22P02', 'malformed JSON'),
               ('''mail'', ''''', '22P02', 'an empty text as JSON'),
               ('''mail'', (SELECT doc FROM huge)', 'PU004', 'a payload of 100 MB'))
       AS c (arguments, code, what);
SELECT refuses(
  $$SELECT pulse.add_jobs(ARRAY[
      ('mail', (SELECT doc FROM huge), NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec])$$,
  'PU004', 'add_jobs refuses a payload of 100 MB');
SELECT refuses(
  $$SELECT pulse.add_jobs(ARRAY[
      ('mail', NULL, NULL, NULL, NULL, 'k', NULL, NULL)::pulse.job_spec,
      ('mail', NULL, NULL, NULL, NULL, 'l', 40000, NULL)::pulse.job_spec])$$,
  'PU004', 'add_jobs with one bad job adds none, keyed ones neither');
SELECT is((SELECT count(*)::int FROM pulse.job), 0, 'none of that added a job');
DELETE FROM pulse.job;

-- --- workers ------------------------------------------------------------------------------------

SELECT given_worker() AS ann \gset
SELECT given_worker('bob') AS bob \gset
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT id AS other, token AS foreign_token FROM given_claimed_job(:bob) \gset
SELECT refuses(replace('SELECT pulse.' || c.call, 'ANN', :'ann'), c.code, c.call || ' is refused')
  FROM (VALUES ('claim(NULL)', 'PU004'), ('claim(0)', 'PU002'), ('claim(-1)', 'PU002'),
               ('claim(9223372036854775807)', 'PU002'), ('claim(ANN, 0)', 'PU004'),
               ('claim(ANN, -1)', 'PU004'), ('claim(ANN, 2147483647)', 'PU004'),
               ('claim(ANN, 1, ''{mail,NULL}'')', 'PU004'),
               ('claim(ANN, 1, ''{{mail,ink}}'')', 'PU004'),
               ('claim(ANN, 1, NULL, ''{NULL}'')', 'PU004'),
               ('claim(ANN, 1, start_jobs => -1)', 'PU004'),
               ('claim_job(0, 1)', 'PU002'), ('claim_job(NULL, 1)', 'PU002'),
               ('attach_worker(0)', 'PU002'), ('deregister_worker(0)', 'PU002'),
               ('declare_lost(0, ''gone'')', 'PU002'), ('sweep(0)', 'PU004'),
               ('sweep(-5)', 'PU004'), ('sweep(dry_run => NULL)', 'PU004'),
               ('get_job(0)', 'PU005'), ('cancel_job(0)', 'PU005'),
               ('resume_queue(''nowhere'')', 'PU005'), ('resume_queue(NULL)', 'PU004'),
               ('held(NULL)', 'PU004'), ('delete_finished(older_than => ''-1 day'')', 'PU004'),
               ('delete_finished(older_than => ''1000000 years'')', 'PU004'),
               ('list_jobs(older_than => ''-1 s'')', 'PU004'),
               ('count_jobs(older_than => ''-1 s'')', 'PU004'),
               ('list_jobs(newer_than => ''1000000 years'')', 'PU004'),
               ('recoveries(newer_than => ''-1 s'')', 'PU004'),
               ('preview_operation(''retry'', ''{"newer_than": "-1 day"}'')', 'PU004'),
               ('preview_operation(NULL, ''{}'')', 'PU004'), ('cron_runs(NULL)', 'PU004'),
               ('cron_runs(''* * * * *'', after => ''infinity'')', 'PU004'),
               ('cron_runs(''* * * * *'', after => ''-infinity'')', 'PU004'),
               ('next_runs(''none'', after => ''294276-12-31 23:59Z'')', 'PU004'),
               ('load_crontab(''c'', ''[1]'')', 'PU004'),
               ('load_crontab(''c'', ''[null]'')', 'PU004'),
               ('load_crontab(''c'', ''[{"bogus": 1}]'')', 'PU004'),
               ('load_crontab(''c'', ''[{"name": "n", "priority": "x"}]'')', 'PU004'),
               ('load_crontab(''c'', ''[{"name": "n", "priority": 99999999999}]'')', 'PU004'),
               ('load_crontab(''c'', ''[{"name": "n", "fill": "soon"}]'')', 'PU004'),
               ('held_job(NULL, 1)', 'PU001'), ('next_runs(''none'')', 'PU005')) AS c (call, code);
SELECT throws_ok('SELECT pulse.' || c.call, 'PU004', c.what || ' must not be null',
                 c.call || ' names the NULL')
  FROM (VALUES ('sweep(NULL)', 'max_jobs'), ('recoveries(NULL)', 'max_rows'),
               ('cron_runs(''* * * * *'', max_runs => NULL)', 'max_runs'),
               ('next_runs(''none'', NULL)', 'max_runs'), ('run_operation(1, NULL)', 'max_jobs'),
               ('delete_finished(ARRAY[1], max_jobs => NULL)', 'max_jobs'),
               ('list_jobs(max_rows => NULL)', 'max_rows'),
               ('list_ended_jobs(max_rows => NULL)', 'max_rows'),
               ('list_failures(max_rows => NULL)', 'max_rows'),
               ('list_failures(max_checked => NULL)', 'max_checked'),
               ('list_flows(max_rows => NULL)', 'max_rows'),
               ('list_unique_keys(max_rows => NULL)', 'max_rows'),
               ('flow_jobs(1, max_rows => NULL)', 'max_rows'),
               ('stats(NULL)', 'max_rows')) AS c (call, what);

-- A token that is stale, foreign, unknown or NULL; a job that is unknown or NULL.
SELECT refuses(format('SELECT pulse.' || f.call, a.job, a.token), 'PU001',
               split_part(f.call, '(', 1) || ' refuses ' || a.what)
  FROM (VALUES ('complete(%s, %s)'), ('fail(%s, %s, ''boom'')'), ('snooze(%s, %s, ''1 s'')'),
               ('progress(%s, %s)'), ('fence(%s, %s)')) AS f (call),
       (VALUES (:'job', (:token - 1)::text, 'a token that is no claim''s'),
               (:'job', :'foreign_token', 'the token of another job'),
               (:'job', '0', 'a token of 0'), (:'job', '-1', 'a negative token'),
               (:'job', 'NULL', 'a token of NULL'), ('0', :'token', 'an unknown job'),
               ('NULL', :'token', 'a job of NULL')) AS a (job, token, what);
SELECT refuses(format('SELECT pulse.' || c.call, :job, :token), c.code,
               regexp_replace(c.call, '%s, %s, ', '') || ' is refused')
  FROM (VALUES ('fail(%s, %s, NULL)', 'PU004'),
               ('fail(%s, %s, ''boom'', retry_in => ''-1 s'')', 'PU004'),
               ('fail(%s, %s, ''boom'', retry_in => ''1000 years'')', 'PU004'),
               ('fail(%s, %s, ''boom'', payload => ''{'')', '22P02'),
               ('snooze(%s, %s, NULL)', 'PU004'), ('snooze(%s, %s, ''-1 s'')', 'PU004'),
               ('snooze(%s, %s, ''1000 years'')', 'PU004'),
               ('progress(%s, %s, fraction => 2)', 'PU004'),
               ('complete(%s, %s, ''{'')', '22P02'),
               ('fail(%s, %s, ''boom'', payload => (SELECT doc FROM huge))', 'PU004'),
               ('progress(%s, %s, checkpoint => (SELECT doc FROM huge))', 'PU004'),
               ('snooze(%s, %s, ''1 s'', (SELECT doc FROM huge))', 'PU004'),
               ('complete(%s, %s, (SELECT doc FROM huge))', 'PU004')) AS c (call, code);

-- --- plural calls -------------------------------------------------------------------------------

SELECT refuses(format('SELECT * FROM pulse.' || c.call, :job, :token), 'PU004',
               split_part(c.call, '(', 1) || ' refuses ' || c.what)
  FROM (VALUES ('complete_many(ARRAY[%s], ARRAY[%s, 0])', 'more tokens than jobs'),
               ('complete_many(ARRAY[%s, 0], ARRAY[%s])', 'more jobs than tokens'),
               ('complete_many(ARRAY[%s], ARRAY[%s], ''{}'')', 'too few results'),
               ('complete_many(ARRAY[%s], ARRAY[%s], ARRAY[NULL, NULL]::json[])',
                'too many results'),
               ('fail_many(ARRAY[%s], ARRAY[%s, 0], ARRAY[''a''])', 'more tokens than jobs'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''a'', ''b''])', 'too many errors'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ''{}'')', 'too few errors'),
               ('fail_many(ARRAY[%s], ARRAY[%s], NULL)', 'errors of NULL'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[NULL])', 'an error of NULL'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''a''], ''{}'')', 'too few retries'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''a''], retry_in => ''{}'')',
                'too few delays'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''a''], payloads => ''{}'')',
                'too few payloads'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''a''], retry_in => ''{-1 s}'')',
                'a negative delay'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''a''],
                  payloads => ARRAY(SELECT doc FROM huge))', 'a payload of 100 MB'),
               ('complete_many(ARRAY[%s], ARRAY[%s], ARRAY(SELECT doc FROM huge))',
                'a result of 100 MB'),
               ('release(ARRAY[%s], ARRAY[%s, 0])', 'more tokens than jobs'),
               ('release(ARRAY[%s, 0], ARRAY[%s])', 'more jobs than tokens'))
       AS c (call, what);
SELECT refuses(format('SELECT * FROM pulse.' || f.call, a.jobs, a.tokens), 'PU004',
               split_part(f.call, '(', 1) || ' refuses ' || a.what)
  FROM (VALUES ('complete_many(%s, %s)'), ('release(%s, %s)'),
               ('fail_many(%s, %s, ARRAY[''boom''])'),
               ('fail_late(%s, %s, ARRAY[''late''], ARRAY[''timeout''])')) AS f (call),
       (VALUES ('NULL', 'NULL', 'NULL instead of jobs'),
               ('ARRAY[NULL]::bigint[]', 'ARRAY[1]', 'a job of NULL'),
               ('ARRAY[1]', 'ARRAY[NULL]::bigint[]', 'a token of NULL'),
               ('ARRAY[[1]]', 'ARRAY[1]', 'jobs in two dimensions')) AS a (jobs, tokens, what);
SELECT throws_like(
  'SELECT * FROM pulse.fail_late(ARRAY[1], ARRAY[1], ARRAY[''late''], ARRAY[''noon''])',
  'cause is noon, not timeout, stall, silence, crash or exit', 'a cause is named that is none');
CREATE FUNCTION outcomes(call text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  answer text;
BEGIN
  EXECUTE 'SELECT string_agg(DISTINCT outcome, '', '') FROM pulse.' || call INTO answer;
  RETURN answer;
END $$;
CREATE TEMP TABLE before AS SELECT contents() AS contents;
SELECT is(outcomes(format(f.call, a.job, a.token)), 'stale',
          split_part(f.call, '(', 1) || ' answers stale to ' || a.what)
  FROM (VALUES ('complete_many(ARRAY[%s], ARRAY[%s])'), ('release(ARRAY[%s], ARRAY[%s])'),
               ('fail_many(ARRAY[%s], ARRAY[%s], ARRAY[''boom''])')) AS f (call),
       (VALUES (:'job', (:token - 1)::text, 'a token that is no claim''s'),
               (:'job', :'foreign_token', 'the token of another job'),
               (:'job', '0', 'a token of 0'), ('0', :'token', 'an unknown job'),
               ('-1', '-1', 'nonsense')) AS a (job, token, what);
SELECT is(contents(), before.contents, 'and none of that changed anything') FROM before;

-- --- a role without rights ----------------------------------------------------------------------

CREATE ROLE pulse_stranger;
SELECT refuses(format('SELECT pulse.' || c.call, :job, :token), '42501',
               split_part(c.call, '(', 1) || ' is refused to a role without rights',
               'pulse_stranger')
  FROM (VALUES ('add_job(''mail'')'), ('claim(1)'), ('complete(%s, %s)'), ('sweep()'),
               ('verify()')) AS c (call);

-- --- after all that -----------------------------------------------------------------------------

SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :job, :token),
  'the job is still its owner''s');
SELECT lives_ok(format('SELECT pulse.complete(%s, %s)', :other, :foreign_token), 'so is the other');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
