# Runs of bench-load: workers, beats and jobs on a schedule, and what it says of them.
package Bench::Load;

use strict;
use warnings;
use JSON::PP ();

use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

# What one run said: a hash of its phases (idle, jobs), and of all of it.
sub run {
    my ($at, $database, @options) = @_;
    my $command = "PGDATABASE=$database '$at->{build}/client/bench-load' @options";
    my $timed = Bench::Measure::timed($at, $database, $command);
    my $said = JSON::PP::decode_json($timed->{output});
    return { %$said, timed => $timed };
}

# The jobs of such a run: their rate, and what each cost. Processor time and bytes of WAL are those
# of the measured time, records and buffers those of the whole run.
sub jobs_of {
    my ($run) = @_;
    my ($phase, $timed) = @{$run}{qw(jobs timed)};
    die "bench: no job has ended\n" if $phase->{jobs} == 0;
    my %used = (%$timed, wal_bytes => $phase->{wal},
                map { ($_ => $phase->{$_}) } qw(server_cpu client_cpu));
    return { jobs => $phase->{jobs}, seconds => $phase->{seconds},
             rate => $phase->{jobs} / $phase->{seconds}, load => $timed->{load},
             cost => Bench::Measure::per_job(\%used, $phase->{jobs}),
             claims => $phase->{claims} / $phase->{jobs}, start => $phase->{start},
             (map { ($_ => $phase->{start}{$_}) } qw(p50 p99 p999 max)) };
}

# Drains so many of the jobs that are there, and no others.
# Options: jobs, batch, workers, fail, task.
sub drain {
    my ($at, $database, %option) = @_;
    my @options = ('--jobs', $option{jobs}, '--batch', $option{batch}, '--beat-sessions', 0,
                   '--workers', $option{workers} // 4, '--task', $option{task} // 'no_op',
                   $option{fail} ? ('--fail', $option{fail}) : ());
    return jobs_of(run($at, $database, @options));
}

# Fills and drains: dead rows are vacuumed away first unless the option vacuum says no, and a
# checkpoint comes before the jobs; of old jobs another comes after them, so that the drain logs
# their pages whole. A fill of its own is a statement, and so is what comes before it. What was
# there before must be as much afterwards.
sub fill_and_drain {
    my ($at, $database, %option) = @_;
    my $count = 'SELECT count(*) FROM ' . Bench::Pulse::TABLE;
    Bench::Server::sql($database, 'VACUUM ' . Bench::Pulse::TABLE) if $option{vacuum} // 1;
    Bench::Server::sql($database, $option{before}) if $option{before};
    my $before = Bench::Server::sql($database, $count);
    Bench::Server::sql($database, 'CHECKPOINT');
    if ($option{fill}) { Bench::Server::sql($database, $option{fill}) }
    else { Bench::Pulse::fill($database, $option{jobs}, %{$option{field} // {}}) }
    Bench::Server::sql($database, 'CHECKPOINT') if $option{old};
    my $run = drain($at, $database, %option);
    my $left = Bench::Server::sql($database, $count) - $before;
    die "bench: $left jobs are left, see $at->{log}\n" if $left != 0;
    return $run;
}

# Runs of several drains in turn, after one of each that counts for nothing: lists by name.
sub in_turn {
    my ($at, @drains) = @_;
    my %runs;
    for my $repeat (0 .. $at->{repeats}) {
        for my $drain (@drains) {
            my $run = fill_and_drain($at, $drain->{database}, %$drain);
            next if $repeat == 0;
            push @{$runs{$drain->{name}}}, $run;
            printf "%d %-18s %9.0f jobs/s (load %s)\n", $repeat, $drain->{name},
              @{$run}{qw(rate load)};
        }
    }
    return \%runs;
}

1;
