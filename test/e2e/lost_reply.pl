# P2, P3, P4: a connection is cut when the server has executed a statement and the worker does not
# know it, or when the server never got it. Nothing is lost, run twice or counted twice, and the
# worker says what it knows.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Proxy;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

# A cut looks like the end of the client's session, which is not what is tested here.
my $node = start_server('main',
    settings => {
        %PATIENT,
        'pulse.heartbeat_interval' => '1s',
        'pulse.disconnect_grace' => '1min',
    });
my $proxy = Pulse::Proxy->start($node, 'proxy');
my $tasks = Pulse::Tasks->new(
    kept => 'tell ran',
    dropped => 'tell ran',
    failing => 'tell ran; exit 1',
    linger => 'tell ran; wait_at lingerers');
value($node, q{SELECT pulse.set_task('dropped', keep_completed => '0')});
value($node, q{SELECT pulse.set_task('failing', backoff => 'fixed', backoff_base => '1 day')});
my $worker = Pulse::Worker->start_registered($node, 'worker', tasks => $tasks, $proxy->address);

# Adds a job once the worker is idle, and waits until the connection was cut. The worker stands
# still meanwhile, or a claim that comes before the job would be cut.
sub add_job_and_cut {
    my ($task, $action, $pattern) = @_;
    $worker->wait_until_idle;
    $worker->signal('STOP');
    my $id = add_job($node, $task);
    $proxy->arm($action, $pattern);
    $worker->signal('CONT');
    $proxy->wait_for_action($action);
    return $id;
}

sub runs {
    my ($id) = @_;
    return scalar(my @runs = $tasks->told('ran', job => $id));
}

subtest 'the reply of a claim' => sub {
    my $id = add_job_and_cut('kept', 'drop_reply', 'pulse\.claim\(');
    $worker->wait_for('completed', job => $id);
    is($worker->wait_for('released', job => $id)->{reason},
        'the reply of its claim was lost', 'the job is released');
    is(outcomes($node, $id), 'released completed', 'and claimed again');
    is(finished($node, $id), 'completed|1|0', 'the attempt was given back');
    is(runs($id), 1, 'the task ran once');
};

# The worker asks at once what it holds, and the claim is in progress yet.
subtest 'the reply of a claim, before its commit' => sub {
    my $id = add_job_and_cut('kept', 'hold_commit', 'pulse\.claim\(');
    wait_until($node, q{SELECT count(*) = 1 FROM pg_stat_activity
        WHERE query ~ 'pulse.held' AND wait_event_type = 'Extension'},
        'the question waits for the claim');
    $proxy->release;
    $worker->wait_for('completed', job => $id);
    is(outcomes($node, $id), 'released completed', 'the job is released and claimed again');
    is(finished($node, $id), 'completed|1|0', 'the attempt was given back');
    is(runs($id), 1, 'the task ran once');
};

subtest 'the reply of a claim, and for some beats nothing can be asked' => sub {
    $worker->wait_until_idle;
    $proxy->network('closed');
    my $id = add_job_and_cut('kept', 'drop_reply', 'pulse\.claim\(');
    $worker->wait_for('heartbeat', from => $worker->lines->position, count => 3);
    $proxy->network('open');
    $worker->wait_for('completed', job => $id);
    is(outcomes($node, $id), 'released completed', 'no beat has given the job back meanwhile');
    is(finished($node, $id), 'completed|1|0', 'so that no attempt is lost');
};

subtest 'a claim that never arrived' => sub {
    my $id = add_job_and_cut('kept', 'drop_request', 'pulse\.claim\(');
    $worker->wait_for('completed', job => $id);
    is(outcomes($node, $id), 'completed', 'is claimed once');
    is_deeply([ $worker->events('released', job => $id) ], [], 'nothing is released');
};

subtest 'the reply of a claim while a job runs' => sub {
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
    $worker = Pulse::Worker->start_registered($node, 'worker-of-two',
        tasks => $tasks, concurrency => 2, $proxy->address);
    $worker->wait_until_idle;
    my $running = add_job($node, 'linger');
    $tasks->wait_for('ran', job => $running);
    my $id = add_job_and_cut('kept', 'drop_reply', 'pulse\.claim\(');
    $worker->wait_for('completed', job => $id);
    $tasks->open_gate('lingerers');
    $worker->wait_for('completed', job => $running);
    is(outcomes($node, $running), 'completed', 'what is known is kept');
    is(outcomes($node, $id), 'released completed', 'the rest is released');
};

subtest 'the reply of a completion, of a job that is kept' => sub {
    my $id = add_job_and_cut('kept', 'drop_reply', 'pulse\.complete_many\(');
    $worker->wait_for('completed', job => $id);
    is(outcomes($node, $id), 'completed', 'the repeat is answered as done');
    is(runs($id), 1, 'the task ran once');
};

subtest 'the reply of a completion, of a job that is not kept' => sub {
    my $id = add_job_and_cut('dropped', 'drop_reply', 'pulse\.complete_many\(');
    $worker->wait_for('unknown', job => $id);
    is_deeply([ $worker->events('stale') ], [], 'it is unknown and not refused');
    is(runs($id), 1, 'the task ran once');
    is(value($node, "SELECT count(*) FROM pulse.job WHERE id = $id"), 0, 'and the job is done');
};

subtest 'a completion that never arrived' => sub {
    my $id = add_job_and_cut('kept', 'drop_request', 'pulse\.complete_many\(');
    $worker->wait_for('completed', job => $id);
    is(outcomes($node, $id), 'completed', 'is sent again and accepted');
    is(runs($id), 1, 'the task ran once');
};

subtest 'the reply of a failure' => sub {
    my $id = add_job_and_cut('failing', 'drop_reply', 'pulse\.fail_many\(');
    $worker->wait_for('failed', job => $id);
    is(outcomes($node, $id), 'failed', 'the repeat is answered as done');
    is(value($node, "SELECT state, attempts FROM pulse.job WHERE id = $id"),
        'ready|1', 'it failed once and waits for its next attempt');
};

subtest 'the reply of a heartbeat' => sub {
    $worker->wait_until_idle;
    my $from = $worker->lines->position;
    $proxy->arm('drop_reply', 'pulse\.heartbeat\(');
    $proxy->wait_for_action('drop_reply');
    $worker->wait_for('heartbeat', status => 'alive', from => $from);
    is_deeply([ $worker->events('lost') ], [], 'the worker beats on');
};

subtest 'the reply of a registration' => sub {
    $proxy->arm('drop_reply', 'pulse\.register_worker\(');
    my $again = Pulse::Worker->start_registered($node, 'again', tasks => $tasks, $proxy->address);
    is(value($node, q{SELECT count(*) FROM pulse.worker WHERE name = 'again'}),
        2, 'it registers anew');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the other one drains');
    my $id = add_job($node, 'kept');
    is($again->wait_for('completed', job => $id)->{worker},
        $again->id, 'and works as the later one');
};

is(value($node, q{SELECT count(*) FROM pulse.worker WHERE state = 'lost'}), 0, 'nobody was lost');
expect_healthy($node);
done_testing();
