# Depths have two roads: the counts of commits, and where no commit counts the jobs themselves, up
# to a bound. On both roads each figure means the same, in all views: the same jobs on a primary,
# which counts, and on its standby, which reads, are told as one snapshot counts them.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Depths;
use Pulse::Server;

my $primary = start_server('primary', streaming => 1, settings => \%PATIENT);
my $depths = Pulse::Depths->new($primary);

# Jobs behind queues, in paused queues (by an operator, by the end of a job, by a level), after
# others, and with an undecided key.
value($primary, q{SELECT pulse.pause_queue('stopped'), pulse.pause_queue('closed'),
    pulse.set_queue('strict', strict => true, on_dead => 'pause'), pulse.add_job('parent')});
value($primary, q{INSERT INTO pulse.queue_pause (queue_name, job_id, created_at, is_paused)
    VALUES ('strict', 77, now(), true)});
value($primary, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
    SELECT 'one', q.name, 'parked', now() + q.due
      FROM (VALUES ('stopped', interval '-1 h', 200), ('q', interval '-1 h', 5),
              ('q', interval '1 h', 3), ('strict', interval '-1 h', 4),
              ('closed/a', interval '-1 h', 6), ('l/a', interval '-1 h', 7),
              ('l/b', interval '1 h', 8)) AS q (name, due, jobs),
           generate_series(1, q.jobs)});
value($primary, q{INSERT INTO pulse.job (identifier, queue_name, state, waits_on)
    SELECT 'two', q.name, 'parked', p.id
      FROM (SELECT id FROM pulse.job WHERE identifier = 'parent') AS p,
           (VALUES ('stopped', 40), ('q', 2), ('only', 3), ('l/b', 1), (NULL, 9)) AS q (name, jobs),
           generate_series(1, q.jobs)});
value($primary, q{INSERT INTO pulse.job (identifier, queue_name, state, job_key, key_is_undecided)
    VALUES ('three', 'q', 'parked', 'k', true)});
value($primary, q{INSERT INTO pulse.job (identifier, queue_name) SELECT 'four', 'l/c'});
value($primary, q{DO $$
    DECLARE worker bigint := (SELECT id FROM pulse.register_worker('w'));
    BEGIN
      COMMIT;
      PERFORM pulse.claim(worker, 1, '{four}');
    END $$});

$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my %road = ('where commits count' => $primary, 'where no commit counts' => $standby);

# Of each queue with jobs: what the job table has, and then what the views tell otherwise.
my $wrong_queues = q{
    WITH truth AS MATERIALIZED (
      SELECT queue_name AS name, count(*) FILTER (WHERE state = 'parked') AS parked,
             count(*) FILTER (WHERE state = 'ready') AS open,
             count(*) FILTER (WHERE state = 'running') AS running,
             count(*) FILTER (WHERE index_lane = 'w') AS after_others,
             count(*) FILTER (WHERE index_lane = 'k') AS undecided,
             count(*) FILTER (WHERE index_lane = 'p' AND run_at > now()) AS future,
             queue_name IN ('stopped', 'strict', 'closed/a') AS paused
        FROM pulse.job WHERE queue_name IS NOT NULL GROUP BY queue_name
    ), told AS (
      SELECT s.name, s.parked, s.ready AS open, s.running, s.parked AS waiting, NULL AS reasons,
             s.paused
        FROM pulse.stats(of_kind => 'queue') AS s
      UNION ALL
      SELECT q.queue_name, q.waiting, q.open, q.running, q.waiting, q.reasons, NULL
        FROM pulse.queue_status AS q
       WHERE NOT EXISTS (SELECT FROM truth AS t WHERE t.name LIKE q.queue_name || '/%')
         AND q.queue_name IN (SELECT name FROM truth)
      UNION ALL
      SELECT q.queue_name, q.waiting, q.open, q.running, q.waiting, q.reasons, NULL
        FROM truth AS t, pulse.queue_status(t.name) AS q
    )
    SELECT t.name, t, o FROM truth AS t LEFT JOIN told AS o USING (name)
     WHERE (o.parked, o.open, o.running) IS DISTINCT FROM (t.parked, t.open, t.running)
        OR o.paused <> t.paused
        OR (coalesce((o.reasons ->> 'parents')::int, 0),
            coalesce((o.reasons ->> 'key undecided')::int, 0),
            coalesce((o.reasons ->> 'future')::int, 0),
            (SELECT coalesce(sum(r.value::int), 0) FROM json_each_text(o.reasons) AS r))
           IS DISTINCT FROM (t.after_others, t.undecided, t.future, t.parked)
           AND o.reasons IS NOT NULL
     ORDER BY t.name LIMIT 5};
# How often the views name each queue: no queue is missing.
my $listed = q{SELECT (SELECT count(*) FROM pulse.stats(of_kind => 'queue')),
    (SELECT count(*) FROM pulse.queue_status
      WHERE queue_name IN (SELECT queue_name FROM pulse.job))};
# Without claims every due job of the paused queues waits for the pause.
my $overview = q{SELECT ready, future, parked_future, parked_paused, parked_full, parked_waiting,
    running FROM pulse.overview};
my $counted = q{SELECT count(*) FILTER (WHERE state = 'ready'), 0,
    count(*) FILTER (WHERE index_lane = 'p' AND run_at > now()), 210,
    count(*) FILTER (WHERE state = 'parked' AND run_at <= now() AND waits_on IS NULL) - 210,
    count(*) FILTER (WHERE waits_on IS NOT NULL), count(*) FILTER (WHERE state = 'running')
    FROM pulse.job};
my $level = q{SELECT queue_name, waiting, running, reasons ->> 'future', reasons ->> 'parents'
    FROM pulse.queue_status('l') UNION ALL
    SELECT queue_name, waiting, running, reasons ->> 'future', reasons ->> 'parents'
    FROM pulse.queue_status WHERE queue_name = 'l'};
my $sums = q{SELECT sum(s.parked) = max(o.parked_future + o.parked_paused + o.parked_full
           + o.parked_waiting), sum(s.running) = max(o.running), sum(s.ready) = max(o.ready)
    FROM pulse.overview AS o, pulse.stats(of_kind => 'task') AS s};
# Of all jobs, each task and each queue: what count_jobs() tells wrongly, or not exactly.
my $unlike_states = q{
    WITH asked (task, queue) AS (
      SELECT NULL, NULL UNION ALL SELECT DISTINCT identifier, NULL FROM pulse.job
      UNION ALL SELECT DISTINCT NULL, queue_name FROM pulse.job WHERE queue_name IS NOT NULL
    ), truth AS (
      SELECT a.task, a.queue, s.state, count(*) FILTER (WHERE CASE s.state
               WHEN 'due' THEN j.state = 'ready' AND j.run_at <= now()
               WHEN 'scheduled' THEN j.state <> 'running' AND j.run_at > now()
               ELSE j.state::text = s.state END) AS jobs
        FROM asked AS a CROSS JOIN unnest('{due,scheduled,parked,running}'::text[]) AS s (state)
        JOIN pulse.job AS j ON j.identifier = coalesce(a.task, j.identifier)
         AND (a.queue IS NULL OR j.queue_name = a.queue)
       GROUP BY 1, 2, 3
    )
    SELECT coalesce(t.task, t.queue, 'all'), t.state,
           CASE WHEN c.is_exact OR c.jobs > t.jobs THEN c.jobs || ' of ' || t.jobs END
      FROM truth AS t CROSS JOIN LATERAL pulse.count_jobs(t.task, t.queue) AS c
     WHERE c.state = t.state AND (c.jobs <> t.jobs OR NOT c.is_exact) ORDER BY 1, 2};

$depths->become_exact;
$primary->wait_for_catchup($standby);
for my $road (sort keys %road) {
    subtest $road => sub {
        is(value($road{$road}, $wrong_queues), '', 'each queue is told as it is, in each view');
        is(value($road{$road}, $listed), '8|8', 'and none is missing');
        is(value($road{$road}, $level), "l|16|1|8|1\nl|16|1|8|1",
            'a level has all jobs within, also those after others');
        is(value($road{$road}, $overview), value($primary, $counted),
            'the overview counts the same jobs');
        is(value($road{$road}, $sums), 't|t|t', 'and adds up to the counts of the tasks');
        is(value($road{$road}, $unlike_states), '',
            'so do the states of all jobs, of each task and of each queue');
    };
}
is(value($primary, q{SELECT queue_name FROM pulse.queue_settings WHERE paused ORDER BY 1}),
    "closed\nstopped\nstrict", 'stored settings tell a pause by the end of a job too');

value($primary, q{INSERT INTO pulse.job (identifier, queue_name, state, waits_on)
    SELECT 'two', 'q', 'parked', p.id FROM pulse.job AS p, generate_series(1, 1200)
     WHERE p.identifier = 'parent'});
$primary->wait_for_catchup($standby);
my $status = q{SELECT waiting BETWEEN 900 AND j.parked, waiting = j.parked, estimated,
    (reasons ->> 'parents')::int BETWEEN 900 AND 1202
    FROM pulse.queue_status('q'), (SELECT count(*) AS parked FROM pulse.job
                                    WHERE queue_name = 'q' AND state = 'parked') AS j};
is(value($primary, $status), 't|t|f|t', 'beyond the bound the counts of commits stay exact');
is(value($standby, $status), 't|f|t|t', 'elsewhere the row says that there are more');
is(value($primary, $unlike_states),
    "l/b|due|\nl/b|scheduled|\none|scheduled|\nq|due|\nq|scheduled|",
    'beside many jobs no index tells which parked ones are due, and the count of states says so');

subtest 'without a pause' => sub {
    value($primary, q{SELECT pulse.resume_queue('stopped'), pulse.resume_queue('closed'),
        pulse.resume_queue('strict')});
    $primary->wait_for_catchup($standby);
    for my $road (sort keys %road) {
        is(value($road{$road}, 'SELECT parked_paused, parked_full > 200 FROM pulse.overview'),
            '0|t', "no job is behind a pause $road");
    }
};

subtest 'jobs that their parents let go' => sub {
    value($primary, q{UPDATE pulse.job SET waits_on = NULL WHERE queue_name = 'only'});
    is(value($primary, q{SELECT waiting, reasons::text FROM pulse.queue_status('only')}),
        '3|{ "next" : 3 }', 'wait behind their queue');
    is(value($primary, q{SELECT parked, after_others FROM pulse_internal.depths()
        WHERE kind = 'queue' AND name = 'only'}), '3|0', 'as commits count them');
    my $recounted = value($primary, q{SELECT sum(after_others), sum(parked), sum(running)
        FROM pulse_internal.depths() WHERE kind <> 'all'});
    $primary->restart;
    $depths->become_exact;
    is(value($primary, q{SELECT sum(after_others), sum(parked), sum(running)
        FROM pulse_internal.depths() WHERE kind <> 'all'}), $recounted, 'and a recount');
};

done_testing();
