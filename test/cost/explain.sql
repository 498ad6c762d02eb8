-- What an explanation reads beside 200,000 jobs that wait: due, in the future, and behind queues.
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'bulk', n % 3, now() - interval '1 h' + interval '1 ms' * n
  FROM generate_series(1, 80000) AS n;
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'bulk', n % 3, now() + interval '1 h' FROM generate_series(1, 40000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'bulk', 'long', 'parked', now() - interval '1 h' FROM generate_series(1, 40000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
SELECT 'bulk', 'queue ' || n % 10000, 'parked', now() + interval '1 h'
  FROM generate_series(1, 40000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, run_at)
VALUES ('rare', 'rare', 'parked', now() - interval '1 min');
VACUUM (ANALYZE) pulse.job;
SELECT cost.worker('{other}');

CREATE PROCEDURE cost.note_explanation(name text, statement text)
  LANGUAGE plpgsql AS $$
BEGIN
  -- Read the catalogue, and let each statement within settle on its plan.
  PERFORM cost.explained(statement) FROM generate_series(1, 6);
  PERFORM cost.note('explain_' || name || '_buffers', (cost.explained(statement)).buffers);
END $$;
SELECT id AS first FROM pulse.job WHERE index_lane = 'o' ORDER BY priority, run_at, id LIMIT 1 \gset
SELECT id AS last FROM pulse.job WHERE index_lane = 'o' AND run_at <= now()
 ORDER BY priority DESC, run_at DESC, id DESC LIMIT 1 \gset
SELECT max(id) AS future FROM pulse.job WHERE index_lane = 'o' \gset
SELECT max(id) AS parked FROM pulse.job WHERE queue_name = 'long' \gset
CALL cost.note_explanation('first', 'SELECT * FROM pulse.explain_job(' || :first || ')');
CALL cost.note_explanation('last', 'SELECT * FROM pulse.explain_job(' || :last || ')');
CALL cost.note_explanation('future', 'SELECT * FROM pulse.explain_job(' || :future || ')');
CALL cost.note_explanation('parked', 'SELECT * FROM pulse.explain_job(' || :parked || ')');
CALL cost.note_explanation('task', 'SELECT * FROM pulse.explain_task(''bulk'')');
CALL cost.note_explanation('rare_task', 'SELECT * FROM pulse.explain_task(''rare'')');
CALL cost.note_explanation('unserved', 'TABLE pulse.unserved');
\ir ../support/counted.sql
CALL cost.note_explanation('overview', 'TABLE pulse.overview');
