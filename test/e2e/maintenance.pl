# A DBA rewrites pulse.job with pg_repack, and hangs a trigger on it, while sessions add, claim and
# complete jobs: every change is seen by what hangs on the table, no claim is lost, and no job runs
# twice.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Lines;
use Pulse::Repack;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '60s' });
plan skip_all => 'no pg_repack is installed' if !has_repack();
my $admin = Pulse::Session->new($node);
$admin->query('CREATE EXTENSION pg_repack');
$admin->query('CREATE EXTENSION amcheck');

# --- the load -------------------------------------------------------------------------------------

# Works jobs off, so many at a time, and adds as many, of each kind. Now and then one fails and is
# retried, and a beat settles what was claimed in place.
sub work {
    my ($id, $many) = @_;
    return qq{DO \$\$
DECLARE ids bigint[]; tokens bigint[]; refused bigint; n int := 0;
BEGIN
  WHILE EXISTS (SELECT FROM go_on) OR EXISTS (SELECT FROM pulse.job) LOOP
    n := n + 1;
    SELECT array_agg(c.id), array_agg(c.token) INTO ids, tokens FROM pulse.claim($id, $many) AS c;
    COMMIT;
    IF EXISTS (SELECT FROM go_on) THEN
      PERFORM pulse.add_job('work', queue_name => 'q' || n % 8);
      PERFORM pulse.add_job('work', job_key => '$id x' || n) WHERE $many > 1;
      PERFORM pulse.add_jobs(array_fill('(work,,,,,,,)'::pulse.job_spec, '{$many}'))
        WHERE $many > 2;
      COMMIT;
    END IF;
    IF n % 5 = 0 THEN
      PERFORM pulse.heartbeat($id);
      COMMIT;
    END IF;
    IF ids IS NOT NULL AND n % 7 = 0 THEN
      PERFORM pulse.fail(ids[1], tokens[1], 'again', true, '0');
      COMMIT;
      ids := ids[2:];
      tokens := tokens[2:];
    END IF;
    IF cardinality(ids) > 0 THEN
      SELECT count(*) INTO refused FROM pulse.complete_many(ids, tokens)
       WHERE outcome <> 'accepted';
      IF refused > 0 THEN RAISE EXCEPTION '% not accepted', refused; END IF;
      COMMIT;
    END IF;
    PERFORM pulse.sweep();
    COMMIT;
  END LOOP;
END \$\$};
}

my $done = q{(SELECT count(*) FROM pulse.finished_job)};

sub wait_for_more {
    my $then = value($node, "SELECT $done");
    wait_until($node, "SELECT $done > $then + 200", 'the load goes on');
    return;
}

# Runs `meanwhile` while sessions add jobs and work them off, and says what became of the jobs.
sub under_load {
    my ($meanwhile) = @_;
    $admin->query('TRUNCATE pulse.finished_job');
    $admin->query('CREATE TABLE go_on AS SELECT 1 AS yes');
    my @workers = map { Pulse::SqlWorker->new($node, "worker $_", interval => '0') } 1 .. 5;
    my @at_once = (1, 1, 7, 20, 50);
    $_->ask(work($_->id, shift @at_once)) for @workers;
    wait_for_more();
    $meanwhile->();
    wait_for_more();
    $admin->query('DELETE FROM go_on');
    for (@workers) {
        $_->answer;
        unlike($_->said, qr/ERROR|FATAL/, 'no transaction failed');
        $_->quit;
    }
    $admin->query('DROP TABLE go_on');
    is( value($node, q{SELECT state, count(*) FROM pulse.finished_job WHERE state <> 'completed'
            GROUP BY 1}),
        '', 'every job completed');
    is( value($node, q{SELECT count(*) FROM pulse.finished_job AS f WHERE f.attempts <>
            (SELECT count(*) FROM pulse.attempt AS a WHERE a.job_id = f.id)}),
        0, 'in as many attempts as are told of');
    is( value($node, q{SELECT count(*) FROM pulse.attempt
            WHERE outcome NOT IN ('completed', 'failed')}),
        0, 'none of which was lost');
    is(value($node, 'SELECT count(*) FROM pulse.job'), 0, 'none is left');
    is(value($node, 'SELECT * FROM pulse.verify()'), '', 'no promise is broken');
    is( value($node, q{SELECT count(bt_index_check(indexrelid, true)) > 0 FROM pg_index
            WHERE indrelid = 'pulse.job'::regclass}),
        't', 'indexes have all jobs');
    return;
}

# --- what a DBA does ------------------------------------------------------------------------------

sub repack_job {
    my $file = value($node, q{SELECT pg_relation_filenode('pulse.job')});
    is(repack($node, \&Pulse::Lines::pause, qw(--no-order --table pulse.job)), '',
        'pg_repack succeeds');
    isnt(value($node, q{SELECT pg_relation_filenode('pulse.job')}), $file, 'the table is another');
    is( value($node, q{SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pulse.job'::regclass
            AND tgfoid <> 'pulse_internal.count_written_job'::regproc}),
        0, 'nothing of others hangs on it any more');
    return;
}

for my $round (1 .. 3) {
    subtest "pulse.job is repacked under load, round $round" => sub { under_load(\&repack_job) };
}

# The first change that a trigger sees of a job may be any; from then on it sees each.
my $unseen = q{
    SELECT count(*) FROM (SELECT a.*, lag(a.became) OVER w AS before, lag(a.seq) OVER w AS at
                            FROM audit AS a WINDOW w AS (PARTITION BY a.id ORDER BY a.seq)) AS s
     WHERE s.at IS NOT NULL AND s.was IS DISTINCT FROM s.before};

sub audit_jobs {
    $admin->query(q{CREATE TABLE audit (seq bigserial, op text, id bigint, was text, became text)});
    $admin->query(q{CREATE FUNCTION audit_row() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO public.audit (op, id, was, became) VALUES
            (TG_OP, coalesce(NEW.id, OLD.id), CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END,
             CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END);
          RETURN NULL;
        END $$});
    $admin->query(q{CREATE TRIGGER audit_row AFTER INSERT OR UPDATE OR DELETE ON pulse.job
        FOR EACH ROW EXECUTE FUNCTION audit_row()});
    return;
}

subtest 'a trigger that is hung on pulse.job under load sees every change from then on' => sub {
    under_load(\&audit_jobs);
    is(value($node, $unseen), 0, 'no change was unseen');
    is( value($node, q{SELECT count(*) FROM (SELECT DISTINCT ON (id) op FROM audit
            ORDER BY id, seq DESC) AS last WHERE op <> 'DELETE'}),
        0, 'nor the end of a job');
    cmp_ok(value($node, q{SELECT count(*) FROM audit WHERE op = 'UPDATE'}), '>', 100,
        'it has seen claims');
    $admin->query('DROP TRIGGER audit_row ON pulse.job; DROP TABLE audit');
};

$admin->quit;
expect_healthy($node);
done_testing();
