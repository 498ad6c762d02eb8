-- sql/guard/roles.sql: the grid of who may do what. Everything in the catalogues must be in it, so
-- that nothing new is granted, or forgotten, without a decision.
\ir support/setup.psql
SELECT plan(119);

SELECT expect_function(verb || kind, 'role regrole', 'void', 'volatile', 'invoker')
  FROM unnest('{grant_,revoke_}'::text[]) AS verb,
       unnest('{producer,worker,operator,observer,scheduler,caller}'::text[]) AS kind;

CREATE ROLE pulse_p;
CREATE ROLE pulse_w;
CREATE ROLE pulse_o;
CREATE ROLE "Pulse ""b";  -- a name that needs quotes
CREATE ROLE pulse_s;
CREATE ROLE pulse_c;
CREATE ROLE pulse_nobody;
SELECT pulse.grant_producer('pulse_p'), pulse.grant_worker('pulse_w'),
       pulse.grant_operator('pulse_o'), pulse.grant_observer('"Pulse ""b"'),
       pulse.grant_scheduler('pulse_s'), pulse.grant_caller('pulse_c') \g /dev/null

-- One letter for each kind of role: producer, worker, operator, oBserver, scheduler, caller, and n
-- for everybody.
CREATE TEMP TABLE role_letter (letter text, role name);
INSERT INTO role_letter VALUES
  ('p', 'pulse_p'), ('w', 'pulse_w'), ('o', 'pulse_o'), ('b', 'Pulse "b'), ('s', 'pulse_s'),
  ('c', 'pulse_c'), ('n', 'pulse_nobody');

-- --- the grid -----------------------------------------------------------------------------------

CREATE TEMP TABLE grid (class text, name text, letters text);
INSERT INTO grid
  SELECT 'function', unnest(string_to_array(g.names, ' ')), g.letters FROM (VALUES
    ('now version', 'pwobsc'),
    ('cron_runs load_crontab pause_schedule resume_schedule run_schedule_now schedule unschedule',
     's'),
    ('next_runs', 'obs'),
    ('add_dependency add_flow add_job add_job_after add_job_for_request add_job_once add_jobs '
     'remove_job', 'p'),
    ('forget_once', 'po'),
    ('ended wait_for_end', 'c'),
    ('attach_worker call_handler check_host claim claim_job complete complete_many '
     'deregister_worker fail '
     'fail_late fail_many fence handler_tasks heartbeat held held_job perform_job '
     'progress register_worker release serve_tasks snooze task_limits wait_for_job', 'w'),
    ('declare_lost sweep', 'wo'), ('get_job', 'wob'),
    ('adopt_installation cancel_flow cancel_job complete_jobs cron_setup_sql delete_finished '
     'drain_worker drain_workers force_unlock_workers pause_queue permanently_fail_jobs '
     'note_operation preview_operation requeue_job reschedule_jobs resume_queue retry_job '
     'run_operation run_tick set_queue set_shard set_task start_operation stop_operation '
     'stop_worker stop_workers tick undo_operation unset_queue unset_task verify', 'o'),
    ('grant_caller grant_observer grant_operator grant_producer grant_scheduler grant_worker '
     'import_graphile_worker '
     'revoke_caller revoke_observer revoke_operator revoke_producer revoke_scheduler '
     'revoke_worker', ''),
    -- What the views call.
    ('pulse_internal.attachment_state pulse_internal.ended_live_us pulse_internal.first_id '
     'pulse_internal.interval pulse_internal.shard_of '
     'pulse_internal.is_attached pulse_internal.is_missing '
     'pulse_internal.is_silent '
     'pulse_internal.least_threshold_us pulse_internal.live_now_us '
     'pulse_internal.loss_cause '
     'pulse_internal.running_ids pulse_internal.setting_us '
     'pulse_internal.status_of pulse_internal.told_number pulse_internal.us stats '
     'count_jobs doctor explain_job explain_task flow_jobs job_attempts list_ended_jobs '
     'list_failures list_flows list_jobs list_unique_keys operation_actions overview queue_status '
     'rate_histogram rate_history '
     'rates read_job recoveries unserved', 'ob')
  ) AS g (names, letters);
INSERT INTO grid
  SELECT 'relation', unnest(string_to_array(g.names, ' ')), g.letters FROM (VALUES
    ('ended_by_hour ended_jobs flows operations overview queue_rates queue_settings '
     'queue_status running_jobs settings stale stats task_rates task_settings unserved waiting_for '
     'worker_status', 'ob'),
    ('schedules', 'obs'),
    ('attempt counter dependency finished_job flow flow_job heartbeat id_gap idempotency_key '
     'installation job operation operation_job queue queue_pause queue_rate remembered_key '
     'schedule superseded_job task worker', 'o'),
    ('clock claim_batch installation_witness', '')
  ) AS g (names, letters);
INSERT INTO grid VALUES
  ('type', 'claimed_job', 'w'), ('type', 'finished_state', 'oc'), ('type', 'job_outcome', 'w'),
  ('type', 'job_spec', 'p'), ('type', 'job_state', 'pos');

-- What the catalogues say; internal things only where somebody has a right to them.
CREATE FUNCTION letters_where(may text, object oid) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  letters text;
BEGIN
  EXECUTE format('SELECT coalesce(string_agg(letter, '''' ORDER BY strpos(''pwobscn'', letter)),
                                  '''')
                    FROM role_letter WHERE %s', may) USING object INTO letters;
  RETURN letters;
END $$;
CREATE FUNCTION full_name(schema oid, name name) RETURNS text
  LANGUAGE sql AS $$
  SELECT CASE schema WHEN 'pulse'::regnamespace THEN '' ELSE schema::regnamespace || '.' END || name
$$;
CREATE TEMP VIEW actual AS
  SELECT 'function' AS class, full_name(pronamespace, proname) AS name,
         letters_where('has_function_privilege(role, $1, ''EXECUTE'')', oid) AS letters
    FROM pg_proc WHERE pronamespace::regnamespace::text ~ '^pulse'
  UNION ALL
  SELECT 'relation', full_name(relnamespace, relname),
         letters_where('has_table_privilege(role, $1, ''SELECT'')', oid)
    FROM pg_class WHERE relnamespace::regnamespace::text ~ '^pulse'
     AND relkind NOT IN ('i', 'S', 'c')
  UNION ALL
  SELECT 'type', full_name(typnamespace, typname),
         letters_where('has_type_privilege(role, $1, ''USAGE'')', oid)
    FROM pg_type AS t WHERE typnamespace::regnamespace::text ~ '^pulse'
     AND typcategory <> 'A'
     AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.typrelid AND c.relkind <> 'c');

SELECT is_empty(
  $$SELECT class, name, letters FROM actual
     WHERE (letters <> '' OR name NOT LIKE 'pulse_internal.%')
       AND (class, name) NOT IN (SELECT g.class, g.name FROM grid AS g)$$,
  'there is no function, table, view or type about which the grid says nothing');
SELECT is_empty(
  $$SELECT class, name FROM grid EXCEPT SELECT class, name FROM actual$$,
  'nor does it speak of what is not there');
SELECT is_empty(
  $$SELECT a.class, a.name, a.letters AS have, g.letters AS should_have
      FROM actual AS a JOIN grid AS g ON g.class = a.class AND g.name = a.name
     WHERE a.letters <> g.letters$$,
  'each kind of role has the rights of the grid, and no others');
SELECT is_empty(
  $$SELECT role, oid::regclass FROM role_letter, pg_class
     WHERE relnamespace::regnamespace::text ~ '^pulse' AND relkind IN ('r', 'v', 'p', 'm')
       AND has_table_privilege(role, oid, 'INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER')$$,
  'nobody but the owner changes, truncates or refers to a table, or puts a trigger on it');
SELECT is_empty(
  $$SELECT role, oid::regclass FROM role_letter, pg_class
     WHERE relnamespace::regnamespace::text ~ '^pulse'
       AND CASE relkind WHEN 'S'
             THEN has_sequence_privilege(role, oid, 'USAGE,SELECT,UPDATE') END$$,
  'nobody else draws an id or a token, or sees which was last');
SELECT is(letters_where('has_schema_privilege(role, $1, ''USAGE'')', 'pulse'::regnamespace),
  'pwobsc',
  'who has a right may use the schema');
SELECT is(
  letters_where('has_schema_privilege(role, $1, ''USAGE'')', 'pulse_internal'::regnamespace), 'ob',
  'who reads views may use what they call');
SELECT is(letters_where('has_schema_privilege(role, $1, ''CREATE'')', schema), '',
  format('nobody else may create in %s', schema))
  FROM unnest('{pulse,pulse_internal}'::regnamespace[]) AS schema;
CREATE FUNCTION passed_on() RETURNS SETOF text
  LANGUAGE sql AS $$
  SELECT acl::text FROM (
    SELECT proacl FROM pg_proc WHERE pronamespace::regnamespace::text ~ '^pulse'
    UNION ALL SELECT relacl FROM pg_class WHERE relnamespace::regnamespace::text ~ '^pulse'
    UNION ALL SELECT typacl FROM pg_type WHERE typnamespace::regnamespace::text ~ '^pulse'
    UNION ALL SELECT nspacl FROM pg_namespace WHERE nspname ~ '^pulse') AS all_acls (acl)
   WHERE EXISTS (SELECT FROM aclexplode(acl) AS a WHERE a.is_grantable)
$$;
SELECT is_empty('SELECT passed_on()', 'nobody may pass on what was granted');
SELECT is_empty(
  $$SELECT oid::regclass, attacl FROM pg_class JOIN pg_attribute ON attrelid = oid
     WHERE relnamespace::regnamespace::text ~ '^pulse' AND attacl IS NOT NULL$$,
  'no column is granted by itself');

-- --- the grid, walked ---------------------------------------------------------------------------

-- A call of each function: its defaults, and NULL where there is none.
CREATE FUNCTION call_of(routine oid) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('%s %s(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END,
                p.oid::regproc, (
           -- A constant would let the planner answer for a function that is strict.
           SELECT string_agg(format(CASE p.prokind WHEN 'p' THEN 'NULL::%s'
                                    ELSE '(SELECT NULL::%s OFFSET 0)' END, format_type(t, NULL)),
                             ', ' ORDER BY n)
             FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)
            WHERE n <= p.pronargs - p.pronargdefaults))
    FROM pg_proc AS p WHERE p.oid = routine
$$;
-- A refusal for want of this right; other errors are the business of other tests.
CREATE FUNCTION is_barred(statement text, role name, object text) RETURNS boolean
  LANGUAGE sql AS $$
  SELECT s.code = '42501'
     AND s.message LIKE ANY (ARRAY['%denied for %' || object || '%', '%schema pulse_internal'])
    FROM refusal_of(statement, role) AS s
$$;
SELECT is_empty(
  $$SELECT r.role, g.name FROM grid AS g
      JOIN pg_proc AS p ON full_name(p.pronamespace, p.proname) = g.name,
           role_letter AS r
     WHERE g.class = 'function' AND g.name <> 'tick' AND r.letter <> 'n'
       AND is_barred(call_of(p.oid), r.role, p.proname)
           <> (strpos(g.letters, r.letter) = 0)$$,
  'each kind of role can call what the grid says, and is refused the rest');
SELECT is_empty(
  $$SELECT r.role, g.name FROM grid AS g, role_letter AS r
     WHERE g.class = 'relation' AND r.letter <> 'n'
       AND ((refusal_of('SELECT * FROM pulse.' || g.name, r.role)).code <> '00000')
           <> (strpos(g.letters, r.letter) = 0)$$,
  'and can read what it says: a view with all that it calls');
SELECT is_empty(
  $$SELECT r.role, g.name, m.mode FROM grid AS g, role_letter AS r,
           (VALUES ('ROW EXCLUSIVE'), ('SHARE'), ('ACCESS EXCLUSIVE')) AS m (mode)
     WHERE g.class = 'relation'
       AND (refusal_of(format('LOCK TABLE pulse.%I IN %s MODE', g.name, m.mode), r.role)).code
           <> '42501'$$,
  'nobody but the owner can lock a table against others');
SELECT is_empty(
  $$SELECT r.role FROM role_letter AS r
     WHERE (refusal_of('SELECT * FROM pulse.job FOR SHARE', r.role)).code <> '42501'$$,
  'or lock a job''s row');

-- --- what an observer sees ----------------------------------------------------------------------

SELECT given_worker('ann', '{secretive}') AS ann \gset
SELECT id AS job FROM given_claimed_job(:ann, 'secretive', 'post') \gset
UPDATE pulse.job SET token = 4242424242, payload = '{"password": "hunter2"}',
  last_error = 'hunter2', checkpoint = '"hunter2"', message = 'hunter2', stage = 'hunter2',
  job_key = 'hunter2';
SELECT pulse.cancel_job(:job, 'hunter2') \g /dev/null
CREATE FUNCTION seen_by(reader name) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  seen text := '';
  shown text;
  relation text;
BEGIN
  FOR relation IN SELECT oid::regclass FROM pg_class
                   WHERE relnamespace = 'pulse'::regnamespace AND relkind IN ('r', 'v')
                     AND has_table_privilege(reader, oid, 'SELECT') LOOP
    EXECUTE format('SELECT string_agg(r::text, '' '') FROM %s AS r', relation) INTO shown;
    seen := seen || coalesce(shown, '');
  END LOOP;
  RETURN seen;
END $$;
SELECT matches(seen_by('Pulse "b'), 'secretive', 'an observer sees that a task runs');
SELECT doesnt_match(seen_by('Pulse "b'), 'hunter2', 'but nothing of what the job says');
SELECT doesnt_match(seen_by('Pulse "b'), '4242424242', 'nor its token');
SELECT matches(seen_by('pulse_o'), 'hunter2', 'an operator does see it');

-- --- granting and revoking ----------------------------------------------------------------------

CREATE FUNCTION acls() RETURNS text
  LANGUAGE sql AS $$
  SELECT md5(string_agg(a, ',' ORDER BY a)) FROM (
    SELECT concat_ws(' ', class, name, e.grantee, e.privilege_type) FROM (
      SELECT 'p' AS class, oid::regprocedure::text AS name, proacl AS acl FROM pg_proc
       WHERE pronamespace::regnamespace::text ~ '^pulse'
      UNION ALL SELECT 'c', oid::regclass::text, relacl FROM pg_class
       WHERE relnamespace::regnamespace::text ~ '^pulse'
      UNION ALL SELECT 't', oid::regtype::text, typacl FROM pg_type
       WHERE typnamespace::regnamespace::text ~ '^pulse'
      UNION ALL SELECT 'n', nspname, nspacl FROM pg_namespace WHERE nspname ~ '^pulse') AS o,
      aclexplode(o.acl) AS e) AS one (a)
$$;
CREATE TEMP TABLE kind AS
  SELECT unnest('{producer,worker,operator,observer,scheduler,caller}'::text[]) AS kind;
CREATE ROLE pulse_new;
CREATE FUNCTION after(first text, second text = 'SELECT') RETURNS text
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE first;
  EXECUTE second;
  RETURN acls();
END $$;
SELECT acls() AS before \gset
SELECT is(after(format('SELECT pulse.grant_%s(''pulse_new'')', kind),
                format('SELECT pulse.revoke_%s(''pulse_new'')', kind)), :'before',
          format('revoke_%s takes away all that grant_%s gave', kind, kind)) FROM kind;
SELECT lives_ok('DROP ROLE pulse_new', 'then the role can be dropped');
CREATE ROLE pulse_new;
SELECT is(after(format('SELECT pulse.grant_%s(''pulse_new'')', kind)),
          after(format('SELECT pulse.grant_%s(''pulse_new'')', kind)),
          format('grant_%s once more changes nothing', kind)) FROM kind;
SELECT is(after(format('SELECT pulse.revoke_%s(''pulse_new'')', kind)),
          after(format('SELECT pulse.revoke_%s(''pulse_new'')', kind)),
          format('nor does revoke_%s', kind)) FROM kind;
SELECT is(acls(), :'before', 'given all kinds and deprived of each, a role has nothing');

SELECT pulse.grant_producer('pulse_new') \g /dev/null
SELECT acls() AS before \gset
SELECT is(after(format('SELECT pulse.grant_%s(''pulse_new'')', kind),
                format('SELECT pulse.revoke_%s(''pulse_new'')', kind)), :'before',
          format('revoke_%s leaves a producer his rights', kind))
  FROM kind WHERE kind <> 'producer';
SELECT pulse.grant_operator('pulse_new') \g /dev/null
SELECT is(after('SELECT pulse.revoke_observer(''pulse_new'')'), acls(),
  'an operator stays an observer');

SELECT is_empty(
  $$SELECT verb, kind FROM kind, (VALUES ('grant'), ('revoke')) AS v (verb)
     WHERE (refusal_of(format('SELECT pulse.%s_%s(''nobody_here'')', verb, kind))).code <> '42704'
        OR (refusal_of(format('SELECT pulse.%s_%s(NULL)', verb, kind))).code <> '42704'
        OR (refusal_of(format('SELECT pulse.%s_%s(''public'')', verb, kind))).code <> '42704'
        OR (refusal_of(format('SELECT pulse.%s_%s(''-'')', verb, kind))).code <> '42704'$$,
  'only a role that exists is granted anything; everybody is none');
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA pulse TO pulse_p;
SELECT is_empty(
  $$SELECT verb, kind FROM kind, (VALUES ('grant'), ('revoke')) AS v (verb)
     WHERE (refusal_of(format('SELECT pulse.%s_%s(''pulse_nobody'')', verb, kind),
                       'pulse_p')).code <> '42501'$$,
  'who is not the owner grants nothing, even if he may call the functions');

SELECT * FROM finish();
ROLLBACK;
