-- What a job gets of the jobs that it waited for: ends that are on record, with results and errors,
-- bounded in size. A result is on record where the task keeps completed jobs, and where both jobs
-- are of one flow.
\ir support/setup.psql
SELECT plan(30);

SELECT given_worker('ann') AS ann \gset
CREATE FUNCTION completes(task text, result json) RETURNS void LANGUAGE sql AS $$
  SELECT pulse.complete(j.id, j.token, result) FROM pulse.job AS j
   WHERE j.identifier = task AND j.state = 'running' $$;
CREATE FUNCTION fails(task text, error text) RETURNS void LANGUAGE sql AS $$
  SELECT pulse.fail(j.id, j.token, error, retry => false) FROM pulse.job AS j
   WHERE j.identifier = task AND j.state = 'running' $$;
-- What a claim gives to the job of this task, and to others nothing of interest here.
CREATE FUNCTION given_to(task text) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(min(c.parents::text), 'nothing')
    FROM pulse.worker AS w, pulse.claim(w.id, 100) AS c WHERE c.identifier = task $$;
CREATE FUNCTION deletes_by_age() RETURNS void LANGUAGE sql AS $$
  SELECT pulse_internal.prune_completed(100), pulse_internal.prune_failed(pulse.now(), 100) $$;
CREATE FUNCTION records() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(f.identifier, ' ' ORDER BY f.id) FROM pulse.finished_job AS f $$;

-- --- in a flow ----------------------------------------------------------------------------------

CREATE TEMP TABLE flow AS SELECT key, id FROM pulse.add_flow('[
  {"key": "a", "identifier": "a"}, {"key": "b", "identifier": "b"},
  {"key": "silent", "identifier": "silent"},
  {"key": "sum", "identifier": "sum", "after": ["a", "b", "silent"]},
  {"identifier": "last", "after": ["sum"]}]');
SELECT id AS a FROM flow WHERE key = 'a' \gset
SELECT id AS b FROM flow WHERE key = 'b' \gset
SELECT given_to('a') \g /dev/null
SELECT completes('b', '{"x": 1.50, "x": null}'), completes('silent', NULL) \g /dev/null
SELECT is(records(), 'b', 'a result is kept for a job of the same flow, an end without one is not');
SELECT is_empty('SELECT * FROM pulse.attempt', 'and no attempt is recorded');
SELECT travel('1 day'), deletes_by_age() \g /dev/null
SELECT is(records(), 'b', 'it outlives its retention while the other one waits');
SELECT is(pulse.delete_finished(older_than => '0'), 0, 'and is not deleted by hand');
SELECT completes('a', '[]') \g /dev/null
SELECT is(given_to('sum'), format(
  '[{"id":%1$s,"id_text":"%1$s","key":"a","state":"completed","result":[],"last_error":null},'
  || '{"id":%2$s,"id_text":"%2$s","key":"b","state":"completed",'
  || '"result":{"x": 1.50, "x": null},"last_error":null}]',
  :a, :b), 'the job gets the results in the order of ids, as they were written');
SELECT is((SELECT parents::text FROM pulse.held(:ann)), (SELECT parents::text FROM pulse.job
  WHERE identifier = 'sum'), 'held tells it once more');
SELECT isnt((SELECT parents::text FROM pulse.held(:ann)), NULL, 'to the same worker');
SELECT is((SELECT (c.job).parents::text FROM flow AS f, pulse.claim_job(:ann, f.id) AS c
  WHERE f.key = 'sum'), (SELECT parents::text FROM pulse.held(:ann)), 'and claim_job');
SELECT deletes_by_age() \g /dev/null
SELECT is(records(), NULL, 'then retention deletes the records');
SELECT pulse.fail(id, token, 'once more') FROM pulse.job WHERE identifier = 'sum' \g /dev/null
SELECT travel('2 days') \g /dev/null
SELECT matches(given_to('sum'), '"result":\[\]', 'the next attempt gets the same');
SELECT fails('sum', 'broken') \g /dev/null
SELECT pulse.retry_job(id) FROM flow WHERE key = 'sum' \g /dev/null
SELECT matches(given_to('sum'), '"result":\[\]', 'so does one after retry_job');
SELECT completes('sum', '7') \g /dev/null
SELECT matches(given_to('last'),
  '^\[\{"id":(\d+),"id_text":"\1","key":"sum","state":"completed","result":7,',
  'which keeps its result for the job after it');
SELECT completes('last', '8') \g /dev/null
SELECT is((SELECT result::text FROM pulse.finished_job WHERE identifier = 'last'), NULL,
  'the result of a job for which none waits is not kept');

-- --- keyed jobs of a flow -----------------------------------------------------------------------

DELETE FROM pulse.finished_job;
CREATE ROLE producer;
SELECT pulse.grant_producer('producer') \g /dev/null
SET LOCAL ROLE producer;
SELECT pulse.add_flow('[{"key": "a", "identifier": "keyed", "job_key": "k"},
  {"key": "b", "identifier": "keyed", "job_key": "l", "after": ["a"]},
  {"identifier": "after keyed", "after": ["a", "b"], "job_key": "m"}]') \g /dev/null
RESET ROLE;
SELECT given_to('keyed') \g /dev/null
SELECT completes('keyed', '1') \g /dev/null
SELECT matches(given_to('keyed'), '"key":"a","state":"completed","result":1', 'keyed jobs, too');
SELECT completes('keyed', '2') \g /dev/null
SELECT promote_queues() \g /dev/null
SELECT matches((SELECT parents::text FROM pulse.job WHERE identifier = 'after keyed'),
  '"result":1,.*"result":2,', 'get results and keep their own');
SET LOCAL ROLE producer;
SELECT is((SELECT concat_ws(' ', j.identifier, j.parents) FROM pulse.remove_job('m') AS j),
  'after keyed', 'a producer that knows the key of a job sees no results');
RESET ROLE;
SELECT pulse.add_flow('[{"key": "a", "identifier": "source", "payload": 1},
  {"identifier": "target", "after": ["a"], "job_key": "m"}]') \g /dev/null
SELECT given_to('source') \g /dev/null
SELECT completes('source', '1'), promote_queues() \g /dev/null
SELECT is((SELECT parents FROM pulse.add_job('target', job_key => 'm'))::text, NULL,
  'a job that is replaced loses what it got');
DELETE FROM pulse.job; DELETE FROM pulse.finished_job; DELETE FROM pulse.dependency;
DELETE FROM pulse.claim_batch;

-- --- outside of a flow --------------------------------------------------------------------------

SELECT id AS plain FROM pulse.add_job('plain') \gset
SELECT pulse.add_job_after(ARRAY[:plain], 'child') \g /dev/null
SELECT given_to('plain') \g /dev/null
SELECT completes('plain', '1') \g /dev/null
SELECT is(given_to('child'), 'nothing', 'of a task that keeps no completed jobs there is none');
SELECT pulse.set_task('kept', keep_completed => '1 hour') \g /dev/null
SELECT id AS kept FROM pulse.add_job('kept') \gset
SELECT id AS bad FROM pulse.add_job('bad') \gset
SELECT id AS child FROM pulse.add_job_after(ARRAY[:kept, :bad], 'rescue', starts_when => 'failed')
  \gset
SELECT given_to('kept') \g /dev/null
SELECT fails('bad', E'line "1"\nline 2'), completes('kept', '"r"') \g /dev/null
SELECT travel('3 days'), deletes_by_age() \g /dev/null
SELECT is(records(), 'kept bad', 'retention passes over kept ends for which a job waits');
SELECT is(given_to('rescue'), format(
  '[{"id":%1$s,"id_text":"%1$s","key":null,"state":"completed","result":"r","last_error":null},'
  || '{"id":%2$s,"id_text":"%2$s","key":null,"state":"failed","result":null,'
  || '"last_error":"line \"1\"\nline 2"}]',
  :kept, :bad), 'a job gets the results that are kept, and errors');
SELECT pulse.complete(id, token) FROM pulse.job WHERE identifier = 'rescue' \g /dev/null
SELECT pulse.add_job_after(ARRAY[:bad], 'late', starts_when => 'ended') \g /dev/null
SELECT matches(given_to('late'), '"state":"failed"', 'also of a job that had ended before');
SELECT completes('late', NULL) \g /dev/null

-- --- several children, several waits ------------------------------------------------------------

SELECT pulse.add_job_after(ARRAY[:bad], 'twin', n::text::json, starts_when => 'ended')
  FROM generate_series(1, 3) AS n \g /dev/null
SELECT is((SELECT count(DISTINCT c.parents::text) || ' ' || count(*)
             FROM pulse.claim(:ann, 10) AS c WHERE c.parents IS NOT NULL), '1 3',
  'jobs after the same one get the same');
DELETE FROM pulse.job; DELETE FROM pulse.claim_batch;
SELECT id AS batch FROM pulse.add_job_after(ARRAY[:bad], 'batch', starts_when => 'ended') \gset
SELECT promote_queues() \g /dev/null
SELECT id AS member FROM pulse.add_job('kept') \gset
SELECT pulse.add_dependency(:batch, ARRAY[:member]) \g /dev/null
SELECT id AS twin FROM pulse.add_job_after(ARRAY[:member], 'batch', starts_when => 'ended') \gset
SELECT given_to('kept') \g /dev/null
SELECT completes('kept', '3') \g /dev/null
CREATE TEMP TABLE claimed AS SELECT c.id, string_agg(e ->> 'state', ' ') AS states
  FROM pulse.claim(:ann, 10) AS c, json_array_elements(c.parents) AS e GROUP BY c.id;
SELECT is((SELECT states FROM claimed WHERE id = :batch), 'failed completed',
  'a job that waits once more gets both');
SELECT is((SELECT states FROM claimed WHERE id = :twin), 'completed',
  'and none that waits for the same job gets what came before');
SELECT pulse.complete(id, token) FROM pulse.job WHERE identifier = 'batch' \g /dev/null

-- --- size ---------------------------------------------------------------------------------------

DELETE FROM pulse.finished_job;
CREATE TEMP TABLE large AS SELECT row_number() OVER () AS n, f.id, f.key FROM pulse.add_flow((
  SELECT json_agg(json_build_object('key', n::text, 'identifier', 'part ' || n))::jsonb
         || '[{"identifier": "whole", "after": ["1", "2", "3", "4"]}]'
    FROM generate_series(1, 4) AS n)::json) AS f;
SELECT given_to('part') \g /dev/null
SELECT completes('part ' || n, to_json(repeat('x', bytes)))
  FROM (VALUES (1, 2000000), (2, 500000), (3, 600000), (4, 400000)) AS r (n, bytes) \g /dev/null
SELECT id AS whole, token, parents FROM pulse.claim(:ann, 10) \gset
SELECT results_eq(format($$SELECT p ->> 'key', length(p ->> 'result'), p ->> 'left_out'
    FROM json_array_elements(%L) AS p$$, :'parents'),
  $$VALUES ('1', NULL, 'true'), ('2', 500000, NULL), ('3', NULL, 'true'), ('4', 400000, NULL)$$,
  'the shortest results that fit are handed over, and the others are named');
SELECT cmp_ok(octet_length(:'parents'), '<=', 1048576, 'in at most 1 MiB');
SELECT pulse.fail(:whole, :token, 'no', retry => false) \g /dev/null
SELECT is((SELECT octet_length(parents::text) FROM pulse.finished_job WHERE id = :whole),
  octet_length(:'parents'), 'a long one is kept with a failed job');
SELECT pulse.complete_jobs(ARRAY[:whole]) \g /dev/null
SELECT is((SELECT parents::text FROM pulse.finished_job WHERE id = :whole), NULL,
  'and goes when an operator completes it');

-- --- what is waited for while it is waited for --------------------------------------------------

SELECT pulse.add_flow('[{"key": "a", "identifier": "again", "max_attempts": 1},
  {"identifier": "after again", "after": ["a"]}]') \g /dev/null
SELECT given_to('again') \g /dev/null
SELECT fails('again', 'no'), promote_queues() \g /dev/null
SELECT pulse.retry_job(id) FROM pulse.finished_job WHERE identifier = 'again' \g /dev/null
SELECT given_to('again') \g /dev/null
SELECT completes('again', '5') \g /dev/null
SELECT matches(given_to('after again'), '"result":5', 'a retried job of a flow keeps its result');
SELECT completes('after again', NULL) \g /dev/null
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
