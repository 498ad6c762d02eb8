-- The views take no writes. Two programs wrote into the tables of Graphile Worker: Graphile
-- Worker's own worker, whose place pulse-worker has, and the cleanup, which finds nothing to delete
-- but failed jobs.

CREATE OR REPLACE FUNCTION graphile_worker._private_refuse() RETURNS trigger
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'graphile_worker.% is a view of what pg_pulse keeps', TG_TABLE_NAME USING
    ERRCODE = 'feature_not_supported',
    HINT = 'Functions such as graphile_worker.add_job write; pulse-worker runs the jobs, in place '
           'of graphile-worker.';
END $$;
COMMENT ON FUNCTION graphile_worker._private_refuse() IS
  'Refuses a write into a view (0A000).';

CREATE OR REPLACE FUNCTION graphile_worker._private_delete_job() RETURNS trigger
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD.locked_at IS NOT NULL OR OLD.attempts < OLD.max_attempts THEN
    RAISE EXCEPTION 'job % has not failed for good', OLD.id USING
      ERRCODE = 'feature_not_supported',
      HINT = 'graphile_worker.complete_jobs and remove_job end jobs that wait.';
  END IF;
  RETURN CASE WHEN pulse.delete_finished(ARRAY[OLD.id]) > 0 THEN OLD END;
END $$;
COMMENT ON FUNCTION graphile_worker._private_delete_job() IS
  'Deletes a job that failed for good; refuses any other (0A000).';

CREATE OR REPLACE FUNCTION graphile_worker._private_leave() RETURNS trigger
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN NULL;
END $$;
COMMENT ON FUNCTION graphile_worker._private_leave() IS
  'Leaves the name of a task or of a queue, which goes with the last job of the name.';

CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE ON graphile_worker._private_jobs
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_refuse();
CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE ON graphile_worker._private_tasks
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_refuse();
CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE ON graphile_worker._private_job_queues
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_refuse();
CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE OR DELETE
  ON graphile_worker._private_known_crontabs
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_refuse();
CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE OR DELETE ON graphile_worker.migrations
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_refuse();
CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE OR DELETE ON graphile_worker.jobs
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_refuse();
CREATE TRIGGER delete_job INSTEAD OF DELETE ON graphile_worker._private_jobs
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_delete_job();
CREATE TRIGGER leave INSTEAD OF DELETE ON graphile_worker._private_tasks
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_leave();
CREATE TRIGGER leave INSTEAD OF DELETE ON graphile_worker._private_job_queues
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_leave();
