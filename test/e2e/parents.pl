# P14: jobs of a random graph, each after some that were added before it, are run by workers that
# are killed now and then, as their server is, while jobs fail and an operator cancels, removes,
# reschedules and retries. From what workers wrote down, each start came after the ends that it
# waited for; the fate of each job follows from those of its parents, and none is stranded.
# PULSE_JOBS says how many jobs each of three rounds adds, PULSE_SEED which graph.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;

my $jobs = $ENV{PULSE_JOBS} // 1000;
my $seed = $ENV{PULSE_SEED} // 1 + int rand 1_000_000;
note "PULSE_SEED=$seed PULSE_JOBS=$jobs";
my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_interval' => '500ms' });
allow_loops($node);
value($node, q{CREATE TABLE node (id bigint PRIMARY KEY, round int, starts_when text,
                   after bigint[], is_odd boolean NOT NULL DEFAULT false);
CREATE TABLE start (id bigint, at timestamptz);
CREATE TABLE ending (id bigint, at timestamptz, completed boolean);
CREATE INDEX ON start (id);
CREATE INDEX ON ending (id);
SELECT pulse.set_task('work', backoff => 'none', max_crashes => -1, max_attempts => 1000,
                      keep_completed => '1 day');});

# Adds a tenth of a round in a transaction of its own. Most parents are recent, some have ended.
value($node, q{CREATE FUNCTION add_nodes(round int, many int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  known bigint[] := ARRAY(SELECT n.id FROM node AS n WHERE n.round = add_nodes.round ORDER BY n.id);
  after bigint[];
  mode text;
  added bigint;
BEGIN
  FOR i IN 1..many LOOP
    after := ARRAY(SELECT DISTINCT known[greatest(1, cardinality(known)
                                                     - (random() ^ 3 * 200)::int)]
                     FROM generate_series(1, CASE WHEN i % 50 = 0 THEN 100 ELSE i % 4 END)
                    WHERE known <> '{}');
    mode := (ARRAY['completed', 'ended', 'failed'])[1 + (random() * 2.2)::int % 3];
    added := (pulse.add_job_after(after, 'work', to_json(i),
      queue_name => CASE WHEN i % 7 = 0 THEN 'q' || i % 3 END, starts_when => mode,
      job_key => CASE WHEN i % 20 = 0 THEN round || ' ' || i || ' ' || cardinality(known) END)).id;
    INSERT INTO node VALUES (added, round, mode, after);
    known := known || added;
  END LOOP;
END $$});

# An end is written down before it happens, in the transaction of the end.
sub work {
    my ($id) = @_;
    return loop('ids bigint[]; tokens bigint[];', qq{
    -- What the operator held when it was to end.
    PERFORM pulse.release(array_agg(h.id), array_agg(h.token))
       FROM pulse.held($id) AS h HAVING count(*) > 0;
    SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}') INTO ids, tokens
      FROM pulse.claim($id, 1 + turn % 8) AS c;
    INSERT INTO start SELECT a, clock_timestamp() FROM unnest(ids) AS a;
    IF turn % 13 = 0 THEN
      ROLLBACK;
      CONTINUE;
    END IF;
    COMMIT;
    PERFORM linger(CASE WHEN ids = '{}' THEN 20000 ELSE (random() * 5000)::int END);
    IF turn % 11 = 0 THEN
      INSERT INTO ending SELECT a, clock_timestamp(), false FROM unnest(ids) AS a;
      PERFORM pulse.fail(a.id, a.token, 'for good', retry => false)
         FROM unnest(ids, tokens) AS a (id, token);
    ELSIF turn % 7 = 0 THEN
      PERFORM pulse.fail(a.id, a.token, 'again') FROM unnest(ids, tokens) AS a (id, token);
    ELSIF turn % 5 = 0 THEN
      PERFORM count(*) FROM pulse.release(ids, tokens);
    ELSE
      INSERT INTO ending SELECT o.id, clock_timestamp(), true
        FROM pulse.complete_many(ids, tokens) AS o WHERE o.outcome = 'accepted';
    END IF;});
}

# What an operator does to a job makes its fate odd, and that of those after it. A retry lets those
# wait again that were cancelled: they have a revision, and may end twice.
my $steer = loop('target bigint; key text; parents bigint[];', q{
    SELECT j.id, j.job_key INTO target, key FROM pulse.job AS j WHERE j.state = 'parked'
     ORDER BY hashint8(j.id + turn) LIMIT 1;
    UPDATE node SET is_odd = true WHERE id = target;
    IF target IS NULL THEN
      PERFORM linger(30000);
      COMMIT;
      CONTINUE;
    END IF;
    CASE turn % 4
      WHEN 0 THEN PERFORM pulse.cancel_job(target);
      WHEN 1 THEN PERFORM pulse.reschedule_jobs(ARRAY[target], priority => turn % 5);
      WHEN 2 THEN PERFORM pulse.remove_job(key);
      ELSE
        SELECT f.id INTO target FROM pulse.finished_job AS f WHERE f.state = 'failed'
         ORDER BY hashint8(f.id + turn) LIMIT 1;
        UPDATE node SET is_odd = true WHERE id = target;
        IF target IS NOT NULL THEN
          PERFORM pulse.retry_job(target);
        END IF;
    END CASE;
    COMMIT;
    PERFORM linger(30000);});

my $sweep = loop('', 'PERFORM pulse.sweep(); COMMIT; PERFORM linger(500000);');

my @sessions;
my $number = 0;

sub start_loops {
    my $sweeper = Pulse::Session->new($node);
    $sweeper->ask($sweep);
    push @sessions, $sweeper;
    for (1 .. 6) {
        my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
        $worker->ask(work($worker->id));
        push @sessions, $worker;
    }
    return;
}

for my $round (1 .. 3) {
    start_loops();
    my $operator = Pulse::Session->new($node);
    $operator->ask("SET client_min_messages = error; $steer") if $round > 1;
    for my $part (1 .. 10) {
        value($node, "SELECT setseed(($seed % 1000) / 1000.0 + 0.00001 * $part);
            SELECT add_nodes($round, $jobs / 10)");
        my $starts = value($node, 'SELECT count(*) FROM start');
        wait_until($node, "SELECT count(*) > $starts + 30 OR NOT EXISTS (SELECT FROM pulse.job)
            FROM start", 'workers go on');
        value($node, 'SELECT pg_terminate_backend(' . $sessions[ 1 + $part % 6 ]->backend_pid . ')')
          if $part % 3 == 0;
        next unless $part == 5;
        kill_server($node);
        $_->kill for splice @sessions;
        $node->start;
        start_loops();
    }
    value($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE query LIKE '%remove_job%' AND pid <> pg_backend_pid()");
    start_loops();
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', "round $round is done");
    end_loops($node);
    $_->quit for splice @sessions;
    allow_loops($node);
}

# How each job ended, as its parents do: completed, or not needed, or otherwise.
value($node, q{CREATE TABLE fate AS
  SELECT n.id, n.starts_when, n.after, n.is_odd OR coalesce(f.revision > 0, false) AS is_odd,
         f.state,
         f.state = 'completed'
           OR coalesce(f.state = 'cancelled' AND f.starts_when = 'failed'
                       AND f.cancelled_by IS NOT NULL, false) AS counts_as_completed,
         (SELECT min(s.at) FROM start AS s WHERE s.id = n.id) AS started_at
    FROM node AS n LEFT JOIN pulse.finished_job AS f ON f.id = n.id;
CREATE UNIQUE INDEX ON fate (id);
CREATE TABLE judged AS
  SELECT c.*, (SELECT max(e.at) FROM ending AS e WHERE e.id = ANY (c.after)) AS parents_ended_at,
         EXISTS (SELECT FROM fate AS p WHERE p.id = ANY (c.after) AND p.is_odd) AS has_odd_parent,
         coalesce((SELECT bool_and(p.counts_as_completed) FROM fate AS p
                    WHERE p.id = ANY (c.after)), true) AS all_completed
    FROM fate AS c;});
is(value($node, q{SELECT j.id, j.starts_when, j.state, j.all_completed FROM judged AS j
     WHERE NOT j.is_odd AND NOT j.has_odd_parent AND j.after <> '{}'
       AND (j.started_at IS NOT NULL) <> CASE j.starts_when WHEN 'completed' THEN j.all_completed
             WHEN 'failed' THEN NOT j.all_completed ELSE true END LIMIT 10}),
    '', 'each job started if and only if its parents ended as it asked');
is(value($node, q{SELECT j.id, j.started_at, j.parents_ended_at FROM judged AS j
     WHERE NOT j.is_odd AND NOT j.has_odd_parent AND j.started_at < j.parents_ended_at LIMIT 10}),
    '', 'none started before what it waited for had ended');
is(value($node, q{SELECT j.id, j.state FROM judged AS j WHERE j.started_at IS NULL
     AND coalesce(j.state <> 'cancelled', false) AND NOT j.is_odd LIMIT 10}),
    '', 'each that did not start was cancelled');
is(value($node, 'SELECT * FROM pulse.verify()'), '', 'verify() finds nothing');
is(value($node, q{SELECT count(*) FROM pulse.dependency AS d WHERE NOT EXISTS (SELECT
     FROM pulse.finished_job AS f WHERE f.id = d.child_id AND f.cancelled_by IS NOT NULL)}), 0,
    'of what jobs waited for only that of cancelled ones is left');
note value($node, q{SELECT string_agg(DISTINCT format('%s %s: %s', starts_when,
    coalesce(state::text, 'removed'), many), ', ') FROM (SELECT starts_when, state, count(*) AS many
    FROM fate GROUP BY 1, 2) AS x});

expect_healthy($node);
done_testing();
