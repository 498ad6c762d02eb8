-- The jobs that a caller gives to add_flow: the functions read them, and put them in an order in
-- which each comes after its parents.

CREATE OR REPLACE FUNCTION pulse_internal.refuse_flow(problem text, hint text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '%', problem USING ERRCODE = 'PU004', HINT = hint;
END $$;
COMMENT ON FUNCTION pulse_internal.refuse_flow(text, text) IS
  'Raises PU004 for the jobs of an add_flow call.';

CREATE OR REPLACE FUNCTION pulse_internal.check_flow_jobs(jobs json) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  known CONSTANT text[] := '{key,identifier,payload,queue_name,run_at,max_attempts,job_key,'
    'priority,flags,job_key_mode,after,starts_when,start_by}';
  wrong record;
BEGIN
  IF jobs IS NULL OR json_typeof(jobs) <> 'array' THEN
    PERFORM pulse_internal.refuse_flow('jobs must be an array of objects',
      'Give [{"key": "a", "identifier": "task", "after": ["b"]}, ...].');
  END IF;
  SELECT e.n INTO wrong FROM json_array_elements(jobs) WITH ORDINALITY AS e (job, n)
   WHERE json_typeof(e.job) <> 'object' ORDER BY e.n LIMIT 1;
  IF FOUND THEN
    PERFORM pulse_internal.refuse_flow(format('job number %s is no object', wrong.n),
      'Give each job as an object with an identifier.');
  END IF;
  -- A number in after is an id, so a number as a key would seem to name one job and name another
  -- job.
  SELECT e.n, m.name INTO wrong
    FROM json_array_elements(jobs) WITH ORDINALITY AS e (job, n),
         json_each(e.job) AS m (name, value)
   WHERE m.name <> ALL (known)
      OR m.name = 'key' AND json_typeof(m.value) NOT IN ('string', 'null')
      OR m.name = 'after' AND json_typeof(m.value) NOT IN ('array', 'null')
   ORDER BY e.n LIMIT 1;
  IF wrong.name = 'key' THEN
    PERFORM pulse_internal.refuse_flow(format('job number %s: key must be a string', wrong.n),
      'Give "key": "1", and "after": ["1"] to wait for it: a number in after is the id of a job.');
  ELSIF wrong.name = 'after' THEN
    PERFORM pulse_internal.refuse_flow(format('job number %s: after must be an array', wrong.n),
      'Give "after": ["a", 17] with keys of jobs of the flow, and ids of other jobs.');
  ELSIF FOUND THEN
    PERFORM pulse_internal.refuse_flow(
      format('job number %s has an unknown member %s', wrong.n, quote_literal(wrong.name)),
      format('A job may have %s.', array_to_string(known, ', ')));
  END IF;
  SELECT e.job ->> 'key' AS key INTO wrong FROM json_array_elements(jobs) AS e (job)
   WHERE e.job ->> 'key' IS NOT NULL
   GROUP BY e.job ->> 'key' HAVING count(*) > 1 LIMIT 1;
  IF FOUND THEN
    PERFORM pulse_internal.refuse_flow(
      format('two jobs have the key %s', quote_literal(wrong.key)), 'Give each job its own key.');
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_flow_jobs(json) IS
  'Raises PU004 unless this is an array of objects that add_flow takes.';

-- Joins, so that a large flow is not read once for each pair.
CREATE OR REPLACE FUNCTION pulse_internal.flow_parents(jobs json)
  RETURNS TABLE (child int, parent int, parent_id bigint, given text)
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  WITH node AS MATERIALIZED (
    SELECT e.n::int, e.job ->> 'key' AS key, e.job -> 'after' AS after
      FROM json_array_elements(jobs) WITH ORDINALITY AS e (job, n)
  ), pair AS MATERIALIZED (
    SELECT c.n AS child, json_typeof(a.after) AS type, a.after #>> '{}' AS text
      FROM node AS c, json_array_elements(c.after) AS a (after)
     WHERE json_typeof(c.after) = 'array'
  )
  SELECT DISTINCT p.child, k.n,
         CASE WHEN p.type = 'number' AND p.text ~ '^[0-9]{1,18}$' THEN p.text::bigint END, p.text
    FROM pair AS p LEFT JOIN node AS k ON k.key = p.text AND p.type = 'string';
$$;
COMMENT ON FUNCTION pulse_internal.flow_parents(json) IS
  'Returns the parents of each job of a flow: a job of the flow by its place in the array, or '
  'another job by its id. Neither is set for a value that is neither a key nor an id.';

CREATE OR REPLACE FUNCTION pulse_internal.refuse_circle(
    keys text[], child int[], parent int[], left_over int[])
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_shown CONSTANT int := 100;
  is_left boolean[] := array_fill(false, ARRAY[cardinality(keys)]);
  next_of int[] := array_fill(0, ARRAY[cardinality(keys)]);
  place_of int[] := array_fill(0, ARRAY[cardinality(keys)]);
  path int[] := '{}';
  at int := left_over[1];
BEGIN
  FOR i IN 1..cardinality(left_over) LOOP
    is_left[left_over[i]] := true;
  END LOOP;
  FOR i IN 1..cardinality(child) LOOP
    IF is_left[child[i]] AND is_left[parent[i]] THEN
      next_of[child[i]] := parent[i];
    END IF;
  END LOOP;
  -- Each remaining job waits for a remaining job, so the walk meets a job twice.
  WHILE place_of[at] = 0 LOOP
    path := path || at;
    place_of[at] := cardinality(path);
    at := next_of[at];
  END LOOP;
  path := path[place_of[at] :] || at;
  RAISE EXCEPTION 'jobs of the flow wait for each other' USING
    ERRCODE = 'PU004',
    DETAIL = format('Each waits for the next: %s%s.',
      (SELECT string_agg(coalesce(quote_literal(keys[p.at]), p.at::text), ', ' ORDER BY p.n)
         FROM unnest(path[: max_shown]) WITH ORDINALITY AS p (at, n)),
      CASE WHEN cardinality(path) > max_shown THEN ', ...' ELSE '' END),
    HINT = 'Leave out one of these waits.';
END $$;
COMMENT ON FUNCTION pulse_internal.refuse_circle(text[], int[], int[], int[]) IS
  'Raises PU004 with a circle among the jobs of a flow that no order can hold.';

-- Kahn's algorithm. The pairs are sorted by parent; first_of[p] is the first pair of p. The loop
-- reads an element before the assignment to the array: an assignment that reads the same array
-- copies the array.
CREATE OR REPLACE FUNCTION pulse_internal.flow_order(keys text[], child int[], parent int[])
  RETURNS int[]
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  many int := cardinality(keys);
  missing int[] := array_fill(0, ARRAY[many]);
  first_of int[] := array_fill(0, ARRAY[many]);
  found_order int[] := array_fill(0, ARRAY[many]);
  place_of int[] := array_fill(0, ARRAY[many]);
  ready int := 0;
  pair int;
  left_of_child int;
BEGIN
  SELECT coalesce(array_agg(p.child ORDER BY p.parent, p.child), '{}'),
         coalesce(array_agg(p.parent ORDER BY p.parent, p.child), '{}') INTO child, parent
    FROM unnest(child, parent) AS p (child, parent) WHERE p.parent IS NOT NULL;
  FOR i IN REVERSE cardinality(child)..1 LOOP
    left_of_child := missing[child[i]] + 1;
    missing[child[i]] := left_of_child;
    first_of[parent[i]] := i;
  END LOOP;
  FOR n IN 1..many LOOP
    IF missing[n] = 0 THEN
      ready := ready + 1;
      found_order[ready] := n;
    END IF;
  END LOOP;
  FOR i IN 1..many LOOP
    IF i > ready THEN
      PERFORM pulse_internal.refuse_circle(keys, child, parent, ARRAY(
        SELECT m.n::int FROM unnest(missing) WITH ORDINALITY AS m (waits, n) WHERE m.waits > 0));
    END IF;
    place_of[found_order[i]] := i;
    pair := first_of[found_order[i]];
    WHILE pair > 0 AND parent[pair] = found_order[i] LOOP
      left_of_child := missing[child[pair]] - 1;
      missing[child[pair]] := left_of_child;
      IF left_of_child = 0 THEN
        ready := ready + 1;
        found_order[ready] := child[pair];
      END IF;
      pair := pair + 1;
    END LOOP;
  END LOOP;
  RETURN place_of;
END $$;
COMMENT ON FUNCTION pulse_internal.flow_order(text[], int[], int[]) IS
  'Returns the place of each job of a flow in an order in which each job comes after its parents. '
  'Pairs without a parent of the flow count for nothing. Raises PU004 for a circle.';
