# Rows in which each column is NULL that may be NULL break no page, no live page and no command, for
# a visitor without a token, for one who may look and for one who may act.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use Test::More;

use Pulse::Console;
use Pulse::Serve;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE an_observer LOGIN; SELECT pulse.grant_observer('an_observer');
    CREATE ROLE an_operator LOGIN; SELECT pulse.grant_operator('an_operator');
    SELECT pulse.grant_scheduler('an_operator')});

# Columns with a default get NULL by name.
value($node, q{
    INSERT INTO pulse.job (id, identifier, state, added_by) VALUES
      (101, 'waits', 'ready', NULL), (102, 'is parked', 'parked', NULL),
      (103, 'runs', 'running', NULL);
    INSERT INTO pulse.finished_job (id, identifier, payload, priority, run_at, state, attempts,
        max_attempts, crashes, revision, created_at, finished_at)
      SELECT 200 + n, 'ended', '{}', 0, now(), s, 1, 1, 0, 0, now(), now()
        FROM unnest(enum_range(NULL::pulse.finished_state)) WITH ORDINALITY AS e (s, n);
    INSERT INTO pulse.attempt (job_id, token, attempt, ended_at, outcome) VALUES
      (103, 1, 1, now(), 'lost'), (201, 2, 1, now(), 'failed'), (202, 3, 1, now(), 'lost');
    INSERT INTO pulse.worker (id, name, heartbeat_interval, sweep_threshold, started_at, state,
        ended_at) VALUES (301, 'ended', '1 s', '5 s', now(), 'lost', now()),
      (302, 'alive', '1 s', '5 s', now(), 'alive', NULL);
    INSERT INTO pulse.operation (id, action, filter, arguments, role, last_id, created_at,
        updated_at) VALUES (401, 'cancel', '{}', '{}', 'r', 0, now(), now()),
      (402, 'pause queue', '{}', '{}', 'r', 0, now(), now());
    INSERT INTO pulse.flow (id) VALUES (501), (502);
    INSERT INTO pulse.flow_job (job_id, flow_id) VALUES (101, 501), (103, 501), (201, 501),
      (999, 501);
    INSERT INTO pulse.queue (queue_name) VALUES ('bare');
    INSERT INTO pulse.task (identifier) VALUES ('bare');
    SELECT pulse.schedule('bare', 'bare', every => '1 h');
    SELECT setval('pulse.job_id_seq', 9000)});

my $serve = start_serve($node, tokens => { ann => 'an_observer', ada => 'an_operator' });
my $open = start_serve($node);
my @visitors = (
    [ 'a visitor without a token', $open->{url} ],
    [ 'one who may look', $serve->{url}, Authorization => "Bearer $serve->{secret}{ann}" ],
    [ 'one who may act', $serve->{url}, Authorization => "Bearer $serve->{secret}{ada}" ]);

my @lists = qw(/ /jobs /failed /running /queues /tasks /workers /schedules /flows /operations);
my @things = ('/doctor', '/task?name=bare', '/queue?name=bare', '/schedule?name=bare',
    '/failed?task=ended', '/failed?line=x', map({ "/jobs?state=$_" } qw(ready running completed)),
    map({ "/jobs/$_" } 101 .. 103, 201 .. 205), map({ "/workers/$_" } 301, 302),
    map({ "/flows/$_" } 501, 502), map({ "/operations/$_" } 401, 402));
my @questions = ('/operations/new?action=cancel&all=1', '/operations/new?action=retry&id=202',
    '/operations/401/undo', '/workers/stop?worker=302', '/queues/limit?queue=bare',
    '/schedules/run?schedule=bare', '/flows/cancel?flow=502');
my @streams = map { "/live$_" } qw(/overview /running /queues /tasks /workers /schedules
    /jobs/101 /jobs/103 /jobs/202 /workers/301 /workers/302 /flows/501 /flows/502),
  '/task?name=bare', '/queue?name=bare';

# The first event of a stream, and no more of it.
sub first_event {
    my ($http, $url) = @_;
    my $event = '';
    my $answer = $http->get($url, { data_callback => sub {
        $event .= $_[0];
        die "enough\n" if $event =~ /^data: .*\n\n/ms;
    } });
    return $event eq '' ? "$answer->{status} $answer->{content}" : $event;
}

for my $visitor (@visitors) {
    my ($who, $url, %headers) = @$visitor;
    subtest $who => sub {
        my $http = HTTP::Tiny->new(default_headers => \%headers, keep_alive => 0);
        my $may_act = $who =~ /act/;
        for my $path (@lists, @things, $may_act ? @questions : ()) {
            my $answer = $http->get("$url$path");
            my $expected = $path =~ /line=/ && !$may_act ? 403 : 200;
            is($answer->{status}, $expected, $path) or diag $answer->{content} =~ s/<[^>]+>/ /gr;
            unlike($answer->{content}, qr/column \w+ is null/, 'without a fault');
        }
        like(first_event($http, "$url$_"), qr/^data: </m, $_) for @streams;
    };
}

subtest 'who may not read errors sees no groups of them' => sub {
    my ($observer, $operator) = map {
        my $http = HTTP::Tiny->new(default_headers => { @{$_}[ 2, 3 ] });
        $http->get("$serve->{url}/failed")->{content}
    } @visitors[ 1, 2 ];
    like($operator, qr/By error.*no error/s, 'jobs that left no error are one group');
    unlike($observer, qr/By error|no error/, 'which a role is not told that may not read errors');
    like($observer, qr/>202</, 'though the role sees the jobs');
};

subtest 'commands' => sub {
    for my $role (undef, 'an_observer') {
        for my $command ('overview', 'jobs', 'failures', 'queues', 'tasks', 'workers --all',
            'schedules', 'flows', 'operations', map({ "job $_" } 101 .. 103, 201 .. 205)) {
            for my $form ([], ['--json']) {
                my $said = pulse_as($node, $role, @$form, split / /, $command);
                is($said->{status}, 0, join ' ', @$form, $command) or diag $said->{err};
            }
        }
    }
    # Warnings are no faults.
    like(pulse($node, 'doctor')->{err}, qr/\A\z/, 'doctor');
};

subtest 'no sweep has ever run' => sub {
    value($node, 'DELETE FROM pulse.clock');
    for my $path ('/', '/live/overview') {
        my $http = HTTP::Tiny->new(default_headers => { @{ $visitors[2] }[ 2, 3 ] });
        my $text = $path eq '/' ? $http->get("$serve->{url}/")->{content}
          : first_event($http, "$serve->{url}$path");
        like($text, qr/No sweep runs/, "$path says so");
    }
    is(pulse($node, 'overview')->{status}, 0, 'the overview is shown');
};

done_testing();
