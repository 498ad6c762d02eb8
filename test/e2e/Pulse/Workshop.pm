# What the tests of pages look at: workers, a job that runs, failed jobs, queues within queues, a
# schedule and a flow, and a browser of somebody who may look or act.
package Pulse::Workshop;

use strict;
use warnings FATAL => 'all';
use utf8;

use Exporter qw(import);

use Pulse::Browser;
use Pulse::Serve;
use Pulse::Server;

our @EXPORT = qw(fill_workshop open_workshop sign_in open_menu);

# Returns ids: ann and bob are workers, painted is the job that runs, inks are failed jobs, and a
# flow.
sub fill_workshop {
    my ($node) = @_;
    value($node, q{CREATE ROLE an_observer LOGIN; SELECT pulse.grant_observer('an_observer');
        CREATE ROLE an_operator LOGIN; SELECT pulse.grant_operator('an_operator');
        SELECT pulse.grant_scheduler('an_operator')});
    my %there;
    $there{ann} = value($node, q{SELECT id FROM pulse.register_worker('ann', '{paint}',
        info => '{"slots": 4, "version": "1.2"}')});
    $there{bob} = value($node, q{SELECT id FROM pulse.register_worker('bob', '{ink}')});
    $there{painted} =
      value($node, q{SELECT id FROM pulse.add_job('paint', '{"colour": "lapis lazuli"}')});
    value($node, "SELECT pulse.claim($there{ann})");
    value($node, "SELECT pulse.progress(id, token, 'half', 0.5) FROM pulse.job
        WHERE id = $there{painted}");
    value($node, q{SELECT pulse.add_job('ink', max_attempts => 1) FROM generate_series(1, 3)});
    value($node, "WITH c AS (SELECT array_agg(id) AS ids, array_agg(token) AS tokens
        FROM pulse.claim($there{bob}, 3)) SELECT count(*) FROM c, pulse.fail_many(c.ids, c.tokens,
        array_fill('the bottle is empty'::text, ARRAY[3]), array_fill(false, ARRAY[3]))");
    $there{inks} = [ split /\n/, value($node,
        q{SELECT id FROM pulse.finished_job WHERE identifier = 'ink' ORDER BY id}) ];
    value($node,
        q{SELECT pulse.add_job('letter', queue_name => 'post/north') FROM generate_series(1, 2)});
    value($node, q{SELECT pulse.schedule('nightly', 'sweep_floor', cron => '0 3 * * *')});
    $there{flow} = value($node, q{SELECT max(flow_id) FROM pulse.add_flow('[
        {"key": "left", "identifier": "page"}, {"key": "right", "identifier": "page"},
        {"key": "book", "identifier": "bind", "after": ["left", "right"]}]', 'a book')});
    return \%there;
}

# Serves the pages to watcher, who may look, and keeper, who may act. Returns the server and a
# browser.
sub open_workshop {
    my ($node) = @_;
    my $serve = start_serve($node, tokens => { watcher => 'an_observer', keeper => 'an_operator' });
    return ($serve, Pulse::Browser->start(base => $serve->{url}));
}

sub sign_in {
    my ($browser, $serve, $name) = @_;
    $browser->go('/login');
    $browser->fill('token', $serve->{secret}{$name});
    $browser->click('Sign in', 'main');
    $browser->wait_for_path(qr{^/$});
    return;
}

# The menu of the first row within what the selector finds; nothing of it is seen before.
sub open_menu {
    my ($browser, $within) = @_;
    $browser->click('⋯', $within);
    return;
}

1;
