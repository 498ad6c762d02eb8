-- What the functions of 0.2.0 find changed: columns and tables that are new, types that grew, and
-- functions of 0.1.0 that are gone or have other arguments or results. The functions themselves
-- follow, put there by the build. After a release this file is replaced by what was built from it.

-- Pruning walks each kind of finished row by age, and keeps dead rows few.
DROP INDEX pulse.finished_job_prune_idx;
CREATE INDEX finished_job_completed_idx ON pulse.finished_job (identifier, finished_at)
  WHERE state = 'completed';
CREATE INDEX finished_job_failed_idx ON pulse.finished_job (finished_at)
  WHERE state <> 'completed';
ALTER TABLE pulse.finished_job
  SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
ALTER TABLE pulse.attempt
  SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- Beats change nothing that a plan depends on.
ALTER TABLE pulse.heartbeat
  SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000);
CREATE INDEX worker_ended_idx ON pulse.worker (ended_at) WHERE ended_at IS NOT NULL;

-- One word for one thing: the status of a worker, the cause of a recovery, the job that runs
-- isolated. Views keep their grants.
ALTER TABLE pulse.heartbeat RENAME COLUMN verdict TO status;
ALTER TABLE pulse.heartbeat RENAME COLUMN lost_way TO lost_cause;
ALTER TABLE pulse.heartbeat RENAME COLUMN alone_job_id TO isolated_job_id;
COMMENT ON TABLE pulse.heartbeat IS
  'the last beat of each worker that has not ended, and its status in the same row';
COMMENT ON COLUMN pulse.heartbeat.lost_cause IS
  'how the loss was noticed: session, host or silence';
COMMENT ON COLUMN pulse.heartbeat.isolated_job_id IS
  'the poison suspect that this worker runs isolated, or is kept free for';
COMMENT ON COLUMN pulse.job.worker_id IS
  'running: the owner; ready: the one worker that may run this poison suspect (see claim)';
ALTER TYPE pulse._ending RENAME ATTRIBUTE way TO cause;
ALTER VIEW pulse.worker_status RENAME COLUMN verdict TO status;
ALTER FUNCTION pulse._lost_way(pulse.heartbeat, bigint) RENAME TO _lost_cause;
ALTER FUNCTION pulse._share_worker(bigint) RENAME TO _lock_worker_shared;
ALTER FUNCTION pulse._must_wait_alone(pulse.job, bigint) RENAME TO _must_wait_isolated;
ALTER FUNCTION pulse._refusal(pulse.job) RENAME TO _unclaimable_reason;
-- A replaced function keeps the names of its arguments, so these are made anew.
DROP FUNCTION pulse._room(pulse._sweep_result, int);
DROP FUNCTION pulse._recover_owner(bigint, text, text, text, int);
DROP FUNCTION pulse._lock_late(bigint, int);
DROP FUNCTION pulse._recover_lost(pulse._sweep_result, int);
DROP FUNCTION pulse._mark_lost(bigint, text, text);
DROP FUNCTION pulse._recover_late(pulse._sweep_result, int, bigint);
DROP FUNCTION pulse._promote_marked(int);
DROP FUNCTION pulse._mark_all_lost(bigint, int);
DROP FUNCTION pulse._reconcile_queues(int);
DROP FUNCTION pulse._announce(text, bigint, bigint[]);
DROP FUNCTION pulse._lock_running(bigint, int);
DROP FUNCTION pulse._dead_owners();
DROP FUNCTION pulse._late(bigint);

-- Which indexes have a job no longer depends on its state, so that a claim can be a HOT
-- update. What depends on the row type goes and comes back with the functions.
DROP VIEW pulse._broken_p8, pulse._queue_places;
DROP FUNCTION pulse._is_overdue(pulse.job);
ALTER TABLE pulse.job
  ADD COLUMN in_place boolean NOT NULL DEFAULT false,
  ADD COLUMN running_worker_id bigint GENERATED ALWAYS AS
    (CASE WHEN state = 'running' AND NOT in_place THEN worker_id END) STORED,
  ADD COLUMN index_lane "char" NOT NULL GENERATED ALWAYS AS
    (CASE WHEN state = 'parked' THEN 'p' WHEN state = 'running' AND NOT in_place THEN 'h' ELSE 'o' END)
    STORED,
  SET (fillfactor = 40);
COMMENT ON COLUMN pulse.job.in_place IS
  'while it runs: claimed in place, listed in claim_batch and not yet in the lane of held jobs';
COMMENT ON COLUMN pulse.job.running_worker_id IS 'the owner of a held job';
COMMENT ON COLUMN pulse.job.index_lane IS
  'which indexes have it: o(pen): ready, or claimed in place; p(arked); h(eld). No index may ask for the '
  'state: a claim in place changes it, and is a HOT update because no index has to follow';
DROP INDEX pulse.job_claim_idx, pulse.job_running_idx, pulse.job_parked_idx,
  pulse.job_parked_due_idx, pulse.job_open_idx, pulse.job_waiting_key_idx,
  pulse.job_running_key_idx;
CREATE INDEX job_claim_idx ON pulse.job (identifier, priority, run_at, id)
  WITH (deduplicate_items = off) WHERE index_lane = 'o';
CREATE INDEX job_running_idx ON pulse.job (running_worker_id, id) WHERE running_worker_id IS NOT NULL;
CREATE INDEX job_parked_idx
  ON pulse.job (pulse._queue_slot(queue_name), queue_name, priority, run_at, id)
  WHERE index_lane = 'p';
CREATE INDEX job_parked_due_idx ON pulse.job (run_at) WHERE index_lane = 'p';
CREATE INDEX job_open_idx ON pulse.job (queue_name)
  WHERE queue_name IS NOT NULL AND index_lane <> 'p';
CREATE UNIQUE INDEX job_waiting_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane <> 'h';
CREATE INDEX job_running_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane = 'h';

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
SELECT pg_catalog.pg_extension_config_dump('pulse.claim_batch', '');

-- Jobs without keys are added without SQL.
DROP FUNCTION pulse._add_unkeyed(pulse.job_spec[]);

-- The library ends every attempt.
DROP FUNCTION pulse._backoff(pulse.task, int);
DROP FUNCTION pulse._is_superseded(pulse.job);
DROP FUNCTION pulse._keep_completed(pulse.job, json);
DROP FUNCTION pulse._complete_one(bigint, bigint, json);
DROP FUNCTION pulse._lock_claim(bigint, bigint);
DROP FUNCTION pulse._lock_claims(bigint[], bigint[]);
DROP FUNCTION pulse._outcomes(bigint[], bigint[], bigint[], text);
DROP FUNCTION pulse._check_error(text);
DROP FUNCTION pulse._check_lengths(int[]);
ALTER TYPE pulse._ending ADD ATTRIBUTE token bigint;
COMMENT ON TYPE pulse._ending IS
  'how one attempt ends, the argument of _end_attempts; token NULL: whichever attempt runs';

-- Now one function ends every waiting job.
DROP FUNCTION pulse._cancel_waiting(pulse.job, text);

-- It returns the verdict.
DROP FUNCTION pulse._require_alive(bigint);

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
SELECT pg_catalog.pg_extension_config_dump('pulse.installation', '');

-- pg_upgrade refuses a column of regprocedure.
ALTER TABLE pulse.task ALTER COLUMN handler TYPE text
  USING (pg_catalog.pg_identify_object('pg_catalog.pg_proc'::regclass, handler, 0)).identity;
COMMENT ON COLUMN pulse.task.handler IS
  'a function by its full name: pg_upgrade would refuse a column of regprocedure';

COMMENT ON COLUMN pulse.heartbeat.detached_live_us IS
  'when the attached session ended, on the liveness clock';
