-- Schedules have names of the whole cluster, and each lives on the node of a shard key. The
-- coordinator keeps which; it alone changes schedules, in the transaction of the node's change.

CREATE OR REPLACE FUNCTION pulse_citus._private_require_coordinator(what text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pulse_citus._private_group() <> 0 THEN
    RAISE EXCEPTION '% is a call of the coordinator, and this is node %', what,
      pulse_citus._private_group() USING
      ERRCODE = 'PU003', HINT = 'Connect to the coordinator.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_citus._private_require_coordinator(text) IS
  'Raises PU003 on another node than the coordinator.';

CREATE OR REPLACE FUNCTION pulse_citus._private_settle_schedule(name text, shard_key text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  home text;
BEGIN
  INSERT INTO pulse_citus.schedule_home AS h (name, shard_key) VALUES (name, shard_key)
  ON CONFLICT ON CONSTRAINT schedule_home_pkey DO UPDATE SET name = h.name
  RETURNING h.shard_key INTO home;
  IF home <> shard_key THEN
    RAISE EXCEPTION 'schedule % is of shard key %', quote_literal(name), quote_literal(home) USING
      ERRCODE = 'PU003', HINT = 'pulse_citus.unschedule() first, or another name.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_citus._private_settle_schedule(text, text) IS
  'Notes the shard key of a schedule. Raises PU003 where the schedule has another one.';

CREATE OR REPLACE FUNCTION pulse_citus._private_schedule_key(name text, gone boolean = false)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  home text;
BEGIN
  PERFORM pulse_citus._private_require_coordinator('a change of a schedule');
  IF gone THEN
    DELETE FROM pulse_citus.schedule_home AS h
     WHERE h.name = _private_schedule_key.name RETURNING h.shard_key INTO home;
  ELSE
    SELECT h.shard_key INTO home FROM pulse_citus.schedule_home AS h
     WHERE h.name = _private_schedule_key.name FOR SHARE;
    IF home IS NULL THEN
      RAISE EXCEPTION 'no schedule %', coalesce(quote_literal(name), 'NULL') USING
        ERRCODE = 'PU005', HINT = 'SELECT * FROM pulse_citus.schedule_home shows what there is.';
    END IF;
  END IF;
  RETURN home;
END $$;
COMMENT ON FUNCTION pulse_citus._private_schedule_key(text, boolean) IS
  'Returns the shard key of a schedule, and forgets the key where the schedule is gone. Raises '
  'PU005 for an unknown schedule, unless the schedule goes; PU003 off the coordinator.';

CREATE OR REPLACE FUNCTION pulse_citus.unschedule(name text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  home CONSTANT text := pulse_citus._private_schedule_key(name, gone => true);
BEGIN
  RETURN home IS NOT NULL AND (pulse_citus._private_call(home, 'unschedule', name))[1]::boolean;
END $$;
COMMENT ON FUNCTION pulse_citus.unschedule(text) IS
  'pulse.unschedule() on the schedule''s node. Raises PU003 off the coordinator.';

CREATE OR REPLACE FUNCTION pulse_citus.pause_schedule(name text) RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (pulse_citus._private_call(
    pulse_citus._private_schedule_key(name), 'pause_schedule', name))[1]::pulse.schedule;
END $$;
COMMENT ON FUNCTION pulse_citus.pause_schedule(text) IS
  'pulse.pause_schedule() on the schedule''s node. Raises PU003 off the coordinator, PU005 for an '
  'unknown schedule.';

CREATE OR REPLACE FUNCTION pulse_citus.resume_schedule(name text) RETURNS pulse.schedule
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (pulse_citus._private_call(
    pulse_citus._private_schedule_key(name), 'resume_schedule', name))[1]::pulse.schedule;
END $$;
COMMENT ON FUNCTION pulse_citus.resume_schedule(text) IS
  'pulse.resume_schedule() on the schedule''s node; raises what pause_schedule() raises.';
