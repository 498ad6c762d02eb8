-- Moments beyond the year 294247, where microseconds since 1970 need more than 64 bits: what takes
-- such a run_at also gets on with its job.
\ir support/setup.psql
SELECT plan(8);
SELECT given_worker() AS ann \gset

CREATE FUNCTION changed_by(operation bigint) RETURNS bigint
  LANGUAGE sql AS $$ SELECT changed FROM pulse.run_operation(operation) $$;
CREATE FUNCTION given_late_job() RETURNS bigint
  LANGUAGE sql AS $$ SELECT id FROM pulse.add_job('late', run_at => '294264-12-31 00:00Z') $$;

SELECT given_late_job() AS job \gset
SELECT id AS operation FROM pulse.start_operation('reschedule', '{}', '{"priority": 3}') \gset
SELECT is(changed_by(:operation), 1::bigint, 'a reschedule changes such a job');
SELECT is(changed_by((pulse.undo_operation(:operation)).id), 1::bigint, 'its undo takes it back');
SELECT is((SELECT priority FROM pulse.job WHERE id = :job), 0::smallint, 'the job is as it was');
SELECT id AS operation FROM pulse.start_operation('cancel', '{}') \gset
SELECT is(changed_by(:operation), 1::bigint, 'a cancel ends it');
SELECT is(changed_by((pulse.undo_operation(:operation)).id), 1::bigint, 'and brings it back');
SELECT id AS operation FROM pulse.start_operation('reschedule', '{}',
  '{"run_at": "294264-12-30 00:00Z"}') \gset
SELECT is(changed_by(:operation), 1::bigint, 'a reschedule gives such a moment');

-- Each call that shows jobs.
SELECT lives_ok(call, call || ' shows it') FROM (VALUES (format(
  $$SELECT pulse.explain_job(%1$s), pulse.get_job(%1$s), pulse.overview(), pulse.list_jobs(),
           pulse.stats(), pulse.explain_task('late'), pulse.sweep(), pulse.tick(), pulse.doctor()$$,
  :job))) AS c (call);
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
SELECT * FROM finish();
ROLLBACK;
