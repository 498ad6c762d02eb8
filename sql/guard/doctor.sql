-- Faults of an installation: one row per finding, with the way out. Each view reads one place, and
-- doctor() returns the rows of all views. A finding shows no payload, no error of a job and no
-- token, because observers read findings.

-- As the server reads the names: a quoted name may hold commas, and doubles its quotes.
CREATE OR REPLACE FUNCTION pulse_internal.names_in(list text) RETURNS SETOF text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE BEGIN ATOMIC
  SELECT CASE WHEN left(e.entry, 1) = '"'
           THEN replace(substr(e.entry, 2, length(e.entry) - 2), '""', '"') ELSE e.entry END
    FROM (SELECT btrim(m.parts[1]) AS entry
            FROM regexp_matches(list, '((?:"(?:[^"]|"")*"|[^",])+)', 'g') AS m (parts)) AS e
   WHERE e.entry <> '';
END;
COMMENT ON FUNCTION pulse_internal.names_in(text) IS
  'Returns the names of a setting that is a list, of libraries or databases.';

CREATE OR REPLACE FUNCTION pulse_internal.list_names(list text, name text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN EXISTS (SELECT FROM pulse_internal.names_in(list) AS n (entry)
                  WHERE regexp_replace(n.entry, '^.*/|[.]so$', '', 'g') = name);
COMMENT ON FUNCTION pulse_internal.list_names(text, text) IS
  'Returns whether a setting that is a list of libraries has this name.';

-- Findings that delay the recovery of dead workers' jobs.
CREATE OR REPLACE VIEW pulse_internal.sweep_findings AS
  WITH server AS (
    SELECT pulse_internal.list_names(pg_catalog.current_setting('shared_preload_libraries'),
                                    'pg_pulse') AS is_preloaded,
           pg_catalog.current_setting('pulse.background_sweeps')::boolean AS is_served,
           pulse_internal.setting_us('sweep_interval') IS NULL AS is_off,
           pulse_internal.last_tick() AS last_tick
  )
  SELECT 'not preloaded'::text AS finding, 'warning'::text AS severity,
         'shared_preload_libraries does not name pg_pulse.'::text AS detail,
         'Add it and restart the server: only then a background worker notices the death of your '
         'only worker, every commit wakes workers, and claims pass dead rows quickly.'::text
           AS what_to_do
    FROM server AS s WHERE NOT s.is_preloaded
  UNION ALL
  SELECT 'no background worker', 'warning',
         'The background worker does not maintain this database.',
         'Name the database in pulse.databases and reload. If it is named, the server''s log tells '
         'what keeps the background worker from it.'
    FROM server AS s
   WHERE s.is_preloaded AND NOT s.is_served AND NOT s.is_off
     AND NOT pg_catalog.pg_is_in_recovery()
  UNION ALL
  SELECT 'unknown database', 'warning',
         pg_catalog.format('pulse.databases names %L, which does not exist.', n.name),
         'Correct the name, or create the database.'
    FROM pulse_internal.names_in(pg_catalog.current_setting('pulse.databases', true)) AS n (name)
   WHERE n.name <> ALL (ARRAY(SELECT d.datname::text FROM pg_catalog.pg_database AS d))
  UNION ALL
  SELECT 'sweeps off', 'warning', 'pulse.sweep_interval is -1: only calls of sweep() recover jobs.',
         'Set it to some seconds again.'
    FROM server AS s WHERE s.is_off
  UNION ALL
  SELECT 'no sweep', 'error',
         pg_catalog.format('The last sweep was at %s. Jobs of dead workers wait, and so do due '
                           'times of schedules.', s.last_tick),
         'Let the background worker maintain this database, start a worker, or schedule CALL '
         'pulse.run_tick().'
    FROM server AS s
   WHERE NOT pulse_internal.is_swept(pulse_internal.two_sweep_intervals())
     AND NOT pg_catalog.pg_is_in_recovery()
  UNION ALL
  SELECT 'clock set back', 'warning',
         pg_catalog.format('The last sweep has the time %s, which is yet to come.', s.last_tick),
         'Let the server''s clock be kept by NTP without steps. Jobs added before the step are due '
         'later than they seem.'
    FROM server AS s WHERE s.last_tick > pg_catalog.clock_timestamp() + interval '5 s';
COMMENT ON VIEW pulse_internal.sweep_findings IS
  'Findings about sweeps: which processes make sweeps, and by which clock.';

-- Readers wait for the strongest lock alone, and doctor() is a reader.
CREATE OR REPLACE VIEW pulse_internal.lock_findings AS
  SELECT 'locked table'::text AS finding,
         CASE WHEN b.only_for IS NOT NULL OR pulse_internal.blocked_sweeps() = 0 THEN 'warning'
           ELSE 'error' END AS severity,
         pg_catalog.concat(b.detail, '. ', CASE b.only_for
           WHEN 'pauses' THEN 'Sweeps leave the jobs of strict queues that would pause their queue.'
           WHEN 'letters' THEN 'Sweeps leave the jobs whose end adds a dead letter.'
           ELSE 'Sweeps recover no job of a dead worker meanwhile'
                || coalesce('; ' || nullif(pulse_internal.blocked_sweeps(), 0)
                            || ' sweeps have met the lock', '')
                || '.' END) AS detail,
         pg_catalog.concat('Let it end, or ', b.way_out, '.') AS what_to_do
    FROM pulse_internal.recovery_blocker AS b;
COMMENT ON VIEW pulse_internal.lock_findings IS
  'Findings about locks that keep sweeps from recovery.';

-- A finding about settings is about the settings of this session.
CREATE OR REPLACE VIEW pulse_internal.setting_findings AS
  WITH installation AS (
    SELECT pulse_internal.installation_standing() AS standing,
           (SELECT e.extversion FROM pg_catalog.pg_extension AS e
             WHERE e.extname = 'pg_pulse') AS sql_version
  ), threshold AS (
    SELECT pulse_internal.interval(pulse_internal.setting_us('sweep_threshold')) AS has,
           pulse_internal.interval(pulse_internal.least_threshold_us(
             pulse_internal.setting_us('heartbeat_interval'))) AS needs
  ), setting AS MATERIALIZED (SELECT * FROM pulse.settings)
  SELECT 'thresholds at odds'::text AS finding, 'error'::text AS severity,
         pg_catalog.format('pulse.sweep_threshold is %s; heartbeats and sweeps at these intervals '
                           'need at least %s.', t.has, t.needs) AS detail,
         'Raise it, or lower pulse.heartbeat_interval or pulse.sweep_interval: workers cannot '
         'register.'::text AS what_to_do
    FROM threshold AS t WHERE t.has < t.needs
  UNION ALL
  SELECT 'claims off', 'error', 'pulse.claims is off: no claim gets a job.',
         'Set it to on where the jobs are to run.'
   WHERE NOT pg_catalog.current_setting('pulse.claims')::boolean
  UNION ALL
  SELECT 'not adopted', 'error', CASE i.standing
           WHEN 'copy' THEN 'This database is a copy: no claim gets a job.'
           ELSE 'A subscription writes pulse.job: no claim gets a job.' END,
         'If the jobs are to run here and nowhere else: SELECT pulse.adopt_installation(), after '
         'DROP SUBSCRIPTION where there is one.'
    FROM installation AS i WHERE i.standing IN ('copy', 'subscribed')
  UNION ALL
  SELECT 'versions apart', 'error',
         pg_catalog.format('The library is of version %s, the SQL of %s.', pulse.version(),
                           i.sql_version),
         'If the SQL is older: ALTER EXTENSION pg_pulse UPDATE, in each database. Otherwise '
         'install the newer library, and restart a server that preloads it.'
    FROM installation AS i WHERE i.sql_version <> pulse.version()
  UNION ALL
  SELECT 'extensions apart', 'error',
         pg_catalog.format('%s is of version %s, pg_pulse of %s.', e.extname, e.extversion,
                           i.sql_version),
         pg_catalog.format('ALTER EXTENSION %s UPDATE, or drop it and create it again.', e.extname)
    FROM installation AS i, pg_catalog.pg_extension AS e
   WHERE e.extname::text IN ('pg_pulse_citus', 'pg_pulse_graphile', 'pg_pulse_tap')
     AND e.extversion <> i.sql_version
  UNION ALL
  SELECT 'clock moved', 'error',
         pg_catalog.format('pulse.clock_offset is %s %s, set by: %s.', s.setting, s.unit, s.source),
         'Reset it: it is for tests only.'
    FROM setting AS s
   WHERE s.name = 'pulse.clock_offset' AND s.setting <> '0'
     AND s.source NOT IN ('default', 'session')
  UNION ALL
  SELECT 'unknown setting', 'warning',
         pg_catalog.format('%s = %s is stored for: %s.', s.name, s.setting,
                           coalesce(nullif(s.source, ''), 'every database')),
         'Correct the name: pulse.settings lists the settings that exist.'
    FROM setting AS s WHERE s.default_setting IS NULL AND s.description LIKE 'No such %';
COMMENT ON VIEW pulse_internal.setting_findings IS
  'Findings about settings, versions, and the producers of the jobs.';

CREATE OR REPLACE VIEW pulse_internal.worker_findings AS
  WITH unserved AS MATERIALIZED (
    SELECT * FROM pulse_internal.unserved_tasks() AS t
     WHERE t.oldest_due_at < pulse.now() - interval '1 minute'
     ORDER BY t.oldest_due_at LIMIT 20
  ), living AS MATERIALIZED (
    SELECT l.id, l.name, l.attached, l.started_at, l.version
      FROM pulse_internal.living_worker AS l
  )
  SELECT 'unserved task'::text AS finding, 'error'::text AS severity,
         pg_catalog.format('No living worker serves %L, of which %s%s jobs are due, the '
                           'first since %s%s.', u.identifier,
                           CASE WHEN u.estimated THEN 'at least ' ELSE '' END, u.due_jobs,
                           u.oldest_due_at, '; ' || o.reason) AS detail,
         coalesce(o.way_out, 'Start a worker for it. ' || pg_catalog.quote_literal(l.name)
                  || ' served it until ' || l.seen_at || '.',
                  'Start a worker for it, or correct the name: none of the last 1,000 workers '
                  'that ended served it.') AS what_to_do
    FROM unserved AS u
    JOIN pulse_internal.last_servers(ARRAY(SELECT n.identifier FROM unserved AS n)) AS l
      ON l.identifier = u.identifier
   CROSS JOIN LATERAL pulse_internal.handler_obstacle(u.identifier) AS o
  UNION ALL
  SELECT 'held ' || h.what, 'warning',
         CASE WHEN h.level IS NULL
           THEN 'There may be more such queues: doctor() names ten.'
           ELSE pg_catalog.format('%s have %s of the %s %s of queue %L, which has none left for '
                                  'others.', h.holders, h.held, h.total, h.what, h.level) END,
         'Start a worker for them, or cancel them: pulse cancel --task TASK --queue QUEUE.'
    FROM pulse_internal.held_by_unserved(ARRAY(SELECT u.identifier FROM unserved AS u)) AS h
  UNION ALL
  SELECT 'unattached workers', 'notice',
         pg_catalog.format('%s living workers have no session of their own, such as %L (%s): their '
                           'death shows by silence only.', pg_catalog.count(*),
                           pg_catalog.min(l.name), pg_catalog.min(l.id)),
         'Let workers connect without a transaction pooler, and call attach_worker().'
    FROM living AS l
   WHERE NOT l.attached AND l.started_at < pulse.now() - interval '10 s'
     AND NOT pg_catalog.pg_is_in_recovery()
  HAVING pg_catalog.count(*) > 0
  UNION ALL
  SELECT 'worker versions apart', 'notice',
         pg_catalog.format('%s living workers are of version %s, such as %L, the library of %s.',
                           pg_catalog.count(*), l.version, pg_catalog.min(l.name),
                           pulse.version()),
         'Install and restart them; they work meanwhile.'
    FROM living AS l WHERE l.version <> pulse.version() GROUP BY l.version
  UNION ALL
  SELECT 'late schedules', 'error',
         pg_catalog.format('%s schedules are behind, such as %L, due at %s.', pg_catalog.count(*),
                           pg_catalog.min(s.name), pg_catalog.min(s.next_due)),
         'Sweeps settle due times: see whether there are any, or CALL pulse.run_tick().'
    FROM pulse.schedule AS s
   WHERE NOT s.paused AND s.next_due < pulse.now() - interval '1 minute'
     AND pulse_internal.is_settling()
  HAVING pg_catalog.count(*) > 0
  UNION ALL
  SELECT 'refused schedule', 'error',
         pg_catalog.format('The job of schedule %L was refused at %s.', s.name, s.last_error_at),
         'Read last_error in pulse.schedule, and correct the schedule.'
    FROM pulse.schedule AS s WHERE s.last_error_at > pulse.now() - interval '1 day'
  UNION ALL
  SELECT 'quarantined jobs', 'warning',
         pg_catalog.format('%s jobs lost their worker too often within a day, the last of them job '
                           '%s of task %L.',
                           CASE WHEN q.jobs > 1000 THEN 'More than 1,000' ELSE q.jobs::text END,
                           q.last_id, q.last_identifier),
         'Find what ends their worker, in pulse.ended_jobs and the log, then retry_job().'
    FROM pulse_internal.quarantined_since(pulse.now() - interval '1 day', 1001) AS q
   WHERE q.jobs > 0;
COMMENT ON VIEW pulse_internal.worker_findings IS 'Findings about workers, schedules and jobs.';

CREATE OR REPLACE VIEW pulse_internal.table_findings AS
  WITH own AS MATERIALIZED (
    SELECT c.oid::regclass AS relation, c.reloptions, c.relpersistence
      FROM pg_catalog.pg_class AS c
     WHERE c.relnamespace = 'pulse'::regnamespace AND c.relkind = 'r'
  )
  SELECT 'dead rows'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('%s has %s dead rows beside %s living ones.%s', t.relation, t.dead,
                           t.living,
                           (SELECT pg_catalog.format(' %s keeps those of the last %s transactions.',
                                                     h.holder, h.transactions)
                              FROM pulse_internal.horizon_holder AS h
                             WHERE h.transactions > 1000
                             ORDER BY h.transactions DESC LIMIT 1)) AS detail,
         'See whether autovacuum runs, and what keeps old rows visible; then VACUUM.'::text
           AS what_to_do
    FROM (SELECT o.relation, pg_catalog.pg_stat_get_dead_tuples(o.relation) AS dead,
                 pg_catalog.pg_stat_get_live_tuples(o.relation) AS living FROM own AS o) AS t
   WHERE t.dead > 50000 AND t.dead > t.living / 5
  UNION ALL
  SELECT 'autovacuum off', 'warning',
         pg_catalog.format('Autovacuum is off for %s.', pg_catalog.string_agg(
                             o.relation::text, ', ' ORDER BY o.relation)),
         'Set autovacuum, track_counts and the tables'' autovacuum_enabled to on again.'
    FROM own AS o
   WHERE 'autovacuum_enabled=false' = ANY (o.reloptions)
      OR 'autovacuum_enabled=off' = ANY (o.reloptions)
      OR NOT pg_catalog.current_setting('autovacuum')::boolean
      OR NOT pg_catalog.current_setting('track_counts')::boolean
  HAVING pg_catalog.count(*) > 0
  UNION ALL
  SELECT 'unlogged table', 'warning',
         pg_catalog.format('%s is unlogged: a crash of the server empties it, and no standby has '
                           'its rows.', o.relation),
         pg_catalog.format('ALTER TABLE %s SET LOGGED.', o.relation)
    FROM own AS o WHERE o.relpersistence = 'u'
  UNION ALL
  SELECT 'invalid index', 'error',
         pg_catalog.format('Index %s of %s is not valid.', i.indexrelid::regclass,
                           i.indrelid::regclass),
         pg_catalog.format('REINDEX INDEX CONCURRENTLY %s, or drop it if it is a leftover of one.',
                           i.indexrelid::regclass)
    FROM pg_catalog.pg_index AS i
   WHERE i.indrelid = ANY (ARRAY(SELECT o.relation::oid FROM own AS o))
     AND NOT (i.indisvalid AND i.indisready);
COMMENT ON VIEW pulse_internal.table_findings IS
  'Findings about tables.';

CREATE OR REPLACE VIEW pulse_internal.handler_findings AS
  SELECT 'restricted handlers'::text AS finding, 'notice'::text AS severity,
         pg_catalog.format('The handlers of these tasks run as security-restricted operations, '
                           'because their owner %s may not act as the worker''s role %s: %s.',
                           p.proowner::regrole, w.role::regrole,
                           pg_catalog.string_agg(t.identifier, ', ' ORDER BY t.identifier))
           AS detail,
         pg_catalog.format('Nothing, if they use no temporary objects, deferred constraints, '
                           'LISTEN, PREPARE and cursors WITH HOLD. Else give them to the owner of '
                           'pg_pulse, or GRANT %s TO %s.', w.role::regrole, p.proowner::regrole)
           AS what_to_do
    FROM pulse.task AS t
    JOIN pg_catalog.pg_proc AS p ON p.oid = pg_catalog.to_regprocedure(t.handler)
    JOIN pulse_internal.worker_role AS w
      ON pulse_internal.handler_trust(p.oid, pg_catalog.pg_get_userbyid(w.role)) = 'restricted'
   GROUP BY p.proowner, w.role;
COMMENT ON VIEW pulse_internal.handler_findings IS
  'Findings about functions that run as tasks.';

CREATE OR REPLACE FUNCTION pulse.doctor()
  RETURNS TABLE (finding text, severity text, detail text, what_to_do text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 5
  SET search_path = pg_catalog, pg_temp SET jit = off SET enable_memoize = off AS $$
DECLARE
  -- The tables that the views read: even the planner would wait for a locked table.
  locked text := pulse_internal.try_lock_tables('{}',
    '{job,heartbeat,worker,clock,schedule,finished_job,task,installation,installation_witness,'
    'queue,queue_pause,queue_rate,operation,attempt}');
BEGIN
  IF locked IS NOT NULL THEN
    RETURN QUERY
    SELECT * FROM pulse_internal.lock_findings
    UNION ALL
    SELECT 'unreadable table', 'error', format(
             'A lock keeps readers from table %s, so nothing but locks was checked.', locked),
           'Find the holder of the lock in pg_locks, and call doctor() again when the holder''s '
           'transaction has ended.';
    RETURN;
  END IF;
  RETURN QUERY
  SELECT f.finding, f.severity, f.detail, f.what_to_do
    FROM (SELECT * FROM pulse_internal.sweep_findings
          UNION ALL SELECT * FROM pulse_internal.lock_findings
          UNION ALL SELECT * FROM pulse_internal.setting_findings
          UNION ALL SELECT * FROM pulse_internal.worker_findings
          UNION ALL SELECT * FROM pulse_internal.table_findings
          UNION ALL SELECT * FROM pulse_internal.horizon_findings
          UNION ALL SELECT * FROM pulse_internal.server_findings
          UNION ALL SELECT * FROM pulse_internal.failover_findings
          UNION ALL SELECT * FROM pulse_internal.pause_findings
          UNION ALL SELECT * FROM pulse_internal.skip_findings
          UNION ALL SELECT * FROM pulse_internal.backlog_findings
          UNION ALL SELECT * FROM pulse_internal.failing_findings
          UNION ALL SELECT * FROM pulse_internal.producer_findings
          UNION ALL SELECT * FROM pulse_internal.role_findings
          UNION ALL SELECT * FROM pulse_internal.handler_findings) AS f
   ORDER BY CASE f.severity WHEN 'error' THEN '1' WHEN 'warning' THEN '2' ELSE '3' END, f.finding,
            f.detail;
END $$;
COMMENT ON FUNCTION pulse.doctor() IS
  'Finds faults of this installation and returns one row per finding, gravest first; none is good. '
  'severity: error (jobs do not run, or not in time), warning (jobs will not run, or not in time, '
  'unless an operator acts) or notice. what_to_do tells the way out. Settings are judged as this '
  'session sees them. The function reads no table of jobs as a whole.';
