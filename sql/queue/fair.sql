-- Fair levels: extension/limit/fair_turn.cpp gives turns to the queues within a level. A job that
-- no worker claims would keep its place for ever, so a sweep parks it until the next turn.

CREATE OR REPLACE FUNCTION pulse_internal.is_turn_awaited(level text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_turn_awaited';
COMMENT ON FUNCTION pulse_internal.is_turn_awaited(text) IS
  'Returns whether queues of a fair level wait for a place that another queue has.';

CREATE OR REPLACE FUNCTION pulse_internal.opened_before() RETURNS xid
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_opened_before';
COMMENT ON FUNCTION pulse_internal.opened_before() IS
  'Returns the transaction before which open jobs were opened at least a sweep_interval ago, and '
  'begins the next interval; NULL if the last interval is not over.';

-- The settings of members hold for each level with open jobs among the members.
CREATE OR REPLACE FUNCTION pulse_internal.fair_levels() RETURNS TABLE (level text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT q.queue_name FROM pulse.queue AS q WHERE q.fair AND q.queue_name NOT LIKE '%/*'
    UNION
    SELECT (pulse_internal.levels_of(w.queue_name))
             [cardinality(pulse_internal.levels_of(p.name)) + 1]
      FROM pulse.queue AS q
     CROSS JOIN LATERAL (SELECT pulse_internal.level_of_settings(q.queue_name) AS name) AS p
     CROSS JOIN LATERAL pulse_internal.jobs_within(p.name) AS w
     WHERE q.fair AND q.queue_name LIKE '%/*' AND w.state = 'ready' AND w.queue_name > p.name;
END $$;
COMMENT ON FUNCTION pulse_internal.fair_levels() IS
  'Returns the names of the fair levels that may have open jobs, and perhaps more.';

CREATE OR REPLACE FUNCTION pulse_internal.park_unserved() RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  fair_level text;
  opened_before xid;
  parked bigint := 0;
BEGIN
  FOR fair_level IN SELECT f.level FROM pulse_internal.fair_levels() AS f LOOP
    CONTINUE WHEN NOT pulse_internal.is_turn_awaited(fair_level);
    opened_before := coalesce(opened_before, pulse_internal.opened_before());
    EXIT WHEN opened_before IS NULL;
    WITH unserved AS (
      UPDATE pulse.job AS j SET state = 'parked'
       WHERE j.id IN (SELECT o.id FROM pulse.job AS o
                       WHERE o.id IN (SELECT w.id FROM pulse_internal.jobs_within(fair_level) AS w
                                       WHERE w.state = 'ready')
                         AND o.state = 'ready' AND o.index_lane IN ('o', 'r')
                         AND age(o.xmin) > age(opened_before)
                         FOR UPDATE SKIP LOCKED)
      RETURNING j.queue_name
    )
    SELECT parked + count(pulse_internal.note_queue(u.queue_name)) INTO parked FROM unserved AS u;
  END LOOP;
  RETURN parked;
END $$;
COMMENT ON FUNCTION pulse_internal.park_unserved() IS
  'Parks the jobs of fair levels that no worker has claimed for a sweep_interval while others '
  'wait for the places, and returns how many; the jobs come back at their next turn.';
