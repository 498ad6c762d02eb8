# The queues of a fair level start jobs in turn, each as many as its weight says, whatever their
# backlogs; a newcomer starts once around the ring. Workers and the server are killed, and no job is
# left behind. PULSE_QUEUES says how many small queues there are, PULSE_BACKLOG how many jobs the
# big one has.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;

my $queues = $ENV{PULSE_QUEUES} // 100;
my $backlog = $ENV{PULSE_BACKLOG} // 5000;
my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_interval' => '500ms' });
allow_loops($node);

# Weight of the n-th small queue, and of the newcomers.
sub weight_of { return $_[0] eq 'big' || ($_[0] =~ /^q(\d+)$/ && $1 % 2) ? 4 : 1 }

value($node, qq{CREATE TABLE start (number bigserial, member text, claim bigint);
CREATE TABLE newcomer (member text, claim bigint);
SELECT pulse.set_task('work', backoff => 'none', max_crashes => -1, max_attempts => 1000);
SELECT pulse.set_queue('f', fair => true);
SELECT pulse.set_queue('f/*', concurrency => 1000);
SELECT pulse.set_queue('f/big', concurrency => 1000000, weight => 4);
SELECT count(pulse.set_queue('f/q' || n, concurrency => 1000, weight => 4))
  FROM generate_series(1, $queues, 2) AS n;
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('work', NULL, 'f/big', NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, $backlog)));
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('work', NULL, 'f/q' || n, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, $queues) AS n, generate_series(1, 10)));});

# A level within a fair level has neither fairness nor weight of its own, and the operator is told.
for my $setting ('fair => true', 'weight => 2') {
    $node->psql('postgres', "SELECT pulse.set_queue('f/deep/*', 1);
        SELECT pulse.set_queue('f/deep', $setting)", stderr => \my $told);
    like($told, qr/${\($setting =~ s{ .*}{}r)} of queue 'f\/deep' does nothing/,
        "$setting of a level within is told to do nothing");
}
$node->psql('postgres', "SELECT pulse.set_queue('f', fair => true),
    pulse.set_queue('f/deep/*', weight => 2)", stderr => \my $silence);
is($silence, '', 'and other settings are stored in silence');
value($node, "SELECT count(pulse.unset_queue(q)) FROM unnest(ARRAY['f/deep', 'f/deep/*']) AS q");

# One session claims; now and then a newcomer comes between two claims.
value($node, q{CREATE PROCEDURE drain(batch int, newcomers int) LANGUAGE plpgsql AS $$
  DECLARE
    worker bigint := (pulse.register_worker('drain')).id;
    ids bigint[];
    tokens bigint[];
    claims bigint := 0;
    come int := 0;
  BEGIN
    LOOP
      claims := claims + 1;
      IF claims % 41 = 0 AND come < newcomers THEN
        come := come + 1;
        PERFORM pulse.add_job('work', queue_name => 'f/new' || come);
        INSERT INTO newcomer VALUES ('new' || come, claims);
        COMMIT;
      END IF;
      WITH claimed AS MATERIALIZED (SELECT * FROM pulse.claim(worker, batch)),
           kept AS (INSERT INTO start (member, claim)
                    SELECT split_part(c.queue_name, '/', 2), claims FROM claimed AS c)
      -- Beside a sweep that gives turns it gets none.
      SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}') INTO ids, tokens
        FROM claimed AS c;
      COMMIT;
      CALL end_all('complete_many', ids, tokens);
      EXIT WHEN NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.queue_name <> 'f/big')
                AND come = newcomers;
    END LOOP;
    PERFORM pulse.deregister_worker(worker);
  END $$;});
value($node, 'CALL drain(1, 20)');

my @starts = split /\n/, value($node, 'SELECT member FROM start ORDER BY number');
my %positions;
push @{ $positions{ $starts[$_] } }, $_ for 0 .. $#starts;
is(value($node, q{SELECT count(*) FROM start WHERE member LIKE 'q%'}), 10 * $queues,
    'all jobs of small queues were started');

# The starts that a weight of 1 is due up to each start, while other queues count until their last
# start, or until a round later: when a queue ends, the round in which it does is shared by all.
# Newcomers are few and of weight 1.
my @live = map { [ $_, $positions{$_}[-1] ] } grep { !/^new/ } keys %positions;
$_->[1] = @starts for grep { $_->[0] eq 'big' } @live;
my $round = 0;
$round += weight_of($_->[0]) for @live;

sub dues {
    my ($later) = @_;
    my ($weights, @due) = ($round, 0);
    my %ends_at;
    push @{ $ends_at{ $_->[1] + $later } }, $_->[0] for @live;
    for my $at (0 .. $#starts) {
        push @due, $due[-1] + 1 / $weights;
        $weights -= weight_of($_) for @{ $ends_at{$at} // [] };
    }
    return \@due;
}
my ($most_due, $least_due) = (dues(0), dues($round));
# In the last round all end at once.
my ($last_round) = sort { $a <=> $b } map { $_->[1] } grep { weight_of($_->[0]) == 1 } @live;

# The largest deviation from the share over all windows in which the queue is backlogged.
sub deviation_of {
    my ($name, $last, $window) = @_;
    my @before = (0);
    my %starts = map { $_ => 1 } @{ $positions{$name} };
    push @before, $before[-1] + ($starts{$_} // 0) for 0 .. $#starts;
    my ($worst, $at) = (0, 0);
    for my $from (0 .. ($last < $last_round ? $last : $last_round) - $window) {
        my $starts = $before[ $from + $window ] - $before[$from];
        my ($most, $least) =
          map { weight_of($name) * ($_->[ $from + $window ] - $_->[$from]) } $most_due, $least_due;
        my $off = $starts > $most ? $starts - $most : $least - $starts;
        ($worst, $at) = ($off, $from) if $off > $worst;
    }
    return ($worst, $at);
}
my $window = $queues < 1000 ? $queues : 1000;
my ($worst) = sort { $b->[0] <=> $a->[0] } map { [ deviation_of(@{$_}, $window), $_->[0] ] } @live;
cmp_ok($worst->[0], '<=', 2, "each window of $window starts has the share of each queue, within 2");
note sprintf '%d starts; the window from %d on is off by %.2f for %s', scalar @starts,
  @{$worst}[ 1, 0, 2 ];

is(value($node, q{SELECT count(*) FROM newcomer AS n WHERE NOT EXISTS (
      SELECT FROM start AS s WHERE s.member = n.member)}), 0, 'each newcomer was started');
is(value($node, q{
    SELECT n.member || ': ' || s.member || ' ' || count(*)
      FROM newcomer AS n
      JOIN start AS f ON f.member = n.member
      JOIN start AS s ON s.claim >= n.claim AND s.claim < f.claim
      LEFT JOIN pulse.queue AS q ON q.queue_name = 'f/' || s.member
     GROUP BY n.member, s.member, q.weight HAVING count(*) > coalesce(q.weight, 1) LIMIT 5}),
    '', 'until a newcomer starts, no other queue starts more than its weight');

# Workers side by side, some of which die, fill a level with a total.
value($node, qq{SELECT pulse.set_queue('f', total => 12);
TRUNCATE start;
SELECT count(*) FROM pulse.add_jobs(ARRAY(
  SELECT ('work', NULL, 'f/q' || n, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
    FROM generate_series(1, 20) AS n, generate_series(1, 20)));
DELETE FROM pulse.job WHERE id IN (SELECT id FROM pulse.job WHERE queue_name = 'f/big'
                                    ORDER BY id OFFSET 1200);});

sub work {
    my ($id) = @_;
    return loop('ids bigint[]; tokens bigint[];', qq{
    WITH claimed AS MATERIALIZED (SELECT * FROM pulse.claim($id, 3)),
         kept AS (INSERT INTO start (member)
                  SELECT split_part(c.queue_name, '/', 2) FROM claimed AS c)
    SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}') INTO ids, tokens
      FROM claimed AS c;
    IF turn % 17 = 0 THEN
      ROLLBACK;
      CONTINUE;
    END IF;
    COMMIT;
    PERFORM linger(CASE WHEN ids = '{}' THEN 20 ELSE random() * 0.5 END);
    IF turn % 11 = 0 THEN
      PERFORM pulse.fail(id, token, 'again') FROM unnest(ids, tokens) AS a (id, token);
    ELSE
      CALL end_all('complete_many', ids, tokens);
    END IF;});
}

my $sweep = loop('', 'PERFORM pulse.sweep(); COMMIT; PERFORM linger(50);');
my $number = 0;
my (@workers, @others);

sub start_worker {
    my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
    $worker->ask(work($worker->id));
    push @workers, $worker;
    return;
}

sub start_all {
    my $sweeper = Pulse::Session->new($node);
    $sweeper->ask($sweep);
    push @others, $sweeper;
    start_worker() for 1 .. 6;
    return;
}

start_all();
for my $kill (1 .. 5) {
    wait_until($node, "SELECT count(*) > $kill * 60 FROM start", 'workers go on');
    value($node, 'SELECT pg_terminate_backend(' . (shift @workers)->backend_pid . ')');
    start_worker();
}
kill_server($node);
$_->kill for splice(@workers), splice(@others);
$node->start;
start_all();
cmp_ok(value($node, q{SELECT count(*) FROM (SELECT member FROM start ORDER BY number LIMIT 300) AS s
    WHERE member = 'big'}), '<=', 40, 'the big queue has its share while all have jobs');
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs have run');
end_loops($node);
$_->quit for @workers, @others;
expect_healthy($node);
done_testing();
