# Moving from Graphile Worker: its jobs come with all that they are, in one transaction, once, and
# not while its workers hold any. Its real release makes the jobs, and runs what comes back.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Graphile;
use Pulse::Server;

my $folder = install_graphile('no job was moved');
my $node = start_server('main');
my $connection = connection_to($node, 'postgres');

sub graphile_worker {
    my ($options) = @_;
    return system("cd '$folder' && node_modules/.bin/graphile-worker $options -c '$connection' "
          . '>>worker.log 2>&1');
}

sub run_jobs {
    my ($order) = @_;
    $order =~ s/^\{/{"connection": "$connection", /;
    open my $node_js, '-|', 'env', '-C', $folder, 'node', getcwd . '/test/e2e/graphile/run.mjs',
      $order or die "node: $!\n";
    my @ran = <$node_js>;
    close $node_js or die "node failed\n";
    return scalar @ran;
}

# What is seen of jobs of both, in one form.
my $theirs = <<'SQL';
  SELECT concat_ws('|', t.identifier, j.payload, q.queue_name, j.priority, j.run_at, j.attempts,
                   j.max_attempts, 'key ' || j.key, j.revision, j.created_at,
                   (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(j.flags) AS k),
                   'error ' || j.last_error) AS line, j.attempts >= j.max_attempts AS has_failed
    FROM graphile_worker._private_jobs AS j
    JOIN graphile_worker._private_tasks AS t ON t.id = j.task_id
    LEFT JOIN graphile_worker._private_job_queues AS q ON q.id = j.job_queue_id
SQL
my $columns = q{concat_ws('|', identifier, payload, queue_name, priority, run_at, attempts,}
  . q{ max_attempts, 'key ' || job_key, revision, created_at, flags, 'error ' || last_error)};
my $ours = "SELECT $columns AS line, false AS has_failed FROM pulse.job UNION ALL "
  . "SELECT $columns, true FROM pulse.finished_job WHERE state = 'failed'";

sub all_of {
    my ($query) = @_;
    return value($node, "SELECT string_agg(concat(line, has_failed), E'\\n' ORDER BY line) "
          . "FROM ($query) AS q");
}

my $import = q{SELECT concat_ws('|', what, outcome, jobs) FROM pulse.import_graphile_worker()};

my ($status, $output, $error) = $node->psql('postgres', $import);
like($error, qr/schema graphile_worker has no jobs of Graphile Worker/,
    'without its tables there is nothing to move');
is(graphile_worker('--schema-only'), 0, 'Graphile Worker makes its tables');

$node->safe_psql('postgres', <<'SQL');
SELECT graphile_worker.add_job('plain');
SELECT graphile_worker.add_job('mail', '{"to": "ann", "n": 1.10}', 'mail/ann', now() + '1 hour', 7,
                               'key 1', 3, '{night,big}');
SELECT graphile_worker.add_job('mail', '[1,2]', 'mail/ann', job_key => 'merged');
SELECT graphile_worker.add_job('mail', '[3]', 'mail/ann', job_key => 'merged');
SELECT graphile_worker.add_job('wobbly', '{}', max_attempts => 5);
SELECT graphile_worker.add_job('broken', '{"a": 1}', max_attempts => 1, job_key => 'dead');
SELECT graphile_worker.add_job('ordered', to_json(n), 'one') FROM generate_series(1, 5) AS n;
SELECT graphile_worker.add_job('odd', queue_name => 'a/b/c/d/e');
SELECT graphile_worker.add_job('odd', job_key => 'taken');
SELECT pulse.add_job('here', job_key => 'taken');
SELECT pulse.add_job('here', job_key => 'dead');
INSERT INTO graphile_worker._private_known_crontabs VALUES ('nightly', now(), '2030-01-02 03:04Z');
SQL
is(run_jobs('{"tasks": {"wobbly": "fail", "broken": "fail"}}'), 2, 'two of its jobs fail');

# --- while its workers hold jobs ------------------------------------------------------------------

$node->safe_psql('postgres', q{UPDATE graphile_worker._private_jobs SET locked_at = now(), }
      . q{locked_by = 'pool-1' WHERE key = 'key 1'});
my $before = all_of($theirs);
($status, $output, $error) = $node->psql('postgres', $import);
like($error, qr/workers of Graphile Worker hold 1 jobs and queues.*pool-1.*force_unlock_workers/s,
    'it is refused while a worker holds a job, and says which');
is(all_of($theirs), $before, 'and nothing has moved');
$node->safe_psql('postgres', q{SELECT graphile_worker.force_unlock_workers('{pool-1}')});

# --- dry run --------------------------------------------------------------------------------------

my $expected = join "\n", 'waiting jobs|taken|9', 'failed jobs|taken|1', 'jobs|left there|1',
  'jobs|left there|1', 'crontab items|left there|1';
$before = all_of($theirs);
my $own_before = all_of($ours);
is(value($node, $import =~ s/\(\)$/(dry_run => true)/r), $expected,
    'a dry run tells what would be taken, and what not');
is(all_of($theirs) . all_of($ours), $before . $own_before, 'and changes nothing');
my $detail = value($node, 'SELECT detail FROM pulse.import_graphile_worker(dry_run => true)');
like($detail, qr/a job that waits here has its job_key: ids \d+$/m, 'it tells of a taken key');
like($detail, qr/cannot name a queue of jobs.*: ids \d+$/m, 'and of a name that is refused');
like($detail, qr/last executed: nightly 2030-01-02/, 'and when crontab items were last executed');

# --- the move -------------------------------------------------------------------------------------

my $left = all_of("$theirs WHERE t.identifier = 'odd'");
$node->safe_psql('postgres', "BEGIN; $import; ROLLBACK");
is(all_of($theirs) . all_of($ours), $before . $own_before, 'a rollback leaves all where it was');
is(value($node, $import), $expected, 'the move takes the same');
is(all_of($theirs), $left, 'what it could not take is still there');
$node->safe_psql('postgres', q{DELETE FROM pulse.job WHERE identifier = 'here'});
is(join("\n", sort split /\n/, all_of($ours) . "\n$left"), join("\n", sort split /\n/, $before),
    'every other job came with all that it is');
is(value($node, $import), join("\n", 'waiting jobs|taken|1', 'failed jobs|taken|0',
        'jobs|left there|1', 'crontab items|left there|1'),
    'another call takes what has become possible, and nothing twice');
$node->safe_psql('postgres', q{SELECT graphile_worker.add_job('spent', job_key => 'spent');
    UPDATE graphile_worker._private_jobs SET attempts = 3, max_attempts = 2 WHERE key = 'spent'});
$node->safe_psql('postgres', $import);
is(value($node, q{SELECT state || ' ' || attempts || ' of ' || max_attempts
        FROM pulse.finished_job WHERE identifier = 'spent'}), 'failed 2 of 2',
    'a job with more attempts than it may have comes with those that it may have');
is(value($node, 'SELECT count(*) FROM pulse.verify()'), 0, 'every promise holds of what came');
$node->safe_psql('postgres', q{DELETE FROM pulse.finished_job WHERE identifier = 'spent'});

# --- what came runs -------------------------------------------------------------------------------

my $worker = value($node, q{SELECT id FROM pulse.register_worker('ann')});
my @order;
# A claim opens as many queues as it asks for jobs, so one may come back without.
for (1 .. 20) {
    my $claimed = value($node, "SELECT concat_ws(' ', id, token, payload) "
          . "FROM pulse.claim($worker, 1, '{ordered}')") or next;
    my ($id, $token, $payload) = split / /, $claimed;
    push @order, $payload;
    $node->safe_psql('postgres', "SELECT pulse.complete($id, $token)");
}
is("@order", '1 2 3 4 5', 'jobs of a queue run one after the other, in their order');
is(value($node, q{SELECT attempts FROM pulse.retry_job((SELECT id FROM pulse.finished_job))}), 0,
    'one that failed there can be tried again here');

# --- producers that go on there -------------------------------------------------------------------

$node->safe_psql('postgres', q{SELECT graphile_worker.add_job('late')});
like(value($node, $import), qr/^waiting jobs\|taken\|1$/m,
    'a job that is added there later comes too');

done_testing();
