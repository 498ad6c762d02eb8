# Processes that are nobody's child here: whether they are gone, told by a descriptor that becomes
# readable when they end.
package Pulse::Process;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use IO::Select;

# Before the framework, which from 17 on sets an empty handler: it would cut short each wait.
BEGIN { $SIG{CHLD} //= 'DEFAULT' }
use PostgreSQL::Test::Utils ();

use constant PIDFD_OPEN => 434;    # the number of the system call on every architecture

sub new {
    my ($class, $pid) = @_;
    my $self = bless { pid => $pid }, $class;
    my $descriptor = syscall PIDFD_OPEN, $pid + 0, 0;
    if ($descriptor < 0) {
        croak "pidfd_open $pid: $!" if !$!{ESRCH};
    } else {
        open $self->{handle}, '<&=', $descriptor or croak "pidfd of $pid: $!";
    }
    return $self;
}

sub pid { return $_[0]{pid} }

sub is_gone {
    my ($self) = @_;
    return $self->_ends_within(0);
}

# False when it still lives after the time that every wait of a test has.
sub wait_gone {
    my ($self) = @_;
    return $self->_ends_within($PostgreSQL::Test::Utils::timeout_default);
}

sub _ends_within {
    my ($self, $seconds) = @_;
    return 1 if !$self->{handle};
    return scalar IO::Select->new($self->{handle})->can_read($seconds) ? 1 : 0;
}

# A process and all that descend from it, parents first.
sub family {
    my ($class, $root) = @_;
    my %children;
    for my $stat (glob '/proc/[0-9]*/stat') {
        open my $file, '<', $stat or next;
        my $text = <$file> // next;
        push @{ $children{$2} }, $1 if $text =~ /^(\d+) .*\) \S (\d+) /s;
    }
    my @family = ($root);
    for (my $i = 0; $i < @family; $i++) { push @family, @{ $children{ $family[$i] } // [] } }
    return map { $class->new($_) } @family;
}

# All processes of this user that have a variable in their environment, given as NAME=VALUE.
sub with_environment {
    my ($class, $variable) = @_;
    my @found;
    for my $path (glob '/proc/[0-9]*/environ') {
        open my $file, '<', $path or next;
        my $environment = do { local $/ = undef; <$file> } // next;
        next if !grep { $_ eq $variable } split /\0/, $environment;
        push @found, $path =~ /(\d+)/;
    }
    return map { $class->new($_) } @found;
}

1;
