# From kill -9 of a worker to its job's recovery, with pulse-worker's own sessions and tasks. The
# background worker notices; the moment is that of the recovery's commit, as the server keeps it.
package Bench::Workload::KilledWorker;

use strict;
use warnings;

use Time::HiRes qw(sleep time);

use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

# Apart by what shows no pattern beside the intervals of beats and sweeps.
use constant { APART => 0.137, DEADLINE => 60 };

sub kills { my ($at) = @_; return $at->{long} ? 60 : 20 }

# A worker runs one job that does not end; its process id.
sub start_worker {
    my ($at, $tasks, $number) = @_;
    my $pid = fork // die "bench: $!\n";
    return $pid if $pid != 0;
    open STDOUT, '>>', $at->{log};
    open STDERR, '>&', \*STDOUT;
    exec('pulse-worker', '--tasks', $tasks, '--concurrency', 1, '--prefetch', 0, '--name',
         "killed_$number", '--log-level', 'warning');
}

sub wait_until {
    my ($what, $sql) = @_;
    my $start = time;
    while (!Bench::Server::sql('postgres', $sql)) {
        die "bench: $what has not happened\n" if time - $start > DEADLINE;
    }
    return;
}

sub kill_each {
    my (@pids) = @_;
    my %killed;
    for my $pid (@pids) {
        $killed{$pid} = time;
        kill KILL => $pid;
        waitpid $pid, 0;
        sleep APART;
    }
    return \%killed;
}

# Milliseconds from each kill to its recovery.
sub round {
    my ($at, $tasks) = @_;
    my $many = kills($at) < 20 ? kills($at) : 20;
    Bench::Server::sql('postgres', 'DELETE FROM pulse.attempt');
    Bench::Server::sql('postgres', 'DELETE FROM pulse.job');
    Bench::Server::sql('postgres', Bench::Pulse::fill_statement($many, task => q{'hang'}));
    my @pids = map { start_worker($at, $tasks, $_) } 1 .. $many;
    wait_until('the start of every job', qq{SELECT (count(*) = $many)::int FROM pulse.job
        WHERE state = 'running'});
    my $killed = kill_each(@pids);
    wait_until('every recovery', "SELECT (count(*) = $many)::int FROM pulse.attempt");
    my $rows = Bench::Server::sql('postgres', q{SELECT w.pid,
        extract(epoch FROM pg_xact_commit_timestamp(a.xmin)) FROM pulse.attempt AS a
        JOIN pulse.worker AS w ON w.id = a.worker_id WHERE a.outcome = 'lost'});
    my @ms = map { my ($pid, $moment) = split /\|/; 1000 * ($moment - $killed->{$pid}) }
      split /\n/, $rows;
    die 'bench: ' . @ms . " of $many are recovered\n" if @ms != $many;
    return @ms;
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my $tasks = Bench::Pulse::build_tasks($at) . '/hanging';
    Bench::Pulse::write_script($tasks, "#!/bin/sh\nexec sleep 1000\n", 'hang');
    my $grace = Bench::Server::sql('postgres',
        q{SELECT 1000 * extract(epoch FROM current_setting('pulse.disconnect_grace')::interval)});
    my @ms;
    push @ms, round($at, $tasks) while @ms < kills($at);
    my ($p50, $p99, $longest) = map { Bench::Measure::percentile($_, @ms) } (0.5, 0.99, 1);
    printf "%d kills: p50 %.0f, p99 %.0f, longest %.0f ms\n", scalar @ms, $p50, $p99, $longest;
    return { pulse => [{ samples => \@ms, p50 => $p50, longest => $longest,
                         over_grace => $longest - $grace }] };
}

return {
    title => 'kill -9 of a worker to the recovery of its job (Graphile Worker: 4 h, by its design)',
    settings => ['pulse.databases=postgres', 'track_commit_timestamp=on'],
    unit => 'ms',
    rows => sub {
        return ({ name => 'killed_worker.p50', what => 'p50', ours => 'pulse', figure => 'p50' },
                { name => 'killed_worker.longest', what => 'longest', ours => 'pulse',
                  figure => 'longest' },
                { name => 'killed_worker', what => 'longest, beyond disconnect_grace',
                  ours => 'pulse', figure => 'over_grace' });
    },
    measure => \&measure,
};
