-- Taking jobs: claim hands out the first due jobs (extension/claim/claim.cpp), claim_job takes a
-- single job by id, and held repeats the jobs that claims returned. Lock order: worker (shared),
-- queue (never waited for), row.

CREATE OR REPLACE FUNCTION pulse_internal.next_token() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_next_token';
COMMENT ON FUNCTION pulse_internal.next_token() IS
  'Returns a number that no claim has had before, also across failover, restore and pg_upgrade. '
  'Raises PU008 in a copy that an operator has not adopted.';

CREATE OR REPLACE FUNCTION pulse_internal.require_claims() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_require_claims';
COMMENT ON FUNCTION pulse_internal.require_claims() IS
  'Raises PU008 while pulse.claims is off, and in a copy that an operator has not adopted.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_worker_shared(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_share_worker';
COMMENT ON FUNCTION pulse_internal.lock_worker_shared(bigint) IS
  'Takes the worker''s lock as claims of the worker do: until the transaction ends, no session '
  'declares the worker lost.';

CREATE OR REPLACE FUNCTION pulse_internal.try_lock_worker_shared(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_try_share_worker';
COMMENT ON FUNCTION pulse_internal.try_lock_worker_shared(bigint) IS
  'Takes the worker''s lock as claims of the worker do, and returns true; returns false while a '
  'session that declares the worker lost, or a claim of an isolated job, has the lock.';

CREATE OR REPLACE FUNCTION pulse_internal.try_lock_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_try_lock_worker';
COMMENT ON FUNCTION pulse_internal.try_lock_worker(bigint) IS
  'Takes the right to declare this worker lost; returns false while a claim of the worker is in '
  'progress or another session has the right.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_worker';
COMMENT ON FUNCTION pulse_internal.lock_worker(bigint) IS
  'Takes the right to declare this worker lost, and waits for another session that has the right, '
  'as a claim of an isolated job has; returns false while another claim of the worker is in '
  'progress.';

CREATE OR REPLACE FUNCTION pulse_internal.require_alive(worker_id bigint) RETURNS text
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_require_alive';
COMMENT ON FUNCTION pulse_internal.require_alive(bigint) IS
  'Returns the status of a worker. Raises PU002 for an unknown, lost or stopped one.';

CREATE OR REPLACE FUNCTION pulse.claim(
    worker_id bigint,
    max_jobs int = 1,
    tasks text[] = NULL,
    forbidden_flags text[] = NULL,
    start_jobs int = NULL)
  RETURNS SETOF pulse.claimed_job
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 10
  AS 'MODULE_PATHNAME', 'pulse_claim';
COMMENT ON FUNCTION pulse.claim(bigint, int, text[], text[], int) IS
  'Hands out at most max_jobs due jobs in the order of priority, run_at and id; each consumes an '
  'attempt. tasks: NULL means every task that the worker registered for. Jobs with one of '
  'forbidden_flags stay for other workers. The worker starts the first start_jobs at once (NULL: '
  'all); the rest may wait in the worker, and the claim ends at a job that may not wait: a job of '
  'a queue, or a job on the last attempt. Raises PU002 for an unknown, lost or stopped worker, '
  'PU004 for a value out of range, PU007 outside READ COMMITTED, PU008 while pulse.claims is off '
  'and in a copy that an operator has not adopted.';

CREATE OR REPLACE FUNCTION pulse_internal.as_claimed(job pulse.job) RETURNS pulse.claimed_job
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_as_claimed';
COMMENT ON FUNCTION pulse_internal.as_claimed(pulse.job) IS
  'Returns a running job as the worker gets it.';

CREATE OR REPLACE FUNCTION pulse_internal.outwait_claims(worker_id bigint) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_outwait_claims';
COMMENT ON FUNCTION pulse_internal.outwait_claims(bigint) IS
  'Waits for the claims of this worker that are in progress now, for at most five seconds.';

-- The reply of a claim can be lost before the claim commits. So the function waits for the claims
-- in progress first, and the query comes afterwards, with a snapshot of its own.
CREATE OR REPLACE FUNCTION pulse.held(worker_id bigint) RETURNS SETOF pulse.claimed_job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_given('worker_id', held.worker_id IS NOT NULL,
    'Use the id that pulse.register_worker() returned.');
  PERFORM pulse_internal.outwait_claims(held.worker_id);
  RETURN QUERY
  SELECT c.* FROM pulse.job AS j CROSS JOIN LATERAL pulse_internal.as_claimed(j) AS c
   WHERE j.id = ANY (pulse_internal.running_ids(held.worker_id))
   ORDER BY j.id;
END $$;
COMMENT ON FUNCTION pulse.held(bigint) IS
  'Returns the jobs that this worker holds, as the worker''s claims returned them. A worker asks '
  'after the reply of a claim was lost. Waits for claims of the worker that are in progress, for '
  'at most five seconds. Raises PU004 for NULL.';

CREATE OR REPLACE FUNCTION pulse_internal.unclaimable_reason(job pulse.job) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  owner pulse.heartbeat;
  live_us bigint := pulse_internal.live_now_us();
BEGIN
  IF job.state = 'parked' THEN
    RETURN 'parked';
  ELSIF job.state = 'ready' THEN
    RETURN CASE WHEN job.start_by < pulse.now() THEN 'expired'
                WHEN job.run_at > pulse.now() THEN 'future' END;
  END IF;
  SELECT * INTO owner FROM pulse.heartbeat AS h WHERE h.worker_id = job.worker_id;
  IF owner.worker_id IS NULL THEN
    RETURN NULL;
  ELSIF owner.verdict NOT IN ('lost', 'stopped')
     AND pulse_internal.loss_cause(owner, live_us) IS NULL THEN
    RETURN 'running';
  END IF;
  RETURN CASE WHEN pulse_internal.may_still_run(owner, live_us)
                   AND pulse_internal.is_killed(job.identifier) THEN 'running' END;
END $$;
COMMENT ON FUNCTION pulse_internal.unclaimable_reason(pulse.job) IS
  'Returns why no worker may claim a job: parked, expired, future or running (its owner lives); '
  'NULL for a job that a worker may claim.';

-- A worker that acknowledges a message for the reason "running" must not acknowledge where only a
-- lock keeps the job from the worker.
CREATE OR REPLACE FUNCTION pulse_internal.unlockable_reason(job_id bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  wanted pulse.job;
BEGIN
  SELECT * INTO wanted FROM pulse.job AS j WHERE j.id = unlockable_reason.job_id;
  IF wanted.id IS NOT NULL THEN
    RETURN CASE pulse_internal.unclaimable_reason(wanted) WHEN 'running' THEN 'running'
      ELSE 'busy' END;
  END IF;
  RETURN CASE WHEN EXISTS (SELECT FROM pulse.finished_job AS f
                            WHERE f.id = unlockable_reason.job_id)
           THEN 'finished' ELSE 'unknown' END;
END $$;
COMMENT ON FUNCTION pulse_internal.unlockable_reason(bigint) IS
  'Returns why a claim could not lock a job: running (its owner lives), busy (another transaction '
  'holds the row), finished or unknown.';

CREATE OR REPLACE FUNCTION pulse_internal.must_wait_isolated(job pulse.job, worker_id bigint)
  RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_must_wait_alone';
COMMENT ON FUNCTION pulse_internal.must_wait_isolated(pulse.job, bigint) IS
  'Returns whether the rule of the last chance keeps this locked job from this worker. A worker '
  'that may have a poison suspect gets no other job until the suspect has ended.';

CREATE OR REPLACE FUNCTION pulse_internal.take_job(job pulse.job, worker_id bigint)
  RETURNS pulse.job
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_take_job';
COMMENT ON FUNCTION pulse_internal.take_job(pulse.job, bigint) IS
  'Claims a locked job for this worker, and returns the row; the worker may claim the job.';

CREATE OR REPLACE FUNCTION pulse.claim_job(
    worker_id bigint, job_id bigint, OUT reason text, OUT job pulse.claimed_job)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  wanted pulse.job;
  status text;
BEGIN
  PERFORM pulse_internal.require_read_committed('claim_job');
  PERFORM pulse_internal.require_claims();
  PERFORM pulse_internal.lock_worker_shared(claim_job.worker_id);
  LOCK TABLE pulse.job IN ROW EXCLUSIVE MODE;
  status := pulse_internal.require_alive(claim_job.worker_id);
  -- The job's queue may have a place that no claim has given away yet.
  IF EXISTS (SELECT FROM pulse.job AS j WHERE j.id = claim_job.job_id AND j.state = 'parked') THEN
    PERFORM pulse_internal.promote_marked(256);
  END IF;
  SELECT * INTO wanted FROM pulse.job AS j WHERE j.id = claim_job.job_id FOR UPDATE SKIP LOCKED;
  IF wanted.id IS NULL THEN
    reason := pulse_internal.unlockable_reason(claim_job.job_id);
    RETURN;
  END IF;
  IF wanted.state = 'running' AND wanted.worker_id = claim_job.worker_id THEN
    reason := 'yours';
    job := pulse_internal.as_claimed(wanted);
    RETURN;
  END IF;
  reason := pulse_internal.unclaimable_reason(wanted);
  IF reason IS NOT NULL OR status <> 'alive' THEN
    -- A session that resolves waits may have skipped this locked row, so the commit sets the
    -- parent mark again.
    PERFORM pulse_internal.note_parent(wanted.waits_on);
    reason := coalesce(reason, 'draining');
    RETURN;
  END IF;
  IF wanted.state = 'running' THEN
    wanted := pulse_internal.recover_for_claim(wanted);
    IF wanted.id IS NULL THEN
      reason := 'finished';
      RETURN;
    ELSIF wanted.state = 'running' THEN
      reason := 'busy';  -- a locked table keeps the end of the attempt from pausing the queue
      RETURN;
    ELSIF wanted.state = 'parked' THEN
      -- The queue may be paused by now, or without rate tokens: only a promotion knows.
      reason := 'parked';
      RETURN;
    END IF;
  END IF;
  -- The rule reads the crashes, so the rule comes after the recovery, which may have counted a
  -- crash.
  IF pulse_internal.must_wait_isolated(wanted, claim_job.worker_id) THEN
    reason := 'parked';
    RETURN;
  END IF;
  reason := 'claimed';
  job := pulse_internal.as_claimed(pulse_internal.take_job(wanted, claim_job.worker_id));
END $$;
COMMENT ON FUNCTION pulse.claim_job(bigint, bigint) IS
  'Claims a single job by id: a due job, or a job whose owner is lost or silent beyond the '
  'threshold (a job of a queue waits behind the queue first). reason tells the outcome: claimed; '
  'yours (the worker has the job already, with the same token); running (another living worker '
  'has the job); busy (another transaction holds the job: call again); parked (behind the queue, '
  'or a poison suspect that needs an idle worker); future; expired (past start_by: the next sweep '
  'ends the job); draining (an operator asked this worker to drain or to stop); finished (the job '
  'ended and is kept); unknown (the job has no row: the job completed and is not kept, was '
  'removed, or is not committed). job is NULL unless the reason is claimed or yours. Raises PU002 '
  'for an unknown, lost or stopped worker, PU007 outside READ COMMITTED, PU008 while pulse.claims '
  'is off and in a copy that an operator has not adopted.';
