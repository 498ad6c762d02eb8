-- What a sweep costs beside many queues of which none can move.
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('no_op', NULL, 'q' || q, now() + interval '1 day', NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 20000) AS q)) \g /dev/null
VACUUM ANALYZE pulse.job;
-- The adds have marked all queues.
CREATE PROCEDURE cost.note_sweeps()
  LANGUAGE plpgsql AS $$
DECLARE
  least_sweep int;
BEGIN
  WHILE pulse._promote_marked(256) LOOP
    COMMIT;
  END LOOP;
  FOR i IN 1 .. 5 LOOP
    least_sweep := least(least_sweep, (cost.explained('SELECT * FROM pulse.sweep()')).buffers);
    COMMIT;
  END LOOP;
  PERFORM cost.note('sweep_20000_queues_buffers', least_sweep);
END $$;
CALL cost.note_sweeps();
