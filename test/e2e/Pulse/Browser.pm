# Debian's Chromium as a visitor of pages uses it, through the WebDriver protocol. It notes each
# dialog that a page wanted and each thing that its policy kept from it.
package Pulse::Browser;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use HTTP::Tiny;
use JSON::PP ();
use MIME::Base64 qw(decode_base64);
use Time::HiRes qw(time);

use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils   ();
use Pulse::Lines;
use Pulse::Program;

my $json = JSON::PP->new->utf8->allow_nonref->canonical;

# Runs in each page before its own script.
my $witness = <<'JS';
window.wanted = [];
for (const name of ['alert', 'confirm', 'prompt']) {
  window[name] = (text) => { window.wanted.push(name + ': ' + text); };
}
document.addEventListener('securitypolicyviolation', (event) => {
  window.wanted.push('policy: ' + event.violatedDirective + ' ' + event.blockedURI);
});
window.addEventListener('error', (event) => {
  if (event.message) window.wanted.push('error: ' + event.message);
});
JS

# WebDriver's names of keys.
our %KEY = (
    Tab => "\x{E004}", Enter => "\x{E007}", Space => ' ', Escape => "\x{E00C}",
    Shift => "\x{E008}", Home => "\x{E011}", End => "\x{E010}",
);

my @open;

# `base`: where addresses without a host lead. `size`: [width, height]. `scheme`: light or dark.
# `hosts`: names that are this machine; their certificates are taken as they are.
sub start {
    my ($class, %options) = @_;
    my $port = PostgreSQL::Test::Cluster::get_free_port();
    my $folder = "$PostgreSQL::Test::Utils::tmp_check/browser_$port";
    mkdir $folder;
    local $ENV{HOME} = $folder;
    # A browser makes a socket there, whose path must not be long.
    local $ENV{TMPDIR} = PostgreSQL::Test::Utils::tempdir_short();
    my $program = Pulse::Program->start("chromedriver_$port", [ 'chromedriver', "--port=$port" ]);
    $program->lines->wait_for('chromedriver', sub { $_[0] =~ /started successfully/ });
    my $self = bless {
        http => HTTP::Tiny->new(timeout => $PostgreSQL::Test::Utils::timeout_default),
        url => "http://127.0.0.1:$port",
        base => $options{base},
        wanted => [],
    }, $class;
    my @arguments = ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
        '--hide-scrollbars', '--no-proxy-server', '--disable-background-networking',
        "--user-data-dir=$folder/profile");
    if (my $hosts = $options{hosts}) {
        push @arguments, '--ignore-certificate-errors',
          '--host-resolver-rules=' . join ',', map { "MAP $_ 127.0.0.1" } @$hosts;
    }
    my $session = $self->_send(POST => '/session', { capabilities => { alwaysMatch => {
        browserName => 'chrome',
        'goog:chromeOptions' => { binary => '/usr/bin/chromium', args => \@arguments } } } });
    $self->{session} = "/session/$session->{sessionId}";
    push @open, $self;
    $self->cdp('Page.addScriptToEvaluateOnNewDocument', source => $witness);
    $self->look_as(%options);
    return $self;
}

sub _send {
    my ($self, $method, $path, $body) = @_;
    my $answer = $self->{http}->request($method, $self->{url} . $path,
        defined $body ? { content => $json->encode($body),
            headers => { 'Content-Type' => 'application/json' } } : {});
    my $value = eval { $json->decode($answer->{content})->{value} };
    croak "$method $path: $answer->{status} $answer->{content}" if !$answer->{success};
    return $value;
}

sub _post {
    my ($self, $path, $body) = @_;
    return $self->_send(POST => $self->{session} . $path, $body // {});
}

sub cdp {
    my ($self, $command, %params) = @_;
    return $self->_post('/goog/cdp/execute', { cmd => $command, params => \%params });
}

# Width and height of the page in CSS pixels, and the scheme that its reader prefers.
sub look_as {
    my ($self, %options) = @_;
    my ($width, $height) = @{ $options{size} // [ 1280, 900 ] };
    $self->cdp('Emulation.setDeviceMetricsOverride', width => $width + 0, height => $height + 0,
        deviceScaleFactor => $options{scale} // 1,
        mobile => $width < 600 ? JSON::PP::true : JSON::PP::false);
    $self->cdp('Emulation.setEmulatedMedia',
        features => [ { name => 'prefers-color-scheme', value => $options{scheme} // 'light' },
            { name => 'prefers-reduced-motion', value => 'reduce' } ]);
    return;
}

sub go {
    my ($self, $path) = @_;
    $self->notice;
    $self->_post('/url', { url => $path =~ /^https?:/ ? $path : $self->{base} . $path });
    return;
}

# Takes what the page wanted and was not given, before the next one takes its place.
sub notice {
    my ($self) = @_;
    push @{ $self->{wanted} }, @{ $self->js('return window.wanted || []') };
    return @{ $self->{wanted} };
}

sub js {
    my ($self, $script, @arguments) = @_;
    return $self->_post('/execute/sync', { script => $script, args => \@arguments });
}

# Those that a script may not read, too.
sub cookies { my ($self) = @_; return $self->_send(GET => "$self->{session}/cookie") }

sub path { my ($self) = @_; return $self->js('return location.pathname + location.search') }
sub text { my ($self) = @_; return $self->js('return document.body.innerText') }
sub title { my ($self) = @_; return $self->js('return document.title') }

# What has the focus: its text or its name.
sub focus {
    my ($self) = @_;
    return $self->js('const e = document.activeElement; return e.innerText || e.name || e.tagName');
}

# The page shows this, or what it shows last.
sub wait_for {
    my ($self, $expected) = @_;
    return $self->_wait_until(sub { $self->text }, $expected);
}

sub wait_for_path {
    my ($self, $expected) = @_;
    return $self->_wait_until(sub { $self->path }, $expected);
}

# What has the focus, once it is this: a new page gives the focus away after it was loaded.
sub wait_for_focus {
    my ($self, $expected) = @_;
    return $self->_wait_until(sub { $self->focus }, qr/\A\Q$expected\E\z/);
}

# A script that returns whether it is so.
sub wait_for_js {
    my ($self, $script) = @_;
    return $self->_wait_until(sub { $self->js($script) ? 'yes' : 'no' }, qr/yes/) eq 'yes';
}

sub _wait_until {
    my ($self, $look, $expected) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my $seen = '';
    while (1) {
        # A page that is on its way has no body.
        $seen = eval { $look->() } // '';
        last if $seen =~ $expected || time > $end;
        Pulse::Lines::pause();
    }
    return $seen;
}

# The first link or button with this text, within what the selector finds. What is live may take
# another's place just then.
sub click {
    my ($self, $text, $within) = @_;
    my $most = 10;
    while (!eval { $self->_click_once($text, $within); 1 }) {
        croak $@ if $@ !~ /stale element/ || --$most == 0;
    }
    return;
}

sub _click_once {
    my ($self, $text, $within) = @_;
    my $found = $self->js(<<'JS', $text, $within // 'body');
      for (const e of document.querySelectorAll(arguments[1])) {
        for (const c of [e, ...e.querySelectorAll('a, button, summary, label, input')]) {
          if ((c.innerText || '').trim() === arguments[0]) return c;
        }
      }
      return null;
JS
    croak "nothing to click says $text: " . $self->text if !defined $found;
    my ($id) = values %$found;
    $self->notice;
    $self->_post("/element/$id/click");
    return;
}

# Into the field of this name.
sub fill {
    my ($self, $name, $text) = @_;
    my $found = $self->js('return document.getElementsByName(arguments[0])[0]', $name)
      // croak "no field $name";
    my ($id) = values %$found;
    $self->_post("/element/$id/clear");
    $self->_post("/element/$id/value", { text => $text });
    return;
}

# Names of %KEY, and other texts letter by letter; "Shift+Tab" is one with the other.
sub press {
    my ($self, @keys) = @_;
    for my $name (@keys) {
        my @down = map { $KEY{$_} // $_ } $name =~ /.\+./ ? split(/\+/, $name) : ($name);
        my @actions = (map({ { type => 'keyDown', value => $_ } } @down),
            map({ { type => 'keyUp', value => $_ } } reverse @down));
        $self->_post('/actions',
            { actions => [ { type => 'key', id => 'keys', actions => \@actions } ] });
    }
    return;
}

# Presses Tab until this has the focus; how often, or undef after `most`.
sub tab_to {
    my ($self, $text, $most) = @_;
    for my $count (1 .. $most // 60) {
        $self->press('Tab');
        return $count if $self->focus eq $text;
    }
    return;
}

# A picture as PNG; of the whole page with `whole`.
sub picture {
    my ($self, %options) = @_;
    my $taken = $self->cdp('Page.captureScreenshot', format => 'png',
        captureBeyondViewport => $options{whole} ? JSON::PP::true : JSON::PP::false);
    return decode_base64($taken->{data});
}

sub stop {
    my ($self) = @_;
    $self->notice;
    $self->_close;
    return;
}

sub _close {
    my ($self) = @_;
    @open = grep { $_ != $self } @open;
    $self->_send(DELETE => $self->{session});
    return;
}

# A driver that is killed leaves its browser behind.
END {
    my $status = $?;
    eval { $_->_close } for @open;
    $? = $status;
}

1;
