# P7, P8, P13: in random states of queues, levels, limits, suspects, locks and due times, claims in
# turn, undone ones and ends return the jobs that the contract names, in its order. claims.sql
# states it anew, from tables alone. PULSE_STATES says how many states, PULSE_SEED which is the
# first.
use strict;
use warnings FATAL => 'all';

use Test::More;

use File::Basename qw(dirname);
use Pulse::Server;
use Pulse::Session;

my $states = $ENV{PULSE_STATES} // 120;
my $seed = $ENV{PULSE_SEED} // 1 + int rand 9_000_000;
note "PULSE_SEED=$seed PULSE_STATES=$states";

my $server = start_server('primary');
value($server, 'CREATE EXTENSION dblink');
my $session = Pulse::Session->new($server);
$session->query('SET client_min_messages = error');
$session->query('\i ' . dirname(__FILE__) . "/explain/$_.sql") for qw(states claims);
$session->query(sprintf q{SELECT dblink_connect('holder', 'host=%s port=%s dbname=postgres')},
    $server->host, $server->port);

# Most states lie among dead entries that an old snapshot keeps, so promotions remember queues
# (docs/design/queues.md). Now and then vacuum may take them.
my $old = Pulse::Session->new($server);
for (my $done = 0; $done < $states; $done += 20) {
    $old->query('COMMIT') if $done % 100 == 0 && $done > 0;
    $old->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pulse.job')
      if $done % 100 == 20;
    $session->query(sprintf 'CALL contract.judge_states(%d, 20)', $seed + $done);
}
is($session->query('SELECT seed, claim, problems, call, got, expected FROM contract.breach'), '',
    'claims return what the contract names')
  or diag($session->query('SELECT jobs, queues, marked FROM contract.breach LIMIT 1'));
cmp_ok($session->query(q{SELECT number FROM contract.tally WHERE what = 'placed'}), '>',
    $states / 4, 'among them jobs of queues that they promoted');
note $session->query(q{SELECT string_agg(what || ' ' || number, ', ') FROM contract.tally});

done_testing();
