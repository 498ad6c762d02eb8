-- What calls read when autovacuum has analyzed the tables while no job was there, and thousands of
-- jobs came after that: the planner has only the pages of the tables to tell.
SELECT count(*) FROM pulse.claim(cost.worker());
SELECT cost.worker() AS worker \gset
-- Jobs of each kind have been, and are gone; the tables keep their pages.
SELECT count(f) FROM pulse.add_flow('[{"key": "a", "identifier": "no_op"},
  {"key": "b", "identifier": "no_op", "after": ["a"]}]') AS f \g /dev/null
SELECT count(*) FROM pulse.add_jobs(cost.jobs(100, queue_name => 'queue %s'));
SELECT count(pulse.complete(c.id, c.token)) FROM pulse.claim(:worker, 200) AS c;
SELECT count(pulse.complete(c.id, c.token)) FROM pulse.claim(:worker, 200) AS c;
DELETE FROM pulse.finished_job;
ANALYZE pulse.job, pulse.finished_job, pulse.attempt, pulse.dependency, pulse.flow, pulse.flow_job,
  pulse.queue, pulse.claim_batch, pulse.worker, pulse.task;
SELECT cost.note('emptied_rows_known', reltuples::numeric) FROM pg_class
 WHERE oid = 'pulse.job'::regclass;

SELECT count(*) FROM generate_series(1, 5) AS i, LATERAL pulse.add_jobs(cost.jobs(1000, 'other'));
SELECT count(*) FROM generate_series(1, 2) AS i,
  LATERAL pulse.add_jobs(cost.jobs(1000, 'other', 'queue %s'));
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'old', n % 3, now() - interval '1 h' + interval '1 ms' * n
  FROM generate_series(1, 5000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'other', 'long', 'parked', now() - interval '1 h' FROM generate_series(1, 2000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
VALUES ('rare', 'rare', 'parked', now() - interval '1 min');
SELECT f.flow_id AS flow FROM pulse.add_flow((
  SELECT json_agg(json_build_object('key', 'key ' || n, 'identifier', 'step', 'run_at',
           now() + interval '1 h', 'after', CASE WHEN n % 2 = 0 THEN ARRAY['key ' || n - 1] END))
    FROM generate_series(1, 2000) AS n)) AS f LIMIT 1 \gset
SELECT id AS last FROM pulse.job WHERE identifier = 'old'
 ORDER BY priority DESC, run_at DESC, id DESC LIMIT 1 \gset

CREATE PROCEDURE cost.note_emptied(name text, statement text)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cost.note('emptied_' || name || '_buffers', (cost.explained(statement)).buffers);
END $$;
CALL cost.note_emptied('flow', 'SELECT * FROM pulse.list_flows(NULL, 1)');
CALL cost.note_emptied('flow_graph', format('SELECT * FROM pulse.flow_jobs(%s, 150)', :flow));
CALL cost.note_emptied('last', format('SELECT * FROM pulse.explain_job(%s)', :last));
CALL cost.note_emptied('rare_task', 'SELECT * FROM pulse.explain_task(''rare'')');
CALL cost.note_emptied('set_queue', 'SELECT pulse.set_queue(''queue 1'', 2)');
CALL cost.note_emptied('set_level', 'SELECT pulse.set_queue(''tenants'', total => 5)');
CALL cost.note_emptied('sweep', 'SELECT * FROM pulse.sweep()');
CALL cost.note_emptied('cancel_flow', format('SELECT pulse.cancel_flow(%s)', :flow));
