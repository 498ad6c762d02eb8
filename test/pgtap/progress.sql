-- sql/worker/progress.sql: a running job says that it gets on.
\ir support/setup.psql
SELECT plan(32);

SELECT expect_function('progress',
  'job_id bigint, token bigint, message text DEFAULT NULL::text, '
  'fraction double precision DEFAULT NULL::double precision, checkpoint json DEFAULT NULL::json, '
  'stage text DEFAULT NULL::text', 'void', 'volatile', 'definer');

SELECT given_worker() AS ann \gset
SELECT id AS job, token FROM given_claimed_job(:ann) \gset
CREATE FUNCTION reported(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT ROW(message, progress, checkpoint, stage)::text FROM pulse.job AS j
   WHERE j.id = reported.job_id
$$;

SELECT lives_ok(
  format('SELECT pulse.progress(%s, %s, ''half'', 0.5, ''{"page": 2}'', ''print'')', :job, :token),
  'the owner reports progress');
SELECT is(reported(:job), ROW('half', 0.5, '{"page": 2}', 'print')::text, 'which is stored');
SELECT lives_ok(format('SELECT pulse.progress(%s, %s)', :job, :token), 'a report may say nothing');
SELECT is(reported(:job), ROW('half', 0.5, '{"page": 2}', 'print')::text, 'NULL leaves a value');
SELECT lives_ok(format('SELECT pulse.progress(%s, %s, fraction => %s)', :job, :token, f),
                'a fraction may be ' || f) FROM unnest(ARRAY[0, 1]) AS f;
SELECT is(reported(:job), ROW('half', 1, '{"page": 2}', 'print')::text, 'the last report counts');
SELECT travel('5 s');
SELECT pulse.progress(:job, :token) \g /dev/null
SELECT cmp_ok(last_activity_at, '>=', now() + interval '5 s', 'each report is a sign of life')
  FROM pulse.job WHERE id = :job;
SELECT travel('0');

-- --- what becomes of it -------------------------------------------------------------------------

SELECT pulse.fail(:job, :token, 'boom', retry_in => '0') \g /dev/null
SELECT token AS next FROM pulse.claim(:ann) \gset
SELECT is((SELECT checkpoint::text FROM pulse.held(:ann)), '{"page": 2}',
  'the next attempt gets the checkpoint');
SELECT answers(format('SELECT message, progress, stage FROM pulse.job WHERE id = %s', :job),
  ROW(NULL, NULL, NULL), 'and starts without a report of its own');
SELECT travel('10 s');
SELECT pulse.progress(:job, :next) \g /dev/null
SELECT cmp_ok((SELECT last_heartbeat_at FROM pulse.heartbeat WHERE worker_id = :ann), '<',
  now() + interval '10 s', 'inside a transaction block a report is no beat');
SELECT travel('0');

-- --- refusals -----------------------------------------------------------------------------------

SELECT refuses(format('SELECT pulse.progress(%s, %s, ''x'')', :job, :token), 'PU001',
  'a stale token cannot report');
SELECT isnt((refusal_of(format('SELECT pulse.progress(%s, %s)', :job, :token))).detail,
  'no live job', 'the refusal tells when there is a live job');
SELECT refuses(format('SELECT pulse.progress(0, %s)', :next), 'PU001',
  'there is no progress of an unknown job');
SELECT is((refusal_of(format('SELECT pulse.progress(0, %s)', :next))).detail, 'no live job',
  'the refusal tells when there is none');
SELECT refuses(format('SELECT pulse.progress(%s, NULL)', :job), 'PU001', 'NULL is no token');
SELECT refuses(format('SELECT pulse.progress(NULL, %s)', :next), 'PU001', 'and no job');
SELECT refuses(format('SELECT pulse.progress(%s, %s, fraction => %L)', :job, :next, f), 'PU004',
               'a fraction cannot be ' || f)
  FROM unnest(ARRAY['-0.1', '1.01', 'NaN', 'Infinity', '-Infinity']) AS f;
SELECT refuses(format('SELECT pulse.progress(%s, %s, checkpoint => ''{'')', :job, :next), '22P02',
  'a checkpoint is JSON');
UPDATE pulse.heartbeat SET verdict = 'lost' WHERE worker_id = :ann;
SELECT lives_ok(format('SELECT pulse.progress(%s, %s, ''x'')', :job, :next),
  'only the token counts, whatever the worker''s state');
UPDATE pulse.heartbeat SET verdict = 'alive' WHERE worker_id = :ann;
SELECT pulse.complete(:job, :next) \g /dev/null
SELECT refuses(format('SELECT pulse.progress(%s, %s)', :job, :next), 'PU001',
  'a completed job makes no progress');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
