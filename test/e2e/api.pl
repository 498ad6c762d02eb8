# The HTTP API: a worker that has nothing but curl, what each refusal is told as, and what happens
# when a client or the database goes.
use strict;
use warnings FATAL => 'all';

use IPC::Run ();
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Api;
use Pulse::Lines;
use Pulse::Prometheus;
use Pulse::Server;

# Workron's settings: a heartbeat every 5 seconds, a look every 10, dead after 30.
my $node = start_server('main', settings => {
    'pulse.heartbeat_interval' => '5s',
    'pulse.sweep_interval' => '10s',
    'pulse.sweep_threshold' => '30s',
    'pulse.keep_completed' => '-1' });
value($node, 'CREATE ROLE serving LOGIN');
for my $kind (qw(observer operator producer worker)) {
    value($node, "CREATE ROLE a_$kind; SELECT pulse.grant_$kind('a_$kind')");
    value($node, "GRANT a_$kind TO serving");
}
value($node, q{CREATE ROLE a_client; SELECT pulse.grant_producer('a_client');
    SELECT pulse.grant_worker('a_client'); GRANT a_client TO serving});
value($node, 'CREATE ROLE stranger');

my $api = Pulse::Api->start($node, 'serve', role => 'serving', tokens => {
    client => 'a_client', observer => 'a_observer', operator => 'a_operator',
    worker => 'a_worker', stranger => 'stranger' });

sub status_of { return $api->curl(@_)->{status} }

sub register {
    my ($name, %more) = @_;
    my $made = $api->curl(POST => '/v1/workers', as => 'client', body => { name => $name, %more });
    return $made->{json}{id};
}

sub add {
    my ($task, %more) = @_;
    return $api->curl(POST => '/v1/jobs', as => 'client',
        body => { identifier => $task, %more })->{json}{id};
}

sub claim {
    my ($worker, %more) = @_;
    return $api->curl(POST => '/v1/claims', as => 'client',
        body => { worker_id => $worker, %more });
}

# Of the first job that a claim handed out.
sub claimed { my $answer = claim(@_); return @{ $answer->{json}{jobs}[0] }{qw(id token)} }

subtest 'the cycle of Workron: submit, next, heartbeat, done and fail' => sub {
    my $worker = register('curl', tasks => ['mail']);
    my $job = add('mail', payload => { to => 'Ada' });
    is(value($node, "SELECT added_by FROM pulse.job WHERE id = $job"), 'a_client',
        'a job belongs to the role of the token');
    my $next = claim($worker)->{json}{jobs}[0];
    is($next->{id}, $job, 'the job that was submitted is next');
    is($next->{payload}{to}, 'Ada', 'with its payload');
    is($api->curl(POST => '/v1/heartbeats', as => 'client',
            body => { worker_id => $worker, job_ids => [$job] })->{json}{status},
        'alive', 'a heartbeat');
    is(status_of(PUT => "/v1/jobs/$job/progress", as => 'client', token => $next->{token},
            body => { message => 'half', fraction => 0.5 }), 204, 'progress');
    is(value($node, "SELECT progress FROM pulse.job WHERE id = $job"), '0.5', 'is seen');
    is(status_of(PUT => "/v1/jobs/$job/complete", as => 'client', token => $next->{token},
            body => { result => [1] }), 204, 'done') for 1 .. 2;
    is(finished($node, $job), 'completed|1|0', 'once');
    my $bad = add('mail', max_attempts => 1);
    my ($id, $token) = claimed($worker);
    is($api->curl(PUT => "/v1/jobs/$bad/fail", as => 'client', token => $token,
            body => { error => 'out of ink' })->{json}{state}, 'failed', 'fail');
    is(value($node, "SELECT last_error FROM pulse.finished_job WHERE id = $bad"), 'out of ink',
        'with its error');
    is_deeply(claim($worker)->{json}{jobs}, [], 'no job is left');
    is(status_of(DELETE => "/v1/workers/$worker", as => 'client'), 204, 'the end of the worker');
    is(claim($worker)->{status}, 410, 'after which it gets no job');
};

subtest 'a killed worker is lost after 30 seconds of silence, and its job runs again' => sub {
    my $dead = register('dead', tasks => ['reaped']);
    my $other = register('other', tasks => ['reaped']);
    my $job = add('reaped');
    my ($id, $token) = claimed($dead);
    is($id, $job, 'it has the job');
    is_deeply(claim($other)->{json}{jobs}, [], 'no other worker gets it');
    # Time passes only as the other worker beats, for whom no second of it is silence.
    for my $look (1 .. 8) {
        value($node, "UPDATE pulse.heartbeat SET beat_live_us = beat_live_us - 10000000
            WHERE worker_id = $dead");
        value($node, 'SELECT pulse.sweep()');
        last if value($node, "SELECT state <> 'running' FROM pulse.job WHERE id = $job") eq 't';
        is($look <= 4 ? 1 : 0, 1, "10 more seconds of silence ($look)");
    }
    my $again = claim($other, wait_seconds => 30)->{json}{jobs}[0];
    is($again->{id}, $job, 'the other worker gets it');
    is($again->{recovered}, 'silence', 'and is told why');
    is($again->{attempts}, 2, 'as its second attempt');
    is($again->{crashes}, 1, 'after a crash');
    my $late = $api->curl(PUT => "/v1/jobs/$job/complete", as => 'client', token => $token);
    is($late->{status}, 409, 'what the dead worker says comes too late');
    is($late->{json}{sqlstate}, 'PU001', 'as its code says');
    my $beat = $api->curl(POST => '/v1/heartbeats', as => 'client', body => { worker_id => $dead });
    is($beat->{status}, 410, 'and its heartbeat tells that it is lost');
    is(status_of(PUT => "/v1/jobs/$job/complete", as => 'client', token => $again->{token}), 204,
        'the other worker completes it');
    like(finished($node, $job), qr/^completed\|2\|/, 'in two attempts');
};

subtest 'snooze, release, cancel and look' => sub {
    my $worker = register('more', tasks => ['more']);
    my $job = add('more', payload => 'secret', run_at => '2020-01-01T00:00:00Z');
    my ($id, $token) = claimed($worker);
    is(status_of(PUT => "/v1/jobs/$job/snooze", as => 'client', token => $token,
            body => { delay => '0 s' }), 204, 'a snooze');
    ($id, $token) = claimed($worker);
    is(status_of(PUT => "/v1/jobs/$job/release", as => 'client', token => $token), 204, 'released')
      for 1 .. 2;
    is(status_of(PUT => "/v1/jobs/$job/release", as => 'client', token => $token + 1), 409,
        'but not by another claim');
    my $seen = $api->curl(GET => "/v1/jobs/$job", as => 'operator')->{json};
    is_deeply([ $seen->{state}, $seen->{job}{id}, $seen->{job}{payload} ],
        [ 'ready', $job, 'secret' ], 'an operator sees all of it');
    is($api->curl(GET => "/v1/jobs/$job", as => 'observer')->{json}{job}{payload}, undef,
        'an observer no payload');
    my $of_worker = $api->curl(GET => "/v1/jobs/$job", as => 'worker')->{json};
    is_deeply([ $of_worker->{state}, $of_worker->{job}{id}, $of_worker->{job}{payload} ],
        [ 'ready', $job, undef ], 'nor does a worker, who sees the rest');
    is($api->curl(DELETE => "/v1/jobs/$job", as => 'operator', body => { reason => 'no need' })
          ->{json}{state}, 'cancelled', 'cancelled');
    is(value($node, 'SELECT action, actor, role FROM pulse.operations'),
        'cancel job|operator|a_operator', 'which is on record with the name of the token');
};

subtest 'the type of a body counts whatever its case' => sub {
    my $answer = $api->curl(POST => '/v1/jobs', as => 'client', body => '{"identifier": "typed"}',
        headers => { 'Content-Type' => 'Application/JSON ; charset=utf-8' });
    is($answer->{status}, 201, 'added') or diag $answer->{body};
};

subtest 'numbers and ids come through to the last digit' => sub {
    my $number = '12345678901234567890.123456789012345678901234567890';
    my $answer = $api->curl(POST => '/v1/jobs', as => 'client',
        body => qq({"identifier": "digits", "payload": {"n": $number}}));
    my $id = $answer->{json}{id};
    is($answer->{headers}{location}, "/v1/jobs/$id", 'where the job is');
    like($api->curl(GET => "/v1/jobs/$id", as => 'operator')->{body}, qr/"n": \Q$number\E\b/,
        'a number as it was sent');
    like(claim(register('digits', tasks => ['digits']))->{body}, qr/"n": \Q$number\E\b/,
        'also in the claim');
};

subtest 'each refusal has its status' => sub {
    my $worker = register('refused', tasks => ['refused']);
    my $job = add('refused');
    my ($id, $token) = claimed($worker);
    my @cases = (
        [ 401, 'no token', GET => "/v1/jobs/$job" ],
        [ 401, 'a wrong token', GET => "/v1/jobs/$job",
            headers => { Authorization => 'Bearer ' . '0' x 64 } ],
        [ 403, 'a role without the right', POST => '/v1/jobs', as => 'observer',
            body => { identifier => 'x' } ],
        [ 403, 'a role without any', GET => "/v1/jobs/$job", as => 'operator',
            headers => { Authorization => "Bearer $api->{secret}{stranger}" } ],
        [ 404, 'an unknown job', GET => '/v1/jobs/999999999', as => 'operator' ],
        [ 404, 'no id', GET => '/v1/jobs/abc', as => 'operator' ],
        [ 404, 'an unknown path', GET => '/v1/nothing', as => 'operator' ],
        [ 404, 'an unknown worker that ends', DELETE => '/v1/workers/999999', as => 'client' ],
        [ 405, 'another method', PATCH => '/v1/jobs', as => 'client' ],
        [ 409, 'a stale token', PUT => "/v1/jobs/$job/complete", as => 'client',
            token => $token + 1 ],
        [ 410, 'an unknown worker', POST => '/v1/claims', as => 'client',
            body => { worker_id => '999999' } ],
        [ 400, 'no JSON', POST => '/v1/jobs', as => 'client', body => '{' ],
        [ 400, 'a field that comes twice', POST => '/v1/jobs', as => 'client',
            body => '{"identifier": "x", "identifier": "y"}' ],
        [ 415, 'another type', POST => '/v1/jobs', as => 'client', body => '{}',
            headers => { 'Content-Type' => 'text/plain' } ],
        [ 422, 'a field too many', POST => '/v1/jobs', as => 'client',
            body => { identifier => 'x', task => 'x' } ],
        [ 422, 'a field of another type', POST => '/v1/jobs', as => 'client',
            body => { identifier => 7 } ],
        [ 422, 'a value out of range', POST => '/v1/jobs', as => 'client',
            body => { identifier => 'x', flags => [ map { "f$_" } 1 .. 65 ] } ],
        [ 422, 'a time that is none', POST => '/v1/jobs', as => 'client',
            body => { identifier => 'x', run_at => 'soon' } ],
        [ 422, 'a report without a token', PUT => "/v1/jobs/$job/complete", as => 'client' ],
        [ 422, 'a worker that would live by a session', POST => '/v1/workers', as => 'client',
            body => { name => 'x', heartbeat_interval => '0' } ],
        [ 422, 'a NUL', POST => '/v1/jobs', as => 'client',
            body => '{"identifier": "a\u0000b"}' ],
        [ 422, 'too deep', POST => '/v1/jobs', as => 'client',
            body => '{"identifier": "x", "payload": ' . '[' x 100_000 . ']' x 100_000 . '}' ],
        [ 413, 'too large', POST => '/v1/jobs', as => 'client',
            body => '{"identifier": "' . 'x' x 2_000_000 . '"}' ],
        [ 421, 'another name', GET => "/v1/jobs/$job", as => 'operator',
            headers => { Host => 'evil.example' } ]);
    for my $case (@cases) {
        my ($status, $what, @request) = @{$case};
        my $answer = $api->curl(@request);
        is($answer->{status}, $status, "$status: $what") or diag $answer->{body};
        is($answer->{json}{status}, $status, 'as the problem document says');
        like($answer->{json}{hint}, qr/grant_producer|be a member/, 'with the way out')
          if $status == 403;
    }
    for my $page ('/jobs/abc', '/live/jobs/abc', '/live/flows/0') {
        my @curl = (qw(curl -sS -m 60 -o /dev/null -w %{http_code}), $api->url($page));
        my ($status) = run_command([ @curl, $api->headers_of(as => 'operator') ]);
        is($status, 404, "404: no id in $page, be it a stream");
    }
    # Returns at their ends: the next request begins a session.
    my $end_sessions = q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
        WHERE usename = 'serving'};
    value($node, "ALTER ROLE serving SET pulse.claims = off; $end_sessions");
    is(claim($worker)->{status}, 503, '503: claims are off');
    value($node, "ALTER ROLE serving RESET pulse.claims; $end_sessions");
};

subtest 'a claim waits for a job, and not for a client that has gone' => sub {
    my $worker = register('waiting', tasks => ['awaited']);
    my $answer = '';
    my @request = ('curl', '-sS', $api->headers_of(as => 'client', body => ''), '-d',
        qq({"worker_id": "$worker", "wait_seconds": 30}), $api->url('/v1/claims'));
    my $waiting = IPC::Run::start(\@request, '>', \$answer);
    wait_until($node, q{SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE query LIKE 'CALL pulse.wait_for_job%' AND state = 'active')}, 'a wait');
    my $job = add('awaited');
    $waiting->finish;
    like($answer, qr/"id" : "$job"/, 'the job that was added meanwhile');
    my $gone = IPC::Run::start(\@request, '>', \$answer);
    wait_until($node, q{SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE query LIKE 'CALL pulse.wait_for_job%' AND state = 'active')}, 'another wait');
    $gone->kill_kill;
    my $next = add('awaited');
    wait_until($node, q{SELECT NOT EXISTS (SELECT FROM pg_stat_activity
        WHERE query LIKE 'CALL pulse.wait_for_job%' AND state = 'active')}, 'the wait ends');
    is(value($node, "SELECT state FROM pulse.job WHERE id = $next"), 'ready',
        'what the client that has gone would have got is there');
};

subtest 'slow and half-open clients are hung up on, and in no other way' => sub {
    my $trickling = $api->connection;
    syswrite $trickling, "GET /v1/jobs/1 HTTP/1.1\r\nHost: localhost\r\nX: ";
    my $silent = $api->connection;
    my $started = time;
    my $trickler = fork // die "fork: $!";
    if ($trickler == 0) {
        local $SIG{PIPE} = 'DEFAULT';
        while (1) { syswrite $trickling, 'x' or last; Pulse::Lines::pause() }
        POSIX::_exit(0);
    }
    is(status_of(GET => '/healthz'), 200, 'others are served meanwhile');
    is(Pulse::Api::rest_of($silent), '', 'one that says nothing');
    is(Pulse::Api::rest_of($trickling), '', 'one that speaks a byte at a time');
    cmp_ok(time - $started, '<=', 15, 'after five seconds in all');
    kill 'KILL', $trickler;
    waitpid $trickler, 0;
};

subtest 'the database goes and comes back' => sub {
    my $worker = register('through', tasks => ['through']);
    my $job = add('through');
    my ($id, $token) = claimed($worker);
    $node->stop('immediate');
    my $answer = $api->curl(PUT => "/v1/jobs/$job/complete", as => 'client', token => $token);
    is($answer->{status}, 503, 'no database');
    is($answer->{headers}{'retry-after'}, 1, 'with a time to try again');
    unlike($answer->{body}, qr/socket/, 'the answer does not tell where it is');
    $api->lines->wait_for('why', sub { $_[0] =~ /"database_unreachable".*socket/ });
    is(status_of(GET => '/healthz'), 200, 'the server itself runs on');
    $node->start;
    is(status_of(PUT => "/v1/jobs/$job/complete", as => 'client', token => $token), 204,
        'the same report is taken');
    is(finished($node, $job), 'completed|1|0', 'and the job ran once');
};

subtest 'metrics are as Prometheus reads them' => sub {
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'both', now() + i % 2 * interval '1 h' FROM generate_series(1, 2000) AS i});
    my $answer = $api->curl(GET => '/metrics', as => 'observer');
    my $seen = Pulse::Prometheus->parse($answer->{body});
    is($seen->value('pulse_queue_jobs_estimated', 'state=ready'), 1, 'a part is marked');
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'both'});
    cmp_ok($seen->value('pulse_queue_jobs', 'state=ready'), '>=', 1, 'jobs that wait');
    is($seen->value('pulse_queue_claims'), 1, 'claims are on');
    is(status_of(GET => '/metrics'), 401, 'for who has a token');
};

subtest 'a payload that no function of the database reads is shown' => sub {
    my $odd = $api->curl(POST => '/v1/jobs', as => 'client',
        body => '{"identifier": "odd", "payload": {"a": "\u0000", "b": 1e400}}')->{json}{id};
    my $answer = $api->curl(GET => "/v1/jobs/$odd", as => 'operator');
    is($answer->{status}, 200, 'its job');
    like($answer->{body}, qr/"payload" : \{"a": "\\u0000", "b": 1e400\}/, 'as it was added');
};

subtest 'without tokens the server shows, hides payloads, and changes nothing' => sub {
    my $open = Pulse::Api->start($node, 'open');
    my $job = add('shown', payload => 'secret');
    my $seen = $open->curl(GET => "/v1/jobs/$job");
    is($seen->{status}, 200, 'a job is shown');
    unlike($seen->{body}, qr/secret/, 'without its payload, though the session is a superuser');
    # A new column is hidden, or added here.
    is_deeply([ sort keys %{ $seen->{json}{job} } ],
        [ qw(activity_live_us added_by attempts cancel_requested_at claimed_at claimed_live_us
            crashes created_at dead_letter_of flags id identifier in_place index_lane job_key
            keeps_result key_is_undecided last_activity_at max_attempts owner_heartbeat_at priority
            progress queue_name recovered revision run_at running_worker_id scheduled_for stage
            start_by starts_when state succession superseded updated_at waits_on worker_id) ],
        'nothing that somebody wrote is among it');
    value($node, "UPDATE pulse.job SET cancel_reason = 'secret', message = 'secret',
        last_error = 'secret', state = 'running', worker_id = 1 WHERE id = $job");
    local $open->{description} = undef;  # pages are not in it
    for my $path ("/v1/jobs/$job", "/jobs/$job", '/jobs?task=shown') {
        my $page = $open->curl(GET => $path);
        is($page->{status}, 200, "$path is shown");
        unlike($page->{body}, qr/secret/, 'without messages and errors');
    }
    is($open->curl(GET => '/jobs?error=secret')->{status}, 403, 'and none is looked for');
    value($node, "UPDATE pulse.job SET state = 'ready', worker_id = NULL WHERE id = $job");
    is($open->curl(POST => '/v1/jobs', body => { identifier => 'x' })->{status}, 403,
        'and none is added');
    is($open->curl(DELETE => "/v1/jobs/$job")->{status}, 403, 'or cancelled');
    $open->signal('TERM');
    is($open->wait_exit, 0, 'it ends when it is told to');
};

subtest 'a token that is taken out of its file counts no more' => sub {
    my $text = slurp_file($api->{token_file});
    my $store = sub {
        my ($new) = @_;
        open my $out, '>', $api->{token_file} or die "$!";
        print {$out} $new;
        close $out or die "$!";
    };
    my $becomes = sub {
        my ($who, $status, $what) = @_;
        my $end = time + $PostgreSQL::Test::Utils::timeout_default;
        Pulse::Lines::pause()
          while status_of(GET => '/v1/jobs/999999999', as => $who) != $status && time < $end;
        is(status_of(GET => '/v1/jobs/999999999', as => $who), $status, $what);
    };
    is(status_of(GET => '/v1/jobs/999999999', as => 'operator'), 404, 'it counts');
    my $worker = register('revoked', tasks => ['late']);
    my @claim = ('curl', '-sS', '--max-time', '60', '-X', 'POST',
        $api->headers_of(as => 'client', body => 1), '--data-binary',
        qq({"worker_id": "$worker", "wait_seconds": 30}), $api->url('/v1/claims'));
    my ($claimed, $events) = ('', '');
    my $claims = IPC::Run::start(\@claim, '<', \'', '>', \$claimed);
    my $listens = IPC::Run::start([ 'curl', '-sSNi', '--max-time', '60',
            $api->headers_of(as => 'client'), $api->url('/live/overview') ],
        '<', \'', '>', \$events);
    wait_until($node, q{SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE query LIKE 'CALL pulse.wait_for_job%' AND state = 'active')}, 'a waiting claim');
    IPC::Run::pump($listens) until $events =~ /^data: /m;
    $store->(join '', grep { !/^(?:operator|client) / } split /^/, $text);
    $becomes->('operator', 401, 'and then no more');
    IPC::Run::finish($claims);
    IPC::Run::finish($listens);
    is($claimed, qq({"jobs" : []}\n), 'nor does it where it waited for a job');
    like($events, qr/^data: /m, 'or listened');
    like($events, qr/^X-Accel-Buffering: no\r$/m, 'to events that nginx does not gather');
    like($events, qr/^Cache-Control: .*no-transform\r$/m, 'and no proxy packs');
    $store->(join('', grep { !/^client / } split /^/, $text) . "a line\n");
    $becomes->('operator', 404, 'a line that cannot be read revokes no other');
    unlink $api->{token_file};
    $becomes->('operator', 401, 'without the file none counts');
    $store->($text);
    $becomes->('operator', 404, 'and with it they do again');
};

subtest 'the log has who changed what' => sub {
    my $log = join "\n", $api->lines->lines;
    like($log, qr{"changed".*"token":"client","method":"POST","path":"/v1/jobs"}, 'a job');
    like($log, qr{"changed".*"status":201,"address":"127\.0\.0\.1"}, 'and from where');
    unlike($log, qr/$_/, 'and no token') for values %{ $api->{secret} };
};

subtest 'a claim that waits is answered when the server ends' => sub {
    my $worker = register('ending', tasks => ['late']);
    my $claimed = '';
    my $claims = IPC::Run::start([ 'curl', '-sS', '--max-time', '60', '-X', 'POST',
            '-w', '%{http_code}', $api->headers_of(as => 'client', body => 1), '--data-binary',
            qq({"worker_id": "$worker", "wait_seconds": 30}), $api->url('/v1/claims') ],
        '<', \'', '>', \$claimed);
    wait_until($node, q{SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE query LIKE 'CALL pulse.wait_for_job%' AND state = 'active')}, 'a waiting claim');
    $api->signal('TERM');
    IPC::Run::finish($claims);
    is($claimed, qq({"jobs" : []}\n200), 'without a job');
    is($api->wait_exit, 0, 'and the server ends');
};

expect_healthy($node);
done_testing;
