-- A view, and a function that runs with its caller's rights, need rights on all that they reach, in
-- each branch: whatever kind of role may use them may call and read the rest. Bodies are read,
-- because no set of rows takes every branch.
\ir support/setup.psql
SELECT plan(4);
CREATE EXTENSION IF NOT EXISTS pg_pulse_graphile;

CREATE TEMP TABLE kind AS
  SELECT k.kind, 'pulse_' || k.kind AS role
    FROM unnest('{producer,caller,worker,operator,scheduler,observer}'::text[]) AS k (kind);
SELECT format('CREATE ROLE %I', k.role), format('SELECT pulse.grant_%s(%L)', k.kind, k.role)
  FROM kind AS k
\gexec

CREATE TEMP TABLE object AS
  SELECT m.objid AS id, o.home || '.' || o.name AS name, o.body, o.is_relation,
         -- What such a thing reaches is reached by its user.
         o.is_open
    FROM pg_depend AS m
    JOIN pg_extension AS e ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = e.oid
     AND m.deptype = 'e' AND e.extname IN ('pg_pulse', 'pg_pulse_graphile'),
    LATERAL (
      SELECT p.pronamespace::regnamespace::text AS home, p.proname::text AS name,
             coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) AS body,
             NOT p.prosecdef AS is_open, false AS is_relation
        FROM pg_proc AS p WHERE m.classid = 'pg_proc'::regclass AND p.oid = m.objid
      UNION ALL
      SELECT c.relnamespace::regnamespace::text, c.relname::text, NULL, c.relkind = 'v', true
        FROM pg_class AS c
       WHERE m.classid = 'pg_class'::regclass AND c.oid = m.objid AND c.relkind IN ('r', 'v')) AS o;

-- A body qualifies every name. A view reads with the rights of its owner, through further views
-- too; what any of them calls runs with the rights of the reader.
CREATE TEMP TABLE reach AS
  SELECT f.id AS user_id, t.id, true AS asks_for_right
    FROM object AS f JOIN object AS t
      ON f.body ~ format(CASE WHEN t.is_relation THEN '\m(?:FROM|JOIN|INTO|UPDATE)\s+%s\M(?!\s*\()'
                           ELSE '\m%s\s*\(' END, replace(t.name, '.', '\.'))
   WHERE NOT f.is_relation AND f.is_open
     -- Asked only about a job that shows its worker, which a producer's never does.
     AND (f.name, t.name) <> ('graphile_worker._private_row', 'pulse.worker')
  UNION
  SELECT v.id, t.id, NOT t.is_relation
    FROM object AS v JOIN pg_rewrite AS r ON r.ev_class = v.id
    JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    JOIN object AS t ON t.id = d.refobjid AND t.id <> v.id
     AND d.refclassid = CASE WHEN t.is_relation THEN 'pg_class' ELSE 'pg_proc' END::regclass
   WHERE v.is_relation;

CREATE TEMP VIEW right_of AS
  SELECT k.kind, o.id, o.name,
         CASE WHEN o.is_relation THEN has_table_privilege(k.role, o.id, 'SELECT')
           ELSE has_function_privilege(k.role, o.id, 'EXECUTE') END AS has_right
    FROM kind AS k, object AS o;
CREATE TEMP TABLE reached AS
  WITH RECURSIVE step AS (
    SELECT r.kind, r.name AS first, r.id, true AS asks_for_right
      FROM right_of AS r JOIN object AS o ON o.id = r.id
     WHERE r.has_right AND o.is_open
    UNION
    SELECT s.kind, s.first, r.id, r.asks_for_right
      FROM step AS s JOIN object AS o ON o.id = s.id AND o.is_open
      JOIN reach AS r ON r.user_id = s.id
  )
  SELECT s.kind, s.first, o.name, r.has_right
    FROM step AS s JOIN object AS o ON o.id = s.id
    JOIN right_of AS r ON r.id = s.id AND r.kind = s.kind
   WHERE s.asks_for_right;

SELECT isnt_empty(
  $$SELECT FROM reached
     WHERE kind = 'observer' AND first = 'pulse.stale' AND name = 'pulse_internal.us'$$,
  'a function is seen that a view calls');
SELECT isnt_empty(
  $$SELECT FROM reached
     WHERE kind = 'observer' AND first = 'pulse.stale' AND name = 'pulse_internal.is_silent'$$,
  'and one that is called by another, which a view beneath that view calls');
SELECT isnt_empty(
  $$SELECT FROM reached
     WHERE kind = 'observer' AND first = 'graphile_worker.jobs'$$,
  'the views with the names of Graphile Worker are read too');
SELECT is_empty($$SELECT kind, first, name FROM reached WHERE NOT has_right$$,
  'each kind of role has the rights on all that what it may use reaches');

SELECT * FROM finish();
ROLLBACK;
