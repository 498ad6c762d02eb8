# The library for Node without pulse-worker: a worker of its own. test/protocol/workers/node_direct
# has all rules of the protocol; here is what the library promises beside them.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::DirectPromises;
use Pulse::LibraryActs;
use Pulse::LibraryPromises qw(returns_results refuses_payload survives_payloads takes_so_many);
use Pulse::NodeLibrary;
use Pulse::Program;
use Pulse::ProgramRun qw(run_programs_on wait_finished);
use Pulse::Server;

require_node();
my $driver = require_driver() or plan skip_all => 'no node with the library pg';
# A dead program is noticed at once, and a slow machine loses none.
my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '60s' });
my %connection = (PGHOST => $node->host, PGPORT => $node->port, PGUSER => scalar getpwuid $>,
    PGDATABASE => 'postgres', DRIVER => $driver);
value($node, "SELECT pulse.set_task('$_', backoff => 'none', max_attempts => 2)")
  for qw(act few list checked);
value($node, 'CREATE TABLE effect (job bigint)');
act_on($node);
run_programs_on($node);
promise_directly_on($node, \&start);
my $programs = 0;

# `under`: gives the command that runs the words of the program.
sub start {
    my ($under, %more) = @_;
    local %ENV = (%ENV, %connection, GRACE => 1000, %more);
    my @command = ('node', 'test/e2e/node/program.mjs', told_file());
    return Pulse::Program->start('program-' . ++$programs, $under ? $under->(@command) : \@command);
}

my $program = start();

prints_with_its_job_directly($program);
names_lines_of_stacks($program);
returns_results(
    undefined => '', nan => '', date => '"1970-01-01T00:00:00.000Z"',
    exact => '{"n": 9007199254740993, "f": 1.10}');
refuses_payload('{"to": 7}', qr/the payload of checked is refused: to: a text is wanted/,
    '{"to": " ada "}');
survives_payloads();
takes_so_many();
is_told_to_end_directly();
ends_by_words_directly(
    bigint => qr/the result of act is no JSON/, large => qr/the answer of act has 2097\d+ bytes/,
    'large checkpoint' => qr/the checkpoint has 2097\d+ bytes/,
    'throw null' => qr/^the handler threw null$/);
survives_restart_directly();
ends_at_sigterm_directly($program, GRACE => 60_000);
ends_without_server_directly();
effect_happens_once_directly(20);

subtest 'a handler that blocks the loop beyond the threshold' => sub {
    set($node, 'pulse.sweep_threshold' => '2s');
    $program = start();
    my $blocks = act('block', gate => gate('block'));
    wait_told('began', $blocks);
    # As another worker does: this one's sweeps wait for its loop.
    wait_until($node, 'SELECT workers_lost = 1 FROM pulse.sweep()', 'the claim to be lost');
    open_gate('block');
    is(wait_finished($blocks), 'completed|2|0', 'costs an attempt, and the job runs again');
    $program->signal('TERM');
    is($program->wait_exit, 0, 'in the program, which goes on');
};

refuses_pooler_directly();
refuses_databases_directly(qr/hint: connection, or PGHOST, PGDATABASE/);
expect_healthy($node);
done_testing();
