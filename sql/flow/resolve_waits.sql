-- Resolving waits: claims and sweeps judge the jobs whose watched parents have ended.

CREATE OR REPLACE FUNCTION pulse_internal.await_bucket(bucket int, is_awaited boolean) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_await_bucket';
COMMENT ON FUNCTION pulse_internal.await_bucket(int, boolean) IS
  'Sets, at once, whether commits that end a job of this hash bucket set the parent mark of the '
  'bucket.';

CREATE OR REPLACE FUNCTION pulse_internal.take_waits_to_check() RETURNS int
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_take_waits_to_check';
COMMENT ON FUNCTION pulse_internal.take_waits_to_check() IS
  'Returns the hash bucket of parents at which this sweep goes on; another sweep begins at 0 '
  'meanwhile.';

CREATE OR REPLACE FUNCTION pulse_internal.store_waits_to_check(next_bucket int) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_store_waits_to_check';
COMMENT ON FUNCTION pulse_internal.store_waits_to_check(int) IS
  'Stores the hash bucket of parents at which the next sweep goes on.';

CREATE OR REPLACE FUNCTION pulse_internal.store_wait_position(
    bucket int, parent_id bigint, child_id bigint)
  RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_store_wait_position';
COMMENT ON FUNCTION pulse_internal.store_wait_position(int, bigint, bigint) IS
  'Remembers, in this session, until which parent and child a step has resolved a hash bucket.';

CREATE OR REPLACE FUNCTION pulse_internal.take_wait_position(bucket int) RETURNS bigint[]
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_take_wait_position';
COMMENT ON FUNCTION pulse_internal.take_wait_position(int) IS
  'Returns and forgets until which parent and child this session has resolved a hash bucket; '
  'NULL: the bucket is not the last one.';

CREATE OR REPLACE FUNCTION pulse_internal.judge_children(parent_id bigint, ids bigint[])
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  wait record;
  is_left boolean := false;
BEGIN
  -- Jobs that wait for this parent alone, and ask for the same, have one outcome.
  FOR wait IN
    WITH judged AS MATERIALIZED (
      SELECT v.*, g.ids
        FROM (SELECT min(j.id) AS first_id, array_agg(j.id) AS ids FROM pulse.job AS j
               WHERE j.id = ANY (ids)
               GROUP BY j.starts_when, CASE WHEN j.parents IS NOT NULL OR EXISTS (
                 SELECT FROM pulse.dependency AS d
                  WHERE d.child_id = j.id AND d.parents_key <> judge_children.parent_id)
                 THEN j.id END) AS g
       CROSS JOIN LATERAL pulse_internal.wait_outcome(
         (SELECT j FROM pulse.job AS j WHERE j.id = g.first_id)) AS v)
    SELECT f.outcome, f.parent_id, f.parents, array_agg(m.id) AS ids
      FROM judged AS f CROSS JOIN unnest(f.ids) AS m (id)
     GROUP BY f.outcome, f.parent_id, f.parents
  LOOP
    IF wait.outcome = 'starts' THEN
      PERFORM pulse_internal.start_waiting(wait.ids, wait.parents);
    ELSIF wait.outcome = 'waits' THEN
      PERFORM pulse_internal.watch_parent(wait.ids, wait.parent_id);
    ELSIF wait.outcome = 'cancelled' AND NOT pulse_internal.keep_record(wait.parent_id) THEN
      is_left := true;
    ELSE
      PERFORM pulse_internal.finish_waiting(wait.ids, 'cancelled',
        pulse_internal.cancelled_because(wait.outcome, wait.parent_id), wait.parent_id);
    END IF;
  END LOOP;
  RETURN is_left;
END $$;
COMMENT ON FUNCTION pulse_internal.judge_children(bigint, bigint[]) IS
  'Judges locked jobs that watch an ended parent; returns whether some are left to judge. Called '
  'with the plans of resolve_children.';

-- pg_pulse puts no such triggers, keys, rules, policies or checks on its tables.
CREATE OR REPLACE FUNCTION pulse_internal.may_be_refused() RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM pg_class AS c
     WHERE c.oid = ANY ('{pulse.job,pulse.dependency,pulse.finished_job}'::regclass[])
       AND (c.relhasrules OR c.relforcerowsecurity OR c.relchecks > 0
            OR EXISTS (SELECT FROM pg_trigger AS t
                        WHERE t.tgrelid = c.oid
                          AND t.tgfoid <> 'pulse_internal.count_written_job'::regproc)));
END $$;
COMMENT ON FUNCTION pulse_internal.may_be_refused() IS
  'Returns whether triggers, foreign keys, rules, policies or checks that others have made may '
  'refuse the change of a waiting job.';

-- The walk has the order of one index alone, so no statistics lead the planner to another index.
-- The walk steps over an error of a job: the error would fail each claim, because claims resolve
-- waits too. A savepoint takes a transaction id for each parent, so the function makes a savepoint
-- only where a trigger or constraint may raise an error.
CREATE OR REPLACE FUNCTION pulse_internal.resolve_children(
    parent_id bigint, after_child bigint, max_count int,
    OUT judged int, OUT last_child bigint, OUT is_left boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off SET jit = off AS $$
DECLARE
  ids bigint[];
  apart record;
  all_refused boolean := false;
BEGIN
  is_left := false;
  -- A transaction that holds one of the rows notes the parent itself, or a sweep checks again.
  ids := ARRAY(
    SELECT j.id FROM pulse.job AS j
     WHERE j.index_lane = 'w'
       AND pulse_internal.parent_bucket(j.waits_on)
             = pulse_internal.parent_bucket(resolve_children.parent_id)
       AND (j.waits_on, j.id) > (resolve_children.parent_id, after_child)
       AND j.waits_on <= resolve_children.parent_id
     ORDER BY j.waits_on, j.id LIMIT max_count
       FOR UPDATE SKIP LOCKED);
  IF ids <> '{}' AND pulse_internal.may_be_refused() THEN
    BEGIN
      is_left := pulse_internal.judge_children(parent_id, ids);
    EXCEPTION WHEN OTHERS OR assert_failure THEN
      IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      apart := pulse_internal.do_apart('job', ids, format(
        'SELECT pulse_internal.judge_children(%s, ARRAY[$1])', parent_id), 'infinity');
      PERFORM pulse_internal.warn_of_refused(apart.errors);
      all_refused := apart.done IS NULL;
    END;
  ELSIF ids <> '{}' THEN
    is_left := pulse_internal.judge_children(parent_id, ids);
  END IF;
  judged := cardinality(ids);
  last_child := ids[judged];
  -- Claims would try the same refused jobs for ever. The next sweep reaches the jobs behind.
  is_left := is_left OR (judged = max_count AND NOT all_refused);
END $$;
COMMENT ON FUNCTION pulse_internal.resolve_children(bigint, bigint, int) IS
  'Judges at most max_count jobs that watch an ended parent, behind after_child. Returns how '
  'many, the last job, and whether some are left to judge.';

CREATE OR REPLACE FUNCTION pulse_internal.next_parent(
    bucket int, after_parent bigint, after_child bigint) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (
    SELECT j.waits_on FROM pulse.job AS j
     WHERE j.index_lane = 'w' AND pulse_internal.parent_bucket(j.waits_on) = bucket
       AND (j.waits_on, j.id) > (after_parent, after_child)
     ORDER BY j.waits_on, j.id LIMIT 1);
END $$;
COMMENT ON FUNCTION pulse_internal.next_parent(int, bigint, bigint) IS
  'Returns the parent that the next waiting job of a hash bucket watches, behind this parent and '
  'this child; NULL behind the last parent.';

-- Promotion calls the function with the parent mark of a hash bucket. From here on the commits of
-- ends set the parent mark, until a check has found that no job watches a parent of the bucket. The
-- second check, under a later snapshot, sees each job whose commit came before; the parent mark of
-- a later commit calls this function again. A step begins where this session's step before ended,
-- because an old snapshot keeps the dead entries of all jobs that earlier steps let go; behind the
-- last job, another step begins at the front.
CREATE OR REPLACE FUNCTION pulse_internal.resolve_waits(bucket int) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_id CONSTANT bigint := 9223372036854775807;
  left_to_judge int := 1000;
  place bigint[] := pulse_internal.take_wait_position(bucket);
  at_front boolean := place IS NULL;
  parent_id bigint;
  children record;
  is_left boolean := false;
BEGIN
  PERFORM pulse_internal.await_bucket(bucket, true);
  place := coalesce(place, '{0,0}');
  LOOP
    parent_id := pulse_internal.next_parent(bucket, place[1], place[2]);
    EXIT WHEN parent_id IS NULL;
    IF pulse_internal.is_live(parent_id) THEN
      place := ARRAY[parent_id, max_id];
      CONTINUE;
    END IF;
    children := pulse_internal.resolve_children(
      parent_id, CASE WHEN parent_id = place[1] THEN place[2] ELSE 0 END, left_to_judge);
    left_to_judge := left_to_judge - children.judged;
    is_left := is_left OR children.is_left;
    place := ARRAY[parent_id, CASE WHEN left_to_judge > 0 THEN max_id ELSE children.last_child END];
    EXIT WHEN left_to_judge <= 0;
  END LOOP;
  IF parent_id IS NOT NULL THEN
    PERFORM pulse_internal.store_wait_position(bucket, place[1], place[2]);
  ELSIF NOT at_front THEN
    RETURN true;
  ELSIF pulse_internal.next_parent(bucket, 0, 0) IS NULL THEN
    PERFORM pulse_internal.await_bucket(bucket, false);
    IF pulse_internal.next_parent(bucket, 0, 0) IS NOT NULL THEN
      PERFORM pulse_internal.await_bucket(bucket, true);
      RETURN true;
    END IF;
  END IF;
  RETURN is_left;
END $$;
COMMENT ON FUNCTION pulse_internal.resolve_waits(int) IS
  'Judges the jobs whose watched parents have this hash bucket and have ended, at most 1,000 '
  'jobs; returns whether some may be left.';

-- A crash and missing shared memory lose parent marks. Without shared memory this function alone
-- resolves waits.
CREATE OR REPLACE FUNCTION pulse_internal.reconcile_waits(max_count int, ends timestamptz)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off AS $$
DECLARE
  at_bucket bigint;
  parent bigint := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.index_lane = 'w') THEN
    RETURN;
  END IF;
  at_bucket := pulse_internal.take_waits_to_check();
  FOR checked IN 1..max_count LOOP
    SELECT pulse_internal.parent_bucket(j.waits_on), j.waits_on INTO at_bucket, parent
      FROM pulse.job AS j
     WHERE j.index_lane = 'w'
       AND (pulse_internal.parent_bucket(j.waits_on), j.waits_on) > (at_bucket, parent)
     ORDER BY pulse_internal.parent_bucket(j.waits_on), j.waits_on LIMIT 1;
    EXIT WHEN at_bucket IS NULL OR clock_timestamp() >= ends;
    PERFORM pulse_internal.await_bucket(at_bucket::int, true);
    IF NOT pulse_internal.is_live(parent) AND NOT pulse_internal.note_parent(parent) THEN
      PERFORM pulse_internal.resolve_waits(at_bucket::int);
    END IF;
  END LOOP;
  PERFORM pulse_internal.store_waits_to_check(coalesce(at_bucket, 0)::int);
END $$;
COMMENT ON FUNCTION pulse_internal.reconcile_waits(int, timestamptz) IS
  'Reads max_count watched parents until that time, and sets the parent marks of those that have '
  'ended. The next call goes on where this one ended.';
