# Ready jobs behind 200,000 older ones of a hundred tasks that nobody here serves.
package Bench::Workload::UnservedTasks;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Laden;
use Bench::Portions;
use Bench::Pulse;

use constant UNSERVED => 200_000;

my %unserved = (task => q{'unserved_' || i % 100}, run_at => q{now() - interval '1 day'});

return {
    title => 'drain of ready jobs behind 200,000 of tasks that are not served',
    settings => [Bench::Portions::MEMORY],
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub { return Bench::Laden::rows('unserved_tasks') },
    labels => \&Bench::Laden::labels,
    measure => sub {
        my ($at) = @_;
        return Bench::Laden::measure($at,
            pulse => sub { Bench::Pulse::fill($_[1], UNSERVED, %unserved); return },
            graphile => sub { Bench::Graphile::fill($_[1], UNSERVED, %unserved); return });
    },
};
