# Idempotency-Key over HTTP: a request that is sent again adds nothing, whoever else has the key.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Api;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, 'CREATE ROLE serving LOGIN');
for my $role (qw(shop rival)) {
    value($node, "CREATE ROLE $role; SELECT pulse.grant_producer('$role'),
        pulse.grant_worker('$role'); GRANT $role TO serving");
}
my $api = Pulse::Api->start($node, 'serve', role => 'serving',
    tokens => { ada => 'shop', bob => 'shop', eve => 'rival' });

sub add {
    my ($who, $key, $body, %headers) = @_;
    return $api->curl(POST => '/v1/jobs', as => $who, body => $body,
        headers => { 'Idempotency-Key' => $key, %headers });
}

sub added { return value($node, "SELECT count(*) FROM pulse.job WHERE identifier = '$_[0]'") }

subtest 'another token with the same key adds its own job' => sub {
    my $first = add('ada', 'order-17', { identifier => 'mail' });
    is($first->{status}, 201, 'the first adds one');
    for my $who (qw(bob eve)) {
        my $other = add($who, 'order-17', { identifier => "bill of $who" });
        is($other->{status}, 201, "so does $who");
        isnt($other->{json}{id}, $first->{json}{id}, 'another one');
        is(added("bill of $who"), 1, 'which is there');
    }
};

subtest 'the same request again is answered as the first time' => sub {
    my $first = add('ada', 'again', { identifier => 'once', payload => [1], priority => 3 });
    is($first->{headers}{'idempotent-replayed'}, undef, 'which was no replay');
    my $again = add('ada', 'again', '{"priority": 3, "payload": [1], "identifier": "once"}',
        traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
    is($again->{status}, 200, 'with its fields in another order, and in another trace');
    is($again->{headers}{'idempotent-replayed'}, 'true', 'as a replay');
    is($again->{body}, $first->{body}, 'with the same answer');
    is($again->{headers}{location}, "/v1/jobs/$first->{json}{id}", 'and place');
    is(added('once'), 1, 'there is one job');
    my $worker = $api->curl(POST => '/v1/workers', as => 'ada',
        body => { name => 'w', tasks => ['once'] })->{json}{id};
    my $claim = $api->curl(POST => '/v1/claims', as => 'ada', body => { worker_id => $worker })
      ->{json}{jobs}[0];
    is($api->curl(PUT => "/v1/jobs/$claim->{id}/complete", as => 'ada', token => $claim->{token})
          ->{status}, 204, 'it ends');
    is(add('ada', 'again', { identifier => 'once', payload => [1], priority => 3 })->{body},
        $first->{body}, 'and is not added once more');
    is(added('once'), 0, 'none waits');
};

subtest 'another request with the key is refused' => sub {
    add('ada', 'bound', { identifier => 'bound', payload => { to => 'Ada' } });
    for my $body ({ identifier => 'other', payload => { to => 'Ada' } },
        { identifier => 'bound', payload => { to => 'Eve' } },
        { identifier => 'bound', payload => { to => 'Ada' }, priority => 1 }) {
        my $answer = add('ada', 'bound', $body);
        is($answer->{status}, 422, 'refused');
        like($answer->{json}{detail}, qr/another request/, 'it says why');
    }
    is(added('other'), 0, 'nothing was added');
};

subtest 'what was refused may be mended and sent again' => sub {
    is(add('ada', 'mended', { identifier => 'mended', max_attempts => 0 })->{status}, 422,
        'refused');
    is(add('ada', 'mended', { identifier => 'mended', max_attempts => 1 })->{status}, 201, 'taken');
    is(add('ada', '', { identifier => 'x' })->{status}, 422, 'an empty key is none');
    is(add('ada', 'x' x 256, { identifier => 'x' })->{status}, 422, 'nor is one that is too long');
};

subtest 'a request that is being added is not added beside' => sub {
    my $session = $node->background_psql('postgres');
    $session->query_safe(q{BEGIN; SET LOCAL ROLE shop;
        SELECT pulse.add_job_for_request('ada', 'slow', 'hash', 'slow')});
    my $answer = add('ada', 'slow', { identifier => 'slow' });
    is($answer->{status}, 409, 'the second is told to come again');
    like($answer->{json}{detail}, qr/in progress/, 'and why');
    is(add('bob', 'slow', { identifier => 'slow' })->{status}, 201, 'another token does not wait');
    $session->query_safe('ROLLBACK');
    $session->quit;
    is(add('ada', 'slow', { identifier => 'slow' })->{status}, 201, 'then it is added');
};

subtest 'a job_key goes along' => sub {
    my $first = add('ada', 'k1', { identifier => 'keyed', job_key => 'order', payload => 1 });
    is(add('ada', 'k2', { identifier => 'keyed', job_key => 'order', payload => 2 })->{json}{id},
        $first->{json}{id}, 'another request replaces the job');
    is(add('ada', 'k1', { identifier => 'keyed', job_key => 'order', payload => 1 })->{status},
        200, 'a repeated one does not');
    is(value($node, "SELECT payload FROM pulse.job WHERE job_key = 'order'"), 2, 'once');
};

subtest 'a job is added once in a period' => sub {
    my $post = sub {
        my (%body) = @_;
        return $api->curl(POST => '/v1/jobs', as => 'ada',
            body => { identifier => 'period', unique_for => '1 h', unique_key => 'k', %body });
    };
    my $first = $post->(payload => [1]);
    is($first->{status}, 201, 'the first adds one');
    is($first->{json}{state}, 'waiting', 'which waits');
    my $second = $post->();
    is($second->{status}, 200, 'the second gets it');
    is($second->{json}{id}, $first->{json}{id}, 'by its id');
    is($second->{headers}{'idempotent-replayed'}, undef, 'as no replay');
    is(added('period'), 1, 'so there is one');
    is($post->(unique_states => ['failed'])->{status}, 201, 'states narrow that');
    is($post->(unique_states => ['lost'])->{status}, 422, 'an unknown state is refused');
    is($post->(unique_for => '0')->{status}, 422, 'so is an empty period');
    is($post->(unique_key => undef)->{status}, 422, 'and a missing key');
    is($post->(job_key => 'j')->{status}, 422, 'and a job_key beside it');
    my $both = add('ada', 'r', { identifier => 'period', unique_for => '1 h', unique_key => 'k' });
    is($both->{status}, 422, 'and an Idempotency-Key');
};

subtest 'a period is forgotten' => sub {
    my $forget = sub {
        my ($who, $key) = @_;
        return $api->curl(DELETE => '/v1/unique-keys', as => $who,
            body => { identifier => 'period', unique_key => $key });
    };
    is($forget->('eve', 'k')->{status}, 403, 'by no other producer');
    my $answer = $forget->('ada', 'k');
    is($answer->{status}, 200, 'by its task and key');
    ok($answer->{json}{forgotten}, 'as the answer says');
    ok(!$forget->('ada', 'k')->{json}{forgotten}, 'once');
    is($forget->('ada', undef)->{status}, 422, 'a missing key is refused');
    is($api->curl(POST => '/v1/jobs', as => 'ada', body =>
            { identifier => 'period', unique_for => '1 h', unique_key => 'k' })->{status},
        201, 'the next add is new');
};

expect_healthy($node);
done_testing;
