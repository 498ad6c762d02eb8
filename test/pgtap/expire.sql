-- sql/recovery/expire.sql: a job that no claim takes by its start_by is handed out by none, and
-- ends as expired at the next sweep.
\ir support/setup.psql
CREATE EXTENSION IF NOT EXISTS amcheck;
SELECT plan(43);

-- The clock of this file, in seconds from now.
CREATE FUNCTION at(seconds int) RETURNS text
  LANGUAGE sql AS $$ SELECT set_config('pulse.clock_offset', seconds::text, true) $$;
-- No time passes but by at(), however slow the machine is.
SELECT set_config('pulse.frozen_clock', pulse_internal.live_base_us()::text, true) \g /dev/null
CREATE FUNCTION claimed(worker bigint) RETURNS bigint
  LANGUAGE sql AS $$ SELECT count(*) FROM pulse.claim(worker, 10) $$;
CREATE FUNCTION ends() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(f.identifier || ' ' || f.state, ', ' ORDER BY f.id) FROM pulse.finished_job AS f
$$;

SELECT refuses($$SELECT pulse.set_task('t', expires_after => '0')$$, 'PU004',
  'a task cannot let its jobs expire at once');
SELECT is((pulse.set_task('brief', expires_after => '5 s', backoff => 'none')).expires_after,
  '5 s', 'a task says how long its jobs may wait for a first claim');
SELECT is((pulse.set_task('brief', max_attempts => 5)).expires_after, '5 s',
  'NULL leaves that as it is');
SELECT given_worker('expiry', '{brief,long,queued}') AS worker \gset

-- --- who has a start_by -------------------------------------------------------------------------

SELECT is(j.start_by - j.run_at, '5 s', 'a new job of the task gets its start_by by its run_at')
  FROM pulse.add_job('brief', run_at => now() + interval '1 hour') AS j;
SELECT is(j.start_by - j.run_at, '5 s', 'also one that is added with its own max_attempts')
  FROM pulse.add_job('brief', max_attempts => 2) AS j;
SELECT results_eq(
  $$SELECT j.identifier, j.start_by - j.run_at FROM pulse.add_jobs(ARRAY[
      ROW('brief', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
      ROW('long', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
      ROW('brief', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec]) AS j$$,
  $$VALUES ('brief' COLLATE "C", interval '5 s'), ('long', NULL), ('brief', '5 s')$$,
  'of many jobs those of such a task');
SELECT is(j.start_by - j.run_at, '5 s', 'also a keyed one')
  FROM pulse.add_job('brief', job_key => 'k') AS j;
SELECT is(j.start_by, NULL, 'a job that is replaced by one of another task loses it')
  FROM pulse.add_job('long', job_key => 'k') AS j;
SELECT is(j.start_by - j.run_at, '5 s', 'and gets a new one with the task')
  FROM pulse.add_job('brief', job_key => 'k', run_at => now() + interval '1 day') AS j;
SELECT count(pulse.add_job('brief', queue_name => 'q')) FROM generate_series(1, 2) \g /dev/null
SELECT claimed(:worker) \g /dev/null
SELECT lives_ok($$SELECT public.bt_index_check('pulse.job_start_by_idx', true)$$,
  'C code makes the entries of jobs that may expire');
DELETE FROM pulse.job;
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;
CREATE TRIGGER audit BEFORE INSERT OR UPDATE ON pulse.job FOR EACH ROW EXECUTE FUNCTION audit();
SELECT is(j.start_by - j.run_at, '5 s', 'beside a trigger a job gets its start_by too')
  FROM pulse.add_job('brief') AS j;
SELECT claimed(:worker) \g /dev/null
SELECT is((SELECT count(*) FILTER (WHERE start_by IS NULL) FROM pulse.job), 1::bigint,
  'and its claim takes it away');
DROP TRIGGER audit ON pulse.job;
DELETE FROM pulse.job;

-- --- claims and sweeps --------------------------------------------------------------------------

SELECT id AS late FROM pulse.add_job('brief') \gset
SELECT at(6) \g /dev/null
SELECT is(claimed(:worker), 0::bigint, 'no claim hands out a job past its start_by');
SELECT is((SELECT reason FROM pulse.claim_job(:worker, :late)), 'expired', 'nor does claim_job');
SELECT is((SELECT string_agg(e.kind || ' ' || e.blocker, ', ') FROM pulse.explain_job(:late) AS e
            WHERE e.kind IN ('job', 'queue', 'line')), 'job expired', 'explain_job says so');
SELECT is((SELECT jobs_failed FROM pulse.sweep(dry_run => true)), 1, 'a sweep would end it');
SELECT is((SELECT jobs_failed FROM pulse.sweep()), 1, 'a sweep ends it');
SELECT is(ends(), 'brief expired', 'as expired');
SELECT matches((SELECT last_error FROM pulse.finished_job WHERE id = :late), '^not started by 2',
  'its last error says by when it had to start');
SELECT is((SELECT count(*) FROM pulse.ended_jobs WHERE state = 'expired'), 1::bigint,
  'operators see it among the jobs that ended');
SELECT is((pulse.retry_job(:late)).start_by, NULL, 'once retried it does not expire');
SELECT is(claimed(:worker), 1::bigint, 'and is handed out');
DELETE FROM pulse.job;
DELETE FROM pulse.finished_job;

SELECT at(0) \g /dev/null
SELECT id AS job, token FROM given_claimed_job(:worker, 'brief') \gset
SELECT is((SELECT start_by FROM pulse.job WHERE id = :job), NULL, 'a claim takes start_by away');
SELECT pulse.release(ARRAY[:job], ARRAY[:token]) \g /dev/null
SELECT at(6) \g /dev/null
SELECT is((SELECT jobs_failed FROM pulse.sweep()), 0, 'a job that was once claimed stays');
SELECT is(claimed(:worker), 1::bigint, 'and is handed out again');
DELETE FROM pulse.job;

-- --- retries ------------------------------------------------------------------------------------

SELECT at(0) \g /dev/null
SELECT id AS job, start_by FROM pulse.add_job('brief') \gset
SELECT pulse.cancel_job(:job) \g /dev/null
SELECT is((pulse.retry_job(:job)).start_by, :'start_by'::timestamptz,
  'a job that is retried before its start_by keeps it');
SELECT pulse.permanently_fail_jobs(ARRAY[:job]) \g /dev/null
SELECT at(6) \g /dev/null
SELECT is((SELECT start_by FROM pulse.reschedule_jobs(ARRAY[:job], attempts => 0)), NULL,
  'a failed job that goes live after it loses it');
DELETE FROM pulse.job;
SELECT at(0) \g /dev/null
SELECT id AS parent, token FROM given_claimed_job(:worker, 'above') \gset
SELECT id AS child, start_by FROM pulse.add_job_after(ARRAY[:parent], 'brief') \gset
SELECT pulse.fail(:parent, :token, 'boom', retry => false) \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT at(6) \g /dev/null
SELECT is(ends(), 'above failed, brief cancelled', 'given a job that ended with its parent');
SELECT pulse.retry_job(:parent) \g /dev/null
SELECT is((SELECT start_by FROM pulse.job WHERE id = :child), :'start_by'::timestamptz,
  'a job that comes back with its parent keeps its start_by');
SELECT pulse.sweep() \g /dev/null
SELECT is(ends(), 'brief expired', 'so it expires');
SELECT is((pulse.retry_job(:child)).start_by, NULL, 'unless it is retried itself');
DELETE FROM pulse.job;
DELETE FROM pulse.finished_job;
DELETE FROM pulse.dependency;

-- --- in queues, and bounds ----------------------------------------------------------------------

SELECT at(0) \g /dev/null
SELECT count(pulse.add_job('brief', queue_name => 'q')) FROM generate_series(1, 3) \g /dev/null
SELECT count(pulse.add_job('queued', queue_name => 'q')) \g /dev/null
SELECT at(6) \g /dev/null
SELECT is((SELECT jobs_failed FROM pulse.sweep(2)), 2, 'a sweep ends at most max_jobs of them');
SELECT is((SELECT jobs_failed FROM pulse.sweep()), 1, 'the next one the rest');
SELECT is((SELECT identifier FROM pulse.claim(:worker)), 'queued' COLLATE "C",
  'then the queue goes on');
SELECT id AS job FROM pulse.add_job('long') \gset
SELECT is((pulse_internal.set_start_by(:job, pulse.now())).start_by IS NULL, false,
  'another part sets the start_by of a waiting job');
SELECT refuses(format('SELECT pulse_internal.set_start_by(%s, ''infinity'')', :job), 'PU004',
  'an infinite start_by is refused');
SELECT pulse.set_task('decade', expires_after => '10 years') \g /dev/null
SELECT is((pulse.add_job('decade', run_at => '294264-12-31 UTC')).start_by,
  timestamptz '294274-12-31 UTC', 'the latest run_at has an expiry');
SELECT throws_matching('SELECT pulse.' || call, '^(job number 1: )?run_at is 294.*, out of range$',
                       call || ' is refused')
  FROM unnest(ARRAY['add_job(''decade'', run_at => ''294276-12-31 UTC'')',
         'add_flow(''[{"identifier": "decade", "run_at": "294276-12-31 UTC"}]'')',
         format('reschedule_jobs(ARRAY[%s], ''294276-12-31 UTC'')', :job)]) AS call;
SELECT lives_ok($$SELECT pulse.set_task('decade', expires_after => '3653 days')$$,
  'ten years may be told in days');
SELECT refuses($$SELECT pulse.set_task('decade', expires_after => '3654 days')$$, 'PU004',
  'more days are refused');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
