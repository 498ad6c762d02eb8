-- Ids that are never given out twice. A server that continues from files which lag behind (an
-- asynchronous failover, a restore to a point in time) does not know the last ids. So the first id
-- of a timeline or server leaps over all such ids, and the leap notes the gap: an id of the gap
-- that no table has may be the id of a lost job.

COMMENT ON FUNCTION pulse_internal.next_id(regclass) IS
  'Returns the next id of a sequence of ids; leaps where this server takes ids for the first time.';
COMMENT ON FUNCTION pulse_internal.id_place() IS
  'Returns where ids are taken: the timeline, above 32 bits of the system identifier.';
COMMENT ON TABLE pulse.id_gap IS
  'Ids of jobs that this server leapt over, as another server may have given them out. An id of a '
  'gap that no table has is unknown.';
COMMENT ON COLUMN pulse.id_gap.to_id IS 'The last id of the gap';
COMMENT ON COLUMN pulse.id_gap.from_id IS 'The first id of the gap';
COMMENT ON COLUMN pulse.id_gap.leapt_at IS 'When the leap was made: at the first id afterwards';

CREATE OR REPLACE FUNCTION pulse_internal.has_gap_row(to_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_has_gap_row';
COMMENT ON FUNCTION pulse_internal.has_gap_row(bigint) IS
  'Returns whether the gap that ends at this id has a row; keeps no lock.';

CREATE OR REPLACE VIEW pulse_internal.pending_gap AS
  SELECT f.last_value AS from_id, t.last_value AS to_id,
         pg_catalog.to_timestamp(a.last_value / 1e6) AS leapt_at
    FROM pulse.gap_from_seq AS f, pulse.gap_to_seq AS t, pulse.gap_at_seq AS a
   WHERE t.is_called AND NOT pulse_internal.has_gap_row(t.last_value);
COMMENT ON VIEW pulse_internal.pending_gap IS
  'The last gap, until a sweep has made its row.';

-- A record of a sequence covers its number and the 32 after the number. The server of the last
-- record took the first of these 33 at least. So a transaction that took an id below the last 64,
-- and whose commit is lost, was open while that server took 32 other ids.
CREATE OR REPLACE FUNCTION pulse_internal.first_in_doubt() RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  in_doubt CONSTANT int := 2 * 32;
BEGIN
  RETURN (SELECT greatest(s.last_value - in_doubt + 1, b.id_floor)
            FROM pulse.job_id_seq AS s, pulse_internal.id_bounds AS b);
END $$;
COMMENT ON FUNCTION pulse_internal.first_in_doubt() IS
  'Returns the first id whose job may be lost where this server continues from a copy.';

CREATE OR REPLACE FUNCTION pulse_internal.is_leap_due() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_leap_due';
COMMENT ON FUNCTION pulse_internal.is_leap_due() IS
  'Returns whether the next id leaps: this server has taken none. A standby takes none.';

CREATE OR REPLACE VIEW pulse_internal.id_gaps AS
  SELECT g.from_id, g.to_id, g.leapt_at FROM pulse.id_gap AS g
  UNION ALL
  SELECT p.from_id, p.to_id, p.leapt_at FROM pulse_internal.pending_gap AS p
  UNION ALL
  SELECT pulse_internal.first_in_doubt(), 9223372036854775807, pulse.now()
   WHERE pulse_internal.is_leap_due();
COMMENT ON VIEW pulse_internal.id_gaps IS
  'All gaps of ids; the last gap has no end before the leap, and no row before the next sweep.';

-- Two standbys that were promoted one after the other, neither knowing of the other, are on one
-- timeline and leap from one place. So chance sets the leaps apart, and tokens and worker ids.
CREATE OR REPLACE FUNCTION pulse_internal.leap_offset() RETURNS bigint
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  RETURN ('x' || pg_catalog.left(pg_catalog.gen_random_uuid()::text, 8))::bit(32)::bigint >> 1;
COMMENT ON FUNCTION pulse_internal.leap_offset() IS
  'Returns how far beyond a multiple of 2^32 a leap ends, and how far a new epoch moves tokens and '
  'worker ids: a random number below 2^31.';

-- Called under a lock. A crash between two notes lets the next id leap once more: the place comes
-- last. Of two attempts at one restore the later timeline leaps farther, past all ids that the
-- earlier attempt gave out. Until a sweep has made the row of a gap, a further leap widens the gap.
CREATE OR REPLACE FUNCTION pulse_internal.leap(place bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  leap_bits CONSTANT int := 32;
  noted bigint := (SELECT s.last_value FROM pulse.id_place_seq AS s);
  highest bigint := greatest(
    (SELECT s.last_value FROM pulse.job_id_seq AS s),
    (SELECT s.last_value FROM pulse.flow_id_seq AS s),
    (SELECT s.last_value FROM pulse.operation_id_seq AS s),
    (SELECT s.last_value FROM pulse.gap_to_seq AS s));
  timelines bigint := CASE WHEN place % (1::bigint << 32) = noted % (1::bigint << 32)
                        THEN (place >> 32) - (noted >> 32) END;
  -- Half a leap at least lies behind the highest id known here.
  target bigint := ((highest + (1::bigint << leap_bits - 1) >> leap_bits)
                    + greatest(timelines, 1) << leap_bits) + pulse_internal.leap_offset();
BEGIN
  IF target >= (SELECT b.id_ceiling FROM pulse_internal.id_bounds AS b) THEN
    RAISE EXCEPTION 'shard % has no ids left', (SELECT b.shard FROM pulse_internal.id_bounds AS b)
      USING ERRCODE = 'sequence_generator_limit_exceeded',
      DETAIL = 'A failover takes 2^32 of the 2^44 ids of a shard.',
      HINT = 'Let the jobs end, and create the extension anew.';
  END IF;
  IF NOT EXISTS (SELECT FROM pulse_internal.pending_gap) THEN
    PERFORM setval('pulse.gap_from_seq', pulse_internal.first_in_doubt());
  END IF;
  PERFORM setval('pulse.gap_at_seq', (extract(epoch FROM pulse.now()) * 1e6)::bigint);
  PERFORM setval('pulse.gap_to_seq', target);
  PERFORM setval(s.name::regclass, target)
     FROM (VALUES ('pulse.job_id_seq'), ('pulse.flow_id_seq'), ('pulse.operation_id_seq'))
          AS s (name);
  PERFORM setval('pulse.id_place_seq', place);
END $$;
COMMENT ON FUNCTION pulse_internal.leap(bigint) IS
  'Moves the sequences of ids beyond the next multiple of 2^32 past all ids that a server can have '
  'given out, and notes the gap and the place. No rollback undoes the leap. Raises 2200H where the '
  'shard has no ids left.';

CREATE OR REPLACE FUNCTION pulse_internal.leap_here() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_leap_here';
COMMENT ON FUNCTION pulse_internal.leap_here() IS
  'Leaps, whether or not this server has taken ids before.';

-- Of two sweeps at once, one sweep leaves the row to the other.
CREATE OR REPLACE FUNCTION pulse_internal.note_gap() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF NOT (SELECT t.is_called FROM pulse.gap_to_seq AS t) THEN
    RETURN;
  END IF;
  LOCK TABLE pulse.id_gap IN SHARE ROW EXCLUSIVE MODE NOWAIT;
  INSERT INTO pulse.id_gap (from_id, to_id, leapt_at)
  SELECT g.from_id, g.to_id, g.leapt_at FROM pulse_internal.pending_gap AS g;
EXCEPTION WHEN lock_not_available THEN
  RETURN;
END $$;
COMMENT ON FUNCTION pulse_internal.note_gap() IS
  'Makes the row of the last gap, unless the row is there or another transaction locks the table.';

-- The tables that keep a trace of a job that has committed.
CREATE OR REPLACE FUNCTION pulse_internal.has_trace(job_id bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pulse.job AS j WHERE j.id = has_trace.job_id)
      OR EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = has_trace.job_id)
      OR EXISTS (SELECT FROM pulse.attempt AS a WHERE a.job_id = has_trace.job_id)
      OR EXISTS (SELECT FROM pulse.flow_job AS m WHERE m.job_id = has_trace.job_id)
      OR pulse_internal.is_being_added(has_trace.job_id);
END $$;
COMMENT ON FUNCTION pulse_internal.has_trace(bigint) IS
  'Returns whether a table names this job, or a transaction in progress adds it.';

CREATE OR REPLACE FUNCTION pulse_internal.refuse_other_shard(job_ids bigint[]) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  other record;
BEGIN
  SELECT i AS id, s.shard, b.shard AS own INTO other
    FROM pulse_internal.id_bounds AS b, unnest(job_ids) AS i,
         pulse_internal.shard_of(i) AS s (shard)
   WHERE i > 0 AND s.shard <> b.shard AND s.shard <= 511 AND NOT pulse_internal.has_trace(i)
   ORDER BY i LIMIT 1;
  IF other.id IS NOT NULL THEN
    RAISE EXCEPTION 'job % is of shard %', other.id, other.shard USING
      ERRCODE = 'PU005', DETAIL = format('This database has shard %s.', other.own),
      HINT = 'Ask the database of that shard.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.refuse_other_shard(bigint[]) IS
  'Raises PU005 for an id of another shard that no table here has.';

CREATE OR REPLACE FUNCTION pulse_internal.refuse_lost(job_ids bigint[]) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lost record;
BEGIN
  PERFORM pulse_internal.refuse_other_shard(job_ids);
  SELECT i AS id, g.leapt_at INTO lost
    FROM pulse_internal.id_gaps AS g JOIN unnest(job_ids) AS i ON i BETWEEN g.from_id AND g.to_id
   WHERE NOT pulse_internal.has_trace(i)
   ORDER BY i LIMIT 1;
  IF lost.id IS NOT NULL THEN
    RAISE EXCEPTION 'job % was lost in the failover of %', lost.id, lost.leapt_at USING
      ERRCODE = 'PU005',
      DETAIL = 'This server continues from an earlier state of another one, without this job. Of '
               'the last ids before, some may be of jobs that had completed and were not kept.',
      HINT = 'Find out whether it ran, and add it again where it did not.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.refuse_lost(bigint[]) IS
  'Raises PU005 for an id of a gap, or of another shard, that no table has.';
