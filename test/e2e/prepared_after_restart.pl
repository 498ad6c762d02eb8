# P8: a crash of the server loses what shared memory knew of prepared transactions. The first sweep
# after it finds them, so the first claim after COMMIT PREPARED gets their jobs in order.
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

expect_healthy($node);
done_testing();
