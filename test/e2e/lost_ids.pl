# P16: a job that a failover lost, or that is of another shard, is told as such at the terminal,
# over HTTP and on a page; a job that is there is shown, whatever its id.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Api;
use Pulse::Console;
use Pulse::Server;
use Pulse::Workshop;

my $node = start_server('main', settings => \%PATIENT);
value($node, 'SELECT pulse.set_shard(3)');
value($node, q{CREATE ROLE an_observer LOGIN; SELECT pulse.grant_observer('an_observer');
    CREATE ROLE an_operator LOGIN; SELECT pulse.grant_operator('an_operator')});
my $kept = add_job($node, 'kept');
# As the first id of a timeline does.
value($node, 'SELECT pulse_internal.leap(pulse_internal.id_place())');
my $lost = value($node, 'SELECT to_id - 7 FROM pulse_internal.pending_gap');
my $alive = value($node, "INSERT INTO pulse.job (id, identifier) VALUES ($lost + 1, 'alive')
    RETURNING id");

my %there = (kept => $kept, 'in the gap, and alive' => $alive);
# Each id that no table has, and what is said of it.
my %gone = (
    'in the gap' => [ $lost, qr/job $lost was lost in the failover of \d{4}-/ ],
    'below the floor' => [ 7, qr/job 7 is of shard 0/ ],
    'above the ceiling' => [ 5 * 2**44 + 1, qr/job 87960930222081 is of shard 5/ ]);

subtest 'at the terminal' => sub {
    is(pulse($node, 'job', $there{$_})->{status}, 0, "a job $_ is shown") for sort keys %there;
    for my $which (sort keys %gone) {
        my ($id, $why) = @{ $gone{$which} };
        for my $command ([ 'job', $id ], [ 'cancel', $id, '--yes' ], [ 'retry', $id, '--yes' ]) {
            my $said = pulse($node, @{$command});
            isnt($said->{status}, 0, "pulse $command->[0] fails for an id $which");
            like($said->{err}, $why, 'and says why');
        }
    }
};

subtest 'over HTTP' => sub {
    my $api = Pulse::Api->start($node, 'serve', tokens => { operator => 'an_operator' });
    is($api->curl(GET => "/v1/jobs/$there{$_}", as => 'operator')->{status}, 200, "a job $_")
      for sort keys %there;
    for my $which (sort keys %gone) {
        my ($id, $why) = @{ $gone{$which} };
        for my $method (qw(GET DELETE)) {
            my $answer = $api->curl($method => "/v1/jobs/$id", as => 'operator');
            is($answer->{status}, 404, "$method does not find an id $which");
            like($answer->{body}, $why, 'and says why');
        }
    }
    $api->signal('TERM');
    $api->wait_exit;
};

subtest 'on a page' => sub {
    my ($serve, $browser) = open_workshop($node);
    sign_in($browser, $serve, 'keeper');
    for my $which (sort keys %there) {
        $browser->go("/jobs/$there{$which}");
        like($browser->text, qr/$there{$which}/, "a job $which is shown");
        unlike($browser->text, qr/was lost|is of shard/, 'with no complaint');
    }
    for my $which (sort keys %gone) {
        my ($id, $why) = @{ $gone{$which} };
        $browser->go("/jobs/$id");
        like($browser->text, $why, "an id $which: the page says why there is no job");
    }
};

expect_healthy($node);
done_testing();
