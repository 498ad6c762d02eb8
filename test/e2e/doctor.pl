# doctor() is silent on a sound installation, and names what is planted: troubles of the whole
# server, which no transaction of a test can plant. test/pgtap/doctor.sql plants the others.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

my $node = start_server('main', streaming => 1, settings => {
        'pulse.databases' => 'postgres',
        # A busy machine may be late with a sweep; and ann, who never beats, outlives the test.
        'pulse.sweep_interval' => '15s',
        'pulse.sweep_threshold' => '1200s',
    });
my $session = Pulse::Session->new($node);

sub findings {
    my ($settings) = @_;
    return $session->query(($settings // '')
          . q{SELECT string_agg(finding || ': ' || severity, ', ') FROM pulse.doctor()});
}

sub finds {
    my ($finding, $what) = @_;
    wait_until($node, "SELECT count(*) = 1 FROM pulse.doctor() WHERE finding = '$finding'", $what);
    is(findings(), "$finding: warning", $what);
    return;
}

sub pass_transactions {
    my ($count) = @_;
    $session->query("SET synchronous_commit = off; DO \$\$ BEGIN FOR i IN 1 .. $count LOOP"
          . ' PERFORM pg_current_xact_id(); ROLLBACK; END LOOP; END $$; RESET synchronous_commit');
    return;
}

wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'a silent doctor');
is(findings(), '', 'a new installation is sound');
# It lives as long as its session, however long a busy machine takes for what follows.
my $worker = $session->query(q{SELECT id FROM pulse.register_worker('ann', NULL, NULL, '0')});
$session->query("SELECT pulse.attach_worker($worker)");
add_jobs($node, 'work', 100);
$session->query("SELECT count(*) FROM pulse.claim($worker, 50)");
$session->query('SELECT pulse.fail(c.id, c.token, $$no$$, retry => false)'
      . " FROM pulse.claim($worker, 10) AS c");
is(findings(), '', 'and so is one that works');

subtest 'a transaction that stays open' => sub {
    my $reader = Pulse::Session->new($node);
    $reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    $reader->query('SELECT count(*) FROM pulse.job');
    is(findings(), '', 'is no trouble at first');
    my $later = q{SET pulse.clock_offset = '6 min'; };
    my $pid = $reader->query('SELECT pg_backend_pid()');
    like($session->query($later . q{SELECT detail, what_to_do FROM pulse.doctor()
        WHERE finding = 'old transaction'}), qr/^Process $pid .*pg_terminate_backend\($pid\)/,
        'is after five minutes, and is named');
    $reader->query('COMMIT');
    is($session->query($later . q{SELECT * FROM pulse.doctor() WHERE finding = 'old transaction'}),
        '', 'its end ends the trouble');
    $reader->query("BEGIN; SELECT pulse.add_job('work'); PREPARE TRANSACTION 'kept'");
    like($session->query($later . q{SELECT what_to_do FROM pulse.doctor()
        WHERE finding = 'old prepared transaction'}), qr/'kept'/, 'so does a prepared one');
    $reader->query("ROLLBACK PREPARED 'kept'");
    $session->query('RESET pulse.clock_offset');
    is(findings(), '', 'until it ends');
};

subtest 'a session that has written and waits, which has no snapshot' => sub {
    my $writer = Pulse::Session->new($node);
    $writer->query('BEGIN');
    $writer->query("SELECT pulse.add_job('work')");
    my $pid = $writer->query('SELECT pg_backend_pid()');
    is($session->query("SELECT backend_xmin FROM pg_stat_activity WHERE pid = $pid"), '',
        'it has none');
    # What it keeps: rows that die now stay.
    $session->query('CREATE TABLE died AS SELECT 1 AS n; DELETE FROM died');
    $session->query('VACUUM died');
    is($session->query('SELECT pg_relation_size($$died$$) > 0'), 't', 'and keeps dead rows');
    like($session->query(q{SET pulse.clock_offset = '6 min'; SELECT detail, what_to_do
        FROM pulse.doctor() WHERE finding = 'old transaction'}),
        qr/^Process $pid of role \S+, idle in its transaction .*pg_terminate_backend\($pid\)/,
        'is named');
    $writer->query('ROLLBACK');
    is($session->query(q{SELECT * FROM pulse.doctor() WHERE finding = 'old transaction'}), '',
        'its end ends the trouble');
    $session->query('RESET pulse.clock_offset; VACUUM died');
    is($session->query('SELECT pg_relation_size($$died$$)'), 0, 'the dead rows go');
};

subtest 'a standby with a long query' => sub {
    $node->backup('copy');
    my $standby = PostgreSQL::Test::Cluster->new('standby');
    $standby->init_from_backup($node, 'copy', has_streaming => 1);
    $standby->append_conf('postgresql.conf',
        "hot_standby_feedback = on\nwal_receiver_status_interval = 1\n"
          . "max_standby_streaming_delay = -1");
    $standby->start;
    my $reader = Pulse::Session->new($standby);
    $reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    $reader->query('SELECT count(*) FROM pulse.job');
    wait_until($node, q{SELECT count(*) = 1 FROM pulse_internal.horizon_holder
        WHERE kind = 'standby'}, 'its feedback');
    is(findings(), '', 'is no trouble at first');
    pass_transactions(1_001_000);
    like($session->query('SELECT detail, what_to_do FROM pulse.doctor()'),
        qr/^Standby standby, .* last 1\d{6} transactions.*hot_standby_feedback/,
        'is after a million transactions, and is named');
    $reader->query('COMMIT');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'a silent doctor');
    pass('until the query ends');
    $reader->quit;
    $standby->stop;
};

subtest 'a replication slot that nothing uses' => sub {
    $session->query(q{SELECT pg_create_physical_replication_slot('left_over', true)});
    is(findings(), '', 'is no trouble at first');
    $session->query(q{SELECT pg_logical_emit_message(false, 'x', 'y'), pg_switch_wal()})
      for 1 .. 14;
    like($session->query('SELECT detail, what_to_do FROM pulse.doctor()'),
        qr/'left_over', which nothing uses, keeps \d+ MB .*pg_drop_replication_slot\('left_over'\)/,
        'is once it keeps much WAL, and is named');
    $session->query(q{SELECT pg_drop_replication_slot('left_over')});
    is(findings(), '', 'until it is dropped');
};

subtest 'dead rows' => sub {
    my $reader = Pulse::Session->new($node);
    $reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    my $pid = $reader->query('SELECT pg_backend_pid()');
    $session->query('ALTER TABLE pulse.attempt SET (autovacuum_enabled = off)');
    $session->query(q{INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
        SELECT n, n, 1, now(), 'failed' FROM generate_series(1, 50001) AS n});
    $session->query('DELETE FROM pulse.attempt WHERE job_id = token');
    wait_until($node, q{SELECT count(*) = 1 FROM pulse.doctor() WHERE finding = 'dead rows'},
        'dead rows');
    like(findings(), qr/^autovacuum off: warning, dead rows: warning$/, 'are told, with the cause');
    pass_transactions(1_001);
    like($session->query(q{SELECT detail FROM pulse.doctor() WHERE finding = 'dead rows'}),
        qr/ones\. Process $pid of role .* keeps those of the last 1\d{3} transactions\.$/,
        'and with who keeps them');
    $reader->query('COMMIT');
    like($session->query(q{SELECT detail FROM pulse.doctor() WHERE finding = 'dead rows'}),
        qr/ones\.$/, 'while somebody does');
    $session->query('ALTER TABLE pulse.attempt RESET (autovacuum_enabled)');
    $session->query('VACUUM pulse.attempt');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'no dead rows');
    pass('until they are vacuumed');
};

subtest 'the disks' => sub {
    my $folder = $node->data_dir;
    my $elsewhere = PostgreSQL::Test::Utils::tempdir_short();
    $session->query("CREATE TABLESPACE elsewhere LOCATION '$elsewhere'");
    my %place = (
        1663 => $folder,
        0 => "$folder/pg_wal",
        $session->query(q{SELECT oid FROM pg_tablespace WHERE spcname = 'elsewhere'}) =>
          $elsewhere);
    for my $tablespace (sort keys %place) {
        my ($out) = PostgreSQL::Test::Utils::run_command(
            [ 'df', '-B1', '--output=size,avail', $place{$tablespace} ]);
        my ($size, $free) = $out =~ /(\d+)\s+(\d+)\s*$/;
        my ($total, $known) = split /\|/, $session->query(
            "SELECT total_bytes, free_bytes FROM pulse_internal.disk_space($tablespace)");
        is($total, $size, "the size of the disk of $place{$tablespace} is known");
        # Others write meanwhile.
        cmp_ok(abs($known - $free), '<', 1024**3, 'and what is free of it');
    }
    is($session->query('SELECT * FROM pulse_internal.disk_space(1)'), '||',
        'nothing is known of a folder that is not there');
    $session->query('DROP TABLESPACE elsewhere');
};

subtest 'settings of the server' => sub {
    $session->query(q{ALTER SYSTEM SET pulse.databases = 'postgres, shpo'});
    $node->reload;
    finds('unknown database', 'a misspelt database');
    $session->query(q{ALTER SYSTEM SET pulse.databases = ''});
    $node->reload;
    finds('no background worker', 'a database without maintainer');
    $session->query('ALTER SYSTEM RESET pulse.databases');
    $session->query(q{ALTER DATABASE postgres SET pulse.clock_offset = '1 s'});
    $node->reload;
    Pulse::Psql::hang_up();
    wait_until($node, q{SELECT string_agg(finding, ' ') = 'clock moved' FROM pulse.doctor()},
        'a clock that a setting of the database moves');
    pass('a clock that tests moved is told');
    $session->query('ALTER DATABASE postgres RESET pulse.clock_offset');
    Pulse::Psql::hang_up();
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'a silent doctor');
    pass('all is well again');
};

subtest 'a task of which most attempts fail' => sub {
    my $fail = 'SELECT count(pulse.fail(c.id, c.token, $$cannot reach the bank$$))'
      . " FROM pulse.claim($worker, %d, '{broken}') AS c";
    my $detail = q{SELECT detail FROM pulse.doctor() WHERE finding = 'attempts fail'};
    add_jobs($node, 'broken', 50);
    $session->query(sprintf $fail, 19);
    is($session->query($detail), '', 'is no finding while few fail');
    $session->query(sprintf $fail, 1);
    like($session->query($detail),
        qr/^Of 20 attempts of task 'broken' within a minute 20 failed, such as one of job \d+ /,
        'then is');
    like($session->query($detail), qr/with: cannot reach the bank[.]$/, 'with an error');
    $session->query('SELECT count(pulse.complete(c.id, c.token))'
          . " FROM pulse.claim($worker, 21, '{broken}') AS c");
    is($session->query($detail), '', 'nor while more complete than fail');
};

$session->query("SELECT pulse.deregister_worker($worker)");
expect_healthy($node);
done_testing();
