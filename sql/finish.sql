-- How a claim ends: complete, fail, snooze, release and their plural forms. Every call carries the
-- token; a stale one changes nothing. extension/finish/ has them. Lock order: a single call waits
-- for the job key's lock, then for the row; a plural one takes rows by id, then their keys, and
-- waits for neither.

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

CREATE OR REPLACE FUNCTION pulse._state_of(job_id bigint) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN coalesce((SELECT j.state::text FROM pulse.job AS j WHERE j.id = job_id),
                  (SELECT f.state::text FROM pulse.finished_job AS f WHERE f.id = job_id));
END $$;
COMMENT ON FUNCTION pulse._state_of(bigint) IS 'the state of a live or finished job, or NULL';

CREATE OR REPLACE FUNCTION pulse._raise_stale(job_id bigint, reason text) RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_raise_stale';
COMMENT ON FUNCTION pulse._raise_stale(bigint, text) IS 'raises PU001';

CREATE OR REPLACE FUNCTION pulse.complete(job_id bigint, token bigint, result json = NULL)
  RETURNS void
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_complete';
COMMENT ON FUNCTION pulse.complete(bigint, bigint, json) IS
  'ends a claim with success, in the caller''s transaction: it commits or rolls back with the '
  'caller''s '
  'rows. PU001 when the claim is lost';

CREATE OR REPLACE FUNCTION pulse.complete_many(
    job_ids bigint[], tokens bigint[], results json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_complete_many';
COMMENT ON FUNCTION pulse.complete_many(bigint[], bigint[], json[]) IS
  'ends many claims with success. Per job: accepted, stale (not this claim''s any more) or '
  'busy (held by '
  'another transaction: ask again). Never waits. PU004 for arrays of unequal length';

CREATE OR REPLACE FUNCTION pulse.fail(
    job_id bigint, token bigint, error text, retry boolean = true, retry_in interval = NULL,
    payload json = NULL)
  RETURNS text
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_fail';
COMMENT ON FUNCTION pulse.fail(bigint, bigint, text, boolean, interval, json) IS
  'ends a claim with an error; returns the new state: ready or parked (again after the backoff, or '
  'after retry_in), failed (the last attempt, or retry => false) or cancelled. PU001 when the '
  'claim is lost';

CREATE OR REPLACE FUNCTION pulse.fail_many(
    job_ids bigint[], tokens bigint[], errors text[], retry boolean[] = NULL,
    retry_in interval[] = NULL, payloads json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_fail_many';
COMMENT ON FUNCTION pulse.fail_many(bigint[], bigint[], text[], boolean[], interval[], json[]) IS
  'ends many claims with an error each. Per job: accepted, stale or busy (ask again). Never waits';

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
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_snooze';
COMMENT ON FUNCTION pulse.snooze(bigint, bigint, interval, json) IS
  'puts a running job back for a while; the attempt is returned. PU001 when the claim is lost';
