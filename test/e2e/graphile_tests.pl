# Graphile Worker's own tests on the schema that pg_pulse_graphile makes, where PULSE_GRAPHILE_TESTS
# names a folder that has them. Each passes, or test/conformance/graphile/left_out.md says why not.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use JSON::PP;
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Graphile;
use Pulse::Server;

my $undone = 'the tests of Graphile Worker were not run';
my $tests = $ENV{PULSE_GRAPHILE_TESTS}
  or plan skip_all => "PULSE_GRAPHILE_TESTS names no folder: $undone";
my $own = getcwd . '/test/conformance/graphile';
my $folder = install_packages($own, $undone, 'install');

# The files that are left out as a whole, with the number of their tests; and single tests.
my (%file_is_out, %test_is_out);
for (split /\n/, slurp_file("$own/left_out.md")) {
    my ($file, $test) = /^\| `([\w.-]+)` \| (.*?) \|/ or next;
    if ($test =~ /^all (\d+)$/) { $file_is_out{$file} = $1 }
    else { $test_is_out{"$file: $test"} = 1 }
}

mkdir "$folder/__tests__";
my %path = map { m{([^/]+)\.test\.ts$} => $_ } glob "$tests/{,__tests__/}*.test.ts";
isnt(scalar %path, 0, 'the folder has tests');
for my $file (grep { !$file_is_out{$_} } sort keys %path) {
    system('cp', $path{$file}, "$folder/__tests__/") == 0 or die "$path{$file} is not copied\n";
}

my $node = start_server('main');
{
    local @ENV{qw(PGHOST PGPORT PGUSER NODE_OPTIONS NO_LOG_SUCCESS)} =
      ($node->host, $node->port, scalar getpwuid $>, '--experimental-vm-modules', 1);
    system("cd '$folder' && cp '$own'/*.mjs . && node_modules/.bin/jest --runInBand --silent "
          . '--json --outputFile=result.json >jest.log 2>&1');
}
my $result = decode_json(slurp_file("$folder/result.json"));

my %outcome;
for my $file (@{ $result->{testResults} }) {
    my ($name) = $file->{name} =~ m{([^/]+)\.test\.ts$};
    isnt(scalar @{ $file->{assertionResults} }, 0, "$name is run") or diag($file->{message});
    $outcome{"$name: $_->{fullName}"} = $_ for @{ $file->{assertionResults} };
}
for my $test (sort grep { !$test_is_out{$_} } keys %outcome) {
    is($outcome{$test}{status}, 'passed', $test)
      or diag(@{ $outcome{$test}{failureMessages} });
}
is_deeply([ grep { ($outcome{$_}{status} // '') ne 'failed' } sort keys %test_is_out ],
    [], 'single tests are left out only where they fail');
is_deeply([ grep { !$path{$_} } sort keys %file_is_out ], [], 'and files only where they exist');

my $left_out = keys %test_is_out;
$left_out += $_ for values %file_is_out;
diag(sprintf '%d pass, %d fail, %d are left out',
    scalar(grep { $_->{status} eq 'passed' } values %outcome),
    scalar(grep { $outcome{$_}{status} ne 'passed' && !$test_is_out{$_} } keys %outcome),
    $left_out);
expect_healthy($node);
done_testing();
