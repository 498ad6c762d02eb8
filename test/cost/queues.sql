-- What a sweep costs beside many queues of which none can move.
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('no_op', NULL, 'q' || q, now() + interval '1 day', NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 20000) AS q)) \g /dev/null
VACUUM ANALYZE pulse.job;
-- As after a start, no queue has been looked at; the adds have marked them all.
SELECT cost.note('first_claim_20000_queues_buffers',
                 (cost.explained(format('SELECT * FROM pulse.claim(%s)', cost.worker()))).buffers);
CREATE PROCEDURE cost.note_sweeps()
  LANGUAGE plpgsql AS $$
DECLARE
  least_sweep int;
BEGIN
  PERFORM pulse_internal.promote_marked(256);
  PERFORM cost.note('promotion_locks', (SELECT count(*) FROM pg_locks AS l
                                         WHERE l.locktype = 'advisory'
                                           AND l.pid = pg_backend_pid()));
  WHILE pulse_internal.promote_marked(256) LOOP
    COMMIT;
  END LOOP;
  FOR i IN 1 .. 5 LOOP
    least_sweep := least(least_sweep, (cost.explained('SELECT * FROM pulse.sweep()')).buffers);
    COMMIT;
  END LOOP;
  PERFORM cost.note('sweep_20000_queues_buffers', least_sweep);
END $$;
CALL cost.note_sweeps();

-- What a sweep reads of the settings of 20,000 queues.
INSERT INTO pulse.queue (queue_name) SELECT 'stored ' || n FROM generate_series(1, 20000) AS n;
VACUUM ANALYZE pulse.queue;
SELECT cost.note('fair_levels_buffers',
                 (cost.explained('SELECT * FROM pulse_internal.fair_levels()')).buffers);
DELETE FROM pulse.queue AS q WHERE q.queue_name LIKE 'stored %';
VACUUM ANALYZE pulse.queue;

-- What a claim reads that promotes the next job of a queue: of few jobs, and behind 8,000 that ran
-- while another transaction keeps their dead rows.
CREATE PROCEDURE cost.note_line(figure text)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
  least_buffers int;
  cost record;
BEGIN
  PERFORM pulse.set_queue('line', 1);
  PERFORM count(*) FROM pulse.add_jobs(cost.jobs(10, queue_name => 'line'));
  COMMIT;
  FOR i IN 1 .. 5 LOOP
    cost := cost.explained(format('SELECT * FROM pulse.claim(%s)', worker));
    COMMIT;
    ASSERT cost.rows = 1, format('claimed %s', cost.rows);
    least_buffers := least(least_buffers, cost.buffers);
    PERFORM pulse.complete(j.id, j.token) FROM pulse.job AS j WHERE j.state = 'running';
    COMMIT;
  END LOOP;
  PERFORM cost.note(figure, least_buffers);
  DELETE FROM pulse.job;
END $$;

CREATE PROCEDURE cost.run_line(count int)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
  ids bigint[];
  tokens bigint[];
BEGIN
  PERFORM pulse.set_queue('line', 100);
  PERFORM count(*) FROM pulse.add_jobs(cost.jobs(count, queue_name => 'line'));
  COMMIT;
  LOOP
    SELECT array_agg(c.id), array_agg(c.token) INTO ids, tokens FROM pulse.claim(worker, 100) AS c;
    EXIT WHEN ids IS NULL;
    PERFORM count(*) FROM pulse.complete_many(ids, tokens);
    COMMIT;
  END LOOP;
END $$;

TRUNCATE pulse.job;
CALL cost.note_line('line_claim_buffers');
BEGIN;
SELECT pg_current_xact_id();
PREPARE TRANSACTION 'cost_keeps_dead_rows';
CALL cost.run_line(8000);
CALL cost.note_line('line_claim_buffers_dead');
ROLLBACK PREPARED 'cost_keeps_dead_rows';
