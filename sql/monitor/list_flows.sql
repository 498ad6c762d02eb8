-- Flows page by page, and the jobs of a flow: at a bounded cost, however large a flow is.

CREATE OR REPLACE FUNCTION pulse_internal.parents_on_record(job_id bigint, parents json)
  RETURNS bigint[]
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(array_agg(p.id ORDER BY p.id), '{}') FROM (
    SELECT unnest(d.parents) FROM pulse.dependency AS d
     WHERE d.child_id = parents_on_record.job_id
    UNION
    SELECT (e.parent ->> 'id')::bigint FROM json_array_elements(parents) AS e (parent)) AS p (id);
$$;
COMMENT ON FUNCTION pulse_internal.parents_on_record(bigint, json) IS
  'Returns the parents that a job waits for, and the parents whose ends the job was given.';

-- An index tells how many jobs a flow has. The states of the jobs cost a lookup of each job, so all
-- flows together get max_checks lookups, small flows first.
CREATE OR REPLACE FUNCTION pulse.list_flows(before bigint = NULL, max_rows int = 50)
  RETURNS TABLE (id bigint, name text, created_at timestamptz, jobs bigint, jobs_checked bigint,
                 waiting bigint, running bigint, completed bigint, failed bigint, cancelled bigint,
                 last_finished_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 50
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  max_jobs CONSTANT int := 10000;
  max_checks CONSTANT int := 400;
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  RETURN QUERY
  WITH sized AS MATERIALIZED (
    SELECT w.id, w.name, w.created_at, s.jobs,
           sum(s.jobs) OVER (ORDER BY s.jobs, w.id DESC) - s.jobs AS jobs_before
      FROM (SELECT * FROM pulse.flow AS f
             WHERE f.id < coalesce(list_flows.before, 9223372036854775807)
             ORDER BY f.id DESC LIMIT max_rows) AS w
     CROSS JOIN LATERAL (
       SELECT count(*) AS jobs FROM (
         SELECT FROM pulse.flow_job AS m WHERE m.flow_id = w.id LIMIT max_jobs) AS l) AS s
  )
  SELECT z.id, z.name, z.created_at, z.jobs, c.*
    FROM sized AS z
   CROSS JOIN LATERAL (
     SELECT count(*), count(*) FILTER (WHERE l.fate = 'waiting'),
            count(*) FILTER (WHERE l.fate = 'running'),
            count(*) FILTER (WHERE l.fate = 'completed'),
            count(*) FILTER (WHERE l.fate = 'failed'),
            count(*) FILTER (WHERE l.fate = 'cancelled'), max(l.finished_at)
       FROM (SELECT m.fate, m.finished_at FROM pulse_internal.flow_member AS m
              WHERE m.flow_id = z.id LIMIT greatest(max_checks - z.jobs_before, 5)) AS l) AS c
   ORDER BY z.id DESC;
END $$;
COMMENT ON FUNCTION pulse.list_flows(bigint, int) IS
  'Returns the newest flows with ids below before, at most max_rows (1 to 1000), at a bounded '
  'cost, however large the flows are: jobs is counted up to 10,000, and the columns behind '
  'jobs_checked tell of so many jobs. The view flows counts all jobs. Raises PU004 for max_rows '
  'out of range.';

CREATE OR REPLACE FUNCTION pulse.flow_jobs(flow_id bigint, max_rows int = 100)
  RETURNS TABLE (job_id bigint, key text, identifier text, state text, parents bigint[],
                 run_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  RETURN QUERY
  SELECT m.job_id, m.key, coalesce(j.identifier, f.identifier),
         coalesce(j.state::text, f.state::text, 'completed'),
         ARRAY(SELECT p.id FROM unnest(m.parents) AS p (id) UNION
               SELECT o.id FROM unnest(pulse_internal.parents_on_record(
                 m.job_id, coalesce(j.parents, f.parents))) AS o (id) ORDER BY 1),
         coalesce(j.run_at, f.run_at)
    FROM (SELECT o.* FROM pulse.flow_job AS o WHERE o.flow_id = flow_jobs.flow_id
           ORDER BY o.job_id LIMIT max_rows) AS m
    LEFT JOIN pulse.job AS j ON j.id = m.job_id
    LEFT JOIN pulse.finished_job AS f ON f.id = m.job_id
   ORDER BY m.job_id;
END $$;
COMMENT ON FUNCTION pulse.flow_jobs(bigint, int) IS
  'Returns the jobs of a flow in order of the ids, at most max_rows (1 to 1000). A job that no '
  'longer has a row is completed, and its identifier and run_at are NULL. parents: the ids of the '
  'jobs after which add_flow and add_dependency put the job (the first 100), of the jobs that it '
  'waits for, and of the parents whose ends were on record when the job started. Raises PU004 for '
  'max_rows out of range.';
COMMENT ON COLUMN pulse.flow_job.parents IS
  'The first 100 jobs after which add_flow and add_dependency put the job; NULL without any';
