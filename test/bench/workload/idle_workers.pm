# Registered workers with nothing to do: a session each that waits, and one that beats. What they
# cost the server, and how soon a job that is added then starts.
package Bench::Workload::IdleWorkers;

use strict;
use warnings;

use Bench::Disk;
use Bench::Load;
use Bench::Pulse;
use Bench::Server;

use constant { PROBES => 100, MANY => 1000, FLUSH_EVERY_MS => 100 };

# Workers, and milliseconds between two beats of one: the default, and in the long form a harder
# setting.
sub cases {
    my ($at) = @_;
    return (($at->{long} ? map { [$_, 2000] } (1, 10, 100, MANY) : ()), [MANY, 5000]);
}

sub name_of { my ($workers, $every) = @{$_[0]}; return "workers.$workers.$every" }

sub what_of { return sprintf '%d workers, a beat each %d s', $_[0][0], $_[0][1] / 1000 }

sub rows {
    my ($at) = @_;
    return map { (
        { name => "idle_workers.cpu.$_->[0].$_->[1]", what => what_of($_), ours => name_of($_),
          figure => 'core', unit => '% core' },
        { name => "idle_workers.p50.$_->[0].$_->[1]", what => '  start of a job, p50',
          ours => name_of($_), figure => 'p50', unit => 'ms' },
        { name => "idle_workers.p99.$_->[0].$_->[1]", what => '  start of a job, p99',
          ours => name_of($_), figure => 'p99', unit => 'ms' },
        { name => "idle_workers.disk.$_->[0].$_->[1]", what => '  a flush alone meanwhile, p99',
          ours => name_of($_), figure => 'disk', unit => 'ms' },
    ) } cases($at);
}

sub run_case {
    my ($at, $workers, $every) = @_;
    my @options = ('--workers', $workers, '--beat-sessions', $workers, '--beat-ms', $every,
                   '--idle', $at->{long} ? 60 : 15, '--warm', 1,
                   '--producers', 2, '--rate', 10, '--jobs', PROBES);
    my ($run, $disk) = Bench::Disk::beside($at, FLUSH_EVERY_MS,
                                           sub { Bench::Load::run($at, 'postgres', @options) });
    die "bench: $run->{lost} workers were lost\n" if $run->{lost} != 0;
    my ($idle, $start) = ($run->{idle}, $run->{jobs}{start});
    printf "%d workers: %d beats in %.0f s, %.0f us each\n", $workers, @{$idle}{qw(beats seconds)},
      $idle->{server_cpu} * 1e6 / $idle->{beats};
    return { core => 100 * $idle->{server_cpu} / $idle->{seconds}, idle => $idle,
             p50 => $start->{p50}, p99 => $start->{p99}, disk => $disk->{p99} };
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    # A database that has just been made keeps autovacuum busy, and all sessions with its news.
    Bench::Server::sql('postgres', 'VACUUM ANALYZE');
    return { map { (name_of($_) => [run_case($at, @$_)]) } cases($at) };
}

return {
    title => 'idle workers: processor time of the server, and how soon a job starts',
    settings => ['max_connections=2200', 'pulse.databases=postgres'],
    rows => \&rows,
    labels => sub { return map { (name_of($_) => what_of($_)) } cases($_[0]) },
    measure => \&measure,
};
