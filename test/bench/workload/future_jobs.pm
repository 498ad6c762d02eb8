# Ready jobs beside a million of the same task that are due tomorrow.
package Bench::Workload::FutureJobs;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Laden;
use Bench::Portions;
use Bench::Pulse;
use Bench::Server;

use constant { FUTURE => 1_000_000, STEP => 200_000 };

my %tomorrow = (run_at => q{now() + interval '1 day'});

sub load {
    my ($database, $fill) = @_;
    $fill->($database, STEP, %tomorrow) for 1 .. FUTURE / STEP;
    return;
}

return {
    title => 'drain of ready jobs beside 1,000,000 future ones',
    settings => [Bench::Portions::MEMORY],
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub { return Bench::Laden::rows('future_jobs') },
    labels => \&Bench::Laden::labels,
    measure => sub {
        my ($at) = @_;
        return Bench::Laden::measure($at,
            pulse => sub { return load($_[1], \&Bench::Pulse::fill) },
            graphile => sub { return load($_[1], \&Bench::Graphile::fill) });
    },
};
