# Ten thousand registered workers, each of which beats every two seconds, through twenty sessions.
package Bench::Workload::Heartbeats;

use strict;
use warnings;

use Bench::Load;
use Bench::Pulse;

use constant { WORKERS => 10_000, EVERY_MS => 2000, SESSIONS => 20 };

sub beats {
    my ($at) = @_;
    my $run = Bench::Load::run($at, 'postgres', '--workers', 0, '--beating', WORKERS,
                               '--beat-sessions', SESSIONS, '--beat-ms', EVERY_MS,
                               '--idle', $at->{long} ? 60 : 15);
    my $idle = $run->{idle};
    my ($beats, $rate) = ($idle->{beats}, $idle->{beats} / $idle->{seconds});
    return { idle => $idle, lost => $run->{lost}, refused => $run->{refused_beats}, rate => $rate,
             share => 100 * $rate / (WORKERS * 1000 / EVERY_MS), p99 => $idle->{beat}{p99},
             cpu => $idle->{server_cpu} * 1e6 / $beats, wal => $idle->{wal} / $beats };
}

sub rows {
    my @rows = ([rate => 'beats', '/s'], [share => 'of those that were due', '%'],
                [cpu => 'server CPU of a beat', 'us'], [wal => 'WAL of a beat', 'bytes'],
                [p99 => 'due to answered, p99', 'ms'], [lost => 'workers lost', '']);
    return map { { name => "heartbeats.$_->[0]", what => $_->[1], ours => 'beats',
                   figure => $_->[0], unit => $_->[2] } } @rows;
}

return {
    title => '10,000 workers that beat each 2 s through 20 sessions',
    is_long => 1,
    settings => ['pulse.databases=postgres'],
    rows => \&rows,
    labels => sub { return (beats => 'beats') },
    measure => sub {
        my ($at) = @_;
        Bench::Pulse::create($at, 'postgres');
        return { beats => [beats($at)] };
    },
};
