# The workloads of the folder of that name, each a module: what they are, running them, the verdict.
package Bench::Workloads;

use strict;
use warnings;
use File::Basename qw(basename);
use Time::HiRes qw(time);

use Bench::Report;
use Bench::Server;

sub names {
    my ($at) = @_;
    return sort map { basename($_, '.pm') } glob "$at->{here}/workload/*.pm";
}

sub load {
    my ($at, $name) = @_;
    my $workload = require "$at->{here}/workload/$name.pm";
    return $workload;
}

# One workload on a server of its own; the rows that are below their floor.
sub run_one {
    my ($at, $name, $workload) = @_;
    my $start = time;
    $at = { %$at, log => "$at->{build}/$name.log", holders => 0 };
    unlink $at->{log};
    my $settings;
    my $runs = Bench::Server::run_with($at, 'bench-' . $name =~ tr/_/-/r,
        $workload->{settings} // [], sub {
            $settings = Bench::Server::settings();
            return $workload->{measure}->($at);
        });
    my @below = Bench::Report::tell($at, $name, $workload, $runs, $settings);
    printf "%s took %.0f s\n", $name, time - $start;
    return @below;
}

# Those of the names, or all that the short or the long form has. 1 when a row is below its floor.
sub run {
    my ($at, @chosen) = @_;
    my %workload = map { ($_ => load($at, $_)) } @chosen ? @chosen : names($at);
    my @run = @chosen ? @chosen
      : grep { $at->{long} || !$workload{$_}{is_long} } names($at);
    my @below = map { run_one($at, $_, $workload{$_}) } @run;
    print "\n", @below ? 'below its floor: ' . join(', ', map { $_->{name} } @below)
      : 'every row is at or above its floor', "\n";
    return @below ? 1 : 0;
}

1;
