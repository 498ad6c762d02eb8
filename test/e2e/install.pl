# Twenty sessions that install the extension at the same moment: there is one, and it works; the
# others are told that it exists.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my $node = new_server('main', settings => {%PATIENT});
$node->start;
my @sessions = map { Pulse::Session->new($node) } 1 .. 20;

# All have seen that there is none before the first can write that there is one.
my $gate = Pulse::Session->new($node);
$gate->query('BEGIN; LOCK TABLE pg_namespace, pg_extension IN SHARE ROW EXCLUSIVE MODE');
$_->ask('CREATE EXTENSION IF NOT EXISTS pg_pulse') for @sessions;
wait_until($node, q{SELECT count(*) = 20 FROM pg_locks WHERE NOT granted}, 'all are at the gate');
$gate->query('COMMIT');
$gate->quit;

my %ends;
for (@sessions) {
    $_->answer;
    $ends{ $_->said =~ /(?:ERROR|FATAL):  (\w{5}):/ ? $1 : 'installed' }++;
}
is(delete $ends{installed}, 1, 'one installs it');
# Unique violation, duplicate schema, duplicate object.
delete @ends{qw(23505 42P06 42710)};
is_deeply(\%ends, {}, 'the others are told that it exists');
is($_->try('CREATE EXTENSION IF NOT EXISTS pg_pulse'), '', 'asked again they agree')
  for @sessions[ 0, 1 ];
unlike($_->said, qr/ERROR|FATAL/, 'without an error') for @sessions[ 0, 1 ];
$_->quit for @sessions;
is(value($node, q{SELECT count(*) FROM pg_extension WHERE extname = 'pg_pulse'}),
    1, 'there is one');

my $worker = Pulse::SqlWorker->new($node, 'ann');
my $id = add_job($node, 'run');
$worker->complete($worker->must_claim);
is(finished($node, $id), 'completed|1|0', 'and it works');
expect_healthy($node);
done_testing();
