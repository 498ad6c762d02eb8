-- Lists of jobs and attempts for operators and observers, page by page. A list reads a bounded
-- number of rows, however many there are. An error of a job is only for roles that may read the
-- table.

-- In the database's own language, and as programs write: in Turkish the small form of I is no i.
CREATE OR REPLACE FUNCTION pulse_internal.has_part(whole text, part text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN strpos(lower(whole), lower(part)) > 0
         OR strpos(lower(lower(whole COLLATE "C") COLLATE "default"),
                   lower(lower(part COLLATE "C") COLLATE "default")) > 0;
COMMENT ON FUNCTION pulse_internal.has_part(text, text) IS
  'Returns whether a text has this part, in any case.';

CREATE OR REPLACE FUNCTION pulse_internal.error_line(error text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_error_line';
COMMENT ON FUNCTION pulse_internal.error_line(text) IS
  'Returns the line of an error that tells most, up to 200 characters: the last one that is '
  'neither blank nor indented; where all are indented the last one; empty where all are blank.';

CREATE OR REPLACE FUNCTION pulse_internal.is_listed(
    state text, identifier text, queue_name text, job_key text, created_at timestamptz,
    last_error text, states text[], task text, queue text, key text, error text,
    error_line text, before timestamptz, after timestamptz)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (states IS NULL OR state = ANY (states)) AND (task IS NULL OR identifier = task)
         AND (queue IS NULL OR queue_name = queue) AND (key IS NULL OR job_key = key)
         AND (error IS NULL OR pulse_internal.has_part(last_error, error))
         AND (error_line IS NULL OR pulse_internal.error_line(last_error) = error_line)
         AND (before IS NULL OR created_at <= before) AND (after IS NULL OR created_at > after);
COMMENT ON FUNCTION pulse_internal.is_listed(text, text, text, text, timestamptz, text, text[],
    text, text, text, text, text, timestamptz, timestamptz) IS
  'Returns whether a job meets each condition that is not NULL: error is a part of the last error, '
  'error_line the line of the last error that tells most.';

-- An index leads to the jobs of a condition that few jobs meet, also where the newest jobs do not
-- meet it.
CREATE OR REPLACE FUNCTION pulse_internal.few_live_ids(
    states text[], task text, queue text, key text, bound int)
  RETURNS bigint[]
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  ids bigint[] := '{}';
BEGIN
  IF num_nonnulls(states, task, queue, key) = 0 THEN
    RETURN NULL;
  END IF;
  IF key IS NOT NULL THEN
    RETURN ARRAY(SELECT j.id FROM pulse.job AS j
                  WHERE j.job_key = key AND j.index_lane IN ('o', 'p', 'w'))
        || ARRAY(SELECT j.id FROM pulse.job AS j
                  WHERE j.job_key = key AND j.index_lane IN ('r', 'k'));
  END IF;
  IF states IS NULL OR 'running' = ANY (states) THEN
    ids := coalesce(pulse_internal.running_ids(NULL, bound + 1), '{}');
  END IF;
  IF states IS NULL OR 'ready' = ANY (states) THEN
    ids := ids || CASE
      WHEN queue IS NOT NULL THEN ARRAY(
        SELECT j.id FROM pulse.job AS j
         WHERE j.queue_name = queue AND j.queue_name IS NOT NULL AND j.index_lane IN ('o', 'r')
         LIMIT bound + 1)
      WHEN task IS NOT NULL THEN ARRAY(
        SELECT j.id FROM pulse.job AS j WHERE j.index_lane = 'o' AND j.identifier = task
         LIMIT bound + 1)
      ELSE ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.index_lane = 'o' LIMIT bound + 1) END;
  END IF;
  IF states IS NULL OR 'parked' = ANY (states) THEN
    ids := ids || CASE
      WHEN queue IS NOT NULL THEN ARRAY(
        SELECT j.id FROM pulse.job AS j
         WHERE j.index_lane = 'p' AND j.queue_name = queue
           AND pulse_internal.queue_bucket(j.queue_name) = pulse_internal.queue_bucket(queue)
         LIMIT bound + 1)
      ELSE ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.index_lane = 'p' LIMIT bound + 1) END
      || ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.index_lane = 'w' LIMIT bound + 1)
      || ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.index_lane = 'k' LIMIT bound + 1);
  END IF;
  RETURN CASE WHEN cardinality(ids) <= bound THEN ids END;
END $$;
COMMENT ON FUNCTION pulse_internal.few_live_ids(text[], text, text, text, int) IS
  'Returns the ids of all live jobs that may meet these conditions, by an index; NULL if the jobs '
  'are more than the bound.';

-- Newest first. Where an index leads to few jobs, the function reads them all; else the jobs with
-- the highest ids below before_id, up to the bound.
CREATE OR REPLACE FUNCTION pulse_internal.live_page(
    states text[], task text, queue text, key text, error text, error_line text,
    before timestamptz, after timestamptz, before_id bigint, max_rows int, bound int,
    OUT ids bigint[], OUT checked_to bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  few bigint[] := pulse_internal.few_live_ids(states, task, queue, key, 1000);
BEGIN
  IF few IS NOT NULL THEN
    ids := ARRAY(
      SELECT j.id FROM pulse.job AS j
       WHERE j.id = ANY (few) AND j.id < before_id
         AND pulse_internal.is_listed(j.state::text, j.identifier, j.queue_name, j.job_key,
               j.created_at, j.last_error, states, task, queue, key, error, error_line,
               before, after)
       ORDER BY j.id DESC LIMIT max_rows);
    RETURN;
  END IF;
  IF num_nonnulls(error, error_line) > 0 THEN
    bound := least(bound, pulse_internal.texts_to_read(ARRAY(
      SELECT octet_length(o.last_error) FROM pulse.job AS o WHERE o.id < before_id
       ORDER BY o.id DESC LIMIT bound)));
  END IF;
  SELECT coalesce(array_agg(l.id) FILTER (WHERE l.is_met), '{}'),
         max(l.id) FILTER (WHERE l.is_last)
    INTO ids, checked_to
    FROM (SELECT c.id, c.is_met, c.place = bound AS is_last
            FROM (SELECT o.id, row_number() OVER (ORDER BY o.id DESC) AS place,
                         pulse_internal.is_listed(o.state::text, o.identifier, o.queue_name,
                           o.job_key, o.created_at, o.last_error, states, task, queue, key, error,
                           error_line, before, after) AS is_met
                    FROM pulse.job AS o WHERE o.id < before_id
                   ORDER BY o.id DESC LIMIT bound) AS c
           WHERE c.is_met OR c.place = bound LIMIT max_rows) AS l;
END $$;
COMMENT ON FUNCTION pulse_internal.live_page(text[], text, text, text, text, text,
    timestamptz, timestamptz, bigint, int, int) IS
  'Returns the ids of at most max_rows live jobs that meet the conditions; checked_to: the last id '
  'that the function has read, where more jobs below the id may meet the conditions.';

CREATE OR REPLACE FUNCTION pulse_internal.ended_page(
    states text[], task text, queue text, key text, error text, error_line text,
    before timestamptz, after timestamptz, before_id bigint, max_rows int, bound int,
    OUT ids bigint[], OUT checked_to bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  IF num_nonnulls(error, error_line) > 0 THEN
    bound := least(bound, pulse_internal.texts_to_read(ARRAY(
      SELECT octet_length(o.last_error) FROM pulse.finished_job AS o WHERE o.id < before_id
       ORDER BY o.id DESC LIMIT bound)));
  END IF;
  SELECT coalesce(array_agg(l.id) FILTER (WHERE l.is_met), '{}'),
         max(l.id) FILTER (WHERE l.is_last)
    INTO ids, checked_to
    FROM (SELECT c.id, c.is_met, c.place = bound AS is_last
            FROM (SELECT o.id, row_number() OVER (ORDER BY o.id DESC) AS place,
                         pulse_internal.is_listed(o.state::text, o.identifier, o.queue_name,
                           o.job_key, o.created_at, o.last_error, states, task, queue, key, error,
                           error_line, before, after) AS is_met
                    FROM pulse.finished_job AS o WHERE o.id < before_id
                   ORDER BY o.id DESC LIMIT bound) AS c
           WHERE c.is_met OR c.place = bound LIMIT max_rows) AS l;
END $$;
COMMENT ON FUNCTION pulse_internal.ended_page(text[], text, text, text, text, text,
    timestamptz, timestamptz, bigint, int, int) IS
  'Returns the ids of at most max_rows kept ended jobs, as live_page() does of live jobs.';

CREATE OR REPLACE FUNCTION pulse_internal.check_states(states text[]) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  unknown text := (
    SELECT s.name FROM unnest(states) AS s (name)
     WHERE s.name IS NULL
        OR s.name <> ALL (enum_range(NULL::pulse.job_state)::text[]
                          || enum_range(NULL::pulse.finished_state)::text[]) LIMIT 1);
BEGIN
  IF unknown IS NOT NULL THEN
    RAISE EXCEPTION 'there is no state "%"', unknown USING
      ERRCODE = 'PU004', HINT = 'States are ready, parked, running, completed, failed, '
        'quarantined, cancelled and expired.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_states(text[]) IS
  'Raises PU004 for a name that is no state of a live or finished job.';

CREATE OR REPLACE FUNCTION pulse_internal.may_read_errors() RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT has_table_privilege(pulse_internal.asking_role(), 'pulse.finished_job', 'SELECT');
$$;
COMMENT ON FUNCTION pulse_internal.may_read_errors() IS
  'Returns whether the caller may read the texts that tasks wrote.';

CREATE OR REPLACE FUNCTION pulse_internal.check_error_search(error text, error_line text)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF num_nonnulls(error, error_line) > 0 AND NOT pulse_internal.may_read_errors() THEN
    RAISE EXCEPTION 'role % may not read errors of jobs', pulse_internal.asking_role() USING
      ERRCODE = 'insufficient_privilege',
      HINT = 'The owner of pg_pulse lets it: pulse.grant_operator().';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.check_error_search(text, text) IS
  'Raises 42501 where a caller who may not read errors of jobs searches by an error.';

CREATE OR REPLACE FUNCTION pulse_internal.listed_rows(
    live bigint[], ended bigint[], shows_errors boolean)
  RETURNS TABLE (id bigint, state text, identifier text, queue_name text, priority int,
                 run_at timestamptz, attempts int, max_attempts int, crashes int, job_key text,
                 worker_id bigint, created_at timestamptz, claimed_at timestamptz,
                 finished_at timestamptz, progress float8, last_error text,
                 last_error_line text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 50
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT l.* FROM (
    SELECT j.id, j.state::text, j.identifier, j.queue_name, j.priority::int, j.run_at,
           j.attempts::int, j.max_attempts::int, j.crashes::int, j.job_key, j.worker_id,
           j.created_at, j.claimed_at, NULL::timestamptz,
           CASE WHEN j.state::text = 'running' THEN j.progress END,
           CASE WHEN shows_errors THEN pulse_internal.excerpt(j.last_error) END,
           CASE WHEN shows_errors THEN pulse_internal.error_line(j.last_error) END
      FROM pulse.job AS j WHERE j.id = ANY (live)
    UNION ALL
    SELECT f.id, f.state::text, f.identifier, f.queue_name, f.priority::int, f.run_at,
           f.attempts::int, f.max_attempts::int, f.crashes::int, f.job_key, f.worker_id,
           f.created_at, f.claimed_at, f.finished_at, NULL,
           CASE WHEN shows_errors THEN pulse_internal.excerpt(f.last_error) END,
           CASE WHEN shows_errors THEN pulse_internal.error_line(f.last_error) END
      FROM pulse.finished_job AS f WHERE f.id = ANY (ended)) AS l
   ORDER BY 1 DESC;
END $$;
COMMENT ON FUNCTION pulse_internal.listed_rows(bigint[], bigint[], boolean) IS
  'Returns these live and ended jobs as list_jobs() shows them, the highest id first.';

CREATE OR REPLACE FUNCTION pulse_internal.list_jobs_as_owner(
    states text[], task text, queue text, key text,
    error text, error_line text, older_than interval, newer_than interval,
    before_id bigint, max_rows int)
  RETURNS TABLE (id bigint, state text, identifier text, queue_name text, priority int,
                 run_at timestamptz, attempts int, max_attempts int, crashes int, job_key text,
                 worker_id bigint, created_at timestamptz, claimed_at timestamptz,
                 finished_at timestamptz, progress float8, last_error text,
                 last_error_line text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 50
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  max_checked CONSTANT int := 20000;
  live_states CONSTANT text[] := enum_range(NULL::pulse.job_state)::text[];
  below CONSTANT bigint := coalesce(before_id, 9223372036854775807);
  before CONSTANT timestamptz :=
    pulse.now() - pulse_internal.checked_age('older_than', older_than);
  after CONSTANT timestamptz :=
    pulse.now() - pulse_internal.checked_age('newer_than', newer_than);
  live record;
  ended record;
  checked_to bigint;
  listed record;
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  PERFORM pulse_internal.check_states(states);
  PERFORM pulse_internal.check_error_search(error, error_line);
  SELECT '{}'::bigint[] AS ids, NULL::bigint AS checked_to INTO live;
  ended := live;
  IF states IS NULL OR states && live_states THEN
    SELECT * INTO live FROM pulse_internal.live_page(
      states, task, queue, key, error, error_line, before, after, below, max_rows, max_checked);
  END IF;
  IF states IS NULL OR NOT states <@ live_states THEN
    SELECT * INTO ended FROM pulse_internal.ended_page(
      states, task, queue, key, error, error_line, before, after, below, max_rows, max_checked);
  END IF;
  -- The page ends at the first id that live_page() or ended_page() has not read.
  checked_to := greatest(live.checked_to, ended.checked_to);
  SELECT array_agg(i.id) FILTER (WHERE i.is_live) AS live,
         array_agg(i.id) FILTER (WHERE NOT i.is_live) AS ended, count(*) AS jobs INTO listed
    FROM (SELECT a.id, a.is_live
            FROM (SELECT u.id, true FROM unnest(live.ids) AS u (id)
                   UNION ALL SELECT u.id, false FROM unnest(ended.ids) AS u (id)) AS a (id, is_live)
           WHERE (a.id >= checked_to) IS NOT FALSE
           ORDER BY a.id DESC LIMIT max_rows) AS i;
  RETURN QUERY
  SELECT l.* FROM pulse_internal.listed_rows(
           listed.live, listed.ended, pulse_internal.may_read_errors()) AS l
   ORDER BY l.id DESC;
  IF checked_to IS NOT NULL AND listed.jobs < max_rows THEN
    id := checked_to;
    RETURN NEXT;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.list_jobs_as_owner(
    text[], text, text, text, text, text, interval, interval, bigint, int) IS
  'The body of pulse.list_jobs().';

CREATE OR REPLACE FUNCTION pulse.list_jobs(
    states text[] = NULL, task text = NULL, queue text = NULL, key text = NULL,
    error text = NULL, error_line text = NULL, older_than interval = NULL,
    newer_than interval = NULL, before_id bigint = NULL, max_rows int = 50)
  RETURNS TABLE (id bigint, state text, identifier text, queue_name text, priority int,
                 run_at timestamptz, attempts int, max_attempts int, crashes int, job_key text,
                 worker_id bigint, created_at timestamptz, claimed_at timestamptz,
                 finished_at timestamptz, progress float8, last_error text,
                 last_error_line text)
  LANGUAGE c STABLE SECURITY INVOKER PARALLEL UNSAFE ROWS 50
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.list_jobs(text[], text, text, text, text, text, interval, interval,
    bigint, int) IS
  'Returns live and ended jobs that meet each condition that is not NULL, the highest id first, at '
  'most max_rows (1 to 1000). states: names of states; error: a part of the last error, in any '
  'case; error_line: the line of the last error that tells most, as last_error_line has it; '
  'older_than and newer_than: by the time of the add. The last id of a page is before_id of the '
  'next page. A call reads 20,000 live and 20,000 ended jobs at most, for error and error_line 8 '
  'MB of the errors of each kind: where the call stops at a bound, a last row has only an id, the '
  'before_id with which to go on. last_error: of a long error the first and last 250 characters. '
  'last_error_line: the last line of the error that is neither blank nor indented, up to 200 '
  'characters. Both are NULL for a role that may not read the tables. Raises PU004 for an unknown '
  'state and for max_rows or a duration out of range, 42501 for error and error_line without the '
  'right to read the tables.';

CREATE OR REPLACE FUNCTION pulse_internal.job_attempts_as_owner(job_id bigint, max_rows int)
  RETURNS TABLE (attempt int, worker_id bigint, worker text, claimed_at timestamptz,
                 ended_at timestamptz, outcome text, error text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  shows_errors CONSTANT boolean := pulse_internal.may_read_errors();
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  PERFORM pulse_internal.refuse_lost(ARRAY[job_id]);
  RETURN QUERY
  SELECT a.attempt::int, a.worker_id, w.name, a.claimed_at, a.ended_at, a.outcome,
         CASE WHEN shows_errors THEN a.error END
    FROM (SELECT t.* FROM pulse.attempt AS t WHERE t.job_id = job_attempts_as_owner.job_id
           ORDER BY t.token DESC LIMIT max_rows) AS a
    LEFT JOIN pulse.worker AS w ON w.id = a.worker_id
   ORDER BY a.token;
END $$;
COMMENT ON FUNCTION pulse_internal.job_attempts_as_owner(bigint, int) IS
  'The body of pulse.job_attempts().';

CREATE OR REPLACE FUNCTION pulse.job_attempts(job_id bigint, max_rows int = 100)
  RETURNS TABLE (attempt int, worker_id bigint, worker text, claimed_at timestamptz,
                 ended_at timestamptz, outcome text, error text)
  LANGUAGE c STABLE SECURITY INVOKER PARALLEL UNSAFE ROWS 10
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.job_attempts(bigint, int) IS
  'Returns the ended attempts of a job that are on record, in order; of more than max_rows (1 to '
  '1000) the last attempts. A success of a job that is not kept leaves no attempt. error is NULL '
  'for a role that may not read the tables. Raises PU004 for max_rows out of range, PU005 for an '
  'id lost in a failover.';

CREATE OR REPLACE FUNCTION pulse.recoveries(max_rows int = 20, newer_than interval = '1 day')
  RETURNS TABLE (job_id bigint, identifier text, attempt int, outcome text, worker_id bigint,
                 worker text, claimed_at timestamptz, ended_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 20
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  after CONSTANT timestamptz :=
    pulse.now() - pulse_internal.checked_age('newer_than', newer_than);
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  RETURN QUERY
  SELECT a.job_id, coalesce(j.identifier, f.identifier), a.attempt::int, a.outcome, a.worker_id,
         w.name, a.claimed_at, a.ended_at
    FROM (SELECT r.* FROM (SELECT t.* FROM pulse.attempt AS t WHERE t.ended_at > after
                            ORDER BY t.ended_at DESC LIMIT 5000) AS r
           WHERE r.outcome IN ('lost', 'timed_out', 'stalled', 'interrupted')
           LIMIT max_rows) AS a
    LEFT JOIN pulse.job AS j ON j.id = a.job_id
    LEFT JOIN pulse.finished_job AS f ON f.id = a.job_id
    LEFT JOIN pulse.worker AS w ON w.id = a.worker_id
   ORDER BY a.ended_at DESC;
END $$;
COMMENT ON FUNCTION pulse.recoveries(int, interval) IS
  'Returns the last attempts that pg_pulse or an operator took from the worker, because the '
  'worker was lost or at a limit, or was stopped: at most max_rows (1 to 1000), the newest first, '
  'among the last 5,000 attempts on record that ended within newer_than. Raises PU004 for '
  'max_rows out of range.';
