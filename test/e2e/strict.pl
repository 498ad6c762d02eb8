# P13: the jobs of many strict queues fail, are snoozed, released and recovered from workers that
# are killed, as their server is, and jobs that die pause some of the queues. By the write-ahead log
# no job started between the start of another one of its queue and the end of that one.
# PULSE_QUEUES and PULSE_JOBS say how many queues there are, and how many jobs each has.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;
use Pulse::Witness;

my $queues = $ENV{PULSE_QUEUES} // 200;
my $jobs = $ENV{PULSE_JOBS} // 10;
my $all = $queues * $jobs;
note "PULSE_QUEUES=$queues PULSE_JOBS=$jobs";
my $node = start_server('main', settings => {
    %QUICK, 'pulse.sweep_interval' => '500ms', 'wal_level' => 'logical' });
allow_loops($node);
my $witness = Pulse::Witness->new($node);
value($node, q{SELECT pulse.set_task('work', backoff => 'fixed', backoff_base => '10 ms',
                                    max_crashes => -1, max_attempts => 5);
    SELECT pulse.set_queue('s/*', strict => true);
    SELECT pulse.set_queue('p/*', strict => true, on_dead => 'pause')});

# Every second queue pauses when a job dies. A fifth of the attempts fails, some of them for good.
sub work {
    my ($id) = @_;
    return loop('ids bigint[]; tokens bigint[];', qq{
    SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}') INTO ids, tokens
      FROM pulse.claim($id, 1 + turn % 40) AS c;
    IF turn % 13 = 0 THEN
      ROLLBACK;
      CONTINUE;
    END IF;
    COMMIT;
    PERFORM linger(CASE WHEN ids = '{}' THEN 20 ELSE random() * 0.2 END);
    IF turn % 10 = 3 THEN
      CALL end_all('release', ids, tokens);
    ELSE
      PERFORM CASE WHEN a.id % 5 > 0 OR random() < 0.3 THEN pulse.complete(a.id, a.token)::text
                WHEN random() < 0.3 THEN pulse.snooze(a.id, a.token, '20 ms')::text
                ELSE pulse.fail(a.id, a.token, 'again', retry => random() < 0.8) END
         FROM unnest(ids, tokens) AS a (id, token);
    END IF;});
}

# What waits behind a dead job goes on when its queue is resumed, the dead one first.
my $steer = loop('paused record;', q{
    FOR paused IN SELECT p.queue_name, p.job_id FROM pulse.queue_pause AS p LIMIT 100 LOOP
      IF random() < 0.5 THEN
        PERFORM pulse.retry_job(paused.job_id);
      END IF;
      PERFORM pulse.resume_queue(paused.queue_name);
      COMMIT;
    END LOOP;
    PERFORM pulse.sweep();
    COMMIT;
    PERFORM linger(10);});

my @sessions;
my $number = 0;

sub start_workers {
    for (1 .. $_[0]) {
        my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
        $worker->ask(work($worker->id));
        push @sessions, $worker;
    }
    return;
}

sub start_operator {
    my $operator = Pulse::Session->new($node);
    $operator->ask($steer);
    push @sessions, $operator;
    return;
}

# How many jobs have ended, until `portion` of all have.
sub wait_for_ends {
    my ($portion) = @_;
    wait_until($node, "SELECT count(*) < (1 - $portion) * $all FROM pulse.job",
        "$portion of the jobs end");
    return;
}

value($node, qq{SELECT count(pulse.add_job('work', queue_name => CASE q % 2 WHEN 0 THEN 's/'
      ELSE 'p/' END || q, priority => (random() * 2)::int))
    FROM generate_series(1, $jobs) AS j, generate_series(1, $queues) AS q});
start_operator();
start_workers(6);
for my $kill (1 .. 6) {
    wait_for_ends($kill / 10);
    value($node, 'SELECT pg_terminate_backend(' . $sessions[-6]->backend_pid . ')');
    start_workers(1);
}
wait_for_ends(0.7);
kill_server($node);
$_->kill for splice @sessions;
$node->start;
start_operator();
start_workers(6);
wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', 'all jobs end');
end_loops($node);
$_->quit for @sessions;

# The operator may have retried one since.
is(value($node, 'SELECT count(*) FROM (SELECT id FROM pulse.job UNION ALL
    SELECT id FROM pulse.finished_job) AS j'), $all, 'no job is lost, and none is there twice');
$witness->read_log;
is($witness->broken, '', 'no job started before the end of the one before it');
cmp_ok($witness->starts, '>', $all, 'jobs were started again');
note $witness->starts, ' starts';
cmp_ok(value($node, 'SELECT count(*) FROM pulse.attempt'), '>', $all / 20, 'attempts failed');
expect_healthy($node);
done_testing();
