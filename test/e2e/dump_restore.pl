# pg_dump and pg_restore into another server, with jobs of every state: every row comes back,
# running jobs are recovered there by the next sweep, and no id or token is given out twice.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::SqlWorker;

my $old = start_server('old', settings => { %PATIENT, 'pulse.max_crashes' => 1 });
my $new = new_server('new', settings => \%PATIENT);
$new->start;

# One job of each state, in an order in which each claim has only one to take.
my $worker = Pulse::SqlWorker->new($old, 'old worker');
my %job;

sub claim_job {
    my ($task, $more) = @_;
    my $id = add_job($old, $task, $more);
    my $claim = $worker->must_claim;
    is($claim->{id}, $id, "$task is claimed");
    return $claim;
}

my $claim = claim_job('completed', q{payload => '{"n": 1.50}'});
$job{completed} = $claim->{id};
$worker->query("SELECT pulse.complete($claim->{id}, $claim->{token}, '{\"sum\": 3}')");
$claim = claim_job('failed', 'max_attempts => 1');
$job{failed} = $claim->{id};
$worker->query("SELECT pulse.fail($claim->{id}, $claim->{token}, 'no')");
$claim = claim_job('retried');
$job{retried} = $claim->{id};
$worker->query("SELECT pulse.fail($claim->{id}, $claim->{token}, 'not yet', retry_in => '1 day')");
$job{cancelled} = add_job($old, 'cancelled');
value($old, "SELECT pulse.cancel_job($job{cancelled})");

my $doomed = Pulse::SqlWorker->new($old, 'doomed');
$job{quarantined} = add_job($old, 'quarantined');
$doomed->must_claim;
value($old, 'SELECT pulse.declare_lost(' . $doomed->id . q{, 'it is gone')});

$claim = claim_job('running', q{queue_name => 'serial', job_key => 'running'});
$job{running} = $claim->{id};
my $token = $claim->{token};
$worker->query("SELECT pulse.progress($job{running}, $token, checkpoint => '[1]')");
$job{parked} = add_job($old, 'parked', q{queue_name => 'serial'});
$job{future} = add_job($old, 'future', q{run_at => '2100-01-01'});
$job{ready} = add_job($old, 'ready', q{payload => '[null]', priority => 5, flags => '{f}'});
value($old, q{SELECT pulse.set_task('ready', max_attempts => 7, backoff => 'fixed')});
value($old, q{SELECT pulse.set_queue('other', 3, true)});

# Everything that a table holds, as text.
sub rows {
    my ($node, $table) = @_;
    return value($node, "SELECT to_json(t) FROM pulse.$table AS t ORDER BY to_json(t)::text");
}

my @tables = qw(job finished_job attempt queue task);
my %before = map { ($_ => rows($old, $_)) } @tables;
is(value($old, 'SELECT count(*) FROM pulse.job'), 5, 'five jobs are live');
is( value($old, 'SELECT string_agg(state::text, \' \' ORDER BY state) FROM pulse.finished_job'),
    'completed failed quarantined cancelled', 'and one ended in each way');

my $file = PostgreSQL::Test::Utils::tempdir . '/dump';
$old->command_ok([ 'pg_dump', '-Fc', '-f', $file, $old->connstr('postgres') ], 'pg_dump');
$new->command_ok([ 'pg_restore', '--exit-on-error', '-d', $new->connstr('postgres'), $file ],
    'pg_restore');
is(rows($new, $_), $before{$_}, "every row of $_ is back as it was") for @tables;
is(value($new, 'SELECT * FROM pulse.verify()'), '', 'no promise is broken by the restore');

subtest 'the running job is recovered by the next sweep' => sub {
    is(value($new, 'SELECT jobs_requeued FROM pulse.sweep()'), 1, 'it finds one');
    is( value($new,
            "SELECT state, attempts, crashes, checkpoint FROM pulse.job WHERE id = $job{running}"),
        'parked|1|1|[1]', 'the attempt counts, and the checkpoint is kept');
    is( value($new, "SELECT outcome FROM pulse.attempt WHERE job_id = $job{running}"),
        'lost', 'the attempt is recorded');
    my $error = "SELECT pulse.complete($job{running}, $token)";
    my $late = Pulse::Session->new($new);
    is($late->refusal($error), 'PU001', 'the old claim is over here');
    $late->quit;
};

subtest 'P2: ids and tokens go on where they were' => sub {
    my $id = add_job($new, 'new');
    cmp_ok($id, '>', value($new, 'SELECT max(id) FROM pulse.finished_job'), 'a new job id');
    cmp_ok($id, '>', $job{ready}, 'beyond every live one');
    my $next = Pulse::SqlWorker->new($new, 'new worker');
    cmp_ok($next->id, '>', $doomed->id, 'a new worker id');
    my @claims = $next->claim(10);
    is_deeply([ sort { $a <=> $b } map { $_->{id} } @claims ],
        [ $job{parked}, $job{ready}, $id ], 'what is due is claimed there');
    cmp_ok($_->{token}, '>', $token, 'a new token') for @claims;
    $next->complete($_) for @claims;
};

expect_healthy($_) for $old, $new;
done_testing();
