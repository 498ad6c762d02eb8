-- Jobs that are added once in a period. The unique index of pulse.remembered_key decides which of
-- two adds comes first: the second add waits for the transaction of the first. Ends of jobs write
-- nothing there. extension/add/once.cpp handles the first add under a key.

COMMENT ON TABLE pulse.remembered_key IS
  'Keys of add_job_once, each with the job that the key stands for; pruned when the period is '
  'over. Dumped.';
COMMENT ON COLUMN pulse.remembered_key.identifier IS 'Task of the job';
COMMENT ON COLUMN pulse.remembered_key.unique_key IS 'Key that the producer has given';
COMMENT ON COLUMN pulse.remembered_key.job_id IS 'The job that was added';
COMMENT ON COLUMN pulse.remembered_key.unique_until IS
  'End of the period: unique_for after created_at of the job';
COMMENT ON COLUMN pulse.remembered_key.added_by IS 'The producer of the job';

CREATE OR REPLACE FUNCTION pulse_internal.refuse_remembered(
    remembered pulse.remembered_key, asking text)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pulse_internal.may_name(remembered.added_by, asking) THEN
    RAISE EXCEPTION 'unique_key % of task % is in use by another producer',
      quote_literal(remembered.unique_key), remembered.identifier USING
      ERRCODE = 'insufficient_privilege',
      HINT = 'Use another key, or make both roles members of one role that has '
             'pulse.grant_producer().';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.refuse_remembered(pulse.remembered_key, text) IS
  'Raises 42501 for a key under which the producer asking may not name the job.';

-- One statement, so that the call sees a job that ends meanwhile either live or ended.
CREATE OR REPLACE FUNCTION pulse_internal.state_of_remembered(job_id bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN coalesce(
    (SELECT CASE j.state WHEN 'running' THEN 'running' ELSE 'waiting' END
       FROM pulse.job AS j WHERE j.id = job_id),
    (SELECT f.state::text FROM pulse.finished_job AS f WHERE f.id = job_id),
    'completed');
END $$;
COMMENT ON FUNCTION pulse_internal.state_of_remembered(bigint) IS
  'Returns waiting or running for a live job, the end of a job on record, and completed for a job '
  'in neither place.';

-- An add that finds a key takes no id. A key whose period is over, or whose job is in none of the
-- states, changes hands by a comparison with the job that was read: so of two such adds one wins.
CREATE OR REPLACE FUNCTION pulse_internal.take_once(
    identifier text, unique_key text, unique_until timestamptz, states text[], asking text,
    OUT id bigint, OUT is_new boolean, OUT state text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  remembered pulse.remembered_key;
BEGIN
  is_new := true;
  state := 'waiting';
  LOOP
    SELECT * INTO remembered FROM pulse.remembered_key AS k
     WHERE (k.identifier, k.unique_key) = (take_once.identifier, take_once.unique_key);
    IF NOT FOUND THEN
      INSERT INTO pulse.remembered_key AS r
        (identifier, unique_key, job_id, unique_until, added_by)
      VALUES (take_once.identifier, take_once.unique_key,
              pulse_internal.next_id('pulse.job_id_seq'), take_once.unique_until, asking)
      ON CONFLICT DO NOTHING
      RETURNING r.job_id INTO take_once.id;
      EXIT WHEN FOUND;
      CONTINUE;
    END IF;
    -- The clock by which created_at of the job and the period count.
    IF remembered.unique_until > pulse_internal.transaction_now() THEN
      PERFORM pulse_internal.refuse_remembered(remembered, asking);
      state := pulse_internal.state_of_remembered(remembered.job_id);
      IF coalesce(state = ANY (states), true) THEN
        id := remembered.job_id;
        is_new := false;
        EXIT;
      END IF;
      state := 'waiting';
    END IF;
    UPDATE pulse.remembered_key AS r
       SET job_id = pulse_internal.next_id('pulse.job_id_seq'),
           unique_until = take_once.unique_until, added_by = asking
     WHERE (r.identifier, r.unique_key) = (take_once.identifier, take_once.unique_key)
       AND r.job_id = remembered.job_id
    RETURNING r.job_id INTO take_once.id;
    EXIT WHEN FOUND;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.take_once(text, text, timestamptz, text[], text) IS
  'Takes a key for a new job, and returns the id that the job is to have; or returns the job that '
  'the key stands for. Raises 42501 where the key stands for a job that the producer asking may '
  'not name.';

CREATE OR REPLACE FUNCTION pulse.add_job_once(
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
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_add_job_once';
COMMENT ON FUNCTION pulse.add_job_once(
    interval, text, text, json, text, timestamptz, int, int, text[], text[]) IS
  'Adds a job as add_job does, unless a job of this task and unique_key was added less than '
  'unique_for (1 ms to 10 years; a day is 24 hours) before: then returns that job, with is_new '
  'false. The period lasts from created_at of the first job, whatever becomes of that job; its '
  'own unique_for counts. states narrows that: a first job in none of these states (waiting, '
  'running, completed, failed, cancelled, quarantined, expired) is forgotten, and the new job is '
  'remembered. state: of the job; a job without a record counts as completed. While another '
  'transaction adds under the key, the call waits for the end of that transaction. Raises PU004 '
  'for a name or value out of range, 42501 where another producer has the key, and 40001 where '
  'another session took the key after a REPEATABLE READ or SERIALIZABLE transaction had begun: '
  'repeat the transaction.';

CREATE OR REPLACE FUNCTION pulse_internal.forget_once_as_owner(identifier text, unique_key text)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  remembered pulse.remembered_key;
BEGIN
  LOCK TABLE pulse.remembered_key IN ROW EXCLUSIVE MODE;
  SELECT * INTO remembered FROM pulse.remembered_key AS k
   WHERE (k.identifier, k.unique_key)
         = (forget_once_as_owner.identifier, forget_once_as_owner.unique_key)
     AND k.unique_until > pulse.now();
  IF remembered.job_id IS NULL THEN
    RETURN false;
  END IF;
  PERFORM pulse_internal.refuse_remembered(remembered, pulse_internal.asking_role());
  DELETE FROM pulse.remembered_key AS k
   WHERE (k.identifier, k.unique_key, k.job_id)
         = (remembered.identifier, remembered.unique_key, remembered.job_id);
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION pulse_internal.forget_once_as_owner(text, text) IS
  'The body of pulse.forget_once().';

CREATE OR REPLACE FUNCTION pulse.forget_once(identifier text, unique_key text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.forget_once(text, text) IS
  'Ends the period of a key of add_job_once, so that the next add under the key is new; leaves '
  'the job as it is. Returns whether the key had a period that was not over. Raises 42501 where '
  'another producer has the key.';
