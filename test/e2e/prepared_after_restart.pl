# P8: a crash of the server loses what shared memory knew of prepared transactions. The first sweep
# after it finds them, so the first claim after COMMIT PREPARED gets their jobs in order. verify()
# does not report what that claim will find.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;

my $node = start_server('main', settings => {
    %PATIENT, 'pulse.sweep_interval' => -1, max_prepared_transactions => 2 });

$node->safe_psql('postgres', q{
    BEGIN;
    SELECT pulse.add_job('task', run_at => now() - interval '1 hour');
    PREPARE TRANSACTION 'early'});
my $early = 1;
kill_server($node);
$node->start;
$node->safe_psql('postgres', 'SELECT pulse.sweep()');

# The mark of the task goes over the jobs that are due later.
my $worker = Pulse::SqlWorker->new($node, 'one');
add_job($node, 'task') for 1 .. 3;
$worker->complete($worker->must_claim) for 1 .. 3;
is($worker->claim, undef, 'a prepared job is claimed by nobody');
add_job($node, 'task') for 1 .. 3;
$node->safe_psql('postgres', q{COMMIT PREPARED 'early'});
is($worker->must_claim->{id}, $early, 'and comes first once it is committed');

# No sweep runs, and an hour later all jobs are overdue.
my $verify = q{SET pulse.clock_offset = '1h'; SELECT * FROM pulse.verify()};
$worker->complete($_) for $worker->claim(10);
add_job($node, 'task', q{queue_name => 'line'}) for 1 .. 2;
my $first = $worker->must_claim;
$worker->query('BEGIN');
$worker->complete($first);
$worker->query(q{PREPARE TRANSACTION 'end'});
is($worker->claim, undef, 'a queue waits for an end that is prepared');
$node->safe_psql('postgres', q{COMMIT PREPARED 'end'});
is(value($node, $verify), '', 'once the end is committed, verify() expects the next claim');
$worker->complete($worker->must_claim);

value($node, q{SELECT pulse.set_queue('members/*', concurrency => 1)});
add_job($node, 'task', q{queue_name => 'members/a'}) for 1 .. 2;
ok($worker->must_claim && !$worker->claim, 'a queue is full');
value($node, q{SELECT pulse.set_queue('members/*', concurrency => 2)});
is(value($node, $verify), '', 'nor does verify() report a queue whose level has a new limit');

expect_healthy($node);
done_testing();
