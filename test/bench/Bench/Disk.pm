# What the disk does while something is measured: flushes of one page to a file beside the server's,
# at an interval. A disk that stalls stalls every commit, whatever the queue does.
package Bench::Disk;

use strict;
use warnings;

use Bench::Measure;

# Calls the code meanwhile, and returns what it returns and what flushes took, in milliseconds.
sub beside {
    my ($at, $every_ms, $code) = @_;
    my $pid = open my $output, '-|', "$at->{build}/client/bench-flush", "$at->{build}/flushed",
      $every_ms
      or die "bench: bench-flush: $!\n";
    my $done = eval { $code->() };
    my $error = $@;
    kill 'TERM', $pid;
    my @ms = map { 0 + $_ } <$output>;
    close $output or die "bench: bench-flush failed\n";
    die $error if $error;
    return ($done, { flushes => scalar @ms, max => Bench::Measure::spread(@ms)->{greatest},
                     p50 => Bench::Measure::percentile(0.50, @ms),
                     p99 => Bench::Measure::percentile(0.99, @ms) });
}

1;
