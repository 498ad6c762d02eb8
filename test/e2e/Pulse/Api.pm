# `pulse serve`, and clients of its HTTP API: curl, and bare sockets for what curl would not send.
# Each answer to curl must be one that the server's own description has.
package Pulse::Api;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Program';

use Carp qw(croak);
use IO::Socket::INET;
use IPC::Run ();
use JSON::PP ();

use PostgreSQL::Test::Utils ();
use Pulse::OpenApi;

# `tokens`: name => role. `options`: of the command line.
sub start {
    my ($class, $node, $name, %options) = @_;
    my (@tokens, %secret);
    if (my $roles = $options{tokens}) {
        my $file = PostgreSQL::Test::Utils::tempdir . '/tokens';
        open my $out, '>', $file or croak "$file: $!";
        for my $who (sort keys %{$roles}) {
            my ($line, $said) = PostgreSQL::Test::Utils::run_command(
                [ 'pulse', 'token', $who, $roles->{$who} ]);
            print {$out} "$line\n";
            ($secret{$who}) = $said =~ /([0-9a-f]{64})$/ or croak "no token: $said";
        }
        close $out or croak "$file: $!";
        @tokens = ('--tokens', $file);
    }
    my $database = ($options{database} // 'host=' . $node->host . ' port=' . $node->port)
      . ' dbname=' . ($options{dbname} // 'postgres');
    $database .= " user=$options{role}" if $options{role};
    my $self = $class->SUPER::start(
        $name,
        [ 'pulse', '-d', $database, '--json', 'serve', '--listen', '127.0.0.1:0', @tokens,
            @{ $options{options} // [] } ],
        output => 'stderr');
    my $line = $self->lines->wait_for('the server', sub { $_[0] =~ /"serving"/ });
    ($self->{port}) = $line =~ /127\.0\.0\.1:(\d+)/ or croak "no port: $line";
    @$self{qw(secret token_file)} = (\%secret, $tokens[1]);
    $self->{description} = Pulse::OpenApi->new($self->curl(GET => '/v1/openapi.json')->{json});
    return $self;
}

sub url { return "http://127.0.0.1:$_[0]{port}$_[1]" }

sub headers_of {
    my ($self, %options) = @_;
    my %headers = %{ $options{headers} // {} };
    $headers{Authorization} //= "Bearer $self->{secret}{$options{as}}" if $options{as};
    $headers{'Pulse-Token'} = $options{token} if defined $options{token};
    $headers{'Content-Type'} //= 'application/json' if defined $options{body};
    # curl leaves out an empty header unless it ends so.
    return map { ('-H', length $headers{$_} ? "$_: $headers{$_}" : "$_;") } sort keys %headers;
}

# Options: as (who), body (a reference, or text), token, headers. Returns status, headers, body
# and json.
sub curl {
    my ($self, $method, $path, %options) = @_;
    my $body = $options{body};
    $body = JSON::PP->new->utf8->canonical->encode($body) if ref $body;
    my @command = ('curl', '-sS', '-i', '--max-time', '60', '-X', $method,
        $self->headers_of(%options));
    push @command, '--data-binary', '@-' if defined $body;
    my ($out, $err) = ('', '');
    push @command, $self->url($path);
    IPC::Run::run(\@command, '<', \($body // ''), '>', \$out, '2>', \$err)
      or return { status => 0, body => '', error => $err };
    my $answer = answer_of($out);
    $self->{description}->check($method, $path, $answer) if $self->{description};
    return $answer;
}

# A whole answer, as it came over the wire.
sub answer_of {
    my ($text) = @_;
    $text =~ s{\AHTTP/1\.1 100 .*?\r\n\r\n}{}s;
    my ($status, $head, $body) =
      $text =~ m{\AHTTP/1\.[01] (\d{3}) ?[^\r\n]*\r\n(.*?\r\n)\r\n(.*)\z}s
      or croak "no answer: '" . substr($text, 0, 200) . "'";
    my %headers = map { /^([^:]+):\s*(.*)$/ ? (lc $1 => $2) : () } split /\r\n/, $head;
    my $answer = { status => $status, headers => \%headers, body => $body };
    $answer->{json} = eval { JSON::PP->new->utf8->allow_nonref->decode($body) }
      if ($headers{'content-type'} // '') =~ /json/;
    return $answer;
}

# A connection for what curl would not send.
sub connection {
    my ($self) = @_;
    return IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $self->{port},
        Timeout => $PostgreSQL::Test::Utils::timeout_default) // croak "no connection: $@";
}

# What is there to read.
sub piece_of {
    my ($connection) = @_;
    sysread $connection, my $piece, 1 << 20;
    return $piece // '';
}

# What the server says on it until it hangs up.
sub rest_of {
    my ($connection) = @_;
    my $text = '';
    while (sysread $connection, my $piece, 65536) { $text .= $piece }
    return $text;
}

1;
