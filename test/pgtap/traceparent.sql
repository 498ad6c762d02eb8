-- pulse.traceparent: which values it takes, the jobs that get it, and what hands it on.
\ir support/setup.psql
SELECT plan(50);

\set mine '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
\set other '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'
CREATE FUNCTION trace_of(job_id bigint) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce((SELECT traceparent FROM pulse.job WHERE id = job_id),
                  (SELECT traceparent FROM pulse.finished_job WHERE id = job_id)) $$;

-- --- the format ---------------------------------------------------------------------------------

SELECT is(current_setting('pulse.traceparent'), '', 'a session has no trace of its own');
SELECT lives_ok(format('SET LOCAL pulse.traceparent = %L', given), given || ' is taken')
  FROM unnest(ARRAY[:'mine', :'other', '01' || substr(:'mine', 3), 'cc' || substr(:'mine', 3)
                    || '-what-a-later-version-adds', '']) AS given;
SELECT throws_ok(format('SET LOCAL pulse.traceparent = %L', g.given), '22023', NULL, g.problem)
  FROM (VALUES ('no trace', 'a word is refused'),
               (left(:'mine', -1), 'so is one that is too short'),
               (:'mine' || '0', 'one that is too long'),
               (:'mine' || '-more', 'one of version 00 that goes on'),
               ('01' || substr(:'mine', 3) || 'more', 'one that goes on without a hyphen'),
               ('ff' || substr(:'mine', 3), 'version ff'),
               (upper(:'mine'), 'capital letters'),
               (replace(:'mine', '4bf9', '4bg9'), 'a digit that is none'),
               (replace(:'mine', '-', '_'), 'other hyphens'),
               ('00-' || repeat('0', 32) || substr(:'mine', 36), 'a trace of zeros'),
               (left(:'mine', 36) || repeat('0', 16) || '-01', 'a parent of zeros'),
               ('01' || substr(:'mine', 3) || '-' || repeat('x', 200), 'an endless one'))
       AS g (given, problem);
CREATE ROLE producer_a;
SELECT pulse.grant_producer('producer_a') \g /dev/null
SELECT is((refusal_of(format('SET LOCAL pulse.traceparent = %L', :'mine'), 'producer_a')).code,
          '00000', 'every role may set it');

-- --- which jobs get it --------------------------------------------------------------------------

SET LOCAL pulse.keep_completed = '1h';
SET LOCAL pulse.traceparent = '';
SELECT id AS before FROM pulse.add_job('mail') \gset
SET LOCAL pulse.traceparent = :'mine';
SELECT id AS one, traceparent = :'mine' AS is_told FROM pulse.add_job('mail') \gset
SELECT id AS many FROM pulse.add_jobs(ARRAY[('mail', NULL, NULL, NULL, NULL, NULL, NULL,
                                             NULL)::pulse.job_spec]) \gset
SELECT id AS keyed FROM pulse.add_job('mail', job_key => 'k') \gset
SELECT id AS after FROM pulse.add_job_after(ARRAY[:one], 'mail') \gset
SELECT id AS member FROM pulse.add_flow('[{"identifier": "mail"}]') \gset
SELECT name FROM pulse.schedule('daily', 'mail', '@daily') \g /dev/null
SELECT id AS by_hand FROM pulse.run_schedule_now('daily') \gset
SELECT is(trace_of(:before), NULL, 'a job added without a trace has none');
SELECT ok(:'is_told', 'add_job returns it');
SELECT is(trace_of(j.id), :'mine', j.what || ' stores it')
  FROM (VALUES (:one, 'add_job'), (:many, 'add_jobs'), (:keyed, 'an add with a key'),
               (:after, 'add_job_after'), (:member, 'add_flow'),
               (:by_hand, 'run_schedule_now')) AS j (id, what);

SET LOCAL pulse.traceparent = :'other';
SELECT id FROM pulse.add_job('mail', job_key => 'k', job_key_mode => 'unsafe_dedupe') \g /dev/null
SELECT is(trace_of(:keyed), :'mine', 'a job that stays as it is keeps its trace');
SELECT id FROM pulse.add_job('mail', job_key => 'k') \g /dev/null
SELECT is(trace_of(:keyed), :'other', 'one that is replaced gets the newer one');
SET LOCAL pulse.traceparent = '';
SELECT id FROM pulse.add_job('mail', job_key => 'k') \g /dev/null
SELECT is(trace_of(:keyed), NULL, 'or none');

-- A sweep that runs in a trace of its own.
SET LOCAL pulse.traceparent = :'mine';
SELECT pulse.schedule('yearly', 'due', '@yearly'),
  pulse.schedule('keyed', 'due', '@yearly', job_key => 'due') \g /dev/null
SELECT travel('400 days') \g /dev/null
SELECT pulse.sweep() \g /dev/null
SELECT is((SELECT array_agg(traceparent) FROM pulse.job WHERE identifier = 'due'), '{NULL,NULL}',
          'a job that falls due by a schedule is in no trace of the session that sweeps');
SELECT is(current_setting('pulse.traceparent'), :'mine', 'which keeps its own');
SET LOCAL pulse.traceparent = '';

-- --- what hands it on ---------------------------------------------------------------------------

SELECT given_worker() AS ann \gset
CREATE SCHEMA app;
CREATE FUNCTION app.adds(payload json) RETURNS text LANGUAGE sql AS $$
  SELECT id::text FROM pulse.add_job('added', payload) $$;
CREATE FUNCTION app.adds_too(job pulse.claimed_job) RETURNS text LANGUAGE sql AS $$
  SELECT id::text FROM pulse.add_job('added', job.payload) $$;
CREATE FUNCTION app.fails(payload jsonb) RETURNS void LANGUAGE plpgsql AS
  'BEGIN RAISE EXCEPTION ''no''; END';
SELECT pulse.set_task('json', handler => 'app.adds(json)'),
  pulse.set_task('job', handler => 'app.adds_too(pulse.claimed_job)'),
  pulse.set_task('failing', handler => 'app.fails(jsonb)') \g /dev/null
CREATE FUNCTION claimed(task text, traceparent text) RETURNS pulse.claimed_job
  LANGUAGE plpgsql AS $$
DECLARE
  taken pulse.claimed_job;
BEGIN
  PERFORM set_config('pulse.traceparent', claimed.traceparent, true);
  PERFORM pulse.add_job(task);
  PERFORM set_config('pulse.traceparent', '', true);
  SELECT c.* INTO taken FROM pulse.worker AS w, pulse.claim(w.id, 1, ARRAY[task]) AS c;
  RETURN taken;
END $$;
CREATE FUNCTION result_of(job_id bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT (result #>> '{}')::bigint FROM pulse.finished_job WHERE id = job_id $$;

SELECT id, token, traceparent AS seen FROM claimed('json', :'mine') \gset
SELECT is(:'seen'::text, :'mine', 'a claim hands it out');
SELECT is((SELECT traceparent FROM pulse.held(:ann) WHERE id = :id), :'mine', 'and held again');
SELECT lives_ok(format('SELECT pulse.perform_job(%s, %s)', :id, :token), 'a handler adds a job');
SELECT is(trace_of(result_of(:id)), :'mine', 'which inherits the trace');
SELECT is(trace_of(:id), :'mine', 'the record of the finished job keeps it');
SELECT id, token FROM claimed('job', :'other') \gset
SELECT lives_ok(format('SELECT pulse.perform_job(%s, %s)', :id, :token),
                'so does one that takes the whole job');
SELECT is(trace_of(result_of(:id)), :'other', 'of which each has its own');
SELECT id, token FROM claimed('json', '') \gset
SET LOCAL pulse.traceparent = :'mine';
SELECT lives_ok(format('SELECT pulse.perform_job(%s, %s)', :id, :token),
                'a handler of a job without a trace');
SELECT is(trace_of(result_of(:id)), NULL, 'adds jobs without one');
SELECT id AS retried, token FROM claimed('plain', :'mine') \gset
SELECT pulse.fail(:retried, :token, 'no', false) \g /dev/null
SELECT is(trace_of(:retried), :'mine', 'a failed job keeps it');
SELECT id FROM pulse.retry_job(:retried) \g /dev/null
SELECT is(trace_of(:retried), :'mine', 'also when it is retried');
SET LOCAL pulse.traceparent = :'mine';
SELECT id AS cancelled, pulse.cancel_job(id) FROM pulse.add_job('plain') \gset
SELECT is(trace_of(:cancelled), :'mine', 'so does one that is cancelled while it waits');

-- --- who sees it --------------------------------------------------------------------------------

SET LOCAL pulse.traceparent = :'mine';
SELECT id AS secret FROM pulse.add_job('mail', job_key => 'secret') \gset
UPDATE pulse.job SET added_by = 'producer_a' WHERE id = :secret;
SET LOCAL pulse.traceparent = :'other';
CREATE ROLE observer_a;
SELECT pulse.grant_observer('observer_a') \g /dev/null
SET LOCAL ROLE producer_a;
SELECT traceparent IS NULL AS is_hidden
  FROM pulse.add_job('mail', job_key => 'secret', job_key_mode => 'unsafe_dedupe') \gset
SELECT traceparent AS own FROM pulse.add_job('mail', job_key => 'secret') \gset
SELECT traceparent IS NULL AS is_gone FROM pulse.remove_job('secret') \gset
SET LOCAL ROLE observer_a;
SELECT job ->> 'traceparent' IS NULL AS is_unseen FROM pulse.get_job(:one) \gset
RESET ROLE;
SELECT ok(:'is_hidden', 'a producer does not see the trace of a job that was there');
SELECT is(:'own'::text, :'other', 'but its own');
SELECT ok(:'is_gone', 'and not that of a job that it removes');
SELECT ok(:'is_unseen', 'who may not read jobs does not see it');
SELECT is((SELECT job ->> 'traceparent' FROM pulse.get_job(:one)), :'mine', 'get_job shows it');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
