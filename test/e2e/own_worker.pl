# P2, P3, P5: the example workers in worker/examples. One is killed and one is stopped in mid-job:
# all jobs are done, each completed once, and what the stopped one reports late is refused. They
# stop when told, end when the server goes, and survive jobs that they cannot run.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::ExampleWorker;
use Pulse::Gate;
use Pulse::Server;
use Pulse::Session;

use constant QUICK_JOBS => 30;

# As short as the examples' own intervals allow: nobody sweeps but they, every two seconds. The
# server's log names error codes.
my $node = start_server('main',
    settings => {
        %QUICK,
        'pulse.heartbeat_interval' => '1500ms',
        'pulse.sweep_interval' => '2s',
        'pulse.sweep_threshold' => '6s',
        log_error_verbosity => 'verbose'
    });
value($node, 'CREATE TABLE checksum (job bigint, sha256 text)');
# They need no other rights than these.
value($node, q{CREATE ROLE runner LOGIN; SELECT pulse.grant_worker('runner');
    GRANT INSERT ON checksum TO runner});
my $file = PostgreSQL::Test::Utils::tempdir('quick') . '/file';
append_to_file($file, 'quick');

# `stopped`: how the attempt of a stopped one ends. A session worker is not lost while its session
# lives: its task has a timeout, and it goes on. The others find that they are lost, and end.
my @examples = (
    {   file => 'short_jobs_worker.rb', task => 'checksum', gate => 'Pulse::Gate::File',
        quick => qq({"path": "$file"}), stopped => 'lost' },
    {   file => 'beating_worker.mjs', task => 'fetch', gate => 'Pulse::Gate::Page',
        quick => '{"url": "data:,quick"}', stopped => 'lost' },
    {   file => 'session_worker.py', task => 'checksum', gate => 'Pulse::Gate::File',
        quick => qq({"path": "$file"}), stopped => 'timed_out' },
);

my $example;    # that is tried now
my $started = 0;

sub start {
    my ($name) = @_;
    return Pulse::ExampleWorker->start_registered($node, "$name-" . ++$started,
        @{ $example->{command} });
}

# A job of the example's task: behind a gate, or one that is done at once.
sub add {
    my ($gate) = @_;
    my $payload = $gate ? $gate->payload : $example->{quick};
    return add_job($node, $example->{task}, "'$payload'");
}

sub running_by {
    my ($job, $worker) = @_;
    return "SELECT EXISTS (SELECT FROM pulse.job
        WHERE id = $job AND state = 'running' AND worker_id = " . $worker->id . ')';
}

# Stops the worker in the middle of this job and returns its token. One that limits the time of its
# jobs may just have ended it, and begins it again then.
sub stop_within {
    my ($worker, $job, $gate) = @_;
    $gate->wait_until_reached;
    while (1) {
        wait_until($node, running_by($job, $worker), $worker->name . ' runs the job');
        $worker->signal('STOP');
        last if value($node, running_by($job, $worker)) eq 't';
        $worker->signal('CONT');
    }
    return value($node, "SELECT token FROM pulse.job WHERE id = $job");
}

sub wait_completed {
    my (@jobs) = @_;
    my $in = join ',', @jobs;
    wait_until($node, 'SELECT count(*) = ' . @jobs . " FROM pulse.finished_job
        WHERE state = 'completed' AND id IN ($in)", 'all are completed');
    return;
}

sub end {
    my (@workers) = @_;
    $_->signal('TERM') for @workers;
    for (@workers) {
        is($_->wait_exit, 0, $_->name . ' ends when it is told to');
        is($_->state, 'stopped', 'in order');
    }
    return;
}

# Each completed once, and no other way than by its claim: their rows are of the same transaction.
sub expect_once {
    my (@jobs) = @_;
    my $in = join ',', @jobs;
    is(value($node, "SELECT count(*) FROM pulse.attempt
        WHERE outcome = 'completed' AND job_id IN ($in)"), @jobs, 'each job completed once');
    is(value($node, "SELECT count(*) FROM pulse.attempt WHERE job_id IN ($in)
        AND outcome NOT IN ('completed', 'lost', 'interrupted', 'timed_out', 'failed')"), 0,
        'and none was given back');
    return if $example->{task} ne 'checksum';
    is(value($node, "SELECT count(*) FROM checksum WHERE job IN ($in)"), @jobs,
        'each left one row');
    return;
}

sub recovers_from_kills {
    my $gate = $example->{gate}->new;
    my $doomed = start('doomed');
    my $killed_job = add($gate);
    stop_within($doomed, $killed_job, $gate);
    $gate->let_others_pass;
    is($doomed->kill, 'signal 9', 'one is killed in mid-job');
    my $stopped = start('stopped');
    $gate->serve_next;
    wait_completed($killed_job);
    like(outcomes($node, $killed_job), qr/\blost completed$/, 'its job was lost, and done again');

    $gate = $example->{gate}->new;
    my $stopped_job = add($gate);
    my $token = stop_within($stopped, $stopped_job, $gate);
    $gate->let_others_pass;
    my @next = map { start('next') } 1 .. 2;
    my $unknown = add_job($node, 'unknown');
    my @quick = map { add() } 1 .. QUICK_JOBS;
    $gate->serve_next;
    wait_completed($stopped_job, @quick);
    like(outcomes($node, $stopped_job), qr/\b$example->{stopped} completed$/,
        "one is stopped in mid-job, which was $example->{stopped} and done again");
    is(value($node, "SELECT state FROM pulse.job WHERE id = $unknown"), 'ready',
        'a task that they do not know is left to others');
    value($node, "SELECT pulse.cancel_job($unknown)");
    my $session = Pulse::Session->new($node);
    is($session->refusal("SELECT pulse.complete($stopped_job, $token)"), 'PU001',
        'a completion by its claim is refused');
    $session->quit;

    my $log = -s $node->logfile;
    $gate->let_first_pass;
    $stopped->signal('CONT');
    if ($example->{stopped} eq 'lost') {
        is($stopped->wait_exit, 0, 'when it goes on it ends');
        is($stopped->state, 'lost', 'because it is lost');
        end(@next);
    } else {
        $node->wait_for_log(qr/PU001: +the claim of job $stopped_job is lost/, $log);
        end(@next);
        my $last = add();
        wait_completed($last);
        is(value($node, "SELECT worker_id FROM pulse.finished_job WHERE id = $last"),
            $stopped->id, 'when it goes on it is refused, and runs the next job');
        end($stopped);
    }
    expect_once($killed_job, $stopped_job, @quick);
    return;
}

# Jobs that it cannot run fail, and do not end it.
sub survives_bad_jobs {
    my $worker = start('bad');
    my @bad = map { add_job($node, $example->{task}, "'$_', max_attempts => 1") }
      'null', '{}', '[1]', '"\u0000"', '{"path": "/no/such", "url": "http://[/"}',
      '{"path": "\u0000", "url": "\u0000"}', qq({"path": "/", "url": "data:"});
    my $good = add();
    wait_completed($good);
    for (@bad) {
        my $end = value($node, "SELECT state || ' ' || left(last_error, 60)
            FROM pulse.finished_job WHERE id = $_");
        like($end, qr/^failed \S/, "job $_ fails");
    }
    is(value($node, "SELECT worker_id FROM pulse.finished_job WHERE id = $good"), $worker->id,
        'and the worker lives');
    end($worker);
    return;
}

# For those that beat while a job runs.
sub ends_revoked_work {
    my $worker = start('revoked');
    for my $function ('requeue_job', 'cancel_job') {
        my $gate = $example->{gate}->new;
        my $job = add($gate);
        $gate->wait_until_reached;
        value($node, "SELECT pulse.$function($job, 'by hand')");
        ok($gate->is_abandoned, "$function ends the work");
        next if $function eq 'cancel_job';
        $gate->serve_next;
        wait_completed($job);
        is(outcomes($node, $job), 'interrupted completed', 'and the job is run again');
    }
    end($worker);
    return;
}

sub ends_as_told {
    my $worker = start('drained');
    value($node, 'SELECT pulse.drain_worker(' . $worker->id . ')');
    is($worker->wait_exit, 0, 'one that is drained ends');
    is($worker->state, 'stopped', 'in order');

    $worker = start('told');
    my $gate = $example->{gate}->new;
    my $job = add($gate);
    stop_within($worker, $job, $gate);
    $worker->signal('TERM');
    $gate->let_first_pass;
    $worker->signal('CONT');
    is($worker->wait_exit, 0, 'one that is told in mid-job ends');
    is($worker->state, 'stopped', 'in order');
    my $outcome = value($node, "SELECT outcome FROM pulse.attempt WHERE job_id = $job
        ORDER BY token DESC LIMIT 1");
    like($outcome, qr/^(?:completed|interrupted|failed)$/, 'and gives its job back, or ends it');
    value($node, "SELECT pulse.cancel_job($job)");
    return;
}

sub ends_with_the_server {
    my $worker = start('restarted');
    $worker->wait_until_idle;
    $node->restart;
    is($worker->wait_exit, 1, 'when the server goes it ends with an error');
    like($worker->said, qr/terminating connection due to administrator command/,
        'and says why');
    my $job = add();
    $worker = start('again');
    wait_completed($job);
    end($worker);
    return;
}

for (@examples) {
    $example = $_;
    $example->{command} = Pulse::ExampleWorker->command($example->{file});
    subtest $example->{file} => sub {
        plan skip_all => $example->{command} if !ref $example->{command};
        my $timeout = $example->{stopped} eq 'timed_out' ? "'3s'" : 'NULL';
        value($node, "SELECT pulse.set_task('$example->{task}', backoff => 'none',
            timeout => $timeout)");
        recovers_from_kills();
        survives_bad_jobs();
        ends_revoked_work() if $example->{gate}->can('is_abandoned');
        ends_as_told();
        ends_with_the_server();
    };
}

expect_healthy($node);
done_testing();
