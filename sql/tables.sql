-- What is stored. No foreign keys and no row triggers on job: both would cost a lock or a call per
-- job. Columns of dumped tables are only appended, with defaults, so that older dumps load.

CREATE SEQUENCE pulse.job_id_seq AS bigint;
CREATE SEQUENCE pulse.token_seq AS bigint MAXVALUE 1099511627775 NO CYCLE;
CREATE SEQUENCE pulse.worker_id_seq AS bigint MAXVALUE 1099511627775 NO CYCLE;
CREATE SEQUENCE pulse.attachment_seq AS bigint;

-- They begin anywhere in the first sixteenth, so that a worker which outlives its installation has
-- no token that a job of the next one has, nor the id of one of its workers.
SELECT pg_catalog.setval(s.name::pg_catalog.regclass, 1 +
    ('x0000000' || pg_catalog.translate(
       pg_catalog.left(pg_catalog.gen_random_uuid()::text, 10), '-', ''))::bit(64)::bigint, false)
  FROM (VALUES ('pulse.token_seq'), ('pulse.worker_id_seq')) AS s (name);

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
  superseded          boolean NOT NULL DEFAULT false,
  in_place               boolean NOT NULL DEFAULT false,
  running_worker_id           bigint GENERATED ALWAYS AS
    (CASE WHEN state = 'running' AND NOT in_place THEN worker_id END) STORED,
  index_lane                "char" NOT NULL GENERATED ALWAYS AS
    (CASE WHEN state = 'parked' THEN 'p' WHEN state = 'running' AND NOT in_place THEN 'h' ELSE 'o' END)
    STORED
) WITH (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off,
  fillfactor = 40
);
COMMENT ON TABLE pulse.job IS 'live jobs: ready, parked behind their queue, or running';
COMMENT ON COLUMN pulse.job.worker_id IS
  'running: the owner; ready: the one worker that may run this poison suspect (see claim)';
COMMENT ON COLUMN pulse.job.token IS 'names the current claim; only while running';
COMMENT ON COLUMN pulse.job.superseded IS
  'while it ran, its key was given to another job or removed: it does not run again';
COMMENT ON COLUMN pulse.job.in_place IS
  'while it runs: claimed in place, listed in claim_batch and not yet in the lane of held jobs';
COMMENT ON COLUMN pulse.job.running_worker_id IS 'the owner of a held job';
COMMENT ON COLUMN pulse.job.index_lane IS
  'which indexes have it: o(pen): ready, or claimed in place; p(arked); h(eld). No index may ask for the '
  'state: a claim in place changes it, and is a HOT update because no index has to follow';
COMMENT ON COLUMN pulse.job.claimed_live_us IS 'the claim on the liveness clock, microseconds';
COMMENT ON COLUMN pulse.job.activity_live_us IS
  'the last progress report or the claim on the liveness clock, microseconds';

-- The order of P8; a claim walks it per task and priority, so what is not due costs one step. Fresh
-- claims stay on it, and are stepped over, until they end or settle. Entries are alike only of
-- versions of one job, which is rare, so a full page is not searched for such.
CREATE INDEX job_claim_idx ON pulse.job (identifier, priority, run_at, id)
  WITH (deduplicate_items = off) WHERE index_lane = 'o';
-- Recovery, held() and heartbeats find a worker's jobs here, and in claim_batch.
CREATE INDEX job_running_idx ON pulse.job (running_worker_id, id) WHERE running_worker_id IS NOT NULL;
-- Promotion: the waiting jobs of one queue in order, and a skip scan over queues by mark.
CREATE INDEX job_parked_idx
  ON pulse.job (pulse._queue_slot(queue_name), queue_name, priority, run_at, id)
  WHERE index_lane = 'p';
-- Which parked jobs fell due since the last look.
CREATE INDEX job_parked_due_idx ON pulse.job (run_at) WHERE index_lane = 'p';
-- The places a queue has given away: its open and its running jobs.
CREATE INDEX job_open_idx ON pulse.job (queue_name)
  WHERE queue_name IS NOT NULL AND index_lane <> 'p';
-- A key is unique among waiting jobs only: a running job has lost it to whoever adds it next. Jobs
-- with a key are never claimed in place.
CREATE UNIQUE INDEX job_waiting_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane <> 'h';
CREATE INDEX job_running_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane = 'h';

-- Claims whose jobs were updated in place: who has them. A row goes when its last job has ended, or
-- when a beat of its worker moves those that still run to the lane of held jobs.
CREATE TABLE pulse.claim_batch (
  worker_id bigint NOT NULL,
  token     bigint NOT NULL,
  remaining_jobs int NOT NULL,
  job_ids   bigint[] NOT NULL
) WITH (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
COMMENT ON TABLE pulse.claim_batch IS
  'claims whose jobs are not yet in the lane of held jobs: at most 200 jobs of one claim per row';
COMMENT ON COLUMN pulse.claim_batch.remaining_jobs IS
  'how many of them complete_many() has not ended; others may have ended some of these';
CREATE INDEX claim_batch_idx ON pulse.claim_batch (worker_id, token);

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
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE pulse.finished_job IS
  'jobs that ended and are kept: completed ones where retention asks, failed, quarantined and '
  'cancelled ones';
-- Pruning takes the oldest: of each task, where it may have an age of its own.
CREATE INDEX finished_job_completed_idx ON pulse.finished_job (identifier, finished_at)
  WHERE state = 'completed';
CREATE INDEX finished_job_failed_idx ON pulse.finished_job (finished_at)
  WHERE state <> 'completed';

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
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
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
CREATE INDEX worker_ended_idx ON pulse.worker (ended_at) WHERE ended_at IS NOT NULL;

-- Narrow, and no index but the key, so that every beat is a HOT update.
CREATE TABLE pulse.heartbeat (
  worker_id         bigint PRIMARY KEY,
  beat_live_us      bigint NOT NULL,
  last_heartbeat_at timestamptz NOT NULL,
  status           text COLLATE "C" NOT NULL DEFAULT 'alive',
  interval_us       bigint NOT NULL,
  threshold_us      bigint NOT NULL,
  attachment        bigint,
  incarnation       bigint,
  detached_live_us  bigint,
  isolated_job_id      bigint,
  lost_cause          text,
  missing_job_ids   bigint[],
  missing_tokens    bigint[]
) WITH (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  -- Beats change nothing that a plan depends on, and each analysis makes every session of every
  -- worker look the table up anew.
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 1000000
);
COMMENT ON TABLE pulse.heartbeat IS
  'the last beat of each worker that has not ended, and its status in the same row';
COMMENT ON COLUMN pulse.heartbeat.beat_live_us IS
  'the last beat on the liveness clock, microseconds';
COMMENT ON COLUMN pulse.heartbeat.threshold_us IS
  'silence after which this worker is lost, never below what its settings can keep';
COMMENT ON COLUMN pulse.heartbeat.attachment IS
  'which session lock stands for the attached session';
COMMENT ON COLUMN pulse.heartbeat.detached_live_us IS
  'when the attached session ended, on the liveness clock';
COMMENT ON COLUMN pulse.heartbeat.interval_us IS
  'how often the worker checks in; 0: alive exactly as long as its attached session lives';
COMMENT ON COLUMN pulse.heartbeat.lost_cause IS 'how the loss was noticed: session, host or silence';
COMMENT ON COLUMN pulse.heartbeat.isolated_job_id IS
  'the poison suspect that this worker runs isolated, or is kept free for';

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
  handler        text,
  created_at     timestamptz NOT NULL DEFAULT pg_catalog.now(),
  updated_at     timestamptz NOT NULL DEFAULT pg_catalog.now()
);
COMMENT ON COLUMN pulse.task.handler IS
  'a function by its full name: pg_upgrade would refuse a column of regprocedure';
COMMENT ON TABLE pulse.task IS 'settings of tasks; a task without a row has the defaults';

-- For tables of which sessions remember what they have read.
CREATE FUNCTION pulse._rows_changed() RETURNS trigger
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_rows_changed';
COMMENT ON FUNCTION pulse._rows_changed() IS
  'makes every session look again at what it remembers of this table';

-- Written at the first token or worker id; both count from its epoch_base. Dumped, so that a
-- restored copy is recognised by it; more than one row also tells a copy. A key would make such a
-- restore fail half-way, and leave its jobs with the wrong row.
CREATE TABLE pulse.installation (
  id                uuid NOT NULL,
  system_identifier bigint NOT NULL,
  database_oid      oid NOT NULL,
  job_oid           oid NOT NULL,
  epoch_base        int NOT NULL,
  timeline          int NOT NULL,
  created_at        timestamptz NOT NULL,
  moved_at          timestamptz
);
ALTER TABLE pulse.installation REPLICA IDENTITY FULL;
CREATE TRIGGER installation_changed
  AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON pulse.installation
  FOR EACH STATEMENT EXECUTE FUNCTION pulse._rows_changed();
ALTER TABLE pulse.installation ENABLE ALWAYS TRIGGER installation_changed;
COMMENT ON TABLE pulse.installation IS
  'which server, database and job table these jobs belong to; elsewhere they are a copy, of which '
  'none is claimed before pulse.adopt_installation()';
COMMENT ON COLUMN pulse.installation.epoch_base IS
  'added to the timeline in each token and worker id; above all of earlier installations';
COMMENT ON COLUMN pulse.installation.timeline IS 'the last timeline on which a number was made';
COMMENT ON COLUMN pulse.installation.moved_at IS
  'when the same tables were last found under another system identifier';

-- Not dumped: a copy that was restored lacks it, even where it has got the same oids.
CREATE TABLE pulse.installation_witness (
  installation_id uuid NOT NULL
);
ALTER TABLE pulse.installation_witness REPLICA IDENTITY FULL;
COMMENT ON TABLE pulse.installation_witness IS 'which installation these files belong to, whatever a dump says';

-- What pg_dump keeps: jobs, their history, settings, what ids are made of and where they belong.
-- Workers are gone after a restore, so worker, heartbeat and clock stay out and the next sweep
-- recovers what they held.
SELECT pg_catalog.pg_extension_config_dump('pulse.job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.claim_batch', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.finished_job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.attempt', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.queue', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.task', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.job_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.token_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.worker_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.installation', '');
