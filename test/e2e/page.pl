# The pages of `pulse serve` in a browser: what is seen, what each action changes and leaves on
# record, a whole path with the keyboard alone, and what a visitor sees while the database is gone.
use strict;
use warnings FATAL => 'all';
use utf8;

use Test::More;

use Pulse::Server;
use Pulse::Workshop;

my $node = start_server('main', settings => \%PATIENT);
my $there = fill_workshop($node);
my ($ann, $painted, $flow) = @$there{qw(ann painted flow)};
my @inks = @{ $there->{inks} };
my ($serve, $browser) = open_workshop($node);

# What an operator's action left on record last.
sub record {
    return value($node, q{SELECT concat_ws(' ', action, subject, state, changed, actor)
        FROM pulse.operations ORDER BY id DESC LIMIT 1});
}

sub state_of {
    my ($id) = @_;
    return value($node, "SELECT state FROM pulse.get_job($id)");
}

subtest 'who has no token is asked for one' => sub {
    $browser->go('/jobs');
    like($browser->text, qr/^Sign in$/m, 'instead of the jobs');
    like($browser->text, qr/pulse token NAME ROLE/, 'the page says where a token comes from');
    unlike($browser->text, qr/Queues|Doctor|read only/, 'and has no menu that leads back to it');
    unlike($browser->text, qr/paint/, 'which are not shown');
    $browser->fill('token', 'none of them');
    $browser->click('Sign in', 'main');
    like($browser->wait_for(qr/token/i), qr/Sign in/, 'a wrong one does not help');
};

subtest 'an observer sees everything but what tasks wrote' => sub {
    sign_in($browser, $serve, 'watcher');
    like($browser->wait_for(qr/Running\n1\n/), qr/Running\n1\n/, 'the overview counts');
    $browser->go("/jobs/$inks[0]");
    like($browser->text, qr/ink\s+failed\s+Job $inks[0]/, 'a job');
    unlike($browser->text, qr/the bottle is empty/, 'without its error');
    $browser->go("/jobs/$painted");
    unlike($browser->text, qr/lapis lazuli/, 'without its payload');
    unlike($browser->text, qr/^Cancel$/m, 'nothing offers to change it');
    $browser->go("/operations/new?action=cancel&id=$painted");
    like($browser->text, qr/may not|permission|Forbidden/i, 'and the address does not help');
    is(state_of($painted), 'running', 'it runs on');
};

subtest 'each page shows what there is' => sub {
    sign_in($browser, $serve, 'keeper');
    my @pages = (
        [ '/', qr/Overview.*Ready.*Running\n1\n.*Depth/s ],
        [ '/jobs', qr/Jobs.*\b$painted\b.*paint.*running/s ],
        [ '/jobs?task=letter', qr/post\/north/ ],
        [ '/failed', qr/Failed jobs.*ink.*the bottle is empty/s ],
        [ '/running', qr/paint.*ann.*50 %/s ],
        [ '/queues', qr/\bpost\b.*\bnorth\b/s ],
        [ '/tasks', qr/letter.*no worker/s ],
        [ '/task?name=ink', qr/Task\ ink.*Ended\ per\ minute.*Time\ to\ run
            .*last\ hour\ by\ duration\s+waited\ 3\s+ran\ 3\s.*Rates.*hour\s+3\s/sx ],
        [ '/queue?name=post/north', qr/Queue post\/north.*Wait.*No attempt started/s ],
        [ '/workers', qr/ann.*alive.*1 of 4.*1\.2/s ],
        [ "/workers/$ann", qr/Worker\ ann\s+alive.*slots.*last\ heartbeat.*beats\ every\s+\d
            .*Its\ jobs.*\b$painted\s+paint\b.*50\ %.*Its\ tasks\s+paint/sx ],
        [ '/workers/999', qr/worker 999 is unknown/ ],
        [ '/schedules', qr/nightly.*sweep_floor.*0 3 \* \* \*/s ],
        [ '/schedule?name=nightly', qr/Next runs.*in \d+ (?:h|min|s)/s ],
        [ '/flows', qr/a book/ ],
        [ "/flows/$flow", qr/left.*right.*book/s ],
        [ '/operations', qr/Nothing was done/ ],
        [ '/doctor', qr/Doctor/ ],
        [ "/jobs/$painted", qr/paint\s+running\s+Job\ $painted\b.*worker\s+ann\b.*50\ %.*Payload
            .*\{\n\ \ "colour":\ "lapis\ lazuli"\n\}/sx ],
        [ "/jobs/$inks[0]", qr/Timeline.*failed 1.*Attempts.*the bottle is empty/s ],
        [ '/jobs/999999', qr/999999/ ],
        [ '/nowhere', qr/Not found/i ]);
    for my $page (@pages) {
        my ($path, $expected) = @$page;
        $browser->go($path);
        like($browser->wait_for($expected), $expected, $path);
        ok($browser->js('return document.documentElement.scrollWidth <= innerWidth'),
            "$path fits its window");
    }
};

subtest 'a payload is copied by a button' => sub {
    $browser->go("/jobs/$painted");
    $browser->js(q{navigator.clipboard.writeText = async (text) => { window.copied = text; }});
    $browser->click('Copy', '.copied');
    like($browser->wait_for(qr/^Copied$/m), qr/^Copied$/m, 'which says so');
    is($browser->js('return window.copied'), qq({\n  "colour": "lapis lazuli"\n}),
        'as it is laid out');
};

subtest 'workers go by their names' => sub {
    $browser->go('/workers');
    unlike($browser->text, qr/$ann/, 'no id stands in the list');
    $browser->click('ann', 'main');
    $browser->wait_for_path(qr{^/workers/$ann$});
    $browser->click('Stop', '.actions');
    my $asked = qr/Stop worker ann of postgres\?/;
    like($browser->wait_for($asked), $asked, 'nor in a question about it');
};

subtest 'a timeline of attempts tells in words what it draws' => sub {
    my $said = 'return document.querySelector(".attempts svg").getAttribute("aria-label")';
    $browser->go("/jobs/$inks[0]");
    like($browser->js($said), qr/^1 attempt in .*, due after 0 ms, attempt 1 failed after /,
        'of one that failed');
    $browser->go("/jobs/$painted");
    like($browser->js($said), qr/, attempt 1 running after /, 'and of one that runs');
};

subtest 'at the width of a phone' => sub {
    $browser->look_as(size => [ 375, 812 ]);
    for my $path (qw(/ /jobs /failed /queues /tasks /task?name=ink /workers /schedules /flows),
        '/doctor', "/jobs/$inks[0]", "/flows/$flow", "/operations/new?action=cancel&id=$painted") {
        $browser->go($path);
        is($browser->js('return document.documentElement.scrollWidth'), 375, "$path is not wider");
    }
    $browser->look_as;
};

subtest 'jobs are changed after a question, on record, and back' => sub {
    $browser->go('/failed');
    $browser->click('Retry all', '.bulk');
    my $asked = qr/Retry all 3 failed or quarantined jobs of postgres\?/;
    like($browser->wait_for($asked), $asked, 'how many, of what kind, and where');
    like($browser->text, qr/The first|Which.*$inks[0]/s, 'and which');
    is(state_of($inks[0]), 'failed', 'nothing has happened yet');
    $browser->click('Retry 3 jobs', 'form');
    like($browser->wait_for(qr/retry of 3 jobs/), qr/done/, 'it is done');
    is(state_of($inks[0]), 'ready', 'they run again');
    is(record(), 'retry {"states":"failed,quarantined","added":"a time of the add"} done 3 keeper',
        'it is on record');
    $browser->click('Undo …');
    $browser->wait_for(qr/Undo the retry/);
    $browser->click('Undo the retry', 'form');
    $browser->wait_for(qr/undo of 3 jobs/);
    is(state_of($inks[0]), 'failed', 'and it is taken back');

    $browser->go('/failed');
    $browser->js('document.querySelectorAll("td.check input")[0].click()');
    $browser->click('Retry', '.bulk');
    $browser->wait_for(qr/Retry job $inks[2] of postgres\?/);
    $browser->click('Retry 1 job', '.question');
    $browser->wait_for(qr/retry of 1 job/);
    is(state_of($inks[2]) . ' ' . state_of($inks[1]), 'ready failed', 'one that was chosen');

    $browser->go("/jobs/$inks[2]");
    $browser->click('Cancel', '.actions');
    $browser->wait_for(qr/Cancel job $inks[2] of postgres\?/);
    $browser->fill('reason', 'no more ink');
    $browser->click('Cancel 1 job', '.question');
    $browser->wait_for(qr/cancel of 1 job/);
    is(state_of($inks[2]), 'cancelled', 'one is cancelled');
    is(record(), 'cancel {"jobs":"1 chosen"} done 1 keeper', 'which is on record');
    $browser->go('/jobs?task=letter');
    $browser->click('Reschedule all');
    $browser->wait_for(qr/Reschedule all 2 waiting jobs .* whose task is letter\?/);
    $browser->fill('priority', '7');
    $browser->click('Reschedule 2 jobs', 'form');
    $browser->wait_for(qr/reschedule of 2 jobs/);
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE priority = 7}), 2, 'two have moved');
};

subtest 'queues, schedules, workers and flows' => sub {
    my $change = sub {
        my ($path, $link, $within, $yes, $recorded) = @_;
        $recorded .= ' done 0 keeper';
        $browser->go($path);
        open_menu($browser, $within) if $within ne '.actions';
        $browser->click($link, $within);
        $browser->wait_for(qr/\?$/m);
        $browser->click($yes, '.question');
        $browser->wait_for_path(qr{^/(?:queues|schedules|workers|flows)$});
        is(record(), $recorded, $recorded);
    };
    my $north = 'tr:has(span[title="post/north"])';
    $change->('/queues', 'Pause', $north, 'Pause', 'pause queue {"queue" : "post/north"}');
    is(value($node, q{SELECT paused FROM pulse.queue_settings}), 't', 'the queue is paused');
    $change->('/queues', 'Resume', $north, 'Resume', 'resume queue {"queue" : "post/north"}');
    is(value($node, q{SELECT count(*) FROM pulse.queue_settings}), '0', 'and goes on, as before');
    open_menu($browser, $north);
    $browser->click('Limits', $north);
    $browser->wait_for(qr/Limits of queue/);
    $browser->fill('concurrency', '3');
    $browser->fill('total', '9');
    $browser->click('Set limits', 'form');
    $browser->wait_for_path(qr{^/queues$});
    is(value($node, q{SELECT concat_ws(' ', concurrency, total, rate) FROM pulse.queue_settings}),
        '3 9', 'it has limits');
    like($browser->text, qr/of 3/, 'which are shown');
    $change->('/schedules', 'Run now', 'main', 'Run', 'run schedule {"schedule" : "nightly"}');
    is(value($node, q{SELECT count(*) FROM pulse.job WHERE identifier = 'sweep_floor'}), 1,
        'a job is added');
    $change->('/schedules', 'Pause', 'main', 'Pause', 'pause schedule {"schedule" : "nightly"}');
    is(value($node, 'SELECT paused FROM pulse.schedules'), 't', 'it is paused');
    $change->('/schedules', 'Resume', 'main', 'Resume', 'resume schedule {"schedule" : "nightly"}');
    $change->('/workers', 'Drain', 'main', 'Drain worker ann',
        qq(drain worker {"worker" : "$ann"}));
    is(value($node, "SELECT state FROM pulse.worker_status WHERE id = $ann"), 'draining', 'drains');
    $change->("/flows/$flow", 'Cancel', '.actions', "Cancel flow $flow",
        qq(cancel flow {"flow" : "$flow"}));
    is(value($node, "SELECT cancelled FROM pulse.flows WHERE id = $flow"), 3,
        'no job is left of it');
};

subtest 'with the keyboard alone' => sub {
    $browser->go('/');
    $browser->press('Tab');
    is($browser->focus, 'Skip to the content', 'the first stop leads past the menu');
    ok($browser->tab_to('Failed'), 'the menu has failed jobs');
    $browser->press('Enter');
    $browser->wait_for_path(qr{^/failed$});
    ok($browser->tab_to('Retry all'), 'they can be retried');
    $browser->press('Enter');
    $browser->wait_for(qr/Retry all 2 failed or quarantined jobs/);
    is($browser->wait_for_focus('Retry 2 jobs'), 'Retry 2 jobs', 'the answer has the focus');
    $browser->press('Enter');
    $browser->wait_for_path(qr{^/operations/\d+$});
    is(record(), 'retry {"states":"failed,quarantined","error":"an error",'
          . '"added":"a time of the add"} done 2 keeper', 'they are');
    ok($browser->tab_to('Undo …'), 'and back');
    $browser->press('Enter');
    $browser->wait_for(qr/Undo the retry of 2 jobs\?/);
    is($browser->wait_for_focus('Leave it as it is'), 'Leave it as it is',
        'the answer that changes nothing has the focus');
    $browser->press('Shift+Tab');
    $browser->press('Enter');
    $browser->wait_for(qr/undo of 2 jobs/);
    is(record(), 'undo done 2 keeper', 'with Enter');
    $browser->go('/jobs');
    $browser->press('/');
    is($browser->focus, 'task', 'a slash leads to the filter');
    $browser->press(split //, 'letter');
    $browser->press('Enter');
    $browser->wait_for_path(qr{task=letter});
    $browser->press('j');
    like($browser->focus, qr/^\d+$/, 'j leads to the first job');
    $browser->press('Enter');
    like($browser->wait_for_path(qr{^/jobs/\d+$}), qr{^/jobs/\d+$}, 'which is opened');
};

subtest 'what is live follows' => sub {
    $browser->go('/tasks');
    $browser->wait_for(qr/letter/);
    value($node, q{SELECT pulse.add_job('just_now')});
    like($browser->wait_for(qr/just_now/), qr/just_now/, 'a new task comes up by itself');
};

subtest 'the database goes away' => sub {
    $browser->go('/');
    $browser->wait_for(qr/Ready/);
    $node->stop('fast');
    like($browser->wait_for(qr/cannot be reached/), qr/cannot be reached/, 'the live page says so');
    $browser->go('/jobs');
    like($browser->wait_for(qr/comes back when the database does/), qr/comes back when/,
        'a page that is asked for says so');
    $node->start;
    like($browser->wait_for(qr/Filter/), qr/Filter/, 'and comes back by itself');
};

is_deeply([ $browser->notice ], [], 'no dialog, no error, and nothing that the policy forbids');
$browser->stop;
expect_healthy($node);
done_testing();
