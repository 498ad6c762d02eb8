# Sign-ins of `pulse serve`: two servers with one file of tokens take each other's visitors and
# forms, and a server that starts again takes its own; no link is lost by signing in.
use strict;
use warnings FATAL => 'all';

use IPC::Run ();
use Test::More;

use PostgreSQL::Test::Utils ();
use Pulse::Lines;
use Pulse::Serve;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE an_operator LOGIN; SELECT pulse.grant_operator('an_operator');
    SELECT pulse.grant_producer('an_operator');
    SELECT pulse.add_job('letter', queue_name => 'post')});

# One address for both, as if a proxy chose among them.
my @origin = ('--origin', 'http://pulse.example/queue');
my $one = start_serve($node, tokens => { ada => 'an_operator', bob => 'an_operator' },
    options => \@origin);
my $other = start_serve($node, file => $one->{file}, options => \@origin);

# Status, head and text of an answer.
sub ask {
    my ($serve, $path, @more) = @_;
    my $out = '';
    IPC::Run::run([ 'curl', '-si', '-H', 'Host: pulse.example', @more, "$serve->{url}$path" ],
        '>', \$out);
    my ($status, $head, $text) = $out =~ m{\AHTTP/1\.1 (\d+)[^\r]*\r\n(.*?)\r\n\r\n(.*)\z}s
      or die "no answer: $out";
    return { status => $status, head => "$head\n", text => $text };
}

sub sign_in {
    my ($name, @more) = @_;
    my $answer = ask($one, '/login', '-d', "token=$one->{secret}{$name}", @more);
    my ($cookie) = $answer->{head} =~ /^Set-Cookie: ([^;]+);/m;
    return ($cookie, $answer);
}

# What it returns when that is no longer what it was.
sub status_when_changed {
    my ($look, $was) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my $status;
    Pulse::Lines::pause() while ($status = $look->()) == $was && time < $end;
    return $status;
}

sub with_cookie { my ($cookie) = @_; return ('-H', "Cookie: $cookie") }

my ($ada) = sign_in('ada');
my ($bob) = sign_in('bob');

subtest 'another server takes the visitor and the forms' => sub {
    my $page = ask($one, '/queues/pause?queue=post', with_cookie($ada));
    is($page->{status}, 200, 'who has signed in at one');
    my ($csrf) = $page->{text} =~ /name="csrf" value="(\w{64})"/;
    is(ask($other, '/queue/queues', with_cookie($ada))->{status}, 200, 'is in at the other');
    my @form = (with_cookie($ada), '-d');
    is(ask($other, '/queues/pause?queue=post', @form, "csrf=$csrf")->{status}, 303,
        'where a form of the one counts');
    is(value($node, 'SELECT paused FROM pulse.queue_settings'), 't', 'and does what it says');
    is(ask($other, '/queues/resume?queue=post', @form, 'csrf=' . '0' x 64)->{status}, 403,
        'as no other secret does');
    is(ask($other, '/queues/resume?queue=post', with_cookie($bob), '-d', "csrf=$csrf")->{status},
        403, 'nor that of another visitor');
};

subtest 'a server that starts again signs nobody out' => sub {
    stop_serve($one);
    serve_again($one);
    is(ask($one, '/jobs', with_cookie($_))->{status}, 200, 'a visitor is in') for $ada, $bob;
};

subtest 'a token signs out itself alone' => sub {
    sign_in('bob') for 1 .. 25;
    is(ask($one, '/jobs', with_cookie($ada))->{status}, 200, 'not by signing in');
    my @lines = do { local @ARGV = $one->{file}; <> };
    open my $out, '>', $one->{file} or die "$one->{file}: $!";
    print {$out} grep { !/^bob / } @lines;
    close $out;
    is(status_when_changed(sub { ask($one, '/jobs', with_cookie($bob))->{status} }, 200), 401,
        'who has it is out once its line is');
    is(ask($_, '/jobs', with_cookie($ada))->{status}, 200, 'and nobody else') for $one, $other;
};

subtest 'no link is lost by signing in' => sub {
    my $link = '/jobs?task=letter&state=ready';
    my $page = ask($one, "/queue$link");
    is($page->{status}, 401, 'a link wants a sign-in');
    my $kept = qr/name="next" value="\/jobs\?task=letter&amp;state=ready"/;
    like($page->{text}, $kept, 'whose form has it, with the query');
    my @next = ('--data-urlencode', "next=$link");
    $page = ask($one, '/login', '-d', 'token=mistyped', @next);
    like($page->{text}, $kept, 'also after a token that was mistyped');
    my (undef, $signed_in) = sign_in('ada', @next);
    like($signed_in->{head}, qr{^Location: /queue/jobs\?task=letter&state=ready\r?$}m,
        'and the sign-in leads there');
    for my $evil ('//evil.example', 'https://evil.example/', '/\\evil.example') {
        (undef, $signed_in) = sign_in('ada', '--data-urlencode', "next=$evil");
        like($signed_in->{head}, qr{^Location: /queue/\r?$}m, "$evil is no page of this server");
    }
    like(ask($one, '/operations/1/run', '-d', '')->{text}, qr/name="next" value="\/"/,
        'what only a form leads to is no page either');
};

subtest 'the addresses of the API have the prefix' => sub {
    my $described = ask($one, '/v1/openapi.json')->{text};
    like($described, qr{"servers": \[\{"url": "http://pulse\.example/queue"\}\]},
        'the description says so');
    my $added = ask($one, '/queue/v1/jobs', '-H', "Authorization: Bearer $one->{secret}{ada}",
        '-H', 'Content-Type: application/json', '-d', '{"identifier": "letter"}');
    like($added->{head}, qr{^Location: /queue/v1/jobs/\d+\r?$}m, 'as has the place of a job')
      or diag $added->{text};
};

expect_healthy($node);
done_testing();
