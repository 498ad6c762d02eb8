# P1, P3, P4, P6: the files of the new version serve the old SQL version, and ALTER EXTENSION UPDATE
# may happen while producers add, workers work and wait, tasks run, and the background worker
# sweeps: no worker is lost, no job is lost or takes a second attempt, and whoever holds the tables
# only delays the update.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

my $old = '0.1.0';
my $node = new_server('main', settings => { %QUICK, 'pulse.databases' => 'postgres' });
$node->start;
my $tasks = Pulse::Tasks->new(run => '', linger => 'tell began; wait_at lingerers');
my $admin = Pulse::Session->new($node);
$admin->query('CREATE EXTENSION pg_pulse');
my $newest = $admin->query('SELECT pulse.version()');

# Whatever there was is gone; the old version is installed.
sub start_over {
    $admin->query('DROP EXTENSION IF EXISTS pg_pulse');
    $admin->query("CREATE EXTENSION pg_pulse VERSION '$old'");
    return;
}

# Lives as long as its session, however slowly this test goes on.
sub new_worker {
    my ($name, $before) = @_;
    return Pulse::SqlWorker->new($node, $name, interval => '0', before => $before);
}

sub installed {
    return $admin->query(q{SELECT extversion FROM pg_extension WHERE extname = 'pg_pulse'});
}

subtest 'the new library serves the old version' => sub {
    start_over();
    my $worker = new_worker('ann');
    $worker->start_waiting;
    my $id = add_job($node, 'done', q{payload => '{"n": 1}'});
    is($worker->answer, '', 'a wait is ended by the commit of a job');
    my $job = $worker->must_claim;
    is($job->{id}, $id, 'which is claimed');
    my $claim = "$job->{id}, $job->{token}";
    $worker->query("SELECT pulse.progress($claim, 'half', 0.5, '[1]', 'reading')");
    is($worker->beat, 'alive', 'a heartbeat');
    is($worker->query("SELECT id FROM pulse.held(" . $worker->id . ')'), $id, 'it is held');
    $worker->query("BEGIN; SELECT pulse.fence($claim); COMMIT");
    $worker->complete($job);
    is(finished($node, $id), 'completed|1|0', 'and completed');

    add_job($node, 'fails', 'max_attempts => 2');
    $job = $worker->must_claim;
    $claim = "$job->{id}, $job->{token}";
    is($worker->query("SELECT pulse.fail($claim, 'no', true, '0')"), 'ready', 'one fails');
    my $again = $worker->must_claim;
    is($worker->refusal("SELECT pulse.complete($claim)"), 'PU001', 'its first claim is over');
    is($worker->query("SELECT pulse.fail($again->{id}, $again->{token}, 'no')"), 'failed',
        'and it fails for good');

    my @queued = add_jobs($node, 'queued', 3, 'q');
    for (@queued) { $worker->complete($worker->must_claim) }
    is(scalar $worker->claim, undef, 'a queue is worked off one by one');

    my $left = add_job($node, 'left', q{job_key => 'k'});
    my $doomed = Pulse::SqlWorker->new($node, 'doomed');
    $doomed->must_claim;
    $doomed->kill;
    wait_until($node, "SELECT count(*) = 1 FROM pulse.attempt WHERE job_id = $left", 'recovery');
    is(outcomes($node, $left), 'lost', 'the background worker recovers the job of a dead one');
    is(value($node, "SELECT (pulse.remove_job('k')).id"), $left, 'and can be removed');
    is(value($node, 'SELECT * FROM pulse.verify()'), '', 'no promise is broken');
    is(installed(), $old, 'all of that by the old version');
    $worker->quit;
};

# Adds jobs one transaction each, and works jobs off, until the table `go_on` is empty. In queues,
# with keys, in bulk: what holds locks in different orders. A call that returns rows of job as a set
# fails when a column comes while it waits for the update, and nothing is changed by it.
my $produce = q{DO $$
DECLARE n int := 0;
BEGIN
  WHILE EXISTS (SELECT FROM go_on) LOOP
    n := n + 1;
    IF n % 4 = 0 THEN
      BEGIN
        PERFORM pulse.add_jobs(ARRAY[('run', NULL, 'q' || n % 64, NULL, NULL, NULL, NULL, NULL),
          ('run', NULL, NULL, NULL, NULL, NULL, 1, NULL)]::pulse.job_spec[]);
      EXCEPTION WHEN datatype_mismatch THEN
      END;
    ELSE
      PERFORM pulse.add_job('run',
        job_key => CASE n % 4 WHEN 1 THEN pg_backend_pid() || 'x' || n END);
    END IF;
    COMMIT;
    IF n % 20 = 0 THEN
      PERFORM pulse.cancel_job((pulse.add_job('never')).id, 'too many');
      PERFORM FROM pulse.worker_status;
      COMMIT;
    END IF;
  END LOOP;
END $$};

sub consume {
    my ($id) = @_;
    return qq{DO \$\$
DECLARE ids bigint[]; tokens bigint[]; refused bigint;
BEGIN
  -- Tasks that are started one by one would not be done with the rest for long.
  WHILE EXISTS (SELECT FROM go_on) OR EXISTS (SELECT FROM pulse.job WHERE identifier = 'run') LOOP
    SELECT array_agg(c.id), array_agg(c.token) INTO ids, tokens
      FROM pulse.claim($id, 50, '{run}') AS c;
    COMMIT;
    IF ids IS NOT NULL THEN
      PERFORM pulse.fence(i, t) FROM unnest(ids, tokens) AS c (i, t);
      SELECT count(*) INTO refused FROM pulse.complete_many(ids, tokens)
       WHERE outcome <> 'accepted';
      IF refused > 0 THEN RAISE EXCEPTION '% not accepted', refused; END IF;
    END IF;
    PERFORM pulse.heartbeat($id);
    COMMIT;
    PERFORM pulse.sweep();
    COMMIT;
  END LOOP;
END \$\$};
}

my $jobs = q{(SELECT (SELECT count(*) FROM pulse.job) + (SELECT count(*) FROM pulse.finished_job))};

sub update_under_load {
    start_over();
    $admin->query('DROP TABLE IF EXISTS go_on; CREATE TABLE go_on AS SELECT 1 AS yes');
    my @workers =
      map { Pulse::Worker->start_registered($node, $_, tasks => $tasks, concurrency => 4) }
      qw(first second);
    my $waiting = new_worker('waiting');
    $waiting->start_waiting;
    my $lingering = add_job($node, 'linger');
    my $process = $tasks->process($tasks->wait_for('began', job => $lingering));
    my $consumer = new_worker('consumer');
    my @producers = map { Pulse::Session->new($node) } 1 .. 2;
    $_->ask($produce) for @producers;
    $consumer->ask(consume($consumer->id));
    wait_until($node, "SELECT $jobs > 300", 'there is load');

    $admin->query('ALTER EXTENSION pg_pulse UPDATE');
    is(installed(), $newest, 'the update succeeds under load');
    my $then = value($node, "SELECT $jobs");
    my %from = map { ($_->name => $_->lines->position) } @workers;
    wait_until($node, "SELECT $jobs > $then + 300", 'the load goes on');
    $_->wait_for('completed', from => $from{ $_->name }) for @workers;

    $admin->query('DELETE FROM go_on');
    for (@producers, $consumer) {
        $_->answer;
        unlike($_->said, qr/ERROR|FATAL/, 'no transaction failed');
        $_->quit if $_ != $consumer;
    }
    $tasks->open_gate('lingerers');
    wait_until($node, q{SELECT count(*) = 0 FROM pulse.job}, 'all jobs are done');
    is( value($node, q{SELECT identifier, state, count(*) FROM pulse.finished_job
            WHERE (state, attempts) IS DISTINCT FROM ('completed', 1)
              AND (identifier, state) IS DISTINCT FROM ('never', 'cancelled')
            GROUP BY 1, 2}),
        '', 'every job completed in one attempt');
    is(value($node, 'SELECT count(DISTINCT id) = count(*) FROM pulse.finished_job'),
        't', 'and once');
    is( value($node, 'SELECT string_agg(name || state, \' \' ORDER BY name) FROM pulse.worker'),
        'consumeralive firstalive secondalive waitingalive', 'no worker was lost or came anew');
    ok(defined finished($node, $lingering), 'a task that ran meanwhile has reported');
    $_->quit for $consumer, $waiting;
    for my $worker (@workers) {
        # A new worker says of the old version that it lacks a function, and does without, and of
        # its role that it is a superuser.
        my @trouble = grep {
            /"level":"(?:warning|error)"/ && !/"sqlstate":"42883"|"event":"superuser"/
        } $worker->lines->lines;
        is_deeply(\@trouble, [], $worker->name . ' noticed nothing');
        $worker->signal('TERM');
        is($worker->wait_exit, 0, 'and leaves');
    }
    is(value($node, 'SELECT * FROM pulse.verify()'), '', 'no promise is broken');
    return;
}

# Quick workers would not wait for an answer for as long as an update holds its locks.
set($node, 'pulse.heartbeat_interval' => '10s', 'pulse.sweep_threshold' => '60s');
for my $round (1 .. 3) {
    subtest "an update under load, round $round" => \&update_under_load;
}
set($node, map { $_ => $QUICK{$_} } qw(pulse.heartbeat_interval pulse.sweep_threshold));

subtest 'whoever holds the tables delays the update only' => sub {
    start_over();
    my $worker = new_worker('ann');
    my $holder = Pulse::Session->new($node);
    $holder->query(q{BEGIN; SELECT id FROM pulse.add_job('held')});
    is($admin->refusal(q{SET lock_timeout = '300ms'; ALTER EXTENSION pg_pulse UPDATE}),
        '55P03', 'lock_timeout ends it');
    is(installed(), $old, 'nothing is updated then');
    $admin->query('RESET lock_timeout');
    $admin->ask('ALTER EXTENSION pg_pulse UPDATE');
    # An update that stood in the way would never let go: the holder commits after this.
    $worker->query(q{SET lock_timeout = '20s'});
    $worker->query(q{SELECT id FROM pulse.add_job('meanwhile')}) for 1 .. 3;
    $worker->complete($worker->must_claim) for 1 .. 3;
    is($admin->has_answered, 0, 'while it waits, others add, claim and complete');
    $holder->query('COMMIT');
    $admin->answer;
    is(installed(), $newest, 'it is done when the holder is');
    $worker->complete($worker->must_claim);
    is(value($node, q{SELECT count(*) FROM pulse.finished_job}), 4, 'every job is completed');
    $worker->quit;
    $holder->quit;
};

# Has locked the jobs nearly always when it comes to the heartbeats; workers come the other way.
sub contrary {
    my ($id) = @_;
    return qq{DO \$\$
BEGIN
  WHILE EXISTS (SELECT FROM go_on) LOOP
    PERFORM pulse.add_job('held');
    SET LOCAL lock_timeout = '50ms';
    BEGIN
      PERFORM pg_advisory_xact_lock(1);
    EXCEPTION WHEN lock_not_available THEN
    END;
    SET LOCAL lock_timeout = 0;
    PERFORM pulse.heartbeat($id);
    COMMIT;
  END LOOP;
END \$\$};
}

subtest 'who uses the tables in another order than workers does not shut it out' => sub {
    start_over();
    $admin->query('DROP TABLE IF EXISTS go_on; CREATE TABLE go_on AS SELECT 1 AS yes');
    my $gate = Pulse::Session->new($node);
    $gate->query('SELECT pg_advisory_lock(1)');
    my @contrary = map { new_worker("contrary $_") } 1 .. 4;
    $_->ask(contrary($_->id)) for @contrary;
    wait_until($node, q{SELECT count(*) > 8 FROM pulse.job}, 'they are at it');
    $admin->query('ALTER EXTENSION pg_pulse UPDATE');
    is(installed(), $newest, 'an update');
    $admin->query('SET pulse.allow_drop = on; DROP EXTENSION pg_pulse; RESET pulse.allow_drop');
    is(installed(), '', 'nor a drop');
    $admin->query('DELETE FROM go_on');
    for (@contrary) { $_->answer; $_->quit }
    $gate->quit;
};

subtest 'an idle worker is not in the way, and is woken by the new version' => sub {
    start_over();
    # The ends of earlier sessions ask for a sweep, which may end a wait.
    my $began = value($node, 'SELECT clock_timestamp()');
    wait_until($node, "SELECT max(last_tick) > '$began'::timestamptz + interval '0.5 s'
        FROM pulse.clock", 'the ends of earlier sessions have been swept');
    # Nor may a late background worker, which makes those who wait look after it.
    my $worker = new_worker('ann', q{SET pulse.poll_interval = '1h'});
    $worker->start_waiting;
    $admin->query('ALTER EXTENSION pg_pulse UPDATE');
    is($worker->has_answered, 0, 'it still waits after the update');
    my $id = add_job($node, 'run');
    $worker->answer;
    is($worker->must_claim->{id}, $id, 'and a job wakes it');
    $worker->quit;
};

$admin->quit;
unlike(slurp_file($node->logfile), qr/\] (?:pg_pulse )?(?:WARNING|ERROR|FATAL):/,
    'the background worker has nothing to complain of');
expect_healthy($node);
done_testing();
