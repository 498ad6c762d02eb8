# In which order jobs started and ended, as the write-ahead log tells it: no word of pg_pulse about
# what it waits for counts. PostgreSQL's test_decoding gives the committed changes in the order of
# their commits. The test says in a table `node` what it asked for, in the transaction that adds.
package Pulse::OrderWitness;
use strict;
use warnings FATAL => 'all';

use Carp qw(croak);

use Pulse::Server;

# The server must run with wal_level = logical. What happens from now on is seen.
sub new {
    my ($class, $node) = @_;
    value($node, q{
        CREATE TABLE node (id bigint PRIMARY KEY, starts_when text, after bigint[],
                           is_odd boolean NOT NULL DEFAULT false);
        SELECT pg_create_logical_replication_slot('witness', 'test_decoding')});
    return bless {
        node => $node,
        jobs => {},   # by id: what was asked, what it still needs, what happened to it
        live => {},   # ids of live jobs, and the token of each that runs
        kept => {},   # how each ended that is on record: true where it did not complete
        starts => 0,
        broken => [],
    }, $class;
}

# Reads and judges all that was committed.
sub read_log {
    my ($self) = @_;
    open my $log, '-|', 'psql', '-XAtq', '-d', $self->{node}->connstr('postgres'), '-c',
      q{COPY (SELECT data FROM pg_logical_slot_get_changes('witness', NULL, NULL,
          'include-xids', '0') WHERE data LIKE 'table pulse.job:%'
             OR data LIKE 'table pulse.finished_job:%' OR data LIKE 'table public.node:%')
        TO STDOUT}
      or croak "psql: $!";
    while (my $line = <$log>) {
        my ($table, $change, $row) = $line =~ /\Atable \w+\.(\w+): (\w+): (.*)/ or croak $line;
        my ($id) = $row =~ /\bid\[bigint\]:(\d+)/ or croak "no id in $line";
        my $job = $self->{jobs}{$id} //= { id => $id, children => [] };
        my $note = $self->can("_$table") or croak "no table $table";
        $self->$note($job, $change, $row);
    }
    close $log or croak "psql: $?";
    $self->_judge_fate($_) for values %{ $self->{jobs} };
    return;
}

sub starts { return $_[0]{starts} }

# What must be empty: a line for each breach, ten at most.
sub broken {
    my ($self) = @_;
    my @some = @{ $self->{broken} };
    return join "\n", @some[ 0 .. ($#some < 9 ? $#some : 9) ];
}

# How many jobs were asked for, never ran, and completed.
sub counts {
    my ($self) = @_;
    my @asked = grep { $_->{after} } values %{ $self->{jobs} };
    return (scalar @asked, scalar(grep { !$_->{started} } @asked),
        scalar(grep { $_->{completed} } @asked));
}

sub _break {
    my ($self, $job, $what) = @_;
    push @{ $self->{broken} }, "job $job->{id}: $what";
    return;
}

# --- what happens --------------------------------------------------------------------------------

# A parent that is live when the job is committed must end first.
sub _node {
    my ($self, $job, $change, $row) = @_;
    $job->{is_odd} = 1 if $row =~ /is_odd\[boolean\]:true/;
    return if $change ne 'INSERT';
    ($job->{starts_when}) = $row =~ /starts_when\[text\]:'(\w+)'/;
    my ($after) = $row =~ /after\[bigint\[\]\]:'\{([^}]*)\}'/;
    $job->{after} = [ split /,/, $after ];
    push @{ $self->{jobs}{$_}{children} }, $job for @{ $job->{after} };
    $self->_wait($job);
    return;
}

sub _wait {
    my ($self, $job) = @_;
    $job->{needs} = { map { $_ => 1 } grep { exists $self->{live}{$_} } @{ $job->{after} } };
    return;
}

sub _job {
    my ($self, $job, $change, $row) = @_;
    my $live = $self->{live};
    if ($change eq 'DELETE') {
        delete $live->{ $job->{id} };
        delete $_->{needs}{ $job->{id} } for @{ $job->{children} };
        return;
    }
    # A retry of a parent has let it wait again; what has run once waits no more.
    $self->_wait($job) if $change eq 'INSERT' && $job->{after} && !$job->{started};
    my ($token) = $row =~ /state\[pulse\.job_state\]:'running'.* token\[bigint\]:(\d+)/;
    $self->_start($job) if defined $token && $token != ($live->{ $job->{id} } // 0);
    $live->{ $job->{id} } = $token // 0;
    return;
}

sub _finished_job {
    my ($self, $job, $change, $row) = @_;
    return delete $self->{kept}{ $job->{id} } if $change eq 'DELETE';
    my ($state) = $row =~ /state\[pulse\.finished_state\]:'(\w+)'/;
    my $is_unneeded = $row =~ /last_error\[text\]:'not needed/;
    $job->{cancelled_by} = $row =~ /cancelled_by\[bigint\]:(\d+)/ ? $1 : undef;
    $self->{kept}{ $job->{id} } = $state ne 'completed' && !$is_unneeded;
    $job->{has_failed} = 1 if $self->{kept}{ $job->{id} };
    $self->_break($job, 'completed twice') if $state eq 'completed' && $job->{completed}++;
    return;
}

# --- what is judged ------------------------------------------------------------------------------

sub _start {
    my ($self, $job) = @_;
    $self->{starts}++;
    $self->_break($job, 'started after it had completed') if $job->{completed};
    return if $job->{started}++ || !$job->{after};
    my @parents = map { $self->{jobs}{$_} } @{ $job->{after} };
    my @needed = sort keys %{ $job->{needs} };
    $self->_break($job, "started before the ends of @needed") if @needed;
    return if !@parents;
    my @failed = grep { $self->{kept}{ $_->{id} } } @parents;
    $self->_break($job, "started after $failed[0]{id}, which did not complete")
      if $job->{starts_when} eq 'completed' && @failed;
    $self->_break($job, 'started although all parents completed')
      if $job->{starts_when} eq 'failed' && !grep { $_->{has_failed} } @parents;
    return;
}

# Each job has started or has a reason, and has ended.
sub _judge_fate {
    my ($self, $job) = @_;
    return if !$job->{after};
    $self->_break($job, 'is stranded') if exists $self->{live}{ $job->{id} };
    return if $job->{started} || $job->{is_odd};
    my @failed = grep { $self->{jobs}{$_}{has_failed} } @{ $job->{after} };
    my $may_be_cancelled = $job->{starts_when} eq 'completed' ? @failed
      : $job->{starts_when} eq 'failed' && @{ $job->{after} };
    $self->_break($job, 'never started, without a reason')
      if !$may_be_cancelled || !defined $job->{cancelled_by};
    return;
}

1;
