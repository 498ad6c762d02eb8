# Graphile Worker from npm, to compare with: the release that the benchmarks measure.
package Pulse::Graphile;

use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Exporter qw(import);
use Test::More;

use PostgreSQL::Test::Utils ();

our @EXPORT = qw(install_graphile install_packages connection_to);

# Returns the folder that has it in node_modules. Where it cannot be had, the test is skipped, and
# says what is `undone`.
sub install_graphile {
    my ($undone) = @_;
    return install_packages(getcwd . '/test/bench/graphile', $undone, 'ci');
}

# The same with the packages of another package.json; npm's `ci` also asks for a lock file.
sub install_packages {
    my ($packages, $undone, $verb) = @_;
    plan skip_all => "node and npm are not at hand: $undone"
      if system('command -v node npm >/dev/null 2>&1') != 0;
    my $folder = PostgreSQL::Test::Utils::tempdir() . '/graphile';
    mkdir $folder;
    plan skip_all => "npm cannot install its packages here: $undone"
      if system("cp '$packages'/package*.json '$folder' && cd '$folder' && "
          . "npm $verb --ignore-scripts --no-audit --no-fund "
          . "--fetch-timeout=20000 --fetch-retries=1 >npm.log 2>&1") != 0;
    return $folder;
}

sub connection_to {
    my ($node, $database) = @_;
    return 'postgresql://' . getpwuid($>) . "\@/$database?host=" . $node->host
      . '&port=' . $node->port;
}

1;
