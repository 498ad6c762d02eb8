# P8: an urgent job starts before all others but those that a worker already holds, although jobs of
# queues and last attempts cannot wait in a worker, and plain jobs do.
# PULSE_JOBS says how many plain jobs wait.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $plain_jobs = $ENV{PULSE_JOBS} // 3000;
# A worker holds at most its slots and four jobs ahead of each.
use constant { SLOTS => 2, HELD => 10 };

my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '30s' });
my $tasks = Pulse::Tasks->new(run => 'tell ran');
$node->safe_psql('postgres', <<'SQL');
CREATE SCHEMA app;
CREATE FUNCTION app.work(payload json) RETURNS void LANGUAGE sql AS
  'SELECT count(*) FROM generate_series(1, 5000)';
SELECT pulse.set_task('work', handler => 'app.work(json)');
SQL
my %kinds = (
    'plain' => 'NULL, NULL, 3',
    'of one queue each' => q{format('q%s', n), NULL, 3},
    'on their last attempt' => 'NULL, NULL, 1',
);

sub add_plain_jobs {
    value($node, "SELECT count(*) FROM pulse.add_jobs(
        array_fill('(work,,,,,,10,)'::pulse.job_spec, '{$plain_jobs}'))");
    return;
}

# Plain jobs that were claimed after the urgent ones had been added and before the last of them.
sub count_overtakers {
    my ($added) = @_;
    return value($node, "SELECT count(*) FROM pulse.finished_job AS p
        WHERE p.priority = 10 AND p.claimed_at > '$added' AND p.claimed_at <
          (SELECT max(u.claimed_at) FROM pulse.finished_job AS u WHERE u.priority = -10)");
}

sub check_urgent {
    my ($kind, $count, @workers) = @_;
    $node->safe_psql('postgres', 'TRUNCATE pulse.finished_job');
    add_plain_jobs();
    wait_until($node, 'SELECT count(*) >= 100 FROM pulse.finished_job', 'the workers are at it');
    value($node, "SELECT count(*) FROM pulse.add_jobs(ARRAY(
        SELECT ROW('work', NULL, $kinds{$kind}, NULL, -10, NULL)::pulse.job_spec
          FROM generate_series(1, $count) AS n))");
    my $added = value($node, 'SELECT clock_timestamp()');
    wait_until($node, "SELECT count(*) = $count FROM pulse.finished_job WHERE priority = -10",
        "$count urgent jobs $kind have run");
    my $left = value($node, 'SELECT count(*) FROM pulse.job');
    cmp_ok(count_overtakers($added), '<=', HELD * @workers,
        "$count urgent jobs $kind overtake what " . @workers . ' workers do not hold');
    cmp_ok($left, '>', 0, 'while plain jobs were left');
    value($node, 'SELECT pulse.cancel_job(j.id) FROM pulse.job AS j');
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'the rest is gone');
    return;
}

my @workers;
for my $fleet (1, 3) {
    push @workers, Pulse::Worker->start_registered($node, 'worker-' . @workers,
        tasks => $tasks, concurrency => SLOTS) while @workers < $fleet;
    for my $kind (sort keys %kinds) { check_urgent($kind, $_, @workers) for 1, 10, 100 }
}
$_->signal('TERM') for @workers;
is($_->wait_exit, 0, $_->name . ' leaves') for @workers;
expect_healthy($node);
done_testing();
