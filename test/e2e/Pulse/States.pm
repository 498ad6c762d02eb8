# Jobs of every state in one database, and what its tables hold: to be found again in a copy of it.
package Pulse::States;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

our @EXPORT = qw(given_every_state tables numbers refuses_claims works_as_its_own);

my @tables = qw(job finished_job attempt queue task remembered_key);

# Returns { id => { state => job id }, token of the running job, worker => who holds it }. Completed
# jobs must be kept.
sub given_every_state {
    my ($node, $database) = @_;
    my $worker = Pulse::SqlWorker->new($node, 'old worker', database => $database);
    my $given = { worker => $worker };
    my $id = $given->{id} = {};
    value($node, q{SELECT pulse.set_task('ready', max_attempts => 7, backoff => 'fixed'),
        pulse.set_task('running', backoff => 'none'),
        pulse.set_task('quarantined', max_crashes => 1), pulse.set_queue('other', 3, true)},
        $database);

    # One job after the other, so that each claim has only one to take.
    my $claim_new = sub {
        my ($task, $more) = @_;
        $id->{$task} = add_job($node, $task, $more, $database);
        my $claim = $worker->must_claim;
        die "claimed $claim->{id}, not the $task job\n" if $claim->{id} != $id->{$task};
        return "$claim->{id}, " . ($given->{token} = $claim->{token});
    };
    my $claim = $claim_new->('completed', q{payload => '{"n": 1.50}'});
    $worker->query("SELECT pulse.complete($claim, '{\"sum\": 3}')");
    $claim = $claim_new->('failed', 'max_attempts => 1');
    $worker->query("SELECT pulse.fail($claim, 'no')");
    $claim = $claim_new->('retried');
    $worker->query("SELECT pulse.fail($claim, 'not yet', retry_in => '1 day')");
    $id->{cancelled} = add_job($node, 'cancelled', undef, $database);
    value($node, "SELECT pulse.cancel_job($id->{cancelled})", $database);
    my $doomed = Pulse::SqlWorker->new($node, 'doomed', database => $database);
    $id->{quarantined} = add_job($node, 'quarantined', undef, $database);
    $doomed->must_claim;
    value($node, 'SELECT pulse.declare_lost(' . $doomed->id . q{, 'it is gone')}, $database);
    $doomed->quit;

    $claim = $claim_new->('running', q{queue_name => 'serial', job_key => 'running'});
    $worker->query("SELECT pulse.progress($claim, checkpoint => '[1]')");
    for (
        [ parked => q{queue_name => 'serial'} ],
        [ future => q{run_at => '2100-01-01'} ],
        [ ready => q{payload => '[null]', priority => 5, flags => '{f}', job_key => 'ready'} ])
    {
        my ($task, $more) = @$_;
        $id->{$task} = add_job($node, $task, $more, $database);
    }
    return $given;
}

# Everything that a table holds, as text, for each table that a dump keeps.
sub tables {
    my ($node, $database) = @_;
    return { map {
        ($_ => value($node, "SELECT to_json(t) FROM pulse.$_ AS t ORDER BY to_json(t)::text",
                $database)) } @tables };
}

# Every token and worker id that is stored: { 'token 123' => 123, 'worker 45' => 45 }.
sub numbers {
    my ($node, $database) = @_;
    my $all = value($node, q{SELECT 'token ' || token FROM (
          SELECT token FROM pulse.job UNION SELECT token FROM pulse.finished_job
          UNION SELECT token FROM pulse.attempt) AS t WHERE token IS NOT NULL
        UNION ALL SELECT 'worker ' || worker_id FROM (
          SELECT worker_id FROM pulse.job UNION SELECT worker_id FROM pulse.finished_job
          UNION SELECT worker_id FROM pulse.attempt UNION SELECT id FROM pulse.worker) AS w
         WHERE worker_id IS NOT NULL}, $database);
    return { map { ($_ => (split / /)[1]) } split /\n/, $all };
}

# In a copy that nobody has adopted nothing is handed out, and everything else works.
sub refuses_claims {
    my ($node, $database, $given) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $worker = Pulse::SqlWorker->new($node, 'too early', database => $database);
    my $worker_id = $worker->id;
    is($worker->refusal("SELECT pulse.claim($worker_id)"), 'PU008', 'claim is refused');
    like($worker->said, qr/SELECT pulse\.adopt_installation\(\)/, 'with the way out');
    is($worker->refusal("SELECT pulse.claim_job($worker_id, $given->{id}{ready})"),
        'PU008', 'as is claim_job');
    my $added = add_job($node, 'added', 'priority => 9', $database);
    ok($added > $given->{id}{ready}, 'a job can be added');
    is($worker->beat, 'alive', 'a worker beats');
    is($worker->query("SELECT count(*) FROM pulse.held($worker_id)"), 0, 'this one holds nothing');
    is(value($node, 'SELECT * FROM pulse.verify()', $database), '', 'no promise is broken');
    $worker->quit;
    return $added;
}

# What is due is claimed and completed; no number of `taken` is made again.
sub works_as_its_own {
    my ($node, $database, $taken, @due) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($highest) = sort { $b <=> $a } values %$taken;
    my $worker = Pulse::SqlWorker->new($node, 'new worker', database => $database);
    cmp_ok($worker->id >> 40, '>', $highest >> 40, 'a new worker id is above all that were made');
    my @claims;
    while (my @more = $worker->claim(10)) { push @claims, @more; $worker->complete(@more) }
    is_deeply([ sort { $a <=> $b } map { $_->{id} } @claims ],
        [ sort { $a <=> $b } @due ], 'what is due is claimed');
    is_deeply([ grep { $_->{token} >> 40 <= $highest >> 40 } @claims ],
        [], 'with tokens above all that were made');
    $worker->quit;
    my @ids = split /\|/, value($node, q{BEGIN;
        SELECT (pulse.add_job('id')).id,
               (SELECT flow_id FROM pulse.add_flow('[{"identifier": "id"}]')),
               pulse.note_operation('id', '{}');
        ROLLBACK}, $database);
    is(scalar(grep { $_ > 2**32 } @ids), 3, 'ids of jobs, flows and operations leap');
    isnt(value($node, 'SELECT count(*) FROM pulse_internal.id_gaps', $database), 0,
        'and the gap is written down');
    is(value($node, 'SELECT * FROM pulse.verify()', $database), '', 'no promise is broken');
    return;
}

1;
