# P1, P4, P6: pg_terminate_backend of each connection of a worker, again and again, while jobs come
# and go: none is lost, no attempt is burned, and the worker is never taken for dead.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant ROUNDS => 5;

my @connections = qw(claim finish heartbeat);
my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '30s' });
my $tasks = Pulse::Tasks->new(run => 'tell ran', linger => 'tell began; wait_at lingerers');
my $worker =
  Pulse::Worker->start_registered($node, 'worker', tasks => $tasks, concurrency => 4);
my $lingering = add_job($node, 'linger');
my $process = $tasks->process($tasks->wait_for('began', job => $lingering));
my %pid =
  map { ($_ => $worker->wait_for('connected', connection => $_)->{backend_pid}) } @connections;

# Ends these connections, and returns when the worker has opened them again.
sub terminate {
    my (@names) = @_;
    my $from = $worker->lines->position;
    my $pids = join ',', map { $pid{$_} } @names;
    is( value($node, "SELECT bool_and(pg_terminate_backend(pid))
            FROM unnest('{$pids}'::int[]) AS pid"), 't', "terminated: @names");
    for (@names) {
        $pid{$_} = $worker->wait_for('connected', connection => $_, from => $from)->{backend_pid};
    }
    return;
}

my @jobs;
for my $names ((map { [$_] } @connections) x ROUNDS, [@connections]) {
    # Jobs that are on their way when it happens, and that come afterwards.
    push @jobs, add_jobs($node, 'run', 10);
    terminate(@$names);
    my $id = add_job($node, 'run');
    $worker->wait_for('completed', job => $id);
    push @jobs, $id;
}
ok(!$process->is_gone, 'the task that began before runs on');
$tasks->open_gate('lingerers');
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are done');

my $ids = join ',', @jobs, $lingering;
is( value($node, "SELECT id FROM unnest('{$ids}'::bigint[]) AS id WHERE id NOT IN (
        SELECT f.id FROM pulse.finished_job AS f WHERE f.state = 'completed' AND f.attempts = 1)"),
    '', 'every job completed in one attempt');
my %runs;
$runs{ $_->{job} }++ for $tasks->told('ran');
is_deeply(\%runs, { map { ($_ => 1) } @jobs }, 'every task ran once');
is(value($node, 'SELECT id, state FROM pulse.worker'), $worker->id . '|alive',
    'the worker is the same all the time');
is_deeply([ $worker->events('lost') ], [], 'and was never told that it is lost');

expect_healthy($node);
done_testing();
