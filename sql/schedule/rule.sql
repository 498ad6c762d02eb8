-- The rules of schedules: cron rules and their zones, and what a schedule may be.
-- extension/schedule computes the due times of cron rules.

CREATE OR REPLACE FUNCTION pulse_internal.zone_name(time_zone text) RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_zone_name';
COMMENT ON FUNCTION pulse_internal.zone_name(text) IS
  'Returns the name of a time zone as the server spells it; NULL for one that it does not know.';

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
  'Returns the name of a time zone as it is stored; UTC for NULL. Raises PU004 for another name.';

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
