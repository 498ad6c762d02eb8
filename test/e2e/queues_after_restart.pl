# A crash of the server loses the marks of all queues. Claims look at them again, a thousand queues
# each, so none of them waits for a look at all; what a claim saw and took back is looked at again.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

use constant { QUEUES => 3000, DUE => 20 };

my $node = start_server('main', settings => { %PATIENT, 'pulse.sweep_interval' => -1 });

# Most queues have only a job of tomorrow; every so many one that is due.
value($node, sprintf q{SELECT count(*) FROM pulse.add_jobs(ARRAY(
    SELECT ('work', NULL, 'queue-' || q, now() + CASE WHEN q %% %d > 0 THEN interval '1 day'
            ELSE interval '0' END, NULL, NULL, NULL, NULL)::pulse.job_spec
      FROM generate_series(1, %d) AS q))}, QUEUES / DUE, QUEUES);
my $session;

sub crash {
    $session->quit if $session;
    kill_server($node);
    $node->start;
    $session = Pulse::Session->new($node);
    $session->query(q{SET client_min_messages = warning});
    return $session->query(q{SELECT id FROM pulse.register_worker('worker')});
}

sub claim {
    my ($worker) = @_;
    return $session->query("SELECT count(*) FROM pulse.claim($worker, ${\DUE})");
}

my $worker = crash();
my $found = claim($worker);
cmp_ok($found, '<', DUE, 'the first claim after a crash does not look at all queues');
$found += claim($worker) for 2 .. QUEUES / 1000 + 1;
is($found, DUE, 'the claims after it go on, until all that is due is found');

my $job = add_job($node, 'work', q{queue_name => 'queue-1'});
$worker = crash();
$session->query('BEGIN');
$session->query("SELECT pulse.cancel_job($job)");
is(claim($worker), 0, 'a claim does not see a job that its transaction has cancelled');
$session->query('ROLLBACK');
is(claim($worker), 1, 'the next one finds it, because that is undone');

$session->quit;
expect_healthy($node);
done_testing();
