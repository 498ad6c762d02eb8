-- Every table and view, read and changed by every kind of role.
\ir support/setup.psql
SELECT plan(2);

CREATE ROLE pulse_p;
CREATE ROLE pulse_w;
CREATE ROLE pulse_o;
CREATE ROLE pulse_b;
CREATE ROLE pulse_s;
CREATE ROLE pulse_c;
CREATE ROLE pulse_n;
SELECT pulse.grant_producer('pulse_p'), pulse.grant_worker('pulse_w'),
       pulse.grant_operator('pulse_o'), pulse.grant_observer('pulse_b'),
       pulse.grant_scheduler('pulse_s'), pulse.grant_caller('pulse_c') \g /dev/null

-- Letters: p producer, w worker, o operator, b observer, s scheduler, c caller; no letter: the
-- owner alone.
-- Who reads, and who inserts, updates or deletes.
CREATE TEMP TABLE relation_grid (relation text, readers text, changers text);
COPY relation_grid FROM stdin WITH (DELIMITER '|');
attempt             |o |
counter             |o |
dependency          |o |
finished_job        |o |
flow                |o |
flow_job            |o |
heartbeat           |o |
id_gap              |o |
idempotency_key     |o |
installation        |o |
job                 |o |
operation           |o |
operation_job       |o |
queue               |o |
queue_pause         |o |
queue_rate          |o |
remembered_key      |o |
schedule            |o |
superseded_job      |o |
task                |o |
worker              |o |
ended_by_hour       |ob|
ended_jobs          |ob|
flows               |ob|
operations          |ob|
overview            |ob|
queue_rates         |ob|
queue_settings      |ob|
task_rates          |ob|
task_settings       |ob|
queue_status        |ob|
running_jobs        |ob|
schedules           |obs|
settings            |ob|
stale               |ob|
stats               |ob|
unserved            |ob|
waiting_for         |ob|
worker_status       |ob|
claim_batch         |  |
clock               |  |
installation_witness|  |
\.
UPDATE relation_grid SET relation = btrim(relation), readers = btrim(readers),
  changers = btrim(changers);
-- Views and sequences without a line are internal.
CREATE TEMP VIEW found_relation AS
  SELECT c.oid::regclass AS relation, c.relname::text AS name, l.letter, v.verb,
         -- The server refuses changes of most views before it looks at rights.
         CASE WHEN c.relkind = 'v' AND v.verb <> 'SELECT'
           THEN has_table_privilege('pulse_' || l.letter, c.oid, v.verb)
           ELSE NOT EXISTS (
             SELECT FROM refusal_of(format(v.statement, c.oid::regclass, quote_ident(a.attname)),
                                    'pulse_' || l.letter) AS f
              WHERE f.code = '42501') END AS may
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = 1,
         unnest('{p,w,o,b,s,c,n}'::text[]) AS l (letter),
         unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS w (verb),
         LATERAL (SELECT w.verb, CASE w.verb
           WHEN 'SELECT' THEN 'SELECT max(r::text) FROM %1$s AS r'
           WHEN 'INSERT' THEN 'INSERT INTO %1$s DEFAULT VALUES RETURNING NULL::text'
           WHEN 'UPDATE' THEN 'UPDATE %1$s SET %2$s = DEFAULT WHERE false RETURNING NULL::text'
           ELSE 'DELETE FROM %1$s WHERE false RETURNING NULL::text' END AS statement) AS v
   WHERE n.nspname IN ('pulse', 'pulse_internal') AND c.relkind IN ('r', 'v', 'm', 'p', 'f');
SELECT is_empty(
  $$SELECT f.relation, f.letter, f.verb, f.may FROM found_relation AS f
      LEFT JOIN relation_grid AS g ON g.relation = f.name
     WHERE f.may <> (strpos(coalesce(CASE f.verb WHEN 'SELECT' THEN g.readers ELSE g.changers END,
                                     ''), f.letter) > 0)$$,
  'each kind of role reads the tables and views of the grid, and changes none');
SELECT is_empty(
  $$SELECT c.relname FROM pg_class AS c
     WHERE c.relnamespace = 'pulse'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname !~ '^_'
    EXCEPT SELECT relation FROM relation_grid$$,
  'no table or view is missing there');

SELECT * FROM finish();
ROLLBACK;
