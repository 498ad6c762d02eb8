# P5d: a hundred tasks that report twice a second over a network of 160 ms a round trip. With a
# report a round trip, a job's turn would come every 16 s. None is taken for hung. The limit leaves
# a busy machine time to run each task.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Proxy;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { REPORTERS => 100, ONE_WAY => 0.08 };

my $node = start_server('main', settings => {
    %QUICK, 'pulse.heartbeat_interval' => '2s', 'pulse.sweep_threshold' => '120s' });
value($node, q{SELECT pulse.set_task('report', max_attempts => 1, stall_timeout => '14s')});
my $tasks = Pulse::Tasks->new(report => <<'SH');
for i in {10..69}; do
    echo "{\"progress\": 0.$i}" >&3
    read -r -t 0.5 _ <"$gates/none"
done
: wait_at none
SH
my $proxy = Pulse::Proxy->start($node, 'network');
my $worker = Pulse::Worker->start_registered($node, 'far', tasks => $tasks,
    concurrency => REPORTERS, level => 'info', $proxy->address);
$proxy->delay(ONE_WAY);
add_jobs($node, 'report', REPORTERS);
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all have ended');
$proxy->delay(0);

is( value($node, q{SELECT string_agg(DISTINCT state || ' ' || attempts, ', ')
        FROM pulse.finished_job}), 'completed 1', 'each job completed in its only attempt');
is( value($node, q{SELECT count(*) FROM pulse.finished_job
        WHERE finished_at - claimed_at > interval '28 s'}), REPORTERS,
    'which lasted longer than two silences that end one');
is(scalar($worker->events('progress_refused')), 0, 'no report of them is refused');
$worker->signal('TERM');
is($worker->wait_exit, 0, 'the worker leaves in order');
expect_healthy($node);
done_testing();
