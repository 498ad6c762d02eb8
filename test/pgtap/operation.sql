-- sql/operation*.sql: what operators do to many jobs at once, in steps, and its undo.
\ir support/setup.psql
SELECT plan(148);

SELECT expect_function('preview_operation',
  'action text, filter json, OUT jobs bigint, OUT is_exact boolean, OUT sample_ids bigint[]',
  'record', 'volatile', 'definer');
SELECT expect_function('start_operation',
  'action text, filter json, arguments json DEFAULT NULL::json, actor text DEFAULT NULL::text',
  'pulse.operation', 'volatile', 'definer');
SELECT expect_function('run_operation', 'operation_id bigint, max_jobs integer DEFAULT 1000',
  'pulse.operation', 'volatile', 'definer');
SELECT expect_function('stop_operation', 'operation_id bigint', 'pulse.operation', 'volatile',
  'definer');
SELECT expect_function('undo_operation', 'operation_id bigint, actor text DEFAULT NULL::text',
  'pulse.operation', 'volatile', 'definer');

-- Runs an operation to its end: what it changed and left alone.
CREATE FUNCTION run(id bigint) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  o pulse.operation;
BEGIN
  LOOP
    o := pulse.run_operation(id, 2);
    EXIT WHEN o.state <> 'running';
  END LOOP;
  RETURN format('%s %s %s', o.state, o.changed, o.skipped);
END $$;
CREATE FUNCTION run(action text, filter json, arguments json = NULL) RETURNS text
  LANGUAGE sql AS $$ SELECT run((pulse.start_operation(action, filter, arguments)).id) $$;
CREATE FUNCTION undo_last() RETURNS text
  LANGUAGE sql AS $$
  SELECT run((pulse.undo_operation((SELECT max(id) FROM pulse.operation))).id)
$$;
CREATE FUNCTION previewed(action text, filter json) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('%s %s', p.jobs, p.is_exact) FROM pulse.preview_operation(action, filter) AS p
$$;
-- Every job with all that an operation must bring back, but for what tells of the change itself.
CREATE FUNCTION everything() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(to_jsonb(j)::text, E'\n' ORDER BY j.id) FROM (
    SELECT id, to_jsonb(l) - '{revision,updated_at}'::text[] AS row FROM pulse.job AS l
    UNION ALL
    SELECT id, to_jsonb(f) - '{revision,cancelled_by}'::text[] FROM pulse.finished_job AS f) AS j
$$;
DELETE FROM pulse.operation;
DELETE FROM pulse.operation_job;
SELECT given_worker() AS ann \gset

-- --- filters ------------------------------------------------------------------------------------

SELECT given_claimed_job(:ann, 'mail') \g /dev/null
SELECT given_job('mail'), given_job('mail', 'post'), given_job('ink', job_key => 'k'),
       pulse.add_job('ink', run_at => now() + interval '1 h') \g /dev/null
SELECT is(previewed('cancel', f::json), expected, f || ' finds its jobs') FROM (VALUES
  ('{}', '4 t'), ('{"task": "mail"}', '2 t'), ('{"queue": "post"}', '1 t'), ('{"key": "k"}', '1 t'),
  ('{"states": ["parked"]}', '1 t'), ('{"states": "running"}', '1 t'),
  ('{"states": ["ready", "running"], "task": "mail"}', '2 t'), ('{"ids": []}', '0 t'),
  ('{"older_than": "1 h"}', '0 t'), ('{"newer_than": "1 h"}', '4 t'),
  ('{"task": "ink", "queue": "post"}', '0 t'), ('{"error": "x"}', '0 t')) AS f (f, expected);
SELECT is((SELECT sample_ids FROM pulse.preview_operation('cancel', '{"task": "ink"}')),
  ARRAY(SELECT id FROM pulse.job WHERE identifier = 'ink' ORDER BY id), 'and shows the first');
SELECT is(previewed('cancel', format('{"ids": ["%s"]}', (SELECT max(id) FROM pulse.job))::json),
  '1 t', 'ids may be texts, which every language keeps');
SELECT results_eq('SELECT action, states::text FROM pulse.operation_actions()',
  $$VALUES ('retry', '{failed,quarantined,cancelled,expired}'),
           ('cancel', '{ready,parked,running}'),
           ('reschedule', '{ready,parked}'), ('fail', '{ready,parked}')$$,
  'each action tells which states of jobs it may change');
SELECT refuses(format('SELECT pulse.start_operation(%L, %L)', action, filter), 'PU004', what)
  FROM (VALUES ('delete', '{}', 'an unknown action is refused'), ('cancel', '[]', 'no object'),
    ('cancel', '{"tasks": "mail"}', 'a key that would be ignored'), ('cancel', NULL, 'no filter'),
    ('cancel', '{"states": ["failed"]}', 'states that the action does not change'),
    ('retry', '{"states": ["completed"]}', 'a retry of what has completed'),
    ('retry', '{"states": ["lost"]}', 'an unknown state'), ('retry', '{"states": []}', 'none'),
    ('cancel', '{"ids": ["one"]}', 'an id that is none'), ('cancel', '{"older_than": "x"}', 'x'),
    ('cancel', '{"task": null}', 'a condition of null'), ('cancel', '{"ids": null}', 'no ids'),
    ('cancel', '{"task": ["mail"]}', 'a list of tasks'), ('cancel', '{"ids": true}', 'true'),
    ('cancel', '{"states": {}}', 'an object of states'),
    (NULL, '{}', 'no action')) AS c (action, filter, what);
SELECT throws_ok($$SELECT pulse.start_operation('cancel', '{"task": "\u0000"}')$$, 'PU004',
  'filter cannot be read', 'a filter without text is not said to have a member of no name');
SELECT refuses(format('SELECT pulse.start_operation(%L, ''{}'', %L)', action, arguments), 'PU004',
               format('%s takes no %s', action, arguments))
  FROM (VALUES ('cancel', '{"error": "x"}'), ('retry', '{"run_at": "now"}'),
    ('reschedule', '{"run_at": "soon"}'), ('reschedule', '{"run_at": "infinity"}'),
    ('reschedule', '{"priority": 40000}'), ('reschedule', '{}'),
    ('reschedule', '{"priority": null}')) AS c (action, arguments);
SELECT refuses('SELECT pulse.run_operation(0)', 'PU005', 'an unknown operation does not run');
SELECT refuses(format('SELECT pulse.run_operation(0, %s)', n), 'PU004', n || ' jobs are no step')
  FROM unnest('{0,10001}'::int[]) AS n;
SELECT is_empty('SELECT * FROM pulse.operation', 'a refused operation leaves no trace');

-- --- cancel -------------------------------------------------------------------------------------

SELECT everything() AS before \gset
SELECT is(run('cancel', '{"states": ["ready", "parked", "running"]}', '{"reason": "why"}'),
  'done 5 0', 'all are cancelled');
SELECT answers(
  'SELECT count(*), min(last_error) FROM pulse.finished_job WHERE state = ''cancelled''',
  ROW(4, 'why'), 'those that wait at once');
SELECT answers('SELECT state, cancel_reason FROM pulse.job', ROW('running', 'why'),
  'the one that runs is told');
SELECT is(undo_last(), 'done 5 0', 'all come back');
SELECT is(everything(), :'before', 'as they were');
SELECT is(run('cancel', '{"task": "ink"}'), 'done 2 0', 'some are cancelled');
SELECT pulse.add_job('other', job_key => 'k') \g /dev/null
SELECT is(undo_last(), 'done 1 1', 'one whose key another job has now does not come back');
SELECT answers($$SELECT action, actor, role, changed, skipped, undoes IS NOT NULL, undone_by
                   FROM pulse.operations ORDER BY id DESC LIMIT 1$$,
  ROW('undo', NULL::text, session_user, 1, 1, true, NULL::bigint), 'the record says so');
DELETE FROM pulse.job;
DELETE FROM pulse.finished_job;

-- --- jobs that wait for others ------------------------------------------------------------------

SELECT given_job('first') AS parent \gset
SELECT (pulse.add_job_after(ARRAY[:parent], 'second')).id AS child \gset
SELECT everything() AS before, (SELECT lines('SELECT * FROM pulse.dependency')) AS waits \gset
SELECT is(run('cancel', '{"task": "second"}'), 'done 1 0', 'a job that waits is cancelled');
SELECT is(rows_of('dependency')::int, 0, 'and waits no more');
SELECT is(undo_last(), 'done 1 0', 'it comes back');
SELECT is(everything(), :'before', 'as it was');
SELECT is(lines('SELECT * FROM pulse.dependency'), :'waits', 'and waits for the same job');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
DELETE FROM pulse.job;
DELETE FROM pulse.dependency;

-- --- retry --------------------------------------------------------------------------------------

SELECT pulse.fail(c.id, c.token, 'Error ' || n, retry => false)
  FROM generate_series(1, 5) AS n,
       LATERAL given_claimed_job(:ann, 'mail', CASE WHEN n > 3 THEN 'q' || n END) AS c \g /dev/null
SELECT min(id) AS first, max(id) AS last FROM pulse.finished_job \gset
SELECT everything() AS before \gset
SELECT is(previewed('retry', '{"error": "ERROR 3"}'), '1 t', 'errors are compared in any case');
SELECT id AS op FROM pulse.start_operation('retry', '{}', actor => 'token ci') \gset
SELECT answers(format('SELECT state, changed, checked_to FROM pulse.run_operation(%s, 2)', :op),
  ROW('running', 2, :first + 1), 'a step changes as many as it may, and says how far it came');
SELECT is(run(:op), 'done 5 0', 'the next go on from there');
SELECT is(run(:op), 'done 5 0', 'and nothing is done twice');
SELECT answers('SELECT count(*), sum(attempts) FROM pulse.job', ROW(5, 0), 'all are live again');
SELECT is((SELECT actor FROM pulse.operations WHERE id = :op), 'token ci', 'the actor is noted');
SELECT pulse.fail(c.id, c.token, 'anew', retry => false)
  FROM pulse.claim_job(:ann, :first) AS a, LATERAL (SELECT (a.job).*) AS c \g /dev/null
SELECT pulse.snooze(c.id, c.token, '1 s')
  FROM pulse.claim_job(:ann, :first + 1) AS a, LATERAL (SELECT (a.job).*) AS c \g /dev/null
SELECT pulse.release(ARRAY[c.id], ARRAY[c.token])
  FROM pulse.claim_job(:ann, :first + 2) AS a, LATERAL (SELECT (a.job).*) AS c \g /dev/null
SELECT is(undo_last(), 'done 3 2', 'undo leaves alone what ran, and brings back what did not');
SELECT answers(format('SELECT state, last_error FROM pulse.finished_job WHERE id = %s', :first),
  ROW('failed', 'anew'), 'the end that came since stands');
SELECT is((SELECT array_agg(id) FROM pulse.job), ARRAY[:first + 1]::bigint[],
  'so does a snooze');
SELECT is((pulse.undo_operation(:op)).id, (SELECT max(id) FROM pulse.operation),
  'a second undo is the first');
SELECT refuses('SELECT pulse.undo_operation(max(id)) FROM pulse.operation', 'PU004',
  'an undo is not undone');
DELETE FROM pulse.job;
UPDATE pulse.finished_job SET last_error = 'x' WHERE id = :first;
SELECT everything() AS before \gset
SELECT is(run('retry', '{"states": ["failed", "quarantined", "cancelled", "expired"]}'),
  'done 4 0', 'four are retried');
SELECT is(undo_last(), 'done 4 0', 'and end again');
SELECT is(everything(), :'before', 'as they had ended');

-- --- fail and reschedule ------------------------------------------------------------------------

DELETE FROM pulse.finished_job;
SELECT given_job('mail', 'post', job_key => 'k') \g /dev/null
SELECT pulse.add_job('mail', max_attempts => 3, priority => 4) \g /dev/null
SELECT everything() AS before \gset
SELECT is(run('fail', '{}', '{"error": "no"}'), 'done 2 0', 'waiting jobs are failed');
SELECT answers(
  'SELECT count(*) FROM pulse.finished_job WHERE state = ''failed'' AND last_error = ''no''',
  ROW(2), 'with the error');
SELECT is(undo_last(), 'done 2 0', 'they come back');
SELECT is(everything(), :'before', 'as they were');
SELECT is(run('reschedule', '{}', '{"run_at": "2100-01-01", "priority": 7, "attempts": 4}'),
  'done 1 1', 'jobs are rescheduled that have an attempt left');
SELECT answers(
  'SELECT run_at = ''2100-01-01'', priority, attempts FROM pulse.job WHERE priority = 7',
  ROW(true, 7, 4), 'to what was asked for');
SELECT is(undo_last(), 'done 1 0', 'and back');
SELECT is(everything(), :'before', 'as they were, again');

-- --- stop ---------------------------------------------------------------------------------------

SELECT given_job('later') FROM generate_series(1, 4) \g /dev/null
SELECT id AS op FROM pulse.start_operation('cancel', '{"task": "later"}') \gset
SELECT given_job('later') \g /dev/null
SELECT pulse.run_operation(:op, 3) \g /dev/null
SELECT is((pulse.stop_operation(:op)).state, 'stopped', 'an operation is stopped');
SELECT is((pulse.run_operation(:op)).changed, 3::bigint, 'and makes no step more');
SELECT is((pulse.stop_operation(:op)).state, 'stopped', 'once');
SELECT is(undo_last(), 'done 3 0', 'what it did is undone');
SELECT id AS op FROM pulse.start_operation('cancel', '{"task": "later"}') \gset
SELECT given_job('later') \g /dev/null
SELECT is(run(:op), 'done 5 0', 'a job that is added later is left alone');

-- --- notes --------------------------------------------------------------------------------------

SELECT expect_function('note_operation', 'action text, subject json, actor text DEFAULT NULL::text',
  'bigint', 'volatile', 'definer');
SELECT pulse.note_operation('pause queue', '{"queue": "mail"}', 'ann') AS op \gset
SELECT answers('SELECT o.id, o.action, o.actor, o.state, o.changed, o.subject ->> ''queue''
    FROM pulse.operations AS o WHERE o.id = ' || :op,
  ROW(:op::bigint, 'pause queue', 'ann', 'done', 0::bigint, 'mail'), 'a note is an operation');
SELECT is((pulse.run_operation(:op)).state, 'done', 'that has no step');
SELECT is((pulse.run_operation((pulse.start_operation('retry', '{"task": "ink", "queue": "q",
    "states": ["failed", "expired"], "error": "secret", "key": "k"}')).id)).state, 'done', 'done');
SELECT is((SELECT o.subject::jsonb FROM pulse.operations AS o ORDER BY o.id DESC LIMIT 1),
  '{"states": "failed, expired", "task": "ink", "queue": "q", "key": "a key", "error": "an error"}',
  'of an operation on jobs the subject is what everybody may read of the filter');
SELECT pulse.start_operation('cancel', '{"older_than": "1 day"}') \g /dev/null
SELECT is((SELECT o.subject ->> 'added' FROM pulse.operations AS o ORDER BY o.id DESC LIMIT 1),
  'a time of the add', 'an observer learns that the filter has a time');
SELECT id AS of_all FROM pulse.start_operation('retry', '{}') \gset
SELECT is((SELECT o.subject::jsonb FROM pulse.operations AS o WHERE o.id = :of_all),
  '{"jobs": "all"}', 'or that it is of all jobs');
SELECT throws_ok(format('SELECT pulse.undo_operation(%s)', :op), 'PU004',
  format('operation %s is no change of jobs', :op), 'and it cannot be undone');
SELECT throws_ok($$SELECT pulse.note_operation('retry', '{}')$$, 'PU004',
  '"retry" is an operation on jobs', 'it is none of those on jobs');
SELECT throws_ok($$SELECT pulse.note_operation('', '{}')$$, 'PU004', NULL, 'it has a name');
SELECT throws_ok($$SELECT pulse.note_operation('x', '[]')$$, 'PU004',
  'subject is no json object of at most 4096 bytes', 'and an object');
SELECT throws_ok($$SELECT pulse.note_operation('x', json_build_object('a', repeat('x', 4096)))$$,
  'PU004', 'subject is no json object of at most 4096 bytes', 'that is short');

-- --- retention ----------------------------------------------------------------------------------

SELECT pulse_internal.prune(1000) \g /dev/null
SELECT cmp_ok(rows_of('operation')::int, '>', 5, 'operations are kept');
SELECT travel('31 d');
SELECT is(pulse_internal.prune_operations(pulse.now() - interval '30 d', 2), 2,
  'a step deletes no more than its share');
SELECT pulse_internal.prune(1000) FROM generate_series(1, 5) \g /dev/null
SELECT is(rows_of('operation') + rows_of('operation_job'), 0::bigint, 'for as long as attempts');

-- --- what once stopped them ---------------------------------------------------------------------

SELECT travel('0');
DELETE FROM pulse.job;
DELETE FROM pulse.finished_job;
SELECT (pulse.permanently_fail_jobs(ARRAY[given_job('twin', job_key => 'one key')])).id AS twin
  FROM generate_series(1, 2) \g /dev/null
SELECT is(run('retry', '{"task": "twin"}'), 'done 1 1',
  'of two failed jobs with one key one is retried, and the other is left alone');
DELETE FROM pulse.job;
DELETE FROM pulse.finished_job;
SELECT pulse.add_job('mail', '{"a": "\u0000", "b": 1e200000}') FROM generate_series(1, 2)
  \g /dev/null
SELECT is(run('fail', '{"task": "mail"}'), 'done 2 0',
  'documents that no function reads keep no job back');
SELECT is(run('retry', '{"task": "mail"}'), 'done 2 0', 'nor as they run again');
SELECT is(run('reschedule', '{"task": "mail"}', '{"priority": 3}'), 'done 2 0', 'or later');
SET datestyle = 'ISO, DMY';
SET timezone = 'Asia/Kathmandu';
SELECT id AS op FROM pulse.start_operation('reschedule', '{"task": "mail"}',
                                           '{"run_at": "03/04/2030 10:00"}') \gset
RESET datestyle;
RESET timezone;
SELECT pulse.run_operation(:op) \g /dev/null
SELECT is((SELECT DISTINCT run_at FROM pulse.job), timestamptz '2030-04-03 04:15Z',
  'a time is read as the session read it that started the operation');

SELECT pulse.cancel_job(given_job('by id')) \g /dev/null
SELECT is(run('retry', '{"task": "by id"}'), 'done 0 0', 'a filter leaves cancelled jobs alone');
SELECT is(run('retry', json_build_object('ids', ARRAY(SELECT id FROM pulse.finished_job
                                                      WHERE identifier = 'by id'))),
  'done 1 0', 'one that is named by its id runs again');
SELECT throws_ok($$SELECT pulse.start_operation('cancel', '{"states": ["running", "failed"]}')$$,
  'PU004', 'the action cancel changes no failed jobs', 'and only what it does not change is told');

SELECT given_job('above', job_key => 'a') AS above \gset
SELECT (pulse.add_job_after(ARRAY[:above], 'below')).id AS below \gset
SELECT run('cancel', json_build_object('ids', ARRAY[:below])) \g /dev/null
SELECT pulse.add_job_after(ARRAY[:below], 'above', job_key => 'a') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is(undo_last(), 'done 0 1',
  'a job that now waits for the cancelled one is not made to wait for itself');

-- --- errors too long to be read all at once -----------------------------------------------------

SELECT given_claimed_job(:ann, 'long'), given_claimed_job(:ann, 'long'),
       given_claimed_job(:ann, 'long') \g /dev/null
SELECT pulse.fail(id, token, 'too long: ' || repeat('x', 5000000), retry => false) FROM pulse.job
 WHERE identifier = 'long' \g /dev/null
SELECT is(previewed('retry', '{"error": "TOO LONG"}'), '1 f',
  'a question reads no more errors than have 8 MB, and says that there may be more');
SELECT is(previewed('retry', '{"task": "long"}'), '3 t', 'nor does it where it need not read them');
SELECT is((SELECT array_agg(l.identifier ORDER BY l.id DESC)
             FROM pulse.list_jobs(error => 'too long') AS l), '{long,NULL}',
  'a page ends there too, with the id to go on from');
SELECT is((SELECT count(*)::int FROM pulse.list_jobs(error => 'too long', before_id => (
             SELECT min(l.id) FROM pulse.list_jobs(error => 'too long') AS l)) AS l
            WHERE l.identifier = 'long'), 1, 'and the next page begins there');
SELECT is(run('retry', '{"error": "too long"}'), 'done 3 0', 'an operation comes to all of them');

SELECT * FROM finish();
ROLLBACK;
