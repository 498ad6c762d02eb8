-- extension/job/index.cpp: a claim, a promotion and a heartbeat also make the index entries
-- of the job's new version. Each index is compared with the rows that it should have (amcheck).
\ir support/setup.psql
CREATE EXTENSION IF NOT EXISTS amcheck;
SELECT plan(68);

CREATE FUNCTION complete_indexes(stage text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  index regclass;
BEGIN
  FOR index IN SELECT i.indexrelid FROM pg_index AS i
                WHERE i.indrelid = 'pulse.job'::regclass ORDER BY i.indexrelid::regclass::text LOOP
    BEGIN
      PERFORM public.bt_index_check(index, true);
      RETURN NEXT pass(format('%s has all jobs, %s', index, stage));
    EXCEPTION WHEN OTHERS THEN
      RETURN NEXT fail(format('%s has all jobs, %s', index, stage)) || E'\n' || diag(SQLERRM);
    END;
  END LOOP;
END $$;

CREATE FUNCTION lanes() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('%s %s: %s', state, index_lane, many), ', ' ORDER BY state, index_lane)
    FROM (SELECT state, index_lane, count(*) AS many FROM pulse.job GROUP BY 1, 2) AS j
$$;

CREATE FUNCTION one_of_each(task text) RETURNS void LANGUAGE sql AS $$
  SELECT pulse.add_job(task);
  SELECT pulse.add_job(task, job_key => task || ' plain');
  SELECT pulse.add_job(task, queue_name => task);
  SELECT pulse.add_job(task, queue_name => task, job_key => task || ' second');
  SELECT pulse.add_job(task, queue_name => task || ' keyed', job_key => task || ' first');
$$;

SELECT id AS worker FROM pulse.register_worker('indexes', NULL) \gset

SELECT one_of_each('single');
SELECT is((SELECT count((SELECT id FROM pulse.claim(:worker, 1 + 0 * g, tasks => '{single}')))::int
             FROM generate_series(1, 4) AS g),
  4, 'all are claimed one by one but what waits behind its queue');
SELECT is(lanes(), 'parked p: 1, running r: 4', 'each of them is held');
SELECT * FROM complete_indexes('claimed one by one');

SELECT one_of_each('many');
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('many', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 20)));
SELECT cmp_ok((SELECT count(*)::int FROM pulse.claim(:worker, 100, tasks => '{many}')), '>=', 24,
  'what is plain is claimed in place, the rest is held');
SELECT pulse.heartbeat(:worker);
SELECT is((SELECT count(*)::int FROM pulse.job WHERE in_place), 0,
          'a beat settles what is in place');
SELECT * FROM complete_indexes('settled');

CREATE INDEX job_message_idx ON pulse.job (attempts, (payload::text)) WHERE attempts > 0;
SELECT one_of_each('others');
SELECT is((SELECT count(*)::int FROM pulse.claim(:worker, 3, tasks => '{others}')),
  3, 'some are claimed where somebody put an index of theirs');
SELECT pulse.complete(id, token) FROM pulse.job
 WHERE identifier = 'others' AND queue_name = 'others' AND state = 'running';
SELECT is((SELECT count(*)::int FROM pulse.claim(:worker, 3, tasks => '{others}')),
  2, 'and what the end of one opens');
SELECT * FROM complete_indexes('beside an index of others');
DROP INDEX pulse.job_message_idx;
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('again', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 20)));
SELECT pulse.claim(:worker, 100, tasks => '{again}');
SELECT outcome FROM pulse.release(
  ARRAY(SELECT id FROM pulse.job WHERE in_place ORDER BY id LIMIT 10),
  ARRAY(SELECT token FROM pulse.job WHERE in_place ORDER BY id LIMIT 10));
SELECT * FROM complete_indexes('released');
SELECT outcome FROM pulse.fail_many(
  ARRAY(SELECT id FROM pulse.job WHERE state = 'running' ORDER BY id),
  ARRAY(SELECT token FROM pulse.job WHERE state = 'running' ORDER BY id),
  ARRAY(SELECT 'wrong' FROM pulse.job WHERE state = 'running'));
SELECT * FROM complete_indexes('failed');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
