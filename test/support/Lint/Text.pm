package Lint::Text;

# The prose of a file in paragraphs, each a list of pieces: [line, text] of a comment or a page.
use strict;
use warnings;
use Exporter qw(import);
use Lint::Tree qw(slurp);

our @EXPORT_OK = qw(paragraphs_of sentences_of words_of text_of plain);

# What is shorter is a label, as most cells of tables are.
use constant { MIN_SENTENCE_WORDS => 5 };

sub paragraphs_of {
    my ($file) = @_;
    return page_paragraphs($file) if $file =~ /\.md$/;
    return sql_paragraphs($file) if $file =~ /\.sql$/;
    return cpp_paragraphs($file);
}

sub text_of { return join ' ', map { $_->[1] } @{ $_[0] } }

sub words_of {
    my ($text) = @_;
    return scalar grep { /\w/ } split ' ', $text;
}

# Code stands as one capital word, so that a sentence may begin with it.
sub sentences_of {
    my ($text) = @_;
    $text =~ s/\b(e\.g|i\.e|cf|vs|etc|approx)\.(?=\s+\S)/$1/gi;
    return grep { words_of($_) >= MIN_SENTENCE_WORDS }
      split /[.!?]["')\]*]*\s+(?=[^a-z\s])/, $text;
}

# Adjacent lines of comment make a paragraph; a line without words ends it.
sub cpp_paragraphs {
    my ($file) = @_;
    my (@paragraphs, @pieces, $in_block);
    my $number = 0;
    for my $line (slurp($file)) {
        $number++;
        my $text = cpp_comment($line, \$in_block);
        if (defined $text && $text =~ /\w/) { push @pieces, [$number, $text] }
        elsif (@pieces) { push @paragraphs, [splice @pieces] }
    }
    push @paragraphs, \@pieces if @pieces;
    return @paragraphs;
}

sub cpp_comment {
    my ($line, $in_block) = @_;
    if (${$in_block}) {
        ${$in_block} = 0 if $line =~ s{\*/.*}{};
        return $line =~ s/^\s*\*?//r;
    }
    # An apostrophe between digits is none.
    while ($line =~ m{\G(?:[^"'/]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)+'|'|"|/(?![/*]))*}gc) {
        return $1 =~ s/^-+|-+$//gr if $line =~ m{\G//+\s*(.*)}gc;
        return $1 if $line =~ m{\G/\*(.*?)\*/}gc;
        if ($line =~ m{\G/\*(.*)}gc) {
            ${$in_block} = 1;
            return $1;
        }
        return;
    }
    return;
}

# Comments of SQL, and what COMMENT ON says.
sub sql_paragraphs {
    my ($file) = @_;
    my (@paragraphs, @pieces, $in_statement);
    my $number = 0;
    for my $line (slurp($file)) {
        $number++;
        if (!$in_statement && $line =~ /^\s*COMMENT ON /) {
            push @paragraphs, [splice @pieces] if @pieces;
            $in_statement = 1;
        }
        if ($in_statement) {
            push @pieces, [$number, $_] for strings_in($line);
            $in_statement = 0 if $line =~ /;\s*$/;
            push @paragraphs, [splice @pieces] if !$in_statement && @pieces;
            next;
        }
        my ($text) = $line =~ /^(?:[^'-]|'[^']*'|-(?!-))*--+\s*(.*)$/;
        if (defined $text && $text =~ /\w/) { push @pieces, [$number, $text] }
        elsif (@pieces) { push @paragraphs, [splice @pieces] }
    }
    push @paragraphs, \@pieces if @pieces;
    return @paragraphs;
}

sub strings_in {
    my ($line) = @_;
    return map { s/''/'/gr } $line =~ /'((?:[^']|'')*)'/g;
}

# A page without its code, headings and tables' rules. An item of a list begins a paragraph, and a
# cell of a table is one.
sub page_paragraphs {
    my ($file) = @_;
    my (@paragraphs, @pieces, $fence, $indent, $in_remark);
    my $flush = sub { push @paragraphs, [splice @pieces] if @pieces };
    my $number = 0;
    for my $line (slurp($file)) {
        $number++;
        if (defined $fence) { undef $fence if $line =~ /^\s*\Q$fence\E`*\s*$/; next }
        if ($line =~ /^\s*(```+|~~~+)/) { $fence = $1; $flush->(); next }
        if ($in_remark || $line =~ /^\s*<!--/) { $in_remark = $line !~ /-->/; next }
        if ($line !~ /\S/ || $line =~ /^#{1,6}\s/) {
            undef $indent if $line =~ /\S/;
            $flush->();
            next;
        }
        if ($line =~ /^\s*\|/) {
            $flush->();
            push @paragraphs, map { [[$number, $_]] } cells_of($line);
            next;
        }
        my ($space) = $line =~ /^(\s*)/;
        if ($line =~ /^(\s*(?:[-*+]|\d+[.)])\s+)\S/) { $indent = length $1; $flush->() }
        elsif (!@pieces) {
            undef $indent if $space eq '';
            next if length($space) >= ($indent // 0) + 4;
        }
        push @pieces, [$number, plain($line =~ s/^\s*(?:(?:[-*+>]|\d+[.)])\s+)?//r)];
    }
    $flush->();
    return @paragraphs;
}

sub cells_of {
    my ($row) = @_;
    return if $row =~ /^[\s|:-]+$/;
    return map { plain($_) } split /(?<!\\)\|/, $row =~ s/^\s*\||\|\s*$//gr;
}

sub plain {
    my ($text) = @_;
    $text =~ s/!\[[^\]]*\]\([^)]*\)//g;
    $text =~ s/(`+).*?\1/CODE/g;
    $text =~ s/\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/$1/g;
    $text =~ s/<[^<>]*>/ /g;
    $text =~ s/\*+//g;
    return $text;
}

1;
