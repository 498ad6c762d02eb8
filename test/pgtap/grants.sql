-- sql/guard/grants.sql: nothing is granted to PUBLIC, and what is granted leads no further than it
-- says. roles.sql has the grid of who may do what.
\ir support/setup.psql
SELECT plan(26);

-- --- what nobody has (P11) -----------------------------------------------------------------------

SELECT ok(NOT has_schema_privilege('public', s, p), 'PUBLIC has no right to ' || p || ' in ' || s)
  FROM unnest(ARRAY['USAGE', 'CREATE']) AS p, unnest(ARRAY['pulse', 'pulse_internal']) AS s;
SELECT is_empty(
  $$SELECT oid::regprocedure FROM pg_proc
     WHERE pronamespace::regnamespace::text ~ '^pulse'
       AND has_function_privilege('public', oid, 'EXECUTE')$$,
  'PUBLIC can execute no function of the schema, not even an internal one');
SELECT is_empty(
  $$SELECT oid::regclass FROM pg_class
     WHERE relnamespace::regnamespace::text ~ '^pulse' AND relkind IN ('r', 'v', 'm', 'p')
       AND has_table_privilege(
             'public', oid, 'SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER')$$,
  'PUBLIC can neither read nor change a table or view');
SELECT is_empty(
  $$SELECT oid::regclass FROM pg_class
     WHERE relnamespace::regnamespace::text ~ '^pulse'
       AND CASE relkind WHEN 'S'
             THEN has_sequence_privilege('public', oid, 'USAGE,SELECT,UPDATE') END$$,
  'PUBLIC can draw no id or token');
SELECT is_empty(
  $$SELECT oid::regclass, attacl FROM pg_class JOIN pg_attribute ON attrelid = oid
     WHERE relnamespace::regnamespace::text ~ '^pulse' AND attacl IS NOT NULL$$,
  'no column is granted by itself');

-- --- functions with the rights of their owner ---------------------------------------------------

SELECT is_empty(
  $$SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
     WHERE p.pronamespace::regnamespace::text ~ '^pulse' AND p.prosecdef AND l.lanname <> 'c'
       AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS c
                        WHERE c ~ '^search_path=(pulse, )?pg_catalog, (pulse, )?pg_temp$')$$,
  'a function with the rights of its owner looks for names in safe schemas only');
SELECT is_empty(
  $$SELECT oid::regprocedure FROM pg_proc
     WHERE pronamespace = 'pulse_internal'::regnamespace AND prosecdef
       AND prorettype <> 'event_trigger'::regtype$$,
  'no internal function that a role can call has the rights of its owner');
SELECT is_empty(
  $$SELECT oid::regprocedure FROM pg_proc
     WHERE pronamespace::regnamespace::text ~ '^pulse'
       AND obj_description(oid, 'pg_proc') IS NULL$$,
  'every function has a comment');
SELECT is_empty(
  $$SELECT oid::regprocedure FROM pg_proc
     WHERE pronamespace::regnamespace::text ~ '^pulse'
       AND proconfig::text ~ 'enable_[a-z]+=off' AND NOT 'jit=off' = ANY (proconfig)$$,
  'what forbids a kind of plan, which then seems dear where it is needed, is never compiled');
SELECT is_empty(
  $$SELECT oid::regprocedure FROM pg_proc
     WHERE pronamespace::regnamespace::text ~ '^pulse' AND prosecdef
       AND proparallel <> 'u'$$,
  'no function with the rights of its owner runs in a parallel worker');

-- --- a role without rights ----------------------------------------------------------------------

CREATE ROLE pulse_stranger;
CREATE TEMP TABLE calls (call text);
INSERT INTO calls VALUES
  ('add_job(''mail'')'), ('add_jobs(''{}'')'), ('remove_job(''k'')'), ('register_worker(''eve'')'),
  ('attach_worker(1)'), ('claim(1)'), ('claim_job(1, 1)'), ('held(1)'), ('heartbeat(1)'),
  ('progress(1, 1)'), ('complete(1, 1)'), ('fail(1, 1, ''boom'')'), ('snooze(1, 1, ''1 s'')'),
  ('complete_many(''{1}'', ''{1}'')'), ('fail_many(''{1}'', ''{1}'', ''{boom}'')'),
  ('release(''{1}'', ''{1}'')'), ('fence(1, 1)'), ('deregister_worker(1)'),
  ('serve_tasks(1, NULL)'),
  ('declare_lost(1, ''gone'')'), ('sweep()'), ('tick()'), ('cancel_job(1)'), ('get_job(1)'),
  ('set_task(''mail'')'), ('set_queue(''post'')'), ('pause_queue(''post'')'),
  ('resume_queue(''post'')'), ('unset_queue(''post'')'), ('unset_task(''mail'')'), ('verify()'),
  ('version()'), ('now()'),
  ('pulse_internal.next_token()'), ('pulse_internal.end_attempts(''{}'')'),
  ('adopt_installation()'), ('set_shard(0)'), ('check_host(1)'), ('delete_finished(''{1}'')'),
  ('drain_workers(''{x}'')'),
  ('stop_workers(''{x}'')');
UPDATE calls SET call = 'pulse.' || call WHERE call NOT LIKE 'pulse_internal.%';
SELECT is_empty(
  $$SELECT call FROM calls
     WHERE (refusal_of('SELECT ' || call, 'pulse_stranger')).code <> '42501'$$,
  'a role without rights cannot call any function');
SELECT is((refusal_of('CALL pulse.wait_for_job(1)', 'pulse_stranger')).code, '42501',
  'nor wait for a job');
SELECT is((refusal_of('CALL pulse.run_tick()', 'pulse_stranger')).code, '42501', 'nor tick');
GRANT USAGE ON SCHEMA pulse, pulse_internal TO pulse_stranger;
SELECT is_empty(
  $$SELECT call FROM calls
     WHERE (refusal_of('SELECT ' || call, 'pulse_stranger')).code <> '42501'$$,
  'nor can one that may use the schema');
SELECT is((refusal_of('CALL pulse.wait_for_job(1)', 'pulse_stranger')).code, '42501',
  'nor can it wait for a job');
SELECT is_empty(
  $$SELECT oid::regclass FROM pg_class
     WHERE relnamespace = 'pulse'::regnamespace AND relkind IN ('r', 'v')
       AND (refusal_of('SELECT * FROM ' || oid::regclass, 'pulse_stranger')).code <> '42501'$$,
  'nor read a table');
SELECT is((SELECT count(*)::int FROM pulse.job), 0, 'and nothing was added by all that');

-- --- a role with one right ----------------------------------------------------------------------

GRANT EXECUTE ON FUNCTION pulse.add_job TO pulse_stranger;
SELECT is((refusal_of('SELECT pulse.add_job(''mail'')', 'pulse_stranger')).code, '00000',
  'a role that may execute add_job adds jobs');
SELECT is((SELECT count(*)::int FROM pulse.job), 1, 'one at a time');
SELECT is((refusal_of('SELECT * FROM pulse.job', 'pulse_stranger')).code, '42501',
  'but cannot read them');
SELECT is((refusal_of('SELECT pulse.claim(1)', 'pulse_stranger')).code, '42501', 'nor claim them');

-- Names that a caller could put before ours.
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO pulse_stranger;
CREATE FUNCTION trap.coalesce_trap(text, text) RETURNS boolean
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'ZZ001'; END $$;
CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.coalesce_trap);
CREATE OPERATOR trap.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.coalesce_trap);
CREATE OPERATOR trap.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.coalesce_trap);
CREATE FUNCTION trap.now() RETURNS timestamptz
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'ZZ001'; END $$;
CREATE FUNCTION step_into_trap() RETURNS boolean
  LANGUAGE plpgsql SET search_path = trap, pg_catalog AS $$ BEGIN RETURN 'a'::text = 'a'; END $$;
SELECT throws_ok('SELECT step_into_trap()', 'ZZ001', NULL, 'given a trap that works');
CREATE FUNCTION run_through_trap() RETURNS text
  LANGUAGE plpgsql SET search_path = trap, pg_catalog, public AS $$
DECLARE
  worker bigint;
  claimed pulse.claimed_job;
BEGIN
  worker := (pulse.register_worker('ann', ARRAY['trapped'])).id;
  PERFORM pulse.add_job('trapped', queue_name => 'post', job_key => 'k', max_attempts => 9);
  PERFORM pulse.sweep();
  claimed := pulse.claim(worker);
  PERFORM pulse.heartbeat(worker, ARRAY[claimed.id]);
  PERFORM pulse.progress(claimed.id, claimed.token, 'half');
  PERFORM pulse.fail(claimed.id, claimed.token, 'boom', retry_in => interval '0');
  PERFORM pulse.sweep();
  claimed := pulse.claim(worker);
  PERFORM pulse.fence(claimed.id, claimed.token);
  PERFORM pulse.complete_many(ARRAY[claimed.id], ARRAY[claimed.token]);
  PERFORM pulse.remove_job('k');
  PERFORM pulse.declare_lost(worker, 'done');
  RETURN claimed.attempts || ' attempts';
END $$;
SELECT is(run_through_trap(), '2 attempts',
  'operators and functions in front of the caller''s search_path are not used');

SELECT * FROM finish();
ROLLBACK;
