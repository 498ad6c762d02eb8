-- How a call reaches the node of its shard key as a part of the caller's transaction. Citus hands a
-- function to the node of an argument: pulse_colocated.call(), which colocate() makes beside a
-- table. Nothing of pulse or pulse_citus is handed over itself: a member of an extension could
-- never be taken back. Citus hands nothing over from a session that Citus opened, and says nothing.
-- So each call names its key, and the node that runs the call checks that it has the key.

CREATE OR REPLACE FUNCTION pulse_citus._private_version() RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN '@VERSION@';
COMMENT ON FUNCTION pulse_citus._private_version() IS
  'Returns the version of the functions of this extension here.';

CREATE OR REPLACE FUNCTION pulse_citus._private_group() RETURNS int
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN (SELECT l.groupid FROM pg_catalog.pg_dist_local_group AS l);
COMMENT ON FUNCTION pulse_citus._private_group() IS
  'Returns the number of this node in Citus, which is the shard of the node''s ids; 0 is the '
  'coordinator.';

-- A table of no rows that colocate() makes: its shards are where the rows of each key are, and it
-- stays where an application drops its own tables. Every producer may read it.
CREATE OR REPLACE FUNCTION pulse_citus._private_table() RETURNS regclass
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN pg_catalog.to_regclass('pulse_colocated.key');
COMMENT ON FUNCTION pulse_citus._private_table() IS
  'Returns the table whose shards say where jobs live; NULL before colocate().';

-- Without a row in installation no shard was set, as pulse_internal.id_bounds says too. The server
-- begins a query with subselects sooner than one that joins three tables.
CREATE OR REPLACE VIEW pulse_citus._private_placement AS
  SELECT p.shardid, p.groupid AS home,
         p.groupid = (SELECT l.groupid FROM pg_catalog.pg_dist_local_group AS l)
           AND p.groupid = coalesce((SELECT i.id_floor >> 44 FROM pulse.installation AS i), 0)
           AS is_here
    FROM pg_catalog.pg_dist_placement AS p;
COMMENT ON VIEW pulse_citus._private_placement IS
  'The node of each shard, and whether this node is the one, with ids of its own shard. Every node '
  'has the same placements: Citus keeps these rows equal.';

-- Each add calls this function first. The server would plan the query anew at each change of
-- search_path, so the function has one of its own. The server would call a volatile function for
-- each row, so the shard has a statement of its own. Errors of Citus are not caught: Citus makes a
-- savepoint on each node of the transaction for each block that catches.
CREATE OR REPLACE FUNCTION pulse_citus._private_is_here(shard_key text) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  colocated CONSTANT regclass := pulse_citus._private_table();
  shard bigint;
  is_here boolean;
BEGIN
  IF shard_key IS NULL THEN
    RAISE EXCEPTION 'a job needs a shard key' USING
      ERRCODE = 'PU004',
      HINT = 'Give the value of the distribution column in the rows that the job is for.';
  ELSIF colocated IS NULL THEN
    RAISE EXCEPTION 'no table has jobs beside its rows' USING
      ERRCODE = 'PU003', HINT = 'SELECT pulse_citus.colocate(''table'') on the coordinator first.';
  END IF;
  shard := get_shard_id_for_distribution_column(colocated, shard_key);
  -- Most calls end here: only a node that has a shard, or had it until a moment ago, has its table.
  IF to_regclass('pulse_colocated.key_' || shard) IS NULL THEN
    RETURN false;
  END IF;
  SELECT p.is_here INTO is_here FROM pulse_citus._private_placement AS p WHERE p.shardid = shard;
  -- A snapshot of before a split sees no placement of the shard.
  RETURN coalesce(is_here, false);
END $$;
COMMENT ON FUNCTION pulse_citus._private_is_here(text) IS
  'Whether this node has a shard key, and gives out ids of its own shard. Raises PU004 for NULL, '
  'PU003 before colocate(), and 22P02 or another error of class 22 for text that is no value of '
  'the key''s type.';

CREATE OR REPLACE FUNCTION pulse_citus._private_text(at timestamptz) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET jit = off AS $$
BEGIN
  RETURN at::text;
END $$;
COMMENT ON FUNCTION pulse_citus._private_text(timestamptz) IS
  'Writes a time so that every session reads the same.';

-- Before anything is done: an id that is taken from a wrong shard would bind the node to the shard.
CREATE OR REPLACE FUNCTION pulse_citus._private_refuse(shard_key text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  home CONSTANT int := (
    SELECT p.home FROM pulse_citus._private_placement AS p
     WHERE p.shardid = (SELECT get_shard_id_for_distribution_column(
                                 pulse_citus._private_table(), shard_key)));
BEGIN
  IF home = pulse_citus._private_group() THEN
    RAISE EXCEPTION 'node % gives out ids of another shard', home USING
      ERRCODE = 'PU003', HINT = 'SELECT pulse_citus.colocate(''table'') on the coordinator again.';
  END IF;
  RAISE EXCEPTION 'Citus did not hand the call over to node %, which has the shard key', home
    USING ERRCODE = 'PU003', DETAIL = format('It runs on node %s.', pulse_citus._private_group()),
    HINT = 'A trigger on a distributed table, and a function that Citus has handed over, call only '
           'for keys of the node on which they run. While rows move, repeat the transaction.';
END $$;
COMMENT ON FUNCTION pulse_citus._private_refuse(text) IS
  'Raises PU003, with the reason why this node takes no call for a shard key.';

-- Arguments come as texts, which the server reads as literals of the types of the arguments. Rows
-- answer as text of their type, a fifth of the work of JSON, or as JSON where they are of no type.
CREATE OR REPLACE FUNCTION pulse_citus._private_perform(request text[]) RETURNS text[]
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres'
  SET jit = off AS $$
DECLARE
  function CONSTANT text := request[3];
  answers text[];
BEGIN
  IF request[1] IS DISTINCT FROM pulse_citus._private_version() THEN
    RAISE EXCEPTION 'this node has version % of pg_pulse_citus, and the caller %',
      pulse_citus._private_version(), request[1] USING
      ERRCODE = 'PU003', HINT = 'Install the same packages on both, and repeat ALTER EXTENSION '
        'pg_pulse_citus UPDATE TO the newer version on the coordinator.';
  ELSIF NOT pulse_citus._private_is_here(request[2]) THEN
    PERFORM pulse_citus._private_refuse(request[2]);
  -- Of the calls that producers make most, the server keeps the plans.
  ELSIF function = 'add_job' THEN
    RETURN ARRAY[pulse.add_job(
      request[4], request[5]::json, request[6], request[7]::timestamptz, request[8]::int,
      request[9], request[10]::int, request[11]::text[], request[12])::text];
  ELSIF function = 'add_jobs' THEN
    RETURN ARRAY(SELECT j::text
                   FROM pulse.add_jobs(request[4]::pulse.job_spec[], request[5]::boolean) AS j);
  END IF;
  EXECUTE format('SELECT array_agg(%s::text) FROM pulse.%I(%s) AS answer',
      CASE WHEN function IN ('add_job_once', 'add_flow', 'ended')
        THEN 'to_json(answer)' ELSE 'answer' END,
      function, (SELECT string_agg(quote_nullable(a.value), ', ' ORDER BY a.n)
                   FROM unnest(request[4:]) WITH ORDINALITY AS a (value, n)))
    INTO answers;
  RETURN answers;
END $$;
COMMENT ON FUNCTION pulse_citus._private_perform(text[]) IS
  'Calls a function of pulse on this node, with the rights of the caller, and returns its rows, '
  'each as text. request: version, shard key, name of the function, arguments. Raises PU003 on '
  'another node than that of the key.';

CREATE OR REPLACE FUNCTION pulse_citus._private_send(
    shard_key text, function text, VARIADIC arguments text[])
  RETURNS text[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  answers text[];
BEGIN
  -- The key is a literal: Citus sees where the key belongs, and the server the key's type.
  EXECUTE format('SELECT * FROM pulse_colocated.call(%L, $1)', shard_key)
    INTO answers
    USING ARRAY[pulse_citus._private_version(), shard_key, function] || arguments;
  RETURN answers;
END $$;
COMMENT ON FUNCTION pulse_citus._private_send(text, text, text[]) IS
  'Calls a function of pulse on another node, that of a shard key, in the caller''s transaction '
  'and with the caller''s rights; returns its rows as texts. Raises PU003 where the call ran '
  'elsewhere.';

CREATE OR REPLACE FUNCTION pulse_citus._private_call(
    shard_key text, function text, VARIADIC arguments text[])
  RETURNS text[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF pulse_citus._private_is_here(shard_key) THEN
    RETURN pulse_citus._private_perform(
      ARRAY[pulse_citus._private_version(), shard_key, function] || arguments);
  END IF;
  RETURN pulse_citus._private_send(shard_key, function, VARIADIC arguments);
END $$;
COMMENT ON FUNCTION pulse_citus._private_call(text, text, text[]) IS
  'Calls a function of pulse on the node of a shard key, this one or another, as _private_send() '
  'does. Raises PU004 for a key that is none.';

CREATE OR REPLACE FUNCTION pulse_citus._private_job(
    shard_key text, function text, VARIADIC arguments text[])
  RETURNS pulse.job
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  answers CONSTANT pulse.job[] :=
    pulse_citus._private_call(shard_key, function, VARIADIC arguments);
BEGIN
  RETURN CASE WHEN answers[1].id IS NOT NULL THEN answers[1] END;
END $$;
COMMENT ON FUNCTION pulse_citus._private_job(text, text, text[]) IS
  'Calls a function of pulse that returns a job, as _private_call() does.';
