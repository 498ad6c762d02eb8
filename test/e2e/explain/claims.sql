-- What a claim must return, said anew from the contract (P7, P8 and P13), for
-- claim_contract.pl. It reads tables alone: which jobs were waiting, open and running before a
-- claim and after it. The states are those of states.sql.
CREATE SCHEMA contract;

-- How a claim was called.
CREATE TYPE contract.call AS (
  worker bigint, max_jobs int, tasks text[], forbidden text[], start_jobs int);

-- What differed, with the state's seed.
CREATE TABLE contract.breach (
  seed float8, claim int, call contract.call, problems text[], got bigint[], expected bigint[],
  marked text[], jobs jsonb, queues jsonb);
CREATE TABLE contract.tally (what text PRIMARY KEY, number bigint NOT NULL);

-- A waiting or running job before the claim, and what has become of it.
CREATE TYPE contract.job AS (
  id bigint, identifier text, queue_name text, levels text[], priority int, run_at timestamptz,
  was text, became text, is_got boolean, is_locked boolean, is_due boolean,
  waits_for_others boolean, keeps_place boolean,
  is_last boolean, is_suspect boolean, is_expired boolean, flags text[], reserved_for bigint);

-- The settings of a level: its own row, else that of its parent's members; likewise its pause.
CREATE VIEW contract.level AS
  SELECT n.level, coalesce(q.concurrency, 1) AS concurrency, q.total, q.rate AS burst,
         coalesce((SELECT p.is_paused FROM pulse.queue_pause AS p
                    WHERE p.queue_name IN (n.level, regexp_replace(n.level, '/.*', '/*'))
                      AND p.job_id = 0 ORDER BY p.queue_name = n.level DESC LIMIT 1),
                  false) AS paused,
         coalesce(q.is_strict, false) AS is_strict,
         coalesce(q.fair, false) AS is_fair
    FROM (SELECT DISTINCT unnest(ARRAY[j.queue_name, split_part(j.queue_name, '/', 1)]) AS level
            FROM pulse.job AS j WHERE j.queue_name IS NOT NULL) AS n
    LEFT JOIN LATERAL (
      SELECT * FROM pulse.queue AS q
       WHERE q.queue_name IN (n.level, regexp_replace(n.level, '/.*', '/*'))
       ORDER BY q.queue_name = n.level DESC LIMIT 1) AS q ON true;

CREATE FUNCTION contract.jobs(before pulse.job[], got bigint[], locked bigint[],
                              moment timestamptz)
  RETURNS SETOF contract.job
  LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
  SELECT b.id, b.identifier, b.queue_name,
         CASE WHEN b.queue_name IS NOT NULL
              THEN ARRAY[b.queue_name, split_part(b.queue_name, '/', 1)] END,
         b.priority::int, b.run_at, b.state::text, coalesce(a.state::text, 'gone'),
         coalesce(b.id = ANY (got), false), b.id = ANY (locked),
         b.run_at <= moment, b.waits_on IS NOT NULL,
         b.id IN (SELECT s.id FROM explain.started AS s), b.attempts + 1 >= b.max_attempts,
         b.crashes > 0 AND m.most >= 0 AND b.crashes >= greatest(m.most - 1, 1),
         coalesce(b.start_by <= moment, false), b.flags, b.worker_id
    FROM unnest(before) AS b
    LEFT JOIN pulse.job AS a ON a.id = b.id
    LEFT JOIN pulse.task AS t ON t.identifier = b.identifier
   CROSS JOIN LATERAL (SELECT coalesce(t.max_crashes,
                         current_setting('pulse.max_crashes')::int) AS most) AS m;
END $$;

-- The open jobs are handed out in order, except those that this worker may not have. A poison
-- suspect is given alone, to an idle worker. The claim ends at a job that must start and cannot.
CREATE FUNCTION contract.handed_out(all_jobs contract.job[], c contract.call, isolated bigint,
                                    long_due timestamptz)
  RETURNS bigint[]
  LANGUAGE plpgsql AS $$
DECLARE
  ids bigint[] := '{}';
  starts int := coalesce(c.start_jobs, c.max_jobs);
  is_idle boolean := NOT EXISTS (
    SELECT FROM unnest(all_jobs) AS u WHERE u.was = 'running' AND u.reserved_for = c.worker);
  tasks text[] := coalesce(c.tasks, (SELECT w.tasks FROM pulse.worker AS w WHERE w.id = c.worker));
  job contract.job;
BEGIN
  IF (SELECT h.verdict <> 'alive' FROM pulse.heartbeat AS h WHERE h.worker_id = c.worker) THEN
    RETURN ids;
  END IF;
  SELECT * INTO job FROM unnest(all_jobs) AS u WHERE u.id = isolated AND u.reserved_for = c.worker
     AND (u.was = 'running' OR (u.became = 'ready' OR u.is_got) AND u.is_due);
  IF FOUND THEN
    RETURN CASE WHEN job.was <> 'running' AND starts > 0 AND is_idle AND NOT job.is_locked
                THEN ARRAY[job.id] ELSE ids END;
  END IF;
  FOR job IN SELECT * FROM unnest(all_jobs) AS u
              WHERE (u.became = 'ready' OR u.is_got) AND u.is_due AND NOT u.is_locked
                AND NOT u.is_expired AND (tasks IS NULL OR u.identifier = ANY (tasks))
                AND NOT coalesce(u.flags && c.forbidden, false)
              ORDER BY u.priority, u.run_at, u.id LOOP
    EXIT WHEN cardinality(ids) >= c.max_jobs;
    IF job.is_suspect THEN
      IF ids = '{}' AND starts > 0 AND is_idle THEN RETURN ARRAY[job.id]; END IF;
      EXIT WHEN job.run_at < long_due AND NOT EXISTS (
        SELECT FROM pulse.heartbeat AS h
         WHERE h.worker_id = job.reserved_for AND h.verdict = 'alive');
      CONTINUE;
    END IF;
    EXIT WHEN cardinality(ids) >= starts AND (job.queue_name IS NOT NULL OR job.is_last);
    ids := ids || job.id;
  END LOOP;
  RETURN ids;
END $$;

-- Where limits are passed, a queue's order is broken, or a place is left empty. A claim gives as
-- many places as it may take jobs, at most 64, and looks at 32 queues at least; a locked job may
-- cost it one. In a fair level that is full, a better job may wait for its queue's next turn to
-- replace an open one. A better job replaces the worst open job, and waits while that is locked.
CREATE FUNCTION contract.problems(all_jobs contract.job[], c contract.call, continues boolean)
  RETURNS SETOF text
  LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
  WITH job AS MATERIALIZED (SELECT * FROM unnest(all_jobs)),
  placed AS MATERIALIZED (
    SELECT j.*, j.was = 'parked' AS is_new FROM job AS j
     WHERE j.queue_name IS NOT NULL AND (j.became IN ('ready', 'running'))),
  level AS MATERIALIZED (
    SELECT l.*, (SELECT count(*) FROM placed AS p WHERE l.level = ANY (p.levels)) AS taken,
           (SELECT count(*) FROM placed AS p WHERE l.level = p.queue_name) AS own,
           (SELECT count(*) FROM placed AS p WHERE l.level = ANY (p.levels)
               AND p.was <> 'running' AND NOT p.is_got) AS open,
           (SELECT count(*) FROM explain.started AS s
             WHERE l.level IN (s.queue_name, split_part(s.queue_name, '/', 1))) AS started,
           EXISTS (SELECT FROM placed AS p WHERE l.level = ANY (p.levels) AND p.is_new) AS grew
      FROM contract.level AS l),
  waiting AS MATERIALIZED (
    SELECT j.*, l.concurrency, l.own FROM job AS j JOIN level AS l ON l.level = j.queue_name
     WHERE j.was = 'parked' AND j.became = 'parked' AND j.is_due AND NOT j.is_locked
       AND NOT j.waits_for_others
       AND NOT EXISTS (SELECT FROM level AS a WHERE a.level = ANY (j.levels) AND a.paused)
       AND NOT EXISTS (SELECT FROM pulse.queue_pause AS e
                        WHERE e.queue_name = j.queue_name AND e.is_paused)
       AND NOT (l.is_strict AND NOT j.keeps_place AND EXISTS (
                SELECT FROM job AS k WHERE k.queue_name = j.queue_name AND k.keeps_place))),
  may_have_more AS (
    SELECT (SELECT count(*) FROM job AS j WHERE j.was = 'parked' AND j.queue_name IS NOT NULL
               AND (j.became IN ('ready', 'running') OR j.is_locked)) < least(c.max_jobs, 64)
       AND (SELECT count(*) FROM level AS l) <= 20 AND NOT continues AND c.worker NOT IN (
             SELECT h.worker_id FROM pulse.heartbeat AS h WHERE h.verdict <> 'alive') AS is_so)
  SELECT 'concurrency of ' || level FROM level WHERE grew AND own > concurrency
     AND EXISTS (SELECT FROM placed AS p WHERE p.queue_name = level AND p.is_new)
  UNION ALL SELECT 'total of ' || level FROM level WHERE grew AND taken > total
  UNION ALL SELECT 'pause of ' || level FROM level WHERE grew AND paused
  UNION ALL SELECT 'tokens of ' || level FROM level WHERE started + open > burst
  UNION ALL SELECT format('job %s precedes %s', w.id, p.id)
    FROM placed AS p JOIN waiting AS w USING (queue_name) JOIN level AS l ON l.level = queue_name
   WHERE NOT l.is_strict AND (p.is_new OR (SELECT m.is_so FROM may_have_more AS m) AND NOT EXISTS (
           SELECT FROM level AS f WHERE f.level = ANY (p.levels) AND f.is_fair) AND NOT EXISTS (
           SELECT FROM placed AS o
            WHERE o.queue_name = p.queue_name AND o.was = 'ready' AND o.is_locked
              AND (o.priority, o.run_at, o.id) > (p.priority, p.run_at, p.id)))
     AND p.was <> 'running' AND NOT p.is_locked
     AND (w.priority, w.run_at, w.id) < (p.priority, p.run_at, p.id)
  UNION ALL SELECT format('job %s keeps the place of %s', k.id, p.id)
    FROM placed AS p JOIN job AS k USING (queue_name) JOIN level AS l ON l.level = queue_name
   WHERE l.is_strict AND p.is_new AND NOT p.keeps_place AND k.keeps_place
  UNION ALL SELECT format('job %s is left', w.id)
    FROM waiting AS w
   WHERE (SELECT m.is_so FROM may_have_more AS m) AND w.own < w.concurrency
     AND NOT EXISTS (SELECT FROM level AS l WHERE l.level = ANY (w.levels)
                        AND (l.taken >= l.total OR l.burst IS NOT NULL));
END $$;

-- Claims once and judges what came of it. A claim that continues in a transaction may leave what an
-- earlier one has left there. The judge does not know when a claim looked at due times, so the
-- judge leaves out a claim during which a job falls due.
CREATE FUNCTION contract.claim(seed float8, claim_number int, c contract.call, continues boolean)
  RETURNS boolean
  LANGUAGE plpgsql AS $$
DECLARE
  before pulse.job[] := ARRAY(SELECT j FROM pulse.job AS j);
  locked bigint[] := '{}';
  isolated bigint := (SELECT h.isolated_job_id FROM pulse.heartbeat AS h
                       WHERE h.worker_id = c.worker);
  is_holding boolean := random() < 0.2;
  threshold interval := current_setting('pulse.sweep_threshold')::interval;
  began timestamptz;
  ended timestamptz;
  is_doubtful boolean;
  all_jobs contract.job[];
  got bigint[];
  expected bigint[];
  problems text[];
  marked text[] := ARRAY(SELECT l.level FROM contract.level AS l
                          WHERE pulse_internal.is_marked(l.level));
BEGIN
  IF is_holding THEN
    locked := ARRAY(SELECT b.id FROM unnest(before) AS b WHERE b.state <> 'running'
                       AND random() < 0.15);
    PERFORM dblink_exec('holder', 'BEGIN');
    locked := ARRAY(SELECT t.id FROM dblink('holder', format(
        'SELECT id FROM pulse.job WHERE id = ANY (%L) FOR UPDATE SKIP LOCKED', locked))
      AS t (id bigint));
  END IF;
  began := pulse.now();
  WITH claimed AS MATERIALIZED (
    SELECT r.* FROM pulse.claim(c.worker, c.max_jobs, c.tasks, c.forbidden, c.start_jobs)
           WITH ORDINALITY AS r),
  noted AS (
    INSERT INTO explain.started SELECT r.id, r.queue_name FROM claimed AS r)
  SELECT coalesce(array_agg(r.id ORDER BY r.ordinality), '{}') INTO got FROM claimed AS r;
  ended := pulse.now();
  is_doubtful := EXISTS (
    SELECT FROM unnest(before) AS b, unnest(ARRAY[b.run_at, b.run_at + threshold]) AS falls_due
     WHERE falls_due BETWEEN began AND ended);
  all_jobs := ARRAY(SELECT j FROM contract.jobs(before, got, locked, ended) AS j);
  expected := contract.handed_out(all_jobs, c, isolated, ended - threshold);
  problems := ARRAY(SELECT p FROM contract.problems(all_jobs, c, continues) AS p);
  IF NOT is_doubtful AND (got <> expected OR problems <> '{}') THEN
    INSERT INTO contract.breach
    SELECT seed, claim_number, c, problems, got, expected, marked,
           (SELECT jsonb_agg(jsonb_strip_nulls(to_jsonb(j))
                             ORDER BY j.queue_name, j.priority, j.run_at, j.id)
              FROM unnest(all_jobs) AS j),
           (SELECT jsonb_agg(jsonb_strip_nulls(to_jsonb(q))) FROM pulse.queue_settings AS q);
  END IF;
  INSERT INTO contract.tally AS t
  SELECT * FROM (VALUES ('claims', 1), ('doubtful', is_doubtful::int),
    ('claimed', cardinality(got)), ('placed', (
      SELECT count(*)::int FROM unnest(all_jobs) AS j WHERE j.was = 'parked' AND j.is_got)),
    ('opened', (SELECT count(*)::int FROM unnest(all_jobs) AS j
                 WHERE j.was = 'parked' AND j.became = 'ready'))) AS v
  ON CONFLICT (what) DO UPDATE SET number = t.number + EXCLUDED.number;
  IF is_holding THEN
    PERFORM dblink_exec('holder', 'ROLLBACK');
    PERFORM pulse_internal.reconcile_queues();  -- as a sweep: a lock that ends marks no queue
  END IF;
  RETURN true;
END $$;

-- A claim that is undone, by its savepoint or its transaction, leaves nothing.
CREATE PROCEDURE contract.undo(c contract.call)
  LANGUAGE plpgsql AS $$
DECLARE
  is_savepoint boolean := random() < 0.5;
BEGIN
  BEGIN
    PERFORM pulse.claim(c.worker, c.max_jobs, c.tasks, c.forbidden, c.start_jobs);
    IF is_savepoint THEN
      RAISE 'undone';
    END IF;
  EXCEPTION WHEN raise_exception THEN
  END;
  IF is_savepoint THEN COMMIT; ELSE ROLLBACK; END IF;
END $$;

-- Jobs end, come back or change, and operators change limits.
CREATE PROCEDURE contract.go_on(workers bigint[])
  LANGUAGE plpgsql AS $$
DECLARE
  name text := coalesce((SELECT j.queue_name FROM pulse.job AS j WHERE j.queue_name IS NOT NULL
                          ORDER BY random() LIMIT 1), 'q1');
  waiting bigint[] := ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.state <> 'running'
                               AND random() < 0.2);
BEGIN
  PERFORM CASE explain.one_of('ends', 'ends', 'ends', 'back', 'back', 'none')
            WHEN 'ends' THEN pulse.complete(h.id, h.token)::text
            WHEN 'back' THEN pulse.fail(h.id, h.token, 'boom', random() < 0.8, interval '0') END
     FROM unnest(workers) AS w (id), pulse.held(w.id) AS h WHERE random() < 0.5;
  IF random() < 0.3 THEN
    PERFORM pulse.release(array_agg(h.id), array_agg(h.token))
       FROM unnest(workers) AS w (id), pulse.held(w.id) AS h WHERE random() < 0.3
     HAVING count(*) > 0;
  END IF;
  COMMIT;
  CASE explain.one_of('move', 'cancel', 'limit', 'limit', 'total', 'pause', 'add', 'add', 'late',
                      'last', 'none')
    WHEN 'move' THEN
      PERFORM pulse.reschedule_jobs(waiting, priority => floor(random() * 3)::int - 1);
    WHEN 'cancel' THEN PERFORM pulse.cancel_job(id) FROM unnest(waiting) AS w (id);
    WHEN 'limit' THEN
      PERFORM pulse.set_queue(name, 1 + floor(random() * 3)::int)
        WHERE name NOT IN (SELECT q.queue_name FROM pulse.queue AS q WHERE q.is_strict);
    WHEN 'total' THEN
      PERFORM pulse.set_queue(split_part(name, '/', 1), total => 1 + floor(random() * 5)::int);
    WHEN 'pause' THEN
      PERFORM pulse.set_queue(split_part(name, '/', 1), paused => random() < 0.5);
    WHEN 'add' THEN
      PERFORM pulse.add_job(explain.one_of('a', 'b', 'c'), queue_name => name,
                            priority => floor(random() * 5)::int - 2)
         FROM generate_series(1, ceil(random() * 4)::int);
    WHEN 'late' THEN
      UPDATE pulse.job SET start_by = pulse.now() - interval '1 s'
       WHERE id = ANY (waiting) AND id NOT IN (SELECT s.id FROM explain.started AS s);
    WHEN 'last' THEN
      UPDATE pulse.job SET max_attempts = attempts + 1 WHERE id = ANY (waiting);
    ELSE NULL;
  END CASE;
  COMMIT;
END $$;

CREATE PROCEDURE contract.judge_states(first int, count int)
  LANGUAGE plpgsql AS $$
DECLARE
  workers bigint[];
  call contract.call;
  continues boolean := false;
BEGIN
  FOR seed IN first .. first + count - 1 LOOP
    CALL explain.clear(seed);
    workers := ARRAY[(pulse.register_worker('earlier')).id, (pulse.register_worker('any')).id,
                     (pulse.register_worker('ab', '{a,b}')).id,
                     (pulse.register_worker('c', '{c}')).id];
    COMMIT;
    CALL explain.make_state(workers[1], false);
    IF random() < 0.03 THEN
      PERFORM pulse.add_job('a', queue_name => 'line' || n % 90) FROM generate_series(1, 120) AS n;
      COMMIT;
    END IF;
    FOR number IN 1 .. 6 LOOP
      call := (workers[ceil(random() * 4)], explain.one_of('1', '2', '3', '8', '20', '100')::int,
               CASE WHEN random() < 0.2 THEN '{a,c}' END, CASE WHEN random() < 0.2 THEN '{gpu}' END,
               CASE WHEN random() < 0.3 THEN floor(random() * 4) END);
      IF random() < 0.15 AND NOT continues THEN
        CALL contract.undo(call);
      END IF;
      PERFORM contract.claim(seed, number, call, continues);
      continues := false;
      CASE explain.one_of('commit', 'commit', 'commit', 'roll back', 'go on')
        WHEN 'commit' THEN COMMIT;
        WHEN 'roll back' THEN
          IF NOT EXISTS (SELECT FROM contract.breach) THEN ROLLBACK; END IF;
        ELSE
          continues := true;  -- in this transaction
          CONTINUE;
      END CASE;
      IF random() < 0.6 THEN CALL contract.go_on(workers); END IF;
    END LOOP;
    COMMIT;
    continues := false;
    EXIT WHEN EXISTS (SELECT FROM contract.breach);
  END LOOP;
END $$;
