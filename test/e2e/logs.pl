# What a worker says: complete lines for machines, an answer to who asks what runs, and nothing that
# is nobody's business.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant DRAINED => 0;

my $node = start_server('main', settings => \%PATIENT);
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    fall => 'tell ran; echo "hunter2 on stderr" >&2; exit 1',
    linger => 'tell began; wait_at lingerers',
    patient => 'tell began; wait_at lingerers');
value($node, q{SELECT pulse.set_task('linger', timeout => '1h')});

sub leave {
    my ($worker) = @_;
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
    return;
}

subtest 'SIGUSR1: one line for each job that runs, whatever the level of the log is' => sub {
    my $worker = Pulse::Worker->start($node, 'asked', tasks => $tasks, concurrency => 3,
        level => 'error');
    my ($timed, $free) = map { add_job($node, $_, q{payload => '"hunter2"'}) } qw(linger patient);
    my ($told) = map { $tasks->wait_for('began', job => $_) } $timed, $free;
    my ($line, $summary);
    my $from = 0;
    # Its minder says that it has started, a moment after it has.
    do {
        $worker->signal('USR1');
        $line = $worker->wait_for('running', job => $timed, from => $from);
        $summary = $worker->wait_for('summary', from => $from);
        $from = $worker->lines->position;
    } until $line->{pid};
    is($line->{task}, 'linger', 'its task');
    is($line->{attempt}, 1, 'its attempt');
    is($line->{pid}, $told->{pid}, 'its process');
    cmp_ok($line->{duration_ms}, '>', 0, 'for how long');
    is($line->{limit}, 'timeout', 'what ends it next');
    cmp_ok($line->{limit_in_ms}, '<=', 3_600_000, 'and when');
    my $second = $worker->wait_for('running', job => $free);
    is($second->{limit}, undef, 'nothing ends the other');
    is($summary->{running}, 2, 'how many run');
    is($summary->{slots}, 3, 'of how many');
    is($summary->{worker}, $line->{worker}, 'and who it is');
    $tasks->open_gate('lingerers', 2);
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
    is_deeply([ sort keys %$line ],
        [ sort qw(time level event job task attempt worker duration_ms pid limit limit_in_ms) ],
        'never a payload or a token');
};

subtest 'each line about a job says whose, which, and how it ended' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'complete', tasks => $tasks,
        options => [ '--task-output', 'discard' ]);
    for my $ending ([ 'run', 'completed' ], [ 'fall', 'failed' ]) {
        my ($task, $event) = @$ending;
        my $job = add_job($node, $task, q{payload => '"hunter2"', max_attempts => 1});
        my $line = $worker->wait_for($event, job => $job);
        my %expected = (
            task => $task, attempt => 1, worker => $worker->id, outcome => $event);
        is($line->{$_}, $expected{$_}, "$event: $_") for sort keys %expected;
        cmp_ok($line->{duration_ms}, '>', 0, "$event: duration_ms");
    }
    my $job = add_job($node, 'linger');
    $tasks->wait_for('began', job => $job);
    value($node, "SELECT pulse.requeue_job($job, 'it hangs')");
    my $line = $worker->wait_for('revoked', job => $job);
    is_deeply([ @$line{qw(task attempt worker outcome)} ],
        [ 'linger', 1, $worker->id, 'revoked' ], 'revoked');
    $tasks->wait_for('began', job => $job, attempt => 2);
    $tasks->open_gate('lingerers');
    $worker->wait_for('completed', job => $job);
    leave($worker);
    unlike(join("\n", $worker->lines->lines), qr/hunter2/, 'never a payload, nor what tasks write');
};

subtest 'a failure is logged with its cause' => sub {
    my %scripts = (
        lost => "#!/no/such/interpreter\n", windows => "#!/bin/sh\r\nexit 0\r\n",
        text => "exit 0\n", broken => "#!/bin/sh\necho first >&2; echo 'no disk' >&2; exit 3\n");
    for my $name (sort keys %scripts) {
        $tasks->add($name, '');
        open my $file, '>', $tasks->folder . "/$name" or die $!;
        print $file $scripts{$name};
        close $file or die $!;
    }
    value($node, q{CREATE FUNCTION refuse(payload json) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          RAISE EXCEPTION 'no such customer' USING DETAIL = 'It is 7.', HINT = 'Add it.';
        END $$});
    value($node, q{SELECT pulse.set_task('refuse', handler => 'refuse(json)')});
    my $worker = Pulse::Worker->start_registered($node, 'causes', tasks => $tasks);
    my %cause = (
        lost => qr{its first line names /no/such/interpreter, which was not found},
        windows => qr{its first line ends in CR LF.*sed -i},
        text => qr{neither a program for this machine nor a script that begins with #!},
        broken => qr{^exit code 3: no disk$},
        refuse => qr{no such customer; DETAIL: It is 7\.; HINT: Add it\.$});
    for my $name (sort keys %cause) {
        my $job = add_job($node, $name, 'max_attempts => 1');
        like($worker->wait_for('failed', job => $job)->{reason}, $cause{$name}, $name);
    }
    leave($worker);
    unlink map { $tasks->folder . "/$_" } keys %scripts;
};

subtest 'what is served is named, and what only lacks a permission' => sub {
    chmod 0644, $tasks->folder . '/fall';
    my $worker = Pulse::Worker->start_registered($node, 'named', tasks => $tasks);
    my $line = $worker->wait_for('tasks');
    is($line->{names}, 'linger patient run', 'the tasks');
    is($line->{not_executable}, 'fall', 'the file that is none');
    like($worker->wait_for('task_skipped')->{reason}, qr{/fall is not executable: chmod 755$},
        'and what makes it one');
    chmod 0755, $tasks->folder . '/fall';
    my $read = $worker->lines->position;
    $worker->signal('HUP');
    is($worker->wait_for('tasks', from => $read)->{names}, 'fall linger patient run',
        'at SIGHUP it is one');
    leave($worker);
};

expect_healthy($node);
done_testing();
