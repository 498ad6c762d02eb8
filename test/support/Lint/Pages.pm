package Lint::Pages;

# How long pages may be, and the examples that they show.
use strict;
use warnings;
use Lint::Text qw(plain words_of);
use Lint::Tree qw(found slurp files);

use constant { MAX_ITEM_WORDS => 25, MAX_EXAMPLE_LINES => 20 };

my %max_lines = ('README.md' => 150, 'extension/README.md' => 130);

sub check_lengths {
    for my $page (grep { -f } sort keys %max_lines) {
        my $lines = slurp($page);
        found($page, "$lines lines, more than $max_lines{$page}; move what few need into docs/")
          if $lines > $max_lines{$page};
    }
    return;
}

# An item of the newest version says one thing, so that a reader finds what concerns an update. The
# older versions stay as they were released.
sub check_changelog {
    my ($is_newest, $number);
    for (slurp('CHANGELOG.md')) {
        $number++;
        last if /^## / && $is_newest;
        $is_newest ||= /^## /;
        next if !$is_newest;
        my ($item) = /^- (.*)/ or next;
        my $words = words_of(plain($item));
        found("CHANGELOG.md:$number", "$words words, more than " . MAX_ITEM_WORDS
              . '; say what users notice, one thing an item') if $words > MAX_ITEM_WORDS;
    }
    return;
}

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
