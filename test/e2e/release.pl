# P6: a release moves the link that leads to the tasks folder while a worker runs. No attempt is
# spent on a task that is not there for a moment.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Worker;

my $node = start_server('main', settings => \%PATIENT);
my $root = PostgreSQL::Test::Utils::tempdir('release');

# A release with these tasks, which tell where they are from.
sub make_release {
    my ($number, @tasks) = @_;
    mkdir "$root/$number" or die $!;
    chmod 0755, "$root/$number";
    for my $task (@tasks) {
        my $path = "$root/$number/$task";
        open my $file, '>', $path or die "$path: $!";
        print $file "#!/bin/sh\necho release $number for \$PULSE_JOB_ID >>$root/told\n";
        close $file or die "$path: $!";
        chmod 0755, $path;
    }
    return;
}

sub lead_to {
    my ($number) = @_;
    symlink "$root/$number", "$root/next" or die $!;
    rename "$root/next", "$root/current" or die $!;
    return;
}

sub remove_release {
    my ($number) = @_;
    unlink glob "$root/$number/*";
    rmdir "$root/$number" or die $!;
    return;
}

make_release(1, qw(send report));
lead_to(1);
my $worker = Pulse::Worker->start_registered($node, 'worker', folder => "$root/current");

sub release_of {
    my ($task) = @_;
    my $job = add_job($node, $task);
    $worker->wait_for('completed', job => $job);
    my ($release) = slurp_file("$root/told") =~ /^(release \d+) for $job$/m;
    return $release;
}

is(release_of('send'), 'release 1', 'the first release');
make_release(2, qw(send fresh));
lead_to(2);
remove_release(1);
is(release_of('send'), 'release 2', 'the next one, without a word to the worker');

my $job = add_job($node, 'report');
is($worker->wait_for('released', job => $job)->{task}, 'report', 'a task that is gone');
$worker->wait_for('tasks_changed', missing => 'report');
is(value($node, "SELECT state, attempts FROM pulse.job WHERE id = $job"), 'ready|0',
    'has cost no attempt, and waits for a worker that serves it');
is(release_of('send'), 'release 2', 'while others run');

my $from = $worker->lines->position;
$worker->signal('HUP');
is($worker->wait_for('tasks', from => $from)->{names}, 'fresh send', 'SIGHUP lists the new folder');
is(release_of('fresh'), 'release 2', 'and its new task');

make_release(3, qw(send));
lead_to(3);
remove_release(2);
my $later = add_job($node, 'fresh');
$worker->wait_for('released', job => $later);
make_release(4, qw(send fresh));
lead_to(4);
is($worker->wait_for('completed', job => $later)->{attempt}, 1,
    'one that comes back is served again, without a signal');

$worker->signal('TERM');
is($worker->wait_exit, 0, 'exit code');
expect_healthy($node);
done_testing();
