-- sql/attempt.sql and extension/finish/attempt_end.cpp: whoever ends attempts, C for a job that
-- surely runs again and SQL for all, every job comes to the same fate. Each kind of job meets each
-- kind of end.
\ir support/setup.psql
SELECT plan(12);

SELECT pulse.set_task('steady', backoff => 'fixed', backoff_base => '1 month 2 days 3 s',
                      max_crashes => 3) \g /dev/null
SELECT pulse.set_task('prompt', backoff => 'none', max_crashes => -1) \g /dev/null
SELECT pulse.set_task('doubling', backoff_base => '2 s', backoff_cap => '1 h') \g /dev/null
SELECT pulse.set_task('capped', backoff_cap => '5 s', max_crashes => 0) \g /dev/null
SELECT pulse.set_task('endless', backoff_base => '9 years') \g /dev/null

CREATE TABLE kind (name text, task text, queue_name text, job_key text, attempts int, crashes int,
                   superseded boolean, cancelled boolean, run_in interval);
INSERT INTO kind
  SELECT concat_ws(' ', task, 'attempt', attempts, crashes, 'crashes'), task, NULL, NULL, attempts,
         crashes, false, false, interval '-1 s'
    FROM unnest('{plain,steady,prompt,doubling,capped,endless}'::text[]) AS task,
         unnest('{1,3,24,25}'::int[]) AS attempts, unnest('{0,1,2,3,32767}'::int[]) AS crashes;
INSERT INTO kind
  SELECT concat_ws(' ', what, how), 'plain', CASE WHEN how = 'queued' THEN 'q' END,
         CASE what WHEN 'keyed' THEN 'k' || how WHEN 'taken' THEN 't' || how END, 1, 0,
         what = 'superseded', what = 'cancelled',
         CASE WHEN what = 'future' THEN interval '1 day' ELSE interval '-1 day' END
    FROM unnest('{past,future,keyed,taken,superseded,cancelled}'::text[]) AS what,
         unnest('{alone,queued}'::text[]) AS how;

CREATE TABLE ending (name text, outcome text, error text, retry boolean, retry_in interval,
                     payload json, cause text);
INSERT INTO ending VALUES
  ('lost', 'lost', 'gone', true, NULL, NULL, 'silence'),
  ('failed', 'failed', 'wrong', true, NULL, NULL, NULL),
  ('failed, retry unsaid', 'failed', 'wrong', NULL, NULL, NULL, NULL),
  ('failed for good', 'failed', 'wrong', false, NULL, NULL, NULL),
  ('failed, with a delay', 'failed', 'wrong', true, '1 month 1 day 7 s', '{"n": 2}', NULL),
  ('timed out', 'timed_out', 'late', true, NULL, NULL, 'timeout'),
  ('released', 'released', NULL, true, NULL, NULL, 'stall'),
  ('interrupted', 'interrupted', 'by hand', true, NULL, NULL, 'hand');

-- Running jobs of all kinds, one for each ending.
INSERT INTO pulse.job (identifier, payload, queue_name, job_key, priority, run_at, state, attempts,
                       crashes, superseded, cancel_requested_at, worker_id, token, claimed_at,
                       claimed_live_us, activity_live_us, stage, last_error, recovered, flags,
                       created_at)
  SELECT k.task, json_build_object('kind', k.name, 'ending', e.name), k.queue_name,
         k.job_key || e.name, 3, now() + k.run_in, 'running', k.attempts, k.crashes,
         k.superseded, CASE WHEN k.cancelled THEN pulse.now() END, 77,
         1000000 + row_number() OVER (), now(), 5, 6, 'half', 'earlier', 'session', '{f}',
         now() + k.run_in
    FROM kind AS k CROSS JOIN ending AS e;
-- Another waits with the key of those whose key is taken.
INSERT INTO pulse.job (identifier, job_key)
  SELECT 'other', job_key FROM pulse.job WHERE job_key LIKE 't%';

CREATE FUNCTION endings(kinds text = '%') RETURNS pulse._ending[] LANGUAGE sql AS $$
  SELECT array_agg(ROW(j.id, e.outcome, e.error, e.retry, e.retry_in, e.payload, e.cause)
                   ::pulse._ending ORDER BY j.id)
    FROM pulse.job AS j JOIN ending AS e ON e.name = j.payload ->> 'ending'
   WHERE j.state = 'running' AND j.payload ->> 'kind' LIKE kinds
$$;

-- What the tables say after all have ended so. Moments are told by the end of the attempt: each
-- call has its own; run_at also by created_at, which is what it was before.
CREATE FUNCTION outcome_of(function_name text) RETURNS TABLE (place text, id bigint, fact text)
  LANGUAGE plpgsql AS $$
DECLARE
  facts text[];
BEGIN
  EXECUTE format('SELECT count(*) FROM pulse.%I(endings())', function_name);
  RETURN QUERY
    SELECT 'job', j.id, (to_jsonb(j) - '{updated_at,run_at,in_place}'::text[]
             || jsonb_build_object('updated', j.updated_at - a.ended_at,
                                   'run', CASE WHEN j.run_at = j.created_at THEN 'as it was'
                                     ELSE round(extract(epoch FROM
                                       j.run_at - greatest(j.created_at, a.ended_at)), 2)::text END)
             )::text
      FROM pulse.job AS j LEFT JOIN pulse.attempt AS a ON a.job_id = j.id
    UNION ALL
    SELECT 'finished_job', f.id, (to_jsonb(f) - '{finished_at}'::text[]
             || jsonb_build_object('finished', f.finished_at - a.ended_at))::text
      FROM pulse.finished_job AS f LEFT JOIN pulse.attempt AS a ON a.job_id = f.id
    UNION ALL
    SELECT 'attempt', a.job_id, (to_jsonb(a) - '{ended_at}'::text[])::text FROM pulse.attempt AS a;
END $$;

CREATE TABLE public.seen (what text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.seen VALUES (TG_TABLE_NAME);
  RETURN NULL;
END $$;

SELECT cmp_ok(cardinality(endings()), '>', 800, 'many kinds of jobs end in many ways');
SAVEPOINT before;
CREATE TEMP TABLE by_sql AS SELECT * FROM outcome_of('_end_attempts_in_full');
SELECT string_agg(format('(%L,%s,%L)', place, id, fact), ',') AS by_sql FROM by_sql \gset
SELECT count(*) AS answers FROM by_sql \gset
ROLLBACK TO before;
CREATE TEMP TABLE by_sql AS
  SELECT * FROM (VALUES :by_sql) AS f (place, id, fact);
CREATE TEMP TABLE by_c AS SELECT * FROM outcome_of('_end_attempts');

SELECT is((SELECT count(*)::int FROM by_c), :answers, 'both leave as many rows');
SELECT is_empty('SELECT * FROM by_sql EXCEPT SELECT * FROM by_c', 'what SQL writes, C writes');
SELECT is_empty('SELECT * FROM by_c EXCEPT SELECT * FROM by_sql', 'and nothing else');
SELECT is((SELECT string_agg(DISTINCT state::text, ', ' ORDER BY state::text)
             FROM (SELECT state::text FROM pulse.job WHERE worker_id IS NULL
                   UNION SELECT state::text FROM pulse.finished_job) AS s),
  'cancelled, failed, parked, quarantined, ready', 'every fate is met');
ROLLBACK TO before;

-- --- answers ------------------------------------------------------------------------------------

CREATE TEMP TABLE answer AS SELECT * FROM pulse._end_attempts(endings());
SELECT is((SELECT count(*)::int FROM answer), (SELECT count(*)::int FROM pulse.attempt),
  'every ending is answered');
SELECT is_empty($$SELECT * FROM answer AS a
  WHERE a.state <> coalesce(
          (SELECT j.state::text FROM pulse.job AS j WHERE j.id = a.id),
          (SELECT f.state::text FROM pulse.finished_job AS f WHERE f.id = a.id))$$,
  'with the state that the job is in');
SELECT is_empty($$SELECT * FROM answer AS a JOIN pulse.attempt AS t ON t.job_id = a.id
                   WHERE t.outcome <> a.outcome AND t.outcome <> 'cancelled'$$,
  'and with how the attempt ended');
SELECT is((SELECT count(*)::int FROM pulse._end_attempts('{}')), 0, 'no ending, no answer');
SELECT is((SELECT count(*)::int FROM pulse._end_attempts(NULL)), 0, 'nor of NULL');
ROLLBACK TO before;

-- --- what others hang on the tables -------------------------------------------------------------

CREATE TRIGGER look AFTER UPDATE ON pulse.job FOR EACH ROW EXECUTE FUNCTION see();
SELECT count(*) FROM pulse._end_attempts(endings('past%')) \g /dev/null
SELECT cmp_ok((SELECT count(*)::int FROM seen WHERE what = 'job'), '>', 0,
  'somebody''s trigger on pulse.job sees a job that runs again');
ROLLBACK TO before;
CREATE TRIGGER look AFTER INSERT ON pulse.attempt FOR EACH ROW EXECUTE FUNCTION see();
SELECT count(*) FROM pulse._end_attempts(endings('past%')) \g /dev/null
SELECT cmp_ok((SELECT count(*)::int FROM seen WHERE what = 'attempt'), '>', 0,
  'and one on pulse.attempt the attempt');

SELECT * FROM finish();
ROLLBACK;
