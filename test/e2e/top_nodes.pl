# `pulse top` of several databases: the nodes, and each list with the node of each row. A node that
# is away, or freezes while the screen is open, is a row that says so, and holds up nothing.
use strict;
use warnings FATAL => 'all';

use IO::Socket::INET ();
use Test::More;

use PostgreSQL::Test::Cluster ();
use Pulse::Console;
use Pulse::Screen;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, 'CREATE DATABASE two');
value($node, q{ALTER DATABASE two SET timezone = 'Asia/Tokyo'});
value($node, 'CREATE EXTENSION pg_pulse; SELECT pulse.set_shard(2)', 'two');
value($node, q{SELECT pulse.add_job('brew')});
value($node, q{SELECT pulse.add_job('bake')}, 'two');
value($node, q{SELECT pulse.add_job('boil', queue_name => 'oven')});

# Nobody listens at the one port, and nobody answers at the other one, for as long as it is asked.
my $nobody = PostgreSQL::Test::Cluster::get_free_port();
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die "listen: $!";
my $at = 'host=' . $node->host . ' port=' . $node->port;
# A node without a worker says after a while that nothing sweeps.
my $well = qr/(?:answers|no sweep runs)/;
my @databases = ("one=$at dbname=postgres", "two=$at dbname=two",
    "gone=host=127.0.0.1 port=$nobody dbname=x",
    'hangs=host=127.0.0.1 port=' . $listener->sockport
      . ' dbname=x sslmode=disable gssencmode=disable connect_timeout=3600');

local $ENV{NO_COLOR} = '1';
delete local $ENV{PGAPPNAME};    # the framework's own
tmux('new-session', '-d', '-x', '150', '-y', '32',
    'pulse top -i 200ms ' . join ' ', map { "-d '$_'" } @databases);

subtest 'the nodes come first' => sub {
    my $screen = wait_for_screen(
        qr/^pulse 4 nodes, 2 away (?:.*\n)*one +$well +1 .*\ntwo +$well +1 /m,
        'each with its state and its jobs, below how many are away');
    like($screen, qr/^ready 2 /m, 'and counts the jobs of all');
    like($screen, qr/^\[0 nodes\]  1 tasks /m, 'further lists have the digits they always have');
    like($screen, qr/^gone +cannot be reached +conn/m, 'a node that is gone says why, once');
    like($screen, qr/^hangs +does not answer[^\w\n]*$/m, 'and one that hangs');
};

subtest 'a list is of all nodes' => sub {
    keys_are('7');
    my $jobs = qr/one .* boil .*\ntwo .* bake .*\none .* brew /;
    wait_for_screen(qr/^gone cannot be reached *\nhangs does not answer *\n$jobs/m,
        'below the nodes without rows the newest job comes first, wherever it is, also where a'
          . ' node has a clock of another zone');
};

subtest 'a job is opened and cancelled at its node' => sub {
    my $bake = value($node, 'SELECT id FROM pulse.job', 'two');
    keys_are('/', 'b', 'a', 'k', 'e', 'Enter');
    wait_for_screen(qr/\A(?!.*\b(?:boil|brew)\b).*^two .* bake /ms, 'it is found');
    keys_are('Enter');
    wait_for_screen(qr/^job +$bake\n/m, 'its page stands there');
    keys_are('c');
    wait_for_screen(qr/^cancel job $bake of node two\? \[y\/N\]/m, 'the question names the node');
    keys_are('y');
    wait_for_screen(qr/^cancel of job $bake: done/m, 'it is done');
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE state = 'ready'}, 'two'), 0, 'there');
    keys_are('q', 'Escape');
};

subtest 'a queue that two nodes have' => sub {
    value($node, q{SELECT pulse.add_job('knead', queue_name => 'oven')}, 'two');
    keys_are('2');
    wait_for_screen(qr/^one +oven .* no$(?:.*\n)*two +oven .* no$/m, 'stands there twice');
    keys_are('/', 't', 'w', 'o', 'Enter', 'p');
    wait_for_screen(qr/^pause queue oven of node two\? /m, 'is asked about by its node');
    keys_are('y');
    wait_for_screen(qr/^pause queue oven of node two: done/m, 'and paused');
    my $paused = 'SELECT count(*) FROM pulse.queue_settings WHERE paused';
    is(value($node, $paused, 'two'), 1, 'at that node');
    is(value($node, $paused), 0, 'and at no other');
    keys_are('Escape', 'Home', 'p');
    wait_for_screen(qr/^gone cannot be reached/m, 'a node without rows');
    unlike(screen(), qr/\[y\/N\]/, 'is no queue to pause');
};

subtest 'a node that freezes' => sub {
    keys_are('0');
    wait_for_screen(qr/^two +$well /m, 'answers before');
    my $sessions = q{FROM pg_stat_activity WHERE application_name = 'pulse' AND datname = 'two'};
    wait_until($node, "SELECT count(*) > 0 $sessions", 'a session');
    # A machine that was slow meanwhile has had the node asked in a session of its own.
    my @pids = split /\n/, value($node, "SELECT pid $sessions");
    kill 'STOP', @pids or die "kill @pids: $!";
    my $screen = wait_for_screen(qr/^two +does not answer/m, 'says that it does not');
    value($node, q{SELECT pulse.add_job('stir')});
    wait_for_screen(qr/^one +$well +2 /m, 'the others are followed');
    kill 'CONT', @pids or die "kill @pids: $!";
    wait_for_screen(qr/^two +$well /m, 'and it is back when it goes on');
};

keys_are('q');
close $listener;
done_testing();
