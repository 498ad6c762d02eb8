-- Findings of doctor() about work that stands still: pauses, schedules that add no job, a backlog
-- that grows, and attempts that fail.

CREATE OR REPLACE VIEW pulse_internal.pause_findings AS
  WITH pause AS MATERIALIZED (
    SELECT p.queue_name, pg_catalog.min(p.created_at) AS since,
           pg_catalog.min(p.paused_by) AS paused_by,
           pg_catalog.array_agg(p.job_id) FILTER (WHERE p.job_id <> 0) AS ended_ids
      FROM (SELECT q.queue_name, q.job_id, q.created_at, q.paused_by
              FROM pulse.queue_pause AS q WHERE q.is_paused
             UNION ALL
             SELECT q.queue_name, 0, q.updated_at, NULL FROM pulse.queue AS q WHERE q.paused) AS p
     GROUP BY p.queue_name ORDER BY 2 LIMIT 100
  ), asked AS MATERIALIZED (
    SELECT q.name, q.queue_name
      FROM pulse_internal.queues_behind(ARRAY(SELECT p.queue_name FROM pause AS p),
                                        pulse.now()) AS q
  ), behind AS (
    SELECT w.paused_name, d.jobs, d.oldest
      FROM (SELECT DISTINCT a.queue_name FROM asked AS a WHERE a.queue_name IS NOT NULL) AS n
     CROSS JOIN LATERAL pulse_internal.paused_as(n.queue_name) AS w (paused_name)
     CROSS JOIN LATERAL pulse_internal.due_parked(n.queue_name, pulse.now(), 101) AS d
     WHERE d.jobs > 0
  ), paused AS (
    SELECT b.paused_name AS queue_name, pg_catalog.sum(b.jobs) AS jobs,
           pg_catalog.min(b.oldest) AS oldest,
           EXISTS (SELECT FROM asked AS a WHERE a.name = b.paused_name AND a.queue_name IS NULL)
             AS may_be_more
      FROM behind AS b GROUP BY b.paused_name
  )
  SELECT 'paused queue'::text AS finding,
         CASE WHEN p.ended_ids IS NULL THEN 'notice' ELSE 'warning' END AS severity,
         pg_catalog.format('Queue %L is paused%s, and %s jobs wait behind it, the first since %s.',
                           p.queue_name,
                           CASE WHEN p.ended_ids IS NULL THEN pulse_internal.named_pauser(
                                  p.paused_by, 'queue', p.queue_name, p.since)
                             ELSE ' since ' || p.since || ' because of the end of job '
                                  || pulse_internal.names_of(p.ended_ids) END,
                           CASE WHEN w.jobs > 100 THEN 'more than 100'
                             WHEN w.may_be_more THEN 'at least ' || w.jobs
                             ELSE w.jobs::text END,
                           w.oldest) AS detail,
         pg_catalog.format('SELECT pulse.resume_queue(%L), when they are to run.', p.queue_name)
           AS what_to_do
    FROM pause AS p JOIN paused AS w ON w.queue_name = p.queue_name
  UNION ALL
  SELECT * FROM (
    SELECT 'paused schedule', 'notice',
           pg_catalog.format('Schedule %L is paused%s, and adds no jobs.', s.name,
                             pulse_internal.named_pauser(s.paused_by, 'schedule', s.name,
                                                         s.paused_at)),
           pg_catalog.format('SELECT pulse.resume_schedule(%L), or unschedule it.', s.name)
      FROM pulse.schedule AS s WHERE s.paused AND s.gone_at IS NULL
     ORDER BY s.paused_at LIMIT 20) AS s;
COMMENT ON VIEW pulse_internal.pause_findings IS
  'Findings about pauses: of queues with due jobs, counted up to 100, and of schedules. Of a level '
  'the view asks queues as queues_behind() does, and says where there may be more.';

-- A schedule that skips while its job runs does as told; a schedule whose job cannot start skips
-- for ever.
CREATE OR REPLACE VIEW pulse_internal.skip_findings AS
  SELECT 'schedule skips'::text AS finding,
         CASE WHEN s.state = 'running' THEN 'notice' ELSE 'warning' END AS severity,
         pg_catalog.format('Schedule %L has skipped each due time since %s, because its job %s of '
                           'then %s.', s.name, s.since, s.job_id,
                           CASE WHEN s.state = 'running' THEN 'runs' ELSE 'waits' END) AS detail,
         pg_catalog.format('See explain_job(%s). End the job with cancel_job(%1$s), or let the '
                           'schedule add jobs all the same: overlap => ''allow''.', s.job_id)
           AS what_to_do
    FROM (SELECT r.name, j.id AS job_id, j.state, j.since
            FROM pulse.schedule AS r CROSS JOIN LATERAL (
              SELECT o.id, o.state::text AS state, coalesce(o.scheduled_for, o.created_at) AS since
                FROM pulse.job AS o WHERE o.id = r.last_job_id LIMIT 1) AS j
           WHERE r.overlap = 'skip' AND NOT r.paused AND r.overlapped_count >= 3
             AND r.last_due - j.since
                 >= pg_catalog.make_interval(mins => CASE j.state WHEN 'running' THEN 5 ELSE 1 END)
             AND pg_catalog.cardinality(
                   pulse_internal.due_times(r, j.since, r.last_due, 3)) >= 3
           LIMIT 20) AS s;
COMMENT ON VIEW pulse_internal.skip_findings IS
  'Findings about schedules that have added no job for at least three due times.';

CREATE OR REPLACE VIEW pulse_internal.backlog_findings AS
  SELECT 'backlog grows'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('The due jobs that wait have grown for 15 minutes: from %s at %s to %s.',
                           g.jobs_then, g.since, g.jobs_now) AS detail,
         'See in pulse.stats which tasks wait, and why in explain_task(): more workers help where '
         'its answer is that the fleet is full.'::text AS what_to_do
    FROM pulse_internal.backlog_growth(pulse.now()) AS g
   WHERE g.since IS NOT NULL;
COMMENT ON VIEW pulse_internal.backlog_findings IS
  'Findings about due jobs that become more: jobs behind a pause are left out.';

-- Jobs that fail and run again fill no list of failures for a day. Where no server counts, the view
-- has no row.
CREATE OR REPLACE VIEW pulse_internal.failing_findings AS
  WITH task AS (
    SELECT c.name, pg_catalog.sum(c.failed + c.retried + c.quarantined) AS failed,
           pg_catalog.sum(c.completed + c.failed + c.retried + c.quarantined) AS ended
      FROM pulse_internal.counted() AS c
     WHERE c.kind = 'task' AND c.name <> ''
       AND c.began >= pg_catalog.date_bin('10 s', pulse.now() - interval '1 minute',
                                          '2000-01-01 00:00Z')
     GROUP BY c.name
  ), worst AS (
    SELECT t.* FROM task AS t
     WHERE t.failed >= 20 AND t.failed * 2 >= t.ended
     ORDER BY t.failed DESC, t.name LIMIT 10
  )
  SELECT 'attempts fail'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('Of %s attempts of task %L within a minute %s failed%s.', w.ended,
                           w.name, w.failed,
                           ', such as one of job ' || e.job_id || ' with: ' || e.error)
           AS detail,
         'Mend the task or the service behind it. Jobs with attempts left run again by themselves; '
         'failed ones after retry_job().'::text AS what_to_do
    FROM worst AS w LEFT JOIN LATERAL (
      SELECT a.job_id, coalesce(pulse_internal.error_line(a.error), a.outcome) AS error
        FROM (SELECT l.job_id, l.error, l.outcome FROM pulse.attempt AS l
               WHERE l.ended_at > pulse.now() - interval '2 minutes'
               ORDER BY l.ended_at DESC LIMIT 300) AS a
        LEFT JOIN pulse.job AS j ON j.id = a.job_id
        LEFT JOIN pulse.finished_job AS f ON f.id = a.job_id
       WHERE coalesce(j.identifier, f.identifier) = w.name LIMIT 1) AS e ON true;
COMMENT ON VIEW pulse_internal.failing_findings IS
  'Findings about tasks of which at least 20 attempts, and half of all, failed within a minute, '
  'with the error of an attempt among the last 300.';
