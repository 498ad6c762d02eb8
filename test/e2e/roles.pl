# Roles with the rights of their kind and no others: they suffice for pulse-worker and producers, a
# dump takes them along, and what jobs carry is not written where others read it.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

use constant DRAINED => 0;
use constant SECRET => 'hunter2';

my $node = start_server('main', settings => {
    %PATIENT, log_error_verbosity => 'verbose', log_min_messages => 'info' });
my @kinds = qw(producer worker operator observer);
for my $kind (@kinds) {
    value($node, "CREATE ROLE a_$kind LOGIN; SELECT pulse.grant_$kind('a_$kind')");
}
value($node, 'CREATE ROLE nobody_here LOGIN');

# A session of this kind of role.
sub as {
    my ($kind) = @_;
    my $session = Pulse::Session->new($node);
    $session->query("SET SESSION AUTHORIZATION a_$kind");
    return $session;
}

subtest 'a producer adds, and pulse-worker runs with the rights of a worker' => sub {
    my $tasks = Pulse::Tasks->new(
        run => 'tell ran', slow => 'tell began; wait_at slow', fall => 'exit 1');
    my $producer = as('producer');
    my @jobs = map { $producer->query("SELECT id FROM pulse.add_job('run')") } 1 .. 3;
    my $failing = $producer->query(q{SELECT id FROM pulse.add_job('fall', max_attempts => 1)});
    my $worker = Pulse::Worker->start_registered($node, 'runner', tasks => $tasks,
        database => 'postgres user=a_worker', options => [ '--heartbeat-interval', '200ms' ]);
    $worker->wait_for('completed', job => $_) for @jobs;
    $worker->wait_for('failed', job => $failing);
    my $slow = $producer->query(q{SELECT id FROM pulse.add_job('slow')});
    $tasks->wait_for('began', job => $slow);
    my $operator = as('operator');
    is($operator->query("SELECT pulse.cancel_job($slow)"), 'running', 'an operator cancels');
    wait_until($node, "SELECT state = 'cancelled' FROM pulse.finished_job WHERE id = $slow",
        'the job is cancelled');
    my $id = $worker->id;
    is($operator->query("SELECT pulse.drain_worker($id)"), 'draining', 'and drains');
    is($worker->wait_exit, DRAINED, 'the worker leaves in order');
    my $observer = as('observer');
    is( $observer->query('SELECT state FROM pulse.worker_status WHERE id = ' . $id),
        'stopped', 'an observer sees it');
    is($observer->refusal('SELECT * FROM pulse.finished_job'), '42501', 'but no job');
    $_->quit for $producer, $operator, $observer;
};

subtest 'grants survive a dump' => sub {
    my $file = PostgreSQL::Test::Utils::tempdir . '/dump';
    value($node, 'CREATE DATABASE copy');
    $node->command_ok([ 'pg_dump', '-Fc', '-f', $file, $node->connstr('postgres') ], 'pg_dump');
    $node->command_ok(
        [ 'pg_restore', '--exit-on-error', '-d', $node->connstr('copy'), $file ], 'pg_restore');
    my $rights = q{SELECT r.kind, pulse_internal.object_name(r.class, r.id) AS object,
            CASE r.class WHEN 'ROUTINE'
                   THEN has_function_privilege('a_' || r.kind, r.id, r.privilege)
                 WHEN 'TABLE' THEN has_table_privilege('a_' || r.kind, r.id, r.privilege)
                 WHEN 'TYPE' THEN has_type_privilege('a_' || r.kind, r.id, r.privilege)
                 ELSE has_schema_privilege('a_' || r.kind, r.id, r.privilege) END AS granted
          FROM pulse_internal.rights() AS r
         WHERE r.kind IN ('producer', 'worker', 'operator', 'observer')};
    is( value($node, "SELECT kind, count(*) FROM ($rights) AS r WHERE NOT granted GROUP BY kind",
            'copy'), '', 'every right of each kind is there');
    my $public = q{SELECT count(*) FROM pg_proc
        WHERE pronamespace = ANY ('{pulse,pulse_internal}'::regnamespace[])
          AND has_function_privilege('nobody_here', oid, 'EXECUTE')};
    is(value($node, $public, 'copy'), 0, 'and nothing was granted to everybody');
    value($node, "SELECT pulse.revoke_$_('a_$_')", 'copy') for @kinds;
    is( value($node, "SELECT kind, object FROM ($rights) AS r WHERE granted", 'copy'),
        '', 'what came with the dump can be revoked there');
};

# Whoever reads the log learns of no payload, error, checkpoint, result or token, whatever goes
# wrong; the statements that brought them are the client's to keep out (here they name a table).
subtest 'what jobs carry is not in the log' => sub {
    my $owner = Pulse::Session->new($node);
    $owner->query(q{CREATE TABLE secret AS
        SELECT '"} . SECRET . q{"'::json AS document, '} . SECRET . q{' AS word});
    my $from = -s $node->logfile;
    my $worker = $owner->query(q{SELECT id FROM pulse.register_worker('logged')});
    my $job = $owner->query(q{SELECT j.id FROM secret, pulse.add_job('log', document) AS j});
    $owner->query("CREATE TABLE claim AS SELECT id, token FROM pulse.claim($worker, 1, '{log}')");
    my $token = $owner->query('SELECT token FROM claim');
    my %refused = (
        PU004 => [
            q{SELECT pulse.add_job('', document) FROM secret},
            q{SELECT pulse.add_job('log', document, max_attempts => 0) FROM secret},
            q{SELECT pulse.add_job('log', document, job_key => word, job_key_mode => 'x')
                FROM secret},
            q{SELECT pulse.fail_many(ARRAY[id], ARRAY[token], ARRAY[word, word])
                FROM secret, claim},
            q{SELECT pulse.progress(id, token, word, 7, document) FROM secret, claim} ],
        PU001 => [
            map { "SELECT pulse.$_ FROM secret, claim" } 'complete(id, token + 1, document)',
            'fail(id, token + 1, word, payload => document)', 'fence(id, token + 1)',
            q{snooze(id, token + 1, '1 s', document)}, q{progress(id, token + 1, word)} ],
        23505 => [ q{INSERT INTO pulse.job (id, identifier, payload, token)
                     SELECT j.id, j.identifier, j.payload, j.token FROM pulse.job AS j, claim
                      WHERE j.id = claim.id} ]);
    for my $code (sort keys %refused) {
        is($owner->refusal($_), $code, $_) for @{ $refused{$code} };
    }
    $owner->query('SELECT pulse.fail(id, token, word, false, payload => document)
                     FROM secret, claim');
    is($owner->refusal("SELECT pulse.retry_job($job), 1 / 0"), '22012', 'undone');
    is($owner->refusal('SELECT pulse.complete(id, token) FROM claim'), 'PU001', 'stale for good');
    $owner->quit;
    my $log = slurp_file($node->logfile, $from);
    like($log, qr/PU001/, 'the log tells of the refusals');
    my $secret = SECRET;
    unlike($log, qr/$secret/, 'but nothing of what the job carries');
    unlike($log, qr/\b$token\b/, 'nor its token');
};

expect_healthy($node);
done_testing();
