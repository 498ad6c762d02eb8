# --program: programs that say something wrong, stop, fork, do not read, and orders that come while
# new code takes over.
use strict;
use warnings FATAL => 'all';

use File::Copy qw(copy);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Process;
use Pulse::ProgramFile;
use Pulse::ProgramRun;
use Pulse::Server;
use Pulse::Tasks;

use constant { MISCONFIGURED => 78, BEATS => 15 };    # 3 s: longer than the sweep threshold

my $node = start_server('main', settings => \%QUICK);
run_programs_on($node);

my %bad = (
    'an exit before the hello' =>
      [ { exit => 3 }, qr/: it ended before its hello: exit code 3: broken$/ ],
    'a line before the hello' =>
      [ { before => ['{"id":"1","result":1}'] }, qr/a line before its hello/ ],
    'another protocol' => [ { hello => { protocol => 2, tasks => { mail => {} } } },
        qr/a hello of protocol 2, and this worker speaks protocol 1/ ],
    'no task' => [ { hello => { protocol => 1, tasks => {} } }, qr/a hello without tasks/ ],
    'no place' => [ { hello => { protocol => 1, takes => 0, tasks => { mail => {} } } },
        qr/not from 1 to 10000/ ],
    'too many places' =>
      [ { hello => { protocol => 1, takes => 1e9, tasks => { mail => {} } } },
        qr/not from 1 to 10000/ ],
    'a task of the folder' => [ { hello => { protocol => 1, tasks => { paper => {} } } },
        qr/task 'paper' of its hello is served by an executable or --process/ ],
    'no hello' => [ {}, qr/it has not said hello in time/ ],
);
for my $name (sort keys %bad) {
    subtest "a program with $name" => sub {
        my ($settings, $reason) = @{ $bad{$name} };
        my $tasks = Pulse::Tasks->new(paper => 'tell ran');
        my $program = Pulse::ProgramFile->new('bad', %$settings);
        my $worker = start($program, tasks => $tasks,
            options => [ '--start-limit', $name eq 'no hello' ? '300ms' : '1min' ]);
        is($worker->wait_exit, MISCONFIGURED, 'ends the worker');
        like(($worker->events('refused'))[0]{reason}, $reason, 'which says why');
        is(scalar($worker->events('registered')), 0, 'and has not registered');
    };
}

subtest 'a program that never calls work()' => sub {
    my $worker = Pulse::ProgramRun::start_command('true');
    is($worker->wait_exit, MISCONFIGURED, 'ends the worker');
    like(($worker->events('refused'))[0]{reason},
        qr/^--program: true: it ended before its hello, it never called work\(\): exit code 0$/,
        'which says what is missing');
};

# As a file that a deployment still writes.
subtest 'new code that cannot be started now' => sub {
    my $program = Pulse::ProgramFile->new('later', version => 1, hello => hello(9, mail => {}));
    my ($python) = run_command([ 'python3', '-c',
        'import os, sys; print(os.path.realpath(sys.executable))' ]);
    my $copy = PostgreSQL::Test::Utils::tempdir('python') . '/python3';
    my $put = sub { copy($python, $copy) && chmod 0755, $copy or die "$copy: $!" };
    $put->();
    my $worker = start_registered_command($program->command =~ s/^python3/$copy/r);
    $program->set(version => 2, hello => hello(9, mail => {}));
    unlink $copy or die "$copy: $!";
    $put->();
    open my $writer, '>>', $copy or die "$copy: $!";
    $worker->signal('HUP');
    like($worker->wait_for('program_fault')->{reason}, qr/the file is being replaced/,
        'is no fault of the code');
    is(scalar($worker->events('program_refused')), 0, 'and not refused');
    close $writer or die "$copy: $!";
    $worker->wait_for('program_ready', count => 2);
    my $job = add('mail', '{}');
    is(($program->wait_for('began', $job))[4], 2, 'the new code takes over by itself');
    is(wait_finished($job), 'completed|1|0', 'and runs jobs');
    drain($worker);
};

subtest 'two programs with one task' => sub {
    my @programs = map { Pulse::ProgramFile->new($_, hello => hello(9, mail => {})) } qw(one two);
    my $worker = start($programs[0], options => [ '--program', $programs[1]->command ]);
    is($worker->wait_exit, MISCONFIGURED, 'end the worker');
    like(($worker->events('refused'))[0]{reason},
        qr/task 'mail' of its hello is served by another --program/, 'which says why');
};

subtest 'a program that has no job for long' => sub {
    my $program = Pulse::ProgramFile->new('idle', hello => hello(9, mail => {}));
    my $worker = start_registered($program);
    is(wait_finished(add('mail', '{}')), 'completed|1|0', 'after a job');
    $worker->wait_for('heartbeat', from => $worker->lines->position, count => BEATS);
    is(scalar($program->told('started')), 1, 'lives on');
    drain($worker);
};

subtest 'answers that nobody can read' => sub {
    my $program = Pulse::ProgramFile->new('unreadable', hello => hello(9, mail => {}));
    my $worker = start_registered($program);
    my ($latin, $number) = map { add('mail', $_, 'max_attempts => 1') }
      '{"do": "latin"}', '{"do": "number"}';
    is(wait_finished($latin), 'failed|1|0', 'bytes that are no UTF-8 fail their job');
    like(of_finished('last_error', $latin), qr/^it answered with /, 'which says so');
    is(wait_finished($number), 'completed|1|0', 'an answer for a number of no job is dropped');
    $worker->wait_for('lines_dropped');
    is(scalar($program->told('started')), 1, 'the process goes on');
    my $half = add('mail', '{"do": "half"}', 'max_attempts => 1');
    is(wait_finished($half), 'failed|1|0', 'half an answer of a process that dies is none');
    is(of_finished('last_error', $half), 'its program exited with code 7', 'and its death is told');
    is(of_finished('result', $half), '', 'without a result');
    drain($worker);
};

subtest 'an answer after the order to stop' => sub {
    my $program = Pulse::ProgramFile->new('late', hello => hello(9, mail => {}));
    my $worker = start_registered($program);
    my $late = add('mail', '{"do": "late"}');
    $program->wait_for('began', $late);
    value($node, "SELECT pulse.cancel_job($late)");
    is(wait_finished($late), 'cancelled|1|0', 'a cancelled job stays cancelled');
    my $gate = $program->gate('gate');
    my $deaf = add('mail', qq({"do": "deaf", "gate": "$gate"}));
    my $keeps = add('mail', qq({"do": "wait", "gate": "$gate"}));
    $program->wait_for('began', $_) for $deaf, $keeps;
    value($node, "SELECT pulse.cancel_job($deaf)");
    is(wait_finished($deaf), 'cancelled|1|0', 'so does one whose handler did not stop');
    $program->open_gate('gate');
    $worker->wait_for('lines_dropped');
    is(wait_finished($keeps), 'completed|1|0', 'and another job takes nothing from its answer');
    is(of_finished('result', $_), '', 'no result is kept') for $late, $deaf;
    drain($worker);
};

subtest 'a program that forks' => sub {
    my $program = Pulse::ProgramFile->new('forks', hello => hello(9, mail => {}));
    my $worker = start_registered($program);
    my $job = add('mail', '{"do": "fork"}');
    my $child = Pulse::Process->new(($program->wait_for('forked', $job))[1]);
    is(wait_finished($job), 'completed|1|0', 'may let a child answer');
    my $next = add('mail', '{"do": "kill"}', 'max_attempts => 2');
    ok($child->wait_gone, 'the death of the program ends the child, which has its socket too');
    value($node, "SELECT pulse.cancel_job($next)");
    is(wait_finished(add('mail', '{}')), 'completed|1|0', 'another process goes on');
    drain($worker);
};

subtest 'a program that does not read' => sub {
    my $program = Pulse::ProgramFile->new('unread', hello => hello(20, mail => {}));
    my ($unread, $gate) = map { $program->gate($_) } qw(unread gate);
    my $worker = start_registered($program, options => [ '--programs', '2' ]);
    my $stops = add('mail', qq({"do": "unread", "gate": "$unread"}));
    is(wait_finished($stops), 'completed|1|0', 'it reads no more');
    my $load = 'x' x 100_000;
    my @jobs = map { add('mail', qq({"do": "wait", "gate": "$gate", "load": "$load"})) } 1 .. 40;
    $program->open_gate('gate');
    wait_until($node, q{SELECT count(*) >= 25 FROM pulse.finished_job
        WHERE identifier = 'mail' AND payload ->> 'load' IS NOT NULL}, 'more than its half');
    ok(1, 'gets about 1 MB of jobs, and the other process all further ones');
    $program->open_gate('unread');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    drain($worker);
};

subtest 'a program that is stopped' => sub {
    my $program = Pulse::ProgramFile->new('stopped', hello => hello(9, mail => {}, slow => {}));
    my $gate = $program->gate('gate');
    my $worker = start_registered($program);
    my $job = add('slow', qq({"do": "wait", "gate": "$gate"}), 'max_attempts => 2');
    my $bystander = add('mail', qq({"do": "wait", "gate": "$gate"}));
    my (undef, undef, undef, $pid) = $program->wait_for('began', $job);
    $program->wait_for('began', $bystander);
    kill STOP => $pid;
    # Before the stop no time is over, and the second attempt has time enough.
    value($node, q{SELECT pulse.set_task('slow', timeout => '8 s')});
    my (undef, undef, undef, $other) = $program->wait_for('began', $job, 'slow', 2);
    isnt($other, $pid, 'a job whose time is over is run again by another process');
    $program->open_gate('gate');
    is(wait_finished($job), 'completed|2|0', 'and ends there');
    kill CONT => $pid;
    is(wait_finished($bystander), 'completed|1|0', 'the other job goes on when the program does');
    drain($worker);
};

subtest 'new code twice at once' => sub {
    my $program = Pulse::ProgramFile->new('twice', version => 1, hello => hello(9, mail => {}));
    my $gate = $program->gate('old');
    my $worker = start_registered($program);
    my $old = add('mail', qq({"do": "wait", "gate": "$gate"}));
    $program->wait_for('began', $old);
    for my $version (2, 3) {
        $program->set(version => $version, hello => hello(9, mail => {}));
        $worker->signal('HUP');
        $worker->wait_for('program_ready', count => 2) if $version == 2;
    }
    is(($program->wait_for('began', add('mail', '{}')))[4], 2, 'the second waits for the first');
    is(scalar($program->told('ended')), 0, 'as long as old code has a job');
    $program->open_gate('old');
    is(wait_finished($old), 'completed|1|0', 'and begins after its end');
    $worker->wait_for('program_ready', count => 3);
    is(($program->wait_for('began', add('mail', '{}')))[4], 3, 'so the last code runs');
    drain($worker);
};

subtest 'an order to end the worker while new code starts' => sub {
    my $program = Pulse::ProgramFile->new('ends', version => 1, hello => hello(9, mail => {}));
    my $gate = $program->gate('old');
    # The new process says no hello, and nothing but the order ends it.
    my $worker = start_registered($program, options => [ '--start-limit', '1h' ]);
    my $old = add('mail', qq({"do": "wait", "gate": "$gate"}));
    my (undef, undef, undef, $pid) = $program->wait_for('began', $old);
    $program->set(version => 2);
    $worker->signal('HUP');
    $worker->wait_for('program_started', count => 2);
    my @processes = map { Pulse::Process->new((split)[1]) } $program->told('started');
    $worker->signal('TERM');
    $worker->wait_for('draining');
    $program->open_gate('old');
    is($worker->wait_exit, 0, 'it drains');
    is(wait_finished($old), 'completed|1|0', 'the job of old code ends well');
    ok($_->wait_gone, 'a process is gone') for @processes;
};

expect_healthy($node);
done_testing();
