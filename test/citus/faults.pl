# docs/scale-out.md: rows and jobs of one and two nodes commit together or not at all, whoever is
# killed, before, between and after PREPARE TRANSACTION and COMMIT PREPARED.
#
# PULSE_TRANSACTIONS: how many transactions the producers make.
use strict;
use warnings FATAL => 'all';

use List::Util qw(sum0);
use Test::More;
use Time::HiRes qw(sleep);

use Pulse::Citus;
use Pulse::Program;
use Pulse::Server qw(value wait_until kill_server);
use Pulse::Session;

use constant { PRODUCERS => 4, KILLS => 12 };
my $transactions = $ENV{PULSE_TRANSACTIONS} || 10_000;

my $cluster = Pulse::Citus->start;
my $coordinator = $cluster->coordinator;
my @keys = $cluster->keys;

# --- each step of a commit over two nodes -------------------------------------------------------

# While a server waits for a standby that there is not, what it commits and prepares is durable and
# unanswered.
sub let_commits_wait {
    my ($node, $is) = @_;
    my $name = $is ? 'nobody' : '';
    $node->append_conf('postgresql.conf', "synchronous_standby_names = '$name'");
    $node->reload;
    return;
}

sub wait_for_commit {
    my ($node, $query) = @_;
    wait_until($node, "SELECT count(*) > 0 FROM pg_stat_activity
        WHERE wait_event = 'SyncRep' AND query LIKE '$query%'", "$query waits");
    return;
}

# Begins a transaction that adds rows and jobs of nodes 1 and 2, and sends its COMMIT.
sub begin_commit {
    my ($task) = @_;
    my $session = Pulse::Session->new($coordinator);
    $session->query('SET ROLE app');
    $session->query('BEGIN');
    for my $key (@keys[ 1, 2 ]) {
        $session->query("INSERT INTO orders VALUES ('$key', 0, '$task')");
        $session->query("SELECT (pulse_citus.add_job('$key', '$task')).id");
    }
    $session->ask('COMMIT');
    return $session;
}

sub restart_killed {
    my ($node) = @_;
    kill_server($node);
    $node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
    $node->start;
    return;
}

sub outcome_is {
    my ($task, $jobs, $what) = @_;
    wait_until($_, 'SELECT count(*) = 0 FROM pg_prepared_xacts', 'nothing is prepared')
      for $cluster->nodes;
    is($cluster->jobs($task), $jobs, $what);
    is(value($coordinator, "SELECT count(*) FROM orders WHERE note = '$task'"),
        sum0(split /,/, $jobs), 'as many rows as jobs');
    return;
}

let_commits_wait($cluster->node(1), 1);
my $session = begin_commit('prepare');
wait_for_commit($cluster->node(1), 'PREPARE TRANSACTION');
restart_killed($cluster->node(1));
$session->answer;
outcome_is('prepare', '0,0,0', 'a node killed after PREPARE, before its answer: undone on both');

let_commits_wait($coordinator, 1);
$session = begin_commit('decide');
wait_for_commit($coordinator, 'COMMIT');
restart_killed($coordinator);
outcome_is('decide', '0,1,1', 'the coordinator killed between both steps: done on both');

let_commits_wait($coordinator, 1);
$session = begin_commit('commit');
wait_for_commit($coordinator, 'COMMIT');
kill_server($cluster->node(2));
let_commits_wait($coordinator, 0);
$session->answer;
$cluster->node(2)->start;
outcome_is('commit', '0,1,1', 'a node killed before COMMIT PREPARED: done on both');

let_commits_wait($coordinator, 1);
$session = begin_commit('after');
wait_for_commit($coordinator, 'COMMIT');
let_commits_wait($cluster->node(1), 1);
wait_until($cluster->node(1), q{SELECT current_setting('synchronous_standby_names') = 'nobody'},
    'the setting');
let_commits_wait($coordinator, 0);
wait_for_commit($cluster->node(1), 'COMMIT PREPARED');
restart_killed($cluster->node(1));
$session->answer;
outcome_is('after', '0,1,1',
    'a node killed after COMMIT PREPARED, before its answer: done on both');

# --- many transactions, and kills ---------------------------------------------------------------

my $each = int $transactions / PRODUCERS;
my $dsn = 'host=127.0.0.1 dbname=postgres user=app port=' . $coordinator->port;
my @more = split /\n/, value($coordinator, q{SELECT 't' || i FROM generate_series(1, 9) AS i});
my @producers = map {
    Pulse::Program->start("producer$_",
        [ 'python3', 'test/citus/producer.py', $dsn, 10_000_000 * $_, $each, @keys, @more ])
} 0 .. PRODUCERS - 1;

# So that kills are spread over the run: each waits for its part of the transactions.
my ($servers, $backends) = (0, 0);
for my $kill (1 .. KILLS) {
    my $lines = $producers[ $kill % PRODUCERS ]->lines;
    $lines->wait_for('commits', sub { $_[0] =~ /^committed/ },
        count => int($each / (2 * KILLS)), from => $lines->position);
    my $node = $cluster->node($kill % 3);
    if ($kill % 3 == 0 || $kill % 4 == 0) {
        kill_server($node);
        $node->start;
        $servers++;
    } else {
        $backends += value($node, q{SELECT count(pg_terminate_backend(pid)) FROM (
            SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'
              AND usename = 'app' ORDER BY random() LIMIT 2) AS b});
    }
}
$_->lines->wait_for('its end', sub { $_[0] eq 'done' }) for @producers;
wait_until($_, 'SELECT count(*) = 0 FROM pg_prepared_xacts', 'nothing is prepared')
  for $cluster->nodes;

my (@committed, @unknown);
for my $line (map { $_->lines->lines } @producers) {
    push @committed, $1 if $line =~ /^committed (\d+)/;
    push @unknown, $1 if $line =~ /^unknown (\d+)/;
}
note 'committed ', scalar @committed, ', unknown ', scalar @unknown,
  ", servers killed $servers, backends $backends";

# number, key and node of each row, and of each job.
my $list = join ', ', map { "('$_')" } @keys, @more;
my %home = map { split /\|/ } split /\n/, value($coordinator, "SELECT k, p.groupid
    FROM (VALUES $list) AS v (k), pg_dist_placement AS p
    WHERE p.shardid = get_shard_id_for_distribution_column('orders', k)");
my @rows = map { my ($id, $key) = split /\|/; "$id $key $home{$key}" } split /\n/,
  value($coordinator, "SELECT id, tenant FROM orders WHERE note = 'ledger'");
my @jobs = map {
    my $number = $_;
    map { "$_ $number" } split /\n/, value($cluster->node($number), q{
        SELECT concat(payload ->> 'row', ' ', payload ->> 'key') FROM pulse.job
        WHERE identifier = 'ledger'})
} 0 .. 2;
is(join("\n", sort @jobs), join("\n", sort @rows),
    'there is a job for each row, on the node of the key, and no other: ' . @rows);
my %there = map { /^(\d+)/ ? ($1 => 1) : () } @rows;
is(scalar(grep { !$there{$_} } @committed), 0, 'each transaction that was answered is there');

# The last words of a session of Citus that waits for another node when its own server dies.
my $dying = qr/PANIC:  cannot abort transaction \d+, it was already committed/;
$cluster->expect_healthy(dying => $dying);
done_testing();
