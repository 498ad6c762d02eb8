# docs/recipes/high-availability.md: three nodes under Patroni, and seven faults. Of every job whose
# add was acknowledged it is known what became of it, no id names two jobs, and none runs twice
# under one token. Producers keep a ledger outside, tasks a journal; one worker connects to all
# nodes, another by haproxy.
#
# PULSE_FAULTS: which of them, by name; PULSE_ROUNDS: how often each.
use strict;
use warnings FATAL => 'all';

use List::Util qw(first max);
use Test::More;
use Time::HiRes qw(time);

# A failover takes as long as Patroni waits for a machine that is gone.
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 180 }
use PostgreSQL::Test::Utils;
use Pulse::Patroni;
use Pulse::Program;

my @missing = Pulse::Patroni->missing;
plan skip_all => "@missing not here: make packages FOR=ha" if @missing;

# On a machine that does much else the standbys may lag by more than the recipe allows.
my $cluster =
  Pulse::Patroni->start(settings => { maximum_lag_on_failover => 16 * 1024 * 1024 });
my $rounds = $ENV{PULSE_ROUNDS} || 1;

$cluster->value('CREATE DATABASE app') // die $cluster->error;
# libpq asks no further node once one says that it has no such database.
$cluster->wait_for('the database on each node',
    sub { defined $cluster->value('SELECT 1', 'app') });
$cluster->value($_, 'app') // die $cluster->error
  for 'CREATE EXTENSION pg_pulse',
  q{CREATE ROLE producer LOGIN PASSWORD 'change-me'; SELECT pulse.grant_producer('producer')},
  q{CREATE ROLE runner LOGIN PASSWORD 'change-me'; SELECT pulse.grant_worker('runner')},
  q{CREATE ROLE watcher LOGIN PASSWORD 'change-me'; SELECT pulse.grant_observer('watcher')};

unlike(slurp_file('worker/deploy/patroni/etcd.env'), qr{^ETCD_DATA_DIR=/var/lib/etcd/default$}m,
    'the cluster of etcd begins in a folder that no first start of the package has filled');

# --- producers, workers, journal ----------------------------------------------------------------

my $work = PostgreSQL::Test::Utils::tempdir('work');
my $journal_path = "$work/journal";
append_to_file($journal_path, '');
mkdir "$work/tasks";
append_to_file("$work/tasks/journal", <<"SH");
#!/bin/bash
read -r payload
what='"what": *"([^"]*)"'
[[ \$payload =~ \$what ]]
echo "began \$PULSE_JOB_ID \$PULSE_TOKEN \$EPOCHREALTIME \${BASH_REMATCH[1]}" >>$journal_path
read -r -t 0.3 -u 3 3<> <(:) || :
SH
chmod 0755, "$work/tasks/journal";

my %port = map { $_ => PostgreSQL::Test::Cluster::get_free_port() } qw(worker serve);
my %worker = map {
    my ($name, $dsn) = @{$_};
    ($name => Pulse::Program->start("worker-$name",
            [ 'pulse-worker', '--name', $name, '--log-format', 'json', '--concurrency', '12',
                '--database', $dsn, '--tasks', "$work/tasks",
                ($name eq 'dsn' ? ('--http', "127.0.0.1:$port{worker}") : ()) ],
            output => 'stderr'))
} [ dsn => $cluster->by_dsn('runner', 'app') ],
  [ haproxy => $cluster->by_haproxy('runner', 'app') ];

my $watched = $cluster->by_dsn('watcher', 'app');
my $serve = Pulse::Program->start('serve',
    [ 'pulse', '-d', $watched, 'serve', '--listen', "127.0.0.1:$port{serve}" ]);

sub status_of {
    my ($program, $page) = @_;
    return `curl -s -m 5 -o /dev/null -w '%{http_code}' http://127.0.0.1:$port{$program}$page`;
}

# What an operator sees while no node takes writes.
sub look_without_primary {
    $cluster->wait_for('pulse serve that has no database',
        sub { status_of(serve => '/metrics') == 503 });
    is(status_of(worker => '/livez'), 200, 'without a primary a worker is alive');
    is(status_of(worker => '/readyz'), 200, 'and ready, before it has been silent for too long');
    is(system("pulse -d '$watched' overview >/dev/null 2>&1") >> 8, 69, 'pulse ends with 69');
    return;
}

sub look_with_primary {
    $cluster->wait_for('a worker that is ready', sub { status_of(worker => '/readyz') == 200 });
    $cluster->wait_for('pulse serve that has a database',
        sub { status_of(serve => '/metrics') == 200 });
    is(system("pulse -d '$watched' overview >/dev/null 2>&1") >> 8, 0, 'pulse has an answer');
    like(`curl -s -m 5 http://127.0.0.1:$port{worker}/metrics`,
        qr/^pulse_reconnects_total\{[^}]*\} [1-9]/m, 'the worker has counted its reconnects');
    return;
}

my $started = 0;

sub start_producers {
    $started++;
    return map {
        my ($name, $dsn) = @{$_};
        Pulse::Program->start("producer-$name-$started",
            [ 'python3', 'test/ha/producer.py', "$name-$started", $dsn ])
    } [ dsn => $cluster->by_dsn('producer', 'app') ],
      [ haproxy => $cluster->by_haproxy('producer', 'app') ];
}

# { id => [ name, seconds ] } of acknowledged adds; an id with two names is counted apart.
my (%ledger, @twice);

sub take_ledger {
    my (@producers) = @_;
    my @acked;
    for my $line (map { $_->lines->lines } @producers) {
        my ($id, $name, $at) = $line =~ /^added (\d+) (\S+) (\S+)/ or next;
        push @twice, "$id: $ledger{$id}, $name" if $ledger{$id};
        $ledger{$id} = $name;
        push @acked, { id => $id, name => $name, at => $at };
    }
    return @acked;
}

sub journal {
    return map {
        /^began (\d+) (\d+) (\S+) (\S+)$/
          ? { id => $1, token => $2, at => $3, name => $4 } : ()
    } split /\n/, slurp_file($journal_path);
}

# The longest time after a moment in which nothing happened.
sub longest_pause {
    my ($from, @times) = @_;
    my @after = sort { $a <=> $b } $from, grep { $_ > $from } @times;
    return max(0, map { $after[$_] - $after[ $_ - 1 ] } 1 .. $#after);
}

# --- faults -------------------------------------------------------------------------------------

# Until the cluster is as before: the node that failed is back, as a standby.
sub come_back {
    my ($number) = @_;
    $cluster->start_node($number) if defined $number;
    $cluster->wait_for('three nodes that stream', sub { $cluster->is_whole });
    return;
}

sub set_mode {
    my ($is_strict) = @_;
    my $value = $is_strict ? 'true' : 'false';
    $cluster->patronictl('edit-config', '--force', '--quiet', '-s', "synchronous_mode=$value",
        '-s', "synchronous_mode_strict=$value");
    $cluster->wait_for('the mode', sub {
        return (($cluster->value('SHOW synchronous_standby_names') // return) ne '') == $is_strict;
    });
    return;
}

my @faults = (
    [ switchover => sub {
        my $leader = $cluster->leader;
        $cluster->patronictl('switchover', '--force');
        $cluster->wait_for('another leader', sub { ($cluster->leader // $leader) != $leader });
        return;
    } ],
    [ postmaster_killed => sub {
        $cluster->kill_postmaster($cluster->leader);
        return;
    } ],
    [ machine_gone => sub {
        my $leader = $cluster->leader;
        $cluster->kill_node($leader);
        look_without_primary();
        $cluster->wait_for('another leader', sub { ($cluster->leader // $leader) != $leader });
        return $leader;
    } ],
    [ standby_lagged => sub {
        my (@producers) = @_;
        my $leader = $cluster->leader;
        $cluster->deafen_standbys($leader);
        wait_for_adds(25, @producers);
        $cluster->kill_node($leader);
        $cluster->wait_for('another leader', sub { ($cluster->leader // $leader) != $leader });
        return $leader;
    } ],
    [ strict_mode => sub {
        my $leader = $cluster->leader;
        $cluster->deafen_standbys($leader);
        $cluster->wait_for('commits that wait', sub {
            return ($cluster->value(q{SELECT count(*) > 1 FROM pg_stat_activity
                WHERE wait_event = 'SyncRep'}) // '') eq 't';
        });
        $cluster->kill_node($leader);
        $cluster->wait_for('another leader', sub { ($cluster->leader // $leader) != $leader });
        return $leader;
    } ],
    [ etcd_gone => sub {
        $cluster->stop_etcd;
        my $end = time + 60;
        $cluster->wait_for('a minute', sub { time > $end });
        $cluster->start_etcd;
        return;
    } ],
    [ old_primary_returns => sub {
        my $leader = $cluster->leader;
        $cluster->kill_node($leader);
        $cluster->wait_for('another leader', sub { ($cluster->leader // $leader) != $leader });
        # Beside producers and workers, with commits of its own that nobody has.
        $cluster->start_node($leader);
        $cluster->wait_for('three nodes that stream', sub { $cluster->is_whole });
        return;
    } ]);

# Of these ids those of a gap that no table has.
sub ids_in_gaps {
    my (@ids) = @_;
    return () if !@ids;
    return split /\n/, $cluster->value('SELECT i FROM unnest(ARRAY[' . join(', ', @ids)
          . ']::bigint[]) AS i WHERE EXISTS (SELECT FROM pulse.id_gap AS g
            WHERE i BETWEEN g.from_id AND g.to_id) AND NOT pulse_internal.has_trace(i)', 'app');
}

# Of these ids those that a call answers otherwise than as lost.
sub not_told_as_lost {
    my (@ids) = @_;
    return $cluster->value(q{
        CREATE FUNCTION pg_temp.is_told(id bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pulse.ended(ARRAY[id]);
            RETURN false;
        EXCEPTION WHEN SQLSTATE 'PU005' THEN
            RETURN SQLERRM ~ format('^job %s was lost in the failover of', id);
        END $$;
        SELECT i FROM unnest(ARRAY[} . join(', ', @ids)
          . ']::bigint[]) AS i WHERE NOT pg_temp.is_told(i)', 'app') // die $cluster->error;
}

# The end of each run: no job waits, and nobody adds one.
sub wait_until_empty {
    $cluster->wait_for('the last job', sub {
        return ($cluster->value('SELECT count(*) FROM pulse.job', 'app') // '') eq '0';
    });
    return;
}

sub wait_for_adds {
    my ($count, @producers) = @_;
    for my $lines (map { $_->lines } @producers) {
        $lines->wait_for('adds', sub { $_[0] =~ /^added/ },
            count => $count, from => $lines->position);
    }
    return;
}

sub run_fault {
    my ($name, $cause) = @_;
    my $may_lose = $name eq 'standby_lagged';
    my $is_strict = $name eq 'strict_mode';
    set_mode(1) if $is_strict;
    my @producers = start_producers();
    wait_for_adds(15, @producers);
    my $began = time;
    my $gone = $cause->(@producers);
    wait_for_adds(15, @producers);
    come_back($gone);
    look_with_primary();
    $_->signal('USR1') for @producers;
    $_->lines->wait_for('its end', sub { $_[0] eq 'stopped' }) for @producers;
    wait_until_empty();

    my @acked = take_ledger(@producers);
    my @begun = journal();
    my %runs;
    push @{ $runs{ $_->{name} } }, $_ for @begun;
    my @lost = grep { !$runs{ $_->{name} } } @acked;
    my %seen;
    my @again = grep { $seen{"$_->{id} $_->{token}"}++ } @begun;
    my @repeated = grep { @{ $runs{ $_->{name} } // [] } > 1 } @acked;
    my %last;
    my @backwards = grep {
        my $before = $last{ $_->{id} } // 0;
        $last{ $_->{id} } = $_->{token};
        $_->{token} < $before;
    } @begun;
    if ($may_lose) {
        my @in_gap = ids_in_gaps(map { $_->{id} } @acked);
        my %in_gap = map { $_ => 1 } @in_gap;
        cmp_ok(scalar @in_gap, '>', 0, 'replication lost commits: ' . @in_gap);
        is(scalar(grep { !$in_gap{ $_->{id} } } @lost), 0,
            'each job that never ran has an id of a gap: ' . @lost);
        is(not_told_as_lost(@in_gap), '',
            'each of ' . @in_gap . ' ids of gaps that no table has is told as lost');
    } else {
        is_deeply([ map { $_->{name} } @lost ], [], 'every acknowledged job ran');
        is_deeply([ map { $_->{name} } @repeated ], [], 'each once');
    }
    is_deeply([ map { "$_->{id} $_->{token}" } @again ], [], 'none ran twice under one token');
    is_deeply([ map { "$_->{id} $_->{token}" } @backwards ], [], 'later tokens are greater');
    is_deeply(\@twice, [], 'no id names two jobs');
    is($cluster->value('SELECT count(*) FROM pulse.verify()', 'app'), 0, 'every promise holds');
    set_mode(0) if $is_strict;
    note sprintf '%s: acknowledged %d, lost %d, repeated %d; '
      . 'adds stood still for %.1f s, starts for %.1f s',
      $name, scalar @acked, scalar @lost, scalar @repeated,
      longest_pause($began - 1, map { $_->{at} } @acked),
      longest_pause($began - 1, map { $_->{at} } @begun);
    return;
}

my %wanted = map { $_ => 1 } split / /, $ENV{PULSE_FAULTS} || join ' ', map { $_->[0] } @faults;
for my $round (1 .. $rounds) {
    for my $fault (grep { $wanted{ $_->[0] } } @faults) {
        subtest "$fault->[0], round $round" => sub { run_fault(@{$fault}) };
    }
}

is(scalar(grep { !$_->has_ended && !$_->{process}->is_gone } values %worker), 2,
    'both workers have outlived it all');
$cluster->stop;
done_testing();
