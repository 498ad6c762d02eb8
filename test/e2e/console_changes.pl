# pulse retry, cancel, fail and reschedule change the jobs that were named and no other, after a
# question, on record; a change that was killed goes on, and undo brings back what has not moved.
# PULSE_JOBS says of how many jobs (10,000).
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Console;
use Pulse::Program;
use Pulse::Server;
use Pulse::Session;

use constant { DONE => 0, REFUSED => 1, USAGE => 64 };

my $jobs = $ENV{PULSE_JOBS} // 10_000;
my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE an_observer LOGIN; SELECT pulse.grant_observer('an_observer')});

sub failed_jobs {
    my ($task, $count) = @_;
    my $worker = value($node, "SELECT id FROM pulse.register_worker('w', ARRAY['$task'])");
    value($node, "SELECT pulse.add_job('$task') FROM generate_series(1, $count)");
    value($node, "WITH c AS (SELECT array_agg(id) AS ids, array_agg(token) AS tokens
        FROM pulse.claim($worker, $count)) SELECT count(*) FROM c, pulse.fail_many(c.ids, c.tokens,
        array_fill('out of ' || '$task', ARRAY[$count]), array_fill(false, ARRAY[$count]))");
    return split /\n/, value($node,
        "SELECT id FROM pulse.finished_job WHERE identifier = '$task' ORDER BY id");
}

sub states {
    my ($task) = @_;
    return value($node, qq{SELECT string_agg(state || ' ' || jobs, ', ' ORDER BY state) FROM (
        SELECT s.state, count(*) AS jobs FROM (
            SELECT state::text FROM pulse.job WHERE identifier = '$task'
            UNION ALL SELECT state::text FROM pulse.finished_job WHERE identifier = '$task') AS s
        GROUP BY s.state) AS c});
}

my @ink = failed_jobs('ink', 5);
failed_jobs('oil', 3);

subtest 'nothing is changed without a yes' => sub {
    is(pulse($node, 'retry')->{status}, USAGE, 'no job is named');
    my $said = pulse($node, 'retry', '--task', 'ink');
    is($said->{status}, REFUSED, 'no terminal to ask on');
    like($said->{err}, qr/\A *job +task .*\n *$ink[0] +ink +failed .* out of ink\n/, 'shows which');
    is(states('ink'), 'failed 5', 'nothing has happened');
    $said = pulse($node, 'retry', '--task', 'none', '--yes');
    is($said->{status}, REFUSED, 'no such job');
    like($said->{err}, qr/no job to retry meets \{"task":"none"\}/, 'and which it was to be');
    is(pulse_as($node, 'an_observer', 'retry', $ink[0], '--yes')->{status}, 77,
        'an observer may not');
};

subtest 'jobs by id and by filter' => sub {
    my $said = pulse($node, 'retry', @ink[0, 1], '--yes');
    is($said->{status}, DONE, 'two are named');
    like($said->{out}, qr/retry of 2 jobs; pulse undo \d+ takes it back\n\z/, 'which is told');
    is(states('ink'), 'failed 3, ready 2', 'two are retried');
    pulse($node, 'retry', '--error', 'OF INK', '--yes');
    is(states('ink') . '; ' . states('oil'), 'ready 5; failed 3', 'all with this error are');
    pulse($node, 'reschedule', '--task', 'ink', '--priority', '7', '--yes');
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE priority = 7}), 5, 'all have moved');
    pulse($node, 'cancel', $ink[0], '--reason', 'not needed', '--yes');
    pulse($node, 'fail', $ink[1], '--message', 'spilled', '--yes');
    is(states('ink'), 'cancelled 1, failed 1, ready 3', 'one is cancelled, one fails');
    is(value($node, "SELECT last_error FROM pulse.finished_job WHERE id = $ink[1]"), 'spilled',
        'with this error');
};

subtest 'an operation is on record and is undone' => sub {
    my $said = json_of(pulse($node, '--json', 'retry', '--task', 'oil', '--yes')->{out});
    is_deeply([ @{$said}{qw(action state changed)} ], [ 'retry', 'done', 3 ], 'three are retried');
    my ($row) = @{ rows_of($node, 'operations') };
    like(pulse($node, 'operations')->{out}, qr/^.* role +for +started/,
        'the role, which the server knows, stands before the name that the caller gave');
    is($row->{id}, $said->{id}, 'it stands among the operations');
    is($row->{actor}, (getpwuid $>)[0], 'with the user who did it');
    value($node, q{UPDATE pulse.job SET priority = 3, revision = revision + 1
        WHERE id = (SELECT min(id) FROM pulse.job WHERE identifier = 'oil')});
    like(pulse($node, 'operations', 'stop', $said->{id})->{out}, qr/is done: retry of 3 jobs/,
        'it is not stopped, because it is done');
    is(json_of(pulse($node, '--json', 'operations', 'stop', $said->{id})->{out})->{state}, 'done',
        'as JSON says, too');
    my $undone = pulse($node, 'undo', $said->{id}, '--yes');
    is($undone->{status}, DONE, 'it is undone');
    like($undone->{out}, qr/1 left alone \(1: it has moved since\)/, 'and says what not, and why');
    is(states('oil'), 'failed 2, ready 1', 'but for the job that has moved since');
};

subtest 'a change that changes nothing says why' => sub {
    my $id = add_job($node, 'held');
    my $holder = Pulse::Session->new($node);
    $holder->query("BEGIN; SELECT id FROM pulse.job WHERE id = $id FOR UPDATE");
    my $said = pulse($node, 'cancel', $id, '--yes');
    is($said->{status}, REFUSED, 'it has not been made');
    like($said->{out}, qr/1 left alone \(1: another transaction holds it\)/, 'because of a lock');
    $holder->query('ROLLBACK');
    $said = pulse($node, 'reschedule', $id, '--yes');
    is($said->{status}, REFUSED, 'nor is one without new values');
    like($said->{err}, qr/run_at, priority, attempts or max_attempts/, 'which says what it takes');
    is(value($node, "SELECT revision FROM pulse.job WHERE id = $id"), 0, 'and changes nothing');
    is(pulse($node, 'cancel', $id, '--yes')->{status}, DONE, 'free, the job is cancelled');
};

subtest 'a change that is killed goes on' => sub {
    failed_jobs('bulk', 10_000) for 1 .. $jobs / 10_000;
    is(value($node, q{SELECT jobs FROM pulse.preview_operation('retry', '{"task": "bulk"}')}),
        $jobs, 'the preview counts them');
    # A step waits for this session once half of them, or of fewer jobs one, have been changed.
    my $half = $jobs > 10_000 ? $jobs / 2 : 1;
    value($node, qq{CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
        CREATE TRIGGER wait BEFORE UPDATE ON pulse.operation FOR EACH ROW
          WHEN (OLD.changed >= $half) EXECUTE FUNCTION wait()});
    my $gate = Pulse::Session->new($node);
    $gate->query('SELECT pg_advisory_lock(1)');
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    my $program = Pulse::Program->start('killed',
        [ 'pulse', '-d', $database, 'retry', '--task', 'bulk', '--yes' ], output => 'stderr');
    wait_until($node, q{SELECT count(*) = 1 FROM pg_stat_activity
        WHERE application_name = 'pulse' AND wait_event = 'advisory'}, 'half of them');
    $program->kill;
    wait_until($node, q{SELECT NOT EXISTS (SELECT FROM pg_stat_activity
        WHERE application_name = 'pulse' AND state = 'active')}, 'the end of its session');
    $gate->quit;
    value($node, 'DROP TRIGGER wait ON pulse.operation');
    my ($row) = @{ rows_of($node, 'operations') };
    is($row->{state}, 'running', 'it is not done');
    $program->lines->wait_for('how it goes on',
        sub { $_[0] =~ /pulse operations run $row->{id}"/ });
    my $said = pulse($node, 'operations', 'run', $row->{id});
    like($said->{out}, qr/is done: retry of [\d,]+ jobs; /, 'another pulse ends it');
    is(states('bulk'), "ready $jobs", 'each job was retried once');
    my $worker = value($node, q{SELECT id FROM pulse.register_worker('w', '{bulk}')});
    value($node, "SELECT count(*) FROM (SELECT pulse.complete(c.id, c.token)
        FROM pulse.claim($worker, 100) AS c) AS done");
    pulse($node, 'undo', $row->{id}, '--yes');
    is(states('bulk'), 'completed 100, failed ' . ($jobs - 100),
        'and undo brings back all that had not run');
};

expect_healthy($node);
done_testing();
