# What tasks get of the worker's environment: what is named, and what a file of variables says.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, CONFIGURATION => 78 };

my $node = start_server('main', settings => \%PATIENT);
my $tasks = Pulse::Tasks->new(
    show => 'tell "${APP_MODE:-none},${APP_KEY:-none},${HIDDEN:-none}"');
my $started = 0;

sub start {
    my (@options) = @_;
    return Pulse::Worker->start_registered($node, 'worker-' . ++$started, tasks => $tasks,
        options => \@options);
}

sub run_job {
    my ($worker, $task) = @_;
    my $job = add_job($node, $task);
    $worker->wait_for('completed', job => $job);
    return;
}

sub leave {
    my ($worker) = @_;
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
    return;
}

subtest 'variables of the application reach its tasks' => sub {
    my $file = PostgreSQL::Test::Utils::tempdir('env') . '/app.env';
    my $write = sub {
        open my $handle, '>', $file or die "$file: $!";
        print $handle @_;
        close $handle or die "$file: $!";
    };
    $write->("# of the application\nexport APP_KEY=\"a b\"\n");
    local @ENV{qw(APP_MODE HIDDEN)} = qw(production secret);
    my $plain = start();
    run_job($plain, 'show');
    $tasks->wait_for('none,none,none');
    leave($plain);
    my $worker = start('--pass-env', 'APP_MODE', 'NOT_SET', '--env-file', $file);
    run_job($worker, 'show');
    my $from = $tasks->lines->position;
    like(join("\n", $tasks->lines->lines), qr/^production,a b,none /m, 'those that are named');
    $write->("APP_KEY=changed\n");
    my $read = $worker->lines->position;
    $worker->signal('HUP');
    $worker->wait_for('tasks', from => $read);
    run_job($worker, 'show');
    ok($tasks->wait_for('production,changed,none', from => $from), 'SIGHUP reads the file again');
    $write->("nonsense\n");
    $worker->signal('HUP');
    like($worker->wait_for('env_file_refused')->{reason}, qr/line 1 is not NAME=value$/,
        'a file that cannot be read changes nothing');
    run_job($worker, 'show');
    ok($tasks->wait_for('production,changed,none', from => $from, count => 2), 'as before');
    leave($worker);
    my $refused = Pulse::Worker->start($node, 'refused', tasks => $tasks,
        options => [ '--env-file', $file ]);
    is($refused->wait_exit, CONFIGURATION, 'at the start it is an error');
};

expect_healthy($node);
done_testing();
