# P12: a crash of the server loses the moment at which the next schedule is due. The first session
# that waits afterwards is asked to sweep, and from then on is woken at each due time.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;

my $node = start_server('main', settings => { %PATIENT, 'pulse.poll_interval' => '1h' });
value($node, q{SELECT pulse.schedule('often', 'work', every => '2 s')});
kill_server($node);
$node->start;

my $worker = Pulse::SqlWorker->new($node, 'worker');
$worker->wait_for_job('1 hour');
ok($worker->was_asked_to_sweep, 'a waiting worker is asked to sweep at once');
$worker->query('SELECT pulse.sweep()');
for (1 .. 2) {
    my $job = $worker->wait_for_claim;
    is(value($node, "SELECT identifier FROM pulse.job WHERE id = $job->{id}"),
        'work', 'a due time wakes it');
    $worker->complete($job);
}

expect_healthy($node);
done_testing();
