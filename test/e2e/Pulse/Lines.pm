# Lines that other processes write: logs of workers, what tasks tell, answers of a proxy. Waiting
# for a line of one reads what all have written, so that none of them is ever blocked by a full
# pipe.
package Pulse::Lines;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use IO::Select;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils ();

my $readable = IO::Select->new;
my %source_of;    # by file descriptor

# `copy`: a file that gets every line, to look at when a test has failed.
sub new {
    my ($class, $handle, %options) = @_;
    my $flags = fcntl($handle, F_GETFL, 0) or croak "fcntl: $!";
    fcntl($handle, F_SETFL, $flags | O_NONBLOCK) or croak "fcntl: $!";
    my $self = bless { handle => $handle, rest => '', lines => [], is_open => 1 }, $class;
    if (defined $options{copy}) {
        open $self->{copy}, '>>', $options{copy} or croak "$options{copy}: $!";
        $self->{copy}->autoflush(1);
    }
    $readable->add($handle);
    $source_of{ fileno $handle } = $self;
    return $self;
}

sub _take {
    my ($self) = @_;
    my $count = sysread $self->{handle}, my $text, 1 << 16;
    return if !defined $count && $!{EAGAIN};
    if (!$count) {
        $self->{is_open} = 0;
        $readable->remove($self->{handle});
        delete $source_of{ fileno $self->{handle} };
        return;
    }
    print { $self->{copy} } $text if $self->{copy};
    my @pieces = split /\n/, $self->{rest} . $text, -1;
    $self->{rest} = pop @pieces;
    push @{ $self->{lines} }, @pieces;
    return;
}

# Reads what has been written so far; waits at most so long for the first of it.
sub read_all {
    my ($class, $seconds) = @_;
    while (my @ready = $readable->can_read($seconds)) {
        $source_of{ fileno $_ }->_take for @ready;
        $seconds = 0;
    }
    return;
}

sub lines {
    my ($self) = @_;
    __PACKAGE__->read_all(0);
    return @{ $self->{lines} };
}

# The place from which later lines are new.
sub position {
    my ($self) = @_;
    return scalar(my @seen = $self->lines);
}

# The first `count` lines for which `wanted` is true of what `read` makes of them, which is what is
# returned. Dies when they do not come in time.
sub wait_for {
    my ($self, $what, $wanted, %options) = @_;
    my $read = $options{read} // sub { $_[0] };
    my $count = $options{count} // 1;
    my $next = $options{from} // 0;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my @found;
    while (1) {
        for (; $next < @{ $self->{lines} } && @found < $count; $next++) {
            my $line = $read->($self->{lines}[$next]);
            push @found, $line if defined $line && $wanted->($line);
        }
        return wantarray ? @found : $found[0] if @found >= $count;
        my $why = !$self->{is_open} ? 'no more lines come' : time > $end ? 'time is up' : undef;
        croak "waiting for $what: $why, last of " . @{ $self->{lines} } . ' lines: '
          . ($self->{lines}[-1] // 'none')
          if $why;
        __PACKAGE__->read_all(1);
    }
}

1;
