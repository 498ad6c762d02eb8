-- sql/monitor/due.sql: the walk that tells which waiting jobs of a task or queue are due.
\ir support/setup.psql
SELECT plan(17);

TRUNCATE pulse.job;
SELECT pulse.now() AS moment \gset

-- Jobs of every mix: one priority and many, few jobs and more than the walk steps over, with jobs
-- that are gone or claimed in place between the others.
INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'task ' || n % 12, n / 7 % (n % 12 + 1) * (n % 3),
       :'moment'::timestamptz + interval '1 s' * (n * 7919 % 600 - 400)
  FROM generate_series(1, 4000) AS n;
INSERT INTO pulse.job (identifier, queue_name, state, priority, run_at)
SELECT 'queued', 'queue ' || n * n % 97, 'parked', n % 3,
       :'moment'::timestamptz + interval '1 s' * (n * 7919 % 600 - 400)
  FROM generate_series(1, 1500) AS n;
DELETE FROM pulse.job WHERE id % 7 = 0;
SELECT pulse.register_worker('w', '{task 5}') AS worker \gset
SELECT count(*) FROM pulse.claim((:'worker'::pulse.worker).id, 60) \g /dev/null

-- What the walk must tell, from all jobs: of each priority in turn what is left of the share, and
-- one job at least.
CREATE FUNCTION truth(of_kind text, name text, moment timestamptz, share bigint,
    OUT due bigint, OUT future bigint, OUT oldest timestamptz, OUT next_due timestamptz,
    OUT more_due boolean, OUT more_future boolean)
  LANGUAGE plpgsql AS $$
DECLARE
  part record;
BEGIN
  due := 0;
  future := 0;
  more_due := false;
  more_future := false;
  FOR part IN
    SELECT count(*) FILTER (WHERE j.run_at <= moment) AS due,
           count(*) FILTER (WHERE j.run_at > moment) AS future,
           min(j.run_at) FILTER (WHERE j.run_at <= moment) AS oldest,
           min(j.run_at) FILTER (WHERE j.run_at > moment) AS next_due
      FROM pulse.job AS j
     WHERE CASE of_kind WHEN 'task' THEN j.identifier = truth.name AND j.state = 'ready'
             ELSE j.queue_name = truth.name AND j.state = 'parked' END
     GROUP BY j.priority ORDER BY j.priority
  LOOP
    more_due := more_due OR part.due > greatest(share - due, 1);
    more_future := more_future OR part.future > greatest(share - future, 1);
    due := due + least(part.due, greatest(share - due, 1));
    future := future + least(part.future, greatest(share - future, 1));
    oldest := least(oldest, part.oldest);
    next_due := least(next_due, part.next_due);
  END LOOP;
END $$;
CREATE FUNCTION names_of(of_kind text) RETURNS text[]
  LANGUAGE sql AS $$
  SELECT CASE of_kind WHEN 'task' THEN array_agg(DISTINCT j.identifier)
           ELSE array_agg(DISTINCT j.queue_name) FILTER (WHERE j.state = 'parked') END
    FROM pulse.job AS j
$$;
CREATE FUNCTION wrong_names(of_kind text, share bigint, moment timestamptz) RETURNS SETOF text
  LANGUAGE sql AS $$
  SELECT c.name
    FROM pulse_internal.count_due(of_kind, names_of(of_kind), NULL, moment, share, share) AS c
   CROSS JOIN LATERAL truth(of_kind, c.name, moment, coalesce(share, 10000)) AS t
   WHERE (c.due, c.future, c.oldest, c.next_due)
           IS DISTINCT FROM (t.due, t.future, t.oldest, t.next_due)
      OR c.more_due < t.more_due OR c.more_future < t.more_future
$$;
SELECT is_empty(format('SELECT wrong_names(%L, %L, %L)', k, s, :'moment'),
                format('each %s has its numbers within a share of %s', k, coalesce(s, 'all')))
  FROM unnest('{task,queue}'::text[]) AS k, unnest('{1,3,20,1000,NULL}'::text[]) AS s;

SELECT is((SELECT sum(c.soon) FROM pulse_internal.count_due(
    'task', names_of('task'), NULL, :'moment', NULL, NULL) AS c)::bigint,
  (SELECT count(*) FROM pulse.job WHERE state = 'ready' AND run_at > :'moment'
      AND run_at <= :'moment'::timestamptz + interval '1 min'),
  'jobs that fall due within a minute are told');

-- --- bounds --------------------------------------------------------------------------------------

INSERT INTO pulse.job (identifier, priority, run_at)
SELECT 'steps', p, :'moment'::timestamptz - interval '1 h' FROM generate_series(1, 100) AS p;
SELECT answers(format('SELECT c.due, c.more_due FROM pulse_internal.count_due(
    ''task'', ''{steps}'', NULL, %L, 1, 1) AS c', :'moment'), ROW(21, true),
  'a name costs no more than 20 priorities beyond its share, and the row says that there are more');
SELECT answers(format('SELECT c.due, c.future, c.more_future FROM pulse_internal.count_due(
    ''task'', ''{task 0}'', ''{-infinity}'', %L, 1000, 1000) AS c', :'moment'),
  (SELECT ROW(t.due, 0, false) FROM truth('task', 'task 0', :'moment', 1000) AS t),
  'nothing is read later where the latest job is known to be due');
SELECT answers(format('SELECT count(*), min(c.due) FROM pulse_internal.count_due(
    ''task'', names_of(''task''), NULL, %L, 1000, 1000, 0) AS c', :'moment'), ROW(0, NULL::int),
  'without pages no name is read');
SELECT answers(format('SELECT array_agg(c.name) FROM pulse_internal.count_due(
    ''task'', ''{task 9,task 3,task 1}'', NULL, %L, 1, 1, 1) AS c', :'moment'),
  ROW('{task 9}'::text[]),
  'the names come in the order of the call as far as the pages reach');
SELECT answers(format('SELECT count(*) FROM pulse_internal.count_due(
    ''task'', ''{aaa,none,zzz}'', NULL, %L, 1, 1) AS c WHERE c.due + c.future = 0
      AND c.oldest IS NULL AND NOT c.more_due AND NOT c.more_future', :'moment'), ROW(3),
  'names without jobs have none');
SELECT throws_ok(
  $$SELECT pulse_internal.count_due('task', '{a,NULL}', NULL, now(), 1, 1)$$, 'PU004', NULL,
  'a name that is NULL is refused');

SELECT * FROM finish();
ROLLBACK;
