-- Every public function, called by every kind of role with something of its own, of another role,
-- and of no role: who may call it, what comes back, and what changes.
\ir support/setup.psql
SELECT plan(8);

-- --- the grid -----------------------------------------------------------------------------------

-- Letters: p producer, w worker, o operator, b observer, s scheduler, c caller; none: the owner.
-- Then what a call brings with something of the caller's, of another role's, of none: ok or a code.
-- With P it shows the payload of that job, with T its token, with N the name of that worker, with E
-- the error of that job. With ! it changes that job, that worker or that queue. Where kinds of role
-- get different answers, the answers stand in the order of the letters.
--
-- The token beside another role's job is not that of its claim. Roles of workers trust each other:
-- each may claim every task and act for every worker, so held() shows what a claim would.
CREATE TEMP TABLE grid (call text, letters text, own text, other text, no_such text);
COPY grid FROM stdin WITH (DELIMITER '|');
now                                   |pwobsc|ok          |ok          |ok
version                               |pwobsc|ok          |ok          |ok
add_job                               |p   |ok          |ok          |ok
add_dependency                        |p   |PU004       |PU005       |PU005
add_flow                              |p   |ok          |PU005       |PU005
add_job, waiting key                  |p   |ok!         |42501       |ok
add_job, running key                  |p   |ok          |42501       |ok
add_job, waiting key, unsafe_dedupe   |p   |ok!         |42501       |ok
add_job, running key, unsafe_dedupe   |p   |ok          |42501       |ok
add_job, queue                        |p   |ok          |ok          |ok
add_job_after                         |p   |ok          |PU005       |PU005
add_job_for_request                   |p   |ok          |ok          |ok
add_job_once                          |p   |ok          |ok          |ok
add_jobs, waiting key                 |p   |ok!         |42501       |ok
forget_once                           |po  |ok          |ok          |ok
remove_job, waiting key               |p   |ok!         |ok          |ok
remove_job, running key               |p   |ok          |ok          |ok
attach_worker                         |w   |ok!         |ok!         |PU002
call_handler                          |w   |ok          |PU001       |PU001
check_host                            |w   |ok          |ok          |PU002
claim                                 |w   |okPE!       |okPE!       |PU002
claim_job, waiting                    |w   |okPE!       |okPE!       |ok
claim_job, running                    |w   |okPTE       |ok          |ok
claim_job, ended                      |w   |ok          |ok          |ok
complete                              |w   |ok!         |PU001       |PU001
complete_many                         |w   |ok!         |ok          |ok
declare_lost                          |wo  |ok!         |ok!         |PU002
deregister_worker                     |w   |ok!         |ok!         |PU002
fail                                  |w   |ok!         |PU001       |PU001
fail_late                             |w   |ok!         |ok          |ok
fail_many                             |w   |ok!         |ok          |ok
fence                                 |w   |ok          |PU001       |PU001
get_job, waiting                      |wob |ok okPE ok  |ok okPE ok  |PU005
get_job, running                      |wob |ok okPTE ok |ok okPTE ok |PU005
get_job, ended                        |wob |ok okPE ok  |ok okPE ok  |PU005
handler_tasks                         |w   |ok          |ok          |ok
heartbeat                             |w   |ok!         |ok!         |ok
held                                  |w   |okPTE       |okPTE       |ok
held_job                              |w   |okPTE       |PU001       |PU001
perform_job                           |w   |ok!         |PU001       |PU001
progress                              |w   |ok!         |PU001       |PU001
register_worker                       |w   |ok          |ok          |ok
release                               |w   |ok!         |ok          |ok
serve_tasks                           |w   |ok!         |ok!         |PU002
snooze                                |w   |ok!         |PU001       |PU001
sweep                                 |wo  |ok          |ok          |ok
task_limits                           |w   |ok          |ok          |ok
wait_for_job                          |w   |PU006       |PU006       |PU006
adopt_installation                    |o   |ok          |ok          |ok
cancel_flow                           |o   |PU005       |PU005       |PU005
cancel_job, waiting                   |o   |ok!         |ok!         |PU005
cancel_job, running                   |o   |ok!         |ok!         |PU005
complete_jobs                         |o   |okPE!       |okPE!       |ok
cron_setup_sql                        |o   |ok          |ok          |ok
delete_finished                       |o   |ok!         |ok!         |ok
drain_worker                          |o   |ok!         |ok!         |PU002
drain_workers                         |o   |ok!         |ok!         |ok
force_unlock_workers                  |o   |ok!         |ok!         |ok
pause_queue                           |o   |ok!         |ok!         |ok!
permanently_fail_jobs                 |o   |okP!        |okP!        |ok
note_operation                        |o   |ok          |ok          |ok
preview_operation                     |o   |ok          |ok          |ok
run_operation                         |o   |PU005       |PU005       |PU005
run_tick                              |o   |2D000       |2D000       |2D000
start_operation                       |o   |ok          |ok          |ok
stop_operation                        |o   |PU005       |PU005       |PU005
undo_operation                        |o   |PU005       |PU005       |PU005
requeue_job                           |o   |ok!         |ok!         |PU005
reschedule_jobs                       |o   |okPE!       |okPE!       |ok
resume_queue                          |o   |ok!         |ok!         |PU005
retry_job                             |o   |okPE!       |okPE!       |PU005
set_queue                             |o   |ok!         |ok!         |ok!
unset_queue                           |o   |ok!         |ok!         |ok
set_shard                             |o   |ok          |ok          |ok
set_task                              |o   |ok          |ok          |ok
unset_task                            |o   |ok          |ok          |ok
explain_job, waiting                  |ob  |ok          |ok          |PU005
explain_job, running                  |ob  |ok          |ok          |PU005
explain_job, ended                    |ob  |ok          |ok          |PU005
count_jobs                            |ob  |ok          |ok          |ok
doctor                                |ob  |ok          |okN         |ok
explain_task                          |ob  |ok          |ok          |ok
flow_jobs                             |ob  |ok          |ok          |ok
job_attempts                          |ob  |ok          |ok          |ok
list_ended_jobs                       |ob  |okE ok      |okE ok      |ok
list_failures                         |ob  |okE ok      |okE ok      |ok
list_flows                            |ob  |ok          |ok          |ok
operation_actions                     |ob  |ok          |ok          |ok
list_jobs                             |ob  |okE ok      |okE ok      |ok
list_unique_keys                      |ob  |ok          |ok          |ok
overview                              |ob  |ok          |ok          |ok
queue_status                          |ob  |ok          |ok          |ok
rate_histogram                        |ob  |ok          |ok          |ok
rate_history                          |ob  |ok          |ok          |ok
rates                                 |ob  |ok          |ok          |ok
read_job, waiting                     |ob  |okPE ok     |okPE ok     |PU005
read_job, running                     |ob  |okPTE ok    |okPTE ok    |PU005
read_job, ended                       |ob  |okPE ok     |okPE ok     |PU005
recoveries                            |ob  |ok          |ok          |ok
stats                                 |ob  |ok          |ok          |ok
unserved                              |ob  |ok          |ok          |ok
stop_worker                           |o   |ok!         |ok!         |PU002
stop_workers                          |o   |ok!         |ok!         |ok
tick                                  |o   |ok          |ok          |ok
verify                                |o   |ok          |ok          |ok
cron_runs                             |s   |ok          |ok          |ok
load_crontab                          |s   |ok          |ok          |ok
next_runs                             |obs |PU005       |PU005       |PU005
pause_schedule                        |s   |PU005       |PU005       |PU005
resume_schedule                       |s   |PU005       |PU005       |PU005
run_schedule_now                      |s   |PU005       |PU005       |PU005
schedule                              |s   |ok          |ok          |ok
unschedule                            |s   |ok          |ok          |ok
ended                                 |c   |okE         |okE         |ok
wait_for_end                          |c   |PU006       |PU006       |PU006
import_graphile_worker                |    |-           |-           |-
grant_producer                        |    |-           |-           |-
grant_worker                          |    |-           |-           |-
grant_operator                        |    |-           |-           |-
grant_scheduler                       |    |-           |-           |-
grant_caller                          |    |-           |-           |-
grant_observer                        |    |-           |-           |-
revoke_producer                       |    |-           |-           |-
revoke_worker                         |    |-           |-           |-
revoke_operator                       |    |-           |-           |-
revoke_scheduler                      |    |-           |-           |-
revoke_caller                         |    |-           |-           |-
revoke_observer                       |    |-           |-           |-
\.
UPDATE grid SET call = btrim(call), letters = btrim(letters), own = btrim(own),
  other = btrim(other), no_such = btrim(no_such);

-- --- the calls ----------------------------------------------------------------------------------

\ir support/rights_calls.sql

-- --- what is named ------------------------------------------------------------------------------

CREATE ROLE pulse_p;
CREATE ROLE pulse_w;
CREATE ROLE pulse_o;
CREATE ROLE pulse_b;
CREATE ROLE pulse_s;
CREATE ROLE pulse_c;
CREATE ROLE pulse_n;
SELECT pulse.grant_producer('pulse_p'), pulse.grant_worker('pulse_w'),
       pulse.grant_operator('pulse_o'), pulse.grant_observer('pulse_b'),
       pulse.grant_scheduler('pulse_s'), pulse.grant_caller('pulse_c') \g /dev/null

CREATE TEMP TABLE thing (
  whose text, waiting bigint, running bigint, token bigint, ended bigint, worker bigint,
  name text, key text, running_key text, queue text);
CREATE FUNCTION given_things(whose text, producer text) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  made thing := ROW(whose, NULL, NULL, NULL, NULL, NULL, 'worker-' || whose, 'key-' || whose,
                    'running-key-' || whose, 'queue-' || whose);
  payload json := to_json(ARRAY['payload-' || whose]);
BEGIN
  made.worker := given_worker(made.name);
  PERFORM pulse.set_queue(made.queue);
  made.ended := (pulse.add_job('task', payload)).id;
  PERFORM pulse.permanently_fail_jobs(ARRAY[made.ended], 'error-' || whose);
  made.running := (pulse.add_job('task', payload, job_key => made.running_key)).id;
  SELECT (c.job).token INTO made.token FROM pulse.claim_job(made.worker, made.running) AS c;
  UPDATE pulse.job SET last_error = 'error-' || whose, message = 'error-' || whose
   WHERE id = made.running;
  made.waiting := (pulse.add_job('task', payload, job_key => made.key)).id;
  UPDATE pulse.job SET last_error = 'error-' || whose WHERE id = made.waiting;
  UPDATE pulse.job SET added_by = producer WHERE id IN (made.running, made.waiting);
  UPDATE pulse.finished_job SET added_by = producer WHERE id = made.ended;
  INSERT INTO thing SELECT made.*;
END $$;
CREATE FUNCTION public.handle(payload json) RETURNS text LANGUAGE sql SECURITY DEFINER
  RETURN 'handled';
SELECT pulse.set_task('task', handler => 'public.handle(json)') \g /dev/null
SELECT given_things('own', 'pulse_p') \g /dev/null
SELECT given_things('other', 'pulse_x') \g /dev/null
-- Long enough ago for the doctor, which names the first that has no session.
UPDATE pulse.worker SET started_at = started_at - interval '1 minute';
INSERT INTO thing VALUES ('no_such', 9007199254740997, 9007199254740998, NULL,
  9007199254740999, 9007199254740996,
  'worker-none', 'key-none', 'running-key-none', 'queue-none');

CREATE FUNCTION statement_of(statement text, whose text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  named record;
BEGIN
  statement := CASE WHEN statement LIKE 'CALL %' THEN statement
                 ELSE format('SELECT string_agg(r::text, '' '') FROM %s AS r', statement) END;
  FOR named IN
    SELECT j.key, j.value FROM thing AS t, jsonb_each_text(to_jsonb(t)) AS j
     WHERE t.whose = statement_of.whose AND j.key NOT IN ('whose', 'token')
    UNION ALL SELECT 'token', t.token::text FROM thing AS t WHERE t.whose = 'own'
    UNION ALL SELECT 'mine', t.worker::text FROM thing AS t WHERE t.whose = 'own'
  LOOP
    statement := replace(statement, '{' || named.key || '}', CASE WHEN named.value ~ '^\d+$'
      THEN named.value || '::bigint' ELSE quote_literal(named.value) END);
  END LOOP;
  RETURN statement;
END $$;

-- What the tables say of these things.
CREATE FUNCTION told_of(whose text) RETURNS text
  LANGUAGE sql AS $$
  SELECT md5(concat_ws('|',
    (SELECT string_agg(j::text, ',' ORDER BY j.id) FROM pulse.job AS j
      WHERE j.id IN (t.waiting, t.running, t.ended)),
    (SELECT string_agg(f::text, ',' ORDER BY f.id) FROM pulse.finished_job AS f
      WHERE f.id IN (t.waiting, t.running, t.ended)),
    (SELECT w::text FROM pulse.worker AS w WHERE w.id = t.worker),
    (SELECT h::text FROM pulse.heartbeat AS h WHERE h.worker_id = t.worker),
    (SELECT q::text FROM pulse.queue AS q WHERE q.queue_name = t.queue),
    (SELECT p::text FROM pulse.queue_pause AS p WHERE p.queue_name = t.queue AND p.job_id = 0)))
    FROM thing AS t WHERE t.whose = told_of.whose
$$;

CREATE FUNCTION shown_of(whose text, answer text) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat(CASE WHEN answer LIKE '%payload-' || t.whose || '%' THEN 'P' END,
                CASE WHEN answer LIKE '%' || t.token || '%' THEN 'T' END,
                CASE WHEN answer LIKE '%' || t.name || '%' THEN 'N' END,
                CASE WHEN answer LIKE '%error-' || t.whose || '%' THEN 'E' END)
    FROM thing AS t WHERE t.whose = shown_of.whose
$$;

-- The answer, its refusal included; what the call did is undone.
CREATE FUNCTION answer_to(statement text, whose text, role name) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  before text := told_of(whose);
  answer text;
  code text := 'ok';
  detail text;
  hint text;
  is_changed text;
BEGIN
  BEGIN
    BEGIN
      PERFORM set_config('role', role, true);
      IF statement LIKE 'CALL %' THEN
        EXECUTE statement;
      ELSE
        EXECUTE statement INTO answer;
      END IF;
      PERFORM set_config('role', 'none', true);
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, answer = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
      answer := concat_ws(' ', answer, detail, hint);
    END;
    is_changed := CASE WHEN told_of(whose) <> before THEN '!' ELSE '' END;
    RAISE EXCEPTION 'undone' USING ERRCODE = 'PU999';
  EXCEPTION WHEN SQLSTATE 'PU999' THEN
    RETURN concat(code, CASE WHEN code = '42501' AND answer LIKE 'permission denied for %'
                          THEN ' barred' END, shown_of(whose, answer), is_changed);
  END;
END $$;

CREATE TEMP TABLE answer AS
  SELECT c.call, l.letter, t.whose,
         answer_to(statement_of(c.statement, t.whose), t.whose, 'pulse_' || l.letter) AS answer
    FROM call AS c, thing AS t,
         unnest('{p,w,o,b,s,c,n}'::text[]) WITH ORDINALITY AS l (letter, place)
   ORDER BY l.place;

-- --- what must hold -----------------------------------------------------------------------------

CREATE FUNCTION joined(answers text[]) RETURNS text
  LANGUAGE sql AS $$
  SELECT CASE WHEN count(DISTINCT a) = 1 THEN min(a) ELSE array_to_string(answers, ' ') END
    FROM unnest(answers) AS a
$$;
CREATE TEMP VIEW found AS
  SELECT a.call,
         coalesce(string_agg(a.letter, '' ORDER BY strpos('pwobsc', a.letter))
                    FILTER (WHERE a.whose = 'own'), '') AS letters,
         joined(array_agg(a.answer ORDER BY strpos('pwobsc', a.letter))
                  FILTER (WHERE a.whose = 'own')) AS own,
         joined(array_agg(a.answer ORDER BY strpos('pwobsc', a.letter))
                  FILTER (WHERE a.whose = 'other')) AS other,
         joined(array_agg(a.answer ORDER BY strpos('pwobsc', a.letter))
                  FILTER (WHERE a.whose = 'no_such')) AS no_such
    FROM answer AS a WHERE a.answer NOT LIKE '% barred%'
   GROUP BY a.call
  UNION ALL
  SELECT a.call, '', '-', '-', '-' FROM answer AS a
   GROUP BY a.call HAVING bool_and(a.answer LIKE '% barred%');

SELECT is_empty('SELECT * FROM found EXCEPT SELECT * FROM grid',
  'each call by each kind of role brings what the grid says');
SELECT is_empty('SELECT * FROM grid EXCEPT SELECT * FROM found', 'and the grid says nothing else');
SELECT is_empty(
  $$SELECT call FROM answer WHERE letter = 'n' AND answer NOT LIKE '42501 barred%'$$,
  'a role without a grant calls nothing');
SELECT is_empty(
  $$SELECT call, letter, answer FROM answer
     WHERE whose = 'other' AND regexp_replace(answer, '^(ok|\w{5})( barred)?', '') ~ '[PTNE]'
       AND letter <> 'o'
       AND NOT (letter = 'w' AND split_part(call, ',', 1) IN ('claim', 'claim_job', 'held'))
       AND NOT (letter = 'c' AND call = 'ended')
       AND NOT (letter = 'b' AND call = 'doctor')$$,
  'of another role''s job an operator sees what it says, a worker that has it, a caller its end');

-- A function is internal by its schema.
CREATE TEMP VIEW routine AS
  SELECT p.oid, p.proname::text AS name,
         n.nspname <> 'pulse' AS is_internal
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
   WHERE n.nspname IN ('pulse', 'pulse_internal');
SELECT is_empty(
  $$SELECT name FROM routine WHERE NOT is_internal
    EXCEPT SELECT split_part(call, ',', 1) FROM grid$$,
  'no public function is missing in the grid');
SELECT is_empty(
  $$SELECT split_part(call, ',', 1) FROM grid
    EXCEPT SELECT name FROM routine WHERE NOT is_internal$$,
  'nor does it speak of one that is not there');
SELECT is_empty(
  $$SELECT r.name, l.letter FROM routine AS r, unnest('{p,w,o,b,s,c,n}'::text[]) AS l (letter)
     WHERE r.is_internal AND has_function_privilege('pulse_' || l.letter, r.oid, 'EXECUTE')
           <> (l.letter IN ('o', 'b') AND ltrim(r.name, '_') IN (
                 'attachment_state', 'ended_live_us', 'first_id', 'interval', 'is_attached',
                 'is_missing', 'is_silent', 'least_threshold_us', 'live_now_us', 'loss_cause',
                 'running_ids', 'setting_us', 'shard_of', 'status_of', 'told_number', 'us'))$$,
  'no role but the owner calls an internal function, except those that views call');

SELECT is_empty(
  $$SELECT r.name FROM routine AS r, pg_extension AS e
     WHERE e.extname = 'pg_pulse' AND (NOT has_function_privilege(e.extowner, r.oid, 'EXECUTE')
           OR has_function_privilege('public', r.oid, 'EXECUTE'))$$,
  'the owner may call everything, and PUBLIC nothing');

SELECT * FROM finish();
ROLLBACK;
