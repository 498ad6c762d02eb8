-- A job has at most 64 flags of 128 characters, whoever adds it and in whichever way; jobs that
-- were stored with more go on.
\ir support/setup.psql
SELECT plan(30);

CREATE EXTENSION pg_pulse_graphile;
CREATE FUNCTION flags(count int) RETURNS text[]
  LANGUAGE sql AS $$ SELECT array_agg('f' || n) FROM generate_series(1, count) AS n $$;

-- --- the bound -----------------------------------------------------------------------------------

SELECT is(cardinality((pulse.add_job('most', flags => flags(64))).flags), 64, 'a job has 64 flags');
SELECT is(cardinality((pulse.add_job('same', flags => flags(64) || flags(64))).flags), 64,
  'of which each counts once');
SELECT is((pulse.add_job('long', flags => ARRAY[repeat('ä', 128)])).flags,
  ARRAY[repeat('ä', 128)], 'a flag has 128 characters, whatever their bytes');
SELECT is((pulse.add_job('none', flags => '{""}')).flags, '{""}', 'or none');
SELECT is(refusal_of($$SELECT pulse.add_job('mail', flags => flags(65))$$),
  ROW('PU004', 'flags has 65 names, out of range', '',
      'It may have 64, each of at most 128 characters.')::refusal, 'the refusal counts the flags');
SELECT is(refusal_of($$SELECT pulse.add_job('mail', flags => ARRAY['a', repeat('ä', 129)])$$),
  ROW('PU004', 'a flag has 129 characters, out of range',
      'It begins with ''' || repeat('ä', 32) || '''.', 'It may have 128.')::refusal,
  'or shows the flag that is too long');
SELECT refuses($$SELECT pulse.add_job('mail', flags => flags(1000000))$$, 'PU004',
  'a million flags are too many');
SELECT refuses($$SELECT pulse.add_job('mail', flags => ARRAY[repeat('x', 60000000)])$$, 'PU004',
  'and 60 MB are too long');

-- --- every way in --------------------------------------------------------------------------------

SELECT pulse.add_job('mail', job_key => 'k', flags => '{kept}') \g /dev/null
SELECT refuses(format(c.call, f.flags), 'PU004', c.way || ' refuses ' || f.fault)
  FROM (VALUES ('flags(65)', '65 flags'), ('ARRAY[repeat(''x'', 129)]', 'a flag of 129 characters'))
         AS f (flags, fault),
       (VALUES
         ('a keyed add', $$SELECT pulse.add_job('mail', job_key => 'k', flags => %s)$$),
         ('a deduped add', $$SELECT pulse.add_job('mail', job_key => 'k', flags => %s,
                                                  job_key_mode => 'unsafe_dedupe')$$),
         ('add_jobs', $$SELECT pulse.add_jobs(ARRAY[('mail', '{}', NULL, NULL, NULL, NULL, NULL,
                                                     %s)::pulse.job_spec])$$),
         ('add_job_after', $$SELECT pulse.add_job_after(identifier => 'mail', flags => %s,
                              after => ARRAY(SELECT j.id FROM pulse.job AS j LIMIT 1))$$),
         ('add_flow', $$SELECT * FROM pulse.add_flow(json_build_array(json_build_object(
                          'identifier', 'mail', 'flags', %s)))$$),
         ('schedule', $$SELECT pulse.schedule('often', 'mail', every => '1 min', flags => %s)$$),
         ('graphile_worker.add_job', $$SELECT graphile_worker.add_job('mail', flags => %s)$$),
         ('graphile_worker.add_jobs', $$SELECT graphile_worker.add_jobs(ARRAY[('mail', '{}', NULL,
            NULL, NULL, NULL, NULL, %s)::graphile_worker.job_spec])$$)) AS c (way, call);
SELECT is((SELECT j.flags FROM pulse.job AS j WHERE j.job_key = 'k'), '{kept}',
  'the job that has the key keeps its flags');
\o /dev/null
\ir support/graphile_jobs.psql
\o
UPDATE "their Jobs"._private_jobs
   SET flags = (SELECT jsonb_object_agg(f, true) FROM unnest(flags(65)) AS f) WHERE id = 1;
SELECT is((SELECT detail FROM pulse.import_graphile_worker('their Jobs')
            WHERE outcome = 'left there' AND detail LIKE 'flags %'),
  'flags has 65 names, out of range: ids 1', 'an import leaves such a job there, and says why');

-- --- jobs of before ------------------------------------------------------------------------------

DELETE FROM pulse.job;
INSERT INTO pulse.job (identifier, flags, job_key, max_attempts, attempts, revision, run_at, state,
                       priority, crashes, payload)
  VALUES ('old', flags(1000), 'old', 2, 0, 0, now(), 'ready', 0, 0, '{}') RETURNING id AS old \gset
SELECT given_worker() AS worker \gset
SELECT token FROM pulse.claim(:worker, 1, '{old}') \gset
SELECT pulse.fail(:old, :token, 'error', false) \g /dev/null
SELECT is(cardinality((pulse.retry_job(:old)).flags), 1000,
  'one that was stored with more runs, and runs again');
SELECT is((SELECT cardinality(r.flags) FROM pulse.reschedule_jobs(ARRAY[:old], priority => 5) AS r),
  1000, 'its order changes');
SELECT is((SELECT ROW(j.id, j.flags) FROM pulse.add_job('new', job_key => 'old', flags => '{f}')
             AS j), ROW(:old::bigint, '{f}'::text[]), 'a newer job takes its place');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise holds');

SELECT * FROM finish();
ROLLBACK;
