-- The one source of time: the wall clock for schedules, the liveness clock for the silence of
-- workers. pulse.clock_offset moves both, for tests.

CREATE OR REPLACE FUNCTION pulse.now() RETURNS timestamptz
  LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_clock_timestamp';
COMMENT ON FUNCTION pulse.now() IS
  'Returns the time by which jobs fall due: the server''s clock, moved by pulse.clock_offset.';

CREATE OR REPLACE FUNCTION pulse_internal.transaction_now() RETURNS timestamptz
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_transaction_timestamp';
COMMENT ON FUNCTION pulse_internal.transaction_now() IS
  'Returns the start of the transaction, moved by pulse.clock_offset.';

CREATE OR REPLACE FUNCTION pulse_internal.live_now_us() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_live_now_us';
COMMENT ON FUNCTION pulse_internal.live_now_us() IS 'Returns the liveness clock in microseconds.';

CREATE OR REPLACE FUNCTION pulse_internal.live_base_us(at timestamptz = clock_timestamp())
  RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_live_base_us';
COMMENT ON FUNCTION pulse_internal.live_base_us(timestamptz) IS
  'Returns the liveness clock at a moment of the wall clock, without pulse.clock_offset, in '
  'microseconds: the value that a tick stores.';

CREATE OR REPLACE FUNCTION pulse_internal.current_timeline() RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_current_timeline';
COMMENT ON FUNCTION pulse_internal.current_timeline() IS
  'Returns the timeline that this server writes.';

CREATE OR REPLACE FUNCTION pulse_internal.longest_tick_us() RETURNS bigint
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_longest_tick_us';
COMMENT ON FUNCTION pulse_internal.longest_tick_us() IS
  'Returns the most that the liveness clock advances between two ticks, in microseconds.';

-- Stores the clock when the last tick is old enough, or older than the stamped end of a session: a
-- restart sets the clock back to the last tick, and would begin the grace anew. The tick returns
-- the time that the liveness clock left out since the last tick (an outage, a step of the wall
-- clock). A tick writes any row that no transaction locks, and skips the write while eight open
-- sweeps lock all rows. The written row exceeds every other row by a microsecond at least. Among
-- equal rows a tick from before a backward step of the wall clock would win, and the liveness clock
-- would stand still until the time of that tick.
CREATE OR REPLACE FUNCTION pulse_internal.tick() RETURNS interval
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  newest pulse.clock;
  -- The function reads one moment for both times: with two readings the clock would step back by
  -- the time between the readings.
  moment timestamptz := clock_timestamp();
  live_us bigint := pulse_internal.live_base_us(moment);
  elapsed interval;
BEGIN
  SELECT * INTO newest FROM pulse.clock ORDER BY vt_us DESC, last_tick DESC LIMIT 1;
  elapsed := moment - newest.last_tick;
  IF newest.timeline = pulse_internal.current_timeline()
     AND elapsed BETWEEN interval '0' AND
       pulse_internal.interval(pulse_internal.longest_tick_us() / 4)
     AND NOT EXISTS (SELECT FROM pulse.heartbeat AS h
                      WHERE h.detached_live_us > newest.vt_us
                        AND h.verdict NOT IN ('lost', 'stopped')) THEN
    RETURN interval '0';
  END IF;
  UPDATE pulse.clock
     SET vt_us = greatest(live_us, newest.vt_us + 1),
         last_tick = moment,
         timeline = pulse_internal.current_timeline()
   WHERE slot = (SELECT c.slot FROM pulse.clock AS c
                  ORDER BY c.vt_us, c.slot LIMIT 1 FOR UPDATE SKIP LOCKED);
  RETURN greatest(elapsed - pulse_internal.interval(live_us - newest.vt_us), interval '0');
END $$;
COMMENT ON FUNCTION pulse_internal.tick() IS
  'Advances the liveness clock and returns the time since the last tick that the clock left out.';

CREATE OR REPLACE FUNCTION pulse_internal.last_tick() RETURNS timestamptz
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT max(c.last_tick) FROM pulse.clock AS c);
END $$;
COMMENT ON FUNCTION pulse_internal.last_tick() IS
  'Returns the beginning of the last committed sweep.';
