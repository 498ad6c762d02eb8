# P1, P4: an add wakes a worker before it is on disk, so that the add and the claim share a flush.
# Nobody hears of either before that. Here a backend that flushes the log is stopped in the middle,
# so that whoever has to wait for the disk waits.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

# Nothing but what is asked for here may write to the log, or need a page that waits for it.
my $node = start_server('main', streaming => 1, settings => { %PATIENT,
    fsync => 'on', autovacuum => 'off', wal_log_hints => 'off', shared_buffers => '16MB' });
value($node, q{CREATE TABLE others (of text);
    CREATE FUNCTION copy_job() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN INSERT INTO public.others VALUES (NEW.identifier); RETURN NEW; END'});

my %session = map { $_ => Pulse::Session->new($node) } qw(observer flusher witness producer worker);
my $id = $session{worker}->query(q{SELECT id FROM pulse.register_worker('w')});
# What a session reads for the first time it may also tidy up, which is written to the log as well.
$session{producer}->query(q{BEGIN\; SELECT pulse.add_job('early')\; ROLLBACK});

sub seen { return $session{observer}->query($_[0]) }

sub is_waiting_for {
    my ($name, $event) = @_;
    return seen("SELECT state = 'active' AND wait_event = '$event' AND wait_event_type <> 'IO'
        FROM pg_stat_activity WHERE pid = " . $session{$name}->backend_pid) eq 't';
}

# Looks without a pause.
sub wait_for {
    my ($what, $condition) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    until ($condition->()) { die "never: $what\n" if time > $end }
    return;
}

sub wait_for_event {
    my ($name, $event) = @_;
    wait_for("$name waits for $event", sub { is_waiting_for($name, $event) });
    return;
}

# Commits something, which makes him wait for what commits wait for now, if for anything.
sub commit_by_witness {
    my ($event) = @_;
    $session{witness}->ask(q{INSERT INTO others VALUES ('witness')});
    wait_for('the witness waits or is done',
        sub { is_waiting_for('witness', $event) || $session{witness}->has_answered });
    return;
}

# The flusher sleeps before it flushes, with the lock that every flush needs, and is stopped there.
# The witness shows that it has the lock: he wants it, and still does a while after the stop.
sub stop_log {
    my $pid = $session{flusher}->backend_pid;
    $session{flusher}->query('SET commit_delay = 100000; SET commit_siblings = 0');
    for (1 .. 50) {
        $session{flusher}->ask(q{INSERT INTO others VALUES ('flusher')});
        commit_by_witness('WALWrite');
        kill 'STOP', $pid;
        seen('SELECT 1') for 1 .. 20;
        return if is_waiting_for('witness', 'WALWrite') && !is_waiting_for('flusher', 'WALWrite');
        kill 'CONT', $pid;
        $session{$_}->answer for qw(flusher witness);
    }
    die "the log could not be stopped\n";
}

sub continue_log {
    kill 'CONT', $session{flusher}->backend_pid;
    $session{$_}->answer for qw(flusher witness);
    return;
}

# Claims, finds nothing, and waits; then claims again.
sub start_waiting {
    value($node, 'SELECT pulse.sweep()');    # so that nobody is asked for one
    is($session{worker}->query("SELECT count(*) FROM pulse.claim($id)"), 0, 'nothing to do yet');
    $session{worker}->ask("CALL pulse.wait_for_job($id, '1 hour');
        SELECT identifier, token FROM pulse.claim($id)");
    wait_for_event('worker', 'Extension');
    return;
}

sub visible_jobs { return seen('SELECT count(*) FROM pulse.job') }

# What the worker got, which is nothing if it was not woken: then it is.
sub finish {
    my ($task) = @_;
    value($node, 'SELECT pulse._note_everybody()') if is_waiting_for('worker', 'Extension');
    like($session{worker}->answer, qr/^$task\|\d+$/, 'and gets the job in the end');
    value($node, "SELECT pulse.complete(id, token) FROM pulse.job");
    return;
}

subtest 'a worker is woken before the add is on disk, and both wait for that' => sub {
    start_waiting();
    stop_log();
    $session{producer}->ask(q{SELECT pulse.add_job('early')});
    wait_for_event($_, 'WALWrite') for qw(producer worker);
    is(visible_jobs(), 1, 'the job can be seen');
    ok(!$session{$_}->has_answered, "the $_ has no answer") for qw(producer worker);
    continue_log();
    like($session{producer}->answer, qr/early/, 'the producer hears of it');
    finish('early');
};

# Each of these commits as any other: what it wrote is seen when it is on disk.
sub expect_flushed_first {
    my ($add, $what) = @_;
    subtest $what => sub {
        start_waiting();
        stop_log();
        $session{producer}->ask($add);
        wait_for_event('producer', 'WALWrite');
        is(visible_jobs(), 0, 'the job is not seen');
        ok(is_waiting_for('worker', 'Extension'), 'nobody was woken');
        continue_log();
        $session{producer}->answer;
        value($node, 'SELECT pulse.reschedule_jobs(ARRAY[id], now()) FROM pulse.job');
        finish('late');
    };
    return;
}

expect_flushed_first(
    q{BEGIN\; INSERT INTO others VALUES ('before')\; SELECT pulse.add_job('late')\; COMMIT},
    'a transaction that wrote something before');
expect_flushed_first(
    q{BEGIN\; SELECT pulse.add_job('late')\; INSERT INTO others VALUES ('after')\; COMMIT},
    'a transaction that wrote something after');
expect_flushed_first(
    q{BEGIN\; SET LOCAL pulse.wake_before_flush = off\; SELECT pulse.add_job('late')\; COMMIT},
    'an add of somebody who does not want it');

expect_flushed_first(q{SELECT pulse.add_job('late', run_at => now() + interval '1 hour')},
    'an add that wakes nobody');
expect_flushed_first(q{SELECT pulse.add_job('late', job_key => 'its key')},
    'an add that locks a key, which a worker must not find locked');

value($node, 'CREATE TRIGGER copies BEFORE INSERT ON pulse.job
    FOR EACH ROW EXECUTE FUNCTION copy_job()');
expect_flushed_first(q{SELECT pulse.add_job('late')}, 'an add whose trigger writes elsewhere');
expect_flushed_first(q{SELECT pulse.add_jobs(ARRAY['(late,,,,,,,)']::pulse.job_spec[])},
    'the same with many');
value($node, 'DROP TRIGGER copies ON pulse.job');

# Nobody is there to confirm anything. A setting reaches each process at a time of its own: all heed
# it when commits wait.
sub require_standby {
    $node->append_conf('postgresql.conf', q{synchronous_standby_names = 'nobody'});
    $node->reload;
    wait_for('the setting', sub { seen('SHOW synchronous_standby_names') eq 'nobody' });
    do { commit_by_witness('SyncRep') } until is_waiting_for('witness', 'SyncRep');
    return;
}

sub forget_standby {
    $node->append_conf('postgresql.conf', q{synchronous_standby_names = ''});
    $node->reload;
    $session{witness}->answer;
    return;
}

subtest 'where a standby has to hear of commits first' => sub {
    start_waiting();
    require_standby();
    wait_for('the setting',
        sub { $session{producer}->query('SHOW synchronous_standby_names') eq 'nobody' });
    $session{producer}->ask(q{SELECT pulse.add_job('late')});
    wait_for_event('producer', 'SyncRep');
    is(visible_jobs(), 0, 'the job is not seen');
    ok(is_waiting_for('worker', 'Extension'), 'nobody was woken');
    forget_standby();
    $session{producer}->answer;
    finish('late');
};

subtest 'where one is named in the middle of a statement that commits' => sub {
    start_waiting();
    seen('SELECT pg_advisory_lock(1)');
    $session{producer}->ask(q{DO $$BEGIN
        PERFORM pg_advisory_xact_lock_shared(1); COMMIT;
        PERFORM pulse.add_job('late'); COMMIT; END$$});
    wait_for_event('producer', 'advisory');
    require_standby();
    seen('SELECT pg_advisory_unlock(1)');
    wait_for_event('producer', 'SyncRep');
    ok(!$session{producer}->has_answered, 'the producer has no answer');
    forget_standby();
    $session{producer}->answer;
    finish('late');
};

subtest 'what a crash takes back, nobody has heard of' => sub {
    start_waiting();
    stop_log();
    $session{producer}->ask(q{SELECT pulse.add_job('lost')});
    wait_for_event($_, 'WALWrite') for qw(producer worker);
    ok(!$session{$_}->has_answered, "the $_ has no answer") for qw(producer worker);
    kill_server($node);
    $node->start;
    is(value($node, 'SELECT count(*) FROM pulse.job'), 0, 'there is no job');
};

subtest 'what was answered survives a crash in the same moment' => sub {
    for my $round (1 .. 3) {
        my ($producer, $worker) = map { Pulse::Session->new($node) } 1 .. 2;
        $session{worker} = $worker;
        $session{observer} = Pulse::Session->new($node);
        $id = $worker->query(q{SELECT id FROM pulse.register_worker('w')});
        start_waiting();
        my $job = $producer->query(q{SELECT id FROM pulse.add_job('kept')});
        my ($token) = $worker->answer =~ /^kept\|(\d+)$/;
        kill_server($node);
        $node->start;
        is(value($node, "SELECT state, token FROM pulse.job WHERE id = $job"),
            "running|$token", "round $round: the job and its claim are there");
        value($node, "SELECT pulse.complete($job, $token)");
    }
};

expect_healthy($node);
done_testing();
