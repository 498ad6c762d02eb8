# P6: tasks that keep every processor busy for three times the threshold cost their worker nothing:
# it goes on beating beside them.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => {%QUICK});
my $tasks = Pulse::Tasks->new(
    spin => 'tell began; until read -r -t 0 <"$gates/spinners"; do :; done; wait_at spinners');
my $processors = () = glob '/sys/devices/system/cpu/cpu[0-9]*';
my $worker =
  Pulse::Worker->start_registered($node, 'busy', tasks => $tasks, concurrency => $processors);
my @jobs = map { add_job($node, 'spin') } 1 .. $processors;
$tasks->wait_for('began', job => $_) for @jobs;

my $begun = value($node, 'SELECT extract(epoch FROM clock_timestamp())');
my $from = $worker->lines->position;
# Beats come every 200 ms, and the threshold is 2 s.
$worker->wait_for('heartbeat', status => 'alive', from => $from, count => 36);
my $spun = value($node, "SELECT extract(epoch FROM clock_timestamp()) - $begun");
cmp_ok($spun, '>', 6, 'given tasks that spin for more than three times the threshold');
is(value($node, 'SELECT workers_lost FROM pulse.sweep()'), 0, 'their worker is not lost');
is(value($node, 'SELECT state FROM pulse.worker'), 'alive', 'but alive');
$tasks->open_gate('spinners', scalar @jobs);
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all is done');
is(finished($node, $_), 'completed|1|0', 'a job completed in its only attempt') for @jobs;

$worker->signal('TERM');
is($worker->wait_exit, 0, 'the worker leaves');
expect_healthy($node);
done_testing();
