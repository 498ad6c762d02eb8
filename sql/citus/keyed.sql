-- Calls by shard key. Each has the name and the arguments of the function of pulse, behind the key.
-- The build repeats this part for keys of types text, bigint and uuid (@KEY@): callers give a key
-- of another type as text. Times and intervals are written so that every session reads the same.
-- add_job() has no settings, which would cost a tenth of the call.

CREATE OR REPLACE FUNCTION pulse_citus.add_job(
    shard_key @KEY@,
    identifier text,
    payload json = NULL,
    queue_name text = NULL,
    run_at timestamptz = NULL,
    max_attempts int = NULL,
    job_key text = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key_mode text = 'replace')
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
  IF pulse_citus._private_is_here(shard_key::text) THEN
    RETURN pulse.add_job(identifier, payload, queue_name, run_at, max_attempts, job_key, priority,
                         flags, job_key_mode);
  END IF;
  RETURN (pulse_citus._private_send(
    shard_key::text, 'add_job', identifier, payload::text, queue_name,
    pulse_citus._private_text(run_at), max_attempts::text, job_key, priority::text, flags::text,
    job_key_mode))[1]::pulse.job;
END $$;
COMMENT ON FUNCTION pulse_citus.add_job(
    @KEY@, text, json, text, timestamptz, int, text, int, text[], text) IS
  'pulse.add_job() on the node of a shard key, in the caller''s transaction. Raises PU004 for a '
  'key that is NULL, an error of class 22 (as 22P02) for a key that is no value of the '
  'distribution column, PU003 where Citus ran the call on another node or before colocate(), and '
  'what pulse.add_job() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.add_jobs(
    shard_key @KEY@, specs pulse.job_spec[], job_key_preserve_run_at boolean = false)
  RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET jit = off AS $$
BEGIN
  IF pulse_citus._private_is_here(shard_key::text) THEN
    RETURN QUERY SELECT * FROM pulse.add_jobs(specs, job_key_preserve_run_at);
    RETURN;
  END IF;
  RETURN QUERY
  SELECT * FROM unnest(pulse_citus._private_send(
    shard_key::text, 'add_jobs', specs::text, job_key_preserve_run_at::text)::pulse.job[]);
END $$;
COMMENT ON FUNCTION pulse_citus.add_jobs(@KEY@, pulse.job_spec[], boolean) IS
  'pulse.add_jobs() on the node of a shard key, which all of the jobs have; raises what add_job() '
  'raises.';

CREATE OR REPLACE FUNCTION pulse_citus.add_job_once(
    shard_key @KEY@,
    unique_for interval,
    unique_key text,
    identifier text,
    payload json = NULL,
    queue_name text = NULL,
    run_at timestamptz = NULL,
    max_attempts int = NULL,
    priority int = NULL,
    flags text[] = NULL,
    states text[] = NULL,
    OUT id bigint,
    OUT is_new boolean,
    OUT state text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres'
  SET jit = off AS $$
BEGIN
  SELECT r.id, r.is_new, r.state INTO id, is_new, state
    FROM json_to_record((pulse_citus._private_call(
           shard_key::text, 'add_job_once', unique_for::text, unique_key, identifier,
           payload::text, queue_name, run_at::text, max_attempts::text, priority::text,
           flags::text, states::text))[1]::json) AS r (id bigint, is_new boolean, state text);
END $$;
COMMENT ON FUNCTION pulse_citus.add_job_once(
    @KEY@, interval, text, text, json, text, timestamptz, int, int, text[], text[]) IS
  'pulse.add_job_once() on the node of a shard key: once among jobs of keys of this node. Raises '
  'what add_job() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.forget_once(
    shard_key @KEY@, identifier text, unique_key text)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (pulse_citus._private_call(
    shard_key::text, 'forget_once', identifier, unique_key))[1];
END $$;
COMMENT ON FUNCTION pulse_citus.forget_once(@KEY@, text, text) IS
  'pulse.forget_once() on the node of a shard key; raises what add_job() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.add_job_after(
    shard_key @KEY@,
    after bigint[],
    identifier text,
    payload json = NULL,
    queue_name text = NULL,
    run_at timestamptz = NULL,
    max_attempts int = NULL,
    job_key text = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key_mode text = 'replace',
    starts_when text = 'completed',
    start_by timestamptz = NULL)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET jit = off AS $$
BEGIN
  RETURN pulse_citus._private_job(
    shard_key::text, 'add_job_after', after::text, identifier, payload::text, queue_name,
    run_at::text, max_attempts::text, job_key, priority::text, flags::text, job_key_mode,
    starts_when, start_by::text);
END $$;
COMMENT ON FUNCTION pulse_citus.add_job_after(
    @KEY@, bigint[], text, json, text, timestamptz, int, text, int, text[], text, text,
    timestamptz) IS
  'pulse.add_job_after() on the node of a shard key, after jobs of the same node. Raises PU005 for '
  'a job of another node, and what add_job() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.add_flow(
    shard_key @KEY@, jobs json, flow_name text = NULL)
  RETURNS TABLE (key text, id bigint, flow_id bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT r.key, r.id, r.flow_id
    FROM unnest(pulse_citus._private_call(
           shard_key::text, 'add_flow', jobs::text, flow_name)) AS answer,
         json_to_record(answer::json) AS r (key text, id bigint, flow_id bigint);
END $$;
COMMENT ON FUNCTION pulse_citus.add_flow(@KEY@, json, text) IS
  'pulse.add_flow() on the node of a shard key, which all of the jobs have; raises what '
  'add_job_after() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.add_dependency(
    shard_key @KEY@, job_id bigint, after bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_citus._private_call(
    shard_key::text, 'add_dependency', job_id::text, after::text);
END $$;
COMMENT ON FUNCTION pulse_citus.add_dependency(@KEY@, bigint, bigint[]) IS
  'pulse.add_dependency() on the node of a shard key; raises what add_job_after() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.remove_job(shard_key @KEY@, job_key text) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_citus._private_job(shard_key::text, 'remove_job', job_key);
END $$;
COMMENT ON FUNCTION pulse_citus.remove_job(@KEY@, text) IS
  'pulse.remove_job() on the node of a shard key; raises what add_job() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.cancel_job(
    shard_key @KEY@, job_id bigint, reason text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (pulse_citus._private_call(shard_key::text, 'cancel_job', job_id::text, reason))[1];
END $$;
COMMENT ON FUNCTION pulse_citus.cancel_job(@KEY@, bigint, text) IS
  'pulse.cancel_job() on the node of a shard key. Raises PU005 for a job of another node, PU004 '
  'and PU003 as add_job() does.';

CREATE OR REPLACE FUNCTION pulse_citus.retry_job(shard_key @KEY@, job_id bigint) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_citus._private_job(shard_key::text, 'retry_job', job_id::text);
END $$;
COMMENT ON FUNCTION pulse_citus.retry_job(@KEY@, bigint) IS
  'pulse.retry_job() on the node of a shard key; raises what cancel_job() raises, and PU010.';

CREATE OR REPLACE FUNCTION pulse_citus.ended(shard_key @KEY@, job_ids bigint[])
  RETURNS TABLE (id bigint, state pulse.finished_state, result json, last_error text,
                 finished_at timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT r.*
    FROM unnest(pulse_citus._private_call(shard_key::text, 'ended', job_ids::text)) AS answer,
         json_to_record(answer::json) AS r (id bigint, state pulse.finished_state, result json,
                                            last_error text, finished_at timestamptz);
END $$;
COMMENT ON FUNCTION pulse_citus.ended(@KEY@, bigint[]) IS
  'pulse.ended() on the node of a shard key; raises what cancel_job() raises.';
