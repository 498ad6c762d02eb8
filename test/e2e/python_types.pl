# The types of the library for Python, as mypy reads the types: right uses are accepted, and wrong
# uses are not.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::PythonLibrary;

my $python = require_python(qw(mypy psycopg));
local $ENV{MYPYPATH} = (split /:/, $ENV{PYTHONPATH})[0];
my $cache = PostgreSQL::Test::Utils::tempdir;
my $types = 'test/e2e/python/types';
my $said =
  `$python -m mypy --config-file '$types/mypy.ini' --cache-dir '$cache' $types/*.py 2>&1`;
is($?, 0, 'right uses are accepted, and wrong uses are not') or diag($said);

done_testing();
