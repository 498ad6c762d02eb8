# P8: an urgent job starts before all others but those that a worker already holds, although jobs of
# queues, last attempts and poison suspects cannot wait in a worker, and plain jobs do.
# A suspect waits for an idle worker (P7), at most for pulse.sweep_threshold; the next worker that
# claims then is kept free for it, while the others go on. So the suspects here have waited that
# long, and overtake what their own worker does not hold.
# PULSE_JOBS says how many plain jobs wait. With PULSE_LONG there are 25,000, and each urgent job
# must have started within a second, but for suspects: they run one after another.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

my $plain_jobs = $ENV{PULSE_JOBS} // ($ENV{PULSE_LONG} ? 25_000 : 3000);
# A worker holds at most its slots and four jobs ahead of each. So many plain jobs pass the gate.
use constant { SLOTS => 2, HELD => 10, FREE => 100 };

my $node = start_server('main', settings => {
    %QUICK,
    'pulse.sweep_threshold' => '30s',
    track_commit_timestamp => 'on' });
my $tasks = Pulse::Tasks->new(run => 'tell ran');
$node->safe_psql('postgres', <<'SQL');
CREATE SCHEMA app;
CREATE FUNCTION app.work(payload json) RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock_shared(1) WHERE payload::text = '"gated"';
  SELECT count(*) FROM generate_series(1, 5000) $$;
SELECT pulse.set_task('work', handler => 'app.work(json)');
SQL
# While this session has the lock, gated jobs wait for it.
my $gate = Pulse::Session->new($node);
my $suspects = 'that are suspects';
# The queue, the time and the attempts of a job.
my %kinds = (
    'plain' => 'NULL, NULL, 3',
    'of one queue each' => q{format('q%s', n), NULL, 3},
    'on their last attempt' => 'NULL, NULL, 1',
    $suspects => q{NULL, pulse.now() - current_setting('pulse.sweep_threshold')::interval, 25},
);

sub add_plain_jobs {
    my $gated = $plain_jobs - FREE;
    value($node, qq{SELECT count(*) FROM pulse.add_jobs(
        array_fill('(work,,,,,,10,)'::pulse.job_spec, '{@{[FREE]}}')
        || array_fill('(work,"""gated""",,,,,10,)'::pulse.job_spec, '{$gated}'))});
    return;
}

# The workers have run what passes the gate, and each of their slots waits there.
sub wait_until_all_wait {
    my (@workers) = @_;
    wait_until($node, sprintf(q{SELECT count(*) = %d FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND NOT granted}, SLOTS * @workers),
        'each slot waits at the gate');
    return;
}

# Returns the time of their commit.
sub add_urgent_jobs {
    my ($kind, $count) = @_;
    my $urgent = "SELECT ROW('work', NULL, $kinds{$kind}, NULL, -10, NULL)::pulse.job_spec
        FROM generate_series(1, $count) AS n";
    # One more crash would quarantine them.
    my $mark_suspects = $kind ne $suspects ? '' : q{
        UPDATE pulse.job SET crashes = current_setting('pulse.max_crashes')::int - 1
         WHERE priority = -10;};
    my $transaction = (split /\n/, value($node, "BEGIN;
        SELECT count(*) FROM pulse.add_jobs(ARRAY($urgent));
        $mark_suspects
        SELECT pg_current_xact_id();
        COMMIT"))[-1];
    return value($node, "SELECT pg_xact_commit_timestamp('$transaction'::xid)");
}

# Plain jobs that were claimed after the urgent ones had been added and before the last of them; in
# the case of suspects, before the last of the same worker.
sub count_overtakers {
    my ($kind, $added) = @_;
    my $same_worker = $kind eq $suspects ? 'u.worker_id = p.worker_id' : 'true';
    return value($node, "SELECT count(*) FROM pulse.finished_job AS p
        WHERE p.priority = 10 AND p.claimed_at > '$added' AND p.claimed_at <
          (SELECT max(u.claimed_at) FROM pulse.finished_job AS u
            WHERE u.priority = -10 AND $same_worker)");
}

# Plain jobs that were claimed after all urgent ones, or not yet. Beside suspects, which run alone,
# other workers may have run all.
sub count_later {
    return value($node, q{SELECT count(*) FROM (
        SELECT j.priority, 'infinity' AS claimed_at FROM pulse.job AS j
        UNION ALL SELECT f.priority, f.claimed_at FROM pulse.finished_job AS f) AS p
        WHERE p.priority = 10 AND p.claimed_at >
          (SELECT max(u.claimed_at) FROM pulse.finished_job AS u WHERE u.priority = -10)});
}

sub check_urgent {
    my ($kind, $count, @workers) = @_;
    $node->safe_psql('postgres', 'TRUNCATE pulse.finished_job');
    $gate->query('SELECT pg_advisory_lock(1)');
    add_plain_jobs();
    wait_until_all_wait(@workers);
    my $added = add_urgent_jobs($kind, $count);
    my $opened = $gate->query('SELECT clock_timestamp() FROM pg_advisory_unlock(1)');
    wait_until($node, "SELECT count(*) = $count FROM pulse.finished_job WHERE priority = -10",
        "$count urgent jobs $kind have run");
    my $overtakers = count_overtakers($kind, $added);
    cmp_ok($overtakers, '<=', HELD * @workers,
        "$count urgent jobs $kind overtake what " . @workers . ' workers do not hold');
    # Each has started when it has finished.
    my $seconds = value($node, "SELECT extract(epoch FROM max(finished_at) - '$opened')
        FROM pulse.finished_job WHERE priority = -10");
    cmp_ok($seconds, '<=', 1, 'and start within a second')
      if $ENV{PULSE_LONG} && ($kind ne $suspects || $count == 1);
    note sprintf '%d %s, %d workers: %d overtakers, the last ends after %.3f s', $count, $kind,
      scalar @workers, $overtakers, $seconds;
    cmp_ok(count_later(), '>', 0, 'while plain jobs were left') if $kind ne $suspects;
    value($node, 'SELECT pulse.cancel_job(j.id) FROM pulse.job AS j');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'the rest is gone');
    return;
}

my @workers;
for my $fleet (1, 3) {
    push @workers, Pulse::Worker->start_registered($node, 'worker-' . @workers,
        tasks => $tasks, concurrency => SLOTS) while @workers < $fleet;
    for my $kind (sort keys %kinds) {
        check_urgent($kind, $_, @workers) for 1, ($ENV{PULSE_LONG} ? 10 : ()), 100;
    }
}
$_->signal('TERM') for @workers;
is($_->wait_exit, 0, $_->name . ' leaves') for @workers;
expect_healthy($node);
done_testing();
