-- extension/job/insert_jobs.cpp: an add also makes the job's index entries. Each index is
-- compared with the rows that it should have (amcheck), and each must have found the job.
\ir support/setup.psql
CREATE EXTENSION IF NOT EXISTS amcheck;
SELECT plan(34);

CREATE FUNCTION indexes() RETURNS SETOF regclass LANGUAGE sql AS $$
  SELECT i.indexrelid::regclass FROM pg_index AS i
   WHERE i.indrelid = 'pulse.job'::regclass ORDER BY i.indexrelid::regclass::text
$$;

CREATE FUNCTION complete_index(index regclass, which text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM public.bt_index_check(index, true);
  RETURN pass(format('%s has all jobs, %s', index, which));
EXCEPTION WHEN OTHERS THEN
  RETURN fail(format('%s has all jobs, %s', index, which)) || E'\n' || diag(SQLERRM);
END $$;


CREATE FUNCTION add_of_all_kinds() RETURNS void LANGUAGE sql AS $$
  SELECT pulse.add_job('mail');
  SELECT pulse.add_job('mail', run_at => now() + interval '1 hour', priority => -3);
  SELECT pulse.add_job('mail', queue_name => 'post');
  SELECT pulse.add_job('mail', queue_name => 'post', run_at => now() + interval '1 day');
  SELECT pulse.add_job('mail', job_key => 'a');
  SELECT pulse.add_job('mail', job_key => 'b', queue_name => 'post');
  SELECT pulse.add_job('mail', job_key => 'b', queue_name => 'post', priority => 2);
  SELECT pulse.add_job('large', ('"' || repeat(md5('x'), 20000) || '"')::json);
  SELECT count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('mail', ('"' || repeat('x', g % 300) || '"')::json,
            CASE WHEN g % 3 = 0 THEN 'q' || g % 7 END, NULL, NULL, NULL, g % 5,
            CASE WHEN g % 11 = 0 THEN '{b,a}'::text[] END)::pulse.job_spec
      FROM generate_series(1, 1200) AS g));
  SELECT count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('mail', NULL, CASE WHEN g % 2 = 0 THEN 'post' END, NULL, NULL,
            CASE WHEN g % 3 = 0 THEN 'k' || g END, NULL, NULL)::pulse.job_spec
      FROM generate_series(1, 30) AS g));
$$;

SELECT add_of_all_kinds();
SELECT complete_index(i, 'stored as they are') FROM indexes() AS i;
SELECT is((SELECT count(*)::int FROM pulse.job), 1237, 'all jobs are there');
SELECT is((SELECT count(DISTINCT id)::int FROM pulse.job), 1237, 'each with an id of its own');
SELECT is((SELECT count(*)::int FROM pulse.job
            WHERE identifier = 'mail' AND flags = '{a,b}' AND state IN ('ready', 'parked')),
  109, 'flags are a sorted set in many as in one');
SELECT is((SELECT length(payload #>> '{}') FROM pulse.job WHERE identifier = 'large'), 640000,
  'a large payload is whole');

-- What somebody else indexed, or constrained, gets what a statement would give it.
DELETE FROM pulse.job;
CREATE INDEX job_payload_idx ON pulse.job ((payload::text) text_pattern_ops)
  WHERE identifier = 'mail' AND length(payload::text) < 1000;
CREATE UNIQUE INDEX job_once_idx ON pulse.job (run_at) WHERE identifier = 'once';
SELECT add_of_all_kinds();
SELECT complete_index(i, 'with indexes of others') FROM indexes() AS i;
SELECT lives_ok($$SELECT pulse.add_job('once', run_at => '2100-01-01')$$, 'one such job is added');
SELECT throws_ok($$SELECT pulse.add_job('once', run_at => '2100-01-01')$$, '23505', NULL,
  'an index of others refuses a second one');
SELECT throws_ok($$SELECT pulse.add_jobs(ARRAY[
    ('once', NULL, NULL, '2100-01-01', NULL, NULL, NULL, NULL)::pulse.job_spec])$$, '23505', NULL,
  'also among many');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
