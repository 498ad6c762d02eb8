-- The installation that the jobs belong to: a copy hands out no job before adopt_installation().
-- extension/install/installation.cpp writes the row and keeps it up to date.

CREATE OR REPLACE FUNCTION pulse_internal.system_identifier() RETURNS bigint
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_system_identifier';
COMMENT ON FUNCTION pulse_internal.system_identifier() IS
  'Returns the identifier of this server''s files.';

CREATE OR REPLACE VIEW pulse_internal.this_place AS
  SELECT pulse_internal.system_identifier() AS system_identifier, d.oid AS database_oid,
         'pulse.job'::pg_catalog.regclass::oid AS job_oid
    FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database();
COMMENT ON VIEW pulse_internal.this_place IS
  'The values of this place, as the row of an installation has them.';

-- A dump contains the installation's row but not the witness. Without the witness, a copy could
-- pass for an upgraded server: a server made by the same script can have the same oids. A dump
-- restored over an installation in use adds a second row.
CREATE OR REPLACE VIEW pulse_internal.standing AS
  SELECT i.rows = 0 AS is_unused,
         i.rows > 1
           OR i.rows = 1 AND (NOT i.has_witness OR i.database_oid <> t.database_oid
                              OR i.job_oid <> t.job_oid) AS is_copy,
         i.rows = 1 AND i.system_identifier <> t.system_identifier AS is_moved,
         i.system_identifier, i.database_oid, i.epoch_base, i.timeline, i.highest,
         EXISTS (SELECT FROM pg_catalog.pg_subscription_rel AS s
                  WHERE s.srrelid = t.job_oid) AS is_subscribed
    FROM pulse_internal.this_place AS t,
         (SELECT pg_catalog.count(*) AS rows,
                 pg_catalog.bool_and(EXISTS (SELECT FROM pulse.installation_witness AS w
                                              WHERE w.installation_id = f.id)) AS has_witness,
                 pg_catalog.max(f.system_identifier) AS system_identifier,
                 pg_catalog.max(f.database_oid) AS database_oid,
                 pg_catalog.max(f.job_oid) AS job_oid,
                 pg_catalog.max(f.epoch_base) AS epoch_base,
                 pg_catalog.max(f.timeline) AS timeline,
                 pg_catalog.max(f.epoch_base + f.timeline) AS highest
            FROM pulse.installation AS f) AS i;
COMMENT ON VIEW pulse_internal.standing IS
  'How this database relates to its installation row: unused (no number made yet, or only by '
  '0.1.0), moved (the same tables under another server, as after pg_upgrade), a copy (restored '
  'from a dump, or cloned from another database) or subscribed (a subscription writes the jobs).';

CREATE OR REPLACE FUNCTION pulse_internal.installation_standing() RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN (
    SELECT CASE WHEN s.is_subscribed THEN 'subscribed' WHEN s.is_unused THEN 'unused'
                WHEN s.is_copy THEN 'copy' WHEN s.is_moved THEN 'moved' ELSE 'ours' END
      FROM pulse_internal.standing AS s);
COMMENT ON FUNCTION pulse_internal.installation_standing() IS
  'Tells how this database relates to its installation row: unused (no number made yet), ours, '
  'moved (same tables, another server: adopted at the next number or sweep), copy or subscribed '
  '(claims are refused).';

CREATE OR REPLACE FUNCTION pulse_internal.is_foreign() RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN pulse_internal.installation_standing() IN ('copy', 'subscribed');
COMMENT ON FUNCTION pulse_internal.is_foreign() IS
  'Returns whether the jobs of this database run elsewhere: claims are refused, and no due time '
  'counts.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_numbers() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_numbers';
COMMENT ON FUNCTION pulse_internal.lock_numbers() IS
  'Locks the numbers until the transaction ends: no other transaction makes a token or a worker '
  'id. Waits for transactions that are making one.';

-- Reads every kept job, at the first use and at an adoption only.
CREATE OR REPLACE VIEW pulse_internal.highest_numbers AS
  SELECT 'token'::text AS what,
         greatest((SELECT pg_catalog.max(j.token) FROM pulse.job AS j),
                  (SELECT pg_catalog.max(f.token) FROM pulse.finished_job AS f),
                  (SELECT pg_catalog.max(a.token) FROM pulse.attempt AS a)) AS stored,
         s.last_value + s.is_called::int AS next
    FROM pulse.token_seq AS s
  UNION ALL
  SELECT 'worker',
         greatest((SELECT pg_catalog.max(j.worker_id) FROM pulse.job AS j),
                  (SELECT pg_catalog.max(f.worker_id) FROM pulse.finished_job AS f),
                  (SELECT pg_catalog.max(a.worker_id) FROM pulse.attempt AS a),
                  (SELECT pg_catalog.max(w.id) FROM pulse.worker AS w)),
         s.last_value + s.is_called::int
    FROM pulse.worker_id_seq AS s;
COMMENT ON VIEW pulse_internal.highest_numbers IS
  'The highest stored token and worker id, and the next number of each sequence.';

-- 0 in a new database, and in a database whose rows 0.1.0 wrote. Above all stored numbers where
-- 0.1.0 dumped the jobs on a later timeline, or where the jobs were restored without the sequences.
CREATE OR REPLACE FUNCTION pulse_internal.first_epoch_base(timeline int) RETURNS int
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(max(CASE WHEN n.stored >= (timeline::bigint << 40 | n.next)
                        THEN (n.stored >> 40) + 1 END), 0)::int
    FROM pulse_internal.highest_numbers AS n;
$$;
COMMENT ON FUNCTION pulse_internal.first_epoch_base(int) IS
  'Returns the least epoch_base that puts every new number above all stored numbers.';

-- Jobs come without the sequences by logical replication, or as the data of some tables.
CREATE OR REPLACE FUNCTION pulse_internal.raise_sequences() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  own CONSTANT bigint := 1099511627775;  -- the part of a number that the sequence gave
BEGIN
  PERFORM setval(n.sequence, n.stored)
     FROM (VALUES
       ('pulse.job_id_seq'::regclass,
        greatest((SELECT max(j.id) FROM pulse.job AS j),
                 (SELECT max(f.id) FROM pulse.finished_job AS f),
                 (SELECT max(a.job_id) FROM pulse.attempt AS a),
                 (SELECT max(g.to_id) FROM pulse.id_gap AS g)),
        (SELECT s.last_value FROM pulse.job_id_seq AS s)),
       ('pulse.flow_id_seq',
        greatest((SELECT max(w.id) FROM pulse.flow AS w),
                 (SELECT max(m.flow_id) FROM pulse.flow_job AS m)),
        (SELECT s.last_value FROM pulse.flow_id_seq AS s)),
       ('pulse.operation_id_seq', (SELECT max(o.id) FROM pulse.operation AS o),
        (SELECT s.last_value FROM pulse.operation_id_seq AS s)),
       ('pulse.token_seq',
        greatest((SELECT max(j.token & own) FROM pulse.job AS j),
                 (SELECT max(a.token & own) FROM pulse.attempt AS a)),
        (SELECT s.last_value FROM pulse.token_seq AS s)),
       ('pulse.worker_id_seq', (SELECT max(w.id & own) FROM pulse.worker AS w),
        (SELECT s.last_value FROM pulse.worker_id_seq AS s))) AS n (sequence, stored, present)
    WHERE n.stored > n.present;
END $$;
COMMENT ON FUNCTION pulse_internal.raise_sequences() IS
  'Raises each sequence of numbers and ids to the highest stored one.';

-- Two servers may make numbers of one epoch, neither knowing of the other: two standbys that are
-- promoted one after the other have the same timeline, and a dump may be restored and adopted
-- twice. So chance sets the numbers apart. No rollback undoes setval(): a sequence moves forward,
-- and begins anew at 2^39 only, in a later epoch.
CREATE OR REPLACE FUNCTION pulse_internal.shift_numbers() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM setval(n.sequence::regclass,
                 1 + (n.last_value + pulse_internal.leap_offset()) % (1::bigint << 39))
     FROM (SELECT 'pulse.token_seq', t.last_value FROM pulse.token_seq AS t
            UNION ALL
           SELECT 'pulse.worker_id_seq', w.last_value FROM pulse.worker_id_seq AS w)
          AS n (sequence, last_value);
END $$;
COMMENT ON FUNCTION pulse_internal.shift_numbers() IS
  'Moves the sequences of tokens and worker ids forward by random numbers below 2^31.';

CREATE OR REPLACE FUNCTION pulse_internal.is_settling() RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN current_setting('pulse.claims')::boolean AND NOT pulse_internal.is_foreign();
COMMENT ON FUNCTION pulse_internal.is_settling() IS
  'Returns whether due times get jobs or counts here.';

CREATE OR REPLACE FUNCTION pulse_internal.restart_schedules() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  UPDATE pulse.schedule AS s
     SET next_due = pulse_internal.due_after(s, greatest(pulse.now(), s.last_due))
   -- The next sweep pauses a schedule whose zone this server lacks.
   WHERE NOT s.paused AND pulse_internal.zone_name(s.time_zone) IS NOT NULL;
  PERFORM pulse_internal.note_schedules();
END $$;
COMMENT ON FUNCTION pulse_internal.restart_schedules() IS
  'Starts every schedule of an adopted copy from now, or from the last settled due time if that '
  'time is later.';

CREATE OR REPLACE FUNCTION pulse.adopt_installation() RETURNS pulse.installation
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  adopted pulse.installation;
  shard int;
BEGIN
  PERFORM pulse_internal.require_read_committed('adopt_installation');
  LOCK TABLE pulse.job, pulse.claim_batch IN ROW EXCLUSIVE MODE;
  PERFORM pulse_internal.lock_numbers();
  PERFORM pulse_internal.raise_sequences();
  SELECT greatest((SELECT max(i.epoch_base + i.timeline) FROM pulse.installation AS i),
                  (SELECT max(n.stored >> 40) FROM pulse_internal.highest_numbers AS n), -1) + 1
    INTO adopted.epoch_base;
  -- Jobs that came without their installation keep the shard of their ids.
  shard := (SELECT pulse_internal.shard_of(s.last_value) FROM pulse.job_id_seq AS s);
  DELETE FROM pulse.installation;
  DELETE FROM pulse.installation_witness;
  INSERT INTO pulse.installation
    (id, system_identifier, database_oid, job_oid, epoch_base, timeline, created_at, id_floor,
     id_ceiling)
  SELECT gen_random_uuid(), t.system_identifier, t.database_oid, t.job_oid, adopted.epoch_base,
         pulse_internal.current_timeline(), pulse.now(), pulse_internal.first_id(shard),
         pulse_internal.first_id(shard + 1) - 2 FROM pulse_internal.this_place AS t
  RETURNING * INTO adopted;
  INSERT INTO pulse.installation_witness (installation_id) VALUES (adopted.id);
  PERFORM pulse_internal.shift_numbers();
  PERFORM pulse_internal.leap_here();
  PERFORM pulse_internal.note_gap();
  -- A copy of the job table alone lacks claim_batch, without which no sweep finds claims in place.
  UPDATE pulse.job AS j SET in_place = false
   WHERE j.id IN (SELECT f.id FROM pulse.job AS f WHERE f.in_place AND f.state = 'running'
                     FOR UPDATE SKIP LOCKED);
  PERFORM pulse_internal.forget_ended(c.worker_id)
     FROM (SELECT DISTINCT f.worker_id FROM pulse.claim_batch AS f) AS c;
  PERFORM pulse_internal.restart_schedules();
  -- A dump leaves the clock behind that counted the tokens of open jobs.
  PERFORM pulse_internal.lock_queue(r.queue_name), pulse_internal.park_open(r.queue_name)
     FROM pulse.queue_rate AS r CROSS JOIN LATERAL pulse_internal.tokens_of(r.queue_name) AS t
    WHERE t.open > t.tokens;
  RAISE LOG 'pg_pulse: the jobs in database % were adopted; tokens count from epoch %',
    adopted.database_oid, adopted.epoch_base;
  RETURN adopted;
END $$;
COMMENT ON FUNCTION pulse.adopt_installation() IS
  'Makes the jobs of a copy jobs of this database, so that workers claim them here, and returns '
  'the new installation. New numbers are above all stored numbers. Make the call also after '
  'restoring data over data, and after DROP SUBSCRIPTION. Raises PU007 outside READ COMMITTED.';
