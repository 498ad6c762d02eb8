# P5 and P11: a lock on a table holds up no recovery that does not need the table. Each table of
# both schemas is locked in turn, as by CREATE INDEX and by ALTER TABLE. Where recovery needs the
# table its sweeps return at once, doctor() names the lock, and the next sweep after it recovers.
use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my %needed = map { $_ => { SHARE => 1, 'ACCESS EXCLUSIVE' => 1 } }
  map { "pulse.$_" } qw(job heartbeat attempt finished_job claim_batch clock worker);
$needed{'pulse.task'} = { 'ACCESS EXCLUSIVE' => 1 };

my $node = new_server('main', settings => { %PATIENT, 'pulse.databases' => 'postgres',
        'pulse.poll_interval' => '50ms' });
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_pulse');
$node->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/);
value($node, q{SELECT pulse.set_task('work', backoff => 'none'),
                      pulse.set_queue('ledger', strict => true, on_dead => 'pause'),
                      pulse.set_queue('api', rate => 1000)});
my @tables = split /\n/, value($node, q{
    SELECT c.oid::regclass FROM pg_class AS c
     WHERE c.relnamespace IN ('pulse'::regnamespace, 'pulse_internal'::regnamespace)
       AND c.relkind IN ('r', 'p') ORDER BY 1::text});
cmp_ok(scalar @tables, '>=', 20, 'every table is found');

my %grid;

# Cancels a call that waits for this session, or for somebody who waits for this session.
my $cancel_waiter = q{
    WITH RECURSIVE ahead (pid) AS (
        SELECT unnest(pg_blocking_pids(%1$d))
        UNION SELECT unnest(pg_blocking_pids(a.pid)) FROM ahead AS a)
    SELECT pg_cancel_backend(%1$d) FROM ahead AS a WHERE a.pid = pg_backend_pid()};

# What a call answers beside the session that holds the lock, which sees who waits.
sub try_beside {
    my ($holder, $session, $query) = @_;
    $session->ask($query);
    $holder->query(sprintf $cancel_waiter, $session->backend_pid) until $session->has_answered;
    return $session->answer;
}

# yes, or waits: whether a call needs the locked table.
sub probe {
    my ($holder, $session, $query) = @_;
    try_beside($holder, $session, $query);
    my ($refusal) = $session->said =~ /(?:ERROR|FATAL):  (\w{5}):/;
    return !$refusal ? 'yes' : $refusal eq '57014' ? 'waits' : $refusal;
}

# The answer of a call that needs no locked table.
sub answer_beside {
    my ($holder, $session, $query) = @_;
    my $answer = try_beside($holder, $session, $query);
    croak "$query: " . $session->said if $session->said =~ /ERROR|FATAL/;
    return $answer;
}

# A session that holds a lock, and sees what others commit.
sub hold {
    my ($holder, $table, $mode) = @_;
    $holder->query("BEGIN; LOCK TABLE $table IN $mode MODE");
    return;
}

my $holder = Pulse::Session->new($node);
my $operator = Pulse::Session->new($node);
$operator->query('SELECT count(*) FROM pulse.doctor()');

# One worker lives and one dies while the table is locked.
sub try_lock {
    my ($table, $mode) = @_;
    my $needs = $needed{$table}{$mode};
    my $pid = $holder->backend_pid;
    my $lost = Pulse::SqlWorker->new($node, 'lost');
    my $alive = Pulse::SqlWorker->new($node, 'alive');
    my $first = add_job($node, 'work', q{job_key => 'first'});
    $lost->must_claim;
    add_job($node, 'work', q{job_key => 'other'});
    my $claimed = $alive->must_claim;
    my $new = Pulse::Session->new($node);
    my $cell = $grid{$table}{$mode} = {};
    hold($holder, $table, $mode);
    $lost->kill;
    if ($needs) {
        wait_until($node, qq{SELECT EXISTS (SELECT FROM pulse.doctor() AS d
            WHERE d.finding = 'locked table' AND d.severity = 'error'
              AND d.detail LIKE 'Process $pid %' AND d.detail LIKE '%on $table.%')},
            "doctor names $table");
        $cell->{recovery} = 'waits';
        wait_until($node, 'SELECT jobs_skipped_locked = 1 FROM pulse.sweep()',
            'a sweep counts the job that it leaves') if $mode eq 'SHARE';
        if ($table ne 'pulse.job' || $mode eq 'SHARE') {
            like(answer_beside($holder, $operator, "SELECT detail FROM pulse.explain_job($first)
                  WHERE blocker = 'locked'"), qr/Process $pid .* on $table,/,
                "explain_job names $table in $mode mode");
        }
        is(probe($holder, $operator, 'SELECT pulse.sweep()'), 'yes', "a sweep waits for no $table");
    } else {
        wait_until($node, "SELECT state <> 'running' FROM pulse.job WHERE id = $first",
            "$table in $mode mode: the job of a dead worker is recovered");
        $cell->{recovery} = 'yes';
    }
    is(probe($holder, $new, 'SELECT count(*) FROM pulse.doctor()'), 'yes',
        "doctor() waits for no $table")
      if $mode eq 'ACCESS EXCLUSIVE';
    # By a session that has no plans yet, of jobs whose queues no sweep has promoted.
    probe($holder, $operator, "SELECT pulse.add_job('work', queue_name => q)
        FROM unnest('{line,api,NULL,NULL,NULL}'::text[]) AS q");
    $cell->{claim} = probe($holder, $new, 'SELECT pulse.claim(' . $alive->id . ', 5)');
    $cell->{beat} = probe($holder, $new, 'SELECT pulse.heartbeat(' . $alive->id . ')');
    $cell->{end} = probe($holder, $new, "SELECT pulse.complete($claimed->{id}, $claimed->{token})");
    $new->quit;
    $holder->query('COMMIT');
    wait_until($node, qq{SELECT count(*) = 0 FROM pulse.job WHERE id = $first
        AND state = 'running' AND worker_id = @{[ $lost->id ]}}, 'recovered after the lock');
    value($node, 'SELECT pulse.sweep()');
    is(value($node, "SELECT count(*) FROM pulse.job WHERE id = $first AND key_is_undecided"), 0,
        'a sweep has decided about its key');
    $alive->quit;
    value($node, 'SELECT pulse.declare_lost(' . $alive->id . q{, 'left');
        DELETE FROM pulse.job; DELETE FROM pulse.claim_batch});
    return;
}

for my $table (@tables) {
    try_lock($table, $_) for 'SHARE', 'ACCESS EXCLUSIVE';
}
my @columns = qw(recovery claim beat end);
note sprintf '%-32s %-17s %-9s %-9s %-9s %-9s', 'table', 'lock', @columns;
for my $table (@tables) {
    for my $mode ('SHARE', 'ACCESS EXCLUSIVE') {
        note sprintf '%-32s %-17s %-9s %-9s %-9s %-9s', $table, $mode,
          @{ $grid{$table}{$mode} }{@columns};
    }
}

# The end of a job may pause its strict queue, so it needs the tables of queues and pauses. Where
# one is locked that job alone is left.
subtest 'a job whose end may pause its queue waits for that, and no other job does' => sub {
    for (['pulse.queue', 'ACCESS EXCLUSIVE'], ['pulse.queue_pause', 'SHARE'],
        ['pulse.queue_pause', 'ACCESS EXCLUSIVE']) {
        my ($table, $mode) = @$_;
        my $lost = Pulse::SqlWorker->new($node, 'lost');
        my $strict = value($node, q{SELECT id FROM pulse.add_job('work', queue_name => 'ledger',
            max_attempts => 1)});
        my $loose = add_job($node, 'work', q{queue_name => 'loose', max_attempts => 1});
        my ($plain) = add_jobs($node, 'work', 1);
        my @claimed = $lost->claim(3);
        is(scalar @claimed, 3, "given three jobs, and then $table in $mode mode");
        hold($holder, $table, $mode);
        $lost->kill;
        wait_until($node, "SELECT state = 'ready' FROM pulse.job WHERE id = $plain",
            'the other job is recovered');
        my $left = $table eq 'pulse.queue' ? 2 : 1;  # which queue is strict cannot be read
        is(answer_beside($holder, $operator, 'SELECT jobs_skipped_locked FROM pulse.sweep()'),
            $left, 'a sweep counts the job of the strict queue');
        is(finished($node, $loose) eq '', $left == 2,
            'whether a queue is strict decides where that can be read');
        like(answer_beside($holder, $operator, "SELECT detail FROM pulse.explain_job($strict)
              WHERE blocker = 'locked'"), qr/Process @{[ $holder->backend_pid ]} .* on $table,/,
            'and explain_job names the lock') if $mode eq 'SHARE';
        $holder->query('COMMIT');
        value($node, 'SELECT pulse.sweep()');
        like(finished($node, $strict), qr/\Afailed/, 'the next sweep ends it');
        is(value($node, 'SELECT job_id FROM pulse.queue_pause WHERE is_paused'), $strict,
            'which pauses the queue');
        value($node, q{SELECT pulse.resume_queue('ledger'); DELETE FROM pulse.job});
    }
};

# REINDEX leaves readers the table, and locks its indexes against them.
subtest 'an index that recovery reads may be locked alone' => sub {
    $holder->query('BEGIN; REINDEX TABLE pulse.task');
    is(probe($holder, $operator, 'SELECT pulse.sweep()'), 'yes', 'a sweep waits for no index');
    like(answer_beside($holder, $operator, 'SELECT detail FROM pulse.doctor()'),
        qr/ on pulse\.task_pkey\. /, 'doctor() names it');
    $holder->query('COMMIT');
};

expect_healthy($node);
$node->stop;

# --- sweeps that have something to do in each step -----------------------------------------------

my $busy = start_server('busy', settings => { %PATIENT, 'pulse.keep_failed' => '1s',
        'pulse.keep_attempts' => '1s' });
value($busy, q{SELECT pulse.set_task('work', backoff => 'none'),
    pulse.set_queue('api', concurrency => 100, rate => 60000, per => '1 min'),
    pulse.set_queue('turns', fair => true, total => 1),
    pulse.set_queue('ledger', strict => true, on_dead => 'pause'),
    pulse.schedule('each minute', 'work', '* * * * *')});
my $blocker = Pulse::Session->new($busy);
my $old = Pulse::Session->new($busy);
my $minute = 0;

# Something for each step: an expired job, a queue with a rate, a turn, a parent that has ended, a
# worker that has returned, a due schedule, a minute that is over, and rows past their retention.
sub give_work {
    my ($session) = @_;
    $session->query(q{
        DELETE FROM pulse.job; DELETE FROM pulse.claim_batch; DELETE FROM pulse.dependency;
        SELECT pulse.add_job('work');
        SELECT id AS operation FROM pulse.start_operation('cancel', '{"task": "work"}') \gset
        SELECT pulse.run_operation(:operation);
        SELECT pulse.add_job('work', max_attempts => 1);
        SELECT id AS worker FROM pulse.register_worker('returned') \gset
        SELECT pulse.claim(:worker);
        SELECT pulse.declare_lost(:worker, 'gone');
        SELECT pulse.heartbeat(:worker);
        SELECT pulse.add_job('work', queue_name => q) FROM unnest('{ledger,NULL}'::text[]) AS q;
        UPDATE pulse.job SET start_by = now() - interval '1 s';
        SELECT pulse.add_job('work', queue_name => 'api') FROM generate_series(1, 3);
        SELECT pulse.add_job('work', queue_name => 'turns/' || n) FROM generate_series(1, 3) AS n;
        SELECT id AS parent FROM pulse.add_job('work', queue_name => 'api') \gset
        SELECT pulse.add_job_after(ARRAY[:parent]::bigint[], 'work');
        SELECT pulse.cancel_job(:parent);
        SELECT * FROM pulse.add_flow('[{"key": "a", "identifier": "work"},
            {"key": "b", "identifier": "work", "after": ["a"]}]')});
    return;
}

for my $table (@tables) {
    for my $mode ('SHARE', 'ACCESS EXCLUSIVE') {
        give_work($old);
        my $new = Pulse::Session->new($busy);
        hold($blocker, $table, $mode);
        for my $session ($old, $new) {
            $minute++;
            is(probe($blocker, $session, "SET pulse.clock_offset = '$minute min';
                SELECT pulse.sweep(); SELECT pulse.tick()"), 'yes',
                "no step waits for $table in $mode mode");
        }
        $blocker->query('COMMIT');
        $new->quit;
        $old->query('RESET pulse.clock_offset');
    }
}
# Rates go by the clock that was moved. Without dependencies no record explains the end of its job,
# and nothing was pruned while the last table was locked.
value($busy, 'DELETE FROM pulse.job; DELETE FROM pulse.dependency; DELETE FROM pulse.queue_rate;
    DELETE FROM pulse.finished_job');
expect_healthy($busy);
done_testing();
