# The types of the library for Node: a shop in strict TypeScript compiles, and wrong uses do not.
use strict;
use warnings FATAL => 'all';

use File::Copy qw(copy);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::NodeLibrary;

require_node();
plan skip_all => 'no tsc' if system('command -v tsc >/dev/null') != 0;

# The library is found as npm installs it.
my $folder = PostgreSQL::Test::Utils::tempdir;
mkdir "$folder/node_modules" or die "$folder/node_modules: $!\n";
symlink "$ENV{CLIENTS}/node", "$folder/node_modules/pg-pulse" or die "pg-pulse: $!\n";
for my $file (glob 'test/e2e/node/types/*') { copy($file, $folder) or die "$file: $!\n" }
my $said = `tsc --project '$folder' 2>&1`;
is($?, 0, 'right uses compile, and wrong uses do not') or diag($said);
$said = `tsc --project '$folder/bare.json' 2>&1`;
is($?, 0, 'so they do in a program that has no types but those of the language') or diag($said);
# What the types say of the ways to import is what Node does.
my $imports = 'import * as all from "pg-pulse"; import * as testing from "pg-pulse/testing";'
  . ' console.log("default" in all, "default" in testing)';
is(`cd '$folder' && node --input-type=module -e '$imports' 2>&1`, "false false\n",
    'and modules have no default');

done_testing();
