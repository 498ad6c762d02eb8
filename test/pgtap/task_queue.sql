-- sql/job/task.sql: the queue that a task gives jobs which are added without one.
\ir support/setup.psql
SELECT plan(39);

-- The queue of a job of task 'send' with this payload.
CREATE FUNCTION queue_of(payload json) RETURNS text
  LANGUAGE sql AS $$ SELECT (pulse.add_job('send', payload)).queue_name $$;

-- --- what is stored -----------------------------------------------------------------------------

SELECT is((pulse.set_task('send', queue => 'mail/{tenant}')).queue, 'mail/{tenant}',
  'a task has a queue');
SELECT is((pulse.set_task('send', max_attempts => 3)).queue, 'mail/{tenant}',
  'NULL leaves it as it is');
SELECT is((pulse.set_task('send', queue => '')).queue, NULL, 'an empty text takes it away');
SELECT is((pulse.set_task('new', queue => '')).queue, NULL, 'also from a new task');
SELECT refuses(format('SELECT pulse.set_task(''send'', queue => %L)', q.queue), 'PU004',
               format('no task has the queue %L', q.queue))
  FROM (VALUES ('mail/*'), ('{'), ('}'), ('{}'), ('a{b'), ('{a{b}}'), ('a/b/c/d/{e}'),
               (repeat('x', 129))) AS q (queue);

-- --- which queue a job gets ---------------------------------------------------------------------

SELECT is(queue_of('{"tenant": 1}'), NULL, 'without a queue of its task a job has none');
SELECT pulse.set_task('send', queue => 'mail') \g /dev/null
SELECT is(queue_of(NULL), 'mail', 'a queue may be the same for all jobs');
SELECT is((pulse.add_job('send', queue_name => 'own')).queue_name, 'own',
  'a job that names its queue has that');
SELECT is((pulse.add_job('other')).queue_name, NULL, 'jobs of other tasks are left alone');
SELECT pulse.set_task('send', queue => 'mail/{tenant}') \g /dev/null
SELECT is(queue_of(q.payload::json), q.queue, q.what)
  FROM (VALUES ('{"tenant": "ada"}', 'mail/ada', 'a member may be a string'),
               ('{"tenant": 17}', 'mail/17', 'or a number'),
               ('{"tenant": -1.50}', 'mail/-1.50', 'as it is written'),
               ('{"tenant": "a/b*c%d"}', 'mail/a%2Fb%2Ac%25d', 'what would mean more is encoded'),
               ('{"tenant": "a\tb\u007f"}', 'mail/a%09b%7F', 'as are control characters'),
               ('{"tenant": "\u0085"}', 'mail/%C2%85', 'byte by byte'),
               ('{"tenant": "zoë {x}"}', 'mail/zoë {x}', 'and nothing else'))
       AS q (payload, queue, what);
SELECT refuses(format('SELECT pulse.add_job(''send'', %L)', p.payload), 'PU004',
               'no queue comes from ' || p.payload)
  FROM (VALUES ('{}'), ('{"tenant": null}'), ('{"tenant": true}'), ('{"tenant": [1]}'),
               ('{"tenant": {}}'), ('[1]'), ('"tenant"'),
               (format('{"tenant": %s}', to_json(repeat('x', 124))))) AS p (payload);
SELECT pulse.set_task('send', queue => '{a|none}/{b|x/y}') \g /dev/null
SELECT is(queue_of('{"a": 1, "b": 2}'), '1/2', 'there may be several members');
SELECT is(queue_of('{"a": null}'), 'none/x%2Fy', 'each with a default for what is missing');
SELECT is(queue_of(NULL), 'none/x%2Fy', 'also of an empty payload');

-- --- every way to add ---------------------------------------------------------------------------

SELECT pulse.set_task('send', queue => 'mail/{tenant}') \g /dev/null
SELECT is(array_agg(j.queue_name), '{mail/1,own,mail/2,NULL}', 'add_jobs gives each job its own')
  FROM pulse.add_jobs(ARRAY[
    ROW('send', '{"tenant": 1}', NULL, NULL, NULL, NULL, NULL, NULL),
    ROW('send', '{"tenant": 1}', 'own', NULL, NULL, NULL, NULL, NULL),
    ROW('send', '{"tenant": 2}', NULL, NULL, 5, NULL, NULL, NULL),
    ROW('other', '{"tenant": 2}', NULL, NULL, NULL, NULL, NULL, NULL)]::pulse.job_spec[]) AS j;
SELECT is((pulse.add_job('send', '{"tenant": 1}', job_key => 'k')).queue_name, 'mail/1',
  'a keyed add too');
SELECT is((pulse.add_job('send', '{"tenant": 2}', job_key => 'k')).queue_name, 'mail/2',
  'and one that replaces a job');
SELECT pulse.schedule('s', 'send', '@daily', payload => '{"tenant": 3}') \g /dev/null
SELECT is((pulse.run_schedule_now('s')).queue_name, 'mail/3', 'and a schedule');
SELECT pulse.set_task('send', queue => 'elsewhere') \g /dev/null
SELECT is((SELECT queue_name FROM pulse.job WHERE job_key = 'k'), 'mail/2',
  'jobs that were added before stay where they are');

SELECT * FROM finish();
ROLLBACK;
