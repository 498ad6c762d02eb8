-- Expiry: no claim hands out a job after its start_by, and a sweep ends the job as expired. The
-- first claim empties start_by, so a job that was once claimed never expires.

CREATE OR REPLACE FUNCTION pulse_internal.check_start_by(start_by timestamptz) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT isfinite(start_by) THEN
    RAISE EXCEPTION 'start_by is %, which is no time', start_by USING
      ERRCODE = 'PU004', HINT = 'Leave it out for a job that does not expire.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_start_by(timestamptz) IS
  'Raises PU004 for an infinite time; NULL passes.';

CREATE OR REPLACE FUNCTION pulse_internal.set_start_by(job_id bigint, start_by timestamptz)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  changed pulse.job;
BEGIN
  PERFORM pulse_internal.check_start_by(set_start_by.start_by);
  UPDATE pulse.job AS j SET start_by = set_start_by.start_by
   WHERE j.id = set_start_by.job_id AND j.state <> 'running'
  RETURNING j.* INTO changed;
  PERFORM pulse_internal.note_sweep_due(changed.start_by);
  RETURN changed;
END $$;
COMMENT ON FUNCTION pulse_internal.set_start_by(bigint, timestamptz) IS
  'Sets or takes away (NULL) the start_by of a waiting job, and returns the row; NULL for another '
  'job. Raises PU004 for an infinite time.';

-- A job that another transaction holds is left to a later sweep.
CREATE OR REPLACE FUNCTION pulse_internal.expire_jobs(
    max_count int, ends timestamptz, is_apart boolean)
  RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off AS $$
DECLARE
  batch CONSTANT int := 500;  -- the clock is read between two batches
  moment timestamptz := pulse.now();
  wanted int;
  ids bigint[];
  expired int := 0;
  passed bigint[] := '{}';
  apart record;
  refused text[];
BEGIN
  LOOP
    wanted := least(batch, max_count - expired);
    EXIT WHEN wanted <= 0;
    ids := ARRAY(
      SELECT j.id FROM pulse.job AS j
       WHERE j.start_by < moment AND j.state <> 'running' AND j.id <> ALL (passed)
       ORDER BY j.start_by LIMIT wanted
         FOR UPDATE SKIP LOCKED);
    EXIT WHEN cardinality(ids) = 0;
    IF is_apart THEN
      passed := passed || ids;
      apart := pulse_internal.do_apart('job', ids,
        'SELECT pulse_internal.finish_waiting(ARRAY[$1], ''expired'', NULL)', ends);
      ids := coalesce(apart.done, '{}');
      refused := refused || apart.errors;
    ELSE
      PERFORM pulse_internal.finish_waiting(ids, 'expired', NULL);
    END IF;
    PERFORM pulse_internal.announce('expiry', NULL, 'not started in time', ids);
    expired := expired + cardinality(ids);
    EXIT WHEN clock_timestamp() >= ends;
  END LOOP;
  PERFORM pulse_internal.warn_of_refused(refused);
  IF expired > 0 AND clock_timestamp() >= ends THEN
    PERFORM pulse_internal.note_sweep_due(moment);
  ELSE
    -- Times that crowd share a sweep.
    PERFORM pulse_internal.note_sweep_due(greatest(j.start_by, moment + interval '20 ms'))
       FROM pulse.job AS j WHERE j.start_by >= moment ORDER BY j.start_by LIMIT 1;
  END IF;
  RETURN expired;
END $$;
COMMENT ON FUNCTION pulse_internal.expire_jobs(int, timestamptz, boolean) IS
  'Ends at most max_count jobs past their start_by, until that time once the call has ended some; '
  'returns how many, and requests a sweep for the next job. is_apart: each job apart.';
