# C++ handlers through the installed library: what becomes of their jobs when they answer, throw,
# are told to stop, do not stop, and when their process is killed or stopped.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Handlers;
use Pulse::Program;
use Pulse::ProgramRun qw(run_programs_on wait_finished drain);
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, FORCED => 75 };

my $program = Pulse::Handlers::build('test/e2e/handlers') . '/pulse-handlers';
my $node = start_server('main', settings => { %QUICK, 'pulse.keep_completed' => '-1' });
run_programs_on($node);
# For its gates: the handlers are in the program.
my $tasks = Pulse::Tasks->new(gates => 'wait_at lingerers; wait_at reporters; wait_at never');
my @names = qw(run quick partly answer fall fling refuse wait again report linger careful stubborn
  batch);
value($node, "SELECT pulse.set_task('$_', backoff => 'none')") for @names;
my $workers = 0;

sub start {
    my ($concurrency, @options) = @_;
    return Pulse::Worker->start_registered(
        $node, 'worker-' . ++$workers,
        program => $program, tasks => $tasks, concurrency => $concurrency, options => \@options);
}

sub job_value {
    my ($id, $columns) = @_;
    return value($node, "SELECT $columns FROM pulse.job WHERE id = $id");
}

subtest 'answers' => sub {
    my $worker = start(2);
    my $answer = add_job($node, 'answer', q{'{"a": 1.50}'});
    is(wait_finished($answer), 'completed|1|0', 'success');
    is(value($node, "SELECT result FROM pulse.finished_job WHERE id = $answer"), '{"a": 1.50}',
        'with its result');
    my $partly = add_job($node, 'partly', q{'[1, 2]'});
    is(wait_finished($partly), 'completed|2|0', 'a batch that fails in part');
    is(value($node, "SELECT result FROM pulse.finished_job WHERE id = $partly"), '[2]',
        'is tried again with what is left');
    is(wait_finished(add_job($node, 'fall', 'max_attempts => 2')), 'failed|2|0',
        'an exception fails each attempt');
    is(wait_finished(add_job($node, 'fling', 'max_attempts => 1')), 'failed|1|0',
        'whatever is thrown');
    is(wait_finished(add_job($node, 'refuse')), 'failed|1|0', 'failed for good');
    my $later = add_job($node, 'wait');
    $worker->wait_for('failed', job => $later);
    is(job_value($later, q{state, attempts, last_error, run_at > pulse.now() + interval '50min'}),
        'ready|1|not yet|t', 'to be tried again when it says');
    my $again = add_job($node, 'again');
    is(wait_finished($again), 'completed|1|0', 'snoozed, the attempt is given back');
    is(value($node, "SELECT result FROM pulse.finished_job WHERE id = $again"), '[1, 2]',
        'and the checkpoint kept');
    drain($worker);
    value($node, "SELECT pulse.cancel_job($later)");
};

subtest 'progress' => sub {
    my $worker = start(1);
    my $job = add_job($node, 'report');
    $tasks->wait_for('reported', job => $job);
    wait_until($node, "SELECT progress = 0.5 AND message = 'halfway'
        AND stage = 'middle' AND checkpoint::text = '7' FROM pulse.job WHERE id = $job",
        'progress arrives');
    $tasks->open_gate('reporters');
    is(wait_finished($job), 'completed|1|0', 'completed');
    drain($worker);
};

subtest 'a batch answers for each job' => sub {
    my @jobs = add_jobs($node, 'batch', 9);
    my $odd = add_job($node, 'batch', q{job_key => 'odd'});
    my $worker = start(1, '--batch', 'yes');
    is(wait_finished($odd), 'failed|1|0', 'the odd one failed');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    is(scalar($tasks->told('took10')), 10, 'all were taken at once');
    drain($worker);
};

subtest 'told to stop: cancelled, timed out, stalled' => sub {
    # Else a sweep may end what is late before its worker does.
    set($node, 'pulse.sweep_interval' => '-1');
    my $worker = start(1);
    my $job = add_job($node, 'linger');
    $tasks->wait_for('began', job => $job);
    value($node, "SELECT pulse.cancel_job($job)");
    $tasks->wait_for('cancelled', job => $job);
    is(wait_finished($job), 'cancelled|1|0', 'cancelled');
    value($node, "SELECT pulse.set_task('limited', timeout => '2s')");
    $job = add_job($node, 'limited', 'max_attempts => 1');
    $tasks->wait_for('timed_out', job => $job);
    is(wait_finished($job), 'failed|1|0', 'timed out');
    value($node, "SELECT pulse.set_task('stalling', stall_timeout => '2s')");
    $job = add_job($node, 'stalling', 'max_attempts => 1');
    $tasks->wait_for('stalled', job => $job);
    is(wait_finished($job), 'failed|1|0', 'stalled');
    drain($worker);
    set($node, 'pulse.sweep_interval' => '200ms');
};

subtest 'told to stop: the grace is over' => sub {
    my $worker = start(2, '--grace', '2000');
    my $job = add_job($node, 'linger');
    my $careful = add_job($node, 'careful');
    $tasks->wait_for('began', job => $_) for $job, $careful;
    $worker->signal('TERM');
    is($worker->wait_exit, FORCED, 'exit code');
    is(scalar($tasks->told('shutdown', job => $job)), 1, 'the handler heard why');
    is(outcomes($node, $job), 'interrupted', 'its attempt was interrupted');
    is(job_value($job, 'state, attempts, crashes'), 'ready|1|0', 'and is consumed');
    is(job_value($careful, 'state, attempts, checkpoint'), 'ready|0|{"kept": true}',
        'an answer still counts');
    my $next = start(2);
    $tasks->wait_for('began', job => $job, attempt => 2);
    $tasks->open_gate('lingerers');
    is(wait_finished($job), 'completed|2|0', 'another worker does it');
    is(wait_finished($careful), 'completed|1|0', 'and goes on where the other was');
    drain($next);
};

subtest 'it does not stop' => sub {
    my $worker = start(2, '--stop-grace', '200');
    my $bystander = add_job($node, 'linger');
    my $job = add_job($node, 'stubborn');
    $tasks->wait_for('began', job => $_) for $bystander, $job;
    value($node, "SELECT pulse.cancel_job($job)");
    is($worker->wait_exit, FORCED, 'the process ends');
    is(scalar($worker->events('stubborn', job => $job, reason => 'cancelled')), 1, 'and says why');
    my $next = start(2);
    $tasks->wait_for('began', job => $bystander, attempt => 2);
    $tasks->open_gate('lingerers');
    is(wait_finished($bystander), 'completed|2|0', 'its other jobs are recovered');
    is(wait_finished($job), 'cancelled|1|1', 'and the job is cancelled');
    drain($next);
};

subtest 'it does not stop, and who embeds it keeps the process' => sub {
    my $worker = start(2, '--stop-grace', '200', '--grace', '100', '--keep', 'yes');
    my $job = add_job($node, 'stubborn', 'max_attempts => 1');
    $tasks->wait_for('began', job => $job);
    value($node, "SELECT pulse.cancel_job($job)");
    $tasks->wait_for('asked', job => $job);
    is(wait_finished(add_job($node, 'answer')), 'completed|1|0', 'it goes on with others');
    $tasks->open_gate('never');
    is(wait_finished($job), 'cancelled|1|0', 'the job ends when its handler does');
    drain($worker);
};

subtest 'killed' => sub {
    my $doomed = start(1);
    my $job = add_job($node, 'linger');
    $tasks->wait_for('began', job => $job);
    my $rescuer = start(1);
    is($doomed->kill, 'signal 9', 'the worker is killed');
    like($tasks->wait_for('began', job => $job, attempt => 2)->{recovered}, qr/^(host|session)$/,
        'another one is told why it runs again');
    $tasks->open_gate('lingerers');
    is(wait_finished($job), 'completed|2|0', 'completed once');
    is(outcomes($node, $job), 'lost completed', 'in its second attempt');
    drain($rescuer);
};

subtest 'stopped for so long that it is lost' => sub {
    my $frozen = start(1);
    my $job = add_job($node, 'linger');
    $tasks->wait_for('began', job => $job);
    my $rescuer = start(1);
    $frozen->signal('STOP');
    is($tasks->wait_for('began', job => $job, attempt => 2)->{recovered}, 'silence',
        'another worker runs its job');
    is(outcomes($node, $job), 'lost', 'the first one has lost it');
    $frozen->signal('CONT');
    $tasks->wait_for('lost', job => $job, attempt => 1);
    $tasks->open_gate('lingerers');
    is(wait_finished($job), 'completed|2|0', 'completed once');
    wait_until($node, "SELECT string_agg(outcome, ' ' ORDER BY token) = 'interrupted completed'
        FROM pulse.attempt WHERE job_id = $job", 'by the other one, and the first one lived');
    $frozen->wait_for('registered', count => 2);
    drain($_) for $rescuer, $frozen;
};

subtest 'drained: what has not begun goes back' => sub {
    my $worker = start(1);
    add_jobs($node, 'quick', 2000);
    $worker->wait_for('completed', count => 300);
    my $job = add_job($node, 'linger', 'priority => -10');
    $tasks->wait_for('began', job => $job);
    $worker->signal('TERM');
    $worker->wait_for('draining');
    $tasks->open_gate('lingerers');
    is($worker->wait_exit, DRAINED, 'exit code');
    note scalar($worker->events('released')) . ' jobs were released';
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE (state, attempts) <> ('ready', 0)}), 0,
        'whatever is left has all its attempts');
    my $next = start(2);
    wait_until($node, 'SELECT NOT EXISTS (SELECT FROM pulse.job)', 'the rest is done');
    is(value($node, q{SELECT count(*) FROM pulse.finished_job
        WHERE identifier = 'quick' AND (state, attempts) = ('completed', 1)}), 2000, 'each once');
    drain($next);
};

expect_healthy($node);
subtest 'without standard error' => sub {
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    my $mute = Pulse::Program->start('mute', [ 'sh', '-c', 'exec "$@" 2>&-', 'sh', $program,
        '--name', 'mute', '--concurrency', 1, '--database', $database ]);
    is(wait_finished(add_job($node, 'answer', q{'[]'})), 'completed|1|0', 'it works');
    is(readlink '/proc/' . $mute->pid . '/fd/2', '/dev/null', 'and its log goes nowhere else');
    $mute->signal('TERM');
    is($mute->wait_exit, DRAINED, 'and drains');
};

done_testing();
