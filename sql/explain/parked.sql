-- Parked jobs: which queues have parked jobs, behind which pause these wait, and whose open jobs
-- have the tokens and places that they wait for. explain_job(), explain_task() and doctor() ask.

CREATE OR REPLACE FUNCTION pulse_internal.some_within(queues text[], name text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(array_agg(q.name), '{}') FROM unnest(queues) AS q (name)
   WHERE pulse_internal.is_within(q.name, pulse_internal.level_of_settings(some_within.name));
$$;
COMMENT ON FUNCTION pulse_internal.some_within(text[], text) IS
  'Returns which of these queues are within a level, or are members of a level (mail/*).';

-- Commits count each queue, so where commits count, the queues of a level are known.
CREATE OR REPLACE FUNCTION pulse_internal.counted_behind(
    names text[], moment timestamptz, most_queues int)
  RETURNS TABLE (name text, queue_name text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT u.name, pulse_internal.level_of_settings(u.name) AS level
      FROM unnest(names) AS u (name)
  ), known AS MATERIALIZED (
    SELECT a.name, d.name AS queue_name, row_number() OVER (
             PARTITION BY a.name ORDER BY d.soonest_run_at, d.name) AS place
      FROM pulse_internal.depths() AS d
     CROSS JOIN LATERAL unnest(pulse_internal.levels_of(d.name)) AS l (level)
      JOIN asked AS a ON a.level = l.level
     WHERE d.kind = 'queue' AND d.parked > d.after_others AND d.soonest_run_at <= moment
  )
  SELECT k.name, CASE WHEN k.place <= most_queues THEN k.queue_name END
    FROM known AS k WHERE k.place <= most_queues + 1;
END $$;
COMMENT ON FUNCTION pulse_internal.counted_behind(text[], timestamptz, int) IS
  'Returns what queues_behind() returns, of the queues that commits count.';

-- Where commits do not count, the function asks some queues of a level: the queues of the jobs that
-- have been due for longest, or where none of these is within the level, the first queues of a
-- walk.
CREATE OR REPLACE FUNCTION pulse_internal.searched_behind(
    names text[], moment timestamptz, most_queues int)
  RETURNS TABLE (name text, queue_name text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  bound CONSTANT int := 1000;
  late text[];
  walked text[];
  within text[];
  is_cut boolean;
BEGIN
  SELECT coalesce(array_agg(DISTINCT l.queue_name), '{}'), count(*) >= bound INTO late, is_cut
    FROM (SELECT j.queue_name FROM pulse.job AS j
           WHERE j.index_lane = 'p' AND j.run_at <= moment ORDER BY j.run_at LIMIT bound) AS l;
  FOREACH name IN ARRAY names LOOP
    within := pulse_internal.some_within(late, name);
    IF is_cut AND within = '{}' THEN
      walked := coalesce(walked, ARRAY(SELECT pulse_internal.parked_queues(bound)));
      within := pulse_internal.some_within(walked, name);
    END IF;
    RETURN QUERY SELECT searched_behind.name, w.queue_name
      FROM unnest(searched_behind.name || within[1 : most_queues]) AS w (queue_name);
    IF is_cut OR cardinality(within) > most_queues THEN
      queue_name := NULL;
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.searched_behind(text[], timestamptz, int) IS
  'Returns what queues_behind() returns, of the queues of the 1,000 jobs that have been due for '
  'longest, or where none of these is within the level, of the first 1,000 queues.';

CREATE OR REPLACE FUNCTION pulse_internal.queues_behind(names text[], moment timestamptz)
  RETURNS TABLE (name text, queue_name text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  -- So many queues with a due job each are more than 100 jobs.
  most_queues CONSTANT int := 101;
BEGIN
  IF pulse_internal.has_depths() AND NOT EXISTS (
       SELECT FROM pulse_internal.depths() AS d
        WHERE d.kind = 'queue' AND (d.name IS NULL OR NOT d.is_exact)) THEN
    RETURN QUERY SELECT * FROM pulse_internal.counted_behind(names, moment, most_queues);
  ELSE
    RETURN QUERY SELECT * FROM pulse_internal.searched_behind(names, moment, most_queues);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.queues_behind(text[], timestamptz) IS
  'Returns of each named queue or level the queues that may have due parked jobs: the queue itself '
  'and queues within, at most 101; a queue_name of NULL: there may be more.';

CREATE OR REPLACE FUNCTION pulse_internal.paused_as(queue_name text) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  paused record;
BEGIN
  SELECT s.level, s.paused, s.is_strict INTO paused
    FROM pulse_internal.level_settings(paused_as.queue_name) AS s
   WHERE s.paused OR s.level = paused_as.queue_name LIMIT 1;
  IF NOT paused.paused THEN
    RETURN CASE WHEN paused.is_strict AND pulse_internal.is_paused_by_end(queue_name)
             THEN queue_name END;
  ELSIF EXISTS (SELECT FROM pulse.queue_pause AS p
                 WHERE p.queue_name = paused.level AND p.job_id = 0)
     OR EXISTS (SELECT FROM pulse.queue AS q WHERE q.queue_name = paused.level AND q.paused) THEN
    RETURN paused.level;
  END IF;
  RETURN pulse_internal.members_with(paused.level);
END $$;
COMMENT ON FUNCTION pulse_internal.paused_as(text) IS
  'Returns by which name a queue is paused: the name of the queue, of a level, or of the members '
  'of a level; NULL for a queue that is not paused.';

-- The console puts a change on record in the transaction that makes it, with the person behind it.
CREATE OR REPLACE FUNCTION pulse_internal.named_pauser(
    role text, noun text, name text, since timestamptz)
  RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  actor text := (SELECT o.actor FROM pulse.operation AS o
                  WHERE o.updated_at BETWEEN since AND since + interval '10 s'
                    AND o.action = 'pause ' || noun AND o.filter ->> noun = named_pauser.name
                  ORDER BY o.updated_at LIMIT 1);
BEGIN
  RETURN concat(' by role ' || quote_ident(role), ' for ' || quote_literal(actor),
                ' since ' || since);
END $$;
COMMENT ON FUNCTION pulse_internal.named_pauser(text, text, text, timestamptz) IS
  'Returns which role paused a queue or schedule and since when, as a part of a sentence; the '
  'part leaves out a role or time that is not known.';

CREATE OR REPLACE FUNCTION pulse_internal.unserved_within(
    level text, has_members boolean = true, OUT jobs bigint, OUT holders text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off AS $$
DECLARE
  bound CONSTANT int := 1000;
  fleet record;
  names text[];
BEGIN
  SELECT * INTO fleet FROM pulse_internal.served_tasks();
  IF fleet.serves_all THEN
    jobs := 0;
    RETURN;
  END IF;
  SELECT coalesce(sum(t.jobs), 0), array_agg(t.identifier ORDER BY t.jobs DESC, t.identifier)
    INTO jobs, names
    FROM (SELECT o.identifier, count(*) AS jobs
            FROM ((SELECT j.identifier FROM pulse.job AS j
                    WHERE j.queue_name = unserved_within.level AND j.queue_name IS NOT NULL
                      AND j.index_lane IN ('o', 'r') AND j.state = 'ready' LIMIT bound)
                  UNION ALL
                  (SELECT j.identifier FROM pulse.job AS j
                    WHERE has_members
                      AND pulse_internal.is_within(j.queue_name, unserved_within.level)
                      AND j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r')
                      AND j.state = 'ready' LIMIT bound)) AS o
           WHERE o.identifier <> ALL (fleet.served) GROUP BY o.identifier) AS t;
  holders := format('Open jobs of task%s %s%s, which no living worker serves,',
                    CASE WHEN cardinality(names) > 1 THEN 's' ELSE '' END,
                    (SELECT string_agg(quote_literal(n), ', ') FROM unnest(names[1 : 3]) AS n),
                    CASE WHEN cardinality(names) > 3 THEN ' and more' ELSE '' END);
END $$;
COMMENT ON FUNCTION pulse_internal.unserved_within(text, boolean) IS
  'Returns how many open jobs of a level, of at most 1,000 of the level and 1,000 within it, have '
  'tasks that no living worker serves, and the beginning of a sentence that names these tasks.';

CREATE OR REPLACE FUNCTION pulse_internal.unserved_holders(
    level text, what text, has_members boolean = true) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  unserved record;
BEGIN
  SELECT * INTO unserved FROM pulse_internal.unserved_within(level, has_members);
  RETURN CASE WHEN unserved.jobs > 0
           THEN format(' %s have %s of the %s.', unserved.holders, unserved.jobs, what) ELSE '' END;
END $$;
COMMENT ON FUNCTION pulse_internal.unserved_holders(text, text, boolean) IS
  'Returns a sentence of how many tokens or places of a level open jobs have that no worker '
  'serves; nothing where there are none.';

CREATE OR REPLACE FUNCTION pulse_internal.without_place(queue_name text)
  RETURNS TABLE (level text, what text, total bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  own record;
  above record;
BEGIN
  SELECT * INTO own FROM pulse_internal.queue_places(without_place.queue_name);
  IF own.taken >= own.concurrency THEN
    RETURN QUERY SELECT without_place.queue_name, 'places', own.concurrency::bigint;
  END IF;
  SELECT * INTO above FROM pulse_internal.level_places_left(without_place.queue_name);
  IF above.places_left <= 0 AND NOT above.is_dry THEN
    RETURN QUERY SELECT above.level, 'places', above.total::bigint;
  ELSIF above.places_left <= 0 AND above.next_token IS NULL THEN
    RETURN QUERY SELECT above.level, 'tokens', t.tokens::bigint
                   FROM pulse_internal.tokens_of(above.level) AS t;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.without_place(text) IS
  'Returns the queue where all its places are taken, and the level above it that has no place or '
  'token left.';

CREATE OR REPLACE FUNCTION pulse_internal.is_waited_for(level text, moment timestamptz)
  RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM (SELECT b.queue_name FROM pulse_internal.queues_behind(ARRAY[level], moment) AS b
                  WHERE b.queue_name IS NOT NULL OFFSET 0) AS q
     CROSS JOIN LATERAL pulse_internal.due_parked(q.queue_name, moment, 1) AS d
     WHERE d.jobs > 0);
END $$;
COMMENT ON FUNCTION pulse_internal.is_waited_for(text, timestamptz) IS
  'Returns whether a due job of the queue, or of the first queues within, is parked.';

CREATE OR REPLACE FUNCTION pulse_internal.held_by_unserved(identifiers text[])
  RETURNS TABLE (level text, what text, total bigint, held bigint, holders text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off AS $$
DECLARE
  bound CONSTANT int := 100;
  each CONSTANT int := greatest(10, 2 * bound / greatest(cardinality(identifiers), 1));
  moment CONSTANT timestamptz := pulse.now();
  asked text[] := '{}';
  named int := 0;
  names text[] := ARRAY(
    SELECT DISTINCT f.queue_name FROM unnest(identifiers) AS i (identifier) CROSS JOIN LATERAL (
      SELECT j.queue_name FROM pulse.job AS j
       WHERE j.index_lane = 'o' AND j.identifier = i.identifier
       ORDER BY j.priority, j.run_at LIMIT each) AS f
     WHERE f.queue_name IS NOT NULL LIMIT bound + 1);
  name text;
BEGIN
  FOREACH name IN ARRAY names[1 : bound] LOOP
    FOR level, what, total IN SELECT * FROM pulse_internal.without_place(name) LOOP
      CONTINUE WHEN level = ANY (asked);
      asked := asked || level;
      CONTINUE WHEN NOT pulse_internal.is_waited_for(level, moment);
      SELECT u.jobs, u.holders INTO held, holders FROM pulse_internal.unserved_within(level) AS u;
      CONTINUE WHEN held = 0;
      named := named + 1;
      EXIT WHEN named > 10;
      RETURN NEXT;
    END LOOP;
    EXIT WHEN named > 10 OR cardinality(asked) >= 25;
  END LOOP;
  IF named > 10 OR named > 0 AND (cardinality(asked) >= 25 OR cardinality(names) > bound) THEN
    level := NULL;
    what := 'places';
    RETURN NEXT;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.held_by_unserved(text[]) IS
  'Returns the first ten queues and levels that have no place or token left for others because '
  'open jobs of these unserved tasks have places or tokens, and for which due jobs wait: of 25 '
  'full queues and levels among the queues of the first 200 open jobs, ten of each task at least. '
  'A last row without a level: there may be more.';
