# pg_dump and pg_restore with jobs of every state, beside production in another server and in
# another database: every row comes back, nothing is claimed there until somebody adopts it, and no
# token or worker id is made twice.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;
use Pulse::States;
use Pulse::Tasks;
use Pulse::Worker;

my $old = start_server('old', settings => \%PATIENT);
my $new = new_server('new', settings => \%PATIENT);
$new->start;

my $given = given_every_state($old, 'postgres');
my $id = $given->{id};
is(value($old, 'SELECT count(*) FROM pulse.job'), 5, 'five jobs are live');
is( value($old, 'SELECT string_agg(state::text, \' \' ORDER BY state) FROM pulse.finished_job'),
    'completed failed quarantined cancelled', 'and one ended in each way');
value($old, q{INSERT INTO pulse.remembered_key
    SELECT 'ready', 'key', max(id), '2100-01-01', current_user FROM pulse.job});
value($old, q{SELECT pulse.set_task('ready', dead_letter => 'letters');
    UPDATE pulse.job SET dead_letter_of = 1 WHERE state = 'ready';
    UPDATE pulse.finished_job SET dead_letter_id = 1 WHERE state = 'failed';
    UPDATE pulse.finished_job SET dead_letter_of = 1 WHERE state = 'quarantined'});
my $before = tables($old, 'postgres');
my $dumped = numbers($old, 'postgres');

sub dump_of {
    my ($node, $database) = @_;
    my $file = PostgreSQL::Test::Utils::tempdir . '/dump';
    $node->command_ok([ 'pg_dump', '-Fc', '-f', $file, $node->connstr($database) ],
        "pg_dump of $database");
    return $file;
}

sub restore {
    my ($file, $node, $database, @more) = @_;
    $node->command_ok(
        [ 'pg_restore', '--exit-on-error', @more, '-d', $node->connstr($database), $file ],
        "pg_restore @more into $database");
    return;
}

my $file = dump_of($old, 'postgres');

# Production goes on where the dump begins.
my $production = Pulse::SqlWorker->new($old, 'production');

sub production_works {
    my $job = add_job($old, 'production', 'priority => -1');
    my $claim = $production->must_claim;
    is($claim->{id}, $job, 'production claims meanwhile');
    $production->complete($claim);
    return;
}

sub running_job_is_recovered {
    my ($node, $database) = @_;
    is(value($node, 'SELECT jobs_requeued FROM pulse.sweep()', $database),
        1, 'the next sweep recovers the job that ran');
    is( value($node,
            "SELECT attempts, crashes, checkpoint FROM pulse.job WHERE id = $id->{running}",
            $database),
        '1|1|[1]', 'the attempt counts, and the checkpoint is kept');
    is( value($node, "SELECT outcome FROM pulse.attempt WHERE job_id = $id->{running}", $database),
        'lost', 'the attempt is recorded');
    my $late = Pulse::Session->new($node, database => $database);
    is($late->refusal("SELECT pulse.complete($id->{running}, $given->{token})"),
        'PU001', 'its claim is over here');
    $late->quit;
    return;
}

# Two databases that work side by side: whatever was made since the dump was made once.
sub nothing_was_made_twice {
    my ($node, $database) = @_;
    my ($here, $there) = (numbers($node, $database), numbers($old, 'postgres'));
    is_deeply([ grep { $there->{$_} && !$dumped->{$_} } keys %$here ],
        [], 'no token or worker id is production\'s too');
    return;
}

sub is_copy_until_adopted {
    my ($node, $database) = @_;
    my $added = refuses_claims($node, $database, $given);
    production_works();
    running_job_is_recovered($node, $database);
    value($node, 'SELECT pulse.adopt_installation()', $database);
    works_as_its_own($node, $database, numbers($node, $database),
        @$id{qw(ready parked running)}, $added);
    production_works();
    nothing_was_made_twice($node, $database);
    return;
}

subtest 'into another server' => sub {
    restore($file, $new, 'postgres');
    is_deeply(tables($new, 'postgres'), $before, 'every row is back as it was');
    my @where = map { value($_, q{SELECT oid, 'pulse.job'::regclass::oid FROM pg_database
        WHERE datname = 'postgres'}) } $old, $new;
    note("production and copy, database and job table: @where");
    is_copy_until_adopted($new, 'postgres');
};

subtest 'into another database of the same server' => sub {
    value($old, 'CREATE DATABASE staging');
    restore($file, $old, 'staging');
    is_deeply(tables($old, 'staging'), $before, 'every row is back as it was');
    is_copy_until_adopted($old, 'staging');
};

subtest 'into the same database, after it was emptied' => sub {
    local $ENV{PGOPTIONS} = '-c pulse.allow_drop=on';
    restore($file, $new, 'postgres', '--clean');
    is_copy_until_adopted($new, 'postgres');
};

subtest 'over an installation in use' => sub {
    value($old, 'CREATE DATABASE used');
    value($old, 'CREATE EXTENSION pg_pulse', 'used');
    my $early = Pulse::SqlWorker->new($old, 'early', database => 'used');
    is_deeply([ $early->claim ], [], 'somebody uses it already');
    restore($file, $old, 'used', '--data-only');
    is($early->refusal('SELECT pulse.claim(' . $early->id . ')'),
        'PU008', 'a worker that claimed before the restore does not claim production\'s jobs');
    my $added = refuses_claims($old, 'used', $given);
    # It got its id before the restore could tell which are taken, and seems to own what ran.
    $early->quit;
    wait_until($old, 'SELECT jobs_requeued = 1 FROM pulse.sweep()',
        'the job that ran is recovered', 'used');
    value($old, 'SELECT pulse.adopt_installation()', 'used');
    works_as_its_own($old, 'used', numbers($old, 'used'), @$id{qw(ready parked running)}, $added);
    nothing_was_made_twice($old, 'used');
};

subtest 'a database made from a template' => sub {
    value($old, 'CREATE DATABASE twin TEMPLATE staging');
    refuses_claims($old, 'twin', $given);
    value($old, 'ALTER DATABASE staging RENAME TO stage');
    my $worker = Pulse::SqlWorker->new($old, 'after', database => 'stage');
    my $job = add_job($old, 'task', undef, 'stage');
    is($worker->must_claim->{id}, $job, 'while a renamed database is what it was');
    $worker->quit;
};

subtest 'a pulse-worker in a copy waits until it is adopted' => sub {
    value($new, 'CREATE DATABASE waiting');
    restore($file, $new, 'waiting');
    my $tasks = Pulse::Tasks->new(ready => 'tell ran');
    my $process = Pulse::Worker->start_registered($new, 'process', tasks => $tasks,
        database => 'waiting');
    like($process->wait_for('claim_skipped')->{reason}, qr/PU008/, 'it says why it claims nothing');
    $process->wait_for('heartbeat');
    value($new, 'SELECT pulse.adopt_installation()', 'waiting');
    $process->wait_for('completed', job => $id->{ready});
    is(scalar $process->events('claim_skipped'), 1, 'it said so once');
    is(value($new, 'SELECT * FROM pulse.verify()', 'waiting'), '', 'no promise is broken');
    $process->signal('TERM');
    is($process->wait_exit, 0, 'and stops in order');
};

subtest 'jobs that wait for others' => sub {
    value($old, 'CREATE DATABASE flows');
    value($old, q{CREATE EXTENSION pg_pulse;
        SELECT pulse.add_flow('[{"key": "parent", "identifier": "parent"},
            {"identifier": "child", "after": ["parent"]}]', 'two')}, 'flows');
    my $is_waiting = q{SELECT j.state, w.parent_identifier, f.name, f.waiting
        FROM pulse.waiting_for AS w JOIN pulse.job AS j ON j.id = w.job_id
        JOIN pulse.flows AS f ON f.id = w.flow_id};
    my $waits = value($old, $is_waiting, 'flows');
    value($new, 'CREATE DATABASE flows');
    restore(dump_of($old, 'flows'), $new, 'flows');
    is(value($new, $is_waiting, 'flows'), $waits, 'still wait');
    value($new, 'SELECT pulse.adopt_installation()', 'flows');
    my $worker = Pulse::SqlWorker->new($new, 'worker', database => 'flows');
    for (1, 2) {
        my @jobs = $worker->claim(9);
        is(scalar @jobs, 1, 'one starts after the other');
        $worker->complete(@jobs);
    }
    $worker->quit;
    value($new, q{SELECT pulse.add_flow('[{"identifier": "later"}]')}, 'flows');
    is(value($new, 'SELECT count(*) FROM pulse.flows', 'flows'),
        2, 'no id of a flow is made twice');
    is(value($new, 'SELECT * FROM pulse.verify()', 'flows'), '', 'no promise is broken');
};

subtest 'what 0.1.0 dumped is not known as a copy, and no number is made twice' => sub {
    value($old, 'CREATE DATABASE older');
    value($old, q{CREATE EXTENSION pg_pulse VERSION '0.1.0'}, 'older');
    $given = given_every_state($old, 'older');
    $given->{worker}->quit;
    value($new, 'CREATE DATABASE newer');
    restore(dump_of($old, 'older'), $new, 'newer');
    my $worker = Pulse::SqlWorker->new($new, 'new', database => 'newer');
    my $taken = numbers($old, 'older');
    ok(!$taken->{ 'worker ' . $worker->id }, 'a new worker id');
    my $claim = $worker->must_claim;
    is($claim->{id}, $given->{id}{ready}, 'its jobs are claimed at once');
    ok(!$taken->{"token $claim->{token}"}, 'with a new token');
    $worker->quit;
    is(value($new, 'SELECT * FROM pulse.verify()', 'newer'), '', 'no promise is broken');
};

$_->quit for $production, $given->{worker};
expect_healthy($_) for $old, $new;
done_testing();
