# A server that does not preload the library: whoever waits is woken all the same, by a new job and
# by the end of a worker's session. Nobody polls or sweeps by the clock here, so every wait that
# ends was ended by somebody.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;

my $node = start_server('main',
    preload => 0,
    settings => { %PATIENT, 'pulse.poll_interval' => '1h', 'pulse.sweep_interval' => '1h',
        'pulse.sweep_threshold' => '3h' });
is(value($node, 'SHOW shared_preload_libraries'), '', 'the library is not preloaded');
value($node, q{SELECT pulse.set_task('work', backoff => 'none')});

subtest 'P13: a rate goes on as soon as a worker starts where nobody has swept' => sub {
    # The last sweep was long ago, so the liveness clock stands, and no token comes.
    value($node, q{UPDATE pulse.clock SET last_tick = last_tick - interval '3 h'});
    value($node, q{SELECT pulse.set_queue('mail', rate => 10, burst => 1)});
    value($node, q{SELECT pulse.add_job('work', queue_name => 'mail/' || n)
        FROM generate_series(1, 3) AS n});
    my $worker = Pulse::SqlWorker->new($node, 'alone');
    my @jobs;
    for (1 .. 6) {
        push @jobs, $worker->claim(3);
        last if @jobs == 3;
        $worker->wait_for_job('5 s');
        $worker->sweep_if_asked;
    }
    is(scalar @jobs, 3, 'it is told to sweep, and claims a job with each token');
    $worker->complete(@jobs);
    value($node, 'SELECT pulse.deregister_worker(' . $worker->id . ')');
};

my $first = Pulse::SqlWorker->new($node, 'first');
my $second = Pulse::SqlWorker->new($node, 'second');

sub wait_until_parked {
    my ($worker) = @_;
    my $pid = $worker->backend_pid;
    wait_until($node,
        "SELECT wait_event = 'Extension' FROM pg_stat_activity WHERE pid = $pid", 'it waits');
}

subtest 'P5: a commit wakes one who waits' => sub {
    $first->start_waiting;
    wait_until_parked($first);
    my $id = add_job($node, 'work');
    $first->answer;
    ok(!$first->was_asked_to_sweep, 'it is not a sweep that it was woken for');
    my $job = $first->must_claim;
    is($job->{id}, $id, 'it claims the job that was added');
    $first->complete($job);
};

subtest 'a rolled-back job wakes no worker' => sub {
    $first->start_waiting;
    wait_until_parked($first);
    value($node, q{BEGIN; SELECT pulse.add_job('work'); ROLLBACK});
    my $id = add_job($node, 'work');
    $first->answer;
    my $job = $first->must_claim;
    is($job->{id}, $id, 'the one that was committed does');
    $first->complete($job);
};

subtest 'a job that falls due wakes one who waits' => sub {
    $first->start_waiting;
    wait_until_parked($first);
    my $id = add_job($node, 'work', q{run_at => now() + interval '300 ms'});
    my $job = ($first->answer, $first->wait_for_claim);
    is($job->{id}, $id, 'it claims the job when that is due');
    $first->complete($job);
};

subtest 'P5a: the end of a session is recovered by wake-up' => sub {
    my $id = add_job($node, 'work');
    $second->must_claim;
    $first->start_waiting;
    wait_until_parked($first);
    $second->kill;
    $first->answer;
    ok($first->was_asked_to_sweep, 'one who waits is told that a sweep is due');
    $first->query('SELECT pulse.sweep()');
    my $job = $first->wait_for_claim;
    is("$job->{id} $job->{recovered}", "$id session", 'and claims what was recovered');
    $first->complete($job);
};

subtest 'the views show the end of a session before any sweep' => sub {
    my $lost = Pulse::SqlWorker->new($node, 'unseen');
    my $id = add_job($node, 'work');
    my $claim = $lost->must_claim;
    my $attached = q{SELECT attached FROM pulse.worker_status WHERE name = 'unseen'};
    my $stale = q{SELECT identifier, jobs FROM pulse.stale};
    is(value($node, $attached), 't', 'the worker is attached');
    is(value($node, $stale), '', 'and its job is not stale');
    $lost->kill;
    wait_until($node, "SELECT NOT ($attached)", 'its session is shown as gone');
    is(value($node, $stale), 'work|1', 'and the job as one that is to be recovered');
    is(value($node, "SET pulse.disconnect_grace = '-1'; $stale"),
        '', 'unless the end of a session does not count');
    value($node, "SELECT pulse.heartbeat(" . $lost->id . ')');
    is(value($node, $stale), '', 'or the worker has beaten from another session');
    value($node, "SELECT pulse.complete($id, $claim->{token})");
};

expect_healthy($node);
done_testing();
