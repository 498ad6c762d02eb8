-- sql/structure/clock.sql: the wall clock, and the liveness clock that no outage and no step can
-- advance by more than a sweep interval and a quarter.
\ir support/setup.psql
SELECT plan(28);

SELECT expect_function('now', '', 'timestamp with time zone', 'volatile', 'invoker');

-- --- pulse.clock_offset -------------------------------------------------------------------------

SELECT cmp_ok(pulse.now() - clock_timestamp(), '<=', interval '1 min',
  'pulse.now() is the server''s clock');
SELECT travel('1 hour');
SELECT cmp_ok(pulse.now() - clock_timestamp(), '>=', interval '59 min',
  'pulse.clock_offset moves it on');
SELECT travel('-1 hour');
SELECT cmp_ok(pulse.now() - clock_timestamp(), '<=', interval '-59 min',
  'and back');
SELECT travel('0');
SELECT pulse_internal.live_now_us() AS live \gset
SELECT travel('1 hour');
SELECT cmp_ok(pulse_internal.live_now_us() - :live, '>=', 3600000000::bigint,
  'pulse.clock_offset moves the liveness clock too, unclamped');
SELECT cmp_ok(pulse_internal.live_base_us() - :live, '<', 3600000000::bigint,
  'what a sweep stores of the liveness clock is not moved');
SELECT is((pulse.add_job('mail')).run_at - transaction_timestamp(), interval '1 hour',
  'a job that is added then is due then');
SELECT travel('0');

-- --- the liveness clock (P6) ---------------------------------------------------------------------

-- The last tick as it would be if the server had been away, or its clock been set, since then.
CREATE FUNCTION last_tick_was(ago interval) RETURNS bigint
  LANGUAGE sql AS $$
  UPDATE pulse.clock SET last_tick = clock_timestamp() - ago,
    timeline = pulse_internal.current_timeline();
  SELECT max(vt_us) FROM pulse.clock;
$$;

SELECT last_tick_was('0') AS ticked \gset
SELECT pulse_internal.live_now_us() AS live \gset
SELECT
  cmp_ok(pulse_internal.live_now_us(), '>=', :live::bigint, 'the liveness clock does not go back');
SELECT last_tick_was('1 hour') AS ticked \gset
SELECT cmp_ok(pulse_internal.live_now_us() - :ticked, '<=', 6250000::bigint,
  'an hour of outage adds at most 1.25 times the sweep interval');
SELECT cmp_ok(pulse_internal.live_now_us() - :ticked, '>=', 0::bigint,
              'and never takes anything away');
SET LOCAL pulse.sweep_interval = '1s';
SELECT cmp_ok(pulse_internal.live_now_us() - :ticked, '<=', 1250000::bigint,
  'the bound follows the sweep interval');
SET LOCAL pulse.sweep_interval = -1;
SELECT cmp_ok(pulse_internal.live_now_us() - :ticked, '<=', 6250000::bigint,
  'there is a bound where nobody sweeps by himself');
SET LOCAL pulse.sweep_interval = '5s';
SELECT last_tick_was('-1 hour') AS ticked \gset
SELECT is(pulse_internal.live_now_us(), :ticked::bigint,
  'a clock that was set back stops the liveness clock and does not turn it back');
SELECT last_tick_was('3 s') AS ticked \gset
UPDATE pulse.clock SET timeline = timeline + 1;
SELECT is(pulse_internal.live_now_us(), :ticked::bigint, 'a new timeline adds nothing');

-- --- sweeps advance it --------------------------------------------------------------------------

SELECT last_tick_was('3 s') AS ticked, clock_timestamp() AS since \gset
SELECT lives_ok('SELECT pulse.sweep()', 'a sweep takes note of the time');
SELECT cmp_ok(max(vt_us), '>', :ticked::bigint, 'a sweep advances the liveness clock')
  FROM pulse.clock;
SELECT cmp_ok(max(last_tick), '>=', :'since'::timestamptz,
  'and stores when it did') FROM pulse.clock;
SELECT last_tick_was('1 hour') AS ticked \gset
SELECT cmp_ok((SELECT skipped_time FROM pulse.sweep()), '>=', interval '59 min',
  'the sweep after an outage tells the time that it left out');
SELECT is((SELECT skipped_time FROM pulse.sweep()), interval '0', 'the next one left nothing out');
SELECT cmp_ok(max(vt_us) - :ticked::bigint, '<=', 6250000::bigint,
  'a stored outage is as short as the bound') FROM pulse.clock;
SELECT id AS ended FROM pulse.register_worker('ended') \gset
SELECT last_tick_was('0') AS ticked \gset
UPDATE pulse.heartbeat SET detached_live_us = pulse_internal.live_now_us()
 WHERE worker_id = :ended
RETURNING detached_live_us AS stamped \gset
SELECT pulse.sweep();
SELECT cmp_ok(max(vt_us), '>=', :stamped::bigint,
  'a sweep stores the clock up to the stamped end of a session, so a restart does not go behind it')
  FROM pulse.clock;
SELECT last_tick_was('0') AS ticked \gset
UPDATE pulse.clock SET timeline = timeline - 1;
SELECT lives_ok('SELECT pulse.sweep()', 'a sweep runs on a new timeline');
SELECT is((SELECT timeline FROM pulse.clock ORDER BY vt_us DESC, last_tick DESC LIMIT 1),
  pulse_internal.current_timeline(), 'and takes it over');

SELECT * FROM finish();
ROLLBACK;
