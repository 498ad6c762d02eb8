# The library for Node under pulse-worker --program: what handlers return, throw and print, how they
# are told to end, and that an effect in their own transaction happens once.
use strict;
use warnings FATAL => 'all';

use JSON::PP qw(decode_json);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::NodeActs;
use Pulse::NodeLibrary;
use Pulse::Process;
use Pulse::ProgramRun qw(run_programs_on wait_finished of_finished drain);
use Pulse::Server;
use Pulse::Worker;

use constant { DRAINED => 0, MISCONFIGURED => 78, PRINTERS => 20 };

require_node();
my $node = start_server('main', settings => \%PATIENT);
value($node, "SELECT pulse.set_task('$_', backoff => 'none', max_attempts => 2)")
  for qw(act few list checked);
act_on($node);
run_programs_on($node);
my $workers = 0;

sub start {
    my (@options) = @_;
    my $file = told_file();
    my $worker = Pulse::Worker->start($node, 'worker-' . ++$workers, concurrency => undef,
        options => [ '--program', "node test/e2e/node/program.mjs $file",
            '--grace', '500ms', @options ]);
    $worker->wait_for('registered');
    return $worker;
}

my $worker = start();
my $once = 'max_attempts => 1';

subtest 'what a handler returns is the result' => sub {
    my %result = (undefined => '', nan => '', date => '"1970-01-01T00:00:00.000Z"',
        exact => '{"n": 9007199254740993, "f": 1.10}');
    my %id = map { $_ => act($_) } sort keys %result;
    for (sort keys %id) {
        is(wait_finished($id{$_}), 'completed|1|0', "$_: the job completes");
        is(of_finished('result', $id{$_}) =~ s/,\s*/, /r, $result{$_}, "$_: with its result");
    }
    my $list = add_job($node, 'list', "'[1, 2, 3]'");
    is(wait_finished($list), 'completed|1|0', 'an array is a payload');
    is(of_finished('result', $list), 3, 'that the handler gets');
};

subtest 'a result that is no JSON, or too large, fails its own job' => sub {
    my %error = (
        bigint => qr/the result of act is no JSON: .*BigInt/,
        circle => qr/the result of act is no JSON: Converting circular structure/,
        large => qr/the answer of act has 2097\d+ bytes, and a line has at most 1048576/,
        'large checkpoint' => qr/the checkpoint has 2097\d+ bytes/,
        'snooze circle' => qr/the checkpoint is no JSON/,
        'large rest' => qr/the answer of act has 20\d+ bytes/);
    my %id = map { $_ => act($_, options => $once) } sort keys %error;
    for (sort keys %id) {
        is(wait_finished($id{$_}), 'failed|1|0', "$_: the job fails");
        like(of_finished('last_error', $id{$_}), $error{$_}, "$_: and says why");
    }
};

subtest 'whatever a handler throws is the error' => sub {
    my %error = (
        'throw null' => qr/^the handler threw null$/,
        'throw undefined' => qr/^the handler threw undefined$/,
        'throw text' => qr/^only a text$/,
        'throw circle' => qr/^the handler threw <ref \*1> \{ name: 'circle', self: \[Circular/,
        'throw hostile' => qr/^the handler threw a value that cannot be shown$/,
        'throw error' => qr/^Error: it broke\n    at .*\ncaused by Error: of this\n    at /s,
        'throw large' => qr/^Error: yyy/,
        'for good' => qr/^Failure: no such address/,
        'no such deed' => qr/^TypeError: deeds\[payload\.do\] is not a function/);
    my %id = map { $_ => act($_, options => $once) } sort keys %error;
    for (sort keys %id) {
        is(wait_finished($id{$_}), 'failed|1|0', "$_: the job fails");
        like(of_finished('left(last_error, 1000)', $id{$_}), $error{$_}, "$_: with its words");
    }
    cmp_ok(of_finished('length(last_error)', $id{'throw large'}), '<', 20_000, 'bounded');
};

subtest 'ends by the words of the library' => sub {
    is(wait_finished(act('for good')), 'failed|1|0', 'a failure for good is not tried again');
    my $rest = act('rest');
    is(wait_finished($rest), 'completed|2|0', 'the rest of the work is the next attempt');
    is(of_finished('result', $rest), '"rest"', 'with the payload of the rest');
    my $snoozed = act('snooze');
    is(wait_finished($snoozed), 'completed|1|0', 'a snooze gives the attempt back');
    is(of_finished('result', $snoozed), '{"seen":true}', 'and keeps its checkpoint');
    my $reported = act('report');
    is(wait_finished($reported), 'completed|2|0', 'a failed attempt is tried again');
    is(of_finished('result', $reported), '{"at":1}', 'and the next has the checkpoint');
    my $later = act('later');
    wait_told('began', $later);
    wait_until($node, "SELECT state = 'ready' AND run_at > pulse.now() + interval '50 min'
        FROM pulse.job WHERE id = $later", 'not before the time that the failure gives');
    value($node, "SELECT pulse.cancel_job($later)");
};

subtest 'what a job says of itself' => sub {
    my $id = act('ask', options => q{queue_name => 'mail', job_key => 'key'});
    is(wait_finished($id), 'completed|1|0', 'it completes');
    my $job = decode_json(of_finished('result', $id));
    is($job->{id}, $id, 'its id');
    is($job->{token}, value($node, "SELECT token FROM pulse.attempt WHERE job_id = $id"),
        'its token');
    is($job->{text}, '{"do":"ask"}', 'the payload as it was spelled');
    is_deeply([ @$job{qw(attempt last queue key)} ], [ 1, undef, 'mail', 'key' ], 'the rest');
};

subtest 'a payload that the schema refuses' => sub {
    my $refused = add_job($node, 'checked', q('{"to": 7}'));
    is(wait_finished($refused), 'failed|1|0', 'fails for good');
    like(of_finished('last_error', $refused),
        qr/the payload of checked is refused: to: a text is wanted/, 'with the path');
    my $taken = add_job($node, 'checked', q('{"to": " ada "}'));
    is(wait_finished($taken), 'completed|1|0', 'another payload is taken');
    is(of_finished('result', $taken), '"ada"', 'as the schema gives it back');
};

subtest 'each line of twenty jobs at once has its own job' => sub {
    my $gate = gate('lines');
    my @jobs = map { act('lines', gate => $gate, count => 5) } 1 .. PRINTERS;
    wait_told('began', $_) for @jobs;
    open_gate('lines');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    $worker->wait_for('output', job => $_, text => "line 5 of job $_") for @jobs;
    my %lines;
    push @{ $lines{ $_->{job} } }, $_->{text} for grep { $_->{job} } $worker->events('output');
    for my $id (@jobs) {
        is(join(',', @{ $lines{$id} }),
            join(',', map { "line $_ of job $id" } 1 .. 5), "job $id: five lines, and no other");
    }
    ok($worker->wait_for('output', text => 'started outside of jobs'), 'outside of jobs: no job');
    is(wait_finished(act('after its end')), 'completed|1|0', 'a job may leave work behind');
    my $line = $worker->wait_for('output', text => 'behind the end');
    ok(!$line->{job}, 'what is printed then is of no job');
};

subtest 'a task takes only so many jobs at once' => sub {
    my $gate = gate('few');
    my @jobs = map { add_job($node, 'few', qq('{"gate": "$gate"}')) } 1 .. 4;
    wait_until($node, q{SELECT count(*) = 2 FROM pulse.job
        WHERE identifier = 'few' AND state = 'running'}, 'two run');
    open_gate('few');
    is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
};

subtest 'a handler is told to end' => sub {
    my $cancelled = act('obey');
    wait_told('began', $cancelled);
    value($node, "SELECT pulse.cancel_job($cancelled)");
    is((wait_told('told', $cancelled))[2], 'cancelled', 'of a cancelled job by its signal');
    is(wait_finished($cancelled), 'cancelled|1|0', 'and the job is cancelled');
    value($node, q{SELECT pulse.set_task('act', timeout => '500ms')});
    my $late = act('obey', options => $once);
    is((wait_told('told', $late))[2], 'timeout', 'past the deadline by its signal');
    is(wait_finished($late), 'failed|1|0', 'and the attempt has failed');
    is(outcomes($node, $late), 'timed_out', 'as one that is late');
    my $never = act('never', options => $once);
    is(wait_finished($never), 'failed|1|0', 'one that never returns ends');
    is(outcomes($node, $never), 'timed_out', 'at its deadline');
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'a new program goes on');
};

subtest 'a handler that blocks the loop' => sub {
    my ($gate, $other) = (gate('block'), gate('bystander'));
    value($node, q{SELECT pulse.set_task('act', timeout => '1 h')});
    my $bystander = act('gate', gate => $other);
    wait_told('began', $bystander);
    my $blocks = act('block', gate => $gate);
    my (undef, undef, undef, $pid) = wait_told('began', $blocks);
    my $beats = value($node, 'SELECT max(last_heartbeat_at) FROM pulse.worker_status');
    wait_until($node, qq{SELECT max(last_heartbeat_at) > '$beats'::timestamptz + interval '1 s'
        FROM pulse.worker_status}, 'beats go on meanwhile');
    open_gate($_) for qw(block bystander);
    is(wait_finished($_), 'completed|1|0', 'nothing is lost') for $blocks, $bystander;
};

subtest 'a handler that starts processes' => sub {
    my $id = act('fork');
    is(wait_finished($id), 'completed|1|0', 'ends as ever');
    is(of_finished('result', $id), '{"sockets":0,"descriptor":"taken"}',
        'and they get neither the socket of the worker nor its name');
    my $again = act('fork itself');
    is(wait_finished($again), 'completed|1|0', 'the program itself as a child');
    like(of_finished('result', $again), qr/runs the jobs in the program that has started this/,
        'is told that it gets no jobs');
};

subtest 'a program that exits' => sub {
    my $exits = act('exit', options => $once);
    is(wait_finished($exits), 'failed|1|0', 'fails the job that it had alone');
    is(of_finished('last_error', $exits), 'its program exited with code 7', 'and says how');
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'and is started again');
};

subtest 'a drain' => sub {
    my $running = act('gate', gate => gate('drain'));
    wait_told('began', $running);
    $worker->signal('TERM');
    $worker->wait_for('draining');
    open_gate('drain');
    is($worker->wait_exit, DRAINED, 'the worker ends');
    is(wait_finished($running), 'completed|1|0', 'after the job has ended');
    wait_told('ended');
    is(scalar(grep { /^ended/ } told_lines()), 1, 'and the program ends by itself');
};

subtest 'an effect in the transaction of the handler happens once' => sub {
    my $driver = require_driver();
    plan skip_all => 'no node with the library pg' if !$driver;
    local @ENV{qw(DRIVER PGHOST PGPORT PGUSER PGDATABASE)} =
      ($driver, $node->host, $node->port, scalar getpwuid($>), 'postgres');
    value($node, q{CREATE TABLE effect (job bigint)});
    value($node, q{SELECT pulse.set_task('act', max_attempts => 50, max_crashes => 50)});
    my @places = ('before the end', 'before the commit', 'after the commit', 'nowhere');
    my @jobs = map { act('complete', dies => $places[ $_ % @places ]) } 0 .. 39;
    my $killed = start('--pass-env', qw(PGHOST PGPORT PGUSER PGDATABASE));
    wait_finished($_) for @jobs;
    my $ids = join ',', @jobs;
    is(value($node, "SELECT state, count(*) FROM pulse.finished_job WHERE id IN ($ids) GROUP BY 1"),
        'completed|40', 'each job is completed, while its program is killed again and again');
    is(value($node, 'SELECT count(*), count(DISTINCT job) FROM effect'), '40|40',
        'with one effect');
    my $undone = act('complete', dies => 'never commits', options => $once);
    is(wait_finished($undone), 'failed|1|0', 'a transaction that is rolled back fails the job');
    is(of_finished('last_error', $undone), 'its transaction did not commit', 'and says so');
    drain($killed);
};

subtest 'a program that no worker has started, without the library pg' => sub {
    local $ENV{NODE_PATH} = '';
    my $output = `node test/e2e/node/program.mjs ${\ gate('none')} 2>&1`;
    isnt($?, 0, 'ends with an error');
    like($output, qr/a pulse-worker starts this program.*pulse-worker --database NAME --program/s,
        'that says how it is meant to be started');
};

expect_healthy($node);
done_testing();
