# Random calls by each kind of role: of functions, procedures, tables and views, with arguments of
# the right types that are hostile otherwise. No call crashes the server, fails within, or outlives
# its timeout; none shows a role what its grant does not give, or changes a stranger's job by way of
# a producer. PULSE_CALLS says how many each role makes, PULSE_SEED (the test prints it) repeats
# them.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use Pulse::RandomCalls;
use Pulse::Server;
use Pulse::Session;

my $calls = $ENV{PULSE_CALLS} // 300;
my $seed = $ENV{PULSE_SEED} // int time;
srand $seed;
note "PULSE_SEED=$seed";

use constant { BATCH => 25, TIMEOUT_SECONDS => 1, MOST_SECONDS => 30 };

my $node = start_server('main', settings => { %PATIENT, 'pulse.keep_completed' => '1d',
    max_wal_size => '4GB' });
my @kinds = qw(producer caller worker operator scheduler observer);
value($node, "CREATE ROLE a_$_; SELECT pulse.grant_$_('a_$_')") for @kinds;
value($node, q{CREATE ROLE a_none; GRANT USAGE ON SCHEMA pulse TO a_none;
    CREATE ROLE stranger; SELECT pulse.grant_producer('stranger'); CREATE ROLE scratch});
my $owner = Pulse::Session->new($node);
$owner->query('\i test/pgtap/support/every_state.psql');
$owner->query('\i test/e2e/random_calls/planted.sql');

# The marks that each kind may see; an operator sees all.
my %may_see = (
    none => [], producer => [], scheduler => [], observer => [],
    caller => [qw(error result reason)],
    worker => [qw(payload checkpoint error result token)]);
# Of refusals by the extension, and by the server for what it was asked to do.
my $refusals = qr/^(?:PU\w{3}|22\w{3}|54\w{3}|40001|42501|42704|42883|55P03|57014|2D000|25001)$/;

sub planted { return map { split /\|/ } split /\n/, $owner->query('SELECT * FROM plant()') }

# What a session shows of each statement, and what the server said beside it.
sub answers_of {
    my ($session, @statements) = @_;
    my $said = $session->try(join "\n", map { ("$_;", '\echo -=-', '\warn -=-') } @statements);
    my @shown = split /^-=-$/m, $said, -1;
    my @told = split /^-=-$/m, $session->said, -1;
    return map { [ $shown[$_] // '', $told[$_] // '' ] } 0 .. $#statements;
}

my (%faults, %codes);
sub note_fault {
    my ($kind, $what, $statement) = @_;
    $faults{"$kind: $what"} //= substr $statement, 0, 500;
    return;
}

sub check_answer {
    my ($kind, $statement, $answer, $marks) = @_;
    my ($code) = $answer->[1] =~ /(?:ERROR|FATAL|PANIC):  (\w{5}):/;
    $codes{$kind}{ $code // 'ok' }++;
    note_fault($kind, "$code: $answer->[1]", $statement) if defined $code && $code !~ $refusals;
    note_fault($kind, 'does something', $statement) if $kind eq 'none' && !defined $code;
    return if $kind eq 'operator';
    my %visible = map { $_ => 1 } @{ $may_see{$kind} };
    for my $mark (grep { !$visible{$_} } sort keys %{$marks}) {
        note_fault($kind, "sees $mark", $statement)
          if "$answer->[0]$answer->[1]" =~ /\Q$marks->{$mark}\E/;
    }
    return;
}

# A batch of calls, in a transaction that is rolled back or each by itself.
sub run_batch {
    my ($kind, $session, $random) = @_;
    my %marks = planted();
    $random->learn($owner);
    my @statements = map { $random->statement($kind) } 1 .. BATCH;
    my $before = $owner->query('SELECT strangers()');
    my $is_undone = rand() < 0.5;
    $session->query('BEGIN') if $is_undone;
    my @wrapped = map { $is_undone ? "SAVEPOINT s;\n$_;\nROLLBACK TO s" : $_ } @statements;
    my $began = time;
    my @answers = answers_of($session, @wrapped);
    note_fault($kind, 'outlives its timeout', join ";\n", @statements)
      if time - $began > MOST_SECONDS + BATCH * TIMEOUT_SECONDS;
    check_answer($kind, $statements[$_], $answers[$_], \%marks) for 0 .. $#statements;
    $session->query('ROLLBACK') if $is_undone;
    return if $kind =~ /^(?:worker|operator)$/;
    note_fault($kind, 'changes a job of a stranger', join ";\n", @statements)
      if $owner->query('SELECT strangers()') ne $before;
    return;
}

for my $kind ('none', @kinds) {
    my $session = Pulse::Session->new($node);
    $session->query("SET SESSION AUTHORIZATION a_$kind");
    $session->query('SET statement_timeout = ' . 1000 * TIMEOUT_SECONDS);
    $session->query('SET client_min_messages = error');
    my $random = Pulse::RandomCalls->new($node, "a_$kind");
    run_batch($kind, $session, $random) for 1 .. ($calls + BATCH - 1) / BATCH;
    $session->quit;
    note "$kind: " . join ', ', map { "$_ $codes{$kind}{$_}" } sort keys %{ $codes{$kind} };
}
diag "$_\n    $faults{$_}" for sort keys %faults;
is_deeply([ sort keys %faults ], [], "$calls calls by each kind of role do what they may");
for my $kind (@kinds) {
    cmp_ok($codes{$kind}{ok} // 0, '>', $calls / 10, "$kind: many calls did something");
}
$owner->query('SELECT plant()');
is($owner->query('SELECT count(*) FROM pulse.verify()'), 0, 'all promises are kept');
$owner->quit;
expect_healthy($node);
done_testing;
