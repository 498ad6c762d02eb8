# From an add to the start of its job, one at a time, where nothing else happens.
package Bench::Workload::IdleStart;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Measure;
use Bench::Pulse;

use constant SAMPLES => 1000;

sub latency {
    my ($at, $database, $command) = @_;
    my $run = Bench::Measure::timed($at, $database, $command);
    my @ms = grep { /^\d+\.\d+$/ } split /\n/, $run->{output};
    die "bench: not so many samples, see $at->{log}\n" if @ms != SAMPLES;
    return { mean => Bench::Measure::mean(@ms), load => $run->{load},
             samples => [map { 0 + $_ } @ms],
             p50 => Bench::Measure::percentile(0.50, @ms),
             p99 => Bench::Measure::percentile(0.99, @ms),
             p999 => Bench::Measure::percentile(0.999, @ms),
             cost => Bench::Measure::per_job($run, SAMPLES) };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    my @sides = (
        [pulse => 'postgres', "PGDATABASE=postgres '$at->{build}/client/bench-latency' "],
        [graphile => 'graphile',
         Bench::Graphile::environment($at, 'graphile') . ' node latency.js '],
    );
    my %runs;
    for my $repeat (1 .. $at->{repeats}) {
        for (@sides) {
            my ($name, $database, $command) = @$_;
            my $run = latency($at, $database, $command . SAMPLES);
            push @{$runs{$name}}, $run;
            printf "%d %-18s p50 %.3f, p99 %.3f, p99.9 %.3f ms (load %s)\n", $repeat, $name,
              @{$run}{qw(p50 p99 p999 load)};
        }
    }
    return \%runs;
}

sub row {
    my ($figure) = @_;
    my $what = $figure eq 'p999' ? 'p99.9' : $figure;
    return { name => "idle_start.$figure", what => $what, ours => 'pulse', against => 'graphile',
             figure => $figure };
}

return {
    title => 'enqueue to start, idle, one at a time',
    unit => 'ms',
    rows => sub {
        return map { row($_) } qw(mean p50 p99 p999);
    },
    labels => sub { return (pulse => 'ours', graphile => 'Graphile Worker') },
    measure => \&measure,
};
