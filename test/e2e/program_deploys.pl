# --program: ten times new code, once broken, while jobs come all the time and each generation has a
# long job. No job fails, and no job runs twice.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::ProgramFile;
use Pulse::ProgramRun;
use Pulse::Server;

use constant { GENERATIONS => 10, BROKEN => 6, QUICK_JOBS => 20 };

my $node = start_server('main', settings => \%QUICK);
run_programs_on($node);

my $program = Pulse::ProgramFile->new('deploys', version => 1, hello => hello(50, mail => {}));
my $worker = start_registered($program);
my $expected = 0;
my ($ready, $ended) = (1, 0);

sub add_quick {
    add_jobs($node, 'mail', QUICK_JOBS);
    $expected += QUICK_JOBS;
    return;
}

my $running = 1;
for my $version (2 .. 1 + GENERATIONS) {
    my $gate = $program->gate("of-$version");
    my $long = add('mail', qq({"do": "wait", "gate": "$gate"}));
    $expected++;
    is(($program->wait_for('began', $long))[4], $running, "code $running has a long job");
    add_quick();
    my $is_broken = $version == BROKEN;
    $program->set(version => $version, hello => hello(50, mail => {}),
        $is_broken ? (exit => 3) : ());
    $worker->signal('HUP');
    if ($is_broken) {
        like($worker->wait_for('program_refused')->{reason},
            qr/^it ended before its hello: exit code 3: broken/, "code $version is refused");
    } else {
        $worker->wait_for('program_ready', count => ++$ready);
    }
    add_quick();
    $program->open_gate("of-$version");
    is(wait_finished($long), 'completed|1|0', 'the long job ends well');
    $worker->wait_for('program_ended', count => ++$ended);
    $running = $version if !$is_broken;
}
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'no job is left');
is(value($node, q{SELECT state, attempts, crashes, count(*) FROM pulse.finished_job
    GROUP BY 1, 2, 3}), "completed|1|0|$expected", 'each job was run once, to its end');
drain($worker);
expect_healthy($node);
done_testing();
