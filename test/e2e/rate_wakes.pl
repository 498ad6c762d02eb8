# P13: a waiting worker starts the jobs of a level with a rate as its tokens come, without anybody
# polling or sweeping by the clock, and a dry level hides no other job.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use Pulse::Server;
use Pulse::SqlWorker;

my $node = start_server('main', settings => { %PATIENT, 'pulse.poll_interval' => '60s' });
# The liveness clock stands until the first sweep.
value($node, 'SELECT pulse.sweep()');
value($node, q{SELECT pulse.set_queue('mail', rate => 4, burst => 1)});
my $worker = Pulse::SqlWorker->new($node, 'ann');
$worker->complete($worker->must_claim) for add_jobs($node, 'run', 1, 'mail/0');
add_jobs($node, 'run', 1, "mail/$_") for 1 .. 8;
my $other = add_job($node, 'run');

my $start = time;
is($worker->wait_for_claim->{id}, $other, 'a job of no queue runs beside a dry level');
$worker->complete($worker->wait_for_claim) for 1 .. 8;
my $lasted = time - $start;
cmp_ok($lasted, '>=', 1.75, 'eight jobs take no less than seven tokens do');
cmp_ok($lasted, '<', 20, 'and the worker waits for no poll and no sweep');
note "$lasted s";
expect_healthy($node);
done_testing();
