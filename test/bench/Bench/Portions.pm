# Two drains of ours by turns, in small portions, so that whatever else the machine does meets both
# alike: ratios of drains one after the other differ by a tenth where nothing differs.
package Bench::Portions;

use strict;
use warnings;
use IPC::Open2 qw(open2);
use JSON::PP ();

use Bench::Draining;
use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

# Both databases have to fit: of two in 128 MB, the one that was filled last is faster.
use constant { PORTIONS => 20, MEMORY => 'shared_buffers=1GB' };

sub command {
    my ($at, %option) = @_;
    return Bench::Pulse::drain_command($at, $option{database}, %option) . ' --portions';
}

# What a drain at once costs per job.
sub cost {
    my ($at, %option) = @_;
    my ($others) = Bench::Draining::fill($at, \%option);
    my $run = Bench::Measure::timed($at, $option{database},
                                    "echo $option{jobs} | " . command($at, %option));
    Bench::Draining::check_left($at, $others, %option);
    return Bench::Measure::per_job($run, $option{jobs});
}

sub start {
    my ($at, %option) = @_;
    my $pid = open2(my $said, my $orders, command($at, %option) . " 2>>'$at->{log}'");
    return { pid => $pid, said => $said, orders => $orders, seconds => 0, jobs => 0 };
}

sub drain_portion {
    my ($at, $drainer, $jobs) = @_;
    print {$drainer->{orders}} "$jobs\n";
    $drainer->{orders}->flush;
    my $line = readline($drainer->{said}) // die "bench: a drain failed, see $at->{log}\n";
    my $done = JSON::PP::decode_json($line);
    die "bench: $done->{jobs} of $jobs jobs were drained\n" if $done->{jobs} != $jobs;
    $drainer->{$_} += $done->{$_} for qw(seconds jobs);
    return;
}

sub stop {
    my ($at, $drainer) = @_;
    close $drainer->{orders};
    waitpid $drainer->{pid}, 0;
    die "bench: a drain failed, see $at->{log}\n" if $? != 0;
    return;
}

# Each of the two is first in every other round. Returns a run of each.
sub pair {
    my ($at, @drains) = @_;
    my @others = Bench::Draining::fill($at, @drains);
    Bench::Server::command('sync');
    # A drain that has died says so by its silence.
    local $SIG{PIPE} = 'IGNORE';
    my @drainers = map { start($at, %$_) } @drains;
    for my $round (1 .. PORTIONS) {
        drain_portion($at, $drainers[$_], $drains[$_]{jobs} / PORTIONS)
          for $round % 2 ? (0, 1) : (1, 0);
    }
    stop($at, $_) for @drainers;
    my $load = Bench::Measure::load_average();
    Bench::Draining::check_left($at, $others[$_], %{$drains[$_]}) for 0, 1;
    return map { { jobs => $_->{jobs}, seconds => $_->{seconds},
                   rate => $_->{jobs} / $_->{seconds}, load => $load } } @drainers;
}

# Pairs of drains: [A, B], … . After each repeat the work that the caller has, with its number, is
# done, and at the end each is drained at once, for its cost. Lists of runs by name.
sub in_turn {
    my ($at, $pairs, $between) = @_;
    my %runs;
    for my $repeat (1 .. $at->{repeats}) {
        for my $pair (@$pairs) {
            my @names = map { $_->{name} } @$pair;
            my @done = pair($at, @$pair);
            push @{$runs{$names[$_]}}, $done[$_] for 0, 1;
            printf "%d %-10s and %-10s %9.0f and %9.0f jobs/s (load %s)\n", $repeat, @names,
              (map { $_->{rate} } @done), $done[0]{load};
        }
        $between->($repeat) if $between;
    }
    for my $drain (map { @$_ } @$pairs) {
        my $cost = cost($at, %$drain);
        $_->{cost} = $cost for @{$runs{$drain->{name}}};
    }
    return \%runs;
}

1;
