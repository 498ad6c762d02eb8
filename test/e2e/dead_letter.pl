# A job that dies adds its dead letter in the same transaction: a crash of the server leaves both or
# neither, and a worker runs the letter as any other job.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Api;
use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => { %QUICK, 'pulse.keep_completed' => '1 h' });
value($node, q{SELECT pulse.set_task('charge', max_attempts => 1, dead_letter => 'apologise')});

# The states in which jobs of the task charge ended, each with its letters.
sub deaths {
    return value($node, q{
        SELECT string_agg(concat(d.state, ' ', d.letters), ', ' ORDER BY d.id)
          FROM (SELECT f.id, f.state, count(j.id) AS letters
                  FROM pulse.finished_job AS f LEFT JOIN pulse.job AS j ON j.dead_letter_of = f.id
                 WHERE f.identifier = 'charge' GROUP BY f.id) AS d});
}

subtest 'a crash' => sub {
    my $session = Pulse::Session->new($node);
    my $worker = $session->query(q{SELECT id FROM pulse.register_worker('one', '{charge}')});
    my $fails = sub {
        my $job = add_job($node, 'charge');
        my $token = $session->query("SELECT token FROM pulse.claim($worker)");
        $session->query('BEGIN') if shift;
        is($session->query("SELECT pulse.fail($job, $token, 'no money')"), 'failed', 'a job fails');
        return $job;
    };
    $fails->(1);
    kill_server($node);
    $node->start;
    is(deaths(), '', 'before the commit leaves neither the end nor the letter');
    is(value($node, "SELECT pulse.declare_lost($worker, 'the server crashed')"), 1,
        'given that the job is recovered');
    is(deaths(), 'failed 1', 'it ends, with its letter');
    $session = Pulse::Session->new($node);
    $worker = $session->query(q{SELECT id FROM pulse.register_worker('two', '{charge}')});
    $fails->(0);
    kill_server($node);
    $node->start;
    is(deaths(), 'failed 1, failed 1', 'after the commit leaves both');
};

subtest 'a worker' => sub {
    my $tasks = Pulse::Tasks->new(
        charge => 'echo "no money" >&2; exit 1',
        apologise => 'tell began');
    my $job = add_job($node, 'charge', q{payload => '{"card": "4711"}'});
    my $worker = Pulse::Worker->start_registered($node, 'worker', tasks => $tasks);
    $tasks->wait_for('began', task => 'apologise', count => 3);
    wait_until($node, q{SELECT count(*) = 3 FROM pulse.finished_job
        WHERE identifier = 'apologise' AND state = 'completed'}, 'the letters complete');
    is( value($node, qq{
            SELECT l.payload ->> 'error' ~ 'no money', l.payload -> 'payload' ->> 'card',
                   d.dead_letter_id = l.id
              FROM pulse.finished_job AS d JOIN pulse.finished_job AS l ON l.dead_letter_of = d.id
             WHERE d.id = $job}),
        't|4711|t', 'each tells of its job');
    $worker->signal('TERM');
    is($worker->wait_exit, 0, 'the worker drains');
};

subtest 'pages and answers' => sub {
    my $api = Pulse::Api->start($node, 'open');
    local $api->{description} = undef;  # pages are not in it
    my ($dead, $letter) = split /\|/, value($node, q{
        SELECT id, dead_letter_id FROM pulse.finished_job
         WHERE dead_letter_id IS NOT NULL LIMIT 1});
    for ([ $dead, $letter ], [ $letter, $dead ]) {
        my ($from, $to) = @$_;
        like($api->curl(GET => "/jobs/$from")->{body}, qr{<dd><a href="/jobs/$to">$to</a></dd>},
            "the page of job $from leads to job $to");
    }
    like($api->curl(GET => '/tasks')->{body}, qr{<a href="/task\?name=apologise">apologise</a>},
        'the tasks lead to the task of the letters');
    is($api->curl(GET => "/v1/jobs/$letter")->{json}{job}{dead_letter_of},
        $dead, 'ids are texts for programs');
};

expect_healthy($node);
done_testing();
