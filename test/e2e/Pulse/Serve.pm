# `pulse serve` on a free port of the loopback, with tokens for the roles that a test names.
package Pulse::Serve;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use IPC::Run ();

use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils   ();
use Pulse::Program;

our @EXPORT = qw(start_serve);

# `tokens`: role by name; `database`: other than postgres; `options`: more of the command line.
# Returns a hash: url, program, and the secret of each token by its name.
sub start_serve {
    my ($node, %options) = @_;
    my $port = PostgreSQL::Test::Cluster::get_free_port();
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname='
      . ($options{database} // 'postgres');
    my %serve = (url => "http://127.0.0.1:$port", secret => {});
    my @arguments = ('--listen', "127.0.0.1:$port", @{ $options{options} // [] });
    if (my $tokens = $options{tokens}) {
        my $file = "$PostgreSQL::Test::Utils::tmp_check/tokens_$port";
        open my $out, '>', $file or die "$file: $!";
        for my $name (sort keys %$tokens) {
            my ($line, $said) = ('', '');
            IPC::Run::run([ 'pulse', 'token', $name, $tokens->{$name} ], '>', \$line, '2>', \$said)
              or die $said;
            ($serve{secret}{$name}) = $said =~ /: (\S+)$/;
            print {$out} $line;
        }
        close $out;
        chmod 0600, $file;
        push @arguments, '--tokens', $file;
    }
    $serve{program} = Pulse::Program->start("serve_$port",
        [ 'pulse', '-d', $database, 'serve', @arguments ], output => 'stderr');
    $serve{program}->lines->wait_for('pulse serve', sub { $_[0] =~ /serving/ });
    return \%serve;
}

1;
