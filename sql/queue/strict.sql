-- Strict queues: a claimed job keeps its place until it has ended, and the end of a dead job may
-- pause the queue. extension/queue/places.cpp has the order for promotions.

CREATE OR REPLACE FUNCTION pulse_internal.check_strict(stored pulse.queue) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF stored.on_dead NOT IN ('continue', 'pause') THEN
    RAISE EXCEPTION 'on_dead % is not known', quote_literal(stored.on_dead) USING
      ERRCODE = 'PU004', HINT = 'Use continue or pause.';
  ELSIF stored.is_strict AND stored.concurrency <> 1 THEN
    RAISE EXCEPTION 'concurrency is %, and a strict queue runs one job at a time',
      stored.concurrency USING
      ERRCODE = 'PU004', HINT = 'Leave concurrency at 1, or set strict => false.';
  ELSIF stored.on_dead = 'pause' AND NOT stored.is_strict THEN
    RAISE EXCEPTION 'on_dead is ''pause'', which holds for strict queues only' USING
      ERRCODE = 'PU004', HINT = 'Set strict => true, or on_dead => ''continue''.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_strict(pulse.queue) IS
  'Raises PU004 for settings of a queue that are unknown or contradict each other.';

-- The name of the members of a level stands for the members without settings of their own.
CREATE OR REPLACE FUNCTION pulse_internal.end_pauses(queue_name text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  DELETE FROM pulse.queue_pause AS p
   WHERE p.job_id <> 0
     AND (p.queue_name = end_pauses.queue_name
          OR pulse_internal.members_with(p.queue_name) = end_pauses.queue_name
             AND NOT EXISTS (SELECT FROM pulse.queue AS q WHERE q.queue_name = p.queue_name));
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION pulse_internal.end_pauses(text) IS
  'Ends the pause that ends of jobs have begun; returns whether there was one.';

CREATE OR REPLACE FUNCTION pulse_internal.is_paused_by_end(queue_name text) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pulse.queue_pause AS p
                  WHERE p.queue_name = is_paused_by_end.queue_name AND p.job_id <> 0);
END $$;
COMMENT ON FUNCTION pulse_internal.is_paused_by_end(text) IS
  'Returns whether the end of a job has paused a queue, if the queue is strict.';

-- Reads the table of settings alone: sweeps have locked the table when they ask.
CREATE OR REPLACE FUNCTION pulse_internal.pauses_on_death(queue_name text) RETURNS boolean
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  own pulse.queue := pulse_internal.stored_settings(queue_name,
                                                    pulse_internal.members_with(queue_name));
BEGIN
  RETURN coalesce(own.is_strict AND own.on_dead = 'pause', false);
END $$;
COMMENT ON FUNCTION pulse_internal.pauses_on_death(text) IS
  'Returns whether a queue is strict and pauses when a job of the queue ends failed, quarantined '
  'or expired.';

-- If the open job of the queue is another job, no worker has claimed it. A job that a claim is
-- taking runs: no end waits for the claim.
CREATE OR REPLACE FUNCTION pulse_internal.note_death(queue_name text, job_id bigint)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  IF NOT pulse_internal.pauses_on_death(note_death.queue_name) THEN
    RETURN false;
  END IF;
  INSERT INTO pulse.queue_pause (queue_name, job_id, created_at)
  VALUES (note_death.queue_name, note_death.job_id, pulse.now()) ON CONFLICT DO NOTHING;
  UPDATE pulse.job AS j SET state = 'parked'
   WHERE j.id IN (SELECT o.id FROM pulse.job AS o
                   WHERE o.queue_name = note_death.queue_name AND o.queue_name IS NOT NULL
                     AND o.index_lane IN ('o', 'r') AND o.state = 'ready'
                     FOR UPDATE SKIP LOCKED);
  PERFORM pulse_internal.note_queue(note_death.queue_name);
  IF pulse_internal.events_on() AND pg_notification_queue_usage() < 0.9 THEN
    PERFORM pg_notify('pulse_events', json_build_object(
      'event', 'paused', 'queue', note_death.queue_name, 'job_ids', ARRAY[job_id])::text);
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.note_death(text, bigint) IS
  'Pauses a strict queue because this job of the queue ends failed, quarantined or expired, if '
  'the queue''s on_dead says so, and notifies listeners of pulse_events; returns whether the call '
  'paused the queue.';

CREATE OR REPLACE FUNCTION pulse_internal.successor_of_queue(queue_name text) RETURNS pulse.job
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  first_job pulse.job;
BEGIN
  SELECT * INTO first_job FROM pulse.job AS j
   WHERE j.queue_name = successor_of_queue.queue_name AND j.succession IS NOT NULL
     AND j.index_lane IN ('p', 'k')
   ORDER BY j.queue_name, j.succession, j.id LIMIT 1;
  RETURN first_job;
END $$;
COMMENT ON FUNCTION pulse_internal.successor_of_queue(text) IS
  'Returns the parked job that a strict queue starts before all others; NULL without one.';

CREATE OR REPLACE FUNCTION pulse_internal.is_kept_waiting(queue_name text, moment timestamptz)
  RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  first_job pulse.job;
BEGIN
  IF NOT (SELECT s.is_strict FROM pulse_internal.level_settings(is_kept_waiting.queue_name) AS s
           WHERE s.level = is_kept_waiting.queue_name) THEN
    RETURN false;
  END IF;
  first_job := pulse_internal.successor_of_queue(is_kept_waiting.queue_name);
  RETURN pulse_internal.is_paused_by_end(is_kept_waiting.queue_name)
      OR first_job.key_is_undecided
      OR coalesce(greatest(first_job.run_at, first_job.updated_at) >= moment, false);
END $$;
COMMENT ON FUNCTION pulse_internal.is_kept_waiting(text, timestamptz) IS
  'Returns whether a strict queue is paused by the end of a job, or keeps a place for a job that '
  'was not due at that moment.';
