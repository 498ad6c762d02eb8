# Sessions of other databases, and of an installation that is no more, are not taken for those of
# this one.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my $node = start_server('main', settings => { %PATIENT, max_prepared_transactions => 5 });
for my $database (qw(other again)) {
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    value($node, 'CREATE EXTENSION pg_pulse', $database);
}

sub end_session {
    my ($session, $how) = @_;
    my $pid = $session->backend_pid;
    $how->($session, $pid);
    wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid", 'it ends');
    return;
}

my $killed = sub { $_[0]->kill };
my $terminated = sub { value($node, "SELECT pg_terminate_backend($_[1])") };

sub session_of {
    my ($worker, $database) = @_;
    return value($node, 'SELECT pulse_internal.attachment_state(attachment, incarnation)'
          . ' FROM pulse.heartbeat WHERE worker_id = ' . $worker->id, $database);
}

subtest 'P5a: what the server ended in another database excuses nobody here' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'killed');
    my $number = value($node, 'SELECT last_value FROM pulse.attachment_seq');
    value($node, "SELECT setval('pulse.attachment_seq', $number, false)", 'other');
    my $namesake = Pulse::SqlWorker->new($node, 'terminated', database => 'other');
    end_session($namesake, $terminated);
    is(session_of($worker), 'open', 'the session here goes on');
    end_session($worker, $killed);
    is(session_of($worker), 'ended', 'and its end is that of its worker');
};

# As if many sessions ended.
sub end_crowd {
    my ($how, $database, $count) = @_;
    my $crowd = Pulse::Session->new($node, database => $database);
    $crowd->query("SELECT count(pulse_internal.hold_attachment()) FROM generate_series(1, $count)");
    end_session($crowd, $how);
    return;
}

subtest 'P5a: many ends by clients are all remembered' => sub {
    my @workers = map { Pulse::SqlWorker->new($node, $_, database => 'other') }
      qw(killed terminated);
    end_session($workers[0], $killed);
    end_session($workers[1], $terminated);
    end_crowd($killed, 'other', 1000);
    is(session_of($workers[0], 'other'), 'ended', 'one of them is known as such');
    is(session_of($workers[1], 'other'), 'unknown', 'and one that the server ended, too');
};

subtest 'P6: more ends by clients than are remembered are nobody\'s loss' => sub {
    my ($old, $terminated_one) = map { Pulse::SqlWorker->new($node, $_) } qw(old terminated);
    end_session($old, $killed);
    end_session($terminated_one, $terminated);
    end_crowd($killed, 'postgres', 5000);
    is(session_of($_), 'unknown', 'silence decides about the first') for $old, $terminated_one;
    my $lost = Pulse::SqlWorker->new($node, 'killed');
    end_session($lost, $killed);
    is(session_of($lost), 'ended', 'the last is known');
};

subtest 'P6: a worker without heartbeats whose session the server ends may come back' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'without', interval => '0');
    my $sweep_after = sub {
        value($node, "SET pulse.clock_offset = '$_[0]'; SELECT pulse.sweep()");
        return value($node, 'SELECT state FROM pulse.worker WHERE id = ' . $worker->id);
    };
    is($sweep_after->('1h'), 'alive', 'it has been silent for long');
    end_session($worker, $terminated);
    is($sweep_after->('1h'), 'alive', 'from the end of its session on its silence counts');
    is($sweep_after->('2h'), 'lost', 'as that of any other');
};

subtest 'P6: a session that lets go of all its locks has not ended' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'forgetful');
    $worker->query('SELECT pg_advisory_unlock_all()');
    is(session_of($worker), 'unknown', 'so nobody takes it for ended');
    value($node, "SET pulse.clock_offset = '3s'; SELECT pulse.sweep()");
    is(value($node, 'SELECT state FROM pulse.worker WHERE id = ' . $worker->id), 'alive',
        'nor its worker for lost');
};

subtest 'one session can be that of many workers' => sub {
    my $session = Pulse::SqlWorker->new($node, 'first of many');
    my $ids = $session->query(q{SELECT string_agg(w.id::text, ',') FROM
        (SELECT (pulse.register_worker('many')).id FROM generate_series(1, 40)) AS w});
    my $states = "SELECT string_agg(DISTINCT
            pulse_internal.attachment_state(attachment, incarnation), ' ')
          FROM pulse.heartbeat WHERE worker_id IN ($ids)";
    $session->query("SELECT pulse.attach_worker(w) FROM unnest('{$ids}'::bigint[]) AS w")
      for 1 .. 2;
    my $pid = $session->backend_pid;
    is(value($node, "SELECT count(*) FROM pg_locks WHERE pid = $pid AND locktype = 'advisory'"),
        41, 'it holds one lock for each, however often they attach');
    $session->query("SELECT pulse.heartbeat(w) FROM unnest('{$ids}'::bigint[]) AS w");
    is(value($node, $states), 'open', 'all stay attached when they beat');
    end_session($session, $terminated);
    is(value($node, $states), 'unknown', 'and none is held responsible when the server ends it');
};

subtest 'what a prepared transaction has attached is not given away' => sub {
    my $session = Pulse::Session->new($node);
    my ($first, $second) = split /,/, $session->query(q{SELECT string_agg(w.id::text, ',')
        FROM (SELECT (pulse.register_worker('prepared')).id FROM generate_series(1, 2)) AS w});
    $session->query("BEGIN; SELECT pulse.attach_worker($first); PREPARE TRANSACTION 'attach'");
    $session->query("COMMIT PREPARED 'attach'; SELECT pulse.attach_worker($second)");
    is(value($node, "SELECT count(DISTINCT attachment) FROM pulse.heartbeat
        WHERE worker_id IN ($first, $second)"), 2, 'each worker has its own');
    $session->quit;
};

subtest 'an end in order counts when it is committed' => sub {
    my ($worker, $other) = map { Pulse::SqlWorker->new($node, $_) } qw(undecided other);
    for my $undone ("BEGIN; %s; ROLLBACK", "BEGIN; SAVEPOINT a; %s; ROLLBACK TO a; COMMIT") {
        $worker->query(sprintf $undone, 'SELECT pulse.deregister_worker(' . $worker->id . ')');
    }
    $worker->query('SELECT pulse.heartbeat(' . $worker->id . ')');
    is(session_of($worker), 'open', 'a worker that did not end stays attached');
    end_session($worker, $killed);
    is(session_of($worker), 'ended', 'and is held to its session');

    my $locks = q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = }
      . $other->backend_pid;
    for (1 .. 3) {
        $other->query('SELECT pulse.deregister_worker(' . $other->id . ')');
        $other->{id} = $other->query(q{SELECT id FROM pulse.register_worker('other')});
        $other->query('SELECT pulse.attach_worker(' . $other->id . ')');
    }
    is(value($node, $locks), 1, 'those that did leave no locks behind');
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

    end_session($old, $terminated);
    end_session($new, $killed);
    is(value($node, "SET pulse.clock_offset = '3s'; SELECT workers_lost FROM pulse.sweep()",
            'again'), 1, 'which is lost by the end of its own session');
};

expect_healthy($node);
done_testing();
