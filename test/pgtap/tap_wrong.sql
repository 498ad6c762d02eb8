-- sql/tap: thirty applications that are wrong on purpose. Each makes one assertion fail, with
-- diagnostics of its own; the right application makes the same assertion pass.
\ir support/tap.psql
SELECT plan(67);

\o /dev/null
SELECT freeze();
CREATE TABLE ledger (entry int PRIMARY KEY);
-- What a right application does, in one call.
CREATE FUNCTION act() RETURNS void LANGUAGE sql AS $$ SELECT $$;
CREATE FUNCTION good(payload jsonb) RETURNS void
  LANGUAGE sql AS $$ INSERT INTO public.ledger VALUES ((payload ->> 'n')::int) $$;
CREATE FUNCTION bad(payload jsonb) RETURNS void
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no ink' USING DETAIL = 'tray 2'; END $$;
CREATE FUNCTION worse(payload jsonb) RETURNS void
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'on fire'; END $$;
CREATE FUNCTION lost_claim(how text) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  worker_id bigint := (pulse.register_worker('w')).id;
  job pulse.claimed_job;
BEGIN
  PERFORM pulse.set_task('slow', timeout => '1 min');
  PERFORM pulse.add_job('slow');
  SELECT * INTO job FROM pulse.claim(worker_id, 1, '{slow}');
  PERFORM pulse.fence(job.id, job.token);
  IF how = 'lost' THEN
    PERFORM pulse_tap.lose_worker(worker_id);
  ELSIF how = 'silent' THEN
    PERFORM pulse_tap.silence_worker(worker_id);
    PERFORM pulse.sweep();
  ELSIF how = 'timeout' THEN
    PERFORM pulse_tap.travel('61 s');
    PERFORM pulse.heartbeat(worker_id);
    PERFORM pulse.sweep();
  ELSIF how = 'requeued' THEN
    PERFORM pulse.requeue_job(job.id, 'by hand');
  ELSE
    PERFORM pulse.complete(job.id, job.token);
  END IF;
END $$;
SELECT pulse.set_task('print', handler => 'good(jsonb)', max_attempts => 2);
CREATE TEMP TABLE said (text text);
\o

-- How an assertion ends once the application has acted; all of it is undone.
CREATE FUNCTION outcome(application text, assertion text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  -- The number of the next test comes back with all else.
  PERFORM keep_sequences('__tresults___numb_seq');
  EXECUTE format('CREATE OR REPLACE FUNCTION public.act() RETURNS void LANGUAGE plpgsql AS '
                 '$act$ BEGIN %s END $act$', application);
  IF assertion NOT LIKE 'enqueues(%' THEN
    PERFORM act();
  END IF;
  EXECUTE 'SELECT ' || assertion INTO line;
  RAISE EXCEPTION USING MESSAGE = line, ERRCODE = 'TT000';
EXCEPTION WHEN SQLSTATE 'TT000' THEN
  RETURN SQLERRM;
END $$;

CREATE FUNCTION tells(
    what text, assertion text, right_one text, wrong_one text, diagnostics text)
  RETURNS SETOF text
  LANGUAGE plpgsql AS $$
DECLARE
  wrong_line text := outcome(wrong_one, assertion);
BEGIN
  RETURN NEXT alike(outcome(right_one, assertion), 'ok %', 'right: ' || what);
  INSERT INTO said VALUES (regexp_replace(wrong_line, '\d+', '', 'g'));
  RETURN NEXT matches(wrong_line, '^not ok .*' || diagnostics, 'wrong: ' || what);
END $$;

-- --- what is enqueued ---------------------------------------------------------------------------

SELECT tells('the job is added anyhow', $$job_added_once('print', 'k')$$,
  $$PERFORM pulse.add_job_once('1 h', 'k', 'print');$$, $$PERFORM pulse.add_job('print');$$,
  'no key of this task is remembered');
SELECT tells('under another key', $$job_added_once('print', 'k', 'd')$$,
  $$PERFORM pulse.add_job_once('1 h', 'k', 'print');$$,
  $$PERFORM pulse.add_job_once('1 h', 'l', 'print');$$, '''l'', job \d+, until');
SELECT tells('a period that is over', $$job_added_once('print', 'k', 'd')$$,
  $$PERFORM pulse.add_job_once('1 h', 'k', 'print');$$,
  $$PERFORM pulse.add_job_once('1 h', 'k', 'print'); PERFORM pulse_tap.travel('1 h');$$,
  'no period of this key lasts');
\set right 'PERFORM pulse.add_job(''print'', ''{"n": 1}'', ''q'');'
SELECT tells('nothing is added', $$job_enqueued('print')$$, :'right', 'NULL;',
  'there is no job');
SELECT tells('another task', $$job_enqueued('print', '{"n": 1}')$$, :'right',
  $$PERFORM pulse.add_job('pint', '{"n": 1}');$$, 'jobs of other tasks only: pint \(1\)');
SELECT tells('another payload', $$job_enqueued('print', '{"n": 1}', 'd')$$, :'right',
  $$PERFORM pulse.add_job('print', '{"n": 2}');$$, 'job \d+: print, due, payload \{"n": 2\}');
SELECT tells('a payload of text', $$job_enqueued('print', '{"n": 1}', 'd')$$, :'right',
  $$PERFORM pulse.add_job('print', '{"n": "1"}');$$, 'payload \{"n": "1"\}');
SELECT tells('another queue', $$job_enqueued('print', NULL, '{"queue_name": "q"}', 'd')$$, :'right',
  $$PERFORM pulse.add_job('print', queue_name => 'p');$$, 'queue p \(parked\)');
SELECT tells('another priority', $$job_enqueued('print', NULL, '{"priority": 0}', 'd')$$, :'right',
  $$PERFORM pulse.add_job('print', priority => 7);$$, 'priority 7');
SELECT tells('due too late',
  $$job_enqueued('print', NULL, jsonb_build_object('run_at', now()), 'd')$$, :'right',
  $$PERFORM pulse.add_job('print', run_at => now() + interval '1 hour');$$, 'due in 01:00:00');
SELECT tells('without the key',
  $$job_enqueued('print', NULL, '{"job_key": "k"}', 'd')$$,
  $$PERFORM pulse.add_job('print', job_key => 'k');$$,
  $$PERFORM pulse.add_job('print', job_key => 'K');$$, 'job_key K');
SELECT tells('too many attempts', $$job_enqueued('print', NULL, '{"max_attempts": 2}', 'd')$$,
  :'right', $$PERFORM pulse.add_job('print', max_attempts => 9);$$, 'attempts 0 of 9');
SELECT tells('without its flag', $$job_enqueued('print', NULL, '{"flags": ["night"]}', 'd')$$,
  $$PERFORM pulse.add_job('print', flags => '{night}');$$,
  $$PERFORM pulse.add_job('print', flags => '{day}');$$, 'flags \{day\}');
SELECT tells('a job too many', $$no_job_enqueued('print')$$, 'NULL;', :'right',
  'should not wait:.*job \d+: print');
SELECT tells('a job of any task', $$no_job_enqueued()$$, 'NULL;',
  $$PERFORM pulse.add_job('spy');$$, 'job \d+: spy');
SELECT tells('a job for this customer', $$no_job_enqueued('print', '{"n": 3}')$$, :'right',
  $$PERFORM pulse.add_job('print', '{"n": 3, "copies": 2}');$$, '"copies": 2');

-- --- what one statement enqueues ----------------------------------------------------------------

\set enqueues 'enqueues(''SELECT act()'', ''[{"identifier": "print", "payload": {"n": 1}}]'')'
SELECT tells('a statement adds nothing', :'enqueues', :'right', 'NULL;', 'it enqueued nothing');
SELECT tells('a statement adds it twice', :'enqueues', :'right', :'right' || :'right',
  'enqueued besides:.*job \d+: print');
SELECT tells('a statement adds another', :'enqueues', :'right',
  $$PERFORM pulse.add_job('prnt', '{"n": 1}');$$, 'should have enqueued:.*besides:.*prnt');
SELECT tells('a statement raises an error', :'enqueues', :'right', 'PERFORM 1 / 0;',
  'raised 22012: division by zero');
SELECT tells('a statement replaces a job by its key',
  $$enqueues('SELECT act()', '[{"identifier": "print", "payload": {"n": 1}}]')$$,
  $$PERFORM pulse.add_job('print', '{"n": 1}', job_key => 'k');$$,
  $$PERFORM pulse.add_job('print', '{"n": 5}', job_key => 'k'),
            pulse.add_job('print', '{"n": 6}', job_key => 'k');$$, 'payload \{"n": 6\}');

-- --- queues -------------------------------------------------------------------------------------

SELECT tells('a queue is too deep', $$queue_depth_is('q', 1)$$, :'right', :'right' || :'right',
  'have: 2.*want: 1');
SELECT tells('jobs in another queue', $$queue_depth_is('q', 1)$$, :'right',
  $$PERFORM pulse.add_job('print', queue_name => 'qq');$$, 'jobs wait elsewhere: qq \(1\)');

-- --- ends ---------------------------------------------------------------------------------------

\set drain 'PERFORM pulse_tap.drain();'
\set ended 'job_ended_as(''print'', ''completed'')'
SELECT tells('a task fails', :'ended', :'right' || :'drain',
  $$PERFORM pulse.set_task('print', handler => 'bad(jsonb)', max_attempts => 1);$$
    || :'right' || :'drain', 'ended as failed.*last error: P0001: no ink.*DETAIL: tray 2');
SELECT tells('a task is tried again', :'ended', :'right' || :'drain',
  $$PERFORM pulse.set_task('print', handler => 'worse(jsonb)');$$ || :'right' || :'drain',
  'has not ended:.*attempts 1 of 2, last error P0001: on fire');
SELECT tells('no handler is set', $$job_ended_as('scan', 'completed')$$,
  $$PERFORM pulse.set_task('scan', handler => 'good(jsonb)');
    PERFORM pulse.add_job('scan', '{"n": 4}');$$ || :'drain',
  $$PERFORM pulse.add_job('scan', '{"n": 4}');$$ || :'drain', 'its task has no handler');
SELECT tells('nothing of the kind was added', $$job_ended_as('print', 'completed')$$,
  :'right' || :'drain', :'drain', 'none that this test saw end');
SELECT tells('the error is another', $$job_failed_with('print', 'no ink')$$,
  $$PERFORM pulse.set_task('print', handler => 'bad(jsonb)');$$ || :'right' || :'drain',
  $$PERFORM pulse.set_task('print', handler => 'worse(jsonb)');$$ || :'right' || :'drain',
  'the errors are:.*on fire');
SELECT tells('no attempt failed', $$job_failed_with('print', 'no ink')$$,
  $$PERFORM pulse.set_task('print', handler => 'bad(jsonb)');$$ || :'right' || :'drain',
  :'right' || :'drain', 'none failed; all ended');

-- --- claims and schedules -----------------------------------------------------------------------

SELECT tells('a transaction outlives its claim', 'check_fences()',
  $$PERFORM lost_claim('not');$$, $$PERFORM lost_claim('lost');$$, 'attempt has ended as lost');
SELECT tells('a transaction takes too long', 'check_fences()',
  $$PERFORM lost_claim('not');$$, $$PERFORM lost_claim('timeout');$$, 'attempt has timed out');
SELECT tells('an operator took the job away', 'check_fences()',
  $$PERFORM lost_claim('not');$$, $$PERFORM lost_claim('requeued');$$,
  'attempt has ended as interrupted');
SELECT tells('a schedule in the wrong zone',
  $$next_runs_are('s', ARRAY['2031-01-01 05:00+00'::timestamptz])$$,
  $$PERFORM pulse_tap.travel('2031-01-01 00:00+00' - pulse.now()),
            pulse.schedule('s', 'print', '0 6 * * *', time_zone => 'Europe/Berlin');$$,
  $$PERFORM pulse_tap.travel('2031-01-01 00:00+00' - pulse.now()),
            pulse.schedule('s', 'print', '0 6 * * *');$$,
  'have:.*2031-01-01 06:00:00.*want:.*2031-01-01 05:00:00');

SELECT is(count(DISTINCT text), 33::bigint, 'no two wrong applications get the same diagnostics')
  FROM said;
SELECT * FROM finish();
ROLLBACK;
