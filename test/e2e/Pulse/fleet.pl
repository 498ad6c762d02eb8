# The process behind Pulse::Fleet: a loop over many sessions, in PostgreSQL's own protocol.
# usage: fleet.pl COUNT KEEPS SOCKET…
# KEEPS: 1 if every second job lasts until its session was lost, or SIGUSR1 came.
use strict;
use warnings FATAL => 'all';

use IO::Select;
use IO::Socket::UNIX;
use Socket qw(SOCK_STREAM);
use Time::HiRes qw(time);

use constant {
    PROTOCOL => 196_608,    # 3.0
    ROUND => 0.2,           # a heartbeat in each
    WORKING => 0.3,         # how long a job takes
    MOST_HELD => 2,
    RECONNECTING => 0.3,    # at most
};

my ($count, $keeps, @sockets) = @ARGV;
my $user = getpwuid $<;
my $select = IO::Select->new;
my %worker_of;    # by descriptor
my @workers =
  map { { number => $_, jobs => {}, next_at => 0, do => \&connect_worker } } 1 .. $count;

$| = 1;
$SIG{PIPE} = 'IGNORE';
$SIG{USR1} = sub { $keeps = 0 };

while (1) {
    my $next_at = time + 1;
    for my $worker (@workers) {
        next if !$worker->{do};
        if ($worker->{next_at} <= time) { (delete $worker->{do})->($worker) }
        elsif ($worker->{next_at} < $next_at) { $next_at = $worker->{next_at} }
    }
    my $wait = $next_at - time;
    for my $ready ($select->can_read($wait > 0 ? $wait : 0)) {
        take_bytes($worker_of{ fileno $ready });
    }
}

sub later {
    my ($worker, $seconds, $do) = @_;
    @$worker{qw(next_at do)} = (time + $seconds, $do);
    return;
}

sub connect_worker {
    my ($worker) = @_;
    my $path = $sockets[ $worker->{tried}++ % @sockets ];
    my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path);
    return later($worker, rand RECONNECTING, \&connect_worker) if !$socket;
    @$worker{qw(socket bytes rows then)} = ($socket, '', [], \&begin);
    $worker_of{ fileno $socket } = $worker;
    $select->add($socket);
    my $startup = pack 'N', PROTOCOL;
    $startup .= "$_\0" for user => $user, database => 'postgres';
    syswrite $socket, pack('N', length($startup) + 5) . "$startup\0";
    return;
}

sub disconnect_worker {
    my ($worker) = @_;
    $select->remove($worker->{socket});
    delete $worker_of{ fileno $worker->{socket} };
    close delete $worker->{socket};
    delete $worker->{then};
    return later($worker, rand RECONNECTING, \&connect_worker);
}

# Calls back with the rows, each a list of its columns, once the server is ready again.
sub ask {
    my ($worker, $query, $then) = @_;
    @$worker{qw(rows then)} = ([], $then);
    syswrite $worker->{socket}, 'Q' . pack('N', length($query) + 5) . "$query\0";
    return;
}

sub take_bytes {
    my ($worker) = @_;
    my $socket = $worker->{socket} // return;
    return disconnect_worker($worker)
      if !sysread $socket, $worker->{bytes}, 1 << 16, length $worker->{bytes};
    while (length $worker->{bytes} >= 5) {
        my ($letter, $length) = unpack 'aN', $worker->{bytes};
        last if length $worker->{bytes} < $length + 1;
        my $message = substr $worker->{bytes}, 0, $length + 1, '';
        take_message($worker, $letter, substr $message, 5);
        last if !$worker->{socket};
    }
    return;
}

sub take_message {
    my ($worker, $letter, $body) = @_;
    if ($letter eq 'D') {
        my ($columns, $rest) = unpack 'na*', $body;
        my @row;
        for (1 .. $columns) {
            my $length = unpack 'l>', substr $rest, 0, 4, '';
            push @row, $length < 0 ? undef : substr $rest, 0, $length, '';
        }
        push @{ $worker->{rows} }, \@row;
    } elsif ($letter eq 'E') {
        my ($code) = $body =~ /(?:^|\0)C(.{5})\0/;
        # What a server says that is about to leave, or not yet there, or a standby.
        print "refused $code $worker->{number}\n" if $code !~ /^(?:57P|25006)/;
        disconnect_worker($worker);
    } elsif ($letter eq 'Z' && $worker->{then}) {
        (delete $worker->{then})->($worker, @{ $worker->{rows} });
    }
    return;
}

sub begin {
    my ($worker) = @_;
    if (defined $worker->{id}) {
        return ask($worker, "SELECT pulse.attach_worker($worker->{id})", \&take_stock);
    }
    return ask($worker, q{SELECT id FROM pulse.register_worker('fleet', '{work}')}, sub {
        $worker->{id} = $_[1][0];
        begin($worker);
    });
}

# After a lost reply: what is mine?
sub take_stock {
    my ($worker) = @_;
    return ask($worker, "SELECT id, token FROM pulse.held($worker->{id})", sub {
        my (undef, @rows) = @_;
        # A claim of which the server knows nothing is reported all the same, and refused.
        take_job($worker, @$_) for @rows;
        beat($worker);
    });
}

sub take_job {
    my ($worker, $id, $token) = @_;
    my $known = $worker->{jobs}{$id};
    $worker->{jobs}{$id} = { token => $token, until => time + WORKING, try => $worker->{tried} }
      if !$known || $known->{token} != $token;
    return;
}

sub is_done {
    my ($worker, $id) = @_;
    my $job = $worker->{jobs}{$id};
    return 0 if $keeps && $id % 2 == 0 && $job->{try} == $worker->{tried};
    return $job->{until} <= time;
}

sub beat {
    my ($worker) = @_;
    my $ids = join ',', sort keys %{ $worker->{jobs} };
    return ask($worker,
        "SELECT status FROM pulse.heartbeat($worker->{id}, '{$ids}')", sub {
            my ($status) = @{ $_[1] };
            print "$status $worker->{number}\n" if $status ne 'alive';
            report($worker);
        });
}

sub report {
    my ($worker) = @_;
    my $jobs = $worker->{jobs};
    my @done = grep { is_done($worker, $_) } sort keys %$jobs;
    return claim($worker) if !@done;
    my ($ids, $tokens) = (join(',', @done), join ',', map { $jobs->{$_}{token} } @done);
    return ask($worker,
        "SELECT id, outcome FROM pulse.complete_many('{$ids}', '{$tokens}')", sub {
            my (undef, @rows) = @_;
            for (@rows) {
                my ($id, $outcome) = @$_;
                next if $outcome eq 'busy';
                # Only what is worth a line: nobody may be reading.
                print "$outcome $id\n" if $outcome ne q{accepted};
                delete $jobs->{$id};
            }
            claim($worker);
        });
}

sub claim {
    my ($worker) = @_;
    my $room = MOST_HELD - keys %{ $worker->{jobs} };
    return later($worker, ROUND, \&beat) if $room <= 0;
    return ask($worker, "SELECT id, token FROM pulse.claim($worker->{id}, $room)", sub {
        my (undef, @rows) = @_;
        take_job($worker, @$_) for @rows;
        later($worker, ROUND, \&beat);
    });
}
