# 100,000 jobs of dead workers are recovered while others claim: the proof of that name, which also
# tells whether each was recovered once (Graphile Worker recovers none, but after four hours).
package Bench::Workload::Sweep;

use strict;
use warnings;

use Bench::Server;

# The proof fails by itself when it took too long; here the floor decides that.
sub sweep {
    my ($at, $number) = @_;
    my $database = "sweep_$number";
    Bench::Server::command("createdb $database");
    my $output = `PGDATABASE=$database '$at->{build}/client/bench-proofs' sweep 2>&1`;
    open my $log, '>>', $at->{log} or die "bench: $at->{log}: $!\n";
    print {$log} $output;
    close $log;
    my ($seconds) = $output =~ /in ([\d.]+) s \(at most/;
    my ($cpu) = $output =~ /sweeper used ([\d.]+) s/;
    my ($claim) = $output =~ /claims meanwhile: .* longest ([\d.]+) ms/;
    my @broken = grep { /^\s*FAIL/ && !/\(at most/ } split /\n/, $output;
    die "bench: the proof does not hold, see $at->{log}\n" if !defined $claim || @broken;
    Bench::Server::command("dropdb $database");
    return { seconds => $seconds, cpu => $cpu, claim => $claim };
}

sub measure {
    my ($at) = @_;
    my @runs;
    for my $repeat (1 .. $at->{repeats}) {
        my $run = sweep($at, $repeat);
        push @runs, $run;
        printf "%d %.2f s, longest claim %.1f ms\n", $repeat, @{$run}{qw(seconds claim)};
    }
    return { pulse => \@runs };
}

return {
    title => 'sweep of 100,000 orphans of 200 workers while 4 others claim',
    rows => sub {
        return ({ name => 'sweep', what => 'all recovered', ours => 'pulse',
                  figure => 'seconds', unit => 's' },
                { name => 'sweep.cpu', what => 'processor time of the sweeper', ours => 'pulse',
                  figure => 'cpu', unit => 's' },
                { name => 'sweep.claim', what => 'longest claim meanwhile', ours => 'pulse',
                  figure => 'claim', unit => 'ms' });
    },
    measure => \&measure,
};
