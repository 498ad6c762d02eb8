-- What a claim reads that finds nothing beside 40,000 dead rows of many priorities or tasks, which
-- another transaction keeps.
CREATE PROCEDURE cost.complete_all_of(worker bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  ids bigint[];
  tokens bigint[];
BEGIN
  LOOP
    SELECT array_agg(c.id), array_agg(c.token) INTO ids, tokens
      FROM pulse.claim(worker, 1000) AS c;
    EXIT WHEN ids IS NULL;
    PERFORM count(*) FROM pulse.complete_many(ids, tokens);
    COMMIT;
  END LOOP;
END $$;

-- Where a mark has expired, a claim checks below it: the least of several claims counts. A minute
-- later all marks have expired, and one claim checks below each.
CREATE PROCEDURE cost.claim_beside_dead(place text, tasks int, priorities int)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker(ARRAY(SELECT 'task' || i FROM generate_series(1, tasks) AS i));
  claim text := format('SELECT * FROM pulse.claim(%s, 100)', worker);
  least_buffers int;
BEGIN
  PERFORM count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('task' || 1 + i % tasks, NULL, NULL, NULL, NULL, NULL, i % priorities, NULL)
             ::pulse.job_spec
      FROM generate_series(1, 40000) AS i));
  COMMIT;
  CALL cost.complete_all_of(worker);
  FOR i IN 1 .. 5 LOOP
    least_buffers := least(least_buffers, (cost.explained(claim)).buffers);
    COMMIT;
  END LOOP;
  PERFORM cost.note('claim_0_buffers_' || place, least_buffers);
  PERFORM set_config('pulse.clock_offset', '61s', false);
  PERFORM cost.note('look_buffers_' || place, (cost.explained(claim)).buffers);
  COMMIT;
  PERFORM set_config('pulse.clock_offset', '0s', false);
END $$;

BEGIN;
SELECT pg_current_xact_id();
PREPARE TRANSACTION 'cost_keeps_dead_rows';
CALL cost.claim_beside_dead('20_priorities', 1, 20);
TRUNCATE pulse.job, pulse.claim_batch;
CALL cost.claim_beside_dead('300_tasks', 300, 1);
ROLLBACK PREPARED 'cost_keeps_dead_rows';
