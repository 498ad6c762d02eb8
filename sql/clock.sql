-- The one source of time: the wall clock for what people schedule, the liveness clock for how long
-- somebody was silent. pulse.clock_offset moves both, for tests.

CREATE OR REPLACE FUNCTION pulse.now() RETURNS timestamptz
  LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_clock_timestamp';
COMMENT ON FUNCTION pulse.now() IS
  'the time as pg_pulse sees it: the server''s clock, moved by pulse.clock_offset';

CREATE OR REPLACE FUNCTION pulse._transaction_now() RETURNS timestamptz
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_transaction_timestamp';
COMMENT ON FUNCTION pulse._transaction_now() IS
  'the start of the transaction, moved by pulse.clock_offset';

CREATE OR REPLACE FUNCTION pulse._live_now_us() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_live_now_us';
COMMENT ON FUNCTION pulse._live_now_us() IS 'the liveness clock, microseconds';

CREATE OR REPLACE FUNCTION pulse._live_base_us() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_live_base_us';
COMMENT ON FUNCTION pulse._live_base_us() IS
  'the liveness clock without pulse.clock_offset: what a tick stores';

CREATE OR REPLACE FUNCTION pulse._current_timeline() RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_current_timeline';
COMMENT ON FUNCTION pulse._current_timeline() IS 'the timeline that this server writes';

CREATE OR REPLACE FUNCTION pulse._longest_tick_us() RETURNS bigint
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_longest_tick_us';
COMMENT ON FUNCTION pulse._longest_tick_us() IS
  'by how much the liveness clock advances at most between two ticks';

-- Stores how far the clock has come, when the last tick is old enough, and answers how much time
-- was left out since then (an outage, a step of the wall clock). The row is any that nobody holds:
-- all rows are taken only while eight sweeps at once sit in open transactions. It is ahead of every
-- other, if by a microsecond: among equals a tick from before the wall clock was turned back would
-- win, and the clock would stand until that time comes again.
CREATE OR REPLACE FUNCTION pulse._tick() RETURNS interval
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest pulse.clock;
  live_us bigint := pulse._live_base_us();
  elapsed interval;
BEGIN
  SELECT * INTO newest FROM pulse.clock ORDER BY vt_us DESC, last_tick DESC LIMIT 1;
  elapsed := clock_timestamp() - newest.last_tick;
  IF newest.timeline = pulse._current_timeline()
     AND elapsed BETWEEN interval '0' AND pulse._interval(pulse._longest_tick_us() / 4) THEN
    RETURN interval '0';
  END IF;
  UPDATE pulse.clock
     SET vt_us = greatest(live_us, newest.vt_us + 1),
         last_tick = clock_timestamp(),
         timeline = pulse._current_timeline()
   WHERE slot = (SELECT c.slot FROM pulse.clock AS c
                  ORDER BY c.vt_us, c.slot LIMIT 1 FOR UPDATE SKIP LOCKED);
  RETURN greatest(elapsed - pulse._interval(live_us - newest.vt_us), interval '0');
END $$;
COMMENT ON FUNCTION pulse._tick() IS
  'advances the liveness clock; returns the time that it left out since the last tick';
