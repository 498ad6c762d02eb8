# P5c, P2: SIGSTOP of pulse-worker. Beyond the threshold it is lost by silence: its minders end its
# tasks, those that ask to be killed before that; another worker runs the jobs, and when it goes on
# it knows that it has lost them.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

# Between the end of a task that asks to be killed and the recovery of its job lies a part of the
# threshold, in which a busy machine has to run a minder and its task.
my $node = start_server('main', settings => {
    %QUICK, 'pulse.keep_completed' => '0', 'pulse.sweep_threshold' => '6s' });
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    linger => q{trap 'tell terminated; exit 1' TERM; tell began; wait_at lingerers; tell ended},
    stay => q{trap 'tell terminated; exit 1' TERM; tell began; wait_at stayers; tell ended},
    finish => 'tell began; wait_at finishers; tell ended');
value($node, "SELECT pulse.set_task('$_', backoff => 'none')") for qw(run stay finish);
value($node, q{SELECT pulse.set_task('linger', backoff => 'none', on_unreachable => 'kill')});

sub is_stopped {
    my ($worker) = @_;
    return slurp_file('/proc/' . $worker->pid . '/stat') =~ /\) T / ? 1 : 0;
}

subtest 'beyond the threshold it is lost' => sub {
    my $stopped =
      Pulse::Worker->start_registered($node, 'stopped', tasks => $tasks, concurrency => 3);
    my %job = map { ($_ => add_job($node, $_)) } qw(linger stay finish);
    my %first = map { ($_ => $tasks->wait_for('began', job => $job{$_})) } keys %job;
    my %process = map { ($_ => $tasks->process($first{$_})) } keys %job;
    my $next = Pulse::Worker->start_registered($node, 'next', tasks => $tasks, concurrency => 3);

    $stopped->signal('STOP');
    # One task ends by itself and leaves a completion for the worker to send some day.
    $tasks->open_gate('finishers');
    $tasks->wait_for('ended', job => $job{finish}, attempt => 1);
    ok($process{$_}->wait_gone, "its minder has ended $_") for qw(linger stay);
    ok(is_stopped($stopped), 'while the worker was stopped');

    my $claim = $next->wait_for('claimed', job => $job{$_}) for keys %job;
    my $ended = value($node, "SELECT extract(epoch FROM ended_at) FROM pulse.attempt
        WHERE job_id = $job{linger} AND outcome = 'lost'");
    my $terminated = $tasks->wait_for('terminated', job => $job{linger})->{at};
    cmp_ok($terminated, '<', $ended, 'one that asks to be killed, before its job was recovered');
    note sprintf 'by %.0f ms', ($ended - $terminated) * 1000;

    my $session = Pulse::Session->new($node);
    for my $task (sort keys %job) {
        my ($id, $token) = ($job{$task}, $first{$task}{token});
        is($session->refusal("SELECT pulse.complete($id, $token)"),
            'PU001', "a completion of $task by the first claim is refused");
        is($session->query("SELECT outcome FROM pulse.complete_many('{$id}', '{$token}')"),
            'stale', 'also one among many');
    }
    $session->quit;
    $tasks->open_gate($_) for qw(lingerers stayers finishers);
    $next->wait_for('completed', job => $job{$_}) for keys %job;
    for (values %job) {
        is($tasks->wait_for('ended', job => $_, attempt => 2)->{recovered},
            'silence', 'found by silence');
    }

    is(outcomes($node, $job{$_}), 'lost', "$_ was lost once") for sort keys %job;
    my $from = $stopped->lines->position;
    $stopped->signal('CONT');
    $stopped->wait_for('lost', from => $from);
    my $again = $stopped->wait_for('registered', from => $from)->{worker};
    cmp_ok($again, '>', $stopped->id, 'when it goes on it registers anew');
    $next->signal('TERM');
    is($next->wait_exit, 0, 'the other one leaves');
    my $job = add_job($node, 'run');
    is($stopped->wait_for('completed', job => $job)->{worker},
        $again, 'and it runs jobs as before');

    is_deeply([ $stopped->events('completed', worker => $stopped->id) ],
        [], 'nothing that it did before counts');
    wait_until($node, "SELECT string_agg(outcome, ' ') = 'interrupted' FROM pulse.attempt
        WHERE job_id = $job{$_}", "the loss of $_ counts no crash") for sort keys %job;
    is(value($node, 'SELECT count(*) FROM pulse.job'), 0, 'and all jobs are done');
    $stopped->signal('TERM');
    is($stopped->wait_exit, 0, 'it drains');
};

subtest 'P6: below the threshold nothing happens' => sub {
    set($node, 'pulse.sweep_threshold' => '30s');
    my $stopped = Pulse::Worker->start_registered($node, 'paused', tasks => $tasks);
    my $other = Pulse::Worker->start_registered($node, 'other', tasks => $tasks);
    my $id = add_job($node, 'linger');
    my $first = $tasks->wait_for('began', job => $id);
    my ($owner) = grep { $_->events('claimed', job => $id) } $stopped, $other;
    my $sweeper = $owner == $stopped ? $other : $stopped;

    $owner->signal('STOP');
    # Long enough for several beats and sweeps.
    $sweeper->wait_for('sweep', from => $sweeper->lines->position, count => 5);
    $owner->signal('CONT');
    $tasks->open_gate('lingerers');
    $owner->wait_for('completed', job => $id);
    is_deeply([ $owner->events('lost') ], [], 'it is not lost');
    is(outcomes($node, $id), '', 'and its job took one attempt');
    is(scalar($tasks->told('terminated', job => $id)), 0, 'which nobody ended');
};

expect_healthy($node);
done_testing();
