-- sql/monitor/views.sql: what operators look at.
\ir support/setup.psql
SELECT plan(23);

SELECT has_view('pulse', name, format('pulse.%s is a view', name))
  FROM unnest(ARRAY['settings', 'worker_status', 'stale']) AS name;
SELECT is_empty(
  $$SELECT c.oid::regclass, a.attname
      FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'pulse'::regnamespace AND c.relkind = 'v'
       AND (a.attname ~ 'payload|checkpoint|result' OR a.attname = 'token')$$,
  'no view shows a payload or a token');

-- --- settings -----------------------------------------------------------------------------------

SELECT set_eq('SELECT name FROM pulse.settings WHERE name <> ''shard''',
  $$SELECT name FROM pg_settings WHERE name LIKE 'pulse.%'$$,
  'the view settings shows each setting');
SET LOCAL pulse.sweep_threshold = '77s';
SELECT is((SELECT (setting || unit)::interval FROM pulse.settings
            WHERE name = 'pulse.sweep_threshold'), interval '77 s', 'as this session has it');
SET LOCAL pulse.sweep_threshold = '20s';
-- As a session without the library stores it.
INSERT INTO pg_db_role_setting
SELECT d.oid, 0, '{pulse.heartbeat_intervall=3s,pulse.claims=on,work_mem=4MB}'
  FROM pg_database AS d WHERE d.datname = current_database();
SELECT answers('SELECT name, setting, source, description LIKE ''No such setting%''
                  FROM pulse.settings WHERE name LIKE ''pulse.%''
                   AND name NOT IN (SELECT s.name FROM pg_settings AS s)',
  ROW('pulse.heartbeat_intervall', '3s', 'database', true), 'a misspelt one is told');
DELETE FROM pg_db_role_setting AS r WHERE 'pulse.heartbeat_intervall=3s' = ANY (r.setconfig);

-- --- worker_status ------------------------------------------------------------------------------

SELECT id AS ann FROM pulse.register_worker('ann', '{mail}', '{"hostname": "h1", "pid": 7}') \gset
SELECT given_worker('bob') AS bob \gset
SELECT pulse.attach_worker(:bob) \g /dev/null
SELECT given_claimed_job(:ann) FROM generate_series(1, 2) \g /dev/null
SELECT travel('10 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT answers(
  'SELECT name, hostname, pid, tasks, state, running_jobs, attached, heartbeat_interval,
          sweep_threshold, last_heartbeat_at < now() + interval ''10 s'',
          silent_for >= ''10 s'', silent FROM pulse.worker_status WHERE name = ''ann''',
  ROW('ann', 'h1', 7, '{mail}'::text[], 'alive', 2, false, interval '5 s', interval '20 s', true,
      true, false),
  'worker_status shows a worker, what it holds and how long it has been silent');
SELECT answers(
  'SELECT state, running_jobs, attached, last_heartbeat_at >= now() + interval ''10 s'',
          silent_for < ''10 s'' FROM pulse.worker_status WHERE name = ''bob''',
  ROW('alive', 0, true, true, true), 'one that has just beaten is not silent');

SELECT answers('SELECT count(slots), count(version) FROM pulse.worker_status', ROW(0, 0),
  'a worker need not tell its slots and version');
SELECT pulse.register_worker('eve', info => '{"slots": 4, "version": "1.2"}'),
       pulse.register_worker('fay', info => '{"slots": "many", "version": null}') \g /dev/null
SELECT answers($$SELECT name, slots, version FROM pulse.worker_status
                  WHERE name IN ('eve', 'fay') ORDER BY name$$,
  lines($$VALUES ('eve', 4, '1.2'), ('fay', NULL, NULL)$$), 'what it tells is shown');
DELETE FROM pulse.worker WHERE name IN ('eve', 'fay');
DELETE FROM pulse.heartbeat AS h
 WHERE NOT EXISTS (SELECT FROM pulse.worker AS w WHERE w.id = h.worker_id);

-- --- stale --------------------------------------------------------------------------------------

SELECT is_empty('SELECT * FROM pulse.stale', 'jobs of living workers are not stale');
SELECT given_claimed_job(:ann, 'ink') \g /dev/null
SELECT travel('40 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT answers('SELECT identifier, jobs, oldest_claim <= now() + interval ''40 s'' FROM pulse.stale
                 ORDER BY identifier',
  lines($$VALUES ('ink', 1, true), ('mail', 2, true)$$),
  'jobs of one that is silent beyond its threshold are, counted by task');
SELECT answers('SELECT string_agg(w.name, '',''), count(*) = max(o.workers_silent)
                  FROM pulse.worker_status AS w, pulse.overview AS o WHERE w.silent',
  ROW('ann', true),
  'which the overview counts as silent, too');
SELECT pulse.set_task('slow', timeout => '10 s'), pulse.set_task('calm', stall_timeout => '10 s')
  FROM given_claimed_job(:bob, 'slow') AS s, given_claimed_job(:bob, 'calm') AS c \g /dev/null
SELECT travel('55 s');
SELECT pulse.heartbeat(:bob) \g /dev/null
SELECT answers('SELECT identifier, jobs, late_jobs FROM pulse.stale ORDER BY identifier',
  lines($$VALUES ('calm', 1, 1), ('ink', 1, 0), ('mail', 2, 0), ('slow', 1, 1)$$),
  'and jobs past their own limits, whose worker lives');
SELECT pulse.sweep() \g /dev/null
SELECT is_empty('SELECT * FROM pulse.stale', 'until the next sweep recovers them');
SELECT answers('SELECT state, status, running_jobs, reason <> '''', ended_at IS NOT NULL,
                       last_heartbeat_at IS NOT NULL, silent_for
                  FROM pulse.worker_status WHERE name = ''ann''',
  ROW('lost', 'lost', 0, true, true, true, NULL::interval),
  'a lost worker is shown with the reason and the end, and is silent no more');
SELECT given_worker('cat') AS cat \gset
SELECT pulse.attach_worker(:cat), pulse.declare_lost(:cat, 'for the test') \g /dev/null
SELECT is((SELECT attached FROM pulse.worker_status WHERE name = 'cat'), false,
  'a lost one has no attached session');
SELECT pg_advisory_unlock_all() \g /dev/null
SELECT is((SELECT attached FROM pulse.worker_status WHERE name = 'bob'), false,
  'nor has one whose session holds the lock of the attachment no more');
SELECT pulse.deregister_worker(:bob) \g /dev/null
SELECT answers('SELECT state, last_heartbeat_at, attached FROM pulse.worker_status
                 WHERE name = ''bob''',
  ROW('stopped', NULL, false), 'a stopped one without a heartbeat');

-- --- who may look -------------------------------------------------------------------------------

CREATE ROLE pulse_stranger;
GRANT USAGE ON SCHEMA pulse TO pulse_stranger;
SELECT refuses('SELECT * FROM pulse.' || name, '42501',
               'a role without rights cannot read ' || name, 'pulse_stranger')
  FROM unnest(ARRAY['settings', 'worker_status', 'stale']) AS name;

SELECT * FROM finish();
ROLLBACK;
