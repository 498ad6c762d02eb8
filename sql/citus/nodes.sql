-- What all nodes answer, each by itself. Such a question is no part of the caller's transaction: it
-- sees what has committed. It goes out with the caller's rights, as all questions of Citus do.

CREATE OR REPLACE FUNCTION pulse_citus._private_nodes()
  RETURNS TABLE (groupid int, nodeid int, host text, port int)
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT n.groupid, n.nodeid, n.nodename, n.nodeport FROM pg_dist_node AS n
   WHERE n.noderole = 'primary' AND n.isactive
   UNION ALL
  -- A coordinator that has no shards need not be in the list.
  SELECT 0, 0, current_setting('citus.local_hostname'), current_setting('port')::int
   WHERE pulse_citus._private_group() = 0
     AND NOT EXISTS (SELECT FROM pg_dist_node AS n WHERE n.groupid = 0)
   ORDER BY 1;
$$;
COMMENT ON FUNCTION pulse_citus._private_nodes() IS
  'Returns the nodes that take writes; the number of each is the shard of its ids.';

-- A node that is gone keeps no one waiting: what connects at all connects within a second.
CREATE OR REPLACE FUNCTION pulse_citus._private_ask(command text, groups int[] = NULL)
  RETURNS TABLE (groupid int, node text, answers boolean, answer text)
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET citus.node_connection_timeout = '1s' SET jit = off AS $$
  SELECT n.groupid, format('%s:%s', n.host, n.port), r.success, r.result
    FROM (SELECT array_agg(n.host) AS hosts, array_agg(n.port) AS ports,
                 array_agg(command) AS commands
            FROM pulse_citus._private_nodes() AS n
           WHERE coalesce(n.groupid = ANY (groups), true)) AS a,
         master_run_on_worker(a.hosts, a.ports, a.commands, true) AS r,
         pulse_citus._private_nodes() AS n
   WHERE (n.host, n.port) = (r.node_name, r.node_port)
   ORDER BY 1;
$$;
COMMENT ON FUNCTION pulse_citus._private_ask(text, int[]) IS
  'Returns what each node, or each of these, answers to a command with one row of one column. A '
  'node that does not connect within a second, or raises an error, gives no answer.';

CREATE OR REPLACE FUNCTION pulse_citus.node_of(
    job_id bigint, OUT host text, OUT port int, OUT database text)
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT n.host, n.port, current_database() INTO host, port, database
    FROM pulse_citus._private_nodes() AS n WHERE n.groupid = job_id >> 44;
  IF host IS NULL THEN
    RAISE EXCEPTION 'no node gives out ids like %', coalesce(job_id::text, 'NULL') USING
      ERRCODE = 'PU005', HINT = 'SELECT * FROM pulse_citus.overview() has the nodes.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_citus.node_of(bigint) IS
  'Returns where the job of an id is, or was: for programs that wait for its end, or cancel it. '
  'Raises PU005 for an id that is of no node.';

CREATE OR REPLACE FUNCTION pulse_citus._private_ask_one(job_id bigint, command text) RETURNS json
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  asked record;
BEGIN
  PERFORM pulse_citus.node_of(job_id);
  IF job_id >> 44 = pulse_citus._private_group() THEN
    EXECUTE command INTO asked;
    RETURN asked.answer;
  END IF;
  SELECT * INTO asked FROM pulse_citus._private_ask(command, ARRAY[job_id >> 44]::int[]);
  IF NOT asked.answers THEN
    RAISE EXCEPTION 'node % does not answer: %', asked.node, asked.answer USING
      ERRCODE = CASE WHEN asked.answer LIKE 'ERROR%' THEN 'PU005' ELSE '08006' END,
      HINT = 'SELECT * FROM pulse_citus.doctor() asks all nodes.';
  END IF;
  RETURN asked.answer;
END $$;
COMMENT ON FUNCTION pulse_citus._private_ask_one(bigint, text) IS
  'Returns what the node of a job answers: here in this transaction, elsewhere apart from it. '
  'Raises PU005 for an id that the node or the cluster does not know, 08006 for a node that is '
  'gone.';

CREATE OR REPLACE FUNCTION pulse_citus.get_job(job_id bigint, OUT state text, OUT job json)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  SELECT r.state, r.job INTO state, job
    FROM json_to_record(pulse_citus._private_ask_one(job_id,
           format('SELECT to_json(g) AS answer FROM pulse.get_job(%s) AS g', job_id)))
         AS r (state text, job json);
END $$;
COMMENT ON FUNCTION pulse_citus.get_job(bigint) IS
  'pulse.get_job() on the job''s node. Of another node it sees what has committed. Raises PU005 '
  'for an unknown job, 08006 for a node that does not answer.';

CREATE OR REPLACE FUNCTION pulse_citus.explain_job(job_id bigint)
  RETURNS TABLE (kind text, blocker text, detail text, until timestamptz, job_ids bigint[],
                 worker_ids bigint[])
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 3
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT r.* FROM json_to_recordset(pulse_citus._private_ask_one(job_id,
      format('SELECT coalesce(json_agg(e), ''[]'') AS answer FROM pulse.explain_job(%s) AS e',
             job_id)))
    AS r (kind text, blocker text, detail text, until timestamptz, job_ids bigint[],
          worker_ids bigint[]);
END $$;
COMMENT ON FUNCTION pulse_citus.explain_job(bigint) IS
  'pulse.explain_job() on the job''s node; raises what get_job() raises.';

CREATE OR REPLACE FUNCTION pulse_citus.overview()
  RETURNS TABLE (node text, shard int, trouble text, overview pulse.overview)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT a.node, a.groupid, CASE WHEN NOT a.answers THEN a.answer END,
         CASE WHEN a.answers THEN json_populate_record(NULL::pulse.overview, a.answer::json) END
    FROM pulse_citus._private_ask('SELECT to_json(o) FROM pulse.overview() AS o') AS a;
END $$;
COMMENT ON FUNCTION pulse_citus.overview() IS
  'Returns pulse.overview() of each node, in column overview. A node that does not answer within '
  'a second to connect, or may not be asked, has its words in trouble instead.';

CREATE OR REPLACE FUNCTION pulse_citus.verify()
  RETURNS TABLE (node text, trouble text, promise text, job_id bigint, detail text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT a.node, CASE WHEN NOT a.answers THEN a.answer END, v.promise, v.job_id, v.detail
    FROM pulse_citus._private_ask(
           'SELECT coalesce(json_agg(v), ''[]'') FROM pulse.verify() AS v') AS a
    LEFT JOIN LATERAL json_to_recordset(CASE WHEN a.answers THEN a.answer::json END)
      AS v (promise text, job_id bigint, detail text) ON true;
END $$;
COMMENT ON FUNCTION pulse_citus.verify() IS
  'Returns pulse.verify() of each node: one row without a promise where every promise holds, one '
  'with trouble where the node does not answer.';

CREATE OR REPLACE FUNCTION pulse_citus._private_findings()
  RETURNS TABLE (finding text, severity text, detail text, what_to_do text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 5
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT 'no shard', 'error',
         format('This is node %s, and its ids are of shard %s: calls for its keys are refused.',
                pulse_citus._private_group(), o.shard),
         'SELECT pulse_citus.colocate() with the table again, on the coordinator. Where the node '
         'has given out ids, take it out of the cluster and create pg_pulse on it anew.'
    FROM pulse.overview() AS o WHERE o.shard <> pulse_citus._private_group()
   UNION ALL
  SELECT 'not colocated', 'warning', 'No table has jobs beside its rows.',
         'SELECT pulse_citus.colocate(''table'') on the coordinator.'
   WHERE pulse_citus._private_table() IS NULL
   UNION ALL
  SELECT d.* FROM pulse.doctor() AS d;
END $$;
COMMENT ON FUNCTION pulse_citus._private_findings() IS
  'Returns the findings of pulse.doctor() on this node, and those that a cluster adds.';

CREATE OR REPLACE FUNCTION pulse_citus.doctor()
  RETURNS TABLE (node text, finding text, severity text, detail text, what_to_do text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 20
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
  SELECT a.node, d.finding, d.severity, d.detail, d.what_to_do
    FROM pulse_citus._private_ask('SELECT coalesce(json_agg(f), ''[]'') '
           'FROM pulse_citus._private_findings() AS f') AS a
    LEFT JOIN LATERAL json_to_recordset(CASE WHEN a.answers THEN a.answer::json
      ELSE json_build_array(json_build_object(
             'finding', 'no answer', 'severity', 'error', 'detail', a.answer,
             'what_to_do', 'Start the node''s server; where the words are an error of the server, '
             'give the node pg_pulse and pg_pulse_citus, and this role the observer''s rights.'))
      END) AS d (finding text, severity text, detail text, what_to_do text) ON true;
END $$;
COMMENT ON FUNCTION pulse_citus.doctor() IS
  'Returns the findings of pulse.doctor() on each node, and nodes that do not answer, have no '
  'pg_pulse or give out ids of another shard. A node without a finding has one row of its name '
  'alone.';
