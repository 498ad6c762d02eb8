# Graphile Worker's side of a benchmark: installed from npm, filled, and run, at its authors' best
# settings for many jobs and at its defaults.
package Bench::Graphile;

use strict;
use warnings;

use Bench::Jobs;
use Bench::Npm;
use Bench::Server;

use constant TABLE => 'graphile_worker._private_jobs';
use constant LEFT => 'SELECT count(*) FROM ' . TABLE;

# What a command of it is told by the environment; see graphile/graphile.config.js.
sub environment {
    my ($at, $database, %option) = @_;
    my %variable = (
        BENCH_GRAPHILE_URL => "postgresql://$ENV{PGUSER}\@/$database?host=$ENV{PGHOST}",
        BENCH_CONCURRENCY => $option{concurrency} // 100,
        BENCH_LOCAL_QUEUE => $option{batch} // 500,
        BENCH_DEFAULTS => $option{defaults} ? 1 : '',
        BENCH_TASKS => $option{tasks} // '',
        NO_LOG_SUCCESS => 1,
    );
    return Bench::Npm::node_first($at) . "cd '$at->{build}/graphile' && export "
      . join(' ', map { "$_='$variable{$_}'" } sort keys %variable) . ' &&';
}

sub create {
    my ($at, $database) = @_;
    Bench::Npm::install($at, 'graphile');
    Bench::Server::command("createdb $database");
    my $environment = environment($at, $database);
    Bench::Server::command(
        "$environment node_modules/.bin/graphile-worker --schema-only >>'$at->{log}' 2>&1");
    return;
}

sub fill_statement { return Bench::Jobs::add_statement('graphile_worker', @_) }

# The planner is told of the new rows: the claim sorts the whole table where it is not.
sub fill {
    my ($database, $jobs, %field) = @_;
    Bench::Server::sql($database, fill_statement($jobs, %field));
    Bench::Server::sql($database, 'ANALYZE ' . TABLE);
    return;
}

sub drain_command {
    my ($at, $database, %option) = @_;
    my $processes = $option{processes} // 4;
    my $one = 'node_modules/.bin/graphile-worker --once';
    return environment($at, $database, %option)
      . " for i in \$(seq $processes); do $one & done; wait";
}

# The statements that it sends, from our client.
sub sql_drain_command {
    my ($at, $database, %option) = @_;
    my $connections = $option{connections} // 4;
    return "PGDATABASE=$database '$at->{build}/client/bench-drain' --system graphile"
      . " --connections $connections --batch $option{batch}";
}

1;
