# A program that a test starts, whose lines it reads and which is gone when the test ends.
package Pulse::Program;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use File::Basename qw(basename);
use POSIX ();

use PostgreSQL::Test::Utils ();
use Pulse::Lines;
use Pulse::Process;

my @started;

# `name` is unique in its test. `output`: stdout (or stderr), whose lines the test reads.
sub start {
    my ($class, $name, $command, %options) = @_;
    pipe my $reader, my $writer or croak "pipe: $!";
    my $self = bless { name => $name }, $class;
    my $log = "$PostgreSQL::Test::Utils::log_path/" . basename($0, '.pl') . "_$name";
    my $pid = fork // croak "fork: $!";
    if ($pid == 0) {
        # In a group of its own: what is sent to the test's group is not for it.
        setpgrp;
        delete $ENV{PGAPPNAME};    # the framework's own
        my $is_error = ($options{output} // 'stdout') eq 'stderr';
        open STDIN, '<', '/dev/null';
        open STDOUT, $is_error ? '>>' : '>&', $is_error ? "$log.out" : $writer;
        open STDERR, $is_error ? '>&' : '>>', $is_error ? $writer : "$log.err";
        { no warnings; exec @$command }
        POSIX::_exit(127);
    }
    close $writer;
    push @started, $self;
    $self->{pid} = $pid;
    $self->{process} = Pulse::Process->new($pid);
    $self->{lines} = Pulse::Lines->new($reader, copy => "$log.log");
    return $self;
}

sub pid { return $_[0]{pid} }
sub name { return $_[0]{name} }
sub lines { return $_[0]{lines} }

sub signal {
    my ($self, $signal) = @_;
    croak "$self->{name} has ended" if defined $self->{status};
    kill $signal, $self->{pid} or croak "kill $signal $self->{name}: $!";
    return;
}

# Its exit code, or the signal that ended it as "signal N".
sub wait_exit {
    my ($self) = @_;
    if (!defined $self->{status}) {
        # Somebody who cannot write his last lines does not end.
        Pulse::Lines->read_all(0.1) while !$self->{process}->is_gone && !$self->_is_late;
        croak "$self->{name} does not end" if !$self->{process}->is_gone;
        waitpid $self->{pid}, 0;
        $self->{status} = $?;
    }
    my $status = $self->{status};
    return $status & 127 ? 'signal ' . ($status & 127) : $status >> 8;
}

sub _is_late {
    my ($self) = @_;
    $self->{late_at} //= time + $PostgreSQL::Test::Utils::timeout_default;
    return time > $self->{late_at};
}

sub kill {
    my ($self) = @_;
    $self->signal('KILL');
    return $self->wait_exit;
}

END {
    my $status = $?;
    for my $program (grep { !defined $_->{status} } @started) {
        CORE::kill 'CONT', $program->{pid};
        CORE::kill 'KILL', $program->{pid};
        waitpid $program->{pid}, 0;
    }
    $? = $status;
}

1;
