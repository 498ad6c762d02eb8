# The library for Python, by its own tests: without a server, and on one, by each driver, through a
# pooler, and in transactions that are rolled back.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Pooler;
use Pulse::PythonLibrary;
use Pulse::Server;

require_python(qw(pytest psycopg));
relay_pytest('without a server', 'test_library.py');
relay_pytest('arguments', 'test_calls.py');
relay_pytest('tasks', 'test_tasks.py');
relay_pytest('the direct mode', 'test_direct.py');
# A test that fails may leave a transaction open.
my $node = start_server('main', settings => { %PATIENT, lock_timeout => '60s' });
local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
  ($node->host, $node->port, scalar getpwuid($>), 'postgres');
value($node, 'CREATE EXTENSION pg_pulse_tap CASCADE');
relay_pytest('tests of an application', 'test_testing.py');
my $pooler = Pulse::Pooler::is_installed()
  ? Pulse::Pooler->start($node, 'pooler', size => 2) : undef;
my %address = $pooler ? $pooler->address : ();
local @ENV{qw(POOLER_HOST POOLER_PORT)} = @address{qw(host port)} if $pooler;
relay_pytest('calls', 'test_database.py');
expect_healthy($node);
done_testing();
