-- verify(): the promises as queries over the tables; no row is good. Each promise is a view of its
-- own, so that the checks of a promise can be read in one place. The views read every job: do not
-- poll them.

CREATE OR REPLACE VIEW pulse_internal.broken_p1 AS
  SELECT 'P1'::text AS promise, j.id AS job_id, 'live and finished at once'::text AS detail
    FROM pulse.job AS j JOIN pulse.finished_job AS f ON f.id = j.id
  UNION ALL
  SELECT 'P1', j.id, 'parked without a queue or a parent'
    FROM pulse.job AS j
   WHERE j.state = 'parked' AND j.queue_name IS NULL AND j.waits_on IS NULL
     AND j.key_is_undecided IS NOT TRUE
  UNION ALL
  SELECT 'P1', j.id, 'an id that was never given out'
    FROM pulse.job AS j
   WHERE j.id > (SELECT s.last_value FROM pulse.job_id_seq AS s)
      OR j.id < (SELECT b.id_floor FROM pulse_internal.id_bounds AS b)
  UNION ALL
  SELECT 'P1', f.id, 'a dead letter that has added a dead letter'
    FROM pulse.finished_job AS f
   WHERE f.dead_letter_of IS NOT NULL AND f.dead_letter_id IS NOT NULL;
COMMENT ON VIEW pulse_internal.broken_p1 IS 'Violations of P1: no job is lost.';

CREATE OR REPLACE VIEW pulse_internal.broken_p2 AS
  SELECT 'P2'::text AS promise, j.id AS job_id, 'running without a token'::text AS detail
    FROM pulse.job AS j WHERE j.state = 'running' AND j.token IS NULL
  UNION ALL
  SELECT 'P2', j.id, 'running without a worker'
    FROM pulse.job AS j WHERE j.state = 'running' AND j.worker_id IS NULL
  UNION ALL
  SELECT 'P2', j.id, 'running although it may still expire'
    FROM pulse.job AS j WHERE j.state = 'running' AND j.start_by IS NOT NULL
  UNION ALL
  SELECT 'P2', j.id, 'waiting with a token'
    FROM pulse.job AS j WHERE j.state <> 'running' AND j.token IS NOT NULL
  UNION ALL
  SELECT 'P2', j.id, 'its token is also the claim of another worker'
    FROM (SELECT o.token FROM pulse.job AS o WHERE o.state = 'running' GROUP BY o.token
          HAVING pg_catalog.min(o.worker_id) <> pg_catalog.max(o.worker_id)) AS shared
    JOIN pulse.job AS j ON j.token = shared.token
   WHERE j.state = 'running'
  UNION ALL
  SELECT 'P2', j.id, 'a token that was never given out'
    FROM pulse.job AS j
   WHERE j.token > (SELECT (pg_catalog.max(i.epoch_base + i.timeline)::bigint << 40)
                             + s.last_value
                      FROM pulse.token_seq AS s, pulse.installation AS i GROUP BY s.last_value)
  UNION ALL
  -- No sweep would find the job when its worker is lost.
  SELECT 'P2', j.id, 'claimed in place and not listed'
    FROM pulse.job AS j
   WHERE j.state = 'running' AND j.in_place
     AND (j.job_key IS NOT NULL
          OR NOT EXISTS (SELECT FROM pulse.claim_batch AS c
                          WHERE c.worker_id = j.worker_id AND c.token = j.token
                            AND j.id = ANY (c.job_ids)));
COMMENT ON VIEW pulse_internal.broken_p2 IS 'Violations of P2: one owner.';

CREATE OR REPLACE VIEW pulse_internal.broken_p3 AS
  SELECT 'P3'::text AS promise, j.id AS job_id,
         'runs under a token whose attempt has ended'::text AS detail
    FROM pulse.job AS j JOIN pulse.attempt AS a ON a.job_id = j.id AND a.token = j.token
   WHERE j.state = 'running'
  UNION ALL
  SELECT 'P3', j.id, 'live although an attempt of it completed'
    FROM pulse.job AS j
   WHERE EXISTS (SELECT FROM pulse.attempt AS a WHERE a.job_id = j.id AND a.outcome = 'completed')
  UNION ALL
  SELECT 'P3', a.job_id, 'completed more than once'
    FROM pulse.attempt AS a WHERE a.outcome = 'completed'
   GROUP BY a.job_id HAVING pg_catalog.count(*) > 1;
COMMENT ON VIEW pulse_internal.broken_p3 IS 'Violations of P3: one accepted completion.';

CREATE OR REPLACE VIEW pulse_internal.broken_p4 AS
  SELECT 'P4'::text AS promise, j.id AS job_id, 'attempts out of range'::text AS detail
    FROM pulse.job AS j WHERE j.attempts < 0 OR j.max_attempts < 1 OR j.attempts > j.max_attempts
  UNION ALL
  SELECT 'P4', j.id, 'running without an attempt'
    FROM pulse.job AS j WHERE j.state = 'running' AND j.attempts = 0
  UNION ALL
  SELECT 'P4', j.id, 'waiting although its attempts are used up'
    FROM pulse.job AS j WHERE j.state <> 'running' AND j.attempts >= j.max_attempts
  UNION ALL
  SELECT 'P4', j.id, 'an attempt was given back'
    FROM pulse.job AS j
   -- Attempts may have started again where the revision has, which takes more than this.
   WHERE j.revision = 0 AND j.updated_at < j.created_at + interval '20 days'
     AND j.attempts < (SELECT pg_catalog.max(a.attempt) FROM pulse.attempt AS a
                        WHERE a.job_id = j.id AND a.outcome <> 'released')
  UNION ALL
  SELECT 'P4', f.id, 'finished with more attempts than it may have'
    FROM pulse.finished_job AS f WHERE f.attempts > f.max_attempts OR f.attempts < 0;
COMMENT ON VIEW pulse_internal.broken_p4 IS 'Violations of P4: attempts are exact.';

CREATE OR REPLACE VIEW pulse_internal.broken_p7 AS
  SELECT 'P7'::text AS promise, j.id AS job_id,
         'live although it must be quarantined'::text AS detail
    FROM pulse.job AS j LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
   WHERE pulse_internal.is_poison(j.crashes,
                                  coalesce(t.max_crashes, pulse_internal.max_crashes()))
     -- A limit lowered later applies to the next crash.
     AND (t.updated_at IS NULL OR EXISTS (
            SELECT FROM pulse.attempt AS a
             WHERE a.job_id = j.id AND a.outcome = 'lost' AND a.ended_at >= t.updated_at))
  UNION ALL
  SELECT 'P7', j.id, 'more crashes than attempts'
    FROM pulse.job AS j WHERE j.crashes > j.attempts OR j.crashes < 0
  UNION ALL
  SELECT 'P7', f.id, 'quarantined without a crash'
    FROM pulse.finished_job AS f WHERE f.state = 'quarantined' AND f.crashes < 1;
COMMENT ON VIEW pulse_internal.broken_p7 IS 'Violations of P7: a crash costs little.';

-- Each sweep sets the queue marks of queues that have a place for a waiting job. So a job that fell
-- due while no worker ran is not stranded.
CREATE OR REPLACE FUNCTION pulse_internal.overdue_before() RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN least(pulse.now() - pulse_internal.two_sweep_intervals(),
               pulse_internal.last_tick() + (pulse.now() - clock_timestamp()));
END $$;
COMMENT ON FUNCTION pulse_internal.overdue_before() IS
  'Returns the moment before which a waiting job must have fallen due to count as overdue: two '
  'sweep intervals ago, and before the last sweep.';

CREATE OR REPLACE VIEW pulse_internal.places_of_queues AS
  WITH overdue AS MATERIALIZED (SELECT pulse_internal.overdue_before() AS moment)
  SELECT j.queue_name, q.concurrency, q.paused,
         pg_catalog.count(*) FILTER (WHERE j.state <> 'parked') AS taken,
         -- New settings leave running jobs alone, so only jobs claimed under the new settings
         -- count.
         pg_catalog.count(*) FILTER (
           WHERE j.state = 'running'
             AND (q.changed_at IS NULL OR j.claimed_at > q.changed_at)) AS running,
         pg_catalog.count(*) FILTER (WHERE j.state = 'ready') AS open,
         pg_catalog.min(j.id) FILTER (WHERE j.state <> 'parked') AS first_open,
         pg_catalog.min(j.id) FILTER (
           WHERE j.state = 'parked' AND j.waits_on IS NULL
             AND greatest(j.run_at, j.updated_at) < o.moment) AS overdue,
         q.levels_places_left
    FROM (SELECT n.queue_name, own.*
            FROM (SELECT DISTINCT d.queue_name FROM pulse.job AS d
                   WHERE d.queue_name IS NOT NULL) AS n
           CROSS JOIN LATERAL (
             SELECT s.concurrency, s.paused, r.places_left AS levels_places_left,
                    greatest(s.changed_at, pulse_internal.unset_at()) AS changed_at
               FROM pulse_internal.level_settings(n.queue_name) AS s
              CROSS JOIN LATERAL pulse_internal.level_places_left(n.queue_name) AS r
              WHERE s.level = n.queue_name) AS own) AS q
    JOIN pulse.job AS j ON j.queue_name = q.queue_name
   CROSS JOIN overdue AS o
   GROUP BY j.queue_name, q.concurrency, q.paused, q.changed_at, q.levels_places_left;
COMMENT ON VIEW pulse_internal.places_of_queues IS
  'The places that each queue has given away, and the jobs that wait behind it.';

CREATE OR REPLACE VIEW pulse_internal.broken_p8 AS
  SELECT 'P8'::text AS promise, p.first_open AS job_id,
         pg_catalog.format('queue %L runs %s jobs, its concurrency is %s', p.queue_name, p.running,
                           p.concurrency) AS detail
    FROM pulse_internal.places_of_queues AS p WHERE p.running > p.concurrency
  UNION ALL
  SELECT 'P8', p.first_open,
         pg_catalog.format('queue %L has opened %s jobs, its concurrency is %s', p.queue_name,
                           p.taken, p.concurrency)
    FROM pulse_internal.places_of_queues AS p
   WHERE p.running <= p.concurrency AND p.open > 0 AND p.taken > p.concurrency
  UNION ALL
  SELECT 'P8', p.first_open,
         pg_catalog.format('queue %L is paused and has an open job', p.queue_name)
    FROM pulse_internal.places_of_queues AS p WHERE p.paused AND p.open > 0;
COMMENT ON VIEW pulse_internal.broken_p8 IS 'Violations of P8: order and concurrency of queues.';

-- New settings leave running jobs alone, as in places_of_queues.
CREATE OR REPLACE VIEW pulse_internal.places_of_levels AS
  SELECT s.level, s.total, s.paused, pg_catalog.sum(t.taken) AS taken,
         pg_catalog.sum(t.open) AS open, pg_catalog.sum(r.running) AS running,
         pg_catalog.min(t.first_open) AS first_open, s.rate
    FROM (SELECT j.queue_name, pg_catalog.count(*) AS taken,
                 pg_catalog.count(*) FILTER (WHERE j.state = 'ready') AS open,
                 pg_catalog.min(j.id) AS first_open
            FROM pulse.job AS j WHERE j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r')
           GROUP BY j.queue_name) AS t
   CROSS JOIN LATERAL pulse_internal.level_settings(t.queue_name) AS s
   CROSS JOIN LATERAL (
     SELECT pg_catalog.count(*) AS running FROM pulse.job AS j
      WHERE j.queue_name = t.queue_name AND j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r')
        AND j.state = 'running'
        AND j.claimed_at > greatest(s.changed_at, pulse_internal.unset_at(), '-infinity')) AS r
   GROUP BY s.level, s.total, s.paused, s.rate;
COMMENT ON VIEW pulse_internal.places_of_levels IS
  'The places that each level has given away to its own jobs and to all queues within it.';

CREATE OR REPLACE VIEW pulse_internal.broken_p13 AS
  SELECT 'P13'::text AS promise, p.first_open AS job_id,
         pg_catalog.format('level %L runs %s jobs, its total is %s', p.level, p.running,
                           p.total) AS detail
    FROM pulse_internal.places_of_levels AS p WHERE p.running > p.total
  UNION ALL
  SELECT 'P13', p.first_open,
         pg_catalog.format('level %L has opened %s jobs, its total is %s', p.level, p.taken,
                           p.total)
    FROM pulse_internal.places_of_levels AS p
   WHERE p.running <= p.total AND p.open > 0 AND p.taken > p.total
  UNION ALL
  SELECT 'P13', p.first_open,
         pg_catalog.format('level %L has %s open jobs and %s tokens', p.level, t.open, t.tokens)
    FROM pulse_internal.places_of_levels AS p
   CROSS JOIN LATERAL pulse_internal.tokens_of(p.level) AS t
   WHERE p.rate IS NOT NULL AND t.open > t.tokens
  UNION ALL
  -- New settings leave running jobs alone, as in places_of_queues.
  SELECT 'P13', o.id,
         pg_catalog.format('strict queue %L has started it before job %s has ended', o.queue_name,
                           h.id)
    FROM pulse.job AS h JOIN pulse.job AS o ON o.queue_name = h.queue_name
   CROSS JOIN LATERAL pulse_internal.level_settings(h.queue_name) AS s
   WHERE h.succession = 1 AND h.index_lane IN ('p', 'k') AND h.queue_name IS NOT NULL
     AND o.index_lane IN ('o', 'r') AND s.level = h.queue_name AND s.is_strict
     AND (coalesce(o.succession > 1, true) OR o.id > h.id)
     AND (o.state = 'ready'
          OR o.claimed_at > greatest(s.changed_at, pulse_internal.unset_at(), '-infinity'))
  UNION ALL
  SELECT 'P13', p.first_open,
         pg_catalog.format('level %L is paused and has an open job', p.level)
    FROM pulse_internal.places_of_levels AS p WHERE p.paused AND p.open > 0;
COMMENT ON VIEW pulse_internal.broken_p13 IS 'Violations of P13: limits of levels hold.';

-- A queue that seems stranded may be about to move: a commit sets the queue mark after the snapshot
-- of the commit became visible, and a promotion clears the queue mark before it commits.
CREATE OR REPLACE VIEW pulse_internal.stranded AS
  WITH overdue AS MATERIALIZED (SELECT pulse_internal.overdue_before() AS moment)
  SELECT p.queue_name, p.overdue AS job_id,
         pg_catalog.format('stranded behind queue %L', p.queue_name) AS detail
    FROM pulse_internal.places_of_queues AS p
   WHERE NOT p.paused AND p.taken < p.concurrency AND p.overdue IS NOT NULL
     AND coalesce(p.levels_places_left > 0, true)
     AND NOT pulse_internal.is_marked(p.queue_name)
     AND NOT pulse_internal.is_queue_locked(p.queue_name)
     AND NOT pulse_internal.is_kept_waiting(p.queue_name, pulse_internal.overdue_before())
  UNION ALL
  SELECT DISTINCT b.queue_name, b.id,
         pg_catalog.format('waits behind queue %L, which opened a worse one', b.queue_name)
    FROM pulse.job AS b JOIN pulse.job AS o ON o.queue_name = b.queue_name CROSS JOIN overdue AS d
   WHERE b.state = 'parked' AND o.state = 'ready' AND greatest(b.run_at, b.updated_at) < d.moment
     AND NOT pulse_internal.is_marked(b.queue_name)
     AND NOT pulse_internal.is_queue_locked(b.queue_name)
     AND b.waits_on IS NULL AND (b.priority, b.run_at, b.id) < (o.priority, o.run_at, o.id)
     AND (o.succession IS NULL
          OR NOT (SELECT s.is_strict FROM pulse_internal.level_settings(o.queue_name) AS s
                   WHERE s.level = o.queue_name))
  UNION ALL
  SELECT NULL, j.id, 'waits for jobs that have ended'
    FROM pulse.job AS j
   WHERE j.waits_on IS NOT NULL
     AND NOT EXISTS (SELECT FROM pulse.job AS p WHERE p.id = j.waits_on)
     AND NOT pulse_internal.is_parent_marked(j.waits_on)
     AND pulse_internal.locked_by(j.id) IS NULL;
COMMENT ON VIEW pulse_internal.stranded IS
  'Jobs that wait although their queue has a place for them, or although the awaited parents have '
  'ended, as one snapshot shows them.';

-- Running code sets the queue mark or commits the promotion between two checks; where a lock hid a
-- job from the promotion, the next sweep sets the queue mark. The next claim publishes the notes of
-- a COMMIT PREPARED, as the call does. A
-- busy queue may seem stranded several times in a row. A standby has no queue marks and promotes
-- nothing.
CREATE OR REPLACE FUNCTION pulse_internal.stranded_in_each_check()
  RETURNS TABLE (promise text, job_id bigint, detail text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  min_checks CONSTANT int := 20;
  ends CONSTANT timestamptz := clock_timestamp() + pulse_internal.two_sweep_intervals();
  checks int := 0;
  seen pulse_internal.stranded[] := '{}';
  queue_names text[];
  is_last_check boolean;
BEGIN
  IF NOT pg_is_in_recovery() THEN
    PERFORM pulse_internal.publish_prepared();
    seen := ARRAY(SELECT s FROM pulse_internal.stranded AS s);
  END IF;
  WHILE cardinality(seen) > 0 LOOP
    PERFORM pg_sleep(0.1);
    checks := checks + 1;
    is_last_check := checks >= min_checks AND clock_timestamp() > ends;
    queue_names := ARRAY(SELECT s.queue_name FROM unnest(seen) AS s);
    -- The names keep each later check to the jobs of these queues.
    seen := ARRAY(SELECT s FROM pulse_internal.stranded AS s
                   WHERE coalesce(s.queue_name = ANY (queue_names), true) AND s = ANY (seen));
    EXIT WHEN is_last_check;
  END LOOP;
  RETURN QUERY SELECT CASE WHEN s.queue_name IS NULL THEN 'P14' ELSE 'P8' END, s.job_id, s.detail
    FROM unnest(seen) AS s;
END $$;
COMMENT ON FUNCTION pulse_internal.stranded_in_each_check() IS
  'Returns the jobs that stay stranded in at least 20 checks, for two sweep intervals.';

-- A new version of the time zones may move a due time; resume_schedule starts the schedule by the
-- new due time.
CREATE OR REPLACE VIEW pulse_internal.broken_p12 AS
  SELECT 'P12'::text AS promise, s.last_job_id AS job_id,
         pg_catalog.format('schedule %L has settled its next due time', s.name) AS detail
    FROM pulse.schedule AS s WHERE s.last_due >= s.next_due
  UNION ALL
  SELECT 'P12', s.last_job_id,
         pg_catalog.format('schedule %L waits for a time at which it is not due', s.name)
    FROM pulse.schedule AS s
   WHERE NOT s.paused AND pulse_internal.zone_name(s.time_zone) IS NOT NULL
     AND s.next_due IS DISTINCT FROM
         pulse_internal.due_after(s, s.next_due - interval '1 microsecond')
  UNION ALL
  SELECT 'P12', s.last_job_id,
         pg_catalog.format('schedule %L names a job that was never added', s.name)
    FROM pulse.schedule AS s
   WHERE s.last_job_id > (SELECT q.last_value FROM pulse.job_id_seq AS q);
COMMENT ON VIEW pulse_internal.broken_p12 IS 'Violations of P12: once per due time.';

CREATE OR REPLACE VIEW pulse_internal.broken_p14 AS
  SELECT 'P14'::text AS promise, j.id AS job_id,
         'went to the claims before what it waited for had ended'::text AS detail
    FROM pulse.job AS j
   WHERE j.waits_on IS NULL
     AND EXISTS (SELECT FROM pulse.dependency AS d WHERE d.child_id = j.id)
  UNION ALL
  SELECT 'P14', j.id, 'runs although it waits' FROM pulse.job AS j
   WHERE j.waits_on IS NOT NULL AND j.state <> 'parked'
  UNION ALL
  SELECT 'P14', j.id, pg_catalog.format('watches job %s, for which it does not wait', j.waits_on)
    FROM pulse.job AS j
   WHERE j.waits_on IS NOT NULL
     AND NOT EXISTS (SELECT FROM pulse.dependency AS d
                      WHERE d.child_id = j.id AND j.waits_on = ANY (d.parents))
  UNION ALL
  SELECT 'P14', f.id, 'cancelled because of a job for which it did not wait'
    FROM pulse.finished_job AS f
   WHERE f.cancelled_by IS NOT NULL
     AND NOT EXISTS (SELECT FROM pulse.dependency AS d
                      WHERE d.child_id = f.id AND f.cancelled_by = ANY (d.parents))
  UNION ALL
  SELECT 'P14', f.id, 'cancelled because of a job whose end it did not ask for'
    FROM pulse.finished_job AS f
   WHERE f.cancelled_by IS NOT NULL AND coalesce(f.starts_when NOT IN ('completed', 'failed'), true)
  UNION ALL
  -- A parent may end anew after the job: by hand, or after a retry that the job's key held back.
  SELECT 'P14', f.id, pg_catalog.format('cancelled because of job %s, which had completed', p.id)
    FROM pulse.finished_job AS f JOIN pulse.finished_job AS p ON p.id = f.cancelled_by
   WHERE f.starts_when = 'completed' AND p.finished_at <= f.finished_at
     AND NOT pulse_internal.ended_otherwise(p)
  UNION ALL
  SELECT 'P14', f.id, pg_catalog.format('not needed, although job %s had not completed', p.id)
    FROM pulse.finished_job AS f
    JOIN pulse.finished_job AS p ON p.id = pulse_internal.failed_parent(f.id)
   WHERE f.cancelled_by IS NOT NULL AND f.starts_when = 'failed' AND p.finished_at <= f.finished_at
  UNION ALL
  SELECT 'P14', f.id, 'was not needed, and counts as cancelled for the jobs after it'
    FROM pulse.finished_job AS f
   WHERE f.state = 'cancelled' AND f.cancelled_by IS NULL
     AND f.last_error = pulse_internal.cancelled_because('not needed', NULL)
  UNION ALL
  SELECT 'P14', d.child_id, 'has ended, and what it waited for is on record'
    FROM (SELECT DISTINCT w.child_id FROM pulse.dependency AS w) AS d
   WHERE NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.id = d.child_id)
     AND NOT EXISTS (SELECT FROM pulse.finished_job AS f
                      WHERE f.id = d.child_id AND f.cancelled_by IS NOT NULL)
  UNION ALL
  -- A keyed job that another transaction held while a flow named the job may keep no result.
  SELECT 'P14', p.id, pg_catalog.format('keeps no result for job %s of its flow', d.child_id)
    FROM pulse.flow_job AS c JOIN pulse.dependency AS d ON d.child_id = c.job_id
   CROSS JOIN LATERAL pg_catalog.unnest(d.parents) AS i (id)
    JOIN pulse.flow_job AS m ON m.job_id = i.id AND m.flow_id = c.flow_id
    JOIN pulse.job AS p ON p.id = i.id
   WHERE p.keeps_result IS NULL AND p.job_key IS NULL AND NOT p.superseded;
COMMENT ON VIEW pulse_internal.broken_p14 IS 'Violations of P14: order between jobs.';

CREATE OR REPLACE FUNCTION pulse.verify()
  RETURNS TABLE (promise text, job_id bigint, detail text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.require_read_committed('verify');
  RETURN QUERY
    SELECT * FROM pulse_internal.broken_p1
    UNION ALL SELECT * FROM pulse_internal.broken_p2
    UNION ALL SELECT * FROM pulse_internal.broken_p3
    UNION ALL SELECT * FROM pulse_internal.broken_p4
    UNION ALL SELECT * FROM pulse_internal.broken_p7
    UNION ALL SELECT * FROM pulse_internal.broken_p8
    UNION ALL SELECT * FROM pulse_internal.broken_p12
    UNION ALL SELECT * FROM pulse_internal.broken_p13
    UNION ALL SELECT * FROM pulse_internal.broken_p14
    ORDER BY 1, 2;
  RETURN QUERY SELECT * FROM pulse_internal.stranded_in_each_check() ORDER BY 2;
END $$;
COMMENT ON FUNCTION pulse.verify() IS
  'Checks promises P1 to P4, P7, P8 and P12 to P14 over the tables and returns one row per '
  'violation; none is good. Reads every job, so do not poll the function. The function checks a '
  'job that seems stranded behind a queue, or behind ended jobs, for two sweep intervals, and for '
  'two seconds at least, because a session may be about to open the job. A standby does not check '
  'for stranded jobs. Raises PU007 outside READ COMMITTED.';
