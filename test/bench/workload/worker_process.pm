# A worker process that has nothing to do: how long it takes to start and stop, and what memory it
# keeps while it waits.
package Bench::Workload::WorkerProcess;

use strict;
use warnings;

use Bench::Graphile;
use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

use constant STARTS => 10;

# How a waiting process shows in the server: ours in its wait, Graphile Worker listening.
my %waits = (
    pulse => q{query LIKE 'CALL pulse.wait_for_job%' AND wait_event_type = 'Extension'},
    graphile => q{query LIKE 'LISTEN%' AND state = 'idle'},
);

sub start_and_stop {
    my ($at, $database, $command) = @_;
    return { start_ms => Bench::Measure::median(
        map { 1000 * Bench::Measure::timed($at, $database, "$command --once")->{seconds} }
          1 .. STARTS) };
}

sub resident_mb {
    my ($pid) = @_;
    open my $handle, '<', "/proc/$pid/status" or die "bench: process $pid is gone\n";
    my ($kb) = join('', <$handle>) =~ /^VmRSS:\s+(\d+) kB/m;
    close $handle;
    return $kb / 1024;
}

sub idle_memory {
    my ($at, $name, $database, $environment, $program) = @_;
    my $pid = fork // die "bench: $!\n";
    exec('bash', '-c', "$environment exec $program >>'$at->{log}' 2>&1") if $pid == 0;
    my $seen = qq{SELECT count(*) FROM pg_stat_activity WHERE datname = '$database'
        AND pid <> pg_backend_pid() AND $waits{$name}};
    while (!Bench::Server::sql('postgres', $seen)) {
        die "bench: $name ended, see $at->{log}\n" if waitpid($pid, 1) == $pid;
    }
    my $mb = resident_mb($pid);
    kill TERM => $pid;
    waitpid $pid, 0;
    return $mb;
}

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    Bench::Graphile::create($at, 'graphile');
    my $tasks = Bench::Pulse::build_tasks($at);
    my @sides = (
        [pulse => 'postgres', 'export PGDATABASE=postgres;',
         "pulse-worker --tasks '$tasks/compiled'"],
        [graphile => 'graphile', Bench::Graphile::environment($at, 'graphile', defaults => 1),
         'node_modules/.bin/graphile-worker'],
    );
    my %runs;
    for my $repeat (1 .. $at->{repeats}) {
        for (@sides) {
            my ($name, $database, $environment, $program) = @$_;
            my $run = start_and_stop($at, $database, "$environment $program");
            $run->{memory} = idle_memory($at, $name, $database, $environment, $program);
            push @{$runs{$name}}, $run;
            printf "%d %-18s %7.1f ms, %.1f MB\n", $repeat, $name, @{$run}{qw(start_ms memory)};
        }
    }
    return \%runs;
}

return {
    title => 'a worker with nothing to do (median of ' . STARTS . ' starts)',
    rows => sub {
        return ({ name => 'worker.start', what => 'start and stop on an empty queue',
                  ours => 'pulse', against => 'graphile', figure => 'start_ms', unit => 'ms' },
                { name => 'worker.memory', what => 'idle memory, resident', ours => 'pulse',
                  against => 'graphile', figure => 'memory', unit => 'MB' });
    },
    labels => sub { return (pulse => 'pulse-worker', graphile => 'Graphile Worker') },
    measure => \&measure,
};
