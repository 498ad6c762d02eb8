# Texts that the owner of the tables stored, past every check, do nothing on a page: no dialog, no
# script, nothing that its policy had to stop, and no page that breaks. PULSE_HOSTILE=1 opens the
# page of every job.
use strict;
use warnings FATAL => 'all';
use utf8;

use Test::More;

use Pulse::Browser;
use Pulse::Serve;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE an_operator LOGIN; SELECT pulse.grant_operator('an_operator')});

# What a page, a script, a style, an address, a stream of events or a terminal acts on.
my @scripts = (
    '<script>alert(1)</script>', '"><script>alert(1)</script>', q{'><img src=x onerror=alert(1)>},
    '<svg onload=alert(1)>', '<iframe src=javascript:alert(1)>', 'javascript:alert(1)',
    '</td></tr></table><script>alert(1)</script>', '</title><script>alert(1)</script>',
    '</textarea><script>alert(1)</script>', '<!--', '-->', '<![CDATA[', ']]>',
        '<a href=//evil.example>x</a>',
    '" onmouseover="alert(1)" x="', q{' onfocus='alert(1)' autofocus='}, '<body onload=alert(1)>',
    '<base href=//evil.example/>', '<meta http-equiv=refresh content=0;url=//evil.example>',
    '<link rel=stylesheet href=//evil.example/x.css>', '<style>*{display:none}</style>',
    '<form action=//evil.example><input name=token>', '<math><mi xlink:href="javascript:alert(1)">',
    '<details open ontoggle=alert(1)>', '&lt;script&gt;', '&#60;script&#62;', '&amp;', '&', '<',
        '>',
    '"', q{'}, '`', '{{7*7}}', '${7*7}', '<%= 7 %>', "\\u003cscript\\u003e", '%3Cscript%3E',
        '//evil.example',
    '/\\evil.example', '../../etc/passwd', "data: x\n\ndata: <script>alert(1)</script>",
        "event: error\ndata: x",
    "\r\nSet-Cookie: a=b", "a\r\n\r\n<script>alert(1)</script>", '#main', '?csrf=1', 'new', '-1',
        '0',
    "'; DROP TABLE pulse.job; --", "\x{1b}[2J\x{1b}[H", "\x{1b}]0;title\x{07}", "\x{9b}2J",
        "\x{202e}gnp.exe",
    "\x{2028}alert(1)", "\x{feff}x", "\x{fffe}", "\x{10ffff}", ' ', "\n\n", "\t", 'x' x 2000,
    "\x{65e5}\x{672c}\x{8a9e}" x 100, "\x{1f469}\x{200d}\x{1f4bb}", "Z\x{334}\x{322}a",
        "+ADw-script+AD4-",
    "<scr\x{01}ipt>alert(1)</scr\x{01}ipt>", "<img src=x\x{0c}onerror=alert(1)>");
my @characters = map { 'a' . chr($_) . 'b' } 0x01 .. 0x1f, 0x7f .. 0x9f, 0xad, 0x34f, 0x61c, 0x115f,
  0x200b .. 0x200f, 0x2028 .. 0x202e, 0x2060 .. 0x206f, 0xfff9 .. 0xfffd, 0xe000,
      0xe0001 .. 0xe0007;
my @texts = (@scripts, @characters, map { "$_ and $_" } @scripts[0 .. 39]);
cmp_ok(scalar @texts, '>=', 200, 'there are at least 200 texts');

sub quoted { my ($text) = @_; $text =~ s/'/''/g; return "'$text'" }
my $values = join ",\n", map { '(' . ($_ + 1) . ', ' . quoted($texts[$_]) . ')' } 0 .. $#texts;
utf8::encode($values);
value($node, "CREATE TABLE text_of (n int, t text); INSERT INTO text_of VALUES $values");
value($node, q{
    INSERT INTO pulse.job (id, identifier, queue_name, job_key, payload, last_error, state, run_at)
      SELECT 1000 + n, t, t, t || n, to_json(t), t, 'parked', now() + interval '1 day' FROM text_of;
    INSERT INTO pulse.finished_job (id, identifier, queue_name, payload, priority, run_at, state,
        attempts, max_attempts, crashes, last_error, revision, created_at, finished_at)
      SELECT 2000 + n, t, t, to_json(t), 0, now(), 'failed', 1, 1, 0, t, 0, now(),
          now() FROM text_of;
    INSERT INTO pulse.attempt (job_id, token, attempt, claimed_at, ended_at, outcome, error)
      SELECT 2000 + n, n, 1, now(), now(), t, t FROM text_of;
    INSERT INTO pulse.queue (queue_name, concurrency, paused, created_at, updated_at)
      SELECT DISTINCT t, 1, true, now(), now() FROM text_of ON CONFLICT DO NOTHING;
    INSERT INTO pulse.worker (id, name, hostname, heartbeat_interval, sweep_threshold, started_at,
        state, ended_at, reason, tasks, info)
      SELECT 5000 + n, t, t, '1s', '5s', now(), 'lost', now(), t, ARRAY[t], json_build_object(
        'version', t) FROM text_of;
    INSERT INTO pulse.operation (action, filter, arguments, actor, role, state, last_id, created_at,
        updated_at)
      SELECT t, json_build_object('queue', t), '{}', t, t, 'done', 0, now(), now() FROM text_of;
    INSERT INTO pulse.flow (id, name) SELECT 3000 + n, t FROM text_of;
    INSERT INTO pulse.flow_job (job_id, flow_id, key) SELECT 1000 + n, 3000 + n / 20,
        t FROM text_of;
    SELECT setval('pulse.job_id_seq', 9000)});

my $serve = start_serve($node, tokens => { keeper => 'an_operator' });
my $browser = Pulse::Browser->start(base => $serve->{url});
$browser->go('/login');
$browser->fill('token', $serve->{secret}{keeper});
$browser->click('Sign in', 'main');
$browser->wait_for_path(qr{^/$});

# Elements that only this program's sources name, and none that leads elsewhere.
my $foreign = <<'JS';
  const known = new Set(`html head meta link title script body a header nav ul ol li span div p
    main h1 h2 h3 svg path rect text figure figcaption b table thead tbody tr th td time form input
    button label fieldset legend details summary section dl dt dd pre progress em code article`
    .split(/\s+/));
  const odd = [...document.querySelectorAll('*')].filter((e) => !known.has(e.localName)
    || [...e.attributes].some((a) => a.name.startsWith('on') || a.name === 'style')
    || (e.href && typeof e.href === 'string' && new URL(e.href).origin !== location.origin));
  return odd.map((e) => e.outerHTML.slice(0, 100));
JS

sub is_inert {
    my ($path) = @_;
    $browser->go($path);
    my @odd = @{ $browser->js($foreign) };
    # The pages have one script and one style, both of their own.
    push @odd, 'scripts' if $browser->js('return document.scripts.length') != 1;
    push @odd, $browser->title if $browser->title !~ / \x{b7} pulse\z/;
    is_deeply(\@odd, [], "$path is as it was built");
    return;
}

is_inert($_) for '/', '/tasks', '/queues', '/workers', '/operations', '/flows', '/running',
    '/doctor';
for my $list ('/jobs', '/failed') {
    my $path = $list;
    for (my $page = 0; defined $path; ++$page) {
        is_inert($path);
        $path = $browser->js('const e = [...document.querySelectorAll(".more a")][0];'
              . ' return e ? e.getAttribute("href") : null');
        last if $page > 20;
    }
}
my $every = $ENV{PULSE_HOSTILE} ? 1 : 25;
for my $n (grep { $_ % $every == 0 } 1 .. @texts) {
    is_inert('/jobs/' . (1000 + $n));
    is_inert('/jobs/' . (2000 + $n));
}
is_inert("/flows/$_") for 3000 .. 3000 + ($ENV{PULSE_HOSTILE} ? @texts / 20 : 3);
is_inert('/jobs?task=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E&key=%3C&error=%27');
is_inert("/$_?name=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E") for qw(task queue);
is_inert('/queues/pause?queue=%3Cscript%3Ealert(1)%3C%2Fscript%3E');
is_inert('/operations/new?action=retry&task=%3Cscript%3Ealert(1)%3C%2Fscript%3E');

# What a link of a list leads to is what it names: the text itself, and no other.
$browser->go('/queues/resume?queue=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E');
$browser->click('Resume', '.question');
$browser->wait_for_path(qr{^/queues$});
is(value($node, q{SELECT string_agg(queue_name, ' ') FROM pulse.queue_settings
    WHERE NOT paused}),
    '"><script>alert(1)</script>', 'a hostile name is resumed, and nothing else');

is_deeply([ $browser->notice ], [], 'no dialog, no error, and nothing that the policy forbids');
$browser->stop;
done_testing();
