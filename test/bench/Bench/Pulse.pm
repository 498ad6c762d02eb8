# Our side of a benchmark: its database, jobs that do nothing, and what takes them.
package Bench::Pulse;

use strict;
use warnings;
use File::Path qw(make_path);

use Bench::Jobs;
use Bench::Server;

use constant TABLE => 'pulse.job';
use constant LEFT => 'SELECT count(*) FROM ' . TABLE;

sub create {
    my ($at, $database) = @_;
    Bench::Server::command("createdb $database") if $database ne 'postgres';
    Bench::Server::sql($database, 'CREATE EXTENSION pg_pulse');
    return;
}

sub fill_statement { return Bench::Jobs::add_statement('pulse', @_) }

sub fill {
    my ($database, $jobs, %field) = @_;
    Bench::Server::sql($database, fill_statement($jobs, %field));
    Bench::Server::sql($database, 'ANALYZE ' . TABLE);
    return;
}

# So large a batch keeps a processor busy between two flushes: more sessions only cost more.
sub connections { my ($batch) = @_; return $batch >= 500 ? 2 : 4 }

# Sessions of a C++ client, each of which claims a batch and completes it with its next claim.
sub drain_command {
    my ($at, $database, %option) = @_;
    my $commit = $option{commit} // 'together';
    my $connections = $option{connections} // connections($option{batch});
    return "PGDATABASE=$database '$at->{build}/client/bench-drain' --connections $connections"
      . " --batch $option{batch} --commit $commit";
}

sub write_script {
    my ($folder, $text, $task) = @_;
    my $file = "$folder/" . ($task // 'no_op');
    make_path($folder);
    open my $handle, '>', $file or die "bench: $file: $!\n";
    print {$handle} $text;
    close $handle;
    chmod 0755, $file;
    return;
}

# Against what is staged: the worker comes first in PATH.
sub build_tasks {
    my ($at) = @_;
    my $target = "$at->{build}/tasks";
    my ($prefix) = Bench::Server::command('command -v pulse-worker; true') =~ m{^(.*)/bin/};
    my $log = "$at->{build}/tasks-build.log";
    Bench::Server::command("cmake -S '$at->{here}/tasks' -B '$target' -DCMAKE_PREFIX_PATH='$prefix'"
          . " >'$log' 2>&1 && cmake --build '$target' >>'$log' 2>&1");
    make_path("$target/compiled", "$target/none");
    Bench::Server::command("cp '$target/no_op' '$target/compiled/no_op'");
    write_script("$target/shell", "#!/bin/sh\nexit 0\n");
    write_script("$target/python", "#!/usr/bin/env python3\n");
    return $target;
}

1;
