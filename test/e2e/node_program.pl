# The library for Node under pulse-worker --program: what handlers return, throw and print, how they
# are told to end, and that an effect in their own transaction happens once.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::LibraryActs;
use Pulse::LibraryPromises;
use Pulse::NodeLibrary;
use Pulse::ProgramRun qw(run_programs_on wait_finished of_finished);
use Pulse::Server;
use Pulse::Worker;


require_node();
my $node = start_server('main', settings => \%PATIENT);
value($node, "SELECT pulse.set_task('$_', backoff => 'none', max_attempts => 2)")
  for qw(act few list checked);
act_on($node);
run_programs_on($node);
promise_on($node);
my $workers = 0;

sub start {
    my (@options) = @_;
    my $file = told_file();
    my $worker = Pulse::Worker->start($node, 'worker-' . ++$workers, concurrency => undef,
        options => [ '--program', "node test/e2e/node/program.mjs $file",
            '--grace', '2s', @options ]);
    $worker->wait_for('registered');
    return $worker;
}

my $worker = start();
my $once = 'max_attempts => 1';

returns_results(
    undefined => '', nan => '', date => '"1970-01-01T00:00:00.000Z"',
    exact => '{"n": 9007199254740993, "f": 1.10}');

refuses_results(
    bigint => qr/the result of act is no JSON: .*BigInt/,
    circle => qr/the result of act is no JSON: Converting circular structure/);

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
        my $text = of_finished('left(last_error, 1000)', $id{$_});
        like($text, $error{$_}, "$_: with its words");
        unlike($text, qr{lib/outcome}, "$_: and no frames of the library");
    }
    cmp_ok(of_finished('length(last_error)', $id{'throw large'}), '<', 20_000, 'bounded');
};

ends_by_words();

tells_of_itself();

refuses_payload('{"to": 7}', qr/the payload of checked is refused: to: a text is wanted/,
    '{"to": " ada "}');

survives_payloads();

prints_with_its_job($worker);

logs_stacks_whole($worker);

takes_so_many();

is_told_to_end();

subtest 'a handler that blocks the loop' => sub {
    my ($gate, $other) = (gate('block'), gate('bystander'));
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

survives_exit();

drains_at_sigterm($worker, sub { wait_told('ended'); 1 == grep { /^ended/ } told_lines() });

my $driver = require_driver();
SKIP: {
    skip 'no node with the library pg', 2 if !$driver;
    local $ENV{DRIVER} = $driver;
    effect_happens_once(40, \&start);
    goes_on_after_its_end(\&start);
}

subtest 'a program that no worker has started, without the library pg' => sub {
    local $ENV{NODE_PATH} = '';
    my $output = `node test/e2e/node/program.mjs ${\ gate('none')} 2>&1`;
    isnt($?, 0, 'ends with an error');
    like($output, qr/a pulse-worker starts this program.*pulse-worker --database NAME --program/s,
        'that says how it is meant to be started');
};

expect_healthy($node);
done_testing();
