-- The task `act` as a function of the database. The owner is a superuser, who may write the file
-- that the setting act.file names.
CREATE FUNCTION act_tell(job pulse.claimed_job, value json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- CSV with control characters for quotes is the text as it is.
  EXECUTE format('COPY (SELECT %L) TO PROGRAM %L WITH (FORMAT csv, QUOTE %L, DELIMITER %L)',
    format('{"job": "%s", "attempt": %s, "checkpoint": %s, "wrote": %s}', job.id, job.attempts,
      coalesce(job.checkpoint::text, 'null'), value),
    'cat >>' || current_setting('act.file'), E'\x01', E'\x02');
END $$;

CREATE FUNCTION act_wait(seconds float8, gate text = NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  file text := current_setting('act.file') || '.' || gate;
  deadline timestamptz := clock_timestamp() + seconds * interval '1 s';
BEGIN
  WHILE clock_timestamp() < deadline
    AND (gate IS NULL OR (pg_stat_file(file, missing_ok => true)).size IS NULL)
  LOOP
    PERFORM pg_sleep(least(0.02, seconds));
  END LOOP;
END $$;

-- Whether this is the first run of the job. The file stays when the transaction rolls back.
CREATE FUNCTION act_once(job pulse.claimed_job) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  file text := current_setting('act.file') || '.ran.' || job.id;
BEGIN
  IF (pg_stat_file(file, missing_ok => true)).size IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'cat >' || file);
  RETURN true;
END $$;

CREATE FUNCTION act_steps(job pulse.claimed_job, steps json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  step record;
  result json;
  word text;
BEGIN
  FOR step IN
    SELECT e.key, e.value FROM json_array_elements(steps) WITH ORDINALITY AS s(members, n),
      json_each(s.members) AS e ORDER BY s.n
  LOOP
    word := CASE WHEN step.key IN ('fail', 'until', 'garble')
      THEN replace(step.value::text, '\u0000', '')::json #>> '{}' END;
    CASE step.key
      WHEN 'write' THEN PERFORM act_tell(job, step.value);
      WHEN 'wait', 'spin' THEN PERFORM act_wait((step.value #>> '{}')::float8);
      WHEN 'until' THEN PERFORM act_wait(120, word);
      WHEN 'once' THEN IF act_once(job) THEN PERFORM act_steps(job, step.value); END IF;
      WHEN 'progress' THEN
        PERFORM pulse.progress(job.id, job.token, fraction => (step.value #>> '{}')::float8);
      WHEN 'result' THEN result := step.value;
      WHEN 'add' THEN PERFORM pulse.add_job('act', step.value);
      WHEN 'fail' THEN RAISE EXCEPTION '%', word;
      WHEN 'garble' THEN PERFORM convert_from(decode(word, 'hex'), 'UTF8');
      WHEN 'exit', 'signal' THEN PERFORM pg_terminate_backend(pg_backend_pid());
    END CASE;
  END LOOP;
  RETURN result;
END $$;

CREATE FUNCTION act(job pulse.claimed_job) RETURNS json LANGUAGE sql SECURITY DEFINER
AS 'SELECT act_steps(job, job.payload)';
GRANT EXECUTE ON FUNCTION act TO PUBLIC;
