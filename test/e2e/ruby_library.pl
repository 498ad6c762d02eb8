# The library for Ruby, by its own tests: without a server, and on one, by pg, by Active Record and
# through a pooler, and in transactions that are rolled back.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Pooler;
use Pulse::RubyLibrary;
use Pulse::Server;

require_ruby(qw(minitest pg active_record active_job));
relay_minitest($_) for qw(library program unique);
my $node = start_server('main', settings => \%PATIENT);
local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
  ($node->host, $node->port, scalar getpwuid($>), 'postgres');
value($node, 'CREATE EXTENSION pg_pulse_tap CASCADE');
relay_minitest('testing');
relay_minitest('active_job');
my $pooler = Pulse::Pooler::is_installed()
  ? Pulse::Pooler->start($node, 'pooler', size => 2) : undef;
my %address = $pooler ? $pooler->address : ();
local @ENV{qw(POOLER_HOST POOLER_PORT)} = @address{qw(host port)} if $pooler;
relay_minitest('database');
expect_healthy($node);
done_testing();
