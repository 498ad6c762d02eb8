package Lint::Prose;

# Whether sentences name who acts, and how long they are.
use strict;
use warnings;
use List::Util qw(sum0);
use Lint::Text qw(paragraphs_of sentences_of words_of text_of);
use Lint::Tree qw(found detail slurp files);

use constant { MAX_PERSONS => 1, MAX_SENTENCE_P90 => 30, SHOWN_SENTENCES => 5 };

my $person = qr/\b(?:
    (?:some|any|every)(?:body|one) | nobody | no\ one | who(?:so)?ever | whom(?:ever)? | others
  | he | him | his | himself )\b(?!-)/xi;

my %area = (
    extension => qr{^extension/.*\.[ch]pp$},
    sql => qr{^sql/[^/]*\.sql$},
    worker => qr{^worker/.*\.[ch]pp$},
    console => qr{^console/.*\.[ch]pp$},
    docs => qr{(?:^|/)README\.md$|^(?:CHANGELOG|CONTRIBUTING|SECURITY)\.md$
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
    my $row = "%-28s %6s %7s %8s %9s %9s %7s %4s %4s\n";
    my @columns = qw(words persons per_1000 sentences median p90 max);
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
    return (scalar @in, $words, scalar @persons, sprintf('%.1f', @persons * 1000 / ($words || 1)),
        scalar @sentences, map { quantile($_, @sentences) } 0.5, 0.9, 1);
}

1;
