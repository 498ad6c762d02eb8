# P7: what a worker holds and has not begun costs no job its only attempt when the worker is killed:
# neither what a process may take at once, nor what a thread of a C++ program may take in a batch.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Handlers;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { JOBS => 30, PASSED => 3 };

my $program = Pulse::Handlers::build('test/e2e/handlers') . '/pulse-handlers';
my $node = start_server('main', settings => { %QUICK, 'pulse.keep_completed' => '-1' });

# One job after the other, though it takes ten at once.
my $tasks = Pulse::Tasks->new(linger => <<'SH');
echo '{"takes":10}'
while read -r line; do
    [[ $line =~ '"job":{"id":'([0-9]+)',"token":'([0-9]+) ]] || exit
    PULSE_JOB_ID=${BASH_REMATCH[1]} PULSE_TOKEN=${BASH_REMATCH[2]} PULSE_ATTEMPT=1
    tell began
    wait_at lingerers
    echo "{\"id\":$PULSE_JOB_ID,\"result\":1}"
done
SH

for my $case (
    [ 'a process' => sub {
        return Pulse::Worker->start_registered($node, 'process',
            options => [ '--process', 'linger=' . $tasks->folder . '/linger' ]);
    } ],
    [ 'threads' => sub {
        return Pulse::Worker->start_registered($node, 'threads', program => $program,
            tasks => $tasks, options => ['--batch']);
    } ])
{
    my ($name, $start) = @$case;
    subtest $name => sub {
        value($node, q{SELECT pulse.set_task('linger', backoff => 'none', max_attempts => 1)});
        my $before = $tasks->told('began');
        my $worker = $start->();
        my $ids = join ',', add_jobs($node, 'linger', JOBS);
        $tasks->wait_for('began', count => $before + 1);
        $tasks->open_gate('lingerers', PASSED);
        $tasks->wait_for('began', count => $before + PASSED + 1);
        # The next job begins before the worker has told the server of the end of the last one.
        wait_until($node, 'SELECT count(*) = ' . PASSED . " FROM pulse.finished_job
            WHERE id IN ($ids)", 'those that passed have completed');
        is($worker->kill, 'signal 9', 'the worker is killed');
        wait_until($node, q{SELECT EXISTS (SELECT FROM pulse.sweep())
            AND NOT EXISTS (SELECT FROM pulse.job WHERE state = 'running')},
            'its jobs are recovered');
        is(value($node, "SELECT state, count(*) FROM pulse.finished_job WHERE id IN ($ids)
            GROUP BY 1 ORDER BY 1"), 'completed|' . PASSED . "\nfailed|1",
            'the job that had begun has failed');
        is(value($node, "SELECT count(*) FROM pulse.job WHERE id IN ($ids) AND attempts = 0"),
            JOBS - PASSED - 1, 'no other job has lost its attempt');
        value($node, "SELECT count(pulse.cancel_job(id)) FROM pulse.job WHERE id IN ($ids)");
    };
}

expect_healthy($node);
done_testing();
