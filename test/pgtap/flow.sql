-- sql/flow/add_flow.sql and sql/flow/order.sql: add_flow adds all jobs or none, in an order that
-- its waits allow; add_dependency lets a batch grow; cancel_flow ends what is left.
\ir support/setup.psql
SELECT plan(68);

SELECT given_worker('ann') AS ann \gset

CREATE FUNCTION refused(jobs text, problem text) RETURNS text LANGUAGE sql AS $$
  SELECT throws_like(format('SELECT * FROM pulse.add_flow(%L)', jobs), problem, problem) $$;
CREATE FUNCTION starts() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(c.identifier, ' ' ORDER BY c.identifier)
    FROM pulse.worker AS w, pulse.claim(w.id, 100) AS c $$;
CREATE FUNCTION completes(task text) RETURNS void LANGUAGE sql AS $$
  SELECT pulse.complete(j.id, j.token) FROM pulse.job AS j
   WHERE j.identifier = task AND j.state = 'running' $$;

-- --- a flow -------------------------------------------------------------------------------------

SELECT id AS before FROM pulse.add_job('before') \gset
CREATE TEMP TABLE added AS SELECT * FROM pulse.add_flow(format('[
  {"key": "last", "identifier": "last", "after": ["left", "right", "left"]},
  {"key": "left", "identifier": "left", "after": ["first"], "priority": 7, "payload": [1],
   "flags": ["f"], "max_attempts": 3, "job_key": "k", "queue_name": "q",
   "run_at": "2020-01-01 00:00Z", "start_by": "2100-01-01 00:00Z"},
  {"key": "right", "identifier": "right", "after": ["first", %s], "starts_when": "ended"},
  {"key": "first", "identifier": "first"},
  {"identifier": "apart", "after": null, "payload": null}]', :before)::json, 'a diamond');
SELECT results_eq('SELECT key FROM added', $$VALUES ('last'), ('left'), ('right'), ('first'),
  (NULL)$$, 'the ids come in the order of the call');
SELECT results_eq(
  $$SELECT j.identifier::text COLLATE "default", j.state::text, j.starts_when
      FROM pulse.job AS j ORDER BY j.id$$,
  $$VALUES ('before', 'ready', NULL), ('first', 'ready', NULL), ('apart', 'ready', NULL),
           ('left', 'parked', 'completed'), ('right', 'parked', 'ended'),
           ('last', 'parked', 'completed')$$, 'each job is added after those that it waits for');
SELECT results_eq(
  $$SELECT c.key, coalesce(p.key, 'before') FROM pulse.waiting_for AS w
      JOIN added AS c ON c.id = w.job_id LEFT JOIN added AS p ON p.id = w.parent_id
     ORDER BY 1, 2$$,
  $$VALUES ('last', 'left'), ('last', 'right'), ('left', 'first'), ('right', 'before'),
           ('right', 'first')$$, 'and waits for the jobs that were named');
SELECT results_eq(
  $$SELECT priority::int, payload::text, flags, max_attempts::int,
           job_key::text COLLATE "default", queue_name::text COLLATE "default",
           run_at, start_by FROM pulse.job WHERE identifier = 'left'$$,
  $$VALUES (7, '[1]', '{f}'::text[], 3, 'k', 'q', '2020-01-01 00:00Z'::timestamptz,
            '2100-01-01 00:00Z'::timestamptz)$$, 'with all that was said of it');
SELECT is((SELECT payload::text FROM pulse.job WHERE identifier = 'apart'), '{}',
  'without a payload it has the default');
SELECT is((SELECT count(DISTINCT flow_id)::int FROM added), 1, 'all are one flow');
SELECT results_eq('SELECT name, jobs, waiting, running, completed FROM pulse.flows',
  $$VALUES ('a diamond', 5::bigint, 5::bigint, 0::bigint, 0::bigint)$$, 'which a view counts');
SELECT is((SELECT count(*)::int FROM pulse.waiting_for WHERE flow_id IS NOT NULL), 5,
  'and waiting_for names');
SELECT is(starts(), 'apart before first', 'what waits for nothing starts');
SELECT completes('first') \g /dev/null
SELECT is(starts(), 'left', 'then what waited for that alone');
SELECT completes('before'), completes('left') \g /dev/null
SELECT is(starts(), 'right', 'then what waited for an older job too');
SELECT pulse.fail(id, token, 'no', retry => false) FROM pulse.job WHERE identifier = 'right'
 \g /dev/null
SELECT is(starts(), NULL, 'what waited for a job that failed does not');
SELECT results_eq(
  'SELECT waiting, running, completed, failed, cancelled FROM pulse.flows',
  'VALUES (0::bigint, 1::bigint, 2::bigint, 1::bigint, 1::bigint)', 'each end is counted');
SELECT is((SELECT last_finished_at FROM pulse.flows), (SELECT max(finished_at)
  FROM pulse.finished_job), 'with the time of the last one');
SAVEPOINT counted;
UPDATE pulse.finished_job SET state = 'quarantined' WHERE identifier = 'right';
SELECT is((SELECT failed FROM pulse.flows), 1::bigint, 'a quarantined job counts as failed');
UPDATE pulse.finished_job SET state = 'expired' WHERE identifier = 'right';
SELECT is((SELECT failed FROM pulse.flows), 1::bigint, 'and so does an expired one');
ROLLBACK TO counted;

SELECT is_empty($$SELECT * FROM pulse.add_flow('[]')$$, 'a flow of no job is none');
SELECT is((SELECT count(*)::int FROM pulse.add_flow('[{"identifier": "one"}]')), 1,
  'a flow may have one job');
SELECT is((SELECT name FROM pulse.flows ORDER BY id DESC LIMIT 1), NULL, 'and no name');
SELECT is((SELECT count(DISTINCT id)::int FROM pulse.add_flow(
    '[{"identifier": "x", "job_key": "k"}, {"identifier": "y", "job_key": "k"}]')), 1,
  'of two jobs with one job key the last one wins');
SELECT is((SELECT count(*)::int FROM pulse.job WHERE identifier = 'y'), 1, 'and is there once');

-- --- what is refused ----------------------------------------------------------------------------

CREATE TEMP TABLE jobs_before AS SELECT count(*) AS many FROM pulse.job;
SELECT refused('[{"key": "a", "identifier": "a", "after": ["b"]},
  {"key": "b", "identifier": "b", "after": ["c"]},
  {"key": "c", "identifier": "c", "after": ["b"]}]',
  'jobs of the flow wait for each other');
SELECT throws_matching($$SELECT pulse.add_flow(
  '[{"key": "a", "identifier": "a", "after": ["a"]}]')$$, 'wait for each other', 'also for itself');
SELECT refused('[{"identifier": "a", "after": ["nobody"]}]',
  'job number 1 waits for ''nobody'', which is neither a key%');
SELECT refused('[{"identifier": "a", "after": [null]}]', 'job number 1 waits for null%');
SELECT refused('[{"identifier": "a", "after": [1.5]}]', 'job number 1 waits for ''1.5''%');
SELECT refused('[{"identifier": "a", "after": "b"}]', 'job number 1: after must be an array');
SELECT refused('[{"identifier": "a", "after": 17}]', 'job number 1: after must be an array');
SELECT refused('[{"identifier": "b"}, {"key": 1, "identifier": "a"}]',
  'job number 2: key must be a string');
SELECT matches((refusal_of(format(
    $$SELECT pulse.add_flow('[{"identifier": "a", "after": ["%s"]}]')$$, :before))).hint,
  'write \[17\]', 'an id in quotes is refused with the way to write it');
SELECT refused('[{"identifier": "a", "after": [17592186044415]}]',
  'job 17592186044415 was never added');
SELECT refused('[{"identifier": "a", "after": [9007199254740991]}]',
  'job 9007199254740991 is of shard 511');
SELECT refused('[{"identifier": "a"}, 3]', 'job number 2 is no object');
SELECT refused('{"identifier": "a"}', 'jobs must be an array of objects');
SELECT refused('null', 'jobs must be an array of objects');
SELECT throws_ok('SELECT pulse.add_flow(NULL)', 'PU004', NULL, 'NULL is no flow');
SELECT refused('[{"identifier": "a", "prio": 1}]', 'job number 1 has an unknown member ''prio''');
SELECT refused('[{"key": "a", "identifier": "a"}, {"key": "a", "identifier": "b"}]',
  'two jobs have the key ''a''');
SELECT refused('[{"identifier": "b"}, {"key": "a"}]', 'job number 2: identifier must not be null');
SELECT refused('[{"identifier": "a", "priority": "high"}]', 'job number 1: invalid input syntax%');
SELECT refused('[{"identifier": "a", "start_by": "soon"}]', 'job number 1: invalid input syntax%');
SELECT refused('[{"identifier": "b"}, {"identifier": "a", "start_by": "-infinity"}]',
  'job number 2: start_by is -infinity, which is no time');
SELECT refused('[{"identifier": "a", "starts_when": "soon"}]',
  'job number 1: starts_when ''soon'' is not known');
SELECT refused('[{"identifier": "a", "job_key_mode": "x"}]',
  'job number 1: job_key_mode ''x'' is not known');
SELECT is((SELECT count(*) FROM pulse.job), (SELECT many FROM jobs_before),
  'a refused flow adds no job');

-- --- jobs with keys -----------------------------------------------------------------------------

DELETE FROM pulse.job;
DELETE FROM pulse.dependency;
CREATE FUNCTION waits() RETURNS TABLE (child text, parents text) LANGUAGE sql AS $$
  SELECT w.identifier, string_agg(w.parent_identifier, ' ' ORDER BY w.parent_identifier)
    FROM pulse.waiting_for AS w GROUP BY w.identifier ORDER BY w.identifier $$;
CREATE FUNCTION chain_of_keys() RETURNS SETOF bigint LANGUAGE sql AS $$
  SELECT id FROM pulse.add_flow('[{"key": "1", "identifier": "one", "job_key": "k1"},
    {"key": "2", "identifier": "two", "job_key": "k2", "after": ["1"]},
    {"key": "3", "identifier": "three", "job_key": "k3", "after": ["2"]}]') $$;
CREATE TEMP TABLE chain AS SELECT chain_of_keys() AS id;
SELECT results_eq('SELECT chain_of_keys()', 'TABLE chain',
  'the same flow of keys once more replaces its jobs');
SELECT results_eq('SELECT * FROM waits()', $$VALUES ('three', 'two'), ('two', 'one')$$,
  'and they wait as before');
SELECT refused('[{"identifier": "one", "job_key": "k1", "after": ["3"]},
  {"key": "3", "identifier": "three", "job_key": "k3", "job_key_mode": "unsafe_dedupe"}]',
  'job % would wait for itself');
SELECT refused(format('[{"identifier": "one", "job_key": "k1", "after": [%s]}]', max(id)),
  'job % would wait for itself') FROM chain;
SELECT refused('[{"key": "a", "identifier": "a", "job_key": "twice"},
  {"key": "b", "identifier": "b", "after": ["a"]},
  {"identifier": "c", "job_key": "twice", "after": ["b"]}]', 'job % would wait for itself');
SELECT pulse.add_flow('[{"key": "p", "identifier": "p"}, {"key": "q", "identifier": "q"},
  {"identifier": "replaced", "job_key": "last", "after": ["p"]},
  {"identifier": "last", "job_key": "last", "after": ["q"], "starts_when": "ended"},
  {"identifier": "first", "job_key": "first", "after": ["p"], "start_by": "2100-01-01 00:00Z"},
  {"identifier": "left out", "job_key": "first", "after": ["q"],
   "job_key_mode": "unsafe_dedupe", "start_by": "2099-01-01 00:00Z"}]') \g /dev/null
SELECT results_eq('SELECT * FROM waits()',
  $$VALUES ('first', 'p'), ('last', 'q'), ('three', 'two'), ('two', 'one')$$,
  'of two jobs with one key one waits, for its own parents');
SELECT results_eq(
  $$SELECT identifier COLLATE "default", starts_when, start_by FROM pulse.job
     WHERE identifier IN ('first', 'last') ORDER BY 1$$,
  $$VALUES ('first', 'completed', '2100-01-01 00:00Z'::timestamptz), ('last', 'ended', NULL)$$,
  'as is said of it');

-- --- jobs that are written by statements --------------------------------------------------------

DELETE FROM pulse.job;
DELETE FROM pulse.dependency;
CREATE FUNCTION shouts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.payload := '"seen"';
  RETURN NEW;
END $$;
CREATE TRIGGER shouts BEFORE INSERT ON pulse.job FOR EACH ROW EXECUTE FUNCTION shouts();
SELECT pulse.add_flow('[{"key": "1", "identifier": "one"},
  {"identifier": "two", "after": ["1"], "start_by": "2100-01-01 00:00Z"}]') \g /dev/null
SELECT results_eq(
  $$SELECT identifier COLLATE "default", payload::text, state::text, starts_when, keeps_result,
           start_by FROM pulse.job ORDER BY id$$,
  $$VALUES ('one', '"seen"', 'ready', NULL, true, NULL::timestamptz),
           ('two', '"seen"', 'parked', 'completed', NULL, '2100-01-01 00:00Z')$$,
  'a trigger of others sees each job of a flow');
DROP TRIGGER shouts ON pulse.job;

-- --- add_dependency -----------------------------------------------------------------------------

DELETE FROM pulse.job;
DELETE FROM pulse.dependency;
SELECT id AS last FROM pulse.add_job('last', queue_name => 'q') \gset
SELECT id AS member FROM pulse.add_job('member') \gset
SELECT pulse.add_dependency(:last, ARRAY[:member]) \g /dev/null
SELECT is(starts(), 'member', 'a job waits for one that was added later');
SELECT id AS other FROM pulse.add_job_after(ARRAY[:member], 'other') \gset
SELECT pulse.add_dependency(:last, ARRAY[:other]) \g /dev/null
SELECT results_eq(format('SELECT parent_identifier FROM pulse.waiting_for WHERE job_id = %s
  ORDER BY parent_id', :last), $$VALUES ('member' COLLATE "C"), ('other')$$,
  'a later call adds to those for which it waits');
SELECT completes('member') \g /dev/null
SELECT is(starts(), 'other', 'and for more while it waits');
SELECT refuses(format('SELECT pulse.add_dependency(%s, ARRAY[%s])', :other, :last), 'PU004',
  'a job that was claimed waits for no more');
SELECT completes('other') \g /dev/null
SELECT is(starts(), 'last', 'it starts after all of them');
SELECT id AS young FROM pulse.add_job('young') \gset
SELECT id AS after_young FROM pulse.add_job_after(ARRAY[:young], 'after young') \gset
SELECT id AS target FROM pulse.add_job('target') \gset
SELECT refuses(format('SELECT pulse.add_dependency(%s, ARRAY[%s])', :target, :after_young), 'PU004',
  'a job that waits for an older one is refused');
SELECT refuses(format('SELECT pulse.add_dependency(%s, ARRAY[%s])', :target, :target), 'PU004',
  'so is the job itself');

-- --- cancel_flow --------------------------------------------------------------------------------

DELETE FROM pulse.job;
DELETE FROM pulse.dependency;
SELECT min(flow_id) AS flow FROM pulse.add_flow('[{"key": "a", "identifier": "a"},
  {"key": "b", "identifier": "b", "after": ["a"]}]') \gset
SELECT id AS outside FROM pulse.add_job_after(ARRAY(SELECT job_id FROM pulse.flow_job
  WHERE flow_id = :flow), 'outside') \gset
SELECT starts() \g /dev/null
SELECT is(pulse.cancel_flow(:flow, 'why'), 2, 'cancel_flow cancels each live job of the flow');
SELECT is((SELECT string_agg(identifier || ' ' || coalesce(cancel_reason, ''), ', ' ORDER BY id)
             FROM pulse.job), 'a why, outside ', 'the running one is asked, others are not');
SELECT refuses('SELECT pulse.cancel_flow(-1)', 'PU005', 'an unknown flow is refused');

-- --- a job of another flow -----------------------------------------------------------------------

SELECT flow_id AS flow FROM pulse.add_flow('[{"key": "mine", "identifier": "mail",
  "job_key": "shared"}]', 'one') \gset
SELECT id AS shared FROM pulse.add_flow('[{"key": "other", "identifier": "mail",
  "job_key": "shared", "job_key_mode": "unsafe_dedupe"}]', 'two') \gset
SELECT is((SELECT ROW(flow_id, key)::text FROM pulse.flow_job WHERE job_id = :shared),
  format('(%s,mine)', :flow), 'a job that stays as it is stays in its flow');
SELECT flow_id AS flow FROM pulse.add_flow('[{"key": "other", "identifier": "mail",
  "job_key": "shared"}]', 'three') \gset
SELECT is((SELECT ROW(flow_id, key)::text FROM pulse.flow_job WHERE job_id = :shared),
  format('(%s,other)', :flow), 'one that is replaced belongs to the newer flow');

SELECT throws_like($$SELECT pulse.add_flow((
    SELECT json_agg(json_build_object('key', 'k' || n, 'identifier', 'mail',
                                      'after', ARRAY['k' || (n + 1) % 300]))
      FROM generate_series(0, 299) AS n))$$, '%wait for each other', 'a long circle is refused');
SELECT matches((refusal_of($$SELECT pulse.add_flow((
    SELECT json_agg(json_build_object('key', 'k' || n, 'identifier', 'mail',
                                      'after', ARRAY['k' || (n + 1) % 300]))
      FROM generate_series(0, 299) AS n))$$)).detail,
  '^Each waits for the next: (''k[0-9]+'', ){100}[.]{3}[.]$',
  'its first hundred jobs are told');

SELECT refuses($$SELECT pulse.add_flow('[{"identifier": "mail"}]', repeat('x', 513))$$, 'PU004',
  'the name of a flow has an end');

SELECT * FROM finish();
ROLLBACK;
