# A bulk retry that is killed halfway goes on where its last step ended, by any client. Its undo
# brings back all jobs that have not run since.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

my $jobs = $ENV{PULSE_OPERATION_JOBS} // 4000;
my $node = start_server('main', settings => { 'pulse.sweep_interval' => '-1' });
my $session = Pulse::Session->new($node);
my $worker = $session->query(q{SELECT id FROM pulse.register_worker('ann')});

sub counted { return $session->query("SELECT count(*) FROM $_[0]") }

# Runs an operation to its end, in steps of so many jobs, each a transaction.
sub run_to_end {
    my ($id, $step) = @_;
    my $state = 'running';
    $state = $session->query("SELECT state FROM pulse.run_operation($id, $step)")
      while $state eq 'running';
    return $session->query("SELECT changed, skipped FROM pulse.operations WHERE id = $id");
}

add_jobs($node, 'work', $jobs);
$session->query(q{SELECT count(*) FROM pulse.permanently_fail_jobs(
    ARRAY(SELECT id FROM pulse.job), 'broken')});
is($session->query(q{SELECT jobs, is_exact
        FROM pulse.preview_operation('retry', '{"error": "broken"}')}),
    "$jobs|t", 'the preview counts them');
my $id = $session->query(q{SELECT id FROM pulse.start_operation('retry', '{"error": "broken"}',
    actor => 'ann')});

subtest 'a client that is killed in a step' => sub {
    my $half = $jobs / 2;
    my $step = $half < 10_000 ? $half / 2 : 10_000;
    my $client = Pulse::Session->new($node);
    $client->query("SELECT pulse.run_operation($id, $step)") for 1 .. $half / $step;
    $client->query('BEGIN');
    $client->query("SELECT pulse.run_operation($id, $step)");
    my $pid = $client->backend_pid;
    $client->kill;
    wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid", 'its end');
    is($session->query("SELECT state, changed FROM pulse.operations WHERE id = $id"),
        "running|$half", 'leaves what its last step had done');
    is(counted('pulse.job'), $half, 'and nothing of the step in which it died');
};

subtest 'another client' => sub {
    my ($other, $held) = map { Pulse::Session->new($node) } 1 .. 2;
    my $last = $session->query('SELECT max(id) FROM pulse.finished_job');
    $held->query("BEGIN; SELECT id FROM pulse.finished_job WHERE id = $last FOR UPDATE");
    is(run_to_end($id, 1000), ($jobs - 1) . '|1', 'goes on to the end, and waits for no row');
    is(value($node, "SELECT skipped_because FROM pulse.operation WHERE id = $id"),
        '{ "another transaction holds it" : 1 }', 'and says why it left that one alone');
    $held->query('ROLLBACK');
    is(counted('pulse.job'), $jobs - 1, 'every other job is live once');
};

subtest 'undo' => sub {
    my $run = $jobs < 4000 ? $jobs / 4 : 1000;
    $session->query("SELECT count(*) FROM pulse.claim($worker, $run)");
    $session->query(q{SELECT count(*) FROM pulse.complete_many(
        (SELECT array_agg(id) FROM pulse.job WHERE state = 'running'),
        (SELECT array_agg(token) FROM pulse.job WHERE state = 'running'))});
    my $undo = $session->query("SELECT id FROM pulse.undo_operation($id, 'bob')");
    my $held = Pulse::Session->new($node);
    my $last = $session->query('SELECT max(id) FROM pulse.job');
    $held->query("BEGIN; SELECT id FROM pulse.job WHERE id = $last FOR UPDATE");
    is(run_to_end($undo, 1000), ($jobs - 2 - $run) . '|' . ($run + 1),
        'brings back all that had not run, and waits for no row');
    $held->query('ROLLBACK');
    is($session->query("SELECT skipped_because->>'it has moved since',
            skipped_because->>'another transaction holds it'
        FROM pulse.operation WHERE id = $undo"),
        "$run|1", 'it counts why it left others alone');
    is($session->query("SELECT undo FROM pulse.operation_job
            WHERE operation_id = $id AND job_id = $last"),
        'another transaction holds it', 'and notes why of each');
    is($session->query('SELECT count(*) FROM pulse.permanently_fail_jobs(ARRAY[' . $last
              . "], 'broken')"), 1, 'one is left to run');
    is($session->query(q{SELECT count(*), min(last_error), max(last_error), count(DISTINCT state)
        FROM pulse.finished_job}), ($jobs - $run) . '|broken|broken|1', 'as they had ended');
};

expect_healthy($node);
done_testing();
