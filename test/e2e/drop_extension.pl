# DROP EXTENSION with live jobs, in sessions that know nothing of pg_pulse and on a server that does
# not preload it: refused, however it is said, until somebody allows it. A database can be dropped.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;

my $node = start_server('main', preload => 0);
value($node, 'CREATE ROLE installer SUPERUSER');
for my $database (qw(owned dropped restored)) {
    $node->safe_psql('postgres', "CREATE DATABASE $database");
}
value($node, 'SET ROLE installer; CREATE EXTENSION pg_pulse', 'owned');
value($node, 'CREATE EXTENSION pg_pulse', 'dropped');
add_job($node, 'task', 'run_at => now() + interval \'1 day\'', $_) for qw(postgres owned dropped);

# The code that a statement is refused with in a session of its own, or nothing.
sub code_of {
    my ($statement, $database) = @_;
    my ($status, $out, $error) = $node->psql($database // 'postgres', "\\set VERBOSITY verbose
        $statement");
    return $error =~ /ERROR:  (\w{5}):/ ? $1 : '';
}

sub is_installed {
    my ($database) = @_;
    return value($node, q{SELECT count(*) FROM pg_extension WHERE extname = 'pg_pulse'}, $database);
}

subtest 'it is refused in a session that never loaded the library' => sub {
    is(code_of('DROP EXTENSION pg_pulse'), 'PU009', 'by itself');
    is(code_of('DROP EXTENSION pg_pulse CASCADE'), 'PU009', 'with what depends on it');
    is(code_of('DROP SCHEMA pulse CASCADE'), 'PU009', 'with its schema');
    is(code_of('DROP OWNED BY installer CASCADE', 'owned'), 'PU009', 'with what its owner has');
    is(is_installed($_), 1, "it is still there in $_") for qw(postgres owned);
};

subtest 'a dump is restored, guard and all' => sub {
    my $file = PostgreSQL::Test::Utils::tempdir . '/dump';
    $node->command_ok([ 'pg_dump', '-Fc', '-f', $file, $node->connstr('postgres') ], 'pg_dump');
    $node->command_ok(
        [ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $file ],
        'pg_restore');
    is(code_of('DROP EXTENSION pg_pulse', 'restored'), 'PU009', 'it guards the restored jobs');
};

subtest 'what says that live jobs may go lets them go' => sub {
    my $drop = 'DROP EXTENSION pg_pulse';
    is(code_of("SET pulse.allow_drop = on; $drop"), '', 'a setting of the session');
    is(is_installed('postgres'), 0, 'it is gone');
    value($node, 'ALTER DATABASE owned SET pulse.allow_drop = on');
    is(code_of('DROP OWNED BY installer CASCADE', 'owned'), '', 'or of the database');
    is(is_installed('owned'), 0, 'it is gone there too');
};

subtest 'what was known of its queues goes with it' => sub {
    my $run = sub { value($node, $_[0], 'again') };
    $node->safe_psql('postgres', 'CREATE DATABASE again');
    $run->('CREATE EXTENSION pg_pulse');
    add_job($node, 'task', q{queue_name => 'queue'}, 'again');
    my $file = PostgreSQL::Test::Utils::tempdir . '/jobs';
    $run->("COPY pulse.job TO '$file'");
    $run->('DELETE FROM pulse.job; SELECT pulse.sweep()');
    $run->('DROP EXTENSION pg_pulse; CREATE EXTENSION pg_pulse');
    $run->("COPY pulse.job FROM '$file'");
    is($run->(q{SELECT count(c.id) FROM pulse.register_worker('new') AS w, pulse.claim(w.id) AS c}),
        1, 'a claim of the next one finds what was restored behind a queue');
};

subtest 'it locks all tables, or none' => sub {
    value($node, 'CREATE EXTENSION pg_pulse');
    value($node, q{CREATE FUNCTION uninstall() RETURNS void LANGUAGE plpgsql
        AS 'BEGIN DROP EXTENSION pg_pulse; END'});
    my $reader = Pulse::Session->new($node);
    $reader->query('BEGIN; SELECT FROM pulse.queue');
    for my $drop ('DROP EXTENSION pg_pulse', 'SELECT uninstall()') {
        my (undef, undef, $error) = $node->psql('postgres', "SET lock_timeout = '300ms'; $drop");
        like($error, qr/the tables of pg_pulse are in use/, "$drop gives up");
    }
    $reader->query('COMMIT');
    $reader->quit;
    is(code_of('SELECT uninstall()'), '', 'a function may drop it');
};

subtest 'autovacuum yields' => sub {
    $node->append_conf('postgresql.conf', 'autovacuum_naptime = 1s');
    $node->reload;
    my $create = q{CREATE EXTENSION pg_pulse; ALTER TABLE pulse.job SET (
        autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_limit = 1, autovacuum_vacuum_cost_delay = %d)};
    my $waste = q{SELECT count(pulse.add_job('task')) FROM generate_series(1, 5000);
        DELETE FROM pulse.job};
    my $session = Pulse::Session->new($node);
    $session->query(q{SET pulse.allow_drop = on; SET statement_timeout = '30 s'});

    value($node, sprintf $create, 100);
    value($node, $waste);
    wait_until($node, q{SELECT count(*) > 0 FROM pg_stat_progress_vacuum
        WHERE relid = 'pulse.job'::regclass}, 'a slow vacuum of pulse.job');
    $session->query('DROP EXTENSION pg_pulse');
    is(is_installed('postgres'), 0, 'a vacuum that goes on for minutes');

    value($node, 'CREATE ROLE reader; ' . sprintf $create, 0);
    $session->query('BEGIN; GRANT SELECT ON pulse.job TO reader');
    value($node, $waste);
    wait_until($node, q{SELECT count(*) > 0 FROM pg_stat_activity
        WHERE backend_type = 'autovacuum worker' AND wait_event = 'transactionid'},
        'a vacuum that waits for the transaction');
    $session->query('DROP EXTENSION pg_pulse; COMMIT');
    is(is_installed('postgres'), 0, 'and one that waits for the very transaction');
    $session->quit;
};

subtest 'others are not concerned' => sub {
    is(code_of('DROP DATABASE dropped'), '', 'a database is dropped with its jobs');
    value($node, 'CREATE EXTENSION pg_pulse');
    value($node, 'CREATE SCHEMA other; CREATE TABLE other.job AS SELECT 1');
    is(code_of('DROP SCHEMA other CASCADE'), '', 'so is another schema');
    is(code_of('DROP EXTENSION pg_pulse'), '', 'and the extension when there are no jobs');
    value($node, 'CREATE EXTENSION pg_pulse');
};

expect_healthy($node);
done_testing();
