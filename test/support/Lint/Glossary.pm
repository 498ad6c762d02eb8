package Lint::Glossary;

# A term with a narrow meaning stands only in the folders that docs/glossary.md names for the term.
use strict;
use warnings;
use Lint::Tree qw(found slurp files);

use constant { PAGE => 'docs/glossary.md', EXCEPTIONS => 'test/support/glossary.exceptions' };

my $measured = qr{^(?:extension|base|sql|worker|console|docs)/.*\.(?:[ch]pp|sql|md)$};

# Names of the server's headers and catalogs.
my $of_postgres = qr/\b(?:slot_(?:att|get)\w+ | table_slot_create | index_getnext_slot | tg_\w+slot
    | pg_\w*slots?\w* )\b/x;

# Term to the folders in which the term may stand; terms without folders may stand anywhere.
sub terms {
    my %folders;
    for (slurp(PAGE)) {
        my ($term, $only_in) = /^\|\s*([\w -]+?)\s*\|.*\|\s*([^|]*?)\s*\|$/ or next;
        my @folders = $only_in =~ /`([^`]+)`/g;
        $folders{$term} = \@folders if @folders;
    }
    return %folders;
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
    my %folders = terms();
    my %excepted = exceptions();
    my %met;
    for my $file (grep { m{$measured} } files()) {
        my @terms = grep { !is_in($file, @{ $folders{$_} }) } sort keys %folders or next;
        my $any = join '|', @terms;
        my $number = 0;
        for my $line (slurp($file)) {
            $number++;
            (my $ours = $line) =~ s/$of_postgres//g;
            next if $ours !~ /(?<![a-z])($any)(?:s|d|)(?![a-z])/i;
            my $term = lc $1;
            my ($text) = grep { index($line, $_) >= 0 } @{ $excepted{$file} // [] };
            if (defined $text) { $met{"$file: $text"} = 1 }
            else { found("$file:$number", "'$term' has another meaning: see " . PAGE) }
        }
    }
    for my $file (sort keys %excepted) {
        found(EXCEPTIONS, "$file has no such line any more: $_")
          for grep { !$met{"$file: $_"} } @{ $excepted{$file} };
    }
    return;
}

sub is_in {
    my ($file, @folders) = @_;
    return grep { index($file, $_) == 0 } @folders;
}

1;
