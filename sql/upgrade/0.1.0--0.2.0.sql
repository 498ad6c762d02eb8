-- The changes of 0.2.0 in the structure of 0.1.0: new columns and tables, types with more
-- attributes, and functions that are dropped or have other arguments or results. The build appends
-- the functions themselves. A release replaces this file by the script built from the file.

-- Internal objects get a schema of their own, and lose the underscore before their names. The
-- update moves the objects and drops none, so dependents and the grants that views need stay.
CREATE SCHEMA pulse_internal;
COMMENT ON SCHEMA pulse_internal IS
  'Functions and relations of pg_pulse''s own: no program calls the functions, and any version '
  'may change the schema.';
DO $$
DECLARE
  member record;
BEGIN
  FOR member IN
    SELECT d.objid, o.kind, o.name FROM pg_depend AS d JOIN (
      SELECT 'pg_proc'::regclass AS class, p.oid, 'ROUTINE' AS kind, p.proname AS name
        FROM pg_proc AS p
      UNION ALL
      SELECT 'pg_class'::regclass, c.oid, 'VIEW', c.relname FROM pg_class AS c WHERE c.relkind = 'v'
      UNION ALL
      SELECT 'pg_type'::regclass, t.oid, 'TYPE', t.typname
        FROM pg_type AS t JOIN pg_class AS c ON c.oid = t.typrelid AND c.relkind = 'c'
    ) AS o ON o.class = d.classid AND o.oid = d.objid
     WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
       AND d.refobjid = (SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'pg_pulse')
       AND starts_with(o.name, '_')
  LOOP
    -- Printed anew for each statement: a signature names types that move too.
    EXECUTE format('ALTER %s %s SET SCHEMA pulse_internal', member.kind, CASE member.kind
      WHEN 'ROUTINE' THEN member.objid::regprocedure::text
      WHEN 'VIEW' THEN member.objid::regclass::text ELSE member.objid::regtype::text END);
    EXECUTE format('ALTER %s %s RENAME TO %I', member.kind, CASE member.kind
      WHEN 'ROUTINE' THEN member.objid::regprocedure::text
      WHEN 'VIEW' THEN member.objid::regclass::text ELSE member.objid::regtype::text END,
      substr(member.name, 2));
  END LOOP;
END $$;

-- Pruning reads each kind of finished row by age, and vacuum keeps dead rows few.
DROP INDEX pulse.finished_job_prune_idx;
CREATE INDEX finished_job_completed_idx ON pulse.finished_job (identifier, finished_at)
  WHERE state = 'completed';
CREATE INDEX finished_job_failed_idx ON pulse.finished_job (finished_at, id)
  WHERE state <> 'completed';
CREATE INDEX finished_job_quarantined_idx ON pulse.finished_job (finished_at)
  WHERE state = 'quarantined';
ALTER TABLE pulse.finished_job
  SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
ALTER TABLE pulse.attempt
  SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- Heartbeats change nothing that a plan depends on.
ALTER TABLE pulse.heartbeat
  SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000);
-- A claim records the default_timeout under which its jobs run.
ALTER TABLE pulse.heartbeat ADD COLUMN default_timeout_us bigint;
-- A worker of this version may have registered before the update: the worker's info tells.
ALTER TABLE pulse.worker
  ADD COLUMN slots int, ADD COLUMN kill_grace interval, ADD COLUMN version text;
UPDATE pulse.worker SET
  slots = CASE WHEN info ->> 'slots' ~ '^[0-9]{1,6}$' THEN (info ->> 'slots')::int END,
  kill_grace = CASE WHEN info ->> 'kill_grace_ms' ~ '^[0-9]{1,6}$'
                 THEN (info ->> 'kill_grace_ms')::int * interval '1 ms' END,
  version = left(info ->> 'version', 64)
 WHERE state IN ('alive', 'draining') AND info IS NOT NULL;
CREATE INDEX worker_ended_idx ON pulse.worker (ended_at) WHERE ended_at IS NOT NULL;

-- Columns and functions with new names. The update alters the view and does not drop it, so it
-- keeps its grants.
ALTER TABLE pulse.heartbeat RENAME COLUMN lost_way TO lost_cause;
ALTER TABLE pulse.heartbeat RENAME COLUMN alone_job_id TO isolated_job_id;
ALTER TYPE pulse_internal.ending RENAME ATTRIBUTE way TO cause;
ALTER VIEW pulse.worker_status RENAME COLUMN verdict TO status;
ALTER FUNCTION pulse_internal.share_worker(bigint) RENAME TO lock_worker_shared;
ALTER FUNCTION pulse_internal.must_wait_alone(pulse.job, bigint) RENAME TO must_wait_isolated;
ALTER FUNCTION pulse_internal.queue_slot(text) RENAME TO queue_bucket;
ALTER FUNCTION pulse_internal.refusal(pulse.job) RENAME TO unclaimable_reason;
ALTER FUNCTION pulse_internal.lost_way(pulse.heartbeat, bigint) RENAME TO loss_cause;
ALTER FUNCTION pulse_internal.note_everybody() RENAME TO note_all_waiters;
-- CREATE OR REPLACE cannot rename an argument, so these functions are dropped and created anew.
DROP FUNCTION pulse_internal.room(pulse_internal.sweep_result, int);
DROP FUNCTION pulse_internal.recover_owner(bigint, text, text, text, int);
DROP FUNCTION pulse_internal.lock_late(bigint, int);
DROP FUNCTION pulse_internal.recover_lost(pulse_internal.sweep_result, int);
DROP FUNCTION pulse_internal.mark_lost(bigint, text, text);
DROP FUNCTION pulse_internal.recover_late(pulse_internal.sweep_result, int, bigint);
DROP FUNCTION pulse_internal.promote_marked(int);
DROP FUNCTION pulse_internal.mark_all_lost(bigint, int);
DROP FUNCTION pulse_internal.reconcile_queues(int);
DROP FUNCTION pulse_internal.announce(text, bigint, bigint[]);
DROP FUNCTION pulse_internal.lock_running(bigint, int);
DROP FUNCTION pulse_internal.dead_owners();
DROP FUNCTION pulse_internal.late(bigint);
DROP FUNCTION pulse_internal.sweep(int);
DROP FUNCTION pulse_internal.stamp_ended_sessions(bigint);
DROP FUNCTION pulse_internal.ask_for_grace_end(bigint);
DROP FUNCTION pulse_internal.live_base_us();
DROP FUNCTION pulse_internal.require_read_committed(text);

-- No index depends on the state of a job, so a claim can be a HOT update. Objects that depend on
-- the row type are dropped, and the functions part creates them anew.
DROP VIEW pulse_internal.broken_p8;
DROP VIEW pulse_internal.queue_places;
DROP FUNCTION pulse_internal.is_overdue(pulse.job);
ALTER TABLE pulse.job
  ADD COLUMN in_place boolean NOT NULL DEFAULT false,
  ADD COLUMN waits_on bigint,
  ADD COLUMN key_is_undecided boolean,
  ADD COLUMN running_worker_id bigint GENERATED ALWAYS AS
    (CASE WHEN state = 'running' AND NOT in_place THEN worker_id END) STORED,
  ADD COLUMN index_lane "char" NOT NULL GENERATED ALWAYS AS
    (CASE WHEN waits_on IS NOT NULL THEN 'w' WHEN key_is_undecided THEN 'k'
          WHEN state = 'parked' THEN 'p'
          WHEN state = 'running' AND NOT in_place THEN 'r' ELSE 'o' END) STORED,
  ADD COLUMN scheduled_for timestamptz,
  ADD COLUMN start_by timestamptz,
  ADD COLUMN starts_when text,
  ADD COLUMN succession smallint,
  ADD COLUMN keeps_result boolean,
  ADD COLUMN parents json,
  ADD COLUMN traceparent text,
  ADD COLUMN added_by text COLLATE "C",
  ADD COLUMN dead_letter_of bigint,
  SET (fillfactor = 40);
-- Apart from the column: rows that are there belong to no producer.
ALTER TABLE pulse.job ALTER COLUMN added_by SET DEFAULT current_user;
DROP INDEX pulse.job_claim_idx, pulse.job_running_idx, pulse.job_parked_idx,
  pulse.job_parked_due_idx, pulse.job_open_idx, pulse.job_waiting_key_idx,
  pulse.job_running_key_idx;
CREATE INDEX job_claim_idx ON pulse.job (identifier, priority, run_at, id)
  WITH (deduplicate_items = off) WHERE index_lane = 'o';
CREATE INDEX job_running_idx ON pulse.job (running_worker_id, id)
  WHERE running_worker_id IS NOT NULL;
CREATE INDEX job_parked_idx
  ON pulse.job (pulse_internal.queue_bucket(queue_name), queue_name, priority, run_at, id)
  WHERE index_lane = 'p';
CREATE INDEX job_parked_due_idx ON pulse.job (run_at) WHERE index_lane = 'p';
CREATE INDEX job_open_idx ON pulse.job (queue_name)
  WHERE queue_name IS NOT NULL AND index_lane IN ('o', 'r');
CREATE UNIQUE INDEX job_waiting_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane IN ('o', 'p', 'w');
CREATE INDEX job_running_key_idx ON pulse.job (job_key)
  WHERE job_key IS NOT NULL AND index_lane IN ('r', 'k');
CREATE INDEX job_start_by_idx ON pulse.job (start_by) WHERE start_by IS NOT NULL;
-- Promotion: the waiting jobs of one parent mark by the parent that they watch.
CREATE FUNCTION pulse_internal.parent_bucket(parent_id bigint) RETURNS bigint
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_parent_bucket';
CREATE INDEX job_waits_idx ON pulse.job (pulse_internal.parent_bucket(waits_on), waits_on, id)
  WHERE index_lane = 'w';
-- Promotion: the job that comes first in a strict queue, whatever the order of the queue.
CREATE INDEX job_successor_idx ON pulse.job (queue_name, succession, id)
  WHERE succession IS NOT NULL AND index_lane IN ('p', 'k');

-- No transaction may use the value before the update has committed.
ALTER TYPE pulse.finished_state ADD VALUE 'expired';

ALTER TABLE pulse.finished_job ADD COLUMN scheduled_for timestamptz,
  ADD COLUMN starts_when text, ADD COLUMN cancelled_by bigint, ADD COLUMN parents json,
  ADD COLUMN traceparent text, ADD COLUMN start_by timestamptz, ADD COLUMN keeps_result boolean,
  ADD COLUMN added_by text COLLATE "C", ADD COLUMN before_end json,
  ADD COLUMN dead_letter_of bigint, ADD COLUMN dead_letter_id bigint;
ALTER TYPE pulse.claimed_job ADD ATTRIBUTE scheduled_for timestamptz, ADD ATTRIBUTE parents json,
  ADD ATTRIBUTE traceparent text;

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
SELECT pg_catalog.pg_extension_config_dump('pulse.schedule', '');

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
ALTER TABLE pulse.claim_batch REPLICA IDENTITY FULL;
SELECT pg_catalog.pg_extension_config_dump('pulse.claim_batch', '');

-- The lock of a key lasts no longer than a check and a write.
DROP FUNCTION pulse_internal.lock_key(text);
DROP FUNCTION pulse_internal.lock_keys(text[]);
DROP FUNCTION pulse_internal.take_key_from_running(text);
DROP FUNCTION pulse_internal.add_keyed(pulse.job_spec, text);
DROP FUNCTION pulse_internal.dedupe_job(text);
DROP FUNCTION pulse_internal.replace_job(pulse.job, pulse.job_spec, text);

-- The library adds jobs without keys.
DROP FUNCTION pulse_internal.add_unkeyed(pulse.job_spec[]);

-- The library ends every attempt.
DROP FUNCTION pulse_internal.is_superseded(pulse.job);
DROP FUNCTION pulse_internal.keep_completed(pulse.job, json);
DROP FUNCTION pulse_internal.complete_one(bigint, bigint, json);
DROP FUNCTION pulse_internal.lock_claim(bigint, bigint);
DROP FUNCTION pulse_internal.lock_claims(bigint[], bigint[]);
DROP FUNCTION pulse_internal.outcomes(bigint[], bigint[], bigint[], text);
DROP FUNCTION pulse_internal.check_error(text);
DROP FUNCTION pulse_internal.refused_token(bigint, bigint, text);
DROP FUNCTION pulse_internal.check_lengths(int[]);
DROP FUNCTION pulse_internal.end_attempts(pulse_internal.ending[]);

-- finish_waiting ends every waiting job.
DROP FUNCTION pulse_internal.cancel_waiting(pulse.job, text);

-- The result is the status of the worker.
DROP FUNCTION pulse_internal.require_alive(bigint);

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
CREATE TABLE pulse.installation_witness (
  installation_id uuid NOT NULL
);
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
SELECT pg_catalog.pg_extension_config_dump('pulse.installation', '');

-- pg_upgrade refuses a column of regprocedure.
ALTER TABLE pulse.task ALTER COLUMN handler TYPE text
  USING (pg_catalog.pg_identify_object('pg_catalog.pg_proc'::regclass, handler, 0)).identity;

ALTER TABLE pulse.task ADD COLUMN expires_after interval;

CREATE TYPE pulse_internal.explanation AS (
  kind       text,
  blocker    text,
  detail     text,
  until      timestamptz,
  job_ids    bigint[],
  worker_ids bigint[]
);

-- Queues within queues, and queues of tasks. A new function of the same name gets the rights of the
-- old function.
ALTER TABLE pulse.queue
  ADD COLUMN total    int,
  ADD COLUMN is_level boolean NOT NULL DEFAULT false,
  ADD COLUMN is_strict boolean NOT NULL DEFAULT false,
  ADD COLUMN on_dead  text NOT NULL DEFAULT 'continue',
  ADD COLUMN fair     boolean NOT NULL DEFAULT false,
  ADD COLUMN weight   int NOT NULL DEFAULT 1,
  ADD COLUMN rate     int,
  ADD COLUMN per      interval,
  ADD COLUMN burst    int;
CREATE INDEX queue_fair_idx ON pulse.queue (queue_name) WHERE fair;

-- Pauses are no settings. The end of a job adds a row of its own and waits for no session.
CREATE TABLE pulse.queue_pause (
  queue_name text COLLATE "C",
  job_id     bigint DEFAULT 0,
  created_at timestamptz NOT NULL,
  is_paused  boolean NOT NULL DEFAULT true,
  paused_by  text,
  PRIMARY KEY (queue_name, job_id)
);
SELECT pg_catalog.pg_extension_config_dump('pulse.queue_pause', '');
-- The tokens of levels with a rate. Each promotion that changes the tokens makes a HOT update.
CREATE TABLE pulse.queue_rate (
  queue_name   text COLLATE "C" PRIMARY KEY,
  full_live_us bigint NOT NULL,
  opened       bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
SELECT pg_catalog.pg_extension_config_dump('pulse.queue_rate', '');
CREATE SEQUENCE pulse.queue_unset_seq AS bigint;
ALTER TABLE pulse.task ADD COLUMN queue text COLLATE "C", ADD COLUMN dead_letter text COLLATE "C";
CREATE FUNCTION pulse.set_queue(
    queue_name text, concurrency int, paused boolean, total int, rate int, per interval, burst int,
    fair boolean, weight int,
    strict boolean, on_dead text)
  RETURNS pulse.queue LANGUAGE sql VOLATILE AS $$ SELECT NULL::pulse.queue $$;
CREATE FUNCTION pulse.set_task(
    identifier text, max_attempts int, timeout interval, stall_timeout interval, backoff text,
    backoff_base interval, backoff_cap interval, jitter float8, keep_completed interval,
    max_crashes int, on_unreachable text, handler regprocedure, expires_after interval, queue text,
    dead_letter text)
  RETURNS pulse.task LANGUAGE sql VOLATILE AS $$ SELECT NULL::pulse.task $$;
-- As grants of the script the rights would be missing in dumps, so they are no initial rights.
DO $$
DECLARE
  grown record;
  own aclitem[];
  kept record;
BEGIN
  FOR grown IN
    SELECT o.oid AS old_function, n.oid AS new_function, o.proacl, o.proowner
      FROM pg_proc AS o JOIN pg_proc AS n USING (proname, pronamespace)
     WHERE o.pronamespace = 'pulse'::regnamespace AND o.proname IN ('set_queue', 'set_task')
       AND o.pronargs < n.pronargs
  LOOP
    -- Default privileges, too, may have granted the function.
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s CASCADE', grown.new_function::regprocedure,
      concat_ws(', ', 'PUBLIC', (
        SELECT string_agg(DISTINCT a.grantee::regrole::text, ', ')
          FROM pg_proc AS p, aclexplode(p.proacl) AS a
         WHERE p.oid = grown.new_function AND a.grantee NOT IN (0::oid, p.proowner))));
    SELECT i.initprivs INTO own FROM pg_init_privs AS i
     WHERE i.classoid = 'pg_proc'::regclass AND i.objoid = grown.new_function;
    FOR kept IN
      SELECT a.grantee, a.is_grantable FROM aclexplode(grown.proacl) AS a
       WHERE a.grantee <> grown.proowner
    LOOP
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', grown.new_function::regprocedure,
        CASE kept.grantee WHEN 0 THEN 'PUBLIC' ELSE kept.grantee::regrole::text END)
        || CASE WHEN kept.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
    END LOOP;
    UPDATE pg_init_privs SET initprivs = own
     WHERE classoid = 'pg_proc'::regclass AND objoid = grown.new_function;
  END LOOP;
END $$;
DROP FUNCTION pulse.set_queue(text, int, boolean);
DROP FUNCTION pulse.set_task(text, int, interval, interval, text, interval, interval, float8,
                             interval, int, text, regprocedure);
