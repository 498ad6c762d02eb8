# docs/scale-out.md: --cluster of pulse-worker and pulse reads the nodes from Citus itself, as a
# role that is no superuser: nodes that are added and removed, and a node that answers in place of
# the coordinator. test/e2e/cluster_nodes.pl has all faults.
use strict;
use warnings FATAL => 'all';

use IPC::Run ();
use Test::More;

use Pulse::Citus;
use Pulse::Console qw(json_of);
use Pulse::Server qw(value wait_until add_job);
use Pulse::Tasks;
use Pulse::Worker;

my $cluster = Pulse::Citus->start(settings => { 'pulse.keep_completed' => '-1' });
my $coordinator = $cluster->coordinator;
my @keys = $cluster->keys;
value($coordinator, q{CREATE ROLE runner LOGIN; SELECT pulse_citus.grant('worker', 'runner');
    SELECT pulse_citus.grant('observer', 'runner')});
my $tasks = Pulse::Tasks->new(
    tell => 'tell ran; echo "{\"result\":\"$PULSE_DATABASE $PULSE_JOB_ID\"}" >&3',
    linger => 'tell began; wait_at lingerers; tell ended');

sub dsn { my ($node) = @_;
    return 'host=127.0.0.1 port=' . $node->port . ' dbname=postgres user=runner' }
sub start { my ($name, $node) = @_;
    return Pulse::Worker->start($coordinator, $name, tasks => $tasks, concurrency => 2,
        where => [ '--cluster', dsn($node) ]) }

# --- rows and jobs of all nodes -----------------------------------------------------------------

my $worker = start('all', $coordinator);
$worker->wait_for('registered', database => "node$_") for 0 .. 2;
is($worker->wait_for('databases')->{names}, 'node0 node1 node2', 'the nodes of the cluster');
is($cluster->ask("INSERT INTO orders VALUES ('$keys[$_]', 1, 'tell');
    SELECT (pulse_citus.add_job('$keys[$_]', 'tell')).id >> 44"), $_, "a row and a job of node $_")
  for 0 .. 2;
wait_until($_, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs ended') for $cluster->nodes;
is(value($cluster->node($_), "SELECT count(*) FROM pulse.finished_job
    WHERE result #>> '{}' = 'node$_ ' || id"), 1, "the number of node $_ is the shard of its jobs")
  for 0 .. 2;

# --- nodes come and go ---------------------------------------------------------------------------

my $late = Pulse::Citus->start_node('node3');
$cluster->join_cluster($late);
value($coordinator, q{SELECT pulse_citus.colocate('orders')});
is($worker->reload_databases, 'node0 node1 node2 node3', 'a node that was added');
$worker->wait_for('registered', database => 'node3');
is(scalar($worker->events('registered')), 4, 'is served, and the others notice nothing');
add_job($late, 'linger');
$tasks->wait_for('began');
value($coordinator, "SELECT citus_remove_node('127.0.0.1', " . $late->port . ')');
is($worker->reload_databases, 'node0 node1 node2', 'a node that was removed');
$worker->wait_for('draining', database => 'node3');
$tasks->open_gate('lingerers');
is($worker->wait_for('stopped', database => 'node3')->{completed}, 1, 'ends its jobs');

my $port = $coordinator->port;
sub give_shards { my ($wish) = @_;
    return value($coordinator,
        "SELECT citus_set_node_property('127.0.0.1', $port, 'shouldhaveshards', $wish)") }
give_shards('false');
is($worker->reload_databases, 'node0 node1 node2', 'jobs wait also where no shards are to come');
give_shards('true');

# --- whoever is asked ----------------------------------------------------------------------------

my $second = start('by_node', $cluster->node(1));
$second->wait_for('registered', database => "node$_") for 0 .. 2;
pass('a node tells the nodes, too');
is($second->drain, 0, 'all are drained');
my $out = '';
IPC::Run::run([ 'pulse', '--cluster', dsn($coordinator), '--json', 'overview' ], '>', \$out);
is(join(' ', map { "$_->{node}=$_->{shard}" } @{ json_of($out) }), 'node0=0 node1=1 node2=2',
    'pulse has a row of each node');
is(value($coordinator, 'SELECT string_agg(shard::text, chr(32)) FROM pulse_citus.overview()'),
    '0 1 2', 'of the nodes that pulse_citus asks');
is($worker->drain, 0, 'all are drained');

$cluster->expect_healthy;
done_testing();
