# A picture of a workload's rows: for each unit a panel, for each side a bar with its range. Without
# gnuplot there is none.
package Bench::Plot;

use strict;
use warnings;

use Bench::Server;

# What the rows compare, once each: [unit, label, median, least, greatest].
sub bars {
    my ($labels, @judged) = @_;
    my (%seen, @bars);
    for my $row (@judged) {
        for ([ours => 'value'], [against => 'rival']) {
            my ($side, $values) = ($row->{$_->[0]}, $row->{$_->[1]});
            my $figure = $_->[0] eq 'ours' ? $row->{figure}
              : $row->{against_figure} // $row->{figure};
            next if !$values || $seen{"$side $figure"}++;
            my $label = $labels->{$side} // $side;
            $label = "$label: $figure" if $figure ne 'rate';
            push @bars, [$row->{unit}, $label, @{$values}{qw(median least greatest)}];
        }
    }
    return @bars;
}

sub panel {
    my ($unit, @bars) = @_;
    my $data = '';
    for my $i (0 .. $#bars) {
        my (undef, $label, $median, $least, $greatest) = @{$bars[$i]};
        my $text = sprintf $median < 100 ? '%.3g' : '%.0f', $median;
        $data .= qq($i "$label" $median $least $greatest "$text"\n);
    }
    return <<"TEXT" . "${data}e\n" . "${data}e\n";
set ylabel "$unit"
set xrange [-0.6:@{[$#bars + 0.6]}]
set yrange [0:*]
plot '-' using 1:3:4:5:(0.6):xtic(2) with boxerrorbars lc rgb "#4878a8" notitle, \\
     '-' using 1:5:6 with labels offset 0,0.7 font ",9" notitle
TEXT
}

sub draw {
    my ($file, $title, $labels, @judged) = @_;
    return if system('command -v gnuplot >/dev/null 2>&1') != 0;
    my @bars = bars($labels, @judged);
    my @units = do { my %seen; grep { !$seen{$_}++ } map { $_->[0] } @bars };
    my $height = 420 * @units;
    open my $gnuplot, '|-', 'gnuplot' or die "bench: gnuplot: $!\n";
    print {$gnuplot} <<"TEXT";
set terminal pngcairo size 1000,$height font "sans,10" background rgb "white"
set output "$file"
set multiplot layout @{[scalar @units]},1 title "$title" noenhanced
set style fill solid 0.8 border lc rgb "black"
set errorbars 2 lc rgb "black"
set grid ytics
set xtics rotate by -12 font ",9" noenhanced nomirror
set offsets 0,0,graph 0.1,0
set format y "%.6g"
TEXT
    for my $unit (@units) {
        print {$gnuplot} panel($unit, grep { $_->[0] eq $unit } @bars);
    }
    print {$gnuplot} "unset multiplot\n";
    close $gnuplot or die "bench: gnuplot failed\n";
    return;
}

1;
