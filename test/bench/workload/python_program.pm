# Tasks in Python that do nothing, by one program of pulse-worker with the library: in threads, and
# on the event loop; against one process that stays and has a bare loop.
package Bench::Workload::PythonProgram;

use strict;
use warnings;

use Bench::Draining;
use Bench::Pulse;

use constant JOBS => 50_000;

sub command {
    my ($option) = @_;
    return "PGDATABASE=postgres pulse-worker --once --log-level warning $option";
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my $tasks = "/usr/bin/python3 $at->{here}/tasks/no_op.py";
    my %ours = (system => 'pulse', database => 'postgres', jobs => JOBS,
        command => command("--program '$tasks library'"));
    return Bench::Draining::in_turn($at,
        { %ours, name => 'library' },
        { %ours, name => 'async', field => { task => q{'no_op_async'} } },
        { %ours, name => 'process', command => command("--process 'no_op=$tasks process'") });
}

return {
    title => 'drain of jobs that do nothing (50,000), by one program in Python',
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        my %row = (against => 'process');
        return ({ %row, name => 'python.process', what => 'threads', ours => 'library' },
                { %row, name => 'python.async', what => 'the event loop', ours => 'async' });
    },
    labels => sub {
        return (library => 'the library, threads', async => 'the library, async',
                process => 'a bare loop, --process');
    },
    measure => \&measure,
};
