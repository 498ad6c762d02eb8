-- Triggers that count the rows that statements write into pulse.job, as bulk calls and DBAs do:
-- direct writes of C code fire no trigger, and C code counts its own rows
-- (extension/counters/noted_depths.hpp). ALWAYS: a restored dump or a subscription has
-- session_replication_role replica.
CREATE FUNCTION pulse_internal.count_written_job() RETURNS trigger
  LANGUAGE c AS 'MODULE_PATHNAME', 'pulse_count_written_job';
CREATE TRIGGER count_written AFTER INSERT OR DELETE ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION pulse_internal.count_written_job();
CREATE TRIGGER count_changed AFTER UPDATE ON pulse.job
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state
                     OR OLD.identifier IS DISTINCT FROM NEW.identifier
                     OR OLD.queue_name IS DISTINCT FROM NEW.queue_name
                     OR OLD.run_at <> NEW.run_at
                     OR (OLD.waits_on IS NULL) <> (NEW.waits_on IS NULL))
  EXECUTE FUNCTION pulse_internal.count_written_job();
CREATE TRIGGER count_truncated AFTER TRUNCATE ON pulse.job
  EXECUTE FUNCTION pulse_internal.count_written_job();
ALTER TABLE pulse.job ENABLE ALWAYS TRIGGER count_written;
ALTER TABLE pulse.job ENABLE ALWAYS TRIGGER count_changed;
ALTER TABLE pulse.job ENABLE ALWAYS TRIGGER count_truncated;

-- The figures of pulse.overview that are about live jobs.
CREATE TYPE pulse_internal.live_figures AS (
  ready bigint, future bigint, due_next_minute bigint, parked_future bigint, parked_paused bigint,
  parked_full bigint, parked_waiting bigint, running bigint, estimated text[],
  oldest_due_at timestamptz, counted_at timestamptz
);
