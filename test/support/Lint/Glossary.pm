package Lint::Glossary;

# A term with a narrow meaning stands only in the folders that docs/glossary.md names for the term,
# and a word of many meanings does not stand bare in the folders named for the word.
use strict;
use warnings;
use Lint::Tree qw(found slurp files);

use constant { PAGE => 'docs/glossary.md', EXCEPTIONS => 'test/support/glossary.exceptions' };

my $measured = qr{^(?:extension|base|sql|worker|console|docs)/.*\.(?:[ch]pp|sql|md|js)$};

# Names of the server's headers and catalogs.
my $of_postgres = qr/\b(?:slot_(?:att|get)\w+ | table_slot_create | index_getnext_slot | tg_\w+slot
    | pg_\w*slots?\w* )\b/x;

# The rows of the table below a heading, each a list of cells.
sub rows_below {
    my ($heading) = @_;
    my (@rows, $is_below);
    for (slurp(PAGE)) {
        $is_below = /^# \Q$heading\E$|^## \Q$heading\E$/ if /^#/;
        push @rows, [ split /\s*\|\s*/, $1 ] if $is_below && /^\|\s*(.*?)\s*\|$/ && !/^\|-/;
    }
    shift @rows;
    return @rows;
}

# Term to the folders in which the term may stand; terms without folders may stand anywhere.
sub terms {
    my %folders;
    for (slurp(PAGE)) {
        last if /^## /;
        my ($term, $only_in) = /^\|\s*([\w -]+?)\s*\|.*\|\s*([^|]*?)\s*\|$/ or next;
        my @folders = $only_in =~ /`([^`]+)`/g;
        $folders{$term} = \@folders if @folders;
    }
    return %folders;
}

# Words of many meanings: `find` finds the bare word in a line, `with` the compounds that are clear.
# Places of `clear` are files and folders in which the word has one meaning.
sub words {
    my @words;
    for my $row (rows_below('Words with too many meanings')) {
        my ($forms, $instead, $clear, $folders, $told) =
          map { [ ($row->[$_] // '') =~ /`([^`]+)`/g ] } 0 .. 4;
        my @with = grep { !m{/} } @{$clear};
        my @found = map { s/\(\)$//r } grep { /\(\)$/ } @{$forms};
        push @words, {
            name    => $forms->[0],
            instead => join(', ', @{$instead}),
            find    => @found ? function_named(@found) : bare(@{$forms}),
            with    => compounds(@with),
            is_code => scalar @found,
            clear   => [ grep { m{/} } @{$clear} ],
            folders => $folders,
            told    => $told,
        };
    }
    return @words;
}

# A word by itself, or a part of a name: look, next_look, TableLook, kMaxLooks.
sub bare {
    my $any = join '|', @_;
    my $capital = join '|', map { ucfirst } @_;
    return qr/((?<![A-Za-z])(?i:$any)|(?<=[a-z])(?:$capital))(?![a-z])/;
}

# A function that is defined, declared, or called without an object: end(, end_early(, not x.end().
sub function_named {
    my $any = join '|', @_;
    return qr/(?<![.\w>])((?:$any)(?:_\w+)?)\(/;
}

sub compounds {
    my $any = join '|', map { join '[ _-]?', map { quotemeta } split /[ _-]/ } @_;
    return @_ ? qr/(?:$any)/i : qr/(?!)/;
}

# The comments and messages in a line, without the names of code.
sub told_in {
    my ($file, $line) = @_;
    my $comment = '';
    if ($file =~ /pp$/) { $comment = $1 if $line =~ s{//(.*)}{} }
    elsif ($file =~ /sql$/) { $comment = $1 if $line =~ s{--(.*)}{} }
    else { ($comment, $line) = ($line, '') }
    my $quoted = $file =~ /pp$/ ? qr/"((?:[^"\\]|\\.)*)"/ : qr/'((?:[^']|'')*)'/;
    my $told = join ' ', $comment, $line =~ /$quoted/g;
    return $told =~ s/`[^`]*`|\w*_\w*|\w+(?:\.\w+)*\(|\b\w*[a-z][A-Z]\w*//gr;
}

# Lines of others: "FILE: the text that the line has".
sub exceptions {
    my %texts;
    for (-f EXCEPTIONS ? slurp(EXCEPTIONS) : ()) {
        push @{ $texts{$1} }, $2 if /^([^#:]\S*): (.+)$/;
    }
    return %texts;
}

sub check {
    return if !-f PAGE;
    my %excepted = exceptions();
    my %met;
    my $tell = sub {
        my ($file, $number, $line, $why) = @_;
        my ($text) = grep { index($line, $_) >= 0 } @{ $excepted{$file} // [] };
        if (defined $text) { $met{"$file: $text"} = 1 }
        else { found("$file:$number", $why) }
    };
    my @files = grep { m{$measured} } files();
    check_terms(\@files, $tell);
    check_words(\@files, $tell);
    for my $file (sort keys %excepted) {
        found(EXCEPTIONS, "$file has no such line any more: $_")
          for grep { !$met{"$file: $_"} } @{ $excepted{$file} };
    }
    return;
}

sub check_terms {
    my ($files, $tell) = @_;
    my %folders = terms();
    for my $file (@{$files}) {
        my @terms = grep { !is_in($file, @{ $folders{$_} }) } sort keys %folders or next;
        my $any = join '|', @terms;
        my $number = 0;
        for my $line (slurp($file)) {
            $number++;
            (my $ours = $line) =~ s/$of_postgres//g;
            next if $ours !~ /(?<![a-z])($any)(?:s|d|)(?![a-z])/i;
            my $term = lc $1;
            $tell->($file, $number, $line, "'$term' has another meaning: see " . PAGE);
        }
    }
    return;
}

sub check_words {
    my ($files, $tell) = @_;
    my @words = words();
    for my $file (@{$files}) {
        my @here = grep { is_in($file, @{ $_->{folders} }, @{ $_->{told} }) } @words;
        @here = grep { !is_in($file, @{ $_->{clear} }) } @here;
        @here = grep { !$_->{is_code} } @here if $file !~ /pp$/;
        next if !@here || $file eq PAGE;
        my $number = 0;
        for my $line (slurp($file)) {
            $number++;
            for my $word (@here) {
                my $rest = is_in($file, @{ $word->{told} }) ? told_in($file, $line) : $line;
                $rest =~ s/$word->{with}//g;
                next if $rest !~ $word->{find};
                $tell->($file, $number, $line,
                    "'$1' has many meanings: say $word->{instead} (" . PAGE . ')');
            }
        }
    }
    return;
}

sub is_in {
    my ($file, @folders) = @_;
    return grep { index($file, $_) == 0 } @folders;
}

1;
