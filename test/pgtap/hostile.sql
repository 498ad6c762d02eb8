-- Whatever stands before ours in the caller's search_path, temporary objects among it: every public
-- function does its work without touching any of it, at its first call in a session.

-- Before the transaction, because a LISTEN counts from the commit on: the channel of a handler that
-- listens is compared with it.
LISTEN own \g /dev/null
\ir support/setup.psql
SELECT plan(8);
\o /dev/null
\ir support/graphile_jobs.psql
\o

-- --- traps --------------------------------------------------------------------------------------

CREATE SCHEMA trap;
CREATE FUNCTION trap.spring() RETURNS void
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'ZZ001'; END $$;

-- A function of the server's in trap, with the same arguments and result.
CREATE FUNCTION set_trap(original pg_proc) RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION trap.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS %L',
    original.proname,
    (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n)
       FROM unnest(original.proargtypes) WITH ORDINALITY AS a (t, n)),
    CASE WHEN original.proretset THEN 'SETOF ' ELSE '' END,
    format_type(original.prorettype, NULL), 'BEGIN PERFORM trap.spring(); END');
  RETURN format('trap.%I', original.proname);
EXCEPTION WHEN invalid_function_definition OR feature_not_supported THEN
  RETURN NULL;  -- of types that no such function can have
END $$;
-- Every function whose name occurs in a body of ours; of an aggregate a plain function will do.
CREATE TEMP TABLE word AS
  SELECT DISTINCT m[1] AS word FROM pg_proc AS o,
    regexp_matches(concat(o.prosrc, pg_get_function_sqlbody(o.oid)), '\w+', 'g') AS m
   WHERE o.pronamespace = ANY ('{pulse,pulse_internal}'::regnamespace[]);
SELECT set_trap(p) FROM pg_proc AS p
 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a')
   AND p.proname IN (SELECT w.word FROM word AS w) \g /dev/null
-- Every operator on types that ours have to do with.
CREATE FUNCTION set_operator_trap(original pg_operator) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  arguments text := concat_ws(', ', nullif(original.oprleft, 0)::regtype,
                              original.oprright::regtype);
BEGIN
  EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L',
    'operator_' || original.oid, arguments, original.oprresult::regtype,
    'BEGIN PERFORM trap.spring(); END');
  EXECUTE format('CREATE OPERATOR trap.%s (%sRIGHTARG = %s, FUNCTION = trap.%I)', original.oprname,
    'LEFTARG = ' || nullif(original.oprleft, 0)::regtype || ', ', original.oprright::regtype,
    'operator_' || original.oid);
END $$;
SELECT set_operator_trap(o)
  FROM pg_operator AS o,
       (SELECT '{text,int2,int4,int8,bool,oid,name,float8,numeric,timestamptz,interval,json,
                 anyarray,anyenum,record}'::regtype[]) AS t (types)
 WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprresult <> 0
   AND (o.oprleft = 0 OR o.oprleft = ANY (t.types)) AND o.oprright = ANY (t.types) \g /dev/null
-- Tables, views and types of ours and of the server by their bare names.
SELECT format('CREATE TEMP TABLE %I ()', c.relname) FROM pg_class AS c
 WHERE c.relkind IN ('r', 'v') AND (c.relnamespace = ANY ('{pulse,pulse_internal}'::regnamespace[])
   OR c.relnamespace = 'pg_catalog'::regnamespace) \gexec
CREATE DOMAIN trap.text AS pg_catalog.int4 CHECK (VALUE > 0);
CREATE DOMAIN trap.interval AS pg_catalog.int4 CHECK (VALUE > 0);
CREATE DOMAIN trap.int8 AS pg_catalog.bool;

-- --- walking through them -----------------------------------------------------------------------

CREATE TEMP TABLE walked (call pg_catalog.text, code pg_catalog.text);
-- The first column of a statement, or the code with which it is refused.
CREATE FUNCTION walk(statement pg_catalog.text) RETURNS pg_catalog.text
  LANGUAGE plpgsql SET search_path = pg_temp, trap, pg_catalog AS $$
DECLARE
  answer pg_catalog.text;
BEGIN
  EXECUTE statement INTO answer;
  INSERT INTO pg_temp.walked VALUES (statement, '00000');
  RETURN answer;
EXCEPTION WHEN OTHERS THEN
  INSERT INTO pg_temp.walked VALUES (statement, SQLSTATE);
  RETURN SQLSTATE;
END $$;
SELECT is(walk('SELECT 1 = 1'), 'ZZ001', 'given a trap that catches operators');
SELECT is(walk('SELECT now()'), 'ZZ001', 'functions');
SELECT is(walk('SELECT count(payload) FROM job'), '42703', 'and tables');
TRUNCATE walked;

\ir support/every_call.psql

SELECT is_empty($$SELECT call, code FROM walked WHERE code NOT IN ('00000', 'PU006', '2D000')$$,
  'every function does its work among the traps');
SELECT is_empty(
  $$SELECT p.proname FROM pg_catalog.pg_proc AS p
     WHERE p.pronamespace = 'pulse'::regnamespace
       AND NOT EXISTS (SELECT FROM walked AS w WHERE w.call ~ ('pulse\.' || p.proname || '\('))$$,
  'and there is none that was not tried');
SELECT set_eq($$SELECT DISTINCT outcome FROM pulse.attempt$$,
  ARRAY['cancelled', 'completed', 'failed', 'interrupted', 'lost', 'released'],
  'attempts have ended in many ways');
SELECT is((SELECT isolated_job_id FROM pulse.heartbeat WHERE worker_id = :eve), :job::bigint,
  'and a suspect is alone');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
