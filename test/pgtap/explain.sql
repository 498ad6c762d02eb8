-- sql/explain/explain.sql, explain/job.sql and monitor/fleet.sql: why a job does not run, and which
-- tasks no worker serves.
\ir support/setup.psql
SELECT plan(111);

SELECT expect_function('explain_job', 'job_id bigint',
  'TABLE(kind text, blocker text, detail text, until timestamp with time zone, job_ids bigint[], '
  'worker_ids bigint[])', 'stable', 'definer');
SELECT expect_function('explain_task', 'identifier text',
  'TABLE(kind text, blocker text, detail text, until timestamp with time zone, job_ids bigint[], '
  'worker_ids bigint[])', 'stable', 'definer');

SELECT expect_function('unserved', '',
  'TABLE(identifier text, due_jobs bigint, oldest_due_at timestamp with time zone, '
  'last_worker_id bigint, last_worker text, last_seen_at timestamp with time zone, '
  'estimated boolean)', 'stable', 'definer');

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
SELECT answers('SELECT due_jobs, estimated FROM pulse.unserved', ROW(2::bigint, false),
  'with what is parked, not the future');
SAVEPOINT before_many;
SELECT count(pulse.add_job('fax')) FROM generate_series(1, 210) \g /dev/null
SELECT answers('SELECT due_jobs > 200, estimated FROM pulse.unserved', ROW(true, true),
  'a part of many open jobs is marked');
ROLLBACK TO before_many;
SELECT count(pulse.add_job('fax')) FROM generate_series(1, 10) \g /dev/null
SELECT given_worker('gus', '{fax}') AS gus \gset
SELECT claimed_ids(:gus, 20), pulse.drain_worker(:gus) \g /dev/null
SELECT is_empty('TABLE pulse.unserved', 'jobs that run, claimed many at a time, do not wait');
ROLLBACK TO before_many;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'mail', 'other', 'parked', now() - interval '2 h' FROM generate_series(1, 1000) AS n;
SELECT answers('SELECT due_jobs, estimated FROM pulse.unserved', ROW(1::bigint, true),
  'and where there are many parked jobs');
ROLLBACK TO before_many;
SELECT pulse.drain_worker(:ann) \g /dev/null
SELECT is(reasons(:job), format('fleet drained by {%s}, line place', :ann), 'all drain');
SELECT set_eq('SELECT identifier FROM pulse.unserved', '{fax,mail}'::text[],
  'a worker that drains serves nothing');
SELECT given_worker('zoe') AS zoe \gset
SELECT is_empty('TABLE pulse.unserved', 'a worker may serve every task');
SELECT pulse.serve_tasks(:zoe, NULL, '{"draining": true}') \g /dev/null
SELECT is(reasons(:job), format('fleet drained by {%s,%s}, line place', :ann, :zoe),
  'one that a signal drains tells so');
SELECT is((SELECT status FROM pulse.worker_status WHERE id = :zoe), 'draining', 'and is seen to');
SELECT is((SELECT status FROM pulse.heartbeat(:zoe)), 'alive',
          'while no operator has asked for it');
SELECT pulse.deregister_worker(:zoe) \g /dev/null
SELECT id AS cid FROM pulse.register_worker('cid', NULL,
  '{"slots": 1, "forbidden_flags": ["gpu"]}') \gset
SELECT is_empty('TABLE pulse.unserved', 'a worker may serve every task');
SELECT is(reasons(:job), format('fleet forbidden by {%s}, line place', :cid), 'all forbid a flag');
SELECT is(reasons(:fax), 'line place', 'which is not a flag of this one');
SELECT claimed_ids(:cid, 1, '{fax}') \g /dev/null
SELECT given_job('fax') AS fax2 \gset
SELECT is(split_part(reasons(:fax2), ',', 1), format('fleet full by {%s}', :cid), 'all are full');
SELECT id AS eve FROM pulse.register_worker('eve', '{copied}',
  '{"slots": 2, "databases_of_slots": 3}') \gset
SELECT given_job('copied') AS copied \gset
SELECT is(reasons(:copied), format('fleet shared by {%s}, line place', :eve),
  'jobs of other databases may have the slots of a worker of several');
SELECT is(reasons_of_task('copied'), format('fleet shared by {%s}, line place', :eve),
  'also of a task');
SELECT given_worker('uma', '{copied}') AS uma \gset
SELECT is(reasons(:copied), 'line place',
  'a worker of this database alone has its slots to itself');
SELECT pulse.deregister_worker(:uma), given_job('copied'), claimed_ids(:eve, 2) \g /dev/null
SELECT given_job('copied') AS copied \gset
SELECT is(split_part(reasons(:copied), ',', 1), format('fleet full by {%s', :cid),
  'as many jobs of this database as slots fill the worker');
SELECT matches((SELECT detail FROM pulse.explain_job(:copied) WHERE blocker = 'full'),
  'jobs: 2 of task ''copied'', 1 of task ''fax''\.$', 'and the tasks of these jobs are named');
SELECT pulse.deregister_worker(:eve) \g /dev/null
DELETE FROM pulse.job WHERE identifier = 'copied';
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

-- --- the root of a chain ------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT pulse.deregister_worker(:cid), given_worker('dan', '{mail}') AS dan \gset
SELECT given_job('mail', 'legal') AS root \gset
SELECT (pulse.add_job_after(ARRAY[:root], 'mail')).id AS middle \gset
SELECT (pulse.add_job_after(ARRAY[:middle], 'mail')).id AS last \gset
SELECT pulse.pause_queue('legal') \g /dev/null
SELECT is(reasons(:last), format('job parents {%s}, job root {%1$s,%s}', :middle, :root),
  'a chain is followed to its root');
SELECT matches((SELECT detail FROM pulse.explain_job(:last) WHERE blocker = 'parents'),
  format('; 1 of 1 live: %s\.$', :middle), 'after the jobs that it waits for itself, by their ids');
SELECT matches((SELECT detail FROM pulse.explain_job(:last) WHERE blocker = 'root'), format(
  'job %s of task ''mail'', by way of %s, which is parked in queue ''legal''. Queue ''legal'' is '
  'paused by role %s since 20', :root, :middle, quote_ident(current_user)),
  'with why that job waits, by whom and since when');
SELECT is(reasons(:middle), format('job parents {%s}, job root {%1$s}', :root),
  'also from the job after it');
SELECT is(reasons(:root), 'queue paused', 'the root itself has none');
SELECT id AS runs FROM given_claimed_job(:dan) \gset
SELECT (pulse.add_job_after(ARRAY[:runs, :middle], 'mail')).id AS two \gset
SELECT is((SELECT job_ids FROM pulse.explain_job(:two) WHERE blocker = 'root'),
  ARRAY[:middle, :root]::bigint[], 'a parent that waits is followed, not one that runs');
-- No call stores a circle; a restored or written row may.
UPDATE pulse.dependency SET parents = ARRAY[:last] WHERE child_id = :middle;
UPDATE pulse.dependency SET parents = ARRAY[:middle] WHERE child_id = :last;
SELECT is(pulse_internal.path_to_root(:last, 100), ARRAY[:middle]::bigint[],
  'a circle is followed once');
INSERT INTO pulse.job (id, identifier, waits_on)
SELECT n, 'mail', n - 1 FROM generate_series(1000001, 1000300) AS n;
INSERT INTO pulse.job (id, identifier) VALUES (1000000, 'mail');
INSERT INTO pulse.dependency (child_id, parents_from, parents)
SELECT n, n - 1, ARRAY[n - 1] FROM generate_series(1000001, 1000300) AS n;
SELECT matches((SELECT detail FROM pulse.explain_job(1000300) WHERE blocker = 'root'),
  'is followed to job 1000200 ', 'a long chain is followed over a hundred jobs');
SELECT matches((SELECT detail FROM pulse.explain_job(1000100) WHERE blocker = 'root'),
  'job 1000000 ', 'which is enough for most');

-- --- whose jobs have the places -----------------------------------------------------------------

DELETE FROM pulse.job;
SELECT pulse.set_queue('partner', 2), given_job('old', 'partner') AS old,
       given_job('old', 'partner') AS older \gset
SELECT promote_queues() \g /dev/null
SELECT given_job('mail', 'partner') AS stuck \gset
SELECT matches((SELECT detail FROM pulse.explain_job(:stuck) WHERE blocker = 'full'),
  'Open jobs of task ''old'', which no living worker serves, have 2 of the places\.$',
  'a full queue names the tasks that nobody serves');
SELECT pulse.set_queue('partner', 9, rate => 2, per => '1 h'), promote_queues() \g /dev/null
SELECT matches((SELECT detail FROM pulse.explain_job(:stuck) WHERE blocker = 'dry'),
  'beside those of their open jobs\. Open jobs of task ''old'', which .* have 2 of the tokens\.$',
  'a dry one too');
SELECT pulse.set_queue('partner', 9, rate => -1, total => 2), promote_queues() \g /dev/null
SELECT matches((SELECT detail FROM pulse.explain_job(:stuck) WHERE blocker = 'full'),
  'have 2 of the places\.$', 'and a full level');
SELECT pulse.deregister_worker(:dan), given_worker('eve', '{mail,old}') AS eve \gset
SELECT doesnt_match((SELECT detail FROM pulse.explain_job(:stuck) WHERE blocker = 'full'),
  'have 2 of the places', 'where a worker serves them that is not said');

-- --- a task beside thousands of other parked jobs -----------------------------------------------

DELETE FROM pulse.job;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'bulk', 'bulk ' || n, 'parked', now() - interval '1 h' FROM generate_series(1, 1001) AS n;
SELECT given_job('mail', 'legal') AS approval \gset
SELECT pulse.pause_queue('legal') \g /dev/null
SELECT is(reasons_of_task('mail'), 'queue paused, line place',
  'a paused queue is found behind jobs of others that have been due for longer');
SELECT is(reasons_of_task('copy'), format('fleet unserved by {%s}, line place', :cid),
  'none is found of other tasks');
UPDATE pulse.job SET run_at = now() + interval '1 h' WHERE identifier = 'bulk';
UPDATE pulse.job SET run_at = now() + interval '2 h' WHERE id = :approval;
SELECT pulse.add_job('mail', run_at => now() + interval '5 h') \g /dev/null
SELECT alike((SELECT detail FROM pulse.explain_task('mail') WHERE kind = 'job'),
  'No open job of it is due; the next open one is due at %',
  'beside a parked job that is not found the answer is about open ones');
SELECT pulse.set_task('mail', queue => 'legal') \g /dev/null
SELECT answers($$SELECT blocker, until FROM pulse.explain_task('mail') WHERE kind = 'job'$$,
  ROW('future', now() + interval '2 h'),
  'one whose job is due later is found in the queue of the task');
SELECT pulse.unset_task('mail') \g /dev/null
UPDATE pulse.job SET run_at = now() - interval '1 h' WHERE identifier = 'bulk';
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'bulk', 'more ' || n, 'parked', now() - interval '1 h' FROM generate_series(1, 20000) AS n;
SELECT queue_name AS far FROM pulse.job WHERE index_lane = 'p' AND identifier = 'bulk'
 ORDER BY pulse_internal.queue_bucket(queue_name) DESC, queue_name DESC LIMIT 1 \gset
UPDATE pulse.job SET identifier = 'copy' WHERE queue_name = :'far';
SELECT pulse.pause_queue(:'far') \g /dev/null
SELECT is(reasons_of_task('copy'),
  format('queue unknown, fleet unserved by {%s}, line place', :cid),
  'where there are more queues than a call looks at, the answer says so');
SELECT pulse.set_task('copy', queue => :'far') \g /dev/null
SELECT is(reasons_of_task('copy'), format('queue paused, fleet unserved by {%s}, line place', :cid),
  'the queue of the task comes first');
SELECT pulse.unset_task('copy') \g /dev/null
SELECT pulse.schedule('copies', 'copy', every => '1 h', queue_name => :'far') \g /dev/null
SELECT is(reasons_of_task('copy'), format('queue paused, fleet unserved by {%s}, line place', :cid),
  'and that of its schedules');
DELETE FROM pulse.job;
SELECT given_job('mail') AS parent, given_job('mail') AS other \gset
SELECT count(pulse.add_job_after(ARRAY[:parent], 'bulk')) FROM generate_series(1, 1001)
  \g /dev/null
SELECT pulse.add_job_after(ARRAY[:other], 'mail') \g /dev/null
SELECT is(reasons_of_task('mail'), format('job parents {%s}, line place', :other),
  'a task whose job waits for another is found behind a thousand that do');

SELECT pulse.pause_queue('whole') \g /dev/null
SELECT pulse.add_job('whole', queue_name => 'whole/' || n) FROM generate_series(1, 3) AS n
  \g /dev/null
SELECT is(count(*), 1::bigint, 'a reason of a level is told once for all queues within')
  FROM pulse.explain_task('whole') AS e WHERE e.detail LIKE 'Queue ''whole'' is paused%';

-- --- numbers up to the bound --------------------------------------------------------------------

CREATE FUNCTION told_of_task(identifier text) RETURNS text
  LANGUAGE sql AS $$
  SELECT e.detail FROM pulse.explain_task(identifier) AS e WHERE e.blocker = 'place' $$;
DELETE FROM pulse.job;
INSERT INTO pulse.job (identifier, run_at)
SELECT 'mail', now() - interval '1 h' FROM generate_series(1, 1000) AS n;
SELECT given_job('mail') AS thousand_first, given_job('mail') AS thousand_second \gset
SELECT matches((SELECT detail FROM pulse.explain_job(:thousand_first) WHERE blocker = 'place'),
  '^It is number 1001 ', 'a job behind a thousand has an exact place');
SELECT alike((SELECT detail FROM pulse.explain_job(:thousand_second) WHERE blocker = 'place'),
  'More than 1000 jobs of its task come before it.', 'behind more the answer says so');
SELECT alike(told_of_task('mail'), 'More than 1000 open jobs of it are due,%',
  'more than a thousand due jobs of a task are told as such');
DELETE FROM pulse.job WHERE id IN (:thousand_first, :thousand_second);
SELECT alike(told_of_task('mail'), '1000 open jobs of it are due,%', 'a thousand are counted');
UPDATE pulse.job SET priority = id % 50,
       run_at = CASE WHEN id / 50 % 2 = 0 THEN now() + interval '1 h' ELSE run_at END;
SELECT alike(told_of_task('mail'), '500 open jobs of it are due,%',
  'so are those of many priorities, beside later ones');
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'mail', n % 50, now() + interval '1 h' FROM generate_series(1, 5000) AS n;
SELECT alike(told_of_task('mail'), 'At least ___ open jobs of it are due,%',
  'of a great many priorities the answer tells a part');

SELECT alike((SELECT e.detail FROM pulse_internal.explain_queue_lock('free') AS e),
  'Another transaction promotes queue ''free''%', 'a lock may have been released meanwhile');

SELECT * FROM finish();
ROLLBACK;
