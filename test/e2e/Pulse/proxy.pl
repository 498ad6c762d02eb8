# The process behind Pulse::Proxy. Passes whole messages of PostgreSQL's protocol between clients
# and the server; one of the client's statements may be spoiled as ordered, and the whole network.
# usage: proxy.pl SOCKET_TO_LISTEN_ON SOCKET_OF_SERVER FD_OF_ORDERS
use strict;
use warnings FATAL => 'all';

use IO::Select;
use IO::Socket::UNIX;
use Socket qw(SOCK_STREAM SOMAXCONN);
use Time::HiRes qw(time);

my ($listen_path, $server_path, $orders_fd) = @ARGV;

use constant {
    MESSAGE_HEADER => 5,    # a letter and a length, which counts itself but not the letter
    STARTUP_HEADER => 4,    # a length
};

$| = 1;
$SIG{PIPE} = 'IGNORE';
open my $orders, '<&=', $orders_fd or die "orders: $!";
my $listener = IO::Socket::UNIX->new(
    Type => SOCK_STREAM, Local => $listen_path, Listen => SOMAXCONN) or die "$listen_path: $!";
my $select = IO::Select->new($listener, $orders);
my %end_of;     # by descriptor: one end of a connection, with the other as its peer
my $armed;      # the action and pattern that wait for a statement
my %flows = (up => 1, down => 1);
my ($accepts, $delay) = (1, 0);
my @uncommitted;    # ends of the server that wait for the end of a transaction
print "listening\n";

while (1) {
    my @ends = values %end_of;
    flush_end($_) for @ends;
    for my $ready ($select->can_read(next_due())) {
        # Closed a moment ago, together with its peer, which was ready too.
        next if !defined fileno $ready;
        if ($ready == $listener) { accept_client() }
        elsif ($ready == $orders) { take_order() }
        elsif (my $end = $end_of{ fileno $ready }) { take_bytes($end) }
    }
}

sub accept_client {
    my $client = $listener->accept or return;
    my $server = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $server_path);
    # As if the server refused: there is none.
    if (!$server || !$accepts) {
        print "turned away\n";
        return close $client;
    }
    # A client's first message has no letter.
    my %client = (socket => $client, is_client => 1, header => STARTUP_HEADER);
    my %server = (socket => $server, header => MESSAGE_HEADER);
    @client{qw(peer bytes held queue)} = (\%server, '', '', []);
    @server{qw(peer bytes held queue)} = (\%client, '', '', []);
    for my $end (\%client, \%server) {
        $end_of{ fileno $end->{socket} } = $end;
        $select->add($end->{socket});
    }
    return;
}

sub take_order {
    if (!sysread $orders, my $text, 1 << 12) { exit 0 }
    else {
        for (split /\n/, $text) {
            if (/^arm (\S+) (.*)/) {
                $armed = { action => $1, pattern => qr/$2/ };
                print "armed\n";
            } elsif ($_ eq 'release') {
                release_held();
                print "released\n";
            } elsif (/^delay (\S+)/) {
                $delay = $1;
                print "delayed\n";
            } elsif (/^network (\w+)/) {
                change_network($1);
                print "network is $1\n";
            }
        }
    }
    return;
}

sub release_held {
    my @ends = values %end_of;
    for my $end (@ends) {
        $end->{is_holding} = 0;
        forward($end, $end->{held}) if length $end->{held};
        $end->{held} = '';
    }
    for my $server (splice @uncommitted) {
        send_all($server->{socket}, $server->{sync});
        cut($server);
    }
    return;
}

# See Pulse::Proxy.
sub change_network {
    my ($state) = @_;
    my $passes = $state eq 'open' || $state eq 'closed';
    $flows{up} = $passes || $state eq 'stalled_down';
    $flows{down} = $passes || $state eq 'stalled_up';
    $accepts = $state eq 'open' || $state =~ /^stalled/ || $state eq 'cut_server';
    my @ends = values %end_of;
    if ($state eq 'cut') { cut($_) for @ends }
    elsif ($state eq 'cut_server') { hide_end($_->{peer}) for grep { $_->{is_client} } @ends }
    elsif ($state eq 'cut_client') { hide_end($_) for grep { $_->{is_client} } @ends }
    # What had one end only is reset.
    elsif ($state eq 'open') { cut($_) for grep { $_->{peer}{is_hidden} } @ends }
    return;
}

# Closes one end, and its peer does not hear of it.
sub hide_end {
    my ($end) = @_;
    return if !defined fileno $end->{socket};
    $end->{is_hidden} = 1;
    $select->remove($end->{socket}, $end->{peer}{socket});
    delete $end_of{ fileno $end->{socket} };
    close $end->{socket};
    return;
}

sub direction { return $_[0]{is_client} ? 'up' : 'down' }

# What comes from this end is on its way to its peer; undef is its end.
sub forward {
    my ($end, $message) = @_;
    push @{ $end->{queue} }, [ time + $delay, $message ];
    flush_end($end);
    return;
}

sub flush_end {
    my ($end) = @_;
    while (my $first = $end->{queue}[0]) {
        return if !defined fileno $end->{peer}{socket};
        return if !$flows{ direction($end) } || $end->{peer}{is_hidden} || $first->[0] > time;
        shift @{ $end->{queue} };
        return cut($end) if !defined $first->[1];
        send_all($end->{peer}{socket}, $first->[1]);
    }
    return;
}

# Seconds until something that is delayed must go on; undef while nothing is.
sub next_due {
    my ($next) = sort { $a <=> $b } map { $_->{queue}[0][0] }
      grep { $flows{ direction($_) } && !$_->{peer}{is_hidden} && @{ $_->{queue} } } values %end_of;
    return if !defined $next;
    return $next > time ? $next - time : 0;
}

sub take_bytes {
    my ($end) = @_;
    if (!sysread $end->{socket}, $end->{bytes}, 1 << 16, length $end->{bytes}) {
        $select->remove($end->{socket});
        return forward($end, undef);
    }
    while (defined(my $message = next_message($end))) {
        pass($end, $message) or return;
    }
    return;
}

# The first whole message, taken off the bytes that were read.
sub next_message {
    my ($end) = @_;
    return if length $end->{bytes} < $end->{header};
    my $length = unpack 'N', substr $end->{bytes}, $end->{header} - 4, 4;
    $length += $end->{header} - 4;
    return if length $end->{bytes} < $length;
    $end->{header} = MESSAGE_HEADER;
    return substr $end->{bytes}, 0, $length, '';
}

# What a message of a client asks for: its text is in the message, or was in an earlier one that
# gave it a name.
sub statement {
    my ($end, $letter, $content) = @_;
    return $content if $letter eq 'Q';
    if ($letter eq 'P') {
        my ($name, $sql) = unpack 'Z* Z*', $content;
        $end->{statements}{$name} = $sql;
        return $sql;
    }
    return '' if $letter ne 'B';
    my (undef, $name) = unpack 'Z* Z*', $content;
    return $name eq '' ? '' : $end->{statements}{$name} // '';
}

# Returns false when the connection was cut.
sub pass {
    my ($end, $message) = @_;
    my $letter = substr $message, 0, 1;
    my $sql = $end->{is_client} ? statement($end, $letter, substr $message, MESSAGE_HEADER) : '';
    if ($armed && $sql =~ $armed->{pattern}) {
        spoil($end, $armed->{action}) or return 0;
    }
    if ($end->{is_uncommitted} && $letter eq 'S') {
        $end->{peer}{sync} = $message;
        push @uncommitted, $end->{peer};
        hide_end($end);
        print "did hold_commit\n";
        return 0;
    }
    if ($end->{is_holding} || $end->{is_dropping}) { $end->{held} .= $message }
    else { forward($end, $message) }
    # The reply is whole: what was asked for is committed.
    if (!$end->{is_client} && $letter eq 'Z' && $end->{told}) {
        print "did $end->{told}\n";
        $end->{told} = undef;
        if ($end->{is_dropping}) {
            cut($end);
            return 0;
        }
    }
    return 1;
}

sub spoil {
    my ($client, $action) = @_;
    $armed = undef;
    if ($action eq 'hold_request') {
        $client->{is_holding} = 1;
        print "did hold_request\n";
    } elsif ($action eq 'drop_request') {
        print "did drop_request\n";
        cut($client);
        return 0;
    } elsif ($action eq 'hold_commit') {
        $client->{is_uncommitted} = 1;
    } elsif ($action eq 'hold_reply') {
        @{ $client->{peer} }{qw(is_holding told)} = (1, $action);
    } elsif ($action eq 'drop_reply') {
        @{ $client->{peer} }{qw(is_dropping told)} = (1, $action);
    }
    return 1;
}

sub cut {
    my ($end) = @_;
    for my $each ($end, $end->{peer}) {
        next if !defined fileno $each->{socket};
        $select->remove($each->{socket});
        delete $end_of{ fileno $each->{socket} };
    }
    close $_->{socket} for $end, $end->{peer};
    return;
}

# Messages are small and both sides read, so waiting here is short. Whoever has gone is noticed when
# his end is read.
sub send_all {
    my ($socket, $bytes) = @_;
    while (length $bytes) {
        my $count = syswrite $socket, $bytes or return;
        substr $bytes, 0, $count, '';
    }
    return;
}
