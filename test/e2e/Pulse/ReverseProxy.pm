# nginx and Caddy with the recipes of docs/recipes/proxy.md, on a free port of the loopback and
# with a certificate of the test's own. They are in PATH, or where `make packages FOR=test` has
# unpacked them.
package Pulse::ReverseProxy;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Exporter qw(import);
use File::Basename qw(dirname);
use IO::Socket::INET;
use IPC::Run ();

use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils   ();
use Pulse::Lines;
use Pulse::Program;

our @EXPORT = qw(has_proxies recipe start_nginx start_caddy);

my $folder;

# The framework makes the place when the test begins.
sub _folder {
    return $folder if defined $folder;
    $folder = "$PostgreSQL::Test::Utils::tmp_check/proxies";
    mkdir $folder;
    return $folder;
}

sub _program {
    my ($name) = @_;
    my $build = $ENV{PULSE_BUILD} // dirname(__FILE__) . '/../../../build';
    for my $place (split(/:/, $ENV{PATH}), '/usr/sbin', "$build/proxies") {
        return "$place/$name" if -x "$place/$name";
    }
    return;
}

sub has_proxies { return defined _program('nginx') && defined _program('caddy') }

# The block of the page that is written to this file.
sub recipe {
    my ($file) = @_;
    my $page = dirname(__FILE__) . '/../../../docs/recipes/proxy.md';
    open my $handle, '<', $page or croak "$page: $!";
    local $/ = undef;
    my ($text) = <$handle> =~ /^```\w+ \Q$file\E\n(.*?)^```$/ms or croak "$page has no $file";
    return $text;
}

sub _write {
    my ($name, $text) = @_;
    open my $handle, '>', _folder() . "/$name" or croak "$folder/$name: $!";
    print {$handle} $text;
    close $handle or croak "$folder/$name: $!";
    return "$folder/$name";
}

# Of all names that the recipes have.
sub _certificate {
    my ($certificate, $key) = map { _folder() . "/ops.$_" } qw(pem key);
    return ($certificate, $key) if -e $key;
    my $said = '';
    IPC::Run::run([ qw(openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ops.example.com
            -addext), 'subjectAltName=DNS:ops.example.com,DNS:chat.example.net', '-keyout', $key,
            '-out', $certificate ], '>', \$said, '2>&1')
      or croak "openssl: $said";
    return ($certificate, $key);
}

# Once it listens at the last of the ports.
sub _start {
    my ($name, $port, @command) = @_;
    my $program = Pulse::Program->start("${name}_$port", \@command, output => 'stderr');
    while (!IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port)) {
        croak "$name: " . join "\n", $program->lines->lines if $program->{process}->is_gone;
        Pulse::Lines::pause();
    }
    return $program;
}

# Servers of nginx, in one process: the end of a test kills what the test has started, and a worker
# would outlive its master. Each is a text of a recipe, with the port where `pulse serve` listens;
# returns the port of each.
sub start_nginx {
    my (@servers) = @_;
    my ($certificate, $key) = _certificate();
    my (@ports, $servers);
    for my $server (@servers) {
        my ($text, $upstream) = @$server;
        push @ports, PostgreSQL::Test::Cluster::get_free_port();
        $text =~ s{listen 443}{listen 127.0.0.1:$ports[-1]};
        $text =~ s{/etc/ssl/certs/ops\.pem}{$certificate};
        $text =~ s{/etc/ssl/private/ops\.key}{$key};
        $text =~ s{127\.0\.0\.1:8440}{127.0.0.1:$upstream};
        $servers .= $text;
    }
    my @temporary = map { "${_}_temp_path $folder/nginx_$_;" }
      qw(client_body proxy fastcgi uwsgi scgi);
    my $file = _write("nginx_$ports[-1].conf", <<"CONF");
daemon off;
pid $folder/nginx_$ports[-1].pid;
master_process off;
worker_processes 1;
error_log stderr;
events { worker_connections 256; }
http {
    access_log off;
    map_hash_bucket_size 128;
    default_type text/html;
    @temporary
    $servers
}
CONF
    _start('nginx', $ports[-1], _program('nginx'), '-c', $file, '-p', $folder, '-e', 'stderr');
    return @ports;
}

# Caddy with the text of a recipe; returns its port.
sub start_caddy {
    my ($text, $upstream) = @_;
    my ($certificate, $key) = _certificate();
    my $port = PostgreSQL::Test::Cluster::get_free_port();
    $text =~ s/^ops\.example\.com \{\n/ops.example.com:$port {
\tbind 127.0.0.1
\ttls $certificate $key
/m;
    $text =~ s/127\.0\.0\.1:8440/127.0.0.1:$upstream/;
    my $file = _write("Caddyfile_$port", "{\n\tadmin off\n\tauto_https disable_redirects\n"
          . "\tstorage file_system $folder/caddy\n}\n$text");
    local $ENV{HOME} = $folder;
    _start('caddy', $port, _program('caddy'), 'run', '--config', $file, '--adapter', 'caddyfile');
    return $port;
}

1;
