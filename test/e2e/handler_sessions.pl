# Functions of the database run in sessions that served other jobs: nothing of a job reaches a
# later one, however it ended, and nobody who sets handlers gains the worker's rights.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Litter;
use Pulse::Server;
use Pulse::Worker;

my $node = start_server('main', settings => \%PATIENT);
make_litter_tasks($node);

sub seen { return value($node, "SELECT what FROM app.seen WHERE job_id = $_[0]") }
sub pid_of { return value($node, "SELECT pid FROM app.seen WHERE job_id = $_[0]") }

subtest 'in a worker' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'worker');
    my @jobs = map { litter($node, qq({"tenant": "$_"})) } qw(ann bob);
    $worker->wait_for('completed', job => $_) for @jobs;
    is(seen($jobs[1]), '', 'a job finds nothing of an earlier one of its task');
    is(pid_of($jobs[0]), pid_of($jobs[1]), 'in the same session');
    is( value($node, q{SELECT string_agg(tenant || ' ' || seen_by_trigger, ', ' ORDER BY tenant)
        FROM app.checked}), 'ann ann, bob bob', 'deferred triggers see the settings of their job');

    my $look = add_job($node, 'look');
    $worker->wait_for('completed', job => $look);
    is(seen($look), '', 'nor one of another task');
    my $failed = litter($node, '{"tenant": "eve", "end": "fail"}');
    $worker->wait_for('failed', job => $failed);
    my @after = (map({ add_job($node, $_) } 'look', 'look too'),
        litter($node, '{"tenant": "joe"}'));
    $worker->wait_for('completed', job => $_) for @after;
    is(seen($_), '', 'nor after a failure') for @after;
    is(value($node, q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
        AND objid IN (17, 18)}), 0, 'no lock of any job is left');
    $worker->wait_for('completed', job => add_job($node, 'fails within'));
    $worker->wait_for('completed', job => add_job($node, 'fails within'));
    is(value($node, q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 19}),
        0, 'nor one of what a job has undone');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

# The worker is a superuser's, as in the examples of many a blog.
subtest 'an operator and the rights of the worker' => sub {
    $node->safe_psql('postgres', <<'SQL');
CREATE ROLE op LOGIN;
SELECT pulse.grant_operator('op'), pulse.grant_producer('op');
CREATE SCHEMA op AUTHORIZATION op;
CREATE TABLE app.stolen (who text, card text);
GRANT USAGE ON SCHEMA app TO op;
GRANT INSERT ON app.stolen TO PUBLIC;
CREATE FUNCTION public.norm(card text) RETURNS text LANGUAGE sql AS 'SELECT card';
CREATE FUNCTION app.honest(payload json) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN norm(payload ->> 'card');
END $$;
SELECT pulse.set_task('honest', handler => 'app.honest(json)');
SET SESSION AUTHORIZATION op;
CREATE TABLE op.bait (x int);
CREATE FUNCTION op.rise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  ALTER ROLE op SUPERUSER;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON op.bait DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION op.rise();
CREATE FUNCTION op.baits(payload json) RETURNS void LANGUAGE sql SECURITY DEFINER
  AS 'INSERT INTO op.bait VALUES (1)';
CREATE FUNCTION op.norm(card text) RETURNS text LANGUAGE sql AS $$
  INSERT INTO app.stolen VALUES (current_user, card) RETURNING card $$;
CREATE FUNCTION op.poisons(payload json) RETURNS text LANGUAGE sql SECURITY DEFINER
  AS $$ SELECT set_config('search_path', 'op, public', false) $$;
SELECT pulse.set_task('baits', max_attempts => 1, handler => 'op.baits(json)'),
  pulse.set_task('honest too', handler => 'op.poisons(json)');
SQL
    my $worker = Pulse::Worker->start_registered($node, 'super');
    my $job = add_job($node, 'baits');
    $worker->wait_for('failed', job => $job);
    is(value($node, q{SELECT rolsuper FROM pg_roles WHERE rolname = 'op'}), 'f',
        'a deferred trigger makes no superuser of an operator');
    my $error = value($node, "SELECT job ->> 'last_error' FROM pulse.get_job($job)");
    like($error, qr/^42501: .*\nDETAIL: Handler op\.baits\(json\) runs restricted/,
        'the error says why');
    like($error, qr/\nHINT: Let it do without .*, or GRANT \w+ TO op\./, 'and what to do');
    $worker->wait_for('completed', job => add_job($node, 'honest too'));
    # The same session, as if both handlers were of one task.
    value($node, q{SELECT pulse.set_task('honest too', handler => 'app.honest(json)')});
    for my $task ('honest too', 'honest') {
        my $honest = value($node, qq{SELECT id FROM pulse.add_job('$task', '{"card": "4111"}')});
        $worker->wait_for('completed', job => $honest);
    }
    is(value($node, 'SELECT count(*) FROM app.stolen'), 0, 'no search_path reaches a later job');
    is( value($node, q{SELECT string_agg(detail, '') FROM pulse.doctor()
        WHERE finding = 'restricted handlers'}) =~ /owner op may not act .*: baits\.$/ ? 1 : 0, 1,
        'doctor() names the handlers that run restricted');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

expect_healthy($node);
done_testing();
