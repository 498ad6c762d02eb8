-- No call reads a whole table, even where its plans were made over an empty one: a session keeps
-- them until the table is analyzed, and thousands of jobs may have come before that.

-- Every call that looks for jobs, with the jobs of one claim.
CREATE PROCEDURE cost.call_all(worker bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  ids bigint[];
  tokens bigint[];
  leaver bigint;
  job bigint;
BEGIN
  PERFORM pulse.add_jobs(cost.jobs(30));
  PERFORM pulse.add_jobs(cost.jobs(3, queue_name => 'queue %s'));
  PERFORM pulse.add_job('keyed', job_key => 'key', job_key_mode => mode)
     FROM unnest('{unsafe_dedupe, replace, preserve_run_at}'::text[]) AS mode;
  PERFORM pulse.add_jobs('{"(keyed,,,,,key,,)"}');
  COMMIT;
  SELECT array_agg(c.id ORDER BY c.id), array_agg(c.token ORDER BY c.id) INTO STRICT ids, tokens
    FROM pulse.claim(worker, 30) AS c;
  COMMIT;
  PERFORM pulse.held(worker);
  PERFORM pulse.progress(ids[1], tokens[1], 'begun');
  PERFORM pulse.heartbeat(worker, ids);
  COMMIT;
  FOR i IN 1 .. 2 LOOP  -- the second time they are over, and looked for where jobs end
    PERFORM pulse.complete(ids[1], tokens[1]);
    PERFORM pulse.complete_many(ids[2:5], tokens[2:5]);
    PERFORM pulse.fail(ids[6], tokens[6], 'broken', false);
    PERFORM pulse.fail_many(ids[7:10], tokens[7:10], '{a, b, c, d}');
    PERFORM pulse.release(ids[11:13], tokens[11:13]);
    COMMIT;
  END LOOP;
  PERFORM pulse.snooze(ids[14], tokens[14], '1 hour');
  PERFORM pulse.requeue_job(ids[15], 'again');
  PERFORM pulse.get_job(id) FROM unnest(ids) AS id;
  PERFORM pulse.retry_job(ids[6]);
  PERFORM pulse.reschedule_jobs(ids[7:7], now() + interval '1 hour');
  PERFORM pulse.complete_jobs(ids[8:8]);
  PERFORM pulse.permanently_fail_jobs(ids[9:9], 'given up');
  PERFORM pulse.claim_job(worker, ids[11]);
  PERFORM pulse.cancel_job(ids[16]);
  PERFORM pulse.remove_job('key');
  PERFORM pulse.set_queue('queue 1', 2);
  COMMIT;
  leaver := cost.worker();
  PERFORM pulse.claim(leaver, 10);
  COMMIT;
  PERFORM pulse.declare_lost(leaver, 'gone');
  COMMIT;
  leaver := cost.worker();
  PERFORM pulse.claim(leaver, 10);
  COMMIT;
  PERFORM pulse.deregister_worker(leaver);
  COMMIT;
  PERFORM pulse.sweep();
  COMMIT;
  PERFORM pulse.tick();
  COMMIT;
END $$;

-- Counts come to the views when a session is idle, and then at once if it asks for that.
CREATE VIEW cost.scans AS
  SELECT relname AS name, seq_scan AS whole FROM pg_stat_all_tables
   WHERE schemaname = 'pulse' AND relname IN ('job', 'finished_job', 'attempt');

-- The first claim in a database looks for the highest number that was ever given out.
SELECT count(*) FROM pulse.claim(cost.worker());
SET pulse.keep_completed = -1;
VACUUM (ANALYZE) pulse.job, pulse.finished_job, pulse.attempt, pulse.claim_batch, pulse.task,
  pulse.queue, pulse.worker, pulse.heartbeat;
SELECT pg_stat_force_next_flush();
CREATE TEMPORARY TABLE before AS TABLE cost.scans;

SELECT cost.worker() AS worker \gset
-- A plan is made for good at the sixth call.
CALL cost.call_all(:worker);
CALL cost.call_all(:worker);
CALL cost.call_all(:worker);
CALL cost.call_all(:worker);
CALL cost.call_all(:worker);
CALL cost.call_all(:worker);
CALL cost.call_all(:worker);
SELECT pulse.add_jobs(cost.jobs(5000, 'other'));
CREATE EXTENSION pg_stat_statements;
SET pg_stat_statements.track = 'all';
SELECT pg_stat_statements_reset();
CALL cost.call_all(:worker);
-- A forbidden plan that is the only one has a price at which the server compiles it, each time.
SELECT cost.note('compiled_expressions', sum(jit_functions)) FROM pg_stat_statements;
SELECT pg_stat_force_next_flush();
SELECT cost.note('whole_scans_' || name, now.whole - before.whole)
  FROM cost.scans AS now JOIN before USING (name);

-- A claim is no statement that could be planned badly: nothing is planned inside of it.
SELECT pg_stat_statements_reset();
SELECT count(*) FROM pulse.claim(:worker, 100);
SELECT cost.note('claim_statements', sum(calls)) FROM pg_stat_statements
 WHERE query NOT LIKE '%pg_stat_statements_reset%';
