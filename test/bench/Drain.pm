# The drain at chosen settings: both queues are filled alike and drained in turn on one server, each
# from a database of its own, and the ratio is of neighbours, so that what else the machine does
# hits both.
package Drain;

use strict;
use warnings;
use Getopt::Long qw(GetOptionsFromArray);
use JSON::PP ();
use List::Util qw(max min);

use Bench::Draining;
use Bench::Graphile;
use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

use constant SERVER => 'bench-drain';
my ($at, $option);

sub read_options {
    my @arguments = @_;
    my %option = (repeats => 5, jobs => 200_000, batch => 500,
                  commit => 'together', processes => 4, concurrency => 100, alone => 0);
    GetOptionsFromArray(\@arguments, \%option, qw(repeats=i jobs=i connections=i batch=i commit=s
                        processes=i concurrency=i alone)) or return;
    $option{connections} //= Bench::Pulse::connections($option{batch});
    return if @arguments || grep { /^\d+$/ && $_ < 1 } @option{qw(repeats jobs connections batch)};
    return \%option;
}

sub drain {
    my ($system) = @_;
    my $database = $system eq 'pulse' ? 'postgres' : 'graphile';
    my %wanted = map { ($_ => $option->{$_}) } qw(jobs connections batch commit processes
                                                   concurrency);
    return Bench::Draining::drain($at, system => $system, database => $database, %wanted);
}

sub row {
    my ($name, @runs) = @_;
    my @rate = map { $_->{rate} } @runs;
    my $cost = sub { my ($of) = @_; return Bench::Measure::median(map { $_->{cost}{$of} } @runs) };
    printf "%-10s %9.0f %9.0f %9.0f   %8.1f %8.1f %8.0f\n", $name, Bench::Measure::median(@rate),
      min(@rate), max(@rate), map { $cost->($_) } qw(server_cpu client_cpu wal_bytes);
    return;
}

sub report {
    my ($settings, $runs) = @_;
    print "\n$_ = $settings->{$_}\n" =~ s/^\n//r for sort keys %$settings;
    printf "\n%d jobs, batches of %d; %d connections; rival: %d processes of %d\n\n",
      @$option{qw(jobs batch connections processes concurrency)};
    print "              jobs/s     least  greatest   CPU us per job: bytes of\n";
    print "              median                         server   client      WAL\n";
    row($_, @{$runs->{$_}}) for sort { $b cmp $a } keys %$runs;
    my %result = (settings => $settings, options => $option, runs => $runs);
    if (!$option->{alone}) {
        my @ratio = map { $runs->{pulse}[$_]{rate} / $runs->{graphile}[$_]{rate} }
          0 .. $option->{repeats} - 1;
        $result{ratio} = Bench::Measure::spread(@ratio);
        printf "\nratio: %.2f (%.2f to %.2f)\n", @{$result{ratio}}{qw(median least greatest)};
    }
    open my $handle, '>', "$at->{build}/drain.json" or die "bench: $!\n";
    print {$handle} JSON::PP->new->canonical->pretty->encode(\%result);
    close $handle;
    return;
}

sub measure {
    my @systems = $option->{alone} ? ('pulse') : qw(pulse graphile);
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile') if !$option->{alone};
    my %runs;
    drain($_) for @systems;    # warms caches, counts for nothing
    for my $repeat (1 .. $option->{repeats}) {
        for my $system (@systems) {
            my $run = drain($system);
            printf "%d %-10s %6.2f s, start and stop %.2f s (load %s)\n", $repeat, $system,
              @{$run}{qw(seconds startup load)};
            push @{$runs{$system}}, $run;
        }
    }
    Bench::Draining::rate(@{$runs{$_}}) for @systems;
    report(Bench::Server::settings(), \%runs);
    return;
}

sub run {
    ($at, $option) = @_;
    $at = { %$at, log => "$at->{build}/drain.log" };
    Bench::Server::run_with($at, SERVER, [], \&measure);
    return 0;
}

1;
