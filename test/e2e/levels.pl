# P13: workers, killed now and then with their server, run jobs of random queues within three
# levels, while an operator changes totals, pauses and concurrencies. From what workers and operator
# wrote down beside their calls, no moment had more jobs than a level allowed, and none is stranded.
# PULSE_JOBS says how many jobs each of three rounds adds.
use strict;
use warnings FATAL => 'all';

use List::Util qw(uniq);
use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;

my $jobs = $ENV{PULSE_JOBS} // 500;
my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_interval' => '500ms' });
allow_loops($node);
value($node, q{CREATE TABLE start (job_id bigint, token bigint, queue_name text COLLATE "C",
                    at timestamptz);
CREATE TABLE leaving (job_id bigint, token bigint, at timestamptz);
CREATE TABLE setting (level text COLLATE "C", total int, concurrency int, paused boolean,
                      at timestamptz);
SELECT pulse.set_task('work', backoff => 'none', max_crashes => -1, max_attempts => 1000);});

# What is written down lies within the time in which the job has its place.
sub work {
    my ($id) = @_;
    return loop('ids bigint[]; tokens bigint[]; names text[];', qq{
    SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}'),
           array_agg(c.queue_name) INTO ids, tokens, names
      FROM pulse.claim($id, 4) AS c;
    INSERT INTO start SELECT a.*, clock_timestamp() FROM unnest(ids, tokens, names) AS a;
    IF turn % 13 = 0 THEN
      ROLLBACK;
      CONTINUE;
    END IF;
    COMMIT;
    PERFORM linger(CASE WHEN ids = '{}' THEN 20 ELSE random() * 2 END);
    INSERT INTO leaving SELECT a.*, clock_timestamp() FROM unnest(ids, tokens) AS a;
    IF turn % 5 = 0 THEN
      PERFORM pulse.fail(id, token, 'again') FROM unnest(ids, tokens) AS a (id, token);
    ELSIF turn % 7 = 0 THEN
      CALL end_all('release', ids, tokens);
    ELSE
      CALL end_all('complete_many', ids, tokens);
    END IF;});
}

# Every job that was open has been claimed or parked when set_queue returns.
my $steer = loop('stored pulse.queue; name text;', q{
    name := CASE floor(random() * 4)::int WHEN 0 THEN 'r' WHEN 1 THEN 'r/*'
              WHEN 2 THEN 'r/' || floor(random() * 3)
              ELSE 'r/' || floor(random() * 3) || '/' || floor(random() * 4) END;
    stored := pulse.set_queue(name, concurrency => 1 + floor(random() * 3)::int,
      total => CASE WHEN random() < 0.2 THEN -1 ELSE 1 + floor(random() * 5)::int END,
      paused => random() < 0.1);
    INSERT INTO setting VALUES (name, stored.total, stored.concurrency, stored.paused,
                                clock_timestamp());
    COMMIT;
    PERFORM linger(10);});

my $sweep = loop('', 'PERFORM pulse.sweep(); COMMIT; PERFORM linger(50);');

my @sessions;
my $number = 0;

# Without it the jobs of killed workers would keep their places.
sub start_sweeper {
    my $sweeper = Pulse::Session->new($node);
    $sweeper->ask($sweep);
    push @sessions, $sweeper;
    return;
}

sub start_worker {
    my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
    $worker->ask(work($worker->id));
    push @sessions, $worker;
    return;
}

# Before the operator's first change, too, there are limits to reach.
value($node, q{INSERT INTO setting
    SELECT s.queue_name, s.total, s.concurrency, s.paused, clock_timestamp()
      FROM pulse.set_queue('r', concurrency => 2, total => 3) AS s});
for my $round (1 .. 3) {
    value($node, qq{SELECT count(pulse.add_job('work', priority => n % 3, queue_name =>
        concat_ws('/', 'r', floor(random() * 3), CASE WHEN n % 5 > 0 THEN floor(random() * 4) END)))
        FROM generate_series(1, $jobs) AS n});
    my $operator = Pulse::Session->new($node);
    $operator->ask($steer);
    start_sweeper();
    start_worker() for 1 .. 8;
    push @sessions, $operator;
    for my $kill (1 .. 6) {
        my $starts = value($node, 'SELECT count(*) FROM start');
        wait_until($node, "SELECT count(*) > $starts + 30 OR NOT EXISTS (SELECT FROM pulse.job)
            FROM start", 'workers go on');
        value($node, 'SELECT pg_terminate_backend(' . $sessions[ -2 - $kill ]->backend_pid . ')');
    }
    if ($round == 2) {
        kill_server($node);
        $_->kill for splice @sessions;
        $node->start;
        start_sweeper();
        start_worker() for 1 .. 8;
    } else {
        value($node, 'SELECT pg_terminate_backend(' . $operator->backend_pid . ')');
    }
    value($node, q{BEGIN;
        SELECT pulse.resume_queue(queue_name) FROM pulse.queue_pause WHERE is_paused;
        INSERT INTO setting SELECT queue_name, total, concurrency, false, clock_timestamp()
          FROM pulse.queue;
        COMMIT});
    start_worker() for 1 .. 6;
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', "round $round is done");
    end_loops($node);
    $_->quit for splice @sessions;
    allow_loops($node);
}
is(value($node, 'SELECT count(*) FROM pulse.finished_job'), 3 * $jobs, 'all jobs have run');

# Each start and the settings of each level that were in force then. A level without a row of its
# own has those of the members; a start before any setting has no limit but the concurrency of one.
value($node, q{CREATE TABLE place AS
  SELECT s.queue_name, s.at, coalesce(l.at, a.ended_at, 'infinity') AS until
    FROM start AS s
    LEFT JOIN leaving AS l USING (job_id, token)
    LEFT JOIN pulse.attempt AS a USING (job_id, token);
CREATE INDEX ON place (at, until);
CREATE TABLE judged AS
  SELECT p.at, n.level, n.level = p.queue_name AS is_queue, f.total, f.paused,
         coalesce(f.concurrency, 1) AS concurrency,
         (SELECT count(*) FROM place AS o WHERE o.at <= p.at AND o.until > p.at
             AND (o.queue_name = n.level OR starts_with(o.queue_name, n.level || '/'))) AS taken,
         (SELECT count(*) FROM place AS o WHERE o.at <= p.at AND o.until > p.at
             AND o.queue_name = n.level) AS own
    FROM place AS p
   CROSS JOIN LATERAL (
     SELECT l.level, regexp_replace(l.level, '[^/]*$', '*') AS members
       FROM unnest(pulse_internal.levels_of(p.queue_name)) AS l (level)) AS n
    LEFT JOIN LATERAL (
      SELECT g.* FROM setting AS g
       WHERE g.at <= p.at AND g.level IN (n.level, n.members)
       ORDER BY g.level = n.level DESC, g.at DESC LIMIT 1) AS f ON true;});
is(value($node, q{SELECT * FROM judged WHERE taken > total OR is_queue AND own > concurrency
                   OR paused ORDER BY at LIMIT 10}),
    '', 'no start was one too many for a level or a queue, or in a pause');
cmp_ok(value($node, 'SELECT count(*) FROM judged WHERE taken = total'), '>', $jobs / 10,
    'limits were reached');
note value($node, q{SELECT count(*) || ' starts, ' || count(*) FILTER (WHERE taken = total)
    || ' at a limit, ' || (SELECT count(*) FROM setting) || ' settings' FROM judged});

# After which starts not each of four members comes among the next eight: two in one queue bucket
# share a turn.
sub late_turns {
    my (@started) = @_;
    return join ' ', grep { (uniq @started[ $_ .. $_ + 7 ]) < 4 } 0 .. 10;
}

# One session takes jobs of a level with one place, or of queues with one place each. It takes one
# job at a time, or two, of which one can be of a queue beside the level. It ends jobs before the
# next claim or together with it.
for my $case ([1, 3, 'lv/', qw(221 59 x y)], [2, 3, 'lv/', qw(221 59 x y)],
              [2, 4, 'lv/', qw(1 3 6 4)], [1, 3, 'tenant-', qw(153 7 x y)]) {
    my ($jobs, $buckets, $prefix, @members) = @$case;
    is(value($node, "SELECT count(DISTINCT pulse_internal.queue_bucket('$prefix' || m))
        FROM unnest('{@{[ join ',', @members ]}}'::text[]) AS m"), $buckets,
        "$buckets queue buckets");
    for my $end ('COMMIT', 'NULL') {
        value($node, qq{DELETE FROM pulse.job; SELECT pulse.set_queue('lv', total => 1);
            SELECT pulse.set_task('go', max_attempts => 1);
            SELECT pulse.add_job('go', queue_name => '$prefix' || m)
              FROM unnest('{@{[ join ',', @members ]}}'::text[]) AS m, generate_series(1, 6);
            SELECT pulse.add_job('go', queue_name => 'beside')
              FROM generate_series(1, 24 * ($jobs - 1))});
        my $said = value($node, qq{
            DROP TABLE IF EXISTS started;
            CREATE TABLE started (n serial, member text);
            DO \$\$
            DECLARE
              worker bigint := (SELECT id FROM pulse.register_worker('one', '{go}'));
              job record;
              ids bigint[];
              tokens bigint[];
            BEGIN
              COMMIT;
              FOR n IN 1..24 LOOP
                ids := '{}';
                tokens := '{}';
                FOR job IN SELECT * FROM pulse.claim(worker, $jobs, '{go}') LOOP
                  ids := ids || job.id;
                  tokens := tokens || job.token;
                  INSERT INTO started (member) VALUES (job.queue_name);
                END LOOP;
                COMMIT;
                PERFORM pulse.complete_many(ids, tokens);
                $end;
              END LOOP;
              COMMIT;
              PERFORM pulse.deregister_worker(worker);
            END \$\$;
            SELECT string_agg(member, ' ' ORDER BY n) FROM started WHERE member <> 'beside'});
        is(late_turns(split / /, $said), '',
            "each of $prefix… has its turn in claims of $jobs, ended by $end")
          or diag $said;
    }
}

# Claims a job, ends it, and returns its queue.
sub queue_of_next {
    my ($worker) = @_;
    my $job = $worker->claim;
    my $queue = value($node, "SELECT queue_name FROM pulse.job WHERE id = $job->{id}");
    $worker->complete($job);
    return $queue;
}

# Sessions that end after each claim take so many jobs, one each; returns the queues of the jobs.
sub queues_of_short_sessions {
    my ($count) = @_;
    my @started;
    for (1 .. $count) {
        my $one = Pulse::SqlWorker->new($node, 'one');
        push @started, queue_of_next($one);
        $one->query('SELECT pulse.deregister_worker(' . $one->id . ')');
        $one->quit;
    }
    return @started;
}

# Which of these queues does not come among each six of the started.
sub without_turns {
    my ($started, @queues) = @_;
    return join ' ', grep {
        my $queue = $_;
        grep { my $first = $_; !grep { $_ eq $queue } @$started[ $first .. $first + 5 ] }
          0 .. @$started - 6
    } @queues;
}

subtest 'queues have turns among sessions that end after each claim' => sub {
    my @queues = map { "tenant-$_" } qw(153 x y z);
    is(value($node, "SELECT count(DISTINCT pulse_internal.queue_bucket(m))
        FROM unnest('{@{[ join ',', @queues ]}}'::text[]) AS m"), 4, 'four queue buckets');
    # A sweep may open jobs of all queues, which then start by their ids.
    value($node, qq{DELETE FROM pulse.job; SELECT pulse.add_job('go', queue_name => m)
        FROM generate_series(1, 6), unnest('{@{[ join ',', @queues ]}}'::text[]) AS m});
    my @started = queues_of_short_sessions(24);
    is(late_turns(@started), '', 'one job each') or diag "@started";
};

subtest 'two queues of one queue bucket keep no other queue waiting' => sub {
    for my $prefix ('tenant-', 'lv/') {
        my ($first, $second) = $prefix eq 'lv/' ? (221, 59) : (153, 7);
        my @queues = map { $prefix . $_ } $first, $second, qw(x y);
        value($node, qq{DELETE FROM pulse.job; SELECT pulse.set_queue('lv', total => 1);
            SELECT pulse.add_job('go', queue_name => m)
              FROM generate_series(1, 12), unnest('{@{[ join ',', @queues ]}}'::text[]) AS m});
        my @started = queues_of_short_sessions(12);
        is(without_turns(\@started, @queues[ 2, 3 ]), '', "beside those of $prefix…")
          or diag "@started";
    }
};

subtest 'whoever waits for an open claim of a level pauses' => sub {
    value($node, q{DELETE FROM pulse.job; SELECT pulse.set_queue('big', total => 1000);
        SELECT pulse.add_job('go', queue_name => 'big/' || n) FROM generate_series(1, 3000) AS n;
        CREATE PROCEDURE count_claims(worker bigint, INOUT claims int = 0) LANGUAGE plpgsql AS $$
        DECLARE
          ends timestamptz := clock_timestamp() + '1 s';
        BEGIN
          WHILE clock_timestamp() < ends LOOP
            PERFORM pulse.claim(worker, 1, '{go}');
            COMMIT;
            CALL pulse.wait_for_job(worker, '1 s');
            claims := claims + 1;
          END LOOP;
        END $$});
    my $holder = Pulse::SqlWorker->new($node, 'holder');
    my $other = Pulse::SqlWorker->new($node, 'other');
    $holder->query('BEGIN');
    ok($holder->claim, 'a claim stays open');
    cmp_ok($other->query('CALL count_claims(' . $other->id . ')'), '<', 100, 'few claims in vain');
    $holder->query('ROLLBACK');
};

subtest 'a claim finds the job behind a hundred queues that have ended' => sub {
    value($node, q{DELETE FROM pulse.job; SELECT pulse.set_task('go', max_attempts => 1);
        SELECT pulse.add_job('go', queue_name => 'ended ' || n) FROM generate_series(1, 100) AS n});
    my $ending = Pulse::SqlWorker->new($node, 'ending');
    # The claim that finds no more begins the round of promotion marks anew.
    my @jobs;
    while (my @more = $ending->claim(100)) {
        push @jobs, @more;
    }
    $ending->complete(@jobs);
    value($node, q{SELECT pulse.add_job('go', queue_name => (
        SELECT 'late ' || n FROM generate_series(1, 1000) AS n
         ORDER BY pulse_internal.queue_bucket('late ' || n) DESC LIMIT 1))});
    ok(Pulse::SqlWorker->new($node, 'new')->claim, 'the first claim of a session has it');
};

subtest 'a place that is kept for a fair level costs no queue its turn' => sub {
    value($node, q{DELETE FROM pulse.job; SELECT pulse.set_queue('ring', fair => true);
        SELECT pulse.add_job('go', queue_name => q)
          FROM generate_series(1, 24), unnest('{ring/a,ring/b,x,y}'::text[]) AS q});
    my $one = Pulse::SqlWorker->new($node, 'one');
    my @started = map { queue_of_next($one) } 1 .. 24;
    is(without_turns(\@started, qw(ring/a ring/b x y)), '', 'of two queues beside it')
      or diag "@started";
    is(without_turns([ queues_of_short_sessions(18) ], qw(x y)), '',
        'also among sessions that end after each claim');
};

expect_healthy($node);
done_testing();
