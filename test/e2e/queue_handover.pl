# P8, P9: a queue goes from worker to worker, and a job is found when it falls due, without anybody
# polling or sweeping by the clock: who looks only every minute is woken in time.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => { %PATIENT, 'pulse.poll_interval' => '60s' });
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    short => 'read -r -t 0.02 <"$gates/never"; tell ran',
    never => 'wait_at never');
my @workers = map { Pulse::Worker->start_registered($node, $_, tasks => $tasks) } 'a' .. 'e';
$_->wait_until_idle for @workers;

# How long it takes until these jobs are done.
sub seconds_until_done {
    my ($start, @jobs) = @_;
    $tasks->wait_for('ran', job => $_) for @jobs;
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all is done');
    return time - $start;
}

my $start = time;
my @jobs = add_jobs($node, 'short', 8, 'q');
cmp_ok(seconds_until_done($start, @jobs), '<', 20, 'eight jobs of one queue are done one by one');
is( value($node, q{SELECT count(*) FROM pulse.finished_job AS a JOIN pulse.finished_job AS b
        ON a.id < b.id AND b.claimed_at < a.finished_at}),
    0, 'never two at once');

$start = time;
my $due = add_job($node, 'run', q{run_at => now() + interval '500 ms'});
cmp_ok(seconds_until_done($start, $due), '<', 20, 'a job is found when it falls due');
is( value($node, "SELECT claimed_at >= run_at FROM pulse.finished_job WHERE id = $due"),
    't', 'and not before');

$start = time;
@jobs = map { add_jobs($node, 'short', 1, "q$_") } 1 .. 5;
cmp_ok(seconds_until_done($start, @jobs), '<', 20, 'five queues are worked off by five workers');
value($node, q{SELECT pulse.set_queue('level', total => 1)});
$start = time;
@jobs = map { add_jobs($node, 'short', 1, "level/$_") } 1 .. 5;
cmp_ok(seconds_until_done($start, @jobs), '<', 20, 'five members of a level are done one by one');
is( value($node, q{SELECT count(*) FROM pulse.finished_job AS a JOIN pulse.finished_job AS b
        ON a.id < b.id AND b.claimed_at < a.finished_at AND a.claimed_at < b.finished_at
       AND starts_with(a.queue_name, 'level/') AND starts_with(b.queue_name, 'level/')}),
    0, 'never two at once');
is(value($node, 'SELECT count(*) FROM pulse.finished_job WHERE attempts <> 1'),
    0, 'each job took one attempt');

for (@workers) {
    $_->signal('TERM');
    is($_->wait_exit, 0, $_->name . ' leaves');
}
expect_healthy($node);
done_testing();
