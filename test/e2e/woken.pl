# A job wakes a worker that can run it, whoever else waits: for tasks that share a place in shared
# memory, with flags that others do not take, and when it falls due.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

my $node = start_server('main', settings => \%PATIENT);

# Shared memory has 64 places for tasks: these two fall into one.
use constant { FIRST => 'video', SECOND => 'resize' };

sub register {
    my ($session, $tasks) = @_;
    return $session->query("SELECT id FROM pulse.register_worker('w', ARRAY[$tasks])");
}

# Claims, finds nothing, and waits: for so long that nobody but a wake-up ends it.
sub start_waiting {
    my ($worker, $flags) = @_;
    my $claim = "SELECT count(*) FROM pulse.claim($worker->{id}, 1, forbidden_flags => $flags)";
    is($worker->{session}->query($claim), 0, 'nothing to do yet');
    $worker->{session}->ask("CALL pulse.wait_for_job($worker->{id}, '1 hour')");
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
    $worker->{session}->answer;
    is($worker->{session}->said, '', $what);    # not for a sweep
    value($node, 'DELETE FROM pulse.job; SELECT pulse._note_everybody()');
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
    $second->{session}->answer;
    is($second->{session}->said, '', "the other is woken by the end of a wait where $what");
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

expect_healthy($node);
done_testing();
