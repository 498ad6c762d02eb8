-- What the owner of a handler gains by it: nothing. An operator chooses functions, and a worker's
-- role with more rights calls them; here that role is a superuser's.
\ir support/setup.psql
SELECT plan(36);

CREATE ROLE pulse_op;
CREATE ROLE pulse_w;
SELECT pulse.grant_operator('pulse_op'), pulse.grant_producer('pulse_op'),
       pulse.grant_worker('pulse_w') \g /dev/null
CREATE SCHEMA mine AUTHORIZATION pulse_op;
GRANT USAGE ON SCHEMA mine TO PUBLIC;
GRANT USAGE ON TYPE pulse.claimed_job TO pulse_op;
SET LOCAL pulse.keep_completed = -1;
SELECT given_worker() AS ann \gset
-- How the job of a new handler ends: what is refused, or the result.
CREATE FUNCTION outcome_of(task text, role name = NULL) RETURNS refusal
  LANGUAGE plpgsql AS $$
DECLARE
  job bigint := (pulse.add_job(task)).id;
  token bigint := (SELECT c.token FROM pulse.worker AS w, pulse.claim(w.id, 1, ARRAY[task]) AS c);
  seen refusal;
BEGIN
  -- As in a transaction of its own.
  SET CONSTRAINTS ALL DEFERRED;
  seen := refusal_of(format('SELECT pulse.perform_job(%s, %s)', job, token), role);
  IF seen.code = '00000' THEN
    seen.message := (SELECT f.result::text FROM pulse.finished_job AS f WHERE f.id = job);
  ELSE
    PERFORM pulse.fail(job, token, 'no', false);
  END IF;
  RETURN seen;
END $$;
GRANT EXECUTE ON FUNCTION outcome_of(text, name) TO PUBLIC;

-- --- what would run as the worker ---------------------------------------------------------------

SET LOCAL ROLE pulse_op;
CREATE TABLE mine.done (who text, tenant text);
GRANT INSERT ON mine.done TO pulse_w;
CREATE FUNCTION mine.rise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mine.done VALUES (current_user, current_setting('app.tenant', true));
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    ALTER ROLE pulse_op SUPERUSER;
  END IF;
  RETURN NULL;
END $$;
CREATE TABLE mine.bait (x int);
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON mine.bait DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION mine.rise();
CREATE FUNCTION mine.baits(payload json) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM set_config('app.tenant', 'ann', false);
  INSERT INTO mine.bait VALUES (1);
  RETURN 'baited';
END $$;
CREATE FUNCTION mine.checks(payload json) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  SET CONSTRAINTS ALL IMMEDIATE;
  RETURN mine.baits(payload);
END $$;
-- A function of a cast runs with the rights of whoever casts: the result of a handler, say.
CREATE TYPE mine.mood AS ENUM ('bad');
CREATE FUNCTION mine.as_json(mood mine.mood) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN to_json(current_user::text);
END $$;
CREATE CAST (mine.mood AS json) WITH FUNCTION mine.as_json(mine.mood);
CREATE FUNCTION mine.moody(payload jsonb) RETURNS mine.mood LANGUAGE sql SECURITY DEFINER
  AS $$ SELECT 'bad'::mine.mood $$;
CREATE FUNCTION mine.constant(job pulse.claimed_job) RETURNS text
  LANGUAGE sql IMMUTABLE SECURITY DEFINER AS $$ SELECT current_user::text $$;
CREATE FUNCTION mine.adds(payload json) RETURNS bigint LANGUAGE sql SECURITY DEFINER
  AS $$ SELECT id FROM pulse.add_job('next', job_key => 'next') $$;
CREATE FUNCTION mine.tables(payload json) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  CREATE TEMP TABLE note (x int);
END $$;
CREATE FUNCTION mine.listens(payload json) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  LISTEN news;
END $$;
CREATE FUNCTION mine.holds(payload json) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT mine.baits(NULL)';
END $$;
CREATE FUNCTION mine.prepares(payload json) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  EXECUTE 'PREPARE stays AS SELECT 1';
END $$;
CREATE FUNCTION mine.other_error(payload json) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  RAISE EXCEPTION 'not for you' USING ERRCODE = '42501', HINT = 'Ask Ann.';
END $$;
SELECT pulse.set_task(h, handler => ('mine.' || h || '(' || a || ')')::regprocedure)
  FROM (VALUES ('baits', 'json'), ('checks', 'json'), ('moody', 'jsonb'),
               ('constant', 'pulse.claimed_job'), ('adds', 'json'), ('tables', 'json'),
               ('listens', 'json'),
               ('holds', 'json'), ('prepares', 'json'), ('other_error', 'json')) AS t (h, a)
  \g /dev/null
RESET ROLE;

SELECT code, message, detail, hint FROM outcome_of('baits') \gset baits_
SET CONSTRAINTS ALL IMMEDIATE;
SELECT ok(NOT rolsuper, 'no operator becomes a superuser by a deferred trigger')
  FROM pg_roles WHERE rolname = 'pulse_op';
SELECT is_empty('SELECT * FROM mine.done', 'which does not run as the worker');
SELECT is(:'baits_code'::text, '42501', 'the server refuses it');
SELECT is(:'baits_detail'::text, format('Handler mine.baits(json) runs restricted, because its '
  'owner pulse_op may not act as role %I: without temporary objects, deferred constraints, LISTEN, '
  'PREPARE and cursors WITH HOLD.', current_user), 'the error says why');
SELECT is(:'baits_hint'::text, format('Let it do without (SET CONSTRAINTS ALL IMMEDIATE for '
  'constraints), give it to the owner of pg_pulse, or GRANT %I TO pulse_op.', current_user),
  'and what to do');
CREATE OR REPLACE FUNCTION mine.rise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mine.done VALUES (current_user, current_setting('app.tenant', true));
  RETURN NULL;
END $$;
SELECT is((outcome_of('checks')).message, '"baited"', 'checked at once it runs');
SELECT is((SELECT string_agg(who || ' ' || tenant, ', ') FROM mine.done), 'pulse_op ann',
  'as its owner, and with the settings of its job');
SELECT is((outcome_of('moody')).message, '"pulse_op"', 'the cast of a result runs as the owner');
SELECT is((outcome_of('constant')).message, '"pulse_op"', 'so does what is said to be constant');
SELECT ok((outcome_of('adds')).message ~ '^\d+$', 'it may add jobs');
SELECT is((outcome_of(h)).code, '42501', format('a handler that %s is refused', h))
  FROM unnest(ARRAY['tables', 'listens', 'holds', 'prepares']) AS h;
SELECT is(o.hint, 'Ask Ann.', 'an error of its own stays as it is')
  FROM outcome_of('other_error') AS o;
SELECT is(current_user::text, session_user::text, 'and the caller is who it was');

-- A cast that it owns is tried as the worker's role too, and a wrapper's owner counts.
SELECT is((outcome_of('baits', 'pulse_w')).code, '42501', 'a worker with few rights is as safe');
SELECT is((outcome_of('moody', 'pulse_w')).message, '"pulse_op"', 'and runs what does no harm');
CREATE FUNCTION public.performs(id bigint, token bigint) RETURNS void
  LANGUAGE sql SECURITY DEFINER AS $$ SELECT pulse.perform_job(id, token) $$;
GRANT pulse_w TO pulse_op;
SET LOCAL ROLE pulse_op;
ALTER FUNCTION mine.moody SECURITY INVOKER;
RESET ROLE;
SELECT id AS job FROM pulse.add_job('moody') \gset
SELECT token FROM pulse.claim(:ann, 1, '{moody}') \gset
SELECT is((refusal_of(format('SELECT public.performs(%s, %s)', :job, :token), 'pulse_w')).code,
  '42501', 'a function that performs jobs with more rights runs no handler with them');
SELECT pulse.fail(:job, :token, 'no', false) \g /dev/null
SET LOCAL ROLE pulse_op;
ALTER FUNCTION mine.moody SECURITY DEFINER;
RESET ROLE;

-- --- who may act as the worker anyway -----------------------------------------------------------

SELECT is((outcome_of('baits', 'pulse_w')).message, '"baited"',
  'a member of the worker''s role has nothing to gain');
SELECT is((SELECT string_agg(tenant, ', ') FROM mine.done), 'ann, ann',
  'its deferred triggers have fired, and see the settings of the job');
SELECT is((outcome_of('tables', 'pulse_w')).code, '00000', 'it may have temporary tables');
REVOKE pulse_w FROM pulse_op;
SELECT is((outcome_of('baits', 'pulse_w')).code, '42501', 'a member no longer has');
ALTER FUNCTION mine.baits(json) OWNER TO CURRENT_USER;
SELECT is((outcome_of('baits')).message, '"baited"', 'nor has the owner of pg_pulse');
SELECT is(pulse_internal.handler_trust('mine.baits(json)', 'pulse_w'), 'trusted',
  'whoever the worker is');
SELECT is(pulse_internal.handler_trust('mine.moody(jsonb)', current_user), 'restricted',
  'an owner without these rights is restricted');
SET LOCAL ROLE pulse_op;
ALTER FUNCTION mine.moody SECURITY INVOKER;
RESET ROLE;
SELECT is(pulse_internal.handler_trust('mine.moody(jsonb)', current_user), 'refused',
  'or refused, where the function has the worker''s rights');
SELECT is(pulse_internal.handler_trust(1, current_user), NULL, 'a function must exist');

-- --- what the worker may execute ----------------------------------------------------------------

REVOKE EXECUTE ON FUNCTION mine.constant FROM PUBLIC;
SELECT is((outcome_of('constant', 'pulse_w')).code, '42501', 'no function that it may not execute');
REVOKE USAGE ON SCHEMA mine FROM PUBLIC;
SELECT is((outcome_of('checks', 'pulse_w')).message, 'permission denied for schema mine',
  'nor one of a schema that it may not use');
GRANT USAGE ON SCHEMA mine TO PUBLIC;
SELECT is((refusal_of(format($$SELECT pulse.call_handler(jsonb_populate_record(
  NULL::pulse.claimed_job, '{"id": 1, "identifier": "x", "handler": "%s"}'))$$, f),
  'pulse_w')).code, c, f || ' is no handler')
  FROM (VALUES ('pg_catalog.int4in(cstring)', 'PU004'), ('pg_catalog.json_each(json)', 'PU004'),
               ('pg_catalog.json_out(json)', 'PU004')) AS h (f, c);
SELECT is((refusal_of($$SELECT pulse.call_handler(jsonb_populate_record(
  NULL::pulse.claimed_job, '{"identifier": "x"}'))$$)).code, 'PU005', 'a task needs one');
SELECT is((refusal_of('SELECT pulse.call_handler(NULL)')).code, 'PU004', 'and a job');

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
SELECT * FROM finish();
ROLLBACK;
