# An end of a job that comes between any two steps of a wait for it, that no commit tells, or that a
# sweep makes: no session sleeps through it.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

use constant { RACES => 100, PLACES => 128 };

# Without prepared transactions no session polls, nor does the server's timer make it look: what a
# commit does not tell is told when max_wait is over, far too late.
my %settings = (%PATIENT, 'pulse.poll_interval' => '1h', max_prepared_transactions => 0,
    client_connection_check_interval => 0);
my $node = start_server('main', settings => { %settings, 'pulse.databases' => 'postgres' });

# What another session does ends the wait.
sub expect_told {
    my ($session, $what, $ending) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $ending->();
    is($session->answer, 1, $what);
    return;
}

# The end falls between any two steps of the wait; one that is missed is never told.
sub race {
    my ($waiter, $ender) = @_;
    $waiter->ask_to_wait(sprintf <<'SQL', RACES);
DO $do$
DECLARE
  job bigint;
  ended int;
BEGIN
  FOR i IN 1 .. %d LOOP
    job := (pulse.add_job('race')).id;
    COMMIT;
    CALL pulse.wait_for_end(ARRAY[job], '1 hour', i %% 2 = 0, ended);
    ASSERT ended = 1;
  END LOOP;
END $do$
SQL
    $ender->ask(sprintf <<'SQL', RACES);
DO $do$
DECLARE
  ended int := 0;
BEGIN
  WHILE ended < %d LOOP
    ended := ended + (SELECT count(*) FROM pulse.permanently_fail_jobs(
      ARRAY(SELECT j.id FROM pulse.job AS j WHERE j.identifier = 'race')));
    COMMIT;
    PERFORM count(*) FROM generate_series(1, (random() * 5000)::int);
  END LOOP;
END $do$
SQL
    for ($waiter, $ender) {
        $_->answer;
        is($_->said, '', 'nothing was refused, and none was lost');
    }
    return;
}

# In portions, because an answer is waited for so long only.
sub races {
    my ($server) = @_;
    my @sessions = map { Pulse::Session->new($server) } 1 .. 2;
    race(@sessions) for 1 .. 10;
    $_->quit for @sessions;
    return;
}

subtest 'a thousand races of end against wait' => sub { races($node) };

sub cancel {
    my ($session) = @_;
    value($node, 'SELECT pg_cancel_backend(' . $session->backend_pid . ')');
    $session->answer;
    return;
}

subtest 'a wait that is ended early leaves nothing behind' => sub {
    my $session = Pulse::Session->new($node);
    my $job = add_job($node, 'never');
    $session->ask_to_wait("CALL pulse.wait_for_end(ARRAY[$job], '1 hour')");
    my $waits = 'FROM pg_stat_activity WHERE pid = ' . $session->backend_pid;
    wait_until($node, "SELECT wait_event = 'Extension' $waits", 'it waits');
    is(value($node, "SELECT backend_xid IS NULL AND backend_xmin IS NULL $waits"),
        't', 'it holds neither a transaction id nor a snapshot');
    is(value($node, "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND pid = "
              . $session->backend_pid),
        0, 'nor a lock of a table');
    cancel($session);
    like($session->said, qr/57014/, 'it can be cancelled');
    for (1 .. PLACES) {
        my $next = Pulse::Session->new($node);
        $next->ask("CALL pulse.wait_for_end(ARRAY[$job], '1 hour')");
        wait_until($node, q{SELECT wait_event = 'Extension' FROM pg_stat_activity WHERE pid = }
              . $next->backend_pid, 'the next one waits');
        cancel($next);
        $next->quit;
    }
    my $other = Pulse::Session->new($node);
    my $next = add_job($node, 'never');
    $other->ask_to_wait("CALL pulse.wait_for_end(ARRAY[$next], '1 hour')");
    wait_until($node, q{SELECT wait_event = 'Extension' FROM pg_stat_activity WHERE pid = }
          . $other->backend_pid, 'another one waits');
    expect_told($other, 'and another one has its place',
        sub { value($node, "SELECT pulse.cancel_job($next)") });
    $_->quit for $session, $other;
};

subtest 'a job expires when it is time, and who waits is told' => sub {
    value($node, q{SELECT pulse.set_task('brief', expires_after => '300 ms')});
    my $session = Pulse::Session->new($node);
    my $job = add_job($node, 'brief');
    $session->ask_to_wait("CALL pulse.wait_for_end(ARRAY[$job], '1 hour')");
    is($session->answer, 1, 'it has ended, without a sweep by the clock');
    is(value($node, "SELECT state FROM pulse.ended(ARRAY[$job])"), 'expired', 'as expired');
    $session->quit;
};

subtest 'a job that is never added has ended' => sub {
    my ($session, $adder) = map { Pulse::Session->new($node) } 1 .. 2;
    $session->query(q{SET pulse.poll_interval = '200ms'});
    $adder->query('BEGIN');
    my $job = $adder->query(q{SELECT id FROM pulse.add_job('undone')});
    $session->ask_to_wait("CALL pulse.wait_for_end(ARRAY[$job], '1 hour')");
    wait_until($node, q{SELECT wait_event = 'Extension' FROM pg_stat_activity WHERE pid = }
          . $session->backend_pid, 'it waits');
    ok(!$session->has_answered, 'while it is being added it has not');
    expect_told($session, 'then it has', sub { $adder->query('ROLLBACK') });
    $_->quit for $session, $adder;
};

subtest 'without preloading' => sub {
    my $other = start_server('other', preload => 0, settings => \%settings);
    races($other);
    expect_healthy($other);
    $other->stop;
};

subtest 'what no commit tells is seen by looking again' => sub {
    my $other = start_server('prepared',
        settings =>
          { %settings, max_prepared_transactions => 5, 'pulse.poll_interval' => '200ms' });
    my ($session, $ender) = map { Pulse::Session->new($other) } 1 .. 2;
    my $job = add_job($other, 'work');
    $ender->query("BEGIN; SELECT id FROM pulse.permanently_fail_jobs(ARRAY[$job]);
        PREPARE TRANSACTION 'ends'");
    $session->ask_to_wait("CALL pulse.wait_for_end(ARRAY[$job], '1 hour')");
    wait_until($other, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'Extension'
        AND query LIKE '%wait_for_end(ARRAY%' AND pid <> pg_backend_pid()}, 'it waits');
    ok(!$session->has_answered, 'a prepared end is none');
    expect_told($session, 'until it is committed',
        sub { $ender->query(q{COMMIT PREPARED 'ends'}) });
    $_->quit for $session, $ender;
    expect_healthy($other);
};

subtest 'the extension is dropped' => sub {
    my @sessions = map { Pulse::Session->new($node) } 1 .. 2;
    my @jobs = map { add_job($node, 'never') } 1 .. 2;
    $sessions[0]->ask_to_wait("CALL pulse.wait_for_end(ARRAY[$jobs[0]], '1 hour')");
    $sessions[1]->ask_to_wait("CALL pulse.wait_for_end(ARRAY[$jobs[0], $jobs[1]], '1 hour', true)");
    wait_until($node, q{SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'Extension'
        AND query LIKE '%wait_for_end(ARRAY%' AND pid <> pg_backend_pid()}, 'two sessions wait');
    value($node, 'BEGIN; SET LOCAL pulse.allow_drop = on; DROP EXTENSION pg_pulse; ROLLBACK');
    ok(!$_->has_answered, 'a drop that is rolled back ends no wait') for @sessions;
    value($node, 'SET pulse.allow_drop = on; DROP EXTENSION pg_pulse');
    for (@sessions) {
        $_->answer;
        like($_->said, qr/42P01.*relation "pulse.job" is missing/, 'a waiting session hears it');
        $_->quit;
    }
    value($node, 'CREATE EXTENSION pg_pulse');
};

expect_healthy($node);
done_testing();
