# doctor() is silent on a sound installation, and names what is planted: troubles of the whole
# server, which no transaction of a test can plant. test/pgtap/doctor.sql plants the others.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

my $node = start_server('main', settings => {
        'pulse.databases' => 'postgres',
        'wal_level' => 'replica',
        # A busy machine may be late with a sweep.
        'pulse.sweep_interval' => '15s',
        'pulse.sweep_threshold' => '60s',
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

wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'a silent doctor');
is(findings(), '', 'a new installation is sound');
my $worker = $session->query(q{SELECT id FROM pulse.register_worker('ann')});
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
    $session->query('ALTER TABLE pulse.attempt SET (autovacuum_enabled = off)');
    $session->query(q{INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome)
        SELECT n, n, 1, now(), 'failed' FROM generate_series(1, 50001) AS n});
    $session->query('DELETE FROM pulse.attempt WHERE job_id = token');
    wait_until($node, q{SELECT count(*) = 1 FROM pulse.doctor() WHERE finding = 'dead rows'},
        'dead rows');
    like(findings(), qr/^autovacuum off: warning, dead rows: warning$/, 'are told, with the cause');
    $session->query('ALTER TABLE pulse.attempt RESET (autovacuum_enabled)');
    $session->query('VACUUM pulse.attempt');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'no dead rows');
    pass('until they are vacuumed');
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
    wait_until($node, q{SELECT string_agg(finding, ' ') = 'clock moved' FROM pulse.doctor()},
        'a clock that a setting of the database moves');
    pass('a clock that tests moved is told');
    $session->query('ALTER DATABASE postgres RESET pulse.clock_offset');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'a silent doctor');
    pass('all is well again');
};

$session->query("SELECT pulse.deregister_worker($worker)");
expect_healthy($node);
done_testing();
