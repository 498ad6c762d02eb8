# The drain: 200,000 jobs that do nothing, each side at its best settings, and Graphile Worker's own
# statements sent by our client, which tells the language from the design.
package Bench::Workload::Drain;

use strict;
use warnings;

use Bench::Draining;
use Bench::Graphile;
use Bench::Pulse;

use constant { JOBS => 200_000, BEST => 500 };

# One by one, 200,000 jobs take Graphile Worker minutes.
sub jobs_of { my ($batch) = @_; return $batch < 100 ? JOBS / 10 : JOBS }

sub drains {
    my ($batch) = @_;
    my %same = (batch => $batch, jobs => jobs_of($batch));
    return ({ %same, name => "pulse.$batch", system => 'pulse', database => 'postgres' },
            { %same, name => "graphile.$batch", system => 'graphile', database => 'graphile' },
            { %same, name => "graphile_sql.$batch", system => 'graphile_sql',
              database => 'graphile' });
}

sub batches { my ($at) = @_; return $at->{long} ? (1, 10, 100, BEST) : (BEST) }

sub rows {
    my ($at) = @_;
    return map { (
        { name => $_ == BEST ? 'drain.best' : "drain.$_", what => "batches of $_",
          ours => "pulse.$_", against => "graphile.$_" },
        { name => "drain.sql.$_", what => "batches of $_", ours => "pulse.$_",
          against => "graphile_sql.$_" },
    ) } batches($at);
}

sub labels {
    my ($at) = @_;
    return map { ("pulse.$_" => "ours, $_", "graphile.$_" => "Graphile Worker, $_",
                  "graphile_sql.$_" => "its SQL from C++, $_") } batches($at);
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    return { map { %{Bench::Draining::in_turn($at, drains($_))} } batches($at) };
}

return {
    title => 'drain of jobs that do nothing (200,000; 20,000 in batches below 100)',
    figure => 'rate',
    unit => 'jobs/s',
    rows => \&rows,
    labels => \&labels,
    measure => \&measure,
};
