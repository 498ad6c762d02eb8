-- sql/structure/types.sql: the words of the queue as types.
\ir support/setup.psql
SELECT plan(14);

-- Names and types of a composite type's fields, in order.
CREATE FUNCTION fields_of(name text) RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', '
                    ORDER BY a.attnum)
    FROM pg_type AS t JOIN pg_attribute AS a ON a.attrelid = t.typrelid
   WHERE t.typnamespace = 'pulse'::regnamespace AND t.typname = name
     AND a.attnum > 0 AND NOT a.attisdropped
$$;

SELECT enum_has_labels('pulse', 'job_state', ARRAY['ready', 'parked', 'running'],
  'a live job is ready, parked or running');
SELECT enum_has_labels('pulse', 'finished_state',
  ARRAY['completed', 'failed', 'quarantined', 'cancelled', 'expired'],
  'a finished job is completed, failed, quarantined, cancelled or expired');

SELECT has_composite('pulse', 'job_spec', 'job_spec is a composite type');
SELECT is(fields_of('job_spec'),
  'identifier text, payload json, queue_name text, run_at timestamp with time zone, '
  'max_attempts integer, job_key text, priority integer, flags text[]',
  'a job_spec has Graphile Worker''s fields in its order');

SELECT has_composite('pulse', 'claimed_job', 'claimed_job is a composite type');
SELECT is(fields_of('claimed_job'),
  'id bigint, token bigint, identifier text, payload json, queue_name text, priority smallint, '
  'run_at timestamp with time zone, attempts smallint, max_attempts smallint, crashes smallint, '
  'job_key text, flags text[], checkpoint json, last_error text, recovered text, '
  'timeout interval, stall_timeout interval, on_unreachable text, handler regprocedure, '
  'created_at timestamp with time zone, scheduled_for timestamp with time zone, '
  'parents json, traceparent text',
  'a claimed_job tells a worker all that it needs');

SELECT has_composite('pulse', 'job_outcome', 'job_outcome is a composite type');
SELECT is(fields_of('job_outcome'), 'id bigint, outcome text',
  'a plural call answers with an id and an outcome');

SELECT lives_ok($$SELECT ('mail', '{}', NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec$$,
  'a job_spec can be written as a row');
SELECT lives_ok($$SELECT (NULL::pulse.claimed_job).token$$, 'a claimed_job can be taken apart');

SELECT is_empty(
  $$SELECT t.typname FROM pg_type AS t
     WHERE t.typnamespace::regnamespace::text ~ '^pulse' AND t.typtype IN ('e', 'c')
       AND (t.typrelid = 0 OR EXISTS (SELECT FROM pg_class AS c
                                       WHERE c.oid = t.typrelid AND c.relkind = 'c'))
       AND obj_description(t.oid, 'pg_type') IS NULL$$,
  'every type has a comment');
SELECT is_empty(
  $$SELECT t.typname FROM pg_type AS t
     WHERE t.typnamespace::regnamespace::text ~ '^pulse' AND t.typtype IN ('e', 'c')
       AND (t.typrelid = 0 OR EXISTS (SELECT FROM pg_class AS c
                                       WHERE c.oid = t.typrelid AND c.relkind = 'c'))
       AND has_type_privilege('public', t.oid, 'USAGE')$$,
  'PUBLIC has no right to use a type');
SELECT throws_ok($$SELECT 'lost'::pulse.job_state$$, '22P02', NULL,
  'no job is in a state of another name');
SELECT throws_ok($$SELECT 'done'::pulse.finished_state$$, '22P02', NULL,
  'no job has ended in another way');

SELECT * FROM finish();
ROLLBACK;
