-- Why a job does not run. `job` and `queue` name the reasons that keep a claim of an idle worker
-- from the job (P15), `fleet` the reasons that keep the present workers, `line` the jobs that come
-- before it. The functions read everything in the snapshot of the call, and lock nothing. The rules
-- are those of extension/claim and extension/queue; test/e2e/explain.pl compares the answers with
-- claims in random states.

CREATE OR REPLACE FUNCTION pulse_internal.names_of(ids bigint[]) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT CASE cardinality(ids) WHEN 1 THEN '' || ids[1]
           ELSE array_to_string(ids[1 : 10], ', ')
                || CASE WHEN cardinality(ids) > 10 THEN ' and more' ELSE '' END END;
$$;
COMMENT ON FUNCTION pulse_internal.names_of(bigint[]) IS
  'Returns at most ten of these ids as a text.';

CREATE OR REPLACE FUNCTION pulse_internal.explained(
    kind text, blocker text, detail text, until timestamptz = NULL, job_ids bigint[] = NULL,
    worker_ids bigint[] = NULL)
  RETURNS pulse_internal.explanation
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ROW(kind, blocker, detail, until, job_ids, worker_ids)::pulse_internal.explanation;
COMMENT ON FUNCTION
  pulse_internal.explained(text, text, text, timestamptz, bigint[], bigint[]) IS
  'Returns one row of an explanation.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_closed() RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  standing text := pulse_internal.installation_standing();
BEGIN
  IF NOT current_setting('pulse.claims')::boolean THEN
    RETURN NEXT pulse_internal.explained('job', 'claims off',
      'The setting pulse.claims is off in this session.');
  END IF;
  IF standing IN ('copy', 'subscribed') THEN
    RETURN NEXT pulse_internal.explained('job', 'not adopted', CASE standing
      WHEN 'copy' THEN 'This is a copy: SELECT pulse.adopt_installation() lets its jobs run.'
      ELSE 'A subscription of this database writes pulse.job.' END);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_closed() IS
  'Explains why no claim of this session gets any job: claims are off, or this is a copy.';

CREATE OR REPLACE FUNCTION pulse_internal.holder_named(holder xid, does text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN coalesce(
    (SELECT format('Process %s %s in a transaction', l.pid, does)
              || coalesce(' since ' || a.xact_start, '')
       FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
      WHERE l.locktype = 'transactionid' AND l.transactionid = holder AND l.granted
        AND l.pid IS NOT NULL LIMIT 1),
    (SELECT format('The prepared transaction %L %s', p.gid, does)
       FROM pg_prepared_xacts AS p WHERE p.transaction = holder),
    format('Transaction %s %s', holder, does));
END $$;
COMMENT ON FUNCTION pulse_internal.holder_named(xid, text) IS
  'Returns a sentence of which process, or which prepared transaction, does something; NULL where '
  'there is none.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_key(job pulse.job)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN NEXT pulse_internal.explained('job', 'key undecided', coalesce(
    pulse_internal.holder_named(pulse_internal.changer_of_key(job.job_key),
                                'adds or removes a job under its key')
      || '; the sweep after that lets the job wait on, or ends it.',
    'A transaction that added or removed a job under its key has ended; the next sweep lets the '
    'job wait on, or ends it.'));
END $$;
COMMENT ON FUNCTION pulse_internal.explain_key(pulse.job) IS
  'Explains who decides about the key of a job that came back meanwhile.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_lock(job_id bigint)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  holder xid := pulse_internal.locked_by(job_id);
BEGIN
  IF holder IS NOT NULL THEN
    RETURN NEXT pulse_internal.explained('job', 'locked',
      pulse_internal.holder_named(holder, 'holds its row') || '.');
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_lock(bigint) IS
  'Explains which process holds the row of a job, if one does.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_queue_lock(queue_name text)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  found_level text;
  found_holder text;
BEGIN
  -- Without a row the lock has been released since the caller met the lock.
  SELECT l.level, l.holder INTO found_level, found_holder
    FROM pulse_internal.queue_lock(queue_name) AS l;
  RETURN NEXT pulse_internal.explained('queue', 'locked', format(
    '%s promotes queue %L or changes its settings. Until it ends, no queue within opens a job.',
    coalesce(
      (SELECT format('Process %s, in a transaction since %s,', l.pid, a.xact_start)
         FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
        WHERE l.virtualtransaction = found_holder LIMIT 1),
      'The prepared transaction ' || quote_literal(pulse_internal.prepared_gid(found_holder)),
      'Another transaction'),
    coalesce(found_level, queue_name)));
END $$;
COMMENT ON FUNCTION pulse_internal.explain_queue_lock(text) IS
  'Explains which process holds the lock of a queue or of one of its levels, and since when.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_level(level text, total int)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  within record;
BEGIN
  SELECT count(*) AS taken, array_agg(w.id ORDER BY w.claimed_at, w.id) AS ids,
         array_agg(DISTINCT w.worker_id) FILTER (WHERE w.state = 'running') AS worker_ids,
         min(w.claimed_at) FILTER (WHERE w.state = 'running') AS since
    INTO within FROM pulse_internal.jobs_within(level) AS w;
  RETURN NEXT pulse_internal.explained('queue', 'full', format(
    'Queue %L and the queues within it run or have open %s of %s: %s', level, within.taken, total,
    pulse_internal.names_of(within.ids)) || coalesce(', running since ' || within.since, '') || '.'
    || pulse_internal.unserved_holders(level, 'places'),
    NULL, within.ids[1 : 100], within.worker_ids[1 : 100]);
END $$;
COMMENT ON FUNCTION pulse_internal.explain_level(text, int) IS
  'Explains which jobs have the places of a level.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_pause(queue_name text)
  RETURNS pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  level text := (SELECT s.level FROM pulse_internal.level_settings(queue_name) AS s
                  WHERE s.paused LIMIT 1);
  pause record;
  dead_ids bigint[];
BEGIN
  IF level IS NOT NULL THEN
    SELECT q.queue_name, q.paused_by, q.created_at INTO pause FROM pulse.queue_pause AS q
     WHERE q.queue_name = pulse_internal.paused_as(level) AND q.job_id = 0;
    RETURN pulse_internal.explained('queue', 'paused', format(
      'Queue %L is paused%s%s.', level, ' with the members ' || nullif(pause.queue_name, level),
      CASE WHEN pause.queue_name IS NOT NULL THEN pulse_internal.named_pauser(
             pause.paused_by, 'queue', pause.queue_name, pause.created_at) END));
  END IF;
  dead_ids := ARRAY(SELECT p.job_id FROM pulse.queue_pause AS p
                     WHERE p.queue_name = explain_pause.queue_name ORDER BY p.created_at LIMIT 100);
  RETURN pulse_internal.explained('queue', 'paused', format(
    'Strict queue %L is paused because of the end of job %s; resume_queue lets it go on.',
    queue_name, pulse_internal.names_of(dead_ids)), NULL, dead_ids);
END $$;
COMMENT ON FUNCTION pulse_internal.explain_pause(text) IS
  'Explains which level of a queue is paused, or which jobs ended and so pause the queue.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_queue(job pulse.job, opened bigint[])
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  places record;
  full_level record;
  taken_ids bigint[];
  successor pulse.job := pulse_internal.successor_of_queue(job.queue_name);
BEGIN
  SELECT * INTO places FROM pulse_internal.queue_places(job.queue_name);
  SELECT * INTO full_level FROM pulse_internal.level_places_left(job.queue_name);
  taken_ids := coalesce(places.running_ids, '{}') || coalesce(places.open_ids, '{}');
  IF job.state = 'ready' THEN
    RETURN NEXT pulse_internal.explained('queue', 'behind', format(
      'Queue %L gives its place to better jobs: %s.', job.queue_name,
      pulse_internal.names_of(opened)), NULL, opened[1 : 100]);
  ELSIF places.paused THEN
    RETURN NEXT pulse_internal.explain_pause(job.queue_name);
  ELSIF places.locked THEN
    RETURN QUERY SELECT * FROM pulse_internal.explain_queue_lock(job.queue_name);
  ELSIF places.taken >= places.concurrency THEN
    RETURN NEXT pulse_internal.explained('queue', 'full', format(
      'Queue %L runs or has open %s of %s:', job.queue_name, places.taken, places.concurrency)
      || coalesce(' running ' || pulse_internal.names_of(places.running_ids) || ' of worker '
                  || pulse_internal.names_of(places.worker_ids) || ' since ' || places.since, '')
      || coalesce(' open ' || pulse_internal.names_of(places.open_ids), '') || '.'
      || pulse_internal.unserved_holders(job.queue_name, 'places', false),
      NULL, taken_ids[1 : 100], places.worker_ids[1 : 100]);
  ELSIF places.levels_places_left <= 0 AND full_level.is_dry THEN
    RETURN NEXT pulse_internal.explained('queue', 'dry', format(
      'Queue %L and the queues within it have no token%s.', full_level.level, coalesce(
        ' until ' || full_level.next_token, ' beside those of their open jobs'))
      || pulse_internal.unserved_holders(full_level.level, 'tokens'), full_level.next_token);
  ELSIF places.levels_places_left <= 0 THEN
    RETURN QUERY SELECT * FROM pulse_internal.explain_level(full_level.level, full_level.total);
  ELSIF places.is_strict AND successor.id <> job.id THEN
    RETURN NEXT pulse_internal.explained('queue', 'strict', format(
      'Strict queue %L keeps its place for job %s, which is due at %s, until that one has ended.',
      job.queue_name, successor.id, successor.run_at), NULL, ARRAY[successor.id]);
  ELSIF job.run_at <= pulse.now() AND opened <> '{}' THEN
    RETURN NEXT pulse_internal.explained('queue', 'behind', format(
      'Jobs of queue %L come first: %s.', job.queue_name, pulse_internal.names_of(opened)),
      NULL, opened[1 : 100]);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_queue(pulse.job, bigint[]) IS
  'Explains why the next promotion, which opens the given jobs, does not let this job through.';

CREATE OR REPLACE FUNCTION pulse_internal.is_suspect(crashes int, max_crashes int) RETURNS boolean
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_is_suspect';
COMMENT ON FUNCTION pulse_internal.is_suspect(int, int) IS
  'Returns whether a job with so many crashes is a poison suspect.';

-- The line of a task is the list of jobs that a claim of an idle worker would read, if the worker
-- serves this task alone.
CREATE OR REPLACE FUNCTION pulse_internal.open_before(
    job pulse.job, parked bigint[], bound int, OUT jobs bigint, OUT first_id bigint,
    OUT crashed_ids bigint[])
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment timestamptz := pulse.now();
  priorities smallint[];
BEGIN
  WITH RECURSIVE step (priority) AS (
    (SELECT j.priority FROM pulse.job AS j
      WHERE j.index_lane = 'o' AND j.identifier = job.identifier AND j.priority <= job.priority
      ORDER BY j.priority LIMIT 1)
    UNION ALL
    SELECT (SELECT j.priority FROM pulse.job AS j
             WHERE j.index_lane = 'o' AND j.identifier = job.identifier
               AND j.priority > s.priority AND j.priority <= job.priority
             ORDER BY j.priority LIMIT 1)
      FROM step AS s WHERE s.priority IS NOT NULL
  )
  SELECT array_agg(s.priority) INTO priorities FROM step AS s WHERE s.priority IS NOT NULL;
  SELECT count(*), array_agg(o.id) FILTER (WHERE o.crashes > 0) INTO jobs, crashed_ids
    FROM (SELECT d.id, d.crashes FROM unnest(priorities) AS p (priority) CROSS JOIN LATERAL (
            SELECT j.id, j.crashes FROM pulse.job AS j
             WHERE j.index_lane = 'o' AND j.state = 'ready' AND j.identifier = job.identifier
               AND j.priority = p.priority AND j.run_at <= moment
               AND (j.run_at, j.id)
                   < (CASE WHEN p.priority < job.priority THEN 'infinity' ELSE job.run_at END,
                      job.id)
               AND j.id <> ALL (parked)
             ORDER BY j.run_at, j.id LIMIT bound) AS d
           LIMIT bound) AS o;
  SELECT d.id INTO first_id FROM unnest(priorities) AS p (priority) CROSS JOIN LATERAL (
    SELECT j.id FROM pulse.job AS j
     WHERE j.index_lane = 'o' AND j.state = 'ready' AND j.identifier = job.identifier
       AND j.priority = p.priority AND j.run_at <= moment
       AND (j.run_at, j.id)
           < (CASE WHEN p.priority < job.priority THEN 'infinity' ELSE job.run_at END, job.id)
       AND j.id <> ALL (parked)
       AND (j.xmax = '0' OR pulse_internal.locked_by(j.id) IS NULL)
     ORDER BY j.run_at, j.id LIMIT 1) AS d
   ORDER BY p.priority LIMIT 1;
END $$;
COMMENT ON FUNCTION pulse_internal.open_before(pulse.job, bigint[], int) IS
  'Counts the open due jobs of the same task that come before a job, up to the bound and without '
  'the parked jobs. Returns the first job that no lock keeps from a claim, and the jobs with '
  'crashes.';

-- A suspect that has waited too long takes the worker for itself, unless it waits for a living
-- worker.
CREATE OR REPLACE FUNCTION pulse_internal.line_before(
    job pulse.job, max_crashes int, bound int, OUT jobs bigint, OUT first_id bigint,
    OUT isolated_id bigint)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  moment timestamptz := pulse.now();
  patience interval := pulse_internal.interval(pulse_internal.setting_us('sweep_threshold'));
  promotion record;
  open_jobs record;
  opened bigint[] := '{}';
  parked bigint[] := '{}';
BEGIN
  SELECT * INTO open_jobs FROM pulse_internal.open_before(job, '{}', bound);
  -- Behind so many open jobs the further promotions make no difference.
  IF open_jobs.jobs < bound THEN
    FOR promotion IN SELECT * FROM pulse_internal.next_promotions() LOOP
      opened := opened || promotion.opened;
      parked := parked || promotion.parked;
    END LOOP;
  END IF;
  IF parked <> '{}' THEN
    SELECT * INTO open_jobs FROM pulse_internal.open_before(job, parked, bound);
  END IF;
  opened := ARRAY(SELECT j.id FROM pulse.job AS j
                   WHERE j.id = ANY (opened) AND j.identifier = job.identifier
                     AND (j.priority, j.run_at, j.id) < (job.priority, job.run_at, job.id));
  jobs := open_jobs.jobs + cardinality(opened);
  SELECT j.id, CASE WHEN pulse_internal.is_suspect(j.crashes, max_crashes) THEN j.id END
    INTO first_id, isolated_id
    FROM pulse.job AS j WHERE j.id = ANY (opened || open_jobs.first_id)
   ORDER BY j.priority, j.run_at, j.id LIMIT 1;
  IF isolated_id IS NULL THEN
    SELECT j.id INTO isolated_id FROM pulse.job AS j
     WHERE j.id = ANY (opened || open_jobs.crashed_ids)
       AND pulse_internal.is_suspect(j.crashes, max_crashes) AND moment - j.run_at > patience
       AND (j.xmax = '0' OR pulse_internal.locked_by(j.id) IS NULL)
       AND NOT EXISTS (SELECT FROM pulse.heartbeat AS h
                        WHERE h.worker_id = j.worker_id AND h.verdict = 'alive')
     ORDER BY j.priority, j.run_at, j.id LIMIT 1;
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.line_before(pulse.job, int, int) IS
  'Returns how many jobs of the same task come before a due job, up to the bound, with the jobs '
  'that the next promotions open; the first of them; and the poison suspect among the jobs that a '
  'claim of an idle worker would run alone, or keep the worker for.';

-- Only kept jobs leave a trace of how fast the task runs.
CREATE OR REPLACE FUNCTION pulse_internal.completed_lately(
    identifier text, OUT jobs int, OUT lasted interval)
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
  SELECT count(*)::int, pulse.now() - min(k.finished_at)
    FROM (SELECT f.finished_at FROM pulse.finished_job AS f
           WHERE f.state = 'completed' AND f.identifier = completed_lately.identifier
             AND f.finished_at > pulse.now() - interval '5 minutes'
           ORDER BY f.finished_at DESC LIMIT 1000) AS k;
$$;
COMMENT ON FUNCTION pulse_internal.completed_lately(text) IS
  'Returns how many jobs of a task completed in the last five minutes, the latest 1,000 at most, '
  'and since when.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_place(
    job pulse.job, place bigint, first_id bigint)
  RETURNS pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  lately record;
  starts_at timestamptz;
BEGIN
  SELECT * INTO lately FROM pulse_internal.completed_lately(job.identifier);
  IF lately.jobs >= 10 THEN
    starts_at := pulse.now() + place::float8 * (lately.lasted / lately.jobs);
  END IF;
  RETURN pulse_internal.explained('line', 'place', format(
    'It is number %s of the due jobs of its task. ', place)
    || CASE WHEN starts_at IS NULL
         THEN 'Its start is not estimated: fewer than ten kept jobs of its task completed in the '
              'last five minutes.'
         ELSE format('It starts at %s if the task goes on as in the last %s s, in which %s jobs '
           'completed.', starts_at, round(extract(epoch FROM lately.lasted), 1), lately.jobs) END,
    starts_at, CASE WHEN first_id IS NOT NULL THEN ARRAY[first_id] END);
END $$;
COMMENT ON FUNCTION pulse_internal.explain_place(pulse.job, bigint, bigint) IS
  'Explains at which place a job stands, and when it starts at the rate of the last minutes.';

CREATE OR REPLACE FUNCTION pulse_internal.explain_line(job pulse.job)
  RETURNS SETOF pulse_internal.explanation
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 1
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  bound CONSTANT int := 1000;
  max_crashes int := pulse_internal.max_crashes_of(job.identifier);
  line record;
BEGIN
  SELECT * INTO line FROM pulse_internal.line_before(job, max_crashes, bound + 1);
  IF NOT pulse_internal.is_suspect(job.crashes, max_crashes) THEN
    IF line.isolated_id IS NOT NULL THEN
      RETURN NEXT pulse_internal.explained('job', 'isolated', format(
        'Job %s, which has lost its workers before, comes first: the worker that takes it gets no '
        'other job until it has ended.', line.isolated_id), NULL, ARRAY[line.isolated_id]);
    END IF;
  ELSIF line.first_id IS NOT NULL THEN
    RETURN NEXT pulse_internal.explained('job', 'suspect', format(
      'After %s crashes it runs alone: it waits for an idle worker, which takes job %s first.',
      job.crashes, line.first_id), NULL, ARRAY[line.first_id]);
  END IF;
  IF line.jobs > bound THEN
    RETURN NEXT pulse_internal.explained('line', 'place', format(
      'More than %s jobs of its task come before it.', bound), NULL, ARRAY[line.first_id]);
  ELSE
    RETURN NEXT pulse_internal.explain_place(job, line.jobs + 1, line.first_id);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.explain_line(pulse.job) IS
  'Explains which jobs come before a due job that the queue lets through, exactly up to 1,000 '
  'jobs.';
