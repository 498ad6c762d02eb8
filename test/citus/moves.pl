# docs/scale-out.md: the rebalancer moves the rows of a tenant while jobs of the tenant are added
# and run. Each row has one job, which ran once, on one of the two nodes.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Citus;
use Pulse::Program;
use Pulse::Server qw(value wait_until);
use Pulse::Worker;

use constant TRANSACTIONS => 400;

# Citus moves a shard online by logical replication.
my $cluster = Pulse::Citus->start(settings => { wal_level => 'logical' });
my ($coordinator, @nodes) = $cluster->nodes;
my (undef, $key, $other) = $cluster->keys;
value($coordinator, 'ALTER TABLE orders REPLICA IDENTITY FULL');
my $shard = value($coordinator, "SELECT get_shard_id_for_distribution_column('orders', '$key')");

sub move {
    my ($from, $to) = @_;
    my ($old, $new) = map { "'127.0.0.1', " . $_->port } @nodes[ $from - 1, $to - 1 ];
    return $cluster->ask("SELECT citus_move_shard_placement($shard, $old, $new)",
        role => 'postgres');
}

for my $node (@nodes) {
    value($node, q{SET citus.enable_ddl_propagation = off;
        CREATE TABLE public.ran (id bigint);
        CREATE FUNCTION public.note(payload json) RETURNS void LANGUAGE sql
          BEGIN ATOMIC INSERT INTO public.ran VALUES ((payload ->> 'row')::bigint); END;
        SELECT pulse.set_task('ledger', handler => 'public.note(json)')});
}
my @workers = map { Pulse::Worker->start($_, 'mover_' . $_->name) } @nodes;
my $producer = Pulse::Program->start('producer', [ 'python3', 'test/citus/producer.py',
    'host=127.0.0.1 dbname=postgres user=app port=' . $coordinator->port, 1, TRANSACTIONS, $key,
    $other ]);
my $lines = $producer->lines;
for my $move ([ 1, 2 ], [ 2, 1 ], [ 1, 2 ]) {
    $lines->wait_for('commits', sub { $_[0] =~ /^committed/ }, count => 10,
        from => $lines->position);
    is(move(@$move), '', "the tenant moves from node $move->[0] to node $move->[1]");
}
$lines->wait_for('its end', sub { $_[0] eq 'done' });
is($cluster->ask("SELECT (pulse_citus.add_job('$key', 'after')).id >> 44"), 2,
    'jobs are added where the rows are now');

wait_until($_, q{SELECT count(*) = 0 FROM pulse.job WHERE identifier = 'ledger'}, 'all jobs ended')
  for @nodes;
my @rows = sort { $a <=> $b } split /\n/,
  value($coordinator, q{SELECT id FROM orders WHERE note = 'ledger'});
my @ran = map { [ split /\n/, value($_, 'SELECT id FROM ran') ] } @nodes;
is(join(' ', sort { $a <=> $b } map { @$_ } @ran), join(' ', @rows),
    'each row has one job, which ran once: ' . @rows);
cmp_ok(scalar @$_, '>', 0, 'jobs ran on both nodes') for @ran;
$_->signal('TERM') for @workers;
$_->wait_exit for @workers;

$cluster->expect_healthy;
done_testing();
