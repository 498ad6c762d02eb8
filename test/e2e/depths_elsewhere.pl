# Counts of jobs belong to the memory of one server: a promoted standby and a restored dump begin
# without counts, say so, and are right after one recount. A commit that adds its changes later than
# others see them is counted once, also when a whole recount comes between.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Depths;
use Pulse::Lines;
use Pulse::Server;
use Pulse::Session;

my $primary = start_server(
    'primary',
    streaming => 1,
    settings => { %PATIENT, log_min_messages => 'debug1' }
);
my $depths = Pulse::Depths->new($primary);

value($primary, q{INSERT INTO pulse.job (identifier, queue_name, state)
    SELECT 'task ' || n % 7, 'queue ' || n, 'parked' FROM generate_series(1, 40000) AS n});
add_jobs($primary, 'open', 5);
$depths->become_exact;

# Whether the session answers soon.
sub answers_soon {
    my ($session) = @_;
    for (1 .. 100) {
        return 1 if $session->has_answered;
        Pulse::Lines::pause();
    }
    return 0;
}

# Stops a session while it copies the counts, which it does nearly all the time; no other session
# reads or adds counts meanwhile. A session that is stopped elsewhere may have a spinlock of the
# server: whoever needs that spinlock crashes after two minutes, so the session goes on before.
sub stop_reader {
    my ($reader, $prober, $watcher) = @_;
    my $is_held = q{SELECT count(*) FROM pg_stat_activity WHERE pid = } . $prober->backend_pid
      . q{ AND wait_event = 'pg_pulse depths'};
    my $pid = $reader->backend_pid;
    for (1 .. 500) {
        # Between two stops it has time for a reading.
        $prober->query('SELECT count(*) FROM pulse_internal.depths()');
        kill 'STOP', $pid;
        Pulse::Lines::pause() until slurp_file("/proc/$pid/stat") =~ /\) T /;
        $prober->ask('SELECT count(*) FROM pulse_internal.depths()');
        for (1 .. 50) {
            $watcher->ask($is_held);
            last unless answers_soon($watcher);
            return if $watcher->answer eq '1';
            last if $prober->has_answered;
        }
        kill 'CONT', $pid;
        $_->answer for $watcher, $prober;
    }
    die "never: a reader stopped while it has the lock\n";
}

subtest 'a commit is counted once, though a recount comes before it adds' => sub {
    my $late = Pulse::Session->new($primary);
    my $reader = Pulse::Session->new($primary);
    my $prober = Pulse::Session->new($primary);
    my $watcher = Pulse::Session->new($primary);
    # The end of a prepared transaction makes a recount due.
    value($primary, q{BEGIN; SELECT pulse.add_job('two'); PREPARE TRANSACTION 'p'});
    $late->query(q{BEGIN; SELECT pulse.add_job('late')});
    $reader->ask(q{DO $$ BEGIN LOOP PERFORM count(*) FROM pulse_internal.depths(); COMMIT;
        END LOOP; END $$});
    stop_reader($reader, $prober, $watcher);
    $late->ask('COMMIT');
    wait_until($primary, q{SELECT wait_event = 'pg_pulse depths' FROM pg_stat_activity
        WHERE pid = } . $late->backend_pid, 'the commit waits for the counts');
    is(value($primary, q{SELECT count(*) FROM pulse.job WHERE identifier = 'late'}), 1,
        'others see the job already');
    kill 'STOP', $late->backend_pid;
    my $told = -s $primary->logfile;
    value($primary, q{COMMIT PREPARED 'p'});
    kill 'CONT', $reader->backend_pid;
    $prober->answer;
    value($primary, q{SELECT pg_cancel_backend(} . $reader->backend_pid . ')');
    $reader->answer;
    # The reader may have started the recount already. Nobody reads counts while the recount goes
    # on, because a lock wakes nobody behind a waiter that is stopped.
    my $begun = qr/registering background worker "pg_pulse recounter"/;
    until (substr(slurp_file($primary->logfile), $told) =~ $begun) {
        last if $watcher->query('SELECT pulse_internal.recount_if_read()') eq 't';
        Pulse::Lines::pause();
    }
    $primary->wait_for_log(qr/un$begun/, $told);
    kill 'CONT', $late->backend_pid;
    $late->answer;
    is($depths->of('task', 'two'), '1|0|0', 'the recount has ended');
    is($depths->of('task', 'late'), '1|0|0', 'and the commit added nothing to its counts');
    is($depths->is_exact, 't', 'which are exact');
    is($depths->differences, '', 'and count(*) says the same');
};

subtest 'a restored dump' => sub {
    my $file = PostgreSQL::Test::Utils::tempdir . '/dump';
    $primary->command_ok([ 'pg_dump', '-Fc', '-f', $file, $primary->connstr('postgres') ],
        'is made');
    value($primary, 'CREATE DATABASE restored');
    $primary->command_ok([ 'pg_restore', '--exit-on-error', '-d', $primary->connstr('restored'),
            $file ], 'and read');
    is(value($primary, 'SELECT count(*) FROM pulse_internal.depths()', 'restored'), 0,
        'it begins without counts');
    wait_until($primary,
        'SELECT coalesce(bool_and(is_exact), false) FROM pulse_internal.depths()',
        'recounted', 'restored');
    is(value($primary, q{SELECT ready, parked, running FROM pulse_internal.depths()
        WHERE kind = 'all'}, 'restored'), '7|40000|0', 'rightly');
    is($depths->differences, '', 'which changes nothing elsewhere');
};

subtest 'a copy of a database, which takes over what another had' => sub {
    value($primary, 'CREATE DATABASE original');
    value($primary, 'CREATE EXTENSION pg_pulse', 'original');
    wait_until($primary,
        'SELECT coalesce(bool_and(is_exact), false) FROM pulse_internal.depths()',
        'counted', 'original');
    value($primary, q{INSERT INTO pulse.job (identifier, queue_name, state)
        VALUES ('one', 'q', 'parked')}, 'original');
    value($primary, 'CREATE DATABASE same TEMPLATE original');
    value($primary, 'DELETE FROM pulse.job; DROP EXTENSION pg_pulse', 'original');
    is(value($primary, 'SELECT count(*) FROM pulse_internal.depths()', 'same'), 0,
        'begins without counts, though its table has the same number');
};

subtest 'a promoted standby' => sub {
    $primary->backup('copy');
    my $standby = PostgreSQL::Test::Cluster->new('standby');
    $standby->init_from_backup($primary, 'copy', has_streaming => 1);
    $standby->start;
    add_jobs($primary, 'streamed', 3);
    $primary->wait_for_catchup($standby);
    my $there = Pulse::Depths->new($standby);
    is(value($standby, 'SELECT count(*) FROM pulse_internal.depths()'), 0,
        'a standby counts nothing');
    is(value($standby, q{SELECT ready, parked_full, estimated FROM pulse.overview}),
        '10|1000|{parked_paused,parked_full,completed}', 'and tells what it saw');
    $primary->stop;
    $standby->promote;
    add_jobs($standby, 'promoted', 2);
    is(value($standby, 'SELECT count(*) FROM pulse_internal.depths()'), 0,
        'nor a server that was one');
    $there->become_exact;
    is($there->total, '12|40000|0', 'until the recount');
    is($there->differences, '', 'and count(*) says the same');
    value($standby, q{DELETE FROM pulse.job WHERE state = 'parked'});
    expect_healthy($standby);
};

done_testing();
