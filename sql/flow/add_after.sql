-- add_job_after: a job that waits for other jobs.

CREATE OR REPLACE FUNCTION pulse_internal.is_being_added(job_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_being_added';
COMMENT ON FUNCTION pulse_internal.is_being_added(bigint) IS
  'Returns whether a transaction in progress, not the caller''s, adds this job.';

CREATE OR REPLACE FUNCTION pulse_internal.producer_of_uncommitted(job_id bigint) RETURNS text
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_producer_of_uncommitted';
COMMENT ON FUNCTION pulse_internal.producer_of_uncommitted(bigint) IS
  'Returns the producer of a job that a transaction in progress adds; NULL where no transaction '
  'adds the job.';

CREATE OR REPLACE FUNCTION pulse_internal.is_own_transaction(adder xid) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_own_transaction';
COMMENT ON FUNCTION pulse_internal.is_own_transaction(xid) IS
  'Returns whether this transaction id belongs to the caller''s transaction or to one of its '
  'savepoints.';

CREATE OR REPLACE FUNCTION pulse_internal.insert_job(
    spec pulse.job_spec, waits_on bigint, starts_when text)
  RETURNS pulse.job
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_insert_job';
COMMENT ON FUNCTION pulse_internal.insert_job(pulse.job_spec, bigint, text) IS
  'Stores a checked job that watches this parent, unless the parent is NULL, and returns the row.';

CREATE OR REPLACE FUNCTION pulse_internal.insert_jobs(
    specs pulse.job_spec[], ids bigint[], waits_on bigint[], starts_when text[],
    start_by timestamptz[], keeps_result boolean[])
  RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_insert_jobs';
COMMENT ON FUNCTION pulse_internal.insert_jobs(
    pulse.job_spec[], bigint[], bigint[], text[], timestamptz[], boolean[]) IS
  'Stores the checked jobs without a key, under these ids. waits_on: the parent that each job '
  'watches, or NULL. start_by: NULL, unless start_by differs from the task''s. keeps_result: true '
  'where a job of the same flow waits for the job, else NULL.';

CREATE OR REPLACE FUNCTION pulse_internal.checked_key_mode(job_key_mode text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_checked_key_mode';
COMMENT ON FUNCTION pulse_internal.checked_key_mode(text) IS
  'Returns the mode of a keyed add; raises PU004 for an unknown one.';

CREATE OR REPLACE FUNCTION pulse_internal.check_starts_when(starts_when text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF starts_when IS NULL OR starts_when NOT IN ('completed', 'ended', 'failed') THEN
    RAISE EXCEPTION 'starts_when % is not known', coalesce(quote_literal(starts_when), 'NULL') USING
      ERRCODE = 'PU004', HINT = 'Use completed, ended or failed.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_starts_when(text) IS
  'Raises PU004 unless this says when a job starts.';

-- An id without any row stands for a completed job, so the id must have been given out, and no
-- transaction in progress may add a job of the id.
CREATE OR REPLACE FUNCTION pulse_internal.parents_of_call(after bigint[]) RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  parents bigint[];
  ended bigint[];
  pending bigint;
BEGIN
  IF after IS NULL OR array_ndims(after) > 1 OR array_position(after, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'after must be a flat array without nulls' USING
      ERRCODE = 'PU004', HINT = 'Give the ids of the jobs to wait for; {} waits for none.';
  END IF;
  parents := pulse_internal.in_order(after);
  PERFORM pulse_internal.require_own(parents);
  ended := pulse_internal.live_ids(parents, false);
  IF ended <> '{}' THEN
    PERFORM pulse_internal.check_given_out(ended);
    SELECT min(i) INTO pending FROM unnest(ended) AS i
     WHERE NOT EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = i)
       AND pulse_internal.is_being_added(i);
  END IF;
  IF pending IS NOT NULL
     AND NOT pulse_internal.may_name(pulse_internal.producer_of_uncommitted(pending),
                                     pulse_internal.asking_role()::text) THEN
    PERFORM pulse_internal.raise_unknown_job(pending);
  ELSIF pending IS NOT NULL THEN
    RAISE EXCEPTION 'job % is not committed', pending USING
      ERRCODE = 'PU005', DETAIL = 'The transaction that adds it is still open.',
      HINT = 'Commit it first, or add both jobs in one transaction.';
  END IF;
  -- A record whose deletion is in progress is gone before this call returns, or stays.
  PERFORM FROM pulse.finished_job AS f WHERE f.id = ANY (ended) ORDER BY f.id FOR KEY SHARE;
  RETURN parents;
END $$;
COMMENT ON FUNCTION pulse_internal.parents_of_call(bigint[]) IS
  'Returns the parents that a new job waits for, each once, in order. Raises PU004 for an invalid '
  'array, PU005 for an id never given out, lost in a failover or added by a transaction in '
  'progress, and for a job of another producer.';

-- Jobs cancelled because of this job count too: they wait again once this job is live again.
CREATE OR REPLACE FUNCTION pulse_internal.circle_of(job_id bigint, parents bigint[])
  RETURNS bigint[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  ids bigint[];
  children bigint[];
  path bigint[] := ARRAY[job_id];
BEGIN
  IF job_id <> ALL (parents)
     AND NOT EXISTS (SELECT FROM pulse.dependency AS d
                      WHERE d.parents_key IN (job_id, -pulse_internal.neighbours_of(job_id))
                        AND job_id = ANY (d.parents)) THEN
    RETURN NULL;
  END IF;
  WITH RECURSIVE above (id, child_id) AS (
    SELECT p, circle_of.job_id FROM unnest(parents) AS p
    UNION
    SELECT p.id, d.child_id
      FROM above AS a JOIN pulse.dependency AS d ON d.child_id = a.id
     CROSS JOIN unnest(d.parents) AS p (id)
     WHERE a.id <> circle_of.job_id
  )
  SELECT array_agg(a.id), array_agg(a.child_id) INTO ids, children FROM above AS a;
  WHILE path[1] = ANY (ids) LOOP
    path := children[array_position(ids, path[1])] || path;
    IF path[1] = job_id THEN
      RETURN path;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION pulse_internal.circle_of(bigint, bigint[]) IS
  'Returns how a job would come to wait for itself if it waited for these parents: each job of the '
  'path waits for the next. NULL: no path leads back to the job.';

-- A job that has a key may be replaced while others wait for the job.
CREATE OR REPLACE FUNCTION pulse_internal.check_circle(job_id bigint, parents bigint[]) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  path bigint[] := pulse_internal.circle_of(job_id, parents);
BEGIN
  IF path IS NOT NULL THEN
    RAISE EXCEPTION 'job % would wait for itself', job_id USING
      ERRCODE = 'PU004',
      DETAIL = format('Each waits for the next: %s.', array_to_string(path, ', ')),
      HINT = 'Add the job under another key.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_circle(bigint, bigint[]) IS
  'Raises PU004, with the path, where one of the parents waits for the job itself.';

CREATE OR REPLACE FUNCTION pulse_internal.store_parents(job_id bigint, parents bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  INSERT INTO pulse.dependency (child_id, parents_from, parents)
  SELECT job_id, n.parents_from, n.parents FROM pulse_internal.neighbours(parents) AS n;
END $$;
COMMENT ON FUNCTION pulse_internal.store_parents(bigint, bigint[]) IS
  'Stores the parents of a new job; the job has no row yet for these ids and their neighbours.';

-- Another transaction may hold the row of an older job that stays unchanged. Otherwise the add has
-- counted up the revision, which may begin again at 0, and has written the time of the add.
CREATE OR REPLACE FUNCTION pulse_internal.is_newly_added(job_id bigint, mode text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN mode IS DISTINCT FROM 'unsafe_dedupe'
         OR EXISTS (SELECT FROM pulse.job AS j
                     WHERE j.id = job_id AND j.revision = 0 AND j.updated_at = j.created_at
                       AND pulse_internal.is_own_transaction(j.xmin));
END $$;
COMMENT ON FUNCTION pulse_internal.is_newly_added(bigint, text) IS
  'Returns whether the add of this transaction made or replaced this job; false where the add '
  'left an older job of the key unchanged.';

CREATE OR REPLACE FUNCTION pulse_internal.let_wait(
    added pulse.job, waits_on bigint, starts_when text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  UPDATE pulse.job AS j
     SET state = 'parked',
         waits_on = let_wait.waits_on,
         starts_when = let_wait.starts_when,
         succession = NULL  -- others of a strict queue go on meanwhile
   WHERE j.id = added.id
  RETURNING j.state, j.waits_on, j.starts_when, j.index_lane
    INTO added.state, added.waits_on, added.starts_when, added.index_lane;
  PERFORM pulse_internal.note_parent(added.waits_on);
  RETURN added;
END $$;
COMMENT ON FUNCTION pulse_internal.let_wait(pulse.job, bigint, text) IS
  'Lets a job that this transaction has added under a key watch this parent, and returns the '
  'changed row.';

CREATE OR REPLACE FUNCTION pulse_internal.add_keyed_after(
    spec pulse.job_spec, mode text, parents bigint[], starts_when text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  added pulse.job;
BEGIN
  added := pulse_internal.add_keyed(spec, mode, NULL, pulse_internal.asking_role()::text);
  IF parents = '{}' OR NOT pulse_internal.is_newly_added(added.id, mode) THEN
    RETURN added;
  END IF;
  PERFORM pulse_internal.check_circle(added.id, parents);
  PERFORM pulse_internal.store_parents(added.id, parents);
  RETURN pulse_internal.let_wait(added, parents[cardinality(parents)], starts_when);
END $$;
COMMENT ON FUNCTION pulse_internal.add_keyed_after(pulse.job_spec, text, bigint[], text) IS
  'Adds a checked job under its key, with the parents that it waits for, and returns the row as '
  'the caller may see it.';

CREATE OR REPLACE FUNCTION pulse_internal.add_after(
    spec pulse.job_spec, mode text, parents bigint[], starts_when text, start_by timestamptz)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  added pulse.job;
BEGIN
  IF spec.job_key IS NULL THEN
    added := pulse_internal.insert_job(spec, parents[cardinality(parents)],
      CASE WHEN parents <> '{}' THEN starts_when END);
    PERFORM pulse_internal.store_parents(added.id, parents);
  ELSE
    added := pulse_internal.add_keyed_after(spec, mode, parents, starts_when);
  END IF;
  IF start_by IS NOT NULL AND pulse_internal.is_newly_added(added.id, mode) THEN
    added.start_by := (pulse_internal.set_start_by(added.id, start_by)).start_by;
  END IF;
  RETURN added;
END $$;
COMMENT ON FUNCTION
  pulse_internal.add_after(pulse.job_spec, text, bigint[], text, timestamptz) IS
  'Adds a checked job that waits for these parents, and returns the row as the caller may see it.';

CREATE OR REPLACE FUNCTION pulse_internal.add_job_after_as_owner(
    after bigint[],
    identifier text,
    payload json,
    queue_name text,
    run_at timestamptz,
    max_attempts int,
    job_key text,
    priority int,
    flags text[],
    job_key_mode text,
    starts_when text,
    start_by timestamptz)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  spec pulse.job_spec := pulse_internal.checked_spec(ROW(
    identifier, payload, queue_name, run_at, max_attempts, job_key, priority,
    flags)::pulse.job_spec);
BEGIN
  LOCK TABLE pulse.job, pulse.dependency IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.check_starts_when(starts_when);
  RETURN pulse_internal.add_after(
    spec, pulse_internal.checked_key_mode(coalesce(job_key_mode, 'replace')),
    pulse_internal.parents_of_call(after), starts_when, start_by);
END $$;
COMMENT ON FUNCTION pulse_internal.add_job_after_as_owner(
    bigint[], text, json, text, timestamptz, int, text, int, text[], text, text, timestamptz) IS
  'The body of pulse.add_job_after().';

CREATE OR REPLACE FUNCTION pulse.add_job_after(
    after bigint[],
    identifier text,
    payload json = NULL,
    queue_name text = NULL,
    run_at timestamptz = NULL,
    max_attempts int = NULL,
    job_key text = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key_mode text = 'replace',
    starts_when text = 'completed',
    start_by timestamptz = NULL)
  RETURNS pulse.job
  LANGUAGE c VOLATILE SECURITY INVOKER PARALLEL UNSAFE
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.add_job_after(
    bigint[], text, json, text, timestamptz, int, text, int, text[], text, text, timestamptz) IS
  'Adds a job as add_job does, and lets it wait until the jobs of these ids have ended; returns '
  'the row. starts_when: completed (all did; else the new job ends as cancelled), ended (in '
  'whatever way) or failed (at least one did not complete; else the new job ends as cancelled, not '
  'needed). start_by: the job ends as expired unless a claim takes it in time. {} waits for '
  'nothing. An id whose job no longer has a row counts as completed; the call waits for a '
  'transaction that deletes or retries an ended parent. Raises PU004 for a name or value out of '
  'range and for a job that would wait for itself, 42501 and 40001 as add_job does, PU005 for an '
  'id never given out or lost in a failover, for a parent that an open transaction adds, and for a '
  'job of another producer.';
