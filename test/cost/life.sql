-- Whole lives of tiny plain jobs: what is logged from add_jobs to complete_many, and by vacuum.

CREATE PROCEDURE cost.live(jobs int, batch int, INOUT added pg_lsn[], INOUT ended pg_lsn[])
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint := cost.worker();
  specs pulse.job_spec[] := cost.jobs(batch);
  ids bigint[];
  tokens bigint[];
BEGIN
  COMMIT;
  added := ARRAY[cost.place()];
  FOR i IN 1 .. jobs / batch LOOP
    PERFORM count(*) FROM pulse.add_jobs(specs);
    COMMIT;
    added := added || cost.place();
  END LOOP;
  ended := ARRAY[cost.place()];
  FOR i IN 1 .. jobs / batch LOOP
    SELECT array_agg(c.id), array_agg(c.token) INTO STRICT ids, tokens
      FROM pulse.claim(worker, batch) AS c;
    COMMIT;
    ended := ended || cost.place();
    PERFORM count(*) FROM pulse.complete_many(ids, tokens);
    COMMIT;
    ended := ended || cost.place();
  END LOOP;
  ASSERT (SELECT count(*) FROM pulse.job) = 0;
  CALL cost.flush();
END $$;

CREATE FUNCTION cost.note_step(name text, jobs int, marks pg_lsn[], first int, step int)
  RETURNS void
  LANGUAGE sql AS $$
  SELECT cost.note(name || '_wal', bytes / jobs), cost.note(name || '_records', records / jobs)
    FROM cost.of_calls(marks, first, step);
$$;

CREATE FUNCTION cost.note_lives(name text, jobs int, added pg_lsn[], ended pg_lsn[])
  RETURNS void
  LANGUAGE sql AS $$
  SELECT cost.note(name || '_wal', (a.bytes + e.bytes) / jobs),
         cost.note(name || '_records', (a.records + e.records) / jobs)
    FROM cost.of_calls(added, 1, 1) AS a, cost.of_calls(ended, 1, 1) AS e;
$$;

\set jobs 2000
CALL cost.live(:jobs, 100, NULL, NULL);
VACUUM pulse.job, pulse.claim_batch;
CALL cost.live(:jobs, 100, NULL, NULL) \gset
SELECT cost.place() AS since \gset
VACUUM pulse.job, pulse.claim_batch;
CALL cost.flush();
SELECT cost.place() AS until \gset
SELECT cost.note_lives('life_100', :jobs, :'added', :'ended');
SELECT cost.note_step('add_100', :jobs, :'added', 1, 1);
SELECT cost.note_step('claim_100', :jobs, :'ended', 1, 2);
SELECT cost.note_step('complete_100', :jobs, :'ended', 2, 2);
SELECT cost.note('claim_100_not_hot', updates - updates_in_place),
       cost.note('claim_100_index_entries', index_entries / (:jobs / 100))
  FROM cost.of_calls(:'ended', 1, 2);
SELECT cost.note('life_100_vacuum_wal', bytes / :jobs) FROM cost.written(:'since', :'until');
CALL cost.live(:jobs, 500, NULL, NULL) \gset
SELECT cost.note_lives('life_500', :jobs, :'added', :'ended');
