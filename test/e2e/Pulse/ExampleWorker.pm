# One of the example workers in worker/examples, run as its reader would run it.
package Pulse::ExampleWorker;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Program';

use Carp qw(croak);
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy qw(copy);

use PostgreSQL::Test::Utils ();
use Pulse::Server qw(value wait_until);

my $examples = abs_path(dirname(__FILE__) . '/../../../worker/examples');

# How to run an example: its command, or why it cannot be run here.
sub command {
    my ($class, $file) = @_;
    my ($extension) = $file =~ /\.(\w+)$/;
    return {
        py => sub { _first_that_runs('psycopg', "$examples/$file",
            map { [ $_, '-c', 'import psycopg' ] } qw(python3 /usr/bin/python3)) },
        rb => sub { _first_that_runs('pg', "$examples/$file",
            map { [ $_, '-e', 'require "pg"' ] } qw(ruby /usr/bin/ruby)) },
        mjs => sub { _node("$examples/$file") },
    }->{$extension}->();
}

sub _runs {
    my (@command) = @_;
    my $log = "$PostgreSQL::Test::Utils::log_path/example_probe";
    my $pid = fork // croak "fork: $!";
    if ($pid == 0) {
        open STDERR, '>>', $log;
        { no warnings; exec @command }
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    return $? == 0;
}

sub _first_that_runs {
    my ($library, $file, @probes) = @_;
    for (@probes) { return [ $_->[0], $file ] if _runs(@$_) }
    return "no $probes[0][0] with the library $library";
}

# Where node is not Debian's, it does not look where Debian's libraries are: they are shown to it as
# a project's own.
sub _node {
    my ($file) = @_;
    my $build = $ENV{PULSE_BUILD} // dirname(dirname $examples) . '/build';
    for my $libraries ('/usr/share/nodejs', "$build/node/usr/share/nodejs") {
        $ENV{NODE_PATH} = $libraries;
        next if !_runs('node', '-e', 'require("pg")');
        my $project = PostgreSQL::Test::Utils::tempdir('project');
        symlink $libraries, "$project/node_modules" or croak "node_modules: $!";
        copy($file, $project) or croak "$file: $!";
        return [ 'node', $project . '/' . substr $file, length("$examples/") ];
    }
    return 'no node with the library pg';
}

# As the role `runner`. Returns once it is registered and attached; its number is in id() then.
sub start_registered {
    my ($class, $node, $name, @command) = @_;
    my $last = value($node, 'SELECT coalesce(max(id), 0) FROM pulse.worker');
    my $self = do {
        local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
          ($node->host, $node->port, 'runner', 'postgres');
        $class->SUPER::start($name, \@command, output => 'stderr');
    };
    wait_until($node, "SELECT count(*) = 1 FROM pulse.worker_status WHERE id > $last AND attached",
        "$name is registered");
    $self->{id} = value($node, "SELECT id FROM pulse.worker WHERE id > $last");
    $self->{node} = $node;
    return $self;
}

sub id { return $_[0]{id} }

sub state {
    my ($self) = @_;
    return value($self->{node}, "SELECT state FROM pulse.worker WHERE id = $self->{id}");
}

# Waits until it waits for a job itself.
sub wait_until_idle {
    my ($self) = @_;
    wait_until($self->{node}, q{SELECT count(*) = 1 FROM pg_stat_activity
        WHERE state = 'active' AND query LIKE 'CALL pulse.wait_for_job%'
          AND wait_event = 'Extension'}, "$self->{name} is idle");
    return;
}

# What it has said when it has ended.
sub said {
    my ($self) = @_;
    return join "\n", $self->lines->lines;
}

1;
