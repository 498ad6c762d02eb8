# The library for Node in transactions of Knex, which npm brings.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Graphile;
use Pulse::NodeLibrary;
use Pulse::Server;

require_node();
my $folder = install_packages(getcwd . '/test/e2e/node/knex', 'nothing was run with Knex', 'ci');
my $node = start_server('main', settings => \%PATIENT);
local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
  ($node->host, $node->port, scalar getpwuid($>), 'postgres');
my $library = getcwd . '/clients/node';
my $output = `cp test/e2e/node/knex/transaction.cjs '$folder' && cd '$folder' &&
  node transaction.cjs '$library' 2>&1`;
is($?, 0, 'a job is added with the rows of a transaction, or not at all') or diag($output);
expect_healthy($node);
done_testing();
