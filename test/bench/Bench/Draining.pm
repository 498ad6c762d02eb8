# One drain: jobs that do nothing are added, then the clock runs until none is left.
package Bench::Draining;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Measure;
use Bench::PgBoss;
use Bench::Pulse;
use Bench::Server;

# `left` counts the jobs that have not ended.
my %graphile = (table => Bench::Graphile::TABLE, left => Bench::Graphile::LEFT,
                fill => sub { my (undef, @rest) = @_; Bench::Graphile::fill(@rest) });
my %side = (
    pulse => { table => Bench::Pulse::TABLE, left => Bench::Pulse::LEFT,
               fill => sub { my (undef, @rest) = @_; Bench::Pulse::fill(@rest) },
               command => \&Bench::Pulse::drain_command },
    graphile => { %graphile, command => \&Bench::Graphile::drain_command },
    graphile_sql => { %graphile, command => \&Bench::Graphile::sql_drain_command },
    pgboss => { table => Bench::PgBoss::TABLE, left => Bench::PgBoss::LEFT,
                fill => sub { my ($at, undef, $jobs) = @_; Bench::PgBoss::fill($at, $jobs) } },
);

# Fills for all drains that follow. Dead rows are vacuumed away where the option says so, and a
# checkpoint comes before the jobs of any, because it is of the whole server, so that none falls
# into a drain and pages were logged whole already, for every side alike. Of old jobs another one
# comes after them, so that the drains log their pages whole.
# Returns how many jobs were there before, of each.
sub fill {
    my ($at, @drains) = @_;
    my @others;
    for my $drain (@drains) {
        my ($table, $left) = @{$side{$drain->{system}}}{qw(table left)};
        Bench::Server::sql($drain->{database}, "VACUUM (ANALYZE) $table") if $drain->{vacuum} // 1;
        push @others, Bench::Server::sql($drain->{database}, $left);
    }
    Bench::Server::sql('postgres', 'CHECKPOINT');
    $side{$_->{system}}{fill}->($at, $_->{database}, $_->{jobs}, %{$_->{field} // {}}) for @drains;
    Bench::Server::sql('postgres', 'CHECKPOINT') if $drains[0]{old};
    return @others;
}

# Dies if not as many are left as there were before.
sub check_left {
    my ($at, $others, %option) = @_;
    my $left = Bench::Server::sql($option{database}, $side{$option{system}}{left}) - $others;
    die "bench: $option{system} left $left jobs, see $at->{log}\n" if $left != 0;
    return;
}

# Options: system, database, jobs, command (or those of the side's drain command), vacuum, old,
# field.
sub drain {
    my ($at, %option) = @_;
    my ($database, $jobs) = @option{qw(database jobs)};
    my $command = $option{command}
      // $side{$option{system}}{command}->($at, $database, %option);
    my ($others) = fill($at, \%option);
    my $run = Bench::Measure::timed($at, $database, $command);
    check_left($at, $others, %option);
    # As Graphile Worker's authors do: the start of one process, although several start at once. It
    # comes afterwards, so that the drain finds nothing that this start has looked up.
    my $startup = Bench::Measure::timed($at, $database, $command =~ s{seq \d+}{seq 1}r);
    return { jobs => $jobs, seconds => $run->{seconds}, startup => $startup->{seconds},
             load => $run->{load}, cost => Bench::Measure::per_job($run, $jobs) };
}

# Jobs per second without the time to start and stop, which is a median because it is short.
sub rate {
    my (@runs) = @_;
    my $startup = Bench::Measure::median(map { $_->{startup} } @runs);
    $_->{rate} = $_->{jobs} / ($_->{seconds} - $startup) for @runs;
    return;
}

# Drains in turn, after one of each that counts for nothing, and their rates: lists of runs by name.
sub in_turn {
    my ($at, @drains) = @_;
    my %runs;
    for my $repeat (0 .. $at->{repeats}) {
        for my $drain (@drains) {
            my $run = drain($at, %$drain);
            next if $repeat == 0;
            push @{$runs{$drain->{name}}}, $run;
            printf "%d %-18s %7.2f s, start and stop %.2f s (load %s)\n", $repeat, $drain->{name},
              @{$run}{qw(seconds startup load)};
        }
    }
    rate(@$_) for values %runs;
    return \%runs;
}

1;
