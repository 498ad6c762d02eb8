# P15: in random states of queues, locks, suspects, settings and due times, a fresh idle worker that
# claims until nothing is left gets a job if and only if explain_job() named no reason of kind job
# or queue. PULSE_STATES says how many states, PULSE_SEED which is the first.
use strict;
use warnings FATAL => 'all';

use Test::More;

use File::Basename qw(dirname);
use Pulse::Server;
use Pulse::Session;

my $states = $ENV{PULSE_STATES} // 400;
my $seed = $ENV{PULSE_SEED} // 1 + int rand 9_000_000;
note "PULSE_SEED=$seed PULSE_STATES=$states";

my $server = start_server('primary');
value($server, 'CREATE EXTENSION dblink');
my $session = Pulse::Session->new($server);
$session->query('SET client_min_messages = error');
$session->query('\i ' . dirname(__FILE__) . '/explain/states.sql');
$session->query(sprintf q{SELECT dblink_connect(c, 'host=%s port=%s dbname=postgres')
    FROM unnest('{holder,sharer}'::text[]) AS c}, $server->host, $server->port);

# A better job whose row is locked takes no place of its queue.
$session->query('CALL explain.judge_states(185, 1)');
# A strict queue that an end has paused keeps no other of its fair level waiting.
$session->query('CALL explain.judge_states(2799608, 1)');
# Few states have a job that is about to be cancelled, or one that a strict queue keeps waiting.
$session->query("CALL explain.judge_states($_, 1)") for 275, 48;
my $unseen = q{SELECT string_agg(b, ' ' ORDER BY b)
    FROM unnest('{behind,cancelled,"claims off",dry,full,future,isolated,locked,none,parents,
                 paused,running,strict,suspect}'
                ::text[]) AS b WHERE b NOT IN (SELECT s.blocker FROM explain.seen AS s)};

# Chance decides what a state has, so further ones follow until each reason has been there.
sub is_over {
    my ($done) = @_;
    return 0 if $done < $states;
    return $done >= 10 * $states || $session->query($unseen) eq '';
}

# In portions, because a session's answer is waited for so long only.
for (my $done = 0; !is_over($done); $done += 100) {
    $session->query(sprintf 'CALL explain.judge_states(%d, %d)', $seed + $done, 100);
}
is($session->query('SELECT * FROM explain.contradiction'), '',
    'a claim gets the jobs without a reason of kind job or queue, and no other')
  or diag($session->query(q{SELECT e.what || ' ' || e.seen FROM explain.evidence AS e
    WHERE e.seed = (SELECT min(seed) FROM explain.evidence)}));
is($session->query($unseen), '', 'the states had each reason');
note $session->query(q{SELECT string_agg(blocker || ' ' || jobs, ', ') FROM explain.seen});

done_testing();
