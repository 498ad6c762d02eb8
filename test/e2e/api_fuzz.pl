# No request breaks `pulse serve`: whatever comes, each answer is well-formed HTTP of a status that
# is described, and no fault of the server's own, whose memory stays small. PULSE_REQUESTS says how
# many, PULSE_SEED (the test prints it) repeats them.
use strict;
use warnings FATAL => 'all';

use IO::Select ();
use JSON::PP ();
use Test::More;

use PostgreSQL::Test::Utils ();
use Pulse::Api;
use Pulse::Server;
use Pulse::Worker;

local $SIG{PIPE} = 'IGNORE';
my $requests = $ENV{PULSE_REQUESTS} // 2_000;
my $seed = $ENV{PULSE_SEED} // time;
srand $seed;
note "PULSE_SEED=$seed";

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE a_client; SELECT pulse.grant_producer('a_client');
    SELECT pulse.grant_worker('a_client'); SELECT pulse.grant_operator('a_client')});
my $api = Pulse::Api->start($node, 'serve', tokens => { client => 'a_client' });
my $bearer = "Authorization: Bearer $api->{secret}{client}";

my @texts = ('', 'mail', 'x' x 300, '<script>alert(1)</script>', "\e[2J\e]0;x\a", "a\0b",
    "\xff\xfe", "\xe2\x80\xae", "a\r\nSet-Cookie: x=1", q{'; DROP TABLE x; --},
    '{}', '%s%n', '../../etc/passwd', "\xf0\x9f\x90\x98", '{a,NULL,"b}',
    '9223372036854775808', '-1', 'NaN');
my @values = (undef, 0, 1, -1, 1e308, 2**53, [], {}, [ [] ], [undef], { a => undef },
    JSON::PP::true, JSON::PP::false, map { "$_" } @texts);
my @fields = qw(identifier payload queue_name run_at max_attempts job_key job_key_mode priority
  flags name tasks info heartbeat_interval worker_id max_jobs wait_seconds job_ids message fraction
  result error retry retry_in delay checkpoint stage reason other);
my @paths = ('/v1/jobs', '/v1/workers', '/v1/claims', '/v1/heartbeats', '/v1/openapi.json',
    '/metrics', '/healthz', '/login', '/logout', '/', '//', '/v1', '/v1/jobs/', '*', 'http://x/',
    map({ ("/v1/jobs/$_", "/v1/workers/$_") }
          1, 0, -1, '9' x 19, '9' x 40, 'abc', '%00', '%', '%ff'),
    map { "/v1/jobs/1/$_" } qw(progress complete fail snooze release other));
my @methods = (('POST') x 4, ('PUT') x 4, ('GET') x 3,
    qw(DELETE HEAD PATCH OPTIONS TRACE CONNECT get), 'X' x 40, "G\0T");
my @types = ('application/json', 'application/json; charset=utf-8',
    'application/x-www-form-urlencoded', 'text/plain', '', 'x' x 200);

sub one { return $_[ rand @_ ] }

sub body {
    my %document = map { one(@fields) => one(@values) } 1 .. rand 6;
    my $text = JSON::PP->new->latin1->encode(\%document);
    my $kind = rand 12;
    return $text if $kind < 8;
    return substr $text, 0, rand length $text if $kind < 9;
    return one(@texts) x (1 + rand 50) if $kind < 10;
    return '[' x rand 5_000 if $kind < 11;
    return 'x' x rand 1_500_000 if rand() < 0.02;
    return join '', map { chr rand 256 } 1 .. rand 200;
}

# The request, whether it is whole, and its method and path.
sub request {
    my ($method, $path) = (one(@methods), one(@paths));
    $path .= '?' . one('a=1', 'a=%00', 'a=%zz', '&&&=', 'a=' . 'x' x 5_000) if rand() < 0.1;
    my $body = body();
    my @headers = ('Host: localhost', 'Connection: close', 'Content-Length: ' . length $body);
    push @headers, $bearer if rand() < 0.9;
    push @headers, 'Content-Type: ' . (rand() < 0.8 ? $types[0] : one(@types));
    push @headers, 'Pulse-Token: ' . one(1, -1, 'x', '9' x 30, '') if rand() < 0.6;
    my $is_plain = rand() < 0.8;
    if (!$is_plain) {
        my $odd = one('Content-Length: 5', 'Transfer-Encoding: chunked', 'Host: evil', 'X' x 40_000,
            "X: \0", ' folded', 'Expect: 100-continue', 'Cookie: pulse=1', 'Idempotency-Key: k',
            ": none", 'Content-Length: -1', "Cookie: a=\xff");
        splice @headers, rand @headers, 1, $odd;
    }
    my $text = join "\r\n", "$method $path HTTP/1." . ($is_plain ? 1 : one(0, 1, 2, 9)), @headers,
      '', $body;
    return ($text, $is_plain, $method, $path) if rand() < 0.9;
    return (substr($text, 0, rand length $text), 0, $method, $path);
}

# What is wrong with the answer; empty for nothing.
sub fault {
    my ($text, $is_plain, $method, $path) = @_;
    my $connection = $api->connection;
    syswrite $connection, $text;
    # What is no whole request may have no answer; the server waits for the rest, the test does not.
    return '' if !$is_plain && !IO::Select->new($connection)->can_read(0.02);
    shutdown $connection, 1 if !$is_plain;
    my $said = $is_plain ? Pulse::Api::rest_of($connection) : Pulse::Api::piece_of($connection);
    return '' if !$is_plain && $said =~ m{\A(?:HTTP/1\.1 100 [^\r]*\r\n\r\n)?\z};
    return $method =~ /^(?:GET|PUT|POST|DELETE)$/ ? 'no answer' : '' if $said eq '';
    my $answer = eval { Pulse::Api::answer_of($said) } or return $@;
    my $length = $answer->{headers}{'content-length'};
    my $has_length = $is_plain && $method ne 'HEAD' && defined $length;
    return 'another length' if $has_length && $length != length $answer->{body};
    return "status $answer->{status}" if $answer->{status} == 500 || $answer->{status} < 200;
    return 'a header of the client' if ($answer->{headers}{'set-cookie'} // '') =~ /x=1/;
    return '' if !$is_plain || $method !~ /^(?:GET|PUT|POST|DELETE)$/ || $path !~ m{^/(?:v1/|m)};
    eval { $api->{description}->check($method, $path, $answer); 1 } or return $@;
    return '';
}

# The most that the server has had in memory, in MB.
sub memory {
    my ($kb) = PostgreSQL::Test::Utils::slurp_file('/proc/' . $api->pid . '/status')
      =~ /^VmHWM:\s+(\d+) kB/m;
    return $kb / 1024;
}

my %faults;
for my $number (1 .. $requests) {
    note sprintf '%d requests, %d MB', $number, memory() if $number % 50_000 == 0;
    my @request = request();
    my $fault = fault(@request) or next;
    $faults{$fault} //= substr $request[0], 0, 400;
}
is_deeply(\%faults, {}, "$requests requests have an answer each that is as it should be");
my $most_megabytes = Pulse::Worker->is_sanitized ? 1000 : 256;
cmp_ok(memory(), '<', $most_megabytes, 'the memory of the server stays small');
is($api->curl(GET => '/healthz')->{status}, 200, 'the server runs on');
is($api->curl(GET => '/metrics', as => 'client')->{status}, 200, 'and reaches the database');
$api->signal('TERM');
is($api->wait_exit, 0, 'it ends when it is told to');
expect_healthy($node);
done_testing;
