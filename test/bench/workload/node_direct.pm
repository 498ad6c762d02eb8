# Tasks in JavaScript that do nothing, by workers without pulse-worker: the direct mode of the
# library for Node, Graphile Worker and pg-boss, each at its best settings; and the direct mode and
# Graphile Worker in one process with no option set.
package Bench::Workload::NodeDirect;

use strict;
use warnings;

use Bench::Draining;
use Bench::Graphile;
use Bench::Npm;
use Bench::PgBoss;
use Bench::Pulse;

use constant { JOBS => 100_000, FEW => 20_000, BATCH => 500, PROCESSES => 4 };
# Of one, two and four processes with batches of 500 to 5,000 these were the fastest.
use constant { PGBOSS_BATCH => 5000, PGBOSS_PROCESSES => 2 };

# The driver comes with pg-boss.
sub command {
    my ($at, $processes, @arguments) = @_;
    return Bench::Npm::node_first($at)
      . "export PGDATABASE=postgres NODE_PATH='$at->{build}/pgboss/node_modules' && "
      . "for i in \$(seq $processes); do node '$at->{here}/tasks/direct.mjs' @arguments & done; "
      . 'wait';
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    Bench::PgBoss::create($at);
    my %ours = (system => 'pulse', database => 'postgres');
    my %rival = (system => 'graphile', database => 'graphile');
    return Bench::Draining::in_turn($at,
        { %ours, name => 'direct', jobs => JOBS, command => command($at, PROCESSES, BATCH) },
        { %rival, name => 'graphile', jobs => JOBS, batch => BATCH, processes => PROCESSES },
        { system => 'pgboss', database => 'pgboss', name => 'pgboss', jobs => JOBS,
          command => Bench::PgBoss::command($at, PGBOSS_PROCESSES, 'work', PGBOSS_BATCH) },
        { %ours, name => 'plain', jobs => FEW, command => command($at, 1) },
        { %rival, name => 'defaults', jobs => FEW, defaults => 1, processes => 1 });
}

return {
    title => 'drain of jobs that do nothing (100,000), by Node without pulse-worker',
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        my %row = (what => 'four processes', ours => 'direct');
        return ({ %row, name => 'direct.graphile', against => 'graphile' },
                { name => 'direct.pgboss', what => 'four processes; theirs two',
                  ours => 'direct', against => 'pgboss' },
                { name => 'direct.defaults', what => 'one process, no option set',
                  ours => 'plain', against => 'defaults' });
    },
    labels => sub {
        return (direct => 'the direct mode', graphile => 'Graphile Worker', pgboss => 'pg-boss',
                plain => 'the direct mode, defaults', defaults => 'Graphile Worker, defaults');
    },
    measure => \&measure,
};
