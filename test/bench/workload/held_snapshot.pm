# A drain after a million jobs came and went while somebody's snapshot keeps their dead rows.
package Bench::Workload::HeldSnapshot;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Laden;
use Bench::Portions;
use Bench::Pulse;
use Bench::Server;

use constant {
    DEAD => 1_000_000, STEP => 200_000,
    SNAPSHOT => 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1' };

# Each of ours leaves two dead versions, of its claim and of its end.
sub load_pulse {
    my ($at, $database) = @_;
    my $snapshot = Bench::Server::hold($at, $database, SNAPSHOT);
    for (1 .. DEAD / STEP) {
        Bench::Server::sql($database, Bench::Pulse::fill_statement(STEP));
        Bench::Server::command(
            Bench::Pulse::drain_command($at, $database, batch => 500) . " >>'$at->{log}'");
    }
    return $snapshot;
}

# A drain of so many under the snapshot takes the rival long; removed jobs leave one version each.
sub load_graphile {
    my ($at, $database) = @_;
    my $snapshot = Bench::Server::hold($at, $database, SNAPSHOT);
    for (1 .. DEAD / STEP) {
        Bench::Server::sql($database, Bench::Graphile::fill_statement(STEP));
        Bench::Server::sql($database, 'DELETE FROM ' . Bench::Graphile::TABLE);
    }
    return $snapshot;
}

return {
    title => 'drain after 1,000,000 jobs that are gone and a held snapshot keeps',
    settings => [Bench::Portions::MEMORY],
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub { return Bench::Laden::rows('held_snapshot') },
    labels => \&Bench::Laden::labels,
    measure => sub {
        my ($at) = @_;
        return Bench::Laden::measure($at, pulse => \&load_pulse, graphile => \&load_graphile,
                                     vacuum => 0);
    },
};
