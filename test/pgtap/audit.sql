-- extension/job/statement_write.cpp: a DBA's triggers on pulse.job see every change of every job,
-- however it is made, and none is lost when a trigger suppresses it.
\ir support/setup.psql
SELECT plan(63);

-- --- an audit, by row and by statement -----------------------------------------------------------

CREATE TABLE public.audit (seq bigserial, op text, id bigint, was text, became text);
CREATE TABLE public.statements (op text, was int, became int);
CREATE FUNCTION public.audit_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.audit (op, id, was, became) VALUES
    (TG_OP, coalesce(NEW.id, OLD.id), CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END,
     CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END);
  RETURN NULL;
END $$;
CREATE FUNCTION public.audit_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.statements SELECT TG_OP, 0, count(*) FROM became;
  RETURN NULL;
END $$;
CREATE FUNCTION public.audit_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.statements
    SELECT TG_OP, (SELECT count(*) FROM was), (SELECT count(*) FROM became);
  RETURN NULL;
END $$;
CREATE FUNCTION public.audit_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.statements SELECT TG_OP, count(*), 0 FROM was;
  RETURN NULL;
END $$;
CREATE TRIGGER audit_row AFTER INSERT OR UPDATE OR DELETE ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.audit_row();
CREATE TRIGGER audit_insert AFTER INSERT ON pulse.job REFERENCING NEW TABLE AS became
  FOR EACH STATEMENT EXECUTE FUNCTION public.audit_insert();
CREATE TRIGGER audit_update AFTER UPDATE ON pulse.job
  REFERENCING OLD TABLE AS was NEW TABLE AS became
  FOR EACH STATEMENT EXECUTE FUNCTION public.audit_update();
CREATE TRIGGER audit_delete AFTER DELETE ON pulse.job REFERENCING OLD TABLE AS was
  FOR EACH STATEMENT EXECUTE FUNCTION public.audit_delete();

-- Where the audit does not agree with itself or with the jobs.
CREATE FUNCTION unseen() RETURNS SETOF text LANGUAGE sql AS $$
  WITH story AS (
    SELECT a.*, lag(a.became) OVER w AS before, lead(a.id) OVER w IS NULL AS is_last
      FROM public.audit AS a WINDOW w AS (PARTITION BY a.id ORDER BY a.seq))
  SELECT format('job %s was changed unseen before %s', s.id, s.op) FROM story AS s
   WHERE s.was IS DISTINCT FROM s.before
  UNION ALL
  SELECT format('job %s is not as it was seen', coalesce(s.id, j.id))
    FROM (SELECT * FROM story WHERE is_last AND became IS NOT NULL) AS s
    FULL JOIN pulse.job AS j ON j.id = s.id
   WHERE j::text IS DISTINCT FROM s.became
  UNION ALL
  SELECT format('%s: %s rows, %s in statements', op, rows, stated)
    FROM (SELECT op, count(*) AS rows FROM public.audit GROUP BY op) AS r
    FULL JOIN (SELECT op, sum(greatest(was, became)) AS stated FROM public.statements GROUP BY op
                HAVING sum(greatest(was, became)) > 0) AS s USING (op)
   WHERE rows IS DISTINCT FROM stated
$$;
-- How many changes were seen since the last question, such as '3 INSERT'.
CREATE TABLE asked (seq bigint);
INSERT INTO asked VALUES (0);
CREATE FUNCTION seen() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  told text := (
    SELECT string_agg(format('%s %s', many, op), ', ' ORDER BY op)
      FROM (SELECT op, count(*) AS many FROM public.audit
             WHERE seq > (SELECT a.seq FROM asked AS a) GROUP BY op) AS news);
BEGIN
  UPDATE asked SET seq = (SELECT max(a.seq) FROM public.audit AS a);
  RETURN coalesce(told, 'nothing');
END $$;
CREATE FUNCTION plain(many int, task text = 'mail') RETURNS pulse.job_spec[] LANGUAGE sql AS $$
  SELECT array_agg((task, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec)
    FROM generate_series(1, many)
$$;
CREATE FUNCTION running() RETURNS TABLE (ids bigint[], tokens bigint[])
  LANGUAGE sql AS $$
  SELECT array_agg(j.id ORDER BY j.id), array_agg(j.token ORDER BY j.id)
    FROM pulse.job AS j WHERE j.state = 'running'
$$;

SELECT given_worker('ann') AS ann, given_worker('bob') AS bob \gset

SELECT given_job('mail') AS one \gset
SELECT is(seen(), '1 INSERT', 'an added job is seen');
SELECT count(*) FROM pulse.add_jobs(plain(30)) \g /dev/null
SELECT is(seen(), '30 INSERT', 'each of many is');
SELECT given_job('mail', job_key => 'k') AS keyed \gset
SELECT given_job('mail', job_key => 'k') \g /dev/null
SELECT is(seen(), '1 INSERT, 1 UPDATE', 'a replaced job is seen');
SELECT pulse.remove_job('k') \g /dev/null
SELECT is(seen(), '1 DELETE', 'a removed job is seen');
SELECT is_empty('SELECT unseen()', 'added jobs are as they were seen');

SELECT token FROM pulse.claim(:ann) \gset
SELECT is(seen(), '1 UPDATE', 'a claim of one is seen');
SELECT pulse.progress(:one, :token, stage => 'half') \g /dev/null
SELECT is(seen(), '1 UPDATE', 'a report of progress is seen');
SELECT pulse.complete(:one, :token) \g /dev/null
SELECT is(seen(), '1 DELETE', 'a completion is seen');
SELECT is((SELECT count(*)::int FROM pulse.claim(:ann, 11)), 11, 'many are claimed');
SELECT is(seen(), '11 UPDATE', 'each of which is seen');
SELECT is_empty('SELECT unseen()', 'claimed jobs are as they were seen');
SELECT (SELECT count(*) FROM pulse.job WHERE in_place) AS in_place \gset
SELECT pulse.heartbeat(:ann) \g /dev/null
SELECT is(seen(), CASE :in_place WHEN 0 THEN 'nothing' ELSE '11 UPDATE' END,
  'a beat that settles what was claimed in place is seen');
SELECT ids[1:2] AS ids, tokens[1:2] AS tokens FROM running() \gset
SELECT pulse.complete_many(:'ids', :'tokens') \g /dev/null
SELECT is(seen(), '2 DELETE', 'many completions are seen');
SELECT ids[1:2] AS ids, tokens[1:2] AS tokens FROM running() \gset
SELECT pulse.fail_many(:'ids', :'tokens', '{wrong,wrong}', '{true,false}') \g /dev/null
SELECT is(seen(), '1 DELETE, 1 UPDATE', 'failures are seen, the last one too');
SELECT ids[1] AS id, tokens[1] AS token FROM running() \gset
SELECT pulse.fail(:id, :token, 'wrong') \g /dev/null
SELECT is(seen(), '1 UPDATE', 'one failure is seen');
SELECT ids[1:2] AS ids, tokens[1:2] AS tokens FROM running() \gset
SELECT pulse.release(:'ids', :'tokens') \g /dev/null
SELECT is(seen(), '2 UPDATE', 'released jobs are seen');
SELECT ids[1] AS id, tokens[1] AS token FROM running() \gset
SELECT pulse.snooze(:id, :token, interval '1 hour') \g /dev/null
SELECT is(seen(), '1 UPDATE', 'a snoozed job is seen');
SELECT pulse.requeue_job((SELECT ids[1] FROM running()), 'by hand') \g /dev/null
SELECT is(seen(), '1 UPDATE', 'a job that is taken from its worker is seen');
SELECT pulse.cancel_job((SELECT ids[1] FROM running()), 'by hand') \g /dev/null
SELECT is(seen(), '1 UPDATE', 'a request to cancel is seen');
SELECT is_empty('SELECT unseen()', 'ended jobs are as they were seen');
SELECT pulse.declare_lost(:ann, 'killed') \g /dev/null
SELECT is(seen(), '1 DELETE, 1 UPDATE',
  'what a lost worker held is seen, the cancelled and the recovered one');
SELECT is_empty('SELECT unseen()', 'recovered jobs are as they were seen');

SELECT count(*) FROM pulse.claim(:bob, 10) \g /dev/null
SELECT seen() \g /dev/null
SELECT (SELECT count(*) FROM running(), unnest(ids)) AS held \gset
SELECT pulse.deregister_worker(:bob) \g /dev/null
SELECT is(seen(), format('%s UPDATE', :held), 'what a worker held that ends in order is seen');

DELETE FROM pulse.job;
SELECT seen() \g /dev/null
SELECT given_worker('eve') AS eve \gset
SELECT given_job('post', 'street', priority => 1) AS later \gset
SELECT given_job('post', 'street', priority => 0) AS sooner \gset
SELECT promote_queues() \g /dev/null
SELECT is(seen(), '2 INSERT, 1 UPDATE', 'a job that its queue opens is seen');
SELECT given_job('post', 'street', priority => -1) AS soonest \gset
SELECT promote_queues() \g /dev/null
SELECT is(seen(), '1 INSERT, 2 UPDATE', 'a job that takes the place of another is seen, and that');
SELECT reason FROM pulse.claim_job(:eve, :soonest) \gset
SELECT is(:'reason' || ': ' || seen(), 'claimed: 1 UPDATE', 'a job claimed by its id is seen');
SELECT is_empty('SELECT unseen()', 'jobs of a queue are as they were seen');
SELECT (job).token FROM pulse.claim_job(:eve, :soonest) \gset
SELECT pulse.complete(:soonest, :token) \g /dev/null
SELECT pulse.set_task('bomb', max_crashes => 2) \g /dev/null
DELETE FROM pulse.job;
SELECT given_job('bomb') AS bomb \gset
UPDATE pulse.job SET attempts = 1, crashes = 1, run_at = run_at - interval '1 hour'
 WHERE id = :bomb;
SELECT given_job('safe') AS safe \gset
SELECT (pulse.claim_job(:eve, :safe)).reason \g /dev/null
SELECT seen() \g /dev/null
SELECT is(claimed_ids(:eve), '{}', 'a suspect waits for a worker that holds other jobs');
SELECT is(seen(), '1 UPDATE', 'which is reserved for it, as is seen');
SELECT is_empty('SELECT unseen()', 'a reserved job is as it was seen');
SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

-- --- which triggers fire -------------------------------------------------------------------------

DELETE FROM pulse.job;
SELECT seen() \g /dev/null
SELECT given_worker('fay') AS fay \gset
SELECT count(*) FROM pulse.add_jobs(plain(40)) \g /dev/null
SELECT seen() \g /dev/null
ALTER TABLE pulse.job DISABLE TRIGGER audit_row;
SELECT is(cardinality(claimed_ids(:fay)), 1, 'a job is claimed past a disabled trigger');
SELECT is(seen(), 'nothing', 'which does not fire');
ALTER TABLE pulse.job ENABLE REPLICA TRIGGER audit_row;
SELECT is(cardinality(claimed_ids(:fay)), 1, 'a job is claimed past a trigger for replicas');
SELECT is(seen(), 'nothing', 'which does not fire either');
SET LOCAL session_replication_role = replica;
SELECT is(cardinality(claimed_ids(:fay, 9)), 9, 'jobs are claimed in a session that replicates');
SELECT is(seen(), '9 UPDATE', 'where it fires');
SET LOCAL session_replication_role = origin;
DROP TRIGGER audit_row ON pulse.job;
CREATE TRIGGER audit_row AFTER UPDATE OF message, run_at ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.audit_row();
SELECT is(cardinality(claimed_ids(:fay)), 1, 'a job is claimed where a trigger is for columns');
SELECT is(seen(), '1 UPDATE', 'one of which a claim clears');
DROP TRIGGER audit_row ON pulse.job;
CREATE TRIGGER audit_row AFTER UPDATE OF run_at, payload ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.audit_row();
SELECT is(cardinality(claimed_ids(:fay)), 1, 'a job is claimed where a trigger is for others');
SELECT is(seen(), 'nothing', 'none of which it changes');
DROP TRIGGER audit_row ON pulse.job;
DROP TRIGGER audit_insert ON pulse.job;
DROP TRIGGER audit_update ON pulse.job;
DROP TRIGGER audit_delete ON pulse.job;

-- --- triggers that change or suppress a row ------------------------------------------------------

CREATE FUNCTION public.alter_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.flags := '{seen}';
  NEW.crashes := 0;
  RETURN NEW;
END $$;
CREATE TRIGGER alter_row BEFORE INSERT OR UPDATE ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.alter_row();
SELECT is((pulse.add_job('letter')).flags, '{seen}', 'add_job returns what a trigger has changed');
SELECT is((SELECT array_agg(DISTINCT flags::text) FROM pulse.add_jobs(plain(9, 'letter'))),
  '{"{seen}"}', 'so does add_jobs');
UPDATE pulse.job SET flags = NULL WHERE identifier = 'letter';
SELECT is((SELECT array_agg(DISTINCT flags::text)
             FROM pulse.claim(:fay, 10, tasks => '{letter}')), '{"{seen}"}', 'and claim');
SELECT is((SELECT count(*)::int FROM pulse.job
            WHERE identifier = 'letter'
              AND index_lane = CASE WHEN in_place THEN 'o' ELSE 'r' END::"char"
              AND running_worker_id IS NOT DISTINCT FROM
                  CASE WHEN NOT in_place THEN worker_id END), 10,
  'generated columns are computed');
DROP TRIGGER alter_row ON pulse.job;

CREATE FUNCTION public.suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER suppress BEFORE INSERT ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.suppress();
SELECT throws_ok($$SELECT pulse.add_job('mail')$$, '09000',
  'a trigger, rule or policy of pulse.job suppressed a row', 'no job vanishes as it is added');
SELECT throws_ok('SELECT * FROM pulse.add_jobs(plain(3))', '09000', NULL, 'nor do many');
DROP TRIGGER suppress ON pulse.job;
CREATE TRIGGER suppress BEFORE UPDATE ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.suppress();
SELECT throws_ok(format('SELECT * FROM pulse.claim(%s)', :fay), '09000', NULL,
  'no worker gets a job that is not claimed');
SELECT throws_ok(format('SELECT * FROM pulse.claim(%s, 20)', :fay), '09000', NULL,
  'nor does it among many');
SELECT given_job('post', 'alley') AS alley \gset
SELECT throws_ok('SELECT promote_queues()', '09000', NULL, 'no place is given to a job in vain');
DROP TRIGGER suppress ON pulse.job;
SELECT promote_queues() \g /dev/null
SELECT is(state_of(:alley), 'ready', 'which gets it without the trigger');

-- --- rules and policies --------------------------------------------------------------------------

CREATE RULE suppress AS ON UPDATE TO pulse.job DO INSTEAD NOTHING;
SELECT throws_ok(format('SELECT * FROM pulse.claim(%s)', :fay), NULL, NULL,
  'a rule instead of updates keeps jobs from being claimed');
DROP RULE suppress ON pulse.job;
CREATE TABLE public.ruled (id bigint);
CREATE RULE log AS ON UPDATE TO pulse.job DO ALSO INSERT INTO public.ruled VALUES (NEW.id);
SELECT is(cardinality(claimed_ids(:fay, 9)), 9, 'jobs are claimed under a rule beside updates');
SELECT is((SELECT count(*)::int FROM public.ruled), 9, 'which sees each');
DROP RULE log ON pulse.job;
CREATE TABLE public.note (job bigint REFERENCES pulse.job ON DELETE SET NULL);
SELECT given_job('noted') AS noted \gset
INSERT INTO public.note VALUES (:noted);
SELECT token FROM pulse.claim(:fay, tasks => '{noted}') \gset
SELECT pulse.complete_many(ARRAY[:noted], ARRAY[:token]) \g /dev/null
SELECT is((SELECT count(*)::int FROM public.note WHERE job IS NULL), 1,
  'a foreign key of others follows a job that ends');


-- --- columns of a DBA ----------------------------------------------------------------------------

ALTER TABLE pulse.job ADD COLUMN note text;
ALTER TABLE pulse.job ALTER COLUMN note SET DEFAULT 'theirs';
SELECT given_job('noted') AS noted \gset
SELECT is((SELECT note FROM pulse.job WHERE id = :noted), 'theirs',
  'an added job has the default of a column that it knows nothing of');
SELECT is(claimed_ids(:fay, tasks => '{noted}'), ARRAY[:noted]::bigint[], 'it is claimed');
SELECT is((SELECT note FROM pulse.job WHERE id = :noted), 'theirs', 'which changes nothing there');
SELECT token FROM pulse.job WHERE id = :noted \gset
SELECT pulse.complete(:noted, :token) \g /dev/null
SELECT is(state_of(:noted), 'gone', 'and completed');

-- A trigger that lets a job run sooner than its worker asked for.
CREATE FUNCTION public.hurry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.run_at := least(NEW.run_at, pulse.now() - interval '1 minute');
  RETURN NEW;
END $$;
CREATE TRIGGER hurry BEFORE UPDATE ON pulse.job
  FOR EACH ROW WHEN (NEW.state = 'ready') EXECUTE FUNCTION public.hurry();
SELECT given_worker('sue', '{hurried}') AS sue, given_job('hurried') AS hurried \gset
SELECT token FROM pulse.claim(:sue) \gset
SELECT pulse.snooze(:hurried, :token, '1 hour') \g /dev/null
SELECT is(claimed_ids(:sue), ARRAY[:hurried::bigint], 'a trigger hurries a job past its snooze');
DROP TRIGGER hurry ON pulse.job;

-- One that makes a job of another task, due sooner than those that were claimed of it.
CREATE FUNCTION public.rename() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.identifier := lower(NEW.identifier);
  NEW.run_at := NEW.run_at - interval '1 hour';
  RETURN NEW;
END $$;
CREATE TRIGGER rename BEFORE INSERT ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.rename();
SELECT given_job('Hurried') AS renamed \gset
SELECT is(claimed_ids(:sue), ARRAY[:renamed::bigint], 'a trigger renames and hurries a new job');
SELECT id AS renamed FROM pulse.add_jobs(plain(1, 'Hurried')) \gset
SELECT is(claimed_ids(:sue), ARRAY[:renamed::bigint], 'also one of many');
DROP TRIGGER rename ON pulse.job;

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');

SELECT * FROM finish();
ROLLBACK;
