-- Adds that may be repeated. A key belongs to the role that calls and to the client that the role
-- names: neither another role nor another client of the role can read, take or block the key.

COMMENT ON TABLE pulse.idempotency_key IS
  'Keys of add_job_for_request, and the jobs added under the keys; pruned by age.';
COMMENT ON COLUMN pulse.idempotency_key.role IS 'Role that has called';
COMMENT ON COLUMN pulse.idempotency_key.client IS
  'Client that the role has named; over HTTP the name of the token';
COMMENT ON COLUMN pulse.idempotency_key.key IS 'Key of the request';
COMMENT ON COLUMN pulse.idempotency_key.request_hash IS
  'Hash of the request: one with the same key and another hash is refused';
COMMENT ON COLUMN pulse.idempotency_key.job_id IS 'Job added under the key';
COMMENT ON COLUMN pulse.idempotency_key.state IS 'State of the job when the key was taken';
COMMENT ON COLUMN pulse.idempotency_key.run_at IS 'run_at of the job when the key was taken';
COMMENT ON COLUMN pulse.idempotency_key.created_at IS 'When the key was taken';

-- The first of two transactions with one key holds the entry of the unique index until the
-- transaction ends.
CREATE OR REPLACE FUNCTION pulse_internal.insert_idempotency_key(
    role text, client text, key text, request_hash text, oldest timestamptz)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET lock_timeout = '1s' AS $$
BEGIN
  DELETE FROM pulse.idempotency_key AS k
   WHERE k.role = insert_idempotency_key.role AND k.client = insert_idempotency_key.client
     AND k.key = insert_idempotency_key.key AND k.created_at < oldest;
  INSERT INTO pulse.idempotency_key AS k (role, client, key, request_hash, created_at)
  VALUES (insert_idempotency_key.role, insert_idempotency_key.client, insert_idempotency_key.key,
          insert_idempotency_key.request_hash, pulse.now())
  ON CONFLICT DO NOTHING;
  RETURN FOUND;
EXCEPTION WHEN lock_not_available THEN
  RETURN NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.insert_idempotency_key(text, text, text, text, timestamptz) IS
  'Takes the key and returns true where the key is free or older than oldest; returns false where '
  'the key is taken; NULL where another transaction that takes the key has not ended within a '
  'second.';

-- This function alone decides the outcome of a request with a key.
CREATE OR REPLACE FUNCTION pulse_internal.take_idempotency_key(
    role text, client text, key text, request_hash text,
    OUT outcome text, OUT id bigint, OUT state text, OUT run_at timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  is_free boolean;
  kept pulse.idempotency_key;
  oldest timestamptz :=
    pulse_internal.retention(pulse_internal.setting_us('keep_idempotency_keys'));
BEGIN
  LOOP
    is_free := pulse_internal.insert_idempotency_key(role, client, key, request_hash, oldest);
    IF is_free THEN
      outcome := 'new';
      RETURN;
    ELSIF is_free IS NULL THEN
      outcome := 'in_progress';
      RETURN;
    END IF;
    SELECT * INTO kept FROM pulse.idempotency_key AS k
     WHERE k.role = take_idempotency_key.role AND k.client = take_idempotency_key.client
       AND k.key = take_idempotency_key.key;
    -- Without a row another session has pruned the key since.
    EXIT WHEN FOUND;
  END LOOP;
  IF kept.request_hash <> take_idempotency_key.request_hash THEN
    outcome := 'other_request';
    RETURN;
  END IF;
  outcome := 'replayed';
  id := kept.job_id;
  state := kept.state;
  run_at := kept.run_at;
END $$;
COMMENT ON FUNCTION pulse_internal.take_idempotency_key(text, text, text, text) IS
  'Takes a key for a request, and returns new. For a key taken earlier and not older than '
  'pulse.keep_idempotency_keys, returns replayed with the job of the first request, or '
  'other_request; in_progress where another transaction is about to take the key.';

CREATE OR REPLACE FUNCTION pulse_internal.keep_answer(
    role text, client text, key text, id bigint, state text, run_at timestamptz)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  UPDATE pulse.idempotency_key AS k
     SET job_id = keep_answer.id, state = keep_answer.state, run_at = keep_answer.run_at
   WHERE k.role = keep_answer.role AND k.client = keep_answer.client AND k.key = keep_answer.key;
END $$;
COMMENT ON FUNCTION pulse_internal.keep_answer(text, text, text, bigint, text, timestamptz) IS
  'Notes the job added under a key that this transaction has taken.';

-- SECURITY INVOKER: a key belongs to the calling role, and add_job runs with its rights. Only the
-- table of keys is read and written with the rights of the extension's owner.
CREATE OR REPLACE FUNCTION pulse.add_job_for_request(
    client text,
    idempotency_key text,
    request_hash text,
    identifier text,
    payload json = NULL,
    queue_name text = NULL,
    run_at timestamptz = NULL,
    max_attempts int = NULL,
    job_key text = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key_mode text = 'replace',
    OUT outcome text,
    OUT job_id bigint,
    OUT job_state text,
    OUT job_run_at timestamptz)
  LANGUAGE c VOLATILE PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_add_job_for_request';
COMMENT ON FUNCTION pulse.add_job_for_request(
    text, text, text, text, json, text, timestamptz, int, text, int, text[], text) IS
  'Adds a job as add_job does, once for each idempotency_key of this client of the calling role '
  '(names and key of at most 255 characters), and notes the key in the same transaction for as '
  'long as pulse.keep_idempotency_keys says. outcome: added; replayed, with the values that the '
  'first call returned, also when the job has ended; other_request, where the key was given with '
  'another request_hash; in_progress, where another transaction adds under the key and has not '
  'ended within a second. Raises the errors of add_job, and PU004 for a name, key or hash that is '
  'NULL, empty or too long.';
