-- Jobs that ended without success, for operators and observers: a list by the time of the end, and
-- groups by error. Each call reads a bounded number of rows, as list_jobs() does.

CREATE OR REPLACE FUNCTION pulse_internal.ends_to_read(
    ended_before timestamptz, before_id bigint, max_checked int)
  RETURNS int
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN least(max_checked, pulse_internal.texts_to_read(ARRAY(
    SELECT octet_length(f.last_error) FROM pulse.finished_job AS f
     WHERE f.state <> 'completed' AND (f.finished_at, f.id) < (ended_before, before_id)
     ORDER BY f.finished_at DESC, f.id DESC LIMIT max_checked)));
END $$;
COMMENT ON FUNCTION pulse_internal.ends_to_read(timestamptz, bigint, int) IS
  'Returns how many jobs a call that searches errors reads: the last max_checked jobs that ended '
  'without success before a moment, or at this moment with an id below before_id, up to 8 MB of '
  'errors.';

CREATE OR REPLACE FUNCTION pulse_internal.ends_page(
    states text[], task text, queue text, key text, error text, error_line text,
    before timestamptz, after timestamptz, ended_before timestamptz, before_id bigint,
    max_rows int, bound int,
    OUT ids bigint[], OUT checked_to bigint, OUT checked_to_end timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  ids := ARRAY(
    SELECT f.id FROM (SELECT o.* FROM pulse.finished_job AS o
                       WHERE o.state <> 'completed'
                         AND (o.finished_at, o.id) < (ended_before, before_id)
                       ORDER BY o.finished_at DESC, o.id DESC LIMIT bound) AS f
     WHERE pulse_internal.is_listed(f.state::text, f.identifier, f.queue_name, f.job_key,
             f.created_at, f.last_error, states, task, queue, key, error, error_line,
             before, after)
     LIMIT max_rows);
  IF cardinality(ids) < max_rows THEN
    SELECT o.id, o.finished_at INTO checked_to, checked_to_end FROM pulse.finished_job AS o
     WHERE o.state <> 'completed' AND (o.finished_at, o.id) < (ended_before, before_id)
     ORDER BY o.finished_at DESC, o.id DESC OFFSET bound - 1 LIMIT 1;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.ends_page(text[], text, text, text, text, text, timestamptz,
    timestamptz, timestamptz, bigint, int, int) IS
  'Returns the ids of at most max_rows jobs that ended without success and meet the conditions, '
  'among the last ends up to the bound; checked_to and checked_to_end: id and end of the last job '
  'that the function has read, where more jobs may meet the conditions before this end.';

CREATE OR REPLACE FUNCTION pulse_internal.list_ended_jobs_as_owner(
    states text[], task text, queue text, key text, error text, error_line text,
    older_than interval, newer_than interval, ended_before timestamptz, before_id bigint,
    max_rows int)
  RETURNS TABLE (id bigint, state text, identifier text, queue_name text, priority int,
                 run_at timestamptz, attempts int, max_attempts int, crashes int, job_key text,
                 worker_id bigint, created_at timestamptz, claimed_at timestamptz,
                 finished_at timestamptz, progress float8, last_error text,
                 last_error_line text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 50
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  below_end CONSTANT timestamptz := coalesce(ended_before, 'infinity');
  below CONSTANT bigint := coalesce(before_id, 9223372036854775807);
  page record;
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  PERFORM pulse_internal.check_states(states);
  PERFORM pulse_internal.check_error_search(error, error_line);
  SELECT * INTO page FROM pulse_internal.ends_page(
    states, task, queue, key, error, error_line,
    pulse.now() - pulse_internal.checked_age('older_than', older_than),
    pulse.now() - pulse_internal.checked_age('newer_than', newer_than),
    below_end, below, max_rows,
    CASE num_nonnulls(error, error_line) WHEN 0 THEN 20000
      ELSE pulse_internal.ends_to_read(below_end, below, 20000) END);
  RETURN QUERY
  SELECT l.* FROM pulse_internal.listed_rows(
           NULL, page.ids, pulse_internal.may_read_errors()) AS l
   ORDER BY l.finished_at DESC, l.id DESC;
  IF page.checked_to IS NOT NULL THEN
    id := page.checked_to;
    finished_at := page.checked_to_end;
    RETURN NEXT;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.list_ended_jobs_as_owner(text[], text, text, text, text, text,
    interval, interval, timestamptz, bigint, int) IS
  'The body of pulse.list_ended_jobs().';

CREATE OR REPLACE FUNCTION pulse.list_ended_jobs(
    states text[] = '{failed,quarantined}', task text = NULL, queue text = NULL, key text = NULL,
    error text = NULL, error_line text = NULL, older_than interval = NULL,
    newer_than interval = NULL, ended_before timestamptz = NULL, before_id bigint = NULL,
    max_rows int = 50)
  RETURNS TABLE (id bigint, state text, identifier text, queue_name text, priority int,
                 run_at timestamptz, attempts int, max_attempts int, crashes int, job_key text,
                 worker_id bigint, created_at timestamptz, claimed_at timestamptz,
                 finished_at timestamptz, progress float8, last_error text,
                 last_error_line text)
  LANGUAGE c STABLE SECURITY INVOKER PARALLEL UNSAFE ROWS 50
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.list_ended_jobs(text[], text, text, text, text, text, interval, interval,
    timestamptz, bigint, int) IS
  'Returns jobs that ended without success and meet each condition that is not NULL, the last end '
  'first. Conditions, columns, rights and errors are as in list_jobs(). finished_at and id of '
  'the last job of a page are ended_before and before_id of the next page. A call reads the last '
  '20,000 ends, for error and error_line 8 MB of errors: where the call stops at a bound, a last '
  'row has only id and finished_at, with which to go on.';

CREATE OR REPLACE FUNCTION pulse_internal.group_failures(
    states text[], task text, queue text, key text, error text, before timestamptz,
    after timestamptz, shows_errors boolean, bound int)
  RETURNS TABLE (error_line text, jobs bigint, is_exact boolean, first_end timestamptz,
                 last_end timestamptz, tasks text[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 50
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  WITH checked AS MATERIALIZED (
    SELECT o.state, o.identifier, o.queue_name, o.job_key, o.created_at, o.finished_at,
           o.last_error
      FROM pulse.finished_job AS o WHERE o.state <> 'completed'
     ORDER BY o.finished_at DESC, o.id DESC LIMIT bound
  ), met AS (
    SELECT CASE WHEN shows_errors THEN coalesce(pulse_internal.error_line(l.last_error), '') END
             AS line, l.identifier, l.finished_at
      FROM checked AS l
     WHERE pulse_internal.is_listed(l.state::text, l.identifier, l.queue_name, l.job_key,
             l.created_at, l.last_error, states, task, queue, key, error, NULL, before, after)
  )
  SELECT m.line, count(*), (SELECT count(*) FROM checked) < bound, min(m.finished_at),
         max(m.finished_at), (array_agg(DISTINCT m.identifier::text))[1:10]
    FROM met AS m GROUP BY m.line;
END $$;
COMMENT ON FUNCTION pulse_internal.group_failures(text[], text, text, text, text, timestamptz,
    timestamptz, boolean, int) IS
  'Returns the groups of list_failures(), of the last ends up to the bound.';

CREATE OR REPLACE FUNCTION pulse_internal.list_failures_as_owner(
    states text[], task text, queue text, key text, error text, older_than interval,
    newer_than interval, max_rows int, max_checked int)
  RETURNS TABLE (error_line text, jobs bigint, is_exact boolean, first_end timestamptz,
                 last_end timestamptz, tasks text[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 50
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  PERFORM pulse_internal.check_count('max_checked', max_checked, 1, 20000);
  PERFORM pulse_internal.check_states(states);
  PERFORM pulse_internal.check_error_search(error, NULL);
  RETURN QUERY
  SELECT g.* FROM pulse_internal.group_failures(
           states, task, queue, key, error,
           pulse.now() - pulse_internal.checked_age('older_than', older_than),
           pulse.now() - pulse_internal.checked_age('newer_than', newer_than),
           pulse_internal.may_read_errors(),
           pulse_internal.ends_to_read('infinity', 0, max_checked)) AS g
   ORDER BY g.last_end DESC, g.error_line LIMIT max_rows;
END $$;
COMMENT ON FUNCTION pulse_internal.list_failures_as_owner(text[], text, text, text, text, interval,
    interval, int, int) IS
  'The body of pulse.list_failures().';

CREATE OR REPLACE FUNCTION pulse.list_failures(
    states text[] = '{failed,quarantined}', task text = NULL, queue text = NULL, key text = NULL,
    error text = NULL, older_than interval = NULL, newer_than interval = NULL, max_rows int = 20,
    max_checked int = 20000)
  RETURNS TABLE (error_line text, jobs bigint, is_exact boolean, first_end timestamptz,
                 last_end timestamptz, tasks text[])
  LANGUAGE c STABLE SECURITY INVOKER PARALLEL UNSAFE ROWS 50
  AS 'MODULE_PATHNAME', 'pulse_call_as_owner';
COMMENT ON FUNCTION pulse.list_failures(text[], text, text, text, text, interval, interval, int,
    int) IS
  'Returns the errors of jobs that ended without success and meet each condition that is not NULL, '
  'the error with the last end first, at most max_rows (1 to 1000). Conditions, rights and errors '
  'are as in list_jobs(). error_line: the line that the last errors of the jobs share, and the '
  'error_line of list_ended_jobs() and of a filter of start_operation(); empty for jobs without an '
  'error. tasks: the first ten tasks of the jobs. A call reads the last max_checked ends (1 to '
  '20000) and 8 MB of errors: where is_exact is false, the call stopped at a bound, and there may '
  'be more jobs and earlier ends. For a role that may not read the tables all jobs are one group, '
  'whose error_line is NULL.';
