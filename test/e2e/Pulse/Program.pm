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
    my $self = bless { name => $name }, $class;
    my $log = "$PostgreSQL::Test::Utils::log_path/" . basename($0, '.pl') . "_$name";
    my ($stdout, $stderr) = map { "$log.$_" }
      ($options{output} // 'stdout') eq 'stderr' ? qw(out log) : qw(log err);
    $self->{other} = $stdout eq "$log.log" ? $stderr : $stdout;
    # Before it writes.
    $self->{lines} = Pulse::Lines->new("$log.log");
    my $pid = fork // croak "fork: $!";
    if ($pid == 0) {
        # In a group of its own: what is sent to the test's group is not for it.
        setpgrp;
        delete $ENV{PGAPPNAME};    # the framework's own
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', $stdout;
        open STDERR, '>>', $stderr;
        { no warnings; exec @$command }
        POSIX::_exit(127);
    }
    push @started, $self;
    $self->{pid} = $pid;
    $self->{process} = Pulse::Process->new($pid);
    $self->{lines}->end_with($self->{process});
    return $self;
}

# All that this test has started.
sub started { return @started }

sub has_ended { return defined $_[0]{status} }
sub pid { return $_[0]{pid} }
sub name { return $_[0]{name} }
sub lines { return $_[0]{lines} }

# What it has written to the stream that `lines` does not read.
sub other_output { return PostgreSQL::Test::Utils::slurp_file($_[0]{other}) }

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
        $self->{process}->wait_gone or croak "$self->{name} does not end";
        waitpid $self->{pid}, 0;
        $self->{status} = $?;
    }
    my $status = $self->{status};
    return $status & 127 ? 'signal ' . ($status & 127) : $status >> 8;
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
