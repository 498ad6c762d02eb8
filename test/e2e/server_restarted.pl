# P4, P6: the server restarts under living workers: in order, after kill -9 of a backend, and after
# an immediate stop. No worker is lost, no task is killed, and each job takes one attempt.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

# A busy machine has time to start the sessions of both anew.
my $node = start_server('main', settings => {
    %QUICK, 'pulse.sweep_threshold' => '10s', restart_after_crash => 'on' });
my $tasks = Pulse::Tasks->new(run => 'tell ran', linger => 'tell began; wait_at lingerers');
my @workers =
  map { Pulse::Worker->start_registered($node, $_, tasks => $tasks, concurrency => 2) }
  qw(first second);
my @killed;

# What goes on before, during and after.
sub expect_survival {
    my ($restart) = @_;
    my @lingering = map { add_job($node, 'linger') } 1 .. 3;
    my @processes = map { $tasks->process($tasks->wait_for('began', job => $_)) } @lingering;
    my @queued = add_jobs($node, 'run', 30, 'q');
    my %from = map { ($_->name => $_->lines->position) } @workers;

    $restart->();
    $_->wait_for('heartbeat', status => 'alive', from => $from{ $_->name }) for @workers;
    # Whoever were to be taken for lost would be so by now.
    $_->wait_for('sweep', from => $from{ $_->name }, count => 5) for @workers;
    is_deeply([ map { $_->is_gone } @processes ], [ 0, 0, 0 ], 'no task was killed');
    $tasks->open_gate('lingerers', 3);
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are done');

    my $ids = join ',', @lingering, @queued;
    is( value($node, "SELECT id, state, attempts FROM unnest('{$ids}'::bigint[]) AS id
            LEFT JOIN pulse.finished_job AS f USING (id)
            WHERE (state, attempts) IS DISTINCT FROM ('completed', 1)"),
        '', 'each job completed in one attempt');
    is( value($node, 'SELECT string_agg(name || state, \' \' ORDER BY name) FROM pulse.worker'),
        'firstalive secondalive', 'no worker was lost, none registered anew');
    my %runs;
    $runs{ $_->{job} }++ for $tasks->told('ran');
    is_deeply([ grep { ($runs{$_} // 0) != 1 } @queued ], [], 'every task ran once');
}

subtest 'a fast restart' => sub {
    expect_survival(sub { $node->restart });
};

subtest 'kill -9 of a backend' => sub {
    my $session = Pulse::Session->new($node);
    expect_survival(sub {
        push @killed, $session->backend_pid;
        my $log = -s $node->logfile;
        kill 'KILL', $session->backend_pid;
        $node->wait_for_log(qr/ready to accept connections/, $log);
    });
    $session->quit;
};

subtest 'kill -9 of a backend that is a worker\'s own' => sub {
    expect_survival(sub {
        my $pid = value($node, q{SELECT pid FROM pg_stat_activity
            WHERE application_name = 'pulse-worker first' LIMIT 1});
        push @killed, $pid;
        my $log = -s $node->logfile;
        kill 'KILL', $pid;
        $node->wait_for_log(qr/ready to accept connections/, $log);
    });
};

subtest 'an immediate stop' => sub {
    expect_survival(sub {
        $node->stop('immediate');
        $node->start;
    });
};

subtest 'a worker that is started while the server is away' => sub {
    $node->stop;
    my $worker = Pulse::Worker->start($node, 'early', tasks => $tasks);
    $worker->wait_for('reconnecting');
    $node->start;
    $worker->wait_for('registered');
    $_->signal('TERM') for @workers;
    is($_->wait_exit, 0, $_->name . ' leaves') for @workers;
    my $id = add_job($node, 'run');
    $worker->wait_for('completed', job => $id);
};

expect_healthy($node, killed => \@killed);
done_testing();
