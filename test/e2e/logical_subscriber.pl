# Jobs that logical replication brought over: the subscriber hands out none, neither while the
# subscription writes them nor after it, before they are adopted; the publisher goes on.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::SqlWorker;

my $publisher = start_server('publisher', streaming => 'logical', settings => \%PATIENT);
my $subscriber = start_server('subscriber', streaming => 'logical', settings => \%PATIENT);
my $source = 'host=' . $publisher->host . ' port=' . $publisher->port . ' dbname=postgres';

sub identity {
    return value($_[0], q{SELECT d.oid, 'pulse.job'::regclass::oid FROM pg_database AS d
        WHERE datname = 'postgres'});
}

# The code with which a claim of a new worker is refused, or nothing.
sub refusal {
    my ($database) = @_;
    my $worker = Pulse::SqlWorker->new($subscriber, 'there', database => $database);
    my $code = $worker->refusal('SELECT id FROM pulse.claim(' . $worker->id . ', 100)');
    my $said = $worker->said;
    $worker->query('SELECT pulse.deregister_worker(' . $worker->id . ')');
    $worker->quit;
    return ($code, $said);
}

sub subscribe {
    my ($database, $publication) = @_;
    $subscriber->safe_psql($database, "CREATE SUBSCRIPTION $publication CONNECTION '$source'
        PUBLICATION $publication");
    wait_until($subscriber, q{SELECT count(*) > 0 AND bool_and(srsubstate = 'r')
        FROM pg_subscription_rel}, "$publication is copied", $database);
    return;
}

isnt(value($publisher, 'SELECT system_identifier FROM pg_control_system()'),
    value($subscriber, 'SELECT system_identifier FROM pg_control_system()'), 'there are two');
is(identity($publisher), identity($subscriber), 'whose databases and tables have the same oids');

my $ann = Pulse::SqlWorker->new($publisher, 'ann');
add_job($publisher, 'first');
my $running = $ann->must_claim;
my $waiting = add_job($publisher, 'second');
my $flow = value($publisher, q{SELECT flow_id FROM pulse.add_flow(
    '[{"identifier": "member", "job_key": "member"}]')});
value($publisher, q{SELECT pulse.remove_job('member')});
my $operation = value($publisher, q{SELECT pulse.note_operation('noted', '{}')});
value($publisher, 'CREATE PUBLICATION everything FOR ALL TABLES');
value($publisher, 'CREATE PUBLICATION jobs FOR TABLE pulse.job');

subtest 'all tables came over' => sub {
    value($subscriber, 'TRUNCATE pulse.clock');
    subscribe('postgres', 'everything');
    is(value($subscriber, 'SELECT count(*) FROM pulse.job'), 2, 'the jobs are there');
    is(value($subscriber, 'SELECT count(*) FROM pulse.installation'), 1, 'with their row');
    my ($code, $said) = refusal('postgres');
    is($code, 'PU008', 'no claim gets them');
    like($said, qr/HINT:  If they are to run here: DROP SUBSCRIPTION/, 'and is told the way out');
    value($subscriber, 'DROP SUBSCRIPTION everything');
    ($code, $said) = refusal('postgres');
    is($code, 'PU008', 'nor without the subscription');
    like($said, qr/this copy has not been adopted/, 'because it is a copy');
};

subtest 'the jobs alone came over' => sub {
    $subscriber->safe_psql('postgres', 'CREATE DATABASE jobs_alone');
    value($subscriber, 'CREATE EXTENSION pg_pulse', 'jobs_alone');
    subscribe('jobs_alone', 'jobs');
    is(value($subscriber, 'SELECT count(*) FROM pulse.job', 'jobs_alone'), 2, 'they are there');
    is((refusal('jobs_alone'))[0], 'PU008', 'no claim gets them');
    value($subscriber, 'DROP SUBSCRIPTION jobs', 'jobs_alone');
};

$ann->complete($running);
is($ann->must_claim->{id}, $waiting, 'the publisher hands out what waits');
my @published = add_jobs($publisher, 'fourth', 50);
value($subscriber, 'SELECT pulse.adopt_installation()');
my $bob = Pulse::SqlWorker->new($subscriber, 'bob');
is($bob->must_claim->{id}, $waiting, 'once adopted, the subscriber does, too');
cmp_ok(add_job($subscriber, 'third'), '>', $published[-1],
    'with ids above those that the publisher has given out since');
cmp_ok(value($subscriber, q{SELECT flow_id FROM pulse.add_flow('[{"identifier": "member"}]')}),
    '>', $flow, 'those of flows');
cmp_ok(value($subscriber, q{SELECT pulse.note_operation('noted', '{}')}),
    '>', $operation, 'and of operations too');
is($bob->query(q{SET session_replication_role = replica; SELECT count(*)
        FROM pulse.adopt_installation(); SELECT pulse_internal.installation_standing()}),
    "1\nours", 'a session that acts as a replica may adopt them, too');
expect_healthy($_) for $publisher, $subscriber;
done_testing();
