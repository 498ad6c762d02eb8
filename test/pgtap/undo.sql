-- sql/operator/operation_undo.sql: what an undo brings back. Each cell of the matrix is an
-- assertion: an action, and a column of the jobs or the rows of another table. docs/operations.md
-- tells the same.
\ir support/setup.psql

-- kept: the action leaves it as it is. back: the action changes it, and its undo brings it back.
-- new: it is not as before. The jobs after it were cancelled because of it, or wait for it.
CREATE TEMP TABLE expected (place text, name text, "cancel" text, "fail" text, "retry" text,
                            "reschedule" text, "cancel running" text);
INSERT INTO expected
SELECT 'job', m.* FROM (VALUES
  ('id',                  'kept', 'kept', 'kept', 'kept', 'kept'),
  ('identifier',          'kept', 'kept', 'kept', 'kept', 'kept'),
  ('payload',             'kept', 'kept', 'kept', 'kept', 'kept'),
  ('queue_name',          'kept', 'kept', 'kept', 'kept', 'kept'),
  ('priority',            'kept', 'kept', 'kept', 'back', 'kept'),
  ('run_at',              'kept', 'kept', 'back', 'back', 'kept'),
  ('state',               'back', 'back', 'back', 'back', 'kept'),
  ('attempts',            'kept', 'kept', 'back', 'back', 'kept'),
  ('max_attempts',        'kept', 'kept', 'kept', 'back', 'kept'),
  ('crashes',             'kept', 'kept', 'back', 'back', 'kept'),
  ('job_key',             'kept', 'kept', 'kept', 'kept', 'kept'),
  ('flags',               'kept', 'kept', 'kept', 'kept', 'kept'),
  ('worker_id',           'kept', 'kept', 'back', 'kept', 'kept'),
  ('token',               'kept', 'kept', 'back', 'kept', 'kept'),
  ('claimed_at',          'kept', 'kept', 'back', 'kept', 'kept'),
  ('last_activity_at',    'back', 'back', 'kept', 'kept', 'kept'),
  ('stage',               'back', 'back', 'kept', 'kept', 'kept'),
  ('progress',            'back', 'back', 'kept', 'kept', 'kept'),
  ('message',             'back', 'back', 'kept', 'kept', 'kept'),
  ('checkpoint',          'kept', 'kept', 'kept', 'kept', 'kept'),
  ('last_error',          'back', 'back', 'back', 'kept', 'kept'),
  ('recovered',           'back', 'back', 'kept', 'kept', 'kept'),
  ('revision',            'new',  'new',  'new',  'new',  'kept'),
  ('created_at',          'kept', 'kept', 'kept', 'kept', 'kept'),
  ('updated_at',          'new',  'new',  'back', 'new',  'kept'),
  ('claimed_live_us',     'kept', 'kept', 'kept', 'kept', 'kept'),
  ('activity_live_us',    'kept', 'kept', 'kept', 'kept', 'kept'),
  ('cancel_requested_at', 'kept', 'kept', 'kept', 'kept', 'back'),
  ('cancel_reason',       'kept', 'kept', 'kept', 'kept', 'back'),
  ('superseded',          'back', 'back', 'back', 'kept', 'kept'),
  ('in_place',            'back', 'back', 'back', 'kept', 'kept'),
  ('key_is_undecided',    'kept', 'kept', 'kept', 'kept', 'kept'),
  ('waits_on',            'back', 'back', 'kept', 'kept', 'kept'),
  ('running_worker_id',   'kept', 'kept', 'kept', 'kept', 'kept'),
  ('index_lane',          'back', 'back', 'back', 'back', 'kept'),
  ('scheduled_for',       'kept', 'kept', 'kept', 'kept', 'kept'),
  ('start_by',            'kept', 'kept', 'back', 'kept', 'kept'),
  ('starts_when',         'kept', 'kept', 'kept', 'kept', 'kept'),
  ('succession',          'back', 'back', 'back', 'kept', 'kept'),
  ('keeps_result',        'kept', 'kept', 'kept', 'kept', 'kept'),
  ('parents',             'kept', 'kept', 'kept', 'kept', 'kept'),
  ('traceparent',         'kept', 'kept', 'kept', 'kept', 'kept'),
  ('added_by',            'kept', 'kept', 'kept', 'kept', 'kept'),
  ('result',              'kept', 'kept', 'kept', 'kept', 'kept'),
  ('finished_at',         'back', 'back', 'back', 'kept', 'kept'),
  ('cancelled_by',        'kept', 'kept', 'back', 'kept', 'kept'),
  ('before_end',          'kept', 'kept', 'back', 'kept', 'kept'),
  ('dead_letter_of',      'kept', 'kept', 'kept', 'kept', 'kept'),
  ('dead_letter_id',      'kept', 'kept', 'back', 'kept', 'kept')) AS m;
-- Of the jobs after it the rest is kept.
INSERT INTO expected
SELECT 'after', e.name, 'kept', 'kept', 'kept', 'kept', 'kept' FROM expected AS e;
UPDATE expected AS e SET "cancel" = m.ends, "fail" = m.ends, "retry" = m.returns
  FROM (VALUES
  ('state', 'back', 'back'), ('last_activity_at', 'back', 'back'), ('stage', 'back', 'back'),
  ('progress', 'back', 'back'), ('message', 'back', 'back'), ('last_error', 'back', 'back'),
  ('recovered', 'back', 'back'), ('revision', 'new', 'new'), ('updated_at', 'new', 'back'),
  ('superseded', 'back', 'back'), ('in_place', 'back', 'back'), ('waits_on', 'back', 'back'),
  ('index_lane', 'back', 'back'), ('succession', 'back', 'back'), ('finished_at', 'back', 'new'),
  ('cancelled_by', 'back', 'back'), ('before_end', 'back', 'back')) AS m (name, ends, returns)
 WHERE e.place = 'after' AND e.name = m.name;
INSERT INTO expected VALUES
  ('rows', 'dependency',  'back', 'back', 'back', 'kept', 'kept'),
  ('rows', 'flow',        'kept', 'kept', 'kept', 'kept', 'kept'),
  ('rows', 'flow_job',    'kept', 'kept', 'kept', 'kept', 'kept'),
  ('rows', 'attempt',     'kept', 'kept', 'kept', 'kept', 'kept'),
  ('rows', 'queue',       'kept', 'kept', 'kept', 'kept', 'kept'),
  ('rows', 'queue_pause', 'kept', 'back', 'kept', 'kept', 'kept'),
  ('rows', 'claim_batch', 'kept', 'kept', 'kept', 'kept', 'kept'),
  ('rows', 'worker',      'kept', 'kept', 'kept', 'kept', 'kept'),
  ('rows', 'schedule',    'kept', 'kept', 'kept', 'kept', 'kept');

SELECT plan((SELECT count(*)::int * 5 + 17 FROM expected));

SELECT is_empty($$SELECT a.attname FROM pg_attribute AS a
   WHERE a.attrelid IN ('pulse.job'::regclass, 'pulse.finished_job'::regclass) AND a.attnum > 0
     AND a.attname NOT IN (SELECT e.name FROM expected AS e)$$, 'every column has its cells');

-- --- what is seen -------------------------------------------------------------------------------

CREATE TEMP TABLE subject (id bigint, place text);
CREATE TEMP TABLE seen (moment text, place text, name text, value text);

-- A column that a row does not have counts as empty.
CREATE FUNCTION look(moment text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  name text;
  value text;
BEGIN
  INSERT INTO seen
    SELECT moment, e.place, e.name, string_agg(coalesce(r.row ->> e.name, '-'), ' ' ORDER BY s.id)
      FROM expected AS e JOIN subject AS s ON s.place = e.place
      LEFT JOIN (SELECT j.id, to_jsonb(j) AS row FROM pulse.job AS j
                 UNION ALL SELECT f.id, to_jsonb(f) FROM pulse.finished_job AS f) AS r
        ON r.id = s.id
     GROUP BY e.place, e.name;
  FOR name IN SELECT e.name FROM expected AS e WHERE e.place = 'rows' LOOP
    EXECUTE format('SELECT string_agg(t::text, '' '' ORDER BY t::text) FROM pulse.%I AS t', name)
       INTO value;
    INSERT INTO seen VALUES (moment, 'rows', name, value);
  END LOOP;
END $$;

CREATE FUNCTION run(operation_id bigint) RETURNS text LANGUAGE sql AS $$
  SELECT format('%s %s %s', o.state, o.changed, o.skipped)
    FROM pulse.run_operation(operation_id) AS o $$;

-- Runs an action on the subjects, and takes it back; claims and sweeps look at the jobs meanwhile.
CREATE FUNCTION do_and_undo(action text, arguments json) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  operation bigint;
  done text[];
BEGIN
  DELETE FROM seen;
  PERFORM look('before');
  operation := (pulse.start_operation(action, json_build_object(
    'ids', ARRAY(SELECT s.id FROM subject AS s WHERE s.place = 'job')), arguments)).id;
  done := done || run(operation);
  PERFORM pulse.sweep(), promote_queues();
  PERFORM look('between');
  done := done || run((pulse.undo_operation(operation)).id);
  PERFORM pulse.sweep(), promote_queues();
  PERFORM look('after');
  RETURN array_to_string(done, ', ');
END $$;

CREATE FUNCTION cells(action text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT is(CASE WHEN a.value IS DISTINCT FROM b.value THEN 'new'
              WHEN w.value IS DISTINCT FROM b.value THEN 'back' ELSE 'kept' END,
            to_jsonb(e) ->> action, format('%s: %s %s', action, e.place, e.name))
    FROM expected AS e
    JOIN seen AS b ON (b.moment, b.place, b.name) = ('before', e.place, e.name)
    JOIN seen AS w ON (w.moment, w.place, w.name) = ('between', e.place, e.name)
    JOIN seen AS a ON (a.moment, a.place, a.name) = ('after', e.place, e.name)
   ORDER BY e.place, e.name $$;

CREATE FUNCTION forget_all() RETURNS void LANGUAGE sql AS $$
  DELETE FROM pulse.job; DELETE FROM pulse.finished_job; DELETE FROM pulse.dependency;
  DELETE FROM pulse.flow_job; DELETE FROM pulse.queue_pause; DELETE FROM subject $$;

-- --- jobs that wait -----------------------------------------------------------------------------

SELECT pulse.set_queue('strict', strict => true, on_dead => 'pause') \g /dev/null
SELECT given_worker() AS ann \gset
SET LOCAL pulse.traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

-- A job that a worker has died of; one that is first in its queue; one that is open there; one of a
-- flow, which waits and for which others wait.
CREATE FUNCTION given_waiting() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  worn bigint := (pulse.add_job('worn', '{"a": 1}', job_key => 'k', priority => 3, flags => '{f}',
                                max_attempts => 9)).id;
  turn bigint := (pulse.add_job('turn', queue_name => 'strict')).id;
  victim bigint := given_worker('victim');
  claim pulse.job;
BEGIN
  PERFORM promote_queues();
  PERFORM pulse.claim(victim, 9);
  SELECT * INTO claim FROM pulse.job AS j WHERE j.id = worn;
  PERFORM pulse.progress(worn, claim.token, stage => 'half', fraction => 0.5,
                         message => 'of it', checkpoint => '{"page": 3}');
  SELECT * INTO claim FROM pulse.job AS j WHERE j.id = turn;
  PERFORM pulse.fail(turn, claim.token, 'dead', retry => false);
  PERFORM pulse.declare_lost(victim, 'killed');
  PERFORM pulse.resume_queue('strict');
  PERFORM pulse.retry_job(turn);
  PERFORM pulse.add_flow('[{"key": "above", "identifier": "above"},
    {"key": "middle", "identifier": "middle", "after": ["above"], "start_by": "2100-01-01"},
    {"key": "below", "identifier": "below", "after": ["middle"], "queue_name": "strict",
     "start_by": "2100-01-02"},
    {"key": "last", "identifier": "last", "after": ["below"]}]');
  -- As a job that was claimed and released before add_dependency let it wait.
  UPDATE pulse.job AS j
     SET last_error = 'earlier', recovered = 'stalled', stage = 'first', progress = 0.25,
         message = 'words', last_activity_at = '2020-01-01', succession = 2
   WHERE j.identifier = 'below';
  UPDATE pulse.job AS j SET scheduled_for = '2020-01-01', parents = '[1]' WHERE j.id = worn;
  PERFORM given_job('open', 'open');
  PERFORM promote_queues();
  INSERT INTO subject SELECT j.id, 'job' FROM pulse.job AS j
   WHERE j.identifier IN ('worn', 'turn', 'middle', 'open');
  INSERT INTO subject SELECT j.id, 'after' FROM pulse.job AS j WHERE j.identifier = 'below';
END $$;

SELECT given_waiting() \g /dev/null
SELECT is(do_and_undo('cancel', '{"reason": "why"}'), 'done 4 0, done 4 0',
  'waiting jobs are cancelled, and come back');
SELECT cells('cancel');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all(), given_waiting() \g /dev/null
SELECT is(do_and_undo('fail', '{"error": "why"}'), 'done 4 0, done 4 0',
  'waiting jobs are failed, and come back');
SELECT cells('fail');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');
SELECT forget_all(), given_waiting() \g /dev/null
SELECT is(do_and_undo('reschedule', '{"run_at": "2100-01-01", "priority": 7, "attempts": 0,
                                      "max_attempts": 3}'), 'done 4 0, done 4 0',
  'waiting jobs are rescheduled, and back');
SELECT cells('reschedule');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');

-- --- jobs that run ------------------------------------------------------------------------------

SELECT forget_all() \g /dev/null
INSERT INTO subject SELECT c.id, 'job' FROM given_claimed_job(:ann, job_key => 'k') AS c;
INSERT INTO subject SELECT j.id, 'after'
  FROM subject AS s, LATERAL pulse.add_job_after(ARRAY[s.id], 'below') AS j;
SELECT is(do_and_undo('cancel', '{"reason": "why"}'), 'done 1 0, done 1 0',
  'the cancellation of a running job is taken back');
SELECT cells('cancel running');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');

-- --- jobs that have ended -----------------------------------------------------------------------

-- One that failed, with jobs after it; one that died thrice; one that expired; two that were
-- cancelled because of others; one that was not needed.
SELECT forget_all() \g /dev/null
CREATE FUNCTION fails(task text) RETURNS void LANGUAGE sql AS $$
  SELECT pulse.fail(j.id, j.token, task || ' broke', retry => false)
    FROM pulse.job AS j WHERE j.identifier = task AND j.state = 'running' $$;
SET LOCAL pulse.max_crashes = 1;
SELECT given_worker('victim') AS victim \gset
SELECT given_claimed_job(:victim, 'deadly', 'post') \g /dev/null
SELECT pulse.declare_lost(:victim, 'killed') \g /dev/null
SELECT pulse.add_job_after('{}', 'late', start_by => now() - interval '1 s') \g /dev/null
SELECT pulse.add_flow('[{"key": "a", "identifier": "fails"},
  {"key": "b", "identifier": "below", "after": ["a"], "start_by": "2100-01-01", "job_key": "k",
   "queue_name": "strict"},
  {"identifier": "last", "after": ["b"]},
  {"key": "x", "identifier": "stands"},
  {"key": "c", "identifier": "cancelled", "after": ["x"], "start_by": "2100-01-01"},
  {"identifier": "stays", "after": ["x"], "queue_name": "strict"},
  {"identifier": "last", "after": ["c"]},
  {"key": "y", "identifier": "completes"},
  {"key": "n", "identifier": "unneeded", "after": ["y"], "starts_when": "failed"}]') \g /dev/null
UPDATE pulse.job SET last_error = 'earlier', recovered = 'stalled', stage = 'first',
    progress = 0.25, message = 'words', last_activity_at = '2020-01-01', succession = 2
 WHERE identifier = 'below';
UPDATE pulse.job SET last_error = 'earlier' WHERE identifier = 'cancelled';
SELECT pulse.claim(:ann, 9) \g /dev/null
SELECT pulse.progress(j.id, j.token, checkpoint => '7') FROM pulse.job AS j
 WHERE j.identifier = 'fails' \g /dev/null
SELECT fails('fails'), fails('stands'), pulse.complete(j.id, j.token) FROM pulse.job AS j
 WHERE j.identifier = 'completes' \g /dev/null
SELECT pulse.sweep(), promote_queues() FROM generate_series(1, 2) \g /dev/null
UPDATE pulse.finished_job SET dead_letter_id = 4 WHERE identifier = 'fails';
INSERT INTO subject SELECT f.id, 'job' FROM pulse.finished_job AS f
 WHERE f.identifier IN ('fails', 'deadly', 'late', 'cancelled', 'unneeded');
INSERT INTO subject SELECT f.id, 'after' FROM pulse.finished_job AS f
 WHERE f.identifier = 'below';
SELECT is((SELECT string_agg(f.state::text, ' ' ORDER BY f.id) FROM pulse.finished_job AS f
            JOIN subject AS s USING (id)),
  'quarantined expired failed cancelled cancelled cancelled', 'given jobs of each such end');
SELECT is(do_and_undo('retry', '{}'), 'done 5 0, done 5 0', 'they are retried, and end again');
SELECT cells('retry');
SELECT is_empty('SELECT * FROM pulse.verify()', 'every promise is kept');

-- --- actions that are no operations -------------------------------------------------------------

SELECT refuses(format('SELECT pulse.start_operation(%L, ''{}'')', action), 'PU004',
               format('no operation %ss jobs, so none is to be undone', action))
  FROM unnest('{complete,requeue,remove,release,snooze}'::text[]) AS action;

SELECT * FROM finish();
ROLLBACK;
