-- The rules of schedules: cron rules and their zones, and the values that a schedule may have.
-- extension/schedule computes the due times of cron rules.

COMMENT ON TABLE pulse.schedule IS
  'Rules by which sweeps add jobs at due times; written by schedule() and related functions.';
COMMENT ON COLUMN pulse.schedule.name IS 'Name of the schedule';
COMMENT ON COLUMN pulse.schedule.identifier IS 'Task of the schedule''s jobs';
COMMENT ON COLUMN pulse.schedule.cron IS 'Cron rule; NULL for an elapsed time';
COMMENT ON COLUMN pulse.schedule.every IS 'Elapsed time between due times; NULL for a cron rule';
COMMENT ON COLUMN pulse.schedule.time_zone IS 'Zone in which a cron rule is read';
COMMENT ON COLUMN pulse.schedule.anchor IS
  'When the rule was given: due times of an elapsed time count from the anchor';
COMMENT ON COLUMN pulse.schedule.payload IS 'Payload of the schedule''s jobs';
COMMENT ON COLUMN pulse.schedule.queue_name IS 'Named queue of the schedule''s jobs; NULL: none';
COMMENT ON COLUMN pulse.schedule.max_attempts IS
  'Attempts of the schedule''s jobs; NULL: as add_job';
COMMENT ON COLUMN pulse.schedule.priority IS 'Priority of the schedule''s jobs; NULL: 0';
COMMENT ON COLUMN pulse.schedule.flags IS 'Flags of the schedule''s jobs; NULL: none';
COMMENT ON COLUMN pulse.schedule.job_key IS 'Key of the schedule''s jobs; NULL: none';
COMMENT ON COLUMN pulse.schedule.job_key_mode IS 'replace, preserve_run_at or unsafe_dedupe';
COMMENT ON COLUMN pulse.schedule.missed IS
  'Jobs for due times at which no session swept: skip, once or all';
COMMENT ON COLUMN pulse.schedule.missed_for IS
  'With all: a due time that is older than this gets no job';
COMMENT ON COLUMN pulse.schedule.overlap IS
  'Action of a due time while the job before waits or runs: allow, skip or replace';
COMMENT ON COLUMN pulse.schedule.paused IS 'The schedule adds no jobs';
COMMENT ON COLUMN pulse.schedule.next_due IS 'The first due time that is not settled';
COMMENT ON COLUMN pulse.schedule.last_due IS 'The last settled due time';
COMMENT ON COLUMN pulse.schedule.last_job_id IS 'Last job that a due time added';
COMMENT ON COLUMN pulse.schedule.missed_count IS 'Due times without a job: missed or refused';
COMMENT ON COLUMN pulse.schedule.overlapped_count IS
  'Due times without a job because the job before still waited or ran';
COMMENT ON COLUMN pulse.schedule.last_error IS 'Why the last refused job was refused';
COMMENT ON COLUMN pulse.schedule.last_error_at IS 'Due time of the last refused job';
COMMENT ON COLUMN pulse.schedule.crontab_set IS
  'The crontab that names the schedule; NULL: schedule() made it';
COMMENT ON COLUMN pulse.schedule.gone_at IS 'Since when the crontab names the schedule no more';
COMMENT ON COLUMN pulse.schedule.paused_before IS
  'Whether the schedule was paused when the crontab left it out';
COMMENT ON COLUMN pulse.schedule.created_at IS 'When the schedule was created';
COMMENT ON COLUMN pulse.schedule.updated_at IS 'When a call changed the schedule';

CREATE OR REPLACE FUNCTION pulse_internal.zone_name(time_zone text) RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_zone_name';
COMMENT ON FUNCTION pulse_internal.zone_name(text) IS
  'Returns the name of a time zone as the server spells the name; NULL for a zone that the server '
  'does not know.';

CREATE OR REPLACE FUNCTION pulse_internal.cron_times(
    cron text, time_zone text, after timestamptz, until timestamptz, max_times int)
  RETURNS timestamptz[]
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_cron_times';
COMMENT ON FUNCTION pulse_internal.cron_times(text, text, timestamptz, timestamptz, int) IS
  'Returns the first due times of a cron rule that are later than after and not later than until. '
  'Raises PU004 for a text that is no rule, and for an unknown time zone.';

-- The server reads a misspelt name that ends in a digit as a zone of its own making.
CREATE OR REPLACE FUNCTION pulse_internal.checked_zone(time_zone text) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  known text := pulse_internal.zone_name(coalesce(time_zone, 'UTC'));
BEGIN
  IF known IS NULL
     OR known ~ '[0-9]'
        AND NOT EXISTS (SELECT FROM pg_timezone_names AS z WHERE z.name = known) THEN
    RAISE EXCEPTION 'time zone % is not known', quote_literal(time_zone) USING
      ERRCODE = 'PU004', HINT = 'Use a name of pg_timezone_names, such as Europe/Berlin.';
  END IF;
  RETURN known;
END $$;
COMMENT ON FUNCTION pulse_internal.checked_zone(text) IS
  'Returns the name of a time zone as pg_pulse stores it; UTC for NULL. Raises PU004 for another '
  'name.';

CREATE OR REPLACE FUNCTION pulse_internal.check_cron(
    cron text, time_zone text, after timestamptz)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_given('cron', cron IS NOT NULL,
    'Give five fields such as 0 4 * * *, or @hourly, @daily, @weekly, @monthly or @yearly.');
  IF isfinite(after)
     AND cardinality(pulse_internal.cron_times(
           cron, time_zone, after, after + interval '8 years', 1)) = 0 THEN
    RAISE EXCEPTION 'cron rule % is never due', quote_literal(cron) USING
      ERRCODE = 'PU004', HINT = 'No day of the next eight years matches its days and months.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_cron(text, text, timestamptz) IS
  'Raises PU004 for a cron rule that is not due within eight years.';

CREATE OR REPLACE FUNCTION pulse.cron_runs(
    cron text, time_zone text = 'UTC', max_runs int = 5, after timestamptz = NULL)
  RETURNS SETOF timestamptz
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 5
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  zone text := pulse_internal.checked_zone(cron_runs.time_zone);
  since timestamptz := coalesce(cron_runs.after, pulse.now());
BEGIN
  PERFORM pulse_internal.check_count('max_runs', max_runs, 1, 100000);
  PERFORM pulse_internal.check_after(cron_runs.after);
  PERFORM pulse_internal.check_cron(cron_runs.cron, zone, since);
  RETURN QUERY SELECT unnest(pulse_internal.cron_times(
    cron_runs.cron, zone, since, 'infinity', max_runs));
END $$;
COMMENT ON FUNCTION pulse.cron_runs(text, text, int, timestamptz) IS
  'Returns the first max_runs (1 to 100000) due times of a cron rule later than after; NULL means '
  'now. Raises PU004 for a text that is no rule, for a rule that no day of eight years matches, '
  'and for an unknown time zone.';

CREATE OR REPLACE FUNCTION pulse_internal.due_after(rule pulse.schedule, after timestamptz)
  RETURNS timestamptz
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (pulse_internal.due_times(rule, after, after + interval '100 years', 1))[1];
END $$;
COMMENT ON FUNCTION pulse_internal.due_after(pulse.schedule, timestamptz) IS
  'Returns the first due time of a schedule later than after.';

CREATE OR REPLACE FUNCTION pulse_internal.check_schedule(given pulse.schedule) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  choice record;
BEGIN
  PERFORM pulse_internal.check_name('name', given.name, 128);
  IF (given.cron IS NULL) = (given.every IS NULL) THEN
    RAISE EXCEPTION 'schedule % needs either cron or every', quote_literal(given.name) USING
      ERRCODE = 'PU004', HINT = 'Give cron => ''0 6 * * *'' or every => ''10 min'', and one only.';
  ELSIF extract(year FROM given.every) <> 0 OR extract(month FROM given.every) <> 0 THEN
    RAISE EXCEPTION 'every is %, which has months', given.every USING
      ERRCODE = 'PU004', HINT = 'Months differ in length: use days or hours, or cron.';
  END IF;
  PERFORM pulse_internal.check_duration('every', given.every, interval '1 s');
  PERFORM pulse_internal.check_duration('missed_for', given.missed_for, interval '0');
  FOR choice IN
    SELECT * FROM (VALUES
      ('missed', given.missed, ARRAY['skip', 'once', 'all']),
      ('overlap', given.overlap, ARRAY['allow', 'skip', 'replace']),
      ('job_key_mode', given.job_key_mode, ARRAY['replace', 'preserve_run_at', 'unsafe_dedupe']))
      AS c (what, value, known)
  LOOP
    IF choice.value IS NULL OR choice.value <> ALL (choice.known) THEN
      RAISE EXCEPTION '% % is not known', choice.what, quote_nullable(choice.value) USING
        ERRCODE = 'PU004', HINT = format('Use %s.', array_to_string(choice.known, ', '));
    END IF;
  END LOOP;
  PERFORM pulse_internal.checked_spec(pulse_internal.scheduled_spec(given, pulse.now()));
END $$;
COMMENT ON FUNCTION pulse_internal.check_schedule(pulse.schedule) IS
  'Raises PU004 for a schedule with a value out of range, and for one whose job would be refused.';
