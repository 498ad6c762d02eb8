-- No call compiles a statement of its own, even in a session where no statement is too cheap: a
-- compilation takes longer than any plan of ours can save, and nothing cancels it.
CREATE EXTENSION pg_stat_statements;
ALTER DATABASE cost_jit SET pg_stat_statements.track = 'all';

-- What was compiled, less what is the caller's: the statement that walk() runs, and those around a
-- handler, which has the settings of its session.
CREATE VIEW cost.compiled AS
  SELECT query, jit_functions FROM pg_stat_statements
   WHERE NOT toplevel AND jit_functions > 0 AND query NOT LIKE '/* walked */%'
     AND query <> 'SELECT pulse.fence(job_id, token)'
     AND query NOT LIKE 'SELECT pulse.complete(job_id, token, pulse.call_handler(%';

CREATE TABLE cost.walked (call text, code text);
CREATE FUNCTION cost.note_walk(call text, code text) RETURNS void
  LANGUAGE plpgsql SET jit = off AS $$ BEGIN INSERT INTO cost.walked VALUES (call, code); END $$;
CREATE FUNCTION cost.walk(statement text) RETURNS text
  LANGUAGE plpgsql SET jit = on SET jit_above_cost = 0 AS $$
DECLARE
  answer text;
  noted text;
BEGIN
  EXECUTE '/* walked */ ' || statement INTO answer;
  noted := cost.note_walk(statement, '00000');
  RETURN answer;
EXCEPTION WHEN OTHERS THEN
  noted := cost.note_walk(statement, SQLSTATE);
  RETURN SQLSTATE;
END $$;

-- A function that leaves JIT on is found, unless this server was built or packaged without.
CREATE FUNCTION cost.compiling() RETURNS bigint
  LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM pulse.job AS j WHERE j.id > 7); END $$;
\c
SELECT cost.walk('SELECT cost.compiling()');
DO $$ BEGIN
  ASSERT NOT pg_jit_available()
         OR EXISTS (SELECT FROM cost.compiled WHERE query LIKE '%j.id >%'), 'compiling() is found';
END $$;
SELECT pg_stat_statements_reset();

-- Every call, where rows are written directly, and where triggers of a DBA ask for statements.
CREATE FUNCTION cost.let_pass() RETURNS trigger
  LANGUAGE plpgsql AS $$ BEGIN RETURN coalesce(NEW, OLD); END $$;
CREATE PROCEDURE cost.hang_triggers()
  LANGUAGE plpgsql AS $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY '{job,finished_job,attempt,claim_batch,heartbeat}'::text[] LOOP
    EXECUTE format('CREATE TRIGGER let_pass BEFORE INSERT OR UPDATE OR DELETE ON pulse.%I
                      FOR EACH ROW EXECUTE FUNCTION cost.let_pass()', name);
  END LOOP;
END $$;

SET client_min_messages = error;  -- some calls warn in a transaction block
BEGIN;
\ir ../pgtap/support/graphile_jobs.psql
SET LOCAL search_path = cost, pg_catalog;
\ir ../pgtap/support/every_call.psql
SELECT count(*) AS refused FROM cost.walked WHERE code NOT IN ('00000', 'PU006', '2D000') \gset
ROLLBACK;

\c
SET client_min_messages = error;
CALL cost.hang_triggers();
BEGIN;
\ir ../pgtap/support/graphile_jobs.psql
SET LOCAL search_path = cost, pg_catalog;
\ir ../pgtap/support/every_call.psql
SELECT :refused + count(*) AS refused FROM cost.walked
 WHERE code NOT IN ('00000', 'PU006', '2D000') \gset
ROLLBACK;

-- Procedures that wait or commit cannot run in a function.
SELECT cost.worker() AS worker \gset
SET jit_above_cost = 0;
CALL pulse.wait_for_end('{1}', '0');
CALL pulse.wait_for_job(:worker, '0');
CALL pulse.run_tick();
RESET jit_above_cost;

RESET client_min_messages;
DO $$
DECLARE
  statement text;
BEGIN
  FOR statement IN SELECT query FROM cost.compiled LOOP
    RAISE WARNING 'compiled: %', statement;
  END LOOP;
END $$;
SELECT cost.note('refused_calls', :refused);
SELECT cost.note('compiled_statements', count(*)) FROM cost.compiled;
