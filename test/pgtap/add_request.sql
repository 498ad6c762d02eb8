-- add_job_for_request: what a repeated request gets, and that keys are of one client of one role.
\ir support/setup.psql
SELECT plan(35);

CREATE ROLE shop;
CREATE ROLE rival;
SELECT pulse.grant_producer('shop'), pulse.grant_producer('rival') \g /dev/null
GRANT shop, rival TO CURRENT_USER;

-- What a call as this role returns: the outcome, and of a replay the job.
CREATE FUNCTION outcome_of(role text, client text, key text, hash text DEFAULT 'hash',
                           task text DEFAULT 'mail')
  RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  answer record;
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', role);
  answer := pulse.add_job_for_request(client, key, hash, task);
  RESET ROLE;
  RETURN CASE answer.outcome WHEN 'replayed' THEN 'replayed ' || answer.job_id
           ELSE answer.outcome END;
END $$;
CREATE FUNCTION jobs_of(task text) RETURNS bigint
  LANGUAGE sql AS $$ SELECT count(*) FROM pulse.job WHERE identifier = task $$;

-- --- a repeated request -------------------------------------------------------------------------

SELECT is(outcome_of('shop', 'ada', 'order-17'), 'added', 'the first request adds a job');
SELECT max(id) AS first_job FROM pulse.job \gset
SELECT is(outcome_of('shop', 'ada', 'order-17'), 'replayed ' || :first_job,
  'the same once more gets that job');
SELECT is(outcome_of('shop', 'ada', 'order-17', 'other hash', 'bill'),
  'other_request', 'another request with this key is told so');
SELECT is(jobs_of('mail'), 1::bigint, 'one job was added');
SELECT is(jobs_of('bill'), 0::bigint, 'and none for the other request');
SELECT is(outcome_of('shop', 'ada', 'order-18'), 'added',
  'another key adds another job');

SELECT given_worker('ann') AS worker \gset
SELECT token FROM pulse.claim(:worker, 10) WHERE id = :first_job \gset
SELECT pulse.complete(:first_job, :token) \g /dev/null
SELECT is(outcome_of('shop', 'ada', 'order-17'), 'replayed ' || :first_job,
  'a job that has ended, and is not kept, is not added again');

-- --- whose key ----------------------------------------------------------------------------------

SELECT is(outcome_of('shop', 'bob', 'order-17', 'of bob', 'bill'), 'added',
  'another client of the role has keys of its own');
SELECT is(outcome_of('rival', 'ada', 'order-17', 'of rival', 'bill'),
  'added', 'so has another role, whatever client it names');
SELECT is(jobs_of('bill'), 2::bigint, 'and each has added its job');
SELECT is(outcome_of('shop', 'ada', 'order-17'), 'replayed ' || :first_job,
  'the key of the first is as it was');
SELECT refuses(format('SELECT * FROM pulse.%I', t), '42501', 'no producer reads the keys', 'rival')
  FROM unnest('{idempotency_key}'::text[]) AS t;
SELECT refuses($$SELECT pulse_internal.take_idempotency_key('shop', 'ada', 'order-17', 'x')$$,
  '42501', 'or takes one in the name of another role', 'rival');
SELECT refuses($$SELECT pulse_internal.keep_answer('shop', 'ada', 'order-17', 1, 'ready', now())$$,
  '42501', 'or changes what stands under one', 'rival');

-- A function that runs with the rights of its owner has the keys of its owner: it can neither take
-- nor try those of whoever calls it.
GRANT CREATE ON SCHEMA public TO rival;
SET LOCAL ROLE rival;
CREATE FUNCTION public.trap() RETURNS text LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT o.outcome FROM pulse.add_job_for_request('ada', 'order-99', 'of trap', 'trap') AS o $$;
RESET ROLE;
SET LOCAL ROLE shop;
SELECT public.trap() AS trapped \gset
RESET ROLE;
SELECT is(:'trapped'::text, 'added', 'a function of another role adds its job');
SELECT is((SELECT k.role FROM pulse.idempotency_key AS k WHERE k.key = 'order-99'), 'rival',
  'under a key of its owner');
SELECT is(outcome_of('shop', 'ada', 'order-99'), 'added',
  'which keeps no key of its caller');

-- --- with whose rights --------------------------------------------------------------------------

CREATE ROLE half;
GRANT half TO CURRENT_USER;
GRANT USAGE ON SCHEMA pulse TO half;
GRANT EXECUTE ON FUNCTION pulse.add_job_for_request TO half;
SELECT refuses($$SELECT pulse.add_job_for_request('ada', 'k', 'h', 'mail')$$, '42501',
  'a role that may not call add_job adds nothing this way either', 'half');
SELECT is_empty($$SELECT FROM pulse.idempotency_key WHERE role = 'half'$$, 'and takes no key');

-- --- refused adds -------------------------------------------------------------------------------

SELECT refuses($$SELECT pulse.add_job_for_request('ada', 'k', 'h', 'mail', max_attempts => 0)$$,
  'PU004', 'what add_job refuses is refused', 'shop');
SELECT is(outcome_of('shop', 'ada', 'k'), 'added',
  'and has taken no key: the request may be mended');
SELECT refuses(format('SELECT pulse.add_job_for_request(%s, ''mail'')', c.arguments), 'PU004',
               c.what, 'shop')
  FROM (VALUES ($$NULL, 'k', 'h'$$, 'a client must be named'),
               ($$'ada', NULL, 'h'$$, 'so must a key'),
               ($$'ada', 'k', NULL$$, 'and a hash'),
               ($$'ada', '', 'h'$$, 'an empty key is none'),
               ($$'ada', repeat('k', 256), 'h'$$, 'nor is one of 256 characters'))
       AS c (arguments, what);
SELECT is(outcome_of('shop', repeat(U&'\20AC', 255), repeat(U&'\20AC', 255)),
  'added', 'one of 255 characters is taken, of any alphabet');

-- --- beside a job_key ---------------------------------------------------------------------------

SELECT job_id AS keyed
  FROM pulse.add_job_for_request('ada', 'a', 'h', 'keyed', job_key => 'order') \gset
SELECT is((SELECT job_id FROM pulse.add_job_for_request('ada', 'b', 'h', 'keyed', '[2]',
             job_key => 'order')), :keyed::bigint, 'another request replaces the job of its key');
SELECT is((SELECT o.outcome || ' ' || o.job_id
             FROM pulse.add_job_for_request('ada', 'a', 'h', 'keyed',
             job_key => 'order') AS o), 'replayed ' || :keyed, 'which a repeated one does not');
SELECT is((SELECT payload::text FROM pulse.job WHERE id = :keyed), '[2]', 'as its payload shows');

-- --- age ----------------------------------------------------------------------------------------

SET LOCAL pulse.clock_offset = '23h';
SELECT is(pulse_internal.prune_by_age('pulse.idempotency_key', 'created_at',
            pulse_internal.retention(pulse_internal.setting_us('keep_idempotency_keys')), 100), 0,
  'keys are kept for a day');
SET LOCAL pulse.clock_offset = '25h';
SELECT is(outcome_of('shop', 'ada', 'order-17'), 'added',
  'then a key is free again, also where nobody has pruned');
SELECT count(*) AS keys FROM pulse.idempotency_key \gset
SELECT is(pulse_internal.prune(100), :keys - 1, 'the old ones are pruned');
SELECT is((SELECT string_agg(k.key, ' ') FROM pulse.idempotency_key AS k), 'order-17',
  'and no other');
SET LOCAL pulse.keep_idempotency_keys = -1;
SET LOCAL pulse.clock_offset = '250h';
SELECT is(pulse_internal.prune(100), 0, 'an age of -1 keeps keys for ever');

SELECT * FROM finish();
ROLLBACK;
