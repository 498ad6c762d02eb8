-- Views for operators and observers. No view shows a payload or a token.

CREATE OR REPLACE VIEW pulse.settings AS
  SELECT s.name, s.setting, s.unit, s.boot_val AS default_setting, s.source,
         s.short_desc AS description
    FROM pg_catalog.pg_settings AS s
   -- Reading the version loads the library, without which the server knows no setting of pg_pulse.
   WHERE pulse.version() IS NOT NULL AND s.name LIKE 'pulse.%'
  UNION ALL
  SELECT 'shard', b.shard::text, NULL, '0', CASE b.shard WHEN 0 THEN 'default' ELSE 'set_shard' END,
         'The shard whose ids this database gives out: set_shard()'
    FROM pulse_internal.id_bounds AS b
  UNION ALL
  -- A session without the library stores any name; a session that loads it drops the name with a
  -- warning.
  SELECT c.name COLLATE pg_catalog."default",
         pg_catalog.substr(c.entry, pg_catalog.length(c.name) + 2) COLLATE pg_catalog."default",
         NULL, NULL,
         pg_catalog.concat_ws(' ', CASE WHEN c.setdatabase <> 0 THEN 'database' END,
                              CASE WHEN c.setrole <> 0 THEN 'user' END),
         'No such setting: ALTER DATABASE or ALTER ROLE stored a name that pg_pulse does not know'
    FROM (SELECT r.setdatabase, r.setrole, e.entry, pg_catalog.split_part(e.entry, '=', 1) AS name
            FROM pg_catalog.pg_db_role_setting AS r, pg_catalog.unnest(r.setconfig) AS e (entry)
           WHERE r.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database AS d
                                        WHERE d.datname = pg_catalog.current_database()))) AS c
   WHERE pulse.version() IS NOT NULL AND c.name LIKE 'pulse.%'
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_settings AS s
                      WHERE s.name = pg_catalog.lower(c.name));
COMMENT ON VIEW pulse.settings IS
  'The settings of pg_pulse as this session sees them, the shard, and unknown names with the '
  'prefix of pg_pulse that ALTER DATABASE or ALTER ROLE stored.';
COMMENT ON COLUMN pulse.settings.name IS 'Name of the setting';
COMMENT ON COLUMN pulse.settings.setting IS 'Value in this session';
COMMENT ON COLUMN pulse.settings.unit IS 'Unit of the value; NULL without one';
COMMENT ON COLUMN pulse.settings.default_setting IS 'Value without any configuration';
COMMENT ON COLUMN pulse.settings.source IS 'Where the value comes from, as in pg_settings';
COMMENT ON COLUMN pulse.settings.description IS 'Meaning of the setting';

-- A parent without a row has completed and was not kept, or counts as completed.
CREATE OR REPLACE VIEW pulse.waiting_for AS
  SELECT d.child_id AS job_id, c.identifier, c.starts_when, i.parent_id,
         coalesce(p.identifier, f.identifier) AS parent_identifier,
         coalesce(p.state::text, f.state::text, 'completed') AS parent_state,
         m.flow_id
    FROM pulse.dependency AS d
   CROSS JOIN pg_catalog.unnest(d.parents) AS i (parent_id)
    JOIN pulse.job AS c ON c.id = d.child_id
    LEFT JOIN pulse.job AS p ON p.id = i.parent_id
    LEFT JOIN pulse.finished_job AS f ON f.id = i.parent_id
    LEFT JOIN pulse.flow_job AS m ON m.job_id = d.child_id;
COMMENT ON VIEW pulse.waiting_for IS
  'Which jobs wait for which other jobs, ended parents included; a row for each pair.';
COMMENT ON COLUMN pulse.waiting_for.job_id IS 'Job that waits';
COMMENT ON COLUMN pulse.waiting_for.identifier IS 'Task of the job that waits';
COMMENT ON COLUMN pulse.waiting_for.starts_when IS
  'How the parents must end: completed, ended or failed';
COMMENT ON COLUMN pulse.waiting_for.parent_id IS 'Parent: the job that job_id waits for';
COMMENT ON COLUMN pulse.waiting_for.parent_identifier IS
  'The task of that job; NULL when the job is gone';
COMMENT ON COLUMN pulse.waiting_for.parent_state IS
  'State of the parent, or how it ended; completed for a parent without a row';
COMMENT ON COLUMN pulse.waiting_for.flow_id IS 'Flow of the job that waits; NULL without one';

-- States are text: the update that adds the state expired makes this view too.
CREATE OR REPLACE VIEW pulse_internal.flow_member AS
  SELECT s.flow_id, s.finished_at,
         CASE WHEN s.state IN ('ready', 'parked') THEN 'waiting'
              WHEN s.state IN ('failed', 'quarantined', 'expired') THEN 'failed'
              ELSE s.state END AS fate
    FROM (SELECT m.flow_id, f.finished_at,
                 coalesce(j.state::text, f.state::text, 'completed') AS state
            FROM pulse.flow_job AS m
            LEFT JOIN pulse.job AS j ON j.id = m.job_id
            LEFT JOIN pulse.finished_job AS f ON f.id = m.job_id) AS s;
COMMENT ON VIEW pulse_internal.flow_member IS
  'The jobs of flows and what flows count them as: waiting, running, completed, failed or '
  'cancelled. A job without a row has completed.';

CREATE OR REPLACE VIEW pulse.flows AS
  SELECT w.id, w.name, w.created_at, c.*
    FROM pulse.flow AS w
   CROSS JOIN LATERAL (
     SELECT pg_catalog.count(*) AS jobs,
            pg_catalog.count(*) FILTER (WHERE m.fate = 'waiting') AS waiting,
            pg_catalog.count(*) FILTER (WHERE m.fate = 'running') AS running,
            pg_catalog.count(*) FILTER (WHERE m.fate = 'completed') AS completed,
            pg_catalog.count(*) FILTER (WHERE m.fate = 'failed') AS failed,
            pg_catalog.count(*) FILTER (WHERE m.fate = 'cancelled') AS cancelled,
            pg_catalog.max(m.finished_at) AS last_finished_at
       FROM pulse_internal.flow_member AS m WHERE m.flow_id = w.id) AS c;
COMMENT ON VIEW pulse.flows IS
  'The flows that add_flow made, and how many jobs of each flow are in which state.';
COMMENT ON COLUMN pulse.flows.id IS 'Id of the flow';
COMMENT ON COLUMN pulse.flows.name IS 'The name that add_flow was given; NULL without one';
COMMENT ON COLUMN pulse.flows.created_at IS 'When the flow was added';
COMMENT ON COLUMN pulse.flows.jobs IS 'How many jobs the flow has';
COMMENT ON COLUMN pulse.flows.waiting IS
  'How many jobs of the flow do not run yet: ready or parked';
COMMENT ON COLUMN pulse.flows.running IS 'How many run';
COMMENT ON COLUMN pulse.flows.completed IS 'How many have completed, or have no row any more';
COMMENT ON COLUMN pulse.flows.failed IS 'How many ended as failed, quarantined or expired';
COMMENT ON COLUMN pulse.flows.cancelled IS 'How many were cancelled, or were not needed';
COMMENT ON COLUMN pulse.flows.last_finished_at IS 'When the last kept job of the flow ended';

-- A standby has no liveness clock: there the view shows the values that the primary wrote.
CREATE OR REPLACE VIEW pulse.worker_status AS
  SELECT w.id, w.name, w.hostname, w.pid, w.tasks, w.state,
         coalesce(pulse_internal.status_of(h.verdict, w.info), w.state) AS status,
         h.last_heartbeat_at, w.heartbeat_interval, w.sweep_threshold,
         pulse_internal.interval(CASE WHEN w.ended_at IS NULL THEN moment.live_us END
                                 - h.beat_live_us) AS silent_for,
         pulse_internal.is_attached(h.verdict, h.attachment, h.incarnation, h.detached_live_us)
           AS attached,
         pg_catalog.cardinality(pulse_internal.running_ids(w.id))::bigint AS running_jobs,
         w.started_at, w.ended_at, w.reason, w.slots, w.version,
         -- As pulse_internal.living_worker does, without reading each worker twice.
         w.state IN ('alive', 'draining') AND (
           h.verdict NOT IN ('lost', 'stopped')
             AND NOT pulse_internal.is_missing(
               pulse_internal.loss_cause(h, moment.live_us), h.attachment, h.incarnation,
               h.beat_live_us)) IS NOT TRUE AS silent
    FROM pulse.worker AS w LEFT JOIN pulse.heartbeat AS h ON h.worker_id = w.id
   -- The clock is read once, not once per worker.
   CROSS JOIN (SELECT (SELECT pulse_internal.live_now_us()
                        WHERE NOT pg_catalog.pg_is_in_recovery()) AS live_us OFFSET 0) AS moment
   -- Each condition has an index, because workers that ended long ago are many.
   WHERE w.state IN ('alive', 'draining') OR w.ended_at > (SELECT pulse.now()) - interval '1 day';
COMMENT ON VIEW pulse.worker_status IS
  'Registered workers, and workers that ended within the last day, with the last heartbeat and '
  'the running jobs of each worker.';
COMMENT ON COLUMN pulse.worker_status.state IS
  'alive, draining (asked by an operator to drain or to stop), lost or stopped';
COMMENT ON COLUMN pulse.worker_status.status IS
  'The status that the next heartbeat tells the worker: alive, draining, stopping or lost; '
  'draining also where the worker tells that a signal drains it; the state once the heartbeat row '
  'is gone';
COMMENT ON COLUMN pulse.worker_status.silent_for IS
  'Time since the last heartbeat on the liveness clock, which stops where no sweep runs; '
  'last_heartbeat_at tells the time by the wall clock. NULL for a worker that has ended, and on a '
  'standby';
COMMENT ON COLUMN pulse.worker_status.silent IS
  'The next sweep finds the worker lost: no heartbeat came within the threshold, or the attached '
  'session has ended';
COMMENT ON COLUMN pulse.worker_status.attached IS
  'The worker lives and its attached session is there; false as soon as the session has ended';
COMMENT ON COLUMN pulse.worker_status.reason IS
  'Why the worker ended; of a worker that drains or stops, who has asked it to, and when';
COMMENT ON COLUMN pulse.worker_status.id IS 'Id of the worker';
COMMENT ON COLUMN pulse.worker_status.name IS 'Name that the worker gave';
COMMENT ON COLUMN pulse.worker_status.hostname IS 'Machine of the worker';
COMMENT ON COLUMN pulse.worker_status.pid IS 'Id of the process';
COMMENT ON COLUMN pulse.worker_status.tasks IS
  'Tasks that the worker serves, as the worker told last; NULL means every task';
COMMENT ON COLUMN pulse.worker_status.last_heartbeat_at IS 'When the last heartbeat came';
COMMENT ON COLUMN pulse.worker_status.heartbeat_interval IS 'Time between two heartbeats';
COMMENT ON COLUMN pulse.worker_status.sweep_threshold IS 'Silence after which the worker is lost';
COMMENT ON COLUMN pulse.worker_status.running_jobs IS 'How many jobs the worker has';
COMMENT ON COLUMN pulse.worker_status.started_at IS 'When the worker registered';
COMMENT ON COLUMN pulse.worker_status.slots IS
  'How many jobs the worker runs at a time, as the worker told in info; NULL without slots in '
  'info';
COMMENT ON COLUMN pulse.worker_status.version IS
  'Version of the worker, as the worker told in info; NULL without version in info';
COMMENT ON COLUMN pulse.worker_status.ended_at IS
  'When the worker ended; NULL while the worker lives';

CREATE OR REPLACE VIEW pulse.stale AS
  -- Each worker is judged once, not once per job.
  WITH moment AS MATERIALIZED (
    SELECT (SELECT pulse_internal.live_now_us() WHERE NOT pg_catalog.pg_is_in_recovery()) AS live_us
  ), living AS MATERIALIZED (
    SELECT w.id AS worker_id FROM pulse_internal.living_worker AS w
  )
  SELECT j.identifier, pg_catalog.count(*) AS jobs, pg_catalog.min(j.claimed_at) AS oldest_claim,
         pg_catalog.count(*) FILTER (WHERE j.is_late) AS late_jobs
    FROM (SELECT l.identifier, l.worker_id, l.claimed_at,
                 coalesce(moment.live_us - l.claimed_live_us > pulse_internal.us(l.timeout), false)
                   OR
                     coalesce(moment.live_us - l.activity_live_us
                              > pulse_internal.us(l.stall_timeout),
                               false) AS is_late
            FROM pulse_internal.limits AS l, moment) AS j
   WHERE j.is_late OR NOT EXISTS (SELECT FROM living AS l WHERE l.worker_id = j.worker_id)
   GROUP BY j.identifier;
COMMENT ON VIEW pulse.stale IS
  'Running jobs whose worker is not alive, or whose attached session the client has ended, or that '
  'are past their timeout or stall_timeout, by task: the next sweep recovers them, once '
  'disconnect_grace is over.';
COMMENT ON COLUMN pulse.stale.oldest_claim IS 'The earliest claim of the jobs';
COMMENT ON COLUMN pulse.stale.late_jobs IS
  'How many of the jobs are past their timeout or stall_timeout, whether or not the worker lives';
COMMENT ON COLUMN pulse.stale.identifier IS 'Task of the jobs';
COMMENT ON COLUMN pulse.stale.jobs IS 'How many jobs of the task';

CREATE OR REPLACE VIEW pulse.schedules AS
  SELECT s.name, s.identifier, coalesce(s.cron, 'every ' || s.every::text) AS rule,
         CASE WHEN s.cron IS NOT NULL THEN s.time_zone END AS time_zone,
         s.last_due, s.last_job_id,
         CASE WHEN s.last_job_id IS NULL THEN NULL
              WHEN j.state = 'running' THEN 'running'
              WHEN j.id IS NOT NULL THEN 'waiting'
              ELSE coalesce(f.state::text, 'completed') END AS last_job_state,
         CASE WHEN NOT s.paused THEN s.next_due END AS next_due,
         s.missed_count AS missed, s.overlapped_count AS overlapped, s.last_error, s.last_error_at,
         s.paused, CASE WHEN s.last_due > pulse.now() THEN s.last_due - pulse.now() END AS ahead
    FROM pulse.schedule AS s
    LEFT JOIN pulse.job AS j ON j.id = s.last_job_id
    LEFT JOIN pulse.finished_job AS f ON f.id = s.last_job_id AND j.id IS NULL;
COMMENT ON VIEW pulse.schedules IS 'Schedules with their due times, without payloads.';
COMMENT ON COLUMN pulse.schedules.name IS 'Name of the schedule';
COMMENT ON COLUMN pulse.schedules.identifier IS 'Task of the schedule''s jobs';
COMMENT ON COLUMN pulse.schedules.rule IS 'The cron rule, or every and the elapsed time';
COMMENT ON COLUMN pulse.schedules.time_zone IS 'Zone of the cron rule; NULL for an elapsed time';
COMMENT ON COLUMN pulse.schedules.last_due IS
  'The last due time that was settled';
COMMENT ON COLUMN pulse.schedules.last_job_id IS 'Last job that a due time added';
COMMENT ON COLUMN pulse.schedules.last_job_state IS
  'waiting, running, or how the last job ended; completed also for a job that is not kept';
COMMENT ON COLUMN pulse.schedules.next_due IS 'Next due time; NULL while the schedule is paused';
COMMENT ON COLUMN pulse.schedules.missed IS
  'Due times without a job, because no session swept in time or because the job was refused';
COMMENT ON COLUMN pulse.schedules.overlapped IS
  'Due times without a job, because the job before still waited or ran';
COMMENT ON COLUMN pulse.schedules.last_error IS 'Why the last refused job was refused';
COMMENT ON COLUMN pulse.schedules.last_error_at IS 'Due time of the last refused job';
COMMENT ON COLUMN pulse.schedules.paused IS 'The schedule adds no jobs';
COMMENT ON COLUMN pulse.schedules.ahead IS
  'How far the last due time lies in the future, after the clock was set back; the schedule waits '
  'for the clock unless resume_schedule starts it from now';

CREATE OR REPLACE VIEW pulse.queue_settings AS
  SELECT q.queue_name, q.concurrency, q.total,
         coalesce(own.is_paused, nullif(q.paused, false), shared.is_paused, false)
           OR q.is_strict AND EXISTS (SELECT FROM pulse.queue_pause AS e
                WHERE e.queue_name = q.queue_name AND e.job_id <> 0) AS paused,
         q.updated_at, q.is_strict, q.on_dead, q.rate, q.per, q.burst
    FROM pulse.queue AS q
    LEFT JOIN pulse.queue_pause AS own ON own.queue_name = q.queue_name AND own.job_id = 0
    LEFT JOIN pulse.queue_pause AS shared
           ON shared.queue_name = pg_catalog.regexp_replace(q.queue_name, '[^/]*$', '*')
          AND shared.job_id = 0
  UNION ALL
  SELECT p.queue_name, coalesce(s.concurrency, 1), s.total, true,
         coalesce(s.updated_at, p.created_at), coalesce(s.is_strict, false),
         coalesce(s.on_dead, 'continue'), s.rate, s.per, s.burst
    FROM pulse.queue_pause AS p
    LEFT JOIN pulse.queue AS s
           ON s.queue_name = pg_catalog.regexp_replace(p.queue_name, '[^/]*$', '*') AND s.is_level
   WHERE p.job_id = 0 AND p.is_paused
     AND NOT EXISTS (SELECT FROM pulse.queue AS q WHERE q.queue_name = p.queue_name);
COMMENT ON VIEW pulse.queue_settings IS
  'The stored settings of queues and levels of queues, and the settings that hold for queues '
  'paused by name; queue_status tells the settings in force for each queue, at a higher cost.';
COMMENT ON COLUMN pulse.queue_settings.queue_name IS 'Name of the queue or level';
COMMENT ON COLUMN pulse.queue_settings.concurrency IS
  'How many jobs of exactly this name run at a time';
COMMENT ON COLUMN pulse.queue_settings.total IS
  'How many jobs of the level and of all queues within it run at a time; NULL: no limit';
COMMENT ON COLUMN pulse.queue_settings.paused IS
  'The queue or level is paused by its own name, or by the end of a job';
COMMENT ON COLUMN pulse.queue_settings.updated_at IS 'When a setting changed last';
COMMENT ON COLUMN pulse.queue_settings.is_strict IS
  'Once a job of the queue has been claimed, no other job starts before the claimed job has ended';
COMMENT ON COLUMN pulse.queue_settings.on_dead IS
  'How a strict queue acts when a job ends failed, quarantined or expired: continue or pause';
COMMENT ON COLUMN pulse.queue_settings.rate IS
  'How many jobs of the level and of all queues within it are claimed in each per; NULL: no limit';
COMMENT ON COLUMN pulse.queue_settings.per IS
  'The time in which rate jobs are claimed; NULL: 1 s';
COMMENT ON COLUMN pulse.queue_settings.burst IS
  'How many of the jobs may be claimed at once after a pause; NULL: as many as rate';

CREATE OR REPLACE VIEW pulse.task_settings AS
  SELECT t.identifier, t.max_attempts, t.timeout, t.stall_timeout, t.backoff, t.keep_completed,
         t.max_crashes, t.handler, t.expires_after, t.queue, t.updated_at, t.dead_letter
    FROM pulse.task AS t;
COMMENT ON VIEW pulse.task_settings IS
  'The settings that set_task stored; NULL: the server''s, or none.';
COMMENT ON COLUMN pulse.task_settings.identifier IS 'Name of the task';
COMMENT ON COLUMN pulse.task_settings.max_attempts IS 'Attempts of a job in all';
COMMENT ON COLUMN pulse.task_settings.timeout IS 'How long an attempt may take';
COMMENT ON COLUMN pulse.task_settings.stall_timeout IS
  'How long an attempt may be without a report of progress';
COMMENT ON COLUMN pulse.task_settings.backoff IS 'How the delay before the next attempt grows';
COMMENT ON COLUMN pulse.task_settings.keep_completed IS 'How long completed jobs are kept';
COMMENT ON COLUMN pulse.task_settings.max_crashes IS 'Deaths of workers that quarantine a job';
COMMENT ON COLUMN pulse.task_settings.handler IS 'Function of the database that runs the jobs';
COMMENT ON COLUMN pulse.task_settings.expires_after IS
  'A job that no claim took so long after the due time expires';
COMMENT ON COLUMN pulse.task_settings.queue IS 'Queue of jobs that name none';
COMMENT ON COLUMN pulse.task_settings.updated_at IS 'When a setting changed last';
COMMENT ON COLUMN pulse.task_settings.dead_letter IS
  'Task of the job that a job adds when it ends failed, quarantined or expired';
