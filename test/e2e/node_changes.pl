# A change of the jobs of several databases: one question with the jobs of each node, one operation
# of each node, undo and stop of all. A node that is gone, hangs, freezes, or has an older pg_pulse
# is left alone, and the others make their change.
use strict;
use warnings FATAL => 'all';

use IO::Socket::INET ();
use IPC::Run ();
use Test::More;

use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils   ();
use Pulse::Console;
use Pulse::Server;
use Pulse::Session;

use constant { USAGE => 64, GONE => 69, REFUSED => 1 };

my $node = start_server('main', settings => \%PATIENT);
value($node, "CREATE DATABASE $_") for qw(two old);
value($node, 'CREATE EXTENSION pg_pulse; SELECT pulse.set_shard(2)', 'two');
value($node, q{CREATE EXTENSION pg_pulse VERSION '0.1.0'}, 'old');
value($node, q{SELECT pulse.add_job('brew') FROM generate_series(1, 3)});
value($node, q{SELECT pulse.add_job('brew') FROM generate_series(1, 2500)}, 'two');
value($node, q{SELECT pulse.add_job('bake') FROM generate_series(1, 4)}, 'two');

sub dsn {
    my ($name, $database) = @_;
    return ('-d', "$name=host=" . $node->host . ' port=' . $node->port . " dbname=$database");
}
my @both = (dsn('one', 'postgres'), dsn('two', 'two'));
my $nobody = PostgreSQL::Test::Cluster::get_free_port();
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die "listen: $!";
my @bad = ('-d', "gone=host=127.0.0.1 port=$nobody dbname=x",
    '-d', 'hangs=host=127.0.0.1 port=' . $listener->sockport
      . ' dbname=x sslmode=disable gssencmode=disable connect_timeout=3600',
    dsn('old', 'old'), dsn('again', 'postgres'));

sub run_pulse {
    my ($out, $err) = ('', '');
    IPC::Run::run([ 'pulse', @_ ], '<', '/dev/null', '>', \$out, '2>', \$err,
        IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
    return { status => $? >> 8, out => $out, err => $err };
}

sub rows {
    my $said = run_pulse('--json', @_);
    return { %$said, rows => { map { $_->{node} => $_ } @{ json_of($said->{out}) } } };
}

# How many jobs of the task wait, at one and at two.
sub waiting {
    my ($task) = @_;
    return join ' ', map { value($node, "SELECT count(*) FROM pulse.job
        WHERE identifier = '$task' AND state = 'ready'", $_) } qw(postgres two);
}

subtest 'nothing is changed without a yes' => sub {
    my $said = run_pulse(@both, 'cancel', '--task', 'brew');
    is($said->{status}, REFUSED, 'no terminal to ask on');
    like($said->{err}, qr/\A *node +job +task .*\none +\d+ +brew /, 'the jobs have their node');
    is(waiting('brew'), '3 2500', 'all wait');
    my $command = join ' ', 'pulse', (map { "'$_'" } @both), 'cancel --task brew';
    $said = `printf 'n\\n' | script -qec "$command" /dev/null`;
    like($said, qr/cancel all 3 waiting jobs of one, all 2,500 waiting jobs of two whose task is/,
        'the question has the number of each node');
    is(waiting('brew'), '3 2500', 'no is no');
    $said = run_pulse(@both, 'cancel', '--task', 'boil', '--yes');
    is($said->{status}, REFUSED, 'no such job at any node');
    like($said->{err}, qr/no job to cancel meets \{"task":"boil"\}/, 'is told');
    is(run_pulse(@both, 'cancel', '--yes')->{status}, USAGE, 'no filter is no filter');
    $said = run_pulse(@both, 'cancel', 1, '--yes');
    is($said->{status}, USAGE, 'an id is of one database');
    like($said->{err}, qr/ids are of one database/, 'is told');
};

subtest 'each node has an operation, and undo is of all' => sub {
    my $said = rows(@both, 'cancel', '--task', 'brew', '--yes');
    is($said->{status}, 0, 'all nodes answer');
    my $rows = $said->{rows};
    is_deeply([ map { "@{ $rows->{$_} }{qw(action state changed)}" } qw(one two) ],
        [ 'cancel done 3', 'cancel done 2500' ], 'which is done to its last step');
    is(waiting('brew'), '0 0', 'at both');
    my $label = "one:$rows->{one}{id},two:$rows->{two}{id}";
    like($said->{err}, qr/^pulse undo $label takes it back$/m, 'the way back is told');
    my $list = run_pulse(@both, '--json', 'operations');
    is(scalar(grep { $_->{action} eq 'cancel' } @{ json_of($list->{out}) }), 2,
        'the list of operations has both');
    is(run_pulse(@both, 'undo', $label)->{status}, REFUSED, 'undo asks first');
    $said = run_pulse(@both, 'undo', $label, '--yes');
    is($said->{status}, 0, 'undo');
    like($said->{out}, qr/^one: operation \d+ is done: undo of 3 jobs\ntwo: .* of 2,500 jobs$/m,
        'is told of each node');
    is(waiting('brew'), '3 2500', 'all wait again');
    $said = rows(@both, 'cancel', '--task', 'bake', '--yes');
    is_deeply([ keys %{ $said->{rows} } ], ['two'], 'a node without such a job has no operation');
};

subtest 'an operation that was left goes on, or ends' => sub {
    my $start = sub {
        my ($action) = @_;
        my %id = map { $_ => value($node, "SELECT id FROM pulse.start_operation('$action',
            '{\"task\": \"brew\"}', '{}', 'ada')", $_ eq 'one' ? 'postgres' : 'two') } qw(one two);
        return "one:$id{one},two:$id{two}";
    };
    my $said = rows(@both, 'operations', 'stop', $start->('cancel'));
    is_deeply([ map { $said->{rows}{$_}{state} } qw(one two) ], [ 'stopped', 'stopped' ], 'stop');
    is(waiting('brew'), '3 2500', 'before any job');
    my $label = $start->('cancel');
    $said = rows(@both, 'operations', 'run', $label);
    is_deeply([ map { $said->{rows}{$_}{state} } qw(one two) ], [ 'done', 'done' ], 'run');
    is(waiting('brew'), '0 0', 'changes all');
    run_pulse(@both, 'undo', $label, '--yes');
    for my $case ([ '17', qr/names no operations of several databases/ ],
        [ 'one:0', qr/names no operations/ ], [ 'three:4', qr/none is named three/ ]) {
        $said = run_pulse(@both, 'undo', $case->[0], '--yes');
        is($said->{status}, USAGE, "of $case->[0]");
        like($said->{err}, $case->[1], 'with the reason');
    }
    is(run_pulse('-d', $node->connstr('postgres'), 'undo', 'one:17', '--yes')->{status}, USAGE,
        'of one database the id alone');
};

subtest 'a node that does not answer is left alone' => sub {
    my $said = rows(@both, @bad, 'cancel', '--task', 'brew', '--yes');
    is($said->{status}, GONE, 'the exit status tells');
    like($said->{err}, qr/^pulse: gone cannot be reached: .*; its jobs stay as they are$/m, 'gone');
    like($said->{err}, qr/^pulse: hangs does not answer; /m, 'hangs');
    like($said->{err}, qr/^pulse: old .*; its jobs stay/m, 'older');
    like($said->{err}, qr/^pulse: again is the database of node one; /m, 'there twice');
    is_deeply([ sort keys %{ $said->{rows} } ], [qw(one two)], 'the others have operations');
    is(waiting('brew'), '0 0', 'which are done');
    my %id = map { $_ => $said->{rows}{$_}{id} } qw(one two);

    # The node answers the start, and not the step.
    my $lock = Pulse::Session->new($node, database => 'two');
    $lock->query('BEGIN; LOCK TABLE pulse.operation_job IN ACCESS EXCLUSIVE MODE');
    $said = rows(@both, 'undo', "one:$id{one},two:$id{two}", '--yes');
    is($said->{status}, GONE, 'a node that a lock keeps between two steps');
    is($said->{rows}{one}{state}, 'done', 'holds up no other');
    like($said->{rows}{two}{trouble}, qr/^canceling statement due to lock timeout/, 'is told');
    $lock->query('ROLLBACK');
    my $undo = value($node, q{SELECT max(id) FROM pulse.operation}, 'two');
    like($said->{err}, qr/^pulse operations run two:$undo goes on$/m, 'with the way on');
    is(run_pulse(@both, 'operations', 'run', "two:$undo")->{status}, 0, 'which goes on');
    is(waiting('brew'), '3 2500', 'to the end');
};

close $listener;
done_testing();
