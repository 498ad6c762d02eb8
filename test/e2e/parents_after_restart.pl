# P14: a crash of the server loses what shared memory knew of jobs that wait for others. The first
# claim after it finds them, so they start as soon as what they wait for has ended, without a sweep.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;

my $node = start_server('main', settings => { %PATIENT, 'pulse.sweep_interval' => -1 });

sub add_after {
    my ($task, @parents) = @_;
    return value($node, sprintf q{SELECT id FROM pulse.add_job_after('{%s}', '%s')},
        join(',', @parents), $task);
}

sub crash {
    kill_server($node);
    $node->start;
    return;
}

my $parent = add_job($node, 'parent');
my $child = add_after('child', $parent);
crash();
my $worker = Pulse::SqlWorker->new($node, 'second');
my $claim = $worker->must_claim;
is($claim->{id}, $parent, 'after a crash the parent starts');
$worker->complete($claim);
$claim = $worker->claim;
is($claim && $claim->{id}, $child, 'and its end is noticed: the job after it starts');
$worker->complete($claim) if $claim;

$parent = add_job($node, 'parent');
$child = add_after('child', $parent);
$worker->complete($worker->must_claim);
crash();
$worker->kill;
$worker = Pulse::SqlWorker->new($node, 'third');
$claim = $worker->claim;
is($claim && $claim->{id}, $child, 'an end whose mark the crash took is found by the first claim');
$worker->complete($claim) if $claim;

expect_healthy($node);
done_testing();
