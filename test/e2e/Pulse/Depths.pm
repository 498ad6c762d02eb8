# What a server counted of the jobs that wait and run, and whether count(*) says the same.
package Pulse::Depths;

use strict;
use warnings FATAL => 'all';

use Pulse::Server;
use Pulse::Session;

sub new {
    my ($class, $node) = @_;
    return bless { node => $node }, $class;
}

sub of {
    my ($self, $kind, $name) = @_;
    return value($self->{node}, qq{SELECT ready, parked, running FROM pulse_internal.depths()
        WHERE kind = '$kind' AND name = '$name'});
}

sub total {
    my ($self) = @_;
    return value($self->{node},
        q{SELECT ready, parked, running FROM pulse_internal.depths() WHERE kind = 'all'});
}

# Empty where nothing was counted.
sub is_exact {
    my ($self) = @_;
    return value($self->{node}, 'SELECT bool_and(is_exact) FROM pulse_internal.depths()');
}

sub become_exact {
    my ($self) = @_;
    wait_until($self->{node}, 'SELECT coalesce(bool_and(is_exact), false)
        FROM pulse_internal.depths()', 'the jobs were recounted');
    return;
}

# Each name of which count(*) says something else; empty where both agree.
sub differences {
    my ($self) = @_;
    return value($self->{node}, q{
        WITH live AS (
          SELECT 'task' AS kind, identifier AS name, state::text AS state FROM pulse.job
          UNION ALL
          SELECT 'queue', queue_name, state::text FROM pulse.job WHERE queue_name IS NOT NULL
        ), seen AS (
          SELECT kind, name, count(*) FILTER (WHERE state = 'ready') AS ready,
                 count(*) FILTER (WHERE state = 'parked') AS parked,
                 count(*) FILTER (WHERE state = 'running') AS running
            FROM live GROUP BY kind, name
        )
        SELECT kind, name, s.ready, s.parked, s.running, d.ready, d.parked, d.running
          FROM seen AS s
          FULL JOIN (SELECT * FROM pulse_internal.depths() WHERE kind <> 'all') AS d
               USING (kind, name)
         WHERE (s.ready, s.parked, s.running) IS DISTINCT FROM (d.ready, d.parked, d.running)
         ORDER BY kind, name LIMIT 5});
}

# Sessions add, claim, end and move jobs for so many seconds beside the recount of a large table,
# the first one after a start, so that no pause precedes it. Beside many names a recount holds its
# lock for long enough that commits wait for it.
sub work_beside_recount {
    my ($self, $seconds) = @_;
    my $node = $self->{node};
    $node->restart;
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'far'});
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
        SELECT 'far', 'far ' || n, 'parked', now() + interval '1 day'
          FROM generate_series(1, 50000) AS n});
    my @sessions = $self->start_work($seconds);
    $self->become_exact;
    my $said = join '', map { $_->answer; $_->said } @sessions;
    die $said if $said =~ /ERROR/;
    return;
}

# Three sessions that add, claim, end and move jobs for so many seconds; they answer at the end.
sub start_work {
    my ($self, $seconds) = @_;
    my $node = $self->{node};
    value($node, q{CREATE OR REPLACE PROCEDURE work(number int, until timestamptz)
        LANGUAGE plpgsql AS $$
        DECLARE
          worker bigint := (SELECT id FROM pulse.register_worker('w' || number));
        BEGIN
          COMMIT;
          WHILE clock_timestamp() < until LOOP
            PERFORM pulse.add_job('t' || n % 7, queue_name =>
                      CASE WHEN random() < 0.5 THEN 'q' || (random() * 50)::int END)
               FROM generate_series(1, (random() * 10)::int) AS n;
            COMMIT;
            PERFORM pulse.complete(c.id, c.token)
               FROM pulse.claim(worker, (random() * 12)::int + 1, '{t0,t1,t2,t3,t4,t5,t6}') AS c
              WHERE random() < 0.9;
            IF random() < 0.1 THEN ROLLBACK; ELSE COMMIT; END IF;
            UPDATE pulse.job SET queue_name = 'q' || (random() * 50)::int
             WHERE id IN (SELECT id FROM pulse.job
                           WHERE state = 'parked'
                             AND id > (SELECT random() * max(id) FROM pulse.job)
                           ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED);
            COMMIT;
          END LOOP;
        END $$});
    my @sessions = map { Pulse::Session->new($node) } 1 .. 3;
    for my $number (0 .. $#sessions) {
        $sessions[$number]->ask(
            "CALL work($number, clock_timestamp() + interval '$seconds s')");
    }
    return @sessions;
}

1;
