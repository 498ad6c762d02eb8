-- What operators look at. No view shows a payload or a token.

CREATE OR REPLACE VIEW pulse.settings AS
  SELECT s.name, s.setting, s.unit, s.boot_val AS default_setting, s.source,
         s.short_desc AS description
    FROM pg_catalog.pg_settings AS s
   -- Reading the version loads the library, without which the server knows no setting of ours.
   WHERE pulse.version() IS NOT NULL AND s.name LIKE 'pulse.%';
COMMENT ON VIEW pulse.settings IS 'the settings as this session sees them';

CREATE OR REPLACE VIEW pulse.worker_status AS
  SELECT w.id, w.name, w.hostname, w.pid, w.tasks, w.state, coalesce(h.verdict, w.state) AS verdict,
         h.last_heartbeat_at, w.heartbeat_interval, w.sweep_threshold,
         pulse._interval(pulse._live_now_us() - h.beat_live_us) AS silent_for,
         h.attachment IS NOT NULL AS attached,
         (SELECT pg_catalog.count(*) FROM pulse.job AS j
           WHERE j.state = 'running' AND j.worker_id = w.id) AS running_jobs,
         w.started_at, w.ended_at, w.reason
    FROM pulse.worker AS w LEFT JOIN pulse.heartbeat AS h ON h.worker_id = w.id;
COMMENT ON VIEW pulse.worker_status IS
  'registered workers, when they last checked in and what they hold; silent_for is on the '
  'liveness clock';

CREATE OR REPLACE VIEW pulse.stale AS
  SELECT j.identifier, pg_catalog.count(*) AS jobs, pg_catalog.min(j.claimed_at) AS oldest_claim
    FROM pulse.job AS j LEFT JOIN pulse.heartbeat AS h ON h.worker_id = j.worker_id
   WHERE j.state = 'running'
     AND (h.worker_id IS NULL OR h.verdict IN ('lost', 'stopped')
          OR pulse._lost_way(h, pulse._live_now_us()) IS NOT NULL)
   GROUP BY j.identifier;
COMMENT ON VIEW pulse.stale IS
  'running jobs whose worker does not live, by task: what the next sweep recovers';
