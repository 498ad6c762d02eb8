-- Columns that a DBA adds to tables of the extension, with any default, and drops again.
\ir support/setup.psql
SELECT plan(10);

CREATE FUNCTION refused_tables(definition text) RETURNS SETOF text
  LANGUAGE sql AS $$
  SELECT format('%s: %s', c.oid::regclass, r.message)
    FROM pg_class AS c,
         refusal_of(format('ALTER TABLE %s ADD COLUMN %s', c.oid::regclass, definition)) AS r
   WHERE c.relnamespace = 'pulse'::regnamespace AND c.relkind = 'r' AND r.code <> '00000'
$$;

SELECT given_worker() AS ann \gset
SELECT given_claimed_job(:ann) \g /dev/null
SELECT pulse.cancel_job(given_job('ink')) \g /dev/null
SELECT pulse.set_task('mail', backoff => 'none'), pulse.set_queue('post') \g /dev/null
SAVEPOINT filled;
SELECT is_empty(format('SELECT refused_tables(%L)', d.definition),
                format('every table takes a column with %s', d.what))
  FROM (VALUES ('note int DEFAULT 5', 'a constant default'),
               ('added_at timestamptz NOT NULL DEFAULT now()', 'the time of the change'),
               ('label uuid NOT NULL DEFAULT gen_random_uuid()', 'a volatile default'))
       AS d (definition, what);
SELECT id AS job, note = 5 AND label IS NOT NULL AS is_set
  FROM pulse.add_job('mail', queue_name => 'post') \gset
SELECT ok(:'is_set', 'a new job has the defaults');
SELECT promote_queues() \g /dev/null
SELECT token FROM pulse.claim(:ann, 10) WHERE id = :job \gset
SELECT is(pulse.fail(:job, :token, 'no'), 'parked', 'it is claimed and fails');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
ROLLBACK TO filled;

-- Entries that the extension makes itself call no function of an index expression.
CREATE FUNCTION hashed_queues() RETURNS bigint
  LANGUAGE sql AS $$
  SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_xact_user_functions
   WHERE funcid = 'pulse_internal.queue_bucket(text)'::regprocedure
$$;
SET LOCAL track_functions = 'all';
ALTER TABLE pulse.job ADD COLUMN note int;
ALTER TABLE pulse.attempt ADD COLUMN note int;
SELECT hashed_queues() AS before \gset
SELECT given_job('mail', 'post') \g /dev/null
SELECT cmp_ok(hashed_queues(), '>', :before::bigint,
  'with a column of a DBA, statements write jobs');
ALTER TABLE pulse.job DROP COLUMN note;
ALTER TABLE pulse.attempt DROP COLUMN note;
SELECT hashed_queues() AS before \gset
SELECT given_job('mail', 'post') AS parked \gset
SELECT count(*) FROM pulse.add_jobs(array_fill('(mail,,post,,,,,)'::pulse.job_spec, '{3}'))
  \g /dev/null
SELECT is(hashed_queues(), :before::bigint, 'once it is dropped, rows are written directly again');
SELECT promote_queues() \g /dev/null
SELECT pulse.fail(c.id, c.token, 'no') FROM pulse.claim(:ann, 10) AS c \g /dev/null
SELECT is((SELECT count(*)::int FROM pulse.attempt), 1,
  'an attempt is recorded beside a dropped column');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept there, too');

SELECT * FROM finish();
ROLLBACK;
