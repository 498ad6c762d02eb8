# P14: jobs of a random graph, each after some that were added before it, are run by workers that
# are killed now and then, as their server is, while jobs fail and an operator cancels, removes,
# reschedules and retries. By the write-ahead log, each start came after the ends that it waited
# for; the fate of each job follows from those of its parents, and none is stranded. In the end the
# same of one job after many others. PULSE_JOBS says how many jobs each of three rounds adds,
# PULSE_FAN_IN how many others, PULSE_KILLS how often the server is killed, PULSE_SEED which graph.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::OrderWitness;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;

my $jobs = $ENV{PULSE_JOBS} // 1000;
my $seed = $ENV{PULSE_SEED} // 1 + int rand 1_000_000;
my $fan_in = $ENV{PULSE_FAN_IN} // 1000;
my $kills = $ENV{PULSE_KILLS} // 3;
note "PULSE_SEED=$seed PULSE_JOBS=$jobs PULSE_FAN_IN=$fan_in PULSE_KILLS=$kills";
my $node = start_server('main', settings => {
    %QUICK, 'pulse.sweep_interval' => '500ms', 'wal_level' => 'logical' });
allow_loops($node);
my $witness = Pulse::OrderWitness->new($node);
value($node, q{SELECT pulse.set_task('work', backoff => 'none', max_crashes => -1,
    max_attempts => 1000, keep_completed => '1 day')});

# Adds a tenth of a round in a transaction of its own. Most parents are recent, some have ended.
value($node, q{CREATE FUNCTION add_nodes(round int, many int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  known bigint[] := ARRAY(SELECT n.id FROM node AS n ORDER BY n.id DESC LIMIT 1000);
  after bigint[];
  newest int;
  mode text;
  added bigint;
BEGIN
  FOR i IN 1..many LOOP
    newest := cardinality(known) - 1;
    after := ARRAY(SELECT DISTINCT known[1 + (random() ^ 3 * least(200, newest))::int]
                     FROM generate_series(1, CASE WHEN i % 50 = 0 THEN 100 ELSE i % 4 END)
                    WHERE known <> '{}');
    mode := (ARRAY['completed', 'ended', 'failed'])[1 + (random() * 2.2)::int % 3];
    added := (pulse.add_job_after(after, 'work', to_json(i),
      queue_name => CASE WHEN i % 7 = 0 THEN 'q' || i % 3 END, starts_when => mode,
      job_key => CASE WHEN i % 20 = 0 THEN round || ' ' || i || ' ' || clock_timestamp() END)).id;
    INSERT INTO node VALUES (added, mode, after);
    known := added || known[: 999];
  END LOOP;
END $$});

sub work {
    my ($id) = @_;
    return loop('ids bigint[]; tokens bigint[];', qq{
    -- What the operator held when it was to end.
    PERFORM pulse.release(array_agg(h.id), array_agg(h.token))
       FROM pulse.held($id) AS h HAVING count(*) > 0;
    SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}') INTO ids, tokens
      FROM pulse.claim($id, 1 + turn % 8) AS c;
    IF turn % 13 = 0 THEN
      ROLLBACK;
      CONTINUE;
    END IF;
    COMMIT;
    PERFORM linger(CASE WHEN ids = '{}' THEN 20 ELSE random() * 0.5 END);
    IF turn % 11 = 0 THEN
      PERFORM pulse.fail(a.id, a.token, 'for good', retry => false)
         FROM unnest(ids, tokens) AS a (id, token);
    ELSIF turn % 7 = 0 THEN
      PERFORM pulse.fail(a.id, a.token, 'again') FROM unnest(ids, tokens) AS a (id, token);
    ELSIF turn % 5 = 0 THEN
      CALL end_all('release', ids, tokens);
    ELSE
      CALL end_all('complete_many', ids, tokens);
    END IF;});
}

# What an operator does to a job makes its fate odd, and that of those after it. A retry lets those
# wait again that were cancelled: they have a revision, and may end twice.
my $steer = loop('target bigint; key text; parents bigint[];', q{
    SELECT j.id, j.job_key INTO target, key FROM pulse.job AS j WHERE j.state = 'parked'
     ORDER BY hashint8(j.id + turn) LIMIT 1;
    UPDATE node SET is_odd = true WHERE id = target;
    IF target IS NULL THEN
      PERFORM linger(3);
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
    PERFORM linger(3);});

my $sweep = loop('', 'PERFORM pulse.sweep(); COMMIT; PERFORM linger(50);');

my @sessions;
my $number = 0;

sub start_loops {
    my ($is_steered) = @_;
    my $sweeper = Pulse::Session->new($node);
    $sweeper->ask($sweep);
    push @sessions, $sweeper;
    for (1 .. 6) {
        my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
        $worker->ask(work($worker->id));
        push @sessions, $worker;
    }
    return if !$is_steered;
    my $operator = Pulse::Session->new($node);
    $operator->ask("SET client_min_messages = error; $steer");
    push @sessions, $operator;
    return;
}

for my $round (1 .. 3) {
    start_loops($round > 1);
    for my $part (1 .. 10) {
        value($node, "SELECT setseed(($seed % 1000) / 1000.0 + 0.00001 * $part);
            SELECT add_nodes($round, $jobs / 10)");
        my $ends = value($node, 'SELECT count(*) FROM pulse.finished_job');
        wait_until($node, "SELECT count(*) > $ends + 30 OR NOT EXISTS (SELECT FROM pulse.job)
            FROM pulse.finished_job", 'workers go on');
        value($node, 'SELECT pg_terminate_backend(' . $sessions[ 1 + $part % 6 ]->backend_pid . ')')
          if $part % 3 == 0;
        my $portion = ($round * 10 + $part - 10) * $kills;
        next if int($portion / 30) == int(($portion - $kills) / 30);
        kill_server($node);
        $_->kill for splice @sessions;
        $node->start;
        start_loops($round > 1);
    }
    value($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE query LIKE '%remove_job%' AND pid <> pg_backend_pid()");
    start_loops();
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', "round $round is done");
    end_loops($node);
    $_->quit for splice @sessions;
    allow_loops($node);
}

# One job after many, of which the last are claimed by workers that are there before it is.
start_loops();
value($node, qq{
    WITH many AS (SELECT (pulse.add_job('work')).id FROM generate_series(1, $fan_in))
    INSERT INTO node SELECT id, 'completed', '{}' FROM many;
    WITH known AS (SELECT array_agg(id ORDER BY id) AS ids FROM (
      SELECT id FROM node ORDER BY id DESC LIMIT $fan_in) AS n),
    added AS (SELECT (pulse.add_job_after(k.ids, 'work', starts_when => 'ended')).id, k.ids
                FROM known AS k)
    INSERT INTO node SELECT id, 'ended', ids FROM added});
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'one job after many ends');
end_loops($node);
$_->quit for splice @sessions;

$witness->read_log;
is($witness->broken, '', 'each job started after all that it waited for had ended as it asked');
my ($asked, $unstarted, $completed) = $witness->counts;
is($asked, value($node, 'SELECT count(*) FROM node'), 'the log has told of each job');
cmp_ok($unstarted, '>', 0, 'some were cancelled because of others');
note "$asked jobs, ", $witness->starts, " starts, $completed completed, $unstarted never started";
is(value($node, 'SELECT * FROM pulse.verify()'), '', 'verify() finds nothing');
is(value($node, q{SELECT count(*) FROM pulse.dependency AS d WHERE NOT EXISTS (SELECT
     FROM pulse.finished_job AS f WHERE f.id = d.child_id AND f.cancelled_by IS NOT NULL)}), 0,
    'of what jobs waited for only that of cancelled ones is left');
expect_healthy($node);
done_testing();
