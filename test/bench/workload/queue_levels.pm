# Jobs of twenty thousand queues that are members of one level, against as many queues of no level:
# the members start in turn, or the level has a rate that never binds.
package Bench::Workload::QueueLevels;

use strict;
use warnings;

use Bench::Load;
use Bench::Pulse;
use Bench::Server;

use constant { JOBS => 100_000, QUEUES => 20_000, BATCH => 32 };

my %setting = (fair => 'fair => true', rated => q{rate => 1000000, per => '1 s'});

sub drain {
    my ($level, $workers) = @_;
    # Nothing beats or sweeps in a drain, so live time stands still and no token comes back.
    my $tick = 'SELECT pulse.sweep()';
    my $prefix = $level eq 'plain' ? 'queue-' : 'level/queue-';
    return { name => "$level.$workers", database => $level, jobs => JOBS, batch => BATCH,
             workers => $workers, before => $tick,
             field => { queue => sprintf q{'%s' || i %% %d}, $prefix, QUEUES } };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, $_) for 'plain', keys %setting;
    Bench::Server::sql($_, "SELECT pulse.set_queue('level', $setting{$_})") for keys %setting;
    return Bench::Load::in_turn($at, map { drain(@$_) }
        ['plain', 4], ['fair', 4], ['plain', 1], ['rated', 1], ['rated', 4]);
}

return {
    title => 'drain of 100,000 jobs of 20,000 queues within a level, batches of 32',
    is_long => 1,
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return map { my ($level, $workers) = @$_;
                     { name => "queue_levels.$level.$workers", what => "sessions: $workers",
                       ours => "$level.$workers", against => "plain.$workers" }
        } ['fair', 4], ['rated', 1], ['rated', 4];
    },
    labels => sub {
        return ('plain.4' => 'no level', 'plain.1' => 'no level, one session',
                'fair.4' => 'a fair level', 'rated.4' => 'a rate that never binds',
                'rated.1' => 'the same, one session');
    },
    measure => \&measure,
};
