-- Jobs as readers of Graphile Worker know them: waiting jobs, running jobs, which Graphile Worker
-- calls locked, and jobs that failed for good, which Graphile Worker keeps among the others.

CREATE TYPE graphile_worker.job_spec AS (
  identifier   text,
  payload      json,
  queue_name   text,
  run_at       timestamptz,
  max_attempts smallint,
  job_key      text,
  priority     smallint,
  flags        text[]
);
COMMENT ON TYPE graphile_worker.job_spec IS 'A job that add_jobs adds.';

-- pg_pulse knows tasks and queues by name. Readers join on numbers, so each name has a number. The
-- function says no search_path, so that the planner inlines its body.
CREATE OR REPLACE FUNCTION graphile_worker._private_id(name text) RETURNS int
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.hashtext(name COLLATE "C") & 2147483647;
$$;
COMMENT ON FUNCTION graphile_worker._private_id(text) IS
  'Returns the number that stands for the name of a task or of a queue: 31 bits of the name''s '
  'hash.';

CREATE OR REPLACE FUNCTION graphile_worker._private_flags(flags text[]) RETURNS jsonb
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT jsonb_object_agg(f.flag, true) FROM unnest(flags) AS f (flag));
END $$;
COMMENT ON FUNCTION graphile_worker._private_flags(text[]) IS
  'Returns flags as an object with a key for each; NULL for none.';

-- A key belongs to a single job: the view shows jobs that failed for good without a key, and also
-- running jobs that have lost their key. Keys of waiting and of running jobs are in two indexes, so
-- the view reads both parts of the table.
CREATE VIEW graphile_worker._private_known_jobs AS
  SELECT j.id, j.identifier, j.queue_name, j.payload, j.priority, j.run_at, j.attempts,
         CASE WHEN s.job_id IS NULL THEN j.max_attempts ELSE j.attempts END AS max_attempts,
         j.last_error, j.created_at, j.updated_at,
         CASE WHEN s.job_id IS NULL THEN j.job_key END AS key,
         CASE WHEN j.state = 'running' THEN j.claimed_at END AS locked_at,
         CASE WHEN j.state = 'running' THEN coalesce(w.name, j.worker_id::text) END AS locked_by,
         j.revision, CASE WHEN j.flags IS NOT NULL
                       THEN graphile_worker._private_flags(j.flags) END AS flags
    FROM (SELECT * FROM pulse.job AS waiting WHERE waiting.index_lane IN ('o', 'p', 'w')
          UNION ALL
          SELECT * FROM pulse.job AS running WHERE running.index_lane IN ('r', 'k')) AS j
    LEFT JOIN pulse.worker AS w ON w.id = j.worker_id AND j.state = 'running'
    LEFT JOIN pulse.superseded_job AS s ON s.job_key = j.job_key AND s.job_id = j.id
  UNION ALL
  SELECT f.id, f.identifier, f.queue_name, f.payload, f.priority, f.run_at, f.max_attempts,
         f.max_attempts, f.last_error, f.created_at, f.finished_at, NULL, NULL, NULL, f.revision,
         CASE WHEN f.flags IS NOT NULL THEN graphile_worker._private_flags(f.flags) END
    FROM pulse.finished_job AS f
   WHERE f.state IN ('failed', 'quarantined');
COMMENT ON VIEW graphile_worker._private_known_jobs IS
  'For the other views: live jobs, and jobs that failed for good, without attempts and key.';

CREATE VIEW graphile_worker._private_jobs AS
  SELECT k.id, graphile_worker._private_id(k.queue_name) AS job_queue_id,
         graphile_worker._private_id(k.identifier) AS task_id, k.payload, k.priority, k.run_at,
         k.attempts, k.max_attempts, k.last_error, k.created_at, k.updated_at, k.key, k.locked_at,
         k.locked_by, k.revision, k.flags,
         k.locked_at IS NULL AND k.attempts < k.max_attempts AS is_available
    FROM graphile_worker._private_known_jobs AS k;
COMMENT ON VIEW graphile_worker._private_jobs IS
  'The jobs in the shape of Graphile Worker''s table. DELETE deletes jobs that failed for good.';

-- An error may quote a payload, so a role sees the error only if it may read the jobs.
CREATE VIEW graphile_worker.jobs AS
  SELECT k.id, k.queue_name, k.identifier AS task_identifier, k.priority, k.run_at, k.attempts,
         k.max_attempts,
         CASE WHEN (SELECT pg_catalog.has_table_privilege('pulse.job', 'SELECT'))
           THEN k.last_error END AS last_error,
         k.created_at, k.updated_at, k.key, k.locked_at, k.locked_by, k.revision, k.flags
    FROM graphile_worker._private_known_jobs AS k;
COMMENT ON VIEW graphile_worker.jobs IS
  'The jobs without payloads. last_error is NULL for a role that may not read pulse.job.';

CREATE VIEW graphile_worker._private_tasks AS
  SELECT graphile_worker._private_id(n.identifier) AS id, n.identifier
    FROM (SELECT k.identifier FROM graphile_worker._private_known_jobs AS k
          UNION
          SELECT t.identifier FROM pulse.task AS t) AS n;
COMMENT ON VIEW graphile_worker._private_tasks IS
  'The tasks of jobs or settings. DELETE leaves the rows: pg_pulse stores no names.';

-- A queue that runs several jobs at once shows the job that has run longest.
CREATE VIEW graphile_worker._private_job_queues AS
  SELECT graphile_worker._private_id(q.queue_name) AS id, q.queue_name, q.locked_at, q.locked_by,
         q.locked_at IS NULL AS is_available
    FROM (SELECT n.queue_name, pg_catalog.min(n.locked_at) AS locked_at,
                 (pg_catalog.array_agg(n.locked_by ORDER BY n.locked_at, n.id)
                   FILTER (WHERE n.locked_at IS NOT NULL))[1] AS locked_by
            FROM (SELECT k.queue_name, k.locked_at, k.locked_by, k.id
                    FROM graphile_worker._private_known_jobs AS k
                   WHERE k.queue_name IS NOT NULL
                  UNION ALL
                  SELECT s.queue_name, NULL, NULL, NULL FROM pulse.queue AS s
                   WHERE pg_catalog.strpos(s.queue_name, '*') = 0) AS n
           GROUP BY n.queue_name) AS q;
COMMENT ON VIEW graphile_worker._private_job_queues IS
  'The queues of jobs or settings. DELETE leaves the rows: pg_pulse stores no names.';

CREATE VIEW graphile_worker._private_known_crontabs AS
  SELECT s.name AS identifier, s.created_at AS known_since, s.last_due AS last_execution
    FROM pulse.schedule AS s
   WHERE s.crontab_set IS NOT NULL AND s.gone_at IS NULL;
COMMENT ON VIEW graphile_worker._private_known_crontabs IS
  'The items of crontabs that pulse-worker has loaded.';

-- Clients check here whether the schema is complete, before they add a job.
CREATE VIEW graphile_worker.migrations AS
  SELECT n AS id, timestamptz 'epoch' AS ts,
         n IN (1, 3, 11, 13, 14, 16, 19) AS breaking
    FROM pg_catalog.generate_series(1, 20) AS n;
COMMENT ON VIEW graphile_worker.migrations IS
  'The migrations of Graphile Worker 0.18, so that clients find the schema complete.';
