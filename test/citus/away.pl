# docs/scale-out.md: a node is away while jobs of all other nodes are added and run, and comes back.
# Nobody starts a worker or a producer anew.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Citus;
use Pulse::Program;
use Pulse::Server qw(value wait_until kill_server);
use Pulse::Session;
use Pulse::Worker;

use constant { WAITING => 20, MEANWHILE => 300, AFTERWARDS => 60 };

my $cluster = Pulse::Citus->start;
my ($coordinator, $near, $away) = $cluster->nodes;
my @keys = $cluster->keys;
for my $node ($cluster->nodes) {
    value($node, qq{SET citus.enable_ddl_propagation = off;
        CREATE TABLE public.ran (id bigint);
        CREATE FUNCTION public.note(payload json) RETURNS void LANGUAGE plpgsql AS \$\$
        BEGIN
            INSERT INTO public.ran VALUES ((payload ->> 'row')::bigint);
            IF payload ->> 'waits' = 'true' THEN PERFORM pg_advisory_xact_lock(51); END IF;
        END \$\$;
        SELECT pulse.set_task('ledger', handler => 'public.note(json)')});
}

sub produce {
    my ($name, $first, $count, @of) = @_;
    return Pulse::Program->start($name, [ 'python3', 'test/citus/producer.py',
        'host=127.0.0.1 dbname=postgres user=app port=' . $coordinator->port, $first, $count,
        @of ]);
}

sub add {
    my ($key, $row, $more) = @_;
    $more //= '';
    return "INSERT INTO orders VALUES ('$key', $row, 'ledger');
        SELECT (pulse_citus.add_job('$key', 'ledger', '{\"row\": $row$more}')).id >> 44";
}

# --- a job runs, others wait, and a producer has a connection to the node ------------------------

my $holder = Pulse::Session->new($away);
$holder->query("SELECT pg_advisory_lock(51)");
my $producer = Pulse::Session->new($coordinator);
$producer->query('SET ROLE app');
$producer->query(add($keys[2], 1, ', "waits": true'));
my @workers = map { Pulse::Worker->start($_, 'of_' . $_->name) } $cluster->nodes;
wait_until($away, q{SELECT count(*) = 1 FROM pulse.job WHERE state = 'running'}, 'the job runs');
$producer->query(add($keys[2], 1 + $_)) for 1 .. WAITING;

# --- away ----------------------------------------------------------------------------------------

kill_server($away);
$workers[2]->wait_for('reconnecting');
my $meanwhile = produce('meanwhile', 1_000, MEANWHILE, @keys[ 0, 1 ]);
$meanwhile->lines->wait_for('its end', sub { $_[0] eq 'done' });
wait_until($_, q{SELECT count(*) = 0 FROM pulse.job}, 'all jobs of other nodes ended')
  for $coordinator, $near;
is($cluster->ask(
    "SELECT name FROM pulse_citus.schedule('$keys[1]', 'nightly', 'ledger', '\@daily')",
    role => 'postgres'), 'nightly', 'a schedule of another node is made');
is($cluster->ask("SELECT pulse_citus.add_job('$keys[2]', 'ledger')"), '08006',
    'a job of the node is refused');
is($cluster->ask(join ';', 'BEGIN', add($keys[1], 500), add($keys[2], 501), 'COMMIT'), '08006',
    'and a transaction that needs the node');
is($cluster->ask('SELECT shard FROM pulse_citus.overview() WHERE trouble IS NOT NULL',
    role => 'postgres'), 2, 'the overview says which node is away');

# --- back ----------------------------------------------------------------------------------------

$away->start;
wait_until($away, q{SELECT count(*) = 0 FROM pulse.job}, 'the worker has found the node again');
is($producer->query(add($keys[2], 100)), 2, 'the session of the producer adds jobs of the node');
my $afterwards = produce('afterwards', 10_000, AFTERWARDS, @keys);
$afterwards->lines->wait_for('its end', sub { $_[0] eq 'done' });
wait_until($_, q{SELECT count(*) = 0 FROM pulse.job}, 'all jobs ended') for $cluster->nodes;

my @rows = sort { $a <=> $b } split /\n/,
  value($coordinator, q{SELECT id FROM orders WHERE note = 'ledger'});
my @ran = sort { $a <=> $b } map { split /\n/, value($_, 'SELECT id FROM ran') } $cluster->nodes;
is("@ran", "@rows", 'the job of each row ran to its end once: ' . @rows);
$_->signal('TERM') for @workers;
$_->wait_exit for @workers;

$cluster->expect_healthy;
done_testing();
