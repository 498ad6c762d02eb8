-- The tests of the shop, as an application has them: pg_prove -d DATABASE shop_test.sql
\set QUIET on
\set ON_ERROR_STOP on
\pset format unaligned
\pset tuples_only on
BEGIN;
SET LOCAL client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_pulse_tap CASCADE;
SET LOCAL search_path = public, pulse_tap;
\o /dev/null
SELECT freeze();
\ir shop.sql
\o
SELECT plan(24);

-- --- what a purchase enqueues -------------------------------------------------------------------

SELECT enqueues($$SELECT shop.buy('ann', 20)$$, '[
    {"identifier": "shop/receipt", "payload": {"purchase": 1}, "queue_name": "mail/ann"},
    {"identifier": "shop/remind", "payload": {"purchase": 1}, "job_key": "remind 1"},
    {"identifier": "shop/charge", "payload": {"purchase": 1, "total": 20}, "max_attempts": 2}]',
  'a purchase enqueues a receipt, a reminder and a charge');
SELECT job_enqueued('shop/remind', '{"purchase": 1}',
                    jsonb_build_object('run_at', now() + interval '3 days'),
                    'the reminder comes in three days');
SELECT queue_depth_is('mail/ann', 1, 'the receipt waits behind ann''s other mail');

-- --- tasks that are functions -------------------------------------------------------------------

SELECT results_eq('SELECT identifier, state FROM drain()',
  $$VALUES ('shop/receipt', 'completed')$$, 'only the receipt is due');
SELECT results_eq('SELECT kind FROM shop.mail', $$VALUES ('receipt')$$, 'it is sent');
SELECT job_ended_as('shop/receipt', 'completed', 'and its job has completed');

-- --- time ---------------------------------------------------------------------------------------

SELECT is(travel('3 days'), now() + interval '3 days', 'three days later');
SELECT set_eq('SELECT identifier, state FROM drain()',
  $$VALUES ('shop/remind', 'completed'), ('shop/report', 'completed')$$,
  'the reminder is sent, and the report of the last night is made');
SELECT lives_ok($$SELECT shop.buy('bob', 5), shop.pay(2)$$, 'bob buys and pays');
SELECT no_job_enqueued('shop/remind', '{"purchase": 2}', 'who has paid is not reminded');

-- --- errors -------------------------------------------------------------------------------------

SELECT lives_ok($$SELECT shop.buy('eve', 7, NULL)$$, 'eve gives no address');
SELECT results_eq($$SELECT state FROM drain() WHERE error IS NOT NULL$$, $$VALUES ('parked')$$,
  'her receipt fails, and waits for its next attempt');
SELECT job_failed_with('shop/receipt', 'purchase 3 has no address', 'the error says why');
SELECT is(travel('1 hour') > now(), true, 'an hour is beyond the backoff');
SELECT isnt_empty('SELECT * FROM drain()', 'the second attempt');
SELECT is(travel('1 hour') > now(), true, 'another hour');
SELECT isnt_empty('SELECT * FROM drain()', 'the last attempt');
SELECT job_ended_as('shop/receipt', 'failed', 'after three attempts the receipt has failed');

-- --- a task in another language, played by a function -------------------------------------------

CREATE FUNCTION shop.declined(payload jsonb) RETURNS void
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'card declined'; END $$;
SELECT (SELECT min(id) FROM pulse.job WHERE identifier = 'shop/charge') AS charge \gset
SELECT is(run_job(:charge, 'shop.declined(jsonb)'), 'ready', 'a declined charge is tried again');
SELECT job_failed_with(:charge, 'card declined', 'and says why');

-- --- a worker that dies -------------------------------------------------------------------------

SELECT is(travel('1 hour') > now(), true, 'the charge is due again');
SELECT (pulse.register_worker('payments', '{shop/charge}')).id AS worker \gset
SELECT count(*) AS held FROM pulse.claim(:worker, 10) \gset
SELECT is(lose_worker(:worker), :held, 'a worker dies over its charges');
SELECT job_ended_as(:charge, 'failed', 'which is not tried a third time');

-- --- schedules ----------------------------------------------------------------------------------

SELECT next_runs_are('shop report', ARRAY[
    ((pulse.now() AT TIME ZONE 'Europe/Berlin' - interval '6:30')::date + 1 + time '6:30')
      AT TIME ZONE 'Europe/Berlin'], 'the report is made at half past six in Berlin');

SELECT * FROM finish();
ROLLBACK;
