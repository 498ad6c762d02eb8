package Lint::Tree;

# The files of the project as checks see them, and the findings that checks make.
use strict;
use warnings;
use Exporter qw(import);
use File::Find qw(find);

our @EXPORT_OK = qw(
  found detail findings slurp files cpp_files sources is_of_lint
  without_comment without_strings each_line_of_code have);

my $findings = 0;
my (@files, %lines);

# A finding is one line: where, what, and what to do about it.
sub found {
    my ($place, $what) = @_;
    print "$place: $what\n";
    $findings++;
    return;
}

# A further place of the finding above; it does not count.
sub detail {
    my ($place, $what) = @_;
    print "    $place: $what\n";
    return;
}

sub findings { return $findings }

sub slurp {
    my ($file) = @_;
    $lines{$file} //= do {
        open my $handle, '<:encoding(UTF-8)', $file or die "lint: $file: $!\n";
        chomp(my @lines = <$handle>);
        \@lines;
    };
    return @{ $lines{$file} };
}

# What git tracks or would track; without git (a release archive), what is there.
sub project_files {
    my @found = split /\0/, `git ls-files -coz --exclude-standard 2>/dev/null`;
    if (!@found) {
        find({ no_chdir => 1, wanted => sub {
            $File::Find::prune = 1 if $_ eq './build' || $_ eq './.git';
            push @found, substr($_, 2) if -f && !$File::Find::prune;
        } }, '.');
    }
    return sort grep { -f } @found;
}

# What was released stays as it is, and what fuzzers are fed is often no text.
sub files {
    @files = grep { !m{^(?:sql/releases|test/fuzz/corpus)/} } project_files() if !@files;
    return @files;
}

sub cpp_files {
    return grep { /\.[ch]pp$/ } files();
}

sub sources {
    return grep {
        /\.(?:cpp|hpp|sql|psql|spec|sh|pl|pm|t|py|rb|js|cjs|mjs|ts|awk)$/ || m{^test/support/}
          || m{^\.ci/} || m{/run$}
    } files();
}

# Checks spell out what they look for, and their test plants it.
sub is_of_lint {
    my ($file) = @_;
    return $file =~ m{^test/support/(?:Lint/|lint(?:_test)?$)};
}

# A line without its comment; of the kinds of comment, the one of the file's language.
sub without_comment {
    my ($file, $line) = @_;
    $line =~ s{/\*.*?\*/}{}g;
    if ($file =~ /\.[ch]pp$/) { $line =~ s{//.*}{} }
    elsif ($file =~ /\.p?sql$/) { $line =~ s{--.*}{} }
    else { $line =~ s{(?:^|\s)#.*}{} }
    return $line;
}

sub without_strings {
    my ($line) = @_;
    $line =~ s{"(?:[^"\\]|\\.)*"}{""}g;
    return $line;
}

# Calls back with each line of code, comments removed, and its place.
sub each_line_of_code {
    my ($callback, @in) = @_;
    for my $file (@in) {
        my $number = 0;
        for my $line (slurp($file)) {
            $number++;
            local $_ = without_comment($file, $line);
            $callback->("$file:$number");
        }
    }
    return;
}

# Tools that are not needed to build: without one its check is skipped, and that is said.
sub have {
    my ($tool) = @_;
    return 1 if system("command -v $tool >/dev/null 2>&1") == 0;
    print "lint: no $tool, so its check is skipped\n";
    return 0;
}

1;
