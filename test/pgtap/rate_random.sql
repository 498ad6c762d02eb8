-- extension/limit/rate.cpp: in random states no level has more claims than its rate allows (P13).
-- Queues have rates of their own, so a claim looks at more levels than it keeps looks of.
\ir support/setup.psql
SELECT plan(2);
SELECT given_worker() AS ann \gset

CREATE TABLE started (level text);
CREATE TABLE breach (seed int, level text, claims bigint, burst int);

-- Claims and ends jobs of forty queues in each of three levels, whose tokens come hours later.
CREATE FUNCTION try_out(worker_id bigint, seed int) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  claimed pulse.claimed_job;
BEGIN
  DELETE FROM pulse.job;
  DELETE FROM pulse.claim_batch;
  DELETE FROM pulse.queue_rate;
  DELETE FROM started;
  PERFORM setseed(seed / 1000.0);
  PERFORM pulse.set_queue('r', rate => 300, per => '10 h');
  PERFORM pulse.set_queue('r/' || i, rate => 60, per => '10 h',
                          burst => 5 + floor(random() * 40)::int),
          pulse.set_queue('r/' || i || '/*', rate => 100, per => '10 h',
                          concurrency => 1 + floor(random() * 3)::int)
     FROM generate_series(0, 2) AS i;
  PERFORM pulse.add_job('mail', queue_name => format('r/%s/%s', i % 3, floor(random() * 40)),
                        priority => i % 3)
     FROM generate_series(1, 200) AS i;
  FOR turn IN 1 .. 40 LOOP
    FOR claimed IN SELECT * FROM pulse.claim(worker_id, 1 + floor(random() * 32)::int) LOOP
      INSERT INTO started VALUES (regexp_replace(claimed.queue_name, '/[^/]*$', ''));
      IF random() < 0.7 THEN
        PERFORM pulse.complete(claimed.id, claimed.token);
      ELSIF random() < 0.5 THEN
        PERFORM pulse.fail(claimed.id, claimed.token, 'again', retry_in => '0');
      END IF;
    END LOOP;
    PERFORM pulse.complete(j.id, j.token) FROM pulse.job AS j
      WHERE j.state = 'running' AND random() < 0.5;
  END LOOP;
  INSERT INTO breach
    SELECT seed, s.level, count(*), q.burst
      FROM started AS s JOIN pulse.queue AS q ON q.queue_name = s.level
     GROUP BY s.level, q.burst HAVING count(*) > q.burst;
END $$;

-- Seeds with which a claim makes looks anew that it has stored.
SELECT try_out(:ann, seed) FROM unnest(ARRAY[21, 27, 41, 43, 47]) AS seed \g /dev/null
SELECT is_empty('SELECT * FROM breach', 'no level has more claims than tokens');
SELECT isnt_empty('SELECT * FROM started', 'and there were claims');

SELECT * FROM finish();
ROLLBACK;
