-- What a claim reads: of a hundred jobs, and of none, whatever else lies in the table.

-- A head expires after a second at the earliest, and the next claim walks from the front again and
-- prunes the pages that it visits; so the least of several claims counts.
CREATE PROCEDURE cost.claim_in(place text, tasks text[] = '{no_op}')
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker(tasks);
  hundred text := format('SELECT * FROM pulse.claim(%s, 100)', worker);
  least_full int;
  least_empty int;
  cost record;
  marks pg_lsn[];
BEGIN
  COMMIT;
  FOR i IN 1 .. 5 LOOP
    cost := cost.explained(hundred);
    COMMIT;
    ASSERT cost.rows = 100, format('%s: claimed %s', place, cost.rows);
    least_full := least(least_full, cost.buffers);
  END LOOP;
  WHILE EXISTS (SELECT FROM pulse.claim(worker, 10000)) LOOP
    COMMIT;
  END LOOP;
  COMMIT;
  marks := ARRAY[cost.place()];
  FOR i IN 1 .. 5 LOOP
    cost := cost.explained(hundred);
    COMMIT;
    ASSERT cost.rows = 0, format('%s: claimed %s', place, cost.rows);
    least_empty := least(least_empty, cost.buffers);
    marks := marks || cost.place();
  END LOOP;
  CALL cost.flush();
  PERFORM cost.note('claim_100_buffers_' || place, least_full);
  PERFORM cost.note('claim_0_buffers_' || place, least_empty);
  PERFORM cost.note('claim_0_wal_' || place, min(w.bytes))
     FROM generate_series(1, 5) AS i, cost.written(marks[i], marks[i + 1]) AS w;
END $$;

-- With these in front of the jobs, or behind them, or beside.
CREATE PROCEDURE cost.fill(specs pulse.job_spec[])
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count(*) FROM pulse.add_jobs(specs);
  COMMIT;
  PERFORM count(*) FROM pulse.add_jobs(cost.jobs(700));
  COMMIT;
END $$;

-- Until none is left: of completed jobs the table holds dead rows, and its indexes dead entries.
CREATE PROCEDURE cost.complete_all()
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
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

CALL cost.fill('{}');
CALL cost.claim_in('alone');
TRUNCATE pulse.job, pulse.claim_batch;
CALL cost.fill(cost.jobs(50000));
CALL cost.claim_in('ready');
TRUNCATE pulse.job, pulse.claim_batch;
CALL cost.fill(cost.jobs(50000, run_at => now() + interval '1 day'));
CALL cost.claim_in('future');
TRUNCATE pulse.job, pulse.claim_batch;
CALL cost.fill(cost.jobs(50000, 'other'));
CALL cost.claim_in('other');
TRUNCATE pulse.job, pulse.claim_batch;
CALL cost.fill(cost.jobs(50000, queue_name => 'busy'));
CALL cost.claim_in('parked');
TRUNCATE pulse.job, pulse.claim_batch;
-- A thousand queues of a level that has run dry, once promotions have looked at them.
SELECT pulse.set_queue('dry', rate => 1, per => '366 days') \g /dev/null
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('no_op', NULL, 'dry/' || i % 1000, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 100000) AS i)) \g /dev/null
CALL cost.fill('{}');
CREATE PROCEDURE cost.look_at_queues()
  LANGUAGE plpgsql AS $$
BEGIN
  WHILE pulse_internal.promote_marked(256) LOOP
    COMMIT;
  END LOOP;
END $$;
CALL cost.look_at_queues();
CALL cost.claim_in('dry');
TRUNCATE pulse.job, pulse.claim_batch;
CALL cost.fill(cost.jobs(50000));
CALL cost.complete_all();
-- Whoever walks over dead entries marks them, and scans step over them page by page from then on.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT FROM pulse.job WHERE identifier = 'no_op' AND index_lane = 'o' ORDER BY priority, run_at, id;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_indexonlyscan;
-- Late answers for ten of them. The first such call of a session reads the catalogue too.
SELECT last_value - 40000 AS ended FROM pulse.job_id_seq \gset
SELECT count(*) FROM pulse.complete_many(
  ARRAY(SELECT :ended - generate_series(1, 10)), ARRAY(SELECT 0 * generate_series(1, 10)))
  \g /dev/null
SELECT cost.note('complete_lost_buffers', (cost.explained(format(
         'SELECT * FROM pulse.complete_many(ARRAY(SELECT %s + generate_series(1, 10)),
                                            ARRAY(SELECT 0 * generate_series(1, 10)))',
         :ended))).buffers);
CALL cost.fill('{}');
CALL cost.claim_in('done');
CALL cost.fill('{}');
CALL cost.claim_in('done_every', NULL);
TRUNCATE pulse.job, pulse.claim_batch;
-- Dead rows that somebody's transaction keeps. A head that has expired makes one claim look below
-- it, at a part: what nobody told of is found by and by.
CREATE PROCEDURE cost.look(most int, INOUT claims int = 0, INOUT buffers int = 0)
  LANGUAGE plpgsql AS $$
DECLARE
  claim text := format('SELECT * FROM pulse.claim(%s, 1)', cost.worker());
  cost record;
  moment interval;
BEGIN
  COMMIT;
  LOOP
    UPDATE cost.dead SET moment = dead.moment + interval '70 s' RETURNING dead.moment INTO moment;
    PERFORM set_config('pulse.clock_offset', extract(epoch FROM moment) || 's', false);
    cost := cost.explained(claim);
    COMMIT;
    claims := claims + 1;
    buffers := greatest(buffers, cost.buffers);
    EXIT WHEN cost.rows = 1 OR claims = most;
  END LOOP;
  PERFORM set_config('pulse.clock_offset', '0s', false);
END $$;

CREATE PROCEDURE cost.find_what_nobody_told_of(figure text, beside interval)
  LANGUAGE plpgsql AS $$
DECLARE
  claims int := 0;
  buffers int := 0;
BEGIN
  INSERT INTO pulse.job (identifier, run_at) SELECT 'no_op', run_at + beside FROM cost.dead;
  CALL cost.look(100, claims, buffers);
  PERFORM cost.note(figure || '_buffers', buffers);
  PERFORM cost.note(figure || '_claims', claims);
END $$;

BEGIN;
SELECT pg_current_xact_id();
PREPARE TRANSACTION 'cost_keeps_dead_rows';
CALL cost.fill(cost.jobs(50000));
CREATE TABLE cost.dead AS
  SELECT min(run_at) AS run_at, interval '0' AS moment FROM pulse.job;
CALL cost.complete_all();
CALL cost.find_what_nobody_told_of('look', '1 us');
-- They go while such looks are half-way through them.
CALL cost.look(20);
ROLLBACK PREPARED 'cost_keeps_dead_rows';
VACUUM pulse.job;
CALL cost.find_what_nobody_told_of('late_look', '-1 us');
