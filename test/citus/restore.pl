# docs/scale-out.md: a restore point of Citus brings rows and jobs of all nodes back to one moment.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Cluster;
use Pulse::Citus;
use Pulse::Server qw(value wait_until);

my $cluster = Pulse::Citus->start;
my @keys = $cluster->keys;

# One transaction of rows and jobs on all nodes.
sub add {
    my ($task) = @_;
    my $all = join ';', map { ("INSERT INTO orders VALUES ('$_', 0, '$task')",
        "SELECT (pulse_citus.add_job('$_', '$task')).id") } @keys;
    return $cluster->ask("BEGIN; $all; COMMIT");
}

add('before');
$_->backup('base') for $cluster->nodes;
add('between');
value($cluster->coordinator, q{SELECT citus_create_restore_point('both')});
add('after');

# Each server follows its own until the point, and ends there as a primary.
my @restored;
for my $node ($cluster->nodes) {
    my $copy = PostgreSQL::Test::Cluster->new($node->name . '_restored');
    $copy->init_from_backup($node, 'base', has_streaming => 1);
    $copy->append_conf('postgresql.conf',
        "recovery_target_name = 'both'\nrecovery_target_action = 'promote'");
    $copy->start;
    wait_until($copy, 'SELECT NOT pg_is_in_recovery()', 'the restore point');
    push @restored, $copy;
}
$_->stop for $cluster->nodes;
my $back = bless { nodes => \@restored, keys => $cluster->{keys} }, 'Pulse::Citus';
for my $old (split /\n/, value($back->coordinator, 'SELECT nodeid, groupid FROM pg_dist_node')) {
    my ($id, $group) = split /\|/, $old;
    value($back->coordinator,
        "SELECT citus_update_node($id, '127.0.0.1', " . $restored[$group]->port . ')');
}
# Citus hands no call to a node whose tables it has not written anew.
value($back->coordinator, 'SELECT start_metadata_sync_to_all_nodes()');
value($_, 'SELECT pulse.adopt_installation()') for @restored;

is($back->jobs('before'), '1,1,1', 'jobs of before are there');
is($back->jobs('between'), '1,1,1', 'and those of before the point');
is($back->jobs('after'), '0,0,0', 'a job of after the point is on no node');
is(value($back->coordinator, 'SELECT string_agg(note, $$,$$ ORDER BY note) FROM orders'),
    'before,before,before,between,between,between', 'as many rows as jobs');
is($back->ask("SELECT (pulse_citus.add_job('$keys[$_]', 'anew')).id >> 44"), $_,
    "node $_ goes on with ids of its shard") for 0 .. 2;

$back->expect_healthy;
done_testing();
