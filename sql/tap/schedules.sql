-- Assertions about schedules.

CREATE OR REPLACE FUNCTION pulse_tap.fault_of_runs(schedule_name text, expected timestamptz[])
  RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  wanted timestamptz[] := coalesce(expected, '{}');
  due timestamptz[];
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.schedule AS s WHERE s.name = schedule_name) THEN
    RETURN format('there is no schedule %s; there are: %s', coalesce(schedule_name, 'NULL'),
                  coalesce((SELECT string_agg(s.name, ', ' ORDER BY s.name)
                              FROM pulse.schedule AS s), 'none'));
  ELSIF cardinality(wanted) = 0 THEN
    RAISE EXCEPTION 'no due time is expected' USING
      ERRCODE = 'PU004', HINT = 'Give the first ones; a schedule always has a next due time.';
  END IF;
  due := ARRAY(SELECT r FROM pulse.next_runs(schedule_name, cardinality(wanted)) AS r ORDER BY r);
  IF due = wanted THEN
    RETURN NULL;
  END IF;
  RETURN pulse_tap.listed('have:', due::text[]) || E'\n'
      || pulse_tap.listed('want:', wanted::text[]);
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_runs(text, timestamptz[]) IS
  'For the kit itself: returns the next due times of a schedule that should have others; NULL: '
  'the schedule has these due times. Raises PU004 for an empty array.';

CREATE OR REPLACE FUNCTION pulse_tap.next_runs_are(
    schedule_name text, expected timestamptz[], description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(pulse_tap.fault_of_runs(schedule_name, expected), coalesce(
    description, format('schedule %s has its next due times', schedule_name)));
END $$;
COMMENT ON FUNCTION pulse_tap.next_runs_are(text, timestamptz[], text) IS
  'Passes if these are the next due times of a schedule, as many as are given, from the time that '
  'the test has travelled to. Fails with the due times of the schedule. Raises PU004 for an empty '
  'array, PU006 outside a transaction block.';
