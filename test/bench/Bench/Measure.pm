# A command that is timed, with what it cost the server and the client; and what many times say.
package Bench::Measure;

use strict;
use warnings;
use List::Util qw(max min sum);
use Time::HiRes qw(time);

use Bench::Server;

my @costs = qw(server_cpu client_cpu wal_bytes wal_records buffers);

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return ($sorted[$#sorted / 2] + $sorted[@sorted / 2]) / 2;
}

sub mean { return sum(@_) / @_ }

sub percentile {
    my ($part, @values) = @_;
    my @sorted = sort { $a <=> $b } @values;
    return $sorted[$part * $#sorted];
}

# The median and how far the values range.
sub spread {
    return { median => median(@_), least => min(@_), greatest => max(@_) };
}

sub client_seconds {
    my (undef, undef, $user, $system) = times;
    return $user + $system;
}

sub load_average { return Bench::Server::command('cut -d" " -f1 /proc/loadavg') }

sub state {
    my ($at, $database) = @_;
    return { %{Bench::Server::counters($database, $at->{holders} // 0)},
             server_cpu => Bench::Server::processor_seconds(), client_cpu => client_seconds() };
}

# Runs a command to its end. What it prints goes to the log, and is returned too. Sessions that
# somebody holds meanwhile are counted in $at->{holders}.
sub timed {
    my ($at, $database, $command) = @_;
    # What the system has still to write from before would be written while the clock runs.
    Bench::Server::command('sync');
    my $before = state($at, $database);
    my $start = time;
    my $output = `($command) 2>>'$at->{log}'`;
    my $seconds = time - $start;
    die "bench: failed, see $at->{log}: $command\n" if $? != 0;
    my $after = state($at, $database);
    open my $log, '>>', $at->{log} or die "bench: $at->{log}: $!\n";
    print {$log} $output;
    close $log;
    return { seconds => $seconds, output => $output, load => load_average(),
             map { ($_ => $after->{$_} - $before->{$_}) } @costs };
}

# What it cost per job, with processor time in microseconds.
sub per_job {
    my ($run, $jobs) = @_;
    return { map { ($_ => $run->{$_} / $jobs * (/cpu/ ? 1e6 : 1)) } @costs };
}

1;
