# verify() is silent on a healthy, busy system: workers claim, complete, fail, hold claims open,
# roll back and prepare transactions, while an operator changes queues and sweeps run.
# PULSE_VERIFY_CALLS says how often it is asked.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;

my ($calls, $queues, $workers) = ($ENV{PULSE_VERIFY_CALLS} // 200, 30, 3);
my $node = start_server('main', settings => {
    %QUICK,
    'pulse.heartbeat_interval' => '5s',
    'pulse.sweep_threshold' => '1h',
    'pulse.sweep_interval' => '500ms',
    'pulse.backoff_base' => '50ms',
    # verify() reads every row: ten thousand calls do not wait for ever longer ones.
    map { ("pulse.keep_$_" => '20s') } qw(completed failed attempts),
});
allow_loops($node);

# Every tenth claim stays open for a while, every seventeenth is undone, every fifth job fails.
sub work {
    my ($id) = @_;
    return loop('ids bigint[]; tokens bigint[];', qq{
    SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(token), '{}') INTO ids, tokens
      FROM pulse.claim($id, 3);
    IF turn % 10 = 0 THEN
      PERFORM linger(100);
    END IF;
    IF turn % 17 = 0 THEN
      ROLLBACK;
      CONTINUE;
    END IF;
    COMMIT;
    IF turn % 5 = 0 THEN
      PERFORM pulse.fail(id, token, 'boom') FROM unnest(ids, tokens) AS a (id, token);
    ELSE
      CALL end_all('complete_many', ids, tokens);
    END IF;});
}

my $add = loop('', qq{
    PERFORM pulse.add_job('work', queue_name => 'q' || floor(random() * $queues),
      priority => floor(random() * 3)::int)
      FROM generate_series(1, 200 - (SELECT count(*) FROM pulse.job)::int);
    COMMIT;
    PERFORM linger(2);});
my $steer = loop('', qq{
    PERFORM pulse.set_queue('q' || floor(random() * $queues), 1 + floor(random() * 4)::int,
      random() < 0.1);
    COMMIT;
    PERFORM linger(5);});
my $sweep = loop('', 'PERFORM pulse.tick(); COMMIT; PERFORM linger(50);');

my @workers = map { Pulse::SqlWorker->new($node, "worker $_") } 1 .. $workers;
$_->ask(work($_->id)) for @workers;
my @sessions = map { Pulse::Session->new($node) } 1 .. 3;
$sessions[0]->ask($add);
$sessions[1]->ask($steer);
$sessions[2]->ask($sweep);

# COMMIT PREPARED sets no mark: the next sweep finds the place that this worker's jobs free.
my $preparer = Pulse::SqlWorker->new($node, 'preparer');
my $prepared = 0;
sub complete_in_two_phases {
    my $claimed = value($node, 'SELECT array_agg(id), array_agg(token) FROM pulse.claim('
          . $preparer->id . ', 1)');
    my ($ids, $tokens) = split /\|/, $claimed;
    return if !$ids;
    value($node, "BEGIN; SELECT count(*) FROM pulse.complete_many('$ids', '$tokens');
        PREPARE TRANSACTION 'p'");
    value($node, "COMMIT PREPARED 'p'");
    $prepared++;
    return;
}

my $checks = join ";\n", ('SELECT * FROM pulse.verify()') x 20;
my $alarms = '';
for (1 .. $calls / 20) {
    complete_in_two_phases();
    # A loop is one statement and reports nothing until its end, so autovacuum never comes.
    value($node, 'VACUUM (ANALYZE) pulse.job, pulse.finished_job, pulse.attempt');
    $alarms .= value($node, $checks);
}
is($alarms, '', "verify() was silent $calls times");
cmp_ok($prepared, '>', 0, "$prepared jobs ended in two phases");

end_loops($node);
for (@workers, @sessions) {
    $_->answer;
    unlike($_->said, qr/ERROR|FATAL/, 'no session failed');
    $_->quit;
}
$preparer->quit;
cmp_ok(value($node, 'SELECT count(*) FROM pulse.finished_job'), '>', 100, 'many jobs ran');

# A job parked by hand has no mark before the next sweep, for which verify() waits.
value($node, 'DELETE FROM pulse.job');

sub parked_by_hand {
    my $job = add_job($node, 'work', q{queue_name => 'lost'});
    value($node, "UPDATE pulse.job SET run_at = now() - interval '1 hour',
        updated_at = now() - interval '1 hour' WHERE id = $job");
    value($node, 'SELECT pulse_internal.promote_marked(256)');
    value($node, "UPDATE pulse.job SET state = 'parked' WHERE id = $job");
    return $job;
}

value($node, 'SELECT pulse.sweep()');
my $seen = parked_by_hand();
my $observer = Pulse::Session->new($node);
# It looks for two sweep intervals: for longer than a busy machine takes for the sweep.
$observer->query(q{SET pulse.sweep_interval = '30s'});
$observer->ask('SELECT count(*) FROM pulse.verify()');
wait_until($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'},
    'verify() looks again');
value($node, 'SELECT pulse.sweep()');
is($observer->answer, 0, 'and is silent after the sweep');
$observer->quit;
value($node, "DELETE FROM pulse.job WHERE id = $seen");

# Without a sweep the job is found.
my $stranded = parked_by_hand();
like(value($node, 'SELECT * FROM pulse.verify()'), qr/P8\|$stranded\|stranded behind queue 'lost'/,
    'a stranded job is found');
value($node, "DELETE FROM pulse.job WHERE id = $stranded");
expect_healthy($node);
done_testing();
