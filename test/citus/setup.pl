# docs/scale-out.md: setting up a cluster, what colocate() refuses, and taking it all away.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Citus;
use Pulse::Server qw(value wait_until new_server);

# One server with jobs, a producer, and no Citus yet becomes the coordinator.
my $cluster = Pulse::Citus->start(nodes => 2, colocate => 0, before => sub {
    my ($old) = @_;
    value($old, "CREATE EXTENSION pg_pulse; CREATE ROLE shop LOGIN;
        SELECT pulse.grant_producer('shop')");
    value($old, "SELECT pulse.add_job('old') FROM generate_series(1, 100)");
});
my $coordinator = $cluster->coordinator;

sub colocate {
    my ($table) = @_;
    return $cluster->ask("SELECT pulse_citus.colocate('$table')", role => 'postgres');
}

is($cluster->ask("SELECT pulse_citus.add_job('t1', 'x')"), '42501',
    'no role has rights before a grant');
is($cluster->ask("SELECT pulse_citus.add_job('t1', 'x')", role => 'postgres'), 'PU003',
    'no job has a home before colocate()');

# --- tables -------------------------------------------------------------------------------------

value($coordinator, "
    CREATE TABLE plain (a int); CREATE TABLE everywhere (a int); CREATE TABLE local (a int);
    CREATE TABLE ranges (a int); CREATE TABLE by_number (a bigint); CREATE TABLE by_uuid (a uuid);
    CREATE TABLE lines (tenant text); CREATE SCHEMA tenant; CREATE TABLE single (a int)");
value($coordinator, $_) for "SELECT create_reference_table('everywhere')",
  "SELECT citus_add_local_table_to_metadata('local')",
  "SELECT create_distributed_table('ranges', 'a', 'range')",
  "SELECT create_distributed_table('by_number', 'a', shard_count => 6)",
  "SELECT create_distributed_table('by_uuid', 'a', shard_count => 5)",
  "SELECT create_distributed_table('lines', 'tenant', colocate_with => 'orders')",
  "SELECT create_distributed_table('single', NULL, colocate_with => 'none')",
  "SELECT citus_schema_distribute('tenant')", 'CREATE TABLE tenant.orders (a int)';
is(colocate($_), 'PU004', "$_ takes no jobs")
  for qw(plain everywhere local ranges single tenant.orders);
is($cluster->ask('SELECT pulse_citus.colocate(NULL)', role => 'postgres'), 'PU004',
    'nor does NULL');
value($coordinator, "GRANT USAGE ON SCHEMA pulse_citus TO app;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pulse_citus TO app");
is($cluster->ask("SELECT pulse_citus.$_"), '42501', "$_ is the owner's")
  for "colocate('orders')", 'uncolocate()';
is($cluster->ask("SELECT pulse_citus.colocate('orders')", role => 'postgres',
    node => $cluster->node(1)), 'PU003', 'a node is not the coordinator');

is(colocate('orders'), '', 'a table that is distributed by a hash');
is(colocate('orders'), '', 'once more');
is(colocate('lines'), '', 'a table that is colocated with it');
is(colocate('by_number'), 'PU004', 'a table of another group');

# --- the old server -----------------------------------------------------------------------------

is($cluster->jobs('old'), '100,0,0', 'the jobs of the old server stay');
my @keys = $cluster->keys;
is($cluster->ask("SELECT (pulse_citus.add_job('$keys[$_]', 'new')).id >> 44", role => 'shop'), $_,
    "the old producer has the right on node $_") for 0 .. 2;
is($cluster->ask("SELECT (pulse.add_job('plain')).id", role => 'shop'), 102,
    'a job without a key is added as before');

# --- keys of other types ------------------------------------------------------------------------

is($cluster->ask('SELECT pulse_citus.uncolocate()', role => 'postgres'), '', 'uncolocate()');
is($cluster->ask("SELECT pulse_citus.add_job('t1', 'x')", role => 'postgres'), 'PU003',
    'no job has a home after it');
is(colocate('by_number'), '', 'a table by a number');
for my $key (1 .. 6) {
    my $home = value($coordinator, "SELECT groupid FROM pg_dist_placement
        WHERE shardid = get_shard_id_for_distribution_column('by_number', $key)");
    is($cluster->ask("SELECT (pulse_citus.add_job($key, 'n')).id >> 44", role => 'shop'), $home,
        "number $key is at home");
    is($cluster->ask("SELECT (pulse_citus.add_job('$key', 'n')).id >> 44", role => 'shop'), $home,
        'as text too');
}
like($cluster->ask("SELECT pulse_citus.add_job($_, 'x')", role => 'shop'), qr/^22/,
    "$_ is no number") for "'abc'", "''", "'99999999999999999999'",
  "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid";
$cluster->ask('SELECT pulse_citus.uncolocate()', role => 'postgres');
is(colocate('by_uuid'), '', 'a table by a UUID');
is($cluster->ask("SELECT count(pulse_citus.add_job(gen_random_uuid(), 'u'))
    FROM generate_series(1, 20)", role => 'shop'), 20, 'UUIDs are at home');

# --- the table goes -----------------------------------------------------------------------------

value($coordinator, 'DROP TABLE by_uuid');
is($cluster->ask('SELECT count(pulse_citus.add_job(gen_random_uuid(), $$u$$))
    FROM generate_series(1, 20)', role => 'shop'), 20,
    'a table that is dropped leaves its keys at home');
is(colocate('orders'), 'PU004', 'a table of another group takes no place');
value($coordinator, 'DROP TABLE pulse_colocated.key');
is($cluster->ask("SELECT pulse_citus.add_job(gen_random_uuid(), 'x')", role => 'shop'), 'PU003',
    'no job has a home where the table of the homes is dropped');
is(colocate('orders'), '', 'another table takes the place');
is($cluster->ask("SELECT (pulse_citus.add_job('$keys[2]', 'x')).id >> 44", role => 'shop'), 2,
    'with jobs');

# --- a dump of a node ---------------------------------------------------------------------------

my $node = $cluster->node(2);
my $dump = PostgreSQL::Test::Utils::tempdir('dump') . '/node';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, 'postgres' ], 'a node is dumped');
value($node, 'CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'restored', $dump ], 'and restored');
is(value($node, 'SELECT count(*) FROM pulse.job', 'restored'),
    value($node, 'SELECT count(*) FROM pulse.job'), 'with its jobs');
is(value($node, 'SELECT shard FROM pulse.overview()', 'restored'), 2, 'and its shard');

# --- DROP EXTENSION -----------------------------------------------------------------------------

is($cluster->ask('DROP EXTENSION pg_pulse_citus', role => 'postgres'), '', 'DROP pg_pulse_citus');
is($cluster->jobs('new'), '1,1,1', 'leaves the jobs');
is($cluster->ask("SELECT pulse_colocated.call('$keys[2]', '{}')", role => 'shop'), '3F000',
    'what colocate() made calls nothing');
is($cluster->ask("CREATE EXTENSION pg_pulse_citus; SELECT pulse_citus.colocate('orders')",
    role => 'postgres'), '', 'it is created again');
is($cluster->ask("SELECT (pulse_citus.add_job('$keys[1]', 'x')).id >> 44", role => 'shop'), 1,
    'and has its rights again');
is($cluster->ask('DROP EXTENSION pg_pulse', role => 'postgres'), '2BP01',
    'pg_pulse stays while pg_pulse_citus needs it');
is($cluster->ask('DROP EXTENSION citus', role => 'postgres'), '2BP01', 'and so does Citus');
is($cluster->ask('DROP EXTENSION pg_pulse CASCADE', role => 'postgres'), 'PU009',
    'live jobs keep pg_pulse');
$cluster->expect_healthy;

# --- without Citus, or behind it ----------------------------------------------------------------

my $alone = new_server('alone', settings => { extension_destdir => '' });
$alone->start;
isnt($alone->psql('postgres', 'CREATE EXTENSION pg_pulse_citus CASCADE'), 0,
    'without Citus preloaded there is no pg_pulse_citus');
$alone->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_pulse,citus'");
$alone->stop;
is($alone->start(fail_ok => 1), 0, 'Citus must be the first to be preloaded');
like(slurp_file($alone->logfile), qr/Citus has to be loaded first/, 'and says so');

done_testing();
