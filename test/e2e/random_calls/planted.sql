-- Jobs and a schedule of a stranger, with a mark in each field that somebody must not see.
CREATE TABLE planted (name text PRIMARY KEY, id bigint NOT NULL);

-- Adds as the stranger, whose job it is.
CREATE FUNCTION plant_job(name text, key text = NULL) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  job_id bigint;
BEGIN
  PERFORM set_config('role', 'stranger', true);
  job_id := (pulse.add_job('planted', '"mark of payload"', job_key => key, flags => '{f}')).id;
  PERFORM set_config('role', 'none', true);
  INSERT INTO planted VALUES (plant_job.name, job_id)
    ON CONFLICT ON CONSTRAINT planted_pkey DO UPDATE SET id = excluded.id;
  RETURN job_id;
END $$;

-- Makes what calls of workers and operators have taken away. Returns the marks.
CREATE FUNCTION plant() RETURNS TABLE (mark text, value text)
  LANGUAGE plpgsql AS $$
DECLARE
  wanted record;
  job_id bigint;
  claimed record;
  worker bigint;
BEGIN
  -- Settings that an operator may have made would keep the jobs from the claims below.
  DELETE FROM pulse.task WHERE identifier = 'planted';
  FOR wanted IN
    SELECT w.name, w.state
      FROM (VALUES ('waiting', 'ready'), ('running', 'running'), ('failed', 'failed'),
                   ('completed', 'completed'), ('cancelled', 'cancelled')) AS w (name, state)
     WHERE NOT EXISTS (
             SELECT FROM planted AS p
               LEFT JOIN pulse.job AS j ON j.id = p.id
               LEFT JOIN pulse.finished_job AS f ON f.id = p.id
              WHERE p.name = w.name AND w.state IN (j.state::text, f.state::text)
                AND (w.name <> 'waiting' OR j.job_key = 'stranger key')
                AND (w.name <> 'running' OR j.message = 'mark of message'))
  LOOP
    DELETE FROM pulse.job AS j USING planted AS p
     WHERE p.name = wanted.name AND j.id = p.id AND j.state <> 'running';
    IF wanted.name = 'waiting' THEN
      DELETE FROM pulse.job AS j WHERE j.job_key = 'stranger key' AND j.state <> 'running';
    END IF;
    job_id := plant_job(wanted.name, CASE wanted.name WHEN 'waiting' THEN 'stranger key' END);
    CONTINUE WHEN wanted.name = 'waiting';
    IF wanted.name = 'cancelled' THEN
      PERFORM pulse.cancel_job(job_id, 'mark of reason');
      CONTINUE;
    END IF;
    worker := (pulse.register_worker('stranger', '{planted}')).id;
    SELECT * INTO claimed FROM pulse.claim_job(worker, job_id) AS c;
    PERFORM pulse.progress(job_id, (claimed.job).token, 'mark of message', 0.5,
                           '"mark of checkpoint"', 'mark of stage');
    CASE wanted.name
      WHEN 'failed' THEN
        PERFORM pulse.fail(job_id, (claimed.job).token, 'mark of error', false);
      WHEN 'completed' THEN
        PERFORM pulse.complete(job_id, (claimed.job).token, '"mark of result"');
      ELSE NULL;
    END CASE;
  END LOOP;
  PERFORM pulse.schedule('stranger', 'planted', '@yearly', payload => '"mark of schedule"')
    WHERE NOT EXISTS (SELECT FROM pulse.schedule AS s WHERE s.name = 'stranger');
  RETURN QUERY
  SELECT w.mark, 'mark of ' || w.mark
    FROM unnest('{payload,message,checkpoint,stage,error,result,reason,schedule}'::text[])
           AS w (mark)
  UNION ALL
  SELECT 'token', j.token::text FROM planted AS p JOIN pulse.job AS j ON j.id = p.id
   WHERE p.name = 'running';
END $$;

-- What the tables say of the stranger's jobs.
CREATE FUNCTION strangers() RETURNS text
  LANGUAGE sql AS $$
  SELECT md5(concat_ws('|',
    (SELECT string_agg(j::text, ',' ORDER BY j.id) FROM pulse.job AS j
      WHERE j.id IN (SELECT p.id FROM planted AS p)),
    (SELECT string_agg(f::text, ',' ORDER BY f.id) FROM pulse.finished_job AS f
      WHERE f.id IN (SELECT p.id FROM planted AS p)),
    (SELECT string_agg(d::text, ',' ORDER BY d.child_id) FROM pulse.dependency AS d
      WHERE d.child_id IN (SELECT p.id FROM planted AS p))))
$$;
