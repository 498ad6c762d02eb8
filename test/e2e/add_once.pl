# add_job_once: sixty-four sessions add under one key at once while some of them die, and each
# period has one job; what is undone, also after PREPARE TRANSACTION and a crash, never was.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

my ($sessions, $dying) = (64, 16);
my $node = start_server('main',
    settings => { %PATIENT, max_connections => 100, max_prepared_transactions => 2 });
my $once = q{pulse.add_job_once('1 h', 'key', 'task')};
my $counts = q{SELECT count(*) || ' of ' || count(DISTINCT k.job_id)
    FROM pulse.job AS j LEFT JOIN pulse.remembered_key AS k ON k.job_id = j.id};

my @producers = map { Pulse::Session->new($node) } 1 .. $sessions;

# One session holds the key, all others wait for it.
sub all_add {
    my ($how) = @_;
    $producers[0]->query('BEGIN');
    is($producers[0]->query("SELECT is_new FROM $once"), 't', 'the first add is new');
    $_->ask("SELECT is_new FROM $once") for @producers[ 1 .. $#producers ];
    wait_until($node, q{SELECT count(*) = } . $#producers
          . q{ FROM pg_stat_activity WHERE wait_event_type = 'Lock'});
    for my $victim (splice @producers, 1, $dying) {
        value($node, 'SELECT pg_terminate_backend(' . $victim->backend_pid . ')');
        $victim->quit;
    }
    $producers[0]->query($how);
    return join '', sort map { $_->answer } @producers[ 1 .. $#producers ];
}

like(all_add('ROLLBACK'), qr/^f+t$/, 'after a rollback one of all that waited adds');
is(value($node, $counts), '1 of 1', 'one job, and its key');
value($node, q{SELECT pulse.forget_once('task', 'key')});
value($node, 'DELETE FROM pulse.job');
like(all_add('COMMIT'), qr/^f+$/, 'after a commit none does');
is(value($node, $counts), '1 of 1', 'one job again');
$_->quit for @producers;

value($node, q{SELECT pulse.forget_once('task', 'key')});
value($node, 'DELETE FROM pulse.job');
for my $end ([ 'ROLLBACK', 't' ], [ 'COMMIT', 'f' ]) {
    my ($how, $is_new) = @$end;
    $node->safe_psql('postgres', "BEGIN; SELECT $once; PREPARE TRANSACTION 'once'");
    kill_server($node);
    $node->start;
    my $session = Pulse::Session->new($node);
    $session->query(q{SET lock_timeout = '100ms'});
    is($session->refusal("SELECT is_new FROM $once"), '55P03', 'a prepared add is waited for');
    $session->quit;
    value($node, "$how PREPARED 'once'");
    is(value($node, "SELECT is_new FROM $once"), $is_new, "$how PREPARED decides");
    value($node, q{SELECT pulse.forget_once('task', 'key')});
}

expect_healthy($node);
done_testing();
