-- pg_cron as the clock that calls run_tick(). pg_cron lives in one database, usually another
-- database than pg_pulse, so this function returns text to be run there. A superuser runs the text,
-- so the function quotes names of databases and roles in it, and no comment in it has a name.

CREATE OR REPLACE FUNCTION pulse.cron_setup_sql(
    schedule text = '* * * * *', username name = NULL, keep interval = '7 days')
  RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  tick text := format('pg_pulse tick %s', current_database());
  purge text := format('pg_pulse purge %s', current_database());
BEGIN
  IF schedule IS NULL OR schedule !~ '[^[:space:]]' THEN
    RAISE EXCEPTION 'schedule must not be empty' USING
      ERRCODE = 'PU004', HINT = 'Use five fields as crontab has them, such as ''* * * * *''.';
  END IF;
  PERFORM pulse_internal.check_duration('keep', keep, interval '0');
  RETURN concat(
    E'-- For the database that cron.database_name names, as superuser. Repeating it is harmless.\n',
    format(E'SELECT cron.schedule_in_database(%L, %L, %L, %L, %L);\n',
           tick, schedule, 'CALL pulse.run_tick()', current_database(), username),
    CASE WHEN keep IS NOT NULL THEN
      E'-- pg_cron remembers each run for ever; these runs it forgets when they are old.\n'
      || format(E'SELECT cron.schedule(%L, %L, %L);\n', purge, '17 * * * *', format(
           'DELETE FROM cron.job_run_details'
           ' WHERE coalesce(end_time, start_time) < now() - interval %L'
           ' AND jobid IN (SELECT jobid FROM cron.job WHERE jobname IN (%L, %L))',
           keep, tick, purge)) END,
    E'-- cron.unschedule() with these names ends it.\n');
END $$;
COMMENT ON FUNCTION pulse.cron_setup_sql(text, name, interval) IS
  'Returns the SQL to run in pg_cron''s database so that pg_cron calls run_tick() here. schedule: '
  'five fields as in a crontab. username: the role that ticks; NULL means the role that runs the '
  'SQL. keep: age after which pg_cron''s records of the runs are deleted; NULL means never. Needs '
  'pg_cron 1.4 or later. Raises PU004 for a value out of range.';
