-- Crontabs: sets of schedules that a file of pulse-worker names. pulse-worker reads the file in
-- Graphile Worker's grammar; load_crontab makes the schedules of the set equal to the file.

-- Graphile Worker's tasks read the due time here.
CREATE OR REPLACE FUNCTION pulse_internal.crontab_payload(
    payload json, due timestamptz, is_backfilled boolean)
  RETURNS json
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN coalesce(payload::jsonb, '{}') || jsonb_build_object('_cron', jsonb_build_object(
    'ts', to_char(due AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'backfilled', is_backfilled));
END $$;
COMMENT ON FUNCTION pulse_internal.crontab_payload(json, timestamptz, boolean) IS
  'Returns the payload of a crontab''s job: the payload of the item, and the due time as _cron.';

CREATE OR REPLACE FUNCTION pulse_internal.raise_other_owner(stored pulse.schedule) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF stored.crontab_set IS NULL THEN
    RAISE EXCEPTION 'schedule % is not of a crontab', quote_literal(stored.name) USING
      ERRCODE = 'PU004', HINT = 'Name the item otherwise (?id=NAME), or unschedule the schedule.';
  END IF;
  RAISE EXCEPTION 'schedule % is of the crontab %', quote_literal(stored.name),
    quote_literal(stored.crontab_set) USING
    ERRCODE = 'PU004', HINT = 'Change it in its file, or choose another name.';
END $$;
COMMENT ON FUNCTION pulse_internal.raise_other_owner(pulse.schedule) IS 'Raises PU004.';

CREATE OR REPLACE FUNCTION pulse_internal.crontab_item(set_name text, item json)
  RETURNS pulse.schedule
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  what text := format('item %s of crontab %s', quote_nullable(left(item ->> 'name', 128)),
                      quote_literal(set_name));
  given pulse.schedule;
  fill interval;
BEGIN
  PERFORM pulse_internal.check_keys(what, item, '{name,identifier,cron,payload,queue_name,
    max_attempts,priority,job_key,job_key_mode,fill}');
  fill := item ->> 'fill';
  PERFORM pulse_internal.check_duration('fill', fill, interval '0');
  SELECT i.name, i.identifier, i.cron, i.payload, i.queue_name, i.max_attempts, i.priority,
         i.job_key, CASE i.job_key_mode WHEN 'dedupe' THEN 'unsafe_dedupe'
           ELSE coalesce(i.job_key_mode, 'replace') END,
         CASE WHEN fill IS NULL THEN 'skip' ELSE 'all' END, coalesce(fill, interval '0'),
         'allow', 'UTC', 0, 0, pulse.now(), pulse.now(), set_name
    INTO given.name, given.identifier, given.cron, given.payload, given.queue_name,
         given.max_attempts, given.priority, given.job_key, given.job_key_mode, given.missed,
         given.missed_for, given.overlap, given.time_zone, given.missed_count,
         given.overlapped_count, given.created_at, given.updated_at, given.crontab_set
    FROM json_to_record(item) AS i (
           name text, identifier text, cron text, payload json, queue_name text, max_attempts int,
           priority int, job_key text, job_key_mode text);
  IF json_typeof(given.payload) <> 'object' THEN
    RAISE EXCEPTION 'payload of % is of type %', quote_nullable(given.name),
      json_typeof(given.payload) USING ERRCODE = 'PU004', HINT = 'Use an object: {"key": "value"}.';
  END IF;
  RETURN given;
EXCEPTION WHEN data_exception THEN
  RAISE EXCEPTION '% has a value of a wrong type', what USING
    ERRCODE = 'PU004', DETAIL = SQLERRM,
    HINT = 'max_attempts and priority are numbers, fill is a duration, payload an object.';
END $$;
COMMENT ON FUNCTION pulse_internal.crontab_item(text, json) IS
  'Returns the schedule that one item of a crontab describes. Raises PU004 for a value that '
  'describes no schedule.';

-- Many workers load the same file when they start, so the function only reads stored items.
CREATE OR REPLACE FUNCTION pulse_internal.load_item(given pulse.schedule) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  older pulse.schedule;
BEGIN
  SELECT * INTO older FROM pulse.schedule AS s WHERE s.name = given.name;
  IF older.crontab_set = given.crontab_set AND older.gone_at IS NULL
     AND (older.identifier, older.cron, older.payload::text, older.queue_name, older.max_attempts,
          older.priority, older.job_key, older.job_key_mode, older.missed, older.missed_for)
         IS NOT DISTINCT FROM
         (given.identifier, given.cron, given.payload::text, given.queue_name, given.max_attempts,
          given.priority, given.job_key, given.job_key_mode, given.missed, given.missed_for) THEN
    RETURN 'unchanged';
  END IF;
  IF older.gone_at IS NOT NULL THEN
    given.paused := older.paused_before;
  END IF;
  PERFORM pulse_internal.check_and_store(given);
  RETURN CASE WHEN older.name IS NULL THEN 'added' WHEN older.gone_at IS NOT NULL THEN 'resumed'
           ELSE 'changed' END;
END $$;
COMMENT ON FUNCTION pulse_internal.load_item(pulse.schedule) IS
  'Stores the schedule of a crontab''s item, and returns added, changed, resumed or unchanged.';

CREATE OR REPLACE FUNCTION pulse_internal.prune_gone_schedules(max_count int) RETURNS int
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
  WITH gone AS (
    DELETE FROM pulse.schedule AS s
     WHERE s.ctid = ANY (ARRAY(
             SELECT o.ctid FROM pulse.schedule AS o
              WHERE o.gone_at < pulse.now() - interval '1 day'
              ORDER BY o.gone_at LIMIT max_count
                FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::int FROM gone;
$$;
COMMENT ON FUNCTION pulse_internal.prune_gone_schedules(int) IS
  'Deletes at most max_count schedules that their crontab has not named for a day; returns how '
  'many.';

-- Two releases that run side by side name different items. So an item that one release does not
-- name is paused and keeps its phase, until the other release names the item again.
CREATE OR REPLACE FUNCTION pulse_internal.load_crontab_as_owner(set_name text, items json)
  RETURNS TABLE (name text, change text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  given pulse.schedule;
  named text[] := '{}';
BEGIN
  PERFORM pulse_internal.check_name('set_name', set_name, 128);
  IF json_typeof(items) IS DISTINCT FROM 'array' THEN
    RAISE EXCEPTION 'items is %', coalesce(json_typeof(items), 'null') USING
      ERRCODE = 'PU004', HINT = 'Give an array of objects with name, identifier and cron.';
  END IF;
  LOCK TABLE pulse.schedule IN ROW EXCLUSIVE MODE;
  -- Locked in one order, so that two loads never wait for each other.
  PERFORM FROM pulse.schedule AS s WHERE s.crontab_set = set_name ORDER BY s.name FOR UPDATE;
  FOR given IN
    SELECT g.* FROM json_array_elements(items) AS i,
           pulse_internal.crontab_item(set_name, i) AS g ORDER BY g.name COLLATE "C"
  LOOP
    IF given.name = load_crontab_as_owner.name THEN  -- the item before, in the order of names
      RAISE EXCEPTION 'crontab % names % twice', quote_literal(set_name),
        quote_literal(given.name) USING
        ERRCODE = 'PU004', HINT = 'Give each item of a task a name of its own: ?id=NAME.';
    END IF;
    named := named || given.name;
    load_crontab_as_owner.name := given.name;
    load_crontab_as_owner.change := pulse_internal.load_item(given);
    RETURN NEXT;
  END LOOP;
  FOR given IN SELECT s.* FROM pulse.schedule AS s
                WHERE s.crontab_set = set_name AND s.gone_at IS NULL AND s.name <> ALL (named)
                ORDER BY s.name LOOP
    given := pulse_internal.count_passed(given);
    UPDATE pulse.schedule AS s
       SET gone_at = pulse.now(), paused_before = s.paused, paused = true, updated_at = pulse.now(),
           next_due = given.next_due, last_due = given.last_due, missed_count = given.missed_count,
           paused_at = CASE WHEN s.paused THEN s.paused_at ELSE pulse.now() END,
           paused_by = CASE WHEN s.paused THEN s.paused_by ELSE pulse_internal.caller() END
     WHERE s.name = given.name;
    load_crontab_as_owner.name := given.name;
    load_crontab_as_owner.change := 'paused';
    RETURN NEXT;
  END LOOP;
  PERFORM pulse_internal.note_schedules();
END $$;
COMMENT ON FUNCTION pulse_internal.load_crontab_as_owner(text, json) IS
  'The body of pulse.load_crontab().';

CREATE OR REPLACE FUNCTION pulse.load_crontab(set_name text, items json)
  RETURNS TABLE (name text, change text)
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.load_crontab(text, json) IS
  'Makes the schedules of a crontab equal to items: an array of objects with name, identifier and '
  'cron (in UTC), and if wanted payload (an object), fill (an interval: missed due times of so '
  'long are made up for), queue_name, max_attempts, priority, job_key, job_key_mode. Schedules of '
  'this set that items does not name are paused, and deleted a day later unless a call names them '
  'again. Returns each name with added, changed, resumed, paused or unchanged. pulse-worker '
  '--crontab calls the function. Raises PU004 for a value out of range, a name given twice, and a '
  'schedule that is not of this set.';
