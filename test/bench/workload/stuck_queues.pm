# Ready jobs behind 100,000 older ones of two named queues, each of which is busy with a job
# that does not end.
package Bench::Workload::StuckQueues;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Laden;
use Bench::Portions;
use Bench::Pulse;
use Bench::Server;

use constant STUCK => 100_000;

my %stuck = (queue => q{'stuck_' || i % 2}, run_at => q{now() - interval '1 day'});

sub load_pulse {
    my ($at, $database) = @_;
    Bench::Pulse::fill($database, STUCK, %stuck);
    my $held = Bench::Server::sql($database, q{SELECT count(c.id)
        FROM pulse.register_worker('stuck', ARRAY['no_op']) AS w, pulse.claim(w.id, 10) AS c});
    die "bench: $held jobs of two queues are held\n" if $held != 2;
    return;
}

sub load_graphile {
    my ($at, $database) = @_;
    Bench::Graphile::fill($database, STUCK, %stuck);
    Bench::Server::sql($database, q{UPDATE graphile_worker._private_job_queues
        SET locked_at = now(), locked_by = 'stuck'});
    return;
}

return {
    title => 'drain of ready jobs behind 100,000 that wait for two busy queues',
    settings => [Bench::Portions::MEMORY],
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub { return Bench::Laden::rows('stuck_queues') },
    labels => \&Bench::Laden::labels,
    measure => sub {
        my ($at) = @_;
        return Bench::Laden::measure($at, pulse => \&load_pulse, graphile => \&load_graphile);
    },
};
