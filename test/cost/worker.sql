-- What pulse-worker sends for a job, where nothing else is under way that could share a statement:
-- one job at a time, none ahead. More at once is fewer per job; how many fewer, noise decides.
CREATE EXTENSION pg_stat_statements;
CREATE FUNCTION cost.no_op(payload json) RETURNS void
  LANGUAGE sql AS 'SELECT';
SELECT pulse.set_task('function', handler => 'cost.no_op(json)');

CREATE PROCEDURE cost.begin_jobs(task text, count int)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pulse.add_jobs(cost.jobs(count, task));
  COMMIT;
  PERFORM pg_stat_statements_reset();
END $$;

-- Statements of this database since then, without those of this session.
CREATE PROCEDURE cost.note_jobs(task text, jobs numeric)
  LANGUAGE plpgsql AS $$
DECLARE
  prefix text := format('worker_%s_', task);
BEGIN
  ASSERT (SELECT count(*) FROM pulse.job) = 0, 'pulse-worker has run all jobs (make stage)';
  INSERT INTO cost.figure
  SELECT prefix || f.name, f.value
    FROM (SELECT sum(c.calls) FILTER (WHERE c.name = 'claim') AS claims,
                 sum(c.calls) FILTER (WHERE c.name IN ('complete_many', 'perform_job')) AS ends,
                 sum(c.calls) AS calls
            FROM (SELECT s.calls, substring(s.query FROM 'pulse\.(\w+)\(') AS name
                    FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid
                   WHERE d.datname = current_database() AND s.query NOT LIKE '%cost.%') AS c
         ) AS sent,
         LATERAL (VALUES ('claims', claims / jobs), ('ends', ends / jobs),
                         ('others', calls - claims - ends)) AS f (name, value);
END $$;

\setenv PGDATABASE :DBNAME
\set jobs 300
CALL cost.begin_jobs('function', :jobs);
\! timeout 60 pulse-worker --once -c 1 --prefetch 0 --log-level error
CALL cost.note_jobs('function', :jobs);
CALL cost.begin_jobs('executable', :jobs);
\! cp /bin/true "$COST_TASKS/executable"
\! timeout 60 pulse-worker --once -c 1 --prefetch 0 --log-level error --tasks "$COST_TASKS"
CALL cost.note_jobs('executable', :jobs);
