-- sql/preamble.sql
-- Refuses to be sourced by hand: psql obeys this line, CREATE EXTENSION ignores it.
\echo Use "CREATE EXTENSION pg_pulse" to load this file. \quit
-- sql/types.sql
-- The words of the queue as types. Values are only ever appended: they are dumped and restored.

CREATE TYPE pulse.job_state AS ENUM ('ready', 'parked', 'running');
COMMENT ON TYPE pulse.job_state IS
  'where a live job stands: ready (due or future, on the claim index), parked (held behind its '
  'queue), running';

CREATE TYPE pulse.finished_state AS ENUM ('completed', 'failed', 'quarantined', 'cancelled');
COMMENT ON TYPE pulse.finished_state IS 'how a job ended';

CREATE TYPE pulse.job_spec AS (
  identifier   text,
  payload      json,
  queue_name   text,
  run_at       timestamptz,
  max_attempts int,
  job_key      text,
  priority     int,
  flags        text[]
);
COMMENT ON TYPE pulse.job_spec IS 'one job to add, the argument of add_jobs';

CREATE TYPE pulse.claimed_job AS (
  id             bigint,
  token          bigint,
  identifier     text,
  payload        json,
  queue_name     text,
  priority       smallint,
  run_at         timestamptz,
  attempts       smallint,
  max_attempts   smallint,
  crashes        smallint,
  job_key        text,
  flags          text[],
  checkpoint     json,
  last_error     text,
  recovered      text,
  timeout        interval,
  stall_timeout  interval,
  on_unreachable text,
  handler        regprocedure,
  created_at     timestamptz
);
COMMENT ON TYPE pulse.claimed_job IS
  'a job as handed to a worker, with the token that names its claim';

CREATE TYPE pulse.job_outcome AS (id bigint, outcome text);
COMMENT ON TYPE pulse.job_outcome IS
  'the answer of a plural call for one job: accepted, stale (not this claim''s any more) or '
  'busy (ask again)';

CREATE TYPE pulse._ending AS (
  id       bigint,
  outcome  text,
  error    text,
  retry    boolean,
  retry_in interval,
  payload  json,
  way      text
);
COMMENT ON TYPE pulse._ending IS 'how one attempt ends, the argument of _end_attempts';

CREATE TYPE pulse._sweep_result AS (
  workers_lost        int,
  jobs_requeued       int,
  jobs_failed         int,
  jobs_quarantined    int,
  jobs_timed_out      int,
  jobs_stalled        int,
  jobs_skipped_locked int,
  skipped_time        interval
);
COMMENT ON TYPE pulse._sweep_result IS 'what a sweep did';
-- sql/tables.sql
-- What is stored. No foreign keys and no row triggers on job: both would cost a lock or a call per
-- job. Columns of dumped tables are only appended, with defaults, so that older dumps load.

CREATE SEQUENCE pulse.job_id_seq AS bigint;
CREATE SEQUENCE pulse.token_seq AS bigint MAXVALUE 1099511627775 NO CYCLE;
CREATE SEQUENCE pulse.worker_id_seq AS bigint MAXVALUE 1099511627775 NO CYCLE;
CREATE SEQUENCE pulse.attachment_seq AS bigint;

-- The hash that places a queue among the marks in shared memory; it must never change, an index
-- uses it.
CREATE FUNCTION pulse._queue_slot(queue_name text) RETURNS smallint
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_queue_slot';
COMMENT ON FUNCTION pulse._queue_slot(text) IS
  'FNV-1a of the name, 0 to 8191: the bit that marks the queue for promotion';

CREATE TABLE pulse.job (
  id                  bigint PRIMARY KEY DEFAULT pg_catalog.nextval('pulse.job_id_seq'),
  identifier          text COLLATE "C" NOT NULL,
  payload             json NOT NULL DEFAULT '{}',
  queue_name          text COLLATE "C",
  priority            smallint NOT NULL DEFAULT 0,
  run_at              timestamptz NOT NULL DEFAULT pg_catalog.now(),
  state               pulse.job_state NOT NULL DEFAULT 'ready',
  attempts            smallint NOT NULL DEFAULT 0,
  max_attempts        smallint NOT NULL DEFAULT 25,
  crashes             smallint NOT NULL DEFAULT 0,
  job_key             text COLLATE "C",
  flags               text[],
  worker_id           bigint,
  token               bigint,
  claimed_at          timestamptz,
  last_activity_at    timestamptz,
  stage               text,
  progress            float8,
  message             text,
  checkpoint          json,
  last_error          text,
  recovered           text,
  revision            int NOT NULL DEFAULT 0,
  created_at          timestamptz NOT NULL DEFAULT pg_catalog.now(),
  updated_at          timestamptz NOT NULL DEFAULT pg_catalog.now(),
  claimed_live_us     bigint,
  activity_live_us    bigint,
  cancel_requested_at timestamptz,
  cancel_reason       text,
  superseded          boolean NOT NULL DEFAULT false
) WITH (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off
);
COMMENT ON TABLE pulse.job IS 'live jobs: ready, parked behind their queue, or running';
COMMENT ON COLUMN pulse.job.worker_id IS
  'running: the owner; ready: the one worker that may run this suspect alone (see claim)';
COMMENT ON COLUMN pulse.job.token IS 'names the current claim; only while running';
COMMENT ON COLUMN pulse.job.superseded IS
  'while it ran, its key was given to another job or removed: it does not run again';
COMMENT ON COLUMN pulse.job.claimed_live_us IS 'the claim on the liveness clock, microseconds';
COMMENT ON COLUMN pulse.job.activity_live_us IS
  'the last progress report or the claim on the liveness clock, microseconds';

-- The order of P8; a claim walks it per task and priority, so what is not due costs one step.
CREATE INDEX job_claim_idx ON pulse.job (identifier, priority, run_at, id) WHERE state = 'ready';
-- Recovery, held() and heartbeats find a worker's jobs here.
CREATE INDEX job_running_idx ON pulse.job (worker_id, id) WHERE state = 'running';
-- Promotion: the waiting jobs of one queue in order, and a skip scan over queues by mark.
CREATE INDEX job_parked_idx
  ON pulse.job (pulse._queue_slot(queue_name), queue_name, priority, run_at, id)
  WHERE state = 'parked';
-- Which parked jobs fell due since the last look.
CREATE INDEX job_parked_due_idx ON pulse.job (run_at) WHERE state = 'parked';
-- The places a queue has given away: its open and its running jobs.
CREATE INDEX job_open_idx ON pulse.job (queue_name)
  WHERE queue_name IS NOT NULL AND state <> 'parked';
-- A key is unique among waiting jobs only: a running job has lost it to whoever adds it next.
CREATE UNIQUE INDEX job_waiting_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND state <> 'running';
CREATE INDEX job_running_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND state = 'running';

CREATE TABLE pulse.finished_job (
  id            bigint PRIMARY KEY,
  identifier    text COLLATE "C" NOT NULL,
  payload       json NOT NULL,
  queue_name    text COLLATE "C",
  priority      smallint NOT NULL,
  run_at        timestamptz NOT NULL,
  state         pulse.finished_state NOT NULL,
  attempts      smallint NOT NULL,
  max_attempts  smallint NOT NULL,
  crashes       smallint NOT NULL,
  job_key       text COLLATE "C",
  flags         text[],
  worker_id     bigint,
  token         bigint,
  claimed_at    timestamptz,
  checkpoint    json,
  result        json,
  last_error    text,
  revision      int NOT NULL,
  created_at    timestamptz NOT NULL,
  finished_at   timestamptz NOT NULL
);
COMMENT ON TABLE pulse.finished_job IS
  'jobs that ended and are kept: completed ones where retention asks, failed, quarantined and '
  'cancelled ones';
CREATE INDEX finished_job_prune_idx ON pulse.finished_job (state, finished_at);

CREATE TABLE pulse.attempt (
  job_id     bigint NOT NULL,
  token      bigint NOT NULL,
  attempt    smallint NOT NULL,
  worker_id  bigint,
  claimed_at timestamptz,
  ended_at   timestamptz NOT NULL,
  outcome    text NOT NULL,
  error      text,
  PRIMARY KEY (job_id, token)
);
COMMENT ON TABLE pulse.attempt IS
  'audit: one row for each attempt that did not simply succeed, successes where retention asks';
CREATE INDEX attempt_prune_idx ON pulse.attempt (ended_at);

CREATE TABLE pulse.worker (
  id                 bigint PRIMARY KEY,
  name               text NOT NULL,
  hostname           text,
  boot_id            text,
  pid_namespace      text,
  pid                int,
  process_start      text,
  tasks              text[],
  heartbeat_interval interval NOT NULL,
  sweep_threshold    interval NOT NULL,
  started_at         timestamptz NOT NULL,
  state              text NOT NULL DEFAULT 'alive',
  ended_at           timestamptz,
  reason             text,
  info               json
);
COMMENT ON TABLE pulse.worker IS 'one row per registered process; an id is never used twice';
CREATE INDEX worker_alive_idx ON pulse.worker (id) WHERE state IN ('alive', 'draining');

-- Narrow, and no index but the key, so that every beat is a HOT update.
CREATE TABLE pulse.heartbeat (
  worker_id         bigint PRIMARY KEY,
  beat_live_us      bigint NOT NULL,
  last_heartbeat_at timestamptz NOT NULL,
  verdict           text COLLATE "C" NOT NULL DEFAULT 'alive',
  interval_us       bigint NOT NULL,
  threshold_us      bigint NOT NULL,
  attachment        bigint,
  incarnation       bigint,
  detached_live_us  bigint,
  alone_job_id      bigint,
  lost_way          text,
  missing_job_ids   bigint[],
  missing_tokens    bigint[]
) WITH (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
COMMENT ON TABLE pulse.heartbeat IS
  'the last beat of each worker that has not ended, and the verdict about it in the same row';
COMMENT ON COLUMN pulse.heartbeat.beat_live_us IS
  'the last beat on the liveness clock, microseconds';
COMMENT ON COLUMN pulse.heartbeat.threshold_us IS
  'silence after which this worker is lost, never below what its settings can keep';
COMMENT ON COLUMN pulse.heartbeat.attachment IS
  'which session lock stands for the attached session';
COMMENT ON COLUMN pulse.heartbeat.detached_live_us IS
  'when a sweep found the attached session gone, on the liveness clock';
COMMENT ON COLUMN pulse.heartbeat.interval_us IS
  'how often the worker checks in; 0: alive exactly as long as its attached session lives';
COMMENT ON COLUMN pulse.heartbeat.lost_way IS 'how the loss was noticed: session, host or silence';
COMMENT ON COLUMN pulse.heartbeat.alone_job_id IS
  'the suspect that this worker runs alone, or is kept free for';

-- Several rows, so that a sweep in somebody's open transaction holds one and stops nobody's clock.
CREATE TABLE pulse.clock (
  slot      smallint PRIMARY KEY,
  vt_us     bigint NOT NULL,
  last_tick timestamptz NOT NULL,
  timeline  int NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE pulse.clock IS
  'the liveness clock: accumulated live time and the moment of the tick that wrote it; the '
  'greatest row counts';
INSERT INTO pulse.clock SELECT n, 0, pg_catalog.clock_timestamp(), 0
  FROM pg_catalog.generate_series(1, 8) AS n;

CREATE TABLE pulse.queue (
  queue_name  text COLLATE "C" PRIMARY KEY,
  concurrency int NOT NULL DEFAULT 1,
  paused      boolean NOT NULL DEFAULT false,
  created_at  timestamptz NOT NULL DEFAULT pg_catalog.now(),
  updated_at  timestamptz NOT NULL DEFAULT pg_catalog.now()
);
COMMENT ON TABLE pulse.queue IS
  'settings of named queues; a queue without a row runs one job at a time';

CREATE TABLE pulse.task (
  identifier     text COLLATE "C" PRIMARY KEY,
  max_attempts   smallint,
  timeout        interval,
  stall_timeout  interval,
  backoff        text,
  backoff_base   interval,
  backoff_cap    interval,
  jitter         float8,
  keep_completed interval,
  max_crashes    int,
  on_unreachable text,
  handler        regprocedure,
  created_at     timestamptz NOT NULL DEFAULT pg_catalog.now(),
  updated_at     timestamptz NOT NULL DEFAULT pg_catalog.now()
);
COMMENT ON TABLE pulse.task IS 'settings of tasks; a task without a row has the defaults';

-- What pg_dump keeps: jobs, their history, settings and what ids are made of. Workers are gone
-- after a restore, so worker, heartbeat and clock stay out and the next sweep recovers what they
-- held.
SELECT pg_catalog.pg_extension_config_dump('pulse.job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.finished_job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.attempt', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.queue', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.task', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.job_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.token_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.worker_id_seq', '');
-- sql/settings.sql
-- The settings as SQL sees them, and the refusals that several parts share. The values live in the
-- library's variables, so reading one never depends on what was loaded before.

CREATE FUNCTION pulse.version() RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_version';
COMMENT ON FUNCTION pulse.version() IS 'version of the loaded library';

CREATE FUNCTION pulse._setting_us(name text) RETURNS bigint
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_setting_us';
COMMENT ON FUNCTION pulse._setting_us(text) IS
  'a duration setting in microseconds; NULL when it is -1';

CREATE FUNCTION pulse._max_crashes() RETURNS int
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_max_crashes';
COMMENT ON FUNCTION pulse._max_crashes() IS 'the setting pulse.max_crashes';

CREATE FUNCTION pulse._events_on() RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_events_on';
COMMENT ON FUNCTION pulse._events_on() IS 'the setting pulse.events';

CREATE FUNCTION pulse._in_client_block() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_in_client_block';
COMMENT ON FUNCTION pulse._in_client_block() IS 'whether the client opened a transaction block';

CREATE FUNCTION pulse._require_read_committed(what text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_require_read_committed';
COMMENT ON FUNCTION pulse._require_read_committed(text) IS
  'raises PU007 under another isolation level';

CREATE FUNCTION pulse._us(duration interval) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pg_catalog.trunc(pg_catalog.date_part('epoch', duration) * 1000000)::bigint;
COMMENT ON FUNCTION pulse._us(interval) IS 'a duration in microseconds; a month counts as 30 days';

CREATE FUNCTION pulse._interval(us bigint) RETURNS interval
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pg_catalog.make_interval(secs => us / 1000000.0::float8);
COMMENT ON FUNCTION pulse._interval(bigint) IS 'microseconds as a duration';

-- One place for the refusal of names and numbers: extension/names.cpp.
CREATE FUNCTION pulse._check_name(what text, value text, longest int) RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_name';
COMMENT ON FUNCTION pulse._check_name(text, text, int) IS
  'raises PU004 for an empty or over-long name';

CREATE FUNCTION pulse._check_identifier(identifier text) RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_identifier';
COMMENT ON FUNCTION pulse._check_identifier(text) IS
  'raises PU004 for a task name that is empty, over-long, absolute, or leads out of the tasks '
  'folder';

CREATE FUNCTION pulse._check_number(what text, value int, lowest int, highest int)
  RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_number';
COMMENT ON FUNCTION pulse._check_number(text, int, int, int) IS
  'raises PU004 for a number out of range; NULL passes';

CREATE FUNCTION pulse._check_document(what text, document json) RETURNS void
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_check_document';
COMMENT ON FUNCTION pulse._check_document(text, json) IS
  'raises PU004 for a document of more than 64 MiB; NULL passes';

CREATE FUNCTION pulse._check_duration(what text, value interval, lowest interval)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF value < lowest OR value > interval '10 years' THEN
    RAISE EXCEPTION '% is %, out of range', what, value USING
      ERRCODE = 'PU004', HINT = format('It must be between %s and 10 years.', lowest);
  END IF;
END $$;
COMMENT ON FUNCTION pulse._check_duration(text, interval, interval) IS
  'raises PU004 for a duration out of range; NULL passes';

CREATE FUNCTION pulse._check_lengths(lengths int[]) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (SELECT count(DISTINCT l) FROM unnest(lengths) AS l WHERE l IS NOT NULL) > 1 THEN
    RAISE EXCEPTION 'the arrays have different lengths' USING
      ERRCODE = 'PU004', DETAIL = format('They have %s elements.', lengths),
      HINT = 'Give one element per job in each.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse._check_lengths(int[]) IS
  'raises PU004 for arrays that do not belong together';
-- sql/clock.sql
-- The one source of time: the wall clock for what people schedule, the liveness clock for how long
-- somebody was silent. pulse.clock_offset moves both, for tests.

CREATE FUNCTION pulse.now() RETURNS timestamptz
  LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_clock_timestamp';
COMMENT ON FUNCTION pulse.now() IS
  'the time as pg_pulse sees it: the server''s clock, moved by pulse.clock_offset';

CREATE FUNCTION pulse._transaction_now() RETURNS timestamptz
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_transaction_timestamp';
COMMENT ON FUNCTION pulse._transaction_now() IS
  'the start of the transaction, moved by pulse.clock_offset';

CREATE FUNCTION pulse._live_now_us() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_live_now_us';
COMMENT ON FUNCTION pulse._live_now_us() IS 'the liveness clock, microseconds';

CREATE FUNCTION pulse._live_base_us() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_live_base_us';
COMMENT ON FUNCTION pulse._live_base_us() IS
  'the liveness clock without pulse.clock_offset: what a tick stores';

CREATE FUNCTION pulse._current_timeline() RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_current_timeline';
COMMENT ON FUNCTION pulse._current_timeline() IS 'the timeline that this server writes';

CREATE FUNCTION pulse._longest_tick_us() RETURNS bigint
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_longest_tick_us';
COMMENT ON FUNCTION pulse._longest_tick_us() IS
  'by how much the liveness clock advances at most between two ticks';

-- Stores how far the clock has come, when the last tick is old enough, and answers how much time
-- was left out since then (an outage, a step of the wall clock). The row is any that nobody holds:
-- all rows are taken only while eight sweeps at once sit in open transactions.
CREATE FUNCTION pulse._tick() RETURNS interval
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest pulse.clock;
  live_us bigint := pulse._live_base_us();
  elapsed interval;
BEGIN
  SELECT * INTO newest FROM pulse.clock ORDER BY vt_us DESC, last_tick DESC LIMIT 1;
  elapsed := clock_timestamp() - newest.last_tick;
  IF newest.timeline = pulse._current_timeline()
     AND elapsed BETWEEN interval '0' AND pulse._interval(pulse._longest_tick_us() / 4) THEN
    RETURN interval '0';
  END IF;
  UPDATE pulse.clock
     SET vt_us = live_us,
         last_tick = clock_timestamp(),
         timeline = pulse._current_timeline()
   WHERE slot = (SELECT c.slot FROM pulse.clock AS c
                  ORDER BY c.vt_us, c.slot LIMIT 1 FOR UPDATE SKIP LOCKED);
  RETURN greatest(elapsed - pulse._interval(live_us - newest.vt_us), interval '0');
END $$;
COMMENT ON FUNCTION pulse._tick() IS
  'advances the liveness clock; returns the time that it left out since the last tick';
-- sql/task.sql
-- Settings of tasks, and the backoff that follows from them.

CREATE FUNCTION pulse._backoff(task pulse.task, attempts int) RETURNS interval
  LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  delay_s float8;
BEGIN
  -- The default is Graphile Worker's: e to the power of the attempts, at most ten of them.
  delay_s := CASE coalesce(task.backoff, 'exponential')
    WHEN 'none' THEN 0
    WHEN 'fixed' THEN extract(epoch FROM coalesce(task.backoff_base, interval '10 s'))
    ELSE CASE WHEN task.backoff_base IS NULL THEN exp(least(10, attempts))
         ELSE extract(epoch FROM task.backoff_base) * power(2, least(attempts, 40) - 1) END
  END;
  IF task.backoff_cap IS NOT NULL THEN
    delay_s := least(delay_s, extract(epoch FROM task.backoff_cap));
  END IF;
  IF task.jitter > 0 THEN
    delay_s := delay_s * (1 + task.jitter * (2 * random() - 1));
  END IF;
  RETURN make_interval(secs => least(greatest(delay_s, 0), 315360000));
END $$;
COMMENT ON FUNCTION pulse._backoff(pulse.task, int) IS
  'how long a job waits after its n-th attempt: exp(least(10, n)) seconds unless the task says '
  'otherwise';

CREATE FUNCTION pulse._check_task_settings(
    backoff text, jitter float8, max_crashes int, on_unreachable text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF backoff NOT IN ('exponential', 'fixed', 'none') THEN
    RAISE EXCEPTION 'backoff % is not known', quote_literal(backoff) USING
      ERRCODE = 'PU004', HINT = 'Use exponential, fixed or none.';
  ELSIF jitter NOT BETWEEN 0 AND 1 OR jitter = 'NaN' THEN
    RAISE EXCEPTION 'jitter is %, out of range', jitter USING
      ERRCODE = 'PU004', HINT = 'It is a fraction of the delay, between 0 and 1.';
  ELSIF on_unreachable NOT IN ('continue', 'kill') THEN
    RAISE EXCEPTION 'on_unreachable % is not known', quote_literal(on_unreachable) USING
      ERRCODE = 'PU004', HINT = 'Use continue or kill.';
  END IF;
  PERFORM pulse._check_number('max_crashes', max_crashes, -1, 32767);
END $$;
COMMENT ON FUNCTION pulse._check_task_settings(text, float8, int, text) IS
  'raises PU004 for settings that no task can have';

CREATE FUNCTION pulse.set_task(
    identifier text,
    max_attempts int = NULL,
    timeout interval = NULL,
    stall_timeout interval = NULL,
    backoff text = NULL,
    backoff_base interval = NULL,
    backoff_cap interval = NULL,
    jitter float8 = NULL,
    keep_completed interval = NULL,
    max_crashes int = NULL,
    on_unreachable text = NULL,
    handler regprocedure = NULL)
  RETURNS pulse.task
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  stored pulse.task;
BEGIN
  PERFORM pulse._check_identifier(set_task.identifier);
  PERFORM pulse._check_number('max_attempts', set_task.max_attempts, 1, 32767);
  PERFORM pulse._check_duration('timeout', set_task.timeout, interval '1 ms');
  PERFORM pulse._check_duration('stall_timeout', set_task.stall_timeout, interval '1 ms');
  PERFORM pulse._check_duration('backoff_base', set_task.backoff_base, interval '0');
  PERFORM pulse._check_duration('backoff_cap', set_task.backoff_cap, interval '0');
  PERFORM pulse._check_duration('keep_completed', set_task.keep_completed, interval '0');
  PERFORM pulse._check_task_settings(
    set_task.backoff, set_task.jitter, set_task.max_crashes, set_task.on_unreachable);
  INSERT INTO pulse.task AS t
    (identifier, max_attempts, timeout, stall_timeout, backoff, backoff_base, backoff_cap, jitter,
     keep_completed, max_crashes, on_unreachable, handler, created_at, updated_at)
  VALUES
    (set_task.identifier, set_task.max_attempts, set_task.timeout, set_task.stall_timeout,
     set_task.backoff, set_task.backoff_base, set_task.backoff_cap, set_task.jitter,
     set_task.keep_completed, set_task.max_crashes, set_task.on_unreachable, set_task.handler,
     pulse.now(), pulse.now())
  ON CONFLICT ON CONSTRAINT task_pkey DO UPDATE SET
    max_attempts   = coalesce(excluded.max_attempts, t.max_attempts),
    timeout        = coalesce(excluded.timeout, t.timeout),
    stall_timeout  = coalesce(excluded.stall_timeout, t.stall_timeout),
    backoff        = coalesce(excluded.backoff, t.backoff),
    backoff_base   = coalesce(excluded.backoff_base, t.backoff_base),
    backoff_cap    = coalesce(excluded.backoff_cap, t.backoff_cap),
    jitter         = coalesce(excluded.jitter, t.jitter),
    keep_completed = coalesce(excluded.keep_completed, t.keep_completed),
    max_crashes    = coalesce(excluded.max_crashes, t.max_crashes),
    on_unreachable = coalesce(excluded.on_unreachable, t.on_unreachable),
    handler        = coalesce(excluded.handler, t.handler),
    updated_at     = pulse.now()
  RETURNING t.* INTO stored;
  RETURN stored;
END $$;
COMMENT ON FUNCTION pulse.set_task(text, int, interval, interval, text, interval, interval, float8,
                                   interval, int, text, regprocedure) IS
  'stores settings of a task; NULL leaves a setting as it is. PU004 for a value out of range';
-- sql/queue.sql
-- Settings of named queues. A change takes the queue's lock, so that no promotion runs beside it.

-- Open jobs that nobody claimed go back behind the queue, which is then promoted anew.
CREATE FUNCTION pulse._park_open(queue_name text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE pulse.job AS j SET state = 'parked'
   WHERE j.queue_name = _park_open.queue_name AND j.state = 'ready' AND j.state <> 'parked';
  PERFORM pulse._note_queue(queue_name);
END $$;
COMMENT ON FUNCTION pulse._park_open(text) IS 'puts the unclaimed open jobs of a queue back';

CREATE FUNCTION pulse.set_queue(
    queue_name text, concurrency int = NULL, paused boolean = NULL)
  RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  stored pulse.queue;
BEGIN
  PERFORM pulse._check_name('queue_name', set_queue.queue_name, 128);
  PERFORM pulse._check_number('concurrency', set_queue.concurrency, 1, 1000000);
  PERFORM pulse._lock_queue(set_queue.queue_name);
  INSERT INTO pulse.queue AS q (queue_name, concurrency, paused, created_at, updated_at)
  VALUES (set_queue.queue_name, coalesce(set_queue.concurrency, 1),
          coalesce(set_queue.paused, false), pulse.now(), pulse.now())
  ON CONFLICT ON CONSTRAINT queue_pkey DO UPDATE SET
    concurrency = coalesce(set_queue.concurrency, q.concurrency),
    paused      = coalesce(set_queue.paused, q.paused),
    updated_at  = pulse.now()
  RETURNING q.* INTO stored;
  PERFORM pulse._park_open(set_queue.queue_name);
  RETURN stored;
END $$;
COMMENT ON FUNCTION pulse.set_queue(text, int, boolean) IS
  'stores settings of a queue; NULL leaves a setting as it is. Running jobs are not touched';

CREATE FUNCTION pulse.pause_queue(queue_name text) RETURNS pulse.queue
  LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pulse.set_queue(queue_name, NULL, true);
$$;
COMMENT ON FUNCTION pulse.pause_queue(text) IS
  'once this commits, no job of the queue is claimed until resume_queue';

CREATE FUNCTION pulse.resume_queue(queue_name text) RETURNS pulse.queue
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pulse.queue AS q WHERE q.queue_name = resume_queue.queue_name) THEN
    RAISE EXCEPTION 'queue % is not known', quote_literal(resume_queue.queue_name) USING
      ERRCODE = 'PU005', HINT = 'Only a queue that was paused or given settings is stored.';
  END IF;
  RETURN pulse.set_queue(resume_queue.queue_name, NULL, false);
END $$;
COMMENT ON FUNCTION pulse.resume_queue(text) IS 'ends a pause. PU005 for a queue without settings';
-- sql/promote.sql
-- Marks and promotion: what a commit tells the others, and the one way a queue's job is opened.
-- The work is in extension/promote.cpp and extension/commit_callback.cpp.

CREATE FUNCTION pulse._note_job(identifier text, queue_name text, run_at timestamptz)
  RETURNS boolean
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_job';
COMMENT ON FUNCTION pulse._note_job(text, text, timestamptz) IS
  'at commit: wakes a worker for a job made ready, or marks the queue that it waits behind';

CREATE FUNCTION pulse._note_queue(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_queue';
COMMENT ON FUNCTION pulse._note_queue(text) IS 'at commit: marks a queue for promotion';

CREATE FUNCTION pulse._is_marked(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_marked';
COMMENT ON FUNCTION pulse._is_marked(text) IS
  'whether the next claims and sweeps will look at this queue';

CREATE FUNCTION pulse._note_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_worker';
COMMENT ON FUNCTION pulse._note_worker(bigint) IS 'at commit: wakes this worker from its wait';

CREATE FUNCTION pulse._note_everybody() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_everybody';
COMMENT ON FUNCTION pulse._note_everybody() IS
  'at commit: ends every wait, because a wake-up may have gone to a worker that is lost';

CREATE FUNCTION pulse._offer_sweep() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_offer_sweep';
COMMENT ON FUNCTION pulse._offer_sweep() IS
  'asks the caller, by a notice of code PU100, for a sweep that is due';

CREATE FUNCTION pulse._start_sweep() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_start_sweep';
COMMENT ON FUNCTION pulse._start_sweep() IS 'answers the request for a sweep, if there is one';

CREATE FUNCTION pulse._note_sweep_due(at timestamptz) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_sweep_due';
COMMENT ON FUNCTION pulse._note_sweep_due(timestamptz) IS
  'at commit: asks for a sweep at that time, before its interval ends';

CREATE FUNCTION pulse._promote_marked(most int) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_promote_marked';
COMMENT ON FUNCTION pulse._promote_marked(int) IS
  'promotes marked queues, at most so many marks; true when marks remain';

CREATE FUNCTION pulse._reconcile_queues(most int = 0) RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_reconcile_queues';
COMMENT ON FUNCTION pulse._reconcile_queues(int) IS
  'looks at so many queues (0: all) and marks those with a place to give away; returns how many';

CREATE FUNCTION pulse._lock_queue(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_queue';
COMMENT ON FUNCTION pulse._lock_queue(text) IS
  'the queue''s lock, until the transaction ends; waits';
-- sql/add.sql
-- Producers: add_job, add_jobs, remove_job. An unkeyed add takes no lock that anybody waits for.
-- A keyed add holds the key's lock until commit; lock order: key, then the job's row.
-- A key is unique among waiting jobs: a running job has given it up to the next add.

CREATE FUNCTION pulse._lock_key(job_key text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_key';
COMMENT ON FUNCTION pulse._lock_key(text) IS
  'the job key''s lock, until the transaction ends; waits';

CREATE FUNCTION pulse._try_lock_key(job_key text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_try_lock_key';
COMMENT ON FUNCTION pulse._try_lock_key(text) IS 'the same without waiting; false when it is taken';

CREATE FUNCTION pulse._lock_keys(job_keys text[]) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_keys';
COMMENT ON FUNCTION pulse._lock_keys(text[]) IS
  'the locks of many keys, taken in one order for everybody; waits';

-- Two array payloads of one key are concatenated as text, so that nothing in them changes.
CREATE FUNCTION pulse._merged_payload(older json, newer json) RETURNS json
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN json_typeof(older) = 'array' AND json_typeof(newer) = 'array' THEN
      (SELECT coalesce(json_agg(e.value ORDER BY e.half, e.ord), '[]'::json)
         FROM (SELECT 1 AS half, o.ord, o.value
                 FROM json_array_elements(older) WITH ORDINALITY AS o (value, ord)
               UNION ALL
               SELECT 2, n.ord, n.value
                 FROM json_array_elements(newer) WITH ORDINALITY AS n (value, ord)) AS e)
    ELSE newer
  END;
$$;
COMMENT ON FUNCTION pulse._merged_payload(json, json) IS
  'payload of a replaced job: both arrays in order, or else the newer one';

-- Checks a job and fills in the defaults; everything after it can trust the values.
CREATE FUNCTION pulse._checked_spec(spec pulse.job_spec) RETURNS pulse.job_spec
  LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_checked_spec';
COMMENT ON FUNCTION pulse._checked_spec(pulse.job_spec) IS
  'a job as it is stored, or PU004 for a name or value out of range';

CREATE FUNCTION pulse._insert_job(spec pulse.job_spec) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  added pulse.job;
BEGIN
  INSERT INTO pulse.job
    (identifier, payload, queue_name, run_at, state, max_attempts, job_key, priority, flags,
     created_at, updated_at)
  VALUES
    (spec.identifier, spec.payload, spec.queue_name, spec.run_at,
     CASE WHEN spec.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state,
     spec.max_attempts, spec.job_key, spec.priority, spec.flags,
     pulse._transaction_now(), pulse._transaction_now())
  RETURNING * INTO added;
  PERFORM pulse._note_job(added.identifier, added.queue_name, added.run_at);
  RETURN added;
END $$;
COMMENT ON FUNCTION pulse._insert_job(pulse.job_spec) IS 'stores a checked job';

CREATE FUNCTION pulse._replace_job(older pulse.job, spec pulse.job_spec, mode text)
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  replaced pulse.job;
  merged json := pulse._merged_payload(older.payload, spec.payload);
BEGIN
  PERFORM pulse._check_document('payload', merged);
  UPDATE pulse.job AS j SET
    identifier   = spec.identifier,
    payload      = merged,
    queue_name   = spec.queue_name,
    run_at       = CASE WHEN mode = 'preserve_run_at' AND older.attempts = 0
                     THEN older.run_at ELSE spec.run_at END,
    state        = CASE WHEN spec.queue_name IS NULL THEN 'ready'
                     ELSE 'parked' END::pulse.job_state,
    max_attempts = spec.max_attempts,
    priority     = spec.priority,
    flags        = spec.flags,
    attempts     = 0,
    crashes      = 0,
    worker_id    = NULL,
    last_error   = NULL,
    recovered    = NULL,
    checkpoint   = NULL,
    revision     = j.revision + 1,
    updated_at   = pulse._transaction_now()
  WHERE j.id = older.id
  RETURNING j.* INTO replaced;
  PERFORM pulse._note_queue(older.queue_name);
  PERFORM pulse._note_job(replaced.identifier, replaced.queue_name, replaced.run_at);
  RETURN replaced;
END $$;
COMMENT ON FUNCTION pulse._replace_job(pulse.job, pulse.job_spec, text) IS
  'a keyed add to a waiting job: every field is the new job''s, the attempts start again';

-- A row that a worker holds right now keeps its key; its end then finds the newer job and does not
-- retry. So a producer never waits for a worker here.
CREATE FUNCTION pulse._take_key_from_running(job_key text) RETURNS SETOF pulse.job
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pulse.job AS j SET job_key = NULL, max_attempts = j.attempts, superseded = true
   WHERE j.id IN (SELECT r.id FROM pulse.job AS r
                   WHERE r.job_key = _take_key_from_running.job_key AND r.state = 'running'
                     FOR UPDATE SKIP LOCKED)
  RETURNING j.*;
$$;
COMMENT ON FUNCTION pulse._take_key_from_running(text) IS
  'a running job loses its key and its retries to the job that is added now';

CREATE FUNCTION pulse._dedupe_job(job_key text) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  existing pulse.job;
BEGIN
  UPDATE pulse.job AS j
     SET revision = j.revision + 1, updated_at = pulse._transaction_now()
   WHERE j.id IN (SELECT r.id FROM pulse.job AS r
                   WHERE r.job_key = _dedupe_job.job_key FOR UPDATE SKIP LOCKED)
  RETURNING j.* INTO existing;
  IF existing.id IS NULL THEN
    -- Held by a worker at this moment: it exists, and that is all this mode asks.
    SELECT * INTO existing FROM pulse.job AS j
     WHERE j.job_key = _dedupe_job.job_key ORDER BY j.state <> 'running' DESC, j.id DESC LIMIT 1;
  END IF;
  RETURN existing;
END $$;
COMMENT ON FUNCTION pulse._dedupe_job(text) IS
  'the live job of this key with its revision counted up, or NULL when there is none';

CREATE FUNCTION pulse._add_keyed(spec pulse.job_spec, mode text) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  existing pulse.job;
BEGIN
  -- Every way to a waiting job with this key goes through this lock, so nothing below can conflict.
  PERFORM pulse._lock_key(spec.job_key);
  IF mode = 'unsafe_dedupe' THEN
    existing := pulse._dedupe_job(spec.job_key);
    IF existing.id IS NOT NULL THEN
      RETURN existing;
    END IF;
  END IF;
  SELECT * INTO existing FROM pulse.job AS j
   WHERE j.job_key = spec.job_key AND j.state <> 'running'
     FOR UPDATE;
  IF existing.id IS NOT NULL THEN
    RETURN pulse._replace_job(existing, spec, mode);
  END IF;
  PERFORM pulse._take_key_from_running(spec.job_key);
  RETURN pulse._insert_job(spec);
END $$;
COMMENT ON FUNCTION pulse._add_keyed(pulse.job_spec, text) IS
  'adds under a key; always returns a row that carries the new payload, but for unsafe_dedupe';

CREATE FUNCTION pulse.add_job(
    identifier text,
    payload json = NULL,
    queue_name text = NULL,
    run_at timestamptz = NULL,
    max_attempts int = NULL,
    job_key text = NULL,
    priority int = NULL,
    flags text[] = NULL,
    job_key_mode text = 'replace')
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  spec pulse.job_spec;
BEGIN
  IF job_key_mode NOT IN ('replace', 'preserve_run_at', 'unsafe_dedupe') THEN
    RAISE EXCEPTION 'job_key_mode % is not known', quote_literal(job_key_mode) USING
      ERRCODE = 'PU004', HINT = 'Use replace, preserve_run_at or unsafe_dedupe.';
  END IF;
  spec := pulse._checked_spec(ROW(identifier, payload, queue_name, run_at, max_attempts, job_key,
                                  priority, flags)::pulse.job_spec);
  IF spec.job_key IS NULL THEN
    RETURN pulse._insert_job(spec);
  END IF;
  RETURN pulse._add_keyed(spec, coalesce(job_key_mode, 'replace'));
END $$;
COMMENT ON FUNCTION pulse.add_job(text, json, text, timestamptz, int, text, int, text[], text) IS
  'adds a job in the caller''s transaction. With a job_key, a waiting job of that key is replaced '
  '(replace), keeps its run_at (preserve_run_at) or is left alone (unsafe_dedupe). '
  'PU004 for a name or value out of range';

CREATE FUNCTION pulse._add_unkeyed(specs pulse.job_spec[]) RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
  WITH spec AS MATERIALIZED (
    -- The inner query is kept apart, or every column would check the job anew.
    SELECT (c.checked).*
      FROM (SELECT pulse._checked_spec(s::pulse.job_spec) AS checked FROM unnest(specs) AS s
            OFFSET 0) AS c
  ), added AS (
    INSERT INTO pulse.job
      (identifier, payload, queue_name, run_at, state, max_attempts, priority, flags,
       created_at, updated_at)
    SELECT s.identifier, s.payload, s.queue_name, s.run_at,
           CASE WHEN s.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state,
           s.max_attempts, s.priority, s.flags,
           pulse._transaction_now(), pulse._transaction_now()
      FROM spec AS s
    RETURNING *
  )
  SELECT a.* FROM added AS a WHERE pulse._note_job(a.identifier, a.queue_name, a.run_at);
END $$;
COMMENT ON FUNCTION pulse._add_unkeyed(pulse.job_spec[]) IS
  'adds many jobs without keys in one statement';

CREATE FUNCTION pulse.add_jobs(
    specs pulse.job_spec[], job_key_preserve_run_at boolean = false)
  RETURNS SETOF pulse.job
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 1000
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  spec pulse.job_spec;
  mode text := CASE WHEN job_key_preserve_run_at THEN 'preserve_run_at' ELSE 'replace' END;
BEGIN
  IF NOT EXISTS (SELECT FROM unnest(specs) AS s WHERE s.job_key IS NOT NULL) THEN
    RETURN QUERY SELECT * FROM pulse._add_unkeyed(specs);
    RETURN;
  END IF;
  -- Keys are locked in one order, so that two calls with the same keys never wait in a circle.
  PERFORM pulse._lock_keys((SELECT array_agg(DISTINCT s.job_key) FROM unnest(specs) AS s));
  FOREACH spec IN ARRAY specs LOOP
    spec := pulse._checked_spec(spec);
    IF spec.job_key IS NULL THEN
      RETURN NEXT pulse._insert_job(spec);
    ELSE
      RETURN NEXT pulse._add_keyed(spec, mode);
    END IF;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse.add_jobs(pulse.job_spec[], boolean) IS
  'adds many jobs; of two with the same key the last wins, array payloads are concatenated';

CREATE FUNCTION pulse.remove_job(job_key text) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  removed pulse.job;
BEGIN
  PERFORM pulse._lock_key(remove_job.job_key);
  DELETE FROM pulse.job AS j
   WHERE j.job_key = remove_job.job_key AND j.state <> 'running'
  RETURNING j.* INTO removed;
  IF removed.id IS NULL THEN
    SELECT * INTO removed FROM pulse._take_key_from_running(remove_job.job_key);
  ELSE
    PERFORM pulse._note_queue(removed.queue_name);
  END IF;
  RETURN CASE WHEN removed.id IS NOT NULL THEN removed END;
END $$;
COMMENT ON FUNCTION pulse.remove_job(text) IS
  'deletes the waiting job of this key; a running one loses its key and is not retried. NULL '
  'when there is none';
-- sql/finish.sql
-- How a claim ends: complete, fail, snooze, release and their plural forms. Every call carries the
-- token; a stale one changes nothing. Lock order: rows by id, then the job key's lock, which plural
-- calls never wait for.

-- Its key may also be another's while the row still shows it: whoever took it found the row held.
CREATE FUNCTION pulse._is_superseded(job pulse.job) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT job.superseded OR (job.job_key IS NOT NULL AND EXISTS (
    SELECT FROM pulse.job AS k WHERE k.job_key = job.job_key AND k.state <> 'running'));
$$;
COMMENT ON FUNCTION pulse._is_superseded(pulse.job) IS
  'whether a running job has lost its key to another: then it does not run again';

-- Ends attempts whose rows the caller has locked. One statement decides each job's fate, moves it,
-- and writes the audit; the marks and wake-ups follow at commit. The arrays of ids and the settings
-- pin the plan: a vacuum of an empty queue leaves statistics that say "one row" of any table.
CREATE FUNCTION pulse._end_attempts(endings pulse._ending[])
  RETURNS TABLE (id bigint, state text, outcome text)
  LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp
  SET enable_nestloop = off SET jit = off AS $$
  WITH verdict AS MATERIALIZED (
    SELECT j AS job, e.outcome, e.error, e.payload, e.way, e.outcome = 'lost' AS crashed,
           CASE
             WHEN j.cancel_requested_at IS NOT NULL THEN 'cancelled'
             WHEN e.outcome = 'lost' AND coalesce(t.max_crashes, pulse._max_crashes()) >= 0
                  AND j.crashes + 1 >= coalesce(t.max_crashes, pulse._max_crashes())
               THEN 'quarantined'
             WHEN j.superseded OR j.job_key IS NOT NULL AND pulse._is_superseded(j) THEN 'failed'
             WHEN e.outcome = 'released' THEN 'again'
             WHEN e.retry IS FALSE OR j.attempts >= j.max_attempts THEN 'failed'
             ELSE 'again'
           END AS fate,
           CASE
             WHEN e.outcome = 'released' THEN j.run_at
             WHEN e.outcome = 'interrupted' THEN greatest(j.run_at, pulse.now())
             ELSE greatest(j.run_at, pulse.now())
                  + coalesce(e.retry_in, pulse._backoff(t, j.attempts))
           END AS run_at
      FROM unnest(endings) AS e
      JOIN pulse.job AS j ON j.id = e.id
      LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
     WHERE j.id = ANY (ARRAY(SELECT a.id FROM unnest(endings) AS a))
  ), removed AS (
    DELETE FROM pulse.job AS j
     WHERE j.id = ANY (ARRAY(SELECT (v.job).id FROM verdict AS v WHERE v.fate <> 'again'))
  ), kept AS (
    INSERT INTO pulse.finished_job
      (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts,
       crashes, job_key, flags, worker_id, token, claimed_at, checkpoint, last_error, revision,
       created_at, finished_at)
    SELECT (v.job).id, (v.job).identifier, coalesce(v.payload, (v.job).payload), (v.job).queue_name,
           (v.job).priority, (v.job).run_at, v.fate::pulse.finished_state, (v.job).attempts,
           (v.job).max_attempts, (v.job).crashes + v.crashed::int, (v.job).job_key, (v.job).flags,
           (v.job).worker_id, (v.job).token, (v.job).claimed_at, (v.job).checkpoint,
           coalesce(v.error, (v.job).last_error), (v.job).revision, (v.job).created_at, pulse.now()
      FROM verdict AS v WHERE v.fate <> 'again'
  ), requeued AS (
    UPDATE pulse.job AS j SET
      state      = CASE WHEN j.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state,
      attempts   = j.attempts - (v.outcome = 'released')::int,
      crashes    = j.crashes + v.crashed::int,
      run_at     = v.run_at,
      payload    = coalesce(v.payload, j.payload),
      last_error = coalesce(v.error, j.last_error),
      recovered  = v.way,
      worker_id  = NULL, token = NULL, claimed_at = NULL, claimed_live_us = NULL,
      activity_live_us = NULL, updated_at = pulse.now()
    FROM verdict AS v
    WHERE j.id = (v.job).id AND v.fate = 'again'
      AND j.id = ANY (ARRAY(SELECT (a.job).id FROM verdict AS a WHERE a.fate = 'again'))
  ), audited AS (
    INSERT INTO pulse.attempt
      (job_id, token, attempt, worker_id, claimed_at, ended_at, outcome, error)
    SELECT (v.job).id, (v.job).token, (v.job).attempts, (v.job).worker_id, (v.job).claimed_at,
           pulse.now(), CASE WHEN v.fate = 'cancelled' THEN 'cancelled' ELSE v.outcome END, v.error
      FROM verdict AS v
  )
  SELECT (v.job).id,
         CASE WHEN v.fate <> 'again' THEN v.fate
              WHEN (v.job).queue_name IS NULL THEN 'ready' ELSE 'parked' END,
         v.outcome
    FROM verdict AS v
   WHERE CASE WHEN v.fate = 'again'
           THEN pulse._note_job((v.job).identifier, (v.job).queue_name, v.run_at)
           ELSE coalesce(pulse._note_queue((v.job).queue_name), true) END;
$$;
COMMENT ON FUNCTION pulse._end_attempts(pulse._ending[]) IS
  'ends attempts of locked jobs: cancelled, quarantined, failed, or again after the backoff';

-- Why this token is refused; NULL when the same token ended this attempt in the same way before.
CREATE FUNCTION pulse._refused_token(job_id bigint, token bigint, outcome text)
  RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  live pulse.job;
BEGIN
  IF EXISTS (SELECT FROM pulse.finished_job AS f
              WHERE f.id = job_id AND f.token = _refused_token.token
                AND f.state = 'completed' AND _refused_token.outcome = 'completed')
     OR EXISTS (SELECT FROM pulse.attempt AS a
                 WHERE a.job_id = _refused_token.job_id AND a.token = _refused_token.token
                   AND (a.outcome = _refused_token.outcome
                        OR a.outcome = 'cancelled' AND _refused_token.outcome = 'failed')) THEN
    RETURN NULL;
  END IF;
  SELECT * INTO live FROM pulse.job AS j WHERE j.id = job_id;
  RETURN CASE WHEN live.id IS NULL THEN 'no live job'
              WHEN live.state = 'running' THEN 'the job is running under another claim'
              ELSE format('the job is %s again', live.state) END;
END $$;
COMMENT ON FUNCTION pulse._refused_token(bigint, bigint, text) IS
  'the reason for PU001, or NULL for a repeat of what is recorded as done';

CREATE FUNCTION pulse._raise_stale(job_id bigint, reason text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'the claim of job % is lost', job_id USING
    ERRCODE = 'PU001', DETAIL = reason,
    HINT = 'The attempt was recovered or has ended; its outcome does not count.';
END $$;
COMMENT ON FUNCTION pulse._raise_stale(bigint, text) IS 'raises PU001';

-- Keeps a completed job where retention asks for it.
CREATE FUNCTION pulse._keep_completed(job pulse.job, result json) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  keep_us bigint := pulse._setting_us('keep_completed');
  own interval := (SELECT t.keep_completed FROM pulse.task AS t
                    WHERE t.identifier = job.identifier);
BEGIN
  IF own IS NOT NULL THEN
    keep_us := pulse._us(own);
  END IF;
  IF keep_us = 0 THEN
    RETURN;
  END IF;
  INSERT INTO pulse.finished_job
    (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts, crashes,
     job_key, flags, worker_id, token, claimed_at, checkpoint, result, last_error, revision,
     created_at, finished_at)
  VALUES
    (job.id, job.identifier, job.payload, job.queue_name, job.priority, job.run_at, 'completed',
     job.attempts, job.max_attempts, 0, job.job_key, job.flags, job.worker_id, job.token,
     job.claimed_at, job.checkpoint, result, job.last_error, job.revision, job.created_at,
     pulse.now());
  INSERT INTO pulse.attempt (job_id, token, attempt, worker_id, claimed_at, ended_at, outcome)
  VALUES (job.id, job.token, job.attempts, job.worker_id, job.claimed_at, pulse.now(), 'completed');
END $$;
COMMENT ON FUNCTION pulse._keep_completed(pulse.job, json) IS
  'stores a completed job and its attempt, unless completed jobs of its task are not kept';

CREATE FUNCTION pulse.complete(job_id bigint, token bigint, result json = NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  done pulse.job;
  reason text;
BEGIN
  PERFORM pulse._check_document('result', result);
  DELETE FROM pulse.job AS j
   WHERE j.id = complete.job_id AND j.token = complete.token AND j.state = 'running'
  RETURNING j.* INTO done;
  IF done.id IS NULL THEN
    reason := pulse._refused_token(job_id, complete.token, 'completed');
    IF reason IS NOT NULL OR complete.token IS NULL OR job_id IS NULL THEN
      PERFORM pulse._raise_stale(job_id, reason);
    END IF;
    RETURN;
  END IF;
  PERFORM pulse._keep_completed(done, result);
  PERFORM pulse._note_queue(done.queue_name);
END $$;
COMMENT ON FUNCTION pulse.complete(bigint, bigint, json) IS
  'ends a claim with success, in the caller''s transaction: it commits or rolls back with the '
  'caller''s '
  'rows. PU001 when the claim is lost';

-- One job of complete_many that needs more than a delete: it is kept, or it was done before.
CREATE FUNCTION pulse._complete_one(job_id bigint, token bigint, result json)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  done pulse.job;
BEGIN
  SELECT * INTO done FROM pulse.job AS j
   WHERE j.id = _complete_one.job_id AND j.token = _complete_one.token AND j.state = 'running'
     FOR UPDATE SKIP LOCKED;
  IF done.id IS NULL THEN
    RETURN CASE
      WHEN EXISTS (SELECT FROM pulse.job AS j
                    WHERE j.id = _complete_one.job_id AND j.token = _complete_one.token) THEN 'busy'
      WHEN pulse._refused_token(job_id, _complete_one.token, 'completed') IS NULL THEN 'accepted'
      ELSE 'stale' END;
  END IF;
  DELETE FROM pulse.job AS j WHERE j.id = done.id;
  PERFORM pulse._keep_completed(done, result);
  PERFORM pulse._note_queue(done.queue_name);
  RETURN 'accepted';
END $$;
COMMENT ON FUNCTION pulse._complete_one(bigint, bigint, json) IS
  'accepted, stale or busy; never waits';

CREATE FUNCTION pulse.complete_many(
    job_ids bigint[], tokens bigint[], results json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  AS 'MODULE_PATHNAME', 'pulse_complete_many';
COMMENT ON FUNCTION pulse.complete_many(bigint[], bigint[], json[]) IS
  'ends many claims with success. Per job: accepted, stale (not this claim''s any more) or '
  'busy (held by '
  'another transaction: ask again). Never waits. PU004 for arrays of unequal length';

-- Locks one job of this claim, waiting for whoever holds it, and its key.
CREATE FUNCTION pulse._lock_claim(job_id bigint, token bigint) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  locked pulse.job;
BEGIN
  SELECT * INTO locked FROM pulse.job AS j
   WHERE j.id = _lock_claim.job_id AND j.token = _lock_claim.token AND j.state = 'running';
  -- The key first, as a keyed add does, so that the two never wait in a circle.
  PERFORM pulse._lock_key(locked.job_key);
  SELECT * INTO locked FROM pulse.job AS j
   WHERE j.id = _lock_claim.job_id AND j.token = _lock_claim.token AND j.state = 'running'
     FOR UPDATE;
  RETURN locked;
END $$;
COMMENT ON FUNCTION pulse._lock_claim(bigint, bigint) IS
  'the job of this claim, locked; NULLs when the claim is not current';

CREATE FUNCTION pulse._check_error(error text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF error IS NULL THEN
    RAISE EXCEPTION 'error must not be null' USING
      ERRCODE = 'PU004', HINT = 'Say what went wrong; it is stored as last_error.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse._check_error(text) IS 'raises PU004 for a missing reason';

CREATE FUNCTION pulse.fail(
    job_id bigint, token bigint, error text, retry boolean = true, retry_in interval = NULL,
    payload json = NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  locked pulse.job;
  reason text;
BEGIN
  PERFORM pulse._check_error(error);
  PERFORM pulse._check_duration('retry_in', retry_in, interval '0');
  PERFORM pulse._check_document('payload', payload);
  locked := pulse._lock_claim(job_id, token);
  IF locked.id IS NULL THEN
    reason := pulse._refused_token(job_id, fail.token, 'failed');
    IF reason IS NOT NULL OR fail.token IS NULL OR job_id IS NULL THEN
      PERFORM pulse._raise_stale(job_id, reason);
    END IF;
    RETURN coalesce((SELECT j.state::text FROM pulse.job AS j WHERE j.id = job_id),
                    (SELECT f.state::text FROM pulse.finished_job AS f WHERE f.id = job_id));
  END IF;
  RETURN (SELECT e.state FROM pulse._end_attempts(ARRAY[
    ROW(job_id, 'failed', error, coalesce(retry, true), retry_in, payload, NULL)::pulse._ending
  ]) AS e);
END $$;
COMMENT ON FUNCTION pulse.fail(bigint, bigint, text, boolean, interval, json) IS
  'ends a claim with an error; returns the new state: ready or parked (again after the backoff, or '
  'after retry_in), failed (the last attempt, or retry => false) or cancelled. PU001 when the '
  'claim is lost';

-- Locks what is free of the claims asked for. "busy" are rows and keys that others hold.
CREATE FUNCTION pulse._lock_claims(job_ids bigint[], tokens bigint[])
  RETURNS bigint[]
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  WITH free AS MATERIALIZED (
    SELECT j.id, j.job_key FROM pulse.job AS j
      JOIN unnest(job_ids, tokens) AS a (id, token) ON a.id = j.id AND a.token = j.token
     WHERE j.id = ANY (job_ids)  -- a matching token tells that it runs
     ORDER BY j.id
       FOR UPDATE OF j SKIP LOCKED
  )
  SELECT coalesce(array_agg(DISTINCT f.id), '{}') FROM free AS f
   WHERE f.job_key IS NULL OR pulse._try_lock_key(f.job_key);
$$;
COMMENT ON FUNCTION pulse._lock_claims(bigint[], bigint[]) IS
  'locks, in id order and without waiting, the jobs of these claims; returns those it got';

-- The answers of a plural call: what was ended here, what others hold, what is not this claim's.
CREATE FUNCTION pulse._outcomes(
    job_ids bigint[], tokens bigint[], ended bigint[], outcome text)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
  SELECT a.id, CASE
      WHEN a.id = ANY (ended) AND EXISTS (
        SELECT FROM pulse.attempt AS t WHERE t.job_id = a.id AND t.token = a.token) THEN 'accepted'
      WHEN EXISTS (SELECT FROM pulse.job AS j WHERE j.id = a.id AND j.token = a.token) THEN 'busy'
      WHEN a.id IS NOT NULL AND a.token IS NOT NULL
           AND pulse._refused_token(a.id, a.token, outcome) IS NULL THEN 'accepted'
      ELSE 'stale' END
    FROM unnest(job_ids, tokens) AS a (id, token);
$$;
COMMENT ON FUNCTION pulse._outcomes(bigint[], bigint[], bigint[], text) IS
  'accepted, stale or busy for each job asked for';

CREATE FUNCTION pulse.fail_many(
    job_ids bigint[], tokens bigint[], errors text[], retry boolean[] = NULL,
    retry_in interval[] = NULL, payloads json[] = NULL)
  RETURNS SETOF pulse.job_outcome
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  locked bigint[];
  endings pulse._ending[];
BEGIN
  PERFORM pulse._check_lengths(ARRAY[
    coalesce(cardinality(job_ids), 0), coalesce(cardinality(tokens), 0),
    coalesce(cardinality(errors), 0), cardinality(retry), cardinality(retry_in),
    cardinality(payloads)]);
  PERFORM pulse._check_error(e) FROM unnest(errors) AS e WHERE e IS NULL;
  PERFORM pulse._check_duration('retry_in', d, interval '0') FROM unnest(retry_in) AS d;
  PERFORM pulse._check_document('payload', p) FROM unnest(payloads) AS p;
  locked := pulse._lock_claims(job_ids, tokens);
  SELECT array_agg(ROW(a.id, 'failed', a.error, coalesce(a.again, true), a.delay, a.payload,
                       NULL)::pulse._ending)
    INTO endings
    FROM (SELECT DISTINCT ON (u.id) u.*
            FROM unnest(job_ids, tokens, errors, fail_many.retry, fail_many.retry_in, payloads)
                 AS u (id, token, error, again, delay, payload)
            JOIN pulse.job AS j ON j.id = u.id AND j.token = u.token
           WHERE j.id = ANY (locked) ORDER BY u.id) AS a;
  PERFORM pulse._end_attempts(endings);
  RETURN QUERY SELECT * FROM pulse._outcomes(job_ids, tokens, locked, 'failed');
END $$;
COMMENT ON FUNCTION pulse.fail_many(bigint[], bigint[], text[], boolean[], interval[], json[]) IS
  'ends many claims with an error each. Per job: accepted, stale or busy (ask again). Never waits';

CREATE FUNCTION pulse.release(job_ids bigint[], tokens bigint[])
  RETURNS SETOF pulse.job_outcome
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  locked bigint[];
BEGIN
  PERFORM pulse._check_lengths(ARRAY[
    coalesce(cardinality(job_ids), 0), coalesce(cardinality(tokens), 0)]);
  locked := pulse._lock_claims(job_ids, tokens);
  PERFORM pulse._end_attempts((
    SELECT array_agg(ROW(l, 'released', NULL, true, NULL, NULL, j.recovered)::pulse._ending)
      FROM unnest(locked) AS l JOIN pulse.job AS j ON j.id = l
     WHERE j.id = ANY (locked)));
  RETURN QUERY SELECT * FROM pulse._outcomes(job_ids, tokens, locked, 'released');
END $$;
COMMENT ON FUNCTION pulse.release(bigint[], bigint[]) IS
  'hands back jobs that were never started; only this gives the attempt back. Per job: '
  'accepted, stale or busy';

CREATE FUNCTION pulse.snooze(
    job_id bigint, token bigint, delay interval, checkpoint json = NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  locked pulse.job;
BEGIN
  IF delay IS NULL THEN
    RAISE EXCEPTION 'delay must not be null' USING
      ERRCODE = 'PU004', HINT = 'Say for how long the job sleeps.';
  END IF;
  PERFORM pulse._check_duration('delay', delay, interval '0');
  PERFORM pulse._check_document('checkpoint', checkpoint);
  locked := pulse._lock_claim(job_id, token);
  IF locked.id IS NULL THEN
    PERFORM pulse._raise_stale(
      job_id, coalesce(pulse._refused_token(job_id, snooze.token, 'snoozed'), 'no live job'));
  END IF;
  IF locked.cancel_requested_at IS NOT NULL OR pulse._is_superseded(locked) THEN
    -- It may not run again: its end is that of any other end.
    PERFORM pulse._end_attempts(ARRAY[
      ROW(job_id, 'failed', 'snoozed', false, NULL, NULL, NULL)::pulse._ending]);
    RETURN;
  END IF;
  UPDATE pulse.job AS j SET
    state      = CASE WHEN j.queue_name IS NULL THEN 'ready' ELSE 'parked' END::pulse.job_state,
    attempts   = j.attempts - 1,
    run_at     = pulse.now() + delay,
    checkpoint = coalesce(snooze.checkpoint, j.checkpoint),
    worker_id  = NULL, token = NULL, claimed_at = NULL, claimed_live_us = NULL,
    activity_live_us = NULL,
    updated_at = pulse.now()
  WHERE j.id = locked.id;
  PERFORM pulse._note_job(locked.identifier, locked.queue_name, pulse.now() + delay);
END $$;
COMMENT ON FUNCTION pulse.snooze(bigint, bigint, interval, json) IS
  'puts a running job back for a while; the attempt is returned. PU001 when the claim is lost';
-- sql/claim.sql
-- Taking jobs: claim hands out the best due ones, claim_job one by its id, held repeats what is
-- held. claim itself is in extension/claim.cpp. Lock order: worker (shared), queue (never waited
-- for), row.

CREATE FUNCTION pulse._next_token() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_next_token';
COMMENT ON FUNCTION pulse._next_token() IS
  'a number that no claim had before, also across failover';

CREATE FUNCTION pulse._require_claims() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_require_claims';
COMMENT ON FUNCTION pulse._require_claims() IS 'raises PU008 while pulse.claims is off';

CREATE FUNCTION pulse._share_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_share_worker';
COMMENT ON FUNCTION pulse._share_worker(bigint) IS
  'until the transaction ends nobody declares this worker lost';

CREATE FUNCTION pulse._try_lock_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_try_lock_worker';
COMMENT ON FUNCTION pulse._try_lock_worker(bigint) IS
  'the right to declare this worker lost, unless a claim of it is under way';

CREATE FUNCTION pulse._lock_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_worker';
COMMENT ON FUNCTION pulse._lock_worker(bigint) IS
  'the same, waiting for another who declares it lost; false while a claim of it is under way';

CREATE FUNCTION pulse.claim(
    worker_id bigint,
    max_jobs int = 1,
    tasks text[] = NULL,
    forbidden_flags text[] = NULL,
    start_jobs int = NULL)
  RETURNS SETOF pulse.claimed_job
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE ROWS 10
  AS 'MODULE_PATHNAME', 'pulse_claim';
COMMENT ON FUNCTION pulse.claim(bigint, int, text[], text[], int) IS
  'hands out at most max_jobs due jobs in order of priority, run_at and id; each consumes an '
  'attempt. '
  'The first start_jobs (NULL: all) are started at once, the rest may wait in the worker. '
  'PU002 for a '
  'worker that is unknown, lost or stopped, PU007 outside READ COMMITTED, PU008 while '
  'pulse.claims is off';

CREATE FUNCTION pulse._as_claimed(job pulse.job) RETURNS pulse.claimed_job
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ROW(job.id, job.token, job.identifier, job.payload, job.queue_name, job.priority,
             job.run_at, job.attempts, job.max_attempts, job.crashes, job.job_key, job.flags,
             job.checkpoint, job.last_error, job.recovered,
             coalesce(t.timeout, pulse._interval(pulse._setting_us('default_timeout'))),
             t.stall_timeout, coalesce(t.on_unreachable, 'continue'), t.handler,
             job.created_at)::pulse.claimed_job
    FROM (SELECT) AS one LEFT JOIN pulse.task AS t ON t.identifier = job.identifier;
$$;
COMMENT ON FUNCTION pulse._as_claimed(pulse.job) IS 'a running job as its worker sees it';

CREATE FUNCTION pulse.held(worker_id bigint) RETURNS SETOF pulse.claimed_job
  LANGUAGE sql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT (pulse._as_claimed(j)).* FROM pulse.job AS j
   WHERE j.state = 'running' AND j.worker_id = held.worker_id
   ORDER BY j.id;
$$;
COMMENT ON FUNCTION pulse.held(bigint) IS 'what this worker holds, for after a lost reply';

-- Why a job cannot be taken by this worker; NULL when it can. Called with the row locked.
CREATE FUNCTION pulse._refusal(job pulse.job) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner pulse.heartbeat;
BEGIN
  IF job.state = 'parked' THEN
    RETURN 'parked';
  ELSIF job.state = 'ready' THEN
    RETURN CASE WHEN job.run_at > pulse.now() THEN 'future' END;
  END IF;
  SELECT * INTO owner FROM pulse.heartbeat AS h WHERE h.worker_id = job.worker_id;
  IF owner.worker_id IS NULL OR owner.verdict IN ('lost', 'stopped')
     OR pulse._lost_way(owner, pulse._live_now_us()) IS NOT NULL THEN
    RETURN NULL;
  END IF;
  RETURN 'running';
END $$;
COMMENT ON FUNCTION pulse._refusal(pulse.job) IS
  'parked, future or running (by a living owner); NULL when the job may be claimed';

-- A suspect runs alone (see claim): not beside other jobs of its worker, and they not beside it.
CREATE FUNCTION pulse._must_wait_alone(job pulse.job, worker_id bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  crash_limit int := coalesce(
    (SELECT t.max_crashes FROM pulse.task AS t WHERE t.identifier = job.identifier),
    pulse._max_crashes());
BEGIN
  IF EXISTS (SELECT FROM pulse.heartbeat AS h JOIN pulse.job AS a ON a.id = h.alone_job_id
              WHERE h.worker_id = _must_wait_alone.worker_id
                AND a.state = 'running' AND a.worker_id = _must_wait_alone.worker_id) THEN
    RETURN true;
  ELSIF crash_limit < 0 OR job.crashes < greatest(crash_limit - 1, 1) THEN
    RETURN false;
  ELSIF EXISTS (SELECT FROM pulse.job AS r
                 WHERE r.state = 'running' AND r.worker_id = _must_wait_alone.worker_id)
        OR NOT pulse._try_lock_worker(_must_wait_alone.worker_id) THEN
    RETURN true;
  END IF;
  UPDATE pulse.heartbeat AS h SET alone_job_id = job.id
   WHERE h.worker_id = _must_wait_alone.worker_id;
  RETURN false;
END $$;
COMMENT ON FUNCTION pulse._must_wait_alone(pulse.job, bigint) IS
  'whether the rule of the last chance forbids this worker this job now';

CREATE FUNCTION pulse._take_job(job pulse.job, worker_id bigint) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  live_us bigint := pulse._live_now_us();
  taken pulse.job;
BEGIN
  UPDATE pulse.job AS j SET
    state = 'running', attempts = j.attempts + 1, worker_id = _take_job.worker_id,
    token = pulse._next_token(), claimed_at = pulse.now(), last_activity_at = pulse.now(),
    claimed_live_us = live_us, activity_live_us = live_us,
    stage = NULL, progress = NULL, message = NULL
  WHERE j.id = job.id
  RETURNING j.* INTO taken;
  RETURN taken;
END $$;
COMMENT ON FUNCTION pulse._take_job(pulse.job, bigint) IS 'claims a locked job that may be claimed';

CREATE FUNCTION pulse.claim_job(
    worker_id bigint, job_id bigint, OUT reason text, OUT job pulse.claimed_job)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wanted pulse.job;
  status text;
BEGIN
  PERFORM pulse._require_read_committed('claim_job');
  PERFORM pulse._require_claims();
  PERFORM pulse._share_worker(claim_job.worker_id);
  SELECT h.verdict INTO status FROM pulse.heartbeat AS h WHERE h.worker_id = claim_job.worker_id;
  IF status IS NULL OR status IN ('lost', 'stopped') THEN
    RAISE EXCEPTION 'worker % is %', claim_job.worker_id, coalesce(status, 'unknown or stopped')
      USING ERRCODE = 'PU002',
            HINT = 'Register anew with pulse.register_worker() and use the new id.';
  END IF;
  SELECT * INTO wanted FROM pulse.job AS j WHERE j.id = claim_job.job_id FOR UPDATE SKIP LOCKED;
  IF wanted.id IS NULL THEN
    reason := (SELECT CASE WHEN EXISTS (SELECT FROM pulse.finished_job AS f WHERE f.id = job_id)
                        THEN 'finished'
                      WHEN EXISTS (SELECT FROM pulse.job AS j WHERE j.id = job_id)
                        THEN 'running'
                      ELSE 'unknown' END);
    RETURN;
  END IF;
  IF wanted.state = 'running' AND wanted.worker_id = claim_job.worker_id THEN
    reason := 'yours';
    job := pulse._as_claimed(wanted);
    RETURN;
  END IF;
  reason := pulse._refusal(wanted);
  IF reason IS NOT NULL OR status <> 'alive' THEN
    reason := coalesce(reason, 'running');
    RETURN;
  END IF;
  IF wanted.state = 'running' THEN
    wanted := pulse._recover_for_claim(wanted);
    IF wanted.id IS NULL THEN
      reason := 'finished';
      RETURN;
    END IF;
  END IF;
  -- Judged with the crash that the recovery has just counted.
  IF pulse._must_wait_alone(wanted, claim_job.worker_id) THEN
    reason := 'parked';
    RETURN;
  END IF;
  reason := 'claimed';
  job := pulse._as_claimed(pulse._take_job(wanted, claim_job.worker_id));
END $$;
COMMENT ON FUNCTION pulse.claim_job(bigint, bigint) IS
  'claims one job by its id. reason: claimed, yours (already, same token), running, parked '
  '(behind its '
  'queue, or on its last chance, for which a worker must be idle), future, finished or '
  'unknown. Takes a due job, or one whose owner is lost or silent beyond its threshold';
-- sql/worker.sql
-- Workers: registration, the attached session, the orderly end. An id is never used twice, so a new
-- process never keeps a dead one's jobs alive.

CREATE FUNCTION pulse._next_worker_id() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_next_worker_id';
COMMENT ON FUNCTION pulse._next_worker_id() IS
  'an id that no worker had before, also across failover';

CREATE FUNCTION pulse._hold_attachment() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_hold_attachment';
COMMENT ON FUNCTION pulse._hold_attachment() IS
  'a new session lock that stands for this session; its number';

CREATE FUNCTION pulse._holds_attachment(attachment bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_holds_attachment';
COMMENT ON FUNCTION pulse._holds_attachment(bigint) IS
  'whether this session is the one it stands for';

CREATE FUNCTION pulse._forget_attachment(attachment bigint) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_forget_attachment';
COMMENT ON FUNCTION pulse._forget_attachment(bigint) IS
  'the worker ended in order: the end of this session asks for no sweep';

CREATE FUNCTION pulse._attachment_state(attachment bigint, incarnation bigint)
  RETURNS text
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_attachment_state';
COMMENT ON FUNCTION pulse._attachment_state(bigint, bigint) IS
  'open, ended (by its client) or unknown (the server ended it: silence decides)';

CREATE FUNCTION pulse._incarnation() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_incarnation';
COMMENT ON FUNCTION pulse._incarnation() IS 'names this run of the server';

-- What every worker's settings must keep: two beats and a sweep and a half fit into the threshold.
CREATE FUNCTION pulse._least_threshold_us(interval_us bigint) RETURNS bigint
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 2 * interval_us + coalesce(pulse._setting_us('sweep_interval'), 0) * 3 / 2;
$$;
COMMENT ON FUNCTION pulse._least_threshold_us(bigint) IS
  '2 x heartbeat_interval + 1.5 x sweep_interval, microseconds';

CREATE FUNCTION pulse._check_worker(
    name text, tasks text[], heartbeat_interval interval)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  least_us bigint;
  task text;
BEGIN
  PERFORM pulse._check_name('name', name, 512);
  IF array_ndims(tasks) > 1 THEN
    RAISE EXCEPTION 'tasks must be a flat array' USING
      ERRCODE = 'PU004', HINT = 'Give each task once, or NULL for every task.';
  END IF;
  FOREACH task IN ARRAY coalesce(tasks, '{}') LOOP
    PERFORM pulse._check_identifier(task);
  END LOOP;
  IF heartbeat_interval < interval '0' OR heartbeat_interval > interval '1 day'
     OR (heartbeat_interval > interval '0' AND heartbeat_interval < interval '10 ms') THEN
    RAISE EXCEPTION 'heartbeat_interval is %, out of range', heartbeat_interval USING
      ERRCODE = 'PU004',
      HINT = 'It must be between 10 ms and 1 day, or 0 for one that lives as long as its session.';
  END IF;
  least_us := pulse._least_threshold_us(pulse._us(heartbeat_interval));
  IF heartbeat_interval > interval '0' AND pulse._setting_us('sweep_threshold') < least_us THEN
    RAISE EXCEPTION 'sweep_threshold % is too short for these intervals',
        pulse._interval(pulse._setting_us('sweep_threshold')) USING
      ERRCODE = 'PU003',
      DETAIL = format('heartbeat_interval is %s, sweep_interval is %s.', heartbeat_interval,
                      coalesce(pulse._interval(pulse._setting_us('sweep_interval'))::text, 'off')),
      HINT = format('sweep_threshold must be at least 2 x heartbeat_interval + 1.5 x '
                    'sweep_interval, here %s.', pulse._interval(least_us));
  END IF;
END $$;
COMMENT ON FUNCTION pulse._check_worker(text, text[], interval) IS
  'raises PU004 for a name or value out of range, PU003 for settings that would make living '
  'workers look lost';

CREATE FUNCTION pulse._warn_in_block(what text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pulse._in_client_block() THEN
    RAISE WARNING '% inside a transaction block counts only once that commits', what USING
      HINT = 'Call it by itself; a client library that opens transactions needs autocommit.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse._warn_in_block(text) IS 'warns where a beat would wait for a commit';

CREATE FUNCTION pulse.register_worker(
    name text, tasks text[] = NULL, info json = NULL, heartbeat_interval interval = NULL)
  RETURNS pulse.worker
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  registered pulse.worker;
  every interval := coalesce(register_worker.heartbeat_interval,
                             pulse._interval(pulse._setting_us('heartbeat_interval')));
BEGIN
  PERFORM pulse._check_worker(register_worker.name, register_worker.tasks, every);
  PERFORM pulse._warn_in_block('register_worker');
  INSERT INTO pulse.worker
    (id, name, hostname, boot_id, pid_namespace, pid, process_start, tasks, heartbeat_interval,
     sweep_threshold, started_at, info)
  VALUES
    (pulse._next_worker_id(), register_worker.name, info ->> 'hostname', info ->> 'boot_id',
     info ->> 'pid_namespace',
     CASE WHEN info ->> 'pid' ~ '^[0-9]{1,9}$' THEN (info ->> 'pid')::int END,
     info ->> 'process_start', register_worker.tasks, every,
     pulse._interval(pulse._setting_us('sweep_threshold')), pulse.now(), info)
  RETURNING * INTO registered;
  INSERT INTO pulse.heartbeat
    (worker_id, beat_live_us, last_heartbeat_at, interval_us, threshold_us)
  VALUES
    (registered.id, pulse._live_now_us(), pulse.now(), pulse._us(every),
     pulse._setting_us('sweep_threshold'));
  RETURN registered;
END $$;
COMMENT ON FUNCTION pulse.register_worker(text, text[], json, interval) IS
  'makes a worker known; this is its first beat. tasks NULL: every task. heartbeat_interval 0: '
  'alive '
  'exactly as long as its attached session lives. PU003 when the settings contradict each other';

CREATE FUNCTION pulse._require_alive(worker_id bigint) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  status text := (SELECT h.verdict FROM pulse.heartbeat AS h
                   WHERE h.worker_id = _require_alive.worker_id);
BEGIN
  IF status IS NULL OR status IN ('lost', 'stopped') THEN
    RAISE EXCEPTION 'worker % is %', worker_id, coalesce(status, 'unknown or stopped') USING
      ERRCODE = 'PU002',
      HINT = 'Register anew with pulse.register_worker() and use the new id.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse._require_alive(bigint) IS
  'raises PU002 for a worker that is unknown, lost or stopped';

CREATE FUNCTION pulse.attach_worker(worker_id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pulse._warn_in_block('attach_worker');
  PERFORM 1 FROM pulse.heartbeat AS h WHERE h.worker_id = attach_worker.worker_id FOR UPDATE;
  PERFORM pulse._require_alive(attach_worker.worker_id);
  UPDATE pulse.heartbeat AS h SET
    attachment = pulse._hold_attachment(), incarnation = pulse._incarnation(),
    detached_live_us = NULL, beat_live_us = pulse._live_now_us(), last_heartbeat_at = pulse.now()
  WHERE h.worker_id = attach_worker.worker_id;
END $$;
COMMENT ON FUNCTION pulse.attach_worker(bigint) IS
  'ties the worker to this session: when its client ends it, the worker is lost after '
  'pulse.disconnect_grace. Not through a transaction pooler. PU002 for a worker that is not alive';

CREATE FUNCTION pulse.deregister_worker(worker_id bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last_worker pulse.worker;
  last_beat pulse.heartbeat;
BEGIN
  PERFORM pulse._require_read_committed('deregister_worker');
  DELETE FROM pulse.heartbeat AS h
   WHERE h.worker_id = deregister_worker.worker_id AND h.verdict <> 'lost'
  RETURNING h.* INTO last_beat;
  PERFORM pulse._forget_attachment(last_beat.attachment);
  IF last_beat.worker_id IS NULL THEN
    IF NOT EXISTS (SELECT FROM pulse.worker AS w WHERE w.id = deregister_worker.worker_id) THEN
      RAISE EXCEPTION 'worker % is unknown', worker_id USING
        ERRCODE = 'PU002', HINT = 'pulse.worker lists the registered ones.';
    END IF;
    RETURN;
  END IF;
  UPDATE pulse.worker AS w SET state = 'stopped', ended_at = pulse.now(), reason = 'deregistered'
   WHERE w.id = deregister_worker.worker_id
  RETURNING * INTO last_worker;
  -- Rows that somebody holds right now are found by the next sweep.
  PERFORM pulse._end_attempts((
    SELECT array_agg(ROW(l, 'interrupted', format('worker %s (%s) stopped', last_worker.id,
                         last_worker.name), true, NULL, NULL, NULL)::pulse._ending)
      FROM unnest(pulse._lock_running(deregister_worker.worker_id, NULL)) AS l));
END $$;
COMMENT ON FUNCTION pulse.deregister_worker(bigint) IS
  'the orderly end of a worker. Jobs that it still holds are interrupted: ready again at once, '
  'with '
  'the attempt consumed and no crash counted. Once more is no error';
-- sql/heartbeat.sql
-- The heartbeat: one HOT update that reads the verdict in the statement that beats. Were the
-- verdict in another table, a worker could hear "alive" while it is being marked as lost.

-- Jobs that the worker does not know of in two arrays running go back: their claim's reply was
-- lost.
CREATE FUNCTION pulse._settle_missing(beat pulse.heartbeat, job_ids bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ids bigint[];
  tokens bigint[];
BEGIN
  SELECT array_agg(j.id ORDER BY j.id), array_agg(j.token ORDER BY j.id) INTO ids, tokens
    FROM pulse.job AS j
   WHERE j.state = 'running' AND j.worker_id = beat.worker_id AND j.id <> ALL (job_ids);
  IF ids IS NOT NULL AND beat.missing_job_ids IS NOT NULL THEN
    PERFORM pulse._end_attempts((
      SELECT array_agg(ROW(l, 'interrupted', 'the worker does not know of this claim', true, NULL,
                           NULL, NULL)::pulse._ending)
        FROM unnest(pulse._lock_claims(beat.missing_job_ids, beat.missing_tokens)) AS l
       WHERE l = ANY (ids)));
  END IF;
  IF ids IS DISTINCT FROM beat.missing_job_ids OR tokens IS DISTINCT FROM beat.missing_tokens THEN
    UPDATE pulse.heartbeat AS h SET missing_job_ids = ids, missing_tokens = tokens
     WHERE h.worker_id = beat.worker_id;
  END IF;
END $$;
COMMENT ON FUNCTION pulse._settle_missing(pulse.heartbeat, bigint[]) IS
  'gives back jobs that were missing from the last array of this worker too';

CREATE FUNCTION pulse.heartbeat(
    worker_id bigint, job_ids bigint[] = NULL,
    OUT status text, OUT revoked bigint[], OUT cancelled bigint[])
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  beat pulse.heartbeat;
BEGIN
  PERFORM pulse._warn_in_block('heartbeat');
  IF NOT pulse._in_client_block() THEN
    -- A beat that a crash loses is followed by another; one that waits for a standby is late.
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  UPDATE pulse.heartbeat AS h SET
    beat_live_us = pulse._live_now_us(),
    last_heartbeat_at = pulse.now(),
    attachment = CASE WHEN pulse._holds_attachment(h.attachment) THEN h.attachment END,
    detached_live_us = NULL
  WHERE h.worker_id = heartbeat.worker_id AND h.verdict NOT IN ('lost', 'stopped')
  RETURNING h.* INTO beat;
  PERFORM pulse._offer_sweep();
  status := coalesce(beat.verdict, 'lost');
  revoked := '{}';
  cancelled := '{}';
  IF beat.worker_id IS NULL THEN
    revoked := coalesce(job_ids, '{}');
    RETURN;
  END IF;
  IF job_ids IS NOT NULL THEN
    PERFORM pulse._settle_missing(beat, job_ids);
    SELECT coalesce(array_agg(a.id), '{}') INTO revoked
      FROM unnest(job_ids) AS a (id)
     WHERE NOT EXISTS (SELECT FROM pulse.job AS j
                        WHERE j.id = a.id AND j.state = 'running' AND j.worker_id = beat.worker_id);
  END IF;
  SELECT coalesce(array_agg(j.id), '{}') INTO cancelled
    FROM pulse.job AS j
   WHERE j.state = 'running' AND j.worker_id = beat.worker_id AND j.cancel_requested_at IS NOT NULL;
END $$;
COMMENT ON FUNCTION pulse.heartbeat(bigint, bigint[]) IS
  'the worker lives. status: alive, draining, stopping or lost (also for an unknown or stopped '
  'one). '
  'job_ids means "exactly these": revoked are those among them that are not this worker''s any '
  'more; a '
  'job missing from two arrays running goes back. cancelled: jobs to end. Never raises for a '
  'worker';
-- sql/progress.sql
-- A running job says that it gets on: this is what stall_timeout watches.

CREATE FUNCTION pulse.progress(
    job_id bigint, token bigint, message text = NULL, fraction float8 = NULL,
    checkpoint json = NULL, stage text = NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner bigint;
BEGIN
  IF fraction NOT BETWEEN 0 AND 1 OR fraction = 'NaN' THEN
    RAISE EXCEPTION 'fraction is %, out of range', fraction USING
      ERRCODE = 'PU004', HINT = 'It must be between 0 and 1.';
  END IF;
  PERFORM pulse._check_document('checkpoint', checkpoint);
  UPDATE pulse.job AS j SET
    message = coalesce(progress.message, j.message),
    progress = coalesce(progress.fraction, j.progress),
    checkpoint = coalesce(progress.checkpoint, j.checkpoint),
    stage = coalesce(progress.stage, j.stage),
    last_activity_at = pulse.now(),
    activity_live_us = pulse._live_now_us()
  WHERE j.id = progress.job_id AND j.token = progress.token AND j.state = 'running'
  RETURNING j.worker_id INTO owner;
  IF NOT FOUND THEN
    PERFORM pulse._raise_stale(
      job_id, coalesce(pulse._refused_token(job_id, progress.token, 'progress'), 'no live job'));
  END IF;
  IF NOT pulse._in_client_block() THEN
    UPDATE pulse.heartbeat AS h
       SET beat_live_us = pulse._live_now_us(), last_heartbeat_at = pulse.now()
     WHERE h.worker_id = owner AND h.verdict NOT IN ('lost', 'stopped') AND h.interval_us > 0
       AND pulse._live_now_us() - h.beat_live_us > h.interval_us / 2;
  END IF;
END $$;
COMMENT ON FUNCTION pulse.progress(bigint, bigint, text, float8, json, text) IS
  'reports progress of a running job and stores its checkpoint; NULL leaves a value. Counts as '
  'a beat '
  'where it is its own transaction. PU001 when the claim is lost';
-- sql/cancel.sql
-- Looking at one job and cancelling it.

CREATE FUNCTION pulse.get_job(job_id bigint, OUT state text, OUT job json)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT j.state::text, row_to_json(j) INTO state, job
    FROM pulse.job AS j WHERE j.id = get_job.job_id;
  IF state IS NULL THEN
    SELECT f.state::text, row_to_json(f) INTO state, job
      FROM pulse.finished_job AS f WHERE f.id = get_job.job_id;
  END IF;
  IF state IS NULL THEN
    RAISE EXCEPTION 'job % is unknown', coalesce(job_id::text, 'NULL') USING
      ERRCODE = 'PU005',
      HINT = 'Completed jobs are deleted unless pulse.keep_completed keeps them.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse.get_job(bigint) IS
  'a live or finished job: its state and everything stored of it. PU005 when there is none';

CREATE FUNCTION pulse._cancel_waiting(waiting pulse.job, reason text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pulse.job AS j WHERE j.id = waiting.id;
  INSERT INTO pulse.finished_job
    (id, identifier, payload, queue_name, priority, run_at, state, attempts, max_attempts, crashes,
     job_key, flags, checkpoint, last_error, revision, created_at, finished_at)
  VALUES
    (waiting.id, waiting.identifier, waiting.payload, waiting.queue_name, waiting.priority,
     waiting.run_at, 'cancelled', waiting.attempts, waiting.max_attempts, waiting.crashes,
     waiting.job_key, waiting.flags, waiting.checkpoint, coalesce(reason, waiting.last_error),
     waiting.revision, waiting.created_at, pulse.now());
  PERFORM pulse._note_queue(waiting.queue_name);
END $$;
COMMENT ON FUNCTION pulse._cancel_waiting(pulse.job, text) IS
  'ends a locked job that is not running';

CREATE FUNCTION pulse.cancel_job(job_id bigint, reason text = NULL) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_job pulse.job;
BEGIN
  SELECT * INTO found_job FROM pulse.job AS j WHERE j.id = cancel_job.job_id FOR UPDATE;
  IF found_job.id IS NULL THEN
    -- Finished already, or moved there while we waited for its row: its end stands.
    RETURN (SELECT g.state FROM pulse.get_job(job_id) AS g);
  END IF;
  IF found_job.state <> 'running' THEN
    PERFORM pulse._cancel_waiting(found_job, cancel_job.reason);
    RETURN 'cancelled';
  END IF;
  UPDATE pulse.job AS j
     SET cancel_requested_at = coalesce(j.cancel_requested_at, pulse.now()),
         cancel_reason = coalesce(cancel_job.reason, j.cancel_reason)
   WHERE j.id = found_job.id;
  PERFORM pulse._note_worker(found_job.worker_id);
  RETURN 'running';
END $$;
COMMENT ON FUNCTION pulse.cancel_job(bigint, text) IS
  'a waiting job is cancelled at once; a running one is flagged and its worker told by every '
  'heartbeat: '
  'a completion that comes first wins, any other end is cancelled. Returns the state: cancelled, '
  'running (flagged), or how the job had ended before. PU005 when there is none';
-- sql/fence.sql
-- Fencing the caller's own rows: see extension/fence.cpp.

CREATE FUNCTION pulse.fence(job_id bigint, token bigint) RETURNS void
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_fence';
COMMENT ON FUNCTION pulse.fence(bigint, bigint) IS
  'makes this transaction fail at COMMIT, with PU001, unless the claim is still current then '
  'or was '
  'ended by this transaction. PU001 at once when it is lost already';
-- sql/lost.sql
-- Who is lost: the judgement about each worker, the verdict, and what is recovered from it. Every
-- step locks what it changes without waiting and judges again on the locked row. Lock order:
-- heartbeat row, worker lock, job rows by id, job keys.

-- How this worker was lost, NULL while it is alive. Judged on one version of its heartbeat row.
CREATE FUNCTION pulse._lost_way(beat pulse.heartbeat, live_us bigint) RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN beat.verdict IN ('lost', 'stopped') THEN NULL
    WHEN beat.attachment IS NOT NULL
         AND live_us - beat.detached_live_us >= pulse._setting_us('disconnect_grace')
         AND beat.beat_live_us <= beat.detached_live_us THEN 'session'
    WHEN beat.interval_us = 0 AND beat.attachment IS NOT NULL
         AND beat.detached_live_us IS NULL THEN NULL
    WHEN live_us - beat.beat_live_us
         > greatest(beat.threshold_us, pulse._least_threshold_us(beat.interval_us)) THEN 'silence'
  END;
$$;
COMMENT ON FUNCTION pulse._lost_way(pulse.heartbeat, bigint) IS
  'session (its attached session ended), silence (no beat for the threshold) or NULL';

-- Looks at every attached session: one that its client ended is stamped; one that the server ended
-- is forgotten, so that silence decides.
CREATE FUNCTION pulse._stamp_ended_sessions(live_us bigint) RETURNS int
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  stamped int;
BEGIN
  WITH judged AS MATERIALIZED (
    SELECT h.worker_id, pulse._attachment_state(h.attachment, h.incarnation) AS session
      FROM pulse.heartbeat AS h
     WHERE h.attachment IS NOT NULL AND h.detached_live_us IS NULL
       AND h.verdict NOT IN ('lost', 'stopped')
  ), locked AS MATERIALIZED (
    SELECT h.worker_id, judged.session
      FROM pulse.heartbeat AS h JOIN judged ON judged.worker_id = h.worker_id
     WHERE judged.session <> 'open' AND h.attachment IS NOT NULL
       FOR UPDATE OF h SKIP LOCKED
  ), changed AS (
    UPDATE pulse.heartbeat AS h SET
      detached_live_us = CASE WHEN locked.session = 'ended' THEN live_us END,
      attachment = CASE WHEN locked.session = 'ended' THEN h.attachment END
    FROM locked
    WHERE h.worker_id = locked.worker_id
      -- Attached anew since it was judged: then the new session counts.
      AND pulse._attachment_state(h.attachment, h.incarnation) = locked.session
    RETURNING locked.session
  )
  SELECT count(*) INTO stamped FROM changed WHERE session = 'ended';
  RETURN stamped;
END $$;
COMMENT ON FUNCTION pulse._stamp_ended_sessions(bigint) IS
  'stamps workers whose attached session has ended, on the liveness clock; returns how many';

-- Every sweep asks for the next one anew, for whoever is stamped and not lost: a request that was
-- made before may have been taken by a waiter for another reason, or with it.
CREATE FUNCTION pulse._ask_for_grace_end(live_us bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  -- A grace that is over belongs to a worker that somebody holds: no use in asking at once.
  SELECT pulse._note_sweep_due(clock_timestamp() + pulse._interval(min(
           CASE WHEN h.detached_live_us + pulse._setting_us('disconnect_grace') > live_us
             THEN h.detached_live_us + pulse._setting_us('disconnect_grace') - live_us
             ELSE pulse._setting_us('poll_interval') END)))
    FROM pulse.heartbeat AS h
   WHERE h.attachment IS NOT NULL AND h.detached_live_us IS NOT NULL
     AND h.beat_live_us <= h.detached_live_us AND h.verdict NOT IN ('lost', 'stopped');
$$;
COMMENT ON FUNCTION pulse._ask_for_grace_end(bigint) IS
  'at commit: asks for a sweep when the earliest grace of an ended session is over';

CREATE FUNCTION pulse._mark_lost(worker_id bigint, way text, reason text) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pulse.heartbeat AS h SET verdict = 'lost', lost_way = way
   WHERE h.worker_id = _mark_lost.worker_id;
  UPDATE pulse.worker AS w SET state = 'lost', ended_at = pulse.now(), reason = _mark_lost.reason
   WHERE w.id = _mark_lost.worker_id;
  SELECT pulse._note_everybody();
$$;
COMMENT ON FUNCTION pulse._mark_lost(bigint, text, text) IS 'writes the verdict of a locked worker';

-- Marks the lost, oldest beat first. Returns how many were marked and how many running jobs belong
-- to lost workers that somebody holds right now.
CREATE FUNCTION pulse._mark_all_lost(
    live_us bigint, most int, OUT marked int, OUT skipped int)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  candidate bigint;
  beat pulse.heartbeat;
  way text;
BEGIN
  marked := 0;
  skipped := 0;
  FOR candidate IN
    SELECT h.worker_id FROM pulse.heartbeat AS h
     WHERE pulse._lost_way(h, live_us) IS NOT NULL ORDER BY h.beat_live_us
  LOOP
    EXIT WHEN marked >= most;
    SELECT * INTO beat FROM pulse.heartbeat AS h WHERE h.worker_id = candidate
       FOR UPDATE SKIP LOCKED;
    way := pulse._lost_way(beat, live_us);
    IF beat.worker_id IS NOT NULL AND way IS NULL THEN
      CONTINUE;  -- it has beaten meanwhile
    END IF;
    IF beat.worker_id IS NULL OR NOT pulse._try_lock_worker(candidate) THEN
      skipped := skipped + (SELECT count(*) FROM pulse.job AS j
                             WHERE j.state = 'running' AND j.worker_id = candidate);
      CONTINUE;
    END IF;
    PERFORM pulse._mark_lost(candidate, way, CASE way
      WHEN 'session' THEN 'its session ended'
      ELSE format('no heartbeat for %s', pulse._interval(live_us - beat.beat_live_us)) END);
    marked := marked + 1;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse._mark_all_lost(bigint, int) IS 'declares workers lost that are';

CREATE FUNCTION pulse._lock_running(worker_id bigint, most int) RETURNS bigint[]
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
  WITH free AS MATERIALIZED (
    SELECT j.id, j.job_key FROM pulse.job AS j
     WHERE j.state = 'running' AND j.worker_id = _lock_running.worker_id
     ORDER BY j.id LIMIT most
       FOR UPDATE SKIP LOCKED
  )
  SELECT coalesce(array_agg(f.id), '{}') FROM free AS f
   WHERE f.job_key IS NULL OR pulse._try_lock_key(f.job_key);
$$;
COMMENT ON FUNCTION pulse._lock_running(bigint, int) IS
  'locks, without waiting, running jobs of a worker; returns their ids';

-- Workers that own running jobs and do not live: lost, stopped, or without any row (after a
-- restore).
CREATE FUNCTION pulse._dead_owners()
  RETURNS TABLE (worker_id bigint, outcome text, way text, reason text)
  LANGUAGE sql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
  WITH RECURSIVE owner AS (
    (SELECT j.worker_id FROM pulse.job AS j WHERE j.state = 'running' ORDER BY j.worker_id LIMIT 1)
    UNION ALL
    SELECT (SELECT j.worker_id FROM pulse.job AS j
             WHERE j.state = 'running' AND j.worker_id > o.worker_id
             ORDER BY j.worker_id LIMIT 1)
      FROM owner AS o WHERE o.worker_id IS NOT NULL
  )
  SELECT o.worker_id,
         -- An orderly end is no crash of the job; this row was held while its worker deregistered.
         CASE WHEN w.state = 'stopped' THEN 'interrupted' ELSE 'lost' END,
         coalesce(h.lost_way, 'silence'),
         format('worker %s%s was lost: %s', o.worker_id, ' (' || w.name || ')',
                coalesce(w.reason, 'it is not registered here'))
    FROM owner AS o
    LEFT JOIN pulse.heartbeat AS h ON h.worker_id = o.worker_id
    LEFT JOIN pulse.worker AS w ON w.id = o.worker_id
   WHERE o.worker_id IS NOT NULL AND (h.worker_id IS NULL OR h.verdict IN ('lost', 'stopped'))
   ORDER BY h.beat_live_us NULLS FIRST;
$$;
COMMENT ON FUNCTION pulse._dead_owners() IS 'owners of running jobs that do not live, and why';

CREATE FUNCTION pulse._recover_owner(
    worker_id bigint, outcome text, way text, reason text, most int)
  RETURNS TABLE (id bigint, state text)
  LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
  SELECT e.id, e.state FROM pulse._end_attempts((
    SELECT array_agg(ROW(l, outcome, reason, true, NULL, NULL, way)::pulse._ending)
      FROM unnest(pulse._lock_running(worker_id, most)) AS l)) AS e;
$$;
COMMENT ON FUNCTION pulse._recover_owner(bigint, text, text, text, int) IS
  'recovers at most so many running jobs of a worker that does not live';

-- claim_job found the owner of a job dead: the attempt is recorded, and the job is taken at once.
CREATE FUNCTION pulse._recover_for_claim(job pulse.job) RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  recovered pulse.job;
BEGIN
  IF job.job_key IS NOT NULL THEN
    PERFORM pulse._lock_key(job.job_key);
  END IF;
  PERFORM pulse._end_attempts(ARRAY[
    ROW(job.id, 'lost', format('worker %s was silent beyond its threshold', job.worker_id), true,
        NULL, NULL, 'silence')::pulse._ending]);
  SELECT * INTO recovered FROM pulse.job AS j WHERE j.id = job.id FOR UPDATE;
  RETURN recovered;
END $$;
COMMENT ON FUNCTION pulse._recover_for_claim(pulse.job) IS
  'ends the attempt of a dead owner; NULLs when that was the job''s end';
-- sql/sweep.sql
-- The sweep finds the lost and recovers their jobs. Any number may run at once: every step locks
-- what it changes without waiting and judges again on the locked row. Lock order: heartbeat row,
-- worker lock, job rows by id, job keys. Called by every pulse-worker, by whoever wait_for_job
-- asks, by hand.

-- Jobs past their own clocks: the timeout since the claim, the stall_timeout since the last sign of
-- life.
CREATE FUNCTION pulse._late(live_us bigint)
  RETURNS TABLE (id bigint, job_key text, outcome text, error text, way text)
  LANGUAGE sql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
  SELECT j.id, j.job_key, c.outcome,
         CASE c.outcome WHEN 'timed_out'
           THEN format('timed out after %s',
                       coalesce(t.timeout, pulse._interval(pulse._setting_us('default_timeout'))))
           ELSE format('no progress for %s', t.stall_timeout) END,
         CASE c.outcome WHEN 'timed_out' THEN 'timeout' ELSE 'stall' END
    FROM pulse.job AS j
    LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
    CROSS JOIN LATERAL (SELECT CASE
      WHEN live_us - j.claimed_live_us
           > coalesce(pulse._us(t.timeout), pulse._setting_us('default_timeout')) THEN 'timed_out'
      WHEN live_us - j.activity_live_us > pulse._us(t.stall_timeout) THEN 'stalled' END
    ) AS c (outcome)
   WHERE j.state = 'running' AND c.outcome IS NOT NULL;
$$;
COMMENT ON FUNCTION pulse._late(bigint) IS 'running jobs past their own clocks';

-- Locks late jobs without waiting, and judges again under the lock.
CREATE FUNCTION pulse._lock_late(live_us bigint, most int) RETURNS pulse._ending[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  locked bigint[];
BEGIN
  SELECT array_agg(f.id) INTO locked FROM (
    SELECT j.id FROM pulse.job AS j
     WHERE j.id = ANY (ARRAY(SELECT l.id FROM pulse._late(live_us) AS l))
     ORDER BY j.id LIMIT most
       FOR UPDATE SKIP LOCKED) AS f;
  RETURN (SELECT array_agg(ROW(l.id, l.outcome, l.error, true, NULL, NULL, l.way)::pulse._ending)
            FROM pulse._late(live_us) AS l
           WHERE l.id = ANY (locked) AND (l.job_key IS NULL OR pulse._try_lock_key(l.job_key)));
END $$;
COMMENT ON FUNCTION pulse._lock_late(bigint, int) IS
  'locked jobs past their own clocks, as endings';

-- At most one notification per sweep; a full queue of them must not make the sweep fail at its
-- commit.
CREATE FUNCTION pulse._announce(way text, worker_id bigint, job_ids bigint[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pulse._events_on() AND cardinality(job_ids) > 0 AND pg_notification_queue_usage() < 0.9 THEN
    PERFORM pg_notify('pulse_events', json_build_object(
      'event', 'recovered', 'way', way, 'worker', worker_id, 'count', cardinality(job_ids),
      'job_ids', job_ids[1:100])::text);
  END IF;
END $$;
COMMENT ON FUNCTION pulse._announce(text, bigint, bigint[]) IS
  'tells listeners of pulse_events which jobs were recovered';

CREATE FUNCTION pulse._count_recovered(
    INOUT result pulse._sweep_result, states text[])
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  result.jobs_requeued := result.jobs_requeued
    + (SELECT count(*) FROM unnest(states) AS s WHERE s IN ('ready', 'parked'));
  result.jobs_failed := result.jobs_failed
    + (SELECT count(*) FROM unnest(states) AS s WHERE s IN ('failed', 'cancelled'));
  result.jobs_quarantined := result.jobs_quarantined
    + (SELECT count(*) FROM unnest(states) AS s WHERE s = 'quarantined');
END $$;
COMMENT ON FUNCTION pulse._count_recovered(pulse._sweep_result, text[]) IS
  'adds fates to the result';

CREATE FUNCTION pulse._room(result pulse._sweep_result, most int) RETURNS int
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT most - result.jobs_requeued - result.jobs_failed - result.jobs_quarantined;
$$;
COMMENT ON FUNCTION pulse._room(pulse._sweep_result, int) IS 'how many more jobs a sweep may end';

CREATE FUNCTION pulse._recover_lost(INOUT result pulse._sweep_result, most int)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner record;
  ids bigint[];
  states text[];
  event_way text;
  event_worker bigint;
  event_ids bigint[] := '{}';
BEGIN
  FOR owner IN SELECT * FROM pulse._dead_owners() LOOP
    EXIT WHEN pulse._room(result, most) <= 0;
    SELECT array_agg(r.id), array_agg(r.state) INTO ids, states
      FROM pulse._recover_owner(
        owner.worker_id, owner.outcome, owner.way, owner.reason, pulse._room(result, most)) AS r;
    result := pulse._count_recovered(result, states);
    IF pulse._room(result, most) > 0 THEN
      result.jobs_skipped_locked := result.jobs_skipped_locked
        + (SELECT count(*) FROM pulse.job AS j
            WHERE j.state = 'running' AND j.worker_id = owner.worker_id);
    END IF;
    event_way := coalesce(event_way, owner.way);
    event_worker := CASE WHEN event_ids = '{}' THEN owner.worker_id END;
    event_ids := event_ids || ids;
  END LOOP;
  PERFORM pulse._announce(event_way, event_worker, event_ids);
END $$;
COMMENT ON FUNCTION pulse._recover_lost(pulse._sweep_result, int) IS
  'recovers running jobs whose owners do not live, as many as there is room for';

CREATE FUNCTION pulse._recover_late(
    INOUT result pulse._sweep_result, most int, live_us bigint)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  endings pulse._ending[];
  ids bigint[];
  states text[];
BEGIN
  IF pulse._setting_us('default_timeout') IS NULL AND NOT EXISTS (
       SELECT FROM pulse.task AS t WHERE t.timeout IS NOT NULL OR t.stall_timeout IS NOT NULL) THEN
    RETURN;
  END IF;
  endings := pulse._lock_late(live_us, pulse._room(result, most));
  SELECT array_agg(e.id), array_agg(e.state) INTO ids, states
    FROM pulse._end_attempts(endings) AS e;
  result := pulse._count_recovered(result, states);
  result.jobs_timed_out :=
    (SELECT count(*) FROM unnest(endings) AS e WHERE e.outcome = 'timed_out');
  result.jobs_stalled := (SELECT count(*) FROM unnest(endings) AS e WHERE e.outcome = 'stalled');
  IF pulse._room(result, most) > 0 THEN
    result.jobs_skipped_locked := result.jobs_skipped_locked
      + (SELECT count(*) FROM pulse._late(live_us));
  END IF;
  IF result.workers_lost = 0 THEN
    PERFORM pulse._announce(endings[1].way, NULL, ids);
  END IF;
END $$;
COMMENT ON FUNCTION pulse._recover_late(pulse._sweep_result, int, bigint) IS
  'ends attempts past their own clocks, as many as there is room for';

CREATE FUNCTION pulse._warn_of_short_thresholds() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  short int := (SELECT count(*) FROM pulse.heartbeat AS h
                 WHERE h.verdict NOT IN ('lost', 'stopped') AND h.interval_us > 0
                   AND h.threshold_us < pulse._least_threshold_us(h.interval_us));
BEGIN
  IF short > 0 THEN
    RAISE WARNING 'the sweep_threshold of % workers is too short for the present settings', short
      USING HINT = 'The sweep uses 2 x heartbeat_interval + 1.5 x sweep_interval for them instead.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse._warn_of_short_thresholds() IS
  'warns when settings changed since workers registered';

CREATE FUNCTION pulse._sweep(max_jobs int) RETURNS pulse._sweep_result
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result pulse._sweep_result := ROW(0, 0, 0, 0, 0, 0, 0, interval '0');
  live_us bigint;
  stamped int;
  marked int;
  skipped int;
BEGIN
  result.skipped_time := pulse._tick();
  live_us := pulse._live_now_us();
  PERFORM pulse._warn_of_short_thresholds();
  stamped := pulse._stamp_ended_sessions(live_us);
  SELECT m.marked, m.skipped INTO marked, skipped
    FROM pulse._mark_all_lost(live_us, max_jobs) AS m;
  PERFORM pulse._ask_for_grace_end(live_us);
  result.workers_lost := marked;
  result.jobs_skipped_locked := skipped;
  result := pulse._recover_lost(result, max_jobs);
  IF pulse._room(result, max_jobs) > 0 THEN
    result := pulse._recover_late(result, max_jobs, live_us);
  END IF;
  -- With many queues a look at all takes a while, which a recovery must not wait for.
  PERFORM pulse._reconcile_queues(
    CASE WHEN stamped = 0 AND marked = 0 AND pulse._room(result, max_jobs) = max_jobs
      THEN 0 ELSE 1000 END);
  PERFORM pulse._promote_marked(256);
  DELETE FROM pulse.heartbeat AS h
   WHERE h.worker_id IN (SELECT o.worker_id FROM pulse.heartbeat AS o
                          WHERE o.verdict = 'lost'
                            AND o.last_heartbeat_at < pulse.now() - interval '1 day'
                            AND NOT EXISTS (SELECT FROM pulse.job AS j
                                             WHERE j.state = 'running'
                                               AND j.worker_id = o.worker_id)
                            FOR UPDATE SKIP LOCKED);
  RETURN result;
END $$;
COMMENT ON FUNCTION pulse._sweep(int) IS 'the steps of a sweep, in order';

CREATE FUNCTION pulse.sweep(
    max_jobs int = 1000, dry_run boolean = false,
    OUT workers_lost int, OUT jobs_requeued int, OUT jobs_failed int, OUT jobs_quarantined int,
    OUT jobs_timed_out int, OUT jobs_stalled int, OUT jobs_skipped_locked int,
    OUT skipped_time interval)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result pulse._sweep_result;
BEGIN
  PERFORM pulse._require_read_committed('sweep');
  PERFORM pulse._check_number('max_jobs', coalesce(max_jobs, 0), 1, 1000000);
  IF dry_run THEN
    BEGIN
      result := pulse._sweep(max_jobs);
      RAISE EXCEPTION 'dry run' USING ERRCODE = 'PU101';
    EXCEPTION WHEN SQLSTATE 'PU101' THEN
      NULL;  -- undone, and its counts are the answer
    END;
  ELSE
    PERFORM pulse._start_sweep();
    result := pulse._sweep(max_jobs);
  END IF;
  workers_lost := result.workers_lost;
  jobs_requeued := result.jobs_requeued;
  jobs_failed := result.jobs_failed;
  jobs_quarantined := result.jobs_quarantined;
  jobs_timed_out := result.jobs_timed_out;
  jobs_stalled := result.jobs_stalled;
  jobs_skipped_locked := result.jobs_skipped_locked;
  skipped_time := result.skipped_time;
END $$;
COMMENT ON FUNCTION pulse.sweep(int, boolean) IS
  'finds lost workers and jobs past their own clocks and recovers at most max_jobs jobs; call '
  'again '
  'while it returns that many. dry_run answers what it would do. Never waits for anybody: '
  'jobs_skipped_locked counts what others hold. skipped_time: outage or clock step left out of '
  'everybody''s age. PU007 outside READ COMMITTED';

CREATE FUNCTION pulse.declare_lost(worker_id bigint, reason text) RETURNS int
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  status text;
  ids bigint[];
BEGIN
  PERFORM pulse._require_read_committed('declare_lost');
  SELECT h.verdict INTO status FROM pulse.heartbeat AS h
   WHERE h.worker_id = declare_lost.worker_id FOR UPDATE;
  IF status IS NULL THEN
    IF EXISTS (SELECT FROM pulse.worker AS w WHERE w.id = declare_lost.worker_id) THEN
      RETURN 0;
    END IF;
    RAISE EXCEPTION 'worker % is unknown', coalesce(declare_lost.worker_id::text, 'NULL') USING
      ERRCODE = 'PU002', HINT = 'pulse.worker lists the registered ones.';
  END IF;
  IF status <> 'lost' THEN
    IF NOT pulse._lock_worker(declare_lost.worker_id) THEN
      RAISE EXCEPTION 'a claim of worker % is under way', declare_lost.worker_id USING
        ERRCODE = 'lock_not_available', HINT = 'Try again when its transaction has ended.';
    END IF;
    PERFORM pulse._mark_lost(
      declare_lost.worker_id, 'host', coalesce(declare_lost.reason, 'declared lost'));
  END IF;
  SELECT array_agg(r.id) INTO ids FROM pulse._dead_owners() AS o,
    LATERAL pulse._recover_owner(o.worker_id, o.outcome, o.way, o.reason, NULL) AS r
   WHERE o.worker_id = declare_lost.worker_id;
  PERFORM pulse._announce('host', declare_lost.worker_id, ids);
  RETURN coalesce(cardinality(ids), 0);
END $$;
COMMENT ON FUNCTION pulse.declare_lost(bigint, text) IS
  'marks a worker as lost, whatever its heartbeat says, and recovers its jobs; returns how '
  'many. PU002 '
  'for an unknown worker, 55P03 while a claim of it is under way';
-- sql/wait.sql
-- Waiting for work without holding back vacuum: see extension/waiting.cpp.
-- SECURITY INVOKER and without SET, because either would make the call atomic and pin a snapshot.

CREATE PROCEDURE pulse.wait_for_job(worker_id bigint, max_wait interval = '30 s')
  LANGUAGE c AS 'MODULE_PATHNAME', 'pulse_wait_for_job';
COMMENT ON PROCEDURE pulse.wait_for_job(bigint, interval) IS
  'returns when this worker may have something to claim, when it is told to drain or stop, or '
  'when the '
  'time is up; and with a notice of code PU100 when a sweep is due. Wakes are exact for the '
  'session '
  'that claimed last for this worker. PU006 inside a transaction block';
-- sql/monitor.sql
-- What operators look at. No view shows a payload or a token.

CREATE VIEW pulse.settings AS
  SELECT s.name, s.setting, s.unit, s.boot_val AS default_setting, s.source,
         s.short_desc AS description
    FROM pg_catalog.pg_settings AS s
   -- Reading the version loads the library, without which the server knows no setting of ours.
   WHERE pulse.version() IS NOT NULL AND s.name LIKE 'pulse.%';
COMMENT ON VIEW pulse.settings IS 'the settings as this session sees them';

CREATE VIEW pulse.worker_status AS
  SELECT w.id, w.name, w.hostname, w.pid, w.tasks, w.state, coalesce(h.verdict, w.state) AS verdict,
         h.last_heartbeat_at, w.heartbeat_interval, w.sweep_threshold,
         pulse._interval(pulse._live_now_us() - h.beat_live_us) AS silent_for,
         h.attachment IS NOT NULL AS attached,
         (SELECT pg_catalog.count(*) FROM pulse.job AS j
           WHERE j.state = 'running' AND j.worker_id = w.id) AS running_jobs,
         w.started_at, w.ended_at, w.reason
    FROM pulse.worker AS w LEFT JOIN pulse.heartbeat AS h ON h.worker_id = w.id;
COMMENT ON VIEW pulse.worker_status IS
  'registered workers, when they last checked in and what they hold; silent_for is on the '
  'liveness clock';

CREATE VIEW pulse.stale AS
  SELECT j.identifier, pg_catalog.count(*) AS jobs, pg_catalog.min(j.claimed_at) AS oldest_claim
    FROM pulse.job AS j LEFT JOIN pulse.heartbeat AS h ON h.worker_id = j.worker_id
   WHERE j.state = 'running'
     AND (h.worker_id IS NULL OR h.verdict IN ('lost', 'stopped')
          OR pulse._lost_way(h, pulse._live_now_us()) IS NOT NULL)
   GROUP BY j.identifier;
COMMENT ON VIEW pulse.stale IS
  'running jobs whose worker does not live, by task: what the next sweep recovers';
-- sql/verify.sql
-- verify(): the promises as queries over the tables. Empty is good. Each check is a view of its
-- own, so that what it looks for can be read in one place. For people and tests, not for every
-- second.

CREATE VIEW pulse._broken_p1 AS
  SELECT 'P1'::text AS promise, j.id AS job_id, 'live and finished at once'::text AS detail
    FROM pulse.job AS j JOIN pulse.finished_job AS f ON f.id = j.id
  UNION ALL
  SELECT 'P1', j.id, 'parked without a queue'
    FROM pulse.job AS j WHERE j.state = 'parked' AND j.queue_name IS NULL
  UNION ALL
  SELECT 'P1', j.id, 'an id that was never given out'
    FROM pulse.job AS j WHERE j.id > (SELECT s.last_value FROM pulse.job_id_seq AS s);
COMMENT ON VIEW pulse._broken_p1 IS 'violations of P1: no job is lost';

CREATE VIEW pulse._broken_p2 AS
  SELECT 'P2'::text AS promise, j.id AS job_id, 'running without a token'::text AS detail
    FROM pulse.job AS j WHERE j.state = 'running' AND j.token IS NULL
  UNION ALL
  SELECT 'P2', j.id, 'running without a worker'
    FROM pulse.job AS j WHERE j.state = 'running' AND j.worker_id IS NULL
  UNION ALL
  SELECT 'P2', j.id, 'waiting with a token'
    FROM pulse.job AS j WHERE j.state <> 'running' AND j.token IS NOT NULL
  UNION ALL
  SELECT 'P2', j.id, 'its token is also the claim of another worker'
    FROM (SELECT o.token FROM pulse.job AS o WHERE o.state = 'running' GROUP BY o.token
          HAVING pg_catalog.min(o.worker_id) <> pg_catalog.max(o.worker_id)) AS shared
    JOIN pulse.job AS j ON j.token = shared.token
   WHERE j.state = 'running'
  UNION ALL
  SELECT 'P2', j.id, 'a token that was never given out'
    FROM pulse.job AS j
   WHERE j.token & 1099511627775 > (SELECT s.last_value FROM pulse.token_seq AS s);
COMMENT ON VIEW pulse._broken_p2 IS 'violations of P2: one owner';

CREATE VIEW pulse._broken_p3 AS
  SELECT 'P3'::text AS promise, j.id AS job_id,
         'runs under a token whose attempt has ended'::text AS detail
    FROM pulse.job AS j JOIN pulse.attempt AS a ON a.job_id = j.id AND a.token = j.token
   WHERE j.state = 'running'
  UNION ALL
  SELECT 'P3', j.id, 'live although an attempt of it completed'
    FROM pulse.job AS j
   WHERE EXISTS (SELECT FROM pulse.attempt AS a WHERE a.job_id = j.id AND a.outcome = 'completed')
  UNION ALL
  SELECT 'P3', a.job_id, 'completed more than once'
    FROM pulse.attempt AS a WHERE a.outcome = 'completed'
   GROUP BY a.job_id HAVING pg_catalog.count(*) > 1;
COMMENT ON VIEW pulse._broken_p3 IS 'violations of P3: one accepted completion';

CREATE VIEW pulse._broken_p4 AS
  SELECT 'P4'::text AS promise, j.id AS job_id, 'attempts out of range'::text AS detail
    FROM pulse.job AS j WHERE j.attempts < 0 OR j.max_attempts < 1 OR j.attempts > j.max_attempts
  UNION ALL
  SELECT 'P4', j.id, 'running without an attempt'
    FROM pulse.job AS j WHERE j.state = 'running' AND j.attempts = 0
  UNION ALL
  SELECT 'P4', j.id, 'waiting although its attempts are used up'
    FROM pulse.job AS j WHERE j.state <> 'running' AND j.attempts >= j.max_attempts
  UNION ALL
  SELECT 'P4', j.id, 'an attempt was given back'
    FROM pulse.job AS j
   WHERE j.revision = 0
     AND j.attempts < (SELECT pg_catalog.max(a.attempt) FROM pulse.attempt AS a
                        WHERE a.job_id = j.id AND a.outcome <> 'released')
  UNION ALL
  SELECT 'P4', f.id, 'finished with more attempts than it may have'
    FROM pulse.finished_job AS f WHERE f.attempts > f.max_attempts OR f.attempts < 0;
COMMENT ON VIEW pulse._broken_p4 IS 'violations of P4: attempts are exact';

CREATE VIEW pulse._broken_p7 AS
  SELECT 'P7'::text AS promise, j.id AS job_id,
         'live although it must be quarantined'::text AS detail
    FROM pulse.job AS j LEFT JOIN pulse.task AS t ON t.identifier = j.identifier
   WHERE coalesce(t.max_crashes, pulse._max_crashes()) >= 0
     AND j.crashes > 0 AND j.crashes >= coalesce(t.max_crashes, pulse._max_crashes())
     -- A limit that was lowered since is for the next crash.
     AND (t.updated_at IS NULL OR t.updated_at <= j.updated_at)
  UNION ALL
  SELECT 'P7', j.id, 'more crashes than attempts'
    FROM pulse.job AS j WHERE j.crashes > j.attempts OR j.crashes < 0
  UNION ALL
  SELECT 'P7', f.id, 'quarantined without a crash'
    FROM pulse.finished_job AS f WHERE f.state = 'quarantined' AND f.crashes < 1;
COMMENT ON VIEW pulse._broken_p7 IS 'violations of P7: a crash costs little';

CREATE FUNCTION pulse._is_overdue(job pulse.job) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL UNSAFE
  RETURN greatest(job.run_at, job.updated_at) <
         pulse.now() - pulse._interval(
           coalesce(pulse._setting_us('sweep_interval'), 5000000) * 2);
COMMENT ON FUNCTION pulse._is_overdue(pulse.job) IS
  'whether a waiting job has been due for more than two sweeps';

CREATE VIEW pulse._queue_places AS
  SELECT j.queue_name, coalesce(q.concurrency, 1) AS concurrency,
         coalesce(q.paused, false) AS paused,
         pg_catalog.count(*) FILTER (WHERE j.state <> 'parked') AS taken,
         -- Settings never touch what runs: only what was claimed under them counts against them.
         pg_catalog.count(*) FILTER (
           WHERE j.state = 'running'
             AND (q.updated_at IS NULL OR j.claimed_at > q.updated_at)) AS running,
         pg_catalog.count(*) FILTER (WHERE j.state = 'ready') AS open,
         pg_catalog.min(j.id) FILTER (WHERE j.state <> 'parked') AS first_open,
         pg_catalog.min(j.id) FILTER (
           WHERE j.state = 'parked' AND pulse._is_overdue(j)) AS overdue
    FROM pulse.job AS j LEFT JOIN pulse.queue AS q ON q.queue_name = j.queue_name
   WHERE j.queue_name IS NOT NULL
   GROUP BY j.queue_name, q.concurrency, q.paused, q.updated_at;
COMMENT ON VIEW pulse._queue_places IS 'what each queue has given away and what waits behind it';

CREATE VIEW pulse._broken_p8 AS
  SELECT 'P8'::text AS promise, p.first_open AS job_id,
         pg_catalog.format('queue %L runs %s jobs, its concurrency is %s', p.queue_name, p.running,
                           p.concurrency) AS detail
    FROM pulse._queue_places AS p WHERE p.running > p.concurrency
  UNION ALL
  SELECT 'P8', p.first_open,
         pg_catalog.format('queue %L has opened %s jobs, its concurrency is %s', p.queue_name,
                           p.taken, p.concurrency)
    FROM pulse._queue_places AS p
   WHERE p.running <= p.concurrency AND p.open > 0 AND p.taken > p.concurrency
  UNION ALL
  SELECT 'P8', p.first_open,
         pg_catalog.format('queue %L is paused and has an open job', p.queue_name)
    FROM pulse._queue_places AS p WHERE p.paused AND p.open > 0
  UNION ALL
  SELECT 'P8', p.overdue, pg_catalog.format('stranded behind queue %L', p.queue_name)
    FROM pulse._queue_places AS p
   WHERE NOT p.paused AND p.taken < p.concurrency AND p.overdue IS NOT NULL
     AND NOT pulse._is_marked(p.queue_name)
  UNION ALL
  SELECT DISTINCT 'P8', b.id, pg_catalog.format('waits behind queue %L, which opened a worse one',
                                                b.queue_name)
    FROM pulse.job AS b JOIN pulse.job AS o ON o.queue_name = b.queue_name
   WHERE b.state = 'parked' AND o.state = 'ready' AND pulse._is_overdue(b)
     AND NOT pulse._is_marked(b.queue_name)
     AND (b.priority, b.run_at, b.id) < (o.priority, o.run_at, o.id);
COMMENT ON VIEW pulse._broken_p8 IS 'violations of P8: order and concurrency of queues';

CREATE FUNCTION pulse.verify()
  RETURNS TABLE (promise text, job_id bigint, detail text)
  LANGUAGE sql STABLE SECURITY DEFINER PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM pulse._broken_p1
  UNION ALL SELECT * FROM pulse._broken_p2
  UNION ALL SELECT * FROM pulse._broken_p3
  UNION ALL SELECT * FROM pulse._broken_p4
  UNION ALL SELECT * FROM pulse._broken_p7
  UNION ALL SELECT * FROM pulse._broken_p8
  ORDER BY 1, 2;
$$;
COMMENT ON FUNCTION pulse.verify() IS
  'checks promises P1 to P4, P7 and P8 over the tables: one row per violation, none is good. Reads '
  'every job: for people and tests';
-- sql/grants.sql
-- Nothing is granted to PUBLIC, neither by us nor by the defaults of the server.

REVOKE ALL ON ALL TABLES IN SCHEMA pulse FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA pulse FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA pulse FROM PUBLIC;
REVOKE ALL ON TYPE pulse.job_state, pulse.finished_state, pulse.job_spec, pulse.claimed_job,
  pulse.job_outcome, pulse._ending, pulse._sweep_result FROM PUBLIC;
