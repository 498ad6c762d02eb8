-- Pauses. A pause is no setting: pg_pulse stores it apart from settings, and it changes none. A
-- pause or resumption of a queue by name holds before a pause of the members of its level.

COMMENT ON TABLE pulse.queue_pause IS
  'Queues and levels that were paused or resumed by name, and strict queues that the ends of jobs '
  'have paused. Dumped.';
COMMENT ON COLUMN pulse.queue_pause.queue_name IS
  'Name of the queue or level; mail/* stands for the members of mail';
COMMENT ON COLUMN pulse.queue_pause.job_id IS
  'The job whose end (failed, quarantined or expired) pauses the queue; 0: an operator has paused '
  'or resumed the queue';
COMMENT ON COLUMN pulse.queue_pause.created_at IS 'Since when the queue is paused, or was resumed';
COMMENT ON COLUMN pulse.queue_pause.paused_by IS
  'The role that has paused or resumed the queue; NULL for the end of a job';
COMMENT ON COLUMN pulse.schedule.paused_at IS
  'When the schedule was paused; NULL while the schedule runs';
COMMENT ON COLUMN pulse.schedule.paused_by IS
  'The role that has paused the schedule, or loaded its crontab';
COMMENT ON COLUMN pulse.queue_pause.is_paused IS
  'False: an operator has resumed the queue, so a pause of the members of the level does not hold '
  'for the queue';

CREATE OR REPLACE FUNCTION pulse_internal.settings_in_force(queue_name text) RETURNS pulse.queue
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  members text := pulse_internal.members_with(settings_in_force.queue_name);
  found pulse.queue := pulse_internal.stored_settings(settings_in_force.queue_name, members);
  since timestamptz := (SELECT min(p.created_at) FROM pulse.queue_pause AS p
                         WHERE p.queue_name IN (settings_in_force.queue_name, members));
BEGIN
  found.paused := pulse_internal.is_paused(
    settings_in_force.queue_name, members,
    found.paused AND found.queue_name = settings_in_force.queue_name);
  found.queue_name := settings_in_force.queue_name;
  found.concurrency := coalesce(found.concurrency, 1);
  found.created_at := coalesce(found.created_at, since, pulse.now());
  found.updated_at := coalesce(found.updated_at, since, pulse.now());
  found.is_level := coalesce(found.is_level, true);
  found.is_strict := coalesce(found.is_strict, false);
  found.on_dead := coalesce(found.on_dead, 'continue');
  found.fair := coalesce(found.fair, false);
  found.weight := coalesce(found.weight, 1);
  RETURN found;
END $$;
COMMENT ON FUNCTION pulse_internal.settings_in_force(text) IS
  'Returns the settings that hold for a queue, of the queue or of the members of its level, under '
  'its name, and whether an operator has paused it.';

-- The caller has the queue's lock.
CREATE OR REPLACE FUNCTION pulse_internal.store_pause(queue_name text, is_paused boolean)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  INSERT INTO pulse.queue_pause AS p (queue_name, job_id, created_at, is_paused, paused_by)
  VALUES (store_pause.queue_name, 0, pulse.now(), store_pause.is_paused, pulse_internal.caller())
  ON CONFLICT ON CONSTRAINT queue_pause_pkey
  DO UPDATE SET is_paused = excluded.is_paused, created_at = excluded.created_at,
                paused_by = excluded.paused_by
   WHERE p.is_paused <> excluded.is_paused;
  IF NOT store_pause.is_paused THEN
    PERFORM pulse_internal.end_pauses(store_pause.queue_name);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.store_pause(text, boolean) IS
  'Notes that an operator has paused or resumed a queue; the note ends pauses by ends of jobs '
  'too.';

CREATE OR REPLACE FUNCTION pulse.pause_queue(queue_name text) RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  LOCK TABLE pulse.job, pulse.queue, pulse.queue_pause IN ROW EXCLUSIVE MODE;
  IF (pulse_internal.stored_settings(
        pause_queue.queue_name, pulse_internal.members_with(pause_queue.queue_name))).queue_name
       IS NULL
     AND NOT EXISTS (SELECT FROM pulse.queue_pause AS p
                      WHERE p.queue_name = pause_queue.queue_name)
     AND NOT EXISTS (SELECT FROM pulse.job AS j
                      WHERE j.queue_name = pause_queue.queue_name AND j.queue_name IS NOT NULL
                        AND j.index_lane IN ('o', 'r'))
     AND NOT EXISTS (SELECT FROM pulse.job AS j
                      WHERE j.queue_name = pause_queue.queue_name AND j.index_lane = 'p'
                        AND pulse_internal.queue_bucket(j.queue_name)
                            = pulse_internal.queue_bucket(pause_queue.queue_name)) THEN
    RAISE NOTICE 'queue % has no settings and no jobs', quote_literal(queue_name) USING
      HINT = 'It is paused all the same; check its name.';
  END IF;
  RETURN pulse.set_queue(pause_queue.queue_name, paused => true);
END $$;
COMMENT ON FUNCTION pulse.pause_queue(text) IS
  'Pauses a queue and all queues within it, and returns the settings that hold for the queue, '
  'which stay: once the call commits, no worker claims a job of the queues before resume_queue. '
  'The name mail/* stands for the direct members of mail that no operator paused or resumed by '
  'name. Running jobs go on. A notice says if the queue has neither settings nor jobs. Raises '
  'PU004 as set_queue does.';

CREATE OR REPLACE FUNCTION pulse.resume_queue(queue_name text) RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  LOCK TABLE pulse.job, pulse.queue, pulse.queue_pause IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.check_given('queue_name', resume_queue.queue_name IS NOT NULL,
    'Give the name of a queue.');
  IF (pulse_internal.settings_in_force(resume_queue.queue_name)).paused
     OR EXISTS (SELECT FROM pulse.queue AS q WHERE q.queue_name = resume_queue.queue_name)
     OR EXISTS (SELECT FROM pulse.queue_pause AS p
                 WHERE p.queue_name = resume_queue.queue_name AND p.job_id = 0) THEN
    RETURN pulse.set_queue(resume_queue.queue_name, paused => false);
  END IF;
  PERFORM pulse_internal.lock_queue(resume_queue.queue_name);
  IF NOT pulse_internal.end_pauses(resume_queue.queue_name) THEN
    RAISE EXCEPTION 'queue % is not known', quote_literal(resume_queue.queue_name) USING
      ERRCODE = 'PU005', HINT = 'Only a queue that was paused or given settings is stored.';
  END IF;
  PERFORM pulse_internal.note_queue(resume_queue.queue_name);
  RETURN pulse_internal.settings_in_force(resume_queue.queue_name);
END $$;
COMMENT ON FUNCTION pulse.resume_queue(text) IS
  'Ends the pause of a queue, also a pause that the end of a job began, and returns the settings '
  'that hold for the queue, which stay. Raises PU005 for a queue that has no settings of its own '
  'and was not paused.';
