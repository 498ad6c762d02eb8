# explain_job estimates the start of jobs on a steady load; the claims that follow show the error,
# which is told, not judged. PULSE_JOBS says how many jobs (400).
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $jobs = $ENV{PULSE_JOBS} // 400;
my $node = start_server('main', settings => \%PATIENT);
value($node, q{SELECT pulse.set_task('steady', keep_completed => '1 day')});
my $tasks = Pulse::Tasks->new(steady => 'for ((i = 0; i < 5000; i++)); do :; done');
my $worker = Pulse::Worker->start_registered($node, 'steady', tasks => $tasks, concurrency => 2);
add_jobs($node, 'steady', $jobs);
wait_until($node, "SELECT count(*) >= $jobs / 4 FROM pulse.finished_job", 'a quarter is done');
value($node, q{CREATE TABLE estimate AS
    SELECT j.id, e.until AS starts_at, now() AS told_at
      FROM pulse.job AS j CROSS JOIN LATERAL pulse.explain_job(j.id) AS e
     WHERE j.state = 'ready' AND e.blocker = 'place' AND j.id % 10 = 0});
wait_until($node, "SELECT count(*) = $jobs FROM pulse.finished_job", 'all are done');
my ($count, $error) = split /\|/, value($node, q{
    SELECT count(*), round((100 * percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(
             extract(epoch FROM starts_at - claimed_at) / extract(epoch FROM claimed_at - told_at)
           )))::numeric, 1)
      FROM estimate JOIN pulse.finished_job USING (id) WHERE claimed_at > told_at});
cmp_ok($count, '>', $jobs / 20, "$count starts were estimated");
note "the median error is $error % of the time to the start";
$worker->signal('TERM');
$worker->wait_exit;
expect_healthy($node);
done_testing();
