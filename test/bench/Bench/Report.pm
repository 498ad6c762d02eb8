# What a workload's runs say: a table of rows with their ratios and floors, what each cost, and both
# as JSON and as a picture.
package Bench::Report;

use strict;
use warnings;
use utf8;
use JSON::PP ();

use Bench::Measure;
use Bench::Plot;

my @cost_columns = (
    [server_cpu => 'server CPU', 'us'], [client_cpu => 'client CPU', 'us'],
    [wal_bytes => 'WAL', 'bytes'], [wal_records => 'WAL', 'records'],
    [buffers => 'buffers', ''],
);

# Row => [what is held against it, how, the floor].
sub read_floors {
    my ($file) = @_;
    my %floor;
    open my $handle, '<', $file or die "bench: $file: $!\n";
    while (<$handle>) {
        next if /^\s*(?:#|$)/;
        /^(\S+)\s+(ratio|value|worst)\s+([<>]=)\s+([\d.]+)$/ or die "bench: $file: $_";
        die "bench: $file: $1 stands there twice\n" if $floor{$1};
        $floor{$1} = { of => $2, way => $3, bound => $4 };
    }
    close $handle;
    return \%floor;
}

# A row's value and its rival's, the ratio of neighbouring runs, and whether it reaches its floor.
sub judge {
    my ($row, $workload, $runs, $floor) = @_;
    my $figure = $row->{figure} // $workload->{figure};
    my @ours = map { $_->{$figure} } @{$runs->{$row->{ours}} // die "no runs of $row->{ours}\n"};
    my %judged = (%$row, figure => $figure, unit => $row->{unit} // $workload->{unit},
                  value => Bench::Measure::spread(@ours));
    if ($row->{against}) {
        my $against = $runs->{$row->{against}} // die "no runs of $row->{against}\n";
        my @theirs = map { $_->{$row->{against_figure} // $figure} } @$against;
        $judged{rival} = Bench::Measure::spread(@theirs);
        my $last = $#ours < $#theirs ? $#ours : $#theirs;
        $judged{ratio} = Bench::Measure::spread(map { $ours[$_] / $theirs[$_] } 0 .. $last);
    }
    return \%judged if !$floor;
    my $held = $floor->{of} eq 'worst' ? $judged{value}{greatest} : $judged{$floor->{of}}{median};
    $judged{floor} = $floor;
    $judged{is_reached} = ($floor->{way} eq '>=' ? $held >= $floor->{bound}
                           : $held <= $floor->{bound}) ? JSON::PP::true() : JSON::PP::false();
    return \%judged;
}

sub number {
    my ($value) = @_;
    return sprintf '%.*f', $value < 1 ? 3 : $value < 10 ? 2 : 1, $value if $value < 100;
    my $text = sprintf '%.0f', $value;
    1 while $text =~ s/^(\d+)(\d{3})/$1,$2/;
    return $text;
}

sub floor_text {
    my ($judged) = @_;
    my $floor = $judged->{floor} or return ('', '');
    my $way = $floor->{way} eq '>=' ? 'at least' : 'at most';
    my $unit = $floor->{of} eq 'ratio' ? 'x' : " $judged->{unit}";
    return ("$way $floor->{bound}$unit", $judged->{is_reached} ? 'ok' : 'BELOW');
}

sub print_rows {
    my ($workload, $labels, @judged) = @_;
    printf "%-34s %10s %-7s %-24s %10s  %-22s %-18s\n", '', 'ours', '', 'against', 'theirs',
      'ratio (range)', 'floor';
    for my $row (@judged) {
        my $ratio = $row->{ratio}
          ? sprintf '%s (%s to %s)', map { number($row->{ratio}{$_}) } qw(median least greatest)
          : '';
        my ($floor, $verdict) = floor_text($row);
        printf "%-34s %10s %-7s %-24s %10s  %-22s %-18s %s\n", $row->{what},
          number($row->{value}{median}), $row->{unit},
          $row->{against} ? $labels->{$row->{against}} // $row->{against} : '',
          $row->{rival} ? number($row->{rival}{median}) : '', $ratio, $floor, $verdict;
    }
    return;
}

# Per job; runs that tell no cost have no line.
sub print_costs {
    my ($labels, $runs) = @_;
    my @told = grep { $runs->{$_}[0]{cost} } sort keys %$runs;
    return if !@told;
    printf "\n%-34s" . '%12s' x @cost_columns . "\n", 'per job', map { $_->[1] } @cost_columns;
    printf "%-34s" . '%12s' x @cost_columns . "\n", '', map { $_->[2] } @cost_columns;
    for my $name (@told) {
        printf "%-34s" . '%12s' x @cost_columns . "\n", $labels->{$name} // $name, map {
            my $cost = $_->[0];
            number(Bench::Measure::median(map { $_->{cost}{$cost} } @{$runs->{$name}}));
        } @cost_columns;
    }
    return;
}

# Prints it, writes NAME.json and NAME.png, and returns the rows that are below their floor.
sub tell {
    my ($at, $name, $workload, $runs, $settings) = @_;
    my %labels = $workload->{labels} ? $workload->{labels}->($at) : ();
    my $floors = read_floors("$at->{here}/floors");
    my @rows = $workload->{rows}->($at);
    my @judged = map { judge($_, $workload, $runs, $floors->{$_->{name}}) } @rows;
    print "\n$name: $workload->{title}\n\n";
    print_rows($workload, \%labels, @judged);
    print_costs(\%labels, $runs);
    print "\n";
    open my $handle, '>', "$at->{build}/$name.json" or die "bench: $name.json: $!\n";
    print {$handle} JSON::PP->new->canonical->pretty->encode(
        { workload => $name, title => $workload->{title}, settings => $settings,
          repeats => $at->{repeats}, rows => \@judged, runs => $runs });
    close $handle;
    Bench::Plot::draw("$at->{build}/$name.png", $workload->{title}, \%labels, @judged);
    return grep { $_->{floor} && !$_->{is_reached} } @judged;
}

1;
