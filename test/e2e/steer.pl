# What operators do by SQL to jobs and workers that run: drain, stop, unlock, requeue; and what the
# server says to who asks for more than it may do.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, FORCED => 75 };

my $node = start_server('main', settings => { %PATIENT, 'pulse.heartbeat_interval' => '200ms' });
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    linger => 'tell began; wait_at lingerers; tell ended',
    stubborn => q{trap '' TERM; tell began; while :; do wait_at never; done});
value($node, "SELECT pulse.set_task('linger', backoff => 'none')");
my $workers = 0;

# A worker with a job that its task has begun.
sub start_with_job {
    my ($task, @options) = @_;
    my $worker = Pulse::Worker->start_registered(
        $node, 'worker-' . ++$workers, tasks => $tasks, options => \@options);
    my $job = add_job($node, $task);
    return ($worker, $job, $tasks->process($tasks->wait_for('began', job => $job)));
}

sub state_of {
    my ($worker) = @_;
    return value($node, 'SELECT state FROM pulse.worker WHERE id = ' . $worker->id);
}

# First, while no session has ended; and after the sweep that a new database asks for, because a
# sweep that is due ends the wait.
value($node, 'SELECT pulse.sweep()');
subtest 'a draining worker that waits takes no wake-up from another' => sub {
    my ($first, $second) = map { Pulse::SqlWorker->new($node, $_) } qw(first second);
    value($node, 'SELECT pulse.drain_worker(' . $first->id . ')');
    $first->start_waiting;
    wait_until($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'Extension'
        AND pid = } . $first->backend_pid, 'the first waits');
    $second->start_waiting;
    my $job = add_job($node, 'run');
    $second->answer;
    is($second->must_claim->{id}, $job, 'the job goes to the one who can claim');
    ok(!$first->has_answered, 'the other sleeps on');
    value($node, 'SELECT pulse.stop_worker(' . $first->id . ')');
    $first->answer;
    is($first->beat, 'stopping', 'until it is told');
    $_->quit for $first, $second;
};

subtest 'drain_worker: what runs may finish, and nothing new begins' => sub {
    my ($worker, $job) = start_with_job('linger');
    is(value($node, 'SELECT pulse.drain_worker(' . $worker->id . ')'), 'draining', 'it is told');
    $worker->wait_for('draining', reason => 'told to drain');
    my $later = add_job($node, 'run');
    $worker->wait_for('heartbeat', status => 'draining', count => 2);
    is(value($node, "SELECT state FROM pulse.job WHERE id = $later"), 'ready', 'a new job waits');
    $tasks->open_gate('lingerers');
    is($worker->wait_exit, DRAINED, 'exit code');
    is(finished($node, $job), 'completed|1|0', 'the job that ran is completed');
    is(state_of($worker), 'stopped', 'the worker has said good-bye');
    value($node, "SELECT pulse.cancel_job($later)");
};

subtest 'stop_worker: what runs has the grace, also after a drain' => sub {
    my ($worker, $job, $process) = start_with_job('stubborn', '--grace', '200ms');
    value($node, 'SELECT pulse.drain_worker(' . $worker->id . ')');
    $worker->wait_for('draining', reason => 'told to drain');
    is(value($node, 'SELECT pulse.stop_worker(' . $worker->id . ')'), 'stopping', 'it is told');
    is($worker->wait_exit, FORCED, 'exit code');
    ok($process->wait_gone, 'the task is gone');
    is(outcomes($node, $job), 'interrupted', 'the attempt was interrupted');
    is(state_of($worker), 'stopped', 'the worker has said good-bye');
    value($node, "SELECT pulse.cancel_job($job)");
};

subtest 'an idle worker leaves at once' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'idle', tasks => $tasks);
    $worker->wait_until_idle;
    value($node, 'SELECT pulse.drain_worker(' . $worker->id . ')');
    is($worker->wait_exit, DRAINED, 'exit code');
};

subtest 'requeue_job: the task ends, and the job runs again' => sub {
    my ($worker, $job, $process) = start_with_job('linger');
    is(value($node, "SELECT pulse.requeue_job($job, 'it hangs')"), 't', 'it is taken back');
    ok($process->wait_gone, 'the task is gone');
    my $again = $tasks->wait_for('began', job => $job, attempt => 2);
    is($again->{recovered}, 'hand', 'the next attempt is told why');
    $tasks->open_gate('lingerers');
    $worker->wait_for('completed', job => $job);
    is(finished($node, $job), 'completed|2|0', 'it counts as an attempt and as no crash');
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'the worker went on');
};

subtest 'force_unlock_workers: a living worker loses its jobs, and registers anew' => sub {
    my ($worker, $job, $process) = start_with_job('linger');
    my $name = $worker->name;
    is(value($node, "SELECT pulse.force_unlock_workers('{$name}')"), 1, 'its job is recovered');
    $worker->wait_for('lost', worker => $worker->id);
    ok($process->wait_gone, 'the task is gone');
    $worker->wait_for('registered', count => 2);
    $tasks->wait_for('began', job => $job, attempt => 2);
    $tasks->open_gate('lingerers');
    $worker->wait_for('completed', job => $job);
    is(finished($node, $job), 'completed|2|0', 'in its second attempt');
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'the worker went on');
};

subtest 'notifications tell of all that was unlocked' => sub {
    my @pair = map { Pulse::SqlWorker->new($node, 'pair') } 1 .. 2;
    my @jobs = map { add_job($node, 'run'); $_->must_claim->{id} } @pair;
    my $listener = Pulse::Session->new($node);
    $listener->query('LISTEN pulse_events');
    is(value($node, q{SELECT pulse.force_unlock_workers('{pair}')}), 2, 'two workers held a job');
    my $said = $listener->query('SELECT 1');
    my @heard = $said =~ /notification "pulse_events" with payload "(.*?})"/g;
    is(scalar @heard, 2, 'one notification for each worker');
    like("@heard", qr/"cause" : "hand".*"job_ids" : \[$_\]/, "of job $_") for @jobs;
    $_->quit for @pair, $listener;
    value($node, "SELECT pulse.cancel_job($_)") for @jobs;
};

subtest 'what is left alone is told' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'holder');
    my $job = add_job($node, 'run');
    is($worker->must_claim->{id}, $job, 'given a running job');
    my $operator = Pulse::Session->new($node);
    $worker->query('BEGIN');
    $worker->claim;
    is($operator->query(q{SELECT pulse.force_unlock_workers('{holder}')}), 0, 'who claims is left');
    my $id = $worker->id;
    like($operator->said, qr/WARNING: .*\nDETAIL:  They were left alone: $id\./, 'alone, too');
    $worker->query('COMMIT');
    my %hint = (
        'complete_jobs' => qr/complete\(job_id, token\)/,
        'permanently_fail_jobs' => qr/fail\(job_id, token, error, retry => false\)/,
        'reschedule_jobs' => qr/snooze\(job_id, token, delay\)/);
    for my $function (sort keys %hint) {
        is($operator->query("SELECT pulse.$function('{$job}')"), '', "$function leaves it alone");
        like($operator->said, qr/NOTICE: .*: 1 job is left alone: running/, 'says so');
        like($operator->said, qr/DETAIL:  Ids: $job\./, 'names it');
        like($operator->said, $hint{$function}, 'and the call that its claim has for this');
    }
    $_->quit for $worker, $operator;
};

expect_healthy($node);
done_testing();
