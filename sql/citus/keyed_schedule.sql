-- The one call of a schedule that needs a key; the build repeats this part as keyed.sql.

CREATE OR REPLACE FUNCTION pulse_citus.schedule(
    shard_key @KEY@,
    name text,
    identifier text,
    cron text = NULL,
    every interval = NULL,
    payload json = NULL,
    time_zone text = NULL,
    queue_name text = NULL,
    max_attempts int = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key text = NULL,
    job_key_mode text = 'replace',
    missed text = 'once',
    missed_for interval = '1 day',
    overlap text = 'allow',
    paused boolean = NULL)
  RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres' SET jit = off AS $$
BEGIN
  PERFORM pulse_citus._private_require_coordinator('schedule()');
  PERFORM pulse_citus._private_settle_schedule(name, shard_key::text);
  RETURN (pulse_citus._private_call(
    shard_key::text, 'schedule', name, identifier, cron, every::text, payload::text, time_zone,
    queue_name, max_attempts::text, priority::text, flags::text, job_key, job_key_mode, missed,
    missed_for::text, overlap, paused::text))[1]::pulse.schedule;
END $$;
COMMENT ON FUNCTION pulse_citus.schedule(
    @KEY@, text, text, text, interval, json, text, text, int, int, text[], text, text, text,
    interval, text, boolean) IS
  'pulse.schedule() on the node of a shard key. Raises PU003 off the coordinator and for a name '
  'that a schedule of another key has, PU004 as add_job() and pulse.schedule() do.';
