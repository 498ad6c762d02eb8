# A minute (ten in the long form) at three quarters of the ceiling, on tables through which half a
# million jobs have gone: whether it keeps up, and how large tables and indexes are afterwards.
package Bench::Workload::Steady;

use strict;
use warnings;
use List::Util qw(min);

use Bench::Load;
use Bench::Pulse;
use Bench::Server;

use constant { AGE => 500_000, CALL => 250_000, SHARE => 0.75, SLICES => 10 };

my @sides = qw(--workers 4 --batch 100 --producers 16);

# Megabytes of the job table and its indexes, and dead rows in it.
sub sizes {
    my ($megabytes, $dead) = split /\|/, Bench::Server::sql('postgres', q{SELECT
        round(pg_total_relation_size(relid) / 1e6, 1), n_dead_tup FROM pg_stat_user_tables
        WHERE relid = 'pulse.job'::regclass});
    return { megabytes => $megabytes, dead => $dead };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    for (1 .. AGE / CALL) {
        Bench::Load::fill_and_drain($at, 'postgres', jobs => CALL, batch => 500, task => 'no_op',
                                    vacuum => 0);
    }
    my $ceiling = Bench::Load::jobs_of(
        Bench::Load::run($at, 'postgres', @sides, '--warm', 1, '--seconds', 10));
    my $rate = int($ceiling->{rate} * SHARE);
    my $seconds = $at->{long} ? 600 : 60;
    my $before = sizes();
    my $said = Bench::Load::run($at, 'postgres', @sides, '--rate', $rate, '--warm', 2,
                                '--seconds', $seconds, '--slice', $seconds / SLICES);
    my $after = sizes();
    my @slices = @{$said->{jobs}{slices}};
    printf "%3d s: %.0f jobs/s, p99 %.1f ms\n", $_ * $seconds / SLICES,
      $slices[$_ - 1]{jobs} / $seconds * SLICES, $slices[$_ - 1]{start}{p99} for 1 .. @slices;
    printf "job table and indexes: %.1f MB, then %.1f MB; dead rows %d, then %d\n",
      map { ($before->{$_}, $after->{$_}) } qw(megabytes dead);
    my $run = Bench::Load::jobs_of($said);
    my $least = min(map { $_->{jobs} } @slices) / $seconds * SLICES;
    return { ceiling => [$ceiling], steady => [{
        %$run, kept => 100 * $run->{rate} / $rate, least => 100 * $least / $rate,
        before => $before, after => $after, slices => \@slices,
        growth => $after->{megabytes} / $before->{megabytes}
    }] };
}

sub rows {
    my @rows = ([rate => 'three quarters of it', 'jobs/s'],
                [kept => '  of the jobs that came', '%'],
                [least => '  in the worst tenth of the time', '%'],
                [p99 => '  scheduled to started, p99', 'ms'],
                [growth => '  size afterwards, of that before', 'x']);
    return ({ name => 'steady.ceiling', what => 'ceiling', ours => 'ceiling', figure => 'rate',
              unit => 'jobs/s' },
            map { { name => "steady.$_->[0]", what => $_->[1], ours => 'steady', figure => $_->[0],
                    unit => $_->[2] } } @rows);
}

return {
    title => 'steady state at 75 % of the ceiling, on aged tables',
    is_long => 1,
    settings => ['pulse.databases=postgres'],
    rows => \&rows,
    labels => sub { return (ceiling => 'ceiling', steady => '75 %') },
    measure => \&measure,
};
