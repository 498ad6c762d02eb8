-- Tables, sequences and indexes; table_comments.sql describes the columns. The table job has no
-- foreign key, which would cost a lock per job, and no trigger that fires for direct writes.
-- Columns of dumped tables are only appended, with defaults, so that older dumps load.

CREATE SEQUENCE pulse.job_id_seq AS bigint;
CREATE SEQUENCE pulse.token_seq AS bigint MAXVALUE 1099511627775 NO CYCLE;
CREATE SEQUENCE pulse.worker_id_seq AS bigint MAXVALUE 1099511627775 NO CYCLE;
CREATE SEQUENCE pulse.attachment_seq AS bigint;

-- The hash that gives a queue a queue mark in shared memory. It must never change: an index uses
-- it.
CREATE FUNCTION pulse_internal.queue_bucket(queue_name text) RETURNS smallint
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_queue_slot';

-- The hash that gives a parent a parent mark. An index uses it, too.
CREATE FUNCTION pulse_internal.parent_bucket(parent_id bigint) RETURNS bigint
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_parent_bucket';

CREATE TABLE pulse.job (
  id                  bigint PRIMARY KEY,  -- id_tables.sql has the default
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
  in_place            boolean NOT NULL DEFAULT false,
  waits_on            bigint,
  key_is_undecided    boolean,
  running_worker_id   bigint GENERATED ALWAYS AS
    (CASE WHEN state = 'running' AND NOT in_place THEN worker_id END) STORED,
  index_lane          "char" NOT NULL GENERATED ALWAYS AS
    (CASE WHEN waits_on IS NOT NULL THEN 'w' WHEN key_is_undecided THEN 'k'
          WHEN state = 'parked' THEN 'p'
          WHEN state = 'running' AND NOT in_place THEN 'r' ELSE 'o' END) STORED,
  scheduled_for       timestamptz,
  start_by            timestamptz,
  starts_when         text,
  succession          smallint,
  keeps_result        boolean,
  parents             json,
  traceparent         text,
  added_by            text COLLATE "C" DEFAULT current_user,
  dead_letter_of      bigint
) WITH (
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off, fillfactor = 40
);

-- The order of P8. A claim reads the index per task and priority, so jobs that are not due cost one
-- step. Jobs claimed in place stay in the index, and claims step over them, until they end or are
-- indexed. Entries are equal only for versions of one job, which is rare, so deduplication is off.
CREATE INDEX job_claim_idx ON pulse.job (identifier, priority, run_at, id)
  WITH (deduplicate_items = off) WHERE index_lane = 'o';
-- Recovery, held() and heartbeats find a worker's jobs on this index and in claim_batch.
CREATE INDEX job_running_idx ON pulse.job (running_worker_id, id)
  WHERE running_worker_id IS NOT NULL;
-- Promotion: the waiting jobs of one queue in order, and a skip scan over queues by queue mark.
CREATE INDEX job_parked_idx
  ON pulse.job (pulse_internal.queue_bucket(queue_name), queue_name, priority, run_at, id)
  WHERE index_lane = 'p';
-- Promotion finds the parked jobs that have fallen due since the last pass.
CREATE INDEX job_parked_due_idx ON pulse.job (run_at) WHERE index_lane = 'p';
-- The places that a queue has given away: its open and its running jobs.
CREATE INDEX job_open_idx ON pulse.job (queue_name)
  WHERE queue_name IS NOT NULL AND index_lane IN ('o', 'r');
-- A key is unique among waiting jobs only: a running job loses the key to the next add. No job with
-- a key is claimed in place. A job whose key is undecided has the key as a running job has.
CREATE UNIQUE INDEX job_waiting_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane IN ('o', 'p', 'w');
CREATE INDEX job_running_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane IN ('r', 'k');
-- Sweeps end the jobs that no claim took in time. A claim empties the column.
CREATE INDEX job_start_by_idx ON pulse.job (start_by) WHERE start_by IS NOT NULL;
-- Promotion: the waiting jobs of one parent mark by the parent that they watch.
CREATE INDEX job_waits_idx ON pulse.job (pulse_internal.parent_bucket(waits_on), waits_on, id)
  WHERE index_lane = 'w';
-- Promotion: the job that comes first in a strict queue, whatever the order of the queue.
CREATE INDEX job_successor_idx ON pulse.job (queue_name, succession, id)
  WHERE succession IS NOT NULL AND index_lane IN ('p', 'k');

-- The owners of jobs claimed in place. A row is deleted when its last job has ended, or when a
-- heartbeat of its worker indexes the jobs that still run.
CREATE TABLE pulse.claim_batch (
  worker_id      bigint NOT NULL,
  token          bigint NOT NULL,
  remaining_jobs int NOT NULL,
  job_ids        bigint[] NOT NULL
) WITH (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX claim_batch_idx ON pulse.claim_batch (worker_id, token);
-- A publication FOR ALL TABLES has the rows of the table; without an identity a subscriber stops at
-- an UPDATE.
ALTER TABLE pulse.claim_batch REPLICA IDENTITY FULL;

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
  finished_at   timestamptz NOT NULL,
  scheduled_for timestamptz,
  starts_when   text,
  cancelled_by  bigint,
  parents       json,
  traceparent   text, start_by timestamptz, keeps_result boolean, added_by text COLLATE "C",
  before_end    json, dead_letter_of bigint, dead_letter_id bigint
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- Pruning deletes the oldest jobs first; a task may have a retention of its own for completed jobs.
CREATE INDEX finished_job_completed_idx ON pulse.finished_job (identifier, finished_at)
  WHERE state = 'completed';
CREATE INDEX finished_job_failed_idx ON pulse.finished_job (finished_at, id)
  WHERE state <> 'completed';
CREATE INDEX finished_job_quarantined_idx ON pulse.finished_job (finished_at)
  WHERE state = 'quarantined';

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
  info               json,
  slots              int,
  kill_grace         interval,
  version            text
);
CREATE INDEX worker_alive_idx ON pulse.worker (id) WHERE state IN ('alive', 'draining');
CREATE INDEX worker_ended_idx ON pulse.worker (ended_at) WHERE ended_at IS NOT NULL;

-- The row is narrow and only the key is indexed, so that every heartbeat is a HOT update. The
-- column `verdict` has the worker's status. It keeps its name of 0.1.0: a heartbeat that waits for
-- an update of the extension goes on with the functions of that version.
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
  isolated_job_id   bigint,
  lost_cause        text,
  missing_job_ids   bigint[],
  missing_tokens    bigint[],
  default_timeout_us bigint
) WITH (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  -- Heartbeats change nothing that a plan depends on, and each ANALYZE makes every session read the
  -- table's metadata again.
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 1000000
);

-- Several rows, so that a sweep in an open transaction locks one and other sweeps can still tick.
CREATE TABLE pulse.clock (
  slot      smallint PRIMARY KEY,
  vt_us     bigint NOT NULL,
  last_tick timestamptz NOT NULL,
  timeline  int NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
INSERT INTO pulse.clock SELECT n, 0, pg_catalog.clock_timestamp(), 0
  FROM pg_catalog.generate_series(1, 8) AS n;

CREATE TABLE pulse.queue (
  queue_name  text COLLATE "C" PRIMARY KEY,
  concurrency int NOT NULL DEFAULT 1,
  paused      boolean NOT NULL DEFAULT false,
  created_at  timestamptz NOT NULL DEFAULT pg_catalog.now(),
  updated_at  timestamptz NOT NULL DEFAULT pg_catalog.now(),
  total       int,
  is_level    boolean NOT NULL DEFAULT false,
  is_strict   boolean NOT NULL DEFAULT false,
  on_dead     text NOT NULL DEFAULT 'continue',
  fair        boolean NOT NULL DEFAULT false,
  weight      int NOT NULL DEFAULT 1,
  rate int, per interval, burst int
);
-- Each sweep asks which levels are fair.
CREATE INDEX queue_fair_idx ON pulse.queue (queue_name) WHERE fair;
-- The value is the microsecond since 1970 at which settings of a queue were last taken away. Jobs
-- claimed before then may be more than the queue runs without the settings, as verify() must know.
CREATE SEQUENCE pulse.queue_unset_seq AS bigint;

CREATE TABLE pulse.queue_pause (
  queue_name text COLLATE "C",
  job_id     bigint DEFAULT 0,
  created_at timestamptz NOT NULL, is_paused boolean NOT NULL DEFAULT true, paused_by text,
  PRIMARY KEY (queue_name, job_id)
);
CREATE TABLE pulse.queue_rate (
  queue_name   text COLLATE "C" PRIMARY KEY,
  full_live_us bigint NOT NULL,
  opened       bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

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
  updated_at     timestamptz NOT NULL DEFAULT pg_catalog.now(),
  expires_after  interval,
  queue          text COLLATE "C",
  dead_letter    text COLLATE "C"
);

CREATE TABLE pulse.schedule (
  name             text COLLATE "C" PRIMARY KEY,
  identifier       text COLLATE "C" NOT NULL,
  cron             text,
  every            interval,
  time_zone        text NOT NULL,
  anchor           timestamptz NOT NULL,
  payload          json,
  queue_name       text COLLATE "C",
  max_attempts     int,
  priority         int,
  flags            text[],
  job_key          text COLLATE "C",
  job_key_mode     text NOT NULL,
  missed           text NOT NULL,
  missed_for       interval NOT NULL,
  overlap          text NOT NULL,
  paused           boolean NOT NULL,
  next_due         timestamptz NOT NULL,
  last_due         timestamptz,
  last_job_id      bigint,
  missed_count     bigint NOT NULL DEFAULT 0,
  overlapped_count bigint NOT NULL DEFAULT 0,
  last_error       text,
  last_error_at    timestamptz,
  crontab_set      text COLLATE "C",
  gone_at          timestamptz,
  paused_before    boolean,
  created_at       timestamptz NOT NULL DEFAULT pg_catalog.now(),
  updated_at       timestamptz NOT NULL DEFAULT pg_catalog.now(),
  added_by         text COLLATE "C" DEFAULT current_user,
  paused_at        timestamptz, paused_by text
);
-- A sweep asks for the least due time; schedules that are not due cost the sweep nothing.
CREATE INDEX schedule_due_idx ON pulse.schedule (next_due, name) WHERE NOT paused;
CREATE INDEX schedule_gone_idx ON pulse.schedule (gone_at) WHERE gone_at IS NOT NULL;

-- Sessions cache the row of pulse.installation; a trigger invalidates the caches.
CREATE FUNCTION pulse_internal.rows_changed() RETURNS trigger
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_rows_changed';

-- The first token or worker id writes the row; both count from the row's epoch_base. pg_dump keeps
-- the row, so a restored copy is recognised by it; a second row also shows a copy. A primary key
-- would make such a restore fail half-way, and leave the jobs with the wrong row.
CREATE TABLE pulse.installation (
  id                uuid NOT NULL,
  system_identifier bigint NOT NULL,
  database_oid      oid NOT NULL,
  job_oid           oid NOT NULL,
  epoch_base        int NOT NULL,
  timeline          int NOT NULL,
  created_at        timestamptz NOT NULL,
  moved_at          timestamptz,
  id_floor          bigint NOT NULL DEFAULT 1,
  id_ceiling        bigint NOT NULL DEFAULT 17592186044415
);
ALTER TABLE pulse.installation REPLICA IDENTITY FULL;
CREATE TRIGGER installation_changed
  AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON pulse.installation
  FOR EACH STATEMENT EXECUTE FUNCTION pulse_internal.rows_changed();
ALTER TABLE pulse.installation ENABLE ALWAYS TRIGGER installation_changed;

-- A session caches the tasks of the worker that claims in it.
CREATE TRIGGER tasks_changed AFTER UPDATE OF tasks ON pulse.worker
  FOR EACH ROW WHEN (OLD.tasks IS DISTINCT FROM NEW.tasks)
  EXECUTE FUNCTION pulse_internal.rows_changed();

-- pg_dump leaves the table out, so a restored copy lacks the row even if it has the same oids.
CREATE TABLE pulse.installation_witness (installation_id uuid NOT NULL);
ALTER TABLE pulse.installation_witness REPLICA IDENTITY FULL;
-- A subscriber with the witness would pass for a moved server, and run the publisher's jobs. So a
-- worker of a subscription inserts none; a session of a DBA that acts as a replica does.
CREATE FUNCTION pulse_internal.skip_replicated() RETURNS trigger
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_stat_get_subscription(NULL) AS s WHERE s.pid = pg_backend_pid()) THEN
    RETURN NULL;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER witness_is_not_replicated BEFORE INSERT ON pulse.installation_witness
  FOR EACH ROW EXECUTE FUNCTION pulse_internal.skip_replicated();
ALTER TABLE pulse.installation_witness ENABLE REPLICA TRIGGER witness_is_not_replicated;

-- pg_dump keeps jobs, their history, settings, the sequences of ids and the installation. Workers
-- are gone after a restore, so worker, heartbeat and clock stay out, and the next sweep recovers
-- the jobs that those workers ran.
SELECT pg_catalog.pg_extension_config_dump('pulse.job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.claim_batch', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.finished_job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.attempt', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.queue', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.queue_pause', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.queue_rate', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.task', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.schedule', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.job_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.token_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.worker_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.installation', '');
