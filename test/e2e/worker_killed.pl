# P4, P5a: kill -9 of pulse-worker at each stage of a job. Another worker is told of it (nobody
# sweeps by the clock here) and runs the job again: the attempt counts, and the job completes once.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use Pulse::Proxy;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%PATIENT);
my $proxy = Pulse::Proxy->start($node, 'proxy');
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    linger => 'tell began; wait_at lingerers; tell ended');
value($node, "SELECT pulse.set_task('$_', backoff => 'none')") for qw(run linger);
my $workers = 0;

sub start_doomed {
    my $doomed = Pulse::Worker->start_registered(
        $node, 'doomed-' . ++$workers,
        tasks => $tasks, $proxy->address, @_);
    $doomed->wait_until_idle;
    return $doomed;
}

# Kills the worker, lets another one run its job, and looks at how that came about. `gate`: the one
# at which the job waits in its second attempt; `hurry`: the other one must not look around first.
sub expect_recovery {
    my ($doomed, $job, $gate, $hurry) = @_;
    my $rescuer = Pulse::Worker->start_registered($node, "rescuer-$workers", tasks => $tasks);
    # It looks twice whether others of this machine are gone; that is not what is tried here.
    $rescuer->wait_for('host_checked', count => 2) if !$hurry;
    my $began = time;
    is($doomed->kill, 'signal 9', 'the worker is killed');
    my $claim = $rescuer->wait_for('claimed', job => $job);
    note sprintf 'claimed again after %.0f ms, with a grace of 200 ms', (time - $began) * 1000;
    is($claim->{attempt}, 2, 'the lost attempt counts');
    $tasks->open_gate($gate) if $gate;
    $rescuer->wait_for('completed', job => $job);
    is(outcomes($node, $job), 'lost completed', 'the job completed once');
    is(finished($node, $job), 'completed|2|0', 'in two attempts');
    my $seen = $hurry ? qr/its session ended|its process \d+ is gone/ : qr/its session ended/;
    like(value($node, 'SELECT state, reason FROM pulse.worker WHERE id = ' . $doomed->id),
        qr/^lost\|(?:$seen)$/, 'the worker was lost by session end');
    $rescuer->signal('TERM');
    is($rescuer->wait_exit, 0, 'the other one drains');
}

subtest 'before it has read the reply of its claim' => sub {
    # Two heartbeats more, and the worker's ignorance would give the job back.
    my $doomed = start_doomed(options => [ '--heartbeat-interval', '10s' ]);
    $proxy->arm('hold_reply', 'pulse\.claim\(');
    my $job = add_job($node, 'run');
    $proxy->wait_for_action('hold_reply');
    is(value($node, "SELECT state FROM pulse.get_job($job)"), 'running', 'the claim is committed');
    expect_recovery($doomed, $job, undef, 1);
    is_deeply([ $doomed->events('claimed') ], [], 'the worker never knew');
    is(scalar($tasks->told('ran', job => $job)), 1, 'the task ran once');
    like($tasks->wait_for('ran', job => $job)->{recovered}, qr/^(?:session|host)$/,
        'and was told why again');
};

subtest 'while the task runs' => sub {
    my $doomed = start_doomed();
    my $job = add_job($node, 'linger');
    my $first = $tasks->wait_for('began', job => $job);
    my $process = $tasks->process($first);
    expect_recovery($doomed, $job, 'lingerers');
    ok($process->wait_gone, 'the first task is gone');
    my $second = $tasks->wait_for('ended', job => $job);
    is("$second->{attempt} $second->{recovered}", '2 session', 'the second one ended');
    cmp_ok($second->{token}, '>', $first->{token}, 'under a greater token');
};

subtest 'after the task has ended, before its completion is sent' => sub {
    my $doomed = start_doomed();
    $proxy->arm('hold_request', 'pulse\.complete_many\(');
    my $job = add_job($node, 'run');
    $proxy->wait_for_action('hold_request');
    expect_recovery($doomed, $job);
    is(scalar($tasks->told('ran', job => $job)), 2, 'the task ran twice');
};

subtest 'after its completion is committed, before it has read the reply' => sub {
    my $doomed = start_doomed();
    $proxy->arm('hold_reply', 'pulse\.complete_many\(');
    my $job = add_job($node, 'run');
    $proxy->wait_for_action('hold_reply');
    is($doomed->kill, 'signal 9', 'the worker is killed');
    my $rescuer = Pulse::Worker->start_registered($node, "rescuer-$workers", tasks => $tasks);
    wait_until($node, q{SELECT state = 'lost' FROM pulse.worker WHERE id = } . $doomed->id,
        'it is lost');
    is(outcomes($node, $job), 'completed', 'the job is done, in one attempt');
    is(scalar($tasks->told('ran', job => $job)), 1, 'and is not run again');
    $rescuer->signal('TERM');
    is($rescuer->wait_exit, 0, 'the other one drains');
};

subtest 'while it drains' => sub {
    my $doomed = start_doomed();
    my $job = add_job($node, 'linger');
    my $process = $tasks->process($tasks->wait_for('began', job => $job));
    $doomed->signal('TERM');
    $doomed->wait_for('draining');
    expect_recovery($doomed, $job, 'lingerers');
    ok($process->wait_gone, 'the first task is gone');
};

subtest 'with jobs that it had not started' => sub {
    my $doomed = start_doomed(concurrency => 3, options => [ '--heartbeat-interval', '10s' ]);
    # So that it knows that jobs are short beside a round trip, and claims ahead.
    $proxy->delay(0.05);
    $doomed->wait_for('completed', job => $_) for add_jobs($node, 'run', 20);
    my @jobs = add_jobs($node, 'linger', 9);
    my @processes =
      map { $tasks->process($tasks->wait_for('began', job => $_)) } @jobs[ 0 .. 2 ];
    wait_until($node, 'SELECT count(*) > 3 FROM pulse.held(' . $doomed->id . ')', 'it holds more');
    $proxy->delay(0);
    is($doomed->kill, 'signal 9', 'the worker is killed');
    my $rescuer =
      Pulse::Worker->start_registered($node, "rescuer-$workers", tasks => $tasks, concurrency => 9);
    ok($_->wait_gone, 'a task of it is gone') for @processes;
    $tasks->open_gate('lingerers', 9);
    $rescuer->wait_for('completed', job => $_) for @jobs;
    my $in = join ',', @jobs;
    # What is claimed ahead for too long goes back before.
    is( value($node, "SELECT count(*) >= 3, count(*) = count(DISTINCT job_id) FROM pulse.attempt
            WHERE outcome <> 'released' AND job_id IN ($in) AND worker_id = " . $doomed->id),
        't|t', 'each that it held was ended once');
    is( value($node, "SELECT max(n) FROM (SELECT count(*) AS n FROM pulse.attempt
            WHERE outcome = 'lost' AND job_id IN ($in) GROUP BY job_id) AS lost"),
        1, 'and lost once');
    is( value($node, "SELECT count(*) FROM pulse.attempt
            WHERE outcome = 'completed' AND job_id IN ($in)"), 9, 'and each completed once');
    $rescuer->signal('TERM');
    is($rescuer->wait_exit, 0, 'the other one drains');
};

expect_healthy($node);
done_testing();
