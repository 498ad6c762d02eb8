-- Assertions about attempts and ends.

CREATE OR REPLACE FUNCTION pulse_tap.ends()
  RETURNS TABLE (job_id bigint, identifier text, state text, error text, ended_at timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT f.id, f.identifier, f.state::text, f.last_error, f.finished_at FROM pulse.finished_job AS f
  UNION ALL
  SELECT r.job_id, r.identifier, r.state, r.error, r.ended_at FROM pulse_tap.run AS r
   WHERE r.state = 'completed'
     AND NOT EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = r.job_id);
$$;
COMMENT ON FUNCTION pulse_tap.ends() IS
  'For the kit itself: returns the ended jobs: the kept jobs, and the jobs that this test has '
  'completed.';

CREATE OR REPLACE FUNCTION pulse_tap.name_of(identifier text, job_id bigint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT CASE WHEN job_id IS NULL THEN 'task ' || coalesce(identifier, 'NULL')
              ELSE 'job ' || job_id END;
$$;
COMMENT ON FUNCTION pulse_tap.name_of(text, bigint) IS
  'For the kit itself: returns the subject of an assertion, in words.';

-- A job that waits although the job should have ended: most often nothing can run the job.
CREATE OR REPLACE FUNCTION pulse_tap.live_jobs(identifier text, job_id bigint) RETURNS text[]
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN ARRAY(
    SELECT pulse_tap.told(j)
        || CASE WHEN to_regprocedure(t.handler) IS NULL THEN ', its task has no handler' ELSE '' END
      FROM pulse.job AS j LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
     WHERE j.identifier = live_jobs.identifier OR j.id = live_jobs.job_id ORDER BY j.id);
END $$;
COMMENT ON FUNCTION pulse_tap.live_jobs(text, bigint) IS
  'For the kit itself: returns the live jobs of a task, or one job, each in one line.';

CREATE OR REPLACE FUNCTION pulse_tap.fault_of_end(identifier text, job_id bigint, state text)
  RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lines text[] := pulse_tap.live_jobs(fault_of_end.identifier, fault_of_end.job_id);
  seen record;
BEGIN
  IF fault_of_end.state IS NULL
     OR fault_of_end.state <> ALL (enum_range(NULL::pulse.finished_state)::text[]) THEN
    RAISE EXCEPTION 'no job ends as %', coalesce(quote_literal(fault_of_end.state), 'NULL') USING
      ERRCODE = 'PU004',
      HINT = format('Jobs end as %s.',
                    array_to_string(enum_range(NULL::pulse.finished_state), ', '));
  END IF;
  SELECT e.* INTO seen FROM pulse_tap.ends() AS e
   WHERE e.identifier = fault_of_end.identifier OR e.job_id = fault_of_end.job_id
   ORDER BY e.ended_at DESC, e.job_id DESC LIMIT 1;
  IF seen.state = fault_of_end.state THEN
    RETURN NULL;
  ELSIF seen.job_id IS NOT NULL THEN
    RETURN format(E'have: job %s ended as %s\nwant: %s', seen.job_id, seen.state,
                  fault_of_end.state) || coalesce(E'\nlast error: ' || seen.error, '');
  ELSIF cardinality(lines) > 0 THEN
    RETURN pulse_tap.listed(format('%s has not ended:', pulse_tap.name_of(
      fault_of_end.identifier, fault_of_end.job_id)), lines);
  END IF;
  RETURN format('%s: there is no such job, and none that this test saw end',
                pulse_tap.name_of(fault_of_end.identifier, fault_of_end.job_id));
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_end(text, bigint, text) IS
  'For the kit itself: returns how a job ended that should have ended otherwise; NULL: the job '
  'ended as expected. Raises PU004 for a word that names no end.';

CREATE OR REPLACE FUNCTION pulse_tap.job_ended_as(
    identifier text, state text, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(pulse_tap.fault_of_end(identifier, NULL, state), coalesce(
    description, format('the last job of task %s ended as %s', identifier, state)));
END $$;
COMMENT ON FUNCTION pulse_tap.job_ended_as(text, text, text) IS
  'Passes if the job of this task that ended last ended so: completed, failed, quarantined, '
  'cancelled or expired. The test sees jobs that complete and are not kept if drain() or '
  'run_job() ran the jobs. Fails with the end of the job, or with the jobs that have not ended. '
  'Raises PU004 for another word, PU006 outside a transaction block.';

CREATE OR REPLACE FUNCTION pulse_tap.job_ended_as(
    job_id bigint, state text, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(pulse_tap.fault_of_end(NULL, job_id, state), coalesce(
    description, format('job %s ended as %s', job_id, state)));
END $$;
COMMENT ON FUNCTION pulse_tap.job_ended_as(bigint, text, text) IS
  'Passes if this job ended so: completed, failed, quarantined, cancelled or expired. Otherwise as '
  'for the last job of a task.';

CREATE OR REPLACE FUNCTION pulse_tap.errors_of(identifier text, job_id bigint) RETURNS text[]
  LANGUAGE sql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  WITH job (id, error) AS (
    SELECT j.id, j.last_error FROM pulse.job AS j
     WHERE j.identifier = errors_of.identifier OR j.id = errors_of.job_id
    UNION
    SELECT e.job_id, e.error FROM pulse_tap.ends() AS e
     WHERE e.identifier = errors_of.identifier OR e.job_id = errors_of.job_id
  ), error (job_id, text) AS (
    SELECT j.id, j.error FROM job AS j
    UNION
    SELECT a.job_id, a.error FROM pulse.attempt AS a WHERE a.job_id IN (SELECT j.id FROM job AS j)
  )
  SELECT coalesce(array_agg(e.text ORDER BY e.job_id, e.text), '{}') FROM error AS e
   WHERE e.text IS NOT NULL;
$$;
COMMENT ON FUNCTION pulse_tap.errors_of(text, bigint) IS
  'For the kit itself: returns the errors of the attempts of a task''s jobs, or of one job.';

CREATE OR REPLACE FUNCTION pulse_tap.fault_of_error(identifier text, job_id bigint, error text)
  RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  errors text[] := pulse_tap.errors_of(fault_of_error.identifier, fault_of_error.job_id);
  lines text[] := pulse_tap.live_jobs(fault_of_error.identifier, fault_of_error.job_id);
BEGIN
  IF EXISTS (SELECT FROM unnest(errors) AS e WHERE strpos(e, fault_of_error.error) > 0) THEN
    RETURN NULL;
  END IF;
  RETURN format('no attempt of %s failed with: %s',
                pulse_tap.name_of(fault_of_error.identifier, fault_of_error.job_id),
                coalesce(fault_of_error.error, 'NULL'))
      || E'\n'
      || CASE WHEN cardinality(errors) > 0 THEN pulse_tap.listed('the errors are:', errors)
              WHEN cardinality(lines) > 0 THEN pulse_tap.listed('none failed; waiting:', lines)
              WHEN EXISTS (SELECT FROM pulse_tap.ends() AS e
                            WHERE e.identifier = fault_of_error.identifier
                               OR e.job_id = fault_of_error.job_id) THEN 'none failed; all ended'
              ELSE 'there is no such job' END;
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_error(text, bigint, text) IS
  'For the kit itself: returns the errors that are there instead; NULL: one contains this text.';

CREATE OR REPLACE FUNCTION pulse_tap.job_failed_with(
    identifier text, error text, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(pulse_tap.fault_of_error(identifier, NULL, error), coalesce(
    description, format('a job of task %s failed with: %s', identifier, error)));
END $$;
COMMENT ON FUNCTION pulse_tap.job_failed_with(text, text, text) IS
  'Passes if an attempt of a job of this task failed with an error that contains this text, be the '
  'job tried again or not. Fails with the errors that are there. Raises PU006 outside a '
  'transaction block.';

CREATE OR REPLACE FUNCTION pulse_tap.job_failed_with(
    job_id bigint, error text, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(pulse_tap.fault_of_error(NULL, job_id, error), coalesce(
    description, format('job %s failed with: %s', job_id, error)));
END $$;
COMMENT ON FUNCTION pulse_tap.job_failed_with(bigint, text, text) IS
  'Passes if an attempt of this job failed with an error that contains this text. Otherwise as for '
  'a task.';

-- A fence lets a transaction commit that ended the attempt itself. In a test the transaction is
-- also the sweep, which stands for another session; an attempt that the sweep ended is on record as
-- taken away.
CREATE OR REPLACE FUNCTION pulse_tap.fault_of_fences() RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lines text[] := ARRAY(
    SELECT DISTINCT format('job %s: %s', f.job_id,
                           coalesce(f.fault, format('its attempt has %s',
                                                    CASE a.outcome WHEN 'timed_out' THEN 'timed out'
                                                      ELSE 'ended as ' || a.outcome END)))
      FROM pulse_internal.fences() AS f
      LEFT JOIN pulse.attempt AS a ON a.job_id = f.job_id AND a.token = f.token
       AND a.outcome IN ('lost', 'timed_out', 'stalled', 'interrupted')
     WHERE f.fault IS NOT NULL OR a.outcome IS NOT NULL
     ORDER BY 1);
BEGIN
  RETURN CASE WHEN cardinality(lines) > 0
           THEN pulse_tap.listed('COMMIT would fail, because these claims are lost:', lines) END;
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_fences() IS
  'For the kit itself: returns why the fences of this transaction refuse the commit; NULL: no '
  'fence refuses.';

CREATE OR REPLACE FUNCTION pulse_tap.check_fences(description text = NULL) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(pulse_tap.fault_of_fences(), coalesce(
    description, 'every fence of this transaction holds its claim'));
END $$;
COMMENT ON FUNCTION pulse_tap.check_fences(text) IS
  'Passes if the fences of this transaction would let it commit now. A test that is rolled back '
  'never comes to the check of its COMMIT. Fails with the job whose claim is lost. Raises PU006 '
  'outside a transaction block.';
