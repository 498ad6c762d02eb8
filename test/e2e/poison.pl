# P7: a task that kills its own worker each time, among 20 neighbours, with a supervisor that starts
# another worker each time. It is quarantined at the third death, its last chance is alone, and no
# neighbour pays for more than one death.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant SLOTS => 8;

my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '20s' });
my $tasks = Pulse::Tasks->new(
    poison => 'tell began; wait_at poison; find_worker; kill -KILL "$worker"; wait_at never',
    neighbour => 'tell began; wait_at neighbours; tell ended');
value($node, q{SELECT pulse.set_task('neighbour', backoff => 'none')});
# Not due before the test says so.
value($node, q{SELECT pulse.set_task('poison', backoff => 'fixed', backoff_base => '1 day',
    backoff_cap => '1 day')});

my $started = 0;
my @neighbours;

# What the supervisor does.
sub start_worker {
    return Pulse::Worker->start_registered(
        $node, 'worker-' . ++$started, tasks => $tasks, concurrency => SLOTS);
}

sub add_neighbours {
    my ($count) = @_;
    my @ids = add_jobs($node, 'neighbour', $count);
    push @neighbours, @ids;
    return @ids;
}

sub end_neighbours {
    my ($count) = @_;
    $tasks->open_gate('neighbours', $count);
    $tasks->wait_for('ended', task => 'neighbour', count => scalar @neighbours);
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job WHERE identifier = \'neighbour\'',
        'the neighbours are done');
}

my $poison = add_job($node, 'poison');
my $worker = start_worker();

sub make_due {
    is(value($node, "SELECT state FROM pulse.reschedule_jobs('{$poison}', pulse.now())"), 'ready',
        'the poison is due');
    return;
}

# Twice the poison takes with it whoever is there. They run again before it is due.
for my $crashes (1, 2) {
    make_due() if $crashes > 1;
    $tasks->wait_for('began', job => $poison, attempt => $crashes);
    my $from = $tasks->lines->position;
    add_neighbours(SLOTS);
    my @processes = map { $tasks->process($_) }
      $tasks->wait_for('began', task => 'neighbour', from => $from, count => SLOTS - 1);
    $tasks->open_gate('poison');
    is($worker->wait_exit, 'signal 9', "death $crashes");
    is(scalar(grep { !$_->wait_gone } @processes), 0, 'the tasks of its neighbours are gone');
    $worker = start_worker();
    end_neighbours(SLOTS);
    is( value($node, "SELECT crashes FROM pulse.job WHERE id = $poison"), $crashes,
        "the poison has $crashes crashes");
}

subtest 'the last chance is given to a worker that holds nothing' => sub {
    my ($busy) = add_neighbours(1);
    $tasks->wait_for('began', job => $busy);
    $worker->wait_until_idle;
    my $log = -s $node->logfile;
    make_due();
    $node->wait_for_log(qr/FROM pulse\.claim\(/, $log);
    $worker->wait_until_idle;
    is(value($node, "SELECT state FROM pulse.job WHERE id = $poison"), 'ready', 'and waits');
    end_neighbours(1);
    $tasks->wait_for('began', job => $poison, attempt => 3);
};

subtest 'and is alone' => sub {
    $worker->wait_until_idle;
    my $log = -s $node->logfile;
    my @late = add_neighbours(3);
    my $ids = join ',', @late;
    $node->wait_for_log(qr/FROM pulse\.claim\(/, $log);
    $worker->wait_until_idle;
    is( value($node, "SELECT DISTINCT state, attempts FROM pulse.job WHERE id IN ($ids)"),
        'ready|0', 'its worker looks for more and gets nothing');
    $tasks->open_gate('poison');
    is($worker->wait_exit, 'signal 9', 'death 3');
    my $dead = $worker->id;
    $worker = start_worker();
    end_neighbours(3);
    wait_until($node, "SELECT state = 'quarantined' FROM pulse.get_job($poison)", 'quarantine');
    is( value($node, "SELECT job_id FROM pulse.attempt
            WHERE outcome = 'lost' AND worker_id = $dead"),
        $poison, 'nobody else was there at the third death');
};

is(finished($node, $poison), 'quarantined|3|3', 'the poison is quarantined at the third death');
like(value($node, "SELECT last_error FROM pulse.finished_job WHERE id = $poison"),
    qr/^worker \d+ \(worker-3\) was lost: its (?:session ended|process \d+ is gone)/,
    'with the reason');

my $ids = join ',', @neighbours;
is(value($node, "SELECT count(*) FROM pulse.finished_job
        WHERE state = 'completed' AND id IN ($ids)"), 20, 'all 20 neighbours are completed');
is( value($node, "SELECT max(n) FROM (SELECT count(*) AS n FROM pulse.attempt
        WHERE outcome = 'lost' AND job_id IN ($ids) GROUP BY job_id) AS lost"),
    1, 'none paid for more than one death');

expect_healthy($node);
done_testing();
