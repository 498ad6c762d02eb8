# Tasks that do their worst: they flood their output, write what is no text, fill their folder, take
# every descriptor and every process. The worker lives, beats in time, and stays small.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Process;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $is_sanitized = Pulse::Worker->is_sanitized;
my $most_megabytes = $is_sanitized ? 1000 : 40;

# With PULSE_LONG as much as anybody asked for.
my $error_bytes = $is_sanitized ? '8M' : $ENV{PULSE_LONG} ? '1G' : '128M';
my ($output_bytes, $line_bytes) = $is_sanitized ? qw(64M 2M) : qw(1G 20M);

my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '10s' });

# Every byte there is, NUL among them, without an end of line but one in 256.
my $garbage = q{perl -e 'print pack("C*", 0 .. 255) x 4096'};
my %scripts = (
    run => 'tell ran',
    hold => 'tell began; wait_at holders',
    spy => q{find_worker; place=/proc/$worker/environ
        grep -aqs hunter2 "$place" && found=yes || found=no
        tell "owner=$(stat -c %u "$place"),found=$found"},
    flood => qq{tell began; head -c $output_bytes /dev/zero; tell ended},
    flood_errors => qq{tell began; yes 'an error' | head -c $error_bytes >&2
        echo 'the last one' >&2; exit 1},
    flood_lines => qq{tell began; yes '{"progress": 0.5}' | head -c $line_bytes >&3},
    flood_line => qq{tell began; head -c $line_bytes /dev/zero >&3
      head -c $line_bytes /dev/zero >&2; exit 1},
    garbage => qq{$garbage; $garbage >&3; $garbage >&2; exit 1},
    odd_result => q{printf '{"message": "a\\\\u0000b", "result": "c\\\\u0000d"}\n' >&3},
    fill => q{head -c 4M /dev/zero >filler 2>/dev/null; tell "filled_$?"},
    # Each process in a session of its own, and none of them ever waits. The first one tells when it
    # can start no more. Should they get away, they end by themselves.
    bomb => q{tell began; exec perl -MPOSIX=setsid -e '
        my ($told, $line) = @ARGV; my $end = time + 60;
        while (time < $end) {
            my $pid = fork;
            if (defined $pid) { setsid, $told = "" if !$pid }
            elsif ($told) { open my $file, ">>", $told; print $file "$line\n"; $told = "" }
        }' "$told" "$(told=/dev/stdout; tell no_more)" a_bomb});
my $tasks = Pulse::Tasks->new(%scripts);

# It sweeps, so that who beats too late is lost; and it serves nobody.
my $witness = Pulse::Worker->start_registered($node, 'witness',
    tasks => Pulse::Tasks->new(unused => 'exit 1'));

# The most memory that a process ever had, in megabytes.
sub peak_memory {
    my ($worker) = @_;
    my ($kilobytes) = slurp_file('/proc/' . $worker->pid . '/status') =~ /^VmHWM:\s+(\d+) kB/m;
    return $kilobytes / 1024;
}

sub seconds_between {
    my ($first, $second) = map { /T(\d+):(\d+):([\d.]+)Z/ && $1 * 3600 + $2 * 60 + $3 } @_;
    my $seconds = $second - $first;
    return $seconds < 0 ? $seconds + 86400 : $seconds;
}

sub longest_silence {
    my ($worker) = @_;
    my @times = map { $_->{time} } $worker->events('heartbeat');
    my $longest = 0;
    for my $i (1 .. $#times) {
        my $seconds = seconds_between(@times[$i - 1, $i]);
        $longest = $seconds if $seconds > $longest;
    }
    return $longest;
}

# Still the worker it was: another job runs, it beats, nobody took it for dead, and it drains.
sub expect_unharmed {
    my ($worker) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $next = add_job($node, 'run');
    $worker->wait_for('completed', job => $next);
    my $from = $worker->lines->position;
    $worker->wait_for('heartbeat', status => 'alive', from => $from, count => 2);
    is(value($node, 'SELECT state FROM pulse.worker WHERE id = ' . $worker->id),
        'alive', 'it beat in time');
    is_deeply([ map { $_->events('lost') } $worker, $witness ], [], 'nobody was lost');
    cmp_ok(peak_memory($worker), '<', $most_megabytes, 'its memory stayed small');
    note sprintf '%s: peak memory %.1f MB, longest silence %.2f s',
      $worker->name, peak_memory($worker), longest_silence($worker);
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'it drains');
}

# What it takes to give a worker a namespace of users of its own, where it may mount, and where
# nobody else's processes count. Undefined if the kernel forbids it.
sub in_user_namespace {
    my @unshare = ('unshare', '--user', '--map-root-user', '--mount');
    return if system("@unshare true 2>/dev/null") != 0;
    return ('env', 'PGUSER=' . getpwuid($>), @unshare);
}

# The numbers of all processes that have this among their arguments.
sub processes_with {
    my ($argument) = @_;
    my @found;
    for my $path (glob '/proc/[0-9]*/cmdline') {
        open my $file, '<', $path or next;
        my $text = <$file> // next;    # it may have ended meanwhile
        push @found, $path =~ /(\d+)/ if grep { $_ eq $argument } split /\0/, $text;
    }
    return @found;
}

subtest 'a task sees no secret of the worker, whose user it is' => sub {
    local $ENV{PGPASSWORD} = 'hunter2';
    my $worker = Pulse::Worker->start_registered($node, 'secretive', tasks => $tasks);
    my $job = add_job($node, 'spy');
    ok($tasks->wait_for('owner=0,found=no', job => $job), 'not in its environment');
    expect_unharmed($worker);
};

subtest 'closed streams and a signal without a meaning' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'bare', tasks => $tasks,
        under => [ 'bash', '-c', 'exec "$@" <&- >&-', 'bash' ]);
    $worker->signal('USR2');
    expect_unharmed($worker);
};

subtest 'a flood of output' => sub {
    my $worker =
      Pulse::Worker->start_registered($node, 'flooded', tasks => $tasks, concurrency => 5);
    my %job = map { ($_ => add_job($node, $_, 'max_attempts => 1')) }
      qw(flood flood_errors flood_lines flood_line);
    $tasks->wait_for('began', job => $_) for values %job;
    is($worker->wait_for('completed', job => $job{flood})->{attempt},
        1, "$output_bytes on stdout do not matter");
    $worker->wait_for('failed', job => $job{$_}) for qw(flood_errors flood_line);
    my ($length, $end) = split /\|/, value($node, "SELECT length(last_error), right(last_error, 12)
        FROM pulse.finished_job WHERE id = $job{flood_errors}");
    cmp_ok($length, '<', 100_000, 'of errors the last few are kept');
    is($end, 'the last one', 'to the end');
    $worker->wait_for('completed', job => $job{flood_lines});
    expect_unharmed($worker);
};

subtest 'invalid UTF-8 and NUL bytes' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'garbled', tasks => $tasks);
    my $garbage = add_job($node, 'garbage', 'max_attempts => 1');
    $worker->wait_for('failed', job => $garbage);
    is(value($node, "SELECT last_error ~ '\\ufffd' FROM pulse.finished_job WHERE id = $garbage"),
        't', 'what is no text is marked as such');
    cmp_ok($worker->wait_for('lines_dropped', job => $garbage)->{count},
        '>', 4000, 'lines that are no JSON are dropped');
    my $odd = add_job($node, 'odd_result');
    $worker->wait_for('completed', job => $odd);
    is(value($node, "SELECT result FROM pulse.finished_job WHERE id = $odd"),
        '"c\u0000d"', 'a result may name U+0000');
    expect_unharmed($worker);
};

subtest 'descriptor exhaustion' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'starved', tasks => $tasks,
        concurrency => 12, under => [qw(prlimit --nofile=40:40)]);
    $worker->wait_for('few_descriptors', limit => 40);
    my @jobs = add_jobs($node, 'hold', 12);
    $tasks->wait_for('began');
    like($worker->wait_for('claim_skipped')->{reason}, qr/too many open files/, 'some must wait');
    $tasks->open_gate('holders', scalar @jobs);
    $worker->wait_for('completed', job => $_) for @jobs;
    is_deeply([ map { finished($node, $_) } @jobs ],
        [ ('completed|1|0') x @jobs ], 'each ran once, and none was blamed');
    expect_unharmed($worker);
};

subtest 'a full work folder' => sub {
    my @namespace = in_user_namespace()
      or plan skip_all => 'namespaces of users, to mount in, are not allowed here';
    my $original = $tasks->folder;
    my $full = PostgreSQL::Test::Utils::tempdir('full');
    my $worker = Pulse::Worker->start_registered($node, 'full', folder => $full,
        under => [ @namespace, 'sh', '-c', "mount -t tmpfs -o size=256k,mode=755 none '$full' &&
            cp -p '$original'/* '$full' && exec \"\$@\"", 'sh' ]);
    my $fill = add_job($node, 'fill');
    $worker->wait_for('completed', job => $fill);
    is(scalar($tasks->told('filled_1', job => $fill)), 1, 'the folder is full');
    expect_unharmed($worker);
};

subtest 'a fork bomb' => sub {
    my @namespace = in_user_namespace()
      or plan skip_all => 'namespaces of users, to count processes in, are not allowed here';
    my $worker = Pulse::Worker->start_registered($node, 'bombed', tasks => $tasks,
        concurrency => 3, under => [ @namespace, 'prlimit', '--nproc=60' ]);
    my $bomb = add_job($node, 'bomb', 'max_attempts => 1');
    value($node, "SELECT pulse.set_task('run', backoff => 'none')");
    my $task = $tasks->process($tasks->wait_for('began', job => $bomb));
    $tasks->wait_for('no_more', job => $bomb);
    my ($minder) = grep { $_->pid != $worker->pid } Pulse::Process->family($worker->pid);
    my @others = add_jobs($node, 'run', 3);
    like($worker->wait_for('claim_skipped')->{reason},
        qr/resource temporarily unavailable|not started/i, 'no process can be started');
    my @beats = $worker->wait_for('heartbeat', status => 'alive', count => 5,
        from => $worker->lines->position);
    is(scalar(@beats), 5, 'it beats meanwhile');
    my $from = $worker->lines->position;
    value($node, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'pulse-worker bombed'");
    $worker->wait_for('connected', from => $from, connection => $_) for qw(heartbeat claim finish);
    pass('it reconnects meanwhile, for which it takes threads');
    $worker->wait_for('heartbeat', status => 'alive', from => $from, count => 2);
    value($node, "SELECT pulse.cancel_job($bomb)");
    $worker->wait_for('cancelled', job => $bomb);
    ok($task->wait_gone && $minder->wait_gone, 'the bomb is cleared away');
    is_deeply([ processes_with('a_bomb') ], [], 'all of it');
    $worker->wait_for('completed', job => $_) for @others;
    expect_unharmed($worker);
};

$witness->signal('TERM');
is($witness->wait_exit, 0, 'the witness leaves');
expect_healthy($node);
done_testing();
