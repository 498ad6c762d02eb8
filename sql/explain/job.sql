-- explain_job(): the answers of sql/explain/explain.sql in the order of their weight.

CREATE OR REPLACE FUNCTION pulse_internal.tasks_in_slots(worker_ids bigint[]) RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET jit = off AS $$
  SELECT string_agg(format('%s of task %L', t.jobs, t.identifier), ', '
                    ORDER BY t.jobs DESC, t.identifier COLLATE "C")
    FROM (SELECT j.identifier, count(*) AS jobs
            FROM pulse.job AS j
           WHERE j.id = ANY (ARRAY(
             SELECT r.id FROM unnest(worker_ids[1 : 10]) AS w (id)
              CROSS JOIN LATERAL unnest(pulse_internal.running_ids(w.id, 100)) AS r (id)
              LIMIT 100))
           GROUP BY j.identifier
           ORDER BY count(*) DESC, j.identifier COLLATE "C" LIMIT 5) AS t;
$$;
COMMENT ON FUNCTION pulse_internal.tasks_in_slots(bigint[]) IS
  'Names the tasks, five at most, whose jobs the workers run, and how many: of the first ten '
  'workers and the first 100 jobs. NULL: no job runs.';

-- Workers tell their slots and the flags that they forbid when they register, and when either
-- changes; the function concludes nothing from a worker that tells neither. Which slots of a worker
-- of several databases are free only the worker knows, so the function says that it cannot tell.
CREATE OR REPLACE FUNCTION pulse_internal.explain_fleet(
    identifier text, flags text[] = NULL, is_suspect boolean = false)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  fleet record;
  last_one record;
  obstacle text;
BEGIN
  SELECT array_agg(s.id) AS ids, array_agg(s.id) FILTER (WHERE s.alive) AS alive,
         array_agg(s.id) FILTER (WHERE s.alive AND s.may) AS may,
         array_agg(s.id) FILTER (WHERE s.alive AND s.may AND s.free) AS free,
         bool_and(s.shares_slots) FILTER (WHERE s.alive AND s.may AND s.free) AS all_share
    INTO fleet
    FROM (SELECT w.id, w.status = 'alive' AS alive,
                 NOT coalesce(w.forbidden_flags && explain_fleet.flags, false) AS may,
                 w.shares_slots,
                 CASE WHEN is_suspect
                   THEN cardinality(pulse_internal.running_ids(w.id, 1)) = 0
                   ELSE w.isolated_job_id IS NULL AND coalesce(
                     cardinality(pulse_internal.running_ids(w.id, w.slots)) < w.slots, true)
                   END AS free
            FROM pulse_internal.living_worker AS w
           WHERE w.tasks IS NULL OR explain_fleet.identifier = ANY (w.tasks)
           ORDER BY w.id) AS s;
  IF fleet.ids IS NULL THEN
    SELECT * INTO last_one FROM pulse_internal.last_servers(ARRAY[explain_fleet.identifier]);
    obstacle := (SELECT o.reason || ': ' || o.way_out
                   FROM pulse_internal.handler_obstacle(explain_fleet.identifier) AS o);
    RETURN NEXT pulse_internal.explained('fleet', 'unserved', format(
      'No living worker serves task %L; ', explain_fleet.identifier)
      || coalesce(obstacle,
                  'the last one, worker ' || last_one.worker_id || ' (' || last_one.name
                  || '), was seen at ' || last_one.seen_at || '.',
                  'none of the last 1,000 that ended did.'),
      NULL, NULL, CASE WHEN last_one.worker_id IS NOT NULL THEN ARRAY[last_one.worker_id] END);
  ELSIF fleet.alive IS NULL THEN
    RETURN NEXT pulse_internal.explained('fleet', 'drained', format(
      'Every living worker that serves task %L drains or stops.', explain_fleet.identifier),
      NULL, NULL, fleet.ids[1 : 100]);
  ELSIF fleet.may IS NULL THEN
    RETURN NEXT pulse_internal.explained('fleet', 'forbidden', format(
      'Every worker that serves task %L forbids a flag of the job: %s.', explain_fleet.identifier,
      array_to_string(explain_fleet.flags, ', ')), NULL, NULL, fleet.alive[1 : 100]);
  ELSIF fleet.free IS NULL THEN
    RETURN NEXT pulse_internal.explained('fleet', 'full', CASE WHEN is_suspect
      THEN 'It runs alone, and no worker that may have it is idle.'
      ELSE 'Every worker that may have it runs as many jobs as it has slots, or one that runs '
           'alone.' || coalesce(
             ' Among those jobs: ' || pulse_internal.tasks_in_slots(fleet.may) || '.', '') END,
      NULL, NULL, fleet.may[1 : 100]);
  ELSIF fleet.all_share THEN
    RETURN NEXT pulse_internal.explained('fleet', 'shared',
      'Every worker that has a slot for it by the jobs of this database shares its slots with '
      'other databases, whose jobs may have all of them.', NULL, NULL, fleet.free[1 : 100]);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_fleet(text, text[], boolean) IS
  'Explains why no present worker takes a job of this task with these flags.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_running(job pulse.job)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  is_known boolean := pulse_internal.try_lock_tables('{}', '{heartbeat,worker,clock}') IS NULL;
  adds_letter boolean := pulse_internal.try_lock_tables('{}', '{task}') IS NULL
                         AND pulse_internal.dead_letter_task(job.identifier) IS NOT NULL;
  lives boolean := false;
BEGIN
  IF is_known THEN  -- apart, because even the planner waits for a locked table
    lives := EXISTS (
      SELECT FROM pulse_internal.living_worker AS w WHERE w.id = job.worker_id);
  END IF;
  RETURN NEXT pulse_internal.explained('job', 'running', format(
    'Worker %s has it since %s', job.worker_id, job.claimed_at)
    || coalesce(' and was asked at ' || job.cancel_requested_at || ' to cancel it', '')
    || CASE WHEN lives THEN '.' WHEN is_known
         THEN '; that worker is lost, and the next sweep recovers the job.'
         ELSE '; whether that worker lives cannot be read.' END,
    NULL, NULL, ARRAY[job.worker_id]);
  IF NOT lives THEN
    RETURN QUERY
    SELECT e.* FROM pulse_internal.recovery_blocker AS b,
           pulse_internal.explained('job', 'locked', b.detail || ', which sweeps need for it.')
             AS e
     WHERE CASE b.only_for WHEN 'pauses' THEN job.queue_name IS NOT NULL
             WHEN 'letters' THEN adds_letter ELSE true END LIMIT 10;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_running(pulse.job) IS
  'Explains which worker runs a job, and which locks keep sweeps from the recovery of the job.';

-- A completed job leaves no row where nothing keeps the job; an attempt of any other job may be
-- left.
CREATE OR REPLACE FUNCTION pulse_internal.explain_ended(job_id bigint)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  finished pulse.finished_job;
  last_attempt pulse.attempt;
BEGIN
  SELECT * INTO finished FROM pulse.finished_job AS f WHERE f.id = explain_ended.job_id;
  IF finished.id IS NOT NULL THEN
    RETURN NEXT pulse_internal.explained('job', finished.state::text, format(
      'It ended as %s at %s, after %s of %s attempts%s%s.%s', finished.state, finished.finished_at,
      finished.attempts, finished.max_attempts,
      coalesce(', the last by worker ' || finished.worker_id, ''),
      CASE WHEN finished.cancelled_by IS NULL THEN ''
           WHEN finished.starts_when = 'failed' THEN ', as all jobs that it waited for completed'
           ELSE ', because of job ' || finished.cancelled_by END,
      concat(' Its dead letter is job ' || finished.dead_letter_id || '.',
             ' It is the dead letter of job ' || finished.dead_letter_of || '.')), NULL,
      nullif(array_remove(ARRAY[finished.cancelled_by, finished.dead_letter_id,
                                finished.dead_letter_of], NULL), '{}'),
      CASE WHEN finished.worker_id IS NOT NULL THEN ARRAY[finished.worker_id] END);
    RETURN;
  END IF;
  IF explain_ended.job_id IS NULL THEN
    PERFORM pulse_internal.raise_unknown_job(NULL);
  END IF;
  PERFORM pulse_internal.check_given_out(ARRAY[explain_ended.job_id]);
  SELECT * INTO last_attempt FROM pulse.attempt AS a WHERE a.job_id = explain_ended.job_id
   ORDER BY a.ended_at DESC LIMIT 1;
  RETURN NEXT pulse_internal.explained('job', 'gone',
    'It has no row: it completed and is not kept, it was removed or pruned, or the transaction '
    'that adds it has not committed.'
    || coalesce(' Its last attempt on record ended at ' || last_attempt.ended_at || ' ('
                || last_attempt.outcome || ').', ''),
    NULL, NULL,
    CASE WHEN last_attempt.worker_id IS NOT NULL THEN ARRAY[last_attempt.worker_id] END);
END $$;
COMMENT ON FUNCTION pulse_internal.explain_ended(bigint) IS
  'Explains how, when and by which worker a job ended. Raises PU005 for an id never given out, or '
  'lost in a failover.';

-- Until a claim or sweep has judged the job, a job with a queue is not yet in the line of the
-- queue.
CREATE OR REPLACE FUNCTION pulse_internal.explain_parents(job pulse.job)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  outcome text;
  because bigint;
  waited int;
  live bigint[] := ARRAY(
    SELECT p.id
      FROM (SELECT d.parents FROM pulse.dependency AS d
             WHERE d.child_id = job.id ORDER BY d.parents_from) AS d
     CROSS JOIN unnest(pulse_internal.live_ids(d.parents, true)) AS p (id) LIMIT 101);
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.job AS p WHERE p.id = job.waits_on) THEN
    SELECT v.outcome, v.parent_id INTO outcome, because FROM pulse_internal.judge_wait(job) AS v;
  END IF;
  IF outcome IN ('cancelled', 'not needed') THEN
    RETURN NEXT pulse_internal.explained('job', 'cancelled', format(
      'The next claim or sweep ends it: %s.',
      pulse_internal.cancelled_because(outcome, because)), NULL, ARRAY[because]);
  ELSIF live <> '{}' THEN
    SELECT sum(cardinality(d.parents)) INTO waited FROM pulse.dependency AS d
     WHERE d.child_id = job.id;
    RETURN NEXT pulse_internal.explained('job', 'parents', format(
      'It starts when all jobs that it waits for have %s; %s of %s live: %s.',
      CASE job.starts_when WHEN 'failed' THEN 'ended, at least one without completing'
        ELSE job.starts_when END,
      CASE WHEN cardinality(live) > 100 THEN 'more than 100' ELSE cardinality(live)::text END,
      waited, pulse_internal.names_of(live)), NULL, live[1 : 100]);
  ELSIF job.queue_name IS NOT NULL THEN
    RETURN NEXT pulse_internal.explained('job', 'parents',
      'All jobs that it waited for have ended; the next claim or sweep sends it to its queue.');
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_parents(pulse.job) IS
  'Explains for which parents a job waits, or that the job ends because of a parent.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_waiting(job pulse.job)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 3
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  is_due boolean := job.run_at <= pulse.now();
  is_expired boolean := coalesce(job.start_by < pulse.now(), false);
  passes boolean := true;
  promotion record;
BEGIN
  RETURN QUERY SELECT * FROM pulse_internal.explain_closed();
  RETURN QUERY SELECT * FROM pulse_internal.explain_lock(job.id);
  IF is_expired THEN
    RETURN NEXT pulse_internal.explained('job', 'expired', format(
      'No claim took it by %s; the next sweep ends it.', job.start_by));
  END IF;
  IF NOT is_due THEN
    RETURN NEXT pulse_internal.explained('job', 'future', format('It is due at %s.', job.run_at),
      job.run_at);
  END IF;
  IF job.waits_on IS NOT NULL THEN
    RETURN QUERY SELECT * FROM pulse_internal.explain_parents(job);
    passes := NOT FOUND;
  ELSIF job.key_is_undecided THEN
    RETURN QUERY SELECT * FROM pulse_internal.explain_key(job);
    passes := false;
  ELSIF job.queue_name IS NOT NULL THEN
    SELECT * INTO promotion FROM pulse_internal.promotion_of(
      job.queue_name, CASE WHEN job.state = 'parked' THEN job.id ELSE 0 END);
    passes := CASE job.state WHEN 'parked' THEN job.id = ANY (promotion.opened)
                ELSE job.id <> ALL (promotion.parked) END;
    IF NOT passes THEN
      RETURN QUERY SELECT * FROM pulse_internal.explain_queue(job, promotion.opened);
    END IF;
  END IF;
  RETURN QUERY SELECT * FROM pulse_internal.explain_fleet(job.identifier, job.flags,
    pulse_internal.is_suspect(job.crashes, pulse_internal.max_crashes_of(job.identifier)));
  IF is_due AND passes AND NOT is_expired THEN
    RETURN QUERY SELECT * FROM pulse_internal.explain_line(job);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_waiting(pulse.job) IS
  'Explains why a job waits, in the order in which the reasons block the job.';

-- Of several parents the path follows a waiting parent: running parents end by themselves.
CREATE OR REPLACE FUNCTION pulse_internal.path_to_root(job_id bigint, max_jobs int)
  RETURNS bigint[]
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  path bigint[] := '{}';
  next_id bigint := job_id;
BEGIN
  LOOP
    SELECT p.id INTO next_id
      FROM (SELECT l.id
              FROM (SELECT d.parents FROM pulse.dependency AS d
                     WHERE d.child_id = next_id ORDER BY d.parents_from) AS d
             CROSS JOIN unnest(pulse_internal.live_ids(d.parents, true)) AS l (id) LIMIT 100) AS l
      JOIN pulse.job AS p ON p.id = l.id
     ORDER BY p.state = 'running', p.id LIMIT 1;
    EXIT WHEN next_id IS NULL OR next_id = job_id OR next_id = ANY (path);
    path := path || next_id;
    EXIT WHEN cardinality(path) >= max_jobs;
  END LOOP;
  RETURN path;
END $$;
COMMENT ON FUNCTION pulse_internal.path_to_root(bigint, int) IS
  'Returns a parent of this job, a parent of the parent, and so on, at most max_jobs; of the live '
  'parents of each job the function reads the first 100. The path meets a job once.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_root(job_id bigint)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 100;
  path bigint[] := pulse_internal.path_to_root(job_id, bound);
  root pulse.job;
  reason pulse_internal.explanation;
BEGIN
  SELECT * INTO root FROM pulse.job AS j WHERE j.id = path[cardinality(path)];
  IF root.id IS NULL THEN
    RETURN;
  ELSIF root.state = 'running' THEN
    SELECT * INTO reason FROM pulse_internal.explain_running(root) LIMIT 1;
  ELSE
    SELECT * INTO reason FROM pulse_internal.explain_waiting(root) LIMIT 1;
  END IF;
  RETURN NEXT pulse_internal.explained('job', 'root', format(
    'The chain of those %s job %s of task %L%s, which %s. %s',
    CASE cardinality(path) WHEN bound THEN 'is followed to' ELSE 'begins with' END,
    root.id, root.identifier, CASE WHEN cardinality(path) > 1 THEN ', by way of '
      || pulse_internal.names_of(path[1 : cardinality(path) - 1]) ELSE '' END,
    concat(CASE root.state WHEN 'ready' THEN 'waits' WHEN 'running' THEN 'runs'
             ELSE 'is parked' END, ' in queue ' || quote_literal(root.queue_name)),
    reason.detail), reason.until, path, reason.worker_ids);
END $$;
COMMENT ON FUNCTION pulse_internal.explain_root(bigint) IS
  'Explains at which job a chain of jobs that wait for each other stands, and why the job there '
  'waits.';

CREATE OR REPLACE FUNCTION pulse.explain_job(job_id bigint)
  RETURNS TABLE (kind text, blocker text, detail text, until timestamptz, job_ids bigint[],
                 worker_ids bigint[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 3
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  job pulse.job;
BEGIN
  PERFORM pulse_internal.refuse_standby('explain_job()');
  SELECT * INTO job FROM pulse.job AS j WHERE j.id = explain_job.job_id;
  IF job.id IS NULL THEN
    RETURN QUERY SELECT * FROM pulse_internal.explain_ended(explain_job.job_id);
  ELSIF job.state = 'running' THEN
    RETURN QUERY SELECT * FROM pulse_internal.explain_running(job);
  ELSE
    RETURN QUERY SELECT * FROM pulse_internal.explain_waiting(job);
    IF EXISTS (SELECT FROM pulse.job AS p WHERE p.id = job.waits_on) THEN
      RETURN QUERY SELECT * FROM pulse_internal.explain_root(job.id);
    END IF;
  END IF;
END $$;
COMMENT ON FUNCTION pulse.explain_job(bigint) IS
  'Explains why a job does not run, a row for each reason. kind job (such as future, locked, '
  'parents, key undecided, running, how the job ended, and root: the job at which the chain of '
  'parents stands, at most 100 jobs on, and why) and queue (paused, full, behind): no claim gets '
  'the job, not even a claim of an idle worker that serves the job''s task alone. kind fleet: the '
  'present workers do not take the job (unserved, drained, forbidden, full), or may have no slot '
  'for it (shared). kind line: the place of the job among the due jobs of the task, and if the '
  'task keeps completed jobs, when the job starts at the rate of the last minutes. until: when '
  'the reason ends without a change by an operator, if the time is known; job_ids and worker_ids: '
  'the jobs and workers concerned, at most 100. Locks nothing. Raises PU005 for an id never given '
  'out or lost in a failover, 25006 '
  'on a standby.';
