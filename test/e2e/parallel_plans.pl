# A server that forces parallel plans gives each of them a process, and a slow machine takes longer
# to start one than a worker waits for an answer. No session of pulse-worker, of the background
# worker, of `pulse` or of `pulse serve` asks for one.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils qw(slurp_file);
use Pulse::Api;
use Pulse::Console;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main',
    settings => {
        %QUICK,
        'pulse.sweep_threshold' => '60s',
        'pulse.databases' => 'postgres',
        log_min_messages => 'debug1',
        log_connections => 'on',
        log_line_prefix => '[%p] %a: ',
    });
my $forced = value($node, q{SELECT name FROM pg_settings
    WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
value($node, "ALTER SYSTEM SET $forced = 'on'");
$node->reload;
wait_until($node, "SELECT current_setting('$forced') = 'on'", 'parallel plans are forced');

my $worker = Pulse::Worker->start_registered($node, 'worker',
    tasks => Pulse::Tasks->new(first => 'true', second => 'exit 1'));
my $api = Pulse::Api->start($node, 'serve', tokens => { client => 'client' });
value($node, q{CREATE ROLE client; SELECT pulse.grant_observer('client')});
is(pulse($node, @{$_})->{status}, 0, "pulse @{$_} answers")
  for [qw(add first {})], [qw(add second {} --max-attempts 1)], ['jobs'], ['tasks'], ['doctor'];
is($api->curl(GET => '/v1/jobs/1', as => 'client')->{status}, 200, 'pulse serve answers');
$worker->wait_for('completed', task => 'first');
$worker->wait_for('failed', task => 'second');
$node->safe_psql('postgres', 'SELECT count(*) FROM pg_class');
$_->signal('TERM') for $worker, $api;
is($worker->wait_exit, 0, 'the worker ends in order');
$api->wait_exit;

my $log = slurp_file($node->logfile);
my %program_of = $log =~ /^\[(\d+)\] ([^:\n]+): /mg;
my @asked = map { $program_of{$_} // "process $_" }
  $log =~ /starting background worker process "parallel worker for PID (\d+)"/g;
ok((grep { /parallel_plans/ } @asked), 'a session of the application has its parallel plans');
is_deeply([ grep { !/parallel_plans/ } @asked ], [], 'no session of pg_pulse has');
expect_healthy($node);
done_testing();
