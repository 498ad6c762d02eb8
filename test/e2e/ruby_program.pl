# The library for Ruby under pulse-worker --program: what handlers return, raise and print, how they
# are told to end, and that an effect in their own transaction happens once.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::LibraryActs;
use Pulse::LibraryPromises;
use Pulse::ProgramRun qw(run_programs_on wait_finished of_finished drain);
use Pulse::RubyLibrary;
use Pulse::Server;
use Pulse::Worker;


require_ruby('pg');
my $node = start_server('main', settings => \%PATIENT);
value($node, "SELECT pulse.set_task('$_', backoff => 'none', max_attempts => 2)")
  for qw(act few list);
act_on($node);
run_programs_on($node);
promise_on($node);
my $workers = 0;

sub start {
    my (@options) = @_;
    local $ENV{TOLD_FILE} = told_file();
    my $worker = Pulse::Worker->start($node, 'worker-' . ++$workers, concurrency => undef,
        options => [ '--program', 'ruby test/e2e/ruby/program.rb', '--grace', '2s', @options ]);
    $worker->wait_for('registered');
    return $worker;
}

my $worker = start();
my $once = 'max_attempts => 1';

returns_results(
    nothing => '', time => '"1970-01-01T00:00:00.000Z"',
    'large number' => '1152921504606846976',
    exact => '{"n": 9007199254740993, "f": 1.10}');

refuses_results(
    nan => qr/the result of act is no JSON: .*NaN/,
    object => qr/the result of act is no JSON: it has a Object/,
    bytes => qr/the result of act is no JSON/,
    circle => qr/the result of act is no JSON: it is within itself/);

subtest 'whatever a handler raises is the error' => sub {
    my %error = (
        raise => qr/^test.e2e.ruby.program\.rb:\d+:in .*: it broke \(ArgumentError\).*of this/s,
        'raise a text' => qr/only a text \(RuntimeError\)/,
        'raise nil' => qr/exception class.object expected \(TypeError\)/,
        'raise hostile' => qr/^the handler raised a Hostile that cannot be shown$/,
        'raise bytes' => qr/b\?.+d \(RuntimeError\)/,
        'raise large' => qr/: yyy/,
        'no memory' => qr/none \(NoMemoryError\)/,
        overflow => qr/stack level too deep \(SystemStackError\)/,
        throw => qr/uncaught throw :nowhere \(UncaughtThrowError\)/,
        'end the thread' => qr/^the handler has ended its thread$/,
        'for good' => qr/no such address \(PgPulse::Failure\)/,
        'no such deed' => qr/key not found: "deed" \(KeyError\)/);
    my %id = map { $_ => act($_, options => $once) } sort keys %error;
    for (sort keys %id) {
        is(wait_finished($id{$_}), 'failed|1|0', "$_: the job fails");
        my $text = of_finished('left(last_error, 1000)', $id{$_});
        like($text, $error{$_}, "$_: with its words");
        unlike($text, qr{lib/pg_pulse/}, "$_: and no frames of the library");
    }
    cmp_ok(of_finished('length(last_error)', $id{'raise large'}), '<', 20_000, 'bounded');
};

survives_payloads(half => qr/^the payload cannot be read: .*surrogate/);

ends_by_words();

tells_of_itself(sub { ok($_[0]{same}, 'it is the job of the library') });

prints_with_its_job($worker);

logs_stacks_whole($worker);

takes_so_many();

is_told_to_end();

subtest 'a handler that never rests' => sub {
    my $gate = gate('block');
    my $blocks = act('block', gate => $gate);
    wait_told('began', $blocks);
    is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'other jobs go on');
    open_gate('block');
    is(wait_finished($blocks), 'completed|1|0', 'nothing is lost');
};

subtest 'a handler that starts processes' => sub {
    my $id = act('spawn');
    is(wait_finished($id), 'completed|1|0', 'ends as ever');
    is(of_finished('result', $id), '{"sockets":0,"descriptor":"taken"}',
        'and they get neither the socket of the worker nor its name');
    my $again = act('spawn itself');
    is(wait_finished($again), 'completed|1|0', 'the program itself as a child');
    like(of_finished('result', $again), qr/runs jobs in this process already, or in the one that/,
        'is told that it gets no jobs');
    my $forked = act('fork');
    is(wait_finished($forked), 'completed|1|0', 'a child that goes on as the handler');
    is(of_finished('result', $forked), '"the parent"', 'has no answer to give');
};

survives_exit(sub {
    my $other = act('gate', gate => gate('beside'));
    wait_told('began', $other);
    my $exits = act('exit');
    # Both may crash again at once, and be quarantined.
    my $both = "IN ($exits, $other)";
    wait_until($node, "SELECT count(*) = 2 FROM pulse.attempt
        WHERE job_id $both AND attempt = 1 AND outcome = 'lost'", 'several jobs to be lost');
    is(value($node, "SELECT count(*) FROM (SELECT id, crashes FROM pulse.job
        UNION ALL SELECT id, crashes FROM pulse.finished_job) AS j
        WHERE id $both AND crashes >= 1"), 2, 'each of several jobs counts a crash');
    is(value($node, "SELECT count(*) FROM pulse.attempt WHERE job_id $both AND outcome = 'failed'"),
        0, 'and none fails');
    value($node, "SELECT pulse.cancel_job(id) FROM pulse.job");
    open_gate('beside');
});

drains_at_sigterm($worker, sub { wait_told('ended'); 1 == grep { /^ended/ } told_lines() });

effect_happens_once(20, \&start);

goes_on_after_its_end(\&start);

subtest 'a program that ends within the transaction of a handler' => sub {
    local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
      ($node->host, $node->port, scalar getpwuid($>), 'postgres');
    my $holding = start('--pass-env', qw(PGHOST PGPORT PGUSER PGDATABASE));
    my $id = act('hold');
    kill 'TERM', (wait_told('held', $id))[2];
    is(wait_finished($id), 'completed|2|0', 'the job runs again');
    is(value($node, "SELECT count(*) FROM effect WHERE job = $id"), 0, 'and nothing was committed');
    drain($holding);
};

subtest 'a program that no worker has started' => sub {
    my $output = `ruby test/e2e/ruby/program.rb 2>&1`;
    isnt($?, 0, 'ends with an error');
    like($output, qr/a pulse-worker starts this program.*pulse-worker --database NAME --program/s,
        'that says how it is meant to be started');
};

expect_healthy($node);
done_testing();
