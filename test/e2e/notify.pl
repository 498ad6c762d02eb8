# What a service manager hears of a worker, in systemd's protocol, from start to end; and that no
# task hears of the service manager.
use strict;
use warnings FATAL => 'all';

use IO::Select;
use Socket;
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant DRAINED => 0;

my $node = start_server('main', settings => \%QUICK);
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    look => q{for name in NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID; do
        tell "${!name:-none}"
    done},
    linger => 'tell began; wait_at lingerers');

sub listen_at {
    my ($path) = @_;
    socket my $socket, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!\n";
    bind $socket, pack_sockaddr_un($path) or die "bind: $!\n";
    return $socket;
}

# The next message for which `wanted` is true; what comes before it is forgotten.
sub hear {
    my ($socket, $what, $wanted) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my $readable = IO::Select->new($socket);
    while (time < $end) {
        next if !$readable->can_read(0.1);
        recv $socket, my $message, 4096, 0;
        return $message if $message =~ $wanted;
    }
    die "never heard: $what\n";
}

# As systemd starts it: WATCHDOG_PID is the process that is executed.
sub start {
    my ($name, $socket, $watchdog) = @_;
    my $script = 'NOTIFY_SOCKET=$0 WATCHDOG_PID=$$ WATCHDOG_USEC=' . $watchdog
      . '; export NOTIFY_SOCKET WATCHDOG_PID WATCHDOG_USEC; exec "$@"';
    return Pulse::Worker->start($node, $name, tasks => $tasks,
        under => [ 'sh', '-c', $script, $socket ]);
}

my $folder = PostgreSQL::Test::Utils::tempdir_short();

subtest 'from start to end' => sub {
    my $socket = listen_at("$folder/notify");
    my $worker = start('served', "$folder/notify", 200_000);
    is(hear($socket, 'its first word', qr/./), 'STATUS=registering', 'it says what it does');
    is(hear($socket, 'ready', qr/^READY/), 'READY=1', 'it is ready');
    $worker->wait_for('registered');
    pass('as it is registered');
    like(hear($socket, 'status', qr/^STATUS=0/), qr/^STATUS=0 of 1 running, worker \d+$/, 'idle');
    is(hear($socket, 'the watchdog', qr/^WATCHDOG/), 'WATCHDOG=1', 'its loop turns') for 1 .. 3;
    my $job = add_job($node, 'linger');
    $tasks->wait_for('began', job => $job);
    like(hear($socket, 'status', qr/^STATUS=1/), qr/^STATUS=1 of 1 running/, 'busy');
    $worker->signal('HUP');
    like(hear($socket, 'reloading', qr/^RELOAD/), qr/^RELOADING=1\nMONOTONIC_USEC=\d+$/, 'reload');
    is(hear($socket, 'ready again', qr/^READY/), 'READY=1', 'ready again');
    $worker->signal('STOP');
    $worker->signal('CONT');
    is(hear($socket, 'the watchdog', qr/^WATCHDOG/), 'WATCHDOG=1', 'it goes on after a stop');
    $worker->signal('TERM');
    is(hear($socket, 'stopping', qr/^STOPPING/), 'STOPPING=1', 'it stops');
    like(hear($socket, 'status', qr/^STATUS=d/), qr/^STATUS=draining, 1 of 1 running/, 'drains');
    is(hear($socket, 'the watchdog', qr/^WATCHDOG/), 'WATCHDOG=1', 'its loop turns');
    $tasks->open_gate('lingerers');
    is($worker->wait_exit, DRAINED, 'exit code');
};

subtest 'before the database is there it is not ready' => sub {
    $node->stop;
    my $socket = listen_at("$folder/early");
    my $worker = start('early', "$folder/early", 200_000);
    is(hear($socket, 'ready, or the watchdog', qr/^(?:READY|WATCHDOG)/), 'WATCHDOG=1', 'not ready')
      for 1 .. 3;
    $worker->wait_for('reconnecting', connection => 'heartbeat');
    $node->start;
    is(hear($socket, 'ready', qr/^READY/), 'READY=1', 'only now it is ready');
    $worker->wait_for('registered');
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
};

subtest 'an abstract socket; and tasks do not hear of it' => sub {
    my $name = "pulse-notify-$$";
    my $socket = listen_at("\0$name");
    my $worker = start('abstract', "\@$name", 200_000);
    is(hear($socket, 'ready', qr/^READY/), 'READY=1', 'it is ready');
    my $job = add_job($node, 'look');
    $worker->wait_for('completed', job => $job);
    is(scalar(my @none = $tasks->wait_for('none', job => $job, count => 3)), 3,
        'no task sees its socket or its watchdog');
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
};

subtest 'a service manager that is gone is nobody' => sub {
    my $worker = start('alone', "$folder/none", 50_000);
    my $job = add_job($node, 'run');
    $worker->wait_for('completed', job => $job);
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
};

expect_healthy($node);
done_testing();
