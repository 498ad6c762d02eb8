-- What the owner sets up, once and after each new node. Rights on members of an extension are each
-- node's own, so they are given on each node; nodes that were asked keep them where the caller's
-- transaction rolls back.

CREATE OR REPLACE FUNCTION pulse_citus._private_require_owner(what text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_citus._private_require_coordinator(what);
  IF NOT EXISTS (SELECT FROM pg_extension AS e
                  WHERE e.extname = 'pg_pulse_citus' AND pg_has_role(e.extowner, 'USAGE')) THEN
    RAISE EXCEPTION 'only the owner of pg_pulse_citus may call %', what USING
      ERRCODE = 'insufficient_privilege', HINT = 'Ask a superuser.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_citus._private_require_owner(text) IS
  'Raises 42501 for a caller that does not own the extension, PU003 off the coordinator.';

CREATE OR REPLACE FUNCTION pulse_citus._private_tell(command text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  refused record;
BEGIN
  SELECT * INTO refused FROM pulse_citus._private_ask(command) AS a WHERE NOT a.answers LIMIT 1;
  IF refused.node IS NOT NULL THEN
    RAISE EXCEPTION 'node % (%) refuses: %', refused.groupid, refused.node, refused.answer USING
      ERRCODE = 'PU003', HINT = 'Mend the node, and repeat the call: other nodes keep the change.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_citus._private_tell(text) IS
  'Runs a command on each node, apart from the caller''s transaction. Raises PU003 with the words '
  'of a node that refuses.';

CREATE OR REPLACE FUNCTION pulse_citus._private_take_shard(version text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF version <> pulse_citus._private_version() THEN
    RAISE EXCEPTION 'this node has version % of pg_pulse_citus, and the coordinator %',
      pulse_citus._private_version(), version USING
      ERRCODE = 'PU003', HINT = 'ALTER EXTENSION pg_pulse_citus UPDATE.';
  END IF;
  PERFORM pulse.set_shard(pulse_citus._private_group());
END $$;
COMMENT ON FUNCTION pulse_citus._private_take_shard(text) IS
  'Gives this node the shard of its number in Citus. Raises PU003 where the node has another '
  'shard, has given out ids of another one, or has another version.';

-- The function that Citus hands over, and the table beside whose shards. With NULL as its key the
-- planner of Citus crashes, and the server puts NULL in the place of a STRICT function before, if
-- the function returns no set. The rebalancer moves only tables whose changes can be replicated.
CREATE OR REPLACE FUNCTION pulse_citus._private_make_call("table" regclass) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET client_min_messages = warning SET jit = off AS $$
DECLARE
  key_column CONSTANT name := (
    SELECT column_to_column_name(p.logicalrelid, p.partkey) FROM pg_dist_partition AS p
     WHERE p.logicalrelid = "table");
  key_type CONSTANT regtype := (
    SELECT a.atttypid FROM pg_attribute AS a
     WHERE a.attrelid = "table" AND a.attname = key_column);
BEGIN
  DROP SCHEMA IF EXISTS pulse_colocated CASCADE;
  CREATE SCHEMA pulse_colocated;
  EXECUTE format('CREATE TABLE pulse_colocated.key AS SELECT %I AS shard_key FROM %s WITH NO DATA',
                 key_column, "table");
  ALTER TABLE pulse_colocated.key REPLICA IDENTITY FULL;
  COMMENT ON TABLE pulse_colocated.key IS
    'Has no rows. Its shards are where the jobs of each shard key live.';
  PERFORM create_distributed_table('pulse_colocated.key', 'shard_key',
                                   colocate_with => "table"::text);
  EXECUTE format($call$
    CREATE FUNCTION pulse_colocated.call(shard_key %s, request text[]) RETURNS text[]
      LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $body$
    BEGIN
      RETURN pulse_citus._private_perform(request);
    END $body$ $call$, key_type);
  REVOKE ALL ON FUNCTION pulse_colocated.call FROM PUBLIC;
  COMMENT ON SCHEMA pulse_colocated IS 'Made by pulse_citus.colocate().';
  PERFORM create_distributed_function(
    format('pulse_colocated.call(%s, text[])', key_type)::regprocedure, 'shard_key',
    colocate_with => 'pulse_colocated.key', force_delegation => true);
END $$;
COMMENT ON FUNCTION pulse_citus._private_make_call(regclass) IS
  'Makes the function that Citus hands to the node of a key of this table, and the table that says '
  'where that is.';

CREATE OR REPLACE FUNCTION pulse_citus._private_kinds()
  RETURNS TABLE (role text, kind text)
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT r.rolname::text, k FROM pg_roles AS r, unnest(pulse_internal.kinds_of(r.oid)) AS k
   WHERE NOT r.rolsuper;
$$;
COMMENT ON FUNCTION pulse_citus._private_kinds() IS
  'Returns the kinds that were granted to each role of this node.';

CREATE OR REPLACE FUNCTION pulse_citus._private_check_kind(kind text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF to_regproc('pulse.grant_' || quote_ident(kind)) IS NULL THEN
    RAISE EXCEPTION 'there is no kind of role %', coalesce(quote_literal(kind), 'NULL') USING
      ERRCODE = 'PU004',
      HINT = 'It must be producer, caller, worker, scheduler, operator or observer.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_citus._private_check_kind(text) IS
  'Raises PU004 for a kind of role that there is not.';

-- Citus would hand the grant of a node on to the coordinator, and refuses to.
CREATE OR REPLACE FUNCTION pulse_citus._private_change_right(verb text, kind text, role name)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off SET jit = off AS $$
BEGIN
  EXECUTE format('SELECT pulse.%I($1)', verb || '_' || kind) USING quote_ident(role)::regrole;
END $$;
COMMENT ON FUNCTION pulse_citus._private_change_right(text, text, name) IS
  'Calls pulse.grant_producer(), revoke_producer() and so on, on this node alone.';

CREATE OR REPLACE FUNCTION pulse_citus.grant(kind text, role name) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_citus._private_require_owner('grant()');
  PERFORM pulse_citus._private_check_kind(kind);
  PERFORM pulse_citus._private_tell(
    format('SELECT pulse_citus._private_change_right(%L, %L, %L)', 'grant', kind, role));
  IF pulse_citus._private_table() IS NOT NULL THEN
    EXECUTE format('GRANT USAGE ON SCHEMA pulse_colocated TO %I', role);
    EXECUTE format('GRANT SELECT ON pulse_colocated.key TO %I', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION pulse_colocated.call TO %I', role);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_citus.grant(text, name) IS
  'pulse.grant_producer() and so on for a kind of role (producer, caller, worker, scheduler, '
  'operator, observer), on each node, with the same rights to the functions of pulse_citus. The '
  'nodes keep the rights where the caller''s transaction rolls back. Raises PU004 for an unknown '
  'kind, 42501 unless the caller owns the extension, PU003 where a node refuses.';

CREATE OR REPLACE FUNCTION pulse_citus.revoke(kind text, role name) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pulse_citus._private_require_owner('revoke()');
  PERFORM pulse_citus._private_check_kind(kind);
  PERFORM pulse_citus._private_tell(
    format('SELECT pulse_citus._private_change_right(%L, %L, %L)', 'revoke', kind, role));
END $$;
COMMENT ON FUNCTION pulse_citus.revoke(text, name) IS
  'Takes back the rights of grant(), on each node; raises what grant() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.colocate("table" regclass) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  colocated CONSTANT regclass := pulse_citus._private_table();
  group_of CONSTANT int := (SELECT p.colocationid FROM pg_dist_partition AS p
                             WHERE p.logicalrelid = "table" AND p.partmethod = 'h'
                               AND p.repmodel = 's');
  held record;
BEGIN
  PERFORM pulse_citus._private_require_owner('colocate()');
  IF group_of IS NULL THEN
    RAISE EXCEPTION '% is no table that is distributed by a hash, with one copy of each shard',
      coalesce("table"::text, 'NULL') USING
      ERRCODE = 'PU004', HINT = 'SELECT create_distributed_table(''table'', ''column'') makes one.';
  ELSIF group_of <> (SELECT p.colocationid FROM pg_dist_partition AS p
                      WHERE p.logicalrelid = colocated) THEN
    RAISE EXCEPTION 'jobs live beside the rows of tables that % is not colocated with', "table"
      USING
      ERRCODE = 'PU004',
      HINT = 'Distribute both with colocate_with, or call pulse_citus.uncolocate() first.';
  END IF;
  PERFORM pulse_citus._private_tell(
    format('SELECT pulse_citus._private_take_shard(%L)', pulse_citus._private_version()));
  IF colocated IS NULL THEN
    PERFORM pulse_citus._private_make_call("table");
  END IF;
  FOR held IN SELECT * FROM pulse_citus._private_kinds() LOOP
    PERFORM pulse_citus.grant(held.kind, held.role);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_citus.colocate(regclass) IS
  'Lets jobs live on the node of the row of their shard key, for this table that Citus distributes '
  'by a hash and for all tables colocated with the table, until uncolocate(). Gives each node the '
  'shard of its number, and the rights that roles have on the coordinator. Repeat the call after '
  'citus_add_node(): the new node takes no job before. Raises PU004 for any other table, PU003 '
  'where a node has given out ids of another shard or refuses, 42501 unless the caller owns the '
  'extension.';

CREATE OR REPLACE FUNCTION pulse_citus.uncolocate() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET client_min_messages = warning SET jit = off AS $$
BEGIN
  PERFORM pulse_citus._private_require_owner('uncolocate()');
  DROP SCHEMA IF EXISTS pulse_colocated CASCADE;
END $$;
COMMENT ON FUNCTION pulse_citus.uncolocate() IS
  'Ends colocate(): calls by shard key are refused from then on. Jobs and shards of nodes stay. '
  'Raises 42501 unless the caller owns the extension.';
