# Tasks in JavaScript that do nothing, by two programs of pulse-worker: with the library for Node,
# as a bare loop over the lines, and Graphile Worker at its best and at its defaults. And tasks of
# 50 ms in as many queues as jobs, against as many without a queue.
package Bench::Workload::NodeProgram;

use strict;
use warnings;

use Bench::Draining;
use Bench::Graphile;
use Bench::Npm;
use Bench::Pulse;

use constant { JOBS => 100_000, FEW => 20_000, QUEUES => 400, BATCH => 500, PROGRAMS => 2 };

sub command {
    my ($at, $how, $programs) = @_;
    return Bench::Npm::node_first($at)
      . 'PGDATABASE=postgres pulse-worker --once --log-level warning'
      . " --program 'node $at->{here}/tasks/no_op.mjs $how' --programs $programs";
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    my %ours = (system => 'pulse', database => 'postgres');
    my %rival = (system => 'graphile', database => 'graphile');
    my %waits = (%ours, jobs => QUEUES, command => command($at, 'library', 1));
    return Bench::Draining::in_turn($at,
        { %ours, name => 'library', jobs => JOBS, command => command($at, 'library', PROGRAMS) },
        { %ours, name => 'bare', jobs => JOBS, command => command($at, 'bare', PROGRAMS) },
        { %rival, name => 'best', jobs => JOBS, batch => BATCH },
        { %rival, name => 'defaults', jobs => FEW, defaults => 1, processes => 1 },
        { %waits, name => 'waits', field => { task => q{'pause'} } },
        { %waits, name => 'queues', field => { task => q{'pause'}, queue => q{'queue-' || i} } });
}

return {
    title => 'drain of jobs that do nothing (100,000), by two programs in Node',
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        my %row = (what => 'two programs', ours => 'library');
        return ({ %row, name => 'node.best', against => 'best' },
                { %row, name => 'node.defaults', against => 'defaults' },
                { %row, name => 'node.bare', against => 'bare' },
                { name => 'node.queues', what => '400 jobs of 50 ms in 400 queues',
                  ours => 'queues', against => 'waits' });
    },
    labels => sub {
        return (library => 'the library', bare => 'a bare loop',
                best => 'Graphile Worker, four processes', defaults => 'Graphile Worker, defaults',
                waits => '50 ms, no queue', queues => '50 ms, 400 queues');
    },
    measure => \&measure,
};
