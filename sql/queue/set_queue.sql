-- Settings of named queues. A change takes the queue's lock, so that no promotion runs beside it.

-- Unclaimed open jobs go back behind the queue, which the next promotion opens under the new
-- settings. Where a claim holds one, the operator waits for that row and holds no other meanwhile:
-- a worker that ends several jobs in one transaction closes no circle of waits.
CREATE OR REPLACE FUNCTION pulse_internal.park_open(queue_name text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  level text := pulse_internal.level_of_settings(queue_name);
  noted bigint;
  locked_id bigint;
BEGIN
  LOOP
    BEGIN
      WITH parked AS (
        UPDATE pulse.job AS j SET state = 'parked'
         WHERE j.id IN (SELECT o.id FROM pulse.job AS o
                         WHERE o.id IN (SELECT w.id FROM pulse_internal.jobs_within(level) AS w
                                         WHERE w.state = 'ready')
                           AND o.state = 'ready' AND o.index_lane IN ('o', 'r')
                           FOR UPDATE SKIP LOCKED)
        RETURNING j.queue_name
      )
      SELECT count(pulse_internal.note_queue(d.queue_name)) INTO noted
        FROM (SELECT DISTINCT p.queue_name FROM parked AS p) AS d;
      SELECT w.id INTO locked_id FROM pulse_internal.jobs_within(level) AS w
       WHERE w.state = 'ready' LIMIT 1;
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
  PERFORM pulse_internal.note_levels(queue_name, queue_name LIKE '%/*');
END $$;
COMMENT ON FUNCTION pulse_internal.park_open(text) IS
  'Parks the unclaimed open jobs of a queue and of all queues within it, and sets the queue marks '
  'of the queue and of the jobs'' queues.';

CREATE OR REPLACE FUNCTION pulse_internal.check_settings_of(queue_name text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_name('queue_name', queue_name, 128);
  -- A name of more parts than levels has a slash in the last level.
  IF queue_name = '/*' OR queue_name ~ '^[*]|[*].|[^/][*]$'
     OR cardinality(string_to_array(queue_name, '/'))
        > cardinality(pulse_internal.levels_of(queue_name)) THEN
    RAISE EXCEPTION 'queue_name % names no level', quote_literal(queue_name) USING
      ERRCODE = 'PU004',
      HINT = 'Use at most four levels between slashes, or LEVEL/* for the members of a level.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_settings_of(text) IS
  'Raises PU004 for a name that can have no settings of a queue.';

CREATE OR REPLACE FUNCTION pulse_internal.has_queues_within(level text) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pulse.queue AS q
                  WHERE pulse_internal.is_within(q.queue_name, level))
      OR EXISTS (SELECT FROM pulse_internal.jobs_within(level) AS w WHERE w.queue_name <> level);
END $$;
COMMENT ON FUNCTION pulse_internal.has_queues_within(text) IS
  'Returns whether settings, open jobs or running jobs of queues within the level exist.';

-- The outermost fair level gives turns to all queues within, by the weight of each queue.
CREATE OR REPLACE FUNCTION pulse_internal.tell_idle_settings(
    queue_name text, fair boolean, weight int)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  outer_level text := (SELECT s.level FROM pulse_internal.level_settings(queue_name) AS s
                        WHERE s.fair AND s.level <> queue_name LIMIT 1);
BEGIN
  IF outer_level IS NOT NULL AND fair THEN
    RAISE NOTICE 'fair of queue % does nothing', quote_literal(queue_name) USING
      HINT = format('Level %L is fair, and gives the turns to all queues within.', outer_level);
  END IF;
  IF outer_level IS NOT NULL AND weight IS NOT NULL
     AND pulse_internal.has_queues_within(queue_name) THEN
    RAISE NOTICE 'weight of queue % does nothing for the queues within', quote_literal(queue_name)
      USING HINT = format('Set the weight of these queues, or of %L.', queue_name || '/*');
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.tell_idle_settings(text, boolean, int) IS
  'Raises a notice for fair or weight of a level within a fair level, where both do nothing.';

CREATE OR REPLACE FUNCTION pulse.set_queue(
    queue_name text,
    concurrency int = NULL,
    paused boolean = NULL,
    total int = NULL,
    rate int = NULL,
    per interval = NULL,
    burst int = NULL,
    fair boolean = NULL,
    weight int = NULL,
    strict boolean = NULL,
    on_dead text = NULL)
  RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  stored pulse.queue;
BEGIN
  PERFORM pulse_internal.check_settings_of(set_queue.queue_name);
  PERFORM pulse_internal.check_number('concurrency', set_queue.concurrency, 1, 1000000);
  PERFORM pulse_internal.check_number('total', nullif(set_queue.total, -1), 1, 1000000);
  PERFORM pulse_internal.check_number('weight', set_queue.weight, 1, 1000);
  IF set_queue.rate = -1 AND (set_queue.per IS NOT NULL OR set_queue.burst <> -1) THEN
    RAISE EXCEPTION 'rate => -1 takes the rate away, and per and burst belong to one' USING
      ERRCODE = 'PU004', HINT = 'Leave out per and burst, or set a rate.';
  END IF;
  PERFORM pulse_internal.lock_queue(set_queue.queue_name);
  -- So updated_at follows each claim of a job that the old settings opened; verify() compares both
  -- times.
  PERFORM pulse_internal.park_open(set_queue.queue_name);
  IF set_queue.paused IS NULL
     OR num_nonnulls(concurrency, total, rate, per, burst, fair, weight, "strict", on_dead) > 0 THEN
    INSERT INTO pulse.queue AS q
      (queue_name, concurrency, created_at, updated_at, total, is_level, is_strict, on_dead, fair,
       weight, rate, per, burst)
    VALUES (set_queue.queue_name, coalesce(set_queue.concurrency, 1), pulse.now(), pulse.now(),
            nullif(set_queue.total, -1), true, coalesce(set_queue."strict", false),
            coalesce(set_queue.on_dead, 'continue'), coalesce(set_queue.fair, false),
            coalesce(set_queue.weight, 1), nullif(set_queue.rate, -1), set_queue.per,
            nullif(set_queue.burst, -1))
    ON CONFLICT ON CONSTRAINT queue_pkey DO UPDATE SET
      concurrency = coalesce(set_queue.concurrency, q.concurrency),
      updated_at  = pulse.now(),
      total       = nullif(coalesce(set_queue.total, q.total), -1),
      fair        = coalesce(set_queue.fair, q.fair),
      weight      = coalesce(set_queue.weight, q.weight),
      is_level    = true,
      is_strict   = coalesce(set_queue."strict", q.is_strict),
      on_dead     = coalesce(set_queue.on_dead, q.on_dead),
      rate        = nullif(coalesce(set_queue.rate, q.rate), -1),
      per         = CASE WHEN set_queue.rate = -1 THEN NULL
                      ELSE coalesce(set_queue.per, q.per) END,
      burst       = CASE WHEN set_queue.rate = -1 THEN NULL
                      ELSE nullif(coalesce(set_queue.burst, q.burst), -1) END
    RETURNING q.* INTO stored;
    PERFORM pulse_internal.check_strict(stored);
    PERFORM pulse_internal.check_rate(stored);
    PERFORM pulse_internal.tell_idle_settings(set_queue.queue_name, set_queue.fair,
                                              set_queue.weight);
    IF NOT stored.is_strict THEN
      PERFORM pulse_internal.end_pauses(set_queue.queue_name);
    END IF;
  END IF;
  IF set_queue.paused IS NOT NULL THEN
    PERFORM pulse_internal.store_pause(set_queue.queue_name, set_queue.paused);
  END IF;
  RETURN pulse_internal.settings_in_force(set_queue.queue_name);
END $$;
COMMENT ON FUNCTION
  pulse.set_queue(text, int, boolean, int, int, interval, int, boolean, int, boolean,
                  text) IS
  'Stores settings of a queue and returns the settings that hold for it; NULL leaves a setting '
  'unchanged, -1 takes a limit away. concurrency (1 to 1000000) is how many jobs of exactly this '
  'name run at a time; total, how many jobs of the queue and of all queues within it: mail/x is '
  'within mail. Of the same jobs, rate (1 to 1000000) are claimed in each per (1 s to 366 days, of '
  '24 hours; 1 s), and burst (as many as rate) at once. paused => true calls pause_queue, false '
  'resume_queue, of any queue; without another argument no setting is stored. Where a level is '
  'fair the queues within the level, however deep, take turns to start jobs, and weight (1 to '
  '1000) is how many jobs a queue starts in a turn. The outermost fair level gives the turns; fair '
  'and weight of a level between do nothing, which a notice tells. The name mail/* stands for the '
  'members of mail that have no settings of their own; the weight of mail/* holds for deeper '
  'queues too, unless a nearer level has settings of members. Running jobs go on. A strict queue '
  'runs one job at a time: once a job has been claimed, no other job starts before that job has '
  'ended, whatever retries the job has. on_dead says how a strict queue acts when a job ends '
  'failed, quarantined or expired: continue, or pause, which resume_queue ends. Raises PU004 for a '
  'value out of range, a name of more than four levels, a strict queue of another concurrency than '
  '1, on_dead pause without strict, and per or burst without rate.';

CREATE OR REPLACE FUNCTION pulse.unset_queue(queue_name text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  is_stored boolean;
BEGIN
  PERFORM pulse_internal.check_settings_of(unset_queue.queue_name);
  LOCK TABLE pulse.job, pulse.queue, pulse.queue_pause IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.lock_queue(unset_queue.queue_name);
  PERFORM pulse_internal.park_open(unset_queue.queue_name);
  PERFORM pulse_internal.end_pauses(unset_queue.queue_name);
  DELETE FROM pulse.queue_pause AS p WHERE p.queue_name = unset_queue.queue_name;
  is_stored := FOUND;
  DELETE FROM pulse.queue_rate AS r WHERE r.queue_name = unset_queue.queue_name;
  DELETE FROM pulse.queue AS q WHERE q.queue_name = unset_queue.queue_name;
  is_stored := is_stored OR FOUND;
  IF is_stored THEN
    PERFORM setval('pulse.queue_unset_seq',
                   ceil(extract(epoch FROM pulse.now()) * 1e6)::bigint);
  END IF;
  RETURN is_stored;
END $$;
COMMENT ON FUNCTION pulse.unset_queue(text) IS
  'Takes away all settings of a queue and its pause, and returns whether it had any. From then on '
  'it has the settings of the members of its level (mail/* for mail/x) if such settings are '
  'stored, else it runs one job at a time. Running jobs go on. Raises PU004 as set_queue does.';
