-- Which installation the jobs belong to: a copy hands out none until somebody adopts it. The row is
-- written, judged and kept up to date in extension/install/installation.cpp.

CREATE OR REPLACE FUNCTION pulse._installation_standing() RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_installation_standing';
COMMENT ON FUNCTION pulse._installation_standing() IS
  'unused (no number made yet), ours, moved (the same tables under another server: adopted at the '
  'next number) or copy (claims are refused)';

CREATE OR REPLACE FUNCTION pulse._lock_numbers() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_numbers';
COMMENT ON FUNCTION pulse._lock_numbers() IS
  'until the transaction ends nobody else makes a token or a worker id; waits for who has';

-- Reads every kept job: for the first use and for an adoption.
CREATE OR REPLACE VIEW pulse._highest_numbers AS
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
COMMENT ON VIEW pulse._highest_numbers IS
  'the highest stored token and worker id, and what their sequences give next';

-- 0 in a new database, and in one in which 0.1.0 made what is stored; with jobs that 0.1.0 dumped
-- on a later timeline, or that came without its sequences, above all of them.
CREATE OR REPLACE FUNCTION pulse._first_epoch_base(timeline int) RETURNS int
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(max(CASE WHEN n.stored >= (timeline::bigint << 40 | n.next)
                        THEN (n.stored >> 40) + 1 END), 0)::int
    FROM pulse._highest_numbers AS n;
$$;
COMMENT ON FUNCTION pulse._first_epoch_base(int) IS
  'the least epoch_base with which each new number is above all stored ones';

CREATE OR REPLACE FUNCTION pulse.adopt_installation() RETURNS pulse.installation
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  adopted pulse.installation;
BEGIN
  PERFORM pulse._require_read_committed('adopt_installation');
  PERFORM pulse._lock_numbers();
  SELECT greatest((SELECT max(i.epoch_base + i.timeline) FROM pulse.installation AS i),
                  (SELECT max(n.stored >> 40) FROM pulse._highest_numbers AS n), -1) + 1
    INTO adopted.epoch_base;
  DELETE FROM pulse.installation;
  DELETE FROM pulse.installation_witness;
  INSERT INTO pulse.installation
    (id, system_identifier, database_oid, job_oid, epoch_base, timeline, created_at)
  SELECT gen_random_uuid(), s.system_identifier, d.oid, 'pulse.job'::regclass, adopted.epoch_base,
         pulse._current_timeline(), pulse.now()
    FROM pg_control_system() AS s, pg_database AS d WHERE d.datname = current_database()
  RETURNING * INTO adopted;
  INSERT INTO pulse.installation_witness (installation_id) VALUES (adopted.id);
  -- A copy of the jobs alone lacks the list of claims in place, without which no sweep finds them.
  UPDATE pulse.job AS j SET in_place = false
   WHERE j.id IN (SELECT f.id FROM pulse.job AS f WHERE f.in_place AND f.state = 'running'
                     FOR UPDATE SKIP LOCKED);
  PERFORM pulse._forget_ended(c.worker_id)
     FROM (SELECT DISTINCT f.worker_id FROM pulse.claim_batch AS f) AS c;
  RAISE LOG 'pg_pulse: the jobs in database % were adopted; tokens count from epoch %',
    adopted.database_oid, adopted.epoch_base;
  RETURN adopted;
END $$;
COMMENT ON FUNCTION pulse.adopt_installation() IS
  'makes the jobs of a copy this database''s own, so that they are claimed here; the new tokens '
  'and worker ids are above all that are stored. Also after data was restored over data. PU007 '
  'outside READ COMMITTED';
