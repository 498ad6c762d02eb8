-- extension/job/index.cpp: C code that writes a job gives it the generated columns and the
-- indexes that sql/structure/tables.sql says. A change of one side alone turns this red.
\ir support/setup.psql
SELECT plan(17);

-- The library has it for this test alone.
SELECT probin AS library FROM pg_proc WHERE oid = 'pulse.version'::regproc \gset
CREATE FUNCTION index_rules(
    job pulse.job, OUT index_lane "char", OUT running_worker_id bigint, OUT indexes text[])
  LANGUAGE c STABLE STRICT AS :'library', 'pulse_index_rules';

-- Every kind of job that an expression could tell from another. A running job has a worker.
INSERT INTO pulse.job (identifier, state, in_place, worker_id, queue_name, job_key, start_by,
                       waits_on, key_is_undecided, succession)
SELECT 'mail', state, in_place, worker_id, queue_name,
       CASE WHEN has_key THEN format('%s', row_number() OVER ()) END, start_by, waits_on,
       is_undecided, succession
  FROM unnest(enum_range(NULL::pulse.job_state)) AS state,
       unnest(ARRAY[true, false]) AS in_place, unnest(ARRAY[7, NULL]) AS worker_id,
       unnest(ARRAY['q', NULL]) AS queue_name, unnest(ARRAY[true, false]) AS has_key,
       unnest(ARRAY[now(), NULL]) AS start_by, unnest(ARRAY[5000, NULL]) AS waits_on,
       unnest(ARRAY[true, NULL]) AS is_undecided, unnest(ARRAY[1, NULL]) AS succession
 WHERE (state <> 'running' OR worker_id IS NOT NULL) AND (state = 'parked' OR waits_on IS NULL)
   AND (state = 'parked' AND has_key OR is_undecided IS NULL);

SELECT is((SELECT count(*)::int FROM pulse.job), 288, 'there is a job of every kind');
SELECT set_eq(
  $$SELECT attname::text FROM pg_attribute
     WHERE attrelid = 'pulse.job'::regclass AND attgenerated <> ''$$,
  $$VALUES ('index_lane'), ('running_worker_id')$$, 'C code knows each generated column');
SELECT is_empty(
  $$SELECT j.id, j.index_lane, r.index_lane, pg_get_expr(d.adbin, d.adrelid)
      FROM pulse.job AS j CROSS JOIN LATERAL index_rules(j) AS r
      JOIN pg_attrdef AS d ON d.adrelid = 'pulse.job'::regclass
      JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
       AND a.attname = 'index_lane'
     WHERE j.index_lane <> r.index_lane$$,
  'and computes the index lane as it does');
SELECT is_empty(
  $$SELECT j.id, j.running_worker_id, r.running_worker_id, pg_get_expr(d.adbin, d.adrelid)
      FROM pulse.job AS j CROSS JOIN LATERAL index_rules(j) AS r
      JOIN pg_attrdef AS d ON d.adrelid = 'pulse.job'::regclass
      JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
       AND a.attname = 'running_worker_id'
     WHERE j.running_worker_id IS DISTINCT FROM r.running_worker_id$$,
  'and the holder');

SELECT set_eq(
  $$SELECT i.indexrelid::regclass::text FROM pg_index AS i
     WHERE i.indrelid = 'pulse.job'::regclass$$,
  $$SELECT DISTINCT 'pulse.' || unnest(r.indexes)
      FROM pulse.job AS j CROSS JOIN LATERAL index_rules(j) AS r$$,
  'C code knows each index');

-- Whether C code enters just the jobs that the predicate asks for.
CREATE FUNCTION follows(index regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  name text := (SELECT c.relname FROM pg_class AS c WHERE c.oid = index);
  predicate text := coalesce((SELECT pg_get_expr(i.indpred, i.indrelid) FROM pg_index AS i
                               WHERE i.indexrelid = index), 'true');
  answer text;
BEGIN
  EXECUTE format(
    'SELECT is_empty($q$SELECT job.id, job.state, job.in_place FROM pulse.job
      WHERE (%s) <> (%L = ANY ((index_rules(job)).indexes))$q$, %L)',
    predicate, name, format('%s has the jobs where %s', name, predicate)) INTO answer;
  RETURN answer;
END $$;
SELECT follows(i.indexrelid) FROM pg_index AS i
 WHERE i.indrelid = 'pulse.job'::regclass ORDER BY i.indexrelid::regclass::text;

SELECT * FROM finish();
ROLLBACK;
