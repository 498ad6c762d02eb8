# Tasks of each kind that do nothing, run by pulse-worker or a program with handlers until none is
# left, and Graphile Worker's executable tasks beside them, in turn on one server.
package Tasks;

use strict;
use warnings;
use Getopt::Long qw(GetOptionsFromArray);
use JSON::PP ();

use Bench::Graphile;
use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

use constant SERVER => 'bench-tasks';
my ($at, $option);

sub read_options {
    my @arguments = @_;
    my %option = (repeats => 3, handlers => 200_000, functions => 20_000, processes => 40_000,
                  executables => 5_000, scripts => 1_000, concurrency => 8, batch => 500,
                  workers => 2, alone => 0);
    GetOptionsFromArray(\@arguments, \%option, qw(repeats=i handlers=i functions=i processes=i
                        executables=i scripts=i concurrency=i batch=i workers=i alone)) or return;
    return if @arguments || grep { $_ ne 'alone' && $option{$_} < 1 } keys %option;
    return \%option;
}

# --- what is run ----------------------------------------------------------------------------------

# What it is called, the option that says how many jobs, and what runs until none is ready.
sub kinds {
    my ($target) = @_;
    my $worker = "pulse-worker --once --log-level warning --concurrency $option->{concurrency}";
    my $idle = "$worker --tasks '$target/none'";
    my $handlers = "'$target/bench-handlers'";
    my $python = "python3 $at->{here}/tasks/no_op.py";
    my @kinds = (
        { name => 'compiled executable', jobs => 'executables',
            command => "$worker --tasks '$target/compiled'" },
        { name => 'shell script', jobs => 'scripts', command => "$worker --tasks '$target/shell'" },
        { name => 'Python script', jobs => 'scripts',
            command => "$worker --tasks '$target/python'" },
        { name => 'SQL function', jobs => 'functions', command => $idle, has_handler => 1 },
        { name => 'Python process', jobs => 'processes',
            command => "$idle --prefetch $option->{batch} --process 'no_op=$python'" },
        { name => 'C++ handler', jobs => 'handlers', command => "$handlers single $option->{batch}",
            workers => $option->{workers} },
        { name => 'C++ batch handler', jobs => 'handlers',
            command => "$handlers batch $option->{batch}", workers => $option->{workers} });
    return @kinds if $option->{alone};
    my $rival = Bench::Graphile::environment($at, 'graphile', tasks => "$target/compiled",
        concurrency => $option->{concurrency}, batch => $option->{batch})
      . " node_modules/.bin/graphile-worker --once";
    splice @kinds, 1, 0, { name => 'rival, compiled executable', jobs => 'scripts',
        command => $rival, system => 'graphile' };
    return @kinds;
}

# --- measuring ------------------------------------------------------------------------------------

# What left the table without an attempt or a row that tells of a failure has been completed; and
# durably, because every commit was flushed and the workers have ended.
sub check {
    my ($kind, $database, $table) = @_;
    my $left = Bench::Server::sql($database, "SELECT count(*) FROM $table");
    my $failed = $database eq 'graphile' ? 0
      : Bench::Server::sql($database, 'SELECT (SELECT count(*) FROM pulse.attempt)'
          . ' + (SELECT count(*) FROM pulse.finished_job)');
    die "bench: $kind->{name}: $left jobs left, $failed failed; see $at->{log}\n"
      if $left + $failed > 0;
    return;
}

sub measure_kind {
    my ($kind) = @_;
    my $jobs = $option->{$kind->{jobs}};
    my $system = $kind->{system} // 'pulse';
    my $database = $system eq 'pulse' ? 'postgres' : 'graphile';
    my $table = $system eq 'pulse' ? 'pulse.job' : 'graphile_worker._private_jobs';
    my $handler = $kind->{has_handler} ? 'bench.no_op(json)' : '-';
    Bench::Server::sql('postgres',
        "UPDATE pulse.task SET handler = nullif('$handler', '-')");
    Bench::Server::sql($database, "VACUUM (ANALYZE) $table");
    Bench::Server::sql($database, 'CHECKPOINT');
    my $fill = $system eq 'pulse' ? \&Bench::Pulse::fill : \&Bench::Graphile::fill;
    $fill->($database, $jobs);
    my $workers = $kind->{workers} // 1;
    my $run = Bench::Measure::timed($at, $database,
        "for i in \$(seq $workers); do ($kind->{command}) & done; wait");
    check($kind, $database, $table);
    return { %$run, jobs => $jobs, rate => $jobs / $run->{seconds} };
}

sub row {
    my ($name, @runs) = @_;
    my $median = sub {
        my ($field) = @_;
        return Bench::Measure::median(map { 1e6 * $_->{$field} / $_->{jobs} } @runs);
    };
    my @rate = sort { $a <=> $b } map { $_->{rate} } @runs;
    printf "%-27s %9.0f %9.0f %9.0f   %9.1f %9.1f\n", $name, Bench::Measure::median(@rate),
      $rate[0], $rate[-1], $median->('server_cpu'), $median->('client_cpu');
    return;
}

sub measure {
    Bench::Pulse::create($at, 'postgres');
    Bench::Server::sql('postgres', 'CREATE SCHEMA bench');
    Bench::Server::sql('postgres',
        'CREATE FUNCTION bench.no_op(json) RETURNS void LANGUAGE sql AS $$$$');
    Bench::Server::sql('postgres',
        q{SELECT pulse.set_task('no_op', handler => 'bench.no_op(json)')});
    Bench::Graphile::create($at, 'graphile') if !$option->{alone};
    my @kinds = kinds(Bench::Pulse::build_tasks($at));
    my %runs;
    for my $repeat (1 .. $option->{repeats}) {
        for my $kind (@kinds) {
            my $run = measure_kind($kind);
            push @{$runs{$kind->{name}}}, $run;
            printf "%d %-27s %7.2f s (load %s)\n",
              $repeat, $kind->{name}, @{$run}{qw(seconds load)};
        }
    }
    my $settings = Bench::Server::settings();
    print "\n" . join('', map { "$_ = $settings->{$_}\n" } sort keys %$settings);
    print "\n                               jobs/s     least  greatest   CPU us per job:\n";
    print "                               median                          server    client\n";
    row($_->{name}, @{$runs{$_->{name}}}) for @kinds;
    open my $handle, '>', "$at->{build}/tasks.json" or die "bench: $!\n";
    print {$handle} JSON::PP->new->canonical->pretty->encode(
        { settings => $settings, options => $option, runs => \%runs });
    close $handle;
    return;
}

sub run {
    ($at, $option) = @_;
    $at = { %$at, log => "$at->{build}/tasks.log" };
    Bench::Server::run_with($at, SERVER, [], \&measure);
    return 0;
}

1;
