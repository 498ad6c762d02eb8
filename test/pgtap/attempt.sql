-- extension/finish/attempt_end.cpp decides how an attempt ends. Each kind of job meets each kind of
-- end here, and the tables say afterwards what the expectations below say, column by column.
\ir support/setup.psql
SELECT plan(23);

SELECT pulse.set_task('steady', backoff => 'fixed', backoff_base => '1 month 2 days 3 s',
                      max_crashes => 3) \g /dev/null
SELECT pulse.set_task('prompt', backoff => 'none', max_crashes => -1) \g /dev/null
SELECT pulse.set_task('doubling', backoff_base => '2 s', backoff_cap => '1 h') \g /dev/null
SELECT pulse.set_task('capped', backoff_cap => '5 s', max_crashes => 0) \g /dev/null
SELECT pulse.set_task('endless', backoff_base => '9 years') \g /dev/null
SET pulse.keep_completed = '1 d';

-- --- expectations -------------------------------------------------------------------------------

-- What an end does to a job that waits again: which way to the next run_at, what the attempts and
-- crashes change by, and what the row says then; NULL: as before. The audit has `outcome` and
-- `error`, unless the job waits again and the end is not audited.
CREATE TABLE ending (name text PRIMARY KEY, call text, outcome text, error text, retry boolean,
                     retry_in interval, payload json, cause text, checkpoint json, run_at text,
                     attempts int, crashes int, last_error text, recovered text,
                     is_audited boolean);
INSERT INTO ending VALUES
  ('lost', 'end', 'lost', 'gone', true, NULL, NULL, 'silence', NULL,
   'backoff', 0, 1, 'gone', 'silence', true),
  ('failed', 'end', 'failed', 'wrong', true, NULL, NULL, NULL, NULL,
   'backoff', 0, 0, 'wrong', NULL, true),
  ('failed, retry unsaid', 'end', 'failed', 'wrong', NULL, NULL, NULL, NULL, NULL,
   'backoff', 0, 0, 'wrong', NULL, true),
  ('failed for good', 'end', 'failed', 'wrong', false, NULL, NULL, NULL, NULL,
   NULL, 0, 0, 'wrong', NULL, true),
  ('failed, with a delay', 'end', 'failed', 'wrong', true, '1 month 1 day 7 s', '{"n": 2}', NULL,
   NULL, 'delay', 0, 0, 'wrong', NULL, true),
  ('timed out', 'end', 'timed_out', 'late', true, NULL, NULL, 'timeout', NULL,
   'backoff', 0, 0, 'late', 'timeout', true),
  ('released', 'end', 'released', NULL, true, NULL, NULL, 'stall', NULL,
   'as it was', -1, 0, 'earlier', 'stall', true),
  ('interrupted', 'end', 'interrupted', 'by hand', true, NULL, NULL, 'hand', NULL,
   'due', 0, 0, 'by hand', 'hand', true),
  ('snoozed', 'snooze', 'failed', 'snoozed', NULL, '1 month 1 day 7 s', NULL, NULL, '{"at": 3}',
   'delay from now', -1, 0, 'earlier', 'session', false),
  ('completed', 'complete', 'completed', NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, 0, 0, 'earlier', NULL, true);

-- The next state of jobs that had this many attempts (of 25), for each number of crashes before.
-- r(eady), f(ailed), q(uarantined); an asterisk stands for every task that no other row names.
CREATE TABLE next_state (task text, ending text, at_1 text, at_3 text, at_24 text, at_25 text);
--   crashes before:                     0 1 2 3 32767
INSERT INTO next_state VALUES
  ('*',        'lost',                 'rrqqq', 'rrqqq', 'rrqqq', 'ffqqq'),
  ('steady',   'lost',                 'rrqqq', 'rrqqq', 'rrqqq', 'ffqqq'),
  ('prompt',   'lost',                 'rrrrr', 'rrrrr', 'rrrrr', 'fffff'),
  ('capped',   'lost',                 'qqqqq', 'qqqqq', 'qqqqq', 'qqqqq'),
  ('*',        'failed',               'rrrrr', 'rrrrr', 'rrrrr', 'fffff'),
  ('*',        'failed, retry unsaid', 'rrrrr', 'rrrrr', 'rrrrr', 'fffff'),
  ('*',        'failed for good',      'fffff', 'fffff', 'fffff', 'fffff'),
  ('*',        'failed, with a delay', 'rrrrr', 'rrrrr', 'rrrrr', 'fffff'),
  ('*',        'timed out',            'rrrrr', 'rrrrr', 'rrrrr', 'fffff'),
  ('*',        'released',             'rrrrr', 'rrrrr', 'rrrrr', 'rrrrr'),
  ('*',        'interrupted',          'rrrrr', 'rrrrr', 'rrrrr', 'fffff'),
  ('*',        'snoozed',              'rrrrr', 'rrrrr', 'rrrrr', 'rrrrr'),
  ('*',        'completed',            'ddddd', 'ddddd', 'ddddd', 'ddddd');

-- What a job waits for after its n-th attempt, in seconds.
CREATE TABLE backoff (task text, at_1 numeric, at_3 numeric, at_24 numeric);
INSERT INTO backoff VALUES
  ('plain',          2.72,      20.09,  22026.47),
  ('steady',   2764803.00, 2764803.00, 2764803.00),
  ('prompt',         0.00,       0.00,      0.00),
  ('doubling',       2.00,       8.00,   3600.00),
  ('capped',         2.72,       5.00,      5.00),
  ('endless',  284018400.00, 315360000.00, 315360000.00);

-- The next state of jobs that are not plain, in their first attempt: p(arked), c(ancelled) too.
--   lost, failed, failed with retry unsaid, failed for good, failed with a delay, timed out,
--   released, interrupted, snoozed, completed
CREATE TABLE next_state_of (kind text PRIMARY KEY, letters text);
INSERT INTO next_state_of VALUES
  ('past alone',        'rrrfrrrrrd'),
  ('past queued',       'pppfpppppd'),
  ('future alone',      'rrrfrrrrrd'),
  ('future queued',     'pppfpppppd'),
  ('keyed alone',       'rrrfrrrrrd'),
  ('keyed queued',      'pppfpppppd'),
  ('taken alone',       'fffffffffd'),
  ('taken queued',      'fffffffffd'),
  ('superseded alone',  'fffffffffd'),
  ('superseded queued', 'fffffffffd'),
  ('cancelled alone',   'cccccccccd'),
  ('cancelled queued',  'cccccccccd');

-- --- the jobs -----------------------------------------------------------------------------------

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

-- Running jobs of all kinds, one for each ending.
INSERT INTO pulse.job (identifier, payload, queue_name, job_key, priority, run_at, state, attempts,
                       crashes, superseded, cancel_requested_at, worker_id, token, claimed_at,
                       claimed_live_us, activity_live_us, stage, checkpoint, last_error, recovered,
                       flags, created_at, scheduled_for, starts_when, parents, traceparent,
                       keeps_result, added_by, dead_letter_of)
  SELECT k.task, json_build_object('kind', k.name, 'ending', e.name), k.queue_name,
         k.job_key || e.name, 3, now() + k.run_in, 'running', k.attempts, k.crashes,
         k.superseded, CASE WHEN k.cancelled THEN pulse.now() END, 77,
         1000000 + row_number() OVER (), now(), 5, 6, 'half', '{"at": 2}', 'earlier', 'session',
         '{f}', now() + k.run_in, now() + k.run_in, 'ended', '[{"id": 1}]',
         '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', true, 'the producer', 4
    FROM kind AS k CROSS JOIN ending AS e;
-- Another waits with the key of those whose key is taken.
INSERT INTO pulse.job (identifier, job_key)
  SELECT 'other', job_key FROM pulse.job WHERE job_key LIKE 't%';
CREATE TABLE before AS
  SELECT j.*, j.payload ->> 'kind' AS kind, j.payload ->> 'ending' AS ending
    FROM pulse.job AS j WHERE j.state = 'running';

-- --- what is expected of each -------------------------------------------------------------------

CREATE FUNCTION at_attempt(attempts int, at_1 anyelement, at_3 anyelement, at_24 anyelement,
                           at_25 anyelement) RETURNS anyelement
  LANGUAGE sql AS $$
  SELECT CASE attempts WHEN 1 THEN at_1 WHEN 3 THEN at_3 WHEN 24 THEN at_24 ELSE at_25 END
$$;
CREATE TABLE expected AS
  SELECT b.*, e.outcome, e.error, e.retry_in, e.payload AS new_payload, e.run_at AS run_at_rule,
         e.attempts AS attempts_by, e.crashes AS crashes_by, e.is_audited,
         e.last_error AS new_error, e.recovered AS new_recovered, e.checkpoint AS new_checkpoint,
         round(at_attempt(b.attempts, w.at_1, w.at_3, w.at_24, NULL), 2) AS backoff,
         CASE l.letter WHEN 'r' THEN 'ready' WHEN 'p' THEN 'parked' WHEN 'f' THEN 'failed'
           WHEN 'q' THEN 'quarantined' WHEN 'c' THEN 'cancelled' WHEN 'd' THEN 'completed'
         END AS next_state
    FROM before AS b JOIN ending AS e ON e.name = b.ending
    JOIN backoff AS w ON w.task = b.identifier
    CROSS JOIN LATERAL (SELECT coalesce(
      (SELECT substr(s.letters, array_position(
         ARRAY['lost', 'failed', 'failed, retry unsaid', 'failed for good', 'failed, with a delay',
               'timed out', 'released', 'interrupted', 'snoozed', 'completed'], b.ending), 1)
         FROM next_state_of AS s WHERE s.kind = b.kind),
      (SELECT substr(at_attempt(b.attempts, n.at_1, n.at_3, n.at_24, n.at_25),
                     array_position('{0,1,2,3,32767}'::int[], b.crashes::int), 1)
         FROM next_state AS n
        WHERE n.ending = b.ending AND n.task IN ('*', b.identifier)
        ORDER BY n.task = '*' LIMIT 1)) AS letter) AS l;

-- A job that waits again is what it was, but for these columns.
CREATE VIEW expected_job AS
  SELECT x.id, to_jsonb(j) - '{run_at,updated_at}'::text[] || jsonb_build_object(
           'state', x.next_state, 'attempts', x.attempts + x.attempts_by,
           'crashes', least(x.crashes + x.crashes_by, 32767),
           'payload', coalesce(x.new_payload, x.payload)::jsonb, 'last_error', x.new_error,
           'recovered', x.new_recovered, 'checkpoint', coalesce(x.new_checkpoint, x.checkpoint),
           'worker_id', NULL, 'token', NULL, 'claimed_at', NULL, 'claimed_live_us', NULL,
           'activity_live_us', NULL, 'running_worker_id', NULL,
           'index_lane', CASE x.next_state WHEN 'parked' THEN 'p' ELSE 'o' END,
           'succession', CASE x.next_state WHEN 'parked' THEN 1 END) AS fact
    FROM expected AS x, LATERAL (SELECT b.* FROM before AS b WHERE b.id = x.id) AS j
   WHERE x.next_state IN ('ready', 'parked');
-- An ended one is kept as it was when it ran.
CREATE VIEW expected_finished AS
  SELECT x.id, jsonb_build_object(
           'id', x.id, 'identifier', x.identifier,
           'payload', coalesce(x.new_payload, x.payload)::jsonb, 'queue_name', x.queue_name,
           'priority', x.priority, 'run_at', x.run_at, 'state', x.next_state,
           'attempts', x.attempts, 'max_attempts', x.max_attempts,
           'crashes', CASE WHEN x.next_state <> 'completed'
             THEN least(x.crashes + x.crashes_by, 32767) ELSE 0 END,
           'job_key', x.job_key, 'flags', x.flags, 'worker_id', x.worker_id, 'token', x.token,
           'claimed_at', x.claimed_at, 'checkpoint', x.checkpoint,
           'result', CASE WHEN x.next_state = 'completed' THEN '{"r": 5}'::jsonb END,
           'last_error', CASE WHEN x.ending = 'snoozed' THEN 'snoozed' ELSE x.new_error END,
           'revision', x.revision, 'created_at', x.created_at,
           'scheduled_for', x.scheduled_for, 'starts_when', 'ended', 'cancelled_by', NULL,
           'parents', CASE WHEN x.next_state <> 'completed' THEN '[{"id": 1}]'::jsonb END,
           'traceparent', x.traceparent, 'start_by', NULL, 'keeps_result', true,
           'added_by', 'the producer', 'before_end', NULL, 'dead_letter_of', 4,
           'dead_letter_id', NULL) AS fact
    FROM expected AS x WHERE x.next_state NOT IN ('ready', 'parked');
CREATE VIEW expected_attempt AS
  SELECT x.id, jsonb_build_object(
           'job_id', x.id, 'token', x.token, 'attempt', x.attempts, 'worker_id', x.worker_id,
           'claimed_at', x.claimed_at, 'error', x.error,
           'outcome', CASE x.next_state WHEN 'cancelled' THEN 'cancelled' ELSE x.outcome END)
         AS fact
    FROM expected AS x WHERE x.is_audited OR x.next_state NOT IN ('ready', 'parked');

-- --- the ends -----------------------------------------------------------------------------------

CREATE FUNCTION endings(kinds text = '%') RETURNS pulse_internal.ending[] LANGUAGE sql AS $$
  SELECT array_agg(ROW(b.id, e.outcome, e.error, e.retry, e.retry_in, e.payload, e.cause)
                   ::pulse_internal.ending ORDER BY b.id)
    FROM before AS b JOIN ending AS e ON e.name = b.ending
   WHERE e.call = 'end' AND b.kind LIKE kinds
$$;
-- NULL for every other job: the attempt that runs.
CREATE FUNCTION tokens(kinds text = '%') RETURNS bigint[] LANGUAGE sql AS $$
  SELECT array_agg(CASE WHEN b.id % 2 = 0 THEN b.token END ORDER BY b.id)
    FROM before AS b JOIN ending AS e ON e.name = b.ending
   WHERE e.call = 'end' AND b.kind LIKE kinds
$$;
CREATE TABLE public.seen (what text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.seen VALUES (TG_TABLE_NAME);
  RETURN NULL;
END $$;
SAVEPOINT before;

SELECT is((SELECT count(*)::int FROM before), 1320, 'many kinds of jobs end in many ways');
SELECT is((SELECT count(*)::int FROM expected WHERE next_state IS NULL), 0,
  'something is expected of each');
SELECT is((SELECT string_agg(DISTINCT next_state, ', ' ORDER BY next_state) FROM expected),
  'cancelled, completed, failed, parked, quarantined, ready', 'every next state is met');

CREATE TEMP TABLE answer AS SELECT * FROM pulse_internal.end_attempts(endings(), tokens());
SELECT pulse.snooze(id, token, '1 month 1 day 7 s', '{"at": 3}') FROM before
 WHERE ending = 'snoozed' \g /dev/null
SELECT (pulse.complete_many(array_agg(id), array_agg(token), array_agg('{"r": 5}'::json))).*
  FROM before WHERE ending = 'completed' \g /dev/null

CREATE TEMP VIEW job_fact AS
  SELECT j.id, to_jsonb(b) - '{run_at,updated_at}'::text[] || to_jsonb(j)
               - '{run_at,updated_at}'::text[] AS fact
    FROM pulse.job AS j JOIN before AS b ON b.id = j.id;
CREATE TEMP VIEW finished_fact AS
  SELECT f.id, to_jsonb(f) - 'finished_at' AS fact FROM pulse.finished_job AS f;
CREATE TEMP VIEW attempt_fact AS
  SELECT a.job_id AS id, to_jsonb(a) - 'ended_at' AS fact FROM pulse.attempt AS a;
SELECT is_empty('TABLE expected_job EXCEPT TABLE job_fact', 'jobs wait again as expected');
SELECT is_empty('TABLE job_fact EXCEPT TABLE expected_job', 'and no others do');
SELECT is_empty('TABLE expected_finished EXCEPT TABLE finished_fact', 'jobs end as expected');
SELECT is_empty('TABLE finished_fact EXCEPT TABLE expected_finished', 'and no others do');
SELECT is_empty('TABLE expected_attempt EXCEPT TABLE attempt_fact', 'the audit is as expected');
SELECT is_empty('TABLE attempt_fact EXCEPT TABLE expected_attempt', 'and has no more');

-- --- moments ------------------------------------------------------------------------------------

-- Each call has a moment of its own, which the audit tells, and a snooze the updated row.
CREATE TEMP VIEW moment AS
  SELECT x.*, j.run_at AS next_run_at, j.updated_at AS updated,
         coalesce(a.ended_at, j.updated_at) AS ended_at,
         greatest(x.run_at, coalesce(a.ended_at, j.updated_at)) AS due_from
    FROM expected AS x JOIN pulse.job AS j ON j.id = x.id
    LEFT JOIN pulse.attempt AS a ON a.job_id = x.id;
SELECT is_empty($$SELECT * FROM moment WHERE updated <> ended_at$$,
  'a job that waits again was updated when its attempt ended');
SELECT is_empty($$SELECT * FROM pulse.finished_job AS f JOIN pulse.attempt AS a ON a.job_id = f.id
                   WHERE f.finished_at <> a.ended_at$$, 'one that ended finished then');
SELECT is_empty($$SELECT * FROM moment WHERE next_run_at <> CASE run_at_rule
                     WHEN 'as it was' THEN run_at WHEN 'due' THEN due_from
                     WHEN 'delay' THEN due_from + retry_in
                     WHEN 'delay from now' THEN ended_at + retry_in ELSE next_run_at END$$,
  'run_at is what the call says');
SELECT is_empty($$SELECT * FROM moment WHERE run_at_rule = 'backoff'
                     AND round(extract(epoch FROM next_run_at - due_from), 2) <> backoff$$,
  'or what the backoff of the task says');

-- --- answers ------------------------------------------------------------------------------------

SELECT is((SELECT count(*)::int FROM answer), cardinality(endings()), 'every ending is answered');
SELECT is_empty($$SELECT * FROM answer AS a JOIN expected AS x ON x.id = a.id
                   WHERE a.state <> x.next_state$$, 'with the state that the job is in');
SELECT is_empty($$SELECT * FROM answer AS a JOIN expected AS x ON x.id = a.id
                   WHERE x.outcome <> a.outcome$$, 'and with how the attempt ended');
SELECT is((SELECT count(*)::int FROM pulse_internal.end_attempts('{}')), 0, 'no ending, no answer');
SELECT is((SELECT count(*)::int FROM pulse_internal.end_attempts(NULL)), 0, 'nor of NULL');
SELECT is((SELECT count(*)::int FROM pulse_internal.end_attempts(endings())), 0,
  'an attempt that has ended does not end again');
ROLLBACK TO before;
SELECT is((SELECT count(*)::int FROM before AS b, LATERAL pulse_internal.end_attempts(ARRAY[
             ROW(b.id, 'failed', 'wrong', true, NULL, NULL, NULL)::pulse_internal.ending],
             ARRAY[b.token + 1])
            WHERE b.kind = 'past alone'), 0, 'nor does that of another token');
ROLLBACK TO before;

-- --- one key, two running jobs ------------------------------------------------------------------

-- A producer adds under the key of a running job whose row is held; then both run.
INSERT INTO pulse.job (identifier, job_key, state, attempts, worker_id, token)
  SELECT 'plain', 'twice', 'running', 1, 77, n FROM generate_series(1, 2) AS n;
SELECT is((SELECT array_agg(e.state ORDER BY e.id) FROM pulse_internal.end_attempts(
             (SELECT array_agg(ROW(j.id, 'failed', 'wrong', true, NULL, NULL, NULL)
                               ::pulse_internal.ending ORDER BY j.id)
                FROM pulse.job AS j WHERE j.job_key = 'twice'),
             (SELECT array_agg(j.token ORDER BY j.id)
                FROM pulse.job AS j WHERE j.job_key = 'twice')) AS e),
  '{ready,failed}', 'of two that fail in one call one waits again');
ROLLBACK TO before;

-- --- triggers of the operator -------------------------------------------------------------------

CREATE TRIGGER look AFTER UPDATE ON pulse.job FOR EACH ROW EXECUTE FUNCTION see();
SELECT count(*) FROM pulse_internal.end_attempts(endings('past%')) \g /dev/null
SELECT cmp_ok((SELECT count(*)::int FROM seen WHERE what = 'job'), '>', 0,
  'a trigger of the operator on pulse.job sees a job that runs again');
ROLLBACK TO before;
CREATE TRIGGER look AFTER INSERT ON pulse.attempt FOR EACH ROW EXECUTE FUNCTION see();
SELECT count(*) FROM pulse_internal.end_attempts(endings('past%')) \g /dev/null
SELECT cmp_ok((SELECT count(*)::int FROM seen WHERE what = 'attempt'), '>', 0,
  'and one on pulse.attempt the attempt');

SELECT * FROM finish();
ROLLBACK;
