-- The jobs that assertions search for, and how diagnostics show jobs.

CREATE OR REPLACE FUNCTION pulse_tap.shortened(document text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT CASE WHEN length(document) > 200 THEN left(document, 197) || '...' ELSE document END;
$$;
COMMENT ON FUNCTION pulse_tap.shortened(text) IS
  'For the kit itself: returns at most 200 characters of a document.';

CREATE OR REPLACE FUNCTION pulse_tap.told(job pulse.job) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  moment CONSTANT timestamptz := pulse.now();
BEGIN
  RETURN format('job %s: %s, %s, payload %s', job.id, job.identifier,
                CASE WHEN job.waits_on IS NOT NULL THEN format('waits for job %s', job.waits_on)
                     WHEN job.state = 'running' THEN 'runs'
                     WHEN job.run_at <= moment THEN 'due'
                     ELSE format('due in %s', job.run_at - moment) END,
                pulse_tap.shortened(job.payload::text))
      || CASE WHEN job.queue_name IS NULL THEN ''
              ELSE format(', queue %s (%s)', job.queue_name, job.state) END
      || CASE job.priority WHEN 0 THEN '' ELSE format(', priority %s', job.priority) END
      || CASE WHEN job.job_key IS NULL THEN '' ELSE format(', job_key %s', job.job_key) END
      || CASE WHEN job.flags IS NULL THEN '' ELSE format(', flags %s', job.flags) END
      || format(', attempts %s of %s', job.attempts, job.max_attempts)
      || CASE WHEN job.last_error IS NULL THEN ''
              ELSE format(', last error %s', pulse_tap.shortened(job.last_error)) END;
END $$;
COMMENT ON FUNCTION pulse_tap.told(pulse.job) IS
  'For the kit itself: returns a live job in one line.';

CREATE OR REPLACE FUNCTION pulse_tap.listed(title text, lines text[]) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT format(E'%s\n    %s', title,
                replace(array_to_string(lines[1:10], E'\n'), E'\n', E'\n    '))
      || CASE WHEN cardinality(lines) > 10
           THEN format(E'\n    and %s more', cardinality(lines) - 10) ELSE '' END;
$$;
COMMENT ON FUNCTION pulse_tap.listed(text, text[]) IS
  'For the kit itself: returns a title and the first ten lines below it.';

-- Columns that hold a time are compared as times, whatever zone the test wrote them in.
CREATE OR REPLACE FUNCTION pulse_tap.check_attributes(attributes jsonb) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  unknown text;
BEGIN
  IF jsonb_typeof(attributes) <> 'object' THEN
    RAISE EXCEPTION 'the attributes of a job are an object, not %', jsonb_typeof(attributes) USING
      ERRCODE = 'PU004', HINT = 'As in {"queue_name": "mail", "priority": 3}.';
  END IF;
  SELECT min(k) INTO unknown FROM jsonb_object_keys(attributes) AS k
   WHERE NOT to_jsonb(NULL::pulse.job) ? k;
  IF unknown IS NOT NULL THEN
    RAISE EXCEPTION 'a job has no attribute %', quote_literal(unknown) USING
      ERRCODE = 'PU004', HINT = 'The attributes are the columns of pulse.job.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_tap.check_attributes(jsonb) IS
  'For the kit itself: raises PU004 for a document that is no object of columns of pulse.job.';

CREATE OR REPLACE FUNCTION pulse_tap.matches(job pulse.job, attributes jsonb) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(bool_and(
    CASE WHEN a.value = 'null' THEN r.row -> a.key = 'null'
         WHEN a.key IN ('run_at', 'start_by', 'scheduled_for', 'created_at')
           THEN (r.row ->> a.key)::timestamptz = (a.value #>> '{}')::timestamptz
         WHEN a.key = 'payload' THEN r.row -> 'payload' @> a.value
         ELSE r.row -> a.key = a.value END), true)
    FROM (SELECT to_jsonb(job)) AS r (row), jsonb_each(attributes) AS a;
$$;
COMMENT ON FUNCTION pulse_tap.matches(pulse.job, jsonb) IS
  'For the kit itself: returns whether a job has these attributes; the payload of the job '
  'contains the payload of the attributes.';

CREATE OR REPLACE FUNCTION pulse_tap.wanted(identifier text, payload jsonb, attributes jsonb)
  RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_tap.check_attributes(coalesce(attributes, '{}'));
  RETURN jsonb_strip_nulls(jsonb_build_object('identifier', identifier))
      || CASE WHEN payload IS NULL THEN '{}' ELSE jsonb_build_object('payload', payload) END
      || coalesce(attributes, '{}');
END $$;
COMMENT ON FUNCTION pulse_tap.wanted(text, jsonb, jsonb) IS
  'For the kit itself: returns task, payload and further attributes as one object; NULL asks for '
  'nothing.';

CREATE OR REPLACE FUNCTION pulse_tap.jobs_of(identifier text) RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lines text[] := ARRAY(SELECT pulse_tap.told(j) FROM pulse.job AS j
                         WHERE j.identifier = jobs_of.identifier ORDER BY j.id);
  tasks text := (SELECT string_agg(format('%s (%s)', t.identifier, t.jobs), ', '
                                   ORDER BY t.identifier)
                   FROM (SELECT j.identifier, count(*) AS jobs FROM pulse.job AS j
                          GROUP BY j.identifier LIMIT 20) AS t);
BEGIN
  RETURN CASE WHEN cardinality(lines) > 0
                THEN pulse_tap.listed('jobs of this task:', lines)
              WHEN tasks IS NOT NULL THEN format('jobs of other tasks only: %s', tasks)
              ELSE 'there is no job' END;
END $$;
COMMENT ON FUNCTION pulse_tap.jobs_of(text) IS
  'For the kit itself: returns the live jobs of a task; without any, how many other tasks have.';
