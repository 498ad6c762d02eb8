# P12: each due time of a schedule gives one job, whose task learns it: with a waiting worker,
# across kill -9 of the worker and of the server, and after the promotion of a standby.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::Tasks;
use Pulse::Worker;

use constant { SCHEDULES => 10, ROUNDS => 2 };

my $primary = start_server('primary', streaming => 1,
    settings => { %QUICK, 'pulse.poll_interval' => '30s', 'pulse.sweep_interval' => '60s',
        'pulse.sweep_threshold' => '200s' });
value($primary, q{SELECT pulse.set_task('work', backoff => 'none', keep_completed => '1 day')});
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $tasks = Pulse::Tasks->new(work => 'tell due_${PULSE_SCHEDULED_FOR:+told}');
my $workers = 0;

sub start_worker {
    return Pulse::Worker->start_registered($primary, 'worker' . ++$workers,
        tasks => $tasks, concurrency => 4,
        host => join(',', $primary->host, $standby->host),
        port => join(',', $primary->port, $standby->port));
}

# Jobs beyond one per due time, and due times before the last settled one that have none.
sub broken {
    my ($node) = @_;
    return value($node, q{
        WITH job AS (SELECT scheduled_for, payload ->> 'name' AS name FROM pulse.job
                     UNION ALL SELECT scheduled_for, payload ->> 'name' FROM pulse.finished_job)
        SELECT s.name, due, count(j.name) FROM pulse.schedule AS s
         CROSS JOIN LATERAL generate_series(s.anchor + s.every, s.last_due, s.every) AS due
          LEFT JOIN job AS j ON j.name = s.name AND j.scheduled_for = due
         GROUP BY 1, 2 HAVING count(j.name) <> 1});
}

sub settled { return 0 + value($_[0], q{SELECT count(*) FROM pulse.finished_job}) }

sub wait_for_more {
    my ($node, $more) = @_;
    my $goal = settled($node) + $more;
    wait_until($node, "SELECT count(*) >= $goal FROM pulse.finished_job",
        'more due times are settled');
    return;
}

# Only the due time wakes who waits, twice: for the sweep that adds the job, and for the job.
value($primary, q{SELECT pulse.schedule('alone', 'alone', every => '1 s')});
my $waiting = Pulse::SqlWorker->new($primary, 'waiting',
    before => q{SET pulse.poll_interval = '1h'});
$waiting->complete($waiting->wait_for_claim) for 1 .. 2;
pass('a waiting worker starts them when they are due, not by a poll');
value($primary, q{SELECT pulse.unschedule('alone')});
value($primary, 'SELECT pulse.deregister_worker(' . $waiting->id . ')');
$waiting->quit;
value($primary, 'DELETE FROM pulse.job; DELETE FROM pulse.finished_job');

my $worker = start_worker();
value($primary, q{SELECT count(pulse.schedule('s' || n, 'work', every => '1 s', missed => 'all',
    payload => json_build_object('name', 's' || n)))
    FROM generate_series(1, } . SCHEDULES . ') AS n');
wait_for_more($primary, 3 * SCHEDULES);
is(broken($primary), '', 'each due time has one job');
$tasks->wait_for('due_told');

for my $round (1 .. ROUNDS) {
    $worker->kill;
    $worker = start_worker();
    wait_for_more($primary, SCHEDULES);
    is(broken($primary), '', "round $round: also when the worker was killed");
    kill_server($primary);
    $primary->start;
    wait_for_more($primary, SCHEDULES);
    is(broken($primary), '', 'and when the server was killed');
}

is(Pulse::Session->new($standby)->refusal("SELECT pulse.$_"), '25006', "a standby refuses $_")
  for q{schedule('x', 'work', '@daily')}, q{unschedule('s1')}, q{pause_schedule('s1')},
  q{resume_schedule('s1')}, q{run_schedule_now('s1')};
is(value($standby, q{SELECT count(*) FROM pulse.next_runs('s1')}),
    5, 'and tells the next due times');

$primary->wait_for_catchup($standby);
$primary->stop('fast');
$standby->promote;
wait_for_more($standby, SCHEDULES);
is(broken($standby), '', 'a promoted standby goes on where its primary ended');
$worker->signal('TERM');
$worker->wait_exit;
expect_healthy($standby);
done_testing();
