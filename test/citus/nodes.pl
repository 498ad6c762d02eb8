# docs/scale-out.md: nodes that are away, come later, are no pg_pulse, or go; and rows that move.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use Pulse::Citus;
use Pulse::Process;
use Pulse::Server qw(value kill_server);

my $cluster = Pulse::Citus->start;
my $coordinator = $cluster->coordinator;
my @keys = $cluster->keys;

sub add { my ($key, $task) = @_;
    return $cluster->ask("SELECT (pulse_citus.add_job('$key', '$task')).id >> 44") }
sub as_owner { my ($query) = @_; return $cluster->ask($query, role => 'postgres') }
sub colocate { return as_owner("SELECT pulse_citus.colocate('orders')") }

# Runs a query that no node may hold up.
sub soon {
    my ($what, $query) = @_;
    my $start = time;
    my $answer = as_owner($query);
    cmp_ok(time - $start, '<', 3, "$what comes soon");
    return $answer;
}

# --- a node that is away ------------------------------------------------------------------------

kill_server($cluster->node(2));
is(soon('overview', 'SELECT shard, trouble IS NULL FROM pulse_citus.overview()'), "0|t\n1|t\n2|f",
    'and has a row for the node that is away');
is(soon('verify', 'SELECT count(*), count(trouble) FROM pulse_citus.verify()'), '3|1',
    'and so has this');
is(soon('doctor', q{SELECT count(*) FROM pulse_citus.doctor() WHERE finding = 'no answer'}), 1,
    'and so has this');
is(soon('get_job', 'SELECT pulse_citus.get_job((2::bigint << 44) | 1)'), '08006',
    'and says that the node is away');
is(add($keys[2], 'away'), '08006', 'no job is added for a key of the node');
is(add($keys[$_], 'goes_on'), $_, "jobs are added on node $_") for 0, 1;
is($cluster->ask("BEGIN; SELECT pulse_citus.add_job('$keys[1]', 'away');
    SELECT pulse_citus.add_job('$keys[2]', 'away'); COMMIT"), '08006',
    'a transaction that needs the node');
is(value($cluster->node(1), "SELECT count(*) FROM pulse.job WHERE identifier = 'away'"), 0,
    'is undone on each');
is(as_owner("SELECT pulse_citus.grant('caller', 'app')"), 'PU003', 'no rights are given');
$cluster->node(2)->start;
is(add($keys[2], 'back'), 2, 'a node that is back takes jobs');
is(as_owner("SELECT pulse_citus.grant('caller', 'app')"), '', 'and rights');

# A machine that does not answer at all.
my @frozen = Pulse::Process->family($cluster->node(2)->{_pid});
kill 'STOP', map { $_->pid } @frozen;
is(soon('overview', 'SELECT shard, trouble IS NULL FROM pulse_citus.overview()'), "0|t\n1|t\n2|f",
    'with a row for the node that does not answer');
kill 'CONT', map { $_->pid } @frozen;

# --- a node without pg_pulse, or with another one -----------------------------------------------

sub on_node { my ($query) = @_;
    return value($cluster->node(2), "SET citus.enable_ddl_propagation = off; $query") }
sub be_of_version { my ($version) = @_;
    return on_node("CREATE OR REPLACE FUNCTION pulse_citus._private_version() RETURNS text
        LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN '$version'") }
be_of_version('0.1.9');
is(add($keys[2], 'apart'), 'PU003', 'a node of another version is refused');
is(colocate(), 'PU003', 'also by colocate()');
be_of_version('0.2.0');
is(add($keys[2], 'apart'), 2, 'a node of the same version is not');

on_node('DROP EXTENSION pg_pulse_citus');
is(add($keys[2], 'without'), '3F000', 'a node without pg_pulse_citus is refused');
is(add($keys[1], 'without'), 1, 'and no other node');
is(colocate(), 'PU003', 'colocate() names it');
like($cluster->said, qr/node 2 \(127\.0\.0\.1:\d+\) refuses: ERROR:  schema "pulse_citus" does not/,
    'with its words');
is(as_owner(q{SELECT count(*) FROM pulse_citus.doctor() WHERE finding = 'no answer'}), 1,
    'and doctor() names it');
on_node('CREATE EXTENSION pg_pulse_citus');
is(colocate(), '', 'colocate() gives the rights again');
is(add($keys[2], 'without'), 2, 'to a node that has it again');

# --- a key without a place ---------------------------------------------------------------------

sub shard_in { my ($table) = @_;
    return value($coordinator,
        "SELECT get_shard_id_for_distribution_column('$table', '$keys[1]')") }
my $place = shard_in('pulse_colocated.key');
is($cluster->ask("BEGIN; DELETE FROM pg_dist_placement WHERE shardid = $place;
    SELECT pulse_citus._private_perform('{0.2.0,$keys[1],add_job,nowhere}')",
    role => 'postgres', node => $cluster->node(1)), 'PU003',
    'a key of which a transaction sees no place is refused');

# --- a node that comes later --------------------------------------------------------------------

my $late = Pulse::Citus->start_node('late');
$cluster->join_cluster($late);
push @{ $cluster->{nodes} }, $late;
value($coordinator, "CREATE TABLE later (tenant text)");
value($coordinator,
    "SELECT create_distributed_table('later', 'tenant', colocate_with => 'orders')");
my $shard = shard_in('orders');
value($coordinator, "SELECT citus_move_shard_placement($shard, '127.0.0.1', "
      . $cluster->node(1)->port . ", '127.0.0.1', " . $late->port
      . ", shard_transfer_mode => 'block_writes')");
is(add($keys[1], 'late'), '42501', 'a new node has no rights to give');
is($cluster->ask("SELECT pulse_citus.add_job('$keys[1]', 'late')", role => 'postgres'), 'PU003',
    'nor ids of its own');
# As Citus leaves the table of a shard for a while after the shard has moved away.
my $left = 'pulse_colocated.key_' . value($coordinator,
    "SELECT get_shard_id_for_distribution_column('pulse_colocated.key', '$keys[0]')");
value($late, "SET citus.enable_ddl_propagation = off; CREATE TABLE $left (shard_key text)");
is($cluster->ask("SELECT pulse_citus._private_perform('{0.2.0,$keys[$_],add_job,late}')",
    role => 'postgres', node => $late), 'PU003', "nor does it take a call for a key of node $_")
  for 0, 1;
value($late, "SET citus.enable_ddl_propagation = off; DROP TABLE $left");
is(as_owner(q{SELECT count(*) FROM pulse_citus.doctor() WHERE finding = 'no shard'}), 1,
    'doctor() names it');
is($cluster->jobs('late'), '0,0,0,0', 'and it has no job');
is(colocate(), '', 'colocate() again');
is(add($keys[1], 'late'), 3, 'gives it both');
is(as_owner(q{SELECT count(*) FROM pulse_citus.doctor() WHERE finding = 'no shard'}), 0,
    'doctor() is content');

# --- rows that have moved -----------------------------------------------------------------------

is($cluster->jobs('goes_on'), '1,1,0,0', 'jobs of the rows that moved stay where they are');
is($cluster->ask("SELECT pulse_citus.add_job_after('$keys[1]', ARRAY[(SELECT id FROM
    pulse_citus.add_job('$keys[0]', 'x'))], 'y')"), 'PU005',
    'no job waits for a job of another node');

# --- a node that goes ---------------------------------------------------------------------------

value($coordinator, "SELECT citus_move_shard_placement($shard, '127.0.0.1', " . $late->port
      . ", '127.0.0.1', " . $cluster->node(1)->port . ", shard_transfer_mode => 'block_writes')");
my $id = value($late, "SELECT id FROM pulse.job WHERE identifier = 'late'");
value($coordinator, "SELECT citus_remove_node('127.0.0.1', " . $late->port . ')');
is(add($keys[1], 'gone'), 1, 'jobs are where the rows are');
is(as_owner("SELECT pulse_citus.get_job($id)"), 'PU005', 'an id of a node that has gone');
is(value($late, "SELECT state FROM pulse.get_job($id)"), 'ready', 'is known to the node alone');

# --- a node that has given out ids --------------------------------------------------------------

my $used = Pulse::Citus->start_node('used');
value($used, "CREATE EXTENSION pg_pulse; SELECT pulse.add_job('mine')");
$cluster->join_cluster($used);
is(colocate(), 'PU003', 'a node that has given out ids is refused');
like($cluster->said, qr/node \d+ \(127\.0\.0\.1:\d+\) refuses: ERROR:  ids of shard 0 were given/,
    'with its words');
is(value($used, 'SELECT count(*) FROM pulse.job'), 1, 'and keeps its jobs');
value($coordinator, "SELECT citus_remove_node('127.0.0.1', " . $used->port . ')');
is(colocate(), '', 'without the node all is well');

$cluster->expect_healthy;
done_testing();
