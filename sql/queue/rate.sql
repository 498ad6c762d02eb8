-- Rates of levels: extension/limit/rate.cpp has the rules of rates.

COMMENT ON TABLE pulse.queue_rate IS
  'The tokens of levels with a rate, as the last promotion left them. Dumped.';
COMMENT ON COLUMN pulse.queue_rate.queue_name IS 'Name of the queue or level';
COMMENT ON COLUMN pulse.queue_rate.full_live_us IS
  'When the level has all its tokens again if no job is claimed, in microseconds of the liveness '
  'clock';
COMMENT ON COLUMN pulse.queue_rate.opened IS
  'How many jobs of the level were open at the last promotion; each job no longer open costs a '
  'token';

CREATE OR REPLACE FUNCTION pulse_internal.check_rate(stored pulse.queue) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_number('rate', stored.rate, 1, 1000000);
  PERFORM pulse_internal.check_number('burst', stored.burst, 1, 1000000);
  IF extract(year FROM stored.per) <> 0 OR extract(month FROM stored.per) <> 0
     OR stored.per NOT BETWEEN interval '1 s' AND interval '366 days' THEN
    RAISE EXCEPTION 'per is %, out of range', stored.per USING
      ERRCODE = 'PU004', HINT = 'Use 1 second to 366 days; a day has 24 hours.';
  ELSIF stored.rate IS NULL AND (stored.per IS NOT NULL OR stored.burst IS NOT NULL) THEN
    RAISE EXCEPTION 'per and burst belong to a rate, and the queue has none' USING
      ERRCODE = 'PU004', HINT = 'Set rate too.';
  ELSIF coalesce(stored.burst, stored.rate)::numeric / stored.rate
          * pulse_internal.us(coalesce(stored.per, interval '1 s')) > 3e18 THEN
    -- The time in which all tokens come is counted in microseconds, in 64 bits.
    RAISE EXCEPTION 'burst is %, which takes more than 90000 years to come back', stored.burst USING
      ERRCODE = 'PU004', HINT = 'Use a smaller burst, a shorter per, or a higher rate.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_rate(pulse.queue) IS
  'Raises PU004 for a rate that a queue cannot have.';

CREATE OR REPLACE FUNCTION pulse_internal.tokens_of(
    level text, OUT tokens bigint, OUT open bigint, OUT next_token timestamptz)
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_tokens_of';
COMMENT ON FUNCTION pulse_internal.tokens_of(text) IS
  'Returns how many tokens a level has, how many of the tokens the open jobs use, and when the '
  'level gets the next token that it needs (NULL: a token is there, or a claim frees a token). '
  'NULL without a rate.';
