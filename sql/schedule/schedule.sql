-- Schedules: rules by which jobs are added at due times. sql/schedule/rule.sql checks a rule,
-- sql/schedule/settle.sql adds the jobs.

CREATE OR REPLACE FUNCTION pulse_internal.lock_schedule(name text) RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  stored pulse.schedule;
BEGIN
  LOCK TABLE pulse.schedule IN ROW EXCLUSIVE MODE;
  SELECT * INTO stored FROM pulse.schedule AS s WHERE s.name = lock_schedule.name FOR UPDATE;
  IF stored.name IS NULL THEN
    PERFORM pulse_internal.raise_unknown_schedule(lock_schedule.name);
  END IF;
  RETURN stored;
END $$;
COMMENT ON FUNCTION pulse_internal.lock_schedule(text) IS
  'Locks a schedule and returns it. Raises PU005 for an unknown schedule.';

CREATE OR REPLACE FUNCTION pulse_internal.raise_unknown_schedule(name text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'schedule % is not known', quote_nullable(name) USING
    ERRCODE = 'PU005', HINT = 'The view pulse.schedules lists the schedules.';
END $$;
COMMENT ON FUNCTION pulse_internal.raise_unknown_schedule(text) IS 'Raises PU005.';

-- Whatever the schedule has settled: a clock that once ran a year ahead must not silence a schedule
-- for a year.
CREATE OR REPLACE FUNCTION pulse_internal.start_schedule(INOUT rule pulse.schedule)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := pulse.now();
BEGIN
  rule.next_due := pulse_internal.due_after(rule, moment);
  IF rule.last_due >= rule.next_due THEN
    rule.last_due := NULL;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.start_schedule(pulse.schedule) IS
  'Returns a schedule whose next due time is the first from now.';

-- For a schedule that no longer settles passed due times; only where sweeps would count them.
CREATE OR REPLACE FUNCTION pulse_internal.count_passed(INOUT rule pulse.schedule)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := pulse.now();
  passed bigint;
  dues timestamptz[];
BEGIN
  IF rule.paused OR rule.next_due > moment OR NOT pulse_internal.is_settling()
     OR pulse_internal.zone_name(rule.time_zone) IS NULL THEN
    RETURN;
  END IF;
  IF rule.every IS NOT NULL THEN
    passed := floor(pulse_internal.us(moment - rule.next_due)::numeric
                    / pulse_internal.us(rule.every));
    rule.missed_count := rule.missed_count + passed + 1;
    rule.last_due :=
      rule.next_due + pulse_internal.interval(passed * pulse_internal.us(rule.every));
    rule.next_due := pulse_internal.due_after(rule, rule.last_due);
  ELSE
    WHILE coalesce(rule.next_due <= moment, false) LOOP
      dues := rule.next_due || pulse_internal.due_times(rule, rule.next_due, moment, 10000);
      rule.missed_count := rule.missed_count + cardinality(dues);
      rule.last_due := dues[cardinality(dues)];
      rule.next_due := pulse_internal.due_after(rule, rule.last_due);
    END LOOP;
  END IF;
  rule.next_due := coalesce(rule.next_due, rule.last_due);
END $$;
COMMENT ON FUNCTION pulse_internal.count_passed(pulse.schedule) IS
  'Counts the passed due times of a locked schedule as missed, unless the schedule is paused.';

-- Stores the values of the call; the row lock keeps a sweep from settling a due time meanwhile.
CREATE OR REPLACE FUNCTION pulse_internal.store_schedule(given pulse.schedule)
  RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  older pulse.schedule;
  is_other_rule boolean;
BEGIN
  LOCK TABLE pulse.schedule IN ROW EXCLUSIVE MODE;
  LOOP
    SELECT * INTO older FROM pulse.schedule AS s WHERE s.name = given.name FOR UPDATE;
    EXIT WHEN older.name IS NOT NULL;
    given.anchor := given.created_at;
    given.paused := coalesce(given.paused, false);
    IF given.paused THEN
      given.paused_at := given.updated_at;
      given.paused_by := pulse_internal.caller();
    END IF;
    given := pulse_internal.start_schedule(given);
    INSERT INTO pulse.schedule SELECT given.* ON CONFLICT DO NOTHING;
    IF FOUND THEN
      RETURN given;
    END IF;
  END LOOP;
  IF older.crontab_set IS DISTINCT FROM given.crontab_set THEN
    PERFORM pulse_internal.raise_other_owner(older);
  END IF;
  is_other_rule := (given.cron, given.every, given.time_zone)
    IS DISTINCT FROM (older.cron, older.every, older.time_zone);
  IF is_other_rule OR given.paused THEN
    older := pulse_internal.count_passed(older);
  END IF;
  given.created_at := older.created_at;
  given.anchor := CASE WHEN is_other_rule THEN given.updated_at ELSE older.anchor END;
  given.last_due := older.last_due;
  given.next_due := older.next_due;
  given.last_job_id := older.last_job_id;
  given.missed_count := older.missed_count;
  given.overlapped_count := older.overlapped_count;
  given.paused := coalesce(given.paused, older.paused);
  IF given.paused THEN
    given.paused_at := CASE WHEN older.paused THEN older.paused_at ELSE given.updated_at END;
    given.paused_by :=
      CASE WHEN older.paused THEN older.paused_by ELSE pulse_internal.caller() END;
  END IF;
  IF is_other_rule OR older.paused AND NOT given.paused THEN
    given := pulse_internal.start_schedule(given);
  END IF;
  UPDATE pulse.schedule AS s
     SET (identifier, cron, every, time_zone, payload, queue_name, max_attempts, priority, flags,
          job_key, job_key_mode, missed, missed_for, overlap, paused, anchor, next_due, last_due,
          missed_count, last_error, last_error_at, gone_at, paused_before, updated_at, added_by,
          paused_at, paused_by) =
         (given.identifier, given.cron, given.every, given.time_zone, given.payload,
          given.queue_name, given.max_attempts, given.priority, given.flags, given.job_key,
          given.job_key_mode, given.missed, given.missed_for, given.overlap, given.paused,
          given.anchor, given.next_due, given.last_due, given.missed_count, NULL, NULL, NULL, NULL,
          given.updated_at, given.added_by, given.paused_at, given.paused_by)
   WHERE s.name = given.name;
  RETURN given;
END $$;
COMMENT ON FUNCTION pulse_internal.store_schedule(pulse.schedule) IS
  'Stores a checked schedule and returns it. A schedule with an unchanged rule and zone keeps its '
  'phase.';

CREATE OR REPLACE FUNCTION pulse_internal.check_and_store(given pulse.schedule)
  RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_schedule(given);
  given.added_by := pulse_internal.asking_role();
  given.time_zone := pulse_internal.checked_zone(given.time_zone);
  -- A stored rule is not judged anew, because the next day of the rule may be more than eight years
  -- off.
  IF given.cron IS NOT NULL
     AND NOT EXISTS (SELECT FROM pulse.schedule AS s
                      WHERE s.name = given.name AND s.cron = given.cron
                        AND s.time_zone = given.time_zone) THEN
    PERFORM pulse_internal.check_cron(given.cron, given.time_zone, given.updated_at);
  END IF;
  RETURN pulse_internal.store_schedule(given);
END $$;
COMMENT ON FUNCTION pulse_internal.check_and_store(pulse.schedule) IS
  'Checks and stores a schedule of the role that calls. Raises PU004 for a value out of range, and '
  'for another crontab.';

CREATE OR REPLACE FUNCTION pulse_internal.schedule_as_owner(
    name text,
    identifier text,
    cron text,
    every interval,
    payload json,
    time_zone text,
    queue_name text,
    max_attempts int,
    priority int,
    flags text[],
    job_key text,
    job_key_mode text,
    missed text,
    missed_for interval,
    overlap text,
    paused boolean)
  RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  given pulse.schedule;
BEGIN
  SELECT name, identifier, cron, every, time_zone, payload, queue_name, max_attempts, priority,
         flags, job_key, CASE job_key_mode WHEN 'dedupe' THEN 'unsafe_dedupe' ELSE job_key_mode END,
         missed, coalesce(missed_for, interval '1 day'), overlap,
         paused, 0, 0, pulse.now(), pulse.now()
    INTO given.name, given.identifier, given.cron, given.every,
         given.time_zone, given.payload, given.queue_name, given.max_attempts, given.priority,
         given.flags, given.job_key, given.job_key_mode, given.missed,
         given.missed_for, given.overlap, given.paused,
         given.missed_count, given.overlapped_count, given.created_at, given.updated_at;
  given := pulse_internal.check_and_store(given);
  PERFORM pulse_internal.note_schedules();
  RETURN given;
END $$;
COMMENT ON FUNCTION pulse_internal.schedule_as_owner(
    text, text, text, interval, json, text, text, int, int, text[], text, text, text, interval,
    text, boolean) IS
  'The body of pulse.schedule().';

CREATE OR REPLACE FUNCTION pulse.schedule(
    name text,
    identifier text,
    cron text = NULL,
    every interval = NULL,
    payload json = NULL,
    time_zone text = NULL,
    queue_name text = NULL,
    max_attempts int = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key text = NULL,
    job_key_mode text = 'replace',
    missed text = 'once',
    missed_for interval = '1 day',
    overlap text = 'allow',
    paused boolean = NULL)
  RETURNS pulse.schedule
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.schedule(text, text, text, interval, json, text, text, int, int, text[],
                                   text, text, text, interval, text, boolean) IS
  'Stores a schedule, which adds a job of the task identifier at each due time, and returns the '
  'schedule. Give cron (five fields as in crontab(5), or @hourly to @yearly, in time_zone; NULL '
  'means UTC) or every (elapsed time, at least 1 s). The arguments from payload to job_key_mode '
  'are as in add_job. missed is for due times at which no session swept: skip, once (one job for '
  'all), all (each due time that is at most missed_for old). overlap is for a due time at which '
  'the job before still waits or runs: allow, skip, replace (a waiting job). A call with the same '
  'rule and time_zone keeps the phase and changes the rest; another rule starts from now. paused: '
  'NULL leaves the pause unchanged. Raises PU004 for a value out of range.';

CREATE OR REPLACE FUNCTION pulse.unschedule(name text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  DELETE FROM pulse.schedule AS s WHERE s.name = unschedule.name;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION pulse.unschedule(text) IS
  'Deletes a schedule, and returns whether there was one. Jobs that the schedule has added stay.';

-- The view schedules shows no payload; a scheduler may change the schedules of another role.
CREATE OR REPLACE FUNCTION pulse_internal.as_schedulers_see(stored pulse.schedule)
  RETURNS pulse.schedule
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT has_table_privilege(pulse_internal.asking_role(), 'pulse.schedule', 'SELECT') THEN
    stored.payload := NULL;
  END IF;
  RETURN stored;
END $$;
COMMENT ON FUNCTION pulse_internal.as_schedulers_see(pulse.schedule) IS
  'Returns a schedule without the payload to a role that may not read the table.';

CREATE OR REPLACE FUNCTION pulse.pause_schedule(name text) RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  stored pulse.schedule :=
    pulse_internal.count_passed(pulse_internal.lock_schedule(pause_schedule.name));
BEGIN
  UPDATE pulse.schedule AS s
     SET paused = true, next_due = stored.next_due, last_due = stored.last_due,
         missed_count = stored.missed_count, updated_at = pulse.now(),
         paused_before = s.paused_before OR s.gone_at IS NOT NULL,
         paused_at = CASE WHEN s.paused THEN s.paused_at ELSE pulse.now() END,
         paused_by = CASE WHEN s.paused THEN s.paused_by ELSE pulse_internal.caller() END
   WHERE s.name = stored.name
  RETURNING s.* INTO stored;
  RETURN pulse_internal.as_schedulers_see(stored);
END $$;
COMMENT ON FUNCTION pulse.pause_schedule(text) IS
  'Stops a schedule from adding jobs until resume_schedule. Due times that have passed, and that '
  'no sweep has settled, count as missed; due times during the pause are not counted. A role that '
  'may not read pulse.schedule sees no payload. Raises PU005 for an unknown schedule.';

CREATE OR REPLACE FUNCTION pulse.resume_schedule(name text) RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  stored pulse.schedule :=
    pulse_internal.start_schedule(pulse_internal.lock_schedule(resume_schedule.name));
BEGIN
  UPDATE pulse.schedule AS s
     SET paused = false, next_due = stored.next_due, last_due = stored.last_due,
         gone_at = NULL, paused_before = NULL, paused_at = NULL, paused_by = NULL,
         updated_at = pulse.now()
   WHERE s.name = stored.name
  RETURNING s.* INTO stored;
  PERFORM pulse_internal.note_schedules();
  RETURN pulse_internal.as_schedulers_see(stored);
END $$;
COMMENT ON FUNCTION pulse.resume_schedule(text) IS
  'Starts a schedule from now: the next due time is the first in the future, whatever the '
  'schedule has settled. A role that may not read pulse.schedule sees no payload. Raises PU005 '
  'for an unknown schedule.';

CREATE OR REPLACE FUNCTION pulse.run_schedule_now(name text) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  stored pulse.schedule;
  spec pulse.job_spec;
  added pulse.job;
BEGIN
  LOCK TABLE pulse.job IN ROW EXCLUSIVE MODE;
  SELECT * INTO stored FROM pulse.schedule AS s WHERE s.name = run_schedule_now.name;
  IF stored.name IS NULL THEN
    PERFORM pulse_internal.raise_unknown_schedule(run_schedule_now.name);
  END IF;
  spec := pulse_internal.checked_spec(
    pulse_internal.scheduled_spec(stored, pulse_internal.transaction_now()));
  added := CASE WHEN spec.job_key IS NULL
             THEN pulse_internal.insert_scheduled_job(spec, NULL, stored.added_by)
             ELSE pulse_internal.add_keyed(spec, stored.job_key_mode, NULL, stored.added_by) END;
  -- The payload is that of the role that made the schedule.
  RETURN pulse_internal.as_producers_see(added, NULL);
END $$;
COMMENT ON FUNCTION pulse.run_schedule_now(text) IS
  'Adds the job of a schedule at once and returns it, whether or not the schedule is paused. The '
  'job has no scheduled_for. The call moves no due time and does not ask overlap. A role that may '
  'not read pulse.job sees no payload. Raises PU005 for an unknown schedule.';

CREATE OR REPLACE FUNCTION pulse.next_runs(
    name text, max_runs int = 5, after timestamptz = NULL)
  RETURNS SETOF timestamptz
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 5
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  stored pulse.schedule;
BEGIN
  PERFORM pulse_internal.check_count('max_runs', max_runs, 1, 100000);
  PERFORM pulse_internal.check_after(next_runs.after);
  SELECT * INTO stored FROM pulse.schedule AS s WHERE s.name = next_runs.name;
  IF stored.name IS NULL THEN
    PERFORM pulse_internal.raise_unknown_schedule(next_runs.name);
  END IF;
  RETURN QUERY SELECT unnest(pulse_internal.due_times(
    stored, coalesce(next_runs.after, greatest(pulse.now(), stored.last_due)),
    'infinity', max_runs));
END $$;
COMMENT ON FUNCTION pulse.next_runs(text, int, timestamptz) IS
  'Returns the first max_runs (1 to 100000) due times of a schedule later than after, as if the '
  'schedule were not paused. NULL means now, or the last due time if the clock was set back '
  'before that due time. Raises PU004 for max_runs or after out of range, PU005 for an unknown '
  'schedule.';
