-- Settings of named queues. A change takes the queue's lock, so that no promotion runs beside it.

-- Unclaimed open jobs go back behind the queue, which the next promotion opens under the new
-- settings. Where a claim holds one, the operator waits for that row and holds no other meanwhile:
-- a worker that ends several jobs in one transaction closes no circle of waits.
CREATE OR REPLACE FUNCTION pulse_internal.park_open(queue_name text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  locked_id bigint;
BEGIN
  LOOP
    BEGIN
      UPDATE pulse.job AS j SET state = 'parked'
       WHERE j.id IN (SELECT o.id FROM pulse.job AS o
                       WHERE o.queue_name = park_open.queue_name AND o.state = 'ready'
                         AND o.index_lane <> 'p'
                         FOR UPDATE SKIP LOCKED);
      SELECT o.id INTO locked_id FROM pulse.job AS o
       WHERE o.queue_name = park_open.queue_name AND o.state = 'ready' AND o.index_lane <> 'p'
       LIMIT 1;
      EXIT WHEN locked_id IS NULL;
      RAISE EXCEPTION 'a claim holds an open job' USING ERRCODE = 'PU101';
    EXCEPTION WHEN SQLSTATE 'PU101' THEN
      NULL;  -- the rows are free again
    END;
    BEGIN
      PERFORM FROM pulse.job AS j WHERE j.id = locked_id FOR UPDATE;
      RAISE EXCEPTION 'the claim has ended' USING ERRCODE = 'PU101';
    EXCEPTION WHEN SQLSTATE 'PU101' THEN
      NULL;
    END;
  END LOOP;
  PERFORM pulse_internal.note_queue(queue_name);
END $$;
COMMENT ON FUNCTION pulse_internal.park_open(text) IS
  'Parks the unclaimed open jobs of a queue and marks the queue for promotion.';

CREATE OR REPLACE FUNCTION pulse.set_queue(
    queue_name text, concurrency int = NULL, paused boolean = NULL)
  RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  stored pulse.queue;
BEGIN
  PERFORM pulse_internal.check_name('queue_name', set_queue.queue_name, 128);
  PERFORM pulse_internal.check_number('concurrency', set_queue.concurrency, 1, 1000000);
  PERFORM pulse_internal.lock_queue(set_queue.queue_name);
  -- So updated_at follows each claim of a job that the old settings opened; verify() compares them.
  PERFORM pulse_internal.park_open(set_queue.queue_name);
  INSERT INTO pulse.queue AS q (queue_name, concurrency, paused, created_at, updated_at)
  VALUES (set_queue.queue_name, coalesce(set_queue.concurrency, 1),
          coalesce(set_queue.paused, false), pulse.now(), pulse.now())
  ON CONFLICT ON CONSTRAINT queue_pkey DO UPDATE SET
    concurrency = coalesce(set_queue.concurrency, q.concurrency),
    paused      = coalesce(set_queue.paused, q.paused),
    updated_at  = pulse.now()
  RETURNING q.* INTO stored;
  RETURN stored;
END $$;
COMMENT ON FUNCTION pulse.set_queue(text, int, boolean) IS
  'Stores settings of a queue and returns them; NULL leaves a setting as it is. concurrency (1 to '
  '1000000) is how many of its jobs run at a time. Running jobs go on. Raises PU004 for a value '
  'out of range.';

CREATE OR REPLACE FUNCTION pulse.pause_queue(queue_name text) RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.queue AS q WHERE q.queue_name = pause_queue.queue_name)
     AND NOT EXISTS (SELECT FROM pulse.job AS j
                      WHERE j.queue_name = pause_queue.queue_name AND j.queue_name IS NOT NULL
                        AND j.index_lane <> 'p')
     AND NOT EXISTS (SELECT FROM pulse.job AS j
                      WHERE j.queue_name = pause_queue.queue_name AND j.index_lane = 'p'
                        AND pulse_internal.queue_slot(j.queue_name)
                            = pulse_internal.queue_slot(pause_queue.queue_name)) THEN
    RAISE NOTICE 'queue % has no settings and no jobs', quote_literal(queue_name) USING
      HINT = 'It is paused all the same; check its name.';
  END IF;
  RETURN pulse.set_queue(pause_queue.queue_name, NULL, true);
END $$;
COMMENT ON FUNCTION pulse.pause_queue(text) IS
  'Pauses a queue: once this commits, no worker claims a job of it before resume_queue. Running '
  'jobs go on. A notice says if the queue has neither settings nor jobs. Raises PU004 for a name '
  'that is empty or too long.';

CREATE OR REPLACE FUNCTION pulse.resume_queue(queue_name text) RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.queue AS q WHERE q.queue_name = resume_queue.queue_name) THEN
    RAISE EXCEPTION 'queue % is not known', quote_literal(resume_queue.queue_name) USING
      ERRCODE = 'PU005', HINT = 'Only a queue that was paused or given settings is stored.';
  END IF;
  RETURN pulse.set_queue(resume_queue.queue_name, NULL, false);
END $$;
COMMENT ON FUNCTION pulse.resume_queue(text) IS
  'Ends the pause of a queue. Raises PU005 for a queue without stored settings.';
