-- sql/structure/tables.sql: what is stored, and what a dump takes along.
\ir support/setup.psql
SELECT plan(69);

SELECT has_table('pulse', name, format('pulse.%s is a table', name))
  FROM unnest(ARRAY['job', 'finished_job', 'attempt', 'worker', 'heartbeat', 'queue', 'task'])
       AS name;

-- --- columns ------------------------------------------------------------------------------------

SELECT has_column('pulse', 'job', name, format('a live job has a column %s', name))
  FROM unnest(ARRAY['id', 'identifier', 'payload', 'queue_name', 'priority', 'run_at', 'state',
                    'attempts', 'max_attempts', 'crashes', 'job_key', 'flags', 'worker_id',
                    'token', 'claimed_at', 'last_activity_at', 'stage', 'progress', 'checkpoint',
                    'last_error', 'revision', 'created_at', 'updated_at']) AS name;
SELECT col_type_is('pulse', 'job', 'id', 'bigint', 'a job''s id does not run out');
SELECT col_type_is('pulse', 'job', 'token', 'bigint', 'a token is a bigint');
SELECT col_type_is('pulse', 'job', 'payload', 'json', 'a payload is kept as it was written');
SELECT col_type_is('pulse', 'job', 'state', 'pulse.job_state', 'a live job''s state is an enum');
SELECT col_is_pk('pulse', 'job', 'id', 'a live job is found by its id');
SELECT has_column('pulse', 'finished_job', name, format('a finished job has a column %s', name))
  FROM unnest(ARRAY['result', 'last_error', 'finished_at']) AS name;
SELECT col_type_is('pulse', 'finished_job', 'state', 'pulse.finished_state',
  'a finished job''s state is an enum');
SELECT col_is_pk('pulse', 'finished_job', 'id', 'no job finishes twice');
SELECT has_column('pulse', 'worker', name, format('a worker has a column %s', name))
  FROM unnest(ARRAY['id', 'name', 'hostname', 'boot_id', 'pid_namespace', 'pid', 'process_start',
                    'tasks', 'heartbeat_interval', 'sweep_threshold', 'started_at', 'state',
                    'ended_at', 'reason']) AS name;

-- --- rules learned by trying --------------------------------------------------------------------

SELECT is_empty(
  $$SELECT conname FROM pg_constraint
     WHERE contype = 'f' AND connamespace::regnamespace::text ~ '^pulse'$$,
  'no table has a foreign key');
SELECT is_empty(
  $$SELECT oid::regclass FROM pg_class AS c
     WHERE relnamespace::regnamespace::text ~ '^pulse' AND relkind = 'r' AND relreplident <> 'f'
       AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)$$,
  'a publication FOR ALL TABLES can tell which row of a table has changed');
SELECT is_empty($$SELECT tgname FROM pg_trigger WHERE tgrelid = 'pulse.job'::regclass
                     AND tgfoid <> 'pulse_internal.count_written_job'::regproc$$,
  'the job table has no trigger but those that count what statements write');
SELECT is(
  (SELECT count(*)::int FROM pg_index WHERE indrelid = 'pulse.heartbeat'::regclass), 1,
  'a heartbeat row has no index but its key, so that a beat is a HOT update');
SELECT is_empty(
  $$SELECT c.relname FROM pg_class AS c
     WHERE c.relnamespace::regnamespace::text ~ '^pulse' AND c.relkind IN ('r', 'v')
       AND obj_description(c.oid, 'pg_class') IS NULL$$,
  'every table and view has a comment');
SELECT is_empty(
  $$SELECT c.oid::regclass, a.attname FROM pg_class AS c
      JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.relnamespace = 'pulse'::regnamespace AND c.relkind IN ('r', 'v', 'c')
       AND col_description(c.oid, a.attnum) IS NULL$$,
  'so has every column, and every attribute of a type');
SELECT results_eq(
  $$SELECT seqrelid::regclass::text, seqcache, seqcycle FROM pg_sequence
     WHERE seqrelid IN ('pulse.token_seq'::regclass, 'pulse.worker_id_seq'::regclass) ORDER BY 1$$,
  $$VALUES ('pulse.token_seq', 1::bigint, false), ('pulse.worker_id_seq', 1, false)$$,
  'tokens and worker ids are neither cached nor used twice');
SELECT ok(
  (SELECT bool_and(seqmax < 2::numeric ^ 40) FROM pg_sequence
    WHERE seqrelid IN ('pulse.token_seq'::regclass, 'pulse.worker_id_seq'::regclass)),
  'their numbers stay below the bits of the timeline');

SELECT is_empty(
  $$SELECT attrelid::regclass, attname FROM pg_attribute
     WHERE atttypid IN ('regproc'::regtype, 'regprocedure'::regtype, 'regoper'::regtype,
                        'regoperator'::regtype, 'regnamespace'::regtype, 'regconfig'::regtype,
                        'regdictionary'::regtype, 'regcollation'::regtype)
       AND attrelid IN (SELECT oid FROM pg_class
                         WHERE relnamespace::regnamespace::text ~ '^pulse' AND relkind = 'r')$$,
  'no table has a column of a type that pg_upgrade refuses');

-- --- dump ---------------------------------------------------------------------------------------

CREATE FUNCTION dumped() RETURNS SETOF text
  LANGUAGE sql AS $$
  SELECT split_part(c.oid::regclass::text, '.', 2)
    FROM pg_extension AS e, unnest(e.extconfig) AS r (oid) JOIN pg_class AS c ON c.oid = r.oid
   WHERE e.extname = 'pg_pulse'
$$;
SELECT set_has('SELECT dumped()',
  $$VALUES ('job'), ('finished_job'), ('attempt'), ('queue'), ('task')$$,
  'jobs, their history and the settings survive a dump');
SELECT set_has('SELECT dumped()', $$VALUES ('job_id_seq'), ('token_seq'), ('worker_id_seq')$$,
  'no id or token is given out again after a restore');
SELECT set_hasnt('SELECT dumped()', $$VALUES ('worker'), ('heartbeat'), ('clock'),
  ('installation_witness')$$,
  'workers, their clock and the witness of the files are not restored');

-- --- created anew -------------------------------------------------------------------------------

DROP EXTENSION pg_pulse CASCADE;
CREATE EXTENSION pg_pulse;
SELECT is_empty(
  $$SELECT d FROM dumped() AS d WHERE d NOT LIKE '%_seq' AND rows_of(d) > 0$$,
  'the install script inserts no row into a dumped table');
SELECT is(state_of(given_job()), 'ready',
  'a session can add a job after the extension was replaced');
SELECT is(cardinality(claimed_ids(given_worker())), 1, 'and claim it');

SELECT * FROM finish();
ROLLBACK;
