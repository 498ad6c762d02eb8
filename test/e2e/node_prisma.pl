# The library for Node in transactions of Prisma, which npm brings: 170 MB, so in the long run only.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Graphile;
use Pulse::NodeLibrary;
use Pulse::Server;

require_node();
plan skip_all => 'in the long run only' if !$ENV{PULSE_LONG};
my $folder =
  install_packages(getcwd . '/test/e2e/node/prisma', 'nothing was run with Prisma', 'ci');
my $node = start_server('main', settings => \%PATIENT);
# Prisma has its engines from elsewhere, and its driver adapter needs none.
local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE PRISMA_SCHEMA_ENGINE_BINARY DATABASE_URL)} =
  ($node->host, $node->port, scalar getpwuid($>), 'postgres', '/bin/true', 'postgresql://none');
my $library = getcwd . '/clients/node';
my $output = `cp test/e2e/node/prisma/*.* '$folder' && cd '$folder' &&
  (node_modules/.bin/prisma generate --schema schema.prisma &&
   node transaction.cjs '$library') 2>&1`;
is($?, 0, 'a job is added with the rows of a transaction, or not at all') or diag($output);
expect_healthy($node);
done_testing();
