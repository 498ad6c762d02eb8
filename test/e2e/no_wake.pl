# More databases than the shared memory that is left without preloading has places for: in the last
# one nobody can be woken, and everything works by looking again.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

use constant PLACES => 4;

my $node = start_server('main',
    preload => 0,
    settings => { %QUICK, 'pulse.poll_interval' => '100ms' });
my @woken = ('postgres', map { "woken_$_" } 2 .. PLACES);
my $polling = 'polling';
for my $database (@woken[ 1 .. $#woken ], $polling) {
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    $node->safe_psql($database, 'CREATE EXTENSION pg_pulse');
}
value($node, 'SELECT * FROM pulse.sweep()', $_) for @woken;

sub start_worker_in {
    my ($database) = @_;
    return Pulse::SqlWorker->new($node, "in $database", database => $database);
}

# What a worker does that nobody can wake: sweeps and looks again and again.
sub poll_for_claim {
    my ($worker) = @_;
    while (1) {
        my $job = $worker->claim;
        return $job if $job;
        $worker->query('CALL pulse.wait_for_job(' . $worker->id . q{, '1 hour')});
        $worker->query('SELECT pulse.sweep()');
        $worker->beat;
    }
}

# Whoever can be woken waits as long as asked for, so this one's wait is still on when the other's
# have ended. The sweep that a registration asks for has been.
my $patient = start_worker_in($woken[-1]);
$patient->query('SELECT pulse.sweep()');
$patient->start_waiting;
my $worker = start_worker_in($polling);

subtest 'a wait ends soon, and the worker looks again' => sub {
    for (1 .. 3) {
        $worker->start_waiting;
        $worker->answer;
        ok(!$worker->was_asked_to_sweep, 'nobody ended the wait');
    }
    ok(!$patient->has_answered, 'where there is a place a wait goes on');
};

subtest 'jobs are found' => sub {
    $worker->start_waiting;
    my $id = add_job($node, 'work', undef, $polling);
    my $queued = add_job($node, 'work', q{queue_name => 'q'}, $polling);
    $worker->answer;
    my %seen;
    while (keys %seen < 2) {
        my $job = poll_for_claim($worker);
        $seen{ $job->{id} }++;
        $worker->complete($job);
    }
    is_deeply(\%seen, { $id => 1, $queued => 1 }, 'each once, also the one in a queue');
};

subtest 'P5a: the end of a session is recovered by sweeps' => sub {
    value($node, q{SELECT pulse.set_task('work', backoff => 'none')}, $polling);
    my $lost = start_worker_in($polling);
    my $id = add_job($node, 'work', undef, $polling);
    $lost->must_claim;
    $lost->kill;
    my $job = poll_for_claim($worker);
    is("$job->{id} $job->{recovered}", "$id session", 'its job is recovered');
    $worker->complete($job);
};

subtest 'pulse-worker looks again by itself' => sub {
    my $tasks = Pulse::Tasks->new(run => 'tell ran');
    my $process =
      Pulse::Worker->start_registered($node, 'polling', tasks => $tasks, database => $polling);
    $process->wait_for('sweep');
    my @ids = map { add_job($node, 'run', "queue_name => $_", $polling) } qw(NULL 'q' 'q');
    $process->wait_for('completed', job => $_) for @ids;
    is_deeply([ sort map { $_->{job} } $tasks->told('ran') ],
        [ sort @ids ], 'jobs are found, also those in a queue');
    $process->signal('TERM');
    is($process->wait_exit, 0, 'it drains');
};

subtest 'the others are still woken' => sub {
    ok(!$patient->has_answered, 'the wait goes on');
    my $id = add_job($node, 'work', undef, $woken[-1]);
    $patient->answer;
    my $job = $patient->must_claim;
    is($job->{id}, $id, 'a job ends it');
    $patient->complete($job);
};

expect_healthy($node, database => $_) for $polling, $woken[-1];
done_testing();
