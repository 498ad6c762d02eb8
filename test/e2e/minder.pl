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

my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '5s' });
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
    status => q{privileges=$(grep -c 'NoNewPrivs:.0' /proc/self/status)
        tell "files=$(ulimit -Sn),umask=$(umask),privileges=$privileges"});

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

# The limits of the worker in /proc: how many descriptors it may have open.
sub open_files {
    my ($worker) = @_;
    my ($soft) = slurp_file('/proc/' . $worker->pid . '/limits') =~ /^Max open files +(\d+)/m;
    return $soft;
}

subtest 'what a task starts with' => sub {
    my @options = (tasks => $tasks, concurrency => 50, under => [qw(prlimit --nofile=200:1000)]);
    my $before = umask 0027;
    my $worker = Pulse::Worker->start_registered($node, 'limited', @options);
    umask $before;
    cmp_ok(open_files($worker), '>', 200, 'the worker has raised its limit on descriptors');
    my $job = add_job($node, 'status');
    ok($tasks->wait_for('files=200,umask=0027,privileges=0', job => $job),
        'its tasks have the one it was started with, its umask, and no way to gain privileges');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'it drains');

    my ($forbidden) = slurp_file('/proc/self/status') =~ /^NoNewPrivs:\s+(\d)/m;
    return note 'no_new_privs is set for all that is started here' if $forbidden;
    my $open = Pulse::Worker->start_registered($node, 'open', @options,
        options => ['--allow-privileges']);
    $job = add_job($node, 'status');
    ok($tasks->wait_for(sprintf('files=200,umask=%04o,privileges=1', $before), job => $job),
        '--allow-privileges allows them');
    $open->signal('TERM');
    is($open->wait_exit, 0, 'it drains');
};

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

expect_healthy($node);
done_testing();
