# A snapshot that stays open keeps vacuum from what a queue leaves behind. Claims begin behind it
# all the same: they read as little as if nothing had been there. Counted in buffers, which no load
# changes.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

use constant { JOBS => 20_000, TRIES => 10 };

my $node = start_server('main', settings => { autovacuum => 'off' });
my $session = Pulse::Session->new($node);
my $id = $session->query(q{SELECT id FROM pulse.register_worker('one', '{work}')});

# Adds so many jobs, and claims and completes them 500 at a time.
sub drain {
    my ($jobs, $tasks) = @_;
    $session->query(qq{SELECT count(*) FROM pulse.add_jobs(
        array_fill('(work,,,,,,,)'::pulse.job_spec, '{$jobs}'))});
    $session->query(qq{
        DO \$\$
        DECLARE ids bigint[]; tokens bigint[];
        BEGIN
          LOOP
            SELECT array_agg(c.id), array_agg(c.token) INTO ids, tokens
              FROM pulse.claim($id, 500, $tasks) AS c;
            EXIT WHEN ids IS NULL;
            PERFORM pulse.complete_many(ids, tokens);
            COMMIT;
          END LOOP;
        END \$\$});
    return;
}

# What a claim that finds nothing reads, at best: where the jobs begin is forgotten now and then,
# and the next claim walks over all that is dead.
sub buffers_of_empty_claim {
    my ($tasks) = @_;
    my $least;
    for (1 .. TRIES) {
        my $plan = $session->query(qq{EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
            SELECT * FROM pulse.claim($id, 1, $tasks)});
        my ($hit, $read) = map { $plan =~ /"Shared $_ Blocks": (\d+)/ } qw(Hit Read);
        my $buffers = $hit + $read;
        $least = $buffers if !defined $least || $buffers < $least;
    }
    return $least;
}

drain(1000, $_) for q{'{work}'}, 'NULL';
my %clean = map { $_ => buffers_of_empty_claim($_) } q{'{work}'}, 'NULL';

my $reader = Pulse::Session->new($node);
$reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$reader->query('SELECT count(*) FROM pulse.job');

for my $tasks (q{'{work}'}, 'NULL') {
    drain(JOBS, $tasks);
    my $buffers = buffers_of_empty_claim($tasks);
    cmp_ok($buffers, '<', $clean{$tasks} + 50, "an empty claim of $tasks reads $buffers buffers");
    is($session->query(q{SELECT count(*) FROM pulse.add_job('work')}), 1, 'given a new job');
    is($session->query("SELECT count(*) FROM pulse.claim($id, 1, $tasks)"), 1, 'it is claimed');
}
is($session->query('SELECT count(*) FROM pulse.verify()'), 0, 'no promise is broken');

$reader->quit;
$session->quit;
expect_healthy($node);
done_testing();
