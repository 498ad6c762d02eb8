-- Jobs that wait for others: what a claim reads that lets the last of many children go while
-- another transaction keeps the dead rows of all before them, and what a job after many costs.
CREATE PROCEDURE cost.fan_out(children int)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
  step record;
  last_buffers int;
BEGIN
  PERFORM pulse.add_job_after(ARRAY[p.id], 'no_op')
     FROM pulse.add_job('no_op') AS p, generate_series(1, children);
  COMMIT;
  PERFORM pulse.complete(j.id, j.token) FROM pulse.claim(worker) AS j;
  COMMIT;
  WHILE EXISTS (SELECT FROM pulse.job AS j WHERE j.waits_on IS NOT NULL) LOOP
    step := cost.explained('SELECT pulse_internal.promote_marked(100)');
    COMMIT;
    last_buffers := step.buffers;
    PERFORM pulse.complete_many(array_agg(j.id), array_agg(j.token))
       FROM pulse.claim(worker, 10000) AS j;
    COMMIT;
  END LOOP;
  PERFORM cost.note('settle_1000_buffers_dead', last_buffers);
END $$;

BEGIN;
SELECT pg_current_xact_id();
PREPARE TRANSACTION 'cost_keeps_dead_rows';
CALL cost.fan_out(10000);
ROLLBACK PREPARED 'cost_keeps_dead_rows';
TRUNCATE pulse.job, pulse.dependency;
VACUUM ANALYZE pulse.job, pulse.dependency;

-- The statistics of empty tables must not lead the look at the parents astray.
CREATE PROCEDURE cost.fan_in(parents int)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
  mark pg_lsn;
  ids bigint[];
BEGIN
  PERFORM count(*) FROM pulse.add_jobs(cost.jobs(parents));
  COMMIT;
  ids := ARRAY(SELECT j.id FROM pulse.job AS j);
  mark := cost.place();
  PERFORM pulse.add_job_after(ids, 'no_op');
  COMMIT;
  CALL cost.flush();
  PERFORM cost.note('after_10000_wal', w.bytes) FROM cost.written(mark, cost.place()) AS w;
  PERFORM pulse.complete_many(array_agg(j.id), array_agg(j.token))
     FROM pulse.claim(worker, parents) AS j;
  COMMIT;
  PERFORM cost.note('settle_after_10000_buffers',
                    (cost.explained('SELECT pulse_internal.promote_marked(100)')).buffers);
  ASSERT (SELECT j.state FROM pulse.job AS j) = 'ready', 'the last job has not started';
END $$;
CALL cost.fan_in(10000);
TRUNCATE pulse.job, pulse.dependency;

CREATE PROCEDURE cost.pairs(parents int)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
  first_xid xid8;
BEGIN
  PERFORM pulse.add_job_after(ARRAY[p.id], 'no_op') FROM pulse.add_jobs(cost.jobs(parents)) AS p;
  COMMIT;
  PERFORM pulse.complete_many(array_agg(j.id), array_agg(j.token))
     FROM pulse.claim(worker, parents) AS j;
  COMMIT;
  first_xid := pg_current_xact_id();
  PERFORM pulse_internal.promote_marked(100);
  COMMIT;
  PERFORM cost.note('settle_parents_xids',
                    pg_current_xact_id()::text::bigint - first_xid::text::bigint);
END $$;
CALL cost.pairs(100);
TRUNCATE pulse.job, pulse.dependency;
VACUUM pulse.job, pulse.dependency;

-- A chain, each of whose jobs is stored with all others.
CREATE PROCEDURE cost.flow(jobs int)
  LANGUAGE plpgsql AS $$
DECLARE
  specs text := quote_literal((
    SELECT json_agg(json_build_object('key', n::text, 'identifier', 'no_op', 'after',
             CASE WHEN n > 1 THEN json_build_array((n - 1)::text) END))
      FROM generate_series(1, jobs) AS n));
  mark pg_lsn;
BEGIN
  PERFORM count(*) FROM pulse.add_flow('[{"identifier": "no_op"}]');
  COMMIT;
  mark := cost.place();
  PERFORM cost.note('flow_2000_buffers',
    (cost.explained(format('SELECT count(*) FROM pulse.add_flow(%s)', specs))).buffers);
  COMMIT;
  CALL cost.flush();
  PERFORM cost.note('flow_2000_wal', w.bytes) FROM cost.written(mark, cost.place()) AS w;
END $$;
CALL cost.flow(2000);
