# The drain with what a program gets that sets nothing: ours with one handler in C++, Graphile
# Worker with one task in JavaScript.
package Bench::Workload::Defaults;

use strict;
use warnings;

use Bench::Draining;
use Bench::Graphile;
use Bench::Pulse;

use constant JOBS => 20_000;

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    my $handlers = Bench::Pulse::build_tasks($at) . '/bench-handlers';
    return Bench::Draining::in_turn($at,
        { name => 'pulse', system => 'pulse', database => 'postgres', jobs => JOBS,
          command => "PGDATABASE=postgres '$handlers' defaults" },
        { name => 'graphile', system => 'graphile', database => 'graphile', jobs => JOBS,
          defaults => 1, processes => 1 });
}

return {
    title => 'drain of 20,000 jobs that do nothing, one process at its defaults',
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return { name => 'defaults', what => 'defaults', ours => 'pulse', against => 'graphile' };
    },
    labels => sub { return (pulse => 'ours, C++ handler', graphile => 'Graphile Worker') },
    measure => \&measure,
};
