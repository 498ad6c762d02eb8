# A hot standby: calls there are refused and change nothing. After its promotion no living worker is
# lost, claims go on, and tokens grow.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

# With these a worker is lost after eight seconds of silence.
my $primary = start_server('primary', streaming => 1,
    settings => { %QUICK, 'pulse.sweep_threshold' => '8s' });
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $worker = Pulse::SqlWorker->new($primary, 'living');
my ($id, $other) = add_jobs($primary, 'work', 2);
value($primary, q{SELECT pulse.set_queue('rated', rate => 10)});
add_job($primary, 'later', q{queue_name => 'rated', run_at => now() + interval '1 day'});
my $claim = $worker->must_claim;
$primary->wait_for_catchup($standby);

sub tables {
    my ($node) = @_;
    return value($node, q{SELECT (SELECT json_agg(j ORDER BY j.id) FROM pulse.job AS j),
        (SELECT json_agg(h) FROM pulse.heartbeat AS h),
        (SELECT json_agg(w) FROM pulse.worker AS w)});
}

my $before = tables($standby);

subtest 'calls on a standby are refused' => sub {
    my $session = Pulse::Session->new($standby);
    my $claimed = "$claim->{id}, $claim->{token}";
    my $array = "ARRAY[$claim->{id}], ARRAY[$claim->{token}]";
    my $worker_id = $worker->id;
    my @calls = (
        q{add_job('work')}, q{add_job('work', job_key => 'k')},
        q{add_jobs('{"(work,,,,,,,)"}')}, q{remove_job('k')},
        q{register_worker('w')}, "attach_worker($worker_id)", "deregister_worker($worker_id)",
        "claim($worker_id)", "claim_job($worker_id, $other)", "heartbeat($worker_id)",
        "declare_lost($worker_id, 'no reason')",
        "progress($claimed)", "complete($claimed)", "fail($claimed, 'no')",
        "snooze($claimed, '1 s')", "complete_many($array)", "fail_many($array, ARRAY['no'])",
        "release($array)", 'sweep()', 'sweep(dry_run => true)', "cancel_job($other)",
        q{set_task('work', max_attempts => 2)}, q{set_queue('q', 2)}, q{pause_queue('q')},
        "fence($claimed)", "check_host($worker_id)", 'adopt_installation()', 'set_shard(0)',
        "ended(ARRAY[$id])",
    );
    is($session->refusal("CALL pulse.wait_for_end(ARRAY[$id])"), '25006', 'wait_for_end()');
    is($session->refusal("SELECT * FROM pulse.$_"), '25006', $_) for @calls;
    is($session->query("SELECT state FROM pulse.get_job($id)"), 'running', 'reading works');
    is($session->query("SELECT count(*) FROM pulse.held($worker_id)"), 1, 'also what is held');
    is($session->query('SELECT * FROM pulse.verify()'), '', 'also verify()');
    is($session->query('SELECT tokens FROM pulse.queue_status'), '', 'tokens are not known');
    is($session->query('SELECT attached FROM pulse.worker_status'),
        't', 'a worker is attached as the primary wrote it');
    is($session->query('SELECT * FROM pulse.stale'), '', 'and its job not stale');
    is($session->query('SELECT ready, running, workers_alive FROM pulse.overview'),
        '1|1|1', 'overview() counts');
    is($session->query('SELECT string_agg(finding, $$ $$) FROM pulse.doctor()'),
        '', 'doctor() looks for nothing that a standby lacks');
    $session->quit;
    is(tables($standby), $before, 'nothing has changed');
};

# A pulse-worker that knows both servers, with a task that ticks every second.
my $tasks = Pulse::Tasks->new(
    tick => 'for tick in {1..11}; do read -r -t 1 _ <"$gates/none"; tell "tick_$tick"; done;
             : wait_at none',
    run => 'tell ran');
my $process = Pulse::Worker->start_registered($primary, 'process', tasks => $tasks,
    host => join(',', $primary->host, $standby->host),
    port => join(',', $primary->port, $standby->port));
my $ticking = add_job($primary, 'tick');
$tasks->wait_for('tick_1', job => $ticking);

subtest 'P6: after a promotion living workers go on' => sub {
    $worker->beat;
    $primary->wait_for_catchup($standby);
    $primary->stop('immediate');
    $worker->quit;
    # Longer than the threshold.
    $tasks->wait_for('tick_10', job => $ticking);
    $standby->promote;
    is(value($standby, 'SELECT workers_lost FROM pulse.sweep()'),
        0, 'the first sweep finds nobody lost');
    my $again = Pulse::Session->new($standby);
    my $worker_id = $worker->id;
    is($again->query("SELECT status FROM pulse.heartbeat($worker_id)"),
        'alive', 'the worker is alive');
    $again->query("SELECT pulse.complete($claim->{id}, $claim->{token})");
    is(finished($standby, $id), 'completed|1|0', 'its claim of before is accepted');

    my ($next, $token) = split /\|/, $again->query("SELECT id, token FROM pulse.claim($worker_id)");
    is($next, $other, 'it claims the next job');
    cmp_ok($token >> 40, '>', $claim->{token} >> 40, 'its token is of a later epoch');
    $again->query("SELECT pulse.complete($other, $token)");
    my $new = Pulse::SqlWorker->new($standby, 'new');
    cmp_ok($new->id >> 40, '>', $worker_id >> 40, 'as is the id of a new worker');
    $new->quit;
    $again->quit;
};

subtest 'P6: pulse-worker finds the promoted server, and its task goes on' => sub {
    $process->wait_for('completed', job => $ticking);
    is(finished($standby, $ticking), 'completed|1|0', 'the job completed in one attempt');
    my $next = add_job($standby, 'run');
    is($process->wait_for('completed', job => $next)->{worker},
        $process->id, 'it works as before');
    is_deeply([ $process->events('lost') ], [], 'and was never told that it is lost');
};

expect_healthy($standby);
done_testing();
