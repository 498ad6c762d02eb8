-- Jobs that wait for other jobs, their parents. A waiting job watches the highest live parent
-- (job.waits_on); the other parents are rows of pulse.dependency. The commit that ends a watched
-- parent sets the parent mark, and so does the commit that lets a job wait: promotion takes the
-- parent mark, and then a new snapshot. So one of the two commits sees the change of the other.

CREATE OR REPLACE FUNCTION pulse_internal.neighbours_of(parent_id bigint) RETURNS bigint
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_neighbours_of';
COMMENT ON FUNCTION pulse_internal.neighbours_of(bigint) IS
  'Returns the parents_from of the row of pulse.dependency with this parent.';

CREATE OR REPLACE FUNCTION pulse_internal.note_parent(parent_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_parent';
COMMENT ON FUNCTION pulse_internal.note_parent(bigint) IS
  'Arranges that the commit sets the parent mark of a parent; returns false without shared memory.';

-- No claim may have a job that waits for others, so the job concerns its parent alone.
CREATE OR REPLACE FUNCTION pulse_internal.note_waiting(job pulse.job) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF job.waits_on IS NULL THEN
    PERFORM pulse_internal.note_job(job.identifier, job.queue_name, job.run_at);
  ELSE
    PERFORM pulse_internal.note_parent(job.waits_on);
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION pulse_internal.note_waiting(pulse.job) IS
  'Calls note_job, or note_parent for a job that waits for others; returns true.';

CREATE OR REPLACE FUNCTION pulse_internal.is_parent_marked(parent_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_parent_marked';
COMMENT ON FUNCTION pulse_internal.is_parent_marked(bigint) IS
  'Returns whether the parent mark of a parent is set, so that a claim or sweep is about to judge '
  'the jobs that wait for it.';

CREATE OR REPLACE FUNCTION pulse_internal.in_order(ids bigint[]) RETURNS bigint[]
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_in_order';
COMMENT ON FUNCTION pulse_internal.in_order(bigint[]) IS
  'Returns the elements of an array without nulls in ascending order, each once.';

CREATE OR REPLACE FUNCTION pulse_internal.neighbours(
    ids bigint[], OUT parents_from bigint, OUT parents bigint[]) RETURNS SETOF record
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE ROWS 1000 AS 'MODULE_PATHNAME', 'pulse_neighbours';
COMMENT ON FUNCTION pulse_internal.neighbours(bigint[]) IS
  'Returns the ids in ascending order, each once, the ids of a row of pulse.dependency together.';

CREATE OR REPLACE FUNCTION pulse_internal.live_ids(ids bigint[], lives boolean) RETURNS bigint[]
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_live_ids';
COMMENT ON FUNCTION pulse_internal.live_ids(bigint[], boolean) IS
  'Returns the ids of jobs that wait or run, or the ids of all other jobs. The ids stand in '
  'ascending order, each once.';

CREATE OR REPLACE FUNCTION pulse_internal.is_live(job_id bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pulse.job AS j WHERE j.id = is_live.job_id);
END $$;
COMMENT ON FUNCTION pulse_internal.is_live(bigint) IS
  'Returns whether a job waits or runs, under a new snapshot.';

-- The state "not needed" of a job that asked for a failure counts as completed.
CREATE OR REPLACE FUNCTION pulse_internal.ended_otherwise(parent pulse.finished_job)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN parent.state <> 'completed'
     AND NOT (parent.cancelled_by IS NOT NULL AND parent.starts_when = 'failed');
END $$;
COMMENT ON FUNCTION pulse_internal.ended_otherwise(pulse.finished_job) IS
  'Returns whether a finished parent counts as ended otherwise than by completing.';

-- The walk over records is bounded by the parents of a row, so a parent without neighbours costs
-- one step.
CREATE OR REPLACE VIEW pulse_internal.ended_parent AS
  SELECT d.child_id, d.parents_from, f AS record
    FROM pulse.dependency AS d
    JOIN pulse.finished_job AS f
      ON f.id BETWEEN d.parents[1] AND d.parents[pg_catalog.cardinality(d.parents)]
     AND pg_catalog.array_position(d.parents, f.id) IS NOT NULL;
COMMENT ON VIEW pulse_internal.ended_parent IS
  'The ends on record of the parents of each job that waits or was cancelled because of one.';

CREATE OR REPLACE FUNCTION pulse_internal.failed_parent(
    child_id bigint, from_id bigint = 1, to_id bigint = 9223372036854775807)
  RETURNS bigint
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
BEGIN
  RETURN (
    SELECT min((e.record).id)
      FROM pulse_internal.ended_parent AS e
     WHERE e.child_id = failed_parent.child_id
       AND e.parents_from BETWEEN pulse_internal.neighbours_of(from_id) AND to_id
       AND (e.record).id BETWEEN from_id AND to_id
       AND pulse_internal.ended_otherwise(e.record));
END $$;
COMMENT ON FUNCTION pulse_internal.failed_parent(bigint, bigint, bigint) IS
  'Returns the first parent of a job, from one id to another id, that ended otherwise than by '
  'completing; NULL without such a parent.';

CREATE OR REPLACE FUNCTION pulse_internal.records_of_parents(
    child_id bigint, OUT failed bigint, OUT has_records boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
BEGIN
  SELECT min((e.record).id) FILTER (WHERE (e.record).state <> 'completed'
                                      AND pulse_internal.ended_otherwise(e.record)),
         count(*) > 0 INTO failed, has_records
    FROM pulse_internal.ended_parent AS e
   WHERE e.child_id = records_of_parents.child_id;
END $$;
COMMENT ON FUNCTION pulse_internal.records_of_parents(bigint) IS
  'Returns the first parent of a job that ended otherwise than by completing, NULL without such a '
  'parent, and whether the end of any parent is on record.';

CREATE OR REPLACE FUNCTION pulse_internal.live_parent(
    child_id bigint, below bigint = 9223372036854775807, above bigint = 0)
  RETURNS bigint
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off AS $$
DECLARE
  ids bigint[];
  highest bigint;
BEGIN
  FOR ids IN
    SELECT d.parents FROM pulse.dependency AS d
     WHERE d.child_id = live_parent.child_id
       AND d.parents_from BETWEEN pulse_internal.neighbours_of(above) AND below
     ORDER BY d.parents_from DESC
  LOOP
    ids := pulse_internal.live_ids(ids, true);
    IF ids <> '{}' THEN
      SELECT max(i) INTO highest FROM unnest(ids) AS i WHERE i < below AND i > above;
      EXIT WHEN highest IS NOT NULL;
    END IF;
  END LOOP;
  RETURN highest;
END $$;
COMMENT ON FUNCTION pulse_internal.live_parent(bigint, bigint, bigint) IS
  'Returns the highest live parent of a job, below one id and above another id; NULL without a '
  'live parent.';

-- A check passes the parents between the old watch and the new watch, and no other parent. So a job
-- with many parents checks each parent once, and all parents before the job starts.
CREATE OR REPLACE FUNCTION pulse_internal.judge_wait(
    child pulse.job, OUT outcome text, OUT parent_id bigint, OUT has_records boolean)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  next_parent bigint := pulse_internal.live_parent(child.id, child.waits_on);
  failed bigint;
BEGIN
  IF next_parent IS NOT NULL THEN
    failed := pulse_internal.failed_parent(child.id, next_parent, child.waits_on);
  ELSE
    -- A parent that was retried.
    next_parent := pulse_internal.live_parent(child.id, above => child.waits_on);
    SELECT r.failed, r.has_records INTO failed, has_records
      FROM pulse_internal.records_of_parents(child.id) AS r;
  END IF;
  IF child.starts_when = 'completed' AND failed IS NOT NULL THEN
    outcome := 'cancelled';
    parent_id := failed;
  ELSIF next_parent IS NOT NULL THEN
    outcome := 'waits';
    parent_id := next_parent;
  ELSIF child.starts_when = 'failed' AND failed IS NULL THEN
    outcome := 'not needed';
    parent_id := child.waits_on;
  ELSE
    outcome := 'starts';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.judge_wait(pulse.job) IS
  'Returns the outcome for a waiting job whose watched parent has ended: the job waits for another '
  'parent, starts, or is cancelled because of a parent. has_records, of a job that starts: whether '
  'the end of a parent is on record.';

CREATE OR REPLACE FUNCTION pulse_internal.end_members(result json, last_error text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT format('"result":%s,"last_error":%s', coalesce(result::text, 'null'),
                coalesce(to_json(last_error)::text, 'null'));
$$;
COMMENT ON FUNCTION pulse_internal.end_members(json, text) IS
  'Returns the values that a child gets of the end of a parent, as members of a JSON object.';

-- The query takes the shortest ends first, so that one long result does not crowd out all others.
-- Only the texts of the ends that fit are in memory together. A job that add_dependency lets wait
-- once more keeps the ends that it has.
CREATE OR REPLACE FUNCTION pulse_internal.ends_of_parents(child pulse.job) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  earlier text := child.parents::text;
  max_bytes int := 1048576 - coalesce(octet_length(earlier), 0);
  ends text;
BEGIN
  WITH ended AS MATERIALIZED (
    SELECT f.id, f.result, f.last_error,
           format('{"id":%1$s,"id_text":"%1$s","key":%2$s,"state":"%3$s",', f.id,
                  coalesce(to_json(m.key)::text, 'null'), f.state) AS head,
           octet_length(pulse_internal.end_members(f.result, f.last_error)) AS bytes
      FROM pulse_internal.ended_parent AS e CROSS JOIN LATERAL (SELECT (e.record).*) AS f
      LEFT JOIN pulse.flow_job AS m ON m.job_id = f.id
     WHERE e.child_id = child.id
  ), ranked AS (
    SELECT e.*, sum(octet_length(e.head) + e.bytes + 2) OVER (ORDER BY e.bytes, e.id) AS sum_bytes
      FROM ended AS e
  )
  SELECT string_agg(r.head || CASE WHEN r.sum_bytes < max_bytes
           THEN pulse_internal.end_members(r.result, r.last_error)
           ELSE '"left_out":true' END || '}', ',' ORDER BY r.id) INTO ends
    FROM ranked AS r;
  RETURN CASE WHEN earlier IS NULL THEN '[' ELSE left(earlier, -1) || ',' END || ends || ']';
END $$;
COMMENT ON FUNCTION pulse_internal.ends_of_parents(pulse.job) IS
  'Returns a JSON array of the ends of parents that are on record, for a job that starts: id, the '
  'same as id_text, key in the flow, state, and result and last_error, or left_out where result '
  'and last_error would bring the whole above 1 MiB.';

CREATE OR REPLACE FUNCTION pulse_internal.wait_outcome(
    child pulse.job, OUT outcome text, OUT parent_id bigint, OUT parents text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  has_records boolean;
BEGIN
  SELECT j.* INTO outcome, parent_id, has_records FROM pulse_internal.judge_wait(child) AS j;
  IF outcome = 'starts' AND has_records THEN
    parents := pulse_internal.ends_of_parents(child);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.wait_outcome(pulse.job) IS
  'Returns the outcome of judge_wait, and the parents'' ends that a starting job gets.';

CREATE OR REPLACE FUNCTION pulse_internal.start_waiting(job_ids bigint[], parents text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  noted int;
BEGIN
  DELETE FROM pulse.dependency AS d WHERE d.child_id = ANY (job_ids);
  WITH started AS (
    UPDATE pulse.job AS j
       SET waits_on = NULL, updated_at = pulse.now(),
           parents = coalesce(start_waiting.parents::json, j.parents),
           state = CASE WHEN j.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state
     WHERE j.id = ANY (job_ids)
    RETURNING j.identifier, j.queue_name, j.run_at)
  SELECT count(*) INTO noted FROM started AS s
   WHERE pulse_internal.note_job(s.identifier, s.queue_name, s.run_at);
END $$;
COMMENT ON FUNCTION pulse_internal.start_waiting(bigint[], text) IS
  'Lets locked jobs go that wait for no parent any more: to the claims, or behind their queues. '
  'parents: the ends of parents that the jobs get.';

CREATE OR REPLACE FUNCTION pulse_internal.watch_parent(job_ids bigint[], parent_id bigint)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  UPDATE pulse.job AS j SET waits_on = watch_parent.parent_id WHERE j.id = ANY (job_ids);
  PERFORM pulse_internal.note_parent(watch_parent.parent_id);
END $$;
COMMENT ON FUNCTION pulse_internal.watch_parent(bigint[], bigint) IS
  'Lets locked waiting jobs watch this parent.';

CREATE OR REPLACE FUNCTION pulse_internal.cancelled_because(outcome text, parent_id bigint)
  RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN CASE outcome WHEN 'not needed' THEN 'not needed: all that it waited for completed'
    ELSE (SELECT format('job %s, which it waited for, ended as %s', f.id, f.state)
            FROM pulse.finished_job AS f WHERE f.id = cancelled_because.parent_id) END;
END $$;
COMMENT ON FUNCTION pulse_internal.cancelled_because(text, bigint) IS
  'Returns the last_error of a job that ends because of a parent.';

-- Holds the record against a retry_job, which then waits, and sees the jobs that this transaction
-- cancels.
CREATE OR REPLACE FUNCTION pulse_internal.keep_record(job_id bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM FROM pulse.finished_job AS f WHERE f.id = keep_record.job_id FOR KEY SHARE SKIP LOCKED;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION pulse_internal.keep_record(bigint) IS
  'Locks the record of an ended job until the transaction ends; returns false while another '
  'transaction changes it.';

CREATE OR REPLACE FUNCTION pulse_internal.is_waited_for(job_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_waited_for';
COMMENT ON FUNCTION pulse_internal.is_waited_for(bigint) IS
  'Returns whether a job waits for this job, or will once another transaction commits: the end of '
  'this job must then stay on record.';
