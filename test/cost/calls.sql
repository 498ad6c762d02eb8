-- What single calls log: each is made many times, in a transaction of its own, and the mean counts.

-- Statements in turn, over and over. The first rounds fill caches and are not measured.
CREATE PROCEDURE cost.repeat(statements text[], rounds int, INOUT marks pg_lsn[])
  LANGUAGE plpgsql AS $$
DECLARE
  statement text;
BEGIN
  FOR i IN -9 .. rounds LOOP
    IF i = 1 THEN
      marks := ARRAY[cost.place()];
    END IF;
    FOREACH statement IN ARRAY statements LOOP
      EXECUTE statement;
      COMMIT;
      marks := marks || cost.place();
    END LOOP;
  END LOOP;
  CALL cost.flush();
END $$;

CREATE PROCEDURE cost.note_calls(names text[], marks pg_lsn[], jobs int = 1)
  LANGUAGE plpgsql AS $$
DECLARE
  calls int := (cardinality(marks) - 1) / cardinality(names);
BEGIN
  FOR i IN 1 .. cardinality(names) LOOP
    CONTINUE WHEN names[i] IS NULL;
    PERFORM cost.note(names[i] || '_wal', w.bytes / calls / jobs),
            cost.note(names[i] || '_records', w.records / calls / jobs)
       FROM cost.of_calls(marks, i, cardinality(names)) AS w;
  END LOOP;
END $$;

CREATE PROCEDURE cost.measure(
    names text[], statements text[], rounds int = 100, jobs int = 1)
  LANGUAGE plpgsql AS $$
DECLARE
  marks pg_lsn[];
BEGIN
  CALL cost.repeat(statements, rounds, marks);
  CALL cost.note_calls(names, marks, jobs);
END $$;

-- The claims go from one statement to the next in settings of the session, which are not logged.
CREATE FUNCTION cost.claim(most int) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('SELECT set_config(''cost.ids'', array_agg(id)::text, false),
                        set_config(''cost.tokens'', array_agg(token)::text, false)
                   FROM pulse.claim(current_setting(''cost.worker'')::bigint, %s)', most);
$$;

CREATE FUNCTION cost.add_jobs(count int, queue_name text = NULL) RETURNS text
  LANGUAGE sql AS $$
  SELECT format('SELECT pulse.add_jobs(%L)', cost.jobs(count, queue_name => queue_name));
$$;

SELECT set_config('cost.worker', cost.worker()::text, false);
SELECT $$SELECT pulse.complete_many(current_setting('cost.ids')::bigint[],
                                    current_setting('cost.tokens')::bigint[])$$ AS complete_many,
       $$SELECT pulse.complete((current_setting('cost.ids')::bigint[])[1],
                               (current_setting('cost.tokens')::bigint[])[1])$$ AS complete,
       $$SELECT pulse.heartbeat(current_setting('cost.worker')::bigint,
                                current_setting('cost.ids')::bigint[])$$ AS heartbeat,
       $$SELECT set_config('cost.worker', cost.worker()::text, false)$$ AS register,
       $$SELECT pulse.declare_lost(current_setting('cost.worker')::bigint,
                                   'gone')$$ AS declare_lost,
       $$SELECT pulse.fail_many(current_setting('cost.ids')::bigint[],
                                current_setting('cost.tokens')::bigint[],
                                array_fill('broken'::text, '{100}'))$$ AS fail_many,
       $$SELECT pulse.add_job('no_op', '{"n": 1}')$$ AS add,
       $$SELECT pulse.add_job('no_op', '{"n": 1}', job_key => 'key')$$ AS keyed_add,
       $$SELECT pulse.remove_job('key')$$ AS remove \gset
\set forget 'TRUNCATE pulse.job, pulse.claim_batch'

-- One job at a time.
CALL cost.measure('{add_1, claim_1, complete_many_1}',
                  ARRAY[:'add', cost.claim(1), :'complete_many']);
CALL cost.measure('{NULL, NULL, complete_1}', ARRAY[:'add', cost.claim(1), :'complete']);
CALL cost.measure('{keyed_add, keyed_replace, keyed_remove}',
                  ARRAY[:'keyed_add', :'keyed_add', :'remove']);
CALL cost.measure('{claim_0}', ARRAY[cost.claim(100)]);

-- As many queues as one claim opens, and one queue of many.
CALL cost.measure('{queued_add, queued_claim, queued_complete}',
                  ARRAY[cost.add_jobs(32, 'queue %s'), cost.claim(32), :'complete_many'], 10, 32);
CALL cost.measure('{NULL}', ARRAY[cost.add_jobs(100, 'line')], 1);
CALL cost.measure('{line_claim, line_complete}', ARRAY[cost.claim(1), :'complete_many']);
:forget;

-- Beats: with nothing, with ten jobs that the beats before have settled, and the one that settles.
SELECT set_config('cost.ids', '{}', false);
CALL cost.measure('{beat_0}', ARRAY[:'heartbeat']);
SELECT pulse.add_jobs(cost.jobs(10));
CALL cost.measure('{NULL}', ARRAY[cost.claim(10)], -9);
CALL cost.measure('{beat_10}', ARRAY[:'heartbeat']);
:forget;
CALL cost.measure('{NULL, NULL, settle, complete_settled}',
                  ARRAY[cost.add_jobs(100), cost.claim(100), :'heartbeat', :'complete_many'],
                  10, 100);

-- Jobs that come back. They are due again some time, so they are forgotten before the next claim.
CALL cost.measure('{NULL, NULL, NULL, recover, NULL}',
                  ARRAY[:'register', cost.add_jobs(100), cost.claim(100), :'declare_lost',
                        :'forget'],
                  10, 100);
SELECT set_config('cost.worker', cost.worker()::text, false);
CALL cost.measure('{NULL, NULL, fail, NULL}',
                  ARRAY[cost.add_jobs(100), cost.claim(100), :'fail_many', :'forget'], 10, 100);

-- Buffers, of the least of some calls: pages are filled and plans made by others.
CREATE PROCEDURE cost.note_buffers(worker bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  ids bigint[];
  tokens bigint[];
  least_add int;
  least_complete int;
  least_beat int;
BEGIN
  FOR i IN 1 .. 10 LOOP
    least_add := least(least_add, (cost.explained(cost.add_jobs(100))).buffers);
    COMMIT;
    SELECT array_agg(c.id), array_agg(c.token) INTO STRICT ids, tokens
      FROM pulse.claim(worker, 100) AS c;
    COMMIT;
    least_complete := least(least_complete, (cost.explained(
      format('SELECT * FROM pulse.complete_many(%L, %L)', ids, tokens))).buffers);
    COMMIT;
    least_beat := least(least_beat, (cost.explained(
      format('SELECT * FROM pulse.heartbeat(%s, ''{}'')', worker))).buffers);
    COMMIT;
  END LOOP;
  PERFORM cost.note('add_100_buffers', least_add),
          cost.note('complete_100_buffers', least_complete),
          cost.note('beat_0_buffers', least_beat);
END $$;

CALL cost.note_buffers(current_setting('cost.worker')::bigint);
