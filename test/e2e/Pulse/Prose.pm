# Pages as their readers see them: where a paragraph breaks its lines says nothing.
package Pulse::Prose;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);

use PostgreSQL::Test::Utils ();

our @EXPORT = qw(prose_of);

# The page, with each paragraph and each item of a list on one line. Fenced blocks, tables and
# comments stay as they are.
sub prose_of {
    my ($path) = @_;
    my @parts = split /^(```.*?^```$)/ms, PostgreSQL::Test::Utils::slurp_file($path);
    for my $part (grep { !/\A```/ } @parts) {
        $part =~ s/(?<=\S)\n *(?=\S)(?!(?:[-*+]|#+|\d+\.) |[|<>])/ /g;
    }
    return join '', @parts;
}

1;
