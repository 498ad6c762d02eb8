# Persistent processes: jobs as lines, and what becomes of them when the process dies, does not stop
# or does not speak as it should, and when its worker is killed or stopped.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Process;
use Pulse::ProgramRun qw(run_programs_on wait_finished drain);
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant FORCED => 75;

# take: the next job; answer KEY VALUE: its end, or progress of it.
my $speech = <<'SH';
take() {
    read -r line || exit 0
    [[ $line =~ '"job":{"id":'([0-9]+)',"token":'([0-9]+) ]] || return
    PULSE_JOB_ID=${BASH_REMATCH[1]} PULSE_TOKEN=${BASH_REMATCH[2]}
    [[ $line =~ '"attempt":'([0-9]+) ]] && PULSE_ATTEMPT=${BASH_REMATCH[1]}
}
answer() { echo "{\"id\":$PULSE_JOB_ID,\"$1\":$2}"; }
SH
my %scripts = (
    quick => 'while take; do tell ran; answer result $$; done',
    linger => 'while take; do tell began; wait_at lingerers; tell ended; answer result $$; done',
    pair => 'echo \'{"takes":2}\'; take; a=$PULSE_JOB_ID; take; answer result 1;
             PULSE_JOB_ID=$a answer result 2; take',
    partly => 'while take; do if [[ $line == *\'"payload":[1, 2],\'* ]]; then
               answer error \'"1 of 2 refused","payload":[2]\'; else
               [[ $line =~ payload\":([^,]*) ]]; answer result "${BASH_REMATCH[1]}"; fi; done',
    obey => 'while take; do tell began; read -r line; [[ $line =~ reason\":\"([a-z]+) ]];
             tell "${BASH_REMATCH[1]}"; answer error "\"stopped\""; done',
    careful => 'while take; do tell began; read -r line; answer snooze \'0,"checkpoint":7\'; done',
    deaf => 'trap "" TERM; setsid tail -f /dev/null & take; tell began; wait_at never',
    crash => 'take; echo "no luck" >&2; exit 7',
    nul => 'while take; do printf "a\0b\n\377\n\n[]\n"; echo \'{"id":1,"result":1}\';
            answer result 1; done',
    broken => 'take; printf \'{"id":%s,"result":"\377"}\n\' "$PULSE_JOB_ID"; take',
    flood => 'take; exec cat /dev/zero',
);

my $node = start_server('main', settings => \%QUICK);
run_programs_on($node);
my $tasks = Pulse::Tasks->new(map { ($_ => $speech . $scripts{$_}) } keys %scripts);
value($node, "SELECT pulse.set_task('$_', backoff => 'none')") for keys %scripts, 'greet';
my $workers = 0;

# A worker whose processes these are, by their name or as NAME=COMMAND.
sub start {
    my ($concurrency, $processes, @options) = @_;
    return Pulse::Worker->start_registered(
        $node, 'worker-' . ++$workers,
        concurrency => $concurrency, options => [
            (map { ('--process', /=/ ? $_ : "$_=" . $tasks->folder . "/$_") } @$processes),
            @options ]);
}

sub error_of {
    my ($id) = @_;
    return value($node, "SELECT last_error FROM pulse.finished_job WHERE id = $id");
}

for my $file (qw(process.py process.mjs process.sh)) {
    subtest "the example $file" => sub {
        my $worker = start(2, ["greet=worker/examples/$file"]);
        my @jobs = map { add_job($node, 'greet', qq('{"name": "Ada"}')) } 1 .. 50;
        my $bad = add_job($node, 'greet', q('{}', max_attempts => 1));
        is(wait_finished($bad), 'failed|1|0', 'a job without a name fails');
        my $ids = join ',', @jobs;
        wait_until($node, "SELECT count(*) = 50 FROM pulse.finished_job WHERE id IN ($ids)",
            'the others are done');
        is(value($node, "SELECT state, result ->> 'greeted', count(*) FROM pulse.finished_job
            WHERE id IN ($ids) GROUP BY 1, 2"), 'completed|Ada|50', 'with its result');
        drain($worker);
    };
}
my $example = slurp_file('worker/examples/process.py');
like(slurp_file('docs/tasks.md'), qr/^```python\n\Q$example\E```$/m,
    'docs/tasks.md shows the one in Python, to be pasted as it is');

subtest 'one job at a time, or as many as it says' => sub {
    my $worker = start(1, ['linger']);
    my @jobs = map { add_job($node, 'linger') } 1 .. 2;
    $tasks->wait_for('began', job => $jobs[0]);
    $tasks->open_gate('lingerers', 2);
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    my @words = map { /^(\w+) linger / } $tasks->lines->lines;
    is("@words", 'began ended began ended', 'one after the other');
    drain($worker);
    # It answers none before it has both.
    $worker = start(1, ['pair']);
    is(wait_finished($_), 'completed|1|0', "job $_") for add_jobs($node, 'pair', 2);
    drain($worker);
};

subtest 'a death fails only what it ran' => sub {
    my $worker = start(2, ['linger']);
    my ($job, $bystander) = map { add_job($node, 'linger', 'max_attempts => 1') } 1 .. 2;
    my ($told, $other) = map { $tasks->wait_for('began', job => $_) } $job, $bystander;
    isnt($told->{pid}, $other->{pid}, 'two processes');
    kill 'KILL', $told->{pid};
    is(wait_finished($job), 'failed|1|0', 'its job fails');
    like(error_of($job), qr/^its process was ended by signal 9 \(SIGKILL\)/, 'and says why');
    my $next = add_job($node, 'linger');
    isnt($tasks->wait_for('began', job => $next)->{pid}, $told->{pid}, 'another is started');
    $tasks->open_gate('lingerers', 2);
    is(wait_finished($_), 'completed|1|0', 'the others are done') for $bystander, $next;
    drain($worker);
};

subtest 'those that do not start, or not for long' => sub {
    my $ghostly = $tasks->folder . '/ghost';
    $tasks->add('ghost', 'exit 1');
    my $worker = start(3, [ "ghost=$ghostly --at all", 'crash', 'quick' ]);
    unlink $ghostly or die "$ghostly: $!";
    my $ghost = add_job($node, 'ghost', 'max_attempts => 1');
    my $crash = add_job($node, 'crash', 'max_attempts => 2');
    is(wait_finished($ghost), 'failed|1|0', 'a program that is not there');
    is(error_of($ghost), "cannot start $ghostly: No such file or directory", 'is named');
    is(wait_finished($crash), 'failed|2|0', 'one that ends before it answers');
    is(error_of($crash), 'its process exited with code 7 before it answered: no luck', 'as well');
    is(wait_finished(add_job($node, 'quick')), 'completed|1|0', 'others are not disturbed');
    drain($worker);
};

subtest 'what is left of a batch' => sub {
    my $worker = start(1, ['partly']);
    my $job = add_job($node, 'partly', q('[1, 2]'));
    is(wait_finished($job), 'completed|2|0', 'a batch that fails in part is tried again');
    is(value($node, "SELECT result FROM pulse.finished_job WHERE id = $job"), '[2]',
        'with what is left');
    drain($worker);
};

subtest 'told to stop' => sub {
    # Else a sweep may end what is late before its worker does.
    set($node, 'pulse.sweep_interval' => '-1');
    my $worker = start(2, [ 'obey', 'deaf', 'late=' . $tasks->folder . '/obey' ]);
    my $job = add_job($node, 'obey');
    my $told = $tasks->wait_for('began', job => $job);
    value($node, "SELECT pulse.cancel_job($job)");
    is($tasks->wait_for('cancelled', job => $job)->{pid}, $told->{pid}, 'a line tells it');
    is(wait_finished($job), 'cancelled|1|0', 'cancelled');
    value($node, "SELECT pulse.set_task('late', timeout => '2s')");
    $job = add_job($node, 'late', 'max_attempts => 1');
    $tasks->wait_for('timeout', job => $job);
    is(wait_finished($job), 'failed|1|0', 'timed out');
    like(error_of($job), qr/^timed out after 2s/, 'and says so');
    value($node, "SELECT pulse.set_task('deaf', timeout => '2s')");
    $job = add_job($node, 'deaf', 'max_attempts => 1');
    my @family = Pulse::Process->family($tasks->wait_for('began', job => $job)->{pid});
    is(wait_finished($job), 'failed|1|0', 'one that does not listen is killed');
    ok($_->wait_gone, 'process ' . $_->pid . ' is gone') for @family;
    drain($worker);
    value($node, "SELECT pulse.set_task('deaf', timeout => '1h')");
    set($node, 'pulse.sweep_interval' => '200ms');
};

subtest 'a claim that is taken away' => sub {
    my $worker = start(1, ['deaf']);
    my $job = add_job($node, 'deaf');
    my $process = $tasks->process($tasks->wait_for('began', job => $job));
    value($node, "SELECT pulse.requeue_job($job, 'by hand')");
    ok($process->wait_gone, 'its process is killed');
    $tasks->wait_for('began', job => $job, attempt => 2);
    value($node, "SELECT pulse.cancel_job($job)");
    is(wait_finished($job), 'cancelled|2|0', 'the job was run again');
    drain($worker);
};

subtest 'the grace of a stop is over' => sub {
    my $worker = start(2, [ 'obey', 'careful' ], '--grace', '2s');
    my ($obey, $careful) = map { add_job($node, $_) } qw(obey careful);
    $tasks->wait_for('began', job => $_) for $obey, $careful;
    $worker->signal('TERM');
    is($worker->wait_exit, FORCED, 'exit code');
    is(scalar($tasks->told('shutdown', job => $obey)), 1, 'the process heard why');
    is(outcomes($node, $obey), 'interrupted', 'an error does not count');
    is(value($node, "SELECT state, attempts, checkpoint FROM pulse.job WHERE id = $careful"),
        'ready|0|7', 'a snooze does');
    value($node, "SELECT pulse.cancel_job(id) FROM pulse.job");
};

subtest 'what it says is not as it should be' => sub {
    my $worker = start(2, [qw(nul broken flood quick)]);
    my ($nul, $broken, $flood, $quick) =
      map { add_job($node, $_, 'max_attempts => 1') } qw(nul broken flood quick);
    is(wait_finished($nul), 'completed|1|0', 'stray output is dropped');
    ok($worker->wait_for('lines_dropped', task => 'nul'), 'and counted');
    is(wait_finished($_), 'failed|1|0', "job $_ fails") for $broken, $flood;
    is(error_of($broken),
        'its process was ended: it wrote a line that is no JSON object as it should be',
        'an answer that cannot be read');
    is(error_of($flood), 'its process was ended: it wrote a line longer than 1 MB', 'a flood');
    is(wait_finished($quick), 'completed|1|0', 'others are not disturbed');
    my ($peak) = slurp_file('/proc/' . $worker->pid . '/status') =~ /VmHWM:\s+(\d+) kB/;
    cmp_ok($peak, '<', Pulse::Worker->is_sanitized ? 1_000_000 : 40_000, 'the worker stays small');
    drain($worker);
};

# The descendant that has left the group holds no job; it is gone all the same.
for my $signal ('KILL', 'STOP') {
    subtest "SIG$signal to the worker" => sub {
        my $doomed = start(1, ['deaf']);
        my $job = add_job($node, 'deaf');
        my @family = Pulse::Process->family($tasks->wait_for('began', job => $job)->{pid});
        cmp_ok(scalar(@family), '>', 1, 'it has a child');
        $doomed->signal($signal);
        ok($_->wait_gone, 'process ' . $_->pid . ' is gone') for @family;
        my $rescuer = start(1, ['deaf']);
        $tasks->wait_for('began', job => $job, attempt => 2);
        is(outcomes($node, $job), 'lost', 'its job is run again');
        value($node, "SELECT pulse.cancel_job($job)");
        is(wait_finished($job), 'cancelled|2|1', 'by another worker');
        $doomed->signal('CONT');
        drain($rescuer);
        $doomed->kill if $signal eq 'STOP';
    };
}

subtest 'ids that JavaScript would round' => sub {
    plan skip_all => 'no node here' if system('command -v node >/dev/null') != 0;
    my $worker = start(1, ['greet=node worker/examples/process.mjs']);
    # No shard gives such ids out.
    my @jobs = split /\n/, value($node, q{INSERT INTO pulse.job (id, identifier, payload)
        SELECT 9007199254740994 + i, 'greet', '{"name": "Ada"}' FROM generate_series(1, 2) AS i
        RETURNING id});
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    drain($worker);
};

expect_healthy($node);
done_testing();
