-- Ends of attempts other than a plain success. extension/finish/attempt_end.cpp decides the next
-- state for every caller. The function there locks the row, then the job key, and waits for
-- neither.

CREATE OR REPLACE FUNCTION pulse_internal.end_attempts(
    endings pulse_internal.ending[], tokens bigint[] = NULL, max_count int = NULL)
  RETURNS TABLE (id bigint, state text, outcome text)
  LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'pulse_end_attempts';
COMMENT ON FUNCTION pulse_internal.end_attempts(pulse_internal.ending[], bigint[], int) IS
  'Ends at most max_count attempts: each job is cancelled, quarantined or failed, or waits again. '
  'The tokens stand beside the endings; NULL means the running attempt, whatever the token. '
  'Returns the new state of each job whose attempt the call ended; leaves jobs whose row another '
  'transaction holds.';

-- --- rows whose change raises an error ----------------------------------------------------------
--
-- A trigger or a constraint of others may refuse the change of one row. Sweeps change many rows in
-- one step, without a savepoint for each row. Where a step raises an error, the sweep repeats the
-- step apart, each row in a savepoint of its own, and steps over the rows that raise an error. So
-- no row stops the others. OTHERS alone would let the failed ASSERT of a trigger pass.

CREATE OR REPLACE FUNCTION pulse_internal.is_of_one_row(code text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN code !~ '^(40|53|57|58|55P03)';
COMMENT ON FUNCTION pulse_internal.is_of_one_row(text) IS
  'Returns whether an error of this SQLSTATE concerns one row. Deadlocks, locks that are not '
  'granted, missing resources, failing disks and cancellations concern the whole call.';

-- A trigger that refuses all rows of a task would fill the log with the names of the rows.
CREATE OR REPLACE FUNCTION pulse_internal.warn_of_refused(
    errors text[], what_next text = 'Sweeps try again.')
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF cardinality(errors) > 0 THEN
    RAISE WARNING 'stepped over % rows whose change raises an error: %', cardinality(errors),
      array_to_string(ARRAY(SELECT e FROM unnest(errors) AS e ORDER BY e LIMIT 3), '; ') USING
      HINT = 'Check the triggers and constraints that are not of pg_pulse. ' || what_next;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.warn_of_refused(text[], text) IS
  'Warns of rows that a call stepped over, with the errors of three rows.';

-- In random order: where the time ends early, rows that raise an error do not come first each time.
CREATE OR REPLACE FUNCTION pulse_internal.do_apart(
    what text, ids bigint[], statement text, ends timestamptz, OUT done bigint[], OUT errors text[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  one bigint;
BEGIN
  FOR one IN SELECT i FROM unnest(ids) AS i ORDER BY random() LOOP
    BEGIN
      EXECUTE statement USING one;
      done := done || one;
    EXCEPTION WHEN OTHERS OR assert_failure THEN
      IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      errors := errors || format('%s %s: %s', what, one, SQLERRM);
    END;
    EXIT WHEN clock_timestamp() >= ends;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.do_apart(text, bigint[], text, timestamptz) IS
  'Runs a statement for each id, as $1, in a savepoint of its own, until that time. Returns the '
  'ids for which the statement raised no error, and the errors.';

CREATE OR REPLACE FUNCTION pulse_internal.end_many(
    endings pulse_internal.ending[], tokens bigint[], max_count int, apart_until timestamptz)
  RETURNS TABLE (id bigint, state text, outcome text, error text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  n int;
BEGIN
  IF apart_until IS NULL THEN
    RETURN QUERY SELECT e.*, NULL::text
      FROM pulse_internal.end_attempts(endings, tokens, max_count) AS e;
    RETURN;
  END IF;
  FOR n IN SELECT g FROM generate_series(1, cardinality(endings)) AS g
            ORDER BY random() LIMIT max_count LOOP
    BEGIN
      RETURN QUERY SELECT e.*, NULL::text
        FROM pulse_internal.end_attempts(ARRAY[endings[n]], ARRAY[tokens[n]]) AS e;
    EXCEPTION WHEN OTHERS OR assert_failure THEN
      IF NOT pulse_internal.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      id := (endings[n]).id;
      error := format('job %s: %s', id, SQLERRM);
      RETURN NEXT;
    END;
    EXIT WHEN clock_timestamp() >= apart_until;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_internal.end_many(
  pulse_internal.ending[], bigint[], int, timestamptz) IS
  'Ends at most max_count attempts as end_attempts does. apart_until: each attempt in a savepoint '
  'of its own, until that time, with the error of each attempt that raises an error; NULL: all '
  'attempts in one step.';
