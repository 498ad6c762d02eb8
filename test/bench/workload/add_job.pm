# One job per transaction by many clients (pgbench): add_job, Graphile Worker's, and a bare INSERT
# of the same row into our table, with its indexes and defaults, and without a function.
package Bench::Workload::AddJob;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

# Rates are of the time after the first seconds, in which 64 new sessions still load and plan.
use constant { SECONDS => 6, FIRST => 2 };

my %side = (
    pulse => { database => 'postgres', table => Bench::Pulse::TABLE,
        sql => q{SELECT (pulse.add_job('no_op', '{"id": 1}')).id} },
    bare => { database => 'postgres', table => Bench::Pulse::TABLE,
        sql => q{INSERT INTO pulse.job (identifier, payload, run_at, state, max_attempts, priority,
            created_at, updated_at) VALUES ('no_op', '{"id": 1}', now(), 'ready', 25, 0, now(),
            now()) RETURNING id} =~ s/\s+/ /gr },
    graphile => { database => 'graphile', table => Bench::Graphile::TABLE,
        sql => q{SELECT (graphile_worker.add_job('no_op', '{"id": 1}')).id} },
);
my @sides = qw(pulse bare graphile);

sub clients { my ($at) = @_; return $at->{long} ? (1, 4, 16, 64) : (16, 64) }

sub write_scripts {
    my ($at) = @_;
    for my $name (@sides) {
        open my $handle, '>', "$at->{build}/add_$name.sql" or die "bench: $!\n";
        print {$handle} "$side{$name}{sql};\n";
        close $handle;
    }
    return;
}

# Added is what is in the table afterwards, which pgbench's count must not exceed.
sub add {
    my ($at, $name, $clients) = @_;
    my ($database, $table) = @{$side{$name}}{qw(database table)};
    Bench::Server::sql($database, 'CHECKPOINT');
    my $before = Bench::Server::sql($database, "SELECT count(*) FROM $table");
    my $run = Bench::Measure::timed($at, $database, "pgbench -n -M prepared -c $clients -j 2"
          . ' -P 1 -T ' . SECONDS . " -f '$at->{build}/add_$name.sql' $database 2>&1");
    my @rates = $run->{output} =~ /^progress: [\d.]+ s, ([\d.]+) tps/mg;
    die "bench: no rates, see $at->{log}\n" if @rates <= FIRST;
    my $rate = Bench::Measure::mean(@rates[FIRST .. $#rates]);
    my ($told) = $run->{output} =~ /actually processed: (\d+)/;
    my $jobs = Bench::Server::sql($database, "SELECT count(*) FROM $table") - $before;
    die "bench: $jobs jobs of $told are there, see $at->{log}\n" if $jobs < $told;
    return { rate => $rate, jobs => $jobs, load => $run->{load},
             cost => Bench::Measure::per_job($run, $jobs) };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    write_scripts($at);
    Bench::Server::sql('graphile', $side{graphile}{sql});    # its task is known from now on
    my %runs;
    for my $repeat (1 .. $at->{repeats}) {
        # Whoever comes later adds to a longer table.
        my @clients = $repeat % 2 ? clients($at) : reverse clients($at);
        for my $name (@sides) {
            for my $clients (@clients) {
                my $run = add($at, $name, $clients);
                push @{$runs{"$name.$clients"}}, $run;
                printf "%d %-18s %8.0f/s (load %s)\n", $repeat, "$name.$clients",
                  @{$run}{qw(rate load)};
            }
        }
    }
    return \%runs;
}

sub rows {
    my ($at) = @_;
    my @rows = map { (
        { name => "add_job.$_", what => "$_ clients", ours => "pulse.$_",
          against => "graphile.$_" },
        { name => "add_job.$_.bare", what => "$_ clients", ours => "pulse.$_",
          against => "bare.$_" },
    ) } clients($at);
    return (@rows, { name => 'add_job.64.16', what => '64 clients, not slower than 16',
                     ours => 'pulse.64', against => 'pulse.16' });
}

sub labels {
    my ($at) = @_;
    return map { ("pulse.$_" => "ours, $_", "bare.$_" => "bare INSERT, $_",
                  "graphile.$_" => "Graphile Worker, $_") } clients($at);
}

return {
    title => 'add_job, one per transaction',
    figure => 'rate',
    unit => 'jobs/s',
    rows => \&rows,
    labels => \&labels,
    measure => \&measure,
};
