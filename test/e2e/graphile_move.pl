# An application of Graphile Worker before and after pg_pulse_graphile has taken the place of its
# schema. Triggers, a program with its library, executable tasks and a crontab are the same files
# before and after, and what they put out is the same. Then the worker is killed, before and after.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Graphile;
use Pulse::Program;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $folder = install_graphile('no application was moved');
my $node = start_server('main', settings => \%QUICK);
my $connection = connection_to($node, 'postgres');

sub sql {
    my ($statements) = @_;
    return $node->safe_psql('postgres', $statements);
}

# --- the application -----------------------------------------------------------------------------

my $put_out = <<'SH';
payload=$(perl -MJSON::PP -0777 -ne \
    'print JSON::PP->new->canonical->encode(decode_json($_)->{payload})')
echo "$GRAPHILE_WORKER_TASK_IDENTIFIER $payload ${GRAPHILE_WORKER_JOB_KEY:--}" \
    "$GRAPHILE_WORKER_JOB_ATTEMPTS/$GRAPHILE_WORKER_JOB_MAX_ATTEMPTS" \
    "$GRAPHILE_WORKER_JOB_PRIORITY $GRAPHILE_WORKER_PAYLOAD_FORMAT" >>"$told"
SH
my $tasks = Pulse::Tasks->new(
    receipt => $put_out,
    totals => $put_out,
    greet => $put_out,
    other => $put_out,
    broken => "$put_out exit 3",
    slow => "$put_out wait_at slow",
    tidy => q{grep -o '"backfilled": \?true' | sed 's/^/tidy /; s/: /:/' >>"$told"});
symlink $tasks->folder, "$folder/tasks" or die "$folder/tasks: $!";
append_to_file("$folder/crontab", "0 * * * * tidy ?fill=2h\n");

my $application = <<'SQL';
CREATE TABLE orders (id int PRIMARY KEY, customer text, total numeric);
CREATE FUNCTION order_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    PERFORM graphile_worker.remove_job('receipt:' || OLD.id);
    RETURN OLD;
  END IF;
  PERFORM graphile_worker.add_job(
    'receipt', json_build_object('order', NEW.id, 'total', NEW.total),
    queue_name := 'customer/' || NEW.customer, job_key := 'receipt:' || NEW.id,
    max_attempts := 5, priority := -1);
  PERFORM graphile_worker.add_job('totals', json_build_array(NEW.id), job_key := 'totals',
                                  job_key_mode := 'preserve_run_at');
  RETURN NEW;
END $$;
CREATE TRIGGER order_changed AFTER INSERT OR UPDATE OR DELETE ON orders
  FOR EACH ROW EXECUTE FUNCTION order_changed();
SQL

# What its users do.
sub use_application {
    sql(<<'SQL');
TRUNCATE orders;
BEGIN;
INSERT INTO orders VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'ann', 5);
UPDATE orders SET total = 12.50 WHERE id = 1;
DELETE FROM orders WHERE id = 2;
SELECT graphile_worker.add_jobs(ARRAY(
  SELECT ('broken', json_build_object('n', n), NULL, NULL, 1, NULL, NULL, '{f}')
           ::graphile_worker.job_spec FROM generate_series(1, 2) AS n));
COMMIT;
SQL
    system("cd '$folder' && node '" . getcwd . "/test/e2e/graphile/enqueue.mjs' '$connection'") == 0
      or die 'enqueue.mjs failed';
    return;
}
my $lines_of_use = 8;

# What it has put out since, and what monitoring sees.
sub outcome {
    my ($from) = @_;
    $tasks->lines->wait_for('all that it puts out', sub { 1 }, from => $from,
        count => $lines_of_use);
    wait_until($node, q{SELECT count(*) = 0 FROM graphile_worker.jobs WHERE locked_at IS NOT NULL},
        'no job runs');
    my @lines = $tasks->lines->lines;
    return join "\n", sort(@lines[ $from .. $#lines ]), sql(q{
        SELECT task_identifier, attempts, max_attempts, key, locked_by, flags
          FROM graphile_worker.jobs WHERE task_identifier = 'broken' ORDER BY id});
}

my $started = 0;

sub start_graphile {
    my (%options) = @_;
    return Pulse::Program->start('graphile-' . ++$started,
        [ 'env', '-C', $folder, 'node_modules/.bin/graphile-worker', '-c', $connection,
            '--jobs', 1, '--poll-interval', 100, '--crontab', "$folder/crontab" ],
        %options);
}

sub start_pulse {
    return Pulse::Worker->start($node, 'pulse-' . ++$started, folder => "$folder/tasks",
        options => [ '--crontab', "$folder/crontab" ]);
}

# Kills the worker of a job, starts another, and adds a job of the same queue and one of none.
sub kill_worker {
    my ($worker, $start) = @_;
    my $from = $tasks->lines->position;
    sql(q{SELECT graphile_worker.add_job('slow', queue_name => 'customer/ann')});
    $tasks->lines->wait_for('slow', sub { $_[0] =~ /^slow .* 1\/25/ }, from => $from);
    $worker->signal('KILL');
    is($worker->wait_exit, 'signal 9', 'the worker is killed while it runs a job');
    my $killed_at = time;
    my $next = $start->();
    sql(q{SELECT graphile_worker.add_job('receipt', '{"order": 9}', 'customer/ann'),
                 graphile_worker.add_job('other')});
    $tasks->lines->wait_for('other', sub { $_[0] =~ /^other / }, from => $from);
    return ($next, $from, $killed_at);
}

# --- before --------------------------------------------------------------------------------------

is(system("cd '$folder' && node_modules/.bin/graphile-worker --schema-only -c '$connection' "
          . '>schema.log 2>&1'), 0, 'Graphile Worker makes its schema');
sql($application . q{INSERT INTO graphile_worker._private_known_crontabs VALUES
    ('tidy', now() - interval '1 day', date_trunc('hour', now()) - interval '1 hour')});
use_application();
my $worker = start_graphile();
my $before = outcome(0);
is(scalar(my @lines = $before =~ /^(?:receipt|totals|greet|broken|tidy) /mg), $lines_of_use,
    'the application puts out what it should');
like($before, qr/^totals \[1,2,3,1\] totals 1\/25 0 json$/m, 'lists merge under a key');

($worker, my $from) = kill_worker($worker, \&start_graphile);
is(sql(q{SELECT task_identifier, locked_at IS NOT NULL FROM graphile_worker.jobs
         WHERE queue_name = 'customer/ann' ORDER BY id}), "slow|t\nreceipt|f",
    'Graphile Worker: the job stays locked, and its queue waits');
$worker->signal('TERM');
$worker->wait_exit;
$tasks->open_gate('slow');
sql(q{SELECT graphile_worker.force_unlock_workers(array_agg(DISTINCT locked_by))
        FROM graphile_worker.jobs WHERE locked_by IS NOT NULL;
      SELECT graphile_worker.add_job('other', run_at => '2099-01-01', job_key => 'later')});

# --- the move ------------------------------------------------------------------------------------

my ($status, $output, $error) = $node->psql('postgres', 'CREATE EXTENSION pg_pulse_graphile');
like($error, qr/schema graphile_worker exists.*HINT:.*RENAME TO graphile_worker_old/s,
    'the extension does not take the schema of Graphile Worker');
sql('CREATE ROLE app');
is(sql(<<'SQL'), "waiting jobs|taken|3\nfailed jobs|taken|2\ncrontab items|left there|1\n",
BEGIN;
ALTER SCHEMA graphile_worker RENAME TO graphile_worker_old;
CREATE EXTENSION pg_pulse_graphile;
SELECT what, outcome, jobs FROM pulse.import_graphile_worker('graphile_worker_old');
SELECT pulse.grant_producer('app');
COMMIT;
SQL
    'it takes the place of the renamed one, and the jobs move');

my $facts = <<'SQL';
SELECT string_agg(line, E'\n' ORDER BY line COLLATE "C") FROM (
  SELECT concat_ws(' ', p.proname, pg_get_function_arguments(p.oid),
                   pg_get_function_result(p.oid), p.proisstrict) AS line
    FROM pg_proc AS p WHERE p.pronamespace = 'SCHEMA'::regnamespace AND p.proname !~ '^_'
  UNION ALL
  SELECT concat_ws(' ', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod))
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
   WHERE c.relnamespace = 'SCHEMA'::regnamespace AND c.relkind IN ('r', 'v', 'c')
     AND c.relname <> '_private_known_jobs') AS f
SQL
my $real = sql($facts =~ s/SCHEMA/graphile_worker_old/gr);
is(sql($facts =~ s/SCHEMA/graphile_worker/gr), $real =~ s/graphile_worker_old\./graphile_worker./gr,
    'every function, view and type has the arguments, columns and types of the real one');
is(sql('SELECT id, breaking FROM graphile_worker.migrations ORDER BY id'),
    sql('SELECT id, breaking FROM graphile_worker_old.migrations ORDER BY id'),
    'and the same migrations');
sql('DROP SCHEMA graphile_worker_old CASCADE');

# --- after ---------------------------------------------------------------------------------------

my $refused = start_graphile(output => 'stderr');
$refused->lines->wait_for('a refusal', sub { $_[0] =~ /is a view of what pg_pulse keeps/ });
$refused->signal('KILL');
$refused->wait_exit;
pass('the worker of Graphile Worker is refused');

$from = $tasks->lines->position;
$tasks->open_gate('slow');
$worker = start_pulse();
$tasks->lines->wait_for('slow', sub { $_[0] =~ /^slow .* 2\/25/ }, from => $from);
$tasks->lines->wait_for('receipt', sub { $_[0] =~ /^receipt .*9/ }, from => $from);
pass('what waited there runs here, with the attempts that it had used');
$worker->signal('TERM');
is($worker->wait_exit, 0, 'the worker ends');
sql(q{DELETE FROM graphile_worker._private_jobs WHERE attempts = max_attempts});
is(sql('SELECT task_identifier, key, run_at FROM graphile_worker.jobs'),
    'other|later|2099-01-01 00:00:00+00', 'the job of another century still waits');

$from = $tasks->lines->position;
use_application();
sql(q{UPDATE pulse.schedule SET next_due = date_trunc('hour', now()) WHERE name = 'tidy'});
$worker = start_pulse();
is(outcome($from), $before, 'the application puts out the same');
is(sql(q{SELECT count(*) FROM graphile_worker._private_known_crontabs
          WHERE last_execution = date_trunc('hour', now())}), 1, 'its crontab is known');

($worker, $from, my $killed_at) = kill_worker($worker, \&start_pulse);
$tasks->lines->wait_for('slow', sub { $_[0] =~ /^slow .* 2\/25/ }, from => $from);
diag(sprintf 'pg_pulse: the job of the killed worker runs again after %.1f s', time - $killed_at);
$tasks->open_gate('slow');
$tasks->lines->wait_for('receipt', sub { $_[0] =~ /^receipt .*9/ }, from => $from);
pass('pg_pulse: the job runs again, and then the next of its queue');
$worker->signal('TERM');
$worker->wait_exit;

# --- a copy --------------------------------------------------------------------------------------

sql('CREATE DATABASE copy');
my $dump = "$folder/dump.sql";
is(system('pg_dump', '-f', $dump, '-d', $node->connstr('postgres')), 0, 'pg_dump');
$node->safe_psql('copy', "\\i $dump");
is($node->safe_psql('copy', <<'SQL'), "other|later\n0",
SELECT task_identifier, key FROM graphile_worker.jobs WHERE key IS NOT NULL;
INSERT INTO orders VALUES (7, 'eve', 1);
SET ROLE app;
SELECT attempts FROM graphile_worker.add_job('other');
SQL
    'the application is whole after a dump and a restore, rights included');

expect_healthy($node);
done_testing();
