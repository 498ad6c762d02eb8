# A library and SQL that do not fit are refused with a sentence that says what to do: at CREATE
# EXTENSION, and in a database whose SQL is newer, where the background worker waits too.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;

my ($version) = slurp_file('extension/pg_pulse.control') =~ /^default_version = '(.+)'/m;
my $older = '0.1.9';
my $folder = PostgreSQL::Test::Utils::tempdir;
my $installed = $ENV{PULSE_STAGE} . server_folder('pkglibdir');

# The library, which says that it is of another version.
sub plant_library {
    my $library = slurp_file("$installed/pg_pulse.so");
    die "the versions differ in length\n" if length $version != length $older;
    die "no version in the library\n" if $library !~ s/\x00\Q$version\E\x00/\x00$older\x00/g;
    append_to_file("$folder/pg_pulse.so", $library);
    chmod 0755, "$folder/pg_pulse.so" or die "$folder/pg_pulse.so: $!\n";
    return;
}

my $node = new_server('main', settings => { %QUICK, 'pulse.databases' => 'postgres' });

# From the next start on.
sub take_library_from {
    my ($place) = @_;
    $node->append_conf('postgresql.conf', "dynamic_library_path = '$place:\$libdir'");
    return;
}

# What a statement is refused with.
sub refused {
    my ($statement, $message, $detail, $hint, $what) = @_;
    my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
    my ($seen) = $error =~ /ERROR:  (.+)/;
    is($seen, "55000: $message", $what);
    like($error, qr/DETAIL:  \Q$detail\E/, 'with both versions') if $detail;
    like($error, qr/HINT:  \Q$hint\E/, 'and what to do');
    return;
}

sub old_library_refuses {
    my ($statement, $sql, $what) = @_;
    refused($statement, 'the library of pg_pulse that this session has loaded is too old',
        "It is of version $older, and the SQL of $sql.",
        "Install the files of $sql. Then restart the server if it preloads pg_pulse, else connect "
          . 'anew.', $what);
    return;
}

plant_library();
take_library_from($folder);
$node->start;
is(value($node, 'SHOW shared_preload_libraries'), 'pg_pulse', 'the server preloads');
old_library_refuses('CREATE EXTENSION pg_pulse', $version, 'an older library refuses new SQL');
is(value($node, q{SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pulse%'}),
    0, 'and nothing is left of it');

take_library_from($installed);
$node->restart;
value($node, 'CREATE EXTENSION pg_pulse');
add_job($node, 'kept');
value($node, q{CREATE EXTENSION pgtap});
value($node, q{UPDATE pg_extension SET extversion = '0.1.9' WHERE extname = 'pg_pulse'});
add_job($node, 'by a newer library');
refused("CREATE EXTENSION $_", "$_ $version needs pg_pulse $version, and 0.1.9 is installed", '',
    "ALTER EXTENSION pg_pulse UPDATE TO '$version' comes first.", "$_ needs its own version")
  for qw(pg_pulse_tap pg_pulse_graphile);
value($node, "UPDATE pg_extension SET extversion = '$version' WHERE extname = 'pg_pulse'");

take_library_from($folder);
my $log = -s $node->logfile;
$node->restart;
old_library_refuses(q{SELECT pulse.add_job('refused')}, $version, 'as it refuses to serve it');
old_library_refuses(q{SELECT pulse.register_worker('refused')}, $version, 'nor a worker');
$node->wait_for_log(qr/pg_pulse maintainer.*the library of pg_pulse .* is too old/s, $log);
is(value($node, 'SELECT count(*) FROM pulse.job'), 2, 'nothing has changed');

take_library_from($installed);
$node->restart;
add_job($node, 'served again');
is(value($node, 'SELECT count(*) FROM pulse.job'), 3, 'the new library serves it');
expect_healthy($node);
done_testing();
