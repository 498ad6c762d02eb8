# Sessions of other databases, and of an installation that is no more, are not taken for those of
# this one.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my $node = start_server('main', settings => \%PATIENT);
for my $database (qw(other again)) {
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    value($node, 'CREATE EXTENSION pg_pulse', $database);
}

sub end_session {
    my ($worker, $how) = @_;
    my $pid = $worker->backend_pid;
    $how->($worker, $pid);
    wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid", 'it ends');
    return;
}

sub session_of {
    my ($worker) = @_;
    return value($node, 'SELECT pulse._attachment_state(attachment, incarnation)'
          . ' FROM pulse.heartbeat WHERE worker_id = ' . $worker->id);
}

subtest 'P5a: what the server ended in another database excuses nobody here' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'killed');
    my $number = value($node, 'SELECT last_value FROM pulse.attachment_seq');
    value($node, "SELECT setval('pulse.attachment_seq', $number, false)", 'other');
    my $namesake = Pulse::SqlWorker->new($node, 'terminated', database => 'other');
    end_session($namesake, sub { value($node, "SELECT pg_terminate_backend($_[1])") });
    is(session_of($worker), 'open', 'the session here goes on');
    end_session($worker, sub { $_[0]->kill });
    is(session_of($worker), 'ended', 'and its end is that of its worker');
};

subtest 'P6: more ends by the server than are remembered excuse those before' => sub {
    my $old = Pulse::SqlWorker->new($node, 'terminated');
    my @crowd = map { Pulse::Session->new($node) } 1 .. 17;
    $_->query('SELECT pulse._hold_attachment() FROM generate_series(1, 16)') for @crowd;
    my $young = Pulse::SqlWorker->new($node, 'killed');
    my $terminate = sub { value($node, "SELECT pg_terminate_backend($_[1])") };
    end_session($_, $terminate) for $old, @crowd;
    is(session_of($old), 'unknown', 'the first of them is not taken for one that its client ended');
    end_session($young, sub { $_[0]->kill });
    is(session_of($young), 'ended', 'a younger one that its client ended is');
};

subtest 'P2: a worker of a dropped installation is none of the next' => sub {
    my $old = Pulse::SqlWorker->new($node, 'old', database => 'again');
    my $id = add_job($node, 'work', undef, 'again');
    my $claim = $old->must_claim;
    value($node, 'SET pulse.allow_drop = on; DROP EXTENSION pg_pulse; CREATE EXTENSION pg_pulse',
        'again');

    my $new = Pulse::SqlWorker->new($node, 'new', database => 'again');
    pass('a worker of the next one attaches while the old session goes on');
    is(add_job($node, 'work', undef, 'again'), $id, 'its first job has the number of the old one');
    my $again = $new->must_claim;
    is($old->refusal("SELECT pulse.complete($id, $claim->{token})"), 'PU001',
        'the old worker cannot end it');
    is($old->refusal('SELECT pulse.claim(' . $old->id . ')'), 'PU002', 'nor claim another');
    like($old->query('SELECT status FROM pulse.heartbeat(' . $old->id . ')'),
        qr/lost/, 'nor beat for its worker');

    end_session($old, sub { value($node, "SELECT pg_terminate_backend($_[1])") });
    end_session($new, sub { $_[0]->kill });
    is(value($node, "SET pulse.clock_offset = '3s'; SELECT workers_lost FROM pulse.sweep()",
            'again'), 1, 'which is lost by the end of its own session');
};

expect_healthy($node);
done_testing();
