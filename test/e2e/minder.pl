# What a task leaves behind: nothing, whatever ends it. The task here ignores SIGTERM and has forked
# twice; its daemon has a session of its own, ignores SIGTERM too, and keeps stdout open.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Process;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%QUICK);
my $fork_twice = <<'SH';
trap '' TERM
export told gates
export -f tell wait_at
setsid --fork bash -c "trap '' TERM; tell daemon; wait_at never"
SH
my $tasks = Pulse::Tasks->new(
    stubborn => "$fork_twice tell began; wait_at never",
    leaving => "$fork_twice tell began; wait_at leavers",
    run => 'tell ran',
    flood => 'tell began; head -c 1G /dev/zero; tell ended',
    flood_errors => q{tell began; yes 'an error' | head -c 256M >&2
        echo 'the last one' >&2; exit 1});

# A worker that runs such a task, and all the processes that must not survive it.
sub start_family {
    my ($task, @options) = @_;
    my $worker = Pulse::Worker->start_registered(
        $node, "$task-" . Pulse::Tasks::lines($tasks)->position,
        tasks => $tasks, options => \@options);
    my $job = add_job($node, $task, 'max_attempts => 1');
    my ($process, $daemon) =
      map { $tasks->process($tasks->wait_for($_, job => $job)) } qw(began daemon);
    my (undef, $minder) = Pulse::Process->family($worker->pid);
    return ($worker, $job, { task => $process, daemon => $daemon, minder => $minder });
}

sub expect_no_survivor {
    my ($family) = @_;
    ok($family->{$_}->wait_gone, "no survivor: the $_") for sort keys %$family;
}

subtest 'SIGKILL of the worker' => sub {
    my ($worker, $job, $family) = start_family('stubborn');
    $worker->kill;
    expect_no_survivor($family);
    wait_until($node, "SELECT workers_lost >= 0
        AND (SELECT state FROM pulse.get_job($job)) = 'failed' FROM pulse.sweep()", 'recovery');
};

subtest 'SIGSTOP of the worker' => sub {
    my ($worker, $job, $family) = start_family('stubborn');
    $worker->signal('STOP');
    expect_no_survivor({ map { ($_ => $family->{$_}) } qw(task daemon) });
    like(slurp_file('/proc/' . $worker->pid . '/stat'), qr/\) T /, 'while the worker is stopped');
    $worker->kill;
    expect_no_survivor($family);
};

subtest 'SIGKILL of the minder' => sub {
    my ($worker, $job, $family) = start_family('stubborn');
    kill 'KILL', $family->{minder}->pid;
    expect_no_survivor($family);
    wait_until($node, "SELECT state = 'failed' FROM pulse.get_job($job)", 'the job failed');
    my $next = add_job($node, 'run');
    $worker->wait_for('completed', job => $next);
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker lives on and drains');
};

subtest 'a forced stop of the worker' => sub {
    my ($worker, $job, $family) = start_family('stubborn', '--grace', '0ms');
    $worker->signal('TERM');
    is($worker->wait_exit, 75, 'it is forced');
    expect_no_survivor($family);
};

subtest 'the end of the task itself' => sub {
    my ($worker, $job, $family) = start_family('leaving');
    $tasks->open_gate('leavers');
    $worker->wait_for('completed', job => $job);
    expect_no_survivor($family);
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

# The most memory that a process ever had, in megabytes.
sub peak_memory {
    my ($worker) = @_;
    my ($kilobytes) = slurp_file('/proc/' . $worker->pid . '/status') =~ /^VmHWM:\s+(\d+) kB/m;
    return $kilobytes / 1024;
}

subtest 'a flood of output' => sub {
    my $worker =
      Pulse::Worker->start_registered($node, 'flooded', tasks => $tasks, concurrency => 3);
    my $from = $worker->lines->position;
    my $job = add_job($node, 'flood');
    my $errors = add_job($node, 'flood_errors', 'max_attempts => 1');
    $tasks->wait_for('began', job => $_) for $job, $errors;
    my $other = add_job($node, 'run');
    $worker->wait_for('completed', job => $other);
    is($worker->wait_for('completed', job => $job)->{attempt}, 1, '1 GB on stdout does not matter');
    $worker->wait_for('failed', job => $errors);
    my ($length, $end) = split /\|/, value($node, "SELECT length(last_error), right(last_error, 12)
        FROM pulse.finished_job WHERE id = $errors");
    cmp_ok($length, '<', 100_000, 'of errors the last few are kept');
    is($end, 'the last one', 'to the end');

    my @beats = $worker->wait_for('heartbeat', status => 'alive', from => $from, count => 2);
    is(scalar(@beats), 2, 'the worker beat meanwhile');
    is_deeply([ $worker->events('lost') ], [], 'and was not lost');
    cmp_ok(peak_memory($worker), '<', 64, 'its memory stayed small');
    note sprintf 'peak memory %.0f MB', peak_memory($worker);
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'it drains');
};

expect_healthy($node);
done_testing();
