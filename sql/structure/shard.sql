-- Shards: of several databases that work side by side each has a shard, and ids of its own. An id
-- is the shard above 44 bits, and the 44 bits count from 1. A database alone has shard 0. Every id
-- is below 2^53, so each program reads the id exactly.

CREATE OR REPLACE FUNCTION pulse_internal.shard_of(id bigint) RETURNS int
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_shard_of';
COMMENT ON FUNCTION pulse_internal.shard_of(bigint) IS 'Returns the shard of an id.';

CREATE OR REPLACE FUNCTION pulse_internal.first_id(shard int) RETURNS bigint
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_first_id';
COMMENT ON FUNCTION pulse_internal.first_id(int) IS
  'Returns the least id of a shard. The greatest is two below the least of the next shard.';

CREATE OR REPLACE VIEW pulse_internal.id_bounds AS
  SELECT b.id_floor, b.id_ceiling, pulse_internal.shard_of(b.id_floor) AS shard
    FROM (SELECT coalesce(pg_catalog.min(i.id_floor), pulse_internal.first_id(0)) AS id_floor,
                 coalesce(pg_catalog.max(i.id_ceiling), pulse_internal.first_id(1) - 2)
                   AS id_ceiling
            FROM pulse.installation AS i) AS b;
COMMENT ON VIEW pulse_internal.id_bounds IS
  'The least and the greatest id of this database''s shard, and the shard.';

CREATE OR REPLACE FUNCTION pulse_internal.record_installation() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_record_installation';
COMMENT ON FUNCTION pulse_internal.record_installation() IS
  'Writes the row of the installation, as the first token or worker id does.';

CREATE OR REPLACE FUNCTION pulse_internal.follow_server() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_follow_server';
COMMENT ON FUNCTION pulse_internal.follow_server() IS
  'Updates the row of the installation after a failover or an upgrade of the server, unless '
  'another transaction locks the row.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_ids() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_ids';
COMMENT ON FUNCTION pulse_internal.lock_ids() IS
  'Locks the sequences of ids until the transaction ends: no other transaction takes an id. Waits '
  'for transactions that have taken one.';

CREATE OR REPLACE FUNCTION pulse_internal.require_no_ids() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  shard int := (SELECT b.shard FROM pulse_internal.id_bounds AS b);
BEGIN
  IF shard <> 0 THEN
    RAISE EXCEPTION 'this database has shard %', shard USING
      ERRCODE = 'PU003', HINT = 'A shard is set once: ids name their shard for ever.';
  ELSIF (SELECT s.is_called FROM pulse.job_id_seq AS s)
        OR (SELECT s.is_called FROM pulse.flow_id_seq AS s)
        OR (SELECT s.is_called FROM pulse.operation_id_seq AS s) THEN
    RAISE EXCEPTION 'ids of shard 0 were given out here' USING
      ERRCODE = 'PU003',
      HINT = 'Let this database keep shard 0, and give other shards to new databases.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.require_no_ids() IS
  'Raises PU003 where this database has a shard, or has given out ids.';

-- No rollback undoes setval(), so the sequences begin anew: that change is undone with the row. A
-- leap later in the same transaction must be undone as a whole too, so the notes of leaps get files
-- of this transaction as well, with the values of before.
CREATE OR REPLACE FUNCTION pulse.set_shard(shard int) RETURNS pulse.installation
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  what text;
  installation pulse.installation;
BEGIN
  IF shard IS NULL OR shard NOT BETWEEN 0 AND 511 THEN
    RAISE EXCEPTION 'shard is %', coalesce(shard::text, 'NULL') USING
      ERRCODE = 'PU004', HINT = 'It must be 0 to 511.';
  END IF;
  PERFORM pulse_internal.refuse_standby('set_shard()');
  PERFORM pulse_internal.require_read_committed('set_shard');
  IF shard <> (SELECT b.shard FROM pulse_internal.id_bounds AS b) THEN
    PERFORM pulse_internal.require_no_ids();
    PERFORM pulse_internal.lock_numbers();
    PERFORM pulse_internal.lock_ids();
    PERFORM pulse_internal.require_no_ids();
    IF pulse_internal.is_foreign() THEN
      RAISE EXCEPTION 'this copy has not been adopted' USING
        ERRCODE = 'PU008', HINT = 'SELECT pulse.adopt_installation() first.';
    END IF;
    PERFORM pulse_internal.record_installation();
    FOREACH what IN ARRAY '{job,flow,operation}'::text[] LOOP
      EXECUTE format('ALTER SEQUENCE pulse.%I RESTART WITH %s', what || '_id_seq',
                     pulse_internal.first_id(shard));
    END LOOP;
    FOREACH what IN ARRAY '{id_place,gap_from,gap_to,gap_at}'::text[] LOOP
      EXECUTE format('ALTER SEQUENCE pulse.%I INCREMENT 1', what || '_seq');
    END LOOP;
    UPDATE pulse.installation AS i
       SET id_floor = pulse_internal.first_id(shard),
           id_ceiling = pulse_internal.first_id(shard + 1) - 2;
  END IF;
  SELECT i.* INTO installation FROM pulse.installation AS i LIMIT 1;
  RETURN installation;
END $$;
COMMENT ON FUNCTION pulse.set_shard(int) IS
  'Gives this database a shard, 0 to 511, before its first id: all ids of jobs, flows and '
  'operations are shard * 2^44 + n. A database alone has shard 0. The same shard again changes '
  'nothing. Waits for transactions that take ids. Raises PU003 where the database has another '
  'shard or has given out ids, PU004 for a value out of range, PU007 outside READ COMMITTED, '
  'PU008 in a copy before adopt_installation(), 25006 on a standby.';
