-- Random flows, a random life, a random operation and its undo, for undo.pl. What stood before is
-- compared row by row with what stands after, less what docs/operations.md lists as not restored.
CREATE SCHEMA undo;

CREATE TABLE undo.row (moment text, kind text, id bigint, content jsonb);
-- What differed, and which of the rounds had which action with how many jobs.
CREATE TABLE undo.difference (seed int, action text, kind text, id bigint, was jsonb, now jsonb);
CREATE TABLE undo.round (seed int, action text, changed bigint, skipped bigint, undone bigint,
                         left_alone bigint);
CREATE TABLE undo.broken (seed int, action text, violation text);

CREATE FUNCTION undo.one_of(VARIADIC choices text[]) RETURNS text
  LANGUAGE sql VOLATILE AS $$
  SELECT nullif(choices[1 + floor(random() * cardinality(choices))::int], '') $$;

CREATE PROCEDURE undo.clear(seed int)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pulse.deregister_worker(w.id) FROM pulse.worker AS w WHERE w.state = 'alive';
  DELETE FROM pulse.job;
  DELETE FROM pulse.finished_job;
  DELETE FROM pulse.dependency;
  DELETE FROM pulse.flow_job;
  DELETE FROM pulse.flow;
  DELETE FROM pulse.attempt;
  DELETE FROM pulse.operation_job;
  DELETE FROM pulse.operation;
  DELETE FROM pulse.queue_pause;
  DELETE FROM undo.row;
  PERFORM setseed(seed / 10000000.0);
  COMMIT;
END $$;

-- Sweeps and promotions look at all that may end, start or open.
CREATE PROCEDURE undo.settle()
  LANGUAGE plpgsql AS $$
DECLARE
  seen text;
  now_seen text;
BEGIN
  FOR i IN 1 .. 30 LOOP
    PERFORM pulse.sweep();
    COMMIT;
    PERFORM pulse_internal.promote_marked(1000);
    COMMIT;
    now_seen := (SELECT md5(string_agg(j.id || '/' || j.state || coalesce(j.waits_on, 0), ' '
                                       ORDER BY j.id)) FROM pulse.job AS j);
    EXIT WHEN now_seen IS NOT DISTINCT FROM seen AND i > 2;
    seen := now_seen;
  END LOOP;
END $$;

-- A third of the jobs waits for none; keys are few, so that they meet.
CREATE FUNCTION undo.random_flow() RETURNS json
  LANGUAGE sql VOLATILE AS $$
  SELECT json_agg(json_strip_nulls(json_build_object(
           'key', j.n::text, 'identifier', undo.one_of('a', 'b', 'c'),
           'after', (SELECT json_agg(p::text) FROM generate_series(1, j.n - 1) AS p
                      WHERE random() < j.share),
           'starts_when', undo.one_of('completed', 'completed', 'completed', 'ended', 'failed'),
           'queue_name', undo.one_of('', '', 'q', 'strict'),
           'job_key', CASE WHEN random() < 0.15 THEN 'k' || floor(random() * 9) END,
           'start_by', CASE WHEN random() < 0.3 THEN now() + interval '1 day' END,
           'priority', floor(random() * 5)::int, 'max_attempts', 1 + floor(random() * 3)::int,
           'flags', CASE WHEN random() < 0.2 THEN '["f"]'::json END,
           'payload', json_build_object('n', j.n))))
    FROM (SELECT n, CASE WHEN random() < 0.67 THEN 0.4 ELSE 0 END AS share
            FROM generate_series(1, 3 + floor(random() * 7)::int) AS n) AS j $$;

-- Two flows may name one key.
CREATE PROCEDURE undo.add_flows()
  LANGUAGE plpgsql AS $$
DECLARE
  last_job bigint;
BEGIN
  FOR i IN 1 .. 2 LOOP
    BEGIN
      PERFORM pulse.add_flow(undo.random_flow(), 'random');
    EXCEPTION WHEN SQLSTATE 'PU004' THEN
      NULL;  -- a key would close a circle
    END;
    COMMIT;
  END LOOP;
  -- A job that waits for younger ones; there is none where both flows were refused.
  last_job := coalesce((SELECT max(j.id) FROM pulse.job AS j), (pulse.add_job('c')).id);
  PERFORM pulse.add_dependency(last_job, ARRAY[(pulse.add_job('a')).id, (pulse.add_job('b')).id]);
  -- Jobs that were claimed and released before add_dependency let them wait.
  UPDATE pulse.job AS j
     SET last_error = 'earlier', recovered = 'stalled', stage = 'first', progress = 0.25,
         message = 'words', last_activity_at = '2020-01-01'
   WHERE j.waits_on IS NOT NULL AND random() < 0.3;
  COMMIT;
END $$;

-- One thing that happens to some jobs.
CREATE PROCEDURE undo.live(worker_id bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  chosen bigint[] := ARRAY(SELECT j.id FROM pulse.job AS j WHERE random() < 0.2);
  ended bigint := (SELECT f.id FROM pulse.finished_job AS f WHERE f.state <> 'completed'
                    ORDER BY random() LIMIT 1);
BEGIN
  CASE undo.one_of('claim', 'claim', 'claim', 'end', 'end', 'end', 'end', 'progress', 'cancel',
                   'fail', 'retry', 'retry', 'back', 'lost', 'late', 'complete', 'move')
    WHEN 'claim' THEN PERFORM pulse.claim(worker_id, 1 + floor(random() * 4)::int);
    WHEN 'end' THEN
      PERFORM CASE WHEN random() < 0.6 THEN pulse.complete(h.id, h.token, '{"r": 1}')::text
                ELSE pulse.fail(h.id, h.token, 'boom', random() < 0.5, interval '0') END
         FROM pulse.held(worker_id) AS h WHERE random() < 0.7;
    WHEN 'progress' THEN
      PERFORM pulse.progress(h.id, h.token, 'words', 0.5, '{"page": 3}', 'stage')
         FROM pulse.held(worker_id) AS h;
    WHEN 'cancel' THEN PERFORM pulse.cancel_job(i, 'by hand') FROM unnest(chosen) AS i;
    WHEN 'fail' THEN PERFORM pulse.permanently_fail_jobs(chosen[1 : 2]);
    WHEN 'retry' THEN
      IF ended IS NOT NULL THEN
        PERFORM pulse.retry_job(ended);
      END IF;
    WHEN 'back' THEN
      PERFORM pulse.snooze(h.id, h.token, '0') FROM pulse.held(worker_id) AS h
        WHERE random() < 0.3;
      PERFORM pulse.release(array_agg(h.id), array_agg(h.token)) FROM pulse.held(worker_id) AS h
        WHERE random() < 0.3 HAVING count(*) > 0;
    WHEN 'lost' THEN
      worker_id := (pulse.register_worker('victim')).id;
      PERFORM pulse.claim(worker_id, 2);
      PERFORM pulse.declare_lost(worker_id, 'killed');
    WHEN 'late' THEN
      UPDATE pulse.job AS j SET start_by = pulse.now() - interval '1 s'
       WHERE j.start_by IS NOT NULL AND j.state <> 'running' AND random() < 0.3;
    WHEN 'complete' THEN PERFORM pulse.complete_jobs(chosen[1 : 1]);
    WHEN 'move' THEN
      PERFORM pulse.reschedule_jobs(ARRAY(SELECT j.id FROM pulse.job AS j
        WHERE j.id = ANY (chosen) AND j.state <> 'running'), priority => floor(random() * 5)::int);
  END CASE;
EXCEPTION WHEN SQLSTATE 'PU010' OR SQLSTATE 'PU004' THEN
  NULL;  -- its key is taken
END $$;

-- --- what is compared ---------------------------------------------------------------------------

CREATE FUNCTION undo.look(moment text) RETURNS void
  LANGUAGE sql VOLATILE AS $$
  DELETE FROM undo.row AS r WHERE r.moment = look.moment;
  INSERT INTO undo.row
    SELECT moment, 'job', j.id, to_jsonb(j) FROM pulse.job AS j
    UNION ALL SELECT moment, 'finished_job', f.id, to_jsonb(f) FROM pulse.finished_job AS f
    UNION ALL SELECT moment, 'flow_job', f.job_id, to_jsonb(f) FROM pulse.flow_job AS f
    UNION ALL SELECT moment, 'attempt', a.job_id, jsonb_agg(a ORDER BY a.token)
                FROM pulse.attempt AS a GROUP BY a.job_id
    UNION ALL SELECT moment, 'queue_pause', p.job_id, to_jsonb(p) FROM pulse.queue_pause AS p
    UNION ALL SELECT moment, 'dependency', d.child_id, jsonb_agg(p ORDER BY p)
                FROM pulse.dependency AS d CROSS JOIN unnest(d.parents) AS p GROUP BY d.child_id;
$$;

-- Without what is not restored: the revision, when the row was changed, the place of a claimed job
-- in its queue, which of a queue's jobs is open, which of its parents a job watches, and because of
-- which of several it is cancelled. is_again: the job has been cancelled once more since.
CREATE FUNCTION undo.compared(kind text, content jsonb, is_again boolean) RETURNS jsonb
  LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN kind = 'job' THEN content - '{revision,updated_at}'::text[] || jsonb_build_object(
      'succession', nullif(content -> 'succession', '1'),
      'waits_on', content -> 'waits_on' <> 'null',
      'state', CASE WHEN content ->> 'state' = 'running' THEN 'running' ELSE 'waits' END,
      'index_lane', CASE WHEN content ->> 'state' = 'running' THEN content ->> 'index_lane' END)
    WHEN kind = 'finished_job' AND content -> 'cancelled_by' <> 'null' THEN
      content - '{revision,last_error}'::text[] || jsonb_build_object(
        'cancelled_by', true,
        'finished_at', CASE WHEN NOT is_again THEN content -> 'finished_at' END)
    WHEN kind = 'finished_job' THEN content - 'revision'
    ELSE content END $$;

-- What an action changes in the row of a job that goes on meanwhile; NULL: it cannot go on.
CREATE FUNCTION undo.part_of(action text, was jsonb) RETURNS text[]
  LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN jsonb_typeof(was) = 'array' THEN NULL
           WHEN action = 'reschedule' THEN '{run_at,priority,attempts,max_attempts,crashes}'
           WHEN action = 'cancel' AND was ->> 'state' = 'running'
             THEN '{token,cancel_requested_at,cancel_reason}' END::text[] $$;

CREATE FUNCTION undo.only(content jsonb, names text[]) RETURNS jsonb
  LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN names IS NULL THEN content
           ELSE (SELECT jsonb_object_agg(k.key, k.value) FROM jsonb_each(content) AS k
                  WHERE k.key = ANY (names)) END $$;

-- Of jobs that went on meanwhile, those are compared that came back.
CREATE FUNCTION undo.compare(seed int, action text, operation bigint, went_on boolean)
  RETURNS void
  LANGUAGE sql VOLATILE AS $$
  WITH noted AS (
    SELECT n.job_id AS id, n.undo = 'done' AS is_back FROM pulse.operation_job AS n
     WHERE n.operation_id = operation
  ), pair AS (
    SELECT kind, id, b.content AS was, a.content AS now
      FROM (SELECT * FROM undo.row AS r WHERE r.moment = 'before') AS b
      FULL JOIN (SELECT * FROM undo.row AS r WHERE r.moment = 'after') AS a USING (kind, id)
  ), listed AS (
    -- Jobs that an end let start.
    SELECT p.id FROM pair AS p
     WHERE p.kind = 'job' AND action IN ('cancel', 'fail')
       AND p.was -> 'waits_on' <> 'null' AND p.now -> 'waits_on' = 'null'
       AND p.was ->> 'starts_when' IN ('ended', 'failed')
    UNION ALL
    -- Jobs that a retry brought back, and that wait for another parent, too, or have expired since,
    -- some of them before a later step of the operation retried them.
    SELECT f.id FROM pair AS f LEFT JOIN pair AS j ON j.kind = 'job' AND j.id = f.id
     WHERE action = 'retry' AND f.kind = 'finished_job' AND f.was -> 'cancelled_by' <> 'null'
       AND (f.now ->> 'state' = 'expired'
            OR f.id NOT IN (SELECT n.id FROM noted AS n)
               AND f.now IS NULL AND j.now -> 'waits_on' <> 'null')
  )
  INSERT INTO undo.difference
    SELECT seed, action, p.kind, p.id, p.was, p.now
      FROM pair AS p LEFT JOIN noted AS n ON n.id = p.id
     CROSS JOIN LATERAL (SELECT CASE WHEN went_on AND p.kind <> 'finished_job'
                                  THEN undo.part_of(action, p.was) END AS part) AS o
     WHERE (p.id NOT IN (SELECT l.id FROM listed AS l)
            OR p.kind IN ('flow_job', 'attempt'))
       AND (NOT went_on OR n.is_back AND (p.kind IN ('job', 'finished_job')
                                          OR p.kind = 'dependency' AND action <> 'reschedule'))
       AND undo.only(undo.compared(p.kind, p.was, n.id IS NULL), o.part)
           IS DISTINCT FROM undo.only(undo.compared(p.kind, p.now, n.id IS NULL), o.part);
$$;

-- --- a round ------------------------------------------------------------------------------------

CREATE FUNCTION undo.random_operation(seed int) RETURNS pulse.operation
  LANGUAGE plpgsql AS $$
DECLARE
  action text := ('{retry,cancel,fail,retry,cancel,reschedule}'::text[])[1 + seed % 6];
  share float8 := 0.1 + random();
BEGIN
  RETURN pulse.start_operation(action, json_build_object('ids', ARRAY(
      SELECT j.id FROM pulse.job AS j WHERE action <> 'retry' AND random() < share
      UNION ALL
      SELECT f.id FROM pulse.finished_job AS f WHERE action = 'retry' AND random() < share)),
    CASE action WHEN 'reschedule' THEN json_build_object(
      'priority', floor(random() * 5)::int, 'attempts', floor(random() * 2)::int) END);
END $$;

CREATE PROCEDURE undo.play(first int, count int)
  LANGUAGE plpgsql AS $$
DECLARE
  worker_id bigint;
  operation pulse.operation;
  undone pulse.operation;
  went_on boolean;
BEGIN
  FOR seed IN first .. first + count - 1 LOOP
    CALL undo.clear(seed);
    worker_id := (pulse.register_worker('ann')).id;
    CALL undo.add_flows();
    FOR i IN 1 .. floor(random() * 25) LOOP
      CALL undo.live(worker_id);
      COMMIT;
    END LOOP;
    CALL undo.settle();
    PERFORM undo.look('before');
    went_on := random() < 0.4;
    operation := undo.random_operation(seed);
    LOOP
      operation := pulse.run_operation(operation.id, 1 + floor(random() * 5)::int);
      COMMIT;
      EXIT WHEN operation.state <> 'running';
      IF random() < 0.3 THEN
        CALL undo.settle();
      END IF;
    END LOOP;
    CALL undo.settle();
    IF went_on THEN
      FOR i IN 1 .. 3 + floor(random() * 6) LOOP
        CALL undo.live(worker_id);
        COMMIT;
      END LOOP;
    END IF;
    undone := pulse.undo_operation(operation.id);
    LOOP
      undone := pulse.run_operation(undone.id,
                                    CASE WHEN went_on THEN 1000
                                      ELSE 1 + floor(random() * 5)::int END);
      EXIT WHEN undone.state <> 'running';
      COMMIT;
      IF random() < 0.3 THEN
        CALL undo.settle();
      END IF;
    END LOOP;
    IF NOT went_on THEN
      COMMIT;
      CALL undo.settle();
    END IF;
    PERFORM undo.look('after');
    PERFORM undo.compare(seed, operation.action, operation.id, went_on);
    COMMIT;
    CALL undo.settle();
    INSERT INTO undo.broken SELECT seed, operation.action, v::text FROM pulse.verify() AS v;
    INSERT INTO undo.broken SELECT seed, operation.action, 'not met: ' || n.job_id
      FROM pulse.operation_job AS n WHERE n.operation_id = operation.id AND n.undo IS NULL;
    INSERT INTO undo.broken SELECT seed, operation.action, 'left alone: ' || undone.skipped_because
      WHERE undone.skipped > 0 AND NOT went_on;
    INSERT INTO undo.round VALUES (seed, operation.action, operation.changed, operation.skipped,
                                   undone.changed, undone.skipped);
    COMMIT;
  END LOOP;
END $$;
