# doctor() on a primary and on its standby: a sound pair has no finding; a standby that lags, that
# replays nothing or has lost its primary, and commits that wait for nobody, or for nobody who is
# there, are named.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;

my $primary = start_server('primary', streaming => 1, settings => {
        %PATIENT,
        'pulse.databases' => 'postgres',
        # A sweep is late nowhere.
        'pulse.sweep_interval' => '15s',
        'pulse.sweep_threshold' => '60s',
        # A stopped receiver stays connected.
        wal_sender_timeout => '0',
        max_wal_size => '1GB',
    });
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

sub findings {
    my ($node, $settings) = @_;
    return value($node, ($settings // '') . q{SELECT string_agg(finding || ': ' || severity, ', ')
        FROM pulse.doctor()});
}

sub comes_to_find {
    my ($node, $finding, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    wait_until($node, "SELECT count(*) = 1 FROM pulse.doctor() WHERE finding = '$finding'", $what);
    like(findings($node), qr/^\Q$finding\E: \w+$/, $what);
    return;
}

wait_until($primary, 'SELECT count(*) = 0 FROM pulse.doctor()', 'a silent doctor');
$primary->wait_for_catchup($standby);
is(findings($primary), '', 'a primary with a standby is sound');
is(findings($standby), '', 'and so is the standby');

subtest 'a standby that lags' => sub {
    my $receiver = value($standby, 'SELECT pid FROM pg_stat_wal_receiver');
    kill 'STOP', $receiver or die "kill $receiver: $!\n";
    value($primary, q{SELECT count(pg_logical_emit_message(false, 'x', repeat('x', 1000000)))
        FROM generate_series(1, 70)});
    comes_to_find($primary, 'lagging standby', 'is named');
    like(value($primary, q{SELECT detail FROM pulse.doctor()}), qr/^Standby 'standby' lacks \d+ MB/,
        'with what a failover would lose');
    kill 'CONT', $receiver;
    $primary->wait_for_catchup($standby);
    wait_until($primary, 'SELECT count(*) = 0 FROM pulse.doctor()', 'that it has caught up');
};

subtest 'commits and standbys' => sub {
    is(findings($primary, 'SET synchronous_commit = remote_apply;'),
        'synchronous_commit at odds: warning', 'a session that waits for a standby, with none set');
    is(findings($primary, 'SET synchronous_commit = off;'), '', 'one that waits for nothing');
    value($primary, q{ALTER SYSTEM SET synchronous_standby_names = 'standby'});
    $primary->reload;
    wait_until($primary, q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'},
        'a synchronous standby');
    is(findings($primary), '', 'a synchronous standby that is there');
    is(findings($primary, "SET synchronous_commit = $_;"), 'synchronous_commit at odds: warning',
        "a session with $_ does not wait for it")
      for qw(off local);
    is(findings($primary, 'SET synchronous_commit = remote_apply;'), '', 'one that waits for more');
    value($primary, q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
    $primary->reload;
    comes_to_find($primary, 'no synchronous standby', 'one that is not there is an error');
    value($primary, 'ALTER SYSTEM RESET synchronous_standby_names');
    $primary->reload;
    wait_until($primary, 'SELECT count(*) = 0 FROM pulse.doctor()', 'that nothing is set');
};

subtest 'a standby that replays nothing' => sub {
    value($standby, 'SELECT pg_wal_replay_pause()');
    comes_to_find($standby, 'replay paused', 'is named there');
    value($standby, 'SELECT pg_wal_replay_resume()');
    is(findings($standby), '', 'until it goes on');
};

subtest 'a standby without a primary' => sub {
    $primary->stop('fast');
    comes_to_find($standby, 'no primary', 'says so');
    $primary->start;
    wait_until($standby, 'SELECT count(*) = 0 FROM pulse.doctor()', 'that the primary is back');
};

expect_healthy($primary);
done_testing();
