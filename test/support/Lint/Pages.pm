package Lint::Pages;

# The examples that pages show.
use strict;
use warnings;
use Lint::Tree qw(found slurp files);

use constant { MAX_EXAMPLE_LINES => 20 };

# A page shows the example workers as they are, each of no more lines of code than it says.
sub check_examples {
    my ($page) = grep { -f } qw(docs/own-worker.md README.md);
    my $text = join "\n", slurp($page);
    for my $file (grep { m{^worker/examples/\w+_worker\.\w+$} } files()) {
        my @lines = slurp($file);
        my $code = grep { !m{^\s*(?:#|//|$)} } @lines;
        found($file, "$code lines of code, more than " . MAX_EXAMPLE_LINES . '; say it in fewer')
          if $code > MAX_EXAMPLE_LINES;
        shift @lines if $lines[0] =~ /^#!/;
        found($file, "is not what $page shows of it; copy it there")
          if $text !~ /^```\w+(?: [^\n]*)?\n\Q@{[ join "\n", @lines ]}\E\n```$/m;
    }
    return;
}

1;
