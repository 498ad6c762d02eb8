-- sql/queue/pause.sql: a pause changes no setting, whatever holds for the queue.
\ir support/setup.psql
SELECT plan(36);
SELECT given_worker() AS ann \gset

CREATE FUNCTION stored() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(s::text, ' ' ORDER BY s.queue_name) FROM pulse.queue_settings AS s
$$;
CREATE FUNCTION given_jobs(queue_name text, n int) RETURNS void
  LANGUAGE sql AS $$ SELECT given_job('mail', queue_name) FROM generate_series(1, n) $$;

-- --- a member keeps what holds for the members --------------------------------------------------

SELECT pulse.set_queue('mail/*', concurrency => 3, rate => 2, per => '1 h', burst => 2,
                       weight => 7) \g /dev/null
SELECT stored() AS before \gset
SELECT answers($$SELECT queue_name, concurrency, paused, rate, weight
                   FROM pulse.pause_queue('mail/a')$$, ROW('mail/a', 3, true, 2, 7),
  'pause_queue returns the settings that hold for a member');
SELECT answers($$SELECT concurrency, paused, rate FROM pulse.queue_settings
                  WHERE queue_name = 'mail/a'$$, ROW(3, true, 2), 'which queue_settings shows');
SELECT given_jobs('mail/a', 4), given_jobs('mail/b', 1);
SELECT promote_queues();
SELECT is((SELECT array_agg(queue_name) FROM pulse.claim(:ann, 10)), '{mail/b}',
  'the pause is for the member alone');
SELECT answers($$SELECT queue_name, concurrency, paused, rate, weight
                   FROM pulse.resume_queue('mail/a')$$, ROW('mail/a', 3, false, 2, 7),
  'resume_queue returns them too');
SELECT is(stored(), :'before', 'and nothing else is stored than before');
SELECT promote_queues();
SELECT is((SELECT count(*) FROM pulse.claim(:ann, 10)), 2::bigint,
  'the rate of the members holds after the pause');
SELECT is_empty('SELECT * FROM pulse.verify()', 'no promise is broken');
DELETE FROM pulse.job;

SELECT pulse.set_queue('ledger/*', strict => true, on_dead => 'pause') \g /dev/null
SELECT id AS first, token FROM given_claimed_job(:ann, 'mail', 'ledger/7') \gset
SELECT pulse.fail(:first, :token, 'boom') \g /dev/null
SELECT given_job('mail', 'ledger/7') AS behind \gset
SELECT pulse.pause_queue('ledger/7') \g /dev/null
SELECT pulse.resume_queue('ledger/7') \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:behind), 'parked', 'a strict member keeps its order over a pause');
SELECT travel('1 hour');
SELECT promote_queues();
SELECT is(claimed_ids(:ann, 5), ARRAY[:first]::bigint[], 'and the waiting one is first');
SELECT pulse.fail(:first, j.token, 'boom', retry => false) FROM pulse.job AS j
 WHERE j.id = :first \g /dev/null
SELECT promote_queues();
SELECT is(state_of(:behind), 'parked', 'and its end pauses the member still');
SELECT is((SELECT count(*) FROM pulse.queue WHERE queue_name LIKE 'ledger/7'), 0::bigint,
  'which has no settings of its own');
SELECT answers($$SELECT queue_name, is_strict FROM pulse.resume_queue('ledger/7')$$,
  ROW('ledger/7', true), 'resume_queue lets it go on');
SELECT travel('0');
DELETE FROM pulse.job;

-- --- set_queue ----------------------------------------------------------------------------------

SELECT answers($$SELECT paused, concurrency FROM pulse.set_queue('lone', paused => true)$$,
  ROW(true, 1), 'set_queue may pause a queue');
SELECT is_empty($$SELECT FROM pulse.queue WHERE queue_name = 'lone'$$, 'and stores no settings');
SELECT answers($$SELECT paused FROM pulse.set_queue('lone', paused => false)$$, ROW(false),
  'or resume it');
SELECT answers($$SELECT paused FROM pulse.set_queue('lone', paused => false)$$, ROW(false),
  'which changes nothing where it is not paused');
SELECT answers($$SELECT concurrency, paused FROM pulse.set_queue('both', 4, paused => true)$$,
  ROW(4, true), 'beside settings it stores both');
SELECT answers($$SELECT concurrency, paused FROM pulse.set_queue('both', 5)$$, ROW(5, true),
  'later settings leave the pause');
SELECT answers($$SELECT concurrency, paused FROM pulse.resume_queue('both')$$, ROW(5, false),
  'the end of the pause leaves the settings');
SELECT is(pulse.unset_queue('both'), true, 'unset_queue takes settings away');
SELECT pulse.pause_queue('both') \g /dev/null
SELECT is(pulse.unset_queue('both'), true, 'or a pause');
SELECT is((SELECT paused FROM pulse_internal.level_places_left('both')), false, 'which ends');
SELECT is(pulse.unset_queue('both'), false, 'once');

-- --- the pause of the members -------------------------------------------------------------------

SELECT pulse.set_queue('m/own', 5), pulse.pause_queue('m/held'), pulse.pause_queue('m/let'),
       pulse.resume_queue('m/let') \g /dev/null
CREATE FUNCTION paused_members() RETURNS text
  LANGUAGE sql AS $$
  SELECT string_agg(n, ' ' ORDER BY n)
    FROM unnest('{m,m/held,m/let,m/own,m/own/in,m/plain,m/plain/in}'::text[]) AS n
   WHERE (pulse_internal.level_places_left(n)).paused
$$;
SELECT is(paused_members(), 'm/held', 'given a member that is paused by name');
SELECT pulse.set_queue('m/*', paused => true) \g /dev/null
SELECT is(paused_members(), 'm/held m/own m/own/in m/plain m/plain/in',
  'a pause of the members holds for those that were neither paused nor resumed by name');
SELECT is_empty($$SELECT FROM pulse.queue WHERE queue_name = 'm/*'$$,
  'and gives the members no settings');
SELECT answers($$SELECT paused FROM pulse.resume_queue('m/plain')$$, ROW(false),
  'a member may be resumed by name');
SELECT is(paused_members(), 'm/held m/own m/own/in', 'it goes on then');
SELECT pulse.set_queue('m/*', paused => false) \g /dev/null
SELECT is(paused_members(), 'm/held', 'their resumption does not hold for one paused by name');
SELECT pulse.unset_queue('m/held') \g /dev/null
SELECT is(paused_members(), NULL, 'a pause ends with unset_queue');

-- --- what 0.1.0 stored --------------------------------------------------------------------------

INSERT INTO pulse.queue (queue_name, concurrency, paused) VALUES ('old', 4, true);
SELECT is(array_agg((pulse_internal.level_places_left(n)).paused ORDER BY n), '{t,f}',
  'a pause that 0.1.0 stored holds for its own name')
  FROM unnest('{old,old/in}'::text[]) AS n;
SELECT answers($$SELECT concurrency, paused FROM pulse.queue_settings WHERE queue_name = 'old'$$,
  ROW(4, true), 'and is shown');
SELECT answers($$SELECT concurrency, paused FROM pulse.resume_queue('old')$$, ROW(4, false),
  'until it is resumed');
SELECT is((SELECT paused FROM pulse_internal.level_places_left('old')), false, 'and goes on');

-- --- random sequences ---------------------------------------------------------------------------

-- A twin has each change of settings and no pause: both have the same settings in the end.
CREATE FUNCTION settings(name text) RETURNS jsonb
  LANGUAGE sql AS $$
  SELECT to_jsonb(s) - '{level,changed_at}'::text[] FROM pulse_internal.level_settings(name) AS s
   WHERE s.level = name
$$;
CREATE FUNCTION try_out(seed int) RETURNS SETOF text
  LANGUAGE plpgsql AS $$
DECLARE
  names CONSTANT text[] := '{p,p/*,p/a,p/b,p/b/*,p/b/c,p/d,p/d/e,p/b/d}';
  name text;
  twin text;
  change text;
BEGIN
  DELETE FROM pulse.queue;
  DELETE FROM pulse.queue_pause;
  PERFORM setseed(seed / 1000.0);
  FOR step IN 1 .. 40 LOOP
    name := names[1 + floor(random() * 6)::int];
    twin := 't' || substr(name, 2);
    change := (ARRAY['1 + %s', 'NULL, total => 1 + %s', 'NULL, rate => 1 + %s, per => ''1 h''',
                     '1, strict => true, weight => 1 + %s', 'NULL, burst => -1, rate => -1',
                     'strict => false, on_dead => ''continue'', concurrency => 1 + %s'])
              [1 + floor(random() * 6)::int];
    change := replace(change, '%s', floor(random() * 5)::text);
    CASE floor(random() * 5)::int
      WHEN 0 THEN PERFORM pulse.pause_queue(name);
      WHEN 1 THEN PERFORM pulse.set_queue(name, paused => random() < 0.5);
      WHEN 2 THEN
        IF random() < 0.3 THEN
          PERFORM pulse.unset_queue(name), pulse.unset_queue(twin);
        END IF;
      ELSE
        BEGIN
          EXECUTE format('SELECT pulse.set_queue(%L, %s %s), pulse.set_queue(%L, %s)', name, change,
                         CASE WHEN random() < 0.3 THEN ', paused => true' END, twin, change);
        EXCEPTION WHEN SQLSTATE 'PU004' THEN
          NULL;  -- neither of the two has it
        END;
    END CASE;
  END LOOP;
  RETURN QUERY
  SELECT format('seed %s: promotion sees another pause of %s', seed, n)
    FROM unnest(names) AS n
   WHERE (pulse_internal.level_places_left(n)).paused
         <> (SELECT bool_or(s.paused) FROM pulse_internal.level_settings(n) AS s);
  PERFORM pulse.set_queue(n, paused => false) FROM unnest(names) AS n WHERE n !~ 'd';
  RETURN QUERY
  SELECT format('seed %s: %s has other settings than its twin', seed, n)
    FROM unnest(names) AS n WHERE settings(n) <> settings('t' || substr(n, 2));
END $$;
SET client_min_messages = warning;
SELECT is_empty('SELECT b FROM generate_series(1, 60) AS seed, try_out(seed) AS b',
  'after random pauses and resumptions a queue has the settings that were set');
SELECT isnt_empty('SELECT FROM pulse.queue', 'and some were set');

SELECT * FROM finish();
ROLLBACK;
