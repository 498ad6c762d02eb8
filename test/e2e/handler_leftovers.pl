# A worker of one's own performs jobs in a session that it has for more: what a job leaves there
# goes, what the session had before stays, whether the job succeeds or fails.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Litter;
use Pulse::Server;
use Pulse::Session;

my $node = start_server('main', settings => \%PATIENT);
make_litter_tasks($node);
my $has = q{SELECT app.left_in_session()};

my $own = Pulse::Session->new($node);
my $worker = $own->query(q{SELECT id FROM pulse.register_worker('own')});
# The claim of a job.
sub claimed {
    my ($task, $payload) = @_;
    value($node, "SELECT pulse.add_job('$task', '$payload')");
    my ($job, $token) = split /\|/,
      value($node, "SELECT id, token FROM pulse.claim($worker, 1, '{$task}')");
    return "pulse.perform_job($job, $token)";
}

subtest 'a session that has nothing' => sub {
    my $session = Pulse::Session->new($node);
    $session->query('SELECT ' . claimed('litter', '{"tenant": "ann"}'));
    is($session->query($has), '', 'has nothing after a job');
    is( value($node, q{SELECT string_agg(tenant || ' ' || seen_by_trigger, ', ' ORDER BY tenant)
        FROM app.checked}), 'ann ann', 'whose deferred trigger has seen its setting');
    is($session->refusal('SELECT ' . claimed('litter', '{"tenant": "eve", "end": "fail"}')),
        'P0001', 'a job fails');
    is($session->query($has), '', 'and leaves nothing either');
    $session->query('BEGIN');
    $session->query('SAVEPOINT first');
    is($session->refusal('SELECT ' . claimed('litter', '{"tenant": "eve", "end": "fail"}')),
        'P0001', 'a job fails in a savepoint');
    $session->query('ROLLBACK TO first');
    $session->query('SELECT ' . claimed('fails within', '{}'));
    like($session->query($has), qr/^number \d+$/,
        'and leaves but numbers, which the block may ask for; so does one that undoes a part');
    $session->query('COMMIT');
    like($session->query($has), qr/^number \d+$/, 'also after the commit');
    is($session->refusal('EXECUTE mine'), '26000', 'a statement is gone');
    is($session->refusal('FETCH held'), '34000', 'so is a cursor');
    $session->quit;
};

subtest 'a session that has something' => sub {
    $own->query("SELECT pulse.attach_worker($worker)");
    $own->query(q{CREATE TEMP TABLE mine (x int)});
    $own->query(q{PREPARE own AS SELECT 1; LISTEN own; LISTEN news});
    $own->query(q{SELECT pg_advisory_lock(5), set_config('app.tenant', 'own', false)});
    $own->query(q{BEGIN; DECLARE own CURSOR WITH HOLD FOR SELECT 1; COMMIT});
    my $mine = $own->query($has);
    like($mine, qr/tenant own, tables mine, locks .*statements own.*channels .*cursors own$/,
        'has all that one can have');
    $own->query('BEGIN');
    $own->query(q{SELECT nextval('app.number')});
    my $number = $own->query(q{SELECT currval('app.number')});
    $own->query('SELECT ' . claimed('litter', '{"tenant": "bob"}'));
    is($own->query(q{SELECT currval('app.number')}), $number + 1,
        'in a transaction block it knows its sequences');
    $own->query('ROLLBACK');
    # Of a transaction, the lock cannot be told from what the session had.
    is($own->query('SELECT DISTINCT objid FROM pg_locks WHERE objid IN (5, 17, 18)'), '5',
        'has its lock after a job that is undone');
    $own->query('SELECT ' . claimed('fails within', '{}'));
    is($own->query($has), $mine, 'and all of it after a job that succeeds');
    is(value($node, 'SELECT count(attachment) FROM pulse.heartbeat'), 1, 'its attachment too');
    is($own->said, '', 'without a word');
    $own->quit;
};

is(value($node, q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
    AND objid IN (5, 17, 18, 19)}), 0, 'no lock is left');
expect_healthy($node);
done_testing();
