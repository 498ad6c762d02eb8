# A thousand schedules and a worker that waits: from the due time to the start of the job. All are
# due within a second, one each millisecond, or all at one instant. The background worker settles.
package Bench::Workload::Schedules;

use strict;
use warnings;

use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

use constant { SCHEDULES => 1000, AHEAD_S => 4 };

# Each is due once, a few seconds from now.
sub plan {
    my ($apart_ms) = @_;
    Bench::Server::sql('postgres', sprintf q{
        SELECT count(pulse.unschedule(s.name)) FROM pulse.schedule AS s;
        SELECT count(pulse.schedule('s' || n, 'no_op', every => '1 day'))
          FROM generate_series(1, %d) AS n;
        UPDATE pulse.schedule AS s
           SET next_due = date_trunc('second', now()) + interval '%d s'
             + %d * ltrim(s.name, 's')::int * interval '1 ms';
        SELECT pulse_internal.note_schedules()}, SCHEDULES, AHEAD_S, $apart_ms);
    return;
}

sub lateness {
    my ($at, $name, $apart_ms, $repeat) = @_;
    plan($apart_ms);
    my $run = Bench::Measure::timed($at, 'postgres',
        "PGDATABASE=postgres '$at->{build}/client/bench-lateness' " . SCHEDULES);
    my @ms = split /\n/, $run->{output};
    my ($p50, $p99, $longest) = map { Bench::Measure::percentile($_, @ms) } (0.50, 0.99, 1);
    printf "%d %-18s p50 %.1f, p99 %.1f, longest %.1f ms (load %s)\n", $repeat, $name, $p50, $p99,
      $longest, $run->{load};
    return { load => $run->{load}, samples => \@ms, p50 => $p50, p99 => $p99,
             longest => $longest, cost => Bench::Measure::per_job($run, SCHEDULES) };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my %runs;
    for my $repeat (1 .. $at->{repeats}) {
        push @{$runs{spread}}, lateness($at, 'spread', 1, $repeat);
        push @{$runs{instant}}, lateness($at, 'instant', 0, $repeat);
    }
    return \%runs;
}

sub row {
    my ($side, $figure, $what) = @_;
    return { name => "schedules.$side.$figure", what => "$what, $figure", ours => $side,
             figure => $figure };
}

return {
    title => 'due time of 1,000 schedules to the start of their jobs',
    settings => ['pulse.databases=postgres'],
    unit => 'ms',
    rows => sub {
        return (map({ row('spread', $_, 'spread over a second') } qw(p50 p99 longest)),
                map { row('instant', $_, 'at one instant') } qw(p50 p99 longest));
    },
    labels => sub { return (spread => 'spread over a second', instant => 'at one instant') },
    measure => \&measure,
};
