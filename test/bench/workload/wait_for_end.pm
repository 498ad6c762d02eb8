# A caller that waits for the end of its job: from the COMMIT of the end to the return of its call.
package Bench::Workload::WaitForEnd;

use strict;
use warnings;

use Bench::Measure;
use Bench::Pulse;

use constant SAMPLES => 1000;

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my %runs;
    for my $repeat (1 .. $at->{repeats}) {
        my $run = Bench::Measure::timed($at, 'postgres',
            "PGDATABASE=postgres '$at->{build}/client/bench-end-told' " . SAMPLES);
        my @pairs = map { [split] } split /\n/, $run->{output};
        die "bench: too few samples, see $at->{log}\n" if @pairs != SAMPLES;
        for (['unflushed', 0], ['flushed', 1]) {
            my ($name, $column) = @$_;
            my @ms = map { $_->[$column] } @pairs;
            my ($p50, $p99) = map { Bench::Measure::percentile($_, @ms) } (0.50, 0.99);
            push @{$runs{$name}}, { load => $run->{load}, samples => \@ms, p50 => $p50,
                                    p99 => $p99 };
            printf "%d %-18s p50 %.3f, p99 %.3f ms (load %s)\n", $repeat, $name, $p50, $p99,
              $run->{load};
        }
    }
    return \%runs;
}

sub row {
    my ($side, $figure, $what) = @_;
    return { name => "wait_for_end.$side.$figure", what => "$what, $figure", ours => $side,
             figure => $figure };
}

return {
    title => 'end of a job to the return of the call that waits for it',
    unit => 'ms',
    rows => sub {
        return (map({ row('unflushed', $_, 'COMMIT sent to return') } qw(p50 p99)),
                map { row('flushed', $_, 'with the flush of the COMMIT') } qw(p50 p99));
    },
    labels => sub { return (unflushed => 'without the flush', flushed => 'with the flush') },
    measure => \&measure,
};
