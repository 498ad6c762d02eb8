# P3, P4, P10: tasks that are functions of the database. What a function does and the completion of
# its job are one transaction, so that it happens exactly once, whatever becomes of the worker.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%QUICK);
my $folder = Pulse::Tasks->new(run => 'tell ran');
$node->safe_psql('postgres', <<'SQL');
CREATE SCHEMA app;
CREATE TABLE app.effect (job_id bigint, token bigint, attempt int);
CREATE FUNCTION app.count(job pulse.claimed_job) RETURNS json LANGUAGE sql AS $$
  INSERT INTO app.effect VALUES (job.id, job.token, job.attempts) RETURNING to_json(attempt) $$;
-- Writes, then waits for as long as somebody holds the gate's lock.
CREATE FUNCTION app.linger(job pulse.claimed_job) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.effect VALUES (job.id, job.token, job.attempts);
  IF job.attempts = 1 THEN
    PERFORM pg_advisory_xact_lock(1);
  END IF;
END $$;
CREATE FUNCTION app.refuse(payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.effect VALUES (0, 0, 0);
  RAISE EXCEPTION 'no such customer' USING ERRCODE = 'P0002', DETAIL = 'It is unknown.';
END $$;
CREATE FUNCTION app.stubborn(payload json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    BEGIN
      PERFORM pg_advisory_xact_lock(1);
    EXCEPTION WHEN query_canceled THEN NULL;
    END;
  END LOOP;
END $$;
SELECT pulse.set_task('count', backoff => 'none', handler => 'app.count(pulse.claimed_job)');
SELECT pulse.set_task('linger', backoff => 'none', handler => 'app.linger(pulse.claimed_job)');
SELECT pulse.set_task('refuse', max_attempts => 1, handler => 'app.refuse(jsonb)');
SELECT pulse.set_task('stubborn', max_attempts => 1, timeout => '300 ms',
                      handler => 'app.stubborn(json)');
SQL

sub effects { return value($node, "SELECT string_agg(attempt::text, ' ') FROM app.effect
                                    WHERE job_id = $_[0]") }

# A function that waits in its transaction until the returned session goes.
sub hold_gate {
    my $holder = Pulse::Session->new($node);
    $holder->query('SELECT pg_advisory_lock(1)');
    return $holder;
}
sub wait_until_lingering {
    my ($job) = @_;
    wait_until($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'},
        "job $job waits in its function");
    return;
}

subtest 'functions and executables side by side' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'both', tasks => $folder);
    my $function = add_job($node, 'count');
    my $executable = add_job($node, 'run');
    $worker->wait_for('completed', job => $_) for $function, $executable;
    is(effects($function), '1', 'the function was called once');
    is(scalar($folder->told('ran', job => $executable)), 1, 'the executable was run once');
    my $refused = add_job($node, 'refuse');
    $worker->wait_for('failed', job => $refused);
    my $error = value($node, "SELECT job ->> 'last_error' FROM pulse.get_job($refused)");
    like($error, qr/^P0002: no such customer\nDETAIL: It is unknown\./, 'an error is kept');
    like($error, qr/\nCONTEXT: PL\/pgSQL function app\.refuse/, 'with its context');
    is(effects(0), '', 'its effects are undone');
    is($worker->kill, 'signal 9', 'the worker ends');
};

subtest 'a handler that is set while workers run is served, and no more once taken away' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'listening', tasks => $folder);
    $node->safe_psql('postgres',
        q{SELECT pulse.set_task('late', handler => 'app.count(pulse.claimed_job)')});
    my $job = add_job($node, 'late');
    $worker->wait_for('completed', job => $job);
    is(effects($job), '1', 'its function was called');
    $node->safe_psql('postgres', q{SELECT pulse.unset_task('late')});
    # At its start, with it, without it.
    my (undef, undef, $served) = $worker->wait_for('functions', count => 3);
    unlike($served->{names}, qr/late/, 'without its handler the task is served no more');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

subtest 'the session of a function can be told from others' => sub {
    my $holder = hold_gate();
    my $worker = Pulse::Worker->start_registered($node, 'named', tasks => $folder);
    my $job = add_job($node, 'linger');
    wait_until_lingering($job);
    my ($pid, $name) = split /\|/, value($node, q{SELECT pid, application_name
        FROM pg_stat_activity WHERE wait_event = 'advisory'});
    is($name, "pulse-worker job $job, named", 'by its name, which tells nobody the task');
    $worker->signal('USR1');
    is($worker->wait_for('running', job => $job)->{pid}, $pid, 'and SIGUSR1 names its process');
    $holder->quit;
    $worker->wait_for('completed', job => $job);
    is(value($node, q{SELECT count(*) FROM pg_stat_activity
        WHERE application_name LIKE 'pulse-worker job %'}), 0, 'only for as long as it runs');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

subtest 'a worker that is killed while its function runs' => sub {
    my $holder = hold_gate();
    my $doomed = Pulse::Worker->start_registered($node, 'doomed', tasks => $folder);
    my $job = add_job($node, 'linger');
    wait_until_lingering($job);
    my $rescuer = Pulse::Worker->start_registered($node, 'rescuer', tasks => $folder);
    is($doomed->kill, 'signal 9', 'the worker is killed');
    $rescuer->wait_for('completed', job => $job);
    $holder->quit;
    wait_until($node, q{SELECT count(*) = 0 FROM pg_stat_activity
        WHERE query LIKE '%perform_job%' AND pid <> pg_backend_pid()
          AND application_name LIKE '%doomed%'}, 'the orphaned transaction has ended');
    is(effects($job), '2', 'only the attempt that counts has left something');
    is($rescuer->kill, 'signal 9', 'the other worker ends');
};

subtest 'a worker that is stopped beyond the threshold while its function runs' => sub {
    my $holder = hold_gate();
    my $stopped = Pulse::Worker->start_registered($node, 'stopped', tasks => $folder);
    my $job = add_job($node, 'linger');
    wait_until_lingering($job);
    my $rescuer = Pulse::Worker->start_registered($node, 'heir', tasks => $folder);
    $stopped->signal('STOP');
    $rescuer->wait_for('completed', job => $job);
    $holder->quit;
    $stopped->signal('CONT');
    $stopped->wait_for('lost');
    is(effects($job), '2', 'the transaction of the lost claim has failed');
    my $next = add_job($node, 'count');
    wait_until($node, "SELECT count(*) = 1 FROM app.effect WHERE job_id = $next",
        'and both go on');
    is($_->kill, 'signal 9', 'the workers end') for $stopped, $rescuer;
};

subtest 'limits' => sub {
    my $holder = hold_gate();
    my $worker = Pulse::Worker->start_registered($node, 'strict', tasks => $folder);
    my $job = add_job($node, 'stubborn');
    wait_until($node, "SELECT state = 'failed' AND job ->> 'last_error' LIKE 'timed out after%'
        FROM pulse.get_job($job)", 'what swallows its cancellation fails by its timeout');
    wait_until($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event = 'advisory'},
        'and its session does not stay');
    my $cancelled = add_job($node, 'linger');
    wait_until_lingering($cancelled);
    value($node, "SELECT pulse.cancel_job($cancelled)");
    my $told = $worker->wait_for('cancelled', job => $cancelled);
    is("$told->{level} $told->{outcome}", 'info cancelled', 'a job that is cancelled did not fail');
    is_deeply([ $worker->events('failed', job => $cancelled) ], [], 'nor does the log say so');
    is(value($node, "SELECT state FROM pulse.get_job($cancelled)"), 'cancelled',
        'one that is cancelled ends');
    is(effects($cancelled), '', 'and leaves nothing');
    $holder->quit;
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

subtest 'a function whose owner could gain the rights of the worker' => sub {
    value($node, q{CREATE ROLE author; CREATE ROLE runner LOGIN;
        SELECT pulse.grant_worker('runner');
        CREATE FUNCTION author_task(payload json) RETURNS void LANGUAGE sql AS 'SELECT 1';
        ALTER FUNCTION author_task(json) OWNER TO author;
        SELECT pulse.set_task('author_task', handler => 'author_task(json)')});
    local $ENV{PGUSER} = 'runner';
    my $worker = Pulse::Worker->start_registered($node, 'runner', tasks => $folder);
    my $reason = $worker->wait_for('server_warns')->{reason};
    like($reason, qr/tasks: author_task \(Their owners could act/, 'is left out, the log says why');
    like($reason, qr/: Make them .*, or GRANT runner TO their owners\.$/, 'and what to do');
    is($worker->kill, 'signal 9', 'the worker ends');
};

subtest 'without a tasks folder' => sub {
    my $job = add_job($node, 'count');
    my $worker = Pulse::Worker->start_registered($node, 'pure', options => ['--once']);
    $worker->wait_for('completed', job => $job);
    is($worker->wait_exit, 0, 'functions are performed all the same');
};

expect_healthy($node);
done_testing();
