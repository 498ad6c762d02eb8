-- Lost workers: which workers are lost, and the recovery of their jobs. Every step locks rows for a
-- change without waiting, and judges again on the locked row. Lock order: heartbeat row, worker
-- lock, job rows by id, job keys.

CREATE OR REPLACE FUNCTION pulse_internal.is_silent(beat pulse.heartbeat, live_us bigint)
  RETURNS boolean
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN live_us - beat.beat_live_us
         > greatest(beat.threshold_us, pulse_internal.least_threshold_us(beat.interval_us));
END $$;
COMMENT ON FUNCTION pulse_internal.is_silent(pulse.heartbeat, bigint) IS
  'Returns whether the last heartbeat of this worker is older than its threshold.';

-- Judges one version of a heartbeat row. Each sweep asks for each worker.
CREATE OR REPLACE FUNCTION pulse_internal.loss_cause(beat pulse.heartbeat, live_us bigint)
  RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE
    WHEN beat.verdict IN ('lost', 'stopped') THEN NULL
    WHEN beat.attachment IS NOT NULL AND beat.beat_live_us <= beat.detached_live_us
         AND live_us - beat.detached_live_us >= pulse_internal.setting_us('disconnect_grace')
      THEN 'session'
    WHEN beat.attachment IS NOT NULL AND beat.detached_live_us IS NULL AND beat.interval_us = 0
      THEN NULL
    WHEN pulse_internal.is_silent(beat, live_us) THEN 'silence' END;
END $$;
COMMENT ON FUNCTION pulse_internal.loss_cause(pulse.heartbeat, bigint) IS
  'Returns why this worker counts as lost: session (the attached session ended), silence (no '
  'heartbeat within the threshold) or NULL (the worker is alive).';

-- The end of a session by the client is stamped with the moment of the end. A session that the
-- server ended, or whose end is not recorded, is forgotten, so that silence decides.
CREATE OR REPLACE FUNCTION pulse_internal.see_session_end(
    INOUT beat pulse.heartbeat, live_us bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ended_live_us bigint;
BEGIN
  IF beat.attachment IS NULL OR beat.detached_live_us IS NOT NULL THEN
    RETURN;
  END IF;
  CASE pulse_internal.attachment_state(beat.attachment, beat.incarnation)
    WHEN 'ended' THEN
      ended_live_us := pulse_internal.ended_live_us(beat.attachment);
      -- A worker that has beaten since, from another session, gets a grace that begins now.
      beat.detached_live_us := CASE WHEN ended_live_us >= beat.beat_live_us THEN ended_live_us
        ELSE greatest(live_us, beat.beat_live_us) END;
    WHEN 'unknown' THEN
      beat.attachment := NULL;
      -- A worker without heartbeats had only the session: its silence begins now.
      beat.beat_live_us := CASE WHEN beat.interval_us = 0
        THEN greatest(live_us, beat.beat_live_us) ELSE beat.beat_live_us END;
    ELSE NULL;
  END CASE;
END $$;
COMMENT ON FUNCTION pulse_internal.see_session_end(pulse.heartbeat, bigint) IS
  'Returns a heartbeat row with the known end of the attached session.';

-- Runs before the clock's tick, because an end from before the tick would be stamped with the tick.
-- Most of these workers live, above all after a restart, and their heartbeats wait for the commit.
-- So the commit follows at once.
CREATE OR REPLACE FUNCTION pulse_internal.stamp_ended_sessions(live_us bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  UPDATE pulse.heartbeat AS h
     SET (attachment, detached_live_us, beat_live_us) =
         (SELECT s.attachment, s.detached_live_us, s.beat_live_us
            FROM pulse_internal.see_session_end(h, live_us) AS s)
   WHERE h.worker_id = ANY (ARRAY(
           SELECT l.worker_id FROM pulse.heartbeat AS l
            WHERE l.attachment IS NOT NULL AND l.detached_live_us IS NULL
              AND l.verdict NOT IN ('lost', 'stopped')
              AND pulse_internal.attachment_state(l.attachment, l.incarnation) <> 'open'
              FOR UPDATE SKIP LOCKED))
     -- A worker that attached anew meanwhile lives by the new session.
     AND pulse_internal.attachment_state(h.attachment, h.incarnation) <> 'open';
END $$;
COMMENT ON FUNCTION pulse_internal.stamp_ended_sessions(bigint) IS
  'Stamps workers whose attached session has ended with that moment on the liveness clock.';

-- A grace that ends after the sweep has judged, but before the sweep commits, is over by then: the
-- requested sweep is due at once. If the sweep has judged a worker and not recorded the loss,
-- another transaction has locked the worker, so a sweep at once is of no use.
CREATE OR REPLACE FUNCTION pulse_internal.grace_ends_in(judged_us bigint, live_us bigint)
  RETURNS interval
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  grace_us bigint := pulse_internal.setting_us('disconnect_grace');
BEGIN
  RETURN (SELECT pulse_internal.interval(min(CASE WHEN h.detached_live_us + grace_us > judged_us
                   THEN h.detached_live_us + grace_us - live_us
                   ELSE pulse_internal.setting_us('poll_interval') END))
            FROM pulse.heartbeat AS h
           WHERE h.attachment IS NOT NULL AND h.detached_live_us IS NOT NULL
             AND h.beat_live_us <= h.detached_live_us AND h.verdict NOT IN ('lost', 'stopped')
             AND grace_us IS NOT NULL);
END $$;
COMMENT ON FUNCTION pulse_internal.grace_ends_in(bigint, bigint) IS
  'Returns how long after live_us the earliest disconnect_grace ends for a sweep that judged at '
  'judged_us; NULL: no grace runs.';

CREATE OR REPLACE FUNCTION pulse_internal.mark_lost(worker_id bigint, cause text, reason text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  UPDATE pulse.heartbeat AS h SET verdict = 'lost', lost_cause = cause
   WHERE h.worker_id = mark_lost.worker_id;
  UPDATE pulse.worker AS w SET state = 'lost', ended_at = pulse.now(), reason = mark_lost.reason
   WHERE w.id = mark_lost.worker_id;
  PERFORM pulse_internal.note_all_waiters();
END $$;
COMMENT ON FUNCTION pulse_internal.mark_lost(bigint, text, text) IS
  'Records that a locked worker is lost.';

-- Records the loss of workers, oldest heartbeat first. A sweep skips a worker that another
-- transaction locks, and counts the running jobs of the worker as skipped.
--
-- The lock of a row has the last word: a heartbeat that came before the lock counts, a later
-- heartbeat waits and hears "lost". live_us is older than any lock, so no beat seems older than it
-- is. A worker that lives after all gets the row back: the savepoint ends, and the next check skips
-- the worker.
CREATE OR REPLACE FUNCTION pulse_internal.mark_all_lost(
    live_us bigint, max_count int, ends timestamptz, is_apart boolean,
    OUT marked int, OUT skipped int)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  candidate bigint;
  beat pulse.heartbeat;
  cause text;
  reason text;
  passed bigint[] := '{}';
  apart record;
  refused text[];
BEGIN
  skipped := 0;
  LOOP
    marked := 0;
    BEGIN
      FOR candidate IN
        SELECT h.worker_id FROM pulse.heartbeat AS h
         WHERE h.verdict NOT IN ('lost', 'stopped') AND h.worker_id <> ALL (passed)
           AND pulse_internal.loss_cause(pulse_internal.see_session_end(h, live_us), live_us) IS NOT
             NULL
         ORDER BY h.beat_live_us
      LOOP
        EXIT WHEN marked >= max_count OR (marked > 0 AND clock_timestamp() >= ends);
        SELECT * INTO beat FROM pulse.heartbeat AS h WHERE h.worker_id = candidate
           FOR UPDATE SKIP LOCKED;
        cause := pulse_internal.loss_cause(pulse_internal.see_session_end(beat, live_us), live_us);
        IF cause IS NULL OR NOT pulse_internal.try_lock_worker(candidate) THEN
          passed := passed || candidate;
          IF beat.worker_id IS NULL OR cause IS NOT NULL THEN
            skipped := skipped + cardinality(pulse_internal.running_ids(candidate));
          END IF;
          CONTINUE WHEN beat.worker_id IS NULL;
          RAISE EXCEPTION 'the worker lives' USING ERRCODE = 'PU101';
        END IF;
        reason := CASE cause WHEN 'session' THEN 'its session ended'
          ELSE format('no heartbeat for %s', pulse_internal.interval(live_us - beat.beat_live_us))
            END;
        IF is_apart THEN
          apart := pulse_internal.do_apart('worker', ARRAY[candidate], format(
            'SELECT pulse_internal.mark_lost($1, %L, %L)', cause, reason), ends);
          refused := refused || apart.errors;
          IF apart.done IS NULL THEN
            passed := passed || candidate;
            skipped := skipped + cardinality(pulse_internal.running_ids(candidate));
            CONTINUE;
          END IF;
        ELSE
          PERFORM pulse_internal.mark_lost(candidate, cause, reason);
        END IF;
        marked := marked + 1;
      END LOOP;
      PERFORM pulse_internal.warn_of_refused(refused);
      RETURN;
    EXCEPTION WHEN SQLSTATE 'PU101' THEN
      NULL;  -- tries again
    END;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.mark_all_lost(bigint, int, timestamptz, boolean) IS
  'Records the loss of at most max_count workers, one at least, until that time; returns how many, '
  'and how many running jobs belong to lost workers that the call skipped because of a lock.';

-- A session also ends where a network is cut, and no server can tell a cut network from a dead
-- process. A worker ends the tasks of on_unreachable 'kill' before its threshold is over, and reads
-- "lost" at the next beat. A worker without heartbeats has declared that it lives as long as the
-- session.
CREATE OR REPLACE FUNCTION pulse_internal.may_still_run(beat pulse.heartbeat, live_us bigint)
  RETURNS boolean
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN beat.interval_us > 0 AND NOT pulse_internal.is_silent(beat, live_us)
         AND CASE beat.verdict WHEN 'stopped' THEN false
               WHEN 'lost' THEN beat.lost_cause IN ('session', 'host', 'returned') ELSE true END;
END $$;
COMMENT ON FUNCTION pulse_internal.may_still_run(pulse.heartbeat, bigint) IS
  'Returns whether a worker that counts as lost may yet live and run tasks, so that jobs of tasks '
  'with on_unreachable kill stay with the worker.';

CREATE OR REPLACE FUNCTION pulse_internal.is_killed(identifier text) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pulse.task AS t
                  WHERE t.identifier = is_killed.identifier AND t.on_unreachable = 'kill');
END $$;
COMMENT ON FUNCTION pulse_internal.is_killed(text) IS
  'Returns whether workers end this task while the database is out of reach.';

-- An orderly end counts no crash; another transaction had locked the job's row while the worker
-- deregistered.
CREATE OR REPLACE FUNCTION pulse_internal.owner_end(
    worker_id bigint, OUT outcome text, OUT cause text, OUT reason text, OUT keeps_killed boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  beat pulse.heartbeat;
  worker pulse.worker;
  live_us bigint := pulse_internal.live_now_us();
  why text;
BEGIN
  SELECT * INTO beat FROM pulse.heartbeat AS h WHERE h.worker_id = owner_end.worker_id;
  SELECT * INTO worker FROM pulse.worker AS w WHERE w.id = owner_end.worker_id;
  outcome := CASE WHEN worker.state = 'stopped' OR beat.lost_cause IN ('hand', 'returned')
               THEN 'interrupted' ELSE 'lost' END;
  IF worker.state IS DISTINCT FROM 'stopped' THEN
    cause := coalesce(nullif(beat.lost_cause, 'returned'),
                      pulse_internal.loss_cause(beat, live_us), 'silence');
  END IF;
  why := coalesce(worker.reason, CASE WHEN worker.id IS NULL THEN 'it is not registered here'
    WHEN cause = 'session' THEN 'its session ended' ELSE 'silent beyond its threshold' END);
  reason := format('worker %s%s was lost: %s', owner_end.worker_id, ' (' || worker.name || ')',
                   why);
  keeps_killed := coalesce(pulse_internal.may_still_run(beat, live_us), false);
END $$;
COMMENT ON FUNCTION pulse_internal.owner_end(bigint) IS
  'Returns how the attempts of a worker that is not alive end, and why; the cause is NULL for a '
  'worker that stopped in order. keeps_killed: jobs of tasks with on_unreachable kill stay with '
  'the worker yet.';

-- A dead owner is lost, stopped, or has no row (after a restore). A sweep asks for all dead owners,
-- and calls owner_end only for the owners that the sweep comes to: thousands of workers may be lost
-- at once.
CREATE OR REPLACE FUNCTION pulse_internal.dead_owners() RETURNS SETOF bigint
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  WITH RECURSIVE holder (worker_id) AS (
    (SELECT j.running_worker_id FROM pulse.job AS j
      WHERE j.running_worker_id IS NOT NULL ORDER BY j.running_worker_id LIMIT 1)
    UNION ALL
    SELECT (SELECT j.running_worker_id FROM pulse.job AS j
             WHERE j.running_worker_id > h.worker_id ORDER BY j.running_worker_id LIMIT 1)
      FROM holder AS h WHERE h.worker_id IS NOT NULL
  ), owner AS (
    SELECT h.worker_id FROM holder AS h UNION SELECT c.worker_id FROM pulse.claim_batch AS c
  )
  SELECT o.worker_id
    FROM owner AS o
    LEFT JOIN pulse.heartbeat AS h ON h.worker_id = o.worker_id
   WHERE o.worker_id IS NOT NULL AND (h.worker_id IS NULL OR h.verdict IN ('lost', 'stopped'))
   ORDER BY h.beat_live_us NULLS FIRST;
END $$;
COMMENT ON FUNCTION pulse_internal.dead_owners() IS
  'Returns the owners of running jobs that are not alive, oldest heartbeat first.';

-- One query computes the backoff of all jobs of the call; an interrupted attempt ignores the
-- backoff. A second pass is of use only where other transactions hold some of the jobs that the
-- first pass read.
CREATE OR REPLACE FUNCTION pulse_internal.recover_owner(
    worker_id bigint, outcome text, cause text, reason text, keeps_killed boolean, max_count int,
    apart_until timestamptz = NULL)
  RETURNS TABLE (id bigint, state text, error text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  left_to_end int := max_count;
  candidates int := CASE WHEN apart_until IS NULL THEN max_count END;
  held bigint[];
  endings pulse_internal.ending[];
  tokens bigint[];
  ended int;
BEGIN
  LOOP
    held := pulse_internal.running_ids(recover_owner.worker_id, candidates);
    SELECT
      array_agg(ROW(j.id, outcome, reason, true, pulse_internal.backoff(t, j.attempts), NULL, cause)
                     ::pulse_internal.ending ORDER BY j.id),
           array_agg(j.token ORDER BY j.id)
      INTO endings, tokens
      FROM pulse.job AS j LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
     WHERE j.id = ANY (held) AND j.state = 'running' AND j.worker_id = recover_owner.worker_id
       AND NOT (keeps_killed AND coalesce(t.on_unreachable, 'continue') = 'kill');
    RETURN QUERY SELECT e.id, e.state, e.error
      FROM pulse_internal.end_many(endings, tokens, left_to_end, apart_until) AS e;
    GET DIAGNOSTICS ended = ROW_COUNT;
    left_to_end := left_to_end - ended;
    EXIT WHEN candidates IS NULL OR left_to_end = 0 OR cardinality(held) < candidates;
    candidates := NULL;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.recover_owner(
  bigint, text, text, text, boolean, int, timestamptz) IS
  'Ends the attempts of at most max_count running jobs of a worker that is not alive, NULL means '
  'all; keeps_killed: without jobs of tasks with on_unreachable kill; apart_until: each job '
  'apart, until that time, with the error of each job that raises an error. Never waits.';

-- Each notification names all its jobs, 100 at most, and is far below the server's limit of 8,000
-- bytes. The function sends no notification while the notification queue is nearly full, because
-- the notification would make the recovery fail at its commit.
CREATE OR REPLACE FUNCTION pulse_internal.announce(
    cause text, worker_id bigint, reason text, job_ids bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_ids CONSTANT int := 100;
  part bigint[];
BEGIN
  IF cause IS NULL OR NOT pulse_internal.events_on() THEN
    RETURN;
  END IF;
  FOR place IN 1 .. coalesce(cardinality(job_ids), 0) BY max_ids LOOP
    EXIT WHEN pg_notification_queue_usage() >= 0.9;
    part := job_ids[place : place + max_ids - 1];
    PERFORM pg_notify('pulse_events', json_build_object(
      'event', 'recovered', 'cause', cause, 'worker', worker_id, 'reason', left(reason, 500),
      'count', cardinality(part), 'job_ids', part)::text);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.announce(text, bigint, text, bigint[]) IS
  'Notifies listeners of pulse_events about recovered jobs; not about jobs of a worker that '
  'stopped in order, whose cause is NULL.';

-- claim_job calls the function for a locked job whose owner is dead; the function records the
-- attempt, so that the claim can take the job at once.
CREATE OR REPLACE FUNCTION pulse_internal.recover_for_claim(job pulse.job) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  owner record;
  recovered pulse.job;
BEGIN
  SELECT * INTO owner FROM pulse_internal.owner_end(job.worker_id);
  PERFORM pulse_internal.end_attempts(ARRAY[
    ROW(job.id, owner.outcome, owner.reason, true, NULL, NULL, owner.cause)
      ::pulse_internal.ending]);
  PERFORM pulse_internal.announce(owner.cause, job.worker_id, owner.reason, ARRAY[job.id]);
  SELECT * INTO recovered FROM pulse.job AS j WHERE j.id = job.id FOR UPDATE;
  RETURN recovered;
END $$;
COMMENT ON FUNCTION pulse_internal.recover_for_claim(pulse.job) IS
  'Ends the attempt of a dead owner and returns the job; all NULL when the job ended with the '
  'attempt.';
