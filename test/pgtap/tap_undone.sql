-- sql/tap: a test leaves nothing behind: no row, no number of a sequence, nothing in the catalogue,
-- no setting. Outside of a transaction the kit refuses, and PUBLIC has none of it.
\ir support/setup.psql
ROLLBACK;
\o /dev/null
SET client_min_messages = warning;
CREATE EXTENSION pg_pulse_tap;
CREATE TABLE own (id serial PRIMARY KEY);
CREATE FUNCTION own_task(payload jsonb) RETURNS void
  LANGUAGE sql AS $$ INSERT INTO public.own DEFAULT VALUES $$;

-- One line for each thing that a rollback must bring back.
CREATE FUNCTION all_there_is() RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  said text := '';
  part text;
  thing record;
BEGIN
  FOR thing IN
    SELECT c.oid::regclass AS name, c.relkind FROM pg_class AS c
     WHERE c.relkind = 'S' AND c.relnamespace IN ('pulse'::regnamespace, 'public'::regnamespace)
        OR c.relkind = 'r' AND c.relnamespace IN ('pulse'::regnamespace, 'pulse_tap'::regnamespace)
        OR c.relkind = 'r' AND c.relname = ANY ('{pg_class,pg_proc,pg_type,pg_attribute,pg_depend,
             pg_sequence,pg_constraint,pg_index,pg_extension,pg_namespace,pg_init_privs,pg_trigger,
             pg_rewrite,pg_description,pg_db_role_setting}')
     ORDER BY 1
  LOOP
    EXECUTE CASE thing.relkind
      WHEN 'S' THEN format('SELECT concat_ws(%L, last_value, is_called, pg_relation_filenode(%L)) '
                           'FROM %s', '/', thing.name, thing.name)
      -- What vacuum and statistics write belongs to no test.
      WHEN 'r' THEN format('SELECT concat_ws(%L, count(*), md5(string_agg(t, NULL ORDER BY t))) '
                           'FROM (SELECT (to_jsonb(x) - %L::text[])::text AS t FROM %s AS x '
                           ' WHERE to_jsonb(x)::text !~ %L) AS y', '/',
                           '{relpages,reltuples,relallvisible,relfrozenxid,relminmxid}',
                           thing.name, 'pg_toast_temp_|pg_temp_')
    END INTO part;
    said := said || format(E'%s %s\n', thing.name, part);
  END LOOP;
  RETURN said || (SELECT string_agg(concat_ws(' ', s.name, s.setting), E'\n' ORDER BY s.name)
                    FROM pg_settings AS s WHERE s.name LIKE 'pulse.%');
END $$;
SELECT pulse.register_worker('earlier'), pulse.add_job('earlier');
SELECT all_there_is() AS before \gset

BEGIN;
SET LOCAL client_min_messages = error;
SET LOCAL search_path = pulse_tap, public;
SELECT freeze();
SELECT keep_sequences('own_id_seq');
SELECT no_plan();
SELECT pulse.set_task('own', handler => 'own_task(jsonb)'),
       pulse.schedule('own', 'own', '@hourly'), pulse.set_queue('q', 3),
       pulse.add_flow('[{"key": "a", "identifier": "own"},
                        {"key": "b", "identifier": "own", "after": ["a"]}]');
SELECT enqueues($$SELECT pulse.add_job('own', queue_name => 'q')$$, '[{"identifier": "own"}]');
SELECT travel('1 day');
SELECT count(*) AS drained FROM drain() \gset
SELECT max(id) AS own_id FROM own \gset
SELECT id AS other FROM pulse.add_job('other') \gset
SELECT run_job(:other, 'own_task(jsonb)');
SELECT job_ended_as('own', 'completed'), job_failed_with('own', 'nothing'), job_enqueued('none'),
       no_job_enqueued(), queue_depth_is('q', 0), check_fences(), job_added_once('own', 'k'),
       next_runs_are('own', '{now}');
SELECT id AS worker FROM pulse.register_worker('w') \gset
SELECT pulse.attach_worker(:worker);
SELECT silence_worker(:worker);
SELECT lose_worker(:worker);
SELECT pulse.unset_queue('q');
SELECT current_setting('pulse.frozen_clock')::float8 >= 0 AS froze \gset
ROLLBACK;

SELECT all_there_is() AS after \gset
-- Each call has its own transaction. Of an error, psql shows the code.
SELECT string_agg(format('SELECT pulse_tap.%s;', c), ' ') AS calls FROM (VALUES
    ('freeze()'), ('travel(''1 s'')'), ('keep_sequences()'), ('silence_worker(1)'),
    ('lose_worker(1)'), ('drain()'), ('run_job(1)'), ('enqueues(''SELECT 1'', ''[]'')'),
    ('job_enqueued(''a'')'), ('job_enqueued(''a'', NULL, ''{}'', ''b'')'), ('no_job_enqueued()'),
    ('queue_depth_is(''a'', 0)'), ('job_failed_with(''a'', ''b'')'), ('job_failed_with(1, ''b'')'),
    ('job_ended_as(''a'', ''failed'')'), ('job_ended_as(1, ''failed'')'),
    ('next_runs_are(''a'', ''{now}'')'), ('check_fences()'),
    ('job_added_once(''a'', ''b'')')) AS call (c) \gset
\set codes `echo :'calls' | psql -XAtq -v VERBOSITY=sqlstate 2>&1 | uniq -c | tr -s ' '`

BEGIN;
\o
SELECT plan(8);
SELECT cmp_ok(:drained, '>=', 4, 'the test ran jobs');
SELECT cmp_ok(:own_id, '>=', 4, 'which took numbers');
SELECT ok(:'froze', 'and stopped time');
SELECT is(:'after'::text, :'before'::text, 'a rollback brings back all that a test changed');
SELECT is(:'codes'::text, ' 19 ERROR: PU006', 'outside of a transaction every call is refused');

\o /dev/null
CREATE ROLE pulse_stranger;
\o
SELECT is_empty($$
  SELECT p.oid::regprocedure FROM pg_proc AS p
   WHERE p.pronamespace = 'pulse_tap'::regnamespace
     AND has_function_privilege('pulse_stranger', p.oid, 'EXECUTE')$$,
  'PUBLIC may call no function of the kit');
SELECT ok(NOT has_schema_privilege('pulse_stranger', 'pulse_tap', 'USAGE')
          AND NOT has_table_privilege('pulse_stranger', 'pulse_tap.run', 'SELECT'),
  'nor use its schema or read its table');
SELECT is_empty($$
  SELECT p.oid::regprocedure FROM pg_proc AS p
   WHERE p.pronamespace = 'pulse_tap'::regnamespace
     AND obj_description(p.oid, 'pg_proc') IS NULL$$, 'each function has a comment');
SELECT * FROM finish();
ROLLBACK;

SET client_min_messages = error;
DELETE FROM pulse.job;
DELETE FROM pulse.heartbeat;
DELETE FROM pulse.worker;
DROP TABLE own;
DROP FUNCTION all_there_is, own_task;
DROP EXTENSION pg_pulse_tap;
