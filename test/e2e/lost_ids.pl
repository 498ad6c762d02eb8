# P16: a job that a failover lost is told as such at the terminal and over HTTP.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Api;
use Pulse::Console;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE an_operator; SELECT pulse.grant_operator('an_operator')});
my $kept = add_job($node, 'kept');
# As the first id of a timeline does.
value($node, 'SELECT pulse_internal.leap(pulse_internal.id_place())');
my $lost = value($node, 'SELECT to_id - 7 FROM pulse_internal.pending_gap');
my $why = qr/job $lost was lost in the failover of \d{4}-/;

subtest 'at the terminal' => sub {
    is(pulse($node, 'job', $kept)->{status}, 0, 'a job that is there is shown');
    for my $command ([ 'job', $lost ], [ 'cancel', $lost, '--yes' ]) {
        my $said = pulse($node, @{$command});
        isnt($said->{status}, 0, "pulse $command->[0] fails");
        like($said->{err}, $why, 'and says why');
    }
};

subtest 'over HTTP' => sub {
    my $api = Pulse::Api->start($node, 'serve', tokens => { operator => 'an_operator' });
    for my $method (qw(GET DELETE)) {
        my $answer = $api->curl($method => "/v1/jobs/$lost", as => 'operator');
        is($answer->{status}, 404, "$method does not find it");
        like($answer->{body}, $why, 'and says why');
    }
    is($api->curl(GET => "/v1/jobs/$kept", as => 'operator')->{status}, 200, 'a job that is there');
    $api->signal('TERM');
    $api->wait_exit;
};

expect_healthy($node);
done_testing();
