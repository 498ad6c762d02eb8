# The library for Node, by its own tests: without a server, and on one, through a pooler, and in
# transactions that are rolled back.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::NodeLibrary;
use Pulse::Pooler;
use Pulse::Server;

require_node();
my $folder = "$ENV{CLIENTS}/node/test";
relay_tap("without a server: $_", 'node', '--test', '--test-reporter=tap', "$folder/$_.test.js")
  for qw(library direct program unique);

subtest 'with a server' => sub {
    plan skip_all => 'no node with the library pg' if !require_driver();
    my $node = start_server('main', settings => \%PATIENT);
    local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
      ($node->host, $node->port, scalar getpwuid($>), 'postgres');
    value($node, 'CREATE EXTENSION pg_pulse_tap CASCADE');
    relay_tap('tests of an application', 'node', '--test', '--test-reporter=tap',
        "$folder/testing.test.js");
    my $pooler = Pulse::Pooler::is_installed()
      ? Pulse::Pooler->start($node, 'pooler', size => 2) : undef;
    my %address = $pooler ? $pooler->address : ();
    local @ENV{qw(POOLER_HOST POOLER_PORT)} = @address{qw(host port)} if $pooler;
    relay_tap("calls: $_", 'node', '--test', '--test-reporter=tap', "$folder/$_.test.js")
      for qw(database arguments);
    expect_healthy($node);
};

done_testing();
