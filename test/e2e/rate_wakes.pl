# P13: a waiting worker starts the jobs of a level with a rate as its tokens come, without anybody
# polling or sweeping by the clock, and a dry level hides no other job.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use Pulse::Server;
use Pulse::SqlWorker;

my $node = start_server('main', settings => { %PATIENT, 'pulse.poll_interval' => '1h' });
# The liveness clock stands until the first sweep.
value($node, 'SELECT pulse.sweep()');
value($node, q{SELECT pulse.set_queue('mail', rate => 4, burst => 1)});
my $worker = Pulse::SqlWorker->new($node, 'ann');
add_jobs($node, 'run', 1, "mail/$_") for 1 .. 8;
my $other = add_job($node, 'run');

# The next job, for which somebody wakes the worker.
sub next_job {
    for (1 .. 2) {
        my @jobs = $worker->claim(5);
        return @jobs if @jobs;
        $worker->wait_for_job('1 hour');
    }
    return;
}

my $start = time;
# The end of a job would let its level be looked at, so some go on running.
my @running = $worker->claim(5);
is_deeply([ scalar @running, scalar grep { $_->{id} == $other } @running ], [ 2, 1 ],
    'a job of no queue runs beside a level that has one token');
push @running, map { next_job() } 2 .. 4;
is(scalar @running, 5, 'jobs start as tokens come');
my @ended = map { my @jobs = next_job(); $worker->complete(@jobs) if @jobs; @jobs } 5 .. 8;
is(scalar @ended, 4, 'also beside those that end');
$worker->complete(@running);
my $lasted = time - $start;
cmp_ok($lasted, '>=', 1.75, 'eight jobs take no less than seven tokens do');
note "$lasted s";
expect_healthy($node);
done_testing();
