# A build in another folder than the sources (VPATH) takes nothing that an earlier build left there.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;

my $tree = getcwd();
my $sources = PostgreSQL::Test::Utils::tempdir();
my $folder = PostgreSQL::Test::Utils::tempdir();
mkdir "$sources/$_" or die "$sources/$_: $!\n" for qw(extension extension/job);
append_to_file("$sources/$_", slurp_file("$tree/$_")) for qw(Makefile extension/pg_pulse.control);
append_to_file("$sources/extension/job/add.cpp", '');

# What make would run: it runs nothing with -n.
sub make {
    local %ENV = %ENV;
    delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS VPATH)};
    my $goal = "VPATH='$sources' extension/job/add.o";
    my $said = `make -C '$folder' -f '$sources/Makefile' -n $goal 2>&1`;
    return ($? >> 8, $said);
}

my ($status, $said) = make();
is($status, 0, 'sources that nobody has built in place are built');
like($said, qr/-o extension\/job\/add\.o /, 'into the folder of the build');

append_to_file("$sources/extension/job/add.o", '');
($status, $said) = make();
is($status, 2, 'sources with an object are refused');
like($said, qr{\Q$sources\E was built in place and has \Q$sources\E/extension/job/add.o},
    'whose name is told');
like($said, qr/type make -C \Q$sources\E clean/, 'and the way out');

done_testing();
