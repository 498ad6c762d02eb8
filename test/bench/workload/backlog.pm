# 200,000 of a million ready jobs (ten millions in the long form) are drained, and for comparison as
# many where no others are.
package Bench::Workload::Backlog;

use strict;
use warnings;

use Bench::Portions;
use Bench::Pulse;
use Bench::Server;

use constant { JOBS => 200_000, BATCH => 100, CALL => 250_000 };

sub size { my ($at) = @_; return $at->{long} ? 10_000_000 : 1_000_000 }

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, $_) for qw(postgres backlog);
    Bench::Server::sql('backlog', Bench::Pulse::fill_statement(CALL)) for 1 .. size($at) / CALL;
    Bench::Server::sql('backlog', 'VACUUM ANALYZE ' . Bench::Pulse::TABLE);
    # A backlog is older than the last checkpoint, and so are the jobs that it is compared with.
    my %same = (system => 'pulse', jobs => JOBS, batch => BATCH, old => 1);
    return Bench::Portions::in_turn($at, [[
        { %same, name => 'clean', database => 'postgres' },
        { %same, name => 'backlog', database => 'backlog' }]]);
}

return {
    title => 'drain of 200,000 from a backlog, batches of 100',
    settings => [Bench::Portions::MEMORY],
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        my ($at) = @_;
        return { name => 'backlog', what => size($at) / 1e6 . ' million jobs ready',
                 ours => 'backlog', against => 'clean' };
    },
    labels => sub { return (clean => 'no backlog', backlog => 'backlog') },
    measure => \&measure,
};
