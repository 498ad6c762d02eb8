-- Producers own jobs: a job has a producer, the role that has added it, and producers name their
-- own jobs only. Two roles are one producer where membership joins the roles.

COMMENT ON COLUMN pulse.job.added_by IS
  'The producer of the job: the role that has added it, or that stored its schedule; NULL: every '
  'producer';
COMMENT ON COLUMN pulse.finished_job.added_by IS 'As in pulse.job';
COMMENT ON COLUMN pulse.schedule.added_by IS
  'The role that stored the schedule, and the producer of its jobs; NULL: every producer';

-- Ownership bounds producers only. extension/job/producer.cpp decides.
CREATE OR REPLACE FUNCTION pulse_internal.may_name(added_by text, asking text) RETURNS boolean
  LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_may_name';
COMMENT ON FUNCTION pulse_internal.may_name(text, text) IS
  'Returns whether the producer asking may name the jobs of the producer added_by: both are one '
  'producer, or asking is an operator, a superuser or the owner of pg_pulse, or added_by is NULL.';

CREATE OR REPLACE FUNCTION pulse_internal.refuse_key(job_key text) RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_refuse_key';
COMMENT ON FUNCTION pulse_internal.refuse_key(text) IS
  'Raises 42501 for a job key under which a job of another producer lives.';

-- Before any row of a stranger is locked. The producer of a job never changes.
CREATE OR REPLACE FUNCTION pulse_internal.require_own(ids bigint[]) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  asking CONSTANT text := pulse_internal.asking_role();
  strangers bigint;
BEGIN
  SELECT min(k.id) INTO strangers
    FROM (SELECT j.id, j.added_by FROM pulse.job AS j WHERE j.id = ANY (ids)
          UNION ALL
          SELECT f.id, f.added_by FROM pulse.finished_job AS f WHERE f.id = ANY (ids)) AS k
   WHERE k.added_by <> asking AND NOT pulse_internal.may_name(k.added_by, asking);
  IF strangers IS NOT NULL THEN
    PERFORM pulse_internal.raise_unknown_job(strangers);
  END IF;
END $$;
COMMENT ON FUNCTION pulse_internal.require_own(bigint[]) IS
  'Raises PU005 where one of these jobs, live or kept, belongs to another producer than the '
  'caller. Locks no row.';

-- Rows of before the update have the lowest ids, so the oldest jobs tell of all.
CREATE OR REPLACE VIEW pulse_internal.producer_findings AS
  WITH oldest AS MATERIALIZED (
    SELECT j.added_by FROM pulse.job AS j ORDER BY j.id LIMIT 1000
  ), unowned AS (
    SELECT pg_catalog.count(*) AS jobs FROM oldest AS o WHERE o.added_by IS NULL
  ), orphaned AS (
    SELECT o.added_by, pg_catalog.count(*) AS jobs FROM oldest AS o
     WHERE o.added_by IS NOT NULL
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = o.added_by)
     GROUP BY o.added_by
  )
  SELECT 'jobs without a producer'::text AS finding, 'notice'::text AS severity,
         pg_catalog.format('%s of the 1,000 oldest jobs that have not ended were added before '
                           'jobs had producers: every producer may replace and remove them.',
                           u.jobs) AS detail,
         'Nothing: they end. Jobs that are added now belong to the role that adds them.'::text
           AS what_to_do
    FROM unowned AS u WHERE u.jobs > 0
  UNION ALL
  SELECT 'producer without a role', 'notice',
         pg_catalog.format('Role %s, which added %s of the 1,000 oldest jobs that have not ended, '
                           'does not exist: no producer may replace or remove them.',
                           pg_catalog.quote_ident(o.added_by), o.jobs),
         pg_catalog.format('Create the role, or UPDATE pulse.job SET added_by = ''ROLE'' WHERE '
                           'added_by = %L, as the owner of pg_pulse.', o.added_by)
    FROM orphaned AS o;
COMMENT ON VIEW pulse_internal.producer_findings IS 'Findings about the producers of jobs.';
