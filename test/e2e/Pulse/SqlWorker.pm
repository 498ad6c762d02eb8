# A worker that is a session of psql, as an author of an own worker would write one.
package Pulse::SqlWorker;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Session';

use Carp qw(croak);

# Registered and attached. `interval`: its heartbeat_interval; `before`: a statement before it
# registers.
sub new {
    my ($class, $node, $name, %options) = @_;
    my $self = $class->SUPER::new($node, %options);
    $self->query($options{before}) if $options{before};
    my $interval = defined $options{interval} ? "'$options{interval}'" : 'NULL';
    $self->{id} =
      $self->query("SELECT id FROM pulse.register_worker('$name', NULL, NULL, $interval)");
    $self->attach;
    return $self;
}

sub id { return $_[0]{id} }

sub attach {
    my ($self, $id) = @_;
    $self->{id} = $id if defined $id;
    return $self->query("SELECT pulse.attach_worker($self->{id})");
}

# Claims at most so many jobs; returns each as { id, token, attempts, recovered }.
sub claim {
    my ($self, $most) = @_;
    $most //= 1;
    my $rows = $self->query(
        "SELECT id, token, attempts, recovered FROM pulse.claim($self->{id}, $most)");
    my @jobs;
    for (split /\n/, $rows) {
        my %job;
        @job{qw(id token attempts recovered)} = split /\|/, $_, -1;
        push @jobs, \%job;
    }
    return wantarray ? @jobs : $jobs[0];
}

sub must_claim {
    my ($self) = @_;
    return $self->claim // croak 'nothing to claim';
}

sub complete {
    my ($self, @jobs) = @_;
    my ($ids, $tokens) = map { my $key = $_; join ',', map { $_->{$key} } @jobs } qw(id token);
    my $refused = $self->query("SELECT id, outcome FROM pulse.complete_many('{$ids}', '{$tokens}')
        WHERE outcome <> 'accepted'");
    croak "not completed: $refused" if $refused ne '';
    return;
}

sub beat {
    my ($self) = @_;
    return $self->query("SELECT status FROM pulse.heartbeat($self->{id})");
}

# Whether the server has said, since this was asked last, that a sweep is due.
sub was_asked_to_sweep {
    my ($self) = @_;
    return delete $self->{asked_to_sweep} // 0;
}

# Every answer may bring the notice.
sub answer {
    my ($self) = @_;
    my $answer = $self->SUPER::answer;
    $self->{asked_to_sweep} = 1 if $self->said =~ /NOTICE:  PU100:/;
    return $answer;
}

sub sweep_if_asked {
    my ($self) = @_;
    $self->query('SELECT pulse.sweep()') while $self->was_asked_to_sweep;
    return;
}

sub wait_for_job {
    my ($self, $most) = @_;
    $self->ask_to_wait("CALL pulse.wait_for_job($self->{id}, '$most')");
    my $answer = $self->answer;
    croak $self->said if $self->said =~ /ERROR|FATAL/;
    return $answer;
}

# Waits in the background; see has_answered and answer. A claim that finds nothing comes first: only
# who has looked is woken for what comes later. Sweeps that were due before are done before.
sub start_waiting {
    my ($self) = @_;
    do {
        $self->sweep_if_asked;
        my @unexpected = $self->claim;
        croak 'something to claim, so there is nothing to wait for' if @unexpected;
        $self->wait_for_job('0');
    } while $self->{asked_to_sweep};
    $self->ask_to_wait("CALL pulse.wait_for_job($self->{id}, '1 hour')");
    return;
}

# What a worker does while it is idle: looks, waits, and sweeps when told, until there is a job.
# Never polls: each wait lasts until somebody ends it.
sub wait_for_claim {
    my ($self) = @_;
    while (1) {
        my $job = $self->claim;
        return $job if $job;
        $self->wait_for_job('1 hour') if !$self->{asked_to_sweep};
        $self->sweep_if_asked;
    }
}

1;
