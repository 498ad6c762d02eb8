-- Workers: registration, the attached session, the orderly end. No id is used twice, so heartbeats
-- of a new process never keep a dead worker's jobs alive.

CREATE OR REPLACE FUNCTION pulse_internal.next_worker_id() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_next_worker_id';
COMMENT ON FUNCTION pulse_internal.next_worker_id() IS
  'Returns an id that no worker has had before, also across failover, restore and pg_upgrade.';

CREATE OR REPLACE FUNCTION pulse_internal.hold_attachment() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_hold_attachment';
COMMENT ON FUNCTION pulse_internal.hold_attachment() IS
  'Takes a new session lock that stands for this session, and returns the lock''s number.';

CREATE OR REPLACE FUNCTION pulse_internal.holds_attachment(attachment bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_holds_attachment';
COMMENT ON FUNCTION pulse_internal.holds_attachment(bigint) IS
  'Returns whether this session holds the session lock of this number.';

CREATE OR REPLACE FUNCTION pulse_internal.forget_attachment(attachment bigint) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_forget_attachment';
COMMENT ON FUNCTION pulse_internal.forget_attachment(bigint) IS
  'Forgets an attachment whose worker has deregistered, so that the end of the session asks for '
  'no sweep.';

CREATE OR REPLACE FUNCTION pulse_internal.attachment_state(attachment bigint, incarnation bigint)
  RETURNS text
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_attachment_state';
COMMENT ON FUNCTION pulse_internal.attachment_state(bigint, bigint) IS
  'Returns the state of an attached session: open, ended (by the client) or unknown (the server '
  'ended the session or has no record of the end, so silence decides).';

CREATE OR REPLACE FUNCTION pulse_internal.ended_live_us(attachment bigint) RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_ended_live_us';
COMMENT ON FUNCTION pulse_internal.ended_live_us(bigint) IS
  'Returns when the client ended the session, in microseconds of the liveness clock and no '
  'earlier than the last tick; NULL without a record.';

CREATE OR REPLACE FUNCTION pulse_internal.incarnation() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_incarnation';
COMMENT ON FUNCTION pulse_internal.incarnation() IS
  'Returns a number that names this run of the server.';

-- Every worker's threshold must span two heartbeats and one and a half sweep intervals.
CREATE OR REPLACE FUNCTION pulse_internal.least_threshold_us(interval_us bigint) RETURNS bigint
  LANGUAGE sql STABLE STRICT PARALLEL SAFE
  RETURN 2 * interval_us + coalesce(pulse_internal.setting_us('sweep_interval'), 0) * 3 / 2;
COMMENT ON FUNCTION pulse_internal.least_threshold_us(bigint) IS
  'Returns 2 x interval_us + 1.5 x sweep_interval in microseconds: the shortest silence that may '
  'count as a death.';

CREATE OR REPLACE FUNCTION pulse_internal.check_tasks(tasks text[]) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  task text;
BEGIN
  IF array_ndims(tasks) > 1 THEN
    RAISE EXCEPTION 'tasks must be a flat array' USING
      ERRCODE = 'PU004', HINT = 'Give each task once, or NULL for every task.';
  END IF;
  FOREACH task IN ARRAY coalesce(tasks, '{}') LOOP
    PERFORM pulse_internal.check_identifier(task);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.check_tasks(text[]) IS
  'Raises PU004 unless a worker may serve these tasks; NULL means every task.';

CREATE OR REPLACE FUNCTION pulse_internal.check_worker(
    name text, tasks text[], heartbeat_interval interval)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  least_us bigint;
BEGIN
  PERFORM pulse_internal.check_name('name', name, 512);
  PERFORM pulse_internal.check_tasks(tasks);
  IF heartbeat_interval < interval '0' OR heartbeat_interval > interval '1 day'
     OR (heartbeat_interval > interval '0' AND heartbeat_interval < interval '10 ms') THEN
    RAISE EXCEPTION 'heartbeat_interval is %, out of range', heartbeat_interval USING
      ERRCODE = 'PU004',
      HINT = 'It must be between 10 ms and 1 day, or 0 for one that lives as long as its session.';
  END IF;
  least_us := pulse_internal.least_threshold_us(pulse_internal.us(heartbeat_interval));
  IF heartbeat_interval > interval '0'
    AND pulse_internal.setting_us('sweep_threshold') < least_us THEN
    RAISE EXCEPTION 'sweep_threshold % is too short for these intervals',
        pulse_internal.interval(pulse_internal.setting_us('sweep_threshold')) USING
      ERRCODE = 'PU003',
      DETAIL = format('heartbeat_interval is %s, sweep_interval is %s.', heartbeat_interval,
                      coalesce(
                        pulse_internal.interval(pulse_internal.setting_us('sweep_interval'))::text,
                        'off')),
      HINT = format('sweep_threshold must be at least 2 x heartbeat_interval + 1.5 x '
                    'sweep_interval, here %s.', pulse_internal.interval(least_us));
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_worker(text, text[], interval) IS
  'Raises PU004 for a name or value out of range, PU003 for settings under which living workers '
  'would seem lost.';

CREATE OR REPLACE FUNCTION pulse_internal.warn_in_block(what text) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_warn_in_block';
COMMENT ON FUNCTION pulse_internal.warn_in_block(text) IS
  'Warns when the call is inside a transaction block, where the effect waits for the commit.';

-- The one reading of the numbers in info, which workers of any language write.
CREATE OR REPLACE FUNCTION pulse_internal.told_number(info json, name text, max_digits int)
  RETURNS int
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN info ->> name ~ pg_catalog.format('^[0-9]{1,%s}$', max_digits)
           THEN (info ->> name)::int END;
COMMENT ON FUNCTION pulse_internal.told_number(json, text, int) IS
  'Returns a number that a worker tells in info; NULL where the worker tells no number of at most '
  'max_digits (1 to 9) digits.';

CREATE OR REPLACE FUNCTION pulse_internal.told_by(
    info json, OUT slots int, OUT kill_grace interval, OUT version text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  slots := pulse_internal.told_number(info, 'slots', 6);
  kill_grace := pulse_internal.told_number(info, 'kill_grace_ms', 6) * interval '1 ms';
  version := left(info ->> 'version', 64);
END $$;
COMMENT ON FUNCTION pulse_internal.told_by(json) IS
  'Returns what a worker tells about itself in info, and may tell anew while the worker lives; '
  'NULL where the worker tells nothing that can be read.';

CREATE OR REPLACE FUNCTION pulse.register_worker(
    name text, tasks text[] = NULL, info json = NULL, heartbeat_interval interval = NULL)
  RETURNS pulse.worker
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  registered pulse.worker;
  every interval := coalesce(register_worker.heartbeat_interval,
                             pulse_internal.interval(
                               pulse_internal.setting_us('heartbeat_interval')));
BEGIN
  PERFORM pulse_internal.check_worker(register_worker.name, register_worker.tasks, every);
  PERFORM pulse_internal.warn_in_block('register_worker');
  INSERT INTO pulse.worker
    (id, name, hostname, boot_id, pid_namespace, pid, process_start, tasks, heartbeat_interval,
     sweep_threshold, started_at, info, slots, kill_grace, version)
  SELECT
     pulse_internal.next_worker_id(), register_worker.name, info ->> 'hostname', info ->> 'boot_id',
     info ->> 'pid_namespace', pulse_internal.told_number(info, 'pid', 9),
     info ->> 'process_start', register_worker.tasks, every,
     pulse_internal.interval(pulse_internal.setting_us('sweep_threshold')), pulse.now(), info,
     t.slots, t.kill_grace, t.version
    FROM pulse_internal.told_by(info) AS t
  RETURNING * INTO registered;
  INSERT INTO pulse.heartbeat
    (worker_id, beat_live_us, last_heartbeat_at, interval_us, threshold_us, default_timeout_us)
  VALUES
    (registered.id, pulse_internal.live_now_us(), pulse.now(), pulse_internal.us(every),
     pulse_internal.setting_us('sweep_threshold'), pulse_internal.setting_us('default_timeout'));
  -- Where nobody has swept for an interval the liveness clock stands still, and with it every rate.
  PERFORM pulse_internal.note_sweep_due(
    pulse_internal.last_tick() + (pulse.now() - clock_timestamp())
      + pulse_internal.interval(pulse_internal.setting_us('sweep_interval')));
  RETURN registered;
END $$;
COMMENT ON FUNCTION pulse.register_worker(text, text[], json, interval) IS
  'Registers a worker, with its first heartbeat, and returns its row. tasks: the tasks that the '
  'worker serves until serve_tasks() names others; NULL means every task. info: hostname, boot_id, '
  'pid_namespace, pid and process_start let workers of one machine check on each other; slots and '
  'forbidden_flags (an array) let explain_job() tell which workers could take a job. '
  'heartbeat_interval: NULL takes pulse.heartbeat_interval; 0 means that the worker lives exactly '
  'as long as the attached session. info.kill_grace_ms: within this time the worker ends a job at '
  'its timeout or stall_timeout itself, so sweeps leave the job to the worker for so long. Raises '
  'PU003 when the settings contradict each other, PU004 for a value out of range.';

CREATE OR REPLACE FUNCTION pulse_internal.raise_unknown_worker(worker_id bigint) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'worker % is unknown', coalesce(worker_id::text, 'NULL') USING
    ERRCODE = 'PU002', HINT = 'Use the id that pulse.register_worker() returned.';
END $$;
COMMENT ON FUNCTION pulse_internal.raise_unknown_worker(bigint) IS
  'Raises PU002 for a worker that is not registered.';

-- The session that beats makes this call, so it waits for no lock for longer than a beat may be
-- late.
CREATE OR REPLACE FUNCTION pulse.serve_tasks(worker_id bigint, tasks text[], info json = NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '100ms' AS $$
BEGIN
  PERFORM pulse_internal.check_tasks(serve_tasks.tasks);
  PERFORM pulse_internal.warn_in_block('serve_tasks');
  PERFORM pulse_internal.require_alive(serve_tasks.worker_id);
  UPDATE pulse.worker AS w
     SET tasks = serve_tasks.tasks, info = coalesce(serve_tasks.info, w.info),
         (slots, kill_grace, version) =
           (SELECT t.slots, t.kill_grace, t.version
              FROM pulse_internal.told_by(coalesce(serve_tasks.info, w.info)) AS t)
   WHERE w.id = serve_tasks.worker_id;
END $$;
COMMENT ON FUNCTION pulse.serve_tasks(bigint, text[], json) IS
  'Tells which tasks a registered worker serves from now on (NULL means every task), in place of '
  'the tasks that the registration named: views, doctor() and explain_job() judge by these tasks, '
  'and so does a later claim() without tasks. info, unless NULL, replaces the info of the '
  'registration, as after a change of slots; info.draining = true: the worker claims no more, as '
  'after a signal; machine and process stay those of the registration. '
  'Waits 100 ms for a lock at most, so that the next heartbeat is not late. Raises PU002 for a '
  'worker that is unknown, lost or stopped, PU004 for a value out of range, 55P03 for a lock.';

CREATE OR REPLACE FUNCTION pulse.attach_worker(worker_id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.warn_in_block('attach_worker');
  LOCK TABLE pulse.heartbeat IN ROW EXCLUSIVE MODE;
  PERFORM 1 FROM pulse.heartbeat AS h WHERE h.worker_id = attach_worker.worker_id FOR UPDATE;
  PERFORM pulse_internal.require_alive(attach_worker.worker_id);
  UPDATE pulse.heartbeat AS h SET
    attachment = CASE WHEN pulse_internal.holds_attachment(h.attachment) THEN h.attachment
      ELSE pulse_internal.hold_attachment() END, incarnation = pulse_internal.incarnation(),
    detached_live_us = NULL, beat_live_us = pulse_internal.live_now_us(),
      last_heartbeat_at = pulse.now()
  WHERE h.worker_id = attach_worker.worker_id;
END $$;
COMMENT ON FUNCTION pulse.attach_worker(bigint) IS
  'Ties a worker to this session: when the client ends the session, the worker is lost after '
  'pulse.disconnect_grace. Do not make the call through a transaction pooler. Raises PU002 for a '
  'worker that is unknown, lost or stopped.';

CREATE OR REPLACE FUNCTION pulse.deregister_worker(worker_id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  last_worker pulse.worker;
  last_beat pulse.heartbeat;
BEGIN
  PERFORM pulse_internal.require_read_committed('deregister_worker');
  LOCK TABLE pulse.job, pulse.claim_batch IN ROW EXCLUSIVE MODE;
  DELETE FROM pulse.heartbeat AS h
   WHERE h.worker_id = deregister_worker.worker_id AND h.verdict <> 'lost'
  RETURNING h.* INTO last_beat;
  PERFORM pulse_internal.forget_attachment(last_beat.attachment);
  IF last_beat.worker_id IS NULL THEN
    IF NOT EXISTS (SELECT FROM pulse.worker AS w WHERE w.id = deregister_worker.worker_id) THEN
      PERFORM pulse_internal.raise_unknown_worker(deregister_worker.worker_id);
    END IF;
    RETURN;
  END IF;
  UPDATE pulse.worker AS w SET state = 'stopped', ended_at = pulse.now(), reason = 'deregistered'
   WHERE w.id = deregister_worker.worker_id
  RETURNING * INTO last_worker;
  -- The next sweep ends the jobs whose rows another transaction locks.
  PERFORM pulse_internal.recover_owner(deregister_worker.worker_id, 'interrupted', NULL,
    format('worker %s (%s) stopped', last_worker.id, last_worker.name), false, NULL);
  PERFORM pulse_internal.forget_ended(deregister_worker.worker_id);
END $$;
COMMENT ON FUNCTION pulse.deregister_worker(bigint) IS
  'Ends a worker in order. Jobs that the worker still runs are interrupted: the attempt is '
  'consumed, no crash is counted, and the jobs are ready again at once. Repeating the call is '
  'harmless. Raises PU002 for an unknown worker, PU007 outside READ COMMITTED.';
