# P5: the background worker recovers jobs while no worker is connected, in each database of
# pulse.databases, whatever is set for people's sessions there. It survives crashes, needs no care,
# and does not grow.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

use constant { LAUNCHES => 50, SETTLED_AFTER => 15, GROWTH_KB => 256 };

my @killed;

sub log_end { return -s $_[0]->logfile }

sub told_since {
    my ($node, $from, $pattern) = @_;
    my @told = grep { /$pattern/ } split /\n/, substr slurp_file($node->logfile), $from;
    return scalar @told;
}

# A server whose background worker has looked at the database postgres.
sub start_served {
    my ($name, %settings) = @_;
    my $node = new_server($name, settings => { 'pulse.databases' => 'postgres', %settings });
    $node->start;
    $node->safe_psql('postgres', 'CREATE EXTENSION pg_pulse');
    $node->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/);
    value($node, q{SELECT pulse.set_task('work', backoff => 'none')});
    return $node;
}

sub set_databases {
    my ($node, $list) = @_;
    $node->safe_psql('postgres', "ALTER SYSTEM SET pulse.databases = '$list'");
    $node->reload;
    return;
}

sub wait_until_ready {
    my ($node, $ids, $database) = @_;
    wait_until($node, qq{SELECT count(*) = 0 FROM pulse.job
        WHERE id IN ($ids) AND state <> 'ready'}, "$ids are recovered", $database);
    return;
}

# How its lost attempt ended, and how long that took since a time of the server's clock.
sub recovery {
    my ($node, $id, $since) = @_;
    return split /\|/, value($node, qq{SELECT j.recovered,
            round(extract(epoch FROM a.ended_at - '$since') * 1000)
        FROM pulse.job AS j JOIN pulse.attempt AS a ON a.job_id = j.id
        WHERE j.id = $id AND a.outcome = 'lost' ORDER BY a.token DESC LIMIT 1});
}

# Nobody sweeps by the clock: only the ends of sessions make the background worker act.
my $patient = start_served('patient', %PATIENT);

subtest 'P5a: when all workers are killed their jobs are recovered with nobody connected' => sub {
    my @ids = add_jobs($patient, 'work', 3);
    my @workers = map { Pulse::SqlWorker->new($patient, "killed $_") } 1 .. 3;
    $_->must_claim for @workers;
    my $since = value($patient, 'SELECT clock_timestamp()');
    $_->kill for @workers;
    wait_until_ready($patient, join ',', @ids);
    for my $id (@ids) {
        my ($way, $ms) = recovery($patient, $id, $since);
        is($way, 'session', 'its session ended');
        note "recovered $ms ms after the first kill, with a grace of 200 ms";
    }
    my $pids = join ',', map { $_->backend_pid } @workers;
    wait_until($patient, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid IN ($pids)",
        'and no session is left');
    pass('and no session is left');
    value($patient, 'SELECT pulse.cancel_job(id) FROM pulse.job');
};

subtest 'P5a: a waiting worker is not asked to sweep where the background worker does' => sub {
    my $waiting = Pulse::SqlWorker->new($patient, 'waiting');
    my $id = add_job($patient, 'work');
    my $lost = Pulse::SqlWorker->new($patient, 'lost');
    $lost->must_claim;
    set($patient, 'pulse.poll_interval' => '1h');
    $waiting->query('SELECT set_config(\'pulse.poll_interval\', \'1h\', false)');
    $waiting->start_waiting;
    $lost->kill;
    my $job = ($waiting->answer, $waiting->wait_for_claim);
    is("$job->{id} $job->{recovered}", "$id session", 'it is woken by the recovered job');
    ok(!$waiting->was_asked_to_sweep, 'and swept nothing itself');
    $waiting->complete($job);
    $waiting->query('SELECT pulse.deregister_worker(' . $waiting->id . ')');
    $waiting->quit;
    set($patient, 'pulse.poll_interval' => '1s');
};

subtest 'after kill -9 of a backend the background worker is back' => sub {
    my $worker = Pulse::SqlWorker->new($patient, 'crashed');
    my $session = Pulse::Session->new($patient);
    value($patient, q{ALTER SYSTEM SET restart_after_crash = on});
    $patient->reload;
    my $from = log_end($patient);
    push @killed, $session->backend_pid;
    kill 'KILL', $session->backend_pid;
    $patient->wait_for_log(qr/ready to accept connections/, $from);
    $patient->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/, $from);
    my $id = add_job($patient, 'work');
    my $again = Pulse::SqlWorker->new($patient, 'after the crash');
    $again->must_claim;
    $again->kill;
    wait_until_ready($patient, $id);
    is((recovery($patient, $id, 'now'))[0], 'session', 'and recovers as before');
    value($patient, "SELECT pulse.cancel_job($id)");
    $_->quit for $worker, $session;
};

subtest 'a launcher that is terminated comes back' => sub {
    my $from = log_end($patient);
    value($patient, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE backend_type = 'pg_pulse launcher'});
    $patient->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/, $from);
    is(told_since($patient, $from, qr/FATAL/), 0, 'without a fatal error');
};

subtest 'databases come and go' => sub {
    my $from = log_end($patient);
    value($patient, $_)
      for 'CREATE DATABASE empty', 'CREATE DATABASE closed ALLOW_CONNECTIONS false',
      'CREATE DATABASE "Odd, name"';
    set_databases($patient, 'postgres, later, empty, closed, "Odd, name"');
    $patient->wait_for_log(qr/database "later" in pulse\.databases does not exist/, $from);
    $patient->wait_for_log(qr/database "empty" in pulse\.databases has no extension pg_pulse/,
                           $from);
    $patient->wait_for_log(qr/database "closed" in pulse\.databases does not accept connections/,
                           $from);
    $patient->safe_psql('Odd, name', 'CREATE EXTENSION pg_pulse');
    $patient->wait_for_log(qr/pg_pulse maintenance started in database "Odd, name"/, $from);

    value($patient, 'CREATE DATABASE later');
    $patient->safe_psql('later', 'CREATE EXTENSION pg_pulse');
    my $worker = Pulse::SqlWorker->new($patient, 'elsewhere', database => 'later');
    $patient->wait_for_log(qr/pg_pulse maintenance started in database "later"/, $from);
    my $id = add_job($patient, 'work', undef, 'later');
    $worker->must_claim;
    $worker->kill;
    wait_until($patient, "SELECT recovered = 'session' FROM pulse.job WHERE id = $id",
        'the job is recovered', 'later');
    pass('a database that is created later is served');

    is(told_since($patient, $from, qr/database "$_"/), 1, "of $_ it is told once")
      for qw(empty closed);
    is(told_since($patient, $from, qr/FATAL/), 0, 'nothing is fatal');

    set_databases($patient, 'postgres');
    value($patient, "DROP DATABASE $_") for 'later', 'empty', 'closed', '"Odd, name"';
    pass('what it no longer serves can be dropped');
    is(value($patient, q{SHOW pulse.databases}), 'postgres', 'the list is the new one');
};

subtest 'a list that cannot be read is refused' => sub {
    my (undef, undef, $said) =
      $patient->psql('postgres', q{ALTER SYSTEM SET pulse.databases = '"half'});
    like($said, qr/invalid value for parameter "pulse.databases"/, 'with the server\'s words');
};

expect_healthy($patient, killed => \@killed);
$patient->stop;

# Sweeps go by the clock, and silence decides.
my $quick = start_served('quick', %QUICK, max_worker_processes => 3);

subtest 'P5c: a worker that falls silent is recovered with nobody connected' => sub {
    my $id = add_job($quick, 'work');
    my $session = Pulse::Session->new($quick);
    my $worker = $session->query(q{SELECT id FROM pulse.register_worker('silent')});
    $session->query("SELECT id FROM pulse.claim($worker)");
    my $since = $session->query(
        "SELECT last_heartbeat_at FROM pulse.heartbeat WHERE worker_id = $worker");
    $session->kill;
    wait_until_ready($quick, $id);
    my ($way, $ms) = recovery($quick, $id, $since);
    is($way, 'silence', 'by silence');
    cmp_ok($ms, '>=', 2000, 'not before the threshold');
    note "recovered $ms ms after its last beat; the bound is 2400 ms";
    value($quick, "SELECT pulse.cancel_job($id)");
};

subtest 'P5d: a job past its timeout is ended with nobody sweeping' => sub {
    value($quick, q{SELECT pulse.set_task('slow', timeout => '300 ms', backoff => 'none')});
    my $worker = Pulse::SqlWorker->new($quick, 'slow', interval => '0');
    my $id = add_job($quick, 'slow');
    $worker->must_claim;
    wait_until_ready($quick, $id);
    is(outcomes($quick, $id), 'timed_out', 'its attempt timed out');
    value($quick, "SELECT pulse.cancel_job($id)");
    $worker->quit;
};

subtest 'what is set for people\'s sessions does not stop it' => sub {
    my $from = log_end($quick);
    my %hostile = (
        default_transaction_read_only => 'on', default_transaction_isolation => 'serializable',
        default_transaction_deferrable => 'on', statement_timeout => '1ms', lock_timeout => '1ms',
        idle_in_transaction_session_timeout => '1ms', idle_session_timeout => '1ms',
        search_path => 'public', session_replication_role => 'replica');
    value($quick, 'CREATE DATABASE hostile');
    $quick->safe_psql('hostile', 'CREATE EXTENSION pg_pulse; '
          . q{SELECT pulse.set_task('work', backoff => 'none')});
    value($quick, "ALTER DATABASE hostile SET $_ = '$hostile{$_}'") for sort keys %hostile;
    set_databases($quick, 'postgres,hostile');
    $quick->wait_for_log(qr/pg_pulse maintenance started in database "hostile"/, $from);
    local $ENV{PGOPTIONS} = '-c default_transaction_read_only=off -c statement_timeout=0'
      . ' -c default_transaction_isolation=read\ committed -c idle_session_timeout=0'
      . ' -c lock_timeout=0 -c idle_in_transaction_session_timeout=0';
    my $id = add_job($quick, 'work', undef, 'hostile');
    my $worker = Pulse::SqlWorker->new($quick, 'in between', database => 'hostile');
    $worker->must_claim;
    $worker->kill;
    wait_until_ready($quick, $id, 'hostile');
    is(told_since($quick, $from, qr/FATAL|WARNING/), 0, 'it has no complaints');
};

subtest 'the settings of a database apply there' => sub {
    my $from = log_end($quick);
    value($quick, 'ALTER DATABASE hostile SET pulse.sweep_interval = -1');
    $quick->reload;
    $quick->wait_for_log(qr/pg_pulse sweeps are switched off in database "hostile"/, $from);
    value($quick, 'ALTER DATABASE hostile RESET pulse.sweep_interval');
    $quick->reload;
    $quick->wait_for_log(qr/pg_pulse maintenance started in database "hostile"/, $from);
    pass('off, and on again');
};

subtest 'an error is told once, and overcome' => sub {
    my $from = log_end($quick);
    # At once: no sweep may find neither.
    value($quick, q{BEGIN;
        ALTER FUNCTION pulse_internal.tick() RENAME TO hidden;
        CREATE FUNCTION pulse_internal.tick() RETURNS interval LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'broken on purpose'; END $$;
        COMMIT});
    $quick->wait_for_log(qr/failed in database "postgres": broken on purpose/, $from);
    $quick->reload;
    value($quick, q{BEGIN;
        DROP FUNCTION pulse_internal.tick();
        ALTER FUNCTION pulse_internal.hidden() RENAME TO tick;
        COMMIT});
    $quick->reload;
    $quick->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/, $from);
    is(told_since($quick, $from, qr/failed in database .*: broken/), 1, 'told once');
};

sub launcher_kb {
    my ($node) = @_;
    my $pid = value($node, q{SELECT pid FROM pg_stat_activity
        WHERE backend_type = 'pg_pulse launcher'});
    my ($kb) = slurp_file("/proc/$pid/smaps_rollup") =~ /^Private_Dirty:\s+(\d+) kB/m;
    return $kb;
}

# The clock ticks in each sweep that comes long enough after the last one.
sub last_tick { return value($_[0], 'SELECT max(last_tick) FROM pulse.clock') }

subtest 'its memory is steady' => sub {
    set_databases($quick, 'postgres');
    my $settled;
    for my $launch (1 .. LAUNCHES) {
        $settled = launcher_kb($quick) if $launch == SETTLED_AFTER;
        my $tick = last_tick($quick);
        $quick->reload;
        wait_until($quick, "SELECT max(last_tick) > '$tick' FROM pulse.clock", 'a sweep');
    }
    my $grown = launcher_kb($quick) - $settled;
    note "the launcher grew by $grown kB in " . (LAUNCHES - SETTLED_AFTER) . ' rounds';
    cmp_ok($grown, '<', GROWTH_KB, 'the launcher does not grow');
};

expect_healthy($quick);
$quick->stop;

subtest 'without a free process it says so, and tries again' => sub {
    my $node = new_server('full', settings => {
        %QUICK, 'pulse.databases' => 'postgres', max_worker_processes => 2 });
    # Two have one already: the launcher, and the server's own of logical replication.
    $node->start;
    $node->wait_for_log(
        qr/no background worker slot is free for pg_pulse maintenance of database "postgres"/);
    $node->append_conf('postgresql.conf', 'max_worker_processes = 3');
    $node->restart;
    my $from = log_end($node);
    value($node, 'CREATE EXTENSION pg_pulse');
    $node->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/);
    is(told_since($node, 0, qr/no background worker slot is free/), 1, 'it said so once');
    $node->stop;
};

done_testing();
