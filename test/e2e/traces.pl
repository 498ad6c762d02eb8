# The trace of what adds a job goes on through whatever runs it: an executable and the jobs that it
# adds, a process, a function, a handler in C++, and a client of the HTTP API.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Api;
use Pulse::Console;
use Pulse::Handlers;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $trace = '4bf92f3577b34da6a3ce929d0e0e4736';
my $parent = "00-$trace-00f067aa0ba902b7-01";
my $node = start_server('main', settings => { %QUICK, 'pulse.keep_completed' => '-1' });
my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
my $tasks = Pulse::Tasks->new(
    called => 'true',
    call => qq{pulse -d '$database' add called
        printf '{"result": {"variable": "%s", "input": %s}}\\n' \\
            "\${TRACEPARENT-none}" "\$(cat)" >&3});
value($node, q{
    CREATE FUNCTION adds(payload json) RETURNS bigint LANGUAGE sql AS
      $$ SELECT id FROM pulse.add_job('called') $$;
    SELECT pulse.set_task('adds', handler => 'adds(json)')});

sub add {
    my ($task, $of) = @_;
    return value($node, "SET pulse.traceparent = '$of'; SELECT id FROM pulse.add_job('$task')");
}

# What a job of this task returned, at a path.
sub result {
    my ($job, $path) = @_;
    wait_until($node, "SELECT count(*) = 1 FROM pulse.finished_job WHERE id = $job",
        "job $job is done");
    return value($node, "SELECT result #>> '$path' FROM pulse.finished_job WHERE id = $job");
}

sub trace_of {
    my ($where) = @_;
    wait_until($node, "SELECT count(*) = 1 FROM pulse.finished_job WHERE $where", "$where is done");
    return value($node, "SELECT traceparent FROM pulse.finished_job WHERE $where");
}

my $worker = Pulse::Worker->start_registered($node, 'first', tasks => $tasks, concurrency => 4,
    options => [ '--process', 'echo=test/e2e/processes/echo.sh' ]);

subtest 'an executable, and what it adds' => sub {
    my $job = add('call', $parent);
    is(result($job, '{variable}'), $parent, 'it has TRACEPARENT');
    is(result($job, '{input,job,traceparent}'), $parent, 'and the same in its document');
    is(trace_of("identifier = 'called'"), $parent, 'pulse add hands it on');
    for my $event (qw(claimed output completed)) {
        is($worker->wait_for($event, job => $job)->{trace_id}, $trace, "the log has it: $event");
    }
    like(pulse($node, 'job', $job)->{out}, qr/\Q$parent/, 'pulse shows it');
};

subtest 'a process' => sub {
    is(result(add('echo', $parent), '{job,traceparent}'), $parent, 'it has it in its document');
};

subtest 'a function' => sub {
    my $added = result(add('adds', $parent), '{}');
    is(trace_of("id = $added"), $parent, 'what it adds is in the same trace');
    is(trace_of('id = ' . result(add('adds', ''), '{}')), '', 'and of the next job in none');
};

subtest 'a handler in C++' => sub {
    my $handlers = Pulse::Worker->start_registered($node, 'handlers',
        program => Pulse::Handlers::build('test/e2e/handlers') . '/pulse-handlers',
        tasks => $tasks);
    is(result(add('trace', $parent), '{}'), $parent, 'it has it');
    $handlers->signal('TERM');
    $handlers->wait_exit;
};

subtest 'a job without a trace' => sub {
    my $job = add('call', '');
    is(result($job, '{variable}'), 'none', 'its executable has no TRACEPARENT');
    is(result($job, '{input,job,traceparent}'), '', 'and none in its document');
    ok(!exists $worker->wait_for('completed', job => $job)->{trace_id}, 'nor is one in the log');
};

subtest 'the HTTP API' => sub {
    value($node, q{CREATE ROLE serving LOGIN; CREATE ROLE a_client;
        SELECT pulse.grant_producer('a_client'), pulse.grant_worker('a_client');
        GRANT a_client TO serving});
    my $api = Pulse::Api->start($node, 'serve', role => 'serving', tokens => {
        client => 'a_client' });
    my $post = sub {
        my ($path, $body, %headers) = @_;
        return $api->curl(POST => $path, as => 'client', body => $body, headers => \%headers);
    };
    my $client = $post->('/v1/workers', { name => 'curl', tasks => ['far'] })->{json}{id};
    my $claim = sub {
        return $post->('/v1/claims', { worker_id => $client })->{json}{jobs}[0]{traceparent};
    };
    $post->('/v1/jobs', { identifier => 'far' }, traceparent => $parent);
    is($claim->(), $parent, 'the header of an add comes with the claim');
    is($post->('/v1/jobs', { identifier => 'far' }, traceparent => 'nonsense')->{status}, 201,
        'one that cannot be read refuses nothing');
    is($claim->(), undef, 'and is ignored');
    $post->('/v1/jobs', { identifier => 'far' });
    is($claim->(), undef, 'no session keeps that of an earlier request');
};

my $refused = pulse($node, 'add', 'far', '--traceparent', 'nonsense');
isnt($refused->{status}, 0, 'pulse add refuses a bad traceparent');
like($refused->{err}, qr/nonsense/, 'and names it');
$worker->signal('TERM');
$worker->wait_exit;
expect_healthy($node);
done_testing();
