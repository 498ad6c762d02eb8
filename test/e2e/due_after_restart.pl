# P5, P8, P12 to P14: a restart of the server loses all that shared memory knew of what falls due.
# After each kind of restart everything happens in time all the same, though nobody polls, nobody
# sweeps by the interval, and no new worker comes.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Cluster;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

# What falls due does so DUE seconds after it was prepared. LATE more are for a slow machine: less
# than the 30 s after which a waiting session looks by itself.
use constant { DUE => 6, LATE => 12 };

my %settings = (
    %PATIENT,
    'pulse.poll_interval' => '1h',
    'pulse.disconnect_grace' => DUE . 's',
    restart_after_crash => 'on',
);
my $in_time = q{clock_timestamp() + interval '} . DUE . q{ s'};

# Statements before the restart, each for a task of which a job starts afterwards.
my %before = (
    schedule => "SELECT pulse.schedule('due', 'schedule', every => '${\DUE} s')",
    future => "SELECT pulse.add_job('future', run_at => $in_time)",
    future_of_queue =>
      "SELECT pulse.add_job('future_of_queue', queue_name => 'q', run_at => $in_time)",
    retry => q{SELECT pulse.add_job('retry')},
    dry_queue => q{SELECT pulse.add_job('dry_queue', queue_name => 'dry')
        FROM generate_series(1, 2)},
    child => q{SELECT pulse.add_job_after(ARRAY[(pulse.add_job('parent')).id], 'child')},
    second_of_queue => q{SELECT pulse.add_job(task, queue_name => 'one')
        FROM unnest('{first_of_queue,second_of_queue}'::text[]) AS task},
    paused => q{SELECT pulse.pause_queue('p'), pulse.add_job('paused', queue_name => 'p')},
    prepared => q{BEGIN; SELECT pulse.add_job('prepared'); PREPARE TRANSACTION 'p'},
    expiring => "SELECT pulse.add_job_after('{}', 'expiring', start_by => $in_time)",
);
# Tasks of which a job starts before the restart too.
my @twice = qw(retry dry_queue);
my @with_gate = qw(parent first_of_queue);
my $tasks = Pulse::Tasks->new(
    lost => 'tell ran',
    (map { $_ => 'tell ran' } grep { $_ ne 'expiring' } keys %before),
    retry => 'tell ran; [[ $PULSE_ATTEMPT == 2 ]]',
    map { $_ => 'tell began; wait_at firsts' } @with_gate,
);
my @killed;

sub start_node {
    my ($name, %options) = @_;
    my $more = delete $options{settings} // {};
    my $node = start_server($name, %options, settings => { %settings, %$more });
    value($node, q{SELECT pulse.set_task('retry', backoff => 'fixed', backoff_base => '} . DUE
      . q{ s'), pulse.set_task('lost', backoff => 'none')});
    value($node, q{SELECT pulse.set_queue('dry', rate => 1, per => '} . DUE . q{ s', burst => 1)});
    return $node;
}

sub start_worker {
    my (@nodes) = @_;
    return Pulse::Worker->start_registered($nodes[0], 'worker', tasks => $tasks, concurrency => 8,
        host => join(',', map { $_->host } @nodes), port => join(',', map { $_->port } @nodes));
}

# A worker with a job whose session the server has seen end: lost when the grace is over.
sub lose_worker {
    my ($node) = @_;
    my $doomed = Pulse::SqlWorker->new($node, 'doomed');
    my $id = $doomed->id;
    $doomed->query(qq{BEGIN; SELECT pulse.add_job('lost'); SELECT pulse.claim($id, 1, '{lost}');
        COMMIT});
    $doomed->kill;
    wait_until($node, "SELECT detached_live_us IS NOT NULL FROM pulse.heartbeat
        WHERE worker_id = $id", 'the end of the session is seen');
    return;
}

# `restart` returns the server that goes on.
sub expect_in_time {
    my ($node, $restart, @left_out) = @_;
    my %left_out = map { $_ => 1 } @left_out;
    my $from = $tasks->lines->position;
    lose_worker($node);
    my $due = time + DUE;
    $node->safe_psql('postgres', $before{$_}) for grep { !$left_out{$_} } sort keys %before;
    $tasks->wait_for('began', task => $_, from => $from) for @with_gate;
    $tasks->wait_for('ran', task => $_, from => $from) for @twice;

    $node = $restart->($node);
    my $restarted = $tasks->lines->position;
    my $ready = time;
    $due = $ready if $due < $ready;
    $tasks->open_gate('firsts', scalar @with_gate);
    value($node, q{SELECT pulse.resume_queue('p')});
    $node->safe_psql('postgres', q{COMMIT PREPARED 'p'}) if !$left_out{prepared};
    for my $task (sort keys %before, 'lost') {
        next if $left_out{$task};
        my $at;
        if ($task eq 'expiring') {
            wait_until($node, q{SELECT count(*) = 1 FROM pulse.finished_job
                WHERE identifier = 'expiring'}, 'a job expires');
            $at = value($node, q{SELECT extract(epoch FROM finished_at) FROM pulse.finished_job
                WHERE identifier = 'expiring'});
        } else {
            my $count = (grep { $_ eq $task } @twice) ? 2 : 1;
            $at = ($tasks->wait_for('ran', task => $task, count => $count,
                from => $task eq 'schedule' ? $restarted : $from))[-1]{at};
        }
        my $late = $at - ($task eq 'schedule' ? $ready + DUE : $due);
        cmp_ok($late, '<', LATE, sprintf '%s: %.1f s after it was due', $task, $late);
    }
    value($node, q{SELECT pulse.unschedule('due')});
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs are done');
    value($node, 'DELETE FROM pulse.finished_job');
    return $node;
}

sub kill_backend {
    my ($node) = @_;
    my $session = Pulse::Session->new($node);
    my $log = -s $node->logfile;
    push @killed, $session->backend_pid;
    kill 'KILL', $session->backend_pid;
    $node->wait_for_log(qr/ready to accept connections/, $log);
    $session->quit;
    return $node;
}

sub kill_all {
    my ($node) = @_;
    kill_server($node);
    $node->start;
    return $node;
}

my $node = start_node('preloaded', streaming => 1);
my $worker = start_worker($node);
subtest 'kill -9 of the server' => sub { expect_in_time($node, \&kill_all) };
subtest 'kill -9 of a backend' => sub { expect_in_time($node, \&kill_backend) };
subtest 'a restart in order' => sub {
    expect_in_time($node, sub { $_[0]->restart; return $_[0] });
};
$worker->signal('TERM');
$worker->wait_exit;

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$worker = start_worker($node, $standby);
subtest 'a promotion' => sub {
    expect_in_time($node, sub {
        $node->wait_for_catchup($standby);
        $node->stop('immediate');
        $standby->promote;
        return $standby;
    });
};
$worker->signal('TERM');
$worker->wait_exit;
expect_healthy($standby, killed => \@killed);

# Nothing wakes a waiting session for COMMIT PREPARED.
my $plain = start_node('not_preloaded', preload => 0);
$worker = start_worker($plain);
subtest 'without preloading' => sub {
    expect_in_time($plain, sub { $_[0]->stop('immediate'); $_[0]->start; $_[0] }, 'prepared');
};
$worker->signal('TERM');
$worker->wait_exit;
expect_healthy($plain);

my $served = start_node('served', settings => { 'pulse.databases' => 'postgres' });
$worker = start_worker($served);
subtest 'where the background worker serves' => sub { expect_in_time($served, \&kill_backend) };
expect_healthy($served, killed => \@killed);
done_testing();
