# P11: the background worker, workers and waits are in nobody's way: what needs a database or the
# extension for itself, and every kind of shutdown, is done within five seconds with PULSE_LONG. A
# busy machine may take longer, but less than those in the way would stay: an hour, or for ever.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Program;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

use constant { WITHIN => $ENV{PULSE_LONG} ? 5 : 45, WORKERS => 10 };

# So short an interval that a maintainer is there nearly always.
my $node = new_server('main', settings => {
    %QUICK,
    'pulse.sweep_interval' => '50ms',
    'pulse.databases' => 'shop,renamed',
    max_connections => 80,
    log_statement => 'none',
});
$node->start;

sub log_end { return -s $node->logfile }

# A database with the extension in which a maintainer is at work. Before: where the log was.
sub make_shop {
    my ($version) = @_;
    my $from = log_end();
    value($node, 'CREATE DATABASE shop');
    $version = $version ? " VERSION '$version'" : '';
    value($node, "CREATE EXTENSION pg_pulse$version; SELECT pulse.add_job('work')", 'shop');
    $node->reload;
    $node->wait_for_log(qr/pg_pulse maintenance started in database "shop"/, $from);
    wait_for_maintainer();
    return;
}

sub wait_for_maintainer {
    wait_until($node, q{SELECT count(*) > 0 FROM pg_stat_activity
        WHERE backend_type = 'pg_pulse maintainer' AND datname = 'shop'}, 'a maintainer');
    return;
}

sub expect_quick {
    my ($what, $do) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $began = time;
    $do->();
    my $seconds = time - $began;
    cmp_ok($seconds, '<', WITHIN, $what);
    note sprintf '%s took %.2f s', $what, $seconds;
    return;
}

sub expect_quick_sql {
    my ($statement, $database) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    expect_quick($statement, sub { value($node, $statement, $database) });
    return;
}

# Says now and then that it is alive. Not `SELECT id FROM add_job(…)`: an update that adds columns
# fails such a call when it arrives meanwhile.
my $script = PostgreSQL::Test::Utils::tempdir . '/work';
my $round = <<'SQL';
SELECT (pulse.add_job('work')).id \gset
SELECT coalesce(array_agg(id), '{}') AS ids, coalesce(array_agg(token), '{}') AS tokens
  FROM pulse.claim(:worker, 2) \gset
SELECT count(*) FROM pulse.complete_many(:'ids', :'tokens') \gset
SELECT status FROM pulse.heartbeat(:worker) \gset
SQL
append_to_file($script, q{SELECT id AS worker FROM pulse.register_worker('w', '{work}') \gset}
      . "\nSELECT pulse.attach_worker(:worker);\n"
      . ($round x 20 . "\\warn :status\n") x 2000);
# Waits again when a sweep is due: a slow machine has the maintainer late, and asks who waits.
my $waits = PostgreSQL::Test::Utils::tempdir . '/waits';
append_to_file($waits, "\\set ON_ERROR_STOP on\n"
      . "CALL pulse.wait_for_job(:worker, '1 hour');\n" x 20_000);
my $started = 0;

# Ten workers at work as fast as they can, and ten that wait.
sub start_fleet {
    my %fleet;
    for (1 .. WORKERS) {
        my $idle = Pulse::SqlWorker->new($node, 'idle ' . ++$started, database => 'shop');
        $idle->ask(join "\n", '\set worker ' . $idle->id,
            q{SELECT id FROM pulse.claim(:worker, 1, '{other}');}, "\\i $waits");
        push @{ $fleet{idle} }, $idle;
    }
    # On a slow machine a sweep is always due, and a session that waits is asked again and again.
    wait_until($node, q{SELECT count(*) >= 10 FROM pg_stat_activity
        WHERE datname = 'shop' AND query LIKE '%wait_for_job%'}, 'ten wait');
    push @{ $fleet{busy} }, Pulse::Program->start('busy-' . ++$started,
        [ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('shop'), '-f', $script ],
        output => 'stderr')
      for 1 .. WORKERS;
    $_->lines->wait_for('work', sub { $_[0] eq q{alive} }, count => 5) for @{ $fleet{busy} };
    wait_for_maintainer();
    return \%fleet;
}

sub end_fleet {
    my ($fleet) = @_;
    $_->kill for grep { !$_->{process}->is_gone } @{ $fleet->{busy} };
    $_->kill for @{ $fleet->{idle} };
    return;
}

subtest 'a database in which only the background worker is' => sub {
    make_shop();
    expect_quick_sql('CREATE DATABASE copy TEMPLATE shop');
    is(value($node, 'SELECT count(*) FROM pulse.job', 'copy'), 1, 'the copy is complete');
    wait_for_maintainer();
    expect_quick_sql('ALTER DATABASE shop RENAME TO renamed');
    expect_quick_sql('ALTER DATABASE renamed RENAME TO shop');
    wait_for_maintainer();
    expect_quick_sql('DROP DATABASE shop');
    value($node, 'DROP DATABASE copy');
};

subtest 'DROP EXTENSION, with ten workers at work and ten that wait' => sub {
    make_shop();
    my $fleet = start_fleet();
    expect_quick_sql(q{SET pulse.allow_drop = on; DROP EXTENSION pg_pulse}, 'shop');
    value($node, 'CREATE EXTENSION pg_pulse', 'shop');
    my $since = value($node, 'SELECT clock_timestamp()');
    wait_until($node, "SELECT max(last_tick) > '$since' FROM pulse.clock", 'a sweep', 'shop');
    pass('a new extension is looked after');
    end_fleet($fleet);
    value($node, 'DROP DATABASE shop WITH (FORCE)');
};

subtest 'DROP DATABASE WITH (FORCE), with ten workers at work and ten that wait' => sub {
    make_shop();
    my $fleet = start_fleet();
    expect_quick_sql('DROP DATABASE shop WITH (FORCE)');
    end_fleet($fleet);
};

subtest 'ALTER EXTENSION UPDATE, with ten workers at work and ten that wait' => sub {
    make_shop('0.1.0');
    my $fleet = start_fleet();
    expect_quick_sql('ALTER EXTENSION pg_pulse UPDATE', 'shop');
    is(value($node, q{SELECT extversion = pulse.version() FROM pg_extension
        WHERE extname = 'pg_pulse'}, 'shop'), 't', 'it is the new version');
    $_->lines->wait_for('more work', sub { $_[0] eq q{alive} }, from => $_->lines->position)
      for @{ $fleet->{busy} };
    pass('the workers go on');
    my $lost = $fleet->{idle}[0];
    $lost->kill;
    wait_until($node, q{SELECT state = 'lost' FROM pulse.worker WHERE id = } . $lost->id,
        'the worker is lost', 'shop');
    pass('and so does the background worker');
    end_fleet($fleet);
    is(value($node, 'SELECT * FROM pulse.verify()', 'shop'), '', 'verify() is empty');
    value($node, 'DROP DATABASE shop WITH (FORCE)');
};

for my $mode (qw(smart fast immediate)) {
    subtest "shutdown $mode" => sub {
        make_shop();
        Pulse::Psql::hang_up();
        expect_quick("stopping in mode $mode", sub { $node->stop($mode) });
        $node->start;
        value($node, 'DROP DATABASE shop');
    };
}

subtest 'pg_upgrade --check, of a server that runs and of one that does not' => sub {
    make_shop();
    my $new = PostgreSQL::Test::Cluster->new('new');
    $new->init;
    my $bindir = server_folder('bindir');
    my @check = ("$bindir/pg_upgrade", '--check', '--old-datadir', $node->data_dir,
        '--new-datadir', $new->data_dir, '--old-bindir', $bindir, '--new-bindir', $bindir,
        '--socketdir', $node->host, '--old-port', $node->port, '--new-port', $new->port);
    chdir PostgreSQL::Test::Utils::tempdir;
    command_ok(\@check, 'of one that runs');
    $node->stop;
    command_ok(\@check, 'of one that does not');
    $node->start;
    value($node, 'DROP DATABASE shop');
};

value($node, 'CREATE EXTENSION pg_pulse');
expect_healthy($node);
done_testing();
