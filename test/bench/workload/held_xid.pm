# A transaction that has written stays open while half a million jobs live and die: two dead
# versions of each are left that no vacuum may take away. Then drains, against those of a database
# in which nobody holds anything.
package Bench::Workload::HeldXid;

use strict;
use warnings;

use Bench::Load;
use Bench::Pulse;
use Bench::Server;

use constant { DEAD => 1_000_000, CALL => 250_000, TABLE => Bench::Pulse::TABLE };

# Batches, and jobs of a drain.
my @drains = ([1, 10_000], [100, 200_000]);

sub age {
    my ($at) = @_;
    for (1 .. DEAD / 2 / CALL) {
        Bench::Load::fill_and_drain($at, 'held', jobs => CALL, batch => 500, vacuum => 0);
    }
    Bench::Server::sql('held', 'VACUUM ' . TABLE);
    my $dead = Bench::Server::sql('held', q{SELECT n_dead_tup FROM pg_stat_user_tables
        WHERE relid = 'pulse.job'::regclass});
    print "$dead dead row versions\n";
    die "bench: they were vacuumed away\n" if $dead < DEAD / 2;
    return;
}

sub drains {
    return map { my ($batch, $jobs) = @$_; map { {
        name => "$_.$batch", database => $_ eq 'held' ? 'held' : 'postgres', jobs => $jobs,
        batch => $batch
    } } qw(clean held) } @drains;
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, $_) for qw(postgres held);
    my $session = Bench::Server::hold($at, 'held', 'BEGIN; SELECT pg_current_xact_id()');
    age($at);
    my $runs = Bench::Load::in_turn($at, drains());
    Bench::Server::let_go($at, $session);
    return $runs;
}

return {
    title => 'drain beside a transaction that has written, with 1,000,000 dead row versions',
    figure => 'rate',
    unit => 'jobs/s',
    is_long => 1,
    rows => sub {
        return map { { name => "held_xid.$_->[0]", what => "batches of $_->[0]",
                       ours => "held.$_->[0]", against => "clean.$_->[0]" } } @drains;
    },
    labels => sub {
        return map { ("clean.$_->[0]" => "nobody holds, $_->[0]",
                      "held.$_->[0]" => "held, $_->[0]") } @drains;
    },
    measure => \&measure,
};
