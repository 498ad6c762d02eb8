-- pulse_internal.next_revision(): the revision of a job begins again at 0, and no call fails there.
\ir support/setup.psql
SELECT plan(13);

-- As after 2147483647 changes, one each millisecond.
CREATE FUNCTION exhaust(job_id bigint) RETURNS bigint
  LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pulse.job SET revision = 2147483647, created_at = created_at - interval '30 days'
   WHERE id = job_id;
  UPDATE pulse.finished_job SET revision = 2147483647, created_at = created_at - interval '30 days'
   WHERE id = job_id;
  RETURN job_id;
END $$;
CREATE FUNCTION revision_of(job_id bigint) RETURNS int
  LANGUAGE sql AS $$
  SELECT revision FROM pulse.job WHERE id = job_id
  UNION ALL SELECT revision FROM pulse.finished_job WHERE id = job_id
$$;

SELECT is((SELECT ROW(a.id, a.revision) FROM pulse.add_job('mail', job_key => mode,
                                                           job_key_mode => mode) AS a),
          ROW(exhausted.id, 0), mode || ' begins again at 0')
  FROM unnest('{replace,preserve_run_at,unsafe_dedupe}'::text[]) AS mode,
       LATERAL (SELECT exhaust(given_job(job_key => mode)) AS id) AS exhausted;
SELECT exhaust(given_job(job_key => 'bulk')) AS job \gset
SELECT is((SELECT revision FROM pulse.add_jobs('{"(mail,,,,,bulk,,)"}') WHERE id = :job), 0,
  'and so does an add of many');

SELECT exhaust(given_job()) AS job \gset
SELECT is((SELECT revision FROM pulse.reschedule_jobs(ARRAY[:job], priority => 1)), 0,
  'of a waiting job a reschedule');
SELECT given_worker() AS ann \gset
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
SELECT pulse.fail(:job, :token, 'no ink', false) \g /dev/null
SELECT exhaust(:job) \g /dev/null
SELECT is((SELECT count(*) FROM pulse.reschedule_jobs(ARRAY[:job], priority => 1)), 1::bigint,
  'of a failed job a reschedule');
SELECT is(revision_of(:job), 0, 'that leaves it failed');
SELECT exhaust(:job) \g /dev/null
SELECT is((SELECT revision FROM pulse.retry_job(:job)), 0, 'a retry');
SELECT pulse.cancel_job(:job), exhaust(:job), id AS operation
  FROM pulse.start_operation('retry', json_build_object('ids', ARRAY[:job])) \gset
SELECT is((SELECT changed FROM pulse.run_operation(:operation)), 1::bigint, 'and an operation');
SELECT is(revision_of(:job), 0, 'do too');

-- What is new has the revision 0 as well.
SELECT exhaust(given_job(job_key => 'waits')) AS job \gset
SELECT is((SELECT id FROM pulse.add_job_after(ARRAY[given_job()], 'mail', job_key => 'waits',
             job_key_mode => 'unsafe_dedupe')), :job::bigint,
  'a job of the key stays where it begins again');
SELECT is_empty('SELECT child_id FROM pulse.dependency', 'and waits for nobody');

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
SELECT * FROM finish();
ROLLBACK;
