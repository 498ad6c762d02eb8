# The library for Python under pulse-worker --program: what handlers return, raise and print, how
# they are told to end, and that an effect in their own transaction happens once.
use strict;
use warnings FATAL => 'all';

use JSON::PP ();
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::LibraryActs;
use Pulse::LibraryPromises;
use Pulse::Process;
use Pulse::ProgramRun qw(run_programs_on wait_finished of_finished);
use Pulse::PythonLibrary;
use Pulse::Server;
use Pulse::Worker;

use constant ASYNC => 8;

my $python = require_python('psycopg');
my $node = start_server('main', settings => \%PATIENT);
value($node, "SELECT pulse.set_task('$_', backoff => 'none', max_attempts => 2)")
  for qw(act await few list checked);
act_on($node);
run_programs_on($node);
promise_on($node);
my $workers = 0;

sub start {
    my (@options) = @_;
    local $ENV{TOLD_FILE} = told_file();
    my $worker = Pulse::Worker->start($node, 'worker-' . ++$workers, concurrency => undef,
        # -P: the current folder has the library of the server, pg_pulse.so.
        options => [ '--program', "$python -P -m pg_pulse --takes 30 acts", '--grace', '2s',
            @options ]);
    $worker->wait_for('registered');
    return $worker;
}

my $worker = start();
my $once = 'max_attempts => 1';

# A job of the handler that is async.
sub act_async {
    my ($do, %more) = @_;
    my $payload = JSON::PP->new->canonical->encode({ do => $do, %more });
    return add_job($node, 'await', "'$payload'");
}

returns_results(
    none => '', date => '"1970-01-01T00:00:00+00:00"', decimal => '"1.10"',
    integer => '1152921504606846977', exact => '{"n": 9007199254740993, "f": 1.10}');

refuses_results(
    nan => qr/the result of act is no JSON: .*float values are not/,
    set => qr/the result of act is no JSON: it has a set/,
    circle => qr/the result of act is no JSON: Circular reference/);

subtest 'whatever a handler raises is the error' => sub {
    my %error = (
        'raise hostile' => qr/acts\.Hostile: <exception str\(\) failed>$/,
        'raise elusive' => qr/^the handler raised a Elusive that cannot be shown$|^acts\.Elusive$/m,
        'raise exit' => qr/SystemExit: bye$/,
        'raise interrupt' => qr/KeyboardInterrupt$/,
        'raise no exception' => qr/TypeError: exceptions must derive from BaseException$/,
        'raise error' => qr/^Traceback .*\nValueError: it broke \x{fc}\?$/s,
        'raise large' => qr/^Traceback .*, in act\n.*\n\x{2026}\ny+$/s,
        'raise deep' => qr/RecursionError: maximum recursion depth exceeded/,
        'for good' => qr/Failure: no such address$/,
        'no such deed' => qr/KeyError: 'no such deed'$/);
    my %id = map { $_ => act($_, options => $once) } sort keys %error;
    for (sort keys %id) {
        is(wait_finished($id{$_}), 'failed|1|0', "$_: the job fails");
        my $text = of_finished('last_error', $id{$_});
        utf8::decode($text);
        like($text, $error{$_}, "$_: with its words");
        unlike($text, qr{pg_pulse/handlers}, "$_: and the frames of the handler only");
    }
    cmp_ok(of_finished('length(last_error)', $id{'raise large'}), '<', 9000, 'bounded');
};

ends_by_words();

tells_of_itself();

refuses_payload('{"to": "ada", "copies": [1, "two"]}',
    qr/the payload of checked is refused: copies\.1: int is wanted, and str is given/,
    '{"to": "ada", "sent": "2026-11-28"}');

survives_payloads(
    reads_deep() ? () : (deep => qr/the payload of act cannot be read: maximum recursion/),
    digits => qr/the payload of act cannot be read: Exceeds the limit/);

prints_with_its_job($worker, ASYNC, \&act_async);

logs_stacks_whole($worker);

takes_so_many();

is_told_to_end(\&act_async);

subtest 'a handler that blocks the loop' => sub {
    my ($gate, $other) = (gate('block'), gate('bystander'));
    my $bystander = act('gate', gate => $other);
    wait_told('began', $bystander);
    my $blocks = act_async('block', gate => $gate);
    wait_told('began', $blocks);
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'handlers in threads go on');
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
    my $forks = act('fork and return');
    is(wait_finished($forks), 'completed|1|0', 'a handler that forks');
    is(of_finished('result', $forks), '"parent"', 'ends once');
    ok(Pulse::Process->new((wait_told('forked', $forks))[2])->wait_gone, 'and its child ends');
    is(scalar(grep { /progress/ } told_lines()), 0, 'which says nothing of the job');
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'and its program goes on');
};

survives_exit();

drains_at_sigterm($worker, sub { wait_told('ended', $_[0]) });

effect_happens_once(40, \&start);

goes_on_after_its_end(\&start);

expect_healthy($node);
done_testing();
