# --program: one program that names its tasks, many jobs at once, and what becomes of the jobs when
# the program dies, does not listen, or is replaced by new code.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Process;
use Pulse::ProgramFile;
use Pulse::ProgramRun;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%QUICK);
run_programs_on($node);

subtest 'many tasks and many jobs at once in one process' => sub {
    local $ENV{PULSE_SECRET} = 'hidden';
    local $ENV{APPLICATION} = 'shop';
    my $program = Pulse::ProgramFile->new('many',
        hello => hello(6, mail => {}, report => { takes => 1 }));
    my $gate = $program->gate('all');
    my @mails = map { add('mail', qq({"do": "wait", "gate": "$gate"})) } 1 .. 4;
    my @reports = map { add('report', qq({"do": "wait", "gate": "$gate"})) } 1 .. 3;
    my $worker = start_registered($program);
    $program->wait_for('began', $_, 'mail') for @mails;
    $program->wait_for('began', $reports[0], 'report');
    push @mails, add('mail', qq({"do": "wait", "gate": "$gate"}));
    $program->wait_for('began', $mails[-1], 'mail');
    is(scalar(grep { / report / } $program->told('began')), 1, 'of one task only so many');
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE state = 'running'}), 6,
        'and no more are claimed');
    $program->open_gate('all');
    is(wait_finished($_), 'completed|1|0', "job $_") for @mails, @reports;
    is(scalar($program->told('started')), 1, 'in one process');
    my $names = of_finished(q{result ->> 'names'}, $mails[0]);
    like($names, qr/"APPLICATION"/, 'which has the variables of the application');
    unlike($names, qr/PULSE_SECRET|"PG/, 'but no secret of the worker');
    my $odd = add('mail', '{"do": "speak"}');
    is(wait_finished($odd), 'completed|1|0', 'it may print');
    is($worker->wait_for('output', stream => "std$_")->{text}, "to std$_", "std$_ is logged")
      for qw(out err);
    is($worker->wait_for('output', job => $odd)->{text}, "for the log\nof the job",
        'and what it logs for a job, with the job');
    drain($worker);
    is(scalar($program->told('ended')), 1, 'end of file ends it');
};

subtest 'jobs of queues run beside each other' => sub {
    my $program = Pulse::ProgramFile->new('queues', hello => hello(4, mail => {}));
    my $gate = $program->gate('all');
    my @jobs = map { add('mail', qq({"do": "wait", "gate": "$gate"}), "queue_name => 'q$_'") }
      1 .. 4;
    my $worker = start_registered($program);
    $program->wait_for('began', $_) for @jobs;
    $program->open_gate('all');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    drain($worker);
};

subtest 'with --concurrency all share the slots' => sub {
    my $program = Pulse::ProgramFile->new('shared', hello => hello(9, mail => {}));
    my $gate = $program->gate('all');
    my @jobs = map { add('mail', qq({"do": "wait", "gate": "$gate"}), 'max_attempts => 1') }
      1 .. 4;
    my $worker = start_registered($program, concurrency => 2);
    $program->wait_for('began', $_) for @jobs[ 0, 1 ];
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE state = 'running'}), 2, 'two run');
    $program->open_gate('all');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    drain($worker);
};

subtest 'tasks of a program and of a folder' => sub {
    my $tasks = Pulse::Tasks->new(paper => 'tell ran');
    my $program = Pulse::ProgramFile->new('beside', hello => hello(3, mail => {}));
    my $gate = $program->gate('all');
    my @mails = map { add('mail', qq({"do": "wait", "gate": "$gate"})) } 1 .. 6;
    my @papers = map { add_job($node, 'paper') } 1 .. 6;
    my $worker = start_registered($program, tasks => $tasks);
    is(wait_finished($_), 'completed|1|0', "job $_") for @papers;
    $program->wait_for('began', $_) for @mails[ 0 .. 2 ];
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE state = 'running'}), 3,
        'each has slots of its own');
    $program->open_gate('all');
    is(wait_finished($_), 'completed|1|0', "job $_") for @mails;
    drain($worker);
};

subtest 'a death with one job in hand' => sub {
    my $program = Pulse::ProgramFile->new('one', hello => hello(9, mail => {}));
    my $worker = start_registered($program);
    my $job = add('mail', '{"do": "die"}', 'max_attempts => 1');
    is(wait_finished($job), 'failed|1|0', 'fails the job');
    is(of_finished('last_error', $job), 'its program exited with code 7: no luck', 'and says why');
    value($node, q{SELECT pulse.set_task('mail', max_crashes => 1)});
    $job = add('mail', '{"do": "kill"}');
    is(wait_finished($job), 'quarantined|1|1', 'on its last chance it is quarantined');
    value($node, q{SELECT pulse.set_task('mail', max_crashes => 3)});
    is(wait_finished(add('mail', '{}')), 'completed|1|0', 'another process goes on');
    drain($worker);
};

subtest 'a death with many jobs in hand' => sub {
    my $program = Pulse::ProgramFile->new('poison', hello => hello(50, mail => {}));
    my $poison = add('mail', '{"do": "kill"}', 'max_attempts => 25');
    my @others = map { add('mail', '{}', 'max_attempts => 25') } 1 .. 300;
    my $worker = start_registered($program);
    like(wait_finished($poison), qr/^quarantined\|\d+\|3$/, 'the poison is found');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all others ended');
    my $ids = join ',', @others;
    is(value($node, "SELECT state, count(*) FROM pulse.finished_job WHERE id IN ($ids) GROUP BY 1"),
        'completed|300', 'and all others are completed');
    is(value($node, "SELECT string_agg(DISTINCT outcome || ' ' || coalesce(error, ''), ';')
        FROM pulse.attempt
        WHERE job_id IN ($ids) AND outcome NOT IN ('completed', 'lost', 'released')"), '',
        'none of them has failed');
    drain($worker);
};

subtest 'a handler that ignores its order to stop' => sub {
    my $program = Pulse::ProgramFile->new('deaf', hello => hello(9, mail => {}));
    my ($gate, $other) = map { $program->gate($_) } qw(gate other);
    my $worker = start_registered($program);
    my $deaf = add('mail', qq({"do": "deaf", "gate": "$gate"}), 'max_attempts => 1');
    my $bystander = add('mail', qq({"do": "wait", "gate": "$other"}), 'max_attempts => 1');
    my $obeys = add('mail', '{"do": "obey"}');
    my (undef, undef, undef, $pid) = $program->wait_for('began', $deaf);
    $program->wait_for('began', $_) for $bystander, $obeys;
    value($node, "SELECT pulse.cancel_job($_)") for $deaf, $obeys;
    is(wait_finished($obeys), 'cancelled|1|0', 'one that listens ends');
    is(wait_finished($deaf), 'cancelled|1|0', 'one that does not ends after its grace');
    my $next = add('mail', '{}');
    is(wait_finished($next), 'completed|1|0', 'another process takes the next jobs');
    isnt(of_finished(q{result ->> 'pid'}, $next), $pid, 'not the one with the deaf handler');
    my $process = Pulse::Process->new($pid);
    $program->open_gate('other');
    is(wait_finished($bystander), 'completed|1|0', 'the other job of that process ends well');
    ok($process->wait_gone, 'and then the process is gone');
    drain($worker);
};

subtest 'a claim that is taken away' => sub {
    my $program = Pulse::ProgramFile->new('taken', hello => hello(9, mail => {}));
    my ($gate, $other) = map { $program->gate($_) } qw(gate other);
    my $worker = start_registered($program);
    my $obeys = add('mail', '{"do": "obey"}');
    my $bystander = add('mail', qq({"do": "wait", "gate": "$other"}));
    my (undef, undef, undef, $pid) = $program->wait_for('began', $bystander);
    $program->wait_for('began', $obeys);
    value($node, "SELECT pulse.requeue_job($obeys, 'by hand')");
    is(($program->wait_for('began', $obeys, 'mail', 2))[3], $pid,
        'a handler that stops leaves the program as it is');
    value($node, "SELECT pulse.cancel_job($obeys)");
    my $deaf = add('mail', qq({"do": "deaf", "gate": "$gate"}), 'max_attempts => 2');
    $program->wait_for('began', $deaf);
    my $process = Pulse::Process->new($pid);
    value($node, "SELECT pulse.requeue_job($deaf, 'by hand')");
    ok($process->wait_gone, 'one that does not stop ends with its program');
    $program->open_gate($_) for qw(gate other);
    is(wait_finished($_), 'completed|2|0', "job $_ is run again") for $deaf, $bystander;
    is(outcomes($node, $bystander), 'interrupted completed', 'the other one was interrupted');
    drain($worker);
};

subtest 'answers that are not as they should be' => sub {
    my $program = Pulse::ProgramFile->new('answers', hello => hello(9, mail => {}));
    my $worker = start_registered($program);
    my ($large, $wrong, $twice, $bystander) = map { add('mail', $_, 'max_attempts => 1') }
      '{"do": "large"}', '{"do": "wrong"}', '{"do": "twice"}', '{}';
    is(wait_finished($large), 'failed|1|0', 'a result of 2 MB fails its job');
    is(of_finished('last_error', $large), 'it answered with a line longer than 1 MB',
        'and says so');
    is(wait_finished($wrong), 'failed|1|0', 'a wrong member fails its job');
    is(wait_finished($_), 'completed|1|0', "job $_ is completed") for $twice, $bystander;
    is(scalar($program->told('started')), 1, 'the process goes on');
    my $hello = add('mail', '{"do": "hello"}', 'max_attempts => 1');
    is(wait_finished($hello), 'failed|1|0', 'a second hello ends the process');
    like($worker->wait_for('program_fault')->{reason}, qr/a second hello/, 'and is named');
    my $close = add('mail', '{"do": "close"}', 'max_attempts => 1');
    is(wait_finished($close), 'failed|1|0', 'so does a socket that it closes');
    like(of_finished('last_error', $close), qr/^its program was ended: it has closed its socket/,
        'which is named too');
    drain($worker);
};

subtest 'a handler that completes its job in its own transaction' => sub {
    my $program = Pulse::ProgramFile->new('own', hello => hello(9, mail => {}));
    my $worker = start_registered($program);
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    my ($done, $undone) = map { add('mail', $_, 'max_attempts => 1') }
      map { qq({"do": "complete", "database": "$database", "before": "$_"}) } '', 'SELECT 1/0; ';
    is(wait_finished($done), 'completed|1|0', 'where it has committed');
    is(wait_finished($undone), 'failed|1|0', 'where it has not, the job has failed');
    is(of_finished('last_error', $undone), 'its transaction did not commit', 'and says so');
    my $line = $worker->wait_for('completed', job => $done);
    is($line->{outcome}, 'completed', 'and the log of the worker says so');
    ok(!defined $line->{reason}, 'without a reason to worry');
    drain($worker);
};

subtest 'new code' => sub {
    my $program = Pulse::ProgramFile->new('code', version => 1, hello => hello(9, mail => {}));
    my $gate = $program->gate('old');
    my $worker = start_registered($program, options => [ '--http', '127.0.0.1:0' ]);
    my $old = add('mail', qq({"do": "wait", "gate": "$gate"}));
    $program->wait_for('began', $old);
    $program->set(version => 2, exit => 3);
    $worker->signal('HUP');
    like($worker->wait_for('program_refused')->{reason},
        qr/^it ended before its hello: exit code 3: broken/, 'code that does not start is refused');
    my $job = add('mail', '{}');
    is(($program->wait_for('began', $job))[4], 1, 'and the old code goes on');
    $program->set(version => 3, hello => hello(9, mail => {}, letter => {}));
    $worker->signal('HUP');
    $program->wait_for('started');
    $worker->wait_for('program_ready', count => 2);
    my $letter = add('letter', '{}');
    is(($program->wait_for('began', $letter))[4], 3, 'new code gets new jobs');
    is(wait_finished($letter), 'completed|1|0', 'of a new task');
    is(scalar($program->told('ended')), 0, 'while the old code has a job');
    $program->open_gate('old');
    is(wait_finished($old), 'completed|1|0', 'which ends as ever');
    $program->wait_for('ended');
    $program->set(version => 4, hello => hello(9, letter => {}));
    $worker->signal('HUP');
    $worker->wait_for('program_ready', count => 3);
    $job = add('mail', '{}');
    is(wait_finished(add('letter', '{}')), 'completed|1|0', 'a task may be left out');
    is(value($node, "SELECT state FROM pulse.job WHERE id = $job"), 'ready', 'and is not claimed');
    value($node, "SELECT pulse.cancel_job($job)");
    drain($worker);
};

subtest 'the limit of a replacement' => sub {
    my $program = Pulse::ProgramFile->new('limit', version => 1, hello => hello(9, mail => {}));
    my $worker = start_registered($program, options => [ '--replace-grace', '200ms' ]);
    my $gate = $program->gate('never');
    my $job = add('mail', qq({"do": "deaf", "gate": "$gate"}), 'max_attempts => 2');
    $program->wait_for('began', $job);
    $program->set(version => 2, hello => hello(9, mail => {}));
    $worker->signal('HUP');
    is(($program->wait_for('began', $job, 'mail', 2))[4], 2, 'the job is run again by new code');
    is(outcomes($node, $job), 'interrupted', 'and was interrupted');
    $program->open_gate('never');
    is(wait_finished($job), 'completed|2|0', 'to its end');
    drain($worker);
};

for my $file (qw(program.py program.mjs program.rb program.sh)) {
    my ($name) = slurp_file("worker/examples/$file") =~ m{^#!/usr/bin/env (\w+)};
    subtest "the example $file" => sub {
        plan skip_all => "no $name here" if $name && system("command -v $name >/dev/null") != 0;
        my @jobs = map { add('greet', '{"name": "Ada"}') } 1 .. 20;
        my $bad = add('greet', '{}', 'max_attempts => 1');
        my $worker = start_registered_command("worker/examples/$file");
        is(wait_finished($bad), 'failed|1|0', 'a job without a name fails');
        is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
        is(of_finished(q{result ->> 'greeted'}, $jobs[0]), 'Ada', 'with its result');
        drain($worker);
    };
}

for my $signal ('KILL', 'STOP') {
    subtest "SIG$signal to the worker" => sub {
        my $program = Pulse::ProgramFile->new("doomed-$signal", hello => hello(9, mail => {}));
        my $gate = $program->gate('never');
        my $doomed = start_registered($program);
        my $job = add('mail', qq({"do": "deaf", "gate": "$gate"}));
        my (undef, undef, undef, $pid) = $program->wait_for('began', $job);
        my $process = Pulse::Process->new($pid);
        $doomed->signal($signal);
        ok($process->wait_gone, 'its program is gone');
        my $rescuer = start_registered($program);
        $program->wait_for('began', $job, 'mail', 2);
        $program->open_gate('never');
        is(wait_finished($job), 'completed|2|0', 'its job is run again');
        is(outcomes($node, $job), 'lost completed', 'after it was lost');
        drain($rescuer);
        $doomed->signal('CONT') if $signal eq 'STOP';
        $doomed->kill;
    };
}

expect_healthy($node);
done_testing();
