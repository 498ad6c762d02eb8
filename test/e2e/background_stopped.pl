# P5: where the background worker stands still, by SIGSTOP or a debugger, others sweep in its place,
# and leave the sweeps to it again when it goes on.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;

my $node = start_server('main', settings => {
    %PATIENT, 'pulse.databases' => 'postgres', 'pulse.poll_interval' => '1h' });
my @stopped;

# A server does not stop while its processes are stopped.
END { kill 'CONT', @stopped }

sub expect_served {
    my ($state) = @_;
    wait_until($node, "SELECT current_setting('pulse.background_sweeps') = '$state'",
        "the background worker sweeps: $state");
    return;
}

sub stop_process {
    my ($what) = @_;
    my $pid = value($node, "SELECT pid FROM pg_stat_activity
        WHERE backend_type = 'pg_pulse $what'");
    push @stopped, $pid;
    kill 'STOP', $pid;
    return;
}

# A worker that waits is asked to sweep when another worker dies, and recovers its job.
sub expect_others_to_sweep {
    expect_served('off');
    my $waiting = Pulse::SqlWorker->new($node, 'waiting');
    my $lost = Pulse::SqlWorker->new($node, 'lost');
    my $id = add_job($node, 'work');
    $lost->must_claim;
    $waiting->start_waiting;
    $lost->kill;
    my $job = ($waiting->answer, $waiting->wait_for_claim);
    is("$job->{id} $job->{recovered}", "$id session", 'the job of a dead worker is recovered');
    $waiting->complete($job);
    value($node, 'SELECT pulse.deregister_worker(' . $waiting->id . ')');
    $waiting->quit;
    kill 'CONT', splice @stopped;
    expect_served('on');
    return;
}

value($node, q{SELECT pulse.set_task('work', backoff => 'none')});
expect_served('on');

subtest 'a maintainer is stopped' => sub {
    stop_process('maintainer');
    expect_others_to_sweep();
};

subtest 'the launcher is stopped, and a maintainer ends' => sub {
    stop_process('launcher');
    value($node, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE backend_type = 'pg_pulse maintainer'});
    expect_others_to_sweep();
};

expect_healthy($node);
done_testing();
