package Lint::Prose;

# Whether sentences name who acts, and how long they are.
use strict;
use warnings;
use List::Util qw(sum0);
use Lint::Text qw(paragraphs_of sentences_of words_of text_of);
use Lint::Tree qw(found detail slurp files);

use constant { MAX_PERSONS => 1, MAX_SENTENCE_P90 => 30, SHOWN_SENTENCES => 5 };

# Referents per 1,000 words: the goal of a folder that prose.budget does not name, and how far below
# its line a folder may be before the line has to follow.
use constant { COMMENT_GOAL => 25, PAGE_GOAL => 35, SLACK => 3, FEWEST_WORDS => 200 };
use constant BUDGETS => 'test/support/prose.budget';

my $person = qr/\b(?:
    (?:some|any|every)(?:body|one) | nobody | no\ one | who(?:so)?ever | whom(?:ever)? | others
  | he | him | his | himself )\b(?!-)/xi;

# Words that stand for a thing which the reader has to find. "so that" and the relative "that"
# stand for nothing.
my $referent = qr/\b(?:
    (?: it | its | they | them | their | theirs | those | these | ones | what | whatever | such )
  | (?<!so\ ) (?: that | which ) (?= \s*[,.;:!?)] | \ (?:of|is|was|has|in|at|to|with)\b )
  | (?<=\b(?:the|new|old)\ )one | (?<=\b(?:this|that|each|next|last)\ )(?<!so\ that\ )one
  | (?<=\b(?:every|first|other)\ )one
  | another (?= \s*[,.;:!?)] | \ (?:of|that|is|has|one)\b )
  )\b(?!-)/xi;
my $first_referent = qr/^\W*(that|which)\b/i;

my %area = (
    extension => qr{^extension/.*\.[ch]pp$},
    sql => qr{^sql/(?!releases/|upgrade/|citus/|tap/|graphile/).*\.sql$},
    base => qr{^base/.*\.[ch]pp$},
    worker => qr{^worker/.*\.[ch]pp$},
    console => qr{^console/.*\.[ch]pp$},
    docs => qr{(?:^|/)README\.md$|^(?:CHANGELOG|CONTRIBUTING|SECURITY|test/conformance)\.md$
              |^(?:docs|worker)/.*\.md$}x,
);

# Words, and the indefinite persons among them with their places.
sub persons_in {
    my (@files) = @_;
    my ($words, @persons) = (0);
    for my $file (@files) {
        for my $piece (map { @{$_} } paragraphs_of($file)) {
            my ($line, $text) = @{$piece};
            $words += words_of($text);
            push @persons, [$file, $line, lc $1] while $text =~ /($person)/g;
        }
    }
    return ($words, @persons);
}

# Words, and the words among them that stand for a thing.
sub referents_in {
    my (@files) = @_;
    my ($words, $referents) = (0, 0);
    for my $text (map { text_of($_) } map { paragraphs_of($_) } @files) {
        $text =~ s/(`+).*?\1/CODE/g;
        $words += words_of($text);
        $referents++ while $text =~ /$referent/g;
        for (split /[.!?]["')\]*]*\s+(?=[^a-z\s])/, $text) {
            $referents++ if /$first_referent/ && !/^\W*$referent/;
        }
    }
    return ($words, $referents);
}

# The folders whose prose is measured, with their files; the pages of a folder stand apart.
sub folders {
    my %files_of;
    for my $file (map { files_of($_) } sort keys %area) {
        my ($folder) = $file =~ m{^(.*/)};
        push @{ $files_of{ ($folder // '') . ($file =~ /\.md$/ ? '*.md' : '') } }, $file;
    }
    return %files_of;
}

sub budgets {
    return map { /^(\S+) (\d+)$/ ? ($1 => $2) : () } -f BUDGETS ? slurp(BUDGETS) : ();
}

# What a folder has beyond its line is new; a line that a folder has left behind is lowered.
sub check_referents {
    my %files_of = folders();
    my %budget = budgets();
    found(BUDGETS, "there is no prose in $_; take its line out")
      for grep { !$files_of{$_} } sort keys %budget;
    for my $folder (sort keys %files_of) {
        my @files = @{ $files_of{$folder} };
        my ($words, $referents) = referents_in(@files);
        next if $words < FEWEST_WORDS;
        my $goal = $folder =~ /\.md$/ ? PAGE_GOAL : COMMENT_GOAL;
        my $budget = $budget{$folder} // $goal;
        my $now = $referents * 1000 / $words;
        if ($now > $budget) {
            found($folder, sprintf('%.1f words of 1,000 stand for a thing (it, that, which, what '
                  . '…), the budget is %d; name the thing', $now, $budget));
            detail($folder, $_) for most_referents(@files);
        }
        elsif ($budget > $goal && $now < $budget - SLACK) {
            found(BUDGETS, sprintf('%s is at %.1f by now; lower its line', $folder, $now));
        }
    }
    return;
}

# The files of a folder in which most is to be gained.
sub most_referents {
    my @counts = sort { $b->[1] <=> $a->[1] } map { [$_, (referents_in($_))[1]] } @_;
    splice @counts, SHOWN_SENTENCES if @counts > SHOWN_SENTENCES;
    return map { "$_->[1] in $_->[0]" } @counts;
}

sub files_of {
    my ($name) = @_;
    return grep { $_ =~ $area{$name} } files();
}

sub check_persons {
    for my $name (sort keys %area) {
        my ($words, @persons) = persons_in(files_of($name));
        next if @persons * 1000 <= MAX_PERSONS * $words;
        found($name, @persons . " indefinite persons in $words words of prose, more than "
              . MAX_PERSONS . ' per 1,000; name the role (backend, claim, worker, operator)');
        my %by_line;
        push @{ $by_line{"$_->[0]:$_->[1]"} }, $_->[2] for @persons;
        detail($_, join ', ', @{ $by_line{$_} }) for in_order(keys %by_line);
    }
    return;
}

# Places sorted by file, then by line.
sub in_order {
    my (@places) = @_;
    return map { "$_->[0]:$_->[1]" } sort { $a->[0] cmp $b->[0] || $a->[1] <=> $b->[1] }
      map { [/^(.*):(\d+)$/] } @places;
}

# [words, line, text] of each sentence of files, the shortest first.
sub sentences_in {
    my (@files) = @_;
    my @sentences;
    for my $paragraph (map { paragraphs_of($_) } @files) {
        push @sentences, map { [words_of($_), $paragraph->[0][0], $_] }
          sentences_of(text_of($paragraph));
    }
    return sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } @sentences;
}

# The length that so much of the sentences do not exceed.
sub quantile {
    my ($part, @sentences) = @_;
    return 0 if !@sentences;
    my $rank = int($part * @sentences);
    $rank++ if $rank < $part * @sentences;
    return $sentences[($rank || 1) - 1][0];
}

sub pages {
    return grep { m{^(?:README\.md|docs/.*\.md)$} } files();
}

sub check_sentences {
    for my $page (pages()) {
        my @sentences = sentences_in($page);
        my $p90 = quantile(0.9, @sentences);
        next if $p90 <= MAX_SENTENCE_P90;
        found($page, "a tenth of its sentences have $p90 words or more, the limit is "
              . MAX_SENTENCE_P90 . '; split the longest, and those like them');
        my @longest = reverse @sentences;
        splice @longest, SHOWN_SENTENCES if @longest > SHOWN_SENTENCES;
        detail("$page:$_->[1]", "$_->[0] words: " . beginning_of($_->[2])) for @longest;
    }
    return;
}

sub beginning_of {
    my ($text) = @_;
    $text =~ s/^\s+//;
    return length $text > 60 ? substr($text, 0, 60) . '…' : $text;
}

# lint --prose: what the checks measure, whether within the budget or not.
sub report {
    my $row = "%-28s %6s %7s %8s %9s %9s %9s %7s %4s %4s\n";
    my @columns = qw(words persons per_1000 referents sentences median p90 max);
    printf $row, 'area', 'files', @columns;
    printf $row, $_, measures(files_of($_)) for sort keys %area;
    printf "\n$row", 'page', 'lines', @columns;
    for my $page (files_of('docs')) {
        my @measures = measures($page);
        printf $row, $page, scalar(slurp($page)), @measures[1 .. $#measures];
    }
    return;
}

sub measures {
    my (@in) = @_;
    my ($words, @persons) = persons_in(@in);
    my @sentences = sentences_in(@in);
    my (undef, $referents) = referents_in(@in);
    return (scalar @in, $words, scalar @persons,
        map({ sprintf '%.1f', $_ * 1000 / ($words || 1) } scalar @persons, $referents),
        scalar @sentences, map { quantile($_, @sentences) } 0.5, 0.9, 1);
}

1;
