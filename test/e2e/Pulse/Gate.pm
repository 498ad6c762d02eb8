# Something that a job asks for and that keeps its first attempt waiting, until the test lets it
# through. Later attempts pass once let_others_pass was called.
package Pulse::Gate;

use strict;
use warnings FATAL => 'all';

use Carp ();

# A file to read: a pipe that says nothing yet; another file by the same name for later attempts.
package Pulse::Gate::File;

use Fcntl qw(O_RDWR);
use POSIX qw(mkfifo);
use PostgreSQL::Test::Utils ();

my $made = 0;

sub new {
    my ($class) = @_;
    my $path = PostgreSQL::Test::Utils::tempdir('gate') . '/' . ++$made;
    mkfifo($path, 0600) or Carp::croak("$path: $!");
    sysopen my $pipe, $path, O_RDWR or Carp::croak("$path: $!");
    return bless { path => $path, pipe => $pipe }, $class;
}

sub payload { return qq({"path": "$_[0]{path}"}) }
sub wait_until_reached { return }
sub serve_next { return }

sub let_others_pass {
    my ($self) = @_;
    rename $self->{path}, "$self->{path}.first" or Carp::croak("rename $self->{path}: $!");
    PostgreSQL::Test::Utils::append_to_file($self->{path}, 'again');
    return;
}

sub let_first_pass {
    my ($self) = @_;
    syswrite $self->{pipe}, 'first';
    close $self->{pipe};
    return;
}

# A page to fetch: nobody answers at once.
package Pulse::Gate::Page;

use IO::Select;
use IO::Socket::INET;
use PostgreSQL::Test::Utils ();

sub new {
    my ($class) = @_;
    my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1')
      or Carp::croak("listen: $@");
    return bless { listener => $listener, waiting => IO::Select->new($listener) }, $class;
}

sub payload {
    my ($self) = @_;
    return sprintf '{"url": "http://127.0.0.1:%d/"}', $self->{listener}->sockport;
}

# The next who asks; some connect and say nothing.
sub _next_client {
    my ($self) = @_;
    while (my @ready = $self->{waiting}->can_read($PostgreSQL::Test::Utils::timeout_default)) {
        for my $socket (@ready) {
            if ($socket == $self->{listener}) {
                $self->{waiting}->add($socket->accept);
                next;
            }
            $self->{waiting}->remove($socket);
            return $socket if sysread $socket, my $request, 1 << 16;
        }
    }
    Carp::croak('nobody asks for the page');
}

# Somebody may have gone before he is answered.
sub _answer {
    my ($client) = @_;
    local $SIG{PIPE} = 'IGNORE';
    print {$client} "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    close $client;
    return;
}

sub wait_until_reached {
    my ($self) = @_;
    $self->{first} = $self->_next_client;
    return;
}

sub let_others_pass { return }

sub serve_next {
    my ($self) = @_;
    _answer($self->_next_client);
    return;
}

# Whether who asked first hangs up.
sub is_abandoned {
    my ($self) = @_;
    my $first = delete $self->{first};
    IO::Select->new($first)->can_read($PostgreSQL::Test::Utils::timeout_default) or return 0;
    return sysread($first, my $more, 1) ? 0 : 1;
}

sub let_first_pass {
    my ($self) = @_;
    _answer(delete $self->{first});
    return;
}

1;
