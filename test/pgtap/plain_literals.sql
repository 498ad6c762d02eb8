-- A session may have standard_conforming_strings off: what functions say stays the same.
SET standard_conforming_strings = off;
SET escape_string_warning = off;
\ir support/setup.psql
SELECT plan(8);

SELECT given_worker() AS ann \gset
SELECT pulse.set_queue('mail/*', 3) \g /dev/null
SELECT given_job('mail', 'mail/x') FROM generate_series(1, 2) \g /dev/null
SELECT is((SELECT concurrency FROM pulse.set_queue('mail/*', 1)), 1, 'the members of a level');
SELECT promote_queues() \g /dev/null
SELECT is((SELECT count(*)::int FROM pulse.job WHERE state = 'ready'), 1, 'have their limit');
SELECT pulse.pause_queue('mail/*') \g /dev/null
SELECT is((SELECT count(*)::int FROM pulse.claim(:ann, 5)), 0, 'and their pause');
SELECT pulse.set_task('send', queue => 'tenant/{name|none}') \g /dev/null
SELECT is((SELECT queue_name FROM pulse.add_job('send', '{"name": "a/b"}')), 'tenant/a%2Fb',
  'a slash in a payload makes no level');
SELECT is((SELECT queue_name FROM pulse.add_job('send', '{"name": "a*b"}')), 'tenant/a%2Ab',
  'nor is an asterisk a name of all');
SELECT is((SELECT queue_name FROM pulse.add_job('send')), 'tenant/none', 'without the member');
SELECT throws_ok($$SELECT pulse.schedule('s', 'mail', every => '1 h', time_zone => 'Foo5')$$,
  'PU004', NULL, 'a zone that is none');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
