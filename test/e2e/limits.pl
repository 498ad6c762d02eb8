# P13: jobs of many queues within three levels run under totals, rates, concurrencies and strict
# order, in turns and not, while an operator changes them and workers are killed, as is their
# server. By the write-ahead log no moment has more running jobs than a level or queue allows, and
# no window of the liveness clock more claims than a rate does.
# PULSE_QUEUES and PULSE_JOBS say how many queues there are, and how many jobs each of three rounds
# adds.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;
use Pulse::Witness;

my $queues = $ENV{PULSE_QUEUES} // 60;
my $jobs = $ENV{PULSE_JOBS} // 500;
note "PULSE_QUEUES=$queues PULSE_JOBS=$jobs";
# A factor of the rates of levels, by which the more jobs end in as many minutes.
my $pace = $ENV{PULSE_PACE} // 1 + int $jobs / 2000;
my $node = start_server('main', settings => {
    %QUICK, 'pulse.sweep_interval' => '500ms', 'wal_level' => 'logical' });
allow_loops($node);
my $witness = Pulse::Witness->new($node);
value($node, q{SELECT pulse.set_task('work', backoff => 'none', max_crashes => -1,
                                    max_attempts => 1000)});

sub work {
    my ($id) = @_;
    return loop('ids bigint[]; tokens bigint[];', qq{
    SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}') INTO ids, tokens
      FROM pulse.claim($id, 1 + turn % 32) AS c;
    IF turn % 13 = 0 THEN
      ROLLBACK;
      CONTINUE;
    END IF;
    COMMIT;
    PERFORM linger(CASE WHEN ids = '{}' THEN 20 ELSE random() * 0.5 END);
    IF turn % 5 = 0 THEN
      PERFORM pulse.fail(id, token, 'again') FROM unnest(ids, tokens) AS a (id, token);
    ELSIF turn % 7 = 0 THEN
      CALL end_all('release', ids, tokens);
    ELSE
      CALL end_all('complete_many', ids, tokens);
    END IF;});
}

# Levels above queues have a rate that lets all jobs run in the end.
my $steer = loop('name text; is_level boolean; is_strict boolean; pace int;', qq{
    name := CASE floor(random() * 4)::int WHEN 0 THEN 'r' WHEN 1 THEN 'r/' || floor(random() * 3)
              WHEN 2 THEN 'r/' || floor(random() * 3) || '/*'
              ELSE 'r/' || floor(random() * 3) || '/' || floor(random() * $queues) END;
    is_level := name IN ('r', 'r/0', 'r/1', 'r/2');
    is_strict := NOT is_level AND random() < 0.2;
    pace := CASE WHEN random() < 0.3 THEN -1
              ELSE (CASE WHEN is_level THEN 50 * $pace ELSE 5 END * (1 + random()))::int END;
    PERFORM pulse.set_queue(name,
      concurrency => CASE WHEN is_strict THEN 1 ELSE 1 + floor(random() * 3)::int END,
      paused => random() < 0.1, strict => is_strict, fair => is_level AND random() < 0.5,
      total => CASE WHEN random() < 0.4 THEN -1 ELSE 1 + floor(random() * 12)::int END,
      rate => pace,
      per => CASE WHEN pace > 0 THEN make_interval(secs => 1 + floor(random() * 2)) END,
      burst => CASE WHEN random() < 0.3 OR pace < 0 THEN -1 ELSE 1 + floor(random() * pace)::int
                 END);
    -- A pause leaves all that as it is, also of a queue without settings of its own.
    IF random() < 0.3 THEN
      PERFORM pulse.set_queue('r/' || floor(random() * 3) || '/' || floor(random() * $queues),
                              paused => random() < 0.3);
    END IF;
    COMMIT;
    PERFORM linger(10);});

my $sweep = loop('', 'PERFORM pulse.sweep(); COMMIT; PERFORM linger(50);');

my @sessions;
my $number = 0;

sub start_session {
    my ($statement) = @_;
    my $session = Pulse::Session->new($node);
    $session->ask($statement);
    push @sessions, $session;
    return $session;
}

sub start_workers {
    for (1 .. $_[0]) {
        my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
        $worker->ask(work($worker->id));
        push @sessions, $worker;
    }
    return;
}

for my $round (1 .. 3) {
    value($node, qq{SELECT count(pulse.add_job('work', priority => n % 3, queue_name =>
        concat_ws('/', 'r', n % 3, floor(random() * $queues))))
        FROM generate_series(1, $jobs) AS n});
    # Limits from the first start on, however late the operator is.
    value($node, q{SELECT pulse.set_queue('r', total => 8, rate => -1),
        count(pulse.set_queue('r/' || n, total => 3, rate => -1)) FROM generate_series(0, 2) AS n});
    start_session($sweep);
    start_workers(8);
    my $operator = start_session($steer);
    for my $kill (1 .. 6) {
        wait_until($node, "SELECT count(*) < $jobs * (1 - $kill / 10.0) FROM pulse.job",
            'workers go on');
        value($node, 'SELECT pg_terminate_backend(' . $sessions[ -2 - $kill ]->backend_pid . ')');
    }
    ok(!$operator->has_answered, 'settings change until then');
    if ($round == 2) {
        kill_server($node);
        $_->kill for splice @sessions;
        $node->start;
        $witness->note_restart;
        start_session($sweep);
        start_workers(8);
    } else {
        value($node, 'SELECT pg_terminate_backend(' . $operator->backend_pid . ')');
    }
    value($node, 'SELECT pulse.resume_queue(queue_name) FROM pulse.queue_pause WHERE is_paused');
    start_workers(6);
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', "round $round is done");
    end_loops($node);
    $_->quit for splice @sessions;
    allow_loops($node);
}
is(value($node, 'SELECT count(*) FROM pulse.finished_job'), 3 * $jobs, 'all jobs have run');
$witness->read_log;
is($witness->broken, '', 'no start was one too many for a level, a queue, a rate or a pause');
cmp_ok($witness->at_limit, '>', $jobs / 10, 'limits were reached');
note $witness->starts, ' starts, ', $witness->at_limit, ' at a limit';

expect_healthy($node);
done_testing();
