-- Who may name whose jobs: every call by which a producer names a job, by every kind of role that
-- may call it, for a job of each producer in each state.
\ir support/setup.psql
SELECT plan(46);
SELECT current_user AS owner \gset

-- --- the roles ----------------------------------------------------------------------------------

-- web is a producer and cron a member of it; r1 and r2 are members of shop, a producer. The others
-- are strangers to all of them.
CREATE ROLE web;
CREATE ROLE cron IN ROLE web;
CREATE ROLE shop;
CREATE ROLE r1 IN ROLE shop;
CREATE ROLE r2 IN ROLE shop;
CREATE ROLE stranger;
CREATE ROLE runner;
CREATE ROLE ops;
CREATE ROLE chief SUPERUSER;       -- a server of a container may have a role root
SELECT pulse.grant_producer(r::regrole) FROM unnest('{web,shop,stranger,runner,ops}'::text[]) AS r
\g /dev/null
SELECT pulse.grant_worker('runner'), pulse.grant_operator('ops') \g /dev/null

-- A call through a function of web, whoever calls that function.
CREATE FUNCTION public.call_of_web(statement text) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  answer text;
BEGIN
  EXECUTE statement INTO answer;
  RETURN answer;
END $$;
ALTER FUNCTION public.call_of_web(text) OWNER TO web;

-- The producers that each asking role may name; every role may name jobs without a producer.
CREATE TEMP TABLE may_name (asking text, named text[]);
INSERT INTO may_name VALUES
  ('web',          '{web,cron}'),
  ('cron',         '{web,cron}'),
  ('call_of_web',  '{web,cron}'),
  ('r1',           '{shop,r1,r2}'),
  ('stranger',     '{stranger}'),
  ('runner',       '{}'),
  ('ops',          '{web,cron,shop,r2,stranger,chief,nobody}'),
  ('chief',         '{web,cron,shop,r2,stranger,chief,nobody}');

-- --- the jobs -----------------------------------------------------------------------------------

CREATE TEMP TABLE thing (id bigint, producer text, state text, job_key text);
-- Rolled back with the adds, so no id of a job that the grid adds is among these.
CREATE FUNCTION given_thing(producer text, state text) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  key text := concat_ws(' ', state, producer);
  worker bigint := given_worker();
  made bigint;
BEGIN
  made := (CASE WHEN state = 'waits'
           THEN pulse.add_job_after(ARRAY[given_job('parent')], 'mail', job_key => key)
           ELSE pulse.add_job('mail', '["theirs"]', job_key => key,
                  queue_name => CASE WHEN state = 'parked' THEN key END,
                  run_at => CASE WHEN state = 'later' THEN now() + interval '1 day' END) END).id;
  IF state IN ('running', 'undecided', 'completed') THEN
    PERFORM pulse.claim_job(worker, made);
  END IF;
  IF state = 'completed' THEN
    PERFORM pulse.complete(j.id, j.token) FROM pulse.job AS j WHERE j.id = made;
  ELSIF state = 'failed' THEN
    PERFORM pulse.permanently_fail_jobs(ARRAY[made], 'wrong');
  ELSIF state = 'cancelled' THEN
    PERFORM pulse.cancel_job(made);
  ELSIF state = 'undecided' THEN
    UPDATE pulse.job AS j SET state = 'parked', key_is_undecided = true, worker_id = NULL
     WHERE j.id = made;
  END IF;
  UPDATE pulse.job AS j SET added_by = producer WHERE j.id = made;
  UPDATE pulse.finished_job AS f SET added_by = producer WHERE f.id = made;
  IF state = 'gone' THEN
    DELETE FROM pulse.job AS j WHERE j.id = made;
  END IF;
  RETURN made;
END $$;
SET LOCAL pulse.keep_completed = -1;
INSERT INTO thing
SELECT given_thing(p, s), p, s, concat_ws(' ', s, p)
  FROM unnest('{web,cron,shop,r2,stranger,chief,nobody,NULL}'::text[]) AS p,
       unnest(string_to_array('ready later parked waits running undecided failed cancelled '
                              'completed gone', ' ')) AS s;

SELECT is((SELECT count(*) FROM thing), 80::bigint,
  'there is a job of each producer in each state');
SELECT is_empty($$
  SELECT t.id, t.state, j.state, f.state FROM thing AS t
    LEFT JOIN pulse.job AS j ON j.id = t.id LEFT JOIN pulse.finished_job AS f ON f.id = t.id
   WHERE coalesce(CASE WHEN j.key_is_undecided THEN 'undecided' WHEN j.waits_on IS NOT NULL
                    THEN 'waits' WHEN j.run_at > now() THEN 'later' END,
                  j.state::text, f.state::text, 'gone') <> t.state
      OR coalesce(j.added_by, f.added_by) IS DISTINCT FROM CASE WHEN t.state <> 'gone'
           THEN t.producer END$$, 'and each is in its table, in its state, of its producer');

-- --- the calls ----------------------------------------------------------------------------------

CREATE TEMP TABLE call (call text, names text, statement text);
INSERT INTO call VALUES
  ('add_job', 'key', $$pulse.add_job('task', '["mine"]', job_key => %1$L)$$),
  ('add_job, preserve_run_at', 'key',
   $$pulse.add_job('task', '["mine"]', job_key => %1$L, job_key_mode => 'preserve_run_at')$$),
  ('add_job, unsafe_dedupe', 'key',
   $$pulse.add_job('task', job_key => %1$L, job_key_mode => 'unsafe_dedupe')$$),
  ('add_jobs', 'key', $$pulse.add_jobs(ARRAY[ROW('task', '["mine"]', NULL, NULL, NULL, %1$L, NULL,
                                                  NULL)::pulse.job_spec])$$),
  ('add_job_after', 'key', $$pulse.add_job_after('{}', 'task', '["mine"]', job_key => %1$L)$$),
  ('add_flow', 'key', $$pulse.add_flow(json_build_array(json_build_object(
                          'identifier', 'task', 'job_key', %1$L)))$$),
  ('remove_job', 'key', $$pulse.remove_job(%1$L)$$),
  ('add_job_after, parent', 'id', $$pulse.add_job_after(ARRAY[%2$s::bigint], 'task')$$),
  ('add_flow, parent', 'id', $$pulse.add_flow(json_build_array(json_build_object(
                          'identifier', 'task', 'after', json_build_array(%2$s))))$$),
  ('add_dependency', 'id', $$pulse.add_dependency(%2$s, '{}')$$),
  ('add_dependency, parent', 'parent',
   $$(SELECT pulse.add_dependency(m.id, ARRAY[%2$s::bigint]) FROM pulse.add_job('task') AS m)$$);

-- What tables say of a job.
CREATE FUNCTION told_of(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT concat_ws('|',
    (SELECT j::text FROM pulse.job AS j WHERE j.id = job_id),
    (SELECT f::text FROM pulse.finished_job AS f WHERE f.id = job_id),
    (SELECT string_agg(s::text, ',') FROM pulse.superseded_job AS s
      WHERE s.job_id = told_of.job_id),
    (SELECT string_agg(d::text, ',') FROM pulse.dependency AS d
      WHERE d.child_id = told_of.job_id OR told_of.job_id = ANY (d.parents)))
$$;

-- The code, ! if the job is another afterwards, + if the call has added a job, ? if its answer
-- names the job. What it did is undone.
CREATE FUNCTION answer_to(statement text, asking text, job_id bigint) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  before text := told_of(job_id);
  jobs bigint := (SELECT count(*) FROM pulse.job);
  answer text;
  code text := 'ok';
BEGIN
  statement := format('SELECT string_agg(r::text, '' '') FROM %s AS r', statement);
  BEGIN
    BEGIN
      IF asking = 'call_of_web' THEN
        answer := public.call_of_web(statement);
      ELSE
        PERFORM set_config('role', asking, true);
        EXECUTE statement INTO answer;
      END IF;
      PERFORM set_config('role', 'none', true);
    EXCEPTION WHEN OTHERS THEN
      code := SQLSTATE;
    END;
    RAISE EXCEPTION USING ERRCODE = 'PU999', MESSAGE = concat(code,
      CASE WHEN told_of(job_id) <> before THEN '!' END,
      CASE WHEN (SELECT count(*) FROM pulse.job) > jobs THEN '+' END,
      CASE WHEN answer LIKE '%(' || job_id || ',%' THEN '?' END);
  EXCEPTION WHEN SQLSTATE 'PU999' THEN
    RETURN SQLERRM;
  END;
END $$;

CREATE TEMP TABLE found AS
  SELECT c.call, a.asking, t.producer, t.state,
         answer_to(format(c.statement, t.job_key, t.id), a.asking, t.id) AS answer
    FROM call AS c, may_name AS a, thing AS t;

-- --- what must hold -----------------------------------------------------------------------------

-- Of a job that the caller may name, and of a stranger's. An ended job leaves its key free.
CREATE TEMP TABLE expected (names text, call text, state text, own text, strangers text);
INSERT INTO expected
SELECT c.names, c.call, s,
       CASE WHEN s IN ('failed', 'cancelled', 'completed', 'gone')
              THEN CASE WHEN c.call = 'remove_job' THEN 'ok' ELSE 'ok+' END
            WHEN s IN ('running', 'undecided')
              THEN CASE WHEN c.call = 'remove_job' THEN 'ok!?'
                        WHEN c.call LIKE '%unsafe_dedupe' THEN 'ok?' ELSE 'ok!+' END
            WHEN c.call = 'add_flow' THEN 'ok!'
            ELSE 'ok!?' END,
       CASE WHEN c.call = 'remove_job' THEN 'ok'
            WHEN s IN ('failed', 'cancelled', 'completed', 'gone') THEN 'ok+'
            ELSE '42501' END
  FROM call AS c, (SELECT DISTINCT t.state FROM thing AS t) AS s (s) WHERE c.names = 'key';
INSERT INTO expected
SELECT c.names, c.call, s,
       CASE WHEN c.call NOT LIKE 'add_dependency%' THEN 'ok!+'
            -- Of jobs that this transaction has added and that wait for nothing.
            WHEN c.names = 'parent' AND s IN ('ready', 'later', 'parked', 'running', 'undecided')
              THEN 'ok!+'
            WHEN c.names = 'parent' THEN 'PU004'
            WHEN s = 'gone' THEN 'PU005'
            WHEN s IN ('ready', 'later', 'parked', 'waits') THEN 'ok' ELSE 'PU004' END,
       CASE WHEN s <> 'gone' THEN 'PU005'
            WHEN c.names = 'parent' THEN 'PU004'
            WHEN c.call = 'add_dependency' THEN 'PU005' ELSE 'ok!+' END
  FROM call AS c, (SELECT DISTINCT t.state FROM thing AS t) AS s (s) WHERE c.names <> 'key';

SELECT is((SELECT count(*) FROM found), (11 * 8 * 80)::bigint, 'each cell has its call');
SELECT is_empty(format($$
  SELECT f.call, f.asking, f.producer, f.state, f.answer, e.own, e.strangers
    FROM found AS f JOIN expected AS e USING (call, state) JOIN may_name AS a USING (asking)
   WHERE f.call = %L
     AND f.answer IS DISTINCT FROM CASE WHEN f.producer = ANY (a.named) OR f.producer IS NULL
           THEN e.own ELSE e.strangers END$$, c.call),
  c.call || ': each role names the jobs of its producer, and no other')
  FROM call AS c ORDER BY c.call;

-- --- who is one producer ------------------------------------------------------------------------

CREATE FUNCTION may_name(asking text, producer text) RETURNS boolean
  LANGUAGE sql RETURN pulse_internal.may_name(producer, asking);
CREATE ROLE deep IN ROLE r1;
CREATE ROLE apart NOINHERIT IN ROLE shop;
SELECT ok(may_name('deep', 'r2'), 'members of members count');
SELECT ok(may_name('r2', 'deep'), 'in both directions');
SELECT ok(may_name('apart', 'r1'), 'a member that inherits nothing counts');
SELECT ok(NOT may_name('web', 'chief'), 'a job of a superuser is a stranger''s');
GRANT shop TO chief;
SELECT ok(may_name('r1', 'chief'), 'until a granted role has the superuser as a member');
SELECT ok(NOT may_name('web', 'chief'), 'which joins no other producer to the superuser');
CREATE ROLE club;
CREATE ROLE m1 IN ROLE club;
CREATE ROLE m2 IN ROLE club;
SELECT ok(NOT may_name('m1', 'm2'), 'members of a role without the right are strangers');
GRANT EXECUTE ON FUNCTION pulse.remove_job(text) TO club;
SELECT ok(NOT may_name('m1', 'm2'), 'also of a role that may call another function');
GRANT EXECUTE ON FUNCTION pulse.add_job(text, json, text, timestamptz, int, text, int, text[], text)
  TO club;
SELECT ok(may_name('m1', 'm2'), 'members of a role that may call add_job are one producer');
GRANT EXECUTE ON FUNCTION pulse.add_job(text, json, text, timestamptz, int, text, int, text[], text)
  TO PUBLIC;
SELECT ok(NOT may_name('web', 'stranger'), 'PUBLIC joins nobody');
ALTER ROLE r2 RENAME TO r3;
SELECT ok(NOT may_name('r1', 'r2'), 'a name without a role belongs to no producer');
SELECT ok(may_name('ops', 'r2'), 'but operators may name its jobs');
SELECT ok(may_name(NULL, NULL) AND NOT may_name(NULL, 'web'),
  'a schedule without a producer names jobs without one only');

-- --- who has added a job ------------------------------------------------------------------------

CREATE FUNCTION producer_of(job_id bigint) RETURNS text
  LANGUAGE sql AS $$ SELECT j.added_by FROM pulse.job AS j WHERE j.id = job_id $$;
SET LOCAL ROLE web;
SELECT id AS one FROM pulse.add_job('mail') \gset
SELECT id AS many FROM pulse.add_jobs('{"(mail,,,,,,,)"}') \gset
SELECT id AS keyed FROM pulse.add_job('mail', job_key => 'by web') \gset
SELECT id AS after FROM pulse.add_job_after(ARRAY[:one]::bigint[], 'mail') \gset
SELECT min(id) AS first, max(id) AS last
  FROM pulse.add_flow('[{"identifier": "mail"},
                        {"identifier": "mail", "job_key": "of flow"}]') \gset
SET LOCAL ROLE cron;
SELECT id AS replaced FROM pulse.add_job('letter', job_key => 'by web') \gset
RESET ROLE;
SELECT is(producer_of(j), 'web', 'web has added it: ' || how)
  FROM (VALUES ('add_job', :one), ('add_jobs', :many), ('add_job with a key', :keyed),
               ('add_job_after', :after), ('add_flow', :first), ('add_flow with a key', :last))
    AS v (how, j);
SELECT is(producer_of(:replaced), 'web', 'a job that is replaced keeps its producer');
SELECT is(producer_of(public.call_of_web('SELECT id FROM pulse.add_job(''mail'')')::bigint), 'web',
  'a function of web adds jobs of web, whoever calls');
INSERT INTO pulse.job (identifier) VALUES ('mail') RETURNING id AS written \gset
SELECT is(producer_of(:written), :'owner', 'a row has the role that writes it');

-- --- schedules ----------------------------------------------------------------------------------

SELECT pulse.grant_scheduler('web') \g /dev/null
SET LOCAL ROLE web;
SELECT added_by AS scheduled FROM pulse.schedule('hourly', 'mail', '0 * * * *') \gset
SELECT pulse.schedule('taken', 'mail', every => '1 hour', job_key => 'ready stranger') \g /dev/null
SELECT pulse.load_crontab('file', '[{"name": "daily", "identifier": "mail", "cron": "0 4 * * *"}]')
\g /dev/null
RESET ROLE;
SELECT is(:'scheduled'::text, 'web', 'a schedule has the role that stored it');
SELECT is((SELECT s.added_by FROM pulse.schedule AS s WHERE s.name = 'daily'), 'web',
  'so has that of a crontab');
SELECT is((SELECT added_by FROM pulse.run_schedule_now('hourly')), 'web',
  'its jobs have that producer, whoever runs it now');
SELECT throws_ok($$SELECT pulse.run_schedule_now('taken')$$, '42501', NULL,
  'a schedule replaces no job of a stranger');
SELECT travel('25 hours');
-- A sweep is short, and settles what it can.
DO $$ BEGIN WHILE pulse_internal.settle_schedules('infinity') LOOP END LOOP; END $$;
SELECT is((SELECT array_agg(DISTINCT j.added_by) FROM pulse.job AS j
            WHERE j.scheduled_for IS NOT NULL), '{web}', 'as have its jobs of due times');
SELECT alike((SELECT s.last_error FROM pulse.schedule AS s WHERE s.name = 'taken'),
  '%another producer%', 'a due time whose key a stranger has is missed, and the schedule says why');
SELECT is((SELECT j.payload::text FROM pulse.job AS j WHERE j.job_key = 'ready stranger'),
  '["theirs"]', 'and the job of the stranger stays');

-- --- behind the function of another role --------------------------------------------------------

CREATE ROLE looker;
SELECT pulse.grant_observer('looker') \g /dev/null
CREATE FUNCTION public.look_at(job_id bigint) RETURNS text LANGUAGE sql SECURITY DEFINER
  AS $$ SELECT concat(pulse.get_job(job_id)::text, pulse.read_job(job_id)::text,
          (SELECT string_agg(a::text, ',') FROM pulse.job_attempts(job_id) AS a),
          (SELECT string_agg(l::text, ',') FROM pulse.list_jobs() AS l)) $$;
ALTER FUNCTION public.look_at(bigint) OWNER TO looker;
SELECT id AS failed FROM thing WHERE state = 'failed' AND producer = 'web' \gset
SELECT id AS ready FROM thing WHERE state = 'ready' AND producer = 'web' \gset
SELECT alike(public.look_at(:failed), '%failed%', 'an observer''s function, called by the owner');
SELECT unalike(public.look_at(:failed) || public.look_at(:ready), '%theirs%',
  'shows no payload that the observer may not read');
SELECT unalike(public.look_at(:failed), '%wrong%', 'and no error');

SELECT * FROM finish();
ROLLBACK;
