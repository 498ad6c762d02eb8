# The pages behind nginx and Caddy, as docs/recipes/proxy.md has them: with TLS and a path prefix,
# every page, a change of each kind, what is live, and a server that starts again in between. The
# visitor comes by a link, and stays signed in.
use strict;
use warnings FATAL => 'all';
use utf8;

use IPC::Run ();
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Cluster ();
use Pulse::Browser;
use Pulse::ReverseProxy;
use Pulse::Serve;
use Pulse::Server;

plan skip_all => 'no nginx or no caddy here: make packages FOR=test' if !has_proxies();

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE ROLE an_operator LOGIN; SELECT pulse.grant_operator('an_operator');
    SELECT pulse.grant_scheduler('an_operator')});

# Jobs of each kind, a worker, a queue, a schedule and a flow, all of this name.
sub fill {
    my ($name) = @_;
    my %made;
    $made{worker} = value($node,
        "SELECT id FROM pulse.register_worker('worker of $name', '{ink_$name}')");
    value($node, "SELECT pulse.add_job('ink_$name', max_attempts => 1) FROM generate_series(1, 2)");
    value($node, "SELECT pulse.fail(id, token, 'no ink', false)
        FROM pulse.claim($made{worker}, 2)");
    $made{failed} = value($node,
        "SELECT min(id) FROM pulse.finished_job WHERE identifier = 'ink_$name'");
    value($node, "SELECT pulse.add_job('letter_$name', queue_name => 'post/$name')
        FROM generate_series(1, 4)");
    ($made{first}, $made{second}, $made{third}) = split /\n/, value($node,
        "SELECT id FROM pulse.job WHERE identifier = 'letter_$name' ORDER BY id LIMIT 3");
    value($node, "SELECT pulse.schedule('nightly_$name', 'sweep_floor', cron => '0 3 * * *')");
    $made{flow} = value($node, qq{SELECT max(flow_id) FROM pulse.add_flow('[
        {"key": "left", "identifier": "page"}, {"key": "book", "identifier": "bind",
        "after": ["left"]}]', 'book of $name')});
    return \%made;
}

my $browser = Pulse::Browser->start(hosts => [qw(ops.example.com chat.example.net)]);

# Each address that a page names.
my $addresses = <<'JS';
  return [...document.querySelectorAll('a, form, link, script, img, [data-live]')].map((e) =>
    e.dataset.live || e.getAttribute('href') || e.getAttribute('action') || e.getAttribute('src'))
    .filter((address) => address && !address.startsWith('#'));
JS

sub page_is_within {
    my ($prefix, $path, $expected) = @_;
    $browser->go($path);
    like($browser->wait_for($expected), $expected, $path);
    my @elsewhere = grep { !m{^\Q$prefix\E/} } @{ $browser->js($addresses) };
    is_deeply(\@elsewhere, [], "$path leads nowhere but below '$prefix/'");
    return;
}

# What a question agrees to, whatever the words.
sub agree {
    $browser->js('const form = document.querySelector("main form[method=post]");'
          . 'if (form.elements.priority) form.elements.priority.value = "1";'
          . 'form.querySelector("button[type=submit]").click()');
    return;
}

sub record {
    return value($node, q{SELECT concat_ws(' ', action, subject) FROM pulse.operations
        ORDER BY id DESC LIMIT 1});
}

sub changes {
    my ($name, $made) = @_;
    my $to = sub { "/$_[0]?$_[1]=$_[2]" };
    my @by_name = (
        [ $to->('queues/pause', queue => "post/$name"), qr/^pause queue .*$name/ ],
        [ $to->('queues/resume', queue => "post/$name"), qr/^resume queue .*$name/ ],
        [ $to->('queues/limit', queue => "post/$name"), qr/^limit queue .*$name/ ],
        [ $to->('queues/unset', queue => "post/$name"), qr/settings away from queue .*$name/ ],
        [ $to->('schedules/run', schedule => "nightly_$name"), qr/^run schedule .*$name/ ],
        [ $to->('schedules/pause', schedule => "nightly_$name"), qr/^pause schedule .*$name/ ],
        [ $to->('schedules/resume', schedule => "nightly_$name"), qr/^resume schedule .*$name/ ],
        [ $to->('workers/drain', worker => $made->{worker}), qr/^drain worker .*$made->{worker}/ ],
        [ $to->('workers/stop', worker => $made->{worker}), qr/^stop worker .*$made->{worker}/ ],
        [ $to->('flows/cancel', flow => $made->{flow}), qr/^cancel flow .*$made->{flow}/ ]);
    my @jobs = map { [ "/operations/new?action=$_->[0]&id=$_->[1]", qr/^$_->[0]/ ] } (
        [ retry => $made->{failed} ], [ cancel => $made->{first} ], [ fail => $made->{second} ],
        [ reschedule => $made->{third} ]);
    return (@by_name, @jobs);
}

# A path of the page when its form has been sent.
sub wait_for_end_of_form {
    my ($prefix) = @_;
    my $done = qr{^\Q$prefix\E/(?:queues|schedules|workers|flows|operations/\d+)$};
    return like($browser->wait_for_path($done), $done, 'the way on is below the prefix');
}

sub asks_for_token {
    return $browser->wait_for_js('return document.getElementsByName("token").length === 1');
}

my $chat_port;

# All that a visitor does, behind one proxy. `base`: https://HOST:PORT/PREFIX.
sub visit {
    my ($name, $base, $prefix, $serve) = @_;
    my $made = fill($name);
    $browser->{base} = $base;

    # The link of a chat, before and after the sign-in.
    my $wanted = "/jobs?task=letter_$name&state=parked";
    my $link = sub {
        $browser->go("https://chat.example.net:$chat_port/");
        $browser->js('document.links[0].href = arguments[0]', $base . $wanted);
        $browser->click('look', 'a');
        return;
    };
    $link->();
    ok(asks_for_token(), 'who is not signed in is asked for a token');
    $browser->fill('token', 'mistyped');
    $browser->press('Enter');
    like($browser->wait_for(qr/not known/), qr/not known/, 'one that is mistyped is refused');
    $browser->fill('token', $serve->{secret}{keeper});
    $browser->press('Enter');
    is($browser->wait_for_path(qr{/jobs}), $prefix . $wanted, 'and the link is not lost by it');
    $link->();
    is($browser->wait_for_path(qr{/jobs}), $prefix . $wanted, 'the same link leads there at once');
    like($browser->wait_for(qr/post\/$name/), qr/post\/$name/, 'which has the jobs');
    my ($cookie) = grep { $_->{name} =~ /pulse/ } @{ $browser->cookies };
    like($cookie->{name}, qr/^__Host-pulse-[0-9a-f]{16}$/, 'the cookie is of this host alone');
    is_deeply([ @$cookie{qw(secure httpOnly sameSite path)} ],
        [ JSON::PP::true, JSON::PP::true, 'Lax', '/' ], 'over TLS, and for no script');
    cmp_ok($browser->js('return document.styleSheets[0].cssRules.length'), '>', 20,
        'the style has come');

    stop_serve($serve);
    serve_again($serve);
    for my $page (
        [ '/', qr/Overview/ ], [ '/jobs', qr/letter_$name/ ], [ '/failed', qr/ink_$name/ ],
        [ '/running', qr/Running/ ], [ '/queues', qr/\b$name\b/ ], [ '/tasks', qr/letter_$name/ ],
        [ "/task?name=ink_$name", qr/Task ink_$name/ ],
        [ "/queue?name=post/$name", qr/Queue post/ ],
        [ '/workers', qr/worker of $name/ ], [ "/workers/$made->{worker}", qr/Its tasks/ ],
        [ '/schedules', qr/nightly_$name/ ],
        [ "/schedule?name=nightly_$name", qr/Next runs/ ], [ '/flows', qr/book of $name/ ],
        [ "/flows/$made->{flow}", qr/left.*book/s ], [ '/operations', qr/Operations/ ],
        [ '/doctor', qr/Doctor/ ], [ "/jobs/$made->{failed}", qr/no ink/ ],
        [ '/nowhere', qr/Not found/i ], [ '/login', qr/Sign in/ ]) {
        page_is_within($prefix, @$page);
    }

    # A form that was loaded before the server started again counts after it.
    for my $change (changes($name, $made)) {
        my ($path, $recorded) = @$change;
        page_is_within($prefix, $path, qr/./);
        if ($path =~ m{^/queues/resume}) { stop_serve($serve); serve_again($serve) }
        agree();
        wait_for_end_of_form($prefix);
        like(record(), $recorded, $path);
    }
    my $last = value($node, 'SELECT max(id) FROM pulse.operations');
    page_is_within($prefix, "/operations/$last/undo", qr/Undo/);
    agree();
    wait_for_end_of_form($prefix);
    like(record(), qr/^undo/, 'the last one is taken back');
    page_is_within($prefix, '/operations', qr/keeper/);

    my $follows = sub {
        my ($path, $statement, $expected) = @_;
        $browser->go($path);
        my $began = time;
        value($node, $statement);
        like($browser->wait_for($expected), $expected, "$path follows by itself");
        note sprintf '%s behind %s: %.2f s', $path, $name, time - $began;
    };
    $follows->('/tasks', "SELECT pulse.add_job('listed_$name')", qr/listed_$name/);
    $follows->("/jobs/$made->{third}", "SELECT pulse.cancel_job($made->{third})", qr/cancelled/);
    $browser->go('/tasks');
    stop_serve($serve);
    like($browser->wait_for(qr/does not answer/), qr/does not answer/, 'it says who is away');
    serve_again($serve);
    value($node, "SELECT pulse.add_job('afterwards_$name')");
    like($browser->wait_for(qr/afterwards_$name/), qr/afterwards_$name/, 'and goes on by itself');

    $browser->js('document.querySelector("header form button").click()');
    ok(asks_for_token(), 'who signs out is out');
    is_deeply([ grep { $_->{name} =~ /pulse/ } @{ $browser->cookies } ], [], 'without a cookie');
    return;
}

# The server listens before the proxy's port is known, so its own is chosen first.
sub serve_for {
    my ($port, $origin) = @_;
    return start_serve($node, port => $port, tokens => { keeper => 'an_operator' },
        options => $origin ? [ '--origin', $origin ] : []);
}

my $nginx = recipe('nginx.conf');
# The prefix is taken away here, and the answers are packed.
my $stripping = $nginx =~ s{(proxy_pass \S+?);}{$1/;}r
  =~ s{(location /queue/ \{)}{gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; $1}r;
my $changed_host = $nginx =~ s{(proxy_set_header X-F)}{proxy_set_header Host \$host; $1}r
  =~ s{/queue/}{/}r;
my $chat = <<'CONF';
server {
    listen 443 ssl; server_name chat.example.net;
    ssl_certificate /etc/ssl/certs/ops.pem; ssl_certificate_key /etc/ssl/private/ops.key;
    location / { return 200 '<!doctype html><a href="/">look</a>'; }
}
CONF
my %upstream = map { ($_ => PostgreSQL::Test::Cluster::get_free_port()) }
  qw(nginx stripping caddy wrong signed);
my ($port, $stripping_port, $wrong_port);
($port, $stripping_port, $wrong_port, $chat_port) = start_nginx([ $nginx, $upstream{nginx} ],
    [ $stripping, $upstream{stripping} ], [ $changed_host, $upstream{wrong} ], [ $chat, 1 ]);
my $caddy_port = start_caddy(recipe('Caddyfile'), $upstream{caddy});

for my $proxy ([ nginx => $port ], [ caddy => $caddy_port ], [ stripping => $stripping_port ]) {
    my ($name, $at) = @$proxy;
    my $base = "https://ops.example.com:$at/queue";
    subtest "a visitor behind $name" =>
      sub { visit($name, $base, '/queue', serve_for($upstream{$name}, $base)) };
}

# The status and the text of an answer.
sub ask {
    my ($at, $path, @more) = @_;
    my $out = '';
    IPC::Run::run([ 'curl', '-sk', '-w', '\n%{http_code}', '--resolve',
            "ops.example.com:$at:127.0.0.1", @more, "https://ops.example.com:$at$path" ],
        '>', \$out);
    my ($text, $status) = $out =~ /\A(.*)\n(\d+)\z/s;
    return ($status, $text);
}

subtest 'what a wrong proxy says' => sub {
    my $serve = serve_for($upstream{wrong});
    my @form = ('-H', "Origin: https://ops.example.com:$wrong_port", '-d',
        "token=$serve->{secret}{keeper}");
    my ($status, $text) = ask($wrong_port, '/login', @form);
    is($status, 421, 'without --origin and --host its name is not known');
    like($text, qr/not called ops\.example\.com, as the header Host says/, 'which the page says');
    stop_serve($serve);
    push @{ $serve->{command} }, '--host', 'ops.example.com';
    serve_again($serve);
    ($status, $text) = ask($wrong_port, '/login', @form);
    is($status, 403, 'with its name a changed Host is not the Origin');
    my $origin = "the header Origin is https://ops.example.com:$wrong_port";
    like($text, qr{\Q$origin\E, and the header Host is ops\.example\.com<},
        'and the page names both');
    like($text, qr/--origin https:\/\/ops\.example\.com:$wrong_port/, 'and the way out');
    stop_serve($serve);
    push @{ $serve->{command} }, '--origin', 'https://ops.example.com';
    serve_again($serve);
    ($status, $text) = ask($wrong_port, '/login', @form);
    is($status, 403, 'the --origin of another port');
    like($text, qr{\Q$origin\E, and --origin is https://ops\.example\.com<}, 'is named, too');
};

subtest 'a proxy that adds the token of a visitor' => sub {
    my $serve = start_serve($node, port => $upstream{signed}, tokens => { ann => 'an_operator' },
        options => [ '--origin', 'https://ops.example.com/queue' ]);
    my $recipe = recipe('sign-in.conf') =~ s/Bearer 0+1/Bearer $serve->{secret}{ann}/r;
    # In the place of oauth2-proxy: the visitor is who a header says.
    my $oauth = PostgreSQL::Test::Cluster::get_free_port();
    $recipe =~ s/127\.0\.0\.1:4180/127.0.0.1:$oauth/g;
    my $gate = <<"CONF";
server {
    listen 127.0.0.1:$oauth;
    location /oauth2/auth { if (\$http_x_visitor = '') { return 401; }
        add_header X-Auth-Request-Email \$http_x_visitor always; return 202; }
    location / { return 200 'sign in elsewhere'; }
}
CONF
    my ($at) = start_nginx([ "$gate$recipe", $upstream{signed} ]);
    my @ann = ('-H', 'X-Visitor: ann@example.com');
    my ($status, $text) = ask($at, '/queue/jobs');
    like($text, qr/sign in elsewhere/, 'a stranger signs in at the proxy');
    ($status, $text) = ask($at, '/queue/jobs', @ann);
    is($status, 200, 'a visitor whom it knows is in');
    like($text, qr/\bann\b/, 'with a token');
    ($status) = ask($at, '/queue/jobs', '-H', 'X-Visitor: eve@example.com');
    is($status, 401, 'one without a token is not');
    my @pause = ('-d', '', @ann);
    ($status) = ask($at, '/queue/queues/pause?queue=q', @pause,
        '-H', 'Origin: https://evil.example');
    is($status, 403, 'the form of another site changes nothing');
    ($status) = ask($at, '/queue/queues/pause?queue=q', @pause,
        '-H', 'Origin: https://ops.example.com', '-H', 'X-Forwarded-For: 192.0.2.7');
    is($status, 303, 'the own form does');
    my $line = $serve->{program}->lines->wait_for('the record', sub { $_[0] =~ / changed / });
    like($line, qr/token=ann .*address=127\.0\.0\.1 forwarded_for="192\.0\.2\.7, 127\.0\.0\.1"/,
        'and the log has whom, and where from as the proxy says');
};

is_deeply([ $browser->notice ], [], 'no dialog, no error, and nothing that the policy forbids');
$browser->stop;
expect_healthy($node);
done_testing();
