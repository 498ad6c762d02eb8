# Lines that other processes append to a file: logs of workers, what tasks tell, answers of a proxy.
# A file, because a pipe fills up while its reader is busy, and stops or disturbs who writes.
package Pulse::Lines;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils ();

# What is appended to this file from now on; it is made if there is none.
sub new {
    my ($class, $path) = @_;
    open my $handle, '+>>', $path or croak "$path: $!";
    seek $handle, 0, 2 or croak "$path: $!";
    return bless { handle => $handle, rest => '', lines => [] }, $class;
}

# Nothing more is written when this Pulse::Process is gone.
sub end_with {
    my ($self, $writer) = @_;
    $self->{writer} = $writer;
    return;
}

# Reads what has been written so far.
sub _read {
    my ($self) = @_;
    while (1) {
        my $count = sysread $self->{handle}, my $text, 1 << 16;
        croak "read: $!" if !defined $count;
        last if $count == 0;
        my @pieces = split /\n/, $self->{rest} . $text, -1;
        $self->{rest} = pop @pieces;
        push @{ $self->{lines} }, @pieces;
    }
    return;
}

# Between two looks at what changes without a word.
sub pause {
    Time::HiRes::sleep(0.02);
    return;
}

sub lines {
    my ($self) = @_;
    $self->_read;
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
        # Before the last look.
        my $why = $self->{writer} && $self->{writer}->is_gone ? 'no more lines come'
          : time > $end ? 'time is up' : undef;
        $self->_read;
        for (; $next < @{ $self->{lines} } && @found < $count; $next++) {
            my $line = $read->($self->{lines}[$next]);
            push @found, $line if defined $line && $wanted->($line);
        }
        return wantarray ? @found : $found[0] if @found >= $count;
        croak "waiting for $what: $why, last of " . @{ $self->{lines} } . ' lines: '
          . ($self->{lines}[-1] // 'none')
          if $why;
        pause();
    }
}

1;
