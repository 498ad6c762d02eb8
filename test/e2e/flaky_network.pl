# P5a, P5c, P6, P7: the network between a living worker and its server delays, stalls in either
# direction, is cut on both sides or on one, and holds requests and replies, at every stage of a
# job. No attempt of a task with on_unreachable kill runs beside its successor, no crash stays
# counted for a process that lived, and the worker is back at work after the network's return; how
# soon is told at the end. With PULSE_LONG in random order for PULSE_MINUTES; PULSE_SEED repeats an
# order.
use strict;
use warnings FATAL => 'all';

use List::Util qw(max);
use Test::More;
use Time::HiRes qw(time);

use Pulse::Proxy;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my @back_after;    # seconds from the network's return to the next job
my $node = start_server('main',
    settings => {
        %QUICK,
        'pulse.heartbeat_interval' => '400ms',
        'pulse.sweep_interval' => '400ms',
        'pulse.sweep_threshold' => '4s',
        'pulse.disconnect_grace' => '500ms',
        'pulse.max_crashes' => '3' });
value($node, qq{SELECT pulse.set_task('$_', on_unreachable => 'kill', backoff => 'none',
    max_attempts => 1000)}) for qw(single guarded);

# It ticks, so that its last moment is known however it ends, and heeds no SIGTERM.
my $single = <<'SH';
trap '' TERM
for _ in {1..40}; do tell tick; read -r -t 0.05 _ <"$gates/none"; done
: wait_at none
SH
# It runs until it is let through.
my $guarded = <<'SH';
trap '' TERM
until read -r -t 0.05 _ <"$gates/way"; do tell tick; done
: wait_at way
SH
my %both = (single => $single, guarded => $guarded, going_on => $guarded);
my $tasks = Pulse::Tasks->new(%both, beacon => 'tell lit');
my $others_tasks = Pulse::Tasks->new(%both, others_beacon => 'tell lit');
my $proxy = Pulse::Proxy->start($node, 'network');
my $worker = Pulse::Worker->start_registered($node, 'flaky',
    tasks => $tasks, concurrency => 2, $proxy->address);
my $guarded_job = add_job($node, 'guarded');
my $going_on = add_job($node, 'going_on');
$tasks->wait_for('tick', job => $_) for $guarded_job, $going_on;
# It takes over what the first one loses, and has a free slot at any time.
my $other = Pulse::Worker->start_registered($node, 'steady',
    tasks => $others_tasks, concurrency => 6);

sub wait_until_now_and {
    my ($time) = @_;
    my $now = value($node, 'SELECT clock_timestamp()');
    wait_until($node, "SELECT clock_timestamp() > '$now'::timestamptz + interval '$time'", $time);
    return;
}

# The stages at which the network breaks: how to get there.
my %stage = (
    idle => sub { },
    running => sub {
        my $flaky_runs = q{SELECT EXISTS (SELECT FROM pulse.running_jobs AS r
            WHERE r.worker = 'flaky' AND r.identifier = 'single')};
        # The other one has more slots, which it fills first if it is the quicker one.
        while (value($node, $flaky_runs) ne 't') {
            add_job($node, 'single');
            wait_until($node, q{SELECT NOT EXISTS (SELECT FROM pulse.job AS j
                WHERE j.identifier = 'single' AND j.state = 'ready')}, 'a worker takes it');
        }
    },
    map {
        my ($name, $action, $statement) = @$_;
        ($name => sub {
            $proxy->arm($action, $statement);
            add_job($node, 'beacon');
            $proxy->wait_for_action($action);
        })
    } (
        [ claim_request => 'hold_request', 'pulse\.claim\(' ],
        [ claim_reply => 'hold_reply', 'pulse\.claim\(' ],
        [ end_request => 'hold_request', 'pulse\.complete_many\(' ],
        [ end_reply => 'hold_reply', 'pulse\.complete_many\(' ],
        [ beat_reply => 'hold_reply', 'pulse\.heartbeat\(' ],
    ));

# How long the network is away: beyond the grace, beyond the threshold, and shorter than both.
my %away = (
    for_a_moment => sub { wait_until_now_and('200 ms') },
    for_a_grace => sub { wait_until_now_and('2 s') },
    for_a_threshold => sub { wait_until_now_and('5 s') },
);

sub spoil {
    my ($state, $stage, $away) = @_;
    my $beacons = my @lit = $tasks->told('lit');
    add_jobs($node, 'single', 3);
    $stage{$stage}->();
    $proxy->network($state) if $state ne 'open';
    $away{$away}->();
    my $returned = time;
    $proxy->network('open');
    $proxy->release;
    my $beacon = add_job($node, 'beacon');
    my $lit = $tasks->wait_for('lit', job => $beacon);
    push @back_after, $lit->{at} - $returned;
    note sprintf '%s %s at %s: back at work after %.1f s', $state, $away, $stage, $back_after[-1];
    return;
}

# The server has seen the session end and the grace pass, and the tasks live.
sub lose_beside_a_living_task {
    $proxy->network('cut_server');
    wait_until($node, q{SELECT state = 'lost' FROM pulse.worker WHERE name = 'flaky'},
        'the worker is lost');
    value($node, 'SELECT pulse.sweep()');
    $others_tasks->wait_for('tick', job => $going_on);
    # Behind whatever the sweep made ready.
    $others_tasks->wait_for('lit', job => add_job($node, 'others_beacon'));
    # Until its silence counts, which it may do here where the machine is slow.
    is( value($node, "SELECT j.worker_id = h.worker_id
               OR pulse_internal.is_silent(h, pulse_internal.live_now_us())
            FROM pulse.job AS j, pulse.heartbeat AS h
            WHERE j.id = $guarded_job AND h.worker_id = " . $worker->id),
        't', 'a job whose task may live is not started anew when its grace is over');
    is(value($node, "SELECT crashes FROM pulse.job WHERE id = $going_on"),
        1, 'the loss of its worker counts as a crash');
    $proxy->network('open');
    wait_until($node, "SELECT crashes = 0 FROM pulse.job WHERE id = $going_on",
        'no crash is counted for a worker that returns');
    $_->open_gate('way', 10) for $tasks, $others_tasks;
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'both run to their ends');
    return;
}

# An attempt that still ran when its successor had begun; each has a job's ticks of one token.
sub overlaps {
    my %interval;    # of the jobs that may run once at a time
    for my $tick ($tasks->told('tick'), $others_tasks->told('tick')) {
        next if $tick->{task} eq 'going_on';
        my $known = $interval{ $tick->{job} }{ $tick->{token} } //= [ $tick->{at}, $tick->{at} ];
        $known->[0] = $tick->{at} if $tick->{at} < $known->[0];
        $known->[1] = $tick->{at} if $tick->{at} > $known->[1];
    }
    my @found;
    for my $job (sort keys %interval) {
        my @tokens = sort { $a <=> $b } keys %{ $interval{$job} };
        for my $i (1 .. $#tokens) {
            my ($before, $after) = map { $interval{$job}{$_} } @tokens[ $i - 1, $i ];
            push @found, sprintf 'job %s: attempt %d ran %.2f s beside the next', $job, $i,
              $before->[1] - $after->[0]
              if $before->[1] >= $after->[0];
        }
    }
    return @found;
}

my @stages = sort keys %stage;
my @away = sort keys %away;
lose_beside_a_living_task();
my @states = qw(stalled stalled_up stalled_down cut cut_server cut_client);
if ($ENV{PULSE_LONG}) {
    my $seed = $ENV{PULSE_SEED} // int rand 2**31;
    note "PULSE_SEED=$seed";
    srand $seed;
    my $end = time + 60 * ($ENV{PULSE_MINUTES} // 15);
    while (time < $end) {
        $proxy->delay(rand() < 0.3 ? sprintf '%.2f', rand 0.1 : 0);
        spoil($states[ rand @states ], $stages[ rand @stages ], $away[ rand @away ]);
    }
    $proxy->delay(0);
} else {
    spoil('cut_server', 'running', 'for_a_grace');
    spoil('stalled', 'running', 'for_a_threshold');
    spoil('cut', 'end_request', 'for_a_grace');
    spoil('stalled_up', 'claim_reply', 'for_a_moment');
    spoil('stalled_down', 'idle', 'for_a_grace');
    spoil('cut_client', 'beat_reply', 'for_a_moment');
    $proxy->delay(0.05);
    spoil('open', 'running', 'for_a_moment');
    $proxy->delay(0);
}

diag sprintf 'back at work after at most %.1f s, %d times', max(@back_after), scalar @back_after;
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are done');
wait_until($node, q{SELECT count(*) = 0 FROM pulse.attempt WHERE outcome = 'lost'},
    'no attempt counts as lost');
is_deeply([ overlaps() ], [], 'no attempt ran beside its successor');
is( value($node, q{SELECT state, count(*) FROM pulse.finished_job
        WHERE state <> 'completed' OR crashes > 0 GROUP BY 1}),
    '', 'all jobs completed, and no crash is counted for a process that lived');
note 'attempts: ' . value($node, q{SELECT string_agg(o, ', ') FROM (
    SELECT outcome || ' ' || count(*) AS o FROM pulse.attempt GROUP BY outcome) AS a});
for ($worker, $other) {
    $_->signal('TERM');
    is($_->wait_exit, 0, $_->name . ' drains');
}

expect_healthy($node);
done_testing();
