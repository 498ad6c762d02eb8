# P5a: the end of a worker's session is noticed at once, long before the next sweep by the clock
# (after ten minutes) and before silence decides (after twenty).
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{SELECT pulse.set_task('work', backoff => 'none')});

sub worker_state {
    my ($worker) = @_;
    return value($node, 'SELECT state FROM pulse.worker WHERE id = ' . $worker->id);
}

# Sweeps as if so much time had passed.
sub sweep_after {
    my ($time) = @_;
    return value($node, "SET pulse.clock_offset = '$time'; SELECT workers_lost FROM pulse.sweep()");
}

sub wait_until_backend_is_gone {
    my ($pid) = @_;
    wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid", 'it ends');
}

# Returns when the server has seen the end of it.
sub kill_client {
    my ($session) = @_;
    $session->kill;
    wait_until_backend_is_gone($session->backend_pid);
    return;
}

sub wait_until_grace_is_over {
    my $now = value($node, 'SELECT clock_timestamp()');
    wait_until($node, "SELECT clock_timestamp() > '$now'::timestamptz + interval '200 ms'",
        'the grace is over');
    return;
}

# Waits for jobs and sweeps when told, and nobody else does; never silent, so that time can be
# moved.
my $next = Pulse::SqlWorker->new($node, 'next', interval => '0');

# The job of a worker that ends as told is run by the one that waits.
sub expect_recovery {
    my ($end) = @_;
    my $lost = Pulse::SqlWorker->new($node, 'lost');
    my $id = add_job($node, 'work');
    my $claim = $lost->must_claim;
    $next->start_waiting;

    my $began = time;
    $end->($lost);
    $next->answer;
    ok($next->was_asked_to_sweep, 'a worker that waits is told that a sweep is due');
    $next->query('SELECT pulse.sweep()');
    my $again = $next->wait_for_claim;
    note sprintf 'claimed again after %.0f ms, with a grace of 200 ms', (time - $began) * 1000;

    is($again->{id}, $id, 'the job is claimed again');
    is($again->{recovered}, 'session', 'it was recovered by session end');
    is($again->{attempts}, 2, 'the lost attempt counts');
    cmp_ok($again->{token}, '>', $claim->{token}, 'the new claim has a greater token');
    is(worker_state($lost), 'lost', 'the worker is lost');
    is($next->refusal("SELECT pulse.complete($id, $claim->{token})"), 'PU001',
        'a completion by the lost claim is refused');
    $next->complete($again);
    is(outcomes($node, $id), 'lost completed', 'it completed once');
}

subtest 'P5a: a killed client is recovered by wake-up' => sub {
    expect_recovery(sub { $_[0]->kill });
};

subtest 'P5a: a client that hangs up without a word is recovered by wake-up' => sub {
    expect_recovery(sub { $_[0]->quit });
};

subtest 'P6: a session that the server ended does not count' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'terminated');
    my $id = add_job($node, 'work');
    my $claim = $worker->must_claim;
    my $pid = $worker->backend_pid;
    value($node, "SELECT pg_terminate_backend($pid)");
    wait_until_backend_is_gone($pid);
    $worker->quit;

    is(sweep_after('0s'), 0, 'a sweep finds nobody lost');
    is(sweep_after('100s'), 0, 'nor does one far beyond the grace');
    my $again = Pulse::Session->new($node);
    is($again->query('SELECT status FROM pulse.heartbeat(' . $worker->id . ')'),
        'alive', 'the worker goes on from another session');
    $again->query("SELECT pulse.complete($id, $claim->{token})");
    is(finished($node, $id), 'completed|1|0', 'and completes its job in one attempt');

    $id = add_job($node, 'work');
    $again->query('SELECT id FROM pulse.claim(' . $worker->id . ')');
    is(sweep_after('1201s'), 1, 'silence still decides');
    is(value($node, "SELECT recovered FROM pulse.job WHERE id = $id"),
        'silence', 'and the job says so');
    value($node, "SELECT pulse.cancel_job($id)");
    $again->quit;
};

subtest 'P5a: whoever attaches again within the grace is not lost' => sub {
    set($node, 'pulse.disconnect_grace' => '50s');
    my $worker = Pulse::SqlWorker->new($node, 'attached again');
    my $id = add_job($node, 'work');
    my $claim = $worker->must_claim;
    kill_client($worker);
    is(sweep_after('0s'), 0, 'within the grace nobody is lost');

    my $again = Pulse::Session->new($node);
    $again->query('SELECT pulse.attach_worker(' . $worker->id . ')');
    is(sweep_after('51s'), 0, 'beyond it the worker lives');
    $again->query("SELECT pulse.complete($id, $claim->{token})");
    is(finished($node, $id), 'completed|1|0', 'and completes its job in one attempt');

    add_job($node, 'work');
    $again->query('SELECT id FROM pulse.claim(' . $worker->id . ')');
    kill_client($again);
    is(sweep_after('0s'), 0, 'the end of the new session begins a new grace');
    is(sweep_after('51s'), 1, 'and counts when that is over');
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
};

subtest 'P5a: with a grace of -1 the end of a session is ignored' => sub {
    set($node, 'pulse.disconnect_grace' => '-1');
    my $worker = Pulse::SqlWorker->new($node, 'ignored');
    my $id = add_job($node, 'work');
    $worker->must_claim;
    kill_client($worker);
    is(sweep_after('0s') + sweep_after('100s'), 0, 'no sweep takes it as lost');
    do {
        $next->query('SELECT pulse.sweep()');
        $next->claim;
        $next->wait_for_job('0');
    } while $next->was_asked_to_sweep;
    $next->wait_for_job('2 s');
    ok(!$next->was_asked_to_sweep, 'nor asks for another one because of it');
    is(sweep_after('1201s'), 1, 'until silence decides');
    is(value($node, "SELECT recovered FROM pulse.job WHERE id = $id"),
        'silence', 'and the job says so');
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
    set($node, 'pulse.disconnect_grace' => '200ms');
};

subtest 'a worker without heartbeats lives exactly as long as its session' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'session', interval => '0');
    my $id = add_job($node, 'work');
    $worker->must_claim;
    is(sweep_after('1d'), 0, 'a day of silence does not matter');
    is(worker_state($worker), 'alive', 'it is alive');

    $next->start_waiting;
    $worker->kill;
    $next->answer;
    ok($next->was_asked_to_sweep, 'its end is noticed at once');
    $next->query('SELECT pulse.sweep()');
    my $again = $next->wait_for_claim;
    is("$again->{id} $again->{recovered}", "$id session", 'and its job is recovered');
    $next->complete($again);
};

subtest 'P5a: another session that ends within the grace does not hide the first' => sub {
    set($node, 'pulse.disconnect_grace' => '2s');
    my $lost = Pulse::SqlWorker->new($node, 'lost');
    my $other = Pulse::SqlWorker->new($node, 'other');
    $other->query('SELECT pulse.deregister_worker(' . $other->id . ')');
    my $id = add_job($node, 'work');
    $lost->must_claim;
    $next->start_waiting;
    $lost->kill;
    $next->answer;
    ok($next->was_asked_to_sweep, 'a sweep is due at the end of the first');
    $next->query('SELECT pulse.sweep()');
    $other->quit;
    my $again = $next->wait_for_claim;
    is("$again->{id} $again->{recovered}", "$id session", 'its job is recovered after its grace');
    $next->complete($again);
    set($node, 'pulse.disconnect_grace' => '200ms');
};

# A dying worker's other session, in which it waits, may be the one that is told of its end.
subtest 'P5a: a notice that nobody acts on is given to another' => sub {
    my $lost = Pulse::SqlWorker->new($node, 'lost');
    my $id = add_job($node, 'work');
    my $waiting = Pulse::Session->new($node);
    my $claimed = $waiting->query('SELECT id FROM pulse.claim(' . $lost->id . ', 2)');
    is($claimed, $id, 'one session of the worker claims a job');
    $waiting->query('SELECT id FROM pulse.claim(' . $lost->id . ')');
    $waiting->ask('CALL pulse.wait_for_job(' . $lost->id . q{, '1 hour')});
    my $pid = $waiting->backend_pid;
    wait_until($node, "SELECT wait_event = 'Extension' FROM pg_stat_activity WHERE pid = $pid",
        'it waits');
    $waiting->signal('STOP');
    $lost->kill;
    wait_until($node, "SELECT state = 'idle' FROM pg_stat_activity WHERE pid = $pid",
        'it is told first');
    $waiting->kill;
    my $again = $next->wait_for_claim;
    is("$again->{id} $again->{recovered}", "$id session", 'the job is recovered all the same');
    $next->complete($again);
};

# Nobody sweeps while all are busy: then the first sweep may come after the grace.
subtest 'P5a: the grace begins at the end, not at the sweep that sees it' => sub {
    my $lost = Pulse::SqlWorker->new($node, 'lost');
    my $other = Pulse::SqlWorker->new($node, 'other', before => q{SET pulse.clock_offset = '60s'});
    for my $worker ($lost, $other) {
        add_job($node, 'work');
        $worker->must_claim;
    }
    # A sweep that finds so old a tick makes one of its own, and that must not hide the end.
    value($node, q{UPDATE pulse.clock SET last_tick = last_tick - interval '30 s'});
    kill_client($_) for $lost, $other;
    wait_until_grace_is_over();
    is(sweep_after('0s'), 1, 'the first sweep after it finds the worker lost');
    is(sweep_after('30s'), 0, 'but not one whose clock was ahead when it ended');
    is(sweep_after('61s'), 1, 'before its grace is over, too');

    my $ahead = Pulse::SqlWorker->new($node, 'ahead', before => q{SET pulse.clock_offset = '60s'});
    kill_client($ahead);
    is(sweep_after('70s'), 1, 'which the first sweep that sees it finds on that clock');
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
};

subtest 'P6: a beat from another session after the end gives a whole grace' => sub {
    set($node, 'pulse.disconnect_grace' => '50s');
    my $worker = Pulse::SqlWorker->new($node, 'elsewhere');
    kill_client($worker);
    my $id = add_job($node, 'work');
    is(value($node, q{SET pulse.clock_offset = '49s';} . ' SELECT id FROM pulse.claim('
                . $worker->id . ')'), $id, 'it claims from another session');
    is(sweep_after('100s'), 0, 'a sweep that sees the end then finds nobody lost');
    is(sweep_after('151s'), 1, 'another one does a grace later');
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
    set($node, 'pulse.disconnect_grace' => '200ms');
};

# The same as by an error after it, or as in a client that gives up.
subtest 'P5a: a sweep that is undone with a savepoint is asked for again' => sub {
    my $lost = Pulse::SqlWorker->new($node, 'lost');
    add_job($node, 'work');
    $lost->must_claim;
    kill_client($lost);
    wait_until_grace_is_over();
    is(value($node, 'BEGIN; SAVEPOINT a; SELECT workers_lost FROM pulse.sweep();'
                . ' ROLLBACK TO a; COMMIT'), 1, 'it found the worker lost');
    $next->claim;
    ok($next->was_asked_to_sweep, 'whoever claims is told that a sweep is due');
    is(sweep_after('0s'), 1, 'which finds the worker lost');
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
};

expect_healthy($node);
done_testing();
