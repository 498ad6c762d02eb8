-- The settings as SQL sees them, and the argument checks that several parts share. SQL reads a
-- setting through the library, so the setting is known before the session has loaded the library.

COMMENT ON FUNCTION pulse.version() IS 'Returns the version of the loaded library, such as 0.2.0.';

CREATE OR REPLACE FUNCTION pulse_internal.setting_us(name text) RETURNS bigint
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_setting_us';
COMMENT ON FUNCTION pulse_internal.setting_us(text) IS
  'Returns a duration setting, named without the prefix, in microseconds; NULL when the setting '
  'is -1.';

CREATE OR REPLACE FUNCTION pulse_internal.max_crashes() RETURNS int
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_max_crashes';
COMMENT ON FUNCTION pulse_internal.max_crashes() IS 'Returns the setting pulse.max_crashes.';

CREATE OR REPLACE FUNCTION pulse_internal.max_crashes_of(identifier text) RETURNS int
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_max_crashes_of';
COMMENT ON FUNCTION pulse_internal.max_crashes_of(text) IS
  'Returns the crash of a task''s job that quarantines the job; -1 means none.';

CREATE OR REPLACE FUNCTION pulse_internal.is_poison(crashes int, max_crashes int) RETURNS boolean
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_is_poison';
COMMENT ON FUNCTION pulse_internal.is_poison(int, int) IS
  'Returns whether a job with so many crashes is quarantined.';

CREATE OR REPLACE FUNCTION pulse_internal.events_on() RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_events_on';
COMMENT ON FUNCTION pulse_internal.events_on() IS 'Returns the setting pulse.events.';

-- For pg_pulse_tap, and for functions of 0.1.0: a heartbeat that waits for an update of the
-- extension goes on with the old body.
CREATE OR REPLACE FUNCTION pulse_internal.in_client_block() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_in_client_block';
COMMENT ON FUNCTION pulse_internal.in_client_block() IS
  'Returns whether the client has opened a transaction block.';

-- Inside a SECURITY DEFINER function, current_user is the function's owner.
CREATE OR REPLACE FUNCTION pulse_internal.caller() RETURNS name
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT CASE current_setting('role') WHEN 'none' THEN session_user
           ELSE current_setting('role')::name END;
$$;
COMMENT ON FUNCTION pulse_internal.caller() IS
  'Returns the role that the session acts as: the role of SET ROLE, or else the session''s user.';

CREATE OR REPLACE FUNCTION pulse_internal.asking_role() RETURNS name
  LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_asking_role';
COMMENT ON FUNCTION pulse_internal.asking_role() IS
  'Returns the current user of the call to a public function that acts with the rights of the '
  'extension''s owner and asks for the calling role: of an application''s SECURITY DEFINER '
  'function, the owner of that function. Outside of a public function, returns the role of '
  'caller().';

CREATE OR REPLACE FUNCTION pulse_internal.begin_async_write() RETURNS void
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_begin_lazy_write';
COMMENT ON FUNCTION pulse_internal.begin_async_write() IS
  'Begins writes that a later sweep repeats if a crash loses them. A transaction that writes '
  'nothing else commits asynchronously.';

CREATE OR REPLACE FUNCTION pulse_internal.end_async_write() RETURNS void
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_end_lazy_write';
COMMENT ON FUNCTION pulse_internal.end_async_write() IS
  'Ends the writes that begin_async_write() began.';

CREATE OR REPLACE FUNCTION pulse_internal.require_read_committed(
    what text, hint text = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED.')
  RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_require_read_committed';
COMMENT ON FUNCTION pulse_internal.require_read_committed(text, text) IS
  'Raises PU007, with this hint, at an isolation level other than READ COMMITTED. READ UNCOMMITTED '
  'is READ COMMITTED.';

CREATE OR REPLACE FUNCTION pulse_internal.us(duration interval) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pg_catalog.trunc(pg_catalog.date_part('epoch', duration) * 1000000)::bigint;
COMMENT ON FUNCTION pulse_internal.us(interval) IS
  'Converts a duration to microseconds; a month counts as 30 days.';

CREATE OR REPLACE FUNCTION pulse_internal.interval(us bigint) RETURNS interval
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pg_catalog.make_interval(secs => us / 1000000.0::float8);
COMMENT ON FUNCTION pulse_internal.interval(bigint) IS 'Converts microseconds to a duration.';

CREATE OR REPLACE FUNCTION pulse_internal.next_revision(revision int) RETURNS int
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN revision < 2147483647 THEN revision + 1 ELSE 0 END;
COMMENT ON FUNCTION pulse_internal.next_revision(int) IS
  'Returns the revision of a job after a change; 0 comes after 2147483647.';

-- Names and numbers are checked in one place: extension/server/call_checks.cpp.
CREATE OR REPLACE FUNCTION pulse_internal.check_name(what text, value text, longest int)
  RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_name';
COMMENT ON FUNCTION pulse_internal.check_name(text, text, int) IS
  'Raises PU004 for a name that is empty or too long, and 22021 for one that is not UTF-8.';

CREATE OR REPLACE FUNCTION pulse_internal.check_identifier(identifier text) RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_identifier';
COMMENT ON FUNCTION pulse_internal.check_identifier(text) IS
  'Raises PU004 for a task name that is empty, too long, absolute, or leads out of the tasks '
  'folder.';

CREATE OR REPLACE FUNCTION pulse_internal.check_number(
    what text, value int, lowest int, highest int)
  RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_number';
COMMENT ON FUNCTION pulse_internal.check_number(text, int, int, int) IS
  'Raises PU004 for a number out of range; NULL passes.';

CREATE OR REPLACE FUNCTION pulse_internal.check_run_at(run_at timestamptz) RETURNS void
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_run_at';
COMMENT ON FUNCTION pulse_internal.check_run_at(timestamptz) IS
  'Raises PU004 for a time that is infinite, or so late that no expires_after can be added.';

CREATE OR REPLACE FUNCTION pulse_internal.check_document(what text, document json) RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_document';
COMMENT ON FUNCTION pulse_internal.check_document(text, json) IS
  'Raises PU004 for a document of more than 64 MiB, and 22021 for one that is not UTF-8; NULL '
  'passes.';

CREATE OR REPLACE FUNCTION pulse_internal.readable(value text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_readable';
COMMENT ON FUNCTION pulse_internal.readable(text) IS
  'Returns the text; in a database of encoding SQL_ASCII with a question mark for each byte that '
  'is no part of a character of UTF-8.';

CREATE OR REPLACE FUNCTION pulse_internal.check_duration(what text, value interval, lowest interval)
  RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_duration';
COMMENT ON FUNCTION pulse_internal.check_duration(text, interval, interval) IS
  'Raises PU004 for a duration below the given one or above 10 years; NULL passes.';

CREATE OR REPLACE FUNCTION pulse_internal.checked_age(what text, value interval) RETURNS interval
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_duration(what, value, '0');
  RETURN value;
END $$;
COMMENT ON FUNCTION pulse_internal.checked_age(text, interval) IS
  'Returns the duration. Raises PU004 for one below 0 or above 10 years; NULL passes.';

CREATE OR REPLACE FUNCTION pulse_internal.check_given(what text, is_given boolean, hint text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT is_given THEN
    RAISE EXCEPTION '% must not be null', what USING ERRCODE = 'PU004', HINT = hint;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_given(text, boolean, text) IS
  'Raises PU004 with this hint for an argument that is not given.';

CREATE OR REPLACE FUNCTION pulse_internal.check_count(
    what text, value int, lowest int, highest int)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_given(
    what, value IS NOT NULL, format('It must be between %s and %s.', lowest, highest));
  PERFORM pulse_internal.check_number(what, value, lowest, highest);
END $$;
COMMENT ON FUNCTION pulse_internal.check_count(text, int, int, int) IS
  'Raises PU004 for a number that is NULL or out of range.';

CREATE OR REPLACE FUNCTION pulse_internal.refuse_standby(what text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'cannot execute % during recovery', what USING
      ERRCODE = 'read_only_sql_transaction',
      DETAIL = 'A standby lags behind, and sees neither locks nor sessions of its primary.',
      HINT = 'Call it on the primary.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.refuse_standby(text) IS 'Raises 25006 on a standby.';

CREATE OR REPLACE FUNCTION pulse_internal.two_sweep_intervals() RETURNS interval
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN
    pulse_internal.interval(coalesce(pulse_internal.setting_us('sweep_interval'), 5000000) * 2);
COMMENT ON FUNCTION pulse_internal.two_sweep_intervals() IS
  'Returns two sweep intervals, of 5 s where automatic sweeps are off.';

-- Within these years the walk over due times can go on by years and does not overflow.
CREATE OR REPLACE FUNCTION pulse_internal.check_after(after timestamptz) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF after < timestamptz '1900-01-01 00:00Z' OR after >= timestamptz '10000-01-01 00:00Z' THEN
    RAISE EXCEPTION 'after is %, out of range', after USING
      ERRCODE = 'PU004', HINT = 'It must be a time of the years 1900 to 9999.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_after(timestamptz) IS
  'Raises PU004 for a time outside of the years 1900 to 9999; NULL passes.';
