# The server's files under another server, with jobs of every state: pg_upgrade and a restore by
# file go on at once, recover what ran, and make no number twice. A clone of the same identity is
# held back by pulse.claims.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::States;

my $old = start_server('old', settings => \%PATIENT, streaming => 1);
value($old, 'CREATE EXTENSION pg_pulse_graphile');
my $given = given_every_state($old, 'postgres');
my $id = $given->{id};

sub system_identifier {
    return value($_[0], 'SELECT system_identifier FROM pg_control_system()');
}

# Another server's identity in a stopped server's control file; pg_resetwal mends its checksum and
# begins a WAL of that identity.
sub change_system_identifier {
    my ($node) = @_;
    my $path = $node->data_dir . '/global/pg_control';
    open my $file, '+<:raw', $path or die "$path: $!\n";
    print {$file} pack 'Q', 4711;
    close $file or die "$path: $!\n";
    command_ok([ 'pg_resetwal', '-f', '-D', $node->data_dir ], 'pg_resetwal');
    return;
}

# What is there is this server's own: jobs are claimed at once, above the numbers of before.
sub goes_on {
    my ($node, $before) = @_;
    my $epoch = value($node, 'SELECT epoch_base FROM pulse.installation');
    # Its sessions ended with the old server, which says nothing; nobody waits for their silence.
    value($node, 'SELECT pulse.declare_lost(' . $given->{worker}->id . q{, 'another server')});
    is(value($node, "SELECT attempts, crashes FROM pulse.job WHERE id = $id->{running}"),
        '1|1', 'what ran is recovered');
    works_as_its_own($node, 'postgres', $before, @$id{qw(ready parked running)});
    cmp_ok(value($node, 'SELECT epoch_base FROM pulse.installation'),
        '>', $epoch, 'the base of the numbers rose');
    like(slurp_file($node->logfile), qr/LOG:  pg_pulse continues in database \d+ under another/,
        'and the log says so');
    is(value($node, 'SELECT system_identifier FROM pulse.installation'),
        system_identifier($node), 'the server is known from now on');
    return;
}

my $before = numbers($old, 'postgres');
my $tables = tables($old, 'postgres');

# Of a running server, beside which it is to be tried.
$old->backup('hot');
subtest 'a physical clone with pulse.claims = off hands out nothing' => sub {
    my $clone = PostgreSQL::Test::Cluster->new('clone');
    $clone->init_from_backup($old, 'hot');
    $clone->append_conf('postgresql.conf', 'pulse.claims = off');
    $clone->start;
    is(system_identifier($clone), system_identifier($old), 'it looks like production');
    is_deeply(tables($clone, 'postgres'), $tables, 'and has its jobs');
    my $worker = Pulse::SqlWorker->new($clone, 'clone');
    my $worker_id = $worker->id;
    is($worker->refusal("SELECT pulse.claim($worker_id)"), 'PU008', 'claim is refused');
    like($worker->said, qr/HINT:  Set pulse\.claims = on where jobs are to run\./, 'says how');
    is($worker->refusal("SELECT pulse.claim_job($worker_id, $id->{ready})"),
        'PU008', 'as is claim_job');
    my $added = add_job($clone, 'added');
    is($worker->beat, 'alive', 'everything else works');
    value($clone, 'SELECT pulse.adopt_installation()');
    is($worker->refusal("SELECT pulse.claim($worker_id)"), 'PU008', 'adopting it is not enough');
    $worker->quit;
    value($clone, 'ALTER SYSTEM SET pulse.claims = on');
    $clone->reload;
    wait_until($clone, q{SELECT current_setting('pulse.claims') = 'on'}, 'claims are on');
    works_as_its_own($clone, 'postgres', numbers($clone, 'postgres'), $id->{ready}, $added);
    expect_healthy($clone);
    $clone->stop;
};

$given->{worker}->quit;
subtest 'a promoted standby' => sub {
    my $standby = PostgreSQL::Test::Cluster->new('standby');
    $standby->init_from_backup($old, 'hot', has_streaming => 1);
    $standby->start;
    $old->wait_for_catchup($standby);
    is(value($standby, 'SELECT pulse_internal.installation_standing()'), 'ours',
        'a standby can look');
    $old->stop;
    $standby->promote;
    is_deeply(tables($standby, 'postgres'), $tables, 'it has the same jobs');
    value($standby, 'SELECT pulse.declare_lost(' . $given->{worker}->id . q{, 'it is gone')});
    works_as_its_own($standby, 'postgres', $before, @$id{qw(ready parked running)});
    is(value($standby, 'SELECT epoch_base, timeline FROM pulse.installation'),
        '0|2', 'the later timeline alone made greater numbers');
    expect_healthy($standby);
    $standby->stop;
};

$old->backup_fs_cold('cold');

subtest 'the same files under another system identifier' => sub {
    my $moved = PostgreSQL::Test::Cluster->new('moved');
    $moved->init_from_backup($old, 'cold');
    change_system_identifier($moved);
    $moved->start;
    is(system_identifier($moved), 4711, 'it is another server');
    is_deeply(tables($moved, 'postgres'), $tables, 'with the same jobs');
    goes_on($moved, $before);
    expect_healthy($moved);
    $moved->stop;
};

subtest 'pg_upgrade' => sub {
    my $upgraded = new_server('upgraded', settings => \%PATIENT);
    my $bindir = server_folder('bindir');
    my $work = PostgreSQL::Test::Utils::tempdir;
    local $ENV{PGOPTIONS};
    delete $ENV{PGOPTIONS};
    chdir $work or die "$work: $!\n";
    command_ok(
        [
            'pg_upgrade', '-d', $old->data_dir, '-D', $upgraded->data_dir,
            '-b', $bindir, '-B', $bindir, '-s', $upgraded->host, '-p', $old->port,
            '-P', $upgraded->port
        ],
        'pg_upgrade');
    $upgraded->start;
    isnt(system_identifier($upgraded), value($upgraded,
            'SELECT system_identifier FROM pulse.installation'), 'it is another server');
    is_deeply(tables($upgraded, 'postgres'), $tables, 'with the same jobs');
    is(value($upgraded, q{SELECT (graphile_worker.add_job('legacy', job_key => 'k')).key}),
        'k', 'the schema of Graphile Worker came along');
    value($upgraded, q{SELECT graphile_worker.remove_job('k')});
    goes_on($upgraded, $before);
    expect_healthy($upgraded);
};

done_testing();
