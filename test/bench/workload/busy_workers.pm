# The same jobs, added one by one by 16 sessions as fast as they can, through more and more workers
# that wait, claim one and complete it: more of them must not make it slower.
package Bench::Workload::BusyWorkers;

use strict;
use warnings;

use Bench::Load;
use Bench::Pulse;
use Bench::Server;

sub counts { my ($at) = @_; return $at->{long} ? (1, 10, 100, 1000) : (10, 100) }

sub rows {
    my ($at) = @_;
    return map { {
        name => "busy_workers.$_", what => "$_ workers, against 10", ours => "workers.$_",
        against => 'workers.10'
    } } counts($at);
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my %runs;
    for my $repeat (1 .. $at->{repeats}) {
        for my $workers (counts($at)) {
            Bench::Server::sql('postgres', 'VACUUM ' . Bench::Pulse::TABLE);
            my $run = Bench::Load::jobs_of(
                Bench::Load::run($at, 'postgres', '--workers', $workers, '--producers', 16,
                                 '--warm', 1, '--seconds', 4));
            printf "%d %4d workers %7.0f jobs/s, %.1f claims/job (load %s)\n", $repeat, $workers,
              @{$run}{qw(rate claims load)};
            push @{$runs{"workers.$workers"}}, $run;
        }
    }
    return \%runs;
}

return {
    title => 'busy workers: 16 producers, a job a claim',
    is_long => 1,
    settings => ['max_connections=1200', 'pulse.databases=postgres'],
    figure => 'rate',
    unit => 'jobs/s',
    rows => \&rows,
    labels => sub { return map { ("workers.$_" => "$_ workers") } counts($_[0]) },
    measure => \&measure,
};
