-- Settling: each due time of a schedule is settled once, in the transaction that moves the schedule
-- past the due time: by a job, or by a count. Sweeps settle. Sweeps step over locked rows and keys,
-- and try again a moment later.

-- A due time of the interval is anchor + n * every; the anchor itself is none.
CREATE OR REPLACE FUNCTION pulse_internal.due_times(
    rule pulse.schedule, after timestamptz, until timestamptz, max_times int) RETURNS timestamptz[]
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  step_us numeric;
  past numeric;
  last numeric;
BEGIN
  IF rule.cron IS NOT NULL THEN
    RETURN pulse_internal.cron_times(rule.cron, rule.time_zone, after, until, max_times);
  END IF;
  step_us := pulse_internal.us(rule.every);
  past := greatest(floor(extract(epoch FROM after - rule.anchor) * 1000000 / step_us), 0);
  IF isfinite(until) THEN
    last := floor(extract(epoch FROM until - rule.anchor) * 1000000 / step_us);
  END IF;
  RETURN ARRAY(
    SELECT rule.anchor + make_interval(secs => (n * step_us / 1000000)::float8)
      FROM generate_series(past + 1, least(past + max_times, last)) AS n);
END $$;
COMMENT ON FUNCTION pulse_internal.due_times(pulse.schedule, timestamptz, timestamptz, int) IS
  'Returns the first due times of a schedule that are later than after and not later than until.';

-- Settles one due time in the row, which the caller stores.
CREATE OR REPLACE FUNCTION pulse_internal.settle_due(
    INOUT rule pulse.schedule, due timestamptz, is_missed boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  older pulse.job;
BEGIN
  rule.last_due := due;
  IF is_missed THEN
    rule.missed_count := rule.missed_count + 1;
    RETURN;
  END IF;
  IF rule.overlap <> 'allow' AND rule.last_job_id IS NOT NULL THEN
    older := pulse_internal.overlapping_job(rule);
  END IF;
  IF older.id IS NULL THEN
    rule.last_job_id := pulse_internal.add_scheduled(rule, due);
  ELSIF rule.overlap = 'skip' THEN
    rule.overlapped_count := rule.overlapped_count + 1;
  ELSE
    rule.last_job_id := pulse_internal.replace_scheduled(rule, due, older);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.settle_due(pulse.schedule, timestamptz, boolean) IS
  'Adds the job of a due time, or counts the due time, by the rules of the schedule.';

CREATE OR REPLACE FUNCTION pulse_internal.is_missed(
    rule pulse.schedule, due timestamptz, is_last boolean, moment timestamptz)
  RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE rule.missed
    WHEN 'all' THEN due < moment - rule.missed_for AND pulse_internal.is_late(due, moment)
    WHEN 'once' THEN NOT is_last
    ELSE NOT is_last OR pulse_internal.is_late(due, moment) END;
END $$;
COMMENT ON FUNCTION pulse_internal.is_missed(
  pulse.schedule, timestamptz, boolean, timestamptz) IS
  'Returns whether a due time gets no job at this moment; is_last: no later one has fallen due.';

-- The next due time is the first after the last settled due time, never computed from the clock. A
-- schedule that no sweep has settled for long is settled in several steps.
CREATE OR REPLACE FUNCTION pulse_internal.settle(rule pulse.schedule, moment timestamptz)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  step CONSTANT int := 1000;
  dues timestamptz[] := ARRAY[rule.next_due];
  following timestamptz := pulse_internal.due_after(rule, rule.next_due);
  due timestamptz;
BEGIN
  IF following <= moment THEN
    dues := rule.next_due || pulse_internal.due_times(rule, rule.next_due, moment, step - 1);
    following := pulse_internal.due_after(rule, dues[cardinality(dues)]);
  END IF;
  FOREACH due IN ARRAY dues LOOP
    rule := pulse_internal.settle_due(rule, due, pulse_internal.is_missed(
      rule, due, due = dues[cardinality(dues)] AND following > moment, moment));
  END LOOP;
  PERFORM pulse_internal.move_schedule(rule, following);
  RETURN cardinality(dues);
END $$;
COMMENT ON FUNCTION pulse_internal.settle(pulse.schedule, timestamptz) IS
  'Settles the due times of a locked schedule up to a moment, at most 1,000, and returns how many.';

CREATE OR REPLACE FUNCTION pulse_internal.move_schedule(
    rule pulse.schedule, following timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  UPDATE pulse.schedule AS s
     SET next_due = coalesce(following, s.next_due), last_due = rule.last_due,
         last_job_id = rule.last_job_id, missed_count = rule.missed_count,
         overlapped_count = rule.overlapped_count, last_error = rule.last_error,
         last_error_at = rule.last_error_at,
         -- A rule that is never due again cannot move on.
         paused = s.paused OR following IS NULL
   WHERE s.name = rule.name;
END $$;
COMMENT ON FUNCTION pulse_internal.move_schedule(pulse.schedule, timestamptz) IS
  'Stores the changes of a settling in a schedule. A schedule without a following due time is '
  'paused.';

-- A refused job costs its due time only. A rule or zone that the server has ceased to know pauses
-- the schedule.
CREATE OR REPLACE FUNCTION pulse_internal.settle_refused(rule pulse.schedule, error text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  following timestamptz;
BEGIN
  rule.last_error := error;
  rule.last_error_at := rule.next_due;
  BEGIN
    following := pulse_internal.due_after(rule, rule.next_due);
    rule := pulse_internal.settle_due(rule, rule.next_due, true);
  EXCEPTION WHEN SQLSTATE 'PU004' THEN
    rule.last_error := SQLERRM;
  END;
  PERFORM pulse_internal.move_schedule(rule, following);
END $$;
COMMENT ON FUNCTION pulse_internal.settle_refused(pulse.schedule, text) IS
  'Counts the next due time of a schedule as missed and keeps the error, because the job was '
  'refused.';

CREATE OR REPLACE FUNCTION pulse_internal.settle_alone(
    rule pulse.schedule, moment timestamptz, OUT settled int, OUT error text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  settled := pulse_internal.settle(rule, moment);
EXCEPTION
  WHEN SQLSTATE 'PU103' OR lock_not_available OR deadlock_detected OR insufficient_resources THEN
    settled := 0;
  WHEN OTHERS OR assert_failure THEN
    BEGIN
      settled := 1;
      PERFORM pulse_internal.settle_refused(rule, SQLERRM);
    EXCEPTION WHEN OTHERS OR assert_failure THEN
      IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      settled := 0;
      error := format('schedule %s: %s', rule.name, SQLERRM);
    END;
END $$;
COMMENT ON FUNCTION pulse_internal.settle_alone(pulse.schedule, timestamptz) IS
  'Settles one schedule so that its error undoes no other change; returns how many due times, and '
  'the error where the change of its row raises one.';

-- Without a savepoint for each schedule; after an error one by one. One at least is settled.
CREATE OR REPLACE FUNCTION pulse_internal.settle_batch(
    rules pulse.schedule[], moment timestamptz, ends timestamptz,
    OUT settled int, OUT errors text[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  rule pulse.schedule;
  alone record;
BEGIN
  settled := 0;
  BEGIN
    FOREACH rule IN ARRAY rules LOOP
      settled := settled + pulse_internal.settle(rule, moment);
      EXIT WHEN clock_timestamp() >= ends;
    END LOOP;
  EXCEPTION WHEN OTHERS OR assert_failure THEN
    settled := -1;
  END;
  IF settled < 0 THEN
    settled := 0;
    FOREACH rule IN ARRAY rules LOOP
      alone := pulse_internal.settle_alone(rule, moment);
      settled := settled + alone.settled;
      IF alone.error IS NOT NULL THEN
        errors := errors || alone.error::text;
      END IF;
      EXIT WHEN settled > 0 AND clock_timestamp() >= ends;
    END LOOP;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.settle_batch(pulse.schedule[], timestamptz, timestamptz) IS
  'Settles locked schedules until that time; returns how many due times, and the errors that '
  'stay.';

-- Due times under claims = off are neither fired nor counted. In a copy the rows stay as the copy
-- got them; adoption starts the copy's schedules from then.
CREATE OR REPLACE FUNCTION pulse_internal.may_settle(moment timestamptz) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  IF pulse_internal.is_settling() THEN
    RETURN true;
  ELSIF NOT pulse_internal.is_foreign() THEN
    UPDATE pulse.schedule AS s SET next_due = pulse_internal.due_after(s, moment)
     WHERE s.name IN (SELECT d.name FROM pulse.schedule AS d
                       WHERE NOT d.paused AND d.next_due <= moment
                         AND pulse_internal.zone_name(d.time_zone) IS NOT NULL
                       ORDER BY d.next_due, d.name LIMIT 1000
                         FOR UPDATE SKIP LOCKED);
  END IF;
  RETURN false;
END $$;
COMMENT ON FUNCTION pulse_internal.may_settle(timestamptz) IS
  'Returns whether this server settles schedules. While pulse.claims is off the call moves the '
  'schedules past the moment.';

-- One probe of the index. Due times that crowd share a sweep, and a later sweep checks again the
-- schedules that another transaction holds.
CREATE OR REPLACE FUNCTION pulse_internal.note_schedules(after timestamptz = '-infinity')
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  earliest timestamptz := (SELECT s.next_due FROM pulse.schedule AS s
                            WHERE NOT s.paused AND s.next_due > after
                            ORDER BY s.next_due, s.name LIMIT 1);
BEGIN
  IF earliest IS NOT NULL THEN
    PERFORM pulse_internal.note_sweep_due(greatest(earliest, pulse.now() + interval '20 ms'));
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.note_schedules(timestamptz) IS
  'Requests a sweep at the least due time of all schedules that comes after that time.';

-- The function first locks the rows of a batch, so that two sweeps share the work. Jobs of due
-- times belong to no trace, least of all to the trace of the session that happens to sweep.
CREATE OR REPLACE FUNCTION pulse_internal.settle_schedules(ends timestamptz) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET pulse.traceparent = '' AS $$
DECLARE
  batch CONSTANT int := 100;
  moment CONSTANT timestamptz := pulse.now();
  rules pulse.schedule[];
  last_rule pulse.schedule;
  batch_done record;
  settled int := 0;
  errors text[];
BEGIN
  LOCK TABLE pulse.schedule IN ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM pulse.schedule AS s WHERE NOT s.paused AND s.next_due <= moment)
     OR pulse_internal.may_settle(moment) THEN
    LOOP
      rules := ARRAY(
        SELECT s FROM pulse.schedule AS s
         WHERE NOT s.paused AND s.next_due <= moment
           AND (last_rule.name IS NULL
                OR (s.next_due, s.name) > (last_rule.next_due, last_rule.name))
         ORDER BY s.next_due, s.name LIMIT batch
           FOR UPDATE SKIP LOCKED);
      EXIT WHEN cardinality(rules) = 0;
      batch_done := pulse_internal.settle_batch(rules, moment, ends);
      settled := settled + batch_done.settled;
      errors := errors || batch_done.errors;
      last_rule := rules[cardinality(rules)];
      EXIT WHEN cardinality(rules) < batch OR clock_timestamp() >= ends;
    END LOOP;
    PERFORM pulse_internal.warn_of_refused(errors);
    -- A schedule whose change raises an error is tried again by the interval.
    PERFORM pulse_internal.note_schedules(
      CASE WHEN errors IS NULL THEN '-infinity' ELSE moment END);
  END IF;
  -- Where other transactions hold all due schedules, a call at once gains nothing.
  RETURN settled > 0
    AND EXISTS (SELECT FROM pulse.schedule AS s WHERE NOT s.paused AND s.next_due <= moment);
END $$;
COMMENT ON FUNCTION pulse_internal.settle_schedules(timestamptz) IS
  'Settles the schedules that are due, until that time. Returns whether the call has settled some '
  'due times and left others.';
