-- import_graphile_worker runs no code of who owns the old schema: where reading or deleting would,
-- it is refused, also as a dry run, names what stands in the way, and has run nothing.
\ir support/setup.psql
SELECT plan(50);

CREATE ROLE old_app;
CREATE SCHEMA trap;
-- Wherever it runs, it says so.
CREATE FUNCTION trap.note(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RAISE EXCEPTION 'code of old_app runs as %', current_user USING ERRCODE = 'ZZ001';
END $$;
CREATE FUNCTION trap.note() RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT trap.note(1)::int $$;
CREATE FUNCTION trap.notes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM trap.note();
  RETURN OLD;
END $$;
-- Harmless while it is put to use.
CREATE FUNCTION trap.later(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT n $$;
CREATE FUNCTION trap.turn() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CREATE OR REPLACE FUNCTION trap.later(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT trap.note(n)';
  -- What the session has cached of the table is made anew.
  ALTER TABLE "their Jobs"._private_jobs SET (fillfactor = 90);
END $$;
CREATE TYPE trap.odd AS (value text);
CREATE FUNCTION trap.cast_odd(trap.odd) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM trap.note();
  RETURN ($1).value;
END $$;
CREATE CAST (trap.odd AS text) WITH FUNCTION trap.cast_odd(trap.odd) AS ASSIGNMENT;
CREATE TYPE trap.mood AS ENUM ('good');
CREATE DOMAIN trap.long AS bigint CHECK (trap.note(VALUE) > 0);

\o /dev/null
\ir support/graphile_jobs.psql
\o
\set theirs '"their Jobs"'
-- How the import ends after this change, which is undone.
CREATE FUNCTION import_after(change text, dry boolean = false) RETURNS refusal
  LANGUAGE plpgsql AS $$
DECLARE
  seen refusal;
BEGIN
  EXECUTE change;
  seen := refusal_of(format('SELECT pulse.import_graphile_worker(''their Jobs'', %L); '
                            'SET CONSTRAINTS ALL IMMEDIATE', dry));
  RAISE EXCEPTION 'undone' USING ERRCODE = 'ZZ002';
EXCEPTION WHEN SQLSTATE 'ZZ002' THEN
  RETURN seen;
END $$;

CREATE TEMP TABLE attack (what text, named text, change text);
INSERT INTO attack VALUES
  ('a view', 'view "their Jobs"._private_tasks, which is no ordinary table', $$
     ALTER TABLE "their Jobs"._private_tasks RENAME TO moved;
     CREATE VIEW "their Jobs"._private_tasks AS
       SELECT m.*, trap.note() FROM "their Jobs".moved AS m $$),
  ('a view of the crontabs',
   'view "their Jobs"._private_known_crontabs, which is no ordinary table', $$
     DROP TABLE "their Jobs"._private_known_crontabs;
     CREATE VIEW "their Jobs"._private_known_crontabs AS
       SELECT 'x' AS identifier, now() AS last_execution, trap.note() AS n $$),
  ('a partitioned table', 'table "their Jobs"._private_tasks, which is no ordinary table', $$
     DROP TABLE "their Jobs"._private_tasks;
     CREATE TABLE "their Jobs"._private_tasks (id int, identifier text) PARTITION BY LIST (id) $$),
  ('a foreign table', 'foreign table "their Jobs"._private_tasks, which is no ordinary table', $$
     CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;
     DROP TABLE "their Jobs"._private_tasks;
     CREATE FOREIGN TABLE "their Jobs"._private_tasks (id int, identifier text) SERVER s $$),
  ('a materialized view',
   'materialized view "their Jobs"._private_tasks, which is no ordinary table', $$
     ALTER TABLE "their Jobs"._private_tasks RENAME TO moved;
     CREATE MATERIALIZED VIEW "their Jobs"._private_tasks AS TABLE "their Jobs".moved $$),
  ('a child', 'table trap.child, which inherits from it', $$
     CREATE TABLE trap.child () INHERITS ("their Jobs"._private_jobs) $$),
  ('a trigger of a row', 'trigger t on table "their Jobs"._private_jobs', $$
     CREATE TRIGGER t BEFORE DELETE ON "their Jobs"._private_jobs
       FOR EACH ROW EXECUTE FUNCTION trap.notes() $$),
  ('a trigger of a statement', 'trigger t on table "their Jobs"._private_jobs', $$
     CREATE TRIGGER t AFTER INSERT OR DELETE ON "their Jobs"._private_jobs
       FOR EACH STATEMENT EXECUTE FUNCTION trap.notes() $$),
  ('a deferred trigger', 'trigger t on table "their Jobs"._private_jobs', $$
     CREATE CONSTRAINT TRIGGER t AFTER DELETE ON "their Jobs"._private_jobs
       INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trap.notes() $$),
  ('a foreign key that cascades', 'constraint note_job_id_fkey on table trap.note', $$
     ALTER TABLE "their Jobs"._private_jobs ADD PRIMARY KEY (id);
     CREATE TABLE trap.note (job_id bigint REFERENCES "their Jobs"._private_jobs
                               ON DELETE CASCADE);
     INSERT INTO trap.note VALUES (1);
     CREATE TRIGGER t AFTER DELETE ON trap.note FOR EACH ROW EXECUTE FUNCTION trap.notes() $$),
  ('a rule', 'rule r on table "their Jobs"._private_jobs', $$
     CREATE RULE r AS ON DELETE TO "their Jobs"._private_jobs DO ALSO SELECT trap.note() $$),
  ('a policy', 'policy p on table "their Jobs"._private_jobs', $$
     ALTER TABLE "their Jobs"._private_jobs ENABLE ROW LEVEL SECURITY;
     CREATE POLICY p ON "their Jobs"._private_jobs USING (trap.note() IS NULL) $$),
  ('a type with a cast', 'column key of table "their Jobs"._private_jobs of type trap.odd', $$
     ALTER TABLE "their Jobs"._private_jobs ALTER key TYPE trap.odd USING ROW(key)::trap.odd $$),
  ('an enum', 'column identifier of table "their Jobs"._private_tasks of type trap.mood', $$
     UPDATE "their Jobs"._private_tasks SET identifier = 'good';
     ALTER TABLE "their Jobs"._private_tasks
       ALTER identifier TYPE trap.mood USING identifier::trap.mood $$),
  ('a domain', 'column id of table "their Jobs"._private_tasks of type trap.long', $$
     TRUNCATE "their Jobs"._private_tasks;
     ALTER TABLE "their Jobs"._private_tasks ALTER id TYPE trap.long $$),
  ('an index that the planner evaluates',
   'index "their Jobs".i, which uses function trap.later(bigint)', $$
     TRUNCATE "their Jobs"._private_jobs;
     CREATE INDEX i ON "their Jobs"._private_jobs ((id + trap.later(1)));
     SELECT trap.turn() $$),
  ('a predicate of an index', 'index "their Jobs".i, which uses function trap.later(bigint)', $$
     TRUNCATE "their Jobs"._private_jobs;
     CREATE INDEX i ON "their Jobs"._private_jobs (id) WHERE id > trap.later(1);
     SELECT trap.turn() $$),
  ('a check that the planner evaluates',
   'constraint c on table "their Jobs"._private_jobs, which uses function trap.later(bigint)', $$
     TRUNCATE "their Jobs"._private_jobs;
     SET LOCAL constraint_exclusion = on;
     ALTER TABLE "their Jobs"._private_jobs ADD CONSTRAINT c CHECK (id > trap.later(1));
     SELECT trap.turn() $$),
  ('statistics that the planner evaluates',
   'statistics object "their Jobs".s, which uses function trap.later(bigint)', $$
     TRUNCATE "their Jobs"._private_jobs;
     CREATE STATISTICS "their Jobs".s ON (id + trap.later(1)) FROM "their Jobs"._private_jobs;
     SELECT trap.turn() $$);

SELECT is((SELECT ROW(i.code, i.detail)::text FROM import_after(a.change, d.dry) AS i),
  ROW('42501', format('There is %s.', a.named))::text,
  format('%s is refused%s', a.what, CASE WHEN d.dry THEN ', as a dry run too' END))
  FROM attack AS a, (VALUES (false), (true)) AS d (dry);
SELECT is((import_after(a.change)).message,
  'the move from "their Jobs"._private_jobs would run code of another role', 'the table is named')
  FROM attack AS a WHERE a.what = 'a rule';
SELECT is((SELECT count(*) FROM pulse.job), 0::bigint, 'nothing has come here');
SELECT is((SELECT count(*) FROM :theirs._private_jobs), 4::bigint, 'nor gone there');

-- --- what is harmless ----------------------------------------------------------------------------

SELECT is((import_after(c.change)).code, '00000', c.what || ' is imported') FROM (VALUES
  ('row security without a policy', 'ALTER TABLE "their Jobs"._private_jobs
     ENABLE ROW LEVEL SECURITY'),
  ('a stored generated column', 'ALTER TABLE "their Jobs"._private_jobs ADD available boolean
     GENERATED ALWAYS AS (locked_at IS NULL) STORED'),
  ('a primary key, a check and an index of its own', 'ALTER TABLE "their Jobs"._private_jobs
     ADD PRIMARY KEY (id), ADD CHECK (max_attempts >= 1);
     CREATE INDEX ON "their Jobs"._private_jobs (priority, run_at) WHERE locked_at IS NULL'),
  ('a trigger of INSERT', 'CREATE TRIGGER t AFTER INSERT ON "their Jobs"._private_jobs
     FOR EACH STATEMENT EXECUTE FUNCTION trap.notes()'),
  ('a disabled trigger', 'CREATE TRIGGER t AFTER DELETE ON "their Jobs"._private_jobs
     FOR EACH STATEMENT EXECUTE FUNCTION trap.notes();
     ALTER TABLE "their Jobs"._private_jobs DISABLE TRIGGER t'),
  ('a default of the application', 'ALTER TABLE "their Jobs"._private_jobs
     ALTER priority SET DEFAULT trap.note(1)'),
  ('a column of the application', 'ALTER TABLE "their Jobs"._private_jobs ADD mood trap.mood'))
  AS c (what, change);

-- --- a caller whom row security binds ------------------------------------------------------------

CREATE ROLE mover;
SELECT format('GRANT %I TO mover', current_user) \gexec
ALTER TABLE "their Jobs"._private_jobs ENABLE ROW LEVEL SECURITY;
SELECT is((refusal_of('SELECT pulse.import_graphile_worker(''their Jobs'', true)', 'mover')).code,
  '00000', 'a role that acts as the owner of the tables moves the jobs');
ALTER TABLE "their Jobs"._private_jobs FORCE ROW LEVEL SECURITY;
SELECT is((refusal_of('SELECT pulse.import_graphile_worker(''their Jobs'')', 'mover')).code,
  '42501', 'where it would see no job, the move is refused, and not taken for done');

SELECT * FROM finish();
ROLLBACK;
