# The places for databases in shared memory: reading a setting takes none, so a role without any
# right cannot use them up, and DROP EXTENSION gives one back. A database without a place is served
# by polling, which the server's log tells.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

use constant { PRELOADED => 64, NOT_PRELOADED => 4 };

my $no_place = qr/no pg_pulse shared memory is left for this database/;

# Installs the extension and works in it; returns whether the database has a place.
sub is_served {
    my ($node, $database) = @_;
    my $from = -s $node->logfile;
    value($node, 'CREATE EXTENSION IF NOT EXISTS pg_pulse', $database);
    value($node, q{SELECT pulse.claim(id) FROM pulse.register_worker('ann')}, $database);
    return substr(slurp_file($node->logfile), $from) !~ $no_place;
}

subtest 'reading a setting takes no place' => sub {
    my $node = new_server('preloaded');
    $node->start;
    value($node, 'CREATE ROLE stranger LOGIN');
    my @names = map { "d$_" } 1 .. PRELOADED;
    value($node, "CREATE DATABASE $_ TEMPLATE template0 STRATEGY file_copy") for @names;
    for my $name (@names) {
        $node->safe_psql($name, q{SHOW pulse.background_sweeps; SELECT count(*) FROM pg_settings},
            extra_params => [ '-U', 'stranger' ]);
    }
    ok(is_served($node, 'postgres'), 'a role without rights has read one in 64 other databases');
    is(value($node, 'SHOW pulse.background_sweeps'), 'off', 'the setting is shown all the same');
    expect_healthy($node);
    $node->stop;
};

subtest 'DROP EXTENSION gives the place back' => sub {
    my $node = new_server('plain', preload => 0, settings => {%PATIENT});
    $node->start;
    my @names = map { "d$_" } 1 .. NOT_PRELOADED;
    value($node, "CREATE DATABASE $_") for @names;
    is(scalar(grep { is_served($node, $_) } @names), NOT_PRELOADED, 'four databases have places');
    ok(!is_served($node, 'postgres'), 'a fifth has none');

    my $session = Pulse::Session->new($node, database => 'd1');
    $session->query(q{SELECT id FROM pulse.register_worker('old')});
    value($node, 'BEGIN; DROP EXTENSION pg_pulse; ROLLBACK', 'd1');
    value($node, 'BEGIN; SAVEPOINT s; DROP EXTENSION pg_pulse; ROLLBACK TO s; COMMIT', 'd1');
    ok(!is_served($node, 'postgres'), 'nor once a drop was rolled back');
    value($node, 'DROP EXTENSION pg_pulse', 'd1');
    ok(is_served($node, 'postgres'), 'it has the one of a database that dropped the extension');

    my $from = -s $node->logfile;
    ok(!is_served($node, 'd1'), 'which has none when it installs the extension again');
    $from = -s $node->logfile;
    $session->query(q{SELECT pulse.add_job('task')});
    like(substr(slurp_file($node->logfile), $from), $no_place, 'nor has a session from before');
    $session->quit;
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job', 'd1');
    expect_healthy($node);
};

subtest 'a database without a place promotes more queues than it can lock' => sub {
    my $node = new_server('narrow', preload => 0, settings => {
        %PATIENT, max_connections => 20 });
    $node->start;
    my @names = map { "d$_" } 1 .. NOT_PRELOADED;
    value($node, "CREATE DATABASE $_") for @names;
    is_served($node, $_) for @names;
    ok(!is_served($node, 'postgres'), 'given a database without a place');
    value($node, q{SELECT count(pulse.add_job('task', queue_name => 'q' || n))
        FROM generate_series(1, 12000) AS n});
    value($node, 'SELECT pulse.sweep()') for 1 .. 6;
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE state = 'ready'}), 12000,
        'each sweep promotes two thousand more');
    expect_healthy($node);
    $node->stop;
};

done_testing();
