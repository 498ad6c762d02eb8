# P4, P6: fifty living workers, attached and at work, while the server restarts again and again, in
# order and after a crash, with the background worker looking for the lost all the while. None is
# lost, and no job takes a second attempt.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Fleet;
use Pulse::Server;
use Pulse::Session;

use constant { WORKERS => 50, TIMES => $ENV{PULSE_RESTARTS} // 5, JOBS => 150 };

my $node = start_server('main', settings => {
    %QUICK,
    # Fifty sessions take a while to start, on a busy machine.
    'pulse.sweep_threshold' => '15s',
    'pulse.databases' => 'postgres',
    max_connections => 80,
    restart_after_crash => 'on',
    log_statement => 'none',
});
my $fleet = Pulse::Fleet->start('fleet', WORKERS, servers => [$node], keeps => 1);
my @killed;
my $added = 0;

sub expect_survival {
    my ($restart) = @_;
    for (1 .. TIMES) {
        add_jobs($node, 'work', JOBS);
        $added += JOBS;
        wait_until($node, q{SELECT count(*) > 25 FROM pulse.job WHERE state = 'running'},
            'they are at work');
        $restart->();
        $fleet->wait_until_beating($node);
    }
    is(value($node, q{SELECT count(*) FILTER (WHERE state = 'alive'), count(*) FROM pulse.worker}),
        WORKERS . '|' . WORKERS, 'none was lost, none registered anew');
    is_deeply([ $fleet->complaints ], [], 'and none was told anything else');
    return;
}

subtest 'fast restarts' => sub {
    expect_survival(sub { $node->restart });
};

subtest 'restarts after kill -9 of a backend' => sub {
    expect_survival(sub {
        my $pid = value($node, q{SELECT pid FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1});
        push @killed, $pid;
        my $log = -s $node->logfile;
        kill 'KILL', $pid;
        $node->wait_for_log(qr/ready to accept connections/, $log);
    });
};

subtest 'all that was added is done' => sub {
    $fleet->let_go;
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are done');
    is(value($node, q{SELECT count(*) FILTER (WHERE state = 'completed' AND attempts = 1), count(*)
        FROM pulse.finished_job}), "$added|$added", 'each in one attempt');
    is_deeply([ $fleet->stale ], [], 'and no completion was refused');
};

expect_healthy($node, killed => \@killed);
done_testing();
