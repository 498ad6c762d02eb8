-- A sweep recovers jobs of lost workers, and jobs past their limits. The sweep steps over a row
-- whose change raises an error, so the row keeps no other from recovery (sql/worker/attempt.sql);
-- jobs_skipped_locked counts it until a later sweep succeeds.

CREATE OR REPLACE FUNCTION pulse_internal.count_recovered(
    INOUT result pulse_internal.sweep_result, states text[])
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  counts record;
BEGIN
  SELECT count(*) FILTER (WHERE s IN ('ready', 'parked')) AS requeued,
         count(*) FILTER (WHERE s IN ('failed', 'cancelled')) AS ended,
         count(*) FILTER (WHERE s = 'quarantined') AS quarantined
    INTO counts FROM unnest(states) AS s;
  result.jobs_requeued := result.jobs_requeued + counts.requeued;
  result.jobs_failed := result.jobs_failed + counts.ended;
  result.jobs_quarantined := result.jobs_quarantined + counts.quarantined;
END $$;
COMMENT ON FUNCTION pulse_internal.count_recovered(pulse_internal.sweep_result, text[]) IS
  'Adds the new states of recovered jobs to a sweep''s counts.';

CREATE OR REPLACE FUNCTION pulse_internal.jobs_left(
    result pulse_internal.sweep_result, max_count int)
  RETURNS int
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN max_count - result.jobs_requeued - result.jobs_failed - result.jobs_quarantined;
END $$;
COMMENT ON FUNCTION pulse_internal.jobs_left(pulse_internal.sweep_result, int) IS
  'Returns how many more jobs a sweep may end.';

CREATE OR REPLACE FUNCTION pulse_internal.recover_lost(
    INOUT result pulse_internal.sweep_result, max_count int, ends timestamptz, is_apart boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  batch CONSTANT int := 500;  -- the clock is read between two batches
  dead_id bigint;
  owner record;
  wanted int;
  ids bigint[];
  states text[];
  refused text[];
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.running_worker_id IS NOT NULL)
     AND NOT EXISTS (SELECT FROM pulse.claim_batch) THEN
    RETURN;  -- each background worker is a new process, which would have to plan what follows
  END IF;
  <<owners>>
  FOR dead_id IN SELECT d FROM pulse_internal.dead_owners() AS d LOOP
    SELECT * INTO owner FROM pulse_internal.owner_end(dead_id);
    LOOP
      wanted := least(batch, pulse_internal.jobs_left(result, max_count));
      -- A sweep that finds only locked jobs goes on to the next owner.
      IF wanted <= 0 OR (pulse_internal.jobs_left(result, max_count) < max_count
                         AND clock_timestamp() >= ends) THEN
        EXIT owners;
      END IF;
      SELECT array_agg(r.id ORDER BY r.id) FILTER (WHERE r.error IS NULL), array_agg(r.state),
             refused || array_agg(r.error) FILTER (WHERE r.error IS NOT NULL)
        INTO ids, states, refused
        FROM pulse_internal.recover_owner(
          dead_id, owner.outcome, owner.cause, owner.reason, owner.keeps_killed, wanted,
          CASE WHEN is_apart THEN ends END) AS r;
      result := pulse_internal.count_recovered(result, states);
      PERFORM pulse_internal.announce(owner.cause, dead_id, owner.reason, ids);
      EXIT WHEN coalesce(cardinality(ids), 0) < wanted;
    END LOOP;
    PERFORM pulse_internal.forget_ended(dead_id);
    ids := pulse_internal.running_ids(dead_id);
    IF owner.keeps_killed AND cardinality(ids) > 0 THEN
      ids := ARRAY(SELECT j.id FROM pulse.job AS j
                    WHERE j.id = ANY (ids) AND NOT pulse_internal.is_killed(j.identifier));
    END IF;
    result.jobs_skipped_locked := result.jobs_skipped_locked + cardinality(ids);
  END LOOP;
  PERFORM pulse_internal.warn_of_refused(refused);
END $$;
COMMENT ON FUNCTION pulse_internal.recover_lost(
  pulse_internal.sweep_result, int, timestamptz, boolean) IS
  'Recovers running jobs whose owners are not alive, until the sweep has ended max_count jobs, or '
  'until that time once the call has ended some. is_apart: each job apart.';

CREATE OR REPLACE FUNCTION pulse_internal.recover_late(
    INOUT result pulse_internal.sweep_result, max_count int, live_us bigint,
    apart_until timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  wanted int := least(pulse_internal.jobs_left(result, max_count), 1000);
  endings pulse_internal.ending[];
  ended record;
  refused text[];
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.heartbeat AS h WHERE h.default_timeout_us IS NOT NULL)
     AND NOT EXISTS (
       SELECT FROM pulse.task AS t WHERE t.timeout IS NOT NULL OR t.stall_timeout IS NOT NULL) THEN
    RETURN;
  END IF;
  endings := pulse_internal.lock_late(live_us, CASE WHEN apart_until IS NULL THEN wanted END);
  FOR ended IN
    SELECT l.cause, l.error, array_agg(e.state) AS states,
           array_agg(e.id ORDER BY e.id) FILTER (WHERE e.error IS NULL) AS ids,
           array_agg(e.error) FILTER (WHERE e.error IS NOT NULL) AS refused,
           count(*) FILTER (WHERE e.outcome = 'timed_out') AS timed_out,
           count(*) FILTER (WHERE e.outcome = 'stalled') AS stalled
      FROM pulse_internal.end_many(endings, NULL, wanted, apart_until) AS e
      JOIN unnest(endings) AS l ON l.id = e.id
     GROUP BY l.cause, l.error
     ORDER BY min(e.id)
  LOOP
    result := pulse_internal.count_recovered(result, ended.states);
    result.jobs_timed_out := result.jobs_timed_out + ended.timed_out;
    result.jobs_stalled := result.jobs_stalled + ended.stalled;
    PERFORM pulse_internal.announce(ended.cause, NULL, ended.error, ended.ids);
    refused := refused || ended.refused;
  END LOOP;
  PERFORM pulse_internal.warn_of_refused(refused);
  IF coalesce(cardinality(endings), 0) < wanted THEN
    result.jobs_skipped_locked := result.jobs_skipped_locked
      + (SELECT count(*) FROM pulse_internal.late(live_us));
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.recover_late(
  pulse_internal.sweep_result, int, bigint, timestamptz) IS
  'Ends attempts past their timeout or stall_timeout, until the sweep has ended max_count jobs, '
  'at most 1,000 attempts. apart_until: each attempt apart, until that time; NULL: all in one '
  'step.';

CREATE OR REPLACE FUNCTION pulse_internal.recover_all(
    max_jobs int, ends timestamptz, is_apart boolean)
  RETURNS pulse_internal.sweep_result
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  result pulse_internal.sweep_result := ROW(0, 0, 0, 0, 0, 0, 0, interval '0');
  live_us bigint := pulse_internal.live_now_us();
BEGIN
  SELECT m.marked, m.skipped INTO result.workers_lost, result.jobs_skipped_locked
    FROM pulse_internal.mark_all_lost(live_us, max_jobs, ends, is_apart) AS m;
  result := pulse_internal.recover_lost(result, max_jobs, ends, is_apart);
  IF pulse_internal.jobs_left(result, max_jobs) = max_jobs
     OR (pulse_internal.jobs_left(result, max_jobs) > 0 AND clock_timestamp() < ends) THEN
    result := pulse_internal.recover_late(result, max_jobs, live_us,
                                          CASE WHEN is_apart THEN ends END);
  END IF;
  RETURN result;
END $$;
COMMENT ON FUNCTION pulse_internal.recover_all(int, timestamptz, boolean) IS
  'Records the loss of workers and ends the attempts of dead owners and the late attempts, at most '
  'max_jobs jobs, until that time. is_apart: each row in a savepoint of its own.';

-- One savepoint where no row raises an error. Time that an error has cost is given back.
CREATE OR REPLACE FUNCTION pulse_internal.recover(max_jobs int, ends timestamptz)
  RETURNS pulse_internal.sweep_result
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  BEGIN
    RETURN pulse_internal.recover_all(max_jobs, ends, false);
  EXCEPTION WHEN OTHERS OR assert_failure THEN
    IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
      RAISE;
    END IF;
  END;
  RETURN pulse_internal.recover_all(
    max_jobs, greatest(ends, pulse_internal.sweep_end()), true);
END $$;
COMMENT ON FUNCTION pulse_internal.recover(int, timestamptz) IS
  'Calls recover_all, and repeats each row apart where the call raises an error; so the sweep '
  'steps over rows that raise an error.';

