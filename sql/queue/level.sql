-- Levels of queues: 'mail/tenant-7' is within 'mail'. extension/limit/levels.cpp has the same rules
-- for promotions.

CREATE OR REPLACE FUNCTION pulse_internal.levels_of(queue_name text) RETURNS text[]
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_levels_of';
COMMENT ON FUNCTION pulse_internal.levels_of(text) IS
  'Returns the names of the levels of a queue, root first; the last name is the queue itself.';

-- Inlined, so that queries find the index of the name: '0' follows '/' in the order of bytes.
CREATE OR REPLACE FUNCTION pulse_internal.is_within(queue_name text, level text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN queue_name >= level || '/' COLLATE "C" AND queue_name < level || '0' COLLATE "C";
COMMENT ON FUNCTION pulse_internal.is_within(text, text) IS
  'Returns whether a queue is within a level, and not the level itself.';

-- mail/* stands for the members of mail.
CREATE OR REPLACE FUNCTION pulse_internal.level_of_settings(name text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN name LIKE '%/*' THEN pg_catalog.left(name, -2) ELSE name END;
COMMENT ON FUNCTION pulse_internal.level_of_settings(text) IS
  'Returns the level whose settings, or whose members'' settings, have this name.';

CREATE OR REPLACE FUNCTION pulse_internal.note_levels(queue_name text, of_members boolean)
  RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_levels';
COMMENT ON FUNCTION pulse_internal.note_levels(text, boolean) IS
  'Arranges that after the commit promotions check again the queues that wait for a level, whose '
  'settings change; of_members: all queues, where the settings of the members of a level change.';

CREATE OR REPLACE FUNCTION pulse_internal.unset_at() RETURNS timestamptz
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT CASE WHEN s.is_called THEN to_timestamp(s.last_value / 1e6) END
            FROM pulse.queue_unset_seq AS s);
END $$;
COMMENT ON FUNCTION pulse_internal.unset_at() IS
  'Returns when unset_queue() last took settings away; NULL: never.';

CREATE OR REPLACE FUNCTION pulse_internal.members_with(queue_name text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  names text[] := pulse_internal.levels_of(queue_name);
BEGIN
  RETURN names[cardinality(names) - 1] || '/*';
END $$;
COMMENT ON FUNCTION pulse_internal.members_with(text) IS
  'Returns the name that stands for this queue among the members of its level: mail/* for mail/x; '
  'NULL for a queue within no level.';

CREATE OR REPLACE FUNCTION pulse_internal.stored_settings(queue_name text, members text)
  RETURNS pulse.queue
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  stored pulse.queue;
BEGIN
  SELECT * INTO stored FROM pulse.queue AS q WHERE q.queue_name = stored_settings.queue_name;
  IF NOT FOUND THEN
    SELECT * INTO stored FROM pulse.queue AS q
     WHERE q.queue_name = stored_settings.members AND q.is_level;
  END IF;
  RETURN stored;
END $$;
COMMENT ON FUNCTION pulse_internal.stored_settings(text, text) IS
  'Returns the settings of a queue, else the settings of the members of its level; all NULL: the '
  'queue has no settings.';

CREATE OR REPLACE FUNCTION pulse_internal.is_paused(
    queue_name text, members text, was_paused boolean)
  RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  by_name boolean := (SELECT p.is_paused FROM pulse.queue_pause AS p
                       WHERE p.queue_name = is_paused.queue_name AND p.job_id = 0);
BEGIN
  RETURN coalesce(by_name, nullif(was_paused, false),
                  (SELECT p.is_paused FROM pulse.queue_pause AS p
                    WHERE p.queue_name = members AND p.job_id = 0), false);
END $$;
COMMENT ON FUNCTION pulse_internal.is_paused(text, text, boolean) IS
  'Returns whether an operator has paused a queue or level: by name, else by version 0.1.0 '
  '(was_paused), else with the members of the level.';

CREATE OR REPLACE FUNCTION pulse_internal.weight_above(levels text[]) RETURNS int
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (SELECT q.weight FROM unnest(levels) AS level (name)
            JOIN pulse.queue AS q ON q.queue_name = level.name || '/*'
           WHERE q.is_level ORDER BY length(level.name) DESC LIMIT 1);
END $$;
COMMENT ON FUNCTION pulse_internal.weight_above(text[]) IS
  'Returns the weight of the longest of these levels for which settings of members (mail/*) are '
  'stored; NULL: of none.';

CREATE OR REPLACE FUNCTION pulse_internal.level_settings(queue_name text)
  RETURNS TABLE (level text, concurrency int, total int, paused boolean, changed_at timestamptz,
                 is_strict boolean, on_dead text, fair boolean, weight int, rate int,
                 per interval, burst int)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 2
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  names text[] := pulse_internal.levels_of(queue_name);
  members text;
  stored pulse.queue;
BEGIN
  FOR i IN 1 .. cardinality(names) LOOP
    members := names[i - 1] || '/*';
    stored := pulse_internal.stored_settings(names[i], members);
    IF stored.queue_name IS NULL THEN
      -- Of the settings above, the weight alone reaches further than direct members.
      stored.weight := pulse_internal.weight_above(names[1 : i - 2]);
    END IF;
    level := names[i];
    concurrency := coalesce(stored.concurrency, 1);
    total := stored.total;
    paused := pulse_internal.is_paused(
      names[i], members, stored.paused AND stored.queue_name = names[i] AND i = cardinality(names));
    changed_at := stored.updated_at;
    is_strict := coalesce(stored.is_strict, false);
    on_dead := coalesce(stored.on_dead, 'continue');
    fair := coalesce(stored.fair, false);
    weight := coalesce(stored.weight, 1);
    rate := stored.rate;
    per := stored.per;
    burst := stored.burst;
    RETURN NEXT;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.level_settings(text) IS
  'Returns the settings of the levels of a queue, root first, and when the settings last changed. '
  'A member of a level without settings of its own has the settings of the members; without both, '
  'the weight is of the nearest level above that has settings of members.';

CREATE OR REPLACE FUNCTION pulse_internal.jobs_within(level text, max_jobs bigint = NULL)
  RETURNS TABLE (id bigint, queue_name text, state pulse.job_state, worker_id bigint,
                 claimed_at timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    (SELECT j.id, j.queue_name, j.state, j.worker_id, j.claimed_at FROM pulse.job AS j
      WHERE j.queue_name = jobs_within.level AND j.queue_name IS NOT NULL
        AND j.index_lane IN ('o', 'r')
     UNION ALL
     SELECT j.id, j.queue_name, j.state, j.worker_id, j.claimed_at FROM pulse.job AS j
      WHERE pulse_internal.is_within(j.queue_name, jobs_within.level)
        AND j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r'))
    LIMIT max_jobs;
END $$;
COMMENT ON FUNCTION pulse_internal.jobs_within(text, bigint) IS
  'Returns the open and running jobs of a level and of all queues within it, at most max_jobs.';

CREATE OR REPLACE FUNCTION pulse_internal.level_places_left(
    queue_name text, OUT places_left bigint, OUT level text, OUT total int, OUT paused boolean,
    OUT concurrency int, OUT is_strict boolean, OUT is_dry boolean, OUT next_token timestamptz)
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_level_places_left';
COMMENT ON FUNCTION pulse_internal.level_places_left(text) IS
  'Returns how many more jobs the levels of a queue let the queue open (NULL: no limit), which '
  'level has the fewest places left, the total of that level, whether a level is paused, how many '
  'jobs the queue runs at a time, whether it is strict, and whether a rate leaves the fewest '
  'places and when the rate leaves more.';
