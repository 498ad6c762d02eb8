# What tasks print: lines of the log with job and task, or where the worker prints, or nowhere.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant DRAINED => 0;

my $node = start_server('main', settings => \%PATIENT);
my $tasks = Pulse::Tasks->new(
    talk => 'echo "hello from $PULSE_JOB_ID"; echo "oops from $PULSE_JOB_ID" >&2',
    fall => 'echo "no disk"; exit 1',
    flood => 'for ((i = 0; i < 5000; i++)); do echo "line $i"; done');
my $started = 0;

sub start {
    my (@options) = @_;
    return Pulse::Worker->start_registered($node, 'worker-' . ++$started, tasks => $tasks,
        options => \@options);
}

sub run_job {
    my ($worker, $task) = @_;
    my $job = add_job($node, $task, 'max_attempts => 1');
    $worker->wait_for($_, job => $job) for $task eq 'fall' ? 'failed' : 'completed';
    return $job;
}

sub leave {
    my ($worker) = @_;
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
    return;
}

sub printed {
    my ($worker, $kind) = @_;
    return slurp_file($PostgreSQL::Test::Utils::log_path . '/output_' . $worker->name . ".$kind");
}

subtest 'its lines are lines of the log, with job and task' => sub {
    my $worker = start();
    my $job = run_job($worker, 'talk');
    my ($out) = $worker->events('output', job => $job, stream => 'stdout');
    my ($err) = $worker->events('output', job => $job, stream => 'stderr');
    is($out->{text}, "hello from $job", 'stdout');
    is($err->{text}, "oops from $job", 'stderr');
    is_deeply([ @$out{qw(task attempt)} ], [ 'talk', 1 ], 'whose it is');
    my $failed = run_job($worker, 'fall');
    is($worker->wait_for('failed', job => $failed)->{reason}, 'exit code 1: no disk',
        'a failure says why');
    is(value($node, "SELECT error FROM pulse.attempt WHERE job_id = $failed"),
        'exited with code 1: no disk', 'and so does its attempt');
    leave($worker);
};

subtest 'a flood is bounded and counted' => sub {
    my $worker = start();
    my $job = run_job($worker, 'flood');
    my $told = () = $worker->events('output', job => $job);
    my $left_out = 0;
    $left_out += $_->{lines} for $worker->events('output_left_out', job => $job);
    cmp_ok($left_out, '>', 0, 'lines are left out');
    is($told + $left_out, 5000, 'and counted');
    leave($worker);
};

subtest 'inherited: it prints where the worker prints' => sub {
    my $worker = start('--task-output', 'inherit');
    my $job = run_job($worker, 'talk');
    leave($worker);
    is(printed($worker, 'out'), "hello from $job\n", 'stdout');
    like(printed($worker, 'log'), qr/^oops from $job$/m, 'stderr');
    is(scalar($worker->events('output')), 0, 'and not in the log');
};

subtest 'discarded: nothing of it is in the log' => sub {
    my $worker = start('--task-output', 'discard');
    my $failed = run_job($worker, 'fall');
    is($worker->wait_for('failed', job => $failed)->{reason}, 'exit code 1', 'nor in a reason');
    run_job($worker, 'talk');
    leave($worker);
    unlike(printed($worker, 'log'), qr/hello|oops|no disk/, 'nor elsewhere');
};

expect_healthy($node);
done_testing();
