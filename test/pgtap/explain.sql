-- sql/explain.sql, explain_job.sql and fleet.sql: why a job does not run, and which tasks no worker
-- serves.
\ir support/setup.psql
SELECT plan(70);

SELECT expect_function('explain_job', 'job_id bigint',
  'TABLE(kind text, blocker text, detail text, until timestamp with time zone, job_ids bigint[], '
  'worker_ids bigint[])', 'stable', 'definer');
SELECT expect_function('explain_task', 'identifier text',
  'TABLE(kind text, blocker text, detail text, until timestamp with time zone, job_ids bigint[], '
  'worker_ids bigint[])', 'stable', 'definer');

SELECT expect_function('unserved', '',
  'TABLE(identifier text, due_jobs bigint, oldest_due_at timestamp with time zone, '
  'last_worker_id bigint, last_worker text, last_seen_at timestamp with time zone)', 'stable',
  'definer');

-- The reasons, with what they name.
CREATE FUNCTION reasons(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(e.kind || ' ' || e.blocker || coalesce(' ' || e.job_ids::text, '')
                    || coalesce(' by ' || e.worker_ids::text, ''), ', ')
    FROM pulse.explain_job(job_id) AS e $$;
CREATE FUNCTION reasons_of_task(identifier text) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(e.kind || ' ' || e.blocker || coalesce(' ' || e.job_ids::text, '')
                    || coalesce(' by ' || e.worker_ids::text, ''), ', ')
    FROM pulse.explain_task(identifier) AS e $$;

-- --- one job ------------------------------------------------------------------------------------

SELECT given_worker('ann', '{mail}') AS ann \gset
SELECT given_job('mail') AS job \gset
SELECT is(reasons(:job), 'line place', 'nothing keeps a due job from a worker that serves it');
SELECT (pulse.add_job('mail', run_at => now() + interval '1 h')).id AS later \gset
SELECT answers(format('SELECT kind, blocker, until FROM pulse.explain_job(%s)', :later),
  ROW('job', 'future', now() + interval '1 h'), 'a job of the future says until when');
SELECT given_job('mail') AS second \gset
SELECT is(reasons(:second), format('line place {%s}', :job), 'its place, and what comes first');
SELECT matches((SELECT detail FROM pulse.explain_job(:second)), 'number 2 ', 'the place is exact');
SELECT matches((SELECT detail FROM pulse.explain_job(:second)), 'start is not estimated',
  'without kept jobs nothing tells how fast the task runs');
-- Twenty jobs in the last ten seconds: the second of the line starts in a second.
INSERT INTO pulse.finished_job (id, identifier, payload, state, priority, run_at, attempts,
                                max_attempts, crashes, revision, created_at, finished_at)
SELECT n, 'mail', '{}', 'completed', 0, t, 1, 1, 0, 0, t, t
  FROM generate_series(-20, -1) AS n, LATERAL (SELECT pulse.now() + n * interval '0.5 s') AS m (t);
SELECT ok(until BETWEEN pulse.now() AND pulse.now() + interval '1.5 s',
          'else it starts after those before it, at the rate of the last minutes')
  FROM pulse.explain_job(:second) WHERE blocker = 'place';
SELECT matches((SELECT detail FROM pulse.explain_job(:second)), 'in which 20 jobs completed',
  'and it says what this rests on');
DELETE FROM pulse.finished_job;
SET LOCAL pulse.claims = off;
SELECT is(reasons(:job), 'job claims off, line place', 'claims may be off');
SELECT is(reasons_of_task('mail'), 'job claims off, line place', 'for a task, too');
SET LOCAL pulse.claims = on;

-- --- queues -------------------------------------------------------------------------------------

SELECT given_job('mail', 'post') AS one \gset
SELECT given_job('mail', 'post') AS two \gset
SELECT is(reasons(:one), format('line place {%s}', :job), 'a queue with a free place opens it');
SELECT is(reasons(:two), format('queue behind {%s}', :one), 'its queue has a better job');
SELECT promote_queues() \g /dev/null
SELECT is(reasons(:two), format('queue full {%s}', :one), 'an open job takes a place');
SELECT (pulse.add_job('mail', queue_name => 'post', priority => -1)).id AS best \gset
SELECT is(reasons(:one), format('queue behind {%s}', :best), 'an open job yields to a better one');
SELECT is(reasons(:best), 'line place', 'which the queue opens instead');
SELECT claimed_ids(:ann, 10) \g /dev/null
SELECT is(reasons(:two), format('queue full {%s} by {%s}', :best, :ann),
  'a running job takes a place: which, and of whom');
SELECT is(reasons(:best), format('job running by {%s}', :ann), 'a running job says at whom');
SELECT pulse.set_queue('post', 2) \g /dev/null
SELECT is(reasons(:one), 'line place', 'a raised limit lets it through');
SELECT pulse.pause_queue('post') \g /dev/null
SELECT is(reasons(:one), 'queue paused', 'a paused queue');
SELECT is(reasons_of_task('mail'), 'job future, queue paused, line place',
  'and of a task the queues');
SELECT pulse.resume_queue('post') \g /dev/null

-- --- poison suspects ----------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT given_job('mail') AS job \gset
SELECT given_job('mail') AS suspect \gset
UPDATE pulse.job SET crashes = 2 WHERE id = :suspect;
SELECT is(reasons(:suspect), format('job suspect {%s}, line place {%1$s}', :job),
  'a poison suspect waits for a worker that runs nothing');
SELECT is(reasons(:job), 'line place', 'it is in no way of other jobs');
UPDATE pulse.job SET priority = -1 WHERE id = :suspect;
SELECT is(reasons(:suspect), 'line place', 'the first job of the line finds an idle worker');
SELECT is(reasons(:job), format('job isolated {%s}, line place {%1$s}', :suspect),
  'the worker that takes a suspect takes nothing else');
UPDATE pulse.job SET crashes = 1;
SELECT is(reasons(:job), format('line place {%s}', :suspect), 'one crash of three is none yet');
SELECT pulse.set_task('mail', max_crashes => 2) \g /dev/null
SELECT is(reasons(:job), format('job suspect {%s}, line place {%1$s}', :suspect),
  'the task may allow fewer');
SELECT pulse.set_task('mail', max_crashes => 3) \g /dev/null

-- --- the fleet ----------------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT (pulse.add_job('mail', flags => '{gpu}')).id AS job \gset
SELECT given_job('fax') AS fax \gset
SELECT is(reasons(:fax), 'fleet unserved, line place', 'no worker serves it, none ever did');
SELECT matches((SELECT detail FROM pulse.explain_job(:fax) WHERE blocker = 'unserved'),
  'none of the last 1,000 that ended did', 'as far as it looks');
SELECT given_worker('bob', '{fax}') AS bob \gset
SELECT is(reasons(:fax), 'line place', 'a worker serves it');
SELECT is_empty('TABLE pulse.unserved', 'every task is served');
SELECT pulse.deregister_worker(:bob) \g /dev/null
SELECT is(reasons(:fax), format('fleet unserved by {%s}, line place', :bob), 'the last one left');
SELECT is(reasons_of_task('fax'), format('fleet unserved by {%s}, line place', :bob),
  'and of the task');
SELECT answers('SELECT identifier, due_jobs, last_worker FROM pulse.unserved',
  ROW('fax', 1::bigint, 'bob'), 'unserved names the task');
SELECT pulse.add_job('fax', queue_name => 'slow'), pulse.add_job('fax', run_at => now() + '1 h')
  \g /dev/null
SELECT is((SELECT due_jobs FROM pulse.unserved), 2::bigint, 'with what is parked, not the future');
SELECT pulse.drain_worker(:ann) \g /dev/null
SELECT is(reasons(:job), format('fleet drained by {%s}, line place', :ann), 'all drain');
SELECT set_eq('SELECT identifier FROM pulse.unserved', '{fax,mail}'::text[],
  'a worker that drains serves nothing');
SELECT id AS cid FROM pulse.register_worker('cid', NULL,
  '{"slots": 1, "forbidden_flags": ["gpu"]}') \gset
SELECT is_empty('TABLE pulse.unserved', 'a worker may serve every task');
SELECT is(reasons(:job), format('fleet forbidden by {%s}, line place', :cid), 'all forbid a flag');
SELECT is(reasons(:fax), 'line place', 'which is not a flag of this one');
SELECT claimed_ids(:cid, 1, '{fax}') \g /dev/null
SELECT given_job('fax') AS fax2 \gset
SELECT is(split_part(reasons(:fax2), ',', 1), format('fleet full by {%s}', :cid), 'all are full');
SELECT travel('1 h');
SELECT is(split_part(reasons(:fax2), ',', 1), format('fleet unserved by {%s}', :cid),
  'silence is death');
SELECT is(reasons(:fax), format('job running by {%s}', :cid), 'its job runs until a sweep');
SELECT matches((SELECT detail FROM pulse.explain_job(:fax)), 'next sweep', 'which is said');
SELECT travel('0');

-- --- ends ---------------------------------------------------------------------------------------

SELECT pulse.cancel_job(:fax2) \g /dev/null
SELECT is(reasons(:fax2), 'job cancelled', 'a kept job says how it ended');
SELECT pulse.complete(id, token) FROM pulse.held(:cid) \g /dev/null
SELECT is(reasons(:fax), 'job gone', 'one that is not kept cannot');
SELECT refuses(format('SELECT pulse.explain_job(%s)',
  (SELECT last_value + 1 FROM pulse.job_id_seq)), 'PU005', 'an id never given out is refused');
SELECT throws_ok('SELECT pulse.explain_job(NULL)', 'PU005', 'job NULL is unknown', 'so is NULL');
SELECT refuses('SELECT pulse.explain_task('''')', 'PU004', 'a task without a name is refused');
SELECT is(reasons_of_task('nothing'), 'line place', 'a task without jobs');
SELECT given_job('mail') AS parent \gset
SELECT pulse.add_job_after(ARRAY[:parent], 'fax', queue_name => q)
  FROM unnest('{slow,NULL}'::text[]) AS q \g /dev/null
SELECT is(reasons_of_task('fax'), format('job parents {%s}, line place', :parent),
  'a task whose jobs wait for other jobs says so');
SELECT matches((SELECT detail FROM pulse.explain_task('fax') WHERE blocker = 'parents'),
  ': 2; ', 'and how many');
SELECT pulse.add_job('copy', queue_name => 'slow', run_at => now() + interval '1 h') \g /dev/null
SELECT answers($$SELECT blocker, until FROM pulse.explain_task('copy') WHERE kind = 'job'$$,
  ROW('future', now() + interval '1 h'), 'one whose jobs are due later behind a queue says when');
SELECT changes_nothing('SELECT pulse.explain_task(''fax'')', 'explaining changes nothing');

SELECT * FROM finish();
ROLLBACK;
