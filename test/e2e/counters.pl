# What became of attempts per task and per queue is counted when transactions commit, goes on after
# a kill -9 of the server, and neither its memory nor its tables grow with the number of names.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;

use constant NAMES => 20_000;

my $node = start_server('main', settings => { %PATIENT, 'pulse.keep_completed' => '0' });
my $worker = Pulse::SqlWorker->new($node, 'ann');

# The counts of a task or queue: started, completed, failed, retried, quarantined, cancelled,
# returned.
sub counts {
    my ($view, $name, $period) = @_;
    my $column = $view eq 'task_rates' ? 'identifier' : 'queue_name';
    return value($node, "SELECT concat_ws(' ', started, completed, failed, retried, quarantined,
        cancelled, returned) FROM pulse.$view
        WHERE $column = '$name' AND period = '$period'");
}

# What a sweep of another session does when the present minute is over. It waits for none.
sub sweep_later {
    my ($arguments, $later) = @_;
    $arguments //= '';
    $later //= '61s';
    value($node, "SET statement_timeout = '20s'; SET pulse.clock_offset = '$later';
        SELECT workers_lost FROM pulse.sweep($arguments)");
    return;
}

subtest 'each end of an attempt is counted as what it was' => sub {
    add_jobs($node, 'mail', 8, 'post');
    value($node, q{SELECT pulse.set_queue('post', 8)});
    value($node, q{SELECT pulse.set_task('mail', backoff_base => '1 h')});
    value($node, q{UPDATE pulse.job SET max_attempts = 1 WHERE id % 2 = 0});
    my @jobs = $worker->claim(8);
    is(scalar @jobs, 8, 'eight start');
    my %call = (
        complete => 'pulse.complete(%s, %s)',
        fail => q{pulse.fail(%s, %s, 'broken')},
        snooze => q{pulse.snooze(%s, %s, '1 h')},
        release => 'pulse.release(array_agg(%s::bigint), array_agg(%s::bigint))');
    my $end = sub {
        my ($what, $job) = @_;
        return $worker->query('SELECT ' . sprintf $call{$what}, $job->{id}, $job->{token});
    };
    my ($last, $more) = map { my $rest = $_; [ grep { $_->{id} % 2 == $rest } @jobs ] } 0, 1;
    $worker->query('BEGIN');
    $end->(complete => $last->[0]);
    $worker->query('ROLLBACK');
    is(counts('task_rates', 'mail', 'minute'), '8 0 0 0 0 0 0', 'what is rolled back is not');
    $worker->query('BEGIN');
    $end->(complete => $last->[0]);
    $worker->query('SAVEPOINT s');
    $end->(complete => $last->[1]);
    $end->(fail => $more->[0]);
    $worker->query('ROLLBACK TO s');
    $worker->query('SAVEPOINT t');
    $end->(fail => $last->[1]);
    $worker->query('RELEASE t');
    is(counts('task_rates', 'mail', 'minute'), '8 0 0 0 0 0 0', 'nor what may be yet');
    $worker->query('COMMIT');
    is(counts('task_rates', 'mail', 'minute'),
        '8 1 1 0 0 0 0', 'nor what a savepoint took back; the rest is');
    $end->(fail => $more->[0]);
    $end->(snooze => $more->[1]);
    $worker->complete(@$more[2, 3]);
    $worker->query("SELECT pulse.cancel_job($last->[2]{id})");
    $end->(fail => $last->[2]);
    $worker->query(
        "BEGIN; SELECT pulse.complete($last->[3]{id}, $last->[3]{token}); PREPARE TRANSACTION 'p'");
    $worker->query(q{COMMIT PREPARED 'p'});
    is(counts($_, $_ eq 'task_rates' ? 'mail' : 'post', 'minute'),
        '8 3 1 1 0 1 1', "$_: as it was, and nothing of a prepared transaction")
      for qw(task_rates queue_rates);
    is(value($node, 'SELECT completed FROM pulse.overview'), 3, 'the overview knows, too');
};

subtest 'waits and runs are measured' => sub {
    value($node, q{SELECT pulse.add_job('late', run_at => now() - interval '100 s')});
    my ($job) = $worker->claim;
    value($node, qq{UPDATE pulse.job SET claimed_at = claimed_at - interval '10 s'
        WHERE id = $job->{id}});
    $worker->complete($job);
    is( value($node, q{SELECT wait_p50 BETWEEN interval '87 s' AND interval '140 s',
        run_p50 BETWEEN interval '8.7 s' AND interval '14 s' FROM pulse.task_rates
        WHERE identifier = 'late' AND period = 'minute'}), 't|t', 'within an eighth');
};

subtest 'counting can be switched off' => sub {
    $worker->query('SET pulse.enable_counters = off');
    add_jobs($node, 'quiet', 1);
    $worker->complete($worker->must_claim);
    $worker->query('RESET pulse.enable_counters');
    is(counts('task_rates', 'quiet', 'minute'), '', 'neither a start nor an end is counted');
};

subtest 'a sweep writes each minute once' => sub {
    my $write = sub { return value($node, 'SELECT count(*), sum(completed) FROM pulse.counter') };
    $worker->query(q{SET pulse.clock_offset = '61s'});
    $worker->query('BEGIN');
    $worker->query('SELECT workers_lost FROM pulse.sweep()');
    sweep_later();
    is($write->(), '0|', 'another session that does it is not waited for');
    $worker->query('ROLLBACK');
    $worker->query('RESET pulse.clock_offset');
    sweep_later('dry_run => true');
    is($write->(), '0|', 'what is undone is not written');
    sweep_later();
    my $once = $write->();
    isnt($once, '0|', 'a minute that is over');
    sweep_later();
    is($write->(), $once, 'is not written again');
    sweep_later('', '121s');
    is($write->(), $once, 'nor with the next one');
    is(counts('task_rates', 'mail', 'hour'), '8 3 1 1 0 1 1', 'and is counted once');
    is(counts('task_rates', 'mail', 'day'), '8 3 1 1 0 1 1', 'for the day, too');
};

subtest 'after a crash they go on' => sub {
    # A sweep commits asynchronously, and is written with the next commit that is not.
    $node->safe_psql('postgres', 'CREATE TABLE written ()');
    kill_server($node);
    $node->start;
    is(counts('task_rates', 'mail', 'minute'), '', 'memory is lost');
    is(counts('task_rates', 'mail', 'hour'), '8 3 1 1 0 1 1', 'what was written is not');
    $worker = Pulse::SqlWorker->new($node, 'bob');
    add_jobs($node, 'busy', 2);
    $worker->complete($worker->claim(2));
    is(counts('task_rates', 'busy', 'minute'), '2 2 0 0 0 0 0', 'and new ones are added');
};

subtest 'names without end share a counter' => sub {
    my $claim_all = sub {
        my $ended = 0;
        while (my @jobs = $worker->claim(5_000)) {
            $worker->complete(@jobs);
            $ended += @jobs;
        }
        return $ended;
    };
    value($node, 'SELECT count(*) FROM pulse.add_jobs(ARRAY(SELECT (' . q{'made up ' || n, NULL,
        'queue ' || n, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
        FROM generate_series(1, } . NAMES . ') AS n))');
    is($claim_all->(), NAMES, 'all jobs run');
    for my $view (qw(task_rates queue_rates)) {
        my $name = $view eq 'task_rates' ? 'identifier' : 'queue_name';
        is( value($node, qq{SELECT sum(completed) FROM pulse.$view WHERE period = 'minute'
            AND ($name IS NULL OR $name ~ 'made up|queue')}), NAMES, "$view: none is lost");
        cmp_ok(value($node, "SELECT count(DISTINCT $name) FROM pulse.$view"),
            '<', 300, 'few have a row');
    }
    add_jobs($node, 'busy', 3);
    $claim_all->();
    is(counts('task_rates', 'busy', 'minute'), '5 5 0 0 0 0 0', 'a busy task keeps its counter');
    # Two minutes later all are idle, also that of a transaction that has not committed.
    add_jobs($node, 'busy', 1);
    my $slow = Pulse::SqlWorker->new($node, 'cid');
    my $last = $slow->must_claim;
    $slow->query('BEGIN');
    $slow->complete($last);
    value($node, q{SELECT count(*) FROM pulse.add_jobs(ARRAY(
        SELECT ('thief ' || n, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
          FROM generate_series(1, 300) AS n))});
    $worker->query(q{SET pulse.clock_offset = '150s'});
    $claim_all->();
    $slow->query('COMMIT');
    # No view ends at the present: the last minute has what was counted later, and what the slow
    # transaction counts now.
    is( value($node, q{SELECT count(*) > 200, max(completed)
        FROM pulse.task_rates WHERE identifier ~ 'thief' AND period = 'minute'}),
        't|1', 'new ones get their counters, which count nothing else');
};

expect_healthy($node);
done_testing();
