# Jobs that wait and run are counted by the commits that add, move and end them, and nothing is
# counted that a count(*) would not find: whatever writes them, whatever is rolled back, and beside
# a recount under load.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Depths;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my $node = start_server('main', settings => { %PATIENT, 'pulse.keep_completed' => '0' });
my $depths = Pulse::Depths->new($node);
my $worker = Pulse::SqlWorker->new($node, 'ann');
$depths->become_exact;

subtest 'a table that nobody reads is not recounted' => sub {
    $node->restart;
    is(value($node, 'SELECT pulse_internal.recount_if_read()'), 'f', 'a sweep starts no recount');
    $depths->become_exact;
    value($node, q{BEGIN; SELECT pulse.add_job('two'); PREPARE TRANSACTION 'p'});
    value($node, q{COMMIT PREPARED 'p'});
    wait_until($node, 'SELECT pulse_internal.recount_if_read()', 'a later one does');
    $depths->become_exact;
    value($node, 'DELETE FROM pulse.job');
    $worker = Pulse::SqlWorker->new($node, 'ann');
};

subtest 'each step of a job is counted once' => sub {
    add_jobs($node, 'mail', 3);
    is($depths->of('task', 'mail'), '3|0|0', 'added');
    value($node, q{SELECT pulse.add_job('mail', queue_name => 'post') FROM generate_series(1, 4)});
    is($depths->of('task', 'mail'), '3|4|0', 'added behind a queue');
    is($depths->of('queue', 'post'), '0|4|0', 'which knows');
    my @jobs = $worker->claim(10);
    is(scalar @jobs, 4, 'three and the first of the queue');
    is($depths->of('task', 'mail'), '0|3|4', 'are claimed, in place and not');
    is($depths->of('queue', 'post'), '0|3|1', 'the queue has one that runs');
    isnt(value($node, q{SELECT claimed_at FROM pulse_internal.depths() WHERE name = 'post'}), '',
        'and was served');
    $worker->complete(@jobs[0, 1]);
    $worker->query("SELECT pulse.fail($jobs[2]{id}, $jobs[2]{token}, 'broken')");
    is($depths->of('task', 'mail'), '1|3|1', 'ended, and one waits again');
    is($depths->differences, '', 'and count(*) says the same');
};

subtest 'what is rolled back is not counted' => sub {
    my $session = Pulse::Session->new($node);
    $session->query('BEGIN');
    $session->query(q{SELECT pulse.add_job('ink') FROM generate_series(1, 5)});
    is($depths->of('task', 'ink'), '', 'nothing before the commit');
    is($session->query(q{SELECT ready FROM pulse_internal.depths() WHERE name = 'ink'}), '5',
        'but to the transaction itself');
    $session->query('SAVEPOINT one');
    $session->query(q{SELECT pulse.add_job('ink', queue_name => 'q')});
    $session->query('SAVEPOINT two');
    $session->query(q{DELETE FROM pulse.job WHERE identifier = 'ink'});
    $session->query('ROLLBACK TO two');
    $session->query('RELEASE one');
    $session->query('SAVEPOINT three');
    $session->query(q{SELECT pulse.add_job('ink')});
    $session->query('ROLLBACK TO three');
    $session->query('COMMIT');
    is($depths->of('task', 'ink'), '5|1|0', 'nor what a savepoint took back');
    $session->query(q{BEGIN; SELECT pulse.add_job('ink'); ROLLBACK});
    is($depths->of('task', 'ink'), '5|1|0', 'nor a transaction');
    is($depths->differences, '', 'and count(*) says the same');
};

subtest 'statements are counted, of the extension and of a superuser' => sub {
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'bulk', 'b' || n % 3, 'parked' FROM generate_series(1, 300) AS n});
    value($node, q{UPDATE pulse.job SET identifier = 'moved', queue_name = NULL, state = 'ready'
        WHERE queue_name = 'b1'});
    value($node, q{UPDATE pulse.job SET priority = 3 WHERE identifier = 'bulk'});
    value($node, q{DELETE FROM pulse.job WHERE queue_name = 'b2' AND id % 2 = 0});
    value($node, q{SELECT pulse.cancel_job(id) FROM pulse.job WHERE queue_name = 'b0' LIMIT 30});
    is($depths->of('task', 'moved'), '100|0|0', 'a change of all names');
    is($depths->differences, '', 'and count(*) says the same');
    value($node, q{SET session_replication_role = replica;
        DELETE FROM pulse.job WHERE identifier = 'moved'});
    is($depths->of('task', 'moved'), '', 'also of a session that replicates');
    value($node, 'CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS '
        . q{'BEGIN RETURN new; END'; CREATE TRIGGER watch BEFORE INSERT OR UPDATE ON pulse.job
        FOR EACH ROW EXECUTE FUNCTION watch()});
    add_jobs($node, 'watched', 4);
    $worker->complete($worker->claim(2));
    is($depths->differences, '', 'and what a trigger of a DBA makes statements of');
    value($node, 'DROP TRIGGER watch ON pulse.job');
};

subtest 'stats lists what was counted' => sub {
    value($node, 'DELETE FROM pulse.job');
    value($node, q{INSERT INTO pulse.job (identifier, run_at) SELECT 'many', now() - interval '1 h'
        FROM generate_series(1, 50000)});
    value($node, q{INSERT INTO pulse.job (identifier, run_at) SELECT 'many', now() + interval '1 h'
        FROM generate_series(1, 20)});
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'both', now() + interval '1 h' * side FROM generate_series(1, 1000),
               unnest('{-1, 1}'::int[]) AS side});
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'stuck ' || n, 'shop/' || n, 'parked' FROM generate_series(1, 40) AS n,
               generate_series(1, n)});
    value($node, q{SELECT pulse.pause_queue('shop')});
    my $told = sub {
        return value($node, "SELECT ready, future, parked, running, waiting, estimated
            FROM pulse.stats(100) WHERE name = '$_[0]'");
    };
    is($told->('many'), '50000|20|0|0|50020|f', 'a great many are exact');
    is($told->('both'), '150|150|0|0|2000|t',
        'of many due and many future ones what was seen, and all that wait');
    is($told->('stuck 7'), '0|0|7|0|7|f', 'a task of which all is parked is listed');
    is(value($node, q{SELECT count(*), sum(parked), bool_and(paused), min(oldest_due_age) > '0'
        FROM pulse.stats(100) WHERE name ~ '^shop/'}), '40|820|t|t', 'and each queue');
    is(value($node, q{SELECT name, names, parked FROM pulse.stats(10, 'queue') ORDER BY name
        OFFSET 10}), '|30|' . value($node, q{SELECT 820 - sum(parked) FROM pulse.stats(10, 'queue')
        WHERE name IS NOT NULL}), 'a last row adds up the rest');
    is(value($node, q{SELECT ready, future, due_next_minute, parked_future, parked_paused,
        parked_full, parked_waiting, running, estimated FROM pulse.overview}),
        '50150|170|0|0|820|0|0|0|{ready,future}', 'the overview adds up the same numbers');
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'both'});
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
        SELECT 'later', 'l', 'parked', now() + interval '1 h' FROM generate_series(1, 200)});
    my $behind_queues = q{SELECT parked_future, parked_paused, parked_full, estimated
        FROM pulse.overview};
    is(value($node, $behind_queues), '200|820|0|{}',
        'of many parked jobs all, where each queue has due or future jobs');
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
        SELECT 'more', 'shop/' || n % 5 + 1, 'parked', now() + interval '1 h'
          FROM generate_series(1, 30) AS n});
    is(value($node, $behind_queues), '230|820|0|{}', 'or few of either, also behind a pause');
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
        SELECT 'more', 'm', 'parked', now() + interval '1 h' * side
          FROM generate_series(1, 200), unnest('{-1, 1}'::int[]) AS side});
    is(value($node, $behind_queues), '246|820|16|{parked_future,parked_full}',
        'of a queue with many of both what was seen');
    value($node, q{UPDATE pulse.job SET queue_name = 'shop/1' WHERE queue_name = 'm'});
    is(value($node, $behind_queues), '244|839|0|{parked_future,parked_paused,parked_full}',
        'and so of a paused one');
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'more'});
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'more', repeat('é', 100), 'parked' FROM generate_series(1, 20)});
    is(value($node, $behind_queues), '200|820|0|{parked_paused,parked_full}',
        'a queue that is counted with others may be paused');
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'more'});
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'later' AND id % 2 = 0});
    is(value($node, q{SELECT ready, future, parked_future, parked_paused + parked_full
        FROM pulse.overview}), '50000|20|100|820', 'of one kind all');
    # Served a moment ago: so it comes last.
    my @jobs = $worker->claim(1);
    is(value($node, q{SELECT string_agg(name, ' ' ORDER BY name) FROM pulse.stats(42, 'task')
        WHERE name !~ 'stuck'}), 'later many', 'all are listed');
    is(value($node, q{SELECT count(*) FROM pulse.stats(41, 'task') WHERE name ~ 'stuck'}), 40,
        'those of which nothing was claimed for longest first');
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'a ' || n, now() + interval '1 h' FROM generate_series(1, 5) AS n});
    is(value($node, q{SELECT DISTINCT name ~ '^(a .|later)$'
        FROM (SELECT name FROM pulse.stats(1000, 'task') OFFSET 41) AS s}), 't',
        'tasks that have but future jobs come last, parked or not');
    is(value($node, q{SELECT count(*), count(*) FILTER (WHERE name ~ '^(a .|later)$')
        FROM pulse.stats(41, 'task') WHERE name IS NOT NULL}), '41|0',
        'and are left out first');
    for my $list (q{SELECT name FROM pulse.stats(40, 'queue')},
        q{SELECT queue_name AS name FROM pulse.queue_status(max_rows => 40)}) {
        is(value($node, "SELECT count(*) FILTER (WHERE name ~ '^shop/'),
            count(*) FILTER (WHERE name = 'l') FROM ($list) AS q"), '40|0',
            'as are such queues');
    }
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'a 3', now() - interval '1 h'});
    is(value($node, q{SELECT name FROM pulse.stats(42, 'task') WHERE name ~ '^(a .|later)$'}),
        'a 3', 'a due job moves its task to the others');
    my $future = q{SELECT ready, future, estimated FROM pulse.stats WHERE name = 'a 4'};
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'a 4', now() + interval '1 h' FROM generate_series(1, 3000)});
    is(value($node, $future), '0|3001|f', 'many future jobs are exact');
    value($node, q{UPDATE pulse.job SET run_at = now() - interval '1 h' WHERE id =
        (SELECT max(id) FROM pulse.job WHERE identifier = 'a 4')});
    is(value($node, $future), '1|3000|f', 'also if one becomes due by a change');
};

subtest 'what a transaction reads is one count' => sub {
    my $told = q{SELECT o.ready, o.counted_at = s.counted_at, s.ready FROM pulse.overview AS o,
        pulse.stats(10, 'task') AS s WHERE s.name = 'one'};
    value($node, 'DELETE FROM pulse.job');
    add_jobs($node, 'one', 2);
    my $session = Pulse::Session->new($node);
    $session->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    is($session->query($told), '2|t|2', 'of one moment');
    add_jobs($node, 'one', 3);
    is($session->query($told), '2|t|2', 'whatever commits meanwhile');
    $session->query(q{SAVEPOINT s; SELECT pulse.add_job('one')});
    cmp_ok($session->query(q{SELECT ready FROM pulse_internal.depths() WHERE name = 'one'}), '>=',
        3, 'and with its own changes');
    $session->query('ROLLBACK');
    is($session->query($told), '5|t|5', 'the next one reads anew');
    is(value($node, q{SELECT now() - counted_at < '1 min' FROM pulse.overview}), 't',
        'and tells when');
};

subtest 'queue_status lists the queues that are stuck' => sub {
    value($node, 'DELETE FROM pulse.job');
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'one', 'l/' || n, 'parked' FROM generate_series(1, 30) AS n,
               generate_series(1, 2)});
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'one', 'l/00', 'parked' FROM generate_series(1, 60000)});
    is(value($node, q{SELECT queue_name, waiting, open, reasons::text, estimated, names
        FROM pulse.queue_status(max_rows => 3) ORDER BY queue_name}), join("\n",
            'l|60060|0|{ "next" : 33337 }|t|1', 'l/00|60000|0|{ "next" : 33333 }|t|1',
            'l/1|2|0|{ "next" : 2 }|f|1', 'l/10|2|0|{ "next" : 2 }|f|1', '||||t|29'),
        'a level has all within it, and of many jobs some are looked at (shop is paused)');
    is(value($node, q{SELECT waiting, reasons::text, estimated FROM pulse.queue_status('l')}),
        '60060|{ "next" : 60060 }|f', 'all of those of one that is asked for');
    value($node, q{SELECT pulse.pause_queue('l/00')});
    is(value($node, q{SELECT waiting, reasons::text, estimated FROM pulse.queue_status('l')}),
        '60060|{ "next" : 60, "paused" : 60000 }|f', 'with their reasons');
    value($node, q{SELECT pulse.resume_queue('l/00')});
    is(value($node, q{SELECT waiting, (reasons ->> 'next')::int, estimated, names
        FROM pulse.queue_status('l', 4)}), '60060|60004|t|1',
        'of a level with more queues than are asked for all are counted, and some looked at');
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'one', 'l/00', 'parked' FROM generate_series(1, 60000)});
    is(value($node, q{SELECT waiting, (reasons ->> 'next')::int < 100060, estimated, names
        FROM pulse.queue_status('l')}), '120060|t|t|1', 'and so of one with many jobs');
    is(value($node, q{SELECT waiting, reasons::text, estimated
        FROM pulse.queue_status('l/00')}), '120000|{ "next" : 100000 }|t', 'or of a queue');
};

subtest 'a change that no commit counts is marked until the next recount' => sub {
    value($node, q{BEGIN; SELECT pulse.add_job('two') FROM generate_series(1, 3);
        PREPARE TRANSACTION 'p'});
    is($depths->of('task', 'two'), '', 'a prepared one is not counted');
    is($depths->is_exact, 't', 'which is right while it is in doubt');
    value($node, q{COMMIT PREPARED 'p'});
    # A reading starts the recount; all readings of a transaction are of the same count.
    my $session = Pulse::Session->new($node);
    $session->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    is($session->query('SELECT bool_or(is_exact) FROM pulse_internal.depths()'), 'f',
        'then it is marked');
    is($session->query('SELECT bool_and(estimated) FROM pulse.stats'), 't', 'in each row of stats');
    is($session->query('SELECT cardinality(estimated) FROM pulse.overview'), 8,
        'in each figure of the overview');
    is($session->query('SELECT count(*) FROM pulse.queue_status
        WHERE queue_name IS NULL AND names IS NULL'), 1, 'and a queue may be missing');
    $session->query('COMMIT');
    $depths->become_exact;
    is($depths->of('task', 'two'), '3|0|0', 'and recounted');
    is(value($node, 'SELECT bool_or(estimated) FROM pulse.stats'), 'f', 'unmarked');
    value($node, 'TRUNCATE pulse.job');
    is($depths->is_exact, 'f', 'so is a truncated table');
    $depths->become_exact;
    is($depths->differences, '', 'and count(*) says the same');
};

subtest 'a transaction that was prepared before a restart is marked, too' => sub {
    add_jobs($node, 'left', 2);
    value($node, q{BEGIN; DELETE FROM pulse.job WHERE identifier = 'left';
        PREPARE TRANSACTION 'p'});
    kill_server($node);
    $node->start;
    is(value($node, 'SELECT count(*) FROM pulse_internal.depths()'), 0, 'memory is lost');
    $depths->become_exact;
    is($depths->of('task', 'left'), '2|0|0', 'and counted anew');
    value($node, q{COMMIT PREPARED 'p'});
    is($depths->is_exact, 'f', 'what was prepared ends');
    $depths->become_exact;
    is($depths->of('task', 'left'), '', 'and is recounted');
};

subtest 'another installation begins anew' => sub {
    add_jobs($node, 'old', 2);
    value($node, q{DELETE FROM pulse.job; DROP EXTENSION pg_pulse CASCADE;
        CREATE EXTENSION pg_pulse});
    add_jobs($node, 'new', 2);
    is(value($node, 'SELECT count(*) FROM pulse_internal.depths()'), 0,
        'what the last one counted is not shown');
    $depths->become_exact;
    is($depths->differences, '', 'it is counted');
    $worker = Pulse::SqlWorker->new($node, 'ann');
};

subtest 'a recount beside commits loses none and counts none twice' => sub {
    for my $round (1 .. 3) {
        $depths->work_beside_recount(4);
        is($depths->differences, '', "round $round: at rest they agree with count(*)");
        is($depths->is_exact, 't', 'and say so');
    }
    $worker = Pulse::SqlWorker->new($node, 'ann');
};

subtest 'a transaction that a recount does not show is counted by its commit' => sub {
    $node->restart;
    my $early = Pulse::Session->new($node);
    $early->query('BEGIN');
    $early->query(q{SELECT pulse.add_job('early')});
    add_jobs($node, 'late', 1);
    $depths->become_exact;
    is($depths->of('task', 'early'), '', 'it was in progress when the recount began');
    is($depths->of('task', 'late'), '1|0|0', 'one that began later has committed');
    $early->query('COMMIT');
    is($depths->of('task', 'early'), '1|0|0', 'the commit adds what the recount did not show');
    is($depths->differences, '', 'and count(*) says the same');
    $worker = Pulse::SqlWorker->new($node, 'ann');
};

subtest 'jobs that a call does not read pass neither for due nor for none' => sub {
    value($node, 'DELETE FROM pulse.job');
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
        SELECT 'far', 'far', 'parked', now() + interval '1 day' FROM generate_series(1, 7);
        INSERT INTO pulse.job (identifier, run_at)
        SELECT 'far', now() + interval '1 day' FROM generate_series(1, 5)});
    is(value($node, q{SELECT jobs, is_exact FROM pulse_internal.count_live(clock_timestamp(),
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1) WHERE state = 'scheduled'}), '12|t',
        'parked jobs of tomorrow are scheduled, too');
    # Each task has an index page of its own, at least.
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT repeat('x', 100) || n, now() + day * interval '1 day'
          FROM generate_series(1, 900) AS n, generate_series(-1, 1, 2) AS day,
               generate_series(1, 50)});
    is(value($node, q{SELECT sum(ready) BETWEEN 1 AND 44999, bool_or(estimated)
        FROM pulse.stats(1000, 'task')}), 't|t', 'of many tasks some due jobs are told, no others');
    value($node, 'DELETE FROM pulse.job');
};

subtest 'names without end are counted together' => sub {
    value($node, 'DELETE FROM pulse.job');
    add_jobs($node, 'known', 2);
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'task ' || n % 5000, 'many/' || n, 'parked' FROM generate_series(1, 70000) AS n});
    is(value($node, q{SELECT sum(ready + parked) FROM pulse_internal.depths() WHERE kind = 'task'}),
        70_002, 'none is missing');
    is($depths->of('task', 'known'), '2|0|0', 'a known name keeps its counts');
    cmp_ok(value($node, q{SELECT parked FROM pulse_internal.depths()
        WHERE kind = 'queue' AND name IS NULL}), '>=', 70_000 - 65_536, 'further ones share');
    is(value($node, q{SELECT waiting BETWEEN 1000 AND 65536, estimated, names
        FROM pulse.queue_status('many')}), 't|t|', 'the status of their level says so');
    is(value($node, q{SELECT waiting, reasons::text, estimated, names
        FROM pulse.queue_status('many/7') UNION ALL
        SELECT waiting, reasons::text, estimated, names FROM pulse.queue_status('many/69999')}),
        qq(1|{ "next" : 1 }|f|1\n1|{ "next" : 1 }|f|1), 'and the one of a queue is exact');
    value($node, q{UPDATE pulse.job SET queue_name = 'some/' || queue_name
        WHERE queue_name ~ '[/][1-5]7$'});
    is(value($node, q{SELECT waiting, reasons::text, estimated, names
        FROM pulse.queue_status('some')}), '5|{ "next" : 5 }|f|1',
        'as that of a level with a few of them');
    is(value($node, q{SELECT sum(waiting), count(*) FILTER (WHERE name IS NULL AND names IS NULL)
        FROM pulse.stats(10000, 'task')}), '70002|1', 'stats says that tasks share a row');
    is(value($node, q{SELECT count(*) FILTER (WHERE oldest_is_known), count(oldest_due_at)
        FROM pulse.stats(1000, 'queue')}), '100|100', 'and of which queues it knows the age');
    value($node, q{DELETE FROM pulse.job WHERE identifier <> 'known'});
    is($depths->total, '2|0|0', 'and end there');
    # One recount finds the names without jobs, the next recount frees the names unused since.
    for (1, 2) {
        value($node, q{BEGIN; SELECT pulse.add_job('two'); PREPARE TRANSACTION 'p'});
        value($node, q{COMMIT PREPARED 'p'});
        $depths->become_exact;
    }
    value($node, q{INSERT INTO pulse.job (identifier)
        SELECT 'fresh ' || n FROM generate_series(1, 2000) AS n});
    is(value($node, q{SELECT count(*), sum(ready) FROM pulse_internal.depths()
        WHERE kind = 'task' AND name LIKE 'fresh %'}), '2000|2000',
        'new names then have their own');
    value($node, q{DELETE FROM pulse.job WHERE identifier <> 'known'});
    add_job($node, 'long', q{queue_name => repeat('ü', 128)});
    is($depths->total, '2|1|0', 'a queue name of many bytes is counted with them');
};

expect_healthy($node);
done_testing();
