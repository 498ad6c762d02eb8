-- What a claim reads that gives the next turn of a fair level: among ten queues, among 20,000, and
-- among as many in three levels within.
SET client_min_messages = warning;
CREATE PROCEDURE cost.note_turns(
    queues int, figure text, level text = 'turns', name text = 'turns/%s')
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
  least_buffers int;
  cost record;
BEGIN
  PERFORM pulse.set_queue(level, fair => true, total => 1);
  PERFORM count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('no_op', NULL, format(name, q, q % 3), NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
      FROM generate_series(1, queues) AS q, generate_series(1, 2)));
  COMMIT;
  -- The adds have marked all queues.
  WHILE pulse_internal.promote_marked(256) LOOP
    COMMIT;
  END LOOP;
  COMMIT;
  FOR i IN 1 .. 8 LOOP
    cost := cost.explained(format('SELECT * FROM pulse.claim(%s)', worker));
    COMMIT;
    ASSERT cost.rows = 1, format('claimed %s', cost.rows);
    -- The first job is open already.
    least_buffers := CASE WHEN i > 1 THEN least(least_buffers, cost.buffers) END;
    PERFORM pulse.complete(j.id, j.token) FROM pulse.job AS j WHERE j.state = 'running';
    COMMIT;
  END LOOP;
  PERFORM cost.note(figure, least_buffers);
  DELETE FROM pulse.job;
END $$;

CALL cost.note_turns(10, 'turn_buffers_10_queues');
VACUUM pulse.job;
CALL cost.note_turns(20000, 'turn_buffers_20000_queues');
VACUUM pulse.job;
CALL cost.note_turns(20000, 'turn_buffers_3_levels', 'rings', 'rings/%2$s/%1$s');
