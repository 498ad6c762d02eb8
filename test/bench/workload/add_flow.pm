# Flows in one call of add_flow, each job after the one before it: a small flow and a large one. A
# job must cost the same in both, so the rates of the two are held against each other.
package Bench::Workload::AddFlow;

use strict;
use warnings;

use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

use constant DATABASE => 'postgres';

my %jobs = (small => 2000, large => 100_000);

# The flow is made before the call is timed.
sub add {
    my ($at, $name) = @_;
    my $jobs = $jobs{$name};
    Bench::Server::sql(DATABASE,
        'TRUNCATE pulse.job, pulse.dependency, pulse.flow, pulse.flow_job');
    Bench::Server::sql(DATABASE, 'DROP TABLE IF EXISTS flow');
    Bench::Server::sql(DATABASE, sprintf q{CREATE TABLE flow AS
        SELECT json_agg(json_build_object('key', n::text, 'identifier', 'no_op', 'after',
                 CASE WHEN n > 1 THEN json_build_array((n - 1)::text) END)) AS jobs
          FROM generate_series(1, %d) AS n}, $jobs);
    Bench::Server::sql(DATABASE, 'CHECKPOINT');
    my $run = Bench::Measure::timed($at, DATABASE, sprintf
        q{psql -XqAt -d %s -c '\timing' -c 'SELECT count(*) FROM flow, pulse.add_flow(jobs)'},
        DATABASE);
    my ($ms) = $run->{output} =~ /^Time: ([\d.]+) ms/m or die "bench: no time, see $at->{log}\n";
    return { rate => 1000 * $jobs / $ms, jobs => $jobs, load => $run->{load},
             cost => Bench::Measure::per_job($run, $jobs) };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, DATABASE);
    my %runs;
    for my $repeat (0 .. $at->{repeats}) {
        for my $name (qw(small large)) {
            my $run = add($at, $name);
            next if $repeat == 0;
            push @{$runs{$name}}, $run;
            printf "%d %-18s %8.0f/s (load %s)\n", $repeat, $name, @{$run}{qw(rate load)};
        }
    }
    return \%runs;
}

return {
    title => 'add_flow, a chain of 100,000 jobs and one of 2,000',
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return { name => 'add_flow', what => '100,000 in one call', ours => 'large',
                 against => 'small' };
    },
    labels => sub { return (small => '2,000 jobs', large => '100,000 jobs') },
    measure => \&measure,
};
