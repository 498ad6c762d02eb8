# `pulse serve` on a free port of the loopback, with tokens for the roles that a test names.
package Pulse::Serve;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use IPC::Run ();

use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils   ();
use Pulse::Program;

our @EXPORT = qw(start_serve stop_serve serve_again);

# Lines of a file of tokens, and the secret of each by its name.
sub _make_tokens {
    my ($roles) = @_;
    my ($lines, %secret) = ('');
    for my $name (sort keys %$roles) {
        my ($line, $said) = ('', '');
        IPC::Run::run([ 'pulse', 'token', $name, $roles->{$name} ], '>', \$line, '2>', \$said)
          or die $said;
        ($secret{$name}) = $said =~ /: (\S+)$/;
        $lines .= $line;
    }
    return ($lines, \%secret);
}

# `tokens`: role by name, or `file`: that of another server. `port`: else a free one. `options`: of
# the command line. `database`: else postgres. `databases`: instead, the options -d of several
# databases. Returns a hash: url, port, file, program, and the secret of each token by its name.
sub start_serve {
    my ($node, %options) = @_;
    my $port = $options{port} // PostgreSQL::Test::Cluster::get_free_port();
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname='
      . ($options{database} // 'postgres');
    my @databases = @{ $options{databases} // [ '-d', $database ] };
    my %serve = (url => "http://127.0.0.1:$port", port => $port, secret => {},
        file => $options{file});
    if (my $roles = $options{tokens}) {
        $serve{file} = "$PostgreSQL::Test::Utils::tmp_check/tokens_$port";
        (my $lines, $serve{secret}) = _make_tokens($roles);
        open my $out, '>', $serve{file} or die "$serve{file}: $!";
        print {$out} $lines;
        close $out;
        chmod 0600, $serve{file};
    }
    $serve{command} = [ 'pulse', @databases, 'serve', '--listen', "127.0.0.1:$port",
        (defined $serve{file} ? ('--tokens', $serve{file}) : ()), @{ $options{options} // [] } ];
    serve_again(\%serve);
    return \%serve;
}

sub stop_serve {
    my ($serve) = @_;
    $serve->{program}->signal('TERM');
    $serve->{program}->wait_exit;
    return;
}

# Another process at the same address.
sub serve_again {
    my ($serve) = @_;
    my $number = ++$serve->{starts};
    $serve->{program} = Pulse::Program->start("serve_$serve->{port}_$number", $serve->{command},
        output => 'stderr');
    $serve->{program}->lines->wait_for('pulse serve', sub { $_[0] =~ /serving/ });
    return;
}

1;
