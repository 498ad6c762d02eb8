-- How a claim ends: complete, fail, snooze, release and their plural forms (extension/finish/).
-- Every call carries the token; a stale token changes nothing. Lock order: a single call waits for
-- the job key's lock, then for the row. A plural call takes rows by id, then their keys. A plural
-- call waits for neither, but where heartbeats and claims of the same worker lock rows, for a
-- second in all.

-- A worker that lost the reply repeats its call, so a repeat of a recorded end is no error. A
-- caller that lost the reply to a COMMIT may write its rows again and then repeat the call. So a
-- transaction that has written may repeat only an end that it has made itself, outside a savepoint.
CREATE OR REPLACE FUNCTION pulse_internal.refused_token(
    job_id bigint, token bigint, outcome text, has_written boolean = false)
  RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  state pulse.job_state;
  ender xid;
BEGIN
  SELECT f.xmin INTO ender FROM pulse.finished_job AS f
   WHERE f.id = job_id AND f.token = refused_token.token AND f.state = 'completed'
     AND refused_token.outcome = 'completed';
  IF ender IS NULL THEN
    SELECT a.xmin INTO ender FROM pulse.attempt AS a
     WHERE a.job_id = refused_token.job_id AND a.token = refused_token.token
       AND (a.outcome = refused_token.outcome
            OR a.outcome = 'cancelled'
               AND refused_token.outcome IN ('failed', 'timed_out', 'stalled', 'interrupted'));
  END IF;
  IF ender IS NOT NULL THEN
    RETURN CASE WHEN has_written AND NOT pulse_internal.is_own_transaction(ender)
             THEN 'the attempt has ended already, and this transaction has written again' END;
  END IF;
  SELECT j.state INTO state FROM pulse.job AS j WHERE j.id = job_id;
  RETURN CASE WHEN job_id IS NULL OR token IS NULL THEN 'job_id or token is NULL'
              WHEN state IS NULL THEN 'no live job'
              WHEN state = 'running' THEN 'the job is running under another claim'
              ELSE format('the job is %s again', state) END;
END $$;
COMMENT ON FUNCTION pulse_internal.refused_token(bigint, bigint, text, boolean) IS
  'Returns the reason for PU001; NULL where the call repeats an end that is on record, unless the '
  'transaction had written before the call.';

CREATE OR REPLACE FUNCTION pulse_internal.raise_stale(job_id bigint, reason text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'the claim of job % is lost', job_id USING
    ERRCODE = 'PU001', DETAIL = reason,
    HINT = CASE reason WHEN 'no live job'
      THEN 'It has ended, perhaps by an earlier call like this one: a completed job that is not '
           'kept leaves no record.'
      WHEN 'job_id or token is NULL' THEN 'Use the id and the token that pulse.claim() returned.'
      ELSE 'The attempt was recovered or has ended; its outcome does not count.' END;
END $$;
COMMENT ON FUNCTION pulse_internal.raise_stale(bigint, text) IS 'Raises PU001 with this reason.';

CREATE OR REPLACE FUNCTION pulse_internal.require_repeat(
    job_id bigint, token bigint, outcome text, has_written boolean)
  RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  reason text := pulse_internal.refused_token(job_id, token, outcome, has_written);
BEGIN
  IF reason IS NOT NULL THEN
    PERFORM pulse_internal.raise_stale(job_id, reason);
  END IF;
  RETURN coalesce((SELECT j.state::text FROM pulse.job AS j WHERE j.id = job_id),
                  (SELECT f.state::text FROM pulse.finished_job AS f WHERE f.id = job_id));
END $$;
COMMENT ON FUNCTION pulse_internal.require_repeat(bigint, bigint, text, boolean) IS
  'Returns the state of the job, NULL for a deleted job, if the call repeats an end that is on '
  'record; raises PU001 for any other call.';

CREATE OR REPLACE FUNCTION pulse.complete(job_id bigint, token bigint, result json = NULL)
  RETURNS void
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_complete';
COMMENT ON FUNCTION pulse.complete(bigint, bigint, json) IS
  'Ends a claim with success, in the caller''s transaction: the end commits or rolls back with '
  'the caller''s rows. result is kept with the job where the task keeps completed jobs. A repeat '
  'of the same call changes nothing where such a record is kept, and raises PU001 where no record '
  'is kept, and in a transaction that has written, so that the caller''s rows are not written '
  'twice. Raises PU001 for a lost claim, PU004 for a result out of range.';

CREATE OR REPLACE FUNCTION pulse.complete_many(
    job_ids bigint[], tokens bigint[], results json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_complete_many';
COMMENT ON FUNCTION pulse.complete_many(bigint[], bigint[], json[]) IS
  'Ends many claims with success, and returns an outcome for each: accepted, stale (the claim is '
  'lost) or busy (another transaction holds the job: call again), in the order of the arrays. '
  'Waits only for heartbeats and claims of the jobs'' own workers, for at most a second in all. '
  'results: NULL means none. Raises PU004 for a NULL in job_ids or tokens, for arrays of unequal '
  'length and for a result out of range.';

CREATE OR REPLACE FUNCTION pulse.fail(
    job_id bigint, token bigint, error text, retry boolean = true, retry_in interval = NULL,
    payload json = NULL)
  RETURNS text
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_fail';
COMMENT ON FUNCTION pulse.fail(bigint, bigint, text, boolean, interval, json) IS
  'Ends a claim with an error, and returns the new state of the job: ready or parked (the job '
  'runs again after retry_in, or after the task''s backoff where retry_in is NULL), failed (after '
  'the last attempt, or with retry => false) or cancelled. A repeated call returns the present '
  'state of the job, which may be running. payload: NULL keeps the job''s payload. Raises PU001 '
  'for a lost claim, PU004 for a value out of range.';

CREATE OR REPLACE FUNCTION pulse.fail_many(
    job_ids bigint[], tokens bigint[], errors text[], retry boolean[] = NULL,
    retry_in interval[] = NULL, payloads json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_fail_many';
COMMENT ON FUNCTION pulse.fail_many(bigint[], bigint[], text[], boolean[], interval[], json[]) IS
  'Ends many claims with an error each, as fail does, and returns an outcome for each: accepted, '
  'stale (the claim is lost) or busy (another transaction holds the job: call again), in the '
  'order of the arrays. Waits as complete_many does, and raises PU004 as complete_many does and '
  'for a value out of range.';

CREATE OR REPLACE FUNCTION pulse_internal.announce_late(cause text, job_ids bigint[]) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.announce(
    cause, NULL, CASE WHEN cause = 'silence' THEN 'its worker had stood still or was cut off'
      WHEN cause IN ('crash', 'exit') THEN 'the program that ran it has ended'
      ELSE 'its worker ended the attempt at its limit' END, job_ids);
END $$;
COMMENT ON FUNCTION pulse_internal.announce_late(text, bigint[]) IS
  'Notifies listeners of pulse_events, as a sweep does, about jobs whose worker ended them at a '
  'limit, after a silence of the worker or with their program.';

CREATE OR REPLACE FUNCTION pulse.fail_late(
    job_ids bigint[], tokens bigint[], errors text[], causes text[], payloads json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_fail_late';
COMMENT ON FUNCTION pulse.fail_late(bigint[], bigint[], text[], text[], json[]) IS
  'Ends claims whose worker ended the job at its timeout or stall_timeout, with the records of '
  'a sweep that comes first: outcome timed_out or stalled, the cause for the next attempt, the '
  'notification. causes: timeout or stall, by the worker''s own clock; silence: the worker had '
  'stood still or was cut off for so long that the worker ended the task; crash: the program of '
  'the job ended beside other jobs; exit: the program ended with this job alone. An attempt '
  'ended for silence is interrupted: the attempt counts no crash, and the next attempt waits '
  'for no backoff. An attempt ended for crash is lost, as if its worker was. An attempt ended '
  'for exit has failed; it is lost where the job has an earlier crash or its last chance. '
  'payloads: NULL keeps the payloads of the jobs. Returns an outcome for each, in the order of '
  'the arrays: accepted (also where a sweep has ended the attempt so), stale or busy. Waits as '
  'complete_many does, and raises PU004 as complete_many does and for a value out of range.';

CREATE OR REPLACE FUNCTION pulse.release(job_ids bigint[], tokens bigint[])
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_release';
COMMENT ON FUNCTION pulse.release(bigint[], bigint[]) IS
  'Hands back jobs that the worker has not started, and their attempts, and returns an outcome '
  'for each: accepted, stale (the claim is lost) or busy (another transaction holds the job: call '
  'again), in the order of the arrays. Waits, and raises PU004, as complete_many does.';

CREATE OR REPLACE FUNCTION pulse.snooze(
    job_id bigint, token bigint, delay interval, checkpoint json = NULL)
  RETURNS void
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_snooze';
COMMENT ON FUNCTION pulse.snooze(bigint, bigint, interval, json) IS
  'Ends a claim and makes the job due again after the delay, with the attempt given back. '
  'checkpoint: NULL keeps the job''s checkpoint. A snooze leaves no record of the attempt, so a '
  'repeat raises PU001, also in the same transaction. Raises PU001 for a lost claim, PU004 for a '
  'value out of range.';
