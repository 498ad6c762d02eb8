# Stands between a client and its server and spoils what passes on request: see arm. One process,
# which the test steers through a pipe and which tells through another what it has done.
package Pulse::Proxy;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Program';

use Carp qw(croak);
use Fcntl qw(F_SETFD);
use File::Basename qw(dirname);

use PostgreSQL::Test::Utils ();

use constant PORT => 5432;

sub start {
    my ($class, $node, $name) = @_;
    # A short path: a socket's has to fit into 107 bytes.
    my $host = PostgreSQL::Test::Utils::tempdir_short;
    pipe my $orders, my $steer or croak "pipe: $!";
    $steer->autoflush(1);
    # Its number is all that survives exec.
    fcntl $orders, F_SETFD, 0 or croak "fcntl: $!";
    my $server = $node->host . '/.s.PGSQL.' . $node->port;
    my $self = $class->SUPER::start(
        $name,
        [ $^X, dirname(__FILE__) . '/proxy.pl',
            "$host/.s.PGSQL." . PORT, $server, fileno $orders ]);
    @$self{qw(host steer)} = ($host, $steer);
    $self->lines->wait_for('the proxy', sub { $_[0] eq 'listening' });
    return $self;
}

# Where its clients connect, for Pulse::Worker.
sub address {
    my ($self) = @_;
    return (host => $self->{host}, port => PORT);
}

# What to do, once, with the next statement whose text matches:
#   hold_request   keep it from the server
#   hold_reply     let it be executed, and keep the reply from the client
#   drop_request   cut the connection instead
#   drop_reply     let it be executed, and cut the connection
#   hold_commit    let it be executed, cut the client, and keep the end of the transaction from the
#                  server
sub arm {
    my ($self, $action, $pattern) = @_;
    $self->{armed_at} = $self->lines->position;
    return $self->_order("arm $action $pattern", 'armed');
}

# Waits until an action was taken.
sub wait_for_action {
    my ($self, $action) = @_;
    $self->lines->wait_for("the proxy to $action", sub { $_[0] eq "did $action" },
        from => $self->{armed_at});
    return;
}

# Lets what is held go on its way.
sub release { return $_[0]->_order('release', 'released') }

# What the network does to all connections, until it is open again:
#   stalled, stalled_up, stalled_down   nothing passes, or nothing to the server, or from it;
#                                       what is on its way arrives later
#   cut                                 both sides see their ends; new connections are refused
#   cut_server                          the server sees ends, clients wait
#   cut_client                          clients see ends and are refused, the server waits
#   closed                              what is connected stays, new connections are refused
#   open                                everything passes; what had one end only is reset
sub network { return $_[0]->_order("network $_[1]", "network is $_[1]") }

# Every message takes so many seconds from now on.
sub delay { return $_[0]->_order("delay $_[1]", 'delayed') }

# Waits until so many more clients were refused.
sub wait_for_refusals {
    my ($self, $count) = @_;
    $self->lines->wait_for("$count refusals", sub { $_[0] eq 'turned away' }, count => $count,
        from => $self->lines->position);
    return;
}

sub _order {
    my ($self, $order, $answer) = @_;
    my $from = $self->lines->position;
    print { $self->{steer} } "$order\n";
    $self->lines->wait_for("the proxy to answer '$order'", sub { $_[0] eq $answer }, from => $from);
    return;
}

1;
