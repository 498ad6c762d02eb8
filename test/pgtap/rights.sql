-- What a role learns or causes through arguments that name something of another role: its key, its
-- job, its function.
\ir support/setup.psql
SELECT plan(26);

CREATE ROLE pulse_p;
CREATE ROLE pulse_w;
CREATE ROLE pulse_o;
SELECT pulse.grant_producer('pulse_p'), pulse.grant_worker('pulse_w'),
       pulse.grant_operator('pulse_o') \g /dev/null
SELECT given_worker() AS ann \gset

-- --- a producer and what others wrote into its job -----------------------------------

SELECT id AS job, token FROM given_claimed_job(:ann, job_key => 'k') \gset
UPDATE pulse.job SET added_by = 'pulse_p', payload = '["secret"]', checkpoint = '["secret"]',
       message = 'secret', last_error = 'secret', recovered = 'secret' WHERE id = :job;
SET LOCAL ROLE pulse_p;
SELECT id AS found, pulse_job::text AS told, worker_id IS NULL AND token IS NULL AS is_masked
  FROM pulse.add_job('ink', job_key => 'k', job_key_mode => 'unsafe_dedupe') AS pulse_job \gset
RESET ROLE;
SELECT is(:found::bigint, :job::bigint, 'unsafe_dedupe tells a producer which job has the key');
SELECT unalike(:'told'::text, '%secret%', 'but nothing that its producer or its worker wrote');
SELECT ok(:'is_masked', 'and neither its worker nor its token');
SELECT is((SELECT payload::text FROM pulse.job WHERE id = :job), '["secret"]',
  'the job itself keeps it all');
SELECT ok(EXISTS (SELECT FROM pulse.add_job('ink', job_key => 'k',
                                            job_key_mode => 'unsafe_dedupe') AS j
                   WHERE j.token = :token AND j.payload::text = '["secret"]'),
  'a role that may read the table gets the whole row');
SET LOCAL ROLE pulse_p;
SELECT r::text AS told FROM pulse.remove_job('k') AS r \gset
RESET ROLE;
SELECT unalike(:'told'::text, '%secret%', 'remove_job tells no more of a running job');
DELETE FROM pulse.job;

SELECT id AS job FROM pulse.add_job('ink', '["secret"]', job_key => 'k') \gset
UPDATE pulse.job SET added_by = 'pulse_p' WHERE id = :job;
SET LOCAL ROLE pulse_p;
SELECT j.id AS found, j.payload::text AS told, j.flags::text AS flags
  FROM pulse.add_job('ink', '["mine"]', job_key => 'k', flags => '{f}') AS j \gset
RESET ROLE;
SELECT is(:found::bigint, :job::bigint, 'a producer that replaces a waiting job');
SELECT is(:'told'::text, '["mine"]', 'sees its own payload');
SELECT is(:'flags'::text, '{f}', 'and its own flags');
SELECT is((SELECT payload::text FROM pulse.job WHERE id = :job), '["secret", "mine"]',
  'the job has both');
SET LOCAL ROLE pulse_p;
SELECT j.payload::text AS told
  FROM pulse.add_jobs('{"(ink,\"[\\\"mine\\\"]\",,,,k,,)"}') AS j \gset
SELECT r.id AS found, r::text AS removed FROM pulse.remove_job('k') AS r \gset
RESET ROLE;
SELECT is(:'told'::text, '["mine"]', 'so does add_jobs');
SELECT is(:found::bigint, :job::bigint, 'a producer removes a waiting job by its key');
SELECT unalike(:'removed'::text, '%secret%', 'without seeing its payload');
DELETE FROM pulse.job;

-- --- a scheduler and another scheduler's payload ------------------------------------------------

CREATE ROLE pulse_s;
SELECT pulse.grant_scheduler('pulse_s') \g /dev/null
SELECT pulse.schedule('other''s', 'ink', '@daily', payload => '["secret"]'),
       pulse.schedule('keyed', 'ink', '@daily', payload => '["secret"]', job_key => 'scheduled')
 \g /dev/null
SET LOCAL ROLE pulse_s;
SELECT string_agg(a.told, ' ') AS told FROM (
  SELECT s::text FROM pulse.pause_schedule('other''s') AS s UNION ALL
  SELECT s::text FROM pulse.resume_schedule('other''s') AS s UNION ALL
  SELECT j::text FROM pulse.run_schedule_now('other''s') AS j UNION ALL
  SELECT j::text FROM pulse.run_schedule_now('keyed') AS j) AS a (told) \gset
RESET ROLE;
SELECT alike(:'told'::text, '%ink%', 'a scheduler runs the schedules of another');
SELECT unalike(:'told'::text, '%secret%', 'without seeing a payload of theirs');
SELECT is((SELECT string_agg(j.payload::text, ' ') FROM pulse.job AS j), '["secret"] ["secret"]',
  'which their jobs have');
SELECT alike((SELECT s::text FROM pulse.pause_schedule('other''s') AS s), '%secret%',
  'a role that may read the table sees it');
DELETE FROM pulse.job;
DELETE FROM pulse.schedule;

-- --- an operator's function and a worker's rights -----------------------------------------------

CREATE SCHEMA mine AUTHORIZATION pulse_o;
GRANT USAGE ON SCHEMA mine TO PUBLIC;
SET LOCAL ROLE pulse_o;
CREATE FUNCTION mine.take_over(payload json) RETURNS text LANGUAGE sql
  AS $$ SELECT current_user::text $$;
SELECT pulse.set_task('evil', handler => 'mine.take_over(json)') \g /dev/null
RESET ROLE;
SELECT is(pulse.handler_tasks(), '{}', 'a superuser serves no task with an operator''s function');
SET LOCAL ROLE pulse_w;
SELECT pulse.handler_tasks()::text AS tasks \gset
RESET ROLE;
SELECT is(:'tasks'::text, '{}', 'nor does a worker''s role');
SELECT (pulse.add_job('evil')).id AS job \gset
SELECT token FROM pulse.claim(:ann) \gset
SELECT is((refusal_of(format('SELECT pulse.perform_job(%s, %s)', :job, :token))).code, '42501',
  'which is not called in a claim either');
SELECT is((refusal_of(format('SELECT pulse.call_handler(pulse.held_job(%s, %s))', :job, :token),
                     'pulse_w')).code,
  '42501', 'nor called without ending the job');
SET LOCAL ROLE pulse_o;
ALTER FUNCTION mine.take_over SECURITY DEFINER;
RESET ROLE;
SELECT is(pulse.handler_tasks(), '{evil}', 'a function with the rights of its owner is served');
SAVEPOINT performed;
SET LOCAL pulse.keep_completed = -1;
SELECT pulse.perform_job(:job, :token) \g /dev/null
SELECT is((SELECT result::text FROM pulse.finished_job WHERE id = :job), '"pulse_o"',
  'and runs with them');
ROLLBACK TO performed;
ALTER FUNCTION mine.take_over SECURITY INVOKER;
GRANT pulse_w TO pulse_o;
SET LOCAL ROLE pulse_w;
SELECT pulse.handler_tasks()::text AS tasks \gset
RESET ROLE;
SELECT is(:'tasks'::text, '{evil}', 'as is that of a role which may act as the worker''s');
ALTER FUNCTION mine.take_over OWNER TO CURRENT_USER;
SELECT is(pulse.handler_tasks(), '{evil}', 'and that of the owner of pg_pulse');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
