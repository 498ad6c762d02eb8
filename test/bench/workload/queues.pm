# Jobs of twenty thousand named queues, five of each, against as many of no queue: a job of a queue
# is opened by the end of the one before it.
package Bench::Workload::Queues;

use strict;
use warnings;

use Bench::Load;
use Bench::Pulse;

use constant { JOBS => 100_000, QUEUES => 20_000, BATCH => 100 };

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, $_) for qw(postgres queues);
    my %same = (jobs => JOBS, batch => BATCH);
    my $queue = sprintf q{'queue-' || i %% %d}, QUEUES;
    return Bench::Load::in_turn(
        $at, { %same, name => 'none', database => 'postgres' },
        { %same, name => 'queues', database => 'queues', field => { queue => $queue } });
}

return {
    title => 'drain of 100,000 jobs of 20,000 named queues, batches of 100',
    is_long => 1,
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return { name => 'queues', what => '20,000 queues', ours => 'queues', against => 'none' };
    },
    labels => sub { return (none => 'no queue', queues => '20,000 queues') },
    measure => \&measure,
};
