# Transactions with many job keys: those with other keys never wait for them, they fill no lock
# table, and the jobs of a worker that dies beside them are recovered, also under their own keys.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my $keys = $ENV{PULSE_KEYS} // 600;
my $rounds = $ENV{PULSE_ROUNDS} // 2;
my $sessions = $ENV{PULSE_SESSIONS} // 20;
use constant HELD => 20;

# The default size of the lock table. A wait for a lock that lasts longer than this is in the log.
my $node = start_server('main', settings => {
    %QUICK,
    max_connections => 100,
    deadlock_timeout => '50ms',
    log_lock_waits => 'on',
    'pulse.databases' => 'postgres',
});

sub singly {
    my ($prefix, $count) = @_;
    return "DO \$\$ BEGIN FOR i IN 1..$count LOOP
        PERFORM pulse.add_job('work', job_key => '$prefix-' || i); END LOOP; END \$\$";
}

sub in_bulk {
    my ($prefix, $count) = @_;
    return "SELECT count(*) FROM pulse.add_jobs(ARRAY(SELECT
        ROW('work', NULL, NULL, NULL, NULL, '$prefix-' || i, NULL, NULL)::pulse.job_spec
          FROM generate_series(1, $count) AS i))";
}

my @with_keys;

# One that adds under keys.
sub new_session {
    push @with_keys, Pulse::Session->new($node);
    return $with_keys[-1];
}

subtest 'two transactions with keys of their own' => sub {
    my @both = map { new_session() } 1 .. 2;
    for my $round (1 .. $rounds) {
        $_->query('BEGIN') for @both;
        $both[$_]->ask(singly("single-$round-$_", $keys)) for 0 .. 1;
        $_->answer for @both;
        $both[$_]->ask(in_bulk("bulk-$round-$_", $keys)) for 0 .. 1;
        $_->answer for @both;
        $_->query('COMMIT') for @both;
    }
    is(value($node, 'SELECT count(*) FROM pulse.job'), 4 * $keys * $rounds, 'both commit all');
    $_->quit for @both;
    value($node, 'TRUNCATE pulse.job');
};

# A worker that holds jobs under these keys, and as many without a key. It lives as long as its
# session, however long an import takes.
sub start_holder {
    my ($prefix) = @_;
    value($node, in_bulk($prefix, HELD));
    add_jobs($node, 'work', HELD);
    my $worker = Pulse::SqlWorker->new($node, $prefix, interval => '0');
    is(scalar(my @jobs = $worker->claim(2 * HELD)), 2 * HELD, 'a worker holds jobs');
    return $worker;
}

my $running = q{SELECT count(*) FROM pulse.job WHERE state = 'running'};
my $undecided = q{SELECT count(*) FROM pulse.job WHERE key_is_undecided};

for my $end (qw(COMMIT ROLLBACK)) {
    subtest "a worker dies beside a transaction with its keys, which ends by $end" => sub {
        my $worker = start_holder('own');
        my $import = new_session();
        $import->query('BEGIN');
        $import->query(in_bulk('own', 5 * $keys));
        is($import->query(q{SELECT count(*) FROM pg_locks
                WHERE pid = pg_backend_pid() AND locktype = 'advisory'}), 0, 'it holds no lock');
        $worker->kill;
        wait_until($node, "SELECT ($running) = 0", 'all its jobs are recovered');
        is(value($node, $undecided), HELD, 'those with its keys are parked');
        is(value($node, q{SELECT count(*) FROM pulse.job AS j, pulse.explain_job(j.id) AS e
                WHERE j.key_is_undecided AND e.blocker = 'key undecided'
                  AND e.detail LIKE 'Process } . $import->backend_pid . q{ %'}),
            HELD, 'and explain_job names its process');
        $import->query($end);
        wait_until($node, "SELECT ($undecided) = 0", 'a sweep decides');
        my $failed =
          value($node, q{SELECT count(*) FROM pulse.finished_job WHERE state = 'failed'});
        is($failed, $end eq 'COMMIT' ? HELD : 0, 'whether they were superseded');
        is(value($node, q{SELECT count(*) FROM pulse.job WHERE job_key LIKE 'own-%'}),
            $end eq 'COMMIT' ? 5 * $keys : HELD, 'and each key has one job');
        $import->quit;
        value($node, 'TRUNCATE pulse.job, pulse.finished_job');
    };
}

subtest 'as many transactions as the server has sessions for' => sub {
    my $worker = start_holder('held');
    my @open;
    for my $number (1 .. $sessions) {
        push @open, new_session();
        $open[-1]->query('BEGIN');
        $open[-1]->query(in_bulk("open-$number", $keys));
    }
    $worker->kill;
    wait_until($node, "SELECT ($running) = 0", 'the jobs of a dead worker are recovered');
    is(value($node, $undecided), 0, 'under keys of their own');
    $_->query('COMMIT') for @open;
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE job_key LIKE 'open-%'}),
        $sessions * $keys, 'and all commit');
    $_->quit for @open;
};

my $log = slurp_file($node->logfile);
unlike($log, qr/deadlock detected/, 'no deadlock');
# Not counted: two sessions that lengthen the same file at once, and those that empty the table,
# which wait for sweeps.
my $pids = join '|', map { $_->backend_pid } @with_keys;
unlike($log, qr/process (?:$pids) still waiting for \w+ on (?!extension)/,
    'no transaction with keys waits for a lock over 50 ms');
unlike($log, qr/out of shared memory/, 'no full lock table');
expect_healthy($node);
done_testing();
