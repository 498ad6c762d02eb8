-- Rates and times per task and per queue. The commits of claims and ends count in shared memory,
-- in periods of 10 seconds: extension/counters. Sweeps add the minutes that are over to
-- pulse.counter. Views read both, so each count is seen at once, and once.

COMMENT ON TABLE pulse.counter IS
  'Attempts by outcome, per minute for an hour and per hour for a day. Not dumped.';
COMMENT ON COLUMN pulse.counter.span IS 'minute or hour';
COMMENT ON COLUMN pulse.counter.kind IS 'task or queue';
COMMENT ON COLUMN pulse.counter.began IS 'When the minute or hour began';
COMMENT ON COLUMN pulse.counter.name IS
  'Name of the task or queue; empty for all that found no counter';
COMMENT ON COLUMN pulse.counter.started IS 'Attempts that started';
COMMENT ON COLUMN pulse.counter.completed IS 'Attempts that completed the job';
COMMENT ON COLUMN pulse.counter.failed IS 'Attempts that ended with a failure of the job for good';
COMMENT ON COLUMN pulse.counter.retried IS 'Attempts that failed or were lost; the job runs again';
COMMENT ON COLUMN pulse.counter.quarantined IS 'Attempts that ended with the quarantine of the job';
COMMENT ON COLUMN pulse.counter.cancelled IS 'Attempts of jobs that were cancelled meanwhile';
COMMENT ON COLUMN pulse.counter.returned IS 'Attempts that were released or snoozed';
COMMENT ON COLUMN pulse.counter.waits IS
  'Attempts that started, by the time since the attempt was due: four buckets per octave from 1 '
  'ms on';
COMMENT ON COLUMN pulse.counter.runs IS 'Attempts that ended, by how long they ran';
COMMENT ON FUNCTION pulse_internal.add_counts(bigint[], int[]) IS
  'Adds a histogram to the sums of others.';
COMMENT ON AGGREGATE pulse_internal.sum_counts(int[]) IS 'Adds histograms.';

CREATE OR REPLACE FUNCTION pulse_internal.percentile(sums bigint[], part float8) RETURNS interval
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_percentile';
COMMENT ON FUNCTION pulse_internal.percentile(bigint[], float8) IS
  'Returns a percentile of a histogram, within 12.5 % from 1 ms to 32 hours; NULL for an empty '
  'one.';

CREATE OR REPLACE FUNCTION pulse_internal.bucket_begin_us(bucket bigint) RETURNS bigint
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_bucket_begin_us';
COMMENT ON FUNCTION pulse_internal.bucket_begin_us(bigint) IS
  'Returns the shortest duration of a bucket of histograms, numbered from 1, in microseconds; '
  'NULL beyond the last bucket.';

CREATE OR REPLACE FUNCTION pulse_internal.has_counters() RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_has_counters';
COMMENT ON FUNCTION pulse_internal.has_counters() IS
  'Returns whether this server counts, because it preloads the library.';

CREATE OR REPLACE FUNCTION pulse_internal.counted()
  RETURNS TABLE (
    kind text, name text, began timestamptz, started bigint, completed bigint, failed bigint,
    retried bigint, quarantined bigint, cancelled bigint, returned bigint, waits int[], runs int[])
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 200 AS 'MODULE_PATHNAME', 'pulse_counted';
COMMENT ON FUNCTION pulse_internal.counted() IS
  'Returns the periods of 10 seconds in shared memory: the last two minutes.';

CREATE OR REPLACE FUNCTION pulse_internal.begin_adding() RETURNS timestamptz
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_begin_adding';
COMMENT ON FUNCTION pulse_internal.begin_adding() IS
  'Returns the last minute that is over, and keeps other sessions from adding the same minute. '
  'NULL when the minute was added, or another session adds it now.';

CREATE OR REPLACE FUNCTION pulse_internal.completed_since(since timestamptz) RETURNS bigint
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(sum(c.completed), 0)::bigint FROM pulse_internal.counted() AS c
   WHERE c.kind = 'task' AND c.began >= date_bin('10 s', since, '2000-01-01 00:00Z')
  HAVING pulse_internal.has_counters() AND NOT pg_is_in_recovery();
$$;
COMMENT ON FUNCTION pulse_internal.completed_since(timestamptz) IS
  'Returns how many jobs completed since a moment of the last two minutes; NULL where the server '
  'does not count.';

-- Minutes are added in order. A count that arrives after its minute was added is left out; the
-- pause before a minute is added makes late counts rare.
CREATE OR REPLACE FUNCTION pulse_internal.added_until(kind text) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  RETURN coalesce(
    (SELECT c.began + interval '1 minute' FROM pulse.counter AS c
      WHERE c.span = 'minute' AND c.kind = added_until.kind AND c.began <= pulse.now()
      ORDER BY c.began DESC LIMIT 1), '-infinity');
END $$;
COMMENT ON FUNCTION pulse_internal.added_until(text) IS
  'Returns the end of the last minute added; -infinity where the table has no minute.';

-- New names of an hour are many only where producers make up names without end. Then counts of
-- further names are added without a name, so that the table stays small.
CREATE OR REPLACE FUNCTION pulse_internal.counter_name(
    kind text, name text, hour timestamptz, max_names int)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  RETURN CASE WHEN EXISTS (
    SELECT FROM pulse.counter AS c
     WHERE c.span = 'hour' AND c.kind = counter_name.kind AND c.began = counter_name.hour
    OFFSET max_names)
    AND NOT EXISTS (
    SELECT FROM pulse.counter AS c
     WHERE c.span = 'hour' AND c.kind = counter_name.kind AND c.began = counter_name.hour
       AND c.name = counter_name.name)
    THEN '' ELSE counter_name.name END;
END $$;
COMMENT ON FUNCTION pulse_internal.counter_name(text, text, timestamptz, int) IS
  'Returns the name under which an hour counts: empty for a new name when the hour has max_names.';

CREATE OR REPLACE FUNCTION pulse_internal.add_minutes(kind text, until timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET jit = off AS $$
DECLARE
  since timestamptz := pulse_internal.added_until(add_minutes.kind);
BEGIN
  WITH ended AS (
    SELECT c.*, date_bin('1 minute', c.began, '2000-01-01 00:00Z') AS minute,
           pulse_internal.counter_name(
             c.kind, c.name, date_bin('1 hour', c.began, '2000-01-01 00:00Z'), 1000) AS known_name
      FROM pulse_internal.counted() AS c
     WHERE c.kind = add_minutes.kind AND c.began >= since AND c.began < add_minutes.until
  ), added AS (
    INSERT INTO pulse.counter
    SELECT 'minute', e.kind, e.minute, e.known_name, sum(e.started), sum(e.completed),
           sum(e.failed), sum(e.retried), sum(e.quarantined), sum(e.cancelled), sum(e.returned),
           pulse_internal.sum_counts(e.waits)::int[], pulse_internal.sum_counts(e.runs)::int[]
      FROM ended AS e GROUP BY e.kind, e.minute, e.known_name
    RETURNING *
  )
  INSERT INTO pulse.counter AS h
  SELECT 'hour', a.kind, date_bin('1 hour', a.began, '2000-01-01 00:00Z'), a.name, sum(a.started),
         sum(a.completed), sum(a.failed), sum(a.retried), sum(a.quarantined), sum(a.cancelled),
         sum(a.returned), pulse_internal.sum_counts(a.waits)::int[],
         pulse_internal.sum_counts(a.runs)::int[]
    FROM added AS a GROUP BY 2, 3, 4
  ON CONFLICT ON CONSTRAINT counter_pkey DO UPDATE
     SET started = h.started + excluded.started, completed = h.completed + excluded.completed,
         failed = h.failed + excluded.failed, retried = h.retried + excluded.retried,
         quarantined = h.quarantined + excluded.quarantined,
         cancelled = h.cancelled + excluded.cancelled, returned = h.returned + excluded.returned,
         waits = pulse_internal.add_counts(h.waits::bigint[], excluded.waits)::int[],
         runs = pulse_internal.add_counts(h.runs::bigint[], excluded.runs)::int[];
  DELETE FROM pulse.counter AS o
   WHERE o.kind = add_minutes.kind
     AND (o.span = 'minute' AND o.began < until - interval '1 hour'
          OR o.span = 'hour' AND o.began < until - interval '25 hours');
END $$;
COMMENT ON FUNCTION pulse_internal.add_minutes(text, timestamptz) IS
  'Adds the counts of shared memory from before a minute, and deletes the rows that no view reads '
  'any more.';

CREATE OR REPLACE FUNCTION pulse_internal.add_counters() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  minute timestamptz := pulse_internal.begin_adding();
BEGIN
  IF minute IS NOT NULL THEN
    LOCK TABLE pulse.counter IN ROW EXCLUSIVE MODE;
    PERFORM pulse_internal.add_minutes('task', minute + interval '1 minute');
    PERFORM pulse_internal.add_minutes('queue', minute + interval '1 minute');
  END IF;
  PERFORM pulse_internal.recount_if_read();
END $$;
COMMENT ON FUNCTION pulse_internal.add_counters() IS
  'Adds the minutes that are over to pulse.counter, once a minute and without a wait, and '
  'starts the recount that is due where sessions read depths.';

CREATE OR REPLACE FUNCTION pulse_internal.rate_parts(kind text, moment timestamptz)
  RETURNS TABLE (
    period text, since timestamptz, name text, started bigint, completed bigint, failed bigint,
    retried bigint, quarantined bigint, cancelled bigint, returned bigint, waits int[], runs int[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  added CONSTANT timestamptz := pulse_internal.added_until(rate_parts.kind);
BEGIN
  RETURN QUERY
  WITH span (period, of_table, since) AS (VALUES
    ('minute', NULL, date_bin('10 s', moment - interval '1 minute', '2000-01-01 00:00Z')),
    ('hour', 'minute', date_bin('1 minute', moment - interval '1 hour', '2000-01-01 00:00Z')),
    ('day', 'hour', date_bin('1 hour', moment - interval '1 day', '2000-01-01 00:00Z'))
  )
  SELECT p.period, p.since, c.name, c.started, c.completed, c.failed, c.retried, c.quarantined,
         c.cancelled, c.returned, c.waits, c.runs
    FROM span AS p JOIN pulse.counter AS c
         ON c.span = p.of_table AND c.kind = rate_parts.kind AND c.began >= p.since
  UNION ALL
  SELECT p.period, p.since, c.name, c.started, c.completed, c.failed, c.retried, c.quarantined,
         c.cancelled, c.returned, c.waits, c.runs
    FROM pulse_internal.counted() AS c JOIN span AS p
         ON c.began >= p.since AND (p.of_table IS NULL OR c.began >= added)
   WHERE c.kind = rate_parts.kind;
END $$;
COMMENT ON FUNCTION pulse_internal.rate_parts(text, timestamptz) IS
  'Returns the counts of each name in the last minute, hour and day, in parts to be added.';

CREATE OR REPLACE FUNCTION pulse.rates(kind text)
  RETURNS TABLE (
    name text, period text, since timestamptz, started bigint, completed bigint, failed bigint,
    retried bigint, quarantined bigint, cancelled bigint, returned bigint, per_second float8,
    wait_p50 interval, wait_p95 interval, wait_p99 interval, run_p50 interval, run_p95 interval,
    run_p99 interval)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  IF (rates.kind IN ('task', 'queue')) IS NOT TRUE THEN
    RAISE EXCEPTION 'kind is %', coalesce(quote_literal(rates.kind), 'NULL') USING
      ERRCODE = 'PU004', HINT = 'Use task or queue.';
  END IF;
  RETURN QUERY
  WITH total AS (
    SELECT p.name, p.period, p.since, sum(p.started)::bigint AS started,
           sum(p.completed)::bigint AS completed, sum(p.failed)::bigint AS failed,
           sum(p.retried)::bigint AS retried, sum(p.quarantined)::bigint AS quarantined,
           sum(p.cancelled)::bigint AS cancelled, sum(p.returned)::bigint AS returned,
           pulse_internal.sum_counts(p.waits) AS waits, pulse_internal.sum_counts(p.runs) AS runs
      FROM pulse_internal.rate_parts(rates.kind, moment) AS p GROUP BY p.name, p.period, p.since
  )
  SELECT nullif(t.name, ''), t.period, t.since, t.started, t.completed, t.failed, t.retried,
         t.quarantined, t.cancelled, t.returned,
         (t.completed + t.failed + t.retried + t.quarantined + t.cancelled + t.returned)
           / extract(epoch FROM moment - t.since)::float8,
         pulse_internal.percentile(t.waits, 0.5), pulse_internal.percentile(t.waits, 0.95),
         pulse_internal.percentile(t.waits, 0.99), pulse_internal.percentile(t.runs, 0.5),
         pulse_internal.percentile(t.runs, 0.95), pulse_internal.percentile(t.runs, 0.99)
    FROM total AS t;
END $$;
COMMENT ON FUNCTION pulse.rates(text) IS
  'Returns the outcomes of attempts per task or per queue. kind: task or queue. The views '
  'task_rates and queue_rates describe the columns. Raises PU004 for another kind.';

CREATE OR REPLACE VIEW pulse.task_rates AS
  SELECT r.name AS identifier, r.period, r.since, r.started, r.completed, r.failed, r.retried,
         r.quarantined, r.cancelled, r.returned, r.per_second, r.wait_p50, r.wait_p95, r.wait_p99,
         r.run_p50, r.run_p95, r.run_p99
    FROM pulse.rates('task') AS r;
COMMENT ON VIEW pulse.task_rates IS
  'Outcomes of attempts per task in the last minute, hour and day, and how long the attempts '
  'waited and ran. Without preloading the view has no row.';
COMMENT ON COLUMN pulse.task_rates.identifier IS
  'Name of the task; NULL for all that found no counter';
COMMENT ON COLUMN pulse.task_rates.period IS 'minute, hour or day';
COMMENT ON COLUMN pulse.task_rates.since IS
  'The row counts from then to now: 60 to 70 seconds, 60 to 61 minutes, 24 to 25 hours';
COMMENT ON COLUMN pulse.task_rates.started IS 'Attempts that started';
COMMENT ON COLUMN pulse.task_rates.completed IS 'Attempts that completed the job';
COMMENT ON COLUMN pulse.task_rates.failed IS
  'Attempts that ended with a failure of the job for good';
COMMENT ON COLUMN pulse.task_rates.retried IS
  'Attempts that failed or were lost; the job runs again';
COMMENT ON COLUMN pulse.task_rates.quarantined IS
  'Attempts that ended with the quarantine of the job';
COMMENT ON COLUMN pulse.task_rates.cancelled IS 'Attempts of jobs that were cancelled meanwhile';
COMMENT ON COLUMN pulse.task_rates.returned IS 'Attempts that were released or snoozed';
COMMENT ON COLUMN pulse.task_rates.per_second IS 'Attempts that ended, per second';
COMMENT ON COLUMN pulse.task_rates.wait_p50 IS
  'Half of the attempts that started had been due for less; percentiles are within 12.5 %';
COMMENT ON COLUMN pulse.task_rates.wait_p95 IS '95 % had been due for less';
COMMENT ON COLUMN pulse.task_rates.wait_p99 IS '99 % had been due for less';
COMMENT ON COLUMN pulse.task_rates.run_p50 IS 'Half of the attempts that ended ran for less';
COMMENT ON COLUMN pulse.task_rates.run_p95 IS '95 % ran for less';
COMMENT ON COLUMN pulse.task_rates.run_p99 IS '99 % ran for less';

CREATE OR REPLACE VIEW pulse.queue_rates AS
  SELECT r.name AS queue_name, r.period, r.since, r.started, r.completed, r.failed, r.retried,
         r.quarantined, r.cancelled, r.returned, r.per_second, r.wait_p50, r.wait_p95, r.wait_p99,
         r.run_p50, r.run_p95, r.run_p99
    FROM pulse.rates('queue') AS r;
COMMENT ON VIEW pulse.queue_rates IS
  'The same as task_rates, per queue. Jobs without a queue are in no row.';
COMMENT ON COLUMN pulse.queue_rates.queue_name IS
  'Name of the queue; NULL for all that found no counter';
COMMENT ON COLUMN pulse.queue_rates.period IS 'minute, hour or day';
COMMENT ON COLUMN pulse.queue_rates.since IS 'The row counts from then to now';
COMMENT ON COLUMN pulse.queue_rates.started IS 'Attempts that started';
COMMENT ON COLUMN pulse.queue_rates.completed IS 'Attempts that completed the job';
COMMENT ON COLUMN pulse.queue_rates.failed IS
  'Attempts that ended with a failure of the job for good';
COMMENT ON COLUMN pulse.queue_rates.retried IS
  'Attempts that failed or were lost; the job runs again';
COMMENT ON COLUMN pulse.queue_rates.quarantined IS
  'Attempts that ended with the quarantine of the job';
COMMENT ON COLUMN pulse.queue_rates.cancelled IS 'Attempts of jobs that were cancelled meanwhile';
COMMENT ON COLUMN pulse.queue_rates.returned IS 'Attempts that were released or snoozed';
COMMENT ON COLUMN pulse.queue_rates.per_second IS 'Attempts that ended, per second';
COMMENT ON COLUMN pulse.queue_rates.wait_p50 IS
  'Half of the attempts that started had been due for less';
COMMENT ON COLUMN pulse.queue_rates.wait_p95 IS '95 % had been due for less';
COMMENT ON COLUMN pulse.queue_rates.wait_p99 IS '99 % had been due for less';
COMMENT ON COLUMN pulse.queue_rates.run_p50 IS 'Half of the attempts that ended ran for less';
COMMENT ON COLUMN pulse.queue_rates.run_p95 IS '95 % ran for less';
COMMENT ON COLUMN pulse.queue_rates.run_p99 IS '99 % ran for less';

CREATE OR REPLACE FUNCTION pulse_internal.kind_of_rates(identifier text, queue_name text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF identifier IS NOT NULL AND queue_name IS NOT NULL THEN
    RAISE EXCEPTION 'identifier and queue_name exclude each other' USING
      ERRCODE = 'PU004', HINT = 'Give one of them, or none for all tasks together.';
  END IF;
  RETURN CASE WHEN queue_name IS NULL THEN 'task' ELSE 'queue' END;
END $$;
COMMENT ON FUNCTION pulse_internal.kind_of_rates(text, text) IS
  'Returns whether rates of a task or of a queue are asked for. Raises PU004 for both.';

CREATE OR REPLACE FUNCTION pulse.rate_history(identifier text = NULL, queue_name text = NULL)
  RETURNS TABLE (
    minute timestamptz, started bigint, completed bigint, failed bigint, retried bigint,
    quarantined bigint, cancelled bigint, returned bigint, wait_p50 interval, wait_p95 interval,
    run_p50 interval, run_p95 interval)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 61
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  wanted_kind CONSTANT text := pulse_internal.kind_of_rates(identifier, queue_name);
  wanted CONSTANT text := coalesce(rate_history.queue_name, rate_history.identifier);
  present CONSTANT timestamptz := date_bin('1 minute', pulse.now(), '2000-01-01 00:00Z');
  added CONSTANT timestamptz := pulse_internal.added_until(wanted_kind);
BEGIN
  RETURN QUERY
  WITH part AS (
    SELECT c.began, c.name, c.started, c.completed, c.failed, c.retried, c.quarantined,
           c.cancelled, c.returned, c.waits, c.runs
      FROM pulse.counter AS c
     WHERE c.span = 'minute' AND c.kind = wanted_kind
       AND c.began >= present - interval '1 hour'
    UNION ALL
    SELECT date_bin('1 minute', c.began, '2000-01-01 00:00Z'), c.name, c.started, c.completed,
           c.failed, c.retried, c.quarantined, c.cancelled, c.returned, c.waits, c.runs
      FROM pulse_internal.counted() AS c
     WHERE c.kind = wanted_kind AND c.began >= added
  ), total AS (
    SELECT p.began, sum(p.started)::bigint AS started, sum(p.completed)::bigint AS completed,
           sum(p.failed)::bigint AS failed, sum(p.retried)::bigint AS retried,
           sum(p.quarantined)::bigint AS quarantined, sum(p.cancelled)::bigint AS cancelled,
           sum(p.returned)::bigint AS returned, pulse_internal.sum_counts(p.waits) AS waits,
           pulse_internal.sum_counts(p.runs) AS runs
      FROM part AS p WHERE wanted IS NULL OR p.name = wanted GROUP BY p.began
  )
  SELECT m.began, coalesce(t.started, 0), coalesce(t.completed, 0), coalesce(t.failed, 0),
         coalesce(t.retried, 0), coalesce(t.quarantined, 0), coalesce(t.cancelled, 0),
         coalesce(t.returned, 0), pulse_internal.percentile(t.waits, 0.5),
         pulse_internal.percentile(t.waits, 0.95), pulse_internal.percentile(t.runs, 0.5),
         pulse_internal.percentile(t.runs, 0.95)
    FROM generate_series(present - interval '1 hour', present, interval '1 minute') AS m (began)
    LEFT JOIN total AS t ON t.began = m.began
   WHERE pulse_internal.has_counters()
   ORDER BY m.began;
END $$;
COMMENT ON FUNCTION pulse.rate_history(text, text) IS
  'Returns the outcomes of attempts in each minute of the last hour, the present minute last, for '
  'a chart: of a task, of a queue, or of all tasks. Without preloading the function returns no '
  'row. Raises PU004 for both a task and a queue.';

CREATE OR REPLACE FUNCTION pulse.rate_histogram(
    identifier text = NULL, queue_name text = NULL, period text = 'hour')
  RETURNS TABLE (at_least interval, below interval, waits bigint, runs bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 40
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  wanted_kind CONSTANT text := pulse_internal.kind_of_rates(identifier, queue_name);
  wanted CONSTANT text := coalesce(rate_histogram.queue_name, rate_histogram.identifier);
BEGIN
  IF (rate_histogram.period IN ('minute', 'hour', 'day')) IS NOT TRUE THEN
    RAISE EXCEPTION 'period is %', coalesce(quote_literal(rate_histogram.period), 'NULL') USING
      ERRCODE = 'PU004', HINT = 'Use minute, hour or day.';
  END IF;
  RETURN QUERY
  WITH total AS (
    SELECT pulse_internal.sum_counts(p.waits) AS waits, pulse_internal.sum_counts(p.runs) AS runs
      FROM pulse_internal.rate_parts(wanted_kind, pulse.now()) AS p
     WHERE p.period = rate_histogram.period AND (wanted IS NULL OR p.name = wanted)
  ), bucket AS (
    SELECT b.number, coalesce(b.waits, 0) AS waits, coalesce(b.runs, 0) AS runs
      FROM total AS t, unnest(t.waits, t.runs) WITH ORDINALITY AS b (waits, runs, number)
  )
  SELECT pulse_internal.interval(pulse_internal.bucket_begin_us(b.number)),
         pulse_internal.interval(pulse_internal.bucket_begin_us(b.number + 1)), b.waits, b.runs
    FROM bucket AS b,
         (SELECT min(u.number) AS first, max(u.number) AS last
            FROM bucket AS u WHERE u.waits > 0 OR u.runs > 0) AS used
   WHERE b.number BETWEEN used.first AND used.last
   ORDER BY b.number;
END $$;
COMMENT ON FUNCTION pulse.rate_histogram(text, text, text) IS
  'Returns how long attempts of the last minute, hour or day waited and ran: of a task, of a '
  'queue, or of all tasks. A row counts the attempts of at least one duration and below another '
  'duration, which is NULL for the last bucket, from 32.6 hours on. Buckets are four per octave '
  'from 1 ms on; the function leaves out the empty buckets below the first and above the last '
  'count. Without preloading the function returns no row. Raises PU004 for both a task and a '
  'queue, and for another period.';
