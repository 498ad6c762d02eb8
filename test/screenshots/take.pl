# The pictures of docs/console.md: pages of `pulse serve` in light, in the dark and at the width of
# a phone, and `pulse top`. `make screenshots` runs it.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Browser;
use Pulse::Lines;
use Pulse::Serve;
use Pulse::Server;

my $folder = $PostgreSQL::Test::Utils::tmp_check;
srand 7;

my $node = start_server('pictures', settings => \%PATIENT);
value($node, q{CREATE ROLE an_operator LOGIN; SELECT pulse.grant_operator('an_operator')});

# A shop in the evening: an hour of work, minute by minute, with what goes wrong in between.
my %task = (
    send_mail => { rate => 46, run => 40, fails => 0.01 },
    resize_image => { rate => 22, run => 650, fails => 0.02 },
    charge_card => { rate => 12, run => 900, fails => 0.05 },
    build_report => { rate => 4, run => 4200, fails => 0.03 },
    sync_crm => { rate => 9, run => 1600, fails => 0.12 },
);
value($node, q{
    SELECT pulse.set_queue('mail', total => 20); SELECT pulse.set_queue('mail/*', concurrency => 2);
    SELECT pulse.set_queue('mail/acme', concurrency => 4);
    SELECT pulse.set_queue('stripe', concurrency => 5, rate => 100, per => '1 min');
    SELECT pulse.set_queue('crm', concurrency => 2);
    SELECT pulse.pause_queue('crm');
    SELECT pulse.schedule('nightly report', 'build_report', cron => '0 3 * * *',
        time_zone => 'Europe/Berlin');
    SELECT pulse.schedule('billing', 'charge_card', cron => '*/15 * * * *');
    SELECT pulse.schedule('heartbeat of the shop', 'send_mail', every => '10 min')});
my %worker;
for my $name (qw(web-1 web-2 batch-1)) {
    $worker{$name} = value($node, "SELECT id FROM pulse.register_worker('$name', NULL, info =>
        '{\"slots\": 8, \"version\": \"0.2.0\"}')");
}

# What the server counted in that hour, and the jobs that failed in it.
sub histogram {
    my ($jobs, $milliseconds) = @_;
    my $middle = int(4 * log($milliseconds) / log 2);
    my @counts = (0) x 80;
    $counts[$middle + int(3 * (rand() + rand() + rand() - 1.5))]++ for 1 .. $jobs;
    return '{' . join(',', @counts) . '}';
}
my @counted;
for my $minute (reverse 1 .. 60) {
    my $wave = 1 + 0.4 * sin($minute / 9) + ($minute > 21 && $minute < 27 ? 1.3 : 0);
    for my $name (sort keys %task) {
        my $jobs = int($task{$name}{rate} * $wave * (0.9 + rand 0.2)) || 1;
        my $failed = int($jobs * $task{$name}{fails} + rand 0.6);
        my $retried = int($failed * 1.5 + rand 2);
        push @counted, sprintf(q{('minute', 'task', date_bin('1 minute', now(),
            '2000-01-01 00:00Z')}
              . q{ - interval '%d min', '%s', %d, %d, %d, %d, 0, 0, 0, '%s', '%s')},
            $minute, $name, $jobs, $jobs - $failed - $retried, $failed, $retried,
            histogram($jobs, 8 * $wave ** 3), histogram($jobs,
                $task{$name}{run} * (0.9 + 0.2 * $wave)));
    }
}
value($node, 'INSERT INTO pulse.counter (span, kind, began, name, started, completed,
    failed, retried,'
      . ' quarantined, cancelled, returned, waits, runs) VALUES ' . join ', ', @counted);
value($node, q{SELECT pulse.add_job(t, '{"order": 7021}', max_attempts => 1)
    FROM unnest('{charge_card,sync_crm,send_mail}'::text[]) AS t, generate_series(1, 9)});
value($node, qq{WITH c AS (SELECT array_agg(id) AS ids, array_agg(token) AS tokens,
        array_agg(CASE identifier WHEN 'charge_card' THEN 'CardDeclined: the bank refused 4242 (51)'
          WHEN 'sync_crm' THEN 'Timeout: crm.example.org did not answer within 10 s'
          ELSE 'SMTP 450: the mailbox is busy' END) AS errors
      FROM pulse.claim($worker{'web-1'}, 27))
    SELECT count(*) FROM c, pulse.fail_many(c.ids, c.tokens, c.errors,
        array_fill(false, ARRAY[27]))});
value($node, q{UPDATE pulse.finished_job SET finished_at = now() - (id * 97 % 3500) * interval
    '1 s',
    created_at = created_at - interval '1 h'});

# What is there now: jobs that run, wait, are due later, and a flow in the middle of its work.
value($node, q{
    SELECT pulse.add_job('send_mail', queue_name => 'mail/' || t,
        payload => '{"to": "ada@example.org"}')
      FROM unnest('{acme,globex,initech}'::text[]) AS t, generate_series(1, 14);
    SELECT pulse.add_job('sync_crm', queue_name => 'crm') FROM generate_series(1, 9);
    SELECT pulse.add_job('charge_card', queue_name => 'stripe') FROM generate_series(1, 12);
    SELECT pulse.add_job('build_report',
        run_at => now() + i * interval '7 min') FROM generate_series(1, 5) AS i;
    SELECT pulse.add_job('resize_image') FROM generate_series(1, 26);
    SELECT pulse.add_job('transcode_video') FROM generate_series(1, 3)});
my $flow = value($node, q{SELECT max(flow_id) FROM pulse.add_flow('[
    {"key": "fetch orders", "identifier": "fetch"}, {"key": "fetch rates", "identifier": "fetch"},
    {"key": "convert", "identifier": "convert", "after": ["fetch orders", "fetch rates"]},
    {"key": "chart", "identifier": "draw", "after": ["convert"]},
    {"key": "tables", "identifier": "draw", "after": ["convert"]},
    {"key": "check", "identifier": "check", "after": ["convert"]},
    {"key": "pdf", "identifier": "print", "after": ["chart", "tables"]},
    {"key": "send", "identifier": "send_mail", "after": ["pdf", "check"]}]', 'monthly report')});
value($node, "WITH c AS (SELECT array_agg(id) AS ids, array_agg(token) AS tokens
    FROM pulse.claim($worker{'batch-1'}, 2, '{fetch}')) SELECT pulse.complete_many(ids,
        tokens) FROM c");
value($node, "SELECT pulse.claim($worker{'batch-1'}, 1, '{convert}')");
value($node, "SELECT pulse.claim($worker{'batch-1'}, 4, '{resize_image}')");
value($node, "SELECT pulse.claim($worker{'web-1'}, 6, '{send_mail}')");
value($node, "SELECT pulse.claim($worker{'web-2'}, 3, '{charge_card}')");
value($node, q{SELECT pulse.progress(j.id, j.token, 'resizing ' || (j.id % 7) || ' of 9',
    0.15 + (j.id % 7) * 0.11)
    FROM pulse.job AS j WHERE j.state = 'running' AND j.identifier IN ('resize_image', 'convert')});

# A job with a history: lost with its worker, failed, and waiting for another try.
my $gone = value($node, q{SELECT id FROM pulse.register_worker('batch-0', NULL)});
my $job = value($node, q{SELECT id FROM pulse.add_job('sync_crm', '{"customer": 4711,
    "fields": ["name", "plan"]}',
    job_key => 'customer 4711')});
value($node, "SELECT pulse.claim_job($gone, $job)");
value($node, "SELECT pulse.declare_lost($gone, 'its host is gone')");
for my $error ('Timeout: crm.example.org did not answer within 10 s', 'HTTP 429: slow down') {
    value($node, "UPDATE pulse.job SET run_at = now() WHERE id = $job");
    value($node, "SELECT pulse.fail((c.job).id, (c.job).token,
        '$error') FROM pulse.claim_job($worker{'batch-1'}, $job) AS c");
}
value($node, "UPDATE pulse.job SET created_at = now() - interval '2 min' WHERE id = $job");
value($node, qq{UPDATE pulse.attempt AS a
    SET claimed_at = now() - t.began * interval '1 s', ended_at = now() - t.ended * interval '1 s'
    FROM (VALUES (1, 96, 71), (2, 60, 50), (3, 22, 20)) AS t (attempt, began, ended)
    WHERE a.job_id = $job AND a.attempt = t.attempt});

# Changes of an evening: one has ended, one was undone, one goes on.
my $retried = value($node, q{SELECT id FROM pulse.start_operation('retry',
    '{"error": "SMTP 450: the mailbox is busy"}', actor => 'ada')});
value($node, "SELECT pulse.run_operation($retried)");
my $delayed = value($node, q{SELECT id FROM pulse.start_operation('reschedule',
    '{"states": ["ready", "parked"], "queue": "crm"}', '{"run_at": "tomorrow 06:00"}',
    actor => 'ada')});
value($node, "SELECT pulse.run_operation($delayed)");
my $undo = value($node, "SELECT id FROM pulse.undo_operation($delayed, actor => 'grace')");
value($node, "SELECT pulse.run_operation($undo)");
my $cancelled = value($node, q{SELECT id FROM pulse.start_operation('cancel',
    '{"states": ["ready", "parked"], "task": "send_mail"}', '{"reason": "sent twice"}',
    actor => 'grace')});
value($node, "SELECT pulse.run_operation($cancelled, 10)");

my $serve = start_serve($node, tokens => { ada => 'an_operator' });

# The server of the pages has been looked at for ten minutes.
my $http = HTTP::Tiny->new(default_headers => { Authorization => "Bearer $serve->{secret}{ada}" });
for my $step (reverse 0 .. 58) {
    set($node, 'pulse.clock_offset' => -10 * $step . 's');
    value($node, 'SELECT pulse.add_job(\'resize_image\') FROM generate_series(1, '
          . int(rand(9) + 5 * sin($step / 6)) . ')');
    value($node, "WITH c AS (SELECT array_agg(id) AS ids, array_agg(token) AS tokens
        FROM pulse.claim($worker{'batch-1'}, " . int(1 + rand 6) . ", '{resize_image}'))
        SELECT pulse.complete_many(ids, tokens) FROM c WHERE ids IS NOT NULL");
    my $seen = $http->get("$serve->{url}/");
    $seen->{success} or die "$seen->{status} $seen->{content}";
}
my $browser = Pulse::Browser->start(base => $serve->{url});
$browser->go('/login');
$browser->fill('token', $serve->{secret}{ada});
$browser->click('Sign in', 'main');
$browser->wait_for_path(qr{^/$});

sub write_picture {
    my ($name, $png) = @_;
    open my $out, '>:raw', "$folder/$name.png" or die "$folder/$name.png: $!";
    print {$out} $png;
    close $out or die "$name: $!";
    cmp_ok(-s "$folder/$name.png", '>', 5_000, "$name is taken");
    return;
}

sub take {
    my ($name, $path, $expected, %look) = @_;
    $browser->look_as(%look);
    $browser->go($path);
    $browser->wait_for($expected);
    write_picture($name, $browser->picture);
    return;
}

my @wide = (size => [ 1280, 860 ]);
my @phone = (size => [ 390, 844 ], scale => 2);
take('page-overview', '/', qr/Busiest/, @wide);
take('page-overview-dark', '/', qr/Busiest/, @wide, scheme => 'dark');
take('page-overview-phone', '/', qr/Busiest/, @phone);
take('page-failed', '/failed', qr/CardDeclined/, @wide);
take('page-failed-phone', '/failed', qr/CardDeclined/, @phone, scheme => 'dark');
take('page-job', "/jobs/$job", qr/Attempts/, @wide);
take('page-flow', "/flows/$flow", qr/pdf/, @wide, scheme => 'dark');
take('page-queues', '/queues', qr/acme/, @wide);
take('page-operations', '/operations', qr/reschedule/, size => [ 1280, 520 ]);
take('page-task', '/task?name=send_mail', qr/by duration/, @wide);
for my $more (split ' ', $ENV{PULSE_MORE_PICTURES} // '') {
    (my $name = "more$more") =~ s{\W}{-}g;
    take($name, $more, qr/./, @wide);
    take("$name-dark", $more, qr/./, @wide, scheme => 'dark');
    take("$name-phone", $more, qr/./, @phone);
}

# Four nodes with work of their own, one of which is away.
sub node_with {
    my ($name, %jobs) = @_;
    value($node, "CREATE DATABASE $name");
    value($node, "CREATE EXTENSION pg_pulse; SELECT pulse.grant_operator('an_operator')", $name);
    value($node, "SELECT id FROM pulse.register_worker('web-$_', NULL)", $name)
      for 1 .. $jobs{workers};
    value($node, "SELECT pulse.add_job('$_', run_at => now() - interval '8 s')
        FROM generate_series(1, $jobs{$_})", $name) for grep { $_ ne 'workers' } sort keys %jobs;
    return;
}
node_with('eu', send_mail => 61, charge_card => 8, workers => 3);
node_with('us', send_mail => 17, workers => 2);
my $at = 'host=' . $node->host . ' port=' . $node->port;
my $nodes = start_serve($node, tokens => { ada => 'an_operator' }, databases => [
    '-d', "shop=$at dbname=postgres", '-d', "eu=$at dbname=eu", '-d', "us=$at dbname=us",
    '-d', 'asia=host=127.0.0.1 port=1 dbname=shop' ]);
$browser->{base} = $nodes->{url};
$browser->go('/login');
$browser->fill('token', $nodes->{secret}{ada});
$browser->click('Sign in', 'main');
$browser->wait_for_path(qr{^/$});
take('page-nodes', '/', qr/cannot be reached/, size => [ 1280, 520 ]);
take('page-nodes-dark', '/', qr/cannot be reached/, size => [ 1280, 520 ], scheme => 'dark');
take('page-nodes-phone', '/', qr/cannot be reached/, @phone);
take('page-nodes-jobs', '/n/eu/jobs', qr/send_mail/, @wide);
take('page-nodes-jobs-phone', '/n/eu/jobs', qr/send_mail/, @phone);

# The screen of a terminal as a page: its colours are those of the page in the dark.
my %css = (1 => 'font-weight:600', 2 => 'color:#7d888c', 31 => 'color:#f2777e',
    32 => 'color:#55c681',
    33 => 'color:#e2b04f', 36 => 'color:#5fc9d8', 7 => 'background:#2b3a3d', 0 => '', 39 => '',
        49 => '');

sub html_of {
    my ($screen) = @_;
    my ($html, %on) = ('');
    for my $piece (split /(\e\[[\d;]*m)/, $screen) {
        if ($piece =~ /^\e\[([\d;]*)m$/) {
            for my $code (split /;/, $1 eq '' ? '0' : $1) {
                if ($code == 0) { %on = () }
                elsif ($code == 39) { delete @on{grep { $_ > 29 } keys %on} }
                elsif (exists $css{$code}) { $on{$code} = 1 }
            }
            next;
        }
        $piece =~ s/[\x0e\x0f]//g;
        $piece =~ s/([&<>])/'&#' . ord($1) . ';'/ge;
        $html .= '<span style="' . join(';', map { $css{$_} } sort keys %on) . "\">$piece</span>";
    }
    return '<!doctype html><meta charset=utf-8>'
      . "<body style='margin:0;background:#101314;color:#d5dbdb;"
      . "padding:18px 20px'><pre style='margin:0;font:13px/1.38 monospace'>$html</pre>";
}

sub tmux {
    my ($out) = run_command([ 'tmux', '-f', '/dev/null', '-S',
        "$PostgreSQL::Test::Utils::tmp_check/tmux", @_ ]);
    return $out;
}
local $ENV{TERM} = 'xterm-256color';
delete local $ENV{NO_COLOR};
tmux('new-session', '-d', '-x', '124', '-y', '24',
    "pulse top -d 'host=" . $node->host . ' port=' . $node->port . " dbname=postgres'");
END { local $?; tmux('kill-server') if -e "$PostgreSQL::Test::Utils::tmp_check/tmux" }
my $screen = '';
my $end = time + 60;
while ($screen !~ /\[4 running\].*#/s && time < $end) {
    Pulse::Lines::pause();
    tmux('send-keys', '4') if $screen =~ /\[1 tasks\]/;
    $screen = tmux('capture-pane', '-p', '-e');
}
my $page = "$PostgreSQL::Test::Utils::tmp_check/top.html";
open my $out, '>', $page or die $!;
print {$out} html_of($screen);
close $out;
$browser->look_as(size => [ 1012, 470 ]);
$browser->{base} = '';
$browser->go("file://$page");
write_picture('top', $browser->picture);
$browser->stop;
done_testing();
