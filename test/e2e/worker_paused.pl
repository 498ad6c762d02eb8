# P4: SIGSTOP of pulse-worker, shorter than what makes it look dead. A task that asks to be killed
# ends while its claim is certainly its worker's, any other at the threshold; neither end is blamed
# on the task, whatever runs it. What is shorter ends nothing.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

use constant DRAINED => 0;

# Nobody sweeps, so nobody is lost, however long a pause lasts on this machine. Tasks with kill end
# after 8.75 s of silence, all others after 16.
my $node = start_server('main',
    settings => { %QUICK, 'pulse.sweep_interval' => '-1', 'pulse.sweep_threshold' => '16s' });
my $polite = q{trap 'tell terminated; exit 0' TERM; tell began; wait_at gate; tell ended};
my $tasks = Pulse::Tasks->new(
    killed => $polite,
    kept => $polite,
    process => <<'SH');
PULSE_TASK=process PULSE_JOB_ID=- PULSE_TOKEN=- PULSE_ATTEMPT=- PULSE_RECOVERED=-
echo '{"takes": 1}'
while read -r line; do tell got; done
SH
rename $tasks->folder . '/process', $tasks->folder . '/../process' or die "rename: $!";
$node->safe_psql('postgres', <<'SQL');
CREATE SCHEMA app;
CREATE FUNCTION app.wait(payload json) RETURNS void LANGUAGE sql AS
  $$ SELECT pg_advisory_xact_lock_shared(1) $$;
SELECT pulse.set_task('killed', on_unreachable => 'kill');
SELECT pulse.set_task('process', on_unreachable => 'kill');
SELECT pulse.set_task('killed_function', on_unreachable => 'kill', handler => 'app.wait(json)');
SELECT pulse.set_task('kept_function', handler => 'app.wait(json)');
SQL
my $keeper = Pulse::Session->new($node);
my $worker = Pulse::Worker->start_registered($node, 'paused', tasks => $tasks, concurrency => 8,
    options => [ '--process', 'process=' . $tasks->folder . '/../process' ]);

sub cause_of {
    my ($id) = @_;
    return value($node,
        "SELECT error FROM pulse.attempt WHERE job_id = $id ORDER BY token LIMIT 1");
}

sub wait_for_functions {
    my ($count) = @_;
    wait_until($node, qq{SELECT count(*) = $count FROM pg_stat_activity
        WHERE query ~ 'perform_job' AND wait_event = 'advisory'}, 'the functions run');
    return;
}

subtest 'until the limit of tasks that ask to be killed' => sub {
    $keeper->query('SELECT pg_advisory_lock(1)');
    my @kinds = qw(killed process killed_function);
    my %job = map { ($_ => add_job($node, $_)) } @kinds, 'kept', 'kept_function';
    my $last = add_job($node, 'killed', q{max_attempts => 1});
    $tasks->wait_for('began', job => $_) for $job{killed}, $job{kept}, $last;
    $tasks->wait_for('got');
    wait_for_functions(2);

    $worker->signal('STOP');
    $tasks->wait_for('terminated', job => $_) for $job{killed}, $last;
    # The worker itself ends functions, if it has been silent for as long when it goes on.
    wait_until($node, q{SELECT clock_timestamp() - max(last_heartbeat_at) > interval '9.5 s'
        FROM pulse.heartbeat}, 'the worker is silent beyond the limit');
    $worker->signal('CONT');

    for my $task (@kinds) {
        $worker->wait_for('interrupted', job => $job{$task});
        wait_until($node, "SELECT count(*) = 1 FROM pulse.attempt WHERE job_id = $job{$task}
            AND outcome = 'interrupted'", "the attempt of $task is interrupted");
        $worker->wait_for('claimed', job => $job{$task}, attempt => 2);
    }
    like(cause_of($job{$_}), qr/^ended because its worker stood still/, "$_: and says why")
      for qw(killed process);
    like(cause_of($job{killed_function}),
        qr/^terminated because the database/, 'so does a function');
    is($tasks->wait_for('began', job => $job{killed}, attempt => 2)->{recovered},
        'silence', 'the next attempt is told, and waits for no backoff');
    is(finished($node, $last), 'failed|1|0', 'on its last attempt the job has failed');
    like(value($node, "SELECT last_error FROM pulse.finished_job WHERE id = $last"),
        qr/worker stood still/, 'with that cause');

    $keeper->query('SELECT pg_advisory_unlock(1)');
    $tasks->open_gate('gate', 2);
    $worker->wait_for('completed', job => $job{$_})
      for qw(killed kept kept_function killed_function);
    is(finished($node, $job{$_}), 'completed|1|0', "$_ has gone on")
      for qw(kept kept_function);
    is(finished($node, $job{killed}), 'completed|2|0', 'no crash is counted');
    value($node, "SELECT count(*) FROM pulse.cancel_job($job{process}) AS c");
    $worker->wait_for('cancelled', job => $job{process});
};

subtest 'until the threshold' => sub {
    my $kept = add_job($node, 'kept');
    my $last = add_job($node, 'kept', q{max_attempts => 1});
    $tasks->wait_for('began', job => $_) for $kept, $last;
    $worker->signal('STOP');
    $tasks->wait_for('terminated', job => $_) for $kept, $last;
    $worker->signal('CONT');
    $worker->wait_for('interrupted', job => $_) for $kept, $last;
    is(finished($node, $last), 'failed|1|0', 'on its last attempt the job has failed');
    like(cause_of($_), qr/^ended because its worker stood still/, 'the cause is said')
      for $kept, $last;
    $tasks->wait_for('began', job => $kept, attempt => 2);
    $tasks->open_gate('gate');
    $worker->wait_for('completed', job => $kept);
    is(finished($node, $kept), 'completed|2|0', 'the other one runs again');
};

is_deeply([ $worker->events('lost') ], [], 'it was never lost');
$worker->signal('TERM');
is($worker->wait_exit, DRAINED, 'it drains');
$keeper->quit;
expect_healthy($node);
done_testing();
