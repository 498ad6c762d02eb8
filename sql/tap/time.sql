-- The time that pg_pulse sees in this test: of jobs, schedules, backoff, retention and the liveness
-- clock together. Both settings are local, so the rollback of a test or savepoint takes them back.

CREATE OR REPLACE FUNCTION pulse_tap.freeze() RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_tap.require_test('freeze()');
  PERFORM pulse_tap.keep_own_sequences();
  PERFORM set_config('pulse.frozen_clock', pulse_internal.live_base_us()::text, true);
  RETURN pulse.now();
END $$;
COMMENT ON FUNCTION pulse_tap.freeze() IS
  'Stops time until the test ends: pulse.now() is the start of the transaction, as now() returns '
  'it, moved by the distance that the test has travelled. travel() still moves the time. Returns '
  'the stopped time, and keeps the sequences of pg_pulse as keep_sequences() does: begin a test '
  'with the call. Raises PU006 outside a transaction block.';

-- The start of the transaction tells the present offset to the microsecond; the setting, as shown,
-- is rounded.
CREATE OR REPLACE FUNCTION pulse_tap.travel(how_far interval) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  target timestamptz := pulse_internal.transaction_now() + how_far;
  -- The range of pulse.clock_offset.
  max_offset CONSTANT interval := interval '1000000000 s';
BEGIN
  PERFORM pulse_tap.require_test('travel()');
  IF target - transaction_timestamp() NOT BETWEEN -max_offset AND max_offset THEN
    RAISE EXCEPTION 'how_far is %, out of range', how_far USING
      ERRCODE = 'PU004', HINT = 'A test travels at most 31 years from the present, to either side.';
  END IF;
  PERFORM pulse_tap.keep_own_sequences();
  PERFORM set_config('pulse.clock_offset',
                     extract(epoch FROM target - transaction_timestamp())::text, true);
  RETURN pulse.now();
END $$;
COMMENT ON FUNCTION pulse_tap.travel(interval) IS
  'Moves the time that pg_pulse sees in this test by so much, back if negative, and returns the '
  'new time. Nothing runs without a call meanwhile: drain() runs the jobs that have fallen due. '
  'Days and months are in the time zone of the session. SQL''s own now() does not move. Raises '
  'PU006 outside a transaction block, PU004 beyond 31 years.';
