# docs/scale-out.md: a job lives on the node of its shard key, and its add is a part of the caller's
# transaction; a call that Citus would run elsewhere is refused. Callers are no superusers.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Citus;
use Pulse::Server qw(value);

my $cluster = Pulse::Citus->start;
my $coordinator = $cluster->coordinator;
my @keys = $cluster->keys;

sub add { my ($key, $task) = @_; return "SELECT pulse_citus.add_job('$key', '$task')" }
sub row { my ($key, $note) = @_; return "INSERT INTO orders VALUES ('$key', 1, '$note')" }

# Its jobs on each node, and nothing waits for a second phase.
sub jobs_are {
    my ($task, $expected, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is($cluster->jobs($task), $expected, $what);
}

# --- where a job lives --------------------------------------------------------------------------

is($cluster->ask("SELECT (pulse_citus.add_job('$keys[$_]', 'home')).id >> 44"), $_,
    "a job of a key of node $_ has an id of the node's shard") for 0 .. 2;
jobs_are('home', '1,1,1', 'and is there');

is($cluster->ask(add($keys[2], 'from_node'), node => $cluster->node(1)) =~ /from_node/, 1,
    'a node adds for a key of another node');
jobs_are('from_node', '0,0,1', 'there');

# --- one transaction ----------------------------------------------------------------------------

for my $first (qw(row job)) {
    my $both = sub {
        my ($task, $end) = @_;
        return join ';', 'BEGIN',
          (map { $first eq 'row' ? (row($_, $task), add($_, $task))
                                 : (add($_, $task), row($_, $task)) } @keys[ 1, 2 ]), $end;
    };
    $cluster->ask($both->("${first}_kept", 'COMMIT'));
    $cluster->ask($both->("${first}_undone", 'ROLLBACK'));
    jobs_are("${first}_kept", '0,1,1', "$first first: a transaction of two nodes keeps both jobs");
    jobs_are("${first}_undone", '0,0,0', 'a rollback none');
    is(value($coordinator, "SELECT count(*) FROM orders WHERE note LIKE '${first}_%'"), 2,
        'as many rows as jobs');
}

$cluster->ask(join ';', 'BEGIN', add($keys[1], 'before'), 'SAVEPOINT s', add($keys[1], 'within'),
    add($keys[2], 'within'), 'ROLLBACK TO s', add($keys[2], 'after'), 'COMMIT');
is(join(' ', map { $cluster->jobs($_) } qw(before within after)), '0,1,0 0,0,0 0,0,1',
    'a savepoint undoes what came after it');

# --- calls that Citus runs elsewhere ------------------------------------------------------------

# However a call is written, its jobs are on their nodes: one for each of three keys.
my $list = join ', ', map { "('$_')" } @keys;
my %written = (
    'in an expression' => join(';', 'BEGIN', (map {
        "SELECT (pulse_citus.add_job('$_', 'TASK')).id + 1" } @keys), 'COMMIT'),
    'over rows' => "SELECT pulse_citus.add_job(k, 'TASK') FROM (VALUES $list) AS v (k)",
    'with a volatile argument' =>
      "SELECT pulse_citus.add_job(k, 'TASK', run_at => clock_timestamp())
        FROM (VALUES $list) AS v (k)",
    'in a CTE' => "WITH j AS MATERIALIZED (SELECT pulse_citus.add_job(k, 'TASK')
        FROM (VALUES $list) AS v (k)) SELECT count(*) FROM j",
    'beside a distributed table' => join(';', 'BEGIN', "INSERT INTO orders
        SELECT k, 7, 'beside' FROM (VALUES $list) AS v (k)",
        "SELECT pulse_citus.add_job(tenant, 'TASK') FROM orders WHERE note = 'beside'",
        "DELETE FROM orders WHERE note = 'beside'", 'COMMIT'),
    'prepared' => join(';', "PREPARE p AS SELECT pulse_citus.add_job(\$1, 'TASK')",
        map { "EXECUTE p('$_')" } @keys),
    'in a function of PL/pgSQL' => "DO \$\$ DECLARE added bigint; BEGIN
        FOR i IN 1 .. 3 LOOP
          added := (pulse_citus.add_job(('{$keys[0],$keys[1],$keys[2]}'::text[])[i], 'TASK')).id;
        END LOOP; END \$\$",
);
my $count = 0;
for my $way (sort keys %written) {
    my $task = 'written' . ++$count;
    $cluster->ask($written{$way} =~ s/TASK/$task/gr);
    jobs_are($task, '1,1,1', "$way each job is on the node of its key");
}

my $selected = "INSERT INTO orders SELECT k, (pulse_citus.add_job(k, 'selected')).id, 'selected'
    FROM (VALUES $list) AS v (k)";
$cluster->ask("BEGIN; $selected; ROLLBACK");
jobs_are('selected', '0,0,0', 'INSERT … SELECT that is rolled back leaves no job');
$cluster->ask($selected);
jobs_are('selected', '1,1,1', 'INSERT … SELECT that commits leaves a job on the node of each key');

# Past the fifth execution a session makes a generic plan.
$cluster->ask("DO \$\$ BEGIN FOR i IN 1 .. 8 LOOP
    PERFORM pulse_citus.add_job(k, 'loop') FROM (VALUES $list) AS v (k); END LOOP; END \$\$");
jobs_are('loop', '8,8,8', 'a plan that is kept');
$cluster->ask(join ';', "PREPARE p AS SELECT pulse_citus.add_job(\$1, 'generic')",
    ("EXECUTE p('$keys[1]')") x 8);
jobs_are('generic', '0,8,0', 'a prepared statement past its fifth execution');

# A trigger on a distributed table runs on the row's node, in a session that Citus opened.
value($coordinator, q{
    CREATE FUNCTION add_for_other() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pulse_citus.add_job(NEW.note, 'trigger');
        RETURN NEW;
    END $$});
value($coordinator, q{SET citus.enable_unsafe_triggers = on;
    CREATE TRIGGER add_for_other BEFORE INSERT ON orders
      FOR EACH ROW WHEN (NEW.id = 99) EXECUTE FUNCTION add_for_other()});
sub insert_with_trigger {
    my ($key, $other) = @_;
    return $cluster->ask("SET citus.enable_unsafe_triggers = on;
        INSERT INTO orders VALUES ('$key', 99, '$other')");
}
is(insert_with_trigger($keys[1], $keys[1]), '', 'a trigger adds for a key of its node');
is(insert_with_trigger($keys[1], $keys[2]), 'PU003', 'for a key of another node it is refused');
is(insert_with_trigger($keys[1], $keys[0]), 'PU003', 'also for one of the coordinator');
jobs_are('trigger', '0,1,0', 'and leaves no job');
is(value($coordinator, 'SELECT count(*) FROM orders WHERE id = 99'), 1, 'nor the row');

value($coordinator, q{
    CREATE FUNCTION delegated(tenant text, other text) RETURNS bigint LANGUAGE plpgsql AS $$
    BEGIN
        RETURN (pulse_citus.add_job(other, 'delegated')).id;
    END $$;
    SELECT create_distributed_function('delegated(text, text)', 'tenant',
      colocate_with => 'orders')});
like($cluster->ask("SELECT delegated('$keys[2]', '$keys[2]')"), qr/^\d+$/,
    'a function that Citus handed over adds for its own key');
is($cluster->ask("SELECT delegated('$keys[2]', '$keys[1]')"), 'PU003',
    'for a key of another node it is refused');
jobs_are('delegated', '0,0,1', 'and leaves no job');

# --- keys that are none -------------------------------------------------------------------------

is($cluster->ask("SELECT pulse_citus.add_job(NULL::text, 'x')"), 'PU004', 'a key that is NULL');
is($cluster->ask("SELECT * FROM pulse_colocated.call(NULL, NULL)"), '',
    'by the inner function NULL is nothing');
is($cluster->ask("BEGIN; SELECT * FROM pulse_colocated.call(NULL, '{x}'); COMMIT"), '',
    'nor in a transaction');
is($cluster->ask("SELECT * FROM pulse_colocated.call('$keys[1]', NULL)"), '',
    'nor is a request that is NULL');
is($cluster->ask("SELECT * FROM pulse_colocated.call('$keys[1]', '{0.2.0,$keys[2],now}')"),
    'PU003', 'a request for a key of another node is refused');

$cluster->expect_healthy;
done_testing();
