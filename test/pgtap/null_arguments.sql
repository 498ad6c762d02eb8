-- A C function that is called with NULL returns or raises an error; no backend crashes. Functions
-- that only the owner may call are called too.
\ir support/setup.psql
SELECT plan(4);

SELECT given_claimed_job(given_worker('ann')) \g /dev/null

-- An argument of this type, as SQL.
CREATE FUNCTION sample(type oid) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  element oid := (SELECT t.typelem FROM pg_type AS t WHERE t.oid = type AND t.typcategory = 'A');
BEGIN
  IF element IS NOT NULL THEN
    RETURN format('ARRAY[%s]::%s', sample(element), type::regtype);
  END IF;
  RETURN format(CASE type::regtype::text
    WHEN 'pulse.job' THEN '(SELECT j FROM pulse.job AS j LIMIT 1)'
    WHEN 'pulse.heartbeat' THEN '(SELECT h FROM pulse.heartbeat AS h LIMIT 1)'
    WHEN 'pulse.job_spec' THEN '''(x,,,,,,,)''::%s'
    WHEN 'pulse_internal.ending' THEN '''(1,failed,x,,,,)''::%s'
    WHEN 'json' THEN '''{}''::%s'
    WHEN 'interval' THEN '''1 s''::%s'
    WHEN 'timestamp with time zone' THEN 'now()'
    ELSE '''1''::%s' END, type::regtype);
END $$;

-- Calls with NULL for all arguments, and for each one.
CREATE TEMP TABLE calls AS
  SELECT p.oid::regprocedure AS function,
         format('SELECT %s(%s)', p.oid::regproc,
           (SELECT string_agg(CASE WHEN missing IN (0, a.n) THEN format('NULL::%s', a.type::regtype)
                                ELSE sample(a.type) END, ', ' ORDER BY a.n)
              FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, n))) AS call
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang,
         generate_series(0, p.pronargs) AS missing
   WHERE p.pronamespace::regnamespace::text ~ '^pulse' AND l.lanname = 'c' AND p.prokind = 'f'
     AND p.pronargs > 0 AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype);
CREATE FUNCTION outcome(call text) RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE call;
  RAISE EXCEPTION 'undo' USING ERRCODE = 'ZZ000';
EXCEPTION WHEN OTHERS THEN
  RETURN sqlstate;
END $$;
CREATE TEMP TABLE called AS SELECT c.*, outcome(c.call) FROM calls AS c;
SELECT cmp_ok((SELECT count(*)::int FROM called), '>', 100, 'many calls came back');
SELECT is_empty($$SELECT call, outcome FROM called WHERE outcome LIKE 'XX%'$$,
  'none with an internal error');
SELECT is(outcome($$SELECT pulse_internal.end_attempts('{"(1,,,,,,)"}')$$), '22004',
  'nor does an ending without an outcome');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
