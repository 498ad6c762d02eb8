-- Flows: jobs that are added together, of which some wait for others.

CREATE OR REPLACE FUNCTION pulse_internal.flow_specs(
    jobs json, place_of int[], OUT specs pulse.job_spec[], OUT modes text[],
    OUT starts_when text[], OUT start_by timestamptz[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT array_agg(pulse_internal.checked_spec(
           json_populate_record(NULL::pulse.job_spec, e.job)) ORDER BY place_of[e.n]),
         array_agg(pulse_internal.checked_key_mode(coalesce(e.job ->> 'job_key_mode', 'replace'))
                   ORDER BY place_of[e.n]),
         array_agg(coalesce(e.job ->> 'starts_when', 'completed') ORDER BY place_of[e.n]),
         array_agg((e.job ->> 'start_by')::timestamptz ORDER BY place_of[e.n])
    INTO specs, modes, starts_when, start_by
    FROM json_array_elements(jobs) WITH ORDINALITY AS e (job, n);
  PERFORM pulse_internal.check_starts_when(w.w) FROM (SELECT DISTINCT unnest(starts_when)) AS w (w);
  PERFORM pulse_internal.check_start_by(b.b) FROM (SELECT DISTINCT unnest(start_by)) AS b (b);
END $$;
COMMENT ON FUNCTION pulse_internal.flow_specs(json, int[]) IS
  'Returns the jobs of an add_flow call, each at its place. Raises PU004, or the server''s error '
  'for a value that it cannot read.';

-- One handler for all jobs, because each handler costs a savepoint: only a refused call
-- searches for the refused job.
CREATE OR REPLACE FUNCTION pulse_internal.checked_flow_specs(
    jobs json, place_of int[], OUT specs pulse.job_spec[], OUT modes text[],
    OUT starts_when text[], OUT start_by timestamptz[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  job json;
  n int := 0;
  hint text;
BEGIN
  SELECT s.* INTO specs, modes, starts_when, start_by
    FROM pulse_internal.flow_specs(jobs, place_of) AS s;
EXCEPTION WHEN data_exception OR SQLSTATE 'PU004' THEN
  BEGIN
    FOR job IN SELECT json_array_elements(jobs) LOOP
      n := n + 1;
      PERFORM pulse_internal.flow_specs(json_build_array(job), '{1}');
    END LOOP;
  EXCEPTION WHEN data_exception OR SQLSTATE 'PU004' THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    PERFORM pulse_internal.refuse_flow(format('job number %s: %s', n, sqlerrm),
      coalesce(nullif(hint, ''), 'Give each value as add_job takes it.'));
  END;
  RAISE;
END $$;
COMMENT ON FUNCTION pulse_internal.checked_flow_specs(json, int[]) IS
  'Returns the jobs of an add_flow call, each at its place. Raises PU004, and names the job.';

CREATE OR REPLACE FUNCTION pulse_internal.checked_flow_parents(
    jobs json, OUT child int[], OUT parent int[], OUT parent_id bigint[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  wrong record;
BEGIN
  SELECT coalesce(array_agg(p.child), '{}'), coalesce(array_agg(p.parent), '{}'),
         coalesce(array_agg(p.parent_id), '{}') INTO child, parent, parent_id
    FROM pulse_internal.flow_parents(jobs) AS p;
  IF EXISTS (SELECT FROM unnest(parent, parent_id) AS p (parent, parent_id)
              WHERE p.parent IS NULL AND p.parent_id IS NULL) THEN
    SELECT p.child, p.given INTO wrong FROM pulse_internal.flow_parents(jobs) AS p
     WHERE p.parent IS NULL AND p.parent_id IS NULL ORDER BY p.child LIMIT 1;
    PERFORM pulse_internal.refuse_flow(
      format('job number %s waits for %s, which is neither a key of the flow nor an id',
             wrong.child, coalesce(quote_literal(wrong.given), 'null')),
      CASE WHEN wrong.given ~ '^[0-9]+$'
        THEN 'An id is a number in after, not a string: write [17], and not ["17"].'
        ELSE 'In after, name keys of jobs of the flow, and ids of other jobs.' END);
  END IF;
  PERFORM pulse_internal.parents_of_call(array_remove(parent_id, NULL));
END $$;
COMMENT ON FUNCTION pulse_internal.checked_flow_parents(json) IS
  'Returns the pairs of flow_parents. Raises PU004 for a value that is neither a key of the flow '
  'nor an id, PU005 for an id never given out, lost in a failover or not committed.';

-- Of two jobs with one key the later job counts, unless it leaves the earlier one unchanged.
CREATE OR REPLACE FUNCTION pulse_internal.flow_ids(
    specs pulse.job_spec[], modes text[], OUT ids bigint[], OUT is_new boolean[],
    OUT counts boolean[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  added_by CONSTANT text := pulse_internal.asking_role();
  job record;
  added_id bigint;
  has_keys boolean := false;
BEGIN
  ids := ARRAY(SELECT pulse_internal.next_id('pulse.job_id_seq')
                 FROM generate_series(1, cardinality(specs)));
  is_new := array_fill(true, ARRAY[cardinality(specs)]);
  -- In the order of the keys, so that two calls with the same keys never wait in a circle.
  FOR job IN
    SELECT s.n, s.mode, ROW(s.identifier, s.payload, s.queue_name, s.run_at, s.max_attempts,
             s.job_key, s.priority, s.flags)::pulse.job_spec AS spec
      FROM unnest(specs, modes) WITH ORDINALITY AS s (identifier, payload, queue_name, run_at,
             max_attempts, job_key, priority, flags, mode, n)
     WHERE s.job_key IS NOT NULL
     ORDER BY s.job_key COLLATE "C", s.n
  LOOP
    has_keys := true;
    added_id := (pulse_internal.add_keyed(job.spec, job.mode, ids[job.n], added_by)).id;
    ids[job.n] := added_id;
    is_new[job.n] := pulse_internal.is_newly_added(added_id, job.mode);
  END LOOP;
  counts := CASE WHEN has_keys THEN ARRAY(
    SELECT i.is_new AND i.n = max(i.n) FILTER (WHERE i.is_new) OVER (PARTITION BY i.id)
      FROM unnest(ids, is_new) WITH ORDINALITY AS i (id, is_new, n) ORDER BY i.n) ELSE is_new END;
END $$;
COMMENT ON FUNCTION pulse_internal.flow_ids(pulse.job_spec[], text[]) IS
  'Takes an id for each job of a flow, and adds the jobs with keys. is_new: the call makes or '
  'replaces the job. counts: the job waits for the parents of this element.';

CREATE OR REPLACE FUNCTION pulse_internal.link_keyed(
    job_id bigint, waits_on bigint, starts_when text, start_by timestamptz,
    may_close_circle boolean)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  IF waits_on IS NOT NULL THEN
    IF may_close_circle THEN
      PERFORM pulse_internal.check_circle(job_id, ARRAY(
        SELECT unnest(d.parents) FROM pulse.dependency AS d WHERE d.child_id = link_keyed.job_id));
    END IF;
    PERFORM pulse_internal.let_wait(j, link_keyed.waits_on, link_keyed.starts_when)
       FROM pulse.job AS j WHERE j.id = link_keyed.job_id;
  END IF;
  IF start_by IS NOT NULL THEN
    PERFORM pulse_internal.set_start_by(job_id, start_by);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.link_keyed(bigint, bigint, text, timestamptz, boolean) IS
  'Lets a job of a flow that has a key wait for its stored parents. Raises PU004 where the job '
  'would wait for itself.';

-- A job costs the same in a flow of any size. Statements read whole arrays, and single elements
-- only of arrays that were made without a NULL, because the server walks an array with a NULL from
-- the front. No assignment to an element reads the same array, which would copy the array.
CREATE OR REPLACE FUNCTION pulse_internal.add_in_order(
    jobs json, place_of int[], child int[], parent int[], parent_id bigint[],
    OUT ids bigint[], OUT is_new boolean[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  given record := pulse_internal.checked_flow_specs(jobs, place_of);
  counts boolean[];
  waits_on bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(place_of)]);
  has_children boolean[] := array_fill(NULL::boolean, ARRAY[cardinality(place_of)]);
  may_close_circle boolean;
  wait record;
  at int;
BEGIN
  SELECT f.* INTO ids, is_new, counts FROM pulse_internal.flow_ids(given.specs, given.modes) AS f;
  FOR wait IN
    SELECT place_of[p.child] AS place, max(coalesce(p.parent_id, ids[place_of[p.parent]])) AS on_id
      FROM unnest(child, parent, parent_id) AS p (child, parent, parent_id) GROUP BY p.child
  LOOP
    waits_on[wait.place] := wait.on_id;
  END LOOP;
  FOREACH at IN ARRAY array_remove(parent, NULL) LOOP
    has_children[place_of[at]] := true;
  END LOOP;
  INSERT INTO pulse.dependency (child_id, parents_from, parents)
  SELECT w.child_id, pulse_internal.neighbours_of(w.parent_id),
         array_agg(w.parent_id ORDER BY w.parent_id)
    FROM (SELECT DISTINCT ids[place_of[p.child]] AS child_id,
                 coalesce(p.parent_id, ids[place_of[p.parent]]) AS parent_id
            FROM unnest(child, parent, parent_id) AS p (child, parent, parent_id)
           WHERE counts[place_of[p.child]]) AS w
   GROUP BY w.child_id, pulse_internal.neighbours_of(w.parent_id);
  PERFORM pulse_internal.insert_jobs(given.specs, ids, waits_on, given.starts_when,
                                     given.start_by, has_children);
  -- The order of the members closes no circle. So a circle leads out of the flow, or through a job
  -- that stands for two members, or through a job that keeps its older parents.
  may_close_circle := cardinality(array_remove(parent_id, NULL)) > 0 OR false = ANY (counts);
  PERFORM pulse_internal.link_keyed(
            s.id, s.waits_on, s.starts_when, s.start_by, may_close_circle)
     FROM unnest(given.specs, given.starts_when, given.start_by, ids, waits_on, counts)
       AS s (identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags,
             starts_when, start_by, id, waits_on, counts)
    WHERE s.job_key IS NOT NULL AND s.counts;
  -- Another transaction may hold the row of an older job that stays unchanged.
  UPDATE pulse.job AS j SET keeps_result = true
   WHERE j.id = ANY (ARRAY(
           SELECT s.id FROM unnest(given.specs, ids, has_children)
               AS s (identifier, payload, queue_name, run_at, max_attempts, job_key, priority,
                     flags, id, has_children)
            WHERE s.job_key IS NOT NULL AND s.has_children))
     AND pulse_internal.is_own_transaction(j.xmin);
  SELECT array_agg(add_in_order.ids[p.place] ORDER BY p.n),
         array_agg(add_in_order.is_new[p.place] ORDER BY p.n) INTO ids, is_new
    FROM unnest(place_of) WITH ORDINALITY AS p (place, n);
END $$;
COMMENT ON FUNCTION pulse_internal.add_in_order(json, int[], int[], int[], bigint[]) IS
  'Adds the jobs of a flow, each at its place, with the pairs of checked_flow_parents, and returns '
  'the ids in the order of the call. is_new: the call makes or replaces the job.';

CREATE OR REPLACE FUNCTION pulse_internal.kept_parents(
    ids bigint[], child int[], parent int[], parent_id bigint[])
  RETURNS TABLE (place bigint, parents bigint[])
  LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT p.child, (array_agg(coalesce(p.parent_id, i.id) ORDER BY p.n))[: 100]
    FROM unnest(child, parent, parent_id) WITH ORDINALITY AS p (child, parent, parent_id, n)
    LEFT JOIN unnest(ids) WITH ORDINALITY AS i (id, n) ON i.n = p.parent
   GROUP BY p.child;
$$;
COMMENT ON FUNCTION pulse_internal.kept_parents(bigint[], int[], int[], bigint[]) IS
  'Returns the first 100 parents of each job of a flow that has parents, by its place in the call.';

CREATE OR REPLACE FUNCTION pulse_internal.add_flow_as_owner(jobs json, flow_name text)
  RETURNS TABLE (key text, id bigint, flow_id bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  keys text[];
  pairs record;
  added record;
  made bigint;
BEGIN
  IF flow_name IS NOT NULL THEN
    PERFORM pulse_internal.check_name('flow_name', flow_name, 512);
  END IF;
  PERFORM pulse_internal.check_flow_jobs(jobs);
  IF json_array_length(jobs) = 0 THEN
    RETURN;
  END IF;
  LOCK TABLE pulse.job, pulse.dependency IN ROW EXCLUSIVE MODE;
  pairs := pulse_internal.checked_flow_parents(jobs);
  keys := ARRAY(SELECT e.job ->> 'key' FROM json_array_elements(jobs) WITH ORDINALITY AS e (job, n)
                 ORDER BY e.n);
  added := pulse_internal.add_in_order(
    jobs, pulse_internal.flow_order(keys, pairs.child, pairs.parent),
    pairs.child, pairs.parent, pairs.parent_id);
  INSERT INTO pulse.flow (name, created_at)
  VALUES (flow_name, pulse_internal.transaction_now()) RETURNING id INTO made;
  INSERT INTO pulse.flow_job (job_id, flow_id, key, parents)
  SELECT DISTINCT ON (j.id) j.id, made, j.key, w.parents
    FROM unnest(added.ids, keys, added.is_new) WITH ORDINALITY AS j (id, key, is_new, n)
    LEFT JOIN pulse_internal.kept_parents(added.ids, pairs.child, pairs.parent, pairs.parent_id)
           AS w ON w.place = j.n
   WHERE j.is_new OR NOT EXISTS (SELECT FROM pulse.flow_job AS f WHERE f.job_id = j.id)
   ORDER BY j.id, j.n DESC
      ON CONFLICT (job_id) DO UPDATE SET flow_id = excluded.flow_id, key = excluded.key,
                                     parents = excluded.parents;
  RETURN QUERY SELECT j.key, j.id, made
    FROM unnest(added.ids, keys) WITH ORDINALITY AS j (id, key, n) ORDER BY j.n;
END $$;
COMMENT ON FUNCTION pulse_internal.add_flow_as_owner(json, text) IS
  'The body of pulse.add_flow().';

CREATE OR REPLACE FUNCTION pulse.add_flow(jobs json, flow_name text = NULL)
  RETURNS TABLE (key text, id bigint, flow_id bigint)
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.add_flow(json, text) IS
  'Adds jobs that wait for each other, in the caller''s transaction, and returns the id of each, '
  'in the order of the array. jobs: an array of objects with the arguments of add_job_after; in '
  'after stand keys of jobs of the flow, in any order, and ids of other jobs, as numbers. key: a '
  'string, which a job needs that others name. flow_name: for the view flows, at most 512 '
  'characters. Raises PU004 for a value out of range, an unknown member or key, and jobs that wait '
  'for each other, 42501 and 40001 as add_job does, PU005 for an id never given out, lost in a '
  'failover or not committed, and for a job of another producer.';

-- A parent of this transaction that waits for nothing older than the job comes to wait for the job
-- only through a keyed add of another transaction.
CREATE OR REPLACE FUNCTION pulse_internal.check_new_parents(job_id bigint, parents bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  wrong bigint;
BEGIN
  SELECT min(p) INTO wrong FROM unnest(parents) AS p
   WHERE NOT EXISTS (SELECT FROM pulse.job AS j
                      WHERE j.id = p AND j.created_at = pulse_internal.transaction_now()
                        AND pulse_internal.is_own_transaction(j.xmin));
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION 'job % was not added by this transaction', wrong USING
      ERRCODE = 'PU004', HINT = 'Add the jobs and the dependency in one transaction.';
  END IF;
  SELECT min(d.child_id) INTO wrong FROM unnest(parents) AS p
    JOIN pulse.dependency AS d ON d.child_id = p AND d.parents[1] < check_new_parents.job_id;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION 'job % waits for a job that is older than job %', wrong, job_id USING
      ERRCODE = 'PU004', DETAIL = 'Both might come to wait for each other.',
      HINT = 'Add it after jobs that are younger, or after none.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_new_parents(bigint, bigint[]) IS
  'Raises PU004 unless this transaction added these jobs and they wait for no job older than '
  'job_id.';

CREATE OR REPLACE FUNCTION pulse_internal.add_dependency_as_owner(job_id bigint, after bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  waiting pulse.job;
  new_parents bigint[];
  parents bigint[];
BEGIN
  LOCK TABLE pulse.job, pulse.dependency, pulse.flow_job IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.require_own(ARRAY[add_dependency_as_owner.job_id]);
  new_parents := pulse_internal.parents_of_call(after);
  SELECT * INTO waiting FROM pulse.job AS j WHERE j.id = add_dependency_as_owner.job_id FOR UPDATE;
  IF waiting.id IS NULL THEN
    PERFORM pulse_internal.shown_job(add_dependency_as_owner.job_id, false);  -- raises for no job
  END IF;
  IF waiting.id IS NULL OR waiting.state = 'running' OR waiting.attempts > 0
     OR waiting.succession = 1 OR waiting.key_is_undecided THEN
    RAISE EXCEPTION 'job % has been claimed or has ended', add_dependency_as_owner.job_id USING
      ERRCODE = 'PU004', HINT = 'Only a job that no worker has claimed can wait for more jobs.';
  END IF;
  PERFORM pulse_internal.check_new_parents(waiting.id, new_parents);
  PERFORM pulse_internal.check_circle(waiting.id, new_parents);
  WITH known AS (
    DELETE FROM pulse.dependency AS d
     WHERE d.child_id = waiting.id
       AND d.parents_from = ANY (ARRAY(SELECT pulse_internal.neighbours_of(p)
                                          FROM unnest(new_parents) AS p))
    RETURNING d.parents
  )
  SELECT array_agg(p) INTO parents FROM known AS k CROSS JOIN unnest(k.parents) AS p;
  PERFORM pulse_internal.store_parents(
    waiting.id, pulse_internal.in_order(new_parents || parents));
  -- The picture of the job's flow keeps them once the job has started.
  UPDATE pulse.flow_job AS m
     SET parents = (m.parents || ARRAY(
           SELECT p FROM unnest(new_parents) AS p
            WHERE p <> ALL (coalesce(m.parents, '{}'))))[: 100]
   WHERE m.job_id = waiting.id AND cardinality(new_parents) > 0;
  UPDATE pulse.job AS j
     SET state = 'parked', starts_when = coalesce(j.starts_when, 'completed'),
         waits_on = greatest(j.waits_on, new_parents[cardinality(new_parents)])
   WHERE j.id = waiting.id AND cardinality(new_parents) > 0
  RETURNING j.* INTO waiting;
  PERFORM pulse_internal.note_queue(waiting.queue_name);
  PERFORM pulse_internal.note_parent(waiting.waits_on);
END $$;
COMMENT ON FUNCTION pulse_internal.add_dependency_as_owner(bigint, bigint[]) IS
  'The body of pulse.add_dependency().';

CREATE OR REPLACE FUNCTION pulse.add_dependency(job_id bigint, after bigint[]) RETURNS void
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.add_dependency(bigint, bigint[]) IS
  'Lets a job that no worker has claimed wait for more jobs. This transaction must have added the '
  'parents, and no parent may wait for a job older than the waiting job. So a running job of a '
  'batch adds members to the last job of the batch. Raises PU004 for any other job, PU005 for an '
  'unknown job and for a job of another producer.';

CREATE OR REPLACE FUNCTION pulse.cancel_flow(flow_id bigint, reason text = NULL) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  named bigint;
  asked int := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.flow AS w WHERE w.id = cancel_flow.flow_id) THEN
    RAISE EXCEPTION 'flow % is unknown', coalesce(cancel_flow.flow_id::text, 'NULL') USING
      ERRCODE = 'PU005', HINT = 'The view pulse.flows lists the flows that are kept.';
  END IF;
  LOCK TABLE pulse.job IN ROW EXCLUSIVE MODE;
  -- A job that ends while this call waits for the row is live no more, and may leave no record.
  FOR named IN SELECT j.id FROM pulse.flow_job AS f JOIN pulse.job AS j ON j.id = f.job_id
                WHERE f.flow_id = cancel_flow.flow_id ORDER BY j.id LOOP
    IF (pulse_internal.lock_live_job(named)).id IS NOT NULL THEN
      PERFORM pulse.cancel_job(named, reason);
      asked := asked + 1;
    END IF;
  END LOOP;
  RETURN asked;
END $$;
COMMENT ON FUNCTION pulse.cancel_flow(bigint, text) IS
  'Cancels each live job of a flow as cancel_job does, and returns the number of cancelled jobs. '
  'Jobs outside of the flow follow the jobs that they wait for. Raises PU005 for an unknown flow, '
  '55P03 where cancel_job raises it for a job of the flow: then no job is cancelled.';
