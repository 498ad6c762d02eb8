# The library for Node without pulse-worker: a worker of its own. test/protocol/workers/node_direct
# has all rules of the protocol; here is what the library promises beside them.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::NodeActs;
use Pulse::NodeLibrary;
use Pulse::Pooler;
use Pulse::Program;
use Pulse::ProgramRun qw(run_programs_on wait_finished of_finished);
use Pulse::Server;

use constant { PRINTERS => 20, FORCED => 75 };

require_node();
my $driver = require_driver() or plan skip_all => 'no node with the library pg';
# A dead program is noticed at once, and a slow machine loses none.
my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '60s' });
my %connection = (PGHOST => $node->host, PGPORT => $node->port, PGUSER => scalar getpwuid $>,
    PGDATABASE => 'postgres', DRIVER => $driver);
value($node, "SELECT pulse.set_task('$_', backoff => 'none', max_attempts => 2)") for qw(act few);
value($node, 'CREATE TABLE effect (job bigint)');
act_on($node);
run_programs_on($node);
my $programs = 0;

# `under`: gives the command that runs the words of the program.
sub start {
    my ($under, %more) = @_;
    local %ENV = (%ENV, %connection, GRACE => 1000, %more);
    my @command = ('node', 'test/e2e/node/program.mjs', told_file());
    return Pulse::Program->start('program-' . ++$programs, $under ? $under->(@command) : \@command);
}

my $once = 'max_attempts => 1';

my $program = start();

subtest 'each line of twenty jobs at once names its own job' => sub {
    my @jobs = map { act('lines', gate => gate('lines'), count => 3) } 1 .. PRINTERS;
    wait_told('began', $_) for @jobs;
    open_gate('lines');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    my @lines = map { my $id = $_; map { "act $id: line $_ of job $id" } 1 .. 3 } @jobs;
    for my $last (map { "act $_: line 3 of job $_" } @jobs) {
        $program->lines->wait_for($last, sub { $_[0] eq $last });
    }
    is_deeply([ sort grep { /line/ } $program->lines->lines ], [ sort @lines ], 'and no other');
};

subtest 'a task takes only so many jobs at once' => sub {
    my $gate = gate('few');
    my @jobs = map { add_job($node, 'few', qq('{"gate": "$gate"}')) } 1 .. 4;
    wait_until($node, q{SELECT count(*) = 2 FROM pulse.job
        WHERE identifier = 'few' AND state = 'running'}, 'two run');
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'other tasks go on');
    open_gate('few');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
};

subtest 'a handler is told to end' => sub {
    my $cancelled = act('obey');
    wait_told('began', $cancelled);
    value($node, "SELECT pulse.cancel_job($cancelled)");
    is((wait_told('told', $cancelled))[2], 'cancelled', 'of a cancelled job by its signal');
    is(wait_finished($cancelled), 'cancelled|1|0', 'and the job is cancelled');
    value($node, q{SELECT pulse.set_task('act', timeout => '300ms')});
    my ($late, $never) = map { act($_, options => $once) } qw(obey never);
    is((wait_told('told', $late))[2], 'timeout', 'past the deadline by its signal');
    for ($late, $never) {
        is(wait_finished($_), 'failed|1|0', 'and the attempt has failed');
        is(outcomes($node, $_), 'timed_out', 'as one that is late');
    }
    value($node, q{SELECT pulse.set_task('act', timeout => '1 h')});
};

subtest 'ends that the server refuses, and ends by the words of the library' => sub {
    my %error = (
        bigint => qr/the result of act is no JSON/, 'throw null' => qr/^the handler threw null$/,
        'for good' => qr/no such address/, 'never commits' => qr/^its transaction did not commit$/);
    my %id = map {
        my %act = /commits/ ? (do => 'complete', dies => $_) : (do => $_);
        ($_ => act(delete $act{do}, %act, options => $once))
    } sort keys %error;
    for (sort keys %id) {
        is(wait_finished($id{$_}), 'failed|1|0', "$_: the job fails");
        like(of_finished('last_error', $id{$_}), $error{$_}, "$_: and says why");
    }
    is(wait_finished(act('snooze')), 'completed|1|0', 'a snooze gives the attempt back');
    is(wait_finished(act('rest')), 'completed|2|0', 'the rest of the work is the next attempt');
    is(wait_finished(act('report')), 'completed|2|0', 'an attempt gets the checkpoint');
};

subtest 'SIGTERM' => sub {
    $program->signal('TERM');
    is($program->wait_exit, FORCED, 'the handler that never returns ends with the process');
    $program = start();
    my ($obeys, $finishes) = (act('obey'), act('deaf', gate => gate('term')));
    wait_told('began', $_) for $obeys, $finishes;
    $program->signal('TERM');
    is((wait_told('told', $obeys))[2], 'shutdown', 'handlers are told');
    open_gate('term');
    is($program->wait_exit, 0, 'the program ends when all handlers have ended');
    is(outcomes($node, $obeys), 'interrupted', 'a job that ends for it runs again');
    is(value($node, 'SELECT sum(crashes) FROM pulse.job'), 0, 'without a crash');
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
};

subtest 'a handler that does not end' => sub {
    $program = start();
    my $deaf = act('deaf', gate => gate('never'));
    wait_told('began', $deaf);
    $program->signal('TERM');
    is($program->wait_exit, FORCED, 'ends with the process');
    is(value($node, "SELECT state, crashes FROM pulse.job WHERE id = $deaf"), 'ready|0',
        'and the job runs again, without a crash');
    value($node, "SELECT pulse.cancel_job($deaf)");
};

subtest 'an effect in the transaction of the handler happens once' => sub {
    value($node, q{SELECT pulse.set_task('act', max_attempts => 50, max_crashes => 50)});
    value($node, 'DELETE FROM effect');
    my @places = ('before the end', 'before the commit', 'after the commit', 'nowhere');
    my @jobs = map { act('complete', dies => $places[ $_ % @places ]) } 0 .. 19;
    my $ids = join ',', @jobs;
    # A supervisor starts the program anew.
    my $stop = gate('stop');
    $program = start(sub { [ 'sh', '-c', "while ! test -e '$stop'; do @_; done" ] });
    wait_finished($_) for @jobs;
    open_gate('stop');
    kill 'TERM', -$program->pid;
    $program->wait_exit;
    is(value($node, "SELECT state, count(*) FROM pulse.finished_job WHERE id IN ($ids) GROUP BY 1"),
        'completed|20', 'each job is completed, while its program is killed again and again');
    is(value($node, 'SELECT count(*), count(DISTINCT job) FROM effect'), '20|20',
        'with one effect');
};

subtest 'behind a pooler' => sub {
    plan skip_all => 'no pgbouncer' if !Pulse::Pooler::is_installed();
    my %address = Pulse::Pooler->start($node, 'pooler', size => 4)->address;
    $program = start(undef, PGHOST => $address{host}, PGPORT => $address{port});
    isnt($program->wait_exit, 0, 'the program is refused');
    my ($log) = glob "$PostgreSQL::Test::Utils::log_path/node_direct_program-$programs.err";
    like(slurp_file($log), qr/a pooler stands between.*pulse-worker --program/s, 'and says why');
};

expect_healthy($node);
done_testing();
