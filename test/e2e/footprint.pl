# What a worker takes of its machine and its server: idle two sessions, little memory, and a wake-up
# now and then; with work a third session, which goes when the work has gone. Where the third is
# refused, two are enough for jobs that run beside each other.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

# Of which half a megabyte more is in the libraries of Debian 13.
use constant { MAX_IDLE_KB => 13 * 1024, MAX_WAKEUPS_PER_SECOND => 1 };

my $node = start_server('main',
    settings => { 'pulse.databases' => 'postgres', 'pulse.keep_completed' => '-1' });
$node->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/);
my $tasks = Pulse::Tasks->new(quick => 'tell ran', hold => 'tell began; wait_at holders');

sub sessions {
    my ($name) = @_;
    return qq{(SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'pulse-worker $name' AND backend_type = 'client backend')};
}

# Those of its threads that wait for something, and were woken.
sub wakeups {
    my ($pid) = @_;
    my $wakeups = 0;
    for my $status (glob "/proc/$pid/task/*/status") {
        my ($count) = slurp_file($status) =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
        $wakeups += $count;
    }
    return $wakeups;
}

sub resident_kb {
    my ($pid) = @_;
    my ($kb) = slurp_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+) kB/m;
    return $kb;
}

sub wait_for_beat {
    my ($id) = @_;
    my $beat = "SELECT last_heartbeat_at FROM pulse.heartbeat WHERE worker_id = $id";
    my $last = value($node, $beat);
    wait_until($node, "SELECT ($beat) > '$last'", 'a heartbeat');
    return;
}

subtest 'idle' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'idle', tasks => $tasks, level => 'info');
    $worker->wait_until_idle;
    is(value($node, 'SELECT ' . sessions('idle')), 2, 'two sessions from the start');
    # Claims beat too, so there may be one each half interval. Between these the worker looks for
    # earlier ones of its machine for the second time.
    wait_for_beat($worker->id) for 1 .. 4;
    my ($from, $before) = (time, wakeups($worker->pid));
    wait_for_beat($worker->id) for 1 .. 4;
    my $per_second = (wakeups($worker->pid) - $before) / (time - $from);
    cmp_ok($per_second, '<=', MAX_WAKEUPS_PER_SECOND, 'wake-ups a second');
    cmp_ok(resident_kb($worker->pid), '<=', MAX_IDLE_KB, 'kB of memory');
    is(value($node, 'SELECT ' . sessions('idle')), 2, 'two sessions');
    note sprintf '%.2f wake-ups a second, %d kB', $per_second, resident_kb($worker->pid);

    my $job = add_job($node, 'hold');
    $tasks->wait_for('began', job => $job);
    wait_until($node, 'SELECT ' . sessions('idle') . ' = 3', 'with work it has three');
    $tasks->open_gate('holders');
    $worker->wait_for('completed', job => $job);
    wait_until($node, 'SELECT ' . sessions('idle') . ' = 2', 'and without work two again');
    my $stopped = time;
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'it stops');
    note sprintf 'within %.0f ms', 1000 * (time - $stopped);
};

subtest 'two sessions for all' => sub {
    value($node, q{CREATE ROLE few LOGIN CONNECTION LIMIT 2; SELECT pulse.grant_worker('few')});
    local $ENV{PGUSER} = 'few';
    my $worker = Pulse::Worker->start($node, 'few', tasks => $tasks, concurrency => 2);
    delete $ENV{PGUSER};
    $worker->wait_for('registered');
    my $hold = add_job($node, 'hold');
    $tasks->wait_for('began', job => $hold);
    my $refused = $worker->wait_for('reconnecting', connection => 'finish');
    like($refused->{reason}, qr/too many connections for role "few"/, 'the third is refused');
    for (1 .. 5) {
        my $quick = add_job($node, 'quick');
        $worker->wait_for('completed', job => $quick);
        is(finished($node, $quick), 'completed|1|0', 'a job completes beside one that runs on');
    }
    is(value($node, 'SELECT ' . sessions('few')), 2, 'over two sessions');
    my $from = $worker->lines->position;
    value($node, 'ALTER ROLE few CONNECTION LIMIT -1');
    $worker->wait_for('connected', connection => 'finish', from => $from);
    pass('it takes the third when it is to be had');
    $tasks->open_gate('holders');
    $worker->wait_for('completed', job => $hold);
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'it stops');
};

expect_healthy($node);
done_testing();
