-- sql/structure/settings.sql: the settings, their defaults and ranges, and the refusals that parts
-- share.
\ir support/setup.psql
SELECT plan(82);

SELECT expect_function('version', '', 'text', 'stable', 'invoker');
SELECT is(pulse.version(), (SELECT extversion FROM pg_extension WHERE extname = 'pg_pulse'),
  'the library has the version of the extension');

-- --- defaults -----------------------------------------------------------------------------------

CREATE FUNCTION default_of(short_name text) RETURNS interval
  LANGUAGE sql AS $$
  SELECT (boot_val || unit)::interval FROM pg_settings WHERE name = 'pulse.' || short_name
$$;
SELECT is(default_of(d.setting), d.value, format('%s is %s by default', d.setting, d.value))
  FROM (VALUES ('heartbeat_interval', interval '5 s'), ('sweep_interval', '5 s'),
               ('sweep_threshold', '20 s'), ('disconnect_grace', '2 s'), ('poll_interval', '1 s'),
               ('keep_completed', '0'), ('keep_attempts', '30 d'),
               ('keep_idempotency_keys', '1 d')) AS d (setting, value);
SELECT is((SELECT boot_val FROM pg_settings WHERE name = 'pulse.' || d.setting), d.value,
          format('%s is %L by default', d.setting, d.value))
  FROM (VALUES ('max_crashes', '3'), ('default_timeout', '-1'), ('keep_failed', '-1'),
               ('databases', ''), ('claims', 'on'), ('events', 'on'), ('host_check', 'on'),
               ('sweep_jobs', '1000'), ('enable_counters', 'on'),
               ('clock_offset', '0'), ('frozen_clock', '-1'))
       AS d (setting, value);

-- --- who may set them ---------------------------------------------------------------------------

SELECT is_empty(
  $$SELECT name FROM pg_settings
     WHERE name LIKE 'pulse.%' AND name <> 'pulse.traceparent'
       AND context NOT IN ('superuser', 'sighup', 'internal')$$,
  'only a superuser changes a setting, but for the trace of jobs');
SELECT is((SELECT context FROM pg_settings WHERE name = 'pulse.sweep_threshold'), 'superuser',
  'a setting can be set per database');
CREATE ROLE pulse_stranger;
SELECT refuses($$SET pulse.clock_offset = '1h'$$, '42501',
  'an ordinary user cannot move the clock', 'pulse_stranger');
SELECT refuses($$SET pulse.sweep_threshold = '1h'$$, '42501',
  'an ordinary user cannot change when workers are lost', 'pulse_stranger');

-- --- ranges and units ---------------------------------------------------------------------------

SELECT throws_ok(format('SET LOCAL pulse.%s = %L', s.setting, s.value), '22023', NULL,
                 format('%s cannot be %s', s.setting, s.value))
  FROM (VALUES ('heartbeat_interval', '0'), ('heartbeat_interval', '-1'),
               ('heartbeat_interval', '-5s'), ('heartbeat_interval', '100d'),
               ('heartbeat_interval', 'often'), ('heartbeat_interval', '5 lightyears'),
               ('sweep_interval', '0'), ('sweep_interval', '-2'), ('sweep_interval', '100d'),
               ('sweep_threshold', '0'), ('sweep_threshold', '-1'),
               ('sweep_jobs', '0'), ('sweep_jobs', '1000001'),
               ('disconnect_grace', '-2'), ('default_timeout', '0'), ('default_timeout', '-2'),
               ('poll_interval', '0'), ('poll_interval', '-1'),
               ('max_crashes', '-2'), ('max_crashes', 'none'),
               ('keep_completed', '-2'), ('keep_failed', '-2'), ('keep_attempts', '-2'),
               ('keep_idempotency_keys', '-2'),
               ('claims', 'perhaps'), ('clock_offset', 'tomorrow')) AS s (setting, value);
SELECT lives_ok(format('SET LOCAL pulse.%s = %L', s.setting, s.value),
                format('%s can be %s', s.setting, s.value))
  FROM (VALUES ('heartbeat_interval', '200ms'), ('heartbeat_interval', '1min'),
               ('sweep_interval', '-1'), ('sweep_interval', '200ms'), ('sweep_threshold', '2min'),
               ('disconnect_grace', '0'), ('disconnect_grace', '-1'), ('default_timeout', '1h'),
               ('default_timeout', '-1'), ('max_crashes', '-1'), ('max_crashes', '1'),
               ('keep_completed', '1d'), ('keep_completed', '-1'), ('keep_failed', '30d'),
               ('keep_attempts', '0'), ('keep_idempotency_keys', '0'),
               ('clock_offset', '-1h'), ('clock_offset', '90'),
                ('claims', 'off'), ('events', 'off'), ('host_check', 'off'), ('sweep_jobs', '10'))
       AS s (setting, value);
SELECT CASE WHEN current_setting('server_version_num')::int < 150000
  THEN skip('a server before 15 takes any name with a dot')
  ELSE throws_ok($$SET LOCAL pulse.sweep_treshold = '5s'$$, '42602', NULL,
    'a misspelt setting is refused') END;
SET LOCAL pulse.heartbeat_interval = '90s';
SELECT is(current_setting('pulse.heartbeat_interval'), '90s', 'a setting is shown with its unit');
SELECT is((SELECT (pulse.register_worker('ann', heartbeat_interval => '1 s')).heartbeat_interval),
  interval '1 s', 'a worker''s own interval goes before the setting');

SELECT is_empty(
  $$SELECT name FROM pg_settings WHERE name LIKE 'pulse.%' AND short_desc !~ '^[A-Z].*\.$'$$,
  'every setting is described by a sentence');

SELECT * FROM finish();
ROLLBACK;
