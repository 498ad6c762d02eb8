# The library for Python without pulse-worker: a worker of its own. The kit plays the rules of the
# protocol against test/protocol/workers/python_direct; here is what the library promises besides.
use strict;
use warnings FATAL => 'all';

use JSON::PP ();
use Test::More;

use Pulse::DirectPromises;
use Pulse::LibraryActs;
use Pulse::LibraryPromises qw(returns_results refuses_payload survives_payloads takes_so_many);
use Pulse::Process;
use Pulse::Program;
use Pulse::ProgramRun qw(run_programs_on wait_finished of_finished);
use Pulse::PythonLibrary;
use Pulse::Server;

use constant ASYNC => 8;

my $python = require_python('psycopg');
# A dead program is noticed at once, and a slow machine loses none.
my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '60s' });
my %connection = (PGHOST => $node->host, PGPORT => $node->port, PGUSER => scalar getpwuid $>,
    PGDATABASE => 'postgres');
value($node, "SELECT pulse.set_task('$_', backoff => 'none', max_attempts => 2)")
  for qw(act await few list checked);
value($node, 'CREATE TABLE effect (job bigint)');
act_on($node);
run_programs_on($node);
promise_directly_on($node, \&start);
my $programs = 0;

# `under`: gives the command that runs the words of the program.
sub start {
    my ($under, %more) = @_;
    local %ENV = (%ENV, %connection, GRACE => 1, TOLD_FILE => told_file(), %more);
    # -P: the current folder has the library of the server, pg_pulse.so.
    my @command = ($python, qw(-P -m pg_pulse --takes 30 --grace), $ENV{GRACE}, 'acts');
    return Pulse::Program->start('program-' . ++$programs, $under ? $under->(@command) : \@command);
}

# A job of the handler that is async.
sub act_async {
    my ($do, %more) = @_;
    my $payload = JSON::PP->new->canonical->encode({ do => $do, %more });
    return add_job($node, 'await', "'$payload'");
}

my $program = start();

prints_with_its_job_directly($program, ASYNC, 'await', \&act_async);
names_lines_of_stacks($program);
returns_results(
    none => '', date => '"1970-01-01T00:00:00+00:00"', decimal => '"1.10"',
    integer => '1152921504606846977', exact => '{"n": 9007199254740993, "f": 1.10}');
refuses_payload('{"to": 7}', qr/the payload of checked is refused: to: str is wanted/,
    '{"to": "ada", "sent": "2026-11-28"}');
survives_payloads(
    reads_deep() ? () : (deep => qr/the payload of act cannot be read: maximum recursion/),
    digits => qr/the payload of act cannot be read: Exceeds the limit/);
takes_so_many();
is_told_to_end_directly(\&act_async);
ends_by_words_directly(
    nan => qr/the result of act is no JSON/,
    large => qr/the answer of act has 2097\d+ bytes, and a line has at most 1048576/,
    'large rest' => qr/the answer of act has 20\d+ bytes/,
    'large checkpoint' => qr/the checkpoint has 2097\d+ bytes/,
    'raise exit' => qr/SystemExit: bye$/,
    'raise elusive' => qr/^the handler raised a Elusive that cannot be shown$|^acts\.Elusive$/m);

subtest 'an async handler' => sub {
    my $done = act_async('complete');
    is(wait_finished($done), 'completed|1|0', 'completes in its transaction');
    is(of_finished('result', $done), '"paid"', 'with the result');
};

subtest 'handlers that block, exit and fork' => sub {
    my $blocks = act_async('block', gate => gate('block'));
    wait_told('began', $blocks);
    my $beat = value($node, 'SELECT max(last_heartbeat_at) FROM pulse.worker_status');
    wait_until($node, qq{SELECT max(last_heartbeat_at) > '$beat'::timestamptz + interval '1 s'
        FROM pulse.worker_status}, 'beats go on while a handler blocks the event loop');
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'and handlers in threads');
    open_gate('block');
    is(wait_finished($blocks), 'completed|1|0', 'nothing is lost');
    is(wait_finished(act_async('exit')), 'failed|2|0', 'an async handler that exits fails');
    my $forks = act('fork and return');
    is(wait_finished($forks), 'completed|1|0', 'a handler that forks ends once');
    is(of_finished('result', $forks), '"parent"', 'in the process that has the job');
    ok(Pulse::Process->new((wait_told('forked', $forks))[2])->wait_gone, 'and its child ends');
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'and the program goes on');
};

survives_restart_directly();
subtest 'an outage' => sub {
    my $back = 'pg_pulse: connected again';
    $program->lines->wait_for($back, sub { $_[0] eq $back });
    is(scalar(grep { /^pg_pulse: .*connect/ } $program->lines->lines), 2, 'is said once');
};
ends_at_sigterm_directly($program, GRACE => 60);
ends_without_server_directly();
effect_happens_once_directly(20);
refuses_pooler_directly();
refuses_databases_directly(qr/hint: --connection, or PGHOST, PGDATABASE/);
expect_healthy($node);
done_testing();
