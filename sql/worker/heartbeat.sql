-- Heartbeats. extension/liveness/heartbeat.cpp records the beat and answers idle workers. This part
-- answers a worker that holds jobs or names some.

-- A heartbeat gives back a job that two heartbeats in a row do not name: the reply of its claim was
-- lost. One heartbeat is not enough, because a claim may commit while the heartbeat is under way. A
-- heartbeat steps over a job whose end raises an error, because the heartbeat must not fail.
CREATE OR REPLACE FUNCTION pulse_internal.settle_missing(beat pulse.heartbeat, job_ids bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  ids bigint[];
  tokens bigint[];
  endings pulse_internal.ending[];
  ending_tokens bigint[];
BEGIN
  SELECT array_agg(j.id ORDER BY j.id), array_agg(j.token ORDER BY j.id) INTO ids, tokens
    FROM pulse.job AS j
   WHERE j.running_worker_id = beat.worker_id AND j.id <> ALL (job_ids);
  IF ids IS NOT NULL AND beat.missing_job_ids IS NOT NULL THEN
    SELECT array_agg(ROW(m.id, 'interrupted', 'the worker does not know of this claim', true, NULL,
                         NULL, NULL)::pulse_internal.ending), array_agg(m.token)
      INTO endings, ending_tokens
      FROM unnest(beat.missing_job_ids, beat.missing_tokens) AS m (id, token)
     WHERE m.id = ANY (ids);
    PERFORM pulse_internal.warn_of_refused(array_agg(e.error) FILTER (WHERE e.error IS NOT NULL))
       FROM pulse_internal.end_many(endings, ending_tokens, NULL, 'infinity') AS e;
  END IF;
  IF ids IS DISTINCT FROM beat.missing_job_ids OR tokens IS DISTINCT FROM beat.missing_tokens THEN
    UPDATE pulse.heartbeat AS h SET missing_job_ids = ids, missing_tokens = tokens
     WHERE h.worker_id = beat.worker_id;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.settle_missing(pulse.heartbeat, bigint[]) IS
  'Gives back the jobs that neither this heartbeat nor the worker''s last heartbeat names, and '
  'remembers the jobs that only this heartbeat does not name.';

-- The heartbeat has locked the worker's row, so no other session changes it meanwhile.
CREATE OR REPLACE FUNCTION pulse_internal.answer_for_jobs(
    worker_id bigint, job_ids bigint[],
    OUT status text, OUT revoked bigint[], OUT cancelled bigint[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  beat pulse.heartbeat;
BEGIN
  PERFORM pulse_internal.index_running(worker_id);
  SELECT * INTO beat FROM pulse.heartbeat AS h WHERE h.worker_id = answer_for_jobs.worker_id;
  status := beat.verdict;
  revoked := '{}';
  IF job_ids IS NOT NULL THEN
    PERFORM pulse_internal.settle_missing(beat, job_ids);
    SELECT coalesce(array_agg(a.id), '{}') INTO revoked
      FROM unnest(job_ids) AS a (id)
     WHERE NOT EXISTS (SELECT FROM pulse.job AS j
                        WHERE j.id = a.id AND j.state = 'running' AND j.worker_id = beat.worker_id);
  END IF;
  SELECT coalesce(array_agg(j.id), '{}') INTO cancelled
    FROM pulse.job AS j
   WHERE j.running_worker_id = beat.worker_id AND j.cancel_requested_at IS NOT NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.answer_for_jobs(bigint, bigint[]) IS
  'Returns the answer to the heartbeat of a worker that holds jobs, names some, or missed some '
  'last time.';

-- A worker that beats lives, so it was not lost. force_unlock_workers counts no crash, so there is
-- no crash to take back.
CREATE OR REPLACE FUNCTION pulse_internal.answer_lost(
    worker_id bigint, job_ids bigint[],
    OUT status text, OUT revoked bigint[], OUT cancelled bigint[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  UPDATE pulse.heartbeat AS h SET lost_cause = 'returned'
   WHERE h.worker_id = answer_lost.worker_id AND h.verdict = 'lost'
     AND h.lost_cause IN ('session', 'host', 'silence');
  IF FOUND THEN
    PERFORM pulse_internal.note_sweep_due(clock_timestamp());
  END IF;
  status := 'lost';
  revoked := coalesce(job_ids, '{}');
  cancelled := '{}';
END $$;
COMMENT ON FUNCTION pulse_internal.answer_lost(bigint, bigint[]) IS
  'Returns the answer to the heartbeat of a worker that has ended or is unknown. The worker must '
  'stop every job that the heartbeat names. Notes that a lost worker has returned.';

CREATE OR REPLACE FUNCTION pulse_internal.beat_beside(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_beat_beside';
COMMENT ON FUNCTION pulse_internal.beat_beside(bigint) IS
  'Records a heartbeat with a call of another purpose, if half of heartbeat_interval is over and '
  'the call is a transaction of its own.';

CREATE OR REPLACE FUNCTION pulse.heartbeat(
    worker_id bigint, job_ids bigint[] = NULL,
    OUT status text, OUT revoked bigint[], OUT cancelled bigint[])
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_heartbeat';
COMMENT ON FUNCTION pulse.heartbeat(bigint, bigint[]) IS
  'Records that the worker lives. status: alive, draining, stopping or lost (also for an unknown '
  'or stopped worker). job_ids names exactly the jobs that the worker knows of; NULL says nothing '
  'about jobs. revoked: jobs of job_ids whose claim is lost. A job that two heartbeats in a row do '
  'not name is given back. cancelled: jobs that the worker must end. After the heartbeat of a lost '
  'worker, a sweep takes back the crashes that its loss counted. Raises no error for any worker.';
