# What a worker holds is bounded by bytes: payloads of 20 MB, eight slots and jobs held ahead exceed
# --max-held-bytes by one job at most. What was freed goes back to the system.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant DRAINED => 0;
use constant MB => 1024;    # in kB, as the kernel counts

my $payload = 20;    # MB
my $bound = 64;
# The job beyond the bound, one that arrives, in a buffer of twice its size, and a worker alone.
my $most = $bound + 4 * $payload + 16;

my $node = start_server('main', settings => \%PATIENT);
my $tasks = Pulse::Tasks->new(quick => 'exit 0', swallow => <<'SH');
exec <&-
tell began
wait_at mouth
SH

sub memory_of {
    my ($worker, $field) = @_;
    my ($kb) = slurp_file('/proc/' . $worker->pid . '/status') =~ /^$field:\s+(\d+) kB/m;
    return $kb / MB;
}

sub add_large {
    my ($count, $megabytes) = @_;
    return value($node, qq{SELECT count(pulse.add_job('swallow',
        json_build_object('x', repeat('x', $megabytes * 1024 * 1024))))
        FROM generate_series(1, $count)});
}

sub all_end {
    my ($what) = @_;
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', $what);
    return;
}

subtest 'memory is bounded, whatever arrives at once' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'bounded', tasks => $tasks,
        concurrency => 8, options => [ '--max-held-bytes', "${bound}MB" ]);
    # So quick that jobs are held ahead, and that claims expect small ones.
    add_jobs($node, 'quick', 200);
    all_end('the quick jobs have ended');
    add_large(16, $payload);
    $tasks->wait_for('began', count => 4);
    wait_until($node, q{SELECT count(*) = 4 FROM pulse.running_jobs},
        'three jobs fit within the bound, a fourth exceeds it, and the rest goes back');
    is(scalar $tasks->told('began'), 4, 'and no more have begun');
    $tasks->open_gate('mouth', 16);
    all_end('the large jobs have ended');
    is(value($node, 'SELECT max(attempts) FROM pulse.finished_job'), 1,
        'what went back has cost no attempt');
    my $peak = memory_of($worker, 'VmHWM');
    cmp_ok($peak, '<=', $most, 'the memory at its peak');
    my $kept = memory_of($worker, 'VmRSS');
    cmp_ok($kept, '<=', 16 + 2 * $payload, 'the memory afterwards, with a buffer for one');
    note sprintf 'at most %.0f MB, afterwards %.0f MB', $peak, $kept;
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
};

subtest 'no job is too large: one at a time exceeds the bound' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'small', tasks => $tasks,
        concurrency => 2, options => [ '--max-held-bytes', '1MB' ]);
    my $from = $tasks->lines->position;
    add_large(3, 2);
    for my $count (1 .. 3) {
        $tasks->wait_for('began', from => $from, count => $count);
        wait_until($node, 'SELECT count(*) = 1 FROM pulse.running_jobs', 'one of them runs');
        $tasks->open_gate('mouth');
    }
    all_end('all of them have ended');
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
};

subtest 'a job that the memory cannot hold keeps no other from running' => sub {
    plan skip_all => 'a sanitizer needs more memory than that' if Pulse::Worker::is_sanitized();
    value($node, q{SELECT pulse.set_task('swallow', backoff_base => '1 min')});
    my $worker = Pulse::Worker->start_registered($node, 'poor', tasks => $tasks, concurrency => 4,
        under => [ 'sh', '-c', 'ulimit -v 200000; exec "$@"', 'sh' ]);
    my $large = value($node, q{WITH small AS (SELECT pulse.add_job('quick'))
        SELECT id FROM pulse.add_job('swallow', to_json(repeat('x', 60000000))), small});
    like($worker->wait_for('claim_too_large')->{reason}, qr/memory/, 'it says so');
    wait_until($node, qq{SELECT count(*) = 1 FROM pulse.job WHERE id = $large
        AND last_error ~ 'poor has no memory' AND run_at > now() AND attempts = 1},
        'the large one has lost one attempt and waits for its backoff');
    wait_until($node, q{SELECT count(*) = 0 FROM pulse.job WHERE identifier = 'quick'},
        'the small one has run');
    value($node, "SELECT count(*) FROM pulse.cancel_job($large) AS c");
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
};

expect_healthy($node);
done_testing();
