# pulse prints what its views say, as tables and as JSON, and ends with the status that fits.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Console;
use Pulse::Server;
use Pulse::Session;

use constant { DONE => 0, USAGE => 64, NO_DATABASE => 69, NO_RIGHT => 77 };

my $node = start_server('main', settings => \%PATIENT);
for my $kind (qw(observer operator producer)) {
    value($node, "CREATE ROLE a_$kind LOGIN; SELECT pulse.grant_$kind('a_$kind')");
}
value($node, 'CREATE ROLE stranger LOGIN');

subtest 'version, help and mistakes' => sub {
    is(pulse($node, '--version')->{out}, "pulse 0.2.0\n", 'the version');
    is(pulse($node, '--help')->{status}, DONE, 'help is no mistake');
    is(pulse($node)->{status}, USAGE, 'a command is needed');
    is(pulse($node, 'nonsense')->{status}, USAGE, 'an unknown command');
    is(pulse($node, 'workers', '--nonsense')->{status}, USAGE, 'an unknown option');
};

subtest 'workers and queues' => sub {
    my $worker = Pulse::Session->new($node);
    my $id = $worker->query(q{SELECT id FROM pulse.register_worker('one', '{mail,other}')});
    value($node, q{SELECT pulse.add_job('mail', queue_name => 'letters')});
    my ($row) = @{ rows_of($node, 'workers') };
    is($row->{id}, $id, 'the id of the worker');
    like(pulse($node, '--json', 'workers')->{out}, qr/"id": "$id"/, 'ids are strings');
    is_deeply($row->{tasks}, [ 'mail', 'other' ], 'the tasks of the worker');
    my $said = pulse_as($node, 'a_observer', 'workers');
    like($said->{out}, qr/^ *worker +name .*\n *$id +one .* alive .*mail, other\n\z/, 'a table');
    unlike($said->{out}, qr/\e/, 'no colours where no terminal is');
    $worker->query("SELECT pulse.deregister_worker($id)");
    is_deeply(rows_of($node, 'workers'), [], 'a worker that ended is left out');
    is(rows_of($node, 'workers', '--all')->[0]{status}, 'stopped', 'but not with --all');
    is(rows_of($node, 'queues')->[0]{name}, 'letters', 'the queue with a job');
};

subtest 'no database, no extension, no right' => sub {
    my $said = pulse_as($node, 'stranger', 'workers');
    is($said->{status}, NO_RIGHT, 'status of a role without rights');
    like($said->{err}, qr/grant_observer\('stranger'\)/, 'says who gives the right');
    $node->safe_psql('postgres', 'CREATE DATABASE bare');
    my $bare = 'host=' . $node->host . ' port=' . $node->port . ' dbname=bare';
    $said = pulse($node, '-d', $bare, 'workers');
    is($said->{status}, NO_DATABASE, 'status without the extension');
    like($said->{err}, qr/database bare has no pg_pulse.*CREATE EXTENSION pg_pulse/s,
        'the way out');
    $said = pulse($node, '-d', 'host=/nonexistent dbname=x', 'workers');
    is($said->{status}, NO_DATABASE, 'status without a server');
    is(pulse($node, '-d', "host='", 'workers')->{status}, USAGE, 'a bad connection string');
};

expect_healthy($node);
done_testing();
