-- One random state and its judgement, for explain.pl. The procedure compares explain_job() with the
-- claims of a fresh idle worker of each task. dblink is the session that holds locks.
CREATE SCHEMA explain;

-- What differed: the state's seed, the job, what was explained, and whether a claim got it.
CREATE TABLE explain.contradiction (seed float8, job pulse.job, explained text, claimed boolean);
-- The state of the first of them: the moments of the judgement, what was explained, who claimed
-- what, the jobs and the settings of queues.
CREATE TABLE explain.evidence (seed float8, what text, seen jsonb);
-- How often each blocker stood in a state, and how many jobs had none.
CREATE TABLE explain.seen (blocker text PRIMARY KEY, jobs bigint NOT NULL);
-- Each claim of the state, so far.
CREATE TABLE explain.started (id bigint, queue_name text);

CREATE FUNCTION explain.one_of(VARIADIC choices text[]) RETURNS text
  LANGUAGE sql VOLATILE AS $$
  SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;

-- Promotions open all that they can. Before that, none foresees which of the queues of a level gets
-- its last place.
CREATE PROCEDURE explain.settle()
  LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 20 LOOP
    PERFORM pulse_internal.reconcile_queues();
    COMMIT;
    PERFORM pulse_internal.promote_marked(1000);
    COMMIT;
  END LOOP;
END $$;

-- Jobs that wait for others, of which some end. Where they have a queue, or wait for jobs that
-- wait, or where jobs have lost workers, claims have settled all: until then none foresees what
-- becomes of the jobs after them, and which of them join the line of a job that runs alone.
CREATE PROCEDURE explain.add_waits(queue_name text)
  LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 6 LOOP
    PERFORM pulse.add_job_after(
      ARRAY(SELECT j.id FROM pulse.job AS j WHERE random() < 0.15
               AND (add_waits.queue_name IS NOT NULL OR j.waits_on IS NULL) LIMIT 3),
      explain.one_of('a', 'b', 'c'), queue_name => add_waits.queue_name,
      starts_when => explain.one_of('completed', 'completed', 'ended', 'failed'));
  END LOOP;
  COMMIT;
  PERFORM pulse.complete_jobs(ARRAY(
    SELECT j.id FROM pulse.job AS j WHERE j.state <> 'running' AND random() < 0.3));
  PERFORM pulse.permanently_fail_jobs(ARRAY(
    SELECT j.id FROM pulse.job AS j WHERE j.state <> 'running' AND random() < 0.15));
  COMMIT;
  FOR i IN 1 .. CASE WHEN add_waits.queue_name IS NULL
                      AND NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.crashes > 0)
                     THEN 0 ELSE 10 END LOOP
    PERFORM pulse_internal.promote_marked(1000);
    COMMIT;
  END LOOP;
END $$;

CREATE PROCEDURE explain.make_state(worker bigint, settles boolean = true)
  LANGUAGE plpgsql AS $$
DECLARE
  name text := CASE WHEN random() < 0.4 THEN 'm/q' ELSE 'q' END;
  has_total boolean := name = 'm/q' AND random() < 0.6;
BEGIN
  IF name = 'm/q' THEN
    PERFORM pulse.set_queue('m', paused => random() < 0.1, fair => random() < 0.4,
      total => CASE WHEN has_total THEN 1 + floor(random() * 5)::int END);
    IF random() < 0.3 THEN
      has_total := true;
      PERFORM pulse.set_queue('m', rate => 1 + floor(random() * 6)::int, per => '100 days');
    END IF;
    IF random() < 0.5 THEN
      PERFORM pulse.set_queue('m/*', 1 + floor(random() * 3)::int, random() < 0.1,
        CASE WHEN has_total AND random() < 0.3 THEN 1 END, weight => 1 + floor(random() * 3)::int);
    END IF;
  END IF;
  FOR q IN 1 .. 5 LOOP
    IF random() < 0.7 THEN
      PERFORM pulse.set_queue(name || q, 1 + floor(random() * 3)::int, random() < 0.15);
    END IF;
    IF random() < 0.3 THEN
      PERFORM pulse.set_queue(name || q, 1, strict => true,
                              on_dead => explain.one_of('continue', 'pause'));
    END IF;
    IF random() < 0.2 THEN
      has_total := true;
      PERFORM pulse.set_queue(name || q, rate => 1 + floor(random() * 3)::int, per => '100 days');
    END IF;
  END LOOP;
  IF random() < 0.3 THEN
    PERFORM pulse.set_task('a', max_crashes => explain.one_of('1', '2', '3', '-1')::int);
  END IF;
  FOR n IN 1 .. 3 LOOP
    FOR i IN 1 .. floor(random() * 12)::int LOOP
      PERFORM pulse.add_job(explain.one_of('a', 'b', 'c'),
        queue_name => CASE WHEN random() < 0.5 THEN name || ceil(random() * 5)::int END,
        run_at => pulse.now() + make_interval(secs => CASE WHEN random() < 0.2 THEN 3600
                    ELSE -explain.one_of('1', '1', '2', '3600')::int END),
        priority => explain.one_of('0', '0', '0', '-1', '5')::int,
        flags => CASE WHEN random() < 0.1 THEN '{gpu}'::text[] END);
    END LOOP;
    COMMIT;
    IF random() < 0.5 THEN
      INSERT INTO explain.started
      SELECT c.id, c.queue_name FROM pulse.claim(worker, ceil(random() * 10)::int,
        ARRAY[explain.one_of('a', 'b', 'c'), 'd'], start_jobs => 10) AS c;
      COMMIT;
    END IF;
  END LOOP;
  -- Jobs that come back wait as the loss of their worker left them.
  IF random() < 0.4 THEN
    PERFORM pulse.fail(h.id, h.token, 'boom', random() < 0.7,
                       CASE WHEN random() < 0.5 THEN interval '0' END)
       FROM pulse.held(worker) AS h WHERE random() < 0.4;
    COMMIT;
    PERFORM pulse.retry_job(f.id) FROM pulse.finished_job AS f WHERE random() < 0.3;
    COMMIT;
  END IF;
  IF random() < 0.4 THEN
    PERFORM pulse.release(array_agg(h.id), array_agg(h.token))
       FROM pulse.held(worker) AS h WHERE random() < 0.5 HAVING count(*) > 0;
    COMMIT;
  END IF;
  IF random() < 0.5 THEN
    UPDATE pulse.job SET crashes = 1 + floor(random() * 2), worker_id = CASE
        WHEN random() < 0.2 THEN worker END
     WHERE state <> 'running' AND random() < 0.15;
    COMMIT;
  END IF;
  IF random() < 0.4 THEN
    CALL explain.add_waits(CASE WHEN random() < 0.4 THEN name || ceil(random() * 5)::int END);
  END IF;
  IF random() < 0.2 THEN
    PERFORM pulse.sweep();
    COMMIT;
  END IF;
  IF random() < 0.3 THEN
    PERFORM pulse.drain_worker(worker);
    COMMIT;
  END IF;
  IF random() < 0.15 THEN
    PERFORM pulse.set_queue(name || 1, 1 + floor(random() * 2)::int, random() < 0.3,
                            strict => false, on_dead => 'continue');
    COMMIT;
  END IF;
  IF has_total AND settles THEN
    CALL explain.settle();
  END IF;
END $$;

-- Another session holds rows, and sometimes the lock of a queue.
CREATE PROCEDURE explain.hold_locks()
  LANGUAGE plpgsql AS $$
DECLARE
  held bigint[];
BEGIN
  PERFORM dblink_exec('holder', 'BEGIN');
  IF random() < 0.5 THEN
    SELECT array_agg(j.id) INTO held FROM pulse.job AS j
     WHERE j.state <> 'running' AND random() < 0.1;
    PERFORM * FROM dblink('holder', format('SELECT id FROM pulse.job WHERE id = ANY (%L) %s',
        coalesce(held, '{}'), explain.one_of('FOR UPDATE', 'FOR SHARE', 'FOR NO KEY UPDATE')))
      AS t (id bigint);
    IF random() < 0.3 THEN  -- two sharers make a multixact
      PERFORM dblink_exec('sharer', 'BEGIN');
      PERFORM * FROM dblink('sharer', format(
          'SELECT id FROM pulse.job WHERE id = ANY (%L) FOR SHARE SKIP LOCKED',
          coalesce(held, '{}')))
        AS t (id bigint);
    END IF;
  END IF;
  IF random() < 0.2 THEN
    PERFORM * FROM dblink('holder', format('SELECT pulse_internal.lock_queue(%L)',
        explain.one_of('q2', 'm/q2', 'm'))) AS t (l boolean);
  END IF;
END $$;

CREATE FUNCTION explain.claimed_by(worker bigint) RETURNS bigint[]
  LANGUAGE plpgsql AS $$
DECLARE
  part bigint[];
  ids bigint[] := '{}';
  empty int := 0;
BEGIN
  WHILE empty < 3 LOOP
    part := ARRAY(SELECT c.id FROM pulse.claim(worker, 10000) AS c);
    ids := ids || part;
    empty := CASE WHEN part = '{}' THEN empty + 1 ELSE 0 END;
  END LOOP;
  RETURN ids;
END $$;

CREATE PROCEDURE explain.judge(seed float8)
  LANGUAGE plpgsql AS $$
DECLARE
  task text;
  began timestamptz := clock_timestamp();
  explained jsonb;
  marked jsonb;
  claimed bigint[];
  claimed_again bigint[];
BEGIN
  SELECT jsonb_object_agg(j.id, coalesce((SELECT jsonb_agg(e.blocker)
           FROM pulse.explain_job(j.id) AS e WHERE e.kind IN ('job', 'queue')), '[]'))
    INTO explained FROM pulse.job AS j;
  SELECT jsonb_object_agg(q.queue_name, pulse_internal.is_marked(q.queue_name)) INTO marked
    FROM (SELECT DISTINCT j.queue_name FROM pulse.job AS j WHERE j.queue_name IS NOT NULL) AS q;
  FOREACH task IN ARRAY '{a,b,c}'::text[] LOOP
    IF current_setting('pulse.claims')::boolean THEN
      claimed := explain.claimed_by((pulse.register_worker('fresh', ARRAY[task])).id);
    ELSE
      claimed := '{}';
    END IF;
    ROLLBACK;
    INSERT INTO explain.contradiction
    SELECT seed, j, explained ->> j.id::text, j.id = ANY (claimed) FROM pulse.job AS j
     WHERE j.identifier = task
       AND (explained -> j.id::text = '[]') IS DISTINCT FROM (j.id = ANY (claimed));
    IF FOUND THEN
      COMMIT;
      claimed_again := explain.claimed_by((pulse.register_worker('again', ARRAY[task])).id);
      ROLLBACK;
      INSERT INTO explain.evidence
      VALUES (seed, 'explained', explained), (seed, 'claims of ' || task, to_jsonb(claimed)),
             (seed, 'later claims', to_jsonb(claimed_again)), (seed, 'marked queues', marked),
             (seed, 'moments', jsonb_build_array(began, clock_timestamp()));
      INSERT INTO explain.evidence SELECT seed, 'job', jsonb_strip_nulls(to_jsonb(j))
        FROM pulse.job AS j ORDER BY j.queue_name, j.priority, j.run_at, j.id;
      INSERT INTO explain.evidence SELECT seed, 'queue', jsonb_strip_nulls(to_jsonb(q))
        FROM pulse.queue_settings AS q;
      INSERT INTO explain.evidence SELECT seed, 'ended', jsonb_strip_nulls(to_jsonb(f))
        FROM pulse.finished_job AS f;
    END IF;
    COMMIT;
  END LOOP;
  INSERT INTO explain.seen AS s
  SELECT b.blocker, count(*) FROM jsonb_each(coalesce(explained, '{}')) AS e
   CROSS JOIN LATERAL (SELECT jsonb_array_elements_text(e.value) AS blocker
                       UNION ALL SELECT 'none' WHERE e.value = '[]') AS b GROUP BY b.blocker
  ON CONFLICT (blocker) DO UPDATE SET jobs = s.jobs + EXCLUDED.jobs;
  COMMIT;
END $$;

-- Nothing is left of the state before.
CREATE PROCEDURE explain.clear(seed float8)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM setseed(seed / 10000000);
  IF EXISTS (SELECT FROM pulse.queue AS q WHERE q.fair) THEN  -- and no turns of its level
    PERFORM pulse.set_queue('m', paused => false, total => -1, rate => -1, fair => false);
    PERFORM pulse.add_job('a', queue_name => 'm/q');
    COMMIT;
    PERFORM pulse_internal.promote_marked(1000);
    COMMIT;
  END IF;
  DELETE FROM pulse.job;
  DELETE FROM pulse.claim_batch;
  DELETE FROM pulse.dependency;
  DELETE FROM pulse.finished_job;
  DELETE FROM pulse.heartbeat;
  DELETE FROM pulse.worker;
  DELETE FROM pulse.queue;
  DELETE FROM pulse.queue_pause;
  DELETE FROM pulse.queue_rate;
  DELETE FROM pulse.task;
  DELETE FROM explain.started;
  COMMIT;
  PERFORM pulse_internal.promote_marked(1000);  -- marks of queues that are gone
  COMMIT;
END $$;

CREATE PROCEDURE explain.judge_states(first int, count int)
  LANGUAGE plpgsql AS $$
DECLARE
  worker bigint;
BEGIN
  FOR n IN first .. first + count - 1 LOOP
    CALL explain.clear(n);
    worker := (pulse.register_worker('earlier', NULL)).id;
    COMMIT;
    CALL explain.make_state(worker);
    CALL explain.hold_locks();
    PERFORM set_config('pulse.claims', CASE WHEN random() < 0.05 THEN 'off' ELSE 'on' END, false);
    COMMIT;
    CALL explain.judge(n);
    PERFORM set_config('pulse.claims', 'on', false);
    PERFORM dblink_exec(c, 'ROLLBACK') FROM unnest('{holder,sharer}'::text[]) AS c;
  END LOOP;
END $$;
