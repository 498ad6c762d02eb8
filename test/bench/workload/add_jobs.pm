# 200,000 jobs in one call of add_jobs. The call's specifications are made by the same statement on
# both sides, and are timed with it.
package Bench::Workload::AddJobs;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

use constant JOBS => 200_000;

my %side = (
    pulse => { database => 'postgres', table => Bench::Pulse::TABLE,
               sql => Bench::Pulse::fill_statement(JOBS) },
    graphile => { database => 'graphile', table => Bench::Graphile::TABLE,
                  sql => Bench::Graphile::fill_statement(JOBS) },
);

# Into a table that is not new: the pages of the jobs before it are there, empty.
sub add {
    my ($at, $name) = @_;
    my ($database, $table, $sql) = @{$side{$name}}{qw(database table sql)};
    Bench::Server::sql($database, "DELETE FROM $table");
    Bench::Server::sql($database, "VACUUM (ANALYZE, TRUNCATE off) $table");
    Bench::Server::sql($database, 'CHECKPOINT');
    my $quoted = $sql =~ s/'/'\\''/gr;
    my $run = Bench::Measure::timed($at, $database,
        "psql -XqAt -d $database -c '\\timing' -c '$quoted'");
    my ($ms) = $run->{output} =~ /^Time: ([\d.]+) ms/m or die "bench: no time, see $at->{log}\n";
    my $jobs = Bench::Server::sql($database, "SELECT count(*) FROM $table");
    die "bench: $jobs jobs are there, see $at->{log}\n" if $jobs != JOBS;
    return { rate => 1000 * JOBS / $ms, jobs => JOBS, load => $run->{load},
             cost => Bench::Measure::per_job($run, JOBS) };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    my %runs;
    for my $repeat (0 .. $at->{repeats}) {
        for my $name (qw(pulse graphile)) {
            my $run = add($at, $name);
            next if $repeat == 0;
            push @{$runs{$name}}, $run;
            printf "%d %-18s %8.0f/s (load %s)\n", $repeat, $name, @{$run}{qw(rate load)};
        }
    }
    return \%runs;
}

return {
    title => 'add_jobs, 200,000 in one call',
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return { name => 'add_jobs', what => 'one call', ours => 'pulse', against => 'graphile' };
    },
    labels => sub { return (pulse => 'ours', graphile => 'Graphile Worker') },
    measure => \&measure,
};
