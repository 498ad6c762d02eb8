# docs/scale-out.md: what operators, schedulers and observers ask of a cluster, by key and by id.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Citus;
use Pulse::Server qw(value);

my $cluster = Pulse::Citus->start;
my $coordinator = $cluster->coordinator;
my @keys = $cluster->keys;
value($coordinator, "CREATE ROLE $_ LOGIN; SELECT pulse_citus.grant('$_', '$_')")
  for qw(operator observer scheduler caller);

sub id_of { my ($key, $task) = @_;
    return $cluster->ask("SELECT (pulse_citus.add_job('$key', '$task')).id") }
sub as { my ($role, $query, %options) = @_;
    return $cluster->ask($query, role => $role, %options) }

# --- by id --------------------------------------------------------------------------------------

my @ids = map { id_of($_, 'seen') } @keys;
is(as(observer => "SELECT state FROM pulse_citus.get_job($ids[$_])"), 'ready',
    "get_job finds a job of node $_") for 0 .. 2;
is(as(observer => "SELECT kind FROM pulse_citus.explain_job($ids[2]) LIMIT 1"),
    value($cluster->node(2), "SELECT kind FROM pulse.explain_job($ids[2]) LIMIT 1"),
    'explain_job says what the node says');
is(as(observer => "SELECT port FROM pulse_citus.node_of($ids[$_])"), $cluster->node($_)->port,
    "node_of knows node $_") for 0 .. 2;
is(as(observer => "SELECT pulse_citus.$_(7::bigint << 44 | 5)"), 'PU005',
    "$_ refuses an id that is of no node") for qw(get_job explain_job node_of);
is(as(observer => "SELECT pulse_citus.$_($ids[2] + 1000000)"), 'PU005',
    "$_ refuses an id that was not given out") for qw(get_job explain_job);
is(as(observer => "SELECT pulse_citus.get_job(NULL)"), 'PU005', 'and NULL');
is(as(app => "SELECT pulse_citus.get_job($ids[2])"), '42501', 'a producer may not ask');

# --- by key -------------------------------------------------------------------------------------

is(as(operator => "SELECT pulse_citus.cancel_job('$keys[1]', $ids[1], 'not now')"), 'cancelled',
    'cancel_job by key');
is(as(caller => "SELECT state FROM pulse_citus.ended('$keys[1]', '{$ids[1]}')"), 'cancelled',
    'ended tells');
is(as(operator => "SELECT state FROM pulse_citus.retry_job('$keys[1]', $ids[1])"), 'ready',
    'retry_job revives');
my %by_key = (
    cancel_job => [ operator => "'KEY', ID" ], retry_job => [ operator => "'KEY', ID" ],
    ended => [ caller => "'KEY', '{ID}'" ], add_job_after => [ app => "'KEY', '{ID}', 'x'" ],
    add_dependency => [ app => "'KEY', ID, '{ID}'" ],
    add_flow => [ app => qq('KEY', '[{"identifier": "x", "after": [ID]}]') ]);
for my $name (sort keys %by_key) {
    my ($role, $arguments) = @{ $by_key{$name} };
    $arguments =~ s/KEY/$keys[1]/g;
    $arguments =~ s/ID/$ids[2]/g;
    is(as($role => "SELECT pulse_citus.$name($arguments)"), 'PU005',
        "$name refuses a job of another node");
}
is(as(app => "SELECT pulse_citus.cancel_job('$keys[1]', $ids[1])"), '42501',
    'a producer may not cancel');

# What a transaction does by key is undone with it.
as(operator => "BEGIN; SELECT pulse_citus.cancel_job('$keys[2]', $ids[2]); ROLLBACK");
is(as(observer => "SELECT state FROM pulse_citus.get_job($ids[2])"), 'ready',
    'a cancellation is undone with its transaction');

# --- producers' other calls ---------------------------------------------------------------------

is($cluster->ask("SELECT count(*), count(DISTINCT id), min(id >> 44) FROM pulse_citus.add_jobs(
    '$keys[2]', array_fill(
      '(many,\"{\"\"a\"\": \"\"x\\\\\\\\y\"\"}\",,,,,,)'::pulse.job_spec, '{100}'))"),
    '100|100|2', 'add_jobs');
is(value($cluster->node(2),
    "SELECT DISTINCT payload ->> 'a' FROM pulse.job WHERE identifier = 'many'"), 'x\y',
    'brings payloads as they are');
my $once = "SELECT is_new FROM pulse_citus.add_job_once('$keys[1]', '1 hour', 'k', 'once')";
is($cluster->ask("$once; $once"), "t\nf", 'add_job_once adds once');
is($cluster->ask("SELECT pulse_citus.forget_once('$keys[1]', 'once', 'k')"), 't', 'forget_once');
is($cluster->ask("SELECT pulse_citus.remove_job('$keys[1]', 'nobody') IS NULL"), 't',
    'remove_job without a job');
is($cluster->ask("SELECT (pulse_citus.add_job('$keys[1]', 'keyed', job_key => 'a')).job_key;
    SELECT (pulse_citus.remove_job('$keys[1]', 'a')).identifier"), "a\nkeyed", 'with one');
is($cluster->ask(qq{SELECT count(*), count(DISTINCT flow_id), min(id >> 44)
    FROM pulse_citus.add_flow('$keys[2]', '[{"key": "a", "identifier": "x"},
      {"identifier": "y", "after": ["a"]}]', 'both')}), '2|1|2', 'add_flow');
is($cluster->ask("DO \$\$ DECLARE child bigint; parent bigint; BEGIN
    child := (pulse_citus.add_job('$keys[2]', 'last', run_at => '2100-01-01')).id;
    parent := (pulse_citus.add_job('$keys[2]', 'late')).id;
    PERFORM pulse_citus.add_dependency('$keys[2]', child, ARRAY[parent]); END \$\$"), '',
    'add_dependency');

# Whatever a session's way of writing times is.
is($cluster->ask("SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Tokyo'; SET intervalstyle =
    'sql_standard'; SELECT (pulse_citus.add_job('$keys[2]', 'at', run_at => '03/04/2100 05:06')).id"
  ) =~ /^\d+$/ && value($cluster->node(2), "SELECT run_at AT TIME ZONE 'UTC' FROM pulse.job
    WHERE identifier = 'at'"), '2100-04-02 20:06:00', 'a time means the same on the node');

# --- schedules ----------------------------------------------------------------------------------

my $schedule = "SELECT name FROM pulse_citus.schedule('$keys[2]', 'nightly', 'report', '\@daily')";
as(scheduler => "BEGIN; $schedule; ROLLBACK");
is(value($coordinator, 'SELECT count(*) FROM pulse_citus.schedule_home'), 0,
    'a schedule that is rolled back has no home');
is(as(scheduler => $schedule), 'nightly', 'a schedule');
is(value($cluster->node(2), 'SELECT name FROM pulse.schedule'), 'nightly', 'is on its node');
is(as(scheduler => $schedule =~ s/$keys[2]/$keys[1]/r), 'PU003',
    'another key may not take its name');
is(as(scheduler => $schedule, node => $cluster->node(2)), 'PU003',
    'a node refuses to change schedules');
is(as(scheduler => "SELECT paused FROM pulse_citus.pause_schedule('nightly')"), 't', 'paused');
is(as(scheduler => "SELECT paused FROM pulse_citus.resume_schedule('nightly')"), 'f', 'resumed');
is(as(scheduler => "SELECT pulse_citus.pause_schedule('weekly')"), 'PU005', 'an unknown one');
is(as(scheduler => "SELECT pulse_citus.unschedule('nightly')"), 't', 'unscheduled');
is(as(scheduler => "SELECT pulse_citus.unschedule('nightly')"), 'f', 'once');
is(value($cluster->node(2), 'SELECT count(*) FROM pulse.schedule'), 0, 'it is gone from its node');
is(as(app => $schedule), '42501', 'a producer may not schedule');

# --- all nodes ----------------------------------------------------------------------------------

is(as(observer => 'SELECT shard, (overview).shard, trouble IS NULL FROM pulse_citus.overview()'),
    "0|0|t\n1|1|t\n2|2|t", 'overview has a row of each node');
is(as(operator => 'SELECT count(*), count(promise), count(trouble) FROM pulse_citus.verify()'),
    '3|0|0', 'verify too');
is(as(observer => "SELECT count(DISTINCT node) FROM pulse_citus.doctor()"), 3, 'and doctor');
is(as(app => 'SELECT pulse_citus.doctor()'), '42501', 'a producer may not ask');

# --- rights -------------------------------------------------------------------------------------

is(as(app => "SELECT pulse_citus.grant('operator', 'app')"), '42501',
    'only the owner gives rights');
is(as(postgres => "SELECT pulse_citus.grant('king', 'app')"), 'PU004', 'of the kinds there are');
is(as(postgres => "SELECT pulse_citus.grant('operator', 'nobody')"), 'PU003',
    'to a role that there is');
as(postgres => "SELECT pulse_citus.revoke('producer', 'app')");
is(as(app => "SELECT pulse_citus.add_job('$keys[$_]', 'x')"), '42501',
    "without the right nothing is added on node $_") for 0 .. 2;

$cluster->expect_healthy;
done_testing();
