# Beside many jobs every view tells what a count of one snapshot tells: at rest exactly, under load
# up to the commits between the snapshot and the count. Views of one transaction never contradict
# each other, and every task and queue that waits is listed or counted among further ones. What
# programs show, outside of any snapshot, lies between a count before and a count after.
# PULSE_JOBS says how many jobs (20,000), PULSE_SECONDS how long the load lasts (5).
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Depths;
use Pulse::Lines;
use Pulse::Server;
use Pulse::Session;
use Pulse::Shown;

my $jobs = $ENV{PULSE_JOBS} // 20_000;
my $seconds = $ENV{PULSE_SECONDS} // 5;
my $queues = 20_000;
my $node = start_server('main', settings => { %PATIENT, 'pulse.keep_completed' => '1 h' });
my $depths = Pulse::Depths->new($node);

# Jobs of 300 tasks: due, later, parked and due, parked and later, behind a pause.
value($node, q{SELECT pulse.pause_queue('queue 1')});
# Beyond the first thousand queues one has settings, so pages name the queue.
value($node, q{SELECT pulse.set_queue('queue 999', concurrency => 2)});
value($node, qq{INSERT INTO pulse.job (identifier, queue_name, state, run_at, priority)
    SELECT 'task ' || n % 300, CASE WHEN n % 5 > 1 THEN 'queue ' || n / 5 % $queues END,
           (CASE WHEN n % 5 > 1 THEN 'parked' ELSE 'ready' END)::pulse.job_state,
           now() + interval '1 s' * (CASE WHEN n % 5 IN (1, 3) THEN 3600.0 ELSE -1 END * n),
           n % 3
      FROM generate_series(1, $jobs) AS n});
# Jobs that wait for another, run, and have ended in each way.
value($node, q{SELECT pulse.add_job_after(ARRAY[j.id], 'child', queue_name =>
    CASE WHEN j.id % 2 = 0 THEN 'queue ' || j.id % 7 END) FROM pulse.job AS j
    WHERE j.state = 'ready' LIMIT 100});
value($node, q{DO $$
    DECLARE worker bigint := (SELECT id FROM pulse.register_worker('w'));
    BEGIN
      COMMIT;
      PERFORM pulse.add_job('held') FROM generate_series(1, 50);
      COMMIT;
      PERFORM pulse.claim(worker, 50, '{held}');
      COMMIT;
      PERFORM pulse.fail(h.id, h.token, 'broken', retry => false)
         FROM (SELECT * FROM pulse.held(worker) LIMIT 10) AS h;
      PERFORM pulse.complete(h.id, h.token) FROM (SELECT * FROM pulse.held(worker) LIMIT 10) AS h;
      PERFORM pulse.cancel_job(id) FROM pulse.job WHERE state = 'ready' LIMIT 10;
    END $$});
value($node, 'VACUUM (ANALYZE) pulse.job');
$depths->become_exact;

# In one snapshot: the figures of the views, and of count(*). A row is a name with both. The test
# counts the jobs by task and by queue once.
my $figures = q{
    WITH o AS MATERIALIZED (SELECT * FROM pulse.overview),
    s AS MATERIALIZED (SELECT * FROM pulse.stats(10000)),
    q AS MATERIALIZED (SELECT * FROM pulse.queue_status),
    truth AS MATERIALIZED (
      SELECT CASE WHEN grouping(identifier) = 0 THEN 'task' ELSE 'queue' END AS kind,
             coalesce(identifier, queue_name) AS name,
             count(*) FILTER (WHERE state <> 'running') AS waiting,
             count(*) FILTER (WHERE state = 'parked') AS parked,
             count(*) FILTER (WHERE state = 'running') AS running,
             count(*) FILTER (WHERE index_lane = 'w') AS after_others
        FROM pulse.job GROUP BY GROUPING SETS ((identifier), (queue_name))),
    t AS (SELECT * FROM truth WHERE kind = 'task'),
    u AS (SELECT * FROM truth WHERE kind = 'queue' AND name IS NOT NULL),
    sums AS (SELECT kind, sum(waiting) AS waiting, sum(running) AS running, sum(parked) AS parked,
                    count(*) FILTER (WHERE name IS NOT NULL) AS listed,
                    coalesce(sum(names) FILTER (WHERE name IS NULL), 0) AS further
               FROM s GROUP BY kind)
    SELECT 'live jobs', (SELECT sum(ready + parked + running) FROM pulse_internal.depths()
                          WHERE kind = 'all'), (SELECT sum(waiting + running) FROM t)
    UNION ALL SELECT 'running', (SELECT running FROM o), (SELECT sum(running) FROM t)
    UNION ALL SELECT 'waiting of tasks', (SELECT waiting FROM sums WHERE kind = 'task'),
                     (SELECT sum(waiting) FROM t)
    UNION ALL SELECT 'parked of tasks', (SELECT parked FROM sums WHERE kind = 'task'),
                     (SELECT sum(parked) FROM t)
    UNION ALL SELECT 'parked of the overview',
                     (SELECT parked_future + parked_paused + parked_full + parked_waiting FROM o
                       WHERE NOT estimated && '{parked_future,parked_full}'),
                     (SELECT sum(parked) FROM t CROSS JOIN o
                       WHERE NOT estimated && '{parked_future,parked_full}')
    UNION ALL SELECT 'after others of the overview', (SELECT parked_waiting FROM o),
                     (SELECT sum(after_others) FROM t)
    UNION ALL SELECT 'waiting of queues', (SELECT waiting FROM sums WHERE kind = 'queue'),
                     (SELECT sum(waiting) FROM u)
    UNION ALL SELECT 'tasks', (SELECT listed + further FROM sums WHERE kind = 'task'),
                     (SELECT count(*) FROM t)
    UNION ALL SELECT 'queues', (SELECT listed + further FROM sums WHERE kind = 'queue'),
                     (SELECT count(*) FROM u)
    UNION ALL SELECT 'waiting of the status',
                     (SELECT sum(waiting) FROM q WHERE queue_name IS NOT NULL),
                     (SELECT sum(parked) FROM u JOIN q ON q.queue_name = u.name)
    UNION ALL SELECT 'parents of the status',
                     (SELECT sum((reasons ->> 'parents')::int) FROM q),
                     (SELECT sum(after_others) FROM u JOIN q ON q.queue_name = u.name)
    UNION ALL SELECT 'running of the status',
                     (SELECT sum(running) FROM q WHERE queue_name IS NOT NULL),
                     (SELECT sum(u.running) FROM u JOIN q ON q.queue_name = u.name)
    UNION ALL SELECT 'queues of the status', (SELECT sum(names) FROM q), (SELECT count(*) FROM u)
    UNION ALL SELECT 'wrong names', (
      SELECT count(*) FROM s JOIN truth USING (kind, name)
       WHERE (s.waiting, s.running) IS DISTINCT FROM (truth.waiting, truth.running)), 0
    UNION ALL SELECT 'due that were seen beyond all', (
      SELECT greatest(sum(s.ready) - (SELECT count(*) FROM pulse.job
                                       WHERE state = 'ready' AND run_at <= pulse.now()), 0)
        FROM s WHERE kind = 'task' AND name IS NOT NULL AND NOT s.estimated), 0};
# Figures of the same transaction that must be the same.
my $contradictions = q{
    SELECT count(*) FILTER (WHERE a IS DISTINCT FROM b) FROM (
      WITH o AS MATERIALIZED (SELECT * FROM pulse.overview),
      s AS MATERIALIZED (SELECT * FROM pulse.stats(10000))
      SELECT (SELECT running FROM o) AS a,
             (SELECT sum(running)::bigint FROM s WHERE kind = 'task') AS b
      UNION ALL
      SELECT (SELECT sum(waiting) FROM s WHERE kind = 'task'),
             (SELECT ready + parked FROM pulse_internal.depths() WHERE kind = 'all')
      UNION ALL
      SELECT (SELECT extract(epoch FROM counted_at) FROM o),
             (SELECT max(extract(epoch FROM counted_at)) FROM s)) AS f};

# The largest error and how many contradictions one poll sees.
sub poll {
    my ($session) = @_;
    $session->query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    # The first statement takes the snapshot and the count, as each screen of a program does.
    $session->query('SELECT counted_at FROM pulse.overview');
    my $began = time;
    my @rows = map { [ split /[|]/ ] } split /\n/, $session->query($figures);
    my $contradicted = $session->query($contradictions);
    $session->query('COMMIT');
    my ($largest, $what) = (0, 'nothing');
    for (@rows) {
        next if $_->[0] eq 'wrong names';
        my $error = abs(($_->[1] || 0) - ($_->[2] || 0));
        ($largest, $what) = ($error, $_->[0]) if $error > $largest;
    }
    my ($wrong) = map { $_->[1] } grep { $_->[0] eq 'wrong names' } @rows;
    return { error => $largest, what => $what, wrong => $wrong, contradictions => $contradicted,
        took => time - $began };
}

# Of the jobs at a moment; queued: of those in queues.
my $counts = q{SELECT count(*) FILTER (WHERE state = 'ready' AND run_at <= now()),
    count(*) FILTER (WHERE state = 'ready' AND run_at > now()),
    count(*) FILTER (WHERE state = 'parked'), count(*) FILTER (WHERE state = 'running'),
    count(*) FILTER (WHERE state = 'ready' AND queue_name IS NOT NULL),
    count(*) FILTER (WHERE state = 'parked' AND queue_name IS NOT NULL),
    count(*) FILTER (WHERE state = 'running' AND queue_name IS NOT NULL) FROM pulse.job};

sub count_jobs {
    my ($session) = @_;
    my %count = (at => time);
    @count{ 'ready', 'future', 'parked', 'running', 'queued ready', 'queued parked',
        'queued running' } = split /[|]/, $session->query($counts);
    return \%count;
}

# The largest distance of a figure that a program shows from the counts around it, and which.
# `pulse top` looks each five seconds at least.
my @counted;

sub poll_shown {
    my ($session, $programs) = @_;
    push @counted, count_jobs($session);
    my $began = $counted[-1]{at};
    my $figures = $programs->figures;
    push @counted, count_jobs($session);
    my ($largest, $what) = (0, 'nothing');
    for my $from (sort keys %$figures) {
        my $since = $began - ($from eq 'top' ? 6 : 0);
        my @around = grep { $_->{at} >= $since } @counted;
        for my $of (sort keys %{ $figures->{$from} }) {
            my $shown = $figures->{$from}{$of} // next;
            my ($least, $most) = (sort { $a <=> $b } map { $_->{$of} } @around)[ 0, -1 ];
            my $error = $shown < $least ? $least - $shown : $shown > $most ? $shown - $most : 0;
            ($largest, $what) = ($error, "$of of $from") if $error > $largest;
        }
    }
    return { error => $largest, what => $what };
}

# The counts of each name as a page calls them.
sub counts_by_name {
    my ($session, $column, @titles) = @_;
    my %counts;
    for (split /\n/, $session->query(qq{SELECT $column, count(*) FILTER (WHERE state = 'parked'),
        count(*) FILTER (WHERE state = 'running'),
        count(*) FILTER (WHERE state = 'ready' AND ('$column' = 'queue_name' OR run_at <= now()))
        FROM pulse.job WHERE $column IS NOT NULL GROUP BY 1})) {
        my ($name, @numbers) = split /[|]/;
        @{ $counts{$name} }{@titles} = @numbers;
    }
    return \%counts;
}

my $session = Pulse::Session->new($node);
my $programs = Pulse::Shown->new($node);

subtest 'at rest' => sub {
    my $seen = poll($session);
    is($seen->{error}, 0, "no figure is wrong ($seen->{what})");
    is($seen->{wrong}, 0, 'nor one of a task or queue');
    is($seen->{contradictions}, 0, 'none contradicts another');
    is($depths->differences, '', 'no name is missing');
    is(value($node, q{SELECT count(*) FROM pulse.stats WHERE kind = 'queue' AND name IS NOT NULL
        AND waiting = 0}), 0, 'and the first thousand queues all wait');
    my $shown = poll_shown($session, $programs);
    is($shown->{error}, 0, "programs show the same ($shown->{what})");
    is(join(' ', $programs->wrong_names('/tasks',
        counts_by_name($session, 'identifier', qw(parked running ready)))), '',
        'as does each task of the page');
    is(join(' ', $programs->wrong_names('/queues',
        counts_by_name($session, 'queue_name', qw(parked running open)))), '', 'and each queue');
};

subtest 'under load' => sub {
    my @load = $depths->start_work($seconds);
    my %largest = (error => 0, contradictions => 0, took => 0);
    my ($polls, $off, $which) = (0, 0, 'nothing');
    for (my $end = time + $seconds; time < $end; $polls++) {
        my $seen = poll($session);
        for (keys %largest) { $largest{$_} = $seen->{$_} if $seen->{$_} > $largest{$_} }
        my $shown = poll_shown($session, $programs);
        ($off, $which) = @{$shown}{qw(error what)} if $shown->{error} > $off;
    }
    is(join('', map { $_->answer; $_->said =~ /ERROR.*/g } @load), '', 'the load works');
    my $ended = value($node,
        q{SELECT count(*) FROM pulse.finished_job WHERE identifier ~ '^t[0-6]$'});
    cmp_ok($ended, '>', 50, 'and ends jobs');
    diag(sprintf '%d jobs, %d of the load ended beside %d polls of at most %.1f s: the largest '
          . 'error is %d jobs, of programs %d (%s)', $jobs, $ended, $polls,
        @largest{qw(took error)}, $off, $which);
    is($largest{contradictions}, 0, 'no figure contradicts another');
    my ($seen, $shown);
    # The server opens jobs of queues for a while.
    for (my $end = time + $PostgreSQL::Test::Utils::timeout_default; time < $end;) {
        $seen = poll($session);
        last if "$seen->{error} $seen->{wrong}" eq '0 0';
        Pulse::Lines::pause();
    }
    is("$seen->{error} $seen->{wrong}", '0 0',
        "and afterwards all are right again ($seen->{what})");
    for (my $end = time + $PostgreSQL::Test::Utils::timeout_default; time < $end;) {
        @counted = ();
        $shown = poll_shown($session, $programs);
        last if $shown->{error} == 0;
        Pulse::Lines::pause();
    }
    is($shown->{error}, 0, "also in programs ($shown->{what})");
};

$programs->stop;

done_testing();
