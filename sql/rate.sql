-- Rates of levels: what a promotion would find, told without locks. extension/queue/rate.cpp has
-- the same rules, and charges.

COMMENT ON TABLE pulse.queue_rate IS
  'The tokens of levels with a rate, as the last promotion left them. Dumped.';
COMMENT ON COLUMN pulse.queue_rate.queue_name IS 'Name of the queue or level';
COMMENT ON COLUMN pulse.queue_rate.full_live_us IS
  'When it has all its tokens again if no job is claimed, in microseconds of the liveness clock';
COMMENT ON COLUMN pulse.queue_rate.opened IS
  'How many of its jobs were open then; those that are no longer so cost a token each';

CREATE OR REPLACE FUNCTION pulse_internal.check_rate(stored pulse.queue) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
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
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_rate(pulse.queue) IS
  'Raises PU004 for a rate that a queue cannot have.';

CREATE OR REPLACE FUNCTION pulse_internal.token_time(rate int, per interval, tokens bigint)
  RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
  RETURN ceil(tokens * (extract(epoch FROM coalesce(per, interval '1 s')) * 1000000)
              / rate)::bigint;
COMMENT ON FUNCTION pulse_internal.token_time(int, interval, bigint) IS
  'Returns in how many microseconds of the liveness clock a level gets so many tokens.';

CREATE OR REPLACE FUNCTION pulse_internal.open_within(level text) RETURNS bigint
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN (SELECT count(*) FROM pulse_internal.jobs_within(open_within.level) AS w
           WHERE w.state = 'ready');
END $$;
COMMENT ON FUNCTION pulse_internal.open_within(text) IS
  'Returns how many jobs of a level are open and not claimed.';

-- The token that a job more needs comes at next_token; NULL: it is there, or a claim frees it.
CREATE OR REPLACE FUNCTION pulse_internal.tokens_of(
    level text, rate int, per interval, burst int,
    OUT tokens bigint, OUT open bigint, OUT next_token timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  now_us bigint := pulse_internal.live_now_us();
  most CONSTANT int := coalesce(burst, rate);
  fill_us bigint := pulse_internal.token_time(rate, per, most);
  stored pulse.queue_rate;
  full_us bigint;
BEGIN
  open := pulse_internal.open_within(level);
  SELECT * INTO stored FROM pulse.queue_rate AS r WHERE r.queue_name = tokens_of.level;
  full_us := least(
    greatest(least(stored.full_live_us, now_us + fill_us), now_us) + pulse_internal.token_time(
      rate, per, greatest(coalesce(stored.opened, 0) - open, 0)), now_us + fill_us);
  tokens := floor((now_us + fill_us - full_us)::numeric * rate
                  / (extract(epoch FROM coalesce(per, interval '1 s')) * 1000000));
  IF tokens <= open AND open < most THEN
    next_token := pulse.now() + pulse_internal.interval(
      full_us + pulse_internal.token_time(rate, per, open + 1) - fill_us - now_us);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.tokens_of(text, int, interval, int) IS
  'Returns how many tokens a level has, how many of them its open jobs use, and when it gets the '
  'next one that it needs.';
