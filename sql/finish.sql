-- How a claim ends: complete, fail, snooze, release and their plural forms. Every call carries the
-- token; a stale one changes nothing. Lock order: rows by id, then the job key's lock, which plural
-- calls never wait for.

-- Why this token is refused; NULL when the same token ended this attempt in the same way before.
CREATE OR REPLACE FUNCTION pulse._refused_token(job_id bigint, token bigint, outcome text)
  RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  live pulse.job;
BEGIN
  IF EXISTS (SELECT FROM pulse.finished_job AS f
              WHERE f.id = job_id AND f.token = _refused_token.token
                AND f.state = 'completed' AND _refused_token.outcome = 'completed')
     OR EXISTS (SELECT FROM pulse.attempt AS a
                 WHERE a.job_id = _refused_token.job_id AND a.token = _refused_token.token
                   AND (a.outcome = _refused_token.outcome
                        OR a.outcome = 'cancelled' AND _refused_token.outcome = 'failed')) THEN
    RETURN NULL;
  END IF;
  SELECT * INTO live FROM pulse.job AS j WHERE j.id = job_id;
  RETURN CASE WHEN live.id IS NULL THEN 'no live job'
              WHEN live.state = 'running' THEN 'the job is running under another claim'
              ELSE format('the job is %s again', live.state) END;
END $$;
COMMENT ON FUNCTION pulse._refused_token(bigint, bigint, text) IS
  'the reason for PU001, or NULL for a repeat of what is recorded as done';

CREATE OR REPLACE FUNCTION pulse._raise_stale(job_id bigint, reason text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'the claim of job % is lost', job_id USING
    ERRCODE = 'PU001', DETAIL = reason,
    HINT = 'The attempt was recovered or has ended; its outcome does not count.';
END $$;
COMMENT ON FUNCTION pulse._raise_stale(bigint, text) IS 'raises PU001';

-- Keeps a completed job where retention asks for it.
CREATE OR REPLACE FUNCTION pulse._keep_completed(job pulse.job, result json) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  keep_us bigint := pulse._setting_us('keep_completed');
  own interval := (SELECT t.keep_completed FROM pulse.task AS t
                    WHERE t.identifier = job.identifier);
BEGIN
  IF own IS NOT NULL THEN
    keep_us := pulse._us(own);
  END IF;
  IF keep_us = 0 THEN
    RETURN;
  END IF;
  INSERT INTO pulse.finished_job
    (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts, crashes,
     job_key, flags, worker_id, token, claimed_at, checkpoint, result, last_error, revision,
     created_at, finished_at)
  VALUES
    (job.id, job.identifier, job.payload, job.queue_name, job.priority, job.run_at, 'completed',
     job.attempts, job.max_attempts, 0, job.job_key, job.flags, job.worker_id, job.token,
     job.claimed_at, job.checkpoint, result, job.last_error, job.revision, job.created_at,
     pulse.now());
  INSERT INTO pulse.attempt (job_id, token, attempt, worker_id, claimed_at, ended_at, outcome)
  VALUES (job.id, job.token, job.attempts, job.worker_id, job.claimed_at, pulse.now(), 'completed');
END $$;
COMMENT ON FUNCTION pulse._keep_completed(pulse.job, json) IS
  'stores a completed job and its attempt, unless completed jobs of its task are not kept';

-- Waits for whoever holds the job, keeps it where retention asks for it, and says why a claim is
-- lost.
CREATE OR REPLACE FUNCTION pulse._complete_in_full(job_id bigint, token bigint, result json)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  done pulse.job;
  reason text;
BEGIN
  DELETE FROM pulse.job AS j
   WHERE j.id = _complete_in_full.job_id AND j.token = _complete_in_full.token
     AND j.state = 'running'
  RETURNING j.* INTO done;
  IF done.id IS NULL THEN
    reason := pulse._refused_token(job_id, _complete_in_full.token, 'completed');
    IF reason IS NOT NULL OR _complete_in_full.token IS NULL OR job_id IS NULL THEN
      PERFORM pulse._raise_stale(job_id, reason);
    END IF;
    RETURN;
  END IF;
  PERFORM pulse._keep_completed(done, result);
  PERFORM pulse._note_queue(done.queue_name);
END $$;
COMMENT ON FUNCTION pulse._complete_in_full(bigint, bigint, json) IS
  'complete() where it takes more than a delete';

-- C: extension/finish/complete.cpp.
CREATE OR REPLACE FUNCTION pulse.complete(job_id bigint, token bigint, result json = NULL)
  RETURNS void
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_complete';
COMMENT ON FUNCTION pulse.complete(bigint, bigint, json) IS
  'ends a claim with success, in the caller''s transaction: it commits or rolls back with the '
  'caller''s '
  'rows. PU001 when the claim is lost';

-- One job of complete_many that needs more than a delete: it is kept, or it was done before.
CREATE OR REPLACE FUNCTION pulse._complete_one(job_id bigint, token bigint, result json)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  done pulse.job;
BEGIN
  SELECT * INTO done FROM pulse.job AS j
   WHERE j.id = _complete_one.job_id AND j.token = _complete_one.token AND j.state = 'running'
     FOR UPDATE SKIP LOCKED;
  IF done.id IS NULL THEN
    RETURN CASE
      WHEN EXISTS (SELECT FROM pulse.job AS j
                    WHERE j.id = _complete_one.job_id AND j.token = _complete_one.token) THEN 'busy'
      WHEN pulse._refused_token(job_id, _complete_one.token, 'completed') IS NULL THEN 'accepted'
      ELSE 'stale' END;
  END IF;
  DELETE FROM pulse.job AS j WHERE j.id = done.id;
  PERFORM pulse._keep_completed(done, result);
  PERFORM pulse._note_queue(done.queue_name);
  RETURN 'accepted';
END $$;
COMMENT ON FUNCTION pulse._complete_one(bigint, bigint, json) IS
  'accepted, stale or busy; never waits';

CREATE OR REPLACE FUNCTION pulse.complete_many(
    job_ids bigint[], tokens bigint[], results json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_complete_many';
COMMENT ON FUNCTION pulse.complete_many(bigint[], bigint[], json[]) IS
  'ends many claims with success. Per job: accepted, stale (not this claim''s any more) or '
  'busy (held by '
  'another transaction: ask again). Never waits. PU004 for arrays of unequal length';

-- Locks one job of this claim, waiting for whoever holds it, and its key.
CREATE OR REPLACE FUNCTION pulse._lock_claim(job_id bigint, token bigint) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked pulse.job;
BEGIN
  SELECT * INTO locked FROM pulse.job AS j
   WHERE j.id = _lock_claim.job_id AND j.token = _lock_claim.token AND j.state = 'running';
  -- The key first, as a keyed add does, so that the two never wait in a circle.
  PERFORM pulse._lock_key(locked.job_key);
  SELECT * INTO locked FROM pulse.job AS j
   WHERE j.id = _lock_claim.job_id AND j.token = _lock_claim.token AND j.state = 'running'
     FOR UPDATE;
  RETURN locked;
END $$;
COMMENT ON FUNCTION pulse._lock_claim(bigint, bigint) IS
  'the job of this claim, locked; NULLs when the claim is not current';

CREATE OR REPLACE FUNCTION pulse._check_error(error text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF error IS NULL THEN
    RAISE EXCEPTION 'error must not be null' USING
      ERRCODE = 'PU004', HINT = 'Say what went wrong; it is stored as last_error.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse._check_error(text) IS 'raises PU004 for a missing reason';

CREATE OR REPLACE FUNCTION pulse._fail_in_full(
    job_id bigint, token bigint, error text, retry boolean, retry_in interval, payload json)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked pulse.job;
  reason text;
BEGIN
  PERFORM pulse._check_error(error);
  PERFORM pulse._check_duration('retry_in', retry_in, interval '0');
  PERFORM pulse._check_document('payload', payload);
  locked := pulse._lock_claim(job_id, token);
  IF locked.id IS NULL THEN
    reason := pulse._refused_token(job_id, _fail_in_full.token, 'failed');
    IF reason IS NOT NULL OR _fail_in_full.token IS NULL OR job_id IS NULL THEN
      PERFORM pulse._raise_stale(job_id, reason);
    END IF;
    RETURN coalesce((SELECT j.state::text FROM pulse.job AS j WHERE j.id = job_id),
                    (SELECT f.state::text FROM pulse.finished_job AS f WHERE f.id = job_id));
  END IF;
  RETURN (SELECT e.state FROM pulse._end_attempts(ARRAY[
    ROW(job_id, 'failed', error, coalesce(retry, true), retry_in, payload, NULL)::pulse._ending
  ]) AS e);
END $$;
COMMENT ON FUNCTION pulse._fail_in_full(bigint, bigint, text, boolean, interval, json) IS
  'fail() where it takes more than one look at the job';

-- C: extension/finish/fail.cpp.
CREATE OR REPLACE FUNCTION pulse.fail(
    job_id bigint, token bigint, error text, retry boolean = true, retry_in interval = NULL,
    payload json = NULL)
  RETURNS text
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_fail';
COMMENT ON FUNCTION pulse.fail(bigint, bigint, text, boolean, interval, json) IS
  'ends a claim with an error; returns the new state: ready or parked (again after the backoff, or '
  'after retry_in), failed (the last attempt, or retry => false) or cancelled. PU001 when the '
  'claim is lost';

-- Locks what is free of the claims asked for. "busy" are rows and keys that others hold.
CREATE OR REPLACE FUNCTION pulse._lock_claims(job_ids bigint[], tokens bigint[])
  RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN (
    WITH free AS MATERIALIZED (
      SELECT j.id, j.job_key FROM pulse.job AS j
        JOIN unnest(job_ids, tokens) AS a (id, token) ON a.id = j.id AND a.token = j.token
       WHERE j.id = ANY (job_ids)  -- a matching token tells that it runs
       ORDER BY j.id
         FOR UPDATE OF j SKIP LOCKED
    )
    SELECT coalesce(array_agg(DISTINCT f.id), '{}') FROM free AS f
     WHERE f.job_key IS NULL OR pulse._try_lock_key(f.job_key)
  );
END $$;
COMMENT ON FUNCTION pulse._lock_claims(bigint[], bigint[]) IS
  'locks, in id order and without waiting, the jobs of these claims; returns those it got';

-- The answers of a plural call: what was ended here, what others hold, what is not this claim's.
CREATE OR REPLACE FUNCTION pulse._outcomes(
    job_ids bigint[], tokens bigint[], ended bigint[], outcome text)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT a.id, CASE
      WHEN a.id = ANY (ended) AND EXISTS (
        SELECT FROM pulse.attempt AS t WHERE t.job_id = a.id AND t.token = a.token) THEN 'accepted'
      WHEN EXISTS (SELECT FROM pulse.job AS j WHERE j.id = a.id AND j.token = a.token) THEN 'busy'
      WHEN a.id IS NOT NULL AND a.token IS NOT NULL
           AND pulse._refused_token(a.id, a.token, outcome) IS NULL THEN 'accepted'
      ELSE 'stale' END
    FROM unnest(job_ids, tokens) AS a (id, token);
END $$;
COMMENT ON FUNCTION pulse._outcomes(bigint[], bigint[], bigint[], text) IS
  'accepted, stale or busy for each job asked for';

CREATE OR REPLACE FUNCTION pulse._fail_many_in_full(
    job_ids bigint[], tokens bigint[], errors text[], retry boolean[], retry_in interval[],
    payloads json[])
  RETURNS SETOF pulse.job_outcome
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked bigint[];
  endings pulse._ending[];
BEGIN
  PERFORM pulse._check_lengths(ARRAY[
    coalesce(cardinality(job_ids), 0), coalesce(cardinality(tokens), 0),
    coalesce(cardinality(errors), 0), cardinality(retry), cardinality(retry_in),
    cardinality(payloads)]);
  PERFORM pulse._check_error(e) FROM unnest(errors) AS e WHERE e IS NULL;
  PERFORM pulse._check_duration('retry_in', d, interval '0') FROM unnest(retry_in) AS d;
  PERFORM pulse._check_document('payload', p) FROM unnest(payloads) AS p;
  locked := pulse._lock_claims(job_ids, tokens);
  SELECT array_agg(ROW(a.id, 'failed', a.error, coalesce(a.again, true), a.delay, a.payload,
                       NULL)::pulse._ending)
    INTO endings
    FROM (SELECT DISTINCT ON (u.id) u.*
            FROM unnest(job_ids, tokens, errors, _fail_many_in_full.retry,
                        _fail_many_in_full.retry_in, payloads)
                 AS u (id, token, error, again, delay, payload)
            JOIN pulse.job AS j ON j.id = u.id AND j.token = u.token
           WHERE j.id = ANY (locked) ORDER BY u.id) AS a;
  PERFORM pulse._end_attempts(endings);
  RETURN QUERY SELECT * FROM pulse._outcomes(job_ids, tokens, locked, 'failed');
END $$;
COMMENT ON FUNCTION pulse._fail_many_in_full(
  bigint[], bigint[], text[], boolean[], interval[], json[]) IS
  'fail_many() for what takes more than one look at a job';

CREATE OR REPLACE FUNCTION pulse.fail_many(
    job_ids bigint[], tokens bigint[], errors text[], retry boolean[] = NULL,
    retry_in interval[] = NULL, payloads json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_fail_many';
COMMENT ON FUNCTION pulse.fail_many(bigint[], bigint[], text[], boolean[], interval[], json[]) IS
  'ends many claims with an error each. Per job: accepted, stale or busy (ask again). Never waits';

CREATE OR REPLACE FUNCTION pulse._release_in_full(job_ids bigint[], tokens bigint[])
  RETURNS SETOF pulse.job_outcome
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked bigint[];
BEGIN
  PERFORM pulse._check_lengths(ARRAY[
    coalesce(cardinality(job_ids), 0), coalesce(cardinality(tokens), 0)]);
  locked := pulse._lock_claims(job_ids, tokens);
  PERFORM pulse._end_attempts((
    SELECT array_agg(ROW(l, 'released', NULL, true, NULL, NULL, j.recovered)::pulse._ending)
      FROM unnest(locked) AS l JOIN pulse.job AS j ON j.id = l
     WHERE j.id = ANY (locked)));
  RETURN QUERY SELECT * FROM pulse._outcomes(job_ids, tokens, locked, 'released');
END $$;
COMMENT ON FUNCTION pulse._release_in_full(bigint[], bigint[]) IS
  'release() for what takes more than one look at a job';

CREATE OR REPLACE FUNCTION pulse.release(job_ids bigint[], tokens bigint[])
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_release';
COMMENT ON FUNCTION pulse.release(bigint[], bigint[]) IS
  'hands back jobs that were never started; only this gives the attempt back. Per job: '
  'accepted, stale or busy';

CREATE OR REPLACE FUNCTION pulse.snooze(
    job_id bigint, token bigint, delay interval, checkpoint json = NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked pulse.job;
BEGIN
  IF delay IS NULL THEN
    RAISE EXCEPTION 'delay must not be null' USING
      ERRCODE = 'PU004', HINT = 'Say for how long the job sleeps.';
  END IF;
  PERFORM pulse._check_duration('delay', delay, interval '0');
  PERFORM pulse._check_document('checkpoint', checkpoint);
  locked := pulse._lock_claim(job_id, token);
  IF locked.id IS NULL THEN
    PERFORM pulse._raise_stale(
      job_id, coalesce(pulse._refused_token(job_id, snooze.token, 'snoozed'), 'no live job'));
  END IF;
  IF locked.cancel_requested_at IS NOT NULL OR pulse._is_superseded(locked) THEN
    -- It may not run again: its end is that of any other end.
    PERFORM pulse._end_attempts(ARRAY[
      ROW(job_id, 'failed', 'snoozed', false, NULL, NULL, NULL)::pulse._ending]);
    RETURN;
  END IF;
  UPDATE pulse.job AS j SET
    state      = CASE WHEN j.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state,
    attempts   = j.attempts - 1,
    run_at     = pulse.now() + delay,
    checkpoint = coalesce(snooze.checkpoint, j.checkpoint),
    worker_id  = NULL, token = NULL, claimed_at = NULL, claimed_live_us = NULL,
    activity_live_us = NULL,
    updated_at = pulse.now()
  WHERE j.id = locked.id;
  PERFORM pulse._note_job(locked.identifier, locked.queue_name, pulse.now() + delay);
END $$;
COMMENT ON FUNCTION pulse.snooze(bigint, bigint, interval, json) IS
  'puts a running job back for a while; the attempt is returned. PU001 when the claim is lost';
