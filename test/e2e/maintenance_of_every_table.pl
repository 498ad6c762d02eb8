# A DBA reindexes, rewrites, alters and repacks every table of pg_pulse while it is in use. No
# statement of a producer or a worker fails, no living worker is lost, no job is lost or completes
# twice, indexes, a standby and a subscriber of all tables agree. With PULSE_LONG for PULSE_MINUTES,
# in which workers, sessions and processes of the server are killed.
use strict;
use warnings FATAL => 'all';

use List::Util qw(shuffle);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Lines;
use Pulse::Maintenance;
use Pulse::Producer;
use Pulse::Repack;
use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

use constant { WORKERS => 4, PRODUCERS => 3, DRAINED => 0 };

my $is_long = $ENV{PULSE_LONG} // 0;
my $minutes = $is_long ? $ENV{PULSE_MINUTES} // 15 : 0;
my ($seconds, $seconds_repacking) = map { $minutes * 60 * $_ } 0.8, 0.2;
my $seed = srand($ENV{PULSE_SEED} // time);
note "PULSE_SEED=$seed repeats the order";

# --- the servers ----------------------------------------------------------------------------------

my %settings = (
    %QUICK,
    'pulse.sweep_threshold' => '20s',
    'pulse.disconnect_grace' => '10s',
    log_line_prefix => '%m [%p] %e %q%a ',
    log_statement => 'none',
    restart_after_crash => 'on',
);
my $schema = <<'SQL';
CREATE SCHEMA app;
CREATE TABLE app.effect (job_id bigint, token bigint, PRIMARY KEY (job_id, token));
CREATE FUNCTION app.count(job pulse.claimed_job) RETURNS void LANGUAGE sql AS $$
  INSERT INTO app.effect VALUES (job.id, job.token) $$;
CREATE TABLE app.change (id bigserial PRIMARY KEY, op text);
CREATE FUNCTION app.audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.change (op) VALUES (TG_OP);
  RETURN NULL;
END $$;
SQL

my $node = start_server('primary', streaming => 'logical',
    settings => { %settings, wal_consistency_checking => 'all' });
$node->safe_psql('postgres', "$schema CREATE EXTENSION amcheck;
    SELECT pulse.set_task('count', backoff => 'none', handler => 'app.count(pulse.claimed_job)'),
        pulse.set_task('run', backoff => 'none'), pulse.set_task('stream', backoff => 'none'),
        pulse.set_queue('q1', 3)");
$node->backup('copy');
$node->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('standby', true)});
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'");
$standby->start;
my $maintenance = Pulse::Maintenance->new($node);

# Has the same schema. What CREATE EXTENSION writes comes from the publisher.
my $subscriber = start_server('subscriber', streaming => 1, settings => \%settings);
$subscriber->safe_psql('postgres', "$schema TRUNCATE pulse.clock");
my $connection = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
$node->safe_psql('postgres', 'CREATE PUBLICATION everything FOR ALL TABLES');
$subscriber->safe_psql('postgres',
    "CREATE SUBSCRIPTION all_of_it CONNECTION '$connection' PUBLICATION everything");

# --- the load -------------------------------------------------------------------------------------

my $tasks = Pulse::Tasks->new(run => 'tell ran');
my $streams = Pulse::Tasks->new(stream => <<'SH');
while read -r line; do
    [[ $line =~ '"job":{"id":'([0-9]+) ]] && echo "{\"id\":${BASH_REMATCH[1]},\"result\":1}"
done
SH
my (@workers, @doomed, @killed_backends);
my $started = 0;

sub start_worker {
    push @workers, Pulse::Worker->start($node, 'worker-' . ++$started, tasks => $tasks,
        concurrency => 4, options => [ '--process', 'stream=' . $streams->folder . '/stream' ]);
    return;
}

start_worker() for 1 .. WORKERS;
$_->wait_for('registered') for @workers;
my @producers;

sub start_producers {
    my ($what) = @_;
    push @producers, map { Pulse::Producer->start($node, "producer-$what-$_") } 1 .. PRODUCERS;
    return;
}

# Returns once all that they added is done.
sub stop_producers {
    $_->stop for grep { !$_->has_ended } @producers;
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are done');
    return;
}

my ($dba, $watch);

sub connect_sessions {
    wait_until($node, 'SELECT true', 'the server is there');
    ($dba, $watch) = map { Pulse::Session->new($node) } 1 .. 2;
    # A worker that waits behind the DBA waits as long.
    $dba->query("SET application_name = 'dba'; SET lock_timeout = '10s'");
    return;
}
connect_sessions();

# --- what goes wrong beside -----------------------------------------------------------------------

my ($next_kill, $next_crash) = (time + 5, time + 120);

sub kill_worker {
    my ($victim, @others) = shuffle(@workers);
    @workers = @others;
    push @doomed, $victim->name;
    $victim->kill;
    return start_worker();
}

sub terminate_session {
    $watch->query(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name ~ '^(pulse-worker|producer|job)' ORDER BY random() LIMIT 1});
    return;
}

# kill -9 of one process: the server ends all others, and recovers.
sub crash_server {
    $next_crash = time + 180;
    $_->quit for $dba, $watch;
    my $pid = value($node, q{SELECT pid FROM pg_stat_activity
        WHERE application_name ~ '^(pulse-worker|producer)' ORDER BY random() LIMIT 1});
    push @killed_backends, $pid;
    kill 'KILL', $pid;
    $node->wait_for_log(qr/$Pulse::Server::server_process \(PID $pid\) was terminated/);
    return connect_sessions();
}

my ($next_look, %broken) = (0);

# Once a second, whatever the DBA waits for.
sub look {
    Pulse::Lines::pause();
    return if time < $next_look;
    $next_look = time + 1;
    my $now = $watch->query('SELECT * FROM pulse.verify()');
    $broken{$now}++ if $now ne '';
    return if !$is_long || time < $next_kill;
    $next_kill = time + 2 + rand 8;
    return rand() < 0.4 ? kill_worker() : terminate_session();
}

# --- the DBA --------------------------------------------------------------------------------------

my @failures;

sub perform {
    my ($statement) = @_;
    $dba->ask($statement);
    look() until $dba->has_answered;
    $dba->answer;
    push @failures, "$statement: " . $dba->said if $dba->said =~ /ERROR|FATAL/;
    return;
}

# Each kind once for each table, and again until this much time has passed.
sub maintain {
    my $end = time + $seconds;
    my $count = 0;
    do {
        for my $kind ($maintenance->round) {
            last if $count > 0 && $is_long && time > $end;
            perform($_) for @$kind;
            $count += @$kind;
            crash_server() if $is_long && time > $next_crash;
        }
    } while (time < $end);
    note "$count statements";
    return;
}

# Its options, before those of the connection.
sub repack_table {
    my (@options) = @_;
    my $failure = repack($node, \&look, @options);
    push @failures, "pg_repack @options: $failure" if $failure;
    return;
}

sub repack_all {
    my $end = time + $seconds_repacking;
    my $count = 0;
    do {
        for my $table (shuffle($maintenance->tables)) {
            repack_table('--no-order', '--table', $table);
            repack_table('--only-indexes', '--table', $table) if ++$count % 3 == 0;
        }
    } while (time < $end);
    return;
}

# --- what must hold -------------------------------------------------------------------------------

# `but`: tables that workers, or the server's minutes of counting, write to even without jobs.
sub rows_of_all {
    my ($server, $but) = @_;
    return { map { ($_ => value($server, "SELECT count(*), sum(hashtext(t::text)) FROM $_ AS t")) }
          grep { !$but || !/$but/ } 'app.effect', 'app.change', $maintenance->tables };
}

sub stop_load {
    stop_producers();
    for (@workers) {
        $_->signal('TERM');
        is($_->wait_exit, DRAINED, $_->name . ' drains');
    }
    return;
}

# A beat commits without a flush, and the framework waits for what has been flushed: a commit of the
# test flushes all that came before.
sub expect_followed {
    my ($server, $name, $but) = @_;
    value($node, q{SELECT pg_logical_emit_message(true, 'test', 'all until here')});
    $node->wait_for_catchup($name);
    is_deeply(rows_of_all($server, $but), rows_of_all($node, $but),
        $server->name . ' has all rows');
    return;
}

sub expect_ledger_kept {
    my @added = map { $_->acknowledged } @producers;
    my %completed = map { $_ => 1 } split /\n/,
      value($node, q{SELECT id FROM pulse.finished_job WHERE state = 'completed'});
    is_deeply([ grep { !$completed{$_} } @added ], [], 'each acknowledged job is completed');
    note scalar(@added) . ' jobs';
    is(value($node, q{SELECT job_id FROM pulse.attempt WHERE outcome = 'completed'
            GROUP BY 1 HAVING count(*) > 1}), '', 'none completed twice');
    is(value($node, q{SELECT job_id FROM app.effect GROUP BY 1 HAVING count(*) > 1}), '',
        'no function had its effect twice');
    is(value($node, q{SELECT count(*) FROM pulse.finished_job WHERE identifier = 'count'
            AND id NOT IN (SELECT job_id FROM app.effect)}), 0, 'nor none at all');
    my $endings = $is_long ? 'completed|released|lost|interrupted|failed' : 'completed|released';
    is(value($node, "SELECT outcome, error, count(*) FROM pulse.attempt
            WHERE outcome !~ '^($endings)\$' GROUP BY 1, 2"), '', 'no attempt ended otherwise');
    return;
}

sub expect_sound {
    my ($server) = @_;
    my $name = $server->name;
    cmp_ok(value($server, q{SELECT count(bt_index_check(c.oid, true)) FROM pg_class AS c
            JOIN pg_am AS a ON a.oid = relam AND amname = 'btree'
            WHERE relnamespace = 'pulse'::regnamespace}), '>', 20, "$name: indexes have all rows");
    is(value($server, q{SELECT c.oid::regclass, v.* FROM pg_class AS c, verify_heapam(c.oid) AS v
            WHERE relnamespace = 'pulse'::regnamespace AND relkind = 'r'}), '',
        "$name: tables are sound");
    return;
}

# What failed in sessions that are neither the DBA's nor its programs', with its statement. 57P01 to
# 57P03 and 08006 tell that the test killed the session, its server or its client; a worker cancels
# its own wait, and the DBA's lock the server's autovacuum.
sub errors_of_load {
    my $allowed = $is_long ? qr/57P0[123]|08006/ : qr/(?!)/;
    my %errors;
    for (split /^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)/m, slurp_file($node->logfile)) {
        push @{ $errors{$1} }, $2 if /\[(\d+)\] (.*(?:ERROR|FATAL|PANIC): .*)/;
        $errors{$1}[-1] .= " | $2" if /\[(\d+)\] .*STATEMENT:  (.*)/ && $errors{$1};
    }
    # A worker that ends does not read the answer to the wait that it has cancelled.
    my $cancelled = qr/^57014 .*(?:wait_for_job|canceling autovacuum task)/;
    my $unread = qr/^08006 pulse-worker .*connection to client lost/;
    return grep { !/^$allowed / && !/^\S+ (?:dba|pg_repack) / && !/$cancelled|$unread/ }
      map { @$_ } values %errors;
}

sub expect_no_errors {
    my @errors = errors_of_load();
    is_deeply([ @errors > 10 ? @errors[ 0 .. 9 ] : @errors ], [], 'no statement failed');
    my @refused = map { grep { !$is_long || !/^(?:cut|refused 57P0)/ } $_->complaints } @producers;
    is_deeply([ @refused > 10 ? @refused[ 0 .. 9 ] : @refused ], [], 'no add was refused');
    return;
}

subtest 'maintenance of every table' => sub {
    # Columns must be there before rows that have them.
    $_->safe_psql('postgres', join '; ', $maintenance->new_columns) for $subscriber, $node;
    start_producers('first');
    maintain();
    is_deeply(\@failures, [], 'the DBA succeeds');
    is(value($subscriber, q{SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL
            AND relid IS NULL}), 1, 'the subscriber is alive');
    stop_producers();
    # A heartbeat deletes batches of claims whose jobs have ended.
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.claim_batch', 'every batch has ended');
    expect_followed($subscriber, 'all_of_it', qr/heartbeat|clock|change|witness|counter/);
    is(value($subscriber, q{SELECT srrelid::regclass FROM pg_subscription_rel
            WHERE srsubstate <> 'r'}), '', 'it has every table');
};

# A publication FOR ALL TABLES would have the tables of pg_repack, too: it refuses to update them.
subtest 'pg_repack of every table' => sub {
    plan skip_all => 'no pg_repack is installed' if !has_repack();
    $subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION all_of_it');
    $node->safe_psql('postgres', 'DROP PUBLICATION everything; CREATE EXTENSION pg_repack');
    @failures = ();
    start_producers('second');
    repack_all();
    is_deeply(\@failures, [], 'the DBA succeeds');
};

subtest 'what must hold' => sub {
    stop_load();
    is_deeply(\%broken, {}, 'no promise was ever broken');
    my $doomed = join '|', @doomed, 'none';
    is(value($node, "SELECT name, reason FROM pulse.worker
            WHERE state = 'lost' AND name !~ '^($doomed)\$'"), '', 'no living worker was lost');
    expect_ledger_kept();
    expect_no_errors();
    expect_followed($standby, $standby);
    expect_sound($_) for $node, $standby;
};

$_->quit for $dba, $watch;
expect_healthy($_, killed => \@killed_backends) for $node, $standby;
my @errors = grep { /ERROR: / && !/could not (?:receive|connect)/ }
  split /\n/, slurp_file($subscriber->logfile);
is_deeply(\@errors, [], 'the subscriber never failed');
done_testing();
