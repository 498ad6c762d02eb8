# docs/scale-out.md, "Upgrade": new packages on all nodes, then two updates on the coordinator. Each
# other order is refused or works, and each job that was added is on its node.
use strict;
use warnings FATAL => 'all';

use File::Path qw(make_path);
use Test::More;

use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Pulse::Citus;
use Pulse::Server qw(value);

# Only there each node can have packages of its own.
plan skip_all => 'the server has no setting extension_destdir'
  if slurp_file($ENV{TEMP_CONFIG}) !~ /^extension_destdir/m;

my ($old, $new) = ('0.1.9', '0.2.0');
my ($share) = `pg_config --sharedir` =~ /^(.*)$/m;
my $folder = PostgreSQL::Test::Utils::tempdir('packages');

# The files of packages of a version: what is there today, under the number of the version.
sub make_packages {
    my ($version) = @_;
    my $extensions = "$folder/$version$share/extension";
    make_path($extensions);
    for my $name (qw(pg_pulse pg_pulse_citus)) {
        for my $file ("$name.control", "$name--$new.sql") {
            my $there = $file =~ s/\Q$new\E/$version/r;
            append_to_file("$extensions/$there",
                slurp_file("$share/extension/$file") =~ s/\Q$new\E/$version/gr);
        }
    }
    return $extensions;
}

make_packages($old);
my $extensions = make_packages($new);
append_to_file("$extensions/pg_pulse--$old--$new.sql",
    'CREATE FUNCTION pulse.is_updated() RETURNS boolean LANGUAGE sql RETURN true;');
my ($function) = slurp_file("$extensions/pg_pulse_citus--$new.sql") =~
  /^CREATE (FUNCTION pulse_citus\._private_version\(\).*?;)$/ms;
append_to_file("$extensions/pg_pulse_citus--$old--$new.sql", "CREATE OR REPLACE $function");

my $cluster = Pulse::Citus->start(settings => { extension_destdir => "$folder/$old" });
my ($coordinator, @nodes) = $cluster->nodes;
my @keys = $cluster->keys;

sub give_packages {
    my ($node) = @_;
    $node->append_conf('postgresql.conf', "extension_destdir = '$folder/$new'");
    $node->restart;
    return;
}

sub update { my ($name) = @_;
    return $cluster->ask("ALTER EXTENSION $name UPDATE TO '$new'", role => 'postgres') }

sub update_alone {
    my ($node, $name) = @_;
    return value($node, "SET citus.enable_ddl_propagation = off; ALTER EXTENSION $name UPDATE");
}

# Of pg_pulse and pg_pulse_citus on each node.
sub versions_are {
    my ($expected, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is(join(' ', map { value($_, q{SELECT string_agg(extversion, '/' ORDER BY extname)
        FROM pg_extension WHERE extname LIKE 'pg_pulse%'}) } $cluster->nodes), $expected, $what);
}

# What each node answers when the coordinator adds a job for a key of the node.
sub adds_are {
    my ($expected, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is(join(' ', map { $cluster->ask("SELECT (pulse_citus.add_job('$_', 'x')).id >> 44") }
        @keys), $expected, $what);
}

sub apart_are {
    my ($expected, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is($cluster->ask(q{SELECT count(*) FROM pulse_citus.doctor()
        WHERE finding = 'extensions apart'}, role => 'postgres'), $expected, $what);
}

versions_are("$old/$old $old/$old $old/$old", 'a cluster of the old version');
adds_are('0 1 2', 'adds jobs');

give_packages($coordinator);
adds_are('0 1 2', 'new packages on the coordinator change nothing');
like(update('pg_pulse'), qr/^\w{5}$/, 'the update is refused while a node has old packages');
like($cluster->said, qr/no update path from version "$old" to version "$new"/, 'and says why');
versions_are("$old/$old $old/$old $old/$old", 'and leaves each node as it was');

give_packages($_) for @nodes;
adds_are('0 1 2', 'nor do new packages on all nodes');
update_alone($nodes[1], 'pg_pulse');
versions_are("$old/$old $old/$old $new/$old", 'a node may be ahead by pg_pulse alone');
adds_are('0 1 2', 'and jobs are added on each');
apart_are(1, 'doctor() names the node');
update_alone($nodes[1], 'pg_pulse_citus');
adds_are('0 1 PU003', 'a node that is ahead by pg_pulse_citus is refused');
like($cluster->said, qr/repeat ALTER EXTENSION pg_pulse_citus UPDATE TO the newer version/,
    'with the way out');

is(update('pg_pulse'), '', 'pg_pulse first, on the coordinator');
versions_are("$new/$old $new/$old $new/$new", 'updates all nodes');
adds_are('0 1 PU003', 'and changes no refusal');
is(update('pg_pulse_citus'), '', 'then pg_pulse_citus');
versions_are("$new/$new $new/$new $new/$new", 'updates all nodes');
adds_are('0 1 2', 'and jobs are added on each');
apart_are(0, 'doctor() is content');
is($cluster->jobs('x'), '7,7,5', 'each job is where it was added');

$cluster->expect_healthy;
done_testing();
