# Lists in the pages of `pulse serve`: their tabs, menus and words, the zone of their times, what a
# phone shows of them, and how a server tells itself from others.
use strict;
use warnings FATAL => 'all';
use utf8;

use HTTP::Tiny;
use Test::More;

use Pulse::Console;
use Pulse::Serve;
use Pulse::Server;
use Pulse::Workshop;

my $node = start_server('main', settings => \%PATIENT);
my $there = fill_workshop($node);
my $painted = $there->{painted};
my @inks = @{ $there->{inks} };
my ($serve, $browser) = open_workshop($node);

sign_in($browser, $serve, 'keeper');

subtest 'what may be done with a row is a menu' => sub {
    $browser->go('/queues');
    my $row = 'tr:has(span[title="post/north"])';
    my $shown = qq{return document.querySelector('$row .menu ul').checkVisibility()};
    ok(!$browser->js($shown), 'which is closed at first');
    open_menu($browser, $row);
    ok($browser->js($shown), 'a click opens it');
    ok($browser->js(qq{const list = document.querySelector('$row .menu ul');
        const box = list.getBoundingClientRect();
        return list.contains(document.elementFromPoint(box.left + 20, box.bottom - 12))}),
        'over what is below, to its end');
    $browser->press('Escape');
    ok(!$browser->js($shown), 'Escape closes it');
    is($browser->js('return document.activeElement.getAttribute("aria-label")'),
        'Actions of post/north', 'and the focus stays');
};

subtest 'no word of a list is broken inside while there is room' => sub {
    # A long text leaves the other columns no more room than their words need.
    my $lost = value($node, q{SELECT id FROM pulse.register_worker('a_worker_with_a_long_name')});
    value($node, "SELECT pulse.declare_lost($lost, 'the machine ' || repeat('went away ', 40))");
    for my $path ('/queues', '/schedules', '/workers', '/tasks', '/jobs') {
        $browser->go($path);
        is($browser->js(<<'JS'), '', "none on $path");
          const broken = [];
          for (const cell of document.querySelectorAll('td')) {
            const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
            for (let text; (text = walk.nextNode());) {
              for (const word of text.data.matchAll(/\w+/g)) {
                const range = document.createRange();
                range.setStart(text, word.index);
                range.setEnd(text, word.index + word[0].length);
                if (range.getClientRects().length > 1) broken.push(word[0]);
              }
            }
          }
          return broken.join(' ');
JS
    }
};

subtest 'a worker is shown with its last heartbeat, by the wall clock' => sub {
    # The liveness clock stands here, as where no sweep runs.
    value($node, q{UPDATE pulse.heartbeat AS h SET last_heartbeat_at = now() - interval '3 h'
        FROM pulse.worker AS w WHERE w.id = h.worker_id AND w.name = 'ann'});
    $browser->go('/workers');
    my $beats = $browser->js(<<'JS');
      const beat = (row) => row.querySelector('[data-title="last heartbeat"]').innerText;
      return Object.fromEntries([...document.querySelectorAll('main tbody tr')]
        .map((row) => [row.querySelector('.first').innerText, beat(row)]));
JS
    like($beats->{ann}, qr/^3 h ago$/, 'one that should beat each second');
    like($beats->{a_worker_with_a_long_name}, qr/^(?:\d.* ago|now)$/, 'and one that is lost');
};

subtest 'states stand above the list with their counts, scheduled apart from due' => sub {
    value($node, q{SELECT pulse.add_job('letter', run_at => now() + interval '1 d')});
    value($node, q{SELECT pulse.add_job('paint')});
    my $counts = sub {
        my %count = $browser->js('return document.querySelector(".tabs").innerText')
          =~ /^\W*(\w+)\s+([\d,+]+)$/mg;
        return join ' ', map { "$_ $count{$_}" } @_;
    };
    $browser->go('/jobs');
    is($counts->(qw(due scheduled running failed cancelled)),
        'due 3 scheduled 1 running 1 failed 3 cancelled 0', 'each state has its count');
    $browser->go('/jobs?task=letter');
    is($counts->(qw(due scheduled parked)), 'due 0 scheduled 1 parked 2', 'of the filter');
    # The list of parked jobs and the list of later jobs both have a job that is both.
    value($node, q{SELECT pulse.add_job('letter', queue_name => 'desk', run_at => now() + '1 d')});
    $browser->go('/jobs');
    my $all = $counts->(qw(scheduled parked));
    $browser->go('/jobs?task=letter');
    is($counts->(qw(scheduled parked)), 'scheduled 2 parked 3',
        'of jobs that are parked and later');
    is($all, 'scheduled 2 parked '
          . value($node, q{SELECT count(*) FROM pulse.job WHERE state = 'parked'}),
        'the same without a filter');
    value($node, q{DELETE FROM pulse.job WHERE queue_name = 'desk'});
    my $list = sub { return $browser->js('return document.querySelector("tbody").innerText') };
    $browser->go('/jobs?state=ready&due=now');
    unlike($list->(), qr/letter|scheduled/, 'those that are due');
    $browser->go('/jobs?state=ready&state=parked&due=later');
    like($list->(), qr/^\s*\d+\s+letter\s+scheduled\b.*\bin /s, 'those that are due later');
    is($browser->js('return document.querySelectorAll("tbody tr").length'), 1, 'and no other');
    unlike($browser->text, qr/Cancel all/, 'no change of all jobs knows due times');
    $browser->go('/operations/new?action=cancel&all=1&state=ready&due=later');
    like($browser->text, qr/no change of all jobs knows due times/, 'nor does an address');
    value($node, q{SELECT pulse.cancel_job(id) FROM pulse.job WHERE state = 'ready'
        AND (run_at > now() OR identifier = 'paint')});
    $browser->go('/jobs');
    is($browser->js('return document.querySelector(".tabs [aria-current]").innerText'), 'all',
        'the tab of the list is marked');
};

subtest 'an error stands with the line that tells most' => sub {
    my $id = value($node, q{SELECT id FROM pulse.add_job('sketch')});
    my $trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in run\n"
      . ("    frame\n" x 200);
    value($node, "SELECT pulse.permanently_fail_jobs(ARRAY[$id],
        E'${trace}PaperError: the sheet is torn')");
    for my $path ('/failed', '/jobs?state=failed') {
        $browser->go($path);
        my $list = $browser->js('return document.querySelector("tbody").innerText');
        like($list, qr/PaperError: the sheet is torn/, "the last line of a traceback on $path");
        unlike($list, qr/Traceback|frame/, 'and not its head');
    }
};

subtest 'failed jobs stand by error, and by when' => sub {
    my $two = value($node, q{SELECT array_agg(id ORDER BY id) FROM pulse.add_jobs(
        ARRAY[ROW('press', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec,
              ROW('fold', NULL, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec]) AS id});
    my ($pressed, $folded) = $two =~ /(\d+)/g;
    value($node, "SELECT pulse.permanently_fail_jobs('{$folded}', 'the bottle is empty, too')");
    value($node, "SELECT pulse.permanently_fail_jobs('{$pressed}', 'the bottle is empty')");
    $browser->go('/failed');
    my $rows = sub {
        my ($css) = @_;
        return $browser->js("return [...document.querySelectorAll('$css tbody tr')]"
              . '.map((row) => row.innerText.replace(/\s+/g, " ").trim())');
    };
    my $groups = $rows->('.failures');
    like($groups->[0], qr/^the bottle is empty 4 ink press .* Retry all$/,
        'the error with the last failure first: how many jobs of which tasks');
    like($groups->[1], qr/^the bottle is empty, too 1 fold /, 'each error by itself');
    is($browser->js('return document.querySelector(".jobs tbody td.first").innerText'),
        $pressed, 'below, job by job, the last failure');
    is(join(' ', map { /(\d+)/ } @{ $rows->('.jobs') }[ 0, 1 ]), "$pressed $folded",
        'and then the one before');
    $browser->click('the bottle is empty', '.failures');
    $browser->wait_for_path(qr{^/failed\?line=the});
    is_deeply([ sort map { /(\d+)/ } @{ $rows->('.jobs') } ], [ sort @inks, $pressed ],
        'an error leads to its jobs, without those whose error has it in another');
    is_deeply($rows->('.failures'), [], 'where no other error stands');
    unlike($browser->text, qr/Cancel/, 'nothing offers to cancel what has ended');
    $browser->go('/failed?task=ink');
    $browser->click('Retry all', '.failures');
    my $asked = qr/Retry\ all\ 3\ failed\ or\ quarantined\ jobs\ of\ postgres\ whose\ task\ is\ ink
        \ and\ error\ is\ the\ bottle\ is\ empty\?/x;
    like($browser->wait_for($asked), $asked, 'and is retried as a whole, within the filter');
};

subtest 'a flow keeps the edges of parents that have ended' => sub {
    my $edges = 'return document.querySelectorAll(".flow .edge").length';
    $browser->go("/flows/$there->{flow}");
    is($browser->js($edges), 2, 'two before');
    value($node, "SELECT pulse.complete_jobs(ARRAY[job_id])
        FROM pulse.flow_jobs($there->{flow}) WHERE key = 'left'");
    $browser->go("/flows/$there->{flow}");
    is($browser->js($edges), 2, 'and when one parent has ended');
};

subtest 'a count of which the server saw a part has a plus' => sub {
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'both', now() + interval '1 h' * side
          FROM generate_series(1, 1000), unnest('{-1,1}'::int[]) AS side});
    $browser->go('/tasks');
    like($browser->text, qr/^both no worker\s+\d[\d,]*\+\s+\d[\d,]*\+\s/m, 'on the page of tasks');
    $browser->go('/');
    like($browser->text, qr/^Ready\n[\d,]+\+$/m, 'on the overview');
    $browser->go('/jobs');
    like($browser->text, qr/^due\s+[\d,]+\+$/m, 'and on a tab');
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'both'});
};

subtest 'times are those of the browser, and the page says so' => sub {
    $browser->cdp('Emulation.setTimezoneOverride', timezoneId => 'America/St_Johns');
    $browser->go("/jobs/$painted");
    like($browser->text, qr/times in America\/St_Johns \(GMT-3:30\)/, 'with the offset');
    my $added = value($node, "SELECT to_char(created_at AT TIME ZONE 'America/St_Johns',
        'YYYY-MM-DD HH24:MI:SS') FROM pulse.job WHERE id = $painted");
    like($browser->text, qr/added\n.* ago\n$added\n/, 'a fact has the exact time');
    my $due = value($node, "SELECT to_char(min(due) AT TIME ZONE 'America/St_Johns',
        'YYYY-MM-DD HH24:MI:SS') FROM pulse.next_runs('nightly', 1) AS due");
    $browser->go('/schedule?name=nightly');
    is($browser->js('return document.querySelector(".runs [data-title=at]").innerText'), $due,
        'so has a run of a schedule');
    $browser->cdp('Emulation.setTimezoneOverride', timezoneId => 'UTC');
    my $http = HTTP::Tiny->new(
        default_headers => { Authorization => "Bearer $serve->{secret}{keeper}" });
    like($http->get("$serve->{url}/jobs/$painted")->{content},
        qr/times in <b>[^<]+<\/b>/, 'without a script they are those of the server');
};

subtest 'on a phone a job has two lines' => sub {
    $browser->look_as(size => [ 390, 844 ]);
    for my $path ('/jobs', '/failed', '/running', "/workers/$there->{ann}",
        '/operations/new?action=cancel&all=1') {
        $browser->go($path);
        cmp_ok($browser->js('return Math.max(...[...document.querySelectorAll("tbody tr")]'
                  . '.map((row) => row.offsetHeight))'), '<=', 68, "the tallest of $path");
    }
    $browser->go('/running');
    ok($browser->js('const [task, worker] = ["task", "worker"].map((title) => document'
              . '.querySelector(`tbody td[data-title=${title}]`).getBoundingClientRect());'
              . 'return worker.top >= task.bottom'), 'the worker has room in the second one');
    $browser->look_as;
};

subtest 'on a phone figures stand side by side, and a zero takes no room' => sub {
    my $zeros = 'return [...document.querySelectorAll("main td.number")].filter((cell) =>'
      . ' cell.checkVisibility() && cell.innerText.trim() === "0").length';
    $browser->go('/tasks');
    cmp_ok($browser->js($zeros), '>', 3, 'where there is room zeros are shown');
    $browser->look_as(size => [ 390, 844 ]);
    for my $path ('/tasks', '/queues', '/schedules', '/flows', '/workers') {
        $browser->go($path);
        is($browser->js($zeros), 0, "no zero on $path");
    }
    value($node, q{SELECT pulse.add_job('figures', queue_name => 'figures')
        FROM generate_series(1, 2)});
    value($node, q{SELECT pulse.add_job('figures'),
        pulse.add_job('figures', run_at => now() + interval '1 d')});
    $browser->go('/tasks');
    ok($browser->js(<<'JS'), 'three figures of a task');
      const row = [...document.querySelectorAll('main tbody tr')]
        .find((row) => row.innerText.startsWith('figures'));
      const [ready, parked] = ['ready', 'parked']
        .map((title) => row.querySelector(`td[data-title=${title}]`).getBoundingClientRect());
      return ready.height > 0 && ready.top === parked.top;
JS
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'figures'});
    $browser->look_as;
};

subtest 'the page to sign in has the form in the middle' => sub {
    for my $size ([ 1280, 860 ], [ 390, 844 ]) {
        $browser->look_as(size => $size);
        $browser->go('/login');
        ok($browser->js(<<'JS'), "of $size->[0] pixels");
          const box = document.querySelector('.question').getBoundingClientRect();
          const right = document.documentElement.clientWidth - box.right;
          return Math.abs(box.left - right) <= 2;
JS
    }
    $browser->look_as;
};

subtest 'the doctor tells times as other pages do' => sub {
    value($node, q{SELECT pulse.pause_queue('post/north');
        SELECT pulse.deregister_worker((pulse.register_worker('gone', '{left}')).id);
        SELECT pulse.add_job('left', run_at => now() - interval '2 minutes')});
    $browser->go('/doctor');
    like($browser->text, qr{Queue 'post/north' is paused by role \S+ since (?:now|\S+ \S+ ago), },
        'as a distance from now');
    like($browser->text, qr{'gone' served it until (?:now|\S+ \S+ ago)\.}, 'in advice, too');
    unlike($browser->text, qr/\d{4}-\d\d-\d\d/, 'and no other');
    value($node, q{SELECT pulse.resume_queue('post/north'); SELECT pulse.complete_jobs(ARRAY[id])
        FROM pulse.job WHERE identifier = 'left'});
};

subtest 'a list says nothing twice, and offers nothing in vain' => sub {
    value($node, q{SELECT pulse.set_task('paint', keep_completed => '1 h');
        SELECT pulse.complete_jobs(ARRAY[id]) FROM pulse.add_job('paint')});
    my $titles = 'return [...document.querySelectorAll(".jobs th")].map((th) => th.innerText)'
      . '.join(" ").trim()';
    $browser->go('/failed');
    is($browser->js($titles), 'job task state attempts ended last error',
        'jobs that have ended are due no more');
    $browser->go('/jobs?state=parked');
    is($browser->js($titles), 'job task state queue due', 'nor has an attempt been made of others');
    $browser->go('/jobs?state=completed&task=paint');
    is($browser->js('return document.querySelectorAll("main tbody tr").length'), 1, 'a job');
    is($browser->js('return document.querySelectorAll("main input[type=checkbox]").length'
              . ' - document.querySelectorAll(".filter input[type=checkbox]").length'), 0,
        'that no action changes cannot be chosen');
    my $id = value($node, q{SELECT id FROM pulse.add_job('paint', run_at => now() + '90 min')});
    $browser->go("/jobs/$id");
    like($browser->text, qr/It is due in 1 h/, 'a reason tells its time in a sentence');
};

subtest 'what stands above a list has room' => sub {
    $browser->go('/jobs');
    ok($browser->js('const tabs = document.querySelector(".tabs");'
              . 'return tabs.scrollWidth <= tabs.clientWidth'), 'each tab is seen');
    $browser->look_as(size => [ 390, 844 ]);
    $browser->go('/jobs');
    cmp_ok($browser->js('return document.querySelector(".bulk").offsetHeight'), '<=', 72,
        'on a phone the actions take two lines');
    # A fade tells that a menu goes on, and never lies over the entry that is marked.
    for my $path ('/', '/workers', '/doctor', '/jobs?state=expired') {
        $browser->go($path);
        is($browser->js(<<'JS'), '', "the marked entry of $path is seen");
          return [...document.querySelectorAll('nav')].map((menu) => {
            const entry = menu.querySelector('[aria-current]').getBoundingClientRect();
            const box = menu.getBoundingClientRect();
            const fade = (side) => parseInt(getComputedStyle(menu).getPropertyValue(side));
            const left = entry.left - box.left - fade('--fade-from');
            const right = box.right - entry.right - fade('--fade-to');
            return left < -1 || right < -1 ? `${menu.ariaLabel}: ${left} ${right}` : '';
          }).join('');
JS
    }
    $browser->look_as;
};

subtest 'a last row tells how many more there are' => sub {
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state)
        SELECT 'many ' || n, 'box ' || n, 'parked' FROM generate_series(1, 1100) AS n});
    wait_until($node, 'SELECT pulse_internal.has_depths()', 'commits count');
    for my $path ('/tasks', '/queues') {
        my $more = value($node, 'SELECT names, parked FROM pulse.stats(1000, '
              . ($path eq '/tasks' ? q{'task'} : q{'queue'}) . ') WHERE name IS NULL');
        my ($names, $parked) = split /[|]/, $more;
        $browser->go($path);
        my $last = $browser->js('const rows = document.querySelectorAll("main tbody tr");'
              . 'return rows[rows.length - 1].innerText.replace(/\s+/g, " ").trim()');
        like($last, qr/^$names more\b.*\b$parked\b/, "on $path, with their jobs");
        is($browser->js('const rows = document.querySelectorAll("main tbody tr");'
                  . 'return rows[rows.length - 1].querySelectorAll("a, summary").length'), 0,
            'and leads nowhere');
    }
    is(value($node, q{SELECT count(*) FROM pulse.stats(1000, 'queue') WHERE NOT oldest_is_known
        AND oldest_due_at IS NULL}), 901, 'the ages of a hundred queues are known');
    is($browser->js('return [...document.querySelectorAll("main tbody td")].filter('
              . '(cell) => cell.innerText.trim() === "?").length'), 901, 'and a cell says so');
    my $rows = rows_of($node, 'queues');
    is_deeply([ map { $_->{more} } grep { !defined $_->{name} } @$rows ],
        [ value($node, q{SELECT names || ' more' FROM pulse.stats(1000, 'queue')
            WHERE name IS NULL}) ], 'as pulse queues does');
    like(pulse($node, 'queues')->{out}, qr/^ +\d+ more .*\n\z/m, 'in its last line');
    value($node, q{DELETE FROM pulse.job WHERE identifier ~ '^many '});
};

subtest 'an operation says what it changed, and of how many jobs' => sub {
    my $run = sub {
        my ($id) = split /\n/, value($node, "SELECT id FROM pulse.$_[0]");
        value($node, "SELECT pulse.run_operation($id)");
        return $id;
    };
    value($node, q{SELECT pulse.add_job('sketch') FROM generate_series(1, 3)});
    my $id = $run->(q{start_operation('cancel', '{"task": "sketch"}', actor => 'ann')});
    $run->("undo_operation($id, 'bob')");
    value($node, q{SELECT pulse.note_operation('pause queue', '{"queue": "crm"}', 'ann')});
    my $rows = sub {
        $browser->go('/operations');
        return $browser->js(<<'JS');
          return [...document.querySelectorAll('main tbody tr')].slice(0, 3).map((row) =>
            ['action', 'of', 'changed', 'for'].map((title) =>
              row.querySelector(`[data-title="${title}"]`).innerText.trim()).join(' | '));
JS
    };
    my @said = ('pause queue | crm |  | ann', "undo | operation $id | 3 jobs | bob",
        'cancel | sketch | 3 jobs | ann');
    is_deeply($rows->(), \@said, 'by whom, also of what is no change of jobs');
    is($browser->js('return [...document.querySelectorAll("main th")].map((th) => th.innerText)'
              . '.join(" ")'), 'operation action of state changed undone by for started',
        'the page of one has the rest, so that nothing is cut');
    is($browser->js('return document.querySelector("[data-title=of] a").innerText'),
        "operation $id", 'an undo leads to what it took back');
    $browser->go("/operations/$id");
    like($browser->text, qr/^cancel of 3 jobs: sketch$/m, 'so does the page of one');
    $browser->look_as(size => [ 390, 844 ]);
    is_deeply($rows->(), \@said, 'on a phone, too');
    cmp_ok($browser->js('return document.querySelector("main tbody tr").offsetHeight'), '<', 64,
        'in two lines');
    $browser->look_as;
};

subtest 'a server tells itself from others' => sub {
    my $other = start_serve($node, options => [ '--title', 'production', '--colour', 'red' ]);
    $browser->{base} = $other->{url};
    $browser->go('/queues');
    like($browser->text, qr/^production$/m, 'by its title');
    is($browser->title, 'production · Queues · pulse', 'which the window has, too');
    is($browser->js('return getComputedStyle(document.body).borderTopColor'), 'rgb(179, 32, 43)',
        'and by the colour of its edge');
    for my $refused ([ '--colour', 'pink' ], [ '--title', 'x' x 25 ]) {
        is(pulse($node, 'serve', '--listen', '127.0.0.1:0', @$refused)->{status}, 64,
            "@$refused is refused");
    }
};

is_deeply([ $browser->notice ], [], 'no dialog, no error, and nothing that the policy forbids');
$browser->stop;
done_testing();
