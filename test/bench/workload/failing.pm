# Every other job fails: once, and is retried at once, or for good. Against jobs that do not.
package Bench::Workload::Failing;

use strict;
use warnings;

use Bench::Load;
use Bench::Pulse;

use constant { JOBS => 50_000, BATCH => 100 };

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my %same = (database => 'postgres', jobs => JOBS, batch => BATCH);
    return Bench::Load::in_turn($at, { %same, name => 'none' },
                                { %same, name => 'retried', fail => 'retried' },
                                { %same, name => 'forgood', fail => 'forgood' });
}

return {
    title => 'drain of 50,000 jobs of which half fail, batches of 100',
    is_long => 1,
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return map { { name => "failing.$_->[0]", what => $_->[1], ours => $_->[0],
                       against => 'none' } }
          [retried => 'half fail once, retried at once'], [forgood => 'half fail for good'];
    },
    labels => sub {
        return (none => 'none fails', retried => 'retried at once', forgood => 'failed for good');
    },
    measure => \&measure,
};
