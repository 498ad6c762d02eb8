# A library that was built on the newest minor version loads in the first one: what came in between
# is called only where the server has it.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;

my $tool = getcwd() . '/test/support/symbols';
my $folder = PostgreSQL::Test::Utils::tempdir();
my ($major) = `pg_config --version` =~ /^PostgreSQL (\d+)/;
plan skip_all => "no list of what $major.0 has" if !-e "test/symbols/$major.txt";

# A library that calls these functions, some of them only where they are.
sub library {
    my ($name, %called) = @_;
    my $code = join '', map { "void $_(void)$called{$_};\n" } sort keys %called;
    $code .= 'void run(void) { ' . join(' ', map { "if ($_) $_();" } sort keys %called) . " }\n";
    append_to_file("$folder/$name.c", $code);
    system('cc', '-w', '-shared', '-fPIC', '-o', "$folder/$name.so", "$folder/$name.c") == 0
      or die "$name does not build\n";
    return "$folder/$name.so";
}

sub complaints { my ($library) = @_; return (scalar(`'$tool' '$library' 2>&1`), $? >> 8) }

subtest 'a function of the first release' => sub {
    my ($said, $status) = complaints(library('old', lookup_rowtype_tupdesc => ''));
    is("$status$said", '0', 'may be called');
};

# Of 15.20, by a function of a header that is inlined.
subtest 'one of a later minor version' => sub {
    my ($said, $status) = complaints(library('new', heap_datum_check => '', elog_start => ''));
    is($status, 1, 'may not');
    like($said, qr/^symbols: heap_datum_check is not among what PostgreSQL $major\.0 has/m,
        'and is named');
};

subtest 'one that the library asks for first' => sub {
    my ($said, $status) =
      complaints(library('weak', heap_datum_check => ' __attribute__((weak))'));
    is("$status$said", '0', 'may be called');
};

# The library that the server of these tests loads.
subtest 'the library of this tree' => sub {
    my ($own) = grep { -e } map { s/^.*= '|:.*$//gr . '/pg_pulse.so' }
      grep { /^dynamic_library_path/ } split /\n/, slurp_file($ENV{TEMP_CONFIG});
    plan skip_all => 'it is installed elsewhere' if !$own;
    my ($said, $status) = complaints($own);
    is("$status$said", '0', 'needs nothing that came later');
};

# Nothing is built here: what would build the packages leaves a library in the tree.
subtest 'the package of the library' => sub {
    my @flags = qw(CFLAGS CPPFLAGS CXXFLAGS LDFLAGS);
    mkdir "$folder/bin" or die "$folder/bin: $!\n";
    append_to_file("$folder/bin/dpkg-buildpackage",
        qq{#!/bin/sh\ncp "\$LIBRARY" pg_pulse.so\nenv >"$folder/environment"\n});
    # On a machine that no name server knows.
    append_to_file("$folder/bin/hostname", "#!/bin/sh\nexit 1\n");
    chmod 0755, map { "$folder/bin/$_" } qw(dpkg-buildpackage hostname)
      or die "chmod: $!\n";
    my $build = sub {
        my ($library) = @_;
        local $ENV{LIBRARY} = "$folder/$library.so";
        local $ENV{PATH} = "$folder/bin:$ENV{PATH}";
        local @ENV{@flags} = ('-fno-exceptions') x @flags;
        return system("worker/deploy/debian/build . $folder/deb >/dev/null 2>&1") >> 8;
    };
    is($build->('old'), 0, 'is made');
    my $control = slurp_file("$folder/deb/tree/debian/control");
    my ($depends) = $control =~ /^Depends: (postgresql\S* \S+ \S+)/m;
    is($depends, "postgresql-$major (>= $major.0),", 'for each server of its major version');
    my $any = join '|', @flags;
    is(join(' ', slurp_file("$folder/environment") =~ /^($any)=/mg), '',
        'without the flags of the make that called, which are the library\'s');
    is($build->('new'), 1, 'and is not where the library does not load in each');
};

done_testing();
