# Workers with --program on one server, and the jobs of their programs.
package Pulse::ProgramRun;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Test::More;

use Pulse::Server;
use Pulse::Worker;

our @EXPORT = qw(run_programs_on hello start start_registered start_registered_command add
  wait_finished of_finished drain);

use constant DRAINED => 0;

my $node;
my $workers = 0;

# The server of all that follows.
sub run_programs_on {
    ($node) = @_;
    return;
}

# All tasks retry at once.
sub hello {
    my ($takes, %tasks) = @_;
    value($node, "SELECT pulse.set_task('$_', backoff => 'none')") for keys %tasks;
    return { protocol => 1, takes => $takes, tasks => \%tasks, name => 'shop' };
}

sub start_command {
    my ($command, %options) = @_;
    return Pulse::Worker->start(
        $node, 'worker-' . ++$workers, concurrency => undef, %options, options => [
            '--program', $command, @{ $options{options} // [] } ]);
}

sub start_registered_command {
    my $worker = start_command(@_);
    $worker->wait_for('registered');
    return $worker;
}

# These take a Pulse::ProgramFile.
sub start {
    my ($program, %options) = @_;
    return start_command($program->command, %options);
}

sub start_registered {
    my ($program, %options) = @_;
    return start_registered_command($program->command, %options);
}

# The payload is a text; behind it come the arguments of pulse.add_job after the payload.
sub add {
    my ($task, $payload, @more) = @_;
    return add_job($node, $task, join ', ', "'$payload'", @more);
}

sub wait_finished {
    my ($id) = @_;
    wait_until($node, "SELECT EXISTS (SELECT FROM pulse.finished_job WHERE id = $id)", "job $id");
    return finished($node, $id);
}

sub of_finished {
    my ($column, $id) = @_;
    return value($node, "SELECT $column FROM pulse.finished_job WHERE id = $id");
}

sub drain {
    my ($worker) = @_;
    is($worker->drain, DRAINED, 'it drains');
    return;
}

1;
