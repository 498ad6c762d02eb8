# Jobs of twenty thousand named queues, five of each, against as many of no queue: a job of a queue
# is opened by the end of the one before it. Graphile Worker drains the same queues. Two sessions:
# more of them only cost more here.
package Bench::Workload::Queues;

use strict;
use warnings;

use Bench::Draining;
use Bench::Graphile;
use Bench::Load;
use Bench::Pulse;

use constant { JOBS => 100_000, QUEUES => 20_000, BATCH => 100, SESSIONS => 2, RIVAL_BATCH => 500 };

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, $_) for qw(postgres queues);
    Bench::Graphile::create($at, 'graphile');
    my $field = { queue => sprintf q{'queue-' || i %% %d}, QUEUES };
    my %same = (jobs => JOBS, batch => BATCH, workers => SESSIONS);
    my $ours = Bench::Load::in_turn(
        $at, { %same, name => 'none', database => 'postgres' },
        { %same, name => 'queues', database => 'queues', field => $field });
    my $theirs = Bench::Draining::in_turn(
        $at, { system => 'graphile', name => 'graphile', database => 'graphile', jobs => JOBS,
               batch => RIVAL_BATCH, field => $field });
    return { %$ours, %$theirs };
}

return {
    title => 'drain of 100,000 jobs of 20,000 named queues, batches of 100',
    is_long => 1,
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        my %row = (what => '20,000 queues', ours => 'queues');
        return ({ %row, name => 'queues', against => 'none' },
                { %row, name => 'queues.graphile', against => 'graphile' });
    },
    labels => sub {
        return (none => 'no queue', queues => '20,000 queues', graphile => 'Graphile Worker');
    },
    measure => \&measure,
};
