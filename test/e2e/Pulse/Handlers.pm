# Programs with handlers in C++, built outside of the tree against the library that is installed.
package Pulse::Handlers;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use File::Basename qw(dirname);
use File::Spec;

use PostgreSQL::Test::Utils ();

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
sub build {
    my ($folder) = @_;
    my $build = PostgreSQL::Test::Utils::tempdir('build');
    my $log = "$PostgreSQL::Test::Utils::log_path/cmake.log";
    run($log, 'cmake', '-S', File::Spec->rel2abs($folder), '-B', $build,
        '-DCMAKE_PREFIX_PATH=' . prefix(), '-DCMAKE_BUILD_TYPE=Release');
    run($log, 'cmake', '--build', $build);
    return $build;
}

1;
