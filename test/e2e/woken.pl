# A job wakes a worker that can run it, whoever else waits: for tasks that share a place in shared
# memory, with flags that others do not take, and when it falls due.
use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Test::More;

use Pulse::Server;
use Pulse::Session;

# The server's timer would make those who wait look up each second, and polls each half a minute.
my $node = start_server('main', settings => { %PATIENT, client_connection_check_interval => 0,
        'pulse.poll_interval' => '1h' });

# Shared memory has 64 places for tasks: these two fall into one.
use constant { FIRST => 'video', SECOND => 'resize' };

sub register {
    my ($session, $tasks) = @_;
    return $session->query("SELECT id FROM pulse.register_worker('w', ARRAY[$tasks])");
}

sub expect_told {
    my ($worker, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $worker->{session}->answer;
    is($worker->{session}->said, '', "$what, and not for a sweep");
    return;
}

# Claims, finds nothing, and waits.
sub start_waiting {
    my ($worker, $flags) = @_;
    my $claim = "SELECT count(*) FROM pulse.claim($worker->{id}, 1, forbidden_flags => $flags)";
    is($worker->{session}->query($claim), 0, 'nothing to do yet');
    $worker->{session}->ask_to_wait("CALL pulse.wait_for_job($worker->{id}, '1 hour')");
    wait_until($node, 'SELECT wait_event = $$Extension$$ FROM pg_stat_activity WHERE pid = '
          . $worker->{session}->backend_pid, 'it waits');
    return;
}

sub new_worker {
    my ($tasks, $flags) = @_;
    my $session = Pulse::Session->new($node);
    my $worker = { session => $session, id => register($session, $tasks) };
    start_waiting($worker, $flags // 'NULL');
    return $worker;
}

value($node, 'SELECT pulse.sweep()');    # so that nobody is asked for one

# The one who cannot run it was there first, and is looked at first.
sub expect_woken {
    my ($other, $worker, $job, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    value($node, "SELECT pulse.add_job($job)");
    expect_told($worker, $what);
    value($node, 'DELETE FROM pulse.job; SELECT pulse_internal.note_all_waiters()');
    for ($other, $worker) {
        $_->{session}->answer if $_ == $other;
        $_->{session}->query("SELECT pulse.deregister_worker($_->{id})");
        $_->{session}->quit;
    }
    value($node, 'SELECT pulse.sweep()');
    return;
}

expect_woken(new_worker("'${\FIRST}'"), new_worker("'${\SECOND}'"),
    "'${\SECOND}'", 'where another task shares its place');
expect_woken(new_worker("'${\FIRST}'"), new_worker("'${\SECOND}'"),
    "'${\SECOND}', run_at => now() + interval '200 ms'", 'the same when it falls due');
expect_woken(new_worker("'task'", "'{large}'"), new_worker("'task'"),
    "'task', flags => '{large}'", 'where others do not take its flag');

# Two wait for the same, and the one that is woken does not claim: then the other is woken.
sub expect_passed_on {
    my ($what, $drop_out) = @_;
    my ($first, $second) = (new_worker("'task'"), new_worker("'task'"));
    value($node, q{SELECT pulse.add_job('task')});
    $first->{session}->answer;
    $drop_out->($first->{session}, $first->{id});
    expect_told($second, "the other is woken by the end of a wait where $what");
    is($second->{session}->query("SELECT count(*) FROM pulse.claim($second->{id})"),
        1, 'and has the job');
    for ($first, $second) {
        value($node, "SELECT pulse.deregister_worker($_->{id})");
        $_->{session}->quit;
    }
    value($node, 'DELETE FROM pulse.job; SELECT pulse.sweep()');
    return;
}

expect_passed_on('its session ends', sub { $_[0]->quit });
expect_passed_on('its client dies', sub { $_[0]->kill });
expect_passed_on('its claim is refused', sub {
        my ($session, $id) = @_;
        my $claim = "SELECT * FROM pulse.claim($id, 0)";
        is($session->refusal($claim), 'PU004', 'refused');
    });
expect_passed_on('its claim is undone', sub {
        my ($session, $id) = @_;
        $session->query("BEGIN; SELECT count(*) FROM pulse.claim($id); ROLLBACK");
    });
expect_passed_on('its next transaction fails', sub {
        is($_[0]->refusal('SELECT 1 / 0'), '22012', 'failed');
    });
expect_passed_on('its session does not claim', sub { });

# Jobs that fall due. Four who wait see to them, and whoever leaves has a successor.
sub leave {
    my (@workers) = @_;
    for (@workers) {
        value($node, "SELECT pulse.deregister_worker($_->{id})");
        $_->{session}->quit;
    }
    return;
}

sub expect_claim {
    my ($worker, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    expect_told($worker, $what);
    is($worker->{session}->query("SELECT count(*) FROM pulse.claim($worker->{id})"),
        1, 'and has the job');
    return;
}

my ($first, $second) = (new_worker(q{'task'}), new_worker(q{'task'}));
value($node, "SELECT pulse.add_job('task', run_at => now() + $_ * interval '300 ms')") for 1, 2;
expect_claim($first, 'the first of two jobs falls due');
expect_claim($second, 'the second, while the one who had the first is at work');
leave($first, $second);
value($node, 'DELETE FROM pulse.job; SELECT pulse.sweep()');

# The process that is woken first is stopped.
($first, $second) = (new_worker(q{'task'}), new_worker(q{'task'}));
kill STOP => $first->{session}->backend_pid;
value($node, q{SELECT pulse.add_job('task')});
expect_claim($second, 'the job goes to the next one where the first is stopped');
kill CONT => $first->{session}->backend_pid;
$first->{session}->answer;
leave($first, $second);
value($node, 'DELETE FROM pulse.job; SELECT pulse.sweep()');

# A claim of one who serves every task looks at a thousand names. Two jobs fall due that share a
# place: the one who has the first job leaves names, and the other one is woken to look at them.
value($node, q{SELECT count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('s' || i, NULL, NULL, now() + interval '1 day', NULL, NULL, NULL, NULL)::pulse.job_spec
      FROM generate_series(1001, 2500) AS i))});

sub new_worker_of_every_task {
    my $session = Pulse::Session->new($node);
    my $id = $session->query(q{SELECT id FROM pulse.register_worker('w')});
    my $worker = { session => $session, id => $id };
    is($session->query("SELECT count(*) FROM pulse.claim($id)"), 0, 'a thousand names');
    start_waiting($worker, 'NULL');
    return $worker;
}

($first, $second) = (new_worker_of_every_task(), new_worker_of_every_task());
value($node, q{SELECT count(*) FROM unnest('{resize, video}'::text[]) AS task,
    pulse.add_job(task, run_at => now() + interval '300 ms')});
expect_claim($first, 'one of two jobs falls due');
expect_told($second, 'the other one is woken for the names that are left');
my $claim = "SELECT count(*) FROM pulse.claim($second->{id})";
is($second->{session}->query($claim) + $second->{session}->query($claim), 1, 'and has a job');
leave($first, $second);
value($node, 'DELETE FROM pulse.job; SELECT pulse.sweep()');

my @workers = map { new_worker(q{'task'}) } 1 .. 6;
my $last = pop @workers;
value($node, q{SELECT pulse.add_job('task', run_at => now() + interval '600 ms')});
$_->{session}->kill for @workers;
wait_until($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'CALL%'},
    'one waits');
expect_claim($last, 'the last of those who waited, when the others have gone');
value($node, "SELECT pulse.deregister_worker($_->{id})") for @workers;
leave($last);

# A fair level goes on once the claim of its last turn has committed.
value($node, q{SELECT pulse.set_queue('f', fair => true), pulse.set_queue('f/*', 2)});
my $holder = Pulse::Session->new($node);
my $waiting = Pulse::Session->new($node);
my ($holder_id, $waiting_id) = map { register($_, q{'task'}) } $holder, $waiting;
my $add = q{SELECT count(pulse.add_job('task', queue_name => 'f/a'))};
value($node, $add);
is($holder->query("BEGIN; SELECT count(*) FROM pulse.claim($holder_id)"), 1, 'a turn is open');
value($node, $add);
my $began = time;
for my $round (1 .. 11) {
    my $is_idle = $waiting->query("SELECT count(*) = 0 FROM pulse.claim($waiting_id)");
    croak 'it overtook the open turn' if $is_idle ne 't';
    $waiting->query("CALL pulse.wait_for_job($waiting_id, '1 hour')");
}
cmp_ok(time - $began, '>=', 2, 'who waits for it asks ever more seldom');
$holder->query('COMMIT');
is($waiting->query("SELECT count(*) FROM pulse.claim($waiting_id)"), 1, 'and has the next turn');

expect_healthy($node);
done_testing();
