# P4, P6: the server is away for ten times the threshold, while a task runs that lasts twelve. The
# job takes one attempt and is finished once, and nobody is dead afterwards.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Proxy;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

# In seconds. A busy machine has so long to start the sessions of all workers anew.
use constant THRESHOLD => 3;

my $node = start_server('main', settings => {
    %QUICK, 'pulse.sweep_threshold' => THRESHOLD . 's' });

# The task is the clock of this test: it ticks once per threshold, because nobody opens its gate.
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    tick => 'for tick in {1..12}; do read -r -t ' . THRESHOLD . ' _ <"$gates/none";
             tell "tick_$tick"; done; : wait_at none',
    careful => 'tell began; wait_at careful; tell ended');
value($node, q{SELECT pulse.set_task('careful', backoff => 'none', on_unreachable => 'kill')});

my @workers =
  map { Pulse::Worker->start_registered($node, $_, tasks => $tasks, concurrency => 2) }
  qw(first second third);

# A worker that speaks SQL, with a threshold of its own: it has to be told of the end of the outage.
my $session = Pulse::SqlWorker->new($node, 'sql', before => q{SET pulse.sweep_threshold = '25s'});
my $held = add_job($node, 'held');
my $token = $session->query("SELECT (job).token FROM pulse.claim_job($session->{id}, $held)");

my $careful = add_job($node, 'careful');
my $in_reach = $tasks->process($tasks->wait_for('began', job => $careful));
my $ticking = add_job($node, 'tick');
my $process = $tasks->process($tasks->wait_for('tick_1', job => $ticking));
my %from = map { ($_->name => $_->lines->position) } @workers;
$node->stop('immediate');

$tasks->wait_for('tick_11', job => $ticking);
ok($in_reach->is_gone, 'a task that is not to run out of reach was ended');
ok(!$process->is_gone, 'the other one was not');
$node->start;

my $again = Pulse::Session->new($node);
is($again->query("SELECT status FROM pulse.heartbeat($session->{id})"),
    'alive', 'a worker that speaks SQL is alive');
$again->query("SELECT pulse.complete($held, $token)");
# It beats no more, so it leaves before that counts.
$again->query("SELECT pulse.deregister_worker($session->{id})");
$again->quit;
$session->quit;

$_->wait_for('heartbeat', status => 'alive', from => $from{ $_->name }) for @workers;
$_->wait_for('sweep', from => $from{ $_->name }, count => 5) for @workers;
$tasks->wait_for('tick_12', job => $ticking);
$tasks->open_gate('careful');
$tasks->wait_for('ended', job => $careful, attempt => 2);
my @ids = map { add_job($node, 'run') } 1 .. 10;
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are done');

is(finished($node, $ticking), 'completed|1|0', 'the long job completed in one attempt');
is(finished($node, $held), 'completed|1|0', 'as did the one of the SQL worker');
is(scalar($tasks->told('tick_12')), 1, 'its task ran to its end once');
is(outcomes($node, $careful), 'interrupted completed', 'the careful one ended and was tried again');
is(finished($node, $careful), 'completed|2|0', 'in its second attempt');
is( value($node, q{SELECT string_agg(concat_ws(' ', name, state), ', ' ORDER BY name)
        FROM pulse.worker}),
    'first alive, second alive, sql stopped, third alive', 'nobody is dead');
is(value($node, 'SELECT count(*) FROM pulse.worker'), 4, 'and nobody had to register anew');

$_->signal('TERM') for @workers;
is($_->wait_exit, 0, $_->name . ' drains') for @workers;

# Nobody sweeps while all workers are cut off from a server that runs on. The first one that is back
# must not take the others for dead.
subtest 'P6: the network is away, and the server is not' => sub {
    set($node, 'pulse.disconnect_grace' => 10 * THRESHOLD . 's');
    my $proxy = Pulse::Proxy->start($node, 'network');
    my @remote =
      map { Pulse::Worker->start_registered($node, $_, tasks => $tasks, $proxy->address) }
      qw(fourth fifth);
    my $id = add_job($node, 'tick');
    $tasks->wait_for('tick_1', job => $id);
    my %back = map { ($_->name => $_->lines->position) } @remote;
    $proxy->signal('STOP');
    $tasks->wait_for('tick_5', job => $id);
    $proxy->signal('CONT');
    $_->wait_for('heartbeat', status => 'alive', from => $back{ $_->name }) for @remote;
    $_->wait_for('sweep', from => $back{ $_->name }, count => 5) for @remote;
    is_deeply([ map { $_->events('lost') } @remote ], [], 'nobody is lost');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'the job is done');
    is(finished($node, $id), 'completed|1|0', 'the job completed in one attempt');
};

expect_healthy($node);
done_testing();
