# Each request of the HTTP API, each page and each procedure, used with the least rights that the
# documentation asks for, beside jobs, workers, queues, flows, schedules and operations in each
# state. test/pgtap/rights_reference.sql does so with tables, views and functions.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Api;
use Pulse::Server;
use Pulse::Session;

my $node = start_server('main', settings => \%PATIENT);
my @kinds = qw(producer caller worker operator scheduler observer);
value($node, "CREATE ROLE a_$_ LOGIN; SELECT pulse.grant_$_('a_$_')") for @kinds;
# The server may do nothing but become the role of a token.
value($node, 'CREATE ROLE serving LOGIN NOINHERIT');
value($node, "GRANT a_$_ TO serving") for @kinds;
my $fixture = Pulse::Session->new($node);
$fixture->query('\i test/pgtap/support/every_state.psql');
my %made = map { split /\|/ } split /\n/, value($node, 'SELECT name, id FROM made');
my $api = Pulse::Api->start($node, 'serve', role => 'serving',
    tokens => { map { $_ => "a_$_" } @kinds });

# The answer to a request whose path names what was made: {running} is the id of that job.
sub answer_to {
    my ($kind, $method, $path, %options) = @_;
    $path =~ s/\{([^}]+)\}/$made{$1} \/\/ die "nothing is called $1\n"/ge;
    # Only the API is described.
    local $api->{description} = undef if $path !~ m{^/(?:v1/|metrics|healthz)};
    return $api->curl($method, $path, as => $kind, %options);
}

my @requests = (
    [ 200, undef, 'GET', '/healthz' ],
    [ 200, undef, 'GET', '/v1/openapi.json' ],
    (map { [ 200, $_, 'GET', '/metrics' ] } qw(operator observer)),
    (map { my $job = $_;
          map { [ 200, $_, 'GET', "/v1/jobs/{$job}" ] } qw(operator observer worker) }
          qw(waiting parked running silent failed completed undecided)),
    [ 201, 'producer', 'POST', '/v1/jobs', body => { identifier => 'mail', payload => [1] } ],
    (map { [ 200, $_, 'DELETE', '/v1/unique-keys',
            body => { identifier => 'mail', unique_key => 'none' } ] } qw(producer operator)),
    [ 200, 'operator', 'DELETE', '/v1/jobs/{parked}', body => { reason => 'reason' } ],
    (map { my ($job, $verb, $status, $body) = @{$_};
          [ $status, 'worker', 'PUT', "/v1/jobs/{$job}/$verb", body => $body,
              token => $made{"token of $job"} ] }
          [ 'running', 'progress', 204, { message => 'half', fraction => 0.5 } ],
          [ 'running', 'complete', 204, { result => 'sent' } ],
          [ 'late', 'fail', 200, { error => 'error' } ],
          [ 'queued', 'snooze', 204, { delay => '1 s' } ],
          [ 'dripping', 'release', 204, {} ]),
    # After what a worker says of its jobs: here the server may sweep, which ends the late one.
    [ 201, 'worker', 'POST', '/v1/workers', body => { name => 'new', tasks => ['mail'] } ],
    [ 200, 'worker', 'POST', '/v1/heartbeats', body => { worker_id => $made{ann} } ],
    [ 200, 'worker', 'POST', '/v1/claims', body => { worker_id => $made{ann} } ],
    [ 204, 'worker', 'DELETE', '/v1/workers/{eve}' ]);

# Path, and what of the system at work it shows.
my @pages = (
    [ '/', qr/mail/ ],
    [ '/jobs', qr/waiting key/ ],
    [ '/failed', qr/poison/ ],
    (map { [ "/jobs/{$_}", qr/mail|nobody|poison/ ] }
          qw(waiting unserved parked level strict rated undecided after running late queued silent
          failed cancelled quarantined expired completed)),
    [ '/running', qr/ann/ ],
    [ '/queues', qr/north/ ],
    [ '/queue?name=post/north', qr/north/ ],
    [ '/tasks', qr/nobody/ ],
    [ '/task?name=mail', qr/mail/ ],
    [ '/workers', qr/bob/ ],
    [ '/workers/{ann}', qr/ann/ ],
    [ '/schedules', qr/hourly/ ],
    [ '/schedule?name=hourly', qr/hourly/ ],
    [ '/flows', qr/a flow/ ],
    [ '/flows/{flow}', qr/a flow/ ],
    [ '/operations', qr/actor/ ],
    [ '/operations/{operation}', qr/actor/ ],
    [ '/doctor', qr/silent|lost|worker/ ],
    [ '/login', qr/Sign in/ ]);
# What changes something asks first, and asks only a role that may.
my @questions = (
    [ operator => '/queues/pause?queue=post', qr/post/ ],
    [ operator => '/queues/resume?queue=held', qr/held/ ],
    [ operator => '/queues/unset?queue=line', qr/line/ ],
    [ operator => '/queues/limit?name=post', qr/post/ ],
    [ scheduler => '/schedules/pause?schedule=hourly', qr/hourly/ ],
    [ scheduler => '/schedules/resume?schedule=paused', qr/paused/ ],
    [ scheduler => '/schedules/run?schedule=hourly', qr/hourly/ ],
    [ operator => '/workers/drain?worker={ann}', qr/Drain/ ],
    [ operator => '/workers/stop?worker={ann}', qr/Stop/ ],
    [ operator => '/flows/cancel?flow={flow}', qr/Cancel/ ],
    [ operator => '/operations/new?action=retry&id={failed}', qr/Retry/ ],
    [ operator => '/operations/{operation}/undo', qr/Undo/ ]);
my @streams = map { "/live$_" } qw(/overview /running /queues /queue?name=post/north /tasks
  /task?name=mail /workers /workers/{ann} /jobs/{running} /flows/{flow});

# How addresses are called that name what was made, for comparison with those of the sources.
sub route_of {
    my ($path) = @_;
    $path =~ s/\?.*//;
    $path =~ s/\{[^}]+\}/{id}/;
    return $path;
}

subtest 'each page shows an observer what there is' => sub {
    for my $page (@pages) {
        my ($path, $shows) = @{$page};
        my $answer = answer_to(observer => 'GET', $path);
        is($answer->{status}, 200, $path) or diag $answer->{body};
        like($answer->{body}, $shows, "$path: on rows");
        unlike($answer->{body}, qr/permission denied|class="empty"/, "$path: all of it");
    }
};

subtest 'each question is put to a role that may say yes' => sub {
    for my $question (@questions) {
        my ($kind, $path, $shows) = @{$question};
        my $answer = answer_to($kind, 'GET', $path);
        is($answer->{status}, 200, "$kind: $path") or diag $answer->{body};
        like($answer->{body}, $shows, "$path: on rows");
    }
};

subtest 'each page that is kept up to date is so for an observer' => sub {
    for my $stream (@streams) {
        my $path = $stream =~ s/\{(\w+)\}/$made{$1}/r;
        my $connection = $api->connection;
        syswrite $connection, join "\r\n", "GET $path HTTP/1.1", 'Host: localhost',
          "Authorization: Bearer $api->{secret}{observer}", '', '';
        my $said = '';
        until ($said =~ /^data: .+$/m) {
            my $piece = Pulse::Api::piece_of($connection);
            last if $piece eq '';
            $said .= $piece;
        }
        like($said, qr{\AHTTP/1\.1 200 .*^data: .+$}ms, $stream);
        unlike($said, qr/permission denied/, "$stream: all of it");
    }
};

subtest 'each request of the API succeeds with the least role for it' => sub {
    for my $request (@requests) {
        my ($status, $kind, $method, $path, %options) = @{$request};
        my $answer = answer_to($kind, $method, $path, %options);
        is($answer->{status}, $status, ($kind // 'anybody') . ": $method $path")
          or diag $answer->{body};
    }
};

subtest 'each procedure succeeds with the least role for it' => sub {
    my %calls = (
        wait_for_job => [ worker => "CALL pulse.wait_for_job($made{ann}, '0')" ],
        wait_for_end => [ caller => "CALL pulse.wait_for_end(ARRAY[$made{failed}], '1 s')" ],
        run_tick => [ operator => 'CALL pulse.run_tick()' ]);
    for my $name (sort keys %calls) {
        my ($kind, $call) = @{ $calls{$name} };
        my $session = Pulse::Session->new($node);
        $session->query("SET SESSION AUTHORIZATION a_$kind");
        ok(eval { $session->query($call); 1 }, "$kind: $name") or diag $@;
        $session->quit;
    }
    is(value($node, q{SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc
            WHERE prokind = 'p' AND pronamespace = 'pulse'::regnamespace}),
        join(' ', sort keys %calls), 'there is no other');
};

subtest 'nothing that the server answers is left out' => sub {
    my %asked = map { ("$_->[2] " . route_of($_->[3]) => 1) } @requests;
    my $paths = $api->{description}{document}{paths};
    my @described = map { my $path = $_; map { uc($_) . " $path" } keys %{ $paths->{$path} } }
      keys %{$paths};
    is_deeply([ grep { !$asked{$_} } sort @described ], [], 'no request of the description');
    my %seen = map { route_of($_) => 1 } (map { $_->[0] } @pages), (map { $_->[1] } @questions),
      @streams;
    # The first begin addresses; the others are written to only.
    $seen{$_} = 1 for qw(/live /live/flows /live/jobs), qw(/logout /operations/{id}/run
      /operations/{id}/stop);
    my %named = map { $_ => 1 }
      map { slurp_file($_) =~ m{"(/[a-z_/\{\}]*)"}g } glob 'console/src/pages/*.cpp';
    cmp_ok(scalar keys %named, '>', 30, 'the sources name addresses');
    is_deeply([ grep { !$seen{$_} } sort keys %named ], [], 'no page of theirs');
};

$fixture->quit;
expect_healthy($node);
done_testing;
