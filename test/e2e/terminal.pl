# What a worker looks like to who sits in front of it: colours and, with --once, a line that tells
# how far it is; and that there is none of it where the log goes elsewhere. A worker goes with the
# terminal that its log is written to.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Lines;
use Pulse::Process;
use Pulse::Program;
use Pulse::Server;
use Pulse::Tasks;

use constant DRAINED => 0;

my $node = start_server('main', settings => \%PATIENT);
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    fall => 'tell ran; exit 1',
    linger => 'tell began; wait_at lingerers');
my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
my $erase = qr/\r\e\[K/;

# A terminal as it is drawn: a program of util-linux makes one, and passes on what is written to it.
package Screen {
    use parent -norequire, 'Pulse::Program';

    sub start {
        my ($class, $name, $shell) = @_;
        local $ENV{SHELL} = '/bin/sh';
        my $file = "$PostgreSQL::Test::Utils::tmp_check/$name.screen";
        my $self = $class->SUPER::start($name, [ 'script', '-qefc', $shell, $file ]);
        $self->{file} = $file;
        return $self;
    }

    # As when its window is closed, or the network of its ssh session is cut.
    sub close_window {
        my ($self) = @_;
        my (undef, @within) = Pulse::Process->family($self->pid);
        $self->kill;
        return @within;
    }

    sub drawn {
        my ($self) = @_;
        return -e $self->{file} ? PostgreSQL::Test::Utils::slurp_file($self->{file}) : '';
    }

    # Whatever was drawn once stays in the file.
    sub wait_until_drawn {
        my ($self, $expected) = @_;
        my $end = Time::HiRes::time + $PostgreSQL::Test::Utils::timeout_default;
        Pulse::Lines::pause() while $self->drawn !~ $expected && Time::HiRes::time < $end;
        Test::More::like($self->drawn, $expected, "$self->{name} is drawn");
        return;
    }
}

# A worker's command line, in a terminal that knows colours unless `setting` says otherwise.
sub command {
    my ($options, $setting, $run) = @_;
    $setting //= '';
    $run //= 'exec';
    return "unset NO_COLOR; export TERM=xterm; $setting $run pulse-worker --database '$database' "
      . '--tasks ' . $tasks->folder . " --concurrency 2 $options";
}

sub times_of {
    my ($expected, $text) = @_;
    return scalar(() = $text =~ /$expected/g);
}

sub add_jobs_that_end {
    add_job($node, 'run') for 1 .. 2;
    add_job($node, 'fall', 'max_attempts => 1');
    return;
}

subtest 'on a terminal there are colours, and a line that tells how far it is' => sub {
    add_jobs_that_end();
    add_job($node, 'linger');
    my $screen = Screen->start('coloured', command('--once'));
    $screen->wait_until_drawn(qr/^done 2, failed 1, running 1, 0:\d\d/m);
    $screen->wait_until_drawn(
        qr/${erase}done 2, failed 1, running 1, \d+:\d\d, \d+\.\d\/s(?=\r\e|\z)/);
    $tasks->open_gate('lingerers');
    is($screen->wait_exit, DRAINED, 'exit code');
    my $drawn = $screen->drawn;
    like($drawn, qr/\e\[2m\S+Z\e\[0m \e\[32minfo completed\e\[0m job=\d+ task=run/, 'green');
    like($drawn, qr/\e\[31mwarning failed\e\[0m job=\d+ task=fall/, 'red');
    unlike($drawn, qr/done \d[^\r]*20\d\d-/, 'no line of the log stands behind it');
    is(times_of($erase, $drawn), times_of(qr/done \d/, $drawn), 'each is erased');
    unlike($drawn, qr/info stopped.*(?:done \d|$erase)/s, 'and none comes after the end');
};

subtest 'it fits into the terminal, and who wants no colours gets none' => sub {
    add_job($node, 'linger');
    my $screen =
      Screen->start('narrow', command('--once', 'stty cols 20; export NO_COLOR=1;'));
    $screen->wait_until_drawn(qr/^done 0, failed 0, r(?=\r\e|\z)/m);
    $tasks->open_gate('lingerers');
    is($screen->wait_exit, DRAINED, 'exit code');
    my $drawn = $screen->drawn;
    $drawn =~ s/$erase//g;
    unlike($drawn, qr/\e/, 'no colours');
};

subtest 'machines and simple terminals get plain lines' => sub {
    for my $plain (
        [ 'json', '--once --log-format json' ],
        [ 'dumb', '--once', 'export TERM=dumb;' ],
        [ 'piped', '--once 2>&1 | cat' ])
    {
        my ($name, @command) = @$plain;
        add_jobs_that_end();
        my $screen = Screen->start($name, command(@command));
        is($screen->wait_exit, DRAINED, "$name: exit code");
        my $drawn = $screen->drawn;
        like($drawn, qr/stopped/, "$name: it has a log");
        unlike($drawn, qr/\e|done \d/, "$name: with nothing but lines");
    }
};

subtest 'without --once no line tells how far it is' => sub {
    add_job($node, 'run');
    my $screen = Screen->start('lasting', command('--name lasting'));
    $screen->wait_until_drawn(qr/info completed/);
    is(value($node, q{SELECT pulse.drain_worker(id) FROM pulse.worker
        WHERE name = 'lasting'}), 'draining', 'it is told to drain');
    is($screen->wait_exit, DRAINED, 'exit code');
    unlike($screen->drawn, qr/done \d|$erase/, 'none');
};

# What a page of the worker says, once it is as expected.
sub word_of {
    my ($url, $expected) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my $word;
    do {
        Pulse::Lines::pause() if defined $word;
        $word = HTTP::Tiny->new(timeout => 60)->get($url)->{content};
    } while ($word !~ $expected && time < $end);
    return $word =~ s/\s+\z//r;
}

# In a session of its own no signal tells it, and no shell is there to pass one on.
for my $case ([ 'waits', '' ], [ 'once', '--once' ], [ 'apart', '', '', 'exec setsid -w' ]) {
    my ($name, $options, @how) = @$case;
    subtest "a worker drains when its terminal is closed: $name" => sub {
        my $job = add_job($node, 'linger');
        my $screen = Screen->start($name, command("$options --http 127.0.0.1:0", @how));
        $tasks->wait_for('began', job => $job);
        $screen->wait_until_drawn(qr/serving\S* http=[\d.:]+\s/);
        my ($address) = $screen->drawn =~ /http=([\d.:]+)/;
        my @within = $screen->close_window;
        is(word_of("http://$address/readyz", qr/draining/), 'draining', 'it drains');
        is(value($node, "SELECT state FROM pulse.get_job($job)"), 'running', 'its task goes on');
        $tasks->open_gate('lingerers');
        ok($_->wait_gone, 'nothing of it is left') for @within;
        is(finished($node, $job), 'completed|1|0', 'and its job is done');
    };
}

subtest 'a worker whose log goes elsewhere outlives the terminal' => sub {
    my $log = "$PostgreSQL::Test::Utils::tmp_check/elsewhere.log";
    my $screen = Screen->start('elsewhere',
        command("--name elsewhere --log-format json 2>$log"));
    my $lines = Pulse::Lines->new($log);
    my $says = sub {
        my ($event, $from) = @_;
        return $lines->wait_for($event, sub { $_[0] =~ /"$event"/ }, from => $from);
    };
    $says->('registered');
    my $before = $lines->position;
    my @within = $screen->close_window;
    $says->('tasks', $before);
    my $job = add_job($node, 'run');
    $says->('completed', $before);
    is(finished($node, $job), 'completed|1|0', 'it reads its tasks again, and works on');
    kill TERM => map { $_->pid } @within;
    ok($_->wait_gone, 'until it is told to stop') for @within;
};

expect_healthy($node);
done_testing();
