# Programs with handlers in C++, built outside of the tree against the library that is installed.
package Pulse::Handlers;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Fcntl qw(LOCK_EX);
use File::Basename qw(dirname);
use File::Spec;

# The folder that the library was installed under, as `make stage` did for pulse-worker.
sub prefix {
    my ($program) = grep { -x } map { "$_/pulse-worker" } split /:/, $ENV{PATH};
    return dirname(dirname($program // croak 'pulse-worker is not installed'));
}

sub run {
    my ($log, @command) = @_;
    my $pid = fork // croak "fork: $!";
    if ($pid == 0) {
        open STDOUT, '>>', $log;
        open STDERR, '>&', \*STDOUT;
        { no warnings; exec @command }
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    croak "@command: see $log" if $?;
    return;
}

# Builds a project of CMake, given by its folder in the tree, and returns where its programs are.
# Five files use the same project, so the first of a run builds for all.
sub build {
    my ($folder) = @_;
    my $build = "$ENV{TESTDIR}/built_" . $folder =~ tr{/}{_}r;
    open my $lock, '>>', "$build.lock" or croak "$build.lock: $!";
    flock $lock, LOCK_EX or croak "$build.lock: $!";
    return $build if -e "$build.done";
    my $log = "$build.log";
    run($log, 'cmake', '-S', File::Spec->rel2abs($folder), '-B', $build,
        '-DCMAKE_PREFIX_PATH=' . prefix(), '-DCMAKE_BUILD_TYPE=Release');
    run($log, 'cmake', '--build', $build);
    open my $done, '>', "$build.done" or croak "$build.done: $!";
    return $build;
}

1;
