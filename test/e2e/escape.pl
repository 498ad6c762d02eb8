# P5, P11: a task that ignores SIGTERM, has forked twice, left its session and keeps its descriptors
# open is gone with all that descends from it, however its worker ends: twenty at a time, again and
# again. With PULSE_LONG two hundred of each kind, and within a second.
use strict;
use warnings FATAL => 'all';

use List::Util qw(max);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils ();
use Pulse::Lines;
use Pulse::Process;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant AT_A_TIME => 20;
use constant FAMILY => 4;    # the worker, the minder, the task, and what it left behind

my ($repetitions, $threshold) = $ENV{PULSE_LONG} ? (200, '1s') : (20, '5s');

my $node = start_server('main', settings => {
    %QUICK, 'pulse.sweep_threshold' => $threshold, max_connections => 4 * AT_A_TIME + 20 });
my $tasks = Pulse::Tasks->new(stubborn => <<'SH');
trap '' TERM
export told gates
export -f tell wait_at
setsid --fork bash -c "trap '' TERM; tell daemon; wait_at never"
tell began
wait_at never
SH
my $witness = Pulse::Worker->start_registered($node, 'witness',
    tasks => Pulse::Tasks->new(unused => 'exit 1'));
my $number = 0;

# Both have told, or the job has ended before, because a busy machine let its worker fall silent.
sub wait_until_begun {
    my ($job) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    until (2 == grep { $tasks->told($_, job => $job) } qw(began daemon)) {
        return if finished($node, $job) ne '';
        die "never: job $job has begun\n" if time > $end;
        Pulse::Lines::pause();
    }
    return;
}

# Workers that run such a task each, and the families of these workers.
sub start_families {
    my @workers = map { Pulse::Worker->start($node, 'worker-' . $number++, tasks => $tasks) }
      1 .. AT_A_TIME;
    $_->wait_for('registered') for @workers;
    wait_until_begun($_)
      for split /\n/, value($node, q{SELECT (pulse.add_job('stubborn', max_attempts => 1)).id
        FROM generate_series(1, } . AT_A_TIME . ')');
    return map { { worker => $_, members => [ Pulse::Process->family($_->pid) ] } } @workers;
}

# How long it takes from the signal until nobody is left but, perhaps, the worker; in seconds.
# Families that had ended before, because a busy machine let their worker fall silent, count not.
sub seconds_until_gone {
    my ($signal) = @_;
    my @families = grep {
        @{ $_->{members} } == FAMILY && !grep { $_->is_gone } @{ $_->{members} }
    } start_families();
    my $started = time;
    $_->{worker}->signal($signal) for @families;
    my @seconds;
    for my $family (@families) {
        my ($worker, @others) = @{ $family->{members} };
        die "a survivor: process $_\n" for map { $_->pid } grep { !$_->wait_gone } @others;
        push @seconds, time - $started;
    }
    return @seconds;
}

for my $signal (qw(KILL STOP)) {
    my @seconds;
    push @seconds, seconds_until_gone($signal), end_workers() while @seconds < $repetitions;
    cmp_ok(scalar(@seconds), '>=', $repetitions, "SIG$signal: nobody survived");
    my $longest = max(@seconds);
    cmp_ok($longest, '<', 1, 'all were gone within a second') if $ENV{PULSE_LONG};
    note sprintf 'SIG%s: %d families, the last of its batch was gone after %.0f ms at most, '
      . '%.0f ms in the median', $signal, scalar(@seconds), $longest * 1000,
      (sort { $a <=> $b } @seconds)[ @seconds / 2 ] * 1000;
}

# Those that are still there, stopped ones among them.
sub end_workers {
    for my $worker (Pulse::Program->started) {
        $worker->kill if $worker->name =~ /^worker-/ && !$worker->has_ended;
    }
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are recovered');
    return;
}

is(value($node, q{SELECT count(*) FROM pulse.finished_job WHERE state <> 'failed'}),
    0, 'each job failed, in its only attempt');
$witness->signal('TERM');
is($witness->wait_exit, 0, 'the witness leaves');
expect_healthy($node);
done_testing();
