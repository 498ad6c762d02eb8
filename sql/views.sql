-- Views for operators and observers. No view shows a payload or a token.

CREATE OR REPLACE VIEW pulse.settings AS
  SELECT s.name, s.setting, s.unit, s.boot_val AS default_setting, s.source,
         s.short_desc AS description
    FROM pg_catalog.pg_settings AS s
   -- Reading the version loads the library, without which the server knows no setting of pg_pulse.
   WHERE pulse.version() IS NOT NULL AND s.name LIKE 'pulse.%';
COMMENT ON VIEW pulse.settings IS 'The settings of pg_pulse as this session sees them.';

CREATE OR REPLACE VIEW pulse.worker_status AS
  SELECT w.id, w.name, w.hostname, w.pid, w.tasks, w.state, coalesce(h.verdict, w.state) AS status,
         h.last_heartbeat_at, w.heartbeat_interval, w.sweep_threshold,
         pulse._interval((SELECT pulse._live_now_us()) - h.beat_live_us) AS silent_for,
         h.attachment IS NOT NULL AS attached,
         pg_catalog.cardinality(pulse._running_ids(w.id))::bigint AS running_jobs,
         w.started_at, w.ended_at, w.reason
    FROM pulse.worker AS w LEFT JOIN pulse.heartbeat AS h ON h.worker_id = w.id
   -- Each condition has an index, because workers that ended long ago are many.
   WHERE w.state IN ('alive', 'draining') OR w.ended_at > (SELECT pulse.now()) - interval '1 day';
COMMENT ON VIEW pulse.worker_status IS
  'Registered workers, and those that ended within the last day, with their last heartbeat and '
  'the jobs that they run.';
COMMENT ON COLUMN pulse.worker_status.state IS
  'alive, draining (asked to drain or to stop), lost or stopped';
COMMENT ON COLUMN pulse.worker_status.status IS
  'What the next heartbeat tells the worker: alive, draining, stopping or lost; the state once '
  'its row is gone';
COMMENT ON COLUMN pulse.worker_status.silent_for IS
  'Time since the last heartbeat on the liveness clock; NULL when its row is gone';
COMMENT ON COLUMN pulse.worker_status.attached IS 'The worker has an attached session';
COMMENT ON COLUMN pulse.worker_status.reason IS 'Why the worker ended';

CREATE OR REPLACE VIEW pulse.stale AS
  -- Each worker is judged once, not once per job.
  WITH living AS MATERIALIZED (
    SELECT h.worker_id FROM pulse.heartbeat AS h
     WHERE h.verdict NOT IN ('lost', 'stopped')
       AND pulse._lost_way(h, (SELECT pulse._live_now_us())) IS NULL
  )
  SELECT j.identifier, pg_catalog.count(*) AS jobs, pg_catalog.min(j.claimed_at) AS oldest_claim
    FROM pulse.job AS j
   WHERE j.id = ANY (pulse._running_ids(NULL))
     AND NOT EXISTS (SELECT FROM living AS l WHERE l.worker_id = j.worker_id)
   GROUP BY j.identifier;
COMMENT ON VIEW pulse.stale IS
  'Running jobs whose worker is not alive, by task: the next sweep recovers them.';
COMMENT ON COLUMN pulse.stale.oldest_claim IS 'The earliest claim of these jobs';
