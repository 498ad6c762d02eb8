-- The schema pulse is the reference: what programs and people may use, and nothing else.
\ir support/setup.psql
SELECT plan(4);

CREATE TEMP VIEW member AS
  SELECT i.type, i.schema, i.name, d.classid, d.objid
    FROM pg_depend AS d, pg_identify_object(d.classid, d.objid, 0) AS i
   WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
     AND d.refobjid = (SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'pg_pulse');

SELECT is_empty(
  $$SELECT type, schema FROM member WHERE schema NOT IN ('pulse', 'pulse_internal')$$,
  'the extension puts objects into its two schemas only');
SELECT is_empty(
  $$SELECT p.oid::regprocedure::text FROM pg_proc AS p
     WHERE p.pronamespace::regnamespace::text ~ '^pulse' AND p.proname LIKE '\_%'
    UNION ALL
    SELECT c.oid::regclass::text FROM pg_class AS c
     WHERE c.relnamespace::regnamespace::text ~ '^pulse' AND c.relname LIKE '\_%'$$,
  'the schema tells what is internal, not an underscore');
CREATE ROLE reference_all;
SELECT pulse.grant_producer('reference_all'), pulse.grant_worker('reference_all'),
       pulse.grant_operator('reference_all'), pulse.grant_scheduler('reference_all'),
       pulse.grant_caller('reference_all') \g /dev/null
SELECT is_empty(
  $$SELECT p.oid::regprocedure FROM pg_proc AS p
     WHERE p.pronamespace = 'pulse'::regnamespace AND p.proname !~ '^(grant|revoke|import)_'
       AND NOT has_function_privilege('reference_all', p.oid, 'EXECUTE')$$,
  'some kind of role may call each function of the schema pulse but the owner''s');
SELECT is_empty(
  $$SELECT p.oid::regprocedure FROM pg_proc AS p
     WHERE p.pronamespace = 'pulse_internal'::regnamespace
       AND has_function_privilege('reference_all', p.oid, 'EXECUTE')
       AND p.proname <> ALL ('{attachment_state,ended_live_us,first_id,interval,is_attached,
                               is_missing,is_silent,least_threshold_us,live_now_us,loss_cause,
                               running_ids,setting_us,shard_of,status_of,told_number,us}')$$,
  'and none calls an internal one, except those below the views');

SELECT * FROM finish();
ROLLBACK;
