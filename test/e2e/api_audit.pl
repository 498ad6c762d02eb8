# What the log of `pulse serve` tells of clients, and how clients fare with unknown tokens.
use strict;
use warnings FATAL => 'all';

use IPC::Run ();
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Api;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE an_observer; SELECT pulse.grant_observer('an_observer')});
my $api = Pulse::Api->start($node, 'serve', tokens => { watcher => 'an_observer' });
my $unknown = '0' x 64;

# Of the log, the next line with this event.
my $seen = 0;

sub line_of {
    my ($event) = @_;
    my $line = $api->lines->wait_for($event, sub { $_[0] =~ /"event":"$event"/ }, from => $seen);
    $seen = $api->lines->position;
    return $line;
}

sub form {
    my ($path, $text, @more) = @_;
    my ($out) = run_command([ 'curl', '-sS', '-o', '/dev/null', '-w', '%{http_code} %{time_total}',
            @more, '--data', $text, $api->url($path) ]);
    return split / /, $out;
}

subtest 'who signs in is on record, and from where' => sub {
    my ($status) = form('/login', "token=$api->{secret}{watcher}");
    is($status, 303, 'a known token signs in');
    like(line_of('signed_in'), qr/"token":"watcher",.*"path":"\/login".*"address":"127\.0\.0\.1"/,
        'the line has its name, and the address');
    ($status) = form('/login', "token=$unknown");
    is($status, 401, 'an unknown one does not');
    like(line_of('refused'), qr/"path":"\/login","status":401,"address":"127\.0\.0\.1"/,
        'which is on record too');
};

subtest 'refusals of who only looks are on record' => sub {
    my %refused = (401 => { headers => { Authorization => "Bearer $unknown" } },
        421 => { as => 'watcher', headers => { Host => 'evil.example' } });
    for my $status (sort keys %refused) {
        is($api->curl(GET => '/v1/jobs/1?secret=1', %{ $refused{$status} })->{status}, $status,
            "a request that is answered $status");
        like(line_of('refused'), qr/"method":"GET","path":"\/v1\/jobs\/1","status":$status,/,
            'is in the log, without the query');
    }
    is($api->curl(POST => '/v1/jobs', as => 'watcher', body => { identifier => 'x' })->{status},
        403, 'and one without the right');
    like(line_of('refused'), qr/"token":"watcher","method":"POST".*"status":403/, 'with its token');
};

subtest 'guesses are slow, and keep no known token waiting' => sub {
    my @wrong = ('curl', '-sS', '-o', '/dev/null', '-w', '%{http_code} %{time_total}', '-H',
        "Authorization: Bearer $unknown", $api->url('/v1/jobs/1'));
    my ($out) = run_command(\@wrong);
    my ($status, $time) = split / /, $out;
    is($status, 401, 'a guess');
    cmp_ok($time, '>=', 1, 'is answered after a second');
    ($status, $time) = form('/login', "token=$unknown");
    cmp_ok($time, '>=', 1, 'as is one in the form');
    ($out) = run_command([ 'curl', '-sS', '-o', '/dev/null', '-w', '%{time_total}', '-H',
            "Cookie: pulse_$api->{port}=$unknown", $api->url('/jobs') ]);
    cmp_ok($out, '>=', 1, 'or in a cookie');
    my @crowd = map { my $text = ''; IPC::Run::start(\@wrong, '<', \'', '>', \$text) } 1 .. 100;
    is($api->curl(GET => '/v1/jobs/1', as => 'watcher')->{status}, 404,
        'a known token is answered beside a hundred of them');
    $_->finish for @crowd;
    is($api->curl(GET => '/v1/jobs/1', as => 'watcher')->{status}, 404, 'and after them');
};

unlike(join("\n", $api->lines->lines), qr/$_/, 'no token is in the log')
  for $unknown, values %{ $api->{secret} };
$api->signal('TERM');
is($api->wait_exit, 0, 'it ends');

expect_healthy($node);
done_testing;
