# pulse top draws what happens, on a terminal that tmux keeps. Its keys open, sort and filter, and
# cancel, pause and drain after a question. It outlives a restart of the server.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Console;
use Pulse::Lines;
use Pulse::Process;
use Pulse::Screen;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
my $ann = value($node, q{SELECT id FROM pulse.register_worker('ann', '{paint}')});
my @ids = map { value($node, qq{SELECT id FROM pulse.add_job('paint', '["$_"]')}) } 1 .. 2;
value($node, "SELECT pulse.claim($ann)");
value($node, "SELECT pulse.progress(id, token, 'half', 0.5) FROM pulse.job WHERE id = $ids[0]");
value($node, q{SELECT pulse.add_job('letters', queue_name => 'post')});

local $ENV{NO_COLOR} = '1';
tmux('new-session', '-d', '-x', '110', '-y', '32',
    "pulse top -i 200ms -d 'host=" . $node->host . ' port=' . $node->port . " dbname=postgres'");

wait_for_screen(qr/^ready 1 +running 1 /m, 'the head counts');
wait_for_screen(qr/^\[1 tasks\].*\n.*\n(?:.*\n)*paint +1 +0 +0 +1 .* yes$/m, 'tasks come first');

subtest 'a job that runs' => sub {
    keys_are('4');
    wait_for_screen(qr/^ *$ids[0] +paint .* ann .*\[#####-----\]$/m, 'has a progress bar');
    keys_are('Enter');
    wait_for_screen(qr/^job +$ids[0]\n(?:.*\n)*Payload\n +\["1"\]/m, 'is opened');
    keys_are('c');
    wait_for_screen(qr/^cancel job $ids[0]\? \[y\/N\]/m, 'is asked about');
    keys_are('n');
    wait_for_screen(qr/^nothing was changed$/m, 'another key than y changes nothing');
    is(value($node, "SELECT cancel_requested_at FROM pulse.job WHERE id = $ids[0]"), '', 'indeed');
    keys_are('c', 'y');
    wait_for_screen(qr/^cancel .*job $ids[0].*: done/m, 'y cancels it');
    isnt(value($node, "SELECT cancel_requested_at FROM pulse.job WHERE id = $ids[0]"), '',
        'its worker is asked to end it');
    keys_are('q');
};

subtest 'queues and workers' => sub {
    keys_are('2');
    wait_for_screen(qr/^post .* no$/m, 'the queue stands there');
    keys_are('p', 'y');
    wait_for_screen(qr/^pause queue post: done/m, 'it is paused');
    wait_for_screen(qr/^post .* yes$/m, 'which is seen');
    keys_are('3');
    wait_for_screen(qr/^ *$ann +ann .* alive /m, 'the worker lives');
    keys_are('d', 'y');
    wait_for_screen(qr/^ *$ann +ann .* draining /m, 'and is drained');
};

subtest 'order and filter' => sub {
    keys_are('7');
    wait_for_screen(qr/^ *3 +letters.*\n *$ids[1] +paint.*\n *$ids[0] /m, 'the newest job first');
    keys_are('s', 'S');
    wait_for_screen(qr/^ *$ids[0] +paint.*\n *$ids[1] +paint.*\n *3 /m, 'sorted by id, reversed');
    keys_are('/', 'l', 'e', 't', 't');
    my $screen = wait_for_screen(qr/^filter: lett_$/m, 'a filter is typed');
    unlike($screen, qr/^ *$ids[0] +paint/m, 'and leaves what matches');
    keys_are('Escape');
    wait_for_screen(qr/^ *$ids[0] +paint/m, 'until it is given up');
};

subtest 'more than is counted, and more than is listed' => sub {
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'both', now() + interval '1 h' * side
          FROM generate_series(1, 1000), unnest('{-1,1}'::int[]) AS side});
    value($node, q{INSERT INTO pulse.job (identifier) SELECT 'many ' || n
        FROM generate_series(1, 1100) AS n});
    keys_are('1', '/', 'b', 'o', 't', 'h', 'Enter');
    wait_for_screen(qr/^both +\d+\+ +\d+\+ +0 +0 /m, 'a plus stands behind what was seen of many');
    wait_for_screen(qr/^ready [\d,]+\+ /m, 'also in the head');
    keys_are('Escape', 'End');
    wait_for_screen(qr/^10\d more +\d+ /m, 'the last row tells how many more tasks there are');
    value($node, q{DELETE FROM pulse.job WHERE identifier ~ '^(both|many)'});
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'letters', 'box ' || n, 'parked' FROM generate_series(1, 1100) AS n});
    keys_are('2', 'End');
    wait_for_screen(qr/^10\d more +\d+ /m, 'and how many more queues');
    keys_are('p', 'y', 'Home');
    wait_for_screen(qr/^box /m, 'queues stand above');
    is(value($node, q{SELECT count(*) FROM pulse.queue_pause WHERE queue_name ~ 'more'}), 0,
        'that row is no queue to pause');
    value($node, q{DELETE FROM pulse.job WHERE queue_name ~ '^box'});
    keys_are('7');
};

subtest 'a restart of the server' => sub {
    $node->stop('immediate');
    wait_for_screen(qr/^the database is gone, and asked again/m, 'is told');
    $node->start;
    my $screen = wait_for_screen(qr/^\s*$ids[0] +paint(?:.*\n)*/m, 'the list stays');
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    while ($screen =~ /is gone/ && time < $end) {
        Pulse::Lines::pause();
        $screen = screen();
    }
    unlike($screen, qr/is gone/, 'and the database is back');
};

keys_are('q');
my $end = time + $PostgreSQL::Test::Utils::timeout_default;
Pulse::Lines::pause() while tmux('list-sessions') ne '' && time < $end;
is(tmux('list-sessions'), '', 'q leaves');

my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';

# A shell beneath it, which has the terminal again afterwards.
sub start_beneath_shell {
    my ($command) = @_;
    local $ENV{NO_COLOR} = '1';
    tmux('new-session', '-d', '-x', '80', '-y', '24', 'exec /bin/sh');
    my $told = q{echo status $?; stty -a | grep -o ' -*echo ' | sed s/^/ended/};
    keys_are("$command -d '$database'; $told", 'Enter');
    return;
}

subtest 'an interrupt' => sub {
    start_beneath_shell('pulse top -i 200ms');
    wait_for_screen(qr/^\[1 tasks\]/m, 'it is drawn');
    keys_are('C-c');
    my $screen = wait_for_screen(qr/^ended -?echo/m, 'ends it');
    like($screen, qr/^ended echo/m, 'and leaves the terminal as it was');
    like($screen, qr/^status 130$/m, 'with the status of an interrupt');
    end_server();
};

subtest 'an interrupt of a pager' => sub {
    value($node, q{SELECT count(pulse.add_job('paged')) FROM generate_series(1, 40)});
    start_beneath_shell('PAGER=less pulse jobs');
    wait_for_screen(qr/^ *\d+ +paged .*\n:/m, 'it is drawn');
    keys_are('C-c');
    # The pager may drop keys that come with the interrupt.
    my $is_at = qr/lines \d+-\d+|^ended/m;
    for (my $tries = 0; screen() !~ $is_at && $tries < 1000; $tries++) {
        keys_are('=');
        Pulse::Lines::pause();
    }
    my $screen = wait_for_screen($is_at, 'is its own affair');
    unlike($screen, qr/^ended/m, 'and ends nothing');
    keys_are('Enter', 'q');
    wait_for_screen(qr/^ended echo/m, 'as q does');
    end_server();
};

subtest 'a terminal that is closed' => sub {
    tmux('new-session', '-d', '-x', '80', '-y', '24',
        "trap '' HUP; exec pulse top -i 200ms -d '$database'");
    wait_for_screen(qr/^\[1 tasks\]/m, 'it is drawn');
    my $process = Pulse::Process->new(tmux('display-message', '-p', '#{pane_pid}'));
    end_server();
    ok($process->wait_gone, 'ends it, though it hears of no hang-up');
};

my $said = pulse($node, 'top');
is($said->{status}, 64, 'without a terminal there is no screen');

for my $term (qw(nonsense dumb)) {
    local @ENV{qw(TERM SHELL)} = ($term, '/bin/sh');
    my ($out) = run_command([ qw(script -qefc), "pulse top -d '$database'; echo status \$?",
        "$PostgreSQL::Test::Utils::tmp_check/$term.screen" ]);
    like($out, qr/cannot draw on the terminal '$term'.*hint: TERM.*status 64/s,
        "nor on a terminal called $term");
}

expect_healthy($node);
done_testing();
