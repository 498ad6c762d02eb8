-- What a claim of a worker that serves every task reads beside 20,000 names.

-- The most that a claim reads, and the claims until one finds a job; none in a round without jobs.
CREATE PROCEDURE cost.claims_among_names(
    claims int, max_jobs int, INOUT buffers int = 0, INOUT found_by int = NULL)
  LANGUAGE plpgsql AS $$
DECLARE
  claim text := format('SELECT * FROM pulse.claim(%s, %s)', cost.worker(NULL), max_jobs);
  cost record;
BEGIN
  PERFORM cost.explained(claim);  -- reads the catalogue
  COMMIT;
  FOR i IN 1 .. claims LOOP
    cost := cost.explained(claim);
    COMMIT;
    buffers := greatest(buffers, cost.buffers);
    IF cost.rows > 0 AND found_by IS NULL THEN
      found_by := i;
    END IF;
  END LOOP;
END $$;

CREATE PROCEDURE cost.add_names(jobs_per_name int, run_at timestamptz = NULL)
  LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE pulse.job, pulse.claim_batch;
  PERFORM count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('name' || 10000 + i % 20000, NULL, NULL, run_at, NULL, NULL, NULL, NULL)::pulse.job_spec
      FROM generate_series(1, 20000 * jobs_per_name) AS i));
  COMMIT;
END $$;

CREATE PROCEDURE cost.note_names()
  LANGUAGE plpgsql AS $$
DECLARE
  buffers int;
  found_by int;
BEGIN
  CALL cost.add_names(1, now() + interval '1 day');
  CALL cost.claims_among_names(22, 1, buffers, found_by);
  ASSERT found_by IS NULL;
  PERFORM cost.note('claim_0_buffers_20000_names', buffers);
  PERFORM count(*) FROM pulse.add_job('name29999');
  buffers := 0;
  CALL cost.claims_among_names(22, 1, buffers, found_by);
  PERFORM cost.note('claims_to_last_of_20000_names', found_by);
  CALL cost.add_names(40, now() + interval '1 day');
  buffers := 0;
  CALL cost.claims_among_names(3, 1, buffers, found_by);
  PERFORM cost.note('claim_0_buffers_40_of_each_name', buffers);
  CALL cost.add_names(2);
  buffers := 0;
  CALL cost.claims_among_names(3, 1, buffers, found_by);
  PERFORM cost.note('claim_1_buffers_20000_due_names', buffers);
END $$;
CALL cost.note_names();
