# How soon a job starts while the server is half busy. The ceiling comes first: producers add as
# fast as they can. Then jobs come at half of that rate, on a fixed schedule, and the clock of each
# runs from the moment for which it was scheduled.
package Bench::Workload::LatencyLoad;

use strict;
use warnings;

use Bench::Disk;
use Bench::Load;
use Bench::Measure;
use Bench::Pulse;

use constant { SHARE => 0.5, FLUSH_EVERY_MS => 50 };

my @sides = qw(--workers 4 --batch 100 --producers 16);

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my %runs;
    my $seconds = $at->{long} ? 60 : 10;
    for my $repeat (1 .. $at->{repeats}) {
        my $ceiling = Bench::Load::jobs_of(
            Bench::Load::run($at, 'postgres', @sides, '--warm', 1, '--seconds', 5));
        my @half = (@sides, '--warm', 2, '--seconds', $seconds, '--rate',
                    int($ceiling->{rate} * SHARE));
        my ($run, $disk) = Bench::Disk::beside($at, FLUSH_EVERY_MS,
                                               sub { Bench::Load::run($at, 'postgres', @half) });
        my $half = Bench::Load::jobs_of($run);
        printf "%d ceiling %.0f jobs/s; at %.0f jobs/s p50 %.2f, p99 %.2f, p99.9 %.2f ms;"
          . " a flush beside it p50 %.2f, p99 %.2f, longest %.2f ms\n",
          $repeat, $ceiling->{rate}, @{$half}{qw(rate p50 p99 p999)}, @{$disk}{qw(p50 p99 max)};
        push @{$runs{disk}}, $disk;
        push @{$runs{ceiling}}, $ceiling;
        push @{$runs{half}}, $half;
    }
    return \%runs;
}

sub rows {
    my @of_disk = ([p50 => 'p50'], [p99 => 'p99'], [max => 'longest']);
    my @of_half = ([p50 => 'p50'], [p99 => 'p99'], [p999 => 'p99.9']);
    return (
        { name => 'latency_load.ceiling', what => 'ceiling', ours => 'ceiling', figure => 'rate',
          unit => 'jobs/s' },
        { name => 'latency_load.rate', what => 'at half of it', ours => 'half', figure => 'rate',
          unit => 'jobs/s' },
        (map { +{ name => "latency_load.$_->[0]", what => "  scheduled to started, $_->[1]",
                  ours => 'half', figure => $_->[0], unit => 'ms' } } @of_half),
        (map { +{ name => "latency_load.disk.$_->[0]", what => "  a flush alone meanwhile, $_->[1]",
                  ours => 'disk', figure => $_->[0], unit => 'ms' } } @of_disk));
}

return {
    title => 'start of a job at half of the ceiling: 16 producers, 4 workers',
    settings => ['pulse.databases=postgres'],
    rows => \&rows,
    labels => sub { return (ceiling => 'ceiling', half => 'half of it',
                              disk => 'a flush alone meanwhile') },
    measure => \&measure,
};
