-- Assertions about jobs that wait. Each reads all that the test sees, so a test of one statement
-- says enqueues(), which compares before and after.

CREATE OR REPLACE FUNCTION pulse_tap.fault_of_missing(wanted jsonb) RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF EXISTS (SELECT FROM pulse.job AS j
              WHERE j.state <> 'running' AND pulse_tap.matches(j, wanted)) THEN
    RETURN NULL;
  END IF;
  RETURN format(E'no job waits with %s\n%s', wanted, pulse_tap.jobs_of(wanted ->> 'identifier'));
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_missing(jsonb) IS
  'For the kit itself: returns the jobs that are there instead of a waiting job like this; NULL: '
  'the job is there.';

CREATE OR REPLACE FUNCTION pulse_tap.job_enqueued(
    identifier text, payload jsonb, attributes jsonb, description text)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(
    pulse_tap.fault_of_missing(pulse_tap.wanted(identifier, payload, attributes)), description);
END $$;
COMMENT ON FUNCTION pulse_tap.job_enqueued(text, jsonb, jsonb, text) IS
  'Passes if a job of this task waits, now or later, whose payload contains this payload (jsonb '
  '@>; NULL: any) and whose columns equal these attributes, as {"queue_name": "mail"}. Fails with '
  'the present jobs of the task. Raises PU004 for an attribute that no job has, PU006 outside a '
  'transaction block.';

CREATE OR REPLACE FUNCTION pulse_tap.job_enqueued(
    identifier text, payload jsonb = NULL, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.job_enqueued(identifier, payload, NULL, coalesce(
    description, format('a job of task %s waits', identifier)));
END $$;
COMMENT ON FUNCTION pulse_tap.job_enqueued(text, jsonb, text) IS
  'Passes if a job of this task waits, now or later, whose payload contains this payload (jsonb '
  '@>; NULL: any). Fails with the present jobs of the task. Raises PU006 outside a transaction '
  'block.';

CREATE OR REPLACE FUNCTION pulse_tap.fault_of_present(wanted jsonb) RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lines text[] := ARRAY(SELECT pulse_tap.told(j) FROM pulse.job AS j
                         WHERE j.state <> 'running' AND pulse_tap.matches(j, wanted)
                         ORDER BY j.id);
BEGIN
  RETURN CASE WHEN cardinality(lines) > 0
           THEN pulse_tap.listed('these jobs should not wait:', lines) END;
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_present(jsonb) IS
  'For the kit itself: returns the waiting jobs like this; NULL: there are none.';

CREATE OR REPLACE FUNCTION pulse_tap.no_job_enqueued(
    identifier text = NULL, payload jsonb = NULL, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(
    pulse_tap.fault_of_present(pulse_tap.wanted(identifier, payload, NULL)),
    coalesce(description, format('no job%s waits', ' of task ' || identifier)));
END $$;
COMMENT ON FUNCTION pulse_tap.no_job_enqueued(text, jsonb, text) IS
  'Passes if no job of this task (NULL: of any) waits whose payload contains this payload (NULL: '
  'any). Fails with the jobs that do wait. Raises PU006 outside a transaction block.';

-- A keyed add that changes a waiting job raises the job's revision.
CREATE OR REPLACE FUNCTION pulse_tap.waiting() RETURNS jsonb
  LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(jsonb_object_agg(j.id, j.revision), '{}') FROM pulse.job AS j
   WHERE j.state <> 'running';
$$;
COMMENT ON FUNCTION pulse_tap.waiting() IS
  'For the kit itself: returns the ids of all waiting jobs with their revisions.';

-- Each expected job takes the first job that matches. Expected jobs that few jobs match choose
-- first.
CREATE OR REPLACE FUNCTION pulse_tap.fault_of_enqueued(before jsonb, expected jsonb)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  added pulse.job[] := ARRAY(
    SELECT j FROM pulse.job AS j
     WHERE j.state <> 'running' AND before ->> j.id::text IS DISTINCT FROM j.revision::text
     ORDER BY j.id);
  found_ids bigint[] := '{}';
  missing text[] := '{}';
  wanted jsonb;
  match bigint;
BEGIN
  FOR wanted IN
    SELECT e FROM jsonb_array_elements(expected) AS e
     ORDER BY (SELECT count(*) FROM unnest(added) AS a WHERE pulse_tap.matches(a, e))
  LOOP
    SELECT min(a.id) INTO match FROM unnest(added) AS a
     WHERE a.id <> ALL (found_ids) AND pulse_tap.matches(a, wanted);
    IF match IS NULL THEN
      missing := missing || wanted::text;
    ELSE
      found_ids := found_ids || match;
    END IF;
  END LOOP;
  RETURN nullif(concat_ws(E'\n',
    CASE WHEN cardinality(missing) > 0
      THEN pulse_tap.listed('the statement should have enqueued:', missing) END,
    CASE WHEN cardinality(added) > cardinality(found_ids)
      THEN pulse_tap.listed('the statement enqueued besides:', ARRAY(
        SELECT pulse_tap.told(a) FROM unnest(added) AS a WHERE a.id <> ALL (found_ids)
         ORDER BY a.id)) END,
    CASE WHEN cardinality(missing) > 0 AND cardinality(added) = 0
      THEN 'it enqueued nothing' END), '');
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_enqueued(jsonb, jsonb) IS
  'For the kit itself: returns which expected jobs are missing and which others came since '
  'before; NULL: no job.';

-- The statement runs with the search_path and the rights of the test.
CREATE OR REPLACE FUNCTION pulse_tap.enqueues(sql text, expected jsonb, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
  before jsonb;
  fault text;
BEGIN
  PERFORM pulse_tap.require_test('enqueues()');
  PERFORM pulse_tap.check_expected(expected);
  before := pulse_tap.waiting();
  BEGIN
    EXECUTE sql;
    fault := pulse_tap.fault_of_enqueued(before, expected);
  EXCEPTION WHEN OTHERS THEN
    fault := pg_catalog.format('the statement raised %s: %s', SQLSTATE, SQLERRM);
  END;
  RETURN pulse_tap.report(fault, COALESCE(description, pg_catalog.format(
    'the statement enqueues %s jobs', pg_catalog.jsonb_array_length(expected))));
END $$;
COMMENT ON FUNCTION pulse_tap.enqueues(text, jsonb, text) IS
  'Runs a statement, and passes if it enqueues exactly these jobs, in whatever order: an array of '
  'objects with columns of pulse.job, as [{"identifier": "mail", "payload": {"to": 1}}]. A payload '
  'need only contain the expected payload. A waiting job that a job_key replaces counts as '
  'enqueued. Fails with the missing jobs and the jobs that should not be there, or with the error '
  'of the statement. Raises PU004 for another array, PU006 outside a transaction block.';

CREATE OR REPLACE FUNCTION pulse_tap.check_expected(expected jsonb) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF jsonb_typeof(expected) IS DISTINCT FROM 'array' THEN
    RAISE EXCEPTION 'expected jobs are an array, not %', coalesce(jsonb_typeof(expected), 'NULL')
      USING ERRCODE = 'PU004',
      HINT = 'As in [{"identifier": "mail", "payload": {"to": 1}}]; [] expects none.';
  END IF;
  PERFORM pulse_tap.check_attributes(e) FROM jsonb_array_elements(expected) AS e;
END $$;
COMMENT ON FUNCTION pulse_tap.check_expected(jsonb) IS
  'For the kit itself: raises PU004 for a document that is no array of attributes.';

CREATE OR REPLACE FUNCTION pulse_tap.fault_of_depth(queue_name text, depth bigint) RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lines text[] := ARRAY(SELECT pulse_tap.told(j) FROM pulse.job AS j
                         WHERE j.state <> 'running'
                           AND j.queue_name IS NOT DISTINCT FROM fault_of_depth.queue_name
                         ORDER BY j.id);
  elsewhere text := (SELECT string_agg(format('%s (%s)', coalesce(q.queue_name, 'no queue'),
                                              q.jobs), ', ' ORDER BY q.queue_name)
                       FROM (SELECT j.queue_name, count(*) AS jobs FROM pulse.job AS j
                              WHERE j.state <> 'running'
                              GROUP BY j.queue_name LIMIT 20) AS q);
BEGIN
  IF cardinality(lines) IS NOT DISTINCT FROM depth THEN
    RETURN NULL;
  END IF;
  RETURN format(E'have: %s\nwant: %s\n', cardinality(lines), coalesce(depth::text, 'NULL'))
      || CASE WHEN cardinality(lines) > 0 THEN pulse_tap.listed('waiting:', lines)
              WHEN elsewhere IS NOT NULL THEN 'jobs wait elsewhere: ' || elsewhere
              ELSE 'no job waits' END;
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_depth(text, bigint) IS
  'For the kit itself: returns the waiting jobs of a queue that should have another depth; NULL: '
  'the queue has this depth.';

CREATE OR REPLACE FUNCTION pulse_tap.queue_depth_is(
    queue_name text, depth bigint, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(pulse_tap.fault_of_depth(queue_name, depth), coalesce(
    description, format('%s jobs wait in %s', depth, coalesce('queue ' || queue_name,
                                                               'no queue'))));
END $$;
COMMENT ON FUNCTION pulse_tap.queue_depth_is(text, bigint, text) IS
  'Passes if so many jobs of exactly this queue wait, due or later; NULL: jobs without a queue. '
  'Fails with the jobs that wait. Raises PU006 outside a transaction block.';

CREATE OR REPLACE FUNCTION pulse_tap.fault_of_once(identifier text, unique_key text) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lines text[] := ARRAY(SELECT format('%L, job %s, until %s', k.unique_key, k.job_id,
                                      k.unique_until)
                          FROM pulse.remembered_key AS k
                         WHERE k.identifier = fault_of_once.identifier
                         ORDER BY k.job_id DESC LIMIT 20);
BEGIN
  IF EXISTS (SELECT FROM pulse.remembered_key AS k
              WHERE (k.identifier, k.unique_key)
                    = (fault_of_once.identifier, fault_of_once.unique_key)
                AND k.unique_until > pulse.now()) THEN
    RETURN NULL;
  END IF;
  RETURN CASE WHEN cardinality(lines) > 0
           THEN pulse_tap.listed('no period of this key lasts, but of the task are remembered:',
                                 lines)
           ELSE 'no key of this task is remembered' END;
END $$;
COMMENT ON FUNCTION pulse_tap.fault_of_once(text, text) IS
  'For the kit itself: returns the remembered keys of a task; NULL: the period of this key '
  'lasts.';

CREATE OR REPLACE FUNCTION pulse_tap.job_added_once(
    identifier text, unique_key text, description text = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pulse_tap.report(
    pulse_tap.fault_of_once(identifier, unique_key),
    coalesce(description, format('a job of task %s was added once as %L', identifier,
                                 unique_key)));
END $$;
COMMENT ON FUNCTION pulse_tap.job_added_once(text, text, text) IS
  'Passes if add_job_once has added a job of this task under this key, and the period is not '
  'over; the job may have ended. Fails with the remembered keys of the task. Raises PU006 outside '
  'a transaction block.';
