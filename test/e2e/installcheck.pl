# make installcheck needs a superuser, and tells anybody else so before the tests begin.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;

my $node = start_server('main');
value($node, 'CREATE ROLE plain LOGIN');
my $by = sprintf 'PGHOST=%s PGPORT=%d PGUSER=plain', $node->host, $node->port;
my $said = `$by test/support/pgtap test/pgtap/none.sql 2>&1`;
isnt($?, 0, 'a role without rights is refused');
like($said, qr/^pgtap: plain is no superuser, .*; PGUSER names another role/, 'with the way out');
unlike($said, qr/ERROR/, 'and with no error of the server');
expect_healthy($node);
done_testing();
