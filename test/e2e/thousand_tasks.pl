# P6: on a busy machine a worker with hundreds of slots starts as many jobs that are ready at once.
# Meanwhile no heartbeat of it is too late, its page says that it is alive, and no minder ends a
# task. `make scale-thousand_tasks` has a thousand; where a process costs much to start, these few
# hundred take a minute of a processor.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use Test::More;

use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $slots = $ENV{PULSE_TASKS} // 200;
# They end with the test, at the latest after some minutes.
chomp(my $processors = `nproc`);
my @spinners;

sub spinner {
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    alarm 300;
    1 while 1;
    exit 1;
}
my $node = start_server('main', settings => {
    %QUICK,
    'pulse.heartbeat_interval' => '500ms',
    'pulse.sweep_threshold' => '3s',
});
my $tasks = Pulse::Tasks->new(wait => 'tell began; wait_at everyone');
my $worker = Pulse::Worker->start_registered($node, 'wide', tasks => $tasks,
    concurrency => $slots, options => [ '--http', '127.0.0.1:0' ]);
my $page = 'http://' . $worker->wait_for('serving')->{http} . '/livez';
my $http = HTTP::Tiny->new(timeout => 60);

@spinners = map { spinner() } 1 .. 4 * $processors;
my @jobs = add_jobs($node, 'wait', $slots);
my %answers;
for my $begun (map { $_ * 50 } 1 .. $slots / 50) {
    $tasks->wait_for('began', count => $begun);
    $answers{ $http->get($page)->{status} }++;
}
is_deeply([ keys %answers ], [200], 'the worker says that it is alive while it starts them');
is(value($node, q{SELECT count(*) FROM pulse.job WHERE state = 'running'}),
    $slots, 'all run at once');
is(value($node, 'SELECT workers_lost FROM pulse.sweep()'), 0, 'their worker is not lost');

kill KILL => splice @spinners;
$tasks->open_gate('everyone', $slots);
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all are done');
is(value($node, q{SELECT string_agg(DISTINCT format('%s %s', state, attempts), ', ')
    FROM pulse.finished_job}), 'completed 1', 'each completed in its only attempt');
is(value($node, 'SELECT status FROM pulse.worker_status'), 'alive', 'and the worker lives');

$worker->signal('TERM');
is($worker->wait_exit, 0, 'it leaves in order');
expect_healthy($node);
done_testing();

END { local $?; kill KILL => @spinners }
