# P5d: a task that hangs in a living worker is found by the job's own clocks: by stall_timeout since
# its last progress, by timeout since the claim. The worker ends it, whatever it heeds and whether
# or not anybody sweeps, and no job of its queue starts before it is dead. The server finds it where
# no worker does.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '20s' });
my $hang = '[[ $PULSE_ATTEMPT == 1 ]] || exit 0; tell began; while :; do wait_at never; done';
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    serial => 'if [[ $PULSE_ATTEMPT == 1 && ! -e $gates/first ]]; then echo $$ >"$gates/first"
            trap "" TERM; tell began; while :; do wait_at never; done; fi
        if kill -0 "$(<"$gates/first")"; then tell beside; else tell alone; fi',
    (map { ($_ => "trap '' TERM; $hang") } qw(stubborn_stall stubborn_timeout)),
    (map { ($_ => $hang) } qw(stall timeout control)),
    changed => '[[ $PULSE_ATTEMPT == 1 ]] || exit 0; tell began; wait_at changed',
    progress => <<'SH');
for step in {1..9}; do
    read -r -t 0.8 _ <"$gates/none"
    echo "{\"progress\": 0.$step}" >&"$PULSE_FD"
done
: wait_at none
SH
value($node, "SELECT pulse.set_task('$_', stall_timeout => '2 s', backoff => 'none')")
  for qw(stubborn_stall stall);
# Reports travel at most once a second; the task takes seven.
value($node, q{SELECT pulse.set_task('progress', stall_timeout => '6 s', backoff => 'none')});
value($node, "SELECT pulse.set_task('$_', timeout => '2 s', backoff => 'none')")
  for qw(stubborn_timeout timeout serial);

# The first attempt hangs and the second does not; returns the outcome and error of the first.
sub run_hanging {
    my ($worker, $task) = @_;
    my $id = add_job($node, $task);
    my $first = $tasks->process($tasks->wait_for('began', job => $id));
    $worker->wait_for('completed', job => $id);
    ok($first->wait_gone, "$task: the process that hung is gone");
    # A slow machine may need two seconds to start and end a process.
    like(finished($node, $id), qr/^completed\|[2-9]\|0$/, "$task: the job completed after that");
    return split /\|/, value($node, "SELECT outcome, error FROM pulse.attempt
        WHERE job_id = $id ORDER BY token LIMIT 1");
}

subtest 'a task that does not heed its worker is killed, and sweeps wait for that' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'sweeping', tasks => $tasks);
    my ($outcome, $error) = run_hanging($worker, 'stubborn_stall');
    is($outcome, 'stalled', 'by stall_timeout');
    like($error, qr/^no progress for 2 ?s/, 'as its worker says');
    ($outcome, $error) = run_hanging($worker, 'stubborn_timeout');
    is($outcome, 'timed_out', 'by timeout');
    like($error, qr/^timed out after 2 ?s/, 'as its worker says');
    is_deeply([ $worker->events('lost') ], [], 'the worker lives on');
    my $id = add_job($node, 'run');
    $worker->wait_for('completed', job => $id);
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'and drains');
};

subtest 'the next job of its queue starts when it is dead' => sub {
    my @workers =
      map { Pulse::Worker->start_registered($node, $_, tasks => $tasks) } qw(one another);
    my ($first, $second) = add_jobs($node, 'serial', 2, 'serial');
    $tasks->wait_for('began', job => $first);
    wait_until($node, "SELECT count(*) = 0 FROM pulse.job WHERE id IN ($first, $second)",
        'both jobs are done');
    is_deeply([ $tasks->told('beside') ], [], 'nothing runs beside it');
    is(scalar(my @alone = $tasks->told('alone')), 2, 'but after it');
    for (@workers) { $_->signal('TERM'); is($_->wait_exit, 0, 'the worker drains') }
};

subtest 'a task that reports progress does not stall' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'patient', tasks => $tasks);
    my $id = add_job($node, 'progress');
    $worker->wait_for('completed', job => $id);
    is(finished($node, $id), 'completed|1|0', 'though it takes longer than stall_timeout');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

subtest 'a timeout that is changed counts for a job that runs' => sub {
    value($node, "SELECT pulse.set_task('$_', timeout => '4 s', backoff => 'none')")
      for qw(changed control);
    my $worker =
      Pulse::Worker->start_registered($node, 'hearing', tasks => $tasks, concurrency => 2);
    my ($raised, $control) = map { add_job($node, $_) } qw(changed control);
    $tasks->wait_for('began', job => $_) for $raised, $control;
    value($node, q{SELECT pulse.set_task('changed', timeout => '1 hour')});
    $worker->wait_for('failed', job => $control);
    $tasks->open_gate('changed');
    $worker->wait_for('completed', job => $raised);
    is(finished($node, $raised), 'completed|1|0', 'a raised one: it outlives the old one');
    my $lowered = add_job($node, 'changed');
    $tasks->wait_for('began', job => $lowered);
    value($node, q{SELECT pulse.set_task('changed', timeout => '2 s')});
    is($worker->wait_for('failed', job => $lowered)->{reason}, 'timed out after 2s',
        'a lowered one: its worker ends it');
    $worker->wait_for('completed', job => $lowered);
    is(outcomes($node, $lowered), 'timed_out completed', 'as it ends any other');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

subtest 'found by sweeps: a job of a worker that speaks SQL' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'sql');
    my $id = add_job($node, 'timeout');
    my $claim = $worker->must_claim;
    wait_until($node, q{SELECT jobs_timed_out = 1 FROM pulse.sweep()}, 'it is found');
    is($worker->beat, 'alive', 'the worker is alive');
    is($worker->refusal("SELECT pulse.complete($id, $claim->{token})"), 'PU001',
        'its claim is lost');
    my $again = $worker->must_claim;
    is($again->{recovered}, 'timeout', 'and it may claim the job again');
    $worker->complete($again);
    $worker->quit;
};

subtest 'found by the worker, where nobody sweeps' => sub {
    set($node, 'pulse.sweep_interval' => '-1');
    my $worker = Pulse::Worker->start_registered($node, 'alone', tasks => $tasks);
    my ($outcome, $error) = run_hanging($worker, 'stall');
    is($outcome, 'stalled', 'by stall_timeout, as a sweep would');
    like($error, qr/^no progress for 2 ?s/, 'and says so');
    ($outcome, $error) = run_hanging($worker, 'timeout');
    is($outcome, 'timed_out', 'by timeout');
    like($error, qr/^timed out after 2 ?s/, 'and says so');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

expect_healthy($node);
done_testing();
