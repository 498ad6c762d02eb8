# P1, P3: kill -9 of the whole server under load, a few times. A ledger of what clients were told
# stands against the tables afterwards: every acknowledged add is there, no accepted completion is
# undone.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Program;
use Pulse::Server;
use Pulse::SqlWorker;

use constant { ROUNDS => 4, PRODUCERS => 3, WORKERS => 3, ADDS => 300, COMPLETIONS => 300 };

my $node = start_server('main', settings => { %QUICK, log_statement => 'none' });
value($node, q{SELECT pulse.set_task('work', backoff => 'none')});
my $scripts = PostgreSQL::Test::Utils::tempdir;

# Transactions without end, one after another; psql prints a line once it knows of the commit.
append_to_file("$scripts/producer", <<'SQL' x 20_000);
SELECT 'added ' || id FROM pulse.add_job('work');
SELECT 'added ' || id FROM pulse.add_job('work', queue_name => 'q' || (random() * 19)::int);
SELECT 'added ' || id FROM pulse.add_job('work', job_key => 'k' || random());
SQL
append_to_file("$scripts/worker",
    "SELECT id AS worker FROM pulse.register_worker('w') \\gset\n" . <<'SQL' x 20_000);
SELECT coalesce(array_agg(id), '{}') AS ids, coalesce(array_agg(token), '{}') AS tokens
  FROM pulse.claim(:worker, 4) \gset
SELECT 'completed ' || id FROM pulse.complete_many(:'ids', :'tokens') WHERE outcome = 'accepted';
SQL

sub start_client {
    my ($kind, $number) = @_;
    return Pulse::Program->start("$kind-$number",
        [ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
            '-f', "$scripts/$kind" ]);
}

my %told = (added => {}, completed => {});

sub read_ledger {
    for my $client (@_) {
        for ($client->lines->lines) {
            my ($what, $id) = /^(added|completed) (\d+)$/ or die "strange line: $_";
            $told{$what}{$id}++;
        }
    }
    return;
}

for my $round (1 .. ROUNDS) {
    my @producers = map { start_client('producer', "$round-$_") } 1 .. PRODUCERS;
    my @workers = map { start_client('worker', "$round-$_") } 1 .. WORKERS;
    $_->lines->wait_for('adds', sub { 1 }, count => ADDS) for @producers;
    $_->lines->wait_for('completions', sub { 1 }, count => COMPLETIONS) for @workers;
    kill_server($node);
    my @codes = map { $_->wait_exit } @producers, @workers;
    is_deeply(\@codes, [ (2) x @codes ], "round $round: every client lost its connection");
    read_ledger(@producers, @workers);
    $node->start;
}

# Whether ids that were told stand where they must; answers those that do not.
sub missing {
    my ($what, $condition) = @_;
    my $ids = join ',', sort { $a <=> $b } keys %{ $told{$what} };
    return value($node, "SELECT id FROM unnest('{$ids}'::bigint[]) AS id WHERE NOT ($condition)");
}

my $is_completed =
  q{id IN (SELECT f.id FROM pulse.finished_job AS f WHERE f.state = 'completed')};
note scalar(keys %{ $told{added} }) . ' adds and '
  . scalar(keys %{ $told{completed} }) . ' completions were acknowledged';
is(missing('added', "$is_completed OR id IN (SELECT j.id FROM pulse.job AS j)"),
    '', 'P1: every acknowledged add is live or finished');
is(missing('completed', "$is_completed AND id NOT IN (SELECT j.id FROM pulse.job AS j)"),
    '', 'P3: no accepted completion is undone');
is_deeply([ grep { $told{completed}{$_} > 1 } keys %{ $told{completed} } ],
    [], 'P3: none was accepted twice');

subtest 'what was running is recovered, and all is done in the end' => sub {
    # The sessions of earlier runs of the server say nothing, so silence decides, after two seconds.
    # Some beat later than others, and a worker that held no job may have been the last.
    wait_until($node, q{SELECT jobs_requeued >= 0
        AND NOT EXISTS (SELECT FROM pulse.job WHERE state = 'running')
        AND NOT EXISTS (SELECT FROM pulse.worker WHERE state = 'alive') FROM pulse.sweep()},
        'recovery of all');
    pass('all were lost');
    my $worker = Pulse::SqlWorker->new($node, 'last');
    while (value($node, 'SELECT count(*) FROM pulse.job')) {
        $worker->complete($worker->claim(500));
    }
    is(missing('added', $is_completed), '', 'every job that was added is completed');
    is( value($node, q{SELECT count(*) FROM pulse.finished_job AS f WHERE f.attempts <>
            (SELECT count(*) FROM pulse.attempt AS a WHERE a.job_id = f.id)}),
        0, 'P4: each attempt of a finished job is on record');
    is( value($node, q{SELECT count(*) FROM (SELECT job_id FROM pulse.attempt
            WHERE outcome = 'completed' GROUP BY job_id HAVING count(*) > 1) AS twice}),
        0, 'P3: none completed twice');
};

expect_healthy($node);
done_testing();
