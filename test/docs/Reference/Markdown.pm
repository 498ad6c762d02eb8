package Reference::Markdown;

# Texts of the catalogue as Markdown.
use strict;
use warnings;
use Exporter qw(import);

our @EXPORT_OK = qw(sentence prose code table mark type_name);

# At the top of each page, so that it is not edited by hand.
sub mark {
    return "<!-- Written by test/docs/generate; do not edit. -->\n";
}

sub code {
    my ($text) = @_;
    return "`$text`";
}

# Names (with an underscore, a dot or parentheses), error codes and settings become code.
sub prose {
    my ($text) = @_;
    $text =~ s/([\\*<|\[\]])/\\$1/g;
    $text =~ s{(?<![\w`'".])(
        pulse\.\w+(?:\.\w+)*(?:\(\))? | \w+\(\) | \w+\ =>\ \w+ | [a-zA-Z]*_[\w]+
        | PU\d{3} | \d{2}P\d{2}
      )(?![\w`])}{`$1`}gx;
    return $text;
}

# A comment as a sentence, however it was begun and ended.
sub sentence {
    my ($text) = @_;
    return '' if !defined $text || $text eq '';
    $text = ucfirst $text if $text !~ /^\w*[_(.]/;
    $text .= '.' if $text !~ /[.!?]$/;
    return prose($text);
}

sub table {
    my ($head, @rows) = @_;
    my $rule = '|' . '---|' x @{$head} . "\n";
    my ($first, @further) = map { '| ' . join(' | ', @{$_}) . " |\n" } $head, @rows;
    return join '', $first, $rule, @further;
}

# As PostgreSQL's own documentation abbreviates.
sub type_name {
    my ($type) = @_;
    $type =~ s/timestamp with time zone/timestamptz/g;
    $type =~ s/\bboolean\b/bool/g;
    $type =~ s/\binteger\b/int/g;
    return $type;
}

1;
